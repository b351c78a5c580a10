"""The plan that `interval` recommends: how sure that is, what stands beside it, what to type."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ckptcost import advice as ad
from ckptcost.answer import Caution, Range, Say
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.questions import one
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES
from ckptcost.scenario.units import show
from ckptcost.study import MEASURES, Study, shares_of_variance

MEASURE = {"time": "wall", "energy": "energy", "cost": "cost", "carbon": "carbon"}
"""what an objective minimises"""
OTHERWISE = 0.25
"""another objective is worth a line if its interval differs by more than that"""
USUAL = ((100e9, "1 to 3 h"), (10e9, "15 to 60 min"), (0.0, "5 to 15 min"))
"""by parameters: what practice is, says the article ddn-2025-07"""
NEAR = 0.1
"""an interval that differs by less is as good"""
FIRM = ("measured", "user")


def has_own(scenario: Scenario) -> bool:
    """Whether the job says how often it saves."""
    return bool((set(CADENCES) - {"optimal"}) & scenario.said["policy"].keys())


@dataclass
class Chosen:
    """The plan that is recommended, beside the plan as it stands."""

    name: str
    scenario: Scenario
    advices: dict[str, ad.Advice]
    """by objective"""
    pair: Study
    """row 0: as recommended; row 1, if the job says how often it saves: as it is"""
    objective: str
    blocks: Caution | None

    @property
    def advice(self) -> ad.Advice:
        return self.advices[self.objective]

    @property
    def is_async(self) -> bool:
        return self.scenario.said["policy"].get("mode") == "async"

    @property
    def now(self) -> float:
        """The job's own interval; 0 if it has none."""
        return self.pair.value("interval", 1) if len(self.pair.names) > 1 else 0.0

    @property
    def futile(self) -> bool:
        """Whether the job would end before its first save: there is nothing to compare then."""
        return self.now > self.advice.most * 1.001

    @property
    def apart(self) -> bool:
        """Whether the job saves at another interval than the recommended one."""
        differs = abs(self.now / self.advice.interval - 1.0) > NEAR
        return self.now > 0 and differs and not self.futile

    @property
    def as_good(self) -> bool:
        """Whether that is no worse at the stated values, and not beaten in most draws."""
        measure = MEASURE[self.objective]
        return self.apart and (
            self.pair.value(measure, 1) <= self.pair.value(measure, 0)
            and self.pair.better(measure, 0, 1).share <= 0.5
        )

    @property
    def moves(self) -> bool:
        """Whether the job should change its interval."""
        return self.apart and not self.as_good


# --- how sure -------------------------------------------------------------------------------------


def how_sure(chosen: Chosen) -> list[Say]:
    """The verdict against the job's own interval, the plateau, and what moves the best."""
    beside, found = ad.beside(chosen.pair.scenarios[0]), chosen.advice
    sure = [verdict_on(chosen)] if chosen.apart else []
    span = f"from {between(beside.low, beside.high)} the run stays within 1 % of its shortest."
    inside = beside.low <= (chosen.now or found.interval) <= beside.high
    flat = inside and beside.high > 4 * beside.low
    words = f"In time it hardly matters: {span}" if flat else span.capitalize()
    if found.high < 1.5 * found.low:
        words += " The best interval hardly depends on what is assumed."
    else:
        words += f" The best may lie anywhere from {between(found.low, found.high)}"
        for path in movers(chosen)[:1]:
            words += f"; it depends most on {one.decides(chosen.pair, 0, path).words}"
        words += "."
    first, *rest = [*sure, words, exact_bests(chosen, beside)]
    return [Say(f"How sure?  {first}"), *map(Say, rest)]


def verdict_on(chosen: Chosen) -> str:
    """In how many draws the recommended interval is better, and by how much."""
    pair = chosen.pair
    sure = pair.better(MEASURE[chosen.objective], 0, 1)
    best, now = show(chosen.advice.interval, "s", 2), show(chosen.now, "s", 2)
    if not one.ends(pair, 1):
        return f"At {now} the run never finishes."
    first = "gpu_time" if chosen.objective == "time" else chosen.objective
    gains = {m: pair.difference(m, 1, 0) for m in dict.fromkeys((first, "energy", "cost"))}
    amounts, bracket, more = saves(gains).rpartition(")")
    ranges = f"; p5-p95{bracket}" if bracket else ""
    return f"{best} beats {now} {sure.say()}. It {amounts}{ranges}{more}."


def saves(gains: Mapping[str, Range]) -> str:
    """What one plan saves over another, and what it takes more: "saves 94 GPU-hours (33-280)"."""
    less = [amount(m, x) for m, x in gains.items() if x.value > 0]
    more = [amount(m, Range(-x.value, -x.high, -x.low)) for m, x in gains.items() if x.value < 0]
    does = [f"saves {q.and_join(less)}"] if less else []
    does += [f"takes {q.and_join(more)} more"] if more else []
    return q.and_join(does or ["takes the same"])


def amount(measure: str, found: Range) -> str:
    """An amount with its range."""
    return one.in_words(found.say(MEASURES[measure].unit, 2))


def between(low: float, high: float) -> str:
    """
    >>> between(156.0, 4500.0), between(40.0, 4500.0)
    ('2.6 to 75 min', '40 s to 75 min')
    """
    ends = [show(x, "s", 2) for x in (low, high)]
    (start, unit), (_, other) = (each.split(" ", 1) for each in ends)
    return f"{start if unit == other else ends[0]} to {ends[1]}"


def movers(chosen: Chosen) -> list[str]:
    """The inputs, at most two, whose ranges move the best interval most, unless they are firm."""
    shares = shares_of_variance(chosen.scenario, chosen.advice.bests[1:])
    figures = chosen.scenario.figures()
    found = [path for path, share in shares.items() if share > 0.15]
    return [path for path in found if figures[path].basis not in FIRM][:2]


# --- beside it ------------------------------------------------------------------------------------


def exact_bests(chosen: Chosen, beside: ad.Beside) -> str:
    """Other objectives if they want another interval; exact bests; the rules of thumb."""
    now, found = chosen.advice.interval, chosen.advices
    known = [o for o in MEASURE if one.known(chosen.pair.range(MEASURE[o], 0))]
    other = by_interval(
        (o, found[o].interval)
        for o in known
        if o in found and abs(found[o].interval / now - 1.0) > OTHERWISE
    )
    parts = [f"For least {q.and_join(names)} save every {x}." for x, names in other.items()]
    exact = by_interval((o, beside.exact[o]) for o in known if o in beside.exact)
    bests = [f"{x} for {q.and_join(names)}" for x, names in exact.items()]
    parts += [f"Exact best: {', '.join(bests)}."] if bests else []
    rules = by_interval((("Young", beside.young), ("Daly", beside.daly)))
    thumb = ", ".join(f"{q.and_join(names)} {x}" for x, names in rules.items())
    return " ".join([*parts, *([f"Rules of thumb: {thumb}."] if thumb else [])])


def by_interval(found: Iterable[tuple[str, float]]) -> dict[str, list[str]]:
    """What shares an interval, as it is shown."""
    groups = dict[str, list[str]]()
    for name, x in found:
        if math.isinf(x):
            continue
        groups.setdefault(show(x, "s", 2), []).append(name)
    return groups


def usual(chosen: Chosen) -> Say:
    """What practice is for models of this size."""
    w = chosen.pair.w
    params = float(w.checkpoint.params[0, 0])
    if math.isnan(params):
        params = float(ph.full_size(w)[0, 0] / w.checkpoint.bytes_per_param[0, 0])
    said = next(words for least, words in USUAL if params >= least)
    return Say(f"Usual for models of this size: {said} (ddn-2025-07, a vendor's article).")


def continuous(chosen: Chosen) -> list[Say]:
    """What it would take to begin each save when the last one is safe."""
    if not chosen.is_async or chosen.advice.bound == "drain":
        return []
    best = chosen.pair.scenarios[0]
    study = Study({"best": best, "always": ad.with_interval(best, 0.0)}, 0)
    gains = {m: study.difference(m, 0, 1) for m in ("gpu_time", "cost")}
    every = show(study.value("interval", 1), "s", 2)
    return [Say(f"Compared with the best, continuous saving (every {every}) {saves(gains)}.")]


def last_save(chosen: Chosen) -> list[Say]:
    """How early to begin it, so that 99 of 100 are safe before a wall limit."""
    w, first = chosen.pair.drawn_world, chosen.pair.drawn.plan.first
    ahead = np.where(w.policy.mode == "async", 1.0 + 1.0 / w.policy.in_flight, 1.0)
    takes = np.sort((np.nan_to_num(w.policy.step) + first.stall + first.lag * ahead)[0])
    late = float(takes[math.ceil(0.99 * len(takes)) - 1])
    if late > 65535:  # Slurm's --signal takes no more
        return []
    limit = float(w.run.wall_limit[0, 0])
    which = "a wall limit" if math.isinf(limit) else f"the wall limit of {show(limit, 's', 2)}"
    early = f"{late:.0f} s" if late < 1000.0 else show(late, "s", 2)
    signal = f"(Slurm: --signal=USR1@{math.ceil(late)})"
    return [Say(f"Before {which} begin the last save {early} early {signal}.")]


def to_measure(chosen: Chosen) -> list[Say]:
    """What would make it sure."""
    slowdown = chosen.scenario.figures().get("policy.slowdown")
    unmeasured = chosen.is_async and slowdown and slowdown.basis not in FIRM
    what = "the slowdown first of all" if unmeasured else "stall and write rate"
    found = [Say(f"To make it sure, measure {what}:", "", one.MEASURE)]
    if any(path in one.OFTEN for path in movers(chosen)):
        found.append(Say("Give your own failure rate:", "", '--mtbf "20 h"'))
    return found
