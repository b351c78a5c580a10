"""Going: what is still being recorded or written is asked about, what is to be remembered is
written down."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import Any

from rich.text import Text
from textual.app import App

from ckptcost.errors import OutputError
from ckptcost.tui import state
from ckptcost.tui.modals.confirm import Confirm
from ckptcost.tui.screens.base import ModeScreen

TERMINAL_S = 5.0
"""how often to look whether the terminal is still there"""
GONE_S = 5.0
"""so long after everything was given up; then nothing waits for a terminal that takes no more
letters"""


class Quit(Confirm):
    """Asked once, however often the key is pressed."""


def busy(app: App[Any]) -> list[str]:
    """What would be cut off, a sentence for each."""
    return [text for screen in opened(app) if (text := screen.busy())]


def opened(app: App[Any]) -> list[ModeScreen]:
    """All screens, whether they are seen or not."""
    return list(app.opened)  # type: ignore[attr-defined]


async def leave(app: App[Any]) -> None:
    cut_off = busy(app)
    if not cut_off:
        go(app)
    elif not isinstance(app.screen, Quit):
        app.push_screen(
            Quit("Quit?", "\n".join(cut_off), "quit"), lambda yes: go(app) if yes else None
        )


def go(app: App[Any]) -> None:
    """At once. What goes on without the screen is said on the terminal that it leaves."""
    screens = opened(app)
    for screen in screens:
        screen.give_up()
    said = [words for screen in screens if (words := screen.last_words)]
    try:
        state.save(app.remember())  # type: ignore[attr-defined]
    except OutputError as error:
        said.append(str(error))
    app.exit(message=Text("\n".join(said)) if said else None)


def end_with_the_terminal(app: App[Any]) -> None:
    """A closed window or a kill ends what is under way in order; an application whose terminal is
    gone would wait or spin for ever."""
    if app.is_headless:
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(
            RuntimeError, ValueError
        ):  # not in the main thread: whoever runs it there sees to signals
            loop.add_signal_handler(number, end, app)
    if not app.is_web:
        app.set_interval(TERMINAL_S, lambda: None if os.isatty(0) else end(app))


def end(app: App[Any]) -> None:
    """Without asking. What is recorded is complete once `go` has returned."""
    last = threading.Timer(GONE_S, os._exit, (0,))
    last.daemon = True
    go(app)
    last.start()
