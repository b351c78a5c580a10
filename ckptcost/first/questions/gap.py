"""A recorded run beside the model of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ckptcost.first.questions.parameters import Changes, PathText, scenario_layers
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def gap(
    run: PathText,
    scenario: PathText | None = None,
    *,
    host: str = "",
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyResult:
    """A recorded run (folder, file, "last" or the beginning of an id) held against a scenario, on
    the run's own machine."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.gap import held_against
    from ckptcost.first.runs.store import find

    catalog = catalog or Catalog()
    layers = scenario_layers(catalog, scenario, interval, changes)
    study = held_against(catalog, find(os.fspath(run)), layers, host)
    return StudyResult(study, catalog, files_of(layers))
