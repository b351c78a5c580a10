"""What is drawn is what the numbers say: lengths of bars, sums kept when rows are gathered, gaps
left open, and no odd input breaks one."""

from __future__ import annotations

import html
import math
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statements import START, statement

from ckptcost.first.report.html import pictures, pictures_of_time, sections, svg
from ckptcost.first.report.html.markup import join
from ckptcost.first.report.html.pictures import Fall, FallStep, IntervalPicture, fall_figure, reach
from ckptcost.first.report.html.pictures_of_time import Bin, PowerPlot, SaveBand
from ckptcost.first.report.html.svg import (
    NARROW,
    WIDE,
    PlotLine,
    PlotScale,
    clock,
    decades,
    rows_of,
    steps,
    times,
)

ZERO = (0.0,) * 5


def words(markup) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", str(markup))).split())


def changed(s, **fields):
    return s.model_copy(update=fields)


AMOUNT = st.one_of(
    st.none(),
    st.just(0.0),
    st.floats(-1e12, 1e15, allow_subnormal=False),
    st.sampled_from([math.nan, math.inf, 1e-9]),
)
KNOWN = st.floats(1e-6, 1e12)


def judge(height: float, inside, width: float) -> str:
    """Raises where a coordinate is no number or lies far outside; the markup otherwise."""
    markup = join([inside])
    assert 0 < height < 5000
    assert not re.search(r"nan|inf", re.sub(r">[^<]*<", "><", markup))
    for found in re.findall(
        r'<rect x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"', markup
    ):
        x, y, wide, tall = map(float, found)
        assert -1 <= x <= width + 2
        assert x + wide <= width + 2.5
        assert -1 <= y <= height
        assert y + tall <= height + 1
    for path in re.findall(r' d="([^"]+)"', markup):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path):
            assert -1 <= float(x) <= width + 1
            assert -1 <= float(y) <= height + 1
    return markup


def bars(markup: str) -> list[tuple[str, float, float]]:
    """Of a total's picture: class, where it begins and how long it is, in per cent of the width."""
    found = re.findall(
        r'<span class="(?:f-)?([\w ]+)" style="left:([\d.]+)%;width:([\d.]+)%">', markup
    )
    told = [(kind, float(begin), float(wide)) for kind, begin, wide in found]
    assert all(0 <= begin <= begin + wide <= 100.02 for _, begin, wide in told)
    return told


def check_fall(fall: Fall, markup: str) -> None:
    """Raises where a bar is not as long as its number, or does not begin where the one before
    ended."""
    *parts, (kind, begin, whole) = [bar for bar in bars(markup) if "range" not in bar[0]]
    known = [step.value for step in fall.steps if step.value is not None]
    assert kind == "total"
    assert len(parts) == len(known)
    at = begin
    for (_, x, wide), value in zip(parts, known, strict=True):
        assert x == pytest.approx(at, abs=0.2)
        assert wide / whole == pytest.approx(value / math.fsum(known), abs=0.005)
        at = x + wide


def test_bars_are_as_long_as_their_numbers():
    fall = Fall(
        "kWh",
        [
            FallStep("a", 100.0, "save"),
            FallStep("b", None, "save"),
            FallStep("c", 250.0, "failure"),
            FallStep("d", 50.0, "keep"),
        ],
        400.0,
        300.0,
        500.0,
    )
    markup = str(fall_figure(fall))
    check_fall(fall, markup)
    assert "not known" in markup
    with pytest.raises(AssertionError):
        check_fall(fall._replace(steps=[*fall.steps[:-1], FallStep("d", 50_000.0, "keep")]), markup)
    with pytest.raises(AssertionError):
        check_fall(fall._replace(steps=fall.steps[1:]), markup)


def test_a_wide_range_does_not_squeeze_the_steps():
    assert reach(Fall("kWh", [FallStep("a", 10.0, "save")], 10.0, 1.0, 1e9)) == (0.0, 80.0)
    assert reach(Fall("kWh", [FallStep("a", 10.0, "save")], 10.0, 1.0, 70.0)) == (0.0, 70.0)
    assert reach(Fall("kWh", [], None)) == (0.0, 1.0)


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e12, 1e15)), max_size=8),
    st.one_of(st.none(), KNOWN),
    st.one_of(st.none(), KNOWN),
)
@settings(max_examples=60, deadline=None)
def test_any_bill_is_drawn(values, low, high):
    known = [v for v in values if v is not None]
    fall = Fall(
        "kWh",
        [FallStep("x", v, "save") for v in values],
        math.fsum(known) if known else None,
        low,
        high,
    )
    assert len(bars(str(fall_figure(fall)))) >= sum(1 for v in known if v)


@given(
    st.lists(
        st.tuples(st.floats(0.001, 1e9), AMOUNT, AMOUNT),
        min_size=1,
        max_size=30,
        unique_by=lambda row: row[0],
    ),
    AMOUNT,
    AMOUNT,
)
@settings(max_examples=60, deadline=None)
def test_any_curve_is_drawn(rows, now, best):
    rows.sort()
    curve = IntervalPicture(
        [x for x, _, _ in rows],
        [
            PlotLine("a", [a for _, a, _ in rows], "USD"),
            PlotLine("b", [b for _, _, b in rows], "kWh"),
        ],
        now,
        {"time": best},
    )
    for width in (WIDE, NARROW):
        judge(*pictures.draw_curve(curve, width), width)
    assert "nan" not in pictures.curve_words(curve)


def test_best_intervals_that_are_one_share_a_line():
    curve = IntervalPicture(
        [600.0, 60_000.0],
        [PlotLine("a", [1.0, 2.0])],
        7200.0,
        {"time": 53_000.0, "usd": 53_010.0, "energy": 44_000.0, "carbon": None},
    )
    assert pictures.marks(curve) == [
        (7200.0, "in use", "now"),
        (44_000.0, "best for energy", "best"),
        (53_000.0, "best for time, usd", "best"),
    ]


def test_a_gap_in_a_curve_is_not_drawn_over():
    _, inside = pictures.draw_curve(
        IntervalPicture([1.0, 2.0, 3.0, 4.0, 5.0], [PlotLine("a", [1.0, 2.0, None, 2.0, 1.0])]),
        WIDE,
    )
    (path,) = [
        d for d in re.findall(r'd="([^"]+)" class="line l1"', join([inside])) if d.count("L") > 1
    ]
    assert path.count("M") == 2


power_rows = st.lists(st.tuples(AMOUNT, AMOUNT), min_size=1, max_size=700)


@given(
    power_rows,
    st.one_of(st.none(), st.floats(0, 500)),
    st.one_of(st.none(), st.floats(0, 500)),
)
@settings(max_examples=40, deadline=None)
def test_any_power_is_drawn(rows, stall, durable):
    rows = [
        (a if a is None or a >= 0 or a != a else -a, b if b is None or b >= 0 or b != b else -b)
        for a, b in rows
    ]
    lines = [PlotLine("a", [a for a, _ in rows], "W"), PlotLine("b", [b for _, b in rows], "W")]
    bands = [
        SaveBand(
            "one",
            3.0,
            None if stall is None else 3.0 + stall,
            None if durable is None else 3.0 + durable,
        )
    ]
    power = PowerPlot([float(n) for n in range(len(rows))], lines, bands)
    for width in (WIDE, NARROW):
        judge(*pictures_of_time.draw_power(power, width), width)
    assert "nan" not in pictures_of_time.power_words(power)


@pytest.mark.parametrize("rows", [1, 2, 300, 500, 501, 3000])
def test_gathered_rows_add_up_to_the_same(rows):
    s = statement(rows=rows)
    bins = pictures_of_time.hours(s.series)
    assert len(bins) == rows
    assert math.isclose(
        math.fsum(b.kg for b in bins), s.totals.emissions_location.value, rel_tol=1e-9
    )
    for most in (pictures_of_time.MOST_BARS, 120):
        some, each_s = pictures_of_time.together(bins, most, 3600.0)
        assert len(some) <= most
        assert each_s % 3600 == 0
        assert math.isclose(
            math.fsum(b.kg for b in some), s.totals.emissions_location.value, rel_tol=1e-9
        )
        assert all(a.end_s == b.begin_s for a, b in pairwise(some))
    for width in (WIDE, NARROW):
        judge(*pictures_of_time.draw_emissions(some, width), width)


def test_unknown_hours_are_shaded_and_not_zero():
    s = statement(rows=4)
    kg = [
        None if start == sorted(set(s.series.start))[1] else v
        for start, v in zip(s.series.start, s.series.emissions_location_kgco2e, strict=True)
    ]
    bins = pictures_of_time.hours(s.series.model_copy(update={"emissions_location_kgco2e": kg}))
    assert [b.kg is None for b in bins] == [False, True, False, False]
    markup = judge(*pictures_of_time.draw_emissions(bins, WIDE), WIDE)
    assert markup.count('class="hollow"') == 2  # the hour, and its swatch


def test_instants_with_fractions_and_without_a_factor():
    s = statement(begin=1790812800.25, grid=0.0)
    assert pictures_of_time.hours(s.series)[0].begin_s == 1790812800.25
    judge(*pictures_of_time.draw_emissions(pictures_of_time.hours(s.series), WIDE), WIDE)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_steps_are_round_and_few(low, span):
    high = low + span
    found = steps(low, high)
    assert len(found) <= 8
    assert found == sorted(found)


@given(st.floats(1e-3, 1e12), st.floats(1.01, 1e9))
def test_decades_lie_inside(low, ratio):
    found = decades(low, low * ratio)
    assert len(found) <= 14
    assert all(low * 0.99 <= each <= low * ratio * 1.01 for each in found)


@given(st.floats(0, 1e9), st.floats(1e-3, 1e9))
def test_times_are_few(low, span):
    assert len(times(low, low + span)) <= 12
    assert len(clock(1.7e9 + low, 1.7e9 + low + span + 1)) <= 9


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(1, 200)), max_size=12))
def test_labels_do_not_lie_on_each_other(spans):
    placed = sorted((begin, begin + wide) for begin, wide in spans)
    levels = rows_of(placed)
    for i, (begin, _) in enumerate(placed):
        assert all(
            end <= begin
            for (_, end), level in zip(placed[:i], levels[:i], strict=True)
            if level == levels[i]
        )


def test_power_with_a_range_shades_it_and_says_how_far_off_a_mean_may_be():
    ranged = PlotLine("GPUs", [100.0, 110.0], "W", [90.0, 105.0], [105.0, 130.0])
    power = PowerPlot([0.0, 1.0], [ranged])
    assert (
        pictures_of_time.power_words(power) == "GPUs from 100 to 110 W (each mean +-20 W or less)"
    )
    markup = judge(*pictures_of_time.draw_power(power, WIDE), WIDE)
    assert markup.count('class="s1 faint"') == 1
    bare = PowerPlot([0.0, 1.0], [PlotLine("a", [1.0, 2.0])])
    assert "faint" not in join([pictures_of_time.draw_power(bare, WIDE)[1]])


def series(s, **columns):
    return changed(s, series=s.series.model_copy(update=columns))


def test_bars_are_sums_of_components_and_one_unknown_does_not_hide_another():
    s = statement(
        (1.0, 2.0, None, 0.0, 0.0),
        gpu_hours=(1.0, 1.0, 1.0, 0.0, 0.0),
        rows=2,
        begin=START,
        grid=0.5,
    )
    bins = pictures_of_time.hours(s.series)
    assert [b.kg for b in bins] == pytest.approx([1.5 * 0.5, 1.5 * 0.5 * (1 + 0.1 * 0.8414709848)])
    assert [b.grid for b in bins] == pytest.approx([0.5, 0.5 * (1 + 0.1 * 0.8414709848)])
    assert (bins[0].begin_s, bins[1].begin_s, bins[1].end_s) == (START, START + 3600, START + 7200)
    assert [
        b.kg
        for b in pictures_of_time.hours(
            series(s, emissions_location_kgco2e=[None] * len(s.series.start)).series
        )
    ] == [None, None]


def test_rows_are_drawn_in_the_order_of_time():
    s = statement(rows=3, begin=START)
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    back = series(s, **{name: getattr(s.series, name)[::-1] for name in names})
    assert pictures_of_time.hours(back.series) == pictures_of_time.hours(s.series)


def test_bars_drawn_together_weight_the_grid_by_time_and_unknown_stays_unknown():
    bins = [
        Bin(0.0, 3600.0, 1.0, 0.1),
        Bin(3600.0, 5400.0, 2.0, 0.4),
        Bin(5400.0, 9000.0, None, None),
    ]
    found, each = pictures_of_time.together(bins * 1, 2, 5400.0)
    assert each == 10800.0
    assert [(b.kg, b.grid) for b in found] == [(3.0, pytest.approx(0.2))]
    alone, _ = pictures_of_time.together(
        [Bin(3600.0 * n, 3600.0 * n + 3600, None if n < 2 else 1.0, None) for n in range(4)],
        3,
        3600.0,
    )
    assert [b.kg for b in alone] == [None, 2.0]
    assert pictures_of_time.together(bins, 3, 1800.0) == (bins, 1800.0)


def test_emissions_in_words():
    bins = [
        Bin(START, START + 3600, 1.0, 0.1),
        Bin(START + 3600, START + 7200, 3.0, 0.4),
    ]
    assert (
        pictures_of_time.emissions_words(bins)
        == "2 bars from 2026-10-01T00:00:00Z to 2026-10-01T02:00:00Z; 4 kgCO2e in all, 1 to 3 a"
        " bar; grid factor 100 to 400 g/kWh"
    )


def test_bars_of_zero_are_drawn_and_unknown_ones_hollow():
    known = [Bin(3600.0 * n, 3600.0 * n + 3600, kg, 0.1) for n, kg in enumerate((1.0, 0.0, 2.0))]
    x = PlotScale(0.0, 10800.0, 0.0, 300.0)
    assert "hollow" not in "".join(pictures_of_time.bars(known, x, 0.0, 100.0))
    assert (
        "".join(pictures_of_time.bars([known[0]._replace(kg=None), *known], x, 0.0, 100.0)).count(
            "hollow"
        )
        == 1
    )
    saving = "".join(pictures_of_time.bars([known[0]._replace(kg=-5.0), known[2]], x, 0.0, 100.0))
    assert not re.search(r'(?<![xd])[yd]="-', saving)
    assert (
        max(
            float(y) + float(h)
            for y, h in re.findall(r'y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', saving)
        )
        <= 100.1
    )


def test_zero_emissions_are_drawn_and_unknown_ones_are_not():
    known, unknown = statement(grid=0.0), statement(grid=None)
    assert "0 kgCO2e in all" in words(pictures_of_time.emissions("", known.series, "", 2))
    assert pictures_of_time.emissions("", unknown.series, "", 2) is None
    lacking = words(pictures_of_time.emissions("", known.series, "storage writing", 2))
    assert "Not in it because unknown: storage writing." in lacking


def power(n, bands=(), **more):
    return PowerPlot(
        [float(i) for i in range(n)],
        [
            PlotLine("GPUs", [100.0 + i % 2 for i in range(n)], "W"),
            PlotLine("node", [None] * n, "W"),
        ],
        bands,
        **more,
    )


def test_a_range_is_shaded_where_both_of_its_ends_are_known():
    x, y = PlotScale(0.0, 3.0, 0.0, 3.0), PlotScale(0.0, 10.0, 10.0, 0.0)
    line = PlotLine("a", [1.0, 1.0, 1.0], "W", [0.0, None, 0.0], [5.0, 5.0, 5.0])
    shade, _ = pictures_of_time._line_with_range(1, [0.0, 1.0, 2.0], line, x, y)
    assert shade.count("Z") == 2


def test_a_save_holds_training_up_and_is_safe_later():
    assert SaveBand("a", 10.0, 12.0, 15.0).edges() == (10.0, 12.0, 15.0)
    assert SaveBand("b", 20.0, None, None).edges() == (20.0, 20.0, 20.0)
    assert SaveBand("c", 20.0, 30.0, 25.0).edges() == (20.0, 30.0, 30.0)


def test_power_in_words():
    bands = [SaveBand(f"save {n}", 10.0 * n, 10.0 * n + 1, 10.0 * n + 2) for n in range(40)]
    said = "GPUs from 100 to 101 W; node not known; 40 checkpoints"
    assert pictures_of_time.power_words(power(10, bands)) == said
    assert "save 0" in words(pictures_of_time.power("", power(1000, bands), 2))


def test_a_waterfall_steps_from_one_to_the_next():
    fall = Fall(
        "kWh",
        [FallStep("a", 30.0, "save"), FallStep("b", 10.0, "failure"), FallStep("c", None, "keep")],
        40.0,
        30.0,
        None,
    )
    assert reach(fall) == (0.0, 40.0)
    assert reach(fall._replace(high=1e9)) == (0.0, 320.0)
    assert reach(fall._replace(high=150.0)) == (0.0, 150.0)
    drawn = str(fall_figure(fall))
    assert "a saving 30 (75 %)" in words(drawn)
    assert "b failures 10 (25 %)" in words(drawn)
    assert "c keeping not known" in words(drawn)
    found = bars(drawn)
    assert found == [
        ("save", 0.0, 75.0),
        ("failure", 75.0, 25.0),
        ("total", 0.0, 100.0),
        ("range open", 75.0, 25.0),
    ]
    known = bars(str(fall_figure(fall._replace(low=40.0, high=40.0))))
    assert "range" not in " ".join(kind for kind, _, _ in known)


def test_a_total_of_zero_is_drawn_and_known():
    said = words(fall_figure(Fall("kWh", [FallStep("a", 0.0, "save")], 0.0, name="Energy")))
    assert said == "total, kWh 0 Energy, kWh : total 0 kWh; zero: a."


def curve(**more):
    xs = [600.0 * 1.5**n for n in range(10)]
    return IntervalPicture(
        xs,
        [PlotLine("cost", [float(10 - n) for n in range(10)], "USD")],
        **{"now_s": 3600.0, "best_s": {"a": 7200.0, "b": 7201.0, "c": 14400.0, "d": None}, **more},
    )


def test_what_a_curve_marks():
    assert [(w, c) for _, w, c in pictures.marks(curve())] == [
        ("in use", "now"),
        ("best for a, b", "best"),
        ("best for c", "best"),
    ]
    assert pictures.marks(curve(now_s=None, best_s={"x": float("inf"), "y": 0.0})) == []
    assert (
        pictures.curve_words(curve())
        == "cost from 1 to 10 USD. in use 1 h; best for a, b 2 h; best for c 4 h"
    )


def test_clocks_of_pictures_are_utc(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert clock(START, START + 4 * 3600, 4)[0][1] == "00:00"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_paths_break_where_nothing_is_known_and_scales_are_even():
    assert svg.path([(0.0, 0.0), None, (2.0, 2.0), (3.0, 3.0)]) == "M0 0h2M2 2L3 3"
    assert PlotScale(1.0, 100.0, 0.0, 10.0, log=True).at(10.0) == pytest.approx(5.0)
    assert svg.clip_words("x" * 50, 68.0) == "x" * 9 + "…"


def test_the_grids_factor_is_interrupted_where_it_is_not_known():
    bins = [Bin(3600.0 * n, 3600.0 * n + 3600, 1.0, None if n == 1 else 0.1) for n in range(3)]
    drawn = "".join(
        pictures_of_time.grid_line(bins, PlotScale(0.0, 10800.0, 0.0, 300.0), 0.0, 100.0)
    )
    assert re.search(r'd="(M[^"]*)" class="line l2 whole"', drawn)[1].count("M") == 2


def test_a_range_of_the_total_is_drawn_from_low_to_high():
    s = statement((100.0, 0.0, 0.0, 0.0, 0.0))
    energy = s.totals.energy.model_copy(update={"low": 50.0, "high": 125.0})
    whole = changed(s, totals=s.totals.model_copy(update={"energy": energy}))
    found = {
        kind: (begin, begin + wide)
        for kind, begin, wide in bars(str(fall_figure(sections.falls_of(whole)[0])))
    }
    assert found["total"] == (0.0, 80.0)
    assert found["range"] == (40.0, 100.0)
