"""The list of runs on a screen: filled as it goes, filtered, marked, opened, deleted, and where
there is nothing or no way in."""

from __future__ import annotations

import shutil
import time

import pytest
from recorded_runs import LARGE_RUN, SMALL_RUN, fill, simulated_run
from screening import SMALL, USUAL, WIDE, screen_text, settled, shown, styles_of, until
from small_runs import recorded
from textual.widgets import Input

from ckptcost.first.present.amounts import size
from ckptcost.first.runs import store, summary
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.screens import runs, runs_entries
from ckptcost.first.tui.screens.calibrate import CalibrateScreen
from ckptcost.first.tui.screens.run import RunScreen
from ckptcost.first.tui.screens.runs import RunsScreen
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("made")
    simulated_run(base / "small", 20e9, SMALL_RUN)
    simulated_run(base / "large", 100e9, LARGE_RUN, after_s=3600)
    return base


@pytest.fixture
def learning(monkeypatch):
    """Readings of the newest runs are evaluated unasked; in other tests they are not, for it takes
    longer than all else."""
    monkeypatch.setattr(runs_entries, "NEWEST", 30)


@pytest.fixture
def home(tmp_path, monkeypatch, made):
    monkeypatch.setattr(runs_entries, "NEWEST", 0)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    return fill(tmp_path / "runs", made)


async def named(pilot, text):
    """`o`, and the path without a key for each letter."""
    await pilot.press("o")
    pilot.app.screen.query_one("#path", Input).value = text
    await pilot.press("enter")
    await settled(pilot)


def app():
    return CkptcostApp(Desk(base="small-8b"), start="runs")


def names(pilot):
    return [row.cells[1] for row in pilot.app.screen.query_one("#table", Rows).grid.rows]


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36"), (WIDE, "200x50")])
def test_the_list(home, learning, drive, snapshot, size, name):
    async def script(pilot):
        await pilot.press("down")
        await settled(pilot)
        await shown(pilot, " 1.5 s")  # of the oldest, which is evaluated last
        snapshot(pilot.app, f"runs_{name}_normal")
        assert names(pilot) == ["dead0000", "c0ffee00", "1a49e000", "5a110000"]
        assert styles_of(pilot.app, "cut short") != styles_of(pilot.app, "c0ffee00")

    drive(app(), script, size)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_nothing_yet(home, drive, snapshot, size, name):
    shutil.rmtree(home)

    async def script(pilot):
        snapshot(pilot.app, f"runs_{name}_empty")
        for key in ("enter", "space", "c", "m", "r", "f", "d", "s", "E"):
            await pilot.press(key)
            await settled(pilot)
            if key == "E":
                await pilot.press("escape")
        assert isinstance(pilot.app.screen, RunsScreen)

    drive(app(), script, size)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_damaged_and_closed_folders(home, drive, snapshot, size, name, monkeypatch):
    (home / "foreign").mkdir()
    (home / "foreign" / "data.jsonl").write_text('{"text": "hello"}\n')
    broken = home / "20260103T000000Z-gpu-08-dead0000" / "gpu-08.000.jsonl"
    broken.write_bytes(broken.read_bytes()[:-20])
    monkeypatch.setattr(runs, "LOOK_S", 3600.0)  # of the one under the cursor no more is told

    async def script(pilot):
        snapshot(pilot.app, f"runs_{name}_error")
        assert len(names(pilot)) == 4

        def closed(within=None):
            raise runs_entries.RunFileError(
                "cannot be listed (Permission denied)",
                where="~/runs",
                remedy="set CKPTCOST_RUNS to another",
            )

        monkeypatch.setattr(store, "folders", closed)
        await pilot.press("R")
        await settled(pilot)
        assert names(pilot) == []
        assert screen_text(pilot.app).count("cannot be listed (Permission denied)") >= 2, (
            "in the list and in the line below"
        )

    drive(app(), script, size)


def test_filter(home, drive):
    async def script(pilot):
        await pilot.press("slash", *"gpu-07")
        await settled(pilot)
        assert names(pilot) == ["c0ffee00"]
        assert "1 of 4" in screen_text(pilot.app)
        await pilot.press("enter")
        assert isinstance(pilot.app.focused, Rows)
        await pilot.press("slash", *" zzz")
        await settled(pilot)
        assert 'Nothing matches "gpu-07 zzz"' in screen_text(pilot.app)
        await pilot.press("escape")
        await settled(pilot)
        assert len(names(pilot)) == 4
        assert isinstance(pilot.app.screen, RunsScreen)

    drive(app(), script)


def test_marks_are_calibrated_together(home, drive):
    async def script(pilot):
        await pilot.press("end", "space", "up", "space")
        await settled(pilot)
        assert "2 marked" in screen_text(pilot.app)
        assert [row.marked for row in pilot.app.screen.query_one("#table", Rows).grid.rows] == [
            False,
            False,
            True,
            True,
        ]
        await pilot.press("c")
        await settled(pilot)
        assert isinstance(pilot.app.screen, CalibrateScreen)
        assert sorted(source.run for source in pilot.app.screen._sources) == sorted(
            [LARGE_RUN, SMALL_RUN]
        )
        await pilot.press("escape")
        await settled(pilot)
        await pilot.press("end", "space")
        await settled(pilot)
        assert "1 marked" in screen_text(pilot.app)

    drive(app(), script)


def test_what_opening_learned_is_known_in_the_list(home, learning, drive, monkeypatch):
    monkeypatch.setattr(runs_entries, "READ_BYTES", 0)

    async def script(pilot):
        await pilot.press("end")
        await settled(pilot)
        said = pilot.app.screen.query_one("#details", Note).lines
        assert any("Enter reads them" in line for line in said)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, RunScreen)
        await pilot.press("escape")
        await settled(pilot)

        def cells():
            return pilot.app.screen.query_one("#table", Rows).grid.rows[-1].cells

        await until(pilot, lambda: "60 GB" in cells())  # it is drawn now and then
        assert "1.5 s" in cells()

    drive(app(), script)


def test_deleting_asks_and_says_what_went(home, drive):
    folder = home / "20260102T000000Z-gpu-07-c0ffee00"

    async def script(pilot):
        await pilot.press("down", "d")
        await settled(pilot)
        assert isinstance(pilot.app.screen, Confirm)
        (file,) = folder.iterdir()
        assert f"1 file, {size(file.stat().st_size)}" in screen_text(pilot.app)
        await pilot.press("escape")
        await settled(pilot)
        assert folder.exists()
        await pilot.press("d", "y")
        await settled(pilot)
        assert not folder.exists()
        assert names(pilot) == ["dead0000", "1a49e000", "5a110000"]
        assert "Deleted ~/runs/20260102T000000Z-gpu-07-c0ffee00." in screen_text(pilot.app)

    drive(app(), script)


def test_what_must_not_be_deleted_is_refused_with_the_reason(home, drive, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "job"
    recorded(elsewhere, 12, run_id="b" * 32)

    async def script(pilot):
        await named(pilot, str(elsewhere.parent))
        assert names(pilot) == ["bbbbbbbb"]
        assert "ckptcost runs list --dir" in pilot.app.screen.command_line()
        await pilot.press("d")
        await settled(pilot)
        assert isinstance(pilot.app.screen, RunsScreen)
        assert "not among your runs" in screen_text(pilot.app)
        await named(pilot, "")
        assert len(names(pilot)) == 4
        assert list(elsewhere.iterdir())

    drive(app(), script)


def test_a_path_opens_a_run_and_a_wrong_one_says_so(home, drive):
    async def script(pilot):
        await named(pilot, "c0ffee")
        assert isinstance(pilot.app.screen, RunScreen)
        assert "c0ffee00" in screen_text(pilot.app)
        await pilot.press("escape")
        await settled(pilot)
        await named(pilot, "nowhere")
        assert isinstance(pilot.app.screen, RunsScreen)
        assert "no run named 'nowhere'" in screen_text(pilot.app)

    drive(app(), script)


def test_replay_and_follow_are_handed_to_the_application(home, drive, monkeypatch):
    recorded(
        home / "zz-live", 3, run_id="f" * 32, wall_ns=time.time_ns() - 3_000_000_000, stop=False
    )
    monkeypatch.setattr(summary, "LIVE_S", 1e6)
    asked = []

    class Known(CkptcostApp):
        def replay(self, path):
            asked.append(("replay", path))

        def follow(self, path):
            asked.append(("follow", path))

    async def script(pilot):
        assert names(pilot)[0] == "ffffffff"
        assert "recording" in screen_text(pilot.app)
        await pilot.press("f", "r", "end", "f")
        await settled(pilot)
        assert asked == [("follow", str(home / "zz-live")), ("replay", str(home / "zz-live"))]
        assert "This run has ended" in screen_text(pilot.app)
        await pilot.press("home", "d")
        await settled(pilot)
        assert "still being recorded" in screen_text(pilot.app)

    drive(Known(Desk(base="small-8b"), start="runs"), script)


def test_the_head_tells_of_a_run_that_has_ended_as_its_row_does(home, drive):
    recorded(
        home / "zz-live", 3, run_id="f" * 32, wall_ns=time.time_ns() - 3_000_000_000, stop=False
    )

    async def script(pilot):
        assert "1 recording" in screen_text(pilot.app)
        shutil.rmtree(home / "zz-live")
        recorded(home / "zz-live", 9, run_id="f" * 32, wall_ns=time.time_ns() - 3_000_000_000)
        pilot.app.screen._look_at_live()
        await settled(pilot)
        assert "recording" not in screen_text(pilot.app)
        whole = sum(file.stat().st_size for file in home.rglob("*.jsonl"))
        assert f"{size(whole)} in all" in screen_text(pilot.app)

    drive(app(), script)


def test_without_the_live_screen_it_says_so(home, drive, monkeypatch):
    monkeypatch.setattr(CkptcostApp, "replay", None, raising=False)

    async def script(pilot):
        await pilot.press("r")
        await settled(pilot)
        assert "cannot replay" in screen_text(pilot.app)

    drive(app(), script)


def test_new_runs_appear_when_the_screen_is_seen_again(home, drive):
    async def script(pilot):
        pilot.app.push_screen(Confirm("a question", "over it", "yes"))
        await settled(pilot)
        recorded(home / "later", 5, run_id="9" * 32)
        await pilot.press("escape")
        await settled(pilot)
        assert "99999999" in names(pilot)
        shutil.rmtree(home / "later")
        await pilot.press("R")
        await settled(pilot)
        assert "99999999" not in names(pilot)

    drive(app(), script)


def test_thousands_are_told_as_they_come_and_can_be_stopped(home, drive, monkeypatch):
    """Each folder takes as long as the test wants: it lets ten through."""
    source = home / "20260103T000000Z-gpu-08-dead0000"
    many = home.parent / "many"
    for number in range(60):
        shutil.copytree(source, many / f"run-{number:03d}")
    monkeypatch.setenv("CKPTCOST_RUNS", str(many))
    true, seen = store.kept_at, []

    def slowly(path):
        seen.append(path)
        while len(seen) > 10 and not going[0]:
            time.sleep(0.005)
        return true(path)

    going = [False]
    monkeypatch.setattr(store, "kept_at", slowly)
    screen_app = app()

    async def script():
        async with screen_app.run_test(size=USUAL) as pilot:
            await until(pilot, lambda: len(names(pilot)) == 10)
            assert "10 of 60 folders" in screen_text(screen_app)
            assert "x stops" in screen_text(screen_app)
            await pilot.press("down", "x")
            going[0] = True
            await settled(pilot)
            assert len(names(pilot)) < 60
            assert "R reads on" in screen_text(screen_app)
            await pilot.press("R")
            await settled(pilot)
            assert len(names(pilot)) == 60

    import asyncio

    asyncio.run(script())


def test_plain_letters_and_no_colours(home, drive, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(pilot):
        text = screen_text(pilot.app)
        assert "cut short" in text
        assert "c0ffee00" in text

    drive(CkptcostApp(Desk(base="small-8b"), start="runs", plain=True), script, SMALL)
