"""The bill: lines sum to totals, ledgers stay apart, nothing unknown turns into zero, and the best
interval is the bill's own."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from event_walk import by_the_clock, drained
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_scenarios import ASYNC, BASE, DAY, HOUR, RAM, SHAPES, TWO_TIERS, changed

from ckptcost.first.core.bill import Bill, avoidable
from ckptcost.first.core.domain import UNKNOWN, UNLIMITED, Cluster, Site, Tier
from ckptcost.first.core.energy import job_w
from ckptcost.first.core.money import breakeven_usd_per_s, kept_saves
from ckptcost.first.core.outcome import classic_of, evaluate, failure_cost, outcome_at, plan_of
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.core.timing import nodes_of

quick = settings(max_examples=40, deadline=None, derandomize=True)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=list(SHAPES))
LEDGERS = ("marginal", "allocated")


def flat(value):
    return float(np.asarray(value).reshape(-1)[0])


@shapes
@pytest.mark.parametrize("quantity", FIELDS)
def test_lines_sum_to_totals(shape, quantity):
    outcome = evaluate(SHAPES[shape])
    for bill in (outcome.run, outcome.one_save):
        for ledger in LEDGERS:
            lines = [getattr(line, quantity) for line in bill.lines if line.ledger == ledger]
            causes = sum(
                bill.total(quantity, ledger, cause)
                for cause in ("save", "failure", "keep")
                if list(bill.of(ledger, cause))
            )
            known = [value for value in lines if value == value]
            if known:
                assert bill.total(quantity, ledger) == pytest.approx(math.fsum(known), rel=1e-12)
                assert causes == pytest.approx(math.fsum(known), rel=1e-12)
            else:
                assert math.isnan(bill.total(quantity, ledger))
        assert len({line.id for line in bill.lines}) == len(bill.lines)


@shapes
def test_ledgers_do_not_mix(shape):
    bill = evaluate(SHAPES[shape]).run
    allocated = [line.id for line in bill.of("allocated")]
    assert allocated == (["standing", "second_standing"] if "two" in shape else ["standing"])
    assert {line.id for line in bill.of("marginal")} | set(allocated) == {
        line.id for line in bill.lines
    }
    assert not {line.id for line in bill.of("marginal")} & set(allocated)
    idle = replace(
        SHAPES[shape],
        tier=replace(SHAPES[shape].tier, idle_w=7e6, capacity_bytes=3e15, usd_per_s=40.0),
    )
    for quantity in ("energy_j", "gpu_s", "location_kgco2e"):
        assert evaluate(idle).run.total(quantity) == pytest.approx(bill.total(quantity), rel=1e-12)


@shapes
def test_state_times_sum_to_wall_time(shape):
    s = SHAPES[shape]
    outcome = evaluate(s)
    t = outcome.spent
    away = (
        t.stall_s
        + t.slowed_s
        + t.redone_s
        + t.detect_s
        + t.reschedule_s
        + t.init_s
        + t.load_s
        + t.warmup_s
    )
    assert away + s.work_s == pytest.approx(outcome.wall_s, rel=1e-12)
    assert outcome.run.total("gpu_s") == pytest.approx(
        s.cluster.gpus * (outcome.wall_s - s.work_s), rel=1e-11
    )
    assert outcome.goodput == pytest.approx(s.work_s / outcome.wall_s, rel=1e-14)
    assert outcome.saves * outcome.interval_s == pytest.approx(s.work_s, rel=1e-12)
    # a failure that is paid for is a failure that happened
    assert outcome.failures == pytest.approx(t.detect_s / s.failures.detect_s, rel=1e-12)


def test_joules_by_hand():
    """Every marginal joule again, from the state times, the power of each state and one PUE."""
    s = changed(failures__failures_per_node_s=0.0, failures__failures_per_s=0.0)
    bill, saves = evaluate(s).run, 30 * DAY / 1800
    size = 70e9 * 14 + 1e6
    stall = 2.0 + 64 / 5000 + size / 40e9
    assert bill.line("gpu_wait").energy_j == pytest.approx(
        1.25 * saves * stall * 8192 * 320, rel=1e-12
    )
    assert bill.line("host_wait").energy_j == pytest.approx(
        1.25 * saves * stall * 1024 * 2200, rel=1e-12
    )
    assert bill.line("storage_write").energy_j == pytest.approx(
        1.25 * saves * size * 120e-9, rel=1e-12
    )
    assert bill.line("network").energy_j == pytest.approx(1.25 * saves * size * 8e-9, rel=1e-12)
    assert bill.line("gpu_wait").cost_usd == pytest.approx(
        saves * stall * 8192 * 2.5 / 3600, rel=1e-12
    )
    assert bill.line("requests").cost_usd == pytest.approx(saves * size / 64e6 * 5e-6, rel=1e-12)
    held = 5 - 5 * 4 / (2 * saves)
    wall = 30 * DAY + saves * stall
    assert bill.line("retention").cost_usd == pytest.approx(
        held * size / 1e9 * 0.02 * wall / (730 * 3600), rel=1e-12
    )
    assert bill.line("standing").energy_j == pytest.approx(
        1.25 * 40e3 * held * size / 2e15 * wall, rel=1e-12
    )
    assert bill.line("gpu_wait").location_kgco2e == pytest.approx(
        1.25 * saves * stall * 8192 * 320 / 3.6e6 * 0.384, rel=1e-12
    )
    assert bill.line("gpu_wait").market_kgco2e == pytest.approx(
        1.25 * saves * stall * 8192 * 320 / 3.6e6 * 0.2, rel=1e-12
    )
    assert bill.line("gpu_wait").embodied_kgco2e == pytest.approx(
        saves * stall * 8192 * 0.033 / 3600, rel=1e-12
    )
    for name in ("redone_work", "restart", "loading"):
        assert bill.line(name).energy_j == 0.0


def test_storage_joules_by_power():
    """Without joules per byte: what the tier draws above its rest, for as long as it writes; an
    unknown rest counts as none."""
    powered = changed(tier__write_j_per_byte=UNKNOWN, tier__active_w=300e3, tier__idle_w=40e3)
    outcome = evaluate(powered)
    writing = outcome.spent.saves * outcome.plan.saved.write_s
    assert outcome.run.line("storage_write").energy_j == pytest.approx(
        1.25 * writing * 260e3, rel=1e-12
    )
    restless = evaluate(changed(powered, tier__idle_w=UNKNOWN)).run
    assert restless.line("storage_write").energy_j == pytest.approx(
        1.25 * writing * 300e3, rel=1e-12
    )
    assert math.isnan(restless.line("standing").energy_j)
    assert job_w(1024.0, 500.0, 128.0, 2000.0) == 1024 * 500 + 128 * 2000


def test_failure_joules_by_state():
    """Detection and init hold the GPUs, rescheduling leaves them idle, warm-up and redone work run
    at training power."""
    outcome = evaluate(BASE)
    t, bill = outcome.spent, outcome.run
    held_w, idle_w, train_w = (
        8192 * 320 + 1024 * 2200,
        8192 * 90 + 1024 * 1800,
        8192 * 650 + 1024 * 2600,
    )
    restart = (t.detect_s + t.init_s) * held_w + t.reschedule_s * idle_w + t.warmup_s * train_w
    assert bill.line("restart").energy_j == pytest.approx(1.25 * restart, rel=1e-12)
    assert bill.line("loading").energy_j == pytest.approx(1.25 * t.load_s * held_w, rel=1e-12)
    assert bill.line("redone_work").energy_j == pytest.approx(
        1.25 * t.redone_s * train_w, rel=1e-12
    )


def test_energy_is_one_save_times_saves_without_failures():
    s = changed(failures__failures_per_node_s=0.0, failures__failures_per_s=0.0)
    for shape in (s, replace(s, policy=ASYNC.policy)):
        outcome = evaluate(shape)
        for quantity in ("energy_j", "gpu_s", "location_kgco2e", "embodied_kgco2e", "cost_usd"):
            assert outcome.one_save.total(quantity) * outcome.saves == pytest.approx(
                outcome.run.total(quantity), rel=1e-9
            )


@shapes
def test_pue_is_applied_once(shape):
    s = SHAPES[shape]
    once, twice = evaluate(s).run, evaluate(changed(s, site__pue=2 * s.site.pue)).run
    for ledger in LEDGERS:
        assert twice.total("energy_j", ledger) == pytest.approx(
            2 * once.total("energy_j", ledger), rel=1e-13, nan_ok=True
        )
        assert twice.total("location_kgco2e", ledger) == pytest.approx(
            2 * once.total("location_kgco2e", ledger), rel=1e-13, nan_ok=True
        )
    for old, new in zip(once.lines, twice.lines, strict=True):
        assert new.energy_j == pytest.approx(2 * old.energy_j, rel=1e-15, nan_ok=True), old.id
    assert twice.total("gpu_s") == once.total("gpu_s")
    assert twice.total("embodied_kgco2e") == once.total("embodied_kgco2e")


@shapes
def test_a_cloud_price_contains_the_electricity(shape):
    s = SHAPES[shape]
    with_tariff, free = evaluate(s).run, evaluate(changed(s, site__usd_per_j=0.0)).run
    for name in ("gpu_wait", "host_wait", "slowdown", "redone_work", "restart", "loading"):
        assert with_tariff.line(name).cost_usd == free.line(name).cost_usd, name
    assert with_tariff.line("host_wait").cost_usd == 0.0
    own = evaluate(changed(s, cluster__price_includes_electricity=False)).run
    for name in ("gpu_wait", "host_wait", "slowdown", "redone_work", "restart", "loading"):
        assert own.line(name).cost_usd - with_tariff.line(name).cost_usd == pytest.approx(
            own.line(name).energy_j * s.site.usd_per_j, rel=1e-6, abs=1e-6
        )


@pytest.mark.parametrize("boundary", ["drive", "node"])
def test_a_drive_inside_a_rented_node_is_in_its_price(boundary):
    """Its electricity comes out of the same socket as the node's, and the node's price contains
    that."""
    local = replace(RAM, boundary=boundary, write_j_per_byte=3e-9)
    bill = evaluate(replace(BASE, tier=local)).run
    assert bill.line("storage_write").energy_j > 0
    assert bill.line("storage_write").cost_usd == 0.0


def test_a_priced_tier_sells_its_electricity_with_it():
    priced = evaluate(BASE).run
    assert priced.line("storage_write").cost_usd == 0.0
    assert priced.line("network").cost_usd == 0.0
    own = evaluate(
        changed(tier__usd_per_byte_s=UNKNOWN, cluster__price_includes_electricity=False)
    ).run
    assert own.line("storage_write").cost_usd == pytest.approx(
        own.line("storage_write").energy_j * BASE.site.usd_per_j, rel=1e-12
    )


def test_nothing_unknown_becomes_zero():
    unpriced = evaluate(changed(ASYNC, cluster__usd_per_gpu_s=UNKNOWN)).run
    for name in ("gpu_wait", "slowdown", "redone_work", "restart", "loading"):
        assert math.isnan(unpriced.line(name).cost_usd)
    assert unpriced.unknown("cost_usd") == (
        "gpu_wait",
        "slowdown",
        "redone_work",
        "restart",
        "loading",
    )
    # what is left would rank the unpriced cluster as the cheapest
    assert math.isnan(unpriced.total("cost_usd"))

    unpowered = evaluate(changed(tier__write_j_per_byte=UNKNOWN, tier__active_w=UNKNOWN)).run
    assert unpowered.unknown("energy_j") == ("storage_write",)
    assert unpowered.unknown("location_kgco2e") == ("storage_write",)
    assert unpowered.total("energy_j") == pytest.approx(
        evaluate(BASE).run.total("energy_j") - evaluate(BASE).run.line("storage_write").energy_j
    )


@pytest.mark.parametrize("rates", [40e9, np.array([40e9, 20e9])], ids=["number", "array"])
def test_no_time_at_an_unknown_power_or_price_is_nothing(rates):
    """A blocking save drains nothing beside training: no watt and no price is missing for it."""
    s = changed(
        tier__write_bytes_per_s=rates,
        cluster__usd_per_gpu_s=UNKNOWN,
        cluster__gpu_train_w=UNKNOWN,
        failures__failures_per_node_s=0.0,
        failures__failures_per_s=0.0,
    )
    bill = evaluate(s).run
    for name in ("slowdown", "redone_work"):
        assert np.all(bill.line(name).energy_j == 0.0), name
        assert np.all(bill.line(name).cost_usd == 0.0), name
    assert np.all(np.isnan(bill.line("gpu_wait").cost_usd))


@pytest.mark.parametrize("price_includes_electricity", [True, False])
@pytest.mark.parametrize("pue", [1.25, np.array([1.25, 1.3])], ids=["number", "array"])
def test_a_run_that_never_finishes_costs_infinitely_much(pue, price_includes_electricity):
    """Infinite is an answer: it is neither unknown nor left out of a total."""
    s = changed(
        policy__every=30 * DAY,
        failures__failures_per_s=1e-3,
        failures__init_s=0.0,
        tier__usd_per_byte_s=UNKNOWN,
        tier__usd_per_s=1.0,
    )
    bill = evaluate(
        changed(s, site__pue=pue, cluster__price_includes_electricity=price_includes_electricity)
    ).run
    for name in ("redone_work", "restart", "loading"):
        assert np.all(np.isposinf(bill.line(name).cost_usd)), name
    assert bill.unknown("cost_usd") == ()
    for quantity in FIELDS:
        assert np.all(np.isposinf(bill.total(quantity))), quantity


@pytest.mark.parametrize("rates", [40e9, np.array([40e9, 20e9])], ids=["number", "array"])
@pytest.mark.parametrize(
    ("path", "quantity"),
    [("site__kgco2e_per_j", "location_kgco2e"), ("site__market_kgco2e_per_j", "market_kgco2e")],
)
def test_an_unknown_total_is_unknown(rates, path, quantity):
    bill = evaluate(changed(**{path: UNKNOWN, "tier__write_bytes_per_s": rates})).run
    assert np.all(np.isnan(bill.total(quantity)))
    assert bill.total("energy_j") is not None
    assert len(bill.unknown(quantity)) == len(list(bill.of("marginal")))


@quick
@given(
    rate=st.floats(1e9, 1e12),
    faster=st.floats(1.0, 50.0),
    interval=st.floats(60.0, 20_000.0),
    per_day=st.floats(0.0, 12.0),
    mode=st.sampled_from(["sync", "async"]),
    two=st.booleans(),
    slowdown=st.floats(0.0, 0.2),
    in_flight=st.integers(1, 4),
)
def test_a_faster_tier_never_costs_more_gpu_seconds(
    rate, faster, interval, per_day, mode, two, slowdown, in_flight
):
    s = changed(
        TWO_TIERS if two else BASE,
        policy__every=interval,
        policy__mode=mode,
        policy__slowdown_fraction=slowdown,
        policy__in_flight=float(in_flight),
        failures__failures_per_s=per_day / DAY,
    )

    def gpu_s(factor):
        tier = Tier(
            write_bytes_per_s=rate * factor,
            read_bytes_per_s=rate * factor,
            setup_s=1.0,
            write_j_per_byte=1e-9,
            survives="process",
        )
        return evaluate(replace(s, second_tier=tier) if two else replace(s, tier=tier)).run.total(
            "gpu_s"
        )

    assert gpu_s(faster) <= gpu_s(1.0) * (1 + 1e-12)


@quick
@given(
    interval=st.floats(60.0, 20_000.0),
    mode=st.sampled_from(["sync", "async"]),
    pipelined=st.booleans(),
)
def test_twice_the_saves_stall_twice_as_long(interval, mode, pipelined):
    s = changed(
        policy__mode=mode,
        policy__pipelined=pipelined,
        policy__in_flight=64.0,
        failures__failures_per_node_s=0.0,
        failures__failures_per_s=0.0,
    )
    seldom, often = (
        evaluate(changed(s, policy__every=interval)),
        evaluate(changed(s, policy__every=interval / 2)),
    )
    assert often.saves == pytest.approx(2 * seldom.saves, rel=1e-12)
    assert often.spent.stall_s == pytest.approx(2 * seldom.spent.stall_s, rel=1e-12)
    assert often.run.line("gpu_wait").energy_j == pytest.approx(
        2 * seldom.run.line("gpu_wait").energy_j, rel=1e-12
    )
    assert often.run.line("storage_write").energy_j == pytest.approx(
        2 * seldom.run.line("storage_write").energy_j, rel=1e-12
    )


SPREAD = {
    "tier.write_bytes_per_s": [40e9, 5e9, 400e9],
    "cluster.gpus": [8192.0, 1000.0, 40_001.0],
    "failures.failures_per_s": [0.0, 1e-6, 5e-5],
    "failures.detect_s": [0.0, 60.0, 900.0],
    "site.pue": [1.0, 1.1, 1.6],
    "checkpoint.params": [7e9, 70e9, 1e12],
    "policy.every": [300.0, 1800.0, 7200.0],
    "policy.keep_last": [1.0, 5.0, UNLIMITED],
    "tier.usd_per_byte_s": [1e-14, UNKNOWN, 3e-14],
    "tier.write_j_per_byte": [1e-7, UNKNOWN, 2e-7],
    "cluster.usd_per_gpu_s": [1e-3, 5e-4, 2e-3],
    "checkpoint.size_bytes": [UNKNOWN, 2e12, UNKNOWN],
    "work_s": [DAY, 30 * DAY, 90 * DAY],
    "checkpoint.compression_ratio": [1.0, 1.3, 2.0],
    "policy.slowdown_fraction": [0.0, 0.05, 0.2],
    "tier.active_w": [2e5, 3e5, 4e5],
}


@shapes
@pytest.mark.parametrize("cadence", ["interval", "optimal"])
@pytest.mark.parametrize("busy", ["block", "skip"])
def test_arrays_equal_scalars(shape, cadence, busy):
    s = changed(
        SHAPES[shape], policy__cadence=cadence, policy__objective="energy", policy__when_busy=busy
    )
    spread = {path.replace(".", "__"): values for path, values in SPREAD.items()}
    together = evaluate(changed(s, **{path: np.array(values) for path, values in spread.items()}))
    # a golden section finds the place of a minimum to the root of the rounding error only
    close = 1e-6 if "two" in shape and cadence == "optimal" else 1e-12
    for i in range(3):
        alone = evaluate(changed(s, **{path: values[i] for path, values in spread.items()}))
        for name in ("interval_s", "saves", "wall_s", "goodput", "failures"):
            assert np.broadcast_to(getattr(together, name), 3)[i] == pytest.approx(
                getattr(alone, name), rel=close
            ), name
        for whole, single in ((together.run, alone.run), (together.one_save, alone.one_save)):
            for a, b in zip(whole.lines, single.lines, strict=True):
                for quantity in FIELDS:
                    found = np.broadcast_to(getattr(a, quantity), 3)[i]
                    assert found == pytest.approx(
                        flat(getattr(b, quantity)), rel=close, nan_ok=True
                    ), f"{a.id} {quantity}"
            for quantity, ledger in product(FIELDS, LEDGERS):
                found = np.broadcast_to(whole.total(quantity, ledger), 3)[i]
                assert found == pytest.approx(
                    flat(single.total(quantity, ledger)), rel=close, nan_ok=True
                ), f"{quantity} {ledger}"


def test_avoidable_is_one_bill_minus_another():
    slow, fast = evaluate(changed(tier__write_bytes_per_s=4e9)).run, evaluate(BASE).run
    for quantity in FIELDS:
        assert avoidable(slow, fast, quantity) == slow.total(quantity) - fast.total(quantity)
    assert avoidable(slow, fast, "energy_j") > 0


OBJECTIVES = {
    "time": lambda o: o.wall_s,
    "energy": lambda o: o.run.total("energy_j"),
    "usd": lambda o: o.run.total("cost_usd"),
    "carbon": lambda o: o.run.total("location_kgco2e"),
}


def least_of_the_bill(s, objective, around):
    """Golden section on the bill itself."""
    from scipy.optimize import minimize_scalar

    def cost(x):
        return OBJECTIVES[objective](
            evaluate(changed(s, policy__cadence="interval", policy__every=math.exp(x)))
        )

    bracket = (math.log(around) - 0.7, math.log(around), math.log(around) + 0.7)
    return math.exp(minimize_scalar(cost, bracket=bracket, method="golden", tol=1e-6).x)


def expect_best(s, objective):
    best = evaluate(changed(s, policy__cadence="optimal", policy__objective=objective)).interval_s

    def cost(tau):
        return OBJECTIVES[objective](
            evaluate(changed(s, policy__cadence="interval", policy__every=tau))
        )

    here = cost(best)
    for factor in (0.5, 0.9, 0.98, 1.02, 1.1, 2.0):
        assert here <= cost(best * factor), (
            f"{factor} x {best:.2f} s is better by {1 - cost(best * factor) / here:.2e}"
        )
    assert best == pytest.approx(least_of_the_bill(s, objective, best), rel=0.01)


@shapes
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_best_interval_is_the_bills_least(shape, objective):
    """The same work, the actual totals: no neighbour is cheaper."""
    expect_best(SHAPES[shape], objective)


PAID = ("energy", "usd", "carbon")
DEAR = {"write_j_per_byte": 3e-5, "usd_per_request": 5e-3}
DEAR_SECOND = replace(TWO_TIERS, second_tier=replace(TWO_TIERS.second_tier, **DEAR))
WEIGHTY = {
    "joules and requests per save that outweigh the stall": (
        replace(BASE, tier=replace(BASE.tier, **DEAR)),
        PAID,
    ),
    "so on the second tier": (DEAR_SECOND, PAID),
    "so on the second tier, asynchronous": (changed(DEAR_SECOND, policy__mode="async"), PAID),
    **{
        f"hours in one phase of the recovery, at the watts of it: {phase}": (
            changed(**{f"failures__{phase}": 20_000.0}),
            ("energy", "carbon"),
        )
        for phase in ("detect_s", "reschedule_s", "init_s", "warmup_s")
    },
    "a peer's memory is inside a node and yet across the network": (
        replace(BASE, tier=replace(RAM, survives="node", network_j_per_byte=1e-4)),
        ("energy",),
    ),
    "every save is kept: half a save's rent over the run for each": (
        changed(policy__keep_last=UNLIMITED),
        ("usd",),
    ),
    "on premises": (
        changed(cluster__price_includes_electricity=False, tier__usd_per_byte_s=UNKNOWN),
        OBJECTIVES,
    ),
}


@pytest.mark.parametrize(
    ("s", "objective"),
    [
        pytest.param(s, objective, id=f"{why}-{objective}")
        for why, (s, objectives) in WEIGHTY.items()
        for objective in objectives
    ],
)
def test_the_best_interval_knows_all_that_weighs_on_it(s, objective):
    expect_best(s, objective)


def test_the_best_interval_of_two_tiers_that_can_hardly_finish():
    """A stall of two mean times between failures: a long search, never an exception."""
    slow = replace(RAM, node_write_bytes_per_s=980e9 / 1024 / 20_000)
    s = replace(TWO_TIERS, tier=slow, policy=replace(TWO_TIERS.policy, cadence="optimal"))
    outcome = evaluate(changed(s, failures__failures_per_s=1e-4))
    assert outcome.interval_s > 0
    assert not math.isnan(outcome.goodput)


@shapes
@pytest.mark.parametrize("calm", [0.0, np.array([0.0, 0.0])], ids=["number", "array"])
def test_without_failures_the_best_is_no_save_at_all(shape, calm):
    """The run takes as long as its work and nothing is lost."""
    s = changed(
        SHAPES[shape],
        policy__cadence="optimal",
        failures__failures_per_node_s=0.0,
        failures__failures_per_s=calm,
    )
    outcome = evaluate(s)
    assert np.all(np.isposinf(outcome.interval_s))
    assert np.all(np.asarray(outcome.saves) == 0.0)
    assert np.all(np.asarray(outcome.wall_s) == s.work_s)
    assert np.all(np.asarray(outcome.goodput) == 1.0)
    assert np.all(np.asarray(outcome.run.total("energy_j")) == 0.0)


def test_the_best_interval_never_outruns_the_drain():
    s = changed(
        ASYNC,
        tier__write_bytes_per_s=0.5e9,
        policy__cadence="optimal",
        policy__in_flight=1.0,
        policy__slowdown_fraction=0.0,
    )
    outcome = evaluate(s)
    assert outcome.interval_s == pytest.approx(outcome.plan.saved.lag_s, rel=1e-12)
    assert outcome.cycle.blocked_s == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("cadence", "every", "interval"),
    [
        ("interval", 900.0, 900.0),
        ("steps", 100.0, 1200.0),
        ("per_day", 48.0, 1800.0),
        ("saves", 720.0, 3600.0),
    ],
)
def test_cadences(cadence, every, interval):
    outcome = evaluate(changed(policy__cadence=cadence, policy__every=every, policy__step_s=12.0))
    assert outcome.interval_s == pytest.approx(interval, rel=1e-14)
    assert outcome.saves == pytest.approx(30 * DAY / interval, rel=1e-14)


def clock_job(every, stall, mtbf, back):
    """Saves that take `stall`, by the clock."""
    return changed(
        policy__cadence="clock",
        policy__every=every,
        tier__save_time_s=stall,
        tier__timed_bytes=980.001e9,
        failures__failures_per_node_s=0.0,
        failures__failures_per_s=1 / mtbf,
        failures__detect_s=back,
        failures__reschedule_s=0.0,
        failures__init_s=0.0,
        failures__warmup_s=0.0,
        tier__load_time_s=1e-9,
    )


@pytest.mark.parametrize(
    ("every", "stall", "mtbf", "back"),
    [
        (1800.0, 60.0, 10_800.0, 600.0),
        (1800.0, 300.0, 40_000.0, 300.0),
        (600.0, 700.0, 9000.0, 60.0),
    ],
)
def test_saves_by_the_clock_as_a_plain_walk(every, stall, mtbf, back):
    """Every interval is taken alike; the first after a start is not, and what that does is of
    second order.

    A timer that starts with the training leaves it the whole first interval. A grid of wall time
    leaves it what is left.
    """
    o = evaluate(clock_job(every, stall, mtbf, back))
    found, kept, rate = float(o.goodput), float(o.interval_s), 1 / mtbf
    assert found == pytest.approx(
        kept * rate / (1.0 + rate * back) / math.expm1(rate * (kept + stall)), rel=1e-6
    )
    timed, error = by_the_clock(every, stall, back, rate, 40_000, 3, grid=False)
    first = rate * stall * (every - kept) / kept
    assert abs(found * (1.0 + first) - timed) < 3 * error + 3e-4
    on_grid, error = by_the_clock(every, stall, back, rate, 40_000, 4, grid=True)
    assert abs(found - on_grid) < 0.03 * found
    if stall < every:
        share = stall / every
        first = (rate * every) ** 2 / 12 - rate * stall * (1.0 - 0.5 / (1.0 - share))
        assert abs(found * (1.0 + first) - on_grid) < 3 * error + 5e-4


def test_the_clock_counts_the_stall():
    """A save of 60 s each 30 min leaves 29 min of training; one of 40 min leaves the 20 min until
    the next but one."""
    for stall, interval in ((60.0, 1740.0), (1800.0, 1800.0), (2400.0, 1200.0)):
        o = evaluate(clock_job(1800.0, stall, math.inf, 0.0))
        assert o.interval_s == pytest.approx(interval)
        assert (o.interval_s + o.cycle.stall_s) / 1800.0 == pytest.approx(
            round((interval + stall) / 1800.0)
        )
    behind = changed(ASYNC, policy__cadence="clock", policy__every=600.0)
    o = evaluate(behind)
    drag = 0.03 * o.plan.saved.lag_s
    assert o.interval_s + drag + o.cycle.stall_s == pytest.approx(600.0)
    two = evaluate(changed(TWO_TIERS, policy__cadence="clock", policy__every=600.0))
    assert two.interval_s + two.mean_stall_s == pytest.approx(600.0)
    stalls = np.array([60.0, 2400.0])
    both = evaluate(changed(clock_job(1800.0, 60.0, 40_000.0, 0.0), tier__save_time_s=stalls))
    assert both.interval_s == pytest.approx([1740.0, 1200.0])


def test_what_a_failure_costs_is_the_bills_own():
    """Without repeats: half an interval and a stall on average, and the way back."""
    o = evaluate(changed(failures__failures_per_node_s=1e-12))
    cost = failure_cost(o)
    recovery = o.plan.recovery
    assert cost.back_s == pytest.approx(recovery.down_s + recovery.exposed_s, rel=1e-4)
    cycle = o.interval_s + o.cycle.stall_s
    # a failure in training loses half of it, one in the stall all of it
    expected = (o.interval_s**2 / 2 + o.interval_s * o.cycle.stall_s) / cycle
    assert cost.redone_s == pytest.approx(expected, rel=1e-3)
    many = evaluate(changed(ASYNC, failures__failures_per_s=1e-4))
    gpus = ASYNC.cluster.gpus
    billed = sum(many.run.line(name).gpu_s for name in ("redone_work", "restart", "loading"))
    assert failure_cost(many).total_s * many.failures * gpus == pytest.approx(billed)
    never = changed(failures__failures_per_node_s=0.0, failures__failures_per_s=0.0)
    assert math.isnan(failure_cost(evaluate(never)).total_s)


def test_keep_last():
    """Held on average: saved ones pile up until `keep_last` are there."""
    for saves in (1, 2, 5, 9, 30):
        for keep in (1, 2, 5, 100, math.inf):
            counted = sum(min(i, keep) for i in range(1, saves + 1)) / saves
            assert kept_saves(float(saves), float(keep)) == pytest.approx(counted, rel=1e-12), (
                saves,
                keep,
            )
    few = evaluate(changed(policy__keep_last=1.0)).run.line("retention").cost_usd
    assert evaluate(changed(policy__keep_last=4.0)).run.line("retention").cost_usd == pytest.approx(
        4 * few, rel=0.01
    )
    size = 70e9 * 14 + 1e6
    assert evaluate(changed(policy__keep_last=1.0)).spent.held_bytes == pytest.approx(
        size, rel=1e-12
    )
    assert evaluate(changed(policy__keep_last=UNLIMITED)).spent.held_bytes == pytest.approx(
        size * (1440 + 1) / 2, rel=1e-12
    )


def test_second_tier_holds_its_own():
    outcome = evaluate(TWO_TIERS)
    assert outcome.spent.second_held_bytes == pytest.approx(
        outcome.plan.second.stored_bytes * kept_saves(outcome.saves / 6, 5.0), rel=1e-12
    )
    plan, states = outcome.plan, outcome.states
    assert outcome.spent.second_saves == pytest.approx(
        outcome.saves * states.second_stall_s / plan.second.stall_s, rel=1e-12
    )
    assert outcome.spent.saves == pytest.approx(
        outcome.saves * (states.stall_s - states.second_stall_s) / outcome.cycle.stall_s, rel=1e-12
    )
    assert outcome.spent.saves > 6 * outcome.spent.second_saves, (
        "a lost period repeats the saves on the first tier that were whole"
    )
    assert outcome.run.line("second_retention").cost_usd > 0
    assert outcome.run.line("retention").cost_usd == 0.0


def test_what_an_async_run_really_writes():
    """A failure cuts drains short: (exp(l*lag)-1)/(l*lag) drains' worth of bytes for each usable
    save, as the walk sees it."""
    s = changed(ASYNC, policy__in_flight=64.0, policy__slowdown_fraction=0.0, policy__every=600.0)
    outcome = evaluate(changed(s, tier__write_bytes_per_s=0.4e9, failures__failures_per_s=1e-4))
    plan, rate = outcome.plan, outcome.plan.failures_per_s
    mean, error = drained(
        600.0, plan.saved.stall_s, plan.saved.lag_s, rate, interruptions=40_000, seed=11
    )
    exact = math.expm1(rate * plan.saved.lag_s) / (rate * plan.saved.lag_s)
    assert abs(exact - mean) < 3 * error
    assert outcome.spent.saves / outcome.saves == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("survives", "share"), [("process", 0.8), ("node", 0.0), ("site", 0.0)])
def test_what_a_lost_node_takes_with_it(survives, share):
    """Only a first tier that dies with its node sends the run back to the second, for the share of
    failures that lose a node."""
    plan = evaluate(replace(TWO_TIERS, tier=replace(RAM, survives=survives))).plan
    rate = 1024 * 3.8 / 1000 / DAY + 0.1 / DAY
    assert plan.failures_per_s == pytest.approx(rate, rel=1e-12)
    assert plan.lost_per_s == pytest.approx(share * rate, rel=1e-12)
    assert plan.second_recovery.load_s > plan.recovery.load_s
    assert evaluate(BASE).plan.lost_per_s == 0.0


def test_replicas_write_more_and_load_no_less():
    twice = evaluate(changed(checkpoint__replicas_writing=2.0))
    once = evaluate(BASE)
    assert twice.plan.saved.written_bytes == 2 * once.plan.saved.written_bytes
    assert twice.plan.recovery == once.plan.recovery
    assert twice.spent.held_bytes == pytest.approx(once.spent.held_bytes, rel=0.01)
    keeping = [o.run.line("retention").cost_usd / o.wall_s for o in (twice, once)]
    assert keeping[0] == pytest.approx(keeping[1], rel=0.01)  # written twice, kept and paid once


def test_bytes_that_are_sold_by_writing():
    """A price for each byte written, beside that of requests, in the same line."""
    plain, sold = (evaluate(changed(tier__usd_per_byte=price)) for price in (0.0, 0.0032 / 2**30))
    written = plain.spent.saves * plain.plan.saved.written_bytes
    more = sold.run.line("requests").cost_usd - plain.run.line("requests").cost_usd
    assert more == pytest.approx(written * 0.0032 / 2**30, rel=1e-9)


def test_the_best_interval_knows_what_a_byte_written_costs():
    """Saves that cost more are made less often, and the best is still the bill's least."""
    dear = changed(tier__usd_per_byte=1e-9)
    expect_best(dear, "usd")
    best = [
        evaluate(changed(s, policy__cadence="optimal", policy__objective="usd")).interval_s
        for s in (BASE, dear)
    ]
    assert best[1] > 1.1 * best[0]


def test_breakeven_price():
    """Equal goodput, equal price; a tier that saves a tenth of the GPU time is worth a tenth of the
    rent and of itself."""
    assert breakeven_usd_per_s(1000.0, 1e-3, 0.2, 0.9, 0.9) == pytest.approx(0.2, rel=1e-14)
    assert breakeven_usd_per_s(1000.0, 1e-3, 0.2, 0.8, 0.88) == pytest.approx(
        1.1 * (1.0 + 0.2) - 1.0, rel=1e-12
    )


def test_classic_answers_stand_beside():
    s = changed(policy__cadence="optimal")
    outcome = evaluate(s)
    classic = classic_of(s, outcome)
    assert classic.exact_interval_s == pytest.approx(outcome.interval_s, rel=1e-12)
    assert classic.young_interval_s == pytest.approx(
        math.sqrt(2 * outcome.cycle.stall_s / outcome.plan.failures_per_s), rel=1e-12
    )
    assert classic.daly_interval_s == pytest.approx(classic.exact_interval_s, rel=1e-3)
    assert classic.first_order_goodput == pytest.approx(outcome.goodput, abs=0.01)
    assert classic.goodput_off == abs(classic.first_order_goodput - outcome.goodput)
    assert classic.daly_regret == pytest.approx(0.0, abs=1e-6)
    assert classic.interval_light == 2
    assert classic.validity == classic.goodput_light


def lights(outcome_of, **changes):
    s = changed(**changes)
    classic = classic_of(s, outcome_of(s))
    return classic.goodput_light, classic.interval_light, classic.validity


def test_a_promise_below_nothing_is_red_however_rare_failures_are():
    """2 TB at 2 GB/s every 10 min on 8 GPUs: 1,000 s of stall after each 600 s of training."""
    slow = {
        "checkpoint__params": 2e12 / 14.0,
        "cluster__gpus": 8.0,
        "tier__write_bytes_per_s": 2e9,
        "tier__node_write_bytes_per_s": 2e9,
        "policy__cadence": "interval",
        "policy__every": 600.0,
    }
    s = changed(**slow)
    outcome = evaluate(s)
    assert classic_of(s, outcome).first_order_goodput < 0 < outcome.goodput
    assert lights(evaluate, **slow) == (0, 2, 0)


def test_a_rule_that_cannot_be_applied_is_not_green():
    """Without failures no interval is best, and with free saves the rule's is 0."""
    never = {"failures__failures_per_node_s": 0.0, "failures__failures_per_s": 0.0}
    goodput, interval, both = lights(evaluate, **never)
    assert goodput == 2
    assert math.isnan(interval)
    assert math.isnan(both)


def test_the_lights_are_the_same_for_one_and_for_many():
    intervals = np.array([60.0, 600.0, 3600.0, 36_000.0, 360_000.0])
    many = classic_of(s := changed(), outcome_at(s, plan_of(s), intervals))
    for i, interval_s in enumerate(intervals.tolist()):
        one = classic_of(s, outcome_at(s, plan_of(s), interval_s))
        assert many.goodput_off[i] == pytest.approx(one.goodput_off, rel=1e-9)
        assert many.goodput_light[i] == one.goodput_light
        assert np.broadcast_to(many.interval_light, 5)[i] == one.interval_light
        assert np.broadcast_to(many.validity, 5)[i] == one.validity
    assert {0, 1, 2} >= set(many.goodput_light.tolist()) > {0}


def test_domain_defaults_are_unknown_or_no_limit():
    """A field nobody filled in must not look like a measured zero."""
    for kind in (Tier, Cluster, Site):
        for field in fields(kind):
            if (
                field.name.endswith(("_w", "_j_per_byte"))
                or "usd" in field.name
                or "kgco2e" in field.name
            ):
                assert isinstance(field.default, float)
                assert math.isnan(field.default), field.name
            elif field.name.endswith("bytes_per_s"):
                assert field.default == UNLIMITED, field.name
    assert nodes_of(Cluster(gpus=9.0)) == 2.0
    assert Bill(()).total("energy_j") != Bill(()).total("energy_j")
    assert HOUR == 3600.0
