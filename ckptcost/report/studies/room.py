"""Whether checkpoints fit into a folder, as a study."""

from __future__ import annotations

import math

from ckptcost.jobs.room import Room
from ckptcost.present.amounts import count, size
from ckptcost.report.study import Column, Study, Table


def study_of(found: Room) -> Study:
    """The answer as a study."""
    saves = found.saves
    kept = (
        f"{count(saves.keep_last)} kept, {count(saves.writing)} being written while they are there"
    )
    chain = (
        f"; one of {count(saves.full_every)} is full, and the chain of the oldest is kept"
        if saves.full_every > 1
        else ""
    )
    return Study(
        kind="solution",
        title=f"Room for checkpoints in {found.directory.name or found.directory}",
        about=[
            f"{found.resolved.name or 'Scenario'}: {size(saves.full_bytes)} a full save;"
            f" {kept}{chain}."
        ],
        question={
            "what": "room",
            "fits": not found.broken,
            "needed_bytes": found.needed_bytes,
            "keep_last": saves.keep_last,
            "most_kept": found.most_kept,
        },
        tables=[_limits(found), *_targets(found)],
        findings=_findings(found),
        resolved=[found.resolved],
    )


def _findings(found: Room) -> list[str]:
    broken, most = found.broken, found.most_kept
    if not broken:
        said = [
            f"It fits: {size(found.needed_bytes)} at most are needed, and there is room for it."
        ]
        if most is not None:
            said.append(f"Room would last for policy.keep_last = {most}.")
    else:
        names = " and ".join(limit.name for limit in broken)
        said = [f"It does not fit: {size(found.needed_bytes)} are needed, and {names} forbids it."]
        said.append(
            f"With policy.keep_last = {most} it fits."
            if most
            else "Not even one checkpoint and the one being written fit."
        )
    if any(limit.name == "the fullest target" for limit in found.limits):
        said.append(
            "Files are taken to be spread evenly over the targets: a single full one ends a save, "
            "whatever the others have left."
        )
    if found.there_bytes > 0:
        said.append(
            f"The folder holds {size(found.there_bytes)} already, which is not counted as room."
        )
    if found.reserved_bytes > 0:
        said.append(f"{size(found.reserved_bytes)} are free for the administrator alone.")
    if not any("quota" in limit.name for limit in found.limits):
        said.append(
            "No quota could be read: there is none, or only the file system's own tool knows it."
        )
    return [*said, *found.notes]


def _limits(found: Room) -> Table:
    columns = (
        Column("limit", "limit"),
        Column("room", "room", "bytes"),
        Column("needed", "needed", "bytes", "at worst, with the one being written"),
        Column("files", "files left", "count"),
        Column("fits", "fits", "bool"),
    )
    rows = [
        {
            "limit": limit.name,
            "room": None if math.isnan(limit.bytes_) else limit.bytes_,
            "needed": found.needed_bytes,
            "files": None if math.isnan(limit.files) else limit.files,
            "fits": limit not in found.broken,
        }
        for limit in found.limits
    ]
    return Table("limits", "What limits the folder", columns, rows)


def _targets(found: Room) -> list[Table]:
    if not found.targets:
        return []
    columns = (Column("target", "target"), Column("free", "free", "bytes"))
    ordered = sorted(
        found.targets, key=lambda each: (not math.isnan(each.free_bytes), each.free_bytes)
    )
    rows = [
        {"target": each.name, "free": None if math.isnan(each.free_bytes) else each.free_bytes}
        for each in ordered
    ]
    return [Table("targets", "Targets, the fullest first", columns, rows)]
