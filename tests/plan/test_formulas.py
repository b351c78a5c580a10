"""Closed forms against other ways to the same number: limits, quadrature, scipy, and by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import lambertw

sys.path.insert(0, str(Path(__file__).parent))

from plan_worlds import SECOND, at, best, one, outcome, world

from ckptcost.errors import InputError
from ckptcost.plan import failures as fl
from ckptcost.plan import physics as ph

BACK = {"detect": 40.0, "reschedule": 60.0, "init": 100.0, "load": 60.0, "warmup": 30.0}


def recovery(**changes: float) -> fl.Recovery:
    return fl.Recovery(**{k: np.array([v]) for k, v in (BACK | changes).items()})


def segment(work: float, stall: float, lag: float, mtbf: float, **changes: float) -> fl.States:
    args = (np.array([x]) for x in (work, stall, lag))
    return fl.segment(*args, recovery(**changes), np.array([1.0 / mtbf]))


# --- the renewal formula ------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [0.0, 90.0])
def test_states_sum_to_the_expected_time_of_a_segment(lag: float) -> None:
    """E = a * (1/l + D) * exp(l*R) * (exp(l*(tau+C)) - 1), METHOD section 4."""
    found, rate, down = segment(600.0, 60.0, lag, 5000.0), 1 / 5000.0, 100.0
    whole = (1 / rate + down) * np.exp(rate * 190.0) * np.expm1(rate * 660.0) * np.exp(rate * lag)
    assert one(found.total) == pytest.approx(whole, rel=1e-12)
    failures = np.exp(rate * lag) * np.expm1(rate * 660.0) * np.exp(rate * 190.0)
    assert one(found.failures) == pytest.approx(failures, rel=1e-12)


def test_two_tiers_of_which_none_is_lost_are_one_tier() -> None:
    args = [np.array([x]) for x in (600.0, 60.0, 0.0)]
    rate, zero, five = np.array([1 / 5000.0]), np.zeros(1), np.array([5.0])
    with np.errstate(divide="ignore"):
        both = fl.period(*args, recovery(), rate, five, zero, zero, recovery(load=9e3), zero)
    alone = fl.segment(*args, recovery(), rate)
    for name in ("work", "stall", "load", "failures", "total"):
        assert one(getattr(both, name)) == pytest.approx(one(getattr(alone, name)), rel=1e-12)


def test_loads_that_fail_stand_for_one_longer_load() -> None:
    """Chance to get through j+1 loads, over the geometric law of the tries."""
    rate, load, bad = 1 / 500.0, 70.0, 0.3
    through = sum((1 - bad) * bad**j * np.exp(-rate * load * (j + 1)) for j in range(200))
    assert np.exp(-rate * fl.loads(load, bad, rate)) == pytest.approx(through, rel=1e-12)
    assert fl.loads(load, bad, 0.0) == pytest.approx(load / (1 - bad))
    assert fl.loads(load, 0.0, rate) == load


def test_failures_that_take_more_than_they_leave_never_end() -> None:
    o = outcome(world({"failures.unusable": 0.85, "failures.mtbf": 700.0}))
    assert one(o.goodput) == 0
    assert np.isinf(one(o.wall))


# --- the best interval --------------------------------------------------------------------------


def test_one_plus_w0_is_lamberts() -> None:
    eps = np.geomspace(1e-14, 1.0, 60)
    exact = 1.0 + np.real(lambertw(-(1.0 - eps) / np.e))
    near = np.sqrt(2 * eps) * (1 - np.sqrt(2 * eps) / 3)  # where scipy has lost its digits
    assert fl.one_plus_w0(eps)[eps > 1e-4] == pytest.approx(exact[eps > 1e-4], rel=1e-10)
    assert fl.one_plus_w0(eps)[eps < 1e-8] == pytest.approx(near[eps < 1e-8], rel=1e-7)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("objective", ["time", "energy", "cost", "carbon"])
def test_best_interval_is_where_scipy_finds_the_least_cost(objective: str, mode: str) -> None:
    w = world({"policy.mode": mode, "policy.slowdown": 0.1, "tier.write_energy": 1e-7})
    found = minimize_scalar(
        lambda log: one(at(w, np.exp(log)).cost(objective)), bounds=(4.0, 9.5), method="bounded"
    )
    exact = one(best(w, objective))
    assert exact == pytest.approx(np.exp(found.x), rel=2e-3)
    assert one(at(w, exact).cost(objective)) <= found.fun * (1 + 1e-12)


def test_best_interval_for_time_depends_on_neither_recovery_nor_price() -> None:
    base = one(best(world({}), "time"))
    slow = {"failures.init": 900.0, "failures.detect": 500.0, "cluster.gpu_price": 1.0}
    assert one(best(world(slow), "time")) == pytest.approx(base, rel=1e-12)
    eps = -np.expm1(-60.0 / 5000.0)
    assert base == pytest.approx(5000.0 * (1 + np.real(lambertw(-(1 - eps) / np.e))), rel=1e-9)


def test_young_is_the_limit_of_short_saves_and_daly_ends_at_the_mtbf() -> None:
    """As published, D5 and D6: tests/cases."""
    tiny = one(best(world({"tier.write": 6e14, "cluster.gpu_d2h": np.inf}), "time"))
    assert tiny == pytest.approx(fl.young(np.array(1e-3), 1 / 5000.0), rel=1e-3)
    assert fl.daly(np.array(3e5), 1 / 86400.0) == 86400.0


RENT = {"tier.storage_price": 1e-9 / 3600, "policy.keep_last": 30.0}
SKIPS = RENT | {"policy.mode": "async", "policy.when_busy": "skip", "tier.write": 2e9}
"""the best is between one drain and two, where half of it asked for is the same"""
SEARCHED: dict[str, tuple[dict[str, Any], str]] = {
    "rent of many": (RENT, "cost"),
    "two tiers": (SECOND, "time"),
    "two tiers and rent": (SECOND | RENT, "cost"),
    "skips": (SKIPS | {"policy.snapshot": 15.0}, "cost"),
    "skips more": (SKIPS | {"policy.snapshot": 25.0}, "cost"),
    "skips most": (SKIPS | {"policy.snapshot": 35.0}, "cost"),
    "unusable": ({"failures.unusable": 0.2, "failures.silent": 0.1}, "time"),
    "silent": ({"failures.silent": 0.1, "failures.silent_back": 10}, "time"),
    "deletes": (
        {"policy.deleting": "serial", "policy.delete_time": 60.0, "policy.keep_last": 3.0},
        "time",
    ),
    "slow deletes kept for rent": (
        RENT | {"policy.deleting": "beside", "policy.delete_time": 900.0},
        "cost",
    ),
}


@pytest.mark.parametrize("case", SEARCHED)
def test_no_place_of_a_dense_scan_is_cheaper_than_the_best_interval(case: str) -> None:
    """Issue point 9: a search must not end in a second valley."""
    figures, objective = SEARCHED[case]
    w = world(figures)
    found = one(best(w, objective))
    dense = at(w, np.geomspace(2.0, 1.2e5, 8000)).cost(objective)
    assert one(at(w, found).cost(objective)) <= np.nanmin(dense) * (1 + 1e-6)


# --- rates --------------------------------------------------------------------------------------

OBJECT = {"tier.write": np.inf, "tier.read": np.inf, "tier.node_write": 2e9, "tier.node_read": 2e9}


@pytest.mark.parametrize(
    ("figures", "rate", "unknown"),
    [
        ({}, 1e10, False),
        (OBJECT, 16e9, True),  # eight nodes; one client measured
        (OBJECT | {"tier.clients": 8}, 16e9, False),
        (OBJECT | {"tier.clients": 2}, 16e9, True),
        (OBJECT | {"tier.clients": 2, "tier.scaling": 0.5}, 8e9, True),
        (OBJECT | {"tier.clients": 2, "tier.scaling": 0.0}, 4e9, False),
        (OBJECT | {"tier.clients": 2, "tier.boundary": "node"}, 16e9, False),
        (OBJECT | {"tier.clients": 2, "tier.write": 1e10}, 1e10, False),
        (OBJECT | {"tier.clients": 2, "cluster.node_nic": 0.6e9}, 4.8e9, True),
        (OBJECT | {"tier.clients": 2, "cluster.node_nic": 0.4e9}, 3.2e9, False),
        (OBJECT | {"tier.save_time": 50.0, "tier.timed_size": 6e11}, 12e9, False),
        ({"tier.share": 0.25}, 2.5e9, False),
        (OBJECT | {"tier.share": 0.25, "tier.clients": 8}, 4e9, False),
        (OBJECT | {"tier.share": 0.25, "tier.boundary": "node"}, 16e9, False),
    ],
)
def test_rate_and_whether_it_was_measured(
    figures: dict[str, Any], rate: float, unknown: bool
) -> None:
    w = world(figures)
    with np.errstate(all="ignore"):
        assert one(ph.rate(w, w.tier, "write")) == pytest.approx(rate, rel=1e-12)
        assert bool(one(ph.limit_unknown(w, w.tier))) is unknown


@pytest.mark.parametrize(("scaling", "rate"), [(1.0, 40e9), (0.5, 20e9), (0.0, 10e9)])
def test_rate_by_capacity_is_published_up_to_a_capacity(scaling: float, rate: float) -> None:
    sized = {"tier.write": np.inf, "tier.capacity": 4e14, "tier.write_per_capacity": 1e-4}
    w = world(sized | {"tier.known_capacity": 1e14, "tier.scaling": scaling})
    with np.errstate(all="ignore"):
        assert one(ph.rate(w, w.tier, "write")) == pytest.approx(rate)
        assert bool(one(ph.limit_unknown(w, w.tier))) is (scaling > 0)


def test_burst_then_sustained_rate() -> None:
    shared = world({"tier.burst_write": 4e10, "tier.burst_size": 2e11})
    inside = world(
        {"tier.boundary": "node", "tier.write": np.inf, "tier.node_write": 1e9}
        | {"tier.burst_write": 5e9, "tier.burst_size": 5e9}
    )
    with np.errstate(all="ignore"):
        assert one(ph.writing_time(shared, shared.tier, 6e11)) == pytest.approx(5 + 40)
        assert one(ph.writing_time(shared, shared.tier, 1e11)) == pytest.approx(2.5)
        assert one(ph.writing_time(inside, inside.tier, 6e11)) == pytest.approx(1 + 70)


# --- asynchronous saving ------------------------------------------------------------------------

ASYNC = {"policy.mode": "async"}


def test_training_is_slowed_by_the_saver_by_waiting_data_and_by_pinned_memory() -> None:
    slow = ASYNC | {"policy.slowdown": 0.5, "tier.starves": 0.2, "policy.pinned": 0.04}
    o = outcome(world(slow))
    assert one(o.rhythm.drag) == pytest.approx(0.6 * 60.0 + 600.0 * 0.04 / 0.96)
    saves, drag = one(o.saves), one(o.rhythm.drag)
    assert one(o.spent.slowed) == pytest.approx(saves * drag)
    assert one(outcome(world(slow | {"policy.mode": "sync"})).rhythm.drag) == 0


@pytest.mark.parametrize(
    ("figures", "interval"),
    [
        ({}, 60.0),
        ({"policy.slowdown": 0.25}, 45.0),
        ({"policy.pinned": 0.1}, 54.0),
        ({"policy.in_flight": 2}, 27.5),
        ({"policy.when_busy": "skip"}, 60.0),
        ({"policy.deleting": "serial", "policy.delete_time": 30.0, "policy.keep_last": 1.0}, 90.0),
    ],
)
def test_continuous_saving_begins_when_the_last_save_is_safe(
    figures: dict[str, Any], interval: float
) -> None:
    o = outcome(world(ASYNC, figures, {"policy.interval": 0.0}))
    assert one(o.interval) == pytest.approx(interval, rel=1e-3)
    assert one(o.rhythm.blocked) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("figures", [{}, ASYNC | {"policy.slowdown": 1.0}])
def test_continuous_saving_needs_a_drain_to_train_beside(figures: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="without training between them"):
        outcome(world({"policy.interval": 0.0}, figures))
    w = world(ASYNC, {"policy.interval": 0.0, "tier.write": [[1e10, 5e9]]})
    assert at(w, 0.0).interval.tolist() == [[60.0, 120.0]]  # in each world its own


def test_copies_in_host_memory() -> None:
    """A15: four processes of a node hold 78 GiB each, and 61 GiB in flight."""
    gib = 2**30
    w = world(
        ASYNC
        | {"checkpoint.size": 16 * 4 * 15.25 * gib, "cluster.gpus_per_node": 4}
        | {"policy.copies": 3.0, "cluster.node_ram_used": 4 * 78 * gib}
    )
    assert one(ph.host_demand(w) + w.cluster.node_ram_used) == pytest.approx(556 * gib, rel=1e-12)
    tight = {"cluster.staging_budget": 7.5e10}  # one copy of a node
    alone, more = (
        one(outcome(world(ASYNC, tight, {"policy.copies": n})).rhythm.stall) for n in (0.0, 1.0)
    )
    assert (alone, more) == (5.0, pytest.approx(5.0 + 30.0))


# --- deleting -----------------------------------------------------------------------------------


def test_deleting_waits_in_the_stall_or_in_the_lag_or_goes_on_beside() -> None:
    few = {"policy.keep_last": 3.0, "tier.delete_rate": 2e10}
    for figures, stall, lag in (
        (few, 60.0, 0.0),
        (few | {"policy.deleting": "serial"}, 60.0 + 30.0 * 0.985, 0.0),
        (few | ASYNC | {"policy.deleting": "serial"}, 5.0, 60.0 + 30.0 * 0.985),
        (few | {"policy.deleting": "serial", "policy.keep_last": np.inf}, 60.0, 0.0),
        (few | {"policy.deleting": "serial", "policy.delete_time": 10.0}, 60.0 + 9.85, 0.0),
    ):
        o = outcome(world(figures))
        assert one(o.rhythm.stall) == pytest.approx(stall)
        assert one(o.plan.first.lag) == pytest.approx(lag)


def test_checkpoints_pile_up_if_deleting_takes_longer_than_a_cycle() -> None:
    figures = {"policy.keep_last": 3.0, "policy.delete_time": 1320.0}
    usual, slow = (outcome(world({"policy.keep_last": 3.0} | each)) for each in ({}, figures))
    piled = one(slow.spent.held - usual.spent.held) / 6e11
    assert piled == pytest.approx((200 - 3) * 0.5 / 2)
