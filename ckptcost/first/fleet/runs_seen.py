"""The runs of each job by time: how each ended, and where its time went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from math import fsum, inf, isnan, nan
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.estimates import Estimate, Floats, absent, mean_of
from ckptcost.first.core.units import DAY_S
from ckptcost.first.core.useful import RunSpan, Useful, useful_of
from ckptcost.first.fleet.grouping import (
    Places,
    RunCells,
    count_by_place,
    flags,
    instants,
    numbers,
    quotients,
    sum_by_place,
    texts,
)

if TYPE_CHECKING:
    from ckptcost.first.fleet.missing_nodes import Lacking
    from ckptcost.first.fleet.part import StorePart


# GPUs of a run's nodes, and what a node draws while it trains.


_Days = dict[str, dict[str, list[float]]]
"""by host and day"""


def gpus_of(part: StorePart, cells: RunCells) -> dict[tuple[str, str], list[float]]:
    """By job and run, GPUs of each node that says so."""
    return {
        key: [max(chain(*days.values())) for days in hosts.values()]
        for key, hosts in _by_host(part, cells, "gpus").items()
    }


class NodeWatts:
    """Of one node of a run in the mean of its nodes: of GPUs, and of hosts."""

    def __init__(self, part: StorePart, cells: RunCells) -> None:
        self._said = [_by_host(part, cells, name) for name in ("train_gpu_w", "train_host_w")]

    def of(self, job: str, run: str, expected: int) -> tuple[Estimate, Estimate]:
        gpus, hosts = (mean_watts(said.get((job, run), {}), expected) for said in self._said)
        return gpus, hosts


def mean_watts(hosts: _Days, expected: int) -> Estimate:
    """Some of the nodes are a sample of all. All of them are none: how they differ leaves nothing
    open, only how the days do.

    >>> mean_watts({"n1": {"2026-11-02": [900.0]}, "n2": {"2026-11-02": [1100.0]}}, 2)[:3]
    (1000.0, 1000.0, 1000.0)
    >>> [
    ...     round(watts)
    ...     for watts in mean_watts(
    ...         {"n1": {"2026-11-02": [900.0]}, "n2": {"2026-11-02": [1100.0]}}, 3
    ...     )[:3]
    ... ]
    [1000, -271, 2271]
    """
    if not hosts:
        return absent("NO_NODES")
    own = {host: _mean([*chain(*days.values())]) for host, days in sorted(hosts.items())}
    of_nodes = mean_of(list(own.values()))
    if len(hosts) < expected:
        return of_nodes
    by_day: defaultdict[str, list[float]] = defaultdict(list)
    for host, mean_w in own.items():
        for day, said in hosts[host].items():
            # a node that is off for a day makes no other day of it
            by_day[day] += [value - mean_w for value in said]
    of_days = mean_of([_mean(said) for _, said in sorted(by_day.items())])
    reach_w = 0.0 if of_days.high is None else of_days.high - of_days.value
    return Estimate(
        of_nodes.value,
        of_nodes.value - reach_w,
        of_nodes.value + reach_w,
        of_days.stderr,
        of_nodes.n,
    )


def _mean(said: list[float]) -> float:
    return fsum(said) / len(said)


def _by_host(part: StorePart, cells: RunCells, name: str) -> dict[tuple[str, str], _Days]:
    found: dict[tuple[str, str], _Days] = {}
    for cell, host, value in zip(
        cells.of_heads.tolist(),
        texts(part.heads, "host"),
        numbers(part.heads, name).tolist(),
        strict=True,
    ):
        if not isnan(value):
            days = found.setdefault((cells.job[cell], cells.run[cell]), {}).setdefault(host, {})
            days.setdefault(cells.day[cell], []).append(value)
    return found


# How long the saves and loads of each run stood, and which save was its last: what a run's time
# is divided by. A save that was completed took some time, even where nobody says how much: it is
# taken to have been as long as the run's others. Where nobody says it of any, nobody knows how
# much of the run was work.


_NS: Final = 1e-9


class Stalls:
    """One value a run, in the order in which they are given."""

    def __init__(self, part: StorePart, cells: RunCells, of_runs: Sequence[Sequence[int]]) -> None:
        place = np.zeros(cells.many, dtype=np.int64)
        for run, places in enumerate(of_runs):
            place[list(places)] = run
        count, windows = len(of_runs), part.windows
        run_of = place[cells.of_windows]
        load, stall_s = flags(windows, "load"), numbers(windows, "stall_s")
        begin_ns = instants(windows, "begin_ns")
        kept = ~load & ~flags(windows, "failed")
        self.kept_ns = np.zeros(count, dtype=np.int64)
        np.maximum.at(self.kept_ns, run_of[kept], begin_ns[kept])
        saves_s, of_saves, self._no_stall = _fill_unknown(stall_s, kept, run_of, count)
        filled_s, of_loads, self._no_load = _fill_unknown(saves_s, load, run_of, count)
        self.assumed = of_saves + of_loads
        self.save_s = _sums(filled_s, ~load, run_of, count)
        self.load_s = _sums(filled_s, load, run_of, count)
        self.since_kept_s = _sums(
            filled_s, ~load & (begin_ns >= self.kept_ns[run_of]), run_of, count
        )

    def span(self, at: int, began_ns: int, ended_ns: int, failed: bool, base_ns: int) -> RunSpan:
        kept_ns = int(self.kept_ns[at])
        return RunSpan(
            (began_ns - base_ns) * _NS,
            (ended_ns - base_ns) * _NS,
            failed,
            (kept_ns - base_ns) * _NS if kept_ns else -inf,
            float(self.save_s[at]),
            float(self.load_s[at]),
            float(self.since_kept_s[at]),
        )

    def as_known(self, at: int, spent: Useful) -> Useful:
        """Without what rests on times that nobody says. A run that kept nothing has no work,
        whatever its loads took."""
        if self._no_stall[at]:
            spent = spent._replace(stall_s=nan)
        if self._no_load[at]:
            spent = spent._replace(load_s=nan)
        lacking = spent.stall_s != spent.stall_s or spent.load_s != spent.load_s
        return spent._replace(useful_s=nan, goodput=nan) if lacking and spent.useful_s else spent


def _fill_unknown(
    stall_s: Floats, which: NDArray[np.bool_], run_of: Places, count: int
) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """With the mean of those that are known in the run for those that are not; how many these are;
    and where none is known of some."""
    lacking = which & np.isnan(stall_s)
    lacks = count_by_place(lacking, run_of, count)
    if not lacks.any():
        return stall_s, lacks.astype(np.int64), np.zeros(count, dtype=bool)
    known = which & ~np.isnan(stall_s)
    many = count_by_place(known, run_of, count)
    mean_s = quotients(_sums(stall_s, known, run_of, count), many)
    none = (many == 0) & (lacks > 0)
    return (
        np.where(lacking, mean_s[run_of], stall_s),
        np.where(none, 0.0, lacks).astype(np.int64),
        none,
    )


def _sums(values: Floats, which: NDArray[np.bool_], places: Places, count: int) -> Floats:
    return sum_by_place(values[which], places[which], count)


FAILED: Final = "FAILED"
PLANNED: Final = "PLANNED"
OVER: Final = "OVER"
OPEN: Final = "OPEN"
CUT: Final = "CUT"
_ENDED_BY_OTHERS: Final = frozenset({143, -15, 137, -9})
"""a launcher ends the others' processes when one fails: theirs is not the cause, if somebody else
has one"""
_MIDNIGHT_NS: Final = 10 * 10**9
"""a recorder reads each second or so"""
SLACK_NS: Final = 60 * 10**9
"""by which a run may seem to begin before the one that it follows has ended"""


class RunSeen(NamedTuple):
    """One run of a job. Instants by the job's clock."""

    job: str
    run: str
    began_ns: int
    ended_ns: int
    state: str
    """FAILED; PLANNED: it ended as it should, and another one followed; OVER: nothing followed;
    OPEN: nobody saw an end"""
    cause: str
    """of a failure: CUT (the recordings stop), or EXIT_1"""
    nodes: int
    """those that are missing with them"""
    gpus: float
    last_kept_ns: int
    """begin of the last save that was completed, 0 if none"""
    spent: Useful
    """the run's own time, and as `down_s` what passed until the next one; the pieces of a job's
    runs add up to the job's"""
    train_gpu_w: Estimate
    """of one node"""
    train_host_w: Estimate
    running_s: Mapping[int, float]
    """by cell"""
    assumed: int = 0
    """completed saves, and loads, that are taken to have been as long as the others, for nobody
    says how long they were. Where nobody says it of any, stalls (loads) and useful time are NaN,
    and work that was lost has in it what of that stood still"""

    @property
    def own_s(self) -> float:
        return self.spent.wall_s - self.spent.down_s

    @property
    def restart_s(self) -> float:
        """Until the next run, after a failure. A pause that was planned is nobody's loss."""
        return self.spent.down_s if self.state == FAILED else 0.0

    @property
    def last_cell(self) -> int:
        return max(self.running_s)


class _Ended(NamedTuple):
    began_ns: int
    ended_ns: int
    code: int | None
    over: bool
    cut_at_midnight: bool = False
    """its last file goes on to the end of its day, so that there was one of the next day, which is
    lost"""


def runs_of(part: StorePart, cells: RunCells, lacking: Sequence[Lacking]) -> tuple[RunSeen, ...]:
    """By job and time. A run of which no instant is known is left out."""
    nodes = {(each.job, each.run): each.expected for each in lacking}
    of_runs = dict(sorted(cells.of_runs.items()))
    ended = _ends(part, cells)
    by_job: defaultdict[str, list[tuple[str, list[int], _Ended, int]]] = defaultdict(list)
    for at, ((job, run), places) in enumerate(of_runs.items()):
        if (job, run) in ended:
            by_job[job].append((run, places, ended[job, run], at))
    stalls = Stalls(part, cells, list(of_runs.values()))
    gpus, watts = gpus_of(part, cells), NodeWatts(part, cells)
    found = []
    for job, runs in by_job.items():
        runs.sort(key=lambda each: (each[2].began_ns, each[2].ended_ns, each[0]))
        base_ns = runs[0][2].began_ns
        begins_ns = [end.began_ns for _, _, end, _ in runs]
        states = [
            _state(end, _was_followed(end, begins_ns[place + 1 :]))
            for place, (_, _, end, _) in enumerate(runs)
        ]
        spans = [
            stalls.span(at, end.began_ns, end.ended_ns, state == FAILED, base_ns)
            for (_, _, end, at), (state, _) in zip(runs, states, strict=True)
        ]
        for (run, places, end, at), (state, cause), spent in zip(
            runs, states, shares_of(spans), strict=True
        ):
            many = nodes.get((job, run), 0)
            seen = gpus.get((job, run), [])
            found.append(
                RunSeen(
                    job,
                    run,
                    end.began_ns,
                    end.ended_ns,
                    state,
                    cause,
                    many,
                    many * fsum(seen) / len(seen) if seen else nan,
                    int(stalls.kept_ns[at]),
                    stalls.as_known(at, spent),
                    *watts.of(job, run, many),
                    _by_day(cells, places, end, spent.wall_s - spent.down_s),
                    int(stalls.assumed[at]),
                )
            )
    return tuple(found)


def shares_of(spans: Sequence[RunSpan]) -> list[Useful]:
    """Of each of a job's runs, by begin, its own part of what `useful_of` says of all; the time
    until the next is of the one that ended last."""
    found: list[Useful] = []
    place = 0
    while place < len(spans):
        end, longest = _overlapping(spans, place)
        rests = [useful_of(spans[first:end])[:-1] for first in range(place, end)]
        down_s = spans[end].began_s - spans[longest].ended_s if end < len(spans) else 0.0
        for at, (whole, rest) in enumerate(pairwise([*rests, (0.0,) * 7]), place):
            wall_s, between_s, lost_s, stall_s, load_s, useful_s, _ = (
                mine - its for mine, its in zip(whole, rest, strict=True)
            )
            after_s = down_s if at == longest else 0.0
            all_s = wall_s - between_s + after_s
            goodput = useful_s / all_s if all_s > 0 else nan
            times_s = (all_s, after_s, lost_s, stall_s, load_s, useful_s)
            found.append(Useful(*times_s, goodput, int(spans[at].failed)))
        place = end
    return found


def _overlapping(spans: Sequence[RunSpan], place: int) -> tuple[int, int]:
    """Where the runs end that go on beside one another from this one on, and which of them ended
    last."""
    end, longest = place + 1, place
    while end < len(spans) and spans[end].began_s < spans[longest].ended_s:
        if spans[end].ended_s >= spans[longest].ended_s:
            longest = end
        end += 1
    return end, longest


def _was_followed(end: _Ended, later_ns: Sequence[int]) -> bool:
    """Whether one that began later did so when this one was over, by clocks that may differ. One
    that began meanwhile goes on beside it."""
    slack_ns = min(SLACK_NS, (end.ended_ns - end.began_ns) // 2)
    return bool(later_ns) and max(later_ns) >= end.ended_ns - slack_ns


def _state(end: _Ended, followed: bool) -> tuple[str, str]:
    if end.code:
        return FAILED, f"EXIT_{end.code}"
    if end.code is None and not end.over:
        return (FAILED, CUT) if followed and not end.cut_at_midnight else (OPEN, "")
    return (PLANNED if followed else OVER), ""


def _ends(part: StorePart, cells: RunCells) -> dict[tuple[str, str], _Ended]:
    heads = part.heads
    rows: defaultdict[tuple[str, str], list[tuple[int, int, int | None, bool]]] = defaultdict(list)
    whole_days: dict[tuple[str, str], int] = {}
    codes = [None if isnan(code) else int(code) for code in numbers(heads, "exit_code").tolist()]
    ends = np.maximum(instants(heads, "until_ns"), instants(heads, "last_mark_ns")).tolist()
    began, run_began = instants(heads, "began_ns"), instants(heads, "run_began_ns")
    # where files of its first days are lost, those of later days know when it began
    begins_ns = np.where((run_began > 0) & (run_began < began), run_began, began).tolist()
    own_until_ns = instants(heads, "until_ns") + np.rint(
        np.nan_to_num(numbers(heads, "offset_s")) * 1e9
    ).astype(np.int64)
    columns = (
        cells.of_heads.tolist(),
        begins_ns,
        ends,
        codes,
        flags(heads, "over").tolist(),
        own_until_ns.tolist(),
    )
    for cell, began_ns, ended_ns, code, over, until_ns in zip(*columns, strict=True):
        key = cells.job[cell], cells.run[cell]
        rows[key].append((began_ns, ended_ns, code, over))
        if 0 <= _day_after_ns(cells.day[cell]) - until_ns < _MIDNIGHT_NS:
            whole_days[key] = max(whole_days.get(key, 0), ended_ns)
    found = {}
    for key, mine in rows.items():
        begun_ns, ended_ns, exits, over = zip(*mine, strict=True)
        begins_ns = [began_ns for began_ns in begun_ns if began_ns]
        if begins_ns:
            end_ns = max(*ended_ns, *begins_ns)
            at_midnight = whole_days.get(key, 0) == end_ns
            found[key] = _Ended(min(begins_ns), end_ns, _code(exits), any(over), at_midnight)
    return found


def _day_after_ns(day: str) -> int:
    return int(np.datetime64(day, "ns").astype(np.int64)) + int(DAY_S) * 10**9


def _code(codes: Iterable[int | None]) -> int | None:
    """The run's, from its nodes': the commonest that is not 0."""
    seen = Counter(code for code in codes if code is not None)
    bad = {code: count for code, count in seen.items() if code}
    own = {code: count for code, count in bad.items() if code not in _ENDED_BY_OTHERS} or bad
    if own:
        return min(own, key=lambda code: (-own[code], code))
    return 0 if seen else None


def _by_day(cells: RunCells, places: Sequence[int], end: _Ended, own_s: float) -> dict[int, float]:
    """A run's own time, by cell: as much of it as lies in the day."""
    day_ns = int(DAY_S) * 10**9
    begins = [int(np.datetime64(cells.day[cell], "ns").astype(np.int64)) for cell in places]
    inside = [
        max(0, min(end.ended_ns, begin_ns + day_ns) - max(end.began_ns, begin_ns))
        for begin_ns in begins
    ]
    whole = sum(inside)
    if not whole:
        return {cell: own_s if cell == places[-1] else 0.0 for cell in places}
    return {cell: own_s * part / whole for cell, part in zip(places, inside, strict=True)}


def days_without(run: RunSeen, cells: RunCells) -> tuple[str, ...]:
    """Days on which a run went on and of which nothing is there."""
    last_ns = max(run.ended_ns - 1, run.began_ns)
    first, last = (
        np.datetime64(each, "ns").astype("datetime64[D]") for each in (run.began_ns, last_ns)
    )
    there = {cells.day[at] for at in run.running_s}
    return tuple(day for day in np.arange(first, last + 1).astype(str).tolist() if day not in there)
