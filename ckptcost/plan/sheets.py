"""Sheets of statements, shipped or the user's: "about 2.8 h", "15 to 20 kWh", "over 2 MWh"."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ckptcost.errors import InputError, unknown_name
from ckptcost.plan.claims import (
    AGREES,
    OPEN,
    Claim,
    Fact,
    Span,
    Verdict,
    check,
    following,
    verdict_of,
)
from ckptcost.plan.laws import QUANTITIES, Formula
from ckptcost.scenario.units import parse, split, unit

ABOUT = 0.1
"""an approximate word allows so much to either side"""
_KINDS = {
    "exact": r"exactly\s+|=",
    "about": r"(?:about|approximately|around|roughly|some|nearly|almost)\s+|~",
    "at_least": r"at least\s+|>=",
    "at_most": r"(?:up to|at most|as much as)\s+|<=",
    "over": r"(?:over|more than|above)\s+|>",
    "under": r"(?:less than|under|below)\s+|<",
}
_STRICT = {"over": "low", "under": "high"}
"""the end that itself is excluded"""
_NUMBER = r"[+-]?(?:\d[\d,_]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_TWO = re.compile(
    rf"(?:between\s+)?({_NUMBER})\s*([^\s\d]*)\s*(?:\bto\b|\band\b|-)\s*({_NUMBER})\s*(.*)$", re.S
)
_ONE = re.compile(rf"({_NUMBER})\s*(.*)$", re.S)


def stated_of(raw: Any, name: str, example: str, floor: float = 0.0) -> Fact:
    """A statement as a fact. A number stands for all that round to its last digit, a whole number
    without a unit for itself; an approximate word allows 10 % to either side.

    >>> stated_of("about 2.8 h", "time", "40 s").allowed, stated_of("2.8 h", "time", "40 s").allowed
    (Span(low=9072.0, high=11088.0), Span(low=9900.0, high=10260.0))
    >>> stated_of("over 2 MWh", "energy", "3 kWh").strict, stated_of(100, "saves", "100").allowed
    ('low', Span(low=100.0, high=100.0))
    """
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        raise InputError("is no statement", name, f'write e.g. {name} = "{example}"')
    text = raw if isinstance(raw, str) else f"{raw:,}"
    kind, body = _kind_of(text)
    try:
        low, high, half, unit_text = _numbers(body, example)
    except InputError as error:
        raise error.at(name) from None
    half = 0.0 if kind == "exact" else half
    printed = allowed = Span(low, high)
    if kind in ("over", "at_least"):
        printed = allowed = Span(low, math.inf)
    elif kind in ("under", "at_most"):
        printed = allowed = Span(min(floor, high), high)
    else:
        wide = ABOUT if kind == "about" else 0.0
        allowed = Span(max(low - max(half, wide * low), floor), high + max(half, wide * high))
    soft, uses = kind not in ("", "exact"), frozenset([name])
    return Fact(
        printed, allowed, uses, soft, _STRICT.get(kind, ""), text=text, unit=unit_text, what=name
    )


def _kind_of(text: str) -> tuple[str, str]:
    """The word in front of a number, and the rest."""
    body = text.strip()
    for kind, pattern in _KINDS.items():
        if found := re.match(pattern, body, re.IGNORECASE):
            return kind, body[found.end() :].strip()
    return "", body


def _numbers(body: str, example: str) -> tuple[float, float, float, str]:
    """Both ends, half of the last digit's place of a number that may be rounded, and the unit."""
    if pair := _TWO.match(body):
        unit_text = pair[4].strip()
        low = _si(pair[1], pair[2].strip() or unit_text, example)
        high = _si(pair[3], unit_text, example)
        if low > high:
            problem = f"{pair[0]!r} runs from high to low"
            raise InputError(problem, remedy="write the lower end first")
        return low, high, 0.0, unit_text
    one = _ONE.match(body)
    if not one:
        raise InputError(f"{body!r} cannot be read", remedy=f"write e.g. {example!r}")
    digits, unit_text = one[1].lower(), one[2].strip()
    value = _si(digits, unit_text, example)
    mantissa, _, power = digits.partition("e")
    half = 0.5 * 10.0 ** -len(mantissa.partition(".")[2])
    half = _si(f"{half!r}", unit_text, example) * 10.0 ** int(power or 0)
    is_count = not split(example) and not unit_text and not set(digits) & set(".e")
    return value, value, 0.0 if is_count else half, unit_text


def _si(digits: str, unit_text: str, example: str) -> float:
    return parse(f"{digits.replace(',', '')} {unit_text}".strip(), example)


def meant(verdict: Verdict) -> str:
    """Another reading of a statement with which it agrees, or nothing.

    >>> stated = stated_of("105 GB", "size", "2 TB")
    >>> meant(Verdict("a", "size", stated, stated_of("105.0 GiB", "size", "2 TB"), ""))
    '105 GiB'
    """
    stated = verdict.stated
    binary = re.sub(r"\b([KMGTP])B\b", r"\1iB", stated.text)
    loose = f"about {_kind_of(stated.text)[1]}" if stated.strict else stated.text
    for text in (loose, binary):
        read = stated_of(text, verdict.what, _example_of(text), -math.inf)
        agrees = verdict.follows and verdict_of(read, verdict.follows)[0] == AGREES
        if agrees and text != stated.text:
            return text
    return ""


# --- sheets ---------------------------------------------------------------------------------------

START = 'start with [[claim]], about = "NAS", size = "2 TB", write = "200 MB/s", time = "2.8 h"'
_TOP = ("id", "name", "source", "note", "context", "claim", "holds", "follows")
_OWN = ("id", "about", "note", "source")


@dataclass
class Sheet:
    name: str
    note: str
    claims: dict[str, Claim]
    verdicts: list[Verdict]
    follows: list[Verdict]
    """further formulas over claims, with nothing stated"""


def sheet_of(raw: dict[str, Any], name: str = "") -> Sheet:
    """The claims of a sheet with all that follows from them, and the verdicts."""
    for key in raw.keys() - set(_TOP):
        raise unknown_name("section", key, _TOP)
    context = _stated(raw.get("context", {}), "context")
    claims = _claims(_tables(raw, "claim"), context)
    holds, follows = (
        [_over(table, claims, key) for table in _tables(raw, key)] for key in ("holds", "follows")
    )
    verdicts = [verdict for claim in claims.values() for verdict in check(claim)]
    used = {path for each in holds if each.follows for path in each.follows.uses}
    needed = [v for v in verdicts if v.word != OPEN or v.path not in used]
    title, note = str(raw.get("name", name)), str(raw.get("note", ""))
    return Sheet(title, note, claims, needed + holds, follows)


def _claims(tables: list[dict[str, Any]], context: dict[str, Fact]) -> dict[str, Claim]:
    claims: dict[str, Claim] = {}
    for at, table in enumerate(tables, 1):
        claim = _claim(table, context, f"claim {at}")
        if claim.id in claims:
            raise InputError(f"{claim.id!r} is there twice", f"claim {at}", "give each its own id")
        claims[claim.id] = claim
    if not claims:
        raise InputError("states nothing", remedy=START)
    return claims


def _tables(raw: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = raw.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError("is no list of tables", key, f"write [[{key}]] above each")
    return found


def _stated(table: Any, where: str) -> dict[str, Fact]:
    if not isinstance(table, dict):
        raise InputError("is no table", where, f"write [{where}] and its keys below")
    stated = {key: value for key, value in table.items() if key not in _OWN}
    for key in stated.keys() - QUANTITIES.keys():
        raise unknown_name("quantity", key, QUANTITIES, where)
    try:
        return {key: stated_of(raw, key, QUANTITIES[key].example) for key, raw in stated.items()}
    except InputError as error:
        raise error.at(where) from None


def _claim(table: dict[str, Any], context: dict[str, Fact], where: str) -> Claim:
    about = str(table.get("about", table.get("id", "")))
    if not about:
        raise InputError("does not say what it is about", where, 'add e.g. about = "NAS"')
    name = str(table.get("id", "")) or re.sub(r"\W+", "_", about.lower()).strip("_")
    mine = _stated(table, f"{where} ({about})")
    if not mine:
        raise InputError("states no quantity", where, f"add one of {', '.join([*QUANTITIES][:8])}")
    claim = Claim(name, about, context | mine, frozenset(context.keys() - mine.keys()))
    claim.derive()
    return claim


# --- formulas over claims -------------------------------------------------------------------------


def _over(table: dict[str, Any], claims: dict[str, Claim], where: str) -> Verdict:
    """A formula over several claims, such as a ratio, and what is stated of it, if anything is."""
    for key in ("what", "that", "is") if where == "holds" else ("what", "that"):
        if key not in table:
            raise InputError(f"{key} is missing", where, f'add {key} = "..."')
    what, formula = str(table["what"]), str(table["that"])
    try:
        fact = _value_of(formula, claims)
        if where == "follows":
            fact.unit = str(table.get("unit", ""))
            return Verdict("", what, fact, fact, OPEN, law=formula)
        said = str(table["is"])
        stated = stated_of(said, what, _example_of(said), -math.inf)
    except InputError as error:
        raise error.at(where) from None
    return Verdict("", what, stated, fact, *verdict_of(stated, fact), formula)


def _example_of(text: str) -> str:
    """An example with the dimensions that a statement has itself."""
    body = _kind_of(text)[1]
    found = _TWO.match(body) or _ONE.match(body)
    unit_text = found.groups()[-1].strip() if found else ""
    try:
        return f"1 {unit_text}" if unit(unit_text)[1] else "0.5"
    except InputError:
        return "0.5"


_WITH_UNIT = re.compile(r"(?<![\w.])(\d[\d.]*(?:[eE][+-]?\d+)?)\s*(%|[A-Za-z][\w/]*)")
_PATH = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)")


def _value_of(text: str, claims: Mapping[str, Claim]) -> Fact:
    """A formula over claims, such as "1 - fast.energy / slow.energy", at the ends of its parts."""
    plain = _WITH_UNIT.sub(lambda m: repr(_si(m[1], m[2], _example_of(m[0]))), text)
    try:
        formula = Formula(_PATH.sub(r"\1__\2", plain))  # a place for a number has no dots
    except InputError as error:
        error.where = text
        raise
    known = {name: _known(claims, name, text) for name in sorted(formula.names)}
    words = text
    for name, fact in known.items():
        path = ".".join(name.rsplit("__", 1))
        place = f"({{{name}}})" if " to " in fact.say() and text != path else f"{{{name}}}"
        words = re.sub(rf"(?<![\w.]){re.escape(path)}\b", place, words)
    try:
        found = following(formula, known, what="result", words=f"{words} = {{result}}")
    except ArithmeticError as error:
        raise InputError(f"cannot be computed ({error})", text, "state its quantities") from None
    found.uses = frozenset(
        f"{name.rsplit('__', 1)[0]}.{each}" for name, fact in known.items() for each in fact.uses
    )
    return found


def _known(claims: Mapping[str, Claim], name: str, formula: str) -> Fact:
    """The best value of "nas.energy"."""
    owner, _, quantity = name.rpartition("__") if "__" in name else (name, "", "")
    if owner not in claims:
        raise unknown_name("claim", owner, claims, formula)
    fact = claims[owner].best(quantity)
    if fact is None:
        problem = f"{owner}.{quantity} is neither stated nor follows"
        raise InputError(problem, formula, f"state it in {owner}")
    return fact
