"""The bills of the cases of a saved answer, for all formats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from ckptcost.answer import Answer, Range, Table
from ckptcost.errors import InputError, unknown_name
from ckptcost.exports import QUANTITIES, Amount, Bills, Subject
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
    tables = {table.name: table for table in answer.tables}
    if not {"cases", "lines"} <= tables.keys():
        problem = f"an answer of {answer.question} holds no bill of its cases"
        raise InputError(problem, remedy="hand over one of: ckptcost model JOB -f json")
    lines = _rows(tables["lines"])
    totals = {str(row["case"]): row for row in _rows(tables["cases"])}
    if case and case not in totals:
        raise unknown_name("case", case, totals, "--case")
    bills = Bills([], [], answer.command)
    for name in [case] if case else totals:
        mine, scenario = [row for row in lines if row["case"] == name], answer.cases[name]
        bills.subjects.append(_subject(name, totals[name], scenario, start))
        bills.rows += _amounts(name, totals[name], mine, scenario)
    return bills


def _rows(table: Table) -> list[dict[str, Any]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def _amounts(
    case: str, total: dict[str, Any], lines: list[dict[str, Any]], scenario: Scenario
) -> Iterator[Amount]:
    """Lines and totals of one case."""
    figures = scenario.figures()
    for quantity, path in DECIDES.items():
        figure = figures.get(path)
        stands = ", ".join(filter(None, (figure.basis, figure.source))) if figure else ""
        source = f"{path}: {stands}" if figure else ""
        amounts = [_amount(case, each["line"], quantity, each[quantity], source) for each in lines]
        yield from amounts
        lacks = ", ".join(each.line for each in amounts if each.value is None)
        yield _amount(case, "total", quantity, total[quantity], source)._replace(lacks=lacks)


def _amount(case: str, line: str, quantity: str, cell: Range, source: str) -> Amount:
    unit = per(QUANTITIES[quantity].unit)
    value, low, high = (float(x) / unit if isfinite(x) else None for x in cell)
    if value is None:
        return Amount(case, line, quantity, None, source=source)
    return Amount(case, line, quantity, value, low, high, "modelled", source)


def _subject(
    case: str, total: dict[str, Any], scenario: Scenario, start: datetime | None
) -> Subject:
    wall, saves = total["wall"].value, total["saves"].value
    end = start + timedelta(seconds=wall) if start and wall < 3e9 else None
    name = f"{scenario.name}, {case}" if scenario.name != case else case
    return Subject(case, name, start, end, saves if isfinite(saves) else None, _words(scenario))


def _words(scenario: Scenario) -> dict[str, str]:
    """What is known of a job in words; what is not known is left out."""
    names, said = scenario.names, scenario.said
    grid = str(said["site"].get("grid") or "")
    place = next((row for row in rows("grids.csv") if row["id"] == grid), {"scope": ""})
    is_country = place["scope"].startswith("country")
    gpus, pue = said["cluster"].get("gpus"), said["site"].get("pue")
    found = {
        "model": names.get("checkpoint"),
        "tier": said["tier"].get("id"),
        "cluster": names.get("cluster"),
        "site": names.get("site"),
        "grid": names.get("grid"),
        "country": is_country and place["name"],
        "country_iso3": is_country and grid,
        "gpus": gpus and f"{gpus.value:.0f}",
        "gpu_model": names.get("accelerator"),
        "pue": pue and f"{pue.value:g}",
    }
    return {key: str(value) for key, value in found.items() if value}
