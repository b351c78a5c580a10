"""What `optimize` found, as tables and sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ckptcost.first.core.failures import mtbf_s
from ckptcost.first.core.measures import saves_per_day
from ckptcost.first.core.outcome import HOPELESS_GOODPUT, makes_headway
from ckptcost.first.core.regret import OBJECTIVES, WITHIN, cost_of
from ckptcost.first.core.robust import MOST_CORNERS
from ckptcost.first.core.size import full_bytes
from ckptcost.first.jobs.compare import SURE, Order
from ckptcost.first.jobs.gates import Gate
from ckptcost.first.jobs.optimize import Candidates, Optimum, Point, name_of
from ckptcost.first.present.amounts import count, duration, number, share, size
from ckptcost.first.present.words import caution_text, light_word, line_label, rule_text
from ckptcost.first.report.rows import excludes_of
from ckptcost.first.report.studies.optimize_levels import levels_table, rule_table, two_tiers
from ckptcost.first.report.studies.run_columns import (
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
from ckptcost.first.report.study import Column, Study, Table, hidden, named

_BETWEEN = 2
"""points shown between the ends of one tier and mode, those that are somebody's optimum not
counted"""


_FRONT = (
    *named("tier", "mode"),
    Column("best_for", "best for", "", "the objective whose optimum it is"),
    INTERVAL,
    *AMOUNTS,
)
_FRONT_OF_ONE_MODE = tuple(
    each._replace(shown=False) if each.id == "mode" else each for each in _FRONT
)
_JUDGED = Column(
    "on_front",
    "on the front",
    "bool",
    "no other candidate is at least as good in everything and better in something",
)


def front_tables(found: Optimum) -> list[Table]:
    """`front_ends` is shown where tiers or modes are compared; `front` and `candidates` are for
    JSON and CSV."""
    everyone = [_rows(each, amounts_of(each.outcome)) for each in found.front.candidates]
    on_front = [[row for row in rows if row["on_front"]] for rows in everyone]
    over = ", ".join("goodput" if each == "time" else each for each in found.front.objectives)
    note = f"left out: {', '.join(found.front.left_out)}" if found.front.left_out else ""
    title = f"The front over {over}: nothing beats these in all of them"
    one_mode = len({option.mode for option in found.options}) == 1
    bare = _FRONT_OF_ONE_MODE if one_mode else _FRONT
    few = list(chain.from_iterable(map(_thin_rows, on_front)))
    front = Table("front", title, _FRONT, list(chain.from_iterable(on_front)), note, shown=False)
    return [
        front._replace(id="front_ends", columns=bare, rows=few, shown=len(found.options) > 1),
        front,
        Table(
            "candidates",
            "Every point that was held against the others",
            (*_FRONT, _JUDGED),
            list(chain.from_iterable(everyone)),
            shown=False,
        ),
    ]


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
            **{name: known_value(values[i]) for name, values in wide.items()},
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


def _points(found: Optimum) -> list[tuple[str, Point | None]]:
    """Every objective's row, known or not, then the rules and what is now."""
    by_id = {point.id: point for point in found.points}
    rows = [
        (NAMES.get(each) or f"best for {each}", by_id.get(each))
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


def _by_point(found: Optimum, cells: Callable[[Point], dict[str, Any]]) -> list[dict[str, Any]]:
    """A row of each point: its interval and those cells, or nothing where there is no such
    point."""
    return [
        {"at": label} | ({} if point is None else {"interval": point.interval_s, **cells(point)})
        for label, point in _points(found)
    ]


def _intervals(found: Optimum) -> Table:
    columns = (
        Column("at", "saving at"),
        INTERVAL,
        Column("saves_per_day", "saves/day", "count", "saves in a day without failures"),
        *AMOUNTS,
    )
    rows = _by_point(
        found,
        lambda point: {
            "saves_per_day": known_value(saves_per_day(point.outcome)),
            **row_of(point.outcome),
        },
    )
    note = "saves/day: while nothing fails; kgCO2e: location-based"
    if any(label.startswith("now") for label, _ in _points(found)):
        note = f"now: the scenario as it stands; {note}"
    unknown = excludes_of(found.recommended.outcome)
    unknown.pop("emissions", None)
    if unknown:
        missing = "; ".join(
            f"{what}: {', '.join(map(line_label, lines))}" for what, lines in unknown.items()
        )
        note += f"; left out because unknown: {missing}"
    return Table("intervals", f"The run at each interval{where_of(found)}", columns, rows, note)


_REGRETS = (
    Column("at", "saving at"),
    INTERVAL,
    *(
        Column(f"regret_{each}", each, "share", f"{COSTS[each]} over its own least")
        for each in OBJECTIVES
    ),
    Column("plateau_low", "from", "s", "shortest interval whose cost is within 1 % of the least"),
    Column("plateau_high", "to", "s", "longest such interval"),
    *hidden(
        Column(
            "low_is_bound",
            "low is a bound",
            "bool",
            "still within at the shortest interval there is",
        ),
        Column(
            "high_is_bound", "high is a bound", "bool", "still within when the run has one save"
        ),
    ),
)


def _regrets(found: Optimum) -> Table:
    note = (
        "time: of the run's wall time; the others: of what checkpoints and failures add. from-to:"
        " within 1 % of the least"
    )
    title = f"Regret: what that interval costs over the objective's own best{where_of(found)}"
    rows = _by_point(found, lambda point: _regret_cells(found, point))
    return Table("regret", title, _REGRETS, rows, note)


def _regret_cells(found: Optimum, point: Point) -> dict[str, Any]:
    cells: dict[str, Any] = {
        f"regret_{o}": regret_value(value) for o, value in point.regrets.items()
    }
    if ends := found.plateaus.get(point.id):
        cells |= {
            "plateau_low": known_value(ends.low_s),
            "plateau_high": known_value(ends.high_s),
            "low_is_bound": ends.low_is_bound,
            "high_is_bound": ends.high_is_bound,
        }
    return cells


_RISKS = (
    Column("at", "saving at"),
    INTERVAL,
    Column("mean_regret", "mean regret", "share", "mean over draws from the inputs' ranges"),
    Column("worst_regret", "at worst", "share", "largest regret in any corner of the ranges"),
    Column("best_low", "best from", "s", "5th percentile of the best interval over the draws"),
    Column("best_high", "to", "s", "95th percentile"),
)


def _over_the_ranges(found: Optimum) -> list[Table]:
    """What each interval risks, and where the best one may lie."""
    robust = found.robust
    rows: list[dict[str, Any]] = [
        {
            "at": "robust interval",
            **_risks(found, robust.interval_s),
            "best_low": robust.low_s,
            "best_high": robust.high_s,
        }
    ]
    told = [found.objective, "young", "daly", *([] if _elsewhere(found) else ["now"])]
    rows += [
        {"at": label, **_risks(found, point.interval_s)}
        for label, point in _points(found)
        if point is not None and point.id in told
    ]
    note = (
        f"regret: {COSTS[found.objective]} over each world's own least; {count(robust.draws)}"
        f" draws, {robust.corners} corners of {', '.join(movers_of(found)[:MOST_CORNERS])}"
    )
    title = f"Over the ranges of the inputs{where_of(found)}"
    full = Table("robust", title, _RISKS, rows, note, shown=False)
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
        "interval": interval_s,
        "mean_regret": regret_value(robust.mean_at(interval_s)),
        "worst_regret": regret_value(robust.worst_at(interval_s)),
    }


def option_columns(objective: str) -> tuple[Column, ...]:
    """Of the table of tiers and modes."""
    return (
        *named("tier", "mode"),
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
    of = found.curve
    values = amounts_of(of.outcome) | {f"regret_{o}": value for o, value in of.regrets.items()}
    wide = {name: np.broadcast_to(each, of.interval_s.shape) for name, each in values.items()}
    rows = [
        {"interval": interval_s, **{name: known_value(each[i]) for name, each in wide.items()}}
        for i, interval_s in enumerate(of.interval_s.tolist())
    ]
    title = f"The run over intervals around the best for {found.objective}{where_of(found)}"
    return Table("curve", title, columns, rows, shown=False)


def _elsewhere(found: Optimum) -> str:
    """Where the scenario saves today, if that is not what is recommended."""
    return "" if name_of(found.today) == name_of(found.option) else f" ({name_of(found.today)})"


def _findings(found: Optimum) -> list[str]:
    lead = "Robust" if found.robust.moves else "Best"
    often, best = _frequency_text(found), found.recommended
    head = f"{lead} for {found.objective}{where_of(found)}: {often}"
    if best.outcome.goodput >= HOPELESS_GOODPUT:
        told = [f"{head}: {_amounts_text(best)}.", *_how_good(found)]
    else:
        told = [f"{head}: even so the run would all but never finish."]
    cheaper = [o for o, value in found.never.items() if value < 0]
    if cheaper:
        told.append(
            f"Not saving at all costs less ({', '.join(cheaper)}): the run is short beside the time"
            " between failures."
        )
    told.append(rules_line(found))
    if found.levels is not None:
        told += two_tiers(found.levels, found.objective)
    return told + _unknown(found)


def _frequency_text(found: Optimum) -> str:
    best = found.recommended
    each = duration(best.interval_s)
    return f"save every {each} ({count(float(saves_per_day(best.outcome)))} a day)"


def _amounts_text(best: Point) -> str:
    row = row_of(best.outcome)
    units = {"energy": "kWh", "cost": "USD", "carbon": "kgCO2e"}
    amounts = [
        f"{number(row[name])} {unit}" for name, unit in units.items() if row[name] is not None
    ]
    return ", ".join([f"goodput {share(row['goodput'])}", *amounts])


def _how_good(found: Optimum) -> list[str]:
    """How sure that is, what the interval of today costs, and how far others are as good."""
    now = [as_it_stands(found, point) for point in found.points if point.id == "now"]
    told = [*how_sure(found), *advice(found), *now[:1]]
    ends = found.plateaus[found.objective]
    if ends.low_s == ends.low_s:
        stated = " at the stated values" if found.robust.moves else ""
        told.append(
            f"From {duration(ends.low_s)} to {duration(ends.high_s)} the {COSTS[found.objective]}"
            f" {stay(found.objective)} within 1 % of the least{stated}."
        )
    return told


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
    first, order, cost = name_of(found.option), found.order, COSTS[found.objective]
    if order is None:
        return []
    said = []
    if order.alike:
        alike = ", ".join(name_of(found.options[i]) for i in order.alike)
        said.append(
            f"With these inputs nothing tells {first} from {alike}: the same {cost} in every draw."
        )
    doubted = [
        f"{name_of(found.options[i])} in {share(share_of_draws(order.cheaper[i]))}"
        for i in order.at[1:]
        if order.cheaper[i] < SURE
    ]
    if doubted:
        said.append(
            f"The order is not sure: {first} has less {cost} than {', than '.join(doubted)} of"
            " draws from the ranges of the inputs."
        )
    return said


def advice(found: Optimum) -> list[str]:
    """Why the robust interval is advised, and what it risks; nothing where the best one is certain
    enough."""
    robust, best_s = found.robust, found.best.interval_s
    if not robust.moves:
        return []
    low, high = (duration(duration_in_two_digits(end_s)) for end_s in (robust.low_s, robust.high_s))
    return [
        (
            f"The best interval is uncertain: {duration(best_s)} at the stated values, {low} to"
            f" {high} inside the ranges of the inputs (p5-p95), most of all by"
            f" {' and '.join(movers_of(found)[:2])}."
        ),
        (
            f"The robust interval, {duration(robust.interval_s)}, costs least on average over those"
            f" ranges: {share(two_digits(robust.regret))} more {COSTS[found.objective]} than the"
            f" best of each case, {share(robust.worst)} in the worst corner; {duration(best_s)}"
            f" would cost {share(two_digits(robust.mean_at(best_s)))} more,"
            f" {share(robust.worst_at(best_s))} in the worst."
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
