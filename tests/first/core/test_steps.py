"""Training steps beside saves: a planted timeline gives its own step, stalls and slowdown back."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.estimates import Estimate
from ckptcost.first.core.phases import windows_of
from ckptcost.first.core.steps import ends_of, longer, pace, speed_lost, split, stalls

STEP_S = 0.8


def saved(name, begin_s, returned_s, durable_s=None):
    marks = [Mark(begin_s, "begin", name), Mark(returned_s, "returned", name)]
    return [
        *marks,
        Mark(durable_s or returned_s, "durable", name),
        Mark(durable_s or returned_s, "end", name),
    ]


def trained(saves, until_s=200.0, noise=0.01, more=0.1, seed=1):
    """Ends of steps of a job whose speed is 0 in a stall and 1/(1 + more) in a drain."""
    rng = np.random.default_rng(seed)
    edges = sorted({0.0, until_s, *(edge for save in saves for edge in save)})
    speeds = []
    for since_s in edges[:-1]:
        stalled = any(begin_s <= since_s < returned_s for begin_s, returned_s, _ in saves)
        drains = any(returned_s <= since_s < durable_s for _, returned_s, durable_s in saves)
        speeds.append(0.0 if stalled else 1 / (1 + more) if drains else 1.0)
    done = np.concatenate([[0.0], np.cumsum(np.diff(edges) * speeds)])
    work = np.cumsum(STEP_S * (1 + noise * rng.normal(size=int(done[-1] / STEP_S))))
    work = work[work < done[-1]]
    at = np.searchsorted(done, work, side="left") - 1  # not before the stall is over
    return np.array([edges[k] + (w - done[k]) / speeds[k] for k, w in zip(at, work, strict=True)])


SYNC = [(30.0, 34.5, 34.5), (90.0, 94.0, 94.0), (150.0, 155.0, 155.0)]
ASYNC = [(30.0, 30.6, 50.0), (90.0, 90.6, 110.0), (150.0, 150.6, 170.0)]


def windows(saves):
    return windows_of([mark for n, save in enumerate(saves) for mark in saved(f"save-{n}", *save)])


def test_an_undisturbed_step_is_the_planted_one():
    found = pace(split(trained(SYNC), windows(SYNC)).quiet_s)
    assert found.step_s.low <= STEP_S <= found.step_s.high
    assert found.step_s.value == pytest.approx(STEP_S, rel=0.003)
    assert found.spread_s == pytest.approx(0.01 * STEP_S, rel=0.3)


def test_a_few_long_steps_change_neither():
    ends = trained(SYNC)
    quiet = split(ends, windows(SYNC)).quiet_s
    spoiled = np.concatenate([quiet, [30.0, 40.0, 50.0]])
    assert pace(spoiled).step_s.value == pytest.approx(pace(quiet).step_s.value, rel=0.002)
    assert pace(spoiled).spread_s == pytest.approx(pace(quiet).spread_s, rel=0.1)


@pytest.mark.parametrize("saves", [SYNC, ASYNC])
def test_a_stall_as_steps_see_it_is_the_planted_one(saves):
    ends, seen = trained(saves, more=0.0), windows(saves)
    usual = pace(split(ends, seen).quiet_s)
    for estimate, (begin_s, returned_s, _) in zip(stalls(ends, seen, usual), saves, strict=True):
        assert estimate.low <= returned_s - begin_s <= estimate.high
        assert estimate.value == pytest.approx(returned_s - begin_s, abs=0.05)
        assert estimate.n <= 3


def test_a_drain_slows_by_what_was_planted():
    ends, seen = trained(ASYNC, more=0.1), windows(ASYNC)
    apart = split(ends, seen)
    found = longer(apart.drained_s, apart.quiet_s)
    assert found.low <= 0.1 <= found.high
    assert found.value == pytest.approx(0.1, abs=0.005)
    assert speed_lost(found).value == pytest.approx(0.1 / 1.1, abs=0.005)
    assert len(apart.drained_s) == found.n > 50


def test_intervals_of_the_slowdown_hold_it():
    inside = 0
    rng = np.random.default_rng(3)
    for _ in range(500):
        found = longer(1.05 * rng.lognormal(0.0, 0.2, 12), rng.lognormal(0.0, 0.2, 30))
        inside += found.low <= 0.05 <= found.high
    assert 0.94 < inside / 500 <= 1.0


def test_a_step_that_meets_a_stall_is_no_step_of_the_drain():
    ends = np.array(
        [0.0, 1.0, 2.0, 5.0, 6.1, 7.2, 8.2]
    )  # 2..5 holds the stall; the drain ends in 7.2..8.2
    apart = split(ends, windows([(2.5, 4.5, 7.5)]))
    assert apart.quiet_s.tolist() == [1.0, 1.0]
    assert apart.drained_s.tolist() == pytest.approx([1.1, 1.1])


def test_steps_in_an_unfinished_save_are_neither():
    seen = windows_of([Mark(2.5, "begin", "a"), Mark(6.5, "written", "a")])
    apart = split(np.arange(10.0), seen)
    assert len(apart.quiet_s) == 4
    assert len(apart.drained_s) == 0
    assert stalls(np.arange(10.0), seen, pace(apart.quiet_s))[0].why == "UNFINISHED"


class TestWhyNot:
    def test_no_steps(self):
        seen = windows(SYNC)
        nothing = split(np.empty(0), seen)
        assert pace(nothing.quiet_s).step_s.why == "NO_STEPS"
        assert [one.why for one in stalls(np.empty(0), seen, pace(nothing.quiet_s))] == [
            "NO_STEPS"
        ] * 3
        assert longer(nothing.drained_s, nothing.quiet_s).why == "NO_STEPS"
        assert math.isnan(speed_lost(longer(nothing.drained_s, nothing.quiet_s)).value)

    def test_steps_that_end_before_the_stall_is_over(self):
        ends, seen = trained(SYNC), windows(SYNC)
        cut = ends[ends < 91.0]
        usual = pace(split(cut, seen).quiet_s)
        assert [one.why for one in stalls(cut, seen, usual)] == [
            "",
            "STEPS_MISSING",
            "STEPS_MISSING",
        ]

    def test_steps_lost_in_the_stall(self):
        ends, seen = trained(SYNC), windows(SYNC)
        ends = np.insert(ends, np.searchsorted(ends, 92.0), np.nan)
        assert [one.why for one in stalls(ends, seen, pace(split(ends, seen).quiet_s))] == [
            "",
            "STEPS_MISSING",
            "",
        ]

    def test_two_stalls_in_the_same_steps(self):
        saves = [(30.0, 33.0, 33.0), (32.0, 35.0, 35.0)]
        ends = trained([(30.0, 35.0, 35.0)])
        seen = windows(saves)
        assert [one.why for one in stalls(ends, seen, pace(split(ends, seen).quiet_s))] == [
            "OTHERS_STALL"
        ] * 2

    def test_six_steps_have_a_value_and_no_interval(self):
        found = longer([1.2] * 6, np.ones(50))
        assert (found.value, found.low, found.why) == (pytest.approx(0.2), None, "FEW_STEPS")
        assert speed_lost(found)[:3] == (pytest.approx(1 / 6), None, None)
        assert pace(np.array([1.0])).step_s.why == "FEW_STEPS"


def test_speed_lost_is_a_share():
    assert speed_lost(Estimate(-0.02, -0.1, 0.25))[:3] == (0.0, 0.0, pytest.approx(0.2))


class TestEnds:
    def mark(self, t_s, ends_ms, base=10_000_000_000, rank=0, **more):
        return Mark(t_s, "steps", "", rank, "api", {"base": base, "ends_ms": ends_ms, **more})

    def test_on_the_runs_clock(self):
        assert ends_of([self.mark(3.0, [0.0, 1200.0, 2400.5])], 9_000_000_000).tolist() == [
            1.0,
            2.2,
            3.4005,
        ]

    def test_nanoseconds_of_years_keep_their_milliseconds(self):
        base = 9_007_199_254_740_993 * 10  # more than a float holds
        assert ends_of([self.mark(3.0, [1.0, 2.0], base)], base - 1_000_000_000).tolist() == [
            1.001,
            1.002,
        ]

    def test_one_rank_speaks_and_twice_said_is_once(self):
        marks = [
            self.mark(1.0, [0.0], rank=0),
            self.mark(2.0, [10.0, 20.0], rank=1),
            self.mark(3.0, [20.0, 30.0], rank=1),
        ]
        assert ends_of(marks, 10_000_000_000).tolist() == [0.01, 0.02, 0.03]
        assert ends_of(marks, 10_000_000_000, rank=0).tolist() == [0.0]

    def test_dropped_marks_leave_a_hole(self):
        marks = [
            self.mark(1.0, [0.0, 1000.0]),
            Mark(2.0, "begin", "a", 0, "api", {"dropped": 2}),
            self.mark(9.0, [8000.0, 9000.0]),
            self.mark(11.0, [10000.0], dropped=1),
        ]
        ends = ends_of(marks, 10_000_000_000)
        assert np.isnan(ends).tolist() == [False, False, True, False, False, True, False]
        assert split(ends, []).quiet_s.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        "detail",
        [
            {},
            {"base": 1},
            {"base": "1", "ends_ms": [1]},
            {"base": 1, "ends_ms": 5},
            {"base": None, "ends_ms": []},
            {"base": 1.5, "ends_ms": [1]},
        ],
    )
    def test_what_makes_no_sense_says_nothing(self, detail):
        assert ends_of([Mark(0.0, "steps", detail=detail)], 0).tolist() == []

    def test_numbers_that_are_none_are_left_out(self):
        assert ends_of(
            [self.mark(1.0, [None, "x", True, math.nan, 5.0])], 10_000_000_000
        ).tolist() == [0.005]
        assert ends_of([], 0).tolist() == []

    def test_as_a_run_file_brings_them(self, tmp_path):
        from steady_meters import Steady

        from ckptcost.first.runs import reader
        from ckptcost.first.runs.clocks import VirtualClock
        from ckptcost.first.runs.recorder import Recorder
        from ckptcost.first.runs.sinks import FileSink

        recorder = Recorder([Steady()], FileSink(tmp_path), VirtualClock(50_000_000_000))
        recorder.begin()
        recorder.run_until(53_000_000_000)
        recorder.mark(
            "steps",
            t_ns=53_000_000_000,
            rank=0,
            **json.loads('{"base": 51000000000, "ends_ms": [0, 1200.5]}'),
        )
        recorder.step()
        recorder.run_until(55_000_000_000)
        recorder.stop()
        run = reader.load(tmp_path)
        ends = ends_of(run.marks, run.node().origin_ns)
        assert ends == pytest.approx([1.0, 2.2005], abs=1e-9)
        assert run.marks[-1].t_s == pytest.approx(3.0, abs=1e-9)
