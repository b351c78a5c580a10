"""What somebody without rights sees, in a process of its own: four tests ask the same way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_DAC_OVERRIDE, _SETUID = 1, 7


def may_write_everywhere():
    """Whether permissions of files hold back nobody here: of root, unless it gave that right up."""
    return _holds(_DAC_OVERRIDE)


def may_become_others():
    return _holds(_SETUID)


def _holds(capability):
    status = Path("/proc/self/status").read_text()
    held = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
    return bool(int(held, 16) >> capability & 1)


def as_nobody(work):
    """The text of what `work` says, or of what it raises, when a user without rights calls it."""
    if not may_become_others():
        pytest.skip("only root can become somebody else")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(write, repr(work()).encode())
        except BaseException as error:
            os.write(write, repr(error).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        text = file.read().decode()
    os.waitpid(child, 0)
    return text
