"""OpenMetrics text with timestamps: the samples of `prometheus` over time, for `promtool tsdb
create-blocks-from openmetrics`.

Counters begin with 0 at the run's start and have a sample at each row's end, so that the increase
over any whole rows is what those rows cost. A row of which nothing is known has no sample. Where
only a sum is known (no rows, or none that add up to it), it goes evenly from start to end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.errors import InputError
from ckptcost.exports import metric_names as names
from ckptcost.exports.formats import Files
from ckptcost.exports.prometheus import Sample, by_family
from ckptcost.report.document import Report
from ckptcost.report.statement import SERIES_OF, Series, Statement, utc

Ms = NDArray[np.int64]
Amounts = NDArray[np.float64]
AT_END = frozenset(
    names.bound(family, end, of)
    for family, _ in names.QUANTITIES.values()
    for end in ("low", "high")
    for of in ("component", "run")
)
"""gauges that speak of the whole run, so there is one when it is over"""


class _Rows(NamedTuple):
    """Rows of one component, or of all, in the order of their ends."""

    at: NDArray[np.intp]
    start: Ms
    end: Ms


class _History:
    """One statement's time: its period, and its rows by component."""

    def __init__(self, run: Statement) -> None:
        self.begin, self.end = (
            _ms(utc(text).timestamp()) for text in (run.period_start or "", run.period_end or "")
        )
        self.series = run.series if run.series is not None and run.series.start else None
        self._rows: dict[str, _Rows] = {}
        self._stamps: dict[int, str] = {}
        if self.series is not None:
            begins = {text: _ms(utc(text).timestamp()) for text in set(self.series.start)}
            start = np.array([begins[text] for text in self.series.start], np.int64)
            length = np.rint(np.array(self.series.duration_s) * 1000).astype(np.int64)
            component = np.array(self.series.component)
            order = np.lexsort((start, start + length))
            for name in ("", *set(self.series.component)):
                at = order if not name else order[component[order] == name]
                self._rows[name] = _Rows(at, start[at], start[at] + length[at])

    def of(self, sample: Sample) -> tuple[Ms, Amounts]:
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
        rows = self._rows.get(sample.component) if sample.what else None
        if rows is not None and self.series is not None:
            scale = names.QUANTITIES[sample.what].scale if sample.what in names.QUANTITIES else 1.0
            amounts = _column(self.series, sample.what)[rows.at] * scale
            if math.isclose(
                math.fsum(amounts[~np.isnan(amounts)]), sample.value, rel_tol=1e-9, abs_tol=1e-300
            ):
                return self._grown(rows, amounts)
        return np.array([self.begin, self.end], np.int64), np.array([0.0, sample.value])

    def _grown(self, rows: _Rows, amounts: Amounts) -> tuple[Ms, Amounts]:
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
        last = np.append(
            when[1:] != when[:-1], True
        )  # one sample an instant: the latest, which has all rows until then
        return when[last], value[last]

    def lines(self, sample: Sample) -> str:
        when, values = self.of(sample)
        prefix, stamps = f"{sample.family.sample}{sample.labels} ", self._texts(when)
        return "".join(
            [
                f"{prefix}{value:.12g} {stamp}\n"
                for value, stamp in zip(values.tolist(), stamps, strict=True)
            ]
        )

    def _texts(self, when: Ms) -> Sequence[str]:
        stamps, wanted = self._stamps, when.tolist()
        for ms in wanted:
            if ms not in stamps:
                stamps[ms] = _stamp(ms)
        return [stamps[ms] for ms in wanted]


def export(document: Report) -> Files:
    return {"metrics.txt": _text(document)}


def _text(document: Report) -> Iterator[str]:
    histories = {id(run): _History(run) for run in document.statements}
    whole = sorted(
        {min(h.begin for h in histories.values()), max(h.end for h in histories.values())}
    )
    for family, samples in by_family(document).items():
        yield names.head(family, "openmetrics")
        for sample in samples:
            if sample.run is None:
                yield "".join(
                    f"{family.sample}{sample.labels} {names.number(sample.value)} {_stamp(ms)}\n"
                    for ms in whole
                )
            else:
                yield histories[id(sample.run)].lines(sample)
    yield "# EOF\n"


def _column(series: Series, what: str) -> Amounts:
    values: Any = getattr(series, SERIES_OF.get(what, what))
    return np.array(values, np.float64)  # null becomes NaN


def _ms(unix_s: float) -> int:
    return round(unix_s * 1000)


def _stamp(ms: int) -> str:
    """Seconds, as readers want them.

    >>> _stamp(1790812800000), _stamp(1790812800250)
    ('1790812800', '1790812800.250')
    """
    whole, rest = divmod(ms, 1000)
    return f"{whole}.{rest:03d}" if rest else str(whole)
