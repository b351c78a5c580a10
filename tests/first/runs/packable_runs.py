"""Short recordings on a clock that jumps, to be packed: of meters whose truth is a formula, or of a
simulated machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from told_meters import Told, at, energy

from ckptcost.first.jobs.recording import ASKED, EDGE
from ckptcost.first.meters import simulated
from ckptcost.first.meters.base import Meter
from ckptcost.first.meters.simulated_machine import MachinePlan
from ckptcost.first.runs import job_facts
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink

NEW_YEAR_NS = 1_767_225_600 * S
"""2026-01-01, a midnight"""
TICK = {"tick_s": 0.001}
GPU_W, NODE_W = 300.0, 1000.0
Saying = tuple[float, str, str, Mapping[str, Any]]


def steady(gpus: int = 2, node: bool = True, packages: int = 0) -> Sequence[Meter]:
    """Cards of 300 W in a node of 1,000 W; packages of 100 W."""
    says = {energy(f"gpu:{n}", **TICK): at(GPU_W) for n in range(gpus)} | {
        energy(f"cpu:{n}", **TICK): at(100.0) for n in range(packages)
    }
    return [
        Told("told", says | ({energy("node", role="whole", **TICK): at(NODE_W)} if node else {}))
    ]


def machine(**plan: Any) -> Sequence[Meter]:
    return simulated.find(
        MachinePlan(**{"gpus": 2, "packages": 1, "saves": 0} | plan), origin_ns=0
    ).meters


def save(
    name: str,
    begin: float,
    returned: float,
    durable: float | None = None,
    *,
    of: str = "save",
    **more: Any,
) -> list[Saying]:
    detail = {"bytes": 1e9, "files": 2, "path": f"/c/{name}", **more} | (
        {"of": "load"} if of == "load" else {}
    )
    safe = returned if durable is None else durable
    return [
        (begin, "begin", name, detail),
        (returned, "returned", name, {}),
        (safe, "durable", name, {}),
        (safe + 0.001, "end", name, {}),
    ]


def packable(
    folder: Path,
    *marks: Iterable[Saying],
    seconds: float = 150.0,
    wall_ns: int = NEW_YEAR_NS + 3600 * S,
    meters: Sequence[Meter] = (),
    host: str = "n1",
    run_id: str = "ab" * 16,
    job: Mapping[str, str] = {},
    exit_status: int | None = None,
    stop: bool = True,
    asked: Sequence[float] = (),
    start_ns: int = 0,
) -> Path:
    """`asked`: what the run is about, the rest is its margin. A wrapped command ends a second
    before the recording does."""
    clock = VirtualClock(start_ns, wall_ns)
    recorder = Recorder(meters or steady(), FileSink(folder), clock, run_id=run_id, host=host)
    recorder.begin()
    job_facts.note_job_facts(recorder, job)
    said: list[tuple[float, str, str, Mapping[str, Any], str]] = [
        (*mark, "api") for each in marks for mark in each
    ]
    said += [(t_s, EDGE, "", {}, ASKED) for t_s in asked]
    if exit_status is not None:
        said.append((seconds - 1.0, EDGE, "", {"exit_status": exit_status}, "wrap"))
    for t_s, name, window, detail, by in sorted(said, key=lambda mark: mark[0]):
        recorder.run_until(start_ns + round(t_s * S))
        recorder.mark(name, window, by=by, t_ns=start_ns + round(t_s * S), **detail)
        recorder.step()
    recorder.run_until(start_ns + round(seconds * S))
    if stop:
        recorder.stop()
    else:
        recorder._sink.close()  # what a kill leaves: no last tick, no end
    return folder
