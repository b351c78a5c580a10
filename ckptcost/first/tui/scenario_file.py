"""Changes written into a scenario file that is there: its comments and everything else stay as they
are.

Only lines are changed, and what comes out is read again: where it does not say exactly what was
meant, nothing is written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from ckptcost.first.catalog.keys import CADENCES, REFERENCES, WORDS
from ckptcost.first.errors import InputError

_HEADER = re.compile(r"^\s*\[(\w+)\]\s*(#.*)?$")
ONE_OF = (*CADENCES, "optimal")
"""of these the policy says one"""


def changed(text: str, edits: Mapping[str, str], tiers: Sequence[str] = ()) -> str:
    """The file's text with the changes in it. Raises InputError where that cannot be done line by
    line."""
    before = _read(text)
    meant = _meant(before, edits, tiers)
    lines = text.splitlines()
    for section, new in meant.items():
        if not isinstance(new, dict):
            continue
        old = before.get(section, {})
        for key in old.keys() - new.keys():
            _silence(lines, section, key)
        for key, value in new.items():
            if old.get(key) != value:
                _say(lines, section, key, value)
    found = "\n".join(lines) + "\n"
    try:
        same = _read(found) == meant
    except InputError:
        same = False
    if not same:
        raise InputError(
            "this file cannot be changed line by line",
            remedy="save under another name, which then extends it",
        )
    return found


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"is no TOML any more ({error})", remedy="save under another name"
        ) from None


def _meant(
    before: dict[str, Any], edits: Mapping[str, str], tiers: Sequence[str]
) -> dict[str, Any]:
    """What the file should say: a new entry of the catalogue forgets what was said of its section,
    as flags over it would."""
    meant = deepcopy(before)
    for path, text in edits.items():
        section, _, key = path.partition(".")
        said = meant.setdefault(section, {})
        if REFERENCES.get(section) == key and said.get(key) != text:
            said.clear()
    for path, text in edits.items():
        section, _, key = path.partition(".")
        said = meant[section]
        if section == "policy" and key in ONE_OF:
            for other in ONE_OF:
                said.pop(other, None)
        said[key] = _value_of_text(section, key, text)
    if tiers:
        meant.setdefault("compare", {})["tier"] = list(tiers)
    return meant


def _value_of_text(section: str, key: str, text: str) -> str | bool:
    is_flag = WORDS.get(section, {}).get(key) == (bool,) and text.lower() in ("true", "false")
    return text.lower() == "true" if is_flag else text


def _span(lines: Sequence[str], section: str) -> tuple[int, int] | None:
    """From the line after a section's header to the next header, or to the end."""
    begin = None
    for number, line in enumerate(lines):
        header = _HEADER.match(line)
        if begin is not None and line.lstrip().startswith("["):
            return begin, number
        if header and header[1] == section:
            begin = number + 1
    return None if begin is None else (begin, len(lines))


def _place(lines: Sequence[str], section: str, key: str, said: bool) -> int | None:
    """The line that says a key, or the comment that would."""
    span = _span(lines, section)
    mark = "" if said else r"#\s*"
    each = re.compile(rf"^\s*{mark}{re.escape(key)}\s*=")
    return None if span is None else next((n for n in range(*span) if each.match(lines[n])), None)


def _silence(lines: list[str], section: str, key: str) -> None:
    if (place := _place(lines, section, key, said=True)) is not None:
        lines[place] = f"# {lines[place].lstrip()}"


def _say(lines: list[str], section: str, key: str, value: Any) -> None:
    line = f"{key} = {_toml(value)}"
    place = _place(lines, section, key, said=True)
    if place is None:
        place = _place(lines, section, key, said=False)
    if place is not None:
        comment = re.search(r"(?<=\s)#[^\"']*$", lines[place].lstrip("# "))
        lines[place] = line + (f"{' ' * max(1, 34 - len(line))}{comment[0]}" if comment else "")
        return
    if (span := _span(lines, section)) is None:
        commented = next(
            (n for n, each in enumerate(lines) if re.match(rf"^\s*#\s*\[{section}\]", each)), None
        )
        if commented is not None:
            lines[commented] = lines[commented].lstrip("# ")
            _say(lines, section, key, value)
            return
        lines += ["", f"[{section}]", line]
        return
    lines.insert(span[0], line)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return quoted(str(value))


def quoted(text: str) -> str:
    """A TOML basic string.

    >>> quoted('a "b"')
    '"a \\\\"b\\\\""'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in escaped) + '"'
    )
