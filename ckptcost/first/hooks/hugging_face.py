"""Hugging Face Trainer: `attach(trainer)`.

`on_save` of its callbacks comes after the save, so the window is around `_save_checkpoint`, which
writes the model, the optimizer, the random state and the trainer's own, and removes old
checkpoints.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from ckptcost.first.hooks.handles import Handle
from ckptcost.first.hooks.steps import step
from ckptcost.first.hooks.wrapping import SavePlan, put


def attach(trainer: Any) -> bool:
    """Each checkpoint of this trainer's is a window from now on, and each of its steps is
    marked."""

    def plan(model: Any = None, trial: Any = None, *args: Any, **kwargs: Any) -> SavePlan:
        name = f"checkpoint-{trainer.state.global_step}"
        # nothing is synced but perhaps a sharded model inside, and that is not all of it
        return SavePlan(
            name,
            os.path.join(trainer._get_output_dir(trial), name),
            False,
            "hugging face",
            _mark_written,
        )

    before = getattr(trainer, "_save_checkpoint", None)
    if not put(trainer, "_save_checkpoint", plan):
        return False
    if trainer._save_checkpoint is not before:
        with suppress(Exception):  # saves are marked, and that is what counts
            _mark_steps(trainer)
    return True


def _mark_written(handle: Handle, _: Any) -> None:
    handle.written()


def _mark_steps(trainer: Any) -> None:
    base: Any = import_module("transformers").TrainerCallback

    class Steps(base):  # type: ignore[misc]
        """Each step of the trainer's."""

        def on_step_end(self, *_: Any, **__: Any) -> None:
            step()

    trainer.add_callback(Steps())
