"""What a self-test found, as tables: each save beside its truth, the file system, and the meters of
joules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, isnan
from typing import Any

from ckptcost.first.core.load_step import FEW_STEPS, FEW_TICKS, NO_STEP, TOO_LATE, Range
from ckptcost.first.jobs.load_step import Loaded, LoadReport
from ckptcost.first.jobs.selftest import SaveTrial, Tested
from ckptcost.first.present.amounts import count, duration, ends_text, power, size
from ckptcost.first.report.study import Column, Study, Table, hidden, plain, table_of
from ckptcost.first.watch.settle import WHY

WHY_NOT_TIMED = {
    NO_STEP: "its power did not follow the load",
    FEW_STEPS: "the load changed too seldom",
    FEW_TICKS: "it was renewed too seldom",
    TOO_LATE: "it is later than the load can tell",
}
SLOW_WAY = 2.0
"""how many times the lag one way may be the other's, beyond what is known of it, before it is the
load's own"""


TIMES = (
    ("tick", "how often it is renewed"),
    ("jitter", "how far a tick is from its place at most"),
    ("lag", "how late it shows what power did"),
)
POWERS = (
    ("busy", "the load is on"),
    ("idle", "the load is off"),
    ("spinning", "ranks poll for the others"),
    ("sleeping", "ranks sleep"),
)


def tables_of(made: Loaded) -> list[Table]:
    """When each meter is renewed and how late it is; then the watts of each state."""
    timing = Table(
        "timing",
        "Meters under a load that is known: when they are renewed, and how late they are",
        (
            Column("meter", "meter"),
            Column("quantity", "of"),
            *_ranges(TIMES, "s"),
            Column("assumed_lag", "assumed", "s", "the lag that intervals allow for, at most"),
            Column("why", "lag unknown because"),
        ),
        [_times(one) for one in made.told] or [{"meter": "none", "why": why} for why in made.why],
    )
    powers = Table(
        "powers",
        "What they said of it",
        (Column("meter", "meter"), Column("quantity", "of"), *_ranges(POWERS, "W")),
        [_powers(one) for one in made.told],
    )
    return [timing, powers] if made.told else [timing]


def _ranges(keys: Sequence[tuple[str, str]], unit: str) -> list[Column]:
    return [
        column
        for key, meaning in keys
        for column in (
            Column(key, key, unit, meaning),
            Column(f"{key}_low", "from", unit, "99 % of its scatter"),
            Column(f"{key}_high", "to", unit),
        )
    ]


def _row(one: LoadReport, **ranges: Range) -> dict[str, Any]:
    row: dict[str, Any] = {
        "meter": one.channel.domain,
        "quantity": "joules" if one.channel.is_counter else "watts",
    }
    for key, found in ranges.items():
        row |= {key: found.value, f"{key}_low": found.low, f"{key}_high": found.high}
    return row


def _times(one: LoadReport) -> dict[str, Any]:
    timing = one.timing
    row = _row(one, tick=timing.tick, jitter=timing.jitter, lag=timing.lag)
    why = WHY_NOT_TIMED.get(timing.why, timing.why)
    return {**row, "assumed_lag": plain(one.assumed_lag_s), "why": why}


def _powers(one: LoadReport) -> dict[str, Any]:
    timing = one.timing
    return _row(
        one,
        busy=timing.high_w,
        idle=timing.low_w,
        spinning=one.spinning_w,
        sleeping=one.sleeping_w,
    )


def findings_of(made: Loaded) -> list[str]:
    said = [
        line for one in made.told if one.channel.is_counter for line in _of_counter(one, made.ranks)
    ]
    said += _watts_beside(made)
    said += [f"{why[0].upper()}{why[1:]}." for why in made.why]
    if made.trace is not None:
        said.append(f"The readings under the load, which name no machine: {made.trace}")
    return said


def _of_counter(one: LoadReport, ranks: int) -> list[str]:
    lag, domain = one.timing.lag, one.channel.domain
    said = []
    if lag.value is None:
        said.append(
            f"How late the counter of {domain} is, is not known: {WHY_NOT_TIMED[one.timing.why]}."
        )
    else:
        said.append(
            f"The counter of {domain} shows what power did {_about(lag)} later; "
            + _against(lag, one.assumed_lag_s)
        )
        if _differs(one):
            said.append(
                f"Its lag differs by direction, {duration(max(one.timing.up_s or 0.0, 0.0))} where"
                f" the load begins and {duration(max(one.timing.down_s or 0.0, 0.0))} where it"
                " ends: part of it is power that follows the load slowly."
            )
    spins, sleeps = one.spinning_w.value, one.sleeping_w.value
    if spins is not None and sleeps is not None:
        who = (
            f"{count(ranks)} {'rank' if ranks == 1 else 'ranks'}" if one.load == "cpu" else "ranks"
        )
        said.append(f"{domain} draws {power(spins)} with {who} spinning, {power(sleeps)} sleeping.")
    return said


def _about(found: Range) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "an unknown time"
    return f"{duration(found.value)}{ends_text(found.low, found.high, duration)}"


def _against(lag: Range, assumed_s: float) -> str:
    if lag.high is None or lag.low is None:
        return ""
    if lag.high <= assumed_s:
        return f"intervals allow for up to {duration(assumed_s)}, which holds it."
    if lag.low > assumed_s:
        return (
            f"intervals allow for up to {duration(assumed_s)} only, so those of saves that stop"
            " training may miss the truth."
        )
    return f"intervals allow for up to {duration(assumed_s)}, which may or may not hold it."


def _differs(one: LoadReport) -> bool:
    up_s, down_s, lag = one.timing.up_s, one.timing.down_s, one.timing.lag
    if up_s is None or down_s is None or lag.high is None or lag.low is None:
        return False
    return abs(up_s - down_s) > 0.02 and max(up_s, down_s) > SLOW_WAY * max(min(up_s, down_s), 0.0)


def _watts_beside(made: Loaded) -> list[str]:
    """The counter against the watts of the same card in the same run: what both share is not the
    counter's."""
    said = []
    watts = {
        one.channel.domain: one.timing.lag.value
        for one in made.told
        if not one.channel.is_counter and one.timing.lag.value is not None
    }
    for one in made.told:
        lag_s, beside_s = one.timing.lag.value, watts.get(one.channel.domain)
        if one.channel.is_counter and lag_s is not None and beside_s is not None:
            said.append(
                f"Watts of {one.channel.domain} show a step {duration(beside_s)} late on average,"
                " half of the time that they are held and averaged over included; the counter"
                f" {duration(lag_s)}."
            )
    return said


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
        tables=[
            table_of("saves", "Saves, held against the truth", _SAVES, t.saves),
            _folder(t),
            _meters(t),
            *tables_of(t.load),
        ],
        findings=_findings(t),
        warnings=_warnings(t),
    )


def _most(errors: Iterable[float]) -> str:
    known = [abs(each) for each in errors if isfinite(each)]
    return f"within {duration(max(known))}" if known else "not known"


def _findings(t: Tested) -> list[str]:
    found = [one for one in t.saves if one.is_found]
    wrong = sum(one.bytes_error != 0 for one in found)
    sizes = f"{count(wrong)} sizes wrong" if wrong else "sizes exact"
    others = f" and {count(t.others)} that were none" if t.others else ""
    said = f"Here ckptcost finds {count(len(found))} of {count(len(t.saves))} saves{others}"
    if found:
        begins = _most(one.begin_error_s for one in found)
        stalls = _most(one.stall_error_s for one in found)
        said += f": {sizes}, begins {begins}, stalls {stalls}"
    return [f"{said}.", *_safe(t), _joules(t), *findings_of(t.load), *_disagreements(t)]


def _reason(code: str) -> str:
    return WHY.get(code, code) or "nothing was said of it"


def _safe(t: Tested) -> list[str]:
    lasting = [one for one in t.saves if one.is_found and one.way != "rotation"]
    told = [one for one in lasting if not isnan(one.said_safe_s)]
    reasons = dict.fromkeys(one.why for one in lasting if isnan(one.said_safe_s))
    deleted = [
        "A save that was deleted before it was written back is not called safe:"
        f" {_reason(one.why)}."
        for one in t.saves
        if one.way == "rotation" and one.is_found and isnan(one.said_safe_s)
    ]
    return [
        *(_safety_lines(t, told, len(lasting)) if told else []),
        *(f"Safe: unknown here: {_reason(why)}." for why in reasons),
        *deleted[:1],
    ]


def _safety_lines(t: Tested, told: Sequence[SaveTrial], lasting: int) -> list[str]:
    errors_s = [one.safe_error_s for one in told if not isnan(one.safe_error_s)]
    early = sum(error_s < -t.tolerance_s for error_s in errors_s)
    outside_s = max(map(abs, errors_s), default=0.0)
    where = f"up to {duration(outside_s)} outside of" if outside_s else "inside of"
    said = [
        f"Safe: told of {count(len(told))} of {count(lasting)} saves that were kept,"
        f" {where} the time in which they became so, {count(early) if early else 'none'} too early."
    ]
    if len(errors_s) < len(told):
        said.append(
            f"When {count(len(told) - len(errors_s))} of them became safe, nothing else here can"
            " tell."
        )
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
        saves = count(len(t.saves))
        words = f"ended by signal {t.ended.signal} after {saves} saves: the figures are of these."
        said.append(("WRITER_KILLED", f"The writer was {words}"))
    if t.skipped:
        saves = f"{count(len(t.skipped))} saves ({', '.join(t.skipped)})"
        remedy = "give --within more, or a smaller --size."
        said.append(("SKIPPED", f"There was no time for {saves}: {remedy}"))
    if t.mounted.blind:
        said.append(("POLLED", f"This folder is {t.mounted.why}."))
    return said


_SAVES = (
    Column("way", "save"),
    *hidden(Column("found", "found", "bool", of="is_found")),
    Column("bytes_error", "bytes off", "share"),
    Column("begin_error", "begin off", "s", "positive is later than the truth", of="begin_error_s"),
    Column("stall", "stall", "s", "by the writer's own clock", of="stall_s"),
    Column("stall_error", "off", "s", of="stall_error_s"),
    Column("safe", "safe after", "s", "what was said, from the begin on", of="said_safe_s"),
    *hidden(
        Column(
            "safe_from",
            "truly from",
            "s",
            "the disks had not taken as many bytes before",
            of="safe_from_s",
        ),
        Column("safe_to", "to", "s", "an fsync had returned", of="safe_to_s"),
    ),
    Column("safe_error", "off", "s", "outside of that; negative is too early", of="safe_error_s"),
    Column(
        "how",
        "by",
        meaning="the evidence, or the code of why it is not known",
        of=lambda one: one.how or one.why,
    ),
    Column("agrees", "agrees", "bool"),
    *hidden(Column("save", "number", "count", of="number")),
)


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
    columns = (
        Column("domain", "meter", of="channel.domain"),
        Column("source", "source", of="channel.source"),
        Column("tick", "tick", "s", "mean time between two changes", of="tick_s"),
        Column("call", "one reading", "s", "median", of="took_s"),
        Column("watts", "now", "W", of="rate"),
        Column("noise", "+-", "W"),
    )
    tried = [one for one in t.meters.tried if one.channel.quantity in ("energy_j", "power_w")]
    return table_of("meters", "Meters of joules, each tried for two seconds", columns, tried)
