"""More slips of statements and of what is told of them."""

from __future__ import annotations

import math

import pytest
from statements import document, quantity, statement

import ckptcost
from ckptcost.catalog.store import Catalog
from ckptcost.core.quantities import BY_ID
from ckptcost.core.reconcile import Energy, unknown
from ckptcost.jobs.model import one_of
from ckptcost.jobs.simulate import simulate
from ckptcost.jobs.walks import SimulationRequest
from ckptcost.layers import layers_for
from ckptcost.questions.statements import statement_document
from ckptcost.report import sci, statement_views
from ckptcost.report.parts import Warned
from ckptcost.report.statements import measured, modelled, simulated
from ckptcost.report.statements.bill import Rests, line_part
from ckptcost.report.statements.reading import Placing


@pytest.fixture(scope="module")
def catalog():
    return Catalog()


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
    settings = [
        "second_tier.id=generic-pfs",
        "policy.second_every=4",
        "third_tier.id=nas-hdd",
        "policy.third_every=5",
        "tier.id=local-nvme",
    ]
    found = simulate(
        one_of(catalog, layers_for(catalog, "small-8b", None, settings)), SimulationRequest(runs=5)
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
    for s, said in ((statement(rows=2), True), (alike, False), (statement(dated=False), False)):
        (row,) = [row for row in sci.rows(s) if row.label == "I, carbon intensity"]
        assert ("mean over the" in row.note) is said


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


@pytest.mark.parametrize(
    ("pue", "included", "said"),
    [
        (1.15, True, "PUE 1.15, included in the energies"),
        (1.15, False, "PUE 1.15, not included in the energies"),
        (None, False, "no PUE: energies as metered, not included in the energies"),
    ],
)
def test_the_boundary_in_words(pue, included, said):
    s = statement()
    s = s.model_copy(
        update={
            "boundary": s.boundary.model_copy(
                update={"pue": pue, "pue_included_in_energy": included}
            )
        }
    )
    assert statement_views.boundary_lines(s)[-1].endswith(said)
    assert said in " ".join(statement_views.text(document(s)).split())


# ---- lines of a recorded run


HERE = measured.NOWHERE


def taken(line, window="a", energy=None):
    return measured.Taken(line, window, None, energy or Energy(3.6e6, 3.6e6, 3.6e6), 3600.0, 0.0)


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
