"""A checkpoint is evaluated in small pieces, with rests between them, and comes to the same."""

from __future__ import annotations

import threading
import time

import pytest

from ckptcost.first.core.channels import Channel, Mark
from ckptcost.first.jobs.save_book import Book
from ckptcost.first.meters.simulated_machine import MachinePlan
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.header import Header, MeterHead
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live import reading as live_base
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.simulated import Simulated

PLAN = MachinePlan(gpus=4, packages=1, disks=1, first_s=8.0, interval_s=20.0)


def prepared() -> Simulated:
    """Two saves are over and wait."""
    source = Simulated(Desk(base="small-8b"), PLAN, history_s=45.0, threaded=False)
    source.board.work = lambda *rests: False  # type: ignore[method-assign]
    source.start()
    del source.board.work
    return source


def test_whoever_evaluates_may_rest_between_the_meters_of_one_checkpoint():
    at_once, piecewise = prepared(), prepared()
    while at_once.board.work():
        pass
    rests: list[int] = []
    while piecewise.board.work(lambda: rests.append(len(piecewise.board.account.seen))):
        pass
    seen, again = at_once.board.account.seen, piecewise.board.account.seen
    assert list(again) == list(seen) == [1, 2]
    for number, one in seen.items():
        assert again[number] == one
        assert rests.count(number - 1) >= 3 * (
            PLAN.gpus + 2
        )  # of each domain: before it, while training stood still, until it was safe


def test_the_lock_is_free_while_a_checkpoint_is_evaluated():
    source = prepared()
    got: list[bool] = []

    def ask() -> None:
        got.append(source.board.lock.acquire(timeout=0.5))
        if got[-1]:
            source.board.lock.release()

    def breathe() -> None:
        if not got:
            other = threading.Thread(target=ask)
            other.start()
            other.join()

    assert source.board.work()  # the scenario
    assert source.board.work(breathe)
    assert got == [True]


def test_work_and_rest_by_turns(monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []
    clock = [100.0]

    def sleep(for_s: float) -> None:
        slept.append(for_s)
        clock[0] += for_s

    source = Simulated(Desk(), MachinePlan(gpus=1), threaded=False)
    monkeypatch.setattr(live_base.time, "sleep", sleep)
    monkeypatch.setattr(live_base.time, "monotonic", lambda: clock[0])
    for _ in range(30):
        source._breathe()
        clock[0] += 0.0004
    monkeypatch.undo()
    assert sum(slept) > 30 * 0.0004  # it rests longer than it works
    assert max(slept) <= 0.005
    source._ending.set()
    began_s = time.monotonic()
    for _ in range(1000):
        source._breathe()
    assert time.monotonic() - began_s < 0.5, "who quits need not wait for rests"


def test_channels_are_as_the_newest_header_has_them():
    board = LiveBoard()
    first = [Channel(f"gpu:{n}", "energy_j", "a") for n in range(3)]
    later = [
        Channel("gpu:1", "energy_j", "a", note="known by now"),
        Channel("cpu:0", "energy_j", "b"),
    ]
    headers = [
        Header(
            run="ab" * 16,
            host="node-1",
            monotonic_ns=n * S,
            wall_ns=n * S,
            meters=(MeterHead("m", tuple(channels)),),
        )
        for n, channels in enumerate((first, later))
    ]
    for n, header in enumerate(headers):
        board.absorb([(f"part {n}", header)])
    channels = board.run.run().node().channels
    assert channels == (first[0], later[0], first[2], later[1])


@pytest.mark.parametrize(("by", "ready"), [("watch", False), ("api", True)])
def test_who_looks_from_outside_says_some_things_later(by, ready):
    book = Book()
    for name, at_s in (("begin", 10.0), ("returned", 12.0), ("durable", 12.0)):
        book.add(Mark(at_s, name, "step 1", by=by))
    book.turn(14.0)
    assert book.entry(1).ready is ready
    book.turn(20.0)
    assert book.entry(1).ready


def test_what_is_settled_still_counts_as_time_that_training_stood(tmp_path):
    book = Book(later=True)
    for name, at_s in (("begin", 10.0), ("returned", 13.0), ("durable", 15.0)):
        book.add(Mark(at_s, name, "step 1", by="api"))
    book.turn(20.0)
    assert book.timed(20.0) == (5.0, 3.0, 0)
    book.turn(1000.0)
    assert book.recent == []
    assert book.timed(1000.0) == (5.0, 3.0, 0)


def test_a_save_that_nobody_speaks_of_any_more_is_not_open_for_ever():
    book = Book()
    book.add(Mark(10.0, "begin", "step 1", by="api"))
    book.turn(100.0)
    assert [entry.number for entry in book.open] == [1]
    book.turn(700.0)
    assert book.open == []
