"""Small training jobs that save as known frameworks do, and write down what they did:
`saving_jobs.py WAY FOLDER TRUTH`.

Each save adds a line of JSON to TRUTH: when it began and returned (CLOCK_MONOTONIC), how many bytes
its files have, and whether the job itself saw them synced. The ways that need a framework import
it; the rest repeat its system calls.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SHARE = {"model": 0.5, "optimizer": 0.45, "scheduler": 0.02, "state": 0.03}
"""of a checkpoint in several files"""


class Job:
    def __init__(self, folder: Path, size_bytes: int, synced: bool) -> None:
        self.folder, self.size_bytes, self.synced = folder, size_bytes, synced
        self.weights = os.urandom(size_bytes)

    def sync(self, *paths: Path) -> None:
        if not self.synced:
            return
        for path in paths:
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)

    def write(self, path: Path, share: float = 1.0) -> Path:
        with path.open("wb") as file:
            file.write(memoryview(self.weights)[: int(self.size_bytes * share)])
            if self.synced:
                file.flush()
                os.fsync(file.fileno())
        return path

    def tensor(self) -> object:
        import torch

        return torch.frombuffer(bytearray(self.weights), dtype=torch.uint8)


Save = Callable[[int], "Path | None"]
"""of one checkpoint by its number; answers what it left"""


def torch_save(job: Job) -> Save:
    """nanoGPT: one file, written over by each save."""
    import torch

    state = {"model": job.tensor()}

    def save(number: int) -> Path:
        path = job.folder / "ckpt.pt"
        torch.save(state, path)
        job.sync(path)
        return path

    return save


def one_file_each(job: Job) -> Save:
    return lambda number: job.write(job.folder / f"step-{number}.bin")


def renamed(job: Job) -> Save:
    """One file under another name first, as careful jobs do."""

    def save(number: int) -> Path:
        path = job.folder / f"step-{number}.bin"
        job.write(path.with_suffix(".tmp")).rename(path)
        return path

    return save


def rotation(job: Job) -> Save:
    """Hugging Face's Trainer with save_total_limit=1: a folder of files, then the older one
    goes."""

    def save(number: int) -> Path:
        path = job.folder / f"checkpoint-{number}"
        path.mkdir()
        for name, share in SHARE.items():
            job.write(path / f"{name}.bin", share)
        shutil.rmtree(job.folder / f"checkpoint-{number - 1}", ignore_errors=True)
        return path

    return save


def folder_renamed(job: Job) -> Save:
    """Orbax: many files under a temporary folder, which is renamed when all are there."""

    def save(number: int) -> Path:
        path = job.folder / f"{number}"
        hidden = job.folder / f"{number}.orbax-checkpoint-tmp"
        (hidden / "d").mkdir(parents=True)
        for part in range(16):
            job.write(hidden / "d" / f"{part:04}", 1 / 16)
        (hidden / "_METADATA").write_text("{}")
        job.sync(hidden / "_METADATA")
        hidden.rename(path)
        return path

    return save


def appended(job: Job) -> Save:
    """HDF5 and logs of arrays: one file that stays open and grows."""
    file = (job.folder / "all.h5").open("ab", buffering=0)

    def save(number: int) -> None:
        file.write(job.weights)
        if job.synced:
            os.fsync(file.fileno())

    return save


def hdf5(job: Job) -> Save:
    import h5py
    import numpy as np

    file = h5py.File(job.folder / "all.h5", "w")

    def save(number: int) -> None:
        file[f"step-{number}"] = np.frombuffer(job.weights, dtype=np.uint8)
        file.flush()
        job.sync(job.folder / "all.h5")

    return save


def dcp(job: Job) -> Save:
    from torch.distributed import checkpoint

    state = {"model": job.tensor()}

    def save(number: int) -> Path:
        path = job.folder / f"dcp-{number}"
        writer = checkpoint.FileSystemWriter(path, sync_files=job.synced)
        checkpoint.save(state, storage_writer=writer, no_dist=True)
        return path

    return save


def dcp_async(job: Job) -> Save:
    import torch.distributed as dist
    from torch.distributed import checkpoint

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    state = {"model": job.tensor()}
    last: list[object] = []

    def save(number: int) -> Path:
        for future in last:
            future.result()  # type: ignore[attr-defined]
        path = job.folder / f"dcp-{number}"
        writer = checkpoint.FileSystemWriter(path, sync_files=job.synced)
        last[:] = [checkpoint.async_save(state, storage_writer=writer)]
        return path

    return save


def trainer(job: Job) -> Save:
    """transformers.Trainer's own way to save, with its rotation."""
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments

    class Model(PreTrainedModel):
        config_class = PretrainedConfig

        def __init__(self) -> None:
            super().__init__(PretrainedConfig())
            self.weights = torch.nn.Parameter(torch.rand(job.size_bytes // 4))
            self.post_init()

    words = TrainingArguments(
        output_dir=str(job.folder), save_total_limit=2, save_only_model=True, report_to=[]
    )
    training = Trainer(model=Model(), args=words)

    def save(number: int) -> Path:
        training.state.global_step = number
        training._save_checkpoint(training.model, trial=None)
        return job.folder / f"checkpoint-{number}"

    return save


def lightning(job: Job) -> Save:
    import torch
    from lightning.fabric.plugins.io import TorchCheckpointIO

    plugin = TorchCheckpointIO()
    state = {"state_dict": {"weights": torch.rand(job.size_bytes // 4)}}

    def save(number: int) -> Path:
        path = job.folder / f"epoch={number}.ckpt"
        plugin.save_checkpoint(state, path)
        job.sync(path)
        return path

    return save


def accelerate(job: Job) -> Save:
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    accelerator.prepare(torch.nn.Linear(job.size_bytes // 4096, 1024, bias=False))

    def save(number: int) -> Path:
        path = job.folder / f"state-{number}"
        accelerator.save_state(str(path))
        return path

    return save


def staged(job: Job) -> Save:
    """Written here, sent elsewhere, removed here."""

    def save(number: int) -> None:
        path = job.write(job.folder / f"upload-{number}.bin")
        with path.open("rb") as file:
            while file.read(1 << 20):
                time.sleep(0.005)
        path.unlink()

    return save


WAYS: dict[str, Callable[[Job], Save]] = {
    way.__name__.replace("_", "-"): way
    for way in (
        torch_save,
        one_file_each,
        renamed,
        rotation,
        folder_renamed,
        appended,
        hdf5,
        dcp,
        dcp_async,
        trainer,
        lightning,
        accelerate,
        staged,
    )
}


def files_of(left: Path | None) -> Iterator[Path]:
    if left is not None and left.is_dir():
        yield from (each for each in left.rglob("*") if each.is_file())
    elif left is not None:
        yield left


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--saves", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=20_000_000)
    parser.add_argument("--rest", type=float, default=2.0, help="seconds of training between saves")
    parser.add_argument("--sync", action="store_true")
    words = parser.parse_args()
    job = Job(words.folder, words.bytes, words.sync)
    save = WAYS[words.way](job)
    with words.truth.open("a", buffering=1) as truth:
        for number in range(words.saves):
            train(words.rest)
            begin_ns = time.monotonic_ns()
            left = save(number)
            returned_ns = time.monotonic_ns()
            train(words.rest / 2)
            size_bytes = sum(file.stat().st_size for file in files_of(left)) or words.bytes
            line = {"begin_ns": begin_ns, "returned_ns": returned_ns, "bytes": size_bytes}
            truth.write(json.dumps(line) + "\n")
        train(words.rest)


def train(seconds: float) -> None:
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        sum(range(20_000))


if __name__ == "__main__":
    main()
