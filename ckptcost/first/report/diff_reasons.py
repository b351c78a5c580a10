"""Whether two statements may be held against each other, and what to know beside the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckptcost.first.errors import brief
from ckptcost.first.present.amounts import duration
from ckptcost.first.report.diff import other_grid_method, some, value_of
from ckptcost.first.report.difference import Change, Delta, FactorChange, Reason
from ckptcost.first.report.parts import Warned
from ckptcost.first.report.statement import QUANTITIES, Statement

_SAME_LENGTH = 0.01
"""relative: no two recorded runs last equally long to the second"""


def reasons_of(
    past: Statement, current: Statement, factors: Sequence[FactorChange]
) -> list[Reason]:
    """Why the two are not like for like; none: they are.

    The SCI standard wants a baseline of identical methodology: measurements, assumptions, models
    and functional units the same. So:

    * another method, currency, boundary, kind (measured, modelled), functional unit, or simulated
      meters on one side only: two figures of different things. Such a reason `refuses`: nothing is
      computed unless that is asked for.
    * other prices, grid, PUE or contracts, other ranges, or another length of the work: the figures
      are of the same thing at other conditions. All is computed, the reasons are told first, and
      `comparable` is false, because a gate on "the change to the code" would judge the weather of a
      market instead. The splits say what the change is at constant factors, where that can be told.
    * what a change is made of is no reason: checkpoint, tier, policy, hardware and failures may
      differ, or there would be nothing to compare, and the price of another tier or accelerator
      comes with it. Nor is the wall time of one and the same work, which is an outcome; nor are
      lines that only one of two models has (a second tier's, say): a model without the line is
      known to have none of it. Of a measurement that is not known, and it refuses.
    """
    return [
        *_other_things(past, current),
        *_other_boundaries(past, current),
        *_other_conditions(past, current, factors),
    ]


def _other_things(past: Statement, current: Statement) -> list[Reason]:
    told: tuple[tuple[str, str, Callable[[Statement], str]], ...] = (
        ("METHOD", "method", lambda s: s.method_version),
        ("CURRENCY", "currency", lambda s: s.currency),
        ("KIND", "kind", lambda s: s.kind),
        ("SIMULATED", "meters", lambda s: "simulated" if s.simulated else "not simulated"),
        ("PUE_INCLUDED", "energy", _pue_words),
        ("COUNTERFACTUAL", "measured against", lambda s: s.boundary.counterfactual),
        ("FUNCTIONAL_UNIT", "functional units", _units),
    )
    return [
        Reason(code=code, message=f"{what}: {of(past)} before, {of(current)} now", refuses=True)
        for code, what, of in told
        if of(past) != of(current)
    ]


def _other_conditions(
    past: Statement, current: Statement, factors: Sequence[FactorChange]
) -> list[Reason]:
    told = (
        ("FACTORS", _other_prices(past, current, factors)),
        ("GRID_METHOD", _other_grid(past, current)),
        ("CHOICES", _other_payment(past, current)),
        ("CONTRACTS", _other_contracts(past, current)),
        ("INTERVAL", _other_interval(past, current)),
        ("LENGTH", _other_length(past, current)),
    )
    return [Reason(code=code, message=said, refuses=False) for code, said in told if said]


def _other_prices(past: Statement, current: Statement, factors: Sequence[FactorChange]) -> str:
    changed = [
        f.id
        for f in factors
        if f.converts and not _same_value(f) and not _comes_with(f, past, current)
    ]
    return f"other prices, grid or facility: {some(changed)}" if changed else ""


def _other_grid(past: Statement, current: Statement) -> str:
    unlike = other_grid_method(past, current)
    return f"no change of location-based emissions is told: {unlike}" if unlike else ""


def _other_payment(past: Statement, current: Statement) -> str:
    paid = "cluster.price_includes_electricity"
    if len({s.choices[paid] for s in (past, current) if paid in s.choices}) < 2:
        return ""
    words = ["held in" if s.choices[paid] else "paid besides" for s in (past, current)]
    return f"electricity is {words[0]} the price of a GPU-hour before, {words[1]} it now"


def _other_contracts(past: Statement, current: Statement) -> str:
    if past.contracts == current.contracts:
        return ""
    return f"electricity contracts: {_contracts(past)} before, {_contracts(current)} now"


def _other_interval(past: Statement, current: Statement) -> str:
    before, now = _interval(past), _interval(current)
    return f"low and high are {before} before, {now} now" if before != now else ""


def _other_length(past: Statement, current: Statement) -> str:
    work = [value_of(s, "run.work") for s in (past, current)]
    what, lengths = (
        ("training", work) if None not in work else ("the run", [past.length_s, current.length_s])
    )
    if not _far(*lengths):
        return ""
    return (
        f"{what} is not equally long: {duration(lengths[0])} before, {duration(lengths[1])} now;"
        " see the figures for each unit"
    )


def _other_boundaries(past: Statement, current: Statement) -> list[Reason]:
    one, two = ({c.id: c for c in s.marginal()} for s in (past, current))
    both = [(c, two[name]) for name, c in one.items() if name in two]
    levels = [
        f"{before.label} ({before.boundary} before, {now.boundary} now)"
        for before, now in both
        if before.boundary != now.boundary and (before.energy.value or now.energy.value)
    ]
    # a line that both have, known in one: its sums have no change, and everything else can be told
    dark = {
        before.label
        for before, now in both
        if (before.energy.value is None) != (now.energy.value is None)
    }
    modelled = past.kind == current.kind == "modelled"
    alone = {(one | two)[name].label for name in one.keys() ^ two.keys() if modelled}
    differ = {*past.boundary.included} ^ {*current.boundary.included}
    told = (
        ("BOUNDARY_LEVEL", "counted at another boundary", levels),
        ("UNKNOWN_LINE", "energy known in only one of the two", sorted(dark)),
        ("INCLUDED", "counted in only one of the two", sorted(differ - alone - dark)),
    )
    return [
        Reason(code=code, message=f"{what}: {some(lines)}", refuses=code != "UNKNOWN_LINE")
        for code, what, lines in told
        if lines
    ]


def notes_of(past: Statement, current: Statement, delta: Delta) -> list[Warned]:
    """What to know beside the figures."""
    overlap = any(c.ranges_overlap and c.direction != "same" for c in _total_changes(delta))
    told = (
        ("LINES", _lines_of_one("past", delta)),
        ("LINES", _lines_of_one("current", delta)),
        ("DATES", _other_dates(past, current)),
        *(
            ("LACKING", f"A change of totals is not known: {reason}.")
            for reason in sorted(_unknown_lines(delta))
        ),
        ("OVERLAP", _OVERLAP if overlap else ""),
        ("HOURS", _HOURS if _used_at_other_hours(delta) else ""),
    )
    return [Warned(code=code, message=message) for code, message in told if message]


_OVERLAP = (
    "Where ranges overlap, the change is within the uncertainty of the two, each taken alone. Where"
    " both rest on the same uncertain inputs it can be surer than that: `ckptcost compare` draws"
    " both together."
)
_HOURS = (
    "The grid's mean factor differs though the grid is the same: the energy was used at other"
    " hours."
)


def _lines_of_one(which: str, delta: Delta) -> str:
    names = [c.label for c in delta.components if c.only_in == which]
    return f"Only the {which} one has: {some(names)}." if names else ""


def _other_dates(past: Statement, current: Statement) -> str:
    if (past.period_start, past.period_end) == (current.period_start, current.period_end):
        return ""
    before, now = (
        f"{s.period_start} to {s.period_end}" if s.period_start else "no dates"
        for s in (past, current)
    )
    return f"Other dates: {before} before, {now} now."


def _unknown_lines(delta: Delta) -> set[str]:
    return {
        c.reason
        for c in _total_changes(delta)
        if c.direction == "unknown" and c.reason and c.reason.startswith("unknown in one")
    }


def _used_at_other_hours(delta: Delta) -> bool:
    changed = {f.id for f in delta.factors}
    return any(s.quantity == "emissions_location" for s in delta.splits) and changed.isdisjoint(
        ("site.grid_location", "site.pue")
    )


def _total_changes(delta: Delta) -> list[Change]:
    return [getattr(delta.totals, what) for what in QUANTITIES]


def _same_value(f: FactorChange) -> bool:
    return f.before is not None and f.after is not None and f.before.value == f.after.value


def _comes_with(f: FactorChange, past: Statement, current: Statement) -> bool:
    """The price of something else, or of something that only one has, is no other price."""
    section, one, two = f.id.split(".")[0], past.subject, current.subject
    if section.endswith("tier"):
        return one.tier != two.tier or f.before is None or f.after is None
    return section == "cluster" and one.accelerator != two.accelerator


def _pue_words(s: Statement) -> str:
    if not s.boundary.pue_included_in_energy:
        return "without PUE"
    return "with PUE" if s.boundary.pue is not None else "with a PUE that is not told"


def _units(s: Statement) -> str:
    return ", ".join(sorted(brief(unit.name).strip("'\"") for unit in s.functional_units)) or "none"


def _contracts(s: Statement) -> str:
    return some([brief(c.name) for c in s.contracts]) if s.contracts else "none"


def _interval(s: Statement) -> str:
    kinds = {q.interval for q in (getattr(s.totals, what) for what in QUANTITIES) if q.interval}
    return " and ".join(sorted(kinds)) or "not given"


def _far(one: float | None, two: float | None) -> bool:
    return (
        one is not None
        and two is not None
        and abs(one - two) > _SAME_LENGTH * max(abs(one), abs(two))
    )
