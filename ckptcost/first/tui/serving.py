"""The same screen in a browser, for this machine and for whoever has the address: it can start
programs, so strangers must not reach it.

The server listens on 127.0.0.1 only. A page of another site, opened in the same browser, could
still speak to it, and so could another user of the machine; so every request must name this host
and lie below the secret of the address that was printed, and the page may load nothing from
elsewhere. The secret is in the path, not in a cookie: a browser sends cookies to every port of a
host. What remains: the browser's history holds it until the server ends, with which it ends.
"""

from __future__ import annotations

import hmac
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web
from textual_serve.server import Server

from ckptcost.first.errors import InputError
from ckptcost.first.interpreter import python

HOST = "127.0.0.1"
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " font-src 'self' data:; img-src 'self' data:; connect-src 'self' {socket}; frame-ancestors"
    " 'none'; base-uri 'none'; form-action 'none'"
)
"""what the page may load: its own files and its own socket"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Loopback(Server):
    """The server of Textual, behind a door."""

    def __init__(self, command: str, port: int) -> None:
        super().__init__(command, host=HOST, port=port, title="ckptcost")
        self.secret = secrets.token_urlsafe(24)
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.secret}/"

    async def _make_app(self) -> web.Application:
        """All of it lies below the secret."""
        outside = web.Application(middlewares=[self._door()])
        outside.add_subapp(f"/{self.secret}", await super()._make_app())
        return outside

    def _door(self) -> Any:
        @web.middleware
        async def door(request: web.Request, handler: Handler) -> web.StreamResponse:
            if (why := self.refused(request)) is not None:
                return web.Response(status=403, text=why + "\n")
            response = await handler(request)
            if not response.prepared:
                response.headers["Content-Security-Policy"] = POLICY.format(
                    socket=f"ws://{request.host}"
                )
                response.headers["Referrer-Policy"] = "no-referrer"
                response.headers["Cache-Control"] = "no-store"
            return response

        return door

    def refused(self, request: web.Request) -> str | None:
        """Why a request is not answered."""
        if request.host not in self._hosts:
            return "this is served to its own machine only"
        origin = request.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return "another site's page has no business here"
        shown = request.path.split("/")[1]
        return (
            None
            if hmac.compare_digest(shown.encode(), self.secret.encode())
            else "open the whole address that was printed"
        )

    def initialize_logging(self) -> None:
        """Nothing on stderr: its requests are of no interest."""

    async def on_startup(self, app: web.Application) -> None:
        print(
            f"ckptcost: open {self.address}\nckptcost: only on this machine; Ctrl-C ends it",
            flush=True,
        )


def command(words: Sequence[str]) -> list[str]:
    """What starts the application of a page."""
    code = "from ckptcost.first.cli.main import main; raise SystemExit(main())"
    return [*python(code), *words]


def serve(words: Sequence[str], port: int) -> None:
    """Until it is interrupted. Each page that is opened has an application of its own."""
    try:
        with socket.create_server((HOST, port)):
            pass  # the address is printed before the server listens, and would be another's
        Loopback(shlex.join(command(words)), port).serve()
    except OSError as error:
        raise InputError(
            f"port {port} cannot be listened on ({error.strerror or error})",
            where="--serve",
            remedy="give another",
        ) from None
