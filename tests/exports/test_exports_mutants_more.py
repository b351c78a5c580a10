"""More slips of exports: the last of each, by hand."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from small_runs import recorded
from statements import START, document, factor, statement

from ckptcost.errors import InputError
from ckptcost.exports import boamps, datapackage, grafana, model_card, tables
from ckptcost.exports.formats import exported
from ckptcost.exports.grafana import SHOWN
from ckptcost.exports.live_metrics import flavour_for
from ckptcost.jobs import live_counters
from ckptcost.jobs.live_counters import LiveCounters
from ckptcost.jobs.live_figures import Saves
from ckptcost.report.statement import Measurement
from ckptcost.runs.follow import follow

ZERO = (0.0,) * 5


def changed(s, **fields):
    return s.model_copy(update=fields)


def subject(s, **fields):
    return changed(s, subject=s.subject.model_copy(update=fields))


def text_of(s, name, file=None) -> str:
    doc = s if hasattr(s, "statements") else document(s)
    files = exported(doc, name)
    content = files[file] if file else next(iter(files.values()))
    return content.decode() if isinstance(content, bytes) else "".join(content)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def soon(s):
    return document(s).model_copy(update={"generated_at": "2027-01-01T00:00:00Z"})


# ---- BoAmps, CodeCarbon


def test_boamps_counts_no_half_processors():
    who = subject(statement(), accelerator_count=2.5, cpu_model="c", cpu_count=4.0).subject
    assert [(p["componentType"], p["nbComponent"]) for p in boamps._hardware(who)] == [("cpu", 4)]
    with pytest.raises(InputError, match="needs a count"):
        boamps._hardware(subject(statement(), accelerator_count=2.5, nodes=0.5).subject)


def test_codecarbon_cells_are_no_formulas_and_places_are_not_each_other():
    s = subject(
        statement(),
        country="=1+1",
        country_iso3="@x",
        longitude=1.0,
        latitude=2.0,
        os="+o",
        region="-r",
    )
    row, *_ = rows_of(text_of(s, "codecarbon"))
    assert (row["country_name"], row["country_iso_code"], row["os"], row["region"]) == (
        "'=1+1",
        "'@x",
        "'+o",
        "'-r",
    )
    assert (float(row["longitude"]), float(row["latitude"])) == (1.0, 2.0)


# ---- tables


def test_columns_have_their_words_and_keys_that_other_tables_hold():
    told = {
        r["name"]: r
        for r in json.loads(text_of(statement(), "datapackage", "datapackage.json"))["resources"]
    }
    for table in tables.TABLES:
        enums = {
            f["name"]: f.get("constraints", {}).get("enum")
            for f in told[table.name]["schema"]["fields"]
        }
        assert enums == {c.name: list(c.choices) or None for c in table.columns}
        keys = told[table.name]["schema"].get("foreignKeys", [])
        assert (
            [k["reference"]["resource"] for k in keys] == [datapackage.KEYS[table.name][0]]
            if table.name in datapackage.KEYS
            else keys == []
        )
    assert set(datapackage.KEYS) == {"totals_wide", "components", "intervals", "factors"}


def test_rows_of_time_say_ledger_and_basis_of_their_component():
    s = statement(kind="measured")
    rows = tables.TABLES[3].cells(document(s))
    assert set(rows["ledger"]) == {"marginal"}
    assert set(rows["basis"]) == {"measured"}


# ---- FOCUS


def focus(s):
    return rows_of(text_of(s, "focus"))


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
    s = changed(
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
    (row,) = [row for row in focus(changed(s, series=rows)) if row["x_Component"] == "gpu_wait"]
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (
        "2026-10-01T00:00:10Z",
        "2026-10-01T00:00:11Z",
    )
    (row,) = [
        row
        for row in focus(changed(s, series=rows.model_copy(update={"duration_s": [2.2]})))
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
    rows = {row["x_Component"]: row for row in focus(changed(s, components=lines))}
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


# ---- what all have


def test_half_a_period_is_none():
    with pytest.raises(InputError, match="needs to know when the run is"):
        text_of(changed(statement(), period_end=None, series=None), "codecarbon")


# ---- Grafana


def test_the_dashboards_words_for_what_is_not_known_and_its_units():
    board = json.loads(text_of(statement(), "grafana", "dashboard.json"))
    assert {p["fieldConfig"]["defaults"]["noValue"] for p in board["panels"]} == {"not known"}
    runs = next(p for p in board["panels"] if p["title"] == "Runs")
    units = {
        o["matcher"]["options"]: o["properties"][0]["value"]
        for o in runs["fieldConfig"]["overrides"]
    }
    assert units["Share of GPU time lost"] == "percentunit"
    assert units["Emissions, market-based"] == "suffix: kgCO2e"


def test_a_mean_factor_is_over_energy_whose_carbon_is_known():
    assert re.search(
        r"/ \(sum by \(run\) \(.* and .*ckptcost_emissions_location_grams_total.*\) > 0\)",
        grafana.factor(SHOWN["emissions_location_kg"]),
    )


def test_rules_are_evaluated_within_the_look_back_of_prometheus():
    rules = text_of(statement(), "grafana", "rules.yaml")
    for minutes in re.findall(r"interval: (\d+)m", rules):
        assert int(minutes) < 5
    assert re.findall(r"interval: (\d+)m", rules)


# ---- Impact Framework


def manifest(s):
    return text_of(s, "impact-framework")


def test_the_manifest_leaves_out_the_other_ledger_and_rows_that_are_not_known():
    s = statement((100.0, 50.0, 0.0, 0.0, 0.0), gpu_hours=(1.0, 1.0, 0.0, 0.0, 0.0))
    assert '"standing"' not in manifest(s)
    assert "standing" not in manifest(s)
    energies = [None if n == 0 else e for n, e in enumerate(s.series.energy_kwh)]
    told = manifest(changed(s, series=s.series.model_copy(update={"energy_kwh": energies})))
    assert "gpu_wait (energy of some rows unknown)" in told
    assert '        "gpu_wait":' not in told
    grids = [None if n == 0 else g for n, g in enumerate(s.series.grid_kgco2e_per_kwh)]
    assert "gpu_wait (100.0 kWh, grid factor unknown)" in manifest(
        changed(s, series=s.series.model_copy(update={"grid_kgco2e_per_kwh": grids}))
    )


def test_the_manifest_has_our_ends_and_licences():
    told = manifest(statement((100.0, 0.0, 0.0, 0.0, 0.0), gpu_hours=(1.0, 0.0, 0.0, 0.0, 0.0)))
    assert "energy: 100.0, energy-low: 90.0, energy-high: 110.0" in " ".join(
        re.sub(r"(\d)0{6,}\d\b", r"\1", told).split()
    )
    assert 'licence: "CC BY 4.0"' in told


def test_hours_in_which_a_component_has_no_row_have_the_grid_of_that_hour():
    s = statement(
        (100.0, 50.0, 0.0, 0.0, 0.0),
        gpu_hours=(1.0, 1.0, 0.0, 0.0, 0.0),
        costs=ZERO,
        rows=3,
        begin=START,
    )
    keep = [
        n
        for n, (c, start) in enumerate(zip(s.series.component, s.series.start, strict=True))
        if c == "gpu_wait" or start.endswith("T01:00:00Z")
    ]
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    back = keep[::-1]  # rows in any order
    rows = s.series.model_copy(
        update={name: [getattr(s.series, name)[n] for n in back] for name in names}
    )
    host = manifest(changed(s, series=rows)).split('"host_wait":\n', 1)[1]
    found = re.findall(
        r'timestamp: "([^"]*)", duration: [\d.]+, energy: ([\d.]+), grid/carbon-intensity:'
        r" ([\d.]+)",
        host,
    )
    assert [start for start, _, _ in found] == [
        "2026-10-01T00:00:00Z",
        "2026-10-01T01:00:00Z",
        "2026-10-01T02:00:00Z",
    ]
    assert [float(kwh) > 0 for _, kwh, _ in found] == [False, True, False]
    grid = [383.5 * (1.0 + 0.1 * math.sin(n)) for n in range(3)]
    assert [float(g) for _, _, g in found] == pytest.approx(grid)


# ---- Prometheus, OpenMetrics, OTLP


def test_prometheus_begins_and_ends_where_the_period_does():
    s = statement(rows=2, begin=START)
    zero = factor("site.tariff", 0.0, "usd_per_j", "0")
    lines = dict(
        line.rsplit(" ", 1)
        for line in text_of(changed(s, factors=[zero]), "prometheus").splitlines()
        if not line.startswith("#")
    )
    values = {head.partition("{")[0]: value for head, value in lines.items()}
    assert (
        float(values["ckptcost_run_start_timestamp_seconds"]),
        float(values["ckptcost_run_end_timestamp_seconds"]),
    ) == (
        START,
        START + 7200,
    )
    assert values["ckptcost_factor"] == "0"


def points(s, name):
    found = {}
    for line in text_of(s, "otlp").splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            for metric in resource["scopeMetrics"][0]["metrics"]:
                if metric["name"] == name:
                    for p in metric["sum"]["dataPoints"]:
                        who = {a["key"]: a["value"].get("stringValue") for a in p["attributes"]}
                        found.setdefault(who.get("component"), []).append(
                            (int(p["timeUnixNano"]) / 1e9, p["asDouble"])
                        )
    return found


def test_otlp_has_all_saves_of_an_instant_in_one_point():
    s = statement(rows=2, begin=START)
    shared = [1.0] * len(s.series.start)
    found = points(
        changed(s, series=s.series.model_copy(update={"checkpoints": shared})),
        "ckptcost.checkpoints",
    )[None]
    half = len(shared) / 2
    assert found == [(START + 3600, half), (START + 7200, 2 * half)]


def test_openmetrics_bridges_an_unknown_row_and_forgets_nothing_after_it():
    s = statement((100.0, 0.0, 0.0, 0.0, 0.0), gpu_hours=ZERO, costs=ZERO, rows=3, begin=START)
    rows = s.series.model_copy(update={"energy_kwh": [40.0, None, 60.0]})
    told = text_of(changed(s, series=rows), "openmetrics")
    found = [
        (float(line.split()[-1]), float(line.split()[-2]))
        for line in told.splitlines()
        if line.startswith("ckptcost_energy_joules_total") and "gpu_wait" in line
    ]
    assert found == [
        (START, 0.0),
        (START + 3600, 40 * 3.6e6),
        (START + 10800, 100 * 3.6e6),
    ] or found == [
        (START, 0.0),
        (START + 3600, 40 * 3.6e6),
        (START + 7200, 40 * 3.6e6),
        (START + 10800, 100 * 3.6e6),
    ]


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


def test_a_meter_of_another_boundary_is_not_the_nodes():
    assert model_card._parts([meter("node", boundary="cluster"), meter("gpu:0")])[0].id == "gpu:0"
    assert [
        m.id for m in model_card._parts([meter("cpu:0", boundary="cluster"), meter("gpu:0")])
    ] == ["gpu:0"]


@pytest.mark.parametrize(
    ("included", "added"), [(True, "100 kWh (8.7 %)"), (False, "115 kWh (10 %)")]
)
def test_what_checkpoints_add_is_at_the_nodes_and_times_pue_once(included, added):
    s = statement((60.0, 40.0, 7.0, 0.0, 0.0), gpu_hours=ZERO, costs=ZERO)
    s = changed(
        s,
        measurements=[meter("node", 1000.0)],
        boundary=s.boundary.model_copy(update={"pue_included_in_energy": included}),
    )
    s = subject(s, nodes=1.0, accelerator_count=1.0)
    told = text_of(s, "model-card")
    assert f"Of these, checkpoints and failures: {added} at the nodes" in told
    assert "Outside the metered nodes: 7 kWh more" in told
    assert (
        "Energy of the whole run: 1,150 kWh (1,000 kWh metered by node, times a PUE of 1.15)"
        in told
    )


# ---- a run that goes on


@pytest.mark.parametrize(
    ("accept", "flavour"),
    [
        ("application/openmetrics-text;q=0.5, text/plain;q=0.5", "openmetrics"),
        ("application/openmetrics-text;q=0", "prometheus"),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.5", "prometheus"),
        ("text/html", "prometheus"),
        ("application/openmetrics-text;q=x", "prometheus"),
    ],
)
def test_who_likes_both_as_well_gets_openmetrics(accept, flavour):
    assert flavour_for(accept) == flavour


def counters_of(folder, run="a" * 32):
    counters = LiveCounters(run)
    for line in follow(folder, stop=lambda: True):
        counters.take(line)
    return counters.counters()


def test_lines_that_are_there_twice_count_once(tmp_path):
    recorded(tmp_path / "run", seconds=20)
    (one,) = counters_of(tmp_path / "run").hosts
    (file,) = (tmp_path / "run").glob("*.jsonl")
    (tmp_path / "run" / "copy.000.jsonl").write_bytes(file.read_bytes())
    (other,) = counters_of(tmp_path / "run").hosts
    assert other.saves == one.saves
    assert [each[:6] for each in other.domains] == [each[:6] for each in one.domains]


def test_a_charge_of_no_length_has_a_second():
    s = statement(
        (1.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=ZERO,
        costs=(1.0, 0.0, 0.0, 0.0, 0.0),
        rows=1,
        begin=START,
    )
    (row,) = [
        row
        for row in focus(changed(s, series=s.series.model_copy(update={"duration_s": [0.0]})))
        if row["x_Component"] == "gpu_wait"
    ]
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (
        "2026-10-01T00:00:00Z",
        "2026-10-01T00:00:01Z",
    )


def test_the_recorders_own_time_is_what_it_said_last():
    def cost(cpu_s, host="h", name="cost"):
        return SimpleNamespace(name=name, host=host, detail={"cpu_s": cpu_s})

    run = SimpleNamespace(
        events=[cost(1.0), cost(2.0), cost(9.0, "other"), cost(8.0, name="x"), cost(None)]
    )
    assert live_counters._own_cpu_s(run, "h") == 2.0
    assert math.isnan(live_counters._own_cpu_s(run, "nobody"))


def test_what_is_told_of_a_host_is_from_what_was_asked_and_from_where_the_last_generation_ended():
    node = SimpleNamespace(ticked_s=lambda: np.array([[0.0, 1.0], [99.0, 100.0]]))
    none = SimpleNamespace(ticked_s=lambda: np.empty((0, 2)))
    margin_s = live_counters.MARGIN_S
    assert live_counters._span(node, [], None) == (margin_s, margin_s, 100.0 - margin_s)
    assert live_counters._span(node, [10.0], None) == (10.0, 10.0, 100.0 - margin_s)
    assert live_counters._span(node, [10.0, 90.0], None) == (10.0, 10.0, 90.0)
    seen = live_counters._Settled(5.0, 95.0, {}, Saves(), 0.0)
    assert live_counters._span(node, [], seen) == (5.0, 95.0, 100.0 - margin_s)
    assert live_counters._span(node, [10.0, 90.0], seen) == (5.0, 95.0, 95.0)
    assert live_counters._span(none, [], seen) == (5.0, 95.0, 95.0)
    assert live_counters._span(none, [], None) is None
