"""Whose is a probe's directory: a lock on a file in it tells whether its probe lives; a dead one's
files go when the next probe comes.

The lock is the kernel's (`flock`), so it goes with its holder. It says nothing about other nodes:
some shared file systems lock only within a node. So the file also names host and boot, and what
another node's probe made is left alone and named.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from pathlib import Path

from ckptcost.first.savers.removal import OWNER, remove

PREFIX = ".ckptcost-probe-"
_NAME = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_YOUNG_S = 60.0
"""a directory without the file is just being made, unless it is older"""


def _boot(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def take(place: int) -> int | None:
    """Make the file and lock it; the open file. None where another probe, which swept, was quicker:
    begin anew."""
    fd = os.open(
        OWNER,
        os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o600,
        dir_fd=place,
    )
    try:
        if _lock(fd) is False or not os.fstat(fd).st_nlink:
            os.close(fd)
            return None
        os.write(fd, f"{os.uname().nodename}\n{_boot()}\n{os.getpid()}\n".encode())
    except BaseException:
        os.close(fd)
        raise
    return fd


def _lock(fd: int) -> bool | None:
    """Whether we have it; None where this file system has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            return None
        raise
    return True


def sweep(parent: int) -> list[str]:
    """Remove what dead probes left in the directory `parent`. What was removed, and what was left
    and why, in sentences."""
    said = []
    for name in sorted(os.listdir(parent)):
        if not _NAME.fullmatch(name):
            continue
        try:
            place = os.open(name, _DIRECTORY, dir_fd=parent)
        except OSError:
            continue  # somebody else's, or gone
        try:
            said += _judge(parent, name, place)
        except OSError as error:
            said.append(f"{name}, left by an earlier probe: {error.strerror}. Remove it by hand")
        finally:
            os.close(place)
    return said


def _judge(parent: int, name: str, place: int) -> list[str]:
    if os.fstat(place).st_uid != os.geteuid():
        return []
    try:
        fd = os.open(OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    except FileNotFoundError:
        return (
            _gone(name, remove(parent, name, place))
            if _now_s(parent) - os.fstat(place).st_mtime > _YOUNG_S
            else []
        )
    try:
        host, boot, *_ = [*os.pread(fd, 512, 0).decode(errors="replace").split("\n"), "", ""]
        mine = _lock(fd)
        if mine is False:
            return []
        if mine is None or (host and host != os.uname().nodename and boot != _boot()):
            where = f"of {host}" if host else "of an unknown host"
            return [
                f"{name} is of a probe {where}, of which it cannot be told here whether it still"
                " runs. If not, remove it by hand"
            ]
        return _gone(name, remove(parent, name, place))
    finally:
        os.close(fd)


def _now_s(parent: int) -> float:
    """By the clock that stamps files there, which may be a server's."""
    name = f"{PREFIX}clock-{os.urandom(8).hex()}"
    os.mkdir(name, 0o700, dir_fd=parent)
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mtime
    finally:
        os.rmdir(name, dir_fd=parent)


def _gone(name: str, left: list[str]) -> list[str]:
    if left:
        return [
            f"{name}, left by an earlier probe, could not be removed whole: {'; '.join(left[:5])}"
        ]
    return [f"removed {name}, left by an earlier probe that was killed"]
