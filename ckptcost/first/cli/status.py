"""One line on a terminal that shows what goes on; nothing at all where stderr is no terminal."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ckptcost.first.jobs.observe import Observer
    from ckptcost.first.jobs.progress import KnownSave

EVERY_S = 0.5
PATIENCE_S = 1.0
"""what takes less is over before anybody asks how far it is"""


class StatusLine:
    """The line is rewritten in place; finished checkpoints stay above it."""

    def __init__(self, stream: TextIO | None, quiet: bool = False) -> None:
        self._stream = stream if stream is not None and stream.isatty() and not quiet else None
        self._since_s = self._said_s = time.monotonic()
        self._shown = False

    def save(self, one: KnownSave) -> None:
        from ckptcost.first.present.saves import save_text

        self.line(save_text(one))

    def line(self, text: str) -> None:
        """A whole line that stays."""
        if self._stream is not None:
            self.clear()
            self._stream.write(f"ckptcost: {text}\n")
            self._stream.flush()

    def tick(self, observer: Observer) -> None:
        from ckptcost.first.present.saves import status_text

        now_s = time.monotonic()
        if self._stream is None or now_s - self._said_s < EVERY_S:
            return
        latest = observer.recorder.latest()
        self.show(
            status_text(
                now_s - self._since_s,
                observer.progress.saves,
                observer.progress.bytes,
                observer.progress.open,
                latest.lost,
            )
        )

    def share(self, what: str, done: float) -> None:
        """How far something is that takes a while; a fraction."""
        now_s = time.monotonic()
        if now_s - self._since_s >= PATIENCE_S and now_s - self._said_s >= EVERY_S:
            self.show(f"ckptcost: {what}, {done:.0%}")

    def show(self, text: str) -> None:
        if self._stream is None:
            return
        self._said_s, self._shown = time.monotonic(), True
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[K{text[:width]}")
        self._stream.flush()

    def clear(self) -> None:
        if self._stream is not None and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


def is_watched() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def bar_of(what: str) -> Iterator[Callable[[float, float], None] | None]:
    """Hears how many are done of how many, and draws a bar; None where nobody sees it."""
    if not is_watched():
        yield None
        return
    last = [-1]

    def tell(done: float, of: float) -> None:
        percent = int(100 * done / max(of, 1))
        if percent != last[0]:
            last[0] = percent
            bar = "#" * (percent * 40 // 100)
            print(f"\r{what} [{bar:<40}] {percent:3d} %", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
