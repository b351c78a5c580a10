"""What the first edition assumed and the second does not, as inputs: so that both can be compared.

The second edition changed defaults on purpose: the law of storage energy, the failures of presets,
what asynchronous saves cost. Given these inputs it must compute what the first edition did.
"""

from __future__ import annotations

from typing import Any

from ckptcost.scenario import resolve as sc
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.schema import FAILURE_RATES, SHARED_STORAGE, TIERS

FIRST: dict[str, dict[str, Any]] = {
    "policy": {
        "keep_last": 3,
        "second_keep_last": 10,
        "third_keep_last": 10,
        "snapshot_rate": "3 GB/s",
        "slowdown": 0.04,
        "pinned": 0,
        "copies": 0,
        "delete_time": "0 s",
    },
    "failures": {
        "rate": "0.416 /1000 node-days",
        "gpu_rate": "0.4216 /1000 GPU-days",
        "counted_gpus": 16384,
        "size_exponent": 0.75,
        "rate_factor": 1.0,
        "shared_rate": "0 /day",
        "node_loss_fraction": 0.78,
        "unusable": 0,
        "silent": 0,
        "detect": "2 min",
        "reschedule": "3 min",
        "init": "3 min",
        "warmup": "1 min",
    },
}
OF_DRIVES = {"micron-gen4-7680": 2.76, "micron-gen5-60tb": 2.09, "micron-gen5-7680": 2.08}
"""J/GB that a vendor claims, which were inputs"""


def first_edition(preset: str, settings: list[str], tier: str) -> sc.Scenario:
    """A case as the first edition understood it."""
    plain, flags = sc.layers_of(preset), [sc.layer_of_flags(settings)] if settings else []
    now = _first_case([*plain, *flags], tier)
    raw: dict[str, Any] = {section: dict(values) for section, values in FIRST.items()}
    said = sc.merge([*plain, *flags])
    for key in said["policy"].keys() & raw["policy"].keys():
        del raw["policy"][key]
    if {"rate", "gpu_rate", "mtbf"} & said["failures"].keys():
        raw["failures"] = {k: v for k, v in raw["failures"].items() if k not in FAILURE_RATES}
    for section in TIERS:
        raw[section] = tier_of(now.said[section])
    return _first_case([*plain, sc.layer_of(raw, "--set"), *flags], tier)


def tier_of(tier: dict[str, Any]) -> dict[str, str]:
    """One process was as fast as its storage; energy by the byte."""
    energy = write_energy(tier)
    found = {} if energy is None else {"write_energy": f"{energy} J/GB"}
    new = str(tier.get("id")).startswith("mlperf-")  # these say what one process did
    said = (each for each in ("gpu_write", "gpu_read") if each in tier)
    return found | {key: ENDLESS for key in said if new or tier[key].origin == sc.DEFAULTS}


ENDLESS = "1e15 GB/s"


def _first_case(layers: list[sc.Layer], tier: str) -> sc.Scenario:
    return next(iter(sc.cases_of(layers, [tier]).values()))


def write_energy(tier: dict[str, Any]) -> float | None:
    """J/GB: 139 for shared tiers of at least 10 GB/s, 1,170 for slower ones, 3 inside the node."""
    if not tier or {"write_energy", "active_power"} & tier.keys():
        return None
    if tier.get("boundary", "storage-system") not in SHARED_STORAGE:
        return OF_DRIVES.get(str(tier.get("id")), 3.0)
    return 1170.0 if rate_of(tier) < 10e9 else 139.0


def rate_of(tier: dict[str, Any]) -> float:
    """Write rate of a system as its figures say it; 0 if only that of a node is known."""

    def value(key: str) -> float:
        figure = tier.get(key)
        return figure.value if isinstance(figure, Figure) else 0.0

    if value("save_time"):
        return value("timed_size") / value("save_time")
    return value("write") or value("write_per_capacity") * value("capacity")
