"""Prometheus text for node_exporter's textfile collector; with dates, OpenMetrics for a backfill.

Lines are `ckptcost_plan_energy_joules{case,line}`; their sums are families of their own, so that
sum() over a family never counts twice, and a file holds one case. What is unknown has no series; it
is named in `ckptcost_plan_unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ckptcost.exports import QUANTITIES, Amount, Bills, Files, Subject

BASE = {
    "kWh": ("joules", 3.6e6),
    "GPU-h": ("seconds", 3600.0),
    "USD": ("usd", 1.0),
    "kgCO2e": ("grams", 1e3),
    "L": ("litres", 1.0),
}
"""Prometheus' base unit, and how many of it are one of ours"""


class Sample(NamedTuple):
    family: str
    help: str
    labels: dict[str, str]
    value: float
    subject: Subject


def samples(bills: Bills) -> Iterator[Sample]:
    for s in bills.subjects:
        who = {"case": s.id}
        about = who | {"name": s.name, "inventory": "memo_item", **s.words}
        yield Sample("ckptcost_plan_about", "What was planned; 1.", about, 1.0, s)
        if s.saves is not None:
            yield Sample("ckptcost_plan_saves", "Completed saves, on average.", who, s.saves, s)
        for row in bills.rows:
            if row.subject == s.id:
                yield from of_row(row, s, who)


def of_row(row: Amount, s: Subject, who: dict[str, str]) -> Iterator[Sample]:
    about = QUANTITIES[row.quantity]
    unit, times = BASE[about.unit]
    if row.value is None:
        labels = who | {"line": row.line, "quantity": row.quantity}
        yield Sample("ckptcost_plan_unknown", "1: not known, and in no sum.", labels, 1.0, s)
    elif row.line != "total":
        name = f"ckptcost_plan_{row.quantity}_{unit}"
        labels = who | {"line": row.line}
        yield Sample(name, f"{about.words}, by line.", labels, row.value * times, s)
    else:
        for end, value in (("", row.value), ("_low", row.low), ("_high", row.high)):
            if value is not None:
                name = f"ckptcost_plan_sum_{row.quantity}{end}_{unit}"
                words = {"": "", "_low": " (5th percentile)", "_high": " (95th percentile)"}[end]
                yield Sample(name, f"{about.words}, all lines{words}.", who, value * times, s)


def write(bills: Bills) -> Files:
    dated = any(s.end for s in bills.subjects)
    families: dict[str, list[Sample]] = {}
    for each in samples(bills):
        families.setdefault(each.family, []).append(each)
    out = []
    for name, found in families.items():
        out += [f"# HELP {name} {found[0].help}", f"# TYPE {name} gauge"]
        out += [line(each, dated) for each in found]
    file = "ckptcost.om" if dated else "ckptcost.prom"
    return {file: "\n".join(out + ["# EOF"] * dated) + "\n"}


def line(each: Sample, dated: bool) -> str:
    said = ",".join(f'{name}="{escape(text)}"' for name, text in each.labels.items() if text)
    when = f" {each.subject.end.timestamp():.0f}" if dated and each.subject.end else ""
    return f"{each.family}{{{said}}} {each.value:.12g}{when}"


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
