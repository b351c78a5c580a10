"""When the bytes of files that were written are on the storage: asks the kernel what it still owes,
file by file, until that is nothing.

One daemon thread for all checkpoints. It holds the files open, so that a rename does not mislead
it; it lets go at once of a file that was deleted, because an open file keeps its blocks. What it
cannot know it says as a note with `durable_why`, a code of `WHY`.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ckptcost.watch.base import Tell
from ckptcost.watch.cached import REASONS, FollowedFile, NotKnown
from ckptcost.watch.filesystems import born_ns

WHY: Final = REASONS | {
    "GONE": "a file was deleted or moved away before it was safe",
    "REPLACED": "a file was replaced by another one before it was safe",
    "REWRITTEN": "a file was written to again before it was safe",
    "ADDED_TO": "more was added to its file before it was known to be safe",
    "FAILED": "a file could not be opened",
    "NO_FILES": "there was no file to follow",
    "TOO_MANY_FILES": "there were more files than can be followed",
    "NEVER_SEEN_OWING": (
        "an older file was never seen to be owed anything, and FIEMAP alone proves nothing then"
    ),
    "NOT_DRAINED": "it was still not on the storage when we gave up",
    "STOPPED": "we stopped before it was on the storage",
}
S: Final = 1_000_000_000
PROMPT_S: Final = 0.1
"""a first look so soon after the last write counts as one at that instant; of a later one the
kernel, or somebody's sync, may have been the first, and it is safe somewhere between the two"""
EARLY_S: Final = 60
"""so long a file is looked at of which nobody says what it belongs to"""
MOST_REMEMBERED: Final = 4096
_COARSE_NS: Final = S // 10
"""file times are of the last tick, and what is seen is told late"""
_MOST_ENTRIES: Final = 20_000
_CODES: Final = {
    errno.ENOENT: "GONE",
    errno.ENOTDIR: "GONE",
    errno.ESTALE: "GONE",
    errno.EACCES: "NOT_PERMITTED",
    errno.EPERM: "NOT_PERMITTED",
    errno.EMFILE: "TOO_MANY_FILES",
    errno.ENFILE: "TOO_MANY_FILES",
}


def files_in(path: Path, most: int) -> tuple[list[str], bool]:
    """The regular files at or under a path, and whether that is all. Symbolic links are not
    followed. Raises OSError for the path."""
    mode = os.lstat(path).st_mode
    if not stat.S_ISDIR(mode):
        return [str(path)] if stat.S_ISREG(mode) else [], True
    found: list[str] = []
    folders = [str(path)]
    entries = 0
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listed:
                for entry in listed:
                    entries += 1
                    if entries > _MOST_ENTRIES or len(found) >= most:
                        return found, False
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        found.append(entry.path)
        except (
            FileNotFoundError
        ):  # in a folder that is being cleared, what is gone was no part of what stays
            continue
    return found, True


class _Clean(NamedTuple):
    """Of a file as it was then: the truth lies between `after_ns`, where that is known, and
    `at_ns`."""

    at_ns: int
    after_ns: int | None
    mtime_ns: int


class _Case:
    """One checkpoint; without a window, a file that may turn out to be of one."""

    def __init__(
        self,
        window: str,
        paths: Sequence[Path],
        since_ns: int,
        written_ns: int,
        rank: int | None,
        until_ns: int,
    ) -> None:
        self.window, self.paths, self.rank = window, paths, rank
        self.since_ns, self.written_ns, self.until_ns = since_ns, written_ns, until_ns
        now_ns = time.monotonic_ns()
        self.written_wall_ns = time.time_ns() - now_ns + written_ns + _COARSE_NS
        self.next_ns = now_ns
        self.wait_ns = 0
        self.files: list[FollowedFile] = []
        self.owing: deque[FollowedFile] = deque()
        self.after_ns: int | None = None
        self.clean_ns = 0
        self.how = "cachestat"
        self.closed = True

    def open(self, most: int) -> None:
        """All files, and a first look at each: who cannot be asked shows at once."""
        known: set[str] = set()
        for path in self.paths:
            try:
                names, complete = files_in(path, most + 1)
            except FileNotFoundError:
                raise NotKnown("GONE") from None
            fresh = [name for name in names if name not in known]
            if not complete or len(known) + len(fresh) > most:
                raise NotKnown("TOO_MANY_FILES")
            known.update(fresh)
            for name in fresh:
                self._open_one(name, name == str(path))
        if not self.files:
            raise NotKnown("NO_FILES")
        self._ask_all()

    def _open_one(self, name: str, alone: bool) -> None:
        try:
            file = FollowedFile(name)
        except FileNotFoundError:
            if alone:
                raise NotKnown("GONE") from None
            return
        self.files.append(file)

    def _ask_all(self) -> None:
        for file in self.files:
            if self._owes(file):
                self.owing.append(file)

    def _owes(self, file: FollowedFile) -> bool:
        before_ns = time.monotonic_ns()
        file.check(self.written_wall_ns)
        answer = file.owes()
        if answer.bytes:
            self.after_ns = before_ns
        elif answer.how == "fiemap":
            self.how = "fiemap"
            born = None if file.seen_owing else born_ns(os.fsencode(file.path), before_ns)
            if not file.seen_owing and (born is None or born < self.since_ns - _COARSE_NS):
                raise NotKnown("NEVER_SEEN_OWING")
        return bool(answer.bytes)

    def is_over(self) -> bool:
        """One look. It ends at the first file that owes something: the rest need not be asked
        yet."""
        while self.owing:
            if self._owes(self.owing[0]):
                return False
            self.owing.popleft()
            self.clean_ns = time.monotonic_ns()
        for file in self.files:
            file.at = 0
        self._ask_all()  # those that were clean early may have been written to since
        return not self.owing

    def none_shrank(self) -> bool:
        return all(os.fstat(file.fd).st_size >= file.size_bytes for file in self.files)

    def are_of_it_alone(self) -> bool:
        """The files were made for this save: what they hold is what it wrote."""
        if self.closed:
            return True
        now_ns = time.monotonic_ns()
        born = [born_ns(os.fsencode(file.path), now_ns) for file in self.files]
        return all(each is not None and each >= self.since_ns - _COARSE_NS for each in born)

    def close(self) -> None:
        for file in self.files:
            file.close()
        self.files.clear()
        self.owing.clear()


class Settling:
    """`follow` each checkpoint when its last file is closed; `stop` at the end. `share` is of one
    core, for all together."""

    def __init__(
        self,
        tell: Tell,
        *,
        most_s: float = 600.0,
        least_wait_s: float = 0.01,
        most_wait_s: float = 0.05,
        share: float = 0.01,
        most_files: int = 1024,
    ) -> None:
        self._tell = tell
        self._most_ns, self._least_ns, self._longest_ns = (
            round(most_s * S),
            round(least_wait_s * S),
            round(most_wait_s * S),
        )
        self._share, self._most_files = share, most_files
        self._cases: list[_Case] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._give_up_ns: int | None = None
        self._clean: dict[tuple[int, int], _Clean] = {}
        """by file, when it was seen to owe nothing; of the settling thread alone"""
        self.cpu_s = 0.0
        """processor time of the looks so far"""

    def follow(
        self,
        window: str,
        paths: Iterable[str | Path],
        since_ns: int,
        written_ns: int,
        rank: int | None = None,
        closed: bool = True,
    ) -> None:
        """Returns at once: no file is touched in the caller's thread, because a storage that hangs
        would hang it. `closed`: at `written_ns` they were; else that is only their last write that
        was seen, and a sync may have come after it.
        """
        case = _Case(
            window,
            [Path(path) for path in paths],
            since_ns,
            written_ns,
            rank,
            time.monotonic_ns() + self._most_ns,
        )
        case.closed = closed
        self._begin(case)

    def _begin(self, case: _Case) -> None:
        with self._changed:
            if self._give_up_ns is not None:
                self._note(case, "STOPPED")
                return
            self._cases.append(case)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._loop, name="ckptcost-settle", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def closed(self, path: Path, t_ns: int) -> None:
        """A file was closed; which checkpoint it is of, `follow` will say, maybe a second later:
        when it was safe is seen from now on."""
        if len(self._cases) < self._most_files // 2:
            self._begin(_Case("", [path], t_ns - S, t_ns, None, t_ns + EARLY_S * S))

    @property
    def pending(self) -> tuple[str, ...]:
        """Windows that are not safe yet."""
        with self._changed:
            return tuple(case.window for case in self._cases if case.window)

    def stop(self, wait_s: float = 0.0) -> None:
        """Follows for so long still, where something is pending, then gives up."""
        with self._changed:
            self._give_up_ns = time.monotonic_ns() + round(wait_s * S)
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(wait_s + 10.0)

    def _loop(self) -> None:
        rest_until_ns = 0
        while True:
            with self._changed:
                now_ns = time.monotonic_ns()
                if self._give_up_ns is not None and (now_ns >= self._give_up_ns or not self._cases):
                    left, self._cases = self._cases, []
                    break
                case = min(self._cases, key=lambda case: case.next_ns, default=None)
                due_ns = None if case is None else max(case.next_ns, rest_until_ns)
                if due_ns is None or due_ns > now_ns:
                    ends = [at for at in (due_ns, self._give_up_ns) if at is not None]
                    self._changed.wait((min(ends) - now_ns) / S if ends else None)
                    continue
            assert case is not None
            began_ns = time.thread_time_ns()
            is_over = self._look(case)
            cost_ns = time.thread_time_ns() - began_ns
            self.cpu_s += cost_ns / S
            rest_until_ns = time.monotonic_ns() + round(cost_ns / self._share)
            if is_over:
                case.close()
                with self._changed:
                    self._cases.remove(case)
        for case in left:
            case.close()
            self._note(case, "STOPPED")

    def _look(self, case: _Case) -> bool:
        """Whether there is nothing more to do for it."""
        try:
            if not case.files:
                case.open(self._room())
                case.wait_ns = self._least_ns
                if not case.owing:
                    self._clean_at_once(case)
                    return True
            elif case.is_over():
                self._durable(case, case.clean_ns, case.after_ns)
                return True
            elif time.monotonic_ns() >= case.until_ns:
                raise NotKnown("NOT_DRAINED")
        except NotKnown as error:
            added = str(error) == "REWRITTEN" and not case.closed and case.none_shrank()
            self._note(case, "ADDED_TO" if added else str(error))
            return True
        except OSError as error:
            self._note(case, _CODES.get(error.errno or 0, "FAILED"))
            return True
        case.next_ns = time.monotonic_ns() + case.wait_ns
        case.wait_ns = min(case.wait_ns * 3 // 2, self._longest_ns)
        return False

    def _room(self) -> int:
        with self._changed:
            return self._most_files - sum(len(case.files) for case in self._cases)

    def _clean_at_once(self, case: _Case) -> None:
        """As seen file by file since each was closed; else the writer synced it before it closed
        it, unless we looked so late that the kernel may have done it."""
        now_ns = time.monotonic_ns()
        seen = [self._clean.get(file.identity) for file in case.files]
        known = [
            one
            for one, file in zip(seen, case.files, strict=True)
            if one is not None and one.mtime_ns == file.mtime_ns
        ]
        if len(known) == len(case.files):
            last = max(known, key=lambda one: one.at_ns)
            self._durable(case, last.at_ns, last.after_ns)
            return
        if case.closed and now_ns - case.written_ns <= PROMPT_S * S:
            self._durable(case, max([case.written_ns, *(one.at_ns for one in known)]), None)
        else:
            self._durable(case, now_ns, case.written_ns)

    def _durable(self, case: _Case, at_ns: int, from_ns: int | None) -> None:
        """`from_ns`: the truth lies between that and `at_ns`."""
        for file in case.files:
            self._clean[file.identity] = _Clean(at_ns, from_ns, file.mtime_ns)
        while len(self._clean) > MOST_REMEMBERED:
            self._clean.pop(next(iter(self._clean)))
        if not case.window:
            return
        unsure_s = None if from_ns is None else (at_ns - from_ns) / S
        whole: dict[str, int] = {}
        if case.are_of_it_alone():
            whole["bytes"] = sum(os.fstat(file.fd).st_size for file in case.files)
        self._tell(
            "durable",
            case.window,
            by="watch",
            rank=case.rank,
            t_ns=at_ns,
            how=case.how,
            after_ns=case.after_ns,
            unsure_s=unsure_s,
            files=len(case.files),
            **whole,
        )

    def _note(self, case: _Case, why: str) -> None:
        if not case.window:  # whoever follows it will find out
            return
        self._tell("note", case.window, by="watch", rank=case.rank, durable_why=why)
