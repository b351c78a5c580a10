"""The palette's entries: what can be done on this screen first, then everywhere, each with its key
at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.screen import Screen

from ckptcost.tui.commands import EVERYWHERE, Command
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.themes import THEMES
from ckptcost.tui.widgets.bottom import key_name


def entries(app: App[Any], screen: Screen[Any]) -> Iterable[SystemCommand]:
    """Only what applies here and now."""
    below = next(
        (each for each in reversed(app.screen_stack) if isinstance(each, ModeScreen)), None
    )
    if below is not None:
        for command in below.KEYS_HERE:
            if below.check_action(command.action.partition("(")[0], ()) is True:
                yield _entry(command, partial(below.run_action, command.action))
    for command in EVERYWHERE:
        if command.id not in ("view.leave",):
            yield _entry(command, partial(app.run_action, command.action))
    for theme in THEMES:
        yield SystemCommand(
            f"View: theme {theme.name.removeprefix('ckptcost-')}",
            theme.name,
            partial(setattr, app, "theme", theme.name),
        )


def _entry(command: Command, call: Callable[[], Any]) -> SystemCommand:
    return SystemCommand(command.title, f"key {key_name(command.key.split(',')[0])}", call)
