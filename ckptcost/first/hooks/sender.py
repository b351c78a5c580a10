"""Where the marks of this process go: to a wrapper that listens, into a recording of its own, or
nowhere.

Decided at the first use, and anew in a forked child that uses a hook itself: a rank that was forked
has its own connection, a data loader's worker has none. Nothing here raises into the training job;
only an interrupt of the user's passes through.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from contextlib import suppress
from typing import Any

from ckptcost.first.hooks.receivers import NOBODY, Receiver, complain, is_off, register, state

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
_CHOOSING_S = 10.0
"""another thread may be opening meters; a mark that waits longer is lost"""


def receiver() -> Receiver:
    """Where marks go; decided now if it was not."""
    return state.receiver or _choose()


def _choose() -> Receiver:
    if state.choosing == get_ident() or not state.lock.acquire(timeout=_CHOOSING_S):
        # a signal handler of this very thread, which must not wait for itself
        return NOBODY
    try:
        state.choosing = get_ident()
        if state.receiver is None:
            state.receiver = _find_receiver()
            register()
        return state.receiver
    finally:
        state.choosing = 0
        state.lock.release()


def _find_receiver() -> Receiver:
    try:
        if is_off():
            return NOBODY
        if state.again is not None:
            return state.again()
        if path := os.environ.get("CKPTCOST_SOCKET", ""):
            from ckptcost.first.hooks.wire import WireClient

            return WireClient(path)
        if directory := os.environ.get("CKPTCOST_RECORD", ""):
            from ckptcost.first.hooks.own_recording import Recording

            return Recording(directory)
    except Exception as error:
        complain(f"no marks are sent: {type(error).__name__}: {error}")
    return NOBODY


def tell(name: str, window: str, t_ns: int | None = None, **detail: Any) -> None:
    """A mark of this rank's, now or at `t_ns`."""
    with suppress(Exception):  # nothing that a mark does may stop training
        receiver().tell(
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
        return _rank_of_launcher(os.environ)  # half imported, or being taken down
    return _rank_of_launcher(os.environ)


def _rank_of_launcher(environ: Any) -> int:
    for name in (*_RANKS, *_LOCAL_RANKS):
        if (text := environ.get(name, "")).isdecimal() and text.isascii() and len(text) < 10:
            return int(text)
    return 0
