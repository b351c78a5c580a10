"""Where results go: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ckptcost.errors import OutputError, brief


def write(pieces: Iterable[str], path: str | None) -> None:
    """Write text to `path`, or to stdout for None and "-". A file is replaced only once everything is on the disk."""
    if path in (None, "-"):
        if sys.stdout is None:
            raise OutputError("there is no stdout to write to; give -o FILE")
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
        return
    if not path:
        raise OutputError("-o names no file")
    try:
        _replace(pieces, Path(os.path.realpath(str(path))))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise OutputError(f"{brief(path, 200)}: could not be written ({reason})") from None


def _replace(pieces: Iterable[str], target: Path) -> None:
    """The link's target, not the link; a device or a pipe cannot be replaced by a renamed file, so it is written to."""
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as stream:
            stream.writelines(pieces)
        return
    name = None
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, prefix=".", suffix=".part", delete=False) as stream:
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
