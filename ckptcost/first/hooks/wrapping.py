"""A framework's own save, with a window around it: same arguments, same result, same exceptions."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from ckptcost.first.hooks import receivers, sender
from ckptcost.first.hooks.handles import NOTHING, Handle
from ckptcost.first.hooks.window import window

_ORIGINAL = "__ckptcost_original__"


class SavePlan(NamedTuple):
    """What is known of a save before it begins."""

    label: object
    path: object = None
    sync: bool | None = None
    """whether the writer calls fsync on all it writes"""
    how: str = ""
    after: Callable[[Handle, Any], object] | None = None
    """given the window and the result, before the window returns"""


Planned = Callable[..., SavePlan | None]
"""given the arguments of the save; None: no window"""


def around(original: Callable[..., Any], plan: Planned) -> Callable[..., Any]:

    @functools.wraps(original)
    def saves(*args: Any, **kwargs: Any) -> Any:
        planned = _make_plan(plan, args, kwargs)
        if planned is None:
            return original(*args, **kwargs)
        with window(planned.label, planned.path, planned.sync, how=planned.how) as handle:
            result = original(*args, **kwargs)
            if planned.after is not None and handle is not NOTHING:
                _call_after(planned.after, handle, result)
        return result

    setattr(saves, _ORIGINAL, original)
    return saves


def _make_plan(plan: Planned, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SavePlan | None:
    try:
        return plan(*args, **kwargs) if sender.receiver().listening else None
    except Exception:
        return SavePlan(None)  # other arguments than are documented: a window without a path


def _call_after(after: Callable[[Handle, Any], object], handle: Handle, result: Any) -> None:
    with suppress(Exception):
        after(handle, result)


def original_of(function: Any) -> Any:
    """Without our window."""
    return getattr(function, _ORIGINAL, function)


def file_amount(path: object) -> tuple[int | None, int | None]:
    """Bytes and files of a save into one file; of a folder it is not known which ones are this
    rank's."""
    try:
        found = os.stat(path)  # type: ignore[arg-type]
    except (OSError, TypeError, ValueError):
        return None, None
    return (found.st_size, 1) if stat.S_ISREG(found.st_mode) else (None, None)


def put(owner: Any, name: str, plan: Planned) -> bool:
    """Puts it in the original's place, once. False where there is no such thing to wrap;
    CKPTCOST=off leaves everything as it is."""
    try:
        if receivers.is_off():
            return False
        original = getattr(owner, name)
        if not callable(original):
            return False
        if not hasattr(original, _ORIGINAL):
            setattr(owner, name, around(original, plan))
    except Exception as error:
        receivers.complain(
            f"{type(owner).__name__}.{name} is not marked: {type(error).__name__}: {error}"
        )
        return False
    return True


def take_back(owner: Any, name: str) -> None:
    """The original is in its place again."""
    try:
        there = getattr(owner, name)
        if hasattr(there, _ORIGINAL):
            setattr(owner, name, original_of(there))
    except Exception as error:
        receivers.complain(f"{name} is still marked: {type(error).__name__}: {error}")
