"""Where results go: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from ckptcost.first.catalog.writing import write_whole
from ckptcost.first.errors import CkptcostError, InputError, OutputError, brief


def write(pieces: Iterable[str], path: str | None) -> None:
    """Write text to `path`, or to stdout for None and "-". A file is replaced only once everything
    is on the disk."""
    if path in (None, "-"):
        if sys.stdout is None:
            raise OutputError("there is no stdout to write to; give -o FILE")
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
        return
    if not path:
        raise OutputError("-o names no file")
    if (stream := _already_open(str(path))) is not None:
        stream.writelines(pieces)
        stream.flush()
        return
    try:
        write_whole(pieces, Path(os.path.realpath(str(path))))  # the link's target, not the link
    except CkptcostError:
        raise
    except (OSError, ValueError) as error:
        raise _not_written(error, str(path)) from None


def _not_written(error: OSError | ValueError, path: str) -> CkptcostError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    if getattr(error, "errno", None) == errno.ENAMETOOLONG:
        return InputError(str(reason), where=f"-o {brief(path)}")
    return OutputError(f"{brief(path, 200)}: could not be written ({reason})")


def _already_open(path: str) -> TextIO | None:
    """Our own stdout or stderr under another name, as `-o /dev/stdout > log`: replacing the file
    would take away what is in it."""
    with contextlib.suppress(OSError, ValueError):
        there = os.stat(path)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and os.path.samestat(there, os.fstat(stream.fileno())):
                return stream
    return None
