"""What `compare RUN SCENARIO` found: a sentence, then the measured save beside the modelled one,
line by line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.gap import Course, Parts
from ckptcost.first.core.quantities import BY_ID, FIELDS, QUANTITIES
from ckptcost.first.jobs.gap import GapRow, GapSide, ModelGap, gap
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.measured_course import CourseSave, CourseSpread
from ckptcost.first.layers import Layer
from ckptcost.first.present.amounts import count, count_text, number
from ckptcost.first.present.words import line_label
from ckptcost.first.report.studies.gap_words import (
    cause_label,
    factor_text,
    findings,
    label,
    part_range,
    warnings,
    why_text,
)
from ckptcost.first.report.study import (
    ROW_UNIT,
    Column,
    Study,
    Table,
    hidden,
    named,
    plain,
    table_of,
)

MOST_SHOWN = 12
"""saves; JSON and CSV have all"""
_ROUNDING = 1e-9
_PRICED = {q: (q.id.removeprefix("emissions_"), q.unit) for q in QUANTITIES} | {
    BY_ID["gpu_time_lost"]: ("gpu_s", "GPU-s")
}
"""column and unit of a bill's quantities"""


def study_of(answer: ModelGap) -> Study:
    """Sentences first, then the tables."""
    seen, saves = answer.seen, answer.saves
    both = [held for held in (saves, answer.loads) if held is not None]
    several = saves is not None and len(saves.taken) > 1
    name = answer.resolved.name or "the scenario"
    tier = answer.resolved.words.get("tier.id", answer.resolved.names.get("tier", "as given"))
    counted = " and ".join(count_text(len(held.taken), held.of) for held in both)
    return Study(
        "gap",
        "Measured against modelled",
        [
            (
                f"Measured: {counted} on {seen.energies.node.host}, {_gpus(answer)}."
                f" Modelled: {name}, tier {tier}, put onto it."
            ),
            (
                "Joules of both sides are at the facility: PUE"
                f" {number(float(answer.scenario.site.pue))}. Prices and grid factors are the"
                " scenario's."
            ),
        ],
        {
            "run": seen.kept,
            "scenario": answer.resolved.name,
            "gpus": plain(answer.machine.job_gpus),
            "gpus_from": answer.machine.how,
        },
        [
            _lines(both),
            *(_parts(held) for held in both if held.parts is not None),
            _ranges(both),
            _joules(answer, both),
            *([_run(saves)] if saves is not None and several else []),
            *([_saves(answer, saves)] if saves is not None else []),
            _bill(both),
            _not_compared_table(both),
        ],
        findings(answer),
        warnings(answer),
        resolved=[answer.resolved],
        simulated=seen.simulated,
    )


def held_against(
    catalog: Catalog, run: str | Path, layers: Sequence[Layer], host: str = ""
) -> Study:
    """A recorded run against a scenario, from where the run lies."""
    return study_of(gap(catalog, reviewed(run, host=host), layers))


def _gpus(answer: ModelGap) -> str:
    machine = answer.machine
    if machine.gpus != machine.gpus:
        return "GPUs not metered"
    return f"{count(machine.gpus)} GPUs" + (
        f" of {count(machine.job_gpus)}" if machine.is_part else ""
    )


class RowOfSide(NamedTuple):
    """A row, and whether it is of saves or loads."""

    held: GapSide
    row: GapRow

    @property
    def label(self) -> str:
        return label(self.row.id, self.held.of, self.row.unit)


def _rows(both: Sequence[GapSide]) -> list[RowOfSide]:
    return [RowOfSide(held, row) for held in both for row in held.rows]


def _heads(both: Sequence[GapSide], words: str) -> tuple[Column, ...]:
    """Of what a row is, and in which unit."""
    return (
        Column("of", "of", meaning="save or load", shown=len(both) > 1, of="held.of"),
        Column("label", words),
        *hidden(Column("quantity", "quantity", of="row.id"), Column("unit", "unit", of="row.unit")),
    )


def _side(name: str, words: str, meaning: str = "", of: str = "value") -> Column:
    """What is known of a row on one of the two sides."""
    end = "" if of == "value" else f"_{of}"
    return Column(f"{name}{end}", words, ROW_UNIT, meaning, of=f"row.{name}.{of}")


def _lines(both: Sequence[GapSide]) -> Table:
    """Everything that has a figure on a side, one row each: the tidy table."""
    columns = (
        *_heads(both, "in the mean"),
        _side("measured", "measured"),
        _side("modelled", "modelled"),
        Column(
            "at_size",
            "at its size",
            ROW_UNIT,
            "the model with the measured bytes put in",
            of="row.at_size",
        ),
        Column(
            "difference",
            "difference",
            ROW_UNIT,
            "measured less modelled; unknown where they are not of the same thing",
            of="row.difference",
        ),
        Column("ratio", "ratio", "1", "measured over modelled", of="row.ratio"),
        *hidden(
            _side(
                "measured",
                "measured, low",
                "lowest of the saves, by what meters and marks leave open",
                "low",
            ),
            _side("measured", "measured, high", "highest of the saves", "high"),
            _side("modelled", "modelled, low", "5th percentile over the inputs' ranges", "low"),
            _side("modelled", "modelled, high", "95th percentile", "high"),
            Column("saves", "saves", "count", "in which it is known", of="row.saves"),
            Column(
                "why",
                "why",
                meaning="code, where there is no difference",
                of=lambda one: one.row.why or None,
            ),
        ),
    )
    return table_of("lines", "Line by line", columns, _rows(both), _known_of_some(both))


def _known_of_some(both: Sequence[GapSide]) -> str:
    """Which means are of fewer saves than there were: what is not known of the others is no 0."""
    named: dict[str, list[str]] = {}
    for held, row in _rows(both):
        if 0 < row.saves < len(held.taken):
            of = f"of {count(row.saves)} of {count(len(held.taken))} {held.of}s"
            named.setdefault(of, []).append(label(row.id, held.of))
    return "; ".join(f"{of}, the others unknown: {', '.join(rows)}" for of, rows in named.items())


def _ranges(both: Sequence[GapSide]) -> Table:
    wide = [
        one
        for one in _rows(both)
        if not one.row.why and (_is_wide(one.row.measured) or _is_wide(one.row.modelled))
    ]
    columns = (
        *_heads(both, "range"),
        _side("measured", "measured", of="low"),
        _side("measured", "to", of="high"),
        _side("modelled", "modelled", of="low"),
        _side("modelled", "to", of="high"),
        Column("meet", "meet", "bool", "the two ranges have something in common", of=_meet),
    )
    note = (
        "Measured: lowest and highest save, with what meters leave open. Modelled: 5th and 95th"
        " percentile over the inputs' ranges."
    )
    return table_of("ranges", "Ranges", columns, wide, note)


def _meet(one: RowOfSide) -> bool:
    ours, theirs, slack = one.row.measured, one.row.modelled, 1.0 + _ROUNDING
    return ours.low <= theirs.high * slack and theirs.low <= ours.high * slack


def _is_wide(of: CourseSpread) -> bool:
    return of.high - of.low > _ROUNDING * of.high


def _parts(held: GapSide) -> Table:
    """What makes the time longer or shorter; the rows add up."""
    parts, measured, sized = held.parts, held.measured, held.resized
    assert isinstance(parts, Parts)
    assert isinstance(measured, Course)
    assert isinstance(sized, Course)
    rows: list[dict[str, Any]] = []
    for name, value in parts._asdict().items():
        low, high = part_range(held.ranges, name, float(value))
        rows.append(
            {
                "cause": cause_label(name, held.of),
                "id": name.removesuffix("_s"),
                "seconds": _bare(value, held),
                "low": _bare(low, held),
                "high": _bare(high, held),
                "measured": factor_text(name, measured),
                "modelled": factor_text(name, held.modelled if name == "size_s" else sized),
            }
        )
    rows.append(
        {
            "cause": "together",
            "id": "whole",
            "seconds": _bare(measured.time_s - held.modelled.time_s, held),
            "measured": factor_text("time_s", measured),
            "modelled": factor_text("time_s", held.modelled),
        }
    )
    columns = (
        Column("cause", "cause"),
        Column("id", "id", shown=False),
        *named("measured", "modelled"),
        Column(
            "seconds",
            "seconds more",
            "s",
            "what the change of this cause makes of the time; the rows add up",
        ),
        Column("low", "low", "s", "5th percentile over the model's ranges"),
        Column("high", "high", "s", "95th percentile"),
    )
    note = (
        "Each cause is changed from modelled to measured, in this order: what is below the size is"
        " told at the measured size."
    )
    return Table(
        f"parts_{held.of}", f"What makes the {held.of} longer or shorter", columns, rows, note
    )


def _bare(value: Any, held: GapSide) -> float | None:
    """Without the dust of subtracting."""
    return plain(
        0.0 if abs(float(value)) <= _ROUNDING * float(held.modelled.time_s) else float(value)
    )


def _joules(answer: ModelGap, both: Sequence[GapSide]) -> Table:
    """Meters and data sheets say watts before PUE, so these are."""
    pue = float(answer.scenario.site.pue)
    rows: list[dict[str, Any]] = []
    for held in both:
        for each in held.divided:
            row, of_bytes = held.row(each.line), each.line == "storage_write"
            if not row.measured.known:
                continue
            scale = (1e9 if of_bytes else 1.0) / pue
            rows.append(
                {
                    "label": line_label(each.line),
                    "line": each.line,
                    "in": "J/GB" if of_bytes else "W",
                    "measured": plain(each.measured_each * scale),
                    "modelled": plain(each.modelled_each * scale),
                    "difference": plain(row.difference),
                    "of_amount": None if row.why else plain(each.of_amount),
                    "of_each": None if row.why else plain(each.of_each),
                }
            )
    columns = (
        Column("label", "line"),
        *hidden(Column("line", "id")),
        Column(
            "in",
            "in",
            meaning=(
                "of measured and modelled: watts of all GPUs or hosts together, or joules a"
                " gigabyte"
            ),
        ),
        Column("measured", "measured", "1", "before PUE"),
        Column("modelled", "modelled", "1", "before PUE"),
        Column("difference", "J more", "J"),
        Column("of_amount", "of time", "J", "a longer stall, or more bytes, at the model's watts"),
        Column("of_each", "of watts", "J", "more watts, or more joules a byte"),
    )
    return Table("joules", "Joules: a longer time, or more watts", columns, rows)


def _modelled_run(one: RowOfSide) -> float:
    return one.row.modelled.value * one.row.saves


def _run(held: GapSide) -> Table:
    """What the recorded saves come to."""
    _, *heads = _heads([held], "together")
    columns = (
        *heads,
        Column("saves", "saves", "count", of="row.saves"),
        Column("measured", "measured", ROW_UNIT, of="row.total"),
        Column(
            "modelled",
            "modelled",
            ROW_UNIT,
            "so many times the model's one save",
            of=_modelled_run,
        ),
        Column(
            "difference",
            "difference",
            ROW_UNIT,
            of=lambda one: one.row.total - _modelled_run(one),
        ),
    )
    rows = [one for one in _rows([held]) if one.row.total == one.row.total and not one.row.why]
    return table_of("run", "All recorded saves together", columns, rows)


class SaveOfSide(NamedTuple):
    """A save, and what makes its time another than the model's."""

    one: CourseSave
    parts: dict[str, float | None]


def _part(name: str, words: str, meaning: str = "") -> Column:
    return Column(f"of_{name}", words, "s", meaning, of=lambda save: save.parts.get(f"{name}_s"))


_SAVES = (
    Column("window", "checkpoint", of="one.window.name"),
    Column("bytes", "size", "bytes", of="one.bytes.value"),
    *hidden(Column("files", "files", "count", of="one.files.value")),
    Column("time", "safe after", "s", of="one.time.value"),
    *hidden(
        Column("time_low", "at least", "s", "it was last seen not to be safe", of="one.time.low")
    ),
    Column("stall", "stall", "s", of="one.stall.value"),
    Column("lag", "drain", "s", of="one.lag.value"),
    _part("size", "of size", "seconds that the size makes of the difference"),
    _part("fixed", "of fixed"),
    _part("rate", "of rate"),
    *hidden(
        _part("straggler", "of slowest rank"),
        _part("beside", "of snapshot"),
        Column(
            "as_modelled",
            "as modelled",
            meaning="what no mark tells apart, so that the model's figure stands for it",
            of=lambda save: ", ".join(save.one.as_modelled) or None,
        ),
        Column(
            "why",
            "why",
            meaning="code, where causes are not known",
            of=lambda save: save.one.course_why or None,
        ),
    ),
)


def _saves(answer: ModelGap, held: GapSide) -> Table:
    saves = []
    for one in held.taken:
        parts = answer.parts_of(held, one)
        told = {} if parts is None else parts._asdict()
        saves.append(SaveOfSide(one, {name: _bare(value, held) for name, value in told.items()}))
    shown = 1 < len(saves) <= MOST_SHOWN
    return table_of("saves", "Each save", _SAVES, saves, shown=shown)


def _bill(both: Sequence[GapSide]) -> Table:
    """The two bills, line by line; a total lacks unknown lines, and is unknown itself without what
    GPUs and hosts do."""
    rows: list[dict[str, Any]] = []
    for held in both:
        bills = {"measured": held.measured_bill, "modelled": held.modelled_bill}
        for line in held.measured_bill.lines:
            row: dict[str, Any] = {
                "of": held.of,
                "label": line_label(line.id),
                "line": line.id,
                "boundary": line.boundary,
            }
            rows.append(
                row | _prices({side: bill.line(line.id)._asdict() for side, bill in bills.items()})
            )
        totals = {side: {name: bill.total(name) for name in FIELDS} for side, bill in bills.items()}
        rows.append({"of": held.of, "label": "together", "line": "total"} | _prices(totals))
    columns = (
        _heads(both, "")[0]._replace(of=""),
        Column("label", "line"),
        *hidden(Column("line", "id"), "boundary"),
        *(
            Column(f"{side}_{name}", f"{side} {name}", unit)
            for name, unit in _PRICED.values()
            for side in ("measured", "modelled")
        ),
    )
    return Table("bill", "The bill of one", columns, rows, shown=False)


def _prices(sides: dict[str, dict[Any, Any]]) -> dict[str, float | None]:
    return {
        f"{side}_{name}": plain(
            float(q.people(amounts[q.field]) if unit == q.unit else amounts[q.field])
        )
        for side, amounts in sides.items()
        for q, (name, unit) in _PRICED.items()
    }


def _not_compared_table(both: Sequence[GapSide]) -> Table:
    """For machines; people read it as a sentence."""
    columns = (
        Column("of", "of", of="held.of"),
        Column("label", "line", of=lambda one: label(one.row.id, one.held.of)),
        Column("quantity", "quantity", of="row.id"),
        Column("code", "code", of="row.why"),
        Column("why", "why", of=lambda one: why_text(one.row.why)),
    )
    rows = [one for one in _rows(both) if one.row.why]
    title = "Not held against each other"
    return table_of("not_compared", title, columns, rows, shown=False)
