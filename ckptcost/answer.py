"""What every question returns: an Answer of words, tables and plots, the same for all formats.

Words stand in the order in which they are read: `says` before the first table, `notes` after the
last. A table is columns and rows of plain cells; numbers are SI inside, and each column (or, for a
`Quantity`, each cell) names the unit in which people read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
        return f"{said} ({show_range(self.low, self.high, unit)})" if self.low < self.high else said


class Quantity(NamedTuple):
    """A cell of a table whose rows have different units."""

    range: Range
    unit: str


Cell = Range | Quantity | float | str | None
"""None: does not apply; NaN in a number: not known"""


class Column(NamedTuple):
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
        """Keys and plain values in the columns' units: a range makes three columns, a column of
        quantities a fourth one with their units."""
        keys: list[str] = []
        columns: list[list[Any]] = []
        for at, column in enumerate(self.columns):
            for key, values in _flat(column, [row[at] for row in self.rows]):
                keys.append(key)
                columns.append(values)
        return keys, [list(row) for row in zip(*columns, strict=True)]

    def entries(self, row: list[Cell], plain: Plain) -> dict[str, Any]:
        """A row as plain values by key."""
        found: dict[str, Any] = {}
        for column, cell in zip(self.columns, row, strict=True):
            found |= entries(column, cell, plain)
        return found

    def to_frame(self) -> pandas.DataFrame:
        """As a pandas frame, one column a key; what is not known is missing."""
        import pandas

        keys, rows = self.flat()
        return pandas.DataFrame(rows, columns=keys)


ENDS = ("", "_low", "_high")
Plain = Callable[[Any, str], Any]
"""from a value and its unit to what stands in a file"""


def _flat(column: Column, cells: list[Cell]) -> list[tuple[str, list[Any]]]:
    """A column as one to four of plain values."""
    if not column.unit:
        found = [entries(column, cell, plain) for cell in cells]
        keys = max(found, key=len, default=entries(column, None, plain))
        return [(key, [each.get(key) for each in found]) for key in keys]
    key = key_of(column)
    if not any(isinstance(cell, Range) for cell in cells):
        return [(key, _plain(cells, column.unit))]
    parts = zip(*(c if isinstance(c, Range) else (c, None, None) for c in cells), strict=True)
    return [
        (key + end, _plain(values, column.unit)) for end, values in zip(ENDS, parts, strict=True)
    ]


def _plain(values: Iterable[Any], unit: str) -> list[Any]:
    """As `plain`, quick enough for a grid of 100,000 plans."""
    size = per(unit)
    return [x / size if type(x) is float and -1e300 < x < 1e300 else plain(x, unit) for x in values]


def entries(column: Column, cell: Cell, plain: Plain) -> dict[str, Any]:
    """A cell as plain values: a range makes three, a quantity one more with its unit."""
    key, unit, named = key_of(column), column.unit, {}
    if isinstance(cell, Quantity):
        named, unit, cell = {f"{key}_unit": cell.unit}, cell.unit, cell.range
    if not isinstance(cell, Range):
        return {key: plain(cell, unit)}
    ends = zip(ENDS, cell, strict=True)
    return {key + end: plain(value, unit) for end, value in ends} | named


def key_of(column: Column) -> str:
    """With the unit of its values: "energy_kwh"."""
    if column.unit in ("", "text", "count", "share"):
        return column.key
    unit = column.unit.lower().replace("-", "_").replace("/", "_per_")
    return f"{column.key}_{unit}"


def plain(cell: Any, unit: str) -> Any:
    """A number in the unit of people, None where it is not known or has no end; else the text."""
    if not isinstance(cell, (int, float)) or isinstance(cell, bool) or unit == "text":
        return cell
    known = cell == cell and abs(cell) != float("inf")
    return float(f"{cell / per(unit):.12g}") if known else None


class Say(NamedTuple):
    """A paragraph, with a label in front of it and a line to type behind it."""

    words: str
    label: str = ""
    command: str = ""


class Caution(NamedTuple):
    code: str
    words: str
    cases: tuple[str, ...]
    blocks: bool = False
    """the plan does not work as it stands: an advice may not contain it"""


class Line(NamedTuple):
    """A curve of a plot."""

    name: str
    x: list[float]
    y: list[float]


class Plot(NamedTuple):
    """The drawing that carries the decision, for the page."""

    title: str
    x: str
    """label of the axis; with "[s]" (or another unit of SI quantities) behind it, values are in SI
    and the ticks name the unit that people read: "training time between saves [s]" """
    y: str
    lines: list[Line]
    marks: tuple[tuple[str, float, float], ...] = ()
    """points with a name, such as "best" and "now" """
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
