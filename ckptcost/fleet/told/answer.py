"""From a store to a study: list, merge, sum up, and say it. The one way for the command line and for Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from math import nan
from typing import TYPE_CHECKING, Final, NamedTuple

from ckptcost.errors import InputError, brief
from ckptcost.fleet.kept.store import open_store
from ckptcost.fleet.merge.part import Part
from ckptcost.jobs.gates import Gate, Verdict, judged, no_percentiles

if TYPE_CHECKING:
    from ckptcost.fleet.figures.figures import Fleet
    from ckptcost.report.study import Study
    from ckptcost.scenario import Resolved

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


def answer_of(asked: Asked, gates: Sequence[Gate] = (), tell: Callable[[int, int], None] | None = None) -> Study:
    """The fleet as a study. Raises InputError where the store holds nothing of what is asked for."""
    from ckptcost.fleet.figures.figures import fleet_of
    from ckptcost.fleet.figures.savings import savings_of
    from ckptcost.fleet.figures.tiers import tiers_of
    from ckptcost.fleet.figures.worst import worst_of
    from ckptcost.fleet.merge.engine import collected, grouped
    from ckptcost.fleet.told.study import Findings, study_of
    from ckptcost.report.statements.run_lines import unpriced

    no_percentiles(gates, "fleet")
    for flag, day in (("--since", asked.since), ("--until", asked.until)):
        _is_day(day, flag)
    if asked.since and asked.until and asked.since > asked.until:
        raise InputError(f"{asked.since} is after {asked.until}", where="--since")
    store = open_store(asked.store)
    # a save at midnight may lie in part with the day beside
    entries = store.listing(_beside(asked.since, -1), _beside(asked.until, 1), asked.jobs)
    if not any(_inside(asked, entry.day) for entry in entries):
        raise InputError("holds nothing of that" if asked.since or asked.until or asked.jobs else "is empty", where=asked.store,
                         remedy="`ckptcost runs pack --all --store STORE` fills it")  # fmt: skip
    part = _cut(collected(store, grouped(entries), asked.scheduler, tell), asked)
    s = None if asked.resolved is None else asked.resolved.scenario if asked.priced else unpriced(asked.resolved.scenario)
    fleet = fleet_of(part, asked.by, s)
    findings = Findings(
        fleet, part, savings_of(part, fleet, s), tiers_of(part, fleet.cells), worst_of(part, fleet, asked.top), store.strange()
    )  # fmt: skip
    return study_of(asked, findings, verdicts_of(fleet, gates))


def _inside(asked: Asked, day: str) -> bool:
    return asked.since <= day and (not asked.until or day <= asked.until)


def _beside(day: str, by: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=by)).isoformat() if day else ""


def _cut(part: Part, asked: Asked) -> Part:
    """What is of the days that were asked for, by the jobs' clocks."""
    if not asked.since and not asked.until:
        return part
    return Part(
        *(frame[[_inside(asked, str(day)) for day in frame["day"]]].reset_index(drop=True) if len(frame) else frame for frame in part)
    )


def _is_day(text: str, flag: str) -> None:
    if not text:
        return
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{brief(text)} is no day", where=flag, remedy="e.g. 2026-11-01") from None


def verdicts_of(fleet: Fleet, gates: Sequence[Gate]) -> list[Verdict]:
    """Budgets against the whole fleet. What is not known meets none."""
    whole = fleet.whole
    known = {
        "goodput": whole.goodput, "gpu_hours": whole.totals.gpu_s.value, "kwh": whole.totals.energy_j.value,
        "usd": whole.totals.cost_usd.value, "kgco2e": whole.totals.location_kgco2e.value,
        "market_kgco2e": whole.totals.market_kgco2e.value, "embodied_kgco2e": whole.totals.embodied_kgco2e.value,
        "stall": whole.stalls.mean_s, "saves": float(whole.checkpoints), "saves_per_day": whole.saves_per_day,
        "failures": float(whole.failures), "wall": nan, "interval": nan,
    }  # fmt: skip
    for gate in gates:
        if gate.measure.id in ("wall", "interval"):
            raise InputError(f"a fleet has no {gate.measure.id}", where=gate.text, remedy=f"one of {', '.join(list(known)[:-2])}")
    return judged(gates, lambda gate: known[gate.measure.id])
