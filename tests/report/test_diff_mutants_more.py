"""More slips of a difference."""

from __future__ import annotations

import pytest
from differences import difference_of, report_of
from statements import quantity, statement

from ckptcost.report import diff_views
from ckptcost.report.canonical import sha256
from ckptcost.report.diff import delta_of
from ckptcost.report.diff_reasons import reasons_of
from ckptcost.report.difference import Amount, Change
from ckptcost.report.parts import Totals


def changed(s, **fields):
    return s.model_copy(update=fields)


def of_boundary(s, **fields):
    return changed(s, boundary=s.boundary.model_copy(update=fields))


def codes(past, current):
    return {each.code for each in reasons_of(past, current, delta_of(past, current).factors)}


def test_a_pue_that_is_not_in_the_energies_is_no_part_of_their_change():
    past, current = statement(), of_boundary(statement(), pue=1.3)
    assert "energy" in {s.quantity for s in delta_of(past, current).splits}
    for one, other in (
        (of_boundary(past, pue_included_in_energy=False), current),
        (past, of_boundary(current, pue_included_in_energy=False)),
    ):
        assert "energy" not in {s.quantity for s in delta_of(one, other).splits}


def dearer(s, price):
    lines = [c.model_copy(update={"unit_price": price}) if c.price_qty else c for c in s.components]
    return changed(
        s,
        components=lines,
        factors=[
            f.model_copy(update={"value": price / 3600}) if f.id == "cluster.gpu_price" else f
            for f in s.factors
        ],
    )


def test_a_dearer_gpu_hour_is_split_from_the_rest():
    past = statement()
    (split,) = [s for s in delta_of(past, dearer(past, 6.435)).splits if s.quantity == "cost"]
    assert [p.change for p in split.parts] == [pytest.approx(-3160.5), pytest.approx(3160.5)]


def test_gpu_time_without_a_price_of_its_own_cannot_be_split():
    past, current = statement(), dearer(statement(), 6.435)
    lines = [
        c.model_copy(update={"gpu_time_lost": quantity("gpu_time_lost", 5.0)})
        if c.id == "host_wait"
        else c
        for c in current.components
    ]
    assert "cost" not in {
        s.quantity for s in delta_of(past, changed(current, components=lines)).splits
    }


def test_a_line_that_is_in_no_sum_of_cost_pays_nothing_of_its_change():
    def without(s):
        lines = [
            c.model_copy(update={"cost": quantity("cost", None)}) if c.id == "redone_work" else c
            for c in s.components
        ]
        cost = s.totals.cost.model_copy(
            update={
                "value": s.totals.cost.value - 905.75,
                "excludes": ["storage_write", "redone_work"],
            }
        )
        return changed(s, components=lines, totals=s.totals.model_copy(update={"cost": cost}))

    past, current = without(statement()), without(dearer(statement(), 6.435))
    (split,) = [s for s in delta_of(past, current).splits if s.quantity == "cost"]
    assert split.parts[1].change == pytest.approx(3000.0)  # GPU-hours of the lines in the sum


def test_emissions_over_other_lines_than_the_energy_are_not_split():
    past, current = statement(), statement(grid=0.5)
    assert "emissions_location" in {s.quantity for s in delta_of(past, current).splits}
    sums = [
        s.totals.emissions_location.model_copy(update={"excludes": ["a"]}) for s in (past, current)
    ]
    less = [
        changed(s, totals=s.totals.model_copy(update={"emissions_location": q}))
        for s, q in zip((past, current), sums, strict=True)
    ]
    assert "emissions_location" not in {s.quantity for s in delta_of(*less).splits}


def test_what_stands_there_is_compared_where_both_have_it():
    past = statement()
    assert delta_of(past, past).allocated is not None
    for one, other in (
        (past, changed(past, allocated=None)),
        (changed(past, allocated=None), past),
    ):
        assert delta_of(one, other).allocated is None
    assert isinstance(past.allocated, Totals)


@pytest.mark.parametrize(("length_s", "said"), [(1005.0, False), (1030.0, True)])
def test_a_hundredth_of_the_length_is_the_same_length(length_s, said):
    past = changed(statement(dated=False), length_s=1000.0)
    assert ("LENGTH" in codes(past, changed(past, length_s=length_s))) is said


def test_another_boundary_of_a_line_without_energy_is_no_reason():
    past = statement((1.0, 0.0, 0.0, 0.0, 0.0))

    def moved(name):
        return changed(
            past,
            components=[
                c.model_copy(update={"boundary": "cluster"}) if c.id == name else c
                for c in past.components
            ],
        )

    assert "BOUNDARY_LEVEL" in codes(past, moved("gpu_wait"))
    assert "BOUNDARY_LEVEL" not in codes(past, moved("host_wait"))


def test_with_and_without_pue_are_different_things():
    past = statement()
    for fields in (
        {"pue_included_in_energy": False},
        {"pue_included_in_energy": False, "pue": None},
        {"pue": None},
    ):
        found = reasons_of(past, of_boundary(past, **fields), [])
        assert [(r.code, r.refuses) for r in found] == [("PUE_INCLUDED", True)]


def test_the_hash_is_over_what_the_document_says_it_is():
    found = report_of(difference_of(statement(), statement(grid=0.5)))
    plain = found.plain()
    apart = ("schema_name", "schema_version", "report_id", "generated_at", "tool")
    for name in (*apart, "reproducibility"):
        del plain[name]
    for side in ("past", "current"):
        for name in ("source", "generated_at", "tool_version", "result_sha256"):
            del plain["difference"][side][name]
    assert plain["difference"]["delta"]["totals"]["emissions_location"]["change"]
    assert found.reproducibility.result_sha256 == sha256(plain)


def test_changes_have_their_sign():
    def change(by):
        return Change(
            unit="kWh",
            before=Amount(value=2.0),
            after=Amount(value=2.0 + by),
            change=by,
            relative=by / 2,
            direction="more" if by > 0 else "less",
            ranges_overlap=None,
        )

    assert [diff_views.change_text(change(by)) for by in (1.0, -1.0)] == ["+1 kWh", "-1 kWh"]
    assert [diff_views.relative_text(change(by)) for by in (1.0, -1.0)] == ["+50 %", "-50 %"]


def test_one_reason_that_refuses_is_enough():
    past = statement()
    both = difference_of(past, of_boundary(changed(past, contracts=[]), counterfactual="x"))
    assert {r.refuses for r in both.incomparable_reasons} == {True, False}
    assert diff_views.verdict(both).startswith("NOT COMPARABLE.")
    assert diff_views.verdict(difference_of(past, changed(past, contracts=[]))).startswith(
        "Not like for like"
    )
    assert diff_views.verdict(difference_of(past, past)) == ""


def test_from_nothing_to_some_is_the_largest_change():
    past, current = (
        statement((0.0, 0.0, None, 0.0, 0.0), costs=(1.0, 0.0, None, 0.0, 0.0)),
        statement(costs=(100.0, 0.0, None, 0.0, 0.0)),
    )
    assert diff_views.headline(difference_of(past, current)).startswith("from nothing to some ")
