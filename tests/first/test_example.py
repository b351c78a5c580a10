"""examples/train_tiny.py: it learns, saves in each way, goes on exactly where it was, ends well on
SIGTERM, and tells its marks."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "examples" / "train_tiny.py"
SMALL = ["--width", "64", "--layers", "1", "--heads", "2", "--context", "16", "--batch", "4"]
WAYS = ("torch", "torch-tmp", "dcp", "dcp-async", "shards:5")


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    pytest.importorskip("torch", reason="torch is not installed (make torch)")
    spec = importlib.util.spec_from_file_location("train_tiny", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = signal.getsignal(signal.SIGTERM)
    spec.loader.exec_module(module)
    yield module
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def train(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """The lines it prints, without times."""

    def run(folder: Path, *words: str) -> list[str]:
        capsys.readouterr()
        example.main(["--dir", str(folder), *SMALL, *words])
        return [re.sub(r" \d+ ms$", "", line) for line in capsys.readouterr().out.splitlines()]

    return run


def losses(lines: list[str]) -> list[float]:
    return [float(line.split()[3]) for line in lines if line.startswith("step ")]


def test_the_loss_falls(train, tmp_path):
    found = losses(train(tmp_path, "--steps", "150", "--every", "1000"))
    assert len(found) == 150
    assert found[0] > 3.9  # it knows nothing: ln 64 = 4.16
    assert sum(found[-5:]) / 5 < 2.6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", WAYS)
def test_it_goes_on_exactly(train, tmp_path, way):
    whole = train(tmp_path / "whole", "--steps", "9", "--every", "1000")
    first = train(tmp_path / "a", "--steps", "6", "--every", "2", "--save", way, "--keep", "2")
    assert [line for line in first if line.startswith("step ")] == whole[:6]
    for name in ("step_2", "step_4", "step_6"):
        assert first.index(f"saving {name}") < first.index(f"saved {name}")
    suffix = ".pt" if way.startswith("torch") else ""
    assert {path.name for path in (tmp_path / "a").iterdir()} == {
        f"step_4{suffix}",
        f"step_6{suffix}",
    }

    second = train(tmp_path / "a", "--steps", "9", "--every", "1000", "--save", way, "--resume")
    assert second == [f"resumed step_6{suffix}", *whole[6:]]


def test_a_checkpoint_holds_model_optimizer_step_and_random_state(train, tmp_path):
    train(tmp_path, "--steps", "2", "--every", "2")
    import torch

    state = torch.load(tmp_path / "step_2.pt")
    assert state.keys() == {"model", "optimizer", "step", "rng"}
    assert state["step"] == 2
    values = sum(tensor.numel() for tensor in state["model"].values())
    moments = [
        value
        for found in state["optimizer"]["state"].values()
        for key, value in found.items()
        if key.startswith("exp_avg")
    ]
    assert sum(moment.numel() for moment in moments) == 2 * values
    assert values > 10_000


def test_each_shard_is_its_share(train, tmp_path):
    """A view written by torch.save brings along all that lies behind it."""
    train(tmp_path / "one", "--steps", "1", "--every", "1", "--save", "shards:1")
    train(tmp_path / "five", "--steps", "1", "--every", "1", "--save", "shards:5")
    one, *five = [
        [path.stat().st_size for path in (tmp_path / name / "step_1").iterdir()]
        for name in ("one", "five")
    ]
    assert len(five[0]) == 5
    assert max(five[0]) < 0.5 * one[0]


@pytest.mark.parametrize("way", ["dcp", "torch-tmp", "shards:2"])
def test_half_a_checkpoint_is_not_taken(train, tmp_path, way):
    train(tmp_path, "--steps", "2", "--every", "2", "--save", way)
    if way == "dcp":  # killed before the index
        half = tmp_path / "step_4"
        half.mkdir()
        (half / "__0_0.distcp").write_bytes(b"half")
    elif way == "torch-tmp":
        half = tmp_path / "step_4.pt.tmp"
        half.write_bytes(b"half")
    else:
        half = tmp_path / "step_4.tmp"
        half.mkdir()
        (half / "shard_0.pt").write_bytes(b"half")
    lines = train(tmp_path, "--steps", "4", "--every", "2", "--save", way, "--resume")
    assert lines[0].startswith("resumed step_2")
    assert lines[-1] == "saved step_4"
    assert not half.exists() or way == "dcp"
    assert train(tmp_path, "--steps", "5", "--every", "1000", "--resume")[0].startswith(
        "resumed step_4"
    )


def test_other_checkpoints_are_not_overwritten(train, tmp_path, capsys):
    train(tmp_path, "--steps", "1", "--every", "1")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with pytest.raises(SystemExit) as stop:
        train(tmp_path, "--steps", "1", "--every", "1")
    assert stop.value.code == 2
    assert "holds checkpoints" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("way", ["shards", "shards:0", "shards:-1", "tar"])
def test_an_unknown_way_is_refused_before_training(train, tmp_path, way):
    with pytest.raises(SystemExit) as stop:
        train(tmp_path / "none", "--save", way)
    assert stop.value.code == 2
    assert not (tmp_path / "none").exists()


def test_a_failed_save_in_the_background_ends_it(train, tmp_path, monkeypatch, example):
    from concurrent.futures import Future

    failed: Future[None] = Future()
    failed.set_exception(OSError(28, "No space left on device"))
    monkeypatch.setattr(example.dcp, "async_save", lambda *_, **__: failed)
    with pytest.raises(OSError, match="No space left"):
        train(tmp_path, "--steps", "4", "--every", "2", "--save", "dcp-async")


def test_sigterm_saves_and_marks_are_told(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed (make torch)")
    address, told = str(tmp_path / "marks"), []

    def listen() -> None:
        with server.accept()[0] as peer, peer.makefile() as lines:
            told.extend(json.loads(line) for line in lines)

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(address)
        server.listen(1)
        server.settimeout(60)
        listener = threading.Thread(target=listen)
        listener.start()
        environment = {
            **os.environ,
            "CKPTCOST_SOCKET": address,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        }
        command = [
            sys.executable,
            str(PROGRAM),
            "--dir",
            str(tmp_path / "a"),
            *SMALL,
            "--steps",
            "100000",
            "--every",
            "3",
            "--hooks",
        ]
        with subprocess.Popen(
            [*command, "--save", "torch-tmp"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as job:
            assert job.stdout is not None
            lines: list[str] = []
            for line in job.stdout:
                lines.append(line.strip())
                if line.startswith("step 5 "):
                    job.terminate()
            errors = job.stderr.read() if job.stderr else ""
        listener.join(60)
    assert (job.returncode, errors) == (0, "")
    step, name = lines[-3].split()[1], lines[-1].removeprefix("saved ")
    assert lines[-2:] == [f"saving step_{step}", f"saved step_{step}"]
    assert (tmp_path / "a" / f"{name}.pt").is_file()
    marks = [mark["name"] for mark in told if mark.get("window") == name]
    assert marks[0] == "begin"
    assert {"synced", "returned"} <= set(marks)
    assert {mark["window"] for mark in told if mark["name"] == "begin"} >= {"step_3", name}
    assert sum(len(mark["detail"]["ends_ms"]) for mark in told if mark["name"] == "steps") == int(
        step
    )
