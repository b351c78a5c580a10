"""What is drawn can be read: the contrast of every letter and every line with the ground it stands
on, by the formula of WCAG 2.2, in every theme."""

from __future__ import annotations

import pytest
from rich.color import ColorSystem
from screening import SMALL, USUAL, settled
from textual.screen import ModalScreen

from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.screens.solve import Solve
from ckptcost.first.tui.state import Remembered
from ckptcost.first.tui.themes import THEMES

TEXT, GRAPHICS = 4.5, 3.0
"""WCAG AA for text, and for what is drawn: borders, curves, the cursor's ground"""


def luminance(colour):
    parts = [part / 255 for part in colour]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """
    >>> contrast((0, 0, 0), (255, 255, 255))
    21.0
    """
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def lines(app):
    """The screen, or the dialog over it: what lies below that is dimmed and out of reach."""
    strips = app.screen._compositor.render_strips()
    if not isinstance(app.screen, ModalScreen):
        return strips
    box = app.screen.query(".dialog, #box").first().region
    return [strip.crop(box.x, box.right) for strip in strips[box.y : box.bottom]]


def pairs(app):
    """Front, ground and a text, of all that stands on the screen."""
    for strip in lines(app):
        for segment in strip:
            style = segment.style
            if segment.text.strip() and style and style.color and style.bgcolor:
                pair = style.color, style.bgcolor
                yield *(pair[::-1] if style.reverse else pair), segment.text.strip()


def too_weak(app):
    found = {}
    for front, ground, text in pairs(app):
        drawn = not any(letter.isascii() for letter in text.replace(" ", ""))
        ratio = contrast(front.get_truecolor(), ground.get_truecolor())
        if ratio < (GRAPHICS if drawn else TEXT):
            found[text[:30]] = round(ratio, 2)
        elif not drawn and [c.downgrade(ColorSystem.STANDARD).number for c in (front, ground)] in (
            [0, 0],
            [15, 15],
            [7, 7],
        ):
            found[text[:30]] = "no contrast in 16 colours"
    return found


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_letters_lines_and_cursor_stand_out_in_every_theme(drive, theme):
    app = CkptcostApp(remembered=Remembered(theme=theme))

    async def script(pilot):
        seen = {}
        for mode in ("model", "tiers", "interval"):
            app.switch_mode(mode)
            await settled(pilot)
            seen[mode] = too_weak(app)
        app.push_screen(Confirm("A question", "Whether to.", "do it"))
        await settled(pilot)
        seen["dialog"] = too_weak(app)
        app.pop_screen()
        await pilot.press("question_mark")
        await settled(pilot)
        seen["help"] = too_weak(app)
        assert {where: weak for where, weak in seen.items() if weak} == {}

    drive(app, script)


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_the_row_under_the_cursor_is_another_ground(drive, theme):
    app = CkptcostApp(remembered=Remembered(theme=theme))

    async def script(pilot):
        await pilot.press("down")
        await settled(pilot)
        grounds = [
            {ground for _, ground, text in pairs(app) if text.lstrip("x ").startswith(tier)}
            for tier in ("generic-pfs  ", "ddn-exascaler-20  ")
        ]
        (here,), (other,) = grounds
        assert contrast(here.get_truecolor(), other.get_truecolor()) >= GRAPHICS

    drive(app, script)


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_with_letters_only_dialogs_have_no_boxes_either(drive, size):
    app = CkptcostApp(plain=True)

    async def script(pilot):
        seen = {}
        for name, dialog in (
            ("question", Confirm("A question", "Whether to.", "do it")),
            ("solve", Solve(app.desk)),
        ):
            app.push_screen(dialog)
            await settled(pilot)
            seen[name] = "".join(strip.text for strip in lines(app))
            app.pop_screen()
        for name, key in (("help", "question_mark"), ("tiers", "t"), ("open", "ctrl+o")):
            await pilot.press(key)
            await settled(pilot)
            seen[name] = "".join(strip.text for strip in lines(app))
            await pilot.press("escape")
            await settled(pilot)
        for name, text in seen.items():
            assert {letter for letter in text if not letter.isascii()} == set(), name

    drive(app, script, size)
