"""Inputs far outside what the catalogue knows are doubted; what it holds itself never is."""

from __future__ import annotations

import pytest

from ckptcost.plan.plausible import doubts
from ckptcost.scenario import catalog
from ckptcost.scenario import resolve as sc

from .jobs import scenario

DOUBTED = {
    "tier.write=25000 GB/s": "Writing at 25 TB/s is 26 times the fastest storage system in the"
    " catalogue (953 GB/s, MLPerf Storage v3.0 results): check tier.write.",
    "tier.write=1 MB/s": "Writing at 1 MB/s is 1/250 of the slowest storage system in the"
    " catalogue (250 MB/s, DS2413+ specification): check tier.write.",
    "tier.node_write=900 GB/s": "900 GB/s is 21 times the fastest node measured (42.1 GB/s, MLPerf"
    " Storage v3.0 results): check tier.node_write.",
    "failures.mtbf=1 min": "A failure every 60 s is 1/46 of what published jobs of this size have"
    " (46.4 min, The Llama 3 Herd of Models): check failures.mtbf.",
    "failures.rate_factor=90": "is 1/22 of what published jobs of this size have",
    "failures.mtbf=10 years": "is 4,000 times what published jobs of this size have (22.1 h,",
    "cluster.gpu_price=300 USD/GPU-h": "is 27 times the highest price for this GPU",
    "cluster.gpu_price=0.01 USD/GPU-h": "is 1/120 of the lowest price for this GPU",
    "cluster.gpu_train=9 kW": "9 kW is 13 times the rated power of this GPU (700 W,",
    "cluster.gpu_tdp=7 W": "7 W is 1/100 of the rated power of this GPU",
    "cluster.gpus=8": "A checkpoint of 5.68 TB is 8.9 times the memory of all GPUs of this job",
    "cluster.gpus=40M": "40M is 400 times the largest job in the catalogue (100,000,",
    "cluster.gpus_per_node=1000": "1,000 is 62 times the largest node in the catalogue",
    "checkpoint.size=200 TB": "493 B a parameter is 16 times the largest published checkpoint",
    "checkpoint.bytes_per_param=140 B": "140 B a parameter is 4.5 times the largest published",
    "policy.snapshot=200 s": "Copying from each GPU at 1.73 MB/s is 1/340 of the least rate",
    "tier.setup=20 min": "20 min is 130 times the highest setup time reported (9 s,",
    "policy.interval=1 s": "1 s is 1/300 of the usual interval",
    "policy.interval=20 days": "20 days is 160 times the usual interval",
    "site.pue=3": "3 is 1.9 times the industry's average PUE (1.56,",
    "site.tariff=9 USD/kWh": "is 34 times the highest price of electricity in the catalogue",
    "site.grid_location=38400 g/kWh": "is 29 times the dirtiest grid in the catalogue",
    "tier.storage_price=23 USD/GB-month": "is 82 times the most expensive storage",
    "run.work=20 years": "is 62 times the longest run in the catalogue",
}


@pytest.mark.parametrize(("setting", "says"), DOUBTED.items())
def test_doubted(setting: str, says: str) -> None:
    found = [each.say() for each in doubts(scenario("llama31-405b-16k", setting))]
    assert says in found[0]
    assert found[0].endswith(f": check {setting.partition('=')[0]}.")
    assert len(found[0].split()) <= 36


def test_the_farthest_outside_comes_first() -> None:
    found = doubts(scenario("llama31-405b-16k", "failures.mtbf=10 years", "site.pue=3"))
    assert [each.path for each in found] == ["failures.mtbf", "site.pue"]


def test_saving_faster_than_a_save_takes() -> None:
    found = doubts(scenario("llama31-405b-16k", "policy.interval=16 s", "tier.write=20 GB/s"))
    assert [each.say() for each in found] == [
        "Saving every 16 s is 1/18 of the time that one save takes (4.73 min):"
        " check policy.interval."
    ]


def test_a_capacity_for_which_no_rate_is_known() -> None:
    found = doubts(scenario("llama31-405b-16k", tier="aws-fsx-p2-125:900PiB"))
    assert {each.path for each in found} == {"tier.capacity"}
    assert "the capacity for which this storage's rate is known" in found[0].say()


@pytest.mark.parametrize(
    "setting",
    [
        "tier.write=30 GB/s",
        "cluster.gpus=1024",
        "failures.mtbf=2 h",
        "cluster.gpu_price=2 USD/GPU-h",
        "policy.interval=10 min",
        "policy.interval=continuous",
        "tier.node_write=5 GB/s",
        "site.pue=1.1",
        "run.work=90 days",
        "checkpoint.bytes_per_param=16 B",
    ],
)
def test_not_doubted(setting: str) -> None:
    assert doubts(scenario("llama31-405b-16k", setting)) == []


def test_the_catalogue_is_not_doubted() -> None:
    for preset in catalog.ids("scenario"):
        layers = sc.layers_of(preset)
        for tier in catalog.ids("tier"):
            for case in sc.cases_of(layers, [tier]).values():
                assert doubts(case) == []


def test_every_check_knows_its_figures() -> None:
    paths = {f"{section}.{key}" for section, keys in sc.KEYS.items() for key in keys}
    assert {
        path for check in catalog.rows("plausible.csv") for path in check["figures"].split()
    } <= paths
