"""Parts of a few rows, written down by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pytest

from ckptcost.first.fleet import frames
from ckptcost.first.fleet.part import FILES, HEADS, NODES, SUMS, WINDOWS, StorePart

DAY = "2026-11-02"


def instant(seconds: float, day: str = DAY) -> int:
    """Unix ns, so many seconds into the day."""
    return int(np.datetime64(day, "ns").astype(np.int64)) + round(seconds * 1e9)


class Written:
    """Rows one by one; what is not said is as if nothing were wrong."""

    instant = staticmethod(instant)
    day = DAY

    def __init__(self) -> None:
        self.heads: list[dict[str, Any]] = []
        self.windows: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []

    def head(
        self, job: str = "a", run: str = "r1", host: str = "n1", day: str = DAY, **more: Any
    ) -> Written:
        usual = {
            "labels": "{}",
            "gpus": 8.0,
            "nodes": 0,
            "node_names": "",
            "simulated": True,
            "began_ns": instant(0, day),
            "until_ns": instant(3600, day),
            "run_began_ns": 0,
            "over": False,
            "exit_code": nan,
            "covered_s": 3600.0,
            "gpu_total_j": nan,
            "host_total_j": nan,
            "train_gpu_w": 4000.0,
            "train_host_w": 1000.0,
            "step_s": 1.0,
            "last_kept_ns": 0,
            "last_mark_ns": 0,
            "offset_s": 0.0,
            "offset_unsure_s": 0.0,
            "offset_windows": 1,
        }
        self.heads.append({"job": job, "run": run, "host": host, "day": day, **usual, **more})
        return self

    def window(
        self, job: str = "a", run: str = "r1", day: str = DAY, at_s: float = 0.0, **more: Any
    ) -> Written:
        """Joules as a value or as (value, low, high)."""
        usual: dict[str, Any] = {
            "key": len(self.windows),
            "label": f"step {len(self.windows)}",
            "load": False,
            "failed": False,
            "begin_ns": instant(at_s, day),
            "stall_s": 10.0,
            "drain_s": 0.0,
            "bytes": 1e9,
            "files": 2.0,
            "nodes": 1,
            "own_gpu_s": 80.0,
            "wait_gpu_s": 0.0,
            "slowest": "n1",
        }
        given = {**usual, **more}
        for line in (*SUMS, "wait"):
            joules = given.pop(line, 0.0)
            value, low, high = joules if isinstance(joules, tuple) else (joules,) * 3
            given |= {f"{line}_j": value, f"{line}_low_j": low, f"{line}_high_j": high}
            given.setdefault(f"{line}_nodes", given["nodes"] if value == value else 0)
        self.windows.append({"job": job, "run": run, "day": day, **given})
        return self

    def node(
        self,
        job: str = "a",
        run: str = "r1",
        host: str = "n1",
        day: str = DAY,
        windows: int = 1,
        **more: Any,
    ) -> Written:
        usual: dict[str, Any] = {
            "windows": windows,
            "saves": windows,
            "slowest": 0,
            "stall_s": 10.0 * windows,
            "bytes": 1e9 * windows,
        }
        usual |= dict.fromkeys(
            ("own_gpu_s", "wait_gpu_s", "wait_j", "blamed_gpu_s", "blamed_j"), 0.0
        )
        usual |= {f"{line}_j": 0.0 for line in SUMS} | {f"{line}_windows": windows for line in SUMS}
        self.nodes.append({"job": job, "run": run, "host": host, "day": day, **usual, **more})
        return self

    def file(
        self, path: str, code: str, job: str = "a", run: str = "", host: str = "", day: str = DAY
    ) -> Written:
        self.files.append(
            {
                "path": path,
                "job": job,
                "run": run,
                "host": host,
                "day": day,
                "code": code,
                "text": "",
                "rows": nan,
            }
        )
        return self

    def part(self) -> StorePart:
        def made(
            names: tuple[str, ...], rows: list[dict[str, Any]], whole: tuple[str, ...] = ()
        ) -> Any:
            return frames.typed_columns(
                names, {name: [row[name] for row in rows] for name in names}, whole
            )

        pieces = frames.pieces(
            files=made(FILES, self.files),
            heads=made(HEADS, self.heads),
            windows=made(WINDOWS, self.windows),
            nodes=made(NODES, self.nodes, ("slowest",)),
        )
        return frames.put_together([pieces])


@pytest.fixture
def written() -> Callable[[], Written]:
    return Written
