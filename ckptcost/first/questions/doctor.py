"""What can be measured here, and what would help with the rest."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.first.questions.parameters import (
    Gpus,
    PathText,
    Rapl,
    needed_kinds,
    seconds_of,
    wanted_of,
)
from ckptcost.first.questions.results import StudyResult


def doctor(
    length: str = "2 s",
    *,
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
    """What can be measured here, and for the rest the reason and what would help; every meter is
    tried for `length`."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.checkup import checkup, missing_kinds
    from ckptcost.first.jobs.instruments import instruments
    from ckptcost.first.report.studies.checkup import study_of

    wanted = wanted_of(gpus, rapl, directory, pid, redfish, redfish_ca, redfish_insecure)
    length_s = seconds_of("length", length, 0.5, 600.0, "0.5 s to 10 min")
    needed = needed_kinds(need)
    seen = checkup(instruments(meters, wanted, length_s), length_s)
    return StudyResult(study_of(seen), Catalog(), (), missing_kinds(seen, needed))
