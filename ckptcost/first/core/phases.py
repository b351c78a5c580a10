"""From marks to windows: when a save began, when training went on, when the save was safe, and what
lay between.

A window is one checkpoint, whatever order its marks came in: the result depends on their times and
names alone. Two partitions tile it, one for training (stall, drain) and one for storage (snapshot,
write, fsync, commit). What no mark says is None with a code, never a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, groupby
from math import inf, isfinite
from typing import Final

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.windows import Flag, Phase, Span, Window

MARKS: Final = (
    "begin",
    "snapshotted",
    "written",
    "synced",
    "committed",
    "returned",
    "durable",
    "end",
)
"""the marks that make windows; all others are remarks"""
STORAGE: Final = {
    "snapshotted": "snapshot",
    "written": "write",
    "synced": "fsync",
    "committed": "commit",
}
"""which phase of storage a mark ends, in the order they come in"""
_FINISHED: Final = frozenset({"returned", "durable", "synced", "committed", "end"})
_FIRST_COUNTS: Final = ("begin", "returned")
"""doubled marks: training was held up from the first begin to the first return, and a save of many
files is written with the last one"""


def windows_of(marks: Iterable[Mark]) -> list[Window]:
    """All windows, by begin; a label used again after `returned` or `end` opens `label #2`.

    >>> (save,) = windows_of(
    ...     [
    ...         Mark(10.0, "begin", "step 9"),
    ...         Mark(12.0, "returned", "step 9"),
    ...         Mark(40.0, "synced", "step 9"),
    ...     ]
    ... )
    >>> (
    ...     save.stall_s,
    ...     save.drain_s,
    ...     [phase.name for phase in save.phases],
    ...     [phase.name for phase in save.storage],
    ... )
    (2.0, 28.0, ['stall', 'drain'], ['fsync'])
    """
    by_label: defaultdict[str, defaultdict[int, list[Mark]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for mark in marks:
        if mark.name in MARKS and isfinite(mark.t_s):
            by_label[mark.window][mark.rank].append(mark)
    taken = set(by_label)
    windows = []
    for label, by_rank in by_label.items():
        uses = _together(
            [span for rank in sorted(by_rank) for span in _spans_of(rank, by_rank[rank])]
        )
        for count, spans in enumerate(uses, start=1):
            name, number = label, count
            while count > 1 and name in taken:
                name, number = f"{label} #{number}", number + 1
            taken.add(name)
            windows.append(_window(name, label, spans))
    return sorted(windows, key=_by_first_mark)


def _in_time(marks: list[Mark]) -> list[Mark]:
    """By time. Where a begin stands at the same instant as others, those that the window before
    still lacks are its own, and come first."""
    marks = sorted(marks, key=lambda mark: (mark.t_s, MARKS.index(mark.name)))
    ordered: list[Mark] = []
    seen: set[str] = set()
    for _, instant in groupby(marks, key=lambda mark: mark.t_s):
        before, begins, after = _about_begin(list(instant), seen)
        ordered += before + begins + after
        seen |= {mark.name for mark in before}
        if begins and (not seen or {"returned", "end"} & seen):
            seen = {"begin"}
        if seen:
            seen |= {mark.name for mark in after}
    return ordered


def _by_first_mark(window: Window) -> tuple[float, str]:
    return min(min(span.at_s.values()) for span in window.spans), window.name


def _about_begin(instant: list[Mark], seen: set[str]) -> tuple[list[Mark], list[Mark], list[Mark]]:
    """Marks of one instant: those of the window before, the begins, and the others."""
    begins = [mark for mark in instant if mark.name == "begin"]
    is_open = begins and seen and "end" not in seen
    before = [mark for mark in instant if is_open and mark.name not in seen]
    return before, begins, [mark for mark in instant if mark not in before + begins]


def _spans_of(rank: int, marks: list[Mark]) -> list[Span]:
    """One rank's marks of one label, cut where a begin follows a return or an end."""
    uses: list[dict[str, float]] = []
    flags: list[list[Flag]] = []
    early: list[Mark] = []
    for mark in _in_time(marks):
        if mark.name == "begin" and (not uses or {"returned", "end"} & uses[-1].keys()):
            uses.append({"begin": mark.t_s})
            flags.append([])
        elif not uses:
            early.append(mark)
        else:
            _take_mark(mark, uses, flags)
    if not uses:
        return [_span(rank, _without_begin(early), [Flag("BEGIN_MISSING", f"rank {rank}")])]
    flags[0] += [Flag("STRAY", mark.name) for mark in early]
    return [_span(rank, at_s, odd) for at_s, odd in zip(uses, flags, strict=True)]


def _take_mark(mark: Mark, uses: list[dict[str, float]], flags: list[list[Flag]]) -> None:
    """A mark of the last use of the label, or of the one before it that still drains."""
    name, which = mark.name, -1
    if (
        len(uses) > 1
        and name not in _FIRST_COUNTS
        and "returned" in uses[-1]
        and _still_drains(uses[-2], name)
    ):
        which = -2
        for both in flags[-2:]:
            both.append(Flag("REUSED_WHILE_OPEN"))
    if name in uses[which]:
        flags[which].append(Flag("DOUBLED", name))
        if name in _FIRST_COUNTS:
            return
    uses[which][name] = mark.t_s


def _without_begin(marks: list[Mark]) -> dict[str, float]:
    at_s: dict[str, float] = {}
    for mark in marks:
        if mark.name not in at_s or mark.name not in _FIRST_COUNTS:
            at_s[mark.name] = mark.t_s
    return at_s


def _still_drains(earlier: dict[str, float], name: str) -> bool:
    """The save before, of the same name, may have this mark coming: the older is served first.
    Neither is certain, so both are flagged."""
    return name not in earlier and not {"end", "durable", "committed"} & earlier.keys()


def _span(rank: int, at_s: dict[str, float], odd: list[Flag]) -> Span:
    span = Span(rank, at_s)
    storage, disorder = _storage(span.begin_s, at_s, span.durable_s, span.returned_s)
    return span._replace(storage=storage, flags=tuple(dict.fromkeys(odd + disorder)))


def _together(spans: list[Span]) -> list[list[Span]]:
    """Which ranks' spans are one checkpoint: those that overlap in time, and neighbours that have
    no rank in common.

    Numbering each rank's uses would pair the wrong ones from the first mark that is lost.
    """
    uses: list[dict[int, Span]] = []
    for cluster in _overlapping(spans):
        ranks = {span.rank for span in cluster}
        here = [uses.pop()] if uses and not ranks & uses[-1].keys() else []
        for span in cluster:
            free = next((use for use in here if span.rank not in use), None)
            if free is None:
                here.append({span.rank: span})
            else:
                free[span.rank] = span
        uses += here
    return [[use[rank] for rank in sorted(use)] for use in uses]


def _overlapping(spans: list[Span]) -> list[list[Span]]:
    """Spans that hang together in time, by begin."""
    clusters: list[list[Span]] = []
    reach_s = -inf
    for span in sorted(spans, key=lambda span: (min(span.at_s.values()), span.rank)):
        if min(span.at_s.values()) > reach_s:
            clusters.append([])
        clusters[-1].append(span)
        reach_s = max(reach_s, *span.at_s.values())
    return clusters


def _last(instants: list[float | None], without: str) -> tuple[float | None, str]:
    """The last rank's instant, where all of them have one."""
    known = [instant for instant in instants if instant is not None]
    if len(known) == len(instants):
        return max(known), ""
    return None, "RANK_MISSING" if known else without


def _window(name: str, label: str, spans: list[Span]) -> Window:
    begin_s = min((span.at_s["begin"] for span in spans if "begin" in span.at_s), default=None)
    latest: dict[str, float] = {}
    for span in spans:
        for mark, t_s in span.at_s.items():
            latest[mark] = max(t_s, latest.get(mark, t_s))
    without = "NOT_MARKED" if _FINISHED & latest.keys() else "UNFINISHED"
    returned_s, returned_why = _last([span.returned_s for span in spans], without)
    unsynced = any(span.is_unsynced for span in spans)
    durable_s, durable_why = _last(
        [span.durable_s for span in spans], "UNSYNCED" if unsynced else without
    )
    storage, disorder = _storage(begin_s, latest, durable_s, returned_s)
    return Window(
        name=name,
        label=label,
        begin_s=begin_s,
        returned_s=returned_s,
        durable_s=durable_s,
        last_s=max(latest.values()),
        begin_why="" if begin_s is not None else "NO_BEGIN",
        returned_why=returned_why,
        durable_why=durable_why,
        spans=tuple(spans),
        phases=_phases(begin_s, returned_s, durable_s),
        storage=storage,
        flags=tuple(dict.fromkeys([*chain.from_iterable(s.flags for s in spans), *disorder])),
    )


def _phases(
    begin_s: float | None, returned_s: float | None, durable_s: float | None
) -> tuple[Phase, ...]:
    if begin_s is None:
        return ()
    if returned_s is None:
        return () if durable_s is None else (Phase("undivided", begin_s, durable_s),)
    stall = Phase("stall", begin_s, returned_s)
    if durable_s is None:
        return (stall,)
    return stall, Phase("drain", returned_s, max(returned_s, durable_s))


SAME_S = 0.05
"""marks of two watchers so near each other are one instant: a close is told some ms after its
fsync"""


def _storage(
    begin_s: float | None, at_s: dict[str, float], durable_s: float | None, returned_s: float | None
) -> tuple[tuple[Phase, ...], list[Flag]]:
    """Phases of storage, each from the marked one before it to its own mark; marks against the
    order join their phases."""
    if begin_s is None or not STORAGE.keys() & at_s.keys():
        return (), []
    pieces: list[Phase] = []
    flags: list[Flag] = []
    reach_s, joined = begin_s, ""
    for mark, name in STORAGE.items():
        if mark not in at_s:
            continue
        if at_s[mark] > reach_s - SAME_S:
            until_s = max(reach_s, at_s[mark])
            pieces.append(Phase(joined + name, reach_s, until_s))
            reach_s, joined = until_s, ""
            continue
        flags.append(Flag("OUT_OF_ORDER", mark))
        if pieces:
            pieces[-1] = pieces[-1]._replace(name=f"{pieces[-1].name}+{name}")
        else:
            joined += f"{name}+"
    if durable_s is None:
        return tuple(pieces), flags
    if durable_s > reach_s:
        pieces.append(Phase("settle", reach_s, durable_s))
        reach_s = durable_s
    if returned_s is not None and returned_s > reach_s:
        pieces.append(Phase("return", reach_s, returned_s))
    return tuple(pieces), flags
