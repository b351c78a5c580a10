"""Whose the files are that are being written: those of the job, or of another one that saves into
the same folder.

/proc/PID/fd tells, as long as a file is open. A file counts as another's only where a process of
this machine that the job did not start has it open for writing, the job's own do not, and the job
itself was seen to write into the folder: where a server or a daemon writes for it, and where other
nodes do, all stays the job's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from ckptcost.watch.writers import OpenForWriting, open_for_writing

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
        theirs = {
            wanted[each.path]: Other(each.pid, self._name(each.pid))
            for each in foreign
            if each.path in wanted and each.path not in own
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
