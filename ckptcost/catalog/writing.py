"""Writing one file so that it appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_whole(pieces: Iterable[str], target: Path) -> None:
    """Text as the new content of a file, which is replaced only once everything is on the disk.
    Raises OSError.

    A device or a pipe cannot be replaced by a renamed file, so it is written to.
    """
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as stream:
            stream.writelines(pieces)
        return
    name = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=".", suffix=".part", delete=False
        ) as stream:
            name = stream.name
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


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
