"""The catalogue: entries with sources, one TOML file each; accelerators and grids are rows of CSV.

A user's own folder lies over the shipped one. Each file is read once, when it is asked for.
"""

from __future__ import annotations

import csv
import os
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ckptcost.errors import InputError, unknown_name, visible
from ckptcost.scenario.figures import Figure, figure_of, read_section
from ckptcost.scenario.schema import KEYS

PACKAGE = Path(__file__).resolve().parents[1]
BUNDLED = PACKAGE / "_bundled"
SHIPPED = Path(os.environ.get("CKPTCOST_HOME") or (BUNDLED if BUNDLED.is_dir() else PACKAGE.parent))
"""the folder of models/ and data/: $CKPTCOST_HOME, else the wheel's, else the checkout's"""
_CONFIG = f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/ckptcost"
OWN = Path(os.path.expanduser(os.environ.get("CKPTCOST_USER") or _CONFIG))
"""the user's folder, where calibrated tiers are"""
FOLDERS = {
    "checkpoint": "checkpoints",
    "tier": "tiers",
    "cluster": "clusters",
    "site": "sites",
    "scenario": "scenarios",
    "claim": "claims",
}
ROWS = ("accelerator", "grid")
"""kinds that are rows of a CSV file"""
LARGEST = 1_000_000
"""bytes in a file; nobody describes a job in more"""
_ABOUT = ("id", "name", "kind", "note", "basis", "source", "about", "claim")


@dataclass(frozen=True)
class Entry:
    """One thing of the catalogue, its figures read and checked."""

    kind: str
    id: str
    name: str
    said: dict[str, Any]
    """figures and words of its section"""
    about: dict[str, Any] = field(default_factory=dict)
    claims: tuple[dict[str, Any], ...] = ()
    """what somebody says a save takes there: shown beside the model, never an input to it"""


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file of at most a megabyte."""
    where = visible(str(path))
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or error
        raise InputError(f"cannot be read ({why})", where, "check the path") from None
    if len(raw) > LARGEST:
        raise InputError("is larger than 1 MB", where, "is it the right file?")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        remedy = 'TOML has sections and keys: [cluster], and below it gpus = 512 or pue = "1.1"'
        raise InputError(f"is no TOML: {error}", where, remedy) from None


def text_of(raw: dict[str, Any], key: str, default: str, where: str) -> str:
    """A text of a file's head, such as its name."""
    text = raw.get(key, default)
    if not isinstance(text, str) or not text.isprintable():
        raise InputError(f"{key} must be a text", where, f'write {key} = "..."')
    return text


@cache
def rows(name: str) -> list[dict[str, str]]:
    with (SHIPPED / "data" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def sources() -> dict[str, dict[str, Any]]:
    """By id: who says what the catalogue repeats."""
    with (SHIPPED / "data" / "sources.toml").open("rb") as file:
        return tomllib.load(file)


def source_title(source: str) -> str:
    """The title of the first of some sources; what has none is named as it is."""
    first = source.partition(";")[0].strip()
    return str(sources().get(first, {}).get("title", first)).partition(": ")[0]


def ids(kind: str) -> list[str]:
    """What there is of a kind, a user's own included."""
    if kind in ROWS:
        return [row["id"] for row in rows(f"{kind}s.csv")]
    folders = (root / "models" / FOLDERS[kind] for root in (OWN, SHIPPED))
    return sorted({file.stem for folder in folders for file in folder.glob("*.toml")})


def file_of(kind: str, name: str) -> Path:
    """The file of an entry: the user's own, or the shipped one."""
    plain = name.isprintable() and Path(name).name == name
    for root in (OWN, SHIPPED) if plain else ():
        path = root / "models" / FOLDERS[kind] / f"{name}.toml"
        if path.is_file():
            return path
    raise unknown_name(kind, name, ids(kind))


@cache
def get(kind: str, name: str) -> Entry:
    """An entry by its id. A tier that is sold by its size may have it behind a colon."""
    if kind in ROWS:
        row = next((row for row in rows(f"{kind}s.csv") if row["id"] == name), None)
        if row is None:
            raise unknown_name(kind, name, ids(kind))
        return _grid(name, row) if kind == "grid" else _accelerator(name, row)
    base, colon, size = name.partition(":")
    return _of_size(base, size) if kind == "tier" and colon else _from_file(kind, name)


def _of_size(base: str, size: str) -> Entry:
    """A tier such as aws-fsx-p2-125:200TiB."""
    entry, name = get("tier", base), f"{base}:{size}"
    try:
        capacity = figure_of(size, "tier", "capacity").or_else("user", "", name)
    except InputError as error:
        raise error.at(name) from None
    said = entry.said | {"capacity": capacity}
    return replace(entry, id=name, name=f"{entry.name}, {size}", said=said)


def _from_file(kind: str, name: str) -> Entry:
    path = file_of(kind, name)
    raw = read_toml(path)
    known = (*KEYS[kind], *_ABOUT)
    for key in raw.keys() - set(known):
        raise unknown_name("key", key, known, path.name)
    own = {key: value for key, value in raw.items() if key not in _ABOUT}
    basis = text_of(raw, "basis", "user", path.name)
    source = text_of(raw, "source", f"{name}.toml", path.name)
    figures = read_section(kind, own, path.name)
    said = {k: with_source(v, basis, source, f"{kind} {name}") for k, v in figures.items()}
    title, claims = text_of(raw, "name", name, path.name), tuple(raw.get("claim", ()))
    for claim in claims:
        for needed in ("what", "value", "size"):
            if not isinstance(claim, dict) or not isinstance(claim.get(needed), str):
                remedy = 'write what = "energy", value = "3 kWh", size = "2 TB" below [[claim]]'
                raise InputError(f"a claim has no {needed}", path.name, remedy)
    return Entry(kind, name, title, said, raw.get("about", {}), claims)


def with_source(value: Any, basis: str, source: str, origin: str) -> Any:
    return value.or_else(basis, source, origin) if isinstance(value, Figure) else value


def _grid(name: str, row: dict[str, str]) -> Entry:
    note = f"{row['scope']}, {row['method']}, {row['year']}".rstrip(", ")
    cells = row | {"value": f"{row['gco2e_per_kwh']} g/kWh", "note": note}
    figure = _figure_of_cells(cells, "site", "grid_location", f"grid {name}")
    said = {"grid_location": figure, "grid_method": row["method"]}
    return Entry("grid", name, row["name"], said, row)


def _accelerator(name: str, row: dict[str, str]) -> Entry:
    said, about = {}, {"vendor": row["vendor"]}
    for cells in rows("accelerator_figures.csv"):
        key = "gpu_tdp" if cells["key"] == "tdp" else cells["key"]
        if cells["id"] == name and key in KEYS["cluster"]:
            said[key] = _figure_of_cells(cells, "cluster", key, f"accelerator {name}")
        elif cells["id"] == name:
            about[key] = cells["value"]
    return Entry("accelerator", name, row["name"], said, about)


def _figure_of_cells(cells: dict[str, str], section: str, key: str, origin: str) -> Figure:
    parts = ("value", "low", "high", "basis", "source", "note")
    raw = {part: cells[part] for part in parts if cells.get(part)}
    return figure_of(raw, section, key).or_else("", "", origin)
