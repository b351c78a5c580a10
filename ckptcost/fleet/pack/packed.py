"""What was packed into a store, as a table."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ckptcost.fleet.pack.packing import NEWER, THERE, WRITTEN, Packing
from ckptcost.present.amounts import count, size
from ckptcost.report.studies.runs import MOST_WARNED, SHORT
from ckptcost.report.study import Column, Study, Table

MOST_SHOWN = 24
_OUTCOMES = {
    WRITTEN: "new, or more is known than was there",
    THERE: "made of the same files before",
    NEWER: "what is there covers more of the day, or was written by a newer ckptcost, and stays",
}


def study_of(packing: Packing, unread: Sequence[str] = ()) -> Study:
    """`unread`: why folders among the runs gave none."""
    puts = packing.puts
    counts = {outcome: sum(put.outcome == outcome for put in puts) for outcome in _OUTCOMES}
    rows = [
        {
            "run": put.run[:SHORT],
            "host": put.host,
            "day": put.day,
            "rows": float(put.rows),
            "size": float(put.bytes),
            "outcome": put.outcome,
            "job": put.job,
            "id": put.run,
            "readings": "simulated" if put.simulated else "measured",
        }
        for put in puts
    ]
    columns = (
        Column("run", "run", meaning="the beginning of its id"),
        Column("host", "host"),
        Column("day", "day (UTC)"),
        Column("rows", "rows", "count", "saves and loads that began on that day"),
        Column("size", "size", "bytes"),
        Column(
            "outcome",
            "outcome",
            meaning="; ".join(f"{outcome}: {meaning}" for outcome, meaning in _OUTCOMES.items()),
        ),
        Column("job", "job", shown=False),
        Column("id", "id", shown=False),
        Column("readings", "readings", meaning="measured or simulated", shown=False),
    )
    told = [f"{count(number)} {outcome}" for outcome, number in counts.items() if number]
    written = sum(put.bytes for put in puts if put.outcome == WRITTEN)
    why = [f"{each.name}: {each.error}" for each in packing.failed] + list(unread)
    failed = [("UNREADABLE", f"{text.rstrip('.')}.") for text in why[:MOST_WARNED]]
    if len(why) > MOST_WARNED:
        failed.append(("UNREADABLE", f"And {count(len(why) - MOST_WARNED)} more."))
    notes = [("JOB", f"{note.rstrip('.')}.") for note in packing.notes[:MOST_WARNED]]
    if len(packing.notes) > MOST_WARNED:
        notes.append(("JOB", f"And {count(len(packing.notes) - MOST_WARNED)} more."))
    return Study(
        kind="runs",
        title=(
            f"{count(len(puts))} node day{'' if len(puts) == 1 else 's'} packed"
            if puts
            else "Nothing was packed"
        ),
        about=[
            f"Into the store {os.path.basename(os.path.normpath(packing.store))}: a file for each"
            " node and UTC day of a run."
        ],
        question={"verb": "pack", "store": os.path.basename(os.path.normpath(packing.store))},
        tables=[Table("packed", "Files", columns, rows, shown=len(rows) <= MOST_SHOWN)],
        findings=[f"{', '.join(told)}; {size(written)} written."] if told else [],
        warnings=failed + notes,
        simulated=bool(puts) and all(put.simulated for put in puts),
    )
