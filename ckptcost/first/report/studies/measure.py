"""What was measured, as tables: domains, checkpoints and their phases, disks, the meters
themselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ckptcost.first.core.attribution import WHOLE, mean_w
from ckptcost.first.core.contents import LOST_BEFORE_SAFE
from ckptcost.first.core.reconcile import Energy
from ckptcost.first.jobs.measured import Measured, Stored, stored_of_saves, whose_disk_bytes
from ckptcost.first.present.amounts import count, count_text, duration, number, share, some
from ckptcost.first.present.measured import (
    ABSENT,
    absence_text,
    flag_text,
    reason_text,
    warning_text,
)
from ckptcost.first.report.studies.measure_power import power
from ckptcost.first.report.studies.measure_saves import (
    honeymoon_told,
    job_findings,
    merged_told,
    saves_told,
    staged_told,
    stalls_told,
    training_told,
)
from ckptcost.first.report.studies.measured_tables import (
    energies,
    give_or_take,
    phases,
    range_of,
    three,
    windows,
)
from ckptcost.first.report.study import (
    Bills,
    Column,
    Study,
    Table,
    hidden,
    named,
    plain,
    table_of,
    without_of,
)

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.statement import Statement

MOST_SHOWN = 8
"""rows of what is less asked for; JSON and CSV have all"""
ROLES = {"part": "adds up", "whole": "contains the parts", "detail": "lies inside a part"}


def study_of(m: Measured) -> Study:
    """Sentences first, then the tables."""
    node = m.energies.node
    about = [
        (
            f"Measured at the node: no PUE. {len(m.energies.channels)} channels of"
            f" {len(node.headers[-1].meters)} meters;"
            f" {count_text(len(m.windows), 'checkpoint window')}."
        )
    ]
    question: dict[str, Any] = {
        "seconds": m.length_s,
        "meters": [meter.name for meter in node.headers[-1].meters],
    }
    if m.kept:
        question["run"] = m.kept
    if m.replayed:
        about.insert(
            0, f"Replayed from a recording of {m.replayed}: nothing was measured just now."
        )
        question["replayed"] = m.replayed
    if len(m.run.hosts) > 1:
        about.append(f"Of the hosts {some(m.run.hosts)} this is {node.host} alone.")
    return Study(
        kind="measurement",
        title=f"{duration(m.length_s)} {_where(m)}",
        about=about,
        question=question,
        tables=_tables(m),
        findings=_findings(m),
        warnings=_warnings(m),
        simulated=m.simulated,
        bills=Bills(lambda catalog: _bills(m, catalog)),
    )


def _tables(m: Measured) -> list[Table]:
    tables = _domains(m)
    tables += [windows(m), energies(m), phases(m)] if m.windows else []
    tables += _stored(m) if m.stored else []
    tables.append(_sources(m))
    tables += [_events(m)] if m.events else []
    over_time = power(m)
    return tables if over_time is None else [*tables, over_time]


def study_of_one(m: Measured, place: int) -> Study:
    """One checkpoint: its rows of the tables, and what is said of it alone."""
    one = m.only(place)
    window, what = one.windows[0], one.contents[0]
    begin_s = window.begin_s
    when = (
        "" if begin_s is None else f"{datetime.fromtimestamp(m.run.wall_s(begin_s), UTC):%F %T} UTC"
    )
    run = f"run {m.kept[:8]}" if m.kept else ""
    where = [when, run, f"on {m.energies.node.host}", what.path]
    return Study(
        kind="measurement",
        title=f"{window.name}, {what.of} {count(place + 1)} of {count(len(m.windows))}",
        about=[", ".join(filter(None, where))],
        question={"run": m.kept, "checkpoint": window.name},
        tables=[
            windows(one),
            energies(one),
            phases(one),
            *(_stored(one)[1:] if one.stored else []),
        ],
        findings=[
            *saves_told(one),
            *stalls_told(one),
            *staged_told(one),
            *training_told(one),
        ],
        warnings=_warnings(one),
        simulated=m.simulated,
    )


def _where(m: Measured) -> str:
    """A replay may be of any machine, and whoever shows it may not want to say of which."""
    if m.simulated:
        return "of a simulated machine"
    return "of a recorded run" if m.replayed else f"on {m.energies.node.host}"


def _bills(m: Measured, catalog: Catalog) -> list[Statement]:
    from ckptcost.first.report.statements.measured import statement_of

    told = statement_of(m, catalog)
    return [] if told is None else [told]


# ---- sentences


def _findings(m: Measured) -> list[str]:
    return [
        _parts_sum(m),
        *_node_sum(m),
        *job_findings(m),
        *saves_told(m),
        *merged_told(m),
        *stalls_told(m),
        *staged_told(m),
        *honeymoon_told(m),
        *_mean_save(m),
        *training_told(m),
        *_own_use(m),
    ]


def _parts_sum(m: Measured) -> str:
    parts = m.node.parts
    if parts.known:
        return (
            f"{give_or_take(parts)} J{_covered(parts)}, {number(m.parts_w)} W in the mean, in "
            f"{count_text(len(m.energies.parts), 'metered part')}: {some(m.energies.parts)}."
        )
    why = ABSENT.get(parts.why, "a part that adds up has no joules over all of the time")
    if m.node.missing and m.node.known_j > 0:
        others = [domain for domain in m.energies.parts if domain not in m.node.missing]
        why = (
            f"{some(m.node.missing)} did not answer; {some(others)} took {number(m.node.known_j)} J"
        )
    return f"No sum of joules: {why}."


def _covered(energy: Energy) -> str:
    """Of how much of the time, where it is not all of it."""
    if energy.coverage >= WHOLE:
        return ""
    return (
        f" of the {share(energy.coverage)} of the time that readings know of the least known part"
    )


def _node_sum(m: Measured) -> list[str]:
    if not m.node.node.known:
        return []
    left = m.node.unaccounted
    rest = f"What no part explains is not known: {reason_text(left.why)}."
    if left.known:
        rest = (
            f"{give_or_take(mean_w(left, m.length_s))} W of it are in no part: fans, boards,"
            " network, power supplies."
        )
    return [f"The node's own meter says {give_or_take(m.node.node)} J. {rest}"]


def _mean_save(m: Measured) -> list[str]:
    save = m.mean_save
    if save is None:
        return []
    one = "The checkpoint"
    several = f"A checkpoint, in the mean of {count(save.saves)}"
    still = f", {number(save.stalled_gpu_s)} GPU-seconds stood still"
    return [
        f"{one if save.saves == 1 else several}:"
        f" training stalls for {duration(save.stall_s)}, {number(save.joules)} J from its begin"
        f" until it is safe{still if save.stalled_gpu_s > 0 else ''}."
    ]


def _own_use(m: Measured) -> list[str]:
    if m.own_share != m.own_share:
        return []
    cost = f", {number(m.own.low)} to {number(m.own.high)} J" if m.own.known else ""
    return [f"Measuring itself took {share(m.own_share)} of one core{cost}."]


# ---- tables

_DOMAINS = (
    Column("domain", "domain"),
    Column("role", "role", meaning="; ".join(f"{k}: {v}" for k, v in ROLES.items())),
    Column("watts", "mean W", "W"),
    Column("joules", "J", "J"),
    *without_of(range_of("joules", True)),
    Column("coverage", "covered", "share", "of the time that is known; joules are of this part"),
    Column("tick", "tick", "s", "how often the source renews the value, as measured here"),
    *hidden(
        "source",
        "scope",
        "boundary",
        Column("basis", "basis", meaning="measured or modelled"),
        "device",
        "driver",
        Column("averaging", "averaging", "s", "the sensor's value is a mean over so long"),
        Column("looks", "looks", "share", "of the time in which the sensor looks at all"),
        Column(
            "accuracy",
            "accuracy",
            "share",
            "published error of the sensor; low and high do not contain it",
        ),
        Column("ticks", "ticks", "count", "points of the counter known in the time"),
        "note",
        Column("why", "why", meaning="code, where joules are unknown"),
    ),
)


def _domains(m: Measured) -> list[Table]:
    """What adds up and what contains it; and what lies inside, which is long on a machine with many
    cards."""
    roles = {"part": m.energies.parts, "whole": m.energies.wholes, "detail": m.energies.details}
    told = [_domain_row(m, domain, role) for role, those in roles.items() for domain in those]
    inside = [row for row in told if row["role"] == "detail"]
    shown = [row for row in told if row["role"] != "detail"]
    if m.own_cpu_s == m.own_cpu_s:
        shown.append(_own_row(m))
    note = "+-: how far the joules may lie off, as far as ticks and gaps tell."
    few = len(inside) <= MOST_SHOWN
    return [
        Table("domains", "What was used", _DOMAINS, shown, note),
        Table("details", "Inside these, never added", _DOMAINS, inside, shown=few),
    ]


def _domain_row(m: Measured, domain: str, role: str) -> dict[str, Any]:
    energy, source = m.spans[domain], m.energies.sources[domain]
    known = m.energies.provenance(domain, m.begin_s, m.end_s)
    return known._asdict() | {
        **three(energy, "joules"),
        "watts": plain(m.mean_w(energy)),
        "role": role,
        "coverage": plain(energy.coverage if energy.known else known.coverage),
        "tick": plain(known.tick_s),
        "averaging": known.averaging_s,
        "note": source.channel.note,
        "why": energy.why,
    }


def _own_row(m: Measured) -> dict[str, Any]:
    return {
        "domain": "self",
        **three(m.own, "joules"),
        "watts": plain(m.mean_w(m.own)),
        "role": "detail",
        "coverage": 1.0,
        "source": "this recorder's processor time",
        "scope": "process",
        "boundary": "node",
        "basis": "modelled",
        "why": m.own.why,
        "note": f"{number(m.own_cpu_s)} s of processor time",
    }


def _farther_bytes(s: Stored) -> float:
    q = s.queue
    return max(q.written_high_bytes - q.written_bytes, q.written_bytes - q.written_low_bytes)


_DISKS = (
    *named("disk"),
    Column("written", "written", "bytes", of="queue.written_bytes"),
    Column(
        "written_error", "+-", "bytes", "how far the farther of low and high is", of=_farther_bytes
    ),
    *hidden(
        Column(
            "written_low", "low", "bytes", "by the readings within", of="queue.written_low_bytes"
        ),
        Column(
            "written_high",
            "high",
            "bytes",
            "by the readings around it",
            of="queue.written_high_bytes",
        ),
    ),
    Column("rate", "mean rate", "bytes_per_s", of="queue.write_bytes_per_s"),
    Column(
        "peak_rate",
        "peak",
        "bytes_per_s",
        "highest mean over `peak_over`",
        of="queue.peak_write_bytes_per_s",
    ),
    Column("depth", "mean depth", "1", "requests under way", of="queue.mean_depth"),
    Column("peak_depth", "peak", "1", of="queue.peak_depth"),
    Column("busy", "busy", "share", of="queue.busy"),
    *hidden(
        Column("flushes", "flushes", "count", of="queue.flushes"),
        Column("writes", "writes", "count", of="queue.writes"),
        Column("write_size", "write size", "bytes", of="queue.mean_write_bytes"),
        Column("read", "read", "bytes", of="queue.read_bytes"),
        Column("wait", "wait", "s", "mean time of a request, by Little's law", of="queue.wait_s"),
        Column("peak_over", "peak over", "s", of="queue.peak_over_s"),
        Column("coverage", "covered", "share", of="queue.coverage"),
    ),
)
_OF_ALL_TIME = tuple(c._replace(shown=c.shown and c.id != "written_error") for c in _DISKS)
"""over the whole time the error is little"""


def _stored(m: Measured) -> list[Table]:
    whole = table_of("storage", "Disks", _OF_ALL_TIME, (s for s in m.stored if not s.window))
    saves = list(stored_of_saves(m))
    if not saves:
        return [whole]
    columns = (Column("window", "checkpoint"), *_DISKS)
    few = len(saves) <= MOST_SHOWN
    whose = whose_disk_bytes(m)
    by_save = table_of("storage_windows", "Disks, by checkpoint", columns, saves, whose, few)
    return [whole, by_save]


_OF_CHANNEL = ("domain", "quantity", "source", "scope", "role", "device", "note")


def _sources(m: Measured) -> Table:
    rows = [
        {name: getattr(c, name) for name in _OF_CHANNEL}
        | {"meter": meter.name, "tick": m.energies.node.period_s(c)}
        for meter in m.energies.node.headers[-1].meters
        for c in meter.channels
    ]
    columns = (
        *named("domain", "quantity", "meter", "source", "scope", "role", "device", "note"),
        Column("tick", "tick", "s"),
    )
    return Table("sources", "Where it was read", columns, rows, shown=False)


def _events(m: Measured) -> Table:
    columns = (
        Column("name", "event"),
        *named("domain"),
        Column("text", "what"),
        Column("at", "at", "s", of="t_s"),
    )
    return table_of("events", "What happened to the meters", columns, m.events)


# ---- warnings


def _warnings(m: Measured) -> list[tuple[str, str]]:
    """What to mind, each kind once, in the words of whom it was said of first."""
    found: dict[str, str] = {}
    for doubts in (
        _of_baseline(m),
        _of_costs(m),
        _of_recording(m),
        ((code, flag_text(code)) for code in m.node.flags),
        _of_saves(m),
        _of_sensors(m),
        _of_meters(m),
    ):
        for code, text in doubts:
            if text:
                found.setdefault(code, text)
    return list(found.items())


def _of_baseline(m: Measured) -> Iterator[tuple[str, str]]:
    without = dict.fromkeys(cost.domain for cost in m.costs if cost.excess.why == "NO_BASELINE")
    if without and m.idle is not None:
        yield "NO_BASELINE", warning_text("NO_BASELINE", some(list(without)))
    if m.idle_why:
        yield "NO_BASELINE", f"The baseline cannot be read: {m.idle_why}."


def _of_costs(m: Measured) -> Iterator[tuple[str, str]]:
    added = {*m.energies.parts, *m.energies.wholes}
    gaps = [d for d, span in m.spans.items() if d in added and span.coverage < WHOLE and span.known]
    own = {"GAPS": f"{some(gaps)}: {flag_text('GAPS')}"} if gaps else {}
    for cost in m.costs:
        for code in (*cost.absolute.flags, *cost.excess.flags, cost.excess.why):
            yield code, own.get(code, flag_text(code))
    yield from own.items()


def _of_recording(m: Measured) -> Iterator[tuple[str, str]]:
    if m.trouble:
        yield "NOT_RECORDED", f"Not everything was recorded: {m.trouble}."
    elif m.kept and not m.run.ended:
        yield (
            "RUN_FILE",
            _problems(m)
            or "Nobody stopped this recording: it was killed, its disk was full, or it still goes"
            " on.",
        )


def _problems(m: Measured) -> str:
    return "; ".join(str(problem) for problem in m.run.problems[:3])


def _of_saves(m: Measured) -> Iterator[tuple[str, str]]:
    for window, what in zip(m.windows, m.contents, strict=True):
        # what was lost or failed is said above, and is no doubt
        if window.durable_s is None and not what.error and what.why not in LOST_BEFORE_SAFE:
            yield "NOT_DURABLE", f"{window.name}: {reason_text(what.why or window.durable_why)}"


def _of_sensors(m: Measured) -> Iterator[tuple[str, str]]:
    doubts = [m.energies.doubts(domain) for domain in m.energies.parts]
    for each in doubts:
        if each.looks is not None and each.looks < 1:
            code = "COUNTER_LOOKS" if each.of_counter else "SENSOR_LOOKS"
            yield code, warning_text(code, share(each.looks))
    accuracy = max((each.accuracy or 0.0 for each in doubts), default=0.0)
    if accuracy:
        yield "SENSOR_ERROR", warning_text("SENSOR_ERROR", share(accuracy))


def _of_meters(m: Measured) -> Iterator[tuple[str, str]]:
    for each in m.missing:
        yield "NOT_THERE", absence_text(each.what, each.reason, each.remedy.split("\n")[0])
    yield "RUN_FILE", _problems(m)
    # a process that was followed to its end is no meter that failed
    lost = dict.fromkeys(
        event.domain
        for event in m.events
        if event.name == "lost" and not event.domain.startswith("process:")
    )
    if lost:
        yield "METER_LOST", warning_text("METER_LOST", some(list(lost)))
    if m.node.missing:
        yield "PART_MISSING", warning_text("PART_MISSING", some(m.node.missing))
