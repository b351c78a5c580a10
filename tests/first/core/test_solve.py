"""Backwards: the search against scipy, the published requirements, and the first-order formulas
against the model they come from."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ckptcost.first.core.failures import Recovery, goodput, segment
from ckptcost.first.core.money import breakeven_usd_per_s
from ckptcost.first.core.optimum import best_interval_s
from ckptcost.first.core.solve import (
    boundary,
    first_order_lost_s,
    first_order_mtbf_s,
    first_order_stall_s,
    first_order_window_s,
    payback_s,
    worth_usd_per_s,
)

quick = settings(max_examples=100, deadline=None)
MTBF_S = 11_135.0
REQUIRED = [
    (0.90, 600.0, 14.50, 11.84, 392e9),
    (0.95, 300.0, 3.27, 2.96, 1735e9),
    (0.975, 120.0, 1.17, 1.13, 4850e9),
]
"""goodput, recovery (which failures can hit), stall by the exact model, stall to first order, rate
for 5.68 TB"""


def best_goodput(stall_s: float, back_s: float, mtbf_s: float = MTBF_S) -> float:
    recovery = Recovery(0.0, 0.0, back_s, 0.0, 0.0)
    tau = best_interval_s(stall_s, recovery, 1 / mtbf_s)
    return goodput(tau, segment(tau, stall_s, 0.0, recovery, 1 / mtbf_s))


@pytest.mark.parametrize(("wanted", "back_s", "exact_s", "first_s", "rate"), REQUIRED)
def test_the_stall_a_goodput_allows(wanted, back_s, exact_s, first_s, rate):
    found = boundary(lambda stall_s: best_goodput(stall_s, back_s) - wanted, 1e-9, 1e9)
    assert found == pytest.approx(exact_s, abs=0.005)
    assert 5.68e12 / found == pytest.approx(rate, rel=1e-3)
    assert first_order_stall_s(wanted, back_s, MTBF_S) == pytest.approx(first_s, abs=0.005)


@quick
@given(wanted=st.floats(0.05, 0.999), back=st.floats(0.0, 5000.0), mtbf=st.floats(600.0, 1e6))
def test_the_search_agrees_with_brentq(wanted, back, mtbf):
    from scipy.optimize import brentq

    assume(best_goodput(1e-6, back, mtbf) > wanted)

    def gap(stall_s: float) -> float:
        return best_goodput(stall_s, back, mtbf) - wanted

    found = boundary(gap, 1e-6, 1e9)
    expected = math.exp(
        brentq(
            lambda x: gap(math.exp(x)),
            math.log(1e-6),
            math.log(1e9),
            xtol=1e-13,
            rtol=1e-14,
            maxiter=500,
        )
    )
    assert found == pytest.approx(expected, rel=1e-8)
    assert gap(found) >= 0


@quick
@given(root=st.floats(1e-8, 1e20), power=st.floats(0.05, 8.0))
def test_the_search_finds_any_power_from_either_side(root, power):
    def gap(x: float) -> float:
        return (x / root) ** power - 1.0 if power * math.log(x / root) < 600 else math.inf

    assert boundary(gap, 1e24, 1e-12) == pytest.approx(root, rel=1e-9)
    assert boundary(lambda x: -gap(x), 1e-12, 1e24) == pytest.approx(root, rel=1e-9)


def test_the_search_takes_few_steps():
    asked = []
    boundary(
        lambda stall_s: asked.append(stall_s) or best_goodput(stall_s, 600.0) - 0.9, 1e-9, 1e12
    )
    assert len(asked) < 60


def test_ends_of_the_search():
    assert boundary(lambda x: 1.0, 1.0, 5.0) == 5.0
    with pytest.raises(ValueError, match="good end"):
        boundary(lambda x: -1.0, 1.0, 5.0)
    # unknown and infinite gaps count as missed
    assert boundary(lambda x: 1.0 if x < 7 else math.nan, 1.0, 1e9) == pytest.approx(7.0)
    assert boundary(lambda x: 1.0 if x < 7 else -math.inf, 1.0, 1e9) == pytest.approx(7.0)


def first_order_best(stall_s: float, lost_s: float, mtbf_s: float) -> float:
    """1 - sqrt(2C/M) - L/M, the textbook goodput at its best interval."""
    return 1.0 - math.sqrt(2.0 * stall_s / mtbf_s) - lost_s / mtbf_s


@quick
@given(stall=st.floats(1e-3, 300.0), lost=st.floats(1.0, 2000.0), mtbf=st.floats(1e4, 1e7))
def test_first_order_turns_round_in_every_input(stall, lost, mtbf):
    wanted = first_order_best(stall, lost, mtbf)
    assume(0.01 < wanted < 1 - 1e-6)
    assert first_order_stall_s(wanted, lost, mtbf) == pytest.approx(
        stall, rel=1e-6, abs=1e-9 * mtbf
    )
    assert first_order_lost_s(wanted, stall, mtbf) == pytest.approx(lost, rel=1e-6, abs=1e-9 * mtbf)
    assert first_order_mtbf_s(wanted, stall, lost) == pytest.approx(mtbf, rel=1e-6)


@quick
@given(
    stall=st.floats(0.1, 300.0),
    lost=st.floats(0.0, 600.0),
    mtbf=st.floats(1e4, 1e7),
    share=st.floats(0.05, 0.95),
)
def test_first_order_window_ends_where_the_goodput_is_met(stall, lost, mtbf, share):
    best = first_order_best(stall, lost, mtbf)
    assume(best > 0.1)
    wanted = share * best
    for tau in first_order_window_s(wanted, stall, lost, mtbf):
        assert 1.0 - stall / tau - tau / (2 * mtbf) - lost / mtbf == pytest.approx(wanted, abs=1e-9)


def test_first_order_becomes_exact_as_failures_get_rare():
    off = []
    for mtbf_s in (1e5, 1e6, 1e7):
        wanted = first_order_best(30.0, 600.0, mtbf_s)
        exact = boundary(lambda c, w=wanted, m=mtbf_s: best_goodput(c, 600.0, m) - w, 1e-9, 1e9)
        off.append(abs(first_order_stall_s(wanted, 600.0, mtbf_s) / exact - 1))
    assert off[0] > off[1] > off[2]
    assert off[2] < 2e-3


def test_no_room_is_no_stall():
    assert first_order_stall_s(0.95, 600.0, MTBF_S) == 0.0
    assert first_order_lost_s(0.95, 600.0, MTBF_S) == 0.0


@pytest.mark.parametrize(
    ("slow", "fast", "usd_per_h"), [(100e9, 400e9, 1875), (400e9, 2000e9, 974)]
)
def test_break_even_of_a_faster_tier(slow, fast, usd_per_h):
    """16,384 GPUs at 2 USD/h, 5.68 TB, 540 s and the load to get back."""
    gpus, price, work_s = 16384.0, 2 / 3600, 1e6

    def run(rate: float) -> tuple[float, float]:
        recovery = Recovery(540.0, 0.0, 0.0, 5.68e12 / rate, 0.0)
        tau = best_interval_s(5.68e12 / rate, recovery, 1 / MTBF_S)
        share = goodput(tau, segment(tau, 5.68e12 / rate, 0.0, recovery, 1 / MTBF_S))
        return share, work_s / share

    (slow_share, slow_wall_s), (fast_share, fast_wall_s) = run(slow), run(fast)
    lost = [gpus * price * (wall_s - work_s) for wall_s in (slow_wall_s, fast_wall_s)]
    worth = worth_usd_per_s(lost[0], slow_wall_s, 0.0, lost[1], fast_wall_s)
    assert worth * 3600 == pytest.approx(usd_per_h, abs=0.6)
    for already in (0.0, 0.02, 3.0):
        from_bills = worth_usd_per_s(lost[0], slow_wall_s, already, lost[1], fast_wall_s)
        assert from_bills == pytest.approx(
            breakeven_usd_per_s(gpus, price, already, slow_share, fast_share), rel=1e-12
        )


def test_equal_runs_are_worth_the_same():
    assert worth_usd_per_s(500.0, 1e6, 0.25, 500.0, 1e6) == 0.25


def test_payback():
    assert payback_s(500_000.0, 0.5) == 1e6
    assert payback_s(500_000.0, 0.0) == math.inf
    assert payback_s(500_000.0, -2.0) == math.inf


def test_what_just_meets_it_at_the_bad_end_needs_no_search():
    asked: list[float] = []
    assert boundary(lambda x: asked.append(x) or 0.0, good=1.0, bad=100.0) == 100.0
    assert asked == [1.0, 100.0]
