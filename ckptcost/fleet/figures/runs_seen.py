"""The runs of each job by time: how each ended, and where its time went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, inf, isnan, nan
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.estimates import Estimate, Floats, absent, mean_of
from ckptcost.core.units import DAY_S
from ckptcost.core.useful import RunSpan, Useful, useful_of
from ckptcost.fleet.figures.grouping import Cells, Places, flags, instants, numbers, summed, texts

if TYPE_CHECKING:
    from ckptcost.fleet.figures.lacking import Lacking
    from ckptcost.fleet.merge.part import Part

FAILED: Final = "FAILED"
PLANNED: Final = "PLANNED"
OVER: Final = "OVER"
OPEN: Final = "OPEN"
CUT: Final = "CUT"
_ENDED_BY_OTHERS: Final = frozenset({143, -15, 137, -9})
"""a launcher ends the others' processes when one fails: theirs is not the cause, if somebody else has one"""
_NS: Final = 1e-9


class RunSeen(NamedTuple):
    """One run of a job. Instants by the job's clock."""

    job: str
    run: str
    began_ns: int
    ended_ns: int
    state: str
    """FAILED; PLANNED: it ended as it should, and another one followed; OVER: nothing followed; OPEN: nobody saw an end"""
    cause: str
    """of a failure: CUT (the recordings stop), or EXIT_1"""
    nodes: int
    """those that are missing with them"""
    gpus: float
    last_kept_ns: int
    """begin of the last save that was completed, 0 if none"""
    spent: Useful
    """the run's own time, and as `down_s` what passed until the next one; the pieces of a job's runs add up to the job's"""
    train_gpu_w: Estimate
    """of one node"""
    train_host_w: Estimate
    running_s: Mapping[int, float]
    """by cell"""

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


def runs_of(part: Part, cells: Cells, lacking: Sequence[Lacking]) -> tuple[RunSeen, ...]:
    """By job and time. A run of which no instant is known is left out."""
    nodes = {(each.job, each.run): each.expected for each in lacking}
    of_runs = sorted(cells.of_runs.items())
    ended = _ends(part, cells)
    by_job: defaultdict[str, list[tuple[str, list[int], _Ended, int]]] = defaultdict(list)
    for at, ((job, run), places) in enumerate(of_runs):
        if (job, run) in ended:
            by_job[job].append((run, places, ended[job, run], at))
    stalls = _Stalls(part, cells, [places for _, places in of_runs])
    gpus, watts = _gpus(part, cells), _watts(part, cells)
    found = []
    for job, runs in by_job.items():
        runs.sort(key=lambda each: (each[2].began_ns, each[2].ended_ns, each[0]))
        base_ns = runs[0][2].began_ns
        states = [_state(end, place + 1 < len(runs)) for place, (_, _, end, _) in enumerate(runs)]
        spans = [stalls.span(at, end, state == FAILED, base_ns) for (_, _, end, at), (state, _) in zip(runs, states, strict=True)]
        for (run, places, end, at), (state, cause), spent in zip(runs, states, shares_of(spans), strict=True):
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
                    spent,
                    *watts.get((job, run), (absent("NO_NODES"), absent("NO_NODES"))),
                    _by_day(cells, places, end, spent.wall_s - spent.down_s),
                )
            )
    return tuple(found)


def shares_of(spans: Sequence[RunSpan]) -> list[Useful]:
    """Of each of a job's runs, by begin, its own part of what `useful_of` says of all; the time until the next is the earlier one's."""
    found: list[Useful] = []
    place = 0
    while place < len(spans):
        end, reach_s = place + 1, spans[place].ended_s
        while end < len(spans) and spans[end].began_s < reach_s:
            reach_s = max(reach_s, spans[end].ended_s)
            end += 1
        rests = [useful_of(spans[first:end]) for first in range(place, end)]
        down_s = spans[end].began_s - reach_s if end < len(spans) else 0.0
        for at, whole in enumerate(rests):
            last = at + 1 == len(rests)
            rest = (0.0,) * 7 if last else rests[at + 1][:-1]
            wall_s, between_s, lost_s, stall_s, load_s, useful_s, _ = (mine - its for mine, its in zip(whole[:-1], rest, strict=True))
            after_s = down_s if last else 0.0
            all_s = wall_s - between_s + after_s
            goodput = useful_s / all_s if all_s > 0 else nan
            found.append(Useful(all_s, after_s, lost_s, stall_s, load_s, useful_s, goodput, int(spans[place + at].failed)))
        place = end
    return found


def _state(end: _Ended, followed: bool) -> tuple[str, str]:
    if end.code:
        return FAILED, f"EXIT_{end.code}"
    if end.code is None and not end.over:
        return (FAILED, CUT) if followed else (OPEN, "")
    return (PLANNED if followed else OVER), ""


def _ends(part: Part, cells: Cells) -> dict[tuple[str, str], _Ended]:
    heads = part.heads
    if not len(heads):
        return {}
    rows: defaultdict[tuple[str, str], list[tuple[int, int, int | None, bool]]] = defaultdict(list)
    codes = [None if isnan(code) else int(code) for code in numbers(heads, "exit_code").tolist()]
    ends = np.maximum(instants(heads, "until_ns"), instants(heads, "last_mark_ns")).tolist()
    columns = (cells.of_heads.tolist(), instants(heads, "began_ns").tolist(), ends, codes, flags(heads, "over").tolist())
    for cell, began_ns, ended_ns, code, over in zip(*columns, strict=True):
        rows[cells.job[cell], cells.run[cell]].append((began_ns, ended_ns, code, over))
    found = {}
    for key, mine in rows.items():
        begins = [began_ns for began_ns, _, _, _ in mine if began_ns]
        if begins:
            ended_ns = max(*(ended_ns for _, ended_ns, _, _ in mine), *begins)
            found[key] = _Ended(min(begins), ended_ns, _code([code for _, _, code, _ in mine]), any(over for *_, over in mine))
    return found


def _code(codes: Iterable[int | None]) -> int | None:
    """The run's, from its nodes': the commonest that is not 0."""
    seen = Counter(code for code in codes if code is not None)
    bad = {code: count for code, count in seen.items() if code}
    own = {code: count for code, count in bad.items() if code not in _ENDED_BY_OTHERS} or bad
    if own:
        return min(own, key=lambda code: (-own[code], code))
    return 0 if seen else None


class _Stalls:
    """What the saves and loads of each run took, and which save was its last."""

    def __init__(self, part: Part, cells: Cells, of_runs: Sequence[Sequence[int]]) -> None:
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
        self.save_s = _sums(stall_s, ~load, run_of, count)
        self.load_s = _sums(stall_s, load, run_of, count)
        self.since_kept_s = _sums(stall_s, ~load & (begin_ns >= self.kept_ns[run_of]), run_of, count)

    def span(self, at: int, end: _Ended, failed: bool, base_ns: int) -> RunSpan:
        kept_ns = int(self.kept_ns[at])
        return RunSpan(
            (end.began_ns - base_ns) * _NS,
            (end.ended_ns - base_ns) * _NS,
            failed,
            (kept_ns - base_ns) * _NS if kept_ns else -inf,
            float(self.save_s[at]),
            float(self.load_s[at]),
            float(self.since_kept_s[at]),
        )


def _sums(values: Floats, which: NDArray[np.bool_], places: Places, count: int) -> Floats:
    return summed(values[which], places[which], count)


def _gpus(part: Part, cells: Cells) -> dict[tuple[str, str], list[float]]:
    """By run, GPUs of each node that says so."""
    return {key: [max(said) for said in hosts.values()] for key, hosts in _by_host(part, cells, "gpus").items()}


def _watts(part: Part, cells: Cells) -> dict[tuple[str, str], tuple[Estimate, Estimate]]:
    of_gpus, of_hosts = (_by_host(part, cells, name) for name in ("train_gpu_w", "train_host_w"))

    def mean(hosts: Mapping[str, Sequence[float]]) -> Estimate:
        return mean_of([fsum(said) / len(said) for _, said in sorted(hosts.items())])

    return {key: (mean(of_gpus.get(key, {})), mean(of_hosts.get(key, {}))) for key in of_gpus.keys() | of_hosts.keys()}


def _by_host(part: Part, cells: Cells, name: str) -> dict[tuple[str, str], dict[str, list[float]]]:
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for cell, host, value in zip(cells.of_heads.tolist(), texts(part.heads, "host"), numbers(part.heads, name).tolist(), strict=True):
        if not isnan(value):
            found.setdefault((cells.job[cell], cells.run[cell]), {}).setdefault(host, []).append(value)
    return found


def _by_day(cells: Cells, places: Sequence[int], end: _Ended, own_s: float) -> dict[int, float]:
    """A run's own time, by cell: as much of it as lies in the day."""
    day_ns = int(DAY_S) * 10**9
    begins = [int(np.datetime64(cells.day[cell], "ns").astype(np.int64)) for cell in places]
    inside = [max(0, min(end.ended_ns, begin_ns + day_ns) - max(end.began_ns, begin_ns)) for begin_ns in begins]
    whole = sum(inside)
    if not whole:
        return {cell: own_s if cell == places[-1] else 0.0 for cell in places}
    return {cell: own_s * part / whole for cell, part in zip(places, inside, strict=True)}
