"""Claims on the screen: the same verdicts, in the same words, as the command line prints."""

from __future__ import annotations

import csv
import io

import pytest

from ckptcost.catalog.store import Catalog
from ckptcost.errors import InputError
from ckptcost.tui.screens import claims

CATALOG = Catalog()
SHEETS = tuple(CATALOG.ids("claim"))
OWN = '[[claim]]\nabout = "NAS"\nsize = "exactly 2 TB"\nwrite = "200 MB/s"\ntime = "about 17 min"\n'


def _printed(cli, *words):
    done = cli(*words, "-f", "csv")
    assert done.code == 0
    return list(csv.DictReader(io.StringIO(done.out)))


@pytest.mark.parametrize("name", SHEETS)
def test_verdicts_are_those_of_the_command_line(cli, name):
    seen = claims.open_sheet(CATALOG, name)
    assert len(seen.tables) == len(seen.grids)
    for table, grid in zip(seen.tables, seen.grids, strict=True):
        columns = [column for column in table.columns if column.shown]
        assert [
            tuple(row[column.id].lstrip("'") or "-" for column in columns)
            for row in _printed(cli, "audit", name, "--table", table.id)
        ] == [tuple(_as_csv(cell) for cell in row.cells) for row in grid.rows]
    assert {table.id for table in seen.tables} <= {"verdicts", "follows", "readings"}
    assert claims.command(name) == f"ckptcost audit {name}"


def _as_csv(cell):
    return {"yes": "true", "no": "false"}.get(cell, cell)


@pytest.mark.parametrize("name", SHEETS)
def test_each_row_has_something_to_say_and_contradictions_say_the_commands_sentence(cli, name):
    seen = claims.open_sheet(CATALOG, name)
    printed = " ".join(cli("audit", name, "--full").out.split())
    for place, grid in enumerate(seen.grids):
        assert all(seen.detail(place, row.key) for row in grid.rows)
    for key in seen.contradictions:
        assert next(text for text, tone in seen.detail(0, key) if tone == "bad") in printed


def test_tones_stand_beside_words():
    seen = claims.open_sheet(CATALOG, "ddn-2025")
    assert {(row.cells[3], row.tone) for row in seen.grids[0].rows} == {
        ("consistent", "good"),
        ("inconsistent", "bad"),
        ("not derivable", "muted"),
    }
    assert {(row.cells[3], row.tone) for row in seen.grids[2].rows} == {
        ("yes", "good"),
        ("no", "muted"),
    }
    rows = {row.key: row.cells[0] for row in seen.grids[0].rows}
    assert [rows[key] for key in seen.contradictions] == ["nas.total_energy", "nas.stall_share"]
    assert seen.summary == "9 consistent, 2 inconsistent, 1 not derivable"


def test_a_claim_is_told_with_its_arithmetic_and_what_else_is_said_of_it():
    seen = claims.open_sheet(CATALOG, "ddn-2025")
    heading, *lines = seen.detail(0, seen.contradictions[0])
    assert heading == ("Traditional NAS, total_energy", "base")
    told = dict(lines)
    assert told["saves * energy = 100 * (15 to 20 kWh) = 1.5 to 2 MWh"] == ""
    beside = [text for text, tone in lines if tone == "muted"]
    assert any(text.startswith("Traditional NAS, energy: stated 15 to 20 kWh;") for text in beside)
    assert any(text.startswith("Source: DDN: ") for text, _ in seen.about)


def test_a_claim_judged_by_two_laws_keeps_both_rows():
    rows = claims.open_sheet(CATALOG, "micron-2026").grids[0].rows
    assert len(rows) == len({row.key for row in rows})
    assert sum(row.cells[0] == "model.saves_per_day" for row in rows) == 2


def test_the_list_counts_as_the_command_does(cli):
    seen = claims.sheets(CATALOG)
    printed = _printed(cli, "audit")
    assert [row.cells for row in seen.grid.rows[:-1]] == [
        (row["id"], row["consistent"], row["inconsistent"], row["not_derivable"]) for row in printed
    ]
    assert seen.grid.rows[-1].key == claims.VOCABULARY
    assert claims.command("") == "ckptcost audit"


def test_a_file_of_ones_own(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my sheet.toml").write_text(OWN)
    seen = claims.open_sheet(CATALOG, "my sheet.toml")
    assert [seen.grids[0].rows[int(key)].cells[0] for key in seen.contradictions] == ["nas.time"]
    assert claims.command(seen.name) == "ckptcost audit 'my sheet.toml'"
    assert [row.cells[3] for row in seen.grids[0].rows] == [
        row["verdict"] for row in _printed(cli, "audit", "my sheet.toml")
    ]
    listed = claims.sheets(CATALOG, ["my sheet.toml", "gone.toml"])
    assert [(row.key, row.cells) for row in listed.grid.rows if row.key.endswith(".toml")] == [
        ("my sheet.toml", ("my sheet.toml", "0", "1", "0"))
    ]
    assert [tone for _, tone in listed.refused] == ["bad"]
    assert "gone.toml" in listed.refused[0][0]


def test_home_is_written_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.toml").write_text(OWN)
    assert len(claims.open_sheet(CATALOG, "~/own.toml").contradictions) == 1


@pytest.mark.parametrize("text", ["", "[[claim]]\nabout = 3\n", "not toml"])
def test_a_wrong_file_says_where(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"bad\.toml"):
        claims.open_sheet(CATALOG, str(path))


def test_the_words_and_the_laws_of_each(cli):
    seen = claims.open_sheet(CATALOG, claims.VOCABULARY)
    printed = _printed(cli, "audit", "--vocabulary")
    assert [row.cells for row in seen.grids[0].rows] == [
        (row["key"], row["example"], row["meaning"]) for row in printed
    ]
    keys = {row.cells[0]: row.key for row in seen.grids[0].rows}
    heading, *laws = seen.detail(0, keys["write"])
    assert heading == ("Laws with write", "base")
    assert ("write = size / time", "") in laws
    stalled = [text for text, _ in seen.detail(0, keys["stall_share"])]
    assert any("  (assumes training waits" in text for text in stalled)
    assert all("write" in text for text, _ in laws)
    assert claims.command(seen.name) == "ckptcost audit --vocabulary"
