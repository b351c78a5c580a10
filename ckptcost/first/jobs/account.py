"""What the checkpoints of a run that goes on have cost so far: each is evaluated from a piece of
the run that reaches around it, as `jobs.measured` evaluates a whole one, and priced again when the
scenario changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import isnan, nan
from typing import NamedTuple

from ckptcost.first.core.attribution import Cost, attribute_energy
from ckptcost.first.core.bill import Bill
from ckptcost.first.core.contents import Contents, first_s
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.gauges import UNSEEN_AFTER
from ckptcost.first.core.quantities import EVERYDAY, LineField
from ckptcost.first.core.reconcile import Energy, total, unknown
from ckptcost.first.core.windows import Window
from ckptcost.first.errors import CkptcostError
from ckptcost.first.jobs.drains import HostSaves, saves_of
from ckptcost.first.jobs.energies import Energies, at_once
from ckptcost.first.jobs.measured_bill import (
    MeasuredBill,
    RunMachine,
    SaveJoules,
    SaveSpent,
    gpus_metered,
    joules_of_load,
    joules_of_save,
    load_bill,
    machine_with,
    on_machine,
    save_bill,
)
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.runs.run import Run
from ckptcost.first.scenario import Resolved

SUMMED: tuple[LineField, ...] = tuple(q.field for q in EVERYDAY)
_APART_S = 1e-3
"""the same begin, as marks and as a run have it"""


class Joules(NamedTuple):
    """From begin until it was safe, at the node, as `ckptcost report` has them."""

    all: Energy
    """of all metered parts"""
    gpus: Energy
    hosts: Energy


NO_JOULES = Joules(*(unknown("NO_READING"),) * 3)


class Seen(NamedTuple):
    """One checkpoint, evaluated: enough to be priced under any scenario, and small."""

    window: Window
    contents: Contents
    joules: Joules
    billed: SaveJoules | Energy
    """of a load its joules until it was there"""
    lags: bool
    """some meter's last reading lies before its end: in a moment more is known"""


class Evaluation:
    """A run, or a piece of one, in which checkpoints are evaluated one by one."""

    def __init__(
        self,
        run: Run,
        idle: Idle | None,
        since_s: float | None = None,
        breathe: Callable[[], None] = at_once,
        host: str = "",
    ) -> None:
        """`since_s`: when recording began, where the run is a piece; `breathe` is called between
        channels."""
        self._run, self._idle = run, idle
        self._node = run.node(host)
        self._energies = Energies(self._node, breathe)
        self._since_s = self._energies.since_s if since_s is None else since_s

    @cached_property
    def _saves(self) -> HostSaves:
        return saves_of(self._run, self._energies)

    def of(self, window: Window) -> Seen | None:
        """The window of that label and begin, as the run has it."""
        for place, known in enumerate(self._saves.windows):
            if known.label == window.label and abs(first_s(known) - first_s(window)) < _APART_S:
                return self._seen(place)
        return None

    def _seen(self, place: int) -> Seen:
        energies, idle = self._energies, self._idle
        window, what = self._saves.windows[place], self._saves.contents[place]
        places = energies.places(self._run.wall_s(window.begin_s or 0.0))
        (costs,) = attribute_energy(
            self._saves.windows,
            [*energies.parts, *energies.nodes[:1]],
            energies.joules,
            self._since_s,
            None if idle is None else idle.domains,
            places,
            energies.curve,
            place,
            energies.ahead,
        )
        spent = SaveSpent(energies, {cost.domain: cost for cost in costs}, idle)
        billed: SaveJoules | Energy = (
            joules_of_load(energies, window) if what.of == "load" else joules_of_save(spent, window)
        )
        lags = any(
            UNSEEN_AFTER in energy.flags
            for cost in costs
            for energy in (cost.absolute, cost.stall, cost.drain)
        )
        return Seen(window, what, _joules_of(spent.costs, energies.parts), billed, lags)


def _joules_of(costs: Mapping[str, Cost], parts: Sequence[str]) -> Joules:
    cards = [domain for domain in parts if domain.split(":", 1)[0] in ("gpu", "module")]
    others = [domain for domain in parts if domain not in set(cards)]

    def absolute(domains: Iterable[str], why: str) -> Energy:
        found = [costs[domain].absolute for domain in domains]
        return total(found) if found else unknown(why)

    return Joules(
        absolute(parts, "NO_PARTS"),
        absolute(cards, "NO_GPU_METER"),
        absolute(others, "NO_PARTS"),
    )


class Priced(NamedTuple):
    """One checkpoint's bill under the scenario."""

    of: str
    bill: MeasuredBill
    failed: bool

    def amount(self, quantity: LineField) -> float:
        return float(self.bill.bill.total(quantity))


class AccountTotals(NamedTuple):
    """Sums over saves, as `ckptcost compare run:RUN SCENARIO` would have them."""

    amounts: Mapping[LineField, float]
    """NaN where no save's is known"""
    known: Mapping[LineField, int]
    saves: int
    """that were evaluated and did not fail"""
    least: Mapping[LineField, float]
    """what is known of all lines, also of saves whose sum is not; of those of which it is known
    what the stall cost"""
    lines_j: Mapping[str, float]
    """of the saves that are in the sum of joules, so that they are parts of it; of all where no
    save's sum is known"""
    lacking: Mapping[str, tuple[str, int]]
    """by line of joules: the commonest reason, and in how many saves it is unknown"""


class Prices(NamedTuple):
    """The scenario on the run's machine, or why there is none."""

    scenario: Scenario | None
    machine: RunMachine | None
    problem: str = ""


class Account:
    """The checkpoints that were evaluated, by number. `price` and `take` may take some
    milliseconds; the rest is quick."""

    def __init__(self) -> None:
        self.prices = Prices(None, None)
        self.seen: dict[int, Seen] = {}
        self.priced: dict[int, Priced] = {}
        self._totals: AccountTotals | None = None

    def take(self, number: int, seen: Seen) -> None:
        self.seen[number] = seen
        self._price_one(number)
        self._totals = None

    def price(
        self, resolve: Callable[[], Resolved], parts: Sequence[str], hosts: int, ranks: int
    ) -> None:
        """`resolve` tells the scenario, or raises why there is none; `parts`: the domains that add
        up, of which the GPUs are counted; `ranks`: as marks say, 0 where they do not."""
        try:
            resolved = resolve()
            machine = machine_with(gpus_metered(parts), hosts, float(ranks or nan), resolved)
            scenario = on_machine(resolved.scenario, machine.job_gpus, machine)
            self.prices = Prices(scenario, machine)
        except CkptcostError as error:
            self.prices = Prices(None, None, str(error))
        self.priced = {}
        for number in self.seen:
            self._price_one(number)
        self._totals = None

    def _price_one(self, number: int) -> None:
        s, machine = self.prices.scenario, self.prices.machine
        if s is None or machine is None:
            return
        window, what, _, billed, _ = self.seen[number]
        bill = (
            save_bill(billed, window, what.bytes, s, machine.gpus)
            if isinstance(billed, SaveJoules)
            else load_bill(billed, window, s, machine.gpus)
        )
        self.priced[number] = Priced(what.of, bill, bool(what.error))

    def joules(self, number: int) -> Joules:
        seen = self.seen.get(number)
        return NO_JOULES if seen is None else seen.joules

    @property
    def totals(self) -> AccountTotals:
        if self._totals is None:
            saves = [one for one in self.priced.values() if one.of != "load" and not one.failed]
            self._totals = _totals(saves)
        return self._totals


def _totals(saves: Sequence[Priced]) -> AccountTotals:
    known = {q: [v for one in saves if not isnan(v := one.amount(q))] for q in SUMMED}
    amounts = {q: sum(each) if each else nan for q, each in known.items()}
    counts = {q: len(each) for q, each in known.items()}
    least = {q: _least_sum([one.bill.bill for one in saves], q) for q in SUMMED}
    return AccountTotals(amounts, counts, len(saves), least, *_lines_j(saves, counts["energy_j"]))


def _least_sum(bills: Sequence[Bill], quantity: LineField) -> float:
    """All known lines of the bills of which it is known what the stall cost."""
    held_up = [bill for bill in bills if not isnan(getattr(bill.line("gpu_wait"), quantity))]
    lines = [float(getattr(line, quantity)) for bill in held_up for line in bill.lines]
    known = [value for value in lines if not isnan(value)]
    return sum(known) if known else nan


def _lines_j(
    saves: Sequence[Priced], known: int
) -> tuple[dict[str, float], dict[str, tuple[str, int]]]:
    """Joules by line, and what they lack; `known`: of so many saves all joules are."""
    lines_j: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for one in saves:
        in_sum = not known or not isnan(one.amount("energy_j"))
        for name, energy in one.bill.energies.items():
            if not energy.known:
                reasons.setdefault(name, []).append(energy.why)
            elif in_sum:
                lines_j[name] = lines_j.get(name, 0.0) + energy.value
    lacking = {
        name: (max(dict.fromkeys(codes), key=codes.count), len(codes))
        for name, codes in reasons.items()
    }
    return lines_j, lacking
