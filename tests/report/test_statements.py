"""Statements against what they are made from: the report, the simulation, the comparison, the
run."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import pytest

import ckptcost
from ckptcost.catalog.store import Catalog
from ckptcost.errors import InputError, UnknownName
from ckptcost.jobs.measure import reviewed
from ckptcost.jobs.model import one_of
from ckptcost.jobs.simulate import simulate
from ckptcost.jobs.walks import SimulationRequest
from ckptcost.layers import layers_for
from ckptcost.questions.statements import statement_document
from ckptcost.report.schema_file import schema_text
from ckptcost.report.statement import QUANTITIES
from ckptcost.report.statements import measured, modelled, simulated
from ckptcost.report.statements.closed_form import place_of
from ckptcost.report.statements.reading import Placing, is_document

TRACE = Path(__file__).parents[2] / "data" / "traces" / "simulated-8gpu.jsonl"
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


def test_three_tiers_have_the_lines_of_all_three(catalog):
    settings = [
        "second_tier.id=generic-pfs",
        "policy.second_every=4",
        "third_tier.id=nas-hdd",
        "policy.third_every=5",
        "tier.id=local-nvme",
    ]
    found = simulate(
        one_of(catalog, layers_for(catalog, "small-8b", None, settings)), SimulationRequest(runs=40)
    )
    s = simulated.statement_of(found, catalog)
    assert {"storage_write", "second_storage_write", "third_storage_write"} <= {
        c.id for c in s.components
    }
    assert s.totals.gpu_time_lost.value * 3600 == pytest.approx(found.summary("gpu_hours").mean)
    sums(s)


def test_too_many_runs_have_no_lines(catalog, monkeypatch):
    from ckptcost.jobs import simulate as simulate_job

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
    from ckptcost.report.statement import utc

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
