"""ckptcost from Python: the same answers as the command line, in three lines.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
>>> [round(row.values["stall_s"]) for row in report.cases]
[10005, 1005]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckptcost.axes import over_of
from ckptcost.catalog.schema import saves_of
from ckptcost.catalog.store import Catalog
from ckptcost.core.draws import LEAST, MOST, SAMPLES
from ckptcost.errors import InputError
from ckptcost.jobs.model import Answer
from ckptcost.jobs.model import model as model_job
from ckptcost.jobs.sweep import Sweep
from ckptcost.jobs.sweep import sweep as sweep_job
from ckptcost.layers import DEFAULT_SCENARIO, Layer, layers_of, set_layer
from ckptcost.report.build import build

if TYPE_CHECKING:
    from ckptcost.jobs.gates import Gate
    from ckptcost.meters.found import Wanted
    from ckptcost.report.document import Report
    from ckptcost.report.study import Study
    from ckptcost.report.study_document import StudyDocument


Changes = Mapping[str, Any] | Sequence[str]
"""{"cluster.gpus": 4096}, or texts such as "cluster.gpus=4096" in a list"""


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str | int | float) else list(value)


def layers_for(
    catalog: Catalog,
    scenario: str | os.PathLike[str] | None,
    interval: str | None,
    settings: Sequence[str],
) -> list[Layer]:
    """The scenario and the flags over it."""
    if scenario is not None and not str(scenario):
        raise InputError(
            "names no scenario",
            where="--scenario",
            remedy="give a file or a preset; `ckptcost catalog scenario` lists them",
        )
    layers = layers_of(catalog, str(scenario) if scenario is not None else DEFAULT_SCENARIO)
    return (
        [*layers, set_layer(catalog, settings, interval)]
        if settings or interval is not None
        else layers
    )


def answer(
    catalog: Catalog,
    layers: Sequence[Layer],
    tier: Any = (),
    saves: Any = (),
    against: str | None = None,
    draws: int = SAMPLES,
) -> Answer:
    """The domain's answer: what `model` puts into a report."""
    return model_job(
        catalog,
        layers,
        _many(tier),
        [saves_of(count, "--saves") for count in _many(saves)],
        against,
        draws,
    )


def _drawn(draws: int) -> int:
    """A number of draws that means something; 0: as many as the command line takes."""
    if draws and not LEAST <= draws <= MOST:
        raise InputError(f"{draws!r} is not from {LEAST:,} to {MOST:,}, and not 0", where="draws")
    return int(draws)


def files_of(layers: Sequence[Layer]) -> list[tuple[str, bytes]]:
    """The user's own files among the layers, for the report's list of inputs."""
    return [(layer.file, Path(layer.file).read_bytes()) for layer in layers if layer.file]


def model(
    scenario: str | os.PathLike[str] | None = None,
    *,
    tier: str | Sequence[str] = (),
    saves: float | Sequence[float] = (),
    interval: str | None = None,
    changes: Changes = (),
    against: str | None = None,
    command: Sequence[str] = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> Report:
    """The report of a scenario (preset or file), for each tier and number of saves; `changes` is
    like {"cluster.gpus": 4096}; `draws` from the inputs' ranges, 0: as many as the command line
    takes."""
    catalog = catalog or Catalog()
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    report: Report = build(
        answer(catalog, layers, tier, saves, against, _drawn(draws) or SAMPLES),
        catalog,
        command,
        files_of(layers),
    )
    return report


def sweep(
    over: Sequence[str],
    scenario: str | os.PathLike[str] | None = None,
    *,
    interval: str | None = None,
    changes: Changes = (),
) -> Any:
    """A tidy pandas frame over the grid of axes such as "tier=a,b" and "saves=10:200:10"."""
    from ckptcost.report.frame import frame_of_pieces

    return frame_of_pieces(grid(over, scenario, interval, changes).pieces)


def grid(
    over: Sequence[str],
    scenario: str | os.PathLike[str] | None = None,
    interval: str | None = None,
    changes: Changes = (),
) -> Sweep:
    """The sweep in chunks of arrays."""
    catalog = Catalog()
    overs = [over_of(text) for text in ([over] if isinstance(over, str) else over)]
    return sweep_job(catalog, layers_for(catalog, scenario, interval, _settings(changes)), overs)


def simulate(
    scenario: str | os.PathLike[str] | None = None,
    *,
    runs: int = 1000,
    seed: int = 1,
    failures: str = "exponential",
    trace: str | None = None,
    trace_span: str | None = None,
    kinds: str | None = None,
    limit: str | None = None,
    inputs: str = "fixed",
    workers: int = 1,
    tier: str | None = None,
    timeline: int | None = None,
    every_run: bool = False,
    interval: str | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    catalog: Catalog | None = None,
) -> StudyDocument:
    """Whole runs with random failures; tables outcome, states, kinds, and timeline and runs where
    asked for."""
    from ckptcost import answers

    catalog = catalog or Catalog()
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    asked = answers.asked_of(runs, seed, failures, trace, trace_span, kinds, limit, inputs, workers)
    study = answers.simulation(catalog, layers, asked, tier, _gates(require), timeline, every_run)
    return _built(study, catalog, [*files_of(layers), *answers.read_files(trace, kinds)])


def lead(
    scenario: str | os.PathLike[str] | None = None,
    *,
    run: str | os.PathLike[str] | None = None,
    tier: str | None = None,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyDocument:
    """How early before the end the last save must begin: of a scenario, or of a recorded `run`."""
    from ckptcost import answers

    catalog = catalog or Catalog()
    if run is not None:
        return _built(answers.lead_of_run(os.fspath(run)), catalog, [])
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    return _built(answers.lead(catalog, layers, tier), catalog, files_of(layers))


def fits(
    directory: str | os.PathLike[str],
    scenario: str | os.PathLike[str] | None = None,
    *,
    tier: str | None = None,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyDocument:
    """Whether the checkpoints that are kept, and those being written, have room in a folder:
    `question["fits"]`."""
    from ckptcost import answers

    catalog = catalog or Catalog()
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    return _built(
        answers.room(os.fspath(directory), catalog, layers, tier), catalog, files_of(layers)
    )


def optimize(
    scenario: str | os.PathLike[str] | None = None,
    *,
    tier: str | Sequence[str] = (),
    mode: str = "",
    objective: str = "",
    check: int = 0,
    interval: str | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> StudyDocument:
    """The best interval by objective, regrets, plateaus, several tiers, and the front."""
    from ckptcost import answers

    catalog = catalog or Catalog()
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    return _built(
        answers.optimum(
            catalog,
            layers,
            _many(tier),
            mode,
            objective,
            _gates(require),
            check,
            draws=_drawn(draws),
        ),
        catalog,
        files_of(layers),
    )


def solve(
    what: str,
    target: str | None = None,
    scenario: str | os.PathLike[str] | None = None,
    *,
    tier: str | None = None,
    against: str | None = None,
    capex: str | None = None,
    keep_interval: bool = False,
    interval: str | None = None,
    changes: Changes = (),
    catalog: Catalog | None = None,
) -> StudyDocument:
    """What is needed for a target such as "goodput>=0.95"; with "price", what the tier `against`
    may cost."""
    from ckptcost import answers

    catalog = catalog or Catalog()
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    if what == "price":
        study = answers.price(catalog, layers, tier, against, capex, keep_interval)
    else:
        study = answers.solution(catalog, layers, what, target, tier, keep_interval)
    return _built(study, catalog, files_of(layers))


def compare(
    scenarios: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    variants: str | Sequence[str] = (),
    interval: str | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> StudyDocument:
    """Scenarios side by side, or one and its variants, such as "tier.id=nas-hdd,
    policy.mode=async"."""
    from ckptcost import answers

    catalog = catalog or Catalog()
    alone = scenarios is None or isinstance(scenarios, str | os.PathLike)
    names = [scenarios] if alone else list(scenarios)  # type: ignore[arg-type]
    stacks = [
        (
            os.path.basename(str(n or DEFAULT_SCENARIO)),
            layers_for(catalog, n, interval, _settings(changes)),  # type: ignore[arg-type]
        )
        for n in names
    ]
    study = answers.comparison(
        catalog, stacks, _many(variants), _gates(require), _drawn(draws) or SAMPLES
    )
    return _built(study, catalog, [pair for _, layers in stacks for pair in files_of(layers)])


def sensitivity(
    scenario: str | os.PathLike[str] | None = None,
    *,
    of: str = "kwh",
    replan: bool = False,
    interval: str | None = None,
    changes: Changes = (),
    draws: int = 0,
    catalog: Catalog | None = None,
) -> StudyDocument:
    """Which inputs decide a result, and which to measure next."""
    from ckptcost import answers

    catalog = catalog or Catalog()
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    return _built(
        answers.ranking(catalog, layers, of, replan, draws=_drawn(draws)), catalog, files_of(layers)
    )


def audit(
    claims: str, *, arithmetic: bool = False, catalog: Catalog | None = None
) -> StudyDocument:
    """The claims of a sheet, shipped or a TOML file of yours, held against each other."""
    from ckptcost.jobs.audit import audit as audit_job
    from ckptcost.report.studies.audit import study_of

    catalog = catalog or Catalog()
    audited, files = audit_job(catalog, claims)
    return _built(study_of(audited, catalog.sources, arithmetic), catalog, files)


def measure(
    seconds: float | None = None,
    *,
    meters: str = "auto",
    record: str | os.PathLike[str] | None = None,
    directory: str | os.PathLike[str] | None = None,
    pid: int | None = None,
    every_gpu: bool = False,
    rapl: str = "auto",
) -> StudyDocument:
    """What this machine uses for a while, by meter and by checkpoint window; 10 s where nothing is
    said."""
    from ckptcost import answers

    wanted = _wanted(directory, pid, every_gpu, rapl)
    study, _ = answers.measurement(
        meters, wanted, seconds, (), None if record is None else str(record)
    )
    return _built(study, Catalog(), [])


def doctor(
    seconds: float = 2.0,
    *,
    meters: str = "auto",
    directory: str | os.PathLike[str] | None = None,
    pid: int | None = None,
    every_gpu: bool = False,
    rapl: str = "auto",
) -> StudyDocument:
    """What can be measured here, and for the rest the reason and what would help."""
    from ckptcost import answers

    study, _ = answers.checkup(meters, _wanted(directory, pid, every_gpu, rapl), seconds)
    return _built(study, Catalog(), [])


def _wanted(
    directory: str | os.PathLike[str] | None, pid: int | None, every_gpu: bool, rapl: str
) -> Wanted:
    from ckptcost.meters.found import Wanted

    return Wanted(
        every_gpu=every_gpu,
        rapl=rapl,
        directory=None if directory is None else Path(directory),
        pid=pid,
    )


def _built(study: Study, catalog: Catalog, files: Sequence[tuple[str, bytes]]) -> StudyDocument:
    from ckptcost.report.study_document import build as build_study

    return build_study(study, catalog, (), files)


def _gates(texts: str | Sequence[str]) -> list[Gate]:
    from ckptcost.jobs.gates import gate_of

    return [gate_of(text, "require") for text in _many(texts)]


def _settings(changes: Changes) -> list[str]:
    return (
        [f"{key}={value}" for key, value in changes.items()]
        if isinstance(changes, Mapping)
        else list(changes)
    )


def export(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    to: str,
    *,
    case: str = "",
    start: str = "",
    grid: str = "",
    grid_column: str = "",
    grid_tz: str = "",
    grid_unit: str = "",
    contracts: str = "",
    labels: Mapping[str, str] | None = None,
    host: str = "",
    site: str = "",
    scenario: str | None = None,
    changes: Changes = (),
    directory: str | None = None,
    catalog: Catalog | None = None,
) -> dict[str, str | bytes]:
    """The files of an export, by name: of JSON documents or recorded runs, in a format of `ckptcost
    export --list`."""
    from ckptcost import answers
    from ckptcost.exports.formats import exported
    from ckptcost.report.statements.reading import Placing

    many = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    said = tuple(f"{name}={text}" for name, text in (labels or {}).items())
    placing = Placing(case, start, grid, grid_column, grid_tz, grid_unit, contracts, said, host)
    names = [os.fspath(each) for each in many]
    document = answers.statement_document(
        names, placing, directory, scenario, _settings(changes), site, catalog=catalog
    )
    return {
        name: each if isinstance(each, bytes) else "".join(each)
        for name, each in exported(document, to).items()
    }


def load_report(path: str) -> Report:
    """A report from its JSON file."""
    from ckptcost.report.check import read

    return read(path)


def roll_up(
    store: str | os.PathLike[str],
    by: str = "job",
    *,
    since: str = "",
    until: str = "",
    jobs: str | Sequence[str] = (),
    scheduler: str = "pandas",
    site: str = "",
    scenario: str | os.PathLike[str] | None = None,
    changes: Changes = (),
    require: str | Sequence[str] = (),
    top: int = 10,
    catalog: Catalog | None = None,
) -> StudyDocument:
    """A store of packed runs as a fleet; tables groups, lines, savings, failures, tiers, days
    ..."""
    from ckptcost import answers
    from ckptcost.fleet.told.answer import Asked, answer_of

    catalog, settings = catalog or Catalog(), _settings(changes)
    resolved, files = None, []
    if site or scenario is not None or settings:
        named = None if scenario is None else str(scenario)
        resolved = answers.standing(catalog, named, settings, site)
        files = files_of(layers_for(catalog, named, None, []))
    priced = scenario is not None or any(each.startswith("cluster.") for each in settings)
    asked = Asked(
        str(store),
        by,
        since,
        until,
        tuple(_many(jobs)),
        scheduler,
        top,
        resolved,
        priced,
        scenario is not None,
    )
    return _built(answer_of(asked, _gates(require)), catalog, files)
