"""The answer about several plans: which costs least and how sure that is, then tiers x counts."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from ckptcost.answer import Caution, Column, Plot, Range, Say, Table
from ckptcost.cautions import blocked
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.questions import one
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.units import show, show_range
from ckptcost.study import MEASURES, Study

UNKNOWN_LIMIT = " *"
"""behind a tier whose limit was not measured"""


def tiers(study: Study) -> dict[str, list[int]]:
    """Rows by tier."""
    found: dict[str, list[int]] = {}
    for row in range(len(study.names)):
        found.setdefault(named(study, row), []).append(row)
    return found


def called(study: Study, row: int) -> str:
    return named(study, row) + (UNKNOWN_LIMIT if study.limit_unknown(row) else "")


def named(study: Study, row: int) -> str:
    """A case without its number of saves."""
    count = count_of(study, row)
    name = study.names[row]
    return re.sub(r", [0-9,]+ saves?$", "", name) if count else name


def count_of(study: Study, row: int) -> float | None:
    """The number of saves that was asked for."""
    figure = study.scenarios[row].said["policy"].get("saves")
    return figure.value if isinstance(figure, Figure) else None


def case(study: Study, row: int) -> str:
    count = count_of(study, row)
    return named(study, row) + (f" with {count:,g} saves" if count else "")


# --- what to take ---------------------------------------------------------------------------------


def rented_apart(study: Study) -> bool:
    """Some tiers bill what is provisioned and others what is held: their dollars are no contest."""
    return len({_billed(study, row) for row in range(len(study.names))}) > 1


def _billed(study: Study, row: int) -> str:
    said = study.scenarios[row].said["tier"]
    return "provisioned" if "standing_price" in said else str(said.get("billed_on", "held"))


def measure_for(study: Study) -> str:
    """What ranks the cases: dollars if they are known and comparable, else time."""
    measure = "cost_apart" if rented_apart(study) else "cost"
    return measure if np.any(np.isfinite(study.of(measure)[:, 0])) else "goodput"


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

    @property
    def eligible(self) -> list[int]:
        return [row for row in self.rows if row not in self.stops]


SEEN = ("NEVER_FINISHES", "NO_HEADWAY")
"""what the table shows anyway"""


def order_of(study: Study) -> Order:
    measure, stops = measure_for(study), blocked(study)
    return Order(measure, sorted(study.ranked(measure), key=lambda row: row in stops), stops)


def choice(study: Study, order: Order) -> list[Say]:
    """Which case is best, and how sure that is."""
    if not order.eligible:
        return [Say("None of these plans works as it stands.")]
    best, *others = order.eligible
    if study.limit_unknown(best):
        return [Say("No tier here can be recommended: the limits of all are unknown.")]
    among = " of tiers whose limit is known" if any(map(study.limit_unknown, others)) else ""
    cost = study.say(order.measure, best, ranged=True)
    says = [Say(f"{BEST[order.measure]}{among}: {case(study, best)}, {cost}.")]
    known = [row for row in others if not study.limit_unknown(row)]
    if known:
        sure = study.better(order.measure, best, known[0])
        says.append(Say(f"It beats the next, {case(study, known[0])}, {sure.say()}."))
    if order.unfit:
        names = q.and_join([*dict.fromkeys(named(study, row) for row in order.unfit)])
        says.append(Say(f"Left out, since it does not work as it stands: {names}."))
    return says


BEST = {
    "goodput": "Most useful training",
    "cost": "Least cost",
    "cost_apart": "Least cost before rent",
}


def not_ranked(study: Study) -> list[Say]:
    """Tiers whose limit nobody has measured, with the key that would give it."""
    found = [name for name, rows in tiers(study).items() if study.limit_unknown(rows[0])]
    if not found:
        return []
    are = "is" if len(found) == 1 else "are"
    words = (
        f"* {q.and_join(found)} {are} not ranked: nobody has measured such a rate there, and the"
        " limit of the whole system is not known. If you know it:"
    )
    return [Say(words, "", f"--tier {found[0]} {one.LIMIT}")]


def like_with_like(study: Study) -> list[Say]:
    """What decides about dollars if some pay for capacity and others for what is kept."""
    if not rented_apart(study):
        return []
    ranked = sorted(range(len(study.names)), key=lambda row: -_rent(study, row))
    by_way = {
        way: [r for r in ranked if _billed(study, r) == way] for way in ("provisioned", "held")
    }
    if not all(by_way.values()):
        return []
    dear, other = by_way["provisioned"][0], by_way["held"][0]
    price = study.scenarios[other].said["tier"].get("storage_price")
    assumed = isinstance(price, Figure) and price.basis in ("assumed", "derived")
    at = (
        f"at an assumed {show(price.value, 'USD/GB-month')}"
        if assumed and price
        else "at its price"
    )
    return [
        Say(
            f"Rent is left out of that ranking: {case(study, dear)} pays"
            f" {show(_rent(study, dear), 'USD')} for all that is provisioned,"
            f" {case(study, other)} {show(_rent(study, other), 'USD')} for what is kept, {at}."
        )
    ]


def _rent(study: Study, row: int) -> float:
    return study.value("cost", row) - study.value("cost_apart", row)


# --- tables ---------------------------------------------------------------------------------------


def one_table(study: Study) -> Table:
    """One checkpoint on each tier."""
    saves, rate = one.single(study), ph.rate(study.w, study.w.tier, "write")
    storage = storage_alone(study)
    columns = [
        Column("tier", ""),
        Column("write", "writes at", "B/s"),
        Column("stall", "waits", "s"),
        Column("safe", "safe after", "s"),
        Column("energy", "kWh", "kWh"),
        Column("alone", "storage alone"),
        Column("storage", "storage alone", "kWh", "no"),
        Column("gpu_time", "GPU-h", "GPU-h"),
        Column("cost", "USD", "USD"),
    ]
    if not any(study.value("safe", row) > study.value("stall", row) for row in range(len(saves))):
        del columns[3]
    rows: list[list[Any]] = []
    for found in tiers(study).values():
        row = found[0]
        cells = {
            "tier": called(study, row),
            "write": study.stated_of(rate, row),
            "stall": study.value("stall", row),
            "safe": study.value("safe", row),
            "alone": show_range(storage[row].low, storage[row].high, "kWh"),
            "storage": storage[row],
        } | saves[row]
        rows.append([cells[column.key] for column in columns])
    size = show(study.stated_of(study.stated.plan.first.stored, 0), "B")
    return Table(
        "one", f"One checkpoint, {size}", columns, rows, waiting_note(study, saves, storage)
    )


def storage_alone(study: Study) -> list[Range]:
    """Energy of writing one checkpoint and carrying it there, GPUs and hosts apart."""
    with np.errstate(all="ignore"):
        bill = ev.one_save(study.drawn_world, study.drawn)
    parts = [bill.lines[line]["energy"] for line in ("storage_write", "network")]
    alone = ph.orelse(parts[0], 0.0) + ph.orelse(parts[1], 0.0)
    return [each["energy"] for each in one.by_case(study, {"energy": alone})]


def waiting_note(study: Study, saves: list[dict[str, Range]], storage: list[Range]) -> str:
    """Who uses the energy of a save, if it is nearly all the GPUs."""
    shares = [
        own.value / each["energy"].value
        for own, each in zip(storage, saves, strict=True)
        if each["energy"].value > 0
    ]
    if not shares or max(shares) > 0.1:
        return ""
    gpus = study.stated_of(study.w.cluster.gpus, 0)
    words = f"Nearly all of the energy is {gpus:,.0f} GPUs and their hosts waiting."
    given = {"write_energy", "active_power"}
    if not any(given & each.said["tier"].keys() for each in study.scenarios):
        words += (
            " What the storage itself uses is estimated per byte: no vendor here publishes watts."
        )
    return words


def run_table(study: Study) -> Table:
    """The whole run on each tier at each count; without numbers if it never finishes."""
    columns = [Column("tier", "")]
    counted = any(count_of(study, row) for row in range(len(study.names)))
    columns += [Column("saves", "saves", "count")] if counted else []
    columns += [Column(m, _header(m), MEASURES[m].unit, how) for m, how in RUN.items()]
    rows: list[list[Any]] = []
    for row in range(len(study.names)):
        cells: list[Any] = [study.range(measure, row) for measure in RUN]
        if one.never(study, row):
            cells = [*(None for _ in cells[1:]), "never finishes"]
        count = [count_of(study, row)] if counted else []
        rows.append([called(study, row), *count, *cells])
    return Table("runs", "The whole run", columns, rows)


RUN = {
    "goodput": "value",
    "gpu_time": "value",
    "energy": "value",
    "cost": "range",
}
"""what a person sees of each run"""


def _header(measure: str) -> str:
    short = {"goodput": "useful", "gpu_time": "GPU-h"}
    return short.get(measure, MEASURES[measure].header)


def about(study: Study) -> str:
    """What the cases share."""
    w = study.w
    mode = q.np_text(w.policy.mode, 0)
    gpus, work = study.stated_of(w.cluster.gpus, 0), show(study.stated_of(w.run.work, 0), "s", 2)
    accelerator = study.scenarios[0].names.get("accelerator")
    them = f"{gpus:,.0f} x {accelerator}" if accelerator else f"{gpus:,.0f} accelerators"
    every = show(study.value("mtbf", 0), "s", 2)
    return f"{mode}, {them}; {work} of training, a failure every {every}"


def says(study: Study, order: Order) -> list[Say]:
    """The choice, and what it may not rest on."""
    doubted = one.doubted(study, range(len(study.names)))
    return [*doubted, *choice(study, order), *not_ranked(study), *like_with_like(study)]


def notes(study: Study, row: int) -> list[Say]:
    """How sure that is, and what to type next."""
    return [*one.lacking(study, row), *one.inputs_of(study, row), one.DETAIL]


def curves(study: Study) -> list[Plot]:
    """One drawing: what the interval does on each tier that gets ahead."""
    rows = {
        name: found[0] for name, found in tiers(study).items() if not one.never(study, found[0])
    }
    return [one.curve(study, [*rows.values()], [*rows])] if rows else []
