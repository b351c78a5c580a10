"""What happens in a directory and below it, found by reading it again and again: for where inotify
sees nothing of who writes.

The same events as from inotify, later and with less certainty: a file is closed when its size and
time have been still for a while, and was moved when its inode is found under another name. Instants
are those that the file system noted (birth, last write) where it notes any; a server's clock that
differs from ours goes into them in full.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import NamedTuple

from ckptcost.first.meters.kept import os_error_text
from ckptcost.first.watch.filesystems import birth_ns, monotonic_ns
from ckptcost.first.watch.inotify import FileEvent
from ckptcost.first.watch.names import below, within

S = 1_000_000_000
MOST_OF_A_CORE = 0.02


@dataclass(slots=True)
class _Seen:
    inode: tuple[int, int]
    size: int
    mtime_ns: int
    birth_ns: int | None
    changed_ns: int
    """when it was first seen like this"""
    is_open: bool
    is_missing: bool = False
    """it was not found when we looked last, and nothing was told of that yet"""


class _Entry(NamedTuple):
    inode: tuple[int, int]
    size: int
    mtime_ns: int
    kind: int
    """file, directory, link and so on, as stat.S_IFMT gives it"""


Found = dict[bytes, _Entry]


class Polling:
    """`scan` at least `interval_s` apart."""

    how = "poll"

    def __init__(
        self,
        root: str,
        ignore: tuple[str, ...] = (),
        *,
        interval_s: float = 0.5,
        still_s: float = 5.0,
    ) -> None:
        self._root = os.fsencode(root)
        self._ignore = frozenset(map(os.fsencode, ignore))
        self._least_s, self._still_ns = interval_s, round(still_s * S)
        self._files: dict[bytes, _Seen] = {}
        self._dirs: dict[bytes, tuple[int, int]] = {}
        self._identity: tuple[int, int] | None = None
        self._out: list[FileEvent] = []
        self._last_ns = time.monotonic_ns()
        self.interval_s = interval_s
        self.problem = ""
        self._scan(tell=False)

    @property
    def here(self) -> bool:
        return self._identity is not None

    def scan(self) -> list[FileEvent]:
        before_s = time.thread_time()
        self._scan(tell=True)
        self.interval_s = max(self._least_s, (time.thread_time() - before_s) / MOST_OF_A_CORE)
        told, self._out = self._out, []
        return told

    def _scan(self, *, tell: bool) -> None:
        t_ns = time.monotonic_ns()
        self.problem = ""
        try:
            root = os.stat(self._root)
        except (FileNotFoundError, NotADirectoryError):
            self._lose(t_ns)
            return
        except OSError as error:  # a server that does not answer has not deleted anything
            self.problem = (
                f"cannot be read now: {os.fsdecode(self._root)!r} ({os_error_text(error)})"
            )
            return
        if not stat.S_ISDIR(root.st_mode):
            self._lose(t_ns)
            return
        if self._identity not in (None, (root.st_dev, root.st_ino)):
            self._lose(t_ns)
        if self._identity is None and tell:
            self._tell(t_ns, "scan", "found", b"", is_dir=True)
        self._identity = (root.st_dev, root.st_ino)
        files, dirs = self._walk()
        if tell:
            self._compare(t_ns, files, dirs)
        else:
            self._files = {
                path: _new_seen(found, None, t_ns, is_open=False) for path, found in files.items()
            }
        self._dirs = {path: found.inode for path, found in dirs.items()}
        self._last_ns = t_ns

    def _walk(self) -> tuple[Found, Found]:
        files: Found = {}
        dirs: Found = {}
        todo = [b""]
        while todo:
            top = todo.pop()
            try:
                with os.scandir(os.path.join(self._root, top)) as entries:
                    for entry in entries:
                        path = os.path.join(top, entry.name)
                        here = None if path in self._ignore else _entry_of(entry)
                        if here is None:
                            continue
                        if here.kind == stat.S_IFDIR:
                            dirs[path] = here
                            todo.append(path)
                        else:
                            files[path] = here
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.problem = f"not watched: {os.fsdecode(top)!r} ({os_error_text(error)})"
                self._keep(top, files, dirs)
        return files, dirs

    def _keep(self, top: bytes, files: Found, dirs: Found) -> None:
        """What cannot be read now is not gone."""
        for path in within(top, self._files):
            seen = self._files[path]
            files[path] = _Entry(seen.inode, seen.size, seen.mtime_ns, stat.S_IFREG)
        for path in below(top, self._dirs):
            dirs.setdefault(path, _Entry(self._dirs[path], 0, 0, stat.S_IFDIR))

    def _compare(self, t_ns: int, files: Found, dirs: Found) -> None:
        self._find_moved_dirs(t_ns, files, dirs)
        for path in dirs.keys() - self._dirs.keys():
            self._tell(
                *_birth_or_now(birth_ns(os.path.join(self._root, path)), t_ns),
                "created",
                path,
                is_dir=True,
            )
        self._compare_files(t_ns, files)
        for path in [path for path in self._files if path not in files]:
            self._tell_gone(t_ns, path)
        for path in self._dirs.keys() - dirs.keys():
            if within(path, self._files):
                dirs[path] = _Entry(self._dirs[path], 0, 0, stat.S_IFDIR)  # after what was in it
            else:
                self._tell(t_ns, "scan", "gone", path, is_dir=True)

    def _compare_files(self, t_ns: int, files: Found) -> None:
        left = {seen.inode: path for path, seen in self._files.items() if path not in files}
        for path, found in files.items():
            seen = self._files.get(path)
            if seen is None or seen.inode != found.inode:
                birth = birth_ns(os.path.join(self._root, path))
                old = left.get(found.inode)
                if old is not None and not _same(self._files[old], found, birth):
                    old = None
                self._tell_new(t_ns, path, old, found, birth)
            elif (seen.size, seen.mtime_ns) != (found.size, found.mtime_ns):
                if not seen.is_open:
                    self._tell(*_write_or_now(found.mtime_ns, self._last_ns, t_ns), "opened", path)
                self._files[path] = _new_seen(found, seen.birth_ns, t_ns, is_open=True)
            elif seen.is_open and t_ns - seen.changed_ns >= self._still_ns:
                seen.is_open = False
                self._tell(*_write_or_now(found.mtime_ns, 0, seen.changed_ns), "closed", path)

    def _tell_gone(self, t_ns: int, path: bytes) -> None:
        """A file that is not there any more. One that was never still is closed first, and is gone
        when we look again: a save whose files all vanish at once was whole before, and in the time
        between that can be told."""
        seen = self._files[path]
        if seen.is_open and not seen.is_missing:
            seen.is_open, seen.is_missing = False, True
            self._tell(*_write_or_now(seen.mtime_ns, 0, seen.changed_ns), "closed", path)
            return
        del self._files[path]
        self._tell(t_ns, "scan", "gone", path)

    def _find_moved_dirs(self, t_ns: int, files: Found, dirs: Found) -> None:
        """A directory whose inode has another name now, and none of whose files says that it is
        another one."""
        left = {inode: path for path, inode in self._dirs.items() if path not in dirs}
        for path in sorted(dirs.keys() - self._dirs.keys(), key=len):
            old = left.get(dirs[path].inode)
            if old is None or old not in self._dirs or path in self._dirs:
                continue
            if not self._is_another(old, path, files):
                self._move_dir(t_ns, old, path, files)

    def _move_dir(self, t_ns: int, old: bytes, path: bytes, files: Found) -> None:
        """What is new in it is told under its old name first: a directory is renamed when all is
        written."""
        known = {seen.inode: seen for seen in self._files.values()}
        for inner in within(path, files):
            before, found = old + inner[len(path) :], files[inner]
            if before in self._files:
                continue
            birth, seen = birth_ns(os.path.join(self._root, inner)), known.get(found.inode)
            if seen is None or not _same(seen, found, birth):
                self._tell_new(t_ns, before, None, found, birth)
        self._tell(t_ns, "scan", "moved", path, is_dir=True, old=old)
        for inner in below(old, self._dirs):
            self._dirs[path + inner[len(old) :]] = self._dirs.pop(inner)
        for inner in within(old, self._files):
            self._files[path + inner[len(old) :]] = self._files.pop(inner)

    def _is_another(self, old: bytes, path: bytes, files: Found) -> bool:
        """Made anew with the inode of one that was deleted: files that were there are not, or were
        written anew and are no longer."""
        inside = {inner[len(old) :]: self._files[inner] for inner in within(old, self._files)}
        return bool(inside) and not any(
            (found := files.get(path + rest)) is not None
            and found.inode == seen.inode
            and (found.mtime_ns == seen.mtime_ns or found.size > seen.size)
            for rest, seen in inside.items()
        )

    def _tell_new(
        self, t_ns: int, path: bytes, old: bytes | None, found: _Entry, birth: int | None
    ) -> None:
        is_open = found.kind == stat.S_IFREG
        if old is not None:
            seen = self._files.pop(old)
            self._files[path] = _new_seen(found, birth, seen.changed_ns, is_open=seen.is_open)
            self._tell(t_ns, "scan", "moved", path, old=old)
            return
        self._files[path] = _new_seen(found, birth, t_ns, is_open=is_open)
        at_ns, how = _birth_or_now(birth, t_ns)
        if how == "scan" and birth is not None and monotonic_ns(found.mtime_ns, t_ns) is None:
            self._files[path].is_open = False
            self._tell(t_ns, "scan", "moved", path)  # written long ago: it came from outside
            return
        self._tell(at_ns, how, "created", path)
        if not is_open:
            self._tell(at_ns, how, "closed", path)

    def _lose(self, t_ns: int) -> None:
        if self._identity is not None:
            self._identity, self._files, self._dirs = None, {}, {}
            self._tell(t_ns, "scan", "lost", b"", is_dir=True)

    def _tell(
        self, t_ns: int, how: str, kind: str, path: bytes, is_dir: bool = False, old: bytes = b""
    ) -> None:
        self._out.append(FileEvent(t_ns, kind, os.fsdecode(path), is_dir, os.fsdecode(old), how))


def _entry_of(entry: os.DirEntry[bytes]) -> _Entry | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # gone meanwhile
    return _Entry(
        (found.st_dev, found.st_ino),
        found.st_size,
        found.st_mtime_ns,
        stat.S_IFMT(found.st_mode),
    )


def _new_seen(found: _Entry, birth: int | None, t_ns: int, *, is_open: bool) -> _Seen:
    return _Seen(found.inode, found.size, found.mtime_ns, birth, t_ns, is_open)


def _same(seen: _Seen, found: _Entry, birth: int | None) -> bool:
    """One file under two names, not two files of which the later got the inode of the earlier."""
    if seen.birth_ns is not None and birth is not None:
        return seen.birth_ns == birth
    return (found.size, found.mtime_ns) == (seen.size, seen.mtime_ns)


def _birth_or_now(birth: int | None, t_ns: int) -> tuple[int, str]:
    at_ns = monotonic_ns(birth, t_ns)
    return (t_ns, "scan") if at_ns is None else (at_ns, "btime")


def _write_or_now(mtime_ns: int, after_ns: int, t_ns: int) -> tuple[int, str]:
    """The last write as the file system noted it, where that can be: after `after_ns` and not after
    `t_ns`."""
    at_ns = monotonic_ns(mtime_ns, t_ns)
    return (t_ns, "scan") if at_ns is None or at_ns < after_ns else (at_ns, "mtime")
