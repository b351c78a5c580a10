"""Ticks: round, named in full, apart from one another."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.present.amounts import duration, number, share
from ckptcost.first.tui.draw.scale import Scale
from ckptcost.first.tui.draw.ticks import AxisTick, Kind, Text, steps, x_ticks, y_ticks


def words(ticks: list[AxisTick]) -> list[str]:
    return [tick.text for tick in ticks]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 14_400.0, ["0", "1 h", "2 h", "3 h", "4 h"]),
        (-180.0, 0.0, ["-180 s", "-150 s", "-120 s", "-90 s", "-60 s", "-30 s", "0"]),
        (0.0, 3600.0, ["0", "10 min", "20 min", "30 min", "40 min", "50 min", "60 min"]),
        (0.0, 0.05, ["0", "0.01 s", "0.02 s", "0.03 s", "0.04 s", "0.05 s"]),
        (0.0, 86_400.0 * 60, ["0", "10 d", "20 d", "30 d", "40 d", "50 d", "60 d"]),
        (0.0, 86_400.0 * 4000, ["0", "1,000 d", "2,000 d", "3,000 d", "4,000 d"]),
    ],
)
def test_time_falls_on_what_people_count_in(low: float, high: float, expected: list[str]):
    assert words(x_ticks(Scale(low, high), 70, duration, "duration")) == expected


def test_numbers_fall_on_1_2_25_and_5():
    assert words(x_ticks(Scale(0.0, 10_000.0), 60, number)) == [
        "0",
        "2,000",
        "4,000",
        "6,000",
        "8,000",
        "10,000",
    ]
    assert words(x_ticks(Scale(0.0, 1.0), 50, number)) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert list(itertools.islice(steps(1.0), 8)) == [1, 2, 2.5, 5, 10, 20, 25, 50]


def test_on_a_log_axis_decades_and_between_them_2_and_5_where_there_is_room():
    assert words(x_ticks(Scale(1.0, 1e6, log=True), 60, number)) == [
        "1",
        "10",
        "100",
        "1,000",
        "10,000",
        "100,000",
        "1M",
    ]
    assert words(x_ticks(Scale(1.0, 100.0, log=True), 60, number)) == [
        "1",
        "2",
        "5",
        "10",
        "20",
        "50",
        "100",
    ]
    assert words(x_ticks(Scale(1.0, 1e12, log=True), 40, number)) == [
        "1",
        "100",
        "10,000",
        "1M",
        "100M",
        "10G",
        "1T",
    ]
    assert words(x_ticks(Scale(10.0, 1e5, log=True), 60, duration, "duration")) == [
        "10 s",
        "1 min",
        "10 min",
        "1 h",
        "6 h",
        "1 d",
    ]


def test_the_caller_may_word_them():
    assert words(y_ticks(Scale(0.4, 1.0), 17, share)) == ["40 %", "60 %", "80 %", "100 %"]
    assert words(x_ticks(Scale(0.0, 7200.0), 40, lambda s: f"{s / 3600:g}h", "duration")) == [
        "0h",
        "0.5h",
        "1h",
        "1.5h",
        "2h",
    ]


def test_a_short_axis_names_both_ends_or_one_value():
    assert words(y_ticks(Scale(0.0, 6000.0), 3, number)) == ["0", "5,000"]
    assert words(y_ticks(Scale(0.0, 6000.0), 1, number)) == ["0"]
    assert words(x_ticks(Scale(0.0, 1e6), 9, number)) == ["0", "1M"]


def test_labels_that_read_the_same_are_not_repeated():
    assert len(set(found := words(y_ticks(Scale(0.99991, 0.99993), 20, share)))) == len(found)


ranges = (
    st.tuples(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
    .map(lambda each: (each[0], each[0] + each[1]))
    .filter(lambda r: r[1] > r[0])
)
logs = st.tuples(st.floats(1e-6, 1e9), st.floats(1.01, 1e12)).map(
    lambda each: (each[0], each[0] * each[1])
)
scales = st.one_of(ranges.map(lambda r: Scale(*r)), logs.map(lambda r: Scale(*r, log=True)))
kinds: st.SearchStrategy[Kind] = st.sampled_from(["number", "duration"])
texts: st.SearchStrategy[Text] = st.sampled_from(
    [number, duration, share, lambda value: f"<{value:.6f}>"]
)


@given(scales, st.integers(1, 200), texts, kinds, st.integers(0, 12))
def test_words_below_never_overlap_and_are_never_cut(
    x: Scale, columns: int, text: Text, kind: Kind, left: int
):
    ticks = x_ticks(x, columns, text, kind, left, (0, left + columns))
    for tick in ticks:
        assert left <= tick.at < left + columns
        assert 0 <= tick.begin <= tick.at < tick.begin + len(tick.text) <= left + columns, (
            "under its tick"
        )
        assert (
            x.low - 1e-6 * (x.high - x.low)
            <= tick.value
            <= x.high + 1e-6 * (abs(x.high) + x.high - x.low)
        )
    for one, next_one in itertools.pairwise(ticks):
        assert one.begin + len(one.text) < next_one.begin, "a blank between them"
        assert one.text != next_one.text


@given(scales, st.integers(1, 60), texts, kinds)
def test_words_beside_have_a_row_each(y: Scale, rows: int, text: Text, kind: Kind):
    ticks = y_ticks(y, rows, text, kind)
    assert all(0 <= tick.at < rows for tick in ticks)
    assert all(one.at > next_one.at for one, next_one in itertools.pairwise(ticks)), (
        "rising values, higher rows"
    )


@given(st.floats(0.0, 1000.0), st.floats(1.0, 1e6), st.integers(30, 200))
def test_there_is_room_for_two_at_least(low: float, span: float, columns: int):
    assert len(x_ticks(Scale(low, low + span), columns, lambda value: f"{value:g}")) >= 2
