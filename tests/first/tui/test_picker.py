"""One of many: type to narrow, Enter to take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from ckptcost.first.present.grid import Grid, GridHead, Row
from ckptcost.first.tui.modals.picker import Picker
from ckptcost.first.tui.themes import THEMES
from ckptcost.first.tui.widgets.rows import Rows, matches

GPUS = Grid(
    (GridHead("id", "GPU", True), GridHead("w", "TDP W")),
    [
        Row(key, (name, watts))
        for key, name, watts in (
            ("h100", "NVIDIA H100 SXM", "700"),
            ("h100p", "NVIDIA H100 PCIe", "350"),
            ("mi300", "AMD MI300X", "750"),
        )
    ],
    empty="No GPU is known.",
)
NOTHING = "nothing"


class OneDialog(App[None]):
    def __init__(self, grid: Grid = GPUS, chosen: str = "") -> None:
        super().__init__()
        self.got: Any = NOTHING
        self._grid, self._chosen = grid, chosen
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def on_mount(self) -> None:
        def got(value: str | None) -> None:
            self.got = value

        self.push_screen(Picker("Pick a GPU", self._grid, self._chosen), got)


def drive(
    app: OneDialog, *keys: str, then: Callable[[Pilot[None]], Awaitable[Any]] | None = None
) -> Any:
    async def go() -> Any:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()
            return await then(pilot) if then else app.got

    return asyncio.run(go())


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Input, "cursor_blink", False)


def test_enter_takes_the_row_under_the_cursor() -> None:
    assert drive(OneDialog(), "down", "enter") == "h100p"
    assert drive(OneDialog(chosen="mi300"), "enter") == "mi300"


def test_escape_takes_none() -> None:
    assert drive(OneDialog(), "down", "escape") is None


def test_all_words_must_match_anywhere_in_any_case() -> None:
    assert drive(OneDialog(), *"PCI", "space", *"nvid", "enter") == "h100p"
    assert matches(GPUS.rows[0], "")
    assert matches(GPUS.rows[0], "700 h100")
    assert not matches(GPUS.rows[0], "700 amd")


def test_nothing_that_matches_is_said_and_enter_waits() -> None:
    async def then(pilot: Pilot[None]) -> tuple[str, int]:
        return pilot.app.screen.query_one(Rows).grid.empty, len(
            pilot.app.screen.query_one(Rows).grid.rows
        )

    app = OneDialog()
    assert drive(app, *"zzz", "enter", then=then) == ('Nothing matches "zzz".', 0)
    assert app.got == NOTHING


def test_typing_goes_to_the_filter_wherever_the_focus_is() -> None:
    async def then(pilot: Pilot[None]) -> tuple[str, str]:
        return pilot.app.screen.query_one(Input).value, pilot.app.screen.query_one(Rows).key

    assert drive(OneDialog(), "tab", "m", "i", then=then) == ("mi", "mi300")


def test_a_second_click_takes_the_row() -> None:
    async def then(pilot: Pilot[None]) -> Any:
        await pilot.click(Rows, offset=(5, 2))
        await pilot.click(Rows, offset=(5, 2))
        await pilot.pause()
        return pilot.app.got  # type: ignore[attr-defined]

    assert drive(OneDialog(), then=then) == "h100p"


def test_an_empty_list_says_so() -> None:
    async def then(pilot: Pilot[None]) -> str:
        return "".join(
            segment.text for segment in pilot.app.screen.query_one(Rows).render_line(0)
        ).strip()

    assert drive(OneDialog(GPUS._replace(rows=[])), "enter", then=then) == "No GPU is known."
