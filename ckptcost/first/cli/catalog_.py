"""`ckptcost catalog`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog

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
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.cli import output

    found, lines = _listing(Catalog(), _kind_of(options.kind), options.id, options.sources)
    if options.format == "json":
        text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
    else:
        text = "\n".join(lines)
    output.write([text + "\n"], options.output)
    return 0


def _kind_of(said: str | None) -> str | None:
    """A kind by its name, or by its plural."""
    from ckptcost.first.errors import UnknownName

    if said is None or said in KINDS:
        return said
    if (kind := said.removesuffix("s")) not in KINDS:
        raise UnknownName("kind", said, KINDS)
    return kind


def _listing(
    catalog: Catalog, kind: str | None, name: str | None, sources: bool
) -> tuple[Any, list[str]]:
    """What there is of a kind, for machines and as lines."""
    if kind == "source" or (kind is None and sources):
        shown = _sources_named(catalog, name)
        return shown, _sources(shown)
    if kind is None:
        counts = {each: len(catalog.ids(each)) for each in KINDS}
        return counts, [f"{each:<12} {count:>4}" for each, count in counts.items()]
    if kind in ("scenario", "claim"):
        return _documents(catalog, kind, name)
    if name is None:
        return _entries(catalog, kind)
    entity = catalog.get(kind, name)
    return _as_json(entity, catalog, sources), _entity(entity, catalog, sources)


def _entries(catalog: Catalog, kind: str) -> tuple[Any, list[str]]:
    from ckptcost.first.present.table import columns

    entries = [catalog.get(kind, each) for each in catalog.ids(kind)]
    found = [{"id": e.id, "name": e.name, "label": e.label} for e in entries]
    rows = [[*row.values()] for row in found]
    return found, columns(["id", "name", "kind"], rows, left=3)


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
        found["sources"] = {name: catalog.sources.get(name, {}) for name in _citations(entity)}
    return found


def _citations(entity: Any) -> list[str]:
    """Each source once, in the order of the figures."""
    ids = (name for f in entity.figures.values() for name in _ids(f.source))
    return list(dict.fromkeys(ids))


def _entity(entity: Any, catalog: Any, sources: bool) -> list[str]:
    lines = [
        f"{entity.name}  ({entity.kind} {entity.id}{', ' + entity.label if entity.label else ''})",
        *([entity.note] if entity.note else []),
        f"file: {entity.where}",
        "",
    ]
    lines += _figures(entity)
    lines += [f"{key} = {value}" for key, value in entity.words.items()]
    lines += [f"  {key}: {f.remark}" for key, f in entity.figures.items() if f.remark]
    lines += map(_claim, entity.claims)
    if entity.about:
        lines += ["", "also known", *(f"  {key}: {value}" for key, value in entity.about.items())]
    if sources:
        known = catalog.sources
        lines += [
            "",
            *_sources({name: known[name] for name in _citations(entity) if name in known}),
        ]
    return lines


def _figures(entity: Any) -> list[str]:
    from ckptcost.first.catalog.keys import unit_of
    from ckptcost.first.present.amounts import quantities
    from ckptcost.first.present.table import columns

    section = {"accelerator": "cluster", "grid": "site"}.get(entity.kind, entity.kind)
    rows = []
    for key, f in entity.figures.items():
        ends = quantities(f.low, f.high, unit_of(section, key))
        rows.append([key, f.text, ends, f.basis, ", ".join(_ids(f.source))])
    titles = ["figure", "value", "range", "basis", "source"]
    return columns(titles, rows, left=5) if rows else []


def _claim(c: Any) -> str:
    ends = f" ({c.low} to {c.high})" if c.low else ""
    return f"claim: {c.what} {c.value} for {c.size}{ends}, {c.source}; {c.note}"


def _sources_named(catalog: Catalog, name: str | None) -> dict[str, dict[str, Any]]:
    """All of them, or the one of that name."""
    from ckptcost.first.errors import UnknownName

    known = catalog.sources
    if not name:
        return known
    if name not in known:
        raise UnknownName("source", name, known)
    return {name: known[name]}


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
    from ckptcost.first.catalog.files import text_of, toml_of
    from ckptcost.first.present.table import columns

    if name is not None:
        file, shown = catalog.file_of(kind, name)
        return toml_of(file, shown), text_of(file, shown).rstrip().splitlines()
    found = [
        {"id": each, "name": toml_of(*catalog.file_of(kind, each)).get("name", "")}
        for each in catalog.ids(kind)
    ]
    return found, columns(["id", "name"], [[entry["id"], entry["name"]] for entry in found], left=2)
