"""What a storage refused a library, found in what the library raises: PyTorch and safetensors keep
errno to themselves."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterator

from ckptcost.errors import OutputError
from ckptcost.savers.place import Save

_TRIAL_BYTES = 1 << 20


def refusal(
    error: BaseException, save: Save, doing: str, size_bytes: int | None = None
) -> OSError | OutputError | KeyboardInterrupt:
    """The error of the system behind it; where none is found and a write of so many bytes failed, a
    trial write, which ends a file of that size, asks the storage again; else the library's own
    words. Ctrl-C stays Ctrl-C, which the libraries wrap as an error of their own.
    """
    if interrupted(error):
        return KeyboardInterrupt()
    for behind in _chain(error):
        if isinstance(behind, OSError):
            number = behind.errno or (
                errno.ENOENT if isinstance(behind, FileNotFoundError) else errno.EIO
            )
            return OSError(number, os.strerror(number))
        said = re.search(r"\(os error (\d+)\)", str(behind))
        if said:
            return OSError(int(said[1]), os.strerror(int(said[1])))
    if size_bytes is not None:
        try:
            _try_to_write(save, size_bytes)
        except OSError as found:
            return OSError(found.errno, os.strerror(found.errno or 0))
    said_by = next((behind for behind in _chain(error) if not hasattr(behind, "failures")), error)
    words = str(said_by).strip().splitlines() or [type(said_by).__name__]
    return OutputError(f"{save.shown}: {doing} failed: {words[0]}")


def _try_to_write(save: Save, size_bytes: int) -> None:
    fd = save.create(f".trial-{threading.get_ident()}", os.O_WRONLY)
    try:
        at, left = max(size_bytes - _TRIAL_BYTES, 0), _TRIAL_BYTES
        while left:
            count = os.pwrite(fd, b"\1" * left, at)
            at, left = at + count, left - count
        os.fsync(fd)
    finally:
        os.close(fd)


def interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind it."""
    return any(isinstance(behind, KeyboardInterrupt) for behind in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """It, what it wraps (`failures` of a CheckpointException: by rank, with the stack), and what it
    came from."""
    waiting, seen = [error], set()
    while waiting:
        this = waiting.pop(0)
        if id(this) in seen:
            continue
        seen.add(id(this))
        yield this
        failures = getattr(this, "failures", None)
        inside = (
            [each[0] if isinstance(each, tuple) else each for each in failures.values()]
            if isinstance(failures, dict)
            else []
        )
        waiting += [
            found
            for found in (*inside, this.__cause__, this.__context__)
            if isinstance(found, BaseException)
        ]
