"""How often a job should save, where, and in which mode: the one advice, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Annotated, Any, Unpack

import numpy as np

from ckptcost import advice as ad
from ckptcost.answer import Answer, Caution, Column, Line, Plot, Say, Table
from ckptcost.cautions import cautions_of
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.questions.sure import (
    MEASURE,
    OTHERWISE,
    Chosen,
    beside_it,
    has_own,
    how_sure,
    last_save,
    late,
    to_type,
)
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show
from ckptcost.study import AHEAD, MEASURES, Study, ranges_of, read

OBJECTIVES = ("time", "energy", "cost")
"""those that are compared: emissions are least where energy is"""
MODES = ("sync", "async")
SPOT = {"Azure and Google Cloud spot": 30.0, "AWS spot": 120.0}
"""seconds between the warning and the end of an instance"""


def interval(
    job: q.Job = q.DEFAULT,
    *,
    for_: Annotated[str, q.Flag("time, energy, cost or carbon", "WHAT")] = "",
    **flags: Unpack[q.Flags],
) -> Answer:
    """How often a job should save, where, and in which mode.

    ckptcost interval job.toml
    ckptcost interval job.toml --tier flash-shared --tier gcs-standard --mode both
    ckptcost interval job.toml --for cost
    """
    options = {"for_": for_, "typed": q.typed(job, flags)} | q.options_of(flags)
    return answer(cases_for(job, flags), **options)


def cases_for(job: str, flags: q.Flags) -> dict[str, Scenario]:
    """Every tier in every mode, with the interval that the job has or leaves open."""
    found = {}
    for mode in MODES if flags.get("mode") == "both" else ("",):
        settings = flags.copy()
        if mode:
            settings["mode"] = mode
        layers = [
            replace(each, compare={**each.compare, "saves": []})
            for each in q.layers_for(job, settings)
        ]
        for each in sc.cases_of(layers, flags.get("tier", ()), q.counts(flags)[:1]).values():
            tier = str(each.said["tier"].get("id") or "")
            found[", ".join(filter(None, (tier, mode))) or "tier"] = each
    return found


# --- the answer -----------------------------------------------------------------------------------


def answer(
    cases: dict[str, Scenario],
    *,
    for_: str = "",
    typed: str = "",
    require: Sequence[str] = (),
    sure: float = q.SURE,
    draws: int | None = None,
) -> Answer:
    """The same of cases, and of the options that a document holds."""
    open_ = str(next(iter(cases.values())).said["policy"].get("optimal") or "time")
    objective = for_ or open_
    q.demand(
        objective in MEASURE, f"no objective {objective!r}", "--for", f"try {', '.join(MEASURE)}"
    )
    wanted = [*dict.fromkeys([objective, *OBJECTIVES])]
    advices = {name: ad.advise_for(each, wanted) for name, each in cases.items()}
    plans = {n: ad.with_advice(each, advices[n][objective]) for n, each in cases.items()}
    alone = next(iter(cases)) if len(cases) == 1 else ""
    study = Study(with_own(plans, cases[alone]) if alone else plans, draws)
    order, stops = ranks.ranking(study, MEASURE[objective], len(plans))
    row = order[0]
    name = study.names[row]
    unknown = f"{objective} is not known for this job"
    q.demand(one.known(study.range(MEASURE[objective], row)), unknown, "--for", "take time")
    pair = study if alone else Study(with_own({name: plans[name]}, cases[name]), draws)
    chosen = Chosen(name, cases[name], advices[name], pair, objective, stops.get(row))
    options = {"for_": for_, "typed": typed, "require": [*require], "sure": sure, "draws": draws}
    return Answer(
        "interval",
        f"How often to save: {study.scenarios[row].name or 'this job'}",
        one.job(study, row),
        [*ranks.doubts(study, [row]), *decision(chosen, not alone),
         *against_others(study, order, stops, objective)],
        tables(study, order, stops, chosen),
        [*how_sure(chosen), *beside_it(chosen), *ranks.unlike(study), *to_type(chosen)],
        cautions_of(study, [row]),
        [curves(study, cases, chosen)],
        q.missed(study, q.Flags(require=require, sure=sure), [row]),
        cases,
        {key: value for key, value in options.items() if value not in ([], "", None)},
        study.draws,
    )  # fmt: skip


def with_own(plans: dict[str, Scenario], scenario: Scenario) -> dict[str, Scenario]:
    """The recommended plan, and the plan as it stands if it says how often it saves."""
    return plans | {"yours": scenario} if has_own(scenario) else plans


# --- the decision ---------------------------------------------------------------------------------


def second_of(scenario: Scenario) -> str:
    return str(scenario.said["second_tier"].get("id") or "the second tier")


def nth(n: float) -> str:
    """
    >>> nth(1), nth(2), nth(10)
    ('each save', 'every 2nd save', 'every 10th save')
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(int(n) % 10 if int(n) // 10 != 1 else 0, "th")
    return "each save" if n == 1 else f"every {n:,g}{ending} save"


def decision(chosen: Chosen, one_of_several: bool) -> list[Say]:
    """What to do, and what the job does now; what stops it comes first."""
    found, settled = chosen.advice, chosen.settled
    where = ""
    if one_of_several:
        where = f", {chosen.name}" if chosen.name in MODES else f" on {chosen.name}"
    least = "" if chosen.objective == "time" else f", for least {chosen.objective}"
    every = show(found.interval, "s", 2)
    often = "Save once, at the end" if found.bound == "run" else f"Save every {every}"
    also = (
        f", {nth(found.every)} also to {second_of(settled)}" if settled.said["second_tier"] else ""
    )
    words = f"{often}{where}{also}{least}.{yours(chosen)}"
    bounds = {
        "drain": " Saving more often would be better, but a save has to be safe before the next.",
        "limit": " Saving less often would be better, but one save must fit before the wall limit.",
        "run": " The run is shorter than the interval that would pay.",
    }
    words += bounds.get(found.bound, "")
    if chosen.blocks is None:
        return [Say(words)]
    why, _, command = chosen.blocks.words.partition(":   ")
    return [
        Say(f"This plan does not work as it stands. {why}:", "", command),
        Say(f"Then: {words}"),
    ]


def yours(chosen: Chosen) -> str:
    """What the job does now."""
    if not chosen.now:
        return ""
    every = show(chosen.now, "s", 2)
    if chosen.futile:
        return f" You save every {every}: the job ends before that."
    also = other_saves(chosen)
    if also:
        return f" You save every {every}, {also} also there."
    if not chosen.moves:
        return " You do."
    return f" Your {every} is as good." if as_good(chosen) else f" You save every {every}."


def other_saves(chosen: Chosen) -> str:
    """Which of the job's saves go to the second tier, if that differs from what is recommended."""
    if not chosen.scenario.said["second_tier"]:
        return ""
    n = chosen.pair.stated_of(chosen.pair.w.policy.second_every, -1)
    return "" if n == chosen.advice.every else nth(n)


def as_good(chosen: Chosen) -> bool:
    """The job's own interval is near the recommended one, and the run as short."""
    near = abs(math.log(chosen.now / chosen.advice.interval)) < OTHERWISE
    mine, its = (chosen.pair.value("wall", row) for row in (0, 1))
    return near and abs(its / mine - 1.0) < 0.001


def against_others(
    study: Study, order: list[int], stops: dict[int, Caution], objective: str
) -> list[Say]:
    """How sure the choice among tiers and modes is, and which are left out of it."""
    unknown = [row for row in order if study.limit_unknown(row)]
    if len(order) == 1:
        return ranks.unknown_limits(study, unknown, ranked=False)
    free = [row for row in order if row not in stops and row not in unknown]
    no = [row for row in order[1:] if row in stops]
    return [
        *next_best(study, free[:2], objective),
        *ranks.unknown_limits(study, unknown),
        *(ranks.stopped(stops[row], f"Not {study.names[row]}.") for row in no),
    ]


def next_best(study: Study, two: list[int], objective: str) -> list[Say]:
    """How sure the first of those that may be ranked is ahead of the second."""
    if len(two) < 2:
        return []
    sure = study.better(MEASURE[objective], *two)
    what = "ends sooner" if objective == "time" else f"takes less {objective}"
    mine, its = (study.names[row] for row in two)
    return [Say(f"{mine} {what} than {its}, the next best, {sure.say()}.")]


# --- tables ---------------------------------------------------------------------------------------


def tables(study: Study, order: list[int], stops: Container[int], chosen: Chosen) -> list[Table]:
    """Tiers if there are several, else intervals, come first; all are in files."""
    several = len(order) > 1
    first = [tiers_table(study, order, stops, several), intervals_table(chosen, not several)]
    if not several:
        first.reverse()
    pair = chosen.pair
    return [*first, last_save_table(chosen), pair.bill_table(0), pair.inputs_table(0)]


ROWS = 5


def rows_around(chosen: Chosen) -> dict[float, str]:
    """Intervals of the table and what they are called: about five, and the job's own."""
    best, reach = chosen.advice.interval, chosen.reach
    found = {best: "best"}
    if chosen.moves:
        found[chosen.now] = "you"
    for factor in (1 / 3, 2, 1 / 1.5, 4):
        x = min(ad.ROUND, key=lambda each: abs(math.log(each / (best * factor))))
        apart = all(abs(math.log(x / other)) > 0.26 for other in found)
        if apart and reach.least <= x <= reach.most and len(found) < ROWS:
            found[float(x)] = ""
    return dict(sorted(found.items()))


def intervals_table(chosen: Chosen, shown: bool) -> Table:
    """The run at intervals around the recommended one; with the job's own n where it is its own."""
    marks, pair = rows_around(chosen), chosen.pair
    measures = ["goodput", "gpu_time", "energy", "cost", "carbon", "wall", "saves"]
    seen = [m for m in measures[1:4] if one.known(pair.range(m, 0))]
    columns = [Column("interval", "every", "s")]
    columns += [Column(m, MEASURES[m].header, MEASURES[m].unit, _screen(m, seen)) for m in measures]
    columns.append(Column("mark", "", "text"))
    tried = pair.at(0, [*marks], min(pair.draws, TABLE_DRAWS))
    found = {m: ranges_of(read(m, tried)) for m in measures}
    studied = {"best": 0, "you": 1}
    rows: list[list[Any]] = []
    for at, (x, mark) in enumerate(marks.items()):
        row = studied.get(mark)
        cells = (found[m][at] if row is None else pair.range(m, row) for m in measures)
        rows.append([x, *cells, mark])
    return Table("intervals", "", columns, rows, shown=shown)


TABLE_DRAWS = 4096
"""for the ranges of rows that the first screen shows without them"""


def _screen(measure: str, shown: list[str]) -> str:
    if measure == "goodput":
        return "value"
    if measure not in shown:
        return "no"
    return "bar" if measure == shown[-1] else "value"


def tiers_table(study: Study, order: list[int], stops: Container[int], shown: bool) -> Table:
    """Each tier and mode at its own recommended interval, the best first."""
    amount = next(
        (m for m in ("cost", "energy") if one.known(study.range(m, order[0]))), "gpu_time"
    )
    screen = {"interval": "value", "goodput": "value", amount: "range"}
    table = study.table("Each at its recommended interval", screen, shown)
    names = [
        name + (" (no)" if row in stops else " *" if study.limit_unknown(row) else "")
        for row, name in enumerate(study.names)
    ]
    table.columns[0] = table.columns[0]._replace(screen="no")
    table.columns.insert(1, Column("called", "", "text"))
    table.rows = [[table.rows[row][0], names[row], *table.rows[row][1:]] for row in order]
    return table


def last_save_table(chosen: Chosen) -> Table:
    """For wall limits and spot instances."""
    slow, usual = late(chosen), float(last_save(chosen)[0])
    columns = [
        Column("what", "the last save before an end"),
        Column("time", "", "s"),
        Column("does", ""),
    ]
    rows: list[list[Any]] = [
        ["is safe after, as a rule", usual, ""],
        ["is safe after, 99 of 100", slow, ""],
    ]
    rows += [
        [f"{who} warns before", warning, "enough" if warning >= slow else
         "not enough: the last regular save counts"]
        for who, warning in SPOT.items()
    ]  # fmt: skip
    return Table("last_save", "", columns, rows, shown=False)


# --- the plot -------------------------------------------------------------------------------------


def curves(study: Study, cases: dict[str, Scenario], chosen: Chosen) -> Plot:
    """Useful training over the interval, a curve a case."""
    best, now = chosen.advice.interval, chosen.now if chosen.moves else 0.0
    x = np.geomspace(min(best, now or best) / 8.0, max(best, now) * 8.0, 61)
    lines = []
    for row, name in enumerate(cases):
        reach = ad.reach_of(cases[name], chosen.objective)
        own = x[(x >= reach.least) & (x <= reach.most)]
        if len(own) > 1 and study.value("goodput", row) > AHEAD:
            y = study.at(row, own).goodput[:, 0]
            lines.append(Line(name, own.tolist(), y.tolist()))
    marks = [("best", best, chosen.pair.value("goodput", 0))]
    if now:
        marks.append(("now", now, chosen.pair.value("goodput", 1)))
    title = "Useful training by how often the job saves"
    axes = "training time between saves [s]", "useful training [share]"
    return Plot(title, *axes, lines, tuple(marks), True)
