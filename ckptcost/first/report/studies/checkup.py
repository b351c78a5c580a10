"""What can be measured here, as tables: by kind of thing, by channel with its tick and noise, and
what is missing with its remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ckptcost.first.core.channels import COUNTERS, Quantity
from ckptcost.first.jobs.checkup import KINDS, ChannelTrial, Checkup
from ckptcost.first.present.amounts import share, some
from ckptcost.first.present.measured import absence_text
from ckptcost.first.report.study import ROW_UNIT, Column, Study, Table, hidden, named, table_of

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
    "temperature_c": "C",
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
    return _UNIT.get(quantity) or ("1/s" if quantity in COUNTERS else "1")


_SAID_BESIDE = {"W": "W", "C": "C", "1/s": "/s"}
"""units that cells do not say"""


def _unit_column(of: str | Callable[[ChannelTrial], str] = "") -> Column:
    return Column("in", "in", meaning="where the figures do not say it themselves", of=of)


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
    said = f"measured by {some(means)}." if means else "not measured."
    lines = [f"{WORDS[kind][0].upper()}{WORDS[kind][1:]}: {said}"]
    return lines + [absence_text(a.what, a.reason, a.remedy) for a in c.absences if a.kind == kind]


def _kinds(c: Checkup) -> Table:
    columns = (
        Column("kind", "kind", of=str),
        Column("measured", "measured", "bool", of=lambda kind: bool(c.measured_by.get(kind))),
        *hidden(
            Column("by", "by", of=lambda kind: "; ".join(c.measured_by.get(kind, []))),
            Column(
                "reasons",
                "why not",
                meaning="of what is missing of this kind",
                of=lambda kind: "; ".join(
                    dict.fromkeys(a.reason for a in c.absences if a.kind == kind)
                ),
            ),
        ),
    )
    return table_of("kinds", "Kinds", columns, KINDS, shown=False)


_TOOK = Column("took", "took", "s", "one reading of the whole meter, median", of="took_s")


def _of_channel(name: str) -> Column:
    return Column(name, name, of=f"channel.{name}")


_CHANNELS = (
    _of_channel("domain"),
    _of_channel("quantity"),
    Column("rate", "now", ROW_UNIT, "a gauge's mean, or a counter's growth per second"),
    Column(
        "noise",
        "+-",
        ROW_UNIT,
        "standard deviation of a gauge, or of a counter's rate over fifths of the time",
    ),
    _unit_column(lambda trial: _SAID_BESIDE.get(unit_of(trial.channel.quantity), "")),
    Column(
        "tick",
        "tick",
        "s",
        "mean time between two changes, as seen when asked every 10 ms",
        of="tick_s",
    ),
    Column("answers", "answers", "count"),
    Column("asked", "of", "count"),
    _TOOK,
    *hidden(
        Column(
            "unit", "unit", meaning="of now and its noise", of=lambda t: unit_of(t.channel.quantity)
        ),
        "meter",
        "kind",
        _of_channel("source"),
        _of_channel("scope"),
        _of_channel("role"),
        _of_channel("device"),
        Column("published_tick", "published tick", "s", of="channel.tick_s"),
        Column("averaging", "averaging", "s", of="channel.averaging_s"),
        Column("looks", "looks", "share", of="channel.looks"),
        Column("accuracy", "accuracy", "share", of="channel.accuracy"),
        _of_channel("note"),
    ),
)


def _channels(c: Checkup) -> list[Table]:
    many = len(c.tried) > MOST_SHOWN
    each = table_of("channels", "Every channel, tried", _CHANNELS, c.tried, shown=not many)
    return [each, _alike(each.rows, many)]


def _alike(rows: Sequence[dict[str, Any]], shown: bool) -> Table:
    """The same with channels of a kind together: eight cards are one line."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        domain = re.sub(r"(?<=:)[a-z]*\d\w*", "*", row["domain"])
        groups.setdefault((domain, row["quantity"]), []).append(row)
    merged = []
    for (domain, quantity), alike in groups.items():
        rates, ticks = (
            [row[name] for row in alike if row[name] is not None] for name in ("rate", "tick")
        )
        merged.append(
            {
                "domain": domain,
                "quantity": quantity,
                "count": len(alike),
                "unit": alike[0]["unit"],
                "in": alike[0]["in"],
                "least": min(rates, default=None),
                "most": max(rates, default=None),
                "tick": max(ticks, default=None),
                "answers": min(row["answers"] for row in alike),
                "asked": max(row["asked"] for row in alike),
                "took": alike[0]["took"],
            }
        )
    columns = (
        *named("domain", "quantity"),
        Column("count", "channels", "count"),
        Column("least", "from", ROW_UNIT, "the lowest of them"),
        Column("most", "to", ROW_UNIT, "the highest"),
        _unit_column(),
        Column("tick", "tick", "s", "the slowest"),
        Column("answers", "answers", "count", "the fewest"),
        Column("asked", "of", "count"),
        _TOOK._replace(of=""),
        Column("unit", "unit", meaning="of from and to", shown=False),
    )
    return Table("alike", "Channels, tried; those of a kind together", columns, merged, shown=shown)


def _absences(c: Checkup) -> Table:
    columns = (
        *named("what"),
        Column("reason", "why"),
        Column("remedy", "what would help"),
        *hidden("kind"),
    )
    return table_of("absences", "Not measured here", columns, c.absences, shown=False)


def _cross(c: Checkup) -> Table:
    columns = (
        *named("domain"),
        Column("ours", "our reader", "J", of="ours_j"),
        Column("theirs", "pyRAPL", "J", of="theirs_j"),
        Column(
            "apart", "most apart", "J", "of two readings taken right after each other", of="apart_j"
        ),
    )
    return table_of("cross", "The same counters by pyRAPL", columns, c.cross)
