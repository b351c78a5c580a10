"""The answer about several plans: which costs least and how sure that is, then tiers x counts."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from ckptcost.answer import Caution, Column, Say, Table
from ckptcost.plan import physics as ph
from ckptcost.plan.arrays import orelse
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.study import MEASURES, Study

SEEN = ("NEVER_FINISHES", "NO_HEADWAY")
"""what keeps a plan from working and what the table shows anyway"""


class Order(NamedTuple):
    """Cases from best to worst by a measure, those that do not work as they stand last."""

    measure: str
    rows: list[int]
    stops: dict[int, Caution]
    """why a case does not work"""

    @property
    def unfit(self) -> list[int]:
        """Cases that do not work although their numbers look as if they did."""
        return [row for row, stop in self.stops.items() if stop.code not in SEEN]


def order_of(study: Study) -> Order:
    """By dollars if they are known, without rent if it is charged in different ways; or by time."""
    measure = "cost_apart" if ranks.unlike(study) else "cost"
    if not np.any(np.isfinite(study.of(measure)[:, 0])):
        measure = "goodput"
    return Order(measure, *ranks.ranking(study, measure, len(study.names)))


def count_of(scenario: Scenario) -> float | None:
    """The number of saves that was asked for."""
    figure = scenario.said["policy"].get("saves")
    return figure.value if isinstance(figure, Figure) else None


def tier_in(study: Study, row: int) -> str:
    """What a case is called without its number of saves."""
    counted = count_of(study.scenarios[row])
    return re.sub(r", [0-9,]+ saves?$", "", study.names[row]) if counted else study.names[row]


def case(study: Study, row: int) -> str:
    count = count_of(study.scenarios[row])
    return tier_in(study, row) + (f" with {count:,g} saves" if count else "")


def tiers(study: Study) -> dict[str, int]:
    """By tier: its first case."""
    rows = reversed(range(len(study.names)))
    return dict(reversed({tier_in(study, row): row for row in rows}.items()))


def about(study: Study) -> str:
    """What all cases share."""
    run, saves = one.shared(study, "gpus", "work", "mtbf"), one.shared(study, "mode", "every", "to")
    return "; ".join([", ".join(run), *([f"saves: {', '.join(saves)}"] if saves else [])])


# --- what to take ---------------------------------------------------------------------------------

BEST = {
    "goodput": ("Most useful training", "It leaves more useful training than"),
    "cost": ("Least cost", "It costs less than"),
    "cost_apart": ("Least cost before rent", "Before rent it costs less than"),
}


def says(study: Study, order: Order) -> list[Say]:
    """The choice, and what it may not rest on."""
    return [*choice(study, order), *not_ranked(study), *ranks.unlike(study)]


def choice(study: Study, order: Order) -> list[Say]:
    """Which case is best, and how sure that is."""
    eligible = [row for row in order.rows if row not in order.stops]
    if not eligible:
        return [Say("None of these plans works as it stands.")]
    best, *others = eligible
    if study.limit_unknown(best):
        return [Say("No tier here can be recommended: the limits of all are unknown.")]
    least, beats = BEST[order.measure]
    known = [row for row in others if not study.limit_unknown(row)]
    among = " of tiers whose limit is known" if len(known) < len(others) else ""
    cost = study.say(order.measure, best, ranged=True)
    found = [Say(f"{least}{among}: {case(study, best)}, {cost}.")]
    if known:
        sure = study.better(order.measure, best, known[0])
        found.append(Say(f"{beats} the next, {case(study, known[0])}, {sure.say()}."))
    if order.unfit:
        names = q.and_join([*dict.fromkeys(tier_in(study, row) for row in order.unfit)])
        words = "Left out, because it does not work as it stands (see below)"
        found.append(Say(f"{words}: {names}."))
    return found


def not_ranked(study: Study) -> list[Say]:
    """Tiers whose limit nobody has measured, with the key that would give it."""
    found = [name for name, row in tiers(study).items() if study.limit_unknown(row)]
    if not found:
        return []
    are = "is" if len(found) == 1 else "are"
    words = (
        f"* {q.and_join(found)} {are} not ranked: nobody has measured such a rate there, and the"
        " limit of the whole system is not known. If you know it:"
    )
    return [Say(words, "", f"--tier {found[0]} {one.LIMIT}")]


# --- tables ---------------------------------------------------------------------------------------


def called(study: Study, row: int) -> str:
    """A tier; with a star if its limit was not measured."""
    return tier_in(study, row) + (" *" if study.limit_unknown(row) else "")


def one_table(study: Study) -> Table:
    """One checkpoint on each tier."""
    bill, rate = one.one_save(study), ph.rate(study.w, study.w.tier, "write")
    parts = [orelse(bill.lines[line]["energy"], 0.0) for line in ("storage_write", "network")]
    alone = one.by_case(study, sum(parts))
    takes = {name: one.by_case(study, bill.total(name)) for name in ("energy", "gpu_time", "cost")}
    columns = [
        Column("tier", ""),
        Column("write", "writes at", "B/s"),
        Column("stall", "waits", "s"),
        Column("safe", "safe after", "s"),
        Column("energy", "kWh", "kWh"),
        Column("storage", "storage", "kWh", "ends"),
        Column("gpu_time", "GPU-h", "GPU-h"),
        Column("cost", "USD", "USD"),
    ]
    if not np.any(study.of("safe") > study.of("stall")):
        del columns[3]
    rows: list[list[Any]] = []
    for row in tiers(study).values():
        cells: dict[str, Any] = {name: ranges[row] for name, ranges in takes.items()}
        cells |= {name: study.value(name, row) for name in ("stall", "safe")}
        cells |= {"tier": called(study, row), "write": study.stated_of(rate, row)}
        cells["storage"] = alone[row]
        rows.append([cells[column.key] for column in columns])
    size = one.facts(study, 0)["size"].removesuffix(" each")
    shares = [a.value / e.value for a, e in zip(alone, takes["energy"], strict=True) if e.value > 0]
    note = waiting(study) if max(shares, default=1.0) <= 0.1 else ""
    return Table("one", f"One checkpoint, {size}", columns, rows, note)


def waiting(study: Study) -> str:
    """That nearly all energy of a save is not that of the storage."""
    gpus = study.stated_of(study.w.cluster.gpus, 0)
    words = f"Nearly all of the energy is {gpus:,.0f} GPUs and their hosts waiting."
    published = {"write_energy", "active_power"}
    if any(published & each.said["tier"].keys() for each in study.scenarios):
        return words
    return f"{words} What the storage itself uses is estimated: no vendor here publishes watts."


RUN = {
    "goodput": ("useful", "value"),
    "gpu_time": ("GPU-h", "value"),
    "energy": ("kWh", "value"),
    "cost": ("USD", "range"),
}
"""what a person sees of each run"""


def run_table(study: Study) -> Table:
    """The whole run on each tier at each count; without numbers if it never finishes."""
    counts = [count_of(scenario) for scenario in study.scenarios]
    columns = [Column("tier", ""), Column("saves", "saves", "count")]
    columns += [Column(m, header, MEASURES[m].unit, how) for m, (header, how) in RUN.items()]
    rows: list[list[Any]] = []
    for row, count in enumerate(counts):
        cells: list[Any] = [study.range(measure, row) for measure in RUN]
        if one.never(study, row):
            cells = [None, None, None, "never finishes"]
        rows.append([called(study, row), count, *cells])
    if not any(counts):
        columns, rows = [columns[0], *columns[2:]], [[row[0], *row[2:]] for row in rows]
    return Table("runs", "Added to the run", columns, rows)
