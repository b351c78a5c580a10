"""torch.save to a path, with a window around it: `torch_save.install()`.

A save to an open stream is left alone: frameworks write their parts that way, from threads of their
own.
"""

from __future__ import annotations

import os
from typing import Any

from ckptcost.first.hooks.handles import Handle
from ckptcost.first.hooks.labels import base_of
from ckptcost.first.hooks.wrapping import SavePlan, file_amount, put, take_back


def install() -> bool:
    """From now on for all who call `torch.save` by this name."""
    try:
        import torch
    except ImportError:
        return False
    return put(torch, "save", _plan)


def uninstall() -> None:
    import torch

    take_back(torch, "save")


def _plan(obj: Any = None, f: Any = None, *args: Any, **kwargs: Any) -> SavePlan | None:
    if not isinstance(f, (str, os.PathLike)):
        return None

    def after(handle: Handle, _: Any) -> None:
        handle.written(*file_amount(f))

    return SavePlan(base_of(f, "torch.save"), f, None, "torch.save", after)
