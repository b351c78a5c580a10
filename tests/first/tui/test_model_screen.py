"""The model's screen: typing is calculating, a slip of the pen costs nothing, and every size shows
the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from screening import SMALL, USUAL, WIDE, screen_text, settled, styles_of

from ckptcost.first.present.amounts import number
from ckptcost.first.tui import fields, files
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.picker import Picker, Ticks
from ckptcost.first.tui.screens import model as screen_module
from ckptcost.first.tui.screens import model_view as model

KEYS = {" ": "space", "/": "slash", "-": "minus", ".": "full_stop", "_": "underscore"}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """What follows once nobody types follows at once."""
    monkeypatch.setattr(screen_module, "IDLE_S", 0.001)


async def typed(pilot, path, text):
    """Into a field, over what stands there."""
    pilot.app.screen.form.enter(path)
    await pilot.pause()
    await pilot.press(*(KEYS.get(letter, letter) for letter in text))
    await settled(pilot)


def results(pilot):
    return pilot.app.screen.results


def rows(pilot, table="#tiers"):
    return results(pilot).query_one(table).grid.rows


def status(pilot):
    return screen_text(pilot.app).splitlines()[-2]


# ---- how it looks


async def at(pilot, size):
    await pilot.resize_terminal(*size)
    await settled(pilot)


def displayed(pilot):
    return [
        each for each in ("bill", "course", "notes") if results(pilot).query_one(f"#{each}").display
    ]


def test_first_sight_at_every_size(drive, snapshot):
    """Somebody who has never seen it reads how often to save, where, and how much less that takes.
    But for a broad screen views take turns; on a small one the fields come as a drawer with what
    is known of them beside."""
    app = CkptcostApp()

    async def script(pilot):
        for size, name in (
            (WIDE, "200x50"),
            (USUAL, "120x36"),
            ((100, 30), "100x30"),
            (SMALL, "80x24"),
        ):
            await at(pilot, size)
            snapshot(app, f"model_{name}_normal")
            seen = screen_text(app)
            for said in (
                "ddn-exascaler-40",
                "Save every 2,130 s on ddn-exascaler-40: 225,000 kWh less than now",
                "149,000-504,000 kWh.",
                "2.14M USD less",
                "gpt4-scale-2tb",
                "2 TB a save",
            ):
                assert said in seen, size
            assert displayed(pilot) == (["bill", "course", "notes"] if size == WIDE else ["bill"])
        for view in ("notes", "course", "bill"):
            await pilot.press("v")
            await settled(pilot)
            assert displayed(pilot) == [view]
            if view == "course":
                snapshot(app, "model_80x24_course")
        assert not app.screen.query_one("#inputs").display
        await pilot.press("i", "down", "down")
        await settled(pilot)
        assert app.screen.form.focused_path == "checkpoint.params"
        snapshot(app, "model_80x24_drawer")
        await pilot.press("escape")
        await settled(pilot)
        assert not app.screen.query_one("#inputs").display
        assert app.focused.id == "tiers"

    drive(app, script, WIDE)


def test_an_invalid_field(drive, snapshot):
    app = CkptcostApp()

    async def script(pilot):
        await typed(pilot, "checkpoint.size", "3 XB")
        snapshot(app, "model_120x36_invalid")
        assert app.desk.edits == {"checkpoint.size": "3 TB"}, (
            "what was typed on the way there stays in use"
        )
        assert "3 TB stays in use" in status(pilot)
        assert screen_text(app).count("unknown unit") == 2, "below the field and in the bottom line"
        await at(pilot, SMALL)
        await pilot.press("escape", "i")
        await settled(pilot)
        snapshot(app, "model_80x24_invalid")
        await pilot.press("4", "space", "T", "B")
        await settled(pilot)
        assert "USD less" in status(pilot)

    drive(app, script)


def test_figures_that_nobody_knows(drive, snapshot, unpowered_gpus):
    app = CkptcostApp(Desk(edits={"cluster.accelerator": "tpu-v4"}))

    async def script(pilot):
        for size, name in ((USUAL, "120x36"), (SMALL, "80x24")):
            await at(pilot, size)
            snapshot(app, f"model_{name}_unknown")
            assert "the energy of this run is not known" in screen_text(app)

    drive(app, script)


def test_a_scenario_without_figures(drive, snapshot):
    app = CkptcostApp(Desk(edits={"second_tier.id": "nas-hdd", "third_tier.id": "object-store"}))

    async def script(pilot):
        for size, name in ((USUAL, "120x36"), (SMALL, "80x24")):
            await at(pilot, size)
            snapshot(app, f"model_{name}_error")
            assert "three tiers have no closed form" in status(pilot)
        assert (app.screen.command_line(), app.screen.exported()) == ("", None)
        await pilot.press("R")
        await settled(pilot)
        assert len(rows(pilot)) == 4
        assert not results(pilot).has_class("-broken")

    drive(app, script)


def test_without_colours_and_with_letters_only(drive, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = CkptcostApp(plain=True)

    async def script(pilot):
        await typed(pilot, "checkpoint.size", "3 XB")
        seen = screen_text(app)
        panels = [line[43:] for line in seen.splitlines()[5:11]]
        assert any("> ddn-exascaler-40" in line for line in panels)
        assert "x '3 XB'" in seen

    drive(app, script)


# ---- typing is calculating


def test_every_keystroke_counts_and_is_computed_once(drive, monkeypatch):
    app, asked = CkptcostApp(), []
    evaluate = model.evaluate

    def counted(desk):
        asked.append(dict(desk.edits))
        return evaluate(desk)

    async def script(pilot):
        app.screen.form.enter("cluster.gpus")
        await pilot.pause()
        monkeypatch.setattr(model, "evaluate", counted)
        await pilot.press("2", "0", "4", "8")
        await settled(pilot)
        assert asked == [{"cluster.gpus": text} for text in ("2", "20", "204", "2048")]
        monkeypatch.undo()
        assert rows(pilot) == evaluate(Desk(edits={"cluster.gpus": "2048"})).grid.rows
        assert "2,048 x H100" in screen_text(app)
        assert "gpt4-scale-2tb *" in screen_text(app)

    drive(app, script)


def test_slips_are_forgiven_and_empty_fields_go_back(drive):
    app = CkptcostApp()

    async def script(pilot):
        before = rows(pilot)
        await typed(pilot, "policy.mode", "asyn")
        assert "no choice named 'asyn'" in status(pilot)
        assert app.desk.edits == {}
        await pilot.press("c")
        await settled(pilot)
        assert app.desk.edits == {"policy.mode": "async"}
        assert "USD less" in status(pilot)
        assert rows(pilot) != before
        await pilot.press(*["backspace"] * 5)
        await settled(pilot)
        assert app.desk.edits == {}
        assert rows(pilot) == before
        app.screen.form.enter("site.pue")
        await settled(pilot)
        assert "Facility energy over IT energy." in screen_text(app), (
            "what is known of a field stands below the form"
        )

    drive(app, script)


def test_reset_undo_and_reset_all(drive):
    app = CkptcostApp()

    async def script(pilot):
        await typed(pilot, "cluster.gpus", "64")
        await typed(pilot, "site.pue", "1.4")
        assert app.desk.edits == {"cluster.gpus": "64", "site.pue": "1.4"}
        await pilot.press("ctrl+r")
        assert app.desk.edits == {"cluster.gpus": "64"}
        assert app.screen.form.text("site.pue") == "1.15"
        await pilot.press("escape", "R")
        assert app.desk.edits == {}
        for edits in (
            {"cluster.gpus": "64"},
            {"cluster.gpus": "64", "site.pue": "1.4"},
            {"cluster.gpus": "64"},
            {},
        ):
            await pilot.press("u")
            assert app.desk.edits == edits, "a field that was typed in is one step back"
        await pilot.press("u")
        assert "nothing to take back" in status(pilot)

    drive(app, script)


NEVER = {"failures.rate": "0 /1000 node-days", "policy.optimal": "energy"}


def test_undo_brings_back_a_scenario_without_figures(drive):
    """Not a crash, and what was changed before it can be taken back as well."""
    app = CkptcostApp(Desk(edits=NEVER))

    async def script(pilot):
        assert "never to save" in status(pilot)
        await pilot.press("R")
        await settled(pilot)
        assert app.desk.edits == {}
        assert len(rows(pilot)) == 4
        await pilot.press("u")
        await settled(pilot)
        assert app.desk.edits == NEVER
        assert "never to save" in status(pilot)
        assert results(pilot).has_class("-broken")
        for key in ("g", "t", "escape", "ctrl+r", "u", "k"):
            await pilot.press(key)
            await settled(pilot)
        assert app.desk.edits == NEVER
        await pilot.press("R", "g")
        await settled(pilot)
        assert (app.desk.edits, app.desk.metric) == ({}, "gpuh")
        assert not results(pilot).has_class("-broken")

    drive(app, script)


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("float division by zero"),
        OverflowError("too large"),
        ValueError("math domain error"),
    ],
)
def test_a_sum_that_cannot_be_done_is_a_refusal_everywhere(drive, monkeypatch, error):
    app, evaluate = CkptcostApp(), model.evaluate

    def failing(desk):
        if desk.edits or desk.metric != "kwh" or desk.tiers or desk.chosen:
            raise error
        return evaluate(desk)

    async def script(pilot):
        before = rows(pilot)
        monkeypatch.setattr(model, "evaluate", failing)
        await pilot.press("dollar_sign")
        assert f"cannot be computed with this ({error})" in status(pilot)
        await pilot.press("down", "enter")
        await settled(pilot)
        await typed(pilot, "cluster.gpu_price", "0")
        assert f"cannot be computed with this ({error})" in status(pilot)
        await pilot.press("ctrl+r", "escape", "R", "u", "u")
        await settled(pilot)
        assert (app.desk.edits, app.desk.metric, rows(pilot)) == ({}, "kwh", before)
        monkeypatch.setattr(model, "settled", lambda _: failing(Desk(metric="usd")))
        monkeypatch.setattr(model, "command", lambda _: failing(Desk(metric="usd")))
        monkeypatch.setattr(model, "report", lambda _: failing(Desk(metric="usd")))
        app.screen._settle()
        assert (app.screen.command_line(), app.screen.exported()) == ("", None)

    drive(app, script)


def test_what_sums_leave_out_stands_below_the_tiers(drive, unmetered_slow_tiers):
    app = CkptcostApp()

    async def script(pilot):
        seen = "because unknown: storage writing [nas-hdd, generic-pfs]"
        assert seen in screen_text(app)
        await pilot.press("g")
        await settled(pilot)
        assert seen not in screen_text(app)
        assert not results(pilot).query_one("#left-out").display

    drive(app, script)


def test_all_fields_and_lists(drive):
    app = CkptcostApp()

    async def script(pilot):
        await pilot.press("a")
        await settled(pilot)
        await typed(pilot, "tier.setup", "30 s")
        assert app.desk.edits == {"tier.setup": "30 s"}
        await typed(pilot, "tier.read", "3 X")
        assert "unknown unit" in status(pilot)
        await pilot.press("ctrl+r", "escape", "a")
        await settled(pilot)
        with pytest.raises(KeyError):
            app.screen.form.text("tier.setup")
        app.screen.form.enter("cluster.id")
        await pilot.pause()
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, Picker)
        await pilot.press("1", "6", "k", "enter")
        await settled(pilot)
        assert app.desk.edits == {"tier.setup": "30 s", "cluster.id": "h100-16k"}
        assert app.screen.form.text("cluster.id") == "h100-16k"
        assert app.screen.form.text("cluster.gpus") == "16384"

    drive(app, script)


# ---- tiers and metrics


def test_metrics_and_the_best_tier(drive):
    app = CkptcostApp()

    async def script(pilot):
        line = next(
            line for line in screen_text(app).splitlines() if "\u25b8 ddn-exascaler-40" in line
        )
        assert number(model.evaluate(Desk()).runs[-1].row["run_energy_kwh"]) in line
        best, other = styles_of(app, " ddn-exascaler-40 "), styles_of(app, " generic-pfs ")
        assert best
        assert best.isdisjoint(other)
        for key, metric in (
            ("g", "gpuh"),
            ("dollar_sign", "usd"),
            ("c", "co2e"),
            ("w", "time"),
            ("k", "kwh"),
        ):
            await pilot.press(key)
            assert app.desk.metric == metric
            assert rows(pilot) == model.evaluate(Desk(metric=metric)).grid.rows

    drive(app, script)


def test_enter_on_a_tier_and_tiers_side_by_side(drive, unrated_s3):
    app = CkptcostApp()

    async def script(pilot):
        await pilot.press("down", "down", "enter")
        await settled(pilot)
        assert app.desk.chosen == "ddn-exascaler-20"
        assert [row.key for row in rows(pilot) if row.marked] == ["ddn-exascaler-20"]
        assert rows(pilot, "#bill") == (
            model.settled(model.evaluate(Desk(chosen="ddn-exascaler-20"))).bill.rows
        )
        assert app.screen.form.text("tier.id") == "ddn-exascaler-20"
        assert app.screen.form.text("tier.write") == "20 GB/s"
        await pilot.press("t")
        await settled(pilot)
        assert isinstance(app.screen, Ticks)
        await pilot.press(*"yanrong", "space", "enter")
        await settled(pilot)
        assert app.desk.tiers == (
            "nas-hdd",
            "generic-pfs",
            "ddn-exascaler-20",
            "ddn-exascaler-40",
            "mlperf-yanrong-f9000x",
        )
        assert [row.key for row in rows(pilot)] == list(app.desk.tiers)
        assert app.desk.chosen == "ddn-exascaler-20"
        app.screen.change(Desk(tiers=("nas-hdd", "aws-s3-standard")))
        await pilot.press("end", "enter")
        await settled(pilot)
        assert "the write rate of aws-s3-standard is not known" in status(pilot)
        assert app.desk.chosen == ""

    drive(app, script)


# ---- for others


def test_what_is_copied_and_exported_and_changed_elsewhere(drive, tmp_path):
    app = CkptcostApp(Desk(edits={"cluster.gpus": "2048"}))

    async def script(pilot):
        assert app.screen.command_line() == (
            "ckptcost model --set cluster.gpus=2048 --against ddn-exascaler-40 --full;"
            " ckptcost compare --set cluster.gpus=2048"
            " --with 'tier.id=ddn-exascaler-40, policy.optimal=energy' --full"
        )
        assert app.screen.table().rows == rows(pilot)
        out = str(tmp_path / "out.json")
        files.write_view(app.screen.exported(), out, app.desk, app.screen.command_line())
        report = json.loads(Path(out).read_text("utf-8"))
        (bill,) = report["statements"]
        assert bill["subject"]["accelerator_count"] == 2048
        command = "ckptcost model --set cluster.gpus=2048 --against ddn-exascaler-40 -f json"
        assert report["tool"]["command"] == command.split()
        results(pilot).query_one("#bill").focus()
        await pilot.pause()
        assert app.screen.table().rows == rows(pilot, "#bill")
        app.screen.hidden()
        app.desk = Desk(base="small-8b")
        app.screen.on_screen_resume()
        await settled(pilot)
        assert [row.key for row in rows(pilot)] == ["local-nvme-4xgen5"]
        assert app.screen.form.text("tier.node_write").endswith("GB/s")
        assert "small-8b" in screen_text(app)
        await typed(pilot, "site.pue", "0.4")
        assert "out of range" in status(pilot)
        app.screen.change(Desk())
        await settled(pilot)
        assert "USD less" in status(pilot), "a slip in another scenario is forgotten"
        assert app.screen.form.text("site.pue") == "1.15"

    drive(app, script)


def test_reset_all_takes_back_the_tier_too(drive):
    app = CkptcostApp()

    async def script(pilot):
        before = app.desk.tier_chosen()
        await pilot.press("i")
        app.screen.form.enter(fields.TIER)
        await pilot.press(*"generic-pfs", "escape")
        assert app.desk.tier_chosen() == "generic-pfs"
        await pilot.press("R")
        assert app.desk.tier_chosen() == before
        await pilot.press("u")
        assert app.desk.tier_chosen() == "generic-pfs"

    drive(app, script)
