"""Areas: what stands in each cell, with colours, without, and in letters."""

from __future__ import annotations

from math import nan

import pytest

from ckptcost.first.present.chart import Band, Chart, Curve, Level, Traces
from ckptcost.first.tui.draw.canvas import Look
from ckptcost.first.tui.draw.stack import draw_traces

USUAL = Look()
XS = [float(n) for n in range(-39, 1)]


def power(gpus: list[float], both: list[float], **more) -> Traces:
    chart = Chart(
        "Power",
        [Curve("GPU", XS, gpus), Curve("host", XS, both)],
        y_range=(0.0, 8.0),
        filled="stack",
        main=True,
        **more,
    )
    return Traces([chart], (-39.0, 0.0), [Band(-20.0, -11.0, "#1")])


def cells(traces: Traces, look: Look = USUAL, height: int = 10) -> list[list[tuple[str, str, str]]]:
    """Of each row, every cell: letter, ink, ground."""
    lines = draw_traces(traces, 46, height, look).lines
    return [
        [(letter, ink, ground) for text, ink, ground in line for letter in text] for line in lines
    ]


def test_an_area_lies_on_the_other_and_glows_in_a_checkpoint():
    rows = cells(power([4.0] * 40, [6.0] * 40))[1:9]
    column = [row[40] for row in rows]
    assert [letter for letter, _, _ in column] == [" "] * 2 + ["\u2588"] * 6
    assert [ink for letter, ink, _ in column if letter != " "] == ["fill-2"] * 2 + ["series-1"] * 4
    glowing = [row[28] for row in rows]
    assert {ground for letter, _, ground in glowing if letter == " "} == {"band-save"}
    assert [ink for letter, ink, _ in glowing[2:]] == ["glow-2"] * 2 + ["series-2"] * 4
    assert "#1" in "".join(letter for letter, _, _ in rows[0])


def test_a_border_within_a_cell_has_both_colours():
    rows = cells(power([3.5] * 40, [6.0] * 40))[1:9]
    assert rows[4][40] == ("\u2584", "series-1", "fill-2")
    assert rows[4][28] == ("\u2584", "series-2", "glow-2")


@pytest.mark.parametrize(
    ("look", "written", "read"),
    [(USUAL, "series-3", "series-4"), (Look(shaded=True), "\u2588", "\u2592")],
)
def test_what_is_read_lies_on_what_is_written(look, written, read):
    """Beside the power chart, or alone: a job that loads its data while it saves."""
    chart = Chart(
        "Storage",
        [Curve("write", XS, [3.25] * 40), Curve("read", XS, [6.0] * 40)],
        y_range=(0.0, 8.0),
        filled="stack",
    )
    rows = cells(Traces([chart], (-39.0, 0.0), [Band(-20.0, -11.0, "#1")]), look)[:9]
    for column in (28, 40):  # in a checkpoint, and after it
        drawn = [row[column][1 if look is USUAL else 0] for row in rows[3:9]]
        assert drawn == [read] * 3 + [written] * 3
    assert "write" in "".join(letter for letter, _, _ in rows[0])
    assert "read" in "".join(letter for letter, _, _ in rows[0])


def test_what_is_not_known_is_open_and_no_zero_line():
    gap = [4.0] * 20 + [nan] * 10 + [4.0] * 10
    rows = cells(power(gap, gap))[1:9]
    assert {row[33][0] for row in rows} == {" "}
    assert rows[7][42][0] == "\u2588"


@pytest.mark.parametrize(
    ("look", "gpu", "host", "shade"),
    [(Look(shaded=True), "\u2588", "\u2592", "\u2591"), (Look(plain=True), "#", "=", ":")],
)
def test_without_colours_the_areas_differ_in_their_letters(look, gpu, host, shade):
    rows = cells(power([4.0] * 40, [6.0] * 40), look)[1:9]
    assert [row[40][0] for row in rows] == [" "] * 2 + [host] * 2 + [gpu] * 4
    assert rows[1][28][0] == shade
    assert {ground for row in rows for _, _, ground in row} == {""}


def test_a_level_is_a_line_across_and_named_at_the_axis():
    traces = power([4.0] * 40, [6.0] * 40, level=Level(2.0, "idle 2"))
    rows = ["".join(letter for letter, _, _ in row) for row in cells(traces)]
    assert "idle 2" in rows[0]
    line = next(row for row in rows if row.lstrip().startswith("idle"))
    assert set(line.split("\u2524")[1]) == {"\u2587"}


def test_many_areas_have_a_colour_and_a_height_each_or_are_lines():
    each = [Curve(f"GPU {n}", XS, [5.0] * 40) for n in range(8)]
    chart = Chart("Each", each, y_range=(0.0, 8.0), filled="each", main=True)
    rows = cells(Traces([chart], (-39.0, 0.0)), height=20)[1:17]
    inks = [next(ink for letter, ink, _ in row[8:] if letter != " ") for row in rows[1::2]]
    assert inks == [f"series-{n}" for n in range(1, 9)]
    few = cells(Traces([chart], (-39.0, 0.0)), height=9)
    drawn = {letter for row in few[1:7] for letter, _, _ in row[8:]}
    assert any("\u2800" < letter <= "\u28ff" for letter in drawn)  # no title without its plot
