"""What a file may say: every key, its unit and its limits come from the key table and stand there
only.

Plain checks, because they run at every start: pydantic, which judges reports, takes 90 ms to import
(docs/adr/0003).
"""

from __future__ import annotations

import unicodedata
from typing import Any, NamedTuple

from ckptcost.first.catalog.figures import BASES, Figure, figure_of
from ckptcost.first.catalog.keys import (
    CADENCES,
    FAILURE_RATES,
    KEYS,
    LIMITS,
    SECTIONS,
    WORDS,
    meaning_of,
    unit_of,
)
from ckptcost.first.core.units import UNITS, parse
from ckptcost.first.errors import InputError, UnknownName, brief

MOST_LETTERS = 4000


def _figure_within_limits(section: str, key: str, raw: Any) -> Figure:
    if key.endswith("keep_last") and raw == "all":
        return Figure(float("inf"), text="all")
    figure = figure_of(raw, unit_of(section, key))
    for value in (figure.value, figure.low, figure.high):
        if value is not None:
            within_limits(section, key, value, repr(raw) if isinstance(raw, str) else f"{value:g}")
    return figure


def within_limits(section: str, key: str, value: float, shown: str) -> None:
    """A figure outside the key's limits is a slip of the pen."""
    least, inclusive, most = LIMITS.get(key, (0.0, True, 1e30))
    if not ((least <= value if inclusive else least < value) and value <= most):
        bound = f"{'at least' if inclusive else 'more than'} {least:g}" + (
            f" and at most {most:g}" if most < 1e9 or value > most else ""
        )
        raise InputError(
            f"{shown[:60]} is out of range",
            remedy=f"{key} must be {bound} {unit_of(section, key)}".rstrip(),
        )


def _word(allowed: tuple[Any, ...], raw: Any) -> Any:
    if allowed in ((str,), (bool,)):
        if not isinstance(raw, allowed[0]):
            raise InputError(
                f"{brief(raw)} is not {'text' if allowed == (str,) else 'true or false'}"
            )
        return printable(raw) if isinstance(raw, str) else raw
    if raw not in allowed:
        raise UnknownName("choice", str(raw), allowed)
    return raw


def _text(raw: dict[str, Any], key: str, needed: bool = False) -> str:
    """A text of the header, "" when it is absent."""
    value = raw.get(key, "")
    if not isinstance(value, str) or (needed and not value):
        raise InputError(
            f"expected text, got {type(value).__name__}" if key in raw else "is missing", key=key
        )
    try:
        return value if key == "note" and value.isascii() else printable(value)
    except InputError as error:
        raise error.at(key=key) from None


def printable(value: str) -> str:
    """A text that can be shown on a terminal and written to a file."""
    if len(value) > MOST_LETTERS:
        raise InputError(f"is longer than {MOST_LETTERS:,} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{brief(value)} is not text in UTF-8") from None
    if any(unicodedata.category(letter) == "Cc" for letter in value):
        raise InputError(
            f"{brief(value)} holds a control character",
            remedy="write it on one line, without escape sequences",
        )
    return value


def _only(raw: Any, known: tuple[str, ...], key: str, what: str = "key") -> dict[str, Any]:
    """A table with no key that is not known."""
    if not isinstance(raw, dict):
        raise InputError(f"expected a table, got {type(raw).__name__}", key=key)
    for name in raw:
        if name not in known:
            raise UnknownName(what, str(name), known, key=key)
    return raw


def section_values(section: str, raw: Any, besides: tuple[str, ...] = ()) -> dict[str, Any]:
    """The figures and words of one section; the first complaint names its key."""
    if not isinstance(raw, dict):
        raise InputError(
            f"is a section, not {type(raw).__name__}",
            remedy=f"write [{section}] and its keys below",
        )
    values: dict[str, Any] = {}
    for key, given in raw.items():
        try:
            if key in KEYS[section]:
                values[key] = _figure_within_limits(section, key, given)
            elif key in WORDS[section]:
                values[key] = _word(WORDS[section][key], given)
            else:
                raise UnknownName(
                    f"key in {section}", str(key), (*KEYS[section], *WORDS[section], *besides)
                )
        except InputError as error:
            error.key = error.key or (
                ""
                if isinstance(error, UnknownName) and error.problem.startswith("no key in")
                else str(key)
            )
            raise
    return values


class ScenarioFile(NamedTuple):
    """A scenario: any sections, each optional, over the scenario it extends."""

    name: str
    extends: str
    basis: str
    source: str
    compare_tiers: tuple[str, ...]
    compare_saves: tuple[float, ...]
    sections: dict[str, dict[str, Any]]


_SCENARIO_TEXTS = ("id", "name", "note", "extends", "basis", "source")
_COMPARE = ("tier", "saves")


def read_scenario(raw: Any, where: str) -> ScenarioFile:
    """A scenario document; the first complaint names the file, the key, what was expected and the
    remedy."""
    try:
        raw = _only(raw, ("schema_version", *_SCENARIO_TEXTS, "compare", *SECTIONS), "")
        if raw.get("schema_version", 1) != 1 or isinstance(raw.get("schema_version"), bool):
            raise InputError(
                f"{raw['schema_version']!r} is not a version this program reads",
                key="schema_version",
                remedy="it reads 1",
            )
        texts = {key: _text(raw, key) for key in _SCENARIO_TEXTS}
        tiers, saves = _compare(raw.get("compare", {}))
        sections = {}
        for section in SECTIONS:
            if section in raw:
                try:
                    sections[section] = section_values(section, raw[section])
                except InputError as error:
                    error.key = ".".join(filter(None, (section, error.key)))
                    raise
        _basis(texts["basis"])
        return ScenarioFile(
            texts["name"], texts["extends"], texts["basis"], texts["source"], tiers, saves, sections
        )
    except InputError as error:
        raise error.at(where) from None


def _compare(raw: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    _only(raw, _COMPARE, "compare")
    for key in _COMPARE:
        if not isinstance(raw.get(key, []), list):
            raise InputError(
                "expected a list",
                key=f"compare.{key}",
                remedy=(
                    'e.g. tier = ["nas-hdd", "generic-pfs"]'
                    if key == "tier"
                    else "e.g. saves = [1, 100, 1000]"
                ),
            )
    if not all(isinstance(tier, str) for tier in raw.get("tier", [])):
        raise InputError("expected a list of tier ids", key="compare.tier")
    return tuple(raw.get("tier", [])), tuple(
        saves_of(each, "compare.saves") for each in raw.get("saves", [])
    )


def saves_of(raw: Any, key: str) -> float:
    """A number of saves in a run, as a flag or a file gives it."""
    try:
        return _figure_within_limits("policy", "saves", raw).value
    except InputError as error:
        raise error.at(key=key) from None


def flag_value(where: str, said: str, unit: str) -> float:
    """A quantity that a flag or a parameter gives."""
    try:
        return parse(said, unit)
    except InputError as error:
        raise error.at(where) from None


def _basis(basis: str) -> None:
    if basis and basis not in BASES:
        raise UnknownName("basis", basis, BASES, key="basis")


class CheckpointClaim(NamedTuple):
    """What somebody says one checkpoint takes; shown beside the model, never an input to it."""

    what: str
    size: str
    value: str
    low: str | None
    high: str | None
    source: str
    note: str


CLAIMED = {"energy": "j", "time": "s"}


def _claim(raw: Any, key: str) -> CheckpointClaim:
    """A claim whose quantities parse, so that showing it cannot fail."""
    raw = _only(raw, ("what", "size", "value", "low", "high", "basis", "source", "note"), key)
    try:
        for name in ("what", "size", "value"):
            _text(raw, name, needed=True)
        if raw["what"] not in CLAIMED:
            raise UnknownName("kind of claim", raw["what"], CLAIMED, key="what")
        if not parse(raw["size"], "bytes") > 0:
            raise InputError("a claim about no bytes", key="size", remedy='e.g. "2 TB"')
        for name in ("value", "low", "high"):
            if name in raw:
                parse(raw[name], CLAIMED[raw["what"]])
        return CheckpointClaim(
            raw["what"],
            raw["size"],
            raw["value"],
            raw.get("low"),
            raw.get("high"),
            _text(raw, "source"),
            _text(raw, "note"),
        )
    except InputError as error:
        error.key = ".".join(filter(None, (key, error.key)))
        raise


class EntityFile(NamedTuple):
    """A catalogue file: who it is, the figures and words of its section, and what else is known."""

    id: str
    name: str
    kind: str
    note: str
    basis: str
    source: str
    about: dict[str, Any]
    claims: tuple[CheckpointClaim, ...]
    values: dict[str, Any]


_ENTITY_TEXTS = ("id", "name", "kind", "note", "basis", "source")


def read_entity(section: str, raw: Any, where: str) -> EntityFile:
    """A catalogue file."""
    try:
        texts = {key: _text(raw, key, needed=key in ("id", "name")) for key in _ENTITY_TEXTS}
        _basis(texts["basis"])
        about, claims = raw.get("about", {}), raw.get("claim", [])
        if not isinstance(about, dict) or not isinstance(claims, list):
            raise InputError(
                "about is a table and claim a list of tables",
                key="about" if not isinstance(about, dict) else "claim",
            )
        own = (*_ENTITY_TEXTS, "about", "claim")
        values = section_values(
            section, {key: value for key, value in raw.items() if key not in own}, own
        )
        said = tuple(_claim(each, f"claim.{i}") for i, each in enumerate(claims))
        return EntityFile(
            texts["id"],
            texts["name"],
            texts["kind"],
            texts["note"],
            texts["basis"],
            texts["source"],
            about,
            said,
            values,
        )
    except InputError as error:
        raise error.at(where) from None


def _figure_schema(section: str, key: str) -> dict[str, Any]:
    unit = unit_of(section, key)
    plain: dict[str, Any] = (
        {"type": "string", "examples": [UNITS[unit][1]]}
        if UNITS[unit][0]
        else {"type": ["string", "number"]}
    )
    words = {name: {"type": "string"} for name in ("source", "boundary", "note", "date")}
    table = {
        "type": "object",
        "additionalProperties": False,
        "required": ["value"],
        "properties": {
            "value": plain,
            "low": plain,
            "high": plain,
            "basis": {"enum": list(BASES)},
            **words,
        },
    }
    return {"anyOf": [plain, table], "description": meaning_of(section, key)}


def scenario_json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario file, for editors."""
    properties: dict[str, Any] = {
        "schema_version": {"const": 1},
        **{key: {"type": "string", "maxLength": MOST_LETTERS} for key in _SCENARIO_TEXTS},
    }
    properties["compare"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "tier": {"type": "array", "items": {"type": "string"}},
            "saves": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}},
        },
    }
    for section in SECTIONS:
        words = {
            word: (
                {"type": "string"}
                if allowed == (str,)
                else {"type": "boolean"}
                if allowed == (bool,)
                else {"enum": list(allowed)}
            )
            for word, allowed in WORDS[section].items()
        }
        figures = {key: _figure_schema(section, key) for key in KEYS[section]}
        properties[section] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {**words, **figures},
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ckptcost scenario",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def exclusive_rates(keys: set[str], where: str) -> None:
    """The time between failures of the whole job, or rates that give it."""
    said = sorted(keys & set(FAILURE_RATES))
    if "mtbf" in keys and said:
        raise InputError(
            f"mtbf and {' and '.join(said)} contradict each other",
            where=where,
            key="failures",
            remedy="give failures.mtbf, or rates",
        )


def exclusive_cadence(keys: set[str], where: str) -> None:
    """One cadence at a time."""
    said = sorted(keys & {*CADENCES, "optimal"})
    if len(said) > 1:
        raise InputError(
            f"{' and '.join(said)} contradict each other",
            where=where,
            key="policy",
            remedy="give one of " + ", ".join((*CADENCES, "optimal")),
        )
