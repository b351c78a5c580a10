"""Bars and tiles as characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.present.chart import Bar, Bars, ChartPart, Stat
from ckptcost.first.tui.draw.bars import draw_bars, rows_needed
from ckptcost.first.tui.draw.canvas import Line, Look
from ckptcost.first.tui.draw.tiles import draw_tiles, lines_needed

COLOURED, PLAIN = Look(), Look(plain=True)


def text(lines: list[Line]) -> list[str]:
    return ["".join(piece[0] for piece in line).rstrip() for line in lines]


def test_stacked_bars_differ_without_colours_and_are_named():
    parts = [ChartPart("stall", 0, 6), ChartPart("host", 6, 8), ChartPart("cooling", 8, 10)]
    half = [ChartPart("stall", 0, 3), ChartPart("host", 3, 4), ChartPart("cooling", 4, 5)]
    bars = Bars(
        [Bar("NAS", parts, "10 kWh"), Bar("Local", half, "5 kWh", tone="best")],
        ("stall", "host", "cooling"),
    )
    assert text(draw_bars(bars, 34, 3, COLOURED)) == [
        " NAS   ████████████▓▓▓▓▒▒▒▒ 10 kWh",
        "▸Local ██████▓▓▒▒            5 kWh",
        "█ stall  ▓ host  ▒ cooling",
    ]
    assert text(draw_bars(bars, 34, 3, PLAIN)) == [
        " NAS   ############====++++ 10 kWh",
        ">Local ######==++            5 kWh",
        "# stall  = host  + cooling",
    ]


def test_a_single_bar_ends_on_an_eighth():
    bars = Bars(
        [
            Bar("a", [ChartPart("", 0, 16)], "16"),
            Bar("b", [ChartPart("", 0, 5)], "5"),
            Bar("c", [ChartPart("", 0, 0.01)], "0.01"),
        ]
    )
    assert text(draw_bars(bars, 15, 3, COLOURED)) == [
        "a ████████   16",
        "b ██▌         5",
        "c ▏        0.01",
    ]


def test_something_is_not_nothing_and_nothing_is_nothing():
    bars = Bars(
        [
            Bar("a", [ChartPart("", 0, 1e6)], "1M"),
            Bar("b", [ChartPart("", 0, 1)], "1"),
            Bar("c", [ChartPart("", 0, 0)], "0"),
        ]
    )
    assert text(draw_bars(bars, 20, 3, PLAIN)) == [
        "a ############### 1M",
        "b #                1",
        "c                  0",
    ]


def test_on_a_log_axis_decades_are_alike():
    rows = [Bar(str(power), [ChartPart("", 0, 10.0**power)], "") for power in (1, 2, 3)]
    lengths = [line.count("#") for line in text(draw_bars(Bars(rows, log=True), 43, 3, PLAIN))]
    assert lengths[1] - lengths[0] == pytest.approx(lengths[2] - lengths[1], abs=1)
    assert lengths[0] > 0


def test_a_waterfall_hangs_where_it_belongs():
    rows = [
        Bar("now", [ChartPart("", 0, 10)], "10"),
        Bar("less", [ChartPart("", 10, 4, "good")], "-6"),
        Bar("credit", [ChartPart("", 4, -2, "good")], "-6"),
        Bar("then", [ChartPart("", 0, -2)], "-2"),
    ]
    assert text(draw_bars(Bars(rows), 22, 4, PLAIN)) == [
        "now      ########## 10",
        "less     |   ###### -6",
        "credit ######       -6",
        "then   ##|          -2",
    ]


def test_where_rows_are_few_the_note_goes_first_then_the_legend_and_what_is_left_out_is_counted():
    bars = Bars(
        [
            Bar(str(i), [ChartPart("a", 0, i), ChartPart("b", i, 2 * i)], str(i))
            for i in range(1, 6)
        ],
        ("a", "b"),
        "Title",
        "a note",
    )
    assert rows_needed(bars) == 8
    assert text(draw_bars(bars, 30, 8, PLAIN))[-2:] == ["# a  = b", "a note"]
    assert text(draw_bars(bars, 30, 7, PLAIN))[-1] == "# a  = b"
    assert text(draw_bars(bars, 30, 4, PLAIN))[-1] == " 3 more"


def test_no_row_says_why():
    assert (
        "".join(text(draw_bars(Bars(empty="no save yet"), 21, 3, COLOURED))).strip()
        == "no save yet"
    )
    assert rows_needed(Bars(empty="no save yet")) == 1


def test_the_words_stay_where_a_bar_has_no_room():
    assert text(
        draw_bars(Bars([Bar("NAS", [ChartPart("", 0, 1)], "1,190 kWh")]), 16, 1, COLOURED)
    ) == ["NAS    1,190 kWh"]


def test_bars_whose_distance_is_no_number_are_left_out():
    bars = Bars(
        [Bar("a", [ChartPart("", 0, 1.7e308)], "12"), Bar("b", [ChartPart("", 0, -1.7e308)], "3")]
    )
    assert text(draw_bars(bars, 16, 2, COLOURED)) == ["a             12", "b              3"]


amounts = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-100, 100)


@given(
    st.lists(
        st.tuples(st.text("abc ", max_size=12), st.lists(st.tuples(amounts, amounts), max_size=4)),
        max_size=6,
    ),
    st.integers(1, 80),
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from([COLOURED, PLAIN]),
)
def test_no_line_is_wider_than_asked(
    rows: list[tuple[str, list[tuple[float, float]]]],
    width: int,
    height: int,
    log: bool,
    look: Look,
):
    bars = Bars(
        [Bar(label, [ChartPart("", *ends) for ends in parts], "12 kWh") for label, parts in rows],
        ("a", "b"),
        "T",
        "n",
        log,
    )
    lines = draw_bars(bars, width, height, look)
    assert len(lines) == height
    assert {sum(len(piece[0]) for piece in line) for line in lines} == {width}


STATS = [
    Stat("ENERGY", "0.0264 kWh", "GPU 22.7 Wh"),
    Stat("COST", "0.216 USD", "2.50 USD/GPU-h"),
    Stat("CO2e", "9.7 g", "369 g/kWh"),
]


def test_tiles_stand_beside_one_another():
    assert text(draw_tiles(STATS, 60, 3, False, False)) == [
        "ENERGY           COST                CO2e",
        "0.0264 kWh       0.216 USD           9.7 g",
        "GPU 22.7 Wh      2.50 USD/GPU-h      369 g/kWh",
    ]


def test_tiles_wrap_and_their_columns_stay_in_line():
    assert text(draw_tiles(STATS, 34, 6, False, False)) == [
        "ENERGY           COST",
        "0.0264 kWh       0.216 USD",
        "GPU 22.7 Wh      2.50 USD/GPU-h",
        "CO2e",
        "9.7 g",
        "369 g/kWh",
    ]


def test_on_a_short_screen_a_tile_is_one_line():
    assert text(draw_tiles(STATS, 80, 1, True, False)) == [
        "ENERGY 0.0264 kWh      COST 0.216 USD      CO2e 9.7 g"
    ]


@pytest.mark.parametrize("short", [True, False])
@given(
    st.lists(
        st.tuples(
            st.text("ab", max_size=15), st.text("12", max_size=15), st.text("xy", max_size=50)
        ),
        max_size=9,
    ),
    st.integers(1, 120),
)
def test_tiles_fit(short: bool, stats: list[tuple[str, str, str]], width: int):
    shown = [Stat(*each) for each in stats]
    height = lines_needed(shown, width, short)
    lines = draw_tiles(shown, width, height, short, False)
    assert len(lines) == height
    assert all(sum(len(piece[0]) for piece in line) == width for line in lines)
    if width >= 15 and not short:
        drawn = "\n".join(text(lines))
        assert all(stat.value in drawn for stat in shown), "no value is cut where it fits"
