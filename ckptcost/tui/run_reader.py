"""Work on a run's readings that takes long, in a process of its own: the screen stays quick, and
the work can be ended at any time.

Minutes of arithmetic in a thread would make every keystroke wait its turn, could not be given up,
and would hold the program when it quits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

from ckptcost.errors import CkptcostError, MeterUnavailable
from ckptcost.interpreter import python

T = TypeVar("T")
Tell = Callable[[str, float], None]
"""hears what is done, and what share of it"""
TOLD = "told"
SMALL = 1_500_000
"""a source's weight; what is lighter is worked on here: a process takes longer to start"""
LOOK_S = 0.05
"""how often is looked for an answer, and whether it is still wanted"""
ALONE_S = 1.0
"""how often the process looks whether somebody still waits for it"""
GENTLE = 5
"""niceness: a job that is measured meanwhile goes first"""


class GivenUp(CkptcostError):
    """Nobody wants the answer any more."""


class Apart:
    """One process, started when it is first needed; one question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

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
        if weight <= SMALL:
            if tell is None:
                return task(*words)

            def tell_or_stop(what: str, share: float) -> None:
                if stopped():
                    raise GivenUp("given up")
                tell(what, share)

            return task(*words, tell=tell_or_stop)
        while not self._lock.acquire(timeout=LOOK_S):
            if stopped():
                raise GivenUp("given up")
        try:
            return self._asked(task, words, stopped, tell)
        finally:
            self._lock.release()

    def _asked(
        self,
        task: Callable[..., T],
        words: Sequence[Any],
        stopped: Callable[[], bool],
        tell: Tell | None,
    ) -> T:
        pipe = self._started()
        what = TOLD
        value: Any = None
        try:
            pipe.send((task, tuple(words), tell is not None))
            while what == TOLD:
                while not (stops := stopped()) and not pipe.poll(LOOK_S):
                    pass
                if stops:
                    self._end()
                    raise GivenUp("given up")
                what, value = pipe.recv()
                if what == TOLD and tell is not None:
                    tell(*value)
        except (EOFError, OSError):
            self._end()
            raise CkptcostError(
                "the process that reads runs has ended: too little memory, or somebody ended it"
            ) from None
        if what == "value":
            found: T = value
            return found
        if what == "defect":
            raise RuntimeError(value)
        raise MeterUnavailable(value) if what == "unavailable" else CkptcostError(value)

    def _started(self) -> Connection:
        if self._process is not None and self._pipe is not None and self._process.poll() is None:
            return self._pipe
        self._end()
        ours, theirs = Pipe()
        with theirs:
            # not multiprocessing's spawn, which would run the program's main module once more
            code = f"from {__name__} import serve; serve({theirs.fileno()}, {os.getpid()})"
            none = subprocess.DEVNULL
            self._process = subprocess.Popen(
                python(code),
                pass_fds=[theirs.fileno()],
                stdin=none,
                stdout=none,
                stderr=none,
            )
        self._pipe = ours
        return self._pipe

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()  # it holds nothing but memory
            self._process.wait()
        self._process = self._pipe = None

    def close(self) -> None:
        """End the process where no question is under way; a question that is ends it by itself when
        it is stopped."""
        if self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()


READER = Apart()
"""the one that all screens share"""


def serve(fileno: int, parent: int) -> None:
    """The process: answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the screen's to hear
    os.nice(GENTLE)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    pipe = Connection(fileno)
    while True:
        try:
            task, words, wants_to_hear = pipe.recv()
        except (EOFError, OSError):
            return
        answer: tuple[str, Any]
        try:
            more = {"tell": lambda *said: pipe.send((TOLD, said))} if wants_to_hear else {}
            answer = ("value", task(*words, **more))
        except MeterUnavailable as error:
            answer = ("unavailable", str(error))
        except (CkptcostError, OSError) as error:
            answer = ("known", str(error))
        except BaseException:
            answer = ("defect", traceback.format_exc())
        try:
            pipe.send(answer)
        except OSError:
            return


def _end_with(parent: int) -> None:
    """Whoever waited is gone, even by kill -9: so is this."""
    while os.getppid() == parent:
        time.sleep(ALONE_S)
    os._exit(1)
