"""Claims on the screen: the same verdicts, in the same words, as the command line prints."""

from __future__ import annotations

import csv
import io

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError
from ckptcost.first.tui.screens import audit

CATALOG = Catalog()
SHEETS = tuple(CATALOG.ids("claim"))
OWN = '[[claim]]\nabout = "NAS"\nsize = "exactly 2 TB"\nwrite = "200 MB/s"\ntime = "about 17 min"\n'


def _printed(cli, *words):
    done = cli(*words, "-f", "csv")
    assert done.code == 0
    return list(csv.DictReader(io.StringIO(done.out)))


def _contradictions(opened):
    rows = opened.tables[0].rows
    return [str(place) for place, row in enumerate(rows) if row["verdict"] == "inconsistent"]


@pytest.mark.parametrize("name", SHEETS)
def test_each_row_has_something_to_say_and_contradictions_say_the_commands_sentence(cli, name):
    seen = audit.open_sheet(CATALOG, name)
    printed = " ".join(cli("audit", name, "--full").out.split())
    for place, table in enumerate(seen.tables):
        assert all(audit.detail(seen, place, str(row)) for row in range(len(table.rows)))
    for key in _contradictions(seen):
        assert next(text for text, tone in audit.detail(seen, 0, key) if tone == "bad") in printed


def test_a_claim_is_told_with_its_arithmetic_and_what_else_is_said_of_it():
    seen = audit.open_sheet(CATALOG, "ddn-2025")
    heading, *lines = audit.detail(seen, 0, _contradictions(seen)[0])
    assert heading == ("Traditional NAS, total_energy", "base")
    assert ("arithmetic: saves * energy = 100 * (15 to 20 kWh) = 1.5 to 2 MWh", "") in lines
    beside = [text for text, tone in lines if tone == "muted"]
    assert any(text.startswith("Traditional NAS, energy: stated 15 to 20 kWh;") for text in beside)


def test_the_list_counts_as_the_command_does(cli):
    grid, refused = audit.sheets(CATALOG)
    printed = _printed(cli, "audit")
    assert [row.cells for row in grid.rows[:-1]] == [
        (row["id"], row["consistent"], row["inconsistent"], row["not_derivable"]) for row in printed
    ]
    assert grid.rows[-1].key == audit.VOCABULARY
    assert refused == []


def test_a_file_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my sheet.toml").write_text(OWN)
    seen = audit.open_sheet(CATALOG, "my sheet.toml")
    assert [seen.tables[0].rows[int(key)]["claim"] for key in _contradictions(seen)] == ["nas.time"]
    grid, refused = audit.sheets(CATALOG, ["my sheet.toml", "gone.toml"])
    assert [row.cells[1:] for row in grid.rows if row.key.endswith(".toml")] == [("0", "1", "0")]
    assert len(refused) == 1
    assert "gone.toml" in refused[0]


def test_home_is_written_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.toml").write_text(OWN)
    assert len(_contradictions(audit.open_sheet(CATALOG, "~/own.toml"))) == 1


@pytest.mark.parametrize("text", ["", "[[claim]]\nabout = 3\n", "not toml"])
def test_a_wrong_file_says_where(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"bad\.toml"):
        audit.open_sheet(CATALOG, str(path))


def test_the_words_and_the_laws():
    seen = audit.open_sheet(CATALOG, audit.VOCABULARY)
    words, laws = seen.tables
    place = str([row["key"] for row in words.rows].index("write"))
    assert audit.detail(seen, 0, place)[0] == ("write", "base")
    told = [audit.detail(seen, 1, str(place)) for place in range(len(laws.rows))]
    assert any(("formula: write = size / time", "") in lines for lines in told)
