"""A stand-in for a training job: matrix products on every core, a save now and then. Prints the
seconds of each step as JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import ckptcost

SIZE = 900


def main(seconds: float, every: int, directory: str, hooks: bool) -> None:
    rng = np.random.default_rng(1)
    weights, batch = rng.random((SIZE, SIZE), np.float32), rng.random((SIZE, SIZE), np.float32)
    state = rng.bytes(20_000_000)
    steps = []
    begun = time.perf_counter()
    until = begun + seconds
    number = 0
    while time.perf_counter() < until:
        begin = time.perf_counter()
        for _ in range(6):
            batch = np.tanh(weights @ batch * 1e-3)
        if hooks:
            ckptcost.step()
        steps.append(time.perf_counter() - begin)
        number += 1
        if every and number % every == 0:
            path = Path(directory) / f"step_{number}.pt"
            if hooks:
                with ckptcost.window(f"step {number}", path=path):
                    _save(path, state)
            else:
                _save(path, state)
            path.unlink()
    json.dump(
        {"steps_s": steps, "cpu_s": sum(os.times()[:2]), "wall_s": time.perf_counter() - begun},
        sys.stdout,
    )


def _save(path: Path, state: bytes) -> None:
    with path.open("wb") as file:
        file.write(state)
        os.fsync(file.fileno())


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "hooks")
