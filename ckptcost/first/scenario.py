"""What the layers mean: the core's Scenario, and the list of its inputs with who said each of
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf, isnan
from typing import Any, Final, NamedTuple

from ckptcost.first.catalog import schema
from ckptcost.first.catalog.figures import Figure
from ckptcost.first.catalog.keys import CADENCES, FAILURE_LAW, KEYS, REFERENCES, SECTIONS, unit_of
from ckptcost.first.catalog.store import Catalog, Entity
from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.size import full_bytes
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.layers import TIERS, WRITE_RATES, Layer, merge_layers, read_layer

DEFAULTS = "models/defaults.toml"
_FURTHER_TIERS = TIERS[1:]
_NAMED = (*TIERS, "cluster", "checkpoint", "site")
_NO_FIELDS = ("id", "model", "name", "accelerator", "grid", "grid_method", "optimal")
"""words that a report tells, and the core does not need"""
Values = dict[str, dict[str, Any]]
"""by section and key"""
Figures = dict[str, tuple[Figure, str]]
"""by key, with whom each is from"""


class Input(NamedTuple):
    """One number that went in: where it sits, what it is, and who said so."""

    path: str
    """section.key, as a file says it"""
    field: str
    """section.field, as the core calls it"""
    unit: str
    figure: Figure
    origin: str
    """the layer or catalogue entry it comes from"""


class Resolved(NamedTuple):
    """A scenario ready for the core, with its pedigree."""

    scenario: Scenario
    inputs: tuple[Input, ...]
    words: dict[str, Any]
    """choices that are not numbers, by path"""
    names: dict[str, str]
    """what each section is called"""
    name: str
    claims: tuple[schema.CheckpointClaim, ...]
    unknown: dict[str, str]
    """why a quantity that a bill would like is not known, with the key that would supply it"""

    @property
    def grid_method(self) -> str:
        """What the grid factor counts: combustion, life-cycle, or unknown."""
        return str(self.words.get("site.grid_method", "unknown"))


@lru_cache(maxsize=4)
def _defaults(catalog: Catalog) -> Layer:
    return read_layer(catalog.defaults, DEFAULTS, "defaults", "assumed", "house")


def resolve(catalog: Catalog, layers: Sequence[Layer]) -> Resolved:
    """The Scenario these layers describe, every input with its pedigree."""
    values, said_by = merge_layers([_defaults(catalog), *layers])
    builder = _Builder(catalog, values, said_by)
    parts = {
        section: builder.section(section)
        for section in SECTIONS
        if section not in ("run", *_FURTHER_TIERS) or values[section]
    }
    cadence = _cadence_of(values)
    if "work" not in values["run"]:
        raise InputError(
            "how long the run trains is not said",
            key="run.work",
            remedy='e.g. --set run.work="54 days"',
        )
    _check_tiers(values, parts)
    if _keeps_in_memory(parts) and "node_ram_bytes" not in parts["cluster"]:
        builder.unknown["cluster.node_ram"] = "whether the copies in host memory fit is not checked"
    policy = {"every": 0.0} | {k: v for k, v in parts["policy"].items() if k != "optimal"}
    policy |= {"cadence": cadence, "objective": values["policy"].get("optimal", "time")}
    second, third = (
        Tier(**parts[section]) if section in parts else None for section in _FURTHER_TIERS
    )
    scenario = Scenario(
        Checkpoint(**parts["checkpoint"]),
        Tier(**parts["tier"]),
        Cluster(**parts["cluster"]),
        Policy(**policy),
        Failures(**parts["failures"]),
        Site(**parts["site"]),
        parts["run"]["work_s"],
        second,
        third,
    )
    _complete(scenario, values)
    return Resolved(
        scenario,
        tuple(sorted(builder.inputs, key=lambda i: i.path)),
        builder.words | {"policy.cadence": cadence},
        builder.names,
        next((layer.name for layer in reversed(layers) if layer.name), ""),
        builder.claims,
        builder.unknown,
    )


def _cadence_of(values: Values) -> str:
    """How often to save, as one of the keys that say so."""
    policy = values["policy"]
    cadence = next((key for key in (*CADENCES, "optimal") if key in policy), None)
    if cadence is None:
        raise InputError(
            "how often to save is not said",
            key="policy",
            remedy='give --saves N, --interval "30 min", or policy.optimal = "time"',
        )
    if cadence == "steps" and "step" not in policy:
        raise InputError(
            "an interval in steps needs the time of one",
            key="policy.step",
            remedy='e.g. --set policy.step="12 s"',
        )
    return cadence


def _check_tiers(values: Values, parts: Values) -> None:
    """No further tier is spoken of without being there, nor a third one without a second."""
    for which, needs in zip(("second", "third"), _FURTHER_TIERS, strict=True):
        if values["policy"].get(f"{which}_every") is not None and needs not in parts:
            raise InputError(
                f"there is no {which} tier",
                key=f"policy.{which}_every",
                remedy=f"give {needs}.id as well",
            )
    if "third_tier" in parts and "second_tier" not in parts:
        raise InputError(
            "there is no second tier", key="third_tier", remedy="give second_tier.id as well"
        )


def _keeps_in_memory(parts: Values) -> bool:
    return parts["policy"].get("mode") == "async" or bool(parts["tier"].get("in_memory", False))


def _complete(s: Scenario, values: Values) -> None:
    """What no default can supply."""
    size = float(full_bytes(s.checkpoint))
    if size != size:
        raise InputError(
            "the size of a checkpoint is not known",
            key="checkpoint",
            remedy="give checkpoint.model, checkpoint.params or checkpoint.size",
        )
    for section, tier in zip(TIERS, (s.tier, s.second_tier, s.third_tier), strict=True):
        if tier is not None:
            _check_times(section, tier, size)
            _check_write_rate(section, tier, values[section])


def _check_times(section: str, tier: Tier, size_bytes: float) -> None:
    for key, time_s in (("save_time", tier.save_time_s), ("load_time", tier.load_time_s)):
        if not isnan(time_s) and not tier.timed_bytes > 0:
            raise InputError(
                "a measured time needs the size that it was measured with",
                key=f"{section}.{key}",
                remedy=f"give {section}.timed_size; this checkpoint has {size_bytes:.4g} B",
            )


def _check_write_rate(section: str, tier: Tier, said: dict[str, Any]) -> None:
    """Of a tier whose saves were not timed, a rate is known; one by capacity needs that as well."""
    rates = (tier.write_bytes_per_s, tier.node_write_bytes_per_s, tier.gpu_write_bytes_per_s)
    if not isnan(tier.save_time_s) or not all(rate == inf for rate in rates):
        return
    key, remedy = "write", f'e.g. --set {section}.write="30 GB/s"'
    if tier.write_per_s < inf:
        if not isnan(tier.capacity_bytes):
            return
        key, remedy = "capacity", "give its capacity"
    named = said.get("id") or said.get("name") or "this tier"
    raise InputError(
        f"the write rate of {named} is not known", key=f"{section}.{key}", remedy=remedy
    )


class _Builder:
    """Collects one section after another, noting each input as it is used."""

    def __init__(
        self,
        catalog: Catalog,
        values: Values,
        said_by: dict[str, dict[str, str]],
    ) -> None:
        self.catalog, self.values, self.said_by = catalog, values, said_by
        self.inputs: list[Input] = []
        self.words: dict[str, Any] = {}
        self.names: dict[str, str] = {}
        self.claims: tuple[schema.CheckpointClaim, ...] = ()
        self.unknown: dict[str, str] = {}

    def section(self, section: str) -> dict[str, Any]:
        """The fields that the core's part is made of."""
        figures: Figures = {}
        words: dict[str, Any] = {}
        mine = self._gather(section, figures, words)
        match section:
            case "tier" | "second_tier" | "third_tier":
                self._tier_rules(section, figures, words)
            case "cluster":
                self._cluster_rules(figures)
            case "policy":
                self._policy_rules(figures, mine)
            case "site":
                self._site_rules(figures, words, mine)
            case "failures":
                self._failure_rules(figures, mine)
        fields_ = self._note(section, figures)
        fields_ |= {word: value for word, value in words.items() if word not in _NO_FIELDS}
        self.words |= {f"{section}.{word}": value for word, value in words.items()}
        if section in _NAMED:
            self.names.setdefault(
                section, words.get("name") or f"the {section.replace('_', ' ')} as given"
            )
        return fields_

    def _gather(self, section: str, figures: Figures, words: dict[str, Any]) -> set[str]:
        """Defaults, under catalogue entries, under what layers say; the keys of these."""
        said, said_by = self.values[section], self.said_by[section]
        mine = {key for key in said if said_by.get(key) != "defaults"}
        defaults = {key: said[key] for key in said.keys() - mine}
        if section in _FURTHER_TIERS:
            # what is assumed of a tier is assumed of all; what is said of one is not
            defaults = _defaults(self.catalog).sections["tier"]
        for key, value in defaults.items():
            self._take(key, value, DEFAULTS, figures, words)
        for entity in self._entities(section, said):
            origin = f"{entity.kind} {entity.id}"
            figures.update((key, (figure, origin)) for key, figure in entity.figures.items())
            words |= entity.words
            if section == "tier":
                self.claims += entity.claims
        for key in mine:
            self._take(key, said[key], said_by[key], figures, words)
        return mine

    def _policy_rules(self, figures: Figures, mine: set[str]) -> None:
        """Nothing is kept on a tier that does not exist."""
        for section in _FURTHER_TIERS:
            key = section.replace("tier", "keep_last")
            if not self.values[section] and key not in mine:
                figures.pop(key, None)

    def _failure_rules(self, figures: Figures, mine: set[str]) -> None:
        """Who knows their own rate means it as it is: the default one, and its law of size, are put
        by."""
        if not mine.isdisjoint(("rate", "gpu_rate")):
            for key in set(FAILURE_LAW) - mine:
                figures.pop(key, None)

    def _site_rules(self, figures: Figures, words: dict[str, Any], mine: set[str]) -> None:
        if "grid_location" not in figures:
            self.unknown["site.grid_location"] = "this site names no grid (site.grid)"
            return
        # a factor of the user's own has the method that the user says, not that of the grid it
        # replaces
        if "grid_method" not in mine and not figures["grid_location"][1].startswith("grid "):
            words["grid_method"] = "unknown"
        words.setdefault("grid_method", "unknown")

    @staticmethod
    def _take(
        key: str,
        value: Any,
        origin: str,
        figures: Figures,
        words: dict[str, Any],
    ) -> None:
        if isinstance(value, Figure):
            figures[key] = (value, origin)
        else:
            words[key] = value

    def _entities(self, section: str, said: dict[str, Any]) -> list[Entity]:
        """Catalogue entries behind a section, the least specific first."""
        found: list[Entity] = []
        reference = REFERENCES.get(section)
        if reference and (name := said.get(reference)):
            entity = self._get(section, str(name), f"{section}.{reference}")
            found.append(entity)
            self.names[section] = str(said.get("name") or entity.name)
        kind = {"cluster": "accelerator", "site": "grid"}.get(section, "")
        if name := said.get(kind) or (found[0].words.get(kind) if found else None):
            entity = self._get(kind, str(name), f"{section}.{kind}")
            self.names[kind] = entity.name
            # a grid that is named itself is more than the site's own
            found.insert(len(found) if section == "site" and said.get(kind) else 0, entity)
        return found

    def _get(self, kind: str, name: str, key: str) -> Entity:
        try:
            return self.catalog.get(kind, name)
        except UnknownName as error:
            raise error.at(key=key) from None

    def _tier_rules(self, section: str, figures: Figures, words: dict[str, Any]) -> None:
        """What nobody says of a tier: reading as fast as writing, and energy and prices in the
        range of the systems that publish them."""
        _assume_reading(figures)
        shared = words.get("boundary", "storage-system") in SHARED
        own = {key for key, (_, origin) in figures.items() if origin != DEFAULTS}
        _assume_write_energy(figures, own, shared)
        stays_inside = not shared and words.get("survives") == "process"
        not_for_it = {
            "network_energy": stays_inside,
            "storage_price": not shared or "standing_price" in own,
            "request_size": "request_price" not in own,
        }
        for key in [key for key, applies in not_for_it.items() if applies and key not in own]:
            del figures[key]
        if ("standing_price" in figures or "idle_power" in figures) and "capacity" not in figures:
            self.unknown[f"{section}.capacity"] = (
                "without it no share of the standing price or idle power can be told"
            )

    def _cluster_rules(self, figures: Figures) -> None:
        """What is known of power in each state, and of the rest of the node."""
        _rate_gpus(figures)
        if "gpu_train" not in figures:
            self.unknown["cluster.gpu_train"] = "no rated power is published for this accelerator"
        if "host_train" not in figures:
            self.unknown["cluster.host_train"] = "no power of the rest of the node is known"
        if "host_stall" in figures or "host_train" not in figures:
            figures.pop("host_stall_fraction", None)
        for key in ("gpu_price", "gpu_embodied"):
            if key not in figures:
                self.unknown[f"cluster.{key}"] = "none is known for this accelerator"

    def _note(self, section: str, figures: Figures) -> dict[str, Any]:
        """Record every figure as an input; the fields they become."""
        fields_: dict[str, Any] = {}
        for key, (figure, origin) in figures.items():
            target = KEYS[section][key]
            path = f"{section}.{target}" if section != "run" else target
            self.inputs.append(
                Input(f"{section}.{key}", path, unit_of(section, key), figure, origin)
            )
            fields_[target] = figure.value
        if section == "cluster" and "gpus" not in figures:
            raise InputError(
                "how many GPUs is not said",
                key="cluster.gpus",
                remedy="e.g. --set cluster.gpus=1024, or name a cluster",
            )
        return fields_


def _assume_reading(figures: Figures) -> None:
    """Reading is as fast as writing, and a load takes as long as a save, where nobody says more."""
    reads = {write: write.replace("write", "read") for write in WRITE_RATES}
    if figures.keys().isdisjoint(reads.values()):
        for write in figures.keys() & reads.keys():
            figures[reads[write]] = _assume_figure(
                figures[write][0], "reading assumed as fast as writing"
            )
    if "save_time" in figures and figures.keys().isdisjoint(("load_time", *reads.values())):
        figures["load_time"] = _assume_figure(
            figures["save_time"][0], "a load assumed to take as long as a save"
        )


def _assume_figure(figure: Figure, note: str) -> tuple[Figure, str]:
    return replace(figure, basis="assumed", note=note), DEFAULTS


def _rate_gpus(figures: Figures) -> None:
    """Power in each state from the accelerator's rating, where it is not given."""
    tdp, train, stall = (
        figures.pop(key, None) for key in ("gpu_tdp", "train_fraction", "stall_fraction")
    )
    if "gpu_train" not in figures and tdp and train:
        note = f"rated power x {train[0].value:g} (cluster.train_fraction)"
        figures["gpu_train"] = tdp[0].scaled(train[0], note), _origin(train, tdp)
    if "gpu_stall" not in figures and "gpu_train" in figures and stall:
        training, origin = figures["gpu_train"]
        note = f"power while training x {stall[0].value:g} (cluster.stall_fraction)"
        figures["gpu_stall"] = replace(training, low=None, high=None).scaled(stall[0], note), origin
    if "gpu_idle" not in figures and "gpu_stall" in figures:
        figures["gpu_idle"] = _assume_figure(
            figures["gpu_stall"][0], "no idle power known: taken as while held up by a save"
        )


SHARED: Final = ("storage-system", "cluster", "facility")
"""boundaries of a tier that several jobs write to"""
LEAST_RATE_OF_DEFAULT_ENERGY: Final = 10e9
"""the default joules per byte are those of systems of 48-953 GB/s"""
_SLOW_ENERGY: Final = Figure(
    1.17e-6,
    38e-9,
    36e-6,
    "assumed",
    "mlperf-storage-v3; ddn-2025-07; house",
    note=(
        "slower than 10 GB/s: a system draws most of its power at rest, so that a slow one spends"
        " more on a byte; from the least of fast systems to 7.2 kW at 0.2 GB/s, and the middle of"
        " these on a logarithmic scale"
    ),
    text="1170 J/GB",
)
_LOCAL_ENERGY: Final = Figure(
    3e-9,
    0.5e-9,
    10e-9,
    "assumed",
    "micron-2026-sdc; house",
    note="inside the node: drives that publish it take 2 to 4 J/GB, memory less",
    text="3 J/GB",
)


def _assume_write_energy(figures: Figures, own: set[str], shared: bool) -> None:
    """A tier whose power in work is known takes that; nothing is added by the byte."""
    if "write_energy" not in own:
        default = figures.pop("write_energy")
        if "active_power" not in own:
            figures["write_energy"] = _write_energy(default, shared, _rate_of(figures))


def _write_energy(
    default: tuple[Figure, str], shared: bool, bytes_per_s: float
) -> tuple[Figure, str]:
    """Joules per byte of a tier that publishes none, by what kind it is."""
    if not shared:
        return _LOCAL_ENERGY, DEFAULTS
    return default if bytes_per_s >= LEAST_RATE_OF_DEFAULT_ENERGY else (_SLOW_ENERGY, DEFAULTS)


def _rate_of(figures: Figures) -> float:
    """Write rate of a system as its figures say it, in bytes per second."""
    if "save_time" in figures and "timed_size" in figures:
        return figures["timed_size"][0].value / figures["save_time"][0].value
    if "write" in figures:
        return figures["write"][0].value
    if "write_per_capacity" in figures and "capacity" in figures:
        return figures["write_per_capacity"][0].value * figures["capacity"][0].value
    return 0.0


def _origin(fraction: tuple[Figure, str], power: tuple[Figure, str]) -> str:
    """Who a product of a fraction and a power is owed to: whoever set the fraction, unless it is
    the default one."""
    return power[1] if fraction[1] == DEFAULTS else fraction[1]


_COPIES = {
    f"{tier}.{read}": f"{tier}.{read.replace('read', 'write')}"
    for tier in TIERS
    for read in ("read_bytes_per_s", "node_read_bytes_per_s", "gpu_read_bytes_per_s", "read_per_s")
}
"""figures that are taken from another where nobody gives them"""


def ties_of(resolved: Resolved) -> dict[str, str]:
    """Inputs that are another input once more: they are uncertain together, not each for itself."""
    ranges = ranges_of(resolved)
    assumed = {i.field for i in resolved.inputs if i.figure.basis == "assumed"}
    return {
        copy: original
        for copy, original in _COPIES.items()
        if copy in assumed & ranges.keys() and ranges[copy] == ranges.get(original)
    }


def ranges_of(resolved: Resolved) -> dict[str, tuple[float, float, float]]:
    """(low, value, high) of every input that has a range, by core field."""
    return {
        i.field: (i.figure.low, i.figure.value, i.figure.high)
        for i in resolved.inputs
        if i.figure.low is not None and i.figure.high is not None and i.figure.low < i.figure.high
    }


def world_ranges_of(resolved: Resolved) -> dict[str, tuple[float, float, float]]:
    """The same of the world alone: how often to save stays as it was chosen."""
    ranges = ranges_of(resolved)
    ranges.pop("policy.every", None)
    return ranges
