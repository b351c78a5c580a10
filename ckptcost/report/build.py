"""Domain results to the document: every quantity with its unit, range and the factors it rests on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import ckptcost
from ckptcost.catalog.figures import softest
from ckptcost.catalog.keys import meaning_of
from ckptcost.catalog.store import Catalog
from ckptcost.core.bill import Bill, Line
from ckptcost.core.draws import SAMPLES, SEED, p5_p95
from ckptcost.core.failures import mtbf_s
from ckptcost.core.size import full_bytes
from ckptcost.core.timing import nodes_of
from ckptcost.core.units import parse, to_hours, to_kwh
from ckptcost.jobs import Answer, Case
from ckptcost.present.words import caution_text, line_label
from ckptcost.report import document as doc
from ckptcost.report.canonical import sha256, tidy
from ckptcost.report.rows import columns_of
from ckptcost.scenario import Input

_FIELDS: tuple[tuple[str, Any, doc.Unit, Any], ...] = (
    ("energy", "energy_j", "kWh", to_kwh), ("emissions_location", "location_kgco2e", "kgCO2e", float), ("emissions_market", "market_kgco2e", "kgCO2e", float),
    ("embodied", "embodied_kgco2e", "kgCO2e", float), ("gpu_time_lost", "gpu_s", "GPU-h", to_hours), ("cost", "cost_usd", "USD", float),
)  # fmt: skip
_ORIGINS: dict[str, doc.Origin] = {"measured": "measured", "published": "published", "derived": "derived", "vendor": "vendor", "user": "user", "assumed": "default"}

_SAVING = ("checkpoint.*", "tier.*", "cluster.gpus", "cluster.gpus_per_node", "cluster.gpu_d2h", "cluster.node_nic", "policy.*", "run.work", "failures.*")
_POWER = {
    "gpu_wait": ("cluster.gpu_stall",), "host_wait": ("cluster.host_stall",), "slowdown": ("cluster.gpu_train", "cluster.host_train"),
    "redone_work": ("cluster.gpu_train", "cluster.host_train"), "loading": ("cluster.gpu_stall", "cluster.host_stall"),
    "restart": ("cluster.gpu_stall", "cluster.gpu_idle", "cluster.gpu_train", "cluster.host_stall", "cluster.host_idle", "cluster.host_train"),
}  # fmt: skip
_TIMED = tuple(_POWER)


def factor_ids(line_id: str, field: str, known: Iterable[str]) -> list[str]:
    """Which inputs a figure of a line rests on."""
    second = line_id.startswith("second_")
    plain = line_id.removeprefix("second_")
    wanted = [pattern.replace("tier.", "second_tier.") if second else pattern for pattern in _SAVING]
    if plain in _TIMED:
        wanted += _POWER[plain] if field in ("energy", "emissions_location", "emissions_market", "cost") else ()
    if field in ("energy", "emissions_location", "emissions_market"):
        wanted.append("site.pue")
    wanted += {
        "emissions_location": ["site.grid_location"], "emissions_market": ["site.grid_market"], "embodied": ["cluster.gpu_embodied"],
        "cost": ["site.tariff", "cluster.gpu_price"] if plain in _TIMED else ["site.tariff"],
    }.get(field, [])  # fmt: skip
    return [name for name in known if any(name == w or (w.endswith("*") and name.startswith(w[:-1])) for w in wanted)]


def _quantity(value: Any, drawn: Any, unit: doc.Unit, people: Any, factors: Sequence[str] = (), excludes: Sequence[str] = ()) -> doc.Quantity:
    point = float(people(value))
    if tidy(point) is None:
        return doc.Quantity(value=None, unit=unit, factors=list(factors), excludes=list(excludes))
    low, high = p5_p95(people(drawn) if not isinstance(drawn, float) else people(drawn), point)
    ranged = low < high
    return doc.Quantity(
        value=tidy(point), unit=unit, low=tidy(low) if ranged else None, high=tidy(high) if ranged else None,
        interval="p5-p95" if ranged else None, factors=list(factors), excludes=list(excludes),
    )  # fmt: skip


def _array(value: Any) -> Any:
    return value


def _component(line: Line, spread: Line, known: list[str], bases: dict[str, str], case: Case) -> doc.Component:
    quantities = {
        field: _quantity(getattr(line, attribute), getattr(spread, attribute), unit, people if people is not float else _array, factor_ids(line.id, field, known))
        for field, attribute, unit, people in _FIELDS
    }
    used = {name for field in ("energy", "gpu_time_lost") for name in quantities[field].factors}
    price = case.scenario.cluster.usd_per_gpu_s
    timed = quantities["gpu_time_lost"].value or 0.0
    priced = timed > 0 and price == price
    return doc.Component(
        id=line.id, label=line_label(line.id), cause=line.cause, ledger=line.ledger, boundary=line.boundary, rests_on=softest(tuple(bases[name] for name in used)),  # type: ignore[arg-type]
        price_qty=timed if priced else None, price_unit="GPU-h" if priced else None, unit_price=tidy(float(price) * 3600) if priced else None, **quantities,
    )  # fmt: skip


def _totals(bill: Bill, spread: Bill, ledger: Any, known: list[str]) -> dict[str, doc.Quantity]:
    return {
        field: _quantity(
            bill.total(attribute, ledger), spread.total(attribute, ledger), unit, people if people is not float else _array,
            sorted({name for line in bill.of(ledger) for name in factor_ids(line.id, field, known)}), bill.unknown(attribute, ledger),
        )
        for field, attribute, unit, people in _FIELDS
    }  # fmt: skip


def _sources(catalog: Catalog, figure_source: str) -> list[doc.Source]:
    found = []
    for name in filter(None, (part.strip() for part in figure_source.split(";"))):
        entry = catalog.sources.get(name, {"title": name})
        found.append(doc.Source(id=name, **{key: str(entry[key]) for key in ("title", "publisher", "url", "version", "retrieved", "licence") if key in entry}))
    return found


def factor_of(i: Input, catalog: Catalog) -> doc.Factor:
    section, key = i.path.split(".")
    f = i.figure
    return doc.Factor(
        id=i.path, name=meaning_of(section, key), value=None if f.value == float("inf") else f.value, unit=i.unit, text=f.text, low=f.low, high=f.high,
        origin=_ORIGINS[f.basis or "assumed"], set_by=i.origin, boundary=f.boundary or None, note=f.note or None, sources=_sources(catalog, f.source),
    )  # fmt: skip


def _row(case: Case, base: Case | None, catalog: Catalog) -> doc.Row:
    values, spread = columns_of(case.outcome), columns_of(case.spread)
    low, high = {}, {}
    for name, value in values.items():
        if tidy(float(value)) is not None:
            least, most = p5_p95(spread[name], float(value))
            if least < most:
                low[name], high[name] = tidy(least) or 0.0, tidy(most) or 0.0
    changed, dropped, choices = [], [], {}
    if base is not None and base is not case:
        theirs = {i.path: i for i in base.resolved.inputs}
        mine = {i.path: i for i in case.resolved.inputs}
        changed = [factor_of(i, catalog) for path, i in mine.items() if theirs.get(path) != i]
        dropped = [path for path in theirs if path not in mine]
        words, base_words = case.resolved.words, base.resolved.words
        choices = {key: words.get(key) for key in sorted({*words, *base_words}) if words.get(key) != base_words.get(key)}
    size = float(full_bytes(case.scenario.checkpoint))
    claims = []
    for claim in case.resolved.claims:
        unit = {"energy": "j", "time": "s"}.get(claim.what)
        if unit is None:
            continue
        scale = size / parse(claim.size, "bytes") * (1.0 / 3.6e6 if unit == "j" else 1.0)
        scaled = {part: tidy(parse(text, unit) * scale) for part in ("value", "low", "high") if (text := getattr(claim, part)) is not None}
        claims.append({"what": claim.what, "unit": "kWh" if unit == "j" else "s", **scaled, "source": claim.source})
    return doc.Row(
        id=case_id(case), tier=case.tier_id, tier_name=case.resolved.names["tier"],
        values={name: tidy(float(value)) for name, value in values.items()}, low=low, high=high, claims=claims,
        cautions=[caution.code for caution in case.cautions], factors=changed, dropped=dropped, choices=choices,
    )  # fmt: skip


def _schedule(case: Case) -> doc.Schedule:
    o, s, classic = case.outcome, case.scenario, case.classic
    numbers = {
        "interval_s": o.interval_s, "saves": o.saves, "stall_s": o.cycle.stall_s, "blocked_s": o.cycle.blocked_s, "lag_s": o.plan.saved.lag_s,
        "write_s": o.plan.saved.write_s, "load_s": o.plan.recovery.load_s, "size_bytes": full_bytes(s.checkpoint), "written_bytes": o.plan.saved.written_bytes,
        "write_rate_bytes_per_s": o.plan.saved.wire_bytes_per_s, "work_s": s.work_s, "wall_s": o.wall_s, "goodput": o.goodput, "failures": o.failures,
        "mtbf_s": mtbf_s(o.plan.failures_per_s), "young_interval_s": classic.young_interval_s, "daly_interval_s": classic.daly_interval_s,
        "first_order_goodput": classic.first_order_goodput,
    }  # fmt: skip
    validity: Any = {2: "green", 1: "amber", 0: "red"}[int(classic.validity)]
    return doc.Schedule(
        mode=s.policy.mode, cadence=s.policy.cadence if s.policy.cadence != "optimal" else f"optimal for {s.policy.objective}", validity=validity,
        best_interval_s={name: tidy(float(value)) for name, value in case.best.items()}, **{name: tidy(float(value)) for name, value in numbers.items()},  # type: ignore[arg-type]
    )  # fmt: skip


def build(answer: Answer, catalog: Catalog, command: Sequence[str] = (), files: Sequence[tuple[str, bytes]] = ()) -> doc.Report:
    """The report of an answer: the first case in full, all cases as rows."""
    case = answer.cases[0]
    r, s, o = case.resolved, case.scenario, case.outcome
    factors = [factor_of(i, catalog) for i in r.inputs]
    known = [factor.id for factor in factors]
    bases = {i.path: i.figure.basis or "assumed" for i in r.inputs}
    run = doc.RunTotals(**_totals(o.run, case.spread.run, "marginal", known), checkpoints=_quantity(o.saves, o.saves, "1", _array))
    rows = [_row(each, case, catalog) for each in answer.cases]
    avoidable = None
    if answer.reference is not None:
        reference = _row(answer.reference, case, catalog)
        mine = rows[0].values
        difference = {name: tidy(a - b) if (a := mine[name]) is not None and (b := reference.values[name]) is not None else None for name in mine}
        avoidable = reference.model_copy(update={"id": f"{rows[0].id} minus {reference.id}", "values": difference, "low": {}, "high": {}})
    choices = {key: value for key, value in sorted(r.words.items())}
    inputs = [{"factors": [_plain(f) for f in factors], "choices": choices}, *({"factors": [_plain(f) for f in row.factors], "dropped": row.dropped, "choices": row.choices} for row in rows[1:])]
    inputs_hash = sha256(inputs)
    body: dict[str, Any] = {
        "subject": doc.Subject(
            run_name=r.name or "scenario", checkpoint=r.names["checkpoint"], tier=r.names["tier"], second_tier=r.names.get("second_tier"), cluster=r.names["cluster"],
            accelerator=r.names.get("accelerator"), accelerator_count=s.cluster.gpus, nodes=float(nodes_of(s.cluster)), site=r.names["site"], grid=r.names.get("grid"),
        ),
        "boundary": _boundary(case), "schedule": _schedule(case), "totals": run,
        "functional_units": [doc.FunctionalUnit(name="checkpoint", count=tidy(float(o.saves)) or 0.0)],
        "components": [_component(line, spread, known, bases, case) for line, spread in zip(o.run.lines, case.spread.run.lines, strict=True)],
        "allocated": doc.Totals(**_totals(o.run, case.spread.run, "allocated", known)),
        "one_save": doc.Bill(
            totals=doc.Totals(**_totals(o.one_save, case.spread.one_save, "marginal", known)),
            components=[_component(line, spread, known, bases, case) for line, spread in zip(o.one_save.lines, case.spread.one_save.lines, strict=True)],
        ),
        "avoidable": avoidable, "cases": rows, "factors": factors, "choices": choices,
        "assumptions": [
            doc.Assumption(id=f"A{n}", text=f"{f.name}: {f.text or f.value}" + (f" ({f.note})" if f.note else ""), value=f.value, unit=f.unit, low=f.low, high=f.high)
            for n, f in enumerate((f for f in factors if f.origin == "default"), start=1)
        ],
        "uncertainty": doc.Uncertainty(samples=SAMPLES, seed=SEED),
        "warnings": _warnings(answer),
    }  # fmt: skip
    parts = {name: _dumped(value) for name, value in body.items()}
    return doc.Report(
        report_id=f"urn:sha256:{inputs_hash[:32]}", generated_at=_now(), tool=doc.Tool(version=ckptcost.__version__, command=list(command)),
        reproducibility=doc.Reproducibility(
            inputs_sha256=inputs_hash, inputs=[doc.InputFile(path=os.path.basename(name), bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest()) for name, raw in files],
            factor_set=doc.FactorSet(version=ckptcost.__version__, sha256=sha256(sorted({json.dumps(_plain(f), sort_keys=True) for f in [*factors, *(f for row in rows for f in row.factors)]}))),
            seed=SEED, result_sha256=sha256(parts),
        ),
        **body,
    )  # fmt: skip


def _plain(factor: doc.Factor) -> dict[str, Any]:
    return factor.model_dump(mode="json", include={"id", "value", "unit", "low", "high", "origin"})


def _dumped(value: Any) -> Any:
    if isinstance(value, list):
        return [_dumped(item) for item in value]
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def result_hash(report: doc.Report) -> str:
    """The hash that `reproducibility.result_sha256` should hold."""
    left_out = {"schema_name", "schema_version", "report_id", "generated_at", "tool", "kind", "simulated", "currency", "period_start", "period_end", "measurements", "reproducibility"}
    return sha256({name: value for name, value in report.model_dump(mode="json").items() if name not in left_out})


def _warnings(answer: Answer) -> list[doc.Warned]:
    """Each kind of caution once, in the words of the first case it holds for; the others are named."""
    said: dict[str, tuple[str, list[str]]] = {}
    for case in answer.cases:
        for caution in case.cautions:
            said.setdefault(caution.code, (caution_text(caution), []))[1].append(case_id(case))
    found = []
    for code, (text, where) in said.items():
        whose = "" if len(where) == len(answer.cases) else " [" + ", ".join(where) + "]"
        found.append(doc.Warned(code=code, message=text + whose))
    for path, reason in answer.cases[0].resolved.unknown.items():
        found.append(doc.Warned(code="UNKNOWN_INPUT", message=f"{path} is not known: {reason}. Figures that need it are left out, not counted as zero."))
    return found


def case_id(case: Case) -> str:
    """Tier and number of saves."""
    return f"{case.tier_id}@{case.outcome.saves:.6g}"


def _boundary(case: Case) -> doc.Boundary:
    included = [line_label(line.id) for line in case.outcome.run.of() if line.energy_j == line.energy_j]
    excluded = [doc.Excluded(component=line_label(line.id), reason="energy unknown") for line in case.outcome.run.of() if line.energy_j != line.energy_j]
    excluded.append(doc.Excluded(component="useful training", reason="the bill holds what checkpoints and failures add"))
    excluded.append(doc.Excluded(component="idle storage, its share", reason="allocated ledger, reported apart"))
    return doc.Boundary(included=included, excluded=excluded, pue=case.scenario.site.pue)  # type: ignore[arg-type]


def _now() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.fromtimestamp(int(epoch), UTC) if epoch and epoch.isdigit() else datetime.now(UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
