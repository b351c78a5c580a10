"""Shared by the tests of the first edition: the command line in-process, a clean environment."""

from __future__ import annotations

import os

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # before numpy: threads of every worker would wait for each other on the same cores

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

# some containers set it: then every one of the hundreds of interpreters started here compiles the
# package anew, and pytest these tests
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# a shell starts what it puts in the background with SIGINT ignored, nohup with SIGHUP; what tests
# start would inherit it
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# the same examples each time, so that a failure is the change's; HYPOTHESIS_PROFILE=search looks
# for new ones
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

EPOCH = "1790000000"
"""generated_at of every document a test makes"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No user overlay, no runs of the user's, no other catalogue, no job around us, a fixed
    date."""
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path_factory.getbasetemp() / "no-overlay"))
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path_factory.getbasetemp() / "no-runs"))
    for name in ("CKPTCOST", "CKPTCOST_SOCKET", "CKPTCOST_RECORD", "CKPTCOST_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("CKPTCOST_HOME", raising=False)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`cli("model", "-f", "json")` runs the command in this process."""
    from ckptcost.first.cli.main import main

    def run(*words: str) -> Ran:
        capsys.readouterr()
        try:
            code = main(list(words))
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def shell() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`shell("model")` runs a fresh interpreter; keywords go to subprocess.run."""

    def run(
        *words: str, env: dict[str, str] | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        more = {"capture_output": True, "timeout": 60, "text": True, **more}
        return subprocess.run(
            [sys.executable, "-m", "ckptcost.first", *words],
            env={**os.environ, **(env or {})},
            check=False,
            **more,
        )

    return run
