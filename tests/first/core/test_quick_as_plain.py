"""What was made quick says the same, to the last bit, as the plain formula that it stands for."""

from __future__ import annotations

import math
from math import inf, nan

import numpy as np
import pytest
from test_attribution import all_costs
from test_ticks import answers, instants, polls

from ckptcost.first.core import counters, depth, ticks
from ckptcost.first.core.attribution import Baseline
from ckptcost.first.core.channels import Channel, Mark, Series, series
from ckptcost.first.core.contents import by_window, first_s
from ckptcost.first.core.phases import windows_of
from ckptcost.first.core.reconcile import Energy, LeftOut, _covers, _name_and_number, chosen


def polled(seed: int, every_s: float, until_s: float = 40.0, jitter_s: float = 0.0) -> Series:
    rng = np.random.default_rng(seed)
    at = np.sort(instants(rng, until_s + 2.0, 0.1 * rng.uniform(0.97, 1.03), jitter_s))
    t_s, took_s = polls(rng, 0.5, until_s, every_s)
    joules = np.cumsum(rng.normal(60.0, 3.0, len(at)))
    return Series(t_s, answers(rng, at, joules, t_s, took_s), took_s)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 95, 96, 383, 384, 2047, 2048, 2049, 5000])
def test_a_median_is_numpys(count):
    rng = np.random.default_rng(count)
    for values in (
        rng.normal(size=count),
        np.round(rng.normal(size=count), 1),
        np.where(rng.random(count) < 0.3, inf, 1.0),
    ):
        with np.errstate(all="ignore"):
            expected = float(np.median(values)) if count else nan
        assert ticks.median(values) == expected or (
            math.isnan(expected) and math.isnan(ticks.median(values))
        )
    if count:
        assert math.isnan(ticks.median(np.where(np.arange(count) == count // 2, nan, 1.0)))


def plain_before(fit: ticks.Lattices, t_s, took_s, low_s, high_s):
    """One reading after the other, and each number of a tick in every lattice that is possible."""
    found = []
    periods_s, first_s, last_s = (
        part[0, np.isfinite(fit.first_s[0])].tolist()
        for part in (fit.periods_s, fit.first_s, fit.last_s)
    )
    origin_s, period_s, jitter_s = (
        part.item() for part in (fit.origin_s, fit.period_s, fit.jitter_s)
    )
    phase = (sum(first_s) + sum(last_s)) / len(periods_s) / 2.0 + origin_s
    for t, took, since, until in zip(
        t_s.tolist(), took_s.tolist(), low_s.tolist(), high_s.tolist(), strict=True
    ):
        about = math.floor((t + took / 2.0 - phase) / period_s)
        asked = []
        for n in (about - 1, about, about + 1, about + 2):
            low = (
                min(first + n * period for first, period in zip(first_s, periods_s, strict=True))
                - jitter_s
            )
            high = (
                max(last + n * period for last, period in zip(last_s, periods_s, strict=True))
                + jitter_s
            )
            asked.append((origin_s + low, origin_s + (low + high) / 2.0, origin_s + high))
        fits = [
            k
            for k in range(3)
            if asked[k][0] <= min(until, t + took) and asked[k][2] >= since and asked[k + 1][2] >= t
        ]
        if not fits:
            found.append((since, (since + until) / 2.0, until))
            continue
        early, late = (
            max(min(asked[k][0] for k in fits), since),
            min(max(asked[k][2] for k in fits), until),
        )
        far = {
            k: max(since - asked[k][1], 0.0) + max(asked[k][1] - until, 0.0) + 1e-9 * abs(k - 1)
            for k in fits
        }
        best = asked[min(fits, key=lambda k: far[k])][1]
        found.append((early, min(max(best, early), late), late))
    return np.array(found).T


@pytest.mark.parametrize("every_s", [0.01, 0.02, 0.2, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_last_tick_before_each_reading(seed, every_s):
    quick, slow = polled(seed, 0.02, 12.0), polled(seed, every_s)
    moved = np.flatnonzero(np.diff(quick.value) > 0) + 1
    low, high = quick.t_s[moved - 1][None], (quick.t_s[moved] + quick.took_s[moved])[None]
    rows, fit = ticks.lattices(low, high, low < inf, near_s=np.array([6.0]))
    assert rows.tolist() == [0]
    rng = np.random.default_rng(seed)
    at = np.sort(rng.choice(len(slow.t_s), size=min(len(slow.t_s), 150), replace=False))
    t_s, took_s = slow.t_s[at], slow.took_s[at]
    low_s = np.where(rng.random(len(at)) < 0.1, -inf, t_s - rng.uniform(0.001, 0.2, len(at)))
    for mine, plain in zip(
        fit.before(
            t_s[None], took_s[None], low_s[None], (t_s + took_s)[None], np.isfinite(t_s[None])
        ),
        plain_before(fit, t_s, took_s, low_s, t_s + took_s),
        strict=True,
    ):
        # where several periods tell the same instant, any of them does: their last bits differ
        np.testing.assert_allclose(mine[0], plain, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize(
    ("every_s", "jitter_s"), [(0.01, 0.0), (0.03, 0.004), (0.2, 0.0), (0.02, 0.09)]
)
def test_ticks_of_a_stretch_are_those_of_its_readings_alone(every_s, jitter_s):
    """What lies between polls is looked over once for a whole counter; a stretch of it is as if
    nothing else had been read."""
    seen = polled(3, every_s, jitter_s=jitter_s)
    all_ = ticks.polls(*(np.asarray(part) for part in (seen.t_s, seen.took_s, seen.value)))
    kinds = set()
    for start, stop in (
        (0, len(seen.t_s)),
        (7, 60),
        (30, len(seen.t_s) - 5),
        (50, 52),
        (50, 51),
        (20, 20),
    ):
        cut = slice(start, stop)
        for tick_s in (None, 0.1, 0.0):
            mine = ticks.found_in(all_, seen.took_s, start, stop, tick_s=tick_s, near_s=20.0)
            alone = ticks.found(
                seen.t_s[cut].copy(),
                seen.took_s[cut].copy(),
                seen.value[cut].copy(),
                tick_s=tick_s,
                near_s=20.0,
            )
            kinds.add(mine.kind)
            for a, b in zip(mine, alone, strict=True):
                np.testing.assert_array_equal(a, b)
    assert "live" in kinds
    assert len(kinds) > 1


@pytest.mark.parametrize(
    ("every_s", "tick_s"), [(0.01, None), (0.02, 0.1), (0.09, 0.1), (0.3, 0.1)]
)
def test_stretches_worked_out_together_are_those_worked_out_alone(every_s, tick_s):
    """Of any length, in any order, and more than are worked out at once."""
    seen = polled(5, every_s, jitter_s=0.004)
    all_ = ticks.polls(*(np.asarray(part) for part in (seen.t_s, seen.took_s, seen.value)))
    rng = np.random.default_rng(1)
    starts = rng.integers(0, len(seen.t_s), 3 * ticks.ROWS)
    stops = np.minimum(starts + rng.integers(0, 500, len(starts)), len(seen.t_s))
    near_s = seen.t_s[starts] + 1.0
    together = ticks.found_each(all_, seen.took_s, starts, stops, near_s, tick_s=tick_s)
    assert len({found.kind for found in together}) > 1
    for found, start, stop, at_s in zip(
        together, starts.tolist(), stops.tolist(), near_s.tolist(), strict=True
    ):
        alone = ticks.found_in(all_, seen.took_s, start, stop, tick_s=tick_s, near_s=at_s)
        for a, b in zip(found, alone, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(4))
def test_numbers_one_after_the_other_are_those_asked_for_one_by_one(seed):
    """The period that tells is looked for once, not among all of them for each number."""
    seen = polled(seed, 0.02, 12.0, jitter_s=0.002 * seed)
    moved = np.flatnonzero(np.diff(seen.value) > 0) + 1
    low, high = seen.t_s[moved - 1][None], (seen.t_s[moved] + seen.took_s[moved])[None]
    rows, fit = ticks.lattices(low, high, low < inf, near_s=np.array([6.0]))
    assert rows.tolist() == [0]
    n = np.arange(-300.0, 300.0)[None]
    for quick, plain in zip(fit.from_number(n[:, 0], n.shape[1]), fit.at(n), strict=True):
        np.testing.assert_allclose(quick, plain, rtol=0.0, atol=1e-13)


def test_a_counter_asked_in_any_order_says_the_same():
    """What it keeps from one question to the next changes no answer."""
    seen = polled(8, 0.02)
    windows = [
        (b, b + length) for b in np.linspace(4.0, 30.0, 14).tolist() for length in (0.3, 2.0, 5.0)
    ]
    kept = counters.unwrap_counter(seen, tick_s=0.1, resolution=1e-3)
    for begin_s, end_s in [*windows, *windows[::-1]]:
        assert kept.energy(begin_s, end_s) == counters.unwrap_counter(
            seen, tick_s=0.1, resolution=1e-3
        ).energy(begin_s, end_s)


def plain_over(readings, begin_s, end_s, bin_s):
    """Peaks and the largest reading, from masks over the whole series."""
    grown = {name: depth.growth(of) for name, of in readings.items() if name != "in_flight"}
    inside = [of.t_s[(of.t_s >= begin_s) & (of.t_s <= end_s)] for of in grown.values()]
    step_s = max(
        (float(np.median(np.diff(t_s))) for t_s in inside if len(t_s) > 1), default=end_s - begin_s
    )
    width_s = min(max(bin_s, step_s), end_s - begin_s)

    def peak(of):
        last_s = max(end_s - width_s, begin_s)
        begins = np.concatenate([[begin_s, last_s], of.t_s, of.t_s - width_s])
        begins = begins[(begins >= begin_s) & (begins <= last_s)]
        rates = depth._per_s(of, begins, np.minimum(begins + width_s, end_s))
        return float(np.max(rates[np.isfinite(rates)], initial=-inf))

    gauge = readings["in_flight"]
    most = gauge.value[(gauge.t_s >= begin_s) & (gauge.t_s <= end_s) & np.isfinite(gauge.value)]
    return (
        width_s,
        peak(grown["queue_s"]),
        peak(grown["written_bytes"]),
        float(np.max(most, initial=-inf)),
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_disk_looked_over_once_for_many_windows(seed):
    rng = np.random.default_rng(seed)
    at = np.sort(np.round(rng.uniform(0.0, 60.0, 300), 2))
    disk = {
        "queue_s": series(at, np.cumsum(rng.random(300))),
        "written_bytes": series(at, np.cumsum(rng.random(300) * 1e9)),
        "in_flight": series(at, np.where(rng.random(300) < 0.2, nan, rng.integers(0, 40, 300))),
    }
    once = depth.queue_counts(disk)
    for _ in range(25):
        begin_s = float(rng.choice(at[:280]) if rng.random() < 0.5 else rng.uniform(0.0, 55.0))
        end_s = begin_s + float(rng.uniform(1.0, 20.0))
        seen = depth.over(once, begin_s, end_s, bin_s=0.5)
        np.testing.assert_equal(tuple(seen), tuple(depth.over(disk, begin_s, end_s, bin_s=0.5)))
        told = (seen.peak_over_s, seen.peak_depth, seen.peak_write_bytes_per_s, seen.most_in_flight)
        for mine, plain in zip(told, plain_over(disk, begin_s, end_s, 0.5), strict=True):
            assert mine == plain or (math.isnan(mine) and plain == -inf)


def test_marks_of_a_name_that_every_save_has():
    rng = np.random.default_rng(2)
    marks = []
    for n in range(40):
        begin_s = 10.0 * n
        marks += [
            Mark(begin_s, "begin", "model.pt"),
            Mark(begin_s + 3.0, "returned", "model.pt"),
            Mark(begin_s + 4.0, "note", "model.pt"),
        ]
    marks += [
        Mark(float(at), "note", name)
        for at in rng.uniform(-5.0, 420.0, 60)
        for name in ("model.pt", "other")
    ]
    marks += [
        Mark(50.0, "note", "model.pt"),
        Mark(-inf, "note", "model.pt"),
        Mark(inf, "note", "model.pt"),
    ]
    windows = windows_of(marks)
    assert len(windows) == 40
    starts = sorted((first_s(window), place) for place, window in enumerate(windows))
    plain = [[] for _ in windows]
    for mark in marks:
        if mark.window == "model.pt":
            plain[
                next(
                    (place for from_s, place in reversed(starts) if from_s <= mark.t_s),
                    starts[0][1],
                )
            ].append(mark)
    assert by_window(marks, windows) == plain


def test_one_window_costs_what_it_costs_among_all():
    marks = [
        Mark(at, name, window)
        for window, *told in (
            ("a", 40.0, 45.0, 60.0),
            ("b", 50.0, 52.0, 70.0),
            ("c", 100.0, 110.0, 111.0),
        )
        for name, at in zip(("begin", "returned", "durable"), told, strict=True)
    ]
    windows = windows_of(marks)

    def joules(domain, begin_s, end_s):
        value = (end_s - begin_s) * 300.0 + 50.0 * math.sin(begin_s) - 20.0 * math.sin(end_s)
        return Energy(value, value - 1.0, value + 1.0)

    given = (["gpu:0", "cpu:0"], joules, 0.0, {"gpu:0": Baseline(80.0, 75.0, 85.0)})
    everything = all_costs(windows, *given)
    for place, window in enumerate(windows):
        assert all_costs(windows, *given, only=place) == [
            cost for cost in everything if cost.window == window.name
        ]


def plain_left_out(channels, has_value):
    """Every pair of parts, whether one covers the other."""
    found = chosen(channels, has_value)
    left = {one.channel: one for one in found.left_out if one.why != "COVERED"}
    kept = {
        n: c
        for n, c in enumerate(channels)
        if c.quantity in ("energy_j", "power_w") and n not in left
    }
    answer = {_name_and_number(c) for c in kept.values()}
    silent = {
        _name_and_number(channels[n]) for n, out in left.items() if out.why == "NO_VALUE"
    } - answer
    for place in sorted(kept, key=lambda place: (-len(_covers(kept[place])), place)):
        for other, channel in kept.items():
            alone = (
                channel.kind_of_domain != "gpu"
                and (kept[place].kind_of_domain, _name_and_number(channel)[1]) in silent
            )
            here = place not in left and other not in left and other != place
            if here and channel.kind_of_domain in _covers(kept[place]) and not alone:
                left[other] = LeftOut(other, "COVERED", place)
    return tuple(left[place] for place in sorted(left))


@pytest.mark.parametrize("seed", range(60))
def test_what_covers_what_is_what_every_pair_says(seed):
    rng = np.random.default_rng(seed)
    kinds = ("module", "psys", "cpu", "dram", "gpu", "core", "drive")
    covers = ((), (), (), ("cpu",), ("cpu", "dram"), ("gpu",), ("module", "cpu"))
    channels = [
        Channel(f"{kind}:{n}", "energy_j", "a", covers=covers[int(rng.integers(len(covers)))])
        for kind in kinds
        for n in range(3)
        if rng.random() < 0.7
    ]
    has_value = (rng.random(len(channels)) < 0.85).tolist()
    assert chosen(channels, has_value).left_out == plain_left_out(channels, has_value)
