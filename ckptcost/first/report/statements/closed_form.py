"""The closed form as a statement, one case of a job: every quantity with its unit, range and the
factors it rests on. Plain values without pydantic, which would double the time that a table on the
terminal takes; `modelled` lets the schema judge them. A plan has no dates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ckptcost.first.catalog.figures import softest
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.bill import Bill
from ckptcost.first.core.cautions import host_ram, ram_verdict
from ckptcost.first.core.draws import SEED, p5_p95
from ckptcost.first.core.energy import least_ramp_w_per_s
from ckptcost.first.core.failures import mtbf_s
from ckptcost.first.core.lines import Ledger
from ckptcost.first.core.outcome import failure_cost
from ckptcost.first.core.quantities import IN_DOCUMENTS, Quantity
from ckptcost.first.core.size import full_bytes
from ckptcost.first.core.timing import nodes_of
from ckptcost.first.core.units import HOUR_S, to_mw
from ckptcost.first.jobs.model import Case
from ckptcost.first.jobs.sensitivity import decided_by
from ckptcost.first.present.amounts import count
from ckptcost.first.present.words import light_word, line_label
from ckptcost.first.report.build import METHOD_VERSION
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.factors import Part, assumptions_of, factor_ids, factor_of
from ckptcost.first.report.statements.bill import (
    BilledAmount,
    BilledLine,
    Rests,
    amount_part,
    bill_part,
    count_part,
    draws_amount,
)
from ckptcost.first.scenario import Resolved

CLOUDS = {"aws": "Amazon Web Services", "gcp": "Google Cloud", "azure": "Microsoft Azure"}
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
DRAWN = (
    "latin hypercube of triangles (low, value, high), "
    "logarithmic where low > 0, one stratum a draw, inputs independent save copies, plan fixed"
)


def bill_of(bill: Bill, spread: Bill, known: tuple[str, ...], rests: Rests, case: Case) -> Part:
    """Lines and sums of a bill, with their ranges over the draws of `spread`."""
    lines = [
        BilledLine(
            line.id,
            line.boundary,
            {
                q.id: draws_amount(q, getattr(line, q.field), getattr(other, q.field))
                for q in IN_DOCUMENTS
            },
            "modelled",
            softest_input(line.id, known, case.resolved),
        )
        for line, other in zip(bill.lines, spread.lines, strict=True)
    ]

    def total(ledger: Ledger, q: Quantity) -> BilledAmount:
        value, draws = (each.total(q.field, ledger) for each in (bill, spread))
        return draws_amount(q, value, draws, bill.unknown(q.field, ledger))

    price = float(case.scenario.cluster.usd_per_gpu_s) * HOUR_S
    return bill_part(lines, total, rests, "p5-p95", price)


def softest_input(line_id: str, known: tuple[str, ...], resolved: Resolved) -> str:
    """The softest basis among the inputs that a line's joules and GPU time rest on."""
    bases = {i.path: i.figure.basis or "assumed" for i in resolved.inputs}
    used = {name for of in ("energy", "gpu_time_lost") for name in factor_ids(line_id, of, known)}
    return softest(tuple(bases[name] for name in used))


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


def _power_step(case: Case, known: Sequence[str], rests: Rests) -> Part:
    o, spread = case.outcome, case.spread
    gpus, hosts = (
        [name for name in known if name in (f"cluster.{path}" for path in paths)]
        for paths in (
            ("gpus", "gpu_train", "gpu_stall"),
            ("gpus", "gpus_per_node", "host_train", "host_stall", "host_stall_fraction"),
        )
    )
    whole = o.gpu_step_w + o.host_step_w
    steps = {
        "gpus": (o.gpu_step_w, spread.gpu_step_w, gpus),
        "hosts": (o.host_step_w, spread.host_step_w, hosts),
        "whole": (whole, spread.gpu_step_w + spread.host_step_w, sorted({*gpus, *hosts})),
    }
    told = {}
    for name, (watts, draws, factors) in steps.items():
        point = float(to_mw(watts))
        found = BilledAmount(point, *p5_p95(to_mw(draws), point))
        told[name] = amount_part("MW", found, rests.number(factors), "p5-p95")
    return told | {
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


@np.errstate(over="ignore")
def statement_part(
    case: Case,
    catalog: Catalog,
    digest: str,
    name: str,
    names: Sequence[str],
    warnings: Sequence[Part],
) -> Part:
    """The whole statement of one case. `digest`: of all cases' inputs; `name`: which of the cases'
    `names` it is."""
    o, spread = case.outcome, case.spread
    factors = [factor_of(i, catalog) for i in case.resolved.inputs]
    known = tuple(f["id"] for f in factors)
    rests = Rests(lambda *of: factor_ids(*of, known))
    run = bill_of(o.run, spread.run, known, rests, case)
    one_save = bill_of(o.one_save, spread.one_save, known, rests, case)
    power_step = _power_step(case, known, rests)
    return {
        "id": f"urn:sha256:{digest[:32]}#{name}",
        "kind": "modelled",
        "how": "closed form, failures by their mean",
        "simulated": False,
        "method_version": METHOD_VERSION,
        "period_start": None,
        "period_end": None,
        "length_s": tidy(float(o.wall_s)),
        "subject": _subject(case, digest, name, names, factors),
        "boundary": _boundary(case),
        **run,
        "totals": run["totals"] | {"checkpoints": count_part(float(o.saves))},
        "functional_units": [{"name": "checkpoint", "count": tidy(float(o.saves))}],
        "series": None,
        "schedule": _schedule(case),
        "power_step": power_step,
        "one_save": {name: one_save[name] for name in ("totals", "components")},
        "factors": factors,
        "rests": rests.lists,
        "choices": dict(sorted(case.resolved.words.items())),
        "assumptions": assumptions_of(factors),
        "measurements": [],
        "uncertainty": f"5th and 95th percentile of {case.draws} draws: {DRAWN}",
        "drawn": {
            "method": DRAWN,
            "samples": case.draws,
            "seed": SEED,
            "interval": "p5-p95",
            "decided_by": decided_by(case),
        },
        "warnings": list(warnings),
    }


_FREE = {"excludes", "choices", "best_interval_s", "rests"}
"""keys whose content is a mapping or list of the document's own, not a part with attributes"""


def with_attributes(part: Any, key: str = "") -> Any:
    """The same with attributes, as the schema's classes have them."""
    if isinstance(part, list) and key not in _FREE:
        return [with_attributes(each) for each in part]
    if isinstance(part, dict) and key not in _FREE:
        return SimpleNamespace(
            **{name: with_attributes(value, name) for name, value in part.items()}
        )
    return part


def _subject(
    case: Case, digest: str, name: str, names: Sequence[str], factors: Sequence[Part]
) -> Part:
    words, called, s = case.resolved.words, case.resolved.names, case.scenario
    params = next((f["value"] for f in factors if f["id"] == "checkpoint.params"), None)
    return {
        "run_id": plain_id(f"{digest[:16]}-{name}"),
        "name": f"{case.resolved.name or 'scenario'}, {case_text(name, names)}",
        "checkpoint": called["checkpoint"] or None,
        "tier": called["tier"] or None,
        "cluster": called["cluster"] or None,
        "parameters": params,
        "accelerator": called.get("accelerator"),
        "accelerator_count": s.cluster.gpus,
        "nodes": float(nodes_of(s.cluster)),
        **place_of(
            words.get("site.id"), words.get("site.grid"), called["site"] or None, called.get("grid")
        ),
    }


def case_text(case: str, cases: Sequence[str]) -> str:
    """A case for people: its number of saves may have a dozen digits. It is said only where it
    tells cases apart: charts join what has one name, and would break where the interval changes.

    >>> (
    ...     case_text("flash-shared@4966.88", ["flash-shared@4966.88", "nas-hdd@100"]),
    ...     case_text("odd", ["odd"]),
    ... )
    ('flash-shared', 'odd')
    >>> case_text("flash-shared@4966.88", ["flash-shared@100", "flash-shared@4966.88"])
    'flash-shared, 4,970 saves'
    """
    tier, at, saves = case.rpartition("@")
    if at and sum(each.rpartition("@")[0] == tier for each in cases) == 1:
        return tier
    try:
        return f"{tier}, {count(float(saves))} saves" if at else case
    except ValueError:
        return case


def place_of(
    site_id: str | None, zone: str | None, site: str | None, grid: str | None
) -> dict[str, Any]:
    """What the ids of a site and its grid tell of the place: a country, or a region of a cloud."""
    found: dict[str, Any] = {"site": site, "site_id": site_id, "grid": grid, "grid_zone": zone}
    if zone and re.fullmatch(r"[A-Z]{3}", zone):
        found |= {"country": grid, "country_iso3": zone}
    elif zone and ":" in zone:
        provider, region = zone.split(":", 1)
        if provider in CLOUDS:
            found |= {"cloud_provider": provider, "cloud_region": region, "region": region}
    return found


def plain_id(text: str) -> str:
    return _ODD.sub("-", text).strip("-")
