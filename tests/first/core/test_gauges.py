"""Joules from watts: against exact integrals, a plain loop, and sensors that average, look away or
fall silent."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_counters import constant, sine, square
from test_ticks import polls

from ckptcost.first.core.channels import Series, series
from ckptcost.first.core.gauges import carried_s, energy, spread


def sampled(
    joules, rng, every_s=0.02, until_s=25.0, since_s=3.0, renewed_s=None, over_s=0.0, seen_s=None
):
    """A sensor that is renewed so often with the mean over the last `over_s`, of which it looks at
    `seen_s`."""
    t_s, took_s = polls(rng, since_s, until_s, every_s)
    at = t_s + took_s * rng.uniform(0.0, 1.0, len(t_s))
    if renewed_s:
        ticks = rng.uniform(0.0, renewed_s) + renewed_s * np.arange(int(until_s / renewed_s) + 1)
        at = ticks[np.searchsorted(ticks, at, side="right") - 1]
    span_s = seen_s or over_s or 1e-6
    return Series(t_s, (joules(at) - joules(at - span_s)) / span_s, took_s)


def windows(joules, span_s, count=60, exactly=None, ask=None, **sensor):
    rows = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        begin_s = float(rng.integers(6, 9)) if exactly else rng.uniform(6.0, 9.0)
        end_s = begin_s + span_s
        found = energy(
            sampled(joules, rng, until_s=end_s + 3.0, **sensor), begin_s, end_s, **(ask or {})
        )
        exact = float(joules(end_s) - joules(begin_s))
        assert found.coverage == pytest.approx(1.0)
        rows.append(
            (
                abs(found.value / exact - 1.0),
                found.low <= exact * (1 + 1e-9) and exact <= found.high * (1 + 1e-9),
                (found.high - found.low) / exact,
            )
        )
    error, inside, width = np.array(rows).T
    return float(error.mean()), float(inside.mean()), float(width.mean())


@pytest.mark.parametrize("over_s", [None, 0.1, 1.0])
@pytest.mark.parametrize("every_s", [0.02, 0.1, 0.5])
def test_constant_power_is_exact_and_never_nothing(every_s, over_s):
    rng = np.random.default_rng(0)
    meter = sampled(constant, rng, every_s, over_s=over_s or 0.0)
    for begin_s, end_s in ((6.0, 9.0), (6.123, 6.124), (6.0, 6.5), (5.0, 20.0)):
        found = energy(meter, begin_s, end_s, averaging_s=over_s)
        assert found.value == pytest.approx(431.0 * (end_s - begin_s), rel=1e-9)
        assert found.high - found.low < 1e-6 * found.value
        assert (found.coverage, found.gaps, found.reasons) == (pytest.approx(1.0), (), ())


@pytest.mark.parametrize(
    ("sensor", "ask", "error", "width"),
    [
        ({"every_s": 0.02}, {}, 0.02, 0.06),
        ({"every_s": 0.1}, {}, 0.08, 0.3),
        ({"every_s": 0.02, "renewed_s": 0.1, "over_s": 0.1}, {"averaging_s": 0.1}, 0.03, 0.4),
        (
            {"every_s": 0.1, "renewed_s": 0.1, "over_s": 0.1},
            {"averaging_s": 0.1, "tick_s": 0.1},
            0.08,
            0.6,
        ),
        (
            {"every_s": 0.02, "renewed_s": 0.1, "seen_s": 0.025},
            {"averaging_s": 0.025, "looks": 0.25},
            0.06,
            0.9,
        ),
        ({"every_s": 0.02, "renewed_s": 0.1, "over_s": 1.0}, {"averaging_s": 1.0}, 0.25, 1.5),
    ],
)
def test_a_square_wave_through_every_kind_of_sensor(sensor, ask, error, width):
    off, inside, wide = windows(square, 1.0, ask=ask, **sensor)
    assert off < error
    assert inside >= 0.95
    assert wide < width
    off, inside, wide = windows(square, 6.0, ask=ask, **sensor)
    assert off < error / 4.0
    assert inside >= 0.95


@pytest.mark.parametrize("span_s", [1.0, 3.0])
def test_what_a_mean_carries_across_a_step_at_the_edge(span_s):
    _, inside, width = windows(
        square,
        span_s,
        exactly=True,
        ask={"averaging_s": 0.5},
        every_s=0.02,
        renewed_s=0.1,
        over_s=0.5,
    )
    assert inside >= 0.98
    assert width < 0.8 / span_s


def test_an_average_is_moved_back_by_half_of_its_time():
    off, inside, _ = windows(
        sine, 1.0, ask={"averaging_s": 0.5}, every_s=0.02, renewed_s=0.02, over_s=0.5
    )
    late, missed, _ = windows(sine, 1.0, every_s=0.02, renewed_s=0.02, over_s=0.5)
    assert off < 0.12
    assert late > 2.5 * off
    assert inside == 1.0
    assert missed < 0.5


def plain(t_s, power, begin_s, end_s, parts=20_000):
    """Midpoints of the line through the samples."""
    edges = np.linspace(begin_s, end_s, parts + 1)
    total = 0.0
    for middle in (edges[1:] + edges[:-1]) / 2.0:
        k = int(np.searchsorted(t_s, middle)) - 1
        share = (middle - t_s[k]) / (t_s[k + 1] - t_s[k])
        total += power[k] + share * (power[k + 1] - power[k])
    return total * (end_s - begin_s) / parts


def test_the_area_is_that_of_a_loop():
    rng = np.random.default_rng(1)
    t_s = np.cumsum(rng.uniform(0.05, 0.3, 60))
    power = rng.uniform(50.0, 700.0, 60)
    for begin_s, end_s in ((1.0, 7.0), (2.01, 2.02), (0.6, 5.5)):
        found = energy(series(t_s, power), begin_s, end_s)
        assert found.value == pytest.approx(plain(t_s, power, begin_s, end_s), rel=1e-4)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1e-3, 1.0), st.one_of(st.floats(0.0, 1000.0), st.just(math.nan))),
        min_size=1,
        max_size=50,
    ),
    st.floats(-0.2, 1.2),
    st.floats(-0.2, 1.2),
    st.sampled_from([None, 0.1, 1.0]),
    st.sampled_from([None, 0.25]),
)
def test_the_value_is_in_its_interval_and_covers_what_it_says(steps, first, second, over_s, looks):
    pause, power = (np.array(column) for column in zip(*steps, strict=True))
    t_s = np.cumsum(pause)
    begin_s, end_s = sorted(t_s[0] + np.array([first, second]) * (t_s[-1] - t_s[0]))
    found = energy(series(t_s, power), begin_s, end_s, averaging_s=over_s, looks=looks)
    if found.value != found.value:
        assert found.reasons
        return
    assert -1e-9 <= found.low <= found.value + 1e-9 <= found.high + 2e-9
    assert 0.0 < found.coverage <= 1.0 + 1e-9
    lost_s = sum(gap.end_s - gap.begin_s for gap in found.gaps)
    assert found.coverage * (end_s - begin_s) == pytest.approx(end_s - begin_s - lost_s, abs=1e-9)
    assert found.value <= np.nanmax(power) * (end_s - begin_s) * (1 + 1e-9) + 1e-9


def test_parts_sum_to_the_whole():
    meter = sampled(square, np.random.default_rng(2), 0.05)
    cuts = np.sort(np.random.default_rng(3).uniform(5.0, 15.0, 20))
    parts = [energy(meter, a, b) for a, b in itertools.pairwise(cuts)]
    whole = energy(meter, cuts[0], cuts[-1])
    assert sum(part.value for part in parts) == pytest.approx(whole.value, rel=1e-9)
    assert sum(part.low for part in parts) <= whole.value <= sum(part.high for part in parts)


@pytest.mark.parametrize(("shift_s", "factor"), [(1e5, 1.0), (-2.0, 1e-3), (0.0, 1e6)])
def test_shifting_time_and_scaling_watts(shift_s, factor):
    meter = sampled(square, np.random.default_rng(4), renewed_s=0.1, over_s=0.1)
    one = energy(meter, 6.3, 8.1, averaging_s=0.1)
    other = energy(
        Series(meter.t_s + shift_s, meter.value * factor, meter.took_s),
        6.3 + shift_s,
        8.1 + shift_s,
        averaging_s=0.1,
    )
    assert [part / factor for part in other[:3]] == pytest.approx(list(one[:3]), rel=1e-6)


def test_missing_samples_are_not_covered():
    t_s = np.arange(0.0, 20.0, 0.1)
    power = np.where((t_s > 7.95) & (t_s < 12.05), math.nan, 300.0)
    found = energy(series(t_s, power), 5.0, 15.0)
    (gap,) = found.gaps
    assert gap.reason == "missing-samples"
    assert (gap.begin_s, gap.end_s) == (pytest.approx(7.9), pytest.approx(12.1))
    assert found.coverage == pytest.approx(0.58)
    assert found.value == pytest.approx(5.8 * 300.0)
    assert found.reasons == ("missing-samples",)
    inside = energy(series(t_s, power), 9.0, 10.0)
    assert math.isnan(inside.value)
    assert inside.reasons == ("missing-samples",)


def test_nothing_is_made_up_outside_the_samples():
    meter = series(np.arange(5.0, 10.0, 0.1), np.full(50, 100.0))
    early, late, never = (
        energy(meter, 4.0, 6.0),
        energy(meter, 9.0, 11.0),
        energy(meter, 20.0, 21.0),
    )
    assert (early.reasons, early.value, early.coverage) == (
        ("before-first-sample",),
        pytest.approx(100.0),
        pytest.approx(0.5),
    )
    assert (late.reasons, late.value, late.coverage) == (
        ("after-last-sample",),
        pytest.approx(90.0),
        pytest.approx(0.45),
    )
    assert math.isnan(never.value)
    for empty in (series([], []), series([1.0], [math.nan])):
        assert energy(empty, 0.0, 1.0).reasons == ("no-samples",)
    assert energy(meter, 6.0, 6.0)[:4] == (0.0, 0.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="no window"):
        energy(meter, 7.0, 6.0)


def test_asking_twice_is_no_second_sample():
    meter = sampled(square, np.random.default_rng(8), 0.02, renewed_s=0.1)
    found = energy(meter, 6.2, 8.2)
    assert found.ticks == pytest.approx(20, abs=3)
    assert found.resolved_s == pytest.approx(0.1, rel=0.2)
    assert energy(meter, 6.2, 6.5).short
    assert energy(series(np.arange(0.0, 5.0, 0.1), np.full(50, 70.0)), 1.0, 3.0).ticks == 20


def test_a_sensor_that_looks_away_is_less_sure():
    meter = sampled(square, np.random.default_rng(5), 0.02, renewed_s=0.1, seen_s=0.025)
    always, seldom = (
        energy(meter, 6.2, 8.2, averaging_s=0.025, looks=looks) for looks in (None, 0.25)
    )
    assert always.value == seldom.value
    assert seldom.high - seldom.low > 1.2 * (always.high - always.low)
    coarse = energy(meter, 6.2, 8.2, averaging_s=0.025, resolution=1.0)
    assert coarse.high - coarse.low == pytest.approx(always.high - always.low + 2.0)


def test_noise_is_in_the_interval():
    inside = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        meter = series(np.arange(0.0, 14.0, 0.1), 300.0 + rng.normal(0.0, 10.0, 140))
        found = energy(meter, 6.05, 8.05)
        inside.append(found.low <= 600.0 <= found.high)
        assert found.high - found.low < 0.06 * 600.0
    assert np.mean(inside) >= 0.93
    few = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        found = energy(
            series(np.arange(0.0, 14.0, 0.1), 300.0 + rng.normal(0.0, 10.0, 140)), 6.05, 6.35
        )
        few.append(found.low <= 90.0 <= found.high)
    assert np.mean(few) >= 0.88  # three samples


def test_how_old_samples_are_is_in_the_interval():
    def ramp(t_s):
        return 20.0 * t_s * t_s

    t_s = np.arange(0.0, 20.0, 0.1)
    for old_s in (0.001, 0.099):  # it keeps step with the polls, so that all samples are as old
        found = energy(series(t_s, 40.0 * (t_s - old_s)), 6.0, 12.0, tick_s=0.1)
        assert found.low <= ramp(12.0) - ramp(6.0) <= found.high


def test_a_step_anywhere_between_two_samples():
    meter = series(np.arange(0.0, 12.0), np.where(np.arange(12) < 6, 600.0, 120.0))
    for begin_s, end_s in ((5.5, 8.0), (5.1, 8.0), (3.0, 5.5), (3.0, 5.9), (5.2, 5.7)):
        found = energy(meter, begin_s, end_s)
        for step_s in (5.001, 5.4, 5.999):
            exact = 600.0 * max(min(step_s, end_s) - begin_s, 0.0) + 120.0 * max(
                end_s - max(step_s, begin_s), 0.0
            )
            assert found.low <= exact <= found.high


def test_spread_is_numpys():
    rng = np.random.default_rng(6)
    t_s = np.arange(0.0, 60.0, 0.1)
    power = rng.normal(70.0, 3.0, 600)
    found = spread(series(t_s, power), 10.0, 50.0)
    part = power[100:501]
    assert found.samples == 401
    assert found.mean == pytest.approx(np.trapezoid(part, t_s[100:501]) / 40.0)
    assert found.deviation == pytest.approx(part.std(ddof=1))
    assert (found.median, found.p5, found.p95) == pytest.approx(
        tuple(np.percentile(part, [50, 5, 95]))
    )
    assert found.low < 70.0 < found.high
    assert found.high - found.low == pytest.approx(4.0 * 3.0 / 20.0, rel=0.25)


def test_samples_that_resemble_each_other_count_as_fewer():
    t_s = np.arange(0.0, 60.0, 0.02)
    rng = np.random.default_rng(7)
    held = np.repeat(rng.normal(70.0, 3.0, 600), 5)
    quick, slow = (
        spread(series(t_s, held), 10.0, 50.0),
        spread(series(t_s[::5], held[::5]), 10.0, 50.0),
    )
    assert quick.high - quick.low == pytest.approx(slow.high - slow.low, rel=0.5)
    assert quick.deviation == pytest.approx(slow.deviation, rel=0.05)
    one, none = spread(series([1.0], [70.0]), 0.0, 2.0), spread(series([1.0], [70.0]), 3.0, 4.0)
    assert (one.mean, one.samples) == (70.0, 1)
    assert math.isnan(one.deviation)
    assert math.isnan(none.mean)
    outlier = spread(series(t_s, np.where(np.arange(len(t_s)) == 1000, 5000.0, held)), 10.0, 50.0)
    assert outlier.median == pytest.approx(quick.median, abs=0.1)


@pytest.mark.parametrize("span_s", [0.1, 0.3, 0.5, 0.7, 1.0, 2.0])
def test_what_a_mean_carries_over_a_window_shorter_than_itself(span_s):
    """Against the mean itself, sampled finely: an exact dip of 480 W, in seconds of what the mean
    shows of it."""
    at = np.arange(-5.0, 5.0, 1e-3)
    dip = np.clip(at + span_s / 2.0, 0.0, span_s)
    shown = 480.0 * (np.interp(at + 0.5, at, dip) - np.interp(at - 0.5, at, dip))
    inside = np.abs(at) <= span_s / 2.0
    carried = 480.0 * span_s - float(shown[inside].sum()) * 1e-3
    assert carried == pytest.approx(carried_s(span_s, 1.0) * float(shown.max()), rel=0.02, abs=1.0)
