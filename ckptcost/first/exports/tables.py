"""A statement as tidy tables, for those who want rows and columns: totals (short, and wide),
components, intervals and factors.

Whoever has a column adds it up. So where a run's sum of a quantity is unknown, no row of that run
has any of it: the zeros of some lines would say that all of it is nothing.

What a column is (unit, meaning, allowed words) is said once, here; how it is written, by the
exports that use the tables. None = unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, get_args

from ckptcost.first.catalog.keys import GRID_METHODS
from ckptcost.first.core.quantities import IN_DOCUMENTS
from ckptcost.first.exports.metric_names import MEAN
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Component, Factor, Quantity
from ckptcost.first.report.statement import COLUMNS, SERIES_OF, Statement, instant, utc

Kind = Literal["text", "number", "instant", "flag"]
Cells = dict[str, list[Any]]
"""by column: cells of equal number; instants as the statement spells them"""


class TableRow(NamedTuple):
    """What rows are made of."""

    s: Statement
    c: Component | None = None
    f: Factor | None = None

    def amount(self, what: str) -> Quantity:
        q: Quantity = (
            getattr(self.s.totals, what) if self.c is None else self.s.amount(self.c, what)
        )
        return q


class ExportColumn(NamedTuple):
    name: str
    kind: Kind
    what: str
    unit: str
    required: bool
    choices: tuple[str, ...]
    cell: Callable[[TableRow], Any]
    """a list: one for each row of the statement's series"""


class ExportTable(NamedTuple):
    name: str
    what: str
    key: tuple[str, ...]
    columns: tuple[ExportColumn, ...]
    rows: Callable[[Statement], Iterable[TableRow]]

    def cells(self, document: Report) -> Cells:
        found: Cells = {column.name: [] for column in self.columns}
        for row in (row for s in document.statements for row in self.rows(s)):
            row_of = [(found[column.name], column.cell(row)) for column in self.columns]
            count = max((len(cell) for _, cell in row_of if isinstance(cell, list)), default=1)
            for cells, cell in row_of:
                cells.extend(cell if isinstance(cell, list) else repeat(cell, count))
        return found


ROOTS: Final = {"s": Statement, "c": Component, "f": Factor, "q": Quantity}


def column(
    path: str,
    what: str = "",
    unit: str = "",
    *,
    name: str = "",
    kind: Kind | None = None,
    required: bool = False,
    choices: tuple[str, ...] = (),
    cell: Callable[[TableRow], Any] | None = None,
) -> ExportColumn:
    """A field of a row's statement, component or factor, or what `cell` makes of them: what the
    schema says of the field decides its kind, the words that it may say, and whether it may be
    unknown."""
    root, *parents, last = path.split(".")
    model: Any = ROOTS[root]
    for parent in parents:
        model = model.model_fields[parent].annotation
    said = model.model_fields[last].annotation if last in model.model_fields else str
    words = choices or _words(said)
    always = required or said is bool or (bool(words) and type(None) not in get_args(said))
    return ExportColumn(
        name or last, kind or _kind(said), what, unit, always, words, cell or attrgetter(path)
    )


def _kind(annotation: Any) -> Kind:
    if annotation is bool:
        return "flag"
    return "number" if float in (annotation, *get_args(annotation)) else "text"


def _words(annotation: Any) -> tuple[str, ...]:
    """What a field of the schema may say."""
    found = get_args(annotation)
    return tuple(
        word for each in found for word in get_args(each) or (each,) if isinstance(word, str)
    )


WORDS: Final = {
    "energy": "electricity",
    "emissions_location": "emissions, location-based; never add them to the market-based",
    "emissions_market": "emissions, market-based; never add them to the location-based",
    "embodied": "share of the making of the equipment; in no emissions total",
    "gpu_time_lost": "GPU time that trained nothing",
    "water": "water for cooling, on site",
}
AMOUNTS: Final = {q.id: (SERIES_OF[q.id], q.unit, WORDS.get(q.id, q.label)) for q in IN_DOCUMENTS}
"""by quantity: its columns' name, their unit and what they are"""
LEDGERS: Final = (
    "Rows whose ledger is allocated are a share of what stands there anyway: never add them to the"
    " marginal ones."
)
MEMO: Final = (
    "memo_item: these kWh already sit in the facility's meter, so do not add them to an inventory"
)
BAR: Final = " | "
"""between the sources of one factor"""
_EMPTY = "empty = unknown, 0 = known to be zero"

_METHOD: Final = column(
    "s.grid_method",
    "what the location-based factor counts; add up location-based emissions of one method only",
    choices=GRID_METHODS,
)
_WHOSE: Final = (
    column(
        "s.subject.run_id",
        "which statement; the same in every table and every other export",
        required=True,
    ),
    column("s.subject.name", "its name", name="run_name"),
)
_WHEN: Final = (
    column("s.period_start", "UTC; empty: a plan has no dates", kind="instant"),
    column("s.period_end", "UTC, exclusive", kind="instant"),
    column("s.length_s", "of the run", "s"),
)
_GRID_ZONE: Final = column("s.subject.grid_zone", "grid whose factors are used")
_HOW: Final = (
    column("s.simulated", "true where meters were simulated"),
    column(
        "s.method_version",
        "rules by which it was worked out; compare only rows of one version",
        required=True,
    ),
    column("s.boundary.inventory_treatment", MEMO),
)


def _amount(quantity: str, field: str, name: str, what: str, unit: str = "") -> ExportColumn:
    return column(f"q.{field}", what, unit, name=name, cell=lambda row: _cell(row, quantity, field))


def _cell(row: TableRow, quantity: str, field: str) -> Any:
    found = getattr(row.amount(quantity), field)
    return " ".join(found) if isinstance(found, list) else found


def _value(quantity: str) -> ExportColumn:
    name, unit, what = AMOUNTS[quantity]
    return _amount(quantity, "value", name, f"{what}; {_EMPTY}", unit)


def _ranged_columns(value: ExportColumn, quantity: str) -> tuple[ExportColumn, ...]:
    """A quantity's number, range and what they rest on."""
    name, unit = value.name, value.unit
    high = "high end of its range; empty beside a low end: without bound"
    interval = "what low and high are; bounds are of a measurement"
    excludes = "components that are unknown and therefore not in this sum, with spaces between"
    factors = "factors it rests on, with spaces between: factor_id of the table factors"

    def rests(row: TableRow) -> str:
        return " ".join(row.s.rests_of(row.amount(quantity)))

    return (
        value,
        _amount(quantity, "low", f"{name}_low", "low end of its range", unit),
        _amount(quantity, "high", f"{name}_high", high, unit),
        _amount(quantity, "interval", f"{name}_interval", interval),
        _amount(quantity, "basis", f"{name}_basis", "what the number rests on"),
        _amount(quantity, "excludes", f"{name}_excludes", excludes),
        column("q.rests", factors, name=f"{name}_factors", kind="text", cell=rests),
    )


_SAVES: Final = _amount("checkpoints", "value", "checkpoints", f"saved. {MEAN}", "1")
_AMOUNTS: Final = tuple(each for what in AMOUNTS for each in _ranged_columns(_value(what), what))


def _at_least(row: TableRow) -> str | None:
    lacking = (
        name
        for what, (name, _, _) in AMOUNTS.items()
        if (q := row.amount(what)).value is not None and q.excludes
    )
    return " ".join(lacking) or None


_SHORT: Final = (
    *_WHOSE,
    column("s.kind"),
    *_WHEN,
    _SAVES,
    *map(_value, AMOUNTS),
    column(
        "s.at_least",
        "columns of this row that lack a component nobody knows, with spaces between: it is at"
        " least that",
        cell=_at_least,
    ),
    _METHOD,
    *_HOW,
)


def _subject(*names: str, unit: str = "") -> tuple[ExportColumn, ...]:
    return tuple(column(f"s.subject.{name}", unit=unit) for name in names)


_WIDE: Final = (
    *_WHOSE,
    column("s.kind"),
    column("s.how", "a closed form, so many simulated runs, a recorded run"),
    *_WHEN,
    *_subject("organisation", "team", "checkpoint", "tier", "cluster", "framework"),
    *_subject("accelerator", "site", "grid"),
    _GRID_ZONE,
    *_subject("country"),
    column("s.subject.country_iso3", "three letters, ISO 3166-1"),
    *_subject("region", "cloud_provider", "cloud_region"),
    _METHOD,
    *_subject("accelerator_count", "nodes", unit="1"),
    column("s.subject.parameters", "of the model", "1"),
    column("s.subject.tokens", "training tokens, gross", "1"),
    column(
        "s.boundary.pue",
        "power usage effectiveness; empty: energies are the machine's own, as metered",
        "1",
    ),
    column("s.boundary.pue_included_in_energy"),
    column("s.boundary.counterfactual", "what it is compared with"),
    column("s.uncertainty", "what the ranges are"),
    *_AMOUNTS,
    *_ranged_columns(_SAVES._replace(what=f"checkpoints saved. {MEAN}; {_EMPTY}"), "checkpoints"),
    *_HOW,
)
_COMPONENTS: Final = (
    *_WHOSE,
    column("c.id", "a line of the bill", name="component", required=True),
    column("c.label", "the same in words"),
    column("c.ledger", LEDGERS),
    column("c.cause"),
    column("c.boundary", "how far around the work it reaches"),
    column("c.basis", "of the line as a whole"),
    column("c.rests_on", "softest basis among its factors"),
    _GRID_ZONE,
    _METHOD,
    *_AMOUNTS,
    column("c.price_qty", "how much was priced, in price_unit", name="price_quantity"),
    column("c.price_unit"),
    column("c.unit_price", "price of one price_unit", "USD", name="unit_price_usd"),
    column("c.sku", "the price list's name for it"),
    *_HOW,
)

_OF_SERIES: Final = {
    "start": ("", "UTC, inclusive"),
    "duration_s": ("s", ""),
    "component": ("", "a line of the table components"),
    "checkpoints": (
        "1",
        "saves of that time, on the rows of one component only: the column adds up",
    ),
    "grid_kgco2e_per_kwh": ("kgCO2e/kWh", "factor of the grid at that time, location-based"),
    "market_kgco2e_per_kwh": ("kgCO2e/kWh", "factor of what was bought, market-based"),
    **{name: (unit, what) for name, unit, what in AMOUNTS.values()},
}
"""by column of the series: its unit and what it is"""


def _series(name: str) -> ExportColumn:
    unit, what = _OF_SERIES[name]
    quantity = next((each for each in AMOUNTS if AMOUNTS[each][0] == name), "")

    def cells(row: TableRow) -> Any:
        return None if quantity and not row.s.known(quantity) else getattr(row.s.series, name)

    kind: Kind = "instant" if name == "start" else "text" if name == "component" else "number"
    required = name in ("start", "duration_s", "component")
    return column(f"s.{name}", what, unit, kind=kind, required=required, cell=cells)


def _ends(row: TableRow) -> list[str]:
    series: Any = row.s.series
    rows = list(zip(series.start, series.duration_s, strict=True))
    ends = {each: instant(utc(each[0]).timestamp() + each[1]) for each in dict.fromkeys(rows)}
    return [ends[each] for each in rows]


def _of_line(field: str, what: str) -> ExportColumn:
    def cells(row: TableRow) -> list[Any]:
        found = {c.id: getattr(c, field) for c in row.s.components}
        return [found[line] for line in row.s.series.component] if row.s.series else []

    return column(f"c.{field}", what, cell=cells)


_INTERVALS: Final = (
    *_WHOSE,
    _series("start"),
    column("s.end", "UTC, exclusive", kind="instant", required=True, cell=_ends),
    _series("duration_s"),
    _series("component"),
    _of_line("ledger", LEDGERS),
    _GRID_ZONE,
    _METHOD,
    *map(_series, COLUMNS[3:]),
    _of_line("basis", "of the line as a whole"),
    *_HOW,
)


def _of_sources(field: str, name: str = "") -> ExportColumn:
    what = f"of every source in turn, '{BAR}' between; a place is empty where nobody says"
    name = f"source_{name or field + 's'}"
    return column("f.sources", what, name=name, cell=lambda row: _sources(row.f, field))


def _sources(factor: Factor | None, field: str) -> str:
    return BAR.join(getattr(each, field) or "" for each in (factor.sources if factor else ()))


_FACTORS: Final = (
    *_WHOSE,
    column("f.id", "section.key, as a scenario file spells it", name="factor_id", required=True),
    column("f.name", "what it means", name="factor_name"),
    column("f.value", "in the unit beside it; empty = unlimited"),
    column("f.unit", "base unit; empty for a plain number"),
    column("f.low", "low end of its range, same unit"),
    column("f.high", "high end of its range, same unit"),
    column("f.text", "as it was written"),
    column("f.origin"),
    column("f.set_by", "flag, file or catalogue entry that says so"),
    column("f.boundary"),
    column("f.note"),
    *map(_of_sources, ("id", "title", "publisher", "licence", "url", "version")),
    _of_sources("retrieved", "retrieved"),
    *_HOW,
)


def _whole(s: Statement) -> Iterator[TableRow]:
    yield TableRow(s)


def _time_rows(s: Statement) -> Iterator[TableRow]:
    """All rows of time at once: there may be a hundred thousand."""
    if s.series is not None:
        yield TableRow(s)


TABLES: Final = (
    ExportTable(
        "totals",
        "One row a run: sums of its marginal components, the columns that most people need.",
        ("run_id",),
        _SHORT,
        _whole,
    ),
    ExportTable(
        "totals_wide",
        "The same rows with ranges, basis, what a sum leaves out, factors, place and subject.",
        ("run_id",),
        _WIDE,
        _whole,
    ),
    ExportTable(
        "components",
        f"One row a run and line of its bill. {LEDGERS}",
        ("run_id", "component"),
        _COMPONENTS,
        lambda s: (TableRow(s, c) for c in s.components),
    ),
    ExportTable(
        "intervals",
        f"One row a run, time and component; rows add up to the component. {LEDGERS}",
        ("run_id", "start", "component"),
        _INTERVALS,
        _time_rows,
    ),
    ExportTable(
        "factors",
        "Every factor the figures rest on, with its sources and their licences.",
        ("run_id", "factor_id"),
        _FACTORS,
        lambda s: (TableRow(s, f=f) for f in s.factors),
    ),
)


def readme(kind: str) -> str:
    """What a folder of them holds, for people: every table and column, its unit and meaning."""
    said = [
        "# What checkpoints cost, as tables",
        "",
        f"Written by `ckptcost export --to {kind}`. Begin with `totals`.",
        "",
        f"* {MEMO}.",
        f"* {LEDGERS}",
        "* An empty cell is unknown, and 0 is a known zero. Where a run's sum of a quantity is",
        "  unknown, no row of that run has any of it.",
    ]
    for table in TABLES:
        said += [
            "",
            f"## {table.name}",
            "",
            table.what,
            "",
            "| column | unit | is |",
            "|---|---|---|",
        ]
        said += [
            f"| `{c.name}` | {c.unit} | {(c.what or c.name.replace('_', ' ')).replace('|', '/')} |"
            for c in table.columns
        ]
    return "\n".join(said) + "\n"
