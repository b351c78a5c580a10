"""The answer about several plans: which costs least and how sure that is, then tiers x counts."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from ckptcost.answer import Caution, Column, Plot, Say, Table
from ckptcost.plan import physics as ph
from ckptcost.plan.arrays import orelse
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.study import AHEAD, MEASURES, Study

SEEN = ("NEVER_FINISHES", "NO_HEADWAY")
"""what keeps a plan from working and what the table shows anyway"""
COUNTED = re.compile(r", ([0-9,]+ saves?)$")
"""the number of saves at the end of a case's name"""


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
    measure, count = ranks.dollars(study), len(study.names)
    found = Order(measure, *ranks.ranking(study, measure, count))
    if np.any(np.isfinite(study.of(measure)[:, 0])):
        return found
    return Order("goodput", *ranks.ranking(study, "goodput", count))


def tiers(study: Study) -> dict[str, int]:
    """By tier: its first case."""
    found = dict[str, int]()
    for row, name in enumerate(study.names):
        found.setdefault(COUNTED.sub("", name), row)
    return found


def about(study: Study) -> str:
    """What all cases share."""
    run, saves = one.shared(study, "gpus", "work", "mtbf"), one.shared(study, "mode", "every", "to")
    return "; ".join([", ".join(run), *([f"saves: {', '.join(saves)}"] if saves else [])])


BEST = {
    "goodput": ("Most useful training", "It leaves more useful training than"),
    "cost": ("Least cost", "It costs less than"),
    "cost_apart": ("Least cost before rent", "Before rent it costs less than"),
}


def choice(study: Study, order: Order) -> list[Say]:
    """Which case is best, and how sure that is."""
    eligible = [row for row in order.rows if row not in order.stops]
    if not eligible:
        return [Say("None of these plans works as it stands.")]
    best, *others = eligible
    if study.limit_unknown(best):
        return [Say("No tier here can be recommended: the limits of all are unknown.")]
    called = [COUNTED.sub(r" with \1", name) for name in study.names]
    least, beats = BEST[order.measure]
    known = [row for row in others if not study.limit_unknown(row)]
    among = " of tiers whose limit is known" if len(known) < len(others) else ""
    cost = study.say(order.measure, best, ranged=True)
    found = [Say(f"{least}{among}: {called[best]}, {cost}.")]
    if known:
        sure = study.better(order.measure, best, known[0])
        found.append(Say(f"{beats} the next, {called[known[0]]}, {sure.say()}."))
    if order.unfit:
        names = q.and_join([*dict.fromkeys(COUNTED.sub("", study.names[r]) for r in order.unfit)])
        words = "Left out, because it does not work as it stands (see below)"
        found.append(Say(f"{words}: {names}."))
    return found


# --- tables ---------------------------------------------------------------------------------------


def called(study: Study, row: int) -> str:
    """A tier; with a star if its limit was not measured."""
    return COUNTED.sub("", study.names[row]) + (" *" if study.limit_unknown(row) else "")


def one_table(study: Study) -> Table:
    """One checkpoint on each tier."""
    bill, rate = one.one_save(study), ph.rate(study.w, study.w.tier, "write")
    parts = [orelse(bill.lines[line]["energy"], 0.0) for line in ("storage_write", "network")]
    alone = one.by_case(study, sum(parts))
    takes = [one.by_case(study, bill.total(each)) for each in ("energy", "gpu_time", "cost")]
    waits_less = bool(np.any(study.of("safe") > study.of("stall")))
    columns = [
        Column("tier", ""),
        Column("write", "writes at", "B/s"),
        Column("stall", "waits", "s"),
        Column("safe", "safe after", "s", "value" if waits_less else "no"),
        Column("storage", "storage", "kWh", "no" if waits_less else "ends"),
        Column("energy", "kWh", "kWh"),
        Column("gpu_time", "GPU-h", "GPU-h"),
        Column("cost", "USD", "USD"),
    ]
    rows: list[list[Any]] = []
    for row in tiers(study).values():
        times = [study.value(measure, row) for measure in ("stall", "safe")]
        amounts = [ranges[row] for ranges in (alone, *takes)]
        rows.append([called(study, row), study.stated_of(rate, row), *times, *amounts])
    size = one.facts(study, 0)["size"].removesuffix(" each")
    shares = [a.value / e.value for a, e in zip(alone, takes[0], strict=True) if e.value > 0]
    note = not_storage(study) if max(shares, default=1.0) <= 0.1 else ""
    return Table("one", f"One checkpoint, {size}", columns, rows, note)


def not_storage(study: Study) -> str:
    """That nearly all energy of a save is not that of the storage."""
    gpus = f"{study.stated_of(study.w.cluster.gpus, 0):,.0f} GPUs and their hosts"
    modes = {q.np_text(study.w.policy.mode, row) for row in range(len(study.names))}
    slowed, waits = f"training slowed on {gpus}", f"{gpus} waiting"
    what = f"{waits}, or slowed if async" if len(modes) > 1 else waits
    words = f"Nearly all of the energy is {slowed if modes == {'async'} else what}."
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
    counts = [getattr(each.said["policy"].get("saves"), "value", None) for each in study.scenarios]
    columns = [
        Column("tier", ""),
        Column("saves", "saves", "count", "value" if any(counts) else "no"),
    ]
    columns += [Column(m, header, MEASURES[m].unit, how) for m, (header, how) in RUN.items()]
    rows: list[list[Any]] = []
    for row, count in enumerate(counts):
        cells: list[Any] = [study.range(measure, row) for measure in RUN]
        if one.never(study, row):
            cells = [None, None, None, NEVER]
        rows.append([called(study, row), count, *cells])
    return Table("runs", "Added to the run", columns, rows)


NEVER = "never finishes"


def curves(study: Study) -> list[Plot]:
    """How often to save on each tier, with the interval of the first one that gets ahead."""
    found = Study({name: study.scenarios[row] for name, row in tiers(study).items()}, 0)
    ahead = [row for row in range(len(found.names)) if found.value("goodput", row) > AHEAD]
    if not ahead or study.unsaid == {0}:
        return []
    return [
        ranks.curves(found, found.names, {"you": (ahead[0], found.value("interval", ahead[0]))})
    ]
