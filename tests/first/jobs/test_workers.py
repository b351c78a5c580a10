"""Several processes end with their parent, however it ends, and say nothing of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = ["simulate", "-s", "llama31-405b-16k", "--runs", "3000000", "--workers", "2"]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_they_end_with_their_parent(number, tmp_path):
    file = tmp_path / "report.txt"
    running = subprocess.Popen(
        [sys.executable, "-m", "ckptcost", *COMMAND, "-o", str(file)],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30.0
    while len(started := children_of(running.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)  # until they are at work
    started = children_of(running.pid)
    assert len(started) >= 2
    os.kill(running.pid, number)
    code = running.wait(timeout=15)
    assert (
        code == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}[number]
    )
    while any(map(alive, started)) and time.monotonic() < deadline + 15.0:
        time.sleep(0.05)
    assert [child for child in started if alive(child)] == []
    with running.stderr:
        assert "Traceback" not in running.stderr.read()
    assert list(tmp_path.iterdir()) == []
