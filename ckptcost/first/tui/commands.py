"""What can be done, once: keys, the line at the bottom, the palette and the help are all made from
these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from textual.binding import Binding, BindingType


class Command(NamedTuple):
    """One thing that a user can ask for."""

    id: str
    """area.verb; stays the same when keys change"""
    key: str
    """as Textual names it; several with commas"""
    label: str
    """a word or two for the bottom line"""
    help: str
    """a sentence for the palette and the help"""
    action: str
    """the method action_... of the screen or the app"""
    footer: int = 0
    """place in the bottom line, 1 first; 0: not there"""

    @property
    def title(self) -> str:
        """As the palette lists it: `Tiers: set the baseline`."""
        area = self.id.partition(".")[0]
        return f"{area.capitalize()}: {self.help[0].lower()}{self.help[1:]}"


def bindings(commands: Iterable[Command]) -> list[BindingType]:
    return [
        Binding(c.key, c.action, c.label, show=c.footer > 0, id=c.id, tooltip=c.help)
        for c in commands
    ]


MODES = (
    ("model", "1", "Model", "What the job's checkpoints cost; type and see"),
    ("tiers", "2", "Tiers", "Storage tiers side by side"),
    ("interval", "3", "Interval", "How often to save"),
    ("live", "4", "Live", "Measure a job on this machine"),
    ("probe", "5", "Probe", "Write a checkpoint for real and see the storage's rate"),
    ("runs", "6", "Runs", "What was recorded"),
    ("audit", "7", "Audit", "Published claims held against each other"),
    ("report", "8", "Report", "Preview a report and write it"),
    ("doctor", "D", "Doctor", "What can be measured here, and what would help"),
)
"""mode, key, name, what it is for"""

EVERYWHERE = (
    *(
        Command(f"go.{mode}", key, name, f"{name}: {what[0].lower()}{what[1:]}", f"go('{mode}')")
        for mode, key, name, what in MODES
    ),
    Command("help.keys", "question_mark,f1", "help", "Help for this screen", "help"),
    Command("scenario.save", "ctrl+s", "save", "Save the scenario as a file", "save_scenario"),
    Command("scenario.open", "ctrl+o", "open", "Open a preset or a scenario file", "open_scenario"),
    Command(
        "copy.command",
        "y",
        "copy command",
        "Copy the command line that prints the same numbers",
        "copy_command",
    ),
    Command(
        "copy.table", "Y", "copy table", "Copy the table under the cursor as Markdown", "copy_table"
    ),
    Command(
        "export.view",
        "E",
        "export",
        "Write what is shown to a file: CSV, JSON, Markdown, or the screen as SVG",
        "export",
    ),
    Command(
        "export.page", "H", "page", "Write what is shown as a page for a browser (HTML)", "page"
    ),
    Command(
        "view.find",
        "slash",
        "find",
        "Narrow the table to rows with some words",
        "find",
    ),
    Command("view.maximize", "z", "maximise", "Show the focused panel alone, and back", "zoom"),
    Command(
        "view.theme",
        "T",
        "theme",
        "Next theme: dark, light, high contrast, colour-blind safe",
        "next_theme",
    ),
    Command("view.leave", "escape", "leave", "Leave a field or a dialog", "leave"),
    Command(
        "app.quit",
        "q,ctrl+q",
        "quit",
        "Quit; asks only while something is recorded or written",
        "quit",
    ),
)
