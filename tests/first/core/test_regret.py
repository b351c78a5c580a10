"""Regret and plateau: against closed forms, against the bill, and by their own laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_scenarios import BASE, SHAPES, changed

from ckptcost.first.core.optimum import golden_interval_s, regret
from ckptcost.first.core.outcome import best_interval_s, cost_at, outcome_at, plan_of
from ckptcost.first.core.regret import OBJECTIVES, WITHIN, cost_of, plateau_s

shapes = pytest.mark.parametrize("shape", SHAPES, ids=list(SHAPES))
quick = settings(max_examples=60, deadline=None, derandomize=True)


@quick
@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.floats(1e-4, 10.0))
def test_plateau_of_the_square_root_law_in_closed_form(stall, slope, within):
    """C/x + b*x is (1+w) times its least at best*((1+w) +- sqrt((1+w)^2 - 1)); the two multiply to
    best^2."""
    best = math.sqrt(stall / slope)
    ends = plateau_s(lambda x: stall / x + slope * x, best, within)
    reach = (1.0 + within) + math.sqrt((1.0 + within) ** 2 - 1.0)
    assert ends.high_s == pytest.approx(best * reach, rel=1e-6)
    assert ends.low_s == pytest.approx(best / reach, rel=1e-6)
    assert (ends.low_is_bound, ends.high_is_bound) == (False, False)


@shapes
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("within", [0.01, 0.1])
def test_the_cost_at_both_ends_is_the_least_and_the_share(shape, objective, within):
    s = SHAPES[shape]
    plan = plan_of(s)
    best = best_interval_s(s, plan, objective)
    ends = plateau_s(lambda x: cost_at(s, plan, objective, x), best, within, highest_s=s.work_s)
    assert ends.low_s < best < ends.high_s
    least = cost_at(s, plan, objective, best)
    for end in (ends.low_s, ends.high_s):
        assert cost_at(s, plan, objective, end) == pytest.approx((1.0 + within) * least, rel=1e-10)


def test_an_end_that_is_never_reached_is_a_bound():
    ends = plateau_s(
        lambda x: 1.0 + 1e-3 * math.log(x / 10.0) ** 2, 10.0, 0.01, lowest_s=5.0, highest_s=20.0
    )
    assert ends == (5.0, 20.0, True, True)
    one_side = plateau_s(lambda x: x / 2 + 50 / x, 10.0, 0.25, lowest_s=8.0)
    assert (one_side.low_s, one_side.low_is_bound, one_side.high_is_bound) == (8.0, True, False)


def test_without_an_optimum_there_is_no_plateau():
    for cost, best in (
        (lambda x: math.nan, 10.0),
        (lambda x: math.inf, 10.0),
        (lambda x: x, math.nan),
        (lambda x: x, math.inf),
    ):
        ends = plateau_s(cost, best)
        assert math.isnan(ends.low_s)
        assert math.isnan(ends.high_s)
    assert math.isnan(plateau_s(lambda x: x / 2 + 50 / x, 10.0, highest_s=9.0).low_s)


def test_past_what_can_be_computed_is_past_the_plateau():
    """A cost that overflows (inf) or cannot be computed (NaN) ends the plateau, and the root is
    still found."""
    for beyond in (math.inf, math.nan):
        ends = plateau_s(
            lambda x, beyond=beyond: x / 2 + 50 / x if x < 21.0 else beyond, 10.0, 0.25
        )
        assert ends.high_s == pytest.approx(20.0, rel=1e-9)


@shapes
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_regret_is_nothing_at_the_optimum_and_positive_elsewhere(shape, objective):
    s = SHAPES[shape]
    plan = plan_of(s)
    best = best_interval_s(s, plan, objective)
    least = cost_at(s, plan, objective, best)
    assert regret(least, least) == 0.0
    assert regret(cost_of(outcome_at(s, plan, best), objective), least) == 0.0
    for factor in (0.03, 0.3, 0.9, 0.99, 1.01, 1.1, 3.0, 30.0):
        assert regret(cost_at(s, plan, objective, best * factor), least) > 0.0, factor


@shapes
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_cost_is_what_decides_the_optimum(shape, objective):
    s = SHAPES[shape]
    plan = plan_of(s)
    for interval in (60.0, 600.0, 6000.0):
        assert cost_of(outcome_at(s, plan, interval), objective) == cost_at(
            s, plan, objective, interval
        )


@pytest.mark.parametrize("shape", ["sync", "async"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_search_of_the_bill_finds_the_closed_form(shape, objective):
    """Golden section on the run's cost: the least agrees to 1e-6 (the place of it only as far as
    the cost tells points apart)."""
    s = SHAPES[shape]
    plan = plan_of(s)
    best = best_interval_s(s, plan, objective)
    searched = golden_interval_s(lambda x: cost_at(s, plan, objective, x), best / 20.0, best * 20.0)
    assert searched == pytest.approx(best, rel=1e-6)


def test_unknown_is_not_nothing():
    for field, objective in (
        ("cluster__usd_per_gpu_s", "usd"),
        ("site__kgco2e_per_j", "carbon"),
        ("cluster__gpu_stall_w", "energy"),
    ):
        s = changed(**{field: math.nan})
        assert math.isnan(cost_of(outcome_at(s, plan_of(s), 600.0), objective))
    assert math.isnan(regret(math.nan, 1.0))


def test_carbon_without_an_embodied_figure_is_location_based():
    s = changed(BASE, cluster__embodied_kgco2e_per_gpu_s=math.nan)
    outcome = outcome_at(s, plan_of(s), 600.0)
    assert cost_of(outcome, "carbon") == outcome.run.total("location_kgco2e")


def test_dearer_saves_are_made_less_often():
    assert WITHIN == 0.01
    for objective, dearer in (
        ("time", {"tier__setup_s": 30.0}),
        ("energy", {"tier__write_j_per_byte": 1e-5}),
        ("usd", {"tier__usd_per_request": 1e-2}),
    ):
        s = changed(**dearer)
        assert best_interval_s(s, plan_of(s), objective) > best_interval_s(
            BASE, plan_of(BASE), objective
        )
