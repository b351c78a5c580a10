"""A screen on which a form changes the scenario: every keystroke counts, a slip of the pen does
not, and all of it can be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ckptcost.tui import fields
from ckptcost.tui.about_field import entries, tier_entries
from ckptcost.tui.desk import Desk
from ckptcost.tui.modals.picker import Picker
from ckptcost.tui.screens import model_view as model
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.widgets.form import Form

T = TypeVar("T")


class EditingScreen(ModeScreen):
    """Has a form with the id `form`. Subclasses give `show`, `broken` and `about`."""

    def __init__(self) -> None:
        super().__init__()
        self.view: model.ModelView | None = None
        """what is shown; None where the scenario cannot be computed"""
        self.field = ""
        """the one that has the focus, or had it last"""
        self.refused: dict[str, str] = {}
        """why the text in a field is not used"""
        self._typing: tuple[str, Desk] | None = None
        """the field that is typed in, and the desk before: every keystroke counts from there"""
        self._before: list[Desk] = []
        """for undo, the last one last"""
        self._base = ""

    # what a subclass gives

    def show(self, view: model.ModelView) -> None:
        """The figures."""

    def broken(self, why: str) -> None:
        """A scenario without figures."""

    def about(self) -> None:
        """What is known of the field."""

    # what it has

    @property
    def form(self) -> Form:
        return self.query_one("#form", Form)

    def guarded(
        self, work: Callable[[], T], refuse: Callable[[Exception], None] | None = None
    ) -> T | None:
        """What `work` gives, or None where the scenario refuses it, and why is said. No key may end
        the application, so whatever a change of the scenario can lead to passes here."""
        try:
            return work()
        except fields.REFUSALS as error:
            if refuse is not None:
                refuse(error)
            else:
                self.say(fields.refusal(error), "bad")
            return None

    def change_by(self, change: Callable[[Desk], Desk]) -> None:
        """A change that is no typing: it counts at once, or is refused in the bottom line."""
        view = self.guarded(lambda: model.evaluate(change(self.desk)))
        if view is not None:
            self._before.append(self.desk)
            self._typing, self.view = None, view
            self.change(view.desk)

    def say_result(self) -> None:
        if self.refused:
            path, reason = next(reversed(self.refused.items()))
            now = self.desk.edits.get(path) or "the scenario's value"
            self.say(f"{fields.label_of(path)}: {reason}; {now} stays in use", "bad")
        elif self.view is not None:
            self.say(*self.view.beside)

    def forget_slips(self, shown: set[str], base: str) -> None:
        """What was refused in a field that is gone, or in another scenario, no longer matters."""
        for path in [path for path in self.refused if path not in shown or base != self._base]:
            del self.refused[path]
            self.form.forget(path)
        self._base = base

    # how it works

    def on_desk(self) -> None:
        if (
            self.view is None or self.view.desk is not self.desk
        ):  # changed elsewhere: what was done here before cannot be undone
            self._before.clear()
            self._typing = None
            self.view = self.guarded(lambda: model.evaluate(self.desk), self._broken)
        if (view := self.view) is not None:
            self.guarded(lambda: self.show(view), self._broken)

    def _broken(self, error: Exception) -> None:
        self.view = None
        self.broken(fields.refusal(error))

    def on_form_focused(self, event: Form.Focused) -> None:
        event.stop()
        self.field, self._typing = event.path, (event.path, self.desk)
        self.about()

    def on_mount(self) -> None:
        self.form.listener = self._edited

    def _edited(self, path: str, text: str) -> None:
        if self._typing is None or self._typing[0] != path:
            self._typing = (path, self.desk)
        before = self._typing[1]
        if self._put(before, path, text) and (not self._before or self._before[-1] is not before):
            self._before.append(before)

    def _put(self, before: Desk, path: str, text: str) -> bool:
        """Take a text over where the scenario holds with it; else say why not."""
        view = self.guarded(
            lambda: model.evaluate(fields.put(before, path, text)),
            lambda error: self._refuse(path, error),
        )
        if view is None:
            return False
        self.refused.pop(path, None)
        self.form.accept(path)
        self.view = view
        self.change(view.desk)
        return True

    def _refuse(self, path: str, error: Exception) -> None:
        self.refused[path] = fields.reason(error)
        self.form.refuse(path, self.refused[path])
        self.say_result()

    def on_form_pick(self, event: Form.Pick) -> None:
        event.stop()
        path, now = event.path, self.form.text(event.path)
        grid = self.guarded(
            lambda: (
                tier_entries(self.desk) if path == fields.TIER else entries(self.desk.catalog, path)
            )
        )
        if grid is None:
            return

        def picked(key: str | None) -> None:
            if key is not None:
                self.change_by(lambda desk: fields.put(desk, path, key))
                self.form.forget(path)

        self.app.push_screen(Picker(fields.label_of(path), grid, now), picked)

    def action_reset(self) -> None:
        if path := self.field:
            self.refused.pop(path, None)
            self.change_by(lambda desk: fields.put(desk, path, ""))
            self.form.forget(path)

    def action_reset_all(self) -> None:
        for path in list(self.refused):
            self.form.forget(path)
        self.refused.clear()
        self.change_by(
            lambda desk: fields.put(desk.plain(), fields.TIER, "")
        )  # the tier, too, is a field

    def action_undo(self) -> None:
        if not self._before:
            self.say("nothing to take back")
            return
        desk = self._before.pop()
        self._typing, self.view = None, self.guarded(lambda: model.evaluate(desk), lambda _: None)
        self.change(
            desk
        )  # a scenario without figures comes back too, with the reason in their stead
