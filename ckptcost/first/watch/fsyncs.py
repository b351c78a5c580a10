"""Which files a job is syncing right now, seen without its help: its threads' system calls, by
polling /proc/PID/task/TID/syscall.

That file names the call a sleeping thread is in, with its arguments, to whoever may trace the
process (the same user, and with Yama's scope 1 an ancestor). A call shorter than the polling is
simply not seen, and neither is one through io_uring or on a server's side; what is seen did happen.
A thread that is on a processor says only `running`, inside a call and outside, so a sync is over at
the first poll that finds its thread elsewhere, and goes on if it is found in the same call again
soon with nothing but `running` between.

Measured: 3 us a thread and poll. At most `MOST_AT_ONCE` threads are asked in one poll, those first
that lately wrote or synced, and the pause grows so that all of it takes at most 2 % of a core.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from ckptcost.first.meters.kept import OpenFile
from ckptcost.first.watch.base import Tell
from ckptcost.first.watch.settle import files_in
from ckptcost.first.watch.writers import covers

S: Final = 1_000_000_000
_CALLS: Final[dict[str, dict[bytes, str]]] = {
    "x86_64": {
        b"74": "fsync",
        b"75": "fdatasync",
        b"26": "msync",
        b"162": "sync",
        b"306": "syncfs",
        b"277": "sync_file_range",
    },
    "aarch64": {
        b"82": "fsync",
        b"83": "fdatasync",
        b"227": "msync",
        b"81": "sync",
        b"267": "syncfs",
        b"84": "sync_file_range",
    },
}
_WRITES: Final[dict[str, frozenset[bytes]]] = {
    # write, pwrite64, writev, pwritev, pwritev2, copy_file_range
    "x86_64": frozenset((b"1", b"18", b"20", b"296", b"328", b"326")),
    "aarch64": frozenset((b"64", b"68", b"66", b"70", b"287", b"285")),
}
MOST_THREADS: Final = 1024
"""descriptors we allow ourselves; threads beyond that are not watched"""
MOST_AT_ONCE: Final = 32
_MOST_HOT: Final = 16
TICK_NS: Final = 20_000_000
"""file systems note times by a clock that ticks every 4 to 10 ms"""
_HOLE_NS: Final = 25_000_000
"""on a processor so long is no part of a sync, whose work is waiting"""
_MOST_FILES: Final = 4096
_MOST_SYNCS: Final = 10_000
SHARE: Final = 0.02
WHY: Final = {
    "UNKNOWN_MACHINE": "the numbers of this processor's system calls are not known here",
    "NOT_PERMITTED": (
        "the system calls of the job's threads may not be read: it runs as another user, or ptrace"
        " is forbidden"
    ),
    "NO_SYSCALL_FILE": "this kernel has no /proc/PID/task/TID/syscall",
}


@dataclass
class Sync:
    """One call that was seen."""

    pid: int
    tid: int
    call: str
    path: str
    """empty for `sync`, and where it could not be found out"""
    file: tuple[int, int] | None
    """device and inode"""
    begin_ns: int
    """first poll that saw it"""
    seen_ns: int
    """last poll that saw it"""
    over_ns: int | None = None
    """first poll after that: it had ended by then"""


class Synced(NamedTuple):
    over_ns: int
    """the last of the calls had ended"""
    unsure_s: float
    """and was seen so much earlier"""
    files: int
    """for which a call was seen"""
    of: int
    """files that there are"""
    tids: frozenset[int] = frozenset()
    """threads that synced them"""

    @property
    def all(self) -> bool:
        return self.files == self.of > 0


class _Thread:
    __slots__ = ("doubted", "kept", "now", "pid", "raw", "tid")

    def __init__(self, pid: int, tid: int, procfs: Path) -> None:
        self.pid, self.tid = pid, tid
        self.kept = OpenFile(procfs / str(pid) / "task" / str(tid) / "syscall")
        self.now: Sync | None = None
        self.raw = b""
        self.doubted = False
        """`now` was over at the last poll, unless the thread turns out to be still in it"""


class Fsyncs:
    """`start` when a checkpoint begins, `stop` when its last file is closed; then `synced` or
    `mark`. Or `poll` by hand."""

    def __init__(
        self,
        pids: Callable[[], Iterable[int]],
        tell: Tell | None = None,
        *,
        poll_s: float = 0.005,
        procfs: Path = Path("/proc"),
        machine: str = "",
    ) -> None:
        self._pids, self._tell, self._procfs = pids, tell, procfs
        self._poll_s = poll_s
        machine = machine or platform.machine()
        self._calls, self._writes = _CALLS.get(machine, {}), _WRITES.get(machine, frozenset())
        self.why = "" if self._calls else "UNKNOWN_MACHINE"
        """code in WHY, where something cannot be seen"""
        self.seen: list[Sync] = []
        self.cpu_s = 0.0
        self.polls = 0
        self._threads: dict[int, _Thread] = {}
        self._refused: set[int] = set()
        self._hot: dict[int, None] = {}
        self._turn: list[int] = []
        self._look_ns = 0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Forgets what was seen before."""
        self.stop()
        with self._lock:
            self.seen = []
        if not self._calls:
            return
        self._ending.clear()
        self._look_ns = 0
        self._thread = threading.Thread(target=self._loop, name="ckptcost-fsyncs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """A call that still goes on then has no end."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(5.0)
            self._thread = None
        self._forget(list(self._threads), None)

    def synced(
        self,
        paths: Iterable[str | Path],
        closed_ns: int | None = None,
        before_ns: int | None = None,
    ) -> Synced | None:
        """When the last sync of these files (and of those below) was over, and how many of them one
        was seen of. None: none was seen.

        A sync counts for a file if it began after the file's last write and, where that is said,
        before `before_ns`, when the next save began. One that began before the last file was
        closed, at `closed_ns`, was over by then: polls see that late.

        Files count as the same by their inode, so a rename in between does not matter. Touches the
        file system, so call it where that may hang.
        """
        wanted = [os.path.realpath(path) for path in paths]
        wrote_ns, devices = _identities(wanted)
        seen = [
            (over_ns, each, mine)
            for each, over_ns in self._over(before_ns)
            if (mine := _files_of(each, wrote_ns, devices)) is not None
            and (mine or covers(wanted, each.path))
        ]
        if not seen:
            return None
        over_ns, last, _ = max(seen, key=itemgetter(0))
        if closed_ns is not None and last.begin_ns < closed_ns:
            over_ns = min(over_ns, closed_ns)
        unsure_s = max(over_ns - last.seen_ns, 0) / S
        files = set[tuple[int, int]]().union(*(mine for *_, mine in seen))
        tids = frozenset(each.tid for _, each, _ in seen)
        return Synced(over_ns, unsure_s, len(files), len(wrote_ns), tids)

    def _over(self, before_ns: int | None) -> list[tuple[Sync, int]]:
        """Calls that make files safe and are over, with when they were."""
        with self._lock:
            return [
                (each, each.over_ns)
                for each in self.seen
                if each.over_ns is not None
                and each.call != "sync_file_range"  # which makes nothing safe
                and (before_ns is None or each.begin_ns < before_ns)
            ]

    def mark(
        self,
        window: str,
        paths: Iterable[str | Path],
        rank: int | None = None,
        closed_ns: int | None = None,
        before_ns: int | None = None,
    ) -> Synced | None:
        """`synced`, where a sync of every file was seen; what was seen of some is a note."""
        found = self.synced(paths, closed_ns, before_ns)
        if found is None or self._tell is None:
            return found
        if found.all:
            self._tell(
                "synced",
                window,
                by="watch",
                rank=rank,
                t_ns=found.over_ns,
                how="fsync",
                unsure_s=found.unsure_s,
            )
        else:
            self._tell(
                "note",
                window,
                by="watch",
                rank=rank,
                t_ns=found.over_ns,
                synced_files=found.files,
                of_files=found.of,
            )
        return found

    def poll(self) -> None:
        """One look at the threads, or at as many as are due."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._look_ns:
            began_ns = time.thread_time_ns()
            self._look()
            self._look_ns = now_ns + max(S // 4, (time.thread_time_ns() - began_ns) * 200)
        hot = list(self._hot)[-_MOST_HOT:]
        due = self._turn[: MOST_AT_ONCE - len(hot)]
        del self._turn[: len(due)]
        if not self._turn:
            self._turn = list(self._threads)
        gone = []
        for tid in dict.fromkeys(hot + due):
            thread = self._threads.get(tid)
            if thread is None:
                continue
            try:
                text = thread.kept.read(256)
            except PermissionError:
                self._refuse(thread.pid)
                gone.append(tid)
                continue
            except OSError:
                gone.append(tid)
                continue
            self._see(thread, text, time.monotonic_ns())
        self._forget(gone, time.monotonic_ns())
        self.polls += 1

    def _see(self, thread: _Thread, text: bytes, now_ns: int) -> None:
        number, _, rest = text.partition(b" ")
        call = self._calls.get(number)
        raw = number + b" " + b" ".join(rest.split(b" ", 3)[:3])
        if thread.now is not None:
            if (
                call is not None
                and raw == thread.raw
                and not (thread.doubted and now_ns - thread.now.seen_ns > _HOLE_NS)
            ):
                thread.now.seen_ns, thread.now.over_ns = now_ns, None
                thread.doubted = False
                return
            if not thread.doubted:
                thread.now.over_ns = now_ns
                thread.doubted = True
            if text.startswith(b"running"):
                return
            thread.now = None
        if call is not None:
            self._begin(thread, call, rest, raw, now_ns)
        elif number in self._writes:
            self._warm(thread.tid)

    def _begin(self, thread: _Thread, call: str, rest: bytes, raw: bytes, now_ns: int) -> None:
        self._warm(thread.tid)
        path, file = self._target(thread.pid, call, int(rest.split(b" ", 1)[0], 16))
        thread.now, thread.raw, thread.doubted = (
            Sync(thread.pid, thread.tid, call, path, file, now_ns, now_ns),
            raw,
            False,
        )
        with self._lock:
            if len(self.seen) < _MOST_SYNCS:
                self.seen.append(thread.now)

    def _target(self, pid: int, call: str, argument: int) -> tuple[str, tuple[int, int] | None]:
        """The file that a call is about."""
        if call == "sync":
            return "", None
        try:
            if call == "msync":
                return _mapped_file(self._procfs / str(pid) / "maps", argument)
            link = f"{self._procfs}/{pid}/fd/{argument & 0xFFFFFFFF}"
            path = os.readlink(link)
            there = os.stat(link)
        except OSError:
            return "", None
        return path.removesuffix(" (deleted)"), (there.st_dev, there.st_ino)

    def _refuse(self, pid: int) -> None:
        self._refused.add(pid)
        self.why = "NOT_PERMITTED"

    def _warm(self, tid: int) -> None:
        self._hot.pop(tid, None)
        self._hot[tid] = None
        if len(self._hot) > 4 * _MOST_HOT:
            del self._hot[next(iter(self._hot))]

    def _look(self) -> None:
        """New threads."""
        for pid in self._pids():
            if pid in self._refused:
                continue
            try:
                tids = os.listdir(self._procfs / str(pid) / "task")
            except OSError:
                continue
            for tid in map(int, tids):
                if tid in self._threads or len(self._threads) >= MOST_THREADS:
                    continue
                try:
                    self._threads[tid] = _Thread(pid, tid, self._procfs)
                    self._turn.append(tid)
                except PermissionError:
                    self._refuse(pid)
                    break
                except OSError:
                    if (self._procfs / str(pid) / "task" / str(tid)).exists():
                        self.why = "NO_SYSCALL_FILE"

    def _forget(self, tids: Iterable[int], now_ns: int | None) -> None:
        for tid in tids:
            thread = self._threads.pop(tid)
            thread.kept.close()
            self._hot.pop(tid, None)
            if thread.now is not None and thread.now.over_ns is None:
                thread.now.over_ns = now_ns

    def _loop(self) -> None:
        while not self._ending.is_set():
            began_ns = time.thread_time_ns()
            self.poll()
            cost_s = (time.thread_time_ns() - began_ns) / S
            self.cpu_s += cost_s
            self._ending.wait(max(self._poll_s, cost_s / SHARE))


def _mapped_file(maps: Path, address: int) -> tuple[str, tuple[int, int] | None]:
    """The file behind an address. Reading `maps` may take a millisecond, and is done once a
    call."""
    for line in maps.read_bytes().splitlines():
        span, _, _, device, inode, *path = line.split(None, 5)
        low, high = (int(end, 16) for end in span.split(b"-"))
        if low <= address < high and path:
            major, minor = (int(part, 16) for part in device.split(b":"))
            return os.fsdecode(path[0]).removesuffix(" (deleted)"), (
                os.makedev(major, minor),
                int(inode),
            )
    return "", None


def _files_of(
    sync: Sync, wrote_ns: dict[tuple[int, int], int], devices: set[int]
) -> set[tuple[int, int]] | None:
    """The files that a call made safe, which were not written since. None: it was of all or of one
    of them, and came too early for any; an empty set says that it was of no file here."""
    if sync.call == "sync" or (
        sync.call == "syncfs" and sync.file is not None and sync.file[0] in devices
    ):
        files = set(wrote_ns)
    elif sync.file is not None and sync.file in wrote_ns:
        files = {sync.file}
    else:
        return set()
    return {file for file in files if sync.seen_ns >= wrote_ns[file] - TICK_NS} or None


def _identities(paths: Iterable[str]) -> tuple[dict[tuple[int, int], int], set[int]]:
    """Files with their last write on our clock, and the devices that they are on."""
    files: dict[tuple[int, int], int] = {}
    ahead_ns = time.time_ns() - time.monotonic_ns()
    devices: set[int] = set()
    for path in paths:
        try:
            for name in files_in(Path(path), _MOST_FILES)[0]:
                there = os.lstat(name)
                files[there.st_dev, there.st_ino] = there.st_mtime_ns - ahead_ns
                devices.add(there.st_dev)
        except OSError:
            continue
    return files, devices
