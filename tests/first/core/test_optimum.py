"""The best interval: against scipy's Lambert W, against a golden-section search of the model
itself, and by its own laws."""

from __future__ import annotations

import math
from inspect import signature

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import lambertw

from ckptcost.first.core.failures import Recovery, segment
from ckptcost.first.core.optimum import (
    TIME,
    Rates,
    best_interval_s,
    daly_interval_s,
    golden_interval_s,
    goodput_light,
    one_plus_w0,
    recovery_cost,
    regret_light,
    young_interval_s,
)

NOTHING = Recovery(0.0, 0.0, 0.0, 0.0, 0.0)
quick = settings(max_examples=60, deadline=None, derandomize=True)
spans = st.floats(0.0, 1500.0)
prices = st.floats(0.05, 20.0)
recoveries = st.builds(Recovery, spans, spans, spans, spans, spans)
costs = st.builds(
    Rates, prices, prices, prices, prices, prices, prices, prices, st.floats(0.0, 2000.0)
)


def changed(rates, **new):
    return Rates(**({name: getattr(rates, name) for name in signature(Rates).parameters} | new))


def cost_per_work(tau, stall, recovery, rate, rates, drag=0.0, lag=0.0):
    """Expected cost of one second of kept work, from the states of a segment."""
    t = segment(tau + drag, stall, lag, recovery, rate)
    spent = (
        rates.work * t.work_s
        + rates.stall * t.stall_s
        + rates.detect * t.detect_s
        + rates.reschedule * t.reschedule_s
    )
    spent = (
        spent
        + rates.init * t.init_s
        + rates.load * t.load_s
        + rates.warmup * t.warmup_s
        + math.exp(rate * lag) * rates.per_save
    )
    return spent / tau


def searched(cost, guess):
    """Golden section on log(tau), scipy's."""
    found = minimize_scalar(
        lambda x: cost(math.exp(x)),
        bracket=(math.log(guess) - 1.0, math.log(guess), math.log(guess) + 1.0),
        method="golden",
        tol=1e-12,
    )
    return math.exp(found.x)


def test_lambert_against_scipy():
    eps = np.concatenate([np.logspace(-4, 0, 200), np.logspace(0, 9, 200)[1:]])
    with np.errstate(all="ignore"):
        expected = 1.0 + lambertw(-(1.0 - eps) / math.e).real
    # near the branch point scipy has only half the digits: sqrt(2*eps)*1e-16/eps
    np.testing.assert_allclose(one_plus_w0(eps), expected, rtol=1e-10)


@pytest.mark.parametrize("eps", [1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5])
def test_lambert_near_its_branch_point(eps):
    """The series of 1 + W0 in p = sqrt(2 eps): p - p^2/3 + 11 p^3/72 - 43 p^4/540."""
    p = math.sqrt(2 * eps)
    assert one_plus_w0(eps) == pytest.approx(
        p - p**2 / 3 + 11 * p**3 / 72 - 43 * p**4 / 540, rel=1e-10
    )


@quick
@given(st.floats(1e-3, 30.0))
def test_lambert_is_the_root(y):
    eps = 1.0 - (1.0 - y) * math.exp(y)
    assert one_plus_w0(eps) == pytest.approx(y, rel=1e-9)


@quick
@given(
    stall=st.floats(0.1, 900.0),
    recovery=recoveries,
    rate=st.floats(1e-7, 5e-4),
    rates=costs,
    drag=st.floats(0.0, 100.0),
    lag=spans,
)
def test_best_interval_is_the_least_of_the_model(stall, recovery, rate, rates, drag, lag):
    best = best_interval_s(stall, recovery, rate, rates, drag)

    def cost(tau):
        return cost_per_work(tau, stall, recovery, rate, rates, drag, lag)

    assume(rate * best < 30)
    least = searched(cost, best)
    # the golden section finds the least value to 1e-12, and the place to the square root of that:
    # compare the values tightly
    assert cost(best) == pytest.approx(cost(least), rel=1e-10)
    assert cost(best) <= cost(best * 1.02)
    assert cost(best) <= cost(best * 0.98)
    # and the place where the slope changes sign, from the model's own differences
    step = 1e-3 * best
    slope_here = (cost(best + step) - cost(best - step)) / (2 * step)
    bend = (cost(best + step) - 2 * cost(best) + cost(best - step)) / step**2
    assert abs(slope_here / bend) < 1e-3 * best


@quick
@given(
    stall=st.floats(0.1, 900.0),
    recovery=recoveries,
    rate=st.floats(1e-7, 5e-4),
    rates=costs,
    drag=st.floats(0.0, 100.0),
)
def test_best_interval_is_where_the_exact_slope_vanishes(stall, recovery, rate, rates, drag):
    """d/dtau of cost/tau is zero to 1e-6 of tau; in 50 digits, so that nothing cancels."""
    from decimal import Decimal, localcontext

    best = best_interval_s(stall, recovery, rate, rates, drag)
    with localcontext() as context:
        context.prec = 50
        l, c = Decimal(rate), Decimal(stall)
        lr = l * Decimal(recovery.exposed_s)
        start_j = Decimal(rates.detect) * Decimal(recovery.detect_s) + Decimal(
            rates.reschedule
        ) * Decimal(recovery.reschedule_s)
        q, begins = lr.exp() * start_j, Decimal(0)
        for price, length in (
            (rates.init, recovery.init_s),
            (rates.load, recovery.load_s),
            (rates.warmup, recovery.warmup_s),
        ):
            ends = begins + l * Decimal(length)
            q += Decimal(price) * lr.exp() * ((-begins).exp() - (-ends).exp()) / l
            begins = ends

        def cost(tau):
            x = tau + Decimal(drag)
            work = Decimal(rates.work) * (l * c).exp() * ((l * x).exp() - 1) / l
            held = Decimal(rates.stall) * ((l * c).exp() - 1) / l
            return (work + held + q * ((l * (x + c)).exp() - 1) + Decimal(rates.per_save)) / tau

        here = Decimal(best)
        left, right = here * (1 - Decimal("1e-6")), here * (1 + Decimal("1e-6"))
        near = here * Decimal("1e-15")
        assert cost(left + near) < cost(left), "the least point is more than 1e-6 to the left"
        assert cost(right - near) < cost(right), "the least point is more than 1e-6 to the right"


@quick
@given(stall=st.floats(0.1, 900.0), recovery=recoveries, rate=st.floats(1e-8, 5e-4))
def test_time_optimum_does_not_know_the_recovery(stall, recovery, rate):
    bare = best_interval_s(stall, NOTHING, rate)
    assert best_interval_s(stall, recovery, rate) == pytest.approx(bare, rel=1e-9)
    with np.errstate(all="ignore"):
        expected = (1 + lambertw(-math.exp(-rate * stall - 1)).real) / rate
    if rate * stall > 1e-6:
        assert bare == pytest.approx(expected, rel=1e-8)


@quick
@given(
    stall=st.floats(0.1, 900.0),
    recovery=recoveries,
    rate=st.floats(1e-8, 5e-4),
    rates=costs,
    scale=st.floats(1e-6, 1e9),
)
def test_scaling_all_costs_changes_nothing(stall, recovery, rate, rates, scale):
    scaled = changed(
        rates, **{name: scale * getattr(rates, name) for name in signature(Rates).parameters}
    )
    assert best_interval_s(stall, recovery, rate, scaled) == pytest.approx(
        best_interval_s(stall, recovery, rate, rates), rel=1e-9
    )


@quick
@given(
    stall=st.floats(0.1, 900.0),
    recovery=recoveries,
    rate=st.floats(1e-8, 5e-4),
    rates=costs,
    more=st.floats(1.0, 1e5),
)
def test_a_dearer_save_is_made_less_often(stall, recovery, rate, rates, more):
    dearer = changed(rates, per_save=rates.per_save + more)
    assert best_interval_s(stall, recovery, rate, dearer) > best_interval_s(
        stall, recovery, rate, rates
    )
    assert best_interval_s(stall + more, recovery, rate) > best_interval_s(stall, recovery, rate)


@pytest.mark.parametrize("rate", [1e-7, 1e-9, 1e-11, 1e-14])
def test_young_limit(rate):
    """l -> 0: sqrt(2 M (c_c C + c_k)/c_w), off by M-vanishing C/3 only."""
    rates = Rates(3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 500.0)
    young = math.sqrt(2 / rate * (2 * 40 + 500) / 3)
    assert best_interval_s(
        40.0, Recovery(10.0, 10.0, 10.0, 10.0, 10.0), rate, rates
    ) == pytest.approx(young, rel=5 * math.sqrt(rate * 600))
    assert best_interval_s(40.0, NOTHING, rate) == pytest.approx(
        young_interval_s(40.0, 1 / rate), rel=2 * math.sqrt(rate * 40)
    )


@pytest.mark.parametrize(
    ("stall", "mtbf"), [(300.0, 86_400.0), (300.0, 21_600.0), (10.0, 1e6), (60.0, 3600.0)]
)
def test_daly_is_the_exact_interval_to_higher_order(stall, mtbf):
    exact = best_interval_s(stall, NOTHING, 1 / mtbf)
    assert daly_interval_s(stall, mtbf) == pytest.approx(exact, rel=2 * (stall / mtbf) ** 1.5)
    assert abs(daly_interval_s(stall, mtbf) - exact) < abs(young_interval_s(stall, mtbf) - exact)


def test_daly_written_out():
    """sqrt(2CM)[1 + (1/3)sqrt(C/2M) + (1/9)(C/2M)] - C, and M from C = 2M on."""
    stall, mtbf = 120.0, 5000.0
    part = stall / (2 * mtbf)
    assert daly_interval_s(stall, mtbf) == pytest.approx(
        math.sqrt(2 * stall * mtbf) * (1 + math.sqrt(part) / 3 + part / 9) - stall, rel=1e-14
    )
    assert daly_interval_s(10_000.0, 5000.0) == 5000.0
    assert daly_interval_s(20_000.0, 5000.0) == 5000.0


def test_no_failures_no_saves():
    assert best_interval_s(30.0, NOTHING, 0.0) == math.inf


@pytest.mark.parametrize("stall", [30.0, 400.0, 2000.0])
def test_no_failures_in_an_array(stall):
    """A sweep over failure rates may begin at zero, whatever the save takes."""
    found = best_interval_s(stall, Recovery(1.0, 1.0, 1.0, 1.0, 1.0), np.array([0.0, 1e-6]))
    assert found[0] == np.inf
    assert found[1] == pytest.approx(best_interval_s(stall, NOTHING, 1e-6), rel=1e-9)


def test_arrays_equal_scalars():
    stall = np.array([1.0, 30.0, 900.0, 30.0])
    rate = np.array([1e-9, 1e-6, 3e-4, 1e-4])
    load = np.array([5.0, 60.0, 600.0, 6000.0])
    rates = Rates(3.0, 2.0, 1.5, 1.0, 0.5, 0.25, 3.0, np.array([0.0, 10.0, 1e3, 1e5]))
    together = best_interval_s(stall, Recovery(1.0, 2.0, 3.0, load, 4.0), rate, rates, drag_s=7.0)
    for i in range(4):
        one = Rates(3.0, 2.0, 1.5, 1.0, 0.5, 0.25, 3.0, float(rates.per_save[i]))
        alone = best_interval_s(
            float(stall[i]),
            Recovery(1.0, 2.0, 3.0, float(load[i]), 4.0),
            float(rate[i]),
            one,
            drag_s=7.0,
        )
        assert together[i] == pytest.approx(alone, rel=1e-12)
        assert daly_interval_s(stall, 1 / rate)[i] == pytest.approx(
            daly_interval_s(float(stall[i]), 1 / float(rate[i])), rel=1e-12
        )


@quick
@given(recovery=recoveries, rate=st.floats(1e-8, 1e-3), rates=costs)
def test_recovery_cost_prices_the_states(recovery, rate, rates):
    """One recovery's cost is what `segment` spends in the recovery states, per interruption of
    training."""
    t = segment(100.0, 10.0, 0.0, recovery, rate)
    spent = (
        rates.detect * t.detect_s
        + rates.reschedule * t.reschedule_s
        + rates.init * t.init_s
        + rates.load * t.load_s
    )
    spent += rates.warmup * t.warmup_s
    assert recovery_cost(recovery, rates, rate) * math.expm1(rate * 110.0) == pytest.approx(
        spent, rel=1e-10, abs=1e-12
    )


def test_golden_section_finds_the_closed_form():
    recovery, rate = Recovery(60.0, 60.0, 60.0, 60.0, 60.0), 1 / 9000
    closed = best_interval_s(20.0, recovery, rate)
    found = golden_interval_s(lambda tau: cost_per_work(tau, 20.0, recovery, rate, TIME), 1.0, 1e5)
    assert found == pytest.approx(closed, rel=1e-6)
    side_by_side = golden_interval_s(
        lambda tau: cost_per_work(tau, np.array([20.0, 80.0]), recovery, rate, TIME),
        np.array([1.0, 1.0]),
        np.array([1e5, 1e5]),
    )
    assert side_by_side[0] == pytest.approx(closed, rel=1e-6)
    assert side_by_side[1] == pytest.approx(best_interval_s(80.0, recovery, rate), rel=1e-6)


GOODPUTS = [
    (0.905, 0.9, 2),
    (0.895, 0.9, 2),
    (0.9051, 0.9, 1),
    (0.92, 0.9, 1),
    (0.88, 0.9, 1),
    (0.9201, 0.9, 0),
    (-0.001, 0.0, 0),  # near, and yet no share of time
    (-0.667, 0.375, 0),
    (float("nan"), 0.9, 0),
    (float("-inf"), 0.0, 0),
    (0.0, 0.004, 2),
]
REGRETS = [
    (0.0, 2),
    (-1e-13, 2),
    (0.01, 2),
    (0.0101, 1),
    (0.05, 1),
    (0.0501, 0),
    (float("inf"), 0),
    (float("nan"), float("nan")),
]


@pytest.mark.parametrize(("first_order", "exact", "light"), GOODPUTS)
def test_the_light_of_a_goodput_is_its_distance_from_the_exact_one(first_order, exact, light):
    assert goodput_light(first_order, exact) == light


@pytest.mark.parametrize(("over", "light"), REGRETS)
def test_the_light_of_an_interval_is_what_it_costs_over_the_best(over, light):
    assert regret_light(over) == pytest.approx(light, nan_ok=True)


def test_the_lights_of_many_are_those_of_each():
    first_order, exact, light = (np.array(column) for column in zip(*GOODPUTS, strict=True))
    assert goodput_light(first_order, exact).tolist() == light.tolist()
    over, light = (np.array(column) for column in zip(*REGRETS, strict=True))
    np.testing.assert_array_equal(regret_light(over), light)


def test_where_nothing_costs_anything_no_interval_is_best():
    free = Rates(**dict.fromkeys(TIME._fields, 0.0))
    recovery = Recovery(10.0, 20.0, 30.0, 40.0, 50.0)
    assert math.isnan(best_interval_s(10.0, recovery, 1e-5, free))
    found = best_interval_s(10.0, recovery, np.array([1e-5, 1e-4]), free)
    assert np.isnan(found).all()
    assert best_interval_s(10.0, recovery, 0.0, free) == math.inf
