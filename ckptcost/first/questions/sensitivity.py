"""Which inputs decide the result, and which to measure next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError, brief
from ckptcost.first.questions.parameters import Changes, PathText, draws_of, scenario_layers
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def sensitivity(
    scenario: PathText | None = None,
    *,
    of: str = "kwh",
    top: int = 12,
    replan: bool = False,
    interval: str | None = None,
    changes: Changes = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> StudyResult:
    """Which inputs decide a result, and which to measure next; `top` rows of each table for
    people."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.compare import first_of
    from ckptcost.first.jobs.sensitivity import sensitivity as sensitivity_job
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.sensitivity import study_of

    if not 1 <= top <= 1000:
        raise InputError(
            f"{brief(top)} is no number of rows",
            where=Argument("top"),
            remedy="a whole number from 1 to 1000",
        )
    catalog = catalog or Catalog()
    layers = scenario_layers(catalog, scenario, interval, changes)
    found = sensitivity_job(first_of(catalog, layers), of, replan, draws_of(draws))
    return StudyResult(study_of(found, top), catalog, files_of(layers))
