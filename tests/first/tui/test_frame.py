"""What all screens share: the bar, the keys, help, palette, themes, dialogs, and the way out."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest
from recorded_runs import SMALL_RUN, simulated_run
from screening import screen_text, settled, shown
from textual.widgets import Input, Static

from ckptcost.first.tui import state
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.commands import EVERYWHERE, MODES, Command, bindings
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.modals.help import Help
from ckptcost.first.tui.palette import entries
from ckptcost.first.tui.screens.base import ModeScreen
from ckptcost.first.tui.screens.run import RunScreen
from ckptcost.first.tui.themes import THEMES, theme_for
from ckptcost.first.tui.widgets.bottom import Keys, Status, key_name
from ckptcost.first.tui.widgets.mode_bar import ModeBar
from ckptcost.first.tui.widgets.rows import matches

MINE = (
    Command("plain.one", "s", "sort", "Sort by the next column", "one", footer=1),
    Command("plain.two", "ctrl+r", "run", "Run it", "two", footer=2),
    *(
        Command(
            f"plain.more{n}",
            f"f{n}",
            f"further key {n}",
            f"Do the {n}th thing",
            "one",
            footer=n + 2,
        )
        for n in range(2, 9)
    ),
)


class Plain(ModeScreen):
    """A screen with a field and a text."""

    MODE = "model"
    ABOUT = "A screen for tests. " * 10
    KEYS_HERE = MINE
    BINDINGS = bindings(MINE)

    def __init__(self, mode: str = "model") -> None:
        super().__init__()
        self.MODE = mode
        self.desks: list[str] = []
        self.looks: list[str] = []
        self.done: list[object] = []

    def body(self):
        yield Input(id="field")
        yield Static("a text")

    def on_desk(self) -> None:
        self.desks.append(self.desk.title)

    def shown(self) -> None:
        self.looks.append("shown")

    def hidden(self) -> None:
        self.looks.append("hidden")

    def command_line(self) -> str:
        return self.desk.command("model")

    def action_one(self) -> None:
        self.say("one was asked for")

    def action_two(self) -> None:
        self.background("two", lambda stopped: 42, self.done.append)


class Plains(CkptcostApp):
    MODES: ClassVar = {mode: (lambda mode=mode: Plain(mode)) for mode, *_ in MODES}


def said(app: CkptcostApp) -> str:
    return app.screen.query_one(Status).said


def test_every_mode_has_its_key_and_its_place_in_the_bar(drive):
    async def script(pilot):
        app = pilot.app
        for mode, key, name, _ in MODES:
            app.screen.set_focus(None)
            await pilot.press(key)
            await settled(pilot)
            assert app.current_mode == mode
            assert f"[{key} {name}]" in screen_text(app).splitlines()[0] or mode == "doctor"
        assert "[D Doctor]" in screen_text(app).splitlines()[0]

    drive(Plains(), script)


def test_at_80_columns_the_bar_shows_all_that_have_a_digit(drive):
    async def script(pilot):
        bar = screen_text(pilot.app).splitlines()[0]
        assert "8 Report" in bar
        assert len(bar) <= 80

    drive(Plains(), script, (80, 24))


def test_the_bar_and_the_keys_can_be_clicked(drive):
    async def script(pilot):
        await pilot.click(ModeBar, offset=(10, 0))
        await settled(pilot)
        assert pilot.app.current_mode == "tiers"
        pilot.app.screen.set_focus(None)
        await pilot.pause()
        await pilot.click(Keys, offset=(2, 0))
        await settled(pilot)
        assert said(pilot.app) == "one was asked for"

    drive(Plains(), script)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_keys_that_do_not_fit_are_left_out_whole_and_help_is_always_there(width, drive):
    async def script(pilot):
        pilot.app.screen.set_focus(None)
        await pilot.pause()
        line = screen_text(pilot.app).splitlines()[-1]
        assert line.endswith("? help  ^p palette")
        assert len(line) <= width
        shown = [
            command for command in MINE if f" {key_name(command.key)} {command.label} " in line
        ]
        assert shown == list(MINE[: len(shown)]), "the most important first, none cut"
        assert len(shown) >= 3

    drive(Plains(), script, (width, 24))


def test_while_one_types_only_keys_that_do_not_type_are_shown(drive):
    async def script(pilot):
        pilot.app.screen.query_one(Input).focus()
        await settled(pilot)
        line = screen_text(pilot.app).splitlines()[-1]
        assert " s sort" not in line
        assert "^r run" in line
        await pilot.press("2", "s", "q")
        assert pilot.app.screen.query_one(Input).value == "2sq"
        assert pilot.app.current_mode == "model"
        await pilot.press("escape", "2")
        await settled(pilot)
        assert pilot.app.current_mode == "tiers"

    drive(Plains(), script)


def told(help_screen):
    """The sentences on keys that a help shows."""
    tables = [help_screen.query_one(name, Static).content for name in ("#here", "#everywhere")]
    return [cell.plain for table in tables for cell in list(table.columns[1].cells)[1:]]


def test_help_names_every_key_and_closes_by_what_opens_it(drive):
    async def script(pilot):
        await pilot.press("f1")
        await settled(pilot)
        shown = screen_text(pilot.app)
        assert "A screen for tests" in shown
        assert "Sort by the next column" in shown
        assert told(pilot.app.screen) == [command.help for command in (*MINE, *EVERYWHERE)]
        for key in ("escape", "question_mark", "f1"):
            assert isinstance(pilot.app.screen, Help)
            await pilot.press(key)
            assert isinstance(pilot.app.screen, Plain), "what opens it closes it, too"
            await pilot.press("f1")
            await settled(pilot)

    drive(Plains(), script, (80, 24))


def test_what_is_long_in_help_goes_on_below_itself(drive):
    app = CkptcostApp()

    async def script(pilot):
        await pilot.press("question_mark")
        await settled(pilot)
        text = screen_text(app).splitlines()
        at = next(n for n, line in enumerate(text) if "Next view: bill, notes, where" in line)
        begin = text[at].index("Next view")
        assert text[at + 1][begin - 3 : begin].strip() == ""
        assert text[at + 1][begin : begin + 40].split()[0] == "goes"

    drive(app, script)


def test_help_is_narrowed_by_words(drive):
    async def script(pilot):
        await pilot.press("f1")
        await settled(pilot)
        await pilot.press("slash", *"sort next")
        await settled(pilot)
        assert told(pilot.app.screen) == ["Sort by the next column"]
        assert "A screen for tests" not in screen_text(pilot.app)
        await pilot.press(*["backspace"] * 9, *"stall")
        await settled(pilot)
        assert told(pilot.app.screen) == []
        assert "training stands still" in screen_text(pilot.app)
        assert "is refused" not in screen_text(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, Plain)

    drive(Plains(), script, (80, 24))


def test_the_palette_opens_a_run(drive, tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    (tmp_path / "runs").mkdir()
    simulated_run(tmp_path / "runs" / "nightly-7", 1e9, SMALL_RUN)
    app = CkptcostApp()

    async def script(pilot):
        await pilot.press("ctrl+p", *"nightly-7")
        await shown(pilot, "nightly-7")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.current_mode == "runs"
        assert isinstance(app.screen, RunScreen)

    drive(app, script)


async def narrows(pilot, rows):
    """`/` and words of its last row leave only what has them, and Escape shows all again."""
    before, screen = rows.grid.rows, pilot.app.screen
    words = before[-1].cells[0].split()[0]
    rows.focus()
    await pilot.press("slash", *words)
    await shown(pilot, f"/{words}_")
    left = [row.key for row in rows.grid.rows]
    assert left == [row.key for row in before if matches(row, words)]
    await shown(pilot, f" {len(left)} of {len(before)}")
    await pilot.press(*"zzz", "enter")
    await shown(pilot, f" 0 of {len(before)}")
    await pilot.press("escape")
    await pilot.pause()
    assert len(rows.grid.rows) == len(before)
    assert pilot.app.screen is screen


def test_the_palette_offers_what_the_keys_do(drive):
    async def script(pilot):
        titles = [entry.title for entry in entries(pilot.app)]
        assert len(titles) == len(set(titles))
        assert {command.title for command in (*MINE, *EVERYWHERE)} - {
            c.title for c in EVERYWHERE if c.id == "view.leave"
        } <= set(titles)
        entry = next(
            entry for entry in entries(pilot.app) if entry.title == "Plain: sort by the next column"
        )
        await entry.callback()
        assert said(pilot.app) == "one was asked for"
        await pilot.press("ctrl+p")
        await settled(pilot)
        assert "Search for commands" in screen_text(pilot.app)

    drive(Plains(), script)


def test_nothing_is_opened_twice_over_itself(drive, monkeypatch):
    """The palette, a question over it, and both keys once more."""
    monkeypatch.setattr(Plain, "busy", lambda self: "a recording goes on")

    async def script(pilot):
        for key in ("ctrl+p", "ctrl+q", "ctrl+q", "ctrl+p"):
            await pilot.press(key)
            await settled(pilot)
        assert [type(each).__name__ for each in pilot.app.screen_stack[1:]] == [
            "CommandPalette",
            "Quit",
        ]

    drive(Plains(), script)


def test_a_screen_hears_of_the_scenario_once_and_only_while_it_is_seen(drive):
    async def script(pilot):
        first = pilot.app.screen
        assert first.desks == ["gpt4-scale-2tb"]
        await pilot.press("escape", "2")
        await settled(pilot)
        second = pilot.app.screen
        second.change(second.desk.on("llama31-405b-16k"))
        assert first.desks == ["gpt4-scale-2tb"]
        assert first.looks[-1] == "hidden"
        pilot.app.screen.set_focus(None)
        await pilot.press("1")
        await settled(pilot)
        assert first.desks == ["gpt4-scale-2tb", "llama31-405b-16k"]
        assert first.looks[-1] == "shown"
        pilot.app.screen.set_focus(None)
        await pilot.press("2")
        await pilot.press("1")
        await settled(pilot)
        assert first.desks == ["gpt4-scale-2tb", "llama31-405b-16k"], "nothing new to hear"

    drive(Plains(), script)


def test_work_in_the_background_comes_back(drive):
    async def script(pilot):
        await pilot.press("ctrl+r")
        await settled(pilot)
        assert pilot.app.screen.done == [42]

    drive(Plains(), script)


def test_an_expected_error_is_a_line_and_a_defect_a_dialog(drive):
    from ckptcost.first.errors import InputError

    def wrong(stopped):
        raise InputError("no such thing", where="here")

    def broken(stopped):
        raise ZeroDivisionError("a defect")

    async def script(pilot):
        screen = pilot.app.screen
        screen.background("wrong", wrong, screen.done.append)
        await settled(pilot)
        assert "here: no such thing" in said(pilot.app)
        told = []
        screen.background("told", wrong, screen.done.append, told.append)
        await settled(pilot)
        assert told == ["here: no such thing"]
        screen.background("broken", broken, screen.done.append)
        await settled(pilot)
        assert "ZeroDivisionError: a defect" in screen_text(pilot.app)
        await pilot.press("y", "escape")
        await settled(pilot)
        assert pilot.app.screen is screen
        assert screen.done == []

    drive(Plains(), script)


def test_newer_work_of_the_same_name_replaces_the_older(drive):
    import threading

    go = threading.Event()

    def first(stopped):
        go.wait(10)
        return "old" if not stopped() else "stopped"

    async def script(pilot):
        screen = pilot.app.screen
        screen.background("look", first, screen.done.append)
        await pilot.pause()
        screen.background("look", lambda stopped: "new", screen.done.append)
        go.set()
        await settled(pilot)
        assert screen.done == ["new"]

    drive(Plains(), script)


def test_themes_go_round_and_are_remembered(drive):
    async def script(pilot):
        pilot.app.screen.set_focus(None)
        for theme in [*THEMES[1:], THEMES[0], THEMES[1]]:
            await pilot.press("T")
            assert pilot.app.theme == theme.name
        await pilot.press("q")
        await pilot.pause()

    drive(Plains(), script)
    assert state.load().theme == THEMES[1].name


def test_a_theme_has_every_colour_that_is_asked_for():
    for theme in THEMES:
        assert {f"series-{n}" for n in range(1, 9)} | {
            f"band-{kind}" for kind in ("save", "load", "drain", "plateau")
        } <= set(theme.variables)
        assert len({theme.variables[f"series-{n}"] for n in range(1, 9)}) == 8
    assert theme_for("ckptcost-light", no_color=False) == "ckptcost-light"
    assert (
        theme_for("ckptcost-light", no_color=True)
        == theme_for("nord", no_color=False)
        == "ckptcost-dark"
    )


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_colours_can_be_read(theme):
    for name in ("foreground", "warning", "error", "success", "primary"):
        assert contrast(getattr(theme, name), theme.background) >= 4.5, name
    for number in range(1, 9):
        assert contrast(theme.variables[f"series-{number}"], theme.background) >= 3.0, number


def test_copying_says_where_it_went(drive):
    async def script(pilot):
        pilot.app.screen.set_focus(None)
        await pilot.press("y")
        await settled(pilot)
        assert (state.home() / "clipboard.txt").read_text() == "ckptcost model\n"
        assert pilot.app.clipboard == "ckptcost model"
        await pilot.press("Y")
        await settled(pilot)
        assert [n.message for n in pilot.app._notifications][-1] == "there is nothing to copy here"

    drive(Plains(), script)


def test_quitting_remembers_where_one_was(drive):
    async def script(pilot):
        pilot.app.screen.change(pilot.app.desk.edited("cluster.gpus", "64"))
        pilot.app.screen.set_focus(None)
        await pilot.press("3")
        await settled(pilot)
        pilot.app.screen.set_focus(None)
        await pilot.press("q")
        await pilot.pause()

    drive(Plains(), script)
    left = state.load()
    assert (left.mode, left.base, left.edits) == (
        "interval",
        "gpt4-scale-2tb",
        {"cluster.gpus": "64"},
    )


def test_quitting_asks_while_something_is_under_way(drive, monkeypatch):
    given_up = []
    monkeypatch.setattr(
        Plain, "busy", lambda self: "a recording goes on" if self.MODE == "model" else ""
    )
    monkeypatch.setattr(Plain, "give_up", lambda self: given_up.append(self.MODE))

    async def script(pilot):
        pilot.app.screen.set_focus(None)
        await pilot.press("q")
        await settled(pilot)
        assert "a recording goes on" in screen_text(pilot.app)
        await pilot.press("n")
        await settled(pilot)
        assert given_up == []
        assert isinstance(pilot.app.screen, Plain)
        await pilot.press("q")
        await settled(pilot)
        await pilot.press("y")
        await pilot.pause()

    drive(Plains(), script)
    assert given_up == ["model"]


def test_the_first_start_greets_over_a_screen_that_works(drive, snapshot):
    async def script(pilot):
        assert "ckptcost: what training checkpoints cost" in screen_text(pilot.app)
        assert re.search(r"screen\s+remembers\s+in", screen_text(pilot.app))
        await pilot.press("5")
        await settled(pilot)
        assert pilot.app.current_mode == "probe"
        assert pilot.app.remembered.welcomed

    drive(Plains(welcome=True), script)


def test_a_state_that_could_not_be_read_is_told(drive):
    async def script(pilot):
        assert [n.message for n in pilot.app._notifications] == ["cannot be read"]

    drive(Plains(remembered=state.Remembered(problem="cannot be read")), script)


@pytest.mark.parametrize("size", [(79, 24), (80, 19), (40, 10)])
def test_below_the_least_size_there_is_one_sentence(size, drive):
    async def script(pilot):
        pilot.app.screen.say("still told")
        await settled(pilot)
        shown = screen_text(pilot.app)
        assert f"needs 80 x 20, is {size[0]} x {size[1]}" in shown
        assert "a text" not in shown
        assert "still told" in shown
        await pilot.resize_terminal(100, 30)
        await settled(pilot)
        assert "a text" in screen_text(pilot.app)

    drive(Plains(), script, size)


def test_saving_and_opening_a_scenario(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        app = pilot.app
        app.screen.change(app.desk.edited("cluster.gpus", "64"))
        app.screen.set_focus(None)
        await pilot.press("ctrl+s")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert (tmp_path / "job.toml").is_file()
        assert app.desk.base == "job.toml"
        assert app.desk.edits == {}
        assert float(app.desk.resolved().scenario.cluster.gpus) == 64
        app.screen.change(app.desk.edited("cluster.gpus", "128"))
        await pilot.press("ctrl+s")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert "once more writes over it" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot)
        await pilot.press("ctrl+o")
        await settled(pilot)
        assert "llama31-405b-16k" in screen_text(app)
        assert "job.toml" in screen_text(app)
        await pilot.press(*"405b", "enter")
        await settled(pilot)
        assert app.desk.base == "llama31-405b-16k"
        assert app.remembered.recent == ("llama31-405b-16k", "job.toml")
        await pilot.press("ctrl+o")
        await settled(pilot)
        await pilot.press(*"nowhere.toml", "enter")
        await settled(pilot)
        assert "nowhere.toml" in screen_text(app).split("Open a scenario")[1]

    drive(Plains(), script)


def test_saving_into_ones_own_file_keeps_the_rest_of_it(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(
        'extends = "gpt4-scale-2tb"\n[cluster]\ngpus = 64   # precious\n'
    )

    async def script(pilot):
        pilot.app.screen.change(pilot.app.desk.edited("site.pue", "1.5"))
        await pilot.press("ctrl+s")
        await settled(pilot)
        await pilot.press("enter", "enter")
        await settled(pilot)

    drive(Plains(Desk(base="job.toml")), script)
    assert (
        (tmp_path / "job.toml").read_text()
        == 'extends = "gpt4-scale-2tb"\n[cluster]\ngpus = 64   # precious\n\n[site]\npue = "1.5"\n'
    )


def test_names_with_brackets_are_names(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        await pilot.press("ctrl+o")
        await settled(pilot)
        await pilot.press(*"[/x].toml", "enter")
        await settled(pilot)
        assert "[/x].toml" in screen_text(pilot.app)

    drive(Plains(), script)


def test_a_file_that_is_gone_costs_a_sentence(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text('extends = "gpt4-scale-2tb"\n')

    class Reads(Plain):
        def command_line(self) -> str:
            self.desk.layers()
            return "x"

    class App(Plains):
        MODES: ClassVar = {"model": Reads}

    async def script(pilot):
        (tmp_path / "job.toml").unlink()
        await pilot.press("y")
        await settled(pilot)
        assert "job.toml" in [n.message for n in pilot.app._notifications][-1]

    drive(App(Desk(base="job.toml")), script)


def test_the_screen_itself_is_exported_as_a_picture(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        pilot.app.screen.set_focus(None)
        await pilot.press("E")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)

    drive(Plains(), script)
    assert "a&#160;text" in (tmp_path / "ckptcost-model.svg").read_text()


def test_quit_works_from_within_a_dialog(drive):
    app = CkptcostApp()

    async def script(pilot):
        await pilot.press("E")
        await settled(pilot)
        assert isinstance(app.focused, Input)
        await pilot.press("ctrl+q")
        assert app._exit

    drive(app, script)


@pytest.mark.parametrize(
    ("by", "answer"),
    [
        ("#yes", True),
        ("#no", False),
        ("y", True),
        ("n", False),
        ("escape", False),
    ],
)
def test_a_question_is_answered_as_the_button_or_the_key_says(by, answer, drive):
    async def script(pilot):
        answers: list[bool | None] = []
        await pilot.app.push_screen(Confirm("Delete it?", "all of it", "delete"), answers.append)
        await settled(pilot)
        await (pilot.click(by) if by.startswith("#") else pilot.press(by))
        await settled(pilot)
        return answers

    assert drive(Plains(), script) == [answer]
