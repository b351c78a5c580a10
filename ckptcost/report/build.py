"""Domain results to the document: every quantity with its unit, range and the factors it rests on.

`parts_of` builds it as one dictionary, complete to the last key. `build` lets the schema judge that
and takes its hashes; `plain` gives the views the same content without pydantic, which would double
the time that a table on the terminal takes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np

from ckptcost.catalog.figures import softest
from ckptcost.catalog.store import Catalog
from ckptcost.core.bill import Bill, Line
from ckptcost.core.cautions import host_ram, ram_verdict
from ckptcost.core.draws import SEED, p5_p95
from ckptcost.core.energy import least_ramp_w_per_s
from ckptcost.core.failures import mtbf_s
from ckptcost.core.outcome import failure_cost
from ckptcost.core.quantities import IN_DOCUMENTS
from ckptcost.core.size import full_bytes
from ckptcost.core.timing import nodes_of
from ckptcost.core.units import HOUR_S, parse, to_kwh, to_mw
from ckptcost.errors import InputError, brief
from ckptcost.jobs.levers import decided_by
from ckptcost.jobs.model import Answer, Case, case_names
from ckptcost.present.words import (
    caution_of_several,
    caution_text,
    light_word,
    line_label,
    unknown_text,
)
from ckptcost.report.canonical import sha256, tidy
from ckptcost.report.factors import (
    Part,
    assumptions_of,
    factor_ids,
    factor_of,
    inputs_hash,
    plain_factor,
)
from ckptcost.report.rows import columns_of, excludes_of
from ckptcost.version import __version__

SCHEMA_NAME, SCHEMA_VERSION, METHOD_VERSION = "ckptcost.report", "1.0", "2026.1"
FACTOR_SET = "ckptcost catalogue"
DRAWN = (
    "latin hypercube of triangles (low, value, high), "
    "logarithmic where low > 0, one stratum a draw, inputs independent save copies, plan fixed"
)


def _same(value: Any) -> Any:
    return value


def _quantity(
    value: Any,
    drawn: Any,
    unit: str,
    people: Any,
    factors: Sequence[str] = (),
    excludes: Sequence[str] = (),
) -> Part:
    point = float(people(value))
    part = {
        "value": tidy(point),
        "unit": unit,
        "basis": "modelled",
        "low": None,
        "high": None,
        "interval": None,
        "factors": list(factors),
        "excludes": list(excludes),
    }
    if part["value"] is not None:
        low, high = p5_p95(people(drawn), point)
        if low < high:
            part |= {"low": tidy(low), "high": tidy(high), "interval": "p5-p95"}
    return part


def _component(
    line: Line, spread: Line, known: tuple[str, ...], bases: dict[str, str], case: Case
) -> Part:
    quantities = {
        q.id: _quantity(
            getattr(line, q.field),
            getattr(spread, q.field),
            q.unit,
            q.people,
            factor_ids(line.id, q.id, known),
        )
        for q in IN_DOCUMENTS
    }
    used = {name for field in ("energy", "gpu_time_lost") for name in quantities[field]["factors"]}
    price = float(case.scenario.cluster.usd_per_gpu_s)
    part = {
        "id": line.id,
        "label": line_label(line.id),
        "cause": line.cause,
        "ledger": line.ledger,
        "boundary": line.boundary,
        "basis": "modelled",
        "rests_on": softest(tuple(bases[name] for name in used)),
        **quantities,
    }
    timed = price == price and (quantities["gpu_time_lost"]["value"] or 0.0) > 0
    priced = (
        (quantities["gpu_time_lost"]["value"], "GPU-h", tidy(price * HOUR_S))
        if timed
        else (None, None, None)
    )
    priced_as: Part = dict(zip(("price_qty", "price_unit", "unit_price"), priced, strict=True))
    return part | priced_as | {"sku": None, "needed": None}


def _components(
    bill: Bill, spread: Bill, known: tuple[str, ...], bases: dict[str, str], case: Case
) -> list[Part]:
    return [
        _component(line, other, known, bases, case)
        for line, other in zip(bill.lines, spread.lines, strict=True)
    ]


def _totals(bill: Bill, spread: Bill, ledger: Any, known: tuple[str, ...]) -> Part:
    return {
        q.id: _quantity(
            bill.total(q.field, ledger),
            spread.total(q.field, ledger),
            q.unit,
            q.people,
            sorted({name for line in bill.of(ledger) for name in factor_ids(line.id, q.id, known)}),
            bill.unknown(q.field, ledger),
        )
        for q in IN_DOCUMENTS
    }


def _row(case: Case, called: str, base: Case, catalog: Catalog) -> Part:
    values, spread = columns_of(case.outcome), columns_of(case.spread)
    low: dict[str, float | None] = {}
    high: dict[str, float | None] = {}
    for name, value in values.items():
        if tidy(float(value)) is not None:
            least, most = p5_p95(spread[name], float(value))
            if least < most:
                low[name], high[name] = tidy(least), tidy(most)
    theirs = {i.path: i for i in base.resolved.inputs}
    mine = {i.path: i for i in case.resolved.inputs}
    words, base_words = case.resolved.words, base.resolved.words
    return {
        "id": called,
        "tier": case.tier_id,
        "tier_name": case.resolved.names["tier"],
        "values": {name: tidy(float(value)) for name, value in values.items()},
        "low": low,
        "high": high,
        "claims": _claims(case),
        "cautions": [caution.code for caution in case.cautions],
        "excludes": excludes_of(case.outcome),
        "factors": [factor_of(i, catalog) for path, i in mine.items() if theirs.get(path) != i],
        "dropped": [path for path in theirs if path not in mine],
        "choices": {
            key: words.get(key)
            for key in sorted({*words, *base_words})
            if words.get(key) != base_words.get(key)
        },
    }


def _claims(case: Case) -> list[Part]:
    """What vendors say of one checkpoint, as they say it, and whether it is of this size."""
    size = float(full_bytes(case.scenario.checkpoint))
    found = []
    for claim in case.resolved.claims:
        unit, people, convert = {"energy": ("j", "kWh", to_kwh), "time": ("s", "s", _same)}[
            claim.what
        ]
        texts = {part: getattr(claim, part) for part in ("value", "low", "high")}
        stated = {
            part: None if text is None else tidy(convert(parse(text, unit)))
            for part, text in texts.items()
        }
        of_bytes = parse(claim.size, "bytes")
        found.append(
            {
                "what": claim.what,
                "unit": people,
                **stated,
                "size_bytes": of_bytes,
                "this_size": abs(of_bytes - size) <= 0.01 * size,
                "source": claim.source,
            }
        )
    return found


def _difference(first: Part, reference: Part) -> Part:
    pairs = {name: (value, reference["values"][name]) for name, value in first["values"].items()}
    values = {
        name: None if mine is None or theirs is None else tidy(mine - theirs)
        for name, (mine, theirs) in pairs.items()
    }
    return {
        **reference,
        "id": f"{first['id']} minus {reference['id']}",
        "values": values,
        "low": {},
        "high": {},
    }


def _schedule(case: Case) -> Part:
    o, s, classic = case.outcome, case.scenario, case.classic
    failure, ram = failure_cost(o), host_ram(s, o.saves)
    numbers = {
        "interval_s": o.interval_s,
        "saves": o.saves,
        "stall_s": o.mean_stall_s,
        "blocked_s": o.cycle.blocked_s,
        "lag_s": o.plan.saved.lag_s,
        "write_s": o.plan.saved.write_s,
        "load_s": o.plan.recovery.load_s,
        "size_bytes": full_bytes(s.checkpoint),
        "written_bytes": o.plan.saved.written_bytes,
        "write_rate_bytes_per_s": o.plan.saved.wire_bytes_per_s,
        "work_s": s.work_s,
        "wall_s": o.wall_s,
        "goodput": o.goodput,
        "failures": o.failures,
        "mtbf_s": mtbf_s(o.plan.failures_per_s),
        "lost_per_failure_s": failure.total_s,
        "redone_per_failure_s": failure.redone_s,
        "ram_copies_bytes": ram.copies_bytes,
        "ram_used_bytes": ram.used_bytes,
        "ram_there_bytes": ram.there_bytes,
        "young_interval_s": classic.young_interval_s,
        "daly_interval_s": classic.daly_interval_s,
        "first_order_goodput": classic.first_order_goodput,
        "first_order_goodput_off": classic.goodput_off,
        "daly_regret": classic.daly_regret,
    }
    return {
        "mode": s.policy.mode,
        "cadence": (
            s.policy.cadence
            if s.policy.cadence != "optimal"
            else f"optimal for {s.policy.objective}"
        ),
        "rules_judged_by": case.judged_by,
        "goodput_light": light_word(classic.goodput_light),
        "interval_light": light_word(classic.interval_light),
        "validity": light_word(classic.validity),
        "best_interval_s": {name: tidy(float(value)) for name, value in case.best.items()},
        "ram_verdict": ram_verdict(ram),
        **{name: tidy(float(value)) for name, value in numbers.items()},
    }


def _power_step(case: Case, known: Sequence[str]) -> Part:
    o, spread = case.outcome, case.spread
    gpus, hosts = (
        [name for name in known if name in (f"cluster.{path}" for path in paths)]
        for paths in (
            ("gpus", "gpu_train", "gpu_stall"),
            ("gpus", "gpus_per_node", "host_train", "host_stall", "host_stall_fraction"),
        )
    )
    whole = o.gpu_step_w + o.host_step_w
    return {
        "gpus": _quantity(o.gpu_step_w, spread.gpu_step_w, "MW", to_mw, gpus),
        "hosts": _quantity(o.host_step_w, spread.host_step_w, "MW", to_mw, hosts),
        "whole": _quantity(
            whole, spread.gpu_step_w + spread.host_step_w, "MW", to_mw, sorted({*gpus, *hosts})
        ),
        "lasts_s": tidy(float(o.mean_stall_s)),
        "least_ramp_mw_per_s": tidy(float(to_mw(least_ramp_w_per_s(whole, o.mean_stall_s)))),
    }


def _boundary(case: Case) -> Part:
    lines = list(case.outcome.run.of())
    apart = [
        ("useful training", "the bill holds what checkpoints and failures add"),
        ("idle storage, its share", "allocated ledger, reported apart"),
    ]
    unknown = [
        (line_label(line.id), "energy unknown") for line in lines if line.energy_j != line.energy_j
    ]
    return {
        "included": [line_label(line.id) for line in lines if line.energy_j == line.energy_j],
        "excluded": [{"component": name, "reason": reason} for name, reason in (*unknown, *apart)],
        "pue": case.scenario.site.pue,
        "pue_included_in_energy": True,
        "embodied_included": False,
        "counterfactual": "the same work with no checkpoints and no failures",
        "inventory_treatment": "memo_item",
    }


def _warnings(answer: Answer) -> list[Part]:
    """Each kind of caution once, in the words of the first case it holds for; the others are
    named."""
    said: dict[str, list[tuple[str, str]]] = {}
    for case, name in zip(answer.cases, case_names(answer.cases), strict=True):
        for caution in case.cautions:
            said.setdefault(caution.code, []).append((name, caution_text(caution)))
    found = [
        {"code": code, "message": caution_of_several(texts, len(answer.cases))}
        for code, texts in said.items()
    ]
    for path, reason in answer.cases[0].resolved.unknown.items():
        found.append({"code": "UNKNOWN_INPUT", "message": unknown_text(path, reason)})
    return found


def _subject(case: Case) -> Part:
    names, s = case.resolved.names, case.scenario
    return {
        "run_name": case.resolved.name or "scenario",
        "checkpoint": names["checkpoint"],
        "tier": names["tier"],
        "second_tier": names.get("second_tier"),
        "cluster": names["cluster"],
        "accelerator": names.get("accelerator"),
        "accelerator_count": s.cluster.gpus,
        "nodes": float(nodes_of(s.cluster)),
        "site": names["site"],
        "grid": names.get("grid"),
    }


@np.errstate(over="ignore")
def parts_of(
    answer: Answer,
    catalog: Catalog,
    command: Sequence[str] = (),
    files: Sequence[tuple[str, bytes]] = (),
) -> Part:
    """The document's content: the first case in full, all cases as rows. The result's hash is still
    empty."""
    case = answer.cases[0]
    o, spread = case.outcome, case.spread
    factors = [factor_of(i, catalog) for i in case.resolved.inputs]
    known = tuple(f["id"] for f in factors)
    bases = {i.path: i.figure.basis or "assumed" for i in case.resolved.inputs}
    rows = [
        _row(each, name, case, catalog)
        for each, name in zip(answer.cases, case_names(answer.cases), strict=True)
    ]
    choices = dict(sorted(case.resolved.words.items()))
    digest = inputs_hash(factors, choices, rows)
    everything = [*factors, *(f for row in rows for f in row["factors"])]
    return {
        "schema_name": SCHEMA_NAME,
        "schema_version": SCHEMA_VERSION,
        "report_id": f"urn:sha256:{digest[:32]}",
        "generated_at": generated_at(),
        "tool": {
            "name": "ckptcost",
            "version": __version__,
            "command": list(command),
            "method_version": METHOD_VERSION,
        },
        "kind": "modelled",
        "simulated": False,
        "currency": "USD",
        "period_start": None,
        "period_end": None,
        "subject": _subject(case),
        "boundary": _boundary(case),
        "schedule": _schedule(case),
        "power_step": _power_step(case, known),
        "totals": (
            _totals(o.run, spread.run, "marginal", known)
            | {"checkpoints": _quantity(o.saves, o.saves, "1", _same)}
        ),
        "functional_units": [{"name": "checkpoint", "count": tidy(float(o.saves))}],
        "components": _components(o.run, spread.run, known, bases, case),
        "allocated": _totals(o.run, spread.run, "allocated", known),
        "one_save": {
            "totals": _totals(o.one_save, spread.one_save, "marginal", known),
            "components": _components(o.one_save, spread.one_save, known, bases, case),
        },
        "avoidable": (
            _difference(
                rows[0], _row(answer.reference, case_names([answer.reference])[0], case, catalog)
            )
            if answer.reference
            else None
        ),
        "cases": rows,
        "factors": factors,
        "choices": choices,
        "assumptions": assumptions_of(factors),
        "measurements": [],
        "uncertainty": {
            "method": DRAWN,
            "samples": case.draws,
            "seed": SEED,
            "interval": "p5-p95",
            "decided_by": decided_by(case),
        },
        "warnings": _warnings(answer),
        "reproducibility": {
            "inputs_sha256": digest,
            "seed": SEED,
            "result_sha256": "",
            "inputs": [input_part(name, raw) for name, raw in files],
            "factor_set": {
                "name": FACTOR_SET,
                "version": __version__,
                "sha256": sha256([plain_factor(f) for f in everything]),
            },
        },
    }


def input_part(name: str, raw: bytes) -> Part:
    """A file of the user's as a document names it: without its folder."""
    return {
        "path": os.path.basename(name),
        "bytes": len(raw),
        "sha256": hashlib.sha256(raw).hexdigest(),
    }


def plain(answer: Answer, catalog: Catalog) -> Any:
    """The document for a view, unjudged and without the result's hash."""
    return _spaced(parts_of(answer, catalog))


_FREE = {"excludes", "values", "low", "high", "claims", "choices", "best_interval_s"}
"""keys whose content is a mapping or list of the document's own, not a part with attributes"""


def _spaced(part: Any, key: str = "") -> Any:
    if isinstance(part, list) and key not in _FREE:
        return [_spaced(each) for each in part]
    if isinstance(part, dict) and key not in _FREE:
        return SimpleNamespace(**{name: _spaced(value, name) for name, value in part.items()})
    return part


def build(
    answer: Answer,
    catalog: Catalog,
    command: Sequence[str] = (),
    files: Sequence[tuple[str, bytes]] = (),
) -> Any:
    """The report of an answer: judged by its schema, with its hashes."""
    from ckptcost.report.document import Report

    report = Report.model_validate(parts_of(answer, catalog, command, files))
    return report.model_copy(
        update={
            "reproducibility": report.reproducibility.model_copy(
                update={"result_sha256": result_hash(report)}
            )
        }
    )


NOT_HASHED = {
    "schema_name",
    "schema_version",
    "report_id",
    "generated_at",
    "tool",
    "reproducibility",
}


def result_hash(report: Any) -> str:
    """The hash that `reproducibility.result_sha256` should hold: over all that describes the
    result."""
    return sha256(report.model_dump(mode="json", exclude=NOT_HASHED))


def generated_at() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        when = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"{brief(epoch)} is no time in seconds",
            where="SOURCE_DATE_EPOCH",
            remedy="unset it, or e.g. SOURCE_DATE_EPOCH=0",
        ) from None
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
