"""The audit of claims as a study: verdicts, what follows, and readings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ckptcost.core.audit import CONSISTENT, INCONSISTENT, NOT_DERIVABLE, Fact, Sheet, Verdict
from ckptcost.core.intervals import Interval
from ckptcost.core.readings import OtherReading
from ckptcost.core.relations import QUANTITIES, RELATIONS
from ckptcost.core.units import UNITS, to_kwh
from ckptcost.jobs.audit import Audited
from ckptcost.present.claims import amount, apart, arithmetic, binary, distance, follows
from ckptcost.report.study import ROW_UNIT, Column, Study, Table

MOST_SENTENCES = 20
_ENDS = (("low", "low end"), ("high", "high end; null where there is none"))


def _ends(name: str, meaning: str) -> tuple[Column, ...]:
    return tuple(
        Column(f"{name}_{end}", f"{name} {end}", ROW_UNIT, f"{meaning}, {what}", False)
        for end, what in _ENDS
    )


VERDICTS = (
    Column("claim", "claim", meaning="claim and quantity, or the words of a formula"),
    Column("stated", "stated", meaning="as it is written"),
    Column("follows", "follows", meaning="what the other stated values give, as printed"),
    Column(
        "verdict",
        "verdict",
        meaning=(
            f"{CONSISTENT}, {INCONSISTENT}, or {NOT_DERIVABLE}: nothing else stated constrains it"
        ),
    ),
    Column("apart", "by how much", meaning="distance of the nearest ends"),
    Column("unit", "unit", meaning="of the numbers in this row", shown=False),
    *_ends("stated", "what is stated"),
    *_ends("follows", "what follows"),
    *_ends("rounded", "what follows when every input may have been rounded"),
    Column("factor", "factor", "1", "nearest ends, the larger over the smaller", False),
    Column("arithmetic", "arithmetic", meaning="the formula with its numbers", shown=False),
    Column("assumes", "assumes", meaning="what the formula takes for granted", shown=False),
    Column("law", "law", meaning="the law that gives it", shown=False),
    Column("said", "said", meaning="the words of the source", shown=False),
)
FOLLOWS = (
    Column("claim", "claim", meaning="claim and quantity, or the words of a formula"),
    Column("follows", "follows", meaning="what the stated values give, as printed"),
    Column("from", "from", meaning="the formula, cut short; whole in `arithmetic`"),
    Column("unit", "unit", meaning="of the numbers in this row", shown=False),
    *_ends("follows", "what follows"),
    *_ends("rounded", "the same when every input may have been rounded"),
    Column("arithmetic", "arithmetic", meaning="the formula with its numbers", shown=False),
    Column("assumes", "assumes", meaning="what the formula takes for granted", shown=False),
)
READINGS = (
    Column("claim", "claim", meaning="claim and quantity, or the words of a formula"),
    Column(
        "kind", "kind", meaning="unit, bits, about, mean-of-rates, boundary or state", shown=False
    ),
    Column("reading", "reading", meaning="how the stated value, or what it contains, is read"),
    Column("stated", "stated", meaning="as it is written", shown=False),
    Column("gives", "gives", meaning="what follows under this reading"),
    Column("fits", "fits", "bool", "whether the stated value then holds"),
    Column("apart", "by how much", meaning="distance of the nearest ends where it does not"),
    Column("unit", "unit", meaning="of the numbers in this row", shown=False),
    *_ends("gives", "what follows under this reading"),
)
SHEETS = (
    Column("id", "claims"),
    Column("name", "of"),
    Column("consistent", "consistent", "count"),
    Column("inconsistent", "inconsistent", "count"),
    Column("not_derivable", "not derivable", "count"),
)


def _label(claim: str, what: str) -> str:
    return f"{claim}.{what}" if claim else what


_NUMBERS = {"j": "kWh", "w": "W", "": "1", "j_per_byte": "J/GB"}


def _numbers(unit: str, **ranges: Interval | None) -> dict[str, Any]:
    """A row's ends in its unit."""
    row: dict[str, Any] = {"unit": _NUMBERS.get(unit, unit)}
    for name, value in ranges.items():
        for end, _ in _ENDS:
            raw = getattr(value, end) if value is not None else math.nan
            scaled = to_kwh(raw) if unit == "j" else raw * 1e9 if unit == "j_per_byte" else raw
            row[f"{name}_{end}"] = scaled if math.isfinite(scaled) else None
    return row


def _likes(sheet: Sheet) -> dict[str, str]:
    """The unit of each claim's own sizes, for derived ones: binary where the claim writes
    binary."""
    return {
        claim.id: "KiB"
        for claim in sheet.claims
        if any(binary(stated.unit) for stated in claim.stated.values())
    }


def _verdict_row(verdict: Verdict) -> dict[str, Any]:
    fact = verdict.fact
    like = verdict.stated.unit
    row = {
        "claim": _label(verdict.claim, verdict.what),
        "stated": verdict.stated.text,
        "verdict": verdict.word,
        "apart": apart(verdict) or None,
        "law": verdict.law or None,
        "follows": follows(fact, verdict.unit, like) if fact else None,
        "arithmetic": arithmetic(fact, verdict.unit, like) if fact else None,
        "assumes": (fact.assumes or None) if fact else None,
        "said": verdict.said or None,
        "factor": verdict.factor if math.isfinite(verdict.factor) else None,
    }
    return row | _numbers(
        verdict.unit,
        stated=verdict.stated.printed,
        follows=fact.printed if fact else None,
        rounded=fact.allowed if fact else None,
    )


def _follow_row(claim: str, what: str, fact: Fact, unit: str, like: str) -> dict[str, Any]:
    row = {
        "claim": _label(claim, what),
        "follows": follows(fact, unit, like),
        "from": _short(fact.how),
        "arithmetic": arithmetic(fact, unit, like),
        "assumes": fact.assumes or None,
    }
    return row | _numbers(unit, follows=fact.printed, rounded=fact.allowed)


def _short(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 2] + ".."


def _reading_row(reading: OtherReading) -> dict[str, Any]:
    row = {
        "claim": _label(reading.claim, reading.what),
        "kind": reading.kind,
        "reading": reading.reading,
        "stated": reading.stated.text,
        "gives": amount(reading.gives, reading.unit, reading.stated.unit),
        "fits": reading.fits,
        "apart": distance(reading.factor) or None,
    }
    return row | _numbers(reading.unit, gives=reading.gives)


def study_of(
    audited: Audited, sources: Mapping[str, Mapping[str, Any]], show_arithmetic: bool = False
) -> Study:
    """The audit of one sheet."""
    sheet = audited.sheet
    binary_of = _likes(sheet)
    source = sources.get(sheet.source, {})
    cited = f"{source['publisher']}: {source['title']} ({sheet.source})" if source else sheet.source
    rows = [
        _follow_row(f.claim, f.what, f.fact, f.unit, f.shown or _binary(f.unit, f.claim, binary_of))
        for f in audited.follows
    ]
    verdicts = Table(
        "verdicts",
        "What is stated, and what the rest gives for it",
        VERDICTS,
        [_verdict_row(v) for v in audited.verdicts],
    )
    tables = [
        verdicts,
        Table("follows", "What follows and is not stated", FOLLOWS, rows),
        Table(
            "readings",
            "Other readings",
            READINGS,
            [_reading_row(r) for r in audited.readings],
            "A reading that fits need not be the one that was meant.",
        ),
    ]
    findings = _findings(audited)
    if show_arithmetic:
        findings += [_line(row) for row in (*verdicts.rows, *rows) if row["arithmetic"]]
    return Study(
        "audit",
        sheet.name,
        [line for line in (f"Source: {cited}." if cited else "", sheet.note) if line],
        _question(sheet),
        tables,
        findings,
    )


def _line(row: Mapping[str, Any]) -> str:
    stated = f"; stated {row['stated']}: {row['verdict']}" if "stated" in row else ""
    assumes = f" (assumes {row['assumes']})" if row["assumes"] else ""
    return f"{row['claim']}: {row['arithmetic']}{stated}{assumes}"


def _binary(unit: str, claim: str, likes: Mapping[str, str]) -> str:
    return {"bytes": "KiB", "bytes_per_s": "GiB/s"}.get(unit, "") if claim in likes else ""


def _findings(audited: Audited) -> list[str]:
    about = {claim.id: claim.about for claim in audited.sheet.claims}
    counts = audited.counts()
    said = [
        f"{counts[CONSISTENT]} consistent, {counts[INCONSISTENT]} inconsistent, "
        f"{counts[NOT_DERIVABLE]} not derivable (nothing else stated constrains them)."
    ]
    for verdict in audited.verdicts:
        if verdict.word == INCONSISTENT:
            said.append(_contradiction(verdict, about, audited.readings))
    for claim in audited.sheet.claims:
        own = [reading for reading in audited.readings if reading.claim == claim.id]
        said += _boundary_sentence(
            claim.about, [reading for reading in own if reading.kind == "boundary"]
        )
        said += _state_sentence(
            claim.about, [reading for reading in own if reading.kind == "state"]
        )
    return (
        said
        if len(said) <= MOST_SENTENCES
        else [*said[:MOST_SENTENCES], f"... and {len(said) - MOST_SENTENCES} more in the tables."]
    )


def _contradiction(
    verdict: Verdict, about: Mapping[str, str], readings: Sequence[OtherReading]
) -> str:
    assert verdict.fact is not None  # an inconsistent verdict has something to be inconsistent with
    what = f"{about[verdict.claim]}, {verdict.what}" if verdict.claim else verdict.what
    gives = follows(verdict.fact, verdict.unit, verdict.stated.unit)
    far = (
        "only the ends meet"
        if verdict.how == "touches"
        else f"{apart(verdict)} apart at the nearest ends"
    )
    fitting = [
        r
        for r in readings
        if (r.claim, r.what) == (verdict.claim, verdict.what)
        and r.kind not in ("boundary", "state")
    ]
    best = min(fitting, key=lambda r: (r.kind == "about", not r.fits), default=None)
    if best is None:
        hint = "No other reading tried makes it hold."
    elif best.fits:
        hint = f"It would hold with {best.reading}."
    else:
        hint = f"With {best.reading}, {distance(best.factor)} apart."
    assumes = f" (assuming {verdict.fact.assumes})" if verdict.fact.assumes else ""
    used = sorted(verdict.fact.uses, key=list(QUANTITIES).index) if verdict.claim else []
    is_longer = any(name not in {each for each, _, _ in verdict.fact.of} for name in used)
    rests_on = f", from {', '.join(used[:-1])} and {used[-1]}" if is_longer else ""
    return (
        f"{what}: stated {verdict.stated.text}; {verdict.fact.how} gives"
        f" {gives}{rests_on}{assumes}: {far}. {hint}"
    )


def _boundary_sentence(about: str, own: Sequence[OtherReading]) -> list[str]:
    if not own:
        return []
    parts = "; ".join(f"{r.reading} {amount(r.gives, 'j', r.stated.unit)}" for r in own)
    fitting = [r.reading.partition(" (")[0] for r in own if r.fits]
    last = f"It fits: {', '.join(fitting)}." if fitting else "None of these is what is stated."
    return [f"{about}, energy: stated {own[0].stated.text}; by boundary: {parts}. {last}"]


def _state_sentence(about: str, own: Sequence[OtherReading]) -> list[str]:
    return (
        [
            f"{about}, size: {own[0].stated.text} is what fits "
            + " or ".join(r.reading for r in own)
            + "."
        ]
        if own
        else []
    )


def _question(sheet: Sheet) -> dict[str, Any]:
    """What was claimed, in its own words."""
    claims = {
        c.id: {"about": c.about, **{name: stated.text for name, stated in c.stated.items()}}
        for c in sheet.claims
    }
    formulas = [
        {
            "what": h.what,
            "that": h.that.text,
            "is": h.stated.text if h.stated else None,
            "said": h.said,
        }
        for h in sheet.held
    ]
    return {
        "id": sheet.id,
        "name": sheet.name,
        "source": sheet.source,
        "note": sheet.note,
        "claims": claims,
        "formulas": formulas,
    }


def overview(shipped: Sequence[Audited]) -> Study:
    """The sheets of the catalogue and how they fare."""
    rows = [
        {
            "id": a.sheet.id,
            "name": a.sheet.name,
            **{word.replace(" ", "_"): count for word, count in a.counts().items()},
        }
        for a in shipped
    ]
    table = Table(
        "sheets",
        "Claims that ship",
        SHEETS,
        rows,
        "ckptcost audit NAME shows one; ckptcost audit FILE.toml audits your own.",
    )
    return Study(
        "audit",
        "Claims held against each other",
        [],
        {"claims": [a.sheet.id for a in shipped]},
        [table],
        [],
    )


def vocabulary() -> Study:
    """What a claim can speak of, and the laws between."""
    quantities = [
        {
            "key": name,
            "example": UNITS[q.unit][1] if q.unit else "5 %" if q.most == 1.0 else "100",
            "meaning": q.meaning,
        }
        for name, q in QUANTITIES.items()
    ]
    laws = [
        {
            "law": law.id,
            "formula": f"{name} {'<=' if law.at_most else '='} {text}",
            "assumes": law.assumes or None,
        }
        for law in RELATIONS
        for name, text in [next(iter(law.forms.items()))]
    ]
    of_quantities = (Column("key", "key"), Column("example", "e.g."), Column("meaning", "meaning"))
    of_laws = (
        Column("formula", "formula"),
        Column("law", "law"),
        Column("assumes", "assumes", shown=False),
    )
    tables = [
        Table("quantities", "Keys of [[claim]] and [context]", of_quantities, quantities),
        Table("laws", "How they hang together", of_laws, laws),
    ]
    return Study("audit", "The words and laws of an audit", [], {}, tables, [])
