"""The palette's entries: what can be done on this screen first, then everywhere, each with its key
at the end; and, once something is typed, tiers, presets, runs and fields by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.command import Hit, Hits, Provider

from ckptcost.first.errors import CkptcostError
from ckptcost.first.tui.commands import EVERYWHERE, Command
from ckptcost.first.tui.screens.base import ModeScreen
from ckptcost.first.tui.widgets.bottom import keys_of


def entries(app: App[Any]) -> Iterable[SystemCommand]:
    """Only what applies here and now."""
    below: ModeScreen | None = app.mode_screen  # type: ignore[attr-defined]
    if below is not None:
        for command in below.KEYS_HERE:
            if below.check_action(command.action.partition("(")[0], ()) is True:
                yield _entry(app, command, partial(below.run_action, command.action))
    for command in EVERYWHERE:
        if command.id not in ("view.leave",):
            yield _entry(app, command, partial(app.run_action, command.action))
    for theme in app.themes:  # type: ignore[attr-defined]
        yield SystemCommand(
            f"View: theme {theme.name.removeprefix('ckptcost-')}",
            theme.name,
            partial(setattr, app, "theme", theme.name),
        )


def _entry(app: App[Any], command: Command, call: Callable[[], Any]) -> SystemCommand:
    return SystemCommand(command.title, f"key {keys_of(app, command)[0]}", call)


class Things(Provider):
    """What has a name: a tier to look at, a preset or a run to open, a field to go to."""

    async def startup(self) -> None:
        self._things: list[tuple[str, str, Callable[[], Any]]] = []
        below = self.app.mode_screen  # type: ignore[attr-defined]
        if below is not None:
            with contextlib.suppress(CkptcostError, OSError):  # the screen says what is wrong
                self._things += _things(self.app, below)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, about, call in self._things:
            if (score := matcher.match(title)) > 0:
                yield Hit(score, matcher.highlight(title), call, help=about)


def _things(app: App[Any], below: ModeScreen) -> Iterable[tuple[str, str, Callable[[], Any]]]:
    from ckptcost.first.runs import store
    from ckptcost.first.tui import files
    from ckptcost.first.tui.about_field import tier_entries
    from ckptcost.first.tui.screens import model_view as model

    desk, open_run = below.desk, app.open_run  # type: ignore[attr-defined]
    for row in files.presets(desk.catalog).rows:
        yield f"Preset: {row.key}", row.cells[1], partial(_open, below, row.key)
    for row in tier_entries(desk).rows:
        shown = desk.with_tiers(tuple(dict.fromkeys((*desk.tiers_shown(), row.key))))
        look = partial(below.change, shown.on_tier(row.key))
        yield f"Tier: {row.key}", row.cells[1], look
    for field in model.form(model.evaluate(desk), everything=True):
        yield f"Field: {field.label} {field.path}", field.text, partial(_enter, app, field.path)
    for folder in store.folders():
        yield f"Run: {folder.name}", str(folder), partial(open_run, str(folder))


def _open(below: ModeScreen, preset: str) -> None:
    from ckptcost.first.tui import files

    below.change(files.opened(below.desk, preset))


async def _enter(app: App[Any], path: str) -> None:
    """On the model's screen, which has the fields."""
    await app.switch_mode("model")
    await app.screen.run_action(f"field('{path}')")
