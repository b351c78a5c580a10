"""Python processes of our own: none imports from the folder that somebody happens to stand in."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def path_of_children() -> list[str]:
    """Where they import from: where this process does, without the current folder.

    The folder that holds this package comes last, should it be the current one: a checkout that is
    tried where it lies.
    """
    here, own = os.path.realpath(os.curdir), str(Path(__file__).resolve().parents[2])
    found = [place for place in sys.path if place and os.path.realpath(place) != here]
    return found if own in found else [*found, own]


def python(code: str) -> list[str]:
    """The words that run `code`. Isolated, as a file `_weakrefset.py` is imported before the first
    line could be wary."""
    return [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {path_of_children()!r}; {code}"]
