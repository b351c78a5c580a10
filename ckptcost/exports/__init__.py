"""A saved answer as files for other software: one table of amounts, and a module a format.

`plan.bills_of(document)` gives a row for each case, line and quantity, and every format is written
from those. Two rules are decided before a row is here, and by no format:

* Unknown is None, never 0. A total is None if a line that it needs is unknown, and `lacks` names
  the lines that are not in it.
* Alternatives never add up. Market-based carbon and embodied carbon are `ledger`s of their own, and
  a format whose readers add up all rows gets one case of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import NamedTuple

from ckptcost.errors import InputError, unknown_name

MEMO = "memo item: already in the facility's own meter or bill, do not add it to an inventory"


class Quantity(NamedTuple):
    unit: str
    words: str
    ledger: str
    """quantities of one ledger and unit add up over lines; those of different ledgers never do"""


QUANTITIES = {
    "gpu_time": Quantity("GPU-h", "GPU time that trained nothing", "operation"),
    "energy": Quantity("kWh", "electricity at the facility", "operation"),
    "cost": Quantity("USD", "dollars for GPU time, electricity and storage", "operation"),
    "carbon": Quantity("kgCO2e", "emissions, location-based", "location"),
    "carbon_market": Quantity("kgCO2e", "emissions, market-based: the same kWh again", "market"),
    "embodied": Quantity("kgCO2e", "making the hardware, its share", "embodied"),
    "water": Quantity("L", "water for cooling, on site", "operation"),
}


class Amount(NamedTuple):
    """One row. In people's units; None is unknown."""

    subject: str
    line: str
    """of the bill; "total" for their sum"""
    quantity: str
    value: float | None
    low: float | None = None
    high: float | None = None
    basis: str = ""
    source: str = ""
    """the figure behind it that decides, and where it is from"""
    lacks: str = ""
    """lines that are unknown, and so not in this total"""


@dataclass
class Subject:
    """Whose bill it is: a case of a plan."""

    id: str
    name: str
    start: datetime | None
    end: datetime | None
    saves: float | None
    words: Mapping[str, str]
    """model, tier, cluster, site, grid, country: what is known of them"""

    @property
    def period(self) -> tuple[datetime, datetime]:
        """Of a format that needs dates."""
        if not (self.start and self.end):
            raise InputError(f"{self.id} never ends", "--start", "export a case that ends")
        return self.start.astimezone(UTC), self.end.astimezone(UTC)


@dataclass
class Bills:
    subjects: list[Subject]
    rows: list[Amount]
    command: str

    def of(self, subject: Subject, quantity: str, line: str = "total") -> Amount:
        wanted = subject.id, line, quantity
        return next((row for row in self.rows if row[:3] == wanted), Amount(*wanted, None))

    def lines(self, subject: Subject) -> list[str]:
        mine = (row.line for row in self.rows if row.subject == subject.id)
        return [line for line in dict.fromkeys(mine) if line != "total"]

    def needing(self, format_: str, *quantities: str) -> list[Subject]:
        """All subjects, if these totals of theirs are known: a format without a place for what is
        unknown refuses it, and never makes it 0."""
        for amount in (self.of(each, q) for each in self.subjects for q in quantities):
            if amount.value is None:
                raise InputError(
                    f"{format_} has no place for what is not known: {amount.quantity} of"
                    f" {amount.subject} ({amount.lacks or 'no line of it is known'})",
                    remedy="use --to csv, which leaves it empty",
                )
        return self.subjects


class Format(NamedTuple):
    reader: str
    use: str
    adds_up: bool = False
    """its readers add up all rows, so that it holds one case"""
    dated: bool = False
    """it needs dates"""


FORMATS = {
    "csv": Format(
        "spreadsheets, pandas, R, ESG suites (by mapping)",
        "totals, ESRS E1 and SCI rows, lines; frictionless validates it",
    ),
    "parquet": Format("DuckDB, warehouses", "lines of the bill"),
    "prometheus": Format(
        "node_exporter's textfile collector; with --start a backfill by promtool",
        "dashboards; gauges of a plan, no counters",
        adds_up=True,
    ),
    "focus": Format(
        "FinOps tools that import FOCUS 1.2",
        "show-back as a memo; its dollars are on a real invoice already",
        adds_up=True,
        dated=True,
    ),
    "codecarbon": Format(
        "CodeCarbon, carbonboard",
        "beside measured runs, marked as a plan",
        adds_up=True,
        dated=True,
    ),
    "model-card": Format(
        "people; the EU's form for general-purpose models",
        "the share of checkpoints and failures in the energy of training",
    ),
}
Files = Mapping[str, str | bytes]


def export(bills: Bills, format_: str) -> Files:
    """The files of a format, by name."""
    if format_ not in FORMATS:
        raise unknown_name("format", format_, FORMATS, "--to")
    about = FORMATS[format_]
    if about.adds_up and len(bills.subjects) > 1:
        raise InputError(
            f"cases exclude each other, and readers of {format_} add up all rows",
            "--case",
            f"name one: {'; '.join(each.id for each in bills.subjects)}",
        )
    if about.dated and not all(each.start for each in bills.subjects):
        raise InputError(f"{format_} needs dates", "--start", "write e.g. --start 2026-11-01")
    files: Files = import_module(f"ckptcost.exports.{format_.replace('-', '_')}").write(bills)
    return files


def instant(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
