"""Storage tiers side by side, on the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from screening import SMALL, USUAL, WIDE, screen_text, settled
from textual.pilot import Pilot
from textual.widgets import Input

from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.picker import Ticks
from ckptcost.first.tui.screens import calibrate_fit
from ckptcost.first.tui.screens import tiers_view as tiers
from ckptcost.first.tui.screens.tiers import TiersScreen
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.plot import Plot
from ckptcost.first.tui.widgets.rows import Rows

Drive = Callable[..., Any]
Snapshot = Callable[[CkptcostApp, str], None]
NO_FAILURES = Desk().edited("failures.rate", "0 /1000 node-days")
WRONG = Desk().edited("cluster.gpus", "many")
EVERY = Desk(tiers=tuple(Desk().catalog.ids("tier")))


def app_on(desk: Desk, **more: Any) -> CkptcostApp:
    return CkptcostApp(desk, start="tiers", **more)


def rows_of(app: CkptcostApp) -> Rows:
    return app.screen.query_one("#tiers", Rows)


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await settled(pilot)


@pytest.mark.parametrize(
    ("name", "desk", "size", "keys"),
    [
        ("80x24_normal", Desk(), SMALL, ()),
        ("120x36_normal", Desk(), USUAL, ()),
        ("200x50_every_tier", EVERY, WIDE, ("down", "down")),
        ("80x24_empty", NO_FAILURES, SMALL, ()),
        ("120x36_empty", NO_FAILURES, USUAL, ()),
        ("80x24_error", WRONG, SMALL, ()),
        ("120x36_error", WRONG, USUAL, ()),
        ("120x36_one_save_claims", Desk(), USUAL, ("o", "o", "v", "end")),
        (
            "80x24_bars",
            Desk(base="llama31-405b-16k", tiers=("nas-hdd", "aws-s3-standard", "flash-shared")),
            SMALL,
            ("p", "m", "m"),
        ),
        ("80x24_carbon", Desk(), SMALL, ("m", "m", "m")),
        ("80x24_choices", Desk(), SMALL, ("t", "n", "v", "m", "e", "down", "space")),
    ],
)
def test_what_it_looks_like(
    drive: Drive,
    snapshot: Snapshot,
    name: str,
    desk: Desk,
    size: tuple[int, int],
    keys: tuple[str, ...],
) -> None:
    app = app_on(desk)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        snapshot(app, f"tiers_{name}")

    drive(app, script, size)


def test_everything_shown_is_the_views(drive: Drive) -> None:
    app = app_on(Desk())

    async def script(pilot: Pilot[None]) -> None:
        weighed = tiers.weighed(app.desk, "time")
        for shown in ("best", "asked", "save"):
            assert rows_of(app).grid.rows == tiers.grid(weighed, app.desk, shown).rows  # type: ignore[arg-type]
            assert isinstance(app.screen, TiersScreen)
            assert app.screen.command_line() == tiers.command(weighed, shown)  # type: ignore[arg-type]
            await press(pilot, "o")
        await press(pilot, "m", "m")
        assert app.screen.command_line() == "ckptcost optimize --objective usd"
        assert (
            rows_of(app).grid.rows
            == tiers.grid(tiers.weighed(app.desk, "usd"), app.desk, "best").rows
        )
        details = app.screen.query_one("#details", Note)
        assert details.lines[0].startswith("Traditional NAS")
        await press(pilot, "down", "down")
        assert details.lines[0].startswith("DDN EXAScaler at 20")

    drive(app, script)


def test_the_baseline_and_the_tier_taken_out(drive: Drive) -> None:
    app = app_on(Desk())

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "b")
        assert app.desk.baseline == "generic-pfs"
        assert "base generic-pfs" in screen_text(app)
        await press(pilot, "x")
        assert app.desk.tiers_shown() == ("nas-hdd", "ddn-exascaler-20", "ddn-exascaler-40")
        while len(app.desk.tiers_shown()) > 1:  # what is taken out is the row that is seen
            before = app.desk.tiers_shown()
            await press(pilot, "x")
            assert len(app.desk.tiers_shown()) == len(before) - 1
        await press(pilot, "x")
        assert "The last tier stays" in screen_text(app)

    drive(app, script)


def test_a_new_baseline_computes_nothing(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(Desk())
    calls: list[str] = []
    real = tiers.weighed

    def counted(desk: Desk, objective: str, stopped: Callable[[], bool]) -> tiers.Weighed:
        calls.append(objective)
        return real(desk, objective, stopped)

    monkeypatch.setattr(tiers, "weighed", counted)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "b", "o", "s", "m", "m", "m", "m")
        assert calls == ["time", "energy", "usd", "carbon"]
        app.screen.change(app.desk.on(app.desk.base))  # type: ignore[attr-defined]
        await settled(pilot)
        assert calls == ["time", "energy", "usd", "carbon", "time"]

    drive(app, script)


def test_enter_or_a_second_click_takes_the_tier_to_the_interval(drive: Drive) -> None:
    app = app_on(Desk())

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter")
        assert (app.desk.chosen, app.current_mode) == ("generic-pfs", "interval")
        await press(pilot, "2")
        assert next(row.key for row in rows_of(app).grid.rows if row.marked) == "generic-pfs"
        await pilot.click("#tiers", offset=(8, 1))  # the head sorts
        await settled(pilot)
        assert rows_of(app).sorting == ("tier", False)
        assert rows_of(app).grid.rows[0].key == "ddn-exascaler-20"
        await pilot.click("#tiers", offset=(8, 3))
        await settled(pilot)
        assert app.current_mode == "tiers"
        await pilot.click("#tiers", offset=(8, 3))
        await settled(pilot)
        assert (app.current_mode, app.desk.chosen) == ("interval", "ddn-exascaler-40")

    drive(app, script)


def test_choosing_tiers(drive: Drive) -> None:
    app = app_on(Desk())

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "t")
        assert isinstance(app.screen, Ticks)
        app.screen.query_one(Input).value = "flash-shared"
        await press(pilot, "space")
        app.screen.query_one(Input).value = ""
        await settled(pilot)
        app.screen.query_one(Rows).select("nas-hdd")
        await press(pilot, "space", "enter")
        assert app.desk.tiers_shown() == (
            "generic-pfs",
            "ddn-exascaler-20",
            "ddn-exascaler-40",
            "flash-shared",
        )
        assert [row.key for row in rows_of(app).grid.rows] == list(app.desk.tiers_shown())
        await press(pilot, "t", *"object", "space", "escape")
        assert "object-store" not in app.desk.tiers_shown()
        await press(pilot, "t")
        app.screen.ticked.clear()
        await press(pilot, "enter")
        assert len(app.desk.tiers_shown()) == 4
        assert "At least one tier stays" in screen_text(app)

    drive(app, script)


def test_a_tier_of_the_users_own(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a-tier-that-was-measured-on-a-machine-with-a-very-long-name-and-some-more"
    folder = tmp_path / "models" / "tiers"
    folder.mkdir(parents=True)
    (folder / f"{name}.toml").write_text(
        f'id = "{name}"\nname = "[bold]Measured[/bold] here [1]"\nwrite = "7 GB/s"\nbasis ='
        ' "measured"\nsource = "house"\n'
    )
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    app = app_on(Desk(tiers=("nas-hdd", name)))

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "end")
        text = screen_text(app)
        assert "measured" in text
        assert "[bold]Measured[/bold] here [1]" in text
        assert all(len(line) <= 80 for line in text.splitlines())

    drive(app, script, SMALL)


def test_a_tier_calibrated_again_has_other_figures(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "models" / "tiers" / "mine.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))

    def write(rate: str) -> None:
        file.write_text(
            f'id = "mine"\nname = "Measured here"\nwrite = "{rate}"\nbasis = "measured"\nsource ='
            ' "house"\n'
        )

    def stall_s() -> object:
        grid = rows_of(app).grid
        place = [head.id for head in grid.heads].index("stall_s")
        return next(row for row in grid.rows if row.key == "mine").order[place]

    write("2 GB/s")
    app = app_on(Desk(tiers=("nas-hdd", "mine")))

    async def script(pilot: Pilot[None]) -> None:
        assert stall_s() == pytest.approx(1005.0)
        write("40 GB/s")
        assert isinstance(app.screen, TiersScreen)
        app.screen.change(calibrate_fit.put_on(app.desk, "mine", {}))
        await settled(pilot)
        assert stall_s() == pytest.approx(55.0, rel=0.1)

    drive(app, script)


def test_a_tier_without_a_rate_says_what_to_give(drive: Drive, unrated_s3: None) -> None:
    app = app_on(Desk(tiers=("aws-s3-standard", "nas-hdd")))

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "end")
        lines = app.screen.query_one("#details", Note).lines
        assert any("the write rate of aws-s3-standard is not known" in line for line in lines)
        assert (
            next(row.tone for row in rows_of(app).grid.rows if row.key == "aws-s3-standard")
            == "muted"
        )
        await press(pilot, "enter")
        assert app.current_mode == "interval"
        assert "the write rate of aws-s3-standard is not known" in " ".join(
            screen_text(app).split()
        )

    drive(app, script)


def test_a_wrong_scenario_comes_right_again(drive: Drive) -> None:
    app = app_on(WRONG)

    async def script(pilot: Pilot[None]) -> None:
        assert "'many' does not start with a number" in screen_text(app)
        await press(pilot, "b", "x", "enter", "t", "o", "m", "v")
        assert isinstance(app.screen, TiersScreen)
        assert app.screen.exported() is None
        assert app.current_mode == "tiers"
        app.screen.change(app.desk.without("cluster.gpus"))
        await settled(pilot)
        assert "for energy on ddn-exascaler-40" in screen_text(app)

    drive(app, script)


def test_what_is_shown_can_be_written(drive: Drive, tmp_path: Path) -> None:
    from ckptcost.first.tui import files

    app = app_on(Desk())

    async def script(pilot: Pilot[None]) -> None:
        screen = app.screen
        assert isinstance(screen, TiersScreen)
        for shown in ("best", "asked"):
            for form in files.FORMATS:
                file = files.write_view(
                    screen.exported(),
                    str(tmp_path / f"{shown}.{form}"),
                    app.desk,
                    screen.command_line(),
                )
                assert "ddn-exascaler-40" in file.read_text()
            await press(pilot, "o")

    drive(app, script)


def test_letters_only_where_nothing_else_can_be_drawn(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(Desk(), plain=True)

    async def script(pilot: Pilot[None]) -> None:
        app.screen.query_one("#front", Plot)
        body = "\n".join(
            line
            for line in screen_text(app).splitlines()
            if not line.startswith(("\u256d", "\u2570", "\u2502"))
        )
        assert "> ddn-exascaler-40" in screen_text(app)
        assert not {"\u25b8", "\u2588", "\u28ff"} & set(body)

    drive(app, script)


def test_the_loop_is_not_held_up_by_every_tier_at_once(drive: Drive) -> None:
    app = app_on(replace(EVERY))

    async def script(pilot: Pilot[None]) -> float:
        screen = app.screen
        assert isinstance(screen, TiersScreen)
        begin = time.perf_counter()
        screen.draw()
        return time.perf_counter() - begin

    assert drive(app, script, WIDE) < 0.25
