"""A statement put into time: rows by the hour or quicker, each with the grid factor of that time;
contracts make the market-based one.

Energies, GPU-hours, dollars and embodied carbon stay what they were. Where factors change with
time, emissions are the sum of the rows'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ckptcost.first.catalog.contracts import Bought, SiteContracts
from ckptcost.first.catalog.grid_hours import GridHours
from ckptcost.first.core.channels import LONGEST_RUN_S
from ckptcost.first.core.hourly import (
    Floats,
    Steps,
    contract_factor,
    edges_of,
    mean_over,
    width_for,
)
from ckptcost.first.core.units import KWH_J, YEAR_S
from ckptcost.first.errors import Argument, InputError
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.parts import Component, Factor, Quantity, Source, Totals, Warned
from ckptcost.first.report.rows_of_time import (
    RowFactors,
    checkpoints_of,
    number_or_nan,
    placed_of,
    series_of,
)
from ckptcost.first.report.statement import Contract, Series, Statement, instant, utc
from ckptcost.first.report.statements.bill import Rests
from ckptcost.first.report.sums import has_total

MOST_ROWS = 1_000_000
"""some seven seconds and 700 MB of a format that has them all"""
_INSTANT_S = 0.002
"""instants of a document have milliseconds: ends that lie closer are one"""
LOCATION, MARKET = "site.grid_location", "site.grid_market"


def date_statement(
    s: Statement,
    start_s: float | None = None,
    grid: GridHours | None = None,
    sites: Mapping[str, SiteContracts] | None = None,
) -> Statement:
    """The statement with its dates and rows, under the factors that are given; without them under
    its own."""
    site = _site(s, sites)
    period = _period(s, start_s)
    if period is None:
        return _price_undated(s, grid, site)
    begin_s, end_s = (round(each, 3) for each in period)  # as documents tell instants
    steps = None if site is None else _market_steps(site, begin_s, end_s)
    # a period's own ends are cuts anyway, so only changes inside it ask for narrower rows
    width_s = width_for(None if grid is None else grid.steps, _inner(steps))
    divided = _rows_divided(s, width_s)
    if s.series is not None:
        width_s = min(width_s, s.series.width_s)  # its factors are of its own rows
    edges = edges_of(begin_s, end_s, width_s)
    placed = placed_of(s, begin_s, end_s)
    if (len(edges) - 1) * max(len(placed), 1) > MOST_ROWS:
        raise InputError(
            f"{s.subject.name} is {len(edges) - 1:,} rows of time long, too many for {len(placed)}"
            " components",
            remedy="leave it out with --case, which names the one to tell",
        )
    factors = RowFactors(_location(s, grid, edges), _market(s, site, steps, edges))
    series = series_of(placed, edges, width_s, factors, checkpoints_of(s, placed, edges))
    changed = _apply_factors(s, grid and series, site and series, grid, site)
    return changed.model_copy(
        update={
            "series": series,
            "period_start": instant(begin_s),
            "period_end": instant(end_s),
            "length_s": end_s - begin_s,
            "warnings": [*s.warnings, *divided],
        }
    )


def _price_undated(s: Statement, grid: GridHours | None, site: SiteContracts | None) -> Statement:
    """What can be said without dates: contracts that hold at any time."""
    bounds = [
        end_s for each in (site.bought if site else ()) for end_s in (each.begin_s, each.end_s)
    ]
    if grid is not None or any(map(math.isfinite, bounds)):
        raise InputError(
            f"{s.subject.name} has no dates, and factors that change with time need them",
            remedy='give --start, e.g. "2026-11-01T00:00Z"',
        )
    return s if site is None else _apply_factors(s, None, _factor_at(site, 0.0), None, site)


def _rows_divided(s: Statement, width_s: float) -> list[Warned]:
    if s.series is None or width_s >= s.series.width_s:
        return []
    text = (
        f"Rows of {s.series.width_s:g} s were divided evenly into rows of {width_s:g} s: when in"
        " them energy was used is not known."
    )
    return [Warned(code="ROWS_DIVIDED", message=text)]


def _period(s: Statement, start_s: float | None) -> tuple[float, float] | None:
    if s.period_start is not None and s.period_end is not None:
        if start_s is not None:
            raise InputError(
                f"{s.subject.name} has dates of its own, from {s.period_start}",
                where=Argument("start"),
                remedy="leave it out",
            )
        return utc(s.period_start).timestamp(), utc(s.period_end).timestamp()
    if start_s is None:
        return None
    if s.length_s is None:
        raise InputError(
            f"{s.subject.name} never ends, so it has no period", where=Argument("start")
        )
    if not 0 <= s.length_s < LONGEST_RUN_S:
        raise InputError(
            f"{s.subject.name} is {s.length_s / YEAR_S:,.4g} years long, and dates are for at most"
            f" {LONGEST_RUN_S / YEAR_S:.0f}",
            remedy="leave it out with --case, which names the one to tell",
        )
    return start_s, start_s + s.length_s


def _location(s: Statement, grid: GridHours | None, edges: Floats) -> Floats | None:
    if grid is None:
        return _own_factor(s, LOCATION, edges)
    found = mean_over(grid.steps, edges)
    lacking = np.flatnonzero(np.isnan(found))
    if len(lacking):
        first = instant(float(edges[lacking[0]]))
        raise InputError(
            f"has no factor for {len(lacking)} of {len(found)} rows of the run's time, the first"
            f" from {first}",
            where=grid.file,
            remedy=(
                "a factor that is not known is not taken to be like its neighbours: complete the"
                " file"
            ),
        )
    return found


def _own_factor(s: Statement, name: str, edges: Floats) -> Floats | None:
    """The statement's own factor: as its rows have it, else the one it lists."""
    if s.series is not None:
        at = {}
        column = (
            s.series.grid_kgco2e_per_kwh if name == LOCATION else s.series.market_kgco2e_per_kwh
        )
        for start, length_s, value in zip(s.series.start, s.series.duration_s, column, strict=True):
            if value is not None:
                at[utc(start).timestamp()] = (length_s, value)
        if not at:
            return None
        starts = np.array(sorted(at))
        lengths, values = np.array([at[each] for each in starts.tolist()]).T
        ends = starts + lengths
        until = np.append(starts[1:], edges[-1])
        return mean_over(
            Steps(starts, np.where(np.abs(until - ends) < _INSTANT_S, until, ends), values), edges
        )
    value = next((f.value for f in s.factors if f.id == name and f.unit == "kgco2e_per_j"), None)
    return None if value is None else np.full(len(edges) - 1, tidy(value * KWH_J))


def _site(s: Statement, sites: Mapping[str, SiteContracts] | None) -> SiteContracts | None:
    if sites is None:
        return None
    name = s.subject.site_id or ""
    if name not in sites:
        raise InputError(
            f"has no site {name or '(none is said)'}, where {s.subject.name} is",
            where=Argument("contracts"),
            remedy=f"it has {', '.join(sites)}; --site names one",
        )
    return sites[name]


def _factor_at(site: SiteContracts, at_s: float) -> float:
    held = [each for each in site.bought if each.begin_s <= at_s < each.end_s]
    return contract_factor(
        [each.share for each in held], [each.kg_per_kwh for each in held], site.residual_kg_per_kwh
    )


def _market_steps(site: SiteContracts, begin_s: float, end_s: float) -> Steps:
    points = sorted(
        {
            begin_s,
            end_s,
            *(t for each in site.bought for t in (each.begin_s, each.end_s) if begin_s < t < end_s),
        }
    )
    starts, ends = np.array(points[:-1]), np.array(points[1:])
    return Steps(starts, ends, np.array([_factor_at(site, float(each)) for each in starts]))


def _inner(steps: Steps | None) -> Steps | None:
    return None if steps is None else Steps(steps.start_s[1:], steps.end_s[:-1], steps.value[1:])


def _market(
    s: Statement, site: SiteContracts | None, steps: Steps | None, edges: Floats
) -> Floats | None:
    if site is None or steps is None:
        return _own_factor(s, MARKET, edges)
    return mean_over(steps, edges)


_EMISSIONS = (
    ("emissions_location", "emissions_location_kgco2e", LOCATION),
    ("emissions_market", "emissions_market_kgco2e", MARKET),
)
"""each with its column of the series, and the factor that it comes from"""


def _apply_factors(
    s: Statement,
    location: Series | None,
    market: Series | float | None,
    grid: GridHours | None,
    site: SiteContracts | None,
) -> Statement:
    """Components, totals and factors under the factors that were given."""
    rests = Rests(told=s.rests)
    components, factors = list(s.components), {f.id: f for f in s.factors}
    changed = []
    for (field, column, name), by in zip(_EMISSIONS, (location, market), strict=True):
        if by is None:
            continue
        changed.append(field)
        components = _all_under(s, components, field, column, name, by, rests)
        mean = by if isinstance(by, float) else _energy_mean(components, field)
        factors.pop(name, None)
        if mean == mean:
            factors[name] = _factor(name, mean, grid, site)
    update: dict[str, Any] = {
        "components": components,
        "factors": [factors[name] for name in sorted(factors)],
        "totals": _sums_under(s.totals, components, "marginal", changed, rests),
        "allocated": s.allocated
        and _sums_under(s.allocated, components, "allocated", changed, rests),
        "rests": rests.lists,
    }
    if grid is not None:
        # the file's factors took the place of the site's: what those counted says nothing of these
        update["choices"] = s.choices | {"site.grid_method": grid.method}
    if site is not None:
        update["contracts"] = list(map(_contract, site.bought))
    return s.model_copy(update=update)


def _sums_under(
    sums: Totals, components: Sequence[Component], ledger: str, changed: Sequence[str], rests: Rests
) -> Totals:
    mine = [c for c in components if c.ledger == ledger]
    return sums.model_copy(update={what: _total(sums, mine, what, rests) for what in changed})


def _contract(bought: Bought) -> Contract:
    valid_from, valid_until = (
        instant(at_s) if math.isfinite(at_s) else None for at_s in (bought.begin_s, bought.end_s)
    )
    return Contract(
        name=bought.name,
        instrument=bought.instrument,
        share=bought.share,
        kgco2e_per_kwh=bought.kg_per_kwh,
        source=bought.source or None,
        valid_from=valid_from,
        valid_until=valid_until,
    )


def _all_under(
    s: Statement,
    components: Sequence[Component],
    field: str,
    column: str,
    name: str,
    by: Series | float,
    rests: Rests,
) -> list[Component]:
    """The components with one of the two emissions: by their rows, or by one factor."""
    sums = _by_component(by, column) if isinstance(by, Series) else None
    constant = _time_mean(by, name) if isinstance(by, Series) else by
    return [
        _under(
            c,
            field,
            rests.number(sorted({*s.rests_of(c.energy), name})),
            sums if c.ledger == "marginal" else None,
            constant,
        )
        for c in components
    ]


def _energy_mean(components: Sequence[Component], field: str) -> float:
    """Kilograms over the energy that they are of; NaN where there is none."""
    marginal = [c for c in components if c.ledger == "marginal"]
    kg = math.fsum(getattr(c, field).value or 0.0 for c in marginal)
    known = (c.energy.value or 0.0 for c in marginal if getattr(c, field).value is not None)
    energy = math.fsum(known)
    return kg / energy if energy else math.nan


def _by_component(series: Series, column: str) -> dict[str, float]:
    """Sums of the rows; NaN where the factor of one is not known."""
    parts: dict[str, list[float]] = {}
    energies: list[float | None] = series.energy_kwh
    for name, value, energy in zip(
        series.component, getattr(series, column), energies, strict=True
    ):
        parts.setdefault(name, []).append(math.nan if value is None and energy else value or 0.0)
    return {
        name: math.fsum(values) if not any(v != v for v in values) else math.nan
        for name, values in parts.items()
    }


def _under(
    c: Component,
    field: str,
    rests: int | None,
    sums: Mapping[str, float] | None,
    factor: float | None,
) -> Component:
    """The component's emissions: as its rows have them, with the range of its energy. What has no
    rows used nothing, or nobody knows."""
    energy: Quantity = c.energy
    before: Quantity = getattr(c, field)
    kg = math.nan
    if energy.value is not None:
        kg = energy.value * number_or_nan(factor)
        if sums is not None:
            kg = sums.get(c.id, 0.0 if energy.value == 0 else math.nan)
    told = Quantity(
        value=tidy(kg),
        unit="kgCO2e",
        basis="modelled" if before.basis == "measured" else before.basis,
        **_ends_of(energy, kg),
        rests=rests,
        excludes=energy.excludes,
    )
    return c.model_copy(update={field: told})


def _ends_of(energy: Quantity, kg: float | None) -> dict[str, Any]:
    """The range of emissions that come from an energy: as wide as that one's."""
    share = kg / energy.value if energy.value and kg is not None and kg == kg else None
    low, high = (
        None if share is None or bound is None else tidy(bound * share)
        for bound in (energy.low, energy.high)
    )
    interval = energy.interval if low is not None else None
    return {"low": low, "high": high, "interval": interval}


def _time_mean(series: Series, name: str) -> float:
    """Over the hours alone: what stands there anyway draws the same in each. Unknown where one of
    them is."""
    column = series.grid_kgco2e_per_kwh if name == LOCATION else series.market_kgco2e_per_kwh
    first = [
        n for n, component in enumerate(series.component) if component == series.component[0]
    ]  # which has all rows
    lengths = [series.duration_s[n] for n in first]
    factors = [number_or_nan(column[n]) for n in first]
    return (
        math.fsum(f * length_s for f, length_s in zip(factors, lengths, strict=True))
        / math.fsum(lengths)
        if lengths
        else math.nan
    )


def _total(totals: Totals, marginal: Sequence[Component], what: str, rests: Rests) -> Quantity:
    """Their sum, with the range that the energy's sum has: low ends of lines do not add up to a
    sum's."""
    before: Quantity = getattr(totals, what)
    mine: dict[str, Quantity] = {c.id: getattr(c, what) for c in marginal}
    value = None
    if has_total(marginal, what) and totals.energy.value is not None:
        value = tidy(math.fsum(q.value for q in mine.values() if q.value is not None))
    names = {name for q in mine.values() if q.rests is not None for name in rests.lists[q.rests]}
    return before.model_copy(
        update={
            "value": value,
            **_ends_of(totals.energy, value),
            "excludes": [name for name, q in mine.items() if q.value is None],
            "rests": rests.number(sorted(names)),
        }
    )


def _factor(
    name: str, kg_per_kwh: float, grid: GridHours | None, site: SiteContracts | None
) -> Factor:
    """The mean that the rows come to, and where its parts are from."""
    if name == LOCATION and grid is not None:
        source = Source(id="file", title=grid.file, version=f"sha256 {grid.sha256}")
        said = f"each {grid.step_s:g} s, {grid.column}"
        note = "mean weighted with the energy of each row; rows are in the series"
        set_by, meaning = "--grid", "location-based emissions of the grid, by time"
    else:
        bought = site.bought if site else ()
        contracts = "; ".join(each.name for each in bought)
        source = Source(id="contracts", title=contracts or "residual mix")
        said = f"{len(bought)} contracts"
        note = "shares of the contracts, and of the residual mix for the rest"
        set_by, meaning = "--contracts", "market-based emissions of the site"
    return Factor(
        id=name,
        name=meaning,
        value=tidy(kg_per_kwh / KWH_J),
        unit="kgco2e_per_j",
        text=said,
        origin="user",
        set_by=set_by,
        note=note,
        sources=[source],
    )


def start_of(text: str) -> float:
    """When a plan begins, from a flag: ISO 8601 with a zone, or a date, which is midnight UTC.

    >>> instant(start_of("2026-11-01")), instant(start_of("2026-11-01T02:00+02:00"))
    ('2026-11-01T00:00:00Z', '2026-11-01T00:00:00Z')
    """
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no time",
            where=Argument("start"),
            remedy="ISO 8601, e.g. 2026-11-01T00:00Z",
        ) from None
    if when.tzinfo is None and (when.hour or when.minute or when.second):
        raise InputError(
            f"{text!r} names no time zone", where=Argument("start"), remedy="e.g. 2026-11-01T00:00Z"
        )
    found = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if not 0 <= found < 32503680000:
        raise InputError(
            f"{text!r} is out of range", where=Argument("start"), remedy="years 1970 to 2999"
        )
    return found
