"""What the live screen asks before it writes, and what it says when something is not as it should
be."""

from __future__ import annotations

import pytest
from live_told import Turned, live_app, small
from screening import SMALL, screen_text, settled

from ckptcost.first.tui.live import sources as live_sources
from ckptcost.first.tui.live.source import Start
from ckptcost.first.tui.screens import live_start
from ckptcost.first.tui.widgets.bottom import Status
from ckptcost.first.tui.widgets.live_board import Board, Traced
from ckptcost.first.tui.widgets.live_start import StartPage
from ckptcost.first.tui.widgets.note import Note


@pytest.fixture(autouse=True)
def told_lights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        live_start, "lights_of", lambda meters, plain=False: [("one", ""), ("two", "")]
    )
    monkeypatch.setattr(live_start, "home", lambda: "~/.local/share/ckptcost/runs")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)


def status(app) -> str:
    return app.screen.query_one(Status).said


def test_enter_alone_begins_nothing_and_m_says_where_it_writes(drive, monkeypatch):
    asked, said = [], []
    monkeypatch.setattr(
        live_sources, "own", lambda start, desk: asked.append(start) or Turned(history_s=2.0)
    )
    app = live_app()

    async def script(pilot):
        assert "M machine alone" in screen_text(app)
        await pilot.press("enter")
        await settled(pilot)
        assert asked == []
        assert "Nothing is typed. M, outside a field, measures this machine alone." in status(app)
        await pilot.press("c", "enter")
        await settled(pilot)
        assert asked == []
        say = app.screen.say
        monkeypatch.setattr(
            app.screen, "say", lambda text, tone="": said.append(text) or say(text, tone)
        )
        await pilot.press("escape", "M")
        await settled(pilot)
        assert asked == [Start()]
        assert (
            said[0]
            == "Starting; the run is written to ~/.local/share/ckptcost/runs, a folder of its"
            " own ..."
        )

    drive(app, script)


def test_enter_without_a_field_begins_what_was_typed(drive, monkeypatch):
    asked = []
    monkeypatch.setattr(
        live_sources, "own", lambda start, desk: asked.append(start) or Turned(history_s=2.0)
    )
    app = live_app()

    async def script(pilot):
        app.screen.query_one(StartPage).type("command", "true")
        await pilot.press("enter")
        await settled(pilot)
        assert asked == [Start(command="true")]

    drive(app, script)


def test_a_disk_that_is_full_is_told_in_the_head_and_in_the_line_that_said_where_it_writes(
    drive, snapshot, tmp_path
):
    source = Turned(history_s=20.0, kind="own", folder=tmp_path)
    app = live_app(source)

    async def script(pilot):
        assert "Recorded to" in status(app)
        source.said["unwritten"] = "since 09:33:50: no space left on device"
        source.now_s += 1.0
        app.screen.tick()
        await settled(pilot)
        assert (
            "NOT RECORDED since 09:33:50: no space left on device"
            in screen_text(app).splitlines()[1]
        )
        assert status(app).startswith(
            "\u2717 Not recorded since 09:33:50: no space left on device."
        )
        snapshot(app, "live_80x24_not_recorded")
        source.said["unwritten"] = ""
        source.now_s += 1.0
        app.screen.tick()
        await settled(pilot)
        assert f"Recorded to {tmp_path} again" in status(app)
        source.said["unwritten"] = "since 09:40:02: no space left on device"
        source.said["left"] = (
            "The run holds only what was written until 09:40:02: no space left on device."
        )
        await pilot.press("R", "y")
        await settled(pilot)
        assert "holds only what was written until 09:40:02" in status(app)
        assert "ENDED, NOT RECORDED since 09:40:02" in screen_text(app)

    drive(app, script, SMALL)


def test_stopping_a_job_says_when_it_is_killed_and_counts_down(drive):
    source = Turned(history_s=20.0, kind="own", actions={"stops_job": True})
    app = live_app(source)

    async def script(pilot):
        await pilot.press("R")
        await settled(pilot)
        text = " ".join(screen_text(app).split())
        assert "SIGTERM" in text
        assert "10 s" in text
        await pilot.press("n")
        source.said |= {"state": "stopping", "kill_in_s": 6.3}
        source.now_s += 1.0
        app.screen.tick()
        await settled(pilot)
        assert "STOPPING 7 s" in screen_text(app)

    drive(app, script)


def test_the_axis_grows_with_the_run_until_what_was_chosen(drive):
    source = Turned(history_s=8.0)
    app = live_app(source)

    async def script(pilot):
        traced, seen = app.screen.query_one(Traced), []
        for by_s in (0.0, 12.0, 30.0, 40.0, 200.0):
            source.now_s += by_s
            app.screen.tick()
            await settled(pilot)
            seen.append(traced.traces.x_range[0])
        assert seen == [-10.0, -30.0, -60.0, -180.0, -180.0]

    drive(app, script)


def test_the_next_list_is_another_than_the_one_that_is_seen_and_z_shows_the_traces_alone(drive):
    app = live_app(Turned(small(gpus=2), history_s=20.0))

    async def script(pilot):
        seen = []
        for _ in range(4):
            seen.append(
                [
                    each
                    for each in ("gpus", "meters", "output")
                    if app.screen.query_one(f"#{each}").display
                ]
            )
            await pilot.press("v")
            await settled(pilot)
        assert seen == [["gpus"], ["meters"], ["output"], ["gpus"]]
        await pilot.press("v")
        await settled(pilot)
        assert app.screen.query_one("#output", Note).lines == (
            "Only a command that was started here has output.",
        )
        assert app.focused is None
        await pilot.press("z")
        await settled(pilot)
        assert app.screen.maximized is app.screen.query_one(Traced)
        assert "Checkpoints" not in screen_text(app)
        await pilot.press("z")
        await settled(pilot)
        assert app.screen.maximized is None
        assert app.screen.query_one(Board).display

    drive(app, script)


def test_z_says_why_nothing_fills_the_screen(drive):
    app = live_app()

    async def script(pilot):
        await pilot.press("z")
        assert "Nothing to show alone here" in status(app)

    drive(app, script)
