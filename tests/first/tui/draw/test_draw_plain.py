"""Curves in letters."""

from __future__ import annotations

from ckptcost.first.present.chart import Curve
from ckptcost.first.tui.draw.points import points_of
from ckptcost.first.tui.draw.raster import dots_of_cell, plain
from ckptcost.first.tui.draw.scale import Scale
from ckptcost.first.tui.draw.spans import spans


def drawn(curves: list[Curve], width: int, height: int, marks: str = "") -> str:
    x, y = Scale(0.0, 10.0), Scale(0.0, 10.0)
    across, down = dots_of_cell(plain=True)
    found = spans(points_of(curves), x, y, width * across, height * down)
    return "\n".join(line.rstrip() for line in plain(found, len(curves), width, height, marks)[0])


def test_one_curve_has_thirds_of_a_line():
    assert drawn([Curve("", [0, 10], [0, 10])], 9, 3) == "      .-'\n   .-'\n.-'"
    assert drawn([Curve("", [0, 4.9, 5.1, 10], [2, 2, 8, 8])], 9, 3) == "    .....\n    |\n'''''"


def test_several_have_a_mark_each():
    assert (
        drawn([Curve("", [0, 10], [5, 5]), Curve("", [0, 10], [0, 10])], 9, 3, "*+")
        == "      +++\n*********\n+++"
    )
