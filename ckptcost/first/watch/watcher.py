"""Finds the checkpoints that are written into a directory, and tells when each began, was written
and committed.

One daemon thread: it sleeps in poll(2) until the kernel has something, reads sizes only while a
file is being written, and never opens a file. What it cannot do is in `problem`; nothing is raised
after `start`.

Whose the files are, /proc/PID/fd tells as long as they are open. A file counts as another job's
only where a process of this machine that the job did not start has it open for writing, the job's
own do not, and the job itself was seen to write into the folder: where a server or a daemon writes
for it, and where other nodes do, all stays the job's.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from ckptcost.first.errors import InputError
from ckptcost.first.meters.kept import os_error_text
from ckptcost.first.watch.base import Expect, Tell
from ckptcost.first.watch.filesystems import Mounted, born_ns, kind_of, monotonic_ns
from ckptcost.first.watch.grouping import Grouping
from ckptcost.first.watch.groups import CheckpointStep, FileStat, Rules
from ckptcost.first.watch.inotify import FileEvent, Inotify
from ckptcost.first.watch.names import is_noise
from ckptcost.first.watch.polling import Polling
from ckptcost.first.watch.writers import OpenForWriting, open_for_writing

S: Final = 1_000_000_000
_SHARE: Final = 50
"""looking at all processes of a machine may take one part in so many of a core"""


class Other(NamedTuple):
    pid: int
    name: str
    """of its command"""


class Owners:
    """`others` while files are written. `job` gives the processes of the job, none as long as they
    are not known."""

    def __init__(
        self, folder: Path, job: Callable[[], Iterable[int]], procfs: Path = Path("/proc")
    ) -> None:
        self._folder = os.path.realpath(folder)
        self._job, self._procfs = job, procfs
        self._writes_here = False
        self._next_ns = 0

    def others(self, paths: Iterable[str]) -> tuple[set[str], dict[str, Other]]:
        """Of these, relative to the folder: which are surely the job's, and who else writes
        which."""
        job = set(self._job())
        if not job:
            return set(), {}
        wanted = {os.path.join(self._folder, path): path for path in paths}
        own = {each.path for each in self._open(job)}
        self._writes_here = self._writes_here or bool(own)
        mine = {wanted[path] for path in own & set(wanted)}
        if not self._writes_here or len(mine) == len(wanted) or time.monotonic_ns() < self._next_ns:
            return mine, {}
        began_ns = time.thread_time_ns()
        foreign = self._open(set(self._all()) - job - {os.getpid()})
        self._next_ns = time.monotonic_ns() + (time.thread_time_ns() - began_ns) * _SHARE
        left = wanted.keys() - own
        theirs = {
            wanted[each.path]: Other(each.pid, self._name(each.pid))
            for each in foreign
            if each.path in left
        }
        return mine, theirs

    def _open(self, pids: Iterable[int]) -> list[OpenForWriting]:
        found = open_for_writing(pids, self._procfs)
        return [each for each in found if each.path.startswith(self._folder + "/")]

    def _all(self) -> list[int]:
        return [int(name) for name in os.listdir(self._procfs) if name.isdigit()]

    def _name(self, pid: int) -> str:
        try:
            return (self._procfs / str(pid) / "comm").read_text("utf-8", "replace").strip()
        except OSError:
            return ""


SIZES_S = 0.15
"""between readings of sizes, while a file is being written"""
REST_S = 0.5
"""between looks at what is written and may get more"""
LOOK_S = 1.0
"""between looks whether the directory is still there"""
EXPECT_S = 2.0
_OF_NO_FILE: Final = ("gone", "overflow", "lost", "found")
_PROBLEMS: Final = {
    "overflow": (
        "so much happened that events were lost; the directory was read again, instants"
        " near then are late"
    ),
    "lost": "the directory is gone; waiting for it",
    "found": "",
}
"""what an event says of watching"""
_LAST_S = 8.0
"""the most that `stop` waits for files to be still, where closing is not seen"""


class Settle(Protocol):
    """Finds out when files are durable, and marks it."""

    def __call__(
        self,
        window: str,
        paths: list[Path],
        since_ns: int,
        written_ns: int,
        *,
        closed: bool,
    ) -> None:
        """`closed`: the files were, at `written_ns`; else that is the last write, and they may be
        open."""


class Closed(Protocol):
    """A file was closed that may be part of a checkpoint: what becomes of it is to be looked at
    from now on."""

    def __call__(self, path: Path, t_ns: int) -> None: ...


@dataclass(frozen=True, slots=True)
class WatchSettings:
    rules: Rules = field(default_factory=Rules)
    create_later: bool = False
    """wait for a directory that does not exist yet"""
    ignore: tuple[Path, ...] = ()
    """below the watched directory: our own run directory"""
    poll: bool | None = None
    """read the directory again and again instead of inotify; None: where inotify would be blind"""
    interval_s: float = 0.5
    poll_still_s: float = 5.0
    """polled files are closed when they did not change for so long"""


class Watcher:
    """`start`, `stop`; `problem`, `open` and `how` at any time."""

    def __init__(
        self,
        directory: Path,
        tell: Tell,
        expect: Expect,
        *,
        settings: WatchSettings | None = None,
        settle: Settle | None = None,
        closed: Closed | None = None,
        made: Callable[[], None] | None = None,
        job: Callable[[], Iterable[int]] | None = None,
    ) -> None:
        """`job`: its processes; files that others of this machine write are then left out."""
        self.settings = settings or WatchSettings()
        self.directory = Path(os.path.abspath(directory))
        self._tell, self._expect, self._settle, self._closed, self._made = (
            tell,
            expect,
            settle,
            closed,
            made,
        )
        self._grouping = Grouping(self.settings.rules)
        self._owners = Owners(self.directory, job) if job is not None else None
        self.left_out: dict[str, Other] = {}
        """files of others in the folder, and who wrote them"""
        self._source: Inotify | Polling | None = None
        self._wake_fd = -1
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._expected_ns = self._next_scan_ns = self._next_look_ns = 0
        self._kept_problem = self._step_problem = ""
        self.mounted: Mounted = Mounted("", False, "")
        self.open: tuple[str, ...] = ()
        """labels of checkpoints that have begun and not ended"""
        self.how = ""
        """inotify or poll, and why"""

    @property
    def problem(self) -> str:
        source = self._source
        return "; ".join(
            dict.fromkeys(
                filter(
                    None, (self._kept_problem, source.problem if source else "", self._step_problem)
                )
            )
        )

    def start(self) -> Watcher:
        """Raises InputError where there is no such directory."""
        if self.directory.exists() and not self.directory.is_dir():
            raise InputError(
                "not a directory",
                where=str(self.directory),
                remedy="name the directory that checkpoints are written into",
            )
        if not self.directory.exists() and not self.settings.create_later:
            raise InputError(
                "no such directory",
                where=str(self.directory),
                remedy="create it, or say that the job will",
            )
        self.mounted = kind_of(self.directory)
        self._pick(
            self.settings.poll if self.settings.poll is not None else self.mounted.blind,
            self.mounted.why,
        )
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._loop, name="ckptcost-watch", daemon=True)
        self._thread.start()
        return self

    def stop(self, timeout_s: float = 15.0) -> None:
        """Tells what is complete, and ends what is not with an error. Twice is as good as once."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopping = True
        with contextlib.suppress(OSError):
            os.eventfd_write(self._wake_fd, 1)
        if thread is not threading.current_thread():
            thread.join(timeout_s)
        if not thread.is_alive():
            os.close(self._wake_fd)

    # ---- the thread ----

    def _pick(self, poll: bool, reason: str) -> None:
        root = str(self.directory)
        ignored = []
        for path in self.settings.ignore:
            for above, below in (
                (root, os.path.abspath(path)),
                (os.path.realpath(root), os.path.realpath(path)),
            ):
                if below.startswith(above.rstrip("/") + "/"):
                    ignored.append(below[len(above.rstrip("/")) + 1 :])
        ignore = tuple(dict.fromkeys(ignored))
        if not poll:
            source = Inotify(root, ignore)
            if not source.exhausted:
                self._source, self.how = source, "inotify"
                return
            self._kept_problem = reason = source.exhausted
            source.close()
        self._grouping.polled = True
        self._source = Polling(
            root, ignore, interval_s=self.settings.interval_s, still_s=self.settings.poll_still_s
        )
        self.how = f"poll: {reason}" if reason else "poll"

    def _loop(self) -> None:
        poller = select.poll()
        poller.register(self._wake_fd, select.POLLIN)
        if isinstance(self._source, Inotify):
            poller.register(self._source.fileno(), select.POLLIN)
        while not self._stopping:
            try:
                poller.poll(self._timeout_ms())
                self._step(poller)
                self._step_problem = ""
            except OSError as error:
                self._defect(f"{self.directory}: {os_error_text(error)}")
            except Exception as error:  # a defect of ours: say it and go on
                self._defect(f"the watcher failed: {type(error).__name__}: {error}")
        try:
            self._finish()
        except Exception as error:
            self._step_problem = f"the watcher failed at its end: {type(error).__name__}: {error}"
        if isinstance(self._source, Inotify):
            self._source.close()
        self.open = ()

    def _defect(self, problem: str) -> None:
        self._step_problem = problem
        time.sleep(0.2)  # not in a circle

    def _timeout_ms(self) -> int:
        now_ns = time.monotonic_ns()
        source, grouping = self._source, self._grouping
        wait_s = LOOK_S if source is None or source.here else REST_S / 2
        if grouping.wanted(now_ns):
            wait_s = SIZES_S
        elif grouping.pending:
            wait_s = REST_S / 2
        if isinstance(source, Inotify) and source.waiting:
            wait_s = 0.03
        if isinstance(source, Polling):
            wait_s = min(wait_s, max(0.0, (self._next_scan_ns - now_ns) / S))
        return max(1, round(wait_s * 1000))

    def _step(self, poller: select.poll) -> None:
        source = self._source
        now_ns = time.monotonic_ns()
        events: list[FileEvent] = []
        if isinstance(source, Inotify):
            events = source.read()
            if now_ns >= self._next_look_ns:
                self._next_look_ns = now_ns + round((LOOK_S if source.here else REST_S / 2) * S)
                events += source.look()
            if source.exhausted:
                poller.unregister(source.fileno())
                source.close()
                self._kept_problem = source.exhausted
                self._pick(True, source.exhausted)
        elif isinstance(source, Polling) and now_ns >= self._next_scan_ns:
            events = source.scan()
            self._next_scan_ns = time.monotonic_ns() + round(source.interval_s * S)
        if events:
            self._take(events)
        self._turn()

    def _take(self, events: list[FileEvent]) -> None:
        for event in events:
            self._kept_problem = _PROBLEMS.get(event.kind, self._kept_problem)
            found = self._stat_after(event)
            if (
                self._made is not None
                and event.kind == "created"
                and not event.is_dir
                and not is_noise(event.path)
            ):
                self._made()  # before a byte is in it
            self._grouping.event(event, found)
            # under a new name too: whoever looks comes later than the job that closes and renames
            is_over = event.kind == "moved" or (event.kind == "closed" and found is not None)
            if self._closed is not None and is_over and not is_noise(event.path):
                self._closed(self.directory / event.path, event.t_ns)

    def _stat_after(self, event: FileEvent) -> FileStat | None:
        if event.is_dir or event.kind in _OF_NO_FILE:
            return None
        return self._stat(event.path, born=event.kind == "moved" and not event.old_path)

    def _stat(self, path: str, *, born: bool = False) -> FileStat | None:
        full = os.path.join(self.directory, path)
        try:
            found = os.lstat(full)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode):
            return FileStat(0, found.st_mtime_ns, None)
        now_ns = time.monotonic_ns()
        return FileStat(
            found.st_size,
            found.st_mtime_ns,
            monotonic_ns(found.st_mtime_ns, now_ns),
            born_ns(os.fsencode(full), now_ns) if born else None,
        )

    def _turn(self) -> None:
        now_ns = time.monotonic_ns()
        self._ask_whose()
        wanted = self._grouping.wanted(now_ns)
        if wanted:
            self._grouping.read(now_ns, {path: self._stat(path) for path in wanted})
        if self._grouping.likely and now_ns >= self._expected_ns:
            self._expected_ns = now_ns + S
            self._expect(EXPECT_S)
        self._tell_steps(self._grouping.tick(time.monotonic_ns()))
        paused, self._grouping.paused = self._grouping.paused, []
        still, self._grouping.still = self._grouping.still, {}
        if self._closed is not None:
            for path in paused:
                self._closed(self.directory / path, now_ns)
        if isinstance(self._source, Inotify):
            self._await_writes(self._source, still, now_ns)

    def _await_writes(
        self, source: Inotify, still: dict[str, tuple[int, int]], now_ns: int
    ) -> None:
        for path, was in still.items():
            source.await_write(path)
            now = self._stat(path)
            if now is not None and (now.size, now.mtime_ns) != was:  # while we asked
                self._grouping.event(FileEvent(now_ns, "resumed", path, how="inotify"), now)

    def _ask_whose(self) -> None:
        """As soon as a file is there, and before anything is told of it: a quick save is open for
        milliseconds."""
        paths = self._grouping.unclaimed if self._owners is not None else []
        if self._owners is None or not paths:
            return
        mine, theirs = self._owners.others(paths)
        for path in mine:
            self._grouping.claim(path)
        for path, other in theirs.items():
            if self._grouping.leave_out(path):
                self.left_out[path] = other

    def _tell_steps(self, steps: list[CheckpointStep]) -> None:
        for step in steps:
            if step.name != "end" or step.error or self._settle is None:
                self._tell(
                    step.name,
                    printable(step.label),
                    by="watch",
                    t_ns=step.t_ns,
                    path=printable(step.path),
                    **self._details_of(step),
                )
            if step.name == "written" and self._settle is not None:
                paths = [self.directory / each for each in step.paths]
                self._settle(
                    printable(step.label),
                    paths,
                    step.since_ns,
                    step.t_ns,
                    closed=step.how != "still",
                )
        self.open = tuple(map(printable, self._grouping.open))

    def _details_of(self, step: CheckpointStep) -> dict[str, Any]:
        details: dict[str, Any] = {}
        if step.name != "end":
            details["how"] = step.how or self.how.partition(":")[0]
        if step.name != "begin":
            details |= {"bytes": step.bytes, "files": step.files}
        if step.error:
            details["error"] = step.error
        return details

    def _finish(self) -> None:
        """What happened until now, and the last word on it."""
        until_s = time.monotonic() + _LAST_S
        while isinstance(self._source, Polling) and time.monotonic() < until_s:
            self._take(self._source.scan())
            self._turn()
            if not self._grouping.writing:
                break
            time.sleep(0.2)
        if isinstance(self._source, Inotify):
            for _ in range(1000):  # what is queued, and half a rename
                events = self._source.read()
                self._take(events)
                if not events and not self._source.waiting:
                    break
                if not events:
                    time.sleep(0.01)
        self._turn()
        self._tell_steps(self._grouping.finish(time.monotonic_ns()))


def printable(path: str) -> str:
    r"""A path that any file and screen takes: what is not UTF-8, and what would move a cursor, in
    escapes.

    >>> printable("a\udcffb\n"), printable("größe")
    ('a\\xffb\\n', 'größe')
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
