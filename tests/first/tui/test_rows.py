"""The one table: cursor, sorting, columns by room, mouse, and many thousand rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ckptcost.first.present.grid import Grid, GridHead, Row
from ckptcost.first.tui.themes import THEMES
from ckptcost.first.tui.widgets.columns import fit, natural_widths, padded
from ckptcost.first.tui.widgets.rows import Rows

HEADS = (
    GridHead("tier", "tier", True),
    GridHead("rate", "GB/s", rank=1),
    GridHead("write", "write", rank=3),
    GridHead("kwh", "kWh"),
)
TIERS = (
    ("nas", "0.2", "2.8 h", "1,190"),
    ("flash", "20", "1.7 min", "12"),
    ("pfs", "2", "16.7 min", "120"),
    ("new", "-", "-", "-"),
)
ORDER: tuple[tuple[Any, ...], ...] = (
    ("nas", 0.2, 10080.0, 1190.0),
    ("flash", 20.0, 102.0, 12.0),
    ("pfs", 2.0, 1002.0, 120.0),
    ("new", None, None, None),
)
ROWS = [
    Row(cells[0], cells, order, tone="best" if cells[0] == "flash" else "")
    for cells, order in zip(TIERS, ORDER, strict=True)
]
GRID = Grid(HEADS, ROWS, empty="No tier is left. Press n for a new one.")


class OneTable(App[None]):
    """A table and nothing else."""

    def __init__(self, grid: Grid = GRID, plain: bool = False) -> None:
        super().__init__()
        self.plain, self._grid = plain, grid
        self.heard: list[tuple[str, str]] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def compose(self) -> ComposeResult:
        yield Rows()

    def on_mount(self) -> None:
        self.rows.show(self._grid)
        self.rows.focus()

    @property
    def rows(self) -> Rows:
        return self.query_one(Rows)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.heard.append(("moved", event.key))

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.heard.append(("chosen", event.key))

    @property
    def text(self) -> list[str]:
        return [
            "".join(s.text for s in self.rows.render_line(y)).rstrip()
            for y in range(self.rows.size.height)
        ]


def drive(
    app: OneTable, script: Callable[[Pilot[None]], Awaitable[Any]], size: tuple[int, int] = (60, 8)
) -> Any:
    async def go() -> Any:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            return await script(pilot)

    return asyncio.run(go())


def test_numbers_stand_right_and_text_left_under_a_head() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> list[str]:
        return app.text

    assert drive(app, script)[:5] == [
        "  tier   GB/s     write    kWh",
        "  nas     0.2     2.8 h  1,190",
        "\u25b8 flash    20   1.7 min     12",
        "  pfs       2  16.7 min    120",
        "  new       -         -      -",
    ]


def test_keys_move_the_cursor_and_say_so() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> None:
        await pilot.press("down", "end", "home", "pagedown", "up", "enter")

    drive(app, script)
    moved = [("moved", key) for key in ("nas", "flash", "new", "nas", "new", "pfs")]
    assert app.heard == [*moved, ("chosen", "pfs")]


def test_sorting_steps_through_the_columns_and_back() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> list[list[str]]:
        seen = []
        for _ in range(4):
            app.rows.sort_next()
            seen.append([row.key for row in app.rows.grid.rows])
        heads = [app.text[0]]
        for _ in range(5):
            app.rows.sort_next()
        return [*seen, heads, [row.key for row in app.rows.grid.rows], [app.text[0]]]

    *seen, head, last, last_head = drive(app, script)
    assert seen == [
        ["flash", "nas", "new", "pfs"],
        ["pfs", "new", "nas", "flash"],
        ["nas", "pfs", "flash", "new"],
        ["flash", "pfs", "nas", "new"],
    ]
    assert head == ["  tier  \u25bcGB/s     write    kWh"]
    assert last == ["nas", "flash", "pfs", "new"]
    assert "\u25bc" not in last_head[0]


def test_the_cursor_stays_on_its_row_while_rows_change_and_sort() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> list[str]:
        app.rows.select("pfs")
        app.rows.sort("kwh")
        keys = [app.rows.key]
        app.rows.show(GRID._replace(rows=[*ROWS[2:], *ROWS[:2]]))
        keys.append(app.rows.key)
        assert [row.key for row in app.rows.grid.rows] == [
            "flash",
            "pfs",
            "nas",
            "new",
        ]  # still sorted
        app.rows.sort("")
        app.rows.show(GRID._replace(rows=ROWS[::-1]))
        keys.append(app.rows.key)
        app.rows.show(GRID)
        app.rows.sort("kwh")
        app.rows.show(GRID._replace(rows=[row for row in ROWS if row.key != "pfs"]))
        return [*keys, app.rows.key]

    assert drive(app, script) == ["pfs", "pfs", "pfs", "nas"]
    assert app.heard[-1] == ("moved", "nas")


def test_scroll_position_stays_when_values_change() -> None:
    rows = [Row(f"k{at}", (f"k{at}", str(at), "1 s", "2")) for at in range(100)]
    app = OneTable(GRID._replace(rows=rows))

    async def script(pilot: Pilot[None]) -> tuple[list[str], list[str]]:
        await pilot.press("end")
        await pilot.pause()
        before = app.text
        app.rows.show(
            GRID._replace(
                rows=[row._replace(cells=(row.cells[0], "7", "1 s", "2")) for row in rows]
            )
        )
        await pilot.pause()
        return before, app.text

    before, after = drive(app, script)
    assert before[1].split()[0] == after[1].split()[0] == "k93"
    assert after[-1].split()[:2] == ["k99", "7"]


def test_an_empty_table_says_what_to_do() -> None:
    app = OneTable(GRID._replace(rows=[]))

    async def script(pilot: Pilot[None]) -> list[str]:
        await pilot.press("down", "enter", "end")
        app.rows.sort_next()
        return app.text

    text = drive(app, script, (24, 6))
    assert " ".join(" ".join(text).split()) == "No tier is left. Press n for a new one."
    assert app.heard == []


def test_columns_give_way_by_rank_and_can_be_reached() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> list[str]:
        heads = [app.text[0]]
        for key in ("right", "right", "right", "left", "left", "left"):
            await pilot.press(key)
            heads.append(app.text[0])
        return heads

    first, *rest = drive(app, script, (24, 8))
    assert first.split() == ["tier", "GB/s", "kWh", "+1"]
    assert rest[0].split() == ["tier", "write", "+2"]
    assert rest[1].split() == ["tier", "kWh", "+2"]
    assert rest[2] == rest[1]  # the last column is seen, so there is nothing further right
    assert rest[-1] == first


def test_a_wide_table_says_how_many_columns_are_hidden() -> None:
    heads = (
        GridHead("n", "name", True),
        *(GridHead(f"c{at}", f"column {at}", rank=at) for at in range(1, 10)),
    )
    grid = Grid(heads, [Row("a", ("a name", *["12,345"] * 9))])
    app = OneTable(grid)

    async def script(pilot: Pilot[None]) -> str:
        return app.text[0]

    said = drive(app, script, (60, 5))
    shown = said.count("column ")
    assert f"+{9 - shown} columns" in said or said.endswith(f"+{9 - shown}")
    assert 0 < shown < 9


@pytest.mark.parametrize("room", range(1, 40))
def test_numbers_are_never_cut_and_lines_never_overflow(room: int) -> None:
    found = fit(HEADS, natural_widths(GRID), room)
    natural = natural_widths(GRID)
    assert found.width <= room
    assert found.hidden + len(found.places) == len(HEADS)
    assert all(width == natural[column] for column, width in found.places if not HEADS[column].left)
    assert found.places[0][0] == 0


def test_long_text_is_cut_with_dots_before_a_column_goes() -> None:
    grid = Grid(
        (GridHead("n", "name", True), GridHead("k", "kWh", rank=1)),
        [Row("a", ("a name that goes on for longer than that", "1,234"))],
    )
    found = fit(grid.heads, natural_widths(grid), 36)
    assert dict(found.places) == {0: 30, 1: 5}
    assert padded(grid.rows[0].cells[0], 30, True) == "a name that goes on for long.."
    assert fit(grid.heads, natural_widths(grid), 29).hidden == 1


def test_letters_that_take_two_places_and_what_would_steer_the_terminal() -> None:
    assert padded("\u691c\u67fb\u70b9", 8, True) == "\u691c\u67fb\u70b9  "
    assert padded("\u691c\u67fb\u70b9\u8868", 7, True) == "\u691c\u67fb .."
    assert padded("a\x1b[2Jb\n", 8, True) == "a?[2Jb? "
    app = OneTable(Grid(HEADS[:1], [Row("a", ("x\x1b]0;title\x07\n",))]))

    async def script(pilot: Pilot[None]) -> str:
        return app.text[1]

    assert drive(app, script).strip() == "x?]0;title??"


def test_clicks_move_choose_and_sort() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> list[Any]:
        app.screen.set_focus(None)
        app.heard.clear()
        await pilot.click(
            Rows, offset=(4, 1)
        )  # the row that has the cursor already: the click only brings the focus
        first = list(app.heard)
        await pilot.click(Rows, offset=(4, 3))
        await pilot.click(Rows, offset=(4, 3))
        await pilot.click(Rows, offset=(4, 7))  # below the last row
        told = list(app.heard)
        orders = []
        for _ in range(3):
            await pilot.click(Rows, offset=(10, 0))
            orders.append([row.key for row in app.rows.grid.rows])
        return [first, told, orders]

    first, told, orders = drive(app, script)
    assert first == []
    assert told == [("moved", "pfs"), ("chosen", "pfs")]
    assert orders == [
        ["nas", "pfs", "flash", "new"],
        ["flash", "pfs", "nas", "new"],
        ["nas", "flash", "pfs", "new"],
    ]


def test_the_wheel_scrolls_without_moving_the_cursor() -> None:
    app = OneTable(
        GRID._replace(rows=[Row(f"k{at}", (f"k{at}", "1", "1 s", "2")) for at in range(100)])
    )

    async def script(pilot: Pilot[None]) -> tuple[str, str]:
        app.rows.scroll_to(y=20, animate=False)
        await pilot.pause()
        return app.text[1].split()[0], app.rows.key

    assert drive(app, script) == ("k20", "k0")


def test_plain_letters_only() -> None:
    rows = [ROWS[0]._replace(marked=True), *ROWS[1:]]
    app = OneTable(GRID._replace(rows=rows), plain=True)

    async def script(pilot: Pilot[None]) -> list[str]:
        app.rows.sort("kwh", True)
        app.rows.sort("rate")
        return app.text

    text = drive(app, script)
    assert all(line.isascii() for line in text)
    assert text[1].startswith("x nas")
    assert text[3].startswith("> flash")
    assert "^GB/s" in text[0]


def test_without_colours_nothing_falls_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = OneTable(
        GRID._replace(
            rows=[
                row._replace(tone=tone)
                for row, tone in zip(ROWS, ("bad", "warn", "muted", "good"), strict=True)
            ]
        )
    )

    async def script(pilot: Pilot[None]) -> int:
        await pilot.press("down")
        app.rows.show(GRID._replace(rows=[]))
        await pilot.pause()
        return len(app.screen._compositor.render_strips())

    assert drive(app, script) == 8


def test_a_number_wider_than_those_looked_at_is_still_whole() -> None:
    rows = [Row(f"k{at}", (f"k{at}", "1", "1 s", "2")) for at in range(10_000)]
    rows[5001] = Row("k5001", ("k5001", "1", "1 s", "123,456,789,012"))
    app = OneTable(GRID._replace(rows=rows))

    async def script(pilot: Pilot[None]) -> str:
        app.rows.select("k5001")
        await pilot.pause()
        app.text  # noqa: B018 (the first drawing makes the room)
        return next(line for line in app.text if "k5001" in line)

    assert drive(app, script).endswith(" 123,456,789,012")


def test_a_hundred_thousand_rows() -> None:
    rows = [
        Row(
            f"k{at}",
            (f"step_{at}", f"{at * 1.5:.1f}", f"{at} s", "7.2k"),
            (f"s{at}", at * 1.5, float(at), 7200.0),
        )
        for at in range(100_000)
    ]
    app = OneTable()

    async def script(pilot: Pilot[None]) -> tuple[float, float]:
        begun = time.perf_counter()
        app.rows.show(GRID._replace(rows=rows))
        shown = time.perf_counter() - begun
        begun = time.perf_counter()
        for _ in range(100):
            app.rows.action_move(1)
        return shown, (time.perf_counter() - begun) / 100

    shown_s, move_s = drive(app, script)
    assert shown_s < 0.3  # 5 to 20 ms where nothing else runs
    assert move_s < 0.005  # 0.15 ms


def test_words_narrow_the_table_and_escape_shows_it_whole() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> list[Any]:
        app.rows.sort("kwh")
        app.rows.find()
        await pilot.press("s", "backspace", *"AS", "space", *"1,1")
        seen: list[Any] = [app.text, [row.key for row in app.rows.grid.rows]]
        await pilot.press("ctrl+u", "h", "up")
        seen += [[row.key for row in app.rows.grid.rows], app.rows.key]
        await pilot.press("enter")
        seen += [app.text[-1], list(app.heard)]
        app.rows.show(GRID._replace(rows=ROWS[1:]))
        seen += [[row.key for row in app.rows.grid.rows], app.text[-1].split()[:4]]
        await pilot.press("enter")
        seen += [app.heard[-1]]
        await pilot.press("escape")
        return [*seen, [row.key for row in app.rows.grid.rows], app.rows.key, app.text[-1]]

    text, one, two, at, foot, heard, fewer, fewer_foot, chosen, rest, stays, last = drive(
        app, script
    )
    assert text[:2] == ["  tier   GB/s     write   \u25b2kWh", "  nas     0.2     2.8 h  1,190"]
    assert text[2] == ""
    assert text[-1] == f"{'/AS 1,1_':<25} 1 of 4  Enter keeps, Esc shows all".rstrip()
    assert one == ["nas"]
    assert (two, at) == (["flash", "nas"], "flash"), "in the order of the sorting"
    assert foot.split() == ["/h", "2", "of", "4", "Esc", "shows", "all"]
    assert ("chosen", "flash") not in heard, "the first Enter only ends the typing"
    assert (fewer, fewer_foot) == (["flash"], ["/h", "1", "of", "3"])
    assert chosen == ("chosen", "flash")
    assert (rest, stays, last) == (["flash", "pfs", "new"], "flash", "")


def test_where_nothing_has_the_words_the_table_says_so() -> None:
    app = OneTable()

    async def script(pilot: Pilot[None]) -> tuple[list[str], list[str]]:
        app.rows.find()
        await pilot.press(*"zz")
        app.screen.set_focus(None)
        await pilot.pause()
        before = app.text
        app.rows.find()
        await pilot.press("escape")
        return before, app.text

    before, after = drive(app, script)
    assert before[0] == ' Nothing matches "zz".'
    assert before[-1].startswith("/zz ")
    assert before[-1].endswith("0 of 4  Esc shows all")
    assert after[-1] == ""


def test_the_last_row_is_seen_above_the_words() -> None:
    app = OneTable(
        GRID._replace(rows=[Row(f"k{at}", (f"k{at}", "1", "1 s", "2")) for at in range(100)])
    )

    async def script(pilot: Pilot[None]) -> list[str]:
        app.rows.find()
        await pilot.press("k", "end")
        await pilot.pause()
        return app.text

    text = drive(app, script)
    assert text[-2].split()[0] == "k99"
    assert text[-1].startswith("/k_")
