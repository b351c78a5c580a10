"""Recompute a report from its own inputs and compare every figure: `ckptcost check FILE`."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ckptcost.catalog.files import text_of
from ckptcost.catalog.keys import CADENCES, KEYS, SECTIONS, TYPES
from ckptcost.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.core.outcome import Outcome, evaluate
from ckptcost.errors import InputError
from ckptcost.report.build import FIELDS, SCHEMA_NAME, inputs_hash, result_hash
from ckptcost.report.canonical import tidy
from ckptcost.report.document import Component, Factor, Report, Totals
from ckptcost.report.rows import columns_of

MOST_BYTES = 50_000_000
TOLERANCE = 1e-9


class Difference(NamedTuple):
    where: str
    reported: float | str | None
    recomputed: float | str | None


def read(path: str) -> Report:
    """A report file, validated; a newer minor version is read, a newer major one refused."""
    text = text_of(Path(path), path, MOST_BYTES)
    try:
        raw = json.loads(text, parse_constant=lambda word: _refuse(path, word))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {error}", where=path) from None
    if not isinstance(raw, dict) or raw.get("schema_name") != SCHEMA_NAME:
        raise InputError(
            "is not a ckptcost report", where=path, key="schema_name", remedy="write one with `ckptcost model -f json -o FILE`"
        )
    version = str(raw.get("schema_version"))
    if not version.startswith("1."):
        raise InputError(
            f"has schema version {version[:20]}, this program reads 1.x", where=path, key="schema_version", remedy="use a newer ckptcost"
        )
    try:
        return Report.model_validate(raw, strict=False, extra="ignore" if version != "1.0" else None)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(first["msg"][0].lower() + first["msg"][1:], where=path, key=".".join(map(str, first["loc"]))) from None


def _refuse(path: str, word: str) -> Any:
    raise InputError(f"holds {word}, which is not JSON", where=path)


def scenario_of(factors: list[Factor], choices: dict[str, Any]) -> Scenario:
    """The core's scenario from the factors and choices that a report carries."""
    parts: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for f in factors:
        section, _, key = f.id.partition(".")
        target = KEYS.get(section, {}).get(key)
        if not target:
            raise InputError("is not an input this version knows", key=f.id)
        parts[section][target] = float("inf") if f.value is None else f.value
    allowed = {section: {field.name for field in fields(cls)} for section, cls in TYPES.items()}
    for path, value in choices.items():
        section, _, word = path.partition(".")
        if value is not None and word in allowed.get(section, ()):
            parts[section][word] = value
    cadence = choices.get("policy.cadence")
    parts["policy"].update(cadence=cadence, objective=choices.get("policy.optimal") or "time")
    parts["policy"].setdefault("every", 0.0)
    if cadence not in (*CADENCES, "optimal"):
        raise InputError("does not say how often saves happen", key="choices.policy.cadence")
    try:
        return Scenario(
            Checkpoint(**parts["checkpoint"]), Tier(**parts["tier"]), Cluster(**parts["cluster"]), Policy(**parts["policy"]),
            Failures(**parts["failures"]),
            Site(**parts["site"]), parts["run"]["work_s"], Tier(**parts["second_tier"]) if parts["second_tier"] else None,
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise InputError(f"lacks an input that the calculation needs ({error})", key="factors") from None


def _inputs_hash(report: Report) -> str:
    dumped = report.model_dump(mode="json", include={"factors", "choices", "cases"})
    return inputs_hash(dumped["factors"], dumped["choices"], dumped["cases"])


def _far(reported: float | None, recomputed: float | None) -> bool:
    if reported is None or recomputed is None:
        return reported is not recomputed
    return abs(reported - recomputed) > TOLERANCE * max(abs(reported), abs(recomputed), 1e-12)


def differences(report: Report) -> list[Difference]:
    """Everything in the report that its own inputs do not give: figures, sums, rows and hashes."""
    found: list[Difference] = []

    def compare(where: str, reported: float | None, recomputed: float | None) -> None:
        if _far(reported, recomputed):
            found.append(Difference(where, reported, recomputed))

    if (digest := result_hash(report)) != report.reproducibility.result_sha256:
        found.append(Difference("reproducibility.result_sha256", report.reproducibility.result_sha256, digest))
    if (digest := _inputs_hash(report)) != report.reproducibility.inputs_sha256:
        found.append(Difference("reproducibility.inputs_sha256", report.reproducibility.inputs_sha256, digest))
    outcome = evaluate(scenario_of(report.factors, report.choices))
    for name, components, bill in (
        ("components", report.components, outcome.run),
        ("one_save.components", report.one_save.components, outcome.one_save),
    ):
        lines = {line.id: line for line in bill.lines}
        for missing in lines.keys() ^ {c.id for c in components}:
            found.append(Difference(f"{name}.{missing}", None if missing in lines else "present", "present" if missing in lines else None))
        for c in components:
            for field, attribute, _, people in FIELDS:
                if c.id in lines:
                    compare(f"{name}.{c.id}.{field}", getattr(c, field).value, tidy(float(people(getattr(lines[c.id], attribute)))))
    for name, totals, components, ledger in (
        ("totals", report.totals, report.components, "marginal"), ("allocated", report.allocated, report.components, "allocated"),
        ("one_save.totals", report.one_save.totals, report.one_save.components, "marginal"),
    ):  # fmt: skip
        for field, *_ in FIELDS:
            compare(f"{name}.{field}", getattr(totals, field).value, _sum(components, ledger, field, totals))
    _rows(report, compare)
    _schedule(report, outcome, compare)
    return found


def _sum(components: list[Component], ledger: str, field: str, totals: Totals) -> float | None:
    values = [value for c in components if c.ledger == ledger and (value := getattr(c, field).value) is not None]
    return sum(values) if values else None


def _rows(report: Report, compare: Any) -> None:
    for row in report.cases:
        changed = {f.id: f for f in report.factors if f.id not in row.dropped} | {f.id: f for f in row.factors}
        values = columns_of(evaluate(scenario_of(list(changed.values()), {**report.choices, **row.choices})))
        for name, value in row.values.items():
            compare(f"cases.{row.id}.{name}", value, tidy(float(values[name])) if name in values else None)


def _schedule(report: Report, outcome: Outcome, compare: Any) -> None:
    s = report.schedule
    for name, value in (
        ("interval_s", outcome.interval_s),
        ("saves", outcome.saves),
        ("stall_s", outcome.cycle.stall_s),
        ("wall_s", outcome.wall_s),
        ("goodput", outcome.goodput),
        ("failures", outcome.failures),
    ):
        compare(f"schedule.{name}", getattr(s, name), tidy(float(value)))
    compare("totals.checkpoints", report.totals.checkpoints.value, tidy(float(outcome.saves)))
