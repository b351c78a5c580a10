"""A chart's curves as arrays, made once for a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.first.present.chart import Curve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


_MOST = 1e200
"""beyond that sums leave the range of numbers"""


class Points(NamedTuple):
    """One curve. What was not thinned has its values as the least and the most around them."""

    xs: Floats
    ys: Floats
    lows: Floats
    highs: Floats

    def within(self, low: float, high: float, around: int = 0) -> Points:
        """Those in a range of x, with as many neighbours on either side as are asked for."""
        begin = max(int(self.xs.searchsorted(low)) - around, 0)
        end = min(int(self.xs.searchsorted(high, side="right")) + around, len(self.xs))
        if begin == 0 and end == len(self.xs):
            return self
        ys = self.ys[begin:end]
        if self.lows is self.ys:
            return Points(self.xs[begin:end], ys, ys, ys)
        return Points(self.xs[begin:end], ys, self.lows[begin:end], self.highs[begin:end])


def points_of(curves: Sequence[Curve]) -> list[Points]:
    """Curves that share their xs share the array too. Of columns that differ in length, the
    shortest decides."""
    import numpy as np

    shared: dict[int, Floats] = {}
    found = []
    for curve in curves:
        xs = shared.get(id(curve.xs))
        if xs is None:
            xs = shared[id(curve.xs)] = np.asarray(curve.xs, np.float64)
        ys = np.asarray(curve.ys, np.float64)
        if len(xs) != len(ys):
            size = min(len(xs), len(ys))
            xs, ys = xs[:size], ys[:size]
        if len(curve.lows) == len(curve.highs) == len(curve.ys) == len(ys) > 0:
            lows = np.fmin(np.asarray(curve.lows, np.float64), ys)
            highs = np.fmax(np.asarray(curve.highs, np.float64), ys)
            found.append(Points(xs, ys, lows, highs))
        else:
            found.append(Points(xs, ys, ys, ys))
    return found


def ends_of(series: Iterable[Floats], log: bool = False) -> tuple[float, float] | None:
    """The least and the most of all that can be drawn, None where nothing can."""
    found: list[tuple[float, float]] = []
    for values in series:
        if not len(values):
            continue
        low, high = float(values.min()), float(values.max())
        if not -_MOST < low <= high < _MOST or (log and low <= 1 / _MOST):
            fine = values[drawable(values, log)]
            if not len(fine):
                continue
            low, high = float(fine.min()), float(fine.max())
        found.append((low, high))
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def drawable(values: Floats, log: bool = False) -> NDArray[np.bool_]:
    """Which values have a place on an axis."""
    import numpy as np

    size = np.abs(values)
    return (size < _MOST) & (values > 1 / _MOST) if log else size < _MOST
