"""The widgets that draw, all on one screen: at both sizes, without colours, in letters, under each
theme."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pytest
from screening import screen_text, settled, styles_of
from textual.containers import Horizontal, Vertical
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from ckptcost.first.present.amounts import number, share
from ckptcost.first.present.chart import (
    Band,
    Bar,
    Bars,
    Chart,
    ChartPart,
    Curve,
    Dot,
    Rule,
    Stat,
    Traces,
)
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.draw.canvas import Line, Look
from ckptcost.first.tui.screens.base import ModeScreen
from ckptcost.first.tui.widgets.bars import BarRows
from ckptcost.first.tui.widgets.drawn import Drawn
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.plot import Plot
from ckptcost.first.tui.widgets.stats import Stats
from ckptcost.first.tui.widgets.traces import TraceStack

NAN = math.nan
SIZES = [(80, 24), (120, 36)]


def goodput(write_s: float) -> tuple[list[float], list[float]]:
    xs = [10 * 10 ** (4 * i / 300) for i in range(301)]
    return xs, [t / (t + write_s) * max(1 - (t / 2 + 600) / 187_200, 0.0) for t in xs]


def interval_chart() -> Chart:
    tiers = (
        ("NAS", 10_000.0, "muted"),
        ("Parallel FS", 1000.0, "base"),
        ("Flash", 100.0, ""),
        ("Local", 3.1, "best"),
    )
    curves = [Curve(name, *goodput(write_s), tone=tone) for name, write_s, tone in tiers]  # type: ignore[arg-type]
    return Chart(
        curves=curves,
        rules=[Rule(3600.0, "now", "now"), Rule(6000.0, "100 min", "best")],
        bands=[Band(4080.0, 8880.0, kind="plateau")],
        x_range=(10.0, 1e5),
        y_range=(0.4, 1.0),
        x_log=True,
        y_text=share,
        x_label="interval",
    )


def pareto_chart() -> Chart:
    dots = [
        Dot(10_000.0, 7220.0, "NAS"),
        Dot(1000.0, 722.0, "Parallel FS", "base"),
        Dot(100.0, 72.2, "Flash"),
        Dot(3.1, 2.26, "Local", "best"),
    ]
    return Chart(
        "Time and money",
        dots=dots,
        x_log=True,
        y_log=True,
        x_label="of one checkpoint",
        y_label="USD",
        y_text=number,
    )


def power(
    training: float, saving: float, noise: float, missing: bool = False
) -> tuple[list[float], list[float]]:
    """A square wave with a fixed ripple; a stretch where the meter was silent."""
    xs = [-180 + i / 5 for i in range(901)]
    ys = [
        (saving if (x + 180) % 45 < 10 else training) + noise * math.sin(i * 12.9898)
        for i, x in enumerate(xs)
    ]
    if missing:
        ys[300:330] = [NAN] * 30
    return xs, ys


def traces() -> Traces:
    gpu = Chart(
        "GPU power, W",
        [Curve("", *power(5200.0, 2130.0, 60.0, missing=True))],
        y_range=(0.0, NAN),
        note="now 5,204",
    )
    host = Chart(
        "Host power, W",
        [Curve("CPU", *power(266.0, 349.0, 4.0)), Curve("DRAM", *power(60.0, 66.0, 2.0))],
        note="now 326",
    )
    disk = Chart(
        "Storage write, GB/s",
        [Curve("", *power(0.1, 16.0, 0.1))],
        y_range=(0.0, NAN),
        note="peak 16.1",
    )
    silent = Chart("Network, GB/s", empty="no meter answers", note="-")
    return Traces(
        [gpu, host, disk, silent],
        (-180.0, 0.0),
        [Band(-180.0 + 45 * i, -170.0 + 45 * i) for i in range(4)],
    )


def energy_bars() -> Bars:
    names = ("GPU stall", "host", "storage", "cooling")

    def parts(*values: float) -> list[ChartPart]:
        ends = [sum(values[: i + 1]) for i in range(len(values))]
        return [
            ChartPart(name, end - value, end)
            for name, value, end in zip(names, values, ends, strict=True)
        ]

    return Bars(
        [
            Bar("NAS", parts(0.58, 0.15, 0.07, 0.2), "1,190 kWh"),
            Bar("Parallel FS", parts(0.58, 0.15, 0.1, 0.17), "120 kWh"),
            Bar("Local", parts(0.6, 0.16, 0.02, 0.22), "0.372 kWh", tone="best"),
        ],
        names,
    )


STATS = [
    Stat("ENERGY", "0.0264 kWh", "GPU 22.7 host 3.7 Wh"),
    Stat("COST", "0.216 USD", "2.50 USD/GPU-h"),
    Stat("CO2e", "9.7 g", "369 g/kWh"),
    Stat("IN CHECKPOINTS", "21.3 %", "38.4 of 180 s", "warn"),
]


class PicturesScreen(ModeScreen):
    MODE = "model"
    DEFAULT_CSS = """
    PicturesScreen #pair { height: 1fr; }
    PicturesScreen #traces { height: 2fr; }
    PicturesScreen #note { height: 3; }
    """

    def body(self) -> Iterable[Widget]:
        yield Stats(id="stats")
        with Horizontal(id="pair"):
            yield Plot(id="interval")
            with Vertical():
                yield Plot(id="pareto")
                yield BarRows(id="bars")
        yield TraceStack(id="traces")
        yield Note(id="note")

    def shown(self) -> None:
        self.query_one("#stats", Stats).show(STATS)
        self.query_one("#interval", Plot).show(interval_chart())
        self.query_one("#pareto", Plot).show(pareto_chart())
        self.query_one("#bars", BarRows).show(energy_bars())
        self.query_one("#traces", TraceStack).show(traces())
        self.query_one("#note", Note).show(
            [("One checkpoint is 2 TB.", ""), ("One save only.", "warn"), ("No meter.", "bad")],
            "Notes",
        )


class PicturesApp(CkptcostApp):
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {"model": PicturesScreen}


def text_of(widget: Widget) -> str:
    """What a widget has drawn."""
    return "\n".join(widget.render_line(row).text for row in range(widget.size.height))


def unstyled(app: CkptcostApp) -> int:
    """Segments that NO_COLOR would stumble over."""
    lines = [
        widget.render_line(row)
        for widget in app.screen.query(Drawn)
        for row in range(widget.size.height)
    ]
    return sum(
        segment.style is None or segment.style.color is None for line in lines for segment in line
    )


@pytest.mark.parametrize("size", SIZES)
def test_all_pictures_on_one_screen(drive: Any, snapshot: Any, size: tuple[int, int]):
    app = PicturesApp()

    async def script(pilot: Pilot[None]) -> None:
        snapshot(app, f"pictures_{size[0]}x{size[1]}_normal")
        assert unstyled(app) == 0

    drive(app, script, size)


@pytest.mark.parametrize("size", SIZES)
def test_in_letters(drive: Any, snapshot: Any, size: tuple[int, int]):
    app = PicturesApp(plain=True)

    async def script(pilot: Pilot[None]) -> None:
        snapshot(app, f"pictures_{size[0]}x{size[1]}_plain")
        assert all(text_of(widget).isascii() for widget in app.screen.query(Drawn))

    drive(app, script, size)


def test_before_there_are_data(drive: Any, snapshot: Any):
    app = PicturesApp()

    async def script(pilot: Pilot[None]) -> None:
        app.screen.query_one("#stats", Stats).show([])
        app.screen.query_one("#interval", Plot).show(Chart(empty="no tier can be computed"))
        app.screen.query_one("#pareto", Plot).show(Chart())
        app.screen.query_one("#bars", BarRows).show(Bars(empty="nothing to compare"))
        app.screen.query_one("#traces", TraceStack).show(
            Traces([Chart("GPU power, W", empty="no GPU is visible")], (-180.0, 0.0))
        )
        app.screen.query_one("#note", Note).show([])
        await pilot.pause()
        snapshot(app, "pictures_80x24_empty")

    drive(app, script, (80, 24))


@pytest.mark.parametrize("plain", [False, True])
def test_without_colours(drive: Any, monkeypatch: pytest.MonkeyPatch, plain: bool):
    """An unstyled segment would end the program here; what is tinted elsewhere is dotted."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = PicturesApp(plain=plain)

    async def script(pilot: Pilot[None]) -> None:
        assert app.no_color
        shown = text_of(app.screen.query_one("#traces", TraceStack))
        assert (":::::" if plain else "\u2591" * 5) in shown

    drive(app, script)


def test_colours_follow_the_theme(drive: Any):
    app = PicturesApp()

    async def script(pilot: Pilot[None]) -> None:
        seen = []
        for theme in (
            "ckptcost-dark",
            "ckptcost-light",
            "ckptcost-contrast",
            "textual-ansi",
            "nord",
        ):
            if theme in app.available_themes:
                app.theme = theme
                await pilot.pause()
                seen.append((styles_of(app, "CPU"), styles_of(app, "Local")))
                assert unstyled(app) == 0
        assert len({str(each) for each in seen}) == len(seen) >= 4

    drive(app, script)


def test_a_click_says_where_on_the_axis_it_was(drive: Any):
    picked: list[float] = []

    class Listening(PicturesScreen):
        def on_plot_picked(self, event: Plot.Picked) -> None:
            picked.append(event.x)
            assert event.control.id == "interval"

    class App(PicturesApp):
        MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {"model": Listening}

    app = App()

    async def script(pilot: Pilot[None]) -> None:
        plot = app.screen.query_one("#interval", Plot)
        rule = next(
            line.index("\u2502", 6) for line in text_of(plot).split("\n") if "now \u2502" in line
        )
        await pilot.click("#interval", offset=(rule, 3))
        await pilot.click("#interval", offset=(2, 3))  # the labels of the axis are no place on it
        await pilot.pause()

    drive(app, script)
    assert picked == [pytest.approx(3600.0, rel=0.12)]


def test_the_wheel_asks_for_another_window(drive: Any):
    zoomed: list[int] = []

    class Listening(PicturesScreen):
        def on_trace_stack_zoomed(self, event: TraceStack.Zoomed) -> None:
            zoomed.append(event.steps)

    class App(PicturesApp):
        MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {"model": Listening}

    async def script(pilot: Pilot[None]) -> None:
        stack = pilot.app.screen.query_one("#traces", TraceStack)
        where = {
            "widget": stack,
            "x": 5,
            "y": 5,
            "delta_x": 0,
            "delta_y": 0,
            "button": 0,
            "shift": False,
            "meta": False,
            "ctrl": False,
        }
        stack.post_message(MouseScrollUp(**where))
        stack.post_message(MouseScrollDown(**where))
        await pilot.pause()

    drive(App(), script)
    assert zoomed == [1, -1]


def test_nothing_is_drawn_twice(drive: Any, monkeypatch: pytest.MonkeyPatch):
    drawn: list[str] = []
    before = TraceStack.drawing

    def counted(self: TraceStack, width: int, height: int, look: Look) -> list[Line]:
        drawn.append("traces")
        return before(self, width, height, look)

    monkeypatch.setattr(TraceStack, "drawing", counted)

    async def script(pilot: Pilot[None]) -> None:
        stack = pilot.app.screen.query_one("#traces", TraceStack)
        drawn.clear()
        stack.show(stack.traces)
        stack.refresh()
        await pilot.pause()
        assert drawn == [], "the same data, size and theme"
        stack.show(traces())
        await pilot.pause()
        assert drawn == ["traces"]

    drive(PicturesApp(), script)


def test_heights_follow_what_is_shown(drive: Any):
    async def script(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        bars, stats = screen.query_one("#bars", BarRows), screen.query_one("#stats", Stats)
        assert (bars.size.height, stats.size.height) == (4, 3)
        bars.show(energy_bars()._replace(names=()))
        stats.show([stat._replace(note="") for stat in STATS])
        await settled(pilot)
        assert (bars.size.height, stats.size.height) == (3, 2)
        await pilot.resize_terminal(120, 24)
        await settled(pilot)
        assert stats.size.height == 1, "on a short screen"

    drive(PicturesApp(), script)


def test_a_note_is_replaced_and_wrapped(drive: Any):
    async def script(pilot: Pilot[None]) -> None:
        note = pilot.app.screen.query_one("#note", Note)
        assert note.lines == ("One checkpoint is 2 TB.", "One save only.", "No meter.")
        note.show(["word " * 40])
        await pilot.pause()
        assert note.virtual_size.height > 1
        assert "Notes" not in screen_text(pilot.app)  # type: ignore[arg-type]

    drive(PicturesApp(), script)
