"""Targets and budgets: what they mean, and what they refuse."""

from __future__ import annotations

import math

import pytest

from ckptcost.first.core.measures import MEASURES
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.gates import STATISTICS, check_gates, gate_of


@pytest.mark.parametrize(
    ("text", "name", "statistic", "limit"),
    [
        ("goodput>=0.95", "goodput", "", 0.95),
        ("goodput >= 95 %", "goodput", "", 0.95),
        ("goodput.p5>0.9", "goodput", "p5", 0.9),
        ("usd<=10000", "usd", "", 1e4),
        ("usd<=$10000", "usd", "", 1e4),
        ("kwh<=2000", "kwh", "", 2000 * 3.6e6),
        ("kwh<=2 MWh", "kwh", "", 2000 * 3.6e6),
        ("gpu_hours<5", "gpu_hours", "", 5 * 3600.0),
        ("gpu_hours<5 GPU-h", "gpu_hours", "", 5 * 3600.0),
        ("kgco2e<=12", "kgco2e", "", 12.0),
        ("kgco2e<=1.2 t", "kgco2e", "", 1200.0),
        ("wall<60 days", "wall", "", 60 * 86400.0),
        ("saves_per_day<=2400", "saves_per_day", "", 2400.0),
        ("failures.p95<=500", "failures", "p95", 500.0),
    ],
)
def test_what_a_target_means(text, name, statistic, limit):
    gate = gate_of(text, "--require")
    assert (gate.measure.id, gate.statistic) == (name, statistic)
    assert gate.limit == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("goodput>=1.2", "between 0 and 1"),
        ("goodput>=1", "between 0 and 1"),
        ("goodput>=0", "between 0 and 1"),
        ("usd<=-5", "negative"),
        ("usd<=nan", "number"),
        ("usd<=inf", "number"),
        ("usd<=1e999", "number"),
        ("usd<=", "number"),
        ("usd", "name>=value"),
        ("", "name>=value"),
        ("usd==3", "name>=value"),
        ("profit>=3", "known: goodput"),
        ("goodput.p99>=0.9", "p95"),
        ("wall<60", "unit"),
        ("kwh<=3 GB", "expected j"),
        ("usd<=10,000", "comma"),
        ("goodput>=" + "9" * 500, ""),
    ],
)
def test_what_is_refused(text, says):
    with pytest.raises(InputError, match="--budget") as error:
        gate_of(text, "--budget")
    assert says in str(error.value)
    assert len(str(error.value)) < 600


def test_the_edge_belongs_to_or_equal():
    for text, at, met in (
        ("usd<=5", 5.0, True),
        ("usd<5", 5.0, False),
        ("saves>=5", 5.0, True),
        ("saves>5", 5.0, False),
    ):
        assert gate_of(text, "x").holds(at) is met


def test_unknown_meets_nothing():
    for text in ("usd<=5", "usd>=5", "usd<5", "usd>5"):
        assert [v.met for v in check_gates([gate_of(text, "x")], lambda gate: math.nan)] == [False]


def test_every_measure_can_be_asked_for():
    units = {"s": "1 h", "j": "1", "gpu_s": "1", "usd": "1", "kgco2e": "1", "l": "1", "": "0.5"}
    for name, measure in MEASURES.items():
        for statistic in ("", *("." + each for each in STATISTICS)):
            assert gate_of(f"{name}{statistic}<={units[measure.unit]}", "x").measure is measure


def test_nothing_below_nothing_is_a_target():
    for text in ("usd<=-0.5", "kwh<=-1e-9", "wall<-1 ms"):
        with pytest.raises(InputError, match="negative"):
            gate_of(text, "--budget")
    assert gate_of("usd<=0", "--budget").limit == 0.0


def test_only_goodput_is_better_high():
    assert [name for name, measure in MEASURES.items() if measure.better == "high"] == ["goodput"]
