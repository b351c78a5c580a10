"""Do the GPUs confirm a stall? Power, or utilisation, while training is said to stand still, held
against the quiet time just before.

    CONFIRMED      it falls by at least a tenth, below anything that pieces of the quiet time show
    CONTRADICTED   it does not, and the sensor is quick enough to have shown it
    NOT_RESOLVED   the stall is too short for the sensor, or it falls too little to tell
    NO_READINGS    nothing was read of one of the two times

A GPU that spins in a collective is busy and draws less: its utilisation confirms a stall but never
contradicts one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import gauges
from ckptcost.first.core.attribution import WHOLE, Joules, mean_w, spent
from ckptcost.first.core.channels import Series
from ckptcost.first.core.reconcile import Energy, energy_of_amount, total, unknown
from ckptcost.first.core.windows import Stretch

Verdict = Literal["CONFIRMED", "CONTRADICTED", "NOT_RESOLVED", "NO_READINGS"]
Mean = Callable[[float, float], Energy]
"""the mean level from one instant to another, with its range"""
Floats = NDArray[np.float64]
Rough = Callable[[Floats, Floats], Floats]
"""the mean levels of many spans at once, without ranges; NaN where nothing is known"""
Curve = Callable[[Floats], Floats]
"""joules counted up to each of many instants, in order"""

LEAST_DROP: Final = 0.1
"""of the level before; training steps alone move a mean of seconds by less"""
RESOLVES: Final = 2.0
"""a stall this many times as long as the sensor takes would have shown"""
PIECES: Final = 5
"""of the quiet time, at least: how far a mean as short as the stall, or shorter, lies off by
itself"""
MOST_PIECES: Final = 20


class Dip(NamedTuple):
    """What was read, and what follows from it."""

    verdict: Verdict
    before: Energy
    """mean level of the quiet time; low and high hold its pieces' means as well"""
    during: Energy
    drop_fraction: float
    """of the level before; negative where it rose"""
    why: str = ""
    """code. TOO_SHORT: the stall, for the sensor; TOO_LITTLE: it fell, within what it varies by;
    STAYS_BUSY: utilisation need not fall"""


def of_joules(joules: Joules, domains: Sequence[str]) -> Mean:
    """Watts of several domains together, from their counters or gauges."""

    def mean(begin_s: float, end_s: float) -> Energy:
        if not domains:
            return unknown("NO_READING")
        return total(
            mean_w(spent(joules, domain, [(begin_s, end_s)]), end_s - begin_s) for domain in domains
        )

    return mean


def of_curves(curves: Sequence[Curve]) -> Rough:
    """Mean watts of several curves of counted joules together, at once for many spans."""

    def means(begins_s: Floats, ends_s: Floats) -> Floats:
        both_s = np.concatenate([begins_s, ends_s])
        order = np.argsort(both_s, kind="stable")
        counted = np.zeros(len(both_s))
        for curve in curves:
            counted[order] += curve(both_s[order])
        watts: Floats = (counted[len(begins_s) :] - counted[: len(begins_s)]) / (ends_s - begins_s)
        return watts

    return means


def of_gauge(
    series: Series,
    *,
    averaging_s: float | None = None,
    looks: float | None = None,
    tick_s: float | None = None,
) -> Mean:
    """A gauge's own level: watts of one sensor, or utilisation."""

    def mean(begin_s: float, end_s: float) -> Energy:
        area = gauges.energy(
            series, begin_s, end_s, averaging_s=averaging_s, looks=looks, tick_s=tick_s
        )
        return mean_w(energy_of_amount(area), end_s - begin_s)

    return mean


def dip(
    mean: Mean,
    stall: Stretch,
    quiet: Stretch | None,
    *,
    resolved_s: float = 0.0,
    spins: bool = False,
    rough: Rough | None = None,
) -> Dip:
    """The verdict. `rough` gives the level of many short spans at once, for how far pieces of the
    quiet time scatter.

    `resolved_s`: what the sensor averages over, or how long it takes to show a change; `spins`:
    what is read can stay high while nothing is done, as utilisation can. A level that rests on
    fewer than five ticks contradicts nothing.

    >>> level = lambda begin_s, end_s: (
    ...     Energy(300.0, 295.0, 305.0) if begin_s >= 10.0 else Energy(600.0, 590.0, 610.0)
    ... )
    >>> found = dip(level, (10.0, 14.0), (2.0, 10.0))
    >>> found.verdict, found.drop_fraction
    ('CONFIRMED', 0.5)
    """
    begin_s, end_s = stall
    during = mean(begin_s, end_s) if end_s > begin_s else unknown("NO_TIME")
    before = (
        unknown("NO_TRAINING_REFERENCE")
        if quiet is None
        else _level(mean, quiet, end_s - begin_s, rough)
    )
    if not (during.known and before.known) or before.value <= 0:
        return Dip("NO_READINGS", before, during, nan, during.why or before.why or "NO_READING")
    if during.coverage < WHOLE:
        return Dip("NOT_RESOLVED", before, during, nan, "GAPS")
    drop = 1.0 - during.value / before.value
    is_short = end_s - begin_s < RESOLVES * resolved_s or "SHORT" in during.flags
    verdict, why = _verdict(before, during, drop, is_short, spins)
    return Dip(verdict, before, during, drop, why)


def _verdict(
    before: Energy, during: Energy, drop: float, is_short: bool, spins: bool
) -> tuple[Verdict, str]:
    if drop >= LEAST_DROP and during.high < before.low:
        return "CONFIRMED", ""
    if is_short:
        return "NOT_RESOLVED", "TOO_SHORT"
    if during.low > (1.0 - LEAST_DROP) * before.value:
        return ("NOT_RESOLVED", "STAYS_BUSY") if spins else ("CONTRADICTED", "")
    return "NOT_RESOLVED", "TOO_LITTLE"


def _level(mean: Mean, quiet: Stretch, stall_s: float, rough: Rough | None) -> Energy:
    """Of the quiet time, with room for what its pieces show: they are as long as the stall, or
    shorter where it has no room for five."""
    begin_s, end_s = quiet
    whole = mean(begin_s, end_s)
    if not whole.known:
        return whole
    count = min(max(int((end_s - begin_s) / max(stall_s, 1e-9)), PIECES), MOST_PIECES)
    each_s = min(stall_s, (end_s - begin_s) / count)
    begins_s: Floats = np.linspace(begin_s, end_s - each_s, count, dtype=np.float64)
    ends_s: Floats = begins_s + each_s
    ends_s[-1] = end_s
    pieces = (rough or _one_by_one(mean))(begins_s, ends_s).tolist()
    values = [piece for piece in pieces if piece == piece]
    return whole._replace(low=min([whole.low, *values]), high=max([whole.high, *values]))


def _one_by_one(mean: Mean) -> Rough:
    """Of what has no curve."""

    def means(begins_s: Floats, ends_s: Floats) -> Floats:
        spans = zip(begins_s.tolist(), ends_s.tolist(), strict=True)
        return np.array([mean(begin_s, end_s).value for begin_s, end_s in spans])

    return means
