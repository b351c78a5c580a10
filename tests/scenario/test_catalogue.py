"""The catalogue: figures have sources and limits, presets the failures of their jobs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from ckptcost.plan import draws, evaluate
from ckptcost.scenario import catalog
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.figures import BASES, Figure
from ckptcost.scenario.schema import SHARED_STORAGE

from .jobs import scenario

KINDS = ("checkpoint", "tier", "cluster", "site", "accelerator", "grid")
PRESETS = catalog.ids("scenario")
FAILURES = {row["id"]: row for row in catalog.rows("failure_rates.csv")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_has_a_basis_and_a_source(kind: str) -> None:
    without = []
    for name in catalog.ids(kind):
        for key, figure in catalog.get(kind, name).said.items():
            if isinstance(figure, Figure):
                known = all(each in catalog.sources() for each in figure.source.split("; "))
                if figure.basis not in BASES or not known:
                    without.append((name, key, figure.basis, figure.source))
    assert without == []


def test_every_file_of_data_has_its_sources() -> None:
    files = [p.name for p in (catalog.SHIPPED / "data").glob("*.csv")]
    unknown = {
        (file, source.strip())
        for file in files
        for row in catalog.rows(file)
        for source in row.get("source", "").split(";")
        if source.strip() and source.strip() not in catalog.sources()
    }
    assert unknown == set()


def limit(tier: dict[str, Any]) -> str:
    """What bounds the rate of a tier that all nodes share."""
    for key in ("write", "save_time", "known_capacity", "clients"):
        if key in tier:
            return key
    return ""


def test_every_shared_tier_says_how_far_its_rate_is_known() -> None:
    by_limit: dict[str, list[str]] = {}
    for name in catalog.ids("tier"):
        entry = catalog.get("tier", name)
        if entry.said["boundary"] in SHARED_STORAGE:
            by_limit.setdefault(limit(entry.said), []).append(name)
    assert {"aws-s3-standard", "gcs-standard", "aws-ebs-gp3"} <= {*by_limit["clients"]}
    assert (len(by_limit["clients"]), len(by_limit["known_capacity"])) == (10, 20)
    assert "" not in by_limit


def test_a_calibrated_shared_tier_is_known_for_one_client() -> None:
    found = scenario("small-8b", "tier.node_write=2.97 GB/s", "tier.survives=site", tier="nas-hdd")
    assert "clients" not in found.said["tier"]  # the rate of the whole is known
    own = sc.layer_of({"tier": {"node_write": "2.97 GB/s"}}, "mine.toml")
    bare = [sc.Layer(e.label, {**e.said, "tier": {}}) for e in sc.layers_of("opt-175b")]
    tier = sc.resolve([*bare, own]).said["tier"]
    assert (tier["clients"].value, tier["clients"].basis) == (1, "assumed")
    assert (tier["scaling"].low, tier["scaling"].value) == (0, 1)


def test_vendors_energies_are_never_inputs() -> None:
    keys = ("write_energy", "active_power")
    tiers = (catalog.get("tier", name).said for name in catalog.ids("tier"))
    energies = [tier[key] for tier in tiers for key in keys if key in tier]
    energies += [sc.default_figure("tier", key) for key in ("usual_energy", "usual_exponent")]
    assert all(each.basis != "vendor" for each in energies)
    assert not any("ddn" in each.source or "sdc" in each.source for each in energies)


# --- failures of presets ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "row", "days"),
    [
        ("bloom-176b", "bloom-384", 4.67),
        ("opt-175b", "opt-175b-992", 13.3 / 24),
        ("llama31-405b-16k", "llama3-16384", 3.093 / 24),
    ],
)
def test_a_preset_fails_as_often_as_its_own_job_did(preset: str, row: str, days: float) -> None:
    found = scenario(preset)
    w = draws.worlds([found])
    rate = evaluate.evaluate(w)[0].plan.rate.item()
    assert float(FAILURES[row]["gpus"]) == w.cluster.gpus.item()
    assert 1 / rate / 86400 == pytest.approx(days, rel=5e-3)
    own = {"rate", "rate_factor"} & found.said["failures"].keys()
    figure = found.said["failures"]["rate_factor" if "rate_factor" in own else "rate"]
    assert figure.basis in ("measured", "derived")
    assert figure.high / figure.low < 2.1  # the chance in a count, not the scatter of all jobs


def test_no_preset_is_left_with_the_scatter_of_all_jobs_where_its_own_rate_is_published() -> None:
    published = {row["id"].split("-")[0] for row in FAILURES.values() if row["fit"] == "yes"}
    wide = [
        preset
        for preset, (name, row) in product(PRESETS, FAILURES.items())
        if name.split("-")[0] in preset.replace("llama31", "llama3")
        and row["fit"] == "yes"
        and (found := scenario(preset).said["failures"].get("rate_factor"))
        and found.high / found.low > 2.1
    ]
    assert {"bloom", "opt", "llama3"} <= published
    assert wide == []
