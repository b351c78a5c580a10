"""What the user said: presets, files and flags as layers, each over the one before.

The order is models/defaults.toml, the presets and files a scenario extends, the file itself, flags.
Naming another catalogue entry (tier.id, cluster.id ...) in a later layer forgets what earlier
layers said of that section.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog import files, schema
from ckptcost.first.catalog.figures import Figure
from ckptcost.first.catalog.keys import CADENCES, FAILURE_RATES, KEYS, REFERENCES, SECTIONS, WORDS
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import Argument, InputError, UnknownName, brief

DEFAULT_SCENARIO = "gpt4-scale-2tb"
_DEEPEST = 20
_CADENCE_KEYS = frozenset((*CADENCES, "optimal"))


class Layer(NamedTuple):
    """One document's say: figures and words by section."""

    label: str
    sections: dict[str, dict[str, Any]]
    name: str = ""
    file: str = ""
    """the user's file it was read from"""
    compare_tiers: tuple[str, ...] = ()
    compare_saves: tuple[float, ...] = ()

    @property
    def is_flag(self) -> bool:
        return self.label.startswith("--")

    @property
    def has_cadence(self) -> bool:
        """Whether it says how often to save."""
        return not _CADENCE_KEYS.isdisjoint(self.sections.get("policy", {}))


def read_layer(
    raw: dict[str, Any],
    where: str,
    label: str = "",
    basis: str = "user",
    source: str = "",
) -> Layer:
    """A validated document as a layer."""
    document = schema.read_scenario(raw, where)
    basis, source = document.basis or basis, document.source or source
    sections: dict[str, dict[str, Any]] = {}
    for section, values in document.sections.items():
        if section == "policy":
            schema.exclusive_cadence(set(values), where)
        if section == "failures":
            schema.exclusive_rates(set(values), where)
        sections[section] = {
            key: value.or_else(basis, source) if isinstance(value, Figure) else value
            for key, value in values.items()
        }
    return Layer(
        label or where, sections, document.name, "", document.compare_tiers, document.compare_saves
    )


@lru_cache(maxsize=16)
def _written(text: str, where: str, label: str, basis: str, source: str) -> tuple[Layer, str]:
    """What a scenario's text says, and what it extends. A screen reads the file anew at every
    keystroke, since somebody may have rewritten it; as long as it says the same it is not parsed
    again, which takes ten times as long. Nobody changes a layer that was read, so it can be handed
    out again."""
    raw = files.toml_in(text, where)
    extends = raw.get("extends")
    layer = read_layer(raw, where, label, basis, source)
    return layer, extends if isinstance(extends, str) else ""


def layers_of(catalog: Catalog, name: str) -> list[Layer]:
    """The layers of a scenario file or preset, the one it extends first; `extends` in a circle is
    an error."""
    layers: list[Layer] = []
    chain: list[str] = []
    here = Path()
    wanted = name
    while wanted:
        if "\0" in wanted:
            raise InputError(f"{brief(wanted)} is no name of a file", where=Argument("scenario"))
        if wanted.endswith(".toml") or "/" in wanted:
            path = here / wanted
            here, shown = path.parent, str(path)
            _check_chain(chain, str(path.resolve()), shown)
            text = files.text_of(path, shown, start=_START)
            layer, wanted = _written(text, shown, f"file {path.name}", "user", "")
            layers.append(layer._replace(file=shown))
        else:
            file, shown = catalog.file_of("scenario", wanted)
            here = Path()
            _check_chain(chain, f"preset {wanted}", shown)
            text = files.text_of(file, shown, start=_START)
            layer, wanted = _written(text, shown, f"scenario {wanted}", "assumed", "house")
            layers.append(layer)
    return layers[::-1]


_START = "`ckptcost init` writes a commented scenario to start from"


def _check_chain(chain: list[str], link: str, shown: str) -> None:
    """Add one more scenario to those that extend each other; a circle is an error."""
    if link in chain:
        circle = " -> ".join(Path(each).name for each in [*chain, link])
        raise InputError(
            f"extends itself: {circle[:200]}", where=shown, key="extends", remedy="break the circle"
        )
    if len(chain) >= _DEEPEST:
        raise InputError(
            f"extends more than {_DEEPEST} others in a row",
            where=shown,
            key="extends",
            remedy="join some of them",
        )
    chain.append(link)


def layers_for(
    catalog: Catalog,
    scenario: str | os.PathLike[str] | None,
    interval: str | None,
    settings: Sequence[str],
) -> list[Layer]:
    """The scenario and the flags over it."""
    if scenario is not None and not str(scenario):
        raise InputError(
            "names no scenario",
            where=Argument("scenario"),
            remedy="give a file or a preset; `ckptcost catalog scenario` lists them",
        )
    layers = layers_of(catalog, str(scenario) if scenario is not None else DEFAULT_SCENARIO)
    return [*layers, set_layer(settings, interval)] if settings or interval is not None else layers


def files_of(layers: Iterable[Layer]) -> list[tuple[str, bytes]]:
    """The user's own files among the layers, for a report's list of inputs."""
    return [(layer.file, Path(layer.file).read_bytes()) for layer in layers if layer.file]


def set_layer(settings: Iterable[str], interval: str | None = None) -> Layer:
    """`--set path=value` flags and `--interval` as a layer; values are text with units, numbers,
    true/false or words."""
    raw: dict[str, Any] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        section, _, key = path.strip().partition(".")
        if not equals or not key:
            raise InputError(
                f"{brief(setting)} is not path=value",
                where=Argument("changes"),
                remedy="write e.g. --set cluster.gpus=1024",
            )
        if section not in SECTIONS:
            raise UnknownName("section", section, SECTIONS, where=Argument("changes"))
        known = (*KEYS[section], *WORDS[section])
        if key not in known:
            raise UnknownName(f"key in {section}", key, known, where=Argument("changes"))
        text: Any = value.strip()
        if WORDS[section].get(key) == (bool,):
            text = {"true": True, "false": False}.get(text.lower(), text)
        raw.setdefault(section, {})[key] = text
    layer = read_layer(raw, Argument("changes"), "--set")
    return layer if interval is None else _with_interval(layer, interval)


def _with_interval(layer: Layer, interval: str) -> Layer:
    try:
        said = schema.section_values("policy", {"interval": interval})
    except InputError as error:
        error.key = ""
        raise error.at(Argument("interval")) from None
    policy = layer.sections.setdefault("policy", {})
    schema.exclusive_cadence({*policy, *said}, Argument("interval"))
    policy.update({key: value.or_else("user", "") for key, value in said.items()})
    return layer


TIERS = ("tier", "second_tier", "third_tier")
WRITE_RATES = ("write", "node_write", "gpu_write", "write_per_capacity")
_RATES = {
    "save_time": WRITE_RATES,
    "load_time": tuple(rate.replace("write", "read") for rate in WRITE_RATES),
}
"""a measured time overrides the rates; a rate that a later layer gives takes its place"""


def merge_layers(
    layers: Sequence[Layer],
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, str]]]:
    """Values by section, later layers over earlier ones, and the label of the layer each comes
    from."""
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    said_by: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for layer in layers:
        for section, said in layer.sections.items():
            mine, owners = values[section], said_by[section]
            reference = REFERENCES.get(section)
            if reference in said and mine.get(reference) != said[reference]:
                for key in [key for key in mine if owners[key] != "defaults"]:
                    del mine[key], owners[key]
            for key in _overruled(section, said):
                mine.pop(key, None)
            mine |= said
            owners |= dict.fromkeys(said, layer.label)
    return values, said_by


def _overruled(section: str, said: dict[str, Any]) -> list[str]:
    """What earlier layers said otherwise, by keys that say the same thing."""
    if section == "policy" and not _CADENCE_KEYS.isdisjoint(said):
        return [*_CADENCE_KEYS]
    if section == "failures" and "mtbf" in said:
        return [*FAILURE_RATES]
    if section == "failures":
        return [] if said.keys().isdisjoint(FAILURE_RATES) else ["mtbf"]
    if section not in TIERS:
        return []
    return [
        way
        for way, rates in _RATES.items()
        if way not in said and not said.keys().isdisjoint(rates)
    ]
