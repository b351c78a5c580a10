"""What the live screen shows and what it can ask for: one frozen picture, and a source that
readings come from. No drawing, no toolkit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from ckptcost.present.chart import Stat, Traces
from ckptcost.present.grid import Grid, Tone
from ckptcost.tui.desk import Desk

State = Literal[
    "starting",  # the first reading has not come yet
    "armed",  # readings come, no checkpoint yet
    "recording",  # readings come, checkpoints have been seen, none is open
    "measuring",  # a checkpoint is open just now
    "stopping",  # the job was told to end
    "settling",  # the job has ended; what it wrote is not on the storage yet
    "playing",  # a recorded run, read again
    "paused",  # the same, standing still
    "ended",
    "failed",
]
Kind = Literal["own", "simulated", "replay", "followed"]
SPEEDS = (1.0, 10.0, 60.0, 600.0)
"""of a replay and of a simulation"""
SPANS_S = (10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 21_600.0, 86_400.0)
"""how much time the traces may show; of a run that is shorter, the least that holds it"""
SPAN_S = 180.0


class Headline(NamedTuple):
    """The state in words: `RECORDING`, then what it is about."""

    state: State
    word: str
    """one word or two, in capitals: RECORDING, ARMED, MEASURING, REPLAY 60x, SIMULATED, FOLLOWED,
    ENDED ... ; no symbols"""
    detail: str
    """the rest of the line, most important first, parts divided by two blanks; cut from the right
    where there is no room"""
    short: str
    """the same where there is little room"""
    tone: Tone = ""


class LiveView(NamedTuple):
    """All of the screen at one instant."""

    headline: Headline
    stats: tuple[Stat, ...]
    """energy of checkpoints and of the session, cost, CO2e, GPU-h lost, in checkpoints, last
    checkpoint: in this order, but where nothing meters power what is known leads"""
    traces: Traces
    """x is seconds before the end of what is shown (0 at the right); charts: power, storage, the
    range of many GPUs, queue, those that are there"""
    checkpoints: Grid
    """newest first; a row's key is the checkpoint's number"""
    gpus: Grid
    meters: Grid
    """what answers, and what does not, with the reason and the remedy"""
    notes: tuple[str, ...]
    """sentences: what the totals leave out and why, troubles of the recorder, meters that were
    lost"""
    begin_s: float
    """seconds since the run began: of what is shown, and of the last reading"""
    end_s: float
    last_s: float
    per_gpu: bool
    """one curve for each GPU, where that was asked for and there are no more than eight"""
    gpu_count: int
    output: tuple[str, ...] = ()
    """the last lines of the command's output"""
    outages: tuple[tuple[float, str], ...] = ()
    """meters that were lost and are back: when that was, and a sentence"""
    no_output: str = ""
    """why there are no such lines"""
    unwritten: str = ""
    """nothing reaches the disk: since when and why"""
    last: tuple[str, Tone] = ("", "")
    """the last checkpoint in a sentence"""


class Actions(NamedTuple):
    """What can be done with the source as it is now; keys that cannot are not offered."""

    mark: bool = False
    """begin or end a checkpoint by hand"""
    mark_open: bool = False
    """one is open: the next mark ends it"""
    stop: bool = False
    """end the recording, and the command where there is one"""
    stops_job: bool = False
    """stopping ends a command: ask first"""
    pause: bool = False
    """time can stand still: a replay or a simulation. (Freezing the picture needs nothing from
    here: show the last view.)"""
    seek: bool = False
    speed: bool = False


class Source(Protocol):
    """Where readings come from. `start` and `stop` may take a moment and are for a background
    thread; all else is quick.

    It works in threads of its own, or, where it was made with `threaded=False` (tests), only within
    `start` and `pump`.
    """

    @property
    def kind(self) -> Kind: ...
    @property
    def folder(self) -> Path | None:
        """Where the run is kept; None: nowhere."""

    @property
    def simulated(self) -> bool: ...
    @property
    def host(self) -> str: ...
    @property
    def title(self) -> str:
        """What is watched: a command, `PID 4711`, a folder, a run's name, `8 simulated GPUs`."""

    @property
    def over(self) -> bool:
        """Nothing more will come."""

    @property
    def actions(self) -> Actions: ...
    @property
    def speed(self) -> float: ...
    @property
    def paused(self) -> bool: ...
    @property
    def position_s(self) -> float:
        """of a replay: seconds since the run began"""

    @property
    def length_s(self) -> float:
        """of a replay; else of what was recorded so far"""

    def start(self) -> None:
        """Raises CkptcostError where it cannot begin: no such command, no such process, no such
        run."""

    def stop(self, within_s: float | None = None) -> str:
        """End the recording, and the command with it (SIGTERM, after 10 s SIGKILL). `within_s`: the
        program quits and does not wait longer for the command. Twice is as good as once. Returns a
        sentence where there is something to say, e.g. that the job still runs.
        """

    def pump(self, now_s: float | None = None) -> int:
        """New records since the last time; at most some milliseconds of work. Call it before
        `view`. 0: nothing new to draw."""

    def mark(self, name: str = "") -> str:
        """Begin a checkpoint by hand, or end the one that is open; what was done, in a sentence."""

    def set_speed(self, speed: float) -> None: ...
    def pause(self, paused: bool) -> None: ...
    def seek(self, to_s: float) -> None:
        """of a replay: to a second since the run began"""

    def price(self, desk: Desk) -> None:
        """Another scenario: checkpoints are priced again, from joules that are known."""

    def view(
        self,
        span_s: float = SPAN_S,
        end_s: float | None = None,
        per_gpu: bool = False,
        gpu: str = "",
    ) -> LiveView:
        """The picture; `end_s` None: up to now; `gpu`: with the trace of that card on top."""

    def outliers(self) -> Grid:
        """GPUs whose power is farthest from the others', worst first; for machines with many."""

    def busy(self) -> str:
        """What quitting would cut off, in a sentence; empty where nothing."""


class Start(NamedTuple):
    """What the user wants to be watched. Exactly one of command, pid, watch alone, or none of them
    (measure only)."""

    command: str = ""
    """as a shell would have it, without pipes: `python train.py --steps 100`"""
    pid: int | None = None
    watch: Sequence[str] = ()
    """folders that checkpoints go to"""
    meters: str = "auto"
    record: str = ""
    """where to keep the run; empty: among the user's runs"""
