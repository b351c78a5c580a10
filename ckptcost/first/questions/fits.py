"""Will the checkpoints that are kept fit into a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import Changes, PathText, scenario_layers
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def fits(
    directory: PathText,
    scenario: PathText | None = None,
    *,
    tier: str | None = None,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyResult:
    """Whether the checkpoints that are kept, and those being written, have room in a folder:
    `question["fits"]`."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.model import one_of
    from ckptcost.first.jobs.room import look
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.room import study_of

    catalog = catalog or Catalog()
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise InputError(
            "is no folder",
            where=Argument("directory", os.fspath(directory)),
            remedy="name the folder that checkpoints go to",
        )
    layers = scenario_layers(catalog, scenario, interval, changes)
    study = study_of(look(Path(directory), one_of(catalog, layers, tier)))
    return StudyResult(study, catalog, files_of(layers))
