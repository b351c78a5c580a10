"""What `ckptcost run` costs a training step: the same job bare, wrapped, and wrapped with a watched
folder and hooks, in turns.

The job keeps every core busy, so whatever the recorder takes is taken from it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from measure import COMMAND, ENVIRONMENT, Row, figures, ratios

import ckptcost

WORKER = str(Path(__file__).with_name("wrapped_worker.py"))
SECONDS, EVERY, ROUNDS, SLICES = 10.0, 40, 6, 5
CALLS = 5000


class Ran(NamedTuple):
    step_s: float
    """median"""
    taken: float
    """processor time besides the job's own, of what all cores could have given while it ran"""


def _cpu_s() -> float:
    return sum(os.times()[2:4])


def _ran(directory: str, wrapped: tuple[str, ...], hooks: bool) -> Ran:
    cores = str(len(os.sched_getaffinity(0)))
    before_s = _cpu_s()
    environ = {
        **ENVIRONMENT,
        "OPENBLAS_NUM_THREADS": cores,
        "OMP_NUM_THREADS": cores,
        "CKPTCOST_RUNS": f"{directory}/runs",
    }
    words = [
        *wrapped,
        sys.executable,
        WORKER,
        str(SECONDS),
        str(EVERY),
        directory,
        "hooks" if hooks else "plain",
    ]
    done = subprocess.run(
        words, env=environ, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    told = json.loads(done.stdout)
    steps = told["steps_s"][
        len(told["steps_s"]) // SLICES :
    ]  # the first are of cold caches and a clock that speeds up
    taken_s = _cpu_s() - before_s - told["cpu_s"]
    return Ran(statistics.median(steps), taken_s / (told["wall_s"] * int(cores)))


def _call_s() -> list[float]:
    """A window's three calls while somebody listens, in a process of its own."""
    program = (
        "import ckptcost, json, time\n"
        "times = []\n"
        f"for n in range({CALLS}):\n"
        "    begin = time.perf_counter()\n"
        "    with ckptcost.window(f'step {n}'):\n"
        "        pass\n"
        "    times.append((time.perf_counter() - begin) / 2)\n"
        "    time.sleep(0.0002)\n"
        "print(json.dumps(times))\n"
    )
    with tempfile.TemporaryDirectory() as directory:
        environ = {**ENVIRONMENT, "CKPTCOST_RUNS": directory}
        words = [COMMAND, "run", "-q", "--settle", "0 s", "--", sys.executable, "-c", program]
        done = subprocess.run(
            words,
            env=environ,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    return json.loads(done.stdout)


def _off_s() -> list[float]:
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        with ckptcost.window("step"):
            pass
        times.append((time.perf_counter() - begin) / 2)
    return times


def measure(rounds: int = ROUNDS) -> str:
    samples: dict[str, list[Ran]] = {"bare": [], "wrapped": [], "watched": []}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
        run = (COMMAND, "run", "-q", "--settle", "0 s")
        cases = {
            "bare": ((), False),
            "wrapped": ((*run, "--"), False),
            "watched": ((*run, "--watch", directory, "--"), True),
        }
        for number in range(rounds):
            for name in list(cases)[:: -1 if number % 2 else 1]:
                wrapped, hooks = cases[name]
                samples[name].append(_ran(directory, wrapped, hooks))
    steps = {name: [ran.step_s for ran in rans] for name, rans in samples.items()}
    longer = {
        name: [r - 1.0 for r in ratios(steps[name], steps["bare"])]
        for name in ("wrapped", "watched")
    }
    taken = {
        name: [ran.taken - bare.taken for ran, bare in zip(rans, samples["bare"], strict=True)]
        for name, rans in samples.items()
    }
    calls, off = sorted(_call_s()), sorted(_off_s())
    rows = [
        Row("a step of the job alone", steps["bare"], "ms"),
        Row("`ckptcost run`: a step over one of the job alone", longer["wrapped"], "%", 1.0),
        Row("`ckptcost run --watch` and hooks: the same", longer["watched"], "%", 1.0),
        Row(
            "`ckptcost run`: processor time of all cores, its start included", taken["wrapped"], "%"
        ),
        Row("`ckptcost run --watch` and hooks: the same", taken["watched"], "%"),
        Row("one call of a hook, median", calls, "us", 50.0),
        Row("one call of a hook, 99th percentile", [calls[len(calls) * 99 // 100]], "us"),
        Row("one call of a hook that nobody listens to", off, "us"),
    ]
    return figures(rows)
