"""What a grouping of files knows: its rules, what it is told of files, the groups in between, and
what it tells of each, under a label that nobody else has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from posixpath import basename, join
from typing import NamedTuple

from ckptcost.first.watch.names import CONTAINER, ONE_OF, PLAIN, RANK_0, final, numbers_of


@dataclass(frozen=True, slots=True)
class Rules:
    least_bytes: int = 1_000_000
    """of a checkpoint, all files together"""
    gap_s: float = 1.0
    """files that follow each other closer than that belong together"""
    still_s: float = 20.0
    """a file that nobody closes is written when it has not changed for so long"""
    append_s: float = 2.0
    """and one of a format that is added to while it stays open"""
    commit_s: float = 30.0
    """a directory without a sign of its end may get more so long after its last file"""
    unfinished_s: float = 600.0
    """a temporary name, or a part that is missing, so long after the last file: nobody will finish
    it"""

    @property
    def small_bytes(self) -> int:
        """Less than that is a companion, not data."""
        return self.least_bytes // 16

    def still_for_s(self, file: WatchedFile, polled: bool) -> float:
        """How long a file that nobody closed has not changed when it is taken for written."""
        if file.was_there(polled):  # when we looked: its close may have gone by unseen
            return self.gap_s
        return self.append_s if file.appended else self.still_s

    def patience_s(self, group: FileGroup) -> float:
        """How long after its last file a group is waited for."""
        if group.lacks(self.small_bytes):
            return self.unfinished_s
        if group.is_sure:
            return self.gap_s * (5.0 if group.is_unit else 1.0)
        return self.commit_s if group.may_grow else 3.0 * self.gap_s


class FileStat(NamedTuple):
    """Of a file, read without opening it."""

    size: int
    mtime_ns: int
    """wall time, only to be compared"""
    wrote_ns: int | None = None
    """mtime_ns on our clock, where it is lately"""
    born_ns: int | None = None
    """its birth on our clock, where it was asked for and is lately"""


class CheckpointStep(NamedTuple):
    """What is to be told of a checkpoint."""

    name: str
    """begin, written, committed, end"""
    label: str
    t_ns: int
    path: str
    bytes: int
    files: int
    how: str
    error: str = ""
    """of `end`: unfinished, gone"""
    since_ns: int = 0
    """of `written`: the begin, or the first instant that is known"""
    paths: tuple[str, ...] = ()
    """of `written`: the files, less those of an earlier `written`"""


@dataclass(slots=True)
class WatchedFile:
    begin_ns: int | None
    changed_ns: int
    size: int = 0
    mtime_ns: int = 0
    before: int = 0
    """bytes that were there already and stayed"""
    closed_ns: int | None = None
    how: str = "inotify"
    told: bool = False
    appended: bool = False
    """it may stay open between saves: the last write is known, and no close comes"""
    paused: bool = False
    """and has not changed for a moment"""
    claimed: bool = False
    """a process of the job was seen to write it"""

    @property
    def since_ns(self) -> int:
        """Its begin, or the first instant that is known."""
        return self.begin_ns if self.begin_ns is not None else self.changed_ns

    @property
    def was_found(self) -> bool:
        """By looking, not told by an event."""
        return self.how in ("scan", "btime")

    def was_there(self, polled: bool) -> bool:
        """Before its directory was watched: where a close is an event, this one's may have gone by
        unseen."""
        return self.was_found and not polled

    def tells_writes(self, polled: bool) -> bool:
        """By its own times alone: no event does."""
        return not polled and (self.was_found or self.appended)

    def is_only_opened(self, small_bytes: int) -> bool:
        """It may be added to, and holds no more than a head: a save begins with the next write."""
        return self.appended and self.size - self.before < small_bytes


@dataclass(slots=True)
class Opened:
    """A file that somebody opened: a reader, as long as it does not change."""

    first_ns: int
    stat: FileStat | None
    looked: bool = False

    def was_reader(self, stat: FileStat | None) -> bool:
        """Who opened it changed nothing until now."""
        return self.looked or (self.stat is not None and self.stat == stat)


@dataclass(slots=True)
class FileGroup:
    unit: str
    key: str
    is_unit: bool
    since_ns: int
    files: dict[str, WatchedFile] = field(default_factory=dict)
    label: str = ""
    began: bool = False
    commit: tuple[int, str, str] | None = None
    """when, what, how it is known"""
    is_sure: bool = False
    """that the commit is one"""
    gone_bytes: int = 0

    @property
    def bytes(self) -> int:
        return sum(file.size - file.before for file in self.files.values())

    @property
    def may_grow(self) -> bool:
        """A directory, or files of ranks, may get more long after the last one."""
        return self.is_unit or any(
            "rank" in numbers_of(final(basename(path))).kinds for path in self.files
        )

    @property
    def awaits_more(self) -> bool:
        """A directory without a sign of its end."""
        return self.is_unit and not self.is_sure

    def data(self, small_bytes: int) -> dict[str, WatchedFile]:
        """Without companions, if it has anything else; a directory's files all count."""
        large = {
            path: file
            for path, file in self.files.items()
            if file.size - file.before >= small_bytes or file.closed_ns is None
        }
        return (
            self.files
            if self.is_unit or not any(file.size >= small_bytes for file in large.values())
            else large
        )

    def first_path(self, small_bytes: int) -> str:
        return self.unit if self.is_unit else min(self.data(small_bytes))

    @property
    def is_open(self) -> bool:
        return any(file.closed_ns is None for file in self.files.values())

    def last_ns(self, small_bytes: int) -> int:
        """The last thing that happened to it."""
        last_ns = max(file.changed_ns for file in self.data(small_bytes).values())
        return max(last_ns, self.commit[0]) if self.commit is not None else last_ns

    def lacks(self, small_bytes: int) -> bool:
        """It is not what it is going to be: a temporary name, a part of several that is not there,
        no metadata from rank 0."""
        finished = {basename(path) for path in self.data(small_bytes)}
        if self.is_unit:
            finished.add(basename(self.unit))
        names = {basename(path) for path in self.files}
        return (
            any(final(name) != name for name in finished)
            or _lacks_parts(names)
            or (any(map(RANK_0.fullmatch, names)) and ".metadata" not in names)
        )


def _lacks_parts(names: Collection[str]) -> bool:
    parts = Counter(
        (found[1], found[3], found[4]) for found in map(ONE_OF.fullmatch, names) if found
    )
    return any(there < int(of) for (_, of, _), there in parts.items())


def _common_start(names: list[str]) -> str:
    first, last = min(names), max(names)
    pairs = enumerate(zip(first, last, strict=False))
    return next((first[:at] for at, (a, b) in pairs if a != b), first)


def _shared_name(names: list[str], above: str) -> str:
    """What files side by side are called together: by the directory above, where their own names
    say nothing of a run."""
    first = final(names[0])
    base = numbers_of(first).cut
    if len(names) > 1 and base == first:
        common = _common_start(names)
        base = common.rstrip("-_=. 0") if len(common) > 2 else above or base
    if above and not CONTAINER.fullmatch(above) and PLAIN.fullmatch(base.partition(".")[0]):
        return above
    return base or above or names[0]


class StepLog:
    """Keeps the labels that were given; `out` is what is to be told."""

    def __init__(self, small_bytes: int) -> None:
        self._small = small_bytes
        self._labels: dict[str, str] = {}
        self.out: list[CheckpointStep] = []

    def label_of(self, group: FileGroup, *, sure: bool) -> str:
        """Empty as long as nothing is known that would do, unless it must be said now."""
        names = [basename(path) for path in group.data(self._small)]
        above = basename(group.key)
        said = final(above if group.is_unit else names[0])
        if not said and not sure:
            return ""
        if group.is_unit:
            return self._unique(said or above, group.key)
        base = _shared_name(names, above)
        return self._unique(base, join(group.key, base))

    def _unique(self, base: str, key: str) -> str:
        """Two places get two names, as long as their paths differ; then they are counted."""
        label = base if self._labels.get(base, key) == key else key
        count, name = 1, label
        while name in self._labels:
            count += 1
            name = f"{label} ({count})"
        self._labels[name] = key
        return name

    def begin(self, group: FileGroup, *, sure: bool) -> None:
        """Once, as soon as there is a label; `sure`: now, whatever is known."""
        if group.began:
            return
        group.label = group.label or self.label_of(group, sure=sure)
        if not group.label:
            return
        group.began = True
        begin = self._begin_of(group)
        if begin is not None:
            self.say(group, "begin", begin[0], group.first_path(self._small), begin[1])

    def _begin_of(self, group: FileGroup) -> tuple[int, str] | None:
        known = [
            (file.begin_ns, file.how)
            for file in group.data(self._small).values()
            if file.begin_ns is not None
        ]
        if not known:
            return None
        first = min(known)
        return (group.since_ns, first[1]) if group.is_unit and group.since_ns < first[0] else first

    def say(
        self,
        group: FileGroup,
        name: str,
        t_ns: int,
        path: str,
        how: str,
        error: str = "",
        since_ns: int = 0,
        paths: tuple[str, ...] = (),
    ) -> None:
        self.out.append(
            CheckpointStep(
                name,
                group.label,
                t_ns,
                path,
                group.bytes,
                len(group.files),
                how,
                error,
                since_ns,
                paths,
            )
        )

    def written(self, group: FileGroup) -> None:
        """The files since the last time, where data is among them."""
        self.begin(group, sure=True)
        paths = [path for path, file in group.files.items() if not file.told]
        data = group.data(self._small)
        if not any(path in data for path in paths):
            return
        for path in paths:
            group.files[path].told = True
        last = max((file.closed_ns or file.changed_ns, file.how) for file in data.values())
        first = min(file.since_ns for file in group.files.values())
        path = group.unit if group.is_unit else max(data, key=lambda each: data[each].changed_ns)
        self.say(
            group,
            "written",
            last[0],
            path,
            last[1],
            since_ns=min(first, group.since_ns),
            paths=tuple(sorted(paths)),
        )
