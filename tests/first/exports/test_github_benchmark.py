"""The array that github-action-benchmark takes: what its own reader of `customSmallerIsBetter` does
with it, and the figures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import statements
from hypothesis import given, settings
from statements import export_text, statement

from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement

BASE = {
    "kWh": ("energy", 3.6e6),
    "GPU-h": ("gpu_time_lost", 3600.0),
    "USD": ("cost", 1.0),
    "kgCO2e": ("emissions", 1000.0),
}
"""quantity and base units in it: J, GPU-s, USD, g"""
FIGURES = {
    "energy": "energy",
    "GPU time lost": "gpu_time_lost",
    "cost": "cost",
    "emissions, location-based": "emissions_location",
    "emissions, market-based": "emissions_market",
}


def text_of(document: Report) -> str:
    return "".join(str(piece) for piece in exported(document, "github-benchmark")["benchmark.json"])


def read(text: str) -> list[dict[str, Any]]:
    """As the action does: a list, of each the five fields; plus what its charts and its comparison
    need of them."""
    found = [
        {key: each.get(key) for key in ("name", "value", "unit", "range", "extra")}
        for each in json.loads(text)
    ]
    assert found, "No benchmark result was found"
    for each in found:
        assert isinstance(each["name"], str), "name"
        assert isinstance(each["value"], int | float), "value is no number"
        assert math.isfinite(each["value"]), "value is not finite"
        assert isinstance(each["unit"], str), "unit"
        assert isinstance(each["range"], str | None), "range is no text"
    assert len({each["name"] for each in found}) == len(found), "two points of one chart"
    return found


def check(document: Report, text: str) -> None:
    """Each known figure once a run and once a checkpoint, in the statement's amounts; raises where
    it is not so."""
    entries = {each["name"]: each for each in read(text)}
    for s in document.statements:
        saves = s.totals.checkpoints.value
        for label, what in FIGURES.items():
            quantity = getattr(s.totals, what)
            for suffix, over in (("", 1.0), (" per checkpoint", saves)):
                told = entries.pop(f"{name_of(document, s)}: {label}{suffix}", None)
                if quantity.value is None or not over:
                    assert told is None, f"{what} is not known"
                    continue
                assert told is not None, f"{what} is missing"
                unit, _, per = told["unit"].partition("/")
                assert (per == "checkpoint") == bool(suffix), "unit"
                base, factor = BASE[unit]
                assert what.startswith(base), "unit"
                assert math.isclose(
                    told["value"] * factor * over, quantity.value * factor, rel_tol=1e-9
                ), f"{what}: {told['value']} for {quantity.value}"
                ends = [
                    float(each)
                    for each in re.findall(r"[\d.e+-]+(?= to | \(|$)", told["range"] or "")
                ]
                assert ends == pytest.approx(
                    [each / over for each in (quantity.low, quantity.high) if each is not None],
                    rel=1e-9,
                ), "range"
                assert s.subject.run_id in told["extra"], "run"
                assert "method 2026.1" in told["extra"], "method"
                assert "memo_item" in told["extra"], "memo"
                assert all(each in told["extra"] for each in quantity.excludes), "excludes"
    assert not entries, "more than was stated"


def name_of(document: Report, s: Statement) -> str:
    """Without a run's id or date; the second of the same name has a number."""
    names = [
        "measured run" if each.kind == "measured" else each.subject.name
        for each in document.statements
    ]
    at = [each.id for each in document.statements].index(s.id)
    before = names[:at].count(names[at])
    return f"{names[at]} ({before + 1})" if before else names[at]


NASTY = '=1+1, "quoted" \n <b>é</b> \U0001f600'
GOOD: dict[str, Callable[[], Report]] = {
    "as made": statements.document,
    "undated": lambda: statements.document(statements.statement(dated=False)),
    "nasty": lambda: statements.document(statements.statement(name=NASTY)),
    "no grid, no price": lambda: statements.document(
        statements.statement(grid=None, market=None, costs=(None,) * 5)
    ),
    "zeros": lambda: statements.document(
        statements.statement((0.0,) * 5, gpu_hours=(0.0,) * 5, costs=(0.0,) * 5)
    ),
    "no checkpoint": lambda: statements.document(statements.statement(checkpoints=0.0)),
    "of one name": lambda: statements.document(
        statements.statement(run_id="a"), statements.statement(run_id="b", grid=0.05)
    ),
    "measured": lambda: statements.document(statements.statement(kind="measured")),
    "tiny and huge": lambda: statements.document(
        statements.statement((1e-300, 1e-9, None, 0.0, 0.0), costs=(1e12, *(None,) * 4))
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_written_is_what_is_stated(name: str) -> None:
    document = GOOD[name]()
    check(document, text_of(document))


@settings(max_examples=60)
@given(statements.documents())
def test_any_statement(document: Report) -> None:
    if all(
        getattr(s.totals, what).value is None
        for s in document.statements
        for what in FIGURES.values()
    ):
        with pytest.raises(InputError, match="refuses an empty list"):
            text_of(document)
        return
    check(document, text_of(document))


def edited(text: str, change: Callable[[list[dict[str, Any]]], object]) -> str:
    entries = json.loads(text)
    change(entries)
    return json.dumps(entries)


def swapped(entries: list[dict[str, Any]]) -> None:
    of = {each["name"].partition(": ")[2]: each for each in entries}
    location, market = of["emissions, location-based"], of["emissions, market-based"]
    location["value"], market["value"] = market["value"], location["value"]


BROKEN: dict[str, tuple[Callable[[list[dict[str, Any]]], object], str]] = {
    "x1000": (lambda entries: entries[0].update(value=entries[0]["value"] * 1000), "energy"),
    "dropped": (lambda entries: entries.pop(2), "missing"),
    "location and market swapped": (swapped, "emissions_location"),
    "kWh for MWh": (lambda entries: entries[0].update(value=entries[0]["value"] / 1000), "energy"),
    "other unit": (lambda entries: entries[0].update(unit="GPU-h"), "unit"),
    "text for a number": (lambda entries: entries[0].update(value="12 kWh"), "no number"),
    "nothing": (lambda entries: entries.clear(), "No benchmark result"),
    "one name twice": (lambda entries: entries.append(entries[0]), "two points"),
    "range of numbers": (lambda entries: entries[0].update(range=[1, 2]), "range is no text"),
    "other range": (lambda entries: entries[0].update(range="1.0 to 2.0 (p5-p95)"), "range"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_planted_slip_is_found(name: str) -> None:
    change, says = BROKEN[name]
    document = statements.document()
    with pytest.raises(AssertionError, match=says):
        check(document, edited(text_of(document), change))


def test_names_stay_from_run_to_run() -> None:
    first, second = (
        {
            each["name"]
            for each in read(
                text_of(
                    statements.document(
                        statements.statement(
                            run_id=run,
                            kind=kind,
                            name="run 2026 on host" if kind == "measured" else "a plan",
                        )
                    )
                )
            )
        }
        for run, kind in (("a", "measured"), ("b", "measured"))
    )
    assert first == second
    assert not any("2026" in name for name in first)


def test_low_high_and_open_ends() -> None:
    s = statements.statement()
    energy = s.totals.energy.model_copy(update={"high": None})
    told = read(
        text_of(
            statements.document(
                s.model_copy(update={"totals": s.totals.model_copy(update={"energy": energy})})
            )
        )
    )
    assert told[0]["range"] == "at least 2484.7875 (p5-p95)"
    assert "without" not in told[0]["extra"]
    assert "not in the sum, because unknown: storage_write" in told[0]["extra"]
    location = next(each for each in told if each["name"].endswith("location-based"))
    assert (
        "site.grid_location 383.5 g/kWh: Yearly electricity data (CC BY 4.0)" in location["extra"]
    )


def test_simulated_meters_are_told_and_the_standing_share_is_not_added() -> None:
    s = statements.statement().model_copy(update={"simulated": True})
    told = read(text_of(statements.document(s)))
    assert all(each["extra"].startswith("METERS WERE SIMULATED\n") for each in told)
    assert told[0]["value"] == s.totals.energy.value


def test_a_grid_zone_is_told_with_emissions_only():
    entries = {
        each["name"].rpartition(": ")[2]: each
        for each in json.loads(export_text(statement(), "github-benchmark"))
    }
    assert "grid zone USA" in entries["emissions, location-based"]["extra"]
    assert "grid zone" not in entries["energy"]["extra"]
    assert "grid zone" not in entries["cost"]["extra"]
    assert "memo_item" in entries["cost"]["extra"]
    assert "CC BY 4.0" in entries["emissions, location-based"]["extra"]
    per = entries["energy per checkpoint"]
    assert (per["value"] * 8, per["unit"]) == (
        pytest.approx(entries["energy"]["value"]),
        "kWh/checkpoint",
    )
