"""Whatever is typed into whichever field: figures or a refusal, never a defect."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from ckptcost.first.errors import CkptcostError
from ckptcost.first.tui import fields
from ckptcost.first.tui.about_field import about_field
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import model_view as model
from ckptcost.first.tui.screens.model_runs import METRICS

NASTY = (
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "0 USD/GPU-h",
    "9" * 400,
    "\u00e9\u00bd \u202e\u2603",
    "",
)
DESKS = [
    Desk(base="small-8b"),
    Desk(base="llama31-405b-16k", tiers=("nas-hdd",)),
    Desk(tiers=("flash-shared",)),
]


def refused(desk, edits, sentences=False):
    """Why figures are refused, after all that a keystroke leads to; empty where they are not.
    Whatever else is raised is a defect."""
    try:
        for path, text in edits.items():
            desk = fields.put(desk, path, text)
        view = model.evaluate(desk)
        model.form(view, everything=True)
        model.command(view)
        if sentences:
            model.settled(view)
            about_field(desk, "cluster.gpu_price", view.resolved)
    except CkptcostError as error:
        return fields.reason(error)
    return ""


@pytest.mark.parametrize("desk", DESKS, ids=[desk.base for desk in DESKS])
def test_no_text_in_any_field_is_a_defect(desk):
    metrics, paths = (
        itertools.cycle(METRICS),
        [each.path for each in model.form(model.evaluate(desk), everything=True)],
    )
    said = [
        refused(replace(desk, metric=next(metrics)), {path: text})
        for path in paths
        for text in NASTY
    ]
    assert len(paths) > 70
    assert max(len(each) for each in said) <= 200
    assert min(said.count(""), len(said) - said.count("")) > 100


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("desk", DESKS, ids=[desk.base for desk in DESKS])
def test_what_costs_nothing_is_no_defect_in_any_metric(desk, metric):
    """One price or power alone, and all at once, where a best interval is asked for as well."""
    free = {
        "cluster.gpu_price": "0",
        "site.tariff": "0",
        "cluster.gpu_train": "0",
        "cluster.host_train": "0",
    }
    best = {"policy.optimal": METRICS[metric].objective}
    tried = [
        *({path: text} for path, text in free.items()),
        free,
        {**free, **best},
        {"cluster.gpu_price": "0", **best},
        {"failures.rate": "0"},
    ]
    said = [refused(replace(desk, metric=metric), edits, sentences=True) for edits in tried]
    assert said[0] == ""
    assert all(len(each) <= 200 for each in said)


def test_sums_that_cannot_be_done_are_refusals_in_words():
    for error in (
        ZeroDivisionError("float division by zero"),
        OverflowError("too large"),
        ValueError("math domain error"),
    ):
        assert isinstance(error, fields.REFUSALS)
        assert fields.reason(error) == f"cannot be computed with this ({error})"
