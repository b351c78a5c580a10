"""What questions take, as people write it: scenarios with changes over them, targets, meters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ckptcost.first.errors import Argument, InputError, brief

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.gates import Gate
    from ckptcost.first.layers import Layer
    from ckptcost.first.meters.found import Wanted

PathText = str | os.PathLike[str]
Changes = Mapping[str, Any] | Sequence[str]
"""{"cluster.gpus": 4096}, or texts such as "cluster.gpus=4096" in a list"""
Gpus = Literal["visible", "all"]
Rapl = Literal["auto", "powercap", "perf", "pyrapl"]


def texts(said: str | Sequence[str] | None) -> list[str]:
    """One or several as a list; None: none."""
    return [] if said is None else [said] if isinstance(said, str) else list(said)


def paths(said: PathText | Sequence[PathText] | None) -> list[str]:
    """The same of files, folders and names."""
    if said is None:
        return []
    several = [said] if isinstance(said, str | os.PathLike) else said
    return [os.fspath(each) for each in several]


def settings_of(changes: Changes) -> list[str]:
    """Changes as `path=value` texts."""
    if isinstance(changes, Mapping):
        return [f"{key}={value}" for key, value in changes.items()]
    return texts(changes)


def scenario_layers(
    catalog: Catalog, scenario: PathText | None, interval: str | None, changes: Changes
) -> list[Layer]:
    """The scenario and what was said over it."""
    from ckptcost.first.layers import layers_for

    return layers_for(catalog, scenario, interval, settings_of(changes))


def gates_of(require: str | Sequence[str]) -> list[Gate]:
    """Targets and limits such as "goodput>=0.95"."""
    from ckptcost.first.jobs.gates import gate_of

    return [gate_of(text, Argument("require")) for text in texts(require)]


def draws_of(draws: int) -> int:
    """A number of draws that means something; 0: as many as is usual."""
    from ckptcost.first.core.draws import LEAST, MOST

    if draws and not LEAST <= draws <= MOST:
        raise InputError(
            f"{draws!r} is not from {LEAST:,} to {MOST:,}, and not 0", where=Argument("draws")
        )
    return int(draws)


def read_files(*paths: PathText | None) -> list[tuple[str, bytes]]:
    """Further files of the user's, for a document's list of inputs."""
    return [(os.fspath(path), Path(path).read_bytes()) for path in paths if path is not None]


def seconds_of(name: str, said: str, least_s: float, most_s: float, expected: str) -> float:
    """A length of time that a parameter gives, within limits."""
    from ckptcost.first.catalog.schema import flag_value

    seconds = flag_value(Argument(name), text_of(name, said), "s")
    if not least_s <= seconds <= most_s:
        raise InputError(f"expected {expected}", where=Argument(name))
    return seconds


def text_of(name: str, said: str) -> str:
    """A quantity has a unit, so that it is a text in Python too."""
    if not isinstance(said, str):
        raise InputError(
            f"{brief(said)} has no unit", where=Argument(name), remedy='write e.g. "60 s"'
        )
    return said


def wanted_of(
    gpus: Gpus = "visible",
    rapl: Rapl = "auto",
    directory: PathText | None = None,
    pid: int | None = None,
    redfish: str = "",
    redfish_ca: PathText | None = None,
    redfish_insecure: bool = False,
) -> Wanted:
    """Which meters are looked for, and how."""
    from ckptcost.first.meters.found import Wanted

    if directory is not None and not os.path.isdir(directory):  # False, too, where nobody may look
        raise InputError(
            "is no folder",
            where=Argument("directory", directory),
            remedy="name the folder that checkpoints are written to",
        )
    if pid is not None and pid <= 0:
        raise InputError("expected a process id", where=Argument("pid"))
    if gpus not in ("visible", "all"):
        raise InputError(f"{brief(gpus)} is neither visible nor all", where=Argument("gpus"))
    return Wanted(
        every_gpu=gpus == "all",
        rapl=rapl,
        directory=None if directory is None else Path(directory),
        pid=pid,
        redfish_url=redfish,
        redfish_ca=None if redfish_ca is None else os.fspath(redfish_ca),
        redfish_insecure=redfish_insecure,
    )


def needed_kinds(need: str | Sequence[str]) -> list[str]:
    """Kinds of meter, each text one or several with commas. Raises InputError for a strange one."""
    from ckptcost.first.jobs.checkup import known_kinds

    kinds = [word.strip() for text in texts(need) for word in text.split(",")]
    known_kinds(kinds)
    return kinds
