"""Looking at a screen under test. Tests say: from screening import settled, screen_text, shown."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.worker import WorkerCancelled, WorkerFailed

SMALL, USUAL, WIDE = (80, 24), (120, 36), (200, 50)


def screen_text(app: App[Any]) -> str:
    """What is on the screen, without colours. The only place that uses a private name of
    Textual's."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def styles_of(app: App[Any], text: str) -> set[str]:
    """The styles in which a text stands on the screen, where a colour carries the meaning."""
    return {
        str(segment.style)
        for strip in app.screen._compositor.render_strips()
        for segment in strip
        if text in segment.text
    }


async def until(pilot: Pilot[Any], ready: Callable[[], object], within_s: float = 60.0) -> None:
    """Something is so, however long a thread or a timer takes to make it so."""
    ends_s = time.monotonic() + within_s
    while not ready():
        assert time.monotonic() < ends_s, f"not so in {within_s:g} s:\n{screen_text(pilot.app)}"
        await pilot.pause(0.02)


async def shown(pilot: Pilot[Any], text: str) -> None:
    """A text stands on the screen."""
    await until(pilot, lambda: text in screen_text(pilot.app))


async def settled(pilot: Pilot[Any]) -> None:
    """Everything in the background has ended and is drawn."""
    await pilot.pause()
    for _ in range(20):
        with contextlib.suppress(WorkerFailed, WorkerCancelled):  # what failed, the screen says
            await pilot.app.workers.wait_for_complete(
                [
                    worker
                    for worker in pilot.app.workers
                    if not worker.is_finished and worker.name != "_forever"
                ]
            )
        await pilot.pause()
        if all(worker.is_finished for worker in pilot.app.workers):
            break
    await pilot.pause()
