"""Interleaved timing, and rows of a table that say a figure, its spread and its budget."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Samples = dict[str, list[float]]

# a setting of the shell that stops Python from keeping compiled files would be measured as a slow
# start
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
COMMAND = str(Path(sys.executable).with_name("ckptcost"))

UNITS = {
    "ms": 1e3,
    "us": 1e6,
    "s": 1.0,
    "x": 1.0,
    "MB": 1e-6,
    "kB": 1e-3,
    "rows/s": 1.0,
    "%": 100.0,
    "kB/s": 1e-3,
    "GB/s": 1e-9,
}


class Row(NamedTuple):
    """One figure: samples in seconds, bytes or plain ratios, shown in `unit`."""

    what: str
    samples: Sequence[float]
    unit: str
    budget: float | None = None
    """in the unit shown"""


def interleaved(cases: Mapping[str, Callable[[], object]], rounds: int, loops: int = 1) -> Samples:
    """Seconds a call of every case, A B C A B C ...; one round is thrown away first, and every
    other one runs backwards."""
    samples: Samples = {name: [] for name in cases}
    for number in range(-1, rounds):
        for name in list(cases)[:: -1 if number % 2 else 1]:
            start = time.perf_counter()
            for _ in range(loops):
                cases[name]()
            if number >= 0:
                samples[name].append((time.perf_counter() - start) / loops)
    return samples


def process(*words: str) -> Callable[[], object]:
    """A process to its end, its output thrown away."""
    return lambda: subprocess.run(
        words, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def said_by(*words: str) -> str:
    """What a process prints."""
    return subprocess.run(
        words, check=True, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ).stdout


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Round by round, so that what slows the machine for a while slows both."""
    return [a / b for a, b in zip(above, below, strict=True)]


def differences(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(above, below, strict=True)]


def digits(value: float) -> str:
    """Three digits that matter."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def shown(samples: Sequence[float], unit: str) -> tuple[str, str]:
    """(median, range between the quartiles) in a unit."""
    values = [sample * UNITS[unit] for sample in samples]
    if len(values) == 1:
        return f"{digits(values[0])} {unit}", ""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{digits(statistics.median(values))} {unit}", f"{digits(low)} to {digits(high)}"


def verdict(row: Row) -> tuple[str, str]:
    """(the budget, whether the median keeps it)."""
    if row.budget is None:
        return "", ""
    share = statistics.median(row.samples) * UNITS[row.unit] / row.budget
    return (
        f"{row.budget:g} {row.unit}",
        "met" if share <= 1 else f"**miss**, {share:.2f} times the budget",
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, all columns but the first to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows]) + "\n"


def figures(rows: Sequence[Row]) -> str:
    """Rows with their medians, spreads and budgets."""
    head = ("what", "median", "quartiles", "budget", "")
    return table(head, [(row.what, *shown(row.samples, row.unit), *verdict(row)) for row in rows])
