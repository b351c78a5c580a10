"""Rebuild a report from the inputs it carries and compare every number: `ckptcost check FILE`.
Nothing is looked up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, NamedTuple

from ckptcost.first.catalog import schema
from ckptcost.first.catalog.figures import Figure
from ckptcost.first.catalog.keys import CADENCES, KEYS, TYPES, WORDS
from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.draws import LEAST, MOST
from ckptcost.first.core.quantities import IN_DOCUMENTS
from ckptcost.first.errors import InputError, brief
from ckptcost.first.jobs.model import Answer, Case, case_of
from ckptcost.first.report.build import METHOD_VERSION, id_of, inputs_hash, result_hash
from ckptcost.first.report.document import SCHEMA_VERSION, Report
from ckptcost.first.report.factors import Part
from ckptcost.first.report.parts import Component, Totals
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.studies.model import study_of
from ckptcost.first.report.study import Study, Table
from ckptcost.first.report.sums import has_total
from ckptcost.first.scenario import Input, Resolved

TOLERANCE = 1e-9

NO_SOURCES: Any = SimpleNamespace(sources={})
"""for what is rebuilt from a document alone: where figures are from is said there"""

# what the inputs decide; the rest is names, sources and sentences, which the result's hash covers
REBUILT = (
    "schedule",
    "power_step",
    "totals",
    "components",
    "allocated",
    "one_save",
    "functional_units",
    "drawn",
    "boundary",
    "assumptions",
    "rests",
    "length_s",
)
_SUBJECT = ("run_id", "parameters", "accelerator_count", "nodes", "site_id", "grid_zone")
_SAID = {"label", "tier_name", "claimed", "included", "excluded"}
_TABLES = ("cases", "avoidable", "one_save", "all_saves", "whole_run", "bill")


class CheckDifference(NamedTuple):
    where: str
    reported: Any
    recomputed: Any


def scenario_of(factors: list[Part], choices: dict[str, Any]) -> Scenario:
    """The core's scenario from the factors and choices that a report carries."""
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for f in factors:
        section, key, target = _input_of(f)
        parts[section][target] = _value_within_limits(f, section, key)
    for path, value in choices.items():
        section, _, word = path.partition(".")
        if value is not None and word in _FIELDS.get(section, ()):
            parts[section][word] = _known_word(value, section, word)
    cadence = choices.get("policy.cadence")
    if cadence not in (*CADENCES, "optimal"):
        raise InputError("does not say how often saves happen", key="choices.policy.cadence")
    parts["policy"].update(cadence=cadence, objective=choices.get("policy.optimal") or "time")
    parts["policy"].setdefault("every", 0.0)
    second, third = (
        Tier(**parts[name]) if parts[name] else None for name in ("second_tier", "third_tier")
    )
    try:
        return Scenario(
            Checkpoint(**parts["checkpoint"]),
            Tier(**parts["tier"]),
            Cluster(**parts["cluster"]),
            Policy(**parts["policy"]),
            Failures(**parts["failures"]),
            Site(**parts["site"]),
            parts["run"]["work_s"],
            second,
            third,
        )
    except (KeyError, TypeError) as error:
        raise InputError(
            f"lacks an input that the calculation needs ({error})", key="factors"
        ) from None


_FIELDS = {section: {field.name for field in fields(cls)} for section, cls in TYPES.items()}


def _input_of(f: Part) -> tuple[str, str, str]:
    """A factor's section and key, and the core's name of it."""
    section, _, key = f["id"].partition(".")
    target = KEYS.get(section, {}).get(key)
    if not target:
        raise InputError("is not an input this version knows", key=f["id"])
    return section, key, target


def _value_within_limits(f: Part, section: str, key: str) -> float:
    value: float | None = f["value"]
    if value is None:
        if not key.endswith("keep_last"):
            raise InputError("has no value, and may not be unlimited", key=f"factors.{f['id']}")
        return float("inf")
    for bound in (value, f["low"], f["high"]):
        try:
            if bound is not None and value < float("inf"):
                schema.within_limits(section, key, bound, f"{bound:g}")
        except InputError as error:
            raise error.at(key=f"factors.{f['id']}") from None
    return value


def _known_word(value: Any, section: str, word: str) -> Any:
    known = WORDS[section].get(word, ())
    if known and known not in ((str,), (bool,)) and value not in known:
        raise InputError(
            f"{brief(value)} is not a choice this version knows", key=f"choices.{section}.{word}"
        )
    return value


def case_from(
    factors: list[Part], choices: dict[str, Any], tier_id: str, draws: int, ranges: bool = True
) -> Case:
    """A case computed again from factors and choices as documents hold them."""
    inputs = []
    for f in factors:
        section, _, target = _input_of(f)
        figure = Figure(
            float("inf") if f["value"] is None else f["value"],
            f["low"],
            f["high"],
            "assumed" if f["origin"] == "default" else f["origin"],
            "; ".join(source["id"] for source in f["sources"]),
            f["boundary"] or "",
            f["note"] or "",
            f["text"],
        )
        field = target if section == "run" else f"{section}.{target}"
        inputs.append(Input(f["id"], field, f["unit"], figure, f["set_by"]))
    names = dict.fromkeys(("checkpoint", "tier", "cluster", "site"), "")
    resolved = Resolved(
        scenario_of(factors, choices), tuple(inputs), dict(choices), names, "", (), {}
    )
    return case_of(resolved, ranges, draws=draws)._replace(tier_id=tier_id)


def rebuilt(report: Report) -> Study:
    """The model's answer as the document's own factors and choices give it."""
    cases = tuple(case_rebuilt(report, at) for at in range(len(report.rows("cases"))))
    reference = case_rebuilt(report, len(cases)) if len(report.scenarios) > len(cases) else None
    return study_of(Answer(cases, reference), NO_SOURCES)


def case_rebuilt(report: Report, at: int) -> Case:
    """One of a model's cases, or the reference behind them, from the factors that it carries."""
    rows = _rows_of(report)
    choices = {k: v for k, v in choices_of(report, at).items() if v is not None}
    draws = _draws_of(report.statements[0])
    return case_from(factors_of(report, at), choices, str(rows[at].get("tier")), draws)


def _rows_of(report: Report) -> list[Part]:
    """The rows of a model's cases and of the reference behind them: one for each scenario, told by
    what differs from the first statement's inputs."""
    rows = _rows(report, "cases")
    if not rows or not report.statements:
        raise InputError("holds no case", key="tables.cases")
    rows += _rows(report, "avoidable")
    if len(report.scenarios) != len(rows):
        told = f"holds {len(report.scenarios)} scenarios for {len(rows)} rows of cases"
        raise InputError(told, key="scenarios")
    first = report.scenarios[0]
    if first.factors or first.dropped or first.choices:
        raise InputError("differs from the statement that it belongs to", key="scenarios.0")
    if not all(each.by_difference for each in report.scenarios):
        raise InputError("is not told by what differs from the first", key="scenarios")
    return rows


def _rows(report: Report, table: str) -> list[Part]:
    """Of a table; none where it is not there."""
    return report.rows(table) if table in report.tables else []


def factors_of(report: Report, at: int) -> list[Part]:
    """All factors of a scenario that is told by what differs from the first statement's."""
    mine = report.scenarios[at].model_dump(mode="json")
    if not mine["by_difference"]:
        return list(mine["factors"])
    theirs = [f.model_dump(mode="json") for f in report.statements[0].factors]
    changed = {f["id"]: f for f in theirs if f["id"] not in mine["dropped"]}
    changed |= {f["id"]: f for f in mine["factors"]}
    return [changed[name] for name in sorted(changed)]


def choices_of(report: Report, at: int) -> dict[str, Any]:
    """The same of its choices; None where it has none of the first one's."""
    mine = report.scenarios[at]
    return {**report.statements[0].choices, **mine.choices} if mine.by_difference else mine.choices


def _draws_of(statement: Statement) -> int:
    """How many draws the ranges come from."""
    draws = 0 if statement.drawn is None else statement.drawn.samples
    if not LEAST <= draws <= MOST:
        raise InputError(f"is not from {LEAST} to {MOST:,}", key="statements.0.drawn.samples")
    return draws


def differences(report: Report) -> list[CheckDifference]:
    """Everything in the document that its own parts do not give: hashes and sums; of a model also
    figures, ranges and rows, from its inputs."""
    found = [*_hashes(report), *_id_differences(report)]
    if report.kind == "model":
        _rows_of(report)
        method = report.tool.method_version
        if method != METHOD_VERSION:
            found.append(CheckDifference("tool.method_version", method, METHOD_VERSION))
        if outside := _outside_their_ranges(report):
            return [*found, *outside]
        found += _against(report, rebuilt(report))
    for s in report.statements:
        found += _sum_differences(s)
    return found


def _outside_their_ranges(report: Report) -> list[CheckDifference]:
    factors = [*report.statements[0].factors, *(f for s in report.scenarios for f in s.factors)]
    return [
        CheckDifference(f"factors.{f.id}", f.value, f"between {f.low} and {f.high}")
        for f in factors
        if f.low is not None and f.high is not None and f.value is not None
        if not f.low <= f.value <= f.high
    ]


def _sum_differences(s: Statement) -> Iterator[CheckDifference]:
    """Totals that are not the sums of their lines."""
    sums: list[tuple[str, Totals, list[Component], str]] = [
        ("totals", s.totals, s.components, "marginal")
    ]
    if s.allocated is not None:
        sums.append(("allocated", s.allocated, s.components, "allocated"))
    if s.one_save is not None:
        sums.append(("one_save.totals", s.one_save.totals, s.one_save.components, "marginal"))
    for name, totals, components, ledger in sums:
        mine = [c for c in components if c.ledger == ledger]
        for q in IN_DOCUMENTS:
            where = f"{s.subject.run_id}.{name}.{q.id} as a sum"
            yield from _compare(where, getattr(totals, q.id).value, _sum(mine, q.id))


def _hashes(report: Report) -> list[CheckDifference]:
    said = report.reproducibility
    scenarios = [each.model_dump(mode="json") for each in report.scenarios]
    if scenarios and scenarios[0]["by_difference"] and report.statements:
        first = report.statements[0].model_dump(mode="json", include={"factors", "choices"})
        scenarios[0] = first
    return [
        CheckDifference(f"reproducibility.{name}", told, digest)
        for name, told, digest in (
            ("result_sha256", said.result_sha256, result_hash(report)),
            ("inputs_sha256", said.inputs_sha256, inputs_hash(scenarios)),
        )
        if told != digest
    ]


def _id_differences(report: Report) -> Iterator[CheckDifference]:
    """Whether its id is that of its question, inputs, files and recordings."""
    said = report.reproducibility
    # statements name the files of the answer that they were in, and are told apart by their own ids
    files = [] if report.kind == "statements" else [each.sha256 for each in said.inputs]
    name = id_of(report.kind, report.question, said.inputs_sha256, files, report.statements)
    if name != report.report_id:
        yield CheckDifference("report_id", report.report_id, name)


def _against(report: Report, again: Study) -> Iterator[CheckDifference]:
    """A model's first statement and its tables, held against what was computed again."""
    mine = report.statements[0].model_dump(mode="json")
    bills = again.bills
    assert bills is not None
    theirs = bills(NO_SOURCES)[0].model_dump(mode="json")
    for key in REBUILT:
        yield from _compare(key, mine[key], theirs[key])
    for key in _SUBJECT:
        yield from _compare(f"subject.{key}", mine["subject"][key], theirs["subject"][key])
    asked = {key: report.question.get(key) for key in again.question}
    yield from _compare("question", asked, again.question)
    tables = {table.id: table for table in again.tables}
    for name in _TABLES:
        again_table = tables.get(name, Table(name, "", (), []))
        yield from _table_differences(report, name, again_table)


def _table_differences(report: Report, name: str, again: Table) -> Iterator[CheckDifference]:
    rows = _rows(report, name)
    units = _units(report.tables[name].columns) if rows else {}
    told = _units({c.id: c for c in again.columns})
    if report.schema_version != SCHEMA_VERSION:  # may have columns that this one does not know
        units = {column: unit for column, unit in units.items() if column in told}
        rows = [{c: row.get(c) for c in units} for row in rows]
    yield from _compare(f"{name}.columns", units, told)
    yield from _compare(name, rows, [{c: row.get(c) for c in told} for row in again.rows])


def _units(columns: Mapping[str, Any]) -> dict[str, str]:
    return {name: column.unit for name, column in columns.items()}


def _compare(where: str, reported: Any, recomputed: Any) -> Iterator[CheckDifference]:
    pairs = _pairs(reported, recomputed)
    if pairs is not None:
        for name, one, other in pairs:
            yield from _compare(f"{where}.{name}", one, other)
    elif not _alike(reported, recomputed):
        yield CheckDifference(where, reported, recomputed)


def _pairs(reported: Any, recomputed: Any) -> list[tuple[Any, Any, Any]] | None:
    """What two parts hold, side by side by name; None where they hold nothing of the same kind."""
    if isinstance(reported, dict) and isinstance(recomputed, dict):
        keys = sorted({*reported, *recomputed} - _SAID)
        return [(key, reported.get(key), recomputed.get(key)) for key in keys]
    both = isinstance(reported, list) and isinstance(recomputed, list)
    if not both or len(reported) != len(recomputed):
        return None
    names = [_name_in_list(i, each) for i, each in enumerate(reported)]
    return list(zip(names, reported, recomputed, strict=True))


def _name_in_list(at: int, part: Any) -> Any:
    return (part.get("case") or part.get("id") or at) if isinstance(part, dict) else at


def _alike(reported: Any, recomputed: Any) -> bool:
    if not (_number(reported) and _number(recomputed)):
        return bool(reported == recomputed)
    least = TOLERANCE * max(abs(reported), abs(recomputed), 1e-12)
    return bool(abs(reported - recomputed) <= least)


def _sum(lines: list[Component], field: str) -> float | None:
    """As core's Bill.total sums: nothing without what GPUs and hosts do."""
    if not has_total(lines, field):
        return None
    known: list[float] = [v for c in lines if (v := getattr(c, field).value) is not None]
    return sum(known)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
