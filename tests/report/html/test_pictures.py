"""What is drawn is what the numbers say: lengths of bars, sums kept when rows are gathered, gaps
left open, and no odd input breaks one."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statements import statement

from ckptcost.report.html import svg_curve, svg_emissions, svg_power
from ckptcost.report.html.extras import Band, Curve, Line, Power
from ckptcost.report.html.markup import join
from ckptcost.report.html.svg_axis import NARROW, WIDE, clock, decades, rows_of, steps, times
from ckptcost.report.html.svg_waterfall import Fall, Step, drawn, reach

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
    found = re.findall(
        r'<rect x="([^"]+)" y="[^"]+" width="([^"]+)" height="(?:17|13)" class="f-(\w+)"', markup
    )
    return [(kind, float(x), float(wide)) for x, wide, kind in found]


def check_fall(fall: Fall, markup: str) -> None:
    """Raises where a bar is not as long as its number, or does not begin where the one before
    ended."""
    *parts, (kind, begin, whole) = bars(markup)
    known = [step.value for step in fall.steps if step.value is not None]
    assert kind == "total"
    assert len(parts) == len(known)
    at = begin
    for (_, x, wide), value in zip(parts, known, strict=True):
        assert x == pytest.approx(at, abs=0.2)
        assert wide / whole == pytest.approx(value / math.fsum(known), abs=0.005)
        at = x + wide


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_bars_are_as_long_as_their_numbers(width):
    fall = Fall(
        "kWh",
        [
            Step("a", 100.0, "save"),
            Step("b", None, "save"),
            Step("c", 250.0, "failure"),
            Step("d", 50.0, "keep"),
        ],
        400.0,
        300.0,
        500.0,
    )
    markup = judge(*drawn(fall, width), width)
    check_fall(fall, markup)
    assert "not known" in markup
    with pytest.raises(AssertionError):
        check_fall(fall._replace(steps=[*fall.steps[:-1], Step("d", 50_000.0, "keep")]), markup)
    with pytest.raises(AssertionError):
        check_fall(fall._replace(steps=fall.steps[1:]), markup)


def test_a_wide_range_does_not_squeeze_the_steps():
    assert reach(Fall("kWh", [Step("a", 10.0, "save")], 10.0, 1.0, 1e9)) == (0.0, 80.0)
    assert reach(Fall("kWh", [Step("a", 10.0, "save")], 10.0, 1.0, 70.0)) == (0.0, 70.0)
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
        [Step("x", v, "save") for v in values],
        math.fsum(known) if known else None,
        low,
        high,
    )
    for width in (WIDE, NARROW):
        judge(*drawn(fall, width), width)


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
    curve = Curve(
        [x for x, _, _ in rows],
        [Line("a", [a for _, a, _ in rows], "USD"), Line("b", [b for _, _, b in rows], "kWh")],
        now,
        {"time": best},
    )
    for width in (WIDE, NARROW):
        judge(*svg_curve.drawn(curve, width), width)
    assert "nan" not in svg_curve.in_words(curve)


def test_best_intervals_that_are_one_share_a_line():
    curve = Curve(
        [600.0, 60_000.0],
        [Line("a", [1.0, 2.0])],
        7200.0,
        {"time": 53_000.0, "usd": 53_010.0, "energy": 44_000.0, "carbon": None},
    )
    assert svg_curve.rules(curve) == [
        (7200.0, "in use", "now"),
        (44_000.0, "best for energy", "best"),
        (53_000.0, "best for time, usd", "best"),
    ]


def test_a_gap_in_a_curve_is_not_drawn_over():
    _, inside = svg_curve.drawn(
        Curve([1.0, 2.0, 3.0, 4.0, 5.0], [Line("a", [1.0, 2.0, None, 2.0, 1.0])]), WIDE
    )
    (path,) = [
        d for d in re.findall(r'd="([^"]+)" class="line l1"', join([inside])) if d.count("L") > 1
    ]
    assert path.count("M") == 2


power_rows = st.lists(st.tuples(AMOUNT, AMOUNT), min_size=1, max_size=700)


@given(
    power_rows,
    st.booleans(),
    st.one_of(st.none(), st.floats(0, 500)),
    st.one_of(st.none(), st.floats(0, 500)),
)
@settings(max_examples=40, deadline=None)
def test_any_power_is_drawn(rows, stacked, stall, durable):
    rows = [
        (a if a is None or a >= 0 or a != a else -a, b if b is None or b >= 0 or b != b else -b)
        for a, b in rows
    ]
    lines = [Line("a", [a for a, _ in rows], "W"), Line("b", [b for _, b in rows], "W")]
    bands = [
        Band(
            "one",
            3.0,
            None if stall is None else 3.0 + stall,
            None if durable is None else 3.0 + durable,
        )
    ]
    power = Power([float(n) for n in range(len(rows))], lines, stacked, bands)
    for width in (WIDE, NARROW):
        judge(*svg_power.drawn(power, width), width)
    assert "nan" not in svg_power.in_words(power)


def test_thinned_power_keeps_its_mean_its_ends_and_its_gap():
    values: list[float | None] = [float(n % 7) for n in range(10_000)]
    values[5000] = 100.0
    values[2000:2100] = [None] * 100
    thin = svg_power.thinned(Power([float(n) for n in range(10_000)], [Line("a", values)]))
    assert len(thin.t_s) == svg_power.MOST_POINTS
    assert max(v for v in thin.highs[0] if v is not None) == 100.0
    assert 4 <= sum(v is None for v in thin.means[0]) <= 6
    known = [v for v in thin.means[0] if v is not None]
    assert math.fsum(known) / len(known) == pytest.approx(3.0, rel=0.02)


def test_where_one_part_is_unknown_no_sum_is_drawn():
    power = Power(
        [0.0, 1.0, 2.0, 3.0, 4.0],
        [Line("a", [1.0, 1.0, None, 1.0, 1.0]), Line("b", [2.0] * 5)],
        True,
    )
    assert svg_power._stacked([each.values for each in power.lines]) == [
        [1.0, 1.0, None, 1.0, 1.0],
        [3.0, 3.0, None, 3.0, 3.0],
    ]


def test_checkpoints_in_words():
    assert svg_power.band_rows(
        [Band("first", 300.0, 340.0, 450.0), Band("open", 900.0, None, None)]
    ) == [
        ("first", "5 min", "40 s", "150 s"),
        ("open", "15 min", "-", "-"),
    ]


@pytest.mark.parametrize("rows", [1, 2, 300, 500, 501, 3000])
def test_gathered_rows_add_up_to_the_same(rows):
    s = statement(rows=rows)
    bins = svg_emissions.hours(s.series)
    assert len(bins) == rows
    assert math.isclose(
        math.fsum(b.kg for b in bins), s.totals.emissions_location.value, rel_tol=1e-9
    )
    for most in (svg_emissions.MOST_BARS, svg_emissions.MOST_NARROW):
        some, each_s = svg_emissions.gathered(bins, most, 3600.0)
        assert len(some) <= most
        assert each_s % 3600 == 0
        assert math.isclose(
            math.fsum(b.kg for b in some), s.totals.emissions_location.value, rel_tol=1e-9
        )
        assert all(a.end_s == b.begin_s for a, b in pairwise(some))
    for width in (WIDE, NARROW):
        judge(*svg_emissions.drawn(bins, 3600.0, width), width)


def test_unknown_hours_are_shaded_and_not_zero():
    s = statement(rows=4)
    kg = [
        None if start == sorted(set(s.series.start))[1] else v
        for start, v in zip(s.series.start, s.series.emissions_location_kgco2e, strict=True)
    ]
    bins = svg_emissions.hours(s.series.model_copy(update={"emissions_location_kgco2e": kg}))
    assert [b.kg is None for b in bins] == [False, True, False, False]
    markup = judge(*svg_emissions.drawn(bins, 3600.0, WIDE), WIDE)
    assert markup.count('class="hollow"') == 2  # the hour, and its swatch


def test_instants_with_fractions_and_without_a_factor():
    s = statement(begin=1790812800.25, grid=0.0)
    assert svg_emissions.hours(s.series)[0].begin_s == 1790812800.25
    judge(*svg_emissions.drawn(svg_emissions.hours(s.series), 3600.0, WIDE), WIDE)


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
    ranged = Line("GPUs", [100.0, 110.0], "W", [90.0, 105.0], [105.0, 130.0])
    thin = svg_power.thinned(Power([0.0, 1.0], [ranged]))
    assert (thin.lows[0], thin.highs[0]) == ([90.0, 105.0], [105.0, 130.0])
    assert (
        svg_power.in_words(Power([0.0, 1.0], [ranged]))
        == "GPUs from 100 to 110 W (each mean +-20 W or less)"
    )
    many = Line("a", [100.0] * 1000, "W", [90.0] * 1000, [130.0] * 1000)
    few = svg_power.thinned(Power([float(n) for n in range(1000)], [many]), 100)
    assert (few.lows[0][5], few.highs[0][5]) == (90.0, 130.0)
    bare = svg_power.thinned(Power([0.0, 1.0], [Line("a", [1.0, 2.0])]))
    assert bare.lows[0] == bare.means[0]
