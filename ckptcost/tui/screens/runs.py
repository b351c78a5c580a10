"""What was recorded, and what can be done with it: opened, marked, calibrated, compared, replayed,
followed, deleted, named by a path."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.widgets import Input

from ckptcost.errors import CkptcostError
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.modals.confirm import Confirm
from ckptcost.tui.screens import runs_entries, runs_reading, runs_removal
from ckptcost.tui.screens.runs_entries import Entry, Learned, Source
from ckptcost.tui.screens.runs_list import RunsList
from ckptcost.tui.widgets.rows import Rows


class RunsScreen(RunsList):
    """Every run of the list can be opened in one way or another."""

    MODE = "runs"
    ABOUT = (
        "Every run that was recorded on this machine and kept: `ckptcost run`, `attach`, `measure"
        " --record`, `probe` and the live screen write them. ckpts counts the checkpoints that its"
        " marks tell of. Mean stall, written and J come from its readings and are those of"
        " `ckptcost report`; they are looked up for the newest runs and for the one under the"
        " cursor, and large ones when they are opened. complete: somebody stopped the recorder;"
        " recording: it still goes on; cut short: it was killed, or the machine went down."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command("runs.open", "enter", "open", "Open the run under the cursor", "open_run", 1),
        Command(
            "runs.filter", "slash", "filter", "Show only runs that have some words", "filter", 2
        ),
        Command("runs.mark", "space", "mark", "Mark runs to be calibrated together", "mark", 3),
        Command(
            "runs.calibrate",
            "c",
            "calibrate",
            "Take the model's figures from the marked runs, or from this one",
            "calibrate",
            4,
        ),
        Command(
            "runs.against",
            "m",
            "model",
            "Hold this run against the scenario: measured beside modelled",
            "against",
            5,
        ),
        Command("runs.replay", "r", "replay", "Play the run again on the live screen", "replay", 6),
        Command(
            "runs.path",
            "o",
            "open path",
            "Open a run elsewhere by its path, or list another folder",
            "path",
            7,
        ),
        Command("runs.sort", "s", "sort", "Sort by the next column", "sort", 8),
        Command("runs.follow", "f", "follow", "Watch a run that still goes on", "follow", 9),
        Command(
            "runs.delete",
            "d",
            "delete",
            "Delete the run under the cursor; asks first",
            "delete",
            10,
        ),
        Command("runs.again", "R", "read again", "Look through the folders again", "again"),
        Command("runs.stop", "x", "stop", "Stop looking through the folders", "stop_reading"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a run that goes on can be followed, and only reading can be stopped."""
        if action == "follow":
            return any(entry.goes_on for entry in self._entries.values())
        return action != "stop_reading" or self._reading

    def action_again(self) -> None:
        if not self._reading:
            self._read()

    def action_stop_reading(self) -> None:
        self.stop_background("read")
        self.stop_background("learn")
        if self._reading:
            self._reading = False
            self._learn()
            self.say(runs_entries.unread_text(self._unread, whole=False), "warn")
            self._show()

    def action_sort(self) -> None:
        if self._rows.grid.rows:
            self._rows.sort_next()

    def action_filter(self) -> None:
        self._ask("#filter")

    def action_path(self) -> None:
        self._ask("#path")

    def _ask(self, field: str) -> None:
        asked = self.query_one(field, Input)
        asked.add_class("-on")
        asked.focus()

    @on(Input.Changed, "#filter")
    def _narrow(self) -> None:
        self._show()

    @on(Input.Blurred)
    def _left(self, event: Input.Blurred) -> None:
        event.input.set_class(bool(event.value) and event.input.id == "filter", "-on")
        if self.focused is None:
            self._rows.focus()

    @on(Input.Submitted, "#filter")
    def _filtered(self) -> None:
        self._rows.focus()

    @on(Input.Submitted, "#path")
    def _named(self, event: Input.Submitted) -> None:
        text, within = event.value, self._within
        if not text.strip():
            self._rows.focus()
            self._list(None)
            return
        self.background("named", lambda stopped: runs_reading.named(text, within), self._opened)

    def _opened(self, found: tuple[list[Entry], Path | None]) -> None:
        entries, folder = found
        path = self.query_one("#path", Input)
        path.value = ""
        self._rows.focus()
        if len(entries) == 1:
            self._push_run(entries[0])
        else:
            self._list(folder or entries[0].kept.path)

    def _list(self, folder: Path | None) -> None:
        """Another folder's runs."""
        self._within, self._entries, self._marked, self._study = folder, {}, {}, None
        self._read()

    @on(Rows.Chosen)
    def _chosen(self) -> None:
        self.action_open_run()

    def action_open_run(self) -> None:
        if (entry := self._entry) is not None:
            self._push_run(entry)

    def _push_run(self, entry: Entry) -> None:
        from ckptcost.tui.screens.run import RunScreen

        key = entry.key

        def learned(what: Learned) -> None:
            if (known := self._entries.get(key)) is not None:
                self._tell(known.knowing(learned=what, why=""))

        self.app.push_screen(RunScreen(entry.source, entry.goes_on, learned))

    def action_mark(self) -> None:
        key = self._rows.key
        if not key:
            return
        if key in self._marked:
            del self._marked[key]
        else:
            self._marked[key] = None
        self._show()
        self._rows.action_move(1)

    def _chosen_sources(self) -> list[Source]:
        marked = [self._entries[key].source for key in self._marked if key in self._entries]
        entry = self._entry
        return marked or ([entry.source] if entry is not None else [])

    def action_calibrate(self) -> None:
        from ckptcost.tui.screens.calibrate import CalibrateScreen

        if sources := self._chosen_sources():
            self.app.push_screen(CalibrateScreen(sources))

    def action_against(self) -> None:
        from ckptcost.tui.screens.against import AgainstScreen

        if (entry := self._entry) is not None:
            self.app.push_screen(AgainstScreen(entry.source))

    def action_replay(self) -> None:
        if (entry := self._entry) is not None:
            self._to_live("replay", entry)

    def action_follow(self) -> None:
        entry = self._entry
        if entry is None:
            return
        if entry.goes_on:
            self._to_live("follow", entry)
        else:
            self.say("This run has ended: Enter opens it, r replays it.", "warn")

    def _to_live(self, what: str, entry: Entry) -> None:
        if not self.hand_over(what, entry.source.word):
            self.say(f"The live screen cannot {what} here.", "warn")

    def action_delete(self) -> None:
        entry = self._entry
        if entry is None:
            return
        try:
            removal = runs_removal.removal_of(entry)
        except (CkptcostError, OSError) as error:
            self.say(str(error), "bad")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.background(
                    "delete",
                    lambda stopped: runs_removal.remove(removal),
                    lambda said: self._deleted(entry.key, said),
                )

        self.app.push_screen(
            Confirm(f"Delete the run {entry.source.short}?", removal.text, "delete"), answered
        )

    def _deleted(self, key: str, said: str) -> None:
        self._entries.pop(key, None)
        self._marked.pop(key, None)
        self._study = runs_entries.study_of_runs(
            list(self._entries.values()), self._unread, self._within
        )
        self._show()
        self.say(said, "good")
        self._read(quiet=True)  # what is being read may still have it
