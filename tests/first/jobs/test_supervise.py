"""A recording beside something else, with real commands: it ends with them, ends them, and leaves a
complete run whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import wait_for

from ckptcost.first.errors import InputError, OutputError
from ckptcost.first.jobs.command import NoCommand
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.observe import WatchOptions
from ckptcost.first.jobs.supervise import OUTPUT, Supervisor, What
from ckptcost.first.jobs.wrap import tools_of
from ckptcost.first.meters.found import Wanted
from ckptcost.first.runs.reader import load

SAVING = """
import os, sys, time
print("begun", flush=True)
for n in (1, 2):
    time.sleep(0.7)
    with open(os.path.join(sys.argv[1], f"step_{n}.pt"), "wb") as file:
        file.write(os.urandom(20 << 20)); file.flush(); os.fsync(file.fileno())
    print("saved", n, file=sys.stderr, flush=True)
time.sleep(0.3)
sys.exit(7)
"""
DEAF = (
    "import signal, time, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf',"
    " flush=True); time.sleep(60)"
)


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))


@pytest.fixture
def tools():
    return tools_of("block,process,writeback", Wanted(), least=0)


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "ckpt"
    made.mkdir()
    return made


def look(*watch: Path, settle_s: float = 0.0) -> WatchOptions:
    return WatchOptions(tuple(watch), gap_s=0.2, settle_s=settle_s)


def test_a_command_is_recorded_to_its_end(tools, folder):
    one = Supervisor(
        What((sys.executable, "-c", SAVING, str(folder))), tools, look(folder, settle_s=5.0)
    )
    one.start()
    assert one.running
    wait_for(lambda: one.phase == "over")
    assert (one.exit_status, one.why) == (7, "the command ended with 7")
    assert not one.running
    assert one.output().decode().splitlines() == ["begun", "saved 1", "saved 2"]
    seen = reviewed(one.folder)
    assert [round(what.bytes) for what in seen.contents] == [20 << 20, 20 << 20]
    assert all(window.durable_s is not None for window in seen.windows)
    status = [mark.detail["exit_status"] for mark in seen.run.marks if "exit_status" in mark.detail]
    assert (seen.run.ended, status) == (True, [7])
    assert one.stop() == ""


def test_no_such_command_is_said_before_anything_is_begun(tools, tmp_path):
    with pytest.raises(NoCommand, match="no such command"):
        Supervisor(What(("no-such-command-here",)), tools, look())
    assert not (tmp_path / "runs").exists()


def test_a_command_that_cannot_be_run_leaves_no_recorder(tools, tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    one = Supervisor(What((str(broken),)), tools, look())
    with pytest.raises(NoCommand, match="cannot be run"):
        one.start()
    assert one.phase == "over"
    assert not one.observer.recorder.stats.problem


@pytest.mark.parametrize("pid", [None, os.getppid()])
def test_a_folder_that_holds_a_run_is_refused_and_no_process_left_open(pid, tools, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "a.jsonl").write_text("{}\n")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OutputError, match="holds a run already"):
        Supervisor(What(pid=pid), tools, look(), tmp_path / "taken")
    assert len(os.listdir("/proc/self/fd")) == before


def test_stop_tells_the_whole_group_to_end(tools):
    one = Supervisor(What(("sh", "-c", "sleep 60 & echo $!; wait")), tools, look())
    one.start()
    wait_for(lambda: one.output().strip())
    child = int(one.output())
    began_s = time.monotonic()
    assert one.stop() == ""
    assert time.monotonic() - began_s < 6.0
    assert (one.phase, one.exit_status) == ("over", 128 + signal.SIGTERM)
    wait_for(lambda: not _lives(child), 3.0)
    assert reviewed(one.folder).run.ended


def _lives(pid: int) -> bool:
    """Runs still; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_who_does_not_hear_is_killed_after_a_while(tools):
    one = Supervisor(What((sys.executable, "-c", DEAF)), tools, look(), patience_s=0.4)
    one.start()
    wait_for(lambda: b"deaf" in one.output())
    assert one.stop() == ""
    assert one.exit_status == 128 + signal.SIGKILL


def test_a_program_that_quits_does_not_wait_for_the_command(tools):
    one = Supervisor(What((sys.executable, "-c", DEAF)), tools, look())
    one.start()
    wait_for(lambda: b"deaf" in one.output())
    began_s = time.monotonic()
    said = one.stop(within_s=2.5)
    took_s = time.monotonic() - began_s
    group = one._job.pid  # type: ignore[union-attr]
    try:
        assert took_s < 2.8
        assert "has not yet" in said
        assert str(group) in said
        wait_for(lambda: one.phase == "over", 2.0)
        assert reviewed(one.folder).run.ended
    finally:
        os.killpg(group, signal.SIGKILL)
        wait_for(one._reaped)


def test_a_process_is_followed_and_left_alone(tools, folder):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as job:
        try:
            one = Supervisor(What(pid=job.pid), tools, look(folder))
            one.start()
            wait_for(lambda: one.observer.recorder.stats.ticks > 3)
            assert one.stop() == ""
            assert job.poll() is None
            again = Supervisor(
                What(pid=job.pid), tools_of("process", Wanted(), least=0), look(folder)
            )
            again.start()
            wait_for(lambda: again.observer.recorder.stats.ticks > 3)
        finally:
            job.kill()
    wait_for(lambda: again.phase == "over", 5.0)
    assert again.why == "the process ended"


def test_no_such_process(tools):
    with pytest.raises(InputError, match="no such process"):
        Supervisor(What(pid=1 << 22), tools, look())


def test_a_folder_alone_is_watched(tools, folder):
    one = Supervisor(What(), tools, look(folder))
    one.start()
    wait_for(lambda: one.observer.recorder.stats.ticks > 0)
    with (folder / "step_1.pt").open("wb") as file:
        file.write(os.urandom(8 << 20))
        file.flush()
        os.fsync(file.fileno())
    wait_for(lambda: one.observer.progress.saves == 1, 10.0)
    one.stop()
    seen = reviewed(one.folder)
    (window,) = seen.windows
    assert window.durable_s is not None
    assert window.returned_s is None  # nobody says how long training stood
    assert not (one.folder / OUTPUT).exists()


def test_without_any_meter_marks_are_kept(folder):
    from ckptcost.first.jobs.instruments import Instruments
    from ckptcost.first.runs.clocks import RealClock
    from ckptcost.first.runs.reader import load

    one = Supervisor(What(), Instruments((), (), RealClock()), look(folder))
    one.start()
    one.observer.tell("begin", "a", by="hand")
    one.observer.tell("returned", "a", by="hand")
    one.stop()
    assert [mark.name for mark in load(one.folder).marks if mark.window == "a"] == [
        "begin",
        "returned",
    ]


def run_through(tools, *argv: str) -> Supervisor:
    one = Supervisor(What(argv), tools, look())
    one.start()
    wait_for(lambda: one.phase == "over")
    return one


def test_of_a_long_output_the_end_is_kept_and_what_was_written_is_told(tools, tmp_path):
    """Some kernels count no bytes of a process; what they count is a number all the same."""
    code = (
        f"print('first' + '.' * 40_000); print('THE END'); open({str(tmp_path / 'x')!r},"
        " 'wb').write(bytes(4096))"
    )
    one = run_through(tools, sys.executable, "-c", code)
    assert one.output().endswith(b"THE END\n")
    assert not one.output().startswith(b"first")
    (note,) = [mark for mark in load(one.folder).marks if "exit_status" in mark.detail]
    assert note.detail["exit_status"] == 0
    assert note.detail["written_bytes"] >= 0


def test_workers_that_outlive_their_launcher_are_ended_with_it(tools, tmp_path):
    told = tmp_path / "worker"
    worker = f"trap '' TERM; echo $$ > {told}; while :; do sleep 0.05; done"
    one = Supervisor(
        What(
            ("sh", "-c", "sh -c \"$0\" & trap 'exit 0' TERM; while :; do sleep 0.05; done", worker)
        ),
        tools,
        look(),
        patience_s=0.2,
    )
    one.start()
    wait_for(lambda: told.is_file() and told.read_text().strip())
    one.stop()
    assert not _lives(int(told.read_text()))


def test_a_recording_that_fails_says_so_and_is_over(tools, monkeypatch):
    one = Supervisor(What(), tools, look())

    def broken() -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(one.observer, "look", broken)
    one.start()
    one.stop()
    assert one.phase == "over"
    assert one.troubles()[0] == "the recording failed: ZeroDivisionError: a defect"


def test_a_command_has_nothing_to_read(tools):
    """Even where this program's own input is a pipe that stays open."""
    own, (ours, theirs) = os.dup(0), os.pipe()
    try:
        os.dup2(ours, 0)
        one = run_through(tools, sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))")
    finally:
        os.dup2(own, 0)
        for each in (own, ours, theirs):
            os.close(each)
    assert one.output() == b"''\n"
