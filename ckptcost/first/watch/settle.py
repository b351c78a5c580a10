"""When the bytes of files that were written are on the storage: asks the kernel what it still owes,
file by file, until that is nothing.

One daemon thread for all checkpoints. It holds the files open, so that a rename does not mislead
it; it lets go at once of a file that was deleted, because an open file keeps its blocks. What it
cannot know it says as a note with `durable_why`, a code of `WHY`. Asking writes
nothing back.

cachestat(2) (Linux 6.5) counts a file's dirty pages and those under write-back, for files one owns
or may write to; a container's filter that does not know the call refuses it. Else FIEMAP shows
extents that have no place on the device yet, or whose data is not there: never with
FIEMAP_FLAG_SYNC, which would write the file back itself. FIEMAP is blind to blocks that are written
over in place, so its "nothing" counts only after it was seen to owe something.

Neither sees the drive's own cache or the file system's journal. Both answer for this host's page
cache, so only where that is what stands between a write and the device: not in memory (tmpfs), not
for servers' files, not where a file system keeps a cache of its own (ZFS). Measured on ext4:
cachestat takes 15 us a GiB in large folios and 1.5 ms a GiB in pages of 4 KiB, FIEMAP 2 us a file
of few extents. So huge files are asked in ranges, and not often.

On overlay (the root of every container) cachestat answers 0 whatever is owed; FIEMAP is passed on
to the file below, so there it alone is asked, and "nothing" counts, as ever, only after it was seen
to owe something.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ckptcost.first.watch.base import Tell
from ckptcost.first.watch.filesystems import born_ns

REASONS: Final = {
    "IN_MEMORY": "the file system is memory: nothing is ever safe there",
    "CLOSE_FLUSHES": (
        "NFS: closing a file sends it to the server; this host's cache does not show when the"
        " server has it safe"
    ),
    "ON_SERVER": (
        "the file system is a server's: this host's cache does not show when the server has it safe"
    ),
    "OWN_CACHE": "the file system keeps what is not written yet where nobody can ask",
    "UNKNOWN_FILE_SYSTEM": "it is not known whether this file system's page cache tells the truth",
    "NOT_PERMITTED": "the kernel does not say it to this user",
    "NOT_SUPPORTED": "the kernel has no cachestat (Linux 6.5), and the file system no FIEMAP",
}
"""codes of an unknown"""
_OVERLAY: Final = 0x794C7630
_TELLING: Final = frozenset(
    {
        0xEF53,
        0x58465342,
        0x9123683E,
        0xF2F52010,
        0xCA451A4E,
        0x3153464A,
        0x3434,
        0x4D44,
        0x2011BAB0,
        0x7366746E,
    }
)
"""ext, XFS, btrfs, F2FS, bcachefs, JFS, NILFS, FAT, exFAT, NTFS3: linux/magic.h and their own
sources"""
_DELAYING: Final = frozenset({0xEF53, 0x58465342, 0x9123683E})
"""of these FIEMAP's flags are known to change only when the data is on the device"""
_SILENT: Final = {
    0x01021994: "IN_MEMORY",
    0x858458F6: "IN_MEMORY",
    0x958458F6: "IN_MEMORY",  # tmpfs, ramfs, hugetlbfs
    0x6969: "CLOSE_FLUSHES",
    0xFF534D42: "ON_SERVER",
    0xFE534D42: "ON_SERVER",
    0x0BD00BD0: "ON_SERVER",
    0x47504653: "ON_SERVER",  # CIFS, SMB, Lustre, GPFS
    0x19830326: "ON_SERVER",
    0x00C36400: "ON_SERVER",
    0x01021997: "ON_SERVER",
    0x5346414F: "ON_SERVER",  # BeeGFS, Ceph, 9p, AFS
    0x2FC12FC1: "OWN_CACHE",  # ZFS
}
_CACHESTAT: Final = 451
"""on every architecture but alpha"""
_FIEMAP: Final = 0xC020660B
_HEAD, _EXTENT, _AT_ONCE = 32, 56, 512
_LAST, _NOT_THERE = 0x1, 0x2 | 0x4 | 0x800
"""FIEMAP_EXTENT_LAST; UNKNOWN, DELALLOC, UNWRITTEN"""
_MOST_BATCHES: Final = 128
_RANGE_BYTES: Final = 1 << 28
"""of a large file, asked at once: 0.4 ms in the worst case"""


class Owed(NamedTuple):
    bytes: int | None
    how: str
    """cachestat or fiemap"""
    why: str = ""
    """code in REASONS, where it is not known"""


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def owed_bytes(fd: int, offset: int = 0, length: int = 0) -> Owed:
    """Of `length` bytes (0: all) of a regular file that is open for reading. Never raises for what
    a kernel may answer."""
    try:
        kind = file_system(fd)
        if kind == _OVERLAY:
            # cachestat looks at overlay's own mapping, which is empty whatever the file below owes
            extents = by_fiemap(fd, offset, length)
            if extents is None:
                return Owed(None, "", "UNKNOWN_FILE_SYSTEM")
            return Owed(extents, "fiemap")
        if kind not in _TELLING:
            return Owed(None, "", _SILENT.get(kind, "UNKNOWN_FILE_SYSTEM"))
        pages, problem = by_cachestat(fd, offset, length)
        if pages is not None:
            return Owed(pages, "cachestat")
        extents = by_fiemap(fd, offset, length) if kind in _DELAYING else None
    except OSError as error:
        return Owed(
            None,
            "",
            "NOT_PERMITTED" if error.errno in (errno.EPERM, errno.EACCES) else "NOT_SUPPORTED",
        )
    if extents is not None:
        return Owed(extents, "fiemap")
    return Owed(None, "", "NOT_PERMITTED" if problem == errno.EPERM else "NOT_SUPPORTED")


def file_system(fd: int) -> int:
    """The magic number that fstatfs gives; 0 where there is no such call."""
    if _libc is None:
        return 0
    buffer = ctypes.create_string_buffer(256)
    if _libc.fstatfs(ctypes.c_int(fd), buffer) != 0:
        raise OSError(ctypes.get_errno(), "fstatfs")
    return ctypes.c_ulong.from_buffer(buffer).value & 0xFFFFFFFF


def by_cachestat(fd: int, offset: int = 0, length: int = 0) -> tuple[int | None, int]:
    """Bytes that are dirty or under write-back; or None and the error: EPERM (another's file, or a
    filter), ENOSYS (an older kernel)."""
    if _libc is None:
        return None, errno.ENOSYS
    where, pages = _Range(offset, length), _Pages()
    call = (
        ctypes.c_long(_CACHESTAT),
        ctypes.c_uint(fd),
        ctypes.byref(where),
        ctypes.byref(pages),
        ctypes.c_uint(0),
    )
    if _libc.syscall(*call) != 0:
        return None, ctypes.get_errno()
    return (int(pages.dirty) + int(pages.writeback)) * _PAGE_BYTES, 0


def by_fiemap(fd: int, offset: int = 0, length: int = 0) -> int | None:
    """Bytes in extents that are not on the device; None where the file system has no FIEMAP. Up to
    the file's end: what a file system sets aside beyond it is not owed."""
    end = os.fstat(fd).st_size
    end = min(end, offset + length) if length else end
    at, found = offset, 0
    buffer = bytearray(_HEAD + _AT_ONCE * _EXTENT)
    for _ in range(_MOST_BATCHES):
        if at >= end:
            break
        struct.pack_into("=QQIIII", buffer, 0, at, end - at, 0, 0, _AT_ONCE, 0)
        try:
            fcntl.ioctl(fd, _FIEMAP, buffer)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS):
                return None
            raise
        count = struct.unpack_from("=I", buffer, 20)[0]
        if not count:
            break
        for place in range(count):
            logical, extent_bytes, flags = struct.unpack_from(
                "=Q8xQ16xI", buffer, _HEAD + place * _EXTENT
            )
            if flags & _NOT_THERE:
                found += min(logical + extent_bytes, end) - max(logical, offset)
            at = logical + extent_bytes
        if flags & _LAST:
            break
    return found


class NotKnown(Exception):
    """Whether a file is on the storage; with a code of REASONS, or GONE, REPLACED, REWRITTEN."""


class FollowedFile:
    """A file that is followed by its descriptor, whatever becomes of its name."""

    __slots__ = ("at", "fd", "identity", "mtime_ns", "path", "seen_owing", "size_bytes")

    def __init__(self, path: str) -> None:
        self.path = path
        # O_NOATIME would be idle: nothing is read. A pipe must not hold us up
        self.fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(self.fd)
        self.mtime_ns, self.identity = found.st_mtime_ns, (found.st_dev, found.st_ino)
        self.size_bytes = found.st_size
        self.at = 0
        self.seen_owing = False

    def check(self, written_wall_ns: int) -> None:
        """That it is still the file that was saved."""
        found = os.fstat(self.fd)
        if found.st_nlink == 0:
            raise NotKnown("REPLACED" if os.path.lexists(self.path) else "GONE")
        if found.st_mtime_ns > max(self.mtime_ns, written_wall_ns):
            raise NotKnown("REWRITTEN")

    def close(self) -> None:
        os.close(self.fd)

    def owes(self) -> Owed:
        """The first range from `at` on that owes something, or nothing. Large files are asked range
        by range, so that a look at one that is far from clean costs little."""
        size_bytes = os.fstat(self.fd).st_size
        while True:
            answer = owed_bytes(self.fd, self.at, _RANGE_BYTES)
            if answer.bytes is None:
                raise NotKnown(answer.why)
            if answer.bytes:
                self.seen_owing = True
                return answer
            if self.at + _RANGE_BYTES >= size_bytes:
                self.at = 0
                return answer
            self.at += _RANGE_BYTES


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
        except FileNotFoundError:
            # in a folder that is being cleared, what is gone was no part of what stays
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
        while (case := self._await_due(rest_until_ns)) is not None:
            began_ns = time.thread_time_ns()
            is_over = self._look(case)
            cost_ns = time.thread_time_ns() - began_ns
            self.cpu_s += cost_ns / S
            rest_until_ns = time.monotonic_ns() + round(cost_ns / self._share)
            if is_over:
                case.close()
                with self._changed:
                    self._cases.remove(case)
        with self._changed:
            left, self._cases = self._cases, []
        for case in left:
            case.close()
            self._note(case, "STOPPED")

    def _await_due(self, rest_until_ns: int) -> _Case | None:
        """Whose turn it is, as soon as it is; None when it is time to give up, for good."""
        with self._changed:
            while True:
                now_ns = time.monotonic_ns()
                if self._give_up_ns is not None and (now_ns >= self._give_up_ns or not self._cases):
                    return None
                case = min(self._cases, key=lambda case: case.next_ns, default=None)
                due_ns = None if case is None else max(case.next_ns, rest_until_ns)
                if due_ns is not None and due_ns <= now_ns:
                    return case
                ends = [at for at in (due_ns, self._give_up_ns) if at is not None]
                self._changed.wait((min(ends) - now_ns) / S if ends else None)

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
