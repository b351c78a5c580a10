"""What this machine uses for a while, by meter and by checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import (
    Gpus,
    PathText,
    Rapl,
    needed_kinds,
    seconds_of,
    wanted_of,
)
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.report.study import Study
    from ckptcost.first.runs.recorder import Recorder

YEAR_S = 366.0 * 86400


def measure(
    length: str | None = None,
    *,
    record: PathText | None = None,
    meters: str = "auto",
    gpus: Gpus = "visible",
    rapl: Rapl = "auto",
    directory: PathText | None = None,
    pid: int | None = None,
    redfish: str = "",
    redfish_ca: PathText | None = None,
    redfish_insecure: bool = False,
    need: str | Sequence[str] = (),
    tell: Callable[[Recorder], None] | None = None,
) -> StudyResult:
    """What this machine uses for a while, e.g. "30 s", by meter and by checkpoint window; 10 s
    where nothing is said. `tell` is called a few times a second and may raise to end it."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.checkup import lacking_of
    from ckptcost.first.jobs.measure import measure as measure_job
    from ckptcost.first.report.studies.measure import study_of

    length_s = length_of(length, 10.0, meters)
    wanted = wanted_of(gpus, rapl, directory, pid, redfish, redfish_ca, redfish_insecure)
    needed = needed_kinds(need)
    if record is not None and (meters.startswith("replay:") or not str(record)):
        raise InputError(
            "keeps readings of meters, in a folder",
            where=Argument("record"),
            remedy="name a folder, and no replay",
        )
    folder = None if record is None else Path(record)
    measured = measure_job(meters, wanted, length_s, folder, tell)
    return StudyResult(study_of(measured), Catalog(), (), lacking_of(measured.energies, needed))


def baseline(
    length: str | None = None,
    *,
    anyway: bool = False,
    meters: str = "auto",
    gpus: Gpus = "visible",
    rapl: Rapl = "auto",
    directory: PathText | None = None,
    pid: int | None = None,
    redfish: str = "",
    redfish_ca: PathText | None = None,
    redfish_insecure: bool = False,
    need: str | Sequence[str] = (),
) -> StudyResult:
    """Learn the idle power of this machine, in 30 s where nothing is said, and keep it with its
    date; nothing else may run on it, unless `anyway`."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.checkup import lacking_of
    from ckptcost.first.jobs.measure import learn
    from ckptcost.first.report.studies.baseline import study_of

    length_s = length_of(length, 30.0, meters)
    wanted = wanted_of(gpus, rapl, directory, pid, redfish, redfish_ca, redfish_insecure)
    needed = needed_kinds(need)
    learned = learn(meters, wanted, length_s, anyway)
    lacking = lacking_of(learned.measured.energies, needed)
    return StudyResult(study_of(learned), Catalog(), (), lacking)


def length_of(length: str | None, otherwise_s: float, meters: str) -> float | None:
    """None: a replayed run is as long as it is."""
    if length is None:
        return None if meters.startswith("replay:") else otherwise_s
    return seconds_of("length", length, 0.1, YEAR_S, "0.1 s to a year")


def tells_joules(study: Study) -> bool:
    """Whether any part or whole of the machine has joules in it."""
    domains = next((table.rows for table in study.tables if table.id == "domains"), [])
    return any(row["role"] != "detail" and row["joules"] is not None for row in domains)
