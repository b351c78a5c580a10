"""The plan that `interval` recommends: how sure that is, what stands beside it, what to type."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckptcost import advice as ad
from ckptcost.answer import Caution, Range, Say
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.questions import one
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS, Array
from ckptcost.scenario.units import show
from ckptcost.study import MEASURES, Study, shares_of_variance

MEASURE = {"time": "wall", "energy": "energy", "cost": "cost", "carbon": "carbon"}
"""what an objective minimises"""
OTHERWISE = 0.25
"""another objective is worth a line if its interval differs by more than that"""
USUAL = ((100e9, "1 to 3 h"), (10e9, "15 to 60 min"), (0.0, "5 to 15 min"))
"""by parameters: what practice is, says the article ddn-2025-07"""


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
    def settled(self) -> Scenario:
        return self.pair.scenarios[0]

    @property
    def is_async(self) -> bool:
        return self.scenario.said["policy"].get("mode") == "async"

    @cached_property
    def reach(self) -> ad.Reach:
        return ad.reach_of(self.settled, self.objective)

    @cached_property
    def beside(self) -> ad.Beside:
        return ad.beside(self.settled)

    @property
    def now(self) -> float:
        """The job's own interval; 0 if it has none."""
        return self.pair.value("interval", 1) if len(self.pair.names) > 1 else 0.0

    @property
    def futile(self) -> bool:
        """Whether the job would end before its first save: there is nothing to compare then."""
        return self.now > self.reach.most * 1.001

    @property
    def moves(self) -> bool:
        """Whether the job saves at another interval than the recommended one."""
        apart = abs(self.now / self.advice.interval - 1.0) > 0.02
        return self.now > 0 and apart and not self.futile


# --- how sure -------------------------------------------------------------------------------------


def how_sure(chosen: Chosen) -> list[Say]:
    """The verdict against the job's own interval, the plateau, and what moves the best."""
    says = [verdict_on(chosen)] if chosen.moves else [regret_of(chosen)]
    return [Say(f"How sure?  {says[0]}"), Say(f"{plateau(chosen)} {elsewhere(chosen)}".strip())]


def verdict_on(chosen: Chosen) -> str:
    """In how many draws the recommended interval is better, and by how much."""
    pair = chosen.pair
    sure = pair.better(MEASURE[chosen.objective], 0, 1)
    best, now = show(chosen.advice.interval, "s", 2), show(chosen.now, "s", 2)
    first = "gpu_time" if chosen.objective == "time" else chosen.objective
    shown = [m for m in dict.fromkeys((first, "energy", "cost")) if one.known(pair.range(m, 0))]
    gains = {m: pair.difference(m, 1, 0) for m in shown}
    amounts = [amount(gains[m].value, m) for m in shown if gains[m].value > 0]
    by = f": by {q.and_join(amounts)} at the expected values" if amounts else ""
    return f"{best} beats {now} {sure.say()}{by}. {span(gains[first], first)}"


def amount(value: float, measure: str) -> str:
    unit = MEASURES[measure].unit
    said = one.in_words(show(value, unit, 2))
    return said.replace(" kg", " kgCO2e") if unit == "kg" else said


def span(gain: Range, measure: str) -> str:
    """From so much better to so much worse, in words."""
    if not gain.low < gain.high:
        return ""
    if gain.low < 0 < gain.high:
        ends = f"{amount(gain.high, measure)} better to {amount(-gain.low, measure)} worse"
        return f"The draws go from {ends} (p5-p95)."
    least, most = sorted((abs(gain.low), abs(gain.high)))
    low, _, unit = amount(least, measure).partition(" ")
    high, _, same = amount(most, measure).partition(" ")
    start = low if unit == same else f"{low} {unit}"
    how = "better" if gain.high > 0 else "worse"
    return f"The draws go from {start} to {high} {same} {how} (p5-p95)."


def between(low: float, high: float) -> str:
    """
    >>> between(156.0, 4500.0), between(40.0, 4500.0)
    ('from 2.6 to 75 min', 'from 40 s to 75 min')
    """
    ends = [show(x, "s", 2) for x in (low, high)]
    (start, unit), (_, other) = (each.split(" ", 1) for each in ends)
    return f"from {start if unit == other else ends[0]} to {ends[1]}"


LEAST = 5e-4


def regret_of(chosen: Chosen) -> str:
    """What is lost against the best interval of each draw."""
    found = chosen.advice
    what = "longer" if chosen.objective == "time" else f"more {chosen.objective}"
    mean, worst = (show(x, "share", 2) for x in (found.regret, found.worst))
    if found.worst < LEAST:
        return f"In 95 % of draws no interval is better by more than {show(LEAST, 'share')}."
    return (
        f"At {show(found.interval, 's', 2)} the run takes {mean} {what} than at the best interval"
        f" of each draw, on average; {worst} in 1 of 20."
    )


def plateau(chosen: Chosen) -> str:
    """Between which intervals the run hardly gets longer."""
    beside = chosen.beside
    if not beside.low < beside.high:
        return ""
    words = f"{between(beside.low, beside.high)} the run stays within 1 % of its shortest."
    inside = beside.low <= (chosen.now or chosen.advice.interval) <= beside.high
    flat = inside and beside.high > 4 * beside.low
    return f"In time it hardly matters: {words}" if flat else f"F{words[1:]}"


def elsewhere(chosen: Chosen) -> str:
    """Where the best may lie, and which assumed inputs move it."""
    found = chosen.advice
    if found.high < 1.5 * found.low:
        return "The best interval hardly depends on what is assumed."
    names = [NAMES.get(path, meaning_of(path)) for path in movers(chosen)]
    are = "is" if len(names) == 1 else "are"
    because = f", because {q.and_join(names)} {are} assumed" if names else ""
    return f"The best may lie anywhere {between(found.low, found.high)}{because}."


OFTEN = "the failure rate"
NAMES = {
    "failures.rate_factor": OFTEN,
    "failures.gpu_rate": OFTEN,
    "failures.rate": OFTEN,
    "failures.mtbf": OFTEN,
    "policy.slowdown": "the slowdown while a checkpoint is written",
    "policy.snapshot_rate": "the rate of copies to host memory",
    "policy.pinned": "the slowdown by pinned memory",
    "tier.setup": "the fixed time of a save",
    "tier.write": "the write rate",
    "tier.node_write": "the write rate of a node",
    "tier.scaling": "how the rate grows beyond what was measured",
    "tier.share": "the share of the storage that the job gets",
    "second_tier.setup": "the fixed time of a save on the second tier",
    "second_tier.write": "the write rate of the second tier",
    "failures.node_loss_fraction": "the share of failures that lose a node",
}
FIRM = ("measured", "user")


def meaning_of(path: str) -> str:
    section, key = path.split(".")
    return str(KEYS[section][key].metadata["meaning"]).partition(";")[0]


def movers(chosen: Chosen) -> list[str]:
    """The inputs, at most two, whose ranges move the best interval most, unless they are firm."""
    shares = shares_of_variance(chosen.scenario, chosen.advice.bests[1:])
    figures = chosen.scenario.figures()
    found = [path for path, share in shares.items() if share > 0.15]
    return [path for path in found if figures[path].basis not in FIRM][:2]


# --- beside it ------------------------------------------------------------------------------------


def beside_it(chosen: Chosen) -> list[Say]:
    """Another objective, exact bests, what is usual, continuous saving, and the last save."""
    says = [exact_bests(chosen), usual(chosen), continuous(chosen), last_words(chosen)]
    return [Say(each) for each in [otherwise(chosen), *says] if each]


def otherwise(chosen: Chosen) -> str:
    """Objectives whose recommended interval differs by more than a quarter."""
    found = dict[str, list[str]]()
    for objective, advice in chosen.advices.items():
        if own_of(objective) == own_of(chosen.objective) or not judged(chosen, objective):
            continue
        if abs(advice.interval / chosen.advice.interval - 1.0) > OTHERWISE:
            also = ["carbon"] if objective == "energy" and judged(chosen, "carbon") else []
            found.setdefault(show(advice.interval, "s", 2), []).extend([objective, *also])
    parts = [f"{q.and_join(names)} every {x}" for x, names in found.items()]
    return f"For least {'; for least '.join(parts)}." if parts else ""


def own_of(objective: str) -> str:
    """Emissions are energy times one factor: both are least at the same interval."""
    return "energy" if objective == "carbon" else objective


def judged(chosen: Chosen, objective: str) -> bool:
    """Whether an objective is known: of an unknown one nothing is said."""
    return one.known(chosen.pair.range(MEASURE[objective], 0))


def exact_bests(chosen: Chosen) -> str:
    """By objective, at the stated values, and the rules of thumb."""
    found, by_time = chosen.beside, dict[str, list[str]]()
    for objective, x in found.exact.items():
        by_time.setdefault(show(x, "s", 2), []).append(objective)
    rules = [show(x, "s", 2) for x in (found.young, found.daly)]
    said = f"Young {rules[0]}, Daly {rules[1]}."
    if rules[0] == rules[1]:
        said = f"Young, Daly: {rules[0]}."
    if len(by_time) == 1:
        ((best, names),) = by_time.items()
        each = " each" if len(names) > 1 else ""
        return f"Exact best for {q.and_join(names)}: {best}{each}. {said}"
    parts = [f"for {q.and_join(names)} {x}" for x, names in by_time.items()]
    return f"Exact best: {', '.join(parts)}. {said}" if parts else said


def usual(chosen: Chosen) -> str:
    w = chosen.pair.w
    params = float(w.checkpoint.params[0, 0])
    if params != params:
        params = float(ph.full_size(w)[0, 0] / w.checkpoint.bytes_per_param[0, 0])
    said = next(words for least, words in USUAL if params >= least)
    return f"Usual for models of this size: {said} (ddn-2025-07, a vendor's article)."


def continuous(chosen: Chosen) -> str:
    """What it would take to begin each save when the last one is safe."""
    if not chosen.is_async or chosen.advice.bound == "drain":
        return ""
    study = Study({"best": chosen.settled, "always": ad.with_interval(chosen.settled, 0.0)}, 0)
    measure = next(m for m in ("cost", "energy", "gpu_time") if one.known(study.range(m, 0)))
    more, every = study.difference(measure, 1, 0).value, show(study.value("interval", 1), "s", 2)
    compared = f"{amount(abs(more), measure)} {'more' if more > 0 else 'less'}"
    verb = "costs" if measure == "cost" else "takes"
    return f"Continuous saving, every {every} here, {verb} {compared} than the best."


def last_save(chosen: Chosen) -> Array:
    """Seconds from the signal until the last save is safe, by draw."""
    pair = chosen.pair
    w, first = pair.drawn_world, pair.drawn.plan.first
    ahead = np.where(w.policy.mode == "async", 1.0 + 1.0 / w.policy.in_flight, 1.0)
    takes = np.nan_to_num(w.policy.step) + first.stall + first.lag * ahead
    found: Array = np.broadcast_to(takes, (len(pair.names), 1 + pair.draws))[0]
    return found


def late(chosen: Chosen) -> float:
    """What 99 of 100 last saves stay below."""
    return float(np.quantile(last_save(chosen), 0.99))


def last_words(chosen: Chosen) -> str:
    slow = late(chosen)
    if not slow < SLURM:
        return ""
    limit = float(chosen.pair.w.run.wall_limit[0, 0])
    which = "a wall limit" if math.isinf(limit) else f"the wall limit of {show(limit, 's', 2)}"
    early = f"{slow:.0f} s" if slow < 1000.0 else show(slow, "s", 2)
    signal = f"(Slurm: --signal=USR1@{math.ceil(slow)})"
    return f"Before {which} begin the last save {early} early {signal}."


SLURM = 65535.0
"""seconds that Slurm's --signal takes at most"""


def to_type(chosen: Chosen) -> list[Say]:
    """What would make it sure."""
    said, lines = chosen.scenario.said, list[tuple[str, str]]()
    slowdown = said["policy"].get("slowdown")
    if chosen.is_async and isinstance(slowdown, Figure) and slowdown.basis not in FIRM:
        lines.append(("ckptcost run -- python train.py", "measures the slowdown: first of all"))
    else:
        lines.append(("ckptcost run -- python train.py", "measures stall and write rate"))
    if any(NAMES.get(path) == OFTEN for path in movers(chosen)):
        lines.append(('--mtbf "20 h"', "your failure rate"))
    width = max(len(command) for command, _ in lines) + 4
    typed = "\n".join(f"{command:<{width}}({what})" for command, what in lines)
    return [Say("To make it sure:", "", typed)]
