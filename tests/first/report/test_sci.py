"""The SCI section: a hand-computed score, agreement with the statement's sums, and what is not
declared."""

from __future__ import annotations

import pytest
import statements
from hypothesis import given, settings
from statements import factor, statement

from ckptcost.first.report import sci
from ckptcost.first.report.parts import FunctionalUnit

ZERO = (0.0, 0.0, 0.0, 0.0, 0.0)


def by_label(s):
    return {row.label: row for row in sci.rows(s)}


def total(s, what, **fields):
    return s.model_copy(
        update={
            "totals": s.totals.model_copy(
                update={what: getattr(s.totals, what).model_copy(update=fields)}
            )
        }
    )


def test_a_score_by_hand():
    """10 kWh at 400 g/kWh and 1.2 kg embodied over 8 checkpoints: (4,000 + 1,200) / 8 = 650 g
    each."""
    s = statement(
        (6.0, 4.0, 0.0, 0.0, 0.0),
        gpu_hours=(40.0, 0.0, 0.0, 0.0, 0.0),
        costs=ZERO,
        grid=0.4,
        dated=False,
    )
    s = total(s, "embodied", value=1.2, excludes=[])
    rows = by_label(s)
    assert rows["E, energy"][1:3] == (10.0, "kWh")
    assert rows["I, carbon intensity"].value == pytest.approx(400.0)
    assert rows["O = E * I"].value == pytest.approx(4000.0)
    assert rows["M, embodied"].value == pytest.approx(1200.0)
    assert rows["R, checkpoints"].value == 8.0
    assert rows["O per checkpoint"].value == pytest.approx(500.0)
    assert rows["SCI per checkpoint"].value == pytest.approx(650.0)
    assert (rows["SCI per checkpoint"].unit, rows["SCI per checkpoint"].note) == (
        "gCO2e per checkpoint",
        "",
    )


def check(s, found) -> None:
    """A score and the statement's sums agree; raises where they do not."""
    t = s.totals
    for score in found:
        if score.value is None:
            assert score.status
            assert not score.counted or None in (t.emissions_location.value, t.embodied.value)
            continue
        whole = score.value * score.counted
        assert whole == pytest.approx(
            1000 * (t.emissions_location.value + t.embodied.value), rel=1e-9
        )
        assert score.operational * score.counted == pytest.approx(
            1000 * t.emissions_location.value, rel=1e-9
        )
        if t.energy.value and {*t.energy.excludes} == {*t.emissions_location.excludes}:
            operational = t.energy.value * sci.intensity_g_per_kwh(s)
            assert operational == pytest.approx(1000 * t.emissions_location.value, rel=1e-9)


@settings(max_examples=60)
@given(statements.statements())
def test_of_any(s):
    check(s, sci.scores(s))
    assert all(row.label for row in sci.rows(s))
    market = s.totals.emissions_market.value
    assert by_label(
        total(s, "emissions_market", value=None if market is None else market * 7 + 1)
    ) == by_label(s)  # left out


@pytest.mark.parametrize("planted", ["x1000", "market", "embodied twice"])
def test_the_check_bites(planted):
    s = statement()
    (score,) = sci.scores(s)
    t = s.totals
    wrong = {
        "x1000": score.value / 1000,
        "market": 1000 * (t.emissions_market.value + t.embodied.value) / 8,
        "embodied twice": score.value + 1000 * t.embodied.value / 8,
    }
    with pytest.raises(AssertionError):
        check(s, [score._replace(value=wrong[planted])])


def test_no_m_is_not_an_m_of_zero():
    s = total(statement(), "embodied", value=None)
    rows = by_label(s)
    assert rows["SCI per checkpoint"].value is None
    assert "M not declared" in rows["SCI per checkpoint"].note
    assert rows["M_source"].value == "not declared"
    assert rows["M, embodied"][1:] == (None, "gCO2e", "not declared")
    assert rows["O per checkpoint"].value == pytest.approx(s.totals.emissions_location.value * 125)
    declared = by_label(total(statement(), "embodied", value=0.0))["SCI per checkpoint"]
    assert declared.value == pytest.approx(rows["O per checkpoint"].value)  # an M of 0 is one


def test_no_r_is_no_score():
    rows = by_label(statement().model_copy(update={"functional_units": []}))
    assert rows["SCI"].value is None
    assert rows["SCI"].note == "no functional unit is counted"
    assert (
        by_label(statement(checkpoints=0.0))["SCI per checkpoint"].note
        == "no checkpoint was counted: there is nothing to divide by"
    )


def test_no_grid_is_no_score():
    rows = by_label(statement(grid=None).model_copy(update={"factors": []}))
    assert rows["I, carbon intensity"].value is None
    assert "the grid's factor is not known" in rows["SCI per checkpoint"].note


def test_what_the_sum_lacks_is_said():
    assert by_label(statement())["SCI per checkpoint"].note == "without storage writing: not known"
    assert "without storage writing" in by_label(statement())["E, energy"].note


def test_no_energy_has_the_grids_own_intensity():
    assert sci.intensity_g_per_kwh(statement(ZERO, dated=False)) == pytest.approx(383.5)


def test_units_of_a_training():
    s = statement()
    s = s.model_copy(
        update={"subject": s.subject.model_copy(update={"tokens": 2e12, "parameters": 4e11})}
    )
    rows = by_label(s)
    assert rows["SCI per token"].value * 2e12 == pytest.approx(rows["SCI per checkpoint"].value * 8)
    assert rows["R, tokens"].note == "gross, as given"
    assert rows["SCI per parameter"].value * 4e11 == pytest.approx(
        rows["SCI per checkpoint"].value * 8
    )
    counted = s.model_copy(
        update={
            "functional_units": [
                FunctionalUnit(name="training_token", count=1e12),
                FunctionalUnit(name="FLOP", count=1e24),
            ]
        }
    )
    labels = [row.label for row in sci.rows(counted) if row.label.startswith("SCI per")]
    assert labels == ["SCI per training token", "SCI per FLOP", "SCI per parameter"]  # tokens once


def test_boundary_and_method_are_disclosed():
    rows = by_label(statement())
    assert rows["software boundary"].value == "GPUs waiting for saves"
    assert rows["not in it"].value == "storage writing (energy unknown)"
    assert "2026.1" in rows["method"].value
    assert rows["market-based"].value == "left out"
    assert "3.6 MJ" in rows["conversions"].value


def test_coefficients_in_the_templates_words():
    s = statement()
    more = [
        factor("cluster.gpu_embodied", 0.033 / 3600, "kgco2e_per_gpu_s", "33 g/GPU-h", "derived")
    ]
    found = {
        each.name: each
        for each in sci.coefficients(s.model_copy(update={"factors": [*s.factors, *more]}))
    }
    assert {each.method for each in found.values()} <= {"sourced", "measured", "modeled", "assumed"}
    assert (found["E"].method, found["site.pue"].method, found["I"].method) == (
        "modeled",
        "assumed",
        "sourced",
    )
    assert found["site.grid_location"].value == pytest.approx(383.5)
    assert found["site.grid_location"].unit == "gCO2e/kWh"
    assert found["cluster.gpu_embodied"].value == pytest.approx(33.0)
    assert found["I"].source == "Yearly electricity data"
    assert found["M"].source == "sourced: Yearly electricity data"
    assert found["R"].value == 8.0
    assert set(sci.WORDS.values()) == {"sourced", "measured", "modeled", "assumed"}


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
