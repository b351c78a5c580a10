"""A figure: a value with its range, what it rests on and who says so; the reader of a section."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ckptcost.errors import InputError, unknown_name
from ckptcost.scenario.schema import KEYS, is_figure
from ckptcost.scenario.units import parse

BASES = ("measured", "published", "derived", "vendor", "user", "assumed")
"""from the firmest to the softest; a product is as soft as its softer factor"""
WORDS = ("basis", "source", "note", "date", "boundary")
"""what a figure's table may say besides value, low and high"""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that somebody stands for.

    A figure that `follows` others was taken from them. Its low and high are then its own
    uncertainty, while the others have their stated values; when they change, it changes with them.
    """

    value: float
    low: float
    high: float
    basis: str = ""
    source: str = ""
    note: str = ""
    date: str = ""
    boundary: str = ""
    text: str = ""
    """as it was written"""
    origin: str = ""
    """the file, flag or catalogue entry that says so"""
    follows: tuple[str, ...] = ()
    """paths, such as "tier.write", of the figures that this one was taken from"""

    @property
    def ranged(self) -> bool:
        return self.low < self.high

    def or_else(self, basis: str, source: str, origin: str) -> Figure:
        """With its file's basis and source where it has none of its own."""
        basis, source = self.basis or basis, self.source or source
        return replace(self, basis=basis, source=source, origin=self.origin or origin)

    def scaled(self, factor: float) -> Figure:
        """So many times as much, its range too."""
        value, low, high = (end * factor for end in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high, text="")

    def fixed(self) -> Figure:
        """Without a range."""
        return replace(self, low=self.value, high=self.value)

    def at(self, value: float) -> Figure:
        """The same figure at another value, without a range."""
        return replace(self, value=value, low=value, high=value, text="", follows=())

    def taken_from(self, path: str, note: str, origin: str) -> Figure:
        """An assumed figure that equals this one, and follows it."""
        fixed = self.fixed()
        return replace(fixed, basis="assumed", note=note, text="", origin=origin, follows=(path,))


def product(factors: dict[str, Figure], note: str, origin: str) -> Figure:
    """A figure that follows all of its factors, and is as soft as the softest."""
    value = prod(each.value for each in factors.values())
    basis = max((each.basis for each in factors.values()), key=(*BASES, "").index)
    source = "; ".join(dict.fromkeys(each.source for each in factors.values() if each.source))
    follows = tuple(factors)
    return Figure(value, value, value, basis, source, note, origin=origin, follows=follows)


def figure_of(raw: Any, section: str, key: str) -> Figure:
    """From "30 GB/s", or from a table with value, low, high, basis, source, note, date."""
    said = dict(raw) if isinstance(raw, dict) else {"value": raw}
    words = {word: str(said.pop(word)) for word in WORDS if word in said}
    if words.get("basis", "user") not in BASES:
        raise unknown_name("basis", words["basis"], BASES)
    text = said.get("value", "")
    ends = {"low": text, "high": text} | said
    if ends.keys() != {"value", "low", "high"}:
        given = ", ".join(map(str, said)) or "nothing"
        remedy = f'write {key} = {{ value = "...", low = "...", high = "..." }}'
        raise InputError(f"a figure has value, low and high, not {given[:60]}", remedy=remedy)
    value, low, high = (_number(ends[end], section, key) for end in ("value", "low", "high"))
    if not low <= value <= high:
        problem = f"the value {str(text)[:30]!r} is not between its low and high ends"
        raise InputError(problem, remedy="low <= value <= high must hold")
    return Figure(value, low, high, text=str(text), **words)  # type: ignore[arg-type]


def _number(said: Any, section: str, key: str) -> float:
    """In SI, within the limits of the figure; or what a word stands for, such as "all"."""
    about = KEYS[section][key].metadata
    if isinstance(said, str) and said in about["words"]:
        return float(about["words"][said])
    if not isinstance(said, str | int | float):
        raise InputError(f"{_kind(said)} is no quantity", remedy=f"write e.g. {about['example']!r}")
    if key == "gpu_price" and re.fullmatch(r"\$.*|.*USD\s*", str(said)):
        said = f"{str(said).strip()}/GPU-h"  # it is for an hour unless it says otherwise
    value = parse(said, about["example"])
    if not about["least"] <= value <= about["most"]:
        remedy = f"{key} must be between {about['least']:g} and {about['most']:g} (SI units)"
        raise InputError(f"{str(said)[:30]!r} is out of range", remedy=remedy)
    return value


def _kind(value: Any) -> str:
    """What a value of TOML is called."""
    kinds = {dict: "a table", list: "a list", int: "a number", float: "a number"}
    return kinds.get(type(value), "a date or time")


def read_section(section: str, raw: Any, where: str = "") -> dict[str, Any]:
    """The figures and words of one section; a complaint names the key."""
    if not isinstance(raw, dict):
        raise InputError(f"{section} is a section", where, f"write [{section}] and its keys below")
    said = {}
    for key, value in raw.items():
        if key not in KEYS[section]:
            raise unknown_name(f"key in {section}", key, KEYS[section], where)
        try:
            said[key] = (figure_of if is_figure(section, key) else _word)(value, section, key)
        except InputError as error:
            error.at(f"{section}.{key}")
            raise (error.at(where) if where else error) from None
    return said


def _word(value: Any, section: str, key: str) -> str | bool:
    """One of the words that a key knows, or any text."""
    options = KEYS[section][key].metadata["options"]
    if not isinstance(value, str | bool):
        raise InputError(f"{_kind(value)} is no name", remedy='write it in quotes: "..."')
    value = {"true": True, "false": False}.get(str(value).lower(), value)
    if isinstance(value, bool) and not options:
        raise InputError("true or false is no name", remedy='write it in quotes: "..."')
    if options and value not in options:
        raise unknown_name("choice", str(value), map(str, options))
    if isinstance(value, str) and not value.isprintable():
        raise InputError(f"{value[:40]!r} has letters that cannot be printed", remedy="remove them")
    return value
