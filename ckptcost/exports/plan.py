"""The bills of the cases of a saved answer, for all formats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from ckptcost.answer import Answer, Cell, Range, Table
from ckptcost.errors import InputError, unknown_name
from ckptcost.exports import QUANTITIES, WHOLE, Amount, Bills, Subject
from ckptcost.scenario.catalog import rows
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import per

DECIDES = {
    "gpu_time": "failures.gpu_rate",
    "energy": "cluster.gpu_train",
    "cost": "cluster.gpu_price",
    "carbon": "site.grid_location",
    "carbon_market": "site.grid_market",
    "embodied": "cluster.gpu_embodied",
    "water": "site.water",
}
"""the figure whose source stands beside a quantity"""


def bills_of(answer: Answer, case: str = "", start: datetime | None = None) -> Bills:
    """A subject for each case, or the one that is named."""
    totals, lines = _rows(answer, "cases"), _rows(answer, "lines")
    if not totals:
        problem = f"an answer of {answer.question} holds no bill of its cases"
        raise InputError(problem, remedy="hand over one of: ckptcost model JOB -f json")
    names = [str(row["case"]) for row in totals]
    if case and case not in names:
        raise unknown_name("case", case, names, "--case")
    found = [row for row in totals if case in ("", row["case"])]
    return Bills(
        [_subject(row, answer.cases.get(str(row["case"])), start) for row in found],
        [amount for row in found for amount in _amounts(row, lines, answer)],
        answer.command,
    )


def _rows(answer: Answer, name: str) -> list[dict[str, Cell]]:
    """Of a table that has every quantity by case; none if there is no such table."""
    table: Table | None = next((each for each in answer.tables if each.name == name), None)
    if table is None:
        return []
    keys = [column.key for column in table.columns]
    if not {"case", *QUANTITIES} <= set(keys):
        return []
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def _amounts(
    row: dict[str, Cell], lines: list[dict[str, Cell]], answer: Answer
) -> Iterator[Amount]:
    """Lines and totals of one case."""
    case = str(row["case"])
    mine = [each for each in lines if each["case"] == case] or [row | {"line": WHOLE}]
    for quantity in QUANTITIES:
        source = _source(answer.cases.get(case), quantity)
        amounts = [_amount(case, str(each["line"]), quantity, each, source) for each in mine]
        yield from amounts
        lacks = ", ".join(each.line for each in amounts if each.value is None)
        yield _amount(case, "total", quantity, row, source)._replace(lacks=lacks)


def _amount(case: str, line: str, quantity: str, row: dict[str, Cell], source: str) -> Amount:
    cell: Any = row[quantity]
    unit = per(QUANTITIES[quantity].unit)
    ends = cell if isinstance(cell, Range) else (cell, cell, cell)
    value, low, high = (float(x) / unit if isfinite(x) else None for x in ends)
    if value is None:
        return Amount(case, line, quantity, None, source=source)
    return Amount(case, line, quantity, value, low, high, "modelled", source)


def _source(scenario: Scenario | None, quantity: str) -> str:
    """Such as "cluster.gpu_price: published, nvidia-prices"."""
    path = DECIDES[quantity]
    figure = scenario.figures().get(path) if scenario else None
    if figure is None:
        return ""
    return f"{path}: {', '.join(filter(None, (figure.basis, figure.source)))}"


def _subject(row: dict[str, Cell], scenario: Scenario | None, start: datetime | None) -> Subject:
    wall, saves = (_value(row.get(key)) for key in ("wall", "saves"))
    end = start + timedelta(seconds=wall) if start and wall is not None and wall < 3e9 else None
    case = str(row["case"])
    name = f"{scenario.name}, {case}" if scenario and scenario.name != case else case
    return Subject(case, name, "plan", start, end, saves, _words(scenario) if scenario else {})


def _value(cell: Any) -> float | None:
    value = cell.value if isinstance(cell, Range) else cell
    return float(value) if isinstance(value, (int, float)) and isfinite(value) else None


def _words(scenario: Scenario) -> dict[str, str]:
    """What is known of a job in words; what is not known is left out."""
    names, figures = scenario.names, scenario.figures()
    grid = str(scenario.said["site"].get("grid") or "")
    place = next((each for each in rows("grids.csv") if each["id"] == grid), None)
    country = place["name"] if place and place["scope"].startswith("country") else ""
    found = {
        "model": names.get("checkpoint", ""),
        "tier": str(scenario.said["tier"].get("id") or ""),
        "cluster": names.get("cluster", ""),
        "site": names.get("site", ""),
        "grid": names.get("grid", ""),
        "country": country,
        "country_iso3": grid if country else "",
        "gpus": f"{figures['cluster.gpus'].value:.0f}" if "cluster.gpus" in figures else "",
        "gpu_model": names.get("accelerator", ""),
        "pue": f"{figures['site.pue'].value:g}" if "site.pue" in figures else "",
    }
    return {key: value for key, value in found.items() if value}
