"""A probe's surroundings under test: a place of known size, slow writes, no pauses, and runs of its
own."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from ckptcost.first.jobs import probe
from ckptcost.first.savers import buffered
from ckptcost.first.tui.screens import probe_plan
from ckptcost.first.tui.screens.probe_plan import DRIVE, Spot

DISK = Spot(".", "", "xfs", "nvme0n1 (A Drive)", DRIVE, 400e9, 1e12, 64e9)


def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to probe; runs and temporary files beside it, no pauses."""
    place = tmp_path / "place"
    place.mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr(probe_plan, "PAUSE_S", 0.0)
    monkeypatch.setattr(probe, "MARGIN_S", 0.05)
    return place


def slow_writes(
    monkeypatch: pytest.MonkeyPatch, seconds: float, full_after: int = 10**9
) -> list[int]:
    """Each write of the posix engine takes so long; after so many the disk is full. Counts them."""
    counted: list[int] = []
    write = buffered._write

    def slowly(fd, part, tally):  # type: ignore[no-untyped-def]
        counted.append(len(part))
        if len(counted) > full_after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        time.sleep(seconds)
        return write(fd, part, tally)

    monkeypatch.setattr(buffered, "_write", slowly)
    return counted
