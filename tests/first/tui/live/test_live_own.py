"""What a recording of our own says of itself: that nothing reaches the disk, what it waits for,
what was typed, and how it ends."""

from __future__ import annotations

import shlex
import sys
import threading
import time

import pytest

from ckptcost.first.meters.simulated_machine import MachinePlan
from ckptcost.first.runs.writer import WriteFailed, Writer
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.own import Own, middle_cut
from ckptcost.first.tui.live.simulated import Simulated
from ckptcost.first.tui.live.source import Start

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True);"
    " time.sleep(60)"
)


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))


def until(true, within_s: float = 10.0) -> bool:
    end_s = time.monotonic() + within_s
    while not true() and time.monotonic() < end_s:
        time.sleep(0.02)
    return bool(true())


def begun(**start) -> Own:
    source = Own(Start(meters="block", **start), Desk(), settle_s=0.2, gap_s=0.2)
    source.start()
    return source


def test_a_full_disk_is_in_the_head_and_in_the_last_sentence(monkeypatch):
    source = begun()
    try:
        assert until(lambda: source.pump() >= 0 and source.view().headline.word == "ARMED")
        assert source.view().unwritten == ""

        def full(writer, lines):
            raise WriteFailed(0, OSError(28, "No space left on device"))

        monkeypatch.setattr(Writer, "write", full)
        assert until(lambda: source.view().unwritten)
        head = source.view().headline
        assert head.word.startswith("NOT RECORDED since ")
        assert head.word.endswith(": no space left on device")
        assert (head.state, head.tone) == ("failed", "bad")
        since = head.word.split()[3].rstrip(":")
    finally:
        said = source.stop()
    assert said == f"The run holds only what was written until {since}: no space left on device."
    assert source.stop() == said
    view = source.view()
    assert view.headline.word == f"ENDED, NOT RECORDED since {since}: no space left on device"
    assert view.headline.tone == "bad"
    assert view.notes[0] == said


def test_a_disk_that_takes_lines_again_is_no_trouble_any_more(monkeypatch):
    source = begun()
    source._unwritten = ("09:33:50", "no space left on device")
    assert until(lambda: not source.view().unwritten)
    assert source.stop() == ""


def test_a_folder_that_is_not_there_is_waited_for_aloud(tmp_path):
    absent = tmp_path / "no" / "such"
    source = begun(watch=(str(tmp_path), str(absent)))
    try:
        note = f"{middle_cut(str(absent))} is not there yet; waited for."
        assert note in source.view().notes
        assert note[:-1] in source.view().headline.detail
        absent.mkdir(parents=True)
        assert until(lambda: note not in source.view().notes)
        assert (
            f"looked for in {middle_cut(str(tmp_path))}, {middle_cut(str(absent))}"
            in source.view().headline.detail
        )
    finally:
        source.stop()


def test_a_long_path_keeps_its_ends():
    path = "/lustre/projects/" + "deep/" * 20 + "checkpoints/step"
    assert len(middle_cut(path)) == 48
    assert middle_cut(path).startswith("/lustre/project ... ") or middle_cut(path).startswith(
        "/lustre/projects ... "
    )
    assert middle_cut(path).endswith("checkpoints/step")
    assert middle_cut("/data/ckpt") == "/data/ckpt"


def test_the_title_is_the_command_as_it_was_typed():
    command = "bash -c 'for i in 1 2; do head -c 20000 /dev/urandom; done'"
    assert Own(Start(command=command, meters="block"), Desk(), threaded=False).title == command


def test_why_there_is_no_output():
    alone, silent = (
        begun(),
        begun(command=shlex.join([sys.executable, "-c", "import time; time.sleep(0.5)"])),
    )
    assert alone.view().no_output == "No command was started here, so there is no output."
    assert silent.view().no_output == "The command has printed nothing yet."
    assert until(lambda: silent.pump() >= 0 and silent.over)
    assert silent.view().no_output == "The command printed nothing."
    alone.stop()
    silent.stop()


def test_a_command_that_does_not_end_is_counted_down_and_who_quits_waits_two_seconds_at_most():
    source = begun(command=shlex.join([sys.executable, "-c", STUBBORN]))
    assert until(lambda: "on" in source.view().output)
    waits = threading.Thread(target=source.stop)
    waits.start()
    assert until(lambda: source.view().headline.word.startswith("STOPPING "))
    assert source.view().headline.word in ("STOPPING 10 s", "STOPPING 9 s")
    began_s = time.monotonic()
    said = source.stop(1.5)
    assert time.monotonic() - began_s < 2.0
    assert "has not yet: its process group is" in said
    source._supervisor._signal(9)
    waits.join(8.0)
    assert not waits.is_alive()


def test_checkpoints_that_wait_are_said_to_be_evaluated(monkeypatch):
    source = Simulated(
        Desk(base="small-8b"),
        MachinePlan(gpus=2, first_s=6.0, interval_s=20.0),
        history_s=40.0,
        threaded=False,
    )
    monkeypatch.setattr(source.board, "work", lambda: False)
    source.start()
    told = {stat.label: stat.note for stat in source.view().stats}
    for label in ("checkpoints", "cost", "CO2e", "GPU-h lost"):
        assert told[label] == "evaluating 1 of 2 ..."
    assert "its energy is being worked out" in source.view().last[0]


def test_readings_of_many_gpus_are_taken_in_in_smaller_pieces(monkeypatch):
    source, sizes = Simulated(Desk(), MachinePlan(gpus=2), threaded=False), []

    def absorb(piece):
        sizes.append(len(piece))
        time.sleep(0.012 if len(piece) > 4 else 0.0)

    monkeypatch.setattr(source.board, "absorb", absorb)
    source._items.extend([None] * 60)
    source._absorb()
    assert sizes[:4] == [20, 10, 5, 2]
    assert max(sizes[3:]) <= 8
    assert sum(sizes) == 60


def test_a_run_that_is_over_fills_the_axis():
    source = Simulated(Desk(), MachinePlan(gpus=1), history_s=12.0, threaded=False)
    source.start()
    assert source.view().traces.x_range == (-30.0, 0.0)
    source.stop()
    assert source.view().traces.x_range == (-source.board.last_s, 0.0)
    assert source.view(10.0).traces.x_range == (-10.0, 0.0)
