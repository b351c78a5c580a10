"""Opening and writing from the screen: what can be opened, and one line where it cannot be
written."""

import errno
import json
import os
import re
from pathlib import Path
from typing import ClassVar

import pytest
from screening import screen_text, settled
from textual.widgets import Input, Static

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError, OutputError
from ckptcost.first.questions.model import model
from ckptcost.first.tui import files
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.commands import MODES
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.files import Export, OpenScenario
from ckptcost.first.tui.screens.base import ModeScreen

CATALOG = Catalog()
DESK = Desk(CATALOG)


def test_presets_are_listed_with_their_size_and_recent_files_first(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "gpt4-scale-2tb"\nname = "mine"\n[cluster]\ngpus = 256\n')
    grid = files.presets(CATALOG, [str(mine), str(mine), "llama31-405b-16k"])
    assert [row.key for row in grid.rows] == [str(mine), *sorted(CATALOG.ids("scenario"))]
    assert grid.rows[0].cells[1:] == ("mine", "2 TB", "256")


def test_a_recent_file_that_is_gone_is_told_not_hidden(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = files.presets(CATALOG, ["gone.toml"]).rows[0]
    assert row.tone == "bad"
    assert "gone.toml" in row.cells[1]


def test_opening_checks_first(tmp_path):
    assert files.opened(DESK, "llama31-405b-16k").base == "llama31-405b-16k"
    bad = tmp_path / "bad.toml"
    bad.write_text('extends = "gpt4-scale-2tb"\n[cluster]\ngpus = "lots"\n')
    with pytest.raises(InputError, match=r"cluster\.gpus"):
        files.opened(DESK, str(bad))
    with pytest.raises((InputError, OSError)):
        files.opened(DESK, "no-such-preset")


def test_a_scenario_is_saved_once_and_over_only_when_told(tmp_path):
    one = DESK.edited("cluster.gpus", "512")
    where = files.save_scenario(one, str(tmp_path / "job"))
    assert where.name == "job.toml"
    with pytest.raises(OutputError, match="there already"):
        files.save_scenario(one, str(where))
    files.save_scenario(one.edited("cluster.gpus", "64"), str(where), over=True)
    assert float(Desk(CATALOG, base=str(where)).resolved().scenario.cluster.gpus) == 64


def test_a_report_is_written_as_the_command_line_writes_it(tmp_path, cli):
    study = model(tier=["nas-hdd"], saves=[100]).study
    for ending, form in (("csv", "csv"), ("md", "md"), ("txt", "text")):
        where = files.write_view(study, str(tmp_path / f"out.{ending}"), DESK, "ckptcost model")
        told = cli("model", "--tier", "nas-hdd", "--saves", "100", "-f", form, "--full")
        assert where.read_text("utf-8") == told.out
    where = files.write_view(study, str(tmp_path / "out.json"), DESK, "ckptcost model")
    written = json.loads(where.read_text())
    assert (written["schema_name"], written["kind"]) == ("ckptcost.report", "model")


def test_a_study_is_written_as_the_command_line_writes_it(tmp_path, cli):
    from ckptcost.first.questions.optimize import optimize

    study = optimize(DESK.base, changes=DESK.settings(), catalog=CATALOG).study
    for ending, form in (("csv", "csv"), ("md", "md"), ("txt", "text")):
        where = files.write_view(study, str(tmp_path / f"out.{ending}"), DESK, "ckptcost optimize")
        assert where.read_text("utf-8") == cli("optimize", "-f", form, "--full").out
    where = files.write_view(study, str(tmp_path / "out.json"), DESK, "ckptcost optimize")
    assert json.loads(where.read_text()) == json.loads(cli("optimize", "-f", "json").out)


def test_a_page_is_written_of_any_answer(tmp_path, cli):
    from ckptcost.first.questions.compare import compare
    from ckptcost.first.questions.optimize import optimize

    study = model(tier=["nas-hdd"], saves=[100]).study
    where = files.write_view(
        study, str(tmp_path / "out.html"), DESK, "ckptcost model --tier nas-hdd --saves 100"
    )
    told = cli("model", "--tier", "nas-hdd", "--saves", "100", "-f", "html").out
    figures = re.compile(r'<data value="([^"]+)"')
    assert figures.findall(where.read_text("utf-8")) == figures.findall(told) != []
    compared = compare(DESK.base, variants=["policy.mode=async"], catalog=CATALOG).study
    assert (
        "<!doctype html>"
        in files.write_view(compared, str(tmp_path / "two.html"), DESK, "")
        .read_text("utf-8")
        .lower()
    )
    other = files.write_view(
        optimize(DESK.base, catalog=CATALOG).study, str(tmp_path / "none.html"), DESK, ""
    ).read_text("utf-8")
    assert "it holds no bill of its own" in other
    assert "best for time" in other


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no file is named"),
        (".", "is a folder"),
        ("no/such/folder/a.txt", "No such file"),
        ("a.docx", r"end the name in \.csv"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(name, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=why):
        files.write_view(model(tier=["nas-hdd"], saves=[1]).study, name, DESK, "")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_one_sentence():
    with pytest.raises(OutputError, match="No space left"):
        files.write_text("x" * 1000, "/dev/full", over=True)


def test_a_text_is_written_whole_and_over_only_when_told(tmp_path):
    out = tmp_path / "out.md"
    files.write_text("text", str(out))
    with pytest.raises(OutputError, match="there already"):
        files.write_text("other", str(out))
    assert out.read_text("utf-8") == "text"
    files.write_text("other", str(out), over=True)
    assert out.read_text("utf-8") == "other"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.ENOENT])
def test_why_it_could_not_be_written_is_one_line(tmp_path, monkeypatch, number):
    def refuse(pieces, target):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "write_whole", refuse)
    with pytest.raises(OutputError) as told:
        files.write_text("text", str(tmp_path / "out.md"))
    assert os.strerror(number) in str(told.value)
    assert "\n" not in str(told.value)


class Bare(ModeScreen):
    """A screen with nothing of its own."""

    MODE = "model"

    def body(self):
        yield Static("a text")


class Bares(CkptcostApp):
    MODES: ClassVar = dict.fromkeys((mode for mode, *_ in MODES), Bare)


@pytest.fixture
def here(monkeypatch, tmp_path) -> Path:
    """Files without a folder in their name go to a folder of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def saved_as(pilot, name: str) -> None:
    """Another name in the dialog that is open, and Enter."""
    pilot.app.screen.query_one(Input).value = name
    await pilot.press("enter")
    await settled(pilot)


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
