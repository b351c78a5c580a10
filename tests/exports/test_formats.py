"""Exports read back: their sums are ours, what is unknown is never 0, alternatives never add up."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ckptcost.answer import Answer, Range
from ckptcost.errors import InputError
from ckptcost.exports import FORMATS, QUANTITIES, Bills, Files, export
from ckptcost.exports.plan import bills_of
from ckptcost.exports.prometheus import BASE
from ckptcost.questions.export import export as question
from ckptcost.questions.model import model
from ckptcost.questions.simulate import simulate
from ckptcost.scenario.units import per
from tests.exports.bills import START, TIERS, one_tier, three_tiers, unknown_power

KNOWN = ("gpu_time", "energy", "cost", "carbon", "embodied")


def ours(case: str, quantity: str, answer: Answer | None = None) -> float:
    """A total as the answer has it, in people's units."""
    table = (answer or three_tiers()).table("cases")
    at = [column.key for column in table.columns].index(quantity)
    (cell,) = [row[at] for row in table.rows if row[0] == case]
    assert isinstance(cell, Range)
    return cell.value / per(QUANTITIES[quantity].unit)


def rows_of(files: Files, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(str(files[name]))))


def close(found: float, wanted: float) -> bool:
    return found == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def samples(bills: Bills) -> dict[str, list[tuple[str, float]]]:
    """Family to labels and values."""
    (content,) = export(bills, "prometheus").values()
    found: dict[str, list[tuple[str, float]]] = {}
    for family, labels, value in re.findall(r"(?m)^(\w+)\{(.*)\} ([-+.\de]+)", str(content)):
        found.setdefault(family, []).append((labels, float(value)))
    return found


# --- what adds up ---------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", KNOWN)
def test_totals_and_lines_of_csv_and_prometheus_are_ours(quantity: str) -> None:
    files = export(bills_of(three_tiers()), "csv")
    for case in TIERS:
        (total,), lines = (
            [r for r in rows_of(files, name) if (r["subject"], r["metric"]) == (case, quantity)]
            for name in ("totals.csv", "lines.csv")
        )
        assert close(float(total["value"]), ours(case, quantity))
        assert float(total["low"]) <= float(total["value"]) <= float(total["high"])
        assert close(sum(float(r["value"] or 0) for r in lines), ours(case, quantity))
        assert {r["inventory_treatment"] for r in (total, *lines)} == {"memo_item"}
    unit, times = BASE[QUANTITIES[quantity].unit]
    family = samples(one_tier(None))[f"ckptcost_plan_{quantity}_{unit}"]
    assert close(sum(x for _, x in family), ours("generic-pfs", quantity) * times)


def test_csv_has_the_rows_that_esg_reports_ask_for() -> None:
    rows = {row["metric"]: row for row in rows_of(export(one_tier(), "csv"), "totals.csv")}
    value = {metric: float(row["value"]) for metric, row in rows.items() if row["value"]}
    assert close(value["esrs_e1_5_energy"], value["energy"] / 1000)
    assert close(value["esrs_e1_6_location"], value["carbon"] / 1000)
    assert close(value["sci"], 1000 * (value["carbon"] + value["embodied"]) / value["saves"])
    ledgers = [(row["ledger"], row["unit"]) for row in rows.values()]
    assert ledgers.count(("location", "kgCO2e")) == ledgers.count(("market", "kgCO2e")) == 1
    assert "cluster.gpu_price: " in rows["cost"]["source"]


def test_parquet_has_the_same_lines_and_null_for_unknown() -> None:
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    content = export(bills_of(unknown_power()), "parquet")["checkpoint-costs.parquet"]
    assert isinstance(content, bytes)
    frame = pd.read_parquet(io.BytesIO(content))
    rows = rows_of(export(bills_of(unknown_power()), "csv"), "lines.csv")
    assert [*zip(frame["line"], frame["metric"], frame["value"].isna(), strict=True)] == [
        (row["line"], row["metric"], row["value"] == "") for row in rows
    ]


def test_focus_adds_up_over_lines_and_months() -> None:
    rows = rows_of(export(one_tier(), "focus"), "focus.csv")
    for column, quantity in (("BilledCost", "cost"), ("x_EnergykWh", "energy")):
        assert close(sum(float(row[column]) for row in rows), ours("generic-pfs", quantity))
    for row in rows:
        assert "(memo)" in row["ChargeDescription"]
    months = {(row["BillingPeriodStart"], row["BillingPeriodEnd"]) for row in rows}
    assert ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z") in months
    assert min(row["ChargePeriodStart"] for row in rows) == "2026-11-20T00:00:00Z"


def test_the_bill_of_a_simulation_adds_up() -> None:
    answer = simulate("small-8b", runs=50, draws=16)
    bills = bills_of(answer)
    (s,) = bills.subjects
    lines = [bills.of(s, "cost", line).value or 0.0 for line in bills.lines(s)]
    assert close(sum(lines), ours(s.id, "cost", answer))


@pytest.mark.parametrize("format_", [name for name, each in FORMATS.items() if each.adds_up])
def test_alternatives_never_get_into_what_adds_up(format_: str) -> None:
    with pytest.raises(InputError, match="exclude each other") as error:
        export(bills_of(three_tiers(), start=START), format_)
    assert all(tier in error.value.remedy for tier in TIERS)


# --- what is unknown ------------------------------------------------------------------------------


def test_unknown_is_empty_named_and_in_no_sum() -> None:
    bills = bills_of(unknown_power())
    rows = {row["metric"]: row for row in rows_of(export(bills, "csv"), "totals.csv")}
    for metric in ("energy", "carbon", "esrs_e1_5_energy", "sci"):
        assert rows[metric]["value"] == rows[metric]["low"] == ""
        assert rows[metric]["lacks"]
    assert float(rows["gpu_time"]["value"]) > 0
    assert rows["gpu_time"]["name"].startswith("'=")
    found = samples(bills)
    assert "ckptcost_plan_sum_energy_joules" not in found
    assert "gpu_wait" not in str(found.get("ckptcost_plan_energy_joules"))
    assert 'line="total",quantity="energy"' in str(found["ckptcost_plan_unknown"])
    card = str(export(bills, "model-card")["model-card.md"])
    assert re.search(r"(?m)^\| Energy[^|]+\| not known \|  \|$", card)


@pytest.mark.parametrize("format_", ["focus", "codecarbon"])
def test_a_format_without_a_place_for_unknown_refuses(format_: str) -> None:
    with pytest.raises(InputError, match="no place for what is not known"):
        export(bills_of(unknown_power(), start=START), format_)


def test_a_line_without_a_price_has_no_row_in_focus() -> None:
    bills = one_tier()
    rows = [r._replace(value=None) if r[1:3] == ("retention", "cost") else r for r in bills.rows]
    rows = [row._replace(lacks="retention") if row.line == "total" else row for row in rows]
    found = rows_of(export(replace(bills, rows=rows), "focus"), "focus.csv")
    assert "retention" not in {row["x_Line"] for row in found}
    assert {json.loads(row["Tags"])["ckptcost/lacks"] for row in found} == {"retention"}


# --- the question ---------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = tmp_path / "plan.json"
    found.write_text(three_tiers().to_json())
    return str(found)


def test_the_question_reads_a_file_and_names_its_formats(path: str) -> None:
    files = question(path, to="focus", case="generic-pfs", start="2026-11-20")
    assert not isinstance(files, Answer)
    rows = rows_of(files, "focus.csv")
    assert close(sum(float(row["BilledCost"]) for row in rows), ours("generic-pfs", "cost"))
    listed = question(list=True)
    assert isinstance(listed, Answer)
    assert [row[0] for row in listed.table("formats").rows] == [*FORMATS]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"to": ""}, "is needed"),
        ({"to": "xbrl"}, "no format is called 'xbrl'"),
        ({"to": "csv", "case": "floppy"}, "no case is called 'floppy'"),
        ({"to": "focus", "case": "nas-hdd"}, "focus needs dates"),
        ({"to": "focus", "case": "nas-hdd", "start": "soon"}, "'soon' is no date"),
    ],
)
def test_wrong_words_are_refused(options: dict[str, str], problem: str, path: str) -> None:
    with pytest.raises(InputError, match=problem):
        question(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: replace(three_tiers(), tables=[]),
        lambda: model(over=["cluster.gpus=1000:4000"], draws=16),
    ],
)
def test_an_answer_without_a_bill_of_each_case_is_refused(make: Callable[[], Answer]) -> None:
    with pytest.raises(InputError, match="holds no bill"):
        bills_of(make())
