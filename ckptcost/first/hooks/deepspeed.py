"""DeepSpeed: `attach(engine)` puts a window around `engine.save_checkpoint`.

With a checkpoint engine that writes in another process ("decoupled") the end of writing is not
known here.
"""

from __future__ import annotations

import os
from typing import Any

from ckptcost.first.hooks.handles import Handle
from ckptcost.first.hooks.wrapping import SavePlan, put


def attach(engine: Any) -> bool:
    """Each `engine.save_checkpoint` is a window from now on."""

    def plan(save_dir: Any, tag: Any = None, *args: Any, **kwargs: Any) -> SavePlan:
        name = f"global_step{engine.global_steps}" if tag is None else str(tag)

        def after(handle: Handle, _: Any) -> None:
            decoupled = getattr(getattr(engine, "checkpoint_engine", None), "is_decoupled", None)
            if decoupled is None or not decoupled():
                handle.written()

        return SavePlan(name, os.path.join(save_dir, name), False, "deepspeed", after)

    return put(engine, "save_checkpoint", plan)
