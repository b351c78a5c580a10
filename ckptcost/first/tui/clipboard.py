"""Copying. A terminal may or may not take what it is sent, and never says; so the text is kept in a
file as well."""

from __future__ import annotations

from typing import Any

from textual.app import App

from ckptcost.first.present.grid import Grid
from ckptcost.first.present.table import markdown
from ckptcost.first.tui import state

FILE = "clipboard.txt"


def copy(app: App[Any], text: str, what: str) -> None:
    """Send it to the terminal and keep it, and say both."""
    if not text:
        app.notify("there is nothing to copy here", severity="warning")
        return
    app.copy_to_clipboard(text)
    file = state.home() / FILE
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(text + "\n", "utf-8")
        kept = f"kept in {file}"
    except OSError as error:
        kept = f"not kept: {error.strerror or error}"
    app.notify(f"{what} was sent to the terminal's clipboard; {kept}", timeout=4, markup=False)


def copy_grid(app: App[Any], grid: Grid | None) -> None:
    """A table as Markdown."""
    if grid is None or not grid.rows:
        copy(app, "", "the table")
        return
    left = next((i for i, head in enumerate(grid.heads) if not head.left), len(grid.heads))
    copy(
        app,
        "\n".join(
            markdown(
                [head.label for head in grid.heads], [list(row.cells) for row in grid.rows], left
            )
        ),
        "the table",
    )
