"""Whole runs with random failures: spread, not only the mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import (
    Changes,
    PathText,
    gates_of,
    read_files,
    scenario_layers,
    text_of,
)
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.walks import SimulationRequest

Inputs = Literal["fixed", "triangle", "pert", "uniform"]


def simulate(
    scenario: PathText | None = None,
    *,
    tier: str | None = None,
    runs: int = 1000,
    seed: int = 1,
    failures: str = "exponential",
    trace: PathText | None = None,
    trace_span: str | None = None,
    kinds: PathText | None = None,
    limit: str | None = None,
    inputs: Inputs = "fixed",
    workers: int = 1,
    timeline: int | None = None,
    every_run: bool = False,
    interval: str | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    note: Callable[[float], None] | None = None,
    catalog: Catalog | None = None,
) -> StudyResult:
    """Whole runs with random failures; tables outcome, states, kinds, and timeline and runs where
    asked for. `note` hears how many runs are done; one that raises `core.walk.Enough` gets those
    that ended by then."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.model import one_of
    from ckptcost.first.jobs.simulate import simulate as simulate_job
    from ckptcost.first.jobs.simulate import time_line, verdicts_of
    from ckptcost.first.layers import files_of
    from ckptcost.first.report.studies.simulate import study_of

    gates = gates_of(require)
    catalog = catalog or Catalog()
    layers = scenario_layers(catalog, scenario, interval, changes)
    asked = _request(runs, seed, failures, trace, trace_span, kinds, limit, inputs, workers)
    resolved = one_of(catalog, layers, tier)
    line = time_line(resolved, asked, timeline)[0] if timeline is not None else []
    found = simulate_job(resolved, asked, note)
    study = study_of(found, verdicts_of(found, gates), line, timeline or 0, every_run)
    return StudyResult(study, catalog, [*files_of(layers), *read_files(trace, kinds)])


def _request(
    runs: int,
    seed: int,
    failures: str,
    trace: PathText | None,
    trace_span: str | None,
    kinds: PathText | None,
    limit: str | None,
    inputs: Inputs,
    workers: int,
) -> SimulationRequest:
    import os

    from ckptcost.first.catalog.interruptions import law_of, read_kinds, read_trace
    from ckptcost.first.catalog.schema import flag_value
    from ckptcost.first.core.interruptions import NEVER
    from ckptcost.first.jobs.walks import SimulationRequest

    if trace_span is not None and trace is None:
        raise InputError(
            "there is no record", where=Argument("trace_span"), remedy="give --trace FILE"
        )
    law, shape, mean_s = law_of(failures)
    if trace is not None and failures != "exponential":
        raise InputError(
            "a record and a law contradict each other",
            where=Argument("trace"),
            remedy="give one of --trace and --failures",
        )
    if trace_span is not None:
        text_of("trace_span", trace_span)
    recorded = read_trace(os.fspath(trace), trace_span) if trace is not None else None
    limit_s = (
        NEVER if limit is None else flag_value(Argument("limit"), text_of("limit", limit), "s")
    )
    return SimulationRequest(
        runs,
        seed,
        law if trace is None else "trace",
        shape,
        mean_s,
        recorded,
        read_kinds(os.fspath(kinds)) if kinds is not None else (),
        limit_s,
        inputs,
        workers=workers,
    )
