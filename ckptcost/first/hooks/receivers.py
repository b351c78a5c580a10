"""Who takes the marks of this process: a receiver in use, or nobody. What this process has decided
outlives a fork only where the child decides the same.

Nothing here raises into the training job; only an interrupt of the user's passes through.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

_OFF = {"off", "0", "no", "false", "none"}


class Receiver(Protocol):
    """Takes marks from any thread, quickly, and never raises."""

    @property
    def listening(self) -> bool:
        """False: hooks do nothing."""

    def tell(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: object,
    ) -> None: ...

    def forked(self) -> None:
        """In a child: give back what was inherited, and nothing that the parent still needs."""

    def close(self) -> None: ...


class Nobody:
    """Nobody wants to know."""

    listening = False

    def tell(self, name: str, window: str = "", **detail: object) -> None:
        """Nothing to do."""

    def forked(self) -> None:
        """Nothing was inherited."""

    def close(self) -> None:
        """Nothing is open."""


NOBODY = Nobody()


class ProcessState:
    """What this process has decided."""

    __slots__ = (
        "after_fork",
        "again",
        "before_leaving",
        "choosing",
        "left",
        "lock",
        "rank",
        "receiver",
        "registered",
    )

    def __init__(self) -> None:
        self.receiver: Receiver | None = None
        self.rank: int | None = None
        """once it is certain"""
        self.lock = allocate_lock()
        self.choosing = 0
        """the thread that does"""
        self.registered = False
        self.again: Callable[[], Receiver] | None = None
        """how a forked rank begins anew where the environment does not say it"""
        self.left: list[Receiver] = []
        """a parent's; kept, so that nothing of the parent's is closed or flushed by a child's
        garbage collector"""
        self.after_fork: list[Callable[[], None]] = []
        self.before_leaving: list[Callable[[], None]] = []


state = ProcessState()


def is_off() -> bool:
    """The user wants no hooks at all."""
    return os.environ.get("CKPTCOST", "").strip().lower() in _OFF


def use(receiver: Receiver, again: Callable[[], Receiver] | None = None) -> None:
    """From now on marks go there."""
    state.receiver, state.again = receiver, again
    register()


def register() -> None:
    if not state.registered and state.receiver is not NOBODY:
        state.registered = True
        atexit.register(leave)


def complain(text: str) -> None:
    """One line for the user, where there is somewhere to write it."""
    with suppress(Exception):  # no stderr, or a closed one
        sys.stderr.write(f"ckptcost: {text}\n")


def leave() -> None:
    """At the end of the process: what is left over is sent, and everything is closed."""
    receiver = state.receiver
    for last in state.before_leaving:
        with suppress(Exception):
            last()
    if receiver is not None:
        state.receiver = NOBODY
        with suppress(Exception):
            receiver.close()


def forget() -> None:
    """As if no hook had been used yet."""
    leave()
    state.receiver = state.rank = state.again = None


def _after_fork() -> None:
    """In a forked child. Another thread of the parent may have held the lock, so it is replaced."""
    state.lock = allocate_lock()
    state.choosing = 0
    state.rank = None
    if state.receiver is not None and state.receiver.listening:
        state.left.append(state.receiver)
        with suppress(Exception):
            state.receiver.forked()
        state.receiver = None
    for clear in state.after_fork:
        with suppress(Exception):
            clear()


os.register_at_fork(after_in_child=_after_fork)
