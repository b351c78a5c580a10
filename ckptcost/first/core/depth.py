"""Queue depth, rates and operations of a disk over a window, from counters like those of
/proc/diskstats.

The queue counter grows by the number of requests under way, second by second, so its difference
over a time is their mean number:

    mean depth = d(queue_s) / dt        rate = d(bytes) / dt        time one request takes =
    d(queue_s) / d(requests)   (Little)

Between two readings a counter is taken to grow evenly. Rates are sums over sums; a mean of rates
would weigh short steps as long ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import COUNTERS, Quantity, Series

Floats = NDArray[np.float64]
MOST_PER_S: Final[Mapping[Quantity, float]] = {"busy_s": 2.0, "queue_s": 65_536.0}
"""A wrapped counter is believed up to here: one disk is busy once, and one NVMe queue holds so
many. Beyond it was a reset."""
MOST_BINS: Final = 1_000_000
_ROUNDED_S: Final = 1e-3
"""more than sums of times are ever rounded by"""
_SHOWN: Final[tuple[Quantity, ...]] = ("queue_s", "busy_s", "written_bytes", "read_bytes", "writes")


class Growth(NamedTuple):
    """A counter from its first reading on: how much it grew and for how long that is known. Both
    stand still in gaps."""

    t_s: Floats
    grown: Floats
    known_s: Floats
    gaps_s: Floats
    """where each gap begins and ends: one row a gap"""

    def over(self, begin_s: object, end_s: object) -> tuple[Floats, Floats]:
        """Growth and known time between instants; outside the readings nothing is known."""
        begin_s, end_s = np.asarray(begin_s, dtype=np.float64), np.asarray(end_s, dtype=np.float64)
        if not len(self.t_s):
            return np.zeros(begin_s.shape), np.zeros(begin_s.shape)
        grown = np.interp(end_s, self.t_s, self.grown) - np.interp(begin_s, self.t_s, self.grown)
        known_s = np.interp(end_s, self.t_s, self.known_s) - np.interp(
            begin_s, self.t_s, self.known_s
        )
        return grown, known_s

    def bounds(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """Growth at least and at most: what was read within, and what was read from the last
        reading before to the first one after. NaN where there is none, or a gap lies within."""
        first, last = self.t_s.searchsorted((begin_s, end_s)).tolist()
        since = int(self.t_s.searchsorted(begin_s, side="right")) - 1
        until = int(self.t_s.searchsorted(end_s, side="right")) - 1
        if len(self.t_s) == 0 or since < 0 or last >= len(self.t_s):
            return nan, nan
        if ((self.gaps_s[:, 0] < self.t_s[last]) & (self.gaps_s[:, 1] > self.t_s[since])).any():
            return nan, nan
        least = float(self.grown[until] - self.grown[first]) if until >= first else 0.0
        return max(least, 0.0), float(self.grown[last] - self.grown[since])


def growth(readings: Series, wraps_at: float | None = None, most_per_s: float = inf) -> Growth:
    """Steps between readings, added up. A reading without an answer is bridged; a decrease is a gap
    unless the counter wrapped.

    >>> from ckptcost.first.core.channels import series
    >>> seen = growth(series([0.0, 1.0, 2.0, 3.0], [5.0, 7.0, 1.0, 4.0]))
    >>> seen.grown.tolist(), seen.known_s.tolist(), seen.gaps_s.tolist()
    ([0.0, 2.0, 2.0, 5.0], [0.0, 1.0, 1.0, 2.0], [[1.0, 2.0]])
    """
    answered = np.isfinite(readings.value) & np.isfinite(readings.t_s)
    # copies: numpy's interpolation copies an array that nobody may write, each time anew
    t_s, value = readings.t_s[answered], readings.value[answered]
    if len(t_s) < 2:
        return Growth(t_s, np.zeros(len(t_s)), np.zeros(len(t_s)), np.empty((0, 2)))
    length_s, step = np.diff(t_s), np.diff(value)
    if np.any(length_s < 0):
        raise ValueError("readings are not in the order of time")
    if wraps_at is not None:
        around = step + wraps_at
        step = np.where(
            (step < 0) & (around >= 0) & (around <= most_per_s * length_s), around, step
        )
    lost = step < 0
    grown = np.concatenate([[0.0], np.cumsum(np.where(lost, 0.0, step))])
    known_s = np.concatenate([[0.0], np.cumsum(np.where(lost, 0.0, length_s))])
    return Growth(t_s, grown, known_s, np.column_stack([t_s[:-1][lost], t_s[1:][lost]]))


class Queue(NamedTuple):
    """A disk over a window. NaN is not known; peaks are means over `peak_over_s`."""

    begin_s: float
    end_s: float
    coverage: float
    """share of the window that the least known counter covers; bytes and operations are of the
    covered part"""
    peak_over_s: float
    mean_depth: float
    peak_depth: float
    most_in_flight: float
    """largest single reading of the requests under way"""
    busy: float
    """share of the time with a request under way"""
    written_bytes: float
    write_bytes_per_s: float
    peak_write_bytes_per_s: float
    writes: float
    mean_write_bytes: float
    read_bytes: float
    read_bytes_per_s: float
    reads: float
    mean_read_bytes: float
    flushes: float
    wait_s: float
    """mean time of a request from queue to completion, by Little's law"""
    gaps: int
    written_low_bytes: float = nan
    written_high_bytes: float = nan
    """between the readings within and those around the window: a short one ends between two"""


class DepthLine(NamedTuple):
    """The same over time, one value a bin; NaN where a bin is not fully known."""

    begin_s: Floats
    end_s: Floats
    depth: Floats
    busy: Floats
    write_bytes_per_s: Floats
    read_bytes_per_s: Floats
    writes_per_s: Floats


def wait_s(depth: float, requests_per_s: float) -> float:
    """Little's law: mean time a request takes.

    >>> round(wait_s(342, 340_970_988 / 28_295) * 1e3, 1)  # the trace of micron-2026-sdc, in ms
    28.4
    """
    return depth / requests_per_s if requests_per_s > 0 else nan


def _grown(
    readings: Mapping[Quantity, Series], wraps_at: Mapping[Quantity, float]
) -> dict[Quantity, Growth]:
    found: dict[Quantity, Growth] = {}
    for name in readings:
        # asked for one at a time: each may be as long as the run
        if name in COUNTERS and len((of := readings[name]).t_s):
            grown = growth(of, wraps_at.get(name), MOST_PER_S.get(name, inf))
            for other in found.values():  # a long run's times are kept once, not once a counter
                if np.array_equal(other.t_s, grown.t_s):
                    grown = grown._replace(t_s=other.t_s)
                    if np.array_equal(other.known_s, grown.known_s):
                        grown = grown._replace(known_s=other.known_s)
                    break
            found[name] = grown
    return found


def _per_s(of: Growth | None, begins: Floats, ends: Floats) -> Floats:
    """Rates of bins that are known as a whole."""
    if of is None:
        return np.full(begins.shape, nan)
    grown, known_s = of.over(begins, ends)
    whole = known_s >= (ends - begins) * (1.0 - 1e-6)
    return np.where(whole & (known_s > 0), grown / np.where(known_s > 0, known_s, 1.0), nan)


def _between(t_s: Floats, begin_s: float, end_s: float) -> slice:
    """Which of these times, which are in order, lie there: a window looks at its own readings, not
    at those of the whole run."""
    return slice(int(t_s.searchsorted(begin_s)), int(t_s.searchsorted(end_s, side="right")))


def _step_s(grown: Mapping[Quantity, Growth], begin_s: float, end_s: float) -> float:
    """How far readings lie apart in the window, typically: a peak over less would be invented."""
    inside = [of.t_s[_between(of.t_s, begin_s, end_s)] for of in grown.values()]
    return max(
        (float(np.median(np.diff(t_s))) for t_s in inside if len(t_s) > 1), default=end_s - begin_s
    )


def _peak(of: Growth | None, begin_s: float, end_s: float, width_s: float) -> float:
    """The highest mean over any stretch of that width. Growth is straight between readings, so the
    best stretch begins or ends at one, or at an end of the window."""
    if of is None or width_s <= 0:
        return nan
    last_s = max(
        end_s - width_s, begin_s
    )  # a stretch as wide as the window, which rounding may put before its begin
    until = of.t_s[_between(of.t_s, begin_s + width_s - _ROUNDED_S, last_s + width_s + _ROUNDED_S)]
    begins = np.concatenate(
        [[begin_s, last_s], of.t_s[_between(of.t_s, begin_s, last_s)], until - width_s]
    )
    begins = begins[(begins >= begin_s) & (begins <= last_s)]
    rates = _per_s(of, begins, np.minimum(begins + width_s, end_s))
    known = rates[np.isfinite(rates)]
    return float(np.max(known)) if len(known) else nan


class Counted(NamedTuple):
    """A disk's readings, looked over once: for `over`, of as many windows as there are."""

    grown: Mapping[Quantity, Growth]
    asked_s: Floats
    """when the requests under way were known ..."""
    in_flight: Floats
    """... and how many they were"""


def queue_counts(
    readings: Mapping[Quantity, Series], wraps_at: Mapping[Quantity, float] | None = None
) -> Counted:
    """From series to what they count."""
    asked_s, in_flight = np.empty(0), np.empty(0)
    if (of := readings.get("in_flight")) is not None:
        known = np.isfinite(of.value)
        order = np.argsort(of.t_s[known], kind="stable")
        asked_s, in_flight = of.t_s[known][order], of.value[known][order]
    return Counted(_grown(readings, wraps_at or {}), asked_s, in_flight)


def over(
    readings: Mapping[Quantity, Series] | Counted,
    begin_s: float,
    end_s: float,
    bin_s: float = 1.0,
    wraps_at: Mapping[Quantity, float] | None = None,
) -> Queue:
    """A disk's counters over a window; peaks over `bin_s`, or over the readings' own distance where
    that is longer.

    >>> from ckptcost.first.core.channels import series
    >>> disk = {
    ...     "queue_s": series([0, 1, 2], [0, 30, 40]),
    ...     "writes": series([0, 1, 2], [0, 1500, 2000]),
    ...     "reads": series([0, 2], [7, 7]),
    ... }
    >>> seen = over(disk, 0.0, 2.0)
    >>> seen.mean_depth, seen.writes, seen.wait_s, seen.peak_depth, seen.peak_over_s
    (20.0, 2000.0, 0.02, 20.0, 2.0)
    """
    disk = readings if isinstance(readings, Counted) else queue_counts(readings, wraps_at)
    return each_over(disk, [(begin_s, end_s)], bin_s)[0]


def each_over(
    disk: Counted, spans: Sequence[tuple[float, float]], bin_s: float = 1.0
) -> list[Queue]:
    """The same of many windows, whose growth is looked up together."""
    begins_s, ends_s = np.array(spans).reshape(-1, 2).T
    grown_of = {
        name: list(zip(*(part.tolist() for part in of.over(begins_s, ends_s)), strict=True))
        for name, of in disk.grown.items()
    }
    return [
        _queue(disk, *span, bin_s, {name: each[n] for name, each in grown_of.items()})
        for n, span in enumerate(spans)
    ]


def _queue(
    disk: Counted,
    begin_s: float,
    end_s: float,
    bin_s: float,
    much_of: Mapping[Quantity, tuple[float, float]],
) -> Queue:
    """`much_of`: growth and known time of every counter."""
    grown, in_flight = disk.grown, disk.in_flight[_between(disk.asked_s, begin_s, end_s)]
    length_s = max(end_s - begin_s, 0.0)
    width_s = min(max(bin_s, _step_s(grown, begin_s, end_s)), length_s)
    known_s = [seen_s for _, seen_s in much_of.values()] if length_s > 0 else []

    def total(name: Quantity) -> float:
        much, seen_s = much_of.get(name, (nan, 0.0))
        return much if seen_s > 0 else nan

    def rate(name: Quantity) -> float:
        much, seen_s = much_of.get(name, (nan, 0.0))
        return much / seen_s if seen_s > 0 else nan

    def peak(name: Quantity) -> float:
        return _peak(grown.get(name), begin_s, end_s, width_s)

    written = grown.get("written_bytes")
    least, most = written.bounds(begin_s, end_s) if written is not None else (nan, nan)

    return Queue(
        begin_s=begin_s,
        end_s=end_s,
        coverage=min(known_s) / length_s if known_s else 0.0,
        peak_over_s=width_s,
        mean_depth=rate("queue_s"),
        peak_depth=peak("queue_s"),
        most_in_flight=float(np.max(in_flight)) if len(in_flight) else nan,
        busy=rate("busy_s"),
        written_bytes=total("written_bytes"),
        write_bytes_per_s=rate("written_bytes"),
        peak_write_bytes_per_s=peak("written_bytes"),
        writes=total("writes"),
        mean_write_bytes=_bytes_per_operation(rate("written_bytes"), rate("writes")),
        read_bytes=total("read_bytes"),
        read_bytes_per_s=rate("read_bytes"),
        reads=total("reads"),
        mean_read_bytes=_bytes_per_operation(rate("read_bytes"), rate("reads")),
        flushes=total("flushes"),
        wait_s=wait_s(rate("queue_s"), rate("writes") + rate("reads")),
        gaps=max(
            (
                int(np.sum((of.gaps_s[:, 0] < end_s) & (of.gaps_s[:, 1] > begin_s)))
                for of in grown.values()
            ),
            default=0,
        ),
        written_low_bytes=least,
        written_high_bytes=most,
    )


def _bytes_per_operation(bytes_per_s: float, operations_per_s: float) -> float:
    return bytes_per_s / operations_per_s if operations_per_s > 0 else nan


def line(
    readings: Mapping[Quantity, Series],
    begin_s: float,
    end_s: float,
    bin_s: float = 1.0,
    wraps_at: Mapping[Quantity, float] | None = None,
) -> DepthLine:
    """A disk's counters bin by bin; the last bin is shorter where they do not fit."""
    grown = _grown(readings, wraps_at or {})
    width_s = max(bin_s, (end_s - begin_s) / MOST_BINS)
    count = int(np.ceil((end_s - begin_s) / width_s - 1e-9)) if end_s > begin_s else 0
    begins = begin_s + width_s * np.arange(count, dtype=np.float64)
    ends = np.append(begins[1:], end_s)[:count]
    return DepthLine(begins, ends, *(_per_s(grown.get(name), begins, ends) for name in _SHOWN))
