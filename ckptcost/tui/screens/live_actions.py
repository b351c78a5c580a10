"""What the keys of the live screen do to its source: mark, stop, let time stand still, open what
was recorded."""

from __future__ import annotations

from typing import TypeVar

from textual.events import Key
from textual.widgets import Input

from ckptcost.present.grid import Grid
from ckptcost.tui.live.reading import Source
from ckptcost.tui.live.source import SPAN_S, SPEEDS
from ckptcost.tui.modals.confirm import Confirm
from ckptcost.tui.screens import live_setup
from ckptcost.tui.screens.live_start import Opening
from ckptcost.tui.widgets.rows import Rows

T = TypeVar("T")


class Acting(Opening):
    """Between the start page and the picture."""

    def __init__(self, source: Source | None) -> None:
        super().__init__(source)
        self._over = False
        self._span_s = SPAN_S
        self._gpu = ""
        """the one that has a trace of its own"""

    def tick(self, again: int = 0) -> None:
        """Take in what is new, and draw it; `again`: so many times although nothing is."""

    def action_mark(self) -> None:
        if self._source is not None:
            self.say(f"{_sentence(self._source.mark())}")
            self.tick()

    def action_hold(self) -> None:
        if self._source is not None:
            self._source.pause(not self._source.paused)
            self.tick()

    def action_speed(self, by: int) -> None:
        if self._source is not None:
            self._source.set_speed(shifted(SPEEDS, self._source.speed, by))
            self.tick()

    def action_seek(self, by: int) -> None:
        if self._source is not None:
            self._source.seek(self._source.position_s + by * self._span_s)
            self.tick(again=2)

    def action_stop(self) -> None:
        source = self._source
        if source is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.say("Stopping ...")
                self.background("stop", lambda stopped: source.stop(), self._stopped)

        if source.actions.stops_job:
            what = (
                "The command is told to end with it (SIGTERM), and killed if it has not after 10 s."
            )
        else:
            what = "What is watched goes on; only the recording ends."
        self.app.push_screen(
            Confirm("End the recording?", f"{source.title}\n{what}", "end it"), answered
        )

    def _stopped(self, text: str) -> None:
        if text:
            self.say(
                _sentence(text),
                "bad" if self._source is not None and self._source.view().unwritten else "",
            )
        self.tick(again=1)

    def action_open_run(self) -> None:
        """`app.open_run` is who knows the screen of a run; without it, the list of runs."""
        if self._source is None or self._source.folder is None:
            self.say("Nothing was written of this one.")
            return
        if not self.hand_over("open_run", str(self._source.folder)):
            self.app.action_go("runs")  # type: ignore[attr-defined]

    def action_new(self) -> None:
        self._source, self._command = None, ""
        self.turn_to(board=False)
        self.say("")
        self.look_around()

    def on_key(self, event: Key) -> None:
        if (
            event.key == "enter"
            and self._source is None
            and not self._opening
            and not isinstance(self.focused, Input)
        ):
            self.on_start_page_begin()
            event.stop()
        elif event.key == "enter" and self._over and not isinstance(self.focused, Rows | Input):
            self.action_open_run()
            event.stop()

    def action_detail(self) -> None:
        """The newest checkpoint; of another one, Enter in the list."""
        rows = self.query_one("#checkpoints", Rows)
        keys = [row.key for row in rows.grid.rows]
        if keys:
            self._open_checkpoint(rows.grid, max(keys, key=int))
        else:
            self.say("No checkpoint yet: there is nothing to open.")

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Enter on a checkpoint: its detail; on a GPU: its own trace, and away again."""
        event.stop()
        source = self._source
        if source is None:
            return
        if event.rows.id == "gpus":
            self._gpu = "" if event.key == self._gpu else event.key
            self.tick()
        elif event.rows.id == "checkpoints":
            self._open_checkpoint(event.rows.grid, event.key)

    def _open_checkpoint(self, grid: Grid, key: str) -> None:
        if self._source is None or self._source.folder is None:
            self.say(
                "Nothing is written of this one, so there is no more to say of a checkpoint than"
                " its row does."
            )
            return
        from ckptcost.tui.screens.checkpoint import CheckpointOverLive

        self.app.push_screen(
            CheckpointOverLive(str(self._source.folder), live_setup.checkpoint_named(grid, key))
        )


def shifted(among: tuple[T, ...], now: T, by: int, around: bool = False) -> T:
    """The value so many places further."""
    place = (among.index(now) if now in among else 0) + by
    return among[place % len(among)] if around else among[min(max(place, 0), len(among) - 1)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
