"""Sweep: the same over a grid of tiers, counts and any other input, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.axes import MOST_ROWS, Over, distinct, field_of
from ckptcost.first.catalog.figures import Figure
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.draws import replace_at
from ckptcost.first.core.outcome import Outcome, evaluate
from ckptcost.first.core.sweep import CHUNK, Axis, chunks
from ckptcost.first.errors import Argument, InputError
from ckptcost.first.jobs.model import comparison_of, computable, two_tiers_at_most, under_flags
from ckptcost.first.layers import Layer, read_layer
from ckptcost.first.scenario import Resolved, resolve


class SweepPiece(NamedTuple):
    """Consecutive rows of a sweep: the axes' values, the scenario and the outcome, all as arrays or
    constants."""

    rows: int
    axes: dict[str, Any]
    resolved: Resolved
    scenario: Scenario
    outcome: Outcome


class Sweep(NamedTuple):
    """The axes of a grid and its rows, to be taken once."""

    overs: tuple[Over, ...]
    pieces: Iterator[SweepPiece]
    grid_methods: tuple[str, ...] = ()
    """what the grid factors of the rows count; emissions of two methods are not to be held against
    each other"""


def sweep(
    catalog: Catalog, layers: Sequence[Layer], overs: Sequence[Over], rows: int = CHUNK
) -> Sweep:
    """The grid of all axes, in the order given, the last running fastest. Without a tier, the
    scenario's own comparison is the first axis.

    The numeric axes after the last named one are computed as arrays, so that is the quick order to
    give them in.
    """
    overs = _with_tiers(overs, comparison_of(layers)[0])
    total = int(np.prod([len(over.values) for over in overs], dtype=float))
    if total > MOST_ROWS:
        raise InputError(
            f"{total:,} rows are more than {MOST_ROWS:,}",
            where=Argument("over"),
            remedy="take fewer or shorter axes",
        )
    distinct(overs, layers)
    named = [over for over in overs if not over.numeric]
    numeric = [over for over in overs if over.numeric]
    # everything is resolved before the first row is computed: a wrong name in the last place must
    # not leave half a table
    prepared: dict[tuple[Any, ...], Resolved] = {}
    for words in product(*(over.values for over in named)):
        layer = _over_layer(named, words, numeric)
        prepared[words] = resolve(catalog, under_flags(layers, layer))
        two_tiers_at_most(prepared[words].scenario)
        _has_optimum(prepared[words], numeric)
    methods = {resolved.grid_method for resolved in prepared.values()}
    return Sweep(tuple(overs), _pieces(overs, prepared, rows), tuple(sorted(methods)))


def _has_optimum(resolved: Resolved, numeric: list[Over]) -> None:
    """An axis that reaches a job without failures has no best interval there."""
    if resolved.scenario.policy.cadence != "optimal":
        return
    scenario = resolved.scenario
    for over in numeric:
        if over.section == "failures":
            scenario = replace_at(scenario, field_of(over), min(over.values))
    computable(resolved._replace(scenario=scenario), evaluate(scenario))


def _pieces(
    overs: Sequence[Over], prepared: dict[tuple[Any, ...], Resolved], rows: int
) -> Iterator[SweepPiece]:
    first_array = max((i + 1 for i, over in enumerate(overs) if not over.numeric), default=0)
    outer, inner = overs[:first_array], overs[first_array:]
    axes = [Axis(field_of(over), np.array(over.values, dtype=float)) for over in inner]
    for values in product(*(over.values for over in outer)):
        here = list(zip(outer, values, strict=True))
        resolved = prepared[tuple(value for over, value in here if not over.numeric)]
        scenario = _place_axes(resolved.scenario, here)
        fixed = {over.name: value for over, value in here}
        for chunk in chunks(scenario, axes, rows):
            size = len(next(iter(chunk.axes.values()))) if axes else 1
            moving = {over.name: chunk.axes[field_of(over)] for over in inner}
            yield SweepPiece(size, fixed | moving, resolved, chunk.scenario, chunk.outcome)


def _place_axes(scenario: Scenario, here: Sequence[tuple[Over, Any]]) -> Scenario:
    """With the numbers of the axes put in."""
    for over, value in here:
        if over.numeric:
            scenario = replace_at(scenario, field_of(over), value)
    return scenario


def _with_tiers(overs: Sequence[Over], tiers: Sequence[str]) -> Sequence[Over]:
    if not tiers or any((over.section, over.key) == ("tier", "id") for over in overs):
        return overs
    return [Over("tier", "tier", "id", tuple(tiers), False), *overs]


def _over_layer(named: list[Over], words: tuple[Any, ...], numeric: list[Over]) -> Layer:
    """One combination of the axes that are resolved, and the first value of those that become
    arrays."""
    raw: dict[str, Any] = {}
    said = [*zip(named, words, strict=True), *((over, over.values[0]) for over in numeric)]
    for over, word in said:
        raw.setdefault(over.section, {})[over.key] = (
            word if isinstance(word, str) else Figure(word, basis="user", text=f"{word!r}")
        )
    return read_layer(raw, Argument("over"), "--over")
