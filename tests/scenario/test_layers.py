"""Defaults < entries < presets and files < flags, and what a later layer keeps of an earlier."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcost.scenario import resolve as sc

from .jobs import job, scenario, value


def test_later_layers_win(tmp_path: Path) -> None:
    base = job(tmp_path, name="base.toml")
    top = job(tmp_path, 'extends = "base.toml"\n[cluster]\ngpus = 256\n', "top.toml")
    assert value(scenario(base), "cluster.gpus") == 512
    assert value(scenario(top), "cluster.gpus") == 256
    assert value(scenario(top, "cluster.gpus=64"), "cluster.gpus") == 64
    assert value(scenario(top), "cluster.gpu_tdp") == 700  # of the entry behind it


def test_a_figure_keeps_its_pedigree(tmp_path: Path) -> None:
    found = scenario(job(tmp_path), "tier.setup=2 s").figures()
    assert (found["tier.setup"].basis, found["tier.setup"].origin) == ("user", "--set")
    assert found["cluster.gpus"].origin == "job.toml"
    assert found["cluster.gpu_tdp"].source == "epoch-ml-hardware"
    assert found["failures.gpu_rate"].origin == sc.DEFAULTS


def test_another_entry_forgets_what_was_said_of_the_first() -> None:
    found = scenario("opt-175b", tier="flash-shared")
    assert found.names["tier"] == "Flash-optimised shared storage"
    assert value(found, "tier.write") == 167.5e9


@pytest.mark.parametrize("where", ["file", "flag"])
def test_another_cluster_keeps_the_gpus_that_were_asked_for(tmp_path: Path, where: str) -> None:
    if where == "file":
        mine = job(tmp_path, 'extends = "llama31-405b-16k"\n[cluster]\ngpus = 4096\n')
        found = scenario(mine, "cluster.id=gb200-nvl72")
    else:
        found = scenario("llama31-405b-16k", "cluster.gpus=4096", "cluster.id=gb200-nvl72")
    assert value(found, "cluster.gpus") == 4096
    assert value(found, "cluster.gpus_per_node") == 4


def test_another_cluster_brings_its_own_gpus() -> None:
    found = scenario("llama31-405b-16k", "cluster.id=gb200-nvl72")
    assert value(found, "cluster.gpus") == 72


def test_a_write_rate_of_ones_own_ends_the_vendor_claim() -> None:
    assert scenario("gpt4-scale-2tb", tier="nas-hdd").claims
    found = scenario("gpt4-scale-2tb", "tier.write=1 GB/s", tier="nas-hdd")
    assert found.claims == ()
    assert found.names["tier"] == "Traditional NAS, hard drives, rate as given"


def test_a_write_rate_replaces_a_measured_time_and_keeps_the_rest() -> None:
    found = scenario("bloom-176b", "tier.write=10 GB/s")
    assert not {"tier.save_time", "tier.load_time"} & found.figures().keys()
    assert value(found, "tier.read") == value(found, "tier.write") == 10e9
    assert value(found, "tier.setup") == 5


def test_a_rate_of_ones_own_has_no_client_count_of_another() -> None:
    measured = scenario("llama31-405b-16k", tier="aws-s3-standard").figures()["tier.clients"]
    assert (measured.value, measured.high, measured.basis) == (8, 16, "measured")
    own = scenario("llama31-405b-16k", "tier.node_write=5 GB/s", tier="aws-s3-standard")
    assert own.figures()["tier.clients"].basis == "assumed"
    assert value(own, "tier.clients") == 1


def test_cadences_replace_one_another(tmp_path: Path) -> None:
    found = scenario(job(tmp_path), "policy.saves=100")
    assert "interval" not in found.said["policy"]


def test_mtbf_replaces_rates_and_a_rate_replaces_mtbf(tmp_path: Path) -> None:
    own = job(tmp_path, 'extends = "opt-175b"\n[failures]\nmtbf = "5 h"\n')
    assert "rate" not in scenario(own).said["failures"]
    assert "mtbf" not in scenario(own, "failures.rate=4 /1000 node-days").said["failures"]


def test_who_knows_their_rate_means_it_as_it_is() -> None:
    said = scenario("small-8b", "failures.rate=4 /1000 node-days").said["failures"]
    assert not {"rate_factor", "size_exponent", "gpu_rate"} & said.keys()


@pytest.mark.parametrize(
    ("setting", "path", "text", "si"),
    [
        ("policy.interval=continuous", "policy.interval", "continuous", 0.0),
        ("policy.keep_last=all", "policy.keep_last", "all", float("inf")),
    ],
)
def test_words_in_place_of_numbers(setting: str, path: str, text: str, si: float) -> None:
    figure = scenario("llama31-405b-16k", setting).figures()[path]
    assert (figure.text, figure.value) == (text, si)


def test_comparisons_give_a_case_each() -> None:
    layers = sc.layers_of("gpt4-scale-2tb")
    assert len(sc.cases_of(layers)) == 4 * len(layers[0].compare["saves"])
    assert list(sc.cases_of(layers, ["vast"], [10, 1])) == ["vast, 10 saves", "vast, 1 save"]
    assert list(sc.cases_of([*layers, sc.layer_of_flags(["policy.interval=1 h"])])) == [
        "nas-hdd",
        "generic-pfs",
        "ddn-exascaler-20",
        "ddn-exascaler-40",
    ]


def test_a_tier_without_id_is_called_by_its_rate(tmp_path: Path) -> None:
    own = scenario(job(tmp_path))
    assert sc.tier_of(own) == "25 GB/s"
    figure = own.figures()["tier.write"].at(5e9)
    assert sc.tier_of(own.with_figure("tier.write", figure)) == "5 GB/s"


def test_a_tier_sold_by_its_size() -> None:
    found = scenario("llama31-405b-16k", tier="aws-fsx-p2-125:200TiB")
    assert value(found, "tier.capacity") == 200 * 2**40
    assert found.names["tier"].endswith(", 200TiB")


def test_own_catalogue_lies_over_the_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models" / "tiers"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('name = "Mine"\n[write]\nvalue = "7 GB/s"\n', "utf-8")
    monkeypatch.setattr("ckptcost.scenario.catalog.OWN", tmp_path)
    found = scenario("small-8b", tier="mine")
    assert (found.names["tier"], value(found, "tier.write")) == ("Mine", 7e9)
    assert found.figures()["tier.write"].source == "mine.toml"
