"""Exports read back: their sums are ours, what is unknown is never 0, alternatives never add up."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from ckptcost.answer import Answer, Range
from ckptcost.errors import InputError
from ckptcost.exports import FORMATS, QUANTITIES, Bills, Files, export
from ckptcost.exports.plan import bills_of
from ckptcost.exports.prometheus import BASE
from ckptcost.questions.export import export as question
from ckptcost.scenario.units import per
from tests.exports.bills import START, TIERS, one_tier, three_tiers, unknown_power

EXACT = 1e-9


def ours(answer: Answer, case: str, quantity: str) -> float:
    """A total as the answer has it, in people's units."""
    table = answer.table("cases")
    at = [column.key for column in table.columns].index(quantity)
    (cell,) = [row[at] for row in table.rows if row[0] == case]
    assert isinstance(cell, Range)
    return cell.value / per(QUANTITIES[quantity].unit)


def rows_of(files: Files, name: str) -> list[dict[str, str]]:
    content = files[name]
    assert isinstance(content, str)
    return list(csv.DictReader(io.StringIO(content)))


def close(found: float, wanted: float) -> bool:
    return found == pytest.approx(wanted, rel=EXACT, abs=1e-12)


# --- csv, parquet ---------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", ["gpu_time", "energy", "cost", "carbon", "embodied"])
def test_csv_totals_and_lines_are_ours(quantity: str) -> None:
    files = export(bills_of(three_tiers()), "csv")
    totals, lines = rows_of(files, "totals.csv"), rows_of(files, "lines.csv")
    assert {row["subject"] for row in totals} == set(TIERS)
    for case in TIERS:
        wanted = ours(three_tiers(), case, quantity)
        (total,) = (r for r in totals if r["subject"] == case and r["metric"] == quantity)
        assert close(float(total["value"]), wanted)
        assert float(total["low"]) <= float(total["value"]) <= float(total["high"])
        mine = [r for r in lines if r["subject"] == case and r["metric"] == quantity]
        assert close(sum(float(r["value"]) for r in mine if r["value"]), wanted)
    assert {row["inventory_treatment"] for row in (*totals, *lines)} == {"memo_item"}


def test_csv_has_the_rows_that_esg_reports_ask_for() -> None:
    rows = {row["metric"]: row for row in rows_of(export(one_tier(), "csv"), "totals.csv")}
    value = {metric: float(row["value"]) for metric, row in rows.items() if row["value"]}
    assert close(value["esrs_e1_5_energy"], value["energy"] / 1000)
    assert close(value["esrs_e1_6_location"], value["carbon"] / 1000)
    assert close(value["sci"], 1000 * (value["carbon"] + value["embodied"]) / value["saves"])
    assert rows["esrs_e1_5_energy"]["unit"] == "MWh"
    assert {"water", "embodied", "carbon_market"} <= rows.keys()
    ledgers = [(row["ledger"], row["unit"]) for row in rows.values()]
    assert ledgers.count(("location", "kgCO2e")) == ledgers.count(("market", "kgCO2e")) == 1
    assert "cluster.gpu_price: " in rows["cost"]["source"]


def test_data_package_describes_every_column_and_holds_the_hash() -> None:
    files = export(one_tier(), "csv")
    package = json.loads(files["datapackage.json"])
    for resource in package["resources"]:
        content = files[resource["path"]]
        assert isinstance(content, str)
        header = content.split("\n", 1)[0].split(",")
        assert [field["name"] for field in resource["schema"]["fields"]] == header
        assert resource["hash"] == f"sha256:{sha256(content.encode()).hexdigest()}"


def test_parquet_has_the_same_lines_and_null_for_unknown() -> None:
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    content = export(bills_of(unknown_power()), "parquet")["checkpoint-costs.parquet"]
    assert isinstance(content, bytes)
    frame = pd.read_parquet(io.BytesIO(content))
    rows = rows_of(export(bills_of(unknown_power()), "csv"), "lines.csv")
    assert len(frame) == len(rows)
    assert frame["value"].isna().tolist() == [row["value"] == "" for row in rows]
    energy = frame[(frame["metric"] == "energy") & (frame["line"] == "gpu_wait")]
    assert energy["value"].isna().all()


# --- what adds up ---------------------------------------------------------------------------------


def samples(bills: Bills) -> dict[str, list[tuple[str, float]]]:
    """Family to labels and values."""
    (content,) = export(bills, "prometheus").values()
    assert isinstance(content, str)
    found: dict[str, list[tuple[str, float]]] = {}
    for line in content.split("\n"):
        if match := re.fullmatch(r"(\w+)\{(.*)\} ([-+.\de]+)( \d+)?", line):
            found.setdefault(match[1], []).append((match[2], float(match[3])))
    return found


@pytest.mark.parametrize("quantity", ["gpu_time", "energy", "cost", "carbon", "embodied"])
def test_prometheus_sum_over_a_family_is_our_total(quantity: str) -> None:
    found = samples(one_tier(None))
    unit, times = BASE[QUANTITIES[quantity].unit]
    wanted = ours(three_tiers(), "generic-pfs", quantity) * times
    assert close(sum(x for _, x in found[f"ckptcost_plan_{quantity}_{unit}"]), wanted)
    ((_, total),) = found[f"ckptcost_plan_sum_{quantity}_{unit}"]
    assert close(total, wanted)


def test_focus_adds_up_over_lines_and_months() -> None:
    rows = rows_of(export(one_tier(), "focus"), "focus.csv")
    assert close(
        sum(float(row["BilledCost"]) for row in rows), ours(three_tiers(), "generic-pfs", "cost")
    )
    energy = sum(float(row["x_EnergykWh"]) for row in rows)
    assert close(energy, ours(three_tiers(), "generic-pfs", "energy"))
    for row in rows:
        product = float(row["ListUnitPrice"]) * float(row["PricingQuantity"])
        assert float(row["BilledCost"]) == pytest.approx(product, rel=1e-9)
    months = {(row["BillingPeriodStart"], row["BillingPeriodEnd"]) for row in rows}
    assert ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z") in months
    assert min(row["ChargePeriodStart"] for row in rows) == "2026-11-20T00:00:00Z"
    assert all("(memo)" in row["ChargeDescription"] for row in rows)


def test_codecarbon_has_one_row_with_our_energy() -> None:
    (row,) = rows_of(export(one_tier(), "codecarbon"), "emissions.csv")
    assert len(row) == 38
    assert close(float(row["energy_consumed"]), ours(three_tiers(), "generic-pfs", "energy"))
    assert close(float(row["emissions"]), ours(three_tiers(), "generic-pfs", "carbon"))
    assert row["water_consumed"] == row["gpu_energy"] == ""


@pytest.mark.parametrize("format_", [name for name, each in FORMATS.items() if each.adds_up])
def test_alternatives_never_get_into_what_adds_up(format_: str) -> None:
    with pytest.raises(InputError, match="exclude each other") as error:
        export(bills_of(three_tiers(), start=START), format_)
    assert all(tier in error.value.remedy for tier in TIERS)


# --- what is unknown ------------------------------------------------------------------------------


def test_unknown_is_empty_and_names_what_is_lacking() -> None:
    rows = rows_of(export(bills_of(unknown_power()), "csv"), "totals.csv")
    found = {row["metric"]: row for row in rows}
    for metric in ("energy", "carbon", "esrs_e1_5_energy", "sci"):
        assert found[metric]["value"] == found[metric]["low"] == ""
        assert found[metric]["lacks"]
    assert float(found["gpu_time"]["value"]) > 0
    assert found["gpu_time"]["name"].startswith("'=")


def test_unknown_has_no_series_and_is_named() -> None:
    found = samples(bills_of(unknown_power()))
    assert "ckptcost_plan_sum_energy_joules" not in found
    waits = [labels for labels, _ in found.get("ckptcost_plan_energy_joules", [])]
    assert not [labels for labels in waits if "gpu_wait" in labels]
    unknown = [labels for labels, _ in found["ckptcost_plan_unknown"]]
    assert any('line="total",quantity="energy"' in labels for labels in unknown)


def test_unknown_is_said_in_a_model_card() -> None:
    card = export(bills_of(unknown_power()), "model-card")["model-card.md"]
    assert isinstance(card, str)
    (energy,) = [line for line in card.split("\n") if line.startswith("| Energy")]
    assert energy.split("|")[2].strip() == "not known"


@pytest.mark.parametrize("format_", ["focus", "codecarbon"])
def test_a_format_without_a_place_for_unknown_refuses(format_: str) -> None:
    with pytest.raises(InputError, match="no place for what is not known"):
        export(bills_of(unknown_power(), start=START), format_)


def test_a_line_without_a_price_has_no_row_in_focus() -> None:
    bills = one_tier()
    rows = [
        row._replace(value=None) if row[1:3] == ("retention", "cost") else row for row in bills.rows
    ]
    rows = [row._replace(lacks="retention") if row.line == "total" else row for row in rows]
    found = rows_of(export(replace(bills, rows=rows), "focus"), "focus.csv")
    assert "retention" not in {row["x_Line"] for row in found}
    assert {json.loads(row["Tags"])["ckptcost/lacks"] for row in found} == {"retention"}


# --- the question ---------------------------------------------------------------------------------


def test_the_question_reads_a_file_and_names_its_formats(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(three_tiers().to_json())
    files = question(str(path), to="focus", case="generic-pfs", start="2026-11-20")
    assert not isinstance(files, Answer)
    ours_ = rows_of(export(one_tier(), "focus"), "focus.csv")
    for found, wanted in zip(rows_of(files, "focus.csv"), ours_, strict=True):
        assert found["ChargePeriodEnd"] == wanted["ChargePeriodEnd"]
        assert float(found["BilledCost"]) == pytest.approx(float(wanted["BilledCost"]), rel=EXACT)
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
def test_wrong_words_are_refused(options: dict[str, str], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(three_tiers().to_json())
    with pytest.raises(InputError, match=problem):
        question(str(path), **options)  # type: ignore[arg-type]


def test_an_answer_without_a_bill_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    tables = [table for table in three_tiers().tables if table.name != "cases"]
    path.write_text(replace(three_tiers(), tables=tables).to_json())
    with pytest.raises(InputError, match="holds no bill"):
        question(str(path), to="csv")
