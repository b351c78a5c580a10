"""What marks say of a save besides its instants: bytes, files, where, and how it is known when it
was safe."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf, isfinite, nan
from operator import itemgetter
from typing import Final, NamedTuple

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.windows import Window

OUTSIDE: Final = "watch"
"""who speaks for the whole checkpoint, not for one rank's part of it"""


GONE: Final = "gone"
"""its files were deleted or moved away"""
LOST_BEFORE_SAFE: Final = frozenset({"GONE", "REPLACED", "REWRITTEN"})
"""reasons for which a save was never safe as it was written: for so long it protected nothing"""


WRAPPED: Final = "wrap"
"""who says how the job ended"""
DIED: Final = "its job died in the middle of it"
AT_ONCE_S: Final = 0.1
"""the kernel closes the files of a job that dies, and its end is seen so much later at most"""
_WHOLE: Final = frozenset({"returned", "synced", "committed"})
"""marks that only a save has that got to its end"""
BY_THE_KERNEL: Final = frozenset({"cachestat", "fiemap", "drained"})
"""evidence that says when the kernel had written a save back, not when somebody asked it to"""
LATE: Final = 0.1
"""a save that is safe so much of its length after its last act was not synced"""


class Contents(NamedTuple):
    """Of one window."""

    bytes: float
    """NaN where nobody says"""
    files: float
    path: str = ""
    of: str = "save"
    """save or load"""
    error: str = ""
    """what ended it before its time"""
    how: str = ""
    """the evidence for the durable instant"""
    why: str = ""
    """code: why nobody could see when it was safe"""
    unsure_s: float = nan
    """how long before the durable instant it was last seen not to be safe"""
    gone_s: float = nan
    """when its files were seen to be gone before they were safe; only of a save whose return was
    judged from outside"""
    returned_why: str = ""
    """code: why nobody could see when training went on"""


def contents_of(marks: Iterable[Mark], windows: Sequence[Window]) -> list[Contents]:
    """Beside each window what its marks tell. Ranks' bytes add up; who watches from outside speaks
    for all of them.

    >>> from ckptcost.first.core.phases import windows_of
    >>> marks = [
    ...     Mark(0.0, "begin", "a", 0, "api", {"bytes": 3.0}),
    ...     Mark(0.0, "begin", "a", 1, "api", {"bytes": 4.0}),
    ...     Mark(2.0, "durable", "a", 0, "watch", {"how": "cachestat"}),
    ... ]
    >>> contents_of(marks, windows_of(marks))[0][:2]
    (7.0, nan)
    """
    marks = list(marks)
    died_s = _died_s(marks)
    return [
        _contents(sorted(mine, key=lambda mark: mark.t_s), died_s)
        for mine in by_window(marks, windows)
    ]


def _died_s(marks: Iterable[Mark]) -> float:
    """When the job ended, where it did not end well; NaN where it did, or nobody says."""
    for mark in marks:
        status = mark.detail.get("exit_status") if mark.by == WRAPPED else None
        if isinstance(status, int | float) and status:
            return mark.t_s
    return nan


def written_back_s(window: Window, what: Contents) -> float:
    """How long a save that nobody synced lay in the page cache after it was written: the kernel's
    timer (30 s by default), not the storage's rate. 0 where it was synced, NaN where the evidence
    cannot tell or came too late.

    >>> from ckptcost.first.core.phases import windows_of
    >>> marks = [Mark(0.0, "begin", "a"), Mark(0.4, "returned", "a"), Mark(33.0, "durable", "a")]
    >>> (window,) = windows_of(marks)
    >>> written_back_s(window, Contents(1e8, 1.0, how="cachestat"))
    32.6
    >>> written_back_s(window, Contents(1e8, 1.0, how="fsync"))
    0.0
    >>> written_back_s(window, Contents(1e8, 1.0, how="cachestat", unsure_s=33.0))
    nan
    """
    if what.of == "load" or what.error or what.how not in BY_THE_KERNEL:
        return 0.0
    if window.begin_s is None or window.durable_s is None:
        return nan
    acts = ("written", "synced", "committed", "returned")
    over_s = max(
        (span.at_s[name] for span in window.spans for name in acts if name in span.at_s),
        default=nan,
    )
    late_s = window.durable_s - over_s
    if late_s - what.unsure_s <= LATE * (window.durable_s - window.begin_s) < late_s:
        return nan  # nobody looked from its last act on: it may have been safe at once
    return late_s if not late_s <= LATE * (window.durable_s - window.begin_s) else 0.0


def is_staged(windows: Sequence[Window], contents: Sequence[Contents]) -> list[bool]:
    """Of each, whether its files were removed before the next save began, as they are after an
    upload: then training may have waited for that too, and its stall is a lower bound. A job that
    keeps the newest few removes a save only when it has a later one.

    >>> from ckptcost.first.core.phases import windows_of
    >>> marks = [
    ...     Mark(t, n, w, 0, "watch")
    ...     for w, b in (("a", 0.0), ("b", 9.0))
    ...     for t, n in ((b, "begin"), (b + 1, "returned"))
    ... ]
    >>> kept = [Contents(1e8, 1.0, why="GONE", gone_s=9.5), Contents(1e8, 1.0)]
    >>> sent = [
    ...     Contents(1e8, 1.0, why="GONE", gone_s=7.0),
    ...     Contents(1e8, 1.0, why="GONE", gone_s=16.0),
    ... ]
    >>> is_staged(windows_of(marks), kept), is_staged(windows_of(marks), sent)
    ([False, False], [True, True])
    """
    begins_s = sorted(window.begin_s for window in windows if window.begin_s is not None)
    staged = []
    for window, what in zip(windows, contents, strict=True):
        since_s = inf if window.begin_s is None else window.begin_s
        later = bisect_right(begins_s, since_s)
        next_s = begins_s[later] if later < len(begins_s) else inf
        staged.append(what.of == "save" and what.gone_s < next_s)
    return staged


def by_window(marks: Iterable[Mark], windows: Sequence[Window]) -> list[list[Mark]]:
    """All marks of each window, remarks included: of several uses of a label, those since it began
    are the last one's."""
    uses: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for place, window in enumerate(windows):
        uses[window.label].append((first_s(window), place))
    for starts in uses.values():
        starts.sort()
    mine: list[list[Mark]] = [[] for _ in windows]
    for mark in marks:
        starts = uses.get(mark.window, [])
        if starts:
            # a name may be used for every save of a run
            last = bisect_right(starts, mark.t_s, key=itemgetter(0)) - 1
            mine[starts[max(last, 0)][1]].append(mark)
    return mine


def first_s(window: Window) -> float:
    """Its first mark."""
    return min(min(span.at_s.values()) for span in window.spans)


def _contents(marks: Sequence[Mark], died_s: float = nan) -> Contents:
    durable = next((mark for mark in reversed(marks) if mark.name == "durable"), None)
    synced = next((mark for mark in reversed(marks) if mark.name == "synced"), None)
    evidence = durable or synced
    return Contents(
        _amount(marks, "bytes"),
        _amount(marks, "files"),
        _mark_text(marks, "path"),
        _mark_text(marks, "of") or "save",
        _error(marks) or _in_flight(marks, died_s),
        str(evidence.detail.get("how", evidence.by)) if evidence else "",
        _mark_text(marks, "durable_why"),
        _number(durable.detail.get("unsure_s")) if durable else nan,
        _gone_s(marks),
        _mark_text(marks, "returned_why"),
    )


def _gone_s(marks: Sequence[Mark]) -> float:
    returned = next((mark for mark in reversed(marks) if mark.name == "returned"), None)
    if returned is None or returned.by != OUTSIDE:
        return nan
    return next((mark.t_s for mark in marks if mark.detail.get("durable_why") == "GONE"), nan)


def _number(value: object) -> float:
    return (
        float(value)
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and isfinite(value)
        and value >= 0
        else nan
    )


def _amount(marks: Sequence[Mark], key: str) -> float:
    """The largest that a rank said, over ranks; of the one who sees the whole where there is
    one."""
    whole: list[float] = []
    of_rank: defaultdict[int, float] = defaultdict(float)
    for mark in marks:
        value = _number(mark.detail.get(key))
        if value == value:
            if mark.by == OUTSIDE:
                whole.append(value)
            of_rank[mark.rank] = max(of_rank[mark.rank], value)
    return max(whole) if whole else sum(of_rank.values()) if of_rank else nan


def _error(marks: Sequence[Mark]) -> str:
    """What ended it. Not what became of it later: a checkpoint that is written and then deleted to
    make room was saved."""
    done = False
    for mark in marks:
        error = mark.detail.get("error")
        if error and not (done and error == GONE):
            return str(error)
        done = done or mark.name in ("written", "synced", "durable")
    return ""


def _in_flight(marks: Sequence[Mark], died_s: float) -> str:
    """Whether its job died while it was being written: then what is there of it is a piece."""
    if not marks or any(mark.name in _WHOLE for mark in marks) or not marks[0].t_s <= died_s:
        return ""
    if _was_told_safe(marks) or _mark_text(marks, "of") == "load":
        return ""
    written_s = [mark.t_s for mark in marks if mark.name == "written"]
    return DIED if not written_s or max(written_s) >= died_s - AT_ONCE_S else ""


def _was_told_safe(marks: Sequence[Mark]) -> bool:
    """By who wrote it, or by an fsync that was seen."""
    return any(
        mark.name == "durable" and (mark.by != OUTSIDE or mark.detail.get("how") == "fsync")
        for mark in marks
    )


def _mark_text(marks: Sequence[Mark], key: str) -> str:
    return next((str(mark.detail[key]) for mark in marks if mark.detail.get(key)), "")
