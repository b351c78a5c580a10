"""A report's first case, or any other rebuilt from the inputs that the report carries, as a
statement. A plan has no dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from ckptcost.errors import Argument, UnknownName
from ckptcost.jobs.model import Answer, Case
from ckptcost.present.amounts import count
from ckptcost.report.build import METHOD_VERSION, parts_of
from ckptcost.report.document import Report
from ckptcost.report.statement import Boundary, Statement, Subject

CLOUDS = {"aws": "Amazon Web Services", "gcp": "Google Cloud", "azure": "Microsoft Azure"}
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def statement_of(report: Report, case: str = "") -> Statement:
    """One case of it; the first, which the report bills in full, unless another is named: by its
    id, or by its tier where that has one case."""
    names = [row.id for row in report.cases]
    if len(own := [row.id for row in report.cases if row.tier == case]) == 1:
        case = own[0]
    if case and case not in names:
        raise UnknownName("case", case, names, where=Argument("case"), lists="the report's cases")
    if case in ("", names[0]):
        return _of(report, names[0])
    from ckptcost.report.check import case_rebuilt

    at = names.index(case)
    row = report.cases[at]
    found = case_rebuilt(report, at)
    parts = parts_of(Answer((found,), None), SimpleNamespace(sources={}))  # type: ignore[arg-type]
    changed = {f.id: f for f in report.factors if f.id not in row.dropped} | {
        f.id: f for f in row.factors
    }
    subject = report.subject.model_copy(update={"tier": row.tier_name, "second_tier": None})
    warnings = [each for each in report.warnings if "[" not in each.message or case in each.message]
    update = {
        "schedule": parts["schedule"],
        "boundary": parts["boundary"],
        "totals": parts["totals"],
        "components": parts["components"],
        "allocated": parts["allocated"],
        "functional_units": parts["functional_units"],
    }
    plain = (
        report.model_dump(mode="json")
        | update
        | {"factors": [changed[name].model_dump(mode="json") for name in sorted(changed)]}
    )
    plain |= {
        "subject": subject.model_dump(),
        "warnings": [w.model_dump() for w in warnings],
        "choices": report.choices | row.choices,
    }
    return _of(Report.model_validate(plain), case)


def of_case(case: Case, catalog: Any, name: str = "") -> Statement:
    """A case on its own, as a comparison has them."""
    report = Report.model_validate(parts_of(Answer((case,), None), catalog))
    found = _of(report, report.cases[0].id)
    if not name:
        return found
    return found.model_copy(
        update={
            "subject": found.subject.model_copy(
                update={"name": name, "run_id": plain_id(f"{found.subject.run_id}-{name}")}
            )
        }
    )


def _of(report: Report, case: str) -> Statement:
    digest = report.report_id.removeprefix("urn:sha256:")
    b = report.boundary
    return Statement(
        id=f"{report.report_id}#{case}",
        kind=report.kind,
        how="closed form, failures by their mean",
        simulated=report.simulated,
        method_version=report.tool.method_version or METHOD_VERSION,
        period_start=report.period_start,
        period_end=report.period_end,
        length_s=report.schedule.wall_s,
        subject=subject_of(report, digest, case),
        boundary=Boundary(
            included=b.included,
            excluded=b.excluded,
            pue=b.pue,
            pue_included_in_energy=True,
            counterfactual=b.counterfactual,
        ),
        totals=report.totals,
        allocated=report.allocated,
        components=report.components,
        functional_units=report.functional_units,
        series=None,
        factors=report.factors,
        choices=report.choices,
        assumptions=report.assumptions,
        measurements=[],
        uncertainty=(
            f"5th and 95th percentile of {report.uncertainty.samples} draws:"
            f" {report.uncertainty.method}"
        ),
        warnings=report.warnings,
    )


def subject_of(report: Report, digest: str, case: str) -> Subject:
    s, choices = report.subject, report.choices
    params = next((f.value for f in report.factors if f.id == "checkpoint.params"), None)
    return Subject(
        run_id=plain_id(f"{digest[:16]}-{case}"),
        name=f"{s.run_name}, {_told(case, [each.id for each in report.cases])}",
        checkpoint=s.checkpoint or None,
        tier=s.tier or None,
        cluster=s.cluster or None,
        parameters=params,
        accelerator=s.accelerator,
        accelerator_count=s.accelerator_count,
        nodes=s.nodes,
        **place_of(choices.get("site.id"), choices.get("site.grid"), s.site or None, s.grid),
    )


def _told(case: str, cases: Sequence[str]) -> str:
    """A case for people: its number of saves may have a dozen digits. It is said only where it
    tells cases apart: charts join what has one name, and would break where the interval changes.

    >>> (
    ...     _told("flash-shared@4966.88", ["flash-shared@4966.88", "nas-hdd@100"]),
    ...     _told("odd", ["odd"]),
    ... )
    ('flash-shared', 'odd')
    >>> _told("flash-shared@4966.88", ["flash-shared@100", "flash-shared@4966.88"])
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
