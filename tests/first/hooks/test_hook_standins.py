"""Adapters against stand-ins with the signatures that the frameworks document: here no framework
need be installed."""

from __future__ import annotations

import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import pytest

import ckptcost
from ckptcost.first.hooks import (
    accelerate,
    dcp,
    deepspeed,
    hugging_face,
    lightning,
    receivers,
    torch_save,
    wrapping,
)


def marks(ear):
    return [name for name, _ in ear.names]


# ---- DeepSpeed and Accelerate


class Engine:
    global_steps = 12
    checkpoint_engine = None

    def save_checkpoint(
        self,
        save_dir,
        tag=None,
        client_state=None,
        save_latest=True,
        exclude_frozen_parameters=False,
    ):
        """Save training checkpoint."""
        if client_state is None:
            client_state = {}
        if save_dir is None:
            raise ValueError("no folder")
        return save_latest


def test_deepspeed(ear, tmp_path):
    engine = Engine()
    assert deepspeed.attach(engine)
    assert engine.save_checkpoint(tmp_path, save_latest=False) is False
    assert ear.names == [(name, "global_step12") for name in ("begin", "written", "returned")]
    assert ear.detail("returned") == {"path": str(tmp_path / "global_step12"), "settle": True}
    engine.save_checkpoint(tmp_path, "mine")
    assert ear.names[-1] == ("returned", "mine")
    with pytest.raises(ValueError, match="no folder"):
        engine.save_checkpoint(None)
    assert ear.names[-1][0] == "end"
    with pytest.raises(TypeError):
        engine.save_checkpoint(tmp_path, wrong=True)
    assert engine.save_checkpoint.__doc__ == "Save training checkpoint."


def test_a_deepspeed_engine_that_writes_elsewhere(ear, tmp_path):
    engine = Engine()
    engine.checkpoint_engine = SimpleNamespace(is_decoupled=lambda: True)
    deepspeed.attach(engine)
    engine.save_checkpoint(str(tmp_path))
    assert marks(ear) == ["begin", "returned"]


class Accelerator:
    def __init__(self, project_dir=None, automatic=False):
        self.project_dir, self.save_iteration = project_dir, 3
        self.project_configuration = SimpleNamespace(automatic_checkpoint_naming=automatic)

    def save_state(self, output_dir=None, safe_serialization=True, **save_model_func_kwargs):
        return str(output_dir)


def test_accelerate(ear, tmp_path):
    named, automatic = Accelerator(), Accelerator(str(tmp_path), True)
    assert accelerate.attach(named)
    assert accelerate.attach(automatic)
    assert named.save_state(tmp_path / "a") == str(tmp_path / "a")
    automatic.save_state()
    assert [mark.detail["path"] for mark in ear.heard if mark.name == "returned"] == [
        str(tmp_path / "a"),
        str(tmp_path / "checkpoints" / "checkpoint_3"),
    ]
    assert {window for _, window in ear.names} == {"a", "checkpoint_3"}


# ---- Hugging Face


class HfTrainer:
    def __init__(self, folder):
        self.state, self.folder, self.callbacks = SimpleNamespace(global_step=40), folder, []

    def _get_output_dir(self, trial):
        return self.folder

    def _save_checkpoint(self, model, trial):
        return None

    def add_callback(self, callback):
        self.callbacks.append(callback)


def test_hugging_face(ear, tmp_path, monkeypatch):
    transformers = ModuleType("transformers")
    transformers.TrainerCallback = type("TrainerCallback", (), {})
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    trainer = HfTrainer(str(tmp_path))
    assert hugging_face.attach(trainer)
    assert hugging_face.attach(trainer)
    trainer._save_checkpoint("model", None)
    assert ear.names == [(name, "checkpoint-40") for name in ("begin", "written", "returned")]
    assert ear.detail("returned") == {"path": str(tmp_path / "checkpoint-40"), "settle": True}
    (callback,) = trainer.callbacks
    callback.on_step_end(None, None, None)
    assert marks(ear)[-1] == "steps"


# ---- Lightning


class Plain:
    def save_checkpoint(self, checkpoint, path, storage_options=None):
        path.write_bytes(b"x" * 100)


class Behind(Plain):
    """As AsyncCheckpointIO keeps its thread and its error."""

    def __init__(self, fails=False):
        self._executor, self._error, self.fails = None, None, fails

    def save_checkpoint(self, checkpoint, path, storage_options=None):
        self._executor = self._executor or ThreadPoolExecutor(1)

        def saves():
            time.sleep(0.02)
            if self.fails:
                self._error = OSError(28, "full")
            else:
                super(Behind, self).save_checkpoint(checkpoint, path)

        self._executor.submit(saves)


class PlTrainer:
    is_global_zero = True

    def __init__(self, writer):
        self.strategy = SimpleNamespace(checkpoint_io=writer)

    def save_checkpoint(self, filepath, weights_only=None, storage_options=None):
        if self.is_global_zero:
            self.strategy.checkpoint_io.save_checkpoint({}, filepath)


def test_lightning(ear, tmp_path):
    trainer = PlTrainer(Plain())
    assert lightning.attach(trainer)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    assert ear.names == [(name, "last.ckpt") for name in ("begin", "written", "returned")]
    assert ear.detail("written") == {"bytes": 100, "files": 1}
    lightning.detach(trainer)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    assert len(ear.heard) == 3


def test_lightning_of_another_rank_says_no_bytes(ear, tmp_path):
    trainer = PlTrainer(Behind())
    trainer.is_global_zero = False
    (tmp_path / "last.ckpt").write_text("rank 0's")
    lightning.attach(trainer)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    assert marks(ear) == ["begin", "written", "returned"]
    assert ear.detail("written") == {}


@pytest.mark.parametrize("fails", [False, True])
def test_lightning_in_the_background(ear, tmp_path, fails):
    trainer = PlTrainer(Behind(fails))
    lightning.attach(trainer)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    assert marks(ear) == ["begin", "returned"]
    trainer.strategy.checkpoint_io._executor.shutdown()
    if fails:
        assert ear.detail("end")["error"] == "OSError"
    else:
        assert ear.detail("written") == {
            "path": str(tmp_path / "last.ckpt"),
            "settle": True,
            "bytes": 100,
            "files": 1,
        }


def test_the_callback_is_made_of_the_lightning_that_is_in_use(ear, monkeypatch):
    base = type("Callback", (), {"state_key": "x"})
    monkeypatch.setitem(sys.modules, "pytorch_lightning", SimpleNamespace(Callback=base))
    monkeypatch.delitem(sys.modules, "lightning.pytorch", raising=False)
    monkeypatch.delitem(vars(lightning), "Callback", raising=False)
    made = lightning.Callback()
    monkeypatch.delitem(vars(lightning), "Callback")
    assert isinstance(made, base)
    trainer = PlTrainer(Plain())
    made.setup(trainer, None, "fit")
    assert hasattr(trainer.save_checkpoint, wrapping._ORIGINAL)
    made.on_train_batch_end(trainer, None, None, None, 0)
    assert marks(ear) == ["steps"]
    made.teardown(trainer, None, "fit")
    assert not hasattr(trainer.save_checkpoint, wrapping._ORIGINAL)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = lightning.Nothing


# ---- torch


@pytest.fixture
def torch(monkeypatch):
    """Its parts that are called."""
    made = ModuleType("torch")
    made.save = lambda obj, f, pickle_module=None, pickle_protocol=2: (
        f.write(b"y" * 50) if hasattr(f, "write") else f.write_bytes(b"x" * 70)
    )
    made.distributed = ModuleType("torch.distributed")
    checkpoint = made.distributed.checkpoint = ModuleType("torch.distributed.checkpoint")
    filesystem = checkpoint.filesystem = ModuleType("torch.distributed.checkpoint.filesystem")
    made.distributed.is_available = lambda: False
    filesystem.FileSystem = type("FileSystem", (), {})

    class FileSystemWriter:
        def __init__(self, path, sync_files=True, fs=None):
            self.path, self.sync_files, self.fs = path, sync_files, fs or filesystem.FileSystem()

    filesystem.FileSystemWriter = FileSystemWriter
    metadata = SimpleNamespace(
        storage_data={
            n: SimpleNamespace(relative_path=f"__0_{n % 2}.distcp", length=100) for n in range(4)
        }
    )

    def save(
        state_dict,
        *,
        checkpoint_id=None,
        storage_writer=None,
        planner=None,
        process_group=None,
        no_dist=False,
        use_collectives=True,
    ):
        return metadata

    def async_save(state_dict, *, checkpoint_id=None, storage_writer=None, **_):
        return made.response

    checkpoint.save, checkpoint.async_save = save, async_save
    made.metadata = metadata
    for name, module in {
        "torch": made,
        "torch.distributed": made.distributed,
        "torch.distributed.checkpoint": checkpoint,
        "torch.distributed.checkpoint.filesystem": filesystem,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_dcp_saves_and_says_what_it_knows(ear, torch, tmp_path):
    (tmp_path / "step_7").mkdir()
    (tmp_path / "step_7" / ".metadata").write_bytes(b"m" * 11)
    assert dcp.save({}, checkpoint_id=tmp_path / "step_7") is torch.metadata
    assert ear.names == [(name, "step_7") for name in ("begin", "written", "synced", "returned")]
    assert ear.detail("written") == {"bytes": 411, "files": 3}
    assert ear.detail("synced") == {"how": "dcp"}
    assert "settle" not in ear.detail("returned")


@pytest.mark.parametrize(
    ("writer", "synced"),
    [
        (lambda w, path: w(path), True),
        (lambda w, path: w(path, sync_files=False), False),
        (lambda w, path: w(path, fs=object()), False),
        (lambda w, path: SimpleNamespace(path=path), False),
        (lambda w, path: object(), False),
    ],
)
def test_dcp_believes_only_what_it_knows_of_a_writer(ear, torch, tmp_path, writer, synced):
    made = writer(torch.distributed.checkpoint.filesystem.FileSystemWriter, str(tmp_path / "a"))
    dcp.save({}, storage_writer=made)
    assert ("synced" in marks(ear)) is synced
    assert ear.detail("written").get("bytes") == 400
    assert ear.names[0][1] == ("a" if hasattr(made, "path") else "dcp save 1")


def test_dcp_of_an_address_is_not_known_to_be_safe(ear, torch):
    dcp.save({}, checkpoint_id="s3://bucket/step 9")
    assert marks(ear) == ["begin", "written", "returned"]
    assert ear.names[0][1] == "step 9"


def test_dcp_in_the_background(ear, torch, tmp_path):
    torch.response = Future()
    assert dcp.async_save({}, checkpoint_id=tmp_path / "a") is torch.response
    assert marks(ear) == ["begin", "snapshotted", "returned"]
    torch.response.set_result(torch.metadata)
    assert marks(ear) == ["begin", "snapshotted", "returned", "written", "synced"]
    assert ear.detail("written") == {"path": str(tmp_path / "a"), "bytes": 400, "files": 2}
    torch.response = SimpleNamespace(staging_completion=Future(), upload_completion=Future())
    dcp.async_save({}, checkpoint_id=tmp_path / "b")
    assert [name for name, window in ear.names if window == "b"] == ["begin", "returned"]
    torch.response.staging_completion.set_result(None)
    torch.response.upload_completion.set_exception(OSError(28, "full"))
    assert [name for name, window in ear.names if window == "b"] == [
        "begin",
        "returned",
        "snapshotted",
        "end",
    ]


def test_dcp_is_installed_once_and_taken_out_again(ear, torch, tmp_path):
    checkpoint = torch.distributed.checkpoint
    before = checkpoint.save, checkpoint.async_save
    assert dcp.install()
    assert dcp.install()
    checkpoint.save({}, checkpoint_id=tmp_path)
    dcp.save({}, checkpoint_id=tmp_path)
    assert marks(ear).count("begin") == 2, "not one window in another"
    dcp.uninstall()
    dcp.uninstall()
    assert (checkpoint.save, checkpoint.async_save) == before


def test_a_rank_counts_its_own_files(ear, torch, tmp_path):
    torch.distributed.is_available = torch.distributed.is_initialized = lambda: True
    torch.distributed.get_rank = lambda group=None: 1 if group is None else 0
    torch.distributed.get_world_size = lambda group=None: 2
    torch.metadata.storage_data = {
        n: SimpleNamespace(relative_path=f"__{n}_0.distcp", length=10 + n) for n in range(3)
    }
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".metadata").write_text("that is rank 0's")
    dcp.save({}, checkpoint_id=tmp_path / "a")
    assert ear.detail("written") == {"bytes": 11, "files": 1}
    assert ear.heard[0].rank == 1
    dcp.save({}, checkpoint_id=tmp_path / "b", process_group=object())
    assert ear.detail("written", "b") == {"bytes": 10, "files": 1}
    torch.metadata.storage_data = {}
    dcp.save({}, checkpoint_id=tmp_path / "c")
    assert ear.detail("written", "c") == {}


def test_torch_save_to_a_path_only(ear, torch, tmp_path):
    assert torch_save.install()
    torch.save({}, tmp_path / "a.pt")
    assert ear.names == [(name, "a.pt") for name in ("begin", "written", "returned")]
    assert ear.detail("written") == {"bytes": 70, "files": 1}
    with (tmp_path / "b.pt").open("wb") as file:
        torch.save({}, file)
    assert len(ear.heard) == 3
    with ckptcost.window("whole"):
        torch.save({}, tmp_path / "a.pt")
        torch.save({}, f=tmp_path / "b.pt")
    assert [(name, window) for name, window in ear.names if window == "whole"] == [
        (n, "whole") for n in ("begin", "written", "returned")
    ]
    assert ear.detail("returned", "whole")["bytes"] == 140
    torch_save.uninstall()
    torch.save({}, tmp_path / "a.pt")
    assert len(ear.heard) == 6


def test_torch_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    assert not dcp.install()
    assert not torch_save.install()


# ---- whatever they are given


def test_what_cannot_be_wrapped_is_left_alone(ear, capsys, monkeypatch):
    class Locked:
        __slots__ = ()

        def save_state(self):
            return 5

    locked = Locked()
    assert not accelerate.attach(locked)
    assert "is not marked" in capsys.readouterr().err
    assert locked.save_state() == 5
    assert not deepspeed.attach(object())
    assert not accelerate.attach(SimpleNamespace(save_state=None))
    assert not accelerate.attach(None)
    assert not hugging_face.attach(object())
    assert not lightning.attach(object())
    monkeypatch.setenv("CKPTCOST", "off")
    engine = Engine()
    assert not deepspeed.attach(engine)
    assert "save_checkpoint" not in vars(engine)


def test_a_framework_that_has_changed_is_still_saved_in_a_window(ear):
    class Changed:
        def save_checkpoint(self, *, somewhere):
            return somewhere

        def save_state(self, somewhere=7):
            return somewhere

    changed = Changed()
    deepspeed.attach(changed)
    accelerate.attach(changed)
    assert changed.save_checkpoint(somewhere=5) == 5
    assert changed.save_state() == 7
    assert ear.names == [
        ("begin", "save 1"),
        ("returned", "save 1"),
        ("begin", "save 2"),
        ("returned", "save 2"),
    ]


def test_what_follows_a_save_may_break_and_breaks_nothing(ear):
    def after(handle, result):
        raise RuntimeError("broken")

    saves = wrapping.around(lambda: 5, lambda: wrapping.SavePlan("a", after=after))
    assert saves() == 5
    assert marks(ear) == ["begin", "returned"]
    quiet = wrapping.around(lambda: 5, lambda: None)
    assert quiet() == 5
    assert len(ear.heard) == 2


def test_nobody_listens_and_nothing_is_asked(tmp_path):
    asked = []
    saves = wrapping.around(lambda: 5, lambda: asked.append(1))
    assert saves() == 5
    assert asked == []
    assert receivers.state.receiver is receivers.NOBODY
