"""Write a checkpoint for real and read it back: rates, latencies."""

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
    scenario_layers,
    text_of,
    wanted_of,
)
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.probe import ProbeProgress


def probe(
    directory: PathText,
    *,
    size: str | None = None,
    model: str | None = None,
    ranks: int = 8,
    files: int | None = None,
    saver: str = "direct",
    rounds: int = 3,
    one_size: bool = False,
    warm_up: int = 0,
    no_read: bool = False,
    no_verify: bool = False,
    depth: int = 16,
    block: str = "4 MiB",
    pause: str = "1 s",
    record: PathText | None = None,
    meters: str = "auto",
    gpus: Gpus = "visible",
    rapl: Rapl = "auto",
    redfish: str = "",
    redfish_ca: PathText | None = None,
    redfish_insecure: bool = False,
    need: str | Sequence[str] = (),
    tell: Callable[[ProbeProgress], None] | None = None,
    catalog: Catalog | None = None,
) -> StudyResult:
    """Write a checkpoint of `size`, or as large as that of `model`, into a hidden folder of
    `directory`, read it back and take it away; `tell` hears how far that is."""
    from ckptcost.first.catalog.schema import flag_value
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.checkup import lacking_of
    from ckptcost.first.jobs.probe import ProbeRequest
    from ckptcost.first.jobs.probe import probe as probe_job
    from ckptcost.first.report.studies.probe import study_of
    from ckptcost.first.savers.base import SaverSettings

    wanted = wanted_of(gpus, rapl, None, None, redfish, redfish_ca, redfish_insecure)
    needed = needed_kinds(need)
    catalog = catalog or Catalog()
    if not str(directory):
        raise InputError("names no folder", where=Argument("directory"))
    if not 1 <= rounds <= 1000:
        raise InputError("expected 1 to 1000", where=Argument("rounds"))
    if not 0 <= warm_up <= 100:
        raise InputError("expected 0 to 100", where=Argument("warm_up"))
    block_bytes = round(flag_value(Argument("block"), text_of("block", block), "bytes"))
    asked = ProbeRequest(
        Path(directory),
        _size_bytes(size, model, catalog),
        ranks,
        files,
        saver,
        rounds,
        small=not one_size,
        read=not no_read,
        warm_up=warm_up,
        pause_s=flag_value(Argument("pause"), text_of("pause", pause), "s"),
        settings=SaverSettings(block_bytes=block_bytes, depth=depth, verify=not no_verify),
    )
    probed = probe_job(asked, meters, wanted, None if record is None else Path(record), tell)
    lacking = lacking_of(probed.measured.energies, needed)
    return StudyResult(study_of(probed, catalog), catalog, (), lacking, probed.interrupted)


def _size_bytes(size: str | None, model: str | None, catalog: Catalog) -> int:
    from ckptcost.first.catalog.schema import flag_value
    from ckptcost.first.core.size import full_bytes
    from ckptcost.first.jobs.compare import first_of

    if size is not None and model is not None:
        raise InputError(
            "says the size a second time", where=Argument("model"), remedy="give --size or --model"
        )
    if model is not None:
        catalog.get("checkpoint", model)
        layers = scenario_layers(catalog, None, None, [f"checkpoint.model={model}"])
        size_bytes = full_bytes(first_of(catalog, layers).scenario.checkpoint)
    else:
        said = "1 GB" if size is None or size == "" else text_of("size", size)
        size_bytes = flag_value(Argument("size"), said, "bytes")
    if not 1e6 <= float(size_bytes) <= 1e15:
        raise InputError("expected 1 MB to 1 PB", where=Argument("size"))
    return round(float(size_bytes))
