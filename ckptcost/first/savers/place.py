"""The directory that a probe makes for itself in a directory of the user's, and the saves in it.

DIR is opened once; from then on everything happens relative to open directories, so nobody who
renames a path or puts a link in it can lead us elsewhere. `.ckptcost-probe-<random>/` is for its
owner only; in it `save-N.part/` becomes `save-N/` when it is complete.

Space is asked for one save at a time: who drives an engine removes the last save before the next
begins, outside of what is timed. A training job keeps the old one until the new one is safe; a
probe's content is worth nothing, and half the space is worth a lot.

A tiny process removes the directory when the probe is gone, however it went. It waits for the end
of a pipe whose other end only the probe holds, and so outlives even `kill -9`. It is in a session
of its own: Ctrl-C does not reach it. It holds the probe's lock with it, so no other probe takes the
directory for stale in between. About 20 ms to start and 8 MB, of which most is shared with other
Pythons; it never wakes while it waits.
"""

from __future__ import annotations

import errno
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from ckptcost.first.errors import InputError, OutputError
from ckptcost.first.savers import owners, removal
from ckptcost.first.savers.base import output_error
from ckptcost.first.savers.removal import remove, remove_save

_WAIT_S = 60.0
_MAIN = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.write(1, b"ready")
os.close(1)
while os.read(0, 64):
    pass
remove(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
"""


class Janitor:
    """Starts watching at once. `parent` and `place` are open directories; `owner` is the open file
    with the lock."""

    def __init__(self, parent: int, name: str, place: int, owner: int) -> None:
        program = inspect.getsource(removal) + _MAIN
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program, str(parent), name, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(parent, place, owner),
            start_new_session=True,
            cwd="/",
            bufsize=0,
        )
        self.pid = self._process.pid
        said = _pipe(self._process.stdout)
        watches = said.read(5) == b"ready"
        said.close()
        if not watches:
            self.close()
            raise OSError(0, "the helper process that would remove the files did not start")

    def close(self) -> None:
        """It looks once more, and ends. To be called when the directory is removed already, or
        should be."""
        _pipe(self._process.stdin).close()
        try:
            self._process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _pipe(found: IO[bytes] | None) -> IO[bytes]:
    assert found is not None
    return found


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_MARGIN_BYTES = 1 << 30
_TRIES = 16
_AGAIN_S = 0.05
_HIDDEN = ".fuse_hidden"


def margin_bytes(whole_bytes: int) -> int:
    """What is left free of a file system of that size: a twentieth of it, at most 1 GiB.

    >>> margin_bytes(1 << 30) >> 20, margin_bytes(1 << 40) >> 20
    (51, 1024)
    """
    return min(whole_bytes // 20, _MOST_MARGIN_BYTES)


def check_name(name: str) -> str:
    """A name that is only a name. Raises InputError."""
    if (
        not name
        or "/" in name
        or "\0" in name
        or name in (".", "..")
        or len(os.fsencode(name)) > 255
    ):
        raise InputError(f"{name!r} cannot be the name of a file")
    return name


class SaveFolder:
    """A directory `save-N`, open. `path` leads to it for libraries that want a path; it holds in
    this process and what it forks."""

    def __init__(self, place: SavePlace, number: int, name: str) -> None:
        self.number, self._name, self._place = number, name, place
        self.fd = os.open(name, _DIRECTORY, dir_fd=place.fd)
        self.shown = f"{place.shown}/save-{number}"

    @property
    def path(self) -> Path:
        return Path(f"/proc/self/fd/{self.fd}")

    def create(self, name: str, flags: int = os.O_RDWR) -> int:
        """A new file; `flags` says how it is opened (os.O_WRONLY | os.O_DIRECT ...). The open
        file."""
        return os.open(
            check_name(name),
            flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
            dir_fd=self.fd,
        )

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        return os.open(check_name(name), flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)

    def sync_files(self) -> None:
        """fsync of every file: for libraries that do not do it themselves."""
        for name in sorted(os.listdir(self.fd)):
            fd = self.open(name)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def commit(self) -> None:
        """The last step, as of a training job that lets nobody see half a checkpoint: fsync of the
        directory, its final name, fsync of the directory above. When it returns, all is durable
        whose files were synced."""
        os.fsync(self.fd)
        final = f"save-{self.number}"
        os.rename(self._name, final, src_dir_fd=self._place.fd, dst_dir_fd=self._place.fd)
        os.fsync(self._place.fd)
        self._name = final


class SavePlace:
    """To be used in a `with`: whatever happens in it, the directory and all in it is gone
    afterwards."""

    def __init__(self, directory: Path | str, size_bytes: int = 0) -> None:
        """`size_bytes` is the size of one save. Raises InputError where there is no such directory,
        OutputError where it cannot be written to or is too full."""
        self.shown = str(directory)
        self.notes: list[str] = []
        """what was found and removed, or left and why"""
        self.name = ""
        self.fd = self._owner = -1
        self._janitor: Janitor | None = None
        self._pid = os.getpid()
        try:
            self._parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise InputError(
                "no such directory", where=self.shown, remedy="make it, or give one that is there"
            ) from error
        except NotADirectoryError as error:
            raise OutputError(f"{self.shown}: not a directory") from error
        except OSError as error:
            raise output_error(error, self.shown, "cannot be opened") from error
        except ValueError as error:
            raise InputError(str(error), where=repr(self.shown)) from error
        try:
            try:
                self.notes += owners.sweep(self._parent)
                self.check_room(size_bytes)
                self._make()
                self._watch()
            except OSError as error:
                error.filename = None
                raise output_error(error, self.shown, "cannot make a directory in it") from error
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        for _ in range(_TRIES):
            self.name = f"{owners.PREFIX}{os.urandom(8).hex()}"
            os.mkdir(self.name, 0o700, dir_fd=self._parent)
            self.fd = os.open(self.name, _DIRECTORY, dir_fd=self._parent)
            owner = owners.take(self.fd)
            if owner is not None:
                self._owner = owner
                os.fsync(self._parent)
                return
            os.close(self.fd)
            self.fd = -1
        raise OSError(0, "other probes take it away again and again")

    def _watch(self) -> None:
        try:
            self._janitor = Janitor(self._parent, self.name, self.fd, self._owner)
        except OSError as error:
            self.notes.append(
                "if this process is killed its files stay until the next probe there, since"
                f" {error.strerror or error}"
            )

    def check_room(self, size_bytes: int) -> None:
        """Raises OutputError where a save of that size does not fit, with a margin. Quotas show
        only when they are hit."""
        found = os.fstatvfs(self._parent)
        whole, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
        if not whole:  # some network and user-space file systems do not say
            return
        room = free - margin_bytes(whole)
        if size_bytes > room:
            raise OutputError(
                f"{self.shown}: a checkpoint of {_gb(size_bytes)} does not fit: {_gb(free)} are"
                f" free, of which {_gb(free - max(room, 0))} are left alone. Give a smaller size,"
                " or another directory"
            )

    @contextmanager
    def saving(self, number: int, size_bytes: int) -> Iterator[SaveFolder]:
        """Checkpoint `number` while it is written. If the block raises anything, Ctrl-C too,
        nothing of it is left; an OSError becomes OutputError. The block ends with `commit()`."""
        self.check_room(size_bytes)
        part = f"save-{number}.part"
        try:
            if f"save-{number}" in os.listdir(self.fd):
                raise FileExistsError(errno.EEXIST, "it is there already")
            os.mkdir(part, 0o700, dir_fd=self.fd)
            save = SaveFolder(self, number, part)
            try:
                yield save
            except BaseException:
                os.close(save.fd)
                remove_save(self.fd, part)
                remove_save(self.fd, f"save-{number}")
                raise
            os.close(save.fd)
        except OSError as error:
            raise output_error(error, f"{self.shown}: save {number}") from error

    @contextmanager
    def loading(self, number: int) -> Iterator[SaveFolder]:
        """Checkpoint `number` while it is read."""
        try:
            save = SaveFolder(self, number, f"save-{number}")
            try:
                yield save
            finally:
                os.close(save.fd)
        except OSError as error:
            raise output_error(error, f"{self.shown}: load of save {number}") from error

    def remove(self, number: int) -> None:
        """Take checkpoint `number` away, and wait until the file system has taken note, so that
        this does not fall into the next save."""
        left = remove_save(self.fd, f"save-{number}")
        if left:
            raise OutputError(
                f"{self.shown}: save {number} could not be removed: {'; '.join(left[:5])}"
            )
        try:
            os.fsync(self.fd)
        except OSError as error:
            raise output_error(error, self.shown) from error

    def close(self) -> None:
        """Removes everything. Twice is once; in a forked child, nothing."""
        if self._parent < 0 or os.getpid() != self._pid:
            return
        try:
            self._remove_all()
            if self._janitor is not None:
                self._janitor.close()
        finally:
            for fd in (self.fd, self._owner, self._parent):
                if fd >= 0:
                    os.close(fd)
            self.fd = self._owner = self._parent = -1

    def _remove_all(self) -> None:
        if self.fd >= 0:
            left = remove(self._parent, self.name, self.fd)
            if left and any(name.startswith(_HIDDEN) for name in os.listdir(self.fd)):
                left = self._retry_removal(left)
            if left:
                self.notes.append(
                    f"{self.shown}/{self.name} could not be removed whole: {'; '.join(left[:5])}"
                )
        elif self.name:
            with suppress(OSError):
                os.rmdir(self.name, dir_fd=self._parent)

    def _retry_removal(self, left: list[str]) -> list[str]:
        """A file system in user space keeps a removed file under a hidden name until whoever has it
        open lets go: the lock's too."""
        if self._janitor is not None:
            self._janitor.close()
            self._janitor = None
        if self._owner >= 0:
            os.close(self._owner)
            self._owner = -1
        for _ in range(_TRIES):
            left = remove(self._parent, self.name, self.fd)
            if not left:
                break
            time.sleep(_AGAIN_S)
        return left

    def __enter__(self) -> SavePlace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _gb(size_bytes: int) -> str:
    """In words for a message; layers above have the finer ones."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if abs(size_bytes) >= size:
            return f"{size_bytes / size:.3g} {unit}"
    return f"{size_bytes} bytes"
