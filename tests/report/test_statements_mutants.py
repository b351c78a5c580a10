"""Statements of machines of round watts, of simulations and plans: what a figure is, by hand; and
how they are told as text."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math

import numpy as np
import pytest
import statements
from statements import document, statement
from told_meters import Told, at, energy, evaluated, said, watts

import ckptcost
from ckptcost.catalog.store import Catalog
from ckptcost.core.channels import Channel
from ckptcost.core.quantities import BY_ID
from ckptcost.core.reconcile import Energy, unknown
from ckptcost.errors import InputError
from ckptcost.jobs import power_trace
from ckptcost.jobs import simulate as simulate_job
from ckptcost.jobs.model import one_of
from ckptcost.jobs.simulate import simulate
from ckptcost.jobs.walks import SimulationRequest
from ckptcost.layers import layers_for
from ckptcost.questions.statements import statement_document
from ckptcost.report import sci, statement_views
from ckptcost.report.parts import FunctionalUnit
from ckptcost.report.statement import QUANTITIES, utc
from ckptcost.report.statements import measured, modelled, run_lines, simulated
from ckptcost.report.statements.reading import Placing
from ckptcost.report.study import shown_cells

TICK = {"tick_s": 0.001}
NEAR = {"rel": 5e-3}
SAVE = said("begin 5, snapshotted 6, returned 7, durable 10")
FAILED = [
    *said("begin 12, returned 13", "bad"),
    *said("durable 13.5", "bad", detail={"error": "disk full"}),
]


def machine(**more) -> Told:
    """A GPU at 300 W, a processor at 100 W, a node at 500 W."""
    says = {
        energy("gpu:0", device="H100", **TICK): at(300.0),
        energy("cpu:0", **TICK): at(100.0),
        watts("node", "DCMI", role="whole"): lambda _: 500.0,
    }
    disk = ("written_bytes", "read_bytes", "writes", "flushes", "busy_s", "queue_s")
    return Told(
        "told", says | {Channel("disk:sda", name, "diskstats"): at(8e6) for name in disk}, **more
    )


@pytest.fixture(scope="module")
def catalog():
    return Catalog()


@pytest.fixture(scope="module")
def seen():
    return evaluated(machine(), for_s=40.0, marks=[*SAVE, *FAILED])


@pytest.fixture(scope="module")
def placed(catalog):
    return one_of(
        catalog, layers_for(catalog, None, None, ["site.id=usa", "cluster.gpu_price=3.6 USD/GPU-h"])
    )


# ---- measured


def test_a_save_that_failed_is_no_checkpoint_though_it_cost(seen, catalog):
    assert [w.name for w in seen.windows] == ["w", "bad"]
    s = measured.statement_of(seen, catalog)
    assert s.totals.checkpoints.value == 1.0
    assert s.functional_units[0].count == 1.0
    assert math.fsum(s.series.checkpoints) == 1.0
    assert next(
        c.gpu_time_lost.value for c in s.components if c.id == "gpu_wait"
    ) * 3600 == pytest.approx(3.0)


def test_energies_of_a_save_by_hand(seen, catalog):
    """GPUs waited 2 s + 1 s at 300 W, hosts at 200 W."""
    lines = {c.id: c for c in measured.statement_of(seen, catalog).components}
    assert lines["gpu_wait"].energy.value * 3.6e6 == pytest.approx(900.0, **NEAR)
    assert lines["host_wait"].energy.value * 3.6e6 == pytest.approx(600.0, rel=0.05)
    assert (lines["gpu_wait"].cause, lines["gpu_wait"].ledger, lines["gpu_wait"].boundary) == (
        "save",
        "marginal",
        "node",
    )


def test_every_line_lies_where_its_phase_was(seen):
    found = {
        t.line: t.stretch
        for t in run_lines.taken_of(seen, measured.NOWHERE, 1.0, True)
        if t.window == "w"
    }
    assert found["gpu_wait"] == found["host_wait"] == pytest.approx((5.0, 7.0))
    assert found["slowdown"] == pytest.approx((7.0, 10.0))
    for line in ("storage_write", "network", "requests"):
        assert found[line] == pytest.approx((5.0, 10.0))
    assert {"network", "requests"}.isdisjoint(
        t.line for t in run_lines.taken_of(seen, measured.NOWHERE, 1.0, False)
    )


def test_a_stretch_is_of_the_phase_that_is_named(seen):
    window = seen.windows[0]
    assert run_lines._stretch(window, "stall") == pytest.approx((5.0, 7.0))
    assert run_lines._stretch(window, "drain") == pytest.approx((7.0, 10.0))
    assert run_lines._stretch(window, "whole") == pytest.approx((5.0, 10.0))


def test_measurements_say_kilowatt_hours_of_the_whole_time(seen, catalog):
    found = {m.id: m for m in measured.statement_of(seen, catalog).measurements}
    length_s = seen.end_s - seen.begin_s
    for domain, power_w in (("gpu:0", 300.0), ("cpu:0", 100.0), ("node", 500.0)):
        assert found[domain].energy_kwh * 3.6e6 == pytest.approx(power_w * length_s, rel=0.02)
        assert found[domain].coverage == pytest.approx(
            seen.energies.provenance(domain, seen.begin_s, seen.end_s).coverage
        )


def test_a_meter_that_was_read_half_of_the_time_says_so(seen, catalog):
    class Halved:
        def __getattr__(self, name):
            return getattr(seen.energies, name)

        def provenance(self, *asked):
            return seen.energies.provenance(*asked)._replace(coverage=0.5)

    told = measured.statement_of(seen._replace(energies=Halved()), catalog).measurements
    assert {m.coverage for m in told} == {0.5}


def test_a_meter_that_tells_nothing_has_no_kilowatt_hours(seen, catalog):
    spans = {**seen.spans, "cpu:0": seen.spans["cpu:0"]._replace(value=math.nan, why="NO_READINGS")}
    told = {
        m.id: m.energy_kwh
        for m in measured.statement_of(seen._replace(spans=spans), catalog).measurements
    }
    assert spans["cpu:0"].known is False
    assert told["cpu:0"] is None
    assert told["gpu:0"] is not None


def test_one_host_of_several_is_said(seen, catalog):
    assert "ONE_HOST" not in {w.code for w in measured.statement_of(seen, catalog).warnings}
    other = (
        seen.run.nodes[0]._replace(host="other")
        if hasattr(seen.run.nodes[0], "_replace")
        else dataclasses.replace(seen.run.nodes[0], host="other")
    )
    run = (
        seen.run._replace(nodes=(*seen.run.nodes, other))
        if hasattr(seen.run, "_replace")
        else dataclasses.replace(seen.run, nodes=(*seen.run.nodes, other))
    )
    warned = {
        w.code: w.message for w in measured.statement_of(seen._replace(run=run), catalog).warnings
    }
    assert warned["ONE_HOST"].startswith("Of 2 hosts this is ")


def test_location_and_market_are_not_each_other(seen, catalog, placed):
    site = dataclasses.replace(placed.scenario.site, market_kgco2e_per_j=1e-8, kgco2e_per_j=1e-7)
    s = measured.statement_of(
        seen, catalog, placed._replace(scenario=dataclasses.replace(placed.scenario, site=site))
    )
    gpu, e = s.components[0], s.components[0].energy.value * 3.6e6
    assert gpu.emissions_location.value == pytest.approx(e * 1e-7)
    assert gpu.emissions_market.value == pytest.approx(e * 1e-8)
    assert s.series.grid_kgco2e_per_kwh[0] == pytest.approx(0.36)
    assert s.series.market_kgco2e_per_kwh[0] == pytest.approx(0.036)
    assert s.rests_of(gpu.energy) == ["site.pue"]


def test_ranges_of_the_measured_lie_around_their_figures(seen, catalog, placed):
    s = measured.statement_of(seen, catalog, placed)
    ranged = [
        q
        for c in (*s.components, s.totals)
        for what in QUANTITIES
        if (q := getattr(c, what)).low is not None
    ]
    assert ranged
    for q in ranged:
        assert q.low <= q.value
        assert q.high is None or q.high >= q.value
        assert q.interval == "bounds"


# ---- simulated


def test_the_other_ledger_of_simulated_runs_is_its_own_sum(catalog):
    resolved = one_of(catalog, layers_for(catalog, "gpt4-scale-2tb", None, ["tier.id=nas-hdd"]))
    s = simulated.statement_of(simulate(resolved, SimulationRequest(runs=20, seed=1)), catalog)
    apart = [c for c in s.components if c.ledger == "allocated"]
    assert (s.allocated is not None) == bool(apart)
    for what in QUANTITIES if apart else ():
        known = [getattr(c, what).value for c in apart if getattr(c, what).value is not None]
        if known and getattr(s.allocated, what).value is not None:
            assert getattr(s.allocated, what).value == pytest.approx(math.fsum(known))
    assert apart


def test_as_many_runs_as_the_document_says_have_lines():
    assert simulate_job.MOST_BILLED_RUNS == 20_000


def test_the_most_runs_still_have_lines(catalog, monkeypatch):
    monkeypatch.setattr(simulate_job, "MOST_BILLED_RUNS", 10)
    found = simulate(
        one_of(catalog, layers_for(catalog, "small-8b", None, [])), SimulationRequest(runs=10)
    )
    assert simulated.statement_of(found, catalog) is not None


# ---- plans


def test_a_case_whose_allocated_share_is_another_has_its_own():
    report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100, 1000])
    for case in (row["case"] for row in report.rows()):
        s = modelled.statement_of(report, case)
        apart = [c for c in s.components if c.ledger == "allocated"]
        values = [c.energy.value for c in apart if c.energy.value is not None]
        if s.allocated is not None and s.allocated.energy.value is not None:
            assert s.allocated.energy.value == pytest.approx(math.fsum(values))
        assert not [w for w in s.warnings if "[" in w.message and case not in w.message]


# ---- reading


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("deep") / "report.json"
    path.write_text(ckptcost.model("small-8b").to_json(), "utf-8")
    return path


def test_files_are_told_by_their_base_names_only(tmp_path, plan_file):
    grid = tmp_path / "hours.csv"
    grid.write_text(
        "time,gCO2eq/kWh\n" + "".join(f"2026-10-{d:02d}T00:00Z,300\n" for d in range(1, 32)),
        "utf-8",
    )
    bought = tmp_path / "contracts.toml"
    bought.write_text('[[site]]\nid = "usa"\nresidual = "0.4 kg/kWh"\n', "utf-8")
    wanted = Placing(start="2026-10-01", grid=str(grid), contracts=str(bought))
    try:
        found = statement_document([str(plan_file)], wanted)
    except InputError as error:
        pytest.fail(str(error))
    names = [each.path for each in found.reproducibility.inputs]
    assert {"hours.csv", "contracts.toml"} <= set(names)
    assert str(tmp_path) not in found.to_json()


@pytest.mark.parametrize(
    "label",
    [
        "latitude=-90.5",
        "latitude=90.5",
        "longitude=-181",
        "longitude=180.5",
        "tokens=-1",
        "ram_gb=nan",
        "tags=x",
        "site_id=x",
        "run_id=x",
    ],
)
def test_labels_out_of_their_limits(plan_file, label):
    with pytest.raises(InputError):
        statement_document([str(plan_file)], Placing(labels=[label]))


def test_labels_within_their_limits(plan_file):
    (s,) = statement_document(
        [str(plan_file)],
        Placing(labels=["latitude=-90", "longitude=180", "tokens=1_000", "note=a"]),
    ).statements
    assert (s.subject.latitude, s.subject.longitude, s.subject.tokens) == (-90.0, 180.0, 1000.0)
    with pytest.raises(InputError, match="control character"):
        statement_document([str(plan_file)], Placing(labels=["note=a\x1b[31mb"]))


def test_contracts_alone_are_applied(tmp_path, plan_file):
    bought = tmp_path / "contracts.toml"
    bought.write_text('[[site]]\nid = "usa"\nresidual = "0.4 kg/kWh"\n', "utf-8")
    (s,) = statement_document([str(plan_file)], Placing(contracts=str(bought))).statements
    assert s.totals.emissions_market.value == pytest.approx(0.4 * s.totals.energy.value)


# ---- the score


def test_a_score_names_lines_that_only_its_embodied_carbon_lacks():
    s = statement((1.0, 1.0, 1.0, 1.0, 1.0), gpu_hours=(1.0, None, 0.0, 0.0, 0.0))
    assert s.totals.emissions_location.excludes == []
    assert s.totals.embodied.excludes == ["host_wait"]
    (score,) = sci.scores(s)
    assert score.status == "without hosts waiting for saves: not known"


def test_tokens_are_tokens_and_parameters_parameters():
    s = statement()
    s = s.model_copy(
        update={"subject": s.subject.model_copy(update={"tokens": 2.0, "parameters": 3.0})}
    )
    assert sci.units(s) == [
        ("checkpoint", 8.0, ""),
        ("token", 2.0, sci.GROSS["token"]),
        ("parameter", 3.0, sci.GROSS["parameter"]),
    ]
    told = s.model_copy(
        update={"functional_units": [FunctionalUnit(name="training_token", count=5.0)]}
    )
    assert [name for name, _, _ in sci.units(told)] == ["training_token", "parameter"]


@pytest.mark.parametrize(
    ("origin", "sourced", "method"),
    [
        ("published", True, "sourced"),
        ("vendor", True, "sourced"),
        ("default", True, "assumed"),
        ("user", True, "assumed"),
        ("derived", True, "sourced"),
        ("derived", False, "assumed"),
        ("measured", False, "measured"),
    ],
)
def test_methods_of_factors(origin, sourced, method):
    one = statements.factor("site.pue", 1.15, "", "1.15", origin)
    assert sci._method(one if sourced else one.model_copy(update={"sources": []})) == method
    assert (sci._method(None), sci._source(None)) == ("assumed", "not given")


def test_coefficients_in_the_units_of_people():
    one = statements.factor("cluster.gpu_embodied", 1e-6, "kgco2e_per_gpu_s", "3.6 g")
    assert sci._people(one) == (pytest.approx(3.6), "gCO2e/GPU-h")
    assert sci._people(statements.factor("site.grid_location", 1e-7, "kgco2e_per_j", "x")) == (
        pytest.approx(360.0),
        "gCO2e/kWh",
    )


# ---- as text, Markdown, CSV


def test_markdown_says_memo_item_and_escapes_warnings():
    s = statement()
    s = s.model_copy(
        update={"warnings": [s.warnings[0].model_copy(update={"message": "see <b> | *x* @me"})]}
    )
    told = statement_views.to_markdown(document(s))
    assert f"_{statement_views.MEMO}_" in told.split("## Totals", maxsplit=1)[0]
    assert "- see &#60;b&#62; &#124; &#42;x* @&#8203;me (UNKNOWN_INPUT)" in told


def test_csv_has_both_ledgers_and_the_treatment_on_every_row():
    rows = list(
        csv.DictReader(
            io.StringIO(
                statement_views.to_csv(document(statement(), statement(run_id="b", name="=x")))
            )
        )
    )
    assert [row["ledger"] for row in rows] == (["marginal"] * 5 + ["allocated"]) * 2
    assert {row["inventory_treatment"] for row in rows} == {"memo_item"}
    assert {row["method_version"] for row in rows} == {"2026.1"}
    assert rows[-1]["name"] == "'=x"
    energy = float(rows[0]["energy_kwh"])
    assert (float(rows[0]["energy_kwh_low"]), float(rows[0]["energy_kwh_high"])) == (
        pytest.approx(energy * 0.9),
        pytest.approx(energy * 1.1),
    )
    assert (rows[0]["cause"], rows[0]["component"], rows[0]["period_start"]) == (
        "save",
        "gpu_wait",
        statement().period_start,
    )


def test_tables_hold_each_figure_in_its_place():
    s = statement(
        (1000.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(7.0, 0.0, 0.0, 0.0, 0.0),
        costs=(5.0, 0.0, 0.0, 0.0, 0.0),
        grid=0.4,
        market=0.1,
        dated=False,
    )
    _, esrs, _ = shown_cells(statement_views.esrs(s))
    assert [row[1] for row in esrs] == ["1", "0.4", "0.1"]
    _, scope_two, _ = shown_cells(statement_views.scope_two(s))
    assert [row[2] for row in scope_two] == ["400", "100"]
    _, bill, _ = shown_cells(statement_views.bill(s))
    assert [bill[0][n] for n in (1, 3, 4, 5)] == ["1,000", "7", "5", "400"]
    assert [row[0] for row in bill[-2:]] == ["total", "apart: idle storage, its share"]
    assert "60 % at 0 g/kWh" in statement_views.scope_two(s).note


def test_what_is_simulated_says_so_in_text_and_markdown():
    s = statement().model_copy(update={"simulated": True})
    for view in (statement_views.text, statement_views.to_markdown):
        assert statement_views.SIMULATED in view(document(s))
        assert statement_views.SIMULATED not in view(document(statement()))


# ---- power


def test_watts_are_means_of_their_stretch_and_unknown_is_unknown(seen):
    edges = np.array([10.0, 20.0, 30.0])
    assert power_trace.watts_of(seen, ["gpu:0", "cpu:0"], edges).watts.tolist() == pytest.approx(
        [400.0, 400.0], rel=0.01
    )
    assert power_trace.watts_of(seen, ["node"], edges).watts.tolist() == pytest.approx(
        [500.0, 500.0]
    )
    beyond = power_trace.watts_of(seen, ["gpu:0"], np.array([30.0, 38.0, 1000.0, 2000.0]))
    assert math.isnan(beyond.watts[2])


def test_gauges_without_a_reading_are_left_out():
    gauge = Told(
        "told",
        {
            watts("node", role="whole"): lambda t: math.nan if 10 <= t < 20 else 500.0,
            energy("gpu:0", **TICK): at(300.0),
        },
    )
    found = evaluated(gauge, for_s=40.0, marks=SAVE)
    told = power_trace.watts_of(found, ["node"], np.array([5.0, 15.0, 25.0]))
    assert told.watts.tolist() == pytest.approx([500.0, 500.0])


def test_stretches_are_no_shorter_than_readings_allow(seen):
    assert np.diff(power_trace.edges_of(seen, 0.0, 10**6))[0] == pytest.approx(
        power_trace.LEAST_S, rel=0.01
    )
    assert np.diff(power_trace.edges_of(seen, 2.0, 10**6))[0] >= 4.0
    assert len(power_trace.edges_of(seen, 0.0, 10)) == 11


# ---- more of the measured


def test_rows_of_saves_are_those_in_which_they_begin(seen, catalog):
    s = measured.statement_of(seen, catalog, width_s=1.0)
    first = s.series.component[0]
    (start,) = [
        start
        for start, n, c in zip(
            s.series.start, s.series.checkpoints, s.series.component, strict=True
        )
        if n and c == first
    ]
    begun = seen.run.wall_s(seen.windows[0].begin_s)
    assert utc(start).timestamp() <= begun < utc(start).timestamp() + 1.0


def test_the_count_of_accelerators_is_told_and_what_is_not_known_is_warned_of(seen, catalog):
    s = measured.statement_of(seen, catalog)
    assert (s.subject.accelerator, s.subject.accelerator_count, s.subject.nodes) == (
        "H100",
        1.0,
        1.0,
    )
    lacking = [c.label for c in s.components if c.energy.value is None]
    assert lacking
    for label in lacking:
        assert any(
            w.message.startswith(f"{label}: energy not known of 2 of 2: ") for w in s.warnings
        )


def test_electricity_that_the_rent_contains_is_not_paid_twice(seen, catalog, placed):
    assert placed.scenario.cluster.price_includes_electricity
    host = next(
        c for c in measured.statement_of(seen, catalog, placed).components if c.id == "host_wait"
    )
    assert (host.cost.value, host.cost.low, host.cost.high) == (0.0, None, None)
    cluster = dataclasses.replace(placed.scenario.cluster, price_includes_electricity=False)
    own = placed._replace(scenario=dataclasses.replace(placed.scenario, cluster=cluster))
    host = next(
        c for c in measured.statement_of(seen, catalog, own).components if c.id == "host_wait"
    )
    tariff = placed.scenario.site.usd_per_j * 3.6e6
    for end in ("value", "low", "high"):
        assert getattr(host.cost, end) == pytest.approx(getattr(host.energy, end) * tariff)


def test_a_save_of_which_a_line_is_not_known_is_named():
    known = measured.Taken("gpu_wait", "a", None, Energy(3.6e6, 1.8e6, 7.2e6), 3600.0, 1.0)
    dark = measured.Taken("gpu_wait", "b", None, unknown("NO_READING"), 3600.0, math.nan)
    both = measured._line("gpu_wait", [known, dark], measured.NOWHERE).amounts
    assert both["energy"] == (1.0, 0.5, 2.0, ["b"], True)
    assert both["gpu_time_lost"].value == 2.0
    lost = measured._line("gpu_wait", [dark], measured.NOWHERE).amounts["energy"]
    assert math.isnan(lost.value)
    assert not lost.lacks


# ---- more of plans and simulations


@pytest.fixture(scope="module")
def report():
    return ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100, 1000])


def test_the_first_case_by_its_name_is_the_first_case(report):
    assert modelled.statement_of(report, report.rows()[0]["case"]) == modelled.statement_of(report)


def test_a_statement_is_of_the_method_that_computed_it(report):
    first = report.statements[0].model_copy(update={"method_version": "2020.1"})
    old = report.model_copy(update={"statements": [first]})
    assert modelled.statement_of(old).method_version == "2020.1"
    rebuilt = modelled.statement_of(old, report.rows()[1]["case"])
    assert rebuilt.method_version == report.tool.method_version != "2020.1"


def test_accelerators_are_no_nodes(report):
    factors = {f.id: f.value for f in report.statements[0].factors}
    gpus, a_node = factors["cluster.gpus"], factors["cluster.gpus_per_node"]
    for row in report.rows():
        subject = modelled.statement_of(report, row["case"]).subject
        assert (subject.accelerator_count, subject.nodes) == (gpus, gpus / a_node)
        assert gpus != gpus / a_node


def test_without_what_gpus_do_there_is_no_sum(catalog):
    found = simulate(
        one_of(catalog, layers_for(catalog, "small-8b", None, [])), SimulationRequest(runs=5)
    )
    lines = simulate_job.lines_of(found)
    of_job = next(
        each
        for each in lines
        if each.line.id in simulated.OF_THE_JOB and each.line.ledger == "marginal"
    )
    energy = BY_ID["energy"]
    assert simulated._sum(lines, "marginal", energy).value > 0
    of_job.values[energy.field][2] = math.nan
    lost = simulated._sum(lines, "marginal", energy)
    assert math.isnan(lost.value)
    assert lost.lacks == [of_job.line.id]


def test_intensity_is_no_quotient_of_sums_over_different_lines():
    s = statement((100.0, 0.0, 0.0, 0.0, 0.0), grid=0.4, dated=False)
    other = s.totals.energy.model_copy(update={"excludes": ["x"], "value": 50.0})
    assert sci.intensity_g_per_kwh(s) == pytest.approx(400.0)
    assert sci.intensity_g_per_kwh(
        s.model_copy(update={"totals": s.totals.model_copy(update={"energy": other})})
    ) == pytest.approx(400.0)
    assert sci.intensity_g_per_kwh(statement((100.0, 0.0, 0.0, 0.0, 0.0), grid=None)) is None


def test_a_licence_that_nobody_states_is_said_to_be_none():
    s = statement()
    source = s.factors[0].sources[0]
    assert (
        statement_views._sources([source, source.model_copy(update={"licence": None})])
        == "Yearly electricity data (CC BY 4.0); Yearly electricity data (licence not stated)"
    )


# ---- more of power


def test_a_reading_on_an_edge_is_of_the_stretch_that_begins_there():
    rising = Told(
        "told", {watts("node", role="whole"): lambda t: t, energy("gpu:0", **TICK): at(300.0)}
    )
    found = evaluated(rising, for_s=40.0, marks=SAVE)
    series = found.energies.series(found.energies.sources["node"].place)
    edges = np.array([10.0, 20.0, 30.0])
    wanted = [
        series.value[(series.t_s >= a) & (series.t_s < b)].mean() for a, b in ((10, 20), (20, 30))
    ]
    edges[1] = series.t_s[np.searchsorted(series.t_s, 20.0)]
    wanted = [
        series.value[(series.t_s >= a) & (series.t_s < b)].mean()
        for a, b in itertools.pairwise(edges)
    ]
    assert power_trace.watts_of(found, ["node"], edges).watts.tolist() == pytest.approx(
        wanted, rel=1e-12
    )


def test_growth_is_over_the_time_in_which_it_is_known():
    class Grown:
        def over(self, _begin, _end):
            return np.array([100.0, 0.0, 100.0]), np.array([5.0, 0.0, 10.0])

    found = power_trace.rates_of(Grown(), np.array([0.0, 10.0, 20.0, 30.0])).tolist()
    assert (found[0], found[2]) == (20.0, 10.0)
    assert math.isnan(found[1])


def test_the_shortest_stretch_is_a_fifth_of_a_second():
    assert power_trace.LEAST_S == 0.2
