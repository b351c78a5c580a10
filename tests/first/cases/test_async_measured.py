"""What an asynchronous save costs by default, against what was measured: data/async_measured.csv.

A point estimate stands in the middle of the measurements, and its range contains every one of them.
"""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ckptcost.first.catalog.keys import unit_of
from ckptcost.first.core.domain import Checkpoint, Cluster, Policy, Tier
from ckptcost.first.core.timing import save
from ckptcost.first.core.units import parse

ROOT = Path(__file__).resolve().parents[3]
DEFAULTS: dict[str, Any] = tomllib.loads((ROOT / "models" / "defaults.toml").read_text("utf-8"))
with (ROOT / "data" / "async_measured.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file, strict=True))
KEYS = sorted({row["key"] for row in ROWS})


def number(key: str, text: Any) -> float:
    return parse(text, unit_of(*key.split(".")))


def default(key: str) -> tuple[float, float, float]:
    section, name = key.split(".")
    figure = DEFAULTS[section][name]
    low, value, high = (number(key, figure[end]) for end in ("low", "value", "high"))
    return low, value, high


def test_what_decides_an_asynchronous_save_is_measured():
    assert KEYS == ["policy.slowdown", "policy.snapshot_rate", "tier.setup"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['key']}={row['value']}")
def test_the_default_range_contains_every_measurement(row):
    low, _, high = default(row["key"])
    assert low <= number(row["key"], row["value"]) <= high
    assert row["bound"] in ("exactly", "at least", "at most")


@pytest.mark.parametrize("key", KEYS)
def test_the_default_is_a_central_value(key):
    """Between the quartiles, and far from both ends of its range."""
    measured = [number(key, row["value"]) for row in ROWS if row["key"] == key]
    low, value, high = default(key)
    assert np.quantile(measured, 0.25) <= value <= np.quantile(measured, 0.75)
    place = np.log(value / low) / np.log(high / low)
    assert 0.3 < place < 0.7


STALLS = {  # bytes of the checkpoint, GPUs that copy it, seconds training stood still
    "0.585 GB/s": (12.0 * 70.55e9, 1856.0, 0.78),
    "1.07 GB/s": (14.0 * 405e9, 8960.0, 0.59),
    "1.87 GB/s": (14.0 * 6.74e9, 8.0, 6.3),
    "2.96 GB/s": (14.0 * 65e9, 1536.0, 0.2),
    "3.0 GB/s": (24e9, 16.0, 0.5),
    "4.5 GB/s": (18e9, 8.0, 0.5),
    "26 GB/s": (14.0 * 8.03e9, 8.0, 0.54),
}


@pytest.mark.parametrize("rate", STALLS)
def test_the_stall_that_was_measured(rate):
    """The share of one GPU over the rate gives the seconds back, and the link is no limit there. T
    1 %."""
    size, gpus, seconds = STALLS[rate]
    assert any(row["value"] == rate for row in ROWS)
    policy = Policy(every=1800.0, mode="async", gpu_snapshot_bytes_per_s=parse(rate, "bytes_per_s"))
    cluster = Cluster(gpus=gpus, gpu_d2h_bytes_per_s=55e9)
    saved = save(Checkpoint(size_bytes=size), Tier(write_bytes_per_s=1e11), cluster, policy)
    assert saved.stall_s == pytest.approx(seconds, rel=0.01)


def test_a_slow_link_and_a_stated_snapshot_come_first():
    checkpoint, tier = Checkpoint(size_bytes=800e9), Tier(write_bytes_per_s=1e11)
    cluster = Cluster(gpus=8.0, gpu_d2h_bytes_per_s=2e9)
    policy = Policy(every=1800.0, mode="async", gpu_snapshot_bytes_per_s=3e9)
    assert save(checkpoint, tier, cluster, policy).stall_s == pytest.approx(50.0)
    stated = Policy(every=1800.0, mode="async", gpu_snapshot_bytes_per_s=3e9, snapshot_s=0.5)
    assert save(checkpoint, tier, cluster, stated).stall_s == 0.5


def test_a_synchronous_save_does_not_stage():
    checkpoint, tier = Checkpoint(size_bytes=800e9), Tier(write_bytes_per_s=1e11)
    cluster = Cluster(gpus=8.0, gpu_d2h_bytes_per_s=55e9)
    policy = Policy(every=1800.0, gpu_snapshot_bytes_per_s=1e9)
    assert save(checkpoint, tier, cluster, policy).stall_s == 8.0
