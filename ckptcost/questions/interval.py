"""How often a job should save, where, and in which mode: the one advice, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import replace
from typing import Annotated, Any, Unpack

from ckptcost import advice as ad
from ckptcost.answer import Answer, Caution, Column, Say, Table
from ckptcost.cautions import cautions_of
from ckptcost.errors import InputError
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.questions.sure import (
    MEASURE,
    Chosen,
    continuous,
    has_own,
    how_sure,
    last_save,
    to_measure,
    usual,
)
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show
from ckptcost.study import MEASURES, Study, ranges_of, read

OBJECTIVES = ("time", "energy", "cost")
"""those that are compared: emissions are least where energy is"""
MODES = ("sync", "async")


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
    return answer(cases_for(job, flags), **{"for": for_} | q.options_of(flags))


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
            found[", ".join(filter(None, (tier, mode))) or sc.tier_of(each)] = each
    return found


# --- the answer -----------------------------------------------------------------------------------


def answer(cases: dict[str, Scenario], **asked: Any) -> Answer:
    """The same of cases, and of the options that a document holds."""
    (first, *others), draws = cases.values(), asked.get("draws")
    objective = objective_of(first, asked.get("for"))
    wanted = [*dict.fromkeys([objective, *OBJECTIVES])]
    advices = {name: ad.advise_for(each, wanted) for name, each in cases.items()}
    plans = {n: ad.with_advice(each, advices[n][objective]) for n, each in cases.items()}
    alone = not others
    study = Study(with_own(plans, first) if alone else plans, draws)
    measure = ranks.dollars(study) if objective == "cost" else MEASURE[objective]
    order, stops = ranks.ranking(study, measure, len(plans))
    name, scenario = study.names[order[0]], study.scenarios[order[0]]
    found = Answer(
        "interval",
        f"How often to save: {scenario.name or 'this job'}",
        one.job(study, order[0]),
        one.doubted(study, [order[0]]),
        [tiers_table(study, order, stops)],
        cautions=cautions_of(study, [order[0]]),
        missed=q.missed(study, q.Flags(**asked), [order[0]]),  # type: ignore[typeddict-item]
        cases=cases,
        options=asked,
        draws=study.draws,
    )
    if order[0] in stops and not one.ends(study, order[0]):
        found.says.append(ranks.stopped(stops[order[0]], NO))
        return found
    if not one.known(study.range(MEASURE[objective], order[0])):
        raise not_known(objective, scenario)
    pair = study if alone else Study(with_own({name: plans[name]}, cases[name]), draws)
    chosen = Chosen(name, cases[name], advices[name], pair, objective, stops.get(order[0]))
    found.says += [*decision(chosen, not alone), *against_others(study, order, stops, measure)]
    concluded(found, chosen, study, alone)
    return found


def concluded(found: Answer, chosen: Chosen, study: Study, alone: bool) -> None:
    """With the tables and curves of the recommended plan, and what is said behind them."""
    pair = chosen.pair
    marks = {"best": (study.names.index(chosen.name), chosen.advice.interval)}
    marks |= {"you": (1, chosen.now)} if alone and chosen.apart else {}
    found.plots = [ranks.curves(study, [*found.cases], marks)]
    own = [intervals_table(chosen, alone), one.lines(pair)]
    found.tables = [own[0], *found.tables, *own[1:]] if alone else [*found.tables, *own]
    found.notes = [
        *how_sure(chosen),
        usual(chosen),
        *continuous(chosen),
        *last_save(chosen),
        *ranks.unlike(study),
        *one.lacking(pair, 0),
        *to_measure(chosen),
    ]


def objective_of(scenario: Scenario, for_: str | None) -> str:
    """What the interval is to make least: what was asked for, or what the job's policy says."""
    objective = for_ or str(scenario.said["policy"].get("optimal") or "time")
    remedy = f"try {', '.join(MEASURE)}"
    q.demand(objective in MEASURE, f"no objective {objective!r}", "--for", remedy)
    return objective


def not_known(objective: str, scenario: Scenario) -> InputError:
    """That what is to be least cannot be computed, with the keys that would change that."""
    _, needed = one.SUPPLIED["cost" if objective == "cost" else "energy"]
    keys = q.and_join([key for key in needed if key in scenario.lacking])
    problem = f"{objective} is not known for this job"
    return InputError(problem, "--for", f"take --for time, or give {keys}")


NO = "This plan does not work as it stands."


def with_own(plans: dict[str, Scenario], scenario: Scenario) -> dict[str, Scenario]:
    """The recommended plan, and the plan as it stands if it says how often it saves."""
    return plans | {"yours": scenario} if has_own(scenario) else plans


# --- the decision ---------------------------------------------------------------------------------


def decision(chosen: Chosen, one_of_several: bool) -> list[Say]:
    """What to do, and what the job does now; what stops it comes first."""
    found, second = chosen.advice, chosen.scenario.said["second_tier"]
    words = (
        "Save once, at the end" if found.bound == "run" else f"Save every {said(found.interval)}"
    )
    if one_of_several:
        words += f", {chosen.name}" if chosen.name in MODES else f" on {chosen.name}"
    if second:
        words += f", {one.nth(found.every)} save also to {second.get('id') or 'the second tier'}"
    if chosen.objective != "time":
        words += f", for least {chosen.objective}"
    words += f".{yours(chosen)}{BOUNDS.get(found.bound, '')}"
    if chosen.blocks is None:
        return [Say(words)]
    return [ranks.stopped(chosen.blocks, NO), Say(f"Then: {words}")]


BOUNDS = {
    "drain": " Saving more often would be better, but a save has to be safe before the next.",
    "limit": " Saving less often would be better, but one save must fit before the wall limit.",
    "run": " The run is shorter than the interval that would pay.",
}


def yours(chosen: Chosen) -> str:
    """What the job does now."""
    if not chosen.now:
        return ""
    words = f" You save every {said(chosen.now)}"
    if chosen.futile:
        return f"{words}: the job ends before that."
    if chosen.scenario.said["second_tier"]:
        n = chosen.pair.stated_of(chosen.pair.w.policy.second_every, 1)
        if n != chosen.advice.every:
            return f"{words}, {one.nth(n)} save also there."
    if chosen.moves:
        return f"{words}."
    same = said(chosen.now) == said(chosen.advice.interval)
    return " You do." if same else f" Your {said(chosen.now)} is as good."


def said(seconds: float) -> str:
    return show(seconds, "s", 2)


def against_others(
    study: Study, order: list[int], stops: dict[int, Caution], measure: str
) -> list[Say]:
    """How sure the choice among tiers and modes is, and which are left out of it."""
    free = [row for row in order if row not in stops and not study.limit_unknown(row)]
    says = []
    if len(free) > 1:
        does = f"{ranks.LESS[measure]} {study.better(measure, *free[:2]).say()}"
        mine, its = (study.names[row] for row in free[:2])
        says.append(Say(f"Compared with {its}, the next best, {mine} {does}."))
    no = [
        ranks.stopped(stops[row], f"Not {study.names[row]}.") for row in order[1:] if row in stops
    ]
    return [*says, *ranks.unknown_limits(study, order), *no]


# --- tables ---------------------------------------------------------------------------------------

ROWS = 5


def rows_around(chosen: Chosen) -> dict[float, str]:
    """Intervals of the table and what they are called: about five, and the job's own."""
    best, advice = chosen.advice.interval, chosen.advice
    found = {best: "as good" if chosen.as_good else "best"}
    found |= {chosen.now: "you"} if chosen.apart else {}
    for factor in (1 / 3, 2, 1 / 1.5, 4):
        x = min(ad.ROUND, key=lambda each: abs(math.log(each / (best * factor))))
        apart = all(abs(math.log(x / other)) > 0.26 for other in found)
        if apart and advice.least <= x <= advice.most and len(found) < ROWS:
            found[x] = ""
    return dict(sorted(found.items()))


def intervals_table(chosen: Chosen, shown: bool) -> Table:
    """The run at intervals around the recommended one; with the job's own n where it is its own."""
    marks, pair = rows_around(chosen), chosen.pair
    measures = ["goodput", "gpu_time", "energy", "cost", "carbon", "wall", "saves"]
    seen = [m for m in measures[:4] if one.known(pair.range(m, 0))]
    screen = dict.fromkeys(seen, "value") | ({seen[-1]: "bar"} if seen[1:] else {})
    columns = [Column("interval", "every", "s")] + [
        Column(m, MEASURES[m].header, MEASURES[m].unit, screen.get(m, "no")) for m in measures
    ]
    tried = pair.at(0, [*marks], min(pair.draws, ad.WORLDS))
    found = {m: ranges_of(read(m, tried)) for m in measures}
    studied = {"best": 0, "as good": 0, "you": 1}
    rows: list[list[Any]] = []
    for at, (x, mark) in enumerate(marks.items()):
        row = studied.get(mark)
        cells = (found[m][at] if row is None else pair.range(m, row) for m in measures)
        rows.append([x, *cells, mark])
    return Table("intervals", "", [*columns, Column("mark", "", "text")], rows, shown=shown)


def tiers_table(study: Study, order: list[int], stops: Container[int]) -> Table:
    """Each tier and mode at its own recommended interval, the best first."""
    amount = one.measure_of(study, order[0])
    amount = ranks.dollars(study) if amount == "cost" else amount
    screen = {"interval": "value", "goodput": "value", amount: "range"}
    table = study.table("Each at its recommended interval", screen, len(order) > 1)
    names = [
        name + (" (no)" if row in stops else " *" if study.limit_unknown(row) else "")
        for row, name in enumerate(study.names)
    ]
    table.columns[0] = replace(table.columns[0], screen="no")
    table.columns.insert(1, Column("called", "", "text"))
    table.rows = [[table.rows[row][0], names[row], *table.rows[row][1:]] for row in order]
    return table
