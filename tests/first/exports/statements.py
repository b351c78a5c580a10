"""Statements for tests: made up, consistent (components add up to totals, rows to components), of
any length; and random ones."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.exports.formats import exported
from ckptcost.first.report.build import build, statements_study
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import (
    Assumption,
    Component,
    Excluded,
    Factor,
    FunctionalUnit,
    InputFile,
    Quantity,
    RunTotals,
    Source,
    Tool,
    Totals,
    Warned,
)
from ckptcost.first.report.statement import (
    QUANTITIES,
    Boundary,
    Contract,
    Measurement,
    Series,
    Statement,
    Subject,
    instant,
    utc,
)

UNITS = {
    "energy": "kWh",
    "emissions_location": "kgCO2e",
    "emissions_market": "kgCO2e",
    "embodied": "kgCO2e",
    "gpu_time_lost": "GPU-h",
    "cost": "USD",
    "water": "L",
}
START = 1790812800.0
"""2026-10-01T00:00:00Z"""
LINES: tuple[tuple[str, str, str, str], ...] = (
    ("gpu_wait", "GPUs waiting for saves", "save", "node"),
    ("host_wait", "hosts waiting for saves", "save", "node"),
    ("storage_write", "storage writing", "save", "storage-system"),
    ("redone_work", "work redone after failures", "failure", "node"),
    ("retention", "keeping the bytes", "keep", "storage-system"),
)
GRID, MARKET = 0.3835, 0.12
"""kgCO2e per kWh"""
WATER = 1.5
"""litres per kWh"""
RESTS = {"emissions_location": 0, "emissions_market": 1, "cost": 2}
LISTS = [["site.grid_location"], ["site.grid_market"], ["site.tariff"]]
TOOL = Tool(
    name="ckptcost", version="0.1.0", command=["ckptcost", "export"], method_version="2026.1"
)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def quantity(
    what: str,
    value: float | None,
    spread: float = 0.1,
    excludes: Sequence[str] = (),
    basis: str = "modelled",
) -> Quantity:
    ranged: dict[str, Any] = (
        {}
        if value is None or not value
        else {"low": value * (1 - spread), "high": value * (1 + spread), "interval": "p5-p95"}
    )
    return Quantity(
        value=value,
        unit=UNITS[what],
        basis=basis,
        excludes=list(excludes),
        rests=RESTS.get(what),
        **ranged,
    )


def factor(name: str, value: float, unit: str, text: str, origin: str = "published") -> Factor:
    source = Source(
        id="ember-owid",
        title="Yearly electricity data",
        publisher="Ember; Our World in Data",
        url="https://ourworldindata.org",
        licence="CC BY 4.0",
    )
    return Factor(
        id=name,
        name=f"what {name} means",
        value=value,
        unit=unit,
        text=text,
        low=value * 0.9,
        high=value * 1.1,
        origin=origin,
        set_by="grid USA",
        sources=[source],
    )


def statement(
    energies: Sequence[float | None] = (1200.5, 1350.25, None, 210.125, 0.0),
    *,
    gpu_hours: Sequence[float | None] = (3000.0, 0.0, 0.0, 160.5, 0.0),
    costs: Sequence[float | None] = (16305.0, 217.4, None, 905.75, 12.5),
    grid: float | None = GRID,
    market: float | None = MARKET,
    rows: int = 5,
    begin: float = START + 1800.0,
    name: str = "GPT-4 scale, nas-hdd",
    run_id: str = "3449a33ac9b5dd46-nas-hdd-100",
    kind: str = "modelled",
    dated: bool = True,
    checkpoints: float = 8.0,
    lines: Sequence[tuple[str, str, str, str]] = LINES,
    width_s: float = 3600.0,
    tags: dict[str, str] | None = None,
) -> Statement:
    """`rows` hours or parts of them, the first half an hour long; every component's energy evenly
    over them, a grid that varies by hour."""
    edges = (
        [begin, *(math.floor(begin / width_s) * width_s + width_s * n for n in range(1, rows + 1))]
        if rows
        else []
    )
    lengths = [b - a for a, b in pairwise(edges)]
    whole_s = sum(lengths)
    grids = [None if grid is None else grid * (1.0 + 0.1 * math.sin(n)) for n in range(rows)]
    series: dict[str, list[Any]] = {key: [] for key in Series.model_fields if key != "width_s"}
    made: list[Component] = []
    # the first component that has rows carries the checkpoints
    first = next(
        (at for at in range(len(lines)) if any((energies[at], gpu_hours[at], costs[at]))), -1
    )
    for at, (line, label, cause, boundary) in enumerate(lines):
        energy, gpu, usd = energies[at], gpu_hours[at], costs[at]
        told = dated and rows > 0 and any(each for each in (energy, gpu, usd))
        location = market_kg = None
        if energy is not None:
            location = None if grid is None else energy * grid
            market_kg = None if market is None else energy * market
        embodied = None if gpu is None else gpu * 0.033
        litres = None if energy is None else energy * WATER
        if told:
            kg = []
            for n in range(rows):
                share = lengths[n] / whole_s
                part = None if energy is None else energy * share
                kg.append(None if part is None or grids[n] is None else part * grids[n])
                row = {
                    "start": instant(edges[n]),
                    "duration_s": lengths[n],
                    "component": line,
                    "energy_kwh": part,
                    "gpu_hours": None if gpu is None else gpu * share,
                    "cost_usd": None if usd is None else usd * share,
                    "checkpoints": checkpoints * share if at == first else 0.0,
                    "grid_kgco2e_per_kwh": grids[n],
                    "market_kgco2e_per_kwh": market,
                    "emissions_location_kgco2e": kg[-1],
                    "emissions_market_kgco2e": (
                        None if part is None or market is None else part * market
                    ),
                    "embodied_kgco2e": None if embodied is None else embodied * share,
                    "water_l": None if part is None else part * WATER,
                }
                for key, value in row.items():
                    series[key].append(value)
            location = _sum(kg)
        values = dict(
            zip(QUANTITIES, (energy, location, market_kg, embodied, gpu, usd, litres), strict=True)
        )
        priced: dict[str, Any] = (
            {"price_qty": gpu, "price_unit": "GPU-h", "unit_price": 5.435} if gpu else {}
        )
        made.append(
            Component(
                id=line,
                label=label,
                cause=cause,
                ledger="marginal",
                boundary=boundary,
                basis="measured" if kind == "measured" else "modelled",
                rests_on="published",
                **{what: quantity(what, value) for what, value in values.items()},
                **priced,
            )
        )
    standing = {what: quantity(what, 4.0 if what == "energy" else None) for what in QUANTITIES}
    made.append(
        Component(
            id="standing",
            label="idle storage, its share",
            cause="keep",
            ledger="allocated",
            boundary="storage-system",
            rests_on="vendor",
            **standing,
        )
    )
    marginal = [c for c in made if c.ledger == "marginal"]
    sums = {
        what: quantity(
            what,
            _sum([getattr(c, what).value for c in marginal]),
            excludes=[c.id for c in marginal if getattr(c, what).value is None],
        )
        for what in QUANTITIES
    }
    length_s = sum(lengths) if dated and rows else 1916431.0
    return Statement(
        id=f"urn:ckptcost:{run_id}",
        kind=kind,
        how="closed form",
        method_version="2026.1",
        period_start=instant(begin) if dated else None,
        period_end=instant(begin + length_s) if dated else None,
        length_s=length_s,
        subject=Subject(
            run_id=run_id,
            name=name,
            checkpoint="GPT-4 scale",
            tier="nas-hdd",
            cluster="128 nodes of H100",
            accelerator="H100 SXM5 80GB",
            accelerator_count=1024.0,
            nodes=128.0,
            site="United States",
            site_id="usa",
            grid="United States",
            grid_zone="USA",
            country="United States",
            country_iso3="USA",
            tags=tags or {},
        ),
        boundary=Boundary(
            included=["GPUs waiting for saves"],
            excluded=[Excluded(component="storage writing", reason="energy unknown")],
            pue=1.15,
            pue_included_in_energy=True,
            counterfactual="the same work with no checkpoints and no failures",
            embodied_included=False,
            inventory_treatment="memo_item",
        ),
        totals=RunTotals(**sums, checkpoints=Quantity(value=checkpoints, unit="1")),
        allocated=Totals(**standing),
        components=made,
        functional_units=[FunctionalUnit(name="checkpoint", count=checkpoints)],
        series=Series(width_s=width_s, **series) if dated and rows else None,
        rests=LISTS,
        factors=[
            *(
                []
                if grid is None
                else [
                    factor(
                        "site.grid_location", grid / 3.6e6, "kgco2e_per_j", f"{grid * 1000:g} g/kWh"
                    )
                ]
            ),
            *(
                []
                if market is None
                else [
                    factor(
                        "site.grid_market",
                        market / 3.6e6,
                        "kgco2e_per_j",
                        f"{market * 1000:g} g/kWh",
                        "user",
                    )
                ]
            ),
            factor("site.pue", 1.15, "", "1.15", "default"),
            factor("site.tariff", 4.4722222222222223e-08, "usd_per_j", "0.161 USD/kWh"),
            factor(
                "cluster.gpu_price",
                0.0015097222222222222,
                "usd_per_gpu_s",
                "5.435 USD/h",
                "derived",
            ),
        ],
        contracts=[Contract(name="Wind PPA", instrument="PPA", share=0.6, kgco2e_per_kwh=0.0)],
        assumptions=[
            Assumption(
                id="A1",
                text="power usage effectiveness: 1.15",
                value=1.15,
                unit="",
                low=1.08,
                high=1.56,
            )
        ],
        measurements=(
            [
                Measurement(
                    id="gpu:0",
                    instrument="NVML total energy consumption",
                    scope="gpu",
                    boundary="node",
                    basis="measured",
                    tick_s=0.1,
                    coverage=1.0,
                    energy_kwh=0.2,
                )
            ]
            if kind == "measured"
            else []
        ),
        uncertainty="5th and 95th percentile over drawn inputs",
        warnings=[Warned(code="UNKNOWN_INPUT", message="tier.write_energy is not known.")],
    )


def document_of(
    found: Sequence[Statement],
    generated_at: str,
    tool: dict[str, Any],
    inputs: Sequence[InputFile] = (),
) -> Report:
    """Statements alone, written at a time and by a tool that tests choose: neither is hashed."""
    report = build(
        statements_study(found), Catalog(), (), inputs=[each.model_dump() for each in inputs]
    )
    told = {"generated_at": generated_at, "tool": Tool.model_validate(tool)}
    return report.model_copy(update=told)


def document(*statements: Statement) -> Report:
    made = build(statements_study(list(statements) or [statement()]), Catalog())
    return made.model_copy(update={"generated_at": "2029-12-31T00:00:00Z", "tool": TOOL})


def with_fields(statement: Statement, **fields: Any) -> Statement:
    return statement.model_copy(update=fields)


def with_subject(statement: Statement, **fields: Any) -> Statement:
    return with_fields(statement, subject=statement.subject.model_copy(update=fields))


def with_priced_standing(statement: Statement) -> Statement:
    """With a cost and emissions in the ledger that stands apart."""
    update = {
        "cost": quantity("cost", 99.0),
        "emissions_location": quantity("emissions_location", 77.0),
    }
    lines = [
        each.model_copy(update=update) if each.id == "standing" else each
        for each in statement.components
    ]
    return with_fields(statement, components=lines)


def export_text(found: Statement | Report, name: str, file: str | None = None) -> str:
    """One file of an export, the first where none is named."""
    files = exported(found if isinstance(found, Report) else document(found), name)
    content = files[file] if file else next(iter(files.values()))
    return content.decode() if isinstance(content, bytes) else "".join(content)


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def big(rows: int = 100_000) -> Report:
    """One statement with about so many rows of series."""
    return document(statement(rows=rows // 4))


_amounts = st.one_of(
    st.none(), st.just(0.0), st.floats(1e-9, 1e12, allow_nan=False, allow_subnormal=False)
)
_names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40
).filter(str.strip)


@st.composite
def statements(draw: st.DrawFn, dated: bool | None = None) -> Statement:
    """Any: unknown amounts, no grid, no market factor, odd names, no dates, one row or many."""
    n = len(LINES)
    when = draw(st.booleans()) if dated is None else dated
    return statement(
        draw(st.lists(_amounts, min_size=n, max_size=n)),
        gpu_hours=draw(st.lists(_amounts, min_size=n, max_size=n)),
        costs=draw(st.lists(_amounts, min_size=n, max_size=n)),
        grid=draw(st.one_of(st.none(), st.floats(0.0, 2.0))),
        market=draw(st.one_of(st.none(), st.floats(0.0, 2.0))),
        rows=draw(st.integers(1, 40)),
        begin=START + draw(st.integers(0, 86400 * 300)) + draw(st.sampled_from((0.0, 0.25))),
        name=draw(_names),
        run_id=draw(st.text("abcdef0123456789-", min_size=6, max_size=40)),
        kind=draw(st.sampled_from(("measured", "modelled", "mixed"))),
        dated=when,
        checkpoints=float(draw(st.integers(0, 10_000))),
        tags={"team": draw(_names)},
    )


def documents(dated: bool | None = None) -> st.SearchStrategy[Report]:
    """One to three of them, with names of their own."""
    return st.lists(
        statements(dated), min_size=1, max_size=3, unique_by=lambda s: s.subject.run_id
    ).map(lambda each: document(*each))


def seconds(text: str) -> float:
    return utc(text).timestamp()
