"""Statements against what they are made from: the report, the simulation, the comparison, the
run."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from statements import quantity, statement
from told_meters import Told, at, energy, evaluated, said, watts

import ckptcost
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.channels import Channel
from ckptcost.first.core.quantities import BY_ID
from ckptcost.first.core.reconcile import Energy, unknown
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.jobs import power_trace
from ckptcost.first.jobs import simulate as simulate_job
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.model import one_of
from ckptcost.first.jobs.simulate import simulate
from ckptcost.first.jobs.walks import SimulationRequest
from ckptcost.first.layers import layers_for
from ckptcost.first.questions.statements import statement_document
from ckptcost.first.report import sci, statement_views
from ckptcost.first.report.parts import Warned
from ckptcost.first.report.schema_file import schema_text
from ckptcost.first.report.statement import QUANTITIES, utc
from ckptcost.first.report.statements import measured, modelled, run_lines, simulated
from ckptcost.first.report.statements.bill import Rests, line_part
from ckptcost.first.report.statements.closed_form import place_of
from ckptcost.first.report.statements.reading import Placing, is_document

TRACE = Path(__file__).parents[3] / "data" / "traces" / "simulated-8gpu.jsonl"
SCHEMA = json.loads(schema_text())


@pytest.fixture(scope="module")
def catalog():
    return Catalog()


@pytest.fixture(scope="module")
def report():
    return ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100, 1000])


@pytest.fixture(scope="module")
def seen():
    return reviewed(TRACE)


def sums(s):
    """Totals are the sums of the components that are known."""
    for what in QUANTITIES:
        q = getattr(s.totals, what)
        known = [getattr(c, what).value for c in s.marginal() if getattr(c, what).value is not None]
        if q.value is not None:
            assert q.value == pytest.approx(math.fsum(known), rel=1e-9)
        if q.value is not None and q.low is not None:
            assert q.low <= q.value
            assert q.high is None or q.high >= q.value


def test_the_first_case_is_the_reports_own_bill(report):
    s = modelled.statement_of(report)
    assert [s] == report.statements
    assert (s.period_start, s.series, s.length_s) == (None, None, s.schedule.wall_s)
    assert (s.subject.country_iso3, s.subject.grid_zone, s.subject.site_id) == ("USA", "USA", "usa")
    assert s.method_version == report.tool.method_version
    sums(s)


def test_every_case_is_rebuilt_to_the_last_digit(report):
    ids = set()
    rows = report.rows("cases")
    for row in rows:
        s = modelled.statement_of(report, row["case"])
        for q, column in (
            (s.totals.energy, "run_energy_kwh"),
            (s.totals.cost, "run_cost_usd"),
            (s.totals.gpu_time_lost, "run_gpu_hours"),
            (s.totals.emissions_location, "run_location_kgco2e"),
        ):
            assert (q.value, q.low, q.high) == tuple(row[column + e] for e in ("", "_low", "_high"))
        assert (s.length_s, s.totals.checkpoints.value) == (row["wall_s"], row["saves"])
        assert row["tier_name"] == s.subject.tier
        ids.add(s.subject.run_id)
        sums(s)
    assert len(ids) == len(rows)
    with pytest.raises(UnknownName, match="no case named 'x'"):
        modelled.statement_of(report, "x")


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("DEU", {"country": "there", "country_iso3": "DEU"}),
        (
            "aws:us-east-1",
            {"cloud_provider": "aws", "cloud_region": "us-east-1", "region": "us-east-1"},
        ),
        ("my grid", {}),
        (None, {}),
    ],
)
def test_places_by_their_ids(zone, said):
    found = place_of("site", zone, "a site", "there")
    assert found == {"site": "a site", "site_id": "site", "grid": "there", "grid_zone": zone} | said


def test_lines_of_simulated_runs_add_up_to_what_simulate_says(catalog):
    resolved = one_of(catalog, layers_for(catalog, "small-8b", None, ["cluster.gpus=512"]))
    found = simulate(resolved, SimulationRequest(runs=300, seed=3))
    s = simulated.statement_of(found, catalog)
    for field, name, scale in (
        ("energy", "kwh", 3.6e6),
        ("cost", "usd", 1.0),
        ("gpu_time_lost", "gpu_hours", 3600.0),
        ("emissions_location", "kgco2e", 1.0),
    ):
        summary, q = found.summary(name), getattr(s.totals, field)
        assert q.value * scale == pytest.approx(summary.mean, rel=1e-9)
        assert q.low * scale == pytest.approx(min(summary.p5, summary.mean), rel=1e-9)
        assert q.high * scale == pytest.approx(max(summary.p95, summary.mean), rel=1e-9)
    assert s.length_s == pytest.approx(found.values["wall"].mean())
    assert s.functional_units[0].count == pytest.approx(found.values["saves"].mean())
    assert "300 simulated runs" in s.how
    sums(s)


def test_pieces_of_a_simulation_are_the_same_runs(catalog):
    resolved = one_of(catalog, layers_for(catalog, "small-8b", None, []))
    whole = simulate(resolved, SimulationRequest(runs=50))
    parts = whole._replace(asked=whole.asked._replace(chunk=7))
    one, other = (simulated.statement_of(each, catalog) for each in (whole, parts))
    assert one.totals == other.totals


THREE_TIERS = [
    "second_tier.id=generic-pfs",
    "policy.second_every=4",
    "third_tier.id=nas-hdd",
    "policy.third_every=5",
    "tier.id=local-nvme",
]


def test_three_tiers_have_the_lines_of_all_three(catalog):
    found = simulate(
        one_of(catalog, layers_for(catalog, "small-8b", None, THREE_TIERS)),
        SimulationRequest(runs=40),
    )
    s = simulated.statement_of(found, catalog)
    assert {"storage_write", "second_storage_write", "third_storage_write"} <= {
        c.id for c in s.components
    }
    assert s.totals.gpu_time_lost.value * 3600 == pytest.approx(found.summary("gpu_hours").mean)
    sums(s)


def test_too_many_runs_have_no_lines(catalog, monkeypatch):
    from ckptcost.first.jobs import simulate as simulate_job

    monkeypatch.setattr(simulate_job, "MOST_BILLED_RUNS", 10)
    found = simulate(
        one_of(catalog, layers_for(catalog, "small-8b", None, [])), SimulationRequest(runs=11)
    )
    assert simulated.statement_of(found, catalog) is None


def test_a_comparison_has_one_for_each_scenario():
    study = ckptcost.compare("small-8b", variants=["policy.mode=async"])
    assert [s.subject.name for s in study.statements] == ["A: small-8b", "B: policy.mode=async"]
    value = {(r["scenario"], r["quantity"]): r["value"] for r in study.tables["values"].rows}
    for letter, s in zip("AB", study.statements, strict=True):
        assert s.totals.energy.value == pytest.approx(value[letter, "kwh"], rel=1e-9)
        assert s.totals.cost.value == pytest.approx(value[letter, "usd"], rel=1e-9)
        sums(s)


def test_a_run_bare_is_what_its_meters_say(seen, catalog):
    s = measured.statement_of(seen, catalog)
    gpus = {d for d in seen.energies.parts if d.startswith("gpu")}
    joules = math.fsum(c.stall.value for c in seen.costs if c.domain in gpus)
    lines = {c.id: c for c in s.components}
    assert lines["gpu_wait"].energy.value * 3.6e6 == pytest.approx(joules, rel=1e-9)
    node = math.fsum(c.stall.value for c in seen.costs if c.domain.startswith("node"))
    assert lines["host_wait"].energy.value * 3.6e6 == pytest.approx(node - joules, rel=1e-9)
    assert lines["gpu_wait"].gpu_time_lost.value == pytest.approx(
        math.fsum(o.stalled_gpu_s for o in seen.opportunities) / 3600
    )
    assert lines["storage_write"].energy.value is None
    assert (s.boundary.pue, s.boundary.pue_included_in_energy) == (None, False)
    assert {
        getattr(s.totals, what).value
        for what in ("cost", "emissions_location", "emissions_market", "embodied")
    } == {None}
    assert (s.kind, s.simulated, s.totals.checkpoints.value) == (
        "measured",
        seen.simulated,
        float(len(seen.windows)),
    )
    assert "NO_SITE" in {w.code for w in s.warnings}
    assert {m.id for m in s.measurements} == {*seen.energies.parts, *seen.energies.wholes}
    sums(s)


def test_a_site_multiplies_once(seen, catalog):
    bare = measured.statement_of(seen, catalog)
    resolved = one_of(
        catalog, layers_for(catalog, None, None, ["site.id=usa", "cluster.gpu_price=3.6 USD/GPU-h"])
    )
    s = measured.statement_of(seen, catalog, resolved)
    pue, factor = resolved.scenario.site.pue, resolved.scenario.site.kgco2e_per_j * 3.6e6
    gpu, plain = s.components[0], bare.components[0]
    assert gpu.energy.value == pytest.approx(plain.energy.value * pue, rel=1e-9)
    assert gpu.emissions_location.value == pytest.approx(gpu.energy.value * factor, rel=1e-9)
    assert gpu.cost.value == pytest.approx(
        gpu.gpu_time_lost.value * 3.6
    )  # rent contains the electricity
    assert (gpu.price_qty, gpu.price_unit, gpu.unit_price) == (
        gpu.gpu_time_lost.value,
        "GPU-h",
        pytest.approx(3.6),
    )
    assert {f.id for f in s.factors} >= {"site.pue", "site.grid_location", "cluster.gpu_price"}
    assert (s.boundary.pue, s.boundary.pue_included_in_energy) == (pue, True)
    sums(s)


def test_a_site_alone_says_nothing_of_the_price_of_a_gpu(seen, catalog):
    resolved = one_of(catalog, layers_for(catalog, None, None, ["site.id=usa"]))
    s = measured.statement_of(seen, catalog, resolved, priced=False)
    lines = {c.id: c for c in s.components}
    assert lines["gpu_wait"].cost.value is None
    assert lines["host_wait"].cost.value == pytest.approx(
        lines["host_wait"].energy.value * 3.6e6 * resolved.scenario.site.usd_per_j
    )
    assert s.totals.cost.value is None  # no sum without what GPUs cost
    assert not {f.id for f in s.factors} & {"cluster.gpu_price", "cluster.gpu_embodied"}


def test_rows_of_a_run_lie_where_its_saves_were(seen, catalog):
    s = measured.statement_of(seen, catalog, width_s=60.0)
    energy = {c.id: c.energy.value for c in s.components}
    for line in set(s.series.component):
        rows = [
            e for e, c in zip(s.series.energy_kwh, s.series.component, strict=True) if c == line
        ]
        assert math.fsum(rows) == pytest.approx(energy[line], rel=1e-9)
    assert math.fsum(s.series.checkpoints) == len(seen.windows)
    busy = [
        n for n, e in enumerate(s.series.energy_kwh) if s.series.component[n] == "gpu_wait" and e
    ]
    begins = {int(seen.run.wall_s(w.begin_s) // 60) for w in seen.windows} | {
        int(seen.run.wall_s(w.returned_s) // 60) for w in seen.windows
    }
    from ckptcost.first.report.statement import utc

    assert {int(utc(s.series.start[n]).timestamp() // 60) for n in busy} == begins


def test_without_a_meter_of_the_node_the_host_has_no_high_end(seen, catalog, monkeypatch):
    s = measured.statement_of(_without_node(seen), catalog)
    host = next(c for c in s.components if c.id == "host_wait")
    parts = math.fsum(
        c.stall.value for c in seen.costs if c.domain.split(":")[0] in ("cpu", "dram")
    )
    assert host.energy.value * 3.6e6 == pytest.approx(parts, rel=1e-9)
    assert (host.energy.high, host.energy.interval) == (None, "bounds")
    assert (s.totals.energy.high, s.totals.energy.low) == (
        None,
        pytest.approx(s.components[0].energy.low + host.energy.low),
    )
    assert "PART_OF_HOST" in {w.code for w in s.warnings}


def _without_node(seen):
    class Blind:
        wholes: tuple[str, ...] = ()

        def __init__(self, energies):
            self._energies = energies

        def __getattr__(self, name):
            return getattr(self._energies, name)

    return seen._replace(
        energies=Blind(seen.energies),
        costs=[c for c in seen.costs if not c.domain.startswith("node")],
    )


def test_documents_of_all_kinds_are_read_and_agree(tmp_path, report, seen, catalog):
    study = ckptcost.compare("small-8b", variants=["policy.mode=async"])
    (tmp_path / "report.json").write_text(report.to_json(), "utf-8")
    (tmp_path / "study.json").write_text(study.to_json(), "utf-8")
    document = statement_document(
        [str(tmp_path / name) for name in ("report.json", "study.json")] + [str(TRACE)],
        Placing(labels=["team=infra"]),
    )
    assert len(document.statements) == 4
    jsonschema.validate(json.loads(document.to_json()), SCHEMA)
    (tmp_path / "all.json").write_text(document.to_json(), "utf-8")
    again = statement_document([str(tmp_path / "all.json")])
    assert again.statements == document.statements
    assert again.reproducibility.result_sha256 == document.reproducibility.result_sha256
    assert {s.subject.team for s in again.statements} == {"infra"}
    one = statement_document([str(tmp_path / "all.json")], Placing(case="B"))
    assert [s.subject.name for s in one.statements] == ["B: policy.mode=async"]


def test_a_statement_that_was_edited_is_refused(tmp_path, report):
    (tmp_path / "r.json").write_text(report.to_json(), "utf-8")
    text = statement_document([str(tmp_path / "r.json")]).to_json()
    value = str(report.statements[0].totals.energy.value)
    assert value in text
    (tmp_path / "s.json").write_text(text.replace(value, "1.0", 1), "utf-8")
    with pytest.raises(InputError, match="was changed after it was written"):
        statement_document([str(tmp_path / "s.json")])


def test_the_same_run_twice_is_refused(tmp_path, report):
    (tmp_path / "r.json").write_text(report.to_json(), "utf-8")
    with pytest.raises(InputError, match="two of the statements are of"):
        statement_document([str(tmp_path / "r.json")] * 2)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["x"], "is no label"),
        (["=x"], "is no label"),
        (["x="], "says nothing"),
        (["latitude=95"], "is no latitude"),
        (["tokens=many"], "is no tokens"),
        (["grid_zone=DEU"], "is not said by a label"),
    ],
)
def test_labels_that_are_none(tmp_path, report, labels, said):
    (tmp_path / "r.json").write_text(report.to_json(), "utf-8")
    with pytest.raises(InputError, match=said):
        statement_document([str(tmp_path / "r.json")], Placing(labels=labels))


def test_labels_fill_the_subject_and_others_are_tags(tmp_path, report):
    (tmp_path / "r.json").write_text(report.to_json(), "utf-8")
    (s,) = statement_document(
        [str(tmp_path / "r.json")],
        Placing(labels=["organisation=ACME", "tokens=1.5e12", "cost centre=17"]),
    ).statements
    assert (s.subject.organisation, s.subject.tokens, s.subject.tags) == (
        "ACME",
        1.5e12,
        {"cost centre": "17"},
    )
    assert {u.name: u.count for u in s.functional_units}["training_token"] == 1.5e12


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not valid JSON"),
        ("{}", "is no document of ckptcost's"),
        ('{"schema_name": "ckptcost.sweep"}', "is no document"),
        *(
            (
                f'{{"schema_name": "ckptcost.{name}", "schema_version": "{version}"}}',
                rf"schema ckptcost.{name} '?{version}'?, this program reads ckptcost.report 2.x",
            )
            for name, version in (
                ("statement", "1.0"),
                ("study", "1.4"),
                ("diff", "1.0"),
                ("report", "1.0"),
                ("report", "3.0"),
            )
        ),
        ('{"a": NaN}', "holds NaN"),
        ('{"schema_name": "ckptcost.report", "schema_version": "2.0"}', "required"),
    ],
)
def test_files_that_are_no_document(tmp_path, text, said):
    (tmp_path / "x.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match=said):
        statement_document([str(tmp_path / "x.json")])


def test_studies_without_a_bill_say_what_has_one(tmp_path):
    (tmp_path / "s.json").write_text(ckptcost.sensitivity("small-8b").to_json(), "utf-8")
    with pytest.raises(InputError, match="holds no bill to export: it is of the kind sensitivity"):
        statement_document([str(tmp_path / "s.json")])


def test_a_newer_minor_version_is_read(tmp_path, report):
    (tmp_path / "r.json").write_text(report.to_json(), "utf-8")
    raw = json.loads(statement_document([str(tmp_path / "r.json")]).to_json())
    (tmp_path / "n.json").write_text(
        json.dumps(raw | {"schema_version": "2.7", "more": 1}), "utf-8"
    )
    assert statement_document([str(tmp_path / "n.json")]).statements
    (tmp_path / "o.json").write_text(json.dumps(raw | {"more": 1}), "utf-8")
    with pytest.raises(InputError, match="more"):
        statement_document([str(tmp_path / "o.json")])


def test_site_and_prices_are_said_of_runs_only(tmp_path, report):
    (tmp_path / "r.json").write_text(report.to_json(), "utf-8")
    with pytest.raises(InputError, match="said of recorded runs"):
        statement_document([str(tmp_path / "r.json")], site="usa")
    assert is_document(str(tmp_path / "r.json"))
    assert not is_document(str(TRACE))


def test_a_run_without_checkpoints_has_no_statement(tmp_path, cli):
    assert (
        cli(
            "measure", "--meters", "simulated", "--for", "5 s", "--record", str(tmp_path / "run")
        ).code
        == 0
    )
    with pytest.raises(InputError, match="holds no checkpoint"):
        statement_document([str(tmp_path / "run")])


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
def seen_saves():
    return evaluated(machine(), for_s=40.0, marks=[*SAVE, *FAILED])


@pytest.fixture(scope="module")
def placed(catalog):
    return one_of(
        catalog, layers_for(catalog, None, None, ["site.id=usa", "cluster.gpu_price=3.6 USD/GPU-h"])
    )


def test_a_save_that_failed_is_no_checkpoint_though_it_cost(seen_saves, catalog):
    assert [w.name for w in seen_saves.windows] == ["w", "bad"]
    s = measured.statement_of(seen_saves, catalog)
    assert s.totals.checkpoints.value == 1.0
    assert s.functional_units[0].count == 1.0
    assert math.fsum(s.series.checkpoints) == 1.0
    assert next(
        c.gpu_time_lost.value for c in s.components if c.id == "gpu_wait"
    ) * 3600 == pytest.approx(3.0)


def test_energies_of_a_save_by_hand(seen_saves, catalog):
    """GPUs waited 2 s + 1 s at 300 W, hosts at 200 W."""
    lines = {c.id: c for c in measured.statement_of(seen_saves, catalog).components}
    assert lines["gpu_wait"].energy.value * 3.6e6 == pytest.approx(900.0, **NEAR)
    assert lines["host_wait"].energy.value * 3.6e6 == pytest.approx(600.0, rel=0.05)
    assert (lines["gpu_wait"].cause, lines["gpu_wait"].ledger, lines["gpu_wait"].boundary) == (
        "save",
        "marginal",
        "node",
    )


def test_every_line_lies_where_its_phase_was(seen_saves):
    found = {
        t.line: t.stretch
        for t in run_lines.taken_of(seen_saves, measured.NOWHERE, 1.0, True)
        if t.window == "w"
    }
    assert found["gpu_wait"] == found["host_wait"] == pytest.approx((5.0, 7.0))
    assert found["slowdown"] == pytest.approx((7.0, 10.0))
    for line in ("storage_write", "network", "requests"):
        assert found[line] == pytest.approx((5.0, 10.0))
    assert {"network", "requests"}.isdisjoint(
        t.line for t in run_lines.taken_of(seen_saves, measured.NOWHERE, 1.0, False)
    )


def test_a_stretch_is_of_the_phase_that_is_named(seen_saves):
    window = seen_saves.windows[0]
    assert run_lines._stretch(window, "stall") == pytest.approx((5.0, 7.0))
    assert run_lines._stretch(window, "drain") == pytest.approx((7.0, 10.0))
    assert run_lines._stretch(window, "whole") == pytest.approx((5.0, 10.0))


def test_measurements_say_kilowatt_hours_of_the_whole_time(seen_saves, catalog):
    found = {m.id: m for m in measured.statement_of(seen_saves, catalog).measurements}
    length_s = seen_saves.end_s - seen_saves.begin_s
    for domain, power_w in (("gpu:0", 300.0), ("cpu:0", 100.0), ("node", 500.0)):
        assert found[domain].energy_kwh * 3.6e6 == pytest.approx(power_w * length_s, rel=0.02)
        assert found[domain].coverage == pytest.approx(
            seen_saves.energies.provenance(domain, seen_saves.begin_s, seen_saves.end_s).coverage
        )


def test_a_meter_that_was_read_half_of_the_time_says_so(seen_saves, catalog):
    class Halved:
        def __getattr__(self, name):
            return getattr(seen_saves.energies, name)

        def provenance(self, *asked):
            return seen_saves.energies.provenance(*asked)._replace(coverage=0.5)

    told = measured.statement_of(seen_saves._replace(energies=Halved()), catalog).measurements
    assert {m.coverage for m in told} == {0.5}


def test_a_meter_that_tells_nothing_has_no_kilowatt_hours(seen_saves, catalog):
    spans = {
        **seen_saves.spans,
        "cpu:0": seen_saves.spans["cpu:0"]._replace(value=math.nan, why="NO_READINGS"),
    }
    told = {
        m.id: m.energy_kwh
        for m in measured.statement_of(seen_saves._replace(spans=spans), catalog).measurements
    }
    assert spans["cpu:0"].known is False
    assert told["cpu:0"] is None
    assert told["gpu:0"] is not None


def test_one_host_of_several_is_said(seen_saves, catalog):
    assert "ONE_HOST" not in {w.code for w in measured.statement_of(seen_saves, catalog).warnings}
    other = (
        seen_saves.run.nodes[0]._replace(host="other")
        if hasattr(seen_saves.run.nodes[0], "_replace")
        else dataclasses.replace(seen_saves.run.nodes[0], host="other")
    )
    run = (
        seen_saves.run._replace(nodes=(*seen_saves.run.nodes, other))
        if hasattr(seen_saves.run, "_replace")
        else dataclasses.replace(seen_saves.run, nodes=(*seen_saves.run.nodes, other))
    )
    warned = {
        w.code: w.message
        for w in measured.statement_of(seen_saves._replace(run=run), catalog).warnings
    }
    assert warned["ONE_HOST"].startswith("Of 2 hosts this is ")


def test_location_and_market_are_not_each_other(seen_saves, catalog, placed):
    site = dataclasses.replace(placed.scenario.site, market_kgco2e_per_j=1e-8, kgco2e_per_j=1e-7)
    s = measured.statement_of(
        seen_saves,
        catalog,
        placed._replace(scenario=dataclasses.replace(placed.scenario, site=site)),
    )
    gpu, e = s.components[0], s.components[0].energy.value * 3.6e6
    assert gpu.emissions_location.value == pytest.approx(e * 1e-7)
    assert gpu.emissions_market.value == pytest.approx(e * 1e-8)
    assert s.series.grid_kgco2e_per_kwh[0] == pytest.approx(0.36)
    assert s.series.market_kgco2e_per_kwh[0] == pytest.approx(0.036)
    assert s.rests_of(gpu.energy) == ["site.pue"]


def test_ranges_of_the_measured_lie_around_their_figures(seen_saves, catalog, placed):
    s = measured.statement_of(seen_saves, catalog, placed)
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


def test_a_case_whose_allocated_share_is_another_has_its_own():
    report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100, 1000])
    for case in (row["case"] for row in report.rows()):
        s = modelled.statement_of(report, case)
        apart = [c for c in s.components if c.ledger == "allocated"]
        values = [c.energy.value for c in apart if c.energy.value is not None]
        if s.allocated is not None and s.allocated.energy.value is not None:
            assert s.allocated.energy.value == pytest.approx(math.fsum(values))
        assert not [w for w in s.warnings if "[" in w.message and case not in w.message]


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


def test_watts_are_means_of_their_stretch_and_unknown_is_unknown(seen_saves):
    edges = np.array([10.0, 20.0, 30.0])
    assert power_trace.watts_of(
        seen_saves, ["gpu:0", "cpu:0"], edges
    ).watts.tolist() == pytest.approx([400.0, 400.0], rel=0.01)
    assert power_trace.watts_of(seen_saves, ["node"], edges).watts.tolist() == pytest.approx(
        [500.0, 500.0]
    )
    beyond = power_trace.watts_of(seen_saves, ["gpu:0"], np.array([30.0, 38.0, 1000.0, 2000.0]))
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


def test_stretches_are_no_shorter_than_readings_allow(seen_saves):
    assert np.diff(power_trace.edges_of(seen_saves, 0.0, 10**6))[0] == pytest.approx(
        power_trace.LEAST_S, rel=0.01
    )
    assert np.diff(power_trace.edges_of(seen_saves, 2.0, 10**6))[0] >= 4.0
    assert len(power_trace.edges_of(seen_saves, 0.0, 10)) == 11


def test_rows_of_saves_are_those_in_which_they_begin(seen_saves, catalog):
    s = measured.statement_of(seen_saves, catalog, width_s=1.0)
    first = s.series.component[0]
    (start,) = [
        start
        for start, n, c in zip(
            s.series.start, s.series.checkpoints, s.series.component, strict=True
        )
        if n and c == first
    ]
    begun = seen_saves.run.wall_s(seen_saves.windows[0].begin_s)
    assert utc(start).timestamp() <= begun < utc(start).timestamp() + 1.0


def test_the_count_of_accelerators_is_told_and_what_is_not_known_is_warned_of(seen_saves, catalog):
    s = measured.statement_of(seen_saves, catalog)
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


def test_electricity_that_the_rent_contains_is_not_paid_twice(seen_saves, catalog, placed):
    assert placed.scenario.cluster.price_includes_electricity
    host = next(
        c
        for c in measured.statement_of(seen_saves, catalog, placed).components
        if c.id == "host_wait"
    )
    assert (host.cost.value, host.cost.low, host.cost.high) == (0.0, None, None)
    cluster = dataclasses.replace(placed.scenario.cluster, price_includes_electricity=False)
    own = placed._replace(scenario=dataclasses.replace(placed.scenario, cluster=cluster))
    host = next(
        c for c in measured.statement_of(seen_saves, catalog, own).components if c.id == "host_wait"
    )
    tariff = placed.scenario.site.usd_per_j * 3.6e6
    for end in ("value", "low", "high"):
        assert getattr(host.cost, end) == pytest.approx(getattr(host.energy, end) * tariff)


def test_a_save_of_which_a_line_is_not_known_is_named():
    known = measured.LineTaken("gpu_wait", "a", None, Energy(3.6e6, 1.8e6, 7.2e6), 3600.0, 1.0)
    dark = measured.LineTaken("gpu_wait", "b", None, unknown("NO_READING"), 3600.0, math.nan)
    both = measured._line("gpu_wait", [known, dark], measured.NOWHERE).amounts
    assert both["energy"] == (1.0, 0.5, 2.0, ["b"], True)
    assert both["gpu_time_lost"].value == 2.0
    lost = measured._line("gpu_wait", [dark], measured.NOWHERE).amounts["energy"]
    assert math.isnan(lost.value)
    assert not lost.lacks


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


def test_a_case_has_its_own_share_of_what_stands_there():
    changes = ["tier.idle_power=5 kW", "tier.capacity=100 TB"]
    report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd"], saves=[100, 1000], changes=changes)
    found = {}
    for case in (row["case"] for row in report.rows()):
        s = modelled.statement_of(report, case)
        (line,) = [c for c in s.components if c.ledger == "allocated"]
        assert s.allocated.energy.value == line.energy.value is not None
        assert s.allocated.emissions_location.value == line.emissions_location.value
        found[case] = line.energy.value
    assert len(set(found.values())) == 2


def test_a_case_lacks_the_factors_that_it_does_not_have_and_others_warnings():
    report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
    first, other = (row["case"] for row in report.rows())
    said = [Warned(code="X", message=f"of [{case}] alone") for case in (first, other)] + [
        Warned(code="Y", message="of all")
    ]
    marked = report.model_copy(update={"warnings": said})
    assert [w.message for w in modelled.statement_of(marked, other).warnings] == [
        f"of [{other}] alone",
        "of all",
    ]
    lacks = {"dropped": ["tier.write"], "factors": []}
    scenarios = [report.scenarios[0], report.scenarios[1].model_copy(update=lacks)]
    planted = report.model_copy(update={"scenarios": scenarios})
    [path] = lacks["dropped"]
    assert path in {f.id for f in report.statements[0].factors}
    assert path not in {f.id for f in modelled.statement_of(planted, other).factors}


def test_a_simulation_lists_the_factors_of_its_third_tier(catalog):
    found = simulate(
        one_of(catalog, layers_for(catalog, "small-8b", None, THREE_TIERS)),
        SimulationRequest(runs=5),
    )
    s = simulated.statement_of(found, catalog)
    assert {f.id.partition(".")[0] for f in s.factors} >= {"tier", "second_tier", "third_tier"}


def test_lines_of_a_simulation_that_are_not_known_are_named_in_its_sums(
    catalog, unmetered_slow_tiers
):
    s = simulated.statement_of(
        simulate(
            one_of(catalog, layers_for(catalog, "small-8b", None, ["tier.id=nas-hdd"])),
            SimulationRequest(runs=5),
        ),
        catalog,
    )
    for what in ("energy", "cost", "emissions_location", "gpu_time_lost"):
        lacking = [c.id for c in s.marginal() if getattr(c, what).value is None]
        assert sorted(getattr(s.totals, what).excludes) == sorted(lacking), what
    assert s.totals.energy.excludes


def test_rows_of_a_run_are_as_wide_as_the_files_of_the_grid_ask(tmp_path):
    from datetime import UTC, datetime, timedelta

    from small_runs import WALL_NS, recorded

    recorded(tmp_path / "run", seconds=20)
    zero = datetime.fromtimestamp(WALL_NS / 1e9, UTC).replace(
        minute=0, second=0, microsecond=0
    ) - timedelta(hours=1)
    text = "time,gCO2eq/kWh\n" + "".join(
        f"{(zero + timedelta(minutes=5 * n)).isoformat()},{300 + n}\n" for n in range(60)
    )
    (tmp_path / "hours.csv").write_text(text, "utf-8")
    (s,) = statement_document(
        [str(tmp_path / "run")], Placing(grid=str(tmp_path / "hours.csv"))
    ).statements
    assert s.series.width_s == 300.0
    assert "ROWS_DIVIDED" not in {w.code for w in s.warnings}


def test_two_hosts_of_a_run_are_two_statements_of_names_of_their_own(tmp_path):
    from small_runs import WALL_NS, S, recorded

    recorded(tmp_path / "both", seconds=20, host="node1")
    recorded(tmp_path / "both", seconds=20, host="node2", start_ns=500 * S, wall_ns=WALL_NS + S)
    found = statement_document([str(tmp_path / "both")]).statements
    assert [s.subject.run_id.rpartition("-")[2] for s in found] == ["node1", "node2"]
    assert len({s.id for s in found}) == 2


def test_the_intensity_is_a_mean_over_hours_only_where_hours_differ():
    alike = statement(rows=2)
    grid = [0.4] * len(alike.series.start)
    alike = alike.model_copy(
        update={"series": alike.series.model_copy(update={"grid_kgco2e_per_kwh": grid})}
    )
    for s, is_mean in ((statement(rows=2), True), (alike, False), (statement(dated=False), False)):
        (row,) = [row for row in sci.rows(s) if row.label == "I, carbon intensity"]
        assert ("mean over the" in row.note) is is_mean


def test_lines_that_say_nothing_are_not_in_the_bill_and_notes_name_only_what_is_lacking():
    s = statement()
    mute = [
        c.model_copy(update={"energy": quantity("energy", None)}) if c.id == "standing" else c
        for c in s.components
    ]
    told = statement_views.bill(s.model_copy(update={"components": mute}))
    assert told.rows[-1]["line"] == "total"
    assert told.note == "kgCO2e: location-based."
    assert statement_views.bill(s).note.endswith("Apart: stands there anyway, in no total.")
    note = statement_views.totals(s).note
    assert note.endswith(
        "Not in the totals because unknown: energy: storage writing; emissions, location-based:"
        " storage writing; emissions, market-based: storage writing; cost: storage writing;"
        " water for cooling: storage writing."
    )
    assert (
        "Not in the totals"
        not in statement_views.totals(statement((1.0,) * 5, costs=(1.0,) * 5)).note
    )


HERE = measured.NOWHERE


def taken(line, window="a", energy=None):
    return measured.LineTaken(
        line, window, None, energy or Energy(3.6e6, 3.6e6, 3.6e6), 3600.0, 0.0
    )


@pytest.mark.parametrize(
    ("line", "cause", "boundary"),
    [
        ("gpu_wait", "save", "node"),
        ("loading", "failure", "node"),
        ("network", "save", "cluster"),
        ("storage_write", "save", "drive"),
    ],
)
def test_causes_and_boundaries_of_lines(line, cause, boundary):
    billed = measured._line(line, [taken(line)], measured.NOWHERE)
    found = line_part(billed, Rests(), "bounds", math.nan)
    assert (found["cause"], found["boundary"], found["ledger"]) == (cause, boundary, "marginal")


def test_nothing_and_something_unknown_is_unknown():
    nothing, known = Energy(0.0, 0.0, 0.0), Energy(3.6e6, 3.6e6, 3.6e6)
    for first, told in ((nothing, math.nan), (known, 1.0)):
        parts = [taken("slowdown", "a", first), taken("slowdown", "b", unknown("X"))]
        found = measured._line("slowdown", parts, HERE).amounts["energy"]
        assert found.value == pytest.approx(told, nan_ok=True)
        assert list(found.lacks) == ([] if math.isnan(told) else ["b"])


def test_a_sum_names_the_lines_of_which_a_save_is_unknown():
    lines = [
        measured._line("gpu_wait", [taken("gpu_wait"), taken("gpu_wait", "b", unknown("X"))], HERE),
        measured._line("storage_write", [taken("storage_write", "a", unknown("X"))], HERE),
    ]
    found = measured._sum(BY_ID["energy"], lines)
    assert (found.value, list(found.lacks)) == (1.0, ["storage_write", "gpu_wait"])
    none = measured._sum(BY_ID["energy"], lines[1:])
    assert math.isnan(none.value)
    assert list(none.lacks) == ["storage_write"]
