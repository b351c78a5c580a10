"""A statement as tidy tables, for those who want rows and columns: totals (short, and wide),
components, intervals and factors.

Whoever has a column adds it up. So where a run's sum of a quantity is unknown, no row of that run
has any of it: the zeros of some lines would say that all of it is nothing.

What a column is (unit, meaning, allowed words) is said once, here; how it is written, by the
exports that use the tables. None = unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

from ckptcost.catalog.keys import GRID_METHODS
from ckptcost.exports.metric_names import MEAN
from ckptcost.report.document import Report
from ckptcost.report.parts import Basis, Component, Factor, Origin, Quantity
from ckptcost.report.statement import Statement, instant, utc

Kind = Literal["text", "number", "instant", "flag"]
Cells = dict[str, list[Any]]
"""by column: cells of equal number; instants as the statement spells them"""


class Column(NamedTuple):
    name: str
    kind: Kind
    what: str
    unit: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()


class Table(NamedTuple):
    name: str
    what: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: Callable[[Report], Cells]


def _words(model: Any, field: str) -> tuple[str, ...]:
    """What a field of the schema may say."""
    found = get_args(model.model_fields[field].annotation)
    return tuple(
        word for each in found for word in get_args(each) or (each,) if isinstance(word, str)
    )


AMOUNTS: Final = {
    "energy": ("energy_kwh", "kWh", "electricity"),
    "emissions_location": (
        "emissions_location_kgco2e",
        "kgCO2e",
        "emissions, location-based; never add them to the market-based",
    ),
    "emissions_market": (
        "emissions_market_kgco2e",
        "kgCO2e",
        "emissions, market-based; never add them to the location-based",
    ),
    "embodied": (
        "embodied_kgco2e",
        "kgCO2e",
        "share of the making of the equipment; in no emissions total",
    ),
    "gpu_time_lost": ("gpu_hours", "GPU-h", "GPU time that trained nothing"),
    "cost": ("cost_usd", "USD", "cost"),
    "water": ("water_l", "L", "water for cooling, on site"),
}

LEDGERS: Final = (
    "Rows whose ledger is allocated are a share of what stands there anyway: never add them to the"
    " marginal ones."
)
MEMO: Final = (
    "memo_item: these kWh already sit in the facility's meter, so do not add them to an inventory"
)
BAR: Final = " | "
"""between the sources of one factor"""

_METHOD: Final = Column(
    "grid_method",
    "text",
    "what the location-based factor counts; add up location-based emissions of one method only",
    required=True,
    choices=GRID_METHODS,
)

_WHOSE: Final = (
    Column(
        "run_id",
        "text",
        "which statement; the same in every table and every other export",
        required=True,
    ),
    Column("run_name", "text", "its name"),
)
_HOW: Final = (
    Column("simulated", "flag", "true where meters were simulated", required=True),
    Column(
        "method_version",
        "text",
        "rules by which it was worked out; compare only rows of one version",
        required=True,
    ),
    Column("inventory_treatment", "text", MEMO, required=True, choices=("memo_item",)),
)


def _amount_columns(name: str, unit: str, what: str) -> tuple[Column, ...]:
    return (
        Column(name, "number", f"{what}; empty = unknown, 0 = known to be zero", unit),
        Column(f"{name}_low", "number", "low end of its range", unit),
        Column(
            f"{name}_high",
            "number",
            "high end of its range; empty beside a low end: without bound",
            unit,
        ),
        Column(
            f"{name}_interval",
            "text",
            "what low and high are; bounds are of a measurement",
            choices=_words(Quantity, "interval"),
        ),
        Column(
            f"{name}_basis",
            "text",
            "what the number rests on",
            required=True,
            choices=get_args(Basis),
        ),
        Column(
            f"{name}_excludes",
            "text",
            "components that are unknown and therefore not in this sum, with spaces between",
        ),
        Column(
            f"{name}_factors",
            "text",
            "factors it rests on, with spaces between: factor_id of the table factors",
        ),
    )


def _amount_cells(quantity: Quantity) -> tuple[Any, ...]:
    q = quantity
    return q.value, q.low, q.high, q.interval, q.basis, " ".join(q.excludes), " ".join(q.factors)


_AMOUNTS: Final = tuple(column for each in AMOUNTS.values() for column in _amount_columns(*each))


def _all_amounts(of: Any) -> Iterable[Any]:
    return (cell for what in AMOUNTS for cell in _amount_cells(getattr(of, what)))


def _columns_of(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Cells:
    """Rows turned into columns, none of them included."""
    found: Cells = {column.name: [] for column in columns}
    for row in rows:
        for cells, cell in zip(found.values(), row, strict=True):
            cells.append(cell)
    return found


def _how(s: Statement) -> tuple[Any, ...]:
    return s.simulated, s.method_version, s.boundary.inventory_treatment


_SUBJECT: Final = {
    "organisation": "",
    "team": "",
    "checkpoint": "",
    "tier": "",
    "cluster": "",
    "framework": "",
    "accelerator": "",
    "site": "",
    "grid": "",
    "grid_zone": "grid whose factors are used",
    "country": "",
    "country_iso3": "three letters, ISO 3166-1",
    "region": "",
    "cloud_provider": "",
    "cloud_region": "",
}
_COUNTED: Final = {
    "accelerator_count": "",
    "nodes": "",
    "parameters": "of the model",
    "tokens": "training tokens, gross",
}

_SHORT: Final = (
    *_WHOSE,
    Column("kind", "text", "", required=True, choices=_words(Statement, "kind")),
    Column("period_start", "instant", "UTC; empty: a plan has no dates"),
    Column("period_end", "instant", "UTC, exclusive"),
    Column("length_s", "number", "of the run", "s"),
    Column("checkpoints", "number", f"saved. {MEAN}", "1"),
    *(
        Column(name, "number", f"{what}; empty = unknown, 0 = known to be zero", unit)
        for name, unit, what in AMOUNTS.values()
    ),
    Column(
        "at_least",
        "text",
        "columns of this row that lack a component nobody knows, with spaces between: it is at"
        " least that",
    ),
    _METHOD,
    *_HOW,
)


def _short(document: Report) -> Cells:
    return _columns_of(
        _SHORT,
        (
            (
                s.subject.run_id,
                s.subject.name,
                s.kind,
                s.period_start,
                s.period_end,
                s.length_s,
                s.totals.checkpoints.value,
                *(getattr(s.totals, what).value for what in AMOUNTS),
                " ".join(
                    name
                    for what, (name, _, _) in AMOUNTS.items()
                    if (q := getattr(s.totals, what)).value is not None and q.excludes
                )
                or None,
                s.grid_method,
                *_how(s),
            )
            for s in document.statements
        ),
    )


_WIDE: Final = (
    *_WHOSE,
    Column("kind", "text", "", required=True, choices=_words(Statement, "kind")),
    Column("how", "text", "a closed form, so many simulated runs, a recorded run"),
    Column("period_start", "instant", "UTC; empty: a plan has no dates"),
    Column("period_end", "instant", "UTC, exclusive"),
    Column("length_s", "number", "of the run", "s"),
    *(Column(name, "text", what) for name, what in _SUBJECT.items()),
    _METHOD,
    *(Column(name, "number", what, "1") for name, what in _COUNTED.items()),
    Column(
        "pue",
        "number",
        "power usage effectiveness; empty: energies are the machine's own, as metered",
        "1",
    ),
    Column("pue_included_in_energy", "flag", "", required=True),
    Column("counterfactual", "text", "what it is compared with"),
    Column("uncertainty", "text", "what the ranges are"),
    *_AMOUNTS,
    *_amount_columns("checkpoints", "1", f"checkpoints saved. {MEAN}"),
    *_HOW,
)


def _wide(document: Report) -> Cells:
    return _columns_of(
        _WIDE,
        (
            (
                s.subject.run_id,
                s.subject.name,
                s.kind,
                s.how,
                s.period_start,
                s.period_end,
                s.length_s,
                *(getattr(s.subject, name) for name in _SUBJECT),
                s.grid_method,
                *(getattr(s.subject, name) for name in _COUNTED),
                s.boundary.pue,
                s.boundary.pue_included_in_energy,
                s.boundary.counterfactual,
                s.uncertainty,
                *_all_amounts(s.totals),
                *_amount_cells(s.totals.checkpoints),
                *_how(s),
            )
            for s in document.statements
        ),
    )


_COMPONENTS: Final = (
    *_WHOSE,
    Column("component", "text", "a line of the bill", required=True),
    Column("label", "text", "the same in words"),
    Column("ledger", "text", LEDGERS, required=True, choices=_words(Component, "ledger")),
    Column("cause", "text", "", required=True, choices=_words(Component, "cause")),
    Column(
        "boundary",
        "text",
        "how far around the work it reaches",
        required=True,
        choices=_words(Component, "boundary"),
    ),
    Column(
        "basis", "text", "of the line as a whole", required=True, choices=_words(Component, "basis")
    ),
    Column(
        "rests_on",
        "text",
        "softest basis among its factors",
        required=True,
        choices=_words(Component, "rests_on"),
    ),
    Column("grid_zone", "text", "grid whose factors are used"),
    _METHOD,
    *_AMOUNTS,
    Column("price_quantity", "number", "how much was priced, in price_unit"),
    Column("price_unit", "text", ""),
    Column("unit_price_usd", "number", "price of one price_unit", "USD"),
    Column("sku", "text", "the price list's name for it"),
    *_HOW,
)


def _components(document: Report) -> Cells:
    return _columns_of(
        _COMPONENTS,
        (
            (
                s.subject.run_id,
                s.subject.name,
                c.id,
                c.label,
                c.ledger,
                c.cause,
                c.boundary,
                c.basis,
                c.rests_on,
                s.subject.grid_zone,
                s.grid_method,
                *(cell for what in AMOUNTS for cell in _amount_cells(s.amount(c, what))),
                c.price_qty,
                c.price_unit,
                c.unit_price,
                c.sku,
                *_how(s),
            )
            for s in document.statements
            for c in s.components
        ),
    )


_SERIES: Final = (
    Column("energy_kwh", "number", "electricity", "kWh"),
    Column("gpu_hours", "number", "GPU time that trained nothing", "GPU-h"),
    Column("cost_usd", "number", "cost", "USD"),
    Column(
        "checkpoints",
        "number",
        "saves of that time, on the rows of one component only: the column adds up",
        "1",
    ),
    Column(
        "grid_kgco2e_per_kwh",
        "number",
        "factor of the grid at that time, location-based",
        "kgCO2e/kWh",
    ),
    Column(
        "market_kgco2e_per_kwh", "number", "factor of what was bought, market-based", "kgCO2e/kWh"
    ),
    Column("emissions_location_kgco2e", "number", AMOUNTS["emissions_location"][2], "kgCO2e"),
    Column("emissions_market_kgco2e", "number", AMOUNTS["emissions_market"][2], "kgCO2e"),
    Column("embodied_kgco2e", "number", AMOUNTS["embodied"][2], "kgCO2e"),
    Column("water_l", "number", AMOUNTS["water"][2], "L"),
)
_INTERVALS: Final = (
    *_WHOSE,
    Column("start", "instant", "UTC, inclusive", required=True),
    Column("end", "instant", "UTC, exclusive", required=True),
    Column("duration_s", "number", "", "s", required=True),
    Column("component", "text", "a line of the table components", required=True),
    Column("ledger", "text", LEDGERS, required=True, choices=_words(Component, "ledger")),
    Column("grid_zone", "text", "grid whose factors are used"),
    _METHOD,
    *_SERIES,
    Column(
        "basis", "text", "of the line as a whole", required=True, choices=_words(Component, "basis")
    ),
    *_HOW,
)


def _intervals(document: Report) -> Cells:
    """Whole columns: there may be a hundred thousand rows."""
    found: Cells = {column.name: [] for column in _INTERVALS}
    for s in document.statements:
        if s.series is None:
            continue
        series = s.series
        rows = list(zip(series.start, series.duration_s, strict=True))
        ends = {row: instant(utc(row[0]).timestamp() + row[1]) for row in dict.fromkeys(rows)}
        lines = {c.id: c for c in s.components}
        shared = (s.subject.run_id, s.subject.name, s.subject.grid_zone, s.grid_method, *_how(s))
        names = ("run_id", "run_name", "grid_zone", _METHOD.name, *(each.name for each in _HOW))
        for name, value in zip(names, shared, strict=True):
            found[name] += [value] * len(rows)
        unknown = {name for what, (name, _, _) in AMOUNTS.items() if not s.known(what)}
        for name in ("start", "duration_s", "component", *(column.name for column in _SERIES)):
            found[name] += [None] * len(rows) if name in unknown else getattr(series, name)
        found["end"] += [ends[row] for row in rows]
        for name in ("ledger", "basis"):
            told = {line: getattr(c, name) for line, c in lines.items()}
            found[name] += [told[line] for line in series.component]
    return found


_SOURCES: Final = {
    "id": "source_ids",
    "title": "source_titles",
    "publisher": "source_publishers",
    "licence": "source_licences",
    "url": "source_urls",
    "version": "source_versions",
    "retrieved": "source_retrieved",
}
_FACTORS: Final = (
    *_WHOSE,
    Column("factor_id", "text", "section.key, as a scenario file spells it", required=True),
    Column("factor_name", "text", "what it means"),
    Column("value", "number", "in the unit beside it; empty = unlimited"),
    Column("unit", "text", "base unit; empty for a plain number"),
    Column("low", "number", "low end of its range, same unit"),
    Column("high", "number", "high end of its range, same unit"),
    Column("text", "text", "as it was written"),
    Column("origin", "text", "", required=True, choices=get_args(Origin)),
    Column("set_by", "text", "flag, file or catalogue entry that says so"),
    Column("boundary", "text", ""),
    Column("note", "text", ""),
    *(
        Column(
            name,
            "text",
            f"of every source in turn, '{BAR}' between; a place is empty where nobody says",
        )
        for name in _SOURCES.values()
    ),
    *_HOW,
)


def _sources(factor: Factor, field: str) -> str:
    return BAR.join(getattr(source, field) or "" for source in factor.sources)


def _factors(document: Report) -> Cells:
    return _columns_of(
        _FACTORS,
        (
            (
                s.subject.run_id,
                s.subject.name,
                f.id,
                f.name,
                f.value,
                f.unit,
                f.low,
                f.high,
                f.text,
                f.origin,
                f.set_by,
                f.boundary,
                f.note,
                *(_sources(f, field) for field in _SOURCES),
                *_how(s),
            )
            for s in document.statements
            for f in s.factors
        ),
    )


TABLES: Final = (
    Table(
        "totals",
        "One row a run: sums of its marginal components, the columns that most people need.",
        ("run_id",),
        _SHORT,
        _short,
    ),
    Table(
        "totals_wide",
        "The same rows with ranges, basis, what a sum leaves out, factors, place and subject.",
        ("run_id",),
        _WIDE,
        _wide,
    ),
    Table(
        "components",
        f"One row a run and line of its bill. {LEDGERS}",
        ("run_id", "component"),
        _COMPONENTS,
        _components,
    ),
    Table(
        "intervals",
        f"One row a run, time and component; rows add up to the component. {LEDGERS}",
        ("run_id", "start", "component"),
        _INTERVALS,
        _intervals,
    ),
    Table(
        "factors",
        "Every factor the figures rest on, with its sources and their licences.",
        ("run_id", "factor_id"),
        _FACTORS,
        _factors,
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
