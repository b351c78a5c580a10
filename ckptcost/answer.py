"""What every question returns: an Answer of words, tables and plots, the same for all formats.

Words stand in the order in which they are read: `says` before the first table, `notes` after the
last. A table is columns and rows of plain cells; numbers are SI inside, and each column (or, for a
`Quantity`, each cell) names the unit in which people read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import per, show, show_range

if TYPE_CHECKING:
    import pandas

SCHEMA = "ckptcost.answer/3"


class Range(NamedTuple):
    """A value with what 5 and 95 of 100 draws stay below; in SI. NaN: not known."""

    value: float
    low: float
    high: float

    def say(self, unit: str, digits: int = 3) -> str:
        """With its ends: "63,400 USD (32,000-230,000)"."""
        said = show(self.value, unit, digits)
        if not self.low < self.high:
            return said
        return f"{said} ({show_range(self.low, self.high, unit, self.value, digits)})"


class Quantity(NamedTuple):
    """A cell of a table whose rows have different units."""

    range: Range
    unit: str

    def scaled(self) -> Range:
        """In its unit."""
        return Range(*(end / per(self.unit) for end in self.range))


Cell = Range | Quantity | float | str | None
"""None: does not apply; NaN in a number: not known"""


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    header: str
    unit: str = "text"
    """"kWh", "s", "share", "count", "text" ...; "" for a column of Quantity cells"""
    screen: str = "value"
    """on the first screen: its "value"; "range": with its ends; "both": its ends in a column
    beside it; "ends": these alone; "bar": a bar beside the value; "no": only in files, which hold
    all of it"""


@dataclass
class Table:
    name: str
    title: str
    columns: list[Column]
    rows: list[list[Cell]]
    note: str = ""
    shown: bool = True
    """on the first screen; the others come with --detail and in every file"""

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """Keys and plain values in the columns' units. A range makes three columns, a column of
        quantities a fourth one with their units. None: does not apply; NaN: not known."""
        found: dict[str, list[Any]] = {}
        for at, column in enumerate(self.columns):
            found |= _flat(column, [row[at] for row in self.rows])
        return [*found], [list(row) for row in zip(*found.values(), strict=True)]

    def to_frame(self) -> pandas.DataFrame:
        """As a pandas frame, one column a key; what is not known is missing."""
        import pandas

        keys, rows = self.flat()
        return pandas.DataFrame(rows, columns=keys)


def _flat(column: Column, cells: list[Cell]) -> dict[str, list[Any]]:
    """Most cells are plain floats, and a grid of 100,000 plans has millions of them."""
    key, size = key_of(column), per(column.unit)
    if not column.unit:
        pairs = [(c.scaled(), c.unit) if isinstance(c, Quantity) else (c, None) for c in cells]
        found = _flat(replace(column, unit="text"), [cell for cell, _ in pairs])
        return found | {f"{key}_unit": [unit for _, unit in pairs]}
    return {
        key + end: [x / size if type(x) is float else _plain(x, size) for x in part]
        for end, part in _ends(cells).items()
    }


def _ends(cells: list[Cell]) -> dict[str, Sequence[Any]]:
    """Values, and the ends of ranges if there are any."""
    if not any(isinstance(cell, Range) for cell in cells):
        return {"": cells}
    parts = zip(*(c if isinstance(c, Range) else (c, None, None) for c in cells), strict=True)
    return dict(zip(("", "_low", "_high"), parts, strict=True))


def _plain(cell: Any, size: float) -> Any:
    return cell if cell is None or isinstance(cell, (str, bool)) else float(cell) / size


def key_of(column: Column) -> str:
    """With the unit of its values: "energy_kwh"."""
    if column.unit in ("", "text", "count", "share"):
        return column.key
    unit = column.unit.lower().replace("-", "_").replace("/", "_per_")
    return f"{column.key}_{unit}"


@dataclass(frozen=True, slots=True)
class Say:
    """A paragraph, with a label in front of it and a line to type behind it."""

    words: str
    label: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Caution:
    code: str
    words: str
    cases: tuple[str, ...]
    blocks: bool = False
    """the plan does not work as it stands: an advice may not contain it"""


@dataclass(frozen=True, slots=True)
class Line:
    """A curve of a plot."""

    name: str
    x: list[float]
    y: list[float]


@dataclass(frozen=True, slots=True)
class Plot:
    """The drawing that carries the decision, for the page."""

    title: str
    x: str
    """label of the axis; with "[s]" (or another unit of SI quantities) behind it, values are in SI
    and the ticks name the unit that people read: "training time between saves [s]" """
    y: str
    lines: list[Line]
    marks: tuple[tuple[str, float, float], ...] = ()
    """points with a name, such as "best" and "you" """
    log_x: bool = False


@dataclass
class Answer:
    question: str
    title: str
    """what the page is"""
    about: str
    """what was asked about, in one line"""
    says: list[Say]
    """the answer"""
    tables: list[Table]
    notes: list[Say] = field(default_factory=list)
    """how sure that is, and what to type next"""
    cautions: list[Caution] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """targets that are not met: exit code 3"""
    cases: dict[str, Scenario] = field(default_factory=dict)
    """every figure that went in, by case"""
    options: dict[str, Any] = field(default_factory=dict)
    """how it was asked, besides the cases: what asks the same again"""
    draws: int = 0
    command: str = ""

    def table(self, name: str) -> Table:
        """The table of that name; KeyError names those there are."""
        found = {table.name: table for table in self.tables}
        if name not in found:
            raise KeyError(f"no table {name!r}: there are {', '.join(found)}")
        return found[name]

    def to_json(self) -> str:
        """The whole answer as a document of the schema ckptcost.answer/3."""
        from ckptcost.document import to_json

        return to_json(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from ckptcost.write import html

        return html(self)

    def __str__(self) -> str:
        from ckptcost.write import text

        return text(self)
