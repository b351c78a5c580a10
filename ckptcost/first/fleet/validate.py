"""Which node files of a job's day count. What cannot be read, is there twice or keeps another time
is set aside, and said why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ckptcost.first.core.units import DAY_S
from ckptcost.first.errors import InputError
from ckptcost.first.fleet.node_day import COLUMNS, NodeDayHead
from ckptcost.first.fleet.node_file import BadNodeFile, decode
from ckptcost.first.fleet.same_save import names_of
from ckptcost.first.fleet.store import folder_of

if TYPE_CHECKING:
    from ckptcost.first.fleet.store import Store, StoreEntry

UNREADABLE: Final = "UNREADABLE"
MISPLACED: Final = "MISPLACED"
DUPLICATE: Final = "DUPLICATE"
DUPLICATE_JOB: Final = "DUPLICATE_JOB"
SECOND_METER: Final = "SECOND_METER"
SKEWED: Final = "SKEWED"
UNSTEADY: Final = "UNSTEADY"

SKEW_S: Final = 300.0
"""a clock so far off the other nodes', or off the day that its file is of, is not corrected but set
aside"""
AT_ONCE_S: Final = 60.0
"""recorders of two runs may both be there for so long where one run takes over from another"""
NEEDED: Final = tuple(name for name in COLUMNS if name not in ("label", "ranks"))
"""columns that are read of all files; labels take as long as all of these together, and are wanted
of a few windows only"""


@dataclass(frozen=True, slots=True)
class ValidFile:
    """A file that can be read."""

    path: str
    head: NodeDayHead
    rows: dict[str, Any]

    @property
    def many(self) -> int:
        return len(self.rows["key"])

    @property
    def order(self) -> tuple[str, str, str]:
        """Sums are taken in this order, whatever the order of the listing."""
        return self.head.run, self.head.host, self.path


class FileVerdict(NamedTuple):
    """A row of part.FILES; `rows` is NaN where the file could not be read."""

    path: str
    job: str
    run: str
    host: str
    day: str
    code: str
    text: str
    rows: float


def verdict(file: ValidFile, code: str = "", text: str = "") -> FileVerdict:
    head = file.head
    return FileVerdict(
        plain(file.path), head.job, head.run, head.host, head.day, code, text, float(file.many)
    )


def _unread_verdict(entry: StoreEntry, code: str, text: str) -> FileVerdict:
    return FileVerdict(plain(entry.path), entry.job, "", "", entry.day, code, text, np.nan)


def plain(text: str) -> str:
    """A file's name may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def read_in(
    store: Store, entries: Iterable[StoreEntry], columns: Sequence[str] = NEEDED
) -> tuple[list[ValidFile], list[FileVerdict]]:
    """Files that can be read and are where they belong, and the others."""
    seen, aside = [], []
    for entry in sorted(entries, key=lambda entry: entry.path):
        try:
            head, rows = decode(store.read(entry.path), columns, plain(entry.path), own=False)
        except BadNodeFile as error:
            aside.append(_unread_verdict(entry, error.code, error.text))
            continue
        except InputError as error:  # of a file that went away since it was listed
            aside.append(_unread_verdict(entry, UNREADABLE, error.problem))
            continue
        except OSError as error:
            why = f"could not be read ({error.strerror or error})"
            aside.append(_unread_verdict(entry, UNREADABLE, why))
            continue
        file = ValidFile(entry.path, head, dict(rows))
        fault = _misplacement(file, entry)
        if fault:
            aside.append(verdict(file, *fault)._replace(job=entry.job, day=entry.day))
        else:
            seen.append(file)
    return seen, aside


def _misplacement(file: ValidFile, entry: StoreEntry) -> tuple[str, str] | None:
    head = file.head
    if entry.path.rpartition("/")[0] != f"job={folder_of(head.job)}/day={head.day}":
        return (
            MISPLACED,
            f"is of job {head.job} on {head.day}, and lies where {entry.job} on {entry.day} is",
        )
    try:
        begin_ns, until_ns = day_of(head.day)
    except ValueError:
        return MISPLACED, f"lies under {head.day}, which is no day"
    # the rows and the file's own first and last reading, by one clock: a recorder names the day by
    # that clock, too
    named = [each for each in (head.began_ns, head.until_ns) if each]
    if file.many and "begin_ns" in file.rows:
        named += [int(file.rows["begin_ns"].min()), int(file.rows["begin_ns"].max())]
    slack_ns = int(SKEW_S * 1e9)
    off = [each for each in named if not begin_ns - slack_ns <= each <= until_ns + slack_ns]
    return (
        (SKEWED, f"its clock says {date_of(off[0])} on a day that it calls {head.day}")
        if off
        else None
    )


def one_of_each(files: Iterable[ValidFile]) -> tuple[list[ValidFile], list[FileVerdict]]:
    """One file for each run on each node. What covers more counts."""
    return _counting(files, _twice)


def one_meter(files: Iterable[ValidFile]) -> tuple[list[ValidFile], list[FileVerdict]]:
    """One run for each node at a time. To be asked of files whose clocks are right: with a wrong
    one it seems to overlap with others."""
    return _counting(files, _at_the_same_time)


def _counting(
    files: Iterable[ValidFile], judge: Callable[[ValidFile, ValidFile], tuple[str, str] | None]
) -> tuple[list[ValidFile], list[FileVerdict]]:
    by_host: defaultdict[str, list[ValidFile]] = defaultdict(list)
    for file in files:
        by_host[file.head.host].append(file)
    kept: list[ValidFile] = []
    aside: list[FileVerdict] = []
    for same in by_host.values():
        counting: list[ValidFile] = []
        for file in sorted(same, key=_worth) if len(same) > 1 else same:
            fault = next((fault for other in counting if (fault := judge(file, other))), None)
            if fault:
                aside.append(verdict(file, *fault))
            else:
                counting.append(file)
        kept += counting
    return sorted(kept, key=lambda file: file.order), aside


def _worth(file: ValidFile) -> tuple[float, int, int, str]:
    """First what covers more seconds, then what ends later, then more rows."""
    covered_s = file.head.covered_s
    return -covered_s if covered_s == covered_s else 0.0, -file.head.until_ns, -file.many, file.path


def _twice(file: ValidFile, other: ValidFile) -> tuple[str, str] | None:
    """Whether the other one, which covers more, makes this one count twice."""
    mine, its = file.head, other.head
    if mine.run != its.run:
        return None
    if mine.meter and its.meter and mine.meter != its.meter and _at_once(file, other):
        return (
            SECOND_METER,
            f"a second recorder on {mine.host} at the same time; {plain(other.path)} counts",
        )
    return DUPLICATE, f"the same run on the same host and day as {plain(other.path)}, which counts"


def _at_the_same_time(file: ValidFile, other: ValidFile) -> tuple[str, str] | None:
    """Whether both counted the same joules."""
    mine, its = file.head, other.head
    if (
        mine.run != its.run
        and _at_once(file, other)
        and ((_has_gpu(file) and _has_gpu(other)) or _same_saves(file.rows, other.rows))
    ):
        return (
            SECOND_METER,
            (
                f"run {its.run} was recorded on {mine.host} at the same time; {plain(other.path)}"
                " counts"
            ),
        )
    return None


def _at_once(file: ValidFile, other: ValidFile) -> bool:
    (since_ns, until_ns), (its_since_ns, its_until_ns) = _span_ns(file), _span_ns(other)
    return min(until_ns, its_until_ns) - max(since_ns, its_since_ns) > AT_ONCE_S * 1e9


def _span_ns(file: ValidFile) -> tuple[int, int]:
    """Where the head does not say, the rows do; where there are none, it may be the whole day."""
    head, begins = file.head, file.rows["begin_ns"]
    since_ns, until_ns = (int(begins.min()), int(begins.max())) if len(begins) else day_of(head.day)
    return head.began_ns or since_ns, head.until_ns or until_ns


def _has_gpu(file: ValidFile) -> bool:
    total_j = file.head.gpu_total_j
    return total_j == total_j or bool((~np.isnan(file.rows["gpu_j"])).any())


def _same_saves(some: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """The label alone does not say it: who goes on from a save comes to the same steps again."""
    _, mine, its = np.intersect1d(names_of(some), names_of(other), return_indices=True)
    return bool((np.abs(some["begin_ns"][mine] - other["begin_ns"][its]) < AT_ONCE_S * 1e9).any())


def heads_apart(files: Iterable[ValidFile]) -> list[tuple[str, FileVerdict]]:
    """Of files of one run, host and day under several jobs: the paths of the ones that do not
    count, and why."""
    same_node: defaultdict[tuple[str, str, str], list[ValidFile]] = defaultdict(list)
    for file in files:
        same_node[file.head.run, file.head.host, file.head.day].append(file)
    found = []
    for same in same_node.values():
        first, *others = sorted(same, key=_worth)
        for file in others:
            if file.head.job != first.head.job:
                text = (
                    f"the same run on the same host and day is under job {first.head.job}, too;"
                    " that one counts"
                )
                found.append((file.path, verdict(file, DUPLICATE_JOB, text)))
    return found


def day_of(day: str) -> tuple[int, int]:
    """Unix ns of its first instant and of the next day's.

    >>> day_of("1970-01-02")
    (86400000000000, 172800000000000)
    """
    if len(day) != len("2026-11-20"):
        raise ValueError(f"{day} is not a day")
    begin_ns = int(np.datetime64(day, "D").astype("datetime64[ns]").astype(np.int64))
    return begin_ns, begin_ns + int(DAY_S) * 10**9


def date_of(instant_ns: int) -> str:
    return str(np.datetime64(int(instant_ns), "ns").astype("datetime64[D]"))
