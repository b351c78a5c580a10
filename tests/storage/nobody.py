"""What somebody without rights sees, in a process of its own: four tests ask the same way."""

from __future__ import annotations

import os

import pytest


def as_nobody(work):
    """The text of what `work` says, or of what it raises, when a user without rights calls it."""
    if os.getuid():
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
