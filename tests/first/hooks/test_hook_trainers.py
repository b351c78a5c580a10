"""Lightning, the Hugging Face Trainer, Accelerate and DeepSpeed as they are installed, training
something tiny on the processor."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

import ckptcost
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.phases import windows_of
from ckptcost.first.hooks import accelerate, deepspeed, hugging_face, torch_save

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("_quiet")]


@pytest.fixture
def _quiet(monkeypatch):
    """No network, no progress bars, no report to anybody."""
    for name, value in {
        "HF_HUB_OFFLINE": "1",
        "WANDB_DISABLED": "true",
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
    }.items():
        monkeypatch.setenv(name, value)


def windows(ear):
    return windows_of(Mark(mark.t_ns / 1e9, mark.name, mark.window) for mark in ear.heard)


def steps(ear):
    from ckptcost.first.hooks import receivers

    receivers.leave()
    return sum(len(mark.detail["ends_ms"]) for mark in ear.heard if mark.name == "steps")


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((4,), float(index))


# ---- Lightning


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def pl(request):
    return pytest.importorskip(request.param, reason="PyTorch Lightning is not installed")


def fits(pl, folder, callbacks=(), plugins=(), **more):
    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            return self.layer(batch).sum()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.01)

    keeper = pl.callbacks.ModelCheckpoint(
        dirpath=folder, every_n_train_steps=2, save_top_k=-1, filename="at-{step}"
    )
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[keeper, *callbacks],
        plugins=list(plugins),
        **more,
    )
    return trainer, lambda: trainer.fit(Model(), torch.utils.data.DataLoader(Numbers(), 2))


def callback_of(pl, monkeypatch):
    """Of the one of the two that is asked for, whichever else is loaded."""
    from ckptcost.first.hooks import lightning

    monkeypatch.delitem(vars(lightning), "Callback", raising=False)
    if pl.__name__ == "pytorch_lightning":
        import sys

        monkeypatch.delitem(sys.modules, "lightning.pytorch", raising=False)
    return lightning.Callback


def test_lightning_with_one_line(ear, pl, tmp_path, monkeypatch):
    kind = callback_of(pl, monkeypatch)
    assert issubclass(kind, pl.Callback)
    _, fit = fits(pl, tmp_path, [kind()])
    fit()
    files = sorted(file.name for file in tmp_path.iterdir())
    assert len(files) == 2
    assert sorted(window.label for window in windows(ear)) == files
    for window in windows(ear):
        assert (window.returned_why, window.flags) == ("", ())
        assert ear.detail("written", window.label) == {
            "bytes": (tmp_path / window.label).stat().st_size,
            "files": 1,
        }
        assert ear.detail("returned", window.label)["settle"] is True
    assert steps(ear) == 4
    assert pickle.loads(pickle.dumps(kind())).__class__ is kind


def test_lightning_in_the_background(ear, pl, tmp_path, monkeypatch):
    plugin = pl.plugins.io.AsyncCheckpointIO()
    _, fit = fits(pl, tmp_path, [callback_of(pl, monkeypatch)()], [plugin])
    fit()
    assert len(windows(ear)) == 2
    for window in windows(ear):
        assert ear.detail("written", window.label) == {
            "path": str(tmp_path / window.label),
            "settle": True,
            "bytes": (tmp_path / window.label).stat().st_size,
            "files": 1,
        }
        assert "settle" not in ear.detail("returned", window.label)


def test_lightning_that_cannot_write(ear, pl, tmp_path, monkeypatch):
    trainer, fit = fits(pl, tmp_path, [callback_of(pl, monkeypatch)()])

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trainer.strategy.checkpoint_io, "save_checkpoint", full)
    with pytest.raises(OSError, match="No space"):
        fit()
    assert {mark.detail["error"] for mark in ear.heard if mark.name == "end"} == {"OSError"}


def test_lightning_attached_by_hand(ear, pl, tmp_path):
    from ckptcost.first.hooks import lightning

    trainer, fit = fits(pl, tmp_path)
    assert lightning.attach(trainer)
    fit()
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    assert len(windows(ear)) == 3
    assert windows(ear)[-1].label == "last.ckpt"


# ---- Hugging Face Trainer


def test_hugging_face_trainer(ear, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x=None):
            return {"loss": self.layer(x).sum()}

    class Rows(Numbers):
        def __getitem__(self, index):
            return {"x": super().__getitem__(index)}

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=4,
        save_steps=2,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        logging_strategy="no",
        save_total_limit=1,
    )
    trainer = transformers.Trainer(model=Model(), args=arguments, train_dataset=Rows())
    assert hugging_face.attach(trainer)
    assert hugging_face.attach(trainer)
    torch_save.install()
    try:
        trainer.train()
    finally:
        torch_save.uninstall()
    assert [window.name for window in windows(ear)] == ["checkpoint-2", "checkpoint-4"]
    for window in windows(ear):
        assert (window.returned_why, window.flags) == ("", ())
        assert ear.detail("returned", window.label)["path"] == str(tmp_path / window.label)
        assert ear.detail("returned", window.label)["settle"] is True
    assert (tmp_path / "checkpoint-4" / "optimizer.pt").exists()
    assert not (tmp_path / "checkpoint-2").exists()
    assert (
        0
        < ear.detail("returned", "checkpoint-4")["bytes"]
        < sum(f.stat().st_size for f in (tmp_path / "checkpoint-4").iterdir())
    )
    assert steps(ear) == 4


# ---- Accelerate


def test_accelerate(ear, tmp_path):
    library = pytest.importorskip("accelerate", reason="accelerate is not installed")
    project = library.utils.ProjectConfiguration(
        project_dir=str(tmp_path), automatic_checkpoint_naming=True
    )
    accelerator = library.Accelerator(cpu=True, project_config=project)
    assert accelerate.attach(accelerator)
    model = torch.nn.Linear(4, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters()))
    paths = []
    for _ in range(2):
        loss = model(torch.ones(4)).sum()
        accelerator.backward(loss)
        optimizer.step()
        ckptcost.step()
        paths.append(accelerator.save_state())
    assert [window.name for window in windows(ear)] == ["checkpoint_0", "checkpoint_1"]
    assert [mark.detail["path"] for mark in ear.heard if mark.name == "returned"] == [
        os.path.abspath(path) for path in paths
    ]
    assert all((Path(path) / "optimizer.bin").exists() for path in paths)


# ---- DeepSpeed


def test_deepspeed(ear, tmp_path, monkeypatch):
    for name, value in {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
        "RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    library = pytest.importorskip(
        "deepspeed", reason="deepspeed is not installed", exc_type=Exception
    )
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        model = torch.nn.Linear(4, 1)
        engine, *_ = library.initialize(
            model=model,
            model_parameters=model.parameters(),
            dist_init_required=False,
            config={
                "train_batch_size": 1,
                "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
            },
        )
        assert deepspeed.attach(engine)
        for _ in range(2):
            engine.backward(engine(torch.ones(1, 4)).sum())
            engine.step()
        engine.save_checkpoint(str(tmp_path / "out"))
        engine.save_checkpoint(str(tmp_path / "out"), tag="mine")
    finally:
        torch.distributed.destroy_process_group()
    assert [window.name for window in windows(ear)] == ["global_step2", "mine"]
    assert ear.detail("returned", "mine") == {
        "path": str(tmp_path / "out" / "mine"),
        "settle": True,
    }
    assert any((tmp_path / "out" / "global_step2").iterdir())
