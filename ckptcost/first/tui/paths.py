"""What somebody types as a path: a home that nobody has, a name that is too long, a folder that may
not be looked into."""

from __future__ import annotations

import os
from pathlib import Path

from ckptcost.first.errors import InputError, brief


def path_of(text: str, where: str = "") -> Path:
    """Raises InputError for what can be no path.

    >>> path_of("a/b").as_posix()
    'a/b'
    """
    text = text.strip()
    try:
        path = Path(text).expanduser()
        os.lstat(path)
    except FileNotFoundError:
        return path
    except (RuntimeError, ValueError) as error:  # a user that there is not, a zero byte
        raise InputError(f"{brief(text)} is no path ({error})", where=where) from None
    except OSError as error:
        raise InputError(
            f"{brief(text)}: {(error.strerror or str(error)).lower()}", where=where
        ) from None
    return path
