"""The line at the top: where one is, where one can go, and which meters answer."""

from __future__ import annotations

from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from ckptcost.first.tui.commands import MODES

ROOMY = 84
"""columns from which each name has a blank on either side"""


class ModeBar(Static):
    """Every name can be clicked."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    ModeBar {
        height: 1; width: 1fr; background: $panel; text-wrap: nowrap; text-overflow: clip;
        link-style: none; link-color: $text;
    }
    """

    def __init__(self, mode: str) -> None:
        super().__init__()
        self._mode = mode

    def on_mount(self) -> None:
        self.show()

    def on_resize(self, event: Resize) -> None:
        self.show()

    def show(self) -> None:
        lights: str = getattr(self.app, "lights", "")
        parts: list[tuple[str, str]] = []
        used, before = 0, ""
        for mode, key, name, _ in MODES:
            here = mode == self._mode
            label = f"{key} {name}"
            if self.size.width >= ROOMY:
                label = f"[{label}]" if here else f" {label} "
            else:  # one column between two names, which a bracket may take
                label = ("[" if here else "]" if before == self._mode else " ") + label
            parts.append((label, f"{'bold reverse ' if here else ''}@click=app.go('{mode}')"))
            used, before = used + len(label), mode
        if self.size.width < ROOMY and before == self._mode:
            parts.append(("]", ""))
        room = self.size.width - used - 1
        if lights and room > len(lights) + 2:
            parts.append((" " * (room - len(lights) - 1) + lights, ""))
        self.update(Content.assemble(*parts), layout=False)
