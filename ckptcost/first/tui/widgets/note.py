"""Sentences: wrapped, toned, scrolled where they are long."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ckptcost.first.present.grid import Tone
from ckptcost.first.tui.widgets.drawn import is_plain

_STYLES = {
    "best": "$text-success bold",
    "good": "$text-success",
    "warn": "$text-warning",
    "bad": "$text-error bold",
    "muted": "$text-muted",
    "base": "$text-secondary",
}


class Note(VerticalScroll):
    """Lines of text, each with a tone."""

    DEFAULT_CSS = """
    Note { width: 1fr; height: 1fr; }
    Note > Static { width: 1fr; height: auto; }
    """

    _shown: tuple[tuple[tuple[str, Tone], ...], str] = ((), "")

    def compose(self) -> ComposeResult:
        yield Static()

    def on_mount(self) -> None:
        self._fill()

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(text for text, _ in self._shown[0])

    def show(self, lines: Sequence[str] | Sequence[tuple[str, Tone]], title: str = "") -> None:
        told: tuple[tuple[str, Tone], ...] = tuple(
            (line, "") if isinstance(line, str) else line for line in lines
        )
        if (told, title) != self._shown:
            self._shown = (told, title)
            if self.is_mounted:
                self._fill()

    def _fill(self) -> None:
        self.query_one(Static).update(self._content())

    def _content(self) -> Content:
        lines, title = self._shown
        bad = "x " if is_plain(self) else "\u2717 "
        marks = {"bad": bad, "warn": "! "}
        parts = [Content.styled(title, "bold")] if title else []
        parts += [
            Content.styled(marks.get(tone, "") + text, _STYLES.get(tone, ""))
            for text, tone in lines
        ]
        return Content("\n").join(parts)
