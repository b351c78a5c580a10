"""A complete scenario with every figure known, and ways to change one thing in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.draws import replace_at

HOUR, DAY = 3600.0, 86_400.0

BASE = Scenario(
    checkpoint=Checkpoint(params=70e9, bytes_per_param=14.0, extra_bytes=1e6, files=64.0),
    tier=Tier(
        write_bytes_per_s=40e9,
        read_bytes_per_s=60e9,
        node_write_bytes_per_s=4e9,
        node_read_bytes_per_s=8e9,
        setup_s=2.0,
        files_per_s=5000.0,
        capacity_bytes=2e15,
        write_j_per_byte=120e-9,
        idle_w=40e3,
        network_j_per_byte=8e-9,
        usd_per_byte_s=0.02 / 1e9 / (730 * HOUR),
        usd_per_request=5e-6,
        request_bytes=64e6,
    ),
    cluster=Cluster(
        gpus=8192.0,
        gpu_train_w=650.0,
        gpu_stall_w=320.0,
        gpu_idle_w=90.0,
        host_train_w=2600.0,
        host_stall_w=2200.0,
        host_idle_w=1800.0,
        gpu_d2h_bytes_per_s=20e9,
        node_nic_bytes_per_s=50e9,
        node_ram_bytes=2e12,
        usd_per_gpu_s=2.5 / HOUR,
        embodied_kgco2e_per_gpu_s=0.033 / HOUR,
        price_includes_electricity=True,
    ),
    policy=Policy(every=1800.0, keep_last=5.0),
    failures=Failures(
        failures_per_node_s=3.8 / 1000 / DAY,
        failures_per_s=0.1 / DAY,
        node_loss_fraction=0.8,
        detect_s=120.0,
        reschedule_s=180.0,
        init_s=90.0,
        warmup_s=60.0,
    ),
    site=Site(
        pue=1.25,
        usd_per_j=0.09 / 3.6e6,
        kgco2e_per_j=0.384 / 3.6e6,
        market_kgco2e_per_j=0.2 / 3.6e6,
        water_l_per_j=1.8 / 3.6e6,
    ),
    work_s=30 * DAY,
)

RAM = Tier(
    node_write_bytes_per_s=20e9,
    node_read_bytes_per_s=20e9,
    setup_s=0.5,
    write_j_per_byte=1e-9,
    survives="process",
    boundary="node",
    in_memory=True,
)


def changed(scenario: Scenario = BASE, **fields: Any) -> Scenario:
    """The scenario with fields replaced; `policy__mode="async"` stands for policy.mode."""
    for path, value in fields.items():
        scenario = replace_at(scenario, path.replace("__", "."), value)
    return scenario


ASYNC = changed(policy__mode="async", policy__in_flight=2.0, policy__slowdown_fraction=0.03)
TWO_TIERS = replace(
    BASE,
    tier=RAM,
    second_tier=BASE.tier,
    policy=replace(BASE.policy, every=600.0, second_every=6.0, second_keep_last=5.0),
)
TWO_TIERS_ASYNC = changed(TWO_TIERS, policy__mode="async", policy__slowdown_fraction=0.03)
SHAPES = {"sync": BASE, "async": ASYNC, "two tiers": TWO_TIERS, "two tiers, async": TWO_TIERS_ASYNC}
