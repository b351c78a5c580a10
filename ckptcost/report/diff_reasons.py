"""Whether two statements may be held against each other, and what to know beside the figures."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.errors import brief
from ckptcost.present.amounts import duration
from ckptcost.report.diff import other_grid_method, some, value_of
from ckptcost.report.difference import Change, Delta, FactorChange, Reason
from ckptcost.report.parts import Warned
from ckptcost.report.statement import QUANTITIES, Statement

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
    found: list[Reason] = []

    def add(code: str, message: str, refuses: bool = True) -> None:
        found.append(Reason(code=code, message=message, refuses=refuses))

    for code, what, one, two in (
        ("METHOD", "method", past.method_version, current.method_version),
        ("CURRENCY", "currency", past.currency, current.currency),
        ("KIND", "kind", past.kind, current.kind),
        (
            "SIMULATED",
            "meters",
            *("simulated" if s.simulated else "not simulated" for s in (past, current)),
        ),
        ("PUE_INCLUDED", "energy", *(_pue_words(s) for s in (past, current))),
        (
            "COUNTERFACTUAL",
            "measured against",
            past.boundary.counterfactual,
            current.boundary.counterfactual,
        ),
        ("FUNCTIONAL_UNIT", "functional units", *(_units(s) for s in (past, current))),
    ):
        if one != two:
            add(code, f"{what}: {one} before, {two} now")
    found += _boundary_reasons(past, current)
    changed = [
        f.id
        for f in factors
        if f.converts and not _same_value(f) and not _comes_with(f, past, current)
    ]
    if changed:
        add("FACTORS", f"other prices, grid or facility: {some(changed)}", False)
    if unlike := other_grid_method(past, current):
        add("GRID_METHOD", f"no change of location-based emissions is told: {unlike}", False)
    paid = "cluster.price_includes_electricity"
    if len({s.choices[paid] for s in (past, current) if paid in s.choices}) > 1:
        words = ["held in" if s.choices.get(paid) else "paid besides" for s in (past, current)]
        add(
            "CHOICES",
            f"electricity is {words[0]} the price of a GPU-hour before, {words[1]} it now",
            False,
        )
    if past.contracts != current.contracts:
        add(
            "CONTRACTS",
            f"electricity contracts: {_contracts(past)} before, {_contracts(current)} now",
            False,
        )
    if _interval(past) != _interval(current):
        add(
            "INTERVAL",
            f"low and high are {_interval(past)} before, {_interval(current)} now",
            False,
        )
    work = [value_of(s, "run.work") for s in (past, current)]
    what, lengths = (
        ("training", work) if None not in work else ("the run", [past.length_s, current.length_s])
    )
    if _far(lengths[0], lengths[1]):
        add(
            "LENGTH",
            f"{what} is not equally long: {duration(lengths[0])} before, {duration(lengths[1])}"
            " now; see the figures for each unit",
            False,
        )
    return found


def _boundary_reasons(past: Statement, current: Statement) -> list[Reason]:
    found = []
    one, two = ({c.id: c for c in s.marginal()} for s in (past, current))
    levels = [
        f"{one[name].label} ({one[name].boundary} before, {two[name].boundary} now)"
        for name in one
        if name in two
        and one[name].boundary != two[name].boundary
        and any(c.energy.value for c in (one[name], two[name]))
    ]
    if levels:
        found.append(
            Reason(
                code="BOUNDARY_LEVEL",
                message=f"counted at another boundary: {some(levels)}",
                refuses=True,
            )
        )
    modelled = past.kind == current.kind == "modelled"
    alone = (
        {
            c.label
            for mine, theirs in ((one, two), (two, one))
            for name, c in mine.items()
            if name not in theirs
        }
        if modelled
        else set()
    )
    # a line that both have, known in one: its sums have no change, and everything else can be told
    dark = {
        one[name].label
        for name in one
        if name in two and (one[name].energy.value is None) != (two[name].energy.value is None)
    }
    if dark:
        found.append(
            Reason(
                code="UNKNOWN_LINE",
                message=f"energy known in only one of the two: {some(sorted(dark))}",
                refuses=False,
            )
        )
    differ = sorted(({*past.boundary.included} ^ {*current.boundary.included}) - alone - dark)
    if differ:
        found.append(
            Reason(
                code="INCLUDED",
                message=f"counted in only one of the two: {some(differ)}",
                refuses=True,
            )
        )
    return found


def notes_of(past: Statement, current: Statement, delta: Delta) -> list[Warned]:
    """What to know beside the figures."""
    found = []
    for which, only in (("past", "past one"), ("current", "current one")):
        names = [c.label for c in delta.components if c.only_in == which]
        if names:
            found.append(Warned(code="LINES", message=f"Only the {only} has: {some(names)}."))
    if (past.period_start, past.period_end) != (current.period_start, current.period_end):
        spans = [
            f"{s.period_start} to {s.period_end}" if s.period_start else "no dates"
            for s in (past, current)
        ]
        found.append(
            Warned(code="DATES", message=f"Other dates: {spans[0]} before, {spans[1]} now.")
        )
    unknown = {
        c.reason
        for c in _each(delta)
        if c.direction == "unknown" and c.reason and c.reason.startswith("unknown in one")
    }
    found += [
        Warned(code="LACKING", message=f"A change of totals is not known: {reason}.")
        for reason in sorted(unknown)
    ]
    if any(c.ranges_overlap and c.direction != "same" for c in _each(delta)):
        found.append(
            Warned(
                code="OVERLAP",
                message=(
                    "Where ranges overlap, the change is within the uncertainty of the two, each"
                    " taken alone. Where both rest on the same uncertain inputs it can be surer"
                    " than that: `ckptcost compare` draws both together."
                ),
            )
        )
    grid = next((s for s in delta.splits if s.quantity == "emissions_location"), None)
    if grid is not None and not any(
        f.id in ("site.grid_location", "site.pue") for f in delta.factors
    ):
        found.append(
            Warned(
                code="HOURS",
                message=(
                    "The grid's mean factor differs though the grid is the same: the energy was"
                    " used at other hours."
                ),
            )
        )
    return found


def _each(delta: Delta) -> list[Change]:
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
