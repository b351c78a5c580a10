"""The recorder on a real clock and thread, inside a process that has other things to do."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from nobody import may_write_everywhere
from steady_meters import Steady
from waiting import wait_for

from ckptcost.first.errors import OutputError
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink, MemorySink


def test_marks_from_many_threads_arrive_all_and_wake_it(tmp_path):
    meter = Steady(count=8)
    recorder = Recorder([meter], FileSink(tmp_path)).start()
    before = time.monotonic_ns()

    def setting(k):
        for i in range(50):
            recorder.mark("note", f"{k}-{i}")

    threads = [threading.Thread(target=setting, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(lambda: recorder.latest().t_ns > before)
    recorder.stop()
    run = load(tmp_path)
    assert run.problems == ()
    assert len({mark.window for mark in run.marks}) == 200
    assert [mark.t_s for mark in run.marks] == sorted(mark.t_s for mark in run.marks)
    assert run.ended
    assert recorder.stats.cpu_s > 0
    assert meter.closed == 1
    assert [thread for thread in threading.enumerate() if thread.name.startswith("ckptcost")] == []


def burnt(seconds):
    """A thread that takes so much of a processor and ends."""

    def burn():
        while time.thread_time() < seconds:
            pass

    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()


@pytest.mark.parametrize("alone", [True, False])
def test_a_process_that_only_records_costs_what_all_its_threads_take(alone):
    """Watching files and asking when they are safe goes on in threads of its own: 7 % of a core
    where the recorder's was 2 %."""
    burnt(0.3)  # what was before is not the recording's
    before_s = time.process_time()
    recorder = Recorder([Steady()], MemorySink(), alone=alone).start()
    burnt(0.3)
    recorder.stop()
    took_s = time.process_time() - before_s
    assert (0.3 <= recorder.stats.cpu_s <= took_s) == alone


def test_a_mark_at_rest_is_followed_by_a_tick_soon():
    from ckptcost.first.runs.pace import Pace

    meter = Steady()
    recorder = Recorder([meter], MemorySink(), pace=Pace(rest_s=5.0, quick_for_s=0.0)).start()
    wait_for(lambda: meter.asked)
    time.sleep(0.05)
    marked = time.monotonic_ns()
    recorder.mark("begin", "w")
    wait_for(lambda: meter.asked[-1] >= marked, 4.0)  # far sooner than the pace would bring it
    recorder.stop()


def test_a_signal_handler_may_mark_while_marking():
    recorder = Recorder([Steady()], MemorySink()).start()
    seen = []
    old = signal.signal(
        signal.SIGALRM, lambda *_: (recorder.mark("note", "signal"), seen.append(1))
    )
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            recorder.mark("note", "loop")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    recorder.stop()
    assert seen


def test_marking_costs_little():
    recorder = Recorder([Steady(count=8)], MemorySink()).start()
    best = min(_timed(recorder) for _ in range(5))
    recorder.stop()
    assert best < 50e-6  # about 1 us


def _timed(recorder):
    start = time.perf_counter()
    for _ in range(200):
        recorder.mark("note", "w", size_bytes=1)
    return (time.perf_counter() - start) / 200


def test_a_forked_child_neither_marks_nor_stops_nor_waits(tmp_path):
    recorder = Recorder([Steady()], FileSink(tmp_path)).start()
    recorder.mark("begin", "parent")
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                recorder.mark("note", "child")
                recorder.stop()
                recorder.mark("note", "child")
            finally:
                os._exit(0)
        end = time.monotonic() + 10
        while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
            assert time.monotonic() < end, "the child hangs"
            time.sleep(0.01)
        assert done[1] == 0
        ticks = recorder.stats.ticks
        wait_for(lambda ticks=ticks: recorder.stats.ticks > ticks)
    recorder.mark("end", "parent")
    recorder.stop()
    run = load(tmp_path)
    assert run.problems == ()
    assert [(mark.name, mark.window) for mark in run.marks] == [
        ("begin", "parent"),
        ("end", "parent"),
    ]


def test_a_defect_of_the_recorder_itself_is_said_and_ends_nothing_else():
    from ckptcost.first.runs.pace import Pace

    recorder = Recorder([Steady()], MemorySink(), pace=Pace(rest_s=0.02))
    recorder.begin()
    recorder._tempo.next_ns = None  # type: ignore[assignment,method-assign]
    recorder._thread = threading.Thread(target=recorder._loop, daemon=True)
    recorder._thread.start()
    wait_for(lambda: not recorder._thread.is_alive())
    recorder.mark("note")
    assert "the recorder failed" in recorder.stats.problem
    recorder.stop()


def test_two_recorders_in_one_directory_take_parts_of_their_own(tmp_path):
    one = Recorder([Steady()], FileSink(tmp_path), run_id="a" * 32, host="n").start()
    other = Recorder([Steady()], FileSink(tmp_path), run_id="a" * 32, host="n").start()
    wait_for(lambda: one.stats.ticks and other.stats.ticks)
    one.mark("note", "one")
    other.mark("note", "other")
    one.stop()
    other.stop()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["n.000.jsonl", "n.001.jsonl"]
    assert {mark.window for mark in load(tmp_path).marks} == {"one", "other"}


@pytest.mark.skipif(may_write_everywhere(), reason="root may write everywhere")
def test_a_directory_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="permission"):
        Recorder([Steady()], FileSink(tmp_path)).start()


def test_files_belong_to_their_user_and_links_are_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "n.000.jsonl").symlink_to(elsewhere)
    (tmp_path / "run" / "n.001.jsonl").symlink_to(tmp_path / "nowhere")
    recorder = Recorder([Steady()], FileSink(tmp_path / "run"), host="n").start()
    recorder.stop()
    assert elsewhere.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    mine = tmp_path / "run" / "n.002.jsonl"
    assert mine.stat().st_size > 500
    assert mine.stat().st_mode & 0o033 == 0
