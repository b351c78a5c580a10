"""One checkpoint seen twice, from inside the job and from outside: the job's own word, and what the
watcher adds to it.

A hook knows when training stood still and the name that people use; the watcher knows when files
were closed, renamed and safe. Where a watched save lies in a hooked one, its marks are told under
the hook's label, for each rank that the job has: a folder speaks for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import OUTSIDE, Contents, by_window, contents_of, first_s
from ckptcost.first.core.phases import windows_of
from ckptcost.first.core.windows import Window

ADDED: Final = ("written", "synced", "committed", "durable")
"""what is taken over from the watcher where the job does not say it"""
KERNEL: Final = ("cachestat", "fiemap")
"""evidence from the page cache"""
JOURNAL_S: Final = 5.0
"""a sync and an empty page cache so far apart are not about the same write"""
SLACK_S: Final = 0.25
"""a watched begin may be told so much before the hook's: an event queue and two threads lie
between"""


def join_marks(marks: Iterable[Mark]) -> list[Mark]:
    """All marks, with every checkpoint under one label.

    >>> told = [
    ...     Mark(1.0, "begin", "step 9", 0, "api"),
    ...     Mark(3.0, "returned", "step 9", 0, "api"),
    ...     Mark(1.1, "begin", "step_9", 0, "watch"),
    ...     Mark(9.0, "durable", "step_9", 0, "watch", {"how": "cachestat"}),
    ... ]
    >>> [(mark.t_s, mark.name, mark.window) for mark in join_marks(told)]
    [(1.0, 'begin', 'step 9'), (3.0, 'returned', 'step 9'), (9.0, 'durable', 'step 9')]
    """
    everything = _settle_marks(list(marks))
    inside = [mark for mark in everything if mark.by != OUTSIDE]
    outside = [mark for mark in everything if mark.by == OUTSIDE]
    saves = [window for window in windows_of(inside) if window.begin_s is not None]
    if not saves or not outside:
        return sorted(everything, key=lambda mark: mark.t_s)
    paths = {
        save.name: _path(mine) for save, mine in zip(saves, by_window(inside, saves), strict=True)
    }
    found = inside + _label_watched_marks(outside, saves, paths)
    return sorted(found, key=lambda mark: mark.t_s)


def _label_watched_marks(
    outside: list[Mark], saves: Sequence[Window], paths: dict[str, str]
) -> list[Mark]:
    """The watcher's marks, those within a hooked save under its label, and a remark on what each
    such save holds."""
    watched = windows_of(outside)
    labels = {window.label for window in watched}
    found = [mark for mark in outside if mark.window not in labels]
    shares: dict[str, tuple[Window, list[tuple[Window, Contents]]]] = {}
    for window, its, what in zip(
        watched, by_window(outside, watched), contents_of(outside, watched), strict=True
    ):
        home = _home(window, saves, paths)
        if home is None:
            found += its
        else:
            found += _under(home, its)
            shares.setdefault(home.name, (home, []))[1].append((window, what))
    together = [_together(home, parts) for home, parts in shares.values()]
    return found + [mark for mark in together if mark.detail["bytes"] == mark.detail["bytes"]]


def _settle_marks(marks: list[Mark]) -> list[Mark]:
    """Where a sync of all files was seen to end, that is when they were safe: an empty page cache
    may be seen before the journal is written, and a little after."""
    synced: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for mark in marks:
        if mark.by == OUTSIDE and mark.name == "synced":
            synced[mark.window, mark.rank].append(mark.t_s)
    return [
        mark
        for mark in marks
        if not (
            mark.by == OUTSIDE
            and mark.name == "durable"
            and mark.detail.get("how") in KERNEL
            and any(
                abs(mark.t_s - at_s) <= JOURNAL_S
                for at_s in synced.get((mark.window, mark.rank), ())
            )
        )
    ]


def _path(marks: Iterable[Mark]) -> str:
    return next((str(mark.detail["path"]) for mark in marks if mark.detail.get("path")), "")


def _home(watched: Window, saves: Sequence[Window], paths: dict[str, str]) -> Window | None:
    """The hooked save that it is part of: its begin lies in it, and where both name a path, the
    paths agree."""
    at_s = first_s(watched)
    within = []
    for save in saves:
        assert save.begin_s is not None
        if save.begin_s - SLACK_S <= at_s <= max(save.last_s, save.begin_s) + SLACK_S:
            within.append(save)
    named = [save for save in within if _same(paths[save.name], watched.label)]
    return max(named or within, key=first_s, default=None)


def _same(path: str, label: str) -> bool:
    """The label is the name of the file or folder that the hook was told, a temporary ending
    apart."""
    name = path.rstrip("/").rpartition("/")[2]
    return bool(name) and (name == label or name.split(".")[0] == label.split(".", maxsplit=1)[0])


def _together(home: Window, parts: Sequence[tuple[Window, Contents]]) -> Mark:
    """A remark with what all watched saves within a hooked one hold together. What has no begin is
    the hook's own path, whose files are counted where nobody watches the folder."""
    assert home.begin_s is not None
    seen = [what for window, what in parts if window.begin_s is not None] or [
        what for _, what in parts
    ]
    amounts: dict[str, object] = {
        "bytes": sum(part.bytes for part in seen),
        "files": sum(part.files for part in seen),
    }
    return Mark(home.begin_s, "note", home.label, home.spans[0].rank, OUTSIDE, amounts)


def _under(home: Window, marks: Sequence[Mark]) -> list[Mark]:
    """The watcher's marks under the hook's label: what a rank has not said itself; the rest stays
    as a remark."""
    found = []
    for one in marks:
        mark = one._replace(
            detail={
                key: value for key, value in one.detail.items() if key not in ("bytes", "files")
            }
        )
        for span in home.spans:
            if (
                mark.name in ADDED
                and mark.name not in span.at_s
                and not (mark.name == "durable" and "synced" in span.at_s)
            ):
                found.append(mark._replace(window=home.label, rank=span.rank))
                continue
            if span is home.spans[0] and mark.detail:
                found.append(mark._replace(window=home.label, name="note"))
    return found
