"""A study on a screen says what the text report says."""

from __future__ import annotations

import re
from math import nan

import pytest

from ckptcost.first.present.grid import Grid, GridHead, Row, sorted_by
from ckptcost.first.questions.optimize import optimize
from ckptcost.first.questions.sensitivity import sensitivity
from ckptcost.first.questions.solve import solve
from ckptcost.first.report.study import Column, Study, Table, shown_cells
from ckptcost.first.report.study_views import text
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.study_grids import grid_of, paragraphs, tables_of, with_columns

COLUMNS = (
    Column("name", "name"),
    Column("seen", "seen", "bool"),
    Column("took", "took", "s"),
    Column("raw", "raw", "1", shown=False),
)
TABLE = Table(
    "t",
    "Title",
    COLUMNS,
    [
        {"name": "b", "seen": True, "took": 100.0},
        {"name": "a", "seen": False, "took": 9.0},
        {"name": "b", "seen": True, "took": None},
    ],
    "a note",
)


def test_cells_labels_and_sides() -> None:
    grid = grid_of(TABLE)
    assert [(head.id, head.left) for head in grid.heads] == [
        ("name", True),
        ("seen", True),
        ("took", False),
    ]
    assert [row.cells for row in grid.rows] == [
        ("b", "yes", "100 s"),
        ("a", "no", "9 s"),
        ("b", "yes", "-"),
    ]
    assert (grid.title, grid.note) == ("Title", "a note")


def test_rows_have_names_of_their_own() -> None:
    assert [row.key for row in grid_of(TABLE).rows] == ["b / yes", "a / no", "b / yes #2"]
    assert [row.key for row in grid_of(TABLE, ["1", "2", "3"]).rows] == ["1", "2", "3"]


def test_numbers_sort_as_numbers_and_unknown_stands_last() -> None:
    grid = grid_of(TABLE)
    assert [row.cells[2] for row in sorted_by(grid, "took").rows] == ["9 s", "100 s", "-"]
    assert [row.cells[2] for row in sorted_by(grid, "took", down=True).rows] == [
        "100 s",
        "9 s",
        "-",
    ]


def test_the_first_two_columns_stay_and_later_ones_give_way_first() -> None:
    assert [head.rank for head in grid_of(TABLE).heads] == [0, 0, 2]


def test_every_cell_of_a_real_study_is_the_text_reports() -> None:
    desk = Desk()
    study = optimize(desk.base, tier=desk.tiers_shown(), check=0).study
    for table in study.tables:
        grid = grid_of(table)
        labels, cells, _ = shown_cells(table)
        assert [head.label for head in grid.heads] == labels
        assert [list(row.cells) for row in grid.rows] == cells
        assert len({row.key for row in grid.rows}) == len(grid.rows)
        for head in grid.heads:
            sorted_by(grid, head.id)  # no column mixes what cannot be compared
    assert [grid.title for grid in tables_of(study)] == [
        table.title for table in study.tables if table.shown and table.rows
    ]


@pytest.mark.parametrize("what", ["sensitivity", "solve", "gates"])
def test_paragraphs_are_those_of_the_text_report_in_its_order(what: str) -> None:
    study = {
        "sensitivity": lambda: sensitivity(of="kwh"),
        "solve": lambda: solve("write", "goodput>=0.8"),
        "gates": lambda: optimize(require="goodput>=0.99999", check=0),
    }[what]().study
    told = paragraphs(study)
    whole = _flat(text(study))
    places = [whole.index(_flat(line)) for line, _ in told]
    assert told
    assert places == sorted(places)


def test_tones_say_met_and_missed() -> None:
    gates = ["goodput>=0.99999", "goodput>=0.0001"]
    told = paragraphs(optimize(require=gates, check=0).study)
    by_start = {line.partition(":")[0]: tone for line, tone in told if tone in ("good", "bad")}
    assert by_start == {"MISSED": "bad", "met": "good"}


def test_a_simulation_says_so_first() -> None:
    study = Study("k", "t", ["asked"], {}, [], ["found"], [("CODE", "Look out.")], simulated=True)
    assert [tone for _, tone in paragraphs(study)] == ["warn", "muted", "", "warn"]
    assert paragraphs(study)[0][0].startswith("SIMULATED")
    assert paragraphs(study)[-1][0] == "Look out. (CODE)"


def _flat(words: str) -> str:
    """Without the breaks and dashes of the page."""
    return re.sub(r"\s+", "", words.replace("\n- ", "\n"))


def test_columns_are_chosen_by_id_and_rows_told_apart_by_tone_and_mark() -> None:
    chosen = with_columns(
        TABLE, {"name": "who", "raw": "raw", "more": "own"}, Column("more", "", "1")
    )
    assert [(c.id, c.label, c.shown) for c in chosen.columns] == [
        ("name", "who", True),
        ("raw", "raw", True),
        ("more", "own", True),
    ]
    grid = grid_of(
        TABLE, ["1", "2", "3"], lambda row: "best" if row["seen"] else "", ("took",), "2"
    )
    assert [(row.tone, row.marked) for row in grid.rows] == [
        ("best", False),
        ("", True),
        ("best", False),
    ]
    assert [head.rank for head in grid.heads] == [0, 0, 0]


@pytest.mark.parametrize(
    ("values", "up", "down"),
    [
        ((nan, 2.0, nan, 1.0, 3.0), [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]),
        ((2.0, "b", 1.0, "a"), [1.0, 2.0, "a", "b"], ["b", "a", 2.0, 1.0]),
    ],
)
def test_words_turn_round_with_numbers_and_what_is_no_number_stands_last(values, up, down):
    rows = [Row(str(n), (str(value),), (value,)) for n, value in enumerate(values)]
    last = [str(n) for n, value in enumerate(values) if value != value]
    for turned, wanted in ((False, up), (True, down)):
        found = sorted_by(Grid((GridHead("n", "n"),), rows), "n", turned).rows
        known = [str(values.index(value)) for value in wanted]
        assert [row.key for row in found] == [*known, *last]
