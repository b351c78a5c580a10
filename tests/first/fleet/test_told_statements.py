"""Each job of a fleet as a statement: sums are sums, days are days, figures are the planned ones,
and every export takes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from math import fsum, inf, nan
from typing import Any

import jsonschema
import pytest
from fleet_truth import Truth
from fleet_with_truth import fleet_with_truth
from statements import document_of

from ckptcost.first import api
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.exports.formats import FORMATS, exported
from ckptcost.first.fleet.answer import FleetQuestion, answer_of
from ckptcost.first.fleet.figures import fleet_of
from ckptcost.first.fleet.lines import LINES
from ckptcost.first.fleet.statements import statements_of
from ckptcost.first.questions.statements import standing
from ckptcost.first.report.schema_file import schema_text
from ckptcost.first.report.statement import QUANTITIES, Statement, utc
from ckptcost.first.report.statements.run_lines import without_prices
from ckptcost.first.scenario import Resolved

DAY, NEXT = "2026-11-02", "2026-11-03"
HERE = (
    "site.pue=1.25",
    "site.tariff=0.1 USD/kWh",
    "site.grid_location=400 g/kWh",
    "site.grid_market=200 g/kWh",
    "site.water=1.8 L/kWh",
    "cluster.gpu_price=2 USD/GPU-h",
    "cluster.gpu_embodied=50 g/GPU-h",
    "cluster.price_includes_electricity=false",
)
COLUMNS = {
    "energy": "energy_kwh",
    "emissions_location": "emissions_location_kgco2e",
    "emissions_market": "emissions_market_kgco2e",
    "embodied": "embodied_kgco2e",
    "gpu_time_lost": "gpu_hours",
    "cost": "cost_usd",
    "water": "water_l",
}
TOOL = {
    "name": "ckptcost",
    "version": "0.1.0",
    "command": ["ckptcost", "fleet"],
    "method_version": "2026.1",
}


def here(*more: str) -> Resolved:
    return standing(Catalog(), None, (*HERE, *more), "")


def bills_of(made: Any, resolved: Resolved | None = None, priced: bool = True) -> list[Statement]:
    part = made.part()
    s = (
        None
        if resolved is None
        else resolved.scenario
        if priced
        else without_prices(resolved.scenario)
    )
    return statements_of(part, fleet_of(part, "team", s), resolved, priced, Catalog())


def summed(values: Iterable[float | None]) -> float:
    return fsum(value for value in values if value is not None)


def component(bill: Statement, name: str) -> Any:
    return next(each for each in bill.components if each.id == name)


# ---- by hand


def two_days(written: Callable[[], Any]) -> Any:
    """One node, from 12:00 to 12:00 the next day; two saves on the first day and one on the next,
    by which the first costs 3 kWh."""
    made = written()
    began_ns, ended_ns = made.instant(43_200), made.instant(43_200, NEXT)
    for day in (DAY, NEXT):
        made.head(
            day=day,
            run_began_ns=began_ns,
            began_ns=began_ns if day == DAY else made.instant(0, NEXT),
            until_ns=made.instant(0, NEXT) if day == DAY else ended_ns,
            covered_s=21_600.0,
            gpu_total_j=3.6e7,
            host_total_j=1.8e7 if day == DAY else nan,
            labels='{"team": "blue", "tier": "pfs", "project": "x"}',
        ).node(day=day, windows=2)
    made.window(at_s=50_000, own_gpu_s=3600.0, gpu=(3.6e6, 1.8e6, 5.4e6), storage=3.6e5)
    made.window(at_s=60_000, own_gpu_s=3600.0, gpu=(7.2e6, 5.4e6, 9.0e6))
    made.window(day=NEXT, at_s=10_000, own_gpu_s=7200.0, gpu=3.6e6)
    return made.window(day=NEXT, at_s=20_000, load=True, own_gpu_s=1800.0, gpu=3.6e6)


def test_a_statement_by_hand(written: Callable[[], Any]) -> None:
    (bill,) = bills_of(two_days(written), here())
    assert (bill.id, bill.kind, bill.simulated) == ("urn:ckptcost:fleet:a", "mixed", True)
    assert bill.how == "recordings of 1 nodes, merged, simulated or made up"
    assert (utc(bill.period_start or "").isoformat(), bill.length_s) == (
        "2026-11-02T12:00:00+00:00",
        86_400.0,
    )
    assert utc(bill.period_end or "").isoformat() == "2026-11-03T12:00:00+00:00"
    subject = bill.subject
    assert (subject.name, subject.accelerator_count, subject.nodes) == ("job a", 8.0, 1.0)
    assert (subject.team, subject.tier, subject.cluster, subject.tags) == (
        "blue",
        "pfs",
        None,
        {"project": "x"},
    )
    wait = component(bill, "gpu_wait")
    assert (wait.label, wait.cause, wait.boundary, wait.basis) == (
        "GPUs waiting for saves",
        "save",
        "node",
        "measured",
    )
    assert (wait.energy.value, wait.energy.low, wait.energy.high) == (
        pytest.approx(5.0),
        pytest.approx(3.75),
        pytest.approx(6.25),
    )
    assert wait.energy.interval == "bounds"
    assert (wait.gpu_time_lost.value, wait.gpu_time_lost.low) == (4.0, None)
    assert (wait.cost.value, wait.emissions_location.value) == (
        pytest.approx(8.5),
        pytest.approx(2.0),
    )
    assert (wait.emissions_market.value, wait.embodied.value) == (
        pytest.approx(1.0),
        pytest.approx(0.2),
    )
    assert (wait.price_qty, wait.price_unit, wait.unit_price) == (4.0, "GPU-h", 2.0)
    load = component(bill, "loading")
    assert (load.cause, load.gpu_time_lost.value, load.energy.value) == (
        "failure",
        0.5,
        pytest.approx(1.25),
    )
    assert component(bill, "host_wait").price_qty is None
    totals = bill.totals
    assert (totals.energy.value, totals.energy.low, totals.gpu_time_lost.value) == (
        pytest.approx(6.375),
        pytest.approx(5.125),
        4.5,
    )
    assert totals.checkpoints.value == bill.functional_units[0].count == 3.0
    assert (totals.energy.basis, totals.cost.basis) == ("measured", "modelled")
    assert (bill.rests_of(totals.energy), bill.rests_of(totals.cost)) == (
        ["site.pue"],
        ["cluster.gpu_price", "site.pue", "site.tariff"],
    )
    gpus, hosts = bill.measurements
    assert (gpus.id, gpus.energy_kwh, gpus.coverage) == ("gpus", 20.0, 0.5)
    assert (hosts.id, hosts.energy_kwh, gpus.instrument) == ("hosts", 5.0, "meters of 1 nodes")
    assert (bill.boundary.pue, bill.boundary.pue_included_in_energy, bill.warnings) == (
        1.25,
        True,
        [],
    )
    assert "GPUs waiting for saves" in bill.boundary.included
    assert [each.component for each in bill.boundary.excluded] == [
        "useful training",
        "keeping the bytes, network to storage, requests",
    ]
    assert [each.id for each in bill.components] == list(LINES)
    none = component(bill, "restart")
    assert {getattr(none, what).value for what in QUANTITIES} == {0.0}
    assert (none.cause, none.basis, component(bill, "redone_work").basis) == (
        "failure",
        "measured",
        "modelled",
    )


def test_each_day_has_its_own(written: Callable[[], Any]) -> None:
    (bill,) = bills_of(two_days(written), here())
    series = bill.series
    assert series is not None
    assert series.width_s == 86_400.0
    mine = [at for at, name in enumerate(series.component) if name == "gpu_wait"]
    assert [(series.start[at][:13], series.duration_s[at]) for at in mine] == [
        ("2026-11-02T12", 43_200.0),
        ("2026-11-03T00", 43_200.0),
    ]
    assert [series.energy_kwh[at] for at in mine] == [pytest.approx(3.75), pytest.approx(1.25)]
    assert [series.gpu_hours[at] for at in mine] == [pytest.approx(2.0), pytest.approx(2.0)]
    assert [series.cost_usd[at] for at in mine] == [pytest.approx(4.375), pytest.approx(4.125)]
    assert [series.checkpoints[at] for at in mine] == [2.0, 1.0]
    assert fsum(series.checkpoints) == 3.0
    assert [
        series.energy_kwh[at] for at, name in enumerate(series.component) if name == "loading"
    ] == [pytest.approx(1.25)]
    assert {(series.grid_kgco2e_per_kwh[at], series.market_kgco2e_per_kwh[at]) for at in mine} == {
        (0.4, 0.2)
    }


def test_what_is_estimated_is_told_as_modelled(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head(simulated=False, nodes=2, gpus=nan)
        .node(own_gpu_s=3600.0, gpu=3.6e6, gpu_j=3.6e6)
        .window(own_gpu_s=3600.0, gpu=3.6e6)
    )
    (bill,) = bills_of(made)
    assert (bill.kind, bill.how, bill.simulated) == (
        "mixed",
        "recordings of 1 nodes, merged",
        False,
    )
    assert (bill.subject.nodes, bill.subject.accelerator_count) == (2.0, None)
    lacking = component(bill, "missing_nodes")
    assert (lacking.basis, lacking.energy.basis, lacking.energy.value, lacking.energy.high) == (
        "modelled",
        "modelled",
        1.0,
        None,
    )
    assert (component(bill, "gpu_wait").energy.basis, bill.totals.energy.basis) == (
        "measured",
        "modelled",
    )
    assert (bill.boundary.pue, bill.boundary.pue_included_in_energy) == (None, False)
    assert [(warning.code) for warning in bill.warnings] == ["NO_SITE"]
    assert component(bill, "storage_write").boundary == "drive"
    assert (component(bill, "gpu_wait").cost.value, component(bill, "gpu_wait").price_qty) == (
        None,
        None,
    )


def test_what_is_not_known_is_null_and_told(written: Callable[[], Any]) -> None:
    made = written().head(simulated=False).node(windows=3)
    made.window(gpu=3.6e6, host=nan).window(at_s=60, gpu=nan, host=nan).window(
        at_s=120, gpu=3.6e6, host=nan
    )
    (bill,) = bills_of(made, here())
    wait, host = component(bill, "gpu_wait"), component(bill, "host_wait")
    assert (wait.energy.value, wait.energy.excludes) == (
        pytest.approx(2.5),
        ["1 of 3 windows of nodes, or runs"],
    )
    assert (host.energy.value, host.energy.excludes, host.cost.value) == (None, [], None)
    assert "hosts waiting for saves" in [each.component for each in bill.boundary.excluded]
    assert "hosts waiting for saves" not in bill.boundary.included
    (unknown,) = [warning for warning in bill.warnings if warning.code == "UNKNOWN"]
    assert (
        unknown.message
        == "Energy not known, or not of all: GPUs waiting for saves, hosts waiting for saves."
    )
    assert bill.totals.energy.excludes == ["gpu_wait", "host_wait"]


def test_a_job_of_which_no_instant_is_known_has_none(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head()
        .node()
        .window()
        .head("b", "r2", began_ns=0)
        .node("b", "r2")
        .window("b", "r2")
    )
    assert [bill.subject.name for bill in bills_of(made)] == ["job a"]


def test_a_site_without_prices(written: Callable[[], Any]) -> None:
    (bill,) = bills_of(two_days(written), here(), priced=False)
    assert {factor.id for factor in bill.factors} >= {
        "site.pue",
        "site.tariff",
        "site.grid_location",
    }
    assert not [factor.id for factor in bill.factors if not factor.id.startswith("site.")]
    assert component(bill, "gpu_wait").cost.value is None
    assert component(bill, "storage_write").cost.value == pytest.approx(0.0125)
    (priced,) = bills_of(two_days(written), here())
    assert {factor.id for factor in priced.factors if not factor.id.startswith("site.")} == {
        "cluster.gpu_price",
        "cluster.gpu_embodied",
    }
    assert "cluster.price_includes_electricity" in priced.choices
    assert all(
        key.startswith("site.") or key == "cluster.price_includes_electricity"
        for key in priced.choices
    )
    (dark,) = bills_of(two_days(written))
    assert (dark.factors, dark.choices, dark.totals.cost.value) == ([], {}, None)


# ---- a store with known truth


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Truth]:
    folder = str(tmp_path_factory.mktemp("bills") / "fleet")
    return folder, fleet_with_truth(
        16, 2, folder, saves_per_day=24.0, failures_per_node_day=0.2, faults=False
    )


@pytest.fixture(scope="module")
def bills(made: tuple[str, Truth]) -> Sequence[Statement]:
    study = answer_of(FleetQuestion(made[0], resolved=here(), by="team"))
    assert study.bills is not None
    return study.bills(Catalog())


def test_there_is_one_for_each_job_with_its_planned_figures(
    made: tuple[str, Truth], bills: Sequence[Statement]
) -> None:
    truth = made[1]
    assert [bill.subject.name for bill in bills] == [
        f"job {job.job}" for job in sorted(truth.jobs, key=lambda job: job.job)
    ]
    for bill, job in zip(bills, sorted(truth.jobs, key=lambda job: job.job), strict=True):
        assert component(bill, "gpu_wait").gpu_time_lost.value == pytest.approx(
            job.saves.own_gpu_s / 3600
        )
        assert component(bill, "gpu_wait").energy.value == pytest.approx(
            1.25 * job.saves.gpu_j / 3.6e6
        )
        assert bill.totals.checkpoints.value == job.saves.windows
        assert bill.length_s == pytest.approx(job.exposure_s + job.down_s, abs=0.01)
        said = {
            "team": bill.subject.team,
            "tier": bill.subject.tier,
            "cluster": bill.subject.cluster,
            **bill.subject.tags,
        }
        assert said == job.labels
        assert bill.subject.accelerator_count == job.gpus * len(job.hosts)
        assert bill.measurements[0].energy_kwh == pytest.approx(job.gpu_total_j / 3.6e6)
        assert bill.measurements[1].energy_kwh == pytest.approx(job.host_total_j / 3.6e6)


def test_totals_are_sums_of_lines_and_lines_are_sums_of_days(bills: Sequence[Statement]) -> None:
    for bill in bills:
        assert bill.series is not None
        for what in QUANTITIES:
            parts = [getattr(each, what).value for each in bill.components]
            total = getattr(bill.totals, what)
            assert total.value is None or total.value == pytest.approx(summed(parts))
            assert total.low is None or total.low <= total.value
            assert total.high is None or total.value <= total.high
            rows = getattr(bill.series, COLUMNS[what])
            for each in bill.components:
                quantity = getattr(each, what)
                mine = [
                    value
                    for value, name in zip(rows, bill.series.component, strict=True)
                    if name == each.id
                ]
                if any(value is not None for value in mine):
                    assert summed(mine) == pytest.approx(quantity.value), (bill.id, each.id, what)
                else:
                    assert not quantity.value
                if quantity.low is not None and quantity.high is not None:
                    assert quantity.low <= quantity.value <= quantity.high
        assert fsum(bill.series.checkpoints) == bill.totals.checkpoints.value
        assert all(row.startswith(("2026-11-02", "2026-11-03")) for row in bill.series.start)


def test_statements_and_groups_are_the_same_sums(
    made: tuple[str, Truth], bills: Sequence[Statement]
) -> None:
    study = answer_of(FleetQuestion(made[0], resolved=here()))
    rows = {row["name"]: row for row in study.tables[0].rows}
    names = {
        "energy": "kwh",
        "emissions_location": "kgco2e",
        "emissions_market": "market_kgco2e",
        "embodied": "embodied_kgco2e",
        "gpu_time_lost": "gpu_hours",
        "cost": "usd",
        "water": "water_l",
    }
    for bill in bills:
        row = rows[bill.subject.name.removeprefix("job ")]
        for what, name in names.items():
            assert getattr(bill.totals, what).value == pytest.approx(row[name])
    for what, name in names.items():
        assert summed(getattr(bill.totals, what).value for bill in bills) == pytest.approx(
            rows["all"][name]
        )


def read_back(name: str, files: dict[str, Any]) -> float | None:
    """Energy in kWh, where the format says it in a way that is read in a line."""
    if name == "statement":
        return summed(
            s["totals"]["energy"]["value"]
            for s in json.loads(files["statement.json"])["statements"]
        )
    if name == "prometheus":
        lines = [
            line
            for line in files["ckptcost.prom"].splitlines()
            if line.startswith("ckptcost_energy_joules_total{")
        ]
        return fsum(float(line.rsplit(" ", 1)[1]) for line in lines) / 3.6e6
    return None


@pytest.mark.parametrize(
    "name", sorted(FORMATS.keys() - {"model-card"})
)  # which is of a whole training's energy alone
def test_every_export_takes_it(
    bills: Sequence[Statement], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "SOURCE_DATE_EPOCH", "1830000000"
    )  # some readers take no costs of days to come
    if name == "parquet":
        pytest.importorskip("pyarrow")
    if name == "boamps":  # one report a file
        bills = bills[:1]
    document = document_of(list(bills), "2027-01-01T00:00:00Z", TOOL)
    files = {
        key: value if isinstance(value, bytes) else "".join(value)
        for key, value in exported(document, name).items()
    }
    assert files
    assert all(files.values())
    found = read_back(name, files)
    if found is not None:
        assert found == pytest.approx(summed(bill.totals.energy.value for bill in bills))
    if name == "statement":
        jsonschema.validate(json.loads(files["statement.json"]), json.loads(schema_text()))


def test_a_model_card_is_not_made_of_what_was_added(bills: Sequence[Statement]) -> None:
    document = document_of(list(bills[:1]), "2027-01-01T00:00:00Z", TOOL)
    text = "".join(str(piece) for piece in exported(document, "model-card")["model-card.md"])
    assert "co2_eq_emissions" not in text
    assert "of the whole run: not known" in text


def test_a_fleets_json_is_exported_as_its_statements_are(
    made: tuple[str, Truth], tmp_path: Any, bills: Sequence[Statement]
) -> None:
    file = tmp_path / "fleet.json"
    file.write_text(api.roll_up(made[0], changes=HERE).to_json(), "utf-8")
    (text,) = api.export(file, "statement").values()
    said = json.loads(text)["statements"]
    assert [s["totals"]["energy"]["value"] for s in said] == pytest.approx(
        [bill.totals.energy.value for bill in bills]
    )
    assert [s["subject"]["name"] for s in said] == [bill.subject.name for bill in bills]


def test_ends_without_bound_are_no_numbers(written: Callable[[], Any]) -> None:
    made = written().head().node().window(gpu=(3.6e6, -inf, inf), own_gpu_s=3600.0)
    (bill,) = bills_of(made, here())
    wait = component(bill, "gpu_wait")
    assert (wait.energy.low, wait.energy.high, wait.energy.value) == (
        None,
        None,
        pytest.approx(1.25),
    )
