"""Training steps: an append each, one line a second."""

from __future__ import annotations

import threading

import pytest

import ckptcost
from ckptcost.first.hooks import receivers, steps
from ckptcost.first.hooks.listener import parse_line


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now_ns = 5_000_000_000

        def __call__(self):
            return self.now_ns

    made = Clock()
    monkeypatch.setattr(steps, "monotonic_ns", made)
    return made


def test_once_a_second_all_in_one_line(ear, clock):
    for _ in range(25):
        ckptcost.step()
        clock.now_ns += 100_250_000
    receivers.leave()
    assert [mark.name for mark in ear.heard] == ["steps"] * 4
    ends_ns = [
        round(mark.detail["base"] + ms * 1e6) for mark in ear.heard for ms in mark.detail["ends_ms"]
    ]
    assert ends_ns == [5_000_000_000 + 100_250_000 * count for count in range(25)]
    assert [len(mark.detail["ends_ms"]) for mark in ear.heard] == [1, 10, 10, 4]
    assert {mark.window for mark in ear.heard} == {""}


def test_more_than_a_line_holds_waits_and_what_is_mad_is_forgotten(ear, clock):
    for _ in range(1000):
        ckptcost.step()
    clock.now_ns += 10**9
    ckptcost.step()
    assert [len(mark.detail["ends_ms"]) for mark in ear.heard] == [1, steps.MOST]
    assert len(steps._ends) == 700
    for _ in range(50_000):
        ckptcost.step()
    clock.now_ns += 10**9
    ckptcost.step()
    assert len(steps._ends) < 20_000
    assert len(ear.heard[-1].detail["ends_ms"]) == steps.MOST
    assert ear.heard[-1].detail["dropped"] > 30_000, (
        "it is said, so that nobody takes the gap for a long step"
    )


def test_the_longest_line_goes_through_the_wire_and_is_believed():
    from ckptcost.first.hooks.wire import LONGEST, WireClient

    ends_ms = [86_000_000.25 + part for part in range(steps.MOST)]
    client = WireClient("/nowhere")
    client._pid, client.dropped = 4_000_000, 10**6
    line = client._line("steps", "", 10_000_000, 10**18, {"ends_ms": ends_ms, "base": 10**18})
    assert len(line) <= LONGEST
    assert len(parse_line(line, 10**18).detail["ends_ms"]) == steps.MOST


def test_a_loader_is_iterated_as_often_as_one_likes(ear):
    loader = ckptcost.steps([10, 20, 30])
    assert [list(loader), list(loader), len(loader)] == [[10, 20, 30], [10, 20, 30], 3]
    assert len(steps._ends) + sum(len(mark.detail["ends_ms"]) for mark in ear.heard) == 6
    with pytest.raises(TypeError):
        len(ckptcost.steps(iter([])))
    with pytest.raises(ZeroDivisionError):
        list(ckptcost.steps(5 / number for number in (1, 0)))


def test_the_end_of_a_step_is_the_end_of_the_body(ear, clock):
    for number in ckptcost.steps([1, 2]):
        clock.now_ns += number * 10**6
    receivers.leave()
    ends = [mark.detail["base"] + ms * 1e6 for mark in ear.heard for ms in mark.detail["ends_ms"]]
    assert ends == [5_001_000_000, 5_003_000_000]


def test_nobody_listens():
    for _ in range(100):
        ckptcost.step()
    assert steps._ends == []


def test_a_forked_child_starts_with_none(ear):
    import os

    for _ in range(5):
        ckptcost.step()
    child = os.fork()
    if child == 0:
        os._exit(len(steps._ends))
    assert os.waitpid(child, 0)[1] == 0
    assert len(steps._ends) == 4


def test_several_threads(ear):
    def runs():
        for _ in range(2000):
            ckptcost.step()

    steps._due_ns = 1 << 62
    threads = [threading.Thread(target=runs) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(steps._ends) == 8000
