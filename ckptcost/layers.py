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

from ckptcost.catalog import files, schema
from ckptcost.catalog.figures import Figure
from ckptcost.catalog.keys import CADENCES, FAILURE_RATES, KEYS, REFERENCES, SECTIONS, WORDS
from ckptcost.catalog.store import Catalog
from ckptcost.errors import Argument, InputError, UnknownName, brief

DEFAULT_SCENARIO = "gpt4-scale-2tb"
_DEEPEST = 20


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
        return not {*CADENCES, "optimal"}.isdisjoint(self.sections.get("policy", {}))


def read_layer(
    catalog: Catalog,
    raw: dict[str, Any],
    where: str,
    label: str = "",
    basis: str = "user",
    source: str = "",
) -> Layer:
    """A validated document as a layer."""
    return _layer(raw, where, label, basis, source)


def _layer(raw: dict[str, Any], where: str, label: str, basis: str, source: str) -> Layer:
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
    return _layer(raw, where, label, basis, source), extends if isinstance(extends, str) else ""


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
        is_file = wanted.endswith(".toml") or "/" in wanted
        if is_file:
            path = here / wanted
            file, shown, identity = path, str(path), str(path.resolve())
        else:
            file, shown = catalog.file_of("scenario", wanted)  # type: ignore[assignment]
            identity = "preset " + wanted
        if identity in chain:
            circle = " -> ".join(Path(link).name for link in [*chain, identity])
            raise InputError(
                f"extends itself: {circle[:200]}",
                where=shown,
                key="extends",
                remedy="break the circle",
            )
        if len(chain) >= _DEEPEST:
            raise InputError(
                f"extends more than {_DEEPEST} others in a row",
                where=shown,
                key="extends",
                remedy="join some of them",
            )
        chain.append(identity)
        text = files.text_of(
            file, shown, start="`ckptcost init` writes a commented scenario to start from"
        )
        owner = ("user", "") if is_file else ("assumed", "house")
        layer, wanted = _written(
            text, shown, f"file {path.name}" if is_file else f"scenario {wanted}", *owner
        )
        layers.append(layer._replace(file=str(path) if is_file else ""))
        here = path.parent if is_file else Path()
    return layers[::-1]


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
    return (
        [*layers, set_layer(catalog, settings, interval)]
        if settings or interval is not None
        else layers
    )


def files_of(layers: Iterable[Layer]) -> list[tuple[str, bytes]]:
    """The user's own files among the layers, for a report's list of inputs."""
    return [(layer.file, Path(layer.file).read_bytes()) for layer in layers if layer.file]


def set_layer(catalog: Catalog, settings: Iterable[str], interval: str | None = None) -> Layer:
    """`--set path=value` flags and `--interval` as a layer; values are text with units, numbers,
    true/false or words."""
    raw: dict[str, Any] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        section, dot, key = path.strip().partition(".")
        if not equals or not dot or not key:
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
    layer = read_layer(catalog, raw, Argument("changes"), "--set")
    if interval is None:
        return layer
    try:
        said = schema.section_values("policy", {"interval": interval})
    except InputError as error:
        error.key = ""
        raise error.at(Argument("interval")) from None
    policy = layer.sections.setdefault("policy", {})
    schema.exclusive_cadence({*policy, *said}, Argument("interval"))
    policy.update({key: value.or_else("user", "") for key, value in said.items()})
    return layer


_TIERS = ("tier", "second_tier", "third_tier")
_RATES = {
    "save_time": {"write", "node_write", "gpu_write", "write_per_capacity"},
    "load_time": {"read", "node_read", "gpu_read", "read_per_capacity"},
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
            reference = REFERENCES.get(section)
            if reference in said and values[section].get(reference) != said[reference]:
                dropped = [key for key in values[section] if said_by[section][key] != "defaults"]
                for key in dropped:
                    del values[section][key], said_by[section][key]
            if section == "policy" and layer.has_cadence:
                for cadence in (*CADENCES, "optimal"):
                    values[section].pop(cadence, None)
            if section == "failures":
                overruled = FAILURE_RATES if "mtbf" in said else ("mtbf",)
                for key in (
                    overruled if not said.keys().isdisjoint((*FAILURE_RATES, "mtbf")) else ()
                ):
                    values[section].pop(key, None)
            for way, rates in _RATES.items() if section in _TIERS else ():
                if way not in said and not rates.isdisjoint(said):
                    values[section].pop(way, None)
            for key, value in said.items():
                values[section][key] = value
                said_by[section][key] = layer.label
    return values, said_by
