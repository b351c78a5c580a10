"""The Pareto front as tables: all of it for programs, its ends and a few points between for
people."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckptcost.jobs.optimize import Candidates, Optimum
from ckptcost.report.studies.run_columns import AMOUNTS, INTERVAL, amounts_of
from ckptcost.report.study import Column, Table

_BETWEEN = 2
"""points shown between the ends of one tier and mode, those that are somebody's optimum not
counted"""


def front_tables(found: Optimum) -> list[Table]:
    """`front_ends` is shown where tiers or modes are compared; `front` and `candidates` are for
    JSON and CSV."""
    columns = (
        Column("tier", "tier"),
        Column("mode", "mode"),
        Column("best_for", "best for", "", "the objective whose optimum it is"),
        INTERVAL,
        *AMOUNTS,
    )
    judged = Column(
        "on_front",
        "on the front",
        "bool",
        "no other candidate is at least as good in everything and better in something",
    )
    all_rows = [_rows(each, amounts_of(each.outcome)) for each in found.front.candidates]
    on_front = [[row for row in rows if row["on_front"]] for rows in all_rows]
    over = ", ".join("goodput" if each == "time" else each for each in found.front.objectives)
    note = f"left out: {', '.join(found.front.left_out)}" if found.front.left_out else ""
    title = f"The front over {over}: nothing beats these in all of them"
    bare = (
        tuple(column._replace(shown=column.shown and column.id != "mode") for column in columns)
        if _one_mode(found)
        else columns
    )
    return [
        Table(
            "front_ends",
            title,
            bare,
            [row for rows in on_front for row in _thinned(rows)],
            note,
            shown=len(found.options) > 1,
        ),
        Table(
            "front", title, columns, [row for rows in on_front for row in rows], note, shown=False
        ),
        Table(
            "candidates",
            "Every point that was held against the others",
            (*columns, judged),
            [row for rows in all_rows for row in rows],
            shown=False,
        ),
    ]


def _one_mode(found: Optimum) -> bool:
    return len({option.mode for option in found.options}) == 1


def _rows(each: Candidates, amounts: dict[str, Any]) -> list[dict[str, Any]]:
    """By interval, the shortest first; the marks are the compared objectives only."""
    length = len(each.interval_s)
    wide = {
        name: np.broadcast_to(np.asarray(value, dtype=float), (length,)).tolist()
        for name, value in amounts.items()
    }
    return [
        {
            "tier": each.option.tier_id,
            "mode": each.option.mode,
            "best_for": " ".join(each.best_for[i]),
            "interval": float(each.interval_s[i]),
            **{
                name: None if values[i] != values[i] else values[i] for name, values in wide.items()
            },
            "on_front": bool(each.on_front[i]),
        }
        for i in range(length)
    ]


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Both ends, every optimum, and a few between."""
    if not rows:
        return []
    kept = {0, len(rows) - 1, *(i for i, row in enumerate(rows) if row["best_for"])}
    kept |= {round(i * (len(rows) - 1) / (_BETWEEN + 1)) for i in range(1, _BETWEEN + 1)}
    return [rows[i] for i in sorted(kept)]
