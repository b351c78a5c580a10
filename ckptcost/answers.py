"""From what is asked to a study: the one way to each answer, for the command line, for Python and
for a screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ckptcost.catalog.interruptions import law_of, read_kinds, read_trace
from ckptcost.catalog.schema import flag_value
from ckptcost.catalog.store import Catalog
from ckptcost.core.domain import UNKNOWN
from ckptcost.core.draws import SAMPLES
from ckptcost.core.interruptions import NEVER
from ckptcost.errors import InputError, UnknownName
from ckptcost.jobs.gates import Gate, gate_of
from ckptcost.jobs.model import one_of, with_tier
from ckptcost.jobs.walks import Asked
from ckptcost.layers import DEFAULT_SCENARIO, Layer, layers_of, read_layer, set_layer
from ckptcost.meters.found import Wanted
from ckptcost.report.study import Study
from ckptcost.scenario import DEFAULTS, Resolved, resolve

if TYPE_CHECKING:
    from ckptcost.jobs.advice import Job
    from ckptcost.jobs.measure import Progress
    from ckptcost.report.statement import Statement, StatementDocument
    from ckptcost.report.statements.reading import Placing
    from ckptcost.runs.recorder import Recorder
    from ckptcost.runs.store import Found

MOST_BY_THE_WAY_BYTES = 20_000_000
"""a recorded run of up to so much is evaluated in about a second"""


def asked_of(
    runs: int = 1000,
    seed: int = 1,
    failures: str = "exponential",
    trace: str | None = None,
    trace_span: str | None = None,
    kinds: str | None = None,
    limit: str | None = None,
    inputs: str = "fixed",
    workers: int = 1,
) -> Asked:
    """What to simulate, from texts."""
    if trace_span is not None and trace is None:
        raise InputError("there is no record", where="--trace-span", remedy="give --trace FILE")
    law, shape, mean_s = law_of(failures)
    if trace is not None and failures != "exponential":
        raise InputError(
            "a record and a law contradict each other",
            where="--trace",
            remedy="give one of --trace and --failures",
        )
    recorded = read_trace(trace, trace_span) if trace is not None else None
    limit_s = NEVER if limit is None else flag_value("--limit", limit, "s")
    said = read_kinds(kinds) if kinds is not None else ()
    return Asked(
        runs,
        seed,
        law if trace is None else "trace",
        shape,
        mean_s,
        recorded,
        said,
        limit_s,
        inputs,
        workers=workers,
    )


def simulation(
    catalog: Catalog,
    layers: Sequence[Layer],
    asked: Asked,
    tier: str | None = None,
    gates: Sequence[Gate] = (),
    timeline: int | None = None,
    every_run: bool = False,
    note: Callable[[float], None] | None = None,
) -> Study:
    """Many runs, their targets, and the steps of one run where asked for."""
    from ckptcost.jobs.simulate import simulate, time_line, verdicts_of
    from ckptcost.report.studies.simulate import study_of

    resolved = one_of(catalog, layers, tier)
    line = time_line(resolved, asked, timeline)[0] if timeline is not None else []
    found = simulate(resolved, asked, note)
    return study_of(found, verdicts_of(found, list(gates)), line, timeline or 0, every_run)


def lead(catalog: Catalog, layers: Sequence[Layer], tier: str | None = None) -> Study:
    """How early the last save must begin, by the scenario's ranges."""
    from ckptcost.jobs.lead import of_scenario
    from ckptcost.report.studies.lead import study_of

    resolved = one_of(catalog, layers, tier)
    return study_of(of_scenario(resolved), resolved.name or "scenario")


def lead_of_run(name: str) -> Study:
    """The same by what a recorded run's saves took."""
    from ckptcost.jobs.lead import of_run
    from ckptcost.jobs.measure import reviewed
    from ckptcost.report.studies.lead import study_of

    kept = run_named(name)
    return study_of(of_run(reviewed(kept.path, run_id=kept.run)), kept.run)


def room(
    directory: str | Path, catalog: Catalog, layers: Sequence[Layer], tier: str | None = None
) -> Study:
    """Whether a folder has room for the checkpoints that are kept and those being written."""
    from ckptcost.jobs.room import look
    from ckptcost.report.studies.room import study_of

    return study_of(look(Path(directory), one_of(catalog, layers, tier)))


def optimum(
    catalog: Catalog,
    layers: Sequence[Layer],
    tiers: Sequence[str] = (),
    mode: str = "",
    objective: str = "",
    gates: Sequence[Gate] = (),
    check: int = 0,
    seed: int = 1,
    draws: int = 0,
) -> Study:
    """The best intervals; several tiers are held against `check` simulated runs of each
    combination."""
    from ckptcost.jobs import tiers_check
    from ckptcost.jobs.optimize import optimize
    from ckptcost.jobs.simulate import verdicts_of
    from ckptcost.report.studies import optimize as one_or_two
    from ckptcost.report.studies import tiers_check as by_runs

    if check < 0:
        raise InputError(f"{check} runs", where="--check", remedy="0 or more")
    if three := _three_tiers(catalog, layers, tiers, mode, objective):
        resolved, objective, timed = three
        searched = tiers_check.three_tiers(resolved, objective, timed, check, seed)
        return by_runs.study_of(searched)._replace(
            gates=verdicts_of(searched.best.found, list(gates))
        )
    more = {"draws": draws} if draws else {}
    found = optimize(catalog, layers, tiers, mode, objective, gates, **more)
    study = one_or_two.study_of(found, gates)
    levels = found.levels
    if levels is None or check < 2:
        return study
    resolved = found.option.resolved
    tries = {
        point.id: tiers_check.tried(resolved, point.interval_s, point.every, 1.0, check, seed)
        for point in levels.points
        if point.interval_s * point.every <= float(resolved.scenario.work_s)
    }
    return study._replace(tables=[*study.tables, by_runs.check_table(levels, tries)])


def _three_tiers(
    catalog: Catalog, layers: Sequence[Layer], tiers: Sequence[str], mode: str, objective: str
) -> tuple[Resolved, str, bool] | None:
    """(scenario, objective, whether it says how often) where it has three tiers; one first tier and
    one mode are searched at a time."""
    if not any(layer.sections.get("third_tier") for layer in layers):
        return None
    if len(tiers) > 1 or mode == "both":
        raise InputError(
            "one first tier and one mode at a time with three tiers",
            where="--tier" if len(tiers) > 1 else "--mode",
        )
    timed = any(layer.has_cadence for layer in layers)
    said = {
        "policy": {
            **({"mode": mode} if mode else {}),
            **({} if timed else {"optimal": objective or "time"}),
        }
    }
    resolved = resolve(
        catalog,
        [
            *with_tier(catalog, layers, tiers[0] if tiers else None, None, None),
            read_layer(catalog, said, "--mode"),
        ],
    )
    return resolved, objective or resolved.scenario.policy.objective, timed


def solution(
    catalog: Catalog,
    layers: Sequence[Layer],
    what: str,
    target: str | None,
    tier: str | None = None,
    keep_interval: bool = False,
) -> Study:
    """What is needed for a target such as "goodput>=0.95"."""
    from ckptcost.jobs.knobs import KNOBS, RANGES
    from ckptcost.jobs.solve import solve
    from ckptcost.report.studies.solve import study_of

    if what not in KNOBS and what not in RANGES:
        raise UnknownName("quantity to solve for", what, [*KNOBS, *RANGES, "price"], where="solve")
    if target is None:
        raise InputError("says no target", where="solve", remedy='add e.g. --for "goodput>=0.95"')
    return study_of(
        solve(one_of(catalog, layers, tier), what, gate_of(target, "--for"), keep_interval)
    )


def price(
    catalog: Catalog,
    layers: Sequence[Layer],
    tier: str | None,
    against: str | None,
    capex: str | None = None,
    keep_interval: bool = False,
) -> Study:
    """What a faster tier may cost."""
    from ckptcost.jobs.price import breakeven, side_of
    from ckptcost.report.studies.price import study_of

    if against is None:
        raise InputError(
            "names no faster tier",
            where="--against",
            remedy="e.g. --tier nas-hdd --against flash-shared",
        )
    capital_usd = None
    if capex is not None:
        capital_usd = flag_value("--capex", capex, "usd")
        if not capital_usd > 0:
            raise InputError(
                "a purchase costs something", where="--capex", remedy='e.g. "500000 USD"'
            )
    slow, fast = (side_of(one_of(catalog, layers, each), keep_interval) for each in (tier, against))
    return study_of(breakeven(slow, fast, capital_usd))


def comparison(
    catalog: Catalog,
    stacks: Sequence[tuple[str, list[Layer]]],
    variants: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    draws: int = SAMPLES,
) -> Study:
    """Scenarios side by side: named ones, and variants of the first."""
    from ckptcost.jobs.compare import LETTERS, compare, varied
    from ckptcost.jobs.model import judged_cases
    from ckptcost.report.studies.compare import study_of

    if variants and len(stacks) > 1:
        remedy = "name one, or write the variants as files"
        raise InputError(
            "--with varies one scenario, and several are named", where="--with", remedy=remedy
        )
    if not variants and len(stacks) < 2:
        remedy = 'name two, or a variant: ckptcost compare -s SCENARIO --with "tier.id=nas-hdd"'
        raise InputError("one scenario is nothing to compare", where="compare", remedy=remedy)
    found = compare(
        catalog,
        [*stacks, *((text, varied(catalog, stacks[0][1], text)) for text in variants)],
        draws,
    )
    verdicts = [
        verdict._replace(of=f"{letter}: {name}")
        for letter, name, case in zip(LETTERS, found.names, found.cases, strict=False)
        for verdict in judged_cases(gates, [case])
    ]
    return study_of(found, verdicts)


def ranking(
    catalog: Catalog,
    layers: Sequence[Layer],
    of: str,
    replan: bool = False,
    top: int = 12,
    draws: int = 0,
) -> Study:
    """Which inputs decide a result."""
    from ckptcost.jobs.compare import first_of
    from ckptcost.jobs.sensitivity import sensitivity
    from ckptcost.report.studies.sensitivity import study_of

    return study_of(sensitivity(first_of(catalog, layers), of, replan, draws), top)


def read_files(*paths: str | None) -> list[tuple[str, bytes]]:
    """Further files of the user's, for a document's list of inputs."""
    return [(path, Path(path).read_bytes()) for path in paths if path is not None]


def checkup(
    meters: str, wanted: Wanted, seconds: float, needed: Sequence[str] = ()
) -> tuple[Study, list[str]]:
    """What can be measured here, and which of the needed kinds cannot."""
    from ckptcost.jobs import checkup as job
    from ckptcost.jobs.instruments import instruments
    from ckptcost.report.studies.checkup import study_of

    if not 0.5 <= seconds <= 600:
        raise InputError("expected 0.5 s to 10 min", where="--for")
    job.known_kinds(needed)
    seen = job.checkup(instruments(meters, wanted, seconds), seconds)
    return study_of(seen), job.lacking(seen, needed)


def measurement(
    meters: str,
    wanted: Wanted,
    seconds: float | None = None,
    needed: Sequence[str] = (),
    directory: str | Path | None = None,
    tell: Callable[[Recorder], None] | None = None,
) -> tuple[Study, list[str]]:
    """What this machine uses for a while, and which of the needed kinds is not measured."""
    from ckptcost.jobs.checkup import known_kinds, lacking_of
    from ckptcost.jobs.measure import measure
    from ckptcost.report.studies.measure import study_of

    known_kinds(needed)
    measured = measure(
        meters,
        wanted,
        _length(seconds, 10.0, meters),
        None if directory is None else Path(directory),
        tell,
    )
    return study_of(measured), lacking_of(measured.energies, needed)


def tells_joules(study: Study) -> bool:
    """Whether any part or whole of the machine has joules in it."""
    domains = next((table.rows for table in study.tables if table.id == "domains"), [])
    return any(row["role"] != "detail" and row["joules"] is not None for row in domains)


def review(
    path: str | Path,
    host: str = "",
    needed: Sequence[str] = (),
    run_id: str = "",
    tell: Progress | None = None,
) -> tuple[Study, list[str]]:
    """A recorded run, and which of the needed kinds it has no reading of. `tell` is told how far
    that is."""
    from ckptcost.jobs.checkup import known_kinds, lacking_of
    from ckptcost.jobs.measure import reviewed
    from ckptcost.report.studies.measure import study_of

    known_kinds(needed)
    seen = reviewed(path, host=host, run_id=run_id, tell=tell)
    return study_of(seen), lacking_of(seen.energies, needed)


def run_headline(folder: str | Path) -> tuple[str, str]:
    """What the saves of a recorded run were, in one line, or why there are none; empty where it is
    too large to be looked at by the way."""
    from ckptcost.jobs.advice import rhythm_of
    from ckptcost.jobs.measure import reviewed
    from ckptcost.report.studies.advice import headline
    from ckptcost.report.studies.measure_saves import merged_briefly, nothing_found

    parts = [Path(folder)] if Path(folder).is_file() else [*Path(folder).iterdir()]
    if sum(part.stat().st_size for part in parts if part.is_file()) > MOST_BY_THE_WAY_BYTES:
        return "", ""
    measured = reviewed(folder)
    try:
        return headline(rhythm_of(measured)) + merged_briefly(measured), ""
    except InputError:
        return "", nothing_found(measured)


def advice(name: str, job: Job, within: str | None = None, host: str = "") -> Study:
    """A recorded run, and the answer to what its saves cost and how often the job should save."""
    from ckptcost.jobs.advice import advise, rhythm_of
    from ckptcost.jobs.measure import reviewed
    from ckptcost.report.studies.advice import with_advice
    from ckptcost.report.studies.measure import study_of

    kept = run_named(name, within)
    measured = reviewed(kept.path, host=host, run_id=kept.run)
    return with_advice(study_of(measured), advise(Catalog(), rhythm_of(measured), job))


def baseline(
    meters: str,
    wanted: Wanted,
    seconds: float | None = None,
    needed: Sequence[str] = (),
    anyway: bool = False,
) -> tuple[Study, list[str]]:
    """Learn the idle power of this machine and keep it."""
    from ckptcost.jobs.baseline import learn
    from ckptcost.jobs.checkup import known_kinds, lacking_of
    from ckptcost.report.studies.baseline import study_of

    known_kinds(needed)
    learned = learn(meters, wanted, _length(seconds, 30.0, meters), anyway)
    return study_of(learned), lacking_of(learned.measured.energies, needed)


def _length(seconds: float | None, otherwise: float, meters: str) -> float | None:
    """None: a replayed run is as long as it is."""
    if seconds is None:
        return None if meters.startswith("replay:") else otherwise
    if not 0.1 <= seconds <= 366 * 86400:
        raise InputError("expected 0.1 s to a year", where="--for")
    return seconds


def statement_document(
    sources: Sequence[str],
    placing: Placing | None = None,
    within: str | None = None,
    scenario: str | None = None,
    settings: Sequence[str] = (),
    site: str = "",
    command: Sequence[str] = (),
    catalog: Catalog | None = None,
) -> StatementDocument:
    """Documents and recorded runs as one document of statements, placed and dated as is said. Site
    and prices are said of runs only."""
    from ckptcost.report.statements import reading

    said, catalog = placing or reading.Placing(), catalog or Catalog()
    factors = reading.factors_of(said)
    asked = bool(scenario or settings or site)
    found = []
    for source in sources:
        if reading.is_document(source):
            if asked:
                raise InputError(
                    "is said of recorded runs; a document has its own",
                    where="--site" if site else "-s" if scenario else "--set",
                )
            told = reading.statements_of(source, said.case, said.summed)
        else:
            told = _of_run(
                source,
                said.host,
                within,
                catalog,
                standing(catalog, scenario, settings, site) if asked else None,
                bool(scenario) or any(each.startswith("cluster.") for each in settings),
                reading.width_of(factors),
            )
        found += reading.placed(told, said, factors)
    return reading.gathered(found, command, factors.inputs)


def _of_run(
    source: str,
    host: str,
    within: str | None,
    catalog: Catalog,
    resolved: Resolved | None,
    priced: bool,
    width_s: float,
) -> list[Statement]:
    from ckptcost.report.statements import reading

    if Path(source).suffix == ".json":
        raise InputError(
            "is no JSON document" if Path(source).exists() else "there is no such file",
            where=source,
        )
    kept = run_named(source, within)
    return reading.of_run(kept.path, kept.run, host, catalog, resolved, priced, width_s)


def run_named(name: str, within: str | None = None) -> Found:
    """A recorded run by folder, file, id or "last"."""
    from ckptcost.runs import store

    if within is not None and not Path(within).is_dir():
        raise InputError(
            "no such folder", where=f"--dir {within}", remedy="name one that holds runs"
        )
    return store.found(name, None if within is None else Path(within))


def standing(
    catalog: Catalog, scenario: str | None, settings: Sequence[str], site: str
) -> Resolved:
    """A scenario for its site and prices. What is measured has no line for keeping bytes, so a
    storage price that is only assumed cannot be the one that contains the storage's electricity: it
    is left out."""
    layers = layers_of(catalog, scenario or DEFAULT_SCENARIO)
    said = [*([f"site.id={site}"] if site else []), *settings]
    found = one_of(catalog, [*layers, set_layer(catalog, said, None)] if said else layers)
    price = next((each for each in found.inputs if each.path == "tier.storage_price"), None)
    if price is None or price.origin != DEFAULTS:
        return found
    s = found.scenario
    return found._replace(scenario=replace(s, tier=replace(s.tier, usd_per_byte_s=UNKNOWN)))
