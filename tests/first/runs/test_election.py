"""One meter a node: with real processes that are killed, forked and spawned."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rank_process
from steady_meters import Steady
from waiting import wait_for

from ckptcost.first.errors import OutputError
from ckptcost.first.runs import election
from ckptcost.first.runs.election import Seat, global_rank, job_run_id, local_rank, lock_directory
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.station import Station

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("environ", "local", "world"),
    [
        ({}, 0, 0),
        ({"LOCAL_RANK": "3", "RANK": "11", "SLURM_LOCALID": "0"}, 3, 11),
        ({"SLURM_LOCALID": "2", "SLURM_PROCID": "6"}, 2, 6),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_RANK": "5"}, 1, 5),
        ({"LOCAL_RANK": "x"}, 0, 0),
        ({"LOCAL_RANK": "-1"}, 0, 0),
        ({"LOCAL_RANK": "2"}, 2, 2),
    ],
)
def test_ranks_from_launchers(environ, local, world):
    assert (local_rank(environ), global_rank(environ)) == (local, world)


def test_all_ranks_of_a_job_make_the_same_id():
    job = {"SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0"}
    assert job_run_id(job | {"SLURM_PROCID": "3"}) == job_run_id(job)
    assert job_run_id(job | {"SLURM_RESTART_COUNT": "1"}) != job_run_id(job)
    assert job_run_id(job | {"CKPTCOST_RUN_ID": "mine"}) == "mine"
    assert job_run_id({"TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "1"}) == ""
    assert len(job_run_id({"TORCHELASTIC_RUN_ID": "x"})) == 32
    assert job_run_id({}) == ""


def test_locks_lie_where_nobody_else_can_write(tmp_path):
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    assert lock_directory({"XDG_RUNTIME_DIR": str(private)}, tmp_path) == private
    private.chmod(0o770)
    ours = tmp_path / f"ckptcost-{os.getuid()}"
    assert lock_directory({"XDG_RUNTIME_DIR": str(private)}, tmp_path) == ours
    assert ours.stat().st_mode & 0o777 == 0o700
    assert lock_directory({}, tmp_path) == ours
    ours.chmod(0o777)
    with pytest.raises(OutputError, match="only you can write"):
        lock_directory({}, tmp_path)
    ours.rmdir()
    ours.symlink_to(private)
    with pytest.raises(OutputError, match="only you can write"):
        lock_directory({}, tmp_path)
    with pytest.raises(OutputError, match="cannot make"):
        lock_directory({}, tmp_path / "none")


def test_somebody_elses_directory(tmp_path, monkeypatch):
    (tmp_path / "ckptcost-54321").mkdir(mode=0o700)
    monkeypatch.setattr(election.os, "getuid", lambda: 54321)
    with pytest.raises(OutputError, match="only you can write"):
        lock_directory({}, tmp_path)


def test_one_process_takes_a_seat_once(tmp_path):
    one, other, elsewhere = (
        Seat("r", "n", tmp_path),
        Seat("r", "n", tmp_path),
        Seat("r2", "n", tmp_path),
    )
    assert one.take()
    assert one.take()
    assert not other.take()
    assert elsewhere.take()
    assert held_elsewhere(tmp_path)
    assert not other.held
    one.refresh()
    one.leave()
    one.leave()
    elsewhere.leave()
    assert not held_elsewhere(tmp_path)


def held_elsewhere(directory):
    """Whether another process, a spawned one, finds it taken."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=rank_process.take, args=(there, str(directory)))
    child.start()
    there.close()
    taken = here.recv()
    child.join()
    here.close()
    return not taken


def test_a_forked_child_neither_holds_nor_keeps_the_seat(tmp_path):
    """As a data loader that outlives its killed parent: with flock it would hold the lock on."""
    read, write = os.pipe()
    parent = os.fork()
    if parent == 0:
        seat = Seat("r", "n", tmp_path)
        seat.take()
        child = os.fork()
        if child == 0:
            os.write(
                write, b"%d %d %d\n" % (os.getpid(), seat.held, Seat("r", "n", tmp_path).take())
            )
            seat.leave()
        time.sleep(60)
        os._exit(0)
    os.close(write)
    grandchild, held, took = map(int, os.read(read, 100).split())
    os.close(read)
    try:
        assert (held, took) == (0, 0)
        mine = Seat("r", "n", tmp_path)
        assert not mine.take()
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        os.kill(grandchild, 0)  # it lives, with all that it inherited
        assert mine.take()
        mine.leave()
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_who_left_in_order_is_not_followed_at_once(tmp_path, monkeypatch):
    one = Seat("r", "n", tmp_path)
    assert one.take()
    one.leave()
    assert not one.take()
    monkeypatch.setattr(election, "_LEFT_S", 0.0)
    assert one.take()
    one.leave()


def test_a_lock_file_that_was_cleared_away_is_no_lock(tmp_path):
    one = Seat("r", "n", tmp_path)
    assert one.take()
    one.path.unlink()
    assert not held_elsewhere(
        tmp_path
    )  # the directory was cleared under our feet: nothing can help that ...
    one.leave()
    link = Seat("q", "n", tmp_path)
    link.path.symlink_to(tmp_path / "x")
    with pytest.raises(OSError, match="symbolic"):
        link.take()


def test_a_station_records_and_marks(tmp_path):
    station = Station(
        tmp_path / "run", "r" * 32, lambda: [Steady()], host="n", rank=5, local=0, locks=tmp_path
    ).start()
    assert station.elected
    station.mark("begin", "w", rank=None, size=3)
    station.expect(1.0)
    station.stop()
    station.stop()
    run = load(tmp_path / "run")
    assert [(m.name, m.rank, m.detail) for m in run.marks] == [("begin", 5, {"size": 3})]
    assert run.ended


def test_a_station_without_the_seat_marks_in_its_own_file(tmp_path):
    elected = Station(
        tmp_path / "run", "r" * 32, lambda: [Steady()], host="n", rank=0, local=0, locks=tmp_path
    ).start()
    never = Station(
        tmp_path / "run", "r" * 32, list, host="n", rank=3, local=3, locks=tmp_path
    ).start()
    never.mark("begin", "w")
    never.mark("end", "w", bytes=5)
    never.expect(1.0)
    assert not never.elected
    never.stop()
    elected.stop()
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "n.000.jsonl",
        "n.rank3.000.jsonl",
    ]
    assert [(m.name, m.rank) for m in load(tmp_path / "run").marks] == [("begin", 3), ("end", 3)]


def test_a_station_that_cannot_write_gives_its_seat_back(tmp_path):
    (tmp_path / "file").touch()
    station = Station(
        tmp_path / "file" / "run", "r", lambda: [Steady()], host="n", local=0, locks=tmp_path
    )
    with pytest.raises(OutputError):
        station.start()
    assert not station.elected
    assert not held_elsewhere(tmp_path)


class Ranks:
    def __init__(self, directory, locks, count):
        self.running = [
            subprocess.Popen(
                [
                    sys.executable,
                    str(HERE / "rank_process.py"),
                    "rank",
                    str(directory),
                    str(locks),
                    str(number),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(count)
        ]

    def end(self, number):
        process = self.running[number]
        out, _ = process.communicate("\n", timeout=30)
        assert process.returncode == 0
        return int(out.split()[-1]), "elected" in out

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


def test_four_ranks_one_meter_and_a_killed_one(tmp_path):
    ranks = Ranks(tmp_path / "run", tmp_path, 4)
    try:
        first = ranks.running[0]
        assert first.stdout.readline() == "elected\n"
        time.sleep(1.5)
        first.kill()
        first.communicate()
        killed_at = time.monotonic()
        wait_for(lambda: len(list((tmp_path / "run").glob("n.0*.jsonl"))) >= 2)
        took_s = time.monotonic() - killed_at
        time.sleep(0.7)
        counts = {number: ranks.end(number) for number in (1, 2, 3)}
    finally:
        ranks.close()
    run = load(tmp_path / "run")
    assert took_s < 10
    assert [elected for _, elected in counts.values()].count(True) == 1
    torn = [p for p in run.problems if "cut off" not in p.text]
    assert torn == []  # among them would be: two recorded at the same time
    metered = [header for header in run.headers if header.meters]
    assert [header.part for header in metered] == [0, 1]
    assert metered[0].rank == 0
    for number, (count, _) in counts.items():
        mine = [m.window for m in run.marks if m.rank == number]
        assert mine == [f"{number}-{k}" for k in range(count)]
    zero = [m.window for m in run.marks if m.rank == 0]
    assert zero == [f"0-{k}" for k in range(len(zero))]
    assert len(zero) > 10
    assert [m.t_s for m in run.marks] == sorted(m.t_s for m in run.marks)
    energy = run.series("gpu:0 energy_j")
    assert (energy.t_s[-1] - energy.t_s[0]) > 1.5
    began_s = (metered[1].monotonic_ns - run.nodes[0].origin_ns) / 1e9
    assert all(gap.end_s <= began_s + 1.5 for gap in run.gaps)
