"""What the screen remembers from one start to the next. A file that cannot be read is left alone
and told once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.errors import OutputError
from ckptcost.first.tui.desk import Desk


class Remembered(NamedTuple):
    theme: str = ""
    mode: str = "model"
    base: str = Desk.base
    edits: dict[str, str] = {}  # noqa: RUF012  a named tuple's default is never written to
    tiers: tuple[str, ...] = ()
    baseline: str = ""
    metric: str = "kwh"
    recent: tuple[str, ...] = ()
    """scenarios that were opened, the last one first"""
    welcomed: bool = False
    preset: str = ""
    """the layout of the live screen"""
    problem: str = ""
    """why an earlier state could not be read"""


def home() -> Path:
    """$CKPTCOST_STATE, else ckptcost in the user's state folder."""
    if own := os.environ.get("CKPTCOST_STATE"):
        return Path(own)
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base) / "ckptcost"
    return Path("~/.local/state/ckptcost").expanduser()


def load(folder: Path | None = None) -> Remembered:
    """What was remembered; nothing where there is nothing or nothing legible."""
    file = (folder or home()) / "screen.json"
    try:
        raw = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return Remembered()
    except (OSError, ValueError) as error:
        return Remembered(
            welcomed=True, problem=f"{file}: what was remembered cannot be read ({error})"
        )
    return _checked(raw if isinstance(raw, dict) else {})


def _checked(raw: dict[str, Any]) -> Remembered:
    """Only what has the right shape: a newer version may remember more, an editor may have been at
    it."""
    kept: dict[str, Any] = {}
    for name, plain in Remembered()._asdict().items():
        value = raw.get(name)
        if isinstance(plain, tuple) and isinstance(value, list):
            kept[name] = tuple(each for each in value if isinstance(each, str))
        elif isinstance(plain, dict) and isinstance(value, dict):
            kept[name] = {key: each for key, each in value.items() if isinstance(each, str)}
        elif isinstance(plain, str | bool) and isinstance(value, type(plain)) and name != "problem":
            kept[name] = value
    return Remembered(**kept)


def save(remembered: Remembered, folder: Path | None = None) -> None:
    """Whole or not at all. Raises OutputError."""
    from ckptcost.first.catalog.writing import write_whole

    folder = folder or home()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        told = {name: value for name, value in remembered._asdict().items() if name != "problem"}
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        write_whole([text], folder / "screen.json")
    except OSError as error:
        raise OutputError(
            f"{folder}: what the screen should remember could not be written"
            f" ({error.strerror or error})"
        ) from None
