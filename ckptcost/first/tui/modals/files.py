"""Opening and saving scenarios; writing what is shown."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ckptcost.first.errors import CkptcostError
from ckptcost.first.tui import files
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.picker import Filtered


class OpenScenario(Filtered[Desk | None]):
    """A preset from the list, or a file by its path."""

    PLACEHOLDER = "a file such as job.toml, or words to look for among the presets"
    HINT_CLASSES = "bad"
    DEFAULT_CSS = """
    OpenScenario Rows { height: 1fr; margin: 1 0; }
    OpenScenario .dialog { height: 80%; }
    """

    def __init__(self, desk: Desk, recent: tuple[str, ...] = ()) -> None:
        super().__init__("Open a scenario", files.presets(desk.catalog, recent))
        self._desk = desk

    def subtitle(self, shown: int) -> str:
        return "Enter opens, Esc closes"

    def nothing(self, text: str) -> str:
        return "no preset of that name; Enter opens it as a file"

    def enter(self, text: str) -> None:
        key = self.rows.key
        self.take(key if key and not text.endswith(".toml") else text.strip())

    def take(self, key: str) -> None:
        try:
            self.dismiss(files.opened(self._desk, key))
        except (CkptcostError, OSError) as error:
            self.query_one(".bad", Static).update(str(error))


class Save(ModalScreen[str | None]):
    """A file's name; one that is there already is written over only after being asked twice."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def __init__(self, title: str, name: str, hint: str) -> None:
        super().__init__()
        self._title, self._default_name, self._hint = title, name, hint
        self._asked = ""

    def named(self, typed: str) -> str:
        """The file that would be written."""
        return typed

    def write(self, path: str, over: bool) -> str:
        """Write it; where it went. Raises CkptcostError."""
        raise AssertionError("a subclass says what is written")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = "Enter writes, Esc closes"
            yield Input(value=self._default_name, compact=True)
            yield Static(self._hint, classes="muted", markup=False)
            yield Static("", classes="warn", id="told", markup=False)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        path = self.named(event.value.strip())
        told = self.query_one("#told", Static)
        try:
            if path and self._asked != path and files.exists(path):
                self._asked = path
                told.update(f"{path} is there already: Enter once more writes over it")
                return
            self.dismiss(self.write(path, self._asked == path))
        except (CkptcostError, OSError) as error:
            told.update(str(error))


class SaveScenario(Save):
    """The changes as a file that extends what they were made over."""

    def __init__(self, desk: Desk) -> None:
        name = desk.base if desk.base.endswith(".toml") else "job.toml"
        own = (
            "written into this file, its comments stay; another file extends it"
            if name == desk.base
            else "the file extends it"
        )
        many = len(desk.edits)
        changes = "1 change" if many == 1 else f"{many} changes"
        super().__init__(
            "Save the scenario",
            name,
            f"{changes} over {desk.base}: {own}. Then: ckptcost model -s FILE",
        )
        self._desk = desk

    def named(self, typed: str) -> str:
        return files.scenario_name(typed)

    def write(self, path: str, over: bool) -> str:
        return str(files.save_scenario(self._desk, path, over))


class Export(Save):
    """The ending of the name decides: .csv .html .json .md .txt, or .svg for a picture of the
    screen."""

    def __init__(
        self,
        mode: str,
        shown: Any,
        desk: Desk,
        command: str,
        picture: str,
        read: tuple[str, ...] = (),
    ) -> None:
        endings = (
            "csv json md txt svg"
            if shown is not None
            else "svg (there are no figures here to write)"
        )
        super().__init__(
            "Export",
            f"ckptcost-{mode}.{'csv' if shown is not None else 'svg'}",
            f"endings: {endings}",
        )
        self._shown, self._desk, self._command, self._picture, self._read = (
            shown,
            desk,
            command,
            picture,
            read,
        )

    def write(self, path: str, over: bool) -> str:
        if path.endswith(".svg"):
            return str(files.write_text(self._picture, path, over))
        return str(files.write_view(self._shown, path, self._desk, self._command, over, self._read))
