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

from ckptcost.catalog.contracts import SiteContracts
from ckptcost.catalog.grid_hours import GridHours
from ckptcost.core.hourly import Floats, Steps, contract_factor, edges_of, mean_over, width_for
from ckptcost.core.units import KWH_J
from ckptcost.errors import Argument, InputError
from ckptcost.report.canonical import tidy
from ckptcost.report.parts import Component, Factor, Quantity, Source, Totals, Warned
from ckptcost.report.rows_of_time import (
    RowFactors,
    checkpoints_of,
    number_or_nan,
    placed_of,
    series_of,
)
from ckptcost.report.statement import Contract, Series, Statement, instant, utc
from ckptcost.report.statements.bill import Rests
from ckptcost.report.sums import has_total

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
    begin_s, end_s = (
        None if each is None else round(each, 3) for each in _period(s, start_s)
    )  # as documents tell instants
    if begin_s is None or end_s is None:
        if grid is not None or (
            site is not None
            and any(
                math.isfinite(each.begin_s) or math.isfinite(each.end_s) for each in site.bought
            )
        ):
            raise InputError(
                f"{s.subject.name} has no dates, and factors that change with time need them",
                remedy='give --start, e.g. "2026-11-01T00:00Z"',
            )
        return s if site is None else _apply_factors(s, None, _constant_market(site), None, site)
    steps = None if site is None else _market_steps(site, begin_s, end_s)
    # a period's own ends are cuts anyway, so only changes inside it ask for narrower rows
    width_s = width_for(None if grid is None else grid.steps, _inner(steps))
    warnings = list(s.warnings)
    if s.series is not None:
        if width_s < s.series.width_s:
            text = (
                f"Rows of {s.series.width_s:g} s were divided evenly into rows of {width_s:g} s:"
                " when in them energy was used is not known."
            )
            warnings.append(Warned(code="ROWS_DIVIDED", message=text))
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
    changed = _apply_factors(
        s, None if grid is None else series, None if site is None else series, grid, site
    )
    return changed.model_copy(
        update={
            "series": series,
            "period_start": instant(begin_s),
            "period_end": instant(end_s),
            "length_s": end_s - begin_s,
            "warnings": warnings,
        }
    )


def _period(s: Statement, start_s: float | None) -> tuple[float | None, float | None]:
    if s.period_start is not None and s.period_end is not None:
        if start_s is not None:
            raise InputError(
                f"{s.subject.name} has dates of its own, from {s.period_start}",
                where=Argument("start"),
                remedy="leave it out",
            )
        return utc(s.period_start).timestamp(), utc(s.period_end).timestamp()
    if start_s is None:
        return None, None
    if s.length_s is None:
        raise InputError(
            f"{s.subject.name} never ends, so it has no period", where=Argument("start")
        )
    return start_s, start_s + s.length_s


def _location(s: Statement, grid: GridHours | None, edges: Floats) -> Floats | None:
    if grid is None:
        return _own_factor(s, LOCATION, edges)
    found = mean_over(grid.steps, edges)
    _require_covered(found, edges, grid.file)
    return found


def _require_covered(found: Floats, edges: Floats, where: str) -> None:
    lacking = np.flatnonzero(np.isnan(found))
    if len(lacking):
        first = instant(float(edges[lacking[0]]))
        raise InputError(
            f"has no factor for {len(lacking)} of {len(found)} rows of the run's time, the first"
            f" from {first}",
            where=where,
            remedy=(
                "a factor that is not known is not taken to be like its neighbours: complete the"
                " file"
            ),
        )


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


def _constant_market(site: SiteContracts) -> float:
    return _factor_at(site, 0.0)


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
    found = mean_over(steps, edges)
    return None if np.all(np.isnan(found)) else found


def _apply_factors(
    s: Statement,
    location: Series | None,
    market: Series | float | None,
    grid: GridHours | None,
    site: SiteContracts | None,
) -> Statement:
    """Components, totals and factors under the factors that were given."""
    update: dict[str, Any] = {}
    components, factors = list(s.components), list(s.factors)
    rests = Rests(told=s.rests)
    for field, column, name, by in (
        ("emissions_location", "emissions_location_kgco2e", LOCATION, location),
        ("emissions_market", "emissions_market_kgco2e", MARKET, market),
    ):
        if by is None:
            continue
        sums = _by_component(by, column) if isinstance(by, Series) else None
        constant = _time_mean(by, name) if isinstance(by, Series) else by
        components = [
            _under(
                c,
                field,
                rests.number(sorted({*s.rests_of(c.energy), name})),
                sums if c.ledger == "marginal" else None,
                constant,
            )
            for c in components
        ]
        energy = math.fsum(
            c.energy.value or 0.0
            for c in components
            if c.ledger == "marginal" and getattr(c, field).value is not None
        )
        kg = math.fsum(getattr(c, field).value or 0.0 for c in components if c.ledger == "marginal")
        mean = by if isinstance(by, float) else kg / energy if energy else math.nan
        factors = [f for f in factors if f.id != name] + (
            [_factor(name, mean, s, grid, site)] if mean == mean else []
        )
    update["components"], update["factors"] = components, sorted(factors, key=lambda f: f.id)
    marginal = [c for c in components if c.ledger == "marginal"]
    changed = [
        what
        for what, by in (("emissions_location", location), ("emissions_market", market))
        if by is not None
    ]
    update["totals"] = s.totals.model_copy(
        update={what: _total(s.totals, marginal, what, rests) for what in changed}
    )
    if s.allocated is not None:
        apart = [c for c in components if c.ledger == "allocated"]
        update["allocated"] = s.allocated.model_copy(
            update={what: _total(s.allocated, apart, what, rests) for what in changed}
        )
    update["rests"] = rests.lists
    if grid is not None:
        # the file's factors took the place of the site's: what those counted says nothing of these
        update["choices"] = s.choices | {"site.grid_method": grid.method}
    if site is not None:
        update["contracts"] = [
            Contract(
                name=each.name,
                instrument=each.instrument,
                share=each.share,
                kgco2e_per_kwh=each.kg_per_kwh,
                source=each.source or None,
                valid_from=instant(each.begin_s) if math.isfinite(each.begin_s) else None,
                valid_until=instant(each.end_s) if math.isfinite(each.end_s) else None,
            )
            for each in site.bought
        ]
    return s.model_copy(update=update)


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
    if energy.value is None:
        kg = math.nan
    elif sums is None:
        kg = energy.value * number_or_nan(factor)
    else:
        kg = sums.get(c.id, 0.0 if energy.value == 0 else math.nan)
    value = tidy(kg)
    share = kg / energy.value if energy.value and kg == kg else None
    low, high = (
        None if share is None or bound is None else tidy(bound * share)
        for bound in (energy.low, energy.high)
    )
    basis = "modelled" if before.basis == "measured" else before.basis
    told = Quantity(
        value=value,
        unit="kgCO2e",
        basis=basis,
        low=low,
        high=high,
        interval=energy.interval if low is not None else None,
        rests=rests,
        excludes=energy.excludes,
    )
    return c.model_copy(update={field: told})


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
    known = {c.id: getattr(c, what).value for c in marginal if getattr(c, what).value is not None}
    value = (
        tidy(math.fsum(known.values()))
        if has_total(marginal, what) and totals.energy.value is not None
        else None
    )
    energy = totals.energy
    share = value / energy.value if value is not None and energy.value else None
    low, high = (
        None if share is None or bound is None else tidy(bound * share)
        for bound in (energy.low, energy.high)
    )
    lacking = [c.id for c in marginal if c.id not in known]
    those = {number for c in marginal if (number := getattr(c, what).rests) is not None}
    lists = rests.lists
    return before.model_copy(
        update={
            "value": value,
            "low": low,
            "high": high,
            "interval": energy.interval if low is not None else None,
            "excludes": lacking,
            "rests": rests.number(sorted({name for number in those for name in lists[number]})),
        }
    )


def _factor(
    name: str, kg_per_kwh: float, s: Statement, grid: GridHours | None, site: SiteContracts | None
) -> Factor:
    """The mean that the rows come to, and where its parts are from."""
    if name == LOCATION and grid is not None:
        source = Source(id="file", title=grid.file, version=f"sha256 {grid.sha256}")
        said, note = (
            f"each {grid.step_s:g} s, {grid.column}",
            "mean weighted with the energy of each row; rows are in the series",
        )
        set_by, meaning = "--grid", "location-based emissions of the grid, by time"
    else:
        contracts = "; ".join(each.name for each in site.bought) if site else ""
        source = Source(id="contracts", title=contracts or "residual mix")
        said, note = (
            f"{len(site.bought) if site else 0} contracts",
            "shares of the contracts, and of the residual mix for the rest",
        )
        set_by, meaning = "--contracts", "market-based emissions of the site"
    value = tidy(kg_per_kwh / KWH_J)
    return Factor(
        id=name,
        name=meaning,
        value=value,
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
