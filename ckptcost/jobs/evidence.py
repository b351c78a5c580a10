"""What /proc says of a save while it happens: which files are being synced, and whether training
stands still until the last is closed.

Without a hook nobody says when training went on. Where the main thread wrote the bytes itself, or
stood still while others did, the save returned when its last file was closed; where it went on
computing, or where it cannot be told, the return stays unknown.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ckptcost.meters.process import children_of
from ckptcost.runs.clocks import S
from ckptcost.watch.base import Tell
from ckptcost.watch.fsyncs import Fsyncs, Synced
from ckptcost.watch.writers import SeenWriter, Writers

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
        with self._lock:
            before = self._late.pop(window, None)
        if before is not None:  # the same name once more
            self._judge(window, before)
        verdicts = self._writers.end(size_bytes) if returned and size_bytes else []
        judged = verdicts if alone else []
        why = ""
        if returned and not judged:
            why = "NOT_ALONE" if not alone else "" if size_bytes else "WRITTEN_OVER"
        with self._lock:
            self._late[window] = _Written(
                tuple(paths),
                t_ns,
                t_ns if closed else None,
                judged,
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
        verdicts = one.verdicts
        last_ns = max(one.last_ns, synced.over_ns if synced else 0)
        odd = next((verdict for verdict in verdicts if not verdict.stood_still), None)
        if odd is not None:
            why = odd.why or odd.code
        elif one.commit_ns is not None and one.commit_ns - last_ns > AT_ONCE_NS:
            why = (  # something of it came later, and nobody saw what the job did in between
                "UNCLEAR"
            )
        elif synced is not None and not synced.tids <= {verdict.trainer for verdict in verdicts}:
            why = "UNCLEAR"  # somebody else synced it
        elif one.closed_ns is None and not (synced is not None and synced.all):
            why = "UNCLEAR"  # the last write was seen, not the end of the save
        else:
            at_ns = max(last_ns, one.commit_ns or 0)
            self._tell(
                "returned", window, by="watch", t_ns=at_ns, how="main-thread", code=verdicts[0].code
            )
            return
        self._tell("note", window, by="watch", t_ns=last_ns, returned_why=why)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._fsyncs.stop()
