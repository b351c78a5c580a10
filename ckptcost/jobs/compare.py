"""Compare: scenarios side by side, and what is known of their differences.

The first scenario is what the others are held against. Inputs that two scenarios share are drawn
together, so that the range of a difference does not count an uncertainty that both of them have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ckptcost.axes import ALIASES
from ckptcost.catalog.figures import Figure
from ckptcost.catalog.keys import REFERENCES
from ckptcost.catalog.store import Catalog
from ckptcost.core.draws import SAMPLES, drawn
from ckptcost.core.outcome import Outcome, evaluate
from ckptcost.errors import Argument, InputError, UnknownName, brief
from ckptcost.jobs.model import Case, as_planned, case_of, one_of
from ckptcost.layers import Layer, set_layer
from ckptcost.scenario import Resolved, ranges_of, ties_of

MOST = 6
LETTERS = "ABCDEF"


class Compared(NamedTuple):
    """Scenarios in the order given, the first one the reference."""

    names: tuple[str, ...]
    cases: tuple[Case, ...]
    together: tuple[Outcome, ...]
    """each over the same draws: element i of one belongs to element i of the others"""
    draws: int = SAMPLES


def first_of(catalog: Catalog, layers: Sequence[Layer], draws: int = SAMPLES) -> Case:
    """The scenario as it stands; of one that compares tiers or counts itself, the first, as in
    `ckptcost model`."""
    return case_of(one_of(catalog, layers), draws=draws)


_NEXT = re.compile(r",(?=\s*[a-z0-9_.]+\s*=)")


def _without_entries(flag: Layer, named: Mapping[str, object]) -> Layer:
    """A flag's single inputs hold for each variant; the entry that it names gives way to the
    variant's."""
    return flag._replace(
        sections={
            section: {
                key: value
                for key, value in said.items()
                if section not in named or key != REFERENCES.get(section)
            }
            for section, said in flag.sections.items()
        }
    )


def varied(catalog: Catalog, layers: Sequence[Layer], text: str) -> list[Layer]:
    """The layers with a variant's changes, "tier.id=nas-hdd, policy.mode=async", over everything
    else.

    An entry of the catalogue goes under the flags: what they say of single inputs holds for each
    variant.
    """
    parts = [part.strip() for part in _NEXT.split(text)]
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(
                f"{brief(part or text)} is not path=value",
                where=Argument("variants"),
                remedy='write e.g. --with "tier.id=nas-hdd, policy.mode=async"',
            )
    named = [
        (
            ALIASES.get(part.partition("=")[0].strip(), part.partition("=")[0].strip()),
            part.partition("=")[2],
        )
        for part in parts
    ]
    if len({name for name, _ in named}) < len(named):
        raise InputError(f"{brief(text)} says one thing twice", where=Argument("variants"))
    try:
        layer = set_layer(catalog, [f"{name}={value}" for name, value in named])._replace(
            label="--with"
        )
    except InputError as error:
        error.where = Argument("variants")
        raise error.at() from None
    entries: dict[str, dict[str, object]] = {}
    single: dict[str, dict[str, object]] = {}
    for section, values in layer.sections.items():
        for key, value in values.items():
            (entries if REFERENCES.get(section) == key else single).setdefault(section, {})[key] = (
                value
            )
    flags = [_without_entries(each, entries) for each in layers if each.is_flag]
    return [
        *(each for each in layers if not each.is_flag),
        layer._replace(sections=entries),
        *flags,
        layer._replace(sections=single),
    ]


def compare(
    catalog: Catalog, scenarios: Sequence[tuple[str, Sequence[Layer]]], draws: int = SAMPLES
) -> Compared:
    """Each named stack of layers as one column."""
    if len(scenarios) < 2:
        raise InputError(
            "one scenario is nothing to compare",
            where="compare",
            remedy='name a second one, or a variant: --with "tier.id=nas-hdd"',
        )
    if len(scenarios) > MOST:
        raise InputError(
            f"{len(scenarios)} scenarios are more than {MOST}",
            where="compare",
            remedy="`ckptcost sweep` takes any number",
        )
    cases = []
    for name, layers in scenarios:
        try:
            cases.append(first_of(catalog, layers, draws))
        except UnknownName:
            raise
        except InputError as error:
            raise error.at(name) from None
    return Compared(
        tuple(name for name, _ in scenarios), tuple(cases), drawn_together(cases, draws), draws
    )


def _same_figure(one: Figure, other: Figure) -> bool:
    """One uncertain figure in two scenarios: the same, or of the same sources and scaled (a power
    that is a share of two ratings)."""
    if (one.value, one.low, one.high) == (other.value, other.low, other.high):
        return True
    if (
        one.low is None
        or one.high is None
        or other.low is None
        or other.high is None
        or one.basis != other.basis
    ):
        return False
    if not (one.value > 0 and other.value > 0):
        return False
    ours, theirs = ({part.strip() for part in figure.source.split(";")} for figure in (one, other))
    return (
        bool(ours & theirs)
        and math.isclose(one.low * other.value, other.low * one.value)
        and math.isclose(one.high * other.value, other.high * one.value)
    )


def drawn_together(cases: Sequence[Case], draws: int = SAMPLES) -> tuple[Outcome, ...]:
    """Every case over draws of its ranges, the same draws for the same figure of the same input."""
    return outcomes_together([(case.resolved, case.outcome) for case in cases], draws)


@np.errstate(over="ignore", invalid="ignore")
def outcomes_together(
    plans: Sequence[tuple[Resolved, Outcome]], draws: int = SAMPLES
) -> tuple[Outcome, ...]:
    """The same of scenarios with their runs, whose intervals stay as they are."""
    seeds: dict[str, list[tuple[Figure, int]]] = {}
    count = 0
    outcomes = []
    for resolved, outcome in plans:
        ranges, ties = ranges_of(resolved), ties_of(resolved)
        ranges.pop("policy.every", None)
        figures = {i.field: i.figure for i in resolved.inputs}
        mine: dict[str, int] = {}
        for path in sorted(ranges.keys() - ties.keys()):
            known = next(
                (
                    seed
                    for figure, seed in seeds.get(path, [])
                    if _same_figure(figure, figures[path])
                ),
                None,
            )
            if known is None:
                count, known = count + 1, count + 1
                seeds.setdefault(path, []).append((figures[path], known))
            mine[path] = known
        world = as_planned(resolved.scenario, outcome)
        for path in sorted(
            ranges
        ):  # each input by itself, in an order of its own: that of its seed
            world = drawn(
                world, {path: ranges[path]}, samples=draws, seed=mine[ties.get(path, path)]
            )
        outcomes.append(evaluate(world) if ranges else outcome)
    return tuple(outcomes)
