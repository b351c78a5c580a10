"""The probe's screen: the plan before anything is written, a probe under way, its end, and that it
never leaves a file behind."""

from __future__ import annotations

import asyncio
import os
import time

import pytest
from doctor_studies import common
from probing import DISK, alone, slow_writes
from screening import SMALL, USUAL, screen_text, settled, shown, until
from textual.widgets import Input

from ckptcost.first.runs import store
from ckptcost.first.savers.base import Io, Latencies
from ckptcost.first.tui import state
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.modals.picker import Picker
from ckptcost.first.tui.screens import meters, probe_plan, probe_run
from ckptcost.first.tui.screens.probe_plan import Draft, Spot
from ckptcost.first.tui.screens.probe_run import Ended, progress
from ckptcost.first.tui.widgets.bottom import Status
from ckptcost.first.tui.widgets.form import Form

SIZES = [(SMALL, "80x24"), (USUAL, "120x36")]


@pytest.fixture
def place(monkeypatch, tmp_path):
    """An empty folder, which the form begins with."""
    found = alone(monkeypatch, tmp_path)
    monkeypatch.setattr(
        probe_plan, "fresh", lambda: Draft(str(found), "16 MB", "posix", "2", "1", "no", "0", "no")
    )
    return found


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """What a probe of a simulated machine finds, once for all."""
    draft = Draft("/scratch", "20 GB", rounds="2", quarter="no")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("scratch")))
        return probe_run.Running(
            probe_plan.asking(draft, Desk(), None, "simulated").ready, "simulated"
        ).work(lambda: False)


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """The form as anybody sees it: a disk of known size, and a folder whose name is short."""
    alone(monkeypatch, tmp_path)
    found = {"spot": DISK._replace(directory="/scratch")}
    monkeypatch.setattr(probe_plan, "fresh", lambda: Draft("/scratch", "20 GB"))
    monkeypatch.setattr(
        probe_plan, "look", lambda directory: found["spot"]._replace(directory=directory)
    )
    return found


@pytest.mark.parametrize(("size", "name"), SIZES)
class TestPictures:
    def test_before(self, drive, snapshot, drawn, size, name):
        app = CkptcostApp(start="probe")

        async def script(pilot):
            snapshot(app, f"probe_{name}_normal")

        drive(app, script, size)

    def test_refused(self, drive, snapshot, drawn, size, name):
        drawn["spot"] = Spot("", "", "tmpfs", "", "memory", 8e9, 16e9, 16e9)
        app = CkptcostApp(start="probe")

        async def script(pilot):
            await pilot.press("enter")
            snapshot(app, f"probe_{name}_error")
            assert app.screen._under_way is None

        drive(app, script, size)

    def test_under_way(self, drive, snapshot, drawn, monkeypatch, size, name):
        """Half way through: the engine's part is told by hand."""

        def work(self, stopped):
            while not stopped() and not self.watch.stopped:
                time.sleep(0.01)
            return probe_run.Ended(True)

        monkeypatch.setattr(probe_run.Running, "work", work)
        monkeypatch.setattr(probe_run, "progress", half_way)
        app = CkptcostApp(start="probe")

        async def script():
            async with app.run_test(size=size) as pilot:
                await settled(pilot)
                await pilot.press("ctrl+r")
                await pilot.pause()
                await pilot.press("y")
                await pilot.pause()
                await pilot.pause()
                snapshot(app, f"probe_{name}_running")
                await pilot.press("x")
                await settled(pilot)

        asyncio.run(script())

    def test_over(self, drive, snapshot, drawn, simulated, monkeypatch, size, name):
        monkeypatch.setattr(probe_run.Running, "work", lambda self, stopped: simulated)
        app = CkptcostApp(start="probe", meters="simulated")

        async def script(pilot):
            await pilot.press("ctrl+r")
            await settled(pilot)
            snapshot(app, f"probe_{name}_result")
            await pilot.press("g")
            await pilot.pause()
            snapshot(app, f"probe_{name}_picture")

        drive(app, script, size)


def half_way(running, stopping=False):
    """Round 1 of 6 is written and read, round 2 is half written; the clock says so."""
    watch = probe_run.Watch()
    watch.begin_ns = 0
    gb, s = 10**9, 10**9
    wave = (2.0, 2.1, 1.9, 2.2, 2.0, 1.8, 2.0, 2.1, 1.9, 2.0)
    late = Latencies(500, 0.033, 0.031, 0.04, 0.0512, 0.09)
    for what, begin_s, begin, end, safe in (("save", 2, 0, 10, 11), ("load", 13, 0, 5, None)):
        watch.begin(what, 1, 20 * gb)
        one, moved = watch.passes[-1], 0
        for k in range(1, 41):
            moved += int(wave[k % 10] * 0.25 * gb)
            one.moves.append(((begin_s * s) + k * s * (end - begin) // 40, moved))
        one.io = Io(
            begin_s * s,
            (begin_s + end) * s,
            None if safe is None else (begin_s + safe) * s,
            20 * gb,
            16,
            1.0,
            late,
            16.0,
            (),
            (),
        )
    watch.begin("save", 2, 5 * gb)
    watch.passes[-1].begin_ns = 19 * s
    watch.passes[-1].moves = [(19 * s + k * s // 4, k * gb // 2) for k in range(1, 6)]
    watch.moved_bytes, watch.all_bytes = 25 * 10**8, 625 * 10**8
    made = probe_run.Running(running.plan, running.meters)
    made.watch = watch
    return progress(made, stopping, 20 * s + s // 4)


def test_typing_changes_the_plan_at_once(drive, drawn):
    app = CkptcostApp(start="probe")

    async def script(pilot):
        assert "Will write 75 GB into" in screen_text(app)
        form = app.screen.query_one(Form)
        form.enter("size")
        await pilot.pause()
        await pilot.press(*"4 GB")
        await settled(pilot)
        assert "Will write 15 GB into" in screen_text(app)
        assert app.screen.command_line() == "ckptcost probe /scratch --size '4 GB'"
        await pilot.press("backspace", "x")
        await settled(pilot)
        assert app.screen.command_line() == ""
        assert "unknown unit" in screen_text(app)
        await pilot.press("escape")
        assert app.focused is None
        await pilot.press("enter")
        await pilot.pause()
        assert "Nothing was written" in screen_text(app)

    drive(app, script)


def test_choices(drive, drawn):
    app = CkptcostApp(start="probe")

    async def script(pilot):
        app.screen.query_one(Form).enter("writer")
        await pilot.pause()
        await pilot.press("f2")
        await settled(pilot)
        assert isinstance(app.screen, Picker)
        assert "write and fsync through the page cache" in screen_text(app)
        await pilot.press(*"page", "enter")
        await settled(pilot)
        assert app.screen.command_line() == "ckptcost probe /scratch --size '20 GB' --saver posix"
        assert "fit into the page cache of 64 GB" in " ".join(screen_text(app).split())

    drive(app, script)


def test_much_is_asked_about(drive, drawn):
    app = CkptcostApp(start="probe")

    async def script(pilot):
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, Confirm)
        assert (
            "75 GB are written into /scratch: that is 18.8 % of the 400 GB that are free"
            in screen_text(app)
        )
        await pilot.press("n")
        await pilot.pause()
        assert app.screen._under_way is None

    drive(app, script)


def test_from_the_form_to_a_kept_run(drive, place):
    app = CkptcostApp(start="probe", meters="block")

    async def script(pilot):
        await pilot.press("n")
        assert "Nothing is written by this" in screen_text(app)
        assert not os.listdir(place)
        await pilot.press("enter")
        await settled(pilot)
        assert "Done; everything that was written is removed." in screen_text(app)
        assert not os.listdir(place)
        assert app.screen.exported().kind == "probe"
        assert [row.cells[1] for row in app.screen.table().rows] == ["save"]
        assert app.busy() == ["What the last probe found is not kept (w keeps it)."]
        assert not store.folders()
        await pilot.press("w")
        await pilot.pause()
        assert len(store.folders()) == 1
        assert app.busy() == []
        assert f"Kept as run {app.screen._ended.probed.measured.kept[:8]}" in screen_text(app)
        await pilot.press("enter")
        await settled(pilot)
        assert len(store.folders()) == 1, "Enter on what was found begins no other"

    drive(app, script)


def test_calibrate_keeps_first(drive, place):
    app, asked = CkptcostApp(start="probe", meters="block"), []

    async def script(pilot):
        await pilot.press("c")
        assert not store.folders()
        await pilot.press("ctrl+r")
        await settled(pilot)
        app.calibrate = asked.append
        await pilot.press("c")
        await pilot.pause()
        assert asked == [[str(folder) for folder in store.folders()]]
        assert len(asked[0]) == 1
        app.calibrate = None
        await pilot.press("c")
        assert (state.home() / "clipboard.txt").read_text() == app.screen._ended.calibrating + "\n"

    drive(app, script)


def test_stopped_in_the_middle_of_a_pass(place, monkeypatch):
    counted = slow_writes(monkeypatch, 0.05)
    app = CkptcostApp(start="probe", meters="block")

    async def script():
        async with app.run_test(size=USUAL) as pilot:
            await settled(pilot)
            app.screen._edited("size", "200 MB")
            await pilot.press("ctrl+r")
            await until(pilot, lambda: len(counted) > 4)
            assert os.listdir(place)
            assert app.busy() == [
                f"A probe is writing into {place}: it is stopped and its files are removed."
            ]
            await pilot.press("ctrl+r")
            await pilot.pause()
            assert "A probe is under way" not in screen_text(app), (
                "the key does nothing while one is under way"
            )
            await pilot.press("x")
            began_s = time.monotonic()
            await settled(pilot)
            assert time.monotonic() - began_s < 2.0
            assert (
                "Stopped before a pass was through; everything that was written is removed."
                in screen_text(app)
            )
            assert not os.listdir(place)
            assert app.busy() == []

    asyncio.run(script())


def test_quitting_cleans_up(place, monkeypatch):
    counted = slow_writes(monkeypatch, 0.05)
    app = CkptcostApp(start="probe", meters="block")

    async def script():
        async with app.run_test(size=USUAL) as pilot:
            await settled(pilot)
            app.screen._edited("size", "200 MB")
            await pilot.press("ctrl+r")
            await until(pilot, lambda: len(counted) > 4)
            await pilot.press("q")
            await pilot.pause()
            assert isinstance(app.screen, Confirm)
            began_s = time.monotonic()
            await pilot.press("y")
            await pilot.pause()
            assert time.monotonic() - began_s < 2.5
            assert not os.listdir(place), "it is clean before the application is gone"

    asyncio.run(script())
    assert not os.listdir(place)


def test_an_application_that_just_ends_leaves_nothing(place, monkeypatch):
    counted = slow_writes(monkeypatch, 0.05)
    app = CkptcostApp(start="probe", meters="block")

    async def script():
        async with app.run_test(size=USUAL) as pilot:
            await settled(pilot)
            app.screen._edited("size", "200 MB")
            await pilot.press("ctrl+r")
            await until(pilot, lambda: len(counted) > 4)
            app.exit()

    asyncio.run(script())
    assert not os.listdir(place)


def test_the_disk_becomes_full(drive, place, monkeypatch):
    slow_writes(monkeypatch, 0.0, full_after=2)
    app = CkptcostApp(start="probe", meters="block")

    async def script(pilot):
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.screen._under_way is None)
        status = app.screen.query_one(Status)
        await until(pilot, lambda: "no space is left on the file system" in status.said)
        assert "Everything that was written is removed." in status.said
        await shown(pilot, "no space is left")  # the reason is seen however long the path is
        assert not os.listdir(place)
        assert app.screen._under_way is None
        assert app.busy() == []

    drive(app, script)


def test_it_goes_on_while_another_screen_is_seen(drive, place, monkeypatch):
    monkeypatch.setattr(meters, "look", lambda meters, every_gpu: common())
    slow_writes(monkeypatch, 0.3)
    app, told = CkptcostApp(start="probe", meters="block"), []
    app.notify = lambda text, **more: told.append(text)

    async def script(pilot):
        screen = app.screen
        app.screen._edited("size", "32 MB")
        await pilot.press("ctrl+r")
        await pilot.press("D")
        await until(pilot, lambda: app.screen is not screen)
        assert app.busy()
        await settled(pilot)
        assert app.screen is not screen
        assert told == ["Done; everything that was written is removed."]
        await pilot.press("5")
        await settled(pilot)
        assert app.screen is screen
        assert "measured here" in screen_text(app)

    drive(app, script)


def test_escape_leaves_a_field_before_it_stops(place, monkeypatch):
    counted = slow_writes(monkeypatch, 0.05)
    app = CkptcostApp(start="probe", meters="block")

    async def script():
        async with app.run_test(size=USUAL) as pilot:
            await settled(pilot)
            app.screen._edited("size", "200 MB")
            await pilot.press("ctrl+r")
            await until(pilot, lambda: counted)
            app.screen.query_one(Form).enter("size")
            await pilot.pause()
            assert isinstance(app.focused, Input)
            await pilot.press("escape")
            assert app.focused is None
            assert not app.screen._stopping
            await pilot.press("escape")
            await settled(pilot)
            assert "Stopped" in screen_text(app)

    asyncio.run(script())


def test_a_narrow_screen_goes_to_the_fields_and_back(drive, drawn, simulated, monkeypatch):
    monkeypatch.setattr(probe_run.Running, "work", lambda self, stopped: simulated)
    app = CkptcostApp(start="probe", meters="simulated")

    async def script(pilot):
        await pilot.press("ctrl+r")
        await settled(pilot)
        await pilot.press("e")
        await settled(pilot)
        assert isinstance(app.focused, Input)
        assert "How often" in screen_text(app)
        await pilot.press("escape", "e")
        await settled(pilot)
        assert "What follows" in screen_text(app)
        assert not isinstance(app.focused, Input)

    drive(app, script, SMALL)


def test_what_an_earlier_probe_found_is_not_there_once_another_begins(
    drive, drawn, simulated, monkeypatch
):
    monkeypatch.setattr(probe_run.Running, "work", lambda self, stopped: simulated)
    app = CkptcostApp(start="probe", meters="simulated")

    async def script(pilot):
        await pilot.press("ctrl+r")
        await settled(pilot)
        assert "measured here" in screen_text(app)
        stopped = probe_run.Ended(True)
        monkeypatch.setattr(probe_run.Running, "work", lambda self, still: stopped)
        await pilot.press("ctrl+r")
        await pilot.pause()
        await pilot.press("y")
        await settled(pilot)
        assert "Stopped before a pass was through" in screen_text(app)
        assert "measured here" not in screen_text(app)

    drive(app, script)


@pytest.mark.parametrize("plain", [False, True])
def test_without_colours(drive, drawn, simulated, monkeypatch, plain):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(probe_run.Running, "work", lambda self, stopped: simulated)
    app = CkptcostApp(start="probe", meters="simulated", plain=plain)

    async def script(pilot):
        await pilot.press("ctrl+r")
        await settled(pilot)
        text = screen_text(app)
        assert "measured here" in text
        if plain:
            assert not {"\u25b8", "\u2588"} & set(text)

    drive(app, script)


def test_quitting_removes_a_run_that_was_not_kept(drive, tmp_path):
    (folder := tmp_path / "ckptcost-run-1" / "run").mkdir(parents=True)

    async def script(pilot):
        pilot.app.screen._ended = Ended(False, study=common(), folder=folder)
        pilot.app.quit_now()
        assert not folder.parent.exists()
        pilot.app.screen._ended = None

    drive(CkptcostApp(Desk(base="small-8b"), start="probe"), script)
