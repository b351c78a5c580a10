"""`ckptcost catalog`."""

from __future__ import annotations

import json

import pytest
from whole_json import whole

KINDS = [
    "checkpoint",
    "tier",
    "cluster",
    "site",
    "scenario",
    "claim",
    "accelerator",
    "grid",
    "source",
]


def test_the_kinds_and_how_many(cli):
    done = cli("catalog")
    assert (done.code, done.err) == (0, "")
    counts = {line.split()[0]: int(line.split()[1]) for line in done.out.splitlines()}
    assert list(counts) == KINDS
    assert all(counts.values())
    assert whole(cli("catalog", "-f", "json").out) == counts


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_lists_every_entry(cli, kind):
    from ckptcost.first.catalog.store import Catalog

    done = cli("catalog", kind)
    assert (done.code, done.err) == (0, "")
    ids = Catalog().ids(kind)
    for name in ids:
        assert name in done.out
    found = whole(cli("catalog", kind, "-f", "json").out)
    assert sorted(found if isinstance(found, dict) else [entry["id"] for entry in found]) == sorted(
        ids
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_plural_does_too(cli, kind):
    assert cli("catalog", kind + "s") == cli("catalog", kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_can_be_shown(cli, kind):
    from ckptcost.first.catalog.store import Catalog

    ids = Catalog().ids(kind)
    for name in ids if kind != "grid" else ids[::10]:
        for form in ("text", "json"):
            done = cli("catalog", kind, name, "--sources", "-f", form)
            assert (done.code, done.err) == (0, ""), name
            assert done.out.endswith("\n")
            if form == "json":
                whole(done.out)


def test_one_entry_with_its_pedigree(cli):
    out = cli("catalog", "tier", "nas-hdd", "--sources").out
    assert "200 MB/s" in out
    assert "vendor" in out
    assert "ddn-2025-07" in out
    assert "15 kWh to 20 kWh" in out


def test_an_accelerator(cli):
    found = whole(cli("catalog", "accelerator", "h100-sxm", "-f", "json", "--sources").out)
    assert found["figures"]["gpu_tdp"]["value"] == 700.0
    assert set(found["sources"]) >= set(found["figures"]["gpu_tdp"]["source"])
    assert all(found["sources"].values()), "every source named is in the bibliography"


def test_ranges_are_in_the_unit_of_the_value(cli):
    """`write  30 GB/s   20G-40G bytes_per_s` makes a reader convert."""
    line = next(
        line
        for line in cli("catalog", "tier", "ddn-exascaler").out.splitlines()
        if line.startswith("write")
    )
    assert "bytes_per_s" not in line, line
    assert "GB/s" in line.split("30 GB/s", 1)[1], line


def test_every_source_is_used_or_at_least_printed(cli):
    out = cli("catalog", "source").out
    assert cli("catalog", "--sources").out == out
    assert "ddn-2025-07" in out


def test_a_source_without_an_address_says_why(cli):
    lines = cli("catalog", "source").out.splitlines()
    heads = [n for n, line in enumerate(lines) if not line.startswith(" ")]
    for n in heads:
        assert lines[n + 1].startswith(("    https://", "    no address: ")), lines[n]
    assert "no address: our own" in cli("catalog", "source", "house").out


def test_a_price_is_shown_with_its_date(cli):
    out = cli("catalog", "tier", "aws-fsx-p2-125").out
    assert "storage_price: as of 2026-07-13; " in out
    found = whole(cli("catalog", "tier", "aws-fsx-p2-125", "-f", "json").out)["figures"]
    assert found["storage_price"]["date"] == "2026-07-13"
    assert found["capacity"]["date"] is None
    report = whole(cli("model", "--tier", "aws-s3-standard", "-f", "json").out)
    factors = {f["id"]: f for f in report["statements"][0]["factors"]}
    assert factors["tier.storage_price"]["note"].startswith("as of 2024-07-01; ")


def test_scenarios_are_shown_as_files(cli):
    assert 'id = "gpt4-scale-2tb"' in cli("catalog", "scenario", "gpt4-scale-2tb").out
    assert (
        whole(cli("catalog", "scenario", "gpt4-scale-2tb", "-f", "json").out)["policy"]["saves"]
        == 100
    )


def test_the_overlays_entry_is_there(cli, tmp_path, monkeypatch):
    folder = tmp_path / "models" / "tiers"
    folder.mkdir(parents=True)
    (folder / "ours.toml").write_text('id = "ours"\nname = "Our storage"\nwrite = "12 GB/s"\n')
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    assert "ours" in cli("catalog", "tier").out
    found = whole(cli("catalog", "tier", "ours", "-f", "json", "--sources").out)
    assert found["figures"]["write"]["basis"] == "user"
    assert found["file"].endswith("models/tiers/ours.toml")


def test_one_broken_overlay_entry_names_itself(cli, tmp_path, monkeypatch):
    folder = tmp_path / "models" / "tiers"
    folder.mkdir(parents=True)
    (folder / "ours.toml").write_text('id = "ours"\nname = "Our storage"\nwrite = "12 GB"\n')
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    done = cli("catalog", "tier")
    assert (done.code, done.out) == (2, "")
    assert "ours.toml: write: '12 GB' is bytes" in done.err
    assert cli("model").code == 0, "a job that does not use it still runs"


def test_into_a_file(cli, tmp_path):
    target = tmp_path / "tiers.json"
    assert cli("catalog", "tier", "-f", "json", "-o", str(target)).out == ""
    assert json.loads(target.read_text())
