"""The default rate of failures against every published job: how often jobs of 8 to 100,000 GPUs
were interrupted."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ckptcost.first import api
from ckptcost.first.catalog.figures import figure_of
from ckptcost.first.catalog.keys import KEYS, unit_of
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import Cluster, Failures
from ckptcost.first.core.draws import triangle
from ckptcost.first.core.failures import (
    job_failures_per_s,
    node_loss_fraction,
    rack_loss_fraction,
)
from ckptcost.first.core.units import parse
from ckptcost.first.jobs.compare import first_of
from ckptcost.first.jobs.sensitivity import sensitivity
from ckptcost.first.jobs.solve import KNOBS
from ckptcost.first.layers import layers_for

HOUR, DAY = 3600.0, 86_400.0
ROOT = Path(__file__).parents[3]
DEFAULTS = {
    key: figure_of(value, unit_of("failures", key))
    for key, value in tomllib.loads((ROOT / "models/defaults.toml").read_text())["failures"].items()
}
LAW = Failures(**{KEYS["failures"][key]: figure.value for key, figure in DEFAULTS.items()})
with (ROOT / "data/failure_rates.csv").open() as file:
    JOBS = {row["id"]: row for row in csv.DictReader(file)}
SOURCES = tomllib.loads((ROOT / "data/sources.toml").read_text())


def cluster(row):
    return Cluster(float(row["gpus"]), float(row["gpus_per_node"]))


def over_the_law(row):
    """Measured rate over that of the law."""
    return 1 / parse(row["mtbf"], "s") / job_failures_per_s(LAW, cluster(row))


def spread():
    """The 5th and 95th percentile of what the default's range draws."""
    factor = DEFAULTS["rate_factor"]
    logs = np.log([factor.low, factor.value, factor.high])
    return np.exp(triangle(*logs, np.array([0.05, 0.95])))


@pytest.mark.parametrize("name", JOBS)
def test_every_published_job_lies_within_the_range(name):
    low, high = spread()
    assert low < over_the_law(JOBS[name]) < high
    assert JOBS[name]["source"] in SOURCES


def test_the_range_is_no_wider_than_it_must_be():
    ratios = [over_the_law(row) for row in JOBS.values()]
    low, high = spread()
    assert low > 0.9 * min(ratios)
    assert high < 1.1 * max(ratios)


def test_the_exponent_is_fitted_to_the_jobs():
    """Least squares in logarithms, through the Llama 3 run."""
    fitted = [row for row in JOBS.values() if row["fit"] == "yes"]
    linear = replace(LAW, size_exponent=1.0)
    x = np.log([LAW.counted_gpus / float(row["gpus"]) for row in fitted])
    y = np.log(
        [1 / parse(row["mtbf"], "s") / job_failures_per_s(linear, cluster(row)) for row in fitted]
    )
    assert LAW.size_exponent == pytest.approx(1 - (x @ y) / (x @ x), abs=0.005)


def test_the_llama3_run():
    """419 interruptions in 54 days on 2,048 nodes of 8, by cause: 46 of the nodes, 373 of the
    GPUs."""
    found = job_failures_per_s(LAW, Cluster(16_384.0)) * 54 * DAY
    assert found == pytest.approx(419, rel=1e-4)
    per_node = LAW.failures_per_node_s + 8 * LAW.failures_per_gpu_s
    assert per_node == pytest.approx(parse("3.79 /1000 node-days", "failures_per_node_s"), rel=1e-3)
    causes = {"gpu": 148 + 72 + 19 + 17 + 6 + 6, "link": 35 + 7, "software": 54 + 7 + 2}
    of_nodes = 32 + 3 + 3 + 2 + 2 + 2 + 2
    assert sum(causes.values()) + of_nodes == 419
    assert LAW.failures_per_node_s * 2048 * 54 * DAY == pytest.approx(of_nodes, rel=1e-3)


@pytest.mark.parametrize(("per_node", "most"), [(4.0, 1.15), (1.0, 1.9)])
def test_smaller_nodes_fail_a_little_more_often_not_in_proportion(per_node, most):
    """Trays of 4 and superchips of 1: their GPUs are the same, only the hosts are more."""
    whole = job_failures_per_s(LAW, Cluster(2048.0))
    split = job_failures_per_s(LAW, Cluster(2048.0, per_node))
    assert 1.0 < split / whole < most


def test_larger_jobs_fail_linearly_and_smaller_ones_more_often_for_their_size():
    gpus = np.array([8.0, 1024.0, 16_384.0, 131_072.0])
    rate = job_failures_per_s(LAW, Cluster(gpus))
    each = rate / gpus
    assert each[0] / each[2] == pytest.approx(2048**0.25)
    assert each[1] / each[2] == pytest.approx(2.0)
    assert each[3] == pytest.approx(each[2])
    assert np.all(np.diff(rate) > 0)
    alone = [job_failures_per_s(LAW, Cluster(float(n))) for n in gpus]
    assert list(rate) == pytest.approx(alone, rel=1e-15)


def test_mtbf_stands_for_every_rate():
    known = replace(LAW, mtbf_s=900.0, failures_per_s=1.0)
    assert job_failures_per_s(known, Cluster(64.0)) == 1 / 900
    mixed = replace(LAW, mtbf_s=np.array([900.0, float("nan")]))
    found = job_failures_per_s(mixed, Cluster(64.0))
    assert found[0] == 1 / 900
    assert found[1] == pytest.approx(job_failures_per_s(LAW, Cluster(64.0)))


def test_a_lost_rack_interrupts_once_and_loses_nodes():
    """128 nodes in racks of 4, a rack lost once in 1,000 days: 32 in 1,000 days, all of which lose
    nodes."""
    plain = Failures(failures_per_node_s=1e-3 / DAY, node_loss_fraction=0.5)
    racks = replace(plain, rack_failures_per_s=1e-3 / DAY, nodes_per_rack=4.0)
    job = Cluster(1024.0)
    assert job_failures_per_s(racks, job) * 1000 * DAY == pytest.approx(128 + 32)
    assert rack_loss_fraction(racks, job) == pytest.approx(32 / 160)
    assert node_loss_fraction(racks, job) == pytest.approx((64 + 32) / 160)
    assert node_loss_fraction(plain, job) == 0.5
    assert rack_loss_fraction(Failures(), job) == 0.0


def first(*settings):
    catalog = Catalog()
    return first_of(catalog, layers_for(catalog, "small-8b", None, settings))


def test_every_answer_takes_the_mtbf_as_it_is():
    """Model, sensitivity, optimize, simulate and solve: a failure each 6 h, whatever the job's
    size."""
    for gpus in (64, 4096):
        case = first("failures.mtbf=6 h", f"cluster.gpus={gpus}", "policy.interval=30 min")
        assert 1 / case.outcome.plan.failures_per_s == pytest.approx(6 * HOUR)
        moved = {each.lever.path: each for each in sensitivity(case, "gpu_hours").responses}
        assert moved["failures.mtbf"].elasticity < 0
        assert not {"failures.rate", "failures.gpu_rate", "failures.rate_factor"} & moved.keys()
        assert KNOBS["mtbf"].today(case.scenario, case.outcome.plan) == pytest.approx(6 * HOUR)
    frame = api.sweep(["failures.mtbf=15 min,6 h"], "small-8b")
    assert frame["goodput"].is_monotonic_increasing
    twice = api.sweep(["cluster.gpus=8,64"], "small-8b", changes={"failures.mtbf": "6 h"})
    assert twice["run_gpu_hours"].notna().all()


def test_a_sweep_over_gpus_is_the_row_by_row_answer():
    """The law is a formula of the core, so an axis of sizes needs no scenario of its own."""
    frame = api.sweep(["cluster.gpus=64,1024,32768"], "small-8b")
    for gpus, goodput in zip(frame["cluster.gpus"], frame["goodput"], strict=True):
        alone = first(f"cluster.gpus={gpus}").outcome.goodput
        assert goodput == pytest.approx(float(alone), rel=1e-12)


def test_solve_sets_the_time_between_failures_itself():
    case = first()
    _, plan = KNOBS["mtbf"].put(case.scenario, case.outcome.plan, 1234.0)
    assert 1 / plan.failures_per_s == pytest.approx(1234.0)
