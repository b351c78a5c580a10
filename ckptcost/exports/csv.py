"""Tidy CSV: `totals.csv`, a row a total, and `lines.csv`, a row for each line of a bill and
quantity; `datapackage.json` says what the columns are. Empty is unknown, 0 is a known zero."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ckptcost import __version__
from ckptcost.exports import MEMO, QUANTITIES, Amount, Bills, Files, Subject, instant
from ckptcost.write import csv_text

WHO = {
    "subject": "case of the plan; only one of them will happen",
    "name": "its name",
    "kind": "plan: modelled before the run",
    "start": "UTC; empty: a plan has no dates",
    "end": "UTC, exclusive",
}
WORDS = ("model", "tier", "cluster", "site", "grid", "country")
AMOUNT = {
    "unit": "of value, low and high",
    "value": "empty: not known",
    "low": "5 of 100 draws are below it",
    "high": "95 of 100 draws are; empty beside a value: not known, or without end",
    "basis": "what it rests on",
    "source": "the figure behind it that decides, and its sources",
    "ledger": "rows of two ledgers never add up",
    "inventory_treatment": MEMO,
}
TOTALS = {
    **WHO,
    **{word: word for word in WORDS},
    "metric": "what is counted",
    "words": "what that is",
    **AMOUNT,
    "lacks": "lines that are not known, and in no sum",
}
LINES = {
    **WHO,
    "line": "line of the bill; add up lines of one subject and quantity, and nothing else",
    "metric": "what is counted",
    **AMOUNT,
}
NUMBERS = ("value", "low", "high")


ESRS = {
    "esrs_e1_5_energy": ("energy", "MWh", "esrs", "E1-5 energy consumption"),
    "esrs_e1_6_location": ("carbon", "tCO2e", "esrs", "E1-6 location-based"),
    "esrs_e1_6_market": ("carbon_market", "tCO2e", "esrs-market", "E1-6 market-based"),
}
"""totals again, in thousands, in a ledger of their own"""
PART = "memo, part of what the site reports (scope 2 if you run it, scope 3 if you rent)"
SCI = "SCI (ISO/IEC 21031): (E x I + M) for each checkpoint, location-based"


def totals_of(bills: Bills) -> Iterator[dict[str, Any]]:
    """A row for each subject and total, then those of ESRS E1 and SCI."""
    for s in bills.subjects:
        made = Amount(s.id, "total", "saves", s.saves, basis="modelled")
        words = "completed checkpoints, on average"
        yield _row(s, made, "count", "operation") | {"words": words}
        total = {q: bills.of(s, q) for q in QUANTITIES}
        for q, about in QUANTITIES.items():
            yield _row(s, total[q], about.unit, about.ledger) | {"words": about.words}
        for metric, (q, unit, ledger, name) in ESRS.items():
            row = _row(s, total[q], unit, ledger)
            less = {end: None if row[end] is None else row[end] * 1e-3 for end in NUMBERS}
            yield row | less | {"metric": metric, "words": f"ESRS {name}: {PART}"}
        yield _row(s, _sci(total, s), "gCO2e/checkpoint", "sci") | {"words": SCI}


def _sci(total: Mapping[str, Amount], s: Subject) -> Amount:
    """Without a range: those of its two parts do not add up."""
    carbon, made = total["carbon"], total["embodied"]
    parts = {"I": carbon.value, "M": made.value, "R": s.saves}
    source = "; ".join(filter(None, (carbon.source, made.source)))
    lacks = " and ".join(word for word, known in parts.items() if not known)
    if carbon.value is None or made.value is None or not s.saves:
        return Amount(s.id, "total", "sci", None, source=source, lacks=lacks)
    value = (carbon.value + made.value) * 1000.0 / s.saves
    return Amount(s.id, "total", "sci", value, basis="modelled", source=source, lacks=lacks)


def lines_of(bills: Bills) -> Iterator[dict[str, Any]]:
    """A row for each subject, line and quantity."""
    by_id = {s.id: s for s in bills.subjects}
    for row in bills.rows:
        if row.line != "total":
            about = QUANTITIES[row.quantity]
            yield _row(by_id[row.subject], row, about.unit, about.ledger)


def _row(s: Subject, amount: Amount, unit: str, ledger: str) -> dict[str, Any]:
    """More than any file has columns for."""
    return {
        **amount._asdict(),
        **s.words,
        "name": s.name,
        "kind": "plan",
        "start": instant(s.start),
        "end": instant(s.end),
        "metric": amount.quantity,
        "unit": unit,
        "ledger": ledger,
        "inventory_treatment": "memo_item",
    }


def text(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Of each row the columns that are named; what it does not have is empty."""
    columns = [*columns]
    return csv_text([columns, *([row.get(name) for name in columns] for row in rows)])


def write(bills: Bills) -> Files:
    files = {
        "totals.csv": text(TOTALS, totals_of(bills)),
        "lines.csv": text(LINES, lines_of(bills)),
    }
    about = {
        "profile": "tabular-data-package",
        "name": "checkpoint-costs",
        "title": "What checkpoints cost",
        "description": f"ckptcost {__version__}: {bills.command}. {MEMO}",
        "resources": [
            _resource("totals", TOTALS, ("subject", "metric"), files["totals.csv"]),
            _resource("lines", LINES, ("subject", "line", "metric"), files["lines.csv"]),
        ],
    }
    return files | {"datapackage.json": json.dumps(about, indent=1) + "\n"}


def _resource(name: str, columns: dict[str, str], key: tuple[str, ...], content: str) -> Any:
    """With the hash of the file, so that an edited cell is found."""
    data = content.encode()
    kinds = dict.fromkeys(NUMBERS, "number") | {"start": "datetime", "end": "datetime"}
    fields = [
        {"name": n, "type": kinds.get(n, "string"), "description": words}
        for n, words in columns.items()
    ]
    return {
        "name": name,
        "path": f"{name}.csv",
        "profile": "tabular-data-resource",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": len(data),
        "hash": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "schema": {"fields": fields, "primaryKey": [*key], "missingValues": [""]},
    }
