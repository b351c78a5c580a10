"""Nested tiers by simulation, as tables and sentences."""

from __future__ import annotations

from typing import Any

from ckptcost.first.core.simulate import QuantitySummary
from ckptcost.first.core.units import to_kwh
from ckptcost.first.jobs.optimize import Levels
from ckptcost.first.jobs.tiers_check import MOST_FAILURES, ThreeTiers, TiersTrial, difference
from ckptcost.first.present.amounts import count, duration, share
from ckptcost.first.report.studies.optimize_levels import RULE, TWO, WASTE
from ckptcost.first.report.studies.run_columns import COSTS, INTERVAL, known_value
from ckptcost.first.report.study import Column, Study, Table


def check_table(levels: Levels, tries: dict[str, TiersTrial | None]) -> Table:
    """Two tiers: what the closed form says of each combination, beside simulated runs of it; None
    where too many failures were expected for it to be simulated."""
    columns = (
        Column("at", "two tiers"),
        INTERVAL,
        Column("every", "n", "count"),
        Column("closed_form", "goodput", "share", "the closed form's"),
        Column("simulated", "simulated", "share"),
        Column("error", "+-", "share", "standard error of the simulated"),
        Column("errors_off", "off by", "1", "simulated minus closed form, in standard errors"),
    )
    rows = []
    for point in levels.points:
        if point.id in tries:
            closed, trial = float(point.outcome.goodput), tries[point.id]
            row = {
                "at": TWO[point.id],
                "interval": point.interval_s,
                "every": point.every,
                "closed_form": closed,
            }
            rows.append(row | (_NOT_SIMULATED if trial is None else _simulated_row(trial, closed)))
    runs = next((each.found.asked.runs for each in tries.values() if each is not None), 0)
    held = f"checked by {count(runs)} simulated runs each" if runs else "not simulated"
    return Table(
        "check",
        f"Two tiers, {held}; off by: in standard errors",
        columns,
        rows,
        (
            f"not simulated where over {count(MOST_FAILURES)} failures are expected in a run"
            if None in tries.values()
            else ""
        ),
    )


_NOT_SIMULATED = {"simulated": None, "error": None, "errors_off": None}


def _simulated_row(trial: TiersTrial, closed: float) -> dict[str, Any]:
    goodput = trial.found.summary("goodput")
    off = known_value((goodput.mean - closed) / goodput.error) if goodput.error else 0.0
    return {
        "simulated": goodput.mean,
        "error": known_value(goodput.error),
        "errors_off": off,
    }


def study_of(found: ThreeTiers) -> Study:
    """Three tiers: the answer as a study."""
    s, names = found.resolved.scenario, found.resolved.names
    rows = [_row("best found", found.best, found), _row("first-order rule", found.rule, found)]
    rows += [_row("now", found.now, found)] if found.now is not None else []
    runs = found.best.found.asked.runs
    columns = (
        Column("at", "three tiers"),
        INTERVAL,
        Column("second_every", "n", "count", "every n-th save also to the second tier"),
        Column("third_every", "m", "count", "every m-th of those also to the third"),
        Column("goodput", "goodput", "share"),
        Column("goodput_error", "+-", "share", "standard error"),
        Column("kwh", "kWh", "kWh"),
        Column("usd", "USD", "USD"),
        Column("kgco2e", "kgCO2e", "kgCO2e", "location-based"),
        Column(
            "excess", "over", "share", f"{COSTS[found.objective]} over the best found, run by run"
        ),
        Column("excess_error", "over +-", "share", "its standard error", shown=False),
    )
    all_rows = [
        _row(f"{count(each.second_every)} x {count(each.third_every)}", each, found)
        for each in found.tried
    ]
    best = found.best
    note = (
        f"{count(runs)} simulated runs each, the same random numbers for all; over:"
        f" {COSTS[found.objective]}"
    )
    return Study(
        "optimum",
        f"How often to save on three tiers: {found.resolved.name or 'scenario'}",
        [
            f"{names['tier']}, then {names['second_tier']}, then {names['third_tier']};"
            f" {s.policy.mode}; objective: {found.objective}. Found and checked by simulation:"
            " three tiers have no closed form."
        ],
        {"objective": found.objective, "runs": runs, "seed": best.found.asked.seed},
        [
            Table("levels", "Interval, every n-th save, every m-th of those", columns, rows, note),
            _rule_table(found),
            Table("tried", "Every combination tried", columns, all_rows, shown=False),
        ],
        _findings(found),
        resolved=[found.resolved],
    )


def _row(label: str, each: TiersTrial, found: ThreeTiers) -> dict[str, Any]:
    def mean(name: str) -> float:
        summary: QuantitySummary = each.found.summary(name)
        return summary.mean

    goodput = each.found.summary("goodput")
    excess, error = difference(each, found.best, found.objective)
    return {
        "at": label,
        "interval": each.interval_s,
        "second_every": each.second_every,
        "third_every": each.third_every,
        "goodput": goodput.mean,
        "goodput_error": known_value(goodput.error),
        "kwh": known_value(to_kwh(mean("kwh"))),
        "usd": known_value(mean("usd")),
        "kgco2e": known_value(mean("kgco2e")),
        "excess": known_value(excess),
        "excess_error": known_value(error),
    }


def _rule_table(found: ThreeTiers) -> Table:
    names = [found.resolved.names[name] for name in ("tier", "second_tier", "third_tier")]
    rows = [
        {
            "level": name,
            "stall": each.stall_s,
            "mtbf": known_value(each.mtbf_s),
            "alone": known_value(each.alone_s),
            "multiple": known_value(each.multiple),
            "waste": each.waste,
        }
        for name, each in zip(names, found.levels, strict=True)
    ]
    wasted = share(sum(each.waste for each in found.levels))
    return Table(
        "rule",
        "The first-order rule for each tier by itself",
        (*RULE, WASTE),
        rows,
        f"first order, for time: {wasted} wasted in all",
    )


def _findings(found: ThreeTiers) -> list[str]:
    best, rule = found.best, found.rule
    excess, error = difference(rule, best, found.objective)
    said = [
        f"Best found: save each {duration(best.interval_s)}, {_nth(best.second_every)} also to the"
        f" second tier, {_nth(best.third_every)} of those to the third: goodput"
        f" {share(best.found.summary('goodput').mean)}."
    ]
    if rule is not best:
        said.append(
            f"The first-order rule's choice costs {share(excess)} (+- {share(error)}) more"
            f" {COSTS[found.objective]}."
        )
    if found.now is not None:
        excess, error = difference(found.now, best, found.objective)
        said.append(f"Now: {share(excess)} (+- {share(error)}) more {COSTS[found.objective]}.")
    return said


def _nth(value: float) -> str:
    return "each" if value == 1 else f"one in {count(value)}"
