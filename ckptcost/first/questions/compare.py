"""Scenarios side by side, with absolute and relative differences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import (
    Changes,
    PathText,
    draws_of,
    gates_of,
    paths,
    scenario_layers,
    texts,
)
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def compare(
    scenarios: PathText | Sequence[PathText] | None = None,
    *,
    variants: str | Sequence[str] = (),
    interval: str | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> StudyResult:
    """Scenarios side by side, or one and its variants, such as "tier.id=nas-hdd,
    policy.mode=async"."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.core.draws import SAMPLES
    from ckptcost.first.jobs.compare import LETTERS, variant_layers
    from ckptcost.first.jobs.compare import compare as compare_job
    from ckptcost.first.jobs.model import judged_cases
    from ckptcost.first.layers import DEFAULT_SCENARIO, files_of
    from ckptcost.first.report.studies.compare import study_of

    gates = gates_of(require)
    catalog = catalog or Catalog()
    stacks = [
        (os.path.basename(name), scenario_layers(catalog, name, interval, changes))
        for name in paths(scenarios) or [DEFAULT_SCENARIO]
    ]
    variants = texts(variants)
    _check_number(len(stacks), len(variants))
    stacks += [(text, variant_layers(stacks[0][1], text)) for text in variants]
    found = compare_job(catalog, stacks, draws_of(draws) or SAMPLES)
    verdicts = [
        verdict._replace(of=f"{letter}: {name}")
        for letter, name, case in zip(LETTERS, found.names, found.cases, strict=False)
        for verdict in judged_cases(gates, [case])
    ]
    files = dict(pair for _, layers in stacks for pair in files_of(layers))
    return StudyResult(study_of(found, verdicts), catalog, list(files.items()))


def _check_number(scenarios: int, variants: int) -> None:
    if variants and scenarios > 1:
        raise InputError(
            "--with varies one scenario, and several are named",
            where=Argument("variants"),
            remedy="name one, or write the variants as files",
        )
    if not variants and scenarios < 2:
        remedy = 'name two, or a variant: ckptcost compare -s SCENARIO --with "tier.id=nas-hdd"'
        raise InputError("one scenario is nothing to compare", where="compare", remedy=remedy)
