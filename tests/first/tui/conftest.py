"""Screens under test: a fixed size, no blinking, no animation, a state folder of their own, and
text snapshots."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from screening import USUAL, screen_text, settled
from textual.pilot import Pilot
from textual.widgets import Input

from ckptcost.first.tui.app import CkptcostApp

TURN_S = 0.004
"""Pilot looks so often whether the application has come to rest; its 0.02 s, twice a key, would be
half the time of all these tests"""
SNAPSHOTS = Path(__file__).parent / "snapshots"
Script = Callable[[Pilot[None]], Awaitable[Any]]


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CKPTCOST_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", TURN_S)
    monkeypatch.setattr("textual._wait.SLEEP_IDLE", TURN_S / 20)


@pytest.fixture
def drive() -> Callable[..., Any]:
    """`drive(app, script, size)` runs `await script(pilot)` in the app and gives its value."""

    def run(app: CkptcostApp, script: Script, size: tuple[int, int] = USUAL) -> Any:
        async def go() -> Any:
            async with app.run_test(size=size) as pilot:
                await settled(pilot)
                return await script(pilot)

        return asyncio.run(go())

    return run


@pytest.fixture
def snapshot() -> Callable[[CkptcostApp, str], None]:
    """`snapshot(app, "model_120x36_normal")` compares the screen with the file;
    `UPDATE_GOLDEN=1 pytest` writes it."""

    def compare(app: CkptcostApp, name: str) -> None:
        text, file = screen_text(app), SNAPSHOTS / f"{name}.txt"
        if "UPDATE_GOLDEN" in os.environ:
            file.write_text(text, "utf-8")
        assert file.is_file(), f"no {file.name}: run UPDATE_GOLDEN=1 pytest"
        assert text == file.read_text("utf-8"), (
            f"differs from {file.name}; if that is meant: UPDATE_GOLDEN=1 pytest"
        )

    return compare
