"""What happens in a directory and below it, told by the kernel: inotify through ctypes, without a
dependency.

inotify(7): each directory needs a watch of its own, so a new one is watched and then read at once
for what was made before the watch stood; names that were told are kept, so that nothing is told
twice. IN_MODIFY would be one event a write call: it is asked for once at a time, of files that are
still and not closed. What a full queue lost is found by reading the whole tree again. Symbolic
links are told of as files and never followed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import time
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.meters.kept import os_error_text
from ckptcost.first.watch.filesystems import born_ns
from ckptcost.first.watch.names import below

OPEN, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x20, 0x8, 0x40, 0x80, 0x100, 0x200
MODIFY, ONESHOT = 0x2, 0x80000000
DELETE_SELF, MOVE_SELF, UNMOUNT, Q_OVERFLOW, IGNORED, ISDIR = (
    0x400,
    0x800,
    0x2000,
    0x4000,
    0x8000,
    0x40000000,
)
MASK = OPEN | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
_ONLYDIR, _DONT_FOLLOW = 0x01000000, 0x02000000
_HEAD = struct.Struct("iIII")
_BUFFER_BYTES = 1 << 18
_EVENT_BYTES = _HEAD.size + 256
"""the longest; a reading that leaves room for one has emptied the queue"""
_HALF_MOVE_NS = 50_000_000
"""the two halves of a rename follow each other; one that stays alone so long went out of the
tree"""
_CLOCK_NS = 20_000_000
"""file systems note times by a clock that ticks every 4 to 10 ms"""
MOST_AWAITED = 64
"""files of which the next write is told"""
RETRY_NS = 5_000_000_000
"""directories that could not be watched are tried again"""

WATCHES = "/proc/sys/fs/inotify/max_user_watches"
REMEDY = {
    errno.ENOSPC: (
        f"raise it: sysctl fs.inotify.max_user_watches=1048576 (now {{}}, {WATCHES}); until then"
        " the directory is polled"
    ),
    errno.EMFILE: (
        "raise it: sysctl fs.inotify.max_user_instances=1024; until then the directory is polled"
    ),
}


class FileEvent(NamedTuple):
    t_ns: int
    kind: str
    """created, opened, closed (after writing), moved, gone; resumed: written again, as was asked
    for; overflow; lost: the watched directory itself is gone; found: it is back"""
    path: str
    """relative to the watched directory; what is not UTF-8 in it as surrogates (os.fsdecode)"""
    is_dir: bool = False
    old_path: str = ""
    """of a move; empty if it came from outside"""
    how: str = ""
    """what `t_ns` rests on: inotify, btime (its birth, of a file found later), mtime, scan"""


def _refusal_text(number: int) -> str:
    try:
        limit = Path(WATCHES).read_text("ascii").strip()
    except OSError:
        limit = "unknown"
    error = OSError(number, os.strerror(number))
    what = (
        "no inotify watch is left"
        if number == errno.ENOSPC
        else f"no inotify: {os_error_text(error)}"
    )
    return f"{what}; {REMEDY.get(number, 'the directory is polled instead').format(limit)}"


class Inotify:
    """`fileno` becomes readable, `read` gives what happened; `look` now and then finds what no
    event tells.

    Where the kernel gives no more watches `exhausted` says so: then take what `read` still has,
    close this and poll.
    """

    how = "inotify"

    def __init__(self, root: str, ignore: tuple[str, ...] = ()) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._root = os.fsencode(root)
        self._ignore = frozenset(map(os.fsencode, ignore))
        self._fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.problem = ""
        self.exhausted = _refusal_text(ctypes.get_errno()) if self._fd < 0 else ""
        self._dirs: dict[int, bytes] = {}
        self._names: dict[bytes, set[bytes]] = {}
        """by watched directory: the names that were told, or were there at the start"""
        self._wds: dict[bytes, int] = {}
        self._awaited: dict[int, bytes] = {}
        """files of which the next write is told, the last asked for at the end"""
        self._denied: dict[bytes, str] = {}
        self._half: dict[int, tuple[bytes, bool, int]] = {}
        self._out: list[FileEvent] = []
        self._identity: tuple[int, int] | None = None
        self._empty_ns = self._retry_ns = time.monotonic_ns()
        self._since_ns = time.time_ns()
        """wall time from which on we watch; what was written before is older than any save we may
        see"""
        if not self.exhausted:
            self._enter(tell=False)

    def fileno(self) -> int:
        return self._fd

    @property
    def here(self) -> bool:
        """The watched directory exists."""
        return self._identity is not None

    @property
    def waiting(self) -> bool:
        """Half a rename was read: `read` again soon, whether or not there is anything."""
        return bool(self._half)

    @property
    def watches(self) -> int:
        return len(self._dirs)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def await_write(self, path: str) -> None:
        """The next write into this file is told, and none after it."""
        name = os.fsencode(path)
        flags = MODIFY | ONESHOT | _DONT_FOLLOW
        wd: int = self._libc.inotify_add_watch(self._fd, os.path.join(self._root, name), flags)
        if wd < 0:
            # gone, or no watch is left for what is not needed: its end will be seen all the same
            return
        self._awaited.pop(wd, None)
        self._awaited[wd] = name
        if len(self._awaited) > MOST_AWAITED:
            oldest = next(iter(self._awaited))
            del self._awaited[oldest]
            self._libc.inotify_rm_watch(self._fd, oldest)

    def read(self) -> list[FileEvent]:
        """What came since the last time; never waits."""
        try:
            data = os.read(self._fd, _BUFFER_BYTES)
        except BlockingIOError:
            data = b""
        t_ns = time.monotonic_ns()
        at, overflowed = 0, False
        while at < len(data):
            wd, mask, cookie, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = data[at : at + length].rstrip(b"\0")
            at += length
            if mask & Q_OVERFLOW:
                overflowed = True
            elif wd in self._dirs:
                self._take(t_ns, wd, mask, cookie, name)
            elif wd in self._awaited:
                awaited = self._awaited.pop(wd)
                if mask & MODIFY:
                    self._tell(t_ns, "resumed", awaited)
        self._end_half_moves(t_ns)
        if overflowed:
            self._read_tree_again(t_ns)
        if len(data) < _BUFFER_BYTES - _EVENT_BYTES:
            self._empty_ns = t_ns
        told, self._out = self._out, []
        return told

    def _end_half_moves(self, t_ns: int) -> None:
        for cookie, (path, is_dir, since_ns) in list(self._half.items()):
            if t_ns - since_ns > _HALF_MOVE_NS:
                del self._half[cookie]
                self._tell_gone(since_ns, path, is_dir)

    def look(self) -> list[FileEvent]:
        """Whether the watched directory is still the one that is watched, and whether what was
        denied is allowed by now."""
        t_ns = time.monotonic_ns()
        try:
            found = os.stat(self._root)
            now = (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None
        except OSError:
            now = None
        if self._identity is not None and now != self._identity:
            self._lose(t_ns)
        if self._identity is None and now is not None:
            self._enter(tell=True)
        elif self._denied and t_ns - self._retry_ns > RETRY_NS:
            self._retry_ns = t_ns
            for path in list(self._denied):
                del self._denied[path]
                self._watch(t_ns, path, "created")
            self._tell_denied()
        told, self._out = self._out, []
        return told

    def _tell(
        self,
        t_ns: int,
        kind: str,
        path: bytes,
        is_dir: bool = False,
        old: bytes = b"",
        how: str = "inotify",
    ) -> None:
        self._out.append(FileEvent(t_ns, kind, os.fsdecode(path), is_dir, os.fsdecode(old), how))

    def _enter(self, *, tell: bool) -> None:
        t_ns = time.monotonic_ns()
        try:
            found = os.stat(self._root)
        except OSError:
            return
        if tell:
            self._tell(t_ns, "found", b"", True)
        self._identity = (found.st_dev, found.st_ino)
        self._watch(t_ns, b"", "created" if tell else "")

    def _lose(self, t_ns: int) -> None:
        self._identity, self._since_ns = None, time.time_ns()
        for wd in (*self._dirs, *self._awaited):
            self._libc.inotify_rm_watch(self._fd, wd)
        self._dirs, self._wds, self._names, self._half, self._denied = {}, {}, {}, {}, {}
        self._awaited = {}
        self._tell_denied()
        self._tell(t_ns, "lost", b"", True)

    def _add(self, path: bytes) -> bool:
        """Whether the directory is watched now."""
        flags = MASK | _ONLYDIR | (_DONT_FOLLOW if path else 0)
        wd: int = self._libc.inotify_add_watch(self._fd, os.path.join(self._root, path), flags)
        if wd < 0:
            self._note_refusal(path, ctypes.get_errno())
            return False
        before = self._dirs.get(wd, path)
        if before != path:
            self._forget(before)
        self._dirs[wd], self._wds[path] = path, wd
        self._names.setdefault(path, set())
        return True

    def _note_refusal(self, path: bytes, number: int) -> None:
        if number in (errno.ENOSPC, errno.ENOMEM):
            self.exhausted = _refusal_text(number)
        elif number not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            # those are gone again, or became a link
            self._denied[path] = os_error_text(OSError(number, os.strerror(number)))
            self._tell_denied()

    def _tell_denied(self) -> None:
        if self._denied:
            path, reason = next(iter(self._denied.items()))
            more = f" and {len(self._denied) - 1} more" if len(self._denied) > 1 else ""
            self.problem = f"not watched: {os.fsdecode(path)!r} ({reason}){more}"
        else:
            self.problem = ""

    def _watch(self, t_ns: int, top: bytes, kind: str, *, again: bool = False) -> None:
        """Watches `top` and all below it. What was not told yet is told as `kind`; with an empty
        one it is only known. `again`: also what is watched already is walked, for a walk stops
        where a directory is renamed under it."""
        todo = [top]
        while todo and not self.exhausted:
            path = todo.pop()
            if self._add(path):
                todo += self._read_names(t_ns, path, kind, again=again)

    def _read_names(self, t_ns: int, path: bytes, kind: str, *, again: bool) -> list[bytes]:
        """What is in a directory that is watched by now; gives the directories to go on with."""
        names, inside = self._names[path], []
        for name, is_dir in self._entries(path):
            inner = os.path.join(path, name)
            if inner in self._ignore:
                continue
            is_new = name not in names
            if is_new and self._tell_found(t_ns, kind, inner, is_dir):
                names.add(name)
            if is_dir and (is_new or again or inner not in self._wds):
                inside.append(inner)
        return inside

    def _entries(self, path: bytes) -> list[tuple[bytes, bool]]:
        """The names in a directory, and whether each is one itself."""
        try:
            with os.scandir(os.path.join(self._root, path)) as entries:
                return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if error.errno == errno.EACCES:
                self._denied[path] = os_error_text(error)
                self._tell_denied()
            return []

    def _tell_found(self, t_ns: int, kind: str, path: bytes, is_dir: bool) -> bool:
        """A name that no event told: a little older than its finding, and its birth says how
        much. False: it is gone, or has another name by now."""
        if not kind:
            return True
        birth_ns = None
        if kind == "created" and not is_dir:
            full = os.path.join(self._root, path)
            try:
                written_ns = os.lstat(full).st_mtime_ns
            except OSError:
                return False
            if written_ns < self._since_ns - _CLOCK_NS:
                return True  # from before we looked: it came with a directory that appeared late
            birth_ns = born_ns(full, t_ns)
        if birth_ns is None:
            self._tell(t_ns, kind, path, is_dir, how="scan")
        else:
            self._tell(birth_ns, kind, path, is_dir, how="btime")
        return True

    def _forget(self, top: bytes) -> None:
        """No watches at and below `top` any more."""
        for path in below(top, self._wds):
            wd = self._wds.pop(path)
            self._dirs.pop(wd, None)
            self._names.pop(path, None)
            self._libc.inotify_rm_watch(self._fd, wd)

    def _take(self, t_ns: int, wd: int, mask: int, cookie: int, name: bytes) -> None:
        directory, is_dir = self._dirs[wd], bool(mask & ISDIR)
        if mask & IGNORED:
            del self._dirs[wd]
            if self._wds.get(directory) == wd:
                del self._wds[directory]
                self._names.pop(directory, None)
        elif mask & (DELETE_SELF | MOVE_SELF | UNMOUNT):
            if not directory and self._identity is not None:
                self._lose(t_ns)
        elif name:
            path = os.path.join(directory, name)
            if path not in self._ignore:
                self._take_name(t_ns, mask, cookie, path, is_dir, name, self._names[directory])

    def _take_name(
        self,
        t_ns: int,
        mask: int,
        cookie: int,
        path: bytes,
        is_dir: bool,
        name: bytes,
        names: set[bytes],
    ) -> None:
        if mask & CREATE:
            self._take_created(t_ns, path, is_dir, is_new=name not in names)
            names.add(name)
        elif mask & OPEN:
            if not is_dir:
                self._tell(t_ns, "opened", path)
        elif mask & CLOSE_WRITE:
            self._tell(t_ns, "closed", path)
        elif mask & DELETE:
            names.discard(name)
            self._tell_gone(t_ns, path, is_dir)
        elif mask & MOVED_FROM:
            names.discard(name)
            self._half[cookie] = (path, is_dir, t_ns)
        elif mask & MOVED_TO:
            names.add(name)
            self._take_moved(t_ns, path, is_dir, self._half.pop(cookie, None))

    def _take_created(self, t_ns: int, path: bytes, is_dir: bool, *, is_new: bool) -> None:
        if is_new:
            self._tell(t_ns, "created", path, is_dir)
        if is_dir and path not in self._wds:
            self._watch(t_ns, path, "created")
        elif not is_dir and os.path.islink(os.path.join(self._root, path)):
            self._tell(t_ns, "closed", path)  # whole at once, and nobody will close it

    def _take_moved(
        self, t_ns: int, path: bytes, is_dir: bool, half: tuple[bytes, bool, int] | None
    ) -> None:
        if half is None:
            self._tell(t_ns, "moved", path, is_dir)
            if is_dir:
                self._watch(t_ns, path, "moved")
            return
        if is_dir:
            self._rename(half[0], path)
        self._rename_awaited(half[0], path)
        self._tell(t_ns, "moved", path, is_dir, half[0])
        if is_dir:  # it may have had its first name for too short a time
            self._watch(t_ns, path, "created", again=True)

    def _rename_awaited(self, old: bytes, new: bytes) -> None:
        for wd, path in self._awaited.items():
            if below(old, [path]):
                self._awaited[wd] = new + path[len(old) :]

    def _rename(self, old: bytes, new: bytes) -> None:
        """Watches stay with the directory; only its name is another one."""
        self._forget(new)  # an empty directory that was replaced
        for path in below(old, self._wds):
            now = new + path[len(old) :]
            wd = self._wds.pop(path)
            self._dirs[wd], self._wds[now], self._names[now] = now, wd, self._names.pop(path)
        for path in below(old, self._denied):
            self._denied[new + path[len(old) :]] = self._denied.pop(path)

    def _tell_gone(self, t_ns: int, path: bytes, is_dir: bool) -> None:
        self._tell(t_ns, "gone", path, is_dir)
        if is_dir:
            self._forget(path)

    def _read_tree_again(self, t_ns: int) -> None:
        """The queue was full: what is there now against what was told, and what changed since the
        queue was last empty."""
        self._tell(t_ns, "overflow", b"", True)
        known, self._names = self._names, {path: set() for path in self._names}
        since_ns = self._empty_ns  # the queue may have been full since any instant after that
        self._half.clear()
        told, self._out = self._out, []
        before, self._wds, self._dirs = set(self._dirs), {}, {}
        self._watch(t_ns, b"", "created")
        for wd in before - set(self._dirs):  # moved out of the tree, and nobody told
            self._libc.inotify_rm_watch(self._fd, wd)
        was = _paths(known)
        for event in self._out:
            path = os.fsencode(event.path)
            if path not in was:
                told.append(event)
            elif not event.is_dir and self._has_changed(path, since_ns, t_ns):
                told.append(event._replace(t_ns=since_ns, kind="opened", how="scan"))
        self._out = told
        for path in sorted(was - _paths(self._names)):
            self._tell(t_ns, "gone", path, path in known, how="scan")
        self._names = {path: names for path, names in self._names.items() if path in self._wds}

    def _has_changed(self, path: bytes, since_ns: int, t_ns: int) -> bool:
        try:
            age_ns = time.time_ns() - os.lstat(os.path.join(self._root, path)).st_mtime_ns
        except OSError:
            return False
        return age_ns < t_ns - since_ns + _CLOCK_NS


def _paths(names: dict[bytes, set[bytes]]) -> set[bytes]:
    return {os.path.join(directory, name) for directory in names for name in names[directory]}
