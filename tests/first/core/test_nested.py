"""Nested intervals: the first-order rule against its own waste, the exact search against every
neighbour and against brute force."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_scenarios import DAY, TWO_TIERS, TWO_TIERS_ASYNC, changed
from scipy.optimize import minimize

from ckptcost.first.core.nested import (
    fed_interval_s,
    first_order_levels,
    joint_interval_s,
    level_interval_s,
    level_waste,
    nest_intervals,
    nested_base_s,
)
from ckptcost.first.core.outcome import best_interval_s, cost_at, plan_of
from ckptcost.first.core.regret import OBJECTIVES

quick = settings(max_examples=60, deadline=None, derandomize=True)
stalls = st.floats(0.1, 100.0)
rates = st.floats(1e-8, 1e-4)
levels = st.lists(st.tuples(stalls, rates), min_size=1, max_size=4)
TIERS = {"sync": TWO_TIERS, "async": TWO_TIERS_ASYNC}


def waste(intervals, pairs):
    return sum(
        stall / at + rate * at / 2.0 for at, (stall, rate) in zip(intervals, pairs, strict=True)
    )


@quick
@given(stalls, rates)
def test_one_level_is_youngs_rule_and_its_waste(stall, rate):
    at = first_order_levels([stall], [rate])[0]
    assert at == level_interval_s(stall, rate) == pytest.approx(math.sqrt(2.0 * stall / rate))
    assert waste([at], [(stall, rate)]) == pytest.approx(level_waste(stall, rate, 0.0))
    assert level_waste(stall, rate, 300.0) - level_waste(stall, rate, 0.0) == pytest.approx(
        300.0 * rate, rel=1e-6
    )


@quick
@given(levels)
def test_the_rule_wastes_least_among_intervals_that_never_fall(pairs):
    """Against scipy: log T_l = log T_1 + a sum of steps that are not negative."""
    found = first_order_levels(*zip(*pairs, strict=True))
    assert all(a <= b for a, b in pairwise(found))

    def at(x):
        return np.exp(x[0] + np.concatenate([[0.0], np.cumsum(x[1:])]))

    start = [math.log(found[0]), *np.diff(np.log(found))]
    bounds = [(None, None), *[(0.0, None)] * (len(pairs) - 1)]
    best = minimize(lambda x: 1e3 * waste(at(x), pairs), start, bounds=bounds).fun / 1e3
    assert waste(found, pairs) <= best * (1.0 + 1e-6)


def test_a_level_is_not_faster_than_its_drain_nor_than_the_level_below():
    assert first_order_levels([2.0, 50.0], [1e-5, 1e-3], [0.0, 3000.0]) == pytest.approx(
        (math.sqrt(2 * 52 / 1.01e-3), 3000.0)
    )
    assert first_order_levels([2.0, 50.0], [1e-5, 1e-6], [700.0]) == pytest.approx(
        (700.0, 10_000.0)
    )
    assert (
        first_order_levels([2.0, 50.0, 1.0], [1e-5, 0.0, 1e-9])[1:]
        == (math.sqrt(2 * 51 / 1e-9),) * 2
    )
    assert first_order_levels([2.0, 50.0], [1e-5, 0.0])[1] == math.inf


@quick
@given(st.lists(st.floats(1.0, 1e5), min_size=1, max_size=4))
def test_multiples_are_whole_and_nest(intervals):
    base, multiples = nest_intervals(sorted(intervals))
    assert base == min(intervals)
    assert multiples[0] == 1.0
    for low, high in pairwise(multiples):
        assert high / low == int(high / low) >= 1


@quick
@given(st.floats(1.0, 60.0))
def test_the_nearer_multiple_by_waste(ratio):
    """Among whole n the one at which (n/r + r/n) is least: off by the factor n/r either way wastes
    the same."""
    chosen = nest_intervals([100.0, 100.0 * ratio]).multiples[1]
    assert (
        chosen / ratio + ratio / chosen <= min(n / ratio + ratio / n for n in range(1, 70)) + 1e-12
    )


def test_a_level_that_nobody_needs_is_never_saved_to():
    assert nest_intervals([600.0, math.inf]).multiples == (1.0, math.inf)
    assert nest_intervals([600.0, math.inf, math.inf]).multiples == (1.0, math.inf, math.inf)


@quick
@given(levels, st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_the_base_is_the_least_for_its_multiples(pairs, steps):
    multiples = np.cumprod([1.0, *steps])[: len(pairs)]
    base = nested_base_s(*zip(*pairs, strict=True), multiples)
    here = waste(base * multiples, pairs)
    for factor in (0.9, 0.99, 1.01, 1.1):
        assert here < waste(base * factor * multiples, pairs)


@quick
@given(levels)
def test_rounding_to_multiples_wastes_little(pairs):
    """Brute force over nested multiples: what the rule picks wastes at most a few per cent more
    than the best of them."""
    found = first_order_levels(*zip(*pairs, strict=True))
    picked = nest_intervals(found).multiples
    mine = waste(nested_base_s(*zip(*pairs, strict=True), picked) * np.array(picked), pairs)
    assert (
        mine <= waste(found, pairs) * 1.13
    )  # every step off by sqrt(2) at most costs (sqrt(2)+1/sqrt(2))/2 = 1.06; two of them 1.125
    if len(pairs) == 2 and picked[1] < 40:
        brute = min(
            waste(nested_base_s(*zip(*pairs, strict=True), (1.0, n)) * np.array([1.0, n]), pairs)
            for n in range(1, 80)
        )
        assert brute <= mine <= brute * 1.02


@pytest.mark.parametrize("mode", TIERS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_neighbour_of_the_pair_is_better(mode, objective):
    s = TIERS[mode]
    plan = plan_of(s)
    best = joint_interval_s(s, plan, objective)

    def cost(interval, every):
        return float(cost_at(changed(s, policy__second_every=every), plan, objective, interval))

    here = cost(best.interval_s, best.second_every)
    assert here == pytest.approx(best.cost, rel=1e-9)
    for factor, step in product((0.99, 1.0, 1.01), (-1, 0, 1)):
        if best.second_every + step >= 1 and (factor, step) != (1.0, 0):
            assert here <= cost(best.interval_s * factor, best.second_every + step)
    assert not best.at_end


CASES = {
    "as it is": {},
    "nodes are seldom lost": {"failures__node_loss_fraction": 0.02},
    "nodes are always lost": {"failures__node_loss_fraction": 1.0},
    "a slow second tier": {
        "second_tier__write_bytes_per_s": 1e9,
        "failures__node_loss_fraction": 0.05,
    },
    "a dear second tier": {
        "second_tier__write_j_per_byte": 1e-4,
        "second_tier__usd_per_request": 1e-2,
    },
    "a third of the failures": {"failures__failures_per_node_s": 1e-8},
}


@pytest.mark.parametrize("mode", TIERS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("objective", ["time", "energy", "usd"])
def test_brute_force_over_n(mode, case, objective):
    """Every n up to 400, each at its own best interval."""
    s = TIERS[mode]
    for path, value in CASES[case].items():
        s = changed(s, **{path: value})
    plan = plan_of(s)
    best = joint_interval_s(s, plan, objective)
    every = np.arange(1.0, 401.0)
    wide = changed(s, policy__second_every=every)
    interval = fed_interval_s(s, plan, best_interval_s(wide, plan, objective), every)
    costs = np.asarray(cost_at(wide, plan, objective, interval))
    costs = np.where((interval * every > s.work_s) & (every > 1), np.inf, costs)
    assert best.cost <= costs.min() * (1.0 + 1e-12)
    if best.second_every <= 400:
        assert best.second_every == every[np.argmin(costs)]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_the_rule_is_near_the_exact_pair_when_failures_are_rare(share):
    """A thousand times rarer than in the sample: what the rounded rule adds to the overhead is a
    few per cent."""
    s = changed(
        TWO_TIERS,
        failures__failures_per_node_s=1e-11,
        failures__failures_per_s=0.0,
        failures__node_loss_fraction=share,
        work_s=3000 * DAY,
    )
    plan = plan_of(s)
    pair = (
        [float(plan.saved.stall_s), float(plan.second.stall_s)],
        [float(plan.failures_per_s - plan.lost_per_s), float(plan.lost_per_s)],
    )
    multiples = nest_intervals(first_order_levels(*pair)).multiples
    base = nested_base_s(*pair, multiples)
    exact = joint_interval_s(s, plan, "time")
    mine = (
        float(cost_at(changed(s, policy__second_every=multiples[1]), plan, "time", base)) - s.work_s
    )
    assert 0.0 <= mine - (exact.cost - s.work_s) <= 0.02 * (exact.cost - s.work_s)
    assert abs(multiples[1] - exact.second_every) <= 1 + 0.2 * exact.second_every


def test_without_failures_that_need_it_the_second_tier_is_put_off_to_the_end():
    s = changed(TWO_TIERS, failures__node_loss_fraction=0.0)
    assert joint_interval_s(s, plan_of(s), "time").at_end


def test_the_second_tier_is_fed_no_faster_than_it_drains():
    """Several saves in flight hide a slow drain from the rhythm; the pair still gives the second
    tier its time."""
    s = changed(TWO_TIERS_ASYNC, policy__in_flight=8.0, second_tier__write_bytes_per_s=0.5e9)
    plan = plan_of(s)
    best = joint_interval_s(s, plan, "time")
    cycle = best.interval_s + plan.saved.stall_s + s.policy.slowdown_fraction * plan.saved.lag_s
    assert best.second_every * cycle >= plan.second.write_s * (1.0 - 1e-12)
    assert (
        fed_interval_s(replace(s, policy=replace(s.policy, mode="sync")), plan, 10.0, 1.0) == 10.0
    )


def test_the_least_interval_just_feeds_the_second_tier():
    """n cycles of interval, stall and drag last exactly one drain; an interval that is long enough
    stays as it is."""
    s = changed(
        TWO_TIERS_ASYNC,
        policy__in_flight=8.0,
        second_tier__write_bytes_per_s=0.5e9,
        policy__slowdown_fraction=0.02,
    )
    plan = plan_of(s)
    rest_s = float(plan.saved.stall_s + 0.02 * plan.saved.lag_s)
    for n in (1.0, 4.0, 16.0):
        least = float(fed_interval_s(s, plan, 1e-3, n))
        assert n * (least + rest_s) == pytest.approx(float(plan.second.write_s))
        assert fed_interval_s(s, plan, least + 1.0, n) == least + 1.0


def test_a_run_too_short_for_a_save_still_has_a_pair():
    """Where even every interval's best is longer than the run, saving to both tiers at once is
    compared all the same."""
    s = changed(
        TWO_TIERS, failures__failures_per_node_s=0.0, failures__failures_per_s=1e-13, work_s=3600.0
    )
    plan = plan_of(s)
    best = joint_interval_s(s, plan, "time")
    assert (best.second_every, best.at_end) == (1.0, True)
    assert best.interval_s > 3600.0
    assert best.cost == pytest.approx(
        float(cost_at(changed(s, policy__second_every=1.0), plan, "time", best.interval_s))
    )
