"""Which joules may be added, what they come to, and how much of the node's own meter they leave
unexplained.

A core lies inside its package, DRAM inside a superchip's module, everything inside the node; a MIG
slice reads its parent's sensor; the same package answers twice. Adding any of these twice is the
commonest error of energy tools, so `chosen` says for each channel why not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf, isnan, nan
from typing import Final, NamedTuple, Protocol

from ckptcost.first.core.channels import Channel
from ckptcost.first.core.domain import Boundary

UNSTATED_AVERAGING_S: Final = 0.5
"""a power reading of unknown averaging is preferred to a stated 1 s mean, not to a stated
instant"""
COVERAGE_AGREES: Final = 0.01
_INSIDE: Final = {"core": "cpu", "uncore": "cpu"}
_CONTAINS: Final = {"psys": ("cpu", "dram", "core", "uncore"), "module": ("gpu",)}
"""what a domain contains by its nature, whatever its channel says"""
_SHARED_OUT: Final = frozenset({"process", "cgroup", "self", "mount"})
"""somebody's share of other domains"""
_GPU: Final = re.compile(r"(gpu:\d+)")
_PARTITION: Final = re.compile(r"(?:disk:)(.*\d)p\d+|(?:disk:)(.*\D)\d+")


class MeasuredEnergy(Protocol):
    """What `counters` says of a window, of which `coverage` is the share that the numbers are of;
    also `Energy`."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def coverage(self) -> float: ...


class Energy(NamedTuple):
    """Joules (or watts, where a name says so) with their range. Unknown is NaN with a code in
    `why`, never 0."""

    value: float
    low: float
    high: float
    coverage: float = 1.0
    why: str = ""
    flags: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return not isnan(self.value)


NONE_SPENT: Final = Energy(0.0, 0.0, 0.0)


@lru_cache
def unknown(why: str, *flags: str) -> Energy:
    """One for all who say the same: a long run has a hundred thousand."""
    return Energy(nan, nan, nan, 0.0, why, flags)


def energy_of_amount(amount: MeasuredEnergy) -> Energy:
    """A meter's amount with its doubts as flags. None of the window seen is not 0 J; an end that is
    not known is open."""
    reasons: tuple[str, ...] = getattr(amount, "reasons", ())
    if isnan(amount.value) or not amount.coverage > 0:
        return unknown(next(iter(reasons), "NO_READING"))
    low, high = (
        (-inf if isnan(amount.low) else amount.low),
        (inf if isnan(amount.high) else amount.high),
    )
    doubts = [
        code
        for code, holds in (
            ("GAPS", amount.coverage < 1.0),
            ("SHORT", getattr(amount, "short", False)),
        )
        if holds
    ]
    return Energy(amount.value, low, high, amount.coverage, "", (*doubts, *reasons))


def total(parts: Iterable[Energy]) -> Energy:
    """The sum, range by worst case, coverage of the least covered; unknown if a part is, for a sum
    that leaves one out is not the sum."""
    parts = list(parts)
    flags = tuple(dict.fromkeys(flag for part in parts for flag in part.flags))
    missing = next((part.why for part in parts if not part.known), None)
    if missing is not None:
        return unknown(missing, *flags)
    coverage = min((part.coverage for part in parts), default=1.0)
    return Energy(
        sum(part.value for part in parts),
        sum(part.low for part in parts),
        sum(part.high for part in parts),
        coverage,
        "",
        flags,
    )


def times(energy: Energy, factor: float) -> Energy:
    """A share of it, or its mean over a time; the factor is not negative."""
    if not energy.known:
        return energy
    if factor == 0:  # of an open range, too
        return energy._replace(value=0.0, low=0.0, high=0.0)
    return energy._replace(
        value=energy.value * factor, low=energy.low * factor, high=energy.high * factor
    )


def difference(whole: Energy, taken_off: Energy) -> Energy:
    """What is left; its range has room for both being wrong, and may reach below 0.

    >>> difference(Energy(10.0, 9.0, 11.0), Energy(4.0, 3.0, 5.0))[:3]
    (6.0, 4.0, 8.0)
    """
    flags = tuple(dict.fromkeys(whole.flags + taken_off.flags))
    if not (whole.known and taken_off.known):
        return unknown(taken_off.why if whole.known else whole.why, *flags)
    coverage = min(whole.coverage, taken_off.coverage)
    return Energy(
        whole.value - taken_off.value,
        whole.low - taken_off.high,
        whole.high - taken_off.low,
        coverage,
        "",
        flags,
    )


class LeftOut(NamedTuple):
    """A channel of joules or watts that is not added, and why."""

    channel: int
    why: str
    """NO_VALUE, DETAIL, WHOLE, OTHER_BOUNDARY, SAME_DOMAIN, SAME_GPU (slices read their parent's
    sensor), INSIDE, COVERED"""
    by: int | None = None
    """the channel that counts instead"""


class ChosenChannels(NamedTuple):
    """Places in the list of channels."""

    parts: tuple[int, ...]
    """may be added"""
    wholes: tuple[int, ...]
    """contain parts, best first in each domain: for comparison"""
    left_out: tuple[LeftOut, ...]


def _preference(place: int, channel: Channel) -> tuple[bool, bool, float, bool, int]:
    """Measured before modelled, a counter before watts, an instant before a mean, package registers
    before their memory-mapped copy."""
    averaging_s = UNSTATED_AVERAGING_S if channel.averaging_s is None else channel.averaging_s
    return (
        channel.basis != "measured",
        channel.quantity != "energy_j",
        averaging_s,
        "mmio" in channel.source,
        place,
    )


def _device(channel: Channel) -> str:
    """What the sensor hangs on: slices of one GPU, and a drive under both its names, are the
    same."""
    if slice_of := _GPU.match(channel.domain):
        return slice_of[1]
    return (
        channel.domain.replace("disk:", "drive:", 1)
        if channel.kind_of_domain == "disk"
        else channel.domain
    )


def _outer(channel: Channel) -> str:
    """The device or partitioned disk that a domain is a piece of, by its name."""
    if found := _PARTITION.fullmatch(channel.domain):
        return f"drive:{found[1] or found[2]}"
    return ""


def chosen(
    channels: Sequence[Channel], has_value: Sequence[bool], boundary: Boundary = "node"
) -> ChosenChannels:
    """The channels whose joules add up to what this machine is known to use.

    >>> energy = dict(quantity="energy_j", source="rapl")
    >>> chosen(
    ...     [Channel("cpu:0", **energy), Channel("core:0", **energy), Channel("dram:0", **energy)],
    ...     [True] * 3,
    ... ).parts
    (0, 2)
    """
    whys = {
        place: _why_not(channels[place], has_value[place], boundary)
        for place in sorted(
            range(len(channels)), key=lambda place: _preference(place, channels[place])
        )
        if channels[place].quantity in ("energy_j", "power_w")
    }
    left = {place: LeftOut(place, why) for place, why in whys.items() if why}
    parts = [place for place, why in whys.items() if not why]
    kept = _one_of_each(channels, parts, left)
    _leave_inner(kept, left)
    _leave_covered(
        kept,
        {_name_and_number(channels[place]) for place, why in whys.items() if why == "NO_VALUE"},
        left,
    )
    return ChosenChannels(
        tuple(place for place in kept if place not in left),
        tuple(place for place, why in whys.items() if why == "WHOLE"),
        tuple(left[place] for place in sorted(left)),
    )


def _why_not(channel: Channel, has_value: bool, boundary: Boundary) -> str:
    """Why a channel is not added, whatever others there are."""
    if not has_value:
        return "NO_VALUE"
    if channel.role == "detail" or channel.kind_of_domain in _SHARED_OUT:
        return "DETAIL"
    if channel.role == "whole" or channel.kind_of_domain == "node":
        return "WHOLE"
    return "" if channel.boundary in ("drive", boundary) else "OTHER_BOUNDARY"


def _one_of_each(
    channels: Sequence[Channel], parts: Sequence[int], left: dict[int, LeftOut]
) -> dict[int, Channel]:
    """One channel of each device: a parent before its slices, else by preference."""
    first_of: dict[str, int] = {}
    for place in sorted(
        parts, key=lambda place: _device(channels[place]) != channels[place].domain
    ):
        channel = channels[place]
        names = _names(channel)
        keeps = next((first_of[name] for name in names if name in first_of), None)
        if keeps is None:
            first_of |= dict.fromkeys(names, place)
            continue
        same = channels[keeps].domain == channel.domain or channel.kind_of_domain != "gpu"
        left[place] = LeftOut(place, "SAME_DOMAIN" if same else "SAME_GPU", keeps)
    return {place: channels[place] for place in sorted(set(first_of.values()))}


def _leave_inner(kept: dict[int, Channel], left: dict[int, LeftOut]) -> None:
    """Partitions of a disk, cores of a package."""
    by_device = {_device(channel): place for place, channel in kept.items()}
    by_kind = {channel.kind_of_domain: place for place, channel in reversed(kept.items())}
    for place, channel in kept.items():
        inside = by_device.get(
            _outer(channel), by_kind.get(_INSIDE.get(channel.kind_of_domain, ""))
        )
        if inside is not None:
            left[place] = LeftOut(place, "INSIDE", inside)


def _leave_covered(
    kept: Mapping[int, Channel], silent: set[tuple[str, str]], left: dict[int, LeftOut]
) -> None:
    """What another one that stays contains; `silent` are those without a value."""
    silent = silent - set(map(_name_and_number, kept.values()))
    by_kind: dict[str, list[int]] = {}
    for place, channel in kept.items():
        by_kind.setdefault(channel.kind_of_domain, []).append(place)
    # the widest covering first, so that of two which cover each other one stays
    for place in sorted(kept, key=lambda place: (-len(_covers(kept[place])), place)):
        if place in left:
            continue
        for other in (other for kind in _covers(kept[place]) for other in by_kind.get(kind, ())):
            # a processor whose own module is silent is not in another one; GPUs are not numbered
            # like modules
            kind, number = _name_and_number(kept[other])
            elsewhere = kind != "gpu" and (kept[place].kind_of_domain, number) in silent
            if other != place and not elsewhere:
                left.setdefault(other, LeftOut(other, "COVERED", place))


def _name_and_number(channel: Channel) -> tuple[str, str]:
    number = channel.domain.partition(":")[2].partition(".")[0]  # `0` of `cpu:0.die1`
    return channel.kind_of_domain, number


def _names(channel: Channel) -> tuple[str, ...]:
    """Two channels with one of these in common read the same device. A model's name is no name of a
    device, a GPU's UUID is."""
    unique = channel.kind_of_domain == "gpu" and channel.device.startswith("GPU-")
    return (_device(channel), channel.device) if unique else (_device(channel),)


def _covers(channel: Channel) -> set[str]:
    covers = {*channel.covers, *_CONTAINS.get(channel.kind_of_domain, ())}
    return covers | {inner for inner, outer in _INSIDE.items() if outer in covers}


class Reconciled(NamedTuple):
    """The parts beside the node's own meter. PUE is not in here: it belongs to the site."""

    parts: Energy
    """unknown if one of them is"""
    known_j: float
    """sum of those that answered: at least so much"""
    node: Energy
    unaccounted: Energy
    """node less parts: fans, boards, network and, at the plug, the power supply's loss"""
    share: Energy
    """of the node that the parts explain (a fraction, not joules)"""
    by_boundary: tuple[tuple[Boundary, Energy], ...]
    missing: tuple[str, ...]
    """parts without a value"""
    flags: tuple[str, ...]
    """NO_NODE_METER, PART_MISSING, PARTS_EXCEED_NODE, NOT_DISTINGUISHABLE, COVERAGE_DIFFERS (they
    are not of the same time), PSU_LOSS_INCLUDED"""


def reconcile(
    parts: Mapping[str, Energy],
    node: Energy | None,
    boundaries: Mapping[str, Boundary] | None = None,
    at_plug: bool = False,
) -> Reconciled:
    """Parts against the node; without a node meter nothing is unaccounted for that anybody knows
    of.

    >>> seen = reconcile(
    ...     {"gpu:0": Energy(600.0, 590.0, 610.0), "cpu:0": Energy(200.0, 200.0, 200.0)},
    ...     Energy(1000.0, 980.0, 1020.0),
    ... )
    >>> seen.unaccounted[:3], seen.share.value
    ((200.0, 170.0, 230.0), 0.8)
    """
    added = total(parts.values()) if parts else unknown("NO_PARTS")
    known = [part.value for part in parts.values() if part.known]
    missing = tuple(name for name, part in parts.items() if not part.known)
    whole = unknown("NO_NODE_METER") if node is None else node
    left = difference(whole, added)
    flags = _doubts(node, left, bool(missing), at_plug)
    if left.known and any(
        abs(part.coverage - whole.coverage) > COVERAGE_AGREES for part in parts.values()
    ):
        flags.append("COVERAGE_DIFFERS")
        left = unknown("COVERAGE_DIFFERS", *left.flags)  # joules of different times do not subtract
    return Reconciled(
        added,
        sum(known) if known else nan,
        whole,
        left,
        _share_of(added, whole, left),
        _by_boundary(parts, boundaries or {}),
        missing,
        tuple(flags),
    )


def _doubts(node: Energy | None, left: Energy, part_missing: bool, at_plug: bool) -> list[str]:
    flags = ["PART_MISSING"] if part_missing else []
    if node is None:
        flags.append("NO_NODE_METER")
    elif at_plug:
        flags.append("PSU_LOSS_INCLUDED")
    if left.high < 0:
        flags.append("PARTS_EXCEED_NODE")
    elif left.known and left.low <= 0 <= left.high:
        flags.append("NOT_DISTINGUISHABLE")
    return flags


def _share_of(added: Energy, whole: Energy, left: Energy) -> Energy:
    """Of the node that the parts explain."""
    if not (left.known and whole.value > 0):
        return unknown(left.why or "NO_SHARE")
    low, high = _quotient_ends(added, whole)
    return Energy(added.value / whole.value, low, high, left.coverage, "", left.flags)


def _by_boundary(
    parts: Mapping[str, Energy], of: Mapping[str, Boundary]
) -> tuple[tuple[Boundary, Energy], ...]:
    grouped: dict[Boundary, list[Energy]] = {}
    for name, part in parts.items():
        grouped.setdefault(of.get(name, "node"), []).append(part)
    return tuple((at, total(group)) for at, group in grouped.items())


def _quotient_ends(above: Energy, below: Energy) -> tuple[float, float]:
    """Of a quotient whose divisor is above 0, though its range may reach down to it."""
    if below.low <= 0:
        return (above.low / below.high if above.low >= 0 else -inf), (
            inf if above.high > 0 else above.high / below.high
        )
    return above.low / (below.high if above.low >= 0 else below.low), above.high / (
        below.low if above.high >= 0 else below.high
    )
