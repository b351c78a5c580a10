"""The model's answer: every tier at every number of saves, the first case billed line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.quantities import EVERYDAY
from ckptcost.first.core.size import full_bytes
from ckptcost.first.core.units import parse, to_kwh
from ckptcost.first.jobs.gates import GateVerdict
from ckptcost.first.jobs.model import Answer, Case, case_names
from ckptcost.first.present.amounts import between, count, duration, number, size
from ckptcost.first.present.words import line_label, unknown_text
from ckptcost.first.report.build import inputs_hash, plain_scenarios
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.factors import Part
from ckptcost.first.report.rows import COLUMNS, WITHOUT, CaseRow, case_row, unit_of
from ckptcost.first.report.statements.closed_form import statement_part, with_attributes
from ckptcost.first.report.studies.model_words import (
    ENDLESS,
    ClosedForm,
    avoidable_lines,
    caution_sentences,
    least_of,
    range_text,
    remarks_of,
    sentences_of,
    without_of,
)
from ckptcost.first.report.study import ROW_UNIT, Bills, Column, Later, Study, Table, hidden, named

if TYPE_CHECKING:
    from ckptcost.first.report.statement import Statement

KEYED = (
    Column("tier", "tier", "", "id of the storage tier"),
    Column("case", "case", "", "what --case calls it: tier and number of saves"),
    Column("tier_name", "name", "", "what the tier is called"),
)
REFERENCE = "against"
"""the scenario behind the cases that the first one is held against"""


def study_of(answer: Answer, catalog: Catalog, verdicts: Sequence[GateVerdict] = ()) -> Study:
    """All of it, for any view."""
    case, names = answer.cases[0], case_names(answer.cases)
    everyone = [*answer.cases, *([answer.reference] if answer.reference else [])]
    resolved = [each.resolved for each in everyone]
    called = [*names, *([REFERENCE] if answer.reference else [])]
    warnings = warnings_of(answer)
    part = statement_part(case, catalog, digest_of(answer), names[0], names, warnings)
    first: ClosedForm = with_attributes(part)
    rows = [case_row(each, name) for each, name in zip(answer.cases, names, strict=True)]
    tables, avoidable = [_cases(rows)], []
    tables += [_one_save(rows, answer.cases), _all_saves(rows), _whole_run(rows)]
    tables += [_bill(first, case), claims_table(answer.cases, names)]
    if answer.reference is not None:
        other = case_row(answer.reference, case_names([answer.reference])[0])
        values = {name: _less(rows[0][name], other[name]) for name in COLUMNS}
        avoidable = avoidable_lines(values, str(other["tier_name"]), first.schedule.goodput)
        tables.append(_avoidable(values, other))
    return Study(
        "model",
        case.resolved.name or "scenario",
        [_about(case, first)],
        _question(answer, names),
        tables,
        sentences_of(first, rows, avoidable),
        [(each["code"], each["message"]) for each in warnings],
        verdicts,
        resolved,
        bills=Bills(lambda _: [_validate_statement(part)]),
        remarks=Later(lambda: remarks_of(first)),
        cases=called,
        factors=first.factors,
    )


def _validate_statement(part: Part) -> Statement:
    from ckptcost.first.report.statement import Statement

    return Statement.model_validate(part)


def digest_of(answer: Answer) -> str:
    """Of the inputs of all cases; the reference is none of them."""
    resolved = [each.resolved for each in answer.cases]
    return inputs_hash(plain_scenarios(resolved, case_names(answer.cases)))


def warnings_of(answer: Answer) -> list[Part]:
    """Each kind of caution once, in the words of the first case it holds for; the others are
    named."""
    said = caution_sentences(case_names(answer.cases), [case.cautions for case in answer.cases])
    found = [{"code": code, "message": text} for code, text in said]
    for path, reason in answer.cases[0].resolved.unknown.items():
        found.append({"code": "UNKNOWN_INPUT", "message": unknown_text(path, reason)})
    return found


def _question(answer: Answer, names: Sequence[str]) -> Part:
    against = answer.reference
    return {
        "cases": list(names),
        "against": None if against is None else against.tier_id,
        "draws": answer.cases[0].draws,
    }


def _about(case: Case, of: ClosedForm) -> str:
    """What the job is, in one line."""
    b, names = of.schedule, case.resolved.names
    gpus = f"{count(of.subject.accelerator_count)} x {of.subject.accelerator or 'GPU'}"
    every = next((f.value for f in of.factors if f.id == "policy.second_every"), 1.0)
    second_tier = names.get("second_tier")
    second = f", one save in {count(every)} also to {second_tier}" if second_tier else ""
    return (
        f"{size(b.size_bytes)} a save, {gpus}, {duration(b.work_s)} of training,"
        f" {b.mode}{second}, PUE {number(of.boundary.pue)}, {of.subject.grid or of.subject.site}"
    )


# ---- tables


def _less(mine: float | None, theirs: float | None) -> float | None:
    return None if mine is None or theirs is None else tidy(mine - theirs)


def _columns(ranged: Sequence[str]) -> list[Column]:
    found = []
    for name, meaning in COLUMNS.items():
        unit = unit_of(name)
        found.append(Column(name, name, unit, meaning))
        if name in ranged:
            found.append(Column(f"{name}_low", f"{name}_low", unit, "5th percentile"))
            found.append(
                Column(f"{name}_high", f"{name}_high", unit, "95th percentile; null: no bound")
            )
    return found


def _cases(rows: Sequence[CaseRow]) -> Table:
    """Every tier at every number of saves, all columns; what programs read."""
    ranged = [name for name in COLUMNS if any(f"{name}_low" in row for row in rows)]
    words = [Column(name, name, "", meaning) for name, meaning in WITHOUT.items()]
    columns = (
        KEYED[0],
        *_columns(ranged),
        *words,
        Column("cautions", "cautions", "", "codes of the warnings that hold for it"),
        *KEYED[1:],
    )
    return Table("cases", "The cases", columns, rows, shown=False)


def _avoidable(values: Mapping[str, float | None], other: CaseRow) -> Table:
    told = {"tier": other["tier"], "tier_name": other["tier_name"], **values}
    columns = (KEYED[0], KEYED[2], *_columns(()))
    return Table("avoidable", "The first case less the reference", columns, [told], shown=False)


def _one_save(rows: Sequence[CaseRow], cases: Sequence[Case]) -> Table:
    """Each tier once: what one save takes, beside what a vendor says of it."""
    found = [
        {
            "tier": row["tier"],
            "rate": row["rate_bytes_per_s"],
            "stall": row["stall_s"],
            **_amounts(row, "save"),
            "storage_kwh": row["save_storage_kwh"],
            "claimed": _claim_text(case),
        }
        for row, case in _by_tier(rows, cases)
    ]
    columns = [
        Column("tier", "one save"),
        Column("rate", "rate", "bytes_per_s", COLUMNS["rate_bytes_per_s"]),
        Column("stall", "stall", "s", COLUMNS["stall_s"]),
        Column("gpu_hours", "GPU-h", "GPU-h", COLUMNS["save_gpu_hours"]),
        Column("energy_kwh", "kWh", "kWh", COLUMNS["save_energy_kwh"]),
        Column("storage_kwh", "storage", "kWh", COLUMNS["save_storage_kwh"]),
        Column("cost_usd", "USD", "USD", COLUMNS["save_cost_usd"]),
        Column("location_kgco2e", "kgCO2e", "kgCO2e", COLUMNS["save_location_kgco2e"]),
    ]
    note = "storage: the part of the kWh spent at the storage"
    if any(row["claimed"] for row in found):
        columns.append(Column("claimed", "claimed", "", "kWh that a vendor states, as stated"))
        note += "; claimed: kWh that a vendor states for a save of this size, boundary not stated"
    return Table("one_save", "What one save costs", tuple(columns), found, note)


def _claim_text(case: Case) -> str:
    """The energy that a vendor states for a save of this size."""
    for claim in _claims_of(case):
        if claim["what"] == "energy" and claim["this_size"]:
            return between(claim["low"], claim["high"]) or number(claim["value"])
    return ""


def _all_saves(rows: Sequence[CaseRow]) -> Table:
    """Tiers by number of saves: the saves alone, without failures."""
    counts = sorted({float(row["saves"] or 0) for row in rows})
    tiers = {row["tier"]: {"tier": row["tier"]} for row in rows}
    if len(counts) > 1 and len(rows) == len(counts) * len(tiers):
        for row in rows:
            n = float(row["saves"] or 0)
            tiers[row["tier"]][f"saves_{n:g}"] = row["saves_energy_kwh"]
        columns = [
            Column(f"saves_{n:g}", f"x{count(n)}", "kWh", f"energy of {count(n)} saves")
            for n in counts
        ]
        first = Column("tier", "kWh of the saves alone")
        title = "Tiers by number of saves, no failures"
        return Table("all_saves", title, (first, *columns), list(tiers.values()))
    found = [{"tier": row["tier"], "saves": row["saves"], **_amounts(row, "saves")} for row in rows]
    several = (Column("tier", "all saves"), Column("saves", "saves", "count"), *_everyday("saves"))
    return Table("all_saves", "All saves of the run, no failures", several, found)


def _amounts(row: CaseRow, prefix: str) -> dict[str, Any]:
    return {q.column: row[f"{prefix}_{q.column}"] for q in EVERYDAY}


def _everyday(prefix: str) -> list[Column]:
    return [Column(q.column, q.unit, q.unit, COLUMNS[f"{prefix}_{q.column}"]) for q in EVERYDAY]


def _whole_run(rows: Sequence[CaseRow]) -> Table:
    """Every case with failures and recovery, tiers together, counts rising."""
    order = list(dict.fromkeys(row["tier"] for row in rows))
    least: dict[str, list[str]] = {}
    for amount, row in least_of(rows).items():
        least.setdefault(row["case"], []).append(amount)
    found = []
    for row in sorted(rows, key=lambda each: (order.index(each["tier"]), each["saves"] or 0)):
        amounts = {"wall": row["wall_s"], **_amounts(row, "run")}
        endless = ENDLESS in row["cautions"]
        found.append(
            {
                **{name: row[name] for name in ("tier", "saves", "goodput", "case")},
                **(dict.fromkeys(amounts) if endless else amounts),
                "first": row is rows[0],
                "least": " ".join(least.get(row["case"], ())),
            }
        )
    columns = (
        Column("tier", "whole run"),
        Column("saves", "saves", "count", COLUMNS["saves"]),
        Column("goodput", "goodput", "share", COLUMNS["goodput"]),
        Column("wall", "wall", "s", COLUMNS["wall_s"] + "; none where it is all but never over"),
        *(c._replace(label="GPU-h lost") if c.unit == "GPU-h" else c for c in _everyday("run")),
        *hidden(
            Column("case", "case", "", KEYED[1].meaning),
            Column("first", "first", "bool", "the case that is billed line by line"),
            Column("least", "least", "", "columns of `cases` of which it adds least"),
        ),
    )
    title = "The whole run, failures and recovery included"
    return Table("whole_run", title, columns, found, _left_out(rows))


def _left_out(rows: Sequence[CaseRow]) -> str:
    """Which lines are missing in which rows of the tables."""
    said: dict[str, list[str]] = {}
    tiers = [row for row, _ in _by_tier(rows, rows)]
    for row in tiers:
        said.setdefault(_lacking(row), []).append(row["tier"])
    parts = [
        lacking + ("" if len(those) == len(tiers) else f" [{', '.join(those)}]")
        for lacking, those in said.items()
        if lacking
    ]
    if not parts:
        return ""
    alike = len({without_of(row) for row in tiers}) == 1
    note = "" if alike else "; totals that lack different lines say nothing of each other"
    return f"left out because unknown: {' | '.join(parts)}{note}"


def _lacking(row: CaseRow) -> str:
    lacks = {what: str(row[f"{what}_without"]).split() for what in ("energy", "cost")}
    return "; ".join(
        f"{what}: {', '.join(map(line_label, lines))}" for what, lines in lacks.items() if lines
    )


def _bill(of: ClosedForm, case: Case) -> Table:
    """The first case line by line."""

    charged = [
        c
        for c in of.components
        if c.ledger == "marginal"
        and any(q.value is None or q.value != 0 for q in (c.energy, c.gpu_time_lost, c.cost))
    ]
    lines = [(c.id, c.label, c) for c in charged] + [("total", "total", of.totals)]
    rows = [
        {
            "line": name,
            "kwh": c.energy.value,
            "range": range_text(c.energy),
            "gpu_hours": c.gpu_time_lost.value,
            "usd": c.cost.value,
            "kgco2e": c.emissions_location.value,
            "id": line,
        }
        for line, name, c in lines
    ]
    columns = (
        *named("line"),
        Column("kwh", "kWh", "kWh", "energy that it adds"),
        Column("range", "p5-p95", "", "of the energy"),
        Column("gpu_hours", "GPU-h", "GPU-h", "GPU time that it takes"),
        Column("usd", "USD", "USD", "dollars that it adds"),
        Column("kgco2e", "kgCO2e", "kgCO2e", "emissions that it adds, location-based"),
        Column("id", "id", "", "of the line", shown=False),
    )
    title = f"The bill of the run: {of.subject.tier}, {count(of.schedule.saves)} saves"
    return Table("bill", title, columns, rows, _missing(of))


def _missing(of: ClosedForm) -> str:
    """The lines that the bill's totals lack."""
    labels = {c.id: c.label for c in of.components}
    sums = (("energy", of.totals.energy), ("cost", of.totals.cost))
    told = []
    for name in sorted({name for _, q in sums for name in q.excludes}):
        lacks = [what for what, q in sums if name in q.excludes]
        told.append(f"{labels[name]} ({' and '.join(lacks)})")
    return f"not in the totals because unknown: {', '.join(told)}" if told else ""


def claims_table(cases: Sequence[Case], names: Sequence[str]) -> Table:
    """What vendors say of one checkpoint, for whoever holds it against the figures; never an
    input."""
    rows = [
        {"case": name, **claim}
        for case, name in zip(cases, names, strict=True)
        for claim in _claims_of(case)
    ]
    columns = (
        KEYED[1],
        Column("what", "what", "", "energy or time"),
        Column("unit", "unit", "", "of value, low and high"),
        Column("value", "value", ROW_UNIT, "as stated"),
        Column("low", "low", ROW_UNIT, "as stated"),
        Column("high", "high", ROW_UNIT, "as stated"),
        Column("size", "size", "bytes", "of the checkpoint that it is stated for"),
        Column("this_size", "this size", "bool", "whether that is the scenario's"),
        Column("source", "source", "", "id in the catalogue"),
    )
    return Table("claims", "What vendors say of one checkpoint", columns, rows, shown=False)


def _claims_of(case: Case) -> list[dict[str, Any]]:
    """What vendors say of one checkpoint, as they say it, and whether it is of this size."""
    whole = float(full_bytes(case.scenario.checkpoint))
    found = []
    for claim in case.resolved.claims:
        unit = {"energy": "j", "time": "s"}[claim.what]
        stated: dict[str, Any] = {}
        for part in ("value", "low", "high"):
            text = getattr(claim, part)
            value = None if text is None else parse(text, unit)
            stated[part] = value if value is None or unit == "s" else tidy(to_kwh(value))
        of_bytes = parse(claim.size, "bytes")
        found.append(
            {
                "what": claim.what,
                "unit": {"j": "kWh", "s": "s"}[unit],
                **stated,
                "size": of_bytes,
                "this_size": abs(of_bytes - whole) <= 0.01 * whole,
                "source": claim.source,
            }
        )
    return found


def _by_tier(rows: Sequence[CaseRow], beside: Sequence[Any]) -> list[tuple[CaseRow, Any]]:
    """The first row of each tier, with what stands beside it."""
    found: dict[str, tuple[CaseRow, Any]] = {}
    for row, other in zip(rows, beside, strict=True):
        found.setdefault(row["tier"], (row, other))
    return list(found.values())
