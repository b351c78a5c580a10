"""The list of runs: read in the background, filled as it goes, and more told of the run that
somebody rests on."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from textual import on
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from ckptcost.present.grid import Grid
from ckptcost.tui.run_reader import READER
from ckptcost.tui.screens import runs_entries, runs_reading
from ckptcost.tui.screens.base import ModeScreen, Stopped
from ckptcost.tui.screens.runs_entries import Entry
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows

LOOK_S = 0.3
"""the cursor rests so long on a run before its readings are looked at"""
LIVE_S = 2.0
"""how often runs that go on are looked at again"""
DRAW_S, DRAW_SHARE = 0.2, 0.05
"""how often the list is drawn while facts about single runs come in, and for how much of the time
at most"""


class RunsList(ModeScreen):
    """What is done with a run is said by the screen that this is of."""

    AUTO_FOCUS = "#list"
    DEFAULT_CSS = """
    RunsList #head {
        height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; color: $text-muted;
    }
    RunsList Input { display: none; height: 1; }
    RunsList Input.-on { display: block; }
    RunsList #list { height: 1fr; }
    RunsList #details { height: 12; }
    """

    class Found(Message):
        """Some more runs were found."""

        def __init__(self, entries: list[Entry], done: int, of: int) -> None:
            super().__init__()
            self.entries, self.done, self.of = entries, done, of

    class Told(Message):
        """More is known of one."""

        def __init__(self, entry: Entry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, Entry] = {}
        self._marked: dict[str, None] = {}
        """in the order in which they were marked"""
        self._within: Path | None = None
        self._unread: list[str] = []
        self._study: Any = None
        self._reading = False
        self._fresh: set[str] = set()
        """found since the folders are looked through again"""
        self._quiet = False
        self._drew_s = 0.0
        """what drawing the list took the last time"""
        self._problem = ""
        self._rest: Timer | None = None
        self._draw: Timer | None = None
        self._live: Timer | None = None

    def body(self) -> Iterable[Widget]:
        yield Static(id="head", markup=False)
        yield Input(
            id="filter",
            placeholder="words to look for: host, command, day, state ...",
            compact=True,
        )
        yield Input(
            id="path",
            placeholder=(
                "a run's folder or file, an id, or a folder of runs; empty: where runs are kept"
            ),
            compact=True,
        )
        yield Rows(id="list")
        yield Note(id="details", classes="panel tall-only")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#details").border_title = "Under the cursor"
        self._live = self.set_interval(LIVE_S, self._look_at_live, pause=True)
        self._read()

    # what the other modules ask of a screen

    def command_line(self) -> str:
        return runs_entries.command_of(self._within)

    def table(self) -> Grid | None:
        return self._rows.grid

    def exported(self) -> Any:
        return (
            runs_entries.study_of_runs(list(self._entries.values()), self._unread, self._within)
            if self._entries
            else None
        )

    def shown(self) -> None:
        if self._live is not None:
            self._live.resume()
            if not self._reading:
                self._read(quiet=True)  # another screen may have recorded something

    def hidden(self) -> None:
        if self._live is not None:
            self._live.pause()
        for name in ("learn", "look", "live"):
            self.stop_background(name)

    def give_up(self) -> None:
        for name in ("read", "learn", "look", "live"):
            self.stop_background(name)
        READER.close()

    @property
    def _rows(self) -> Rows:
        return self.query_one("#list", Rows)

    @property
    def _entry(self) -> Entry | None:
        return self._entries.get(self._rows.key)

    # reading

    def _read(self, quiet: bool = False) -> None:
        """Quietly: nobody asked, so nothing is said unless something is wrong."""
        self._reading, self._problem, self._fresh, self._quiet = True, "", set(), quiet
        self.stop_background("learn")
        within = self._within

        def work(stopped: Stopped) -> tuple[runs_reading.Reading, Any]:
            found: list[Entry] = []

            def told(entries: list[Entry], done: int, of: int) -> None:
                found.extend(entries)
                self.post_message(self.Found(entries, done, of))

            reading = runs_reading.read(within, stopped, told)
            return reading, runs_entries.study_of_runs(found, reading.unread, within)

        self.background("read", work, self._read_done, self._read_failed)
        self.refresh_bindings()
        self._show()

    @on(Found)
    def _found(self, event: Found) -> None:
        for entry in event.entries:
            before = self._entries.get(entry.key)
            self._entries[entry.key] = runs_entries.kept_facts(entry, before)
            self._fresh.add(entry.key)
        if self._reading and not self._quiet:
            self.say(runs_entries.progress(event.done, event.of, len(self._fresh)))
        self._show()

    def _read_done(self, found: tuple[runs_reading.Reading, Any]) -> None:
        reading, self._study = found
        self._reading, self._unread = False, reading.unread
        if reading.whole:
            self._entries = {
                key: entry for key, entry in self._entries.items() if key in self._fresh
            }
            self._marked = {key: None for key in self._marked if key in self._entries}
        if self._unread or not self._quiet:
            self.say(
                runs_entries.unread_text(self._unread, reading.whole),
                "warn" if self._unread else "",
            )
        self._show()
        self.refresh_bindings()
        self._learn()

    def _read_failed(self, text: str) -> None:
        self._reading, self._problem, self._study = False, text, None
        self._entries = {}
        self._show()
        self.say(text, "bad")

    def _learn(self) -> None:
        entries = list(self._entries.values())

        def work(stopped: Stopped) -> None:
            runs_reading.learn(entries, stopped, self._tell)

        self.background("learn", work, lambda _: None)

    def _tell(self, entry: Entry) -> None:
        """From any thread."""
        self.post_message(self.Told(entry))

    @on(Told)
    def _told(self, event: Told) -> None:
        entry = event.entry
        if entry.key not in self._entries:
            return
        self._entries[entry.key] = entry
        if entry.key == self._rows.key:
            self._details()
        if self._draw is None:
            self._draw = self.set_timer(max(DRAW_S, self._drew_s / DRAW_SHARE), self._show)

    def _look_at_live(self) -> None:
        """Those that go on have grown; some have ended."""
        going = [entry for entry in self._entries.values() if entry.goes_on]
        if not going or self._reading:
            return

        def work(stopped: Stopped) -> None:
            for entry in going:
                if not stopped():
                    self._tell(runs_reading.again(entry))

        self.background("live", work, lambda _: None, lambda text: None)

    def _look(self) -> None:
        """Somebody rests on this one: whatever it takes to know it."""
        entry = self._entry
        if entry is None or entry.learned is not None or (entry.told is not None and entry.why):
            return
        self.background(
            "look",
            lambda stopped: runs_reading.learn([entry], stopped, self._tell, asked=True),
            lambda _: None,
        )

    # showing

    def _show(self) -> None:
        if self._draw is not None:
            self._draw.stop()
            self._draw = None
        began_s = time.monotonic()
        entries = runs_entries.latest_first(self._entries.values())
        words = self.query_one("#filter", Input).value
        empty = self._problem or (runs_entries.READING if self._reading else runs_entries.EMPTY)
        grid = runs_entries.grid_of_runs(entries, self._marked, words, empty)
        self._rows.show(grid)
        self.query_one("#head", Static).update(
            self._problem
            or runs_entries.heading(
                self._study, self._within, len(grid.rows), len(entries), len(self._marked)
            )
        )
        self._details()
        self._drew_s = time.monotonic() - began_s

    def _details(self) -> None:
        entry = self._entry
        self.query_one("#details", Note).show(
            runs_entries.details(entry) if entry is not None else []
        )

    @on(Rows.Moved)
    def _moved(self) -> None:
        self._details()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(LOOK_S, self._look)
