"""A calibration as a study: the figures with their intervals, what each save left of them, and what
was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcost.core.fit import TimeFit
from ckptcost.jobs.calibrate import Calibration, Parameter
from ckptcost.jobs.calibrate_rounds import FitRound
from ckptcost.report.studies.calibrate_words import (
    LABELS,
    findings,
    next_command,
    warnings,
    why_text,
)
from ckptcost.report.studies.run_columns import plain
from ckptcost.report.study import ROW_UNIT, Column, Study, Table

_UNIT = {
    "bytes_per_s": ("bytes_per_s", 1.0),
    "s": ("s", 1.0),
    "w": ("W", 1.0),
    "j_per_byte": ("J/GB", 1e9),
    "files_per_s": ("1", 1.0),
}
"""how a row shows a base unit, and times what"""
_SHARES = ("rate_spread", "slowdown")
MOST_SHOWN = 12
MODES = "sync; early: safe only after training went on; async: written in the background; load"


def study_of(c: Calibration, kinds: Sequence[str], files: Sequence[str] = ()) -> Study:
    """`kinds` of catalogue entries that it makes; `files` that were written, none where it was only
    shown."""
    return Study(
        kind="calibration",
        title=f"{'Calibrated' if files else 'Would be calibrated'} as {c.id}",
        about=[
            (
                f"From {_runs(c)}. Seconds = fixed + bytes/rate, by least squares on durations; low"
                " and high hold the truth 95 times in 100."
            ),
            "Watts and joules are the machine's own: no PUE.",
        ],
        question={
            "as": c.id,
            "name": c.name,
            "runs": [origin.run for origin in c.origins],
            "written": bool(files),
        },
        tables=[_parameters(c), _rounds(c), *_left(c), _origins(c)],
        findings=[*findings(c), *_ends(c, kinds, files)],
        warnings=warnings(c),
        simulated=c.simulated,
    )


def _runs(c: Calibration) -> str:
    names = list(dict.fromkeys(origin.run[:8] for origin in c.origins))
    hosts = list(dict.fromkeys(origin.host for origin in c.origins))
    return f"{'run' if len(names) == 1 else 'runs'} {', '.join(names)} of {', '.join(hosts)}"


def _ends(c: Calibration, kinds: Sequence[str], files: Sequence[str]) -> list[str]:
    if not kinds:
        return [
            "Nothing of it makes a catalogue entry: a tier needs a write rate, a cluster the watts"
            " of a GPU in training."
        ]
    if not files:
        return [
            f"Nothing was written. It would be {' and '.join(f'a {kind}' for kind in kinds)} of the"
            " catalogue."
        ]
    return [f"Written: {', '.join(files)}.", f"Next: `{next_command(c, kinds)}`"]


def _unit(parameter: Parameter) -> tuple[str, float]:
    return _UNIT.get(parameter.unit, ("share" if parameter.id in _SHARES else "1", 1.0))


def _parameters(c: Calibration) -> Table:
    rows: list[dict[str, Any]] = []
    for parameter in c.parameters:
        estimate, (unit, times) = parameter.estimate, _unit(parameter)
        low, high = (
            None if end is None else plain(end * times) for end in (estimate.low, estimate.high)
        )
        rows.append(
            {
                "what": LABELS[parameter.id],
                "id": parameter.id,
                "value": plain(estimate.value * times),
                "low": low,
                "high": high,
                "n": float(estimate.n),
                "unit": unit,
                "why": estimate.why,
                "path": parameter.path,
                "note": parameter.note,
                "boundary": parameter.boundary,
                "basis": ("assumed" if c.simulated else parameter.basis) if estimate.known else "",
                "reason": why_text(estimate.why) if estimate.why else "",
            }
        )
    columns = (
        Column("what", "figure"),
        Column("value", "value", ROW_UNIT),
        Column("low", "low", ROW_UNIT, "95 %"),
        Column("high", "high", ROW_UNIT, "95 %; null beside a low end: no upper end"),
        Column("n", "of", "count", "rounds it rests on"),
        Column(
            "path", "key", meaning="where the model takes it from; empty: it has no place for it"
        ),
        Column("why", "why", shown=False),
        Column("id", "id", shown=False),
        Column("unit", "unit", shown=False),
        Column("note", "note", shown=False),
        Column("boundary", "boundary", shown=False),
        Column("basis", "basis", shown=False),
        Column(
            "reason", "reason", meaning="why the value or its interval is not there", shown=False
        ),
    )
    return Table("parameters", "What the model asks for", columns, rows)


def _rounds(c: Calibration) -> Table:
    rows = [
        _row(r, fit, n)
        for fit, rounds in ((c.writes, c.saves), (c.reads, c.loads))
        for n, r in enumerate(rounds)
    ]
    columns = (
        Column("window", "checkpoint"),
        Column("of", "of", meaning=MODES),
        Column("bytes", "bytes", "bytes"),
        Column("measured", "measured", "s"),
        Column("fitted", "fitted", "s"),
        Column("difference", "difference", "s"),
        Column("off", "of fitted", "share"),
        Column("stall", "stall", "s", "by marks"),
        Column("by_steps", "by steps", "s", "how much longer the steps took that it touches"),
        Column("gpus", "GPU power", meaning="whether it confirms the stall"),
        Column("by_steps_low", "low", "s", shown=False),
        Column("by_steps_high", "high", "s", shown=False),
        Column("by_steps_why", "why not", shown=False),
        Column("drop", "falls by", "share", "GPU power in the stall", shown=False),
        Column("how", "how", meaning="the evidence for the instant that it was safe", shown=False),
        Column(
            "unsure", "unsure", "s", "how long before that it was last seen not to be", shown=False
        ),
        Column("gpus_why", "why", shown=False),
        Column("files", "files", "count", shown=False),
        Column("run", "run", shown=False),
    )
    asked = {
        "by_steps": any(row["by_steps"] is not None for row in rows),
        "gpus": any(row["gpus"] for row in rows),
    }
    shown = tuple(
        column._replace(shown=column.shown and asked.get(column.id, True)) for column in columns
    )
    return Table(
        "rounds", "Saves and loads, measured and fitted", shown, rows, shown=len(rows) <= MOST_SHOWN
    )


def _row(r: FitRound, fit: TimeFit, n: int) -> dict[str, Any]:
    off_s, by_steps = fit.residuals_s[n], r.by_steps
    return {
        "window": r.window.name,
        "of": r.mode,
        "bytes": r.bytes,
        "measured": r.seconds,
        "fitted": r.seconds - off_s,
        "difference": off_s,
        "off": off_s / (r.seconds - off_s),
        "stall": plain(r.stall_s),
        "by_steps": plain(by_steps.value),
        "by_steps_low": by_steps.low,
        "by_steps_high": by_steps.high,
        "by_steps_why": by_steps.why,
        "gpus": "" if r.dip is None else r.dip.verdict,
        "gpus_why": "" if r.dip is None else r.dip.why,
        "how": r.how,
        "unsure": plain(r.unsure_s),
        "drop": None if r.dip is None else plain(r.dip.drop_fraction),
        "files": plain(r.files),
        "run": r.run,
    }


def _left(c: Calibration) -> list[Table]:
    if not c.left:
        return []
    rows = [
        {
            "window": one.window,
            "of": one.of,
            "why": one.why,
            "reason": why_text(one.why),
            "run": one.run,
        }
        for one in c.left
    ]
    columns = (
        Column("window", "checkpoint"),
        Column("of", "of"),
        Column("why", "why"),
        Column("reason", "because"),
        Column("run", "run", shown=False),
    )
    return [Table("left", "Left out", columns, rows, shown=len(rows) <= MOST_SHOWN)]


def _origins(c: Calibration) -> Table:
    rows = [
        {
            "run": o.run,
            "host": o.host,
            "date": o.date,
            "saves": float(o.saves),
            "loads": float(o.loads),
        }
        for o in c.origins
    ]
    columns = (
        Column("run", "run"),
        Column("host", "host"),
        Column("date", "date"),
        Column("saves", "saves", "count"),
        Column("loads", "loads", "count"),
    )
    return Table("runs", "Runs", columns, rows, shown=len(rows) > 1)
