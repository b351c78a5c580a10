"""A training process that records by itself: the run that it leaves, its ranks, its forks, its
violent end, and a folder that fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ckptcost
from ckptcost.first.core.channels import Channel
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.phases import windows_of
from ckptcost.first.errors import MeterUnavailable
from ckptcost.first.hooks import own_recording, receivers
from ckptcost.first.hooks.own_recording import NotRecording, Recording
from ckptcost.first.meters.base import Basic
from ckptcost.first.runs import election
from ckptcost.first.runs.reader import load


class Flat(Basic):
    """100 W, for ever."""

    def __init__(self):
        super().__init__("flat", (Channel("gpu:0", "energy_j", "flat counter", scope="gpu"),))

    def read(self, t_ns):
        return [100.0 * t_ns / 1e9]


@pytest.fixture(autouse=True)
def _locks(tmp_path_factory, monkeypatch):
    locks = tmp_path_factory.mktemp("locks")
    locks.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(locks))
    monkeypatch.setattr(election, "_LEFT_S", 0.0)


def flat():
    return [Flat()]


def names(run, window=None):
    return [mark.name for mark in run.marks if mark.by == "api" and window in (None, mark.window)]


def test_a_run_that_can_be_read(tmp_path, monkeypatch):
    with ckptcost.record(tmp_path / "run", flat) as recording:
        assert recording.elected
        with ckptcost.window("step 1", path=tmp_path):
            pass
        for _ in range(3):
            ckptcost.step()
    run = load(tmp_path / "run")
    assert names(run, "step 1") == ["begin", "returned"]
    assert [mark.detail for mark in run.marks if mark.window == "step 1" and mark.by == "api"] == [
        {"path": str(tmp_path)}
    ] * 2
    assert sum(len(mark.detail["ends_ms"]) for mark in run.marks if mark.name == "steps") == 3
    assert run.id == recording.run_id == os.environ["CKPTCOST_RUN_ID"], "where children find it"
    assert len(run.node().ticked_s()) >= 2
    assert ckptcost.begin("afterwards").returned() is None
    recording.stop()


def on_disk(path):
    return (
        os.statvfs(path).f_blocks
        and subprocess.run(
            ["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=False
        ).stdout
    )


def test_it_finds_out_itself_when_a_save_is_safe(tmp_path):
    if "ext" not in (on_disk(tmp_path) or ""):
        pytest.skip("not a file system whose page cache tells the truth")
    with (
        ckptcost.record(tmp_path / "run", flat, wait_s=10.0),
        ckptcost.window("step 1", path=tmp_path / "a.pt"),
        (tmp_path / "a.pt").open("wb") as file,
    ):
        file.write(os.urandom(100_000))
        file.flush()
        os.fsync(file.fileno())
    run = load(tmp_path / "run")
    (window,) = windows_of(run.marks)
    (contents,) = contents_of(run.marks, [window])
    if contents.why in ("NOT_SUPPORTED", "NOT_PERMITTED"):
        pytest.skip(contents.why)
    assert window.durable_why == "", contents
    assert window.durable_s >= window.begin_s
    assert contents.how in ("cachestat", "fiemap")


def test_the_environment_is_enough(tmp_path):
    code = (
        "import ckptcost, time\nwith ckptcost.window('s', path='x'):"
        " time.sleep(0.05)\nckptcost.step()"
    )
    environ = {
        **os.environ,
        "CKPTCOST_RECORD": str(tmp_path / "run"),
        "RANK": "4",
        "LOCAL_RANK": "0",
    }
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    run = load(tmp_path / "run")
    assert names(run) == ["begin", "returned", "steps"]
    assert {mark.rank for mark in run.marks if mark.by == "api"} == {4}
    assert run.node().ticked_s().shape[0] > 1, "this machine has at least a clock of its processes"


RANK = """
import sys, time, ckptcost
from ckptcost.first.hooks import receivers
ckptcost.step()
print(receivers.state.receiver.run_id, flush=True)
with ckptcost.window("step 1"): time.sleep(0.05)
sys.stdin.read()
"""


def started(directory, number, **more):
    environ = {
        **os.environ,
        "CKPTCOST_RECORD": str(directory),
        "RANK": str(number),
        "LOCAL_RANK": str(number),
        **more,
    }
    return subprocess.Popen(
        [sys.executable, "-c", RANK],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "launcher",
    [
        {"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0"},
        {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"},
    ],
)
def test_ranks_are_one_run_and_one_of_them_reads(tmp_path, launcher):
    ranks = [started(tmp_path / "run", number, **launcher) for number in range(3)]
    ids = {rank.stdout.readline().strip() for rank in ranks}
    for rank in ranks:
        rank.communicate("", timeout=60)
        assert rank.returncode == 0
    assert len(ids) == 1
    run = load(tmp_path / "run")
    assert run.id in ids
    assert {(mark.name, mark.rank) for mark in run.marks if mark.window == "step 1"} == {
        (name, r) for name in ("begin", "returned") for r in range(3)
    }
    (window,) = windows_of(run.marks)
    assert len(window.spans) == 3
    assert len(list((tmp_path / "run").glob("*.rank*.jsonl"))) == 2, (
        "the other two kept their own marks"
    )


def test_killed_it_leaves_what_it_had(tmp_path):
    code = """
import ckptcost, os, time
with ckptcost.window("s"): pass
time.sleep(1.0)
w = ckptcost.begin("t")
os.kill(os.getpid(), 9)
"""
    environ = {**os.environ, "CKPTCOST_RECORD": str(tmp_path / "run")}
    assert (
        subprocess.run(
            [sys.executable, "-c", code], env=environ, timeout=60, check=False
        ).returncode
        == -signal.SIGKILL
    )
    run = load(tmp_path / "run")
    assert names(run, "s") == ["begin", "returned"]


def test_a_worker_does_nothing_and_a_forked_rank_begins_anew(tmp_path):
    with ckptcost.record(tmp_path / "run", flat) as recording:
        with ckptcost.window("parent"):
            pass
        worker = os.fork()
        if worker == 0:
            recording.tell("returned", "parent", t_ns=1, path="/x", settle=True)
            recording.stop()
            os._exit(len(os.listdir("/proc/self/task")) - 1)
        assert os.waitpid(worker, 0)[1] == 0
        rank = os.fork()
        if rank == 0:
            os.environ["RANK"] = os.environ["LOCAL_RANK"] = "1"
            with ckptcost.window("child"):
                pass
            code = (
                0
                if receivers.state.receiver is not recording
                and receivers.state.receiver.run_id == recording.run_id
                else 1
            )
            receivers.leave()
            os._exit(code)
        assert os.waitpid(rank, 0)[1] == 0
        with ckptcost.window("parent 2"):
            pass
    run = load(tmp_path / "run")
    assert {(mark.window, mark.rank) for mark in run.marks if mark.name == "returned"} == {
        ("parent", 0),
        ("child", 1),
        ("parent 2", 0),
    }
    assert len({run.id}) == 1


# ---- what can be wrong


def test_a_folder_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    recording = ckptcost.record(tmp_path / "file" / "run", flat)
    assert isinstance(recording, NotRecording)
    assert "cannot make the run's directory" in recording.problem
    assert "nothing is recorded" in capsys.readouterr().err
    with recording, ckptcost.window("s"):
        pass
    receivers.forget()
    monkeypatch.setenv("CKPTCOST_RECORD", str(tmp_path / "file" / "run"))
    with ckptcost.window("s"):
        pass
    assert capsys.readouterr().err.count("nothing is recorded") == 1, "said once"
    with ckptcost.window("s"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("directory", [None, 5, "a\0b", object()])
def test_a_folder_that_is_none(directory, capsys):
    with ckptcost.record(directory, flat) as recording:
        assert recording.problem


def test_meters_that_are_not_there(tmp_path, capsys):
    def broken():
        raise ZeroDivisionError

    def none():
        raise MeterUnavailable("none", "buy one")

    assert "no meter named 'nvmll'" in ckptcost.record(tmp_path / "a", "nvmll").problem
    assert "none. buy one" in ckptcost.record(tmp_path / "b", none).problem
    assert "ZeroDivisionError" in ckptcost.record(tmp_path / "c", broken).problem
    with ckptcost.record(tmp_path / "d", "") as recording:
        assert recording.problem == ""
        with ckptcost.window("s"):
            pass
    assert names(load(tmp_path / "d")) == ["begin", "returned"], "marks alone are a run, too"


def test_a_full_disk_is_not_the_jobs_affair(tmp_path, capsys):
    """A file system of one page or two; it fills while the job runs."""
    if os.getuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)],
        capture_output=True,
        check=False,
    ).returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        with ckptcost.record(folder, flat) as recording:
            for number in range(300):
                with ckptcost.window(f"step {number} " + "x" * 150):
                    pass
            time.sleep(0.7)
        assert "No space left" in recording.problem
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_second_folder_is_a_second_run_and_the_same_one_is_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = ckptcost.record("a", flat)
    assert ckptcost.record(tmp_path / "a", flat) is first
    second = ckptcost.record(tmp_path / "b", flat)
    assert (first.listening, second.listening) == (False, True)
    assert first.run_id != second.run_id
    second.stop()
    third = ckptcost.record(tmp_path / "c", flat, run_id="mine")
    assert third.run_id == "mine"
    third.stop()
    assert load(tmp_path / "c").id == "mine"


def test_off_and_wrapped_it_stays_out(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_SOCKET", str(tmp_path / "s"))
    assert "wrapper" in ckptcost.record(tmp_path / "run").problem
    monkeypatch.setenv("CKPTCOST", "off")
    with ckptcost.record(tmp_path / "run") as recording:
        assert (recording.problem, recording.elected, recording.stop()) == (
            "CKPTCOST=off",
            False,
            None,
        )
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_the_launcher_gives_comes_first(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert own_recording._shared_id() == election.job_run_id()
    assert "CKPTCOST_RUN_ID" not in os.environ
    monkeypatch.setenv("CKPTCOST_RUN_ID", "given")
    assert own_recording._shared_id() == "given"
    monkeypatch.delenv("SLURM_JOB_ID")
    monkeypatch.delenv("CKPTCOST_RUN_ID")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "16")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert own_recording._launched_id() == "", "several nodes: they cannot know of each other"
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert own_recording._launched_id() == own_recording._launched_id() != ""


def test_a_run_ends_once(tmp_path):
    recording = Recording(tmp_path / "run", flat)
    receivers.use(recording)
    recording.stop(wait_s=0.0)
    recording.stop()
    recording.close()
    recording.tell("begin", "late")
    assert names(load(tmp_path / "run")) == []
    assert Path(tmp_path / "run").is_dir()
