"""What a process and its descendants wrote: /proc/PID/io, summed so that the end of a child loses
nothing and counts nothing twice.

`write_bytes` counts when a page is made dirty, minutes before a drive may see it, and it counts
mmap, which wchar does not. `cancelled_write_bytes` is what was cut off or deleted while still
dirty, and is charged to the process that deletes; what reached a drive is at most the one less the
other, so both are channels. Bytes through direct I/O count at once.

A parent that waits for a child takes over the child's sums; before that, /proc/PID/io of the dead
child still answers. So a child's last value is kept until its ancestor has jumped by as much, and
for good where it never does (SIGCHLD ignored, or orphaned).
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterable
from pathlib import Path

from ckptcost.first.core.channels import Channel, Quantity
from ckptcost.first.meters.base import Absence, Channelwise, FoundMeters
from ckptcost.first.meters.kept import OpenFile, os_error_text

Triple = tuple[int, int, int]
ZERO: Triple = (0, 0, 0)
_IO = re.compile(rb"\nread_bytes: (\d+)\nwrite_bytes: (\d+)\ncancelled_write_bytes: (\d+)")
_QUANTITIES: tuple[tuple[Quantity, str], ...] = (
    ("written_bytes", "write_bytes"),
    ("cancelled_bytes", "cancelled_write_bytes"),
    ("read_bytes", "read_bytes"),
)
MOST_PROCESSES = 512
"""open files we allow ourselves; more descendants than that are reported, not followed"""
MOST_PASSES = 8


def io_of(text: bytes) -> Triple | None:
    """Written, cancelled, read.

    >>> io_of(
    ...     b"rchar: 1\\nwchar: 2\\nsyscr: 3\\nsyscw: 4\\n"
    ...     b"read_bytes: 5\\nwrite_bytes: 6\\ncancelled_write_bytes: 7\\n"
    ... )
    (6, 7, 5)
    """
    found = _IO.search(text)
    return (int(found[2]), int(found[3]), int(found[1])) if found else None


def written_of(usage: resource.struct_rusage) -> float:
    """Bytes that a process and its reaped descendants made dirty or wrote, from what os.wait4
    gives. Nothing is taken off for what was deleted while dirty; each process is rounded down to
    512 bytes."""
    return usage.ru_oublock * 512.0


def stat_of(text: bytes) -> tuple[int, int] | None:
    """Parent and start time (clock ticks since boot) from /proc/PID/stat; the name in brackets may
    hold blanks and brackets.

    >>> stat_of(b"7 (a) b) S 3 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 900 0 0")
    (3, 900)
    """
    words = text.rpartition(b")")[2].split()
    return (
        (int(words[1]), int(words[19]))
        if len(words) > 19 and words[1].isdigit() and words[19].isdigit()
        else None
    )


def start_time(pid: int, procfs: Path = Path("/proc")) -> int | None:
    """Start time of a process, which tells it from a later one with its number; None where there is
    no such process."""
    try:
        found = stat_of((procfs / str(pid) / "stat").read_bytes())
    except OSError:
        return None
    return found[1] if found else None


def children_of(pid: int, procfs: Path) -> list[int] | None:
    """What each thread of a process has started; None where the kernel does not list children
    (CONFIG_PROC_CHILDREN)."""
    found: list[int] = []
    listed = False
    try:
        threads = os.listdir(procfs / str(pid) / "task")
    except OSError:
        return []
    for thread in threads:
        try:
            found += map(
                int, (procfs / str(pid) / "task" / thread / "children").read_bytes().split()
            )
            listed = True
        except FileNotFoundError:
            continue  # a thread that ended, or a kernel without the file
        except OSError:
            listed = True
    return found if listed or not threads else None


def _by_parent(procfs: Path) -> dict[int, list[int]]:
    """All children by parent, by looking at every process: for kernels that do not list
    children."""
    found: dict[int, list[int]] = {}
    for name in os.listdir(procfs):
        if name.isdigit():
            try:
                here = stat_of((procfs / name / "stat").read_bytes())
            except OSError:
                continue
            if here:
                found.setdefault(here[0], []).append(int(name))
    return found


def _add(a: Triple, b: Triple) -> Triple:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _subtract(a: Triple, b: Triple) -> Triple:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


class _One:
    """A process that is followed."""

    __slots__ = ("kept", "last", "parent", "pid", "start")

    def __init__(self, pid: int, parent: _One | None, procfs: Path) -> None:
        self.kept = OpenFile(
            procfs / str(pid) / "io"
        )  # bound to this process: a later one of the same number does not answer here
        self.pid, self.parent = pid, parent
        try:
            self.start = start_time(pid, procfs)
            self.last = self.ask()
        except OSError:
            self.kept.close()
            raise

    def ask(self) -> Triple:
        found = io_of(self.kept.read())
        if found is None:
            raise OSError(0, "no write_bytes in it (a kernel without CONFIG_TASK_IO_ACCOUNTING)")
        return found


class ProcessTree:
    """One root process and, where asked, its descendants."""

    def __init__(self, pid: int, procfs: Path, descend: bool) -> None:
        self.root = _One(pid, None, procfs)
        self.live: dict[int, _One] = {pid: self.root}  # parents before children
        self.kept: Triple = ZERO
        self.refused: set[int] = set()
        self._procfs, self._descend = procfs, descend
        self.sums: Triple = ZERO

    def look(self) -> list[str]:
        """Follow descendants that are new. What could not be followed, in words."""
        troubles: list[str] = []
        scan: dict[int, list[int]] | None = None
        queue = list(self.live.values()) if self._descend else []
        while queue:
            one = queue.pop()
            children = (
                scan.get(one.pid, []) if scan is not None else children_of(one.pid, self._procfs)
            )
            if children is None:
                scan = _by_parent(self._procfs)
                children = scan.get(one.pid, [])
            for pid in children:
                if pid not in self.live and pid not in self.refused:
                    queue += self._follow(pid, one, troubles)
        return troubles

    def _follow(self, pid: int, parent: _One, troubles: list[str]) -> list[_One]:
        if len(self.live) >= MOST_PROCESSES:
            trouble = (
                f"more than {MOST_PROCESSES} processes: {pid} counts when its parent has"
                " waited for it"
            )
        else:
            try:
                self.live[pid] = child = _One(pid, parent, self._procfs)
            except (FileNotFoundError, ProcessLookupError):
                return []
            except OSError as error:
                why = os_error_text(error)
                trouble = f"process {pid} is left out until its parent has waited for it: {why}"
            else:
                return [child]
        self.refused.add(pid)
        troubles.append(trouble)
        return []

    def read(self) -> Triple | None:
        """Sums over all that were ever followed; None when no process is left.

        Parents are asked before their children, so a child that still answers is in no ancestor's
        sums yet; and all are asked again until nobody went meanwhile, so an ancestor holds all that
        it took over.
        """
        before = {pid: one.last for pid, one in self.live.items()}
        gone: list[_One] = []
        for _ in range(MOST_PASSES):
            lost = self._ask_all()
            gone += lost
            if not lost:
                break
        if gone:
            self._settle(gone, before)
        if not self.live:
            return None
        sums = self.kept
        for one in self.live.values():
            sums = _add(sums, one.last)
        written, cancelled, read = map(max, sums, self.sums)
        self.sums = written, cancelled, read
        return self.sums

    def _ask_all(self) -> list[_One]:
        """Those that are gone."""
        gone: list[_One] = []
        for one in self.live.values():
            try:
                one.last = one.ask()
            except PermissionError:  # it became another user; its last value stands until it goes
                continue
            except OSError:
                gone.append(one)
        for one in gone:
            one.kept.close()
            del self.live[one.pid]
        return gone

    def _settle(self, gone: list[_One], before: dict[int, Triple]) -> None:
        """Keep the last value of those that nobody took over: whose nearest living ancestor did not
        jump by as much."""
        room: dict[int, Triple] = {}
        for one in sorted(gone, key=lambda one: -sum(one.last)):
            heir = one.parent
            while heir is not None and heir.pid not in self.live:
                heir = heir.parent
            if heir is None:
                self.kept = _add(self.kept, one.last)
                continue
            spare = room.get(heir.pid) or _subtract(heir.last, before[heir.pid])
            room[heir.pid] = _subtract(spare, one.last)
            if min(room[heir.pid]) < 0:
                room[heir.pid] = spare
                self.kept = _add(self.kept, one.last)

    def close(self) -> None:
        for one in self.live.values():
            one.kept.close()


class ProcessMeter(Channelwise):
    """Three channels a root process."""

    def __init__(self, trees: Iterable[ProcessTree], descend: bool, look_s: float) -> None:
        super().__init__("process")
        self._trees = tuple(trees)
        self._look_ns = int(look_s * 1e9) if descend else None
        self._next_ns = 0
        scope = "process and descendants" if descend else "process"
        note = "counted when pages are made dirty; subtract cancelled_bytes"
        self.channels = tuple(
            Channel(
                f"process:{tree.root.pid}",
                quantity,
                f"{tree.root.kept.path} {word}",
                scope,
                role="detail",
                note=note if quantity == "written_bytes" else "",
            )
            for tree in self._trees
            for quantity, word in _QUANTITIES
        )

    def read(self, t_ns: int) -> list[float]:
        if self._look_ns is not None and t_ns >= self._next_ns:
            self._next_ns = t_ns + self._look_ns
            for tree in self._trees:
                for trouble in tree.look():
                    self.tell("note", f"process:{tree.root.pid}", trouble)
        values: list[float] = []
        for tree in self._trees:
            sums = tree.read() if tree.live else None
            if sums is None:
                over = "ended; what it wrote since the last reading is not known here"
                gone = self.note_missing(f"process:{tree.root.pid}", over)
                values += (gone,) * len(_QUANTITIES)
            else:
                values += map(float, sums)
        return values

    def close(self) -> None:
        for tree in self._trees:
            tree.close()


def find(
    *,
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    pids: Iterable[int] | None = None,
    descend: bool = True,
    look_s: float = 0.5,
    starts: dict[int, int] | None = None,
) -> FoundMeters:
    """The processes `pids` (by default this one) with their descendants, new ones looked for every
    `look_s`. `starts` has start times (`start_time`) of processes that were chosen earlier: a
    number that was given to another process since is refused.
    """
    trees: list[ProcessTree] = []
    absences = []
    for pid in dict.fromkeys(pids if pids is not None else (os.getpid(),)):
        expected = (starts or {}).get(pid)
        try:
            tree = ProcessTree(pid, procfs, descend)
        except OSError as error:
            said = _refusal_of(error, pid, procfs)
        else:
            if expected is None or tree.root.start == expected:
                trees.append(tree)
                continue
            tree.close()
            said = f"process {pid} ended, and its number belongs to another one", f"ps -p {pid}"
        absences.append(Absence(f"process {pid}", *said, "storage"))
    return FoundMeters((ProcessMeter(trees, descend, look_s),) if trees else (), tuple(absences))


def _refusal_of(error: OSError, pid: int, procfs: Path) -> tuple[str, str]:
    """Why a process cannot be followed, and what to do."""
    path = procfs / str(pid) / "io"
    reason = f"{path}: {os_error_text(error)}"
    if isinstance(error, PermissionError):
        remedy = f"run as the owner of process {pid} or with CAP_SYS_PTRACE"
        return f"{path}: permission denied", remedy
    if not isinstance(error, (FileNotFoundError, ProcessLookupError)):
        return reason, "the cgroup meter may do"
    if not (procfs / str(pid)).exists():
        return f"no process {pid}", f"ps -p {pid}"
    return reason, "a kernel with CONFIG_TASK_IO_ACCOUNTING; the cgroup meter may do"
