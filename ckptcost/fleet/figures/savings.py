"""What the best interval, a faster tier or saving beside training would have saved: the model, run
on the fleet's own numbers.

Stall, drain, load, downtime and the work between saves are each job's own, the rate of failures is
the fleet's. What the model says of the job as it was stands beside what was measured: where these
are far apart, so is what it says of anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf, isinf, isnan, nan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ckptcost.core import money
from ckptcost.core.estimates import Floats
from ckptcost.core.failures import Recovery, States, segment
from ckptcost.core.numeric import times
from ckptcost.core.optimum import best_interval_s
from ckptcost.fleet.figures.lines import UNKNOWN, Amount, usd_per_j
from ckptcost.fleet.figures.usual import Usual, usual_of

if TYPE_CHECKING:
    from ckptcost.core.domain import Scenario
    from ckptcost.fleet.figures.figures import Fleet
    from ckptcost.fleet.merge.part import Part

BEST_INTERVAL: Final = "BEST_INTERVAL"
TWICE: Final = "TIER_2X"
TENFOLD: Final = "TIER_10X"
ASYNC: Final = "ASYNC"
OPTIONS: Final = (BEST_INTERVAL, TWICE, TENFOLD, ASYNC)
_FASTER: Final = {BEST_INTERVAL: 1.0, TWICE: 2.0, TENFOLD: 10.0}
_RATES: Final = 33
"""failure rates that are tried from one end of the interval to the other: a saving is least
somewhere inside, not at an end"""


class Option(NamedTuple):
    """Against what was done. Each is at its own best interval."""

    id: str
    interval_s: Amount
    """work between saves"""
    overhead: Amount
    """share of the time that is not work kept"""
    gpu_s: Amount
    energy_j: Amount
    """of the nodes while they train, stand and load; at the facility where a site is known"""
    cost_usd: Amount
    why: str
    """NO_COPY_RATE: as if the copy that training waits for took no time, so this is the most it can
    save"""


class JobSavings(NamedTuple):
    job: str
    usual: Usual
    mtbf_s: Amount
    """of the job: the fleet's node over its nodes"""
    measured_overhead: float
    modelled_overhead: Amount
    """at the interval that it had"""
    ratio: float
    """modelled over measured"""
    options: tuple[Option, ...]
    why: str
    """NO_FAILURES: none was seen, so failures are taken to be as frequent as they can be, and
    values are the least; NO_SAVES, NO_STALL, NO_INTERVAL, NO_EXPOSURE: nothing can be said"""


class AllSavings(NamedTuple):
    id: str
    jobs: int
    """that the sums are of"""
    gpu_s: Amount
    energy_j: Amount
    cost_usd: Amount


class Savings(NamedTuple):
    jobs: tuple[JobSavings, ...]
    whole: tuple[AllSavings, ...]


class _Rates(NamedTuple):
    """Failures of the job per second; the first is the value, the others lie from end to end."""

    per_s: Floats
    none_seen: bool
    """no failure: the first is as many as there can be, and there may be none at all"""

    def amount(self, values: Any) -> Amount:
        seen = np.asarray(values, dtype=np.float64)
        return (
            UNKNOWN
            if isnan(seen[0])
            else Amount(float(seen[0]), float(np.nanmin(seen)), float(np.nanmax(seen)))
        )

    def told(self, values: Any) -> Amount:
        """Where no failure was seen there are ends and no value: the rate that makes one is a
        guess."""
        found = self.amount(values)
        return found._replace(value=nan) if self.none_seen else found

    def least(self, values: Any) -> Amount:
        """The low end, where no failure was seen: it holds whatever their rate is."""
        found = self.amount(values)
        return found._replace(value=found.low) if self.none_seen else found


def savings_of(part: Part, fleet: Fleet, s: Scenario | None) -> Savings:
    """Every job, by name. `fleet`: the part's, by whatever, with the same scenario."""
    jobs = tuple(_job(usual, fleet, s) for usual in usual_of(part, fleet))
    return Savings(jobs, tuple(_together(name, jobs) for name in OPTIONS))


def _job(usual: Usual, fleet: Fleet, s: Scenario | None) -> JobSavings:
    node = fleet.failures.node_mtbf_s
    measured = 1.0 - usual.goodput
    why = usual.why or (node.why if usual.nodes > 0 else "NO_EXPOSURE")
    if why and why != "NO_FAILURES":
        return JobSavings(usual.job, usual, UNKNOWN, measured, UNKNOWN, nan, (), why)
    low_s, high_s = (
        float(node.low or nan) / usual.nodes,
        (inf if node.high is None else node.high) / usual.nodes,
    )
    mtbf = Amount(node.value / usual.nodes, low_s, high_s)
    rates = _rates(mtbf)
    recovery = Recovery(usual.down_s, 0.0, 0.0, usual.load_s, 0.0)
    was = segment(usual.interval_s, usual.stall_s, usual.lag_s, recovery, rates.per_s)
    modelled = rates.least(1.0 - usual.interval_s / was.total_s)
    names = [name for name in OPTIONS if name != ASYNC or not usual.asynchronous]
    options = tuple(_option(name, usual, recovery, rates, was, s) for name in names)
    return JobSavings(
        usual.job,
        usual,
        mtbf,
        measured,
        modelled,
        modelled.value / measured if measured > 0 else nan,
        options,
        why,
    )


def _rates(mtbf: Amount) -> _Rates:
    most = 1.0 / mtbf.low
    if isinf(mtbf.value):
        return _Rates(
            np.concatenate([[most], [0.0], most * np.geomspace(1e-6, 1.0, _RATES)]), none_seen=True
        )
    ends = np.geomspace(0.0 if isinf(mtbf.high) else 1.0 / mtbf.high, most, _RATES)
    return _Rates(np.concatenate([[1.0 / mtbf.value], ends]), none_seen=False)


def _option(
    name: str, usual: Usual, recovery: Recovery, rates: _Rates, was: States, s: Scenario | None
) -> Option:
    stall_s, lag_s, why = _times(name, usual, s)
    # a save begins when the one before is safe, as long as this one did not begin sooner
    floor_s = min(lag_s, usual.interval_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        interval_s = np.maximum(best_interval_s(stall_s, recovery, rates.per_s), floor_s)
    never = np.isinf(interval_s)
    work_s = np.where(never | (interval_s == 0), 1.0, interval_s)
    then = segment(work_s, np.where(never, 0.0, stall_s), lag_s, recovery, rates.per_s)
    saved_s = was.total_s / usual.interval_s - then.total_s / work_s
    gpu_s = rates.least(saved_s * usual.useful_gpu_s)
    more_work, more_still = (
        mine / usual.interval_s - its / work_s
        for mine, its in (
            (was.work_s, then.work_s),
            (was.stall_s + was.load_s, then.stall_s + then.load_s),
        )
    )
    energy = rates.least((more_work * usual.train_w + more_still * usual.stall_w) * usual.useful_s)
    return Option(
        name,
        rates.told(interval_s),
        rates.told(1.0 - work_s / then.total_s),
        gpu_s,
        energy,
        _usd(gpu_s, energy, s),
        why,
    )


def _times(name: str, usual: Usual, s: Scenario | None) -> tuple[float, float, str]:
    """Stall, lag until safe. A faster tier shortens what waits for it: of a save beside training
    that is the drain alone."""
    if name != ASYNC:
        faster = _FASTER[name]
        return (
            (usual.stall_s if usual.asynchronous else usual.stall_s / faster),
            usual.lag_s / faster,
            "",
        )
    rate = nan if s is None else float(s.cluster.gpu_d2h_bytes_per_s)
    copy_s = usual.bytes / (usual.gpus * rate) if rate < inf else nan
    if isnan(copy_s):
        return 0.0, usual.stall_s + usual.lag_s, "NO_COPY_RATE"
    return min(copy_s, usual.stall_s), usual.stall_s + usual.lag_s, ""


def _usd(gpu_s: Amount, energy: Amount, s: Scenario | None) -> Amount:
    if s is None:
        return UNKNOWN
    ends = [
        float(money.gpu_usd(time_s, s.cluster.usd_per_gpu_s)) + float(times(joules, usd_per_j(s)))
        for time_s, joules in zip(gpu_s, energy, strict=True)
    ]
    return Amount(*ends)


def _together(name: str, jobs: Sequence[JobSavings]) -> AllSavings:
    """Over the jobs of which it is known; ends by worst case, for they all rest on one rate of
    failures."""
    options = [
        option for job in jobs for option in job.options if option.id == name and option.gpu_s.known
    ]
    sums = []
    for what in AllSavings._fields[2:]:
        each = [getattr(option, what) for option in options]
        known = all(amount.known for amount in each) and each
        sums.append(Amount(*(fsum(ends) for ends in zip(*each, strict=True))) if known else UNKNOWN)
    return AllSavings(name, len(options), *sums)
