"""Sensitivity of real scenarios against what theory says of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.draws import drawn, replace_at
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.jobs import sensitivity as job
from ckptcost.first.jobs.compare import first_of, planned_scenario
from ckptcost.first.jobs.model import Case
from ckptcost.first.jobs.sensitivity import OF, Sensitivity, measure_of, sensitivity
from ckptcost.first.layers import layers_for, read_layer
from ckptcost.first.report.studies.sensitivity import study_of
from ckptcost.first.scenario import ranges_of, ties_of

CATALOG = Catalog()
NO_RECOVERY = [
    "failures.detect=0 s",
    "failures.reschedule=0 s",
    "failures.init=0 s",
    "failures.warmup=0 s",
    "tier.read=1e20 B/s",
    "cluster.node_nic=1e17 B/s",
    "tier.node_read=1e20 B/s",
]


def case_of(name: str = "llama31-405b-16k", *settings: str, interval: str | None = None) -> Case:
    return first_of(CATALOG, layers_for(CATALOG, name, interval, settings))


def responses(found: Sensitivity):
    return {each.lever.path: each for each in found.responses}


def only(case: Case, *paths: str) -> Case:
    """The case with every other range taken away."""
    inputs = tuple(
        i if i.path in paths else i._replace(figure=replace(i.figure, low=None, high=None))
        for i in case.resolved.inputs
    )
    return case._replace(resolved=case.resolved._replace(inputs=inputs))


@pytest.mark.parametrize(("rarer", "within"), [(1.0, 0.2), (100.0, 0.02), (10_000.0, 0.002)])
def test_the_envelope_theorem(rarer, within):
    """At the best interval dw/dC = 1/tau* and dw/dL = 1/M to first order, w = 1 - goodput: the
    rarer failures, the closer."""
    rate = f"failures.rate={3.8 / rarer} /1000 node-days"
    case = case_of("llama31-405b-16k", rate, "tier.setup=0 s")
    for replan in (False, True):
        found = responses(sensitivity(case, "goodput", replan))
        dw_dc = -found["tier.setup"].per_unit
        dw_dl = -found["failures.detect"].elasticity * float(case.outcome.goodput) / 120.0
        if rarer < 1000:  # beyond, an elasticity of six digits is too coarse for so small a share
            assert dw_dl == pytest.approx(float(case.outcome.plan.failures_per_s), rel=within)
        assert dw_dc == pytest.approx(1.0 / float(case.outcome.interval_s), rel=within)


def test_at_its_optimum_the_goodput_does_not_notice_the_interval():
    at_best = responses(sensitivity(case_of(), "goodput"))["policy.interval"]
    assert abs(at_best.elasticity) < 2e-6
    assert (
        responses(sensitivity(case_of("llama31-405b-16k", interval="2 h"), "goodput"))[
            "policy.interval"
        ].elasticity
        < -0.05
    )
    assert "policy.interval" not in responses(sensitivity(case_of(), "goodput", replan=True))


@pytest.mark.parametrize("replan", [False, True])
def test_the_overhead_goes_with_the_root_of_the_mtbf(replan):
    """Without recovery w = sqrt(2C/M) to first order: GPU-hours lost go with M^-1/2, rate^1/2,
    C^1/2 - planned or chosen anew."""
    case = case_of(
        "llama31-405b-16k", *NO_RECOVERY, "failures.rate=0.001 /1000 node-days", "tier.setup=0 s"
    )
    found = responses(sensitivity(case, "gpu_hours", replan))
    assert found["failures.rate"].elasticity == pytest.approx(0.5, abs=0.005)
    assert found["checkpoint.params"].elasticity == pytest.approx(0.5, abs=0.005)


@pytest.mark.parametrize(
    "name", ["llama31-405b-16k", "small-8b", "micron-100k", "bloom-176b", "opt-175b"]
)
def test_exact_elasticities(name):
    """kWh are proportional to PUE and to training time at a fixed interval; kgCO2e to the grid
    factor."""
    case = case_of(name)
    assert responses(sensitivity(case, "kwh"))["site.pue"].elasticity == pytest.approx(
        1.0, abs=2e-6
    )
    assert responses(sensitivity(case, "kwh"))["run.work"].elasticity == pytest.approx(
        1.0, abs=1e-5
    )
    carbon = responses(sensitivity(case, "kgco2e"))
    assert carbon["site.grid_location"].elasticity == pytest.approx(1.0, abs=2e-6)
    assert carbon["site.pue"].elasticity == pytest.approx(1.0, abs=2e-6)


def test_dollars_are_proportional_to_the_price_when_all_else_is_free():
    free = [
        "site.tariff=0 USD/kWh",
        "tier.storage_price=0 USD/GB-month",
        "tier.network_energy=0 J/GB",
    ]
    found = responses(sensitivity(case_of("llama31-405b-16k", *free), "usd"))
    assert found["cluster.gpu_price"].elasticity == pytest.approx(1.0, abs=2e-6)
    assert found["site.pue"].elasticity == 0.0


@pytest.mark.parametrize("name", ["llama31-405b-16k", "micron-100k", "opt-175b"])
def test_powers_add_up(name):
    """Energy is linear and homogeneous in all powers together (Euler): their elasticities add up to
    1, copies counted once."""
    found = responses(sensitivity(case_of(name, "tier.network_energy=8 J/GB"), "kwh"))
    powers = [
        f"cluster.{who}_{state}" for who in ("gpu", "host") for state in ("train", "stall", "idle")
    ]
    powers += ["tier.write_energy", "tier.network_energy", "tier.active_power", "tier.idle_power"]
    assert sum(found[path].elasticity for path in powers if path in found) == pytest.approx(
        1.0, abs=1e-5
    )


def test_copies_are_moved_with_their_original_and_shown_once():
    case = case_of("opt-175b", "tier.id=ddn-exascaler")
    found = sensitivity(case, "kwh")
    paths = [each.lever.path for each in found.swings]
    assert len(paths) == len(set(paths))
    assert "tier.read" not in paths
    write = next(each for each in found.swings if each.lever.path == "tier.write")
    assert write.lever.copies == ("tier.read",)
    world = planned_scenario(case.scenario, case.outcome)
    for field in ("write_bytes_per_s", "read_bytes_per_s"):
        world = replace_at(world, f"tier.{field}", write.lever.high)
    assert write.at_high == pytest.approx(float(evaluate(world).run.total("energy_j")), rel=1e-14)


def test_hosts_that_wait_move_with_hosts_that_train():
    """The fraction is of the power in training: one range of the host moves all three states."""
    case = case_of("opt-175b")
    found = {each.lever.path: each for each in sensitivity(case, "kwh").swings}
    assert not {"cluster.host_stall", "cluster.host_idle"} & found.keys()
    assert found["cluster.host_stall_fraction"].swing > 0
    host = found["cluster.host_train"]
    world = planned_scenario(case.scenario, case.outcome)
    for field, share in (("train", 1.0), ("stall", 0.8), ("idle", 0.8)):
        world = replace_at(world, f"cluster.host_{field}_w", host.lever.high * share)
    assert host.at_high == pytest.approx(float(evaluate(world).run.total("energy_j")), rel=1e-14)


def test_an_unranged_copy_still_moves_with_its_original():
    """A read rate assumed as the write rate is: both in one elasticity."""
    case = case_of("llama31-405b-16k", "tier.id=generic-pfs")
    levers = {each.lever.path: each.lever for each in sensitivity(case, "gpu_hours").responses}
    assert levers["tier.write"].copies == ("tier.read",)
    assert "tier.read" not in levers


@pytest.mark.parametrize("of", OF)
def test_swings_are_what_the_model_says_at_the_ends(of):
    """At a fixed interval, `--set failures.rate_factor=low` gives the tornado's left end."""
    case = case_of("llama31-405b-16k", interval="20 min")
    swing = next(
        each for each in sensitivity(case, of).swings if each.lever.path == "failures.rate_factor"
    )
    for said, end in (("0.3", swing.at_low), ("5.2", swing.at_high)):
        other = case_of("llama31-405b-16k", f"failures.rate_factor={said}", interval="20 min")
        assert end == pytest.approx(float(measure_of(of).of(other.outcome)), rel=1e-12)


@pytest.mark.parametrize("of", ["kwh", "goodput", "usd"])
def test_no_value_in_between_is_beyond_the_ends(of):
    """Every input here acts one way only: the ends of its bar are the extremes."""
    case = case_of()
    world = planned_scenario(case.scenario, case.outcome)
    found = sensitivity(case, of)
    swings = [each.swing for each in found.swings]
    assert swings == sorted(swings, reverse=True)
    for each in found.swings:
        moved = world
        for field in each.lever.fields:
            moved = replace_at(moved, field, np.linspace(each.lever.low, each.lever.high, 33))
        results = np.broadcast_to(np.asarray(found.measure.of(evaluate(moved)), dtype=float), (33,))
        slack = 1e-12 * abs(found.value)
        assert min(each.at_low, each.at_high) - slack <= results.min(), each.lever.path
        assert results.max() <= max(each.at_low, each.at_high) + slack, each.lever.path


def test_no_range_no_swing():
    found = sensitivity(only(case_of()), "kwh")
    assert (found.swings, found.shares, found.together, found.low, found.high) == (
        (),
        (),
        0.0,
        found.value,
        found.value,
    )
    assert any("No input has a range" in line for line in study_of(found).findings)


def test_one_uncertain_input_explains_everything_and_known_leaves_nothing():
    found = sensitivity(only(case_of(), "site.pue"), "kwh")
    assert [each.lever.path for each in found.shares] == ["site.pue"]
    share = found.shares[0]
    assert share.share == pytest.approx(1.0, abs=5e-3), (
        "a triangle's ends are steeper than a curve of the fourth degree"
    )
    assert (share.low, share.high) == pytest.approx((found.value, found.value), rel=1e-12)
    assert found.low < found.value < found.high


def test_shares_of_a_bill_that_is_linear_in_two_powers():
    """With only two powers uncertain the kWh are c1*p1 + c2*p2: shares are c^2 times the variances
    of what was drawn."""
    case = only(case_of(), "cluster.gpu_stall", "cluster.gpu_train")
    found = sensitivity(case, "kwh")
    many = drawn(
        planned_scenario(case.scenario, case.outcome),
        ranges_of(case.resolved),
        ties_of(case.resolved),
        found.draws,
    )
    slopes = responses(found)
    variances = {
        path: (slopes[path].elasticity * found.value / value) ** 2 * float(np.var(draws))
        for path, value, draws in (
            ("cluster.gpu_stall", case.scenario.cluster.gpu_stall_w, many.cluster.gpu_stall_w),
            ("cluster.gpu_train", case.scenario.cluster.gpu_train_w, many.cluster.gpu_train_w),
        )
    }
    planted = {path: variance / sum(variances.values()) for path, variance in variances.items()}
    assert {each.lever.path: each.share for each in found.shares} == pytest.approx(
        planted, abs=2e-3
    )
    assert found.together < 2e-3


@pytest.mark.parametrize("name", ["llama31-405b-16k", "small-8b", "opt-175b", "gpt4-scale-2tb"])
@pytest.mark.parametrize("of", OF)
def test_shares_are_shares(name, of):
    found = sensitivity(case_of(name), of)
    assert all(0.0 <= each.share <= 1.0 for each in found.shares)
    assert sum(each.share for each in found.shares) + found.together == pytest.approx(1.0, abs=1e-4)
    assert found.low <= found.value <= found.high
    assert [each.share for each in found.shares] == sorted(
        (each.share for each in found.shares), reverse=True
    )
    assert all(each.low <= found.value <= each.high for each in found.shares)


def test_what_does_not_move_the_result_explains_nothing_of_it():
    found = sensitivity(case_of(), "kwh")
    width = {each.lever.path: each.high - each.low for each in found.shares}
    assert width["failures.rate_factor"] < 0.85 * (found.high - found.low)
    assert "cluster.gpu_price" not in width
    still = {each.lever.path for each in found.swings if each.swing == 0}
    assert "cluster.gpu_price" in still
    assert not still & set(width)


def test_what_is_measured_is_not_to_be_measured():
    found = sensitivity(case_of(), "kwh")
    measured = {each.lever.path for each in found.shares if each.lever.basis == "measured"}
    assert measured
    assert not measured & {each.lever.path for each in found.to_measure}


def test_gpus_move_in_whole_nodes():
    case = case_of()
    world = planned_scenario(case.scenario, case.outcome)
    few, many = (
        float(evaluate(replace_at(world, "cluster.gpus", 16_384.0 + n * 160)).run.total("energy_j"))
        for n in (-1, 1)
    )
    found = responses(sensitivity(case, "kwh"))["cluster.gpus"]
    assert found.elasticity == pytest.approx(
        math.log(many / few) / math.log(16_544 / 16_224), abs=1e-6
    )
    assert found.note == "over 40 whole nodes"
    alone = responses(sensitivity(case_of("small-8b", "cluster.gpus=8"), "kwh"))["cluster.gpus"]
    assert math.isnan(alone.elasticity)
    assert alone.note.startswith("one node")


def test_gpus_a_node_never_round_up_to_one_node_more():
    """Nodes as seen by the model are the whole number meant, for every size: host energy is
    proportional to them."""
    for gpus in (24, 128, 1000, 4096, 100_000):
        case = case_of(
            "llama31-405b-16k",
            f"cluster.gpus={gpus}",
            "cluster.gpu_train=0 W",
            "failures.rate=0 /1000 node-days",
            "policy.interval=1 h",
            "tier.write_energy=0 J/GB",
            "tier.network_energy=0 J/GB",
            "cluster.node_nic=1e17 B/s",
            "cluster.gpu_stall=0 W",
            "cluster.gpu_idle=0 W",
            "failures.shared_rate=0 /day",
        )
        found = responses(sensitivity(case, "kwh"))["cluster.gpus_per_node"]
        assert found.elasticity == pytest.approx(-1.0, abs=1e-5), gpus


def test_zero_and_unlimited_inputs():
    case = case_of("llama31-405b-16k", "tier.setup=0 s")
    found = responses(sensitivity(case, "gpu_hours"))
    setup, drain = found["tier.setup"], found["policy.slowdown"]
    assert (setup.note, math.isnan(setup.elasticity)) == ("no elasticity at 0", True)
    o = case.outcome
    rate, recovery = float(o.plan.failures_per_s), o.plan.recovery
    # of E = (1/l + D) exp(l R) (exp(l (tau + C)) - 1), by C and, as loading begins with it too, by
    # R
    by_stall = (1 + rate * recovery.down_s) * math.exp(
        rate * (recovery.exposed_s + o.interval_s + o.cycle.stall_s)
    )
    by_load = rate * o.wall_s / o.saves
    assert setup.per_unit == pytest.approx(16_384 * float(o.saves) * (by_stall + by_load), rel=1e-6)
    assert drain.elasticity == 0.0  # nothing drains behind a synchronous save
    assert found["failures.shared_rate"].per_unit > 0
    everything = responses(
        sensitivity(case_of("llama31-405b-16k", "policy.keep_last=all"), "gpu_hours")
    )
    assert everything["policy.keep_last"].note == "unlimited"


@pytest.mark.parametrize(
    ("settings", "of", "replan", "says"),
    [
        ([], "kWh", False, "no result named"),
        (["policy.interval=1 h"], "kwh", True, "no optimum"),
        (["tier.write=1 kB/s", "policy.interval=1 h"], "kwh", False, "never finish"),
    ],
)
def test_what_cannot_be_answered_is_said(settings, of, replan, says):
    with pytest.raises(InputError, match=says):
        sensitivity(case_of("llama31-405b-16k", *settings), of, replan)


def test_a_result_without_its_price_names_the_price():
    case = case_of()
    unpriced = replace_at(case.scenario, "cluster.usd_per_gpu_s", math.nan)
    resolved = case.resolved._replace(scenario=unpriced, unknown={"cluster.gpu_price": "none"})
    with pytest.raises(InputError, match=r"cluster\.gpu_price is not known"):
        sensitivity(case._replace(resolved=resolved, outcome=evaluate(unpriced)), "usd")


def test_an_unknown_result_is_a_name():
    with pytest.raises(UnknownName, match="did you mean 'kwh'"):
        measure_of("kwhs")


def test_draws_in_which_the_run_never_ends_are_told():
    case = case_of("llama31-405b-16k", "tier.write=3 GB/s", "policy.interval=1 h")
    wide = replace(
        next(i for i in case.resolved.inputs if i.path == "failures.rate_factor").figure, high=700.0
    )
    inputs = tuple(
        i._replace(figure=wide) if i.path == "failures.rate_factor" else i
        for i in case.resolved.inputs
    )
    found = sensitivity(case._replace(resolved=case.resolved._replace(inputs=inputs)), "kwh")
    assert 0 < found.never < 1
    assert all(math.isnan(each.share) for each in found.shares)
    assert any("never ends" in line for line in study_of(found).findings)


def test_the_interval_is_no_input_of_the_world(monkeypatch):
    """As the plan it is there once, chosen; with a range of its own it is no uncertainty either."""
    monkeypatch.setattr(job, "DRAWS", 128)
    case = case_of("llama31-405b-16k", interval="2 h")
    paths = [each.lever.path for each in sensitivity(case, "kwh").responses]
    assert paths.count("policy.interval") == len({"policy.interval"} & set(paths)) == 1
    ranged = read_layer(
        {"policy": {"interval": {"value": "2 h", "low": "1 h", "high": "4 h"}}},
        "test",
        "test",
    )
    wide = first_of(CATALOG, [*layers_for(CATALOG, "llama31-405b-16k", None, []), ranged])
    one, other = sensitivity(case, "kwh"), sensitivity(wide, "kwh")
    assert "policy.interval" not in {each.lever.path for each in (*other.swings, *other.shares)}
    assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=1e-12)
