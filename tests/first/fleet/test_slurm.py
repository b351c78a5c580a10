"""The Slurm recipe as it is shipped, on a real Slurm of one node that this test starts and ends;
skipped where there is none."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ckptcost.first.fleet.node_file import decode
from ckptcost.first.runs.reader import load

HERE = Path(__file__).resolve().parents[3]
SHIPPED = HERE / "examples" / "fleet"
DAEMONS = ("munged", "slurmctld", "slurmd")
TRAIN = """
import os, sys, time
from pathlib import Path
import ckptcost
rank, folder = int(os.environ["SLURM_PROCID"]), Path(os.environ["CKPT"])
(folder.parent / f"here.{rank}").touch()
# as a job that sets up its collectives
while len(list(folder.parent.glob("here.*"))) < int(os.environ["SLURM_NTASKS"]):
    time.sleep(0.02)
for n in (1, 2):
    with ckptcost.window(f"step {n}"):
        (folder / f"step_{n}").mkdir(exist_ok=True)
        with (folder / f"step_{n}" / f"part.{rank}").open("wb") as file:
            file.write(os.urandom(2_000_000))
            os.fsync(file.fileno())
        time.sleep(0.2)
    time.sleep(1.5)
"""
CONF = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
MailProg=/bin/true
Prolog={base}/fleet/slurm/prolog.sh
TaskProlog={base}/fleet/slurm/task-prolog.sh
Epilog={base}/fleet/slurm/epilog.sh
PrologFlags=Alloc
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=100 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def which(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


needs_slurm = pytest.mark.skipif(
    not all(map(which, (*DAEMONS, "sbatch"))),
    reason="no Slurm here (Debian: slurmctld slurmd slurm-client munge)",
)


def wait_for(true, what, most_s=20.0):
    until_s = time.monotonic() + most_s
    while not (found := true()):
        assert time.monotonic() < until_s, what() if callable(what) else what
        time.sleep(0.1)
    return found


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    """One node, with the recipe's scripts as prolog, task prolog and epilog."""

    def __init__(self, base: Path) -> None:
        self.base, self.running = base, []
        self.environ = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("SLURM", "CKPTCOST"))
        }
        self.environ |= {
            "SLURM_CONF": f"{base}/slurm.conf",
            "PATH": f"{base}/bin:{os.environ['PATH']}",
            "CKPT": f"{base}/ckpt",
        }
        self.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(HERE), os.environ.get("PYTHONPATH", "")))
        )
        self.environ["XDG_RUNTIME_DIR"] = f"{base}/locks"
        for name in ("munge", "state", "spool", "bin", "store", "ckpt", "log", "locks"):
            (base / name).mkdir(mode=0o700)
        (base / "munge/key").write_bytes(os.urandom(1024))
        (base / "munge/key").chmod(0o600)
        path = self.environ["PYTHONPATH"]  # Slurm gives an epilog none of its daemon's environment
        (base / "bin/ckptcost").write_text(
            f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m ckptcost "$@"\n'
        )
        (base / "bin/ckptcost").chmod(0o755)
        (base / "train.py").write_text(TRAIN)
        shutil.copytree(SHIPPED, base / "fleet")
        self.settings(
            PROGRAM=base / "bin/ckptcost",
            STORE=base / "store",
            RUNS=base / "runs",
            POWERCAP=base / "none",
        )

    def settings(self, **to):
        file = self.base / "fleet/fleet.conf"
        lines = [
            f"{name}={to[name]}" if (name := line.split("=")[0]) in to and "=" in line else line
            for line in file.read_text().splitlines()
        ]
        file.write_text("\n".join(lines) + "\n")

    def start(self):
        base, host = self.base, socket.gethostname().split(".")[0]
        user = pwd.getpwuid(os.getuid()).pw_name
        (base / "slurm.conf").write_text(
            CONF.format(base=base, host=host, user=user, ports=free_ports(2))
        )
        munge = [
            f"--{name}={base}/munge/{name.split('-')[0]}"
            for name in ("key-file", "socket", "pid-file", "seed-file", "log-file")
        ]
        self.daemon("munged", "-F", "--force", *munge)
        wait_for((base / "munge/socket").exists, lambda: self.said("munged"))
        self.daemon("slurmctld", "-D", "-f", f"{base}/slurm.conf")
        self.daemon("slurmd", "-D", "-f", f"{base}/slurm.conf", "-N", host)
        wait_for(
            lambda: self.state() == "idle", lambda: self.said("slurmctld") + self.said("slurmd")
        )

    def daemon(self, name, *words):
        with (self.base / "log" / name).open("wb") as log:
            self.running.append(
                subprocess.Popen(
                    [which(name), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self.environ,
                    cwd=self.base,
                )
            )

    def said(self, name):
        return (self.base / "log" / name).read_text()[-3000:]

    def call(self, *words):
        return subprocess.run(
            words,
            env=self.environ,
            cwd=self.base,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def state(self):
        return self.call("sinfo", "-h", "-o", "%t").stdout.strip()

    def batch(self, script):
        done = self.call("sbatch", "--parsable", script)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ended(self, job):
        """Its exit code, once its epilog is over too."""
        wait_for(
            lambda: (
                "JobState=COMPLETED" in (told := self.call("scontrol", "show", "job", job).stdout)
                or "JobState=FAILED" in told
            ),
            lambda: self.call("scontrol", "show", "job", job).stdout,
        )
        wait_for(lambda: self.state() not in ("comp", "mix", "alloc"), "the epilog does not end")
        told = self.call("scontrol", "show", "job", job).stdout
        return told.partition("ExitCode=")[2].split()[0]

    def stop(self):
        self.call("scancel", "--full", "--user", pwd.getpwuid(os.getuid()).pw_name)
        for each in reversed(self.running):
            each.terminate()
            try:
                each.wait(5)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait(5)


@pytest.fixture(scope="module")
def cluster():
    base = Path(tempfile.mkdtemp(prefix="ckptcost-slurm-"))  # a short path: sockets are in it
    base.chmod(0o755)
    made = Cluster(base)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(base, ignore_errors=True)


def shipped(cluster):
    """train.sbatch for this one node without GPUs."""
    script = (SHIPPED / "slurm/train.sbatch").read_text()
    for before, after in (
        ("#SBATCH --nodes=2\n", "#SBATCH --nodes=1\n"),
        ("--ntasks-per-node=8", "--ntasks-per-node=4"),
        ("#SBATCH --gpus-per-node=8\n", ""),
        ("--gpu-bind=none ", ""),
        ("train-%j.log", f"{cluster.base}/out-%j.log"),
        ("/scratch/ckpt", f"{cluster.base}/ckpt"),
        ("python train.py", f"{sys.executable} {cluster.base}/train.py"),
    ):
        assert before in script, before
        script = script.replace(before, after)
    file = cluster.base / "train.sbatch"
    file.write_text(script)
    return str(file)


@needs_slurm
def test_a_job_is_recorded_once_a_node_and_is_in_the_store_when_its_epilog_is_over(cluster):
    job = cluster.batch(shipped(cluster))
    code = cluster.ended(job)
    told = (cluster.base / f"out-{job}.log").read_text()
    assert code == "0:0", told
    assert [
        line
        for line in told.splitlines()
        if "ckptcost" in line and "kept as run" not in line and "of training lost" not in line
    ] == []

    (folder,) = (each for each in (cluster.base / "runs" / job).iterdir() if each.is_dir())
    run = load(folder)
    assert folder.name.startswith(f"slurm-{job}-")
    assert sorted({header.rank for header in run.headers}) == [0, 1, 2, 3]
    assert len({header.pid for header in run.headers if header.meters}) == 1
    assert run.problems == ()

    assert (cluster.base / "runs/.packed" / job).exists()
    (file,) = (cluster.base / "store").rglob("*.parquet")
    day = decode(file.read_bytes())
    assert (day.head.job, day.head.run, day.head.nodes, day.head.exit_code, day.head.over) == (
        job,
        run.id,
        1,
        0,
        True,
    )
    assert {
        "team": "infra",
        "model": "llama-8b",
        "tier": "scratch",
        "cluster": "trial",
    }.items() <= day.head.labels.items()
    assert list(day.rows["label"]) == ["step 1", "step 2"]
    assert list(day.rows["ranks"]) == [4, 4]
    assert list(day.rows["bytes"]) == [8_000_000.0, 8_000_000.0]
    assert cluster.state() == "idle"


@needs_slurm
def test_nothing_of_ours_fails_a_job_or_drains_its_node(cluster):
    script = cluster.base / "plain.sbatch"
    script.write_text(
        f"#!/bin/sh\n#SBATCH --output={cluster.base}/plain-%j.log\nckptcost run --meters block"
        " --settle '0 s' -- sh -c 'exit 7'\n"
    )
    cluster.settings(PROGRAM="/nowhere/ckptcost")
    job = cluster.batch(str(script))
    assert cluster.ended(job) == "7:0"
    assert len(list((cluster.base / "runs" / job).iterdir())) == 1  # kept, for the next packing
    assert not (cluster.base / "runs/.packed" / job).exists()
    assert cluster.state() == "idle"

    cluster.settings(RUNS="/proc/nowhere")
    cluster.environ["CKPTCOST_RUNS"] = f"{cluster.base}/own"
    assert cluster.ended(cluster.batch(str(script))) == "7:0"
    assert len(list((cluster.base / "own").iterdir())) == 1
    assert cluster.state() == "idle"


def test_what_was_packed_long_ago_goes_and_nothing_else(tmp_path):
    shutil.copytree(SHIPPED, tmp_path / "fleet")
    conf = tmp_path / "fleet/fleet.conf"
    conf.write_text(
        conf.read_text() + f"RUNS={tmp_path}/runs\nPROGRAM=/bin/false\nPOWERCAP={tmp_path}/none\n"
    )
    long_ago_s = time.time() - 20 * 86400
    packed = tmp_path / "runs/.packed"
    packed.mkdir(parents=True)
    before_s, now_s = long_ago_s - 9, time.time()
    aged = {
        "1": (long_ago_s, before_s),
        "2": (now_s, long_ago_s),
        "3": (long_ago_s, now_s),
        "node": (long_ago_s, before_s),
    }
    for name, (marked_s, written_s) in aged.items():
        folder = tmp_path / "runs" / name / "run"
        folder.mkdir(parents=True)
        (folder / "n.000.jsonl").touch()
        for each in (folder / "n.000.jsonl", folder, folder.parent):
            os.utime(each, (written_s, written_s))
        (packed / name).touch()
        os.utime(packed / name, (marked_s, marked_s))
    done = subprocess.run(
        [tmp_path / "fleet/slurm/epilog.sh"],
        env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "3"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    # 1 is in the store for long; 2 was packed lately; 3 was written to since, and could not be
    # packed again; the last is no job's
    assert sorted(each.name for each in (tmp_path / "runs").iterdir()) == [
        ".packed",
        "2",
        "3",
        "node",
    ]
    assert sorted(each.name for each in packed.iterdir()) == ["2", "3", "node"]


@pytest.mark.parametrize(
    "script", sorted(str(each.relative_to(SHIPPED)) for each in SHIPPED.rglob("*.s[bh]*"))
)
def test_scripts_are_of_a_plain_shell(script):
    assert subprocess.run(["sh", "-n", SHIPPED / script], check=False).returncode == 0
    assert os.access(SHIPPED / script, os.X_OK) == script.endswith(".sh")
    if which("shellcheck"):
        done = subprocess.run(
            ["shellcheck", "-x", SHIPPED / script],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
