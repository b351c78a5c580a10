"""The audit of claims as a study: verdicts, what follows, and readings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ckptcost.first.core.audit import (
    CONSISTENT,
    INCONSISTENT,
    NOT_DERIVABLE,
    Claim,
    Fact,
    Sheet,
    Verdict,
)
from ckptcost.first.core.intervals import Interval
from ckptcost.first.core.readings import OtherReading
from ckptcost.first.core.relations import QUANTITIES, RELATIONS
from ckptcost.first.core.units import UNITS, to_kwh
from ckptcost.first.jobs.audit import Audited
from ckptcost.first.present.claims import amount, apart, arithmetic, binary, distance, follows
from ckptcost.first.report.study import (
    ROW_UNIT,
    Column,
    Study,
    Table,
    hidden,
    named,
    plain,
    shortened,
    table_of,
)

MOST_SENTENCES = 20
_ENDS = (("low", "low end"), ("high", "high end; null where there is none"))


def _ends(name: str, meaning: str) -> tuple[Column, ...]:
    return hidden(
        *(
            Column(f"{name}_{end}", f"{name} {end}", ROW_UNIT, f"{meaning}, {what}")
            for end, what in _ENDS
        )
    )


_CLAIM = Column("claim", "claim", meaning="claim and quantity, or the words of a formula")
_UNIT = Column("unit", "unit", meaning="of the numbers in this row", shown=False)
_FORMULA = hidden(
    Column("arithmetic", "arithmetic", meaning="the formula with its numbers"),
    Column("assumes", "assumes", meaning="what the formula takes for granted"),
)
VERDICTS = (
    _CLAIM,
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
    _UNIT,
    *_ends("stated", "what is stated"),
    *_ends("follows", "what follows"),
    *_ends("rounded", "what follows when every input may have been rounded"),
    Column("factor", "factor", "1", "nearest ends, the larger over the smaller", False),
    *_FORMULA,
    *hidden(
        Column("law", "law", meaning="the law that gives it"),
        Column("said", "said", meaning="the words of the source"),
    ),
)
FOLLOWS = (
    _CLAIM,
    Column("follows", "follows", meaning="what the stated values give, as printed"),
    Column("from", "from", meaning="the formula, cut short; whole in `arithmetic`"),
    _UNIT,
    *_ends("follows", "what follows"),
    *_ends("rounded", "the same when every input may have been rounded"),
    *_FORMULA,
)
READINGS = (
    _CLAIM,
    *hidden(Column("kind", "kind", meaning="unit, bits, about, mean-of-rates, boundary or state")),
    Column("reading", "reading", meaning="how the stated value, or what it contains, is read"),
    *hidden(Column("stated", "stated", meaning="as it is written")),
    Column("gives", "gives", meaning="what follows under this reading"),
    Column("fits", "fits", "bool", "whether the stated value then holds"),
    Column("apart", "by how much", meaning="distance of the nearest ends where it does not"),
    _UNIT,
    *_ends("gives", "what follows under this reading"),
)
SHEETS = (
    Column("id", "claims", of="sheet.id"),
    Column("name", "of", of="sheet.name"),
    Column("consistent", "consistent", "count", of=lambda a: a.counts()[CONSISTENT]),
    Column("inconsistent", "inconsistent", "count", of=lambda a: a.counts()[INCONSISTENT]),
    Column("not_derivable", "not derivable", "count", of=lambda a: a.counts()[NOT_DERIVABLE]),
)


def _label(claim: str, what: str) -> str:
    return f"{claim}.{what}" if claim else what


_NUMBERS = {"j": "kWh", "w": "W", "": "1", "j_per_byte": "J/GB"}


def _numbers(unit: str, **ranges: Interval | None) -> dict[str, Any]:
    """A row's ends in its unit."""
    row: dict[str, Any] = {"unit": _NUMBERS.get(unit, unit)}
    for name, value in ranges.items():
        for end, _ in _ENDS:
            raw = getattr(value, end, math.nan)
            scaled = to_kwh(raw) if unit == "j" else raw * 1e9 if unit == "j_per_byte" else raw
            row[f"{name}_{end}"] = plain(scaled)
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
    row = {
        "claim": _label(verdict.claim, verdict.what),
        "stated": verdict.stated.text,
        "verdict": verdict.word,
        "apart": apart(verdict) or None,
        "law": verdict.law or None,
        **_formula(fact, verdict.unit, verdict.stated.unit),
        "said": verdict.said or None,
        "factor": plain(verdict.factor),
    }
    return row | _numbers(
        verdict.unit,
        stated=verdict.stated.printed,
        follows=fact and fact.printed,
        rounded=fact and fact.allowed,
    )


def _formula(fact: Fact | None, unit: str, like: str) -> dict[str, str | None]:
    """What follows and how; None where nothing does."""
    if fact is None:
        return dict.fromkeys(("follows", "arithmetic", "assumes"))
    return {
        "follows": follows(fact, unit, like),
        "arithmetic": arithmetic(fact, unit, like),
        "assumes": fact.assumes or None,
    }


def _follow_row(claim: str, what: str, fact: Fact, unit: str, like: str) -> dict[str, Any]:
    row = {
        "claim": _label(claim, what),
        "from": shortened(fact.how, 30),
        **_formula(fact, unit, like),
    }
    return row | _numbers(unit, follows=fact.printed, rounded=fact.allowed)


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
        if verdict.word == INCONSISTENT and verdict.fact is not None:
            said.append(_contradiction(verdict, verdict.fact, about, audited.readings))
    for claim in audited.sheet.claims:
        said += _claim_sentences(claim, audited.readings)
    more = len(said) - MOST_SENTENCES
    return [*said[:MOST_SENTENCES], *([f"... and {more} more in the tables."] if more > 0 else [])]


def _claim_sentences(claim: Claim, readings: Sequence[OtherReading]) -> Iterator[str]:
    for kind, sentence in (("boundary", _boundary_sentence), ("state", _state_sentence)):
        own = [r for r in readings if r.claim == claim.id and r.kind == kind]
        if own:
            yield sentence(claim.about, own)


def _contradiction(
    verdict: Verdict, fact: Fact, about: Mapping[str, str], readings: Sequence[OtherReading]
) -> str:
    what = f"{about[verdict.claim]}, {verdict.what}" if verdict.claim else verdict.what
    gives = follows(fact, verdict.unit, verdict.stated.unit)
    far = f"{apart(verdict)} apart at the nearest ends"
    if verdict.how == "touches":
        far = "only the ends meet"
    assumes = f" (assuming {fact.assumes})" if fact.assumes else ""
    return (
        f"{what}: stated {verdict.stated.text}; {fact.how} gives {gives}"
        f"{_rests_on(verdict.claim, fact)}{assumes}: {far}. {_hint(verdict, readings)}"
    )


def _rests_on(claim: str, fact: Fact) -> str:
    """The stated values behind it, where the formula does not name them all."""
    used = sorted(fact.uses, key=list(QUANTITIES).index) if claim else []
    if not used or {*used} <= {name for name, _, _ in fact.of}:
        return ""
    return f", from {', '.join(used[:-1])} and {used[-1]}"


def _hint(verdict: Verdict, readings: Sequence[OtherReading]) -> str:
    """The other reading that makes it hold, or comes nearest."""
    fitting = [
        r
        for r in readings
        if (r.claim, r.what) == (verdict.claim, verdict.what)
        and r.kind not in ("boundary", "state")
    ]
    best = min(fitting, key=lambda r: (r.kind == "about", not r.fits), default=None)
    if best is None:
        return "No other reading tried makes it hold."
    if best.fits:
        return f"It would hold with {best.reading}."
    return f"With {best.reading}, {distance(best.factor)} apart."


def _boundary_sentence(about: str, own: Sequence[OtherReading]) -> str:
    parts = "; ".join(f"{r.reading} {amount(r.gives, 'j', r.stated.unit)}" for r in own)
    fitting = [r.reading.partition(" (")[0] for r in own if r.fits]
    last = f"It fits: {', '.join(fitting)}." if fitting else "None of these is what is stated."
    return f"{about}, energy: stated {own[0].stated.text}; by boundary: {parts}. {last}"


def _state_sentence(about: str, own: Sequence[OtherReading]) -> str:
    fits = " or ".join(r.reading for r in own)
    return f"{about}, size: {own[0].stated.text} is what fits {fits}."


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
    note = "ckptcost audit NAME shows one; ckptcost audit FILE.toml audits your own."
    return Study(
        "audit",
        "Claims held against each other",
        [],
        {"claims": [a.sheet.id for a in shipped]},
        [table_of("sheets", "Claims that ship", SHEETS, shipped, note)],
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
    of_quantities = (*named("key"), Column("example", "e.g."), *named("meaning"))
    of_laws = (*named("formula", "law"), *hidden("assumes"))
    tables = [
        Table("quantities", "Keys of [[claim]] and [context]", of_quantities, quantities),
        Table("laws", "How they hang together", of_laws, laws),
    ]
    return Study("audit", "The words and laws of an audit", [], {}, tables, [])
