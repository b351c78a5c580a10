"""Two tiers in the answer of `optimize`: interval and n chosen together, and the first-order rule
beside it."""

from __future__ import annotations

import math
from typing import Any

from ckptcost.first.core.failures import mtbf_s
from ckptcost.first.jobs.optimize import Levels, Optimum, TierOption
from ckptcost.first.present.amounts import count, duration, share
from ckptcost.first.report.studies.run_columns import (
    AMOUNTS,
    COSTS,
    INTERVAL,
    known_value,
    regret_value,
    row_of,
    where_of,
)
from ckptcost.first.report.study import Column, Table

TWO = {
    "joint": "both chosen",
    "given": "best at the n given",
    "rule": "first-order rule",
    "now": "now",
}

RULE = (
    Column("level", "tier"),
    Column("stall", "stall", "s", "training held up or slowed by a save there"),
    Column("mtbf", "failure each", "s", "mean time between failures that need it"),
    Column(
        "alone",
        "sqrt(2C/l)",
        "s",
        "first-order interval, not shorter than the level below it or its drain allows",
    ),
    Column("multiple", "multiple", "count", "of the first tier's interval, whole"),
)
WASTE = Column("waste", "waste", "share", "sqrt(2*l*C) + l*L at its own interval")


def levels_table(found: Optimum, levels: Levels) -> Table:
    """Interval and n at the joint optimum, as given, by the rule and now."""
    objective = found.objective
    columns = (
        Column("at", "two tiers"),
        INTERVAL,
        Column("every", "n", "count", "every n-th save also goes to the second tier"),
        Column("period", "n x", "s", "training time between saves on the second tier"),
        *AMOUNTS,
        Column(
            "regret", "over", "share", f"{COSTS[objective]} over interval and n chosen together"
        ),
    )
    rows: list[dict[str, Any]] = [
        {
            "at": TWO[point.id],
            "interval": point.interval_s,
            "every": point.every,
            "period": point.interval_s * point.every,
            **row_of(point.outcome),
            "regret": regret_value(point.regrets[objective]),
        }
        for point in levels.points
    ]
    return Table(
        "levels",
        f"Two tiers{where_of(found)}: interval and every n-th save, best for {objective}",
        columns,
        rows,
    )


def rule_table(option: TierOption, levels: Levels) -> Table:
    """What the rule is told of each tier, and what it says."""
    columns = (
        *RULE,
        Column("nested", "nested", "s", "first-order interval of that multiple"),
        Column("least", "drain", "s", "time that filling it takes: no shorter interval can be"),
        WASTE,
    )
    tiers = (option.tier_id, str(option.resolved.words.get("second_tier.id", "second tier")))
    rows: list[dict[str, Any]] = [
        {
            "level": tier,
            "stall": levels.stalls_s[i],
            "mtbf": float(mtbf_s(levels.rates_per_s[i])),
            "alone": known_value(levels.rule_s[i]),
            "multiple": known_value(levels.rule.multiples[i]),
            "nested": known_value(levels.rule.base_s * levels.rule.multiples[i]),
            "least": levels.least_s[i],
            "waste": levels.wastes[i],
        }
        for i, tier in enumerate(tiers)
    ]
    note = f"first order, for time: {share(sum(levels.wastes))} wasted in all"
    return Table("rule", "The first-order rule for each tier by itself", columns, rows, note)


def two_tiers(levels: Levels, objective: str) -> list[str]:
    """The answer in a sentence."""
    if not levels.needed:
        return ["No failure needs the second tier: the first one's copies survive them all."]
    joint, given = levels.joint, next(point for point in levels.points if point.id == "given")
    nth = f"one save in {count(joint.second_every)}" if joint.second_every > 1 else "every save"
    said = f"Both chosen together: each {duration(joint.interval_s)}, {nth} to the second tier"
    if joint.second_every != given.every and math.isfinite(given.regrets[objective]):
        said += (
            f"; n = {count(given.every)} costs {share(given.regrets[objective])} more"
            f" {COSTS[objective]} at its best"
        )
    return [said + "." + (" The run would rather have none there." if joint.at_end else "")]
