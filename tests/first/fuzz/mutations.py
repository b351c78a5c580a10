"""Accepted inputs, changed in a few places: numbers mostly stay numbers and texts texts, so that
most of what comes out gets past its reader."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Path = tuple[Any, ...]
"""keys and indices, from the top of a tree to one of its parts"""

NUMBERS = (0, -1, 1, 1e-300, -1e-9, 1e15, 1e308, 2**63, -(2**63), 10**30, math.nan, math.inf)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
TEXTS = (
    "",
    " ",
    "a" * 5000,
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eright to left",
    "\ud800",
    "![x](http://example.com/x.png)<script>alert(1)</script>",
    "=1+1",
    "../../etc/passwd",
    "line\nbreak\r\ttab\0nul",
    "1e999",
    "-5 GB/s",
    "nan",
    "2026-02-30",
)
GONE = object()
OTHERS = (None, True, False, [], {}, [[[]]], {"a": {"b": 1}})


class Base:
    """An accepted tree, to be changed again and again: it stays as it is, and what comes of it
    shares with it what was not changed."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self._paths = list(paths(tree))

    def path(self, random: Random) -> Path:
        """One of all parts, or one by choosing at every level, which reaches sections of few parts
        as often as large ones."""
        if random.random() < 0.7:
            return random.choice(self._paths) if self._paths else ()
        here, path = self.tree, ()
        while isinstance(here, dict | list) and here and (not path or random.random() < 0.9):
            key = (
                random.choice(list(here)) if isinstance(here, dict) else random.randrange(len(here))
            )
            here, path = here[key], (*path, key)
        return path


def paths(tree: Any, above: Path = ()) -> Iterator[Path]:
    """To all that hangs in a tree."""
    if not isinstance(tree, dict | list):
        return
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield (*above, key)
        yield from paths(tree[key], (*above, key))


def at_path(tree: Any, path: Path) -> Any:
    """Raises LookupError or TypeError where there is nothing any more."""
    for key in path:
        tree = tree[key]
    return tree


def with_part(tree: Any, path: Path, part: Any) -> Any:
    """The tree with another part in one place; without it where that is GONE. As it is where an
    earlier change left no such place."""
    if not isinstance(tree, dict | list):
        return tree
    key, *rest = path
    again = copy.copy(tree)
    if rest:
        again[key] = with_part(tree[key], tuple(rest), part)
    elif part is GONE:
        del again[key]
    else:
        again[key] = part
    return again


def changed_number(random: Random, value: float) -> float:
    if random.random() < 0.85:
        factor = random.choice((0.5, 0.9, 0.99, 1.01, 1.1, 2.0, 10.0, 0.0, -1.0, 1e3, 1e-3))
        changed = value * factor
        return int(changed) if isinstance(value, int) and math.isfinite(changed) else changed
    return random.choice(NUMBERS)


def changed_text(random: Random, value: str) -> str:
    """Of a quantity mostly its number; of another text a letter; seldom something hostile."""
    luck = random.random()
    if luck < 0.7 and (found := NUMBER.search(value)):
        number = changed_number(random, float(found[0]))
        return f"{value[: found.start()]}{number:.6g}{value[found.end() :]}"
    if luck < 0.85 and value:
        at = random.randrange(len(value))
        letter = random.choice(("", "0", "9", "-", ".", "e", "x", " ", "\u00fc", "\x1b"))
        return value[:at] + letter + value[at + 1 :]
    return random.choice(TEXTS)


def changed(random: Random, value: Any) -> Any:
    """Another value, of the same kind mostly."""
    if random.random() < 0.05:
        return random.choice((*OTHERS, *NUMBERS, *TEXTS))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return changed_number(random, value)
    if isinstance(value, str):
        return changed_text(random, value)
    if isinstance(value, list) and value:
        again = [*value, random.choice(value)]
        return random.choice((again, value[:-1], value[::-1]))
    return value


def mutated(random: Random, base: Base, most: int = 2) -> Any:
    """Its tree with up to so many values changed, left out or put in each other's place."""
    tree = base.tree
    for _ in range(random.randint(1, most)):
        path, other, luck = base.path(random), base.path(random), random.random()
        try:
            here, there = at_path(tree, path), at_path(tree, other)
        except (LookupError, TypeError):  # it is what the change before took away
            continue
        if not path:
            continue
        if luck < 0.04:
            tree = with_part(tree, path, GONE)
        else:
            tree = with_part(tree, path, there if luck < 0.08 else changed(random, here))
    return tree


def json_bytes(tree: Any) -> bytes:
    """Half of a pair of surrogates is an escape in JSON, which its readers take."""
    text = json.dumps(tree)
    return text.replace("NaN", "1e999").replace("Infinity", "1e999").encode()


def toml_bytes(tree: dict[str, Any]) -> bytes:
    """What `tomllib` reads back: tables, arrays of tables, plain values."""
    return "\n".join(_toml(tree, ())).encode("utf-8", "replace")


def _toml(tree: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    deeper = {
        key: value
        for key, value in tree.items()
        if isinstance(value, dict)
        or (isinstance(value, list) and value and all(isinstance(each, dict) for each in value))
    }
    for key, value in tree.items():
        if key not in deeper:
            yield f"{json.dumps(str(key))} = {_value(value)}"
    for key, value in deeper.items():
        name = ".".join(json.dumps(str(part)) for part in (*path, key))
        for each in value if isinstance(value, list) else [value]:
            yield f"[[{name}]]" if isinstance(value, list) else f"[{name}]"
            yield from _toml(each, (*path, key))


def _value(value: Any) -> str:
    if value is None:
        return '""'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + "}"
    text = value if isinstance(value, str) else value.isoformat()
    return json.dumps(text, ensure_ascii=False)


def csv_bytes(random: Random, rows: list[list[str]]) -> bytes:
    """A table with some cells changed, and now and then a row twice, cut or gone."""
    rows = [list(row) for row in rows]
    for _ in range(random.randint(1, 2)):
        at = random.randrange(1, len(rows)) if len(rows) > 1 else 0
        luck = random.random()
        if luck < 0.06:
            rows.insert(at, list(rows[at]))
        elif luck < 0.1:
            rows[at] = rows[at][:-1]
        elif rows[at]:
            first = int(len(rows[at]) > 1 and random.random() < 0.8)
            cell = random.randrange(first, len(rows[at]))
            rows[at][cell] = _cell(random, rows[at][cell])
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "replace") + b"\n"


def _cell(random: Random, text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return changed_text(random, text).replace(",", ";")
    return f"{changed_number(random, number):.6g}"


def lines_bytes(
    random: Random, lines: list[dict[str, Any]], seal: Callable[[dict[str, Any]], bytes]
) -> bytes:
    """A run file of which some lines tell other things under a right checksum."""
    lines = list(lines)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(lines))
        lines[at] = mutated(random, Base(lines[at]), 2)
    if random.random() < 0.1:
        at, other = random.randrange(1, len(lines)), random.randrange(1, len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    return b"".join(seal(line) for line in lines if isinstance(line, dict))
