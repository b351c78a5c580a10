"""Looking at a screen under test. Tests say: from screening import settled, screen_text."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.pilot import Pilot

SMALL, USUAL, WIDE = (80, 24), (120, 36), (200, 50)


def screen_text(app: App[Any]) -> str:
    """What is on the screen, without colours. The only place that uses a private name of Textual's."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def styles_of(app: App[Any], text: str) -> set[str]:
    """The styles in which a text stands on the screen, where a colour carries the meaning."""
    return {str(segment.style) for strip in app.screen._compositor.render_strips() for segment in strip if text in segment.text}


async def settled(pilot: Pilot[Any]) -> None:
    """Everything in the background has ended and is drawn."""
    await pilot.pause()
    for _ in range(20):
        await pilot.app.workers.wait_for_complete(
            [worker for worker in pilot.app.workers if not worker.is_finished and worker.name != "_forever"]
        )
        await pilot.pause()
        if all(worker.is_finished for worker in pilot.app.workers):
            break
    await pilot.pause()
