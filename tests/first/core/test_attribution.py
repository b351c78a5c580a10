"""What a window cost a domain: timelines by hand, conservation over overlapping windows, and an
account second by second."""

from __future__ import annotations

from itertools import chain
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.attribution import (
    Baseline,
    RunPlace,
    attribute_energy,
    excess,
    in_turn,
    mean_w,
    opportunity,
    own_cost,
    power,
    provenance,
    spent,
    training_power,
)
from ckptcost.first.core.channels import Channel, Mark
from ckptcost.first.core.phases import windows_of
from ckptcost.first.core.reconcile import NONE_SPENT, Energy, unknown
from ckptcost.first.core.windows import Phase, extent, union


def all_costs(*given, **more):
    return list(chain.from_iterable(attribute_energy(*given, **more)))


class Meter:
    """Exact joules of power that is constant in each second, give or take `off_j` at a window;
    seconds of NaN are gaps."""

    def __init__(self, watts: list[float], off_j: float = 0.0) -> None:
        self.watts, self.off_j = watts, off_j

    def __call__(self, domain: str, begin_s: float, end_s: float) -> Energy:
        if domain == "absent":
            return Energy(nan, nan, nan, nan)
        joules = known_s = 0.0
        for second, watts in enumerate(self.watts):
            overlap_s = min(end_s, second + 1.0) - max(begin_s, float(second))
            if overlap_s > 0 and not isnan(watts):
                joules, known_s = joules + watts * overlap_s, known_s + overlap_s
        return Energy(joules, joules - self.off_j, joules + self.off_j, known_s / (end_s - begin_s))


def windows(*spans: tuple[float, float, float]):
    """Windows of (begin, returned, durable)."""
    names = ("begin", "returned", "durable")
    return windows_of(
        Mark(at, name, f"step {n}")
        for n, span in enumerate(spans)
        for name, at in zip(names, span, strict=True)
    )


ASYNC = [500.0] * 100 + [120.0] * 10 + [530.0] * 40 + [500.0] * 50
"""training, a stall, a drain that takes 30 W more, training"""
IDLE = Baseline(80.0, 78.0, 82.0, taken_s=0.0, host="a", driver="590.48.01")


def test_an_asynchronous_save():
    (cost,) = all_costs(
        windows((100.0, 110.0, 150.0)), ["gpu:0"], Meter(ASYNC), 0.0, {"gpu:0": IDLE}
    )
    assert (cost.window, cost.domain) == ("step 0", "gpu:0")
    assert cost.absolute.value == 10 * 120 + 40 * 530
    assert cost.share == cost.absolute
    assert cost.excess[:3] == (22_400 - 50 * 80, 22_400 - 50 * 82, 22_400 - 50 * 78)
    assert (cost.stall.value, cost.drain.value) == (1200, 21_200)
    assert cost.training_w.value == pytest.approx(500.0)
    assert cost.extra.value == pytest.approx(1200.0)
    assert cost.overlap_s == 40.0
    assert cost.stall.value + cost.drain.value == cost.absolute.value


def test_ranges_widen_and_a_difference_within_them_is_said_to_be_none():
    (cost,) = all_costs(
        windows((100.0, 110.0, 150.0)), ["gpu:0"], Meter(ASYNC, off_j=300.0), 0.0, {"gpu:0": IDLE}
    )
    assert cost.excess[:3] == (18_400, 18_300 - 300, 18_500 + 300)
    # the reference is of 60 s: 5 W either way, 200 J over the drain
    assert cost.training_w[:3] == pytest.approx((500.0, 485.0, 515.0))
    assert cost.extra[:3] == pytest.approx((1200.0, 300.0, 2100.0))
    assert "NOT_DISTINGUISHABLE" not in cost.extra.flags + cost.excess.flags
    (cost,) = all_costs(windows((100.0, 110.0, 150.0)), ["gpu:0"], Meter(ASYNC, off_j=1200.0), 0.0)
    assert cost.extra.low < 0 < cost.extra.high
    assert cost.extra.flags == ("NOT_DISTINGUISHABLE",)


def test_a_drain_that_slows_training_has_negative_extra():
    slowed = ASYNC[:110] + [450.0] * 40
    (cost,) = all_costs(windows((100.0, 110.0, 150.0)), ["gpu:0"], Meter(slowed), 0.0)
    assert cost.extra[:3] == pytest.approx((-2000.0,) * 3)
    assert cost.extra.flags == ()


def test_a_synchronous_save_drains_nothing():
    (cost,) = all_costs(windows((100.0, 110.0, 109.0)), ["gpu:0"], Meter(ASYNC), 0.0)
    assert (cost.absolute.value, cost.stall.value, cost.drain, cost.extra, cost.overlap_s) == (
        1200,
        1200,
        NONE_SPENT,
        NONE_SPENT,
        0.0,
    )


def test_unknown_has_its_reason():
    begin, returned, durable = (
        Mark(at, name, "w")
        for at, name in ((100.0, "begin"), (110.0, "returned"), (150.0, "durable"))
    )

    def why(*marks: Mark, domain: str = "gpu:0", since_s: float = 0.0) -> tuple[str, ...]:
        (cost,) = all_costs(windows_of(marks), [domain], Meter(ASYNC), since_s)
        return tuple(
            e.why
            for e in (
                cost.absolute,
                cost.share,
                cost.excess,
                cost.stall,
                cost.drain,
                cost.training_w,
                cost.extra,
            )
        )

    assert why(begin, returned, durable) == ("", "", "NO_BASELINE", "", "", "", "")
    assert why(begin, returned) == (
        "NOT_MARKED",
        "NOT_MARKED",
        "NOT_MARKED",
        "",
        "NOT_MARKED",
        "",
        "NOT_MARKED",
    )
    assert why(begin, durable) == (
        "",
        "",
        "NO_BASELINE",
        "NOT_MARKED",
        "NOT_MARKED",
        "",
        "NOT_MARKED",
    )
    assert why(begin) == (
        "UNFINISHED",
        "UNFINISHED",
        "UNFINISHED",
        "UNFINISHED",
        "UNFINISHED",
        "",
        "UNFINISHED",
    )
    assert why(returned, durable) == (
        "NO_BEGIN",
        "NO_BEGIN",
        "NO_BEGIN",
        "NO_BEGIN",
        "NO_BEGIN",
        "NO_TRAINING_REFERENCE",
        "NO_BEGIN",
    )
    assert why(begin, returned, durable, since_s=99.5)[-2:] == ("NO_TRAINING_REFERENCE",) * 2
    assert why(begin, returned, durable, domain="absent") == (
        "NO_READING",
        "NO_READING",
        "NO_READING",
        "NO_READING",
        "NO_READING",
        "NO_READING",
        "NO_READING",
    )
    assert all(isnan(unknown("X")[n]) for n in range(3))


def test_the_training_reference_is_of_the_minute_before_and_of_no_window():
    drifting = [400.0] * 40 + [500.0] * 60 + ASYNC[100:]
    (cost,) = all_costs(windows((100.0, 110.0, 150.0)), ["gpu:0"], Meter(drifting), 0.0)
    assert cost.training_w.value == pytest.approx(500.0)
    # the second save begins while the first drains: its reference lies before both
    first, second = all_costs(
        windows((100.0, 110.0, 150.0), (120.0, 121.0, 140.0)), ["gpu:0"], Meter(drifting), 0.0
    )
    assert second.training_w == first.training_w


def test_another_windows_stall_is_not_training():
    watts = [500.0] * 110 + [530.0] * 10 + [100.0] * 5 + [530.0] * 25
    first, second = all_costs(
        windows((100.0, 110.0, 150.0), (120.0, 125.0, 124.0)), ["gpu:0"], Meter(watts), 0.0
    )
    assert (first.overlap_s, second.overlap_s) == (35.0, 0.0)
    assert first.extra.value == pytest.approx(35 * 30)
    first, _ = all_costs(
        windows((100.0, 110.0, 115.0), (110.0, 120.0, 120.0)), ["gpu:0"], Meter(watts), 0.0
    )
    assert first.extra.why == "OTHERS_STALL"


def test_windows_that_drain_together_divide_what_they_add():
    watts = [500.0] * 100 + [540.0] * 100
    first, second = all_costs(
        windows((100.0, 100.0, 120.0), (110.0, 110.0, 130.0)), ["gpu:0"], Meter(watts), 0.0
    )
    assert (first.extra.value, second.extra.value) == pytest.approx(
        (10 * 40 + 10 * 20, 10 * 20 + 10 * 40)
    )
    assert first.share.value == pytest.approx(10 * 540 + 10 * 270)
    assert first.share.flags == ("SHARED",)
    assert first.absolute.flags == ()


def test_a_thousand_saves_ask_the_meter_a_few_times_each():
    asked = []

    def steady(domain, begin_s, end_s):
        asked.append(end_s - begin_s)
        return Energy(500.0 * (end_s - begin_s), 0.0, 1e9)

    saves = windows(*((100.0 * n, 100.0 * n + 2.0, 100.0 * n + 130.0) for n in range(1, 1001)))
    costs = all_costs(saves, ["gpu:0"], steady, 0.0)
    assert len(asked) <= 11 * len(saves)
    assert {round(cost.overlap_s) for cost in costs[:-1]} == {
        126
    }  # the stall of the next one is not training
    assert costs[500].share.value == pytest.approx(500.0 * 100.0)


TIMES = st.tuples(st.integers(1, 30), st.integers(0, 8), st.integers(0, 12)).map(
    lambda t: (float(t[0]), float(t[0] + t[1]), float(t[0] + t[2]))
)
WATTS = st.lists(st.integers(50, 700).map(float), min_size=45, max_size=45)


@given(st.lists(TIMES, min_size=1, max_size=5), WATTS, st.integers(0, 20))
def test_shares_add_up_to_the_union(spans, watts, off_j):
    found = windows(*spans)
    meter = Meter(watts, float(off_j))
    costs = all_costs(found, ["gpu:0"], meter, 0.0)
    together = spent(meter, "gpu:0", union(extent(window) for window in found))
    assert sum(cost.share.value for cost in costs) == pytest.approx(together.value)
    for cost in costs:
        assert cost.share.low <= cost.share.value <= cost.share.high
        assert cost.share.value <= cost.absolute.value + 1e-9


class Plain(NamedTuple):
    share_j: float
    extra_j: float
    overlap_s: float


def second_by_second(spans, watts, n) -> Plain:
    """One window's share and its drain's extra, each second on its own; its reference is told, not
    sought."""
    stalled = {s for begin, returned, _ in spans for s in range(int(begin), int(returned))}
    share = extra = overlap = 0.0
    for second in range(45):
        open_here = [k for k, (b, r, d) in enumerate(spans) if b <= second < max(r, d)]
        drain_here = [
            k for k, (_, r, d) in enumerate(spans) if r <= second < d and second not in stalled
        ]
        if n in open_here:
            share += watts[second] / len(open_here)
        if n in drain_here:
            extra += (watts[second] - 500.0) / len(drain_here)
            overlap += 1.0
    return Plain(share, extra, overlap)


@given(st.lists(TIMES.map(lambda t: tuple(x + 2.0 for x in t)), min_size=1, max_size=4), WATTS)
def test_share_and_extra_second_by_second(spans, watts):
    watts = [500.0] * int(min(span[0] for span in spans)) + watts
    found = windows(*spans)
    order = [int(window.label.split()[1]) for window in found]
    costs = all_costs(found, ["gpu:0"], Meter(watts[:45]), 0.0)
    for n, cost in zip(order, costs, strict=True):
        plain = second_by_second(spans, watts, n)
        assert cost.share.value == pytest.approx(plain.share_j)
        if cost.training_w.value == pytest.approx(500.0, abs=1e-9) and cost.extra.known:
            assert cost.extra.value == pytest.approx(plain.extra_j, abs=1e-6)
            assert cost.overlap_s == plain.overlap_s


# ---- gaps -----------------------------------------------------------------------------------


def test_a_gap_is_in_neither_side_of_a_difference():
    watts = ASYNC[:120] + [nan] * 10 + ASYNC[130:]
    (cost,) = all_costs(
        windows((100.0, 110.0, 150.0)), ["gpu:0"], Meter(watts), 0.0, {"gpu:0": IDLE}
    )
    assert (cost.absolute.value, cost.absolute.coverage, cost.absolute.flags) == (
        1200 + 30 * 530,
        0.8,
        ("GAPS",),
    )
    assert cost.excess.value == pytest.approx(1200 + 30 * 530 - 40 * 80)
    assert cost.extra.value == pytest.approx(30 * 30)
    assert cost.extra.coverage == pytest.approx(0.75)


def test_a_window_that_lies_in_a_gap_has_no_joules_rather_than_none():
    (cost,) = all_costs(
        windows((100.0, 110.0, 150.0)), ["gpu:0"], Meter(ASYNC[:100] + [nan] * 100), 0.0
    )
    assert isnan(cost.absolute.value)
    assert cost.absolute.why == "NO_READING"


def test_power_is_of_the_covered_time():
    assert mean_w(Energy(600.0, 500.0, 700.0, 0.5), 4.0)[:3] == (300.0, 250.0, 350.0)
    assert mean_w(unknown("RESET"), 4.0).why == "RESET"
    assert mean_w(NONE_SPENT, 0.0).why == "NO_TIME"
    assert (
        in_turn([(Energy(1.0, 1.0, 1.0, 1.0), 3.0), (Energy(1.0, 1.0, 1.0, 0.5), 1.0)]).coverage
        == 0.875
    )
    assert in_turn([]) == NONE_SPENT


# ---- the baseline ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "flags"),
    [
        (None, ()),
        (RunPlace("a", "590.48.01", 29 * 86400.0), ()),
        (RunPlace("b", "590.48.01", 0.0), ("BASELINE_OF_OTHER_HOST",)),
        (RunPlace("a", "570.1", 0.0), ("BASELINE_OF_OTHER_DRIVER",)),
        (RunPlace("a", "590.48.01", 31 * 86400.0), ("BASELINE_OLD",)),
        (
            RunPlace("b", "570.1", -31 * 86400.0),
            ("BASELINE_OF_OTHER_HOST", "BASELINE_OF_OTHER_DRIVER", "BASELINE_OLD"),
        ),
        (RunPlace(), ()),
    ],
)
def test_whose_baseline_it_is(place, flags):
    seen = excess(Energy(1000.0, 1000.0, 1000.0), 10.0, IDLE, place)
    assert seen[:3] == (200.0, 180.0, 220.0)
    assert seen.flags == flags


def test_a_baseline_without_date_range_or_value():
    absolute = Energy(1000.0, 1000.0, 1000.0)
    assert excess(absolute, 10.0, Baseline(80.0, 78.0, 82.0), RunPlace("a")).flags == (
        "BASELINE_UNDATED",
    )
    assert excess(absolute, 10.0, Baseline(80.0, nan, nan))[:3] == (200.0, -inf, inf)
    assert (
        excess(absolute, 10.0, Baseline(nan, nan, nan)).why
        == excess(absolute, 10.0, None).why
        == "NO_BASELINE"
    )
    assert excess(Energy(790.0, 780.0, 800.0), 10.0, IDLE).flags == ("NOT_DISTINGUISHABLE",)
    assert excess(unknown("RESET"), 10.0, IDLE).why == "RESET"


# ---- standing still -------------------------------------------------------------------------


def test_gpu_seconds_of_a_stall_and_of_waiting_for_the_straggler():
    spans = [(0.0, 4.0), (1.0, 5.0), (0.0, 11.0)]
    marks = [
        Mark(at, name, "w", rank)
        for rank, span in enumerate(spans)
        for name, at in zip(("begin", "returned"), span, strict=True)
    ]
    (save,) = windows_of(marks)
    assert opportunity(save, 24.0) == (24 * 11, 8 * 7 + 8 * 6, "")
    assert opportunity(save, 24.0, {0: 4.0, 1: 4.0, 2: 16.0})[:2] == (24 * 11, 4 * 7 + 4 * 6)
    (lost,) = windows_of(marks[:-1])
    assert isnan(opportunity(lost, 24.0).stalled_gpu_s)
    assert opportunity(lost, 24.0).why == "RANK_MISSING"


# ---- watts of a phase -----------------------------------------------------------------------


def test_mean_and_peak_of_a_phase():
    watts = [100.0, 300.0, 700.0, 300.0, 100.0, 200.0]
    seen = power(Meter(watts), "gpu:0", Phase("stall", 0.0, 6.0))
    assert (seen.mean_w.value, seen.peak_w, seen.peak_over_s) == (
        pytest.approx(1700 / 6),
        700.0,
        1.0,
    )
    assert power(Meter(watts), "gpu:0", Phase("stall", 0.0, 6.0), bin_s=3.0)[1:] == (
        pytest.approx(1100 / 3),
        3.0,
    )
    assert power(Meter(watts), "gpu:0", Phase("stall", 2.0, 2.25))[1:] == (700.0, 0.25)
    # the last bin ends with the phase: [3.5, 4.5], [4.5, 5.5], [4.7, 5.7]
    assert power(Meter(watts), "gpu:0", Phase("drain", 3.5, 5.7))[1:] == (pytest.approx(200.0), 1.0)
    nothing = power(Meter(watts), "gpu:0", Phase("drain", 2.0, 2.0))
    assert (nothing.mean_w.why, nothing.peak_over_s) == ("NO_TIME", 0.0)
    assert isnan(nothing.peak_w)


def test_a_bin_with_a_gap_has_no_peak():
    seen = power(Meter([100.0, nan, 200.0]), "gpu:0", Phase("drain", 0.0, 3.0))
    assert (seen.mean_w.value, seen.peak_w) == (pytest.approx(150.0), 200.0)
    assert isnan(power(Meter([nan, nan]), "gpu:0", Phase("drain", 0.0, 2.0)).peak_w)


@given(WATTS, st.floats(0.0, 20.0), st.floats(0.01, 25.0), st.floats(0.1, 5.0))
def test_no_mean_is_above_the_peak(watts, begin_s, length_s, bin_s):
    seen = power(Meter(watts), "gpu:0", Phase("drain", begin_s, begin_s + length_s), bin_s)
    assert seen.mean_w.value <= seen.peak_w * (1 + 1e-9)
    assert seen.peak_w <= max(watts) * (1 + 1e-9)
    assert seen.peak_over_s <= max(bin_s, length_s)


def test_a_long_phase_has_wider_bins_and_says_so():
    calls = []

    def steady(domain, begin_s, end_s):
        calls.append(1)
        return Energy(5.0 * (end_s - begin_s), nan, nan)

    seen = power(steady, "gpu:0", Phase("drain", 0.0, 1e6))
    assert seen.peak_over_s == pytest.approx(1e6 / 4096)
    assert seen.peak_w == pytest.approx(5.0)
    assert len(calls) <= 4098


# ---- provenance and own cost ----------------------------------------------------------------


def test_everything_that_is_known_of_a_sensor_stands_beside_its_joules():
    class Amount(NamedTuple):
        value: float = 5.0
        low: float = 4.0
        high: float = 6.0
        coverage: float = 0.9
        ticks: int = 12
        gaps: tuple[str, ...] = ("one",)
        resolved_s: float = 0.1

    channel = Channel(
        "gpu:0",
        "energy_j",
        "NVML field 83",
        "gpu",
        device="GPU-a",
        tick_s=0.1,
        averaging_s=0.025,
        looks=0.25,
        accuracy=0.05,
        note="n",
    )
    assert provenance(channel, Amount(), "590.48.01", tick_s=0.02) == (
        "gpu:0",
        "energy_j",
        "NVML field 83",
        "gpu",
        "node",
        "measured",
        "GPU-a",
        "590.48.01",
        0.02,
        0.025,
        0.25,
        0.05,
        0.9,
        12,
        1,
        0.1,
        "n",
    )
    bare = provenance(channel, Energy(5.0, 4.0, 6.0))
    assert (bare.tick_s, bare.coverage, bare.ticks, bare.gaps, bare.resolved_s) == (
        0.1,
        1.0,
        None,
        None,
        None,
    )


def test_own_joules_are_between_an_even_share_and_the_busy_cores():
    assert own_cost(2.0, 200.0, 64, busy_cores=10.0, idle_w=80.0) == (
        24.0,
        6.25,
        40.0,
        1.0,
        "",
        ("MODELLED",),
    )
    assert own_cost(2.0, 200.0, 64, busy_cores=10.0)[:3] == (40.0, 6.25, 40.0)
    # nothing else known: an even share, and at most the whole package
    assert own_cost(2.0, 200.0, 64)[:3] == (6.25, 6.25, 400.0)
    # a nearly idle machine: our own core is busy while we run
    assert own_cost(2.0, 50.0, 64, busy_cores=0.01, idle_w=48.0)[:3] == (4.0, 1.5625, 100.0)
    assert own_cost(2.0, 40.0, 64, busy_cores=1.0, idle_w=48.0)[:2] == (0.0, 0.0)
    assert own_cost(0.0, 200.0, 64)[:3] == (0.0, 0.0, 0.0)


def test_own_joules_that_nobody_can_tell():
    assert own_cost(2.0, nan, 64).why == "NO_PACKAGE_METER"
    assert own_cost(nan, 200.0, 64).why == own_cost(2.0, 200.0, 0).why == "NO_CPU_TIME"


@given(
    st.floats(0.0, 1e4),
    st.floats(0.0, 1e3),
    st.integers(1, 256),
    st.floats(0.0, 256.0) | st.just(nan),
    st.floats(0.0, 1e3) | st.just(nan),
)
def test_own_joules_are_never_more_than_the_package(cpu_s, package_w, cores, busy, idle):
    seen = own_cost(cpu_s, package_w, cores, busy, idle)
    assert 0.0 <= seen.low <= seen.value <= seen.high <= cpu_s * package_w * (1 + 1e-12)


def test_training_is_the_mean_and_its_range_holds_what_a_drain_may_meet():
    """600 W, and 300 W in the last second of each three."""

    def curve(domain, t_s):
        whole, rest = np.divmod(t_s, 3.0)
        return 1500.0 * whole + 600.0 * np.minimum(rest, 2.0) + 300.0 * np.maximum(rest - 2.0, 0.0)

    def joules(domain, begin_s, end_s):
        value = float(curve(domain, np.float64(end_s)) - curve(domain, np.float64(begin_s)))
        return Energy(value, value - 1.0, value + 1.0)

    short = training_power(joules, curve, "gpu:0", (0.0, 18.0), 1.0)
    assert short.value == pytest.approx(500.0)
    assert (short.low, short.high) == pytest.approx((300.0 - 1 / 18, 600.0 + 1 / 18), abs=5.0)
    steps = training_power(joules, curve, "gpu:0", (0.0, 18.0), 3.0)
    assert (steps.low, steps.high) == pytest.approx((500.0, 500.0), abs=0.2), (
        "whole steps are all alike"
    )
    assert training_power(joules, None, "gpu:0", (0.0, 18.0), 1.0)[:3] == pytest.approx(
        (500.0, 500 - 1 / 18, 500 + 1 / 18)
    )
    unknown_curve = training_power(
        joules, lambda d, t: np.full(len(t), np.nan), "gpu:0", (0.0, 18.0), 1.0
    )
    assert unknown_curve[:3] == pytest.approx((500.0, 500 - 1 / 18, 500 + 1 / 18))


def test_only_the_last_seconds_before_a_save_are_its_reference():
    meter = Meter([80.0] * 30 + [500.0] * 100)
    saves = windows_of([Mark(60.0, "begin"), Mark(61.0, "returned"), Mark(70.0, "durable")])
    (cost,) = all_costs(saves, ["gpu:0"], meter, since_s=0.0)
    assert cost.training_w.value == pytest.approx(500.0)
