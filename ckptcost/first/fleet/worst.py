"""Where to look first: the saves that cost most, the hosts that everybody waited for, and the jobs
that lose most."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isnan, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ckptcost.first.core.units import to_hours, to_kwh
from ckptcost.first.fleet.bill_tables import plain, row_of
from ckptcost.first.fleet.grouping import flags, instants, numbered, numbers, sum_by_place, texts
from ckptcost.first.present.words import line_label
from ckptcost.first.report.statement import instant
from ckptcost.first.report.study import Column, Table

if TYPE_CHECKING:
    from ckptcost.first.fleet.figures import Fleet
    from ckptcost.first.fleet.lines import FleetLine
    from ckptcost.first.fleet.part import StorePart


class WorstSave(NamedTuple):
    job: str
    run: str
    day: str
    label: str
    load: bool
    failed: bool
    begin_ns: int
    stall_s: float
    lost_gpu_s: float
    """own and waiting"""
    wait_gpu_s: float
    slowest: str
    """the host that returned last"""


class WorstHost(NamedTuple):
    host: str
    jobs: int
    windows: int
    slowest: int
    """how often it was the last"""
    blamed_gpu_s: float
    """others' waiting that it caused"""
    blamed_j: float
    share: float
    """of all waiting in the fleet"""


class WorstJob(NamedTuple):
    job: str
    lost_gpu_s: float
    share: float
    """of what all jobs lost"""
    most: str
    """the line that holds most of it"""


class Worst(NamedTuple):
    saves: tuple[WorstSave, ...]
    hosts: tuple[WorstHost, ...]
    jobs: tuple[WorstJob, ...]


def worst_of(part: StorePart, fleet: Fleet, most: int = 10) -> Worst:
    """Up to so many of each, the worst first; what lost nothing is not among them."""
    return Worst(_saves(part, most), _hosts(part, most), _jobs(fleet, most))


def _saves(part: StorePart, most: int) -> tuple[WorstSave, ...]:
    windows = part.windows
    own, waited = (np.nan_to_num(numbers(windows, name)) for name in ("own_gpu_s", "wait_gpu_s"))
    lost = own + waited
    rows = np.flatnonzero(lost > 0)
    if len(rows) > most:  # those that are not among the first need no order
        least = np.partition(lost[rows], len(rows) - most)[len(rows) - most] if most else inf
        rows = rows[lost[rows] >= least]
    some = windows.iloc[rows]
    columns = zip(
        *(texts(some, name) for name in ("job", "run", "day", "label")),
        flags(some, "load").tolist(),
        flags(some, "failed").tolist(),
        instants(some, "begin_ns").tolist(),
        numbers(some, "stall_s").tolist(),
        lost[rows].tolist(),
        numbers(some, "wait_gpu_s").tolist(),
        texts(some, "slowest"),
        strict=True,
    )
    found = [WorstSave(*each) for each in columns]
    return tuple(
        sorted(found, key=lambda save: (-save.lost_gpu_s, save.begin_ns, save.job, save.run))[:most]
    )


def _hosts(part: StorePart, most: int) -> tuple[WorstHost, ...]:
    nodes = part.nodes
    hosts, place = numbered(texts(nodes, "host"))
    many = len(hosts)
    sums = {
        name: sum_by_place(numbers(nodes, name), place, many)
        for name in ("windows", "slowest", "blamed_gpu_s", "blamed_j")
    }
    joules_known = (
        np.bincount(place, weights=~np.isnan(numbers(nodes, "blamed_j")), minlength=many) > 0
    )
    waited = float(np.nansum(numbers(nodes, "wait_gpu_s")))
    jobs: list[set[str]] = [set() for _ in range(many)]
    for at, job in zip(place.tolist(), texts(nodes, "job"), strict=True):
        jobs[at].add(job)
    blamed = sums["blamed_gpu_s"].tolist()
    worst = sorted((-blamed[at], host, at) for host, at in hosts.items() if blamed[at] > 0)[:most]
    return tuple(
        WorstHost(
            host,
            len(jobs[at]),
            int(sums["windows"][at]),
            int(sums["slowest"][at]),
            blamed[at],
            float(sums["blamed_j"][at]) if joules_known[at] else nan,
            blamed[at] / waited if waited > 0 else nan,
        )
        for _, host, at in worst
    )


def _jobs(fleet: Fleet, most: int) -> tuple[WorstJob, ...]:
    whole = fleet.whole.totals.gpu_s.value
    lost = [group for group in fleet.jobs if group.totals.gpu_s.value > 0]
    lost.sort(key=lambda group: (-group.totals.gpu_s.value, group.name))
    return tuple(
        WorstJob(
            group.name,
            group.totals.gpu_s.value,
            group.totals.gpu_s.value / whole,
            _most(group.lines),
        )
        for group in lost[:most]
    )


def _most(lines: Iterable[FleetLine]) -> str:
    return max(lines, key=lambda line: -inf if isnan(line.gpu_s.value) else line.gpu_s.value).id


def worst_job_table(found: Worst) -> Table:
    """And in which line."""
    rows = [
        {
            "job": each.job,
            "gpu_hours": plain(to_hours(each.lost_gpu_s)),
            "share": plain(each.share),
            "most": line_label(each.most),
        }
        for each in found.jobs
    ]
    columns = (
        Column("job", "job"),
        Column("gpu_hours", "GPU-h lost", "GPU-h"),
        Column("share", "of all", "share", "of what the whole fleet lost"),
        Column("most", "most of it"),
    )
    return Table("worst_jobs", "The jobs that lost most", columns, rows, shown=len(rows) > 1)


def worst_tables(found: Worst) -> list[Table]:
    """Where to look first."""
    saves = [
        {
            "job": each.job,
            "what": each.label or "(no label)",
            "began": instant(each.begin_ns / 1e9),
            "stall": plain(each.stall_s),
            "gpu_hours": plain(to_hours(each.lost_gpu_s)),
            "waiting": each.wait_gpu_s / each.lost_gpu_s,
            **row_of(each, {name: name for name in ("slowest", "load", "failed", "run")}),
        }
        for each in found.saves
    ]
    hosts = [
        {
            "host": each.host,
            "gpu_hours": plain(to_hours(each.blamed_gpu_s)),
            "kwh": plain(to_kwh(each.blamed_j)),
            **row_of(each, {name: name for name in ("share", "slowest", "windows", "jobs")}),
        }
        for each in found.hosts
    ]
    return [
        Table(
            "waited_for",
            "Who was waited for",
            (
                Column("host", "host"),
                Column(
                    "gpu_hours",
                    "GPU-h waited",
                    "GPU-h",
                    "by nodes that were done; each moment's cause in equal parts is who is not",
                ),
                Column("kwh", "kWh", "kWh", "of waiting nodes, as metered in their own stalls"),
                Column("share", "of all waiting", "share"),
                Column("slowest", "last", "count", "how often"),
                Column("windows", "saves, loads", "count"),
                Column("jobs", "jobs", "count", shown=False),
            ),
            hosts,
            shown=bool(hosts),
        ),
        Table(
            "worst",
            "The saves and loads that cost most",
            (
                Column("job", "job"),
                Column("what", "which"),
                Column("began", "began"),
                Column("slowest", "last host"),
                Column("stall", "stall", "s"),
                Column("gpu_hours", "GPU-h lost", "GPU-h"),
                Column("waiting", "waiting", "share", "of that: nodes that were done and stood"),
                Column("load", "load", "bool", shown=False),
                Column("failed", "failed", "bool", shown=False),
                Column("run", "run", shown=False),
            ),
            saves,
            shown=bool(saves),
        ),
    ]
