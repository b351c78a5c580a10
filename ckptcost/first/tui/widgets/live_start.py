"""The live screen before anything is recorded: what can be measured, and the ways on. Everything
that is written says where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ckptcost.first.present.grid import Tone
from ckptcost.first.tui.widgets.drawn import is_plain
from ckptcost.first.tui.widgets.note import Note


class Way(NamedTuple):
    """A field of the page."""

    id: str
    label: str
    placeholder: str


WAYS = (
    Way("command", "run a command", "python train.py --steps 100"),
    Way("pid", "or attach to a PID", "4711; P lists processes that hold a GPU"),
    Way("watch", "watch folders", "where checkpoints go: with a command, a PID, or alone"),
    Way("record", "keep the run in", ""),
)
OTHERS = (
    ("M", "measure", "measure this machine alone, until R stops it; kept as a run"),
    (
        "d",
        "demo",
        "demo: a made-up machine with 8 GPUs that saves once a minute; nothing is written",
    ),
    ("f", "follow", "follow a recording that goes on, of this machine or on a shared disk"),
    ("l", "baseline", "learn the idle power of this machine: 30 s in which nothing else runs"),
)


class StartPage(VerticalScroll, can_focus=False):
    """Fields and keys; Enter in a field posts `Begin`."""

    DEFAULT_CSS = """
    StartPage { height: 1fr; padding: 0 1; }
    StartPage .head { text-style: bold; height: 1; margin-top: 1; }
    StartPage #lights { height: auto; max-height: 16; }
    StartPage .field { height: auto; }
    StartPage .way { height: 1; }
    StartPage .label { width: 21; padding-left: 2; }
    StartPage Input { width: 1fr; max-width: 90; }
    StartPage .wrong { height: auto; margin-left: 21; color: $text-error; display: none; }
    StartPage .wrong.-on { display: block; }
    StartPage .other { height: 1; padding-left: 2; text-wrap: nowrap; text-overflow: ellipsis; }
    StartPage #trouble {
        display: none; height: auto; color: $text-error; text-style: bold; padding: 0 0 0 2;
    }
    StartPage #trouble.-on { display: block; }
    """

    class Begin(Message):
        """Enter in a field: all of them count."""

    def compose(self) -> ComposeResult:
        yield Static("What can be measured here", classes="head")
        yield Note(id="lights")
        yield Static("Measure a job (Enter in a field begins)", classes="head")
        for way in WAYS:
            with Vertical(classes="field"):
                with Horizontal(classes="way"):
                    yield Static(way.label, classes="label")
                    yield Input(
                        id=way.id, placeholder=way.placeholder, compact=True, select_on_focus=False
                    )
                yield Static(id=f"wrong-{way.id}", classes="wrong", markup=False)
        yield Static(id="trouble", markup=False)
        yield Static("Or", classes="head")
        for key, action, text in OTHERS:
            yield Static(
                Content.assemble(
                    (f"{key:<7}", f"bold @click=screen.{action}()"),
                    (text, f"@click=screen.{action}()"),
                ),
                classes="other",
            )

    @property
    def lit(self) -> bool:
        """It is known what can be measured."""
        return len(self.query_one("#lights", Note).lines) > 1

    def show(self, lights: Sequence[tuple[str, Tone]]) -> None:
        self.query_one("#lights", Note).show(lights)

    def keep_in(self, home: str) -> None:
        """Where runs go if nothing is said."""
        self.query_one("#record", Input).placeholder = f"{home}, a folder of its own"

    def typed(self) -> dict[str, str]:
        return {way.id: self.query_one(f"#{way.id}", Input).value for way in WAYS}

    def type(self, field: str, text: str) -> None:
        self.query_one(f"#{field}", Input).value = text

    def go_to(self, field: str) -> None:
        self.query_one(f"#{field}", Input).focus()

    def refuse(self, field: str, reason: str) -> None:
        """Below the field where it is about one, else below all."""
        self.accept()
        known = field in {way.id for way in WAYS}
        place = self.query_one(f"#wrong-{field}" if known else "#trouble", Static)
        place.update(("x " if is_plain(self) else "\u2717 ") + reason)
        place.add_class("-on")
        if known:
            self.go_to(field)

    def accept(self) -> None:
        for place in self._places():
            place.remove_class("-on")

    def _places(self) -> Iterable[Static]:
        yield from self.query(".wrong").results(Static)
        yield self.query_one("#trouble", Static)

    @property
    def is_empty(self) -> bool:
        return not any(text.strip() for text in self.typed().values())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Begin())
