"""What is needed for a target: bandwidth, stall, interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError, UnknownName
from ckptcost.first.questions.parameters import Changes, PathText, scenario_layers
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def solve(
    what: str,
    target: str | None = None,
    scenario: PathText | None = None,
    *,
    tier: str | None = None,
    keep_interval: bool = False,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyResult:
    """What is needed for a target such as "goodput>=0.95"."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.gates import gate_of
    from ckptcost.first.jobs.model import one_of
    from ckptcost.first.jobs.solve import KNOBS, RANGES
    from ckptcost.first.jobs.solve import solve as solve_job
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.solve import study_of

    catalog = catalog or Catalog()
    layers = scenario_layers(catalog, scenario, interval, changes)
    if what == "price":
        remedy = "Ask `ckptcost solve price`, in Python ckptcost.price"
        raise InputError("a price is a question of its own", where="solve", remedy=remedy)
    if what not in KNOBS and what not in RANGES:
        raise UnknownName("quantity to solve for", what, [*KNOBS, *RANGES, "price"], where="solve")
    if target is None:
        raise InputError("says no target", where="solve", remedy='add e.g. --for "goodput>=0.95"')
    gate = gate_of(target, Argument("target"))
    found = solve_job(one_of(catalog, layers, tier), what, gate, keep_interval)
    return StudyResult(study_of(found), catalog, files_of(layers))
