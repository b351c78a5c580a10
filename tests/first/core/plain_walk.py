"""One run, piece by piece and save by save, in plain Python: written from the description of a run
and not from `core.walk`.

The run is a list of pieces: train, stall, train, stall; after every n-th save a stall for the
second tier, after every n3-th of those one for the third. It comes up at its start or at a point
that a copy holds, first through init, load and warm-up where it comes back. Copies become loadable
a lag after their stall has ended, on each tier its own lag; what has not become loadable when the
run is interrupted never does. An interruption of level l destroys what the tiers before l hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NEVER = math.inf
Point = tuple[int, float]
"""(piece, seconds into it)"""


class PlainKind(NamedTuple):
    level: int
    detect: float
    reschedule: float
    init: float
    warmup: float
    notice: float = 0.0
    after: float = NEVER


class Plain(NamedTuple):
    """A job, every length in seconds."""

    work: float
    kept: float
    drag: float
    stall: float
    every: int
    second_stall: float
    third_every: int
    third_stall: float
    lags: tuple[float, ...]
    kinds: tuple[PlainKind, ...]
    loads: tuple[float, ...]
    emergency: tuple[float, ...]
    limit: float = NEVER


class Piece(NamedTuple):
    tier: int | None
    """which tier's stall it is; None is training"""
    length: float
    last: bool
    """whether the next piece is training again: no farther tier is served by this save"""


@dataclass
class Ledger:
    finished: bool = False
    kept: float = 0.0
    trained: float = 0.0
    stall: float = 0.0
    detect: float = 0.0
    reschedule: float = 0.0
    init: float = 0.0
    load: float = 0.0
    warmup: float = 0.0
    writes: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    by_kind: list[int] = field(default_factory=list)


def pieces_of(job: Plain) -> list[Piece]:
    count = math.ceil(job.work / job.kept - 1e-9)
    whole = job.kept + job.drag
    pieces = []
    for save in range(1, count + 1):
        share = 1.0 if save < count else job.work / job.kept - (count - 1)
        pieces.append(Piece(None, whole * share, False))
        stalls = [(0, job.stall)]
        if job.every and save % job.every == 0:
            stalls.append((1, job.second_stall))
            if job.third_every and save // job.every % job.third_every == 0:
                stalls.append((2, job.third_stall))
        pieces += [Piece(tier, length, (tier, length) == stalls[-1]) for tier, length in stalls]
    return pieces


def plain_walk(job: Plain, gaps: Sequence[float], said: Sequence[int]) -> Ledger:
    """The run whose i-th start is followed, `gaps[i]` later, by an interruption of kind
    `said[i]`."""
    pieces = pieces_of(job)
    tiers = len(job.lags)
    book = Ledger(by_kind=[0] * len(job.kinds))
    copies: list[Point] = [(0, 0.0)] * tiers  # the beginning can be had from anywhere
    point: Point = (0, 0.0)
    clock, level, last = 0.0, 0, -1
    interruptions = iter(zip(gaps, said, strict=True))
    while True:
        gap, kind = _next(job, interruptions)
        stopped = clock + gap >= job.limit
        quiet = min(gap, job.limit - clock)
        up = True
        if last >= 0:
            for name, length in (
                ("init", job.kinds[last].init),
                ("load", job.loads[level]),
                ("warmup", job.kinds[last].warmup),
            ):
                spent = min(quiet, length)
                setattr(book, name, getattr(book, name) + spent)
                clock += spent
                quiet -= spent
            up = quiet > 0
        point, spent, drains, done = _train_and_save(job, pieces, book, point, quiet, copies)
        clock += spent
        for tier, begun in drains:  # bytes that were on their way
            begins = job.lags[tier - 1] if tier else 0.0
            length = job.lags[tier] - begins
            age = spent - begun - begins
            book.writes[tier] += (
                1.0 if done else min(1.0, max(0.0, age / length)) if length else float(age >= 0)
            )
        if done:
            book.finished, book.kept = True, job.work
            return book
        if stopped:
            book.kept = _kept_at(job, pieces, max(copies))
            return book
        book.by_kind[kind] += 1
        needs = job.kinds[kind].level
        level = needs if up else max(level, needs)
        if up and job.kinds[kind].notice >= job.emergency[level] > 0:
            fits = min(job.emergency[level], job.limit - clock)
            book.stall += fits
            clock += fits
            book.writes[level] += fits / job.emergency[level]
            if fits == job.emergency[level]:
                copies[level] = max(copies[level], point)
        point = max(copies[level:])
        copies = [
            min(copy, point) if tier >= level else (0, 0.0) for tier, copy in enumerate(copies)
        ]
        last = kind
        for name, length in (
            ("detect", job.kinds[kind].detect),
            ("reschedule", job.kinds[kind].reschedule),
        ):
            spent = min(length, job.limit - clock)
            setattr(book, name, getattr(book, name) + spent)
            clock += spent


class InFlight(NamedTuple):
    """One tier, saves that drain behind the training, m at most at a time."""

    wall: float
    trained: float
    writes: float


def in_flight_walk(
    work: float,
    kept: float,
    stall: float,
    lag: float,
    many: int,
    staging: str,
    gaps: Sequence[float],
) -> InFlight:
    """A run interrupted `gaps[i]` after its i-th start, up again at once: save by save, each looks
    whether a place is free."""
    last = math.ceil(work / kept - 1e-9)
    safe = 0
    wall = trained = writes = 0.0
    for gap in (*gaps, NEVER):
        now, ends = 0.0, []
        for save in range(safe + 1, last + 1):
            length = kept if save < last else work - kept * (last - 1)
            trained += min(length, gap - now)
            now += length
            free = ends[-many] + lag if len(ends) >= many else now
            now = max(now, free) + stall if staging == "after" else max(now + stall, free)
            if now >= gap:
                break
            ends.append(now)
            if save == last:
                return InFlight(wall + now, trained, writes + len(ends))
        wall += gap
        writes += sum(min(1.0, (gap - end) / lag) for end in ends)
        safe += sum(end + lag <= gap for end in ends)
    raise AssertionError("not reached: the last start is not interrupted")


def _next(job: Plain, interruptions: Iterator[tuple[float, int]]) -> tuple[float, int]:
    """The next interruption: at random, or the earliest that comes a set time after each start."""
    gap, kind = next(interruptions)
    for number, each in enumerate(job.kinds):
        if each.after < gap:
            gap, kind = each.after, number
    return gap, kind


def _train_and_save(
    job: Plain, pieces: list[Piece], book: Ledger, point: Point, quiet: float, copies: list[Point]
) -> tuple[Point, float, list[tuple[int, float]], bool]:
    """From a point on for at most `quiet` seconds: (where it ends, seconds, drains that began and
    when, whether all is done).

    Fills `copies` with what can be loaded at the end.
    """
    spent = 0.0
    drains: list[tuple[int, float]] = []
    fresh: list[tuple[float, int, Point]] = []
    sync = job.lags[0] == 0.0
    at, offset = point
    while at < len(pieces):
        piece = pieces[at]
        go = min(piece.length - offset, quiet - spent)
        spent += go
        if piece.tier is None:
            book.trained += go
        else:
            book.stall += go
            if sync:
                book.writes[piece.tier] += go / piece.length if piece.length else 0.0
        if go < piece.length - offset:
            point = (at, offset + go)
            break
        at, offset = at + 1, 0.0
        point = (at, 0.0)
        if piece.tier is not None:
            if sync and not piece.length:
                book.writes[piece.tier] += 1.0
            if not sync:
                drains.append((piece.tier, spent))
            # the nearer tiers hold the same state: after a farther one's stall there is nothing
            # left to save of it
            fresh += [(spent + job.lags[tier], tier, point) for tier in range(piece.tier + 1)]
    done = at == len(pieces)
    for ready, tier, held in fresh:
        if ready <= spent:
            copies[tier] = max(copies[tier], held)
    return point, spent, drains, done


def _kept_at(job: Plain, pieces: list[Piece], point: Point) -> float:
    at, offset = point
    trained = sum(piece.length for piece in pieces[:at] if piece.tier is None)
    if at < len(pieces) and pieces[at].tier is None:
        trained += offset
    return trained / (job.kept + job.drag) * job.kept
