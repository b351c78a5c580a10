"""Who writes a checkpoint, and whether training stands still meanwhile, from /proc alone.

Three pictures tell: the main thread writes (a plain torch.save), the main thread waits while others
write (a thread pool with a join), or it goes on computing (an asynchronous save). With one of the
first two the save returned when its last file was closed; with the third nobody outside can say
when. The bytes of a thread are in its own `io` file, and those of threads that ended stay in the
process's, so two readings of the process and its main thread are enough. What the main thread does
is compared with what it did before: a thread that always waits (for a GPU, for its children) tells
nothing by waiting.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ckptcost.first.meters.process import stat_of

S: Final = 1_000_000_000
WHY: Final = {
    "NO_WRITER": "no process of ours wrote as much",
    "NOT_PERMITTED": "the processes' counters may not be read",
    "TOO_SHORT": "the save was too short for the counters",
    "ALWAYS_WAITS": "the main thread waits at other times too",
    "UNCLEAR": "the main thread did less than usual, and more than nothing",
    "MAIN_WORKED": "the main thread went on computing meanwhile",
    "WRITTEN_OVER": "its files were gone or written over before anybody could look",
    "NOT_ALONE": (
        "another save began before this one was known to be over: they came closer than --gap"
    ),
}
_MOST_FILES: Final = 64
LEAST_S: Final = 0.02
MOST_BY_MAIN: Final = 0.9
"""of the bytes: with less, others wrote while it may have gone on"""
IDLE_SHARE: Final = 0.1
"""of a core: a main thread with less than that in its usual time tells nothing by waiting"""
_WAITS, _WORKS = 0.1, 0.5
"""of its usual share"""
_IO = re.compile(rb"wchar: (\d+)\n(?:.*\n)*?write_bytes: (\d+)")
_PART = re.compile(r"\d-of-\d|rank|shard|part", re.IGNORECASE)
"""in names of files that together are one save"""
_FLAGS = re.compile(rb"^flags:\s*([0-7]+)", re.M)
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class OpenForWriting(NamedTuple):
    """A regular file that a process has open for writing."""

    pid: int
    path: str
    size_bytes: int
    mtime_ns: int


class ProcessReading(NamedTuple):
    """Of a process and its main thread: since their start."""

    parent: int
    born_s: float
    """seconds since boot"""
    wchar: int
    written: int
    main_wchar: int
    main_written: int
    main_cpu_s: float


class SeenWriter(NamedTuple):
    code: str
    """MAIN_WROTE, MAIN_WAITED, MAIN_WORKED or UNKNOWN"""
    why: str = ""
    """code in WHY, of an UNKNOWN"""
    pid: int = 0
    """who wrote"""
    how: str = ""
    """open: it was seen with the file open; bytes: it wrote most"""
    bytes: int = 0
    main_share: float = 0.0
    """of these bytes, by its main thread"""
    trainer: int = 0
    """the process whose main thread was judged: the writer, or the one above it that was busy
    before"""
    cpu_share: float = 0.0
    """of a core, by that thread during the save"""
    usual_share: float = 0.0
    """and before it"""

    @property
    def stood_still(self) -> bool | None:
        """Training did, until the last file was closed; None where that is not known."""
        return {"MAIN_WROTE": True, "MAIN_WAITED": True, "MAIN_WORKED": False}.get(self.code)


def covers(paths: Iterable[str], path: str) -> bool:
    """Whether a path is one of these or lies under one.

    >>> covers(["/ckpt/step_9"], "/ckpt/step_9/model.pt"), covers(["/ckpt/step_9"], "/ckpt/step_90")
    (True, False)
    """
    return any(path == each or path.startswith(each.rstrip("/") + "/") for each in paths)


def open_for_writing(pids: Iterable[int], procfs: Path = Path("/proc")) -> list[OpenForWriting]:
    """About 5 us a descriptor. Processes that are gone or somebody else's have none."""
    found = []
    for pid in pids:
        try:
            names = os.listdir(f"{procfs}/{pid}/fd")
        except OSError:
            continue
        for name in names:
            try:
                each = _descriptor(procfs, pid, name)
            except OSError:
                continue
            if each is not None:
                found.append(each)
    return found


def _descriptor(procfs: Path, pid: int, name: str) -> OpenForWriting | None:
    """None: of no file, or not for writing."""
    link = f"{procfs}/{pid}/fd/{name}"
    path = os.readlink(link)
    if not path.startswith("/") or (
        path.startswith(("/dev/", "/proc/", "/sys/")) and not path.startswith("/dev/shm/")
    ):
        return None
    with open(f"{procfs}/{pid}/fdinfo/{name}", "rb") as info:
        flags = _FLAGS.search(info.read(256))
    if flags is None or not int(flags[1], 8) & (os.O_WRONLY | os.O_RDWR):
        return None
    there = os.stat(link)
    if not stat.S_ISREG(there.st_mode):
        return None
    return OpenForWriting(pid, path.removesuffix(" (deleted)"), there.st_size, there.st_mtime_ns)


class Growing:
    """Files that are written while we look now and then, by descriptors that follow a rename and
    keep no blocks of what is deleted for longer than it takes."""

    def __init__(self) -> None:
        self.at_once = 0
        """the most files that were open for writing at one look, of those that are held"""
        self._before: dict[str, int] = {}
        self._held: dict[str, tuple[int, int]] = {}
        """descriptor, and size when it was first seen"""

    def rest(self, found: Iterable[OpenForWriting]) -> None:
        """Between bursts: what is open all the time is a log, unless it grows by a burst."""
        self._before = {each.path: each.size_bytes for each in found}

    def look(self, found: Iterable[OpenForWriting], since_wall_ns: int) -> None:
        found = list(found)
        for each in found:
            if (
                each.path in self._held
                or len(self._held) >= _MOST_FILES
                or each.mtime_ns < since_wall_ns
            ):
                continue
            try:
                fd = os.open(each.path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue
            self._held[each.path] = (fd, self._before.get(each.path, 0))
        self.at_once = max(self.at_once, len({e.path for e in found} & self._held.keys()))

    def written(self, least_bytes: float) -> list[tuple[str, int]]:
        """Paths as they are now, with their growth, largest first."""
        found = []
        for fd, before_bytes in self._held.values():
            there = os.fstat(fd)
            grown = there.st_size - before_bytes
            if there.st_nlink and grown >= max(least_bytes, 1.0):
                found.append((os.readlink(f"/proc/self/fd/{fd}"), grown))
        return sorted(found, key=lambda each: -each[1])

    def clear(self) -> None:
        for fd, _ in self._held.values():
            os.close(fd)
        self._held.clear()
        self.at_once = 0


def name_of(paths: Sequence[str]) -> str:
    """What to call a checkpoint of these files, the largest first.

    >>> name_of(["/c/step_9/a.pt", "/c/step_9/b.pt"]), name_of(["/c/last.ckpt"]), name_of([])
    ('step_9', 'last.ckpt', '')
    """
    folders = {os.path.dirname(path) for path in paths}
    if len(paths) > 1 and len(folders) == 1:
        return os.path.basename(folders.pop())
    return os.path.basename(paths[0]) if paths else ""


ALIKE: Final = 1.25
"""files of one size differ by so much at most"""
OVER_AGAIN: Final = 1.5
"""with so many times what its files hold, a burst wrote them again or wrote others"""
SEVERAL: Final = 3


def run_together(files: Sequence[tuple[str, int]], wrote_bytes: int, at_once: int) -> int:
    """How many saves a burst looks like: 0 where it looks like one. `files` are those that were
    seen, with their sizes; a burst that wrote far more than they hold wrote one again and again, or
    others like them that came and went between two looks; and files of like size one after another
    may each be a save, unless their names say that they are parts of one.

    >>> (
    ...     run_together([("/c/ckpt.pt", 5)], 200, 1),
    ...     run_together([("/c/a.pt", 100), ("/c/b.pt", 101), ("/c/c.pt", 99)], 300, 1),
    ... )
    (40, 3)
    >>> (
    ...     run_together([("/c/a.pt", 100), ("/c/b.pt", 101), ("/c/c.pt", 99)], 300, 3),
    ...     run_together([("/c/a.pt", 100)], 110, 1),
    ... )
    (0, 0)
    >>> run_together([(f"/c/model-0000{n}-of-00003.safetensors", 100) for n in (1, 2, 3)], 300, 1)
    0
    """
    sizes = [size for _, size in files if size > 0]
    if not sizes or max(sizes) > ALIKE * min(sizes):
        return 0
    like = round(wrote_bytes * len(sizes) / sum(sizes))
    again = wrote_bytes >= OVER_AGAIN * sum(sizes)
    apart = at_once == 1 and not any(_PART.search(os.path.basename(path)) for path, _ in files)
    return like if like >= SEVERAL and (again or (apart and len(sizes) >= SEVERAL)) else 0


def file_details(paths: Sequence[str]) -> dict[str, Any]:
    """As detail: the file, or the folder of several, and how many were seen."""
    if not paths:
        return {}
    return {"path": paths[0] if len(paths) == 1 else os.path.commonpath(paths), "files": len(paths)}


def read_process(pid: int, procfs: Path = Path("/proc")) -> ProcessReading:
    """About 40 us. Raises OSError."""
    folder = procfs / str(pid)
    whole = _IO.search((folder / "io").read_bytes())
    main = _IO.search((folder / "task" / str(pid) / "io").read_bytes())
    about = (folder / "task" / str(pid) / "stat").read_bytes()
    placed = stat_of(about)
    if whole is None or main is None or placed is None:
        raise OSError(0, "a kernel without CONFIG_TASK_IO_ACCOUNTING")
    return ProcessReading(
        placed[0],
        placed[1] / _TICKS,
        int(whole[1]),
        int(whole[2]),
        int(main[1]),
        int(main[2]),
        _cpu_s(folder / "task" / str(pid), about),
    )


def _cpu_s(task: Path, about: bytes) -> float:
    """To the nanosecond where the kernel counts so, else in ticks."""
    try:
        return int((task / "schedstat").read_bytes().split()[0]) / S
    except (OSError, ValueError, IndexError):
        words = about.rpartition(b")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS


class Writers:
    """`begin` and `end` of each save, from one thread; `look` in between finds who has the files
    open. `rest` at any time outside saves makes what is usual recent."""

    def __init__(self, pids: Callable[[], Iterable[int]], procfs: Path = Path("/proc")) -> None:
        self._pids, self._procfs = pids, procfs
        self._before: dict[int, ProcessReading] = {}
        self._rested: dict[int, tuple[int, ProcessReading]] = {}
        self._usual: dict[int, float] = {}
        self._begin_ns = 0
        self._holders: set[int] = set()
        self._refused = False

    def begin(self) -> None:
        self._before, self._begin_ns = self._all(), time.monotonic_ns()
        self._holders = set()
        up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        for pid, now in self._before.items():
            rested_ns, then = self._rested.get(pid, (0, now))
            span_s = (self._begin_ns - rested_ns) / S
            if then.born_s != now.born_s or then is now or span_s < 1.0:
                span_s, then = up_s - now.born_s, now._replace(main_cpu_s=0.0)
            self._usual[pid] = (now.main_cpu_s - then.main_cpu_s) / span_s if span_s > 0.0 else 0.0

    def rest(self) -> None:
        now_ns = time.monotonic_ns()
        self._rested = {pid: (now_ns, now) for pid, now in self._all().items()}

    def look(self, paths: Iterable[str | Path]) -> bool:
        """Whether anybody of ours has one of these open for writing now."""
        wanted = [os.path.realpath(path) for path in paths]
        holders = {
            each.pid
            for each in open_for_writing(self._pids(), self._procfs)
            if covers(wanted, each.path)
        }
        self._holders |= holders
        return bool(holders)

    def end(self, size_bytes: int | None = None) -> list[SeenWriter]:
        """Who wrote, most first. `size_bytes`, where it is known, keeps out who wrote much less
        than half of it."""
        now_ns = time.monotonic_ns()
        after = self._all()
        self._rested = {pid: (now_ns, each) for pid, each in after.items()}
        if not after:
            return [SeenWriter("UNKNOWN", "NOT_PERMITTED" if self._refused else "NO_WRITER")]
        wrote = {pid: self._wrote(pid, each) for pid, each in after.items()}
        chosen = self._choose(wrote, size_bytes)
        if not chosen:
            return [SeenWriter("UNKNOWN", "NO_WRITER")]
        took_s = (now_ns - self._begin_ns) / S
        return [
            self._judge(pid, "open" if pid in self._holders else "bytes", wrote[pid], after, took_s)
            for pid in chosen
        ]

    def _choose(self, wrote: dict[int, tuple[int, float]], size_bytes: int | None) -> list[int]:
        """Who had a file open; else, as when a helper has ended and its parent took over its sums,
        who wrote most, and others who wrote at least half as much."""
        chosen = [pid for pid in self._holders if pid in wrote and wrote[pid][0] > 0]
        if not chosen:
            most = max(moved for moved, _ in wrote.values())
            chosen = [pid for pid, (moved, _) in wrote.items() if moved > 0 and 2 * moved >= most]
            if size_bytes is not None and 2 * sum(wrote[pid][0] for pid in chosen) < size_bytes:
                return []
        return sorted(chosen, key=lambda pid: -wrote[pid][0])

    def _wrote(self, pid: int, after: ProcessReading) -> tuple[int, float]:
        """Bytes and the main thread's share. mmap is not in wchar, memory and some servers are not
        in write_bytes: the larger counts."""
        before = self._reading_before(pid, after) or ProcessReading(0, 0.0, 0, 0, 0, 0, 0.0)
        called, dirtied = after.wchar - before.wchar, after.written - before.written
        if called >= dirtied:
            moved, main = called, after.main_wchar - before.main_wchar
        else:
            moved, main = dirtied, after.main_written - before.main_written
        return moved, main / moved if moved > 0 else 0.0

    def _reading_before(self, pid: int, after: ProcessReading) -> ProcessReading | None:
        before = self._before.get(pid)
        return before if before is not None and before.born_s == after.born_s else None

    def _judge(
        self,
        pid: int,
        how: str,
        wrote: tuple[int, float],
        after: dict[int, ProcessReading],
        took_s: float,
    ) -> SeenWriter:
        trainer = self._trainer(pid, after)
        moved, main_share = wrote
        before = self._reading_before(trainer, after[trainer])
        usual = self._usual.get(trainer, 0.0) if before is not None else 0.0
        used = (
            (after[trainer].main_cpu_s - (before.main_cpu_s if before is not None else 0.0))
            / took_s
            if took_s > 0.0
            else 0.0
        )
        found = SeenWriter("UNKNOWN", "", pid, how, moved, main_share, trainer, used, usual)
        if trainer == pid and before is not None and main_share >= MOST_BY_MAIN:
            return found._replace(code="MAIN_WROTE")
        if took_s < LEAST_S:
            return found._replace(why="TOO_SHORT")
        if usual < IDLE_SHARE:
            return found._replace(why="ALWAYS_WAITS")
        if used < _WAITS * usual:
            return found._replace(code="MAIN_WAITED")
        return (
            found._replace(code="MAIN_WORKED")
            if used >= _WORKS * usual
            else found._replace(why="UNCLEAR")
        )

    def _trainer(self, pid: int, after: dict[int, ProcessReading]) -> int:
        """Of the writer and those above it, who was busiest before: a helper process waits between
        saves, a launcher always."""
        line = [pid]
        while (above := after[line[-1]].parent) in after and above not in line:
            line.append(above)

        def busy(each: int) -> float:
            return (
                self._usual.get(each, 0.0)
                if self._reading_before(each, after[each]) is not None
                else -1.0
            )

        return max(line, key=busy)

    def _all(self) -> dict[int, ProcessReading]:
        found = {}
        self._refused = False
        for pid in self._pids():
            try:
                found[pid] = read_process(pid, self._procfs)
            except PermissionError:
                self._refused = True
            except OSError:
                continue
        return found
