"""The live screen's picture, put together: headline, numbers, and sentences on what they leave
out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, isnan, nan
from typing import NamedTuple

from ckptcost.first.core.quantities import LineField
from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.jobs.account import AccountTotals
from ckptcost.first.jobs.save_book import Entry
from ckptcost.first.present.amounts import (
    DASH,
    count,
    duration,
    number,
    quantity,
    rate,
    share,
    size,
)
from ckptcost.first.present.chart import Stat
from ckptcost.first.present.grid import Tone
from ckptcost.first.present.words import line_label
from ckptcost.first.report.studies.gap_words import why_text
from ckptcost.first.report.studies.measure_saves import rate_of
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.curves import EACH_MOST, total_j
from ckptcost.first.tui.live.source import SPANS_S, Headline, Kind, LiveView, State
from ckptcost.first.tui.live.tables import (
    WH_J,
    Checkpoints,
    disorder,
    gpus_grid,
    gpus_of,
    last_of,
    meters_grid,
    outliers_grid,
    safe_s,
)
from ckptcost.first.tui.live.traces import gpu_trace, traces_of

# The numbers of the live screen, and why one of them is a dash.


def stats_of(board: LiveBoard) -> tuple[Stat, ...]:
    """Where nothing meters power, what is known leads: when the last checkpoint was safe, and how
    much time they take."""
    gpu_s = board.account.totals.least["gpu_s"]
    # `gpu_s` is of the stalls: what drains take from training is not known
    stood = f"{count(gpus_of(board.account))} GPUs stood still"
    stats = (
        _energy(board),
        _session(board),
        _cost(board),
        _by_factor(board, "CO2e", "location_kgco2e", "kg"),
        Stat(
            "GPU-h lost",
            number(gpu_s / HOUR_S),
            _why_not(board, "gpu_s") if isnan(gpu_s) else stood,
        ),
        _in_checkpoints(board),
        _last(board),
    )
    if not board.powerless:
        return stats
    *others, timed, last = stats
    return tuple(sorted((last, timed, *others), key=lambda stat: stat.value == DASH))


def _energy(board: LiveBoard) -> Stat:
    """Of all checkpoints; where a part of each is not known, what the others come to."""
    totals = board.account.totals
    joules, lines = totals.amounts["energy_j"], totals.lines_j
    names = (("gpu_wait", "GPU"), ("host_wait", "host"), ("storage_write", "storage"))
    told = ", ".join(
        f"{name} {number(lines[line] / WH_J)}" for line, name in names if line in lines
    )
    note = f"{told} Wh" if told else _why_not(board, "energy_j") if isnan(joules) else ""
    least_j = sum(lines.values())
    if isnan(joules) and least_j > 0:
        return Stat("checkpoints", f"at least {number(least_j / KWH_J)} kWh", note)
    return Stat("checkpoints", _with(joules / KWH_J, "kWh"), note)


def _session(board: LiveBoard) -> Stat:
    """All that was taken since the recording began, at the facility like the checkpoints' share of
    it; where nothing meters the whole node, of the parts that are metered."""
    if board.partly:
        return Stat("session", DASH, "not seen from its beginning")
    node_j = total_j([one for one in board.sums if one.channel.kind_of_domain == "node"][:1])
    parts_j = total_j([one for one in board.sums if one.channel.domain in board.parts])
    s = board.account.prices.scenario
    pue = 1.0 if s is None else float(s.site.pue)
    note = "at the node" if s is None else f"at the facility, PUE {number(pue)}"
    if not isnan(node_j):
        return Stat("session", _with(node_j * pue / KWH_J, "kWh"), note)
    if isnan(parts_j):
        return Stat("session", DASH, "no meter has told of joules yet")
    return Stat("session", f"at least {number(parts_j * pue / KWH_J)} kWh", note)


def _in_checkpoints(board: LiveBoard) -> Stat:
    """Time with a checkpoint under way; of it, training stood still for so long."""
    last_s, length_s = max(board.last_s, 0.0), board.length_s
    if not last_s or length_s <= 0:
        return Stat("in checkpoints", DASH)
    timed = board.book.timed(last_s)
    note = f"{duration(round(timed.open_s, 1))} of {duration(round(length_s))}"
    if timed.stalled_s or not timed.stall_unknown:
        note += f", stalled {duration(round(timed.stalled_s, 1))}"
    return Stat("in checkpoints", share(min(timed.open_s / length_s, 1.0)), note)


def _cost(board: LiveBoard) -> Stat:
    """Where a drain runs beside training, what it costs training is not metered: then the rest is a
    lower bound."""
    totals, seen = board.account.totals, board.account.seen.values()
    usd, least = totals.amounts["cost_usd"], totals.least["cost_usd"]
    if isnan(usd) and least > 0 and any((one.window.drain_s or 0.0) > 0 for one in seen):
        note = "what drains take from training is not known"
        return Stat("cost", f"at least {number(least)} USD", note)
    return _by_factor(board, "cost", "cost_usd", "USD")


def _by_factor(board: LiveBoard, label: str, asked: LineField, unit: str) -> Stat:
    value = board.account.totals.amounts[asked]
    note = _why_not(board, asked) if isnan(value) else _factor(board, asked)
    return Stat(label, _with(value, unit), note)


def _with(value: float, unit: str) -> str:
    return DASH if isnan(value) else f"{number(value)} {unit}"


_NO_FACTOR: dict[LineField, str] = {
    "cost_usd": "the scenario has no price of a GPU-hour",
    "location_kgco2e": "the scenario has no grid factor",
}


def _factor(board: LiveBoard, asked: LineField) -> str:
    """The price of a GPU-hour, or the grid's factor; empty where the scenario has none."""
    s = board.account.prices.scenario
    if s is None:
        return ""
    if asked == "cost_usd":
        value, unit = float(s.cluster.usd_per_gpu_s), "usd_per_gpu_s"
    else:
        value, unit = float(s.site.kgco2e_per_j), "kgco2e_per_j"
    return "" if isnan(value) else quantity(value, unit)


def _why_not(board: LiveBoard, asked: LineField) -> str:
    """Why a total is a dash, in a few words. Where there are totals, there is a scenario."""
    account = board.account
    if account.prices.problem:
        return "the scenario cannot be used"
    if not account.totals.saves:
        return _why_none(board)
    if asked in ("gpu_s", "cost_usd") and isnan(gpus_of(account)):
        return "nothing says how many GPUs"
    if {one.window.stall_s for one in account.seen.values() if one.contents.of != "load"} == {None}:
        return "not known how long training stood"
    if asked in _NO_FACTOR and not _factor(board, asked):
        return _NO_FACTOR[asked]
    lacking = account.totals.lacking.items()
    waits = (code for name, (code, _) in lacking if name in ("gpu_wait", "host_wait"))
    return next(map(reason, waits), "")


def _why_none(board: LiveBoard) -> str:
    if not board.book.entries:
        return "no checkpoint yet"
    over = sum(not entry.open for entry in board.book.entries)
    if not board.waiting:
        return "not evaluated yet"
    return f"evaluating {count(float(over - board.waiting + 1))} of {count(float(over))} ..."


def _last(board: LiveBoard) -> Stat:
    saves = (entry for entry in reversed(board.book.entries) if not entry.is_load)
    last = next((entry for entry in saves if not entry.open), None)
    if last is None:
        return Stat("last checkpoint", DASH, "under way" if board.book.open else "none yet")
    (window, what), name = last.best, f"#{last.number}"
    if what.error:
        return Stat("last checkpoint", f"{name} failed", what.error, "bad")
    safe, stall = safe_s(window, what), window.stall_s
    told = [text for text in (size(what.bytes), rate(rate_of(window, what))) if text != DASH]
    if safe is None:
        note = "  ".join((*told, "not known when safe"))
        held_up = "" if stall is None else f"  held up {duration(stall)}"
        return Stat("last checkpoint", name + held_up, note)
    if board.powerless:
        return Stat("safe after", duration(safe), "  ".join((name, *told)))
    return Stat("last checkpoint", f"{name}  {duration(safe)}", "  ".join(told))


def reason(code: str) -> str:
    """Codes of readings that are missing are in small letters, and are all the same to whoever
    looks on."""
    return why_text("NO_READING" if code == code.lower() else code)


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


_NOT_PLAYED: dict[Kind, tuple[State, ...]] = {
    "replay": ("failed",),
    "simulated": ("ended", "failed"),
}
"""of what has a speed, the states that are told as of any other source"""


def _state_in_words(state: State, status: LiveStatus) -> tuple[State, str, Tone]:
    tone, word = _TONES.get(state, ""), state.upper()
    if state not in _NOT_PLAYED.get(status.kind, (state,)):
        state, word = _replay_words(state, status)
    elif status.kind == "followed" and state in ("armed", "recording", "measuring"):
        word = "FOLLOWED"
        if status.silent_s:
            word, tone = f"SILENT {duration(status.silent_s)}", "warn"
    elif state == "stopping" and not isnan(status.kill_in_s):
        word = f"STOPPING {duration(ceil(status.kill_in_s))}"
    return _unwritten_state(state, word, status) if status.unwritten else (state, word, tone)


def _replay_words(state: State, status: LiveStatus) -> tuple[State, str]:
    is_replay, speed = status.kind == "replay", f" {number(status.speed)}x"
    word = f"REPLAY{speed}" if is_replay else f"SIMULATED{'' if status.speed == 1.0 else speed}"
    if status.paused:
        return "paused", f"{word} PAUSED"
    if state == "ended":
        return state, f"{word} ENDED"
    return "playing" if is_replay else state, word


def _unwritten_state(state: State, word: str, status: LiveStatus) -> tuple[State, str, Tone]:
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
    account, entries = board.account, board.book.entries
    said = [*dict.fromkeys(status.troubles), *_lost(board)]
    if account.prices.problem:
        said.append(f"Nothing is priced: {account.prices.problem}")
    said += _left_out(account.totals)
    waiting = board.waiting if board.waiting > 1 else 0
    said += _some(waiting, "checkpoint", "{are} being evaluated; the totals grow with them.")
    failed = sum(bool(entry.contents.error) for entry in entries)
    said += _some(failed, "checkpoint", "ended with an error and {are} not in the totals.")
    said += _out_of_order(entries[-_LOOKED_AT:])
    loads = sum(entry.is_load for entry in entries)
    said += _some(loads, "load", "{are} in the table and not in the totals.")
    if any(entry.by == "hand" for entry in entries):
        said.append(
            "Checkpoints marked by hand: training is taken to have stood still between the two"
            " marks."
        )
    machine = account.prices.machine
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


def _lost(board: LiveBoard) -> Iterator[str]:
    for event in list(board.lost.values())[:5]:
        ago = duration(round(max(board.last_s - event.t_s, 0.0)))
        yield (
            f"{event.domain} was lost {ago} ago: {event.text}. Until it is back its curves have a"
            " gap and sums are unknown."
        )


def _out_of_order(entries: Sequence[Entry]) -> Iterator[str]:
    odd = [(entry.number, text) for entry in entries if (text := disorder(entry))]
    if odd:
        number_, text = odd[-1]
        more = f"; so are {count(float(len(odd) - 1))} before it" if len(odd) > 1 else ""
        yield f"The instants of #{number_} (marked !) are out of order: {text}{more}."


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


_SUMS: dict[LineField, str] = {
    "energy_j": "energy",
    "cost_usd": "cost",
    "location_kgco2e": "CO2e",
}


def _left_out(totals: AccountTotals) -> Iterator[str]:
    """Which parts the totals leave out, and which sums leave checkpoints out."""
    if totals.lacking:
        told = "; ".join(
            f"{line_label(name)} ({reason(code)}{_of(n, totals.saves)})"
            for name, (code, n) in totals.lacking.items()
        )
        yield f"Left out of the totals: {told}."
    of: dict[int, list[str]] = {}
    for each, name in _SUMS.items():
        of.setdefault(totals.known[each], []).append(name)
    for known, names in of.items():
        if 0 < known < totals.saves:
            yield (
                f"Of {count(float(known))} of {count(float(totals.saves))} checkpoints only:"
                f" {', '.join(names)}; of the others too little is known."
            )


def _of(unknown: int, saves: int) -> str:
    return "" if unknown >= saves else f", in {count(float(unknown))} of {count(float(saves))}"


_MOST_LINES = 200


def last_lines(text: bytes) -> Sequence[str]:
    """The end of a command's output, without what only a terminal understands."""
    lines = text.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    shown = [
        "".join(c if c.isprintable() or c == "\t" else "" for c in line.rpartition("\r")[2])
        for line in lines
    ]
    while shown and not shown[-1].strip():
        shown.pop()
    return [line.expandtabs() for line in shown[-_MOST_LINES:]]
