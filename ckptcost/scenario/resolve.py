"""What the user said, as layers one over the other, and the scenario that they describe.

defaults < catalogue entries < the presets and files a scenario extends < the file < flags.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ckptcost.errors import InputError, unknown_name
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

DEFAULTS = "models/defaults.toml"
INSIDE = "models/defaults-inside.toml"
"""what differs for a tier inside the nodes"""
RATES = {*FAILURE_RATES, *SHARED_RATES}
WRITES = ("write", "node_write", "gpu_write", "write_per_capacity")
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

    def with_figure(self, path: str, figure: Figure) -> Scenario:
        """With one figure changed, and all that were taken from it in the same ratio."""
        section, key = path.split(".")
        was = self.said[section].get(key)
        kept = _without(section, self.said[section], _overruled(section, {key}))
        said = self.said | {section: kept | {key: figure}}
        if isinstance(was, Figure) and was.value > 0 and was.value != figure.value:
            said = _moved(said, path, figure.value / was.value)
        if section not in TIERS or key not in WRITES:
            return replace(self, said=said)
        said[section] |= _reads(section, said[section], set(said[section]))
        names = self.names | {section: as_given(self.names.get(section, section))}
        return replace(
            self, said=said, names=names, claims=() if section == "tier" else self.claims
        )


def _without(section: str, said: dict[str, Any], void: set[str]) -> dict[str, Any]:
    """Without some keys, and without what was taken from them."""
    gone = {f"{section}.{key}" for key in void & said.keys()}
    return {k: v for k, v in said.items() if k not in void and gone.isdisjoint(_followed(v))}


def followers(scenario: Scenario, path: str) -> list[str]:
    """Paths of the figures that were taken from one, from those, and so on: a grid over `path`
    scales these too."""
    return [follower for follower, _ in _followers(scenario.said, path)]


def _followers(said: Said, path: str) -> Iterator[tuple[str, Figure]]:
    section = path.partition(".")[0]
    for key, value in said[section].items():
        if path in _followed(value):
            yield f"{section}.{key}", value
            yield from _followers(said, f"{section}.{key}")


def _followed(value: Any) -> tuple[str, ...]:
    return value.follows if isinstance(value, Figure) else ()


def _moved(said: Said, path: str, factor: float) -> Said:
    section = path.partition(".")[0]
    moved = {p.partition(".")[2]: f.scaled(factor) for p, f in _followers(said, path)}
    return said | {section: said[section] | moved} if moved else said


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
        raise InputError("extends itself", catalog.printable(path), "break the circle")
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
                mine = {key: value for key, value in mine.items() if (section, key) in LASTING}
            for key in _overruled(section, said.keys()):
                mine.pop(key, None)
            merged[section] = mine | said
    return merged


LASTING = {("cluster", "gpus")}
"""said of the job, not of the entry: it outlives the naming of another one"""


OVERRULES: dict[str, tuple[tuple[Collection[str], Collection[str]], ...]] = {
    "policy": ((CADENCES, CADENCES),),
    "failures": ((("mtbf",), RATES), (RATES, ("mtbf",))),
}
"""by section: who says one of these, says in another way what earlier layers say with those"""
_BY_TIER = (
    (WRITES, ("save_time",)),
    (READS, ("load_time",)),
    (("node_write",), ("clients",)),
    (("write_per_capacity",), ("known_capacity",)),
)
OVERRULES |= dict.fromkeys(TIERS, _BY_TIER)


def _overruled(section: str, keys: Collection[str]) -> set[str]:
    """Keys of earlier layers that these keys make void."""
    void = [v for saying, v in OVERRULES.get(section, ()) if not set(saying).isdisjoint(keys)]
    return set().union(*void) - set(keys)


# --- from layers to a scenario ----------------------------------------------------------------


def resolve(layers: Sequence[Layer]) -> Scenario:
    """The scenario that the layers describe, complete and checked."""
    merged = merge(layers)
    merged["site"].setdefault("id", _defaults().said["site"]["id"])
    entries = {section: _entries_of(section, over) for section, over in merged.items()}
    said: Said = {}
    names: dict[str, str] = {}
    for section, over in merged.items():
        said[section] = _with_entries(section, over, entries[section])
        names |= _names(section, over, entries[section])
    _drop_absent_tiers(said["policy"], merged)
    for section in TIERS:
        if said[section]:
            _complete_tier(section, said[section])
    lacking = _complete_cluster(said["cluster"])
    _check(said)
    name = next((layer.name for layer in reversed(layers) if layer.name), "")
    own_rate = merged["tier"].keys() & {*WRITES, "save_time"}
    claims = () if own_rate else tuple(c for entry in entries["tier"] for c in entry.claims)
    return Scenario(name, said, names, claims, lacking)


def _drop_absent_tiers(policy: dict[str, Any], merged: Said) -> None:
    """How many saves are kept on a tier that there is not."""
    for which in ("second", "third"):
        if not merged[f"{which}_tier"] and f"{which}_keep_last" not in merged["policy"]:
            policy.pop(f"{which}_keep_last", None)


def _entries_of(section: str, over: dict[str, Any]) -> list[catalog.Entry]:
    """Catalogue entries behind a section, the least specific first."""
    try:
        return [catalog.get(*each) for each in _references(section, over)]
    except InputError as error:
        raise error.at(section) from None


def _references(section: str, over: dict[str, Any]) -> list[tuple[str, str]]:
    kind = "tier" if section in TIERS else section
    name = over.get(REFERENCES.get(section, ""))
    own = [(kind, str(name))] if name else []
    also = {"cluster": "accelerator", "site": "grid"}.get(section, "")
    named = over.get(also)
    behind = named or (catalog.get(*own[0]).said.get(also) if own and also else None)
    if not behind:
        return own
    return [*own, (also, behind)] if section == "site" and named else [(also, behind), *own]


def _with_entries(
    section: str, over: dict[str, Any], entries: list[catalog.Entry]
) -> dict[str, Any]:
    """Defaults, over them the entries, over them what was said."""
    said = _default(section, over)
    void = _overruled(section, over.keys())
    for entry in entries:
        said |= {key: value for key, value in entry.said.items() if key not in void}
    return said | over


def _names(section: str, over: dict[str, Any], entries: list[catalog.Entry]) -> dict[str, str]:
    """What a section, and the accelerator or grid behind it, are called."""
    names = {e.kind if e.kind in catalog.ROWS else section: e.name for e in entries}
    names.setdefault(section, f"the {section.replace('_', ' ')} as given")
    if over.get("name"):
        names[section] = over["name"]
    elif section in TIERS and over.keys() & {*WRITES, "save_time"} and entries:
        names[section] = as_given(names[section])
    return names


def as_given(name: str) -> str:
    """The name of a tier whose rate is the user's own: no longer a vendor's claim."""
    return name if name.endswith("as given") else f"{name.removesuffix(CLAIM)}, rate as given"


CLAIM = " (vendor claim)"


def _default(section: str, over: dict[str, Any]) -> dict[str, Any]:
    """What is assumed of a section, unless what is said of it makes that void."""
    if section in TIERS:
        return dict(_defaults().said["tier"]) if over or section == "tier" else {}
    found = dict(_defaults().said.get(section, {}))
    if section == "failures":
        void: set[str] = RATES if "mtbf" in over else set()
        if {"rate", "gpu_rate"} & over.keys():  # who knows their rate means it as it is
            void = set(FAILURE_RATES)
        return {key: value for key, value in found.items() if key not in void}
    return found


# --- what follows from what is said ------------------------------------------------------------


def _complete_tier(section: str, tier: dict[str, Any]) -> None:
    """Adds what follows from the rates and drops assumptions that do not apply."""
    own = {key for key, value in tier.items() if _is_own(value)}
    tier |= _reads(section, tier, own)
    shared = tier.get("boundary", "storage-system") in SHARED_STORAGE
    if not shared:
        inside = _defaults(INSIDE).said["tier"]
        tier |= {key: value for key, value in inside.items() if key not in own}
    if shared and "node_write" in own and not own & {*UNBOUNDED, "clients"}:
        tier["clients"] = ONE_CLIENT
    for key in _void(tier, own, shared) - own:
        tier.pop(key, None)


def _void(tier: dict[str, Any], own: set[str], shared: bool) -> set[str]:
    """Assumptions about a tier that do not apply, or that something better replaces."""
    own_energy = bool(own & {"write_energy", "active_power"})
    applies = {
        "scaling": bool(tier.keys() & {"clients", "known_capacity"}),
        "share": shared,
        "usual_energy": not own_energy,
        "usual_exponent": not own_energy,
        "network_energy": shared or tier.get("survives") != "process",
        "storage_price": shared and "standing_price" not in own,
        "request_size": "request_price" in own,
    }
    return {key for key, it_does in applies.items() if not it_does}


UNBOUNDED = ("write", "write_per_capacity", "save_time")
"""with one of these, the rate of a whole system is known, not only that of a node"""
ONE_CLIENT = Figure(
    1.0,
    1.0,
    1.0,
    "assumed",
    "house",
    "how many nodes were measured together is not said: taken as one; give tier.clients",
    text="1",
    origin=DEFAULTS,
)


def _is_own(value: Any) -> bool:
    """Whether it is a figure that somebody gave, and no default."""
    return isinstance(value, Figure) and value.origin not in (DEFAULTS, INSIDE)


def _reads(section: str, tier: dict[str, Any], own: set[str]) -> dict[str, Figure]:
    """Reading taken as fast as writing, and a load as long as a save, if nobody says otherwise."""
    if own & {*READS, "load_time"}:
        return {}
    found = {}
    for write, read in zip(WRITES, READS, strict=True):
        if write in own:
            note = "reading taken as fast as writing"
            found[read] = tier[write].taken_from(f"{section}.{write}", note, DEFAULTS)
    if "save_time" in own and not found:
        note = "a load taken to be as long as a save"
        found["load_time"] = tier["save_time"].taken_from(f"{section}.save_time", note, DEFAULTS)
    return found


def _complete_cluster(cluster: dict[str, Any]) -> dict[str, str]:
    """Adds power in each state from the accelerator's rating; says what is lacking."""
    _add_product(cluster, "gpu_train", "rated power x train_fraction", RATING)
    _add_product(cluster, "gpu_stall", "power while training x stall_fraction", STALLED)
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


RATING = ("gpu_tdp", "train_fraction")
STALLED = ("gpu_train", "stall_fraction")


def _add_product(cluster: dict[str, Any], key: str, note: str, factors: tuple[str, ...]) -> None:
    """Adds a power that is not given, if its factors are; drops factors that are of no use."""
    if key not in cluster and cluster.keys() >= set(factors):
        taken = {f"cluster.{each}": cluster[each] for each in factors}
        cluster[key] = product(taken, note, DEFAULTS)
    elif key in cluster or factors[0] not in cluster:
        for each in set(factors) - {"gpu_train"}:
            cluster.pop(each, None)


def _check(said: Said) -> None:
    """Refuses what no default can complete."""
    checkpoint, tier, policy = said["checkpoint"], said["tier"], said["policy"]
    needs = {
        "run.work": ("work" in said["run"], '--set run.work="54 days"'),
        "cluster.gpus": ("gpus" in said["cluster"], "--set cluster.gpus=1024"),
        "checkpoint": ({"size", "params"} & checkpoint.keys(), '--set checkpoint.size="2 TB"'),
        "policy": (set(CADENCES) & policy.keys(), '--saves 100 or --set policy.interval="30 min"'),
        "policy.step": ("steps" not in policy or "step" in policy, '--set policy.step="12 s"'),
        "tier.timed_size": (
            "save_time" not in tier or "timed_size" in tier,
            '--set tier.timed_size="2 TB"',
        ),
    }
    for key, (there, remedy) in needs.items():
        if not there:
            raise InputError("is missing", key, f"give it, e.g. {remedy}")
    _check_rates(said)


def _check_rates(said: Said) -> None:
    """Every tier has a write rate, or the time of a save."""
    for section in TIERS:
        rates = {"write", "node_write", "gpu_write", "save_time"} & said[section].keys()
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
    name = str(scenario.said["tier"].get("id") or "tier")
    return name + (f", {count:,g} save{'s' if count > 1 else ''}" if count else ""), scenario


def _compared(layers: Sequence[Layer], what: str) -> list[Any]:
    """What the scenario compares, unless a later layer says one tier, or how often."""
    found: list[Any] = []
    for layer in layers:
        said = layer.said.get("tier", {}).keys() & {"id"}
        if what == "saves":
            said = layer.said.get("policy", {}).keys() & set(CADENCES)
        found = layer.compare.get(what, [] if said else found)
    return found or [None]
