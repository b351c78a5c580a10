"""A store of packed runs: jobs, nodes and months rolled up."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import (
    Changes,
    PathText,
    gates_of,
    scenario_layers,
    settings_of,
    texts,
)
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog

By = Literal["job", "team", "cluster", "model", "tier", "day"]


def roll_up(
    store: PathText,
    by: By = "job",
    *,
    since: str | None = None,
    until: str | None = None,
    jobs: str | Sequence[str] = (),
    scheduler: str = "pandas",
    site: str = "",
    scenario: PathText | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    top: int = 10,
    tell: Callable[[int, int], None] | None = None,
    catalog: Catalog | None = None,
) -> StudyResult:
    """A store of packed runs as a fleet; tables groups, lines, savings, failures, tiers, days ...
    `tell` hears how many files are read, of how many."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.fleet.answer import FleetQuestion, answer_of
    from ckptcost.first.layers import files_of
    from ckptcost.first.questions.statements import is_priced, standing
    from ckptcost.first.report.frame import pandas_for

    pandas_for("rolling a fleet up", "fleet")
    first, last = _day_of("since", since), _day_of("until", until)
    gates = gates_of(require)
    catalog, settings = catalog or Catalog(), settings_of(changes)
    named = None if scenario is None else os.fspath(scenario)
    resolved, files = None, []
    if site or named or settings:
        files = files_of(scenario_layers(catalog, named, None, ())) if named else []
        resolved = standing(catalog, named, settings, site)
    asked = FleetQuestion(
        os.fspath(store),
        by,
        first,
        last,
        tuple(texts(jobs)),
        scheduler,
        top,
        resolved,
        is_priced(named, settings),
        bool(named),
    )
    return StudyResult(answer_of(asked, gates, tell), catalog, files)


def _day_of(name: str, day: str | None) -> str:
    if day == "":
        remedy = "e.g. 2026-11-01, or leave it out"
        raise InputError("names no day", where=Argument(name), remedy=remedy)
    return day or ""
