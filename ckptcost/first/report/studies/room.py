"""Whether checkpoints fit into a folder, as a study."""

from __future__ import annotations

import math

from ckptcost.first.jobs.room import Room
from ckptcost.first.present.amounts import count, count_text, size
from ckptcost.first.report.study import Column, Study, Table, table_of


def study_of(found: Room) -> Study:
    """The answer as a study."""
    saves = found.saves
    kept = (
        f"{count(saves.keep_last)} kept, {count(saves.writing)} being written while they are there"
        if saves.made > saves.keep_last
        else f"{count_text(saves.made, 'save')} of the run, all kept"
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
    names = [limit.name for limit in found.limits]
    told = (
        (
            "the fullest target" in names,
            "Files are taken to be spread evenly over the targets: a single full one ends a save, "
            "whatever the others have left.",
        ),
        (
            found.there_bytes > 0,
            f"The folder holds {size(found.there_bytes)} already, which is not counted as room.",
        ),
        (
            found.reserved_bytes > 0,
            f"{size(found.reserved_bytes)} are free for the administrator alone.",
        ),
        (
            not any("quota" in name for name in names),
            "No quota could be read: there is none, or only the file system's own tool knows it.",
        ),
    )
    return [*_fits(found), *(text for holds, text in told if holds), *found.notes]


def _fits(found: Room) -> list[str]:
    needed, most = size(found.needed_bytes), found.most_kept
    if not found.broken:
        lasts = f"Room would last for policy.keep_last = {most}."
        fits = f"It fits: {needed} at most are needed, and there is room for it."
        return [fits] if most is None else [fits, lasts]
    names = " and ".join(limit.name for limit in found.broken)
    few = "Not even one checkpoint and the one being written fit."
    return [
        f"It does not fit: {needed} are needed, and {names} forbids it.",
        f"With policy.keep_last = {most} it fits." if most else few,
    ]


def _limits(found: Room) -> Table:
    columns = (
        Column("limit", "limit", of="name"),
        Column("room", "room", "bytes", of="bytes_"),
        Column(
            "needed",
            "needed",
            "bytes",
            "at worst, with the one being written",
            of=lambda _: found.needed_bytes,
        ),
        Column("files", "files left", "count"),
        Column("fits", "fits", "bool", of=lambda limit: limit not in found.broken),
    )
    return table_of("limits", "What limits the folder", columns, found.limits)


def _targets(found: Room) -> list[Table]:
    if not found.targets:
        return []
    columns = (
        Column("target", "target", of="name"),
        Column("free", "free", "bytes", of="free_bytes"),
    )
    ordered = sorted(
        found.targets, key=lambda each: (not math.isnan(each.free_bytes), each.free_bytes)
    )
    return [table_of("targets", "Targets, the fullest first", columns, ordered)]
