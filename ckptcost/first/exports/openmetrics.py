"""OpenMetrics text with timestamps: the samples of `prometheus` over time, for `promtool tsdb
create-blocks-from openmetrics`.

Counters begin with 0 at the run's start and have a sample at each row's end, so that the increase
over any whole rows is what those rows cost. A row of which nothing is known has no sample. Where
only a sum is known (no rows, or none that add up to it), it goes evenly from start to end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ckptcost.first.errors import InputError
from ckptcost.first.exports import metric_names as names
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.history import Amounts, Ms, RowsInTime, ms, rows_in_time
from ckptcost.first.exports.prometheus import StatementSample, by_family
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement

AT_END = frozenset(
    names.bound(family, end, of)
    for family, _ in names.QUANTITIES.values()
    for end in ("low", "high")
    for of in ("component", "run")
)
"""gauges that speak of the whole run, so there is one when it is over"""


class History:
    """One statement's time: its period, and its rows by component."""

    def __init__(self, run: Statement) -> None:
        self.begin, self.end = ms(run.period_start or ""), ms(run.period_end or "")
        self.rows = rows_in_time(run)

    def of(self, sample: StatementSample) -> tuple[Ms, Amounts]:
        """When a sample was taken, and what it was then."""
        if sample.family.kind != "counter":
            when = [self.end] if sample.family in AT_END else sorted({self.begin, self.end})
            return np.array(when, np.int64), np.full(len(when), sample.value)
        if sample.value < 0:
            raise InputError(
                f"{sample.family.sample}{sample.labels} is {sample.value:g}, and a counter cannot"
                " fall",
                where="openmetrics",
            )
        rows = self.rows.get(sample.component) if sample.what else None
        if rows is not None:
            scale = names.QUANTITIES[sample.what].scale if sample.what in names.QUANTITIES else 1.0
            amounts = rows.amounts[sample.what] * scale
            sum_of_rows = math.fsum(amounts[~np.isnan(amounts)])
            if math.isclose(sum_of_rows, sample.value, rel_tol=1e-9, abs_tol=1e-300):
                return self._grown(rows, amounts)
        return np.array([self.begin, self.end], np.int64), np.array([0.0, sample.value])

    def _grown(self, rows: RowsInTime, amounts: Amounts) -> tuple[Ms, Amounts]:
        known = ~np.isnan(amounts)
        before = np.concatenate([[self.begin], rows.end[:-1]])[known]
        start, end = rows.start[known], rows.end[known]
        grown = np.concatenate([[0.0], np.cumsum(amounts[known])])
        # a row below zero (a saving) is taken off what came before it: readers take a counter that
        # falls for one that began anew
        grown = np.maximum(np.minimum.accumulate(grown[::-1])[::-1], 0.0)
        # held until the row begins, or its amount would seem to have come evenly since the row
        # before it; a row that is there and unknown is bridged instead, for a flat line would say
        # nought
        held = start - before > 1
        when = np.concatenate([[self.begin], end, start[held]])
        value = np.concatenate([grown, grown[:-1][held]])
        order = np.argsort(when, kind="stable")
        when, value = when[order], value[order]
        # one sample an instant: the latest, which has all rows until then
        last = np.append(when[1:] != when[:-1], True)
        return when[last], value[last]


def export(document: Report) -> Files:
    return {"metrics.txt": _text(document)}


def _text(document: Report) -> Iterator[str]:
    histories = {id(run): History(run) for run in document.statements}
    begin = min(each.begin for each in histories.values())
    end = max(each.end for each in histories.values())
    stamps: dict[int, str] = {}
    for family, samples in by_family(document).items():
        yield names.head(family, "openmetrics")
        for sample in samples:
            if sample.run is None:
                when, values = sorted({begin, end}), [sample.value] * 2
            else:
                found = histories[id(sample.run)].of(sample)
                when, values = found[0].tolist(), found[1].tolist()
            stamps.update((each, _stamp(each)) for each in when if each not in stamps)
            prefix = f"{family.sample}{sample.labels} "
            yield "".join(
                f"{prefix}{value:.12g} {stamps[each]}\n"
                for each, value in zip(when, values, strict=False)
            )
    yield "# EOF\n"


def _stamp(instant_ms: int) -> str:
    """Seconds, as readers want them.

    >>> _stamp(1790812800000), _stamp(1790812800250)
    ('1790812800', '1790812800.250')
    """
    whole, rest = divmod(instant_ms, 1000)
    return f"{whole}.{rest:03d}" if rest else str(whole)
