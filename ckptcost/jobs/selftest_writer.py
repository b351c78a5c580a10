"""The job of a self-test: it saves in the ways that training jobs do, and notes what it did by its
own clock.

A save in one file lies in `save-0`, one in several files in a folder of its own: names that the
folder's removal knows. Each note is a line of JSON, appended at once, so that what was done before
a kill is known.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Iterator

FILES = 4
"""of a save in several files"""
KEPT_S = 1.5
"""a save that is rotated away is deleted after this, long before the kernel would write it back"""
REST_S = 4.0
"""between saves: longer than files of one save are apart, and time for the write-back that somebody
asks for"""
BLOCK_BYTES = 4 << 20
WAYS = ("one file", "one, fsync", "several", "several, fsync", "rotation")
"""rotation: one file, deleted before it is written back"""
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG"""


class Writer:
    def __init__(self, folder: str, size_bytes: int, notes: str) -> None:
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._notes = os.open(notes, os.O_WRONLY | os.O_APPEND)
        self._size_bytes = size_bytes
        self._content = os.urandom(min(BLOCK_BYTES, size_bytes))

    def note(self, **what: object) -> None:
        os.write(self._notes, (json.dumps(what) + "\n").encode())

    def file(self, folder: int, name: str, size_bytes: int, synced: bool) -> None:
        fd = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder
        )
        try:
            left = size_bytes
            while left:
                # never twice the same bytes: storage that folds them would be too quick
                begin = os.urandom(64) + self._content[64:]
                left -= os.write(fd, begin[:left])
            if synced:
                os.fsync(fd)
        finally:
            os.close(fd)

    def one(self, number: int, synced: bool) -> list[str]:
        with contextlib.suppress(FileExistsError):
            os.mkdir("save-0", 0o700, dir_fd=self._folder)
        with _opened("save-0", self._folder) as inner:
            self.file(inner, f"step-{number}.tmp", self._size_bytes, synced)
            os.rename(
                f"step-{number}.tmp", f"step-{number}.bin", src_dir_fd=inner, dst_dir_fd=inner
            )
            if synced:
                os.fsync(inner)
        return [f"save-0/step-{number}.bin"]

    def several(self, number: int, synced: bool) -> list[str]:
        part, final, names = f"save-{number}.part", f"save-{number}", []
        os.mkdir(part, 0o700, dir_fd=self._folder)
        with _opened(part, self._folder) as inner:
            for rank in range(FILES):
                share = self._size_bytes // FILES + (self._size_bytes % FILES if rank == 0 else 0)
                names.append(f"rank-{rank}.bin")
                self.file(inner, names[-1], share, synced)
            if synced:
                os.fsync(inner)
        os.rename(part, final, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        if synced:
            os.fsync(self._folder)
        return [f"{final}/{name}" for name in names]

    def save(self, number: int, way: str) -> None:
        synced = "fsync" in way
        begin_ns = time.monotonic_ns()
        write: Callable[[int, bool], list[str]] = self.several if "several" in way else self.one
        files = write(number, synced)
        returned_ns = time.monotonic_ns()
        self.note(
            number=number,
            way=way,
            bytes=self._size_bytes,
            files=files,
            begin_ns=begin_ns,
            returned_ns=returned_ns,
        )
        time.sleep(KEPT_S if way == "rotation" else REST_S)
        deleted_ns = time.monotonic_ns()
        for file in files:
            os.unlink(file, dir_fd=self._folder)
        self.note(number=number, deleted_ns=deleted_ns)
        if "several" in way:
            os.rmdir(f"save-{number}", dir_fd=self._folder)
        time.sleep(REST_S - KEPT_S if way == "rotation" else 0.0)


@contextlib.contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def serve(
    folder: str, size_bytes: int, rounds: int, within_s: float, notes: str, parent: int
) -> None:
    """All saves, as far as there is time; an error of the storage is a note. Ends with its parent,
    however that ends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    writer = Writer(folder, size_bytes, notes)
    until_s, longest_s, number = time.monotonic() + within_s, 0.0, 0
    time.sleep(1.0)
    for _ in range(rounds):
        for way in WAYS:
            number += 1
            since_s = time.monotonic()
            if since_s + longest_s > until_s:
                writer.note(skipped=way)
                continue
            try:
                writer.save(number, way)
            except OSError as error:
                writer.note(failed=way, errno=error.errno)
                return
            longest_s = max(longest_s, time.monotonic() - since_s)
