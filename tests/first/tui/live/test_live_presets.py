"""Layouts of the live screen: what each of them shows, at which size, and which one it begins
with."""

from __future__ import annotations

from live_told import Turned, live_app, small
from screening import SMALL, settled

from ckptcost.first.tui import preferences
from ckptcost.first.tui.preferences import Preferences
from ckptcost.first.tui.state import Remembered
from ckptcost.first.tui.widgets.bottom import Status
from ckptcost.first.tui.widgets.live_board import PRESETS, Board, Traced
from ckptcost.first.tui.widgets.rows import Rows
from ckptcost.first.tui.widgets.stats import Stats

NAMES = ["overview", "gpus", "checkpoints", "figures"]


def test_every_layout_fills_a_small_and_a_large_terminal(drive):
    app = live_app(Turned(small(gpus=8), history_s=50.0))

    async def script(pilot):
        board, seen, numbers = app.screen.query_one(Board), {}, {}
        for size in ((200, 50), SMALL):
            await pilot.resize_terminal(*size)
            for _ in NAMES:
                await pilot.press("p")
                await settled(pilot)
                name = app.remembered.preset
                assert f": {name}." in app.screen.query_one(Status).said
                lists = [rows for rows in app.screen.query(Rows) if rows.display]
                traced = app.screen.query_one(Traced)
                heights = (traced.size.height if traced.display else 0, lists[0].size.height)
                seen[size[0], name] = heights, traced.traces.charts[0].filled
                assert all(rows.size.height >= 3 for rows in lists), (size, name)
                assert board.size.height >= sum(heights)
                numbers[size[0], name] = app.screen.query_one(Stats).size.height
        assert [name for width, name in seen if width == 80] == [*NAMES[1:], NAMES[0]]
        for width in (200, 80):
            (overview, _), (gpus, each) = seen[width, "overview"], seen[width, "gpus"]
            (table, thin), (figures, _) = seen[width, "checkpoints"], seen[width, "figures"]
            assert each == "each"
            assert thin == "stack"
            assert gpus[0] > gpus[1]
            assert table[1] > table[0] >= 5
            assert figures[0] == 0
            assert figures[1] > overview[1]
            assert numbers[width, "figures"] > numbers[width, "overview"] == 1

    drive(app, script, (200, 50))


def test_the_layout_that_was_chosen_last_is_there_again_unless_the_file_names_one(drive):
    def begun(seen: list[str], **more):
        app = live_app(Turned(history_s=20.0), remembered=Remembered(preset="figures"), **more)

        async def script(pilot):
            seen.append(app.screen.query_one(Board).preset.name)

        drive(app, script)
        return seen

    assert begun(begun([]), preferences=Preferences(preset="gpus")) == ["figures", "gpus"]


def test_a_layout_in_the_file_is_checked(tmp_path):
    file = tmp_path / "screen.toml"
    file.write_text('[live]\npreset = "figures"\n', "utf-8")
    assert preferences.load(tmp_path).preset == "figures"
    file.write_text('[live]\npreset = "all"\ncolour = 1\n', "utf-8")
    found = preferences.load(tmp_path)
    assert found.preset == ""
    assert list(found.problems) == [
        f"{file}:2: preset is none of overview, gpus, checkpoints, figures",
        f"{file}:3: colour is not `preset`",
    ]
    assert [preset.name for preset in PRESETS] == NAMES
