"""What ckptcost's Prometheus metrics are called, in base units, and how a line of them is written:
one place for all that speak of them.

A counter holds what one component of one run has cost since that run began; nothing known, no
series. A label's values are few: a run, a component, how the figure is known - never a checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ckptcost.first.core.quantities import IN_DOCUMENTS, Quantity

KG_G = 1000.0
Labels = Mapping[str, str | None]
Flavour = Literal["prometheus", "openmetrics"]
UNITS = ("joules", "seconds", "usd", "grams", "litres", "ratio", "watts", "bytes")


class Family(NamedTuple):
    name: str
    """without the ending that its kind adds"""
    kind: Literal["counter", "gauge", "info"]
    help: str

    @property
    def unit(self) -> str:
        """The name's last word; empty where that is no unit, because OpenMetrics allows no
        other."""
        word = self.name.rpartition("_")[2]
        return word if word in UNITS else ""

    @property
    def sample(self) -> str:
        """What its samples are called.

        >>> QUANTITIES["energy"].family.sample, STATEMENT.sample
        ('ckptcost_energy_joules_total', 'ckptcost_statement_info')
        """
        return self.name + {"counter": "_total", "gauge": "", "info": "_info"}[self.kind]


class CountedQuantity(NamedTuple):
    """A quantity of the statement as a family, and how many of its unit are one of the
    statement's."""

    family: Family
    scale: float


_MEMO = "A memo item: already inside the facility's own meter or bill."
MEAN = "Of a plan or of simulated runs it is a mean, which need not be whole."
BASE_UNITS = {
    "j": ("joules", 1.0),
    "gpu_s": ("seconds", 1.0),
    "usd": ("usd", 1.0),
    "kgco2e": ("grams", KG_G),
    "l": ("litres", 1.0),
}
"""Prometheus' words for the base units of quantities, and how many of its are one of ours"""
CALLED = {"gpu_time_lost": "gpu_lost", "embodied": "embodied_emissions"}
"""where a family is not called as the quantity is"""
HELP = {
    "energy": f"Energy that checkpoints and failures cost, since the run began. {_MEMO}",
    "gpu_time_lost": (
        "GPU time lost to checkpoints and failures, in GPU-seconds, since the run began."
    ),
    "cost": f"US dollars that checkpoints and failures cost, since the run began. {_MEMO}",
    "emissions_location": (
        "gCO2e of that energy, location-based, without embodied carbon. Market-based is the same"
        f" energy again: never add it. {_MEMO}"
    ),
    "emissions_market": (
        "gCO2e of that energy, market-based, without embodied carbon. Location-based is the same"
        f" energy again: never add it. {_MEMO}"
    ),
    "embodied": ("gCO2e of making the hardware, the share of the time lost. In no other figure."),
    "water": "Litres of water for cooling that energy, on site.",
}


def _counted_quantity(q: Quantity) -> CountedQuantity:
    word, base_units = BASE_UNITS[q.base]
    name = f"ckptcost_{CALLED.get(q.id, q.id)}_{word}"
    help_ = HELP.get(q.id, f"{q.label.capitalize()}, since the run began.")
    return CountedQuantity(Family(name, "counter", help_), q.per_unit * base_units)


QUANTITIES = {q.id: _counted_quantity(q) for q in IN_DOCUMENTS}
"""By the statement's names. Location and market are families of their own, not labels of one: a
plain sum cannot add them up."""
CHECKPOINTS = Family(
    "ckptcost_checkpoints", "counter", f"Completed saves, since the run began. {MEAN}"
)
UNKNOWN = Family(
    "ckptcost_component_unknown",
    "gauge",
    "1: this quantity of this component is not known, and in no sum.",
)
BUILD = Family(
    "ckptcost_build", "info", "The program that wrote this, and a hash of what it was told."
)
STATEMENT = Family(
    "ckptcost_statement", "info", "What a run was, where, and by which method it was counted."
)
FACTOR = Family(
    "ckptcost_factor",
    "gauge",
    "A factor that the figures rest on, in its base unit, with its source.",
)
RUN_START = Family(
    "ckptcost_run_start_timestamp_seconds", "gauge", "When the run's period begins, Unix time."
)
RUN_END = Family(
    "ckptcost_run_end_timestamp_seconds", "gauge", "When the run's period ends, Unix time."
)
RUN_LENGTH = Family("ckptcost_run_length_seconds", "gauge", "How long the run takes.")
ACCELERATORS = Family(
    "ckptcost_run_accelerators", "gauge", "GPUs or other accelerators of the run."
)


def bound(family: Family, end: Literal["low", "high"], of: Literal["component", "run"]) -> Family:
    """The low or high end of a counter's last value. Ends do not add up, so the run's is a family
    of its own.

    >>> (
    ...     bound(QUANTITIES["energy"].family, "low", "component").name,
    ...     bound(QUANTITIES["gpu_time_lost"].family, "high", "run").name,
    ... )
    ('ckptcost_energy_low_joules', 'ckptcost_run_gpu_lost_high_seconds')
    """
    stem, _, unit = family.name.rpartition("_")
    name = f"{stem}_{end}_{unit}"
    if of == "run":
        name = name.replace("ckptcost_", "ckptcost_run_", 1)
    whose = "a component's" if of == "component" else "the run's"
    return Family(
        name,
        "gauge",
        f"{end.capitalize()} end of {whose} {family.sample}. Ends of several do not add up.",
    )


def standing(family: Family) -> Family:
    """The same of what stands there anyway, the run's share of it.

    >>> standing(QUANTITIES["energy"].family).sample
    'ckptcost_standing_energy_joules_total'
    """
    name = family.name.replace("ckptcost_", "ckptcost_standing_", 1)
    return Family(
        name,
        family.kind,
        f"Share of what stands there anyway, as {family.sample}: never add the two.",
    )


def head(family: Family, flavour: Flavour) -> str:
    r"""The lines before a family's samples. Prometheus names the sample, OpenMetrics the family.

    >>> print(head(CHECKPOINTS, "prometheus"), end="")
    # HELP ckptcost_checkpoints_total Completed saves, since the run began. Of a plan or...
    # TYPE ckptcost_checkpoints_total counter
    """
    if flavour == "prometheus":
        kind = "gauge" if family.kind == "info" else family.kind
        return f"# HELP {family.sample} {family.help}\n# TYPE {family.sample} {kind}\n"
    unit = f"# UNIT {family.name} {family.unit}\n" if family.unit else ""
    return f"# TYPE {family.name} {family.kind}\n{unit}# HELP {family.name} {family.help}\n"


def text(samples: Iterable[Any], flavour: Flavour) -> Iterator[str]:
    """Each family's samples (family, labels, value) together."""
    families: dict[Family, list[Any]] = {}
    for each in samples:
        families.setdefault(each.family, []).append(each)
    for family, found in families.items():
        yield head(family, flavour)
        yield "".join(f"{family.sample}{each.labels} {number(each.value)}\n" for each in found)


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def labels(pairs: Labels) -> str:
    r"""A sample's labels. An unknown one is left out, which to Prometheus is the same as an empty
    one.

    >>> labels({"run": 'a "b"', "zone": None})
    '{run="a \\"b\\""}'
    """
    known = (f'{name}="{escape_label(value)}"' for name, value in pairs.items() if value)
    return "{" + ",".join(known) + "}"


def escape_label(value: str) -> str:
    """A label's value. Control characters, which end the text for some readers, become a
    replacement character."""
    return (
        _CONTROL.sub("\ufffd", value).replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    )


def number(value: float) -> str:
    """Twelve significant digits: rounding noise in the last bits would look like a change to
    readers that compare text.

    >>> number(0.1 + 0.2), number(4321800000.0), number(0.0)
    ('0.3', '4321800000', '0')
    """
    return f"{value + 0.0:.12g}"
