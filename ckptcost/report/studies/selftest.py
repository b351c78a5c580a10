"""What a self-test found, as tables: each save beside its truth, the file system, and the meters of
joules."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

from ckptcost.jobs.selftest import Tested
from ckptcost.present.amounts import count, duration, size
from ckptcost.report.studies.run_columns import plain
from ckptcost.report.studies.selftest_load import findings_of, tables_of
from ckptcost.report.study import Column, Study, Table
from ckptcost.watch.settle import WHY


def study_of(t: Tested) -> Study:
    """The answer first."""
    return Study(
        kind="selftest",
        title=(
            "What ckptcost can be trusted with here:"
            f" {t.mounted.fs_type or 'an unknown file system'}"
        ),
        about=[
            (
                f"Saves of {size(t.asked.size_bytes)} under the watcher and the recorder of"
                " `ckptcost run --watch`, held against the writer's own clock, fsync and the"
                " disks' own counters. All that was written is removed."
            ),
        ],
        question={
            "bytes": float(t.asked.size_bytes),
            "rounds": t.asked.rounds,
            "within_s": t.asked.within_s,
            "run": t.run_id,
        },
        tables=[_saves(t), _folder(t), _meters(t), *tables_of(t.load)],
        findings=_findings(t),
        warnings=_warnings(t),
    )


def _most(errors: Iterable[float]) -> str:
    known = [abs(each) for each in errors if isfinite(each)]
    return f"within {duration(max(known))}" if known else "not known"


def _findings(t: Tested) -> list[str]:
    found = [one for one in t.saves if one.is_found]
    wrong = [one for one in found if one.bytes_error != 0]
    sizes = "sizes exact" if not wrong else f"{count(len(wrong))} sizes wrong"
    others = f" and {count(t.others)} that were none" if t.others else ""
    said = [
        f"Here ckptcost finds {count(len(found))} of {count(len(t.saves))} saves{others}"
        + (
            f": {sizes}, begins {_most(one.begin_error_s for one in found)}, stalls"
            f" {_most(one.stall_error_s for one in found)}."
            if found
            else "."
        )
    ]
    return [*said, *_safe(t), _joules(t), *findings_of(t.load), *_disagreements(t)]


def _reason(code: str) -> str:
    return WHY.get(code, code) or "nothing was said of it"


def _safe(t: Tested) -> list[str]:
    lasting = [one for one in t.saves if one.is_found and one.way != "rotation"]
    told = [one for one in lasting if one.said_safe_s == one.said_safe_s]
    held = [one for one in told if one.safe_error_s == one.safe_error_s]
    early = [one for one in held if one.safe_error_s < -t.tolerance_s]
    said = []
    if told:
        outside = max((abs(one.safe_error_s) for one in held), default=0.0)
        where = f"up to {duration(outside)} outside of" if outside else "inside of"
        said.append(
            f"Safe: told of {count(len(told))} of {count(len(lasting))} saves that were kept,"
            f" {where} the time in which they became so,"
            f" {'none' if not early else count(len(early))} too early."
        )
        if len(held) < len(told):
            said.append(
                f"When {count(len(told) - len(held))} of them became safe, nothing else here can"
                " tell."
            )
    reasons = dict.fromkeys(one.why for one in lasting if one.said_safe_s != one.said_safe_s)
    said += [f"Safe: unknown here: {_reason(why)}." for why in reasons]
    for one in t.saves:
        if one.way == "rotation" and one.is_found and one.said_safe_s != one.said_safe_s:
            said.append(
                "A save that was deleted before it was written back is not called safe:"
                f" {_reason(one.why)}."
            )
            break
    return said


def _joules(t: Tested) -> str:
    by = {kind: t.meters.measured_by.get(kind, []) for kind in ("gpu", "cpu", "dram", "node")}
    means = [f"{kind} by {', '.join(found)}" for kind, found in by.items() if found]
    return (
        f"Joules: {'; '.join(means)}."
        if means
        else "Joules: nothing meters them here; `ckptcost doctor` says what would help."
    )


def _disagreements(t: Tested) -> list[str]:
    said = [
        f"Save {count(one.number)} ({one.way}) "
        + (
            f"is off by more than {duration(t.tolerance_s)}, or in its size."
            if one.is_found
            else "was not found."
        )
        for one in t.saves
        if not one.agrees
    ]
    return said or (["Nothing disagrees by more than its stated error."] if t.agrees else [])


def _warnings(t: Tested) -> list[tuple[str, str]]:
    said = [("SELFTEST_NOTE", note if note.endswith(".") else f"{note}.") for note in t.notes]
    if t.ended.signal:
        said.append(
            (
                "WRITER_KILLED",
                (
                    f"The writer was ended by signal {t.ended.signal} after {count(len(t.saves))}"
                    " saves: the figures are of these."
                ),
            )
        )
    if t.skipped:
        said.append(
            (
                "SKIPPED",
                (
                    f"There was no time for {count(len(t.skipped))} saves ({', '.join(t.skipped)}):"
                    " give --within more, or a smaller --size."
                ),
            )
        )
    if t.mounted.blind:
        said.append(("POLLED", f"This folder is {t.mounted.why}."))
    return said


def _saves(t: Tested) -> Table:
    rows: list[dict[str, Any]] = [
        {
            "save": float(one.number),
            "way": one.way,
            "found": one.is_found,
            "bytes_error": plain(one.bytes_error),
            "begin_error": plain(one.begin_error_s),
            "stall": plain(one.stall_s),
            "stall_error": plain(one.stall_error_s),
            "safe": plain(one.said_safe_s),
            "safe_from": plain(one.safe_from_s),
            "safe_to": one.safe_to_s if isfinite(one.safe_to_s) else None,
            "safe_error": one.safe_error_s if isfinite(one.safe_error_s) else None,
            "how": one.how or one.why,
            "agrees": one.agrees,
        }
        for one in t.saves
    ]
    columns = (
        Column("way", "save"),
        Column("found", "found", "bool", shown=False),
        Column("bytes_error", "bytes off", "share"),
        Column("begin_error", "begin off", "s", "positive is later than the truth"),
        Column("stall", "stall", "s", "by the writer's own clock"),
        Column("stall_error", "off", "s"),
        Column("safe", "safe after", "s", "what was said, from the begin on"),
        Column(
            "safe_from", "truly from", "s", "the disks had not taken as many bytes before", False
        ),
        Column("safe_to", "to", "s", "an fsync had returned", False),
        Column("safe_error", "off", "s", "outside of that; negative is too early"),
        Column("how", "by", meaning="the evidence, or the code of why it is not known"),
        Column("agrees", "agrees", "bool"),
        Column("save", "number", "count", shown=False),
    )
    return Table("saves", "Saves, held against the truth", columns, rows)


def _folder(t: Tested) -> Table:
    said = list(dict.fromkeys(one.how for one in t.saves if one.how))
    why = list(dict.fromkeys(one.why for one in t.saves if one.why and one.way != "rotation"))
    row = {
        "file_system": t.mounted.fs_type or "unknown",
        "seen": "polling" if t.mounted.blind else "inotify",
        "tolerance": t.tolerance_s,
        "safe_by": ", ".join(said) or f"unknown: {', '.join(why)}",
        "disks": ", ".join(t.home.disks) or t.home.reason,
    }
    columns = (
        Column("file_system", "file system"),
        Column("seen", "saves seen by"),
        Column("safe_by", "safe known by"),
        Column("disks", "disks below"),
        Column("tolerance", "stated error", "s", "of an instant"),
    )
    return Table("folder", "The folder", columns, [row])


def _meters(t: Tested) -> Table:
    rows: list[dict[str, Any]] = [
        {
            "domain": one.channel.domain,
            "source": one.channel.source,
            "tick": plain(one.tick_s),
            "call": plain(one.took_s),
            "watts": plain(one.rate),
            "noise": plain(one.noise),
        }
        for one in t.meters.tried
        if one.channel.quantity in ("energy_j", "power_w")
    ]
    columns = (
        Column("domain", "meter"),
        Column("source", "source"),
        Column("tick", "tick", "s", "mean time between two changes"),
        Column("call", "one reading", "s", "median"),
        Column("watts", "now", "W"),
        Column("noise", "+-", "W"),
    )
    return Table("meters", "Meters of joules, each tried for two seconds", columns, rows)
