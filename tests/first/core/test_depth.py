"""Queue depth and rates: a vendor's published trace, Little's law on a queue simulated request by
request, and gaps."""

from __future__ import annotations

import random
from math import ceil, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import Series, series
from ckptcost.first.core.depth import growth, line, over, queue_counts, wait_s

TIB, GIB, KIB = 2.0**40, 2.0**30, 2.0**10
TRACE_BYTES, TRACE_S, TRACE_WRITES = 39.54 * TIB, 28_295.0, 340_970_988.0
"""the trace of micron-2026-sdc: also 710 reads, 1.43 GiB/s mean, 3.84 GiB/s peak, depth 342 mean,
767 peak"""
MS_WRAP_S = 2.0**32 / 1000.0


def counters(**rates: list[float]) -> dict:
    """Counters that grow by so much in each second."""
    return {
        name: series(range(len(steps) + 1), np.concatenate([[0.0], np.cumsum(steps)]))
        for name, steps in rates.items()
    }


# ---- published ------------------------------------------------------------------------------


def test_what_the_slide_says_follows_from_what_it_says():
    assert round(TRACE_BYTES / TRACE_S / GIB, 2) == 1.43
    assert round(TRACE_BYTES / TRACE_WRITES / KIB, 1) == 124.5
    assert round(wait_s(342.0, TRACE_WRITES / TRACE_S) * 1e3, 1) == 28.4


def test_the_published_trace_from_counters():
    """Bursts at the peak rate and depth, one in a few seconds; the rest is even. The queue counter
    wraps as the kernel's does."""
    seconds = int(TRACE_S)
    burst = np.arange(seconds) % 5 == 2

    def shaped(total: float, peak: float) -> np.ndarray:
        rest = (total - peak * burst.sum()) / (seconds - burst.sum())
        return np.where(burst, peak, rest)

    disk = counters(
        written_bytes=shaped(TRACE_BYTES, 3.84 * GIB),
        queue_s=shaped(342.0 * TRACE_S, 767.0),
        writes=np.full(seconds, TRACE_WRITES / TRACE_S),
        reads=np.full(seconds, 710.0 / TRACE_S),
    )
    assert (
        disk["queue_s"].value[-1] > 2 * MS_WRAP_S
    )  # twice round in 8 hours: a depth of hundreds wraps 32 bits of milliseconds
    disk["queue_s"] = series(disk["queue_s"].t_s, disk["queue_s"].value % MS_WRAP_S)
    seen = over(disk, 0.0, TRACE_S, wraps_at={"queue_s": MS_WRAP_S})
    assert round(seen.write_bytes_per_s / GIB, 2) == 1.43
    assert round(seen.peak_write_bytes_per_s / GIB, 2) == 3.84
    assert seen.written_bytes == pytest.approx(TRACE_BYTES)
    assert (round(seen.mean_depth), round(seen.peak_depth)) == (342, 767)
    assert round(seen.writes) == TRACE_WRITES
    assert round(seen.mean_write_bytes / KIB, 1) == 124.5
    assert round(seen.wait_s * 1e3, 1) == 28.4
    assert (seen.coverage, seen.gaps, seen.peak_over_s) == (1.0, 0, 1.0)
    # not told of the wraps, two seconds are unknown and nothing else changes
    untold = over(disk, 0.0, TRACE_S)
    assert untold.gaps == 2
    assert untold.coverage == pytest.approx(1 - 2 / TRACE_S)
    assert (
        round(untold.mean_depth),
        round(untold.peak_depth),
        round(untold.write_bytes_per_s / GIB, 2),
    ) == (342, 767, 1.43)


# ---- Little's law, request by request -------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_queue_request_by_request(seed):
    chance = random.Random(seed)
    requests = [
        (begin, begin + chance.uniform(0.001, 0.8), chance.choice([4096, 131_072]))
        for begin in (chance.uniform(0, 29) for _ in range(400))
    ]
    ticks = np.arange(0.0, 30.001, 0.05)

    def at(tick: float) -> tuple[float, float, float, float]:
        started = [(b, min(e, tick)) for b, e, _ in requests if b < tick]
        done = [size for _, e, size in requests if e <= tick]
        inside = sum(b <= tick < e for b, e, _ in requests)
        return sum(e - b for b, e in started), float(len(done)), float(sum(done)), float(inside)

    queue_s, writes, written, inside = (
        np.array(column) for column in zip(*map(at, ticks), strict=True)
    )
    disk = {
        name: series(ticks, of)
        for name, of in (
            ("queue_s", queue_s),
            ("writes", writes),
            ("written_bytes", written),
            ("in_flight", inside),
        )
    }
    seen = over({**disk, "reads": series(ticks, 0.0 * ticks)}, 0.0, 30.0)
    assert seen.wait_s == pytest.approx(np.mean([e - b for b, e, _ in requests]))
    assert seen.mean_depth == pytest.approx(sum(e - b for b, e, _ in requests) / 30.0)
    assert seen.mean_write_bytes == pytest.approx(np.mean([size for *_, size in requests]))
    assert seen.most_in_flight == inside.max()
    assert seen.mean_depth <= seen.peak_depth <= inside.max() + 1


# ---- means and peaks ------------------------------------------------------------------------


def test_a_rate_is_bytes_over_seconds_and_not_a_mean_of_rates():
    disk = {"written_bytes": series([0.0, 1.0, 10.0], [0.0, 900.0, 900.0])}
    assert over(disk, 0.0, 10.0).write_bytes_per_s == 90.0


def test_readings_at_uneven_times_weigh_by_time():
    disk = {"queue_s": series([0.0, 0.1, 4.0], [0.0, 10.0, 10.0])}
    assert over(disk, 0.0, 4.0).mean_depth == 2.5


def test_a_stretch_as_wide_as_the_window_is_in_it_whatever_rounding_says():
    begin_s = 0.06039411820756269
    assert over(
        counters(queue_s=[3.0, 3.0]), begin_s, begin_s + 1.0, 1.0
    ).peak_depth == pytest.approx(3.0)


STEPS = st.lists(st.integers(0, 50).map(float), min_size=1, max_size=25)


@given(STEPS, st.floats(0.0, 10.0), st.floats(0.05, 15.0), st.floats(0.05, 8.0))
def test_the_peak_is_the_highest_mean_over_any_stretch_of_its_width(
    steps, begin_s, length_s, bin_s
):
    disk, end_s = counters(queue_s=steps), begin_s + length_s
    seen = over(disk, begin_s, end_s, bin_s)
    total = disk["queue_s"].value
    if end_s > len(steps):
        return
    begins = np.linspace(begin_s, end_s - seen.peak_over_s, 400)
    fine = [
        (
            np.interp(b + seen.peak_over_s, range(len(total)), total)
            - np.interp(b, range(len(total)), total)
        )
        for b in begins
    ]
    assert max(fine) / seen.peak_over_s <= seen.peak_depth * (1 + 1e-6) + 1e-9
    # so many stretches cover the window, some of it twice
    covers = ceil(length_s / seen.peak_over_s) * seen.peak_over_s / length_s
    assert seen.mean_depth <= seen.peak_depth * covers * (1 + 1e-6) + 1e-9
    assert seen.peak_depth <= max(steps) * (1 + 1e-6) + 1e-9


def test_a_peak_does_not_depend_on_where_the_window_begins():
    disk = counters(written_bytes=[1.0, 1.0, 9.0, 1.0, 1.0, 1.0])
    assert [
        over(disk, begin, 6.0).peak_write_bytes_per_s for begin in (0.0, 0.3, 1.5)
    ] == pytest.approx([9.0] * 3)


def test_a_peak_is_never_over_less_than_the_readings_tell():
    disk = {"written_bytes": series([0.0, 10.0, 20.0], [0.0, 100.0, 500.0])}
    seen = over(disk, 0.0, 20.0, bin_s=1.0)
    assert (seen.peak_over_s, seen.peak_write_bytes_per_s) == (10.0, 40.0)
    assert over(disk, 0.0, 20.0, bin_s=15.0).peak_over_s == 15.0
    assert over(disk, 2.0, 5.0).peak_over_s == 3.0


# ---- gaps, wraps, resets --------------------------------------------------------------------


def test_a_decrease_is_a_gap():
    disk = {"written_bytes": series(range(6), [0.0, 10.0, 20.0, 3.0, 13.0, 23.0])}
    seen = over(disk, 0.0, 5.0)
    assert (seen.written_bytes, seen.write_bytes_per_s, seen.coverage, seen.gaps) == (
        40.0,
        10.0,
        0.8,
        1,
    )
    assert over(disk, 3.0, 5.0).gaps == over(disk, 0.0, 2.0).gaps == 0
    assert over(disk, 2.0, 3.0)[2:5] == (0.0, 1.0, pytest.approx(nan, nan_ok=True))
    assert isnan(over(disk, 2.0, 3.0).written_bytes)


def test_a_wrap_that_was_told_is_no_gap():
    told = growth(series([0.0, 1.0], [MS_WRAP_S - 5.0, 3.0]), MS_WRAP_S, most_per_s=65_536.0)
    assert (told.grown[-1], len(told.gaps_s)) == (pytest.approx(8.0), 0)
    # a drive that was reset at a high count would look like a depth of three million
    reset = growth(series([0.0, 1.0], [1_000_000.0, 3.0]), MS_WRAP_S, most_per_s=65_536.0)
    assert (reset.grown[-1], reset.gaps_s.tolist()) == (0.0, [[0.0, 1.0]])


def test_busy_is_at_most_all_of_the_time_after_a_reset():
    disk = {"busy_s": series([0.0, 1.0, 2.0], [0.0, 4_294_900.0, 0.5])}
    disk["busy_s"].value[1] = 0.5
    assert over(disk, 0.0, 2.0, wraps_at={"busy_s": MS_WRAP_S}).busy == 0.25
    disk["busy_s"].value[:] = [4_294_900.0, 4_294_900.5, 0.1]
    assert over(disk, 0.0, 2.0, wraps_at={"busy_s": MS_WRAP_S}).busy == 0.5


def test_a_reading_without_an_answer_is_bridged():
    disk = {"written_bytes": series(range(4), [0.0, 10.0, nan, 30.0])}
    seen = over(disk, 0.0, 3.0)
    assert (seen.written_bytes, seen.coverage, seen.gaps) == (30.0, 1.0, 0)


def test_outside_the_readings_nothing_is_known():
    disk = counters(written_bytes=[5.0, 5.0])
    seen = over(disk, -2.0, 6.0)
    assert (seen.written_bytes, seen.write_bytes_per_s, seen.coverage) == (10.0, 5.0, 0.25)
    assert isnan(over(disk, 7.0, 9.0).write_bytes_per_s)


@pytest.mark.parametrize(
    "readings",
    [
        {},
        {"writes": series([], [])},
        {"writes": series([1.0], [5.0])},
        {"writes": series([0.0, 1.0], [nan, nan])},
    ],
)
@pytest.mark.parametrize("window", [(0.0, 2.0), (1.0, 1.0), (2.0, 1.0)])
def test_nothing_to_go_by_is_unknown(readings, window):
    seen = over(readings, *window)
    assert seen.coverage == 0.0
    for name in (
        "mean_depth",
        "peak_depth",
        "busy",
        "written_bytes",
        "writes",
        "mean_write_bytes",
        "wait_s",
        "flushes",
        "most_in_flight",
    ):
        assert isnan(getattr(seen, name)), name
    assert len(line(readings, *window).begin_s) == (2 if window == (0.0, 2.0) else 0)


def test_a_quiet_disk_is_zero_and_has_no_mean_write():
    disk = counters(
        written_bytes=[0.0, 0.0],
        writes=[0.0, 0.0],
        reads=[0.0, 0.0],
        queue_s=[0.0, 0.0],
        flushes=[0.0, 1.0],
    )
    seen = over(disk, 0.0, 2.0)
    assert (seen.write_bytes_per_s, seen.writes, seen.mean_depth, seen.flushes) == (
        0.0,
        0.0,
        0.0,
        1.0,
    )
    assert isnan(seen.mean_write_bytes)
    assert isnan(seen.wait_s)


def test_without_reads_the_wait_is_unknown():
    """The queue holds both, so writes alone would wait too long."""
    disk = counters(writes=[10.0], queue_s=[1.0])
    assert isnan(over(disk, 0.0, 1.0).wait_s)
    assert over(disk | counters(reads=[10.0]), 0.0, 1.0).wait_s == 0.05


def test_readings_out_of_order_are_refused():
    with pytest.raises(ValueError, match="order of time"):
        growth(series([1.0, 0.0], [0.0, 1.0]))


# ---- over time ------------------------------------------------------------------------------


def test_a_line_bin_by_bin():
    disk = counters(queue_s=[4.0, 8.0, 2.0, 2.0], written_bytes=[10.0, 20.0, 30.0, 40.0])
    seen = line(disk, 0.5, 4.0)
    assert seen.begin_s.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert seen.end_s.tolist() == [1.5, 2.5, 3.5, 4.0]
    assert seen.depth.tolist() == [6.0, 5.0, 2.0, 2.0]
    assert seen.write_bytes_per_s.tolist() == [15.0, 25.0, 35.0, 40.0]
    assert np.isnan(seen.busy).all()


@given(STEPS, st.integers(0, 25), st.floats(0.1, 5.0))
def test_a_line_adds_up_to_the_window(steps, gap, bin_s):
    disk = counters(written_bytes=steps)
    disk["written_bytes"].value[gap + 1 :] -= 1000.0 if gap < len(steps) else 0.0
    seen, whole = line(disk, 0.0, float(len(steps)), bin_s), over(disk, 0.0, float(len(steps)))
    known = ~np.isnan(seen.write_bytes_per_s)
    added = np.sum((seen.write_bytes_per_s * (seen.end_s - seen.begin_s))[known])
    if gap >= len(steps):
        assert known.all()
        assert added == pytest.approx(whole.written_bytes)
    else:
        assert not known.all()
        assert isnan(whole.written_bytes) or added <= whole.written_bytes + 1e-6
    assert seen.end_s[-1] == len(steps)


def test_bytes_of_a_window_between_two_readings_have_bounds():
    counted = growth(series([0.0, 1.0, 2.0, 3.0], [0.0, 10.0, 30.0, 30.0]))
    assert counted.bounds(1.2, 1.8) == (0.0, 20.0)
    assert counted.bounds(0.5, 2.5) == (20.0, 30.0)
    assert counted.bounds(1.0, 2.0) == (20.0, 20.0)
    assert all(isnan(end) for end in counted.bounds(2.5, 3.5))
    assert all(isnan(end) for end in counted.bounds(-1.0, 0.5))
    fell = growth(series([0.0, 1.0, 2.0, 3.0], [0.0, 10.0, 3.0, 5.0]))
    assert all(isnan(end) for end in fell.bounds(0.5, 1.5))
    assert fell.bounds(2.2, 2.6) == (0.0, 2.0)
    seen = over({"written_bytes": series([0.0, 1.0, 2.0, 3.0], [0.0, 10.0, 30.0, 30.0])}, 1.2, 1.8)
    assert (seen.written_low_bytes, seen.written_high_bytes) == (0.0, 20.0)
    assert seen.written_bytes == pytest.approx(12.0)


def test_times_of_a_disk_are_shared_and_may_be_written():
    """numpy's interpolation copies an array that nobody may write, at each call."""
    t_s = np.arange(5.0)
    t_s.flags.writeable = False
    of = Series(t_s, np.arange(5.0), np.zeros(5))
    seen = queue_counts({"writes": of, "reads": of}).grown
    assert seen["writes"].t_s is seen["reads"].t_s
    assert seen["writes"].known_s is seen["reads"].known_s
    assert seen["writes"].t_s.flags.writeable
