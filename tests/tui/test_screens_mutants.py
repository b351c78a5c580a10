"""What a slip in a screen could do without another test hearing of it: the wrong file, an answer
turned round, a thing forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from doctor_studies import common
from screening import screen_text, settled
from textual.widgets import Input, Static

from ckptcost.tui import files, leaving
from ckptcost.tui.app import CkptcostApp
from ckptcost.tui.commands import MODES
from ckptcost.tui.desk import Desk
from ckptcost.tui.live.source import Actions
from ckptcost.tui.modals.confirm import Confirm
from ckptcost.tui.modals.files import Export, OpenScenario
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.screens.live_keys import possible
from ckptcost.tui.screens.probe_run import Ended


class Bare(ModeScreen):
    """A screen with nothing of its own."""

    MODE = "model"

    def body(self):
        yield Static("a text")


class Bares(CkptcostApp):
    MODES: ClassVar = dict.fromkeys((mode for mode, *_ in MODES), Bare)


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path) -> Path:
    """Files without a folder in their name go to a folder of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def saved_as(pilot, name: str) -> None:
    """Another name in the dialog that is open, and Enter."""
    pilot.app.screen.query_one(Input).value = name
    await pilot.press("enter")
    await settled(pilot)


# files


def test_every_file_is_asked_about_by_itself(drive, here):
    for name in ("a.toml", "b.toml"):
        (here / name).write_text("precious")

    async def script(pilot):
        await pilot.press("ctrl+s")
        await settled(pilot)
        await saved_as(pilot, "a.toml")
        assert "a.toml is there already: Enter once more" in screen_text(pilot.app)
        await saved_as(pilot, "b.toml")
        assert "b.toml is there already: Enter once more" in screen_text(pilot.app)
        assert (here / "b.toml").read_text() == "precious"
        await pilot.press("enter")
        await settled(pilot)

    drive(Bares(Desk(base="small-8b", edits={"cluster.gpus": "64"})), script)
    assert (here / "a.toml").read_text() == "precious"
    assert 'gpus = "64"' in (here / "b.toml").read_text()


def test_a_name_without_its_ending_does_not_replace_the_file_unasked(drive, here):
    (here / "mine.toml").write_text("precious")

    async def script(pilot):
        await pilot.press("ctrl+s")
        await settled(pilot)
        await saved_as(pilot, "mine")
        assert "mine.toml is there already" in screen_text(pilot.app)

    drive(Bares(Desk(base="small-8b", edits={"cluster.gpus": "64"})), script)
    assert (here / "mine.toml").read_text() == "precious"


def test_a_picture_does_not_replace_a_file_unasked(drive, here):
    (here / "ckptcost-model.svg").write_text("precious")

    async def script(pilot):
        await pilot.press("E")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert "Enter once more" in screen_text(pilot.app)
        assert (here / "ckptcost-model.svg").read_text() == "precious"
        await pilot.press("enter")
        await settled(pilot)

    drive(Bares(), script)
    assert (here / "ckptcost-model.svg").read_text().startswith("<svg")


def test_a_file_that_is_typed_out_is_that_file_and_not_a_recent_one(drive, here):
    (here / "deep").mkdir()
    (here / "job.toml").write_text('extends = "small-8b"\n')
    (here / "deep" / "job.toml").write_text('extends = "small-8b"\n')

    async def script(pilot):
        opened = []
        await pilot.app.push_screen(
            OpenScenario(Desk(base="small-8b"), ("deep/job.toml",)), opened.append
        )
        await settled(pilot)
        await saved_as(pilot, "job.toml")
        return [desk.base for desk in opened]

    assert drive(Bares(), script) == ["job.toml"]


def test_what_was_opened_twice_is_remembered_once(drive):
    async def script(pilot):
        for base in ("small-8b", "micron-100k", "small-8b"):
            await pilot.press("ctrl+o")
            await settled(pilot)
            await saved_as(pilot, base)
            assert pilot.app.desk.base == base
        return pilot.app.remembered.recent

    assert drive(Bares(), script) == ("small-8b", "micron-100k")


def test_all_of_the_desk_is_remembered(drive):
    desk = Desk(
        base="small-8b",
        edits={"cluster.gpus": "64"},
        tiers=("nas-hdd", "flash-shared"),
        baseline="nas-hdd",
        metric="usd",
    )

    async def script(pilot):
        return pilot.app.remember()

    told = drive(Bares(desk), script)
    assert (told.base, told.edits, told.tiers, told.baseline, told.metric) == (
        "small-8b",
        {"cluster.gpus": "64"},
        ("nas-hdd", "flash-shared"),
        "nas-hdd",
        "usd",
    )


# a question


@pytest.mark.parametrize(("button", "answer"), [("#yes", True), ("#no", False)])
def test_a_click_answers_as_the_button_says(drive, button, answer):
    async def script(pilot):
        answers: list[bool | None] = []
        await pilot.app.push_screen(Confirm("Delete it?", "all of it", "delete"), answers.append)
        await settled(pilot)
        await pilot.click(button)
        await settled(pilot)
        return answers

    assert drive(Bares(), script) == [answer]


@pytest.mark.parametrize(("key", "answer"), [("y", True), ("n", False), ("escape", False)])
def test_a_key_answers_as_it_says(drive, key, answer):
    async def script(pilot):
        answers: list[bool | None] = []
        await pilot.app.push_screen(Confirm("Delete it?", "all of it", "delete"), answers.append)
        await settled(pilot)
        await pilot.press(key)
        await settled(pilot)
        return answers

    assert drive(Bares(), script) == [answer]


# what screens share


def test_a_screen_that_is_seen_again_hears_of_another_scenario_only(drive):
    heard: list[str] = []

    class Hearing(Bare):
        def on_desk(self) -> None:
            heard.append(self.desk.title)

    class Hearings(CkptcostApp):
        MODES: ClassVar = {**dict.fromkeys((mode for mode, *_ in MODES), Bare), "model": Hearing}

    async def script(pilot):
        await pilot.press("2", "1", "2", "1")
        await settled(pilot)
        assert heard == ["small-8b"]
        await pilot.press("2")
        pilot.app.screen.change(pilot.app.desk.edited("cluster.gpus", "64"))
        await pilot.press("1")
        await settled(pilot)
        assert heard == ["small-8b", "small-8b *"]

    drive(Hearings(Desk(base="small-8b")), script)


def test_quitting_removes_a_run_that_was_not_kept(drive, here):
    (folder := here / "ckptcost-run-1" / "run").mkdir(parents=True)

    async def script(pilot):
        pilot.app.screen._ended = Ended(False, study=common(), folder=folder)
        leaving.go(pilot.app)
        assert not folder.parent.exists()
        pilot.app.screen._ended = None

    drive(CkptcostApp(Desk(base="small-8b"), start="probe"), script)


@pytest.mark.parametrize("action", ["mark", "hold", "speed", "seek", "stop"])
def test_what_is_over_can_no_longer_be_acted_upon(action):
    everything = Actions(mark=True, stop=True, pause=True, seek=True, speed=True)
    assert possible(action, everything, over=False)
    assert not possible(action, everything, over=True)


def test_a_document_is_written_with_the_files_that_it_rests_on(drive, here, monkeypatch):
    wrote: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        files,
        "write_view",
        lambda shown, path, desk, command, over, read: wrote.append(tuple(read)) or path,
    )
    export = Export("audit", object(), Desk(), "ckptcost audit mine.toml", "<svg/>", ("mine.toml",))
    assert export.write("out.json", False) == "out.json"
    assert wrote == [("mine.toml",)]
