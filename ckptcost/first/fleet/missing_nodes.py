"""Which nodes a job's run should have, which of them said nothing on which days, and how many saves
and loads that leaves out.

A launcher says how many nodes a run has, and often their names. A node without a file that counts
is missing, for one reason or another; one with a file that is silent on a save that others made
stood there with them. Both lack windows, and both are told by name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from math import inf, nan
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote

import numpy as np

from ckptcost.first.core.bill import electricity_usd_per_j, storage_usd_per_j
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.estimates import Estimate, Floats
from ckptcost.first.core.missing import missing_share
from ckptcost.first.fleet.grouping import (
    Places,
    RunCells,
    add_by_place,
    flags,
    numbered,
    numbers,
    quotients,
    sum_by_place,
    texts,
)
from ckptcost.first.fleet.lines import CellLine, FleetAmounts, line_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.fleet.part import StorePart


NO_FILE: Final = "NO_FILE"
SILENT: Final = "SILENT"
MOST_NAMES: Final = 200_000
"""nodes that a launcher's list may name; a longer one is taken for a slip of the pen, and says
nothing"""
_PIECE: Final = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)")
_NAME: Final = re.compile(r"(?:\[[^\[\]]*\]|[^\[\],\s])+")
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")


class Absent(NamedTuple):
    """A node that did not say what it should have."""

    host: str
    why: str
    """NO_FILE, SILENT, or the code with which its file was set aside"""
    windows: int
    """saves and loads of the others that it lacks"""
    days: tuple[str, ...]


class Lacking(NamedTuple):
    """Of one run of a job."""

    job: str
    run: str
    expected: int
    """nodes"""
    hosts: int
    """that have a file that counts, on any day"""
    missing: tuple[Absent, ...]
    unnamed: int
    """further missing nodes, of which nobody knows the name"""
    unnamed_windows: int
    """that each of them lacks"""
    silent: tuple[Absent, ...]
    of_cells: Mapping[int, float]
    """windows lacking by cell, nodes added up"""

    @property
    def each(self) -> tuple[float, ...]:
        """Windows that each node lacks."""
        named = tuple(float(node.windows) for node in (*self.missing, *self.silent) if node.windows)
        return named + (float(self.unnamed_windows),) * (
            self.unnamed if self.unnamed_windows else 0
        )


def names_of(text: str) -> tuple[str, ...]:
    """The hosts of a launcher's list; none where it cannot be read, or names more than MOST_NAMES.

    >>> names_of("n[08-10,7],m4"), names_of("r[1-2]n[1,3]-ib")
    (('n08', 'n09', 'n10', 'n7', 'm4'), ('r1n1-ib', 'r1n3-ib', 'r2n1-ib', 'r2n3-ib'))
    """
    if re.sub(_NAME, "", text).strip(", \t\r\n"):
        return ()
    found: dict[str, None] = {}
    for name in _NAME.findall(text):
        room = MOST_NAMES - len(found)
        parts: list[list[str]] = []
        count = 1
        for inside, plain in _PIECE.findall(name):
            some = [plain] if plain else _number_ranges(inside, room)
            if not some or (count := count * len(some)) > room:
                return ()
            parts.append(some)
        found.update((("".join(each), None)) for each in product(*parts))
    return tuple(found)


def _number_ranges(inside: str, room: int) -> list[str]:
    """001-003,7: as many digits as the first of a range has. None where it is no such list, or a
    longer one than there is room for."""
    found: list[str] = []
    for piece in inside.split(","):
        ends = _RANGE.fullmatch(piece.strip())
        if ends is None or len(ends[0]) > 40:  # no host has such a number, and int() is slow on it
            return []
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not 0 <= last - first < room - len(found):
            return []
        found += [f"{number:0{len(ends[1])}d}" for number in range(first, last + 1)]
    return found


def lacking_of(part: StorePart, cells: RunCells) -> tuple[Lacking, ...]:
    """Every run, by job and run, complete ones too."""
    windows = np.bincount(cells.of_windows, minlength=cells.many).tolist()
    present: list[set[str]] = [set() for _ in range(cells.many)]
    for cell, host in zip(cells.of_heads.tolist(), texts(part.heads, "host"), strict=True):
        present[cell].add(host)
    spoke: defaultdict[tuple[int, str], int] = defaultdict(int)
    said = np.nan_to_num(numbers(part.nodes, "windows")).astype(np.int64).tolist()
    for cell, host, count in zip(
        cells.of_nodes.tolist(), texts(part.nodes, "host"), said, strict=True
    ):
        spoke[cell, host] += count
    aside = _set_aside(part.files, cells)
    launched = _launched_nodes(part.heads, cells)
    return tuple(
        _of_run(cells, key, places, windows, present, spoke, aside, *launched.get(key, (0, ())))
        for key, places in sorted(cells.of_runs.items())
    )


def _of_run(
    cells: RunCells,
    key: tuple[str, str],
    places: list[int],
    windows: list[int],
    present: list[set[str]],
    spoke: Mapping[tuple[int, str], int],
    aside: Mapping[int, Mapping[str, str]],
    nodes: int,
    names: tuple[str, ...],
) -> Lacking:
    hosts = set().union(*(present[cell] for cell in places))
    known = hosts.union(*(aside.get(cell, ()) for cell in places))
    expected = max(nodes, len(known), len(names))
    others = _not_among(known, names, expected)
    lacks: dict[int, float] = {}
    missing: _LacksOf = defaultdict(list)
    silent: _LacksOf = defaultdict(list)
    unnamed = expected - len(known) - len(others)
    everybody = known.union(others)
    for cell in places:
        here = present[cell]
        lacks[cell] = float(windows[cell] * unnamed)
        for host in everybody:
            quiet = windows[cell] - spoke.get((cell, host), 0)
            if host in here:
                if quiet > 0:
                    silent[host, SILENT].append((cells.day[cell], quiet))
            elif here or quiet > 0:
                # a day of which nobody has a file: the last save before midnight, by a clock that
                # is ahead
                why = aside.get(cell, {}).get(host, NO_FILE)
                missing[host, why].append((cells.day[cell], quiet))
            lacks[cell] += max(quiet, 0)
    return Lacking(
        *key,
        expected,
        len(hosts),
        _absent(missing),
        unnamed,
        sum(windows[cell] for cell in places),
        _absent(silent),
        lacks,
    )


def _not_among(known: AbstractSet[str], names: Iterable[str], expected: int) -> list[str]:
    """Names that are no known host's, with or without its domain; none where the launcher calls the
    nodes by other names than they do themselves."""
    short = known | {host.split(".", 1)[0] for host in known}
    others = [name for name in names if short.isdisjoint((name, name.split(".", 1)[0]))]
    return others if len(known) + len(others) <= expected else []


_LacksOf = defaultdict[tuple[str, str], list[tuple[str, int]]]
"""by host and why: day and windows"""


def _absent(found: _LacksOf) -> tuple[Absent, ...]:
    absent = []
    for (host, why), lacks in sorted(found.items()):
        days, windows = zip(*lacks, strict=True)
        absent.append(Absent(host, why, sum(windows), tuple(sorted({*days}))))
    return tuple(absent)


def _launched_nodes(
    heads: DataFrame, cells: RunCells
) -> dict[tuple[str, str], tuple[int, tuple[str, ...]]]:
    """By run, the most nodes and the longest list that any of its nodes was told."""
    found: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}
    read: dict[str, tuple[str, ...]] = {}
    counts = [
        int(count) if 0 < count <= MOST_NAMES else 0
        for count in np.nan_to_num(numbers(heads, "nodes")).tolist()
    ]
    lists = texts(heads, "node_names")
    for cell, nodes, text in sorted(set(zip(cells.of_heads.tolist(), counts, lists, strict=True))):
        if text not in read:
            read[text] = names_of(text)
        most, names = found.get((cells.job[cell], cells.run[cell]), (0, ()))
        found[cells.job[cell], cells.run[cell]] = max(most, nodes), max(names, read[text], key=len)
    return found


def _set_aside(files: DataFrame, cells: RunCells) -> dict[int, dict[str, str]]:
    """By cell, the hosts of files that do not count and the code of each. What a broken file was of
    is in its name only."""
    found: dict[int, dict[str, str]] = {}
    if not len(files):
        return found
    of_day: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for cell, key in enumerate(zip(cells.job, cells.day, strict=True)):
        of_day[key].append(cell)
    bad = files[files["code"].astype("str") != ""]
    rows = zip(
        *(texts(bad, name) for name in ("path", "job", "run", "host", "day", "code")), strict=True
    )
    for path, job, run, host, day, code in rows:
        for cell in of_day.get((job, day), []):
            mine = (
                host
                if run == cells.run[cell]
                else _host_in(path, cells.run[cell])
                if not run
                else ""
            )
            if mine:
                found.setdefault(cell, {}).setdefault(mine, code)
                break
    return found


def _host_in(path: str, run: str) -> str:
    """From <host>-<run, its first 12>-<sum>.parquet, if it is of this run.

    >>> _host_in("job=a/day=2026-11-20/n-07-3f2a-8899aabb.parquet", "3f2a")
    'n-07'
    """
    stem = path.rsplit("/", 1)[-1].removesuffix(".parquet").rpartition("-")[0]
    for end in _ends_of(run[:12]):
        if run and stem.endswith(f"-{end}"):
            return unquote(stem[: -len(end) - 1])
    return ""


def _ends_of(run: str) -> Iterable[str]:
    return dict.fromkeys((quote(run, safe=""), run))


# What nodes that are missing would have said of the saves and loads that they lack: at the mean
# of the nodes that are there. What the others waited for a missing node nobody can see, so where
# a straggler is missing this is too little.


class _Mean(NamedTuple):
    """Of each present node of a run, in the mean of its windows."""

    energy_j: Floats
    storage_j: Floats
    """of that"""
    gpu_s: Floats


def missing_line(
    nodes: DataFrame, cells: RunCells, lacking: Sequence[Lacking], s: Scenario | None
) -> CellLine:
    """The windows that are lacking at the mean of the nodes that are there, all lines together; by
    day as they lack."""
    some = {(each.job, each.run): each for each in lacking if each.each}
    columns = np.zeros((3, 5, cells.many))
    of_run = _rows_of_runs(cells)
    for key, run in some.items():
        mean = _means(nodes.iloc[of_run[key]] if key in of_run else nodes.iloc[:0])
        whole = sum(run.of_cells.values())
        estimates = [
            missing_share(each, run.each) for each in (mean.energy_j, mean.gpu_s, _usd(mean, s))
        ]
        for column, estimate in zip(columns, estimates, strict=True):
            low, high = ends_of(estimate)
            for cell, windows in run.of_cells.items():
                share = windows / whole
                column[4, cell] += windows
                if estimate.known:
                    column[:4, cell] += (
                        estimate.value * share,
                        low * share,
                        high * share if windows else 0.0,
                        windows,
                    )
    energy, gpu_s, costs = (FleetAmounts.of_sums(*column) for column in columns)
    return line_of(s, "missing_nodes", energy, gpu_s, costs=costs)


def ends_of(estimate: Estimate) -> tuple[float, float]:
    """One node alone says nothing of how they differ."""
    return (
        0.0 if estimate.low is None else estimate.low,
        inf if estimate.high is None else estimate.high,
    )


def _rows_of_runs(cells: RunCells) -> dict[tuple[str, str], list[int]]:
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, cell in enumerate(cells.of_nodes.tolist()):
        found[cells.job[cell], cells.run[cell]].append(row)
    return found


def _means(nodes: DataFrame) -> _Mean:
    hosts, place = numbered(texts(nodes, "host"))

    def total(name: str) -> Floats:
        return sum_by_place(numbers(nodes, name), place, len(hosts))

    def per_window(name: str, known: Floats) -> Floats:
        return quotients(total(name), known)

    saves = quotients(total("saves"), total("windows"), 0.0)
    each = {}
    for line in ("gpu", "host", "slow", "storage"):
        known = total(f"{line}_windows")
        # of saves only, unless it is known of more windows than there are saves
        share = saves if line in ("slow", "storage") and not (known > total("saves")).any() else 1.0
        each[line] = per_window(f"{line}_j", known) * share
    each["wait"] = per_window("wait_j", _where_known(nodes, "wait_j", place, len(hosts)))
    energy_j = _together([each[line] for line in ("gpu", "host", "slow", "wait", "storage")])
    time = [
        per_window(name, _where_known(nodes, name, place, len(hosts)))
        for name in ("own_gpu_s", "wait_gpu_s")
    ]
    return _Mean(energy_j, each["storage"], time[0] + time[1])


def _where_known(nodes: DataFrame, name: str, place: Places, hosts: int) -> Floats:
    lacking = np.isnan(numbers(nodes, name))
    return add_by_place(np.where(lacking, 0.0, numbers(nodes, "windows")), place, hosts)


def _together(parts: Sequence[Floats]) -> Floats:
    """What no node meters is left out, as it is of the lines of those that are there."""
    some = [part for part in parts if not np.isnan(part).all()]
    return np.asarray(sum(some)) if some else np.full(len(parts[0]), nan)


def _usd(mean: _Mean, s: Scenario | None) -> Floats:
    """As the lines of the nodes that are there are priced, one by one."""
    if s is None:
        return np.full(len(mean.gpu_s), nan)
    pue, tariff, storage = (
        float(each) for each in (s.site.pue, electricity_usd_per_j(s), storage_usd_per_j(s, s.tier))
    )
    stored_j = np.nan_to_num(mean.storage_j)
    rest_j = mean.energy_j - stored_j
    usd = mean.gpu_s * float(s.cluster.usd_per_gpu_s)
    for joules, price in ((rest_j, tariff), (stored_j, storage)):
        if price != 0 and not (joules == 0).all():
            usd = usd + joules * pue * price
    return usd


class WholeJob(NamedTuple):
    """What is missing of bytes. A node that recorded and shows no such save is there, and wrote
    none."""

    times: Floats
    """by window: the run's nodes over those that are there"""
    bytes_missing: FleetAmounts
    """by cell, of completed saves"""


def whole_job_of(part: StorePart, cells: RunCells, lacking: Sequence[Lacking]) -> WholeJob:
    """Bytes at the mean of the nodes that are there; how far off that may be by how much they
    differ."""
    windows, at = part.windows, cells.of_windows
    size, nodes = numbers(windows, "bytes"), numbers(windows, "nodes")
    present = np.zeros(cells.many)
    for cell, _ in {*zip(cells.of_heads.tolist(), texts(part.heads, "host"), strict=True)}:
        present[cell] += 1
    expected = np.zeros(cells.many)
    of_runs = cells.of_runs
    for run in lacking:
        expected[of_runs[run.job, run.run]] = run.expected
    there = np.maximum(np.maximum(present[at], nodes), 1.0)
    absent = np.maximum(expected[at] - there, 0.0)
    done = ~flags(windows, "load") & ~flags(windows, "failed")
    known = done & ~np.isnan(size)
    lacks, wrote, writers = (
        add_by_place(np.where(which, values, 0.0), at, cells.many)
        for which, values in ((done, absent), (known, size), (known, there))
    )
    columns = np.zeros((5, cells.many))
    rows = _rows_of_runs(cells) if lacks.any() else {}
    for run in lacking:
        places = of_runs[run.job, run.run]
        whole, many = float(lacks[places].sum()), float(writers[places].sum())
        if not whole:
            continue
        mean = float(wrote[places].sum()) / many if many else nan
        nodes_of_run = part.nodes.iloc[rows.get((run.job, run.run), [])]
        estimate = _bytes(nodes_of_run, run, whole, mean)
        columns[4, places] = lacks[places]
        if estimate.known:
            share = lacks[places] / whole
            ends = (estimate.value, *ends_of(estimate))
            # no share of an open end is none
            columns[:3, places] = [
                np.multiply(end, share, where=share > 0, out=0.0 * share) for end in ends
            ]
            columns[3, places] = lacks[places]
    return WholeJob((there + absent) / there, FleetAmounts.of_sums(*columns))


def _bytes(nodes: DataFrame, run: Lacking, lacks: float, mean: float) -> Estimate:
    """`mean`: of a node and completed save. Rows of nodes count loads too, so they say how nodes
    differ and no more."""
    each = np.array(
        [float(node.windows) for node in run.missing] + [float(run.unnamed_windows)] * run.unnamed
    )
    each = each * lacks / each.sum() if each.sum() > 0 else np.array([lacks])
    if not len(nodes):
        return missing_share([mean], each)
    hosts, place = numbered(texts(nodes, "host"))
    known = _where_known(nodes, "bytes", place, len(hosts))
    per_node = quotients(sum_by_place(numbers(nodes, "bytes"), place, len(hosts)), known)
    middle = float(np.nanmean(per_node)) if known.any() else nan
    return missing_share(per_node * mean / middle if middle > 0 else [mean], each)
