"""How long the saves and loads of each run stood, and which save was its last: what a run's time is
divided by.

A save that was completed took some time, even where nobody says how much: it is taken to have been
as long as the run's others. Where nobody says it of any, nobody knows how much of the run was work.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.estimates import Floats
from ckptcost.core.useful import RunSpan, Useful
from ckptcost.fleet.figures.grouping import Cells, Places, counted, flags, instants, numbers, summed

if TYPE_CHECKING:
    from ckptcost.fleet.merge.part import Part

_NS: Final = 1e-9


class Stalls:
    """One value a run, in the order in which they are given."""

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
        saves_s, of_saves, self._no_stall = _filled(stall_s, kept, run_of, count)
        filled_s, of_loads, self._no_load = _filled(saves_s, load, run_of, count)
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


def _filled(
    stall_s: Floats, which: NDArray[np.bool_], run_of: Places, count: int
) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """With the mean of those that are known in the run for those that are not; how many these are;
    and where none is known of some."""
    lacking = which & np.isnan(stall_s)
    lacks = counted(lacking, run_of, count)
    if not lacks.any():
        return stall_s, lacks.astype(np.int64), np.zeros(count, dtype=bool)
    known = which & ~np.isnan(stall_s)
    many = counted(known, run_of, count)
    mean_s = np.divide(
        _sums(stall_s, known, run_of, count), many, where=many > 0, out=np.full(count, nan)
    )
    none = (many == 0) & (lacks > 0)
    return (
        np.where(lacking, mean_s[run_of], stall_s),
        np.where(none, 0.0, lacks).astype(np.int64),
        none,
    )


def _sums(values: Floats, which: NDArray[np.bool_], places: Places, count: int) -> Floats:
    return summed(values[which], places[which], count)
