"""What was recorded: the list is read in the background and filled as it goes, and more is told of
the run that somebody rests on. A run can be opened, marked, calibrated, compared, replayed,
followed, deleted, named by a path."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.amounts import count
from ckptcost.first.report.studies.runs import place_text
from ckptcost.first.report.study import Study
from ckptcost.first.runs import store
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.run_reader import READER
from ckptcost.first.tui.screens import runs_entries
from ckptcost.first.tui.screens.base import Stopped, panel
from ckptcost.first.tui.screens.recorded_run import RunSource
from ckptcost.first.tui.screens.runs_entries import FoundRuns, RunEntry
from ckptcost.first.tui.screens.tables import TablesScreen
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows

LOOK_S = 0.3
"""the cursor rests so long on a run before its readings are looked at"""
LIVE_S = 2.0
"""how often runs that go on are looked at again"""
DRAW_S, DRAW_SHARE = 0.2, 0.05
"""how often the list is drawn while facts about single runs come in, and for how much of the time
at most"""


class RunsScreen(TablesScreen):
    """Every run of the list can be opened in one way or another."""

    ABOUT = (
        "Every run that was recorded on this machine and kept: `ckptcost run`, `attach`, `measure"
        " --record`, `probe` and the live screen write them. ckpts counts the checkpoints that its"
        " marks tell of. Mean stall, written and J come from its readings and are those of"
        " `ckptcost report`; they are looked up for the newest runs and for the one under the"
        " cursor, and large ones when they are opened. complete: it ended, or somebody stopped"
        " the recorder; recording: it still goes on; cut short: it was killed, or the machine"
        " went down."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command("runs.open", "enter", "open", "Open the run under the cursor", "open_run", 1),
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
        Command(
            "runs.replay",
            "r",
            "replay",
            "Play the run again on the live screen",
            "to_live('replay')",
            6,
        ),
        Command(
            "runs.path",
            "o",
            "open path",
            "Open a run elsewhere by its path, or list another folder",
            "path",
            7,
        ),
        Command("runs.sort", "s", "sort", "Sort by the next column", "sort", 8),
        Command(
            "runs.follow", "f", "follow", "Watch a run that still goes on", "to_live('follow')", 9
        ),
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

    DEFAULT_CSS = """
    RunsScreen #head {
        height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; color: $text-muted;
    }
    RunsScreen Input { display: none; height: 1; }
    RunsScreen Input.-on { display: block; }
    RunsScreen #table { height: 1fr; }
    RunsScreen #details { height: 12; }
    """

    class Known(Message):
        """More runs were found, or more is known of some."""

        def __init__(self, entries: list[RunEntry], so_far: str = "") -> None:
            super().__init__()
            self.entries, self.so_far = entries, so_far

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, RunEntry] = {}
        self._marked: dict[str, None] = {}
        """in the order in which they were marked"""
        self._within: Path | None = None
        self._unread: list[str] = []
        self._study: Study | None = None
        """what `ckptcost runs` prints, once all folders were read"""
        self._reading = False
        self._quiet = False
        """nobody asked to read, so nothing is said unless something is wrong"""
        self._so_far = ""
        """how far reading is"""
        self._drew_s = 0.0
        """what drawing the list took the last time"""
        self._problem = ""
        self._rest: Timer | None = None
        self._draw: Timer | None = None
        self._live: Timer | None = None

    def body(self) -> Iterable[Widget]:
        yield Static(id="head", markup=False)
        yield Input(
            id="path",
            placeholder=(
                "a run's folder or file, an id, or a folder of runs; empty: where runs are kept"
            ),
            compact=True,
        )
        yield Rows(id="table")
        yield panel(Note(id="details", classes="tall-only"), "Under the cursor")

    def on_mount(self) -> None:
        super().on_mount()
        self._live = self.set_interval(LIVE_S, self._look_at_live, pause=True)
        self._read()

    # what the other modules ask of a screen

    def command_line(self) -> str:
        within = ["list", "--dir", str(self._within)] if self._within is not None else []
        return shlex.join(["ckptcost", "runs", *within])

    def exported(self) -> Study | None:
        return self._listed() if self._entries else None

    def shown(self) -> None:
        if self._live is not None:
            self._live.resume()
            if not self._reading:
                self._read(quiet=True)  # another screen may have recorded or read something

    def hidden(self) -> None:
        if self._live is not None:
            self._live.pause()
        for name in ("learn", "look", "live"):
            self.stop_background(name)

    def give_up(self) -> None:
        self.hidden()
        self.stop_background("read")
        READER.close()

    @property
    def _entry(self) -> RunEntry | None:
        return self._entries.get(self._rows.key)

    def _listed(self) -> Study:
        return runs_entries.study_of_runs(self._entries.values(), self._unread, self._within)

    # reading

    def _read(self, quiet: bool = False) -> None:
        self._reading, self._problem, self._so_far, self._quiet = True, "", "", quiet
        self.stop_background("learn")
        within = self._within

        def work(stopped: Stopped) -> tuple[FoundRuns, Study]:
            reading = runs_entries.read(within, stopped, self._tell)
            return reading, runs_entries.study_of_runs(reading.entries, reading.unread, within)

        self.background("read", work, self._read_done, self._read_failed)
        self.refresh_bindings()
        self._show()

    def _tell(self, entries: list[RunEntry], so_far: str = "") -> None:
        """From any thread."""
        self.post_message(self.Known(entries, so_far))

    @on(Known)
    def _known(self, event: Known) -> None:
        """Drawn now and then, but for what somebody looks at."""
        self._so_far = event.so_far or self._so_far
        for entry in event.entries:
            before = self._entries.get(entry.key)
            if event.so_far:
                self._entries[entry.key] = entry.after(before)
            elif before is not None:
                self._entries[entry.key] = entry
            if entry.key == self._rows.key:
                self._details()
        if self._draw is None:
            self._draw = self.set_timer(max(DRAW_S, self._drew_s / DRAW_SHARE), self._show)

    def _read_done(self, found: tuple[FoundRuns, Study]) -> None:
        reading, self._study = found
        self._reading, self._unread = False, reading.unread
        known = self._entries
        self._entries = {entry.key: known.get(entry.key, entry) for entry in reading.entries}
        self._marked = {key: None for key in self._marked if key in self._entries}
        if self._unread or not self._quiet:
            self.say(runs_entries.unread_text(self._unread), "warn" if self._unread else "")
        self._show()
        self.refresh_bindings()
        self._learn()

    def _read_failed(self, text: str) -> None:
        self._reading, self._problem, self._study = False, text, None
        self._entries = {}
        self._show()
        self.say(text, "bad")

    def _learn(self, name: str = "learn", only: RunEntry | None = None) -> None:
        """Of all runs, or whatever it takes to know one that somebody rests on."""
        entries = list(self._entries.values()) if only is None else [only]

        def work(stopped: Stopped) -> None:
            runs_entries.learn(
                entries, stopped, lambda entry: self._tell([entry]), only is not None
            )

        self.background(name, work, lambda _: None)

    def _look(self) -> None:
        entry = self._entry
        if entry is not None and entry.learned is None and (entry.told is None or not entry.why):
            self._learn("look", entry)

    def _look_at_live(self) -> None:
        """Those that go on have grown; some have ended."""
        going = [entry for entry in self._entries.values() if entry.goes_on]
        if not going or self._reading:
            return

        known, unread, within = dict(self._entries), self._unread, self._within

        def work(stopped: Stopped) -> Study:
            for entry in going:
                if not stopped():
                    known[entry.key] = runs_entries.again(entry)
                    self._tell([known[entry.key]])
            return runs_entries.study_of_runs(known.values(), unread, within)

        def done(study: Study) -> None:
            if not self._reading and known.keys() == self._entries.keys():
                self._study = study
                self._show()

        self.background("live", work, done, lambda text: None)

    # showing

    def _show(self) -> None:
        if self._draw is not None:
            self._draw.stop()
            self._draw = None
        began_s = time.monotonic()
        entries = runs_entries.latest_first(self._entries.values())
        empty = self._problem or (runs_entries.READING if self._reading else runs_entries.EMPTY)
        self._rows.show(runs_entries.grid_of_runs(entries, self._marked, empty))
        self.query_one("#head", Static).update(self._problem or self._heading())
        self._details()
        if self._so_far and self._reading and not self._quiet:
            self.say(f"Reading the runs: {self._so_far}; x stops")
        self._drew_s = time.monotonic() - began_s

    def _heading(self) -> str:
        """How many, where, and how much they take; as the command line says it."""
        study, marked = self._study, len(self._marked)
        found = study.findings if study is not None and self._entries else []
        title = study.title if study is not None else "Runs"
        parts = [
            f"{title} in {place_text(self._within or store.home())}",
            *(finding.rstrip(".") for finding in found),
            f"{count(marked)} marked" if marked else "",
        ]
        return "; ".join(filter(None, parts))

    def _details(self) -> None:
        entry = self._entry
        lines = runs_entries.details(entry) if entry is not None else []
        self.query_one("#details", Note).show(lines)

    @on(Rows.Moved)
    def _moved(self) -> None:
        self._details()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(LOOK_S, self._look)

    # what is done with a run

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a run that goes on can be followed, and only reading can be stopped."""
        if (action, *parameters) == ("to_live", "follow"):
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
            self.say("Stopped before all folders were read; R reads on.", "warn")
            self._show()

    def action_path(self) -> None:
        asked = self.query_one("#path", Input)
        asked.add_class("-on")
        asked.focus()

    @on(Input.Blurred)
    def _left(self, event: Input.Blurred) -> None:
        event.input.remove_class("-on")
        if self.focused is None:
            self._rows.focus()

    @on(Input.Submitted)
    def _named(self, event: Input.Submitted) -> None:
        text, within = event.value, self._within
        if not text.strip():
            self._rows.focus()
            self._list(None)
            return
        self.background("named", lambda stopped: runs_entries.opened(text, within), self._opened)

    def _opened(self, found: tuple[list[RunEntry], Path | None]) -> None:
        entries, folder = found
        self.query_one("#path", Input).value = ""
        self._rows.focus()
        if len(entries) == 1:
            self._open(entries[0])
        else:
            self._list(folder or entries[0].kept.path)

    def _list(self, folder: Path | None) -> None:
        """Another folder's runs."""
        self._within, self._entries, self._marked, self._study = folder, {}, {}, None
        self._read()

    @on(Rows.Chosen)
    def action_open_run(self) -> None:
        if (entry := self._entry) is not None:
            self._open(entry)

    def _open(self, entry: RunEntry) -> None:
        from ckptcost.first.tui.screens.run import RunScreen

        self.app.push_screen(RunScreen(entry.source))

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

    def _chosen_sources(self) -> list[RunSource]:
        entries = [self._entries[key] for key in self._marked if key in self._entries]
        entries = entries or [entry for entry in (self._entry,) if entry is not None]
        return [entry.source for entry in entries]

    def action_calibrate(self) -> None:
        from ckptcost.first.tui.screens.calibrate import CalibrateScreen

        if sources := self._chosen_sources():
            self.app.push_screen(CalibrateScreen(sources))

    def action_against(self) -> None:
        from ckptcost.first.tui.screens.against import AgainstScreen

        if (entry := self._entry) is not None:
            self.app.push_screen(AgainstScreen(entry.source))

    def action_to_live(self, what: str) -> None:
        """`replay` it, or `follow` one that goes on."""
        entry = self._entry
        if entry is None:
            return
        if what == "follow" and not entry.goes_on:
            self.say("This run has ended: Enter opens it, r replays it.", "warn")
        elif not self.hand_over(what, entry.source.word):
            self.say(f"The live screen cannot {what} here.", "warn")

    def action_delete(self) -> None:
        entry = self._entry
        if entry is None:
            return
        try:
            removal = runs_entries.removal_of(entry)
        except (CkptcostError, OSError) as error:
            self.say(str(error), "bad")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.background(
                    "delete",
                    lambda stopped: runs_entries.remove(removal),
                    lambda said: self._deleted(entry.key, said),
                )

        self.app.push_screen(
            Confirm(f"Delete the run {entry.source.short}?", removal.text, "delete"), answered
        )

    def _deleted(self, key: str, said: str) -> None:
        self._entries.pop(key, None)
        self._marked.pop(key, None)
        self._study = self._listed()
        self.say(said, "good")
        self._read(quiet=True)  # what is being read may still have it
