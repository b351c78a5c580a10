"""Several cases of a job evaluated together, and the one place that counts draws for a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ckptcost.answer import Column, Range, Table
from ckptcost.errors import InputError
from ckptcost.plan import draws as d
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.plan.arrays import orelse, times
from ckptcost.plan.bill import QUANTITIES
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import KEYS, Array, World
from ckptcost.scenario.units import show, show_range, split

FEW_CASES = 4
MANY_DRAWS, DRAWS, FEWEST_DRAWS = 8192, 4096, 256
"""the ends of a range are shown with two digits, which 4,096 draws do not always settle; more cases
than a few would take too long with twice as many"""
MOST_DRAWS, MOST_VALUES = 200_000, 2_000_000
"""draws, and plans times draws, that memory is spent on"""
AHEAD = 0.1
"""a run that keeps less of its time for useful training makes next to no headway: nothing is
recommended from such runs"""


# --- measures -------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """What is read off an outcome."""

    unit: str
    header: str
    read: Callable[[ev.Outcome], Array]
    more_is_better: bool = False


def total_of(quantity: str) -> Callable[[ev.Outcome], Array]:
    return lambda o: o.bill.total(quantity)


def _written(o: ev.Outcome) -> Array:
    """Bytes of all writes, to both tiers."""
    return o.spent.saves * o.plan.first.written + times(o.spent.second_saves, o.plan.second.written)


def _without_rent(o: ev.Outcome) -> Array:
    """Dollars but for keeping bytes: what plans that are billed in different ways share."""
    rent = [o.bill.lines[each]["cost"] for each in RENT if each in o.bill.lines]
    return o.bill.total("cost") - sum(orelse(each, 0.0) for each in rent)


DAY = 86400.0
RENT = ("retention", "second_retention")
MEASURES = {
    "interval": Measure("s", "save every", lambda o: o.interval),
    "saves": Measure("count", "saves", lambda o: o.saves),
    "stall": Measure("s", "training waits", lambda o: o.rhythm.stall),
    "safe": Measure("s", "safe after", lambda o: o.rhythm.stall + o.plan.first.lag),
    "goodput": Measure("share", "useful training", lambda o: o.goodput, more_is_better=True),
    "overhead": Measure(
        "share", "spent on saving", lambda o: (o.spent.stall + o.spent.slowed) / o.wall
    ),
    "wall": Measure("s", "wall time", lambda o: o.wall),
    "failures": Measure("count", "failures", lambda o: o.failures),
    "mtbf": Measure("s", "time between failures", lambda o: 1.0 / o.plan.rate, more_is_better=True),
    "failures_day": Measure("count", "failures a day", lambda o: DAY * o.plan.rate),
    "saves_day": Measure("count", "saves a day", lambda o: DAY * o.saves / o.wall),
    "written_day": Measure("B", "written a day", lambda o: _written(o) * DAY / o.wall),
    **{q: Measure(unit, name, total_of(q)) for q, (unit, name) in QUANTITIES.items()},
    "cost_apart": Measure("USD", "USD before rent", _without_rent),
}
"""by name; a further one is one row here, and stands in every table, file, target and comparison"""
OF_ONE_SAVE = ("interval", "stall", "safe", "mtbf", "failures_day")
"""what is known of a plan even if its run is not"""


def read(measure: str, o: ev.Outcome) -> Array:
    """A measure of an outcome: a row a case or an interval, a column a draw."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(MEASURES[measure].read(o), np.shape(o.spent.wall))


# --- verdicts -------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """In how many draws something holds; a draw is one set of values for all uncertain inputs."""

    share: float
    draws: int

    def say(self) -> str:
        """
        >>> [Verdict(x, 4096).say() for x in (1.0, 0.9996, 0.803, 0.0)]
        ['in all draws', 'in nearly all draws', 'in 80 % of draws', 'in no draw']
        """
        if not self.draws:
            return "at the stated values"
        if self.share in (0.0, 1.0):
            return "in all draws" if self.share else "in no draw"
        if not 0.005 <= self.share < 0.995:
            return "in nearly all draws" if self.share > 0.5 else "in hardly any draw"
        return f"in {self.share * 100:.0f} % of draws"


def verdict(holds: Array) -> Verdict:
    """Of an array of draws, the stated values first. This is the only place that counts draws."""
    drawn = holds[1:] if len(holds) > 1 else holds
    return Verdict(float(np.mean(drawn)), len(holds) - 1)


# --- several cases --------------------------------------------------------------------------------


class Study:
    """Cases in the same draws, so that they can be compared draw by draw."""

    def __init__(self, cases: Mapping[str, Scenario], draws: int | None = None) -> None:
        if any(each.said["third_tier"] for each in cases.values()):
            problem = "three tiers have no closed form"
            raise InputError(problem, "third_tier", "ask ckptcost simulate")
        self.names, self.scenarios = list(cases), list(cases.values())
        fitting = max(FEWEST_DRAWS, min(DRAWS, MOST_VALUES // max(len(cases), 1)))
        usual = MANY_DRAWS if len(cases) <= FEW_CASES else fitting
        self.draws = usual if draws is None else draws
        if not 0 <= self.draws <= MOST_DRAWS:
            raise InputError(f"{draws:,} is out of range", "draws", f"give 0 to {MOST_DRAWS:,}")
        self._seen: dict[tuple[str, bool], Array] = {}
        self.unsaid: set[int] = set()
        """cases whose run cannot be billed, since they lose what they rely on"""
        self._ranges: dict[str, list[Range]] = {}
        self.w = d.worlds(self.scenarios)
        self.stated, self.asked = ev.evaluate(self.w)
        for row, name in enumerate(self.names):
            if not 0 < self.asked[row, 0] < np.inf:
                lacking = self.scenarios[row].lacking.items()
                needs = "; ".join(f"{key}: {why}" for key, why in lacking)
                remedy = needs or "without failures it is never to save: give --mtbf or --interval"
                raise InputError("the best interval cannot be computed", name, remedy)

    @cached_property
    def drawn_world(self) -> World:
        return d.worlds(self.scenarios, self.draws)

    @cached_property
    def drawn(self) -> ev.Outcome:
        """Over the draws."""
        return self.outcome(self.drawn_world)

    def outcome(self, w: World) -> ev.Outcome:
        """In another world; the interval stays as it was chosen, unless it is continuous."""
        asked = np.where(self.w.policy.interval == 0, 0.0, self.stated.interval)
        with np.errstate(all="ignore"):
            return ev.at(w, ph.plan(w), asked)

    def of(self, measure: str, drawn: bool = False) -> Array:
        """By case (and draw, the stated values first)."""
        if (measure, drawn) not in self._seen:
            found = read(measure, self.drawn if drawn else self.stated)
            if self.unsaid and measure not in OF_ONE_SAVE:
                rows = np.arange(len(self.names))[:, None]
                found = np.where(np.isin(rows, [*self.unsaid]), np.nan, found)
            self._seen[measure, drawn] = found
        return self._seen[measure, drawn]

    def value(self, measure: str, row: int) -> float:
        return float(self.of(measure)[row, 0])

    def stated_of(self, x: Any, row: int) -> float:
        """A number of a case out of any array of the stated world or outcome."""
        return float(np.broadcast_to(x, (len(self.names), 1))[row, 0])

    def ranges(self, measure: str) -> list[Range]:
        """Of every case."""
        if measure not in self._ranges:
            self._ranges[measure] = ranges_of(self.of(measure, drawn=True))
        return self._ranges[measure]

    def range(self, measure: str, row: int) -> Range:
        return self.ranges(measure)[row]

    def say(self, measure: str, row: int, ranged: bool = False) -> str:
        unit = MEASURES[measure].unit
        value = self.value(measure, row)
        return self.range(measure, row).say(unit) if ranged else show(value, unit)

    # --- in how many draws ---

    def better(self, measure: str, row: int, other: int) -> Verdict:
        """In how many draws a case has less (or more, where more is better) than another."""
        values = self.of(measure, drawn=True)
        mine, its = values[row], values[other]
        less = mine > its if MEASURES[measure].more_is_better else mine < its
        return verdict(less & ~np.isclose(mine, its, 1e-9, 0.0))

    def difference(self, measure: str, row: int, other: int) -> Range:
        """A case less another one, in the same draws."""
        values = self.of(measure, drawn=True)
        with np.errstate(all="ignore"):
            return ranges_of((values[row] - values[other])[None, :])[0]

    # --- what rankings may rest on ---

    def limit_unknown(self, row: int) -> bool:
        """The rate that decides lies beyond what was measured: such a case never ranks first."""
        w = self.w
        second = self.stated.plan.two & ph.limit_unknown(w, w.second_tier)
        return bool(self.stated_of(ph.limit_unknown(w, w.tier) | second, row))

    def ranked(self, measure: str = "wall") -> list[int]:
        """Cases from best to worst: first those that get ahead and whose limit is known, then those
        whose limit is not, then those that get nowhere; unknown values last."""
        values, ahead = self.of(measure)[:, 0], self.of("goodput")[:, 0] >= AHEAD
        sign = -1.0 if MEASURES[measure].more_is_better else 1.0

        def place(row: int) -> tuple[bool, bool, bool, float]:
            is_known = values[row] == values[row]
            value = sign * float(values[row]) if is_known else 0.0
            return not ahead[row], self.limit_unknown(row), not is_known, value

        return sorted(range(len(self.names)), key=place)

    # --- other intervals ---

    def at(self, row: int, intervals: Any, draws: int = 0) -> ev.Outcome:
        """One case at other intervals, a row each, at the stated values and in draws."""
        w = d.worlds([self.scenarios[row]], draws)
        with np.errstate(all="ignore"):
            return ev.at(w, ph.plan(w), np.reshape(np.asarray(intervals, float), (-1, 1)))

    # --- what decides ---

    def deciding(self, measure: str, row: int) -> dict[str, float]:
        """Figures whose ranges move a result most, with their share of its (ranked) variance."""
        return shares_of_variance(self.scenarios[row], self.of(measure, drawn=True)[row, 1:])

    # --- tables that hold everything ---

    def table(self, title: str, screen: Mapping[str, str], shown: bool = True) -> Table:
        """Every measure of every case, with ranges; `screen` says which of them a person sees."""
        order = [*screen, *(m for m in MEASURES if m not in screen)]
        columns = [Column("case", "")] + [
            Column(m, MEASURES[m].header, MEASURES[m].unit, screen.get(m, "no")) for m in order
        ]
        rows = [list(row) for row in zip(self.names, *map(self.ranges, order), strict=True)]
        return Table("cases", title, columns, rows, shown=shown)


def said_of(path: str, figure: Figure) -> tuple[str, str]:
    """A figure and its range, in the units in which people read it."""
    unit = unit_of(path)
    ends = show_range(figure.low, figure.high, unit) if figure.ranged else ""
    return figure.text or show(figure.value, unit), ends


def unit_of(path: str) -> str:
    """The unit in which people read a figure, from its example.

    >>> unit_of("tier.write"), unit_of("policy.interval"), unit_of("cluster.gpus")
    ('GB/s', 's', '')
    """
    section, key = path.split(".")
    example: str = KEYS[section][key].metadata["example"]
    unit = split(example)
    shown = {"%": "share", "min": "s", "h": "s", "days": "s", "PB": "B", "TB": "B", "MB": "B"}
    return shown.get(unit, "" if unit == example else unit)


def shares_of_variance(scenario: Scenario, result: Array) -> dict[str, float]:
    """By figure: its share of the (ranked) variance of a result that is given in each draw."""
    ranks = np.argsort(np.argsort(result)).astype(float)
    if not len(ranks) or ranks.std() == 0:
        return {}
    ranged = (path for path, figure in scenario.figures().items() if figure.ranged)
    found = {
        path: float(np.corrcoef(d.share(path, len(ranks)), ranks)[0, 1]) ** 2 for path in ranged
    }
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def ranges_of(table: Array) -> list[Range]:
    """Of each row: the stated value first, then the draws."""
    ends = zip(table[:, 0], *d.ends(table), strict=True)
    return [Range(float(value), float(low), float(high)) for value, low, high in ends]
