"""The user's own themes and keys."""

from __future__ import annotations

from screening import screen_text, settled

from ckptcost.first.tui import preferences
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.preferences import Preferences

FILE = """\
[keys]
"view.theme" = "f3"
"model.fly" = "x"
"export.page" = 7
"copy.table" = "q"

[themes.mine]
like = "ckptcost-light"
background = "#000001"
"series-1" = "#123456"
ground = "#000000"
panel = "no colour"

[themes.odd]
like = "sepia"
"""


def read(folder, text):
    (folder / "screen.toml").write_text(text, "utf-8")
    return preferences.load(folder)


def test_what_is_right_counts_and_what_is_wrong_is_named_by_its_line(tmp_path):
    found = read(tmp_path, FILE)
    assert found.keys == {"view.theme": "f3"}
    mine, odd = found.themes
    assert (mine.name, mine.background, mine.dark) == ("mine", "#000001", False)
    assert mine.variables["series-1"] == "#123456"
    assert odd.name == "odd"
    file = tmp_path / "screen.toml"
    assert list(found.problems) == [
        f"{file}:3: model.fly is no command",
        f'{file}:4: export.page is not given a key, such as "f3" or "ctrl+t"',
        f"{file}:5: copy.table cannot have q, which is app.quit",
        f"{file}:11: ground is no colour of a theme",
        f"{file}:12: panel is 'no colour', not a colour such as \"#10151A\"",
        f"{file}:15: like is none of ckptcost-dark, ckptcost-light, ckptcost-contrast,"
        " ckptcost-colour-blind",
    ]


def test_no_file_and_one_that_is_no_toml(tmp_path):
    assert preferences.load(tmp_path) == Preferences()
    [problem] = read(tmp_path, "[keys]\nx = = 1\n").problems
    assert "line 2" in problem
    [problem] = read(tmp_path, "keys = 1\n").problems
    assert problem.endswith("screen.toml:1: keys is not a table")


def test_an_own_key_and_an_own_theme_work_and_are_shown(drive, tmp_path):
    app = CkptcostApp(preferences=read(tmp_path, '[keys]\n"view.theme" = "f3"\n[themes.mine]\n'))

    async def script(pilot):
        await pilot.press("T")
        assert app.theme == "ckptcost-dark", "the key of before does nothing"
        for _ in range(4):
            await pilot.press("f3")
        assert app.theme == "mine"
        await pilot.press("question_mark", "slash", *"theme")
        await settled(pilot)
        assert "F3  Next theme" in screen_text(app)

    drive(app, script)
