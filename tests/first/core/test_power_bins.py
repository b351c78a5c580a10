"""Power over time: constant power is constant, a step is where it was, stretches add up, and the
ranges hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from test_counters import constant, metered, sine, square

from ckptcost.first.core import power_bins
from ckptcost.first.core.channels import Series, series
from ckptcost.first.core.counters import unwrap_counter

EDGES = np.arange(6.0, 24.0, 2.0)


def bins_of(counted, tick_s=0.1, edges=EDGES, lag_s=0.0, **known):
    counter = unwrap_counter(counted, tick_s=tick_s, most_per_s=20_000.0, **known)
    found = power_bins.pieces(counter, float(np.diff(edges).min()))
    return power_bins.watts(found, edges, lag_s=lag_s), counter, found


def mean_w(joules, edges=EDGES):
    return np.diff(joules(edges)) / np.diff(edges)


def polled(joules, tick_s, poll_s, jitter_s=0.0, until_s=60.0, seed=1, phase_s=0.037):
    """Renewed every tick, up to `jitter_s` later; asked without keeping step with it. The plain
    oracle of a stepwise counter."""
    rng = np.random.default_rng(seed)
    ticks_s = np.arange(phase_s, until_s + 2 * tick_s, tick_s)
    ticks_s = ticks_s + rng.uniform(0.0, jitter_s, len(ticks_s)) if jitter_s else ticks_s
    asked = np.cumsum(rng.uniform(0.8 * poll_s, 1.2 * poll_s, int(until_s / poll_s)))
    last = np.maximum(np.searchsorted(ticks_s, asked, side="right") - 1, 0)
    return Series(asked, joules(ticks_s[last]), np.full(len(asked), 1e-4))


@pytest.mark.parametrize(
    ("tick_s", "poll_s", "jitter_s", "within"),
    [
        (0.1, 0.02, 0.0, 0.002),
        (1.0, 0.2, 0.0, 0.01),
        (1.0, 0.7, 0.0, 0.6),
        (0.001, 0.2, 0.0, 0.002),
        (1.0, 0.2, 0.09, 0.1),
        (0.02, 0.011, 0.0, 0.01),
        (0.1, 0.05, 0.03, 0.02),
    ],
)
def test_constant_power_is_constant_within_its_range(tick_s, poll_s, jitter_s, within):
    edges = np.arange(5.0, 55.0, 2.0)
    for seed in range(10):
        counted = polled(constant, tick_s, poll_s, jitter_s, seed=seed)
        seen, *_ = bins_of(counted, tick_s, edges, lag_s=tick_s)
        assert np.isfinite(seen.watts).all()
        assert seen.watts == pytest.approx(431.0, rel=within)
        assert (seen.low <= 431.0).all()
        assert (seen.high >= 431.0).all()
        assert (seen.low <= seen.watts).all()
        assert (seen.watts <= seen.high).all()


def test_a_step_is_in_the_stretch_where_it_was():
    def stepped(t_s):
        return 100.0 * t_s + 500.0 * np.maximum(t_s - 14.0, 0.0)

    seen, *_ = bins_of(polled(stepped, 0.1, 0.02))
    wanted = mean_w(stepped)
    assert set(wanted.tolist()) == {100.0, 600.0}
    assert seen.watts == pytest.approx(wanted, abs=13.0)
    assert (seen.low <= wanted).all()
    assert (seen.high >= wanted).all()


def test_the_stretches_add_up_to_what_the_counter_counted():
    seen, counter, _ = bins_of(polled(sine, 0.1, 0.02))
    whole = counter.energy(EDGES[0], EDGES[-1])
    summed = float((seen.watts * np.diff(EDGES)).sum())
    assert whole.low <= summed <= whole.high
    assert summed == pytest.approx(whole.value, abs=2.0)


@pytest.mark.parametrize("joules", [square, sine, constant])
@pytest.mark.parametrize("width_s", [0.4, 1.3, 2.0])
@pytest.mark.parametrize("late_s", [0.0, 0.06])
def test_ranges_hold_the_truth_and_are_no_wider_than_they_must(joules, width_s, late_s):
    held = told = 0
    widths = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        counted = metered(joules, rng, jitter_s=0.005)
        counted = counted._replace(t_s=counted.t_s + late_s)
        edges = np.arange(7.0, 20.0, width_s)
        seen, *_ = bins_of(counted, 0.1, edges, lag_s=0.1)
        wanted = mean_w(joules, edges)
        held += int(((seen.low <= wanted + 1e-9) & (seen.high >= wanted - 1e-9)).sum())
        told += len(wanted)
        widths += ((seen.high - seen.low) * width_s).tolist()
    assert held >= 0.95 * told
    assert np.median(widths) < 600.0 * 0.2 + 30.0, "the power of about two ticks"


def test_a_reset_and_a_counter_that_stood_are_unknown_and_not_zero():
    counted = polled(constant, 0.1, 0.02, until_s=30.0)
    t_s, value = counted.t_s, counted.value.copy()
    value[t_s > 15.0] -= value[t_s > 15.0][0]
    seen, *_ = bins_of(counted._replace(value=value), edges=np.arange(6.0, 24.0, 1.0))
    told = seen.watts[np.isfinite(seen.watts)]
    assert told == pytest.approx(431.0, rel=0.02)
    stuck = counted.value.copy()
    still = (t_s > 12.0) & (t_s < 18.0)
    stuck[still] = stuck[still][0]
    stuck[t_s >= 18.0] -= stuck[t_s >= 18.0][0] - stuck[still][0]
    seen, *_ = bins_of(counted._replace(value=stuck), edges=np.arange(6.0, 24.0, 1.0))
    assert np.isnan(seen.watts[7:11]).all()
    assert seen.watts[:5] == pytest.approx(431.0, rel=0.02)


def test_nothing_is_told_before_the_first_tick_and_after_the_last():
    seen, *_ = bins_of(
        polled(constant, 0.1, 0.02, until_s=10.0), edges=np.array([4.0, 6.0, 9.0, 12.0, 14.0])
    )
    assert np.isfinite(seen.watts[:2]).all()
    assert np.isnan(seen.watts[2:]).all()
    empty = power_bins.watts([], np.array([0.0, 1.0]))
    assert np.isnan(empty.watts).all()


def test_ticks_that_are_known_badly_ask_for_longer_stretches():
    sharp = bins_of(polled(constant, 0.1, 0.02))[2]
    rough = bins_of(polled(constant, 1.0, 0.2, 0.09), 1.0)[2]
    quick = np.diff(power_bins.edges_of([sharp], 5.0, 55.0, 0.5))
    assert quick == pytest.approx(0.5)
    slow = np.diff(power_bins.edges_of([rough, sharp], 5.0, 55.0, 0.5))
    assert slow.min() >= 2.0
    assert slow.sum() == pytest.approx(50.0)
    assert power_bins.edges_of([], 5.0, 5.2, 0.5).tolist() == [5.0, 5.2]


def test_stretches_are_short_where_meters_are_asked_quickly():
    counted = polled(constant, 0.1, 0.02, until_s=40.0)
    seldom = (counted.t_s < 15.0) | (counted.t_s > 25.0)
    kept = ~seldom | (np.arange(len(counted.t_s)) % 40 == 0)
    _, _, found = bins_of(Series(*(part[kept] for part in counted)))
    edges = power_bins.edges_of([found], 5.0, 35.0, 0.5)
    within = (edges[:-1] > 15.5) & (edges[1:] < 24.5)
    assert np.diff(edges)[within] == pytest.approx(0.5)
    assert np.diff(edges)[~within].max() >= 1.5
    seen = power_bins.watts(found, edges)
    assert np.nanmax(np.abs(seen.watts - 431.0)) < 431.0 * 0.1


def test_a_pulse_within_one_tick_is_in_the_range():
    """A stall that is shorter than a tick: where in it the joules fell is not known."""

    def pulse(t_s):
        return 400.0 * t_s - 300.0 * np.clip(t_s - 14.2, 0.0, 0.4)

    edges = np.array([10.0, 12.0, 14.5, 17.0, 20.0])
    for phase_s in (0.037, 0.3, 0.6, 0.9):
        seen, *_ = bins_of(polled(pulse, 1.0, 0.05, phase_s=phase_s), 1.0, edges)
        wanted = mean_w(pulse, edges)
        assert (seen.low <= wanted + 1e-6).all()
        assert (seen.high >= wanted - 1e-6).all()


def test_a_gauge_says_the_mean_of_its_samples_and_how_far_it_may_be_off():
    t_s = np.arange(0.0, 20.0, 0.1)
    value = np.where(t_s < 10.0, 100.0, 300.0)
    seen = power_bins.gauge_bins(
        series(t_s.tolist(), value.tolist()), np.array([0.0, 5.0, 10.0, 15.0])
    )
    assert seen.watts.tolist() == pytest.approx([100.0, 100.0, 300.0], abs=5.0)
    assert seen.low[0] == seen.high[0] == 100.0
    carried = power_bins.gauge_bins(
        series(t_s.tolist(), value.tolist()), np.array([0.0, 5.0, 10.0, 15.0]), averaging_s=1.0
    )
    assert carried.high[1] >= 120.0
    nothing = power_bins.gauge_bins(series([], []), np.array([0.0, 1.0]))
    assert np.isnan(nothing.watts).all()


def test_a_counter_that_is_renewed_at_once_stays_level_where_polls_grow_rare():
    spacing_s = np.concatenate([np.full(100, 0.02), np.full(30, 1.0), np.full(100, 0.02)])
    t_s = np.cumsum(spacing_s)
    live = Series(t_s, constant(t_s), np.zeros(len(t_s)))
    found = power_bins.pieces(unwrap_counter(live, most_per_s=20_000.0), 0.2)
    seen = power_bins.watts(found, power_bins.edges_of([found], 0.1, 33.9, 0.2))
    assert seen.watts == pytest.approx(431.0, rel=0.03)
    assert (seen.low <= 431.0).all()
    assert (seen.high >= 431.0).all()
