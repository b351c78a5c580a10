"""What `optimize` found, as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckptcost.core.failures import mtbf_s
from ckptcost.core.measures import saves_per_day
from ckptcost.core.outcome import HOPELESS_GOODPUT, makes_headway
from ckptcost.core.regret import OBJECTIVES, WITHIN, cost_of
from ckptcost.core.robust import MOST_CORNERS
from ckptcost.core.size import full_bytes
from ckptcost.jobs.compare import SURE, Order
from ckptcost.jobs.gates import Gate
from ckptcost.jobs.optimize import Candidates, Optimum, Point, name_of
from ckptcost.present.amounts import count, duration, number, share, size
from ckptcost.present.words import caution_text, light_word, line_label, rule_text
from ckptcost.report.rows import excludes_of
from ckptcost.report.studies.optimize_levels import levels_table, rule_table, two_tiers
from ckptcost.report.studies.run_columns import (
    AMOUNTS,
    COSTS,
    INTERVAL,
    amounts_of,
    duration_in_two_digits,
    known_value,
    regret_value,
    row_of,
    share_of_draws,
    stay,
    two_digits,
    where_of,
)
from ckptcost.report.study import Column, Study, Table

_BETWEEN = 2
"""points shown between the ends of one tier and mode, those that are somebody's optimum not
counted"""


def front_tables(found: Optimum) -> list[Table]:
    """`front_ends` is shown where tiers or modes are compared; `front` and `candidates` are for
    JSON and CSV."""
    columns = (
        Column("tier", "tier"),
        Column("mode", "mode"),
        Column("best_for", "best for", "", "the objective whose optimum it is"),
        INTERVAL,
        *AMOUNTS,
    )
    judged = Column(
        "on_front",
        "on the front",
        "bool",
        "no other candidate is at least as good in everything and better in something",
    )
    all_rows = [_rows(each, amounts_of(each.outcome)) for each in found.front.candidates]
    on_front = [[row for row in rows if row["on_front"]] for rows in all_rows]
    over = ", ".join("goodput" if each == "time" else each for each in found.front.objectives)
    note = f"left out: {', '.join(found.front.left_out)}" if found.front.left_out else ""
    title = f"The front over {over}: nothing beats these in all of them"
    bare = (
        tuple(column._replace(shown=column.shown and column.id != "mode") for column in columns)
        if _one_mode(found)
        else columns
    )
    return [
        Table(
            "front_ends",
            title,
            bare,
            [row for rows in on_front for row in _thin_rows(rows)],
            note,
            shown=len(found.options) > 1,
        ),
        Table(
            "front", title, columns, [row for rows in on_front for row in rows], note, shown=False
        ),
        Table(
            "candidates",
            "Every point that was held against the others",
            (*columns, judged),
            [row for rows in all_rows for row in rows],
            shown=False,
        ),
    ]


def _one_mode(found: Optimum) -> bool:
    return len({option.mode for option in found.options}) == 1


def _rows(each: Candidates, amounts: dict[str, Any]) -> list[dict[str, Any]]:
    """By interval, the shortest first; the marks are the compared objectives only."""
    length = len(each.interval_s)
    wide = {
        name: np.broadcast_to(np.asarray(value, dtype=float), (length,)).tolist()
        for name, value in amounts.items()
    }
    return [
        {
            "tier": each.option.tier_id,
            "mode": each.option.mode,
            "best_for": " ".join(each.best_for[i]),
            "interval": float(each.interval_s[i]),
            **{
                name: None if values[i] != values[i] else values[i] for name, values in wide.items()
            },
            "on_front": bool(each.on_front[i]),
        }
        for i in range(length)
    ]


def _thin_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Both ends, every optimum, and a few between."""
    if not rows:
        return []
    kept = {0, len(rows) - 1, *(i for i, row in enumerate(rows) if row["best_for"])}
    kept |= {round(i * (len(rows) - 1) / (_BETWEEN + 1)) for i in range(1, _BETWEEN + 1)}
    return [rows[i] for i in sorted(kept)]


NAMES = {"robust": "robust interval", "young": "Young's rule", "daly": "Daly's rule", "now": "now"}
WORTH_SAYING = 1e-4
"""a regret below 0.01 % is left to the table"""


def study_of(found: Optimum, gates: Sequence[Gate] = ()) -> Study:
    """The answer as a study."""
    option = found.option
    tables = [_intervals(found), _regrets(found)]
    if found.robust.movers:
        tables += _over_the_ranges(found)
    if len(found.options) > 1:
        tables.append(_options(found))
    if found.levels is not None:
        tables += [levels_table(found, found.levels), rule_table(option, found.levels)]
    tables += [*front_tables(found), _curve(found)]
    return Study(
        "optimum",
        f"How often to save: {option.resolved.name or 'scenario'}",
        _about(found),
        {
            "objective": found.objective,
            "tiers": list(dict.fromkeys(each.tier_id for each in found.options)),
            "modes": list(dict.fromkeys(each.mode for each in found.options)),
            "within": WITHIN,
            "draws": found.robust.draws,
            "targets": [gate.text for gate in gates],
        },
        tables,
        _findings(found),
        [(caution.code, caution_text(caution)) for caution in found.cautions],
        found.verdicts,
        [each.resolved for each in found.options],
    )


def _at(point_id: str) -> str:
    return NAMES.get(point_id) or f"best for {point_id}"


def _points(found: Optimum) -> list[tuple[str, Point | None]]:
    """Every objective's row, known or not, then the rules and what is now."""
    by_id = {point.id: point for point in found.points}
    rows = [
        (_at(each), by_id.get(each))
        for each in (*OBJECTIVES, *NAMES)
        if each in OBJECTIVES or each in by_id
    ]
    return [
        (f"now: {name_of(found.today)}" if label == "now" and _elsewhere(found) else label, point)
        for label, point in rows
    ]


def _about(found: Optimum) -> list[str]:
    s, plan = found.option.scenario, found.option.plan
    where = ", ".join(dict.fromkeys(each.tier_id for each in found.options))
    modes = " and ".join(dict.fromkeys(each.mode for each in found.options))
    return [
        f"{size(float(full_bytes(s.checkpoint)))} a save, {count(float(s.cluster.gpus))} GPUs,"
        f" {duration(float(s.work_s))} of training, a failure every"
        f" {duration(float(mtbf_s(plan.failures_per_s)))}; on {where}, {modes}; objective:"
        f" {found.objective}"
    ]


def _intervals(found: Optimum) -> Table:
    columns = (
        Column("at", "saving at"),
        INTERVAL,
        Column("saves_per_day", "saves/day", "count", "saves in a day without failures"),
        *AMOUNTS,
    )
    rows: list[dict[str, Any]] = []
    for label, point in _points(found):
        row: dict[str, Any] = {"at": label}
        if point is not None:
            row |= {
                "interval": point.interval_s,
                "saves_per_day": known_value(saves_per_day(point.outcome)),
                **row_of(point.outcome),
            }
        rows.append(row)
    note = "saves/day: while nothing fails; kgCO2e: location-based"
    if any(label.startswith("now") for label, _ in _points(found)):
        note = f"now: the scenario as it stands; {note}"
    unknown = excludes_of(found.recommended.outcome)
    unknown.pop("emissions", None)
    if unknown:
        missing = "; ".join(
            f"{what}: {', '.join(line_label(line) for line in lines)}"
            for what, lines in unknown.items()
        )
        note += f"; left out because unknown: {missing}"
    return Table("intervals", f"The run at each interval{where_of(found)}", columns, rows, note)


def _regrets(found: Optimum) -> Table:
    columns = (
        Column("at", "saving at"),
        INTERVAL,
        *(
            Column(f"regret_{each}", each, "share", f"{COSTS[each]} over its own least")
            for each in OBJECTIVES
        ),
        Column(
            "plateau_low", "from", "s", "shortest interval whose cost is within 1 % of the least"
        ),
        Column("plateau_high", "to", "s", "longest such interval"),
        Column(
            "low_is_bound",
            "low is a bound",
            "bool",
            "still within at the shortest interval there is",
            shown=False,
        ),
        Column(
            "high_is_bound",
            "high is a bound",
            "bool",
            "still within when the run has one save",
            shown=False,
        ),
    )
    rows: list[dict[str, Any]] = []
    for label, point in _points(found):
        row: dict[str, Any] = {"at": label}
        if point is not None:
            row |= {
                "interval": point.interval_s,
                **{f"regret_{o}": regret_value(value) for o, value in point.regrets.items()},
            }
            if ends := found.plateaus.get(point.id):
                row |= {
                    "plateau_low": known_value(ends.low_s),
                    "plateau_high": known_value(ends.high_s),
                }
                row |= {"low_is_bound": ends.low_is_bound, "high_is_bound": ends.high_is_bound}
        rows.append(row)
    note = (
        "time: of the run's wall time; the others: of what checkpoints and failures add. from-to:"
        " within 1 % of the least"
    )
    return Table(
        "regret",
        f"Regret: what that interval costs over the objective's own best{where_of(found)}",
        columns,
        rows,
        note,
    )


def _over_the_ranges(found: Optimum) -> list[Table]:
    """What each interval risks, and where the best one may lie."""
    robust = found.robust
    columns = (
        Column("at", "saving at"),
        INTERVAL,
        Column("mean_regret", "mean regret", "share", "mean over draws from the inputs' ranges"),
        Column("worst_regret", "at worst", "share", "largest regret in any corner of the ranges"),
        Column("best_low", "best from", "s", "5th percentile of the best interval over the draws"),
        Column("best_high", "to", "s", "95th percentile"),
    )
    rows: list[dict[str, Any]] = [
        {
            "at": "robust interval",
            "interval": robust.interval_s,
            **_risks(found, robust.interval_s),
            "best_low": robust.low_s,
            "best_high": robust.high_s,
        }
    ]
    rows += [
        {"at": label, "interval": point.interval_s, **_risks(found, point.interval_s)}
        for label, point in _points(found)
        if point is not None
        and point.id in (found.objective, "young", "daly", "now")
        and not (point.id == "now" and _elsewhere(found))
    ]
    note = (
        f"regret: {COSTS[found.objective]} over each world's own least; {count(robust.draws)}"
        f" draws, {robust.corners} corners of {', '.join(movers_of(found)[:MOST_CORNERS])}"
    )
    full = Table(
        "robust",
        f"Over the ranges of the inputs{where_of(found)}",
        columns,
        rows,
        note,
        shown=False,
    )
    few = [
        row
        | {"mean_regret": two_digits(row["mean_regret"])}
        | {end: duration_in_two_digits(row[end]) for end in ("best_low", "best_high") if end in row}
        for row in rows
    ]
    return [full, full._replace(id="robust_digits", rows=few, shown=True)]


def _risks(found: Optimum, interval_s: float) -> dict[str, float | None]:
    robust = found.robust
    return {
        "mean_regret": regret_value(robust.mean_at(interval_s)),
        "worst_regret": regret_value(robust.worst_at(interval_s)),
    }


def option_columns(objective: str) -> tuple[Column, ...]:
    """Of the table of tiers and modes."""
    return (
        Column("tier", "tier"),
        Column("mode", "mode"),
        INTERVAL,
        *AMOUNTS,
        Column("over", "over best", "share", f"{COSTS[objective]} over the best tier and mode"),
        Column(
            "cheaper",
            "best less in",
            "share",
            "share of draws from the inputs' ranges in which the best costs less than this; unknown"
            " where nothing tells them apart",
        ),
    )


def _options(found: Optimum) -> Table:
    objective = found.objective
    least = float(cost_of(found.best.outcome, objective))
    rows: list[dict[str, Any]] = []
    for i, option in enumerate(found.options):
        row: dict[str, Any] = {"tier": option.tier_id, "mode": option.mode}
        if objective in option.known:
            outcome = option.at(option.best[objective])
            over = float(cost_of(outcome, objective)) / least - 1.0
            row |= {
                "interval": option.best[objective],
                **row_of(outcome),
                "over": known_value(over),
                "cheaper": _share_cheaper(found.order, i),
            }
        rows.append(row)
    note = "; ".join(
        f"{COSTS[each]} cannot be held against each other: {' and '.join(keys)} is known for some"
        " only"
        for each, keys in found.undecided.items()
    )
    title = f"Each tier and mode at its own best for {objective}"
    return Table("options", title, option_columns(objective), rows, note)


def _share_cheaper(order: Order | None, at: int) -> float | None:
    if order is None or order.cheaper[at] != order.cheaper[at]:
        return None
    return share_of_draws(order.cheaper[at])


def _curve(found: Optimum) -> Table:
    columns = (
        INTERVAL,
        *AMOUNTS,
        *(
            Column(f"regret_{each}", f"regret {each}", "share", f"{COSTS[each]} over its least")
            for each in OBJECTIVES
        ),
    )
    values = amounts_of(found.curve.outcome) | {
        f"regret_{o}": value for o, value in found.curve.regrets.items()
    }
    rows: list[dict[str, Any]] = []
    for i, interval_s in enumerate(found.curve.interval_s.tolist()):
        here = {
            name: value if isinstance(value, float) else float(value[i])
            for name, value in values.items()
        }
        rows.append(
            {"interval": interval_s, **{name: known_value(value) for name, value in here.items()}}
        )
    return Table(
        "curve",
        f"The run over intervals around the best for {found.objective}{where_of(found)}",
        columns,
        rows,
        shown=False,
    )


def _elsewhere(found: Optimum) -> str:
    """Where the scenario saves today, if that is not what is recommended."""
    return "" if name_of(found.today) == name_of(found.option) else f" ({name_of(found.today)})"


def _findings(found: Optimum) -> list[str]:
    best, objective = found.recommended, found.objective
    row = row_of(best.outcome)
    amounts = [f"goodput {share(row['goodput'])}"]
    amounts += [
        f"{number(row[name])} {unit}"
        for name, unit in (("energy", "kWh"), ("cost", "USD"), ("carbon", "kgCO2e"))
        if row[name] is not None
    ]
    often = (
        f"save every {duration(best.interval_s)} ({count(float(saves_per_day(best.outcome)))} a"
        " day)"
    )
    hopeless = not best.outcome.goodput >= HOPELESS_GOODPUT
    if hopeless:
        amounts = ["even so the run would all but never finish"]
    robust = found.robust
    lead = "Robust" if robust.moves else "Best"
    out = [f"{lead} for {objective}{where_of(found)}: {often}: {', '.join(amounts)}."]
    if not hopeless:
        out += how_sure(found)
    if robust.moves and not hopeless:
        out += advice(found)
    now = next((point for point in found.points if point.id == "now"), None)
    if now is not None and not hopeless:
        out.append(as_it_stands(found, now))
    ends = found.plateaus[objective]
    if ends.low_s == ends.low_s and not hopeless:
        out.append(
            f"From {duration(ends.low_s)} to {duration(ends.high_s)} the {COSTS[objective]}"
            f" {stay(objective)} within 1 % of the"
            f" least{' at the stated values' if robust.moves else ''}."
        )
    cheaper = [o for o, value in found.never.items() if value < 0]
    if cheaper:
        out.append(
            f"Not saving at all costs less ({', '.join(cheaper)}): the run is short beside the time"
            " between failures."
        )
    out.append(rules_line(found))
    if found.levels is not None:
        out += two_tiers(found.levels, objective)
    return out + _unknown(found)


def as_it_stands(found: Optimum, now: Point) -> str:
    """What the scenario's own interval costs over the best."""
    lead = f"As the scenario stands{_elsewhere(found)}: every {duration(now.interval_s)}"
    if not makes_headway(now.outcome):
        return (
            f"{lead} the run makes next to no headway (goodput"
            f" {share(float(now.outcome.goodput))}): nothing is counted as saved against it."
        )
    more = [
        f"{share(value)} more {COSTS[o]}"
        for o, value in now.regrets.items()
        if value >= WORTH_SAYING
    ]
    if more:
        return f"{lead}, {', '.join(more)} than at the best of each."
    return (
        f"{lead}, within {share(WORTH_SAYING)} of the least for every objective: "
        "between these two the interval hardly matters."
    )


def rules_line(found: Optimum) -> str:
    """The textbook's intervals, and what Daly's costs over the best one, with the light of that."""
    classic = found.classic
    young_s, daly_s = float(classic.young_interval_s), float(classic.daly_interval_s)
    text = f"First-order rules: Young {duration(young_s)}, Daly {duration(daly_s)}; Daly's interval"
    light = light_word(classic.interval_light)
    text += f" {rule_text(float(classic.daly_regret), COSTS[found.objective], light)}."
    drain_s = float(found.option.plan.saved.lag_s)
    if found.option.best[found.objective] > 1.01 * young_s and drain_s > young_s:
        text += f" They do not know that a save takes {duration(drain_s)} to drain."
    return text


def how_sure(found: Optimum) -> list[str]:
    """Whether the ranges of the inputs leave room for another order."""
    objective, first, order = found.objective, name_of(found.option), found.order
    if order is None:
        return []
    doubted = [
        f"{name_of(found.options[i])} in {share(share_of_draws(order.cheaper[i]))}"
        for i in order.at[1:]
        if order.cheaper[i] < SURE
    ]
    alike = [name_of(found.options[i]) for i in order.alike]
    said = (
        [
            f"With these inputs nothing tells {first} from {', '.join(alike)}: "
            f"the same {COSTS[objective]} in every draw."
        ]
        if alike
        else []
    )
    if not doubted:
        return said
    return [
        *said,
        (
            f"The order is not sure: {first} has less {COSTS[objective]} than"
            f" {', than '.join(doubted)} of draws from the ranges of the inputs."
        ),
    ]


def advice(found: Optimum) -> list[str]:
    """Why the robust interval is advised, and what it risks; nothing where the best one is certain
    enough."""
    robust, best_s = found.robust, found.best.interval_s
    if not robust.moves:
        return []
    cost = COSTS[found.objective]
    return [
        (
            f"The best interval is uncertain: {duration(best_s)} at the stated values,"
            f" {duration(duration_in_two_digits(robust.low_s))} to"
            f" {duration(duration_in_two_digits(robust.high_s))} inside the ranges of the inputs"
            f" (p5-p95), most of all by {' and '.join(movers_of(found)[:2])}."
        ),
        (
            f"The robust interval, {duration(robust.interval_s)}, costs least on average over those"
            f" ranges: {share(two_digits(robust.regret))} more {cost} than the best of each case,"
            f" {share(robust.worst)} in the worst corner; {duration(best_s)} would cost"
            f" {share(two_digits(robust.mean_at(best_s)))} more, {share(robust.worst_at(best_s))}"
            " in the worst."
        ),
    ]


def movers_of(found: Optimum) -> list[str]:
    """Inputs that move the best interval, as a file calls them."""
    paths = {each.field: each.path for each in found.option.resolved.inputs}
    return [paths.get(field, field) for field in found.robust.movers]


def _unknown(found: Optimum) -> list[str]:
    """Why an objective has dashes, and who is kept apart for it."""
    out = []
    for objective in OBJECTIVES:
        lacking = [option for option in found.options if objective not in option.known]
        if not lacking:
            continue
        keys = (
            ", ".join(dict.fromkeys(key for option in lacking for key in option.lacking[objective]))
            or "a save that costs something"
        )
        if len(lacking) == len(found.options):
            out.append(
                f"No best interval for {objective}: {keys} not known. It is left out of the front."
            )
        else:
            names = "; ".join(name_of(option) for option in lacking)
            out.append(
                f"Kept apart from the front, because {objective} is not known ({keys}): {names}."
            )
    return out
