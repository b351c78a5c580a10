"""How often to save, on the screen, and the question backwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from screening import SMALL, USUAL, WIDE, screen_text, settled
from textual.pilot import Pilot
from textual.widgets import Input, Static

from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import calibrate_fit, solve
from ckptcost.first.tui.screens import interval_view as interval
from ckptcost.first.tui.screens.interval import IntervalScreen
from ckptcost.first.tui.screens.solve import Solve
from ckptcost.first.tui.study_grids import tables_of
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.plot import Plot
from ckptcost.first.tui.widgets.rows import Rows

Drive = Callable[..., Any]
Snapshot = Callable[[CkptcostApp, str], None]
PFS = replace(Desk(), chosen="generic-pfs")
NO_FAILURES = Desk().edited("failures.rate", "0 /1000 node-days")
WRONG = Desk().edited("cluster.gpus", "many")
NEVER = Desk().edited("cluster.gpus", "100000")


def app_on(desk: Desk, **more: Any) -> CkptcostApp:
    return CkptcostApp(desk, start="interval", **more)


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await settled(pilot)


def screen_of(app: CkptcostApp) -> IntervalScreen:
    assert isinstance(app.screen, IntervalScreen)
    return app.screen


def mine_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the user's own tier, as a calibration does."""
    file = folder / "models" / "tiers" / "mine.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.setenv("CKPTCOST_USER", str(folder))

    def write(rate: str) -> None:
        file.write_text(
            f'id = "mine"\nname = "Measured here"\nwrite = "{rate}"\nread = "{rate}"\nbasis ='
            ' "measured"\nsource = "house"\n'
        )

    return write


def trial_in(app: CkptcostApp) -> str:
    return interval.interval_in(screen_of(app).query_one("#points", Rows).grid.rows[0].key)


@pytest.mark.parametrize(
    ("name", "desk", "size", "keys"),
    [
        ("80x24_normal", PFS, SMALL, ()),
        ("120x36_normal", PFS, USUAL, ("shift+right",)),
        ("200x50_energy", PFS, WIDE, ("m", "right")),
        ("80x24_empty", NO_FAILURES, SMALL, ()),
        ("120x36_empty", NO_FAILURES, USUAL, ()),
        ("80x24_error", WRONG, SMALL, ()),
        ("120x36_error", WRONG, USUAL, ()),
        ("120x36_never", NEVER, USUAL, ()),
        ("80x24_two_tiers_usd", Desk(base="small-8b"), SMALL, ("m", "m")),
        ("80x24_solve", PFS, SMALL, ("w",)),
        ("120x36_solve_out_of_reach", Desk(), USUAL, ("w", "down")),
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
        for key in keys:  # what a key asks for is there before the next one comes
            await press(pilot, key)
        snapshot(app, f"interval_{name}")

    drive(app, script, size)


def test_everything_shown_is_the_views(drive: Drive) -> None:
    app = app_on(PFS)

    async def script(pilot: Pilot[None]) -> None:
        for objective in ("time", "energy", "usd", "carbon"):
            one = interval.studied(app.desk, objective)
            trial, screen = interval.point_at(one, interval.trial_of(one)), screen_of(app)
            assert screen.query_one("#points", Rows).grid.rows == interval.points(one, trial).rows
            assert screen.query_one("#lost", Rows).grid.rows == interval.parts(one, trial).rows
            notes = tuple(text for text, _ in interval.notes(one))
            assert screen.query_one("#notes", Note).lines == notes
            assert screen.query_one(Plot).chart.rules == interval.chart(one, trial).rules
            assert (
                screen.command_line()
                == f"ckptcost optimize --set tier.id=generic-pfs --objective {objective}"
            )
            await press(pilot, "m")

    drive(app, script)


def test_the_trial_moves_and_is_applied(drive: Drive) -> None:
    app = app_on(PFS)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "right", "right")
        assert trial_in(app) == "7640 s"
        assert "policy.interval=7640 s" in screen_of(app).command_line()
        assert "Every 7,640 s" in screen_text(app)
        await press(pilot, "left", "left", "left")
        assert trial_in(app) == "6990 s"
        await press(pilot, "o")
        assert trial_in(app) == "3.53 h"
        await press(pilot, "n")
        assert trial_in(app) == "7200 s"
        await press(pilot, "shift+right", "a")
        assert app.desk.edits == {"policy.interval": "9680 s"}
        now = next(
            row
            for row in screen_of(app).query_one("#points", Rows).grid.rows
            if row.cells[0] == "now"
        )
        assert interval.interval_in(now.key) == "9680 s"
        await press(pilot, "2")
        assert app.current_mode == "tiers"
        await press(pilot, "o")
        assert "9,680 s" in screen_text(app)

    drive(app, script)


def test_a_key_that_cannot_move_the_trial_says_why(drive: Drive) -> None:
    app = app_on(PFS.edited("policy.interval", "500 d"))

    async def script(pilot: Pilot[None]) -> None:
        assert trial_in(app) == "500 d"
        await press(pilot, "right")
        assert trial_in(app) == "515 d"
        for _ in range(3):
            await press(pilot, "shift+right")
        furthest = trial_in(app)
        await press(pilot, "right")
        assert trial_in(app) == furthest
        assert f"The curve goes no longer than every {furthest}" in screen_text(app)

    drive(app, script)


def test_what_is_in_force_is_not_rounded_by_applying_it(drive: Drive) -> None:
    desk = PFS.edited("policy.saves", "70")
    app = app_on(desk)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "a")
        assert app.desk is desk
        assert "is in force already" in screen_text(app)
        await press(pilot, "o", "a")
        assert set(app.desk.edits) == {"policy.interval"}
        one = screen_of(app).found
        assert one is not None
        assert one.now is not None
        assert one.now.interval_s == pytest.approx(one.best.interval_s, rel=1e-6)

    drive(app, script)


def test_a_tier_calibrated_again_is_studied_again(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = mine_at(tmp_path, monkeypatch)
    write("2 GB/s")
    app = app_on(Desk(tiers=("mine",)))

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "o")
        assert trial_in(app) == "3.53 h"
        write("40 GB/s")
        screen_of(app).change(calibrate_fit.fresh(app.desk))
        await settled(pilot)
        await press(pilot, "o")
        assert trial_in(app) == "3090 s"

    drive(app, script)


def test_a_click_and_a_row_put_an_interval_on_trial(drive: Drive) -> None:
    app = app_on(PFS)

    async def script(pilot: Pilot[None]) -> None:
        plot = screen_of(app).query_one(Plot)
        plot.post_message(Plot.Picked(plot, 3600.0))
        await settled(pilot)
        assert trial_in(app) == "3600 s"
        await pilot.click("#curve", offset=(90, 5))
        await settled(pilot)
        assert trial_in(app) not in ("3600 s", "7,200 s")
        points = screen_of(app).query_one("#points", Rows)
        points.focus()
        points.select(
            next(row.key for row in points.grid.rows if row.cells[0] == "best for energy")
        )
        await press(pilot, "enter")
        assert trial_in(app) == "8870 s"

    drive(app, script)


def test_the_next_tier_and_a_single_one(drive: Drive) -> None:
    app = app_on(Desk())

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "t")
        assert app.desk.chosen == "generic-pfs"
        assert "on generic-pfs" in screen_text(app)
        screen_of(app).change(Desk(base="small-8b"))
        await settled(pilot)
        await press(pilot, "t")
        assert "There is only one tier" in screen_text(app)

    drive(app, script)


def test_nothing_is_computed_twice(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(PFS)
    calls: list[str] = []
    real = interval.studied

    def counted(desk: Desk, objective: str) -> interval.Studied:
        calls.append(objective)
        return real(desk, objective)

    monkeypatch.setattr(interval, "studied", counted)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "right", "o", "n", "m", "right", "m", "m", "m")
        screen_of(app).change(replace(app.desk, baseline="nas-hdd"))
        await settled(pilot)
        assert calls == ["time", "energy", "usd", "carbon"]
        await press(pilot, "right", "a")
        assert calls == ["time", "energy", "usd", "carbon", "time"]

    drive(app, script)


def test_what_has_no_best_interval_comes_right_again(drive: Drive) -> None:
    app = app_on(WRONG)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "right", "o", "n", "a", "t", "m", "m", "m", "m", "s")
        assert app.desk == WRONG
        assert screen_of(app).exported() is None
        screen_of(app).change(NO_FAILURES)
        await settled(pilot)
        assert "never to save" in " ".join(screen_text(app).split())
        screen_of(app).change(PFS)
        await settled(pilot)
        assert trial_in(app) == "7200 s"
        assert not screen_of(app).has_class("-none")

    drive(app, script)


def test_without_a_price_the_other_measures_go_on(drive: Drive, unpriced_gpus: None) -> None:
    app = app_on(PFS.edited("cluster.accelerator", "gb300"))

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "m", "m")
        assert "cluster.gpu_price" in screen_text(app)
        await press(pilot, "m")
        assert "kgCO2e added over the interval" in screen_text(app)

    drive(app, script)


def test_what_is_shown_can_be_written(drive: Drive, tmp_path: Path) -> None:
    from ckptcost.first.tui import files

    app = app_on(PFS)

    async def script(pilot: Pilot[None]) -> None:
        screen = screen_of(app)
        for form in files.FORMATS:
            file = files.write_view(
                screen.exported(), str(tmp_path / f"out.{form}"), app.desk, screen.command_line()
            )
            assert "best for time" in file.read_text()

    drive(app, script)


def test_asking_backwards(drive: Drive) -> None:
    app = app_on(PFS)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        assert isinstance(app.screen, Solve)
        dialog = app.screen
        for what in ("write", "read", "bandwidth"):
            found = solve.solved(app.desk, what, "goodput>=0.95")
            said = tuple(text for text, _ in solve.lines_of(found))
            assert dialog.query_one("#answer", Note).lines == said
            assert dialog.query_one("#table", Rows).grid.rows == tables_of(found)[0].rows
            command = solve.command(app.desk, what, "goodput>=0.95")
            assert str(dialog.query_one("#command", Static).content) == command
            await press(pilot, "down")
        dialog.query_one(Input).value = "goodput>=2"
        await settled(pilot)
        assert "no share of time that can be reached" in dialog.query_one("#answer", Note).lines[0]
        dialog.query_one(Input).value = "usd<=150000"
        await settled(pilot)
        assert "USD" in dialog.query_one("#answer", Note).lines[0]
        await press(pilot, "escape")
        assert isinstance(app.screen, IntervalScreen)

    drive(app, script)


def test_a_defect_while_asking_is_not_the_end(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(PFS)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(solve, "solved", broken)

    async def script(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        assert "ZeroDivisionError" in screen_text(app)

    drive(app, script)


def test_letters_only_where_nothing_else_can_be_drawn(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(PFS, plain=True)

    async def script(pilot: Pilot[None]) -> None:
        assert "> robust interval" in screen_text(app)
        assert not {"\u25b8", "\u2588", "\u28ff", "\u2824"} & set(screen_text(app))

    drive(app, script)
