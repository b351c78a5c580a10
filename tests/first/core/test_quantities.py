"""The one table of what is counted: every place that holds a number of each has the same ones."""

from __future__ import annotations

from dataclasses import fields

import pytest

from ckptcost.first.core.bill import Line
from ckptcost.first.core.measures import MEASURES
from ckptcost.first.core.quantities import DERIVED, FIELDS, IN_DOCUMENTS, QUANTITIES, in_order
from ckptcost.first.core.units import UNITS, parse
from ckptcost.first.fleet import lines
from ckptcost.first.report.difference import Changes
from ckptcost.first.report.parts import Component, Totals
from ckptcost.first.report.rows import COLUMNS
from ckptcost.first.report.statement import Series


def test_what_holds_a_number_of_each_has_all_of_them_in_order():
    assert Line._fields[-len(FIELDS) :] == FIELDS
    assert tuple(field.name for field in fields(lines.OfEachQuantity)) == FIELDS
    for held in (lines.CellLine, lines.FleetLine, lines.FleetTotals):
        assert issubclass(held, lines.OfEachQuantity)
    ids = [q.id for q in IN_DOCUMENTS]
    for model in (Totals, Changes):
        assert list(model.model_fields) == ids
    assert [name for name in Component.model_fields if name in ids] == ids


def test_what_follows_from_others_comes_last():
    assert [q.derived for q in QUANTITIES][-len(DERIVED) :] == list(DERIVED)
    assert {d.of for d in DERIVED} <= {q.id for q in QUANTITIES if q.metered}


@pytest.mark.parametrize("q", QUANTITIES, ids=lambda q: q.id)
def test_its_names_are_known_where_they_are_used(q):
    assert q.base in UNITS
    assert q.people(parse(f"1 {q.unit}", q.base)) == pytest.approx(1.0)
    assert (MEASURES[q.measure].label, MEASURES[q.measure].unit) == (q.added, q.base)
    assert f"run_{q.column}" in COLUMNS
    assert any(name.endswith(q.column) for name in Series.model_fields)


def test_no_two_share_a_name():
    for name in ("id", "field", "measure", "column", "label", "added", "header"):
        assert len({getattr(q, name) for q in QUANTITIES}) == len(QUANTITIES), name
    assert sorted(in_order("cost"), key=QUANTITIES.index) == list(QUANTITIES)
