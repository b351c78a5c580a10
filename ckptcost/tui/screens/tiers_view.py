"""Tiers side by side: every tier of the desk weighed once, at the interval in force and at its own
best one.

A tier that cannot be computed stays in the list with the reason; it never stops the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from ckptcost.core.outcome import HOPELESS_GOODPUT, Outcome, evaluate, makes_headway
from ckptcost.core.regret import OBJECTIVES, cost_of
from ckptcost.errors import InputError
from ckptcost.jobs.compare import undecided
from ckptcost.jobs.model import compared, computable, one_of, two_tiers_at_most
from ckptcost.jobs.model import model as model_job
from ckptcost.present.amounts import share
from ckptcost.report.rows import columns_of
from ckptcost.scenario import Resolved
from ckptcost.tui.desk import Desk, Stamp

if TYPE_CHECKING:
    from ckptcost.jobs.optimize import Front, TierOption
    from ckptcost.questions.optimize import Objective
    from ckptcost.report.study import Study

Shown = Literal["best", "asked", "save"]
"""the run at each tier's best interval, the run at the interval in force, or one save"""
SHOWN: tuple[Shown, ...] = ("best", "asked", "save")
OWN = "tier"
"""what a tier without an entry in the catalogue is called, here as on the command line"""
_OF_ONE_SAVE = ("save_", "stall_s", "lag_s", "rate_bytes_per_s")
"""names of what does not depend on the interval"""


class Entry(NamedTuple):
    """One tier: what is known of it, or why nothing is."""

    tier: str
    """as the desk names it"""
    resolved: Resolved | None
    reason: str
    """why no figure can be shown at all"""
    asked: Outcome | None
    """the run at the interval in force"""
    option: TierOption | None
    best: Outcome | None
    """the run at its own best interval, for the objective that was asked for"""
    no_best: str
    """why there is none"""
    figures: Mapping[Shown, Mapping[str, float]]
    """numbers in people's units under the names of `ckptcost model`'s JSON, without those that are
    unknown or infinite"""

    @property
    def key(self) -> str:
        return self.tier or OWN

    def run(self, shown: Shown) -> Outcome | None:
        """The outcome that a row of the table is about."""
        return self.best if shown == "best" else self.asked


class Weighed(NamedTuple):
    """All tiers of a desk."""

    desk: Desk
    """the scenario as it was computed: where it says nothing of the interval, the best one is in
    force"""
    own_interval: bool
    """whether the scenario says how often to save"""
    objective: str
    entries: tuple[Entry, ...]
    front: Front | None

    def entry(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key == key), None)

    def undecided(self, shown: Shown = "best") -> tuple[str, ...]:
        """Inputs that decide which tier is best and are known for some of them only, so that none
        is."""
        run: Shown = "asked" if shown == "asked" else "best"
        return undecided(
            [outcome for entry in self.entries if (outcome := entry.run(run)) is not None],
            self.objective,
        )

    def best(self, shown: Shown = "best") -> Entry | None:
        """The tier whose run costs least; of those alike, the first; none where a line is known for
        some only. One save is judged by the run it is part of."""
        if self.undecided(shown):
            return None
        runs: dict[Shown, tuple[Shown, ...]] = {
            "best": ("best",),
            "asked": ("asked",),
            "save": ("best", "asked"),
        }
        for run in runs[shown]:
            able = [
                (entry, outcome)
                for entry in self.entries
                if (outcome := entry.run(run)) is not None
            ]
            costs = [float(cost_of(outcome, self.objective)) for _, outcome in able]
            known = [(cost, at) for at, cost in enumerate(costs) if cost == cost]
            if known:
                return able[min(known)[1]][0]
        return None

    def baseline(self, desk: Desk) -> Entry:
        return self.entry(desk.baseline) or next(
            (entry for entry in self.entries if entry.resolved is not None), self.entries[0]
        )


def scenario_of(desk: Desk) -> Desk:
    """Only what decides the figures: a change of tier.id holds for one tier alone, so it goes where
    several are named."""
    return desk.without("tier.id") if desk.tiers else desk


def with_interval(desk: Desk, objective: str = OBJECTIVES[0]) -> tuple[Desk, bool]:
    """The desk, asking for the best interval where the scenario says none, and whether it says
    one."""
    own = any(layer.has_cadence or layer.compare_saves for layer in desk.layers())
    return (desk, True) if own else (desk.edited("policy.optimal", objective), False)


def objective_of(desk: Desk) -> str:
    """What the scenario wants least of, which is what every screen begins with."""
    try:
        return desk.resolved().scenario.policy.objective
    except InputError:
        return OBJECTIVES[0]


def weighed(desk: Desk, objective: str, stopped: Callable[[], bool] = lambda: False) -> Weighed:
    """Resolve and evaluate every tier. Raises InputError where the scenario itself is wrong."""
    from ckptcost.jobs.optimize import pareto

    desk, own_interval = with_interval(scenario_of(desk), objective)
    layers, entries = desk.layers(), []
    for tier in desk.tiers_shown():
        if stopped():
            break
        entries.append(_entry(desk, layers, tier, objective))
    options = [entry.option for entry in entries if entry.option is not None]
    front = pareto(options) if any(option.known for option in options) else None
    return Weighed(desk, own_interval, objective, tuple(entries), front)


@np.errstate(over="ignore")
def _entry(desk: Desk, layers: Any, tier: str, objective: str) -> Entry:
    from ckptcost.jobs.optimize import option_of

    try:
        resolved = one_of(desk.catalog, layers, tier or None)
        two_tiers_at_most(resolved.scenario)
    except InputError as error:
        return Entry(
            tier, None, str(error), None, None, None, str(error), {each: {} for each in SHOWN}
        )
    asked, option, best, reason, no_best = None, None, None, "", ""
    try:
        option = option_of(resolved)
        if objective in option.known:
            best = option.at(option.best[objective])
        else:
            no_best = f"no best interval for {objective}: {_lacking(option, objective)}"
    except InputError as error:
        no_best = str(error)
    try:
        asked = evaluate(resolved.scenario)
        computable(resolved, asked)
    except InputError as error:
        asked, reason = None, str(error)
    return Entry(tier, resolved, reason, asked, option, best, no_best, _figures(asked, best))


def _lacking(option: TierOption, objective: str) -> str:
    keys = ", ".join(option.lacking[objective])
    return f"not known: {keys}" if keys else "a save that costs nothing is best made all the time"


def _figures(asked: Outcome | None, best: Outcome | None) -> dict[Shown, dict[str, float]]:
    """One save is the same at any interval; the run is not."""
    runs = {"best": best, "asked": asked}
    found = {
        name: {} if run is None else {key: float(value) for key, value in columns_of(run).items()}
        for name, run in runs.items()
    }
    once = {
        key: value
        for key, value in (found["asked"] or found["best"]).items()
        if key.startswith(_OF_ONE_SAVE)
    }

    def known(values: Mapping[str, float]) -> dict[str, float]:
        return {key: value for key, value in values.items() if np.isfinite(value)}

    return {
        "best": known(found["best"] | once),
        "asked": known(found["asked"]),
        "save": known(once),
    }


def never_ends(outcome: Outcome) -> bool:
    return not float(outcome.goodput) >= HOPELESS_GOODPUT


def no_headway(outcome: Outcome) -> str:
    """Why nothing is saved against a run, in words; empty where something may be."""
    if never_ends(outcome):
        return "the run never ends"
    if not makes_headway(outcome):
        return f"the run makes next to no headway (goodput {share(float(outcome.goodput))})"
    return ""


def command(weighed: Weighed, shown: Shown) -> str:
    """What prints the same numbers: tiers that cannot be computed are left out, for one of them
    would stop the command."""
    desk = weighed.desk
    able = [
        entry.tier
        for entry in weighed.entries
        if (entry.option if shown == "best" else entry.asked) is not None
    ]
    name, more = (
        ("optimize", ["--objective", weighed.objective]) if shown == "best" else ("model", [])
    )
    named = [tier for tier in able if tier]
    lines = []
    if "" in able or not named:  # the scenario's own tier has no name to give
        lines.append(desk.command(name, *more))
    if named:
        said = tuple(dict.fromkeys(compared(desk.layers())[0])) == tuple(able)
        lines.append(
            desk.command(
                name,
                *([] if said else [word for tier in named for word in ("--tier", tier)]),
                *more,
            )
        )
    return "; ".join(lines)


def exported(weighed: Weighed, shown: Shown) -> Study | None:
    """What is written to a file: `optimize`'s answer, or `model`'s where the interval is the one in
    force; None where there is none."""
    from ckptcost.questions.optimize import optimize
    from ckptcost.report.studies.model import study_of

    desk, layers = weighed.desk, weighed.desk.layers()
    if shown != "best":
        able = [entry.tier for entry in weighed.entries if entry.asked is not None]
        if not able:
            return None
        answer = model_job(desk.catalog, layers, [tier for tier in able if tier])
        return study_of(answer, desk.catalog)
    options = [entry.option for entry in weighed.entries if entry.option is not None]
    if not any(weighed.objective in option.known for option in options):
        return None
    named = [entry.tier for entry in weighed.entries if entry.option is not None and entry.tier]
    found = optimize(
        desk.base,
        changes=desk.settings(),
        tier=named,
        objective=cast("Objective", weighed.objective),
        check=0,
        catalog=desk.catalog,
    ).study
    # the table of the tiers first: it is what a CSV holds
    return found._replace(tables=sorted(found.tables, key=lambda table: table.id != "options"))


# changes of the desk


def with_tiers(desk: Desk, keys: Sequence[str]) -> Desk:
    """Other tiers side by side; none at all leaves the desk as it is."""
    shown = with_interval(desk)[0].tiers_shown()
    tiers = tuple("" if key == OWN and "" in shown else key for key in keys)
    return replace(desk.without("tier.id"), tiers=tiers) if tiers and tiers != shown else desk


def without(desk: Desk, key: str) -> Desk:
    """One tier less; the last one stays."""
    return with_tiers(
        desk,
        [each for tier in with_interval(desk)[0].tiers_shown() if (each := tier or OWN) != key],
    )


def next_of(shown: Shown) -> Shown:
    return SHOWN[(SHOWN.index(shown) + 1) % len(SHOWN)]


def on_baseline(desk: Desk, key: str) -> Desk:
    return replace(desk, baseline=key)


def on_tier(desk: Desk, key: str) -> Desk:
    """The tier that the other screens are about."""
    return replace(
        desk, chosen="" if key == OWN and "" in with_interval(desk)[0].tiers_shown() else key
    )


def same_figures(one: Desk, other: Desk | None, stamp: Stamp | None = None) -> bool:
    """Whether two desks differ in nothing that a figure rests on. A scenario that was opened anew
    has new edits, even if both have none; a catalogue that was read anew may hold other figures
    under the same names. `stamp`: of the other's files, when it was computed.
    """
    same = (
        other is not None
        and one.base == other.base
        and one.edits is other.edits
        and one.tiers == other.tiers
    )
    return (
        same
        and other is not None
        and one.catalog is other.catalog
        and (stamp is None or one.stamp() == stamp)
    )
