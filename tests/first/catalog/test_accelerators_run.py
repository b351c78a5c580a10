"""Every accelerator and every cluster that ships gives kWh and USD, as shipped, on the command
line."""

from __future__ import annotations

from typing import Any

import pytest
from whole_json import whole

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.cli.main import main

CATALOG = Catalog()
ACCELERATORS = CATALOG.ids("accelerator")
CLUSTERS = CATALOG.ids("cluster")
WITHOUT = ("energy", "cost", "emissions")
SUMS = ("run_energy_kwh", "run_cost_usd", "save_energy_kwh", "save_cost_usd")


def report_of(capsys: pytest.CaptureFixture[str], *changes: str) -> dict[str, Any]:
    flags = [part for change in changes for part in ("--set", change)]
    assert main(["model", *flags, "--format", "json"]) == 0
    report: dict[str, Any] = whole(capsys.readouterr().out)
    return report


def has_sums(report: dict[str, Any]) -> None:
    """A number for every tier; a run that hardly gets on ends never in some draws: no sum there."""
    (first,) = report["statements"]
    assert not any(first["totals"][what]["excludes"] for what in ("energy", "cost"))
    ends = 0
    for case in report["tables"]["cases"]["rows"]:
        assert not any(case[f"{what}_without"] for what in WITHOUT), case["case"]
        if case["wall_s"] is not None and case["goodput"] > 1e-3:
            ends += 1
            for name in SUMS:
                assert case[name] > 0, (case["case"], name)
                low, high = case[f"{name}_low"], case[f"{name}_high"]
                assert high is None or low <= case[name] <= high
    assert ends


@pytest.mark.parametrize("name", ACCELERATORS)
def test_accelerator(capsys, name):
    has_sums(report_of(capsys, f"cluster.accelerator={name}"))


@pytest.mark.parametrize("name", CLUSTERS)
def test_cluster(capsys, name):
    has_sums(report_of(capsys, f"cluster.id={name}"))


@pytest.mark.parametrize("name", ACCELERATORS)
def test_a_newer_chip_is_no_lamp_and_no_oven(name):
    """Power of a chip with its share of the node while training: from a T4's to a small rack's."""
    figures = CATALOG.get("accelerator", name).figures
    per_node = figures["gpus_per_node"].value if "gpus_per_node" in figures else 8
    chip = figures["gpu_train"] if "gpu_train" in figures else figures["gpu_tdp"]
    assert 100 < chip.value + figures["host_train"].value / per_node < 3000


GENERATIONS = [
    ("a100-sxm-80", "h100-sxm", "b200-sxm", "vr200"),
    ("b200-sxm", "b300-sxm", "gb300", "vr200"),
    ("mi300x", "mi325x", "mi355x", "mi455x"),
    ("tpu-v4", "tpu-v5p", "tpu-v7x"),
    ("tpu-v5e", "tpu-v6e", "tpu-v7x"),
    ("trainium2", "trainium3"),
]


@pytest.mark.parametrize("line", GENERATIONS)
def test_generations_grow(line):
    """Each draws more and costs more than the one before it, by the middle of its range."""
    for key in ("gpu_price", "power"):
        found = []
        for name in line:
            figures = CATALOG.get("accelerator", name).figures
            power = figures.get("gpu_train", figures.get("gpu_tdp"))
            found.append((power if key == "power" else figures[key]).value)
        assert found == sorted(found), key
