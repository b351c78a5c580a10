"""The way to the first frame: nothing is read, styled or drawn twice on it, and what it borrows is
given back."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from screening import settled
from textual._compositor import Compositor
from textual._context import active_app
from textual.css.stylesheet import Stylesheet

from ckptcost.first.cli import screen_
from ckptcost.first.cli.main import parser_for
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.screens import model_view as model
from ckptcost.first.tui.screens.model import ModelScreen


@pytest.fixture
def counted(monkeypatch):
    """How often each thing was done, by name; drawing, by whether the application held updates
    back."""
    found: Counter[str] = Counter()

    def count(of, name, when=lambda: ""):
        real = getattr(of, name)

        def counting(*args, **more):
            found[name + when()] += 1
            return real(*args, **more)

        monkeypatch.setattr(of, name, counting)

    count(Compositor, "render_update", lambda: " in vain" if active_app.get()._batch_count else "")
    count(Stylesheet, "reparse")
    count(model, "evaluate")
    return found


def opened(app, size=(120, 36)):
    """The application as it is once the first frame is there."""

    async def go():
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            return app.screen, set(app.screen.classes)

    return asyncio.run(go())


def test_the_first_frame_is_computed_once_and_nothing_is_drawn_before_it(counted):
    opened(CkptcostApp())
    assert counted["evaluate"] == 1
    assert counted["reparse"] == 0, "style sheets are read once, when the widgets come"
    assert counted["render_update"] > 0
    assert counted["render_update in vain"] == 0, (
        "what is drawn while the application starts is thrown away"
    )


def test_a_new_screen_does_not_have_all_style_sheets_read_anew(counted):
    app = CkptcostApp()

    async def go():
        async with app.run_test(size=(120, 36)) as pilot:
            await settled(pilot)
            await pilot.press("2")
            await settled(pilot)
            before = counted["reparse"]
            app.theme = "ckptcost-light"
            await settled(pilot)
            return before, counted["reparse"]

    before, after = asyncio.run(go())
    assert before == 0
    assert after > 0, "another theme has other colours: there they are"


@pytest.mark.parametrize("size", [(80, 24), (99, 29), (100, 30), (120, 36), (200, 50)])
def test_a_screen_comes_with_the_classes_of_its_size(size, monkeypatch):
    """Those that came later would have every widget styled again."""
    seen = []
    monkeypatch.setattr(
        ModelScreen,
        "body",
        lambda self, real=ModelScreen.body: (seen.append(set(self.classes)), real(self))[1],
    )
    _, classes = opened(CkptcostApp(), size)
    of_size = {"-narrow", "-wide", "-short", "-tall"}
    assert seen[0] & of_size == classes & of_size
    assert len(classes & of_size) == 2


def test_the_collector_is_taken_up_after_the_frame():
    gc.disable()
    try:
        opened(CkptcostApp())
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.enable()


def test_the_collector_of_others_is_left_as_it_is():
    opened(CkptcostApp())
    assert gc.get_freeze_count() == 0


def options_of(*words):
    parser = parser_for("screen")
    options = parser.parse_args(list(words))
    options.words = ["screen", *words]
    return options


def test_what_the_start_borrows_is_given_back(monkeypatch):
    found = {}

    def run(app):
        found.update(collecting=gc.isenabled(), told="OPENBLAS_NUM_THREADS" in os.environ)

    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setattr(CkptcostApp, "run", run)
    assert screen_.run(options_of("--fresh")) == 0
    assert found == {"collecting": False, "told": False}, "what the screen starts may use all cores"
    assert gc.isenabled()


def test_a_server_collects(monkeypatch):
    serving = pytest.importorskip("ckptcost.first.tui.serving")
    found = []
    monkeypatch.setattr(serving, "serve", lambda words, port: found.append(gc.isenabled()))
    assert screen_.run(options_of("--fresh", "--serve")) == 0
    assert found == [True]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads in /proc")
def test_numpy_starts_no_threads_beside_the_screen():
    code = (
        "from ckptcost.first.cli import screen_; import os; screen_._numpy_alone();"
        " print(len(os.listdir('/proc/self/task')))"
    )
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENBLAS", "OMP", "MKL"))
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "1\n"
