"""What was measured, as tables: domains, checkpoints and their phases, disks, the meters
themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ckptcost.core.attribution import WHOLE, mean_w
from ckptcost.core.contents import LOST_BEFORE_SAFE
from ckptcost.core.reconcile import Energy
from ckptcost.jobs import disks
from ckptcost.jobs.measured import Measured, Stored
from ckptcost.present.amounts import count, duration, number, share
from ckptcost.present.measured import ABSENT, absence_text, flag_text, reason_text, warning_text
from ckptcost.report.studies.measure_power import power
from ckptcost.report.studies.measure_saves import (
    energies,
    honeymoon_told,
    job_findings,
    merged_told,
    phases,
    saves_told,
    staged_told,
    stalls_told,
    training_told,
    windows,
)
from ckptcost.report.studies.measured_parts import count_text, give_or_take, range_of, some, three
from ckptcost.report.studies.run_columns import plain
from ckptcost.report.study import Bills, Column, Study, Table

if TYPE_CHECKING:
    from ckptcost.catalog.store import Catalog
    from ckptcost.report.statement import Statement

MOST_SHOWN = 8
"""rows of what is less asked for; JSON and CSV have all"""
ROLES = {"part": "adds up", "whole": "contains the parts", "detail": "lies inside a part"}


def study_of(m: Measured) -> Study:
    """Sentences first, then the tables."""
    tables = [*_domains(m)]
    if m.windows:
        tables += [windows(m), energies(m), phases(m)]
    tables += [*(_stored(m) if m.stored else []), _sources(m), *([_events(m)] if m.events else [])]
    tables += [over_time] if (over_time := power(m)) is not None else []
    node = m.energies.node
    return Study(
        kind="measurement",
        title=f"{duration(m.length_s)} {_where(m)}",
        about=[
            *(
                [f"Replayed from a recording of {m.replayed}: nothing was measured just now."]
                if m.replayed
                else []
            ),
            (
                f"Measured at the node: no PUE. {len(m.energies.channels)} channels of"
                f" {len(node.headers[-1].meters)} meters;"
                f" {count_text(len(m.windows), 'checkpoint window')}."
            ),
            *(
                [f"Of the hosts {some(m.run.hosts)} this is {node.host} alone."]
                if len(m.run.hosts) > 1
                else []
            ),
        ],
        question={
            "seconds": m.length_s,
            "meters": [meter.name for meter in node.headers[-1].meters],
        }
        | ({"run": m.kept} if m.kept else {})
        | ({"replayed": m.replayed} if m.replayed else {}),
        tables=tables,
        findings=_findings(m),
        warnings=_warnings(m),
        simulated=m.simulated,
        bills=Bills(lambda catalog: _bills(m, catalog)),
    )


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
    from ckptcost.report.statements.measured import statement_of

    told = statement_of(m, catalog)
    return [] if told is None else [told]


def _findings(m: Measured) -> list[str]:
    said = []
    parts = m.node.parts
    if parts.known:
        said.append(
            f"{give_or_take(parts)} J{_covered(parts)}, {number(m.parts_w)} W in the mean, in "
            f"{count_text(len(m.energies.parts), 'metered part')}: {some(m.energies.parts)}."
        )
    else:
        why = ABSENT.get(parts.why, "a part that adds up has no joules over all of the time")
        if m.node.missing and m.node.known_j > 0:
            others = [domain for domain in m.energies.parts if domain not in m.node.missing]
            why = (
                f"{some(m.node.missing)} did not answer; {some(others)} took"
                f" {number(m.node.known_j)} J"
            )
        said.append(f"No sum of joules: {why}.")
    if m.node.node.known:
        left = m.node.unaccounted
        rest = f"What no part explains is not known: {reason_text(left.why)}."
        if left.known:
            rest = (
                f"{give_or_take(mean_w(left, m.length_s))} W of it are in no part: fans, boards,"
                " network, power supplies."
            )
        said.append(f"The node's own meter says {give_or_take(m.node.node)} J. {rest}")
    said += job_findings(m)
    said += saves_told(m)
    said += merged_told(m)
    said += stalls_told(m)
    said += staged_told(m)
    said += honeymoon_told(m)
    if save := m.mean_save:
        still = (
            f", {number(save.stalled_gpu_s)} GPU-seconds stood still"
            if save.stalled_gpu_s > 0
            else ""
        )
        said.append(
            f"{'The checkpoint' if save.saves == 1 else 'A checkpoint, in the mean of'}"
            f"{'' if save.saves == 1 else f' {count(save.saves)}'}:"
            f" training stalls for {duration(save.stall_s)}, {number(save.joules)} J from its begin"
            f" until it is safe{still}."
        )
    said += training_told(m)
    if m.own_share == m.own_share:
        cost = f", {number(m.own.low)} to {number(m.own.high)} J" if m.own.known else ""
        said.append(f"Measuring itself took {share(m.own_share)} of one core{cost}.")
    return said


def _covered(energy: Energy) -> str:
    """Of how much of the time, where it is not all of it."""
    return (
        ""
        if energy.coverage >= WHOLE
        else (
            f" of the {share(energy.coverage)} of the time that readings know of the least known"
            " part"
        )
    )


def _domains(m: Measured) -> Sequence[Table]:
    """What adds up and what contains it; and what lies inside, which is long on a machine with many
    cards."""
    rows: list[dict[str, Any]] = []
    for domain in [*m.energies.parts, *m.energies.wholes, *m.energies.details]:
        energy, source = m.spans[domain], m.energies.sources[domain]
        known = m.energies.provenance(domain, m.begin_s, m.end_s)
        rows.append(
            {
                "domain": domain,
                **three(energy, "joules"),
                "watts": plain(m.mean_w(energy)),
                "role": (
                    "part"
                    if domain in m.energies.parts
                    else "whole"
                    if domain in m.energies.wholes
                    else "detail"
                ),
                "coverage": plain(energy.coverage if energy.known else known.coverage),
                "tick": plain(known.tick_s),
                "source": known.source,
                "scope": known.scope,
                "boundary": known.boundary,
                "basis": known.basis,
                "device": known.device,
                "driver": known.driver,
                "averaging": known.averaging_s,
                "looks": known.looks,
                "accuracy": known.accuracy,
                "ticks": plain(known.ticks),
                "note": source.channel.note,
                "why": energy.why,
            }
        )
    own = m.own
    if m.own_cpu_s == m.own_cpu_s:
        rows.append(
            {
                "domain": "self",
                **three(own, "joules"),
                "watts": plain(m.mean_w(own)),
                "role": "detail",
                "coverage": 1.0,
                "source": "this recorder's processor time",
                "scope": "process",
                "boundary": "node",
                "basis": "modelled",
                "why": own.why,
                "note": f"{number(m.own_cpu_s)} s of processor time",
            }
        )
    columns = (
        Column("domain", "domain"),
        Column("role", "role", meaning="; ".join(f"{k}: {v}" for k, v in ROLES.items())),
        Column("watts", "mean W", "W"),
        Column("joules", "J", "J"),
        *range_of("joules", True),
        Column(
            "coverage", "covered", "share", "of the time that is known; joules are of this part"
        ),
        Column("tick", "tick", "s", "how often the source renews the value, as measured here"),
        Column("source", "source", shown=False),
        Column("scope", "scope", shown=False),
        Column("boundary", "boundary", shown=False),
        Column("basis", "basis", meaning="measured or modelled", shown=False),
        Column("device", "device", shown=False),
        Column("driver", "driver", shown=False),
        Column(
            "averaging", "averaging", "s", "the sensor's value is a mean over so long", shown=False
        ),
        Column(
            "looks", "looks", "share", "of the time in which the sensor looks at all", shown=False
        ),
        Column(
            "accuracy",
            "accuracy",
            "share",
            "published error of the sensor; low and high do not contain it",
            shown=False,
        ),
        Column("ticks", "ticks", "count", "points of the counter known in the time", shown=False),
        Column("note", "note", shown=False),
        Column("why", "why", meaning="code, where joules are unknown", shown=False),
    )
    told = [row for row in rows if row["role"] != "detail" or row["domain"] == "self"]
    inside = [row for row in rows if row not in told]
    return [
        Table(
            "domains",
            "What was used",
            columns,
            told,
            "+-: how far the joules may lie off, as far as ticks and gaps tell.",
        ),
        Table(
            "details", "Inside these, never added", columns, inside, shown=len(inside) <= MOST_SHOWN
        ),
    ]


def _stored(m: Measured) -> list[Table]:
    whole = [_disk_row(stored) for stored in m.stored if not stored.window]
    saves = [_disk_row(stored) for stored in disks.of_saves(m)]
    columns = (
        Column("window", "checkpoint"),
        Column("disk", "disk"),
        Column("written", "written", "bytes"),
        Column("written_error", "+-", "bytes", "how far the farther of low and high is"),
        Column("written_low", "low", "bytes", "by the readings within", shown=False),
        Column("written_high", "high", "bytes", "by the readings around it", shown=False),
        Column("rate", "mean rate", "bytes_per_s"),
        Column("peak_rate", "peak", "bytes_per_s", "highest mean over `peak_over`"),
        Column("depth", "mean depth", "1", "requests under way"),
        Column("peak_depth", "peak", "1"),
        Column("busy", "busy", "share"),
        Column("flushes", "flushes", "count", shown=False),
        Column("writes", "writes", "count", shown=False),
        Column("write_size", "write size", "bytes", shown=False),
        Column("read", "read", "bytes", shown=False),
        Column("wait", "wait", "s", "mean time of a request, by Little's law", shown=False),
        Column("peak_over", "peak over", "s", shown=False),
        Column("coverage", "covered", "share", shown=False),
    )
    return [
        Table("storage", "Disks", _without_error(columns[1:]), whole),
        *(
            [
                Table(
                    "storage_windows",
                    "Disks, by checkpoint",
                    columns,
                    saves,
                    disks.whose_bytes(m),
                    shown=len(saves) <= MOST_SHOWN,
                )
            ]
            if saves
            else []
        ),
    ]


def _without_error(columns: Sequence[Column]) -> tuple[Column, ...]:
    """For people: over the whole time it is little."""
    return tuple(c._replace(shown=False) if c.id == "written_error" else c for c in columns)


def _disk_row(s: Stored) -> dict[str, Any]:
    q = s.queue
    return {
        "window": s.window,
        "disk": s.disk,
        "written": plain(q.written_bytes),
        "written_error": plain(
            max(q.written_high_bytes - q.written_bytes, q.written_bytes - q.written_low_bytes)
        ),
        "written_low": plain(q.written_low_bytes),
        "written_high": plain(q.written_high_bytes),
        "rate": plain(q.write_bytes_per_s),
        "peak_rate": plain(q.peak_write_bytes_per_s),
        "depth": plain(q.mean_depth),
        "peak_depth": plain(q.peak_depth),
        "busy": plain(q.busy),
        "writes": plain(q.writes),
        "write_size": plain(q.mean_write_bytes),
        "flushes": plain(q.flushes),
        "read": plain(q.read_bytes),
        "wait": plain(q.wait_s),
        "peak_over": plain(q.peak_over_s),
        "coverage": plain(q.coverage),
    }


def _sources(m: Measured) -> Table:
    rows = [
        {
            "domain": c.domain,
            "quantity": c.quantity,
            "meter": meter.name,
            "source": c.source,
            "scope": c.scope,
            "role": c.role,
            "device": c.device,
            "tick": m.energies.node.period_s(c),
            "note": c.note,
        }
        for meter in m.energies.node.headers[-1].meters
        for c in meter.channels
    ]
    columns = (
        Column("domain", "domain"),
        Column("quantity", "quantity"),
        Column("meter", "meter"),
        Column("source", "source"),
        Column("scope", "scope"),
        Column("role", "role"),
        Column("device", "device"),
        Column("note", "note"),
        Column("tick", "tick", "s"),
    )
    return Table("sources", "Where it was read", columns, rows, shown=False)


def _events(m: Measured) -> Table:
    rows = [{"at": e.t_s, "name": e.name, "domain": e.domain, "text": e.text} for e in m.events]
    columns = (
        Column("name", "event"),
        Column("domain", "domain"),
        Column("text", "what"),
        Column("at", "at", "s"),
    )
    return Table("events", "What happened to the meters", columns, rows)


def _warnings(m: Measured) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    if m.idle_why:
        found["NO_BASELINE"] = f"The baseline cannot be read: {m.idle_why}."
    without = list(
        dict.fromkeys(cost.domain for cost in m.costs if cost.excess.why == "NO_BASELINE")
    )
    if without and m.idle is not None:
        found["NO_BASELINE"] = warning_text("NO_BASELINE", some(without))
    for cost in m.costs:
        for code in (*cost.absolute.flags, *cost.excess.flags, cost.excess.why):
            if code and (text := flag_text(code)):
                found.setdefault(code, text)
    if gaps := [
        d
        for d in m.spans
        if d in {*m.energies.parts, *m.energies.wholes}
        and m.spans[d].coverage < WHOLE
        and m.spans[d].known
    ]:
        found["GAPS"] = f"{some(gaps)}: {flag_text('GAPS')}"
    if m.trouble:
        found["NOT_RECORDED"] = f"Not everything was recorded: {m.trouble}."
    elif m.kept and not m.run.ended:
        found["RUN_FILE"] = (
            "Nobody stopped this recording: it was killed, its disk was full, or it still goes on."
        )
    for code in m.node.flags:
        if text := flag_text(code):
            found.setdefault(code, text)
    for window, what in zip(m.windows, m.contents, strict=True):
        # what was lost or failed is said above, and is no doubt
        if window.durable_s is None and not what.error and what.why not in LOST_BEFORE_SAFE:
            why = reason_text(what.why or window.durable_why)
            found.setdefault("NOT_DURABLE", f"{window.name}: {why}")
    for domain in m.energies.parts:
        doubts = m.energies.doubts(domain)
        if doubts.looks is not None and doubts.looks < 1:
            code = "COUNTER_LOOKS" if doubts.of_counter else "SENSOR_LOOKS"
            found.setdefault(code, warning_text(code, share(doubts.looks)))
    if accuracies := [
        doubts.accuracy for d in m.energies.parts if (doubts := m.energies.doubts(d)).accuracy
    ]:
        found["SENSOR_ERROR"] = warning_text(
            "SENSOR_ERROR", share(max(a for a in accuracies if a is not None))
        )
    for absence in m.missing:
        found.setdefault(
            "NOT_THERE", absence_text(absence.what, absence.reason, absence.remedy.split("\n")[0])
        )
    if m.run.problems:
        found["RUN_FILE"] = "; ".join(str(problem) for problem in m.run.problems[:3])
    # a process that was followed to its end is no meter that failed
    lost = list(
        dict.fromkeys(
            event.domain
            for event in m.events
            if event.name == "lost" and not event.domain.startswith("process:")
        )
    )
    if lost:
        found["METER_LOST"] = warning_text("METER_LOST", some(lost))
    if m.node.missing:
        found["PART_MISSING"] = warning_text("PART_MISSING", some(m.node.missing))
    return list(found.items())
