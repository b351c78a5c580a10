"""Simulated runs: seconds and memory of ten thousand, of ten times as many, and what numpy alone
needs for as many exponentials."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from measure import Row, figures, ratios, said_by
from scenarios import PRESET

RUNS = 10_000
FAILURES = 419
"""a run of the preset, 54 days on 16,384 GPUs"""


def measure(rounds: int = 9) -> str:
    """The table of this file: every sample from a process of its own."""
    cases = {
        "one": ("simulate", RUNS, 1),
        "two": ("simulate", RUNS, 2),
        "ten": ("simulate", 10 * RUNS, 1),
        "numpy": ("numpy", RUNS, 1),
    }
    found: dict[str, list[list[float]]] = {name: [] for name in cases}
    for number in range(max(rounds // 2, 3)):
        for name in list(cases)[:: -1 if number % 2 else 1]:
            words = [str(word) for word in cases[name]]
            found[name].append(
                [float(word) for word in said_by(sys.executable, __file__, "alone", *words).split()]
            )
    seconds, peak, failures = (
        {name: [sample[i] for sample in samples] for name, samples in found.items()}
        for i in range(3)
    )
    return figures(
        [
            Row(
                f"{RUNS:,} runs, {failures['one'][0]:.0f} failures each, one process",
                seconds["one"],
                "s",
                1.0,
            ),
            Row("the same in two processes, their start included", seconds["two"], "s", 1.0),
            Row(
                "peak memory of that, one process, numpy and ckptcost included",
                peak["one"],
                "MB",
                500.0,
            ),
            Row(f"{10 * RUNS:,} runs", seconds["ten"], "s"),
            Row("ten times the runs, in time", ratios(seconds["ten"], seconds["one"]), "x"),
            Row("ten times the runs, in peak memory", ratios(peak["ten"], peak["one"]), "x"),
            Row(f"numpy draws and logs {RUNS:,} x {FAILURES} exponentials", seconds["numpy"], "s"),
            Row("the runs over that", ratios(seconds["one"], seconds["numpy"]), "x"),
            Row(
                "a failure of one run",
                [s / (RUNS * f) for s, f in zip(seconds["one"], failures["one"], strict=True)],
                "us",
            ),
        ]
    )


def alone(what: str, runs: int, workers: int) -> str:
    """(seconds, peak of memory, failures a run) in this process."""
    if what == "numpy":
        rng, start = np.random.default_rng(1), time.perf_counter()
        for _ in range(FAILURES):
            np.log(rng.random(runs)).sum()
        return f"{time.perf_counter() - start} {_peak_bytes()} {FAILURES}"
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.simulate import simulate
    from ckptcost.first.jobs.walks import CHUNK, SimulationRequest
    from ckptcost.first.layers import layers_for
    from ckptcost.first.scenario import resolve

    catalog = Catalog()
    resolved = resolve(catalog, layers_for(catalog, PRESET, None, []))
    simulate(resolved, SimulationRequest(10))
    start = time.perf_counter()
    found = simulate(
        resolved, SimulationRequest(runs, workers=workers, chunk=min(CHUNK, runs // workers))
    )
    return f"{time.perf_counter() - start} {_peak_bytes()} {found.summary('failures').mean}"


def _peak_bytes() -> float:
    """VmHWM, which unlike ru_maxrss does not start at the parent's size."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(lines["VmHWM"].split()[0]) * 1024


if __name__ == "__main__":
    print(
        alone(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        if sys.argv[1:2] == ["alone"]
        else measure()
    )
