"""The catalogue: get(kind, id) with "did you mean". A user's own folder lies over the shipped
one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ckptcost.first.catalog import files, schema
from ckptcost.first.catalog.figures import Figure, figure_of
from ckptcost.first.catalog.keys import KEYS, unit_of
from ckptcost.first.errors import InputError, UnknownName, brief

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

KINDS: Final = {
    "checkpoint": "checkpoints",
    "tier": "tiers",
    "cluster": "clusters",
    "site": "sites",
    "scenario": "scenarios",
    "claim": "claims",
}
"""kinds with a TOML file each; accelerators, grids and sources are rows of data/"""


_CELLS = ("value", "low", "high", "basis", "source", "note")


class Entity(NamedTuple):
    """One catalogue entry: its figures by key, its words, and what else is known of it."""

    kind: str
    id: str
    name: str
    figures: dict[str, Figure]
    words: dict[str, Any]
    about: dict[str, Any]
    claims: tuple[schema.CheckpointClaim, ...]
    note: str
    label: str
    """what sort of entry: published, vendor-claim, benchmark ..."""
    where: str


SECOND_EDITION = {
    *("clients", "scaling", "known_capacity", "share", "starves", "usual_energy", "usual_exponent"),
    *("burst_write", "burst_size", "delete_rate", "drive_price", "drive_life"),
}
"""keys of the shared catalogue that only the second edition reads"""


class Catalog:
    """Reads each file at most once, when it is asked for."""

    def __init__(
        self, shipped: Traversable | None = None, overlay: Traversable | None = None
    ) -> None:
        self._shipped = shipped if shipped is not None else files.shipped_folder()
        self._overlay = overlay if overlay is not None else files.overlay()
        self._seen: dict[tuple[str, str], Entity] = {}

    def _layers(self, kind: str) -> Iterator[tuple[str, Traversable]]:
        for root, shown in ((self._overlay, str(self._overlay)), (self._shipped, "")):
            folder = root / "models" / KINDS[kind]
            yield (f"{shown}/" if shown else "") + f"models/{KINDS[kind]}", folder

    def ids(self, kind: str) -> list[str]:
        """Every id of a kind, the user's included."""
        if kind == "accelerator":
            return sorted(self._accelerators)
        if kind == "grid":
            return sorted(self._grids)
        if kind == "source":
            return sorted(self.sources)
        return sorted(
            {name for shown, folder in self._layers(kind) for name in files.names_in(folder, shown)}
        )

    def file_of(self, kind: str, name: str) -> tuple[Traversable, str]:
        """The file that holds an entry, the user's before the shipped one, and how to call it in a
        message."""
        if "/" not in name and "\\" not in name and name not in ("", ".", ".."):
            for shown, folder in self._layers(kind):
                if name in files.names_in(folder, shown):
                    return folder / f"{name}.toml", f"{shown}/{name}.toml"
        raise UnknownName(kind.replace("_", " "), name, self.ids(kind))

    def get(self, kind: str, name: str) -> Entity:
        """The entry, validated."""
        kind = "tier" if kind in ("second_tier", "third_tier") else kind
        if (kind, name) not in self._seen:
            if kind == "tier" and ":" in name and name not in self.ids(kind):
                entity = self._tier_of_size(name)
            elif kind == "accelerator":
                entity = self._accelerator(name)
            elif kind == "grid":
                entity = self._grid(name)
            else:
                entity = self._entity(kind, name)
            self._seen[kind, name] = entity
        return self._seen[kind, name]

    def _entity(self, kind: str, name: str) -> Entity:
        file, shown = self.file_of(kind, name)
        raw = files.toml_of(file, shown)
        raw = {key: value for key, value in raw.items() if key not in SECOND_EDITION}
        entry = schema.read_entity(kind, raw, shown)
        if entry.id != name:
            raise InputError(
                f"id is {entry.id!r}, the file is called {name!r}",
                where=shown,
                key="id",
                remedy="make them the same",
            )
        theirs = shown.startswith("models/")
        basis, source = (
            entry.basis or ("" if theirs else "user"),
            entry.source or ("" if theirs else f"user file {name}.toml"),
        )
        figures = {
            key: value.or_else(basis, source)
            for key, value in entry.values.items()
            if isinstance(value, Figure)
        }
        words = {key: value for key, value in entry.values.items() if key not in figures}
        return Entity(
            kind,
            entry.id,
            entry.name,
            figures,
            words,
            entry.about,
            entry.claims,
            entry.note,
            entry.kind,
            shown,
        )

    def _tier_of_size(self, name: str) -> Entity:
        """A tier with the capacity that its name asks for, e.g. aws-fsx-p2-125:200TiB."""
        base, _, said = name.partition(":")
        entity = self.get("tier", base)
        try:
            figure = schema.section_values("tier", {"capacity": said})["capacity"]
        except InputError as error:
            raise InputError(
                f"{brief(said)} after {base}: is no capacity ({error.problem})",
                remedy=f"write e.g. {base}:200TiB",
            ) from None
        return entity._replace(
            id=name,
            name=f"{entity.name}, {said.strip()}",
            figures=entity.figures | {"capacity": figure.or_else("user", "")},
        )

    @cached_property
    def _accelerators(self) -> dict[str, dict[str, str]]:
        return {
            row["id"]: row
            for row in files.csv_of(
                self._shipped / "data" / "accelerators.csv",
                "data/accelerators.csv",
                ("id", "name", "vendor", "kind", "note"),
            )
        }

    @cached_property
    def _accelerator_figures(self) -> dict[str, list[dict[str, str]]]:
        found: dict[str, list[dict[str, str]]] = {}
        for row in files.csv_of(
            self._shipped / "data" / "accelerator_figures.csv",
            "data/accelerator_figures.csv",
            ("id", *_CELLS, "key"),
        ):
            found.setdefault(row["id"], []).append(row)
        return found

    @cached_property
    def _gpu_offers(self) -> dict[str, list[str]]:
        """The dates of the offers that span an accelerator's price, "" where none is given."""
        found: dict[str, list[str]] = {}
        for row in files.csv_of(
            self._shipped / "data" / "gpu_prices.csv",
            "data/gpu_prices.csv",
            ("id", "date", "note"),
        ):
            if "not in the range" not in row["note"]:
                found.setdefault(row["id"], []).append(row["date"])
        return found

    def _dated(self, name: str, raw: dict[str, str]) -> dict[str, str]:
        """A GPU's price with the first and last date of its offers, and how many have none."""
        offers = self._gpu_offers.get(name, [])
        known = sorted(filter(None, offers))
        if len(known) < len(offers):
            lacking = f"offers without a date: {len(offers) - len(known)} of {len(offers)}"
            raw = raw | {"note": "; ".join(filter(None, (raw.get("note", ""), lacking)))}
        return raw | {"date": " to ".join(dict.fromkeys((*known[:1], *known[-1:])))}

    def _accelerator(self, name: str) -> Entity:
        if name not in self._accelerators:
            raise UnknownName("accelerator", name, self._accelerators)
        row = self._accelerators[name]
        figures, about = {}, {"vendor": row["vendor"]}
        for cell in self._accelerator_figures.get(name, []):
            key = {"tdp": "gpu_tdp"}.get(cell["key"], cell["key"])
            raw = {part: cell[part] for part in _CELLS if cell[part]}
            if key == "gpu_price" and cell["basis"] != "assumed":
                raw = self._dated(name, raw)
            if key in KEYS["cluster"]:
                try:
                    figures[key] = figure_of(raw, unit_of("cluster", key))
                except InputError as error:
                    raise error.at(
                        "data/accelerator_figures.csv", f"{name}.{cell['key']}"
                    ) from None
            else:
                about[cell["key"]] = cell["value"]
        return Entity(
            "accelerator",
            name,
            row["name"],
            figures,
            {},
            about,
            (),
            row.get("note", ""),
            row.get("kind", ""),
            "data/accelerators.csv",
        )

    @cached_property
    def _grids(self) -> dict[str, dict[str, str]]:
        return {
            row["id"]: row
            for row in files.csv_of(
                self._shipped / "data" / "grids.csv",
                "data/grids.csv",
                ("id", "name", "scope", "method", "gco2e_per_kwh", "year", "basis", "source"),
            )
        }

    def _grid(self, name: str) -> Entity:
        if name not in self._grids:
            raise UnknownName("grid", name, self._grids)
        row = self._grids[name]
        raw = {
            "value": row["gco2e_per_kwh"] + " g/kWh",
            "basis": row["basis"],
            "source": row["source"],
            "note": f"{row['scope']}, {row['method']}, {row['year']}".rstrip(", "),
        }
        figure = figure_of(raw, "kgco2e_per_j")
        about = {key: row[key] for key in ("scope", "method", "year", "licence") if row.get(key)}
        return Entity(
            "grid",
            name,
            row["name"],
            {"grid_location": figure},
            {"grid_method": row["method"]},
            about,
            (),
            row.get("note", ""),
            row["basis"],
            "data/grids.csv",
        )

    @cached_property
    def sources(self) -> dict[str, dict[str, Any]]:
        """The bibliography."""
        return files.toml_of(self._shipped / "data" / "sources.toml", "data/sources.toml")

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """What is assumed of every job until somebody says better: as this edition always had it,
        whatever models/defaults.toml says to the second one."""
        own = Path(__file__).parents[1] / "defaults.toml"
        return files.toml_of(own, "models/defaults.toml")
