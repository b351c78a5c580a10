"""Processor time of the planning commands beside the first edition's, and of a large grid."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import ENVIRONMENT, Row, figures, ratios

PRESET = "llama31-405b-16k"
PAIRS = {
    "`model`": (["model"], ["model"]),
    f"`model {PRESET}`": (["model", PRESET], ["model", "-s", PRESET]),
    "`model -f json`": (["model", "-f", "json"], ["model", "-f", "json"]),
    f"`interval {PRESET}`": (["interval", PRESET], ["optimize", "-s", PRESET]),
    f"`compare {PRESET} mode=async`": (
        ["compare", PRESET, "mode=async"],
        ["compare", "-s", PRESET, "--with", "mode=async"],
    ),
    f"`simulate {PRESET}`": (["simulate", PRESET], ["simulate", "-s", PRESET]),
}
"""what is shown, the words of today's command, and those of the first edition's"""
SECOND = [sys.executable, "-m", "ckptcost"]
FIRST = [sys.executable, "-c", "from ckptcost.first.cli.main import main; main()"]
GRID = [
    PRESET,
    "--over",
    "tier.write=4GB/s:400GB/s:4GB/s",
    "--over",
    "policy.interval=60s:60000s:60s",
]


def processor(*words: str) -> float:
    """User and system seconds of a process, its output thrown away."""
    child = subprocess.Popen(
        words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)}: exit {child.returncode}")
    return used.ru_utime + used.ru_stime


def measure(rounds: int = 11) -> str:
    """Both editions in turns, and a grid of 100,000 plans written as CSV."""
    help_, one, document = [], [], []
    pairs: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in PAIRS}
    for number in range(rounds):
        help_.append(processor(*SECOND, "--help"))
        one.append(processor(*SECOND, "model", PRESET))
        document.append(processor(*SECOND, "model", PRESET, "-f", "json"))
        for name, (second, first) in PAIRS.items():
            both = [(SECOND, second, 0), (FIRST, first, 1)]
            for start, words, which in both[:: -1 if number % 2 else 1]:
                pairs[name][which].append(processor(*start, *words))
    rows = [
        Row("`--help`", help_, "ms", 60),
        Row(f"`model {PRESET}`", one, "ms", 350),
        Row("the same as JSON over text", ratios(document, one), "x", 1.3),
        *(
            Row(f"{name} over the first edition's", ratios(*found), "x", 0.8)
            for name, found in pairs.items()
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "grid.csv")
        taken = [processor(*SECOND, "model", *GRID, "-o", out) for _ in range(min(rounds, 3))]
        with Path(out).open(encoding="utf-8") as file:
            plans = sum(1 for _ in file) - 1
    rows.append(Row(f"a grid of {plans:,} plans to CSV", taken, "s", 8))
    return figures(rows)


if __name__ == "__main__":
    print(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
