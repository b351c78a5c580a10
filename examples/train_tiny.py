"""A small GPT trained on one CPU core, which saves itself every few steps: something real to
measure checkpoints of.

    python examples/train_tiny.py --dir /tmp/tiny                       200 steps, 8 checkpoints of
    38 MB, half a minute python examples/train_tiny.py --dir /tmp/tiny --resume --steps 300  goes on
    from the newest checkpoint, exactly
How it saves, `--save`:
    torch      torch.save to the final name, as most scripts do: a kill halfway leaves half a file,
    a crash may take a whole one torch-tmp  torch.save to another name, fsync, rename, fsync of the
    directory: whole or not there dcp        torch.distributed.checkpoint.save: a directory with an
    index, fsync of its data files included dcp-async  dcp.async_save: training waits for a copy in
    memory only shards:N   N files in a directory, as N ranks would write them, and the rest as
    torch-tmp
SIGTERM ends it after the step, with a checkpoint. It needs PyTorch (pip install 'ckptcost[torch]'),
and ckptcost with --hooks only.
"""

import argparse
import contextlib
import itertools
import os
import re
import shutil
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

LETTERS, SUCCESSORS = 64, 3


class TinyGpt(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, context: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(LETTERS, width), nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width,
            heads,
            4 * width,
            dropout=0.1,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, LETTERS))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(
            text.shape[1]
        )  # a letter sees those before it
        return self.head(
            self.blocks(
                self.letters(text) + self.places.weight[: text.shape[1]], mask, is_causal=True
            )
        )


def some_text(follows: torch.Tensor, batch: int, length: int) -> torch.Tensor:
    """Three letters may follow each letter: the loss begins near ln 64 = 4.16, and a model that
    knows them all comes to ln 3 = 1.10."""
    picks, first = torch.randint(SUCCESSORS, (length, batch)), torch.randint(LETTERS, (batch,))
    return torch.stack(
        list(
            itertools.accumulate(picks, lambda letter, pick: follows[letter, pick], initial=first)
        ),
        dim=1,
    )


def sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def cut(node: object, rank: int, ranks: int) -> object:
    """One rank's share. Cloned, because torch.save of a view writes all that lies behind it."""
    if isinstance(node, torch.Tensor):
        return node.flatten().tensor_split(ranks)[rank].clone()
    return (
        {key: cut(part, rank, ranks) for key, part in node.items()}
        if isinstance(node, dict)
        else node
    )


def joined(shares: list, like: object) -> object:
    if isinstance(like, torch.Tensor):
        return torch.cat(shares).view_as(like)
    return (
        {key: joined([share[key] for share in shares], like[key]) for key in like}
        if isinstance(like, dict)
        else shares[0]
    )


class Checkpoints:
    """Files `step_<n>.pt` and directories `step_<n>` in one folder, the newest `keep` of them."""

    def __init__(
        self,
        folder: Path,
        way: str,
        keep: int,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        window: Callable,
    ) -> None:
        self.folder, self.keep, self.model, self.optimizer, self.window = (
            folder,
            keep,
            model,
            optimizer,
            window,
        )
        self.way, self.shards = way, int(way.partition(":")[2] or 1)
        self.pending: tuple[str, Future | None] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        for half in folder.glob("step_*.tmp"):
            shutil.rmtree(half) if half.is_dir() else half.unlink()

    def found(self) -> list[Path]:
        """The complete ones, the newest first."""
        named = [
            path for path in self.folder.iterdir() if re.fullmatch(r"step_\d+(\.pt)?", path.name)
        ]
        whole = [
            path
            for path in named
            if path.is_file() or (path / ".metadata").exists() or (path / "shard_0.pt").exists()
        ]
        return sorted(whole, key=lambda path: int(path.stem.removeprefix("step_")), reverse=True)

    def state(self, step: int) -> dict:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": step, "rng": torch.get_rng_state()}

    def save(self, step: int) -> None:
        self.finish(wait=True)
        name = f"step_{step}"
        path = self.folder / (f"{name}.pt" if self.way.startswith("torch") else name)
        print("saving", name, flush=True)
        with self.window(name, path=path, sync=self.way != "torch") as mark:
            future = self.write(self.state(step), path, path.with_name(f"{path.name}.tmp"))
            if future and mark:
                mark.follow(future)
        self.pending = name, future
        self.finish(wait=False)

    def write(self, state: dict, path: Path, half: Path) -> Future | None:
        if self.way == "dcp-async":
            return dcp.async_save(state, checkpoint_id=path)
        if self.way == "dcp":
            dcp.save(state, checkpoint_id=path)
        elif self.way == "torch":
            torch.save(state, path)
        elif self.way == "torch-tmp":
            torch.save(state, half)
        else:
            half.mkdir()
            with ThreadPoolExecutor(8) as pool:
                list(
                    pool.map(
                        lambda rank: self.write_shard(state, rank, half / f"shard_{rank}.pt"),
                        range(self.shards),
                    )
                )
        if half.exists():
            sync(half)
            half.rename(path)  # now it is complete, and safe once the folder is on the disk too
            sync(self.folder)
        return None

    def write_shard(self, state: dict, rank: int, path: Path) -> None:
        torch.save(cut(state, rank, self.shards), path)
        sync(path)

    def finish(self, wait: bool) -> None:
        """The save is through, or fails here: at once, or later where it goes on in the
        background."""
        if self.pending and (wait or self.pending[1] is None or self.pending[1].done()):
            (name, future), self.pending = self.pending, None
            if future:
                future.result()
            print("saved", name, flush=True)
            for path in self.found()[self.keep :]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def load(self, path: Path) -> int:
        state = self.state(0)
        if path.is_file():
            state = torch.load(path)
        elif (path / ".metadata").exists():
            dcp.load(state, checkpoint_id=path)
        else:
            state = joined(
                [
                    torch.load(path / f"shard_{rank}.pt")
                    for rank in range(len(list(path.iterdir())))
                ],
                state,
            )
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        torch.set_rng_state(state["rng"])
        print("resumed", path.name, flush=True)
        return state["step"]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, default=Path("checkpoints"))
    parser.add_argument(
        "--save", default="torch", help="torch, torch-tmp, dcp, dcp-async or shards:N (torch)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from the newest checkpoint, if there is one"
    )
    parser.add_argument(
        "--hooks", action="store_true", help="tell ckptcost about each save and each step"
    )
    names = (
        "steps",
        "every",
        "keep",
        "threads",
        "seed",
        "width",
        "layers",
        "heads",
        "context",
        "batch",
    )
    for name, default in zip(names, (200, 25, 2, 1, 0, 256, 4, 4, 64, 8), strict=True):
        parser.add_argument(
            f"--{name}", type=int, default=default, metavar="N", help=f"({default})"
        )
    args = parser.parse_args(words)
    if not re.fullmatch(r"torch|torch-tmp|dcp|dcp-async|shards:[1-9]\d*", args.save):
        parser.error(f"--save {args.save}: torch, torch-tmp, dcp, dcp-async or shards:N")
    window, step_done = lambda *_, **__: contextlib.nullcontext(), lambda: None
    if args.hooks:
        import ckptcost

        window, step_done = ckptcost.window, ckptcost.step
    warnings.filterwarnings(
        "ignore", "torch.distributed is disabled"
    )  # one process is what is meant
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    follows = torch.randint(LETTERS, (LETTERS, SUCCESSORS))
    model = TinyGpt(args.width, args.layers, args.heads, args.context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoints = Checkpoints(args.dir, args.save, args.keep, model, optimizer, window)
    found, stops = checkpoints.found(), []
    if found and not args.resume:
        parser.error(
            f"{args.dir} holds checkpoints: --resume goes on from them, or take another --dir"
        )
    begun = checkpoints.load(found[0]) if found else 0
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    for step in range(begun + 1, args.steps + 1):
        start_s = time.perf_counter()
        text = some_text(follows, args.batch, args.context)
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step_done()
        print(
            f"step {step} loss {loss.item():.4f} {1000 * (time.perf_counter() - start_s):.0f} ms",
            flush=True,
        )
        checkpoints.finish(wait=False)
        is_last = bool(stops)  # asked once: a signal after this ends the next step
        if step % args.every == 0 or is_last:
            checkpoints.save(step)
        if is_last:
            break
    checkpoints.finish(wait=True)


if __name__ == "__main__":
    main()
