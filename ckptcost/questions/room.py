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
    (name, first), *_ = cases.items()
    study = Study({name: first}, 0)
    one_size = study.stated_of(study.stated.plan.first.stored, 0)
    keep = min(study.stated_of(study.w.policy.keep_last, 0), study.value("saves", 0))
    per_save = study.stated_of(study.w.checkpoint.files, 0)
    needed, names = one_size * (keep + 1), per_save * (keep + 1)
    lacks = needed > free
    short = names > files > 0
    verdict = "They do not fit" if lacks or short else "They fit"
    kept = f"{keep:,.0f} kept and one being written"
    says = [Say(f"{verdict}: {kept} need {show(needed, 'B')}; {show(free, 'B')} are free.")]
    if lacks:
        most = int(free // one_size) - 1
        says.append(
            Say(f"There is room to keep {most:,}:", "", f"--set policy.keep_last={most}")
            if most > 0
            else Say("There is no room for one checkpoint and the next one being written.")
        )
    if short:
        says.append(Say(f"They are {names:,.0f} files, and only {files:,.0f} more can be made."))
    columns = [
        Column("limit", "limit"),
        Column("needed", "needed", ""),
        Column("free", "free", ""),
    ]
    rows: list[list[Cell]] = [
        ["bytes", _amount(needed, "B"), _amount(free, "B")],
        ["files", _amount(names, "count"), _amount(files, "count") if files > 0 else None],
    ]
    missed = [f"{folder}: {show(needed - free, 'B')} too little"] if lacks else []
    missed += [f"{folder}: {names - files:,.0f} files too many"] if short else []
    return Answer(
        "model",
        f"Room for checkpoints in {folder}: {first.name}",
        one.about(study, 0),
        says,
        [Table("room", "", columns, rows)],
        [Say("Free space is what the file system reports; other quotas are not seen.")],
        missed=missed,
    )


def _amount(value: float, unit: str) -> Quantity:
    return Quantity(Range(value, value, value), unit)
