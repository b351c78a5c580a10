"""The score of the SCI standard (ISO/IEC 21031:2024) from a statement's totals: ((E * I) + M) per
R, and all it asks to be disclosed.

I is location-based: the standard leaves market-based measures out. What is not declared stays null:
no M is not an M of 0, and no R is no R of 1. The score is that of the checkpoints, which are a part
of a training; it is no score of the training itself.
"""

from __future__ import annotations

from typing import NamedTuple

from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.present.amounts import between, number
from ckptcost.first.report.parts import Factor, Quantity
from ckptcost.first.report.statement import Statement

G_PER_KG = 1000.0
WORDS = {"measured": "measured", "modelled": "modeled", "sourced": "sourced", "assumed": "assumed"}
"""a basis, as the report template of the Green Software Foundation spells it"""
GROSS = {"token": "gross, as given", "parameter": "gross, as given"}
"""units of the standard's rules for AI, and how the count is to be read"""


class Score(NamedTuple):
    """The score for one functional unit, gCO2e each."""

    unit: str
    counted: float | None
    value: float | None
    operational: float | None
    """of E * I alone, known also where M is not"""
    status: str
    """why there is no score, or what it lacks; empty: complete"""
    note: str = ""


class ScoreRow(NamedTuple):
    label: str
    value: float | str | None
    """null = unknown"""
    unit: str = ""
    note: str = ""


class Coefficient(NamedTuple):
    """A line of the template's table."""

    name: str
    description: str
    value: float | None
    unit: str
    source: str
    method: str
    """sourced, measured, modeled or assumed"""


def intensity_g_per_kwh(statement: Statement) -> float | None:
    """I: mean over the energy and its hours; the grid's own factor where there is no energy to take
    a mean over."""
    energy, operational = statement.totals.energy, statement.totals.emissions_location
    if (
        energy.value
        and operational.value is not None
        and {*energy.excludes} == {*operational.excludes}
    ):
        return operational.value * G_PER_KG / energy.value
    grid = _factor(statement, "site.grid_location")
    return None if grid is None or grid.value is None else grid.value * KWH_J * G_PER_KG


def scores(statement: Statement) -> list[Score]:
    """One for each functional unit that is counted; one without a value where none is.

    Sums are taken as the statement has them: a line it leaves out because it is unknown is missing
    here too, and the status says so.
    """
    found = [_score(statement, name, count, note) for name, count, note in units(statement)]
    return found or [_score(statement, "", None, "")]


def units(statement: Statement) -> list[tuple[str, float | None, str]]:
    """(name, count, how it is counted): the statement's functional units, then the model's tokens
    and parameters where they are given."""
    found: list[tuple[str, float | None, str]] = [
        (unit.name, unit.count, "") for unit in statement.functional_units
    ]
    names = " ".join(name for name, _, _ in found)
    for name, count in (
        ("token", statement.subject.tokens),
        ("parameter", statement.subject.parameters),
    ):
        if count is not None and name not in names:
            found.append((name, count, GROSS[name]))
    return found


def _score(statement: Statement, unit: str, count: float | None, note: str) -> Score:
    o, m = (_grams(q) for q in (statement.totals.emissions_location, statement.totals.embodied))
    each = o / count if o is not None and count else None
    value = each + m / count if each is not None and m is not None and count else None
    lacks = (
        _reasons_without_score(statement, unit, count) if value is None else _left_out(statement)
    )
    return Score(unit, count, value, each, "; ".join(lacks), note)


def _reasons_without_score(statement: Statement, unit: str, count: float | None) -> list[str]:
    """Why there is no score."""
    t, said = statement.totals, []
    if count is None:
        said.append("no functional unit is counted")
    elif not count:
        said.append(f"no {unit} was counted: there is nothing to divide by")
    if t.energy.value is None:
        said.append("the energy is not known")
    elif t.emissions_location.value is None:
        said.append("the grid's factor is not known")
    if t.embodied.value is None:
        said.append("M not declared")
    return said


def _left_out(statement: Statement) -> list[str]:
    t = statement.totals
    ids = sorted({*t.emissions_location.excludes, *t.embodied.excludes})
    return [f"without {statement.labels_of(ids)}: not known"] if ids else []


def rows(statement: Statement) -> list[ScoreRow]:
    """The section, line by line, for any view."""
    t = statement.totals

    def row(label: str, value: float | None, unit: str, q: Quantity, about: str) -> ScoreRow:
        return ScoreRow(label, value, unit, _quantity_text(statement, q, about))

    o, m, share = t.emissions_location, t.embodied, "share of the GPU time lost, no other hardware"
    intensity = intensity_g_per_kwh(statement)
    found = [
        row("E, energy", t.energy.value, "kWh", t.energy, _pue_words(statement)),
        ScoreRow("I, carbon intensity", intensity, "gCO2e/kWh", _intensity_note(statement)),
        row("O = E * I", _grams(o), "gCO2e", o, "location-based"),
        row("M, embodied", _grams(m), "gCO2e", m, share),
        ScoreRow("M_source", m_source(statement)),
    ]
    for score in scores(statement):
        found += _score_rows(score)
    return [*found, *_disclosure_rows(statement)]


def _pue_words(statement: Statement) -> str:
    b = statement.boundary
    if not b.pue_included_in_energy:
        return "PUE not included"
    return f"PUE of {number(b.pue)} included" if b.pue else "PUE included"


def _score_rows(score: Score) -> list[ScoreRow]:
    name = score.unit.replace("_", " ")
    if not name:
        return [
            ScoreRow("R, functional units", score.counted, "", score.note or score.status),
            ScoreRow("SCI", score.value, "gCO2e", score.status),
        ]
    unit = f"gCO2e per {name}"
    return [
        ScoreRow(f"R, {name}s", score.counted, "", score.note),
        ScoreRow(f"O per {name}", score.operational, unit, "without M: no score"),
        ScoreRow(f"SCI per {name}", score.value, unit, score.status),
    ]


def m_source(statement: Statement) -> str:
    if statement.totals.embodied.value is None:
        return "not declared"
    factor = _factor(statement, "cluster.gpu_embodied")
    return (
        WORDS[statement.totals.embodied.basis]
        if factor is None
        else f"{_method(factor)}: {_source(factor)}"
    )


def _disclosure_rows(statement: Statement) -> list[ScoreRow]:
    """Boundary, method and what the rules for AI ask."""
    b = statement.boundary
    inside = ", ".join(b.included) or "nothing"
    out = ", ".join(f"{each.component} ({each.reason})" for each in b.excluded) or "nothing"
    method = f"{statement.how}, method {statement.method_version}"
    told = [
        ("software boundary", inside, f"against {b.counterfactual}"),
        ("not in it", out, ""),
        ("method", method, WORDS.get(statement.kind, statement.kind)),
        (
            "market-based",
            "left out",
            "the standard takes location-based intensity; see Scope 2 for both",
        ),
        (
            "SCI for AI",
            "a part of the training's score",
            "checkpoints, failures and work done again belong to it; its R is a FLOP, token or"
            " parameter, gross or effective",
        ),
        ("conversions", "1 kWh = 3.6 MJ, 1 kg = 1,000 g", ""),
    ]
    return [ScoreRow(label, value, note=note) for label, value, note in told]


def coefficients(statement: Statement) -> list[Coefficient]:
    """E, I, M and R as the template wants them, then PUE and the carbon factors. The other factors
    that E rests on are the statement's."""
    t = statement.totals
    grid = _factor(statement, "site.grid_location")
    found = [
        Coefficient(
            "E",
            "energy, facility included as the boundary says",
            t.energy.value,
            "kWh",
            statement.how,
            WORDS[t.energy.basis],
        ),
        Coefficient(
            "I",
            "location-based carbon intensity, mean over the energy",
            intensity_g_per_kwh(statement),
            "gCO2e/kWh",
            _source(grid),
            _method(grid),
        ),
        Coefficient(
            "M",
            "embodied carbon of the GPU time lost",
            _grams(t.embodied),
            "gCO2e",
            m_source(statement),
            WORDS[t.embodied.basis],
        ),
        *(
            Coefficient("R", f"{name}s", n, "", note or statement.how, WORDS[t.checkpoints.basis])
            for name, n, note in units(statement)
        ),
    ]
    used = {
        *(
            name
            for q in (t.energy, t.emissions_location, t.embodied)
            for name in statement.rests_of(q)
        ),
        "site.pue",
        "site.grid_location",
        "cluster.gpu_embodied",
    }
    for factor in statement.factors:
        if factor.id in used and (factor.id == "site.pue" or factor.unit.startswith("kgco2e")):
            value, unit = _people(factor)
            found.append(
                Coefficient(factor.id, factor.name, value, unit, _source(factor), _method(factor))
            )
    return found


def _people(factor: Factor) -> tuple[float | None, str]:
    scale, unit = {
        "kgco2e_per_j": (KWH_J * G_PER_KG, "gCO2e/kWh"),
        "kgco2e_per_gpu_s": (HOUR_S * G_PER_KG, "gCO2e/GPU-h"),
    }.get(factor.unit, (1.0, factor.unit))
    return None if factor.value is None else factor.value * scale, unit


def _method(factor: Factor | None) -> str:
    """How a factor came about, in the template's words: what nobody published is assumed."""
    if factor is None:
        return "assumed"
    if factor.origin == "measured":
        return "measured"
    return (
        "sourced"
        if factor.origin in ("published", "vendor")
        or (factor.origin == "derived" and factor.sources)
        else "assumed"
    )


def _source(factor: Factor | None) -> str:
    if factor is None:
        return "not given"
    return "; ".join(each.title for each in factor.sources) or factor.set_by


def _intensity_note(statement: Statement) -> str:
    grid = _factor(statement, "site.grid_location")
    series = statement.series
    is_hourly = series is not None and len({*series.grid_kgco2e_per_kwh}) > 1
    words = [
        "location-based",
        statement.subject.grid or statement.subject.grid_zone,
        "mean over the rows" if is_hourly else "",
    ]
    if grid is not None:
        words += [source.title for source in grid.sources if source.id == "file"]
        words.append(_method(grid))
    return ", ".join(filter(None, words))


def _quantity_text(statement: Statement, q: Quantity, about: str) -> str:
    if q.value is None:
        return "not declared" if q is statement.totals.embodied else "not known"
    ranged, lacking = between(q.low, q.high), statement.labels_of(q.excludes)
    grams = " kgCO2e" if q.unit == "kgCO2e" else ""
    words = [
        about,
        WORDS[q.basis],
        f"{ranged}{grams} ({q.interval})" if ranged else "",
        f"without {lacking}" if lacking else "",
    ]
    return ", ".join(filter(None, words))


def _grams(q: Quantity) -> float | None:
    return None if q.value is None else q.value * G_PER_KG


def _factor(statement: Statement, factor_id: str) -> Factor | None:
    return next((f for f in statement.factors if f.id == factor_id), None)
