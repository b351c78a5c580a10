"""Rebuild a report from the inputs it carries and compare every number: `ckptcost check FILE`.
Nothing is looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, NamedTuple

from pydantic import ValidationError

from ckptcost.catalog import schema
from ckptcost.catalog.figures import Figure
from ckptcost.catalog.keys import CADENCES, KEYS, SECTIONS, TYPES, WORDS
from ckptcost.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.core.draws import LEAST, MOST
from ckptcost.core.quantities import IN_DOCUMENTS
from ckptcost.errors import InputError, brief
from ckptcost.jobs.model import Answer, Case, case_of
from ckptcost.report.build import METHOD_VERSION, SCHEMA_NAME, parts_of, result_hash
from ckptcost.report.document import Component, Report
from ckptcost.report.factors import Part, inputs_hash
from ckptcost.report.json_text import parsed
from ckptcost.report.sums import has_total
from ckptcost.scenario import Input, Resolved

MOST_BYTES = 50_000_000
TOLERANCE = 1e-9

# what the inputs decide; the rest is names, sources and sentences, which the result's hash covers
REBUILT = (
    "schedule",
    "power_step",
    "totals",
    "components",
    "allocated",
    "one_save",
    "functional_units",
    "uncertainty",
    "avoidable",
    "cases",
    "boundary",
    "subject",
    "assumptions",
)
_SAID = {
    "label",
    "tier_name",
    "claims",
    "factors",
    "dropped",
    "choices",
    "included",
    "excluded",
    "run_name",
    "checkpoint",
    "tier",
    "second_tier",
    "cluster",
    "accelerator",
    "site",
    "grid",
}


class Difference(NamedTuple):
    where: str
    reported: Any
    recomputed: Any


def read(path: str) -> Report:
    """A report file, validated; a newer minor version is read, a newer major one refused."""
    raw = parsed(path, MOST_BYTES)
    if not isinstance(raw, dict) or raw.get("schema_name") != SCHEMA_NAME:
        raise InputError(
            "is not a ckptcost report",
            where=path,
            key="schema_name",
            remedy="write one with `ckptcost model -f json -o FILE`",
        )
    version = str(raw.get("schema_version"))
    if not version.startswith("1."):
        raise InputError(
            f"has schema version {brief(version)}, this program reads 1.x",
            where=path,
            key="schema_version",
            remedy="use a newer ckptcost",
        )
    try:
        return Report.model_validate(raw, extra="ignore" if version != "1.0" else None)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(
            first["msg"][0].lower() + first["msg"][1:],
            where=path,
            key=".".join(map(str, first["loc"])),
        ) from None


def scenario_of(factors: list[Part], choices: dict[str, Any]) -> Scenario:
    """The core's scenario from the factors and choices that a report carries."""
    parts: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for f in factors:
        section, _, key = f["id"].partition(".")
        target = KEYS.get(section, {}).get(key)
        if not target:
            raise InputError("is not an input this version knows", key=f["id"])
        if f["value"] is None and not key.endswith("keep_last"):
            raise InputError("has no value, and may not be unlimited", key=f"factors.{f['id']}")
        value = float("inf") if f["value"] is None else f["value"]
        if value < float("inf"):
            for bound in (value, f["low"], f["high"]):
                if bound is not None:
                    try:
                        schema.within_limits(section, key, bound, f"{bound:g}")
                    except InputError as error:
                        raise error.at(key=f"factors.{f['id']}") from None
        parts[section][target] = value
    allowed = {section: {field.name for field in fields(cls)} for section, cls in TYPES.items()}
    for path, value in choices.items():
        section, _, word = path.partition(".")
        if value is not None and word in allowed.get(section, ()):
            known = WORDS[section].get(word, ())
            if known not in ((str,), (bool,)) and known and value not in known:
                raise InputError(
                    f"{brief(value)} is not a choice this version knows", key=f"choices.{path}"
                )
            parts[section][word] = value
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


def _case(factors: list[Part], choices: dict[str, Any], tier_id: str, draws: int) -> Case:
    inputs = []
    for f in factors:
        section, _, key = f["id"].partition(".")
        field = f"{section}.{KEYS[section][key]}" if section != "run" else KEYS[section][key]
        value = float("inf") if f["value"] is None else f["value"]
        basis = "assumed" if f["origin"] == "default" else f["origin"]
        figure = Figure(
            value,
            f["low"],
            f["high"],
            basis,
            "; ".join(source["id"] for source in f["sources"]),
            f["boundary"] or "",
            f["note"] or "",
            f["text"],
        )
        inputs.append(Input(f["id"], field, f["unit"], figure, f["set_by"]))
    names = dict.fromkeys(("checkpoint", "tier", "cluster", "site"), "")
    resolved = Resolved(
        scenario_of(factors, choices), tuple(inputs), dict(choices), names, "", (), {}
    )
    return case_of(resolved, draws=draws)._replace(tier_id=tier_id)


def rebuilt(report: Report) -> Part:
    """The document's content as the report's own factors and choices give it."""
    said = _said(report)
    cases = tuple(_case_of(said, row) for row in said["cases"])
    reference = _case_of(said, said["avoidable"]) if said["avoidable"] else None
    return parts_of(Answer(cases, reference), SimpleNamespace(sources={}))  # type: ignore[arg-type]


def _draws_of(said: Part) -> int:
    """How many draws the ranges come from."""
    draws = int(said["uncertainty"]["samples"])
    if not LEAST <= draws <= MOST:
        raise InputError(f"is not from {LEAST} to {MOST:,}", key="uncertainty.samples")
    return draws


def case_rebuilt(report: Report, at: int) -> Case:
    """One of its cases, from the factors that the report carries."""
    said = _said(report)
    return _case_of(said, said["cases"][at])


def _said(report: Report) -> Part:
    return report.model_dump(
        mode="json", include={"factors", "choices", "cases", "avoidable", "uncertainty"}
    )


def _case_of(said: Part, row: Part) -> Case:
    changed = {f["id"]: f for f in said["factors"] if f["id"] not in row["dropped"]} | {
        f["id"]: f for f in row["factors"]
    }
    choices = {
        key: value
        for key, value in {**said["choices"], **row["choices"]}.items()
        if value is not None
    }
    figures = [changed[name] for name in sorted(changed)]
    return _case(figures, choices, row["tier"], _draws_of(said))


def differences(report: Report) -> list[Difference]:
    """Everything in the report that its own inputs do not give: figures, ranges, sums, rows and
    hashes."""
    if not report.cases:
        raise InputError("holds no case", key="cases")
    said = report.model_dump(mode="json")
    found = []
    for name, digest in (
        ("result_sha256", result_hash(report)),
        ("inputs_sha256", inputs_hash(said["factors"], said["choices"], said["cases"])),
    ):
        if digest != said["reproducibility"][name]:
            found.append(
                Difference(f"reproducibility.{name}", said["reproducibility"][name], digest)
            )
    if report.report_id != f"urn:sha256:{said['reproducibility']['inputs_sha256'][:32]}":
        found.append(Difference("report_id", report.report_id, "the inputs' hash"))
    if report.tool.method_version != METHOD_VERSION:
        found.append(Difference("tool.method_version", report.tool.method_version, METHOD_VERSION))
    everything = [*said["factors"], *(f for row in said["cases"] for f in row["factors"])]
    ranged = [f for f in everything if None not in (f["low"], f["high"], f["value"])]
    outside = [f for f in ranged if not f["low"] <= f["value"] <= f["high"]]
    if outside:
        return [
            *found,
            *(
                Difference(f"factors.{f['id']}", f["value"], f"between {f['low']} and {f['high']}")
                for f in outside
            ),
        ]
    again = rebuilt(report)
    for key in REBUILT:
        if key == "power_step" and said[key] is None:  # a report written before there was one
            continue
        found += _compare(key, said[key], again[key])
    for name, totals, components, ledger in (
        ("totals", report.totals, report.components, "marginal"),
        ("allocated", report.allocated, report.components, "allocated"),
        ("one_save.totals", report.one_save.totals, report.one_save.components, "marginal"),
    ):
        for q in IN_DOCUMENTS:
            found += _compare(
                f"{name}.{q.id} as a sum",
                getattr(totals, q.id).value,
                _sum(components, ledger, q.id),
            )
    return found


def _compare(where: str, reported: Any, recomputed: Any) -> Iterator[Difference]:
    if isinstance(reported, dict) and isinstance(recomputed, dict):
        for key in sorted({*reported, *recomputed} - _SAID):
            yield from _compare(f"{where}.{key}", reported.get(key), recomputed.get(key))
    elif (
        isinstance(reported, list)
        and isinstance(recomputed, list)
        and len(reported) == len(recomputed)
    ):
        for i, (one, other) in enumerate(zip(reported, recomputed, strict=True)):
            name = one.get("id", i) if isinstance(one, dict) else i
            yield from _compare(f"{where}.{name}", one, other)
    elif _number(reported) and _number(recomputed):
        if abs(reported - recomputed) > TOLERANCE * max(abs(reported), abs(recomputed), 1e-12):
            yield Difference(where, reported, recomputed)
    elif reported != recomputed:
        yield Difference(where, reported, recomputed)


def _sum(components: list[Component], ledger: str, field: str) -> float | None:
    """As core's Bill.total sums: nothing without what GPUs and hosts do."""
    mine = [c for c in components if c.ledger == ledger]
    if not has_total(mine, field):
        return None
    known: list[float] = [v for c in mine if (v := getattr(c, field).value) is not None]
    return sum(known)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
