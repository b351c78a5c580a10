"""The live screen's picture, put together: headline, numbers, and sentences on what they leave
out."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isnan, nan
from typing import NamedTuple

from ckptcost.jobs.account import AccountTotals
from ckptcost.present.amounts import count, duration, number, size
from ckptcost.present.grid import Tone
from ckptcost.present.words import line_label
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.curves import EACH_MOST
from ckptcost.tui.live.figures import SHOWN, reason, stats_of
from ckptcost.tui.live.source import SPANS_S, Headline, Kind, LiveView, State
from ckptcost.tui.live.tables import (
    Checkpoints,
    disorder,
    gpus_grid,
    last_of,
    meters_grid,
    outliers_grid,
)
from ckptcost.tui.live.traces import gpu_trace, traces_of


class LiveStatus(NamedTuple):
    """What only the source knows."""

    kind: Kind
    title: str
    looked: str = ""
    """where checkpoints are looked for, in words"""
    state: State | None = None
    """where the readings do not say it"""
    about: str = ""
    """of that state: `exit 0`, `waiting for 2 checkpoints`, why it failed"""
    speed: float = 1.0
    paused: bool = False
    length_s: float = nan
    """of a replay"""
    own_cpu: float = nan
    """share of one core that this program takes"""
    file_bytes: float = nan
    troubles: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    no_output: str = "Only a command that was started here has output."
    unwritten: str = ""
    kill_in_s: float = nan
    silent_s: float = 0.0


_LOOKED_AT = 50
"""checkpoints, the newest: whether their instants are in order"""


class LivePicture:
    """Keeps the rows that do not change any more."""

    def __init__(self) -> None:
        self._checkpoints = Checkpoints()

    def view(
        self,
        board: LiveBoard,
        status: LiveStatus,
        span_s: float,
        per_gpu: bool,
        gpu: str = "",
    ) -> LiveView:
        with board.lock:
            last_s = max(board.last_s, 0.0)
            from_s = last_s - shown_s(board, status, span_s)
            gpus = len(board.gpus)
            traces = traces_of(board, from_s, last_s, per_gpu)
            alone = gpu_trace(board, gpu, from_s, last_s) if gpu else None
            if alone is not None:
                traces = traces._replace(charts=[alone, *traces.charts])
            return LiveView(
                headline_of(board, status),
                stats_of(board),
                traces,
                self._checkpoints.grid(board, last_s),
                outliers_grid(board) if per_gpu and gpus > EACH_MOST else gpus_grid(board),
                meters_grid(board),
                notes_of(board, status),
                from_s,
                last_s,
                per_gpu and 0 < gpus <= EACH_MOST,
                gpus,
                status.output,
                outages_of(board),
                status.no_output,
                status.unwritten,
                last_of(board),
            )


def shown_s(board: LiveBoard, status: LiveStatus, chosen_s: float) -> float:
    """The span that was chosen; of a shorter run, one that it nearly fills. Where the end is known,
    the whole run, and no more."""
    last_s = max(board.last_s, 0.0)
    if not isnan(status.length_s):
        return min(chosen_s, max(status.length_s, 1.0))
    if status.state in ("ended", "failed"):
        return min(chosen_s, max(last_s, 1.0))
    return min(chosen_s, next((span_s for span_s in SPANS_S if span_s >= last_s), chosen_s))


_TONES: dict[State, Tone] = {
    "measuring": "warn",
    "recording": "good",
    "failed": "bad",
    "stopping": "warn",
    "settling": "warn",
}


def headline_of(board: LiveBoard, status: LiveStatus) -> Headline:
    true_state = status.state or _state(board)
    state, word, tone = _state_in_words(true_state, status)
    length = _length_text(board, status, is_over=true_state in ("ended", "failed"))
    told = _saves_text(board, status)
    detail = (
        status.about,
        status.title,
        "" if board.host in status.title else board.host,
        told,
        length,
        "" if isnan(board.rate_hz) else f"{number(board.rate_hz, 2)} Hz",
        "" if isnan(status.own_cpu) else f"own CPU {number(status.own_cpu * 100, 2)} %",
        "" if isnan(status.file_bytes) else size(status.file_bytes),
    )
    return Headline(state, word, _line(*detail), _line(status.about, told, length), tone)


def _line(*parts: str) -> str:
    return "  ".join(filter(None, parts))


def _state_in_words(state: State, status: LiveStatus) -> tuple[State, str, Tone]:
    tone, word, speed = _TONES.get(state, ""), state.upper(), f"{number(status.speed)}x"
    is_over, held = state in ("ended", "failed"), " PAUSED" if status.paused else ""
    if status.kind == "replay" and state != "failed":
        word = f"REPLAY {speed}{held or (' ENDED' if is_over else '')}"
        state = "paused" if held else "ended" if is_over else "playing"
    elif status.kind == "simulated" and not is_over:
        word = f"SIMULATED{'' if status.speed == 1.0 else f' {speed}'}{held}"
        state = "paused" if held else state
    elif status.kind == "followed" and state in ("armed", "recording", "measuring"):
        word = "FOLLOWED"
        if status.silent_s:
            word, tone = f"SILENT {duration(status.silent_s)}", "warn"
    elif state == "stopping" and not isnan(status.kill_in_s):
        word = f"STOPPING {duration(ceil(status.kill_in_s))}"
    return _unwritten(state, word, status) if status.unwritten else (state, word, tone)


def _unwritten(state: State, word: str, status: LiveStatus) -> tuple[State, str, Tone]:
    """Nothing reaches the disk: that comes first, whatever else goes on."""
    lost = f"NOT RECORDED {status.unwritten}"
    if state == "ended":
        return state, f"ENDED, {lost}", "bad"
    if state == "failed":
        return state, word, "bad"
    return "failed", f"{lost}  {word}" if state in ("stopping", "settling") else lost, "bad"


def _saves_text(board: LiveBoard, status: LiveStatus) -> str:
    saves = sum(not entry.is_load for entry in board.book.entries)
    if not saves:
        return "no checkpoint yet" + (f"; {status.looked}" if status.looked else "")
    told = f"{count(float(saves))} checkpoint{'' if saves == 1 else 's'}"
    if board.book.open:
        told += f", #{board.book.open[-1].number} under way"
    return told


def _length_text(board: LiveBoard, status: LiveStatus, is_over: bool) -> str:
    if not isnan(status.length_s):  # a place on the tape
        return f"{duration(round(max(board.last_s, 0.0)))} of {duration(round(status.length_s))}"
    return duration(board.length_s if is_over else round(board.length_s))


def _state(board: LiveBoard) -> State:
    if board.last_s < 0 and not board.records:
        return "starting"
    if board.ended:
        return "ended"
    if board.book.open:
        return "measuring"
    return "recording" if board.book.entries else "armed"


def notes_of(board: LiveBoard, status: LiveStatus) -> tuple[str, ...]:
    """Sentences, the most pressing first."""
    totals, prices, entries = board.account.totals, board.account.prices, board.book.entries
    said = [*dict.fromkeys(status.troubles)]
    for event in list(board.lost.values())[:5]:
        ago = duration(round(max(board.last_s - event.t_s, 0.0)))
        said.append(
            f"{event.domain} was lost {ago} ago: {event.text}. Until it is back its curves have a"
            " gap and sums are unknown."
        )
    if prices.problem:
        said.append(f"Nothing is priced: {prices.problem}")
    if totals.lacking:
        told = "; ".join(
            f"{line_label(name)} ({reason(code)}{_of(n, totals.saves)})"
            for name, (code, n) in totals.lacking.items()
        )
        said.append(f"Left out of the totals: {told}.")
    said += _of_some(totals)
    waiting = board.waiting if board.waiting > 1 else 0
    said += _some(waiting, "checkpoint", "{are} being evaluated; the totals grow with them.")
    failed = sum(bool(entry.contents.error) for entry in entries)
    said += _some(failed, "checkpoint", "ended with an error and {are} not in the totals.")
    odd = [(entry.number, text) for entry in entries[-_LOOKED_AT:] if (text := disorder(entry))]
    if odd:
        number_, text = odd[-1]
        more = f"; so are {count(float(len(odd) - 1))} before it" if len(odd) > 1 else ""
        said.append(f"The instants of #{number_} (marked !) are out of order: {text}{more}.")
    loads = sum(entry.is_load for entry in entries)
    said += _some(loads, "load", "{are} in the table and not in the totals.")
    if any(entry.by == "hand" for entry in entries):
        said.append(
            "Checkpoints marked by hand: training is taken to have stood still between the two"
            " marks."
        )
    machine = prices.machine
    if machine is not None and machine.is_part:
        nodes = count(machine.job_gpus / machine.gpus_per_node)
        said.append(
            f"The readings are of one node of {nodes}: GPU-hours and joules are this node's."
        )
    if board.other_hosts:
        others = ", ".join(sorted(board.other_hosts)[:4])
        said.append(f"The run has other hosts too ({others}); shown is {board.host}.")
    said += _some(board.bad_lines, "line", "of the run could not be read and {are} left out.")
    return tuple(said)


def _some(many: int, what: str, goes_on: str) -> list[str]:
    """A sentence, where there are any."""
    s, are = ("", "is") if many == 1 else ("s", "are")
    return [f"{count(float(many))} {what}{s} {goes_on.format(are=are)}"] if many else []


def outages_of(board: LiveBoard) -> tuple[tuple[float, str], ...]:
    """Meters that were lost and are back: when they came back, and a sentence."""
    since_s: dict[str, float] = {}
    found = []
    for event in board.events:
        if event.name == "lost":
            since_s[event.domain] = event.t_s
        elif event.name == "found" and event.domain in since_s:
            away = duration(round(event.t_s - since_s.pop(event.domain)))
            found.append((event.t_s, f"{event.domain} was lost for {away} and is back."))
    return tuple(found)


def _of_some(totals: AccountTotals) -> list[str]:
    """Which sums leave checkpoints out."""
    of: dict[int, list[str]] = {}
    for quantity, name in zip(SHOWN, ("energy", "cost", "CO2e"), strict=True):
        of.setdefault(totals.known[quantity], []).append(name)
    all_ = count(float(totals.saves))
    return [
        f"Of {count(float(known))} of {all_} checkpoints only: {', '.join(names)}; of the others"
        " too little is known."
        for known, names in of.items()
        if 0 < known < totals.saves
    ]


def _of(unknown: int, saves: int) -> str:
    return "" if unknown >= saves else f", in {count(float(unknown))} of {count(float(saves))}"


def last_lines(text: bytes, most: int = 200) -> Sequence[str]:
    """The end of a command's output, without what only a terminal understands."""
    lines = text.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    shown = [
        "".join(c if c.isprintable() or c == "\t" else "" for c in line.rpartition("\r")[2])
        for line in lines
    ]
    while shown and not shown[-1].strip():
        shown.pop()
    return [line.expandtabs() for line in shown[-most:]]
