"""Real Prometheus software on loopback, and a little parser of its text that shares nothing with
the exporter."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Series = tuple[str, frozenset[tuple[str, str]]]
_LINE = re.compile(
    r'(?P<name>[a-z_]+)(?:\{(?P<labels>(?:[a-z_0-9]+="(?:[^"\\\n]|\\.)*",?)*)\})? (?P<value>\S+)(?:'
    r" (?P<at>\S+))?"
)
_LABEL = re.compile(r'([a-z_0-9]+)="((?:[^"\\\n]|\\.)*)"')
_UNESCAPED = {r"\\": "\\", r"\n": "\n", r"\"": '"'}


def samples(text: str) -> dict[Series, list[tuple[float | None, float]]]:
    """By series: when and how much. Refuses what is no sample, a series in two places, and a value
    without a HELP and a TYPE before it."""
    found: dict[Series, list[tuple[float | None, float]]] = {}
    last = None
    for line in text.split("\n"):
        if not line or line.startswith("# "):
            continue
        match = _LINE.fullmatch(line)
        assert match, line
        labels = frozenset(
            (name, re.sub(r"\\.", lambda m: _UNESCAPED[m[0]], value))
            for name, value in _LABEL.findall(match["labels"] or "")
        )
        series = match["name"], labels
        assert series == last or series not in found, f"two places: {line}"
        found.setdefault(series, []).append(
            (None if match["at"] is None else float(match["at"]), float(match["value"]))
        )
        last = series
    return found


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def get(url: str, **params: str) -> str:
    with urllib.request.urlopen(
        url + ("?" + urllib.parse.urlencode(params) if params else ""), timeout=30
    ) as answer:
        return answer.read().decode()


@contextmanager
def serving(command: list[str], ready: str) -> Iterator[str]:
    """The address of a program that listens on a free port of loopback, ended on the way out.
    `{port}` is filled in."""
    for _ in range(5):  # another may take the port between our asking and its listening
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            port = asked.getsockname()[1]
        process = subprocess.Popen(
            [part.format(port=port) for part in command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if _answers(f"http://127.0.0.1:{port}{ready}", process):
                yield f"http://127.0.0.1:{port}"
                return
        finally:
            process.kill()
            process.wait(30)
    pytest.fail(f"{command[0]} did not start")


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            get(url)
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
        else:
            return True
    return False


class Prometheus:
    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expr: str, at: float) -> list[dict[str, Any]]:
        return self._asked("query", query=expr, time=repr(at))

    def query_range(self, expr: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        return self._asked(
            "query_range", query=expr, start=repr(start), end=repr(end), step=repr(step)
        )

    def label_values(self, label: str, match: str, start: float, end: float) -> list[str]:
        return self._asked(
            f"label/{label}/values", **{"match[]": match, "start": repr(start), "end": repr(end)}
        )

    def _asked(self, what: str, **params: str) -> Any:
        answer = json.loads(get(f"{self.url}/api/v1/{what}", **params))
        assert answer["status"] == "success"
        return answer["data"]["result"] if "query" in params else answer["data"]


def backfill(text: str, folder: Path, longest: str = "2h") -> subprocess.CompletedProcess[str]:
    (folder / "metrics.txt").write_text(text)
    command = [
        program("promtool"),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        f"--max-block-duration={longest}",
        str(folder / "metrics.txt"),
        str(folder / "data"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@contextmanager
def prometheus_with(text: str, folder: Path, longest: str = "2h") -> Iterator[Prometheus]:
    """A Prometheus whose history is an OpenMetrics text, kept for a hundred years: the samples'
    dates are made up."""
    done = backfill(text, folder, longest)
    assert done.returncode == 0, done.stderr
    (folder / "prometheus.yml").write_text("global: {}\n")
    command = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y",
        "--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    with serving(command, "/-/ready") as url:
        yield Prometheus(url)
