"""Joules of windows: against exact integrals, conservation, a plain loop over the readings, and
counters that misbehave."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ticks import answers, instants, polls

from ckptcost.first.core import counters, ticks
from ckptcost.first.core.channels import Series, series
from ckptcost.first.core.counters import energy, unwrap_counter


def square(t_s, high_w=600.0, low_w=120.0, period_s=2.0):
    """Joules from 0 to t: half a period at each power."""
    full, rest = np.divmod(t_s, period_s)
    half = period_s / 2.0
    return (
        full * half * (high_w + low_w)
        + np.minimum(rest, half) * high_w
        + np.maximum(rest - half, 0.0) * low_w
    )


def constant(t_s):
    return 431.0 * t_s


def sine(t_s):
    return 360.0 * t_s - 240.0 / math.pi * np.cos(math.pi * t_s)


GRID_S = np.linspace(0.0, 20.0, 200_001)
RAMPS_W = 120.0 + 480.0 * np.clip(np.abs(np.mod(GRID_S, 2.0) - 1.0) * 2.5 - 0.75, 0.0, 1.0)
RAMPS_J = np.concatenate([[0.0], np.cumsum((RAMPS_W[1:] + RAMPS_W[:-1]) / 2.0) * 1e-4])


def ramps(t_s):
    """Between 120 and 600 W within 0.4 s, twice every 2 s; corners lie on the grid, so the integral
    is exact at its points."""
    return np.interp(t_s, GRID_S, RAMPS_J)


def noisy(joules, rng, watts=10.0, each_s=0.03):
    """With noise that is exact to integrate: constant for `each_s`."""
    at = np.arange(0.0, 45.0, each_s)
    more = np.concatenate([[0.0], np.cumsum(rng.normal(0.0, watts, len(at) - 1) * each_s)])
    return lambda t_s: joules(t_s) + np.interp(t_s, at, more)


def metered(
    joules, rng, every_s=0.01, tick_s=None, until_s=25.0, since_s=4.0, jitter_s=0.0, **polled
):
    """A counter in steps of a millijoule every 100 ms or so, as a sampler sees it."""
    at = np.sort(instants(rng, until_s + 2.0, tick_s or 0.1 * rng.uniform(0.97, 1.03), jitter_s))
    t_s, took_s = polls(rng, since_s, until_s, every_s, **polled)
    return Series(t_s, answers(rng, at, np.floor(joules(at) * 1e3) / 1e3, t_s, took_s), took_s)


class Score(NamedTuple):
    error: float
    worst: float
    inside: float
    width: float


def score(joules, span_s, begins, count=100, harsh=False, noise_w=10.0, every_s=0.01, **metering):
    """Relative errors of windows on counters that are known."""
    rows = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        truth = noisy(joules, rng, noise_w) if harsh or noise_w > 10.0 else joules
        kind = {"jitter_s": 5e-3, "took_s": (1e-4, 5e-3)} if harsh else {}
        begin_s = begins(rng)
        end_s = begin_s + span_s
        every = every_s(begin_s, end_s) if callable(every_s) else every_s
        meter = metered(
            truth,
            rng,
            every,
            until_s=end_s + 3.5,
            since_s=max(begin_s - 4.0, 0.5),
            **kind,
            **metering,
        )
        found = energy(meter, begin_s, end_s, resolution=1e-3)
        exact = float(truth(end_s) - truth(begin_s))
        rows.append(
            (
                abs(found.value / exact - 1.0),
                found.low <= exact <= found.high,
                (found.high - found.low) / exact,
            )
        )
    error, inside, width = np.array(rows).T
    return Score(float(error.mean()), float(error.max()), float(inside.mean()), float(width.mean()))


def anywhere(rng):
    return rng.uniform(5.0, 9.0)


def at_a_step(rng):
    return float(rng.integers(5, 9))


@pytest.mark.parametrize(
    ("every_s", "span_s", "error", "width"),
    [
        (0.01, 0.3, 0.002, 0.03),
        (0.01, 1.0, 0.001, 0.01),
        (0.01, 3.0, 5e-4, 4e-3),
        (0.02, 0.3, 0.004, 0.06),
        (0.02, 1.0, 0.002, 0.02),
        (0.02, 3.0, 1e-3, 5e-3),
    ],
)
def test_the_budget_on_a_square_wave(every_s, span_s, error, width):
    found = score(square, span_s, anywhere, count=200 if span_s == 1.0 else 60, every_s=every_s)
    assert found.error < error  # the budget is 2 % at 1 s and 0.5 % at 3 s
    assert found.inside >= 0.97
    assert found.width < width


@pytest.mark.parametrize("span_s", [0.3, 1.0, 3.0])
def test_windows_that_begin_and_end_with_a_step(span_s):
    found = score(square, span_s, at_a_step, every_s=0.02)
    assert found.error < 0.005 / span_s
    assert found.inside >= 0.97
    assert (
        found.width < 0.25 / span_s
    )  # the straight line is in it, and misses by up to 20 % at 1 s


@pytest.mark.parametrize("begins", [anywhere, at_a_step])
@pytest.mark.parametrize("span_s", [1.0, 3.0])
def test_with_jitter_noise_and_slow_calls(begins, span_s):
    found = score(square, span_s, begins, harsh=True)
    assert found.error < (0.02 if span_s == 1.0 else 0.005)
    assert found.inside >= 0.95
    assert found.width < 0.2 / span_s


def test_noise_within_ticks_is_in_the_interval():
    found = score(square, 3.0, anywhere, count=150, noise_w=40.0)
    assert found.inside >= 0.97  # 0.85 without what scatter adds
    assert found.width < 0.015


@pytest.mark.parametrize("begins", [anywhere, at_a_step])
def test_polled_slowly_outside_the_window(begins):
    found = score(
        square,
        1.0,
        begins,
        every_s=lambda b, e: (
            lambda t: min(0.2, b - t) if t < b - 1e-6 else 0.01 if t < e + 0.3 else 0.2
        ),
    )
    assert found.error < 0.02
    assert found.inside >= 0.95


@pytest.mark.parametrize(
    ("joules", "error", "width"),
    [(sine, 0.004, 0.03), (ramps, 0.006, 0.04), (constant, 0.001, 0.01)],
)
def test_powers_without_steps(joules, error, width):
    found = score(joules, 1.0, anywhere)
    assert found.error < error
    assert found.inside >= 0.97
    assert found.width < width


def test_polls_as_slow_as_ticks_say_so():
    found = score(square, 1.0, anywhere, every_s=0.1)
    assert found.inside >= 0.97
    assert found.error < 0.08


def test_a_counter_with_ticks_too_quick_to_see():
    unknown = score(square, 1.0, anywhere, count=40, every_s=0.02, tick_s=1e-3)
    assert unknown.inside == 1.0
    assert unknown.error < 0.02  # nobody says that it is not as old as the poll before
    rng = np.random.default_rng(0)
    meter = metered(square, rng, 0.02, tick_s=1e-3)
    for begin_s in (5.1, 6.0, 7.35):
        found = energy(meter, begin_s, begin_s + 1.0, tick_s=1e-3)
        exact = square(begin_s + 1.0) - square(begin_s)
        assert found.low <= exact <= found.high
        assert found.value == pytest.approx(exact, rel=5e-3)
        assert found.high - found.low < 0.15 * exact


def test_constant_power_is_exact():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        begin_s = anywhere(rng)
        found = energy(
            metered(constant, rng, 0.02, jitter_s=0.0, until_s=14.0), begin_s, begin_s + 2.0
        )
        assert found.low <= 862.0 <= found.high
        assert found.value == pytest.approx(862.0, rel=2e-3)
        assert (found.coverage, found.gaps, found.reasons, found.short) == (1.0, (), (), False)
        assert found.resolved_s == pytest.approx(0.1, rel=0.04)
        assert found.ticks == pytest.approx(20, abs=1)


def test_parts_sum_to_the_whole():
    rng = np.random.default_rng(3)
    counter = unwrap_counter(metered(square, rng, until_s=20.0))
    whole = counter.energy(6.0, 16.0)
    for cuts in (
        np.linspace(6.0, 16.0, 41),
        np.concatenate([[6.0], np.sort(rng.uniform(6.0, 16.0, 30)), [16.0]]),
    ):
        parts = [counter.energy(a, b) for a, b in itertools.pairwise(cuts)]
        assert sum(p.value for p in parts) == pytest.approx(whole.value, rel=1e-3)
        assert sum(p.low for p in parts) <= whole.value <= sum(p.high for p in parts)
    assert sum(p.ticks for p in parts) == whole.ticks


@pytest.mark.parametrize("wraps_at", [3000.0, 262_143.32885, 700.0])
def test_a_wrap_anywhere_changes_nothing(wraps_at):
    rng = np.random.default_rng(4)
    meter = metered(square, rng, until_s=16.0)
    plain = energy(meter, 6.2, 13.1)
    for start in np.linspace(0.0, wraps_at, 23):
        wrapped = meter._replace(value=np.mod(meter.value + start, wraps_at))
        found = energy(wrapped, 6.2, 13.1, wraps_at=wraps_at, most_per_s=700.0)
        assert found.gaps == ()
        assert found[:4] == pytest.approx(
            plain[:4], abs=0.01
        )  # ten of the counter's own steps of a millijoule


def plain_total(values, wraps_at=None):
    """The same by a loop."""
    total, out, before = 0.0, [], None
    for value in values:
        if not math.isfinite(value) or value < 0:
            continue
        if before is not None:
            more = value - before
            if more < 0 and wraps_at:
                more += wraps_at
            total += max(more, 0.0)
        before = value
        out.append(total)
    return out


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(0.0, 100.0), st.just(math.nan), st.just(-1.0), st.just(math.inf)),
        max_size=40,
    ),
    st.booleans(),
)
def test_the_total_is_that_of_a_loop(values, wraps):
    wraps_at = 60.0 if wraps else None
    counter = unwrap_counter(series(range(len(values)), values), wraps_at)
    assert counter.total.tolist() == pytest.approx(plain_total(values, wraps_at))
    assert len(counter.gaps) == len(counter.breaks)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1e-3, 0.3), st.floats(0.0, 900.0), st.booleans()),
        min_size=3,
        max_size=60,
    ),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.sampled_from([None, 0.0, 0.1]),
)
def test_the_counter_itself_bounds_every_answer(steps, first, second, tick_s):
    pause, power, moves = (np.array(column) for column in zip(*steps, strict=True))
    t_s = np.cumsum(pause)
    true = np.cumsum(pause * power)
    value = np.maximum.accumulate(np.where(moves, true, 0.0))  # it is renewed at some polls only
    begin_s, end_s = sorted(t_s[0] + np.array([first, second]) * (t_s[-1] - t_s[0]))
    found = energy(series(t_s, value), begin_s, end_s, tick_s=tick_s)
    if found.value != found.value:
        assert found.reasons or found.coverage != found.coverage
        return
    assert 0.0 <= found.low <= found.value <= found.high
    # not more than from the last reading before the tick that is before the window, to the first
    # reading past the tick after it
    changes = np.flatnonzero(np.diff(value) > 0) + 1
    earlier = changes[t_s[changes] <= begin_s]
    later = changes[t_s[changes - 1] >= end_s]
    if len(earlier) and len(later) and tick_s is None:
        assert found.high <= value[later[0]] - value[earlier[-1]] + 1e-6


@pytest.mark.parametrize(("shift_s", "factor"), [(1e6, 1.0), (-3.0, 1e-3), (0.0, 1e9)])
def test_shifting_time_and_scaling_joules(shift_s, factor):
    rng = np.random.default_rng(7)
    meter = metered(square, rng)
    one = energy(meter, 6.3, 8.1)
    other = energy(
        Series(meter.t_s + shift_s, meter.value * factor, meter.took_s),
        6.3 + shift_s,
        8.1 + shift_s,
    )
    assert [part / factor for part in other[:3]] == pytest.approx(list(one[:3]), rel=1e-4)
    assert (other.ticks, other.coverage, other.gaps, other.reasons) == (
        one.ticks,
        one.coverage,
        one.gaps,
        one.reasons,
    )


def test_a_reset_is_a_gap_and_never_a_number():
    rng = np.random.default_rng(8)
    meter = metered(square, rng, until_s=16.0)
    reset = meter.t_s > 9.5
    fallen = meter._replace(value=np.where(reset, meter.value - meter.value[reset][0], meter.value))
    for wraps_at, most_per_s in ((None, None), (262_143.0, 800.0)):
        found = energy(fallen, 6.0, 13.0, wraps_at=wraps_at, most_per_s=most_per_s)
        (gap,) = found.gaps
        assert (gap.reason, found.reasons) == ("reset", ("reset",))
        assert gap.begin_s <= 9.5 <= gap.end_s
        assert gap.end_s - gap.begin_s < 0.15
        assert found.coverage == pytest.approx(1.0 - (gap.end_s - gap.begin_s) / 7.0)
        known = square(13.0) - square(6.0) - (square(gap.end_s) - square(gap.begin_s))
        assert found.value == pytest.approx(known, abs=0.12 * 600.0)
        assert energy(fallen, 6.0, 9.0, wraps_at=wraps_at, most_per_s=most_per_s).gaps == ()
        inside = energy(
            fallen, gap.begin_s + 0.01, gap.end_s - 0.005, wraps_at=wraps_at, most_per_s=most_per_s
        )
        assert math.isnan(inside.value)  # not 0
    assert (
        energy(fallen, 6.0, 13.0, wraps_at=262_143.0).value > 250_000.0
    )  # why a most_per_s belongs to every counter that wraps


def test_more_than_one_wrap_and_impossible_jumps():
    at = np.concatenate([np.arange(0.0, 5.0, 0.1), np.arange(2005.0, 2010.0, 0.1)])
    wrapped = series(at, np.mod(300.0 * at, 262_143.0))
    found = energy(wrapped, 1.0, 2008.0, wraps_at=262_143.0, most_per_s=500.0, tick_s=1e-3)
    assert found.reasons == ("maybe-more-than-one-wrap",)
    assert found.coverage == pytest.approx(7.0 / 2007.0, rel=0.05)
    assert found.value == pytest.approx(7.0 * 300.0, rel=0.03)
    assert energy(
        wrapped, 1.0, 2008.0, wraps_at=262_143.0, most_per_s=131.0, tick_s=1e-3
    ).reasons != ("maybe-more-than-one-wrap",)
    jumps = series(
        np.arange(0.0, 10.0, 0.1), 30.0 * np.arange(100) + np.where(np.arange(100) > 50, 1e9, 0.0)
    )
    found = energy(jumps, 1.0, 9.0, most_per_s=700.0, tick_s=1e-3)
    assert found.reasons == ("implausible",)
    assert found.value == pytest.approx(8.0 * 300.0, rel=0.03)


def test_missing_answers_lose_time_and_no_joules():
    rng = np.random.default_rng(9)
    meter = metered(square, rng, until_s=16.0)
    holes = meter._replace(
        value=np.where((meter.t_s > 8.2) & (meter.t_s < 11.2), math.nan, meter.value)
    )
    whole, with_hole = energy(meter, 6.0, 13.0), energy(holes, 6.0, 13.0)
    assert with_hole.gaps == ()
    assert with_hole.coverage == 1.0
    assert with_hole.value == pytest.approx(whole.value, rel=1e-3)
    for end_s in np.linspace(8.3, 11.1, 29):  # whole cycles are hidden
        lost = energy(holes, 6.0, end_s)
        assert lost.low <= square(end_s) - square(6.0) <= lost.high
    edge, lost = energy(meter, 6.0, 8.9), energy(holes, 6.0, 8.9)
    exact = square(8.9) - square(6.0)
    assert lost.low <= exact <= lost.high
    assert lost.high - lost.low > 5.0 * (edge.high - edge.low)
    assert lost.value != pytest.approx(exact, rel=1e-4)


def test_an_excursion_within_one_tick():
    def blip(t_s):
        return 200.0 * t_s + 700.0 * np.clip(t_s - 7.0, 0.0, 0.03)

    for phase_s in (0.04, 0.06, 0.08):
        at = phase_s + 0.1 * np.arange(140)
        t_s = np.arange(3.0, 12.0, 0.0101)
        meter = series(t_s, blip(at)[np.searchsorted(at, t_s, side="right") - 1])
        for end_s in (6.99, 7.0, 7.015, 7.03, 7.05):
            found = energy(meter, 5.0, end_s)
            assert found.low <= blip(end_s) - blip(5.0) <= found.high


def test_a_swing_both_ways_within_one_tick():
    def swing(t_s):
        return (
            200.0 * t_s
            - 200.0 * np.clip(t_s - 7.0, 0.0, 0.02)
            + 700.0 * np.clip(t_s - 7.03, 0.0, 0.03)
        )

    at = 0.06 + 0.1 * np.arange(140)
    at[at > 6.9] += 0.02
    t_s = np.arange(3.0, 12.0, 0.0101)
    meter = series(t_s, swing(at)[np.searchsorted(at, t_s, side="right") - 1])
    for end_s in (6.99, 7.01, 7.02, 7.03, 7.06):
        found = energy(meter, 5.0, end_s)
        assert found.low <= swing(end_s) - swing(5.0) <= found.high


@pytest.mark.parametrize("powers", [(600.0, 360.0, 120.0), (120.0, 360.0, 600.0)])
@pytest.mark.parametrize("side", ["low_s", "high_s"])
def test_all_ticks_as_early_or_as_late_as_they_may_be(powers, side):
    first, middle, last = powers
    at, total = (
        5.0 + 0.1 * np.arange(16),
        np.concatenate([[0.0], 0.1 * np.cumsum([first] * 7 + [middle] + [last] * 7)]),
    )
    points = ticks.Ticks(at, at - 0.008, at + 0.008, total, "lattice", 0.1, 0.004)
    counter = unwrap_counter(series([5.0, 6.5], [0.0, total[-1]]))
    for t_s in np.linspace(5.71, 5.79, 9):
        edge = counter.edge(t_s, points)
        assert edge.low <= np.interp(t_s, getattr(points, side), total) <= edge.high


def test_before_the_first_and_after_the_last_tick_there_is_no_number():
    rng = np.random.default_rng(10)
    meter = metered(square, rng, since_s=4.0, until_s=9.0)
    counter = unwrap_counter(meter, most_per_s=1000.0)
    early = counter.energy(3.0, 7.0)
    assert math.isnan(early.value)
    assert early.reasons == ("before-first-tick",)
    assert early.low <= square(7.0) - square(3.0)
    last = float(meter.t_s[-1])
    soon, late = counter.energy(6.0, last + 0.02), counter.energy(6.0, last + 5.0)
    assert math.isnan(soon.value)
    assert (soon.reasons, late.reasons) == (("not-yet",), ("after-last-tick",))
    for found, end_s in ((soon, last + 0.02), (late, last + 5.0)):
        assert (
            found.low <= square(end_s) - square(6.0) <= found.high
        )  # joules never go back, nor faster than they can
    assert math.isnan(unwrap_counter(meter).energy(6.0, last + 5.0).high)
    answered = energy(meter, 6.0, last - 0.25)
    assert answered.reasons == ()


def test_a_counter_that_stands_still():
    rng = np.random.default_rng(11)
    meter = metered(square, rng, until_s=18.0)
    stands = (meter.t_s > 8.0) & (meter.t_s < 11.0)
    held = meter._replace(value=np.where(stands, meter.value[stands][0], meter.value))
    found = energy(held, 6.0, 14.0)
    assert found.reasons == ("stuck",)
    assert (found.gaps, found.coverage) == ((), 1.0), "it caught up: the joules are there"
    assert found.value == pytest.approx(energy(meter, 6.0, 14.0).value, rel=0.01)
    assert energy(held, 12.0, 14.0).reasons == ()
    reset = meter._replace(
        value=np.where(
            stands, held.value, np.where(meter.t_s > 8.0, meter.value - 3000.0, meter.value)
        )
    )
    both = energy(
        reset, 6.0, 14.0
    )  # it stood still, then began again: the same time is not lost twice
    assert set(both.reasons) == {"stuck", "reset"}
    assert both.coverage == pytest.approx(5.0 / 8.0, abs=0.03)
    for_ever = meter._replace(
        value=np.where(meter.t_s > 8.0, meter.value[meter.t_s > 8.0][0], meter.value)
    )
    ends = energy(for_ever, 6.0, 14.0)
    assert math.isnan(ends.value)
    assert "stuck" in ends.reasons
    never = energy(series(np.arange(0.0, 9.0, 0.02), np.full(450, 5.0)), 2.0, 4.0)
    assert math.isnan(never.value)
    assert "stuck" in never.reasons


def test_bytes_are_known_at_every_poll():
    rng = np.random.default_rng(12)
    t_s = np.cumsum(rng.uniform(0.01, 0.03, 600))
    written = np.cumsum(np.where(rng.random(600) < 0.1, rng.integers(1, 1 << 30, 600), 0)).astype(
        float
    )
    disk = unwrap_counter(series(t_s, written), tick_s=0.0)
    for a, b in ((10, 500), (77, 78), (200, 260)):
        found = disk.energy(t_s[a], t_s[b])
        assert found.value == pytest.approx(written[b] - written[a], abs=1e-3)
        between = disk.energy(t_s[a] - 0.004, t_s[b] - 0.004)
        assert (
            between.low
            <= written[b - 1] - written[a]
            <= between.high
            <= written[b] - written[a - 1]
        )
    idle = energy(series(t_s, np.full(600, 7e12)), 1.0, 9.0, tick_s=0.0)
    assert idle[:4] == (0.0, 0.0, 0.0, 1.0)
    assert idle.reasons == ()
    assert (
        unwrap_counter(series(t_s, np.where(t_s > 5.0, 0.0, 7.0)), tick_s=0.0)
        .energy(4.0, 6.0)
        .coverage
        > 0.98
    )


def test_a_counter_that_moves_once_in_ten_minutes():
    t_s = np.arange(0.0, 36_000.0, 1.0)
    drive = series(t_s, np.floor(t_s * 6.0 / 3600.0) * 3600.0)
    found = energy(drive, 10_000.0, 20_000.0, resolution=3600.0)
    assert found.low <= 60_000.0 <= found.high
    assert found.value == pytest.approx(60_000.0, rel=0.1)
    assert found.resolved_s == pytest.approx(600.0, rel=0.1)
    assert found[:3] == pytest.approx(
        unwrap_counter(drive, resolution=3600.0).energy(10_000.0, 20_000.0)[:3], rel=1e-6
    )


def test_the_resolution_is_in_the_interval():
    rng = np.random.default_rng(15)
    meter = metered(square, rng)
    fine, coarse = energy(meter, 6.3, 8.1), energy(meter, 6.3, 8.1, resolution=25.0)
    assert (coarse.low, coarse.high) == (
        pytest.approx(fine.low - 25.0),
        pytest.approx(fine.high + 25.0),
    )
    steps = meter._replace(value=np.floor(meter.value / 25.0) * 25.0)
    found = energy(steps, 6.3, 8.1, resolution=25.0)
    assert found.low <= square(8.1) - square(6.3) <= found.high


def test_short_windows_and_none():
    rng = np.random.default_rng(13)
    counter = unwrap_counter(metered(square, rng))
    assert counter.energy(6.0, 6.35).short
    assert not counter.energy(6.0, 6.8).short
    nothing = counter.energy(6.0, 6.0)
    assert nothing[:4] == (0.0, 0.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="no window"):
        counter.energy(7.0, 6.0)
    with pytest.raises(ValueError, match="no window"):
        counter.energy(math.nan, 6.0)
    with pytest.raises(ValueError, match="order"):
        unwrap_counter(series([0.0, 2.0, 1.0], [0.0, 1.0, 2.0]))
    for empty in (series([], []), series([1.0, 2.0], [math.nan, math.nan])):
        found = energy(empty, 0.0, 1.0)
        assert math.isnan(found.value)
        assert found.reasons == ("no-readings",)
    assert math.isnan(energy(series([1.0], [5.0]), 0.0, 2.0).value)
    assert math.isnan(energy(series([1.0, 2.0], [5.0, 6.0]), 1.2, 1.8).value)


def test_one_window_looks_at_its_own_readings_only(monkeypatch):
    rng = np.random.default_rng(14)
    t_s = np.cumsum(rng.uniform(0.009, 0.011, 200_000))
    long = Series(t_s, np.floor(constant(np.floor(t_s / 0.1) * 0.1) * 1e3) / 1e3, np.zeros(200_000))
    seen = []
    real = counters.unwrap_counter
    monkeypatch.setattr(
        counters,
        "unwrap_counter",
        lambda near, *args, **more: seen.append(len(near.t_s)) or real(near, *args, **more),
    )
    found = energy(long, 1000.0, 1001.0)
    assert seen[0] < 1500
    assert found[:3] == pytest.approx(real(long).energy(1000.0, 1001.0)[:3], rel=1e-6)
    assert found.low <= 431.0 <= found.high


def stall(t_s, high_w=600.0, low_w=120.0, begin_s=7.0, end_s=8.0):
    """Joules of training that stands still from `begin_s` to `end_s`."""
    return high_w * t_s - (high_w - low_w) * np.clip(t_s - begin_s, 0.0, end_s - begin_s)


def late_by(lag_s, joules, tick_s, phase_s=0.007):
    at = phase_s + tick_s * np.arange(round(14.0 / tick_s))
    t_s = np.arange(2.0, 13.0, 0.0101)
    return series(t_s, joules(at - lag_s)[np.searchsorted(at, t_s, side="right") - 1])


@pytest.mark.parametrize("tick_s", [0.02, 0.1])
@pytest.mark.parametrize("lag_s", [0.0, 0.03, 0.06, 0.1])
def test_a_late_counter_moves_a_window_and_its_interval_holds_every_lag(tick_s, lag_s):
    """In closed form: a save of 1 s at 120 W in training at 600 W comes out lag*(600 - 120) too
    dear."""
    meter = late_by(lag_s, stall, tick_s)
    plain, held = (unwrap_counter(meter, lag_s=most_s).energy(7.0, 8.0) for most_s in (0.0, 0.1))
    assert plain.value == held.value == pytest.approx(120.0 + 480.0 * lag_s, abs=3.0)
    assert held.low <= 120.0 <= held.high
    assert (plain.low <= 120.0 <= plain.high) == (lag_s == 0.0)
    assert held.high - held.low < 2.0 * 480.0 * 0.1


def test_constant_power_is_as_sure_however_late():
    def constant_w(t_s):
        return 431.0 * t_s

    for tick_s in (0.02, 0.1):
        meter = late_by(0.06, constant_w, tick_s)
        plain, held = (
            unwrap_counter(meter, lag_s=most_s).energy(7.0, 8.0) for most_s in (0.0, 0.1)
        )
        assert held.low <= 431.0 <= held.high
        assert held.high - held.low < plain.high - plain.low + 0.01 * 431.0


def test_no_edge_is_known_better_than_by_its_call():
    for took_s in (1e-4, 0.028):
        t_s = np.arange(2.0, 12.0, 0.0501)
        meter = Series(t_s, 300.0 * (t_s + took_s / 2.0), np.full(len(t_s), took_s))
        for tick_s in (None, 0.0, 1e-3):
            found = energy(meter, 6.0, 7.0, tick_s=tick_s)
            assert found.low <= 300.0 <= found.high
            assert found.high - found.low >= 2.0 * 300.0 * took_s * (1.0 - 1e-6)
    # a lattice of ticks is known far better than the one slow call at the window's begin tells
    t_s = np.arange(2.0, 12.0, 0.0101)
    took_s = np.where(np.abs(t_s - 6.01) < 0.01, 0.028, 1e-4)
    shown = 300.0 * 0.1 * np.floor((t_s + took_s / 2.0) / 0.1)
    found = energy(Series(t_s, shown, took_s), 6.02, 7.02)
    assert found.high - found.low >= 300.0 * 0.028


def test_power_that_goes_up_between_slow_polls_and_falls_at_the_edge():
    """420 W, then 620 W from 0.05 s before the save on: the last slow gaps do not show the 620 W,
    but what was seen earlier does."""

    knots_s = [0.0, 3.5, 4.7, 6.95, 7.0, 9.0]
    joules = np.concatenate(
        [[0.0], np.cumsum(np.diff(knots_s) * [420.0, 620.0, 420.0, 620.0, 120.0])]
    )
    t_s = np.concatenate([np.arange(1.0, 6.96, 0.1901), np.arange(7.03, 9.0, 0.019)])
    meter = series(t_s, np.interp(t_s, knots_s, joules))
    found = unwrap_counter(meter, tick_s=1e-3).energy(7.0, 8.0)
    assert found.low <= 120.0 <= found.high
