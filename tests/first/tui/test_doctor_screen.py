"""The doctor's screen: looking, what was found, what would help, and a look that fails."""

from __future__ import annotations

import asyncio
import threading

import pytest
from doctor_studies import RULE, bare, common
from screening import SMALL, USUAL, screen_text, settled

from ckptcost.first.errors import MeterUnavailable
from ckptcost.first.tui import state
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.screens import meters
from ckptcost.first.tui.widgets.rows import Rows


@pytest.fixture
def looked(monkeypatch):
    """Which looks were asked for; `found` is what they give."""
    asked = []
    found = {"study": common()}

    def look(meters, every_gpu=False):
        asked.append((meters, every_gpu))
        if isinstance(found["study"], Exception):
            raise found["study"]
        return found["study"]

    monkeypatch.setattr(meters, "look", look)
    return asked, found


def copied():
    return (state.home() / "clipboard.txt").read_text("utf-8")


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
@pytest.mark.parametrize(("study", "called"), [(common, "normal"), (bare, "empty")])
def test_pictures(drive, snapshot, looked, size, name, study, called):
    looked[1]["study"] = study()
    app = CkptcostApp(start="doctor")

    async def script(pilot):
        snapshot(app, f"doctor_{name}_{called}")

    drive(app, script, size)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_a_look_that_fails(drive, snapshot, looked, size, name):
    looked[1]["study"] = MeterUnavailable("no meter named 'x'", "known: nvml, rapl")
    app = CkptcostApp(start="doctor", meters="x")

    async def script(pilot):
        snapshot(app, f"doctor_{name}_error")
        looked[1]["study"] = common()
        await pilot.press("r")
        await settled(pilot)
        assert "Permission denied" in screen_text(app)

    drive(app, script, size)


def test_looking_is_said_and_does_not_hold_up_the_screen(monkeypatch):
    go_on = threading.Event()

    def slow(meters, every_gpu=False):
        assert go_on.wait(10.0)
        return common()

    monkeypatch.setattr(meters, "look", slow)
    app = CkptcostApp(start="doctor")

    async def script():
        async with app.run_test(size=USUAL) as pilot:
            await pilot.pause()
            await pilot.press("s")
            assert screen_text(app).count("looking ...") == 2
            assert "Looking: every meter is tried" in screen_text(app)
            go_on.set()
            await settled(pilot)
            assert "looking ..." not in screen_text(app)
            assert "2 of 5 kinds are measured. Every meter was tried for 1 s." in screen_text(app)

    asyncio.run(script())


def test_keys(drive, looked):
    asked, _ = looked
    app = CkptcostApp(start="doctor", meters="nvml,block")

    async def script(pilot):
        assert asked == [("nvml,block", False)]
        await pilot.press("e")
        await settled(pilot)
        assert asked[-1] == ("nvml,block", True)
        assert (
            app.screen.command_line()
            == "ckptcost doctor --for '1 s' --meters nvml,block --gpus all"
        )
        await pilot.press("e", "r")
        await settled(pilot)
        assert asked[-1] == ("nvml,block", False)
        assert app.lights == "GPU \u25cf CPU \u2717 DRAM \u2013 IO \u25cf"
        assert app.lights in screen_text(app).splitlines()[0]
        assert app.screen.exported().kind == "checkup"

    drive(app, script)


def test_y_copies_the_remedy_else_the_command(drive, looked):
    app = CkptcostApp(start="doctor")

    async def script(pilot):
        rows = app.screen.query_one("#table", Rows)
        assert (rows.grid.title, rows.key) == ("Not measured here", "0")
        await pilot.press("y")
        assert copied() == RULE + "\n"
        await pilot.press("t")
        await pilot.pause()
        assert "NVIDIA H200 0" in screen_text(app)
        await pilot.press("y")
        assert copied() == "ckptcost doctor --for '1 s'\n"
        assert app.screen.table().rows

    drive(app, script)


def test_letters_only(drive, looked):
    app = CkptcostApp(start="doctor", plain=True)

    async def script(pilot):
        assert app.lights == "GPU * CPU x DRAM - IO *"
        assert not {"\u25cf", "\u2717", "\u2013", "\u25cb"} & set(screen_text(app))

    drive(app, script)


def test_a_simulated_machine(drive):
    app = CkptcostApp(start="doctor", meters="simulated")

    async def script(pilot):
        text = screen_text(app)
        assert "none of this is yours" in text
        assert "gpu:0 and 7 more" in text

    drive(app, script)
