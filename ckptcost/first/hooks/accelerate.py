"""Hugging Face Accelerate: `attach(accelerator)` puts a window around `save_state`."""

from __future__ import annotations

import os
from typing import Any

from ckptcost.first.hooks.handles import Handle
from ckptcost.first.hooks.labels import base_of
from ckptcost.first.hooks.wrapping import SavePlan, put


def attach(accelerator: Any) -> bool:
    """Each `accelerator.save_state` is a window from now on."""

    def plan(output_dir: Any = None, *args: Any, **kwargs: Any) -> SavePlan:
        settings = accelerator.project_configuration
        if settings.automatic_checkpoint_naming:
            output_dir = os.path.join(
                accelerator.project_dir, "checkpoints", f"checkpoint_{accelerator.save_iteration}"
            )
        # nothing is synced but perhaps a sharded model inside, and that is not all of it
        return SavePlan(
            base_of(output_dir, "save_state"), output_dir, False, "accelerate", _mark_written
        )

    return put(accelerator, "save_state", plan)


def _mark_written(handle: Handle, _: Any) -> None:
    handle.written()
