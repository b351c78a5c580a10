"""JSON of a file, and one sentence for each way in which it is none. A key that comes twice is
refused: readers differ on which counts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from ckptcost.catalog.files import text_of
from ckptcost.errors import InputError, brief

_LARGE = re.compile(r"\d[eE]\+?\d{3}|\d{300}")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(source: str, most_bytes: int) -> Any:
    """What is in the file."""
    text = text_of(Path(source), source, most_bytes)
    try:
        found = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
        if isinstance(found, dict) and _LARGE.search(text):  # few files: it takes time
            json.loads(text, parse_float=_no_infinity)
        if _HALF.search(text):
            _refuse_halves(found)
        return found
    except RecursionError:
        raise InputError("is not valid JSON: nested too deep", where=source) from None
    except InputError as error:
        raise error.at(source) from None
    except ValueError as error:
        said = (
            "a number of thousands of digits" if "digits" in str(error) else brief(str(error), 200)
        )
        raise InputError(f"is not valid JSON: {said}", where=source) from None


def _refuse_halves(found: Any) -> None:
    """Half of a pair of surrogates is a letter to JSON, and to nobody who writes UTF-8."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("is not valid JSON: it holds half of a letter") from None


def _no_constant(word: str) -> Any:
    raise InputError(f"holds {word}, which is not JSON")


def _no_infinity(digits: str) -> float:
    """A number too large for a float becomes infinity without a word."""
    if math.isinf(value := float(digits)):
        raise InputError(f"holds {brief(digits)}, which is too large for a number")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"has the key {brief(twice)} twice in one place")
    return found
