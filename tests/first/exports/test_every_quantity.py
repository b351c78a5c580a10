"""Every quantity is in every export that has room for it, and a further one needs no edit there."""

from __future__ import annotations

import pytest
from statements import document

from ckptcost.first.core.quantities import BY_ID, IN_DOCUMENTS
from ckptcost.first.exports import focus, metric_names, otlp, tables
from ckptcost.first.exports.formats import exported

EVERY = {q.id for q in IN_DOCUMENTS}
HEAT = BY_ID["energy"]._replace(id="waste_heat", label="waste heat")


def test_every_quantity_has_its_columns_and_metrics():
    assert set(tables.AMOUNTS) == set(focus.AMOUNTS) == set(metric_names.QUANTITIES) == EVERY
    assert {each.quantity for each in otlp.METRICS} == EVERY


@pytest.mark.parametrize("quantity", sorted(EVERY))
def test_every_quantity_is_written(quantity):
    made = document()
    text = {
        name: "".join(map(str, exported(made, name)[file]))
        for name, file in (
            ("prometheus", "ckptcost.prom"),
            ("otlp", "metrics.jsonl"),
            ("focus", "focus.csv"),
            ("datapackage", "README.md"),
        )
    }
    assert metric_names.QUANTITIES[quantity].family.sample + "{" in text["prometheus"]
    (metric,) = (each for each in otlp.METRICS if each.quantity == quantity)
    assert f'"name":"{metric.name}"' in text["otlp"]
    assert f"x_{focus.AMOUNTS[quantity]}Low" in text["focus"]
    assert f"`{tables.AMOUNTS[quantity][0]}`" in text["datapackage"]


def test_a_quantity_that_no_format_has_a_word_for_has_one_all_the_same(monkeypatch):
    counted = metric_names._counted_quantity(HEAT)
    assert counted.family.sample == "ckptcost_waste_heat_joules_total"
    assert (counted.scale, counted.family.help) == (3.6e6, "Waste heat, since the run began.")
    monkeypatch.setitem(metric_names.QUANTITIES, HEAT.id, counted)
    metric = otlp._metric_of(HEAT)
    assert (metric.name, metric.unit, metric.what) == ("ckptcost.waste_heat", "J", "Waste heat.")
    assert focus._focus_name(HEAT.id, HEAT.unit) == "WasteHeatKwh"
