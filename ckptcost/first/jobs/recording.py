"""Ask meters for a while, with time to spare on either side so that the edges of what was asked for
lie between readings."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.channels import Mark
from ckptcost.first.errors import Argument, InputError, MeterUnavailable, OutputError
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.meters.base import Meter
from ckptcost.first.runs import store
from ckptcost.first.runs.clocks import RealClock, S, VirtualClock
from ckptcost.first.runs.header import header_from
from ckptcost.first.runs.lines import BadLine, decode
from ckptcost.first.runs.pace import Pace
from ckptcost.first.runs.recorder import Recorder, RecorderStats
from ckptcost.first.runs.run import Run
from ckptcost.first.runs.sinks import FileSink, MemorySink, Sink
from ckptcost.first.runs.writer import first_line

MARGIN_S = 0.5
"""recorded before and after what is asked for"""
SLOW_MARGIN_S = 3.0
"""where a meter answers once a second or less often"""
EDGE, ASKED = "note", "measure"
"""a mark at either end of what was asked for: single readings are kept around it, and a replay
finds it again"""
MOST_KEPT_S = 3600.0
MOST_VALUES = 4_000_000
"""40 bytes each: an hour of 8 GPUs"""


class Recorded(NamedTuple):
    run: Run
    begin_s: float
    """what was asked for, without the margins"""
    end_s: float
    stats: RecorderStats


def record(
    tools: Instruments,
    for_s: float,
    directory: Path | None = None,
    pace: Pace | None = None,
    tell: Callable[[Recorder], None] | None = None,
) -> Recorded:
    """Ask all meters for so long. An interrupt ends it early and what there is counts."""
    if not tools.meters:
        raise _without_meters(tools)
    if directory is None and for_s > MOST_KEPT_S:
        raise InputError(
            "what is not written is kept in memory",
            where=Argument("length"),
            remedy="give --record DIR, or at most an hour",
        )
    if directory is not None:
        folder_for(directory)
    memory = MemorySink(most_values=MOST_VALUES)
    sink: Sink = memory if directory is None else FileSink(directory)
    recorder = Recorder(tools.meters, sink, tools.clock, pace)
    margin_s = SLOW_MARGIN_S if any(_is_slow(meter) for meter in tools.meters) else MARGIN_S
    if isinstance(tools.clock, VirtualClock):
        begin_ns, end_ns = _fast_forward(recorder, tools, for_s)
    else:
        begin_ns, end_ns = _wait(recorder, for_s, margin_s, tell)
    run = memory.run() if directory is None else _load_recording(directory, recorder)
    origin_ns = run.node().origin_ns
    return Recorded(run, (begin_ns - origin_ns) / S, (end_ns - origin_ns) / S, recorder.stats)


def _without_meters(tools: Instruments) -> MeterUnavailable:
    reasons = "; ".join(dict.fromkeys(absence.reason for absence in tools.absences))
    return MeterUnavailable(
        f"nothing can be measured here: {reasons or 'no meter was asked for'}",
        "`ckptcost doctor` says what would help",
    )


def folder_for(directory: Path | None, run_id: str = "", job: str = "") -> Path:
    """Where a run goes: the folder that is named, if it holds none yet, or a new one among the
    user's runs.

    `job`: a name that tells that others record the same run into the same folder, which may be
    there already.
    """
    if directory is None:
        return store.shared_folder(job, run_id) if job else store.new_folder(run=run_id)
    try:
        taken = directory.is_dir() and any(
            not (job and _is_of(file, run_id)) for file in directory.glob("*.jsonl")
        )
    except OSError as error:
        raise OutputError(f"{directory}: cannot be used ({error.strerror or error})") from None
    if taken:
        raise OutputError(f"{directory} holds a run already; name another folder")
    return directory


def _is_of(file: Path, run_id: str) -> bool:
    """By its first line; one without is being begun just now by another task."""
    try:
        return header_from(decode(first_line(file)), str(file)).run == run_id
    except (BadLine, FileNotFoundError):
        return True


def _is_slow(meter: Meter) -> bool:
    """A meter of joules or watts that answers once a second or less often needs time on either
    side."""
    period_s = max(meter.least_s, getattr(meter, "pace_s", 0.0))
    return period_s >= 1.0 and any(
        channel.quantity in ("power_w", "energy_j") for channel in meter.channels
    )


def _load_recording(directory: Path, recorder: Recorder) -> Run:
    from ckptcost.first.runs import reader

    return reader.load(directory, recorder.header.run)


def _wait(
    recorder: Recorder, for_s: float, margin_s: float, tell: Callable[[Recorder], None] | None
) -> tuple[int, int]:
    clock = RealClock()
    recorder.start()
    begin_ns = clock.now_ns() + round(margin_s * S)
    end_ns = begin_ns + round(for_s * S)
    recorder.expect(margin_s + 1.0)
    try:
        _sleep_until(clock, begin_ns, recorder, None)
        recorder.mark(EDGE, by=ASKED, t_ns=begin_ns)
        _sleep_until(clock, end_ns, recorder, tell)
        recorder.mark(EDGE, by=ASKED, t_ns=end_ns)
        recorder.expect(margin_s + 1.0)
        _sleep_until(clock, end_ns + round(margin_s * S), recorder, None)
    except KeyboardInterrupt:
        end_ns = min(end_ns, clock.now_ns())
        recorder.mark(EDGE, by=ASKED, t_ns=end_ns)
        _sleep_until(clock, end_ns + round(min(margin_s, MARGIN_S) * S), recorder, None)
    finally:
        recorder.stop()
    return begin_ns, max(begin_ns, end_ns)


def _sleep_until(
    clock: RealClock, until_ns: int, recorder: Recorder, tell: Callable[[Recorder], None] | None
) -> None:
    while (left_s := (until_ns - clock.now_ns()) / S) > 0:
        time.sleep(min(left_s, 0.25))
        if tell is not None:
            tell(recorder)


def _fast_forward(recorder: Recorder, tools: Instruments, for_s: float) -> tuple[int, int]:
    """As fast as it goes; the marks of the simulated or replayed job come at their times."""
    clock = tools.clock
    assert isinstance(clock, VirtualClock)
    recorder.begin()
    begin_ns = clock.now_ns() + round(MARGIN_S * S)
    end_ns = begin_ns + round(for_s * S)
    edges = [Mark(at_ns / S, EDGE, by=ASKED) for at_ns in (begin_ns, end_ns)]
    for mark in sorted([*tools.marks, *edges], key=lambda mark: mark.t_s):
        at_ns = round(mark.t_s * S)
        if at_ns > end_ns:
            break
        recorder.run_until(at_ns)
        recorder.mark(mark.name, mark.window, by=mark.by, rank=mark.rank, t_ns=at_ns, **mark.detail)
        recorder.step()
    recorder.run_until(end_ns + round(MARGIN_S * S))
    recorder.stop()
    return begin_ns, end_ns
