"""What the best interval, a faster tier or saving beside training would have saved, as tables and
in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ckptcost.core.quantities import Quantity, pick
from ckptcost.core.units import to_hours
from ckptcost.fleet.bill_tables import plain, with_ends
from ckptcost.fleet.savings import AllSavings, JobSavings, Option, Savings
from ckptcost.present.amounts import duration, number
from ckptcost.report.study import Column, Table

OPTION_WORDS: Final = {
    "BEST_INTERVAL": "the best interval",
    "TIER_2X": "a tier twice as fast",
    "TIER_10X": "a tier ten times as fast",
    "ASYNC": "saving beside training",
}
WHY_WORDS: Final = {
    "NO_FAILURES": (
        "no failure was seen: taken to be as frequent as that leaves room for, values are the least"
    ),
    "NO_SAVES": "no save was completed",
    "NO_STALL": "nobody says how long a save held training up",
    "NO_INTERVAL": "too few saves to tell an interval",
    "NO_EXPOSURE": "no running time is known",
    "NO_COPY_RATE": "as if the copy that training waits for took no time: the most it can save",
}


def tables(found: Savings, placed: bool) -> list[Table]:
    """All together, and each job."""
    return [_whole(found.whole, placed), _jobs(found.jobs, placed)]


def _saved_quantities(placed: bool) -> tuple[Quantity, ...]:
    return pick("gpu_time_lost", "energy", *(["cost"] if placed else []))


def _amounts(each: Option | AllSavings, placed: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for q in _saved_quantities(placed):
        row |= with_ends(q, getattr(each, q.field))
    return row


def _amount_columns(placed: bool) -> tuple[Column, ...]:
    found = []
    for q in _saved_quantities(placed):
        shown = q.id == "gpu_time_lost"
        found += [
            Column(q.measure, f"{q.unit} saved", q.unit),
            Column(f"{q.measure}_low", "low", q.unit, shown=shown),
            Column(f"{q.measure}_high", "high", q.unit, shown=shown),
        ]
    return tuple(found)


def _whole(found: Sequence[AllSavings], placed: bool) -> Table:
    rows = [
        {
            "what": OPTION_WORDS[each.id],
            "id": each.id,
            "jobs": float(each.jobs),
            **_amounts(each, placed),
        }
        for each in found
        if each.jobs
    ]
    columns = (
        Column("what", "instead"),
        Column("id", "id", shown=False),
        Column("jobs", "jobs", "count", "of which it can be said"),
        *_amount_columns(placed),
    )
    note = (
        "Modelled with the fleet's own stalls and failures, each at its best interval; low and"
        " high: the failure rate's 95 %."
    )
    return Table("savings", "What would have been saved", columns, rows, note, shown=bool(rows))


def _jobs(found: Sequence[JobSavings], placed: bool) -> Table:
    rows: list[dict[str, Any]] = []
    for job in found:
        base = {
            "job": job.job,
            "interval": plain(job.usual.interval_s),
            "mtbf": plain(job.mtbf_s.value),
            "mtbf_low": plain(job.mtbf_s.low),
            "mtbf_high": plain(job.mtbf_s.high),
            "measured": plain(job.measured_overhead),
            "modelled": plain(job.modelled_overhead.value),
            "ratio": plain(job.ratio),
            "nodes": plain(job.usual.nodes),
            "stall": plain(job.usual.stall_s),
            "lag": plain(job.usual.lag_s),
            "down": plain(job.usual.down_s),
            "load": plain(job.usual.load_s),
            "why": WHY_WORDS.get(job.why, job.why),
        }
        for option in job.options:
            why = "; ".join(filter(None, (str(base["why"]), WHY_WORDS.get(option.why, option.why))))
            rows.append(
                {
                    **base,
                    "what": OPTION_WORDS[option.id],
                    "id": option.id,
                    "best": plain(option.interval_s.value),
                    "overhead": plain(option.overhead.value),
                    **_amounts(option, placed),
                    "why": why,
                }
            )
        if not job.options:
            rows.append({**base, "what": "-", "id": ""})
    columns = (
        Column("job", "job"),
        Column("what", "instead"),
        Column("id", "id", shown=False),
        Column("interval", "interval", "s", "training between saves, as it was"),
        Column("best", "best", "s"),
        Column("measured", "overhead", "share", "as measured: time that is not work kept"),
        Column(
            "modelled", "modelled", "share", "the same, of the model at the interval that it had"
        ),
        Column("overhead", "then", "share"),
        *_amount_columns(placed),
        Column(
            "ratio",
            "modelled/measured",
            "1",
            "far from 1: the model does not fit this job",
            shown=False,
        ),
        Column("mtbf", "MTBF", "s", "of the job", shown=False),
        Column("mtbf_low", "low", "s", shown=False),
        Column("mtbf_high", "high", "s", shown=False),
        Column("nodes", "nodes", "1", shown=False),
        Column("stall", "stall", "s", "mean", shown=False),
        Column("lag", "lag", "s", "until safe", shown=False),
        Column("down", "down", "s", "a failure's", shown=False),
        Column("load", "load", "s", shown=False),
        Column("why", "why", shown=False),
    )
    return Table("savings_by_job", "The same by job", columns, rows, shown=0 < len(rows) <= 16)


def sentence(found: Savings) -> str:
    """The best of what costs nothing: another interval."""
    best = next(
        (
            each
            for each in found.whole
            if each.id == "BEST_INTERVAL" and each.jobs and each.gpu_s.known
        ),
        None,
    )
    if best is None or best.gpu_s.value <= 0:
        return ""
    hours = to_hours(best.gpu_s.value)
    told = [
        job
        for job in found.jobs
        if job.options and job.options[0].interval_s.known and job.options[0].gpu_s.known
    ]
    if not told:  # no job failed: what is best is not known
        return ""
    one = max(told, key=lambda job: job.options[0].gpu_s.value)
    option = one.options[0]
    return (
        f"The best interval would have saved {number(hours)} GPU-hours, most of it in {one.job}:"
        f" every {duration(option.interval_s.value)} instead of {duration(one.usual.interval_s)}."
    )
