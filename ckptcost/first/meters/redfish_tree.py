"""Where a Redfish service keeps the power of its node, and how a number is taken out of a document.
No network here: `get` is given.

Which number (DMTF DSP0268): the chassis that holds the computer system; there EnvironmentMetrics
PowerWatts, else Power PowerControl PowerConsumedWatts, else a sensor called total power, else the
sum of the supplies' inputs, all of them or none. Services differ: anything may be missing, null, a
text instead of a number, or of the wrong kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from ckptcost.first.core.channels import Channel, Quantity
from ckptcost.first.core.units import KWH_J
from ckptcost.first.errors import MeterUnavailable
from ckptcost.first.meters.base import NOTHING

Doc = dict[str, Any]
Get = Callable[[str], Doc]
MOST_CHASSIS = 64
"""an HGX baseboard shows about 40"""


class Denied(MeterUnavailable):
    """The service refuses the account."""


def is_path(path: str) -> bool:
    return re.fullmatch(r"/redfish(/[!-~]*)?", path) is not None and len(path) <= 512


def _number(value: object) -> float:
    """A finite number >= 0, also as text; NaN for all else."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return NOTHING
    return float(value) if 0.0 <= value < 1e15 else NOTHING


def _value_at(doc: object, *keys: str | int) -> Any:
    for key in keys:
        if isinstance(doc, dict) and isinstance(key, str):
            doc = doc.get(key)
        elif isinstance(doc, list) and isinstance(key, int) and key < len(doc):
            doc = doc[key]
        else:
            return None
    return doc


def _list(doc: object, *keys: str | int) -> list[Any]:
    found = _value_at(doc, *keys)
    return found if isinstance(found, list) else []


def _path_in(doc: object, *keys: str | int) -> str:
    path = _value_at(doc, *keys)
    return path if isinstance(path, str) and is_path(path) else ""


def _link(doc: object, *keys: str | int) -> str:
    return _path_in(doc, *keys, "@odata.id")


def _follow_link(get: Get, doc: Doc, key: str) -> tuple[str, Doc]:
    """Path and document; both empty where there is no link."""
    path = _link(doc, key)
    return path, get(path) if path else {}


def _members(get: Get, path: str) -> Iterator[str]:
    for _ in range(8):
        if not path:
            return
        doc = get(path)
        yield from filter(None, map(_link, _list(doc, "Members")))
        path = _path_in(doc, "Members@odata.nextLink")


def control(doc: Doc) -> Doc:
    """The entry of PowerControl that is the whole system: by its name, else the first. Some list
    processors and memory beside it."""
    entries = [entry for entry in _list(doc, "PowerControl") if isinstance(entry, dict)]
    whole = [
        e
        for e in entries
        if re.search(
            r"\b(server|chassis|node|total)\b|(?<!sub)(?<!sub[- ])system",
            str(e.get("Name", "")),
            re.I,
        )
    ]
    return (whole or entries or [{}])[0]


class RedfishValue(NamedTuple):
    """Where one number is: a document and the keys in it. `PowerControl` as first key means its
    entry of the whole system."""

    path: str
    keys: tuple[str | int, ...]
    unit: float = 1.0
    most: float = 1e6
    zero: bool = False
    """0 may be true: a supply in standby. A node that runs this does not draw 0 W"""

    def pick(self, doc: Doc) -> float:
        keys = self.keys
        value = (
            _value_at(control(doc), *keys[1:])
            if keys[0] == "PowerControl"
            else _value_at(doc, *keys)
        )
        number = _number(value.get("Reading") if isinstance(value, dict) else value)
        return number * self.unit if (self.zero or number > 0.0) and number < self.most else NOTHING


Readout = list[tuple[Channel, tuple[RedfishValue, ...]]]


def _channel(quantity: Quantity, source: str, note: str) -> Channel:
    return Channel("node", quantity, f"Redfish {source}", scope="node", role="whole", note=note)


def _metrics(get: Get, chassis: Doc, note: str) -> Readout:
    path, doc = _follow_link(get, chassis, "EnvironmentMetrics")
    watts = RedfishValue(path, ("PowerWatts",))
    if not watts.pick(doc) > 0.0:
        return []
    counters = (
        RedfishValue(path, ("EnergyJoules",), most=1e15),
        RedfishValue(path, ("EnergykWh",), KWH_J, most=1e9),
    )
    energy = [
        (_channel("energy_j", f"{path} {spot.keys[0]}", note), (spot,))
        for spot in counters
        if spot.pick(doc) > 0.0
    ]
    return [(_channel("power_w", f"{path} PowerWatts", note), (watts,)), *energy[:1]]


def _power(get: Get, chassis: Doc, note: str) -> Readout:
    path, doc = _follow_link(get, chassis, "Power")
    now = RedfishValue(path, ("PowerControl", "PowerConsumedWatts"))
    if not now.pick(doc) > 0.0:
        return []
    plan: Readout = [(_channel("power_w", f"{path} PowerControl PowerConsumedWatts", note), (now,))]
    mean = RedfishValue(path, ("PowerControl", "PowerMetrics", "AverageConsumedWatts"))
    over_s = _number(_value_at(control(doc), "PowerMetrics", "IntervalInMin")) * 60.0
    if over_s > 0.0 and mean.pick(doc) > 0.0:
        whole = _channel("power_w", f"{path} PowerControl AverageConsumedWatts", note)
        plan.append(
            (replace(whole, domain="node.average", role="detail", averaging_s=over_s), (mean,))
        )
    return plan


def _sensor(get: Get, chassis: Doc, note: str) -> Readout:
    total = re.compile(r"(total|system|chassis|node)[-_ ]?power")
    sensors = _members(get, _link(chassis, "Sensors"))
    near = [link for link in sensors if total.search(link.rsplit("/", 1)[-1].lower())]
    for link in near[:4]:
        doc, spot = get(link), RedfishValue(link, ("Reading",))
        if doc.get("ReadingUnits") == "W" and spot.pick(doc) > 0.0:
            return [(_channel("power_w", link, note), (spot,))]
    return []


def _is_there(supply: object) -> bool:
    return bool(_value_at(supply, "Status", "State") != "Absent")


def _inputs_in_power(get: Get, chassis: Doc) -> list[RedfishValue]:
    path, doc = _follow_link(get, chassis, "Power")
    return [
        RedfishValue(path, ("PowerSupplies", n, "PowerInputWatts"), zero=True)
        for n, supply in enumerate(_list(doc, "PowerSupplies"))
        if _is_there(supply)
    ]


def _inputs_in_subsystem(get: Get, chassis: Doc) -> list[RedfishValue]:
    """Their paths are empty where a supply has no metrics."""
    _, subsystem = _follow_link(get, chassis, "PowerSubsystem")
    supplies = map(get, list(_members(get, _link(subsystem, "PowerSupplies")))[:16])
    return [
        RedfishValue(_link(supply, "Metrics"), ("InputPowerWatts",), zero=True)
        for supply in filter(_is_there, supplies)
    ]


def _supplies(get: Get, chassis: Doc, note: str) -> Readout:
    spots = _inputs_in_power(get, chassis) or _inputs_in_subsystem(get, chassis)
    if not spots or not all(spot.path for spot in spots):
        return []
    docs = {path: get(path) for path in {spot.path for spot in spots}}
    if not sum(spot.pick(docs[spot.path]) for spot in spots) > 0.0:  # NaN in one of them makes NaN
        return []
    return [(_channel("power_w", f"sum of {len(spots)} supplies' input power", note), tuple(spots))]


_NODE = ("RackMount", "Blade", "Sled", "StandAlone", "Tower", "Node", "Drawer", "StorageEnclosure")
_MORE = (
    "Rack",
    "Enclosure",
    "Row",
    "Pod",
    "Zone",
    "Shelf",
    "RackGroup",
    "PowerStrip",
    "HeatExchanger",
    "ImmersionTank",
    "ExpandedSystem",
)
"""ChassisType of what holds several nodes, or none"""


def rank(chassis: Doc) -> int:
    """0 for the chassis of a node that holds its computer system; higher is less likely, 9 is
    never."""
    kind = chassis.get("ChassisType")
    if kind in _MORE:
        return 9
    return (0 if kind in _NODE else 2) + (
        0 if _value_at(chassis, "Links", "ComputerSystems") else 1
    )


def _choose_chassis(docs: dict[str, Doc], wanted: str | None) -> list[list[str]]:
    """Groups of chassis, the likeliest first; one that lies in another of its group is left out."""
    if wanted is not None:
        named = [
            path
            for path, doc in docs.items()
            if wanted in (doc.get("Id"), path.rstrip("/").rsplit("/", 1)[-1])
        ]
        if not named:
            have = ", ".join(path.rsplit("/", 1)[-1] for path in docs)[:300]
            raise MeterUnavailable(f"no chassis {wanted[:60]!r}", f"it has: {have}")
        return [named]
    groups = []
    for place in range(4):
        group = [path for path, doc in docs.items() if rank(doc) == place]
        groups.append(
            [path for path in group if _link(docs[path], "Links", "ContainedBy") not in group]
        )
    return groups


def discover(get: Get, wanted: str | None = None, note: str = "") -> tuple[str, Readout]:
    """The node's chassis and where its numbers are; MeterUnavailable with the reason where there is
    none or more than one."""
    docs: dict[str, Doc] = {}
    troubles: list[str] = []
    for path in list(_members(get, "/redfish/v1/Chassis"))[:MOST_CHASSIS]:
        with _note_trouble(troubles):
            docs[path] = get(path)
    for group in _choose_chassis(docs, wanted):
        plans = {path: _readout_of(get, docs[path], note, troubles) for path in group}
        found = [(path, plan) for path, plan in plans.items() if plan]
        if len(found) > 1:
            names = ", ".join(path.rsplit("/", 1)[-1] for path, _ in found)
            raise MeterUnavailable(
                f"several chassis tell a power: {names[:300]}", "name the one of this node"
            )
        if found:
            return found[0]
    trouble = f"; last trouble: {troubles[-1]}" if any(troubles[-1:]) else ""
    raise MeterUnavailable(f"no chassis tells a power{trouble}", "try the meter ipmi")


@contextmanager
def _note_trouble(troubles: list[str]) -> Iterator[None]:
    """One document that is not to be had is no reason to give up; a refused account is."""
    try:
        yield
    except Denied:
        raise
    except MeterUnavailable as error:
        troubles.append(error.reason)


def _readout_of(get: Get, chassis: Doc, note: str, troubles: list[str]) -> Readout:
    for look in (_metrics, _power, _sensor, _supplies):
        with _note_trouble(troubles):
            if plan := look(get, chassis, note):
                return plan
    return []
