"""Fields in groups: what is typed is told and kept, what is refused says why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Button, Input

from ckptcost.first.present.form import Field
from ckptcost.first.tui.themes import THEMES
from ckptcost.first.tui.widgets.form import FieldLines, Form

FIELDS = (
    Field("checkpoint.params", "parameters", "1000", "B", "u", "Checkpoint"),
    Field("checkpoint.size", "size", "2 TB", "", "=", "Checkpoint"),
    Field("cluster.gpu", "GPU", "h100", "", "d", "Cluster", ("h100", "h200", "b200")),
    Field("cluster.gpu_train", "training", "640 W", "W", "m", "Cluster"),
    Field("site.pue", "PUE", "", "", "", "Site", placeholder="1 to 2"),
)
MANY = tuple(
    Field(f"tier.f{at}", f"field {at}", str(at), "GB/s", "d", f"Group {at // 6}")
    for at in range(60)
)


class OneForm(App[None]):
    """A button, a form, a button."""

    CSS = "Button { height: 1; border: none; } ScrollView { scrollbar-size: 1 1; }"

    def __init__(self, fields: tuple[Field, ...] = FIELDS, plain: bool = False) -> None:
        super().__init__()
        self.plain, self._fields = plain, fields
        self.heard: list[tuple[str, ...]] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def compose(self) -> ComposeResult:
        yield Button("before", id="before")
        yield Form()
        yield Button("after", id="after")

    def on_mount(self) -> None:
        self.form.show(self._fields)
        self.form.enter()

    @property
    def form(self) -> Form:
        return self.query_one(Form)

    def on_form_edited(self, event: Form.Edited) -> None:
        self.heard.append(("edited", event.path, event.text))

    def on_form_focused(self, event: Form.Focused) -> None:
        self.heard.append(("focused", event.path))

    def on_form_pick(self, event: Form.Pick) -> None:
        self.heard.append(("pick", event.path))

    @property
    def edits(self) -> list[tuple[str, ...]]:
        return [heard[1:] for heard in self.heard if heard[0] == "edited"]

    @property
    def text(self) -> list[str]:
        return [
            "".join(s.text for s in strip).rstrip()
            for strip in self.screen._compositor.render_strips()
        ]


def drive(
    app: OneForm, script: Callable[[Pilot[None]], Awaitable[Any]], size: tuple[int, int] = (44, 14)
) -> Any:
    async def go() -> Any:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            return await script(pilot)

    return asyncio.run(go())


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Input, "cursor_blink", False)


def test_groups_labels_units_and_marks() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[str]:
        return app.text[1:-1]

    assert drive(app, script)[:8] == [
        "Checkpoint",
        "parameters 1000                         B  u",
        "size       2 TB                            =",
        "Cluster",
        "GPU        h100                          \u25be d",
        "training   640 W                        W  m",
        "Site",
        "PUE        1 to 2",
    ]


def test_every_keystroke_is_told_and_the_first_replaces_the_text() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> str:
        await pilot.press("7", "0", "backspace")
        return app.form.text("checkpoint.params")

    assert drive(app, script) == "7"
    assert app.edits == [
        ("checkpoint.params", "7"),
        ("checkpoint.params", "70"),
        ("checkpoint.params", "7"),
    ]


def test_tab_and_arrows_go_through_the_fields_and_out() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[str]:
        where = []
        for key in ("up", "shift+tab", "tab", "tab", "down", "up", "tab", "tab", "tab", "tab"):
            await pilot.press(key)
            where.append(
                app.form.focused_path.partition(".")[2] or getattr(app.focused, "id", "") or ""
            )
        return where

    assert drive(app, script) == [
        "params",
        "before",
        "params",
        "size",
        "gpu",
        "size",
        "gpu",
        "gpu_train",
        "pue",
        "after",
    ]
    assert [path for kind, path, *_ in app.heard if kind == "focused"][:3] == [
        "checkpoint.params",
        "checkpoint.params",
        "checkpoint.size",
    ]
    assert app.edits == []  # going from field to field changes nothing


def test_other_values_come_in_but_never_over_what_is_being_typed() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[str]:
        await pilot.press("7")
        app.form.show([spec._replace(text=f"new {spec.path}") for spec in FIELDS])
        await pilot.pause()
        seen = [
            app.form.text("checkpoint.params"),
            app.form.query_one(Input).value,
            app.form.text("checkpoint.size"),
        ]
        await pilot.press("0")
        seen.append(app.form.query_one(Input).value)
        app.form.show([spec._replace(text="70.0") for spec in FIELDS])
        await pilot.press("down")  # left: it is shown as everybody writes it
        return [*seen, app.form.text("checkpoint.params")]

    assert drive(app, script) == ["7", "7", "new checkpoint.size", "70", "70.0"]


def test_a_field_that_nobody_types_in_follows_even_with_the_focus() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> str:
        app.form.show([spec._replace(text="8") for spec in FIELDS])
        await pilot.pause()
        return app.form.query_one(Input).value

    assert drive(app, script) == "8"
    assert app.edits == []


def test_what_was_typed_stays_when_the_answer_comes_after_the_field_was_left() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[str]:
        await pilot.press("7", "down")
        seen = [app.form.text("checkpoint.params")]
        app.form.show([spec._replace(text="7 B") for spec in FIELDS])
        return [*seen, app.form.text("checkpoint.params")]

    assert drive(app, script) == ["7", "7 B"]


def test_a_refused_text_stays_with_its_reason_until_it_is_changed() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[list[str]]:
        await pilot.press("down", "x")
        app.form.refuse(
            "checkpoint.size", "x is no size: write a number and a unit such as 2 TB or 14.5 GiB"
        )
        await pilot.pause()
        seen = [app.text[2:7]]
        await pilot.press("down")
        app.form.show(FIELDS)
        await pilot.pause()
        seen.append(app.text[2:7])
        await pilot.press("up", "2")
        await pilot.pause()
        seen.append(app.text[2:6])
        return seen

    first, second, third = drive(app, script)
    assert first == [
        "parameters 1000                         B  u",
        "size       x                               =",
        "\u2717 x is no size: write a number and a unit",
        "  such as 2 TB or 14.5 GiB",
        "Cluster",
    ]
    assert second == first
    assert third[1].split()[:2] == ["size", "2"]
    assert third[2] == "Cluster"


def test_an_error_of_the_value_itself_is_shown_and_forget_takes_back_what_was_typed() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[Any]:
        app.form.show([FIELDS[0]._replace(error="too large"), *FIELDS[1:]])
        await pilot.pause()
        seen = [app.text[3]]
        app.form.show(FIELDS)
        await pilot.press("9")
        app.form.refuse("checkpoint.params", "no")
        app.form.forget("checkpoint.params")
        await pilot.pause()
        return [
            *seen,
            app.form.query_one(Input).value,
            app.form.reason("checkpoint.params"),
            app.text[3].split()[0],
        ]

    assert drive(app, script) == ["\u2717 too large", "1000", "", "size"]


def test_choices_are_asked_for_completed_and_clicked() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[Any]:
        app.form.enter("cluster.gpu")
        await pilot.press("f2", "enter")
        picks = [heard for heard in app.heard if heard[0] == "pick"]
        await pilot.press("b")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("enter")
        completed = app.form.text("cluster.gpu")
        await pilot.press("enter")
        went_on = app.form.focused_path
        await pilot.press("f2")  # no choices here
        app.heard.clear()
        await pilot.click(FieldLines, offset=(39, 4))
        await pilot.pause()
        return [
            len(picks),
            completed,
            went_on,
            [heard for heard in app.heard if heard[0] == "pick"],
        ]

    assert drive(app, script) == [2, "b200", "cluster.gpu_train", [("pick", "cluster.gpu")]]


def test_a_click_puts_the_focus_on_the_field() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> str:
        await pilot.click(FieldLines, offset=(3, 5))
        return app.form.focused_path

    assert drive(app, script) == "cluster.gpu_train"


def test_fields_that_come_and_go_leave_the_focus_where_it_is() -> None:
    app = OneForm()

    async def script(pilot: Pilot[None]) -> list[str]:
        app.form.enter("cluster.gpu_train")
        await pilot.press("5")
        app.form.show([FIELDS[3], Field("run.work", "work", "54 d", group="Run"), FIELDS[0]])
        await pilot.pause()
        seen = [app.form.focused_path, app.form.text("cluster.gpu_train"), app.text[2].split()[0]]
        app.form.show(FIELDS[:2])
        await pilot.pause()
        return [*seen, app.form.focused_path, app.form.query_one(Input).value]

    assert drive(app, script) == ["cluster.gpu_train", "5", "training", "checkpoint.params", "1000"]


def test_a_long_form_scrolls_to_the_field_with_its_heading() -> None:
    app = OneForm(MANY)

    async def script(pilot: Pilot[None]) -> list[list[str]]:
        seen = []
        for path in ("tier.f59", "tier.f30", "tier.f0"):
            app.form.enter(path)
            await pilot.pause()
            seen.append([line.strip() for line in app.text[1:-1]])
        return seen

    last, middle, first = drive(app, script)
    assert last[-1].startswith("field 59")
    assert middle[0] == "Group 5"
    assert middle[1].startswith("field 30")
    assert first[0] == "Group 0"


def test_the_input_stands_where_its_field_is_drawn_after_scrolling() -> None:
    app = OneForm(MANY)

    async def script(pilot: Pilot[None]) -> list[str]:
        app.form.enter("tier.f8")
        await pilot.press("9", "9")
        app.form.query_one(FieldLines).scroll_to(y=3, animate=False)
        await pilot.pause()
        here = next(line for line in app.text if "field 8" in line)
        app.form.query_one(FieldLines).scroll_to(y=40, animate=False)
        await pilot.pause()
        gone = [line for line in app.text if "99" in line]
        return [here, *gone]

    here, *gone = drive(app, script)
    assert here.split()[:3] == ["field", "8", "99"]
    assert gone == []


def test_a_narrow_form_keeps_room_to_type() -> None:
    app = OneForm((Field("a.b", "a label that is far too long for this", "12345678", "GB/s"),))

    async def script(pilot: Pilot[None]) -> str:
        await pilot.press("tab")
        return app.text[1]

    assert drive(app, script, (28, 6)) == "a label.. 12345678   GB/s"


def test_plain_letters_only() -> None:
    app = OneForm(plain=True)

    async def script(pilot: Pilot[None]) -> list[str]:
        app.form.refuse("checkpoint.params", "no")
        await pilot.pause()
        return app.text[1:-1]

    assert all(line.isascii() for line in drive(app, script))


def test_without_colours_nothing_falls_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = OneForm()

    async def script(pilot: Pilot[None]) -> str:
        app.form.refuse("checkpoint.params", "no")
        await pilot.pause()
        return app.text[3]

    assert drive(app, script) == "\u2717 no"
