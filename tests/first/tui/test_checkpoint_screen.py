"""The screen of one checkpoint: laid over another, left and right to its neighbours, Escape
back."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_told import DESK
from screening import SMALL, USUAL, WIDE, screen_text, settled
from textual.screen import Screen
from told_meters import Told, at, energy, recorded, said

from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import MachinePlan, marks
from ckptcost.first.runs import recorder
from ckptcost.first.runs.clocks import VirtualClock
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.screens.checkpoint import TABLES, CheckpointOverLive, CheckpointScreen
from ckptcost.first.tui.screens.recorded_run import RUNS, read_run
from ckptcost.first.tui.screens.runs_entries import source_at
from ckptcost.first.tui.widgets.bottom import Status
from ckptcost.first.tui.widgets.note import Note


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    """Two asynchronous saves, always under the same name and on the same host."""
    patch = pytest.MonkeyPatch()
    patch.setattr(recorder, "new_run_id", lambda: "3f9a1b2c00000000")
    patch.setattr(recorder, "host_name", lambda: "gpu-07")
    plan = MachinePlan(gpus=2, disks=2, first_s=10.0, interval_s=20.0, asynchronous=True)
    seen = simulated.find(plan, origin_ns=0)
    folder = tmp_path_factory.mktemp("kept") / "run"
    record(
        Instruments(seen.meters, seen.absences, VirtualClock(0), list(marks(plan, 0.0, 42.0))),
        42.0,
        folder,
    )
    patch.undo()
    return str(folder)


class Under(Screen[None]):
    """What the screen is laid over."""


class App(CkptcostApp):
    MODES = {**CkptcostApp.MODES, "live": Under}  # noqa: RUF012


def app_on(desk=DESK) -> App:
    return App(desk, start="live")


async def opened(pilot, run_: str, which: str) -> CheckpointScreen:
    screen = CheckpointScreen(source_at(run_), which)
    pilot.app.push_screen(screen)
    await settled(pilot)
    return screen


def status(app) -> str:
    return app.screen.query_one(Status).said


def test_one_checkpoint_in_three_sizes(drive, snapshot, run):
    app = app_on()

    async def script(pilot):
        screen = await opened(pilot, run, "save-1")
        for size in (WIDE, USUAL, SMALL):
            await pilot.resize_terminal(*size)
            await settled(pilot)
            snapshot(app, f"checkpoint_{size[0]}x{size[1]}_normal")
        assert "save-1, save 1 of 2" in screen_text(app)
        assert (
            screen.command_line() == f"ckptcost report {run} && ckptcost compare run:{run} small-8b"
        )
        assert screen.exported() == read_run(source_at(run)).study

    drive(app, script, WIDE)


def test_neighbours_tables_and_the_way_back(drive, run):
    app = app_on()

    async def script(pilot):
        screen = CheckpointOverLive(run, "2")
        pilot.app.push_screen(screen)
        await settled(pilot)
        assert "[4 Live]" in screen_text(app)
        assert "save-2, save 2 of 2" in screen_text(app)
        await pilot.press("right")
        assert status(app) == "There is none after this one."
        await pilot.press("left")
        await settled(pilot)
        assert "save-1, save 1 of 2" in screen_text(app)
        await pilot.press("p")
        assert status(app) == "There is none before this one."
        titles = []
        for _ in TABLES:
            titles.append(screen.table().title)
            await pilot.press("t")
        assert titles == [
            "Line by line",
            "Joules by checkpoint and domain",
            "The bill of one",
            "Phases, all metered parts together",
            "Disks, by checkpoint",
            "All that is known of it",
        ]
        screen.change(DESK.edited("cluster.gpus", "many"))
        await settled(pilot)
        assert screen.command_line() == f"ckptcost report {run}"
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, Under)

    drive(app, script)


def test_a_run_that_was_read_is_not_read_again(drive, run, monkeypatch):
    app = app_on()
    RUNS.load(source_at(run))
    monkeypatch.setattr(
        "ckptcost.first.runs.reader.load", lambda *_: pytest.fail("it was read already")
    )

    async def script(pilot):
        await opened(pilot, run, "save-2")
        assert "save-2, save 2 of 2" in screen_text(app)
        monkeypatch.setattr("ckptcost.first.tui.screens.recorded_run._stamps", lambda source: ())
        await pilot.press("left")  # it grows, as one that is being recorded does
        await settled(pilot)
        assert "save-1, save 1 of 2" in screen_text(app)

    drive(app, script)


def test_what_is_not_known_and_what_is_not_there(drive, snapshot, run, tmp_path: Path):
    bare = tmp_path / "bare"
    recorded(
        Told("told", {energy("gpu:0", tick_s=0.1): at(300.0, 0.1)}),
        marks=said("begin 5, returned 7", "step_9"),
        directory=bare,
    )
    app = app_on()

    async def script(pilot):
        await opened(pilot, run, "save-9")
        snapshot(app, "checkpoint_120x36_error")
        assert "save-9" in status(app)
        await pilot.press("left", "t", "escape")
        await settled(pilot)
        pilot.app.push_screen(CheckpointOverLive(str(tmp_path / "none"), "1"))
        await settled(pilot)
        assert "none" in status(app)
        await pilot.press("escape")
        await settled(pilot)
        screen = await opened(pilot, str(bare), "step_9")
        said_there = screen.query_one("#said", Note).lines
        assert any("not known when they were safe: no mark says so." in line for line in said_there)

    drive(app, script, USUAL)
