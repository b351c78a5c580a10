"""Tidy CSV: `totals.csv`, a row a total, and `lines.csv`, a row for each line of a bill and
quantity; `datapackage.json` says what the columns are. Empty is unknown, 0 is a known zero."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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


def totals_of(bills: Bills) -> Iterator[dict[str, Any]]:
    """A row for each subject and total."""
    for s in bills.subjects:
        for metric, words, unit, ledger, amount in _metrics(bills, s):
            yield {
                **_who(s),
                **{word: s.words.get(word) for word in WORDS},
                **_amount(amount, unit, ledger),
                "metric": metric,
                "words": words,
                "lacks": amount.lacks,
            }


def _metrics(bills: Bills, s: Subject) -> Iterator[tuple[str, str, str, str, Amount]]:
    """Totals, then the same under the names of ESRS E1 and SCI, which are ledgers of their own."""
    made = Amount(s.id, "total", "saves", s.saves, basis="modelled")
    yield "saves", "completed checkpoints, on average", "count", "operation", made
    total = {q: bills.of(s, q) for q in QUANTITIES}
    for q, about in QUANTITIES.items():
        yield q, about.words, about.unit, about.ledger, total[q]
    memo = "memo, part of what the site reports (scope 2 if you run it, scope 3 if you rent)"
    energy, place, market = (_times(total[q], 1e-3) for q in ("energy", "carbon", "carbon_market"))
    yield "esrs_e1_5_energy", f"ESRS E1-5 energy consumption: {memo}", "MWh", "esrs", energy
    yield "esrs_e1_6_location", f"ESRS E1-6 location-based: {memo}", "tCO2e", "esrs", place
    yield "esrs_e1_6_market", f"ESRS E1-6 market-based: {memo}", "tCO2e", "esrs-market", market
    sci = "SCI (ISO/IEC 21031): (E x I + M) for each checkpoint, location-based"
    yield "sci", sci, "gCO2e/checkpoint", "sci", _sci(total, s)


def _times(amount: Amount, factor: float) -> Amount:
    ends = ((x if x is None else x * factor) for x in (amount.value, amount.low, amount.high))
    value, low, high = ends
    return amount._replace(value=value, low=low, high=high)


def _sci(total: Mapping[str, Amount], s: Subject) -> Amount:
    """Without a range: those of its two parts do not add up."""
    operation, made = total["carbon"], total["embodied"]
    value = None
    if operation.value is not None and made.value is not None and s.saves:
        value = (operation.value + made.value) * 1000.0 / s.saves
    source = "; ".join(filter(None, (operation.source, made.source)))
    lacks = " and ".join(
        word
        for word, known in (("I", operation.value), ("M", made.value), ("R", s.saves))
        if not known
    )
    basis = "modelled" if value is not None else ""
    return Amount(s.id, "total", "sci", value, basis=basis, source=source, lacks=lacks)


def lines_of(bills: Bills) -> Iterator[dict[str, Any]]:
    """A row for each subject, line and quantity."""
    by_id = {s.id: s for s in bills.subjects}
    for row in bills.rows:
        if row.line != "total":
            about = QUANTITIES[row.quantity]
            yield {
                **_who(by_id[row.subject]),
                **_amount(row, about.unit, about.ledger),
                "line": row.line,
                "metric": row.quantity,
            }


def _who(s: Subject) -> dict[str, Any]:
    return {
        "subject": s.id,
        "name": s.name,
        "kind": s.kind,
        "start": instant(s.start),
        "end": instant(s.end),
    }


def _amount(amount: Amount, unit: str, ledger: str) -> dict[str, Any]:
    found = {key: getattr(amount, key) for key in ("value", "low", "high", "basis", "source")}
    return found | {"unit": unit, "ledger": ledger, "inventory_treatment": "memo_item"}


def text(columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> str:
    return csv_text([columns, *([row.get(name) for name in columns] for row in rows)])


def write(bills: Bills) -> Files:
    files = {
        "totals.csv": text([*TOTALS], totals_of(bills)),
        "lines.csv": text([*LINES], lines_of(bills)),
    }
    about = {
        "profile": "tabular-data-package",
        "name": "checkpoint-costs",
        "title": "What checkpoints cost",
        "description": f"ckptcost {bills.version}: {bills.command}. {MEMO}",
        "resources": [
            _resource("totals", TOTALS, ("subject", "metric"), files["totals.csv"]),
            _resource("lines", LINES, ("subject", "line", "metric"), files["lines.csv"]),
        ],
    }
    return files | {"datapackage.json": json.dumps(about, indent=1) + "\n"}


def _resource(
    name: str, columns: dict[str, str], key: Sequence[str], content: str
) -> dict[str, Any]:
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
