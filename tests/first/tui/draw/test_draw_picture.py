"""Whole charts: axes, shades, names, and what is shown where there is no room."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.present.amounts import number
from ckptcost.first.present.chart import Band, Chart, Curve, Dot, Rule, Traces
from ckptcost.first.tui.draw.canvas import Canvas, Look, shortened
from ckptcost.first.tui.draw.picture import Picture, draw_chart
from ckptcost.first.tui.draw.scale import Scale
from ckptcost.first.tui.draw.stack import draw_traces

NAN = math.nan
COLOURED, SHADED, PLAIN = Look(), Look(shaded=True), Look(plain=True)
FLAT = Curve("power", [0.0, 60.0], [5.0, 5.0])


def text(picture: Picture) -> list[str]:
    return ["".join(piece[0] for piece in line).rstrip() for line in picture.lines]


def pieces(picture: Picture, ink: str) -> list[str]:
    return [
        text for line in picture.lines for text, here, _ in line if here == ink and text.strip()
    ]


def test_a_chart_with_everything():
    chart = Chart(
        "Power",
        [Curve("node", [0, 30, 31, 60], [2, 2, 8, 8])],
        bands=[Band(31, 61)],
        rules=[Rule(15, "now", "now"), Rule(45, "best", "best")],
        y_label="kW",
        y_range=(0, 10),
    )
    assert text(draw_chart(chart, 44, 9, SHADED)) == [
        "Power  kW",
        "10┤         │        ░░░░░░░░┊░░░░░░░░░",
        "  │         │        ⢰⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒ node",
        " 5┤         │        ⢸░░░░░░░┊░░░░░░░░░",
        "  │         │        ⢸░░░░░░░┊░░░░░░░░░",
        "  │⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠜░░░░░░░┊░░░░░░░░░",
        " 0┤         │ now    ░░░░░░░░┊ best ░░░",
        "  └┬────────┬────────┬───────┬────────┬",
        "   0       15 s     30 s    45 s     60 s",
    ]


def test_shade_is_a_tint_where_there_are_colours():
    chart = Chart(curves=[FLAT], bands=[Band(20, 40, kind="load")])
    picture = draw_chart(chart, 40, 10, COLOURED)
    tinted = [ground for line in picture.lines for _, _, ground in line if ground]
    assert set(tinted) == {"band-load"}
    assert not re.search("[\u2591:]", "".join(text(picture)))


def test_a_short_save_is_seen():
    picture = draw_chart(
        Chart(curves=[Curve("", [0, 3600], [1, 1])], bands=[Band(1800, 1800.5)]), 40, 10, SHADED
    )
    assert any("\u2591" in line for line in text(picture))


@pytest.mark.parametrize("height", [1, 2, 3])
def test_below_four_rows_there_are_words_only(height: int):
    chart = Chart(
        "GPU power",
        [Curve("", [0, 1, 2, 3], [100, 650, 600, NAN])],
        y_text=lambda value: f"{number(value)} W",
    )
    assert text(draw_chart(chart, 60, height, COLOURED))[0] == "GPU power: now 600 W, peak 650 W"


def test_words_say_what_holds_at_now_and_the_best_first():
    curves = [Curve("NAS", [0, 1, 2], [1, 2, 3]), Curve("Local", [0, 1, 2], [7, 9, 8], "best")]
    chart = Chart(curves=curves, rules=[Rule(1, "now", "now")])
    assert text(draw_chart(chart, 40, 2, COLOURED)) == [
        "Local: now 9, peak 9",
        "NAS: now 2, peak 3",
    ]


@pytest.mark.parametrize("look", [COLOURED, PLAIN])
@pytest.mark.parametrize(
    "chart",
    [
        Chart(empty="nothing was recorded"),
        Chart(curves=[Curve("a", [], [])], empty="nothing was recorded"),
        Chart(curves=[Curve("a", [1.0, 2.0], [NAN, NAN])], empty="nothing was recorded"),
        Chart(
            curves=[Curve("a", [1.0, 2.0], [0.0, -1.0])], y_log=True, empty="nothing was recorded"
        ),
    ],
)
def test_nothing_to_draw_says_why_in_the_middle(chart: Chart, look: Look):
    lines = text(draw_chart(chart, 40, 9, look))
    assert [line.strip() for line in lines] == [""] * 4 + ["nothing was recorded"] + [""] * 4
    assert lines[4].index("n") == 10


def test_the_words_below_share_the_line_where_rows_are_few():
    assert text(draw_chart(Chart(curves=[FLAT], y_range=(0, 10)), 30, 4, COLOURED))[-1].startswith(
        "  └0"
    )


def test_what_the_bottom_axis_counts_is_said():
    chart = Chart(curves=[FLAT], x_label="interval")
    assert text(draw_chart(chart, 60, 12, COLOURED))[-1].split() == [
        "0",
        "30",
        "s",
        "interval",
        "60",
        "s",
    ]
    crowded = Chart(
        dots=[Dot(10, 1, ""), Dot(1e4, 2, "")],
        x_log=True,
        x_label="time of one checkpoint",
        y_label="USD",
    )
    assert text(draw_chart(crowded, 56, 14, COLOURED))[0] == "USD over time of one checkpoint"


def test_a_click_finds_the_value_that_stands_there():
    frame = draw_chart(
        Chart(curves=[Curve("", [1, 1e4], [1, 2])], x_log=True), 60, 12, COLOURED
    ).frame
    assert frame is not None
    for value in (1.0, 10.0, 333.0, 1e4):
        column = frame.x.cell(value, frame.columns)
        found = frame.x.value((column + 0.25) / (frame.columns - 0.5))
        assert found == pytest.approx(value, rel=0.15)


def test_names_at_the_ends_move_apart_and_keep_their_order():
    curves = [
        Curve(name, [0, 10], [0, end])
        for name, end in (("a", 10.0), ("b", 9.9), ("c", 9.8), ("d", 1.0))
    ]
    lines = text(draw_chart(Chart(curves=curves, y_range=(0, 10)), 50, 12, COLOURED))
    rows = {line[-1]: row for row, line in enumerate(lines) if line[-1] in "abcd"}
    assert sorted(rows, key=rows.__getitem__) == ["a", "b", "c", "d"]
    assert rows["c"] - rows["a"] == 2


def test_the_colour_of_a_name_is_its_curve_s():
    picture = draw_chart(
        Chart(curves=[Curve("one", [0, 1], [0, 1]), Curve("two", [0, 1], [1, 0], "bad")]),
        50,
        10,
        COLOURED,
    )
    assert any("one" in piece for piece in pieces(picture, "series-1"))
    assert any("two" in piece for piece in pieces(picture, "bad"))


def test_beside_the_best_a_series_keeps_clear_of_its_colour():
    picture = draw_chart(
        Chart(curves=[Curve("one", [0, 1], [0, 1]), Curve("two", [0, 1], [1, 0], "best")]),
        50,
        10,
        COLOURED,
    )
    assert any("one" in piece for piece in pieces(picture, "other-1"))
    assert not pieces(picture, "series-1")


places = st.floats(1.0, 1000.0)


@given(
    st.lists(st.tuples(places, places), min_size=1, max_size=12),
    st.integers(20, 90),
    st.integers(6, 24),
    st.booleans(),
)
def test_names_of_dots_are_whole_or_not_there(
    found: list[tuple[float, float]], width: int, height: int, log: bool
):
    """A name that another one covered in part would leave letters behind."""
    names = [chr(ord("A") + i) * 5 for i in range(len(found))]
    dots = [Dot(x, y, name) for (x, y), name in zip(found, names, strict=True)]
    chart = Chart(dots=dots, x_log=log, y_log=log, x_text=lambda _: "0", y_text=lambda _: "0")
    lines = text(draw_chart(chart, width, height, COLOURED))
    left = "\n".join(lines)
    for name in names:
        assert left.count(name) <= 1
        left = left.replace(name, "")
    assert not re.search("[A-L]", left)


@given(
    st.lists(
        st.tuples(st.text("abcdef", max_size=14), st.lists(st.floats(), min_size=2, max_size=30)),
        max_size=6,
    ),
    st.integers(1, 120),
    st.integers(1, 40),
    st.sampled_from([COLOURED, SHADED, PLAIN]),
    st.booleans(),
    st.booleans(),
)
def test_any_values_at_any_size(
    given_curves: list[tuple[str, list[float]]],
    width: int,
    height: int,
    look: Look,
    x_log: bool,
    y_log: bool,
):
    """Whatever comes, every line is as wide as asked; in letters nothing else is used."""
    curves = [Curve(label, [float(i) for i in range(len(ys))], ys) for label, ys in given_curves]
    chart = Chart(
        "A title",
        curves,
        bands=[Band(3, 5, "save"), Band(NAN, NAN)],
        rules=[Rule(4, "now", "now"), Rule(5, "b", "best"), Rule(NAN, "x")],
        dots=[Dot(2, 3, "dot")],
        x_label="x",
        y_label="y",
        x_log=x_log,
        y_log=y_log,
        y_range=None if y_log else (0, NAN),
    )
    for picture in (
        draw_chart(chart, width, height, look),
        draw_traces(Traces([chart, chart], (0.0, 20.0)), width, height, look),
    ):
        assert len(picture.lines) == height
        assert {sum(len(piece[0]) for piece in line) for line in picture.lines} == {width}
        if look.plain:
            assert "".join(text(picture)).isascii()


def stack(count: int) -> Traces:
    xs = [float(i) for i in range(-180, 1)]
    charts = [
        Chart(
            f"trace {i}",
            [Curve("", xs, [float(i + 1)] * 181)],
            y_range=(0, NAN),
            note=f"now {i + 1}",
        )
        for i in range(count)
    ]
    return Traces(charts, (-180, 0))


def test_stacked_traces_share_one_axis():
    lines = text(draw_traces(stack(2), 50, 14, COLOURED))
    assert lines[0] == "─ trace 0 ─────────────────────────────── now 1 ──"
    assert lines[6].startswith("─ trace 1 ─")
    assert sum("└" in line for line in lines) == 1
    assert re.split("  +", lines[-1].strip()) == ["-3 min", "-2 min", "-1 min", "0"]


def test_where_rows_are_few_the_last_traces_are_a_line_each():
    lines = text(draw_traces(stack(4), 60, 12, COLOURED))
    assert [line.split()[1:3] for line in lines if line.startswith("─")] == [
        ["trace", str(i)] for i in range(4)
    ]
    assert lines[-2].endswith("now 4 ──"), "its title says what it shows"


def test_bands_go_through_all_traces():
    traces = stack(3)._replace(bands=[Band(-90, -60)])
    picture = draw_traces(traces, 60, 20, COLOURED)
    tinted = [any(ground for _, _, ground in line) for line in picture.lines]
    assert sum(tinted) == 20 - 3 - 2


def test_a_trace_without_a_meter_takes_one_row_and_says_why():
    traces = stack(1)._replace(
        charts=[*stack(1).charts, Chart("Network", empty="no meter answers")]
    )
    lines = text(draw_traces(traces, 60, 14, COLOURED))
    assert sum("no meter answers" in line for line in lines) == 1
    assert lines.index(next(line for line in lines if "Network" in line)) == 10


def test_many_curves_are_named_in_the_title():
    xs = [-180.0, 0.0]
    chart = Chart("GPU power, W", [Curve(f"GPU {i}", xs, [600.0 + i, 600.0 + i]) for i in range(8)])
    picture = draw_traces(Traces([chart], (-180, 0)), 100, 14, COLOURED)
    assert "GPU 0 GPU 1 GPU 2" in text(picture)[0]
    assert any("GPU 3" in piece for piece in pieces(picture, "series-4"))


def test_a_canvas_finds_runs_of_one_ink_and_ground():
    canvas = Canvas(8, 1)
    canvas.put(0, 0, "ab", "axis")
    canvas.put(0, 4, "cd", "axis")
    canvas.put(0, 6, "e", "title")
    canvas.tint(0, 1, 3, "band-save")
    assert canvas.lines() == [
        [("a", "axis", ""), ("b ", "axis", "band-save"), (" cd", "axis", ""), ("e ", "title", "")]
    ]


@given(st.text("ab", max_size=20), st.integers(0, 20))
def test_shortened_fits(words: str, width: int):
    assert len(shortened(words, width)) == min(len(words), width)


def test_a_scale_goes_there_and_back():
    for scale in (Scale(-3.0, 9.0), Scale(0.1, 1e4, log=True)):
        assert [scale.at(scale.value(at)) for at in (0.0, 0.3, 1.0)] == pytest.approx(
            [0.0, 0.3, 1.0]
        )
