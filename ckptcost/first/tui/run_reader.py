"""Work on a run's readings that takes long, in a process of its own: the screen stays quick, and
the work can be ended at any time.

Minutes of arithmetic in a thread would make every keystroke wait its turn, could not be given up,
and would hold the program when it quits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ckptcost.first.errors import CkptcostError
from ckptcost.first.jobs import workers
from ckptcost.first.jobs.workers import Worker, WorkProgress

T = TypeVar("T")
Tell = Callable[[str, float], None]
"""hears what is done, and what share of it"""
SMALL = 1_500_000
"""a source's weight; what is lighter is worked on here: a process takes longer to start"""
LOOK_S = 0.05
"""how often is looked for an answer, and whether it is still wanted"""
GENTLE = 5
"""niceness: a job that is measured meanwhile goes first"""


class GivenUp(CkptcostError):
    """Nobody wants the answer any more."""


class Apart:
    """One process, started when it is first needed; one question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def ask(
        self,
        task: Callable[..., T],
        *words: Any,
        weight: int,
        stopped: Callable[[], bool] = lambda: False,
        tell: Tell | None = None,
    ) -> T:
        """`task(*words)`, a function of a module; where somebody is to be told how far it is, the
        task gets a `tell` of its own. Raises GivenUp where `stopped` says so, and what the task
        raised."""

        def tell_or_stop(what: str, share: float) -> None:
            _go_on(stopped)
            if tell is not None:
                tell(what, share)

        if weight <= SMALL:
            return task(*words) if tell is None else task(*words, tell=tell_or_stop)
        _wait(partial(self._lock.acquire, True), stopped)
        try:
            worker = self._started()
            worker.give(answer, 0, (task, words, tell is not None))
            while True:
                _wait(worker.pipe.poll, stopped)
                value = worker.receive()
                if not isinstance(value, WorkProgress):
                    found: T = value
                    return found
                tell_or_stop(*value.said)
        except GivenUp:
            self._end()
            raise
        finally:
            self._lock.release()

    def _started(self) -> Worker:
        if self._worker is None or not self._worker.alive:
            self._end()
            self._worker = Worker()
        return self._worker

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
        self._worker = None

    def close(self) -> None:
        """End the process where no question is under way; a question that is ends it by itself when
        it is stopped."""
        if self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()


def _go_on(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise GivenUp("given up")


def _wait(ready: Callable[[float], bool], stopped: Callable[[], bool]) -> None:
    """Until it is, asked for some time; raises GivenUp where nobody waits any more."""
    while not ready(LOOK_S):
        _go_on(stopped)


READER = Apart()
"""the one that all screens share"""


def answer(task: Callable[..., T], words: Sequence[Any], tells: bool) -> T:
    """In the process."""
    os.setpriority(os.PRIO_PROCESS, 0, GENTLE)
    return task(*words, tell=workers.tell) if tells else task(*words)
