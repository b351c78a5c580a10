"""Parts of a run on disk: append only, never over something that is there, never through a link,
and small enough in all.

This module may block and may raise; `pump` keeps both away from the recorder.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ckptcost.first.errors import OutputError
from ckptcost.first.runs.lines import BadLine, decode

PART_BYTES = 16_000_000
MOST_BYTES = 2_000_000_000
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EROFS, errno.ENOTSUP}
"""what a file system says that cannot sync at all"""

Head = Callable[[int, tuple[int, ...]], bytes]
"""part number and dropped parts to the header's line"""


class WriteFailed(Exception):
    """So many lines are in the file whole, the others not at all."""

    def __init__(self, done: int, error: OSError) -> None:
        self.done, self.error = done, error
        super().__init__(str(error))


def make_directory(directory: Path) -> None:
    """Raises OutputError where nothing can be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot make the run's directory: {error.strerror}"
        ) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise OutputError(
            f"{directory}: no permission to write into the run's directory. Choose another, or"
            " `chmod u+wx` it"
        )


def first_line(path: Path, most: int = 4_000_000) -> bytes:
    with path.open("rb") as file:
        return file.readline(most).rstrip(b"\n")


def parts_of(directory: Path, base: str, run: str) -> list[tuple[int, Path]]:
    """Parts that are there already and belong to this run, by number: what a successor counts into
    the total."""
    mine = re.compile(rf"{re.escape(base)}\.(\d{{3,}})\.jsonl$")
    found = []
    for entry in directory.iterdir():
        if (matched := mine.match(entry.name)) and not entry.is_symlink():
            try:
                if decode(first_line(entry)).get("run") == run:
                    found.append((int(matched[1]), entry))
            except (OSError, BadLine):
                continue
    return sorted(found)


class Writer:
    """Lines into `<base>.000.jsonl`, `<base>.001.jsonl` ...; the first at once: a bad directory is
    known at the start."""

    def __init__(
        self,
        directory: Path,
        base: str,
        run: str,
        head: Head,
        part_bytes: int = PART_BYTES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        make_directory(directory)
        self._directory, self._base, self._head = directory, base, head
        self._part_bytes, self._most_bytes = part_bytes, most_bytes
        self._old = [
            (number, path, path.stat().st_size) for number, path in parts_of(directory, base, run)
        ]
        self._dropped: tuple[int, ...] = ()
        self._fd = -1
        self._number = -1
        self._next = 0
        self._size = self._synced = self._head_bytes = 0
        self._ragged = False
        self._can_sync = True
        try:
            self._new_part()
        except OSError as error:
            raise OutputError(
                f"{directory}: cannot make the run's first file: {error.strerror}"
            ) from error

    @property
    def path(self) -> Path:
        return self._directory / f"{self._base}.{self._number:03d}.jsonl"

    def write(self, lines: Sequence[bytes]) -> None:
        """Raises WriteFailed; then the lines that did not fit were taken back out of the file."""
        start = 0
        while start < len(lines):
            room, end = self._part_bytes - self._size, start
            while end < len(lines) and (
                room >= len(lines[end]) or (end == start and self._size <= self._head_bytes)
            ):
                room -= len(lines[end])
                end += 1
            try:
                if end == start or self._fd < 0:
                    self._new_part()
                    continue
            except OSError as error:
                raise WriteFailed(start, error) from error
            self._append(lines, start, end)
            start = end

    def _append(self, lines: Sequence[bytes], start: int, end: int) -> None:
        data = memoryview((b"\n" if self._ragged else b"") + b"".join(lines[start:end]))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            done, whole = start, int(self._ragged)
            while done < end and whole + len(lines[done]) <= written:
                whole += len(lines[done])
                done += 1
            kept = whole if done > start else 0
            try:
                os.ftruncate(self._fd, self._size + kept)
            except OSError:
                self._ragged, kept = True, written
            else:
                self._ragged = self._ragged and kept == 0
            self._size += kept
            raise WriteFailed(done, error) from error
        self._ragged = False
        self._size += written

    def _new_part(self) -> None:
        if self._fd >= 0:
            self._old.append((self._number, self.path, self._size))
            self.close()
        self._shrink()
        known = self._old[-1][0] + 1 if self._old else 0
        for number in range(max(self._next, known), 1_000_000):
            path = self._directory / f"{self._base}.{number:03d}.jsonl"
            try:
                fd = os.open(path, _FLAGS, 0o644)
            except FileExistsError:
                continue
            head = self._head(number, self._dropped)
            try:
                view, done = memoryview(head), 0
                while done < len(head):
                    done += os.write(fd, view[done:])
            except OSError:
                os.close(fd)
                path.unlink(missing_ok=True)
                raise
            self._fd, self._number, self._next, self._size, self._head_bytes = (
                fd,
                number,
                number + 1,
                len(head),
                len(head),
            )
            self._synced, self._ragged = 0, False
            return
        raise OSError(errno.EEXIST, "a million parts are there already")

    def _shrink(self) -> None:
        """Room for one more part below the total."""
        while (
            self._old
            and sum(size for _, _, size in self._old) + self._part_bytes > self._most_bytes
        ):
            number, path, _ = self._old.pop(0)
            path.unlink(missing_ok=True)
            self._dropped = (self._dropped[0] if self._dropped else number, number)

    def sync(self) -> bool:
        """To the disk itself. False where nothing was new or the file system cannot."""
        if self._fd < 0 or self._size == self._synced or not self._can_sync:
            return False
        size = self._size
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            if error.errno in _NO_SYNC:
                self._can_sync = False
                return False
            raise
        self._synced = size
        return True

    def close(self) -> None:
        """Without a sync: the caller decides whether that is worth waiting for."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)
