"""Mode 8: what of, in which format, the text as the command prints it, and the file."""

from __future__ import annotations

import shlex
import threading
from dataclasses import replace

import pytest
from screening import SMALL, USUAL, screen_text, settled
from small_runs import recorded
from textual.widgets import Input, Static

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.tui import files
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.screens import calibrate_fit, report
from ckptcost.first.tui.screens.report import ReportScreen
from ckptcost.first.tui.widgets.bottom import Status
from ckptcost.first.tui.widgets.listing import Listing
from ckptcost.first.tui.widgets.rows import Rows

SIZES = {SMALL: "80x24", USUAL: "120x36"}
CATALOG = Catalog()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def _app(desk=None) -> CkptcostApp:
    return CkptcostApp(desk or Desk(CATALOG), start="report")


def _screen(pilot) -> ReportScreen:
    found = next(screen for screen in pilot.app.screen_stack if isinstance(screen, ReportScreen))
    assert isinstance(found, ReportScreen)
    return found


def _text(pilot) -> str:
    return "".join(f"{line}\n" for line in _screen(pilot).query_one(Listing).lines)


def _status(pilot) -> str:
    return _screen(pilot).query_one(Status).said


def _name(pilot) -> Input:
    return _screen(pilot).query_one("#report-name", Input)


@pytest.mark.parametrize("size", SIZES)
def test_looks(drive, snapshot, size):
    async def script(pilot):
        snapshot(pilot.app, f"report_{SIZES[size]}_normal")
        await pilot.press("f", "f")
        await settled(pilot)
        snapshot(pilot.app, f"report_{SIZES[size]}_json")
        _screen(pilot).change(pilot.app.desk.edited("cluster.gpus", "many"))
        await settled(pilot)
        snapshot(pilot.app, f"report_{SIZES[size]}_error")

    drive(_app(), script, size)


def test_the_text_is_what_the_shown_command_prints(drive, cli):
    async def script(pilot):
        seen = []
        await pilot.press("f", "f", "f", "down")  # CSV of the best interval
        await settled(pilot)
        seen.append((_screen(pilot).command_line(), _text(pilot)))
        await pilot.press("t")
        await settled(pilot)
        seen.append((_screen(pilot).command_line(), _text(pilot)))
        await pilot.press("f", "up")
        await settled(pilot)
        seen.append((_screen(pilot).command_line(), _text(pilot)))
        return seen

    seen = drive(_app(Desk(CATALOG).edited("cluster.gpus", "512")), script)
    assert [command.split()[1] for command, _ in seen] == ["optimize", "optimize", "model"]
    assert "--table" in seen[1][0]
    for command, text in seen:
        assert cli(*shlex.split(command)[1:]).out.replace("\r\n", "\n") == text


def test_another_scenario_is_reported_at_once_and_the_place_is_kept(drive):
    async def script(pilot):
        listing = _screen(pilot).query_one(Listing)
        listing.scroll_to(y=20, animate=False)
        _screen(pilot).change(pilot.app.desk.edited("cluster.gpus", "512"))
        await settled(pilot)
        assert listing.scroll_offset.y == 20
        assert "--set cluster.gpus=512" in _screen(pilot).command_line()
        assert [row.key for row in _screen(pilot).query_one(Rows).grid.rows][-1] == "changes"
        await pilot.press("f")
        await settled(pilot)
        assert listing.scroll_offset.y == 0

    drive(_app(), script)


def test_an_answer_is_found_once_for_all_its_formats(drive, monkeypatch):
    asked = []
    found = report.answered

    def answered(desk, subject, stopped):
        asked.append((subject, tuple(desk.edits)))
        return found(desk, subject)

    monkeypatch.setattr(report, "answered", answered)

    async def script(pilot):
        for key in ("f", "f", "down", "up"):
            await pilot.press(key)
            await settled(pilot)
        _screen(pilot).change(pilot.app.desk.edited("cluster.gpus", "512"))
        await settled(pilot)
        _screen(pilot).change(pilot.app.desk.plain())
        await settled(pilot)

    drive(_app(), script)
    assert asked == [
        ("model", ()),
        ("optimize", ()),
        ("model", ("cluster.gpus",)),
    ]


def test_a_slow_answer_leaves_the_screen_alive_and_a_newer_one_wins(drive, monkeypatch):
    gate, found = threading.Event(), report.answered

    def answered(desk, subject, stopped):
        if subject == "optimize":
            assert gate.wait(20)
        return found(desk, subject)

    monkeypatch.setattr(report, "answered", answered)

    async def script(pilot):
        await pilot.press("down")
        await pilot.pause()
        panel = _screen(pilot).query_one("#report-preview")
        assert panel.border_subtitle == "working .."
        await pilot.press("up")
        while panel.border_subtitle == "working ..":
            await pilot.pause()
        gate.set()
        await settled(pilot)
        assert _screen(pilot).command_line().startswith("ckptcost model")
        assert panel.border_subtitle.startswith("text, ")

    drive(_app(), script)


def test_it_is_written_and_asked_before_it_is_replaced(drive, here):
    async def script(pilot):
        await pilot.press("f", "w")
        await settled(pilot)
        file = here / "gpt4-scale-2tb-model.md"
        text = _text(pilot)
        assert file.read_text("utf-8") == text
        assert "wrote gpt4-scale-2tb-model.md, " in _status(pilot)
        assert (
            str(_screen(pilot).query_one("#report-standing", Static).render()) == "exists: will ask"
        )
        file.write_text("mine")
        await pilot.press("w")
        assert isinstance(pilot.app.screen, Confirm)
        await pilot.press("n")
        await settled(pilot)
        assert file.read_text() == "mine"
        await pilot.press("w", "y")
        await settled(pilot)
        assert file.read_text("utf-8") == text

    drive(_app(), script)


def test_a_name_of_ones_own_stays_and_only_its_ending_follows(drive):
    async def script(pilot):
        seen = [_name(pilot).value]
        await pilot.press("down")
        await settled(pilot)
        seen.append(_name(pilot).value)
        await pilot.press("n")
        assert pilot.app.focused is _name(pilot)
        _name(pilot).value = "mine.txt"
        await pilot.press("escape", "f")
        await settled(pilot)
        seen.append(_name(pilot).value)
        return seen

    assert drive(_app(), script) == [
        "gpt4-scale-2tb-model.txt",
        "gpt4-scale-2tb-optimize.txt",
        "mine.md",
    ]


def test_why_it_could_not_be_written_is_one_line(drive, here, monkeypatch):
    def full(pieces, target):
        raise OSError(28, "No space left on device")

    async def script(pilot):
        _name(pilot).value = "gone/out.txt"
        await pilot.pause()
        assert (
            str(_screen(pilot).query_one("#report-standing", Static).render()) == "no folder gone"
        )
        await pilot.press("w")
        await settled(pilot)
        assert "No such file or directory" in _status(pilot)
        monkeypatch.setattr(files, "write_whole", full)
        _name(pilot).value = "out.txt"
        await pilot.press("w")
        await settled(pilot)
        assert "No space left on device" in _status(pilot)
        assert not list(here.iterdir())

    drive(_app(), script)


def test_recorded_runs_are_listed_and_told(drive, cli, tmp_path):
    recorded(tmp_path / "kept" / "one", seconds=20)

    async def script(pilot):
        await pilot.press("end")
        await settled(pilot)
        assert _screen(pilot).command_line() == "ckptcost report one --full"
        return _text(pilot)

    assert drive(_app(), script) == cli("report", "one", "--full").out


def test_a_wrong_scenario_says_why_and_nothing_can_be_written(drive, here):
    async def script(pilot):
        assert "There is nothing to report" in screen_text(pilot.app)
        assert _screen(pilot).exported() is None
        assert _screen(pilot).table() is None
        await pilot.press("w")
        assert "nothing to write yet" in _status(pilot)
        _screen(pilot).change(pilot.app.desk.plain())
        await settled(pilot)
        assert _screen(pilot).command_line().startswith("ckptcost model")
        assert _screen(pilot).exported() is not None

    drive(_app(Desk(CATALOG).edited("cluster.gpus", "many")), script)
    assert not list(here.iterdir())


def test_a_comparison_of_some_tiers_says_so(drive):
    many = (
        "nas-hdd",
        "generic-pfs",
        "ddn-exascaler-20",
        "ddn-exascaler-40",
        "flash-shared",
        "micron-9550",
        "local-nvme",
        "node-ram",
    )

    async def script(pilot):
        _screen(pilot).query_one("#report-what", Rows).select("tiers")
        await settled(pilot)
        assert "Preview: 6 of 8 tiers" in screen_text(pilot.app)
        assert "left out: local-nvme, node-ram" in _status(pilot)
        _screen(pilot).change(replace(pilot.app.desk, tiers=many[1:4]))
        await settled(pilot)
        assert "of 8 tiers" not in screen_text(pilot.app)
        assert "tier.id=nas-hdd" not in _screen(pilot).command_line()
        assert _status(pilot).strip() == ""

    drive(_app(Desk(CATALOG, tiers=many)), script, SMALL)


def test_a_rewritten_scenario_or_tier_is_reported_anew(drive, tmp_path, monkeypatch):
    job, mine = tmp_path / "job.toml", tmp_path / "own" / "models" / "tiers" / "mine.toml"
    mine.parent.mkdir(parents=True)
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "own"))
    (tmp_path / "below.toml").write_text('extends = "gpt4-scale-2tb"\n')
    job.write_text('extends = "below.toml"\n')

    def write(rate):
        mine.write_text(
            f'id = "mine"\nname = "Measured here"\nwrite = "{rate}"\nbasis = "measured"\nsource ='
            ' "house"\n'
        )

    write("2 GB/s")
    app = _app(Desk(Catalog(), base=str(job), tiers=("mine",)))

    async def script(pilot):
        assert "1,000 s" in _text(pilot)
        write("40 GB/s")
        _screen(pilot).change(calibrate_fit.fresh(pilot.app.desk))
        await settled(pilot)
        assert "2 GB/s" not in _text(pilot)
        assert "55 s" in _text(pilot)
        assert "1,024 x" in _text(pilot)
        (tmp_path / "below.toml").write_text('extends = "gpt4-scale-2tb"\n[cluster]\ngpus = 512\n')
        await pilot.press("down", "up")
        await settled(pilot)
        assert "512 x" in _text(pilot)

    drive(app, script)
