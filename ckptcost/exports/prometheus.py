"""Prometheus text for node_exporter's textfile collector; with dates, OpenMetrics for a backfill.

Lines are `ckptcost_plan_energy_joules{case,line}`; their sums are families of their own, so that
sum() over a family never counts twice, and a file holds one case. What is unknown has no series; it
is named in `ckptcost_plan_unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptcost.exports import QUANTITIES, Amount, Bills, Files, Subject

BASE = {
    "kWh": ("joules", 3.6e6),
    "GPU-h": ("seconds", 3600.0),
    "USD": ("usd", 1.0),
    "kgCO2e": ("grams", 1e3),
    "L": ("litres", 1.0),
}
"""Prometheus' base unit, and how many of it are one of ours"""


ENDS = {"": "", "_low": " (5th percentile)", "_high": " (95th percentile)"}
Sample = tuple[str, str, dict[str, str], float]
"""family, its help, labels, value"""


def samples(bills: Bills, s: Subject) -> Iterator[Sample]:
    who = {"case": s.id}
    about = who | {"name": s.name, "inventory": "memo_item", **s.words}
    yield "ckptcost_plan_about", "What was planned; 1.", about, 1.0
    if s.saves is not None:
        yield "ckptcost_plan_saves", "Completed saves, on average.", who, s.saves
    for row in bills.rows:
        if row.subject == s.id:
            yield from of_row(row, who)


def of_row(row: Amount, who: dict[str, str]) -> Iterator[Sample]:
    q, words = row.quantity, QUANTITIES[row.quantity].words
    unit, times = BASE[QUANTITIES[q].unit]
    line = who | {"line": row.line}
    if row.value is None:
        yield "ckptcost_plan_unknown", "1: not known, and in no sum.", line | {"quantity": q}, 1.0
    elif row.line != "total":
        yield f"ckptcost_plan_{q}_{unit}", f"{words}, by line.", line, row.value * times
    else:
        for (end, which), value in zip(ENDS.items(), (row.value, row.low, row.high), strict=True):
            if value is not None:
                name = f"ckptcost_plan_sum_{q}{end}_{unit}"
                yield name, f"{words}, all lines{which}.", who, value * times


def write(bills: Bills) -> Files:
    families: dict[str, list[str]] = {}
    (s,) = bills.subjects
    when = f" {s.end.timestamp():.0f}" if s.end else ""
    for name, help_, labels, value in samples(bills, s):
        lines = families.setdefault(name, [f"# HELP {name} {help_}", f"# TYPE {name} gauge"])
        said = ",".join(f'{key}="{escape(text)}"' for key, text in labels.items() if text)
        lines.append(f"{name}{{{said}}} {value:.12g}{when}")
    out = [line for lines in families.values() for line in lines]
    if s.end:
        return {"ckptcost.om": "\n".join([*out, "# EOF"]) + "\n"}
    return {"ckptcost.prom": "\n".join(out) + "\n"}


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
