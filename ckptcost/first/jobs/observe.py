"""A job under observation: a recorder, and everything that finds its checkpoints, started and ended
together in the right order.

`Evidence` is what /proc says of a save while it happens: which files are being synced, and whether
training stands still until the last is closed. Without a hook nobody says when training went on.
Where the main thread wrote the bytes itself, or stood still while others did, the save returned
when its last file was closed; where it went on computing, or where it cannot be told, the return
stays unknown.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckptcost.first.errors import CkptcostError
from ckptcost.first.hooks.listener import Listener
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.progress import KnownSave, SaveProgress
from ckptcost.first.jobs.recording import ASKED, EDGE, MARGIN_S, folder_for
from ckptcost.first.meters.base import Absence
from ckptcost.first.meters.process import children_of
from ckptcost.first.runs import job_facts
from ckptcost.first.runs.clocks import RealClock, S
from ckptcost.first.runs.election import RUN_ID, Task
from ckptcost.first.runs.header import new_run_id
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink, Sink
from ckptcost.first.runs.station import Station
from ckptcost.first.watch.base import Tell
from ckptcost.first.watch.bursts import Burster, Bursts
from ckptcost.first.watch.filesystems import kind_of
from ckptcost.first.watch.fsyncs import Fsyncs, Synced
from ckptcost.first.watch.groups import Rules
from ckptcost.first.watch.settle import Settling
from ckptcost.first.watch.watcher import Watcher, WatchSettings
from ckptcost.first.watch.writers import SeenWriter, Writers

REST_NS = 2 * S
LATE_NS = 7 * S
"""after a save was found to be written, what comes after is waited for so long"""
AT_ONCE_NS = S // 20
"""a rename that follows so soon is part of the same call"""
MOST_FILES = 4096
PROCFS = Path("/proc")


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
    found, queue = [pid], [pid]
    while queue:
        for child in children_of(queue.pop(), PROCFS) or ():
            if child not in found:
                found.append(child)
                queue.append(child)
    return found


def _size_of(paths: Sequence[Path]) -> int:
    """Of what is there; 0 where it cannot be told, and then nobody is judged by it."""
    total = 0
    for path in paths[:MOST_FILES]:
        try:
            total += os.stat(path, follow_symlinks=False).st_size
        except OSError:
            continue
    return total


@dataclass
class _Written:
    paths: tuple[Path, ...]
    last_ns: int
    """its last file was closed, or what came after"""
    closed_ns: int | None
    """None where nobody saw it closed: a process's own writing"""
    verdicts: Sequence[SeenWriter]
    """who wrote, where it may be judged"""
    until_ns: int
    next_ns: int | None = None
    """the next save began: what is synced from then on may be that one's"""
    commit_ns: int | None = None
    why: str = ""
    """why nobody is judged"""

    def doubt(self, synced: Synced | None, last_ns: int) -> str:
        """Why it cannot be told when training went on; empty: it can."""
        odd = next((verdict for verdict in self.verdicts if not verdict.stood_still), None)
        if odd is not None:
            return odd.why or odd.code
        if self.commit_ns is not None and self.commit_ns - last_ns > AT_ONCE_NS:
            return "UNCLEAR"
        is_over = self.closed_ns is not None
        if synced is not None:  # else nobody saw what the job did in between
            if not synced.tids <= {verdict.trainer for verdict in self.verdicts}:
                return "UNCLEAR"
            is_over = is_over or synced.all
        return "" if is_over else "UNCLEAR"


class Evidence:
    """Told by those who watch: `sign` that something may begin, `begin`, `written`. Each call is
    some tens of us a process."""

    def __init__(self, pid: int, tell: Tell) -> None:
        self._tell = tell
        self._writers = Writers(lambda: descendants(pid))
        self._fsyncs = Fsyncs(lambda: descendants(pid), tell)
        self._lock = threading.Lock()
        self._open: set[str] = set()
        self._late: dict[str, _Written] = {}
        """written, and maybe being synced or renamed still"""
        self._signed_ns = self._rested_ns = 0
        self._alone = True

    def sign(self) -> None:
        """Something may begin: readings from now on are of the save."""
        now_ns = time.monotonic_ns()
        with self._lock:
            if self._open or now_ns - self._signed_ns < S:
                return
            self._signed_ns, self._alone = now_ns, True
            self._writers.begin()
            if not self._late:
                self._fsyncs.start()  # which forgets what it saw

    def rest(self) -> None:
        """Nothing goes on: what the main thread does now is what it usually does."""
        now_ns = time.monotonic_ns()
        with self._lock:
            if self._open or self._late or now_ns - max(self._rested_ns, self._signed_ns) < REST_NS:
                return
            self._rested_ns = now_ns
            self._fsyncs.stop()
            self._writers.rest()

    def begin(self, window: str, t_ns: int) -> None:
        self.sign()
        with self._lock:
            self._open.add(window)
            self._alone = self._alone and len(self._open) == 1
            for one in self._late.values():
                if one.next_ns is None and t_ns > one.last_ns:
                    one.next_ns = t_ns

    def written(
        self, window: str, t_ns: int, paths: Sequence[Path], *, returned: bool, closed: bool
    ) -> None:
        """`returned`: say when training went on, where that can be told. `closed`: at `t_ns` the
        last file was."""
        size_bytes = _size_of(paths)
        with self._lock:
            self._open.discard(window)
            alone = self._alone
            before = self._late.pop(window, None)
        if before is not None:  # the same name once more
            self._judge(window, before)
        verdicts: Sequence[SeenWriter] = []
        why = ""
        if returned:
            verdicts = self._writers.end(size_bytes) if size_bytes else []
            why = "" if size_bytes else "WRITTEN_OVER"
            if not alone:
                verdicts, why = [], "NOT_ALONE"
        with self._lock:
            self._late[window] = _Written(
                tuple(paths),
                t_ns,
                t_ns if closed else None,
                verdicts,
                time.monotonic_ns() + LATE_NS,
                why=why,
            )

    def committed(self, window: str, t_ns: int) -> None:
        """Renamed, or its last small file is there: part of the save where it followed at once,
        after a sync included."""
        with self._lock:
            if one := self._late.get(window):
                one.commit_ns = t_ns

    def late(self, last: bool = False) -> None:
        """What came after the last file was closed: a sync through another descriptor, a rename.
        Training went on after them."""
        with self._lock:
            now_ns = time.monotonic_ns()
            due = {
                window: one for window, one in self._late.items() if last or now_ns >= one.until_ns
            }
            for window in due:
                del self._late[window]
        for window, one in due.items():
            self._judge(window, one)

    def forget(self, window: str) -> None:
        """It ended without having been written: nothing more will be said of it."""
        with self._lock:
            self._open.discard(window)

    def _judge(self, window: str, one: _Written) -> None:
        synced = (
            self._fsyncs.mark(window, one.paths, None, one.closed_ns, one.next_ns)
            if one.paths
            else None
        )
        if one.verdicts:
            self._say(window, one, synced)
        elif one.why:
            self._tell("note", window, by="watch", t_ns=one.last_ns, returned_why=one.why)

    def _say(self, window: str, one: _Written, synced: Synced | None) -> None:
        """A wrong return is worse than none: every doubt leaves it unknown."""
        last_ns = max(one.last_ns, synced.over_ns if synced else 0)
        if why := one.doubt(synced, last_ns):
            self._tell("note", window, by="watch", t_ns=last_ns, returned_why=why)
            return
        at_ns, code = max(last_ns, one.commit_ns or 0), one.verdicts[0].code
        self._tell("returned", window, by="watch", t_ns=at_ns, how="main-thread", code=code)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._fsyncs.stop()


SETTLE_S = 40.0
"""Linux writes pages back 30 s after they were made dirty, and looks each 5 s"""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Where and how checkpoints are looked for."""

    watch: tuple[Path, ...] = ()
    create_later: bool = True
    """a folder that the job makes is waited for"""
    least_bytes: float = 1e6
    """smaller saves are no checkpoints"""
    gap_s: float = 1.0
    settle_s: float = SETTLE_S
    """how long after the job's end to wait for what is still in the page cache"""


BURST_GAPS = 2.0
"""a process's own writing pauses longer inside a save than its files do: so many times the gap"""


def absent(absence: Absence) -> str:
    """In a sentence."""
    return f"{absence.what}: {absence.reason}" + (f" ({absence.remedy})" if absence.remedy else "")


class Observer:
    """`start`, then `follow` a process; `close` ends it whatever happened, and leaves a complete
    run."""

    def __init__(
        self,
        tools: Instruments | Callable[[], Instruments],
        look: WatchOptions,
        directory: Path | None = None,
        *,
        said: Callable[[KnownSave], None] | None = None,
        environ: Mapping[str, str] = os.environ,
        tee: Callable[[Sink], Sink] | None = None,
        task: Task | None = None,
        alone: bool = False,
        purpose: str = "",
    ) -> None:
        """`alone`: nothing but this runs in this process. `tee`: somebody who wants to be told
        every line besides the files, such as a screen. `task`: one of several that record one run
        into one folder; `tools` is then called by the one of them that reads the node's meters.
        `purpose`: what it is recorded for, where that is no job."""
        # alone it is a run of its own, though its job has others: a script that starts again after
        # a failure has had two
        self.run_id = environ.get(RUN_ID, "") or new_run_id() if task is None else task.run
        self.folder, self._look = (
            folder_for(directory, self.run_id, "" if task is None else task.name),
            look,
        )
        self._clock, self._task = RealClock(), task
        self._records: Recorder | Station
        if callable(tools):
            assert task is not None
            self._records = Station(
                self.folder,
                self.run_id,
                lambda: tools().meters,
                rank=task.rank,
                local=task.local or 0,
                alone=alone,
            )
        else:
            files = FileSink(self.folder)
            self._records = Recorder(
                tools.meters,
                files if tee is None else tee(files),
                tools.clock,
                run_id=self.run_id,
                alone=alone,
                purpose=purpose,
            )
        self.progress = SaveProgress(self._records.mark, said)
        self._settling = Settling(self.tell)
        self._listener: Listener | None = None
        self._finders: list[Watcher | Burster] = []
        self._evidence: Evidence | None = None
        self.problems: list[str] = []
        self._begun_ns, self._environ = 0, environ
        self._job_pid: int | None = None

    def tell(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: object,
    ) -> None:
        """Everything gets its instant here, so that the recorder and the lines for people agree."""
        self.progress(
            name,
            window,
            by=by,
            rank=rank,
            t_ns=self._clock.now_ns() if t_ns is None else t_ns,
            **detail,
        )
        if by == "watch" and self._evidence is not None:
            if name == "end" or "durable_why" in detail:
                self._evidence.forget(window)
            elif name == "begin" and t_ns is not None:
                self._evidence.begin(window, t_ns)
            elif name == "committed" and t_ns is not None:
                self._evidence.committed(window, t_ns)

    def _expect(self, within_s: float) -> None:
        self._records.expect(within_s)
        self._sign()

    def _sign(self) -> None:
        if self._evidence is not None:
            self._evidence.sign()

    def _settle(
        self,
        window: str,
        paths: Sequence[Path | str],
        since_ns: int,
        written_ns: int,
        rank: int | None = None,
        closed: bool = True,
    ) -> None:
        """Files are written: what is known of who wrote them, and then when they are safe."""
        if self._evidence is not None and rank is None:
            self._evidence.written(
                window,
                written_ns,
                [Path(path) for path in paths],
                returned=not self.progress.hooked,
                closed=closed,
            )
        self._settling.follow(window, paths, since_ns, written_ns, rank, closed)

    def _settle_burst(
        self, window: str, paths: Sequence[Path | str], since_ns: int, written_ns: int
    ) -> None:
        """Of a burst the last write is known, not the close."""
        self._settle(window, paths, since_ns, written_ns, closed=False)

    def start(self, listen: bool = True) -> dict[str, str]:
        """The recorder and the folders' watchers run; what a job's environment needs for its hooks
        to speak to us."""
        self._records.start()
        rules = Rules(least_bytes=round(self._look.least_bytes), gap_s=self._look.gap_s)
        settings = WatchSettings(
            rules, create_later=self._look.create_later, ignore=(self.folder.absolute(),)
        )
        for directory in filter(self._watches, self._look.watch):
            watcher = Watcher(
                directory,
                self.tell,
                self._expect,
                settings=settings,
                settle=self._settle,
                closed=self._settling.closed,
                made=self._sign,
                job=self._processes if self._task is None else None,
            )
            watcher.start()
            self._finders.append(watcher)
        if not listen:
            return {}
        try:
            self._listener = Listener(self.tell, settle=self._settle)
            return dict(self._listener.environ())
        except (
            CkptcostError,
            OSError,
        ) as error:  # a machine without a place for a socket: everything else goes on
            self.problems.append(f"hooks cannot speak to this recorder: {error}")
            return {}

    def _watches(self, directory: Path) -> bool:
        """A folder has one watcher, or its files would count once for each task: of all nodes where
        others write there too."""
        if self._task is None:
            return True
        if kind_of(directory).blind:
            return self._task.rank == 0
        return self.reads if self._task.local is None else self._task.local == 0

    @property
    def recorder(self) -> Recorder:
        """For those who show what is read now, which none of several tasks does."""
        assert not isinstance(self._records, Station)
        return self._records

    @property
    def reads(self) -> bool:
        """The meters, now: not one of those that stand by."""
        return not isinstance(self._records, Station) or self._records.elected

    def begin(self, **detail: Any) -> None:
        """What was asked for begins now; readings from before are its margin."""
        self._begun_ns = self._clock.now_ns()
        self._records.mark(EDGE, by=ASKED, t_ns=self._begun_ns)
        if detail:
            self._records.mark(EDGE, by="wrap", t_ns=self._begun_ns, **detail)
        if not isinstance(self._records, Station):  # which says it where it has the meters
            job_facts.note_job_facts(self._records, self._environ)

    def _processes(self) -> Sequence[int]:
        return () if self._job_pid is None else descendants(self._job_pid)

    def follow(self, pid: int, *, whole: bool = False) -> None:
        """Without a folder to watch, the process's own writing shows when it saves. `whole`: it and
        what it starts is all of the job."""
        self._job_pid = pid if whole else None
        if self._look.watch and not self._finders:
            return  # another task watches
        self._evidence = Evidence(pid, self.tell)
        self._evidence.rest()
        if not self._look.watch:
            bursts = Bursts(
                least_bytes=round(self._look.least_bytes), gap_s=BURST_GAPS * self._look.gap_s
            )
            burster = Burster(pid, self.tell, self._expect, self._settle_burst, bursts=bursts)
            if burster.absence is not None:
                self.problems.append(absent(burster.absence))
            burster.start()
            self._finders.append(burster)

    def look(self) -> None:
        """Now and then, from whoever waits for the job."""
        if self._evidence is not None:
            self._evidence.late()
            self._evidence.rest()

    def over(
        self,
        at_ns: int,
        wait: Callable[[float], bool],
        waiting: Callable[[int], None] | None = None,
        **detail: Any,
    ) -> None:
        """The job has ended: files' last words, then what the page cache still owes, unless
        `wait(seconds)` says to leave it."""
        self._records.mark(EDGE, by="wrap", t_ns=at_ns, **detail)
        for finder in self._finders:
            finder.stop()
        self._wait_for_pages(wait, waiting)
        self._mark_left_out(at_ns)
        if self._finders and not self.progress.saves:
            why = self._where_nothing_was()
            self._records.mark(EDGE, by="wrap", t_ns=at_ns, nothing_found=why)
        self._records.mark(
            EDGE, by=ASKED, t_ns=max(at_ns, self._clock.now_ns()) if self._begun_ns else at_ns
        )
        if self.reads:
            self._records.expect(MARGIN_S)
            wait(MARGIN_S)

    def _wait_for_pages(
        self, wait: Callable[[float], bool], waiting: Callable[[int], None] | None
    ) -> None:
        until_ns = self._clock.now_ns() + round(self._look.settle_s * S)
        self.look()
        if waiting is not None and self.pending and self._look.settle_s:
            waiting(self.pending)
        while self.pending and self._clock.now_ns() < until_ns and not wait(0.1):
            pass
        if self._evidence is not None:
            self._evidence.late(last=True)
        self._settling.stop(0.0)

    def _mark_left_out(self, at_ns: int) -> None:
        """Files that were not the job's, and whose they were."""
        others: dict[str, Any] = {}
        for finder in self._finders:
            if isinstance(finder, Watcher):
                others |= finder.left_out
        if others:
            by = min(f"{other.name} ({other.pid})" for other in others.values())
            self._records.mark(EDGE, by="wrap", t_ns=at_ns, left_out=len(others), left_out_by=by)

    def _where_nothing_was(self) -> str:
        """What was looked at in vain, as a code."""
        if not self._look.watch:
            return "NO_BURST"
        if not any(folder.is_dir() for folder in self._look.watch):
            return "NO_FOLDER"
        return "NO_SAVE_IN_FOLDER"

    @property
    def pending(self) -> int:
        """Checkpoints that are written and not known to be safe."""
        return len(self._settling.pending)

    def close(self) -> None:
        """Twice is as good as once."""
        for finder in self._finders:
            with contextlib.suppress(Exception):
                finder.stop()
        with contextlib.suppress(Exception):
            self._settling.stop(0.0)
        if self._evidence is not None:
            self._evidence.close()
        if self._listener is not None:
            self._listener.close()
        self._records.stop()

    def troubles(self) -> Iterator[str]:
        """What went wrong with looking and recording, in words."""
        yield from self.problems
        for finder in self._finders:
            if isinstance(finder, Watcher) and finder.problem:
                yield finder.problem
        recorder = self._records
        if isinstance(recorder, Station):
            if recorder.problem:
                yield recorder.problem
            if recorder.recorder is None:
                return
            recorder = recorder.recorder
        if problem := recorder.stats.problem:
            yield problem
