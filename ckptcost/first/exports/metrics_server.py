"""A run's metrics over HTTP: it tells what the run's files say, takes nothing in, and opens no file
that a request names.

It listens on this machine alone unless another address is asked for. A page of another site, opened
in a browser here, could be given this machine's address by its name server; so every request must
then name this machine. Connections are few and short: who is slow is cut off, and holds nobody up.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import socketserver
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from ckptcost.first.errors import InputError
from ckptcost.first.exports.live_metrics import (
    CONTENT_TYPES,
    LiveSource,
    Unreadable,
    flavour_for,
    text,
)
from ckptcost.first.version import __version__

PORT = 9877
CONNECTIONS, OF_ONE = 16, 8
"""at a time, and of one address; who comes then is told to come again"""
IDLE_S, WHOLE_S = 2.0, 10.0
"""without a byte, and in all, until a connection is cut off"""
PLAIN = "text/plain; charset=utf-8"
_OF_THE_PORT = frozenset({errno.EACCES, errno.EADDRINUSE})


class _Open(NamedTuple):
    """A connection."""

    begun_s: float
    address: str
    asked: bool = False


def _ip_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        raise InputError(
            f"no IP address: {address!r}",
            where="--address",
            remedy="e.g. 127.0.0.1, 0.0.0.0 or ::1",
        ) from None


class MetricsServer(ThreadingHTTPServer):
    """`serve_forever`, then `server_close`."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, source: LiveSource, address: str = "127.0.0.1", port: int = PORT) -> None:
        """Raises InputError where it cannot listen there."""
        self.source = source
        bound = "127.0.0.1" if address == "localhost" else address
        place = _ip_address(bound)
        if not 0 <= port <= 65535:
            raise InputError(
                "no port has this number",
                where=f"--port {port}",
                remedy="give 1024 to 65535, or 0 for any",
            )
        self.address_family = socket.AF_INET if place.version == 4 else socket.AF_INET6
        self.is_local = place.is_loopback
        self._open: dict[socket.socket, _Open] = {}
        self._open_lock = threading.Lock()
        try:
            super().__init__((bound, port), _Handler)
        except OSError as error:
            where, remedy = f"--address {address}", "give one of this machine's own"
            if error.errno in _OF_THE_PORT:
                where, remedy = f"--port {port}", "give another, or 0 for any that is free"
            raise InputError(
                f"cannot be listened on ({error.strerror or error})", where=where, remedy=remedy
            ) from None
        shown = f"[{bound}]" if place.version == 6 else bound
        self.url = f"http://{shown}:{self.server_port}"
        self.hosts = {
            f"{name}:{self.server_port}"
            for name in (shown.lower(), "127.0.0.1", "localhost", "[::1]")
        }

    def server_bind(self) -> None:
        """Without a look for this machine's name, which may ask the network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        address = str(client_address[0])
        with self._open_lock:
            mine = [each for each, known in self._open.items() if known.address == address]
            full = len(mine) >= OF_ONE or len(self._open) >= CONNECTIONS
            silent = next((each for each in mine if not self._open[each].asked), None)
        if full and silent is not None:
            # its own oldest connection that asks nothing: who fills all of them with such, holds up
            # nobody who asks
            self._cut_off(silent)
        elif full:
            self._turn_away(request)
            return
        with self._open_lock:
            self._open[request] = _Open(time.monotonic(), address)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be had
            self._over(request)
            self._turn_away(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._over(request)

    def _over(self, request: socket.socket) -> None:
        with self._open_lock:
            self._open.pop(request, None)

    def asked(self, request: socket.socket) -> None:
        """Its request is there whole."""
        with self._open_lock:
            if request in self._open:
                self._open[request] = self._open[request]._replace(asked=True)

    def _cut_off(self, request: socket.socket) -> None:
        with self._open_lock:
            self._open.pop(request, None)
        with contextlib.suppress(OSError):  # gone by itself
            request.shutdown(socket.SHUT_RDWR)

    def _turn_away(self, request: socket.socket) -> None:
        try:
            request.settimeout(0.1)
            request.sendall(
                b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"
            )
        except OSError:
            pass
        self.shutdown_request(request)

    def service_actions(self) -> None:
        """Twice a second: who sends a byte now and then is cut off too."""
        since_s = time.monotonic() - WHOLE_S
        with self._open_lock:
            slow = [each for each, known in self._open.items() if known.begun_s < since_s]
        for request in slow:
            self._cut_off(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # else somebody went away
            print(
                f"ckptcost: a request failed ({type(error).__name__}: {error})",
                file=sys.stderr,
                flush=True,
            )


class _Handler(BaseHTTPRequestHandler):
    """One request and its answer; then the connection is closed."""

    server: MetricsServer
    timeout = IDLE_S
    error_content_type = PLAIN
    error_message_format = "%(code)d %(message)s\n"

    def version_string(self) -> str:
        return "ckptcost"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on stderr: requests are of no interest."""

    def do_GET(self) -> None:
        self.server.asked(self.connection)
        if self.server.is_local and not self._names_us():
            self._answer(
                HTTPStatus.FORBIDDEN,
                "this is told to its own machine only, by its own name and port\n",
            )
            return
        answer = {"/metrics": self._metrics, "/healthz": self._health, "/": self._about}.get(
            self.path.partition("?")[0]
        )
        if answer is None:
            self._answer(HTTPStatus.NOT_FOUND, "there is /metrics, /healthz and /\n")
            return
        try:
            answer()
        except Unreadable as why:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}\n")

    do_HEAD = do_GET  # noqa: N815  # these names are the base class's

    def do_POST(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "GET and HEAD only\n")

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST  # noqa: N815

    def _metrics(self) -> None:
        flavour = flavour_for(self.headers.get("Accept", ""))
        self._answer(
            HTTPStatus.OK, text(self.server.source.samples(), flavour), CONTENT_TYPES[flavour]
        )

    def _health(self) -> None:
        self.server.source.check()
        self._answer(HTTPStatus.OK, "ok\n")

    def _about(self) -> None:
        source = self.server.source
        self._answer(
            HTTPStatus.OK,
            f"ckptcost {__version__}: metrics of the run {source.name} ({source.run}) are at"
            " /metrics\n",
        )

    def _names_us(self) -> bool:
        said = self.headers.get_all("Host") or []
        return len(said) == 1 and said[0].strip().lower() in self.server.hosts

    def _answer(self, status: HTTPStatus, body: str, content_type: str = PLAIN) -> None:
        data = body.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
