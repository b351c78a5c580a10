"""Writing one folder so that it appears whole or not at all, over an older one of the same kind or
where none was."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ckptcost.first.errors import OutputError

_ENDING = ".part"
_OLD = ".old" + _ENDING


@contextlib.contextmanager
def whole_folder(target: Path, over: bool) -> Iterator[Path]:
    """A folder to write into, which becomes `target` at the end, synced; `over`: in place of an
    older one.

    Raises OSError, or OutputError where somebody was quicker.

    A kill leaves a hidden folder beside it, which the next call takes away: a lock that dies with
    its holder says that nobody works in it.
    """
    _sweep(target)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_ENDING, dir=target.parent))
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: what a kill leaves stays
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield made
        for file in made.iterdir():
            _sync(file)
        made.chmod(0o777 & ~_umask())
        os.fsync(lock)
        _replace(made, target, over)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def _replace(made: Path, target: Path, over: bool) -> None:
    """Between the two renames there is neither; nothing can swap folders at once everywhere. A kill
    there leaves the older one, and the next call puts it back."""
    old = made.with_suffix(_OLD)
    held: int | None = None
    if over and target.exists():
        held = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # while it is locked nobody takes it for left behind
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        target.rename(old)
    try:
        made.rename(target)
    except OSError as error:
        if held is not None:
            with contextlib.suppress(OSError):
                old.rename(target)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise OutputError(f"{target} was written by somebody else in the meantime") from None
    finally:
        if held is not None:
            if target.exists():
                shutil.rmtree(old, ignore_errors=True)
            os.close(held)
    _sync(target.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sweep(target: Path) -> None:
    """What killed writers of the same folder left: half-written ones go, and an older one that has
    no successor comes back."""
    for left in target.parent.iterdir():
        if not (
            left.name.startswith(f".{target.name}.")
            and left.name.endswith(_ENDING)
            and left.is_dir()
        ):
            continue
        with contextlib.suppress(OSError):
            fd = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if left.name.endswith(_OLD) and not target.exists():
                    left.rename(target)
                else:
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(fd)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
