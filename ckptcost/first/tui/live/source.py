"""What the live screen shows and what it can ask for: one frozen picture of a source of readings.
No drawing, no toolkit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ckptcost.first.present.chart import Stat, Traces
from ckptcost.first.present.grid import Grid, Tone

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
    SILENT 12 s, ENDED ... ; no symbols"""
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
    """of more than eight, where each was asked for, those that differ most"""
    meters: Grid
    """what answers, and what does not, with the reason and the remedy"""
    notes: tuple[str, ...]
    """sentences: what the totals leave out and why, troubles of the recorder, meters that were
    lost"""
    begin_s: float
    """seconds since the run began: of what is shown, and of the last reading"""
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
    stop: bool = False
    """end the recording, and the command where there is one"""
    stops_job: bool = False
    """stopping ends a command: ask first"""
    pause: bool = False
    """time can stand still: a replay or a simulation. (Freezing the picture needs nothing from
    here: show the last view.)"""
    seek: bool = False
    speed: bool = False


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
