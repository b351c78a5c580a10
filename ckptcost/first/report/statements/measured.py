"""A recorded run as a statement: its saves and loads added up, line by line, each where in time it
was.

Joules are the machine's own unless a scenario says where it stands: then its PUE, prices and grid
factors are applied, once. What was not metered is null with a reason, and where a host's own meters
saw a part of it only, that part is the low end of a range without a high one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.bill import has_no_total
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.hourly import edges_of
from ckptcost.first.core.lines import KINDS, OF_THE_JOB
from ckptcost.first.core.quantities import BY_ID, IN_DOCUMENTS
from ckptcost.first.core.quantities import Quantity as Counted
from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.core.windows import Window
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.measured_bill import gpus_metered, machine_of
from ckptcost.first.present.measured import warning_text
from ckptcost.first.present.words import line_label
from ckptcost.first.report.build import METHOD_VERSION
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.factors import assumptions_of, factor_of
from ckptcost.first.report.parts import (
    Assumption,
    Component,
    Excluded,
    Factor,
    FunctionalUnit,
    RunTotals,
    Warned,
)
from ckptcost.first.report.rows_of_time import AMOUNTS, PlacedAmounts, RowFactors, series_of
from ckptcost.first.report.statement import (
    Boundary,
    Measurement,
    Series,
    Statement,
    Subject,
    instant,
)
from ckptcost.first.report.statements.bill import (
    UNKNOWN_ENDS,
    BilledAmount,
    BilledLine,
    Rests,
    bill_part,
    count_part,
)
from ckptcost.first.report.statements.closed_form import place_of, plain_id
from ckptcost.first.report.statements.run_lines import (
    BELOW_ZERO,
    NOWHERE,
    LineTaken,
    ends_of,
    taken_of,
    without_prices,
)
from ckptcost.first.report.studies.gap_words import why_text
from ckptcost.first.scenario import Resolved

BOUNDS = (
    "how far joules may lie off, as far as the meters' ticks and gaps tell; what is"
    " read off them has the same range"
)


def statement_of(
    m: Measured,
    catalog: Catalog,
    resolved: Resolved | None = None,
    priced: bool = True,
    width_s: float = HOUR_S,
) -> Statement | None:
    """The run's checkpoints; None where it has none. `resolved`: where it stands, and what a GPU
    costs where `priced`."""
    if not m.windows:
        return None
    gpus = gpus_metered(m.energies.parts) if resolved is None else machine_of(m, resolved).gpus
    placed, place = resolved is not None, resolved or _UNPLACED
    s = place.scenario if priced else without_prices(place.scenario)
    by_line = _by_line(taken_of(m, s, gpus, placed))
    factors = [
        Factor.model_validate(factor_of(i, catalog))
        for i in place.inputs
        if _is_used(i.path, priced)
    ]
    billed = [_line(line, those, s) for line, those in by_line.items()]
    bill = bill_part(
        billed,
        lambda _, q: _sum(q, billed),
        rests_on(factors),
        "bounds",
        float(s.cluster.usd_per_gpu_s) * HOUR_S,
    )
    components = [Component.model_validate(each) for each in bill["components"]]
    wall_of = _calendar(m)
    # as documents tell instants
    begin_s, end_s = round(wall_of(m.begin_s), 3), round(wall_of(m.end_s), 3)
    finished = _finished_windows(m)
    saves = float(len(finished))
    return Statement(
        id=f"urn:ckptcost:run:{m.run.id}",
        kind="measured",
        how="a recorded run" if not m.simulated else "a recording of simulated meters",
        simulated=m.simulated,
        method_version=METHOD_VERSION,
        period_start=instant(begin_s),
        period_end=instant(end_s),
        length_s=end_s - begin_s,
        subject=_subject(m, place, gpus),
        boundary=_boundary(components, s, placed),
        totals=RunTotals.model_validate(
            bill["totals"] | {"checkpoints": count_part(saves, "measured")}
        ),
        allocated=None,
        components=components,
        functional_units=[FunctionalUnit(name="checkpoint", count=saves)],
        series=_series(wall_of, by_line, finished, s, begin_s, end_s, width_s),
        factors=factors,
        rests=bill["rests"],
        choices=choices_of_place(place.words),
        assumptions=assumed_factors(factors),
        measurements=_measurements(m),
        uncertainty=BOUNDS,
        warnings=_warnings(m, by_line, placed),
    )


_UNPLACED = Resolved(NOWHERE, (), {}, {}, "", (), {})
"""of a run of which nobody says where it stands"""
_OF_PLACE = ("site.", "cluster.price_includes_electricity")


def choices_of_place(words: Mapping[str, object]) -> dict[str, object]:
    return {key: word for key, word in words.items() if key.startswith(_OF_PLACE)}


def rests_on(factors: Sequence[Factor]) -> Rests:
    """Of each quantity, the factors that are there."""
    names = {f.id for f in factors}
    return Rests(lambda _, of: [name for name in BY_ID[of].rests_on if name in names])


def assumed_factors(factors: Sequence[Factor]) -> list[Assumption]:
    return [Assumption(**each) for each in assumptions_of([f.model_dump() for f in factors])]


ByLine = Mapping[str, Sequence[LineTaken]]


def _by_line(taken: Sequence[LineTaken]) -> ByLine:
    found: dict[str, list[LineTaken]] = {}
    for each in taken:
        found.setdefault(each.line, []).append(each)
    return found


def _subject(m: Measured, place: Resolved, gpus: float) -> Subject:
    host = m.energies.node.host
    words, names = place.words, place.names
    return Subject(
        run_id=plain_id(m.run.id),
        name=f"run {m.kept[:12] or host} on {host}",
        accelerator=_card(m),
        nodes=1.0,
        accelerator_count=None if math.isnan(gpus) else gpus,
        **place_of(
            words.get("site.id"), words.get("site.grid"), names.get("site"), names.get("grid")
        ),
    )


def _finished_windows(m: Measured) -> list[Window]:
    """The saves that are completed checkpoints."""
    return [
        window
        for window, what in zip(m.windows, m.contents, strict=True)
        if what.of == "save" and not what.error and _was_seen_to_end(window)
    ]


_ENDS = frozenset({"returned", "durable", "committed", "synced", "written", "end"})


def _was_seen_to_end(window: Window) -> bool:
    """Whether anything was seen of it after it began: a save that the job died in is no completed
    one."""
    return any(_ENDS & span.at_s.keys() for span in window.spans)


def _is_used(path: str, priced: bool) -> bool:
    return path.startswith("site.") or (
        priced and path in ("cluster.gpu_price", "cluster.gpu_embodied")
    )


def _line(line: str, taken: Sequence[LineTaken], s: Scenario) -> BilledLine:
    """The line over all windows. Those of which it is not known are named, and not in the sum."""
    amounts = {q.id: _billed_amount(q, taken, s) for q in IN_DOCUMENTS}
    boundary = KINDS[line].boundary or s.tier.boundary
    return BilledLine(line, boundary, amounts, "measured", "measured")


def _billed_amount(q: Counted, taken: Sequence[LineTaken], s: Scenario) -> BilledAmount:
    ends = [(each.window, ends_of(q.id, each, s)) for each in taken]
    known = [each for _, each in ends if not math.isnan(each[0])]
    without = [window for window, each in ends if math.isnan(each[0])]
    if _says_nothing([each[0] for _, each in ends]):
        return BilledAmount(*UNKNOWN_ENDS, (), q.metered)
    return BilledAmount(*_add_ends(known), without, q.metered)


def _says_nothing(parts: Sequence[float]) -> bool:
    """Nothing is known, or that it is at least 0."""
    known = [each for each in parts if not math.isnan(each)]
    return len(known) < len(parts) and not any(known)


def _sum(q: Counted, lines: Sequence[BilledLine]) -> BilledAmount:
    """What is known, and the lines that are not in it, or not with all windows."""
    each = {line.id: line.amounts[q.id] for line in lines}
    lacks = [name for name, found in each.items() if math.isnan(found.value)]
    excludes = lacks + [name for name, found in each.items() if found.lacks]
    if has_no_total((name in lacks, name in OF_THE_JOB) for name in each):
        return BilledAmount(*UNKNOWN_ENDS, excludes, q.metered)
    ends = [found[:3] for name, found in each.items() if name not in lacks]
    return BilledAmount(*_add_ends(ends), excludes, q.metered)


def _add_ends(ends: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    value, low, high = (
        math.fsum(column) if not any(math.isinf(x) for x in column) else math.inf
        for column in zip(*ends, strict=True)
    )
    return value, low, high


SET_S = 60.0
"""a wall clock that goes off the run's own by more was set; so much drifts in ten days"""


def _calendar(m: Measured) -> Callable[[float], float]:
    """Unix time at a run time: as the wall clock had it, or counted back from its last word where
    it was set meanwhile, which takes it to the right time and makes no run longer or shorter."""
    off_s = m.run.wall_s(m.end_s) - m.run.wall_s(m.begin_s) - (m.end_s - m.begin_s)
    if abs(off_s) <= SET_S:
        return m.run.wall_s
    return lambda t_s: m.run.wall_s(m.end_s) - (m.end_s - t_s)


MOST_ROWS = 100_000
"""eleven years of hours, or ten weeks of minutes: a clock of the run jumped"""


def _series(
    wall_of: Callable[[float], float],
    by_line: ByLine,
    finished: Sequence[Window],
    s: Scenario,
    begin_s: float,
    end_s: float,
    width_s: float,
) -> Series | None:
    """Each line where its seconds were; one whose seconds are not known is in the components
    only. Of more rows than a run has there are none."""
    if (end_s - begin_s) / width_s > MOST_ROWS:
        return None

    def at(t_s: float) -> float:
        return min(max(wall_of(t_s), begin_s), end_s)

    lines = [_placed(line, taken, s, at) for line, taken in by_line.items()]
    placed = [each for each in lines if each.says_anything]
    if not placed:
        return None
    edges = edges_of(begin_s, end_s, width_s)
    rows = np.zeros(len(edges) - 1)
    for window in finished:
        if window.begin_s is not None:
            row = int(np.searchsorted(edges, at(window.begin_s), side="right")) - 1
            rows[min(max(row, 0), len(rows) - 1)] += 1.0
    grids = (
        tidy(float(each) * KWH_J) for each in (s.site.kgco2e_per_j, s.site.market_kgco2e_per_j)
    )
    factors = RowFactors(*(None if each is None else np.full(len(rows), each) for each in grids))
    return series_of(placed, edges, width_s, factors, rows)


def _placed(
    line: str, taken: Sequence[LineTaken], s: Scenario, at: Callable[[float], float]
) -> PlacedAmounts:
    """A line's amounts where their seconds are known, each over its own; what is not known of some
    of them is nothing."""
    mine = [each for each in taken if each.stretch is not None]
    stretches = [(at(each.stretch[0]), at(each.stretch[1])) for each in mine if each.stretch]
    amounts = {
        what: _unknown_as_nothing([ends_of(what, each, s)[0] for each in mine]) for what in AMOUNTS
    }
    if any(x < 0 for x in amounts["energy"]):
        # one drain's extra may be, their sum is not: it lies evenly over their time
        amounts |= {what: _evenly(amounts[what], stretches) for what in ("energy", "cost")}
    return PlacedAmounts(line, stretches, amounts)


def _unknown_as_nothing(parts: Sequence[float]) -> Sequence[float]:
    """What is not known beside what is; as they are where they say nothing anyway."""
    return parts if _says_nothing(parts) else [0.0 if math.isnan(x) else x for x in parts]


def _evenly(amounts: Sequence[float], stretches: Sequence[tuple[float, float]]) -> list[float]:
    whole_s = math.fsum(end - begin for begin, end in stretches)
    return [
        math.fsum(amounts) * (end - begin) / whole_s if whole_s else each
        for each, (begin, end) in zip(amounts, stretches, strict=True)
    ]


def _boundary(components: Sequence[Component], s: Scenario, placed: bool) -> Boundary:
    lacking = [
        Excluded(component=c.label, reason="not metered")
        for c in components
        if c.energy.value is None
    ]
    apart = [
        Excluded(component="useful training", reason="the statement holds what checkpoints add"),
        Excluded(component="keeping the bytes, failures", reason="a recording does not tell"),
    ]
    return Boundary(
        included=[c.label for c in components if c.energy.value is not None],
        excluded=[*lacking, *apart],
        pue=float(s.site.pue) if placed else None,
        pue_included_in_energy=placed,
        counterfactual="the same time without the saves and loads",
        embodied_included=False,
        inventory_treatment="memo_item",
    )


def _measurements(m: Measured) -> list[Measurement]:
    found = []
    for domain in [*m.energies.parts, *m.energies.wholes]:
        known, energy = m.energies.provenance(domain, m.begin_s, m.end_s), m.spans[domain]
        found.append(
            Measurement(
                id=domain,
                instrument=known.source,
                scope=known.scope,
                boundary=known.boundary,
                basis=known.basis,
                tick_s=known.tick_s,
                role="part" if domain in m.energies.parts else "whole",
                coverage=tidy(known.coverage),
                energy_kwh=tidy(energy.value / KWH_J) if energy.known else None,
            )
        )
    return found


def _card(m: Measured) -> str | None:
    devices = {
        m.energies.sources[d].channel.device
        for d in m.energies.parts
        if d.startswith(("gpu:", "module:"))
    }
    return ", ".join(sorted(filter(None, devices))) or None


def _warnings(m: Measured, by_line: ByLine, placed: bool) -> list[Warned]:
    told = []
    if not placed:
        told.append(
            (
                "NO_SITE",
                "Where this machine stands and what it costs is not said, so there is no PUE, no"
                " dollars and no kgCO2e.",
            )
        )
    for line, taken in by_line.items():
        told += [(code, f"{line_label(line)}: {text}") for code, text in _line_doubts(taken)]
    if len(m.run.hosts) > 1:
        of = f"Of {len(m.run.hosts)} hosts this is {m.energies.node.host} alone."
        told.append(("ONE_HOST", of))
    for domain in m.energies.parts:
        doubts = m.energies.doubts(domain)
        if doubts.looks is not None and doubts.looks < 1:
            code = "COUNTER_LOOKS" if doubts.of_counter else "SENSOR_LOOKS"
            told.append((code, warning_text(code, f"{doubts.looks:.0%}")))
            break
    return [Warned(code=code, message=text) for code, text in told]


def _line_doubts(taken: Sequence[LineTaken]) -> Iterator[tuple[str, str]]:
    """What to mind of one line."""
    lost = [each.energy.why for each in taken if not each.energy.known]
    if lost:
        of = f"{len(lost)} of {len(taken)}"
        yield lost[0] or "UNKNOWN", f"energy not known of {of}: {why_text(lost[0])}."
    if any(BELOW_ZERO in each.energy.flags for each in taken):
        yield BELOW_ZERO, "came out below zero, within its range, and is told as nothing."
    if any(each.energy.known and math.isinf(each.energy.high) for each in taken):
        yield (
            "PART_OF_HOST",
            "only processors and memory are metered, so this is the least it was.",
        )
