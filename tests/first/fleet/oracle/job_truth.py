"""One job's truth, added up run by run while its files are written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from math import fsum
from typing import NamedTuple

import numpy as np
from fleet_tally import Amounts, added, failed_ones, less, tally
from fleet_truth import JobTruth, RunTruth, Trouble
from numpy.typing import NDArray
from planted_faults import NO_FILE, Planted, clocks_of

from ckptcost.first.core.units import DAY_S
from ckptcost.first.fleet.synthetic.fleet_plan import (
    DAY_NS,
    GPUS,
    S_NS,
    FleetPlan,
    JobPlan,
    RunPlan,
    Windows,
    windows_of,
)
from ckptcost.first.fleet.synthetic.synthesize import WrittenDay, ending

Flags = NDArray[np.bool_]


class _Piece(NamedTuple):
    """Windows next to each other of one true day and direction, all completed or not, that the same
    nodes speak of."""

    begin: int
    end: int
    day: int
    load: bool
    failed: bool


class JobBook:
    """Files are shown to it one by one; what no file says lacks."""

    def __init__(self, plan: FleetPlan, job: JobPlan, planted: Planted) -> None:
        self._plan, self._job, self._planted = plan, job, planted
        self._kept_step = 0
        self._silent: Flags = np.zeros((0, 0), bool)
        self._aside: list[tuple[WrittenDay, str, str]] = []
        self._parts: defaultdict[tuple[bool, str], list[Amounts]] = defaultdict(list)
        self._whole: defaultdict[bool, list[Amounts]] = defaultdict(list)
        self._blamed = np.zeros((2, job.nodes))
        self._totals: list[tuple[float, float, float]] = []
        self._runs: list[RunTruth] = []
        self.troubles: list[Trouble] = []

    def windows(self, run: RunPlan) -> Windows:
        found = windows_of(self._plan.seed, self._job, run, self._kept_step)
        self._kept_step = found.kept_step
        self._silent = np.zeros((self._job.nodes if self._disturbed else 0, found.many), bool)
        self._silence_of_missing(run, found)
        return found

    @property
    def _disturbed(self) -> bool:
        planted, mine = self._planted, self._job.place
        keys = [*planted.skews_ns, *(key for key, _ in planted.files)]
        places = [key[0] for key in (*keys, *planted.never, *planted.not_on)]
        return mine in places

    def _silence_of_missing(self, run: RunPlan, windows: Windows) -> None:
        job, planted = self._job, self._planted
        for node in sorted(
            {each[1] for each in (*planted.never, *planted.not_on) if each[0] == job.place}
        ):
            own_ns = windows.begin_ns + windows.late_ns[node] + clocks_of(job, run, planted)[node]
            days = (own_ns - self._plan.start_ns) // DAY_NS
            for day in sorted(set(days.tolist())):
                if planted.missing(job.place, node, day):
                    self._silent[node, days == day] = True
                    own = self._own(windows, node, days == day)
                    self.troubles.append(
                        Trouble(
                            NO_FILE,
                            "",
                            job.job,
                            run.run,
                            job.hosts[node],
                            self._plan.day(day),
                            "",
                            *own,
                        )
                    )

    def _own(
        self, windows: Windows, node: int, which: Flags
    ) -> tuple[int, float, float, float, float]:
        """Rows, GPU-seconds, bytes, joules of GPUs and host of one node."""
        found = []
        for load in (True, False):
            some = np.flatnonzero(which & (windows.load == load) & ~windows.failed)
            if len(some):
                place = np.array([node])
                found.append(
                    tally(
                        self._job,
                        place,
                        windows.late_ns[place][:, some],
                        windows.off[place][:, some],
                        load,
                    ).amounts
                )
        if not found:
            return 0, 0.0, 0.0, 0.0, 0.0
        sums = added(found)
        return sums.rows, sums.own_gpu_s, sums.bytes, sums.gpu_j, sums.host_j

    def saw(self, written: WrittenDay, code: str, path: str, copy: str) -> None:
        """A file as it was written; `code`: why it is set aside; `copy`: where it is a second
        time."""
        head = written.day.head
        if copy:
            self.troubles.append(
                Trouble(
                    "DUPLICATE", copy, head.job, head.run, head.host, head.day, f"a copy of {path}"
                )
            )
        if code:
            self._silent[written.node, written.first : written.first + written.day.many] = True
            self._aside.append((written, code, path))
        else:
            self._totals.append((head.gpu_total_j, head.host_total_j, head.covered_s))

    def close(self, run: RunPlan, windows: Windows) -> None:
        job = self._job
        for written, code, path in self._aside:
            head, node = written.day.head, written.node
            which = np.zeros(windows.many, bool)
            which[written.first : written.first + written.day.many] = True
            skew_ns = self._planted.skews_ns.get((job.place, run.place, node))
            note = "" if skew_ns is None else f"{skew_ns // S_NS} s off"
            own = self._own(windows, node, which)
            self.troubles.append(
                Trouble(code, path, head.job, head.run, head.host, head.day, note, *own)
            )
        self._aside.clear()
        of_run: defaultdict[bool, list[float]] = defaultdict(list)
        everybody = np.arange(job.nodes)
        for piece in self._pieces(windows):
            columns = slice(piece.begin, piece.end)
            count = piece.end - piece.begin
            speaking = (
                np.flatnonzero(~self._silent[:, piece.begin]) if len(self._silent) else everybody
            )
            for chosen in [everybody] if len(speaking) == job.nodes else [everybody, speaking]:
                if piece.failed or not len(chosen):
                    amounts = failed_ones(count, len(chosen)) if len(chosen) else Amounts()
                else:
                    found = tally(
                        job,
                        chosen,
                        windows.late_ns[chosen, columns],
                        windows.off[chosen, columns],
                        piece.load,
                    )
                    amounts = found.amounts
                    if len(chosen) == len(speaking):
                        self._blamed[:, chosen] += found.blamed_gpu_s, found.blamed_j
                if len(chosen) == job.nodes:
                    self._whole[piece.load].append(amounts)
            self._parts[piece.load, self._plan.day(piece.day)].append(amounts)
            of_run[piece.load].append(amounts.stall_s)
        self._runs.append(
            self._run(
                run,
                windows,
                *(fsum(each for each in of_run[load] if each == each) for load in (False, True)),
            )
        )

    def _pieces(self, windows: Windows) -> Iterator[_Piece]:
        days = (windows.begin_ns - self._plan.start_ns) // DAY_NS
        change = np.zeros(windows.many, bool)
        for values in (days, windows.load, windows.failed, *self._silent):
            change[1:] |= values[1:] != values[:-1]
        bounds = [0, *np.flatnonzero(change).tolist(), windows.many]
        for begin, end in pairwise(bounds):
            if begin < end:
                yield _Piece(
                    begin,
                    end,
                    int(days[begin]),
                    bool(windows.load[begin]),
                    bool(windows.failed[begin]),
                )

    def _run(self, run: RunPlan, windows: Windows, stall_s: float, load_s: float) -> RunTruth:
        job = self._job
        last_kept_ns, lost_ns = 0, 0
        if windows.kept >= 0:
            last_kept_ns = int(windows.begin_ns[windows.kept])
            lost_ns = run.ended_ns - last_kept_ns
        lost_s = (
            lost_ns / S_NS - self._stall_s(windows, windows.kept)
            if lost_ns
            else (run.ended_ns - run.began_ns) / S_NS - load_s
        )
        codes = {ending(run, node)[1] for node in range(job.nodes)} - {None}
        saved = ~windows.load
        return RunTruth(
            run=run.run,
            began_ns=run.began_ns,
            ended_ns=run.ended_ns,
            how=run.how,
            failed=run.failed,
            exit_code=next(iter(codes), None),
            culprit=job.hosts[run.culprit] if run.culprit >= 0 else "",
            saves=int((saved & ~windows.failed).sum()),
            failed_saves=int((saved & windows.failed).sum()),
            last_kept_ns=last_kept_ns,
            stall_s=stall_s,
            load_s=load_s,
            lost_s=lost_s if run.failed else 0.0,
            clock_ns=tuple(clocks_of(job, run, self._planted).tolist()),
        )

    def _stall_s(self, windows: Windows, place: int) -> float:
        """Of one save, all nodes that speak together."""
        chosen = (
            np.flatnonzero(~self._silent[:, place])
            if len(self._silent)
            else np.arange(self._job.nodes)
        )
        some = slice(place, place + 1)
        return tally(
            self._job, chosen, windows.late_ns[chosen, some], windows.off[chosen, some], False
        ).amounts.stall_s

    def truth(self) -> JobTruth:
        job, runs = self._job, self._runs
        days = {
            load: sorted({day for of, day in self._parts if of == load}) for load in (False, True)
        }
        by_day = {
            load: {day: added(self._parts[load, day]) for day in days[load]}
            for load in (False, True)
        }
        saves, loads = (added(by_day[load].values()) for load in (False, True))
        gpu_total_j, host_total_j, covered_s = (
            fsum(each) for each in zip(*self._totals, strict=True)
        )
        failures = sum(run.failed for run in runs)
        rate = self._plan.failures_per_node_day * job.nodes
        return JobTruth(
            job=job.job,
            labels={
                "team": job.team,
                "cluster": job.cluster,
                "model": job.model,
                "tier": job.tier.name,
            },
            asynchronous=job.asynchronous,
            hosts=job.hosts,
            node_names=job.node_names,
            gpus=float(GPUS),
            interval_s=job.interval_ns / S_NS,
            step_s=job.train_ns / job.every / S_NS,
            bytes_per_node=float(job.bytes_.mean()),
            began_ns=runs[0].began_ns,
            ended_ns=runs[-1].ended_ns,
            runs=tuple(runs),
            saves=saves,
            loads=loads,
            lacking_saves=less(added(self._whole[False]), saves),
            lacking_loads=less(added(self._whole[True]), loads),
            saves_by_day=by_day[False],
            loads_by_day=by_day[True],
            blamed_gpu_s=dict(zip(job.hosts, self._blamed[0].tolist(), strict=True)),
            blamed_j=dict(zip(job.hosts, self._blamed[1].tolist(), strict=True)),
            gpu_total_j=gpu_total_j,
            host_total_j=host_total_j,
            covered_s=covered_s,
            wall_s=(runs[-1].ended_ns - runs[0].began_ns) / S_NS,
            down_s=sum(after.began_ns - before.ended_ns for before, after in pairwise(runs)) / S_NS,
            lost_s=fsum(run.lost_s for run in runs),
            stall_s=fsum(run.stall_s for run in runs),
            load_s=fsum(run.load_s for run in runs),
            failures=failures,
            mtbf_s=DAY_S / rate if rate else float("inf"),
        )
