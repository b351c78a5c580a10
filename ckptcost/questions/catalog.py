"""What ships: models, tiers, clusters, sites, accelerators, grids and sources, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from textwrap import shorten
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.errors import InputError
from ckptcost.questions.common import Flag, without_empty
from ckptcost.scenario import catalog as shelf
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.units import number, per
from ckptcost.study import said_of

WIDE = 80
UNKNOWN = "-"
Said = dict[str, Any]
"""figures and words by key"""


class Item(NamedTuple):
    """One entry of the catalogue."""

    id: str
    name: str
    source: str
    said: Said


class Kind(NamedTuple):
    """What entries of a kind are called, and what is said of each in a line."""

    plural: str
    cells: Mapping[str, Callable[[Said], str]] = MappingProxyType({})
    """by header"""
    use: str = ""
    """how an entry is given to a question, its id behind it"""
    section: str = ""
    """of a job, if its keys are not those of the section called like the kind"""
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
    if not words:
        return overview()
    asked = [word.lower() for word in words]
    kinds = [BY_NAME[word] for word in asked if word in BY_NAME]
    found = matches(kinds or [*KINDS], [word for word in asked if word not in BY_NAME])
    if not found:
        raise unknown_word(words)
    ((kind, items), *more) = found.items()
    return listing(found, " ".join(words)) if more or items[1:] else details(kind, items[0])


def matches(kinds: Sequence[str], sought: Sequence[str]) -> dict[str, list[Item]]:
    """Entries with all of the words in id, name or source; that alone whose id was written."""
    found, named = dict[str, list[Item]](), dict[str, list[Item]]()
    for kind in kinds:
        for item in items_of(kind):
            if all(word in f"{item.id} {item.name} {item.source}".lower() for word in sought):
                found.setdefault(kind, []).append(item)
            if [item.id.lower()] == sought:
                named[kind] = [item]
    return named if len(named) == 1 else found


def unknown_word(words: Sequence[str]) -> InputError:
    """Nothing matches; the nearest ids are offered."""
    known = [item.id for kind in KINDS for item in items_of(kind)]
    near = get_close_matches(words[-1], known, 4) or KINDS
    problem = f"nothing matches {' '.join(words)[:60]!r}"
    return InputError(problem, "catalog", f"try {', '.join(near)}")


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
    table = Table("kinds", "", columns, rows)
    return Answer("catalog", "What is in the catalogue", "", says, [table], [own])


def listing(found: dict[str, list[Item]], words: str) -> Answer:
    """A table a kind, a line an entry."""
    counts = ", ".join(
        f"{len(items)} {KINDS[kind].plural if len(items) > 1 else kind}"
        for kind, items in found.items()
    )
    tables = [list_table(kind, items) for kind, items in found.items()]
    kind, (first, *_) = next(iter(found.items()))
    command = f"ckptcost catalog {kind} {first.id}"  # an id may be that of several kinds
    notes = [Say("One entry with its figures and sources:", "", command)]
    return Answer("catalog", f"Catalogue: {words}", counts, [], tables, notes)


def list_table(kind: str, items: list[Item]) -> Table:
    """Names are shortened to what the other columns leave of the line, if that is enough to read;
    files have them whole."""
    cells, is_source = KINDS[kind].cells, kind == "source"
    columns = [Column("id", kind), *(Column(header.replace(" ", "_"), header) for header in cells)]
    columns.append(Column("source", "source", screen="no" if is_source else "value"))
    columns.append(Column("name", "name", screen="no"))
    rows: list[list[Cell]] = []
    for each in items:
        rows.append(
            [each.id, *(read(each.said) for read in cells.values()), each.source, each.name]
        )
    room = _room(columns, rows)
    if room >= ROOM:
        columns.insert(1, Column("short", "name"))
        for row in rows:
            row.insert(1, shorten(str(row[-1]), room, placeholder="..."))
    return Table(f"{kind}s", "", columns, rows, KINDS[kind].note)


ROOM = 12
"""letters below which a name says nothing"""


def _room(columns: list[Column], rows: list[list[Cell]]) -> int:
    """Letters that the columns leave of a line."""
    taken = 0
    for at, column in enumerate(columns):
        if column.screen != "no":
            taken += 2 + max(len(column.header), *(len(str(row[at])) for row in rows))
    return WIDE - taken


def details(kind: str, item: Item) -> Answer:
    """The figures of one entry with their ranges, and where they are from."""
    keys = ("value", "range", "basis", "source")
    columns = [Column("key", "figure"), *(Column(key, key) for key in keys)]
    columns.append(Column("note", "note", screen="no"))
    notes = [Say("Use it:", "", KINDS[kind].use + item.id)] if KINDS[kind].use else []
    if item.source in sources():
        notes.append(Say("A source in full:", "", f"ckptcost catalog {item.source}"))
    table = without_empty(Table("figures", "", columns, figures_of(kind, item)))
    return Answer("catalog", item.name, f"{kind} {item.id}", [], [table], notes)


HEAD = ("id", "name", "title")
"""said above the table"""


def figures_of(kind: str, item: Item) -> list[list[Cell]]:
    """Figures and words of an entry."""
    rows: list[list[Cell]] = []
    for key, said in item.said.items():
        if isinstance(said, Figure):
            value, ends = said_of(f"{KINDS[kind].section or kind}.{key}", said)
            rows.append([key, value, ends or None, said.basis, said.source, said.note])
        elif key not in HEAD and not isinstance(said, (dict, list)) and str(said):
            rows.append([key, str(said), None, None, None, None])
    return rows


# --- entries --------------------------------------------------------------------------------------


@cache
def sources() -> dict[str, Said]:
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
        return Item(id_, said.get("title", ""), said.get("version", ""), said)
    if kind in ("scenario", "claim"):
        said = shelf.read_toml(shelf.file_of(kind, id_))
        return Item(id_, said.get("name", id_), str(said.get("source", "")), said)
    entry = shelf.get(kind, id_)
    cited = [each.source for each in entry.said.values() if isinstance(each, Figure)]
    source = next((each.partition(";")[0] for each in cited if each), "")
    return Item(id_, entry.name, source, entry.said | entry.about)


class Shown(NamedTuple):
    """A figure or word of an entry in a list."""

    key: str
    unit: str = ""
    digits: int = 3

    def of(self, said: Said) -> str:
        """In its unit; of two rates the read rate behind the write rate, if they differ."""
        found, read = (said.get(key) for key in (self.key, self.key.replace("write", "read")))
        if not isinstance(found, Figure):
            return UNKNOWN if found is None else str(found)
        texts = [
            number(each.value / per(self.unit), self.digits)
            for each in (found, read)
            if isinstance(each, Figure)
        ]
        return "/".join(dict.fromkeys(texts))


def _system(said: Said) -> str:
    """The rate of the whole, or for each TiB of its capacity."""
    by_capacity = Shown("write_per_capacity", "GB/s/TiB").of(said)
    return Shown("write", "GB/s").of(said) if by_capacity == UNKNOWN else f"{by_capacity}/TiB"


KINDS = {
    "checkpoint": Kind(
        "models",
        {
            "parameters": lambda said: Shown("params").of(said).replace("G", "B"),
            "size, GB": Shown("size", "GB").of,
        },
        "ckptcost model --set checkpoint.model=",
    ),
    "tier": Kind(
        "tiers",
        {
            "GB/s": _system,
            "a node": Shown("node_write", "GB/s").of,
            "USD/GB": Shown("storage_price", "USD/GB-month").of,
        },
        "ckptcost model --tier ",
        note="GB/s of the whole system (or for each TiB of its capacity) and of one node: write,"
        " and read if it differs. USD for keeping a GB for a month. Names: --detail.",
    ),
    "cluster": Kind(
        "clusters", {"GPUs": Shown("gpus", digits=6).of}, "ckptcost model --set cluster.id="
    ),
    "site": Kind(
        "sites",
        {"PUE": Shown("pue").of, "USD/kWh": Shown("tariff", "USD/kWh").of},
        "ckptcost model --set site.id=",
    ),
    "accelerator": Kind(
        "accelerators",
        {"W": Shown("gpu_tdp", "W").of, "memory": Shown("memory").of},
        "ckptcost model --set cluster.accelerator=",
        "cluster",
    ),
    "grid": Kind(
        "grids",
        {"g/kWh": Shown("grid_location", "g/kWh").of, "year": Shown("year").of},
        section="site",
    ),
    "scenario": Kind("scenarios", use="ckptcost model "),
    "claim": Kind("sheets", use="ckptcost audit "),
    "source": Kind("sources"),
}
"""by the word that lists them"""
BY_NAME = {name: kind for kind, about in KINDS.items() for name in (kind, about.plural)}
