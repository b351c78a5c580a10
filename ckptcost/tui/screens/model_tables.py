"""The tiers by number of saves, in one quantity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ckptcost.present.amounts import (
    DASH,
    NEVER,
    count,
    duration,
    rate,
    share,
)
from ckptcost.present.grid import Grid, Head, Order, Row, Tone
from ckptcost.present.words import line_label
from ckptcost.tui.screens.model_runs import (
    Metric,
    TierRuns,
    one_of,
    total_of,
    undecided_of,
    unknown_of,
)
from ckptcost.tui.screens.tiers_view import never_ends

RUN = {"time": "whole run", "gpuh": "run loses"}
"""what the last column is called; amounts other than time are what checkpoints and failures add"""


def tiers_grid(
    metric: Metric,
    runs: Sequence[TierRuns],
    looked: TierRuns,
    best: TierRuns | None,
    base: TierRuns,
    asked: Sequence[float],
) -> Grid:
    """One save, all saves without failures or so many of them, and the whole run with failures:
    what `ckptcost model` prints."""
    timed = metric.id == "time"
    counts = [] if timed else sorted(float(each) for each in asked if each > 1)
    saves = [
        Head(f"x{each:g}", f"x{count(each)}", rank=4 if each != counts[-1] else 2)
        for each in counts
    ]
    if not asked and not timed:
        saves = [Head("saves", "all saves", rank=4)]
    heads = (
        Head("tier", "tier", left=True),
        Head("rate", "rate", rank=6),
        *([] if timed else [Head("stall", "stall", rank=3)]),
        Head("save", "one stall" if timed else "one save"),
        *saves,
        Head("every", "every", rank=5),
        Head("goodput", "goodput", rank=1),
        Head("run", RUN.get(metric.id, "run adds")),
    )
    rows = [
        _tier_row(
            metric, run, [head.id for head in heads], run is looked and len(runs) > 1, best, base
        )
        for run in runs
    ]
    title = (
        "time: one stall, a run with failures"
        if timed
        else f"{metric.unit}: one save, many, a run with failures"
    )
    return Grid(
        heads,
        rows,
        title + (f"; base {base.key}" if len(runs) > 1 else ""),
        _note(metric, runs),
        "no tier",
    )


def _tier_row(
    metric: Metric,
    run: TierRuns,
    columns: Sequence[str],
    marked: bool,
    best: TierRuns | None,
    base: TierRuns,
) -> Row:
    if run.found is None:
        nothing = len(columns) - 1
        return Row(
            run.key, (run.key, *(DASH,) * nothing), (run.key, *(None,) * nothing), "muted", marked
        )
    values, never = run.values, never_ends(run.case.outcome)
    total = total_of(run, metric)
    told: dict[str, tuple[str, Order]] = {
        "tier": (run.key, run.key),
        "rate": _pair(values["rate_bytes_per_s"], rate(values["rate_bytes_per_s"])),
        "stall": _pair(values["stall_s"], duration(values["stall_s"])),
        "every": _pair(values["interval_s"], duration(values["interval_s"])),
        "goodput": _pair(values["goodput"], share(values["goodput"])),
        "run": _pair(total, NEVER if never else metric.text(total)),
    }
    amounts = {"save": one_of(metric, values), "saves": run.of(f"saves_{metric.q.column}")}
    pairs = [
        (
            told[each]
            if each in told
            else _amount_cell(
                metric, amounts[each] if each in amounts else _so_many(metric, run, float(each[1:]))
            )
        )
        for each in columns
    ]
    tone: Tone = "bad" if never else "best" if run is best else "base" if run is base else ""
    return Row(
        run.key, tuple(cell for cell, _ in pairs), tuple(order for _, order in pairs), tone, marked
    )


def _amount_cell(metric: Metric, amount: float) -> tuple[str, Order]:
    return _pair(amount, metric.text(amount))


def _pair(value: float, text: str) -> tuple[str, Order]:
    return text, value if math.isfinite(value) else None


def _so_many(metric: Metric, run: TierRuns, saves: float) -> float:
    """Saves alone, without failures: as the run with that many makes them, where the scenario
    compares it."""
    one = next((found for count, found in run.others.items() if math.isclose(count, saves)), None)
    return (one_of(metric, run.values) if one is None else one) * saves


def _note(metric: Metric, runs: Sequence[TierRuns]) -> str:
    """Which lines are in no sum, because nobody knows them, and what that makes of differences."""
    said: dict[str, list[str]] = {}
    able = [run for run in runs if math.isfinite(total_of(run, metric))]
    for run in able:
        if lacking := unknown_of(run, metric):
            said.setdefault(", ".join(line_label(line) for line in lacking), []).append(run.key)
    parts = [
        lines + ("" if len(tiers) == len(able) else f" [{', '.join(tiers)}]")
        for lines, tiers in said.items()
    ]
    keys = undecided_of(able, metric)
    notes = [f"none is best: {' and '.join(keys)} is known for some of them only"] if keys else []
    return "; ".join(
        [*notes, *(["left out because unknown: " + " | ".join(parts)] if parts else [])]
    )
