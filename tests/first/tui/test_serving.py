"""The screen in a browser: it listens to this machine only, strangers are turned away, and Chromium
shows it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ckptcost.first.errors import InputError
from ckptcost.first.tui.themes import THEMES

serving = pytest.importorskip(
    "ckptcost.first.tui.serving", reason="the extra `serve` is not installed", exc_type=ImportError
)
WAIT_S = 40.0
GROUND = bytes.fromhex(THEMES[0].background.removeprefix("#"))


class Served(NamedTuple):
    port: int
    key: str
    pid: int


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    port = free_port()
    env = {**os.environ, "CKPTCOST_STATE": str(tmp_path / "state"), "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, "-m", "ckptcost.first", f"--serve={port}", "--fresh"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/(\S+)/", line)
        assert found, line
        until_s = time.monotonic() + WAIT_S
        while time.monotonic() < until_s:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        try:
            yield Served(port, found[2], process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(WAIT_S) in (0, 130)


def ask(port: int, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    connection.request(
        "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, text, dict(answer.getheaders())


def test_it_listens_to_this_machine_only(served):
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [
        words[1].split(":")
        for words in listening
        if words[3] == "0A" and int(words[1].split(":")[1], 16) == served.port
    ]
    assert [address for address, _ in mine] == ["0100007F"]
    six = Path("/proc/net/tcp6")
    assert not six.exists() or f":{served.port:04X} " not in six.read_text()


def test_only_who_has_the_address_is_answered(served):
    assert ask(served.port, "/")[0] == 403
    assert ask(served.port, "/wrong/")[0] == 403
    assert ask(served.port, f"/?key={served.key}")[0] == 403
    assert ask(served.port, "/", Cookie=f"ckptcost={served.key}")[0] == 403
    assert ask(served.port, "/ws")[0] == 403
    assert ask(served.port, "/static/")[0] == 403
    status, page, headers = ask(served.port, f"/{served.key}/")
    assert status == 200
    assert "ckptcost" in page
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "Set-Cookie" not in headers, "a browser sends it to every port of this host"
    assert headers["Cache-Control"] == "no-store"
    assert ask(served.port, f"/{served.key}/static/")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_another_sites_page_is_turned_away_even_with_the_secret(headers, served):
    assert ask(served.port, f"/{served.key}/ws", **headers)[0] == 403


def test_a_port_that_is_taken_is_said(tmp_path, shell):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        done = shell(f"--serve={one.getsockname()[1]}", env={"CKPTCOST_STATE": str(tmp_path)})
    assert done.returncode == 2
    assert "cannot be listened on" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["80", "0", "-1", "70000", "x"])
def test_a_port_is_a_port(port, cli):
    assert cli(f"--serve={port}").code == 2


class Driver:
    """Chromium by its driver, in plain HTTP."""

    def __init__(self, profile: Path) -> None:
        self.port = free_port()
        self._process = subprocess.Popen(
            ["chromedriver", f"--port={self.port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until_s = time.monotonic() + WAIT_S
        while time.monotonic() < until_s:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.05)
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
            "--window-size=1100,700",
        ]
        options = {"binary": shutil.which("chromium"), "args": flags}
        self._session = self.call(
            "POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        )["sessionId"]

    def call(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(
            method,
            path,
            json.dumps(body) if body is not None else None,
            {"Content-Type": "application/json"},
        )
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        return value

    def of(self, method: str, path: str, body: object = None) -> Any:
        return self.call(method, f"/session/{self._session}{path}", body)

    def close(self) -> None:
        try:
            self.of("DELETE", "")
        finally:
            self._process.terminate()
            self._process.wait(20)


def pixels(png: bytes) -> tuple[int, list[bytes]]:
    """Bytes a pixel and the rows of an 8-bit PNG, its filters undone."""
    width, _, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert (depth, kind) in ((8, 2), (8, 6))
    each = 3 if kind == 2 else 4
    at, packed = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += length + 12
    raw, stride = zlib.decompress(packed), width * each
    rows: list[bytes] = []
    above = bytes(stride)
    for begin in range(0, len(raw), stride + 1):
        filter_, line = raw[begin], bytearray(raw[begin + 1 : begin + 1 + stride])
        for i in range(stride):
            left = line[i - each] if i >= each else 0
            up, corner = above[i], above[i - each] if i >= each else 0
            if filter_ == 4:
                guess = left + up - corner
                near = min(
                    (abs(guess - left), 0, left),
                    (abs(guess - up), 1, up),
                    (abs(guess - corner), 2, corner),
                )[2]
            else:
                near = (0, left, up, (left + up) // 2)[filter_]
            line[i] = (line[i] + near) & 255
        above = bytes(line)
        rows.append(above)
    return each, rows


def test_a_browser_shows_it(served, tmp_path):
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("chromium and chromedriver are not installed")
    driver = Driver(tmp_path / "profile")
    try:
        driver.of("POST", "/url", {"url": f"http://127.0.0.1:{served.port}/{served.key}/"})
        until_s = time.monotonic() + WAIT_S
        colours: set[bytes] = set()
        while (
            GROUND not in colours and time.monotonic() < until_s
        ):  # before it there is a page that says "connecting"
            time.sleep(1)
            each, rows = pixels(base64.b64decode(driver.of("GET", "/screenshot")))
            colours = {row[i : i + 3] for row in rows[::3] for i in range(0, len(row), each)}
        assert GROUND in colours, "the theme's own ground"
        assert len(colours) >= 40, "letters and curves on it"
        script = (
            "return performance.getEntriesByType('resource').filter(e => e.transferSize ||"
            " e.decodedBodySize).map(e => e.name)"
        )
        loaded = driver.of("POST", "/execute/sync", {"script": script, "args": []})
        assert loaded, "its own files"
        assert [
            name for name in loaded if not name.startswith(f"http://127.0.0.1:{served.port}/")
        ] == []
    finally:
        driver.close()


def test_no_address_is_printed_where_another_server_has_the_port(capsys):
    """It would lead to that one, which does not know the secret in it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} cannot be listened on"):
            serving.serve([], port)
    assert capsys.readouterr().out == ""
