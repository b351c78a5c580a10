"""The idle power of a machine, learned once on purpose and dated: one small JSON file a host in the
user's folder."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog.files import overlay
from ckptcost.first.catalog.writing import write_whole
from ckptcost.first.core.attribution import Baseline
from ckptcost.first.errors import OutputError, RunFileError, brief
from ckptcost.first.runs.header import base_name, host_name, stamp

FORMAT, VERSION = "ckptcost.baseline", "1.0"
_MOST_BYTES = 1_000_000


class Idle(NamedTuple):
    """What a host takes while nothing runs, by domain."""

    host: str
    taken: str
    """UTC"""
    seconds: float
    drivers: dict[str, str]
    """by kind of domain"""
    simulated: bool
    domains: dict[str, Baseline]


def file_of(host: str = "") -> Path:
    return overlay() / "baselines" / f"{base_name(host or host_name())}.json"


def baseline_fields(idle: Idle) -> dict[str, Any]:
    """As it is written."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "host": idle.host,
        "taken": idle.taken,
        "seconds": idle.seconds,
        "simulated": idle.simulated,
        "drivers": idle.drivers,
        "domains": {
            name: {"power_w": b.power_w, "low_w": b.low_w, "high_w": b.high_w}
            for name, b in idle.domains.items()
        },
    }


def save(idle: Idle, file: Path) -> None:
    """The file appears whole or not at all."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole([json.dumps(baseline_fields(idle), indent=1, allow_nan=False), "\n"], file)
    except OSError as error:
        raise OutputError(f"{file}: could not be written ({error.strerror or error})") from None


def load(file: Path) -> Idle | None:
    """None where there is none yet; RunFileError for anything that is not a baseline."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFileError(f"cannot be read ({error.strerror or error})", where=str(file)) from None
    again = "learn it again: ckptcost measure baseline"
    try:
        content = json.loads(raw)
        if content["format"] != FORMAT:
            raise RunFileError("is not a baseline", where=str(file), remedy=again)
        if not str(content["version"]).startswith("1."):
            raise RunFileError(
                f"is of version {brief(content['version'], 20)}, and this ckptcost reads 1.x",
                where=str(file),
                remedy=again,
            )
        return _idle_from(content)
    except RunFileError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFileError(
            f"is not a baseline ({type(error).__name__}: {brief(str(error))})",
            where=str(file),
            remedy=again,
        ) from None


def _idle_from(content: dict[str, Any]) -> Idle:
    """Raises ValueError, KeyError, TypeError or AttributeError."""
    host, taken = str(content["host"]), str(content["taken"])
    drivers = {str(meter): str(driver) for meter, driver in content["drivers"].items()}
    taken_s = datetime.fromisoformat(taken).timestamp()
    domains = {}
    for name, watts in content["domains"].items():
        power_w, low_w, high_w = (float(watts[key]) for key in ("power_w", "low_w", "high_w"))
        if not -math.inf < low_w <= power_w <= high_w < math.inf:
            raise ValueError(f"{name}: {low_w} <= {power_w} <= {high_w}")
        domains[str(name)] = Baseline(
            power_w, low_w, high_w, taken_s, host, drivers.get(str(name).split(":")[0], "")
        )
    return Idle(
        host, taken, float(content["seconds"]), drivers, bool(content["simulated"]), domains
    )


def now(wall_ns: int) -> str:
    return stamp(wall_ns)
