"""Mode 7: sheets, verdicts, and what is said on a claim."""

from __future__ import annotations

import pytest
from screening import SMALL, USUAL, screen_text, settled
from textual.widgets import Input

from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.screens.audit import AuditScreen
from ckptcost.first.tui.widgets.bottom import Status
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows

SIZES = {SMALL: "80x24", USUAL: "120x36"}


def _rows(pilot) -> Rows:
    return pilot.app.screen.query_one("#table", Rows)


def _sheets(pilot) -> Rows:
    return pilot.app.screen.query_one("#audit-sheets", Rows)


async def _open(pilot, name: str) -> None:
    await pilot.press("o")
    pilot.app.screen.query_one(Input).value = name
    await pilot.press("enter")


def _status(pilot) -> str:
    return pilot.app.screen.query_one(Status).said


@pytest.mark.parametrize("size", SIZES)
def test_looks(drive, snapshot, size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text("[[claim]]\nabout = 3\n")

    async def script(pilot):
        snapshot(pilot.app, f"audit_{SIZES[size]}_normal")
        await pilot.press("n")
        await settled(pilot)
        snapshot(pilot.app, f"audit_{SIZES[size]}_claim")
        await _open(pilot, "own.toml")
        await settled(pilot)
        snapshot(pilot.app, f"audit_{SIZES[size]}_error")

    drive(CkptcostApp(start="audit"), script, size)


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 36), (200, 50)])
def test_the_verdict_is_seen_at_every_size(drive, size):
    async def script(pilot):
        await settled(pilot)
        assert "inconsistent " in screen_text(pilot.app)

    drive(CkptcostApp(start="audit"), script, size)


def test_another_sheet_is_audited_when_the_cursor_is_on_it(drive):
    async def script(pilot):
        screen = pilot.app.screen
        assert isinstance(screen, AuditScreen)
        await pilot.press("down")
        await settled(pilot)
        assert screen.command_line() == "ckptcost audit micron-2026"
        tones = {row.cells[3]: row.tone for row in _rows(pilot).grid.rows}
        assert tones == {"consistent": "good", "inconsistent": "bad", "not derivable": "muted"}
        assert len({row.key for row in _rows(pilot).grid.rows}) == len(_rows(pilot).grid.rows)
        assert screen.exported().title == "Micron talk, April 2026"
        await pilot.press("up", "up", "down")  # quickly past others
        await settled(pilot)
        assert screen.command_line() == "ckptcost audit ddn-2025"
        assert screen.table() is _sheets(pilot).grid
        await pilot.press("enter")
        await settled(pilot)
        assert screen.table() is _rows(pilot).grid

    drive(CkptcostApp(start="audit"), script)


def test_the_next_contradiction_goes_round(drive):
    async def script(pilot):
        seen = []
        for _ in range(3):
            await pilot.press("n")
            await settled(pilot)
            seen.append(_rows(pilot).grid.rows[int(_rows(pilot).key)].cells[0])
        note = pilot.app.screen.query_one("#said", Note)
        assert note.lines[0] == "Traditional NAS, total_energy"
        _sheets(pilot).focus()
        _sheets(pilot).select("ddn-2024")
        await settled(pilot)
        await pilot.press("n")
        assert "nothing in this sheet contradicts" in _status(pilot)
        return seen

    assert drive(CkptcostApp(start="audit"), script) == [
        "nas.total_energy",
        "nas.stall_share",
        "nas.total_energy",
    ]


def test_the_claim_is_told_while_its_table_has_the_focus_else_the_sheet(drive):
    async def script(pilot):
        note = pilot.app.screen.query_one("#said", Note)
        assert note.lines[0].startswith("- 9 consistent, 2 inconsistent")
        await pilot.press("enter", "down")
        await settled(pilot)
        assert note.lines[0] == "Traditional NAS, total_energy"
        _rows(pilot).sort("claim", down=True)
        await pilot.press(
            "s", "s", "s", "s", "s", "s"
        )  # says and implies, both ways, then the verdict, both ways
        await settled(pilot)
        assert _rows(pilot).sorting == ("verdict", True)
        assert [row.cells[3] for row in _rows(pilot).grid.rows[:4]] == [
            "not derivable",
            "inconsistent",
            "inconsistent",
            "consistent",
        ]
        _sheets(pilot).focus()
        await settled(pilot)
        assert note.lines[0].startswith("- 9 consistent")

    drive(CkptcostApp(start="audit"), script)


def test_a_file_of_ones_own_joins_the_list_and_is_read_anew(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sheet = tmp_path / "own.toml"
    text = '[[claim]]\nabout = "NAS"\nsize = "exactly 2 TB"\nwrite = "200 MB/s"\ntime = "{}"\n'
    sheet.write_text(text.format("about 17 min"))

    async def script(pilot):
        await _open(pilot, "own.toml")
        await settled(pilot)
        screen = pilot.app.screen
        assert screen.command_line() == "ckptcost audit own.toml"
        assert _sheets(pilot).key == "own.toml"
        assert [row.tone for row in _rows(pilot).grid.rows] == ["bad"]
        sheet.write_text(text.format("about 2.8 h"))
        _sheets(pilot).focus()
        await pilot.press("up")
        await settled(pilot)
        await pilot.press("down")
        await settled(pilot)
        assert screen.command_line() == "ckptcost audit own.toml"
        assert [row.tone for row in _rows(pilot).grid.rows] == ["good"]

    drive(CkptcostApp(start="audit"), script)


def test_a_wrong_file_is_said_in_one_line_and_the_rest_stays(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        before = _rows(pilot).grid
        await _open(pilot, "gone.toml")
        await settled(pilot)
        assert "gone.toml" in _status(pilot)
        assert pilot.app.screen.query_one(Input).value == "gone.toml"  # to be put right
        assert _rows(pilot).grid is before
        assert pilot.app.screen.command_line() == "ckptcost audit ddn-2025"

    drive(CkptcostApp(start="audit"), script)


def test_the_vocabulary(drive):
    async def script(pilot):
        await pilot.press("end")
        await settled(pilot)
        assert pilot.app.screen.command_line() == "ckptcost audit --vocabulary"
        assert "bytes of one checkpoint" in screen_text(pilot.app)

    drive(CkptcostApp(start="audit"), script)
