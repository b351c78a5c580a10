"""One run on a screen, and the run beside the model."""

from __future__ import annotations

import pytest
from recorded_runs import LARGE_RUN, SMALL_RUN, simulated_run
from screening import SMALL, USUAL, screen_text, settled, shown
from small_runs import recorded
from textual.widgets import Input
from told_meters import Told, at, energy

from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.measured import evaluate
from ckptcost.first.jobs.recording import record
from ckptcost.first.present.chart import Traces
from ckptcost.first.runs import reader, store
from ckptcost.first.runs.clocks import VirtualClock
from ckptcost.first.tui import run_reader
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import report, run_traces
from ckptcost.first.tui.screens.against import AgainstScreen
from ckptcost.first.tui.screens.calibrate import CalibrateScreen
from ckptcost.first.tui.screens.checkpoint import CheckpointScreen
from ckptcost.first.tui.screens.recorded_run import RunSource
from ckptcost.first.tui.screens.run import RunScreen
from ckptcost.first.tui.screens.run_traces import traces_of
from ckptcost.first.tui.widgets.rows import Rows
from ckptcost.first.tui.widgets.traces import TraceStack


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("made")
    simulated_run(base / "large", 100e9, LARGE_RUN)
    simulated_run(base / "small", 20e9, SMALL_RUN)
    for number, host in enumerate(("node1", "node2"), start=1):
        recorded(base / "two", 30, run_id="e" * 32, host=host, count=number)
    recorded(base / "idle", 20, run_id="a" * 32, saves=())
    return base


@pytest.fixture(autouse=True)
def at_home(monkeypatch, made):
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setattr("ckptcost.first.tui.screens.recorded_run.RUNS._runs", [])


def source_of(path):
    (kept,) = store.kept_at(path)
    return RunSource(
        str(path), kept.run, sum(head.file.stat().st_size for head in kept.heads), True, 3
    )


def opened(drive, screen, script, size=USUAL, desk=None):
    async def first(pilot):
        pilot.app.push_screen(screen)
        await settled(pilot)
        return await script(pilot)

    return drive(CkptcostApp(desk or Desk(base="small-8b"), start="runs"), first, size)


def rows_of(pilot):
    return pilot.app.screen.query_one("#table", Rows)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_a_run(made, drive, snapshot, size, name):
    async def script(pilot):
        snapshot(pilot.app, f"run_{name}_normal")

    opened(drive, RunScreen(source_of(made / "large")), script, size)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_a_run_without_checkpoints(made, drive, snapshot, size, name):
    async def script(pilot):
        snapshot(pilot.app, f"run_{name}_empty")
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, RunScreen)

    opened(drive, RunScreen(source_of(made / "idle")), script, size)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_a_run_that_cannot_be_read(drive, snapshot, tmp_path, monkeypatch, size, name):
    recorded(tmp_path / "job", 12, run_id="a" * 32)
    file = tmp_path / "job" / "node1.000.jsonl"
    file.write_bytes(file.read_bytes().split(b"\n")[0] + b"\n")

    async def script(pilot):
        snapshot(pilot.app, f"run_{name}_error")
        for key in ("t", "plus", "h", "enter", "E"):
            await pilot.press(key)
        await settled(pilot)

    monkeypatch.setenv("HOME", str(tmp_path))
    opened(drive, RunScreen(source_of(tmp_path / "job")), script, size)


def test_tables_one_after_another_and_back(made, drive):
    async def script(pilot):
        titles = []
        for _ in range(8):
            titles.append(rows_of(pilot).grid.title)
            await pilot.press("t")
        assert titles[0] == "Checkpoints"
        assert "What was used" in titles
        assert len(set(titles)) > 4
        first = rows_of(pilot).grid.title
        await pilot.press("t", "B")
        assert rows_of(pilot).grid.title == first

    opened(drive, RunScreen(source_of(made / "large")), script)


def test_zoom_follows_the_checkpoint_under_the_cursor(made, drive):
    async def script(pilot):
        stack = pilot.app.screen.query_one(TraceStack)
        whole = stack.traces.x_range
        await pilot.press("down")
        await pilot.pause()
        assert [rule.label for rule in stack.traces.rules] == [rows_of(pilot).key]
        await pilot.press("plus", "plus", "plus")
        begin_s, end_s = stack.traces.x_range
        assert begin_s < stack.traces.rules[0].at < end_s
        assert end_s - begin_s < (whole[1] - whole[0]) / 3
        await pilot.press("right_square_bracket")
        assert stack.traces.x_range[0] > begin_s
        await pilot.press("0")
        assert stack.traces.x_range == whole

    opened(drive, RunScreen(source_of(made / "large")), script)


def test_a_checkpoint_opens(made, drive):
    async def script(pilot):
        await pilot.press("down", "enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, CheckpointScreen)
        assert "save-2" in screen_text(pilot.app)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(pilot.app.screen, RunScreen)
        assert rows_of(pilot).key == "save-2"

    opened(drive, RunScreen(source_of(made / "large")), script)


def test_hosts_and_where_else_it_leads(made, drive):
    async def script(pilot):
        assert "(1 of 2)" in screen_text(pilot.app)
        await pilot.press("h")
        await settled(pilot)
        assert "(2 of 2)" in screen_text(pilot.app)
        assert pilot.app.screen.command_line().endswith("--host node2")
        await pilot.press("m")
        await settled(pilot)
        assert isinstance(pilot.app.screen, AgainstScreen)
        assert "(2 of 2)" in screen_text(pilot.app)
        await pilot.press("h")
        await settled(pilot)
        assert "(1 of 2)" in screen_text(pilot.app)
        await pilot.press("escape", "c")
        await settled(pilot)
        assert isinstance(pilot.app.screen, CalibrateScreen)

    opened(drive, RunScreen(source_of(made / "two")), script)


def test_one_host_has_no_next(made, drive):
    async def script(pilot):
        assert "next host" not in screen_text(pilot.app)
        await pilot.press("h")
        await settled(pilot)
        assert isinstance(pilot.app.screen, RunScreen)

    opened(drive, RunScreen(source_of(made / "large")), script)


def test_leaving_a_heavy_run_ends_its_reading(made, drive, monkeypatch):
    stops = []

    class Endless(run_reader.Apart):
        def ask(self, task, *words, weight, stopped=lambda: False, tell=None):
            assert weight > run_reader.SMALL
            tell("reading the run", 0.42)
            import time

            while not stopped():
                time.sleep(0.005)
            stops.append(task)
            raise run_reader.GivenUp("given up")

    monkeypatch.setattr("ckptcost.first.tui.screens.recorded_run.READER", Endless())
    heavy = source_of(made / "large")._replace(bytes=10_000_000)

    async def script(pilot):
        pilot.app.push_screen(RunScreen(heavy))
        await shown(
            pilot, "Reading run 1a49e000, 10 MB: reading the run, 42 % ... Escape gives up."
        )
        await pilot.press("escape")
        await settled(pilot)
        assert len(stops) == 1
        assert "given up" not in screen_text(pilot.app)

    drive(CkptcostApp(Desk(base="small-8b"), start="runs"), script)


def test_a_run_is_read_once_for_all_that_shows_it(drive, monkeypatch, tmp_path):
    recorded(tmp_path / "job", 30, run_id="a" * 32, saves=(5, 15))
    read, load = [], reader.load

    def counted(path, *words):
        if str(path) == str(tmp_path / "job"):  # the list behind it reads others
            read.append(str(path))
        return load(path, *words)

    monkeypatch.setattr(reader, "load", counted)

    async def script(pilot):
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, CheckpointScreen)
        await pilot.press("right", "escape", "m")
        await settled(pilot)
        assert isinstance(pilot.app.screen, AgainstScreen)
        assert rows_of(pilot).grid.rows
        await pilot.press("escape", "R")
        await settled(pilot)
        found = report.answered(pilot.app.desk, f"run:{tmp_path / 'job'}").study
        assert found.kind == "measurement"
        assert read == [str(tmp_path / "job")]
        (file,) = (tmp_path / "job").glob("*.jsonl")
        lines = file.read_bytes()
        file.write_bytes(lines + lines.splitlines(keepends=True)[-1])
        await pilot.press("R")
        await settled(pilot)
        assert read == [str(tmp_path / "job")] * 2, "it grew"

    opened(drive, RunScreen(source_of(tmp_path / "job")), script)


# beside the model


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_against(made, drive, snapshot, size, name):
    async def script(pilot):
        snapshot(pilot.app, f"against_{name}_normal")

    opened(drive, AgainstScreen(source_of(made / "large")), script, size)


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (USUAL, "120x36")])
def test_against_without_a_checkpoint(made, drive, snapshot, size, name):
    async def script(pilot):
        snapshot(pilot.app, f"against_{name}_empty")

    opened(drive, AgainstScreen(source_of(made / "idle")), script, size)


def test_another_scenario_is_held_anew(made, drive):
    async def script(pilot):
        before = rows_of(pilot).grid.rows[0].cells
        screen = pilot.app.screen
        screen.change(screen.desk.edited("checkpoint.size", "50 GB"))
        await settled(pilot)
        assert rows_of(pilot).grid.rows[0].cells != before
        assert "checkpoint.size=50 GB" in screen.command_line()
        screen.change(screen.desk.edited("checkpoint.size", "nonsense"))
        await settled(pilot)
        assert rows_of(pilot).grid.rows == ()
        assert "nonsense" in screen_text(pilot.app)
        await pilot.press("t", "h", "s", "R")
        await settled(pilot)
        screen.change(screen.desk.without("checkpoint.size"))
        await settled(pilot)
        assert rows_of(pilot).grid.rows[0].cells == before

    opened(drive, AgainstScreen(source_of(made / "large")), script)


# calibrating, as far as screens lead to it; the rest is in test_calibrate_screen


def test_calibrating_from_the_comparison(made, drive):
    async def script(pilot):
        await pilot.press("c")
        await settled(pilot)
        assert isinstance(pilot.app.screen, CalibrateScreen)
        assert pilot.app.screen.query_one("#id", Input).value == "simulated-storage"

    opened(drive, AgainstScreen(source_of(made / "large")), script)


# its curves: what is not known is no curve, and no zero


def titles(says):
    recorded = record(Instruments([Told("told", says)], (), VirtualClock(0)), 10.0)
    seen = evaluate(recorded.run, recorded.begin_s, recorded.end_s)
    return [chart.title for chart in traces_of(seen).charts]


def test_a_counter_that_never_moves_is_not_drawn_as_nothing_used():
    assert titles({energy("psys:0"): lambda t: 5.0}) == []


def test_one_that_moves_is_drawn():
    assert titles({energy("psys:0"): at(90.0)}) == ["CPU and memory, W"]


def test_a_picture_of_a_run_ends_where_the_run_ends():
    whole = Traces((), (0.0, 100.0))
    near = run_traces.zoomed(whole, whole, 2)
    length_s = near.x_range[1] - near.x_range[0]
    assert run_traces.panned(near, whole, 50).x_range == pytest.approx((100.0 - length_s, 100.0))
    assert run_traces.panned(near, whole, -50).x_range == pytest.approx((0.0, length_s))
