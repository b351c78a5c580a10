"""Exports by hand: figures, words and refusals that their own round trips would not miss."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import socket
import threading
from types import SimpleNamespace
from typing import ClassVar

import pytest
from small_runs import recorded
from statements import START, document, factor, quantity, statement
from told_meters import Told, at, energy, evaluated, said

from ckptcost.core.reconcile import Energy
from ckptcost.errors import InputError
from ckptcost.exports import (
    boamps,
    grafana,
    impact_framework,
    metric_names,
    metrics_server,
    model_card,
    otlp,
    tables,
)
from ckptcost.exports.formats import exported
from ckptcost.exports.grafana import SHOWN
from ckptcost.exports.live_metrics import LiveSample, LiveSource, _freshness, _of_saves
from ckptcost.exports.metrics_server import MetricsServer
from ckptcost.jobs import live_counters
from ckptcost.jobs.live_figures import Freshness, Joules, LastSave, Saves
from ckptcost.jobs.live_lines import Lines, Newest
from ckptcost.report.parts import Source
from ckptcost.report.statement import Measurement
from ckptcost.runs.header import Header

ZERO = (0.0,) * 5


def changed(s, **fields):
    return s.model_copy(update=fields)


def subject(s, **fields):
    return changed(s, subject=s.subject.model_copy(update=fields))


def priced_standing(s):
    """With a cost and emissions in the ledger that stands apart."""
    update = {
        "cost": quantity("cost", 99.0),
        "emissions_location": quantity("emissions_location", 77.0),
    }
    return changed(
        s,
        components=[c.model_copy(update=update) if c.id == "standing" else c for c in s.components],
    )


def text_of(s, name, file=None) -> str:
    doc = s if hasattr(s, "statements") else document(s)
    files = exported(doc, name)
    content = files[file] if file else next(iter(files.values()))
    return content.decode() if isinstance(content, bytes) else "".join(content)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


# ---- BoAmps


def boamps_of(s):
    return json.loads(text_of(s, "boamps"))


def test_boamps_says_simulated_memo_and_method():
    s = changed(statement(), simulated=True)
    told = boamps_of(s)
    words = told["task"]["taskDescription"]
    assert words.startswith("SIMULATED: nothing here was measured. ")
    assert "inventory_treatment: memo_item;" in words
    assert "Method 2026.1." in words
    assert told["quality"] == "low"
    assert "SIMULATED" not in boamps_of(statement())["task"]["taskDescription"]


def test_boamps_intensity_is_of_lines_of_which_both_are_known():
    s = statement((100.0, 300.0, None, 0.0, 0.0), grid=0.4, dated=False)
    lines = [
        c.model_copy(update={"energy": quantity("energy", None)}) if c.id == "host_wait" else c
        for c in s.components
    ]
    assert boamps._intensity_g_per_kwh(changed(s, components=lines)) == pytest.approx(400.0)
    assert boamps._intensity_g_per_kwh(priced_standing(s)) == pytest.approx(400.0)
    assert boamps._intensity_g_per_kwh(statement(ZERO)) is None


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.9, 1.1, "high"),
        (1.0, 1.1, "high"),
        (0.89, 1.0, "medium"),
        (1.0, 1.25, "medium"),
        (1.0, 1.26, "low"),
        (1.0, None, "low"),
        (None, None, None),
    ],
)
def test_boamps_quality_goes_by_the_farther_end(low, high, word):
    s = statement((1.0, 0.0, 0.0, 0.0, 0.0))
    s = changed(
        s,
        totals=s.totals.model_copy(
            update={"energy": s.totals.energy.model_copy(update={"low": low, "high": high})}
        ),
    )
    assert boamps.quality(s) == word


def test_boamps_zero_is_a_report_and_unknown_is_none():
    assert boamps_of(statement(ZERO))["measures"][0]["powerConsumption"] == 0.0
    with pytest.raises(InputError, match=r"the energy of .* is unknown"):
        boamps_of(statement((None,) * 5))


def test_boamps_places_and_instruments():
    s = subject(statement(kind="measured"), latitude=1.0, longitude=2.0, parameters=2e9)
    told = boamps_of(s)
    assert (told["environment"]["latitude"], told["environment"]["longitude"]) == (1.0, 2.0)
    assert told["task"]["algorithms"][0]["parametersNumber"] == 2.0
    assert told["measures"][0]["gpuTrackingMode"] == "NVML total energy consumption"
    assert "cpuTrackingMode" not in told["measures"][0]


# ---- CodeCarbon


def test_codecarbon_has_a_row_for_a_known_zero_without_a_grid_and_refuses_energy_without_one():
    s = statement((0.0, 0.0, 0.0, 0.0, 0.0), grid=None)
    for made in (s, statement(grid=None)):
        with pytest.raises(InputError, match=r"location-based emissions of .* are unknown"):
            text_of(made, "codecarbon")
    mixed = changed(
        s,
        totals=s.totals.model_copy(
            update={"emissions_location": quantity("emissions_location", 0.0)}
        ),
        components=[
            c.model_copy(update={"emissions_location": quantity("emissions_location", 0.0)})
            if c.id == "gpu_wait"
            else c
            for c in s.components
        ],
    )
    assert [
        row["project_name"].rpartition("/")[2] for row in rows_of(text_of(mixed, "codecarbon"))
    ] == ["gpu_wait"]


def test_codecarbon_leaves_the_other_ledger_out():
    rows = rows_of(text_of(priced_standing(statement()), "codecarbon"))
    assert "standing" not in {row["project_name"].rpartition("/")[2] for row in rows}
    gpu = rows[0]
    assert float(gpu["emissions_rate"]) * float(gpu["duration"]) == pytest.approx(
        float(gpu["emissions"])
    )
    assert gpu["tracking_mode"] == "modelled, memo_item, grid unknown"
    assert gpu["codecarbon_version"].endswith("method 2026.1")


# ---- tables: Data Package, Parquet


def package(s):
    return json.loads(text_of(s, "datapackage", "datapackage.json"))


def test_a_data_package_says_what_is_required_and_what_is_missing():
    told = package(statement())
    assert told["ckptcost"]["inventory_treatment"] == "memo_item"
    for resource, table in zip(told["resources"], tables.TABLES, strict=True):
        assert resource["schema"]["missingValues"] == [""]
        assert resource["schema"]["primaryKey"] == list(table.key)
        required = [
            f["name"]
            for f in resource["schema"]["fields"]
            if f.get("constraints", {}).get("required")
        ]
        assert required == [c.name for c in table.columns if c.required]
        assert [f.get("unit", "") for f in resource["schema"]["fields"]] == [
            c.unit for c in table.columns
        ]
        assert {"run_id", "method_version", "inventory_treatment"} <= set(required)


def test_a_data_package_carries_what_fits_no_table():
    s = statement(kind="measured")
    (told,) = package(s)["ckptcost"]["statements"]
    assert told["measurements"] == [m.model_dump(mode="json") for m in s.measurements]
    assert {
        "warnings",
        "contracts",
        "assumptions",
        "allocated",
        "functional_units",
        "boundary",
    } <= set(told)


def test_an_address_of_a_source_is_a_path_whether_secure_or_not():
    s = statement()
    sources = [
        Source(id=n, title=n, url=url)
        for n, url in (("a", "http://x.org"), ("b", "https://x.org"), ("c", "file:///etc/passwd"))
    ]
    told = package(changed(s, factors=[s.factors[0].model_copy(update={"sources": sources})]))[
        "sources"
    ]
    assert [each.get("path") for each in told] == ["http://x.org", "https://x.org", None]


def test_tables_hold_each_cell_in_its_column():
    s = changed(statement(), simulated=True)
    doc = document(s)
    totals, wide, lines, rows, factors = (table.cells(doc) for table in tables.TABLES)
    gpu = s.components[0]
    assert (lines["price_quantity"][0], lines["price_unit"][0], lines["unit_price_usd"][0]) == (
        gpu.price_qty,
        "GPU-h",
        gpu.unit_price,
    )
    assert (lines["energy_kwh"][0], lines["energy_kwh_low"][0], lines["energy_kwh_high"][0]) == (
        gpu.energy.value,
        gpu.energy.low,
        gpu.energy.high,
    )
    assert (lines["basis"][0], lines["rests_on"][0], lines["ledger"][-1]) == (
        "modelled",
        "published",
        "allocated",
    )
    assert set(totals["simulated"]) | set(lines["simulated"]) | set(rows["simulated"]) | set(
        factors["simulated"]
    ) == {True}
    assert (totals["period_start"], totals["period_end"], totals["length_s"]) == (
        [s.period_start],
        [s.period_end],
        [s.length_s],
    )
    assert totals["at_least"] == [
        "energy_kwh emissions_location_kgco2e emissions_market_kgco2e cost_usd water_l"
    ]
    assert wide["energy_kwh_excludes"] == ["storage_write"]
    assert (rows["start"][0], rows["end"][0], rows["end"][1]) == (
        "2026-10-01T00:30:00Z",
        "2026-10-01T01:00:00Z",
        "2026-10-01T02:00:00Z",
    )
    f = s.factors[0]
    assert (
        factors["value"][0],
        factors["low"][0],
        factors["high"][0],
        factors["source_licences"][0],
    ) == (
        f.value,
        f.low,
        f.high,
        "CC BY 4.0",
    )


def test_a_source_of_which_something_is_not_said_leaves_its_place_empty():
    f = factor("a.b", 1.0, "", "1").model_copy(
        update={
            "sources": [
                Source(id="a", title="A", licence="X"),
                Source(id="b", title="B"),
                Source(id="c", title="C", licence="Y"),
            ]
        }
    )
    assert tables._sources(f, "licence") == "X |  | Y"


def test_parquet_has_null_for_no_words_and_says_where_null_is_forbidden():
    parquet = pytest.importorskip("pyarrow.parquet")
    files = exported(
        document(statement(), changed(statement(run_id="b"), simulated=True)), "parquet"
    )
    found = parquet.read_table(io.BytesIO(files["components.parquet"]))
    assert found.column("energy_kwh_excludes").to_pylist() == [None] * 12
    assert not found.schema.field("run_id").nullable
    assert found.schema.field("label").nullable
    assert found.schema.metadata[b"ckptcost.simulated"] == b"true"
    assert found.schema.metadata[b"ckptcost.inventory_treatment"] == b"memo_item"
    assert found.schema.field("energy_kwh").metadata[b"unit"] == b"kWh"


# ---- FOCUS


def test_focus_sku_is_the_price_lists_where_there_is_one():
    s = statement()
    s = changed(
        s,
        components=[
            c.model_copy(update={"sku": "P5-ONDEMAND"}) if c.id == "gpu_wait" else c
            for c in s.components
        ],
    )
    rows = {row["x_Component"]: row for row in rows_of(text_of(s, "focus"))}
    assert rows["gpu_wait"]["SkuId"] == "P5-ONDEMAND"
    assert rows["gpu_wait"]["SkuPriceId"].startswith("P5-ONDEMAND/")
    assert rows["host_wait"]["SkuId"] == "checkpoint/host_wait"


def test_focus_names_no_unpriced_components_where_all_have_a_price_and_tags_are_ascii():
    s = statement(costs=(16305.0, 217.4, 1.0, 905.75, 12.5), tags={"équipe": "é"})
    rows = rows_of(text_of(s, "focus"))
    assert {row["x_CostOfRun"] for row in rows} == {row["x_CostOfRow"] for row in rows} == {"known"}
    assert {row["x_UnpricedComponents"] for row in rows} == {""}
    assert all(row["Tags"].isascii() for row in rows)
    assert json.loads(rows[0]["Tags"])["équipe"] == "é"
    assert {row["x_InventoryTreatment"] for row in rows} == {"memo_item"}
    assert {row["x_MethodVersion"] for row in rows} == {"2026.1"}
    assert "standing" not in {row["x_Component"] for row in rows}


# ---- what all have


@pytest.mark.parametrize(
    "name",
    [
        "statement",
        "datapackage",
        "prometheus",
        "focus",
        "github-benchmark",
        "model-card",
        "grafana",
    ],
)
def test_no_statement_no_export(name):
    with pytest.raises(InputError, match="holds no statement"):
        exported(document().model_copy(update={"statements": []}), name)


# ---- github-action-benchmark


def test_a_grid_zone_is_told_with_emissions_only():
    entries = {
        each["name"].rpartition(": ")[2]: each
        for each in json.loads(text_of(statement(), "github-benchmark"))
    }
    assert "grid zone USA" in entries["emissions, location-based"]["extra"]
    assert "grid zone" not in entries["energy"]["extra"]
    assert "grid zone" not in entries["cost"]["extra"]
    assert "memo_item" in entries["cost"]["extra"]
    assert "CC BY 4.0" in entries["emissions, location-based"]["extra"]
    per = entries["energy per checkpoint"]
    assert (per["value"] * 8, per["unit"]) == (
        pytest.approx(entries["energy"]["value"]),
        "kWh/checkpoint",
    )


# ---- Grafana


def test_queries_spelled_out():
    gpu = grafana.total(SHOWN["gpu_hours_lost"], "run, run_id")
    assert gpu.endswith(" / 3600")
    assert " / 3600" not in grafana.share()  # GPU-seconds over the run's seconds
    assert grafana.per_save(SHOWN["cost_usd"]).endswith(" > 0)")
    assert grafana.bound(SHOWN["energy_kwh"], "low").endswith(" / 3600000")
    assert "ckptcost_run_energy_low_joules{" in grafana.bound(SHOWN["energy_kwh"], "low")
    assert "/" not in grafana.bound(SHOWN["cost_usd"], "high")
    assert re.match(r"sum by \(run\) \(max by ", grafana.factor(SHOWN["emissions_market_kg"]))
    assert "ckptcost_emissions_market_grams_total" in grafana.factor(SHOWN["emissions_market_kg"])
    assert grafana.factor(SHOWN["emissions_market_kg"]).endswith(" * 3600000")


def test_the_alert_is_a_share_of_a_days_gpu_hours():
    rules = text_of(statement(), "grafana", "rules.yaml")
    assert "[1d])) * 24) > 0.1" in rules
    assert "/ 3600 / (max by" in rules


def test_columns_that_are_only_ones_are_hidden():
    board = json.loads(text_of(statement(), "grafana", "dashboard.json"))
    runs = next(p for p in board["panels"] if p["title"] == "Runs")
    organize = runs["transformations"][-1]["options"]
    assert organize["excludeByName"] == {"Time": True, "Value #A": True}
    assert organize["renameByName"]["Value #B"] == "Energy"


# ---- Impact Framework


def test_there_is_no_score_where_a_row_is_below_zero():
    s = statement((100.0, 50.0, 0.0, 0.0, 0.0), gpu_hours=(1.0, 1.0, 0.0, 0.0, 0.0), costs=ZERO)
    assert "sci-per-checkpoint" in text_of(s, "impact-framework")
    energies = [-1.0 if n == 0 else e for n, e in enumerate(s.series.energy_kwh)]
    told = text_of(
        changed(s, series=s.series.model_copy(update={"energy_kwh": energies})), "impact-framework"
    )
    assert "sci-per-checkpoint" not in told


def test_a_rows_intensity_is_weighted_with_energy_where_rows_are_merged():
    s = statement(
        (10.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(1.0, 0.0, 0.0, 0.0, 0.0),
        costs=ZERO,
        rows=2,
        begin=START + 3599.5,
    )
    rows = s.series.model_copy(
        update={
            "energy_kwh": [1.0, 3.0],
            "grid_kgco2e_per_kwh": [0.8, 0.4],
            "emissions_location_kgco2e": [0.8, 1.2],
        }
    )
    s = changed(s, series=rows)
    group = impact_framework._group(s, *impact_framework._computable(s), None)
    (child,) = group.children
    assert (child.energy_kwh, child.grid_g_per_kwh) == ([4.0], [pytest.approx(500.0)])
    assert group.duration_s == [3600.5]


# ---- OpenMetrics


def samples(text):
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            head, value, stamp = line.rsplit(" ", 2)
            found.setdefault(head, []).append((float(stamp), float(value)))
    return found


def of(found, name, *words):
    return next(
        values
        for head, values in found.items()
        if head.startswith(name + "{") and all(word in head for word in words)
    )


def test_gauges_of_the_end_are_told_at_the_end_and_the_others_twice():
    found = samples(text_of(statement(), "openmetrics"))
    end = START + 5 * 3600
    assert [at for at, _ in of(found, "ckptcost_run_energy_low_joules")] == [end]
    assert [at for at, _ in of(found, "ckptcost_energy_high_joules", "gpu_wait")] == [end]
    assert [at for at, _ in of(found, "ckptcost_run_accelerators")] == [START + 1800.0, end]


def test_each_counter_grows_by_its_own_column():
    s = statement(
        costs=(1.0, 0.0, None, 0.0, 0.0), gpu_hours=(10.0, 0.0, 0.0, 0.0, 0.0), rows=2, begin=START
    )
    series = s.series.model_copy(
        update={
            "cost_usd": [0.25, 0.75, *s.series.cost_usd[2:]],
            "gpu_hours": [9.0, 1.0, *s.series.gpu_hours[2:]],
        }
    )
    found = samples(text_of(changed(s, series=series), "openmetrics"))
    assert [v for _, v in of(found, "ckptcost_cost_usd_total", "gpu_wait")] == [0.0, 0.25, 1.0]
    assert [v for _, v in of(found, "ckptcost_gpu_lost_seconds_total", "gpu_wait")] == [
        0.0,
        32400.0,
        36000.0,
    ]


def test_rows_in_any_order_are_told_in_the_order_of_time():
    s = statement(rows=4, begin=START)
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    back = changed(
        s,
        series=s.series.model_copy(update={name: getattr(s.series, name)[::-1] for name in names}),
    )
    one, other = (samples(text_of(each, "openmetrics")) for each in (s, back))
    for head in one:
        if "_total{" in head:
            assert [at for at, _ in other[head]] == [at for at, _ in one[head]], head
            assert [v for _, v in other[head]] == pytest.approx([v for _, v in one[head]]), head
            assert [at for at, _ in one[head]] == sorted({at for at, _ in one[head]})


def test_rows_that_do_not_add_up_to_the_sum_are_not_followed():
    s = statement(rows=2, begin=START)
    energies = [e if e is None else e * 1.01 for e in s.series.energy_kwh]
    found = samples(
        text_of(
            changed(s, series=s.series.model_copy(update={"energy_kwh": energies})), "openmetrics"
        )
    )
    gpu = of(found, "ckptcost_energy_joules_total", "gpu_wait")
    assert gpu == [(START, 0.0), (START + 7200, pytest.approx(1200.5 * 3.6e6))]


def test_stamps_to_the_millisecond():
    told = text_of(statement(begin=START + 1800.007), "openmetrics")
    assert f" {int(START) + 1800}.007\n" in told


# ---- OTLP, Prometheus


def test_otlp_attributes_that_are_false_or_zero_are_told():
    (line,) = text_of(statement(), "otlp").splitlines()
    attributes = {
        each["key"]: each["value"]
        for each in json.loads(line)["resourceMetrics"][0]["resource"]["attributes"]
    }
    assert attributes["ckptcost.simulated"] == {"boolValue": False}
    assert attributes["ckptcost.inventory_treatment"] == {"stringValue": "memo_item"}
    assert attributes["ckptcost.method_version"] == {"stringValue": "2026.1"}
    assert otlp._attributes({"a": 0.0, "b": "", "c": None}) == [
        {"key": "a", "value": {"doubleValue": 0.0}},
        {"key": "b", "value": {"stringValue": ""}},
    ]


def test_prometheus_zero_is_told_and_unknown_has_a_series_of_its_own():
    told = text_of(
        priced_standing(statement(ZERO, costs=(0.0, 0.0, None, 0.0, 0.0), checkpoints=0.0)),
        "prometheus",
    )
    lines = dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))
    assert [
        v
        for k, v in lines.items()
        if k.startswith("ckptcost_energy_joules_total") and "gpu_wait" in k
    ] == ["0"]
    assert [v for k, v in lines.items() if k.startswith("ckptcost_checkpoints_total")] == ["0"]
    assert [
        k
        for k in lines
        if k.startswith("ckptcost_component_unknown")
        and "storage_write" in k
        and 'quantity="cost"' in k
    ]
    assert not [k for k in lines if "standing" in k and not k.startswith("ckptcost_standing_")]
    assert not [
        k for k in lines if k.startswith("ckptcost_component_unknown") and '"standing"' in k
    ]


def test_labels_escape_what_ends_them():
    assert (
        metric_names.labels({"a": 'x"\\\n\r\x7f', "b": "", "c": None})
        == '{a="x\\"\\\\\\n\ufffd\ufffd"}'
    )
    assert (metric_names.number(-0.0), metric_names.number(123456789.125)) == ("0", "123456789.125")


# ---- model card


def meter(name, kwh=1.0, **more):
    return Measurement(
        **{
            "id": name,
            "instrument": "i",
            "scope": "s",
            "boundary": "node",
            "basis": "measured",
            "tick_s": 0.1,
            "coverage": 1.0,
            "energy_kwh": kwh,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("meters", "chosen"),
    [
        ([meter("gpu:0"), meter("cpu:0"), meter("node")], ["node"]),
        ([meter("gpu:0"), meter("cpu:0"), meter("node", coverage=0.5)], ["gpu:0", "cpu:0"]),
        (
            [meter("gpu:0"), meter("gpu:0.memory"), meter("module:0"), meter("dram:0")],
            ["gpu:0", "dram:0"],
        ),
        ([meter("module:0"), meter("cpu:0")], ["module:0"]),
        ([meter("gpu:0"), meter("disk:0", boundary="drive"), meter("psys:0")], ["gpu:0"]),
        ([meter("psys:0")], []),
    ],
)
def test_meters_that_add_up(meters, chosen):
    assert [m.id for m in model_card._parts(meters)] == chosen
    assert model_card._is_whole(meter("x", coverage=0.99))
    assert not model_card._is_whole(meter("x", coverage=0.98))


# ---- a run that goes on


def value_of(found, family):
    return next(each.value for each in found if each.family.name.endswith(family))


def test_an_age_is_never_below_zero_and_an_ended_run_does_not_record():
    ahead = list(_freshness(Freshness(5.0, -3.0, False), "{}"))
    assert (
        value_of(ahead, "age_seconds"),
        value_of(ahead, "_recording"),
        value_of(ahead, "_ended"),
    ) == (0.0, 1.0, 0.0)
    over = list(_freshness(Freshness(5.0, 1.0, True), "{}"))
    assert (value_of(over, "_recording"), value_of(over, "_ended")) == (0.0, 1.0)
    assert Freshness(5.0, 10.0, False).recording is True
    assert Freshness(5.0, 10.1, False).recording is False
    assert Freshness(5.0, None, False).recording is None
    assert Freshness(5.0, None, True).recording is False


def test_saves_of_which_nothing_is_said_cost_no_zero():
    last = LastSave(9.0, 0.0, None, math.nan)
    found = list(
        _of_saves(
            Saves(started=3, finished=2, safe=1, failed=0, stalls=0, sizes=0, last=last), "{}", 8.0
        )
    )
    assert math.isnan(value_of(found, "_stall_seconds"))
    assert math.isnan(value_of(found, "_gpu_lost_seconds"))
    assert math.isnan(value_of(found, "live_checkpoint_bytes"))
    assert (
        value_of(found, "_of_unknown_stall"),
        value_of(found, "_safe"),
        value_of(found, "_failed"),
    ) == (3.0, 1.0, 0.0)
    stalls = [
        each.value for each in found if each.family.name.endswith("last_checkpoint_stall_seconds")
    ]
    assert stalls == [0.0]
    assert math.isnan(value_of(found, "last_checkpoint_length_seconds"))
    none = list(_of_saves(Saves(), "{}", math.nan))
    assert (value_of(none, "_stall_seconds"), value_of(none, "live_checkpoint_bytes")) == (0.0, 0.0)
    assert math.isnan(value_of(none, "_gpu_lost_seconds"))
    assert isinstance(none[0], LiveSample)


def joules(value, covered_s, of_s):
    return Joules("gpu:0", "part", "measured", value, covered_s, of_s)


def test_joules_of_stretches_add_up_and_power_is_of_the_covered_time():
    one, other, none = (
        joules(100.0, 5.0, 10.0),
        joules(50.0, 5.0, 10.0),
        joules(math.nan, 0.0, 10.0),
    )
    assert (one.mean_w, math.isnan(none.mean_w)) == (20.0, True)
    assert one.plus(other)[3:6] == (150.0, 10.0, 20.0)
    assert one.plus(other, -1.0).of_s == 0.0
    assert one.plus(none)[3:6] == (100.0, 5.0, 20.0)
    assert math.isnan(none.plus(none).joules)
    assert one.plus(None) is one


def test_saves_of_two_generations_add_up_each_for_itself():
    last, before = LastSave(2.0, 1.0, 1.0, 1.0), LastSave(1.0, 1.0, 1.0, 1.0)
    new, old = Saves(*range(1, 10), last=last), Saves(*range(10, 100, 10), last=before)
    assert new.after(old)[:9] == tuple(n + 10 * n for n in range(1, 10))
    assert new.after(old).last is last
    assert Saves().after(old).last is before


def header(**more):
    return Header(
        **{
            "run": "r",
            "host": "h",
            "wall_ns": 1_000_000_000_000,
            "monotonic_ns": 400_000_000_000,
            "boot": "b",
            **more,
        }
    )


def test_ages_by_this_machines_clock_only_where_it_is_its_own():
    newest = Newest(header(), 410_000_000_000)
    assert newest.wall_ns == 1_010_000_000_000
    assert newest.age_s(5_000_000_000_000, 412_000_000_000, "b") == 2.0
    assert newest.age_s(1_013_000_000_000, 999_000_000_000, "another") == 3.0
    assert (
        Newest(header(boot=""), 410_000_000_000).age_s(1_013_000_000_000, 999_000_000_000, "")
        == 3.0
    )
    assert Newest(header(simulated=True), 410_000_000_000).age_s(1, 1, "b") is None


# ---- more


def test_codecarbon_knows_a_cloud_by_its_region():
    (row, *_) = rows_of(text_of(subject(statement(), cloud_provider="aws"), "codecarbon"))
    assert (row["on_cloud"], row["cloud_provider"], row["cloud_region"]) == ("N", "", "")
    (row, *_) = rows_of(
        text_of(subject(statement(), cloud_provider="aws", cloud_region="us-east-1"), "codecarbon")
    )
    assert (row["on_cloud"], row["cloud_provider"], row["cloud_region"]) == (
        "Y",
        "aws",
        "us-east-1",
    )


def test_two_sources_of_one_id_are_both_told():
    s = statement()
    sources = [
        Source(id="a", title="one"),
        Source(id="a", title="two"),
        Source(id="a", title="one"),
    ]
    told = package(changed(s, factors=[s.factors[0].model_copy(update={"sources": sources})]))[
        "sources"
    ]
    assert [each["title"] for each in told] == ["one", "two"]


def test_rules_of_runs_have_no_component():
    rules = text_of(statement(), "grafana", "rules.yaml")
    for name, expr in re.findall(r'record: "(run(?:_component)?):[^"]*"\n +expr: "([^"]*)"', rules):
        assert expr.startswith(
            "sum by (run, run_id, component) "
            if name == "run_component"
            else "sum by (run, run_id) "
        ), expr


def test_the_manifest_says_method_and_memo_item_of_every_statement():
    told = text_of(document(statement(), statement(run_id="b")), "impact-framework")
    assert told.count('method-version: "2026.1"') == 2
    assert told.count('inventory-treatment: "memo_item"') == 2


@pytest.fixture
def server(tmp_path):
    recorded(tmp_path / "run")
    with MetricsServer(LiveSource(tmp_path / "run", "a" * 32).read(), port=0) as found:
        thread = threading.Thread(
            target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_who_sends_a_byte_now_and_then_is_cut_off(server, monkeypatch):
    """The time without a byte is not what ends it here."""
    monkeypatch.setattr(metrics_server._Handler, "timeout", 60.0)
    monkeypatch.setattr(metrics_server, "WHOLE_S", 0.3)
    with socket.create_connection(server.server_address[:2], timeout=10) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHo")
        assert slow.recv(100) == b""


def test_the_server_says_nothing_of_its_python(server):
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        connection.sendall(
            f"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.0 200 ")
    assert "\r\nServer: ckptcost\r\n" in answer
    assert "Python" not in answer


def save_and_failure():
    marks = [
        *said("begin 5, returned 7, durable 10"),
        *said("begin 12, returned 13", "bad"),
        *said("durable 13.5", "bad", detail={"error": "disk full"}),
    ]
    return evaluated(
        Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)}), for_s=40.0, marks=marks
    )


def test_a_save_that_failed_is_not_safe_and_the_last_is_the_latest():
    seen = save_and_failure()
    found = live_counters._summed(
        seen.run, list(zip(seen.windows, seen.contents, strict=True)), 8.0
    )
    assert (found.started, found.finished, found.safe, found.failed, found.stalls) == (
        2,
        2,
        1,
        1,
        2,
    )
    assert (found.stall_s, found.gpu_s) == (pytest.approx(3.0), pytest.approx(24.0))
    assert found.last.over_s == pytest.approx(seen.run.wall_s(13.5))
    assert found.last.stall_s == pytest.approx(1.0)


class Half:
    """Of everything asked for, a half is covered."""

    parts: ClassVar = {"module:0": 0, "module:1": 0, "cpu:0": 0}
    sources: ClassVar = {"module:0": SimpleNamespace(channel=SimpleNamespace(basis="measured"))}

    def __init__(self):
        self.asked = []

    def joules(self, domain, begin_s, end_s):
        self.asked.append((domain, begin_s, end_s))
        return Energy((end_s - begin_s) * 50.0, 0.0, 9e9, coverage=0.5)


def test_joules_of_half_of_the_time_and_the_power_of_now():
    half = Half()
    found = live_counters._joules(half, "module:0", 100.0, 200.0)
    assert (found.joules, found.covered_s, found.of_s, found.mean_w) == (5000.0, 50.0, 100.0, 100.0)
    assert live_counters._lately_w(half, "module:0", 100.0, 200.0) == pytest.approx(100.0)
    assert half.asked[-1] == ("module:0", 190.0, 200.0)
    assert live_counters._lately_w(half, "module:0", 195.0, 200.0) == pytest.approx(100.0)
    assert half.asked[-1] == ("module:0", 195.0, 200.0)


def test_modules_are_accelerators_too():
    assert live_counters._gpus(Half()) == 2.0


def test_lines_that_come_late_are_not_the_newest_and_an_old_recorders_end_is_not_the_hosts():
    lines = Lines("r")
    lines.now = SimpleNamespace(feed=lambda *_: None, add=lambda *_: None, fullness=0.0)
    meters = (SimpleNamespace(name="nvml"),)
    old, new = (
        Header("r", "h", part=n, wall_ns=n * 10**12, monotonic_ns=n * 10**12, meters=meters)
        for n in (1, 2)
    )
    bare = Header("r", "h", part=3, wall_ns=3 * 10**12, monotonic_ns=3 * 10**12)
    for n, header_ in enumerate((old, new, bare)):
        lines._header(f"part{n}", header_)
    lines._line("part1", {"k": "raw", "t": 2 * 10**12 + 5})
    lines._line("part0", {"k": "raw", "t": 10**12 + 7})
    assert lines.newest["h"] == (new, 2 * 10**12 + 5)
    lines._line("part0", {"k": "end"})
    assert lines.ended["h"] is False
    lines._line("part1", {"k": "end"})
    assert lines.ended["h"] is True
