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

from ckptcost.errors import CkptcostError
from ckptcost.present.grid import Grid
from ckptcost.tui.clipboard import copy
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.modals.confirm import Confirm
from ckptcost.tui.screens import probe_view
from ckptcost.tui.screens.probe_asking import Asking
from ckptcost.tui.widgets.form import Form
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.probe_panels import ProbePanels

DRAWN_S = 0.5
GIVE_UP_S = 2.0
State = Literal["form", "running", "result"]


class ProbeScreen(Asking):
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
            "The tiers beside it, the curve of rates, the rounds",
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
    ProbeScreen.-narrow #left { width: 1fr; }
    ProbeScreen.-narrow.-form #right, ProbeScreen.-narrow.-running #left,
    ProbeScreen.-narrow.-result #left {
        display: none;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._under_way: Any = None
        self._plan: Any = None
        """of the probe under way"""
        self._stopping = False
        self._ended: Any = None
        self._was: Any = None
        """the one that ended so"""
        self._result: Any = None
        self._kept = ""
        """where the run is kept, as a line; empty while it is not"""
        self._state: State = "form"
        self._timer: Timer | None = None

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="all"):
            with Vertical(id="left", classes="panel"):
                yield Form(id="form")
                yield Note(id="plan")
            yield ProbePanels()

    def on_mount(self) -> None:
        self.query_one("#left").border_title = "Probe"
        self._timer = self.set_interval(DRAWN_S, self._draw, pause=True)
        super().on_mount()
        self._turn("form")
        self._look()

    # what the frame asks

    def on_desk(self) -> None:
        self._ask()
        if self._result is None:
            self._panels.compare(probe_view.known_tiers(self.desk))
        elif self._result.study is not None:
            self._show_result()

    def shown(self) -> None:
        if self._under_way is not None and self._timer is not None:
            self._timer.resume()
            self._draw()

    def hidden(self) -> None:
        if self._timer is not None:
            self._timer.pause()

    def table(self) -> Grid | None:
        return self._panels.rows.grid

    def exported(self) -> Any:
        return self._result.study if self._result is not None else None

    def busy(self) -> str:
        if self._under_way is not None:
            return (
                f"A probe is writing into {self._under_way.wish.directory}: it is stopped and its"
                " files are removed."
            )
        if self._unkept:
            return "What the last probe found is not kept (w keeps it)."
        return ""

    def give_up(self) -> None:
        if self._under_way is not None:
            self._under_way.stop(GIVE_UP_S)
        if self._unkept:
            probe_view.forget(self._ended)

    def on_unmount(self) -> None:
        self.give_up()

    @property
    def _unkept(self) -> bool:
        return self._ended is not None and self._ended.study is not None and not self._kept

    @property
    def _panels(self) -> ProbePanels:
        return self.query_one(ProbePanels)

    # what is asked for

    def action_start(self) -> None:
        if self._under_way is not None:
            self.say("A probe is under way: x stops it and removes its files.", "warn")
            return
        plan = self._asking.ready
        if plan is None:
            self._turn("form")
            self.say(f"Nothing was written. {self._asking.why_not}", "bad")
            return
        texts = [
            probe_view.question(plan),
            "What the last probe found is not kept (w keeps it)." if self._unkept else "",
        ]
        if text := "\n".join(text for text in texts if text):
            title = "Write that much?" if texts[0] else "Start another?"
            self.app.push_screen(
                Confirm(title, text, "start"), lambda yes: self._start(plan) if yes else None
            )
        else:
            self._start(plan)

    def action_begin(self) -> None:
        self.action_start()

    def _start(self, plan: Any) -> None:
        if self._unkept:
            probe_view.forget(self._ended)
        self._ended, self._result, self._kept, self._stopping = None, None, "", False
        self._plan, self._under_way = plan, probe_view.begin(plan, self.host.meters)
        self._turn("running")
        self._panels.rows.focus()
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
            return
        self._stopping = True
        self._under_way.stop()
        self._draw()

    def action_plan(self) -> None:
        if self._under_way is None:
            self._turn("form")
            self.say(
                "Nothing is written by this: it is the plan."
                if self._asking.ready
                else self._asking.why_not
            )

    def action_edit(self) -> None:
        if self._under_way is not None:
            return
        if self._state == "form" and self._result is not None and self.has_class("-narrow"):
            self._turn("result")
        else:
            self._turn("form" if self.has_class("-narrow") or self._result is None else "result")
            self._form.enter()

    def action_picture(self) -> None:
        self._turn(self._state, 1)

    def action_keep(self) -> None:
        self._keep()

    def action_calibrate(self) -> None:
        if (folder := self._keep()) is None:
            return
        if not self.hand_over("calibrate", [folder]):
            copy(
                self.app, probe_view.calibrating(self._ended), "the command that makes a tier of it"
            )

    def _keep(self) -> str | None:
        """The run's folder, kept now or before."""
        if self._ended is None or self._ended.study is None:
            self.say(
                (
                    "There is nothing to keep yet."
                    if self._under_way is None
                    else "It is not over yet."
                ),
                "warn",
            )
            return None
        if not self._kept:
            try:
                self._ended, self._kept = probe_view.keep(self._ended)
            except CkptcostError as error:
                self.say(str(error), "bad")
                return None
            self._show_result()
        self.say(self._kept, "good")
        return str(self._ended.folder)

    # what comes of it

    def _turn(self, state: State, by: int = 0) -> None:
        """Which panels are seen; a narrow screen has room for the form or for what comes of it."""
        self._state = state
        for name in ("form", "running", "result"):
            self.set_class(name == state, f"-{name}")
        self._panels.turn(state, by)
        self.refresh_bindings()

    def _draw(self) -> None:
        if self._under_way is None:
            return
        now = probe_view.progress(self._under_way, self._plan, self._stopping)
        self._panels.show(now.stats, now.chart, now.rows)
        self.say(now.line, "warn" if self._stopping else "")

    def _rest(self) -> None:
        self._under_way, self._stopping = None, False
        if self._timer is not None:
            self._timer.pause()

    def _over(self, ended: Any) -> None:
        running = self._under_way
        self._rest()
        self._ended, self._was = ended, running
        if (known := probe_view.known_rate(ended)) is not None and not ended.cancelled:
            self._known[(str(running.wish.directory), running.wish.writer)] = known
        self._show_result()
        self._turn("result" if ended.study is not None else "form")
        self._ask()
        self.say(*self._result.line)
        self._tell_elsewhere(self._result.line[0])
        self._look()

    def _failed(self, text: str) -> None:
        self._rest()
        self._turn("form")
        said = probe_view.failed_text(text)
        self.say(said, "bad")
        self._tell_elsewhere(said)
        self._look()

    def _tell_elsewhere(self, text: str) -> None:
        if not self.is_current:
            self.app.notify(text, title="Probe", markup=False)

    def _show_result(self) -> None:
        self._result = probe_view.result(self._ended, self._was, self.desk, self._kept)
        if self._result.study is None:
            return
        self._panels.show(self._result.stats, self._result.chart, self._result.rows)
        self._panels.compare(self._result.tiers)
        self._panels.follow(self._result.words)
