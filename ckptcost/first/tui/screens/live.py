"""Measuring a job as it runs: state, numbers and traces with checkpoints in them. Readings are
taken in while nobody looks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from ckptcost.first.present.amounts import duration, number
from ckptcost.first.present.grid import Grid
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.live.source import SPAN_S, SPANS_S, SPEEDS, Actions, LiveView
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.screens.live_start import Opening, report_of, study_of
from ckptcost.first.tui.widgets.live_board import PRESETS, Board, Traced
from ckptcost.first.tui.widgets.live_start import StartPage
from ckptcost.first.tui.widgets.rows import Rows
from ckptcost.first.tui.widgets.traces import TraceStack

if TYPE_CHECKING:
    from ckptcost.first.tui.live.reading import LiveSource


# What can be done on the live screen, and what its help says.

ABOUT = (
    "Power of the GPUs, on it that of processors and memory, and what goes to storage, over one"
    " time axis. Where training is held up the area glows; a lighter ground is a save that drains"
    " while training goes on. The line across is the idle power, where it was learned (l on the"
    " start page). The sentence below and the list have joules at the node; energy, cost and CO2e"
    " above are of all checkpoints so far, at the facility, under the scenario of screen 1. A dash"
    " is not known, never zero, and a gap is a meter that did not answer. Drawing can be slower"
    " than measuring, and stops while another screen is seen: readings are kept all the same. Over"
    " SSH it draws once a second."
)
START = (
    Command(
        "live.measure",
        "M",
        "machine alone",
        "Measure this machine alone, without a job",
        "measure",
        1,
    ),
    Command(
        "live.demo",
        "d",
        "demo",
        "A made-up machine with 8 GPUs that saves once a minute",
        "demo",
        2,
    ),
    Command(
        "live.command", "c", "command", "Type a command to run and measure", "field('command')", 3
    ),
    Command("live.attach", "a", "attach", "Type the PID of a job that runs", "field('pid')", 4),
    Command(
        "live.watch", "w", "folder", "Type the folders that checkpoints go to", "field('watch')", 5
    ),
    Command(
        "live.processes", "P", "processes", "Choose among processes that hold a GPU", "processes"
    ),
    Command(
        "live.follow", "f", "follow", "Follow a recording that another process writes", "follow", 6
    ),
    Command(
        "live.baseline",
        "l",
        "baseline",
        "Learn the idle power of this machine: 30 s, nothing else may run",
        "baseline",
        7,
    ),
)
"""of the start page"""
BOARD = (
    Command(
        "live.pause",
        "space",
        "pause",
        "Stop drawing and go on; the recording goes on all the while",
        "pause",
        1,
    ),
    Command(
        "live.mark", "m", "mark", "Mark the begin of a checkpoint by hand, and its end", "mark", 2
    ),
    Command(
        "live.detail",
        "enter",
        "open",
        "The last checkpoint in full; in the list, the one that is chosen",
        "detail",
        2,
    ),
    Command("live.shorter", "left_square_bracket", "zoom in", "Show less time", "span(-1)", 3),
    Command("live.longer", "right_square_bracket", "zoom out", "Show more time", "span(1)", 10),
    Command(
        "live.faster",
        "plus,equals_sign",
        "faster",
        "Draw more often: up to 10 times a second",
        "rate(1)",
    ),
    Command("live.slower", "minus", "slower", "Draw less often", "rate(-1)"),
    Command(
        "live.gpus",
        "g",
        "per GPU",
        "A curve for each GPU, or all together; of many, those that differ most",
        "gpus",
        4,
    ),
    Command("live.lists", "v", "lists", "Next list: checkpoints, GPUs, meters, output", "lists", 7),
    Command(
        "live.preset",
        "p",
        "layout",
        "Next layout: overview, each GPU, checkpoints, figures alone",
        "preset",
        11,
    ),
    Command("live.traces", "t", "traces", "Other traces, where not all have room", "turn"),
    Command("live.output", "o", "output", "The last lines that the job printed", "output", 7),
    Command(
        "live.hold",
        "h",
        "hold",
        "Let the time of a replay or demo stand still, or go on",
        "hold",
        8,
    ),
    Command(
        "live.quicker",
        "greater_than_sign",
        "speed",
        "Let the time of a replay or demo run faster",
        "speed(1)",
        9,
    ),
    Command("live.calmer", "less_than_sign", "slower time", "Let it run slower", "speed(-1)"),
    Command("live.back", "comma", "back", "Go back a window's length in a replay", "seek(-1)"),
    Command("live.on", "full_stop", "on", "Go on by a window's length in a replay", "seek(1)"),
    Command(
        "live.stop",
        "R",
        "stop",
        "End the recording, and the command with it (killed after 10 s); asks first",
        "stop",
        6,
    ),
    Command("live.run", "r", "open the run", "What was recorded, in full", "open_run", 1),
    Command("live.new", "n", "new", "Back to the start page, for another recording", "new", 2),
)
"""while something is measured, or when it has ended"""
_ENDED = frozenset({"open_run", "new"})
_RUNNING = frozenset({"pause", "rate", "detail"})


def possible(action: str, can: Actions, over: bool) -> bool:
    """Whether an action of the board means something now."""
    known = {
        "mark": can.mark,
        "hold": can.pause,
        "speed": can.speed,
        "seek": can.seek,
        "stop": can.stop,
    }
    if action in known:
        return known[action] and not over
    return over if action in _ENDED else not over if action in _RUNNING else True


RATES_HZ = (1.0, 2.0, 4.0, 10.0)
UNSEEN_S = 1.0
"""how often readings are taken in while another screen is seen"""
OUTAGES = 3
"""told one by one"""
_OF_START = frozenset(command.action.partition("(")[0] for command in START)
_OF_BOARD = frozenset(command.action.partition("(")[0] for command in BOARD)


class LiveScreen(Opening):
    """`source` is for tests; else the start page asks, or another screen hands a run over."""

    ABOUT = ABOUT
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (*START, *BOARD)
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(KEYS_HERE),
        Binding("z", "alone", show=False),
    ]
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    LiveScreen StartPage, LiveScreen Board { display: none; }
    LiveScreen StartPage.-on, LiveScreen Board.-on { display: block; }
    LiveScreen.-short StartPage .head { margin-top: 0; }
    LiveScreen.-short #below { min-height: 4; }
    LiveScreen.-short #last { max-height: 2; }
    """

    def __init__(self, source: LiveSource | None = None) -> None:
        super().__init__(source)
        self._over = self._frozen = self._per_gpu = False
        self._span_s = SPAN_S
        self._gpu = ""
        """the one that has a trace of its own"""
        self._again = 0
        """ticks in which to draw although no reading has come: prices are worked out in the
        background"""
        self._rate_hz = 1.0 if os.environ.get("SSH_CONNECTION") else 2.0
        self._drawn_for: tuple[object, ...] = ()
        self._lost: frozenset[str] | None = None
        self._unwritten = False
        self._unseen_from_s: float | None = None
        """what happened to meters since then was not told: nobody looked"""
        self._drawing: Timer | None = None
        self._unseen: Timer | None = None

    def body(self) -> Iterable[Widget]:
        yield StartPage(id="start", classes="-on")
        wanted = self.host.preferences.preset or self.host.remembered.preset
        yield Board(next((each for each in PRESETS if each.name == wanted), PRESETS[0]))

    @property
    def board(self) -> Board:
        return self.query_one(Board)

    # what the application asks of a screen

    def on_desk(self) -> None:
        if self._source is not None:
            self._source.price(self.desk)
            self._again = 4

    def command_line(self) -> str:
        """What records the same; where nothing does, what reports the run."""
        return self._command or ("" if self._source is None else report_of(self._source))

    def table(self) -> Grid | None:
        if self._source is None:
            return None
        return (
            self.focused.grid
            if isinstance(self.focused, Rows)
            else self.query_one("#checkpoints", Rows).grid
        )

    def exported(self) -> Any:
        return None if self._source is None else study_of(self._source)

    def shown(self) -> None:
        if self._unseen is not None:
            self._unseen.pause()
        self._keep_time()
        self.look_around()
        self.tick(again=1)  # what came while nobody looked was taken in

    def hidden(self) -> None:
        if self._drawing is not None:
            self._drawing.pause()
        if self._unseen_from_s is None and self.board.view is not None:
            self._unseen_from_s = self.board.view.last_s
        if self._unseen is None:
            self._unseen = self.set_interval(UNSEEN_S, self._take_in)
        self._unseen.resume()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the start page and of the board are never there together."""
        if action in _OF_START:
            return self._source is None and not self._opening
        if action in _OF_BOARD:
            return self._source is not None and possible(action, self._source.actions, self._over)
        return True

    # drawing

    def begun(self, source: LiveSource) -> None:
        self._over = self._frozen = self._unwritten = False
        self._per_gpu = self.board.preset.per_gpu
        self._drawn_for, self._lost, self._gpu, self._unseen_from_s = (), None, "", None
        self.refresh_desk()
        source.price(self.desk)
        self.turn_to(board=True)
        self._keep_time()
        self.tick()

    def turn_to(self, board: bool) -> None:
        self.set_focus(None)
        self.query_one(StartPage).set_class(not board, "-on")
        self.board.set_class(board, "-on")
        if board:
            self.board.clear()
            self.board.lay_lists()
        self.refresh_bindings()

    def _keep_time(self) -> None:
        """A timer at the draw rate while there is something to draw and somebody sees it."""
        if self._drawing is not None:
            self._drawing.stop()
            self._drawing = None
        if self._source is not None and self.is_current and not self._over:
            self._drawing = self.set_interval(1.0 / self._rate_hz, self.tick)

    def _take_in(self) -> int:
        """Readings since the last time, drawn or not."""
        return 0 if self._source is None else self._source.pump()

    def tick(self, again: int = 0) -> None:
        """Nothing is drawn where nothing is new; that nothing comes any more is new."""
        source = self._source
        if source is None or self._opening:
            return
        self._again = max(again, self._again)
        fresh = self._take_in()
        now = (
            source.over,
            source.actions,
            source.paused,
            source.speed,
            source.silent_s,
            self._span_s,
            self._per_gpu,
            self._gpu,
            self._frozen,
        )
        if not fresh and now == self._drawn_for and not self._again:
            return
        self._again = max(self._again - 1, 0)
        if now[:2] != self._drawn_for[:2]:
            self.refresh_bindings()
        self._drawn_for = now
        self._draw(source)
        if source.over and not self._over:
            self._ended(source)

    def _draw(self, source: LiveSource) -> None:
        view = source.view(self._span_s, self._per_gpu, self._gpu)
        self.board.show(view, self._frozen)
        self._tell_of_lost(view)
        self._tell_of_unwritten(view, source)

    def _tell_of_unwritten(self, view: LiveView, source: LiveSource) -> None:
        """The line that says where the run is written must not stand there while nothing reaches
        it."""
        if bool(view.unwritten) != self._unwritten and not source.over:
            self._unwritten = bool(view.unwritten)
            if view.unwritten:
                self.say(
                    f"Not recorded {view.unwritten}. What comes is kept in memory as long as there"
                    " is room.",
                    "bad",
                )
            else:
                self.say(f"Recorded to {source.folder} again; what waited was written first.")

    def _tell_of_lost(self, view: LiveView) -> None:
        """Once, when it happens or when somebody looks again; the line below the lists goes on
        saying so."""
        lost = {
            row.key: ", ".join(cell for cell in row.cells if cell)
            for row in view.meters.rows
            if row.tone == "bad"
        }
        if self._lost is not None:
            for key in lost.keys() - self._lost:
                self._warn("A meter was lost", lost[key])
        self._lost = frozenset(lost)
        if self._unseen_from_s is not None and self.is_current:
            told = [text for at_s, text in view.outages if at_s > self._unseen_from_s]
            self._unseen_from_s = None
            if len(told) > OUTAGES:
                more = f"So it was {len(told) - OUTAGES} times more."
                told = [*told[-OUTAGES:], more]
            if told:
                self._warn("While nobody looked", "\n".join(told))

    def _warn(self, title: str, text: str) -> None:
        self.app.notify(text, title=title, severity="warning", timeout=8, markup=False)

    def _ended(self, source: LiveSource) -> None:
        self._over = True
        self._keep_time()
        self.refresh_bindings()
        opens = "n begins another."
        if source.folder is not None:
            opens = f"r opens the run, {opens}"

        def done(text: str) -> None:
            lost = source is self._source and source.view().unwritten
            self.say(f"{text} {opens}".strip(), "bad" if lost else "")
            if source is self._source:
                self._draw(source)  # with what was evaluated last

        self.background("end", lambda stopped: source.stop(), done)

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self.board.lay_lists)

    # keys of the board

    def action_pause(self) -> None:
        self._frozen = not self._frozen
        told = "Drawing is paused; the recording goes on. Space goes on drawing."
        self.say(told if self._frozen else "")
        self.tick()

    def action_span(self, by: int) -> None:
        view = self.board.view
        shown_s = self._span_s if view is None else min(self._span_s, view.last_s - view.begin_s)
        if by < 0 and shown_s < self._span_s:  # of what is seen, not of what was chosen
            shorter = [span_s for span_s in SPANS_S if span_s < shown_s]
            self._span_s = max(shorter, default=SPANS_S[0])
        else:
            self._span_s = shifted(SPANS_S, self._span_s, by)
        self.say(f"Shown: the last {duration(self._span_s)}, of what there is.")
        self.tick()

    def on_trace_stack_zoomed(self, event: TraceStack.Zoomed) -> None:
        event.stop()
        self.action_span(-event.steps)

    def action_rate(self, by: int) -> None:
        self._rate_hz = shifted(RATES_HZ, self._rate_hz, by)
        self._keep_time()
        self.say(f"Drawn {number(self._rate_hz)} times a second; measured as before.")

    def action_gpus(self) -> None:
        self._per_gpu = not self._per_gpu
        self.tick()
        view = self.board.view
        if view is not None and self._per_gpu and not view.per_gpu and view.gpu_count:
            self.board.choose("gpus")
            self.say("Too many GPUs for a curve each: the list has those that differ most.")

    def action_preset(self) -> None:
        at = (PRESETS.index(self.board.preset) + 1) % len(PRESETS)
        preset = PRESETS[at]
        self.board.lay_out(preset)
        self._per_gpu = preset.per_gpu
        self.host.remembered = self.host.remembered._replace(preset=preset.name)
        self.say(f"Layout {at + 1} of {len(PRESETS)}: {preset.name}.")
        self.tick()

    def action_lists(self) -> None:
        self.board.choose_next()

    def action_turn(self) -> None:
        self.board.query_one(Traced).turn()

    def action_alone(self) -> None:
        """What has the focus fills the screen, and goes back; on the board, where nothing has it,
        the traces do."""
        if self.maximized is None and self.focused is None:
            if self._source is None:
                self.say(
                    "Nothing to show alone here: once something is measured, the traces and the"
                    " lists can be.",
                    "warn",
                )
                return
            self.set_focus(
                self.board.query_one("#traces" if self.board.preset.traces else "#checkpoints")
            )
        self.app.action_zoom()  # type: ignore[attr-defined]

    def action_output(self) -> None:
        self.board.choose("checkpoints" if self.board.list == "output" else "output")

    # what is done to the source

    @property
    def source(self) -> LiveSource:
        """Of keys that are there only with one."""
        assert self._source is not None
        return self._source

    def action_mark(self) -> None:
        self.say(_sentence(self.source.mark()))
        self.tick()

    def action_hold(self) -> None:
        self.source.pause(not self.source.paused)
        self.tick()

    def action_speed(self, by: int) -> None:
        self.source.set_speed(shifted(SPEEDS, self.source.speed, by))
        self.tick()

    def action_seek(self, by: int) -> None:
        self.source.seek(self.source.position_s + by * self._span_s)
        self.tick(again=2)

    def action_stop(self) -> None:
        source = self.source

        def answered(yes: bool | None) -> None:
            if yes:
                self.say("Stopping ...")
                self.background("stop", lambda stopped: source.stop(), self._stopped)

        what = "What is watched goes on; only the recording ends."
        if source.actions.stops_job:
            what = "The command is told to end with it (SIGTERM), and killed if it has not after"
            what += " 10 s."
        ask = Confirm("End the recording?", f"{source.title}\n{what}", "end it")
        self.app.push_screen(ask, answered)

    def _stopped(self, text: str) -> None:
        if text:
            lost = self._source is not None and self._source.view().unwritten
            self.say(_sentence(text), "bad" if lost else "")
        self.tick(again=1)

    def action_open_run(self) -> None:
        """`app.open_run` is who knows the screen of a run; without it, the list of runs."""
        folder = self.source.folder
        if folder is None:
            self.say("Nothing was written of this one.")
        elif not self.hand_over("open_run", str(folder)):
            self.app.action_go("runs")  # type: ignore[attr-defined]

    def action_new(self) -> None:
        self._source, self._command = None, ""
        self.turn_to(board=False)
        self.say("")
        self.look_around()

    def on_key(self, event: Key) -> None:
        if event.key != "enter" or isinstance(self.focused, Input):
            return
        if self._source is None and not self._opening:
            self.on_start_page_begin()
            event.stop()
        elif self._source is not None and self._over and not isinstance(self.focused, Rows):
            self.action_open_run()
            event.stop()

    def action_detail(self) -> None:
        """The newest checkpoint; of another one, Enter in the list."""
        rows = self.query_one("#checkpoints", Rows).grid.rows
        if rows:
            self._open_checkpoint(max((row.key for row in rows), key=int))
        else:
            self.say("No checkpoint yet: there is nothing to open.")

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Enter on a checkpoint: its detail; on a GPU: its own trace, and away again."""
        event.stop()
        if event.rows.id == "gpus":
            self._gpu = "" if event.key == self._gpu else event.key
            self.tick()
        elif event.rows.id == "checkpoints":
            self._open_checkpoint(event.key)

    def _open_checkpoint(self, key: str) -> None:
        folder, rows = self.source.folder, self.query_one("#checkpoints", Rows).grid.rows
        if folder is None:
            self.say(
                "Nothing is written of this one, so there is no more to say of a checkpoint than"
                " its row does."
            )
            return
        from ckptcost.first.tui.screens.checkpoint import CheckpointOverLive

        name = next(row.cells[-1] for row in rows if row.key == key)
        name = name.partition(": failed")[0].removesuffix(" (load)")
        self.app.push_screen(CheckpointOverLive(str(folder), name))


def shifted(among: tuple[float, ...], now: float, by: int) -> float:
    """The value so many places further."""
    return among[min(max(among.index(now) + by, 0), len(among) - 1)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
