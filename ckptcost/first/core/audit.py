"""Claims held against each other: what follows from what is stated, and whether it meets what else
is stated.

Everything is computed twice, on the numbers as printed and on the numbers that could have been
rounded to them: the first is shown, the second decides, so that rounding alone never makes a
contradiction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from ckptcost.first.core.expressions import ExpressionValue, Formula, evaluate, formula, unit_of
from ckptcost.first.core.intervals import Interval
from ckptcost.first.core.relations import QUANTITIES, RELATIONS, Relation
from ckptcost.first.core.units import UNITS
from ckptcost.first.errors import InputError, UnitError, UnknownName

Word = Literal["consistent", "inconsistent", "not derivable"]
CONSISTENT: Final = "consistent"
INCONSISTENT: Final = "inconsistent"
NOT_DERIVABLE: Final = "not derivable"
ROUNDS = 5
"""longest chain of relations"""


class Stated(NamedTuple):
    """What somebody wrote."""

    text: str
    printed: Interval
    allowed: Interval
    """all that could have been rounded to what is printed"""
    unit: str = ""
    """as written: "TB", "GB/s", "%"; "" for a plain number"""
    soft: bool = False
    """an approximate word or a bound; used on only where nothing firmer is known"""
    strict: Literal["", "low", "high"] = ""
    """the end that itself is excluded: "over" and "less than" """


class Claim(NamedTuple):
    """One thing claims are made about: a system, a model, a run."""

    id: str
    about: str
    stated: dict[str, Stated]
    shared: frozenset[str] = frozenset()
    """which of them come from the sheet's context"""


class CheckedFormula(NamedTuple):
    """A formula over claims; `stated` is None where only its value is asked for."""

    what: str
    that: Formula
    stated: Stated | None
    said: str = ""
    shown: str = ""
    """the unit to show it in; "" for the usual one"""


class Sheet(NamedTuple):
    """A file of claims."""

    id: str
    name: str
    source: str
    note: str
    claims: tuple[Claim, ...]
    held: tuple[CheckedFormula, ...]


class Fact(NamedTuple):
    """A value of a quantity, stated or derived."""

    printed: Interval
    allowed: Interval
    uses: frozenset[str]
    """the stated quantities it rests on"""
    soft: bool = False
    at_most: bool = False
    how: str = ""
    """the formula; "" for a stated value"""
    assumes: str = ""
    of: tuple[tuple[str, Interval, str], ...] = ()
    """what went into the formula, each with the unit it was written in"""
    laws: frozenset[str] = frozenset()
    """the relations on its way"""
    unit: str = ""
    """stated: the unit as written"""


class Verdict(NamedTuple):
    """One stated value and what follows for it from the others."""

    claim: str
    what: str
    stated: Stated
    fact: Fact | None
    word: Word
    how: str
    """inside, overlaps, rounding, at most (consistent); apart, touches (inconsistent); elsewhere
    (the law need not hold)"""
    factor: float = math.nan
    """inconsistent: how many times the nearest ends differ"""
    unit: str = ""
    law: str = ""
    said: str = ""


class Follow(NamedTuple):
    """A value nobody stated."""

    claim: str
    what: str
    fact: Fact
    unit: str
    shown: str = ""


class Audit(NamedTuple):
    verdicts: list[Verdict]
    follows: list[Follow]


Slots = dict[tuple[str, str], Fact]


def _pick(claim: Claim, slots: Slots, name: str, without: str = "") -> Fact | None:
    """The value to go on with: as stated, an approximate one as the firm value within it that
    follows; none that rests on `without`."""
    derived = [
        fact
        for (what, _), fact in slots.items()
        if what == name and not fact.at_most and fact.uses.isdisjoint((name, without))
    ]
    stated = claim.stated.get(name) if name != without else None
    if stated is None:
        return min(derived, key=lambda fact: (fact.soft, len(fact.uses)), default=None)
    firm = [
        fact
        for fact in derived
        if stated.soft and not fact.soft and fact.allowed.within(stated.allowed)
    ]
    as_stated = Fact(
        stated.printed, stated.allowed, frozenset([name]), stated.soft, unit=stated.unit
    )
    return min(firm, key=lambda fact: len(fact.uses), default=as_stated)


def _derive_fact(
    claim: Claim, slots: Slots, relation: Relation, target: str, text: str
) -> Fact | None:
    law = formula(text)
    facts = {name: _pick(claim, slots, name, without=target) for name in law.names}
    known = {name: fact for name, fact in facts.items() if fact is not None}
    laws = frozenset[str]().union(*(fact.laws for fact in known.values()))
    if (
        len(known) < len(facts) or relation.id in laws
    ):  # a law applied twice walks back to where it came from
        return None
    try:
        printed = evaluate(
            law, lambda name: ExpressionValue(known[name].printed, UNITS[QUANTITIES[name].unit][0])
        ).range
        allowed = evaluate(
            law, lambda name: ExpressionValue(known[name].allowed, UNITS[QUANTITIES[name].unit][0])
        ).range
    except (ZeroDivisionError, InputError):
        return None  # with these values the law says nothing
    uses = frozenset[str]().union(*(fact.uses for fact in known.values()))
    soft = any(fact.soft for fact in known.values())
    inputs = tuple((name, fact.printed, fact.unit) for name, fact in known.items())
    return Fact(
        printed,
        allowed,
        uses,
        soft,
        relation.at_most,
        text,
        relation.assumes,
        inputs,
        laws | {relation.id},
    )


def derive(claim: Claim) -> Slots:
    """Everything that follows within one claim, by quantity and law. No value rests on itself."""
    slots: Slots = {}
    for _ in range(ROUNDS):
        found: Slots = {}
        for relation in RELATIONS:
            if not claim.stated.keys().isdisjoint(relation.unless):
                continue
            for target, text in relation.forms.items():
                fact = _derive_fact(claim, slots, relation, target, text)
                if fact is not None:
                    found[target, relation.id] = fact
        if found == slots:
            break
        slots = found
    return slots


def verdict_of(stated: Stated, fact: Fact) -> tuple[Word, str, float]:
    """Verdict, how, and how many times the nearest ends differ."""
    if fact.at_most:
        return _verdict_at_most(stated, fact)
    if stated.allowed.meets(fact.allowed) and not _is_excluded(stated, fact):
        if fact.printed.within(stated.allowed):
            return CONSISTENT, "inside", math.nan
        how = "overlaps" if stated.printed.meets(fact.printed) else "rounding"
        return CONSISTENT, how, math.nan
    if stated.printed.meets(fact.printed):
        return INCONSISTENT, "touches", 1.0
    if fact.printed.low > stated.printed.high:
        return INCONSISTENT, "apart", _factor(fact.printed.low, stated.printed.high)
    return INCONSISTENT, "apart", _factor(stated.printed.low, fact.printed.high)


def _verdict_at_most(stated: Stated, fact: Fact) -> tuple[Word, str, float]:
    """The fact is the most that it could be."""
    if stated.allowed.low > fact.allowed.high * (1 + 1e-9):
        return INCONSISTENT, "apart", _factor(stated.printed.low, fact.printed.high)
    is_met = stated.printed.low <= fact.printed.high * (1 + 1e-9)
    return CONSISTENT, "at most" if is_met else "rounding", math.nan


def _is_excluded(stated: Stated, fact: Fact) -> bool:
    """They meet only in the end that "over" or "less than" leaves out."""
    if stated.strict == "low":
        return fact.allowed.high <= stated.allowed.low * (1 + 1e-9)
    return stated.strict == "high" and fact.allowed.low >= stated.allowed.high * (1 - 1e-9)


def _factor(larger: float, smaller: float) -> float:
    return larger / smaller if smaller > 0 else math.nan


def _checks(claim: Claim, slots: Slots) -> list[Verdict]:
    """One verdict for each set of statements that a law holds against each other, and a word on
    what no law reaches."""
    found: dict[frozenset[str], Verdict] = {}
    need_not: dict[frozenset[str], Verdict] = {}
    for relation in RELATIONS:
        target = _target(claim, slots, relation)
        if target is None:
            continue
        fact, stated = slots[target, relation.id], claim.stated[target]
        together = fact.uses | {target}
        if together <= claim.shared:
            continue
        word, how, factor = verdict_of(stated, fact)
        unit = QUANTITIES[target].unit
        verdict = Verdict(claim.id, target, stated, fact, word, how, factor, unit, relation.id)
        if relation.only_then and word == INCONSISTENT:
            verdict = verdict._replace(word=NOT_DERIVABLE, how="elsewhere", factor=math.nan)
            need_not.setdefault(together, verdict)
        elif together not in found or _says_it_better(verdict, found[together]):
            found[together] = verdict
    for together, verdict in need_not.items():  # where no law that has to hold says it
        found.setdefault(together, verdict)
    reached = claim.shared.union(*found)
    return [*found.values()] + [
        Verdict(claim.id, name, stated, None, NOT_DERIVABLE, "", unit=QUANTITIES[name].unit)
        for name, stated in claim.stated.items()
        if name not in reached
    ]


def _target(claim: Claim, slots: Slots, relation: Relation) -> str | None:
    """What is both stated and derived: the approximate one is held against the firm ones, the
    claim's own against the context."""
    both = [
        name for name in relation.forms if name in claim.stated and (name, relation.id) in slots
    ]
    return min(
        both,
        key=lambda name: (name in claim.shared, slots[name, relation.id].soft),
        default=None,
    )


def _says_it_better(verdict: Verdict, other: Verdict) -> bool:
    """Of statements that do not fit together, under two laws: what is claimed to come of it all, a
    share, rather than a rate or a time that went into it."""
    return (
        verdict.word == other.word == INCONSISTENT
        and QUANTITIES[verdict.what].is_share
        and not QUANTITIES[other.what].is_share
        and not (verdict.fact is not None and verdict.fact.soft)
    )


def _follows(claim: Claim, slots: Slots) -> list[Follow]:
    """The best derived value of each quantity that is not stated."""
    found = []
    for name, quantity in QUANTITIES.items():
        own = [
            fact
            for (what, _), fact in slots.items()
            if what == name and not fact.uses <= claim.shared
        ]
        if own and name not in claim.stated:
            fact = min(own, key=lambda each: (each.soft, each.at_most, len(each.uses)))
            found.append(Follow(claim.id, name, fact, quantity.unit))
    return found


def _of_formula(
    held: CheckedFormula, claims: Mapping[str, Claim], slots: Mapping[str, Slots]
) -> tuple[Fact, str]:
    """The value of a formula over claims, and its unit."""
    facts = {name: _fact_named(name, claims, slots) for name in held.that.names}

    def amount(name: str, part: str) -> ExpressionValue:
        return ExpressionValue(
            getattr(facts[name], part), UNITS[QUANTITIES[name.partition(".")[2]].unit][0]
        )

    try:
        value = evaluate(held.that, lambda name: amount(name, "printed"))
        allowed = evaluate(held.that, lambda name: amount(name, "allowed")).range
    except ZeroDivisionError:
        raise InputError(
            f"{held.that.text!r} divides by an interval that holds 0",
            remedy="give that quantity a range above 0",
        ) from None
    unit = unit_of(value.dims)
    if unit is None:
        raise UnitError(
            f"{held.that.text!r} has no unit that a claim could have",
            remedy="multiply or divide it into a known quantity",
        )
    uses = frozenset(
        f"{name.partition('.')[0]}.{each}" for name, fact in facts.items() for each in fact.uses
    )
    soft = any(fact.soft for fact in facts.values())
    of = tuple((name, fact.printed, fact.unit) for name, fact in facts.items())
    return Fact(value.range, allowed, uses, soft, False, held.that.text, "", of), unit


def _fact_named(name: str, claims: Mapping[str, Claim], slots: Mapping[str, Slots]) -> Fact:
    owner, dot, quantity = name.partition(".")
    if not dot:
        raise InputError(
            f"{name!r} names no claim",
            remedy="write CLAIM.QUANTITY, e.g. nas.energy; claims: " + ", ".join(claims),
        )
    if owner not in claims:
        raise UnknownName("claim", owner, claims)
    if quantity not in QUANTITIES:
        raise UnknownName("quantity", quantity, QUANTITIES)
    fact = _pick(claims[owner], slots[owner], quantity)
    if fact is None:
        raise InputError(
            f"{name} is neither stated nor follows",
            remedy=f"state {quantity}, or what it follows from, in claim {owner!r}",
        )
    return fact


def unit_of_formula(held: CheckedFormula, claims: Sequence[Claim]) -> str:
    """The unit of a formula's value, before what is stated of it is read."""
    owners = {name.partition(".")[0] for name in held.that.names}
    return _of_formula(
        held,
        {claim.id: claim for claim in claims},
        {claim.id: derive(claim) for claim in claims if claim.id in owners},
    )[1]


def audit(sheet: Sheet) -> Audit:
    """Every verdict on a sheet, and everything that follows from it."""
    claims = {claim.id: claim for claim in sheet.claims}
    slots: dict[str, Slots] = {}
    verdicts: list[Verdict] = []
    follows: list[Follow] = []
    for claim in sheet.claims:
        slots[claim.id] = derive(claim)
        verdicts += _checks(claim, slots[claim.id])
        follows += _follows(claim, slots[claim.id])
    used: set[str] = set()
    for held in sheet.held:
        fact, unit = _of_formula(held, claims, slots)
        if held.stated is None:
            follows.append(Follow("", held.what, fact, unit, held.shown))
            continue
        used |= fact.uses
        word, how, factor = verdict_of(held.stated, fact)
        verdicts.append(
            Verdict("", held.what, held.stated, fact, word, how, factor, unit, "formula", held.said)
        )
    # what a formula is held against is constrained after all
    verdicts = [v for v in verdicts if v.word != NOT_DERIVABLE or f"{v.claim}.{v.what}" not in used]
    return Audit(verdicts, follows)
