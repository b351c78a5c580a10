"""What a load that is switched tells of a counter, against a counter whose ticks, jitter and lag
are known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ckptcost.first.core.channels import Series, series
from ckptcost.first.core.load_step import (
    FEW_STEPS,
    FEW_TICKS,
    NO_STEP,
    TOO_LATE,
    UNKNOWN,
    LoadStep,
    timing_of_counter,
    timing_of_gauge,
    watts_of,
)

HIGH_W, LOW_W = 600.0, 120.0


class Bench:
    """A load that changes each `phase_s`, low first, its exact joules, and instants at which
    somebody polls, off the beat."""

    def __init__(self, seed, phase_s=2.0, phases=12, poll_s=0.005, call_s=2e-4, noise=0.0):
        self.rng = np.random.default_rng(seed)
        # not in step with any tick: a meter that is renewed with the load would be late by the same
        # part of a tick each time
        lengths_s = phase_s * (1.0 + 0.2 * ((np.arange(phases) * 0.618034) % 1.0 - 0.5))
        edges_s = np.round(np.cumsum(lengths_s), 2)
        self.end_s = float(edges_s[-1])
        self.steps = [LoadStep(at_s, n % 2 == 0) for n, at_s in enumerate(edges_s[:-1].tolist())]
        knots = np.arange(-2_000, round(self.end_s / 0.01) + 500) * 0.01
        is_high = np.searchsorted(edges_s[:-1], knots + 1e-6, side="right") % 2 == 1
        watts = np.where(is_high, HIGH_W, LOW_W)
        watts = watts * (1.0 + noise * self.rng.standard_normal(len(watts)))
        self._knots, self._joules = knots, np.concatenate([[0.0], np.cumsum(watts[:-1] * 0.01)])
        count = round(self.end_s / poll_s)
        self.t_s = np.cumsum(poll_s * self.rng.uniform(0.6, 1.4, count))
        self.t_s = self.t_s[self.t_s < self.end_s - 0.01]
        count = len(self.t_s)
        self.took_s = call_s * self.rng.uniform(0.5, 1.5, count)
        self.sampled_s = self.t_s + self.took_s * self.rng.uniform(0.0, 1.0, count)

    def joules(self, t_s):
        return np.interp(t_s, self._knots, self._joules)

    def ticks(self, tick_s, jitter_s=0.0):
        at_s = np.arange(-10.0, self.end_s + 5.0, tick_s) + self.rng.uniform(0.0, tick_s)
        return np.sort(at_s + jitter_s * self.rng.uniform(-0.5, 0.5, len(at_s)))

    def counter(self, tick_s, lag_s, jitter_s=0.0):
        at_s = self.ticks(tick_s, jitter_s)
        shown = np.floor(self.joules(at_s - lag_s) * 1e3) / 1e3
        return self._polled(at_s, shown)

    def gauge(self, tick_s, lag_s, over_s):
        at_s = self.ticks(tick_s)
        seen_s = at_s - lag_s
        return self._polled(
            at_s, np.round((self.joules(seen_s) - self.joules(seen_s - over_s)) / over_s, 3)
        )

    def _polled(self, at_s, shown):
        last = np.searchsorted(at_s, self.sampled_s, side="right") - 1
        return Series(self.t_s, shown[last], self.took_s)


def holds(found, truth):
    """An end that is not known excludes nothing; a range without both says nothing."""
    return (
        found != UNKNOWN
        and (found.low is None or found.low - 1e-9 <= truth)
        and (found.high is None or truth <= found.high + 1e-9)
    )


# ticks, seeds, phases, and by how much a lag may be off at most
SENSORS = [(0.02, 10, 2.0, 12, 0.001), (0.1, 24, 2.0, 12, 0.002), (1.0, 24, 5.0, 7, 0.006)]


def test_the_ranges_do_not_hold_everything():
    """They are as narrow as polls allow: a millisecond of lag more or less is told apart."""
    bench = Bench(1)
    found = timing_of_counter(bench.counter(0.1, 0.06), bench.steps)
    assert not holds(found.lag, 0.059)
    assert not holds(found.lag, 0.061)
    assert not holds(found.tick, 0.1001)
    assert not holds(found.high_w, 603.0)


@pytest.mark.parametrize("lag_s", [0.0, 0.06])
def test_with_power_that_scatters_and_slow_calls_and_late_polls(lag_s):
    held = 0
    for seed in range(20):
        bench = Bench([seed, 7], poll_s=0.012, call_s=0.004, noise=0.1)
        late = bench.rng.random(len(bench.t_s)) < 0.02
        kept = ~(late | np.roll(late, 1) | np.roll(late, 2))  # polls that never came
        seen = Series(*(part[kept] for part in bench.counter(0.1, lag_s, 0.01)))
        found = timing_of_counter(seen, bench.steps)
        held += holds(found.lag, lag_s)
        assert found.lag.value == pytest.approx(lag_s, abs=0.015)
    assert held >= 18


def test_a_step_that_is_known_loosely_widens_the_lag_by_as_much():
    bench = Bench(3)
    seen = bench.counter(0.1, 0.06)
    sharp = timing_of_counter(seen, bench.steps).lag
    loose = timing_of_counter(seen, [s._replace(loose_s=0.004) for s in bench.steps]).lag
    assert loose.value == sharp.value
    assert loose.high - sharp.high == pytest.approx(0.004)
    assert sharp.low - loose.low == pytest.approx(0.004)


def test_power_that_rises_slowly_shows_at_rising_steps_alone():
    """A ramp of 0.2 s up is a lag of 0.1 s at rising steps, and none at falling ones."""
    bench = Bench(4)
    exact, up_s = bench.joules, [step.t_s for step in bench.steps if step.is_up]

    def ramped(t_s):
        lacks = sum(np.minimum(np.clip(t_s - s, 0, 0.2), 0.2) for s in up_s)
        rest = sum(np.clip(t_s - s, 0, 0.2) ** 2 / 0.4 for s in up_s)
        return exact(t_s) - (HIGH_W - LOW_W) * (lacks - rest)

    bench.joules = ramped
    found = timing_of_counter(bench.counter(0.02, 0.0), bench.steps)
    assert found.up_s == pytest.approx(0.1, abs=0.002)
    assert found.down_s == pytest.approx(0.0, abs=0.002)
    assert holds(found.lag, 0.0)
    assert holds(found.lag, 0.1)


def test_a_constant_load_tells_ticks_and_no_lag():
    bench = Bench(5)
    bench.joules = lambda t_s: 300.0 * (np.asarray(t_s) + 30.0)
    found = timing_of_counter(bench.counter(0.1, 0.06), bench.steps)
    assert (found.lag, found.why) == (UNKNOWN, NO_STEP)
    assert holds(found.tick, 0.1)
    assert found.low_w.value == pytest.approx(300.0, rel=0.01)


def test_noise_without_a_step_is_no_step():
    bench = Bench(6)
    bench.steps = [step._replace(is_up=not step.is_up) for step in bench.steps]
    found = timing_of_counter(bench.counter(0.1, 0.0), bench.steps)
    assert (found.lag, found.why) == (UNKNOWN, NO_STEP)


def test_too_few_steps_and_too_few_ticks():
    bench = Bench(7, phases=4)
    found = timing_of_counter(bench.counter(0.1, 0.03), bench.steps)
    assert (found.lag, found.why) == (UNKNOWN, FEW_STEPS)
    bench = Bench(8, phases=12)
    found = timing_of_counter(bench.counter(1.9, 0.03), bench.steps)
    assert (found.lag, found.why) == (UNKNOWN, FEW_TICKS)
    found = timing_of_counter(bench.counter(9.0, 0.03), bench.steps)
    assert (found.tick, found.jitter, found.lag) == (UNKNOWN, UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("lag_s", [0.4, 0.7, 1.0, 1.4])
def test_a_lag_beyond_what_a_phase_can_tell_is_not_told(lag_s):
    bench = Bench(9)
    found = timing_of_counter(bench.counter(0.1, lag_s), bench.steps)
    assert found.lag == UNKNOWN
    assert found.why in (TOO_LATE, NO_STEP)


@pytest.mark.parametrize(
    "seen", [series([], []), series([0.0], [1.0]), series([0.0, 1.0, 2.0], [5.0, 5.0, 5.0])]
)
def test_nothing_is_told_of_nothing(seen):
    for steps in ([], [LoadStep(0.5, True)], [LoadStep(n * 0.2, n % 2 == 0) for n in range(6)]):
        for found in (timing_of_counter(seen, steps), timing_of_gauge(seen, steps)):
            assert (found.tick, found.jitter, found.lag) == (UNKNOWN, UNKNOWN, UNKNOWN)
            assert found.why


def test_a_counter_that_is_quicker_than_polls_has_an_upper_bound_of_its_tick():
    for lag_s in (0.0, 0.03):
        bench = Bench(10)
        found = timing_of_counter(bench.counter(0.001, lag_s), bench.steps)
        assert found.tick.value is None
        assert 0.004 < found.tick.high < 0.006
        assert holds(found.lag, lag_s)
        told = timing_of_counter(bench.counter(0.001, lag_s), bench.steps, tick_s=0.001)
        assert holds(told.lag, lag_s)
    assert told.lag.high - told.lag.low < found.lag.high - found.lag.low


def test_answers_that_are_missing_do_no_harm():
    bench = Bench(11)
    seen = bench.counter(0.1, 0.06)
    value = seen.value.copy()
    value[bench.rng.random(len(value)) < 0.1] = np.nan
    found = timing_of_counter(seen._replace(value=value), bench.steps)
    assert holds(found.lag, 0.06)
    assert holds(found.tick, 0.1)


@pytest.mark.parametrize("lag_s", [0.0, 0.05])
@pytest.mark.parametrize("over_s", [0.025, 0.1])
def test_watts_show_a_step_late_by_what_they_average_and_hold(lag_s, over_s):
    """Half of the time that they are a mean over, half of the time that they are held, and the
    lag."""
    held = 0
    for seed in range(20):
        bench = Bench([seed, 12])
        found = timing_of_gauge(bench.gauge(0.1, lag_s, over_s), bench.steps)
        held += holds(found.lag, lag_s + over_s / 2 + 0.05)
        assert holds(found.high_w, HIGH_W)
        assert holds(found.low_w, LOW_W)
    assert held >= 18


def test_counter_and_watts_of_one_run_can_be_compared():
    bench = Bench(13)
    counter = timing_of_counter(bench.counter(0.1, 0.06), bench.steps)
    watts = timing_of_gauge(bench.gauge(0.02, 0.0, 0.02), bench.steps)
    assert counter.lag.value - watts.lag.value == pytest.approx(0.06 - 0.02, abs=0.01)


def test_power_of_a_state():
    held = 0
    for seed in range(20):
        bench = Bench([seed, 14])
        edges = [0.0, *(step.t_s for step in bench.steps), bench.end_s]
        for number, (begin_s, end_s) in enumerate(pairwise(edges)):
            truth = HIGH_W if number % 2 else LOW_W
            span = (begin_s + 0.3, end_s - 0.05)
            for tick_s in (0.02, 0.1):
                found = watts_of(bench.counter(tick_s, 0.0, 0.01), *span, True)
                assert found.value == pytest.approx(truth, rel=0.01)
                held += holds(found, truth) and found.high - found.low < 0.05 * truth
            found = watts_of(bench.gauge(0.02, 0.0, 0.02), *span, False)
            assert found.value == pytest.approx(truth, rel=0.01)
    assert held >= 0.9 * 2 * 20 * 12


def test_power_of_nothing():
    bench = Bench(15)
    assert watts_of(bench.counter(0.1, 0.0), 500.0, 501.0, True) == UNKNOWN
    assert watts_of(series([], []), 0.0, 1.0, False) == UNKNOWN
