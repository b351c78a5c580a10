"""Elasticities against closed forms; variance shares against planted ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ckptcost.first.core.draws import strata
from ckptcost.first.core.sensitivity import chord, derivative_at_0, elasticity, variance_shares

N = 4096


@pytest.mark.parametrize("power", [-2.0, -0.5, 0.0, 1.0 / 3.0, 1.0, 3.0])
@pytest.mark.parametrize("value", [1e-12, 0.3, 1.0, 5e9])
def test_a_power_law_has_its_power(power, value):
    slope = elasticity(lambda x: 7.0 * x**power, value)
    assert slope == pytest.approx((power, power, power), abs=1e-10)
    assert not slope.is_kink
    assert chord(lambda x: 7.0 * x**power, value, 1.02 * value) == pytest.approx(power, abs=1e-10)


CURVES = {
    "x exp(-x)": (lambda x: x * math.exp(-x), lambda x: 1.0 - x),
    "1 + x^2": (lambda x: 1.0 + x * x, lambda x: 2.0 * x * x / (1.0 + x * x)),
    "expm1": (math.expm1, lambda x: x * math.exp(x) / math.expm1(x)),
    "sqrt(x) + x": (
        lambda x: math.sqrt(x) + x,
        lambda x: (0.5 * math.sqrt(x) + x) / (math.sqrt(x) + x),
    ),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("value", [0.1, 1.0, 2.5])
@pytest.mark.parametrize(
    "limits",
    [(0.0, math.inf), (0.9999, 1e9), (0.0, 1.0001)],
    ids=["free", "at the least", "at the most"],
)
def test_against_the_analytic_derivative(name, value, limits):
    """Central, forward and backward: each to second order in the step."""
    curve, analytic = CURVES[name]
    least, most = (limit if limit in (0.0, math.inf) else limit * value for limit in limits)
    asked: list[float] = []
    slope = elasticity(lambda x: (asked.append(x), curve(x))[1], value, least, most)
    assert slope.elasticity == pytest.approx(analytic(value), abs=1e-5)
    assert least <= min(asked)
    assert max(asked) <= most


def test_a_kink_shows_both_its_sides():
    slope = elasticity(lambda x: min(3.0 * x, 12.0), 4.0)
    assert slope.is_kink
    assert (slope.below, slope.above) == pytest.approx((1.0, 0.0), abs=1e-9)
    assert not elasticity(lambda x: min(3.0 * x, 12.0), 3.9).is_kink


@pytest.mark.parametrize(
    "broken", [lambda x: math.nan, lambda x: math.inf, lambda x: 0.0, lambda x: -x]
)
def test_what_has_no_logarithm_has_no_elasticity(broken):
    assert math.isnan(elasticity(broken, 1.0).elasticity)
    assert math.isnan(chord(broken, 1.0, 2.0))


def test_the_slope_at_0_is_that_from_above():
    assert derivative_at_0(lambda x: 5.0 + 2.0 * x - 9.0 * x * x, 1e-3) == pytest.approx(
        2.0, abs=1e-9
    )
    assert derivative_at_0(lambda x: 1.0 + abs(x), 1e-3) == pytest.approx(1.0)


def shares_of(*weights_and_inputs, result):
    return variance_shares(np.array(weights_and_inputs), result)


@pytest.mark.parametrize(
    "weights", [(1.0, 1.0), (3.0, 1.0), (1.0, -2.0, 5.0), (0.1, 0.0, 7.0, 2.0)]
)
@pytest.mark.parametrize("samples", [1024, N])
def test_a_planted_linear_model(weights, samples):
    """Equal inputs of weight w: shares w^2 / sum of w^2, exactly but for rounding to six digits,
    and nothing left over."""
    inputs = np.array([strata(i, samples) for i in range(len(weights))])
    found = variance_shares(inputs, 40.0 + np.array(weights) @ inputs)
    planted = np.square(weights) / np.sum(np.square(weights))
    assert found.each == pytest.approx(planted, abs=1e-6)
    assert found.together == 0.0
    assert float(np.sum(found.each)) == pytest.approx(1.0, abs=1e-5)


def test_a_planted_additive_model_that_is_not_linear():
    """Var of exp(u) and of u^2 over [0, 1] are known; whatever the inputs' own scale, only their
    order matters."""
    u, v = strata(3, N), strata(4, N)
    result = 2.0 * np.exp(u) + 5.0 * v**2
    variances = 4.0 * ((math.e**2 - 1) / 2 - (math.e - 1) ** 2), 25.0 * (1 / 5 - 1 / 9)
    for inputs in ([u, v], [np.log(u), v**9]):
        found = variance_shares(np.array(inputs), result)
        assert found.each == pytest.approx(np.array(variances) / sum(variances), abs=2e-3)
        assert found.together < 1e-3


def test_what_only_both_together_explain():
    """u*v: 3/7 each and 1/7 together (Var = 1/9 - 1/16, first-order 1/48 each)."""
    found = variance_shares(np.array([strata(0, N), strata(1, N)]), strata(0, N) * strata(1, N))
    assert found.each == pytest.approx([3 / 7, 3 / 7], abs=0.02)
    assert found.together == pytest.approx(1 / 7, abs=0.02)


def test_an_input_without_effect_explains_nothing_but_noise():
    inputs = np.array([strata(i, N) for i in range(20)])
    found = variance_shares(inputs, inputs[0] * inputs[1] + 0.5 * inputs[2])
    assert float(np.max(found.each[3:])) < 0.005
    assert float(np.sum(found.each)) + found.together == pytest.approx(1.0, abs=1e-4)


def test_noise_is_not_explained():
    """80 coefficients fitted to 1,024 values of nothing would explain 8 % of it, were it not taken
    off again."""
    inputs = np.array([strata(i, 1024) for i in range(20)])
    found = variance_shares(inputs, strata(99, 1024))
    assert float(np.sum(found.each)) < 0.04
    assert found.together > 0.96


def test_no_spread_has_no_shares():
    inputs = np.array([strata(0, 256), strata(1, 256)])
    assert variance_shares(inputs, np.full(256, 3.3)) == (pytest.approx([0.0, 0.0]), 0.0)
    assert variance_shares(np.empty((0, 256)), strata(0)).each.size == 0
