"""GSF Impact Framework: a manifest from which `if-run` computes the carbon itself, out of our
energies and grid factors.

One group a statement, in it one child a component of the marginal ledger, one input a row of its
series. What if-run 1.1.0 does shapes it:

* It adds up the nth outputs of a group's children, whatever their times are, and drops what lies beyond the first child's. So the children
  of a group all have the same times; where a component has no row, it has 0 kWh there, since its
  rows add up to it.
* It adds up whatever lies below one node. Runs that were recorded, such as the jobs of a fleet, do add up: they share one row a UTC day.
  What is worked out may be alternatives. So a tree with several of those begins with a child
  without outputs, after which if-run has no sum for the whole.
* A mean over runs is no ratio of their totals either, so where runs add up there is no SCI.
* Its Sci takes no interval below 1 s. A shorter row is merged into the next (the last one into the one before), in all children of the
  group alike: energies added, intensities weighted by them, so that the carbon stays. A statement
  shorter than that is left out.
* Sci divides row by row, and the mean of rows is no ratio of totals. So each row is divided by the count of the whole run and the rows are
  summed: carbon over count. A count of 0 would give the carbon itself; there is no SCI then, and
  none where embodied carbon is not known.
* It evaluates texts among the inputs as arithmetic. So inputs hold numbers and a timestamp, and names are keys of the tree.

A component whose energy or grid factor is not known is left out, and the description says so.
Market-based figures are not in the file: SCI (ISO/IEC 21031) takes location-based or marginal
factors only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from ckptcost.errors import InputError
from ckptcost.exports.formats import Files
from ckptcost.exports.texts import yaml_number as number
from ckptcost.exports.texts import yaml_quoted as quoted
from ckptcost.report import sci
from ckptcost.report.document import Report
from ckptcost.report.parts import Component, Factor, Quantity
from ckptcost.report.statement import Series, Statement, instant, utc

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
      config: {input-parameters: [energy, grid/carbon-intensity], output-parameter: carbon-operational}
      parameter-metadata:
        inputs:
          energy: {unit: kWh, description: what checkpoints and failures add, aggregation-method: {time: sum, component: sum}}
          grid/carbon-intensity: {unit: gCO2e/kWh, description: location-based, aggregation-method: {time: none, component: none}}
        outputs:
          carbon-operational: {unit: gCO2e, description: energy times intensity, aggregation-method: {time: sum, component: sum}}
    carbon:
      path: builtin
      method: Sum
      config: {input-parameters: [carbon-operational, carbon-embodied], output-parameter: carbon}
      parameter-metadata:
        inputs:
          carbon-embodied: {unit: gCO2e, description: share of making the hardware, aggregation-method: {time: sum, component: sum}}
        outputs:
          carbon: {unit: gCO2e, description: operational and known embodied, aggregation-method: {time: sum, component: sum}}
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
          UNIT: {unit: none, description: of the whole run, aggregation-method: {time: copy, component: copy}}
        outputs:
          sci-per-UNIT: {unit: gCO2e, description: carbon per UNIT, aggregation-method: {time: sum, component: sum}}
"""


class Child(NamedTuple):
    component: Component
    energy_kwh: list[float]
    grid_g_per_kwh: list[float]
    embodied_g: list[float] | None


Told = dict[str, tuple[Component, list[int]]]
"""components by id, with the numbers of their rows"""
Slots = tuple[list[str], list[float], dict[str, int]]
"""when each begins, how long it lasts, and which one holds the rows that begin then"""


class Group(NamedTuple):
    """What if-run can compute of a statement, and what not."""

    statement: Statement
    start: list[str]
    duration_s: list[float]
    children: list[Child]
    left_out: list[str]


def export(document: Report) -> Files:
    found = [(s, *_told(s)) for s in document.statements]
    every = [row for s, told, _ in found for row in _times(s, told)]
    shared = _days(every) if _adds_up(document) else None
    groups = [_group(s, told, left_out, shared) for s, told, left_out in found]
    told = [group for group in groups if group.children]
    if not told:
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
    return {"manifest.yaml": _pieces(document, groups, told)}


def _adds_up(document: Report) -> bool:
    """Several runs that all took place; what is only worked out may be ways to do one job."""
    found = document.statements
    return len(found) > 1 and all(s.kind != "modelled" for s in found)


def _told(s: Statement) -> tuple[Told, list[str]]:
    """Components that if-run can compute, with their rows; and what is left out."""
    series, left_out = s.series, []
    rows: dict[str, list[int]] = {}
    for n, line in enumerate(series.component if series else ()):
        rows.setdefault(line, []).append(n)
    told: Told = {}
    for c in s.marginal():
        at = rows.get(c.id, [])
        if c.energy.value is None:
            left_out.append(f"{c.id} (energy unknown)")
        elif not series or not at:
            left_out.append(
                f"{c.id} (known to be 0)"
                if c.energy.value == 0.0
                else f"{c.id} ({c.energy.value!r} kWh, dates unknown)"
            )
        elif any(series.energy_kwh[n] is None for n in at):
            left_out.append(f"{c.id} (energy of some rows unknown)")
        elif any(series.grid_kgco2e_per_kwh[n] is None for n in at):
            left_out.append(f"{c.id} ({c.energy.value!r} kWh, grid factor unknown)")
        else:
            told[c.id] = (c, at)
    return told, left_out


def _group(s: Statement, told: Told, left_out: list[str], shared: Slots | None) -> Group:
    series = s.series
    start, duration_s, slot = shared or _slots(_times(s, told))
    if told and duration_s[0] < SHORTEST_S:
        return Group(
            s, [], [], [], [*left_out, f"{', '.join(told)} (shorter than {SHORTEST_S:g} s in all)"]
        )
    grid_then: list[float] = [0.0] * len(start)
    children = [_child(c, at, series, slot, grid_then) for c, at in told.values() if series]
    for child in children:
        child.grid_g_per_kwh[:] = [
            there if g is None else g
            for g, there in zip(child.grid_g_per_kwh, grid_then, strict=True)
        ]
    return Group(s, start, duration_s, children, left_out)


def _times(s: Statement, told: Told) -> list[tuple[str, float]]:
    series = s.series
    every = [n for _, at in told.values() for n in at]
    return [(series.start[n], series.duration_s[n]) for n in every] if series else []


def _slots(rows: list[tuple[str, float]]) -> Slots:
    """Times that all children of a group share, none shorter than a second where there is a longer
    neighbour; and where each row goes."""
    length: dict[str, float] = {}
    for text, seconds in rows:
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


def _days(rows: list[tuple[str, float]]) -> Slots:
    """Times that several runs share: what begins on one UTC day goes into one."""
    ends: dict[float, float] = {}
    day: dict[str, float] = {}
    for text, seconds in rows:
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
    c: Component, at: list[int], series: Series, slot: Mapping[str, int], grid_then: list[float]
) -> Child:
    energy, embodied = [0.0] * len(grid_then), [0.0] * len(grid_then)
    grid: list[Any] = [None] * len(
        grid_then
    )  # None only until every child of the group has its rows
    knows_embodied = c.embodied.value is not None and all(
        series.embodied_kgco2e[n] is not None for n in at
    )
    for n in at:
        k, kwh, g = (
            slot[series.start[n]],
            series.energy_kwh[n] or 0.0,
            (series.grid_kgco2e_per_kwh[n] or 0.0) * GRAMS,
        )
        both = energy[k] + kwh
        grid[k] = grid_then[k] = (
            g if grid[k] is None or both == 0.0 else grid[k] * (energy[k] / both) + g * (kwh / both)
        )
        energy[k] = both
        if knows_embodied:
            embodied[k] += (series.embodied_kgco2e[n] or 0.0) * GRAMS
    return Child(c, energy, grid, embodied if knows_embodied else None)


def _pieces(document: Report, groups: list[Group], told: list[Group]) -> Iterator[str]:
    children = [child for group in told for child in group.children]
    whole = all(child.embodied_g is not None for child in children)
    apart = len(told) > 1 and not _adds_up(document)
    units = (
        _units(told)
        if whole
        and (len(told) == 1 or apart)
        and all(kwh >= 0.0 for child in children for kwh in child.energy_kwh)
        else []
    )
    name = told[0].statement.subject.name if len(groups) == 1 else f"{len(groups)} statements"
    yield f"name: {quoted(f'ckptcost: {name}')}\n"
    yield f"description: {quoted(_description(document, groups, whole, units))}\n"
    yield (
        'tags: {kind: "memo_item", category: "what checkpoints and failures add to AI training"}\n'
    )
    metrics = [
        "energy",
        "carbon-operational",
        *(["carbon-embodied"] if whole else []),
        "carbon",
        *units,
        *(f"sci-per-{unit}" for unit in units),
    ]
    yield f"aggregation: {{metrics: [{', '.join(metrics)}], type: both}}\n"
    yield _PLUGINS + "".join(_SCI.replace("UNIT", unit) for unit in units)
    yield (
        "tree:\n  pipeline: {compute:"
        f" [{', '.join(['operational', 'carbon', *(f'sci-per-{unit}' for unit in units)])}]}}\n "
        " children:\n"
    )
    if apart:
        yield f"    {quoted(NO_SUM)}: {{pipeline: {{compute: []}}, outputs: []}}\n"
    seen: set[str] = set()
    for n, group in enumerate(told, start=1):
        key = "run " + group.statement.subject.run_id
        yield from _tree(f"{key} ({n})" if key in seen else key, group, units)
        seen.add(key)


def _units(told: list[Group]) -> list[str]:
    """Functional units that every statement counts: if-run sums what all of its nodes have."""
    counts = [_counts(group.statement) for group in told]
    return [
        name
        for name in counts[0]
        if _UNIT.fullmatch(name) and all(each.get(name, 0.0) > 0.0 for each in counts)
    ]


def _counts(s: Statement) -> dict[str, float]:
    return {name: count for name, count, _ in sci.units(s) if count is not None}


def _description(document: Report, groups: list[Group], whole: bool, units: list[str]) -> str:
    says = [
        f"What checkpoints and failures add to training, by ckptcost {document.tool.version}.",
        (
            "Memo items: these kWh already sit in the facility's meter, do not add them to an"
            " inventory."
        ),
        "energy in kWh, grid/carbon-intensity in gCO2e/kWh, location-based, carbon in gCO2e.",
        (
            "Market-based figures are not here: SCI (ISO/IEC 21031) takes location-based or"
            " marginal factors only."
        ),
        (
            "Under 'statement' and 'component' stand our own figures, to compare with what if-run"
            " computes; low and high with them."
        ),
    ]
    if _adds_up(document):
        says.append(
            "Runs that took place: if-run adds them up, a row a UTC day. There is no SCI of"
            " several; export a run alone for its own."
        )
    elif len(groups) > 1:
        says.append("Statements may be alternatives: there is no sum over them.")
    if not whole:
        says.append(
            "Where a child has no carbon-embodied, it is not known: its carbon is the operational"
            " alone, and there is no SCI."
        )
    elif units:
        says.append(
            "sci is of what checkpoints and failures add, from totals: each row over the count of"
            " the whole run, rows summed."
        )
    for group in groups:
        s = group.statement
        how = (
            f"{s.kind}{', METERS WERE SIMULATED' if s.simulated else ''}, {s.how}; method"
            f" {s.method_version}"
        )
        ends = f"counterfactual: {s.boundary.counterfactual}; low and high: {s.uncertainty}"
        says.append(
            f"{s.subject.run_id} ({s.subject.name}): {how}; {ends}; left out:"
            f" {', '.join(group.left_out) or 'nothing'}."
        )
    return " ".join(says)


def _tree(key: str, group: Group, units: list[str]) -> Iterator[str]:
    counts = _counts(group.statement)
    yield f"    {quoted(key)}:\n      statement: {_flow(_of_statement(group))}\n"
    yield (
        f"      defaults: {_flow({unit: counts[unit] for unit in units})}\n      children:\n"
        if units
        else "      children:\n"
    )
    when = [
        f"{quoted(start)}, duration: {number(seconds)}"
        for start, seconds in zip(group.start, group.duration_s, strict=True)
    ]
    for child in group.children:
        c = child.component
        about = {
            "label": c.label,
            "cause": c.cause,
            "boundary": c.boundary,
            "basis": c.basis,
            "rests-on": c.rests_on,
            **_figures(c),
        }
        yield f"        {quoted(c.id)}:\n          component: {_flow(about)}\n"
        if child.embodied_g is None:
            yield "          pipeline: {compute: [operational, carbon-without-embodied]}\n"
        made = (
            repeat("")
            if child.embodied_g is None
            else (f", carbon-embodied: {number(g)}" for g in child.embodied_g)
        )
        rows = zip(
            when,
            map(number, child.energy_kwh),
            map(number, child.grid_g_per_kwh),
            made,
            strict=False,
        )
        lines = [
            f"            - {{timestamp: {t}, energy: {kwh}, grid/carbon-intensity: {g}{m}}}\n"
            for t, kwh, g, m in rows
        ]
        yield "          inputs:\n" + "".join(lines)


def _of_statement(group: Group) -> dict[str, Any]:
    """What it is, our own totals, and the factors behind them."""
    s = group.statement
    lines = [*(child.component for child in group.children), s.totals]
    used = {name for line in lines for what in FIGURES for name in getattr(line, what).factors}
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
