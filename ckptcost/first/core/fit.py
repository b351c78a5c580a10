"""What measured rounds say of a tier and of a machine: rate and fixed time, power at rest and under
load, joules per byte.

Least squares run on DURATIONS, seconds = fixed + files * per_file + bytes / rate. A mean of rates
weighs quick rounds more than slow ones and reads high; a mean of durations does not. What rounds
cannot tell apart has a code instead of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import inf, nan, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ckptcost.first.core.estimates import (
    Estimate,
    Floats,
    about,
    absent,
    mean_of,
    rounds_of,
    student_t,
)

ALIKE: Final = 0.1
"""sizes within so little of each other are one size: a fixed time told from them would be ten times
as uncertain as a duration"""
APART: Final = 0.01
"""share of the files' column that bytes must leave unexplained"""


_TURNS: Final = 3
"""of weighing anew: the weights are settled by then to less than an interval shows"""
_LEAST_SHARE: Final = 0.05
"""of the mean duration: no round counts for more than one so short"""


class TimeFit(NamedTuple):
    """seconds = fixed + files * per_file + bytes / rate. How unevenly the ranks write is inside the
    rate."""

    rate_bytes_per_s: Estimate
    fixed_s: Estimate
    per_file_s: Estimate
    residuals_s: tuple[float, ...]
    """measured less fitted, by round"""
    spread_fraction: float
    """residuals over fitted durations, as a standard deviation; NaN where every round was needed
    for the fit"""
    n: int
    why: str
    """code: what these rounds cannot tell. NO_ROUNDS; ONE_ROUND, ONE_SIZE, SIZES_NOT_APART: the
    rate holds the fixed time; FEW_ROUNDS: no intervals; NO_GROWTH: time does not grow with bytes"""
    bound: tuple[str, ...] = ()
    """what would be negative and is held at 0: fixed_s, per_file_s"""


class PowerFit(NamedTuple):
    """watts = base + per_load * load."""

    base_w: Estimate
    per_load: Estimate
    """watts for one more of the load; of bytes per second these are joules per byte"""
    mean_w: Estimate
    residuals_w: tuple[float, ...]
    n: int
    why: str
    """ONE_LOAD: all loads alike, so only the mean is known"""


class _Solved(NamedTuple):
    coefficients: Floats
    stderr: Floats | None
    """None without a degree of freedom"""
    squares: float
    freedom: int


def _solve(columns: Floats, y: Floats) -> _Solved:
    """Plain least squares, by columns of length 1 so that bytes and ones lie side by side."""
    scale = np.sqrt((columns**2).sum(axis=0))
    q, r = np.linalg.qr(columns / scale)
    inverse = np.linalg.inv(r)
    coefficients = inverse @ (q.T @ y) / scale
    left = y - columns @ coefficients
    squares, freedom = float(left @ left), len(y) - columns.shape[1]
    stderr = np.sqrt(squares / freedom * (inverse**2).sum(axis=1)) / scale if freedom > 0 else None
    return _Solved(coefficients, stderr, squares, freedom)


def _nonnegative(columns: Floats, y: Floats) -> Floats:
    """The best coefficients of which none is negative: of at most three columns every subset is
    tried."""
    best, least = np.zeros(columns.shape[1]), inf
    for size in range(columns.shape[1], 0, -1):
        for used in combinations(range(columns.shape[1]), size):
            found = _solve(columns[:, used], y)
            if found.squares < least and (found.coefficients >= 0).all():
                least, best = found.squares, np.zeros(columns.shape[1])
                best[list(used)] = found.coefficients
    return best


def fit_times(bytes_: ArrayLike, seconds: ArrayLike, files: ArrayLike | None = None) -> TimeFit:
    """Rate, fixed time and time per file of rounds of different sizes. Fixed and per file are at
    least 0; intervals come from the fit without these bounds, so they hold the truth as often as
    they say, and are cut at 0 afterwards. They hold it whether durations scatter alike or in
    proportion to their length: few rounds do not tell which.

    >>> found = fit_times([1e9, 2e9, 4e9], [1.5, 2.5, 4.5])
    >>> round(found.rate_bytes_per_s.value), round(found.fixed_s.value, 6)
    (1000000000, 0.5)
    >>> fit_times([1e9, 1e9], [1.5, 1.7]).why
    'ONE_SIZE'
    """
    size, y, *more = rounds_of(bytes_, seconds, *([] if files is None else [files]))
    sound = (size > 0) & (y > 0)
    for each in more:
        sound &= each >= 0
    if not sound.all():
        raise ValueError("a round has bytes and takes time")
    n = len(y)
    if n == 0:
        none = absent("NO_ROUNDS")
        return TimeFit(none, none, none, (), nan, 0, "NO_ROUNDS")
    if n == 1:
        return _rate_alone(size, y, "ONE_ROUND")
    if float(np.ptp(size)) <= ALIKE * float(size.mean()):
        return _rate_alone(size, y, "ONE_SIZE")
    columns = np.column_stack([size, np.ones(n)])
    if not more:
        return _of_sizes(size, y, columns, "FILES_UNKNOWN")
    if not _is_apart(more[0], columns):
        return _of_sizes(size, y, columns, "FILES_NOT_APART")
    return _of_sizes(size, y, np.column_stack([columns, more[0]]), "")


def _of_sizes(size: Floats, y: Floats, columns: Floats, files_why: str) -> TimeFit:
    """Rounds of different sizes; a column each for bytes, ones, and files where they are apart."""
    n, names = len(y), ("rate", "fixed_s", "per_file_s")[: columns.shape[1]]
    free = _solve(columns, y)
    values = free.coefficients if (free.coefficients >= 0).all() else _nonnegative(columns, y)
    few = "FEW_ROUNDS" if free.stderr is None else ""
    laws = (free, _in_proportion(columns, y, columns @ values))
    of = {
        name: _interval(laws, k, float(values[k]), n)._replace(why=few)
        for k, name in enumerate(names)
    }
    slope, fixed_s = of["rate"], of["fixed_s"]
    if slope.low == 0.0 and fixed_s.low == 0.0:
        return _rate_alone(size, y, "SIZES_NOT_APART")
    return TimeFit(
        _reciprocal(slope),
        fixed_s,
        of.get("per_file_s", absent(files_why, n)),
        *_left(y, columns @ values, free.freedom),
        n,
        "NO_GROWTH" if slope.value <= 0 else few,
        tuple(name for name, value in zip(names[1:], values[1:], strict=True) if value == 0.0),
    )


def _rate_alone(size: Floats, y: Floats, why: str) -> TimeFit:
    """Bytes over time, whatever of it no size would have shortened."""
    n, columns = len(y), size[:, None]
    free = _solve(columns, y)
    slope = _interval((free,), 0, float(free.coefficients[0]), n)._replace(
        why="ONE_ROUND" if n == 1 else ""
    )
    none = absent(why, n)
    return TimeFit(
        _reciprocal(slope), none, none, *_left(y, columns @ free.coefficients, free.freedom), n, why
    )


def _left(y: Floats, fitted: Floats, freedom: int) -> tuple[tuple[float, ...], float]:
    """Residuals, and their spread as a fraction."""
    left = y - fitted
    spread = (
        sqrt(float(((left / fitted) ** 2).sum()) / freedom)
        if freedom > 0 and (fitted > 0).all()
        else nan
    )
    return tuple(left.tolist()), spread


def _is_apart(files: Floats, others: Floats) -> bool:
    """Whether files do something that neither a constant nor the bytes do."""
    length = float(np.sqrt(files @ files))
    return (
        len(files) > others.shape[1] + 1
        and length > 0
        and sqrt(_solve(others, files).squares) > APART * length
    )


def _in_proportion(columns: Floats, y: Floats, fitted: Floats) -> _Solved:
    """The fit in which a duration of twice the length may be off by twice as much: rows by
    1/duration, as it is fitted itself."""
    for _ in range(_TURNS):
        weight = 1.0 / np.maximum(fitted, _LEAST_SHARE * float(y.mean()))
        found = _solve(columns * weight[:, None], y * weight)
        fitted = columns @ found.coefficients
    return found


def _interval(laws: Sequence[_Solved], k: int, value: float, n: int) -> Estimate:
    """Of one coefficient that cannot be negative; from the lowest to the highest end under any law
    of scatter."""
    if laws[0].stderr is None:
        return Estimate(value, n=n)
    ends = [
        (float(law.coefficients[k]), student_t(law.freedom) * float(law.stderr[k]))
        for law in laws
        if law.stderr is not None
    ]
    low, high = min(at - reach for at, reach in ends), max(at + reach for at, reach in ends)
    return Estimate(value, min(max(low, 0.0), value), max(high, value), float(laws[0].stderr[k]), n)


def _reciprocal(slope: Estimate) -> Estimate:
    """Bytes per second from seconds per byte: the ends change places. A slope that may be 0 sets no
    upper end to the rate."""
    if slope.value <= 0:
        low = None if slope.high is None or slope.high <= 0 else 1.0 / slope.high
        return Estimate(nan, low, None if low is None else inf, None, slope.n, "NO_GROWTH")
    value = 1.0 / slope.value
    if slope.low is None or slope.high is None or slope.stderr is None:
        return Estimate(value, n=slope.n, why=slope.why)
    high = inf if slope.low <= 0 else 1.0 / slope.low
    return Estimate(value, 1.0 / slope.high, high, slope.stderr * value**2, slope.n, slope.why)


def fit_power(load: ArrayLike, watts: ArrayLike) -> PowerFit:
    """Power at rest and what a load adds.

    >>> found = fit_power([0.0, 1e9, 2e9], [10.0, 12.0, 14.0])
    >>> round(found.base_w.value, 9), round(found.per_load.value * 1e9, 9)
    (10.0, 2.0)
    """
    x, y = rounds_of(load, watts)
    n, mean = len(y), mean_of(watts)
    if n < 2 or float(np.ptp(x)) <= ALIKE * float(np.abs(x).max()):
        why = "NO_ROUNDS" if n == 0 else "ONE_ROUND" if n == 1 else "ONE_LOAD"
        return PowerFit(
            absent(why, n), absent(why, n), mean, tuple((y - mean.value).tolist()), n, why
        )
    columns = np.column_stack([np.ones(n), x])
    found = _solve(columns, y)
    few = "" if found.stderr is not None else "FEW_ROUNDS"
    base, slope = (
        (
            Estimate(value, n=n, why=few)
            if found.stderr is None
            else about(value, float(found.stderr[k]), found.freedom, n)
        )
        for k, value in enumerate(found.coefficients.tolist())
    )
    return PowerFit(base, slope, mean, tuple((y - columns @ found.coefficients).tolist()), n, few)


def joules_per_byte(joules: ArrayLike, bytes_: ArrayLike) -> Estimate:
    """All joules over all bytes, so that a long round counts for what it is; the interval is that
    of a ratio, from round to round.

    >>> round(joules_per_byte([2.0, 4.2], [1e9, 2e9]).value * 1e9, 6)
    2.066667
    """
    spent, size = rounds_of(joules, bytes_)
    n, total = len(spent), float(size.sum())
    if n == 0 or not total > 0:
        return absent("NO_ROUNDS", n)
    ratio = float(spent.sum()) / total
    if n < 2:
        return Estimate(ratio, n=n, why="ONE_ROUND")
    left = spent - ratio * size
    return about(ratio, sqrt(float(left @ left) / (n - 1) * n) / total, n - 1, n)
