"""GSF Impact Framework: a manifest from which `if-run` computes the carbon itself, out of our
energies and grid factors.

One group a statement, in it one child a component of the marginal ledger, one input a row of its
series. What if-run 1.1.0 does shapes it:

* It adds up the nth outputs of a group's children, whatever their times are, and drops what lies
  beyond the first child's. So the children of a group all have the same times; where a component
  has no row, it has 0 kWh there, since its rows add up to it.
* It adds up whatever lies below one node. Runs that were recorded, such as the jobs of a fleet, do
  add up: they share one row a UTC day. What is worked out may be alternatives. So a tree with
  several of those begins with a child without outputs, after which if-run has no sum for the whole.
* A mean over runs is no ratio of their totals either, so where runs add up there is no SCI.
* Its Sci takes no interval below 1 s. A shorter row is merged into the next (the last one into the
  one before), in all children of the group alike: energies added, intensities weighted by them, so
  that the carbon stays. A statement shorter than that is left out.
* Sci divides row by row, and the mean of rows is no ratio of totals. So each row is divided by the
  count of the whole run and the rows are summed: carbon over count. A count of 0 would give the
  carbon itself; there is no SCI then, and none where embodied carbon is not known.
* It evaluates texts among the inputs as arithmetic. So inputs hold numbers and a timestamp, and
  names are keys of the tree.

A component whose energy or grid factor is not known is left out, and the description says so.
Market-based figures are not in the file: SCI (ISO/IEC 21031) takes location-based or marginal
factors only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.texts import quote_yaml as quoted
from ckptcost.first.exports.texts import yaml_number as number
from ckptcost.first.report import sci
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Component, Factor, Quantity
from ckptcost.first.report.statement import Statement, instant, utc

SHORTEST_S, DAY_S = 1.0, 86400.0
GRAMS = 1000.0
"""in a kilogram: the manifest counts carbon in grams"""
FIGURES = {
    "energy": ("energy", 1.0),
    "emissions_location": ("carbon-operational", GRAMS),
    "embodied": ("carbon-embodied", GRAMS),
}
"""of a statement: their names and units there"""
NO_SUM = "no sum over statements"
_UNIT = re.compile(r"[a-zA-Z]+(?:[-_][a-zA-Z]+)*")
"""names of functional units that if-run does not take for arithmetic"""
_PLUGINS = """\
initialize:
  plugins:
    operational:
      path: builtin
      method: Multiply
      config: {input-parameters: [energy, grid/carbon-intensity], \
output-parameter: carbon-operational}
      parameter-metadata:
        inputs:
          energy: {unit: kWh, description: what checkpoints and failures add, \
aggregation-method: {time: sum, component: sum}}
          grid/carbon-intensity: {unit: gCO2e/kWh, description: location-based, \
aggregation-method: {time: none, component: none}}
        outputs:
          carbon-operational: {unit: gCO2e, description: energy times intensity, \
aggregation-method: {time: sum, component: sum}}
    carbon:
      path: builtin
      method: Sum
      config: {input-parameters: [carbon-operational, carbon-embodied], output-parameter: carbon}
      parameter-metadata:
        inputs:
          carbon-embodied: {unit: gCO2e, description: share of making the hardware, \
aggregation-method: {time: sum, component: sum}}
        outputs:
          carbon: {unit: gCO2e, description: operational and known embodied, \
aggregation-method: {time: sum, component: sum}}
    carbon-without-embodied:
      path: builtin
      method: Sum
      config: {input-parameters: [carbon-operational], output-parameter: carbon}
"""
_SCI = """\
    sci-per-UNIT:
      path: builtin
      method: Sci
      config: {functional-unit: UNIT}
      mapping: {sci: sci-per-UNIT}
      parameter-metadata:
        inputs:
          UNIT: {unit: none, description: of the whole run, \
aggregation-method: {time: copy, component: copy}}
        outputs:
          sci-per-UNIT: {unit: gCO2e, description: carbon per UNIT, \
aggregation-method: {time: sum, component: sum}}
"""


SeriesRow = tuple[str, float, float | None, float | None, float | None]
"""of a series: start, seconds, kWh, kgCO2e per kWh, kgCO2e embodied"""
Computable = list[tuple[Component, list[SeriesRow]]]
Slots = tuple[list[str], list[float], dict[str, int]]
"""when each begins, how long it lasts, and which one holds the rows that begin then"""


class ManifestChild(NamedTuple):
    component: Component
    energy_kwh: list[float]
    grid_g_per_kwh: list[float | None]
    """None: it has no row then"""
    embodied_g: list[float] | None


class ManifestGroup(NamedTuple):
    """What if-run can compute of a statement, and what not."""

    statement: Statement
    start: list[str]
    duration_s: list[float]
    children: list[ManifestChild]
    left_out: list[str]


def export(document: Report) -> Files:
    found = [(s, *_computable(s)) for s in document.statements]
    every = [row for _, computable, _ in found for row in _rows(computable)]
    shared = _days(every) if _adds_up(document) else None
    groups = [_group(s, computable, left_out, shared) for s, computable, left_out in found]
    computed = [group for group in groups if group.children]
    if not computed:
        why = "; ".join(
            f"{group.statement.subject.name}: {', '.join(group.left_out) or 'no rows'}"
            for group in groups
        )
        raise InputError(
            f"no component has dates, energy and a grid factor ({why})",
            where="--to impact-framework",
            remedy=(
                "give what is unknown, e.g. a grid with --grid or --set site.grid_location=380g/kWh"
            ),
        )
    return {"manifest.yaml": _pieces(document, groups, computed)}


def _adds_up(document: Report) -> bool:
    """Several runs that all took place; what is only worked out may be ways to do one job."""
    found = document.statements
    return len(found) > 1 and all(s.kind != "modelled" for s in found)


def _computable(s: Statement) -> tuple[Computable, list[str]]:
    """Components that if-run can compute, with their rows; and what is left out."""
    rows: dict[str, list[SeriesRow]] = {}
    if series := s.series:
        for line, *row in zip(
            series.component,
            series.start,
            series.duration_s,
            series.energy_kwh,
            series.grid_kgco2e_per_kwh,
            series.embodied_kgco2e,
            strict=True,
        ):
            rows.setdefault(line, []).append(tuple(row))
    computable: Computable = []
    left_out = []
    for c in s.marginal():
        if why := _why_not(c, rows.get(c.id, [])):
            left_out.append(f"{c.id} ({why})")
        else:
            computable.append((c, rows[c.id]))
    return computable, left_out


def _why_not(c: Component, rows: list[SeriesRow]) -> str:
    if c.energy.value is None:
        return "energy unknown"
    if not rows:
        return f"{c.energy.value!r} kWh, dates unknown" if c.energy.value else "known to be 0"
    if any(kwh is None for _, _, kwh, _, _ in rows):
        return "energy of some rows unknown"
    if any(grid is None for _, _, _, grid, _ in rows):
        return f"{c.energy.value!r} kWh, grid factor unknown"
    return ""


def _rows(computable: Computable) -> list[SeriesRow]:
    return [row for _, rows in computable for row in rows]


def _group(
    s: Statement, computable: Computable, left_out: list[str], shared: Slots | None
) -> ManifestGroup:
    start, duration_s, slot = shared or _slots(_rows(computable))
    if computable and duration_s[0] < SHORTEST_S:
        short = ", ".join(c.id for c, _ in computable)
        return ManifestGroup(
            s, [], [], [], [*left_out, f"{short} (shorter than {SHORTEST_S:g} s in all)"]
        )
    children = [_child(c, rows, slot, len(start)) for c, rows in computable]
    _fill_grids([child.grid_g_per_kwh for child in children])
    return ManifestGroup(s, start, duration_s, children, left_out)


def _fill_grids(grids: list[list[float | None]]) -> None:
    """Where a child has no row, the factor of one that has."""
    for n, at_once in enumerate(zip(*grids, strict=True)):
        there = [grams for grams in at_once if grams is not None] or [0.0]
        for grid in grids:
            if grid[n] is None:
                grid[n] = there[-1]


def _slots(rows: list[SeriesRow]) -> Slots:
    """Times that all children of a group share, none shorter than a second where there is a longer
    neighbour; and where each row goes."""
    length: dict[str, float] = {}
    for text, seconds, *_ in rows:
        length[text] = max(length.get(text, 0.0), seconds)
    start: list[str] = []
    duration_s: list[float] = []
    slot: dict[str, int] = {}
    for text in sorted(length, key=utc):
        if not start or duration_s[-1] >= SHORTEST_S:
            start.append(text)
            duration_s.append(length[text])
        else:
            duration_s[-1] += length[text]
        slot[text] = len(start) - 1
    if len(start) > 1 and duration_s[-1] < SHORTEST_S:
        start.pop()
        rest_s = duration_s.pop()
        duration_s[-1] += rest_s
        slot = {text: min(n, len(start) - 1) for text, n in slot.items()}
    return start, duration_s, slot


def _days(rows: list[SeriesRow]) -> Slots:
    """Times that several runs share: what begins on one UTC day goes into one."""
    ends: dict[float, float] = {}
    day: dict[str, float] = {}
    for text, seconds, *_ in rows:
        begin_s = utc(text).timestamp()
        day[text] = begin_s // DAY_S * DAY_S
        ends[day[text]] = max(ends.get(day[text], 0.0), begin_s + seconds)
    at = {begin_s: n for n, begin_s in enumerate(sorted(ends))}
    return (
        [instant(begin_s) for begin_s in at],
        [max(ends[begin_s] - begin_s, SHORTEST_S) for begin_s in at],
        {text: at[begin_s] for text, begin_s in day.items()},
    )


def _child(
    c: Component, rows: list[SeriesRow], slot: Mapping[str, int], slots: int
) -> ManifestChild:
    energy, embodied = [0.0] * slots, [0.0] * slots
    grid: list[float | None] = [None] * slots
    for start, _, energy_kwh, kg_per_kwh, embodied_kg in rows:
        n, kwh, grams = slot[start], energy_kwh or 0.0, (kg_per_kwh or 0.0) * GRAMS
        both, before = energy[n] + kwh, grid[n]
        if before is None or both == 0.0:
            grid[n] = grams
        else:
            grid[n] = before * (energy[n] / both) + grams * (kwh / both)
        energy[n] = both
        embodied[n] += (embodied_kg or 0.0) * GRAMS
    known = c.embodied.value is not None and all(kg is not None for *_, kg in rows)
    return ManifestChild(c, energy, grid, embodied if known else None)


def _pieces(
    document: Report, groups: list[ManifestGroup], computed: list[ManifestGroup]
) -> Iterator[str]:
    whole = _knows_embodied(computed)
    sums_up = len(computed) > 1 and _adds_up(document)
    units = _units(computed) if whole and not sums_up else []
    per_unit = [f"sci-per-{unit}" for unit in units]
    name = computed[0].statement.subject.name if len(groups) == 1 else f"{len(groups)} statements"
    embodied = ["carbon-embodied"] if whole else []
    metrics = ["energy", "carbon-operational", *embodied, "carbon", *units, *per_unit]
    yield f"name: {quoted(f'ckptcost: {name}')}\n"
    yield f"description: {quoted(' '.join(_description(document, groups, whole, units)))}\n"
    yield (
        'tags: {kind: "memo_item", category: "what checkpoints and failures add to AI training"}\n'
    )
    yield f"aggregation: {{metrics: [{', '.join(metrics)}], type: both}}\n"
    yield _PLUGINS + "".join(_SCI.replace("UNIT", unit) for unit in units)
    compute = ", ".join(["operational", "carbon", *per_unit])
    yield f"tree:\n  pipeline: {{compute: [{compute}]}}\n  children:\n"
    if len(computed) > 1 and not sums_up:
        yield f"    {quoted(NO_SUM)}: {{pipeline: {{compute: []}}, outputs: []}}\n"
    yield from _trees(computed, units)


def _knows_embodied(computed: list[ManifestGroup]) -> bool:
    return all(child.embodied_g is not None for group in computed for child in group.children)


def _trees(computed: list[ManifestGroup], units: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    for n, group in enumerate(computed, start=1):
        key = "run " + group.statement.subject.run_id
        yield from _tree(f"{key} ({n})" if key in seen else key, group, units)
        seen.add(key)


def _units(computed: list[ManifestGroup]) -> list[str]:
    """Functional units that every statement counts: if-run sums what all of its nodes have. None
    where a row's energy is negative."""
    children = [child for group in computed for child in group.children]
    if any(kwh < 0.0 for child in children for kwh in child.energy_kwh):
        return []
    counts = [_counts(group.statement) for group in computed]
    return [
        name
        for name in counts[0]
        if _UNIT.fullmatch(name) and all(each.get(name, 0.0) > 0.0 for each in counts)
    ]


def _counts(s: Statement) -> dict[str, float]:
    return {name: count for name, count, _ in sci.units(s) if count is not None}


def _description(
    document: Report, groups: list[ManifestGroup], whole: bool, units: list[str]
) -> Iterator[str]:
    yield (
        "What checkpoints and failures add to training, by ckptcost"
        f" {document.tool.version}. Memo items: these kWh already sit in the facility's meter, do"
        " not add them to an inventory. energy in kWh, grid/carbon-intensity in gCO2e/kWh,"
        " location-based, carbon in gCO2e. Market-based figures are not here: SCI (ISO/IEC 21031)"
        " takes location-based or marginal factors only. Under 'statement' and 'component' stand"
        " our own figures, to compare with what if-run computes; low and high with them."
    )
    if _adds_up(document):
        yield (
            "Runs that took place: if-run adds them up, a row a UTC day. There is no SCI of"
            " several; export a run alone for its own."
        )
    elif len(groups) > 1:
        yield "Statements may be alternatives: there is no sum over them."
    if not whole:
        yield (
            "Where a child has no carbon-embodied, it is not known: its carbon is the operational"
            " alone, and there is no SCI."
        )
    elif units:
        yield (
            "sci is of what checkpoints and failures add, from totals: each row over the count of"
            " the whole run, rows summed."
        )
    for s, _, _, _, left_out in groups:
        yield (
            f"{s.subject.run_id} ({s.subject.name}):"
            f" {s.kind}{', METERS WERE SIMULATED' * s.simulated}, {s.how}; method"
            f" {s.method_version}; counterfactual: {s.boundary.counterfactual}; low and high:"
            f" {s.uncertainty}; left out: {', '.join(left_out) or 'nothing'}."
        )


def _tree(key: str, group: ManifestGroup, units: list[str]) -> Iterator[str]:
    counts = _counts(group.statement)
    yield f"    {quoted(key)}:\n      statement: {_flow(_of_statement(group))}\n"
    if units:
        yield f"      defaults: {_flow({unit: counts[unit] for unit in units})}\n"
    yield "      children:\n"
    when = [
        f"{quoted(start)}, duration: {number(seconds)}"
        for start, seconds in zip(group.start, group.duration_s, strict=True)
    ]
    for c, energy_kwh, grid, embodied_g in group.children:
        about = {
            "label": c.label,
            "cause": c.cause,
            "boundary": c.boundary,
            "basis": c.basis,
            "rests-on": c.rests_on,
            **_figures(c),
        }
        yield f"        {quoted(c.id)}:\n          component: {_flow(about)}\n"
        made: Iterable[str] = repeat("")
        if embodied_g is None:
            yield "          pipeline: {compute: [operational, carbon-without-embodied]}\n"
        else:
            made = (f", carbon-embodied: {number(g)}" for g in embodied_g)
        rows = zip(when, energy_kwh, grid, made, strict=False)
        yield "          inputs:\n" + "".join(
            f"            - {{timestamp: {t}, energy: {number(kwh)}, grid/carbon-intensity:"
            f" {number(g or 0.0)}{more}}}\n"
            for t, kwh, g, more in rows
        )


def _of_statement(group: ManifestGroup) -> dict[str, Any]:
    """What it is, our own totals, and the factors behind them."""
    s = group.statement
    lines = [*(child.component for child in group.children), s.totals]
    used = {name for line in lines for what in FIGURES for name in s.rests_of(getattr(line, what))}
    about = {
        "id": s.id,
        "run-id": s.subject.run_id,
        "name": s.subject.name,
        "kind": s.kind,
        "simulated": s.simulated,
        "method-version": s.method_version,
        "inventory-treatment": s.boundary.inventory_treatment,
        "period-start": s.period_start,
        "period-end": s.period_end,
        "grid-zone": s.subject.grid_zone,
        "grid-method": s.grid_method,
        "pue": s.boundary.pue,
        "pue-included-in-energy": s.boundary.pue_included_in_energy,
    }
    return {
        **about,
        **_figures(s.totals),
        "left-out": group.left_out,
        "factors": [_of_factor(f) for f in s.factors if f.id in used],
    }


def _of_factor(f: Factor) -> dict[str, Any]:
    sources = [
        {"title": each.title, "publisher": each.publisher, "url": each.url, "licence": each.licence}
        for each in f.sources
    ]
    return {
        "id": f.id,
        "value": f.value,
        "unit": f.unit,
        "text": f.text,
        "origin": f.origin,
        "set-by": f.set_by,
        "sources": sources,
    }


def _figures(line: Any) -> dict[str, Any]:
    """Our own figures in the manifest's units."""
    found: dict[str, Any] = {}
    for what, (name, unit) in FIGURES.items():
        quantity: Quantity = getattr(line, what)
        for end, value in (("", quantity.value), ("-low", quantity.low), ("-high", quantity.high)):
            found[name + end] = None if value is None else value * unit
        if quantity.excludes:
            found[name + "-excludes"] = quantity.excludes
    return found


def _flow(value: Any) -> str:
    """YAML in one line; None among a mapping's values is left out."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items() if each is not None)
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, int | float) else quoted(str(value))
