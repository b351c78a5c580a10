"""The whole catalogue through a study: everything in it has kWh and USD."""

from __future__ import annotations

import numpy as np
import pytest

from ckptcost.advice import settled
from ckptcost.scenario import catalog
from ckptcost.scenario import resolve as sc
from ckptcost.study import Study

JOB = (
    "checkpoint.size=1 TB; tier.id=flash-shared; cluster.accelerator=h100-sxm; cluster.gpus=64;"
    " policy.interval=30 min; run.work=7 days"
)
NAMED = {"accelerator": "cluster.accelerator", "checkpoint": "checkpoint.model"}
"""what names a thing of a kind, where that is not the id of a section"""


def job(key: str, name: str) -> sc.Scenario:
    """The job with one thing of the catalogue in it."""
    section = key.partition(".")[0]
    mine = [each for each in JOB.split("; ") if not each.startswith(section)]
    if key == "cluster.accelerator":
        mine.append("cluster.gpus=64")
    return sc.resolve([sc.layer_of_flags([*mine, f"{key}={name}"])])


def billed(cases: dict[str, sc.Scenario], draws: int = 16) -> None:
    """All cases in one study, each with kWh and USD, at the stated values and in every draw."""
    study = Study(cases, draws)
    for measure in ("energy", "cost"):
        values = study.of(measure, drawn=True)
        bare = [n for n, row in zip(study.names, values, strict=True) if not np.isfinite(row).all()]
        assert bare == [], measure
        assert (values > 0).all()


@pytest.mark.parametrize("kind", [*NAMED, "tier", "cluster", "site", "grid"])
def test_everything_of_a_kind_is_billed(kind: str) -> None:
    key = "site.grid" if kind == "grid" else NAMED.get(kind, f"{kind}.id")
    billed({name: job(key, name) for name in catalog.ids(kind)})


def test_every_preset_is_billed() -> None:
    presets = {name: sc.cases_of(sc.layers_of(name)) for name in catalog.ids("scenario")}
    billed({f"{n}: {c}": settled(s) for n, cases in presets.items() for c, s in cases.items()})
