"""Fit storage and power to runs; a tier that `model` then uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.questions.parameters import PathText, paths
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.jobs.measured import Measured


def calibrate(
    runs: PathText | Sequence[PathText],
    entry: str,
    *,
    name: str = "",
    dry_run: bool = False,
    force: bool = False,
) -> StudyResult:
    """Fit recorded runs together, and write what they say into your folder of the catalogue as the
    tier and the cluster `id`, unless `dry_run`; `lacking` where there is nothing to fit."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.calibrate import calibrate as calibrate_job
    from ckptcost.first.jobs.calibrate_files import checked_id, checked_name, install, texts_of
    from ckptcost.first.report.studies.calibrate import study_of

    entry, name = checked_id(entry), checked_name(name)
    seen = [each for run in paths(runs) for each in _hosts_of_run(run)]
    found = calibrate_job(seen, entry, name)
    kinds = list(texts_of(found))
    written = [] if dry_run else [str(file) for file in install(found, force=force)]
    lacking = [] if kinds else ["write rate", "watts of a GPU"]
    return StudyResult(study_of(found, kinds, written), Catalog(), (), lacking)


def _hosts_of_run(text: str) -> list[Measured]:
    """A run, as each of its hosts saw it."""
    from ckptcost.first.jobs.measure import reviewed
    from ckptcost.first.runs.store import find

    path = find(text, of_jobs=False)  # a probe is recorded to be calibrated from
    first = reviewed(path)
    others = [host for host in first.run.hosts if host != first.energies.node.host]
    return [first, *(reviewed(path, host=host) for host in others)]
