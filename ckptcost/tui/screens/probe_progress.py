"""A probe's passes as rows, as a curve of rates and as a line of words: while it runs, and when it
is over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.jobs.probe import Probed, seconds_of
from ckptcost.present.amounts import count, duration, rate, share, size
from ckptcost.present.chart import Band, Chart, Curve, Stat
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.savers.base import Io
from ckptcost.tui.screens.probe_form import Wish
from ckptcost.tui.screens.probe_run import Pass, Watch

NAN = math.nan
_POINTS = 300
"""of a curve: no screen is wider"""
_DOING = {"save": "writing", "verify": "comparing", "load": "reading", "warm-up": "warming up"}
_HEADS = (
    Head("round", "round"),
    Head("bytes", "size"),
    Head("time", "write", rank=1),
    Head("rate", "rate"),
    Head("fsync", "fsync", rank=3),
    Head("p99", "p99", rank=2),
    Head("read", "read rate", rank=1),
    Head("state", "state", left=True),
)


class Done(NamedTuple):
    """A pass that is over."""

    number: int
    of: str
    size_bytes: float
    seconds: float
    io: Io | None


class Progress(NamedTuple):
    """All that the screen shows while it runs."""

    line: str
    share: float
    rows: Grid
    chart: Chart
    stats: tuple[Stat, ...]


def progress(
    one: Wish, watch: Watch, now_ns: int, moved_bytes: float, stopping: bool = False
) -> Progress:
    """`moved_bytes` is what the plan will move in all."""
    passes = list(watch.passes)
    done = [
        Done(p.number, p.what, float(p.whole_bytes), p.io.duration_s, p.io)
        for p in passes
        if p.io is not None
    ]
    now = passes[-1] if passes and passes[-1].io is None else None
    share_done = min(watch.all_bytes / moved_bytes, 1.0) if moved_bytes > 0 else 0.0
    line = (
        "Stopping, and removing what was written ..."
        if stopping
        else _line(one, watch, now, now_ns, share_done)
    )
    return Progress(
        line,
        share_done,
        _rows(one, done, now, watch.moved_bytes),
        curve(passes, watch.begin_ns),
        _stats(one, done),
    )


def finished(p: Probed, watch: Watch) -> tuple[Grid, Chart]:
    """Rows and curve of a probe that is over. A simulated one has no engine that tells anything:
    its rates by pass."""
    done = [Done(one.number, one.of, one.size_bytes, seconds_of(one), one.io) for one in p.rounds]
    for one in done:
        told = next(
            (each for each in watch.passes if (each.what, each.number) == (one.of, one.number)),
            None,
        )
        if told is not None:
            told.io = one.io
    wish = Wish(
        p.asked.directory,
        p.asked.size_bytes,
        p.asked.saver,
        p.asked.ranks,
        p.asked.rounds,
        p.asked.small,
        0,
        p.asked.read,
    )
    chart = (
        curve(watch.passes, watch.begin_ns)
        if any(one.io is not None for one in done)
        else _by_pass(done)
    )
    return _rows(wish, done, None, 0, over=True), chart


def _line(one: Wish, watch: Watch, now: Pass | None, now_ns: int, done: float) -> str:
    if now is None:
        return f"Looking at the meters before the first save. {_ESC}"
    lately = _lately(now, now_ns)
    at = f", {rate(lately)}" if lately == lately else ""
    elapsed_s = (now_ns - watch.begin_ns) * 1e-9
    left = (
        f"; about {duration(float(round(elapsed_s * (1.0 - done) / done)))} left"
        if 0.05 < done < 1.0
        else ""
    )
    which = (
        ""
        if now.what == "warm-up"
        else f" round {count(now.number)} of {count(len(one.asked.sizes))}"
    )
    moved = min(watch.moved_bytes, now.whole_bytes)
    return (
        f"{_DOING[now.what].capitalize()}{which}: {size(moved)} of"
        f" {size(now.whole_bytes)}{at}{left}. {_ESC}"
    )


_ESC = "Esc stops."


def _lately(now: Pass, now_ns: int) -> float:
    """Bytes a second over the last second or so."""
    moves = now.moves
    if len(moves) < 2:
        return NAN
    first = next((move for move in moves if now_ns - move[0] <= 1_000_000_000), moves[-2])
    last = moves[-1]
    return (last[1] - first[1]) / ((last[0] - first[0]) * 1e-9) if last[0] > first[0] else NAN


# rows


def _rows(
    one: Wish, done: Sequence[Done], now: Pass | None, moved_bytes: int, over: bool = False
) -> Grid:
    rows = []
    for number, bytes_ in enumerate(one.asked.sizes, start=1):
        save = next((each for each in done if (each.of, each.number) == ("save", number)), None)
        load = next((each for each in done if (each.of, each.number) == ("load", number)), None)
        state, tone = _state(one, number, save, load, now, moved_bytes, over)
        write_s, write = (save.seconds, _rate(save)) if save else (NAN, NAN)
        fsync_s, p99_s = (
            (save.io.fsync_s, save.io.latencies_s.p99) if save and save.io else (NAN, NAN)
        )
        read = _rate(load) if load else NAN
        cells = (
            count(number),
            size(bytes_),
            duration(write_s),
            rate(write),
            duration(fsync_s),
            duration(p99_s),
            rate(read),
            state,
        )
        orders = (float(number), float(bytes_), write_s, write, fsync_s, p99_s, read, state)
        rows.append(Row(str(number), cells, orders, tone))
    return Grid(_HEADS, rows, "Rounds", "rate: to the end of fsync; p99: of single requests")


def _rate(one: Done) -> float:
    return one.size_bytes / one.seconds if one.seconds > 0 else NAN


def _state(
    one: Wish,
    number: int,
    save: Done | None,
    load: Done | None,
    now: Pass | None,
    moved_bytes: int,
    over: bool,
) -> tuple[str, Tone]:
    if now is not None and now.number == number:
        return (
            (
                f"{_DOING[now.what]}"
                f" {share(min(moved_bytes / now.whole_bytes, 1.0) if now.whole_bytes else None)}"
            ),
            "base",
        )
    if save is None:
        return ("not made" if over else "waits"), "muted"
    if one.read and load is None and over and save.io is not None:
        return "not read", "muted"
    return "done", ""


# the curve


def curve(passes: Sequence[Pass], begin_ns: int) -> Chart:
    """Bytes a second as they went, passes shaded; between two there is a gap."""
    span_ns = (passes[-1].moves[-1][0] if passes and passes[-1].moves else begin_ns) - begin_ns
    step_ns = max(span_ns // _POINTS, 1)
    xs: list[float] = []
    ys: list[float] = []
    bands = []
    for one in passes:
        points = _points(one, step_ns)
        if len(points) < 2:
            continue
        at = [(t_ns - begin_ns) * 1e-9 for t_ns, _ in points]
        xs += [*at, at[-1]]
        ys += [*(y for _, y in points), NAN]
        if one.what in ("save", "load"):
            bands.append(Band(at[0], at[-1], kind="save" if one.what == "save" else "load"))
    return Chart(
        "Bytes a second",
        [Curve("", xs, ys)],
        bands=bands,
        x_text=duration,
        y_text=rate,
        y_range=(0.0, NAN),
        note="shaded: writing until safe, and reading; bare: comparing",
        empty="Nothing was written yet.",
    )


def _points(one: Pass, step_ns: int) -> list[tuple[int, float]]:
    """Time and rate; where it was too quick to be looked at, its mean."""
    io = one.io
    begin_ns = io.begin_ns if io is not None else one.begin_ns
    points: list[tuple[int, float]] = []
    last = (begin_ns, 0)
    for move in one.moves:
        if move[0] - last[0] >= step_ns and move[1] >= last[1] and move[0] > begin_ns:
            y = (move[1] - last[1]) / ((move[0] - last[0]) * 1e-9)
            points += [(last[0], y), (move[0], y)] if not points else [(move[0], y)]
            last = move
    if io is None:
        return points
    if len(points) < 4:
        mean = one.whole_bytes / max((io.returned_ns - begin_ns) * 1e-9, 1e-9)
        points = [(begin_ns, mean), (io.returned_ns, mean)]
    safe_ns = io.returned_ns if io.durable_ns is None else io.durable_ns
    if (
        safe_ns - points[-1][0] > 2 * step_ns
    ):  # fsync: nothing is handed over any more, and it is not safe yet
        points += [(points[-1][0], 0.0), (safe_ns, 0.0)]
    return points


def _by_pass(done: Sequence[Done]) -> Chart:
    largest = max((one.size_bytes for one in done), default=0.0)
    mine = [one for one in done if one.of == "save" and one.size_bytes == largest]
    xs, ys = [float(one.number) for one in mine], [_rate(one) for one in mine]
    return Chart(
        "Rate by round",
        [Curve("write", xs, ys)],
        x_text=count,
        y_text=rate,
        y_range=(0.0, NAN),
        x_kind="number",
        x_label="round",
    )


def _stats(one: Wish, done: Sequence[Done]) -> tuple[Stat, ...]:
    """What is known so far, of the whole size."""
    found = []
    for of, label in (("save", "WRITE"), ("load", "READ")):
        mine = [
            each
            for each in done
            if each.of == of and each.size_bytes == one.size_bytes and each.seconds > 0
        ]
        if mine:
            rates = [_rate(each) for each in mine]
            whole = sum(each.size_bytes for each in mine) / sum(each.seconds for each in mine)
            found.append(Stat(label, rate(whole), ranged(min(rates), max(rates), len(mine))))
        elif of == "save" or one.read:
            found.append(Stat(label, "-"))
    return tuple(found)


def ranged(low: float | None, high: float | None, rounds: float) -> str:
    """`1.9-2.1 GB/s in 3 rounds`."""
    counted = f"{count(rounds)} round{'' if rounds == 1 else 's'}"
    if low is None or high is None or rate(low) == rate(high):
        return counted
    (number, _, unit), (_, _, other) = rate(low).partition(" "), rate(high).partition(" ")
    return f"{number if unit == other else rate(low)}-{rate(high)} in {counted}"
