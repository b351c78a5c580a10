"""Where results go: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ckptcost.errors import OutputError


def write(pieces: Iterable[str], path: str | None) -> None:
    """Write text to `path`, or to stdout for None and "-". A file is replaced only once everything is on the disk."""
    if path in (None, "-"):
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
        return
    target = Path(str(path))
    if target.exists() and not target.is_file():
        # a device or a pipe cannot be replaced by a renamed file
        try:
            with target.open("w", encoding="utf-8") as stream:
                stream.writelines(pieces)
        except OSError as error:
            raise OutputError(f"{path}: could not be written ({error.strerror or error})") from None
        return
    name = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", suffix=".part", delete=False
        ) as stream:
            name = stream.name
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
        name = None
    except OSError as error:
        raise OutputError(f"{path}: could not be written ({error.strerror or error})") from None
    finally:
        if name is not None:
            with contextlib.suppress(OSError):
                Path(name).unlink()


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
