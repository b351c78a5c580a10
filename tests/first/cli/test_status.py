"""The status line: only on a terminal, rewritten in place, never in the way of a line that
stays."""

from __future__ import annotations

import io
import os
from math import nan
from types import SimpleNamespace

import pytest

from ckptcost.first.cli import status as module
from ckptcost.first.cli.status import EVERY_S, StatusLine
from ckptcost.first.jobs.progress import KnownSave

ERASE = "\r\x1b[K"


class Terminal(io.StringIO):
    def __init__(self, terminal=True):
        super().__init__()
        self.terminal, self.flushed = terminal, 0

    def isatty(self):
        return self.terminal

    def flush(self):
        self.flushed += 1


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(at=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now.at))
    monkeypatch.setattr(module.shutil, "get_terminal_size", lambda: os.terminal_size((20, 5)))
    return now


class Followed:
    """An observer, as far as it is looked at."""

    def __init__(self, saves=2, bytes_=3e9, open_=("step_4",), lost=()):
        self.progress = SimpleNamespace(saves=saves, bytes=bytes_, open=open_)
        self.recorder = SimpleNamespace(latest=lambda: SimpleNamespace(lost=lost))


@pytest.mark.parametrize(
    ("stream", "quiet"), [(Terminal(), True), (Terminal(False), False), (None, False)]
)
def test_silent_where_nobody_looks(stream, quiet, clock):
    status = StatusLine(stream, quiet)
    clock.at += 10.0
    status.show("x")
    status.tick(Followed())
    status.save(KnownSave("a", 1.0, 1.0, 1.0, ""))
    status.line("x")
    status.clear()
    assert stream is None or stream.getvalue() == ""


def test_it_fits_the_terminal_and_is_erased_once(clock):
    terminal = Terminal()
    status = StatusLine(terminal)
    status.show("0123456789" * 3)
    assert terminal.getvalue() == f"{ERASE}0123456789012345678"
    assert terminal.flushed == 1
    status.clear()
    status.clear()
    assert terminal.getvalue() == f"{ERASE}0123456789012345678{ERASE}"


def test_clear_of_nothing_writes_nothing(clock):
    terminal = Terminal()
    StatusLine(terminal).clear()
    assert terminal.getvalue() == ""


def test_a_line_that_stays_takes_the_status_away_first(clock):
    terminal = Terminal()
    status = StatusLine(terminal)
    status.show("going on")
    status.save(KnownSave("step_1", 2e9, 1.0, nan, ""))
    status.line("more")
    assert (
        terminal.getvalue()
        == f"{ERASE}going on{ERASE}ckptcost: step_1: 2 GB, written in 1 s, not known when it was"
        " safe\nckptcost: more\n"
    )


def test_twice_a_second_and_no_oftener(clock):
    terminal = Terminal()
    status = StatusLine(terminal)
    status.tick(Followed())
    assert terminal.getvalue() == ""
    clock.at += EVERY_S
    status.tick(Followed())
    first = terminal.getvalue()
    assert first == f"{ERASE}0.5 s, 2 checkpoint"
    clock.at += EVERY_S * 0.9
    status.tick(Followed())
    assert terminal.getvalue() == first
    clock.at += EVERY_S * 0.2
    status.tick(Followed())
    assert terminal.getvalue() == f"{first}{ERASE}1.05 s, 2 checkpoin"


def test_everything_that_is_known_is_in_it(clock, monkeypatch):
    monkeypatch.setattr(module.shutil, "get_terminal_size", lambda: os.terminal_size((200, 5)))
    terminal = Terminal()
    status = StatusLine(terminal)
    clock.at += 60.0
    status.tick(Followed(lost=("nvml",)))
    assert terminal.getvalue() == f"{ERASE}60 s, 2 checkpoints, 3 GB; saving step_4; lost: nvml"


def test_how_far_something_is_once_it_takes_a_while(clock, monkeypatch):
    monkeypatch.setattr(module.shutil, "get_terminal_size", lambda: os.terminal_size((80, 5)))
    terminal = Terminal()
    status = StatusLine(terminal)
    clock.at += 0.9
    status.share("reading the run", 0.2)
    assert terminal.getvalue() == "", "what is over in a second says nothing"
    clock.at += 0.1
    status.share("reading the run", 0.254)
    told = f"{ERASE}ckptcost: reading the run, 25%"
    assert terminal.getvalue() == told
    clock.at += 0.9 * EVERY_S
    status.share("reading the run", 0.3)
    assert terminal.getvalue() == told
    clock.at += 0.1 * EVERY_S
    status.share("reading the run", 1.0)
    assert terminal.getvalue() == f"{told}{ERASE}ckptcost: reading the run, 100%"


def test_how_far_something_is_goes_into_no_pipe(clock):
    pipe = Terminal(False)
    status = StatusLine(pipe)
    clock.at += 10.0
    status.share("reading the run", 0.5)
    assert pipe.getvalue() == ""
