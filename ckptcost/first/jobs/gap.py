"""Gap: a recorded run beside a scenario, line by line, and which cause makes most of the
difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core import timing
from ckptcost.first.core.bill import Bill, Spent, bill_of
from ckptcost.first.core.contents import Contents
from ckptcost.first.core.domain import Number, Scenario
from ckptcost.first.core.draws import drawn, p5_p95
from ckptcost.first.core.gap import (
    Course,
    Parts,
    modelled_load,
    modelled_save,
    parts_of,
    product_parts,
    resize_checkpoint,
)
from ckptcost.first.core.lines import OF_A_SAVE
from ckptcost.first.core.numeric import ratio
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.core.reconcile import Energy
from ckptcost.first.core.windows import Window
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.measured_bill import (
    OF_A_LOAD,
    MeasuredBill,
    RunMachine,
    bill_of_load,
    bill_of_save,
    machine_of,
    on_machine,
)
from ckptcost.first.jobs.measured_course import (
    CourseSave,
    CourseSpread,
    absent,
    mean_course,
    mean_of,
    taken_of,
)
from ckptcost.first.jobs.model import one_of
from ckptcost.first.layers import Layer
from ckptcost.first.scenario import Resolved, ties_of, world_ranges_of

FORCED = "run:"
UNITS = {
    "bytes": "bytes",
    "files": "count",
    "time": "s",
    "stall": "s",
    "lag": "s",
    "rate": "bytes_per_s",
    "gpu_s": "GPU-s",
}
"""of what is compared besides joules"""
_OF_THE_JOB = ("bytes", "files", "rate")
"""what one node of several does not tell"""
_DIVIDED = {"gpu_wait": "stall", "host_wait": "stall", "loading": "stall", "storage_write": "bytes"}
"""joules and what they are proportional to"""


def over_ranges(s: Scenario, resolved: Resolved) -> Scenario:
    """The scenario over draws of its inputs' ranges; the machine is known, so its size has none."""
    ranges = world_ranges_of(resolved)
    for path in ("cluster.gpus", "cluster.gpus_per_node"):
        ranges.pop(path, None)
    return drawn(s, ranges, ties_of(resolved)) if ranges else s


def course_of(s: Scenario, of: str) -> Course:
    """What the modelled time of a save or load is made of."""
    return (
        modelled_load(s.checkpoint, s.tier, s.cluster)
        if of == "load"
        else modelled_save(s.checkpoint, s.tier, s.cluster, s.policy)
    )


def with_bytes(s: Scenario, of: str, bytes_: Number) -> Scenario:
    """The scenario whose save writes, or whose load reads, so many bytes."""
    return replace(
        s, checkpoint=resize_checkpoint(s.checkpoint, ratio(bytes_, course_of(s, of).moved_bytes))
    )


def modelled_bill(s: Scenario, of: str, machine: RunMachine) -> Bill:
    """What the node that was read has of one save's bill, or of one load's; of the first tier
    alone, for a recorded save goes to one."""
    nothing = Spent(*(0.0 for _ in Spent._fields))
    saved = timing.save(s.checkpoint, s.tier, s.cluster, s.policy)
    spent = nothing._replace(
        stall_s=saved.stall_s, slowed_s=s.policy.slowdown_fraction * saved.lag_s, saves=1.0
    )
    if of == "load":
        spent = nothing._replace(load_s=course_of(s, of).time_s)
    share = saved._replace(written_bytes=saved.written_bytes * (machine.here / machine.job_gpus))
    lines = {
        line.id: line
        for line in bill_of(on_machine(s, machine.here, machine), spent, share, None).lines
    }
    return Bill(tuple(lines[name] for name in (OF_A_LOAD if of == "load" else OF_A_SAVE)))


def figures_of(s: Scenario, of: str, machine: RunMachine) -> dict[str, Number]:
    """Everything that a row of the comparison has: bytes, seconds, GPU-seconds, and joules by
    line."""
    course = course_of(s, of)
    saved = timing.save(s.checkpoint, s.tier, s.cluster, s.policy)
    held_up_s = course.time_s if of == "load" else saved.stall_s
    found: dict[str, Number] = {
        "bytes": course.moved_bytes,
        "files": s.checkpoint.files,
        "time": course.time_s,
        "stall": held_up_s,
        "lag": saved.lag_s,
        "rate": ratio(course.moved_bytes, course.time_s),
        "gpu_s": machine.here * held_up_s,
    }
    return found | {line.id: line.energy_j for line in modelled_bill(s, of, machine).lines}


class GapRow(NamedTuple):
    """One thing of the mean save, measured and modelled."""

    id: str
    unit: str
    measured: CourseSpread
    modelled: CourseSpread
    at_size: float
    """the model with the measured bytes put in"""
    saves: int
    """in which it is known"""
    total: float
    """of those saves together; NaN of a rate"""
    apart: str
    """code: why the two are not held against each other although both are known"""

    @property
    def why(self) -> str:
        return self.measured.why or self.modelled.why or self.apart

    @property
    def difference(self) -> float:
        return nan if self.why else self.measured.value - self.modelled.value

    @property
    def ratio(self) -> float:
        return (
            nan
            if self.why or not self.modelled.value
            else self.measured.value / self.modelled.value
        )


class Divided(NamedTuple):
    """The difference of a line's joules: how much of it is a longer time (or more bytes), how much
    more watts (or J a byte)."""

    line: str
    of_amount: float
    of_each: float
    measured_each: float
    modelled_each: float


class GapSide(NamedTuple):
    """All saves, or all loads, of the run against the model's one."""

    of: str
    taken: Sequence[CourseSave]
    rows: Sequence[GapRow]
    divided: Sequence[Divided]
    modelled: Course
    resized: Course | None
    """the model with the measured bytes put in; None where no save's bytes and seconds are known"""
    measured: Course | None
    parts: Parts | None
    """of the mean save: they add up to measured less modelled"""
    ranges: Parts | None
    """the same over draws from the inputs' ranges, each number an array"""
    measured_bill: Bill
    modelled_bill: Bill

    def row(self, row_id: str) -> GapRow:
        return next(row for row in self.rows if row.id == row_id)


class ModelGap(NamedTuple):
    seen: Measured
    resolved: Resolved
    scenario: Scenario
    """the resolved one, on the run's machine"""
    machine: RunMachine
    saves: GapSide | None
    loads: GapSide | None
    failed: Sequence[tuple[str, str]]
    """windows that ended with an error, and which"""

    def parts_of(self, held: GapSide, one: CourseSave) -> Parts | None:
        """The parts of one save's own gap."""
        if one.course is None:
            return None
        return parts_of(
            held.modelled,
            course_of(with_bytes(self.scenario, held.of, one.course.moved_bytes), held.of),
            one.course,
        )


def run_path(text: str) -> Path | None:
    """The run that is meant: a folder of readings, a .jsonl file, or `run:` and a path or id; None
    for the name of a scenario."""
    if text.startswith(FORCED):
        from ckptcost.first.runs.store import find

        return find(text.removeprefix(FORCED))
    path = Path(text)
    if path.suffix == ".jsonl":
        if not path.is_file():
            raise InputError("there is no such run", where=path.name)
        return path
    return path if text and path.is_dir() and any(path.glob("*.jsonl")) else None


def gap(catalog: Catalog, seen: Measured, layers: Sequence[Layer]) -> ModelGap:
    """The run against the scenario as it stands, on the run's own machine."""
    resolved = one_of(catalog, layers)
    machine = machine_of(seen, resolved)
    pairs = list(zip(seen.windows, seen.contents, strict=True))
    failed = [(window.name, what.error) for window, what in pairs if what.error]
    whole = [(window, what) for window, what in pairs if not what.error]
    if not whole:
        raise InputError(
            "holds no checkpoint that was finished" if failed else "holds no checkpoint",
            where=seen.kept or "the run",
            remedy="record a job that saves: `ckptcost run -- COMMAND`",
        )
    s = on_machine(resolved.scenario, machine.job_gpus, machine)
    world = over_ranges(s, resolved)
    saves = _against_model(
        seen, s, world, machine, "save", [pair for pair in whole if pair[1].of != "load"]
    )
    loads = _against_model(
        seen, s, world, machine, "load", [pair for pair in whole if pair[1].of == "load"]
    )
    return ModelGap(seen, resolved, s, machine, saves, loads, failed)


def _against_model(
    seen: Measured,
    s: Scenario,
    world: Scenario,
    machine: RunMachine,
    of: str,
    pairs: Sequence[tuple[Window, Contents]],
) -> GapSide | None:
    """`world` is the scenario over its inputs' ranges."""
    if not pairs:
        return None
    modelled = course_of(s, of)
    taken = [taken_of(window, what, modelled, machine.is_part) for window, what in pairs]
    bills = [_measured_bill(seen, window, what, s, machine.gpus) for window, what in pairs]
    with np.errstate(over="ignore", invalid="ignore"):
        point, spread = figures_of(s, of, machine), figures_of(world, of, machine)
        sized = _at_size(s, world, machine, of, mean_course(taken))
    columns = _columns(taken, bills, machine, of)
    rows = [
        _row(name, each, point[name], spread[name], sized.figures.get(name, nan), machine)
        for name, each in columns.items()
    ]
    rows = [_of_durations(row, taken) if row.id == "rate" else row for row in rows]
    divided = [
        _divide_joules(name, columns[amount], columns[name], point[amount], point[name])
        for name, amount in _DIVIDED.items()
        if name in columns
    ]
    return GapSide(
        of,
        taken,
        rows,
        divided,
        modelled,
        sized.resized,
        sized.measured,
        sized.parts,
        sized.ranges,
        _mean_bill([bill.bill for bill in bills]),
        modelled_bill(s, of, machine),
    )


_FIGURES = {
    "save": ("bytes", "files", "time", "stall", "lag"),
    "load": ("bytes", "files", "time", "stall"),
}
_LINES = {"save": OF_A_SAVE[:-1], "load": OF_A_LOAD}
"""those that have joules; requests have none"""


def _measured_bill(
    seen: Measured, window: Window, what: Contents, s: Scenario, gpus: float
) -> MeasuredBill:
    if what.of == "load":
        return bill_of_load(seen, window, s, gpus)
    return bill_of_save(seen, window, what.bytes, s, gpus)


class _AtSize(NamedTuple):
    """The model with the measured bytes put in; nothing where no save's bytes and seconds are
    known."""

    measured: Course | None = None
    resized: Course | None = None
    figures: Mapping[str, Number] = {}
    parts: Parts | None = None
    ranges: Parts | None = None


def _at_size(
    s: Scenario, world: Scenario, machine: RunMachine, of: str, measured: Course | None
) -> _AtSize:
    if measured is None:
        return _AtSize()
    sized = with_bytes(s, of, measured.moved_bytes)
    resized = course_of(sized, of)
    ranged = course_of(with_bytes(world, of, measured.moved_bytes), of)
    return _AtSize(
        measured,
        resized,
        figures_of(sized, of, machine),
        parts_of(course_of(s, of), resized, measured),
        parts_of(course_of(world, of), ranged, measured),
    )


def _columns(
    taken: Sequence[CourseSave], bills: Sequence[MeasuredBill], machine: RunMachine, of: str
) -> dict[str, list[CourseSpread]]:
    """What was measured of each save, by row."""
    figures, lines = _FIGURES[of], _LINES[of]
    found = {name: [getattr(one, name) for one in taken] for name in figures}
    found["rate"] = [_rate(one) for one in taken]
    found["gpu_s"] = [_times(one.stall, machine.gpus) for one in taken]
    return found | {name: [_spread(bill.energies[name]) for bill in bills] for name in lines}


def _spread(energy: Energy) -> CourseSpread:
    return CourseSpread(energy.value, energy.low, energy.high, energy.why)


def _rate(one: CourseSave) -> CourseSpread:
    """From the begin until it is safe, as MLPerf Storage counts it."""
    if not (one.bytes.known and one.time.known):
        return absent(one.time.why or one.bytes.why)
    value, low, high = (
        float(ratio(one.bytes.value, time_s))
        for time_s in (one.time.value, one.time.high, one.time.low)
    )
    return CourseSpread(value, low, high)


def _times(stall: CourseSpread, gpus: float) -> CourseSpread:
    if isnan(gpus) or not stall.known:
        return absent(stall.why or "NO_GPU_COUNT")
    return CourseSpread(stall.value * gpus, stall.low * gpus, stall.high * gpus)


def _row(
    name: str,
    each: Sequence[CourseSpread],
    point: Number,
    spread: Number,
    at_size: Number,
    machine: RunMachine,
) -> GapRow:
    value, known = float(point), [one.value for one in each if one.known]
    modelled = (
        absent("NOT_MODELLED") if isnan(value) else CourseSpread(value, *p5_p95(spread, value))
    )
    measured, total = mean_of(each), sum(known) if known else nan
    return GapRow(
        name,
        UNITS.get(name, "J"),
        measured,
        modelled,
        float(at_size),
        len(known),
        total,
        _apart(name, measured, value, machine),
    )


def _of_durations(rate: GapRow, taken: Sequence[CourseSave]) -> GapRow:
    """All bytes over all seconds: a mean of rates would weigh quick saves more than slow ones.
    Rates have no sum."""
    known = [
        (one.bytes.value, one.time.value) for one in taken if one.bytes.known and one.time.known
    ]
    if not known:
        return rate
    bytes_, seconds = (float(sum(column)) for column in zip(*known, strict=True))
    return rate._replace(
        measured=rate.measured._replace(value=float(ratio(bytes_, seconds))), total=nan
    )


def _apart(name: str, measured: CourseSpread, modelled: float, machine: RunMachine) -> str:
    """Why two known figures are not of the same thing."""
    if machine.is_part and name in _OF_THE_JOB:
        return "PART_OF_JOB"
    return (
        "WITHOUT_LOST_TIME" if name == "slowdown" and (measured.value != 0 or modelled != 0) else ""
    )


def _divide_joules(
    line: str,
    amounts: Sequence[CourseSpread],
    joules: Sequence[CourseSpread],
    amount: Number,
    joules_modelled: Number,
) -> Divided:
    """Of the saves in which both are known."""
    known = [
        (one.value, energy.value)
        for one, energy in zip(amounts, joules, strict=True)
        if one.known and energy.known
    ]
    if not known:
        return Divided(line, nan, nan, nan, float(ratio(joules_modelled, amount)))
    measured_amount, measured_j = (
        float(sum(column)) / len(known) for column in zip(*known, strict=True)
    )
    measured_each, modelled_each = (
        float(ratio(measured_j, measured_amount)),
        float(ratio(joules_modelled, amount)),
    )
    of_amount, of_each = product_parts(float(amount), modelled_each, measured_amount, measured_each)
    return Divided(line, float(of_amount), float(of_each), measured_each, modelled_each)


def _mean_bill(bills: Sequence[Bill]) -> Bill:
    """Each line's mean over the saves in which it is known."""
    lines = []
    for same in zip(*(bill.lines for bill in bills), strict=True):
        known: Mapping[str, list[float]] = {
            q: [float(v) for line in same if (v := getattr(line, q)) == v] for q in FIELDS
        }
        lines.append(
            same[0]._replace(
                **{q: sum(values) / len(values) if values else nan for q, values in known.items()}
            )
        )
    return Bill(tuple(lines))
