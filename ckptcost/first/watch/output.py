"""What a command prints: finds the lines that say where its checkpoints begin and end, and passes
every byte on as it came.

A `Relay` stands between a command and our standard output. Where that is a terminal the command
gets a pseudo-terminal of the same size, so that it colours, overwrites and flushes as it would
without us; else a pipe. Its end does not touch the bytes (no newline becomes two), and nothing is
kept back. What differs: the command's standard error, which goes past us, may come a moment
earlier; a program that sets up its keyboard through standard output (curses) sets up the
pseudo-terminal instead; a command that goes on in the background after its end loses its output.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import termios
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ckptcost.first.errors import InputError

_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_CONTROLS: Final = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]"
)
"""colours and cursor movements (ECMA-48), and titles"""
MOST_LINE_BYTES: Final = 1 << 16
_CHUNK: Final = 1 << 16
_MOST_LEFT: Final = 1 << 20
"""a pipe holds no more, unless root made it larger"""


class OutputToken(NamedTuple):
    """A line that says something."""

    name: str
    """of a mark"""
    window: str


class Tokens:
    """Lines that stand for marks: each pattern is searched in each line, colours left out. The
    label of the window is the group `window`, else the first group, else nothing."""

    def __init__(self, patterns: Sequence[tuple[str, str]]) -> None:
        self._patterns = [(name, _compile(name, pattern)) for name, pattern in patterns]
        self._rest = b""
        self._cut = False

    def feed(self, data: bytes) -> list[OutputToken]:
        """The tokens in all lines that are complete with these bytes; `\\r` ends a line too."""
        found: list[OutputToken] = []
        parts = _ENDS.split(self._rest + data)
        self._rest = parts.pop()
        for line in parts:
            if line and not self._cut:
                found += self._tokens(line)
            self._cut = False
        if (
            len(self._rest) > MOST_LINE_BYTES
        ):  # binary output: a line without an end is looked at once and then passed over
            found += [] if self._cut else self._tokens(self._rest)
            self._rest, self._cut = b"", True
        return found

    def finish(self) -> list[OutputToken]:
        """There will be no more: what is left is a line too."""
        rest, self._rest = self._rest, b""
        return self._tokens(rest) if rest and not self._cut else []

    def _tokens(self, line: bytes) -> list[OutputToken]:
        text = _CONTROLS.sub(b"", line[:MOST_LINE_BYTES]).decode("utf-8", "replace")
        found = []
        for name, pattern in self._patterns:
            if hit := pattern.search(text):
                groups = hit.groupdict()
                window = (
                    groups["window"] if "window" in groups else hit[1] if pattern.groups else ""
                )
                found.append(OutputToken(name, (window or "").strip()))
        return found


def _compile(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"{pattern!r} is no regular expression: {error}", key=name) from error


def _size(fd: int) -> bytes:
    return fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)


class Relay:
    """`child_fd` becomes the command's standard output; then `start`, and when the command has
    ended `finish`. `seen` gets what was read and when, after it was passed on; it must be quick,
    because the command waits for it."""

    def __init__(self, seen: Callable[[bytes, int], None], out_fd: int = 1) -> None:
        self._seen, self._out = seen, out_fd
        self.is_terminal = os.isatty(out_fd)
        self.problem = ""
        """why output could not be passed on, or was not looked at"""
        self.bytes = 0
        if self.is_terminal:
            self._source, self.child_fd = os.openpty()
            _transparent(self.child_fd, out_fd)
            self.resize()
        else:
            self._source, self.child_fd = os.pipe()
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._loop, name="ckptcost-output", daemon=True)

    def start(self) -> None:
        """After the command was started: our copy of its end is closed, so that its end is seen."""
        os.close(self.child_fd)
        self.child_fd = -1
        self._thread.start()

    def resize(self) -> bool:
        """Gives the command's terminal the size of ours; True where that changed. The command has
        had its SIGWINCH from our terminal already, maybe too early to see it: send it another one
        then."""
        if not self.is_terminal or self._source < 0:
            return False
        size = _size(self._out)
        if _size(self._source) == size:
            return False
        fcntl.ioctl(self._source, termios.TIOCSWINSZ, size)
        return True

    def finish(self, linger_s: float = 0.2) -> None:
        """The command has ended: passes on what is left. Who else holds its output open (a process
        in the background) gets so long."""
        if self._thread.ident is None:
            for fd in (self.child_fd, self._source):
                os.close(fd)
        else:
            os.write(self._waker, (time.monotonic_ns() + int(linger_s * 1e9)).to_bytes(8, "little"))
            self._thread.join()
        os.close(self._wake)
        os.close(self._waker)

    def _loop(self) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        until_ns: int | None = None
        most_bytes = 0
        try:
            while True:
                now_ns = time.monotonic_ns()
                ready = dict(
                    poll.poll(
                        None if until_ns is None else max((until_ns - now_ns) // 1_000_000 + 1, 0)
                    )
                )
                if self._wake in ready:
                    until_ns = int.from_bytes(os.read(self._wake, 8), "little")
                    most_bytes = self.bytes + _MOST_LEFT
                    poll.unregister(self._wake)
                elif self._source in ready and not self._pass_on():
                    break
                is_late = until_ns is not None and time.monotonic_ns() >= until_ns
                if is_late and (
                    self._source not in ready or self.bytes > most_bytes
                ):  # what the command left is passed on in any case
                    break
        finally:
            source, self._source = self._source, -1
            os.close(source)  # whoever writes now gets SIGPIPE, as it would from our reader

    def _pass_on(self) -> bool:
        """False at the end, or when nobody reads us any more."""
        try:
            data = os.read(self._source, _CHUNK)
        except OSError as error:
            if error.errno != errno.EIO:  # of a pseudo-terminal: everybody closed it
                self.problem = f"the command's output: {error.strerror}"
            return False
        if not data:
            return False
        t_ns = time.monotonic_ns()
        try:
            self._write(data)
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.problem = f"standard output: {error.strerror}"
            return False
        finally:
            self._look(data, t_ns)
        self.bytes += len(data)
        return True

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._out, left) :]
            except BlockingIOError:  # somebody made our output non-blocking
                room = select.poll()
                room.register(self._out, select.POLLOUT)
                room.poll()

    def _look(self, data: bytes, t_ns: int) -> None:
        try:
            self._seen(data, t_ns)
        except Exception as error:  # a defect of ours must not cost the job its output
            self.problem = f"the output is no longer looked at: {type(error).__name__}: {error}"
            self._seen = lambda data, t_ns: None


def _transparent(terminal: int, like: int) -> None:
    """As ours is, but bytes pass as they are: ours makes of a newline what it makes of it, once."""
    settings = termios.tcgetattr(like)
    settings[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR)
    settings[1] &= ~termios.OPOST
    settings[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
