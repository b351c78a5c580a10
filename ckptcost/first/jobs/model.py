"""Model: one scenario, on every tier and at every number of saves that was asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from ckptcost.first.axes import one_cadence
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.bill import states_w
from ckptcost.first.core.cautions import Caution, cautions_of
from ckptcost.first.core.domain import UNKNOWN, Number, Scenario
from ckptcost.first.core.draws import SAMPLES, drawn
from ckptcost.first.core.outcome import (
    Classic,
    Outcome,
    Plan,
    best_interval_s,
    classic_of,
    cost_at,
    evaluate,
)
from ckptcost.first.core.regret import OBJECTIVES
from ckptcost.first.errors import Argument, InputError
from ckptcost.first.jobs.gates import Gate, GateVerdict, check_gates, no_percentiles
from ckptcost.first.layers import Layer, read_layer
from ckptcost.first.scenario import Resolved, resolve, ties_of, world_ranges_of

_POWERS = ("gpu_train", "gpu_stall", "gpu_idle", "host_train", "host_stall", "host_idle")
_FOR = {"time": "duration", "energy": "energy", "usd": "cost", "carbon": "emissions"}


def unknown_inputs(s: Scenario, objective: str) -> list[str]:
    """Keys without a value that a total of energy, dollars or carbon cannot do without."""
    c, site = s.cluster, s.site
    powers = [
        f"cluster.{key}"
        for key, power_w in zip(_POWERS, states_w(s), strict=True)
        if _unknown(power_w)
    ]
    if objective == "energy":
        return powers
    if objective == "carbon":
        return [*powers, *(["site.grid_location"] if _unknown(site.kgco2e_per_j) else [])]
    if objective == "usd":
        price = ["cluster.gpu_price"] if _unknown(c.usd_per_gpu_s) else []
        if c.price_includes_electricity:
            return price
        return [*price, *(["site.tariff"] if _unknown(site.usd_per_j) else []), *powers]
    return []


def what_is_missing(resolved: Resolved, objective: str) -> InputError:
    """The complaint that a result is not known, with the key that would supply it and why nobody
    has."""
    missing = unknown_inputs(resolved.scenario, objective)
    if not missing:
        return InputError(
            f"the {_FOR[objective]} of this run cannot be computed",
            remedy="an input it needs is unknown",
        )
    first = missing[0]
    reason = resolved.unknown.get(first, "nobody gives it")
    also = f" Also unknown: {', '.join(missing[1:])}" if len(missing) > 1 else ""
    return InputError(
        f"the {_FOR[objective]} of this run is not known: {reason}",
        key=first,
        remedy=f"give it with --set {first}=...{also}",
    )


def _unknown(value: object) -> bool:
    return value != value


class Case(NamedTuple):
    """One tier at one cadence: what went in and what came out."""

    tier_id: str
    resolved: Resolved
    outcome: Outcome
    spread: Outcome
    """the same over draws from the inputs' ranges, each number an array"""
    classic: Classic
    best: dict[str, Number]
    """best interval by objective"""
    cautions: tuple[Caution, ...]
    draws: int = SAMPLES
    judged_by: str = "time"
    """whose cost the rules of thumb are judged by"""

    @property
    def scenario(self) -> Scenario:
        return self.resolved.scenario


class Answer(NamedTuple):
    """All cases of one question, the first one in full; `reference` is the case that the avoidable
    ledger compares with."""

    cases: tuple[Case, ...]
    reference: Case | None = None


@np.errstate(over="ignore")
def case_of(
    resolved: Resolved, ranges: bool = True, intervals: bool = True, draws: int = SAMPLES
) -> Case:
    """Evaluate one resolved scenario. A screen that recomputes at every keystroke leaves out what
    it does not show: without `ranges` the spread is the outcome itself, without `intervals` no best
    one is looked for and the textbook's are unknown.
    """
    s = resolved.scenario
    two_tiers_at_most(s)
    outcome = evaluate(s)
    computable(resolved, outcome)
    spread = spread_of(resolved, outcome, draws) if ranges else outcome
    best = (
        {objective: best_interval_s(s, outcome.plan, objective) for objective in OBJECTIVES}
        if intervals
        else {}
    )
    # the rules are held against the objective's own optimum; where that is unknown, against the
    # least time
    judged_by = s.policy.objective if best.get(s.policy.objective, UNKNOWN) > 0 else "time"
    classic = classic_of(s, outcome, judged_by) if intervals else NOT_LOOKED_FOR
    held = tuple(caution for caution in cautions_of(s, outcome, spread) if bool(caution.holds))
    return Case(
        str(resolved.words.get("tier.id", "tier")),
        resolved,
        outcome,
        spread,
        classic,
        best,
        held,
        draws,
        judged_by,
    )


NOT_LOOKED_FOR = Classic(*(UNKNOWN,) * len(Classic._fields))


@np.errstate(over="ignore", invalid="ignore")
def spread_of(resolved: Resolved, outcome: Outcome, draws: int = SAMPLES) -> Outcome:
    """The outcome over draws from the inputs' ranges; the outcome itself where none has a range."""
    ranges = world_ranges_of(resolved)
    return (
        evaluate(
            drawn(planned_scenario(resolved.scenario, outcome), ranges, ties_of(resolved), draws)
        )
        if ranges
        else outcome
    )


def at_saves(s: Scenario, saves: float) -> Scenario:
    """The same with so many saves in the run: what --saves changes, without reading the scenario
    again."""
    return replace(s, policy=replace(s.policy, cadence="saves", every=saves))


def two_tiers_at_most(s: Scenario) -> None:
    """Three tiers are simulated; a sum that left the third out would be wrong without saying so."""
    if s.third_tier is not None:
        remedy = "`ckptcost simulate` walks through them, `ckptcost optimize` finds their intervals"
        raise InputError("three tiers have no closed form", key="third_tier", remedy=remedy)


def planned_scenario(s: Scenario, outcome: Outcome) -> Scenario:
    """The scenario with its interval as it was chosen: only the world varies, an optimal interval
    is not chosen again in every draw."""
    return replace(s, policy=replace(s.policy, cadence="interval", every=outcome.interval_s))


def computable(resolved: Resolved, outcome: Outcome) -> None:
    if 0 < outcome.interval_s < float("inf"):
        return
    if outcome.interval_s == float("inf") and not outcome.plan.failures_per_s > 0:
        raise InputError(
            "without failures the best interval is never to save",
            key="policy.optimal",
            remedy='give failures.rate, or an interval such as --interval "1 h"',
        )
    objective = resolved.scenario.policy.objective
    raise InputError(
        f"the best interval for {objective} cannot be computed",
        key="policy.optimal",
        remedy=why_no_best(resolved.scenario, outcome.plan, objective),
    )


@np.errstate(over="ignore", invalid="ignore")
def why_no_best(s: Scenario, plan: Plan, objective: str) -> str:
    """Why no interval is the best for an objective though there are failures."""
    needs = ", ".join(unknown_inputs(s, objective))
    if not needs and _unknown(plan.saved.write_s):
        needs = "the save time"
    if needs:
        return f"a figure it needs is unknown ({needs})"
    soonest_over = cost_at(s, plan, objective, best_interval_s(s, plan, "time"))
    if not math.isfinite(float(soonest_over)):
        safe_s = float(plan.saved.stall_s + plan.saved.lag_s)
        return (
            f"a save takes {safe_s:.3g} s until it is safe, and a failure comes each"
            f" {1.0 / float(plan.failures_per_s):.3g} s: take a faster tier"
        )
    if best_interval_s(s, plan, objective) == math.inf:
        return "what a failure loses costs nothing, so the best is never to save"
    return "what an interval changes costs nothing"


def model(
    catalog: Catalog,
    layers: Sequence[Layer],
    tiers: Sequence[str] = (),
    saves: Sequence[float] = (),
    against: str | None = None,
    draws: int = SAMPLES,
) -> Answer:
    """Every tier at every number of saves; without either, the scenario as it stands."""
    if saves:
        others = [layer for layer in layers if "saves" not in layer.sections.get("policy", {})]
        one_cadence({"saves"}, others, Argument("saves"))
    asked = comparison_of(layers)
    counted_by = None if saves else asked[2]
    tiers, saves = tiers or asked[0], saves or asked[1]
    counts: list[float | None] = [*dict.fromkeys(saves)] or [None]

    def case(tier: str | None, count: float | None) -> Case:
        return case_of(resolve(catalog, with_tier(layers, tier, count, counted_by)), draws=draws)

    cases = tuple(case(*each) for each in product(dict.fromkeys(tiers) or (None,), counts))
    return Answer(cases, None if against is None else case(against, counts[0]))


def comparison_of(layers: Sequence[Layer]) -> tuple[Sequence[str], Sequence[float], Layer | None]:
    """What the scenario itself compares and which layer counts, unless a later one (a flag) says
    one tier or one cadence."""
    tiers: Sequence[str] = ()
    saves: Sequence[float] = ()
    counted_by = None
    for layer in layers:
        if "id" in layer.sections.get("tier", {}):
            tiers = ()
        if layer.has_cadence:
            saves = ()
        tiers, saves = layer.compare_tiers or tiers, layer.compare_saves or saves
        counted_by = layer if layer.compare_saves else counted_by
    return tiers, saves, counted_by


def with_tier(
    layers: Sequence[Layer],
    tier: str | None,
    saves: float | None,
    counted_by: Layer | None,
) -> list[Layer]:
    """The layers with one tier and one count named over the scenario, and under the flags that
    change single inputs."""
    chosen = []
    if tier is not None:
        chosen.append(read_layer({"tier": {"id": tier}}, Argument("tier"), "--tier"))
    if saves is not None:
        label = counted_by.label if counted_by is not None else "--saves"
        where = label if counted_by is not None else Argument("saves")
        owner = ("assumed", "house") if label.startswith("scenario ") else ("user", "")
        chosen.append(read_layer({"policy": {"saves": saves}}, where, label, *owner))
    return under_flags(layers, *chosen)


def one_of(catalog: Catalog, layers: Sequence[Layer], tier: str | None = None) -> Resolved:
    """The scenario on one tier, at one cadence: the tier that is named, else the first of those it
    compares."""
    tiers, saves, counted_by = comparison_of(layers)
    chosen = tier if tier is not None else tiers[0] if tiers else None
    return resolve(catalog, with_tier(layers, chosen, saves[0] if saves else None, counted_by))


def under_flags(layers: Sequence[Layer], *chosen: Layer) -> list[Layer]:
    """--tier and --over name whole entries; what --set says of a single input holds for each of
    them."""
    return [
        *(layer for layer in layers if not layer.is_flag),
        *chosen,
        *(layer for layer in layers if layer.is_flag),
    ]


def judged_cases(gates: Sequence[Gate], cases: Sequence[Case]) -> list[GateVerdict]:
    """Every target held against every case."""
    no_percentiles(gates)
    several = len(cases) > 1
    return [
        verdict
        for case, name in zip(cases, case_names(cases), strict=True)
        for verdict in check_gates(
            gates,
            lambda gate, case=case: gate.measure.of(case.outcome),  # type: ignore[misc]
            name if several else "",
        )
    ]


def case_names(cases: Sequence[Case]) -> list[str]:
    """Tier and number of saves of each. Six digits do, unless two would then be called the same."""
    short = [_case_name(case, 6) for case in cases]
    return [
        _case_name(case, 12) if short.count(name) > 1 else name
        for case, name in zip(cases, short, strict=True)
    ]


def _case_name(case: Case, digits: int) -> str:
    saves = case.outcome.saves
    return f"{case.tier_id}@{saves:.{12 if saves == int(saves) else digits}g}"
