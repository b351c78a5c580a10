"""What a user's own `screen.toml` says of the screen: themes by the names of their colours, keys by
the names of commands, the layout that the live screen begins with. What is wrong in it is named by
file and line, and all the rest counts.

    [keys]
    "view.theme" = "f3"

    [live]
    preset = "checkpoints"

    [themes.mine]
    like = "ckptcost-dark"
    background = "#000000"
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, NamedTuple

from textual.theme import Theme

from ckptcost.first.tui.commands import EVERYWHERE
from ckptcost.first.tui.themes import THEMES

COLOURS = (
    "primary",
    "secondary",
    "warning",
    "error",
    "success",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
)


class Preferences(NamedTuple):
    themes: tuple[Theme, ...] = ()
    keys: dict[str, str] = {}  # noqa: RUF012  a named tuple's default is never written to
    """by the id of a command; several with commas"""
    problems: tuple[str, ...] = ()
    preset: str = ""
    """the layout of the live screen; empty: the one that was chosen last"""


def load(folder: Path) -> Preferences:
    """Nothing where there is no file."""
    file = folder / "screen.toml"
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return Preferences()
    except (OSError, ValueError) as error:
        return Preferences(problems=(f"{file}: cannot be read ({error})",))
    import tomllib

    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Preferences(problems=(f"{file}: {error}",))
    return PreferenceFile(file, text).preferences(raw)


class PreferenceFile:
    """One file, and what is found wrong in it."""

    def __init__(self, file: Path, text: str) -> None:
        self._file, self._lines = file, text.splitlines()
        self._problems: list[str] = []

    def preferences(self, raw: dict[str, Any]) -> Preferences:
        for name in raw.keys() - {"keys", "live", "themes"}:
            self._complain("", name, "is none of `keys`, `live` and `themes`")
        keys = self._keys(self._table(raw, "keys"))
        themes = self._table(raw, "themes")
        made = [self._theme(name, self._table(themes, name)) for name in themes]
        preset = self._preset(self._table(raw, "live"))
        return Preferences(tuple(made), keys, tuple(self._problems), preset)

    def _table(self, raw: dict[str, Any], name: str) -> dict[str, Any]:
        value = raw.get(name, {})
        if isinstance(value, dict):
            return value
        self._complain("", name, "is not a table")
        return {}

    def _preset(self, raw: dict[str, Any]) -> str:
        found = ""
        for name, value in raw.items():
            from ckptcost.first.tui.widgets.live_board import PRESETS

            names = [preset.name for preset in PRESETS]
            if name != "preset":
                self._complain("live", name, "is not `preset`")
            elif value not in names:
                self._complain("live", name, f"is none of {', '.join(names)}")
            else:
                found = value
        return found

    def _keys(self, raw: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        ids = command_ids() if raw.keys() - {one.id for one in EVERYWHERE} else None
        taken = {key: one.id for one in EVERYWHERE for key in one.key.split(",")}
        for name, key in raw.items():
            if ids is not None and name not in ids:
                self._complain("keys", name, "is no command")
            elif not isinstance(key, str) or not key.strip():
                self._complain("keys", name, 'is not given a key, such as "f3" or "ctrl+t"')
            elif taken.get(key, name) != name:
                self._complain("keys", name, f"cannot have {key}, which is {taken[key]}")
            else:
                found[name] = key
                taken[key] = name
        return found

    def _theme(self, name: str, raw: dict[str, Any]) -> Theme:
        from textual.color import Color, ColorParseError

        where = f"themes.{name}"
        bases = {theme.name: theme for theme in THEMES}
        like = raw.get("like", THEMES[0].name)
        if like not in bases:
            self._complain(where, "like", f"is none of {', '.join(bases)}")
        base = bases.get(like, THEMES[0])
        colours: dict[str, str] = {}
        for each, colour in raw.items():
            if each == "like":
                continue
            if each not in COLOURS and each not in base.variables:
                self._complain(where, each, "is no colour of a theme")
                continue
            try:
                Color.parse(colour)
            except (ColorParseError, TypeError, AttributeError):
                self._complain(where, each, f'is {colour!r}, not a colour such as "#10151A"')
                continue
            colours[each] = colour
        own: dict[str, Any] = {each: colours[each] for each in colours if each in COLOURS}
        others = {each: colour for each, colour in colours.items() if each not in COLOURS}
        return dataclasses.replace(base, name=name, variables=base.variables | others, **own)

    def _complain(self, table: str, name: str, why: str) -> None:
        self._problems.append(f"{self._file}:{self._line_of(table, name)}: {name} {why}")

    def _line_of(self, table: str, name: str) -> int:
        """Where a name of a table stands; the first line where it is written in another way."""
        here = ""
        for number, line in enumerate(self._lines, start=1):
            if head := re.match(r"\s*\[([^\]]+)\]", line):
                here = head[1].strip()
                if here == name or (not table and here.split(".")[0] == name):
                    return number
            elif here == table and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line):
                return number
        return 1


def command_ids() -> set[str]:
    """Of all screens, which takes their modules: only for a file that names one of theirs."""
    import pkgutil
    from importlib import import_module

    from ckptcost.first.tui import screens

    found = {command.id for command in EVERYWHERE}
    for module in pkgutil.iter_modules(screens.__path__):
        of_module = vars(import_module(f"{screens.__name__}.{module.name}"))
        for each in of_module.values():
            found |= {command.id for command in getattr(each, "KEYS_HERE", ())}
    return found
