"""What a job's checkpoints cost, one save and the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument
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


def model(
    scenario: PathText | None = None,
    *,
    tier: str | Sequence[str] | None = (),
    saves: float | str | Sequence[float | str] | None = (),
    interval: str | None = None,
    changes: Changes = (),
    against: str | None = None,
    require: str | Sequence[str] = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> StudyResult:
    """The report of a scenario (preset or file), for each tier and number of saves; `changes` is
    like {"cluster.gpus": 4096}; each case is held to the targets and limits of `require`; `draws`
    from the inputs' ranges, 0: as many as the command line takes."""
    from ckptcost.first.catalog.schema import saves_of
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.core.draws import SAMPLES
    from ckptcost.first.jobs.model import judged_cases
    from ckptcost.first.jobs.model import model as model_job
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.model import study_of

    catalog, gates = catalog or Catalog(), gates_of(require)
    layers = scenario_layers(catalog, scenario, interval, changes)
    if saves is None or isinstance(saves, str | int | float):
        saves = () if saves is None else (saves,)
    counts = [saves_of(count, Argument("saves")) for count in saves]
    answer = model_job(catalog, layers, texts(tier), counts, against, draws_of(draws) or SAMPLES)
    verdicts = judged_cases(gates, answer.cases)
    return StudyResult(study_of(answer, catalog, verdicts), catalog, files_of(layers))
