"""The best interval for time, energy, dollars and carbon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import (
    Changes,
    PathText,
    draws_of,
    gates_of,
    scenario_layers,
    texts,
)
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.gates import Gate
    from ckptcost.first.layers import Layer
    from ckptcost.first.report.study import Study

Mode = Literal["", "sync", "async", "both"]
Objective = Literal["", "time", "energy", "usd", "carbon"]


def optimize(
    scenario: PathText | None = None,
    *,
    tier: str | Sequence[str] | None = (),
    mode: Mode = "",
    objective: Objective = "",
    check: int = 200,
    interval: str | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> StudyResult:
    """The best interval by objective, regrets, plateaus, several tiers, and the front. Several
    tiers are held against `check` simulated runs of each combination."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.layers import files_of

    gates = gates_of(require)
    catalog = catalog or Catalog()
    layers = scenario_layers(catalog, scenario, interval, changes)
    if check < 0:
        raise InputError(f"{check} runs", where=Argument("check"), remedy="0 or more")
    draws = draws_of(draws)
    if any(layer.sections.get("third_tier") for layer in layers):
        study = _search(catalog, layers, texts(tier), mode, objective, check, gates)
    else:
        study = _one_or_two(catalog, layers, texts(tier), mode, objective, gates, check, draws)
    return StudyResult(study, catalog, files_of(layers))


def _search(
    catalog: Catalog,
    layers: Sequence[Layer],
    tiers: Sequence[str],
    mode: str,
    objective: str,
    check: int,
    gates: list[Gate],
) -> Study:
    """Of three tiers one first tier and one mode are searched at a time."""
    from ckptcost.first.jobs.model import with_tier
    from ckptcost.first.jobs.simulate import verdicts_of
    from ckptcost.first.jobs.tiers_check import three_tiers
    from ckptcost.first.layers import read_layer
    from ckptcost.first.report.studies.tiers_check import study_of
    from ckptcost.first.scenario import resolve

    if len(tiers) > 1 or mode == "both":
        raise InputError(
            "one first tier and one mode at a time with three tiers",
            where=Argument("tier" if len(tiers) > 1 else "mode"),
        )
    timed = any(layer.has_cadence for layer in layers)
    said = {"mode": mode} if mode else {}
    if not timed:
        said["optimal"] = objective or "time"
    named = with_tier(layers, tiers[0] if tiers else None, None, None)
    policy = read_layer({"policy": said}, Argument("mode"), "--mode")
    resolved = resolve(catalog, [*named, policy])
    objective = objective or resolved.scenario.policy.objective
    searched = three_tiers(resolved, objective, timed, check)
    return study_of(searched)._replace(gates=verdicts_of(searched.best.found, gates))


def _one_or_two(
    catalog: Catalog,
    layers: Sequence[Layer],
    tiers: Sequence[str],
    mode: str,
    objective: str,
    gates: Sequence[Gate],
    check: int,
    draws: int,
) -> Study:
    from ckptcost.first.jobs.optimize import optimize as optimize_job
    from ckptcost.first.report.studies.optimize import study_of

    more = {"draws": draws} if draws else {}
    found = optimize_job(catalog, layers, tiers, mode, objective, gates, **more)
    study = study_of(found, gates)
    levels = found.levels
    if levels is None or check < 2:
        return study
    from ckptcost.first.jobs.tiers_check import is_walkable, simulate_combination
    from ckptcost.first.report.studies.tiers_check import check_table

    resolved = found.option.resolved
    tries = {
        point.id: (
            simulate_combination(resolved, point.interval_s, point.every, 1.0, check, 1)
            if is_walkable(float(point.outcome.failures))
            else None
        )
        for point in levels.points
        if point.interval_s * point.every <= float(resolved.scenario.work_s)
    }
    return study._replace(tables=[*study.tables, check_table(levels, tries)])
