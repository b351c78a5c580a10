"""Interruptions as a user gives them: a TOML file of kinds, a CSV of recorded times."""

from __future__ import annotations

import csv
import math
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog.files import require_known, require_text, tables_in, text_of, toml_of
from ckptcost.first.catalog.schema import flag_value, printable
from ckptcost.first.core.units import DAY_S, HOUR_S, parse
from ckptcost.first.errors import Argument, InputError, UnknownName, brief

MOST_KINDS = 50
MOST_TRACE_BYTES = 50_000_000
_KEYS = (
    "name",
    "share",
    "rate",
    "every",
    "tier",
    "notice",
    "detect",
    "reschedule",
    "init",
    "warmup",
)
_START = "docs/howto/simulate.md shows one"


class SaidKind(NamedTuple):
    """One kind as its file says it; None is the scenario's own."""

    name: str
    share: float | None
    """of the scenario's failures"""
    rate_per_s: float | None
    """on top of them"""
    every_s: float | None
    tier: int
    notice_s: float
    detect_s: float | None
    reschedule_s: float | None
    init_s: float | None
    warmup_s: float | None


class Trace(NamedTuple):
    """Recorded interruptions, in order, from the beginning of the record."""

    times_s: tuple[float, ...]
    kinds: tuple[str, ...]
    """empty where the record does not tell"""
    span_s: float


def read_kinds(path: str) -> tuple[SaidKind, ...]:
    """The `[[kind]]` tables of a file."""
    raw = toml_of(Path(path), path, start=_START)
    try:
        tables = tables_in(raw, "kind", _START)
        if len(tables) > MOST_KINDS:
            raise InputError(f"has more than {MOST_KINDS} kinds")
        kinds = tuple(_kind(table, f"kind.{i}") for i, table in enumerate(tables, start=1))
        _check_together(kinds)
        return kinds
    except InputError as error:
        raise error.at(path) from None


def _check_together(kinds: tuple[SaidKind, ...]) -> None:
    names = [kind.name for kind in kinds]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two kinds are called {brief(twice)}")
    if sum(kind.share or 0.0 for kind in kinds) > 1.0 + 1e-9:
        raise InputError(
            "the shares of the kinds add up to more than 1",
            key="share",
            remedy="they are parts of the scenario's failures",
        )


def _kind(raw: dict[str, Any], key: str) -> SaidKind:
    try:
        require_known(raw, _KEYS, "key of a kind")
        name = require_text(raw, "name")
        if len({"share", "rate", "every"} & raw.keys()) != 1:
            raise InputError("how often is not said", remedy="give one of share, rate and every")
        tier = raw.get("tier", 1)
        if isinstance(tier, bool) or tier not in (1, 2, 3):
            raise InputError(
                f"{brief(tier)} is no tier",
                key="tier",
                remedy="1, 2 or 3: the first tier whose copy survives",
            )
        share = _value(raw, "share", "")
        if share is not None and share > 1:
            raise InputError(
                f"{brief(raw['share'])} is more than all", key="share", remedy='e.g. "20 %"'
            )
        every_s = _value(raw, "every", "s")
        if every_s == 0:
            raise InputError("must be more than 0 s", key="every")
        pieces = {
            piece: _value(raw, piece, "s") for piece in ("detect", "reschedule", "init", "warmup")
        }
        notice_s = _value(raw, "notice", "s")
        return SaidKind(
            printable(name),
            share,
            _value(raw, "rate", "per_s"),
            every_s,
            tier,
            notice_s or 0.0,
            *pieces.values(),
        )
    except InputError as error:
        error.key = ".".join(filter(None, (key, error.key)))
        raise


def _value(raw: dict[str, Any], key: str, unit: str) -> float | None:
    if key not in raw:
        return None
    try:
        value = parse(raw[key], unit)
        if not 0 <= value <= 1e12:
            raise InputError(f"{brief(raw[key])} is out of range", remedy="0 to 1e12 in base units")
        return value
    except InputError as error:
        raise error.at(key=key) from None


_TIMES = {"time_s": 1.0, "time_min": 60.0, "time_h": HOUR_S, "time_days": DAY_S}


def read_trace(path: str, span: str | None) -> Trace:
    """A CSV with a column time_s, time_min, time_h, time_days or timestamp (ISO 8601), and perhaps
    kind; lines of # may precede it."""
    lines = text_of(Path(path), path, MOST_TRACE_BYTES, start=_START).splitlines(keepends=True)
    remarks = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    try:
        return _trace_of(csv.DictReader(lines[remarks:]), path, span, remarks)
    except csv.Error as error:
        raise InputError(f"is no table ({error})", where=path) from None


def _trace_of(reader: csv.DictReader[str], path: str, span: str | None, remarks: int) -> Trace:
    columns = [name.strip() for name in reader.fieldnames or ()]
    column = next((name for name in columns if name in (*_TIMES, "timestamp")), None)
    if column is None:
        known = ", ".join((*_TIMES, "timestamp"))
        raise InputError(
            "has no column of times",
            where=path,
            key=f"line {remarks + 1}",
            remedy=f"name it one of {known}",
        )
    found = _rows_of(reader, column, path, remarks)
    if not found:
        raise InputError("holds no interruption", where=path, remedy="one row each")
    times_s, kinds = zip(*sorted(found, key=itemgetter(0)), strict=True)
    if column == "timestamp":
        times_s = tuple(time_s - times_s[0] for time_s in times_s)
    return Trace(times_s, kinds if any(kinds) else (), _span_s(times_s, span, path))


def _rows_of(
    reader: csv.DictReader[str], column: str, path: str, remarks: int
) -> list[tuple[float, str]]:
    """Time and kind of each row."""
    found: list[tuple[float, str]] = []
    zoned: set[bool] = set()
    for number, row in enumerate(reader, start=remarks + 2):
        cells = {(name or "").strip(): value for name, value in row.items() if name is not None}
        try:
            if None in row or None in row.values():
                raise InputError("has more or fewer cells than the header")
            said = str(cells[column]).strip()
            found.append((_time_s(said, column), str(cells.get("kind", "")).strip()))
            zoned.add(column == "timestamp" and datetime.fromisoformat(said).tzinfo is not None)
            if len(zoned) > 1:
                raise InputError(
                    "some times have a zone and others have none",
                    remedy="give all of them one, or none",
                )
        except InputError as error:
            raise error.at(path, f"line {number}") from None
    return found


def _span_s(times_s: tuple[float, ...], span: str | None, path: str) -> float:
    """How long the record is; one mean gap after the last event where it is not said, so that the
    rate is kept when the record repeats."""
    last_s = times_s[-1]
    if span is not None:
        span_s = flag_value(Argument("trace_span"), span, "s")
    else:
        span_s = last_s + (last_s / len(times_s) if last_s else 0.0)
    if span_s > last_s:
        return span_s
    raise InputError(
        "ends with its last interruption",
        where=Argument("trace_span") if span is not None else path,
        remedy=(
            'give the length of the record, e.g. --trace-span "54 days", longer than its last time'
        ),
    )


def _time_s(text: str, column: str) -> float:
    try:
        if column == "timestamp":
            moment = datetime.fromisoformat(text)
            # without a zone every day has 24 hours, whatever the clock of this machine does in
            # spring
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        time_s = float(text) * _TIMES[column]
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"{brief(text)} is no {'ISO 8601 time' if column == 'timestamp' else 'number'}"
        ) from None
    if not math.isfinite(time_s) or time_s < 0:
        raise InputError(f"{brief(text)} is no time since the beginning", remedy="0 or more")
    return time_s


LAWS = ("exponential", "weibull", "weibull-nodes")


def law_of(said: str) -> tuple[str, float, float | None]:
    """(law, shape, mean gap in seconds) from "exponential", "weibull:0.7" or "weibull:0.7:3 h".

    >>> law_of("weibull:0.7:3 h"), law_of("exponential:6 h")
    (('weibull', 0.7, 10800.0), ('exponential', 1.0, 21600.0))
    """
    law, *rest = [part.strip() for part in said.split(":")]
    if law not in LAWS:
        raise UnknownName("law", law, LAWS, where=Argument("failures"))
    try:
        shape = 1.0
        if law != "exponential":
            if not rest:
                raise InputError("a Weibull law needs its shape", remedy="e.g. weibull:0.7")
            shape = parse(rest.pop(0), "")
        mean_s = parse(rest.pop(0), "s") if rest else None
        if rest or (mean_s is not None and not mean_s > 0):
            raise InputError(
                f"{brief(said)} is no law", remedy='e.g. weibull:0.7 or "weibull:0.7:3 h"'
            )
    except InputError as error:
        raise error.at(Argument("failures")) from None
    return law, shape, mean_s
