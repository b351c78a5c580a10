"""How early before the wall limit the last save must begin."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import Changes, PathText, scenario_layers
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def lead(
    scenario: PathText | None = None,
    *,
    run: PathText | None = None,
    tier: str | None = None,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyResult:
    """How early before the end the last save must begin: of a scenario, or of a recorded `run`."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.lead import of_run, of_scenario
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.lead import study_of

    catalog = catalog or Catalog()
    if run is not None:
        from ckptcost.first.jobs.measure import reviewed
        from ckptcost.first.questions.statements import find_run

        said = {"scenario": scenario, "interval": interval, "changes": changes, "tier": tier}
        if wrong := [name for name, value in said.items() if value]:
            raise InputError("is said of a scenario, not of a run", where=Argument(wrong[0]))
        kept = find_run(os.fspath(run))
        study = study_of(of_run(reviewed(kept.path, run_id=kept.run)), kept.run)
        return StudyResult(study, catalog)
    from ckptcost.first.jobs.model import one_of

    layers = scenario_layers(catalog, scenario, interval, changes)
    resolved = one_of(catalog, layers, tier)
    study = study_of(of_scenario(resolved), resolved.name or "scenario")
    return StudyResult(study, catalog, files_of(layers))
