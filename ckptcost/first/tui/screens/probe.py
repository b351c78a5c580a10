"""A checkpoint written for real: what it will write before anything is written, how it goes, and
what was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.tui.clipboard import copy
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.modals.picker import Picker
from ckptcost.first.tui.screens import probe_plan, probe_run
from ckptcost.first.tui.screens.base import ModeScreen, panel
from ckptcost.first.tui.screens.probe_plan import ProbePlan, Spot
from ckptcost.first.tui.screens.probe_run import Ended, Running
from ckptcost.first.tui.widgets.bars import BarRows
from ckptcost.first.tui.widgets.form import Form
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.plot import Plot
from ckptcost.first.tui.widgets.rows import Rows

DRAWN_S = 0.5
GIVE_UP_S = 2.0
State = Literal["form", "running", "result"]
PICTURES = ("passes", "tiers", "chart")
"""a tall screen has room for the passes and one of the others, a short one for one of the three"""


class ProbeScreen(ModeScreen):
    """One probe at a time. It goes on while another screen is looked at."""

    MODE = "probe"
    ABOUT = (
        "Writes a checkpoint into a folder of its own on the storage you name, as often as you say,"
        " reads it back, and takes everything away again: at the end, when it is stopped, when the"
        " disk is full, and even when this program is killed. A rate is all bytes over all seconds"
        " from begin to the end of fsync; what only reached memory does not count as written. p99"
        " is of single requests. Rounds of a quarter of the size tell the time that no size"
        " shortens from the rate. Beside it stand the catalogue's tiers, and what the scenario's"
        " checkpoint would take if every node had a place like this."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "probe.start",
            "ctrl+r",
            "start",
            "Start to write; asks first where it is much",
            "start",
            1,
        ),
        Command(
            "probe.begin",
            "enter",
            "start",
            "Start, while the form is shown and no field has the focus",
            "begin",
        ),
        Command(
            "probe.stop",
            "x,escape",
            "stop and clean up",
            "Stop the probe and remove its files, or leave a field",
            "stop",
            2,
        ),
        Command("probe.plan", "n", "plan", "What it would write, and nothing more", "plan", 3),
        Command(
            "probe.edit", "e", "edit", "Go to the fields, or back to what was found", "edit", 4
        ),
        Command("probe.keep", "w", "keep", "Keep the run among your runs", "keep", 5),
        Command(
            "probe.calibrate",
            "c",
            "calibrate",
            "Keep the run and make a tier of it",
            "calibrate",
            6,
        ),
        Command(
            "probe.picture",
            "g",
            "next picture",
            "The tiers beside it, the curve of rates, every pass",
            "picture",
            7,
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    ProbeScreen #left { width: 50; height: 1fr; }
    ProbeScreen #form { height: auto; max-height: 60%; }
    ProbeScreen #plan { height: 1fr; border-top: solid $panel-lighten-2; }
    ProbeScreen #right { width: 1fr; height: 1fr; }
    ProbeScreen #right > * { display: none; }
    ProbeScreen.-form #tiers, ProbeScreen.-running #chart, ProbeScreen.-running #passes,
    ProbeScreen.-result #words, ProbeScreen.-result.-passes #passes,
    ProbeScreen.-result.-tiers #tiers, ProbeScreen.-result.-chart #chart,
    ProbeScreen.-tall.-result #passes {
        display: block;
    }
    ProbeScreen.-result #rates { display: block; height: auto; max-height: 7; }
    ProbeScreen.-result #passes, ProbeScreen.-result #tiers { height: auto; max-height: 12; }
    ProbeScreen.-result #chart { height: 12; }
    ProbeScreen.-short.-result #chart { height: 9; }
    ProbeScreen.-short.-result #passes, ProbeScreen.-short.-result #tiers { max-height: 10; }
    ProbeScreen.-narrow #left { width: 1fr; }
    ProbeScreen.-narrow.-form #right, ProbeScreen.-narrow.-running #left,
    ProbeScreen.-narrow.-result #left {
        display: none;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._draft = probe_plan.fresh()
        self._spot: Spot | None = None
        self._asking = probe_plan.Asking([])
        self._known: dict[tuple[str, str], float] = {}
        """by folder and writer, the rate that was found there"""
        self._under_way: Running | None = None
        self._stopping = False
        self._ended: Ended | None = None
        self._kept = ""
        """where the run is kept, as a line; empty while it is not"""
        self._state: State = "form"
        self._turned = 0
        self._timer: Timer | None = None

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="all"):
            with panel(Vertical(id="left"), "Probe"):
                yield Form(id="form")
                yield Note(id="plan")
            with Vertical(id="right"):
                yield panel(Rows(id="rates"))
                yield panel(Plot(id="chart"))
                yield panel(Rows(id="passes"))
                yield panel(BarRows(id="tiers"))
                yield panel(Note(id="words"), "What follows")

    def on_mount(self) -> None:
        self._timer = self.set_interval(DRAWN_S, self._draw, pause=True)
        super().on_mount()
        self._turn("form")
        self._look()

    # what the frame asks

    def on_desk(self) -> None:
        self._ask()
        if self.exported() is None:
            self.show_in("tiers", probe_run.known_tiers(self.desk))
        else:
            self._follow()

    def shown(self) -> None:
        if self._under_way is not None and self._timer is not None:
            self._timer.resume()
            self._draw()

    def hidden(self) -> None:
        if self._timer is not None:
            self._timer.pause()

    def command_line(self) -> str:
        return probe_plan.command(self._draft, self.desk, self.host.meters)

    def table(self) -> Grid | None:
        return self.query_one("#passes", Rows).grid

    def exported(self) -> Any:
        return None if self._ended is None else self._ended.study

    def busy(self) -> str:
        if self._under_way is not None:
            return (
                f"A probe is writing into {self._under_way.plan.asked.directory}: it is stopped and"
                " its files are removed."
            )
        return self._unkept

    def give_up(self) -> None:
        if self._under_way is not None:
            self._under_way.stop(GIVE_UP_S)
        self._forget()

    def on_unmount(self) -> None:
        self.give_up()

    @property
    def _unkept(self) -> str:
        """What would be lost; empty where nothing would."""
        lost = self.exported() is not None and not self._kept
        return "What the last probe found is not kept (w keeps it)." if lost else ""

    def _forget(self) -> None:
        if self._ended is not None and self._unkept:
            probe_run.forget(self._ended)

    @property
    def _form(self) -> Form:
        return self.query_one("#form", Form)

    # what is asked for

    def _ask(self) -> None:
        """The form and its plan as the texts stand."""
        known = self._known.get((self._directory, self._draft.writer.strip()))
        self._asking = probe_plan.asking(
            self._draft, self.desk, self._spot, self.host.meters, known
        )
        self._form.show(probe_plan.fields(self._draft, self.desk))
        self.query_one("#plan", Note).show(self._asking.lines)

    @property
    def _directory(self) -> str:
        """Empty where none is named."""
        try:
            return probe_plan.directory_of(self._draft)
        except CkptcostError:
            return ""

    def _look(self) -> None:
        """A folder on a server that does not answer may take long to look at."""
        if directory := self._directory:
            self.background("place", lambda stopped: probe_plan.look(directory), self._looked)

    def _looked(self, spot: Spot) -> None:
        self._spot = spot
        self._ask()

    def on_form_edited(self, event: Form.Edited) -> None:
        event.stop()
        if getattr(self._draft, event.path) != event.text:
            self._edited(event.path, event.text)

    def _edited(self, path: str, text: str) -> None:
        self._draft = self._draft.edited(path, text)
        self._ask()
        if path == "directory":
            self._look()

    def on_form_pick(self, event: Form.Pick) -> None:
        event.stop()
        path, rows = event.path, probe_plan.choices(event.path, self.desk)

        def chosen(key: str | None) -> None:
            if key is not None:
                self._form.forget(path)
                self._edited(path, key)

        self.app.push_screen(Picker(rows.title, rows, getattr(self._draft, path)), chosen)

    def action_start(self) -> None:
        plan = self._asking.ready
        if plan is None:
            self._turn("form")
            self.say(f"Nothing was written. {self._asking.why_not}", "bad")
            return
        title = "Write that much?" if plan.question else "Start another?"
        if text := "\n".join(text for text in (plan.question, self._unkept) if text):
            self.app.push_screen(
                Confirm(title, text, "start"), lambda yes: self._start(plan) if yes else None
            )
        else:
            self._start(plan)

    def action_begin(self) -> None:
        self.action_start()

    def _start(self, plan: ProbePlan) -> None:
        self._forget()
        self._ended, self._kept, self._stopping = None, "", False
        self._under_way = Running(plan, self.host.meters)
        self.show_in("tiers", probe_run.known_tiers(self.desk))
        self._turn("running")
        self.query_one("#passes").focus()
        self._draw()
        if self._timer is not None:
            self._timer.resume()
        self.background("probe", self._under_way.work, self._over, self._failed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What does not apply is not in the bottom line; Escape then does as elsewhere."""
        match action:
            case "stop":
                return self._under_way is not None
            case "begin":
                return self._under_way is None and self._state == "form"
            case "start" | "plan" | "edit":
                return self._under_way is None
            case "keep" | "calibrate":
                return self.exported() is not None
            case "picture":
                return self._state == "result"
        return True

    def action_stop(self) -> None:
        """Escape leaves a field first."""
        if isinstance(self.focused, Input):
            self.set_focus(None)
        elif self._under_way is not None:
            self._stopping = True
            self._under_way.stop()
            self._draw()

    def action_plan(self) -> None:
        self._turn("form")
        self.say(self._asking.why_not or "Nothing is written by this: it is the plan.")

    def action_edit(self) -> None:
        narrow, found = self.has_class("-narrow"), self.exported() is not None
        if narrow and found and self._state == "form":
            self._turn("result")
        else:
            self._turn("result" if found and not narrow else "form")
            self._form.enter()

    def action_picture(self) -> None:
        self._turn(self._state, 1)

    def action_keep(self) -> None:
        self._keep()

    def action_calibrate(self) -> None:
        ended = self._keep()
        if ended is not None and not self.hand_over("calibrate", [str(ended.folder)]):
            copy(self.app, ended.calibrating, "the command that makes a tier of it")

    def _keep(self) -> Ended | None:
        """With its run's folder, kept now or before; None where that cannot be done."""
        if self._ended is None:
            return None
        if not self._kept:
            try:
                self._ended = self._ended._replace(folder=probe_run.keep(self._ended))
            except CkptcostError as error:
                self.say(str(error), "bad")
                return None
            where = f"{self._ended.run}, {self._ended.folder}"
            self._kept = f"Kept as run {where}; the screen Runs lists it."
            self._follow()
        self.say(self._kept, "good")
        return self._ended

    # what comes of it

    def _turn(self, state: State, by: int = 0) -> None:
        """Which panels are seen; a narrow screen has room for the form or for what comes of it."""
        self._state = state
        for name in ("form", "running", "result"):
            self.set_class(name == state, f"-{name}")
        self._turned += by
        pictures = PICTURES[self.has_class("-tall") :]  # there the passes are seen anyway
        for name in PICTURES:
            self.set_class(name == pictures[self._turned % len(pictures)], f"-{name}")
        self.refresh_bindings()

    def _draw(self) -> None:
        if self._under_way is not None:
            now = probe_run.progress(self._under_way, self._stopping)
            self.show_in("chart", now.chart)
            self.show_in("passes", now.rows)
            self.say(now.line, "warn" if self._stopping else "")

    def _rest(self, state: State) -> None:
        """It is over."""
        self._under_way, self._stopping = None, False
        if self._timer is not None:
            self._timer.pause()
        self._turn(state)

    def _over(self, ended: Ended) -> None:
        running, self._ended = self._under_way, ended
        self._rest("form" if ended.study is None else "result")
        if running is not None and ended.study is not None:
            asked, found = running.plan.asked, probe_run.rates_of(ended.study).get("save")
            if found is not None and found["rate"] and not ended.cancelled:
                self._known[(str(asked.directory), asked.saver)] = found["rate"]
            rates, passes = probe_run.grids(ended.study)
            self.show_in("rates", rates)
            self.show_in("chart", probe_run.curve(running.watch))
            self.show_in("passes", passes)
            self.show_in("tiers", probe_run.tiers(ended.study))
            self._follow()
        self._ask()
        self._tell(*probe_run.ended_text(ended))

    def _failed(self, text: str) -> None:
        self._rest("form")
        end = "" if text.endswith(".") else "."
        self._tell(f"{text}{end} Everything that was written is removed.", "bad")

    def _tell(self, text: str, tone: Tone) -> None:
        """What came of it, wherever one is."""
        self.say(text, tone)
        if not self.is_current:
            self.app.notify(text, title="Probe", markup=False)
        self._look()

    def _follow(self) -> None:
        """What follows for the scenario on the desk."""
        words = probe_run.words(self.exported(), self.desk, self._kept)
        self.query_one("#words", Note).show(words)
