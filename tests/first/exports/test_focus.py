"""FOCUS 1.2: read back cell by cell, and judged by the foundation's own validator."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from statements import (
    START,
    big,
    csv_rows,
    document,
    documents,
    export_text,
    seconds,
    statement,
    with_fields,
)

from ckptcost.first.errors import InputError
from ckptcost.first.exports.focus import MANDATORY
from ckptcost.first.exports.formats import FORMATS, exported, left_out
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement

X = {
    "energy": "x_EnergyKwh",
    "emissions_location": "x_EmissionsLocationKgCO2e",
    "emissions_market": "x_EmissionsMarketKgCO2e",
    "embodied": "x_EmbodiedKgCO2e",
    "gpu_time_lost": "x_GpuHours",
    "cost": "BilledCost",
    "water": "x_WaterLitres",
}
SERIES = {
    "energy": "energy_kwh",
    "emissions_location": "emissions_location_kgco2e",
    "emissions_market": "emissions_market_kgco2e",
    "embodied": "embodied_kgco2e",
    "gpu_time_lost": "gpu_hours",
    "cost": "cost_usd",
    "water": "water_l",
}
LATE = START + 30 * 86400 + 22.5 * 3600
"""half past ten on the last evening of October"""
CENTS = (16305.0, 217.4, None, 905.75, 0.0)
Row = dict[str, str]


def written(doc: Report) -> str:
    files = exported(doc, "focus")
    assert list(files) == ["focus.csv"]
    return "".join(files["focus.csv"])


def rows_of(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text)))


def text_of(rows: list[Row]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def near(found: float, expected: float, what: str) -> None:
    if not math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-300):
        raise AssertionError(f"{what}: {found!r} where the statement has {expected!r}")


def wanted(true: bool, what: str) -> None:
    if not true:
        raise AssertionError(what)


def known(rows: list[Row], column: str) -> list[float]:
    return [float(row[column]) for row in rows if row[column] != ""]


def cell_of(text: str) -> str:
    """A text as a cell that no spreadsheet computes."""
    return "'" + text if text[0] in "=+-@\t\r" else text


def check(text: str, doc: Report) -> None:
    """The file says what the document says, to 1e-9. Raises where it does not."""
    rows = rows_of(text)
    columns = list(rows[0]) if rows else []
    wanted(set(MANDATORY) | set(X.values()) <= set(columns), "a column is missing")
    wanted(
        sorted(columns, key=lambda name: name.startswith("x_")) == columns,
        "a column of ours is among those of the specification",
    )
    of_run = defaultdict(list)
    for row in rows:
        whole(row)
        of_run[json.loads(row["Tags"])["ckptcost/run_id"]].append(row)
    wanted(list(of_run) == [each.subject.run_id for each in doc.statements], "runs differ")
    for each in doc.statements:
        check_statement(of_run[each.subject.run_id], each)


def whole(row: Row) -> None:
    """What is true of a row alone."""
    cost = float(row["BilledCost"])
    unpriced = row["x_CostOfRow"] == "unknown"
    wanted(
        (row["ChargeCategory"] == "Adjustment")
        == unpriced
        == row["ChargeDescription"].startswith("(memo) no price: "),
        "a row without a price does not say so",
    )
    for price in (
        "ListUnitPrice",
        "ContractedUnitPrice",
        "PricingCurrencyListUnitPrice",
        "PricingCurrencyContractedUnitPrice",
    ):
        if unpriced:
            wanted(cost == 0.0 and row[price] == row["PricingQuantity"] == "", "a made-up price")
        else:
            near(float(row[price]) * float(row["PricingQuantity"]), cost, "quantity times price")
    for column in ("ListCost", "ContractedCost", "EffectiveCost", "PricingCurrencyEffectiveCost"):
        near(float(row[column]), cost, column)
    month, start, end, next_month = (
        row[name]
        for name in (
            "BillingPeriodStart",
            "ChargePeriodStart",
            "ChargePeriodEnd",
            "BillingPeriodEnd",
        )
    )
    wanted(month <= start < end <= next_month, "charge outside of its month")
    wanted(
        seconds(end) <= math.floor(seconds(start) / 86400) * 86400 + 86400,
        "charge of more than a day",
    )
    wanted(
        (month[8:], next_month[8:]) == ("01T00:00:00Z", "01T00:00:00Z")
        and 28 <= (seconds(next_month) - seconds(month)) / 86400 <= 31,
        "month",
    )
    wanted(
        "(memo)" in row["ChargeDescription"] and row["x_InventoryTreatment"] == "memo_item",
        "no memo item",
    )
    wanted(
        json.loads(row["Tags"])["ckptcost/inventory_treatment"] == "memo_item",
        "tags lack the treatment",
    )
    wanted(row["InvoiceId"] == "", "has an invoice")


def check_statement(rows: list[Row], made: Statement) -> None:
    of_component = defaultdict(list)
    for row in rows:
        of_component[row["x_Component"]].append(row)
        wanted(row["x_MethodVersion"] == made.method_version, "method version")
        wanted(row["x_Simulated"] == str(made.simulated).lower(), "simulated")
        wanted(row["x_GridZone"] == (made.subject.grid_zone or ""), "grid zone")
        wanted(row["x_GridMethod"] == made.grid_method, "grid method")
        wanted(row["ResourceName"] == row["x_RunName"] == cell_of(made.subject.name), "name")
        wanted(row["ResourceId"] == row["x_RunId"] == cell_of(made.subject.run_id), "run")
    components = {c.id: c for c in made.marginal()}
    priced = {name for name, c in components.items() if c.cost.value is not None}
    wanted(priced <= set(of_component) <= set(components), "lines of the bill differ")
    for name, own in of_component.items():
        component = components[name]
        wanted(all(row["x_Basis"] == component.basis for row in own), "basis")
        wanted(all((row["x_CostOfRow"] == "unknown") == (name not in priced) for row in own), "row")
        for field, column in X.items():
            quantity = getattr(component, field)
            if field == "cost" and quantity.value is None:
                continue
            wanted(
                (quantity.value is None) == (known(own, column) == []),
                f"{name} {column}: null is not zero",
            )
            wanted(
                quantity.value is None or len(known(own, column)) == len(own),
                f"{name} {column}: a gap",
            )
            near(math.fsum(known(own, column)), quantity.value or 0.0, f"{name} {column}")
            x = "x_BilledCost" if field == "cost" else column
            for end, at in (("Low", quantity.low), ("High", quantity.high)):
                near(math.fsum(known(own, x + end)), at or 0.0, f"{name} {x}{end}")
    for field, column in X.items():
        total = getattr(made.totals, field)
        near(math.fsum(known(rows, column)), total.value or 0.0, f"total {column}")
    lacking = " ".join(c.id for c in made.marginal() if c.cost.value is None)
    for row in rows:
        wanted(row["x_UnpricedComponents"] == lacking, "what has no price is not named")
        wanted(row["x_CostOfRun"] == ("at least" if lacking else "known"), "partial, unsaid")
        energy = made.totals.energy
        state = "unknown" if energy.value is None else "at least" if energy.excludes else "known"
        wanted(row["x_EnergyOfRun"] == state, "partial energy, unsaid")
    if made.series is not None:
        check_days(rows, made)


def check_days(rows: list[Row], made: Statement) -> None:
    """Day by day, where rows of the series are no longer than a day."""
    series = made.series
    assert series is not None
    days: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for at, start in enumerate(series.start):
        for field, column in SERIES.items():
            value = getattr(series, column)[at]
            if value is not None:
                days[series.component[at], start[:10], field].append(value)
    saves = math.fsum(series.checkpoints) if series.start else made.totals.checkpoints.value or 0.0
    near(math.fsum(known(rows, "x_Checkpoints")), saves, "checkpoints")
    dated = set(series.component)
    for row in rows:
        if series.width_s <= 86400 and row["x_Component"] in dated:
            for field, column in X.items():
                found = days.get((row["x_Component"], row["ChargePeriodStart"][:10], field), [])
                if field == "cost" and not found:
                    wanted(row["x_CostOfRow"] == "unknown", "no cost of a day")
                    continue
                wanted((row[column] == "") == (not found), f"{column} of a day")
                near(float(row[column] or 0.0), math.fsum(found), f"{column} of a day")


def test_a_run_over_the_end_of_a_month_says_what_the_statement_says() -> None:
    doc = document(
        statement(rows=30, begin=LATE),
        statement(run_id="other", name="second", rows=3, kind="measured"),
    )
    text = written(doc)
    check(text, doc)
    first = [
        row
        for row in rows_of(text)
        if row["x_RunId"] != "other" and row["x_Component"] == "gpu_wait"
    ]
    assert [(row["ChargePeriodStart"], row["ChargePeriodEnd"]) for row in first] == [
        ("2026-10-31T22:30:00Z", "2026-11-01T00:00:00Z"),
        ("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"),
        ("2026-11-02T00:00:00Z", "2026-11-02T04:00:00Z"),
    ]
    assert [row["BillingPeriodStart"][:7] for row in first] == ["2026-10", "2026-11", "2026-11"]
    assert "standing" not in text


def test_what_has_no_price_has_rows_that_bill_nothing_and_all_sums_are_the_run_s() -> None:
    made = statement((1200.5, 1350.25, 77.0, 210.125, 0.0), costs=CENTS, rows=30, begin=LATE)
    text = written(document(made))
    check(text, document(made))
    rows = rows_of(text)
    assert math.fsum(known(rows, "x_EnergyKwh")) == pytest.approx(made.totals.energy.value)
    own = [row for row in rows if row["x_Component"] == "storage_write"]
    assert math.fsum(known(own, "x_EnergyKwh")) == pytest.approx(77.0, rel=1e-12)
    assert [(row["BilledCost"], row["ListUnitPrice"], row["PricingUnit"]) for row in own] == [
        ("0.0", "", "")
    ] * 3  # once a day
    assert json.loads(rows[0]["Tags"])["ckptcost/cost_excludes"] == "storage_write"
    assert known([row for row in rows if row["x_Component"] == "retention"], "BilledCost") == [
        0.0,
        0.0,
        0.0,
    ]


def test_without_a_price_of_a_gpu_hour_the_energy_is_the_run_s_all_the_same() -> None:
    """Most of it is that of GPUs waiting, whose cost nobody knows."""
    made = statement(costs=(None, 217.4, None, None, 12.5))
    rows = rows_of(written(document(made)))
    check(text_of(rows), document(made))
    assert math.fsum(known(rows, "x_EnergyKwh")) == pytest.approx(made.totals.energy.value)
    assert {row["x_CostOfRun"] for row in rows} == {"at least"}


def test_what_is_known_of_a_sum_that_is_not_is_in_no_row() -> None:
    made = statement((None, 1350.25, None, None, 0.0))
    energy = made.totals.energy.model_copy(update={"value": None, "low": None, "high": None})
    totals = made.totals.model_copy(update={"energy": energy})
    rows = rows_of(written(document(made.model_copy(update={"totals": totals}))))
    assert known(rows, "x_EnergyKwh") == known(rows, "x_EnergyKwhLow") == []
    assert {row["x_EnergyOfRun"] for row in rows} == {"unknown"}
    assert known(rows, "BilledCost") != []


def test_days_without_a_price_have_rows_that_say_so() -> None:
    made = statement(
        (10.0, None, None, None, None),
        gpu_hours=(None,) * 5,
        costs=(7.0, None, None, None, None),
        rows=24 * 4,
        begin=START,
    )
    assert made.series is not None
    costs = [7.0 / 48 if 24 <= n < 72 else None for n in range(96)]
    doc = document(
        made.model_copy(update={"series": made.series.model_copy(update={"cost_usd": costs})})
    )
    rows = rows_of(written(doc))
    assert known(rows, "x_EnergyKwh") == pytest.approx([2.5] * 4)
    assert [row["x_CostOfRow"] for row in rows] == ["unknown", "known", "known", "unknown"]
    assert known(rows, "BilledCost") == pytest.approx([0.0, 3.5, 3.5, 0.0])
    assert {row["x_UnpricedComponents"] for row in rows} == {
        "gpu_wait host_wait storage_write redone_work retention"
    }


@pytest.mark.parametrize("costs", [(None,) * 5, (None, None, 0.0, None, None)])
def test_without_any_cost_there_is_no_file_and_a_cost_of_zero_is_one(
    costs: tuple[float | None, ...],
) -> None:
    doc = document(statement(costs=costs))
    if costs[2] is None:
        with pytest.raises(InputError, match=r"the cost of .* is unknown"):
            written(doc)
    else:
        check(written(doc), doc)


def test_dates_are_asked_for() -> None:
    with pytest.raises(InputError, match="needs to know when the run is"):
        written(document(statement(dated=False)))


def test_a_statement_without_a_series_is_spread_over_its_days() -> None:
    doc = document(statement(rows=30, begin=LATE).model_copy(update={"series": None}))
    text = written(doc)
    check(text, doc)
    gpu = [row for row in rows_of(text) if row["x_Component"] == "gpu_wait"]
    assert known(gpu, "x_EnergyKwh") == pytest.approx(
        [1200.5 * hours / 29.5 for hours in (1.5, 24, 4)]
    )
    assert math.fsum(known(rows_of(text), "x_Checkpoints")) == pytest.approx(8.0)


def test_rows_longer_than_a_day_are_cut_at_midnight_and_at_the_month() -> None:
    doc = document(statement(rows=5, width_s=7 * 86400.0, begin=LATE))
    text = written(doc)
    check(text, doc)
    assert (
        len({row["ChargePeriodStart"][:10] for row in rows_of(text)})
        == len(known(rows_of(text), "x_Checkpoints"))
        > 28
    )


def test_a_price_is_the_gpu_hour_where_that_is_all_and_a_mean_where_there_is_electricity_too() -> (
    None
):
    doc = document(
        statement(
            gpu_hours=(3000.0, 0.0, 0.0, 160.5, 0.0), costs=(16305.0, 217.4, None, 905.75, 12.5)
        )
    )
    by_id = {row["x_Component"]: row for row in rows_of(written(doc))}
    alone, mean, hourly = by_id["gpu_wait"], by_id["redone_work"], by_id["retention"]
    assert (alone["PricingUnit"], alone["ListUnitPrice"], alone["PricingCategory"]) == (
        "GPU-Hours",
        "5.435",
        "Standard",
    )
    assert (mean["PricingUnit"], mean["PricingCategory"], mean["x_GpuHourPrice"]) == (
        "GPU-Hours",
        "Other",
        "5.435",
    )
    assert float(mean["ListUnitPrice"]) == pytest.approx(905.75 / 160.5)
    assert (hourly["PricingUnit"], float(hourly["PricingQuantity"])) == ("Hours", 4.5)
    assert hourly["x_GpuHourPrice"] == ""


@pytest.mark.parametrize("name", ['a, "b"\nc', "=1+1", "@x", "-5", "<b>Größe</b> 日本", "'quoted'"])
def test_names_come_through_and_compute_nothing(name: str) -> None:
    made = statement(name=name, tags={"team": name, "ckptcost": "x"})
    doc = document(made.model_copy(update={"simulated": True}))
    text = written(doc)
    check(text, doc)
    for row in rows_of(text):
        tags = json.loads(row["Tags"])
        assert (tags["team"], tags["ckptcost/run_name"], tags["ckptcost/simulated"]) == (
            name,
            name,
            True,
        )
        assert row["ChargeDescription"].startswith("(memo) simulated: ")
        numbers = {
            column
            for column in row
            if column.endswith(
                ("Quantity", "Cost", "Price", "Kwh", "KgCO2e", "Hours", "Low", "High")
            )
        }
        assert all(
            cell[:1] not in {"=", "+", "-", "@"}
            for column, cell in row.items()
            if column not in numbers
        )


def test_where_and_for_whom_comes_through_and_null_stays_null() -> None:
    made = statement()
    subject = made.subject.model_copy(
        update={
            "organisation": "Org",
            "team": "T",
            "cloud_provider": "aws",
            "cloud_region": "us-east-1",
            "region": "N. Virginia",
        }
    )
    row = rows_of(written(document(made.model_copy(update={"subject": subject}))))[0]
    assert (row["RegionId"], row["RegionName"], row["BillingAccountId"]) == (
        "us-east-1",
        "N. Virginia",
        "Org",
    )
    assert (row["SubAccountId"], row["SubAccountName"], row["SubAccountType"]) == ("T", "T", "Team")
    nowhere = made.subject.model_copy(
        update=dict.fromkeys(("site", "site_id", "grid_zone", "region"))
    )
    row = rows_of(written(document(made.model_copy(update={"subject": nowhere}))))[0]
    assert (row["RegionId"], row["RegionName"], row["SubAccountId"], row["x_GridZone"]) == (
        "",
        "",
        "",
        "",
    )


def test_factors_come_with_source_and_licence() -> None:
    row = rows_of(written(document()))[0]
    told = json.loads(row["x_Factors"])
    assert (
        told["site.grid_location"]
        == "383.5 g/kWh (Yearly electricity data, Ember; Our World in Data, CC BY 4.0)"
    )


@settings(max_examples=60, deadline=None)
@given(documents(dated=True))
def test_any_statement_comes_through(doc: Report) -> None:
    priced = [s for s in doc.statements if s.totals.cost.value is not None]
    if not priced:
        with pytest.raises(InputError):
            written(doc)
        return
    check(written(doc), document(*priced))


def test_a_run_of_unknown_cost_among_others_has_no_row() -> None:
    doc = document(statement(), statement(run_id="other", costs=(None,) * 5))
    assert {row["x_RunId"] for row in rows_of(written(doc))} == {"3449a33ac9b5dd46-nas-hdd-100"}
    assert list(left_out(doc, FORMATS["focus"])) == ["other"]


def test_ten_thousand_rows() -> None:
    doc = big(10_000)
    check(written(doc), doc)


@pytest.mark.parametrize(
    "column",
    [
        "x_EnergyKwh",
        "BilledCost",
        "PricingQuantity",
        "x_GpuHoursHigh",
        "x_Checkpoints",
    ],
)
def test_a_slip_of_a_thousand_is_found(column: str) -> None:
    doc = document(
        statement((1200.5, 1350.25, 77.0, 210.125, 0.0), costs=CENTS, rows=30, begin=LATE)
    )
    rows = rows_of(written(doc))
    check(text_of(rows), doc)
    slipped = next(row for row in rows if float(row[column] or 0.0))
    slipped[column] = repr(float(slipped[column]) * 1000)
    with pytest.raises(AssertionError, match="where the statement has"):
        check(text_of(rows), doc)


def test_a_lost_column_a_lost_row_a_zero_for_null_and_swapped_methods_are_found() -> None:
    doc = document(statement((1200.5, 1350.25, None, 210.125, None), rows=30, begin=LATE))
    text = written(doc)
    check(text, doc)
    rows = rows_of(text)
    lost = [
        {name: cell for name, cell in row.items() if name != "x_EmissionsMarketKgCO2e"}
        for row in rows
    ]
    zero = [{**row, "x_EnergyKwh": row["x_EnergyKwh"] or "0.0"} for row in rows]
    location, market = X["emissions_location"], X["emissions_market"]
    swapped = [{**row, location: row[market], market: row[location]} for row in rows]
    for broken, complaint in (
        (lost, "missing"),
        (rows[1:], "where"),
        (zero, "null is not zero"),
        (swapped, "where the statement has"),
    ):
        with pytest.raises(AssertionError, match=complaint):
            check(text_of(broken), doc)


# --- the validator of the FinOps Foundation
# ------------------------------------------------------------------------------------------

ENVIRONMENT = Path(__file__).parents[3] / ".consumers" / "focus"
CRITERIA = ",".join(
    (
        "ACCOUNT_NAMING_SUPPORTED",
        "BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED",
        "MULTIPLE_BILLING_ACCOUNT_TYPES_SUPPORTED",
        "MULTIPLE_PRICING_CATEGORIES_SUPPORTED",
        "MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED",
        "NEGOTIATED_PRICING_SUPPORTED",
        "PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED",
        "PUBLIC_PRICE_LIST_SUPPORTED",
        "REGION_SUPPORTED",
        "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED",
        "SUB_ACCOUNT_SUPPORTED",
        "TAGGING_SUPPORTED",
        "UNIT_PRICING_SUPPORTED",
        "USAGE_MEASUREMENT_SUPPORTED",
    )
)
ARTEFACT = {"InvoiceId-C-005-C"}
"""one arm of an "or" whose other arm holds: a charge without an invoice has no id of one, and one
of the two always fails"""


TO_PARQUET = """
import sys
from pyarrow import csv, parquet
several = csv.ParseOptions(newlines_in_values=True)
table = csv.read_csv(sys.argv[1], parse_options=several, convert_options=csv.ConvertOptions(strings_can_be_null=True))
parquet.write_table(table, sys.argv[2])
"""


class Judged(NamedTuple):
    passed: int
    failed: set[str]


class Validator:
    """Its command in a folder of its own: it opens a file of its package relative to where it is
    started, and leaves a log there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        package = next(ENVIRONMENT.glob("lib/python3.*/site-packages/focus_validator"))
        (folder / "focus_validator").symlink_to(package)
        alone = ["unshare", "-rn"]
        works = subprocess.run([*alone, "true"], check=False, capture_output=True).returncode == 0
        self.command = [*(alone if works else []), str(ENVIRONMENT / "bin" / "focus-validator")]

    def judge(self, data: str | Path) -> Judged:
        path = data if isinstance(data, Path) else self.folder / "focus.csv"
        if not isinstance(data, Path):
            path.write_text(data, encoding="utf-8", newline="")
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        done = subprocess.run(
            [
                *self.command,
                "--data-file",
                str(path),
                "--validate-version",
                "1.2",
                "--block-download",
                "--applicability-criteria",
                CRITERIA,
                "--output-type",
                "unittest",
                "--output-destination",
                str(report),
            ],
            check=False,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert report.exists(), (
            done.stdout[-2000:] + done.stderr[-2000:]
        )  # its exit code says nothing of the data
        cases = list(ET.parse(report).iter("testcase"))
        wrong = {
            case.attrib["name"].split(" :: ")[0]
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        }
        return Judged(sum(len(case) == 0 for case in cases), wrong)


@pytest.fixture
def validator(tmp_path: Path) -> Validator:
    if not (ENVIRONMENT / "bin" / "focus-validator").exists():
        pytest.skip("focus-validator is not there: make consumers")
    return Validator(tmp_path)


def two_runs() -> Report:
    one = statement(
        rows=30, begin=LATE + 0.25, name='GPT-4 scale, "nas"\n=2', tags={"team": "Größe"}
    )
    subject = one.subject.model_copy(update={"team": "training", "organisation": "Org"})
    return document(
        one.model_copy(update={"subject": subject}),
        statement(
            (1200.5, 1350.25, 77.0, 210.125, 0.0),
            run_id="other",
            name="=second",
            rows=3,
            kind="measured",
            grid=None,
            market=None,
        ),
    )


def test_the_validator_passes_all_but_its_own_artefact(validator: Validator) -> None:
    judged = validator.judge(written(two_runs()))
    assert judged.failed == ARTEFACT
    assert judged.passed >= 298


def test_the_validator_passes_parquet_of_the_same(validator: Validator, tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "focus.parquet"
    source.write_text(written(two_runs()), encoding="utf-8")
    subprocess.run(
        [str(ENVIRONMENT / "bin" / "python"), "-c", TO_PARQUET, str(source), str(target)],
        check=True,
    )
    judged = validator.judge(target)
    assert judged.failed == ARTEFACT
    assert judged.passed >= 298


def test_the_validator_finds_what_is_wrong(validator: Validator) -> None:
    """Of a price that is not the cost over the quantity it says nothing: where ChargeClass is null,
    it skips the row. `check` does not."""
    rows = [
        {name: cell for name, cell in row.items() if name != "ListCost"}
        for row in rows_of(written(document()))
    ]
    rows[0] |= {
        "ChargePeriodStart": "31.10.2026",
        "BillingCurrency": "usd",
        "ContractedUnitPrice": "-1",
    }
    judged = validator.judge(text_of(rows))
    wrong = {
        "CostAndUsage-D-032-M",
        "ChargePeriodStart-C-003-M",
        "BillingCurrency-C-003-M",
        "ContractedUnitPrice-C-009-C",
    }
    assert wrong <= judged.failed
    about = (
        "ListCost",
        "ListUnitPrice",
        "ChargePeriodStart",
        "BillingCurrency",
        "ContractedUnitPrice",
        "CostAndUsage",
    )
    assert {rule for rule in judged.failed - ARTEFACT if not rule.startswith(about)} == set()


def _allowed(rule: object) -> list[dict[str, str]]:
    """The cells that a rule of the model names, those of one row together."""
    assert isinstance(rule, dict)
    if rule["CheckFunction"] == "CheckValue":
        return [{rule["ColumnName"]: rule["Value"]}]
    parts = [_allowed(each) for each in rule["Items"]]
    if rule["CheckFunction"] == "OR":
        return [each for part in parts for each in part]
    return [{name: cell for part in parts for each in part for name, cell in each.items()}]


def test_words_are_among_the_allowed_ones(validator: Validator) -> None:
    """The validator takes a column for good where two of its rows differ, so its model is read
    here."""
    rules = json.loads(
        (validator.folder / "focus_validator" / "rules" / "model-1.2.0.1.json").read_text()
    )["ModelRules"]
    names = [
        "ServiceCategory-C-003-M",
        "ServiceSubcategory-C-003-M",
        "ServiceSubcategory-C-004-M",
        "ChargeCategory-C-003-M",
        "ChargeFrequency-C-003-M",
        "PricingCategory-C-007-M",
    ]
    for name in names:
        allowed = _allowed(rules[name]["ValidationCriteria"]["Requirement"])
        assert len(allowed) > 2
        for row in rows_of(written(two_runs())):
            if name.startswith("Pricing") and row["x_CostOfRow"] == "unknown":
                continue  # null, as an adjustment may be
            assert any(
                all(row[column] == cell for column, cell in each.items()) for each in allowed
            ), (name, row)


def test_the_validator_takes_unicode_for_an_error_which_the_specification_does_not(
    validator: Validator,
) -> None:
    judged = validator.judge(written(document(statement(name="Größe"))))
    columns = ("ChargeDescription", "ResourceName")
    assert judged.failed == ARTEFACT | {f"{column}-C-002-M" for column in columns} | {
        "ChargeDescription-C-000-M",
        "ResourceName-C-000-C",
    }


def test_focus_sku_is_the_price_lists_where_there_is_one():
    s = statement()
    s = with_fields(
        s,
        components=[
            c.model_copy(update={"sku": "P5-ONDEMAND"}) if c.id == "gpu_wait" else c
            for c in s.components
        ],
    )
    rows = {row["x_Component"]: row for row in csv_rows(export_text(s, "focus"))}
    assert rows["gpu_wait"]["SkuId"] == "P5-ONDEMAND"
    assert rows["gpu_wait"]["SkuPriceId"].startswith("P5-ONDEMAND/")
    assert rows["host_wait"]["SkuId"] == "checkpoint/host_wait"


def test_focus_names_no_unpriced_components_where_all_have_a_price_and_tags_are_ascii():
    s = statement(costs=(16305.0, 217.4, 1.0, 905.75, 12.5), tags={"équipe": "é"})
    rows = csv_rows(export_text(s, "focus"))
    assert {row["x_CostOfRun"] for row in rows} == {row["x_CostOfRow"] for row in rows} == {"known"}
    assert {row["x_UnpricedComponents"] for row in rows} == {""}
    assert all(row["Tags"].isascii() for row in rows)
    assert json.loads(rows[0]["Tags"])["équipe"] == "é"
    assert {row["x_InventoryTreatment"] for row in rows} == {"memo_item"}
    assert {row["x_MethodVersion"] for row in rows} == {"2026.1"}
    assert "standing" not in {row["x_Component"] for row in rows}


ZERO = (0.0,) * 5


def focus(s):
    return csv_rows(export_text(s, "focus"))


def test_focus_ranges_by_hand_and_a_zero_has_a_share_by_time():
    s = statement(
        (1000.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=ZERO,
        costs=(10.0, 0.0, 0.0, 0.0, 0.0),
        rows=26,
        begin=START,
    )
    wide = s.components[0].embodied.model_copy(
        update={"low": 0.0, "high": 26.0, "interval": "p5-p95"}
    )
    s = with_fields(
        s,
        components=[
            c.model_copy(update={"embodied": wide}) if c.id == "gpu_wait" else c
            for c in s.components
        ],
    )
    rows = [row for row in focus(s) if row["x_Component"] == "gpu_wait"]
    assert [float(row["x_EmbodiedKgCO2eHigh"]) for row in rows] == pytest.approx([24.0, 2.0])
    for row in rows:
        energy = float(row["x_EnergyKwh"])
        assert (float(row["x_EnergyKwhLow"]), float(row["x_EnergyKwhHigh"])) == (
            pytest.approx(0.9 * energy),
            pytest.approx(1.1 * energy),
        )
        assert (float(row["x_BilledCostLow"]), float(row["x_BilledCostHigh"])) == (
            pytest.approx(0.9 * float(row["BilledCost"])),
            pytest.approx(1.1 * float(row["BilledCost"])),
        )


def test_focus_charges_are_whole_seconds_and_never_empty():
    s = statement(
        (1.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=ZERO,
        costs=(1.0, 0.0, 0.0, 0.0, 0.0),
        rows=1,
        begin=START + 10.4,
    )
    rows = s.series.model_copy(update={"duration_s": [0.0]})
    (row,) = [row for row in focus(with_fields(s, series=rows)) if row["x_Component"] == "gpu_wait"]
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (
        "2026-10-01T00:00:10Z",
        "2026-10-01T00:00:11Z",
    )
    (row,) = [
        row
        for row in focus(with_fields(s, series=rows.model_copy(update={"duration_s": [2.2]})))
        if row["x_Component"] == "gpu_wait"
    ]
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (
        "2026-10-01T00:00:10Z",
        "2026-10-01T00:00:13Z",
    )


def test_focus_services_and_what_they_rest_on():
    s = statement(costs=(1.0, 1.0, 1.0, 1.0, 1.0))
    lines = [
        c.model_copy(
            update={
                "energy": c.energy.model_copy(update={"factors": ["site.pue"]}),
                "cost": c.cost.model_copy(update={"factors": ["site.pue", "site.tariff"]}),
            }
        )
        for c in s.components
    ]
    rows = {row["x_Component"]: row for row in focus(with_fields(s, components=lines))}
    assert (rows["gpu_wait"]["ServiceName"], rows["gpu_wait"]["ServiceCategory"]) == (
        "Checkpoint compute",
        "Compute",
    )
    assert (rows["storage_write"]["ServiceName"], rows["storage_write"]["ServiceCategory"]) == (
        "Checkpoint storage",
        "Storage",
    )
    assert set(json.loads(rows["gpu_wait"]["x_Factors"])) == {
        "site.grid_location",
        "site.grid_market",
        "site.tariff",
    }
    assert rows["gpu_wait"]["x_UnpricedComponents"] == ""
