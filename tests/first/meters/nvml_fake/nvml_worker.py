"""Runs in a process of its own on the fake library: each line of JSON is one walk of our meter
through fake time, and gives one line."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import os
import sys
from typing import Any

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import nvml
from ckptcost.first.meters.base import FoundMeters


@functools.cache
def fake() -> ctypes.CDLL:
    """The fake library: not loaded on import, because collectors of doctests import every
    module."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    library.fake_at.argtypes = [ctypes.c_double]
    library.fake_at.restype = None
    library.fake_calls.restype = ctypes.c_ulonglong
    for exact in (library.fake_exact_mj, library.fake_exact_gpu_mj):
        exact.argtypes = [ctypes.c_int, ctypes.c_int64]
        exact.restype = ctypes.c_double
    library.fake_born_ns.restype = ctypes.c_int64
    return library


def begun(settings: str, env: dict[str, str], everything: bool, grace_s: float) -> FoundMeters:
    os.environ["FAKE_NVML"] = settings
    fake().fake_reborn()
    fake().fake_at(0.0)
    return nvml.find(visible=env, everything=everything, grace_s=grace_s)


def walk(
    settings: str,
    env: dict[str, str],
    times_s: list[float],
    everything: bool = False,
    grace_s: float = 30.0,
    calls: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Read at each of the times; say all that came out."""
    found = begun(settings, env, everything, grace_s)
    said: dict[str, Any] = {
        "absences": [absence._asdict() for absence in found.absences],
        "meters": len(found.meters),
        "channels": [],
        "facts": {},
        "rows": [],
        "events": [],
        "lost": [],
    }
    for meter in found.meters:
        said["channels"] = [dataclasses.asdict(channel) for channel in meter.channels]
        said["facts"] = meter.facts
        for at_s in times_s:
            fake().fake_at(at_s)
            try:
                said["rows"].append(list(meter.read(round(at_s * 1e9))))
            except MeterLost as lost:
                said["rows"].append(None)
                said["lost"].append([at_s, str(lost)])
            said["events"] += [[at_s, *event] for event in meter.events]
            meter.events.clear()
        said["calls"] = {name: fake().fake_calls(name.encode()) for name in calls}
        meter.close()
    born_ns = fake().fake_born_ns()
    gpus = range(16)
    said["exact_j"] = [
        [fake().fake_exact_gpu_mj(gpu, born_ns + round(at_s * 1e9)) / 1000.0 for gpu in gpus]
        for at_s in times_s
    ]
    return said


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(walk(**request)), flush=True)


if __name__ == "__main__":
    main()
