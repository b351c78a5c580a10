"""The files that writer threads of distributed checkpointing have open: when each was complete,
what went wrong, and that none is left.

A thread of DCP's that fails ends with a traceback, and the save succeeds without its tensors; one
that still writes when Ctrl-C has ended the save would write through a path that means nothing any
more. So every file is opened through here.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic_ns
from typing import Any

from ckptcost.savers.control import Control
from ckptcost.savers.torch_refusals import interrupted


class Streams:
    """Of one save or load."""

    def __init__(self, control: Control | None = None) -> None:
        self.control = control
        self.ended: dict[str, int] = {}
        """by name: when it was closed"""
        self.problems: list[Exception] = []
        self._idle = threading.Condition()
        self._open = 0
        self.closed = False

    @contextmanager
    def one(self, name: str, file: AbstractContextManager[Any]) -> Iterator[Any]:
        """An error while it is written is kept for who drives the save, and does not go on into the
        thread; Ctrl-C does, however it is wrapped."""
        with self._idle:
            if self.closed:
                raise SystemExit  # which ends a thread without a word
            self._open += 1
        given = False
        try:
            with file as stream:
                given = True
                yield _Stoppable(stream, self)
            self.ended[name] = monotonic_ns()
        except Exception as error:
            self.problems.append(error)
            if not given or interrupted(error):
                raise
        finally:
            with self._idle:
                self._open -= 1
                self._idle.notify_all()

    @contextmanager
    def reading(self, file: AbstractContextManager[Any]) -> Iterator[Any]:
        """One that is read, in the thread that asked for it."""
        with file as stream:
            yield _Stoppable(stream, self)

    def close(self) -> None:
        """No file is opened from now on, those that are open take no more, and then none is. Ctrl-C
        waits until then."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                with self._idle:
                    self.closed = True
                    if self._idle.wait_for(lambda: not self._open, 1.0):
                        break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Stoppable:
    """A file that is written to or read as long as the save or load goes on."""

    def __init__(self, stream: Any, streams: Streams) -> None:
        self._stream, self._streams = stream, streams

    def write(self, data: Any) -> int:
        self._goes_on()
        count: int = self._stream.write(data)
        self._moved(count)
        return count

    def readinto(self, buffer: Any) -> int:
        self._goes_on()
        count: int = self._stream.readinto(buffer)
        self._moved(count)
        return count

    def read(self, size: int = -1) -> bytes:
        self._goes_on()
        data: bytes = self._stream.read(size)
        self._moved(len(data))
        return data

    def _goes_on(self) -> None:
        control = self._streams.control
        if self._streams.closed or (control is not None and control.stopped):
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))

    def _moved(self, count: int) -> None:
        if self._streams.control is not None:
            self._streams.control.moved(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
