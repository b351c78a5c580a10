"""JSON of a file, and one sentence for each way in which it is none. A key that comes twice is
refused: readers differ on which counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ckptcost.catalog.files import text_of
from ckptcost.errors import InputError, brief


def parsed(source: str, most_bytes: int) -> Any:
    """What is in the file."""
    text = text_of(Path(source), source, most_bytes)
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except RecursionError:
        raise InputError("is not valid JSON: nested too deep", where=source) from None
    except InputError as error:
        raise error.at(source) from None
    except ValueError as error:
        said = (
            "a number of thousands of digits" if "digits" in str(error) else brief(str(error), 200)
        )
        raise InputError(f"is not valid JSON: {said}", where=source) from None


def _no_constant(word: str) -> Any:
    raise InputError(f"holds {word}, which is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"has the key {brief(twice)} twice in one place")
    return found
