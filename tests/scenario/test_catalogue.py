"""The whole catalogue: its entries can be read, have sources, and make jobs that can be billed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
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
    assert sorted(by_limit["clients"]) == [
        "aws-ebs-gp3",
        "aws-ebs-io2",
        "aws-ebs-st1",
        "aws-s3-express",
        "aws-s3-standard",
        "coreweave-object-storage",
        "gcp-hyperdisk-extreme",
        "gcp-pd-ssd",
        "gcs-standard",
        "oci-object-storage",
    ]
    assert len(by_limit["known_capacity"]) == 20
    assert "" not in by_limit


def test_a_tier_inside_the_nodes_has_no_limit() -> None:
    found = scenario("llama31-405b-16k", tier="local-nvme").said["tier"]
    assert not {"clients", "known_capacity", "scaling", "share"} & found.keys()


def test_a_calibrated_shared_tier_is_known_for_one_client() -> None:
    found = scenario("small-8b", "tier.node_write=2.97 GB/s", "tier.survives=site", tier="nas-hdd")
    assert "clients" not in found.said["tier"]  # the rate of the whole is known
    own = sc.layer_of({"tier": {"node_write": "2.97 GB/s"}}, "mine.toml")
    bare = [sc.Layer(e.label, {**e.said, "tier": {}}) for e in sc.layers_of("opt-175b")]
    tier = sc.resolve([*bare, own]).said["tier"]
    assert (tier["clients"].value, tier["clients"].basis) == (1, "assumed")
    assert (tier["scaling"].low, tier["scaling"].value) == (0, 1)


def test_vendors_energies_are_never_inputs() -> None:
    for name in catalog.ids("tier"):
        said = catalog.get("tier", name).said
        energies = [said[key] for key in ("write_energy", "active_power") if key in said]
        assert all(each.basis != "vendor" for each in energies)
        assert not any("ddn" in each.source or "sdc" in each.source for each in energies)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_tier_in_every_preset_can_be_billed(preset: str) -> None:
    """Energy and dollars of all tiers, in one call."""
    layers = sc.layers_of(preset)
    cases = [next(iter(sc.cases_of(layers, [tier]).values())) for tier in catalog.ids("tier")]
    with np.errstate(all="ignore"):
        outcome, _ = evaluate.evaluate(draws.worlds(cases))
        totals = [outcome.bill.total(quantity) for quantity in ("energy", "cost")]
    assert all(np.all(total > 0) for total in totals)


@pytest.mark.parametrize(
    ("section", "name"),
    [("cluster", each) for each in catalog.ids("cluster")]
    + [("site", each) for each in catalog.ids("site")]
    + [("site.grid", each) for each in ("FRA", "DEU", "POL")],
)
def test_clusters_and_sites_resolve(section: str, name: str) -> None:
    setting = f"{section}={name}" if "." in section else f"{section}.id={name}"
    found = scenario("small-8b", setting)
    assert found.names[section.partition(".")[0]]
    assert all(reason for reason in found.lacking.values())


@pytest.mark.parametrize("name", catalog.ids("accelerator"))
def test_accelerators_resolve(name: str) -> None:
    job = [sc.layer_of({"cluster": {"accelerator": name, "gpus": 64}}, "--set")]
    plain = [sc.Layer(e.label, {**e.said, "cluster": {}}) for e in sc.layers_of("opt-175b")]
    found = sc.resolve([*plain, *job])
    assert ("cluster.gpu_train" in found.figures()) != ("cluster.gpu_train" in found.lacking)


@pytest.mark.parametrize("model", catalog.ids("checkpoint"))
def test_checkpoints_resolve(model: str) -> None:
    found = scenario("small-8b", f"checkpoint.model={model}").said["checkpoint"]
    assert {"size", "params"} & found.keys()


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
