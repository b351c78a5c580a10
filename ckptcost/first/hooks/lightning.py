"""PyTorch Lightning: `Trainer(callbacks=[ckptcost.hooks.lightning.Callback()])`, or
`attach(trainer)`.

The window is around `trainer.save_checkpoint`, which all of Lightning's own callbacks call:
gathering the state, writing, and the barrier after it. With AsyncCheckpointIO the save is written
when the background thread has done it.
"""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from importlib import import_module
from typing import Any

from ckptcost.first.hooks.handles import Handle
from ckptcost.first.hooks.labels import base_of
from ckptcost.first.hooks.steps import step
from ckptcost.first.hooks.wrapping import SavePlan, file_amount, put, take_back


def attach(trainer: Any) -> bool:
    """Each save of this trainer's is a window from now on, also after `fit`. Training steps are not
    marked; the callback does that."""

    def plan(filepath: Any, *args: Any, **kwargs: Any) -> SavePlan:
        def amount(_: Any) -> tuple[int | None, int | None]:
            return file_amount(filepath) if trainer.is_global_zero else (None, None)

        def after(handle: Handle, _: Any) -> None:
            writer = getattr(trainer.strategy, "checkpoint_io", None)
            behind = getattr(writer, "_executor", None)
            if isinstance(
                behind, Executor
            ):  # of one thread: what is put in now is done after the save
                handle.follow(behind.submit(_raise_error, writer), None, amount)
            else:
                handle.written(*amount(None))

        # Lightning writes without fsync, and a sharded save inside this one that is synced is not
        # all of it
        return SavePlan(base_of(filepath, "lightning save"), filepath, False, "lightning", after)

    return put(trainer, "save_checkpoint", plan)


def detach(trainer: Any) -> None:
    take_back(trainer, "save_checkpoint")


def _raise_error(writer: Any) -> None:
    """In Lightning's thread, after the save: its error is kept in the writer."""
    error = getattr(writer, "_error", None)
    if error is not None:
        raise error


def _callback() -> type:
    """A subclass of the Callback of the Lightning that is in use: it goes by two names."""
    names = ["lightning.pytorch", "pytorch_lightning"]
    if names[1] in sys.modules and names[0] not in sys.modules:
        names.reverse()
    try:
        base: Any = import_module(names[0]).Callback
    except ImportError:
        base = import_module(names[1]).Callback

    class Callback(base):  # type: ignore[misc]
        """Windows around saves while the trainer runs, and training steps."""

        def setup(self, trainer: Any, *_: Any, **__: Any) -> None:
            attach(trainer)

        def teardown(self, trainer: Any, *_: Any, **__: Any) -> None:
            detach(
                trainer
            )  # a trainer that is sent to spawned processes must not hold our function

        def on_train_batch_end(self, *_: Any, **__: Any) -> None:
            step()

    Callback.__module__, Callback.__qualname__ = (
        __name__,
        "Callback",
    )  # it can be pickled by this name
    return Callback


def __getattr__(name: str) -> Any:
    if name == "Callback":
        globals()["Callback"] = made = _callback()
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
