"""The live screen while it measures: state, numbers, traces over one time axis, and lists below.
Only what has changed is drawn again."""

from __future__ import annotations

from typing import Final, NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from ckptcost.first.present.chart import Traces
from ckptcost.first.present.grid import Grid
from ckptcost.first.tui.live.source import Headline, LiveView, State
from ckptcost.first.tui.widgets.drawn import is_plain
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows
from ckptcost.first.tui.widgets.stats import Stats
from ckptcost.first.tui.widgets.traces import TraceStack

MARKS: Final[dict[State, tuple[str, str]]] = {
    "starting": ("\u25cb", "o"),
    "armed": ("\u25cb", "o"),
    "recording": ("\u25cf", "*"),
    "measuring": ("\u25cf", "*"),
    "stopping": ("\u25cf", "*"),
    "settling": ("\u25cf", "*"),
    "playing": ("\u25b6", ">"),
    "paused": ("\u2016", "||"),
    "ended": ("\u25a0", "#"),
    "failed": ("\u2717", "x"),
}
_STYLES = {
    "best": "$text-success bold",
    "good": "$text-success bold",
    "warn": "$text-warning bold",
    "bad": "$text-error bold",
}
LEAST_ROWS: Final = 7
"""of a trace beside the first one, which takes half of the height, with its title"""
LISTS: Final = ("checkpoints", "gpus", "meters", "output")


class Preset(NamedTuple):
    """A layout: how high its parts are, and which list leads."""

    name: str
    traces: str
    """as the style sheet has heights; empty: not there"""
    lists: str
    list: str = "checkpoints"
    per_gpu: bool = False


PRESETS: Final = (
    Preset("overview", "1fr", "18vh"),
    Preset("gpus", "3fr", "1fr", "gpus", per_gpu=True),
    Preset("checkpoints", "1fr", "3fr"),
    Preset("figures", "", "1fr", "meters"),
)


class Traced(TraceStack):
    """As many traces as have room, the most telling first."""

    _all = Traces((), (0.0, 1.0))
    _turned = 0

    def show_all(self, traces: Traces) -> None:
        self._all = traces
        self._choose()

    def turn(self) -> None:
        self._turned += 1
        self._choose()

    def on_resize(self, event: Resize) -> None:
        self._choose()

    def _choose(self) -> None:
        charts = self._all.charts
        height = self.size.height
        room = 1 + max((height - 2 - height // 2) // LEAST_ROWS, 0 if height < 9 else 1)
        if charts and charts[0].filled == "each" and height - 6 < len(charts[0].curves):
            room = 1
        if not height or room >= len(charts):
            self.show(self._all)
            return
        order = list(range(len(charts)))
        at = self._turned * room % len(order)
        chosen = sorted([*order[at:], *order[:at]][:room])
        self.show(self._all._replace(charts=[charts[n] for n in chosen]))


class Board(Vertical):
    """`show` takes a picture; `lists` chooses what stands below the traces."""

    DEFAULT_CSS = """
    Board #headline { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    Board #numbers { padding: 0 1; }
    Board #traces { height: 1fr; min-height: 6; }
    Board #last { height: auto; max-height: 3; padding: 0 1; }
    Board #below { height: 18vh; min-height: 6; }
    Board #below > * { width: 2fr; height: 1fr; display: none; }
    Board #below > .-on { display: block; }
    Board #checkpoints { width: 3fr; }
    Board #below > Rows, Board #below > Note { min-width: 40; }
    Board #foot {
        height: 1; padding: 0 1; color: $text-warning; display: none;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Board #foot.-on { display: block; }
    """

    def __init__(self, preset: Preset) -> None:
        super().__init__(id="board")
        self.view: LiveView | None = None
        self.preset = preset
        self.list = preset.list
        self._shown: dict[str | None, object] = {}

    def compose(self) -> ComposeResult:
        yield Static(id="headline")
        yield Stats(id="numbers", classes="-row")
        yield Traced(id="traces")
        yield Static(id="last", markup=False)
        with Horizontal(id="below"):
            yield Rows(id="checkpoints", classes="panel -on")
            yield Rows(id="gpus", classes="panel")
            yield Rows(id="meters", classes="panel")
            yield Note(id="output", classes="panel")
        yield Static(id="foot", markup=False)

    def on_mount(self) -> None:
        self.lay_out(self.preset)

    def clear(self) -> None:
        """Before another source."""
        self.view = None
        self._shown = {}

    def show(self, view: LiveView, frozen: bool = False) -> None:
        """While frozen, only the line of the state is drawn."""
        before = self.view
        if (
            before is None
            or view.headline != before.headline
            or frozen != self.has_class("-frozen")
        ):
            self.set_class(frozen, "-frozen")
            self._headline(view.headline, frozen)
        if frozen and before is not None:
            self.view = before._replace(headline=view.headline)
            return
        self.view = view
        self.query_one("#numbers", Stats).show(view.stats)
        self.query_one(Traced).show_all(view.traces)
        if before is None or view.last != before.last:
            text, tone = view.last
            self.query_one("#last", Static).update(Content.styled(text, _STYLES.get(tone, "")))
        self._lists()
        if before is None or view.notes != before.notes:
            foot = self.query_one("#foot", Static)
            foot.update("; ".join(note.rstrip(".") for note in view.notes))
            foot.set_class(bool(view.notes), "-on")

    def _headline(self, head: Headline, frozen: bool) -> None:
        mark = MARKS["paused" if frozen else head.state][is_plain(self)]
        word = "DRAWING PAUSED" if frozen else head.word
        goes_on = "readings go on" if frozen and head.state not in ("ended", "failed") else ""
        rest = head.detail if self.screen.has_class("-wide") else head.short
        style = "$text-warning bold" if frozen else _STYLES.get(head.tone, "bold")
        self.query_one("#headline", Static).update(
            Content.assemble(
                (f"{mark} {word}", style),
                "  ",
                f"{goes_on}  " if goes_on else "",
                (rest, "$text-muted"),
            )
        )

    def _lists(self) -> None:
        """Those that are seen, where they are not what they were."""
        view = self.view
        if view is None:
            return
        for rows in self.query(Rows):
            grid: Grid = getattr(view, rows.id or "")
            if rows.has_class("-on") and self._shown.get(rows.id) != grid:
                self._shown[rows.id] = grid
                rows.border_title, rows.border_subtitle = Content(grid.title), Content(grid.note)
                rows.show(grid)
        note, output = self.query_one("#output", Note), view.output or (view.no_output,)
        if note.has_class("-on") and self._shown.get(note.id) != output:
            self._shown[note.id] = output
            note.border_title = "Output of the job, last lines"
            note.show(output)
            note.call_after_refresh(note.scroll_end, animate=False)

    def lay_out(self, preset: Preset) -> None:
        """Without traces there is room for every number."""
        self.preset = preset
        traces, below = self.query_one(Traced), self.query_one("#below")
        traces.display = bool(preset.traces)
        traces.styles.height, below.styles.height = preset.traces or 0, preset.lists
        numbers = self.query_one(Stats)
        numbers.set_class(bool(preset.traces), "-row")
        numbers.changed(layout=True)
        self.choose(preset.list)

    def choose(self, name: str) -> None:
        """One list where there is little room; beside the checkpoints where there is more."""
        self.list = name
        self.lay_lists()

    @property
    def _beside(self) -> str:
        """What stands at the right where there is room for two."""
        return "gpus" if self.list == "checkpoints" else self.list

    def choose_next(self) -> None:
        """After the one that is seen: where two stand side by side, after the right one."""
        wide = self.screen.has_class("-wide")
        among, now = (LISTS[1:], self._beside) if wide else (LISTS, self.list)
        self.choose(among[(among.index(now) + 1) % len(among)])

    def lay_lists(self) -> None:
        wide = self.screen.has_class("-wide")
        on = {"checkpoints", self._beside} if wide else {self.list}
        for each in LISTS:
            self.query_one(f"#{each}").set_class(each in on, "-on")
        if self.view is not None:
            self._headline(self.view.headline, self.has_class("-frozen"))
            self._lists()
