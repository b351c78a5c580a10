"""Curves in dots: what they look like, that peaks stay, that gaps stay, that a line is a line."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.present.chart import Curve
from ckptcost.first.tui.draw.points import points_of
from ckptcost.first.tui.draw.raster import braille
from ckptcost.first.tui.draw.scale import Scale
from ckptcost.first.tui.draw.spans import spans

NAN = math.nan
Y = Scale(0.0, 10.0)


def painted(
    curve: Curve, x: Scale, y: Scale, columns: int, rows: int
) -> dict[int, list[tuple[int, int]]]:
    """Column to the spans in it."""
    found = defaultdict(list)
    for _, column, top, bottom in zip(*spans(points_of([curve]), x, y, columns, rows), strict=True):
        found[int(column)].append((int(top), int(bottom)))
    return dict(found)


def drawn(curve: Curve, x: Scale, y: Scale, width: int, height: int) -> str:
    lines, _ = braille(spans(points_of([curve]), x, y, width * 2, height * 4), 1, width, height)
    return "\n".join(line.rstrip() for line in lines)


def row_of(value: float, y: Scale, rows: int) -> int:
    return math.floor((1 - y.at(value)) * (rows - 1) + 0.5)


def test_a_slope_is_one_dot_thick():
    assert drawn(Curve("", [0, 10], [0, 10]), Scale(0, 10), Y, 6, 3) == "    ⡠⠊\n  ⡠⠊\n⡠⠊"


def test_a_step_is_upright_in_one_column():
    xs = [float(i) for i in range(12)]
    assert drawn(Curve("", xs, [0.0] * 6 + [10.0] * 6), Scale(0, 11), Y, 6, 2) == "   ⡏⠉⠉\n⣀⣀⣀⠇"


def test_a_gap_is_never_joined_over():
    xs = [float(i) for i in range(16)]
    ys = [5.0] * 4 + [NAN] * 6 + [5.0] * 6
    assert drawn(Curve("", xs, ys), Scale(0, 15), Y, 8, 1) == "⠤⠤   ⠤⠤⠤"


def test_a_gap_within_a_column_parts_what_is_above_from_what_is_below():
    xs = [i / 100 for i in range(300)]
    ys = [0.0] * 149 + [NAN] + [10.0] * 150
    found = painted(Curve("", xs, ys), Scale(0, 2.99), Y, 3, 12)
    assert found[1] == [(11, 11), (0, 0)], "two spans, with nothing between them"


@pytest.mark.parametrize("hole", [NAN, math.inf, -math.inf])
def test_what_is_not_finite_is_a_gap(hole: float):
    found = painted(Curve("", [0, 1, 2, 3, 4], [1, 1, hole, 1, 1]), Scale(0, 4), Y, 9, 4)
    assert sorted(found) == [0, 1, 2, 6, 7, 8]


def test_a_log_axis_has_no_place_for_zero():
    found = painted(
        Curve("", [0, 1, 2, 3], [1, 0, -5, 100]), Scale(0, 3), Scale(1, 100, log=True), 4, 8
    )
    assert found == {0: [(7, 7)], 3: [(0, 0)]}


def test_a_point_alone_is_a_dot():
    assert drawn(Curve("", [1.0], [5.0]), Scale(0, 2), Y, 3, 1) == " ⠠"


def test_a_line_comes_in_from_outside_and_leaves():
    found = painted(Curve("", [-10.0, 20.0], [0.0, 10.0]), Scale(0.0, 10.0), Y, 11, 11)
    assert sorted(found) == list(range(11))
    assert found[0] == [(row_of(10 / 3, Y, 11),) * 2]
    assert found[10][0][0] == row_of(20 / 3, Y, 11)


def test_what_is_above_or_below_the_picture_is_cut_off():
    assert drawn(Curve("", [0, 1, 2, 3], [0, 100, 100, 0]), Scale(0, 3), Y, 2, 2) == "⢸⢸\n⡸⢸"
    assert drawn(Curve("", [0, 1], [50, 60]), Scale(0, 1), Y, 4, 2) == "\n"


def test_the_first_curve_lies_on_top():
    flat, rising, short = (
        Curve("", [0, 1], [5, 5]),
        Curve("", [0, 1], [0, 10]),
        Curve("", [0, 0.4], [5, 5]),
    )
    for curves, expected in (
        ([flat, rising], [1, 1, 1, 1]),
        ([short, rising], [1, 1, 2, 2]),
        ([rising, flat], [1, 1, 1, 1]),
    ):
        _, owners = braille(spans(points_of(curves), Scale(0, 1), Y, 8, 4), 2, 4, 1)
        assert owners == [bytes(expected)]


def test_a_thinned_curve_shows_what_was_around_its_points():
    xs = [float(i) for i in range(5)]
    found = painted(
        Curve("", xs, [5.0] * 5, lows=[5, 5, 2, 5, NAN], highs=[5, 5, 9, 5, NAN]),
        Scale(0, 4),
        Y,
        5,
        11,
    )
    assert found[2] == [(1, 8)]
    assert found[0] == found[4] == [(5, 5)]


def test_columns_that_differ_in_length_are_cut_to_the_shortest():
    assert sorted(painted(Curve("", [0, 1, 2, 3], [5, 5]), Scale(0, 3), Y, 4, 4)) == [0, 1]
    assert painted(Curve("", [], []), Scale(0, 3), Y, 4, 4) == {}


values = st.floats(-5.0, 15.0, allow_nan=False)
holed = st.one_of(values, values, values, st.just(NAN))


@given(st.lists(holed, min_size=2, max_size=24), st.integers(1, 16), st.integers(2, 60))
def test_peaks_survive(drawn: list[float], times: int, columns: int):
    """However many points a column holds, its least and its most are painted."""
    ys = drawn * times
    points = len(ys)
    xs = [float(i) for i in range(points)]
    x = Scale(0.0, points - 1.0)
    found = painted(Curve("", xs, ys), x, Y, columns, 40)
    for at, value in zip(xs, ys, strict=True):
        if value == value:
            column, row = math.floor(x.at(at) * (columns - 1) + 0.5), row_of(value, Y, 40)
            assert any(top <= row <= bottom for top, bottom in found[column])


@given(
    st.lists(st.tuples(st.floats(0.01, 5.0), values), min_size=2, max_size=80), st.integers(2, 60)
)
def test_a_line_without_gaps_has_none(steps: list[tuple[float, float]], columns: int):
    xs = [sum(step for step, _ in steps[: i + 1]) for i in range(len(steps))]
    found = painted(Curve("", xs, [y for _, y in steps]), Scale(xs[0], xs[-1]), Y, columns, 40)
    assert sorted(found) == list(range(columns))
    for here in range(1, columns):
        [(top, bottom)], [(top_before, bottom_before)] = found[here], found[here - 1]
        assert top <= bottom_before + 1
        assert bottom >= top_before - 1, "it touches the one before"


@given(st.integers(0, 60), st.integers(8, 40), st.integers(20, 60))
def test_a_gap_stays_a_gap(begin: int, length: int, columns: int):
    """Nothing is painted in the columns that lie wholly within a gap."""
    xs = [float(i) for i in range(120)]
    ys = [NAN if begin <= i < begin + length else 5.0 for i in range(120)]
    x = Scale(0.0, 119.0)
    found = painted(Curve("", xs, ys), x, Y, columns, 40)
    within = {
        math.floor(x.at(at) * (columns - 1) + 0.5) for at, y in zip(xs, ys, strict=True) if y == y
    }
    assert set(found) == within, "columns with a point, and no other"


@given(
    st.lists(st.lists(st.tuples(values, holed), max_size=30), min_size=1, max_size=4),
    st.integers(2, 40),
)
def test_curves_together_are_as_each_alone(several: list[list[tuple[float, float]]], columns: int):
    curves = [
        Curve("", [x for x, _ in sorted(points)], [y for _, y in sorted(points)])
        for points in several
    ]
    together = spans(points_of(curves), Scale(0, 9), Y, columns, 20)
    for number, curve in enumerate(curves):
        alone = spans(points_of([curve]), Scale(0, 9), Y, columns, 20)
        own = together.curves == number
        assert [list(part[own]) for part in together[1:]] == [list(part) for part in alone[1:]]


@given(
    st.lists(st.tuples(values, values), min_size=1, max_size=60),
    st.integers(1, 30),
    st.integers(1, 10),
    st.booleans(),
)
def test_nothing_is_painted_outside(
    points: list[tuple[float, float]], width: int, height: int, log: bool
):
    points = sorted(points)
    curve = Curve("", [x for x, _ in points], [y for _, y in points])
    x, y = (
        (Scale(0.5, 9.0, log=True), Scale(0.1, 8.0, log=True))
        if log
        else (Scale(0.0, 9.0), Scale(0.0, 8.0))
    )
    lines, owners = braille(
        spans(points_of([curve]), x, y, width * 2, height * 4), 1, width, height
    )
    assert [len(line) for line in lines] == [width] * height
    assert all(
        (char != " ") == bool(owner)
        for line, row in zip(lines, owners, strict=True)
        for char, owner in zip(line, row, strict=True)
    )


def test_a_logarithmic_time_bends_nothing():
    """A power law is a straight line on two log axes."""
    xs = [10 ** (i / 50) for i in range(201)]
    found = painted(
        Curve("", xs, [x**0.5 for x in xs]),
        Scale(1, 1e4, log=True),
        Scale(1, 100, log=True),
        41,
        41,
    )
    assert found == {i: [(40 - i, 40 - i)] for i in range(41)}
