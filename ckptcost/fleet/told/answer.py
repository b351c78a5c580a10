"""From a store to a study: list, merge, sum up, and say it. The one way for the command line and
for Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from math import inf, nan
from typing import TYPE_CHECKING, Final, NamedTuple

from ckptcost.core.measures import BILLED
from ckptcost.errors import Argument, InputError, UnknownName, brief
from ckptcost.fleet.kept.store import Store, open_store
from ckptcost.fleet.merge.part import Part
from ckptcost.jobs.gates import Gate, Verdict, judged, no_percentiles

if TYPE_CHECKING:
    from ckptcost.fleet.figures.figures import Fleet
    from ckptcost.report.study import Study
    from ckptcost.scenario import Resolved

LOST: Final = ("CORRUPT", "TRUNCATED", "FUTURE", "UNREADABLE", "SKEWED", "UNSTEADY")
"""codes of files that held something"""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


class Asked(NamedTuple):
    """Of which part of a store, grouped how, standing where."""

    store: str
    by: str = "job"
    since: str = ""
    until: str = ""
    """days, UTC, both included"""
    jobs: Sequence[str] = ()
    scheduler: str = "pandas"
    top: int = 10
    resolved: Resolved | None = None
    """site and prices; None: joules as metered, and neither dollars nor carbon"""
    priced: bool = True
    """whether GPU time has the price that `resolved` says, or only its site counts"""
    machine: bool = False
    """whether `resolved` is of these machines: a scenario that somebody named"""


def answer_of(
    asked: Asked, gates: Sequence[Gate] = (), tell: Callable[[int, int], None] | None = None
) -> Study:
    """The fleet as a study. Raises InputError where the store holds nothing of what is asked
    for."""
    from ckptcost.fleet.figures.figures import fleet_of
    from ckptcost.fleet.figures.savings import savings_of
    from ckptcost.fleet.figures.tiers import tiers_of
    from ckptcost.fleet.figures.worst import worst_of
    from ckptcost.fleet.merge.engine import collected, grouped
    from ckptcost.fleet.told.study import Findings, study_of
    from ckptcost.report.statements.run_lines import unpriced

    no_percentiles(gates, "fleet")
    for name, day in (("since", asked.since), ("until", asked.until)):
        _is_day(day, Argument(name))
    if asked.since and asked.until and asked.since > asked.until:
        raise InputError(f"{asked.since} is after {asked.until}", where=Argument("since"))
    store = open_store(asked.store)
    # a save at midnight may lie in part with the day beside
    entries, strange = store.looked_through(
        _beside(asked.since, -1), _beside(asked.until, 1), asked.jobs
    )
    if not any(_inside(asked, entry.day) for entry in entries):
        raise _nothing(store, asked)
    part = _counting(collected(store, grouped(entries), asked.scheduler, tell), asked)
    s = (
        None
        if asked.resolved is None
        else asked.resolved.scenario
        if asked.priced
        else unpriced(asked.resolved.scenario)
    )
    if (
        s is not None and not asked.machine
    ):  # how fast its GPUs copy, a scenario that nobody named does not know
        s = replace(s, cluster=replace(s.cluster, gpu_d2h_bytes_per_s=inf))
    fleet = fleet_of(part, asked.by, s)
    findings = Findings(
        fleet,
        part,
        savings_of(part, fleet, s),
        tiers_of(part, fleet.cells),
        worst_of(part, fleet, asked.top),
        strange,
    )
    return study_of(asked, findings, verdicts_of(fleet, part, gates))


def _nothing(store: Store, asked: Asked) -> InputError:
    """What there would be instead."""
    all_of_it = store.listing()
    if not all_of_it:
        return InputError(
            "is empty",
            where=asked.store,
            remedy="`ckptcost runs pack --all --store STORE` fills it",
        )
    jobs = sorted({entry.job for entry in all_of_it})
    for job in asked.jobs:
        if job not in jobs:
            return UnknownName("job", job, jobs, where=Argument("jobs"))
    days = sorted({entry.day for entry in all_of_it if not asked.jobs or entry.job in asked.jobs})
    return InputError(
        "holds nothing of these days", where=asked.store, remedy=f"it has {days[0]} to {days[-1]}"
    )


def _counting(part: Part, asked: Asked) -> Part:
    """Of the days that were asked for. Raises InputError where no file of them counts: that is not
    nothing, it is not known."""
    found = _cut(part, asked)
    if len(found.heads):
        return found
    why = sorted({str(code) for code in found.files["code"] if code}) if len(found.files) else []
    first = f"; the first: {found.files['text'].iloc[0]}" if why else ""
    raise InputError(
        f"no file of it counts ({', '.join(why) or 'none is of these days'}{first})",
        where=asked.store,
        remedy="pack these runs again",
    )


def _inside(asked: Asked, day: str) -> bool:
    return asked.since <= day and (not asked.until or day <= asked.until)


def _beside(day: str, by: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=by)).isoformat() if day else ""


def _cut(part: Part, asked: Asked) -> Part:
    """What is of the days that were asked for, by the jobs' clocks. A run that began before is seen
    from there on."""
    if not asked.since and not asked.until:
        return part
    heads = part.heads
    if asked.since and len(heads):
        first_ns = int(datetime.fromisoformat(f"{asked.since}T00:00:00+00:00").timestamp()) * 10**9
        heads = heads.assign(
            run_began_ns=heads["run_began_ns"].where(
                heads["run_began_ns"] == 0, heads["run_began_ns"].clip(lower=first_ns)
            )
        )
    found = []
    for frame in part._replace(heads=heads):
        found.append(
            frame[[_inside(asked, str(day)) for day in frame["day"]]].reset_index(drop=True)
            if len(frame)
            else frame
        )
    return Part(*found)


def _is_day(text: str, where: str) -> None:
    if not text:
        return
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        date.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{brief(text)} is no day", where=where, remedy="e.g. 2026-11-01"
        ) from None


def not_estimated(part: Part) -> list[str]:
    """Files that were set aside and of whose job's day nothing else is there, so that no estimate
    stands for them."""
    if not len(part.files):
        return []
    there = set(zip(part.heads["job"], part.heads["day"], strict=True))
    bad = part.files[part.files["code"].isin(LOST)]
    return [
        str(path)
        for path, job, day in zip(bad["path"], bad["job"], bad["day"], strict=True)
        if (job, day) not in there
    ]


def verdicts_of(fleet: Fleet, part: Part, gates: Sequence[Gate]) -> list[Verdict]:
    """Budgets against the whole fleet. What is not known meets none, and what lies in files that
    cannot be read is not known."""
    whole = fleet.whole
    known = {
        "goodput": whole.goodput,
        **{name: getattr(whole.totals, q.field).value for name, q in BILLED.items()},
        "stall": whole.stalls.mean_s,
        "saves": float(whole.checkpoints),
        "saves_per_day": whole.saves_per_day,
        "failures": float(whole.failures),
        "wall": nan,
        "interval": nan,
    }
    if not_estimated(part):
        known = dict.fromkeys(known, nan)
    for gate in gates:
        if gate.measure.id in ("wall", "interval"):
            raise InputError(
                f"a fleet has no {gate.measure.id}",
                where=gate.text,
                remedy=f"one of {', '.join(list(known)[:-2])}",
            )
    return judged(gates, lambda gate: known[gate.measure.id])
