"""Every tier, model, site and scenario that ships gives kWh and USD, as shipped."""

from __future__ import annotations

import json

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.cli.main import main
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.layers import layers_of, set_layer
from ckptcost.first.scenario import Resolved, ranges_of, resolve

CATALOG = Catalog()
TIB = 2.0**40


def resolved(*settings: str, scenario: str = "gpt4-scale-2tb") -> Resolved:
    return resolve(
        CATALOG,
        [
            set_layer(["policy.saves=100", "tier.id=superpod-best"]),
            *layers_of(CATALOG, scenario),
            set_layer(settings),
        ],
    )


def has_sums(found: Resolved) -> None:
    outcome = evaluate(found.scenario)
    for bill in (outcome.run, outcome.one_save):
        for quantity in ("energy_j", "cost_usd"):
            assert not bill.unknown(quantity), quantity
            assert bill.total(quantity) > 0, quantity


@pytest.mark.parametrize("name", CATALOG.ids("tier"))
def test_tier(name):
    found = resolved(f"tier.id={name}")
    has_sums(found)
    local = found.scenario.tier.boundary in ("drive", "node")
    assert local or "tier.usd_per_byte_s" in {i.field for i in found.inputs}


@pytest.mark.parametrize("name", CATALOG.ids("checkpoint"))
def test_model(name):
    has_sums(resolved(f"checkpoint.model={name}", "tier.id=superpod-best"))


@pytest.mark.parametrize("name", CATALOG.ids("site"))
def test_site(name):
    has_sums(resolved(f"site.id={name}"))


@pytest.mark.parametrize("name", CATALOG.ids("scenario"))
def test_scenario(name):
    has_sums(resolved(scenario=name))


@pytest.mark.parametrize(
    "tier", ["aws-s3-standard", "aws-fsx-p2-125", "aws-fsx-p2-125:200TiB", "azure-blob"]
)
def test_on_the_command_line(capsys, tier):
    assert main(["model", "--tier", tier, "--format", "json"]) == 0
    cases = json.loads(capsys.readouterr().out)["tables"]["cases"]["rows"]
    assert cases
    assert all(case["run_energy_kwh"] > 0 for case in cases)
    assert all(case["run_cost_usd"] > 0 for case in cases)


def test_a_template_has_a_size_with_a_range():
    found = resolved("tier.id=aws-fsx-p2-125")
    low, value, high = ranges_of(found)["tier.capacity_bytes"]
    assert low < value < high
    assert found.scenario.tier.capacity_bytes == value


@pytest.mark.parametrize("spelled", ["200TiB", "200 TiB", " 0.1953125PiB"])
def test_a_name_says_the_capacity(spelled):
    found = resolved(f"tier.id=aws-fsx-p2-125:{spelled}")
    assert found.scenario.tier.capacity_bytes == 200 * TIB
    assert "tier.capacity_bytes" not in ranges_of(found)
    assert spelled.strip() in found.names["tier"]


def test_a_named_capacity_sets_rate_and_price():
    one, two = (
        evaluate(resolved(f"tier.id=aws-fsx-p2-125:{n}TiB", "tier.setup=0 s").scenario)
        for n in (100, 200)
    )
    assert one.cycle.stall_s == pytest.approx(2 * two.cycle.stall_s, rel=1e-12)
    rents = [o.run.line("retention").cost_usd / o.wall_s for o in (one, two)]
    assert rents[1] == pytest.approx(2 * rents[0], rel=1e-12)
    assert rents[0] == pytest.approx(100 * 1024 * 0.145 / (730 * 3600), rel=1e-12)  # GiB-months


def test_a_capacity_said_later_wins():
    assert (
        resolved(
            "tier.id=aws-fsx-p2-125:200TiB", "tier.capacity=1 PiB"
        ).scenario.tier.capacity_bytes
        == 2.0**50
    )


@pytest.mark.parametrize("said", ["", "xx", "200", "-3TiB", "0 TB", "3 GB/s", "1TiB:2TiB"])
def test_no_capacity(said):
    with pytest.raises(InputError, match="is no capacity") as caught:
        resolved(f"tier.id=aws-fsx-p2-125:{said}")
    assert "200TiB" in caught.value.remedy


def test_an_unknown_tier_stays_unknown():
    with pytest.raises(UnknownName):
        resolved("tier.id=nosuch:200TiB")


def test_bloom_takes_what_its_chronicle_says():
    outcome = evaluate(resolved(scenario="bloom-176b").scenario)
    assert outcome.cycle.stall_s == pytest.approx(40.0, rel=0.01)


@pytest.mark.parametrize(
    ("tier", "gib", "write_s", "read_s"),
    [
        ("mlperf-everpure-exa-10", 15426.589, 47.2846, 62.9746),
        ("mlperf-everpure-exa-30-405b", 5292.249, 7.2028, 9.4561),
        ("mlperf-inspur-as13000g7", 911.212, 5.1318, None),
        ("mlperf-hpe-k3000", 911.212, 13.1133, 10.8816),
    ],
)
def test_a_benchmarked_tier_takes_its_durations(tier, gib, write_s, read_s):
    """Size over rate is the time that was measured, which a mean of rates undercuts."""
    figures = CATALOG.get("tier", tier).figures
    assert gib * 2**30 / figures["write"].value == pytest.approx(write_s, rel=5e-4)
    if read_s is not None:
        assert gib * 2**30 / figures["read"].value == pytest.approx(read_s, rel=5e-4)
        assert figures["read_rate_spread"].value > 0
