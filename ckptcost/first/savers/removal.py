"""Removes the directory of a probe: only what a probe makes, through open directories, no link ever
followed.

This text is also the whole program of the janitor, so it imports nothing of the package and nothing
slow to load.
"""

import errno
import os
import stat

OWNER = "owner"
_GONE = (errno.ENOENT, errno.ESTALE)


def is_save(name: str) -> bool:
    """
    >>> (
    ...     is_save("save-17"),
    ...     is_save("save-17.part"),
    ...     is_save("save-"),
    ...     is_save("save-1.parts"),
    ...     is_save("savior"),
    ... )
    (True, True, False, False, False)
    """
    number = name.removesuffix(".part").removeprefix("save-")
    return name.startswith("save-") and number.isascii() and number.isdigit()


def remove(parent: int, name: str, place: int) -> list[str]:
    """Empty the directory `place`, open, and take it out of the directory `parent`, where it is
    `name`. What stays, and why.

    A probe makes `owner`, and directories `save-N` with plain files in them. Anything else is
    somebody else's, and stays.
    """
    left: list[str] = []
    for entry in _names(place, left):
        if is_save(entry):
            left += remove_save(place, entry)
        elif entry != OWNER:
            left.append(f"{entry}: not made by a probe")
    _unlink(place, OWNER, left)
    try:
        there, here = os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(place)
        if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
            os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in _GONE and not (left and error.errno == errno.ENOTEMPTY):
            left.append(f"{name}: {error.strerror}")
    return left


def remove_save(place: int, name: str) -> list[str]:
    """One `save-N` with its files. What stays, and why."""
    left: list[str] = []
    try:
        directory = os.open(
            name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place
        )
    except OSError as error:
        return [] if error.errno in _GONE else [f"{name}: not made by a probe, or {error.strerror}"]
    try:
        for entry in _names(directory, left):
            _unlink(directory, entry, left)
    finally:
        os.close(directory)
    if left:
        return [f"{name}/{reason}" for reason in left]
    try:
        os.rmdir(name, dir_fd=place)
    except OSError as error:
        return [] if error.errno in _GONE else [f"{name}: {error.strerror}"]
    return []


def _names(directory: int, left: list[str]) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError as error:
        if error.errno not in _GONE:
            left.append(f"cannot be listed: {error.strerror}")
        return []


def _unlink(directory: int, name: str, left: list[str]) -> None:
    """A plain file of ours. Were a link put there this moment, the link would go and never what it
    points at."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            left.append(f"{name}: not made by a probe")
        else:
            os.unlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in _GONE:
            left.append(f"{name}: {error.strerror}")
