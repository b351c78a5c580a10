"""Whether a job's checkpoints fit into a folder: those that are kept, and the one being written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ckptcost.answer import Answer, Cell, Column, Quantity, Range, Say, Table
from ckptcost.errors import InputError
from ckptcost.questions import one
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show
from ckptcost.study import Study


def measured(folder: str) -> dict[str, Any]:
    """Bytes and files that the file system has left for us; a quota counts if it reports one."""
    try:
        there = os.statvfs(folder)
    except OSError as error:
        remedy = "give a folder that exists, e.g. --dir ."
        raise InputError(f"cannot be read ({error.strerror})", folder, remedy) from None
    return {"free": float(there.f_bavail * there.f_frsize), "files": float(there.f_favail)}


def answer(cases: Mapping[str, Scenario], folder: str, free: float, files: float) -> Answer:
    """The verdict of the first case: its size and its number kept are those of all."""
    study = Study(dict([*cases.items()][:1]), 0)
    size = study.stated_of(study.stated.plan.first.stored, 0)
    keep = min(study.stated_of(study.w.policy.keep_last, 0), study.value("saves", 0))
    names = study.stated_of(study.w.checkpoint.files, 0) * (keep + 1)
    needed, missed, notes = size * (keep + 1), list[str](), list[Say]()
    if needed > free:
        missed.append(f"{folder}: {show(needed - free, 'B')} too little")
        most = int(free // size) - 1
        fewer = Say(f"There is room to keep {most:,}:", "", f"--set policy.keep_last={most}")
        none = Say("There is no room for one checkpoint and the next one being written.")
        notes.append(fewer if most > 0 else none)
    if names > files > 0:  # some file systems have no limit of files, and say 0
        missed.append(f"{folder}: {names - files:,.0f} files too many")
        notes.append(Say(f"They are {names:,.0f} files, and only {files:,.0f} more can be made."))
    verdict = "They do not fit" if missed else "They fit"
    kept = f"{keep:,.0f} checkpoints kept and one being written need {show(needed, 'B')}"
    columns = [Column("limit", "limit"), Column("needed", "needed", ""), Column("free", "free", "")]
    rows: list[list[Cell]] = [
        [limit, *(Quantity(Range(x, x, x), unit) if x else None for x in (uses, there))]
        for limit, unit, uses, there in (
            ("bytes", "B", needed, free),
            ("files", "count", names, files),
        )
    ]
    quota = "Free space is what the file system reports; it may not report a quota."
    return Answer(
        "model",
        f"Room for checkpoints in {folder}: {study.scenarios[0].name}",
        one.about(study, 0),
        [Say(f"{verdict}: {kept}; {show(free, 'B')} are free."), *notes],
        [Table("room", "", columns, rows)],
        [Say(quota)],
        missed=missed,
    )
