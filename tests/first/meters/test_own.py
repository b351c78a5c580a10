"""The recorder's own cost, held against what this process spends."""

from __future__ import annotations

import math
import mmap
import os
import threading
import time

import pytest

from ckptcost.first.meters import own
from ckptcost.first.meters.base import Meter


def burn(seconds: float) -> float:
    """Until this thread has used so much; what it used."""
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        sum(range(1000))
    return time.thread_time() - start


def test_the_process_and_its_memory():
    (meter,), absences = own.find()
    assert isinstance(meter, Meter)
    assert absences == ()
    assert [(c.domain, c.quantity, c.role) for c in meter.channels] == [
        ("self", "cpu_s", "detail"),
        ("self", "memory_used_bytes", "detail"),
    ]
    before = time.process_time()
    cpu_s, memory_bytes = meter.read(0)
    assert before <= cpu_s <= time.process_time()
    with mmap.mmap(-1, 32 << 20) as held:  # not from what the process had before and kept
        for page in range(0, len(held), mmap.PAGESIZE):
            held[page] = 1
        later_s, more_bytes = meter.read(0)
    assert later_s > cpu_s
    assert more_bytes - memory_bytes > 24 << 20
    assert memory_bytes % os.sysconf("SC_PAGE_SIZE") == 0
    meter.close()
    meter.close()


def test_one_thread_alone():
    go, done = threading.Event(), threading.Event()
    used = []

    def work():
        go.wait(5.0)
        used.append(burn(0.05))
        done.set()
        stay.wait(5.0)

    stay = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    (meter,), _ = own.find(thread=thread)
    start_s = meter.read(0)[0]
    burn(0.1)  # here, and not in that thread
    assert meter.read(0)[0] - start_s < 0.05
    go.set()
    assert done.wait(5.0)
    spent_s = meter.read(0)[0] - start_s
    assert used[0] <= spent_s < used[0] + 0.05
    stay.set()
    thread.join(5.0)
    end_s = time.monotonic() + 5.0
    while (
        (cpu_s := meter.read(0)[0]) == cpu_s and time.monotonic() < end_s
    ):  # join returns a moment before the kernel's thread is gone
        time.sleep(0.001)
    cpu_s, memory_bytes = meter.read(0)
    assert math.isnan(cpu_s)
    assert memory_bytes > 0
    meter.read(0)
    assert [(event.name, event.domain, event.text) for event in meter.events] == [
        ("lost", "self", "the thread has ended")
    ]
    meter.close()


def test_a_thread_that_does_not_run_is_an_absence_and_never_a_crash():
    thread = threading.Thread(target=lambda: None)
    for _ in range(2):
        (meter,), (absence,) = own.find(thread=thread)
        assert absence.reason == "the thread does not run"
        assert absence.remedy
        assert [c.quantity for c in meter.channels] == ["memory_used_bytes"]
        assert len(meter.read(0)) == 1
        meter.close()
        if thread.ident is None:
            thread.start()
            thread.join()


def test_a_system_without_such_clocks(monkeypatch):
    monkeypatch.delattr(time, "pthread_getcpuclockid")
    _, (absence,) = found = own.find(thread=threading.current_thread())
    assert "no clock" in absence.reason
    found.meters[0].close()


@pytest.mark.parametrize(
    ("content", "pages"),
    [("5000 1234 300 1 0 99 0\n", 1234.0), ("5000", math.nan), ("", math.nan), ("a b c", math.nan)],
)
def test_statm_is_parsed_or_nothing(tmp_path, content, pages):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "statm").write_text(content)
    (meter,), _ = own.find(tmp_path)
    value = meter.read(0)[1]
    assert value == pytest.approx(pages * os.sysconf("SC_PAGE_SIZE"), nan_ok=True)
    meter.read(0)
    assert len(meter.events) == (pages != pages)
    meter.close()


def test_no_proc(tmp_path):
    (meter,), (absence,) = own.find(tmp_path / "nothing")
    assert "No such file" in absence.reason
    assert [c.quantity for c in meter.channels] == ["cpu_s"]
    meter.close()
