"""A recorded run: what its checkpoints took, and how often the job should save."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import Changes, PathText, needed_kinds, settings_of
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.jobs.measure import Progress

MOST_BY_THE_WAY_BYTES = 20_000_000
"""a recorded run of up to so much is evaluated in about a second"""


def review(
    run: PathText,
    *,
    host: str = "",
    gpus: float | None = None,
    usd_per_gpu_hour: float | None = None,
    mtbf: str = "",
    site: str = "",
    changes: Changes = (),
    directory: PathText | None = None,
    need: str | Sequence[str] = (),
    tell: Progress | None = None,
) -> StudyResult:
    """A recorded run (folder, file, "last" or the beginning of an id); with the `gpus` of its job
    also what a save costs and how often to save. `tell` hears how far it is."""
    from ckptcost.first.jobs.measure import reviewed
    from ckptcost.first.questions.statements import find_run

    needed = needed_kinds(need)
    kept = find_run(os.fspath(run), directory)
    if gpus is None:
        for name, said in (("usd_per_gpu_hour", usd_per_gpu_hour), ("mtbf", mtbf)):
            if said:
                raise InputError(
                    "says how often to save, of a job",
                    where=Argument(name),
                    remedy="give --gpus too",
                )
        return of_path(kept.path, host=host, run_id=kept.run, need=needed, tell=tell)
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.advice import AdvisedJob, advise, rhythm_of
    from ckptcost.first.jobs.checkup import lacking_of
    from ckptcost.first.report.studies.advice import with_advice
    from ckptcost.first.report.studies.measure import study_of

    measured = reviewed(kept.path, host=host, run_id=kept.run, tell=tell)
    catalog = Catalog()
    job = AdvisedJob(gpus, usd_per_gpu_hour, mtbf, site, tuple(settings_of(changes)))
    study = with_advice(study_of(measured), advise(catalog, rhythm_of(measured), job))
    return StudyResult(study, catalog, (), lacking_of(measured.energies, needed))


def of_path(
    path: str | Path,
    *,
    host: str = "",
    run_id: str = "",
    need: Sequence[str] = (),
    tell: Progress | None = None,
) -> StudyResult:
    """A recorded run from where it lies."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.checkup import lacking_of
    from ckptcost.first.jobs.measure import reviewed
    from ckptcost.first.report.studies.measure import study_of

    seen = reviewed(path, host=host, run_id=run_id, tell=tell)
    return StudyResult(study_of(seen), Catalog(), (), lacking_of(seen.energies, need))


def headline_of(folder: str | Path) -> tuple[str, str]:
    """What the saves of a recorded run were, in one line, or why there are none; empty where it is
    too large to be looked at by the way."""
    from ckptcost.first.jobs.advice import rhythm_of
    from ckptcost.first.jobs.measure import reviewed
    from ckptcost.first.report.studies.advice import headline
    from ckptcost.first.report.studies.measure_saves import merged_briefly, nothing_found

    parts = [Path(folder)] if Path(folder).is_file() else [*Path(folder).iterdir()]
    if sum(part.stat().st_size for part in parts if part.is_file()) > MOST_BY_THE_WAY_BYTES:
        return "", ""
    measured = reviewed(folder)
    try:
        return headline(rhythm_of(measured)) + merged_briefly(measured), ""
    except InputError:
        return "", nothing_found(measured)
