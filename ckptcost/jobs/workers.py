"""Pieces of work on several processes, in order, that end with their parent however it ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def in_order(
    task: Callable[..., Any], pieces: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[Any]:
    """`task(*piece)` for each, in the order given; whoever stops listening stops the work."""
    from multiprocessing import get_context

    # fresh processes: a fork would copy the locks of whoever calls; leaving the block, for whatever reason, ends them
    with get_context("spawn").Pool(min(workers, len(pieces)), initializer=_prepare) as pool:
        yield from pool.imap(_Task(task), pieces)


class _Task:
    """A function of several arguments as one of a tuple."""

    def __init__(self, task: Callable[..., Any]) -> None:
        self.task = task

    def __call__(self, piece: tuple[Any, ...]) -> Any:
        return self.task(*piece)


def _prepare() -> None:
    """Ctrl-C is the parent's to hear; and a worker whose parent is gone, even by kill -9, goes too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
