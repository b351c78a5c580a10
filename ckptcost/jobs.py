"""The verbs, shared by both front ends: model and sweep. They return domain results; documents are made of them elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ckptcost.axes import MOST_ROWS, Over, distinct, field_of, one_cadence
from ckptcost.catalog.figures import Figure
from ckptcost.catalog.keys import CADENCES
from ckptcost.catalog.store import Catalog
from ckptcost.core.cautions import Caution, cautions_of
from ckptcost.core.domain import Number, Scenario
from ckptcost.core.draws import drawn, replace_at
from ckptcost.core.outcome import Classic, Outcome, best_interval_s, classic_of, evaluate
from ckptcost.core.sweep import CHUNK, Axis, chunks
from ckptcost.errors import InputError
from ckptcost.layers import Layer, read_layer
from ckptcost.scenario import Resolved, ranges_of, resolve, ties_of

OBJECTIVES = ("time", "energy", "usd", "carbon")


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

    @property
    def scenario(self) -> Scenario:
        return self.resolved.scenario


class Answer(NamedTuple):
    """All cases of one question, the first one in full; `reference` is the case that the avoidable ledger compares with."""

    cases: tuple[Case, ...]
    reference: Case | None = None


@np.errstate(over="ignore")
def case_of(resolved: Resolved) -> Case:
    """Evaluate one resolved scenario."""
    s = resolved.scenario
    outcome = evaluate(s)
    _computable(resolved, outcome)
    # the plan stays as chosen, only the world varies: an optimal interval is not re-chosen in every draw
    fixed = replace(s, policy=replace(s.policy, cadence="interval", every=outcome.interval_s))
    ranges = ranges_of(resolved)
    ranges.pop("policy.every", None)
    spread = evaluate(drawn(fixed, ranges, ties_of(resolved))) if ranges else outcome
    best = {objective: best_interval_s(s, outcome.plan, objective) for objective in OBJECTIVES}
    held = tuple(caution for caution in cautions_of(s, outcome) if bool(caution.holds))
    return Case(str(resolved.words.get("tier.id", "tier")), resolved, outcome, spread, classic_of(s, outcome), best, held)


def _computable(resolved: Resolved, outcome: Outcome) -> None:
    policy = resolved.scenario.policy
    if outcome.interval_s == float("inf"):
        raise InputError(
            "without failures the best interval is never to save",
            key="policy.optimal",
            remedy='give failures.rate, or an interval such as --interval "1 h"',
        )
    if not outcome.interval_s > 0:
        needs = {
            "energy": "cluster.gpu_train, gpu_stall, host_train",
            "usd": "cluster.gpu_price, site.tariff",
            "carbon": "site.grid_location and the powers",
        }
        raise InputError(
            f"the best interval for {policy.objective} cannot be computed", key="policy.optimal",
            remedy=f"a figure it needs is unknown ({needs.get(policy.objective, 'the save time')})",
        )  # fmt: skip


def model(
    catalog: Catalog, layers: Sequence[Layer], tiers: Sequence[str] = (), saves: Sequence[float] = (), against: str | None = None
) -> Answer:
    """Every tier at every number of saves; without either, the scenario as it stands."""
    if saves:
        one_cadence({"saves"}, [layer for layer in layers if "saves" not in layer.sections.get("policy", {})], "--saves")
    asked = _compared(layers)
    counted_by = None if saves else asked[2]
    tiers, saves = tiers or asked[0], saves or asked[1]
    cases = tuple(
        case_of(resolve(catalog, _with(catalog, layers, tier, count, counted_by)))
        for tier, count in product(dict.fromkeys(tiers) or (None,), dict.fromkeys(saves) or (None,))
    )
    reference = None
    if against is not None:
        reference = case_of(resolve(catalog, _with(catalog, layers, against, saves[0] if saves else None, counted_by)))
    return Answer(cases, reference)


def _compared(layers: Sequence[Layer]) -> tuple[Sequence[str], Sequence[float], Layer | None]:
    """What the scenario itself compares and which layer counts, unless a later one (a flag) says one tier or one cadence."""
    tiers: Sequence[str] = ()
    saves: Sequence[float] = ()
    counted_by = None
    for layer in layers:
        if "id" in layer.sections.get("tier", {}):
            tiers = ()
        if {*CADENCES, "optimal"} & layer.sections.get("policy", {}).keys():
            saves = ()
        tiers, saves = layer.compare_tiers or tiers, layer.compare_saves or saves
        counted_by = layer if layer.compare_saves else counted_by
    return tiers, saves, counted_by


def _with(catalog: Catalog, layers: Sequence[Layer], tier: str | None, saves: float | None, counted_by: Layer | None) -> list[Layer]:
    """The layers with one tier and one count named over the scenario, and under the flags that change single inputs."""
    chosen = []
    if tier is not None:
        chosen.append(read_layer(catalog, {"tier": {"id": tier}}, "--tier", "--tier"))
    if saves is not None:
        label = counted_by.label if counted_by is not None else "--saves"
        owner = ("assumed", "house") if label.startswith("scenario ") else ("user", "")
        chosen.append(read_layer(catalog, {"policy": {"saves": saves}}, label, label, *owner))
    return _under_flags(layers, *chosen)


def _under_flags(layers: Sequence[Layer], *chosen: Layer) -> list[Layer]:
    """--tier and --over name whole entries; what --set says of a single input holds for each of them."""
    return [*(layer for layer in layers if not layer.is_flag), *chosen, *(layer for layer in layers if layer.is_flag)]


# ---- sweep


class Piece(NamedTuple):
    """Consecutive rows of a sweep: the axes' values, the scenario and the outcome, all as arrays or constants."""

    rows: int
    axes: dict[str, Any]
    resolved: Resolved
    scenario: Scenario
    outcome: Outcome


class Sweep(NamedTuple):
    """The axes of a grid and its rows, to be taken once."""

    overs: tuple[Over, ...]
    pieces: Iterator[Piece]


def sweep(catalog: Catalog, layers: Sequence[Layer], overs: Sequence[Over], rows: int = CHUNK) -> Sweep:
    """The grid of all axes, in the order given, the last running fastest. Without a tier, the scenario's own comparison is the first axis.

    The numeric axes after the last named one are computed as arrays, so that is the quick order to give them in.
    """
    if not any(over.section == "tier" and over.key == "id" for over in overs) and (tiers := _compared(layers)[0]):
        overs = [Over("tier", "tier", "id", tuple(tiers), False), *overs]
    total = int(np.prod([len(over.values) for over in overs], dtype=float)) if overs else 1
    if total > MOST_ROWS:
        raise InputError(f"{total:,} rows are more than {MOST_ROWS:,}", where="--over", remedy="take fewer or shorter axes")
    distinct(overs, layers)
    named = [over for over in overs if not over.numeric]
    numeric = [over for over in overs if over.numeric]
    # everything is resolved before the first row is computed: a wrong name in the last place must not leave half a table
    prepared: dict[tuple[Any, ...], Resolved] = {}
    for words in product(*(over.values for over in named)):
        prepared[words] = resolve(catalog, _under_flags(layers, _over_layer(catalog, named, words, numeric)))
        _has_optimum(prepared[words], numeric)
    return Sweep(tuple(overs), _pieces(overs, prepared, rows))


def _has_optimum(resolved: Resolved, numeric: list[Over]) -> None:
    """An axis that reaches a job without failures has no best interval there."""
    if resolved.scenario.policy.cadence != "optimal":
        return
    scenario = resolved.scenario
    for over in numeric:
        if over.section == "failures":
            scenario = replace_at(scenario, field_of(over), min(over.values))
    _computable(resolved._replace(scenario=scenario), evaluate(scenario))


def _pieces(overs: Sequence[Over], prepared: dict[tuple[Any, ...], Resolved], rows: int) -> Iterator[Piece]:
    first_array = max((i + 1 for i, over in enumerate(overs) if not over.numeric), default=0)
    outer, inner = overs[:first_array], overs[first_array:]
    axes = [Axis(field_of(over), np.array(over.values, dtype=float)) for over in inner]
    for values in product(*(over.values for over in outer)):
        resolved = prepared[tuple(value for over, value in zip(outer, values, strict=True) if not over.numeric)]
        scenario = resolved.scenario
        for over, value in zip(outer, values, strict=True):
            scenario = replace_at(scenario, field_of(over), value) if over.numeric else scenario
        fixed = {over.name: value for over, value in zip(outer, values, strict=True)}
        for chunk in chunks(scenario, axes, rows):
            size = len(next(iter(chunk.axes.values()))) if axes else 1
            moving = {over.name: chunk.axes[axis.path] for over, axis in zip(inner, axes, strict=True)}
            yield Piece(size, fixed | moving, resolved, chunk.scenario, chunk.outcome)


def _over_layer(catalog: Catalog, named: list[Over], words: tuple[Any, ...], numeric: list[Over]) -> Layer:
    """One combination of the axes that are resolved, and the first value of those that become arrays."""
    raw: dict[str, Any] = {}
    for over, word in [*zip(named, words, strict=True), *((over, over.values[0]) for over in numeric)]:
        raw.setdefault(over.section, {})[over.key] = word if isinstance(word, str) else Figure(word, basis="user", text=f"{word!r}")
    return read_layer(catalog, raw, "--over", "--over")
