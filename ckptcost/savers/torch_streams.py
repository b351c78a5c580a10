"""The files that writer threads of distributed checkpointing have open: when each was complete, what went wrong, and that none is left.

A thread of DCP's that fails ends with a traceback, and the save succeeds without its tensors; one that still writes when Ctrl-C has ended
the save would write through a path that means nothing any more. So every file is opened through here.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic_ns
from typing import Any

from ckptcost.savers.torch_refusals import interrupted


class Streams:
    """Of one save."""

    def __init__(self) -> None:
        self.ended: dict[str, int] = {}
        """by name: when it was closed"""
        self.problems: list[Exception] = []
        self._idle = threading.Condition()
        self._open = 0
        self.closed = False

    @contextmanager
    def one(self, name: str, file: AbstractContextManager[Any]) -> Iterator[Any]:
        """An error while it is written is kept for who drives the save, and does not go on into the thread; Ctrl-C does, however it is
        wrapped."""
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

    def close(self) -> None:
        """No file is opened from now on, those that are open take no more, and then none is. Ctrl-C waits until then."""
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
    """A file that is written to as long as the save goes on."""

    def __init__(self, stream: Any, streams: Streams) -> None:
        self._stream, self._streams = stream, streams

    def write(self, data: Any) -> int:
        if self._streams.closed:
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
        count: int = self._stream.write(data)
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
