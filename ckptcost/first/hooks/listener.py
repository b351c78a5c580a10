"""The wrapper's side of the wire: one thread takes the marks of all training processes of this
machine, and believes none unseen.

Only this user can enter the folder of the socket. A broken or hostile sender must not put nonsense
into a run: it loses the line, or the connection; the others notice nothing.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from ckptcost.first.core.phases import MARKS
from ckptcost.first.errors import OutputError
from ckptcost.first.hooks.settles import Settles
from ckptcost.first.hooks.wire import SOCKET, Stream, is_dead, listening_at, uid_of
from ckptcost.first.runs.election import lock_directory
from ckptcost.first.watch.base import Tell

NAMES: Final = frozenset({*MARKS, "note", "steps"})
LONGEST_LINE: Final = 4000
MOST_RANK: Final = 10_000_000
PAST_NS: Final = 86_400 * 1_000_000_000
"""a part of a save is told when the whole returns, a training step with the next one"""
FUTURE_NS: Final = 1_000_000_000
_RESERVED: Final = frozenset({"self", "name", "window", "by", "rank", "t_ns"})
_MOST_KEYS: Final = 20
_LONGEST_TEXT: Final = 4000
_LONGEST_LABEL: Final = 200
_MOST_STEPS: Final = 1000


_OF_A_LINE: Final[tuple[tuple[str, Any], ...]] = (
    ("t", None),
    ("name", None),
    ("window", ""),
    ("rank", 0),
    ("detail", {}),
)
"""its keys, and what stands for one that is not there"""


class IncomingMark(NamedTuple):
    t_ns: int
    name: str
    window: str
    rank: int
    detail: dict[str, Any]


def parse_line(line: bytes, now_ns: int) -> IncomingMark | None:
    """None: refused.

    >>> parse_line(b'{"t": 5, "name": "begin", "window": "step 1", "rank": 3}', now_ns=9)
    IncomingMark(t_ns=5, name='begin', window='step 1', rank=3, detail={})
    """
    if len(line) > LONGEST_LINE:
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if type(said) is not dict:
        return None
    values: list[Any] = [said.get(key, other) for key, other in _OF_A_LINE]
    t_ns, name, window, rank, detail = values
    # the exact types: JSON's true is a number here otherwise
    if (type(name), type(window), type(rank), type(detail)) != (str, str, int, dict):
        return None
    if name not in NAMES or not 0 <= rank <= MOST_RANK or not _in_time(t_ns, now_ns):
        return None
    if name != "steps":
        return IncomingMark(t_ns, name, printable(window), rank, _detail(detail))
    steps = _steps(detail, now_ns)
    return None if steps is None else IncomingMark(t_ns, name, "", rank, steps)


def _in_time(t_ns: object, now_ns: int) -> bool:
    return type(t_ns) is int and max(1, now_ns - PAST_NS) <= t_ns <= now_ns + FUTURE_NS


def printable(text: str) -> str:
    """Fit for a screen and a file: cut, and without what does not print."""
    text = text[:_LONGEST_LABEL]
    return (
        text
        if text.isprintable()
        else "".join(sign if sign.isprintable() else "?" for sign in text)
    )


def _detail(detail: dict[str, Any]) -> dict[str, Any]:
    """What can be kept of it."""
    kept: dict[str, Any] = {}
    for key, value in detail.items():
        if len(kept) >= _MOST_KEYS or not key.isidentifier() or len(key) > 32 or key in _RESERVED:
            continue
        if type(value) is str:
            kept[key] = value[:_LONGEST_TEXT]
        elif _is_number(value):
            kept[key] = value
    return kept


def _is_number(value: object) -> bool:
    """One that a run can hold."""
    if type(value) is int:
        return abs(value) < 1 << 63
    return type(value) is bool or (type(value) is float and math.isfinite(value))


def _steps(detail: dict[str, Any], now_ns: int) -> dict[str, Any] | None:
    """Ends of training steps, in order."""
    ends_ms, base_ns = detail.get("ends_ms"), detail.get("base")
    if (
        type(ends_ms) is not list
        or not 0 < len(ends_ms) <= _MOST_STEPS
        or not _in_time(base_ns, now_ns)
    ):
        return None
    if not all(type(end) in (int, float) and 0 <= end <= PAST_NS / 1e6 for end in ends_ms):
        return None
    return _detail(detail) | {"ends_ms": ends_ms, "base": base_ns}


_LONGEST_BUFFER = 8192
_MOST_CLIENTS = 8192
_MOST_LINES_A_S = 2000
"""of one client; a loop that has gone mad must not fill the run"""
_LAST_WORDS_S = 1.0
"""at the end, what still lies in the sockets is read for so long at most"""


class _Peer:
    """What the listener knows of one training process."""

    __slots__ = ("buffer", "lines", "since_s", "socket")

    def __init__(self, connected: Stream) -> None:
        self.socket = connected
        self.buffer = b""
        self.lines = 0
        self.since_s = 0.0


class Listener:
    """Calls `tell` for each mark, and `settle` for each save of which somebody should find out when
    it is safe.

    Raises OutputError where it cannot listen.
    """

    def __init__(
        self,
        tell: Tell,
        path: Path | str | None = None,
        settle: Callable[..., object] | None = None,
    ) -> None:
        self._tell, self._settles = tell, Settles(settle)
        self._folder, self.path = _place(path)
        self._open: Stream = self._bind()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._open, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._closing = False
        self._peers = 0
        self.refused = 0
        """lines that were not believed, and connections of others"""
        self.problem = ""
        self._thread = threading.Thread(target=self._serve, name="ckptcost-listener", daemon=True)
        self._thread.start()

    def environ(self) -> dict[str, str]:
        """What a child's environment needs."""
        return {SOCKET: self.path}

    def _bind(self) -> Stream:
        try:
            return listening_at(self.path)
        except (OSError, ValueError) as error:
            if self._folder is not None:
                self._folder.rmdir()
            raise OutputError(
                f"{self.path}: cannot listen for marks: {getattr(error, 'strerror', None) or error}"
            ) from error

    def _serve(self) -> None:
        while not self._closing:
            self._turn(None)
        until_s = time.monotonic() + _LAST_WORDS_S
        while time.monotonic() < until_s and self._turn(0.0):
            continue
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, _Peer):
                self._hang_up(key.data)

    def _turn(self, timeout_s: float | None) -> bool:
        """Everything that is there to be read, once. False where there was nothing."""
        ready = self._selector.select(timeout_s)
        for key, _ in ready:
            try:
                if isinstance(key.data, _Peer):
                    self._read(key.data)
                elif key.fileobj is self._open:
                    self._accept()
                else:
                    os.eventfd_read(self._bell)
            except Exception as error:  # one client's trouble is not the others'
                self.problem = f"{type(error).__name__}: {error}"
                if isinstance(key.data, _Peer):
                    self._hang_up(key.data)
        return bool(ready)

    def _accept(self) -> None:
        try:
            connected, _ = self._open.accept()
        except BlockingIOError:
            return
        except OSError as error:  # no more files: it stays ready, so wait a little
            self.problem = str(error)
            time.sleep(0.05)
            return
        if uid_of(connected) not in (os.getuid(), 0) or self._peers >= _MOST_CLIENTS:
            self.refused += 1
            connected.close()
            return
        connected.setblocking(False)
        self._peers += 1
        self._selector.register(connected, selectors.EVENT_READ, _Peer(connected))

    def _hang_up(self, peer: _Peer) -> None:
        self._selector.unregister(peer.socket)
        self._peers -= 1
        peer.socket.close()

    def _read(self, peer: _Peer) -> None:
        try:
            block = peer.socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            block = b""
        if not block:
            self.refused += bool(peer.buffer)  # half a line
            self._hang_up(peer)
            return
        *lines, peer.buffer = (peer.buffer + block).split(b"\n")
        for line in lines:
            self._take(peer, line)
        if len(peer.buffer) > _LONGEST_BUFFER:
            self.refused += 1
            self._hang_up(peer)

    def _take(self, peer: _Peer, line: bytes) -> None:
        now_ns = time.monotonic_ns()
        if now_ns * 1e-9 - peer.since_s > 1.0:
            peer.since_s, peer.lines = now_ns * 1e-9, 0
        peer.lines += 1
        said = parse_line(line, now_ns) if peer.lines <= _MOST_LINES_A_S else None
        if said is None:
            self.refused += 1
            return
        wanted = said.detail.pop("settle", False)
        try:
            self._tell(
                said.name, said.window, by="api", rank=said.rank, t_ns=said.t_ns, **said.detail
            )
            self._settles.see(
                peer.socket.fileno(),
                said.name,
                said.window,
                said.t_ns,
                said.rank,
                said.detail.get("path"),
                wanted,
            )
        except Exception as error:  # not the sender's fault
            self.problem = f"{type(error).__name__}: {error}"

    def close(self, timeout_s: float = 5.0) -> None:
        """Reads what was said until now, then no more; the socket's file goes."""
        if self._closing:
            return
        self._closing = True
        os.eventfd_write(self._bell, 1)
        self._thread.join(timeout_s)
        self._unlink()
        self._open.close()
        if not self._thread.is_alive():
            self._selector.close()
            os.close(self._bell)

    def _unlink(self) -> None:
        try:
            os.unlink(self.path)
            if self._folder is not None:
                self._folder.rmdir()
        except OSError as error:
            self.problem = str(error)


def _place(path: Path | str | None) -> tuple[Path | None, str]:
    """A folder made for it, that only this user can enter; and the socket's path."""
    if path is not None:
        return None, os.path.abspath(path)
    directory = lock_directory()
    _sweep(directory)
    try:
        folder = Path(tempfile.mkdtemp(prefix="ckptcost-marks-", dir=directory))
    except OSError as error:
        raise OutputError(
            f"{directory}: cannot make a folder to listen in: {error.strerror}"
        ) from error
    return folder, str(folder / "socket")


def _sweep(directory: Path) -> None:
    """Folders of listeners that were killed."""
    for folder in directory.glob("ckptcost-marks-*"):
        with contextlib.suppress(OSError):
            if is_dead(str(folder / "socket")):
                (folder / "socket").unlink()
                folder.rmdir()
