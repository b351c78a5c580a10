"""A study: the answer of a question, as sentences and as tables whose every column has a unit.

One shape for all of them, so that there is one schema, one text view, one Markdown view and one
CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from ckptcost.first.jobs.gates import GateVerdict
from ckptcost.first.present.amounts import (
    DASH,
    between,
    count,
    drawn_between,
    duration,
    durations,
    number,
    rate,
    share,
    size,
)
from ckptcost.first.present.table import on_one_line
from ckptcost.first.scenario import Resolved

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.difference import Difference
    from ckptcost.first.report.statement import Statement

T = TypeVar("T")
ROW_UNIT = "@unit"
"""the unit of a column whose rows each carry their own, in the column `unit`"""
ROW_DIFFERENCE = "@difference"
"""the same for a difference: of shares it is in points"""
NOTE = "@note"
"""the unit of a column of words that text writes below the row"""

UNITS = {
    "": "text",
    "1": "a plain number",
    "count": "things counted",
    "share": "a fraction of 1",
    "s": "seconds",
    "bytes": "bytes",
    "bytes_per_s": "bytes per second",
    "W": "watts",
    "kWh": "kilowatt-hours",
    "GPU-h": "GPU-hours",
    "USD": "dollars",
    "kgCO2e": "kilograms",
    "L": "litres",
    "h": "hours",
    "USD/h": "dollars an hour",
    "J": "joules",
    "GPU-s": "GPU-seconds",
    "bool": "true or false",
    ROW_UNIT: "as the row's `unit` says",
    ROW_DIFFERENCE: "a difference, as the row's `unit` says; of shares a fraction too",
}


class Column(NamedTuple):
    """What one column holds."""

    id: str
    label: str
    unit: str = ""
    meaning: str = ""
    shown: bool = True
    """in text and Markdown; JSON and CSV hold every column"""
    wide: bool = False
    """in Markdown, for which a terminal has no room"""
    range_of: str = ""
    """the column whose low and high, beside it in the row, this one shows"""
    unknown: str = DASH
    """what stands for a value that is not known"""
    of: str | Callable[[Any], Any] = ""
    """what its cells are of the things that the rows are made of: an attribute, or what a function
    makes of it; without either the attribute that is called like the column"""

    def cell_of(self, thing: Any) -> Any:
        """What the row of a thing holds: None where a number is not known, or has no bound."""
        read = attrgetter(self.of or self.id) if isinstance(self.of, str) else self.of
        value = read(thing)
        return plain(value) if isinstance(value, float) else value


def plain(value: float | None) -> float | None:
    """A finite number, or None: documents hold no NaN and no infinity."""
    return value if value is not None and isfinite(value) else None


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 2]}.."


def named(*names: str) -> tuple[Column, ...]:
    """Columns of words, headed by what they are called."""
    return tuple(Column(name, name) for name in names)


def hidden(*columns: Column | str) -> tuple[Column, ...]:
    """Columns for programs alone."""
    told = (Column(each, each) if isinstance(each, str) else each for each in columns)
    return tuple(each._replace(shown=False) for each in told)


class Later(Sequence[T]):
    """Rows, or sentences, that are made when somebody looks at them, because most views do not.
    What goes to another process goes with them made."""

    def __init__(self, make: Callable[[], list[T]]) -> None:
        self._make: Callable[[], list[T]] | None = make
        self._rows: list[T] = []

    @property
    def made(self) -> list[T]:
        if self._make is not None:
            self._rows, self._make = self._make(), None
        return self._rows

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        return self.made[place]

    def __len__(self) -> int:
        return len(self.made)

    def __iter__(self) -> Iterator[T]:
        return iter(self.made)

    def __eq__(self, other: object) -> bool:
        return self.made == (other.made if isinstance(other, Later) else other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.made,)


class Table(NamedTuple):
    """Rows by column id; None is unknown. Texts stand left of numbers."""

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[dict[str, Any]]
    note: str = ""
    shown: bool = True
    wide: bool = False
    """in Markdown, for which a terminal has no room"""
    folded: bool = False
    """in Markdown under its title, which opens it"""


def rows_of(columns: Iterable[Column], things: Iterable[Any]) -> list[dict[str, Any]]:
    """A row of each thing, as the columns say what they are of it."""
    read = [(column.id, column.cell_of) for column in columns if not column.range_of]
    return [{name: cell_of(thing) for name, cell_of in read} for thing in things]


def table_of(
    name: str,
    title: str,
    columns: Sequence[Column],
    things: Iterable[Any] | Callable[[], Iterable[Any]],
    note: str = "",
    shown: bool = True,
) -> Table:
    """The table of things whose cells the columns know; of what makes the things, rows that are
    made when somebody looks at them."""
    rows: Sequence[dict[str, Any]] = (
        Later(lambda: rows_of(columns, things())) if callable(things) else rows_of(columns, things)
    )
    return Table(name, title, without_of(columns), rows, note, shown)


def without_of(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Columns as tables have them, which may go to another process."""
    return tuple(column._replace(of="") for column in columns)


class Bills:
    """Statements that are made when somebody asks, because most views do not. What goes to another
    process goes with them made."""

    def __init__(
        self, make: Callable[[Catalog], list[Statement]], made: list[Statement] | None = None
    ) -> None:
        self._make, self._made = make, made

    def __call__(self, catalog: Catalog) -> list[Statement]:
        if self._made is None:
            self._made = self._make(catalog)
        return self._made

    def __reduce__(self) -> tuple[Any, ...]:
        from ckptcost.first.catalog.store import Catalog

        return Bills, (_made_elsewhere, self(Catalog()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bills)  # they follow from the study's other parts

    __hash__ = None  # type: ignore[assignment]


def _made_elsewhere(catalog: Catalog) -> list[Statement]:
    raise RuntimeError("made before it was sent")


class Study(NamedTuple):
    """A question and its answer, ready for any view."""

    kind: str
    title: str
    about: list[str]
    """one or two lines of what was asked, in words"""
    question: dict[str, Any]
    """what was asked, for machines"""
    tables: list[Table]
    findings: list[str]
    """what follows, in sentences: the answer before the tables"""
    warnings: Sequence[tuple[str, str]] = ()
    """code and sentence"""
    gates: Sequence[GateVerdict] = ()
    resolved: Sequence[Resolved] = ()
    """the scenarios it rests on, whose inputs the document lists"""
    simulated: bool = False
    """measured figures that come from a simulation or a replay, not from this machine"""
    bills: Bills | None = None
    """what it says of costs, line by line: for documents, pages and exports"""
    remarks: Sequence[str] = ()
    """what else there is to say, below the tables"""
    cases: Sequence[str] = ()
    """names of the scenarios, where they are ways to do one job"""
    factors: Sequence[Any] = ()
    """inputs of the first scenario, where views tell them"""
    difference: Difference | None = None


_CELL = {
    "1": number,
    "count": count,
    "share": share,
    "s": duration,
    "bytes": size,
    "bytes_per_s": rate,
    "W": number,
    "kWh": number,
    "GPU-h": number,
    "USD": number,
    "kgCO2e": number,
    "L": number,
    "h": number,
    "USD/h": number,
    "J": number,
    "GPU-s": number,
}


def cell(value: Any, unit: str) -> str:
    """A value as its column shows it.

    >>> cell(0.9312, "share"), cell(None, "kWh"), cell(True, "bool"), cell("nas-hdd", "")
    ('93.1 %', '-', 'yes', 'nas-hdd')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    if isinstance(value, str):
        return on_one_line(value)
    if unit == "points":
        return f"{number(float(value) * 100)} points"
    return _CELL.get(unit, number)(float(value))


def shown_cells(table: Table, wide: bool = True) -> tuple[list[str], list[list[str]], int]:
    """Header, rows and how many of the first columns are text, of the columns that views for people
    show."""
    columns = [column for column in table.columns if column.shown and (wide or not column.wide)]
    texts = ("", "bool", NOTE)
    left = next((i for i, column in enumerate(columns) if column.unit not in texts), len(columns))
    told = [_column_cells(table.rows, column) for column in columns]
    return [c.label for c in columns], [list(row) for row in zip(*told, strict=True)], max(left, 1)


def _column_cells(rows: Sequence[dict[str, Any]], column: Column) -> list[str]:
    if column.range_of:
        return [range_text(row, column.range_of) for row in rows]
    values = [row.get(column.id) for row in rows]
    if column.unit == "s":
        told = durations(values)
    else:
        units = [_unit_in(row, column.unit) for row in rows]
        told = list(map(cell, values, units))
    shown = zip(values, told, strict=True)
    return [column.unknown if value is None else said for value, said in shown]


def range_text(row: dict[str, Any], name: str) -> str:
    """Low to high of a row's value; an open end as "more than".

    >>> range_text({"kwh_low": 1.0, "kwh_high": None}, "kwh"), range_text({}, "kwh")
    ('>1', '')
    """
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is not None and high is None:
        return f">{number(low)}"
    return (drawn_between if row.get("interval") == "p5-p95" else between)(low, high)


def _unit_in(row: dict[str, Any], unit: str) -> str:
    """The unit of a column in one row."""
    if unit not in (ROW_UNIT, ROW_DIFFERENCE):
        return unit
    own = str(row.get("unit", ""))
    return "points" if unit == ROW_DIFFERENCE and own == "share" else own
