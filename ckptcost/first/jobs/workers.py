"""Pieces of work on several processes, in order, that end with their parent however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NamedTuple

from ckptcost.first.errors import CkptcostError
from ckptcost.first.interpreter import python

here: list[Connection] = []
"""in a process that works: the pipe to whoever gave the work"""


class WorkProgress(NamedTuple):
    """How far a piece of work is."""

    said: tuple[Any, ...]


def in_order(
    task: Callable[..., Any], pieces: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[Any]:
    """`task(*piece)` for each, in the order given; whoever stops listening stops the work.

    A process that ends before its time is not started again: what killed it once would do so for
    ever.
    """
    waiting = deque(enumerate(pieces))
    crew: list[Worker] = []
    values: dict[int, Any] = {}
    try:
        # fresh processes: a fork would copy the locks of whoever calls
        crew += (Worker() for _ in range(min(workers, len(pieces))))
        for each in crew:
            each.give(task, *waiting.popleft())
        for index in range(len(pieces)):
            while index not in values:
                at_work = {each.pipe: each for each in crew if each.index is not None}
                for pipe in wait(list(at_work)):
                    each = at_work[pipe]  # type: ignore[index]
                    values.update([each.take()])
                    if waiting:
                        each.give(task, *waiting.popleft())
            yield values.pop(index)
    finally:
        for each in crew:
            each.end()


class Worker:
    """One process, and the piece that it works on."""

    def __init__(self) -> None:
        self.index: int | None = None
        self.pipe, theirs = Pipe()
        with theirs:
            # its standard input ends when we do, by kill -9 too
            self._process = subprocess.Popen(
                python(f"from {__name__} import serve; serve({theirs.fileno()})"),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def give(self, task: Callable[..., Any], index: int, piece: tuple[Any, ...]) -> None:
        self.index = index
        try:
            self.pipe.send((task, piece))
        except OSError:
            raise self._lost() from None

    def take(self) -> tuple[int, Any]:
        index, self.index = self.index, None
        assert index is not None
        return index, self.receive()

    def receive(self) -> Any:
        """What the process has to say: Told, or the value; its error is raised."""
        try:
            value, error = self.pipe.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if error is not None:
            raise error
        return value

    def _lost(self) -> CkptcostError:
        code = self._process.wait()
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return CkptcostError(
            f"a worker process has ended before its work was done ({how}): too little memory, "
            "or Python cannot start here. With one worker the work is done in this process"
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()  # it holds nothing but memory
        self._process.wait()
        self.pipe.close()
        if self._process.stdin is not None:
            self._process.stdin.close()


def tell(*said: Any) -> None:
    """In the process, before the answer: whoever gave the work finds it in the pipe."""
    here[0].send((WorkProgress(said), None))


def serve(fileno: int) -> None:
    """The process: pieces of work, one after another, until nobody has any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with Connection(fileno) as pipe:
        here.append(pipe)
        while True:
            try:
                task, piece = pipe.recv()
            except EOFError:
                return
            answer: tuple[Any, Exception | None]
            try:
                answer = task(*piece), None
            except Exception as error:
                answer = None, error
            pipe.send(answer)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
