"""`ckptcost run` once for each task of a launcher: real processes, which write one run with one
meter for each node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.joining import join_marks
from ckptcost.first.core.phases import windows_of
from ckptcost.first.errors import OutputError
from ckptcost.first.jobs.observe import Observer, WatchOptions
from ckptcost.first.jobs.recording import folder_for
from ckptcost.first.runs import station, store
from ckptcost.first.runs.election import Task, job_run_id, task_of
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.summary import summary

CKPTCOST = [sys.executable, "-m", "ckptcost.first"]
FEW = ("--meters", "block,writeback", "--settle", "0 s")
TASKS = 4
HOOKED = """
import os, sys, time
from pathlib import Path
import ckptcost
rank, folder = int(os.environ["SLURM_PROCID"]), Path(sys.argv[1])
while len(list(folder.glob("here.*"))) < int(os.environ["SLURM_STEP_NUM_TASKS"]):
    (folder / f"here.{rank}").touch()
    time.sleep(0.02)
for n in (1, 2):
    with ckptcost.window(f"step {n}"):
        time.sleep(0.1 + 0.1 * rank)
    time.sleep(0.6)
print(f"out of {rank}")
sys.exit(10 * rank)
"""
SAVING = """
import os, sys, time
from pathlib import Path
rank, folder = int(os.environ["SLURM_PROCID"]), Path(sys.argv[1])
(folder.parent / f"here.{rank}").touch()
while len(list(folder.parent.glob("here.*"))) < int(os.environ["SLURM_STEP_NUM_TASKS"]):
    time.sleep(0.02)
time.sleep(0.5)
(folder / "step_1").mkdir(exist_ok=True)
with (folder / "step_1" / f"part.{rank}").open("wb") as file:
    file.write(os.urandom(3_000_000))
    os.fsync(file.fileno())
time.sleep(2.5)
"""


def of_slurm(rank, tasks=TASKS, job="17"):
    return {
        "SLURM_JOB_ID": job,
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURM_JOB_NUM_NODES": "1",
    }


@pytest.fixture
def environ(tmp_path):
    clean = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("SLURM_", "OMPI_", "PMI", "RANK", "WORLD"))
    }
    (tmp_path / "locks").mkdir(mode=0o700)
    own = {"CKPTCOST_RUNS": "runs", "CKPTCOST_USER": "user", "XDG_RUNTIME_DIR": "locks"}
    return clean | {name: str(tmp_path / folder) for name, folder in own.items()}


@pytest.fixture
def start(environ):
    started = []

    def begin(program, *words, of=None, flags=FEW, **more):
        argv = [*CKPTCOST, "run", *flags, "--", sys.executable, "-c", program, *map(str, words)]
        started.append(
            subprocess.Popen(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**environ, **(of or {})},
                **more,
            )
        )
        return started[-1]

    yield begin
    for each in started:
        each.kill()
        each.communicate()


def folders(environ) -> list[Path]:
    return sorted(Path(environ["CKPTCOST_RUNS"]).iterdir())


def test_four_tasks_of_a_node_write_one_run_and_one_of_them_reads_the_meters(
    start, environ, tmp_path
):
    flags = (*FEW, "-o", "-", "-f", "json")
    tasks = [
        start(HOOKED, tmp_path, of=of_slurm(rank) | {"CKPTCOST_LABELS": "team=infra"}, flags=flags)
        for rank in range(TASKS)
    ]
    ended = [task.communicate(timeout=60) for task in tasks]
    assert [task.returncode for task in tasks] == [0, 10, 20, 30]
    assert ended[1:] == [(f"out of {rank}\n", "") for rank in range(1, TASKS)]
    said, _, report = ended[0][0].partition("\n")
    assert said == "out of 0"
    assert ended[0][1].startswith("ckptcost: kept as run "), "one of the four says where it is"

    (folder,) = folders(environ)
    assert folder.name == f"slurm-17-{job_run_id(of_slurm(0))[:8]}"
    run = load(folder)
    assert run.id == job_run_id(of_slurm(3))
    assert run.ended
    assert run.problems == ()
    assert len({header.pid for header in run.headers if header.meters}) == 1
    assert len(run.headers) == TASKS
    assert [event.detail["labels"] for event in run.events if event.domain == "job"] == [
        {"team": "infra"}
    ]

    first, second = windows_of(run.marks)
    assert [window.label for window in (first, second)] == ["step 1", "step 2"]
    for n, window in enumerate((first, second), start=1):
        assert [span.rank for span in window.spans] == [0, 1, 2, 3]
        assert window.returned_s == max(span.returned_s for span in window.spans)
        # each sleep of the slowest is 0.3 s longer than that of the fastest
        assert window.waited_s[0] - window.waited_s[3] == pytest.approx(0.3 * n, abs=0.25)
    assert first.stall_s >= 0.4

    told = summary(folder)
    assert told.state == "complete"
    assert told.exit_code in (10, 20, 30)  # not rank 0's
    assert told.command.startswith(Path(sys.executable).name)
    document = json.loads(report)
    assert [row["window"] for row in document["tables"]["windows"]["rows"]] == ["step 1", "step 2"]


def test_a_watched_folder_counts_once(start, environ, tmp_path):
    folder = tmp_path / "ckpt"
    folder.mkdir()
    flags = (*FEW[:2], "--settle", "2 s", "--watch", str(folder))
    tasks = [start(SAVING, folder, of=of_slurm(rank, 3), flags=flags) for rank in range(3)]
    assert [(task.communicate(timeout=60), task.returncode)[1] for task in tasks] == [0, 0, 0]
    run = load(folders(environ)[0])
    assert {mark.rank for mark in run.marks if mark.by == "watch"} == {0}
    marks = join_marks(run.marks)
    (window,) = windows_of(marks)
    (what,) = contents_of(marks, [window])
    assert (what.bytes, what.files) == (9_000_000, 3)


def test_two_jobs_on_one_node_share_nothing(start, environ):
    tasks = [start("pass", of=of_slurm(rank, 2, job)) for job in ("17", "18") for rank in range(2)]
    assert [(task.communicate(timeout=60), task.returncode)[1] for task in tasks] == [0] * 4
    runs = [load(folder) for folder in folders(environ)]
    assert [folder.name[:8] for folder in folders(environ)] == ["slurm-17", "slurm-18"]
    assert len({run.id for run in runs}) == 2
    for run in runs:
        assert len({header.pid for header in run.headers if header.meters}) == 1


def test_the_next_command_of_the_same_tasks_goes_on_with_the_run(start, environ):
    for _ in range(2):
        tasks = [start("pass", of=of_slurm(rank, 2)) for rank in range(2)]
        assert [(task.communicate(timeout=60), task.returncode)[1] for task in tasks] == [0, 0]
    (folder,) = folders(environ)
    run = load(folder)
    assert len({header.pid for header in run.headers if header.meters}) == 2
    assert run.problems == ()
    assert run.gaps == () or all(gap.end_s - gap.start_s < 4.0 for gap in run.gaps)


def test_without_a_launcher_each_is_for_itself(start, environ):
    alone = [start("pass") for _ in range(2)]
    alone += [
        start(
            "pass",
            of={
                "SLURM_JOB_ID": "17",
                "SLURM_PROCID": "0",
                "SLURM_LOCALID": "0",
                "SLURM_NTASKS": "4",
            },
        )
    ]
    assert [(task.communicate(timeout=60), task.returncode)[1] for task in alone] == [0, 0, 0]
    runs = [load(folder) for folder in folders(environ)]
    assert len({run.id for run in runs}) == len(runs) == 3
    assert all(
        len(run.headers) == 1 and run.headers[0].meters and "Z-" in folder.name
        for run, folder in zip(runs, folders(environ), strict=True)
    )


def test_a_named_folder_takes_the_tasks_of_one_run_and_no_other(start, tmp_path):
    flags = (*FEW, "--record", str(tmp_path / "kept"))
    own = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "CKPTCOST_RUN_ID": "mine"}
    tasks = [
        start("pass", of=own | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, flags=flags)
        for rank in range(2)
    ]
    assert [(task.communicate(timeout=60), task.returncode)[1] for task in tasks] == [0, 0]
    assert load(tmp_path / "kept").id == "mine"
    late = start("pass", of=own | {"CKPTCOST_RUN_ID": "other"}, flags=flags)
    _, said = late.communicate(timeout=60)
    assert late.returncode == OutputError.exit_code
    assert "holds a run already" in said


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun here (Debian: openmpi-bin)")
def test_open_mpi_names_the_job(environ):
    argv = [
        "mpirun",
        *(["--allow-run-as-root"] if os.getuid() == 0 else []),
        "--oversubscribe",
        "-n",
        "2",
    ]
    done = subprocess.run(
        [*argv, *CKPTCOST, "run", *FEW, "--", "true"],
        env=environ,
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (folder,) = folders(environ)
    run = load(folder)
    assert (
        sorted(header.rank for header in run.headers) == [0, 1] or len(run.headers) == 1
    )  # a task that was quicker than a mark
    assert len({header.pid for header in run.headers if header.meters}) == 1


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, None),
        (of_slurm(3), ("slurm-17", 3, 3)),
        (of_slurm(0, tasks=1), None),
        (of_slurm(1) | {"CKPTCOST_JOB": "night/7"}, ("night/7", 1, 1)),
        ({"RANK": "2", "WORLD_SIZE": "4"}, None),
        ({"RANK": "2", "WORLD_SIZE": "4", "CKPTCOST_RUN_ID": "a"}, ("job", 2, None)),
        ({"WORLD_SIZE": "4", "CKPTCOST_RUN_ID": "a"}, None),
        ({"RANK": "x", "WORLD_SIZE": "4", "CKPTCOST_RUN_ID": "a"}, None),
        ({"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "4"}, None),
        (of_slurm(0) | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, None),
        # mpirun in a batch script: what Slurm says is of the script
        (
            {
                "SLURM_JOB_ID": "17",
                "SLURM_PROCID": "0",
                "SLURM_LOCALID": "0",
                "OMPI_COMM_WORLD_RANK": "5",
                "OMPI_COMM_WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            },
            ("slurm-17", 5, 1),
        ),
    ],
)
def test_which_task_of_which_job(environ, found):
    task = task_of(environ)
    assert (task if task is None else task[1:]) == found
    assert task is None or task.run == job_run_id(environ)


def test_nodes_of_one_mpirun_agree_whatever_slurm_calls_their_daemons_step():
    mpi = {
        "OMPI_MCA_orte_precondition_transports": "65b1-fb0d",
        "PMIX_NAMESPACE": "9",
        "SLURM_JOB_ID": "17",
    }
    assert job_run_id(mpi) == job_run_id(mpi | {"SLURM_STEP_ID": "0"})
    assert job_run_id(mpi) != job_run_id(mpi | {"PMIX_NAMESPACE": "10"})
    assert (
        job_run_id({"PMIX_NAMESPACE": "a"})
        == job_run_id({"PMIX_NAMESPACE": "a", "PMIX_RANK": "1"})
        != ""
    )


def test_the_folder_of_a_job_is_the_same_for_all_its_tasks(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    assert (
        folder_for(None, "a" * 32, "../night 7")
        == folder_for(None, "a" * 32, "../night 7")
        == tmp_path / "runs" / "night-7-aaaaaaaa"
    )
    assert folder_for(None, "a" * 32) != folder_for(None, "a" * 32)
    (tmp_path / "file").touch()
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="cannot make a folder"):
        store.shared_folder("a", "b")


@pytest.mark.parametrize(
    ("rank", "local", "blind", "elected", "watches"),
    [
        (0, 0, False, False, True),
        (8, 0, False, True, True),
        (9, 1, False, True, False),  # a node's own disk: each node's first task
        (0, 0, True, True, True),
        (8, 0, True, True, False),
        (9, 1, True, False, False),  # seen by all nodes: the job's first task
        (3, None, False, True, True),
        (3, None, False, False, False),
        (0, None, True, False, True),
    ],
)
def test_who_watches_a_folder(rank, local, blind, elected, watches, tmp_path, monkeypatch):
    from types import SimpleNamespace

    from ckptcost.first.jobs import observe

    monkeypatch.setattr(observe, "kind_of", lambda path: SimpleNamespace(blind=blind))
    observer = Observer(
        lambda: None,
        WatchOptions(watch=(tmp_path,)),
        tmp_path / "run",
        task=Task("a", "job", rank, local),
    )
    monkeypatch.setattr(Observer, "reads", elected)
    assert observer._watches(tmp_path) is watches


@pytest.mark.parametrize(("local", "reads"), [(0, True), (1, False)])
def test_without_a_place_for_the_lock_the_first_task_reads_and_the_job_goes_on(
    local, reads, tmp_path, monkeypatch
):
    def nowhere(*_):
        raise OutputError("no directory for locks")

    monkeypatch.setattr(station, "Seat", nowhere)
    made = station.Station(tmp_path, "run", list, rank=local, local=local).start()
    made.mark("begin", "step 1")
    assert made.elected is reads
    made.stop()
    assert made.problem == "no directory for locks"
    assert [mark.window for mark in load(tmp_path).marks] == ["step 1"]
