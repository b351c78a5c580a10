"""Storage tiers side by side: what a run on each loses and costs, the front, one save in bars, and
the tier under the cursor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.first.present.chart import Bars, Chart
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.tui.about_field import tier_entries
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.picker import Ticks
from ckptcost.first.tui.screens import tiers_view as tiers
from ckptcost.first.tui.screens.base import Stopped
from ckptcost.first.tui.screens.by_objective import ByObjectiveScreen
from ckptcost.first.tui.widgets.bars import BarRows
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.plot import Plot
from ckptcost.first.tui.widgets.rows import Rows


class TiersScreen(ByObjectiveScreen[tiers.Weighed]):
    """Everything is weighed once for each objective, in the background; what is seen of it is made
    from that at once."""

    MODE = "tiers"
    TITLE_TEXT = "Tiers"
    ABOUT = (
        "Storage tiers for the same job, side by side. A run on each is judged at that tier's own"
        " best interval (o: at the interval in force, or one save alone): goodput is the share of"
        " time that goes into training, the amounts are what checkpoints and failures add. of base"
        " is the share of what the baseline (b) takes, of the amount that the title names; over"
        " best is beside the best tier; best less in is the share of draws from the inputs' ranges"
        " in which the best takes less. kgCO2e are location-based; rate is that of the narrowest"
        " place between GPU memory and the medium. In the picture down and to the left is better,"
        " and a filled diamond is a tier that no other beats in time, energy, money and carbon at"
        " once. A tier without figures stays in the list, and says why below."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "tiers.choose",
            "enter",
            "interval",
            "Take this tier to the interval screen",
            "choose",
            1,
        ),
        Command("tiers.add", "t", "tiers", "Choose the tiers side by side", "tiers", 2),
        Command(
            "tiers.shown",
            "o",
            "run/save",
            "The run at each tier's best interval, at the interval in force, or one save",
            "shown",
            3,
        ),
        Command(
            "tiers.objective",
            "m",
            "measure",
            "Judge by time, energy, money or carbon",
            "objective",
            4,
        ),
        Command("tiers.baseline", "b", "base", "Hold the others against this tier", "baseline", 5),
        Command("tiers.claims", "v", "claims", "What vendors claim, beside the model", "claims", 6),
        Command("tiers.sort", "s", "sort", "Sort by the next column", "sort", 7),
        Command("tiers.remove", "x", "remove", "Take this tier out of the list", "remove", 8),
        Command("tiers.picture", "p", "picture", "The front, or one save in bars", "picture", 9),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    AUTO_FOCUS = "#tiers"
    DEFAULT_CSS = """
    TiersScreen #tiers { height: auto; max-height: 45%; min-height: 4; }
    TiersScreen #below { height: 1fr; }
    TiersScreen #pictures, TiersScreen #details { width: 1fr; height: 1fr; }
    TiersScreen.-short #details { padding-left: 1; }
    TiersScreen #saves { height: auto; max-height: 40%; }
    TiersScreen.-short #saves, TiersScreen.-bars #front, TiersScreen #claims { display: none; }
    TiersScreen.-bars #saves { display: block; height: 1fr; max-height: 100%; }
    TiersScreen.-claims #claims { display: block; }
    TiersScreen.-claims #front, TiersScreen.-claims #saves { display: none; }
    TiersScreen.-claims #pictures { width: 2fr; }
    TiersScreen #verdict { height: auto; max-height: 2; padding: 0 1; }
    TiersScreen #verdict.-best { color: $text-success; }
    TiersScreen #verdict.-warn { color: $text-warning; }
    TiersScreen #verdict.-bad { color: $text-error; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tiers.Shown = "best"

    def body(self) -> Iterable[Widget]:
        yield Rows(id="tiers", classes="panel")
        with Horizontal(id="below"):
            with Vertical(id="pictures"):
                yield Plot(id="front", classes="panel")
                yield BarRows(id="saves", classes="panel")
                yield Rows(id="claims", classes="panel")
            yield Note(id="details", classes="panel")
        yield Static(id="verdict")

    def find(self, desk: Desk, objective: str, stopped: Stopped) -> tiers.Weighed:
        """Some milliseconds a tier."""
        return tiers.weighed(desk, objective, stopped)

    def command_line(self) -> str:
        weighed = self.found
        return (
            tiers.command(weighed, self._shown)
            if weighed is not None
            else self.desk.command("optimize", "--objective", self.objective)
        )

    def table(self) -> Grid | None:
        claims = self.query_one("#claims", Rows)
        return claims.grid if claims.has_focus else self.query_one("#tiers", Rows).grid

    def exported(self) -> Any:
        return tiers.exported(self.found, self._shown) if self.found is not None else None

    def refused(self, text: str) -> None:
        self.show_in("tiers", Grid(title="Storage tiers", empty=text))
        self.show_in("front", Chart(empty="nothing to show"))
        self.show_in("saves", Bars(empty="nothing to show"))
        self.show_in("claims", Grid())
        told: tuple[str, Tone] = (text, "bad")
        self.query_one("#details", Note).show((told,))
        self._say_verdict(
            "The scenario cannot be computed; 1 goes back to its inputs, ^o opens another.", "bad"
        )

    def draw(self) -> None:
        weighed, desk = self.found, self.desk
        if weighed is None:
            return
        self.show_in("tiers", tiers.grid(weighed, desk, self._shown))
        self._draw_cursor()
        self.show_in("saves", tiers.save_bars(weighed, desk))
        self.show_in("claims", tiers.claims(weighed))
        self._say_verdict(*tiers.sentence(weighed, self._shown))

    def _draw_cursor(self) -> None:
        """What follows the cursor: the details, and whose name stands in the picture."""
        weighed = self.found
        if weighed is None:
            return
        key = self.query_one("#tiers", Rows).key
        chart = tiers.front_chart(weighed, self.desk, key)
        note = f"at each tier's best for {self.objective}"
        self.show_in("front", chart._replace(note=note, y_label=""))
        details = self.query_one("#details", Note)
        details.show(tiers.details(weighed, self.desk, key, self._shown))
        details.border_title = Content(tiers.short(key, 40))

    def _say_verdict(self, text: str, tone: str) -> None:
        verdict = self.query_one("#verdict", Static)
        verdict.set_classes(f"-{tone}" if tone else "")
        verdict.update(Content(text))

    # what can be done

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows.id == "tiers":
            self._draw_cursor()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows.id == "tiers":
            self.action_choose()

    def _key(self) -> str:
        return self.query_one("#tiers", Rows).key if self.found is not None else ""

    def action_choose(self) -> None:
        if key := self._key():
            self.change(self.desk.on_tier(key))
            self.app.action_go("interval")  # type: ignore[attr-defined]

    def action_tiers(self) -> None:
        if self.found is not None:
            ticked = [run.key for run in self.found.runs]
            self.app.push_screen(
                Ticks("Tiers side by side", tier_entries(self.desk), ticked, self._key()),
                self._take,
            )

    def _take(self, keys: tuple[str, ...] | None) -> None:
        if keys is not None:
            self.change(self.desk.with_tiers(keys))
            self.say("" if keys else "At least one tier stays.", "" if keys else "warn")

    def action_remove(self) -> None:
        weighed = self.found
        if weighed is not None and len(weighed.runs) > 1:
            self.change(self.desk.without_tier(self._key()))
        elif weighed is not None:
            self.say("The last tier stays; t chooses others.", "warn")

    def action_baseline(self) -> None:
        if key := self._key():
            self.change(replace(self.desk, baseline=key))

    def action_shown(self) -> None:
        self._shown = tiers.next_of(self._shown)
        self.draw()

    def action_claims(self) -> None:
        self.toggle_class("-claims")

    def action_picture(self) -> None:
        self.remove_class("-claims")
        self.toggle_class("-bars")

    def action_sort(self) -> None:
        self.query_one("#tiers", Rows).sort_next()
