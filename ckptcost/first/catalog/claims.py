"""A file of claims, shipped or the user's, to a sheet that the audit can work on. Plain checks;
every complaint has its place.

A claim says "2 TB", "15 to 20 kWh", "about 700 kWh", "over 2 MWh" or "up to 12 %".
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ckptcost.first.catalog import files
from ckptcost.first.catalog.schema import printable
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.audit import CheckedFormula, Claim, Sheet, Stated, unit_of_formula
from ckptcost.first.core.expressions import formula
from ckptcost.first.core.relations import QUANTITIES
from ckptcost.first.core.units import parse
from ckptcost.first.errors import InputError, UnknownName, brief

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

from ckptcost.first.core.intervals import Interval
from ckptcost.first.core.readings import ABOUT
from ckptcost.first.core.units import UNITS
from ckptcost.first.errors import UnitError

MOST_CLAIMS: Final = 100
START: Final = (
    'start with [[claim]], about = "NAS", size = "2 TB", write = "200 MB/s", time = "about 2.8 h"'
)
_TOP: Final = ("id", "name", "source", "note", "context", "claim", "holds", "follows")
_CLAIM: Final = ("id", "about", "note", "source")
_ID = re.compile(r"[a-z][a-z0-9_]*$")


def read(catalog: Catalog, name: str) -> tuple[Sheet, list[tuple[str, bytes]]]:
    """The sheet of a shipped name or of a path, and the user's file it came from."""
    if not name:
        raise InputError(
            "names no claims", remedy="give a file or a shipped name; `ckptcost audit` lists them"
        )
    if name.endswith(".toml") or "/" in name or "\\" in name:
        file: Traversable = Path(name)
        sheet = sheet_of(files.toml_of(file, name, start=START), name)
        return sheet, [(name, files.text_of(file, name).encode())]
    try:
        file, shown = catalog.file_of("claim", name)
    except UnknownName as error:
        if Path(name).exists():
            error.remedy = f"a file needs its ending: {name}.toml or ./{name}"
            raise error.at() from None
        raise
    sheet = sheet_of(files.toml_of(file, shown, start=START), shown)
    if sheet.id != name:
        raise InputError(
            f"id is {sheet.id!r}, the file is called {name!r}",
            where=shown,
            key="id",
            remedy="make them the same",
        )
    return sheet, []


def sheet_of(raw: Any, where: str) -> Sheet:
    """A document as a sheet; the first complaint names the file and the key."""
    try:
        _require_known(raw, _TOP)
        texts = {key: _text(raw, key) for key in ("id", "name", "source", "note")}
        context = _quantities(_table(raw.get("context", {}), "context"), (), "context")
        claims = _claims(raw, context)
        held = _audit_formulas(raw, claims)
        stem = Path(where).stem
        return Sheet(
            texts["id"] or stem, texts["name"] or stem, texts["source"], texts["note"], claims, held
        )
    except InputError as error:
        raise error.at(where) from None


def _claims(raw: dict[str, Any], context: dict[str, Stated]) -> tuple[Claim, ...]:
    found: dict[str, Claim] = {}
    for i, each in enumerate(_list(raw, "claim")):
        key = f"claim.{i + 1}"
        table = _table(each, key)
        own = _quantities(table, _CLAIM, key)
        about = _text(table, "about", key)
        name = _claim_id(table, key, about, f"claim{i + 1}")
        if name in found:
            raise InputError(
                f"{name!r} is there twice",
                key=f"{key}.id",
                remedy='give each claim an id of its own, e.g. id = "nas"',
            )
        if not own:
            raise InputError(
                "claims nothing", key=key, remedy="quantities: " + ", ".join(QUANTITIES)
            )
        shared = {quantity: stated for quantity, stated in context.items() if quantity not in own}
        found[name] = Claim(name, about or name, {**own, **shared}, frozenset(shared))
    if not found:
        raise InputError("holds no claim", remedy=START)
    return tuple(found.values())


def _claim_id(table: dict[str, Any], key: str, about: str, nameless: str) -> str:
    """As given, or made of what the claim is about."""
    slug = re.sub(r"\W+", "_", about.lower(), flags=re.A).strip("_")
    name = _text(table, "id", key) or slug or nameless
    name = name if name[0].isalpha() else f"c_{name}"
    if not _ID.match(name):
        raise InputError(
            f"{brief(name)} is no id", key=f"{key}.id", remedy="use a-z, 0-9 and _, a letter first"
        )
    return name


def _audit_formulas(raw: dict[str, Any], claims: tuple[Claim, ...]) -> tuple[CheckedFormula, ...]:
    found = [
        _audit_formula(_table(each, f"{name}.{i}"), f"{name}.{i}", needs, claims)
        for name, needs in (("holds", ("that", "is")), ("follows", ("that",)))
        for i, each in enumerate(_list(raw, name), start=1)
    ]
    if repeated := [held for i, held in enumerate(found) if held.stated and held in found[:i]]:
        raise InputError(f"{brief(repeated[0].what)} is there twice", key="holds")
    return tuple(found)


def _audit_formula(
    table: dict[str, Any], key: str, needs: tuple[str, ...], claims: tuple[Claim, ...]
) -> CheckedFormula:
    _require_known(table, ("what", "that", "said", "unit", *needs), key)
    for need in needs:
        if need not in table:
            raise InputError(
                "is missing",
                key=f"{key}.{need}",
                remedy='e.g. that = "1 - fast.energy / slow.energy", is = "90 %"',
            )
    that = _text(table, "that", key)
    try:
        held = CheckedFormula(
            _text(table, "what", key) or that, formula(that), None, _text(table, "said", key)
        )
        unit = unit_of_formula(held, claims)
    except InputError as error:
        raise error.at(key=f"{key}.that") from None
    held = held._replace(shown=_display_unit(_text(table, "unit", key), unit, f"{key}.unit"))
    if "is" not in table:
        return held
    try:
        return held._replace(stated=stated_of(table["is"], unit, floor=-math.inf))
    except InputError as error:
        raise error.at(key=f"{key}.is") from None


def _display_unit(text: str, unit: str, key: str) -> str:
    """A unit that the value can be shown in."""
    try:
        if text:
            parse(f"1 {text}", unit)
    except InputError as error:
        raise error.at(key=key) from None
    return text


def _quantities(table: dict[str, Any], besides: tuple[str, ...], key: str) -> dict[str, Stated]:
    _require_known(table, (*besides, *QUANTITIES), key)
    found = {}
    for name, raw in table.items():
        if name in besides:
            continue
        quantity = QUANTITIES[name]
        try:
            stated = stated_of(raw, quantity.unit)
            if stated.printed.low > quantity.most:
                raise InputError(
                    f"{brief(raw)} is more than all of it", remedy="a share is at most 100 %"
                )
        except InputError as error:
            raise error.at(key=f"{key}.{name}") from None
        found[name] = stated
    return found


def _require_known(table: Any, names: tuple[str, ...], key: str = "") -> None:
    for name in table:
        if name not in names:
            raise UnknownName("quantity" if "size" in names else "key", str(name), names, key=key)


def _table(raw: Any, key: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise InputError(
            f"expected a table, got {type(raw).__name__}",
            key=key,
            remedy=f"write [[{key.partition('.')[0]}]] and its keys below",
        )
    return raw


def _list(raw: dict[str, Any], key: str) -> list[Any]:
    found = raw.get(key, [])
    if not isinstance(found, list):
        raise InputError(
            "is one table where a list is wanted",
            key=key,
            remedy=f"write [[{key}]] with two brackets",
        )
    if len(found) > MOST_CLAIMS:
        raise InputError(
            f"{len(found)} of them; an audit takes {MOST_CLAIMS}", key=key, remedy="split the file"
        )
    return found


def _text(table: dict[str, Any], key: str, place: str = "") -> str:
    value = table.get(key, "")
    where = f"{place}.{key}" if place else key
    if not isinstance(value, str):
        raise InputError(f"expected text, got {type(value).__name__}", key=where)
    try:
        return printable(value)
    except InputError as error:
        raise error.at(key=where) from None


MOST: Final = 1e30
_WORDS: Final = (
    ("exact", r"exactly\s+|="),
    (
        "about",
        r"(?:about|approximately|approx\.?|around|roughly|circa|ca\.|some|nearly|almost)\s+|~|≈",
    ),
    ("at_least", r"(?:at least|no less than)\s+|>=|≥"),
    ("at_most", r"(?:up to|at most|as much as|no more than)\s+|<=|≤"),
    ("over", r"(?:over|more than|above|greater than)\s+|>"),
    ("under", r"(?:less than|under|below)\s+|<"),
)
_NUMBER = r"[+-]?(?:\d[\d,_]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?(?![eE][+-]?\d)"
_ONE = re.compile(rf"({_NUMBER})\s*(.*)$", re.S)
_TWO = re.compile(
    rf"(?:between\s+)?({_NUMBER})\s*([^\s\d]*?(?:/\w+)?)\s*"
    rf"(?:\bto\b|\band\b|-|\u2013|\u2014)\s*({_NUMBER})\s*(.*)$",
    re.S,
)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(?:\.\d+)?$")


def stated_of(raw: Any, unit: str, floor: float = 0.0) -> Stated:
    """A stated value in base units. `floor` is the least it can be, which "less than" and "up to"
    reach down to.

    A range is taken as it stands. A single number stands for all that round to its last digit, a
    whole number without a unit for itself, and an approximate word allows 10 % to either side.

    >>> stated_of("about 2.8 h", "s").printed, stated_of("2.8 h", "s").allowed
    (Interval(low=10080.0, high=10080.0), Interval(low=9900.0, high=10260.0))
    """
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise UnitError(f"expected a quantity such as {UNITS[unit][1]!r}, got {type(raw).__name__}")
    text = raw if isinstance(raw, str) else repr(raw)
    if len(text) > 200:
        raise UnitError(
            "a quantity of more than 200 characters", remedy=f"write e.g. {UNITS[unit][1]!r}"
        )
    kind, body = _kind_of_statement(text)
    pair = _TWO.match(body)
    if pair:
        if kind not in ("", "about", "exact", "at_most"):
            raise InputError(
                f"{brief(text)} is a range and a bound at once",
                remedy='write e.g. "15 to 20 kWh" or "over 15 kWh"',
            )
        return _range(text, pair, unit, kind, floor)
    one = _ONE.match(body)
    if not one:
        parse(body, unit)  # the unit's own complaint
        raise UnitError(
            f"{brief(text)} cannot be read",
            remedy=f'write e.g. {UNITS[unit][1]!r} or "15 to 20 kWh"',
        )
    return _single_value(text, one[1], one[2], unit, kind, floor)


def _kind_of_statement(text: str) -> tuple[str, str]:
    """What its first words make of a statement, "" where there are none, and the rest."""
    body, kinds = text.strip(), []
    while word := next(
        ((kind, found) for kind, said in _WORDS if (found := re.match(said, body, re.I))), None
    ):
        kinds.append(word[0])
        body = body[word[1].end() :].strip()
    if len(kinds) > 1 and set(kinds) - {"about"}:
        raise InputError(
            f"{brief(text)} says two things at once",
            remedy='write one of "about", "over", "at least", "up to", "less than"',
        )
    return kinds[0] if kinds else "", body


def _single_value(
    text: str, digits: str, unit_text: str, unit: str, kind: str, floor: float
) -> Stated:
    value = _parse_number(digits, unit_text, unit, text, floor)
    shown = unit_text.strip()
    if kind in ("over", "at_least"):
        bound = Interval(value, math.inf)
        return Stated(text, bound, bound, shown, True, "low" if kind == "over" else "")
    if kind in ("under", "at_most"):
        bound = Interval(min(floor, value), value)
        return Stated(text, bound, bound, shown, True, "high" if kind == "under" else "")
    exact = kind == "exact" or _counts(digits, unit_text, unit)
    half = 0.0 if exact else _half_digit(digits, unit_text, unit)
    if kind == "about":
        half = max(half, ABOUT * abs(value))
    allowed = Interval(max(value - half, floor), value + half)
    return Stated(text, Interval(value, value), allowed, shown, kind == "about")


def _range(text: str, pair: re.Match[str], unit: str, kind: str, floor: float) -> Stated:
    low_unit, high_unit = pair[2].strip() or pair[4].strip(), pair[4].strip()
    low, high = (
        _parse_number(pair[1], low_unit, unit, text, floor),
        _parse_number(pair[3], high_unit, unit, text, floor),
    )
    if low > high:
        raise InputError(f"{brief(text)} ends below its start", remedy="write the lower end first")
    printed = Interval(floor if kind == "at_most" and math.isfinite(floor) else low, high)
    wide = ABOUT if kind == "about" else 0.0
    allowed = Interval(
        max(printed.low - wide * abs(printed.low), floor), printed.high + wide * abs(printed.high)
    )
    return Stated(text, printed, allowed, high_unit, kind in ("about", "at_most"))


def _parse_number(digits: str, unit_text: str, unit: str, text: str, floor: float) -> float:
    if "," in digits and not _THOUSANDS.match(digits):
        raise UnitError(
            f"{brief(text)} has a comma in its number",
            remedy="write a decimal point, and commas between thousands only",
        )
    value = parse(f"{digits.replace(',', '')} {unit_text}".strip(), unit)
    if value < floor:
        raise InputError(f"{brief(text)} is negative", remedy="a quantity here is 0 or more")
    if abs(value) > MOST:
        raise InputError(f"{brief(text)} is out of range", remedy="no checkpoint has that")
    return value


def _counts(digits: str, unit_text: str, unit: str) -> bool:
    """A whole number without a unit counts things."""
    return not UNITS[unit][0] and not unit_text.strip() and not set(digits) & set(".eE")


def _half_digit(digits: str, unit_text: str, unit: str) -> float:
    """Half a unit of the last digit written."""
    mantissa, _, power = digits.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    return abs(parse(f"{0.5 * 10.0**-places!r} {unit_text}".strip(), unit)) * 10.0 ** int(
        power or 0
    )
