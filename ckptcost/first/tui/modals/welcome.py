"""The first start: what this is, what this machine can measure, and five ways on. Below it stands
the worked example already."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ckptcost.first.tui.commands import MODES

WAYS = (
    ("1", "model", "See the model with an example", "type over any figure on the left"),
    (
        "4",
        "demo",
        "Watch checkpoints being measured",
        "a made-up machine with 8 GPUs; nothing is written",
    ),
    ("c", "job", "Measure your own job", "type its command; later Esc 4 c"),
    ("5", "probe", "Try a disk with a real checkpoint", "says what it writes before it does"),
    ("o", "open", "Open your own scenario", "a .toml file, or one of the presets"),
)
"""key, where it goes, what, and what happens"""


class Welcome(ModalScreen[str]):
    """Gives where to go."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"dismiss('{where}')", what) for key, where, what, _ in WAYS),
        *(
            Binding(key, f"dismiss('{mode}')", name)
            for mode, key, name, _ in MODES
            if key not in {way[0] for way in WAYS}
        ),
        Binding("i", "dismiss('inputs')", "inputs"),
        Binding("escape,enter,q,tab,down,up", "dismiss('model')", "close"),
    ]

    def __init__(self, places: str) -> None:
        super().__init__()
        self._places = places

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Welcome"
            dialog.border_subtitle = "Esc closes"
            yield Static(
                "ckptcost: what training checkpoints cost in energy, GPU-hours, money and carbon.\n"
            )
            yield Static(
                "looking what this machine can measure ...",
                id="machine",
                classes="muted",
                markup=False,
            )
            yield Static(_ways())
            yield Static(self._places, classes="muted", markup=False)

    def show(self, lines: tuple[str, ...]) -> None:
        """What can be measured here; it takes a second to find out."""
        self.query_one("#machine", Static).update(
            "\n".join(("On this machine (D says more):", *(f"  {line}" for line in lines)))
        )


def _ways() -> Content:
    pieces: list[tuple[str, str]] = [("\n", "")]
    for key, where, what, happens in WAYS:
        pieces += [
            (f"  {key}  ", "bold $primary"),
            (f"{what:<36}", f"@click=screen.dismiss('{where}')"),
            (f"{happens}\n", "$text-muted"),
        ]
    return Content.assemble(*pieces)
