"""What can be measured here, as tables: by kind of thing, by channel with its tick and noise, and
what is missing with its remedy."""

from __future__ import annotations

import re
from typing import Any

from ckptcost.core.channels import Quantity
from ckptcost.jobs.checkup import KINDS, Checkup
from ckptcost.present.amounts import share
from ckptcost.present.measured import absence_text
from ckptcost.report.study import ROW_UNIT, Column, Study, Table, plain

MOST_SHOWN = 30
WORDS = {
    "gpu": "GPUs",
    "cpu": "processors",
    "dram": "memory",
    "storage": "storage",
    "node": "the whole node",
}
_UNIT: dict[str, str] = {
    "energy_j": "W",
    "power_w": "W",
    "utilisation": "share",
    "memory_used_bytes": "bytes",
    "dirty_bytes": "bytes",
    "writeback_bytes": "bytes",
    "written_bytes": "bytes_per_s",
    "read_bytes": "bytes_per_s",
    "cancelled_bytes": "bytes_per_s",
    "busy_s": "share",
    "queue_s": "1",
    "some_stalled_s": "share",
    "full_stalled_s": "share",
    "cpu_s": "share",
}
"""of a gauge, and of a counter's growth per second"""


def unit_of(quantity: Quantity) -> str:
    return _UNIT.get(quantity, "1")


def study_of(c: Checkup) -> Study:
    """Kinds first: most people ask for no more."""
    findings = [line for kind in KINDS for line in _about(c, kind)]
    if c.cross_why and not c.simulated:
        findings.append(f"No cross-check with pyRAPL: {c.cross_why}.")
    if c.tried and c.own_cpu == c.own_cpu:
        findings.append(
            f"Asking every meter up to 100 times a second took {share(c.own_cpu)} of one core."
        )
    return Study(
        kind="checkup",
        title=(
            "What can be measured here"
            if not c.simulated
            else "What can be measured on a simulated or replayed machine"
        ),
        about=[
            (
                f"Every meter was tried for {c.seconds:g} s."
                if c.tried
                else "No meter answers, so none was tried."
            )
        ],
        question={"seconds": c.seconds},
        tables=[_kinds(c), _absences(c), *_channels(c), *([_cross(c)] if c.cross else [])],
        findings=findings,
        simulated=c.simulated,
    )


def _about(c: Checkup, kind: str) -> list[str]:
    """What measures it, and then each thing that does not with what would help."""
    means = [text.split(" (")[0] for text in c.measured_by.get(kind, [])]
    more = f" and {len(means) - 6} more" if len(means) > 6 else ""
    said = f"measured by {', '.join(means[:6])}{more}." if means else "not measured."
    lines = [f"{WORDS[kind][0].upper()}{WORDS[kind][1:]}: {said}"]
    return lines + [absence_text(a.what, a.reason, a.remedy) for a in c.absences if a.kind == kind]


def _kinds(c: Checkup) -> Table:
    rows = [
        {
            "kind": kind,
            "measured": bool(c.measured_by.get(kind)),
            "by": "; ".join(c.measured_by.get(kind, [])),
            "reasons": "; ".join(dict.fromkeys(a.reason for a in c.absences if a.kind == kind)),
        }
        for kind in KINDS
    ]
    columns = (
        Column("kind", "kind"),
        Column("measured", "measured", "bool"),
        Column("by", "by", shown=False),
        Column("reasons", "why not", meaning="of what is missing of this kind", shown=False),
    )
    return Table("kinds", "Kinds", columns, rows, shown=False)


def _channels(c: Checkup) -> list[Table]:
    rows: list[dict[str, Any]] = []
    for t in c.tried:
        rows.append(
            {
                "domain": t.channel.domain,
                "quantity": t.channel.quantity,
                "meter": t.meter,
                "kind": t.kind,
                "unit": unit_of(t.channel.quantity),
                "rate": plain(t.rate),
                "noise": plain(t.noise),
                "tick": plain(t.tick_s),
                "answers": float(t.answers),
                "asked": float(t.asked),
                "took": plain(t.took_s),
                "source": t.channel.source,
                "scope": t.channel.scope,
                "role": t.channel.role,
                "device": t.channel.device,
                "published_tick": t.channel.tick_s,
                "averaging": t.channel.averaging_s,
                "looks": t.channel.looks,
                "accuracy": t.channel.accuracy,
                "note": t.channel.note,
            }
        )
    columns = (
        Column("domain", "domain"),
        Column("quantity", "quantity"),
        Column("rate", "now", ROW_UNIT, "a gauge's mean, or a counter's growth per second"),
        Column(
            "noise",
            "+-",
            ROW_UNIT,
            "standard deviation of a gauge, or of a counter's rate over fifths of the time",
        ),
        Column(
            "tick", "tick", "s", "mean time between two changes, as seen when asked every 10 ms"
        ),
        Column("answers", "answers", "count"),
        Column("asked", "of", "count"),
        Column("took", "took", "s", "one reading of the whole meter, median"),
        Column("unit", "unit", meaning="of now and its noise", shown=False),
        Column("meter", "meter", shown=False),
        Column("kind", "kind", shown=False),
        Column("source", "source", shown=False),
        Column("scope", "scope", shown=False),
        Column("role", "role", shown=False),
        Column("device", "device", shown=False),
        Column("published_tick", "published tick", "s", shown=False),
        Column("averaging", "averaging", "s", shown=False),
        Column("looks", "looks", "share", shown=False),
        Column("accuracy", "accuracy", "share", shown=False),
        Column("note", "note", shown=False),
    )
    many = len(rows) > MOST_SHOWN
    return [
        Table("channels", "Every channel, tried", columns, rows, shown=not many),
        _alike(rows, many),
    ]


def _alike(rows: list[dict[str, Any]], shown: bool) -> Table:
    """The same with channels of a kind together: eight cards are one line."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(
            (re.sub(r"(?<=:)[a-z]*\d\w*", "*", row["domain"]), row["quantity"]), []
        ).append(row)
    merged = []
    for (domain, quantity), alike in groups.items():
        rates = [row["rate"] for row in alike if row["rate"] is not None]
        ticks = [row["tick"] for row in alike if row["tick"] is not None]
        merged.append(
            {
                "domain": domain,
                "quantity": quantity,
                "count": float(len(alike)),
                "unit": alike[0]["unit"],
                "least": min(rates, default=None),
                "most": max(rates, default=None),
                "tick": max(ticks, default=None),
                "answers": min(row["answers"] for row in alike),
                "asked": max(row["asked"] for row in alike),
                "took": alike[0]["took"],
            }
        )
    columns = (
        Column("domain", "domain"),
        Column("quantity", "quantity"),
        Column("count", "channels", "count"),
        Column("least", "from", ROW_UNIT, "the lowest of them"),
        Column("most", "to", ROW_UNIT, "the highest"),
        Column("tick", "tick", "s", "the slowest"),
        Column("answers", "answers", "count", "the fewest"),
        Column("asked", "of", "count"),
        Column("took", "took", "s", "one reading of the whole meter, median"),
        Column("unit", "unit", meaning="of from and to", shown=False),
    )
    return Table("alike", "Channels, tried; those of a kind together", columns, merged, shown=shown)


def _absences(c: Checkup) -> Table:
    rows = [
        {"what": a.what, "kind": a.kind, "reason": a.reason, "remedy": a.remedy} for a in c.absences
    ]
    columns = (
        Column("what", "what"),
        Column("reason", "why"),
        Column("remedy", "what would help"),
        Column("kind", "kind", shown=False),
    )
    return Table("absences", "Not measured here", columns, rows, shown=False)


def _cross(c: Checkup) -> Table:
    rows = [
        {
            "domain": x.domain,
            "ours": plain(x.ours_j),
            "theirs": plain(x.theirs_j),
            "apart": plain(x.apart_j),
        }
        for x in c.cross
    ]
    columns = (
        Column("domain", "domain"),
        Column("ours", "our reader", "J"),
        Column("theirs", "pyRAPL", "J"),
        Column("apart", "most apart", "J", "of two readings taken right after each other"),
    )
    return Table("cross", "The same counters by pyRAPL", columns, rows)
