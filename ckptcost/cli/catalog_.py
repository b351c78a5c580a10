"""`ckptcost catalog`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcost.catalog.store import Catalog

EPILOG = """\
examples:
  ckptcost catalog                      the kinds and how many of each
  ckptcost catalog tier                 all tiers
  ckptcost catalog tier nas-hdd         one, each figure with range and source
  ckptcost catalog tier nas-hdd --sources
Your own entries: a folder with models/tiers/NAME.toml and so on, named by
$CKPTCOST_USER, else "ckptcost" in the user configuration folder.
"""

KINDS = (
    "checkpoint",
    "tier",
    "cluster",
    "site",
    "scenario",
    "claim",
    "accelerator",
    "grid",
    "source",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", help=", ".join(KINDS))
    parser.add_argument("id", nargs="?", help="one entry")
    parser.add_argument(
        "--sources", action="store_true", help="the bibliography behind what is shown"
    )
    parser.add_argument(
        "-f", "--format", choices=("text", "json"), default="text", help="default: text"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")


def run(options: argparse.Namespace) -> int:
    from ckptcost.catalog.store import Catalog
    from ckptcost.cli import output

    found, lines = _listing(Catalog(), _kind_of(options.kind), options.id, options.sources)
    if options.format == "json":
        text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
    else:
        text = "\n".join(lines)
    output.write([text + "\n"], options.output)
    return 0


def _kind_of(said: str | None) -> str | None:
    """A kind by its name, or by its plural."""
    from ckptcost.errors import UnknownName

    if said is None or said in KINDS:
        return said
    if (kind := said.removesuffix("s")) not in KINDS:
        raise UnknownName("kind", said, KINDS)
    return kind


def _listing(
    catalog: Catalog, kind: str | None, name: str | None, sources: bool
) -> tuple[Any, list[str]]:
    """What there is of a kind, for machines and as lines."""
    from ckptcost.errors import UnknownName
    from ckptcost.present.table import columns

    if kind == "source" and name:
        if name not in catalog.sources:
            raise UnknownName("source", name, catalog.sources)
        return {name: catalog.sources[name]}, _sources({name: catalog.sources[name]})
    if kind == "source" or (kind is None and sources):
        return catalog.sources, _sources(catalog.sources)
    if kind is None:
        counts = {each: len(catalog.ids(each)) for each in KINDS}
        return counts, [f"{each:<12} {count:>4}" for each, count in counts.items()]
    if kind in ("scenario", "claim"):
        return _documents(catalog, kind, name)
    if name is None:
        entries = [catalog.get(kind, each) for each in catalog.ids(kind)]
        rows = [[e.id, e.name, e.label] for e in entries]
        found = [{"id": e.id, "name": e.name, "label": e.label} for e in entries]
        return found, columns(["id", "name", "kind"], rows, left=3)
    entity = catalog.get(kind, name)
    return _as_json(entity, catalog, sources), _entity(entity, catalog, sources)


def _ids(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _as_json(entity: Any, catalog: Any, sources: bool) -> dict[str, Any]:
    figures = {
        key: {
            "text": f.text,
            "value": f.value,
            "low": f.low,
            "high": f.high,
            "basis": f.basis,
            "source": _ids(f.source),
            "note": f.note,
            "date": f.date or None,
        }
        for key, f in entity.figures.items()
    }
    found = {
        "kind": entity.kind,
        "id": entity.id,
        "name": entity.name,
        "label": entity.label,
        "note": entity.note,
        "file": entity.where,
        "figures": figures,
        **entity.words,
        "about": entity.about,
    }
    found["claims"] = [claim._asdict() for claim in entity.claims]
    if sources:
        found["sources"] = {
            name: catalog.sources.get(name, {})
            for f in entity.figures.values()
            for name in _ids(f.source)
        }
    return found


def _entity(entity: Any, catalog: Any, sources: bool) -> list[str]:
    from ckptcost.catalog.keys import unit_of
    from ckptcost.present.amounts import quantities
    from ckptcost.present.table import columns

    lines = [
        f"{entity.name}  ({entity.kind} {entity.id}{', ' + entity.label if entity.label else ''})",
        *([entity.note] if entity.note else []),
        f"file: {entity.where}",
        "",
    ]
    section = {"accelerator": "cluster", "grid": "site"}.get(entity.kind, entity.kind)
    rows = []
    for key, f in entity.figures.items():
        unit = unit_of(section, key)
        rows.append(
            [key, f.text, quantities(f.low, f.high, unit), f.basis, ", ".join(_ids(f.source))]
        )
    if rows:
        lines += columns(["figure", "value", "range", "basis", "source"], rows, left=5)
    lines += [f"{key} = {value}" for key, value in entity.words.items()]
    lines += [f"  {key}: {f.remark}" for key, f in entity.figures.items() if f.remark]
    lines += [
        f"claim: {c.what} {c.value} for {c.size}"
        + (f" ({c.low} to {c.high})" if c.low else "")
        + f", {c.source}; {c.note}"
        for c in entity.claims
    ]
    if entity.about:
        lines += ["", "also known", *(f"  {key}: {value}" for key, value in entity.about.items())]
    if sources:
        names = dict.fromkeys(name for f in entity.figures.values() for name in _ids(f.source))
        lines += [
            "",
            *_sources({name: catalog.sources[name] for name in names if name in catalog.sources}),
        ]
    return lines


def _sources(found: dict[str, dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for name, entry in found.items():
        about = ", ".join(
            str(entry[key]) for key in ("publisher", "version", "licence") if key in entry
        )
        lines += [
            f"{name}: {entry['title']}" + (f" ({about})" if about else ""),
            *([f"    {entry['url']}"] if "url" in entry else []),
            *([f"    no address: {entry['no_url']}"] if "no_url" in entry else []),
        ]
    return lines


def _documents(catalog: Catalog, kind: str, name: str | None) -> tuple[Any, list[str]]:
    """Kinds whose entries are shown as the files they are."""
    from ckptcost.catalog.files import text_of, toml_of
    from ckptcost.present.table import columns

    if name is not None:
        file, shown = catalog.file_of(kind, name)
        return toml_of(file, shown), text_of(file, shown).rstrip().splitlines()
    found = [
        {"id": each, "name": toml_of(*catalog.file_of(kind, each)).get("name", "")}
        for each in catalog.ids(kind)
    ]
    return found, columns(["id", "name"], [[entry["id"], entry["name"]] for entry in found], left=2)
