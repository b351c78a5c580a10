"""The form of a probe and its plan, as they stand before anything is written."""

from __future__ import annotations

from typing import Any

from ckptcost.tui.modals.picker import Picker
from ckptcost.tui.screens import probe_view
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.widgets.form import Form
from ckptcost.tui.widgets.note import Note


class Asking(ModeScreen):
    """What the probe screen knows before it writes: the texts, the place, and what comes of
    both."""

    def __init__(self) -> None:
        super().__init__()
        self._draft = probe_view.fresh()
        self._spot: Any = None
        self._asking: Any = None
        self._known: dict[tuple[str, str], float] = {}
        """by folder and writer, the rate that was found there"""

    def command_line(self) -> str:
        return probe_view.command(self._draft, self.desk, self.host.meters)

    @property
    def _form(self) -> Form:
        return self.query_one("#form", Form)

    def _ask(self) -> None:
        """The form and its plan as the texts stand."""
        known = self._known.get((probe_view.directory_of(self._draft), self._draft.writer.strip()))
        self._asking = probe_view.asking(
            self._draft, self.desk, self._spot, self.host.meters, known
        )
        self._form.show(self._asking.fields)
        self.query_one("#plan", Note).show(self._asking.plan)

    def _look(self) -> None:
        """A folder on a server that does not answer may take long to look at."""
        if directory := probe_view.directory_of(self._draft):
            self.background("place", lambda stopped: probe_view.look(directory), self._looked)

    def _looked(self, spot: Any) -> None:
        self._spot = spot
        self._ask()

    def on_form_edited(self, event: Form.Edited) -> None:
        event.stop()
        if getattr(self._draft, event.path) != event.text:
            self._edited(event.path, event.text)

    def _edited(self, path: str, text: str) -> None:
        self._draft = self._draft.edited(path, text)
        self._ask()
        if path == "directory":
            self._look()

    def on_form_pick(self, event: Form.Pick) -> None:
        event.stop()
        path, rows = event.path, probe_view.choices(event.path, self.desk)

        def chosen(key: str | None) -> None:
            if key is not None:
                self._form.forget(path)
                self._edited(path, key)

        self.app.push_screen(Picker(rows.title or path, rows, getattr(self._draft, path)), chosen)
