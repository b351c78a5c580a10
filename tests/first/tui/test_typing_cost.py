"""What a key in a field costs: one frame, no layout, only the lines that change; and nothing that
was kept is shown when it is old."""

from __future__ import annotations

import asyncio
import os
import random

import pytest
from screening import SMALL, USUAL, WIDE, screen_text, settled, shown
from textual.app import App, ComposeResult
from textual.events import Key

from ckptcost.first.catalog import files
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.jobs.model import at_saves, comparison_of
from ckptcost.first.present.form import Field
from ckptcost.first.present.grid import Grid, GridHead, Row
from ckptcost.first.report.rows import columns_of
from ckptcost.first.tui import fields
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import model as screen_module
from ckptcost.first.tui.screens import model_view as model
from ckptcost.first.tui.screens.model_runs import METRICS
from ckptcost.first.tui.state import Remembered
from ckptcost.first.tui.themes import THEMES
from ckptcost.first.tui.widgets.drawn import Drawn
from ckptcost.first.tui.widgets.form import FieldInput, FieldLines, Form
from ckptcost.first.tui.widgets.rows import Rows


@pytest.fixture
def never_idle(monkeypatch):
    """Only what the key itself leads to; what follows once nobody types does not come."""
    monkeypatch.setattr(screen_module, "IDLE_S", 1000.0)


async def at_field(pilot, path):
    pilot.app.screen.form.enter(path)
    await settled(pilot)
    await pilot.press("end")
    await settled(pilot)


def counted(monkeypatch, cls, name, seen):
    """Calls of a method: what it was called on and with."""
    whole = getattr(cls, name)

    def call(self, *words, **more):
        seen.append((self, *words))
        return whole(self, *words, **more)

    monkeypatch.setattr(cls, name, call)


def layouts(app, seen):
    app.screen.screen_layout_refresh_signal.subscribe(app.screen, seen.append, immediate=True)


def drawn(app):
    """Letters and colours."""
    return [
        [(each.text, str(each.style)) for each in strip.simplify()]
        for strip in app.screen._compositor.render_strips()
    ]


async def at_rest(pilot):
    """What is drawn once nobody has typed for a while."""
    pilot.app.screen._settle()
    await settled(pilot)
    return drawn(pilot.app)


@pytest.mark.parametrize("path", ["cluster.gpus", "site.pue", "policy.saves"])
def test_a_digit_is_drawn_at_once_with_all_that_follows_and_nothing_is_laid_out(
    drive, monkeypatch, never_idle, path
):
    app, frames, tables, laid = CkptcostApp(Desk(edits={"policy.saves": "150"})), [], [], []

    async def script(pilot):
        await at_field(pilot, path)
        counted(monkeypatch, FieldInput, "render_lines", frames)
        counted(monkeypatch, Rows, "render_lines", tables)
        layouts(app, laid)
        for key in ("5", "backspace", "7"):
            frames.clear()
            tables.clear()
            before = app.screen.form.text(path), app.screen.results.query_one("#tiers", Rows).grid
            app.post_message(Key(key, key if key.isdigit() else None))
            for _ in range(500):
                await asyncio.sleep(0.01)
                now = app.screen.form.text(path), app.screen.results.query_one("#tiers", Rows).grid
                if now[0] != before[0] and now[1] != before[1]:
                    break
            else:
                raise AssertionError(f"{key} changes nothing")
            await asyncio.sleep(0.1)  # a second frame would come within two sixtieths of a second
            assert len(frames) == 1, f"{key} is drawn {len(frames)} times"
            assert sum(rows.id == "tiers" for rows, *_ in tables) == 1
        assert laid == []

    drive(app, script)


def test_a_letter_that_nothing_can_be_done_with_is_not_laid_out_either(
    drive, monkeypatch, never_idle
):
    app, laid = CkptcostApp(), []

    async def script(pilot):
        await at_field(pilot, "cluster.gpus")
        await pilot.press("q")
        await settled(pilot)
        reason = app.screen.form.reason("cluster.gpus")
        assert reason
        assert "\u2717" in screen_text(app)
        counted(monkeypatch, FieldInput, "update_node_styles", styled := [])
        layouts(app, laid)
        for key in "zqz":
            await pilot.press(key)
            await settled(pilot)
            assert app.screen.form.reason("cluster.gpus")
        assert styled == []
        assert laid == []

    drive(app, script)


def test_keys_in_a_row_are_all_taken_and_the_last_text_counts(drive, monkeypatch, never_idle):
    app, asked = CkptcostApp(), []
    whole = model.evaluate
    monkeypatch.setattr(
        model, "evaluate", lambda desk: asked.append(desk.edits.get("cluster.gpus")) or whole(desk)
    )

    async def script(pilot):
        await at_field(pilot, "cluster.gpus")
        asked.clear()
        text = app.screen.form.text("cluster.gpus")
        for key in "123":
            app.post_message(Key(key, key))
        await settled(pilot)
        assert (
            app.screen.form.text("cluster.gpus") == text + "123" == app.desk.edits["cluster.gpus"]
        )
        assert asked[-1] == text + "123"
        assert len(asked) <= 3
        assert app.screen.results.query_one("#tiers", Rows).grid == whole(app.desk).grid
        asked.clear()
        await pilot.press("backspace")
        await settled(pilot)
        assert asked == [text + "12"]

    drive(app, script)


# lines that change


FIELDS = tuple(
    Field(f"tier.f{at}", f"field {at}", str(at), "GB/s", "d", f"Group {at // 6}")
    for at in range(60)
)
GRID = Grid(
    (GridHead("id", "id", left=True), GridHead("n", "n")),
    [Row(f"r{at}", (f"r{at}", str(at)), (f"r{at}", float(at))) for at in range(30)],
)


class Both(App[None]):
    """A form and a table."""

    CSS = "Form { height: 12; } Rows { height: 8; }"
    plain = False

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def compose(self) -> ComposeResult:
        yield Form()
        yield Rows()

    def on_mount(self) -> None:
        self.query_one(Form).show(FIELDS)
        self.query_one(Rows).show(GRID)


def told(script):
    async def go():
        app = Both()
        async with app.run_test(size=(60, 20)) as pilot:
            await settled(pilot)
            await script(app, pilot)

    asyncio.run(go())


def test_of_a_form_only_the_lines_that_changed_are_drawn(monkeypatch):
    async def script(app, pilot):
        form = app.query_one(Form)
        form.enter("tier.f2")
        await settled(pilot)
        counted(monkeypatch, FieldLines, "render_line", seen := [])

        async def lines():
            await settled(pilot)
            found = sorted({y for _, y in seen})
            seen.clear()
            return found

        form.show(FIELDS)
        assert await lines() == []
        form.show(
            [
                one._replace(text="99") if one.path in ("tier.f4", "tier.f50") else one
                for one in FIELDS
            ]
        )
        assert await lines() == [5]  # below a heading; the other one is not seen
        assert "99" in screen_text(app)
        form.show([one._replace(mark="u") if one.path == "tier.f3" else one for one in FIELDS])
        assert await lines() == [4, 5]
        form.refuse("tier.f2", "no")  # a line more: those below stand elsewhere
        assert len(await lines()) == 12
        form.accept("tier.f2")
        assert len(await lines()) == 12
        app.theme = THEMES[1].name
        assert len(await lines()) == 12
        form.enter("tier.f50")  # scrolled there
        await settled(pilot)
        assert "field 50" in screen_text(app)

    told(script)


def test_of_a_table_only_the_lines_that_changed_are_drawn(monkeypatch):
    async def script(app, pilot):
        rows = app.query_one(Rows)
        counted(monkeypatch, Rows, "render_line", seen := [])

        async def lines():
            await settled(pilot)
            found = sorted({y for _, y in seen})
            seen.clear()
            return found

        def changed(**by):
            return GRID._replace(
                rows=[row._replace(**by) if row.key in ("r3", "r20") else row for row in GRID.rows]
            )

        await lines()
        rows.show(GRID)
        assert await lines() == []
        rows.show(changed(cells=("r3", "x")))
        assert await lines() == [4]
        rows.show(changed(cells=("r3", "x"), tone="best"))
        assert await lines() == [4]
        rows.show(changed(cells=("r3", "x"), tone="best", marked=True))
        assert await lines() == [4]
        rows.show(changed(cells=("r3", "x"), tone="best", marked=True, order=("z", 1.0)))
        assert await lines() == []
        rows.show(
            GRID._replace(heads=(GridHead("id", "id", left=True), GridHead("n", "n", left=True)))
        )  # as wide, and on the other side
        assert len(await lines()) == 8
        rows.show(GRID._replace(rows=GRID.rows[:2]))
        assert len(await lines()) == 8
        assert "r2" not in screen_text(app)
        rows.show(GRID._replace(rows=(), empty="nothing here"))
        assert len(await lines()) == 8
        assert "nothing here" in screen_text(app)
        rows.show(GRID)
        await lines()
        app.theme = THEMES[1].name
        assert len(await lines()) == 8
        rows.select("r20")  # scrolled there
        await settled(pilot)
        assert "r20" in screen_text(app)
        assert "r3 " not in screen_text(app)

    told(script)


def test_a_picture_is_looked_at_once_a_frame_and_new_data_are_seen(drive, monkeypatch, never_idle):
    app = CkptcostApp()

    async def script(pilot):
        await at_field(pilot, "cluster.gpus")
        counted(monkeypatch, Drawn, "_current", seen := [])
        await pilot.press("0")
        await settled(pilot)
        assert seen == []
        app.screen._settle()
        await settled(pilot)
        assert 1 <= len(seen) <= 2  # the picture; no line is asked for by itself

    drive(app, script, WIDE)


KEYS = (
    "0",
    "5",
    "9",
    "backspace",
    "full_stop",
    "q",
    "down",
    "up",
    "tab",
    "end",
    "escape",
    "i",
    "s",
    "g",
    "k",
    "v",
    "u",
    "r",
    "a",
)


@pytest.mark.parametrize("size", [SMALL, USUAL, WIDE])
def test_what_stands_there_is_what_would_be_drawn_anew(drive, never_idle, size):
    """Whatever was typed before: letters and colours are those of a screen that is drawn from
    nothing."""
    app = CkptcostApp()
    keys = random.Random(20 + size[0])

    async def script(pilot):
        await pilot.press("i")
        for turn in range(6):
            for key in keys.choices(KEYS, k=8):
                if (
                    app.screen.form.focused_path or not key.isdigit()
                ):  # elsewhere a digit is another screen
                    await pilot.press(key)
            if turn % 3 == 1:
                app.theme = keys.choice(THEMES).name
            stands = await at_rest(pilot)
            for widget in app.screen.walk_children():
                widget.refresh()
            assert stands == await at_rest(pilot)

    drive(app, script, size)


# nothing old


@pytest.mark.parametrize("theme", [THEMES[1].name, THEMES[-1].name])
def test_a_theme_and_a_size_that_come_later_look_as_if_they_had_been_there_from_the_start(
    drive, theme
):
    late, early = CkptcostApp(), CkptcostApp(remembered=Remembered(theme=theme))

    async def changed(pilot):
        late.theme = theme
        await settled(pilot)
        await pilot.resize_terminal(*WIDE)
        await settled(pilot)
        await asyncio.sleep(screen_module.IDLE_S)
        await settled(pilot)
        return drawn(late)

    async def begun(pilot):
        await asyncio.sleep(screen_module.IDLE_S)
        await settled(pilot)
        return drawn(early)

    assert drive(late, changed, USUAL) == drive(early, begun, WIDE)


BASE = 'extends = "gpt4-scale-2tb"\n[cluster]\ngpus = {gpus}\n'


def test_a_scenario_that_is_rewritten_while_the_screen_runs_is_seen_at_the_next_key(
    drive, tmp_path
):
    """As long as before and at the same time, as far as the file system can tell."""
    file = tmp_path / "job.toml"
    file.write_text(BASE.format(gpus=1000))
    when = file.stat()
    app = CkptcostApp(Desk(base=str(file)))

    async def script(pilot):
        await shown(pilot, "1,000 x")
        await at_field(pilot, "site.pue")
        file.write_text(BASE.format(gpus=3000))
        os.utime(file, ns=(when.st_atime_ns, when.st_mtime_ns))
        await pilot.press("1")
        await settled(pilot)
        await shown(pilot, "3,000 x")
        assert "1,000 x" not in screen_text(app)
        assert app.screen.form.text("cluster.gpus") == "3000"
        file.write_text("extends = ")
        await pilot.press("2")
        await settled(pilot)
        assert "not valid TOML" in app.screen.form.reason("site.pue")
        file.write_text(BASE.format(gpus=2000))
        await pilot.press("backspace")
        await settled(pilot)
        await shown(pilot, "2,000 x")
        assert app.screen.form.reason("site.pue") == ""

    drive(app, script)


def test_a_preset_of_the_users_own_that_is_rewritten_is_seen(tmp_path, monkeypatch):
    own = tmp_path / "models" / "scenarios"
    own.mkdir(parents=True)
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    (own / "mine.toml").write_text('id = "mine"\n' + BASE.format(gpus=1000))
    desk = Desk(base="mine")
    assert desk.resolved().scenario.cluster.gpus == 1000
    (own / "mine.toml").write_text('id = "mine"\n' + BASE.format(gpus=7000))
    assert desk.resolved().scenario.cluster.gpus == 7000
    (own / "gpt4-scale-2tb.toml").write_text(
        'id = "gpt4-scale-2tb"\nextends = "small-8b"\n[run]\nwork = "3 days"\n'
    )
    assert desk.resolved().scenario.work_s == 3 * 86400


def test_a_scenario_that_says_the_same_is_not_parsed_again(monkeypatch):
    desk = Desk()
    model.evaluate(desk)
    counted_loads = []
    whole = files.tomllib.loads
    monkeypatch.setattr(
        files.tomllib, "loads", lambda text: counted_loads.append(text) or whole(text)
    )
    view = model.evaluate(fields.put(desk, "cluster.gpus", "1234"))
    assert view.resolved.scenario.cluster.gpus == 1234
    assert counted_loads == []


def test_layers_that_are_handed_out_twice_were_not_changed_by_who_had_them_first():
    desk = Desk()
    first = [
        (layer.label, {name: dict(said) for name, said in layer.sections.items()})
        for layer in desk.layers()
    ]
    for path, text in (
        ("tier.id", "nas-hdd"),
        ("policy.interval", "20 min"),
        ("cluster.gpus", "64"),
        ("policy.optimal", "energy"),
    ):
        desk = desk.edited(path, text)
        model.form(model.evaluate(desk), everything=True)
    assert first == [(layer.label, layer.sections) for layer in Desk().layers()]


@pytest.mark.parametrize("metric", [each for each in METRICS if each != "time"])
def test_saves_at_another_number_are_as_in_the_table_of_all_columns(metric):
    desk = Desk(metric=metric, tiers=("nas-hdd", "generic-pfs"))
    counts = comparison_of(desk.layers())[1]
    assert len(counts) > 1
    for run in model.evaluate(desk).runs:
        for count in counts[1:]:
            whole = columns_of(evaluate(at_saves(run.case.scenario, count)))
            assert run.row[f"x{count:g}"] == pytest.approx(whole[METRICS[metric].column("saves")])
