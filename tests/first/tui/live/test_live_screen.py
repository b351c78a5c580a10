"""The live screen: its start page, measuring, and every state that it can be in."""

from __future__ import annotations

import time

import pytest
from live_told import DESK, Turned, live_app, small
from screening import SMALL, USUAL, WIDE, screen_text, settled, until
from small_runs import recorded
from textual.screen import Screen

from ckptcost.first.errors import InputError
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import Fault, MachinePlan, marks
from ckptcost.first.present.chart import Stat
from ckptcost.first.present.grid import Grid, GridHead, Row
from ckptcost.first.runs.clocks import VirtualClock
from ckptcost.first.tui.live import followed as live_followed
from ckptcost.first.tui.live import sources as live_sources
from ckptcost.first.tui.live.simulated import plan_of
from ckptcost.first.tui.live.source import Actions, Start
from ckptcost.first.tui.screens import live, live_start
from ckptcost.first.tui.screens.checkpoint import CheckpointScreen
from ckptcost.first.tui.screens.live import possible
from ckptcost.first.tui.screens.live_start import Typed, command_of, start_of
from ckptcost.first.tui.widgets.bottom import Status
from ckptcost.first.tui.widgets.live_board import Board, Traced
from ckptcost.first.tui.widgets.live_start import StartPage
from ckptcost.first.tui.widgets.rows import Rows
from ckptcost.first.tui.widgets.stats import Stats

NO_GPU = [
    (
        (
            "\u2013 GPUs        no NVIDIA GPU is in this machine, or none was passed into this"
            " virtual machine or container"
        ),
        "muted",
    ),
    ("processors  /sys/class/powercap/intel-rapl:0/energy_uj: permission denied", "bad"),
    ("              sudo chmod o+r /sys/class/powercap/intel-rapl:0/energy_uj", "muted"),
    ("\u2013 memory      there is no dram counter", "muted"),
    ("\u25cf storage     disk:nvme0n1: bytes written, 246 kB/s", "good"),
]


@pytest.fixture(autouse=True)
def told_lights(monkeypatch: pytest.MonkeyPatch) -> None:
    """No meter is tried, and runs go to a place that any machine has."""
    monkeypatch.setattr(live_start, "lights_of", lambda meters, plain=False: NO_GPU)
    monkeypatch.setattr(live_start, "home", lambda: "~/.local/share/ckptcost/runs")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)


def status(app) -> str:
    return app.screen.query_one(Status).said


async def turned(pilot, source: Turned, by_s: float) -> None:
    """Time goes on, and the screen looks."""
    source.now_s += by_s
    pilot.app.screen.tick()
    await settled(pilot)


def ids(app) -> set[str]:
    """The keys that are offered."""
    return {
        active.binding.id
        for active in app.screen.active_bindings.values()
        if active.enabled and active.binding.id
    }


# the start page


def test_the_start_page_refuses_at_the_field_and_then_begins(drive, snapshot, monkeypatch):
    asked = []

    def own(start, desk):
        asked.append(start)
        if start.command == "pyhton":
            raise InputError(
                "there is no such command", where="pyhton", remedy="look at its name and at PATH"
            )
        return Turned(history_s=2.0)

    monkeypatch.setattr(live_sources, "own", own)
    app = live_app()

    async def script(pilot):
        snapshot(app, "live_80x24_start")
        assert "keep the run in    ~/.local/share/ckptcost/runs" in screen_text(app)
        assert {"live.demo", "live.measure"} <= ids(app)
        assert not ids(app) & {"live.pause", "live.stop", "live.mark", "live.run"}
        await pilot.press("c", *"pyhton", "enter")
        await settled(pilot)
        snapshot(app, "live_80x24_error")
        assert "there is no such command" in status(app)
        assert app.screen.query_one(StartPage).display
        await pilot.press("escape", "a", *"12", "enter")
        await settled(pilot)
        assert "a command or a process, not both" in screen_text(app)
        assert app.focused.id == "pid"
        app.screen.query_one(StartPage).type("pid", "")
        app.screen.query_one(StartPage).type("command", "python t.py")
        await pilot.press("escape", "w", *"/tmp", "enter")
        await settled(pilot)
        assert asked[1:] == [Start(command="python t.py", watch=("/tmp",))]
        assert app.screen.command_line() == "ckptcost run --watch /tmp -- python t.py"
        assert app.screen.query_one(Board).display
        assert not app.screen.query_one(StartPage).display

    drive(app, script, SMALL)


def test_other_ways_on(drive, snapshot, monkeypatch):
    told: list[object] = []
    grid = Grid(
        (GridHead("pid", "PID"), GridHead("command", "command")),
        [Row("4711", ("4711", "python train.py"))],
        "Processes that hold a GPU",
    )
    monkeypatch.setattr(live_start, "gpu_processes", lambda: grid)
    monkeypatch.setattr(
        live_start, "being_recorded", lambda: Grid(empty="Nobody is recording just now.")
    )
    monkeypatch.setattr(live_start, "baseline_file", lambda: "~/.config/ckptcost/baselines/vm.json")
    monkeypatch.setattr(
        live_sources,
        "learn_baseline",
        lambda meters, stopped, tell: told.append(meters) or "idle power 812 W",
    )
    monkeypatch.setattr(
        live_sources, "own", lambda start, desk: told.append(start) or Turned(history_s=2.0)
    )
    monkeypatch.setattr(
        live_sources, "demo", lambda desk: told.append("demo") or Turned(history_s=2.0)
    )
    app = live_app()

    async def script(pilot):
        snapshot(app, "live_120x36_start")
        await pilot.press("f")
        await settled(pilot)
        assert "Nobody is recording just now." in status(app)
        await pilot.press("l")
        await settled(pilot)
        assert "baselines/vm.json" in screen_text(app)
        await pilot.press("n", "l", "y")
        await settled(pilot)
        assert told == ["auto"]
        assert "idle power 812 W" in status(app)
        await pilot.press("P")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.screen.query_one(StartPage).typed()["pid"] == "4711"
        assert app.focused.id == "pid"
        app.screen.query_one(StartPage).type("pid", "")
        await pilot.press("escape", "M")
        await settled(pilot)
        assert told[1:] == [Start()]
        assert app.screen.command_line() == "ckptcost measure --for '10 min'"
        await pilot.press("R", "y")
        await settled(pilot)
        await pilot.press("n")
        await settled(pilot)
        await pilot.press("d")
        await settled(pilot)
        assert told[2:] == ["demo"]
        assert app.screen.command_line() == "ckptcost measure --meters simulated --for '5 min'"
        assert "Nothing is written." in status(app)

    drive(app, script)


def test_the_demo_begins_at_once_where_the_command_line_says_so(drive, monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 5 10.0.0.2 22")
    monkeypatch.setattr(live_sources, "demo", lambda desk: Turned(history_s=2.0))
    app = live_app(demo=True)

    async def script(pilot):
        assert app.screen.query_one(Board).display
        assert not app.demo
        assert app.screen._drawing._interval == 1.0  # over SSH

    drive(app, script)


# measuring


def test_measuring_in_three_sizes(drive, snapshot):
    app = live_app(Turned(MachinePlan(first_s=10.0, interval_s=25.0), history_s=50.0))

    async def script(pilot):
        for size, charts in ((WIDE, 3), (USUAL, 2), (SMALL, 2)):
            await pilot.resize_terminal(*size)
            await settled(pilot)
            snapshot(app, f"live_{size[0]}x{size[1]}_measuring")
            traces = app.screen.query_one(Traced).traces
            assert [band.label for band in traces.bands] == ["#1", "#2"]
            assert len(traces.charts) == charts
        first = [chart.title for chart in traces.charts]
        await pilot.press("t")
        await settled(pilot)
        assert [chart.title for chart in app.screen.query_one(Traced).traces.charts] != first
        assert [row.key for row in app.screen.query_one("#checkpoints", Rows).grid.rows] == [
            "2",
            "1",
        ]
        app.screen.query_one("#checkpoints").focus()
        await pilot.press("enter")
        assert "Nothing is written of this one" in status(app)

    drive(app, script, WIDE)


def test_letters_alone_where_that_is_asked_for(drive):
    app = live_app(Turned(small(gpus=1), history_s=16.0), plain=True)

    async def script(pilot):
        assert "* SIMULATED" in screen_text(app)
        await pilot.press("space")
        await settled(pilot)
        assert "|| DRAWING PAUSED" in screen_text(app)
        assert app.screen.query_one(Traced).visible
        body = screen_text(app).splitlines()[1:-2]
        drawn = {c for line in body for c in line if ord(c) > 0x2800 or 0x2580 <= ord(c) <= 0x259F}
        assert not drawn

    drive(app, script)


def test_armed_before_the_first_checkpoint(drive, snapshot):
    app = live_app(Turned(history_s=6.0, kind="own", title="python train.py"))

    async def script(pilot):
        snapshot(app, "live_80x24_armed")
        assert "\u25cb ARMED" in screen_text(app)
        assert "no checkpoint yet" in screen_text(app)

    drive(app, script, SMALL)


def test_only_what_is_new_is_drawn_and_nothing_while_nobody_looks(drive, snapshot, monkeypatch):
    monkeypatch.setattr(live, "UNSEEN_S", 0.05)
    source = Turned(history_s=20.0)
    app = live_app(source)

    async def script(pilot):
        screen, board = app.screen, app.screen.query_one(Board)
        before = board.view
        screen.tick()
        screen.tick()
        assert board.view is before
        told: list[Grid] = []
        rows = screen.query_one("#checkpoints", Rows)
        show, rows.show = rows.show, told.append
        await turned(pilot, source, 1.5)
        assert board.view is not before
        assert board.view.last_s > before.last_s
        assert told == []
        rows.show = show
        # space: readings go on
        await pilot.press("space")
        shown = board.view.traces
        await turned(pilot, source, 5.0)
        snapshot(app, "live_120x36_paused")
        assert board.view.traces is shown
        assert "DRAWING PAUSED  readings go on" in screen_text(app)
        assert "the recording goes on" in status(app)
        assert source.board.last_s > 25.0
        await pilot.press("space")
        await settled(pilot)
        assert board.view.traces is not shown
        assert "PAUSED" not in screen_text(app)
        # another screen
        view, pumped = board.view, source.pumps
        app.push_screen(Screen())
        await settled(pilot)
        source.now_s += 8.0
        await until(pilot, lambda: source.board.last_s > 33.0)
        assert not screen._drawing._active.is_set()
        assert source.pumps > pumped
        assert board.view is view
        app.pop_screen()
        await settled(pilot)
        assert board.view.last_s > 33.0
        assert screen._drawing._active.is_set()

    drive(app, script)


def test_keys_of_the_board(drive):
    source = Turned(history_s=20.0, actions={"mark": True})
    app = live_app(source)

    async def script(pilot):
        traced = app.screen.query_one(Traced)
        assert {"live.pause", "live.stop", "live.hold", "live.mark"} <= ids(app)
        assert not ids(app) & {"live.demo", "live.measure", "live.run", "live.back"}
        assert traced.traces.x_range == (-30.0, 0.0)  # 180 s are chosen, and 20 s are there
        await pilot.press("left_square_bracket")
        await settled(pilot)
        assert traced.traces.x_range == (-10.0, 0.0)
        await pilot.press(*["right_square_bracket"] * 2)
        await settled(pilot)
        assert traced.traces.x_range == (-30.0, 0.0)
        await pilot.press("plus")
        assert "Drawn 4 times a second" in status(app)
        await pilot.press("minus", "minus", "minus")
        assert app.screen._drawing._interval == 1.0
        assert len(traced.traces.charts[0].curves) == 2  # GPUs, and the host on them
        await pilot.press("g")
        await settled(pilot)
        each = [curve.label[:5] for curve in traced.traces.charts[0].curves]
        assert each == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]
        await pilot.press("m")
        assert source.marked == [""]
        assert status(app).startswith("Checkpoint by hand 1 begins")
        await pilot.press("greater_than_sign", "h")
        assert (source.speed, source.paused) == (10.0, True)
        await pilot.press("h", "less_than_sign")
        assert (source.speed, source.paused) == (1.0, False)
        before = app.screen.query_one(Board).view.stats[2]
        app.screen.change(DESK.edited("cluster.gpu_price", "100 USD/GPU-h"))
        await turned(pilot, source, 1.0)
        after = app.screen.query_one(Board).view.stats[2]
        assert "100 USD/GPU-h" in after.note
        assert after.value != before.value

    drive(app, script)


def test_hundreds_of_gpus_are_together_and_one_can_be_looked_at(drive, snapshot):
    app = live_app(Turned(small(gpus=256, start_s=2.0, first_s=4.0), history_s=9.0))

    async def script(pilot):
        traced = app.screen.query_one(Traced)
        assert traced.traces.charts[0].curves[0].label.startswith("256 GPUs")
        await pilot.press("g")
        await settled(pilot)
        rows = app.screen.query_one("#gpus", Rows)
        assert rows.grid.title == "Farthest from the others"
        rows.focus()
        await pilot.press("enter")
        await settled(pilot)
        snapshot(app, "live_120x36_256_gpus")
        assert traced.traces.charts[0].title.startswith(f"GPU {rows.key.partition(':')[2]} alone")
        known = [y for y in traced.traces.charts[0].curves[0].ys if y == y]
        assert 550 < max(known) < 700
        await pilot.press("enter")
        await settled(pilot)
        assert traced.traces.charts[0].curves[0].label.startswith("256 GPUs")

    drive(app, script)


def test_a_lost_meter_is_told_once_and_leaves_a_gap(drive, snapshot):
    source = Turned(small(gpus=2, faults=(Fault("lost", "gpu:1", 16.0, 22.0),)), history_s=15.0)
    app = live_app(source)

    async def script(pilot):
        told = []
        app.notify = lambda text, **more: told.append(text)
        await turned(pilot, source, 3.0)
        await turned(pilot, source, 2.0)
        assert len(told) == 1
        assert "gpu:1" in told[0]
        assert "gpu:1 was lost" in screen_text(app)
        snapshot(app, "live_120x36_lost")
        curve = app.screen.query_one(Traced).traces.charts[0].curves[0]
        late = [y for x, y in zip(curve.xs, curve.ys, strict=True) if -1.2 < x < -0.5]
        assert late
        assert all(y != y for y in late)
        await turned(pilot, source, 5.0)
        assert "was lost" not in screen_text(app)
        assert len(told) == 1

    drive(app, script)


def test_meters_lost_while_nobody_looked_are_told_when_somebody_does(drive, monkeypatch):
    """One that is lost still, and one that was away and is back; neither is told twice."""
    monkeypatch.setattr(live, "UNSEEN_S", 0.05)
    faults = (Fault("lost", "gpu:0", 17.0, 21.0), Fault("lost", "gpu:1", 26.0, 90.0))
    source = Turned(small(gpus=2, faults=faults), history_s=15.0)
    app = live_app(source)

    async def script(pilot):
        told = []
        app.notify = lambda text, **more: told.append((more["title"], text))
        app.push_screen(Screen())
        await settled(pilot)
        source.now_s += 15.0
        await until(pilot, lambda: source.board.last_s > 28.0)
        assert told == []
        app.pop_screen()
        await settled(pilot)
        titles = [title for title, _ in told]
        assert sorted(titles) == ["A meter was lost", "While nobody looked"]
        assert "gpu:1" in dict(told)["A meter was lost"]
        assert dict(told)["While nobody looked"].startswith("gpu:0 was lost for ")
        app.push_screen(Screen())
        await settled(pilot)
        app.pop_screen()
        await turned(pilot, source, 1.0)
        assert len(told) == 2

    drive(app, script)


def test_small_terminals_show_power_and_storage_as_areas(drive, monkeypatch):
    """The demonstration as it begins, and with numbers so long that few have room."""
    monkeypatch.setattr(live_sources, "demo", lambda desk: Turned(plan_of(8), history_s=110.0))
    app = live_app(demo=True)

    async def script(pilot):
        board = app.screen.query_one(Board)
        for stats in (
            board.view.stats,
            [Stat(each.label, each.value + " and many more words") for each in board.view.stats],
        ):
            app.screen.query_one(Stats).show(stats)
            await settled(pilot)
            lines = screen_text(app).splitlines()
            tops = [n for n, line in enumerate(lines) if line.startswith("\u2500 ")]
            assert [lines[n][2:].split("   ")[0].split(",")[0] for n in tops] == [
                "GPU + host power",
                "Storage write",
            ]
            for top, end, least in ((tops[0], tops[1], 5), (tops[1], tops[1] + 3, 2)):
                filled = [
                    sum("\u2581" <= letter <= "\u2588" for letter in line)
                    for line in lines[top + 1 : end]
                ]
                assert sum(count > 0 for count in filled) >= least, lines[top:end]
            assert lines[1].startswith(" \u25cf SIMULATED")
            assert lines[2].startswith(" checkpoints ")
            assert lines[3] == lines[tops[0]]
            assert app.screen.query_one("#checkpoints").size.height >= 2
            assert "[ zoom in" in lines[-1]
            assert "R stop" in lines[-1]

    drive(app, script, SMALL)


def test_a_full_disk_and_very_long_names(drive, snapshot):
    title = "python " + "a_very_long_name_of_a_training_script_" * 8 + ".py"
    trouble = "/data: no space left on device; readings are kept in memory"
    app = live_app(
        Turned(
            history_s=20.0,
            kind="own",
            title=title,
            output=["x" * 400, "step 100"],
            troubles=[trouble],
        )
    )

    async def script(pilot):
        snapshot(app, "live_80x24_disk_full")
        assert "no space left on device" in screen_text(app)
        await pilot.press("o")
        await settled(pilot)
        snapshot(app, "live_80x24_long_names")
        lines = screen_text(app).splitlines()
        assert max(len(line) for line in lines) <= 80
        assert any("step 100" in line for line in lines)
        await pilot.press("o")
        seen = []
        for _ in range(4):
            seen.append(
                [
                    each
                    for each in ("checkpoints", "gpus", "meters", "output")
                    if app.screen.query_one(f"#{each}").display
                ]
            )
            await pilot.press("v")
        assert seen == [["checkpoints"], ["gpus"], ["meters"], ["output"]]
        await pilot.resize_terminal(120, 36)
        await settled(pilot)
        assert app.screen.query_one("#checkpoints").display
        assert app.screen.query_one("#gpus").display
        assert max(len(line) for line in screen_text(app).splitlines()) <= 120

    drive(app, script, SMALL)


# what is done to the source


def test_stopping_asks_and_then_the_run_can_be_opened(drive, snapshot, tmp_path):
    source = Turned(small(gpus=2), history_s=34.0, folder=tmp_path)
    app = live_app(source)

    async def script(pilot):
        opened = []
        app.open_run = opened.append
        assert app.screen.command_line() == f"ckptcost report {tmp_path}"
        await pilot.press("R")
        await settled(pilot)
        assert "End the recording?" in screen_text(app)
        await pilot.press("n")
        assert source.stopped == []
        await pilot.press("R", "y")
        await settled(pilot)
        assert source.stopped
        assert source.over
        assert "r opens the run" in status(app)
        snapshot(app, "live_120x36_ended")
        await pilot.press("r", "enter")
        assert opened == [str(tmp_path), str(tmp_path)]
        await pilot.press("n")
        await settled(pilot)
        assert app.screen.query_one(StartPage).display

    drive(app, script)


def test_what_goes_on_is_not_cut_off_unasked(drive, monkeypatch):
    monkeypatch.setattr(live_sources, "replay", lambda run, desk: pytest.fail("it may not begin"))
    source = Turned(
        history_s=2.0, busy="train.py is running and being recorded; quitting ends both"
    )
    app = live_app(source)

    async def script(pilot):
        app.to_live = ("replay", "3f9a")
        app.screen.shown()
        await settled(pilot)
        assert "Not now: train.py is running" in status(app)
        assert app.screen._source is source
        await pilot.press("q")
        await settled(pilot)
        assert "train.py is running" in screen_text(app)
        await pilot.press("y")
        await settled(pilot)
        assert source.stopped[0] is not None
        assert source.stopped[0] <= 2.0

    drive(app, script)


def test_a_job_that_goes_on_is_told_of_when_the_screen_is_gone(drive):
    left = "the command was told to end and has not yet: its process group is 4711"
    app = live_app(Turned(history_s=2.0, left=left))

    async def script(pilot):
        screen = app.screen
        assert screen.last_words == ""
        await pilot.press("q")
        await settled(pilot)
        assert (
            screen.last_words
            == "The command was told to end and has not yet: its process group is 4711"
        )

    drive(app, script)


def test_a_run_is_handed_over_by_another_screen(drive, monkeypatch):
    asked = []
    monkeypatch.setattr(
        live_sources, "replay", lambda run, desk: asked.append(run) or Turned(history_s=2.0)
    )
    app = live_app()

    async def script(pilot):
        app.to_live = ("replay", "3f9a")
        app.screen.shown()
        await settled(pilot)
        assert asked == ["3f9a"]
        assert app.screen.query_one(Board).display
        assert app.to_live is None

    drive(app, script)


def test_a_recorder_that_was_killed_is_silent_and_the_seconds_are_counted(
    drive, tmp_path, monkeypatch
):
    """No line comes that would be new, and that is what there is to see."""
    monkeypatch.setattr(live_followed, "SILENT_S", 1.0)
    recorded(tmp_path / "run", 12, saves=(2,))
    (file,) = (tmp_path / "run").glob("*.jsonl")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-6]))  # no end
    app = live_app()

    async def script(pilot):
        app.to_live = ("follow", str(tmp_path / "run"))
        app.screen.shown()
        await settled(pilot)
        source = app.screen._source
        await until(pilot, lambda: not source.pump() and source.position_s >= 5.0)
        for silent_s in (20.0, 47.0):
            monkeypatch.setattr(source, "_last_wall_s", time.monotonic() - silent_s)
            app.screen.tick()
            await settled(pilot)
            assert f"SILENT {silent_s:.0f} s" in screen_text(app)
            assert "FOLLOWED" not in screen_text(app)
        source.stop()

    drive(app, script, SMALL)


def test_enter_on_a_checkpoint_opens_its_detail(drive, tmp_path):
    plan = small(gpus=1)
    seen = simulated.find(plan, origin_ns=0)
    record(
        Instruments(seen.meters, seen.absences, VirtualClock(0), list(marks(plan, 0.0, 40.0))),
        40.0,
        tmp_path / "run",
    )
    app = live_app(Turned(plan, history_s=38.0, folder=tmp_path / "run"))

    async def script(pilot):
        rows = app.screen.query_one("#checkpoints", Rows)
        rows.focus()
        assert rows.key == "2"
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, CheckpointScreen)
        assert "save-2, save 2 of 2" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen.query_one(Board).display

    drive(app, script)


def test_enter_opens_the_last_checkpoint_of_the_demonstration(drive):
    source = live_sources.demo(DESK, history_s=50.0, threaded=False, clock=lambda: 0.0)
    app = live_app(source)

    async def script(pilot):
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, CheckpointScreen)
        assert "save-1, save 1 of 1" in screen_text(app)
        assert "energy at node" in screen_text(app)

    drive(app, script)


# the fields, without a screen


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (Typed(), "ckptcost measure --for '10 min'"),
        (
            Typed(command="python t.py --x 'a b'", record="/tmp/r"),
            "ckptcost run --record /tmp/r -- python t.py --x 'a b'",
        ),
        (Typed(pid="4711", watch="/tmp"), "ckptcost attach 4711 --watch /tmp"),
        (Typed(watch="/tmp, /nowhere/yet"), ""),
    ],
)
def test_what_is_typed_is_a_command_line(typed, command):
    assert command_of(start_of(typed, "auto")) == command


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        (Typed(command="ls", pid="1"), "pid"),
        (Typed(pid="-4"), "pid"),
        (Typed(pid="\u0664"), "pid"),
        (Typed(command="python 'x"), "command"),
        (Typed(watch="/etc/hosts"), "watch"),
    ],
)
def test_what_cannot_be_meant_names_its_field(typed, field):
    with pytest.raises(InputError) as refused:
        start_of(typed, "auto")
    assert refused.value.where == field


def test_processes_that_hold_a_gpu_are_found_by_their_open_files(tmp_path):
    for pid, target in (("10", "/dev/nvidia3"), ("11", "/dev/null"), ("12", "/dev/nvidia0")):
        fds = tmp_path / pid / "fd"
        fds.mkdir(parents=True)
        (fds / "5").symlink_to(target)
        (tmp_path / pid / "cmdline").write_bytes(b"python\0train.py\0")
    (tmp_path / "self").mkdir()
    rows = live_start.gpu_processes(tmp_path).rows
    assert [row.cells for row in rows] == [
        ("12", "0", "python train.py"),
        ("10", "3", "python train.py"),
    ]


@pytest.mark.parametrize("action", ["mark", "hold", "speed", "seek", "stop"])
def test_what_is_over_can_no_longer_be_acted_upon(action):
    everything = Actions(mark=True, stop=True, pause=True, seek=True, speed=True)
    assert possible(action, everything, over=False)
    assert not possible(action, everything, over=True)
