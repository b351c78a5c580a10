"""Marks from a training process to the wrapper around it: one JSON object a line, over a socket in
a folder of this machine.

Each line goes out by one send that never waits: a local stream takes so short a message whole or
not at all. Who does not read loses marks, not the training its time, and the count of the lost ones
comes with the next that gets through.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Stream = socket.socket
SOCKET = "CKPTCOST_SOCKET"
LONGEST = 4000
"""bytes of a line"""
_NEVER_WAITS = socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT
_RETRY_S, _MOST_RETRY_S = 1.0, 60.0
_LONGEST_ADDRESS = 107
"""bytes that an address of the kernel's has for a path"""
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


@contextmanager
def _address(path: str) -> Iterator[str]:
    """The path itself, or a short way to the same place: the folder by its number among this
    process's open ones."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield path
        return
    folder, name = os.path.split(path)
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)


def _connect_to(path: str) -> Stream:
    """To who listens there, without waiting. Raises OSError, or ValueError for a path that cannot
    be one."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with _address(path) as address:
            made.connect(address)
    except (OSError, ValueError):
        made.close()
        raise
    return made


def listening_at(path: str) -> Stream:
    """A socket that only this user can connect to. Raises OSError, or ValueError for a path that
    cannot be one."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        os.fchmod(made.fileno(), 0o600)  # before it has a name, so that it is never open to others
        with _address(path) as address:
            made.bind(address)
        made.listen(1024)
    except (OSError, ValueError):
        made.close()
        raise
    return made


def is_dead(path: str) -> bool:
    """Nobody listens at a socket that is still there: its owner was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.settimeout(0.1)
        try:
            one.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def uid_of(connected: Stream) -> int:
    """Whose process is at the other end, as the kernel says."""
    return int.from_bytes(
        connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], "little"
    )


def _json_value(value: object) -> object:
    """What JSON can say of it."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    return str(value)


class WireClient:
    """It connects at the first mark; where nobody listens it tries again, ever more seldom."""

    listening = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: Stream | None = None
        self._lock = threading.Lock()
        self._next_try_s, self._retry_s = -math.inf, _RETRY_S
        self._pid = os.getpid()
        self.dropped = 0
        """since the last mark that got through"""

    def tell(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: object,
    ) -> None:
        """About 10 us; never waits, never raises."""
        try:
            connected = self._socket or self._connect()
            if connected is None or not self._send(
                connected, self._line(name, window, rank or 0, t_ns, detail)
            ):
                self.dropped += 1
        except Exception:
            self.dropped += 1

    def _line(
        self, name: str, window: str, rank: int, t_ns: int | None, detail: dict[str, object]
    ) -> bytes:
        fields: dict[str, Any] = {
            "t": time.monotonic_ns() if t_ns is None else t_ns,
            "name": name,
            "window": window,
            "rank": rank,
            "pid": self._pid,
        }
        if self.dropped:
            detail = detail | {"dropped": self.dropped}
        if detail:
            fields["detail"] = {
                key: _json_value(value) for key, value in detail.items() if value is not None
            }
        line = _encode(fields).encode("ascii") + b"\n"
        if len(line) > LONGEST:
            fields["detail"] = {
                key: value
                for key, value in fields["detail"].items()
                if type(value) in (bool, int, float)
            }
            line = _encode(fields).encode("ascii") + b"\n"
        return line

    def _send(self, connected: Stream, line: bytes) -> bool:
        dropped = self.dropped
        try:
            sent = connected.send(line, _NEVER_WAITS)
        except BlockingIOError:
            return False
        except OSError:
            self._lose(connected)
            return False
        if sent != len(line):
            self._lose(connected)  # half a line: the other side throws it away with the connection
            return False
        self.dropped -= dropped
        return True

    def _connect(self) -> Stream | None:
        if time.monotonic() < self._next_try_s or not self._lock.acquire(timeout=0.05):
            return None
        try:
            if self._socket is not None:
                return self._socket
            try:
                self._socket = _connect_to(self._path)
            except (OSError, ValueError):
                self._wait_longer()
                return None
            self._retry_s = _RETRY_S
            return self._socket
        finally:
            self._lock.release()

    def _lose(self, connected: Stream) -> None:
        self._socket = None
        connected.close()
        self._wait_longer()

    def _wait_longer(self) -> None:
        self._next_try_s = time.monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _MOST_RETRY_S)

    def forked(self) -> None:
        """The child's copy of the socket is given back: the connection stays the parent's."""
        self.close()

    def close(self) -> None:
        connected, self._socket = self._socket, None
        self._next_try_s = math.inf
        if connected is not None:
            connected.close()
