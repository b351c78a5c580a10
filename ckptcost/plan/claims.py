"""Statements compared with each other: what follows from what is stated, and whether both agree.

A statement is an interval twice: as printed, which is shown, and all that could have been rounded
to it, which decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ckptcost.plan.laws import LAWS, ONLY_AGREES, QUANTITIES, UNLESS, Form, Formula
from ckptcost.scenario.units import number, per, show, show_range

AGREES, CONTRADICTS, OPEN = "agrees", "does not agree", "cannot be checked"
"""the verdicts"""
SCALED = ("B", "B/s", "s", "W", "share")
"""units that `show` scales by the size of the number"""
COUNTS = {"k": 1e3, "M": 1e6, "T": 1e12}
DEPTH = 5
"""laws upon each other, at most"""


class Span(NamedTuple):
    low: float
    high: float

    def meets(self, other: Span) -> bool:
        return self.low <= other.high * (1 + 1e-9) and other.low <= self.high * (1 + 1e-9)

    def within(self, other: Span) -> bool:
        return other.low * (1 - 1e-9) <= self.low and self.high <= other.high * (1 + 1e-9)

    def say(self, unit: str) -> str:
        """In a unit of `show`, or in the one that somebody stated something in.

        >>> Span(5.4e9, 7.2e9).say("kWh"), Span(5.4e9, 7.2e9).say("MWh"), Span(0.0, 2e9).say("B/s")
        ('1,500 to 2,000 kWh', '1.5 to 2 MWh', 'at most 2 GB/s')
        >>> Span(0.125, 0.125).say("share"), Span(1500.0, math.inf).say("s")
        ('12.5 %', 'at least 25 min')
        """
        low, high = self
        if low == high:
            return _one(low, unit)
        if math.isinf(high):
            return f"at least {_one(low, unit)}"
        if low == 0 or math.isinf(low):
            return f"at most {_one(high, unit)}"
        if unit in SCALED:
            return show_range(low, high, unit).replace("-", " to ")
        size = COUNTS.get(unit) or per(unit)
        digits = 2 if number(low / size, 2) != number(high / size, 2) else 3
        return f"{number(low / size, digits)} to {number(high / size, digits)} {unit}".strip()


def _one(value: float, unit: str) -> str:
    return f"{number(value / COUNTS[unit])}{unit}" if unit in COUNTS else show(value, unit)


@dataclass
class Fact:
    """A value of a quantity, stated or following from others."""

    printed: Span
    allowed: Span
    uses: frozenset[str] = frozenset()
    """the statements that it rests on"""
    soft: bool = False
    """an approximate word or a bound: used on only if nothing firmer is known"""
    strict: str = ""
    """the end that itself is excluded: "over" and "less than" """
    at_most: bool = False
    laws: frozenset[str] = frozenset()
    text: str = ""
    """as stated"""
    unit: str = ""
    """as stated, else the usual one of its quantity"""
    what: str = ""
    words: str = ""
    """how it follows, with places for the numbers"""
    of: Mapping[str, Fact] = field(default_factory=dict)
    """what it follows from directly"""

    def say(self, unit: str = "") -> str:
        """The number: as stated, or what follows."""
        return self.text.removeprefix("exactly ") or self.printed.say(unit or self.unit)

    def steps(self, unit: str = "") -> list[str]:
        """The arithmetic, what comes first before what rests on it."""
        if not self.words:
            return []
        before = [step for fact in self.of.values() for step in fact.steps()]
        result = self.say(unit)
        if self.at_most:  # its words say so already
            result = result.removeprefix("at most ")
        values = {name: fact.say() for name, fact in self.of.items()} | {self.what: result}
        return list(dict.fromkeys([*before, self.words.format(**values)]))


def following(formula: Formula, known: Mapping[str, Fact], **about: Any) -> Fact:
    """What a formula gives of these facts; ArithmeticError if that is no number."""
    facts = known.values()
    printed = formula.span({name: fact.printed for name, fact in known.items()})
    allowed = formula.span({name: fact.allowed for name, fact in known.items()})
    uses = frozenset[str]().union(*(fact.uses for fact in facts))
    soft = any(fact.soft for fact in facts)
    return Fact(Span(*printed), Span(*allowed), uses, soft, of=known, **about)


@dataclass
class Claim:
    id: str
    about: str
    stated: dict[str, Fact]
    shared: frozenset[str]
    """which of them come from the sheet's context"""
    facts: dict[tuple[str, str], Fact] = field(default_factory=dict)
    """what follows, by quantity and law"""

    def best(self, name: str, without: str = "") -> Fact | None:
        """The value to go on with; for an approximate one the firm value within it that follows."""
        derived = [
            f
            for (what, _), f in self.facts.items()
            if what == name and not f.at_most and not f.uses & {name, without}
        ]
        stated = self.stated.get(name) if name != without else None
        if stated is None:
            return min(derived, key=lambda f: (f.soft, len(f.uses)), default=None)
        if not stated.soft:
            return stated
        firm = [f for f in derived if not f.soft and f.allowed.within(stated.allowed)]
        return min(firm, key=lambda f: len(f.uses), default=stated)

    def derive(self) -> None:
        """Everything that follows, law upon law. No value rests on itself."""
        for _ in range(DEPTH):
            self.facts = {
                (what, name): fact
                for name, law in LAWS.items()
                if not self.stated.keys() & UNLESS.get(name, set())
                for what, form in law.forms.items()
                if (fact := self._follow(name, what, form))
            }

    def _follow(self, law: str, what: str, form: Form) -> Fact | None:
        names = form.formula.names
        known = {name: fact for name in names if (fact := self.best(name, without=what))}
        laws = frozenset[str]().union(*(fact.laws for fact in known.values()))
        if len(known) < len(names) or law in laws:
            return None
        about = {"what": what, "words": form.words, "unit": QUANTITIES[what].unit}
        try:
            return following(form.formula, known, at_most=form.at_most, laws=laws | {law}, **about)
        except ArithmeticError:
            return None

    def words(self, what: str) -> str:
        """A statement as people read it: "over 2 MWh for 100 checkpoints"."""
        said = self.stated[what].say()
        if what.startswith("total_") and "saves" in self.stated:
            return f"{said} for {self.stated['saves'].say()} checkpoints"
        return QUANTITIES[what].words.format(said)


class Verdict(NamedTuple):
    claim: str
    """empty for a formula over several"""
    what: str
    stated: Fact
    follows: Fact | None
    word: str
    factor: float = math.nan
    """how many times the nearest ends are apart"""
    law: str = ""

    @property
    def path(self) -> str:
        """As a formula of a sheet names it: "nas.energy"; a formula has its own words."""
        return f"{self.claim}.{self.what}" if self.claim else self.what

    def arithmetic(self) -> str:
        """What follows with its numbers: "2 TB at 200 MB/s takes 2.78 h; ..." """
        return "; ".join(self.follows.steps(self.stated.unit)) if self.follows else ""


def verdict_of(stated: Fact, fact: Fact) -> tuple[str, float]:
    """The word, and how many times the nearest ends are apart."""
    mine, its = stated.allowed, fact.allowed
    only_at_excluded_end = {
        "low": its.high <= mine.low * (1 + 1e-9),
        "high": its.low >= mine.high * (1 - 1e-9),
    }
    if fact.at_most:
        agrees = mine.low <= its.high * (1 + 1e-9)
    else:
        agrees = mine.meets(its) and not only_at_excluded_end.get(stated.strict)
    if agrees:
        return AGREES, math.nan
    low, high = sorted((stated.printed, fact.printed))
    return CONTRADICTS, max(high.low / low.high, 1.0) if low.high > 0 else math.nan


SHARES = ("stall_share", "runtime_saved", "goodput")
"""the statements that people came for: of several that contradict each other these are named"""


def check(claim: Claim) -> list[Verdict]:
    """One verdict for each set of statements that a law compares with each other."""
    found: dict[frozenset[str], Verdict] = {}
    for name in LAWS:
        verdict = _judge(claim, name)
        if verdict and verdict.follows:
            together = verdict.follows.uses | {verdict.what}
            if together not in found or _says_more(verdict, found[together]):
                found[together] = verdict
    reached = claim.shared.union(*found)
    alone = [what for what in claim.stated if what not in reached]
    unreached = [Verdict(claim.id, what, claim.stated[what], None, OPEN) for what in alone]
    return [*found.values(), *unreached]


def _judge(claim: Claim, law: str) -> Verdict | None:
    """What one law says of a claim; None if it does not give anything that is stated."""
    forms = LAWS[law].forms
    both = [what for what in forms if what in claim.stated and (what, law) in claim.facts]
    if not both:
        return None
    what = min(both, key=lambda each: (each in claim.shared, claim.facts[each, law].soft))
    fact, stated = claim.facts[what, law], claim.stated[what]
    if fact.uses | {what} <= claim.shared:
        return None
    word, factor = verdict_of(stated, fact)
    if word == CONTRADICTS and law in ONLY_AGREES:
        word, factor = OPEN, math.nan
    return Verdict(claim.id, what, stated, fact, word, factor, law)


def _says_more(verdict: Verdict, other: Verdict) -> bool:
    if other.word == OPEN:
        return verdict.word != OPEN
    share = verdict.what in SHARES and other.what not in SHARES
    firm = verdict.follows is not None and not verdict.follows.soft
    return share and firm and verdict.word == other.word == CONTRADICTS


def lacking(claim: Claim, what: str) -> list[str]:
    """What a sheet would have to state so that a statement can be checked: the fewest things.

    >>> one = Fact(Span(1, 1), Span(1, 1), frozenset(["size"]))
    >>> lacking(Claim("a", "", {"size": one, "params": one}, frozenset()), "size")
    ['bytes_per_param']
    """
    ways = [
        sorted(name for name in law.quantities - {what} if not claim.best(name, without=what))
        for law in LAWS.values()
        if what in law.quantities
    ]
    return min(filter(None, ways), key=len, default=[])
