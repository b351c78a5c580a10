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
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from ckptcost.core.channels import Channel, Quantity
from ckptcost.core.units import KWH_J
from ckptcost.errors import MeterUnavailable
from ckptcost.meters.base import NOTHING

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


def _link(doc: object, *keys: str | int) -> str:
    path = _value_at(doc, *keys, "@odata.id")
    return path if isinstance(path, str) and is_path(path) else ""


def _members(get: Get, path: str) -> Iterator[str]:
    for _ in range(8):
        doc = get(path)
        for member in _list(doc, "Members"):
            if link := _link(member):
                yield link
        path = _value_at(doc, "Members@odata.nextLink") or ""
        if not isinstance(path, str) or not is_path(path):
            return


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
    path = _link(chassis, "EnvironmentMetrics")
    doc = get(path) if path else {}
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
    path = _link(chassis, "Power")
    doc = get(path) if path else {}
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
    path = _link(chassis, "Sensors")
    total = re.compile(r"(total|system|chassis|node)[-_ ]?power")
    near = (
        [link for link in _members(get, path) if total.search(link.rsplit("/", 1)[-1].lower())]
        if path
        else []
    )
    for link in near[:4]:
        doc, spot = get(link), RedfishValue(link, ("Reading",))
        if doc.get("ReadingUnits") == "W" and spot.pick(doc) > 0.0:
            return [(_channel("power_w", link, note), (spot,))]
    return []


def _supplies(get: Get, chassis: Doc, note: str) -> Readout:
    old, subsystem = _link(chassis, "Power"), _link(chassis, "PowerSubsystem")
    spots = [
        RedfishValue(old, ("PowerSupplies", n, "PowerInputWatts"), zero=True)
        for n, supply in enumerate(_list(get(old), "PowerSupplies") if old else ())
        if _value_at(supply, "Status", "State") != "Absent"
    ]
    folder = _link(get(subsystem), "PowerSupplies") if subsystem and not spots else ""
    for supply in [get(link) for link in list(_members(get, folder))[:16]] if folder else ():
        if _value_at(supply, "Status", "State") != "Absent":
            spots.append(RedfishValue(_link(supply, "Metrics"), ("InputPowerWatts",), zero=True))
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
    trouble = ""
    for path in list(_members(get, "/redfish/v1/Chassis"))[:MOST_CHASSIS]:
        try:
            docs[path] = get(path)
        except Denied:
            raise
        except MeterUnavailable as error:
            trouble = error.reason
    for group in _choose_chassis(docs, wanted):
        plans: dict[str, Readout] = {}
        for path in group:
            for look in (_metrics, _power, _sensor, _supplies):
                try:
                    plan = look(get, docs[path], note)
                except Denied:
                    raise
                except MeterUnavailable as error:
                    plan, trouble = [], error.reason
                if plan:
                    plans[path] = plan
                    break
        if len(plans) > 1:
            names = ", ".join(path.rsplit("/", 1)[-1] for path in plans)
            raise MeterUnavailable(
                f"several chassis tell a power: {names[:300]}", "name the one of this node"
            )
        for path, plan in plans.items():
            return path, plan
    raise MeterUnavailable(
        (
            f"no chassis tells a power; last trouble: {trouble}"
            if trouble
            else "no chassis tells a power"
        ),
        "try the meter ipmi",
    )
