"""A million bills: time, time a row, memory, and how many rows at once."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
from measure import (
    COMMAND,
    Row,
    differences,
    digits,
    figures,
    interleaved,
    process,
    ratios,
    said_by,
    shown,
    table,
)
from scenarios import PRESET, at_best, at_fixed, grid, preset

import ckptcost
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.optimum import one_plus_w0
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.core.sweep import CHUNK, chunks

MILLION = 1_000_000
SIZES = (100_000, MILLION, 4 * MILLION)
AT_ONCE = (1000, 2048, 4096, CHUNK, 16_384, 32_768, 65_536, 131_072, MILLION)
GPUS = "gpus=1024:102400:1024"
OVER = ("interval=1 min:1000 min:1 min", GPUS)
OVER_DERIVING = (
    "tier.write=1 GB/s:1000 GB/s:1 GB/s",
    GPUS,
)  # the read rate follows the write rate: each one is resolved by itself


def swept(scenario: Scenario, rows: int, at_once: int = CHUNK, totals: bool = False) -> float:
    """Go through a grid and keep one number of it."""
    wall_s = 0.0
    for chunk in chunks(scenario, grid(rows), at_once):
        wall_s += float(np.sum(chunk.outcome.wall_s))
        if totals:
            for quantity in FIELDS:
                chunk.outcome.run.total(quantity)
    return wall_s


def measure(rounds: int = 9) -> str:
    """All tables of this file."""
    return "\n".join(
        [
            figures(_million(rounds) + _command(rounds // 2)),
            _sizes(rounds // 2),
            _at_once(rounds // 2),
        ]
    )


def _million(rounds: int) -> list[Row]:
    """A million rows in this process, and what their optimum alone costs."""
    best, fixed = at_best(preset()), at_fixed(preset())
    rng = np.random.default_rng(1)
    eps = 10.0 ** rng.uniform(-6, 1, MILLION)
    cases = {
        "best": lambda: swept(best, MILLION),
        "fixed": lambda: swept(fixed, MILLION),
        "totals": lambda: swept(best, MILLION, totals=True),
        "optimum": lambda: [
            one_plus_w0(eps[start : start + CHUNK]) for start in range(0, MILLION, CHUNK)
        ],
    }
    try:
        from scipy.special import lambertw
    except ImportError:
        t = interleaved(cases, rounds)
        peer = []
    else:
        argument = -(1.0 - eps) / np.e
        t = interleaved({**cases, "scipy": lambda: 1.0 + lambertw(argument).real}, rounds)
        peer = [
            Row("`scipy.special.lambertw` on an array of 1,000,000", t["scipy"], "s"),
            Row("1,000,000 bills over that", ratios(t["best"], t["scipy"]), "x"),
        ]
    levels = preset("small-8b")
    two = interleaved(
        {
            "fixed": lambda: swept(at_fixed(levels), 100_000),
            "best": lambda: swept(at_best(levels), 10_000),
        },
        rounds // 2,
    )
    return [
        Row("1,000,000 bills, optimal interval, with failures", t["best"], "s", 1.5),
        Row("the same and totals of all quantities", t["totals"], "s"),
        Row("1,000,000 bills, fixed interval, with failures", t["fixed"], "s"),
        Row("what the optimum adds", differences(t["best"], t["fixed"]), "s"),
        Row("the optimum's own equation, 1,000,000 times (`one_plus_w0`)", t["optimum"], "s"),
        *peer,
        Row(
            "two tiers, fixed interval, a row",
            [seconds / 100_000 for seconds in two["fixed"]],
            "us",
            1.5,
        ),
        Row(
            "two tiers, optimal interval (a search), a row",
            [seconds / 10_000 for seconds in two["best"]],
            "us",
            1.5,
        ),
    ]


def _command(rounds: int) -> list[Row]:
    """100,000 rows as CSV, from the shell, and the part of it that computes them."""

    def words(over: tuple[str, ...]) -> list[str]:
        return [
            COMMAND,
            "sweep",
            "-s",
            PRESET,
            *(word for axis in over for word in ("--over", axis)),
            "-f",
            "csv",
        ]

    fixed = at_fixed(preset())
    t = interleaved(
        {
            "command": process(*words(OVER)),
            "deriving": process(*words(OVER_DERIVING)),
            "compute": lambda: swept(fixed, 100_000, totals=True),
            "frame": lambda: ckptcost.sweep(OVER, PRESET),
        },
        rounds,
    )
    rows = said_by(*words(OVER)).count("\n") - 1
    return [
        Row(
            f"`ckptcost sweep -f csv`, {rows:,} rows (intervals, GPUs) end to end",
            t["command"],
            "s",
        ),
        Row("the same, rows a second", [rows / seconds for seconds in t["command"]], "rows/s"),
        Row(
            f"`ckptcost sweep -f csv`, {rows:,} rows (write rates, GPUs) end to end",
            t["deriving"],
            "s",
        ),
        Row("`ckptcost.sweep(...)`, intervals and GPUs as a pandas frame", t["frame"], "s"),
        Row("as many bills and totals computed, nothing written", t["compute"], "s"),
    ]


def _in_a_process(
    rounds: int, cases: list[tuple[int, int]]
) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """(seconds, bytes that the peak of memory grew) of grids in processes of their own, by (rows,
    rows at once)."""
    found: dict[tuple[int, int], list[tuple[float, float]]] = {case: [] for case in cases}
    for _ in range(rounds):
        for rows, at_once in cases:
            seconds, grown = said_by(
                sys.executable, __file__, "alone", str(rows), str(at_once)
            ).split()
            found[rows, at_once].append((float(seconds), float(grown)))
    return found


def _memory(field: str) -> float:
    """Bytes of this process now (VmRSS) or at its peak (VmHWM).

    Linux starts getrusage's ru_maxrss at what the parent held when it made the child, so a child of
    a big process seems not to grow at all; VmHWM starts at 0.
    """
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(lines[field].split()[0]) * 1024


def alone(rows: int, at_once: int) -> str:
    """One grid in this process."""
    best = at_best(preset())
    swept(best, 1000)
    before, start = _memory("VmRSS"), time.perf_counter()
    swept(best, rows, at_once)
    return f"{time.perf_counter() - start} {_memory('VmHWM') - before}"


def _sizes(rounds: int) -> str:
    """More rows: linear in time, constant in memory."""
    found = _in_a_process(rounds, [(rows, CHUNK) for rows in SIZES])
    lines = []
    for (rows, _), samples in found.items():
        a_row = [seconds / rows for seconds, _ in samples]
        lines.append(
            (
                f"{rows:,}",
                shown([seconds for seconds, _ in samples], "s")[0],
                shown(a_row, "us")[0],
                shown(a_row, "us")[1],
                shown([grown for _, grown in samples], "MB")[0],
            )
        )
    return table(("rows", "median", "a row", "quartiles", "growth of the memory's peak"), lines)


def _at_once(rounds: int) -> str:
    """Rows in a chunk: fewer pay numpy's overhead more often, more leave the processor's caches."""
    found = _in_a_process(rounds, [(MILLION, at_once) for at_once in AT_ONCE])
    usual = [seconds for seconds, _ in found[MILLION, CHUNK]]
    lines = []
    for (_, at_once), samples in found.items():
        over = ratios([seconds for seconds, _ in samples], usual)
        name = f"{at_once:,}" + (
            " (`CHUNK`)" if at_once == CHUNK else " (no chunks)" if at_once == MILLION else ""
        )
        lines.append(
            (
                name,
                shown([seconds for seconds, _ in samples], "s")[0],
                f"{digits(median(over))} x",
                shown(over, "x")[1],
                shown([grown for _, grown in samples], "MB")[0],
            )
        )
    return table(
        (
            "rows at once",
            "1,000,000 rows",
            "over `CHUNK`",
            "quartiles",
            "growth of the memory's peak",
        ),
        lines,
    )


if __name__ == "__main__":
    print(alone(int(sys.argv[2]), int(sys.argv[3])) if sys.argv[1:2] == ["alone"] else measure())
