"""From recorded runs to what the model asks for: a tier's rate and fixed time, power in each state,
joules per byte, slowdown.

Every figure has its interval and the number of rounds it rests on, or the reason why it is not
there. What a run cannot tell is left to the catalogue's defaults: it is not in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain
from math import inf, isfinite, isnan, nan
from typing import NamedTuple

import numpy as np

from ckptcost.first.core import steps
from ckptcost.first.core.domain import Boundary, Survives
from ckptcost.first.core.estimates import Estimate, absent, mean_of, straggler_of
from ckptcost.first.core.fit import TimeFit, fit_times
from ckptcost.first.errors import InputError, MeterUnavailable
from ckptcost.first.jobs.calibrate_rounds import (
    FitRound,
    RunToFit,
    StateWatts,
    StorageJoules,
    UnfitWindow,
    gpu_share,
    host_share,
    of_storage,
    rounds_of,
    states_of,
)
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.runs.header import base_name

SIMULATED = "SIMULATED"
"""what a name and a source begin with where no machine was measured"""


class Parameter(NamedTuple):
    """One figure, in base units."""

    id: str
    path: str
    """section.key as files and --set have it; empty where the model has no place for it"""
    unit: str
    """a suffix of core.units"""
    estimate: Estimate
    note: str = ""
    boundary: str = ""
    basis: str = "measured"


class CalibratedRun(NamedTuple):
    """A run that it rests on."""

    run: str
    host: str
    date: str
    saves: int
    loads: int


class Calibration(NamedTuple):
    id: str
    name: str
    origins: tuple[CalibratedRun, ...]
    mode: str
    """how the model has saves that went so: async where training goes on before they are safe;
    empty without one"""
    parameters: tuple[Parameter, ...]
    writes: TimeFit
    reads: TimeFit
    saves: tuple[FitRound, ...]
    """in the order of the residuals of `writes`"""
    loads: tuple[FitRound, ...]
    left: tuple[UnfitWindow, ...]
    boundary: Boundary
    survives: Survives
    gpus: int
    """of one node; 0: none was metered"""
    simulated: bool

    @property
    def source(self) -> str:
        """As a figure's source says it."""
        said = "; ".join(dict.fromkeys(f"run {origin.run}" for origin in self.origins))
        return f"{SIMULATED} {said}" if self.simulated else said

    @property
    def says_anything(self) -> bool:
        """Whether it knows a figure that the model has a place for."""
        return any(each.path and each.estimate.known for each in self.parameters)

    def parameter(self, name: str) -> Parameter:
        return next(parameter for parameter in self.parameters if parameter.id == name)


def calibrate(runs: Sequence[Measured], id_: str, name: str = "") -> Calibration:
    """Fit all runs together. Raises MeterUnavailable where they hold nothing that a model asks
    for."""
    all_told = _runs_to_fit(runs)
    is_of_all = all_told[0].is_of_all
    rounds, left = _rounds(all_told)
    every = list(chain.from_iterable(rounds))
    saves = [round_ for round_ in every if round_.mode != "load"]
    loads = [round_ for round_ in every if round_.mode == "load"]
    behind = [round_ for round_ in saves if round_.goes_on]
    mode = _mode(saves, behind)
    writes = _fit(saves, nan)
    setup_s = writes.fixed_s.value if writes.fixed_s.known else 0.0
    reads = _fit(loads, setup_s)
    paired = list(zip(all_told, rounds, strict=True))
    gpus, hosts = states_of(paired, gpu_share), states_of(paired, host_share)
    boundary, survives, where = _place(all_told, is_of_all)
    node = "tier." if is_of_all else "tier.node_"
    from_cache = any(round_.from_cache for round_ in saves)
    parameters = (
        Parameter(
            "write",
            f"{node}write",
            "bytes_per_s",
            writes.rate_bytes_per_s,
            _rate_note(writes, where, from_cache=from_cache),
        ),
        *_setup(writes),
        Parameter(
            "rate_spread",
            "tier.rate_spread",
            "",
            _spread(writes),
            "standard deviation of durations over the fitted ones",
        ),
        Parameter(
            "read",
            f"{node}read",
            "bytes_per_s",
            reads.rate_bytes_per_s,
            _rate_note(reads, where, setup_s),
        ),
        Parameter(
            "read_fixed", "", "s", reads.fixed_s, "of a load; the model takes tier.setup for both"
        ),
        Parameter(
            "straggler",
            "",
            "",
            straggler_of([r.ranks_s for r in saves]),
            "slowest rank over the mean; inside the rate already",
        ),
        *_storage(of_storage(paired)),
        *_watts("gpu", gpus, _GPU_NOTES),
        *_watts("host", hosts, _HOST_NOTES),
        *_of_steps(all_told, behind, mode != "sync"),
    )
    found = Calibration(
        id_,
        name,
        tuple(map(_origin, all_told, rounds)),
        mode,
        parameters,
        writes,
        reads,
        tuple(saves),
        tuple(loads),
        tuple(left),
        boundary,
        survives,
        max(len(told.gpus) for told in all_told),
        any(told.seen.simulated for told in all_told),
    )
    if not found.says_anything:
        raise MeterUnavailable(
            f"nothing can be calibrated: {_why_nothing(found)}",
            "A run needs saves of known size that ended",
        )
    return found


def _mode(saves: Sequence[FitRound], behind: Sequence[FitRound]) -> str:
    """As the model has it: async where of most saves training went on before they were safe."""
    if not saves:
        return ""
    return "async" if len(behind) > len(saves) / 2 else "sync"


_GPU_NOTES = ("just before each save", "while a save holds training up", "from the baseline")
_HOST_NOTES = (
    "the node less its GPUs",
    "the node less its GPUs",
    "the node less its GPUs, from the baseline",
)


def _watts(whose: str, watts: StateWatts, notes: Sequence[str]) -> list[Parameter]:
    """Power in training, in a stall and at rest."""
    return [
        Parameter(f"{whose}_{state}", f"cluster.{whose}_{state}", "w", estimate, note)
        for state, estimate, note in zip(("train", "stall", "idle"), watts, notes, strict=True)
    ]


def _runs_to_fit(runs: Sequence[Measured]) -> list[RunToFit]:
    """Each once. Of a folder that every node sees, each of them tells of the same saves."""
    if not runs:
        raise InputError(
            "names no run", where="RUN", remedy="`ckptcost runs` lists what was recorded"
        )
    told = [RunToFit(seen) for seen in runs]
    doubled = next(
        (key for key, times in Counter((one.id, one.host) for one in told).items() if times > 1),
        None,
    )
    if doubled is not None:
        raise InputError(
            f"run {doubled[0]} of {doubled[1]} is named twice",
            where="RUN",
            remedy="each save counts once",
        )
    if len({one.is_of_all for one in told}) > 1:
        raise InputError(
            "some of these runs saw one node's bytes, others those of the whole job",
            where="RUN",
            remedy="calibrate them apart",
        )
    if told[0].is_of_all:
        return list({one.id: one for one in reversed(told)}.values())[::-1]
    return told


def _rounds(all_told: Sequence[RunToFit]) -> tuple[list[list[FitRound]], list[UnfitWindow]]:
    """Of each run. Saves that are written in the background are not fitted with others: their time
    of writing begins with the return."""
    rounds: list[list[FitRound]] = []
    left: list[UnfitWindow] = []
    for told in all_told:
        mine, without = rounds_of(told)
        rounds.append(mine)
        left += without
    behind = Counter(
        round_.mode == "async" for each in rounds for round_ in each if round_.mode != "load"
    )
    others = ("sync", "early") if behind[True] > behind[False] else ("async",)
    left += [
        UnfitWindow(r.run, r.window.name, "save", "OTHER_MODE")
        for each in rounds
        for r in each
        if r.mode in others
    ]
    return [[r for r in each if r.mode not in others] for each in rounds], left


def _fit(rounds: Sequence[FitRound], setup_s: float) -> TimeFit:
    """Rounds of one size leave the fixed time in the rate; of a load the model adds the writes'
    fixed time, so that is taken off first."""
    bytes_, files, seconds = (
        [getattr(round_, what) for round_ in rounds] for what in ("bytes", "files", "seconds")
    )
    counted = files if rounds and all(map(isfinite, files)) else None
    found = fit_times(bytes_, seconds, counted)
    if not found.fixed_s.known and 0 < setup_s < min(seconds, default=0.0):
        alone = fit_times(bytes_, [each - setup_s for each in seconds])
        return found._replace(
            rate_bytes_per_s=alone.rate_bytes_per_s,
            residuals_s=alone.residuals_s,
            fixed_s=absent("AS_WRITES", len(rounds)),
        )
    return found


def _rate_note(fit: TimeFit, where: str, setup_s: float = nan, *, from_cache: bool = False) -> str:
    if from_cache:
        where = f"bytes over the time that the disk was busy, as nobody synced them; {where}"
    note = {
        "ONE_SIZE": "bytes over time: all sizes alike, so the fixed time is in it",
        "ONE_ROUND": "one round: the fixed time is in it",
        "SIZES_NOT_APART": (
            "bytes over time: too much scatter to tell the fixed time apart, so it is in it"
        ),
    }.get(fit.why, "from durations of several sizes")
    if fit.fixed_s.why == "AS_WRITES":
        note = f"from durations less {setup_s:.4g} s, the fixed time of the writes"
    return f"{note}; {where}"


def _setup(fit: TimeFit) -> list[Parameter]:
    """Where the rate holds the fixed time, none is left for it; a default of seconds would count it
    twice."""
    fixed_s, note = fit.fixed_s, "time of a save that does not depend on its size"
    basis = "measured"
    if not fixed_s.known and fit.rate_bytes_per_s.known:
        fixed_s, note, basis = (
            Estimate(0.0, n=fit.n, why=fixed_s.why),
            "not told apart: it is in the rate",
            "assumed",
        )
    elif "fixed_s" in fit.bound:
        note = "would be below 0, and is held there"
    found = [Parameter("setup", "tier.setup", "s", fixed_s, note, basis=basis)]
    per_file = fit.per_file_s
    if not (per_file.known and per_file.value > 0):
        return [
            *found,
            Parameter("files_rate", "", "files_per_s", absent(per_file.why or "AT_BOUND", fit.n)),
        ]
    low, high = (
        None if end is None else 1.0 / end if end > 0 else inf
        for end in (per_file.high, per_file.low)
    )
    files = Estimate(1.0 / per_file.value, low, high, None, per_file.n, per_file.why)
    return [
        *found,
        Parameter(
            "files_rate",
            "tier.files_rate",
            "files_per_s",
            files,
            "files over the time that their number adds",
        ),
    ]


def _spread(fit: TimeFit) -> Estimate:
    return (
        Estimate(fit.spread_fraction, n=fit.n)
        if isfinite(fit.spread_fraction)
        else absent("FEW_ROUNDS", fit.n)
    )


def _storage(stored: StorageJoules) -> list[Parameter]:
    at = f"boundary {stored.boundary}: {', '.join(stored.domains[:8])}" if stored.boundary else ""
    basis = "derived" if stored.is_modelled else "measured"
    note = f"joules above rest over bytes, {at}" + (
        ", from a model of the drive" if stored.is_modelled else ""
    )
    # no tier takes less than nothing for a byte; a value within its scatter of 0 says only that it
    # is small
    path = "tier.write_energy" if stored.j_per_byte.known and stored.j_per_byte.value > 0 else ""
    return [
        Parameter(
            "write_energy",
            path,
            "j_per_byte",
            stored.j_per_byte,
            note if at else "",
            stored.boundary,
            basis,
        ),
        Parameter("storage_rest", "", "w", stored.rest_w, at, stored.boundary, basis),
    ]


def _of_steps(
    all_told: Sequence[RunToFit], saves: Sequence[FitRound], asks: bool
) -> list[Parameter]:
    """What an asynchronous save costs training: the copy, and the drain."""
    paces = [(told.split, steps.pace(told.split.quiet_s).step_s) for told in all_told]
    known = [(split, step_s.value) for split, step_s in paces if step_s.known]
    lost = snapshot = absent("NOT_ASYNC")
    if asks:
        drained, quiet = (
            np.concatenate([np.empty(0), *(split[k] / step_s for split, step_s in known)])
            for k in (1, 0)
        )
        lost = steps.speed_lost(steps.longer(drained, quiet))
        snapshot = _snapshot(saves)
    step = mean_of([step_s for _, step_s in known]) if known else absent("NO_STEPS")
    if len(paces) == 1:
        step = paces[0][1]
    return [
        Parameter(
            "snapshot",
            "policy.snapshot",
            "s",
            snapshot,
            "an asynchronous save holds training up for so long",
        ),
        Parameter(
            "slowdown",
            "policy.slowdown",
            "",
            lost,
            "share of training speed lost while a save drains",
        ),
        Parameter("step", "policy.step", "s", step, "median of steps that no save touches"),
    ]


def _snapshot(saves: Sequence[FitRound]) -> Estimate:
    """How long an asynchronous save holds training up; no shorter than not at all."""
    stalls = [round_.stall_s for round_ in saves if not isnan(round_.stall_s)]
    if not stalls:
        return absent("NO_ROUNDS")
    found = mean_of(stalls)
    return found if found.low is None else found._replace(low=max(found.low, 0.0))


def _place(all_told: Sequence[RunToFit], is_of_all: bool) -> tuple[Boundary, Survives, str]:
    """Where the bytes went, as far as meters of disks and mounts tell; a disk of the node dies with
    it."""
    taken: Counter[str] = Counter()
    for told in all_told:
        for stored in told.seen.stored:
            if stored.window and stored.queue.written_bytes == stored.queue.written_bytes:
                taken[stored.disk.split(":")[0]] += round(stored.queue.written_bytes)
    if is_of_all or taken["mount"] > taken["disk"]:
        return (
            "storage-system",
            "site",
            "all nodes together" if is_of_all else "one node's, through a mount",
        )
    return (
        "node",
        "process",
        (
            "one node's own disks"
            if taken["disk"]
            else "one node's; no meter saw which storage, taken as its own"
        ),
    )


def _origin(told: RunToFit, rounds: Sequence[FitRound]) -> CalibratedRun:
    at = datetime.fromtimestamp(told.seen.run.wall_s(told.seen.begin_s), UTC)
    loads = sum(round_.mode == "load" for round_ in rounds)
    host = "simulated" if told.seen.simulated else base_name(told.host)
    return CalibratedRun(told.id, host, f"{at:%Y-%m-%dT%H:%M:%SZ}", len(rounds) - loads, loads)


def _why_nothing(found: Calibration) -> str:
    counted = Counter(one.why for one in found.left)
    return (
        ", ".join(f"{number} x {why}" for why, number in counted.most_common())
        or "no save is in there"
    )
