"""Where the marks of this process go: to a wrapper that listens, into a recording of its own, or
nowhere.

Decided at the first use, and anew in a forked child that uses a hook itself: a rank that was forked
has its own connection, a data loader's worker has none. Nothing here raises into the training job;
only an interrupt of the user's passes through.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_LOCAL_RANKS = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "SLURM_LOCALID",
)
# ^ as in runs.election, which loads numpy: too much for a process that only sends lines; a test
# holds the two together
_OFF = {"off", "0", "no", "false", "none"}
_CHOOSING_S = 10.0
"""another thread may be opening meters; a mark that waits longer is lost"""


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


class State:
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


state = State()


def chosen() -> Receiver:
    """Where marks go; decided now if it was not."""
    return state.receiver or _choose()


def _choose() -> Receiver:
    if state.choosing == get_ident() or not state.lock.acquire(timeout=_CHOOSING_S):
        return NOBODY  # a signal handler of this very thread, which must not wait for itself
    try:
        state.choosing = get_ident()
        if state.receiver is None:
            state.receiver = _found()
            _register()
        return state.receiver
    finally:
        state.choosing = 0
        state.lock.release()


def is_off() -> bool:
    """The user wants no hooks at all."""
    return os.environ.get("CKPTCOST", "").strip().lower() in _OFF


def _found() -> Receiver:
    try:
        if is_off():
            return NOBODY
        if state.again is not None:
            return state.again()
        if path := os.environ.get("CKPTCOST_SOCKET", ""):
            from ckptcost.hooks.wire import Client

            return Client(path)
        if directory := os.environ.get("CKPTCOST_RECORD", ""):
            from ckptcost.hooks.own_recording import Recording

            return Recording(directory)
    except Exception as error:
        complain(f"no marks are sent: {type(error).__name__}: {error}")
    return NOBODY


def use(receiver: Receiver, again: Callable[[], Receiver] | None = None) -> None:
    """From now on marks go there."""
    state.receiver, state.again = receiver, again
    _register()


def _register() -> None:
    if not state.registered and state.receiver is not NOBODY:
        state.registered = True
        atexit.register(leave)


def tell(name: str, window: str, t_ns: int | None = None, **detail: Any) -> None:
    """A mark of this rank's, now or at `t_ns`."""
    with suppress(Exception):  # nothing that a mark does may stop training
        chosen().tell(
            name, window, rank=rank(), t_ns=time.monotonic_ns() if t_ns is None else t_ns, **detail
        )


def rank() -> int:
    """This process's rank in the job: as torch.distributed says where it is set up, else as the
    launcher says, else 0.

    Torch first: eight processes forked from one task of a batch system inherit that task's number.
    Torch is never imported for it.
    """
    if state.rank is not None:
        return state.rank
    try:
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            state.rank = int(distributed.get_rank())
            return state.rank
    except Exception:
        return _launched(os.environ)  # half imported, or being taken down
    return _launched(os.environ)


def _launched(environ: Any) -> int:
    for name in (*_RANKS, *_LOCAL_RANKS):
        if (text := environ.get(name, "")).isdecimal() and text.isascii() and len(text) < 10:
            return int(text)
    return 0


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


def _forked() -> None:
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


os.register_at_fork(after_in_child=_forked)
