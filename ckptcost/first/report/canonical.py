"""Bytes that mean the same everywhere: RFC 8785 canonical JSON for hashes, an indented form for
files.

Numbers are rounded to 12 significant digits on the way into a document, so that the last bit of
somebody's exp() changes neither a file nor a hash.
"""

from __future__ import annotations

import hashlib
import json
import math
from json.encoder import encode_basestring as _quoted
from typing import Any

from ckptcost.first.errors import IN_JSON


def tidy(value: float) -> float | None:
    """12 significant digits; NaN and infinity become null."""
    value = float(value)
    if not math.isfinite(value):
        return None
    return float(f"{value:.12g}") + 0.0


def _number(value: float) -> str:
    """A finite float as ECMAScript prints it, which RFC 8785 asks for."""
    if value == int(value) and abs(value) < 2**53:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text.removesuffix(".0")
    mantissa, power = text.split("e")[0], int(text.split("e")[1])
    sign, digits = ("-" if mantissa.startswith("-") else ""), mantissa.lstrip("-").replace(".", "")
    digits = digits.rstrip("0") or "0"
    if -7 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if 0 < power < 21:
        return sign + digits.ljust(power + 1, "0")
    tail = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"


def canonical(value: Any) -> str:
    """RFC 8785 text of a JSON value.

    >>> canonical({"b": 1.0, "a": [1e-7, 1e21, True, None, "x"]})
    '{"a":[1e-7,1e+21,true,null,"x"],"b":1}'
    """
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        # of ASCII both orders are one, and the encoding would be a tenth of the time
        keys = sorted(value) if "".join(value).isascii() else sorted(value, key=_utf16)
        return "{" + ",".join([f"{_quoted(key)}:{canonical(value[key])}" for key in keys]) + "}"
    return f"[{','.join(_numbers(value) or map(canonical, value))}]"


_WORDS = {None: "null", True: "true", False: "false"}


def _numbers(value: Any) -> list[str]:
    """A column of numbers: most of them look alike in both languages, and calls would be most of
    the time. Nothing where it is none, or short."""
    if (
        type(value) is not list
        or len(value) <= 64
        or any(type(item) is not float for item in value)
    ):
        return []
    return [
        _number(item) if "e" in said or not item else said.removesuffix(".0")
        for item, said in zip(value, map(repr, value), strict=True)
    ]


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def sha256(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def pretty(value: Any) -> str:
    """JSON for a file: indented, what holds nothing but plain values on a line of its own where
    that is no long one.

    >>> print(
    ...     pretty({"energy": {"value": 1.5, "unit": "kWh"}, "of": [{"id": "a", "to": [1]}]}),
    ...     end="",
    ... )
    {
     "energy": {"value": 1.5, "unit": "kWh"},
     "of": [
      {
       "id": "a",
       "to": [1]
      }
     ]
    }
    """
    return _laid_out(value, "\n").translate(IN_JSON) + "\n"


def _laid_out(value: Any, end: str) -> str:
    within = list(value.values() if isinstance(value, dict) else value) if _holds(value) else []
    line = "" if any(map(_holds, within)) else _on_a_line(value)
    if not within or (line and len(line) <= _LINE):
        return line
    inner = end + " "
    told = [_laid_out(each, inner) for each in within]
    opened, closed = "[]"
    if isinstance(value, dict):
        opened, closed = "{}"
        told = [f"{_quoted(key)}: {each}" for key, each in zip(value, told, strict=True)]
    return opened + inner + f",{inner}".join(told) + end + closed


def _holds(value: Any) -> bool:
    """Whether there is anything in it."""
    return isinstance(value, dict | list) and bool(value)


_LINE = 160
_on_a_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
