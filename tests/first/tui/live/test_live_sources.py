"""Sources of the live screen: a recording of our own, one that another process makes, a simulated
machine."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from small_runs import recorded

from ckptcost.first.errors import CkptcostError, InputError, RunFileError
from ckptcost.first.jobs.command import NoCommand
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.meters.simulated_machine import MachinePlan
from ckptcost.first.present.amounts import duration
from ckptcost.first.runs import store
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live import sources as live_sources
from ckptcost.first.tui.live.own import Own
from ckptcost.first.tui.live.replay import Tape
from ckptcost.first.tui.live.simulated import Simulated
from ckptcost.first.tui.live.source import Start
from ckptcost.first.tui.live.sources import demo, followed, learn_baseline, own, replay

SAVING = """
import os, sys, time
for n in (1, 2):
    time.sleep(0.7)
    with open(os.path.join(sys.argv[1], f"step_{n}.pt"), "wb") as file:
        file.write(os.urandom(20 << 20)); file.flush(); os.fsync(file.fileno())
    print("saved", n, flush=True)
time.sleep(0.3)
"""


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))


def until(true, within_s: float = 20.0) -> bool:
    end_s = time.monotonic() + within_s
    while not true() and time.monotonic() < end_s:
        time.sleep(0.02)
    return bool(true())


class Hand:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_command_from_its_line_to_the_rows(tmp_path):
    folder = tmp_path / "ckpt"
    folder.mkdir()
    (tmp_path / "save.py").write_text(SAVING)
    command = f"{sys.executable} {tmp_path / 'save.py'} {folder}"
    source = Own(
        Start(command=command, watch=(str(folder),), meters="block,process,writeback"),
        Desk(),
        settle_s=5.0,
        gap_s=0.2,
    )
    source.start()
    assert source.actions.stops_job
    assert "save.py" in source.busy()
    assert until(lambda: source.pump() >= 0 and source.over)
    source.stop()
    view = source.view()
    assert view.headline.word == "ENDED"
    assert "exit 0" in view.headline.detail
    assert [row.cells[7] for row in view.checkpoints.rows] == ["21 MB", "21 MB"]
    assert [row.key for row in view.checkpoints.rows] == ["2", "1"]
    assert view.output == ("saved 1", "saved 2")
    assert source.busy() == ""
    assert source.folder is not None
    seen = reviewed(source.folder)  # what `ckptcost report` reads
    times = [window.durable_s - window.begin_s for window in seen.windows]
    assert [float(row.cells[6]) for row in reversed(view.checkpoints.rows)] == pytest.approx(
        times, abs=0.002
    )
    assert (
        f"  {duration(seen.length_s)}" in view.headline.detail
    )  # not of the readings before and after, which are a margin
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("ckptcost-live")
    ]


def test_a_hand_marks_the_beginning_and_the_end():
    source = own(Start(meters="process,writeback"), Desk())
    source.start()
    assert until(lambda: source.actions.mark)
    assert "begins" in source.mark()
    time.sleep(0.25)
    assert "is over" in source.mark()
    began_s = time.monotonic()
    source.stop()
    assert time.monotonic() - began_s < 4.0
    (row,) = source.view().checkpoints.rows
    assert row.cells[12:] == ("hand", "by hand 1")
    assert 0.2 <= float(row.cells[5]) < 1.0
    assert any("by hand" in note for note in source.view().notes)


def test_what_cannot_be_meant_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    for start, said in (
        (Start(command="python 'x"), "cannot be split"),
        (Start(command="ls", pid=7), "not both"),
        (Start(pid=-1), "process id"),
        (Start(watch=(str(tmp_path / "file"),)), "is no folder"),
        (Start(meters="nonsense"), "meter"),
    ):
        with pytest.raises(InputError, match=said):
            own(start, Desk())
    with pytest.raises(NoCommand, match="no such command"):
        own(Start(command="no-such-command-here", meters="process"), Desk()).start()
    for open_ in (replay, followed):
        with pytest.raises(CkptcostError):
            open_("last", Desk())
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunFileError):
        replay(str(tmp_path / "empty"), Desk())


def test_a_run_that_another_writes_is_followed_and_left_alone(tmp_path):
    clock = Hand()
    writer = Simulated(
        Desk(),
        MachinePlan(gpus=1, first_s=12.0, interval_s=20.0, saves=2),
        history_s=20.0,
        threaded=False,
        clock=clock,
        directory=tmp_path / "run",
    )
    writer.start()
    source = followed(str(tmp_path / "run"), Desk())
    source.start()
    assert until(lambda: source.pump() >= 0 and source.position_s > 19.0)
    assert source.view().headline.word == "FOLLOWED"
    clock.now_s += 25.0
    writer.pump()
    assert writer.position_s > 44.0
    assert until(
        lambda: (
            len(source.view().checkpoints.rows) == 2
            and "-" not in source.view().checkpoints.rows[0].cells[2:11]
        )
    )
    source.stop()
    clock.now_s += 5.0
    writer.pump()
    assert writer.position_s > 49.0  # it goes on
    writer.stop()
    assert reviewed(tmp_path / "run").run.ended
    assert [r.cells[2:] for r in source.view().checkpoints.rows] == [
        r.cells[2:] for r in writer.view().checkpoints.rows
    ]


def test_a_followed_run_that_ends_is_over(tmp_path):
    writer = Simulated(
        Desk(),
        MachinePlan(gpus=1, saves=0),
        history_s=5.0,
        threaded=False,
        clock=Hand(),
        directory=tmp_path / "run",
    )
    writer.start()
    source = followed(str(tmp_path / "run"), Desk())
    source.start()
    assert until(lambda: source.position_s > 4.0)
    assert not source.over
    writer.stop()
    assert until(lambda: source.over)
    assert source.view().headline.word == "ENDED"
    source.stop()


def test_a_torn_line_of_a_followed_run_is_counted(tmp_path):
    writer = Simulated(
        Desk(),
        MachinePlan(gpus=1, saves=0),
        history_s=5.0,
        threaded=False,
        clock=Hand(),
        directory=tmp_path / "run",
    )
    writer.start()
    (file,) = (tmp_path / "run").glob("*.jsonl")
    with file.open("ab") as out:
        out.write(b'{"k":"raw","t":1,"c":"00000000"}\n')
    source = followed(str(tmp_path / "run"), Desk())
    source.start()
    assert until(
        lambda: (
            source.pump() >= 0 and any("could not be read" in note for note in source.view().notes)
        )
    )
    source.stop()
    writer.stop()


def test_the_demonstration_begins_with_checkpoints_and_goes_on():
    clock = Hand()
    source = demo(Desk(), gpus=2, threaded=False, clock=clock)
    source.start()
    assert source.board.simulated
    assert source.folder is not None
    assert source.folder.is_dir()
    view = source.view()
    assert view.headline.word == "SIMULATED"
    assert len(view.checkpoints.rows) == 2
    assert all("-" not in row.cells[2:9] for row in view.checkpoints.rows)
    before_s = source.position_s
    clock.now_s += 2.0
    assert source.pump() > 0
    assert source.position_s == pytest.approx(before_s + 2.0, abs=1.1)
    source.pause(True)
    clock.now_s += 50.0
    source.pump()
    assert source.view().headline.word == "SIMULATED PAUSED"
    source.pause(False)
    source.set_speed(10.0)
    clock.now_s += 1.0
    source.pump()
    assert source.position_s == pytest.approx(before_s + 12.0, abs=1.5)
    source.stop()
    assert source.over
    assert source.view().headline.word == "ENDED"


def test_a_thread_keeps_the_demonstration_going():
    source = demo(Desk(), gpus=1, history_s=1.0)
    source.start()
    assert until(lambda: source.position_s > 1.4, 10.0)
    source.stop()
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("ckptcost-live")
    ]


def test_who_leaves_while_it_begins_leaves_nothing_behind():
    source = own(Start(command="sleep 60", meters="process"), Desk())
    assert source.stop() == ""
    source.start()
    assert source.over
    assert source.busy() == ""
    assert source.stop(within_s=1.0) == ""


def test_quitting_takes_two_seconds_and_leaves_a_complete_run():
    source = own(Start(command="sh -c 'echo begun; sleep 60'", meters="process,writeback"), Desk())
    source.start()
    assert until(lambda: source.pump() >= 0 and source.view().output == ("begun",))
    assert source.folder is not None
    began_s = time.monotonic()
    assert source.stop(within_s=2.0) == ""
    assert time.monotonic() - began_s < 2.5
    run = reviewed(source.folder).run
    assert run.ended
    assert [mark.detail["exit_status"] for mark in run.marks if "exit_status" in mark.detail] == [
        143
    ]


def test_idle_power_is_learned_with_progress_and_may_be_stopped(tmp_path):
    told: list[str] = []
    said = learn_baseline("simulated", lambda: False, told.append, for_s=3.0)
    assert "idle power" in said
    assert told[0] == "looking for meters"
    with pytest.raises(CkptcostError, match="stopped"):
        learn_baseline("process", lambda: True, lambda *_: None, for_s=3.0)
    assert not (tmp_path / "user" / "baselines").exists()


def test_a_full_disk_is_a_trouble_that_is_shown():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    source = own(Start(meters="process,writeback"), Desk())
    source.start()
    assert until(lambda: source.pump() >= 0 and source.position_s > 0.5)
    pump = source._supervisor.observer.recorder._sink._inner._pump  # type: ignore[attr-defined]
    writer = pump._writer
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        os.dup2(full, writer._fd)
        assert until(
            lambda: any(
                "space" in note.lower() or "written" in note.lower() for note in source.view().notes
            ),
            15.0,
        ), source.view().notes
    finally:
        os.close(full)
        source.stop()


def test_a_line_that_stands_after_a_later_one_is_read_all_the_same(tmp_path):
    recorded(tmp_path / "run", 12)
    (file,) = (tmp_path / "run").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    first, second = [n for n, line in enumerate(lines) if line.startswith(b'{"k":"second"')][5:7]
    lines[first], lines[second] = lines[second], lines[first]
    file.write_bytes(b"".join(lines))
    tape = Tape(*store.kept_at(tmp_path / "run"))
    early_ns, late_ns = sorted(json.loads(lines[n])["t"] for n in (first, second))
    told = [t_ns for t_ns, _, fields in tape.readings(0, late_ns - 1) if fields["k"] == "second"]
    assert early_ns in told


def test_a_jump_behind_the_end_goes_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    recorded(tmp_path / "run", 30)
    source = live_sources.replay(str(tmp_path / "run"), Desk(), threaded=False, clock=lambda: 0.0)
    source.start()
    source.seek(1e9)
    source.pump(0.0)
    assert source.position_s == pytest.approx(source.length_s)
    assert [row.key for row in source.view().checkpoints.rows] == ["1"]
    assert source.view().gpus.rows[0].cells[2] != "-"


def test_stopping_twice_ends_it_once(monkeypatch):
    source = live_sources.demo(Desk(), gpus=1, history_s=1.0, threaded=False, clock=lambda: 0.0)
    source.start()
    ended: list[object] = []
    monkeypatch.setattr(source, "_end", lambda within_s: ended.append(within_s) or "told")
    assert (source.stop(), source.stop()) == ("told", "")
    assert ended == [None]
