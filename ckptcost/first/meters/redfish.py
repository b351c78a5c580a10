"""Power of the node as its BMC tells it over Redfish. The only module that uses a network, and only
to the address the user names.

GET only, basic authentication only (a session would need POST). TLS is verified unless the user
says otherwise; plain http only on loopback unless the user says otherwise. No proxy, no redirect to
another host, 1 MiB a reply, one deadline for a reply. Neither the address nor the account is in a
channel, a fact, an event, an error or a repr. Which document holds which number is in redfish_tree.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ckptcost.first.errors import InputError, MeterUnavailable
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import NOTHING, Channelwise, FoundMeters, none_found
from ckptcost.first.meters.redfish_tree import Denied, Doc, Readout, discover, is_path

if TYPE_CHECKING:
    import http.client

MOST_BYTES = 1 << 20
DENIED_S = 60.0
"""asked again so long after a refused password: BMCs lock accounts"""
WHERE = "redfish"
_PORTS = {"https": 443, "http": 80}


class Service:
    """Where the BMC is and as whom to ask; made by `service`. Has no repr on purpose."""

    __slots__ = ("ca_file", "headers", "host", "insecure", "port", "timeout_s", "tls")

    def __init__(
        self,
        host: str,
        port: int,
        tls: bool,
        headers: dict[str, str],
        ca_file: str | None,
        insecure: bool,
        timeout_s: float,
    ) -> None:
        self.host, self.port, self.tls, self.headers = host, port, tls, headers
        self.ca_file, self.insecure, self.timeout_s = ca_file, insecure, timeout_s

    @property
    def trust(self) -> str:
        if not self.tls:
            return "plain http"
        return "TLS, certificate not verified" if self.insecure else "TLS, certificate verified"


def _input_error(problem: str, remedy: str = "") -> InputError:
    return InputError(problem, where=WHERE, remedy=remedy)


def service(
    url: str,
    user: str | None = None,
    password: str | None = None,
    *,
    ca_file: str | None = None,
    insecure: bool = False,
    plain_http: bool = False,
    timeout_s: float = 5.0,
) -> Service:
    """Checks what the user gave; InputError never quotes it."""
    import os

    host, port, tls = _address_of(url.strip())
    if not tls and not plain_http and not _is_loopback(host):
        raise _input_error("plain http sends the password for all to read", "use https")
    if insecure and ca_file:
        raise _input_error(
            "a CA file and an unverified certificate exclude each other", "drop one of them"
        )
    if ca_file and not os.access(ca_file, os.R_OK):
        raise _input_error("the CA file cannot be read", "check its path and permissions")
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "OData-Version": "4.0",
        "User-Agent": "ckptcost",
        **_basic_authentication(user, password),
    }
    return Service(host, port, tls, headers, ca_file, insecure, timeout_s)


def _address_of(url: str) -> tuple[str, int, bool]:
    """Host, port, and whether it is https."""
    from urllib.parse import urlsplit

    form = "give it as https://HOST or https://HOST:PORT"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _input_error("the address is no URL", form) from None
    if "@" in parts.netloc:
        raise _input_error(
            "the address holds a user name or password", "give them apart, where no log shows them"
        )
    if parts.scheme not in _PORTS or not host or re.search(r"[\x00-\x20\x7f]", url):
        raise _input_error("the address is no http or https URL", form)
    path = parts.path.rstrip("/")
    if path not in ("", "/redfish", "/redfish/v1") or parts.query or parts.fragment:
        raise _input_error("the address has more than a host and a port", form)
    return host, port or _PORTS[parts.scheme], parts.scheme == "https"


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _basic_authentication(user: str | None, password: str | None) -> dict[str, str]:
    """The header; none where there is no account."""
    import base64

    if user is None and password is None:
        return {}
    if user is None or password is None:
        raise _input_error("a user name needs a password and the other way round")
    cannot = "the user name or password has a character that basic authentication cannot carry"
    if ":" in user or re.search(r"[\x00-\x1f\x7f]", user + password):
        raise _input_error(cannot)
    try:
        text = base64.b64encode(f"{user}:{password}".encode()).decode()
    except UnicodeEncodeError:  # quotes what it could not encode
        raise _input_error(cannot) from None
    return {"Authorization": f"Basic {text}"}


class RedfishClient:
    """GET of JSON objects over one kept connection; every failure is MeterUnavailable with a reason
    that names no host."""

    def __init__(self, where: Service) -> None:
        self._where = where
        self._connection: http.client.HTTPConnection | None = None
        self._stopped = False
        self.until_s: float | None = None
        """looking around ends here, on time.monotonic: 64 chassis times a timeout is too long"""

    def get(self, path: str) -> Doc:
        import json

        for _ in range(4):
            if not is_path(path):
                raise MeterUnavailable("it links to something outside of /redfish", "not followed")
            status, location, body = self._ask(path)
            if status not in (301, 302, 303, 307, 308):
                break
            path = self._same_place(location)
        else:
            raise MeterUnavailable("it redirects in a circle", "give the final address")
        if status in (401, 403):
            raise Denied(
                f"it refuses the account (HTTP {status})",
                "check user name, password and the right to log in (Login privilege)",
            )
        if status != 200:
            raise MeterUnavailable(f"HTTP {status} for {path}")
        try:
            doc = json.loads(body, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            raise MeterUnavailable(f"its reply to {path} is not JSON") from None
        if not isinstance(doc, dict):
            raise MeterUnavailable(f"its reply to {path} is no JSON object")
        return doc

    def _same_place(self, location: str) -> str:
        from urllib.parse import urlsplit

        with suppress(ValueError):
            parts, where = urlsplit(location), self._where
            here = ("https" if where.tls else "http", where.host, where.port)
            default = 443 if parts.scheme == "https" else 80
            if (not parts.netloc and not parts.scheme) or (
                parts.scheme,
                parts.hostname,
                parts.port or default,
            ) == here:
                return parts.path
        raise MeterUnavailable(
            "it redirects to another host", "not followed: give the final address"
        )

    def _ask(self, path: str) -> tuple[int, str, bytes]:
        import http.client
        import ssl

        stale = (ConnectionError, http.client.CannotSendRequest, ssl.SSLEOFError)
        while True:
            if self._stopped:
                raise MeterUnavailable("closed")
            if self.until_s is not None and time.monotonic() > self.until_s:
                raise MeterUnavailable("looking for the power took too long", "name the chassis")
            kept = self._connection is not None
            try:
                return self._exchange(path)
            except (MeterUnavailable, http.client.HTTPException, OSError, ValueError) as error:
                self.close()
                # a kept connection may have been closed meanwhile; once more
                if not (kept and isinstance(error, stale)):
                    raise _unavailable_error(error, self._where.timeout_s) from None

    def _exchange(self, path: str) -> tuple[int, str, bytes]:
        import errno

        end_s = time.monotonic() + self._where.timeout_s
        connection = self._connection = self._connection or self._connect()
        connection.request("GET", path, headers=self._where.headers)
        response = connection.getresponse()
        chunks, size = [], 0
        try:
            while True:
                left_s = end_s - time.monotonic()
                if left_s <= 0.0:
                    raise TimeoutError
                if connection.sock is not None:
                    connection.sock.settimeout(left_s)
                chunk = response.read1(65536)
                if not chunk:
                    break
                size += len(chunk)
                if size > MOST_BYTES:
                    raise MeterUnavailable(f"its reply is larger than {MOST_BYTES >> 20} MiB")
                chunks.append(chunk)
            if response.length:  # bytes that were promised
                raise ConnectionResetError(errno.ECONNRESET, "cut off")
        finally:
            response.close()  # read1 alone leaves it half open, and the connection unusable
        if connection.sock is not None:
            connection.sock.settimeout(self._where.timeout_s)
        return response.status, response.getheader("Location") or "", b"".join(chunks)

    def _connect(self) -> http.client.HTTPConnection:
        import http.client
        import ssl

        where = self._where
        if not where.tls:
            return http.client.HTTPConnection(where.host, where.port, timeout=where.timeout_s)
        context = ssl.create_default_context(cafile=where.ca_file)
        if where.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(
            where.host, where.port, timeout=where.timeout_s, context=context
        )

    def stop(self) -> None:
        """From another thread: end the call under way."""
        self._stopped = True
        connection = self._connection
        sock = connection.sock if connection is not None else None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(2)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _unavailable_error(error: Exception, timeout_s: float) -> MeterUnavailable:
    """What went wrong without the address that some errors quote."""
    import os
    import socket
    import ssl

    if isinstance(error, MeterUnavailable):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_problem(error.verify_code)
    if isinstance(error, TimeoutError):
        return MeterUnavailable(f"no answer within {timeout_s:g} s")
    if isinstance(error, ssl.SSLError):
        kind = f"TLS: {error.reason or 'broken off'}"
    elif isinstance(error, socket.gaierror):
        kind = "the host's name is not known"
    elif isinstance(error, OSError) and error.errno:
        kind = os.strerror(error.errno)
    else:
        kind = type(error).__name__
    return MeterUnavailable(f"no reply ({kind})", "check address, port and network")


def _certificate_problem(code: int) -> MeterUnavailable:
    reason = {
        10: "has expired",
        18: "is self-signed",
        19: "is self-signed",
        62: "is for another name",
        64: "is for another address",
    }.get(code, "is not from a known authority")
    return MeterUnavailable(
        f"its TLS certificate {reason} (verify code {code})",
        "give the BMC's CA or certificate as CA file, and the name that is in it; to skip the check"
        " must be asked for: --redfish-insecure",
    )


class Redfish(Channelwise):
    """Each document once a reading, however many channels are in it."""

    def __init__(
        self, client: RedfishClient, plan: Readout, *, least_s: float, facts: dict[str, str]
    ) -> None:
        super().__init__(
            "redfish", tuple(channel for channel, _ in plan), max(least_s, 1.0), facts=facts
        )
        self._client, self._spots = client, [spots for _, spots in plan]

    def read(self, t_ns: int) -> Sequence[float]:
        if not self.is_due("node", t_ns):
            return [NOTHING] * len(self._spots)
        try:
            docs = {
                path: self._client.get(path)
                for path in dict.fromkeys(spot.path for spots in self._spots for spot in spots)
            }
        except MeterUnavailable as error:
            wait_ns = round(DENIED_S * 1e9) if isinstance(error, Denied) else 0
            silent = self.note_missing("node", error.reason, t_ns=t_ns, wait_ns=wait_ns)
            return [silent] * len(self._spots)
        values = [sum(spot.pick(docs[spot.path]) for spot in spots) for spots in self._spots]
        if values[0] != values[0]:
            self.note_missing("node", f"{self.channels[0].source}: no number any more")
        else:
            self.note_answer("node", "the BMC answers again")
        return values

    def stop(self) -> None:
        self._client.stop()

    def close(self) -> None:
        self._client.close()


def find(
    url: str | None = None,
    user: str | None = None,
    password: str | None = None,
    *,
    ca_file: str | None = None,
    insecure: bool = False,
    plain_http: bool = False,
    chassis: str | None = None,
    timeout_s: float = 5.0,
    least_s: float = 2.0,
) -> FoundMeters:
    """The node's power from the BMC at `url`; InputError where what the user gave is wrong, an
    absence where the BMC does not answer."""
    if not url:
        reason = "not asked for: it needs a BMC's address and account"
        return none_found("redfish", reason, "--redfish URL", "node")
    where = service(
        url,
        user,
        password,
        ca_file=ca_file,
        insecure=insecure,
        plain_http=plain_http,
        timeout_s=timeout_s,
    )
    client = RedfishClient(where)
    client.until_s = time.monotonic() + 6.0 * timeout_s
    try:
        path, plan = discover(
            client.get, chassis, "TLS certificate not verified" if where.tls and insecure else ""
        )
    except MeterUnavailable as error:
        client.close()
        remedy = error.remedy or "check the BMC's web page"
        return none_found("redfish", error.reason, remedy, "node")
    client.until_s = None
    meter = Redfish(
        client, plan, least_s=least_s, facts={"chassis": path, "connection": where.trust}
    )
    return FoundMeters((Background(meter),))
