"""The two lines at the bottom: what is going on, and the keys that work here and now."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from ckptcost.first.present.fit import fit
from ckptcost.first.present.grid import Tone
from ckptcost.first.tui.commands import EVERYWHERE, Command

LAST = (("help", "?", "app.help"), ("palette", "^p", "app.command_palette"))
_NAMES = {
    "enter": "Enter",
    "space": "Space",
    "escape": "Esc",
    "tab": "Tab",
    "question_mark": "?",
    "left": "\u2190",
    "right": "\u2192",
    "up": "\u2191",
    "down": "\u2193",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "equals_sign": "=",
    "delete": "Del",
    "dollar_sign": "$",
    "number_sign": "#",
    "full_stop": ".",
    "comma": ",",
    "backspace": "Bksp",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "colon": ":",
    "semicolon": ";",
    "asterisk": "*",
    "exclamation_mark": "!",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "insert": "Ins",
}


def key_name(key: str) -> str:
    """A key as people write it.

    >>> key_name("ctrl+s"), key_name("question_mark"), key_name("D"), key_name("f1")
    ('^s', '?', 'D', 'F1')
    """
    if key.startswith("ctrl+"):
        return f"^{key_name(key.removeprefix('ctrl+'))}"
    if key.startswith("shift+"):
        return "\u21e7" + key_name(key.removeprefix("shift+"))
    return _NAMES.get(key, key.upper() if key[0] == "f" and key[1:].isdigit() else key)


def keys_of(app: App[Any], command: Command) -> list[str]:
    """A command's keys as people write them; the user's own where there are such."""
    preferences = getattr(app, "preferences", None)
    keys = (preferences.keys if preferences else {}).get(command.id, command.key)
    return [key_name(key.strip()) for key in keys.split(",")]


class Status(Static):
    """One line of text with a tone."""

    DEFAULT_CSS = """
    Status {
        height: 1; width: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis;
        color: $text-muted;
    }
    Status.-good, Status.-best { color: $text-success; }
    Status.-warn { color: $text-warning; }
    Status.-bad { color: $text-error; text-style: bold; }
    """

    said = ""
    """the whole of it; on the screen folders of paths give way to the reason"""

    def show(self, text: str, tone: Tone = "") -> None:
        self.set_classes(f"-{tone}" if tone else "")
        self.said = {"bad": "\u2717 ", "warn": "! "}.get(tone, "") + text
        self.draw()

    def on_resize(self, event: Resize) -> None:
        self.draw()

    def draw(self) -> None:
        shown = fit(self.said, self.content_size.width) if self.content_size.width else self.said
        self.tooltip = self.said if shown != self.said else None
        self.update(Content(shown), layout=False)  # one line whatever it says


class Keys(Static):
    """As many keys as there is room for, the most important first; help and palette are always
    there. Every one can be clicked."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Keys {
        height: 1; width: 1fr; background: $panel; text-wrap: nowrap; text-overflow: clip;
        link-style: none; link-color: $text;
    }
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.show())
        self.show()

    def on_resize(self, event: Resize) -> None:
        self.show()

    def entries(self) -> list[tuple[str, str, str]]:
        """Label, key and action of what works now, in the order of importance."""
        known = {
            command.id: command for command in (*getattr(self.screen, "KEYS_HERE", ()), *EVERYWHERE)
        }
        found = []
        seen: set[str] = set()
        for active in self.screen.active_bindings.values():
            binding = active.binding
            command = known.get(binding.id or "")
            if command is None or not command.footer or not active.enabled or command.id in seen:
                continue
            seen.add(command.id)
            found.append(
                (command.footer, command.label, keys_of(self.app, command)[0], binding.action)
            )
        return [
            (label, key, action)
            for _, label, key, action in sorted(found, key=lambda each: each[0])
        ]

    def show(self) -> None:
        if not self.is_attached:
            return
        last = [piece for entry in LAST for piece in _pieces(*entry)]
        room = self.size.width - _width(last)
        pieces: list[tuple[str, str]] = []
        for entry in self.entries():
            more = _pieces(*entry)
            if _width(pieces) + _width(more) > room:
                break
            pieces += more
        self.update(
            Content.assemble(*pieces, (" " * max(room - _width(pieces), 0), ""), *last),
            layout=False,
        )


def _width(pieces: list[tuple[str, str]]) -> int:
    return sum(len(text) for text, _ in pieces)


def _pieces(label: str, key: str, action: str) -> list[tuple[str, str]]:
    """A key and its label, both to be clicked; an action is the screen's where it does not say
    whose."""
    whole = action if "(" in action else f"{action}()"
    link = whole if whole.startswith(("app.", "screen.")) else f"screen.{whole}"
    return [(f" {key}", f"bold @click={link}"), (f" {label} ", f"@click={link}")]
