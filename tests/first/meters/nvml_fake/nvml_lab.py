"""One process on the fake NVML for many tests: it starts afresh for each of them, and its clock is
set by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import build_fake

WORKER = Path(__file__).with_name("nvml_worker.py")


class Lab:
    def __init__(self, folder: Path) -> None:
        self.library = build_fake.build(folder)
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the lab
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=build_fake.environment(self.library),
        )

    def walk(
        self,
        settings: str = "",
        times_s: Any = (0.0,),
        env: dict[str, str] | None = None,
        **more: Any,
    ) -> SimpleNamespace:
        """See nvml_worker.walk. `column` gives one channel's values by domain and quantity."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"settings": settings, "env": env or {}, "times_s": list(times_s), **more}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._complaints.seek(0)
            raise AssertionError(f"the worker died: {self._complaints.read()[-3000:]}")
        said = SimpleNamespace(**json.loads(line))
        said.names = [f"{channel['domain']} {channel['quantity']}" for channel in said.channels]
        said.by = dict(zip(said.names, said.channels, strict=True))
        said.column = lambda name: [
            None if row is None else row[said.names.index(name)] for row in said.rows
        ]
        return said

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(10)
        self._complaints.close()
