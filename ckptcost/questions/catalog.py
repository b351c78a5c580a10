"""What ships: models, tiers, clusters, sites, accelerators, grids and sources, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from textwrap import shorten
from typing import Annotated, Any, NamedTuple

from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.errors import InputError
from ckptcost.questions.common import Flag
from ckptcost.scenario import catalog as shelf
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.units import number, per, show, show_range
from ckptcost.study import unit_of

WIDE = 80
UNKNOWN = "-"


class Item(NamedTuple):
    """One line of the catalogue."""

    id: str
    name: str
    cells: tuple[Cell, ...]
    source: str


class Kind(NamedTuple):
    """What entries of a kind are called, and what is said of each in a line."""

    plural: str
    columns: tuple[Column, ...]
    cells: Callable[[shelf.Entry], tuple[Cell, ...]]
    with_name: bool = True
    """its name fits into the line"""
    note: str = ""


def catalog(
    *words: Annotated[
        str, Flag("what to look for: a kind, or part of an id or name", "WORD", True)
    ],
) -> Answer:
    """Search models, tiers, clusters, sites, accelerators, grids and sources.

    ckptcost catalog
    ckptcost catalog lustre
    ckptcost catalog tier aws
    ckptcost catalog nas-hdd
    """
    kinds, sought = split([word.lower() for word in words])
    if not sought and not kinds:
        return overview()
    found = {kind: items for kind in kinds or KINDS if (items := matches(kind, sought))}
    one = exact(found, sought)
    if one:
        return details(*one)
    if not found:
        raise InputError(f"nothing matches {' '.join(words)[:60]!r}", "catalog", _remedy(sought))
    return listing(found, " ".join(words))


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Kinds, by either of their names, and the words that are looked for."""
    by_name = {name: kind for kind, about in KINDS.items() for name in (kind, about.plural)}
    kinds = [by_name[word] for word in words if word in by_name]
    return list(dict.fromkeys(kinds)), [word for word in words if word not in by_name]


def _remedy(sought: Sequence[str]) -> str:
    from difflib import get_close_matches

    known = [item.id for kind in KINDS for item in items_of(kind)]
    near = get_close_matches(sought[-1] if sought else "", known, 4)
    return f"try {', '.join(near)}" if near else "kinds: " + ", ".join(KINDS)


def matches(kind: str, sought: Sequence[str]) -> list[Item]:
    """Entries with all of the words in id, name or source."""
    return [
        item
        for item in items_of(kind)
        if all(word in f"{item.id} {item.name} {item.source}".lower() for word in sought)
    ]


def exact(found: dict[str, list[Item]], sought: Sequence[str]) -> tuple[str, Item] | None:
    """The entry that is meant: the only one, or the one whose id was written."""
    every = [(kind, item) for kind, items in found.items() for item in items]
    named = [each for each in every if [each[1].id.lower()] == list(sought)]
    return named[0] if len(named) == 1 else every[0] if len(every) == 1 else None


# --- answers --------------------------------------------------------------------------------------


def overview() -> Answer:
    """How many there are of each kind."""
    columns = [
        Column("kind", "kind"),
        Column("count", "entries", "count"),
        Column("command", "list them with"),
    ]
    rows: list[list[Cell]] = [
        [kind.plural, float(len(ids_of(name))), f"ckptcost catalog {name}"]
        for name, kind in KINDS.items()
    ]
    says = [Say("Search all of them by a part of the id or name:", "", "ckptcost catalog lustre")]
    own = Say(f"Your own entries: a folder models/tiers and so on in {shelf.OWN}")
    return Answer(
        "catalog", "What is in the catalogue", "", says, [Table("kinds", "", columns, rows)], [own]
    )


def listing(found: dict[str, list[Item]], words: str) -> Answer:
    """A table a kind, a line an entry."""
    counts = ", ".join(
        f"{len(items)} {KINDS[kind].plural if len(items) > 1 else kind}"
        for kind, items in found.items()
    )
    tables = [list_table(kind, items) for kind, items in found.items()]
    first = next(iter(found.values()))[0].id
    notes = [Say("One entry with its figures and sources:", "", f"ckptcost catalog {first}")]
    return Answer("catalog", f"Catalogue: {words}", f"{counts}", [], tables, notes)


def list_table(kind: str, items: list[Item]) -> Table:
    """Names are shortened to what the line has room for; files have them whole."""
    about = KINDS[kind]
    columns = [
        Column("id", kind),
        Column("short", "name", screen="value" if about.with_name else "no"),
        *about.columns,
        Column("source", "source", screen="no" if kind == "source" else "value"),
        Column("name", "name", screen="no"),
    ]
    rows: list[list[Cell]] = [
        [item.id, item.name, *item.cells, item.source, item.name] for item in items
    ]
    if about.with_name:
        _shorten_names(columns, rows)
    return Table(f"{kind}s", "", columns, rows, about.note)


def _shorten_names(columns: list[Column], rows: list[list[Cell]]) -> None:
    """To what the other columns leave of the line."""
    shown = [i for i, column in enumerate(columns) if column.screen != "no" and i != 1]
    cells = ((columns[i].header, *(row[i] for row in rows)) for i in shown)
    taken = sum(max(len(str(cell)) for cell in column) for column in cells)
    room = max(WIDE - taken - 2 * len(shown), 12)
    for row in rows:
        row[1] = shorten(str(row[1]), room, placeholder="...")


def details(kind: str, item: Item) -> Answer:
    """The figures of one entry with their ranges, and where they are from."""
    rows = FIGURES.get(kind, figures_of)(kind, item)
    columns = [
        Column("key", "figure"),
        Column("value", "value"),
        Column("range", "range"),
        Column("basis", "basis"),
        Column("source", "source"),
        Column("note", "note", screen="no"),
    ]
    notes = [Say("Use it:", "", use)] if (use := _use(kind, item)) else []
    says = []
    if kind == "source":
        said = sources()[item.id]
        says = [Say("", "", said.get("url", said.get("no_url", "")))]
    elif item.source in sources():
        notes.append(Say("A source in full:", "", f"ckptcost catalog {item.source}"))
    tables = [Table("figures", "", columns, rows), cited(item, rows)]
    return Answer("catalog", item.name, f"{kind} {item.id}", says, tables, notes)


def cited(item: Item, rows: list[list[Cell]]) -> Table:
    """The sources that an entry's figures name."""
    said = "; ".join([item.source, *(str(row[4]) for row in rows)])
    names = sorted({name.strip() for name in said.split(";")} & sources().keys())
    keys = ("title", "publisher", "url", "no_url", "version")
    found: list[list[Cell]] = [
        [name, *(sources()[name].get(k, "") for k in keys)] for name in names
    ]
    columns = [Column(key, key) for key in ("source", *keys)]
    return Table("sources", "Sources", columns, found, shown=False)


def _use(kind: str, item: Item) -> str:
    """How an entry is given to a question."""
    flags = {"tier": "--tier", "cluster": "--set cluster.id=", "site": "--set site.id="}
    flags |= {"checkpoint": "--set checkpoint.model=", "accelerator": "--set cluster.accelerator="}
    if kind in flags:
        space = "" if flags[kind].endswith("=") else " "
        return f"ckptcost model {flags[kind]}{space}{item.id}"
    verb = {"scenario": "model", "claim": "audit"}.get(kind)
    return f"ckptcost {verb} {item.id}" if verb else ""


def figures_of(kind: str, item: Item) -> list[list[Cell]]:
    """Figures and words of an entry."""
    entry = shelf.get(kind, item.id)
    section = {"accelerator": "cluster", "grid": "site"}.get(kind, kind)
    rows: list[list[Cell]] = []
    for key, said in entry.said.items():
        if isinstance(said, Figure):
            unit = unit_of(f"{section}.{key}")
            ends = show_range(said.low, said.high, unit) if said.ranged else ""
            value = said.text or show(said.value, unit)
            rows.append([key, value, ends, said.basis, said.source, said.note])
        elif key not in ("id", "name"):
            rows.append([key, str(said), "", "", "", ""])
    rows += [[key, str(said), "", "", "", ""] for key, said in entry.about.items() if str(said)]
    return rows


def _head(kind: str, item: Item) -> list[list[Cell]]:
    """Of a document: its first words."""
    raw = shelf.read_toml(shelf.file_of(kind, item.id))
    return [
        [key, str(raw[key]), "", "", "", ""] for key in ("name", "note", "source") if key in raw
    ]


def _source(kind: str, item: Item) -> list[list[Cell]]:
    said = sources()[item.id]
    return [[key, str(said[key]), "", "", "", ""] for key in said if key not in ("title", "url")]


FIGURES = {"scenario": _head, "claim": _head, "source": _source}


# --- entries --------------------------------------------------------------------------------------


@cache
def sources() -> dict[str, dict[str, Any]]:
    """The bibliography."""
    return shelf.read_toml(shelf.SHIPPED / "data" / "sources.toml")


def ids_of(kind: str) -> list[str]:
    return list(sources()) if kind == "source" else shelf.ids(kind)


@cache
def items_of(kind: str) -> list[Item]:
    """All entries of a kind."""
    return [_item(kind, each) for each in ids_of(kind)]


def _item(kind: str, id_: str) -> Item:
    if kind == "source":
        said = sources()[id_]
        return Item(
            id_, said.get("title", ""), (said.get("publisher", ""),), said.get("version", "")
        )
    if kind in ("scenario", "claim"):
        raw = shelf.read_toml(shelf.file_of(kind, id_))
        return Item(id_, raw.get("name", id_), (), str(raw.get("source", "")))
    entry = shelf.get(kind, id_)
    return Item(id_, entry.name, KINDS[kind].cells(entry), _cited(entry))


def _cited(entry: shelf.Entry) -> str:
    """The source of its first figure."""
    figures = (value for value in entry.said.values() if isinstance(value, Figure))
    return next((f.source.partition(";")[0] for f in figures if f.source), "")


def _value(entry: shelf.Entry, key: str, unit: str) -> str:
    said = entry.said.get(key)
    return number(said.value / per(unit)) if isinstance(said, Figure) else UNKNOWN


def _pair(entry: shelf.Entry, write: str, unit: str = "GB/s") -> str:
    """Write and read rate; one where both are the same or only one is known."""
    both = [_value(entry, key, unit) for key in (write, write.replace("write", "read"))]
    return both[0] if both[1] in (UNKNOWN, both[0]) else "/".join(both)


def _tier_cells(entry: shelf.Entry) -> tuple[Cell, ...]:
    system = _pair(entry, "write")
    if "write_per_capacity" in entry.said:
        system = f"{_pair(entry, 'write_per_capacity', 'GB/s/TiB')}/TiB"
    return system, _pair(entry, "node_write"), _value(entry, "storage_price", "USD/GB-month")


def _accelerator_cells(entry: shelf.Entry) -> tuple[Cell, ...]:
    memory = entry.said.get("memory", entry.about.get("memory", UNKNOWN))
    return _value(entry, "gpu_tdp", "W"), str(getattr(memory, "text", memory))


def _text(name: str, header: str) -> Column:
    return Column(name, header)


KINDS = {
    "checkpoint": Kind(
        "models",
        (_text("params", "parameters"), _text("size", "size, GB")),
        lambda e: (_value(e, "params", "").replace("G", "B"), _value(e, "size", "GB")),
    ),
    "tier": Kind(
        "tiers",
        (
            _text("system", "GB/s"),
            _text("client", "a node"),
            _text("price", "USD/GB"),
        ),
        _tier_cells,
        with_name=False,
        note="GB/s of the whole system (or for each TiB of its capacity) and of one node: write,"
        " and read if it differs. USD for keeping a GB for a month. Names: --detail.",
    ),
    "cluster": Kind(
        "clusters",
        (_text("gpus", "GPUs"),),
        lambda e: (f"{e.said['gpus'].value:,.0f}" if "gpus" in e.said else UNKNOWN,),
    ),
    "site": Kind(
        "sites",
        (_text("pue", "PUE"), _text("tariff", "USD/kWh")),
        lambda e: (_value(e, "pue", ""), _value(e, "tariff", "USD/kWh")),
    ),
    "accelerator": Kind(
        "accelerators", (_text("tdp", "W"), _text("memory", "memory")), _accelerator_cells
    ),
    "grid": Kind(
        "grids",
        (_text("factor", "g/kWh"), _text("year", "year")),
        lambda e: (_value(e, "grid_location", "g/kWh"), str(e.about.get("year", ""))),
    ),
    "scenario": Kind("scenarios", (), lambda e: ()),
    "claim": Kind("sheets", (), lambda e: ()),
    "source": Kind("sources", (Column("publisher", "publisher", screen="no"),), lambda e: ()),
}
"""by the word that lists them"""
