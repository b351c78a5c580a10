"""A run whose lines still come holds the same as one that is loaded when they all have come."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from ckptcost.first.core.channels import Channel
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import Fault, MachinePlan, marks
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.follow import follow
from ckptcost.first.runs.header import Header, MeterHead
from ckptcost.first.runs.lines import BadLine, Raw, Second
from ckptcost.first.runs.live import LiveRun, Named, Tee, item_of
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.run import Run
from ckptcost.first.runs.sinks import FileSink

PLAN = MachinePlan(
    gpus=2, first_s=20.0, interval_s=30.0, faults=(Fault("lost", "gpu:1", 45.0, 60.0),)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two minutes of a simulated machine, with three saves and a card that is away for a while."""
    folder = tmp_path_factory.mktemp("live") / "run"
    told: deque[Named] = deque()
    recorder = Recorder(
        simulated.find(PLAN, origin_ns=0).meters,
        Tee(told, FileSink(folder)),
        VirtualClock(0),
        host="simulated",
    )
    recorder.begin()
    for mark in sorted(marks(PLAN, 0.0, 100.0), key=lambda mark: mark.t_s):
        at_ns = round(mark.t_s * S)
        recorder.run_until(at_ns)
        recorder.mark(mark.name, mark.window, by=mark.by, rank=mark.rank, t_ns=at_ns, **mark.detail)
    recorder.run_until(120 * S)
    recorder.stop()
    return folder, list(told)


def fed(items) -> LiveRun:
    live = LiveRun()
    for part, item in items:
        live.feed(part, item)
    return live


def from_files(folder) -> LiveRun:
    lines = follow(folder, stop=lambda: True)
    return fed(item for line in lines if (item := item_of(line.part, line.fields)) is not None)


def same(one: Run, other: Run, since_s: float = 0.0) -> None:
    assert one.node().channels == other.node().channels
    for channel in one.node().channels:
        mine, theirs = one.series(channel), other.series(channel)
        wanted = theirs.t_s >= since_s
        for column in ("t_s", "value", "took_s"):
            np.testing.assert_array_equal(
                getattr(mine, column)[mine.t_s >= since_s], getattr(theirs, column)[wanted]
            )


@pytest.mark.parametrize("how", ["its files", "a recorder beside it"])
def test_it_is_the_run_that_is_loaded(folder, how):
    path, told = folder
    live = (from_files(path) if how == "its files" else fed(told)).run()
    whole = load(path)
    same(live, whole)
    assert live.marks == whole.marks
    assert [event[:4] for event in live.events] == [event[:4] for event in whole.events]
    assert (live.duration_s, live.ended) == (whole.duration_s, whole.ended)
    assert live.node().periods_s == whole.node().periods_s


def test_a_piece_of_it_stays_as_it_is_while_more_comes(folder):
    _, told = folder
    live = fed(told[: len(told) // 2])
    piece = live.run(since_s=20.0)
    channel = next(c for c in piece.node().channels if c.quantity == "energy_j")
    before = piece.series(channel)
    assert before.t_s[0] >= 19.0
    for part, item in told[len(told) // 2 :]:
        live.feed(part, item)
    np.testing.assert_array_equal(piece.series(channel).t_s, before.t_s)
    assert live.run().series(channel).t_s[-1] > before.t_s[-1] + 20.0


def test_what_is_let_go_of_is_gone_and_the_rest_as_it_was(folder):
    path, told = folder
    live = fed(told)
    held = live.values
    live.forget(60.0)
    assert live.values < 0.75 * held
    run = live.run()
    same(run, load(path), since_s=61.0)
    assert float(run.node().ticked_s()[0, 0]) == pytest.approx(60.0, abs=1.1)
    assert min(mark.t_s for mark in run.marks) >= 60.0
    live.forget(1000.0)
    assert live.values == 0
    assert live.run().marks == ()


def test_no_second_is_torn(folder):
    """A summary of a second is there whole or not at all: half of it would count twice or never."""
    _, told = folder
    for cut_s in (30.05, 30.5, 30.95):
        live = fed(told)
        before = live.run().node().ticked_s()
        live.forget(cut_s)
        after = {tuple(span) for span in live.run().node().ticked_s().tolist()}
        assert after <= {tuple(span) for span in before.tolist()}


def test_it_goes_on_from_another_with_its_clocks_and_periods(folder):
    _, told = folder
    old = fed(told[: len(told) // 2])
    young = LiveRun(old)
    for part, item in told[len(told) // 2 :]:
        young.feed(part, item)
    both, one = young.run(), fed(told).run()
    assert both.wall_s(50.0) == one.wall_s(50.0)
    assert both.node().periods_s == one.node().periods_s


HEADER = Header(
    run="ab" * 16,
    host="n1",
    monotonic_ns=0,
    wall_ns=S,
    meters=(MeterHead("m", (Channel("gpu:0", "power_w", "NVML"),)),),
)


@pytest.mark.parametrize(
    "item",
    [
        Raw(S, (1,), ((1.0, 2.0),)),
        Second(0, S, (1,), (1,), ((1.0, 2.0),)),
        {"k": "mark", "t": S, "name": "begin"},
    ],
)
def test_what_does_not_fit_its_header_is_refused_and_changes_nothing(item):
    live = fed([("p", HEADER), ("p", Raw(S, (1,), ((5.0,),)))])
    with pytest.raises((BadLine, ValueError)):
        live.feed("p", item)
    assert live.values == 1


def test_a_line_of_a_part_without_a_header_is_refused():
    with pytest.raises(KeyError):
        LiveRun().feed("q", Raw(S, (1,), ((5.0,),)))


def test_lines_that_nobody_needs_are_passed_over():
    assert item_of("p", {"k": "of a newer version", "t": 1}) is None
