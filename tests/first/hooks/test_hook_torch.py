"""torch.save and torch.distributed.checkpoint as they are installed: real files, real futures, real
ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for

import ckptcost
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.phases import windows_of
from ckptcost.first.hooks import dcp, torch_save

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
checkpoint = pytest.importorskip(
    "torch.distributed.checkpoint", reason="this PyTorch has no distributed checkpoint"
)
pytestmark = pytest.mark.filterwarnings("ignore")


def state(count=4, size=50_000):
    return {f"layer{number}": torch.full((size,), float(number)) for number in range(count)} | {
        "step": 7,
        "note": "x" * 100,
    }


def size_of(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def marks(ear, window=None):
    return [name for name, label in ear.names if window in (None, label)]


def test_torch_save(ear, tmp_path):
    assert torch_save.install()
    try:
        torch.save(state(), tmp_path / "a.pt")
        torch.save(state(), str(tmp_path / "b.pt"))
        with pytest.raises(RuntimeError, match="does not exist"):
            torch.save(state(), tmp_path / "no" / "c.pt")
    finally:
        torch_save.uninstall()
    assert marks(ear, "a.pt") == marks(ear, "b.pt") == ["begin", "written", "returned"]
    assert ear.detail("written", "a.pt") == {
        "bytes": (tmp_path / "a.pt").stat().st_size,
        "files": 1,
    }
    assert ear.detail("end", "c.pt")["error"] == "RuntimeError"
    assert torch.equal(torch.load(tmp_path / "a.pt")["layer3"], state()["layer3"])


@pytest.mark.parametrize("threads", [1, 3])
def test_dcp_syncs_and_counts_every_byte(ear, tmp_path, threads):
    writer = checkpoint.FileSystemWriter(tmp_path / "step_5", thread_count=threads)
    metadata = dcp.save(state(), storage_writer=writer)
    assert isinstance(metadata, checkpoint.Metadata)
    assert ear.names == [(name, "step_5") for name in ("begin", "written", "synced", "returned")]
    assert ear.detail("written") == {
        "bytes": size_of(tmp_path),
        "files": len(list((tmp_path / "step_5").iterdir())),
    }
    assert "settle" not in ear.detail("returned")


def test_dcp_without_sync_says_so(ear, tmp_path):
    dcp.save(state(), storage_writer=checkpoint.FileSystemWriter(tmp_path / "a", sync_files=False))
    assert marks(ear) == ["begin", "written", "returned"]
    assert ear.detail("returned")["settle"] is True
    dcp.save(state(), checkpoint_id=str(tmp_path / "b"))
    assert marks(ear, "b") == ["begin", "written", "synced", "returned"]


def test_torch_really_calls_fsync_where_we_say_so(ear, tmp_path, monkeypatch):
    synced = []
    original = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")) or original(fd)
    )
    dcp.save(state(), checkpoint_id=tmp_path / "a")
    files = {str(file) for file in (tmp_path / "a").iterdir()}
    assert {name.removesuffix(".tmp") for name in synced} == files


def test_dcp_in_the_background(ear, tmp_path):
    future = dcp.async_save(state(8, 500_000), checkpoint_id=tmp_path / "a")
    future.result(60)
    wait_for(lambda: len(ear.heard) >= 5)  # its callbacks come after
    assert marks(ear)[:2] == ["begin", "snapshotted"]
    assert sorted(marks(ear)) == sorted(["begin", "snapshotted", "returned", "written", "synced"])
    assert ear.detail("written")["bytes"] == size_of(tmp_path)
    (window,) = windows_of(Mark(mark.t_ns / 1e9, mark.name, mark.window) for mark in ear.heard)
    assert window.flags == ()
    assert window.end_s is not None


def test_dcp_with_staging_in_the_background(ear, tmp_path):
    staging = pytest.importorskip("torch.distributed.checkpoint.staging")
    options = staging.StagingOptions(
        use_pinned_memory=False,
        use_shared_memory=False,
        use_async_staging=True,
        use_non_blocking_copy=False,
    )
    try:
        stager = staging.DefaultStager(options)
    except AssertionError as error:
        pytest.skip(f"no staging in the background here: {error}")
    response = dcp.async_save(state(), checkpoint_id=tmp_path / "a", async_stager=stager)
    response.upload_completion.result(60)
    stager.close()
    wait_for(lambda: len(ear.heard) >= 5)
    assert sorted(marks(ear)) == sorted(["begin", "returned", "snapshotted", "written", "synced"])


def test_dcp_that_fails(ear, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BaseException, match="file"):  # CheckpointException is no Exception
        dcp.save(state(), checkpoint_id=tmp_path / "file" / "a")
    assert marks(ear) == ["begin", "end"]
    future = dcp.async_save(state(), checkpoint_id=tmp_path / "file" / "b")
    assert future.exception(60) is not None
    wait_for(
        lambda: {"end", "returned"} <= set(marks(ear, "b"))
    )  # in either order: it fails at once
    assert "written" not in marks(ear, "b")


def test_dcp_installed_is_one_window_for_all(ear, tmp_path):
    assert dcp.install()
    assert torch_save.install()
    try:
        with ckptcost.window("trainer", path=tmp_path):
            checkpoint.save(state(), checkpoint_id=tmp_path / "model")
            torch.save(state(), tmp_path / "rng.pt")
        checkpoint.async_save(state(), checkpoint_id=tmp_path / "alone").result(60)
    finally:
        dcp.uninstall()
        torch_save.uninstall()
    assert marks(ear, "trainer") == ["begin", "written", "returned"], "not all of it was synced"
    assert ear.detail("returned", "trainer")["bytes"] == size_of(tmp_path) - size_of(
        tmp_path / "alone"
    )
    assert {window for _, window in ear.names} == {"trainer", "alone"}
    wait_for(lambda: len(marks(ear, "alone")) == 5)
    assert marks(ear, "alone").count("begin") == 1


def test_the_signature_is_torchs_own():
    import inspect

    dcp.install()
    try:
        assert inspect.signature(checkpoint.save) == inspect.signature(
            inspect.unwrap(checkpoint.save)
        )
    finally:
        dcp.uninstall()


RANK = """
import sys, torch
from ckptcost.first.hooks import dcp
rank, place, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
import ckptcost
with ckptcost.window("before"): pass
torch.distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
from torch.distributed.tensor import distribute_tensor, init_device_mesh, Shard
mesh = init_device_mesh("cpu", (2,))
state = {f"w{n}": distribute_tensor(torch.ones(64, 1000), mesh, [Shard(0)]) for n in range(3)}
dcp.save(state, checkpoint_id=folder + "/step_1")
dcp.async_save(state, checkpoint_id=folder + "/step_2").result()
torch.distributed.destroy_process_group()
print("saved", flush=True)
"""
"""The last line stands for the exit code: once in a few thousand runs a thread of torch's own
aborts a process that is ending, after all of it was told ("terminate called without an active
exception")."""


def test_two_ranks_are_one_checkpoint_and_count_their_own_bytes(tmp_path):
    from ckptcost.first.hooks.listener import Listener

    told = []
    listener = Listener(
        lambda name, window, by, rank, t_ns, **detail: told.append(
            Mark(t_ns / 1e9, name, window, rank, by, detail)
        ),
        tmp_path / "s",
    )
    environ = {**os.environ, **listener.environ()}
    ranks = [
        subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore",
                "-c",
                RANK,
                str(number),
                str(tmp_path / "store"),
                str(tmp_path),
            ],
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        assert [rank.communicate(timeout=120)[0] for rank in ranks] == ["saved\n"] * 2
    finally:
        listener.close()
    windows = [window for window in windows_of(told) if window.label != "before"]
    assert [window.name for window in windows] == ["step_1", "step_2"]
    for window, contents in zip(windows, contents_of(told, windows), strict=True):
        assert [span.rank for span in window.spans] == [0, 1]
        assert (window.durable_why, window.returned_why, window.flags) == ("", "", ())
        assert contents.bytes == size_of(tmp_path / window.label)
        assert contents.files == len(list((tmp_path / window.label).iterdir()))
        assert contents.how == "dcp"
