"""What the user said of a sweep's axes: "tier=a,b", "saves=10:200:10",
"cluster.gpus=1024:65536:*2"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.catalog import schema
from ckptcost.first.catalog.keys import CADENCES, KEYS, SECTIONS, WORDS, unit_of
from ckptcost.first.core.units import parse
from ckptcost.first.errors import Argument, InputError, UnknownName, brief
from ckptcost.first.layers import Layer

MOST_ROWS = 5_000_000
ALIASES = {
    "tier": "tier.id",
    "model": "checkpoint.model",
    "cluster": "cluster.id",
    "site": "site.id",
    "grid": "site.grid",
    "accelerator": "cluster.accelerator",
    "saves": "policy.saves",
    "interval": "policy.interval",
    "gpus": "cluster.gpus",
    "mode": "policy.mode",
}
# other inputs are derived from these when the scenario is resolved, so each value is resolved on
# its own
_DERIVING = {
    "cluster.gpu_train",
    "cluster.gpu_stall",
    "cluster.gpu_tdp",
    "cluster.train_fraction",
    "cluster.stall_fraction",
    "cluster.host_train",
    "tier.write",
    "tier.node_write",
    "tier.gpu_write",
    "tier.write_per_capacity",
    "tier.capacity",
}


class Over(NamedTuple):
    """One axis of a sweep as the user said it."""

    name: str
    section: str
    key: str
    values: tuple[Any, ...]
    numeric: bool


def over_of(text: str) -> Over:
    """An axis from "tier=a,b", "saves=10:200:10", "cluster.gpus=1024:65536:*2" or "tier.capacity=1
    PB,2 PB"."""
    name, _, said = text.partition("=")
    where = Argument("over")
    if not said.strip():
        raise InputError(
            f"{brief(text)} is not name=values",
            where=where,
            remedy="write e.g. --over saves=10:200:10 or --over tier=a,b",
        )
    section, key = _place_of(name)
    if key in WORDS[section] or key == "optimal":
        words = tuple(part.strip() for part in said.split(","))
        if not all(words):
            raise InputError(
                "an empty value",
                where=where,
                key=name,
                remedy="write e.g. --over tier=nas-hdd,generic-pfs",
            )
        return Over(name, section, key, words, False)
    if key not in KEYS[section]:
        known = (*KEYS[section], *WORDS[section])
        raise UnknownName(f"key in {section}", key, known, where=where)
    try:
        values = _values(said, unit_of(section, key))
        for value in values:
            schema.within_limits(section, key, value, f"{value:g}")
    except InputError as error:
        raise error.at(where, name) from None
    return Over(name, section, key, values, f"{section}.{key}" not in _DERIVING)


def _place_of(name: str) -> tuple[str, str]:
    """Section and key of an axis, by its short name or by the whole one."""
    path = ALIASES.get(name.strip(), name.strip())
    section, _, key = path.partition(".")
    if section not in SECTIONS or not key:
        known = [*ALIASES, *(f"{s}.{k}" for s in SECTIONS for k in KEYS[s])]
        raise UnknownName("axis", name, known, where=Argument("over"))
    return section, key


def _values(said: str, unit: str) -> tuple[float, ...]:
    found: list[float] = []
    for part in said.split(","):
        ends = part.split(":")
        found += [parse(part, unit)] if len(ends) == 1 else _row(part, ends, unit)
    return tuple(found)


def _row(part: str, ends: Sequence[str], unit: str) -> list[float]:
    """An arithmetic row from start:stop:step, or a geometric one from start:stop:*factor."""
    if len(ends) != 3:
        raise InputError(
            f"{brief(part)} is not start:stop:step",
            remedy="e.g. 10:200:10, or 1:1024:*2 for a geometric row",
        )
    start, stop = parse(ends[0], unit), parse(ends[1], unit)
    geometric = ends[2].strip().startswith("*")
    if geometric:
        step = parse(ends[2].strip()[1:], "")
        is_upwards = step > 1 and 0 < start <= stop
    else:
        step = parse(ends[2], unit)
        is_upwards = step > 0 and start <= stop
    if not is_upwards:
        raise InputError(
            f"{brief(part)} does not run upwards",
            remedy="start <= stop, step > 0 (or *factor > 1)",
        )
    steps = np.log(stop / start) / np.log(step) if geometric else (stop - start) / step
    count = steps + 1e-9
    if count > MOST_ROWS:
        raise InputError(
            f"{brief(part)} has more than {MOST_ROWS:,} values", remedy="take a larger step"
        )
    places = range(int(count) + 1)
    if geometric:
        return [float(start * step**i) for i in places]
    return [float(start + step * i) for i in places]


def distinct(overs: Sequence[Over], layers: Sequence[Layer]) -> None:
    """No axis twice, and one cadence at a time."""
    keys = [f"{over.section}.{over.key}" for over in overs]
    for over, key in zip(overs, keys, strict=True):
        if keys.count(key) > 1:
            raise InputError(
                f"{over.name} is an axis twice",
                where=Argument("over"),
                remedy="join its values with commas",
            )
    one_cadence({over.key for over in overs if over.section == "policy"}, layers, Argument("over"))


def one_cadence(keys: set[str], layers: Sequence[Layer], where: str) -> None:
    """The cadences that flags give must not contradict each other."""
    flags = {key for layer in layers if layer.is_flag for key in layer.sections.get("policy", {})}
    schema.exclusive_cadence(keys | (flags if keys & {*CADENCES, "optimal"} else set()), where)


def field_of(over: Over) -> str:
    target = KEYS[over.section][over.key]
    return target if over.section == "run" else f"{over.section}.{target}"
