"""Keys of all screens: told apart, answered by somebody, and written down in
docs/reference/screen.md."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from ckptcost.first.cli.screen_ import MODES as OF_THE_COMMAND_LINE
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.commands import EVERYWHERE, MODES, Command
from ckptcost.first.tui.screens.base import ModeScreen
from ckptcost.first.tui.widgets.bottom import key_name

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "screen.md"
SCREENS = {
    "model": "ModelScreen",
    "tiers": "TiersScreen",
    "interval": "IntervalScreen",
    "live": "LiveScreen",
    "probe": "ProbeScreen",
    "runs": "RunsScreen",
    "run": "RunScreen",
    "checkpoint": "CheckpointScreen",
    "calibrate": "CalibrateScreen",
    "against": "AgainstScreen",
    "audit": "AuditScreen",
    "report": "ReportScreen",
    "doctor": "DoctorScreen",
}
TITLES = {
    "run": "A run",
    "checkpoint": "A checkpoint",
    "against": "Measured against modelled",
    "calibrate": "Calibrate",
    **{mode: name for mode, _, name, _ in MODES},
}
HEAD = """\
# Keys of the screen

Every key that does something, by screen; [the screen](../howto/screen.md) says what it is for. The palette (`^p`) has the same by name,
`?` those of the screen that is seen, and the line at the bottom those that matter now. Letters and digits are typed while a field has the
cursor: `Esc` leaves it. `^` is the control key.
"""


def screen_of(name: str) -> type[ModeScreen]:
    return getattr(import_module(f"ckptcost.first.tui.screens.{name}"), SCREENS[name])


def keys_of(command: Command) -> list[str]:
    return [key.strip() for key in command.key.split(",")]


def table(commands: tuple[Command, ...]) -> str:
    rows = [
        f"| {' '.join(f'`{key_name(key)}`' for key in keys_of(command))} | {command.help} |"
        for command in commands
    ]
    return "\n".join(["| key | what |", "|---|---|", *rows]) + "\n"


def page() -> str:
    parts = [HEAD, f"## Everywhere\n\n{table(EVERYWHERE)}"]
    for name in SCREENS:
        screen = screen_of(name)
        about = " ".join(screen.ABOUT.split("\n\n")[0].split())
        parts.append(f"## {TITLES[name]}\n\n{about}\n\n{table(screen.KEYS_HERE)}")
    return "\n".join(parts)


def test_the_page_has_all_keys(request):
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page(), "utf-8")
    assert PAGE.read_text("utf-8") == page(), (
        "pytest tests/first/tui/test_commands.py --update-golden writes it"
    )


def test_every_mode_is_listed_everywhere():
    modes = [mode for mode, *_ in MODES]
    assert list(CkptcostApp.MODES) == modes
    assert list(OF_THE_COMMAND_LINE) == modes
    assert set(modes) <= set(SCREENS)


def test_ids_are_told_apart():
    ids = [command.id for command in EVERYWHERE] + [
        command.id for name in SCREENS for command in screen_of(name).KEYS_HERE
    ]
    assert [each for each, times in Counter(ids).items() if times > 1] == []


@pytest.mark.parametrize("name", SCREENS)
def test_a_key_means_one_thing_at_a_time(name):
    screen = screen_of(name)
    keys = Counter(key for command in screen.KEYS_HERE for key in keys_of(command))
    twice = {key for key, times in keys.items() if times > 1}
    shared = {frozenset(c.id for c in screen.KEYS_HERE if key in keys_of(c)) for key in twice}
    for ids in (
        shared
    ):  # only where one of them is possible at a time, which the screen says by check_action
        assert "check_action" in vars(screen) or any(
            "check_action" in vars(base) for base in screen.__mro__[:3]
        ), ids


@pytest.mark.parametrize("name", SCREENS)
def test_every_key_is_answered_and_said(name):
    screen = screen_of(name)
    assert screen.ABOUT, "help begins with what is seen here"
    for command in screen.KEYS_HERE:
        action = command.action.partition("(")[0]
        assert hasattr(screen, f"action_{action}") or hasattr(
            CkptcostApp, f"action_{action.removeprefix('app.')}"
        ), command.id
        assert command.id.partition(".")[0] == name, command.id
        assert command.label, command.id
        assert len(command.label) <= 18, command.id
        assert command.help[0].isupper(), command.help
        assert not command.help.replace("...", "").endswith("."), command.help
    for key in {key for command in screen.KEYS_HERE for key in keys_of(command)}:
        assert not key.startswith(("alt+", "super+")), "not every terminal sends it"


def test_everything_that_works_everywhere_is_answered_by_the_application():
    for command in EVERYWHERE:
        assert hasattr(CkptcostApp, f"action_{command.action.partition('(')[0]}"), command.id
