"""One of many: type to narrow the list, Enter to take a row."""

from __future__ import annotations

from ckptcost.tui.modals.filtered import Filtered


class Picker(Filtered[str | None]):
    """Gives the key of a row, or None."""

    HINT = "Enter takes the row, Esc none"
    DEFAULT_CSS = """
    Picker .dialog { padding: 0 1; max-width: 110; width: 90%; }
    Picker Input { margin-bottom: 1; }
    Picker Rows { height: auto; max-height: 24; min-height: 3; }
    Picker .hint { color: $text-muted; height: 1; }
    """

    def take(self, key: str) -> None:
        self.dismiss(key)
