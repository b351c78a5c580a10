"""Short runs on a clock that jumps, for tests of what is done with runs afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steady_meters import Steady

from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink

WALL_NS = 1_767_225_600 * S


class Real(Steady):
    """The same, as if it was measured."""

    def __init__(self, count: int = 1) -> None:
        super().__init__(count=count)
        self.simulated = False


def recorded(
    folder: Path,
    seconds: int = 20,
    *,
    run_id: str = "a" * 32,
    host: str = "node1",
    start_ns: int = 0,
    wall_ns: int = WALL_NS,
    saves: Sequence[int] = (5,),
    command: str = "",
    exit_code: int | None = None,
    after: int = 0,
    count: int = 1,
    stop: bool = True,
    **sink: int,
) -> Recorder:
    """A save of two seconds at each of the seconds named; a wrapped command ends `after` seconds
    before the recording does."""
    clock = VirtualClock(start_ns, wall_ns)
    recorder = Recorder([Real(count)], FileSink(folder, **sink), clock, run_id=run_id, host=host)
    recorder.begin()
    if command:
        recorder.mark("note", by="wrap", command=command)
    for second in range(1, seconds + 1):
        recorder.run_until(start_ns + second * S)
        for begun in saves:
            if second == begun:
                recorder.mark("begin", f"step {begun}", bytes=1000, path=f"step-{begun}.pt")
            elif second == begun + 2:
                recorder.mark("returned", f"step {begun}")
                recorder.mark("durable", f"step {begun}", by="watch", how="output")
        if exit_code is not None and second == seconds - after:
            recorder.mark("note", by="wrap", exit_status=exit_code)
    if stop:
        recorder.stop()
    return recorder
