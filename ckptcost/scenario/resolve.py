"""What the user said, as layers one over the other, and the scenario that they describe.

defaults < catalogue entries < the presets and files a scenario extends < the file < flags.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ckptcost.errors import InputError, unknown_name, visible
from ckptcost.scenario import catalog
from ckptcost.scenario.figures import Figure, product, read_section
from ckptcost.scenario.schema import (
    CADENCES,
    FAILURE_RATES,
    KEYS,
    REFERENCES,
    SHARED_RATES,
    SHARED_STORAGE,
    TIERS,
)
from ckptcost.scenario.units import show

DEFAULTS = "models/defaults.toml"
INSIDE = "models/defaults-inside.toml"
"""what differs for a tier inside the nodes"""
RATES = {*FAILURE_RATES, *SHARED_RATES}
WRITES = ("write", "node_write", "gpu_write", "write_per_capacity")
OWN_RATE = {*WRITES, "save_time"}
READS = tuple(rate.replace("write", "read") for rate in WRITES)
Said = dict[str, dict[str, Any]]
"""figures and words, by section and key"""


@dataclass(frozen=True)
class Layer:
    """What one document or the flags say."""

    label: str
    said: Said
    name: str = ""
    compare: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """A job: every figure of it, with what it rests on."""

    name: str
    said: Said
    names: dict[str, str]
    """what each section is called"""
    claims: tuple[dict[str, Any], ...] = ()
    """what somebody says a save on the first tier takes; none where its rate is the user's own"""
    lacking: dict[str, str] = field(default_factory=dict)
    """why a figure that a bill needs is not known"""

    def figures(self) -> dict[str, Figure]:
        """By path, such as "tier.write"."""
        flat = {f"{s}.{key}": value for s, keys in self.said.items() for key, value in keys.items()}
        return {path: value for path, value in flat.items() if isinstance(value, Figure)}

    def followers(self, path: str) -> list[str]:
        """Paths of the figures that were taken from one, from those, and so on."""
        direct = [other for other, figure in self.figures().items() if path in figure.follows]
        further = (each for other in direct for each in self.followers(other))
        return [*dict.fromkeys((*direct, *further))]

    def with_figure(self, path: str, figure: Figure) -> Scenario:
        """With one figure changed, and all that were taken from it in the same ratio."""
        section, key = path.split(".")
        figures, was = self.figures(), self.figures().get(path)
        void = {f"{section}.{each}" for each in _overruled(section, {key})} & figures.keys()
        void |= {other for other in figures if void & {*figures[other].follows}}
        said = {k: v for k, v in self.said[section].items() if f"{section}.{k}" not in void}
        said[key] = figure
        changed = replace(self, said=self.said | {section: said})
        if was and 0 < was.value != figure.value:
            for other in changed.followers(path):  # all lie in the same section
                scaled = changed.figures()[other].scaled(figure.value / was.value)
                said[other.removeprefix(f"{section}.")] = scaled
        if section not in TIERS or key not in WRITES:
            return changed
        said |= _reads(section, said, _own(said))
        names = self.names | {section: as_given(self.names.get(section, section))}
        claims = () if section == "tier" else self.claims
        return replace(changed, names=names, claims=claims)


# --- layers -----------------------------------------------------------------------------------


_HEAD = ("id", "name", "note", "extends", "basis", "source", "compare", "schema_version")


def layer_of(raw: dict[str, Any], label: str, basis: str = "user", source: str = "") -> Layer:
    """A document, read and checked."""
    basis = catalog.text_of(raw, "basis", basis, label)
    source = catalog.text_of(raw, "source", source, label)
    for key in raw.keys() - {*KEYS, *_HEAD}:
        raise _unknown_section(key, label)
    said = {}
    for section in KEYS:
        if section in raw:
            values = read_section(section, raw[section], label)
            sourced = {k: catalog.with_source(v, basis, source, label) for k, v in values.items()}
            said[section] = sourced
    if len(cadences := [key for key in CADENCES if key in said.get("policy", ())]) > 1:
        raise InputError(
            f"{' and '.join(cadences)} contradict each other", f"{label}: policy", "keep one"
        )
    compare = _compare_of(raw.get("compare", {}), label)
    return Layer(label, said, catalog.text_of(raw, "name", "", label), compare)


def _unknown_section(key: str, label: str) -> InputError:
    homes = [section for section in KEYS if key in KEYS[section]]
    if homes:
        remedy = f"write it below [{homes[0]}], or as {homes[0]}.{key} = ..."
        return InputError(f"{key} stands outside its section", label, remedy)
    return unknown_name("section", key, (*KEYS, *_HEAD), label)


def _compare_of(raw: Any, label: str) -> dict[str, list[Any]]:
    """The tiers and the numbers of saves that a file compares."""
    where = f"{label}: compare"
    known: dict[str, tuple[type, ...]] = {"tier": (str,), "saves": (int, float)}
    if not isinstance(raw, dict):
        raise InputError("compare is a section", where, "write [compare] and its keys below")
    for key, values in raw.items():
        if key not in known:
            raise unknown_name("key in compare", key, known, label)
        if not isinstance(values, list) or not all(isinstance(v, known[key]) for v in values):
            examples = {"tier": '["nas-hdd", "flash-shared"]', "saves": "[100, 1000]"}
            raise InputError(f"{key} must be a list", where, f"write {key} = {examples[key]}")
    return raw


def layers_of(name: str, seen: tuple[Path, ...] = (), folder: Path = Path()) -> list[Layer]:
    """The layers of a scenario file or preset, the one it extends first."""
    is_file = name.endswith(".toml") or "/" in name
    path = folder / name if is_file else catalog.file_of("scenario", name)
    if path.absolute() in seen:
        raise InputError("extends itself", visible(str(path)), "break the circle")
    raw = catalog.read_toml(path)
    extends = catalog.text_of(raw, "extends", "", path.name)
    mine = layer_of(raw, path.name, *(("user",) if is_file else ("assumed", "house")))
    under = layers_of(extends, (*seen, path.absolute()), path.parent) if extends else []
    return [*under, mine]


def layer_of_flags(settings: Sequence[str], flag: str = "--set") -> Layer:
    """`--set path=value` as a layer."""
    raw: dict[str, dict[str, str]] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        section, dot, key = path.strip().partition(".")
        if not (equals and dot):
            problem = f"{setting[:80]!r} is not path=value"
            raise InputError(problem, flag, f"write e.g. {flag} cluster.gpus=1024")
        raw.setdefault(section, {})[key] = value.strip()
    return layer_of(raw, flag)


@cache
def _defaults(file: str = DEFAULTS) -> Layer:
    return layer_of(catalog.read_toml(catalog.SHIPPED / file), file)


def default_figure(section: str, key: str) -> Figure:
    """What is assumed of every job until somebody says better."""
    figure: Figure = _defaults().said[section][key]
    return figure


def merge(layers: Sequence[Layer]) -> Said:
    """Later layers over earlier ones; naming another entry forgets what was said of the section."""
    merged: Said = {section: {} for section in KEYS}
    for layer in layers:
        for section, said in layer.said.items():
            mine, word = merged[section], REFERENCES.get(section)
            if word in said and mine.get(word) != said[word]:
                # GPUs are of the job, not of the entry: they outlive the naming of another one
                mine = {key: value for key, value in mine.items() if key == "gpus"}
            for key in _overruled(section, said.keys()):
                mine.pop(key, None)
            merged[section] = mine | said
    return merged


OVERRULES: dict[str, tuple[tuple[Collection[str], Collection[str]], ...]] = {
    "policy": ((CADENCES, CADENCES),),
    "failures": ((("mtbf",), RATES), (RATES, ("mtbf",))),
} | dict.fromkeys(
    TIERS,
    (
        (WRITES, ("save_time",)),
        (READS, ("load_time",)),
        (("node_write",), ("clients",)),
        (("write_per_capacity",), ("known_capacity",)),
    ),
)
"""by section: who says one of these, says in another way what earlier layers say with those"""


def _overruled(section: str, keys: Collection[str]) -> set[str]:
    """Keys of earlier layers that these keys make void."""
    void = [v for saying, v in OVERRULES.get(section, ()) if not set(saying).isdisjoint(keys)]
    return set().union(*void) - set(keys)


# --- from layers to a scenario ----------------------------------------------------------------


def resolve(layers: Sequence[Layer]) -> Scenario:
    """The scenario that the layers describe, complete and checked."""
    merged = merge(layers)
    merged["site"].setdefault("id", _defaults().said["site"]["id"])
    said: Said = {}
    names: dict[str, str] = {}
    claims: tuple[dict[str, Any], ...] = ()
    for section, over in merged.items():
        entries = _entries_of(section, over)
        said[section] = _with_entries(section, merged, entries)
        names |= _names(section, over, entries)
        if section == "tier" and OWN_RATE.isdisjoint(over):
            claims = tuple(claim for entry in entries for claim in entry.claims)
        if section in TIERS and said[section]:
            _complete_tier(section, said[section])
    lacking = _complete_cluster(said["cluster"])
    _check(said)
    name = next((layer.name for layer in reversed(layers) if layer.name), "")
    return Scenario(name, said, names, claims, lacking)


def _entries_of(section: str, over: dict[str, Any]) -> list[catalog.Entry]:
    """Catalogue entries behind a section, the least specific first."""
    kind, name = "tier" if section in TIERS else section, over.get(REFERENCES.get(section, ""))
    also = {"cluster": "accelerator", "site": "grid"}.get(section, "")
    try:
        own = [catalog.get(kind, str(name))] if name else []
        behind = over.get(also) or (own[0].said.get(also) if own else None)
        further = [catalog.get(also, behind)] if behind else []
    except InputError as error:
        raise error.at(section) from None
    return [*own, *further] if section == "site" and also in over else [*further, *own]


def _names(section: str, over: dict[str, Any], entries: list[catalog.Entry]) -> dict[str, str]:
    """What a section, and the accelerator or grid behind it, are called."""
    names = {e.kind if e.kind in catalog.ROWS else section: e.name for e in entries}
    names.setdefault(section, f"the {section.replace('_', ' ')} as given")
    if over.get("name"):
        names[section] = over["name"]
    elif section in TIERS and entries and not OWN_RATE.isdisjoint(over):
        names[section] = as_given(names[section])
    return names


def as_given(name: str) -> str:
    """The name of a tier whose rate is the user's own: no longer a vendor's claim."""
    plain = name.removesuffix(" (vendor claim)")
    return name if name.endswith("as given") else f"{plain}, rate as given"


def _with_entries(section: str, merged: Said, entries: list[catalog.Entry]) -> dict[str, Any]:
    """Defaults, over them the entries, over them what was said."""
    said, void = _default(section, merged), _overruled(section, merged[section].keys())
    for entry in entries:
        said |= {key: value for key, value in entry.said.items() if key not in void}
    return said | merged[section]


def _default(section: str, merged: Said) -> dict[str, Any]:
    """What is assumed of a section, unless what is said makes that void."""
    if section in TIERS:
        is_there = merged[section] or section == "tier"
        return dict(_defaults().said["tier"]) if is_there else {}
    found, void = _defaults().said.get(section, {}), _void(section, merged)
    return {key: value for key, value in found.items() if key not in void}


def _void(section: str, merged: Said) -> set[str]:
    """Assumptions that what is said makes void."""
    said = merged[section].keys()
    if section == "policy":  # none are kept on a tier that there is not
        return {tier.replace("tier", "keep_last") for tier in TIERS[1:] if not merged[tier]}
    if section == "failures" and {"rate", "gpu_rate"} & said:  # it is meant as it is
        return set(FAILURE_RATES)
    return RATES if section == "failures" and "mtbf" in said else set()


# --- what follows from what is said ------------------------------------------------------------


def _complete_tier(section: str, tier: dict[str, Any]) -> None:
    """Adds what follows from the rates and drops assumptions that do not apply."""
    own = _own(tier)
    tier |= _reads(section, tier, own)
    shared = tier.get("boundary", "storage-system") in SHARED_STORAGE
    if not shared:
        inside = _defaults(INSIDE).said["tier"]
        tier |= {key: value for key, value in inside.items() if key not in own}
    for key, it_applies in _applies(tier, own, shared).items():
        if not it_applies and key not in own:
            tier.pop(key, None)


def _applies(tier: dict[str, Any], own: set[str], shared: bool) -> dict[str, bool]:
    """Which assumptions about a tier apply, and are not replaced by something better."""
    own_energy = bool(own & {"write_energy", "active_power"})
    whole = own & {"write", "write_per_capacity", "save_time"}  # not only the rate of a node
    one_client = shared and "node_write" in own and not whole
    return {
        "clients": one_client,
        "scaling": one_client or bool(own & {"clients", "known_capacity"}),
        "share": shared,
        "usual_energy": not own_energy,
        "usual_exponent": not own_energy,
        "network_energy": shared or tier.get("survives") != "process",
        "storage_price": shared and "standing_price" not in own,
        "request_size": "request_price" in own,
        "gpu_write": not (tier.get("in_memory") or "save_time" in own),
        "gpu_read": not (tier.get("in_memory") or "load_time" in tier),
    }


def _own(said: dict[str, Any]) -> set[str]:
    """Figures that somebody gave: no defaults."""
    figures = ((key, value) for key, value in said.items() if isinstance(value, Figure))
    return {key for key, figure in figures if figure.origin not in (DEFAULTS, INSIDE)}


READ_OVER_WRITE = (0.51, 2.36)
"""least and highest ratio of a read rate to a write rate, if only the write rate is given: 5 % of
published pairs lie below 0.64 and 5 % above 1.8"""


def _reads(section: str, tier: dict[str, Any], own: set[str]) -> dict[str, Figure]:
    """Reading taken as fast as writing, and a load as long as a save, if nobody says otherwise."""
    least, most = READ_OVER_WRITE
    found = {}
    for write, read in zip(WRITES, READS, strict=True):
        said = own & ({"gpu_read"} if read == "gpu_read" else {*READS, "load_time"} - {"gpu_read"})
        if write in own and not said:
            note = "reading taken as fast as writing; published pairs: 0.6 to 2 times as fast"
            found[read] = _alike(tier[write], f"{section}.{write}", note, least, most)
    if "save_time" in own and not found and not own & {*READS, "load_time"}:
        note = "a load taken to be as long as a save; published rates of both differ up to twofold"
        path = f"{section}.save_time"
        found["load_time"] = _alike(tier["save_time"], path, note, 1.0 / most, 1.0 / least)
    return found


def _alike(figure: Figure, path: str, note: str, least: float, most: float) -> Figure:
    """An assumed figure that follows another, with a range of its own about it."""
    same = figure.taken_from(path, note, DEFAULTS)
    low, high = least * same.value, most * same.value
    return replace(same, low=low, high=high, source="mlperf-storage-v3; dlrover-flash")


def _complete_cluster(cluster: dict[str, Any]) -> dict[str, str]:
    """Adds power in each state from the accelerator's rating; says what is lacking."""
    _add_product(cluster, "gpu_train", "rated power", ("gpu_tdp", "train_fraction"))
    _add_product(cluster, "gpu_stall", "power while training", ("gpu_train", "stall_fraction"))
    if "gpu_idle" not in cluster and "gpu_stall" in cluster:
        note = "taken as while training waits for a save"
        cluster["gpu_idle"] = cluster["gpu_stall"].taken_from("cluster.gpu_stall", note, DEFAULTS)
    if "host_stall" in cluster or "host_train" not in cluster:
        cluster.pop("host_stall_fraction", None)
    wanted = {
        "gpu_train": "no rated power is published for this accelerator",
        "host_train": "no power of the rest of the node is known",
        "gpu_price": "no price is known for this accelerator",
        "gpu_embodied": "no footprint is known for this accelerator",
    }
    return {f"cluster.{key}": why for key, why in wanted.items() if key not in cluster}


def _add_product(cluster: dict[str, Any], key: str, what: str, factors: tuple[str, str]) -> None:
    """Adds a power that is not given, if its factors are; drops factors that are of no use."""
    if key not in cluster and cluster.keys() >= set(factors):
        taken = {f"cluster.{each}": cluster[each] for each in factors}
        cluster[key] = product(taken, f"{what} x {factors[1]}", DEFAULTS)
    elif key in cluster or factors[0] not in cluster:
        for each in set(factors) - {"gpu_train"}:
            cluster.pop(each, None)


def _check(said: Said) -> None:
    """Refuses what no default can complete."""
    checkpoint, tier, policy = said["checkpoint"], said["tier"], said["policy"]
    timed = "save_time" not in tier or "timed_size" in tier
    needs = {
        "run.work": ("work" in said["run"], '--set run.work="54 days"'),
        "cluster.gpus": ("gpus" in said["cluster"], "--set cluster.gpus=1024"),
        "checkpoint": ({"size", "params"} & checkpoint.keys(), '--set checkpoint.size="2 TB"'),
        "policy": (set(CADENCES) & policy.keys(), '--saves 100 or --set policy.interval="30 min"'),
        "policy.step": ("steps" not in policy or "step" in policy, '--set policy.step="12 s"'),
        "tier.timed_size": (timed, '--set tier.timed_size="2 TB"'),
    }
    for key, (there, remedy) in needs.items():
        if not there:
            raise InputError("is missing", key, f"give it, e.g. {remedy}")
    for section in TIERS:
        rates = {"write", "node_write", "gpu_write", "save_time"} & _own(said[section])
        sized = {"write_per_capacity", "capacity"} <= said[section].keys()
        if (said[section] or section == "tier") and not (rates or sized):
            remedy = f'--set {section}.write="30 GB/s", or --tier with an id of the catalogue'
            raise InputError("the write rate is not known", section, remedy)


# --- several cases of one scenario --------------------------------------------------------------


def cases_of(
    layers: Sequence[Layer], tiers: Sequence[str] = (), saves: Sequence[float] = ()
) -> dict[str, Scenario]:
    """Every tier at every number of saves; without either, what the scenario itself compares."""
    return dict(
        _case(layers, tier, count)
        for tier in tiers or _compared(layers, "tier")
        for count in saves or _compared(layers, "saves")
    )


def _case(layers: Sequence[Layer], tier: str | None, count: float | None) -> tuple[str, Scenario]:
    """One case with its name: flags lie over the tier and the number of saves."""
    raw: dict[str, Any] = {"tier": {"id": tier}} if tier else {}
    raw |= {"policy": {"saves": count}} if count else {}
    flags = [layer for layer in layers if layer.label == "--set"]
    plain = [layer for layer in layers if layer.label != "--set"]
    scenario = resolve([*plain, layer_of(raw, "--tier, --saves"), *flags])
    counted = f", {count:,g} save{'s' if count > 1 else ''}" if count else ""
    return tier_of(scenario) + counted, scenario


def tier_of(scenario: Scenario) -> str:
    """What a case calls its first tier: by its id, or by its rate if it has none."""
    tier = scenario.said["tier"]
    units = {"save_time": "s", "write_per_capacity": "MB/s/TiB"}
    key = next(key for key in ("save_time", *WRITES) if key in _own(tier))
    return str(tier.get("id") or tier[key].text or show(tier[key].value, units.get(key, "B/s")))


def _compared(layers: Sequence[Layer], what: str) -> list[Any]:
    """What the scenario compares, unless a later layer says one tier, or how often."""
    found: list[Any] = []
    for layer in layers:
        said = layer.said.get("tier", {}).keys() & {"id"}
        if what == "saves":
            said = layer.said.get("policy", {}).keys() & set(CADENCES)
        found = layer.compare.get(what, [] if said else found)
    return found or [None]
