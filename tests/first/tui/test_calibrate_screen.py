"""Calibrating on a screen: ticks, the check, writing as the command line writes, the desk, and
taking it back."""

from __future__ import annotations

import pytest
from recorded_runs import LARGE_RUN, SMALL_RUN, simulated_run
from screening import SMALL, USUAL, screen_text, settled, shown
from small_runs import recorded
from textual.widgets import Input

from ckptcost.first.runs import store
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.screens.calibrate import CalibrateScreen
from ckptcost.first.tui.screens.recorded_run import RunSource
from ckptcost.first.tui.widgets.rows import Rows


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("made")
    simulated_run(base / "small", 20e9, SMALL_RUN)
    simulated_run(base / "large", 100e9, LARGE_RUN, after_s=3600)
    recorded(base / "idle", 20, run_id="a" * 32, saves=())
    return base


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "user"


def source_of(path):
    (kept,) = store.kept_at(path)
    return RunSource(str(path), kept.run, 300_000, True, 2)


def opened(drive, made, script, size=USUAL, names=("small", "large")):
    async def first(pilot):
        pilot.app.push_screen(CalibrateScreen([source_of(made / name) for name in names]))
        await settled(pilot)
        return await script(pilot)

    return drive(CkptcostApp(Desk(base="small-8b"), start="runs"), first, size)


def cells(pilot, name="#table"):
    return {row.key: row.cells for row in pilot.app.screen.query_one(name, Rows).grid.rows}


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_what_the_runs_give(made, mine, drive, snapshot, size, name):
    async def script(pilot):
        snapshot(pilot.app, f"calibrate_{name}_normal")

    opened(drive, made, script, size)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_runs_that_give_nothing(made, mine, drive, snapshot, size, name):
    async def script(pilot):
        snapshot(pilot.app, f"calibrate_{name}_empty")
        for key in ("space", "a", "w", "u", "t", "s"):
            await pilot.press(key)
            await settled(pilot)
        assert not list(mine.rglob("*"))

    opened(drive, made, script, size, names=("idle",))


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_a_name_that_is_taken(made, mine, drive, snapshot, size, name):
    async def script(pilot):
        field = pilot.app.screen.query_one("#id", Input)
        await pilot.press("n")
        field.value = "flash-shared"
        await settled(pilot)
        snapshot(pilot.app, f"calibrate_{name}_error")
        await pilot.press("enter", "w")
        await settled(pilot)
        assert "a tier that ships is called" in screen_text(pilot.app)
        assert not list(mine.rglob("*.toml"))

    opened(drive, made, script, size)


def test_ticks_change_what_would_happen(made, mine, drive):
    async def script(pilot):
        await pilot.press("down")
        await settled(pilot)
        assert "Time of a save that does not depend on its size." in screen_text(pilot.app)
        before = cells(pilot, "#effect")
        rows = pilot.app.screen.query_one("#table", Rows)
        rows.select("cluster.gpu_train")
        await pilot.press("space")
        await settled(pilot)
        assert cells(pilot)["cluster.gpu_train"][0].startswith("[ ]")
        rows.select("cluster.gpu_stall")
        await pilot.press("space")
        await settled(pilot)
        assert cells(pilot, "#effect") != before
        rows.select("tier.node_write")
        await pilot.press("space")
        await settled(pilot)
        assert "written whole" in screen_text(pilot.app)
        await pilot.press("a")
        await settled(pilot)
        assert cells(pilot, "#effect") == before
        assert cells(pilot)["cluster.gpu_stall"][0].startswith("[x]")
        await pilot.press("a")
        await settled(pilot)
        assert cells(pilot)["cluster.gpu_stall"][0].startswith("[ ]")

    opened(drive, made, script)


def test_written_put_on_the_desk_and_taken_back(cli, made, mine, drive, tmp_path, monkeypatch):
    async def script(pilot):
        desk = pilot.app.desk
        pilot.app.screen.query_one("#id", Input).value = "our-lustre"
        await settled(pilot)
        assert "--as our-lustre" in pilot.app.screen.command_line()
        await pilot.press("w")
        await settled(pilot)
        assert isinstance(pilot.app.screen, Confirm)
        written = {file.relative_to(mine): file.read_bytes() for file in mine.rglob("*.toml")}
        await pilot.press("y")
        await settled(pilot)
        assert pilot.app.desk.tier_chosen() == "our-lustre"
        assert "cluster.gpu_train" in pilot.app.desk.edits
        assert float(
            pilot.app.desk.resolved().scenario.tier.node_write_bytes_per_s
        ) == pytest.approx(20e9, rel=0.05)
        assert "our-lustre is on the desk" in screen_text(pilot.app)
        await pilot.press("w")
        await settled(pilot)
        assert "written already" in screen_text(pilot.app)
        await pilot.press("u")
        await settled(pilot)
        assert pilot.app.desk == desk
        assert not list(mine.rglob("*.toml"))
        assert "taken back" in screen_text(pilot.app)
        return written

    written = opened(drive, made, script)
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "by-cli"))
    assert (
        cli("calibrate", str(made / "small"), str(made / "large"), "--as", "our-lustre").code == 0
    )
    assert written == {
        file.relative_to(tmp_path / "by-cli"): file.read_bytes()
        for file in (tmp_path / "by-cli").rglob("*.toml")
    }
    assert len(written) == 2


def test_declined_it_is_written_only(made, mine, drive):
    async def script(pilot):
        desk = pilot.app.desk
        await pilot.press("w")
        await settled(pilot)
        await pilot.press("n")
        await settled(pilot)
        assert pilot.app.desk is desk
        assert len(list(mine.rglob("*.toml"))) == 2
        await pilot.press("u")
        await settled(pilot)
        assert not list(mine.rglob("*.toml"))
        await pilot.press("u")
        await settled(pilot)
        assert "Nothing was written here" in screen_text(pilot.app)

    opened(drive, made, script)


def test_each_save_measured_and_fitted(made, mine, drive):
    async def script(pilot):
        await pilot.press("t")
        await settled(pilot)
        grid = pilot.app.screen.query_one("#table", Rows).grid
        assert grid.title == "Saves and loads, measured and fitted"
        assert len(grid.rows) == 6
        await pilot.press("space")
        await settled(pilot)
        assert pilot.app.screen.query_one("#table", Rows).grid == grid

    opened(drive, made, script)


def test_a_disk_that_refuses(made, mine, drive):
    mine.write_text("a file is in the way")

    async def script(pilot):
        await pilot.press("w")
        await settled(pilot)
        assert isinstance(pilot.app.screen, CalibrateScreen)
        await shown(pilot, "could not be written")  # however long the path before it

    opened(drive, made, script)
