"""One line of a run file: a JSON object whose last key is a checksum of the bytes before it.

Python's float to text and back is exact, so is JSON's. NaN and infinity, which JSON lacks, are
null.
"""

from __future__ import annotations

import json
import math
import re
from binascii import crc32
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

FORMAT: Final = "ckptcost.run"
MAJOR: Final = 1
VERSION: Final = "1.0"
SEAL: Final = 16
"""bytes of `,"c":"01234567"}`"""
MOST_READ: Final = 1e30
"""no meter counts so far, whatever its unit; sums of what is beyond may not be finite"""
LONGEST_DETAIL: Final = 16_384
"""characters; what is longer in a mark's detail is cut, a run file is no place for data"""

Values = tuple[float, ...]


class BadLine(ValueError):
    """A line that cannot be trusted, and why."""


class Raw(NamedTuple):
    """One tick: every meter that was asked, at one timestamp."""

    t_ns: int
    took_ns: tuple[int, ...]
    """by meter: its answer was there so long after t_ns"""
    values: tuple[Values | None, ...]
    """by meter; None: not asked at this tick"""


class Second(NamedTuple):
    """What the ticks of one second come to. A gauge: [mean, min, max, count], or the value that all
    had. A counter: its last value, or [value, ns before t_ns] where the last ticks had no answer.
    null: no answer at all."""

    from_ns: int
    t_ns: int
    """first and last tick"""
    counts: tuple[int | tuple[int, int, int], ...]
    """by meter: how often it was asked, of all these ticks; one that was not asked in the first and
    the last of them has (count, ns before t_ns of the first time, ns before t_ns of the last)"""
    took_ns: tuple[int, ...]
    """by meter: the longest"""
    values: tuple[Sequence[Any] | None, ...]


def begun_ns(took_ns: Sequence[int], values: Sequence[object]) -> list[int]:
    """When each meter of a tick was asked, in ns after the tick's time: one after the other, each
    when the one before had answered.

    >>> begun_ns((3, 0, 28_000, 28_020), ((1.0,), None, (2.0,), (3.0,)))
    [0, 0, 3, 28000]
    """
    begun, now_ns = [], 0
    for took, row in zip(took_ns, values, strict=False):
        begun.append(0 if row is None else min(now_ns, took))
        now_ns = now_ns if row is None else max(now_ns, took)
    return begun


_encode: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_object = json.JSONDecoder().raw_decode
"""what `json.loads` does at last, without its looking for an encoding and for spaces on either
side, which no line of ours has"""
_NOT_JSON = re.compile(r"-?Infinity|NaN")


def _numbers(values: object) -> str:
    text = _encode(values)
    return _NOT_JSON.sub("null", text) if "N" in text or "I" in text else text


def seal_line(body: str) -> bytes:
    """The line of an object's text without its last brace.

    >>> seal_line('{"k":"note"')
    b'{"k":"note","c":"056ba336"}\\n'
    """
    raw = body.encode("utf-8", "replace")
    return b'%s,"c":"%08x"}\n' % (raw, crc32(raw))


def raw_line(tick: Raw) -> bytes:
    return seal_line(
        f'{{"k":"raw","t":{tick.t_ns},"d":{_encode(tick.took_ns)},"v":{_numbers(tick.values)}'
    )


def second_line(second: Second) -> bytes:
    return seal_line(
        f'{{"k":"second","t":{second.t_ns},"from":{second.from_ns},"n":{_encode(second.counts)},'
        f'"d":{_encode(second.took_ns)},"v":{_numbers(second.values)}'
    )


def encode(fields: dict[str, Any]) -> bytes:
    """Any other line. What JSON does not know becomes its text; nothing that a caller puts into a
    mark can raise here."""
    try:
        text = json.dumps(plain(fields), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (ValueError, RecursionError):  # lone surrogates, or an object that lies about itself
        text = json.dumps(
            {key: value for key, value in fields.items() if type(value) in (int, str)},
            separators=(",", ":"),
        )
    return seal_line(text[:-1])


_AS_IT_IS = frozenset({type(None), bool, int})
_DEEPEST = 12


def plain(value: Any, depth: int = 0) -> Any:
    """The same in JSON's own types: NaN is None, what is strange is its text, what is deep or long
    is cut."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is str:
        return value[:LONGEST_DETAIL] + "..." * (len(value) > LONGEST_DETAIL)
    if kind is float:
        return value if math.isfinite(value) else None
    if depth < _DEEPEST:
        if kind is dict:
            return {str(key): plain(item, depth + 1) for key, item in list(value.items())}
        if kind in (list, tuple):
            return [plain(item, depth + 1) for item in value]
    return _strange(value, depth)


def _strange(value: Any, depth: int) -> Any:
    try:
        if isinstance(value, np.generic):
            return plain(value.item(), depth + 1)
        if isinstance(value, float | int):  # an enumeration, say
            return plain(float(value) if isinstance(value, float) else int(value), depth + 1)
        return str(value)[:LONGEST_DETAIL]
    except Exception:  # any __str__ may raise anything, and a mark must not
        return f"<{type(value).__name__}>"


def decode(line: bytes) -> dict[str, Any]:
    """The object of one line without its end of line. Raises BadLine: why it is left out.

    >>> decode(b'{"k":"note","c":"056ba336"}')
    {'k': 'note'}
    """
    body = line[:-SEAL]
    if line[-SEAL : -SEAL + 6] != b',"c":"' or line[-2:] != b'"}':
        raise BadLine("cut off or not a line of a run file")
    if b"%08x" % crc32(body) != line[-SEAL + 6 : -2]:
        raise BadLine("its checksum does not fit")
    try:
        text = body.decode("utf-8", "surrogatepass") + "}"
        fields, end = _object(text)
    except (ValueError, RecursionError) as error:
        raise BadLine("not JSON") from error
    if end != len(text):
        raise BadLine("not JSON")
    if not isinstance(fields, dict) or not isinstance(fields.get("k"), str):
        raise BadLine("no object with a kind")
    if b"\\u" in body or b"\xed" in body:  # half of a letter? file names may be any bytes
        return dict(_whole_letters(fields))
    return fields


def _whole_letters(value: Any) -> Any:
    """The same with halves of letters written out, because no other file takes them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_whole_letters(each) for each in value]
    if isinstance(value, dict):
        return {_whole_letters(key): _whole_letters(each) for key, each in value.items()}
    return value
