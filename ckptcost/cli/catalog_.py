"""`ckptcost catalog`."""

from __future__ import annotations

import argparse
import json
from typing import Any

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
    from ckptcost.errors import UnknownName

    catalog = Catalog()
    kind = options.kind
    if kind is not None:
        kind = kind if kind in KINDS else kind.removesuffix("s")
        if kind not in KINDS:
            raise UnknownName("kind", options.kind, KINDS)
    if kind is None:
        found: Any = (
            {name: len(catalog.ids(name)) for name in KINDS}
            if not options.sources
            else catalog.sources
        )
        lines = (
            _sources(found)
            if options.sources
            else [f"{name:<12} {count:>4}" for name, count in found.items()]
        )
    elif kind == "source":
        if options.id and options.id not in catalog.sources:
            raise UnknownName("source", options.id, catalog.sources)
        found = {options.id: catalog.sources[options.id]} if options.id else catalog.sources
        lines = _sources(found)
    elif kind in ("scenario", "claim"):
        found, lines = _documents(catalog, kind, options.id)
    elif options.id is None:
        entries = [catalog.get(kind, name) for name in catalog.ids(kind)]
        found = [{"id": e.id, "name": e.name, "label": e.label} for e in entries]
        from ckptcost.present.table import columns

        lines = columns(["id", "name", "kind"], [[e.id, e.name, e.label] for e in entries], left=3)
    else:
        entity = catalog.get(kind, options.id)
        found = _as_json(entity, catalog, options.sources)
        lines = _entity(entity, catalog, options.sources)
    text = (
        json.dumps(found, indent=1, ensure_ascii=False, default=str) + "\n"
        if options.format == "json"
        else "\n".join(lines) + "\n"
    )
    output.write([text], options.output)
    return 0


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


def _documents(catalog: Any, kind: str, name: str | None) -> tuple[Any, list[str]]:
    """Kinds whose entries are shown as the files they are."""
    from ckptcost.catalog.files import text_of, toml_of

    if name is not None:
        file, shown = catalog.file_of(kind, name)
        return toml_of(file, shown), text_of(file, shown).rstrip().splitlines()
    found = [
        {"id": each, "name": toml_of(*catalog.file_of(kind, each)).get("name", "")}
        for each in catalog.ids(kind)
    ]
    from ckptcost.present.table import columns

    return found, columns(["id", "name"], [[entry["id"], entry["name"]] for entry in found], left=2)
