"""The Kubernetes and systemd recipes: their shape, and what can be run of them where there is no
cluster and systemd runs nothing."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ckptcost.first.fleet.node_file import decode

HERE = Path(__file__).resolve().parents[3]
SHIPPED = HERE / "examples" / "fleet"
UNITS = sorted((SHIPPED / "systemd").iterdir())
TRAIN = """
import os, sys, time
from pathlib import Path
until_s = time.monotonic() + 30.0
while not list(Path(sys.argv[2]).rglob("*.jsonl")) and time.monotonic() < until_s:
    time.sleep(0.05)
time.sleep(1.5)  # a recorder is there, and looks at what the process does at rest
for n in (1, 2):
    with open(f"{sys.argv[1]}/step_{n}.pt", "wb") as file:
        for _ in range(4):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    time.sleep(2.5)
"""


def wait_for_child(pid):
    children, until_s = Path(f"/proc/{pid}/task/{pid}/children"), time.monotonic() + 30.0
    while not children.read_text():
        assert time.monotonic() < until_s
        time.sleep(0.01)


@pytest.fixture
def programs(tmp_path):
    """A folder for PATH with `ckptcost` in it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ckptcost").write_text(f'#!/bin/sh\nexec {sys.executable} -m ckptcost "$@"\n')
    (tmp_path / "bin/ckptcost").chmod(0o755)
    return tmp_path / "bin"


@pytest.fixture(scope="module")
def job():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((SHIPPED / "kubernetes/train.yaml").read_text())


def test_the_recorder_is_a_native_sidecar_beside_the_training(job):
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    pod = job["spec"]["template"]["spec"]
    (sidecar,), (train,) = pod["initContainers"], pod["containers"]
    assert sidecar["restartPolicy"] == "Always"  # which makes it one
    assert pod["restartPolicy"] == "Never"
    assert job["spec"]["backoffLimit"] == 0
    assert pod["shareProcessNamespace"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert not any("securityContext" in each for each in (sidecar, train))  # both are of one user
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounts = {
        c["name"]: {m["name"]: m["mountPath"] for m in c["volumeMounts"]} for c in (sidecar, train)
    }
    assert set().union(*mounts.values()) == volumes
    assert mounts["ckptcost"]["checkpoints"] == mounts["train"]["checkpoints"]
    environ = {each["name"]: each for each in sidecar["env"]}
    assert " ".join(train["command"]).startswith(environ["TRAINING"]["value"])
    assert (
        environ["CKPTCOST_NODES"]["value"]
        == str(job["spec"]["completions"])
        == str(job["spec"]["parallelism"])
    )
    assert mounts["ckptcost"]["runs"] == environ["CKPTCOST_RUNS"]["value"]
    assert mounts["ckptcost"]["store"] == environ["STORE"]["value"]
    # what it waits for after the end fits into the time that it gets: settling, packing
    assert pod["terminationGracePeriodSeconds"] >= 40 + int(
        re.search(r"timeout (\d+)", sidecar["args"][0])[1]
    )
    assert "$((" not in sidecar["args"][0]  # $(NAME) and $$ are for the kubelet
    assert set(re.findall(r"\$\((\w+)\)", sidecar["args"][0])) == {"training"}
    assert "training" not in environ


def test_what_the_sidecar_does_ends_with_the_run_in_the_store(job, programs, tmp_path):
    sidecar = job["spec"]["template"]["spec"]["initContainers"][0]
    folders = {name: tmp_path / name for name in ("runs", "store", "checkpoints")}
    for folder in folders.values():
        folder.mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    argv = [
        sys.executable,
        str(tmp_path / "train.py"),
        str(folders["checkpoints"]),
        str(folders["runs"]),
    ]
    environ = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("CKPTCOST", "SLURM"))
    }
    environ |= {each["name"]: each["value"] for each in sidecar["env"] if "value" in each}
    environ |= {
        "TRAINING": " ".join(argv[:2]),
        "CKPTCOST_RUNS": str(folders["runs"]),
        "STORE": str(folders["store"]),
        "CKPTCOST_JOB": "train",
        "CKPTCOST_RUN_ID": "8f2c",
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH", "")))),
    }
    with subprocess.Popen(
        [*sidecar["command"], *sidecar["args"]], env=environ, stderr=subprocess.PIPE, text=True
    ) as beside:
        wait_for_child(beside.pid)  # it is there first, and waits
        with subprocess.Popen(argv) as training:
            until_s = time.monotonic() + 40.0
            while not list(folders["checkpoints"].iterdir()) and time.monotonic() < until_s:
                time.sleep(0.05)
            beside.terminate()  # while it records: noted, and what is left to do is done
        assert training.returncode == 0
        _, said = beside.communicate(timeout=60)
    assert (beside.returncode, said) == (0, "")
    (file,) = folders["store"].rglob("*.parquet")
    day = decode(file.read_bytes())
    assert (day.head.job, day.head.run, day.head.nodes) == ("train", "8f2c", 2)
    assert day.head.labels["model"] == "llama-8b"
    assert day.many == 2
    assert list(day.rows["bytes"]) == pytest.approx([4 << 20] * 2, rel=0.01)
    assert (folders["runs"] / "report.txt").read_text()


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("systemd-analyze") is None,
    reason="needs root, and systemd-analyze (Debian: systemd)",
)
def test_systemd_understands_the_units(programs, tmp_path):
    units = []
    for unit in UNITS:
        text = unit.read_text().replace("/opt/ckptcost/bin/ckptcost", str(programs / "ckptcost"))
        units.append(tmp_path / unit.name)
        units[-1].write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    broken = tmp_path / "broken.service"
    broken.write_text(units[0].read_text().replace("ProtectSystem=strict", "ProtectSystem=maybe"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", broken],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "protect system value" in done.stderr  # so that the test above can fail


def section(unit, name):
    parser = configparser.RawConfigParser(strict=False, delimiters="=")
    parser.optionxform = str
    parser.read(SHIPPED / "systemd" / unit)
    return parser[name]


def test_hardening_leaves_the_meters_open():
    node, pack = (
        section("ckptcost-node.service", "Service"),
        section("ckptcost-pack.service", "Service"),
    )
    assert node["ProtectSystem"] == pack["ProtectSystem"] == "strict"
    # each of these takes away devices or files that a meter reads
    assert not {
        "PrivateDevices",
        "DevicePolicy",
        "DeviceAllow",
        "ProtectClock",
        "ProcSubset",
        "ProtectProc",
        "SystemCallFilter",
    } & set(node)
    assert {"PrivateDevices", "SystemCallFilter"} <= set(pack)
    assert node["KillSignal"] == "SIGINT"
    assert section("ckptcost-pack.timer", "Timer")["OnCalendar"] == "hourly"


def test_the_units_command_records_a_folder_and_ends_in_order(tmp_path, programs):
    words = section("ckptcost-node.service", "Service")["ExecStart"]
    assert words.startswith("/opt/ckptcost/bin/ckptcost attach ")
    folder = tmp_path / "ckpt"
    folder.mkdir()
    command = (
        words.replace("/opt/ckptcost/bin/", "")
        .replace("/scratch/ckpt", str(folder))
        .replace('"6 h"', '"1 s"')
    )
    environ = os.environ | {
        "CKPTCOST_RUNS": str(tmp_path / "runs"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "CKPTCOST_JOB": "node-a",
    }
    done = subprocess.run(
        ["sh", "-c", command], env=environ, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    packed = subprocess.run(
        ["sh", SHIPPED / "pack-runs.sh", tmp_path / "none"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert packed.returncode == 0


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None,
    reason="needs root, and setpriv of util-linux",
)
def test_packing_is_done_as_the_owner_of_the_runs(tmp_path, programs):
    shutil.copytree(SHIPPED, tmp_path / "fleet")
    (programs / "told").write_text(
        '#!/bin/sh\necho "$(id -u):$(id -G):$(grep NoNewPrivs /proc/self/status | tr -dc 0-9)"'
        ' >"$TOLD"\nexit 3\n'
    )
    (programs / "told").chmod(0o755)
    runs, told = tmp_path / "runs/7", tmp_path / "told"
    runs.mkdir(parents=True)
    (runs / "n.000.jsonl").touch()
    told.touch()
    for path in (runs, told):
        os.chown(path, 5432, 5433)
    for parent in tmp_path.parents[: len(tmp_path.parents) - 2]:
        parent.chmod(parent.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    conf = tmp_path / "fleet/fleet.conf"
    conf.write_text(conf.read_text() + f"PROGRAM={programs}/told\nRUNS={tmp_path}/runs\n")
    environ = {"PATH": os.environ["PATH"], "TOLD": str(told)}
    done = subprocess.run(
        [tmp_path / "fleet/pack-runs.sh", runs],
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert told.read_text() == "5432:5433:1\n"
    assert not (tmp_path / "runs/.packed").exists()  # it did not go well
