"""The bills of the cases of a saved answer, for all formats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from ckptcost.answer import Answer, Cell, Range
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
    by_case = {str(row["case"]): row for row in totals}
    if not by_case or len(by_case) < len(totals):  # the plans of a grid have no names
        problem = f"an answer of {answer.question} holds no bill of its cases"
        raise InputError(problem, remedy="hand over one of: ckptcost model JOB -f json")
    if case and case not in by_case:
        raise unknown_name("case", case, by_case, "--case")
    bills = Bills([], [], answer.command)
    for name in [case] if case else by_case:
        row, scenario = by_case[name], answer.cases.get(name)
        bills.subjects.append(_subject(row, scenario, start))
        bills.rows += _amounts(row, lines, scenario)
    return bills


def _rows(answer: Answer, name: str) -> list[dict[str, Cell]]:
    """Of a table that has every quantity by case; none if there is no such table."""
    for table in answer.tables:
        keys = [column.key for column in table.columns]
        if table.name == name and {"case", *QUANTITIES} <= set(keys):
            return [dict(zip(keys, row, strict=True)) for row in table.rows]
    return []


def _amounts(
    row: dict[str, Cell], lines: list[dict[str, Cell]], scenario: Scenario | None
) -> Iterator[Amount]:
    """Lines and totals of one case."""
    mine = [each for each in lines if each["case"] == row["case"]] or [row | {"line": WHOLE}]
    figures = scenario.figures() if scenario else {}
    for quantity, path in DECIDES.items():
        figure = figures.get(path)
        stands = ", ".join(filter(None, (figure.basis, figure.source))) if figure else ""
        source = f"{path}: {stands}" if figure else ""
        amounts = [_amount(each, str(each["line"]), quantity, source) for each in mine]
        yield from amounts
        lacks = ", ".join(each.line for each in amounts if each.value is None)
        yield _amount(row, "total", quantity, source)._replace(lacks=lacks)


def _amount(row: dict[str, Cell], line: str, quantity: str, source: str) -> Amount:
    cell: Any = row[quantity]
    unit = per(QUANTITIES[quantity].unit)
    ends = cell if isinstance(cell, Range) else (cell, cell, cell)
    value, low, high = (float(x) / unit if isfinite(x) else None for x in ends)
    case = str(row["case"])
    if value is None:
        return Amount(case, line, quantity, None, source=source)
    return Amount(case, line, quantity, value, low, high, "modelled", source)


def _subject(row: dict[str, Cell], scenario: Scenario | None, start: datetime | None) -> Subject:
    wall, saves = (_value(row.get(key)) for key in ("wall", "saves"))
    end = start + timedelta(seconds=wall) if start and wall is not None and wall < 3e9 else None
    case = str(row["case"])
    name = f"{scenario.name}, {case}" if scenario and scenario.name != case else case
    words = _words(scenario) if scenario else {}
    return Subject(case, name, start=start, end=end, saves=saves, words=words)


def _value(cell: Any) -> float | None:
    value = cell.value if isinstance(cell, Range) else cell
    return float(value) if isinstance(value, (int, float)) and isfinite(value) else None


def _words(scenario: Scenario) -> dict[str, str]:
    """What is known of a job in words; what is not known is left out."""
    names, figures = scenario.names, scenario.figures()
    grid = str(scenario.said["site"].get("grid") or "")
    place = next((each for each in rows("grids.csv") if each["id"] == grid), None)
    is_country = place and place["scope"].startswith("country")
    found = {
        "model": names.get("checkpoint"),
        "tier": scenario.said["tier"].get("id"),
        "cluster": names.get("cluster"),
        "site": names.get("site"),
        "grid": names.get("grid"),
        "country": place["name"] if place and is_country else "",
        "country_iso3": grid if is_country else "",
        "gpus": f"{figures['cluster.gpus'].value:.0f}" if "cluster.gpus" in figures else "",
        "gpu_model": names.get("accelerator"),
        "pue": f"{figures['site.pue'].value:g}" if "site.pue" in figures else "",
    }
    return {key: str(value) for key, value in found.items() if value}
