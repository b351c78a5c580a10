"""Writing one file so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

PART = ".part"
"""ending of what is being written; such names begin with a dot"""
OLD_S = 86_400.0
"""where locks cannot be asked, a file that nobody touched for so long has no writer"""
_LETTERS = 100
"""of a file's name, in that of its part"""


def write_whole(pieces: Iterable[str], target: Path) -> None:
    """Text as the new content of a file, which is replaced only once everything is on the disk.
    Raises OSError.

    A device or a pipe cannot be replaced by a renamed file, so it is written to.
    """
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as stream:
            stream.writelines(pieces)
        return
    prefix = f".{target.name[:_LETTERS]}."
    _sweep(target.parent, prefix)
    name = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=prefix, suffix=PART, delete=False
        ) as stream:
            name = stream.name
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(stream, fcntl.LOCK_EX)
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        Path(name).replace(target)
        name = None
    finally:
        if name is not None:
            with contextlib.suppress(OSError):
                Path(name).unlink()


def _sweep(folder: Path, prefix: str) -> None:
    """What a killed writer of the same file left behind."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(PART):
                swept(entry.path)


def swept(path: str) -> bool:
    """Whether it was left behind, and is gone now."""
    try:
        fd = os.open(
            path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        )  # NFS locks only what may be written
    except OSError:
        return False
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            if time.time() - os.fstat(fd).st_mtime < OLD_S:
                return False
        os.unlink(path)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
