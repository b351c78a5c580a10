"""Every caution fires in a case made for it and is silent in a calm one."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from sample_scenarios import ASYNC, BASE, DAY, RAM, TWO_TIERS, TWO_TIERS_ASYNC, changed

from ckptcost.first.core.cautions import (
    cautions_of,
    drive_writes_per_s,
    held_at_once_bytes,
    host_ram,
    keeping_shares,
    ram_verdict,
)
from ckptcost.first.core.domain import Tier
from ckptcost.first.core.outcome import evaluate

CALM = {
    "sync": changed(
        tier__drive_writes_per_s=10 / DAY,
        tier__rate_spread_fraction=0.02,
        cluster__node_ram_bytes=2e12,
        failures__failures_per_node_s=0.1 / 1000 / DAY,
    ),
    "async": changed(ASYNC, tier__drive_writes_per_s=10 / DAY, tier__rate_spread_fraction=0.1),
    "two tiers": TWO_TIERS,
    "two tiers, async": TWO_TIERS_ASYNC,
}
TWO_TIERS_SLOW = replace(
    TWO_TIERS, second_tier=replace(TWO_TIERS.second_tier, write_bytes_per_s=0.2e9)
)
STEP = {
    "cluster__gpus": 1e6,
    "cluster__gpu_train_w": 600.0,
    "cluster__host_train_w": nan,
    "cluster__host_stall_w": nan,
}
"""a million GPUs: what each of them saves in 10 W is 10 MW"""
FIRES = {
    "NEVER_FINISHES": changed(policy__every=30 * DAY, failures__failures_per_s=1e-3),
    "POWER_STEP": changed(cluster__gpus=40_000.0, failures__failures_per_node_s=1e-9),
    "COLLECTIVE_TIMEOUT": changed(tier__write_bytes_per_s=2e9),
    "STALL_NEAR_MTBF": changed(tier__write_bytes_per_s=0.5e9, failures__failures_per_s=1e-4),
    "RECOVERY_NEAR_MTBF": changed(failures__warmup_s=4000.0, failures__failures_per_s=1e-4),
    "STALL_OVER_INTERVAL": changed(
        tier__write_bytes_per_s=0.5e9, failures__failures_per_node_s=0.0
    ),
    "CAPACITY": changed(tier__capacity_bytes=2e12),
    "DRIVE_WEAR": changed(tier__capacity_bytes=10e12, tier__drive_writes_per_s=1 / DAY),
    "MEAN_OF_RATES": changed(tier__rate_spread_fraction=0.3),
    "NO_SAVE_IN_RUN": changed(policy__every=60 * DAY),
    "NO_FIXED_TIME": changed(tier__write_bytes_per_s=1e14, tier__setup_s=0.0),
    "NAMEPLATE_POWER": changed(tier__write_j_per_byte=nan, tier__active_w=8000.0, tier__idle_w=nan),
    "PERSIST_OVER_INTERVAL": changed(ASYNC, policy__every=10.0),
    "HOST_RAM": changed(ASYNC, cluster__node_ram_bytes=1e9),
    "KEEPING_DOMINATES": changed(policy__keep_last=inf, tier__usd_per_byte_s=1e-15),
    "MEAN_OF_READ_RATES": changed(tier__read_spread_fraction=0.3),
    "SCALED_TIME": changed(tier__save_time_s=90.0, tier__timed_bytes=900e9),
    "STAGING_BUDGET": changed(ASYNC, cluster__staging_budget_bytes=1e9),
    "COPY_DIES_WITH_NODE": replace(BASE, tier=RAM),
    "SECOND_TIER_TOO_SLOW": TWO_TIERS_SLOW,
    "SECOND_LAG_NEAR_MTBF": changed(TWO_TIERS_ASYNC, failures__failures_per_s=1e-2),
}


def raised(scenario):
    return {c.code for c in cautions_of(scenario, evaluate(scenario)) if bool(c.holds)}


@pytest.mark.parametrize("shape", CALM)
def test_calm_cases_are_silent(shape):
    assert raised(CALM[shape]) - {"HOST_RAM"} == set()


def test_host_ram_is_silent_where_it_fits():
    assert "HOST_RAM" not in raised(CALM["sync"])
    assert "HOST_RAM" not in raised(CALM["async"])
    assert "HOST_RAM" not in raised(TWO_TIERS)


@pytest.mark.parametrize("code", FIRES)
def test_each_fires_in_its_case(code):
    assert code in raised(FIRES[code])


def test_no_code_without_a_case():
    codes = {c.code for s in (*FIRES.values(), *CALM.values()) for c in cautions_of(s, evaluate(s))}
    assert codes == set(FIRES)


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("CAPACITY", {"tier__capacity_bytes": 5 * 980.001e9}),
        ("MEAN_OF_RATES", {"tier__rate_spread_fraction": 0.1}),
        ("POWER_STEP", STEP | {"cluster__gpu_stall_w": 600.0 - 10_000.0 / 1000}),
        ("MEAN_OF_READ_RATES", {"tier__read_spread_fraction": 0.1}),
        ("SCALED_TIME", {"tier__save_time_s": 90.0, "tier__timed_bytes": 980.001e9}),
        ("NO_FIXED_TIME", {"tier__save_time_s": 0.5, "tier__timed_bytes": 980.001e9}),
        ("STALL_OVER_INTERVAL", {"policy__every": 27.0}),
    ],
)
def test_silent_at_the_limit(code, near):
    assert code not in raised(changed(**near))


@pytest.mark.parametrize(
    ("code", "beyond"),
    [
        ("CAPACITY", {"tier__capacity_bytes": 4.9 * 980.001e9}),
        ("MEAN_OF_RATES", {"tier__rate_spread_fraction": 0.101}),
        ("POWER_STEP", STEP | {"cluster__gpu_stall_w": 589.9}),
        ("STALL_OVER_INTERVAL", {"policy__every": 26.0}),
    ],
)
def test_fires_beyond_the_limit(code, beyond):
    assert code in raised(changed(**beyond))


def test_the_two_numbers_decided_it():
    for code, scenario in FIRES.items():
        found = next(
            c for c in cautions_of(scenario, evaluate(scenario)) if c.code == code and bool(c.holds)
        )
        below = code in ("NEVER_FINISHES", "NO_FIXED_TIME")
        assert (found.value < found.limit) if below else (found.value > found.limit), code


@pytest.mark.parametrize(
    "path",
    [
        "tier__capacity_bytes",
        "tier__drive_writes_per_s",
        "tier__rate_spread_fraction",
        "cluster__node_ram_bytes",
    ],
)
@pytest.mark.parametrize("s", [BASE, ASYNC], ids=["sync", "async"])
def test_an_unknown_input_raises_nothing(path, s):
    assert raised(changed(s, **{path: nan})) == set()


@pytest.mark.parametrize("code", FIRES)
def test_arrays_are_judged_one_by_one(code):
    """The case and the calm one side by side, through an axis that changes nothing."""
    s = changed(FIRES[code], site__pue=np.array([1.1, 1.2]), work_s=np.array([30 * DAY, 31 * DAY]))
    found = [c for c in cautions_of(s, evaluate(s)) if c.code == code]
    assert any(np.all(c.holds) for c in found)
    s = changed(tier__rate_spread_fraction=np.array([0.3, 0.05]))
    spread = next(c for c in cautions_of(s, evaluate(s)) if c.code == "MEAN_OF_RATES")
    assert list(np.asarray(spread.holds)) == [True, False]


def test_saves_left_out_are_told():
    """`skip` stretches the interval that was asked for; that must not pass in silence."""
    s = changed(ASYNC, policy__every=5.0, policy__in_flight=1.0, policy__when_busy="skip")
    assert evaluate(s).interval_s > 5.0
    assert "PERSIST_OVER_INTERVAL" in raised(s)


def test_no_more_copies_than_saves():
    """Three saves, all kept in memory that holds ten."""
    s = replace(BASE, tier=RAM, second_tier=TWO_TIERS.second_tier, work_s=3 * 1800.0)
    s = changed(s, policy__keep_last=inf, cluster__node_ram_bytes=10 * 980.001e9 / 1024)
    assert "HOST_RAM" not in raised(s)
    assert "HOST_RAM" in raised(changed(s, work_s=30 * DAY))


def test_memory_of_a_node_by_hand():
    """980 GB on 1,024 nodes: 957 MB a copy, two in flight and one to copy into; what is not known
    decides nothing."""
    copy = 980.001e9 / 1024
    s = changed(ASYNC, cluster__node_ram_bytes=10e9)
    assert host_ram(s, 100.0).copies_bytes == pytest.approx(2 * copy)
    before = changed(s, policy__staging="before")
    assert host_ram(before, 100.0).copies_bytes == pytest.approx(3 * copy)
    assert host_ram(before, 1.0).copies_bytes == pytest.approx(copy)
    assert host_ram(changed(s, policy__mode="sync"), 100.0).copies_bytes == 0.0
    staged = changed(s, policy__mode="sync", policy__pipelined=False)
    assert host_ram(staged, 100.0).copies_bytes == pytest.approx(copy)
    bounded = changed(before, cluster__staging_budget_bytes=1.5e9)
    assert host_ram(bounded, 100.0).copies_bytes == 1.5e9
    assert ram_verdict(host_ram(s, 100.0)) == "unknown"
    assert ram_verdict(host_ram(changed(s, cluster__node_ram_used_bytes=8e9), 100.0)) == "fits"
    full = changed(s, cluster__node_ram_used_bytes=8.2e9)
    assert ram_verdict(host_ram(full, 100.0)) == "too much"
    assert "HOST_RAM" in raised(full)
    alone = changed(s, cluster__node_ram_bytes=1.9e9)
    assert ram_verdict(host_ram(alone, 100.0)) == "too much"
    nobody_knows = changed(full, cluster__node_ram_bytes=nan)
    assert ram_verdict(host_ram(nobody_knows, 100.0)) == "unknown"
    assert "HOST_RAM" not in raised(nobody_knows)


def test_drive_wear_by_hand():
    """Micron's trace: 39.54 TiB in 28,295 s on a 7.68 TB drive are 17.3 drive writes a day."""
    assert drive_writes_per_s(
        Tier(capacity_bytes=7.68e12), 39.54 * 2**40, 28_295.0
    ) * DAY == pytest.approx(17.3, abs=0.05)


def test_held_at_once():
    outcome = evaluate(BASE)
    assert held_at_once_bytes(BASE, outcome.plan.saved) == pytest.approx(5 * 980.001e9, rel=1e-12)


def test_keeping_says_what_a_few_would_cost():
    """Beside the share as planned stands the share with three: a run made with three has it
    exactly."""
    s = changed(policy__keep_last=inf, tier__usd_per_byte_s=1e-15)
    now, few = keeping_shares(s, evaluate(s))
    planned, same = keeping_shares(three := changed(s, policy__keep_last=3.0), evaluate(three))
    assert now > 0.25
    assert few == pytest.approx(planned, rel=1e-12)
    assert same == planned
    assert few < now


def test_a_run_without_end_is_not_warned_of_what_it_keeps():
    """The price of its years of storage is a share of nothing."""
    endless = changed(FIRES["NEVER_FINISHES"], policy__keep_last=inf, tier__usd_per_byte_s=1e-15)
    assert "NEVER_FINISHES" in raised(endless)
    assert "KEEPING_DOMINATES" not in raised(endless)


def test_fewer_saves_none_of_what_is_provisioned():
    s = changed(tier__billed_on="provisioned", tier__capacity_bytes=1e15, policy__keep_last=inf)
    now, few = keeping_shares(s, evaluate(s))
    assert now == few > 0.0
