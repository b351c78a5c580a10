"""What a window is, and windows beside each other: which are open at an instant, what they cover
together, what lies between them.

A run's total is taken over the union, so an instant that two saves share counts once; `timeline`
cuts the union where a save begins or ends, so that each piece can be divided among the saves open
in it. All spans are half open: [begin, end). A window whose end is not known is open until its last
mark, which it was at least.

The second save here lies in the first, the third overlaps it:

>>> saves = [(100.0, 150.0), (120.0, 125.0), (140.0, 180.0)]
>>> covered_s(saves), sum(end_s - begin_s for begin_s, end_s in saves)
(80.0, 95.0)
>>> [(piece.length_s, piece.open) for piece in timeline([[save] for save in saves])]
[(20.0, (0,)), (5.0, (0, 1)), (15.0, (0,)), (10.0, (0, 2)), (30.0, (2,))]

What lies between them is never quiet:

>>> quiet_before(union(saves), begin_s=140.0, since_s=0.0)
(80.0, 100.0)

Proof, against sets of whole seconds: tests/first/core/test_windows.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Flag(NamedTuple):
    """Something odd about the marks, as a code and what it is about."""

    code: str
    """DOUBLED, STRAY, OUT_OF_ORDER, REUSED_WHILE_OPEN, BEGIN_MISSING"""
    about: str = ""


class Phase(NamedTuple):
    name: str
    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


class Span(NamedTuple):
    """One rank's part in a checkpoint."""

    rank: int
    at_s: dict[str, float]
    """the instant of each mark it has"""
    storage: tuple[Phase, ...] = ()
    flags: tuple[Flag, ...] = ()

    @property
    def begin_s(self) -> float | None:
        return self.at_s.get("begin")

    @property
    def returned_s(self) -> float | None:
        return self.at_s.get("returned")

    @property
    def durable_s(self) -> float | None:
        """An explicit `durable` has the last word; else the later of `synced` and `committed`. A
        rename alone makes nothing durable."""
        if "durable" in self.at_s:
            return self.at_s["durable"]
        return (
            max(self.at_s["synced"], self.at_s.get("committed", self.at_s["synced"]))
            if "synced" in self.at_s
            else None
        )

    @property
    def is_unsynced(self) -> bool:
        """Committed, and nobody says that the bytes had reached the storage."""
        return "committed" in self.at_s and self.durable_s is None

    @property
    def stall_s(self) -> float | None:
        """How long this rank's own save held it up."""
        begin_s, returned_s = self.begin_s, self.returned_s
        return None if begin_s is None or returned_s is None else returned_s - begin_s


class Window(NamedTuple):
    """One checkpoint, from the first rank's begin to the last rank's return and the last rank's
    safety.

    An instant is None where it is not known, with a code: NO_BEGIN, NOT_MARKED (nobody says),
    UNFINISHED (the marks stop, as when the job dies), RANK_MISSING (some ranks say, others do not),
    UNSYNCED (renamed without fsync: the bytes may be in memory only).
    """

    name: str
    label: str
    """what the marks say; `name` tells uses of the same label apart"""
    begin_s: float | None
    returned_s: float | None
    durable_s: float | None
    last_s: float
    """the last mark"""
    begin_why: str
    returned_why: str
    durable_why: str
    spans: tuple[Span, ...]
    """one a rank, by rank"""
    phases: tuple[Phase, ...]
    """stall and drain, or `undivided` where the return is not known"""
    storage: tuple[Phase, ...]
    """snapshot, write, fsync, commit as far as marked; then `settle` until durable and `return`
    until training goes on"""
    flags: tuple[Flag, ...]

    @property
    def end_s(self) -> float | None:
        """Safe, and training goes on."""
        if self.durable_s is None or self.returned_s is None:
            return self.durable_s
        return max(self.durable_s, self.returned_s)

    @property
    def length_s(self) -> float | None:
        return None if self.begin_s is None or self.end_s is None else self.end_s - self.begin_s

    @property
    def stall_s(self) -> float | None:
        """From the first rank that stops to the last that goes on: training needs them all."""
        return (
            None
            if self.begin_s is None or self.returned_s is None
            else self.returned_s - self.begin_s
        )

    @property
    def drain_s(self) -> float | None:
        return (
            None if self.end_s is None or self.returned_s is None else self.end_s - self.returned_s
        )

    @property
    def waited_s(self) -> dict[int, float]:
        """How long each rank stood ready while the slowest one was still saving."""
        if self.returned_s is None:
            return {}
        return {
            span.rank: self.returned_s - span.returned_s
            for span in self.spans
            if span.returned_s is not None
        }

    def phase(self, name: str) -> Phase | None:
        return next((phase for phase in self.phases if phase.name == name), None)


class Piece(NamedTuple):
    """A stretch of time in which the same windows are open, none of them beginning or ending."""

    begin_s: float
    end_s: float
    open: tuple[int, ...]
    """their places in the list"""

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


Stretch = tuple[float, float]


def extent(window: Window) -> Stretch | None:
    """From begin to the end; to the last mark where the end is not known, since it was open at
    least so long."""
    if window.begin_s is None:
        return None
    return window.begin_s, window.last_s if window.end_s is None else window.end_s


def timeline(stretches_of: Sequence[Iterable[Stretch | None]]) -> list[Piece]:
    """The union of everybody's stretches, cut wherever one begins or ends.

    >>> timeline([[(0.0, 4.0)], [(1.0, 6.0)], [None]])
    [Piece(begin_s=0.0, end_s=1.0, open=(0,)), Piece(begin_s=1.0, end_s=4.0, open=(0, 1)),
     Piece(begin_s=4.0, end_s=6.0, open=(1,))]
    """
    edges: defaultdict[float, list[int]] = defaultdict(list)
    for place, stretches in enumerate(stretches_of):
        for begin_s, end_s in union(stretches):
            edges[begin_s].append(place)
            edges[end_s].append(place)
    pieces: list[Piece] = []
    active: set[int] = set()
    before_s = 0.0
    for at_s in sorted(edges):
        if active:
            pieces.append(Piece(before_s, at_s, tuple(sorted(active))))
        active.symmetric_difference_update(edges[at_s])
        before_s = at_s
    return pieces


def of_each(pieces: Iterable[Piece], count: int) -> list[list[Piece]]:
    """The pieces in which each of `count` windows is open."""
    each: list[list[Piece]] = [[] for _ in range(count)]
    for piece in pieces:
        for place in piece.open:
            each[place].append(piece)
    return each


def union(spans: Iterable[Stretch | None]) -> list[Stretch]:
    """The spans merged: in order, apart from each other.

    >>> union([(5.0, 6.0), (0.0, 2.0), (1.0, 4.0), (4.0, 4.5)])
    [(0.0, 4.5), (5.0, 6.0)]
    """
    merged: list[Stretch] = []
    for begin_s, end_s in sorted(span for span in spans if span is not None and span[0] < span[1]):
        if merged and begin_s <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_s))
        else:
            merged.append((begin_s, end_s))
    return merged


def without(spans: Iterable[Stretch | None], holes: Iterable[Stretch | None]) -> list[Stretch]:
    """The union of the spans less the union of the holes.

    >>> without([(0.0, 10.0)], [(2.0, 3.0), (9.0, 12.0)])
    [(0.0, 2.0), (3.0, 9.0)]
    """
    return [
        (piece.begin_s, piece.end_s) for piece in timeline([spans, holes]) if piece.open == (0,)
    ]


def covered_s(spans: Iterable[Stretch | None]) -> float:
    """Time in which at least one is open."""
    return sum(end_s - begin_s for begin_s, end_s in union(spans))


def quiet_before(
    busy: Sequence[Stretch],
    begin_s: float,
    since_s: float,
    least_s: float = 1.0,
    most_s: float = 20.0,
) -> Stretch | None:
    """The last stretch before an instant that lies in no window and is long enough: what the
    machine does when nothing is saved.

    `busy` is a `union`; `since_s` is when recording began. Of a long stretch the last `most_s`
    count: training drifts, and a start or an evaluation longer ago does not count.

    >>> quiet_before([(10.0, 14.0), (14.5, 20.0)], begin_s=14.5, since_s=0.0)
    (0.0, 10.0)
    """
    end_s = begin_s
    for place in range(bisect_left(busy, (begin_s, begin_s)) - 1, -1, -1):
        opened_s, closed_s = busy[place]
        if end_s - max(closed_s, since_s) >= least_s:
            return max(closed_s, since_s, end_s - most_s), end_s
        end_s = opened_s
    return (max(since_s, end_s - most_s), end_s) if end_s - since_s >= least_s else None
