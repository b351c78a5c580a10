"""Power while a save holds training up, against measurements of real saves."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ckptcost.first import api
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.cautions import cautions_of
from ckptcost.first.core.domain import (
    Checkpoint,
    Cluster,
    Failures,
    Policy,
    Scenario,
    Site,
    Tier,
)
from ckptcost.first.core.energy import job_w, least_ramp_w_per_s, save_step_w
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.report.studies.model_words import power_lines

CLUSTER = tomllib.loads((Path(__file__).parents[3] / "models/defaults.toml").read_text())["cluster"]
STALL = CLUSTER["stall_fraction"]
H100_W = 700.0


def llama3(gpus: float, **cluster: float) -> Scenario:
    train_w = H100_W * CLUSTER["train_fraction"]["value"]
    return Scenario(
        Checkpoint(size_bytes=5.67e12),
        Tier(write_bytes_per_s=100e9),
        Cluster(gpus, gpu_train_w=train_w, gpu_stall_w=train_w * STALL["value"], **cluster),
        Policy(every=1800.0),
        Failures(),
        Site(pue=1.1),
        work_s=86_400.0,
    )


@pytest.mark.parametrize(
    ("watts", "of"),
    [(100.0, 600.0), (157.0, 556.0), (0.107 / 0.197, 0.893 / 0.803)],
    ids=["A1 OLMo 2", "A2 spinning ranks", "execution-idle clusters"],
)
def test_the_range_holds_every_measurement(watts, of):
    """A1, A2 and the clusters of arXiv 2604.04745: 10.7 % of the energy in 19.7 % of the time."""
    assert STALL["low"] <= watts / of <= STALL["high"]


def test_a1_low_end():
    """A1: some runs fell to 15 % of their maximum."""
    assert STALL["low"] <= 0.15


def test_a2_is_the_default():
    """A2, 8 x H100, one rank saves and the others spin: 157 of 556 W. T 5 %."""
    assert STALL["value"] == pytest.approx(157 / 556, rel=0.05)


def test_a25_a_node_of_eight_h100():
    """A25: 8.4 kW at most (B), in training 76 % of the rated 10.2 kW (T 2 %)."""
    fraction = CLUSTER["train_fraction"]
    host_w = Catalog().get("accelerator", "h100-sxm").figures["host_train"].value
    for share in (fraction["low"], fraction["value"]):
        assert job_w(8, H100_W * share, 1, host_w) < 8400.0
    assert job_w(8, H100_W * fraction["value"], 1, host_w) == pytest.approx(0.76 * 10_200, rel=0.02)


def test_a27_tens_of_megawatts():
    """A27, Llama 3: 24,576 H100 that wait for a save: 11 MW of GPUs alone. The caution says so,
    hosts known or not."""
    for host in ({}, {"host_train_w": 2800.0, "host_stall_fraction": 0.8}):
        s = llama3(24_576.0, **host)
        outcome = evaluate(s)
        assert outcome.gpu_step_w == pytest.approx(11.15e6, rel=1e-3)
        step = next(c for c in cautions_of(s, outcome) if c.code == "POWER_STEP")
        assert bool(step.holds)
        assert step.value == pytest.approx(11.15e6 + (1.72e6 if host else 0.0), rel=1e-3)
    small = llama3(16_384.0)
    assert not bool(
        next(c for c in cautions_of(small, evaluate(small)) if c.code == "POWER_STEP").holds
    )


def test_a_step_is_the_difference_of_two_powers():
    train_w, stall_w = job_w(1024, 630.0, 128, 2800.0), job_w(1024, 176.4, 128, 2240.0)
    s = llama3(1024.0, host_train_w=2800.0, host_stall_fraction=0.8)
    o = evaluate(s)
    assert o.gpu_step_w + o.host_step_w == pytest.approx(save_step_w(train_w, stall_w))
    waits = replace(s, cluster=replace(s.cluster, host_stall_w=2800.0))
    assert evaluate(waits).host_step_w == 0.0


def test_the_least_ramp_fills_the_stall():
    """Down in half the stall and up in the other half."""
    assert least_ramp_w_per_s(8e6, 40.0) * 20.0 == 8e6


def test_the_report_says_the_step():
    (found,) = api.model("llama31-405b-16k").statements
    step = found.power_step
    assert step is not None
    assert step.gpus.unit == "MW"
    assert step.whole.value == pytest.approx(step.gpus.value + step.hosts.value)
    assert step.gpus.value == pytest.approx(16_384 * 630.0 * 0.72 / 1e6)
    assert step.whole.low < step.whole.value < step.whole.high
    assert step.least_ramp_mw_per_s == pytest.approx(2 * step.whole.value / step.lasts_s)
    (line,) = power_lines(found)
    assert "IT power fall by 8.58 MW" in line
    unknown = step.model_copy(
        update={
            "hosts": step.hosts.model_copy(update={"value": None}),
            "whole": step.whole.model_copy(update={"value": None}),
            "least_ramp_mw_per_s": None,
        }
    )
    (line,) = power_lines(found.model_copy(update={"power_step": unknown}))
    assert "7.43 MW" in line
    assert "GPUs alone, the hosts' is not known" in line
    assert power_lines(found.model_copy(update={"power_step": None})) == []
