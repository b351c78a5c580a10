"""Where a job's time went, held against going through it second by second."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.core.useful import RunSpan, Useful, useful_of

AT_S = 1_795_132_800.0


def pieces(found: Useful) -> dict[str, float]:
    return {
        name: getattr(found, f"{name}_s") for name in ("down", "lost", "stall", "load", "useful")
    }


def lived(seed: int) -> tuple[list[RunSpan], Counter[str], int]:
    """Runs one after the other, a label for each second, and how many failed. A save holds training
    up for some seconds and keeps the state of its first one; a failure in the middle of a save
    leaves the one before."""
    rng = np.random.default_rng(seed)
    spans, seconds, clock, failures = [], [], 0, 0
    for _ in range(rng.integers(1, 8)):
        began, load, length, failed = (
            clock,
            int(rng.integers(0, 30)),
            int(rng.integers(1, 400)),
            bool(rng.random() < 0.6),
        )
        states, kept, since_save = ["load"] * load, None, 0
        while len(states) < length:
            if since_save >= 50:
                cost, start = int(rng.integers(1, 12)), len(states)
                states += ["stall"] * cost
                since_save = 0
                if len(states) <= length:
                    kept = start
                continue
            states.append("useful")
            since_save += 1
        states = states[:length]
        first_lost = length if not failed else 0 if kept is None else kept
        lost_stall = states[first_lost:].count("stall")
        spans.append(
            RunSpan(
                AT_S + began,
                AT_S + began + length,
                failed,
                -math.inf if kept is None else AT_S + began + kept,
                states.count("stall"),
                states.count("load"),
                lost_stall,
            )
        )
        seconds += [
            ("lost" if state == "useful" and at >= first_lost else state)
            for at, state in enumerate(states)
        ]
        failures += failed
        between = int(rng.integers(0, 60))
        seconds += ["down"] * between
        clock = began + length + between
    while seconds[-1] == "down":
        seconds.pop()
    return spans, Counter(seconds), failures


@pytest.mark.parametrize("seed", range(60))
def test_second_by_second(seed):
    spans, truth, failures = lived(seed)
    found = useful_of(shuffled(spans, seed))
    assert {name: round(each, 6) for name, each in pieces(found).items()} == {
        name: truth[name] for name in pieces(found)
    }
    assert found.wall_s == truth.total()
    assert found.goodput == pytest.approx(truth["useful"] / truth.total(), rel=1e-12)
    assert found.failures == failures


def shuffled(spans: list[RunSpan], seed: int) -> list[RunSpan]:
    return [spans[at] for at in np.random.default_rng(seed).permutation(len(spans))]


SPAN = st.builds(
    lambda began, length, failed, kept, stall, load, lost: RunSpan(
        began, began + length, failed, kept, stall, load, lost
    ),
    st.integers(0, 60),
    st.integers(0, 40),
    st.booleans(),
    st.one_of(st.integers(-5, 110), st.just(-math.inf)),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 50),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(SPAN, min_size=1, max_size=7), st.integers(0, 9))
def test_pieces_add_up_and_none_is_negative(spans, seed):
    """Whatever overlaps, and however much longer than the run the stalls are said to be."""
    found = useful_of(spans)
    assert math.fsum(pieces(found).values()) == pytest.approx(found.wall_s, rel=1e-12, abs=1e-9)
    assert min(pieces(found).values()) >= -1e-9
    assert found.failures == sum(span.failed for span in spans)
    other = useful_of(shuffled(spans, seed))
    if len({(span.began_s, span.ended_s) for span in spans}) == len(spans):
        assert other == found, "the order they are given in does not matter"


@settings(deadline=None, max_examples=200)
@given(
    st.lists(SPAN.map(lambda span: span._replace(stall_s=0.0, load_s=0.0)), min_size=1, max_size=7)
)
def test_an_instant_of_two_runs_is_the_later_ones(spans):
    spans = sorted(spans, key=lambda span: (span.began_s, span.ended_s))
    seconds = Counter[str]()
    for second in range(min(span.began_s for span in spans), max(span.ended_s for span in spans)):
        there = [span for span in spans if span.began_s <= second < span.ended_s]
        if not there:
            seconds["down"] += 1
        else:
            lost = there[-1].failed and second >= there[-1].last_kept_s
            seconds["lost" if lost else "useful"] += 1
    assert pieces(useful_of(spans)) == {
        name: seconds[name] for name in ("down", "lost", "stall", "load", "useful")
    }


def test_a_run_that_kept_nothing_has_lost_its_work_but_not_its_stalls_and_load_twice():
    first = RunSpan(0.0, 100.0, False, 90.0, 10.0, 0.0)
    barren = RunSpan(150.0, 250.0, True, 90.0, stall_s=15.0, load_s=20.0)
    found = useful_of([first, barren])
    assert found == Useful(250.0, 50.0, 65.0, 25.0, 20.0, 90.0, 0.36, 1)


def test_the_last_runs_failure_counts():
    alone = RunSpan(0.0, 100.0, True, 60.0, 10.0, 5.0, 4.0)
    assert useful_of([alone]) == Useful(100.0, 0.0, 36.0, 10.0, 5.0, 49.0, 0.49, 1)


def test_a_kept_save_that_is_not_known_leaves_the_loss_unknown():
    found = useful_of(
        [
            RunSpan(0.0, 100.0, True, math.nan, 10.0, 5.0),
            RunSpan(120.0, 200.0, False, math.nan, 10.0, 5.0),
        ]
    )
    assert found[:2] == (200.0, 20.0)
    assert (found.stall_s, found.load_s, found.failures) == (20.0, 10.0, 1)
    assert all(math.isnan(each) for each in (found.lost_s, found.useful_s, found.goodput))


def test_of_a_run_that_did_not_fail_the_last_save_need_not_be_known():
    found = useful_of([RunSpan(0.0, 100.0, False, math.nan, 10.0, 5.0)])
    assert (found.lost_s, found.useful_s) == (0.0, 85.0)


@pytest.mark.parametrize("unknown", ["stall_s", "load_s"])
@pytest.mark.parametrize("failed", [False, True])
def test_unknown_stalls_and_loads_leave_unknown_what_they_are_part_of(unknown, failed):
    span = RunSpan(0.0, 100.0, failed, 60.0, 10.0, 5.0, 4.0)._replace(**{unknown: math.nan})
    found = useful_of([span])
    assert math.isnan(getattr(found, unknown))
    assert math.isnan(found.useful_s)
    assert found.down_s == 0.0
    kept_none = useful_of([span._replace(last_kept_s=-math.inf)])
    assert math.isnan(kept_none.lost_s) == failed


def test_a_run_that_shares_its_time_has_its_share_of_stalls():
    """The first hangs on for half of its time while the second is there already."""
    found = useful_of(
        [RunSpan(0.0, 100.0, False, 90.0, 20.0, 10.0), RunSpan(50.0, 150.0, False, 140.0, 7.0, 3.0)]
    )
    assert found == Useful(150.0, 0.0, 0.0, 17.0, 8.0, 125.0, 125.0 / 150.0, 0)
    twice = useful_of([RunSpan(0.0, 100.0, False, 90.0, 20.0, 10.0)] * 2)
    assert twice == useful_of([RunSpan(0.0, 100.0, False, 90.0, 20.0, 10.0)])


def test_no_run_and_no_time():
    nothing = useful_of([])
    assert nothing.failures == 0
    assert all(math.isnan(each) for each in nothing[:7])
    still = useful_of([RunSpan(5.0, 5.0, True, -math.inf, 0.0, 0.0)])
    assert still[:6] == (0.0,) * 6
    assert math.isnan(still.goodput)
    assert still.failures == 1


@pytest.mark.parametrize("wrong", [{"began_s": math.nan}, {"ended_s": math.inf}, {"ended_s": -1.0}])
def test_a_run_without_a_begin_or_an_end_is_refused(wrong):
    with pytest.raises(ValueError, match="a begin, and an end"):
        useful_of([RunSpan(0.0, 100.0, False, 90.0, 10.0, 0.0)._replace(**wrong)])
