"""From a recorded run to an answer: what its saves cost in GPU time, and how often the job should
save.

Sizes, stalls, drains and the rhythm are measured; the rest (how often the job fails, how long it
takes to come back) is said by the user or assumed as of any job. The sum is the model's own: the
run becomes a scenario whose saves take as long as they were seen to.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from statistics import fmean, median
from typing import Any, NamedTuple

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.contents import LOST_BEFORE_SAFE, Contents
from ckptcost.first.core.outcome import Outcome, evaluate
from ckptcost.first.core.robust import Robust, robust_of
from ckptcost.first.core.windows import Window
from ckptcost.first.errors import Argument, InputError
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.layers import DEFAULT_SCENARIO, Layer, layers_of, read_layer, set_layer
from ckptcost.first.scenario import DEFAULTS, Input, Resolved, resolve, ties_of, world_ranges_of

ENOUGH = 0.01
"""an interval that costs less than this over the least wall time is as good as the best"""
MARK_SAVES = "mark its saves: with ckptcost.window(name): save(...)"
_DAY_S = 86400.0


class SaveRhythm(NamedTuple):
    """What a run shows of its saves; NaN-free: None where it does not."""

    saves: int
    with_stall: int
    """saves of which it is known how long training stood still"""
    bytes: float
    """of one, in the mean"""
    stall_s: float
    lag_s: float | None
    """from the return of a save until it was safe, in the mean of those that are known to be"""
    never_safe: int
    """saves that nobody knows to have been safe, those that were lost among them"""
    interval_s: float | None
    """training from one save to the next, the median"""
    length_s: float
    lost: int = 0
    """saves deleted or written over before they were safe"""
    staged: int = 0
    """saves removed again before the next one, as after an upload: their stalls are lower bounds"""

    @property
    def share(self) -> float:
        """Of the run, that training stood still for saves."""
        return self.stall_s * self.saves / self.length_s


class AdvisedJob(NamedTuple):
    """What a run cannot show, as the user said it; empty: assumed."""

    gpus: float
    usd_per_gpu_hour: float | None = None
    mtbf: str = ""
    site: str = ""
    settings: tuple[str, ...] = ()


class Advice(NamedTuple):
    rhythm: SaveRhythm
    job: AdvisedJob
    resolved: Resolved
    robust: Robust
    now: Outcome | None
    """at the run's own interval; None where it shows none"""
    then: Outcome
    """at the interval that is advised"""

    @property
    def interval_s(self) -> float:
        return self.robust.interval_s if self.robust.moves else self.robust.best_s

    @property
    def gpu_s_a_save(self) -> float:
        return self.rhythm.stall_s * self.job.gpus

    @property
    def gpu_h_a_day(self) -> float:
        """Useful GPU-hours that the advised interval wins in a day of the job."""
        if self.now is None:
            return 0.0
        more = float(self.then.goodput) - float(self.now.goodput)
        return more * self.job.gpus * _DAY_S / 3600.0

    @property
    def is_as_good(self) -> bool:
        """Whether the run's own interval costs next to nothing over the advised one."""
        return self.now is not None and float(self.now.goodput) * (1.0 + ENOUGH) >= float(
            self.then.goodput
        )

    @property
    def assumed(self) -> tuple[Input, ...]:
        """Inputs that decide the interval and that neither the run nor the user said."""
        return tuple(
            each
            for each in self.resolved.inputs
            if each.origin == DEFAULTS and each.path in _DECISIVE
        )


_DECISIVE = (
    "failures.rate_factor",
    "failures.detect",
    "failures.reschedule",
    "failures.init",
    "failures.warmup",
)


def rhythm_of(m: Measured) -> SaveRhythm:
    """What is needed of a run's saves; raises InputError where it shows too little."""
    saves = _begun(m)
    windows = [window for window, _ in saves]
    stalls_s = _stalls_s(m, windows)
    sizes = [what.bytes for _, what in saves if what.bytes > 0]
    if not sizes:
        raise InputError("of no save of this run the size is known")
    lags_s, between_s = _lags_s(windows), _between_s(windows)
    unsafe = [what for window, what in saves if window.durable_s is None]
    return SaveRhythm(
        len(saves),
        len(stalls_s),
        fmean(sizes),
        fmean(stalls_s),
        max(fmean(lags_s), 0.0) if lags_s else None,
        len(unsafe),
        median(between_s) if between_s else None,
        _job_s(m),
        sum(what.why in LOST_BEFORE_SAFE for what in unsafe),
        len(m.staged),
    )


def _stalls_s(m: Measured, windows: Sequence[Window]) -> list[float]:
    """Where the first saves fitted into memory, the job lives with the later ones."""
    stalls_s = [window.stall_s for window in windows if window.stall_s is not None]
    if not stalls_s:
        raise InputError(
            "of no save of this run it is known how long training stood still", remedy=MARK_SAVES
        )
    return stalls_s if m.slower is None else stalls_s[m.slower.first :]


def _lags_s(windows: Sequence[Window]) -> list[float]:
    """From training's going on until a save was safe."""
    return [
        window.durable_s - window.returned_s
        for window in windows
        if window.durable_s is not None and window.returned_s is not None
    ]


def _begun(m: Measured) -> list[tuple[Window, Contents]]:
    """Saves that were seen from their begin on and did not fail."""
    saves = [each for each in zip(m.windows, m.contents, strict=True) if each[1].of == "save"]
    found = [(w, what) for w, what in saves if not what.error and w.begin_s is not None]
    if saves and not found:
        raise InputError(
            "no save of this run was seen to its end: they failed or were removed at once",
            remedy=MARK_SAVES,
        )
    if not found:
        raise InputError("no checkpoint was found in this run, so there is nothing to advise")
    return found


def _between_s(windows: Sequence[Window]) -> list[float]:
    """Training from each save to the next, where they do not overlap."""
    found = []
    for window, later in pairwise(windows):
        end_s = window.begin_s if window.returned_s is None else window.returned_s
        if end_s is not None and later.begin_s is not None and later.begin_s > end_s:
            found.append(later.begin_s - end_s)
    return found


def _job_s(m: Measured) -> float:
    """How long the command ran, where it was wrapped: what was waited for afterwards, until its
    saves were safe, is no training."""
    wrapped = [mark for mark in m.run.marks if mark.by == "wrap"]
    begins = [mark.t_s for mark in wrapped if "command" in mark.detail]
    ends = [mark.t_s for mark in wrapped if "exit_status" in mark.detail]
    return ends[-1] - begins[0] if begins and ends and ends[-1] > begins[0] else m.length_s


def advise(catalog: Catalog, rhythm: SaveRhythm, job: AdvisedJob) -> Advice:
    """The interval to save at, by the model's own sum."""
    if rhythm.staged:
        raise InputError(
            f"{rhythm.staged:,} of {rhythm.saves:,} saves were removed before the next one began,"
            " as after an upload, so of them only the least is known that training stood still",
            remedy="mark the saves, upload included: with ckptcost.window(name): ...",
        )
    resolved = resolve(catalog, _layers(catalog, rhythm, job, rhythm.interval_s or 3600.0))
    ranges = world_ranges_of(resolved)
    robust = robust_of(resolved.scenario, ranges, ties_of(resolved))
    if not robust.best_s > 0 or robust.best_s == float("inf"):
        raise InputError("a job that never fails needs no interval", where=Argument("mtbf"))
    interval_s = robust.interval_s if robust.moves else robust.best_s
    now = None if rhythm.interval_s is None else evaluate(resolved.scenario)
    then = evaluate(resolve(catalog, _layers(catalog, rhythm, job, interval_s)).scenario)
    return Advice(rhythm, job, resolved, robust, now, then)


def _layers(
    catalog: Catalog, rhythm: SaveRhythm, job: AdvisedJob, interval_s: float
) -> Sequence[Layer]:
    """The run as a scenario: asynchronous with the stall and the lag that were seen, which at no
    lag is a synchronous save.

    What a save waited for is in its stall. So as many are in flight as the run had: it began the
    next one while the one before was not safe yet, and in the page cache there may be ten of them.
    """
    seconds = max(rhythm.stall_s + (rhythm.lag_s or 0.0), 1e-6)
    in_flight = max(ceil(seconds / ((rhythm.interval_s or seconds) + rhythm.stall_s)), 1)
    seen: dict[str, dict[str, Any]] = {
        "checkpoint": {"size": f"{rhythm.bytes} B"},
        "tier": {
            "save_time": f"{max(rhythm.lag_s or 0.0, 1e-9)} s",
            "load_time": f"{seconds} s",
            "timed_size": f"{rhythm.bytes} B",
            "setup": "0 s",
            "write": f"{rhythm.bytes / seconds} B/s",
            "survives": "site",
        },
        "policy": {
            "mode": "async",
            "interval": f"{interval_s} s",
            "snapshot": f"{rhythm.stall_s} s",
            "slowdown": "0 %",
            "in_flight": in_flight,
            "keep_last": 3,
        },
    }
    said: dict[str, dict[str, Any]] = {"cluster": {"gpus": job.gpus}}
    if job.usd_per_gpu_hour is not None:
        said["cluster"]["gpu_price"] = f"{job.usd_per_gpu_hour} USD/GPU-h"
    if job.mtbf:
        said["failures"] = {"mtbf": job.mtbf}
    if job.site:
        said["site"] = {"id": job.site}
    layers = [
        *layers_of(catalog, DEFAULT_SCENARIO),
        read_layer(seen, "the run", "the run", "measured"),
        read_layer(said, "command line", "--gpus"),
    ]
    return [*layers, set_layer(job.settings)] if job.settings else layers
