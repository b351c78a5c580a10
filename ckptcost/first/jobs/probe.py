"""Write a checkpoint for real, several times and in two sizes, read it back, record what that
takes, and add it up: by kind and size, and the fixed time that both sizes share.

Marks are set while it happens, so the run of a probe is a run like any other: `report`, `calibrate`
and `compare` take it. Rates are bytes over seconds, never a mean of rates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import nan
from operator import attrgetter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from ckptcost.first.core.fit import TimeFit, fit_times
from ckptcost.first.core.reconcile import Energy, times, total, unknown
from ckptcost.first.core.windows import Window
from ckptcost.first.errors import Argument, InputError, MeterUnavailable
from ckptcost.first.jobs.instruments import REPLAY, instruments, mixes_meters
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.recording import ASKED, EDGE, MARGIN_S, folder_for
from ckptcost.first.meters.found import Wanted
from ckptcost.first.meters.mounts import is_virtual_disk
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.header import new_run_id
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.savers.base import Io, Saver, SaverSettings, Shape
from ckptcost.first.savers.found import saver_of
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.savers.shapes import shape_of

PAUSE_S = 1.0
"""between rounds, so that the next one does not meet the last one's write-back, and idle power is
seen"""
PURPOSE = "probe"
SMALL = 0.25
"""a second size tells a fixed latency from a rate"""
SYNC_S = 3600.0
"""the run's own flushes must not disturb the storage that is measured; a kill loses nothing, a
power cut the run"""


GB = 1e9
TOLD_S = 0.5
"""in a shorter pass the disk's counter is read too seldom to tell its own bytes from a
neighbour's"""


class ProbeRequest(NamedTuple):
    """What to write, and how often."""

    directory: Path
    size_bytes: int
    ranks: int = 8
    files: int | None = None
    saver: str = "direct"
    rounds: int = 3
    small: bool = True
    """as many rounds of a quarter of the size"""
    read: bool = True
    warm_up: int = 0
    """saves before the first round, which count nowhere: the first one on a drive at rest is not
    like the others"""
    pause_s: float = PAUSE_S
    settings: SaverSettings = SaverSettings()

    @property
    def sizes(self) -> list[int]:
        """One a round: sizes by turns, so that a drift of the storage falls on both."""
        each = (
            [self.size_bytes, max(round(self.size_bytes * SMALL), 1)]
            if self.small
            else [self.size_bytes]
        )
        return each * self.rounds


class ProbePass(NamedTuple):
    """One pass, as the engine saw it (None where it was simulated) and as the run has it."""

    number: int
    of: str
    """save or load"""
    size_bytes: float
    files: float
    io: Io | None
    window: Window | None


HOST_CACHE = (
    "This is a disk of a virtual machine: its host may have answered the reads from memory, since"
    " they are of what was just written. Loading after a restart may be slower; fio on files of"
    " yesterday tells."
)


class Probed(NamedTuple):
    asked: ProbeRequest
    rounds: tuple[ProbePass, ...]
    measured: Measured
    folder: Path
    notes: tuple[str, ...]
    interrupted: bool


class ProbeProgress(NamedTuple):
    """How far it is."""

    number: int
    of: str
    done: int
    all: int
    io: Io | None


def probe(
    asked: ProbeRequest,
    meters: str,
    wanted: Wanted,
    directory: Path | None = None,
    tell: Callable[[ProbeProgress], None] | None = None,
) -> Probed:
    """Everything that was written is gone afterwards, whatever happens. `asked.settings.control`
    stops it from another thread, as Ctrl-C does: KeyboardInterrupt where no pass is through, else
    what there is."""
    if meters.startswith(REPLAY):
        raise InputError(
            "a replay writes nothing",
            where=Argument("meters"),
            remedy="`ckptcost report RUN` shows a probe again",
        )
    if "simulated" in meters.split(","):
        return _probe_simulated(asked, meters, directory)
    saver = saver_of(asked.saver)
    shapes = {size: shape_of(size, ranks=asked.ranks, files=asked.files) for size in asked.sizes}
    here = asked.directory if asked.directory.is_dir() else None
    tools = instruments(meters, replace(wanted, directory=here), 0.0)
    if not tools.meters:
        raise MeterUnavailable("no meter answers here", "`ckptcost doctor` says what would help")
    with SavePlace(asked.directory, max(asked.sizes)) as place:
        run_id = new_run_id()
        folder = folder_for(directory, run_id)
        recorder = Recorder(
            tools.meters, FileSink(folder, sync_s=SYNC_S), run_id=run_id, purpose=PURPOSE
        )
        ios, interrupted = _record_passes(saver, place, asked, shapes, recorder, tell)
        notes = [
            *_cache_notes(asked),
            *place.notes,
            *chain.from_iterable(io.notes for _, _, io in ios),
        ]
    measured = reviewed(folder)
    windows = {window.name: window for window in measured.windows}
    rounds = tuple(
        ProbePass(n, of, io.bytes, io.files, io, windows.get(_label(of, n))) for n, of, io in ios
    )
    return Probed(asked, rounds, measured, folder, tuple(dict.fromkeys(notes)), interrupted)


def _cache_notes(asked: ProbeRequest) -> list[str]:
    return [HOST_CACHE] if asked.read and is_virtual_disk(asked.directory) else []


def _label(of: str, number: int) -> str:
    return f"{of} {number}"


def _record_passes(
    saver: Saver,
    place: SavePlace,
    asked: ProbeRequest,
    shapes: Mapping[int, Shape],
    recorder: Recorder,
    tell: Callable[[ProbeProgress], None] | None,
) -> tuple[list[tuple[int, str, Io]], bool]:
    """What was done, and whether somebody interrupted it."""
    ios: list[tuple[int, str, Io]] = []
    interrupted = False
    recorder.start()
    try:
        recorder.expect(MARGIN_S + 1.0)
        _rest(asked, MARGIN_S + asked.pause_s)
        _warm_up(saver, place, asked, shapes[asked.size_bytes])
        recorder.mark(EDGE, by=ASKED)
        command = f"probe {asked.saver}"
        recorder.mark(EDGE, by="wrap", command=command, saver=asked.saver, ranks=asked.ranks)
        _rounds(saver, place, asked, shapes, recorder, ios, tell)
    except KeyboardInterrupt:
        interrupted = True
        if not ios:
            raise
    finally:
        recorder.mark(EDGE, by=ASKED)
        recorder.expect(MARGIN_S)
        time.sleep(MARGIN_S)
        recorder.stop()
    return ios, interrupted


def _rounds(
    saver: Saver,
    place: SavePlace,
    asked: ProbeRequest,
    shapes: Mapping[int, Shape],
    recorder: Recorder,
    ios: list[tuple[int, str, Io]],
    tell: Callable[[ProbeProgress], None] | None,
) -> None:
    sizes, passes = asked.sizes, len(asked.sizes) * (2 if asked.read else 1)
    for number, size_bytes in enumerate(sizes, start=1):
        shape = shapes[size_bytes]
        for of in ("save", "load") if asked.read else ("save",):
            if tell is not None:
                tell(ProbeProgress(number, of, len(ios), passes, ios[-1][2] if ios else None))
            _begin(asked, of, number, size_bytes)
            ios.append((number, of, _pass(saver, place, asked, shape, recorder, of, number)))
            if of == "save" and asked.settings.verify:
                _begin(asked, "verify", number, size_bytes)
                saver.verify(place, shape, asked.settings, number)
            _rest(asked, asked.pause_s)
        place.remove(number)


def _pass(
    saver: Saver,
    place: SavePlace,
    asked: ProbeRequest,
    shape: Shape,
    recorder: Recorder,
    of: str,
    number: int,
) -> Io:
    """One save or load with its marks; one that fails is marked too."""
    label, size_bytes = _label(of, number), asked.sizes[number - 1]
    detail: dict[str, Any] = {"bytes": size_bytes, "files": len(shape.files)}
    detail |= {"of": "load"} if of == "load" else {}
    called_ns = recorder.clock.now_ns()
    recorder.mark(EDGE, by="wrap", t_ns=called_ns)  # single readings are kept from here on
    try:
        io = (saver.save if of == "save" else saver.load)(place, shape, asked.settings, number)
    except BaseException as error:
        recorder.mark("begin", label, t_ns=called_ns, **detail)
        recorder.mark("end", label, error=type(error).__name__)
        raise
    # the engine's own begin: what it prepared before is not the save's
    recorder.mark("begin", label, t_ns=io.begin_ns, **detail)
    _marks(recorder, label, io)
    return io


def _warm_up(saver: Saver, place: SavePlace, asked: ProbeRequest, shape: Shape) -> None:
    for _ in range(asked.warm_up):
        _begin(asked, "warm-up", 0, asked.size_bytes)
        saver.save(place, shape, asked.settings, 0)
        place.remove(0)
        _rest(asked, asked.pause_s)


def _begin(asked: ProbeRequest, what: str, number: int, size_bytes: int) -> None:
    if asked.settings.control is not None:
        asked.settings.control.begin(what, number, size_bytes)


def _rest(asked: ProbeRequest, seconds: float) -> None:
    if asked.settings.control is not None:
        asked.settings.control.rest(seconds)
    else:
        time.sleep(seconds)


def _marks(recorder: Recorder, label: str, io: Io) -> None:
    """What the engine saw, at the instants at which it was so. A load is over when the last byte is
    here."""
    for name, t_ns in io.marks:
        recorder.mark(name, label, t_ns=t_ns)
    recorder.mark("returned", label, t_ns=io.returned_ns)
    recorder.mark(
        "durable",
        label,
        t_ns=io.returned_ns if io.durable_ns is None else io.durable_ns,
        how="fsync",
        bytes=io.bytes,
    )
    recorder.mark(
        "end",
        label,
        t_ns=io.returned_ns if io.durable_ns is None else max(io.durable_ns, io.returned_ns),
    )


def _probe_simulated(asked: ProbeRequest, meters: str, directory: Path | None) -> Probed:
    """A simulated machine whose job saves in the sizes asked for; nothing is written but the
    run."""
    from ckptcost.first.meters import simulated
    from ckptcost.first.meters.simulated_machine import MachinePlan, marks

    if meters != "simulated":
        raise mixes_meters()
    given = MachinePlan()
    scale = asked.size_bytes / given.checkpoint_bytes
    plan = replace(
        given,
        checkpoint_bytes=float(asked.size_bytes),
        shares=(1.0, SMALL) if asked.small else (1.0,),
        saves=len(asked.sizes),
        snapshot_s=given.snapshot_s * scale,
        write_s=given.write_s * scale,
        fsync_s=given.fsync_s * scale,
        interval_s=max(
            given.interval_s, (given.snapshot_s + given.write_s + given.fsync_s) * scale * 2.0
        ),
    )
    clock = VirtualClock(0)
    length_s = plan.first_s + len(asked.sizes) * plan.interval_s
    run_id = new_run_id()
    folder = folder_for(directory, run_id)
    recorder = Recorder(
        simulated.find(plan, origin_ns=0).meters,
        FileSink(folder),
        clock,
        run_id=run_id,
        purpose=PURPOSE,
    )
    recorder.begin()
    for mark in marks(plan, 0.0, length_s):
        recorder.run_until(round(mark.t_s * S))
        recorder.mark(
            mark.name,
            mark.window,
            by=mark.by,
            rank=mark.rank,
            t_ns=round(mark.t_s * S),
            **mark.detail,
        )
        recorder.step()
    recorder.run_until(round((length_s + MARGIN_S) * S))
    recorder.stop()
    measured = reviewed(folder)
    rounds = tuple(
        ProbePass(n, "save", what.bytes, 1.0, None, window)
        for n, (window, what) in enumerate(
            zip(measured.windows, measured.contents, strict=True), start=1
        )
    )
    return Probed(asked, rounds, measured, folder, (), False)


class ProbeSum(NamedTuple):
    """All passes of one kind and size together. NaN is not known."""

    of: str
    size_bytes: float
    rounds: int
    files: float
    rate_bytes_per_s: float
    slowest_bytes_per_s: float
    quickest_bytes_per_s: float
    mean_s: float
    spread: float
    """standard deviation of the durations over their mean"""
    returned_s: float
    """until the last write returned, in the mean"""
    device_over_file: float
    """bytes that the disk took over bytes of the files; NaN with several disks, and in passes that
    are short"""
    per_gb: Energy
    """joules of all metered parts of the node for 1e9 bytes, begin to safe"""


def seconds_of(one: ProbePass) -> float:
    """To durable; of a load, to the last byte."""
    if one.io is not None:
        return one.io.duration_s
    return nan if one.window is None or one.window.length_s is None else one.window.length_s


def joules_of(p: Probed, one: ProbePass) -> Energy:
    """Of all metered parts, from begin until safe."""
    return (
        unknown("NOT_MARKED")
        if one.window is None
        else p.measured.of_window(one.window.name).absolute
    )


def sums(p: Probed) -> list[ProbeSum]:
    """Saves before loads, as large as asked for before the small ones."""
    kinds = dict.fromkeys(
        (one.of, one.size_bytes) for of in ("save", "load") for one in p.rounds if one.of == of
    )
    return [
        _sum(p, [one for one in p.rounds if (one.of, one.size_bytes) == kind]) for kind in kinds
    ]


def _sum(p: Probed, mine: Sequence[ProbePass]) -> ProbeSum:
    of, size_bytes = mine[0].of, mine[0].size_bytes
    seconds = [s for s in map(seconds_of, mine) if s == s and s > 0]
    mean_s = fmean(seconds or [nan])
    returned = [(one.io.returned_ns - one.io.begin_ns) * 1e-9 for one in mine if one.io is not None]
    return ProbeSum(
        of,
        size_bytes,
        len(mine),
        mine[0].files,
        size_bytes * len(seconds) / sum(seconds or [nan]),
        size_bytes / max(seconds, default=nan),
        size_bytes / min(seconds, default=nan),
        mean_s,
        stdev(seconds) / mean_s if len(seconds) > 1 else nan,
        fmean(returned or [nan]),
        _device_over_file(p, mine),
        times(total(joules_of(p, one) for one in mine), GB / (size_bytes * len(mine))),
    )


def _device_over_file(p: Probed, mine: Sequence[ProbePass]) -> float:
    disks = {stored.disk for stored in p.measured.stored}
    names = {one.window.name for one in mine if one.window is not None}
    if any(map(_is_short, mine)):
        return nan
    taken = [stored.queue for stored in p.measured.stored if stored.window in names]
    if len(disks) != 1 or len(taken) != len(mine):
        return nan
    which = "written_bytes" if mine[0].of == "save" else "read_bytes"
    return float(sum(map(attrgetter(which), taken)) / (mine[0].size_bytes * len(mine)))


def _is_short(one: ProbePass) -> bool:
    """Too short for the disk's counter to tell it from its neighbours."""
    return one.window is None or (one.window.length_s or 0.0) < TOLD_S


def fit_of_sizes(p: Probed, of: str = "save") -> TimeFit:
    """Rate and fixed time of a save, from all sizes."""
    mine = [(one.size_bytes, seconds_of(one)) for one in p.rounds if one.of == of]
    known = [
        (size_bytes, seconds) for size_bytes, seconds in mine if seconds == seconds and seconds > 0
    ]
    return fit_times([size_bytes for size_bytes, _ in known], [seconds for _, seconds in known])
