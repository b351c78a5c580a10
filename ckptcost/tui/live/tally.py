"""What checkpoints cost so far: each is evaluated once, from a piece of the readings, and priced
again when the scenario changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan
from types import SimpleNamespace
from typing import NamedTuple, cast

from ckptcost.core.attribution import Cost, Place, attributed, spent
from ckptcost.core.channels import Mark
from ckptcost.core.contents import Contents, first_s
from ckptcost.core.domain import Scenario
from ckptcost.core.quantities import EVERYDAY, LineField
from ckptcost.core.reconcile import Energy, total, unknown
from ckptcost.core.windows import Stretch, Window
from ckptcost.errors import CkptcostError
from ckptcost.jobs.drains import saves_of
from ckptcost.jobs.energies import Energies, Source, at_once
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.measured_bill import MeasuredBill, bill_of_load, bill_of_save, load_end_s
from ckptcost.jobs.run_machine import RunMachine, machine_of, on_machine
from ckptcost.runs.baselines import Idle
from ckptcost.runs.run import Run
from ckptcost.tui.desk import Desk

SUMMED: tuple[LineField, ...] = tuple(q.field for q in EVERYDAY)
_OF_THE_NODE = frozenset({"gpu", "module", "cpu", "dram", "core", "uncore", "psys", "node"})


class _Reduced:
    """What a bill needs of a node's energies: domains of a kind already added up, and only the
    stretches that are asked for."""

    def __init__(
        self,
        parts: list[str],
        wholes: list[str],
        sources: dict[str, Source],
        amounts: dict[tuple[str, float, float], Energy],
    ) -> None:
        self.parts, self.wholes, self.sources = parts, wholes, sources
        self._amounts = amounts

    def joules(self, domain: str, begin_s: float, end_s: float) -> Energy:
        return self._amounts.get((domain, begin_s, end_s)) or unknown("NO_READING")


class Seen(NamedTuple):
    """One checkpoint, evaluated: enough to be priced under any scenario, and small."""

    told: Window
    """as marks alone have it"""
    window: Window
    contents: Contents
    absolute: Energy
    """joules of all metered parts, from begin until safe, as `ckptcost report` has them"""
    energies: _Reduced
    costs: Sequence[Cost]
    idle: Idle | None


def evaluated(
    run: Run,
    window: Window,
    idle: Idle | None,
    since_s: float,
    breathe: Callable[[], None] = at_once,
) -> Seen | None:
    """One checkpoint from a piece of its run that reaches from some time before it to some time
    after. `breathe`: between channels."""
    node = run.node()
    energies = Energies(node, breathe)
    told = saves_of(run, energies)
    found = next(
        (
            n
            for n, w in enumerate(told.windows)
            if w.label == window.label and abs(first_s(w) - first_s(window)) < 1e-3
        ),
        None,
    )
    if found is None:
        return None
    one = told.windows[found]
    at_s = run.wall_s(one.begin_s or 0.0)
    places = {
        domain: Place(node.host, source.driver, at_s) for domain, source in energies.sources.items()
    }
    wholes = [domain for domain in energies.wholes if domain.split(":")[0] == "node"][:1]
    names = [*energies.parts, *wholes]
    costs = attributed(
        told.windows,
        names,
        energies.joules,
        since_s,
        None if idle is None else idle.domains,
        places,
        energies.curve,
        found,
    )
    mine = {cost.domain: cost for cost in costs}
    absolute = (
        total(mine[domain].absolute for domain in energies.parts)
        if energies.parts
        else unknown("NO_PARTS")
    )
    return _reduced(window, one, told.contents[found], absolute, energies, mine, wholes, idle)


def _reduced(
    told: Window,
    window: Window,
    what: Contents,
    absolute: Energy,
    energies: Energies,
    costs: Mapping[str, Cost],
    wholes: list[str],
    idle: Idle | None,
) -> Seen:
    groups: dict[str, list[str]] = {}
    for domain in energies.parts:
        kind = domain.split(":", 1)[0]
        groups.setdefault(kind if kind in ("gpu", "module") else "others", []).append(domain)
    parts = [domains[0] for domains in groups.values()]
    kept = [_together([costs[domain] for domain in domains]) for domains in groups.values()]
    storage = {
        d: source
        for d, source in energies.sources.items()
        if d.split(":", 1)[0] not in _OF_THE_NODE
    }
    amounts: dict[tuple[str, float, float], Energy] = {}
    if window.begin_s is not None and window.end_s is not None:
        span = (window.begin_s, window.end_s)
        amounts |= {(d, *span): spent(energies.joules, d, [span]) for d in storage}
    end_s = load_end_s(window) if what.of == "load" else None
    if window.begin_s is not None and end_s is not None:
        until: Stretch = (window.begin_s, end_s)
        amounts |= {
            (ds[0], *until): total(spent(energies.joules, d, [until]) for d in ds)
            for ds in groups.values()
        }
        amounts |= {(d, *until): spent(energies.joules, d, [until]) for d in wholes}
    return Seen(
        told,
        window,
        what,
        absolute,
        _Reduced(parts, wholes, storage, amounts),
        [*kept, *(costs[d] for d in wholes)],
        idle,
    )


def _together(costs: Sequence[Cost]) -> Cost:
    """Several domains as one."""
    first = costs[0]
    return first._replace(
        absolute=total(c.absolute for c in costs),
        share=first.share,
        excess=total(c.excess for c in costs),
        stall=total(c.stall for c in costs),
        drain=total(c.drain for c in costs),
        extra=total(c.extra for c in costs),
    )


class Priced(NamedTuple):
    """One checkpoint's bill under the scenario."""

    of: str
    bill: MeasuredBill
    failed: bool

    def amount(self, quantity: LineField) -> float:
        return float(self.bill.bill.total(quantity))


class Totals(NamedTuple):
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


class Tally:
    """All that is known of what checkpoints cost. `price` and `take` may take some milliseconds;
    the rest is quick."""

    def __init__(self) -> None:
        self.prices = Prices(None, None)
        self.seen: dict[int, Seen] = {}
        self.priced: dict[int, Priced] = {}
        self._totals: Totals | None = None

    def take(self, number: int, seen: Seen) -> None:
        self.seen[number] = seen
        self._price_one(number)
        self._totals = None

    def price(self, desk: Desk, parts: Sequence[str], hosts: Sequence[str], world: int) -> None:
        """`parts`: the domains that add up, of which the GPUs are counted; `world`: ranks, as marks
        say."""
        self.prices = prices_of(desk, parts, hosts, world)
        self.priced = {}
        for number in self.seen:
            self._price_one(number)
        self._totals = None

    def _price_one(self, number: int) -> None:
        s, machine = self.prices.scenario, self.prices.machine
        if s is None or machine is None:
            return
        seen = self.seen[number]
        measured = cast(
            Measured, SimpleNamespace(energies=seen.energies, costs=seen.costs, idle=seen.idle)
        )
        if seen.contents.of == "load":
            bill = bill_of_load(measured, seen.window, s, machine.gpus)
        else:
            bill = bill_of_save(measured, seen.window, seen.contents.bytes, s, machine.gpus)
        self.priced[number] = Priced(seen.contents.of, bill, bool(seen.contents.error))

    @property
    def totals(self) -> Totals:
        if self._totals is None:
            self._totals = _totals(
                [one for one in self.priced.values() if one.of != "load" and not one.failed]
            )
        return self._totals


def _totals(saves: Sequence[Priced]) -> Totals:
    amounts: dict[LineField, float] = {}
    known: dict[LineField, int] = {}
    least: dict[LineField, float] = {}
    for quantity in SUMMED:
        held_up = [
            one.bill.bill
            for one in saves
            if not isnan(getattr(one.bill.bill.line("gpu_wait"), quantity))
        ]
        lines = [
            float(v)
            for bill in held_up
            for line in bill.lines
            if not isnan(v := getattr(line, quantity))
        ]
        least[quantity] = sum(lines) if lines else nan
        each = [value for one in saves if not isnan(value := one.amount(quantity))]
        amounts[quantity], known[quantity] = (sum(each) if each else nan), len(each)
    lines_j: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for one in saves:
        in_sum = not known["energy_j"] or not isnan(one.amount("energy_j"))
        for name, energy in one.bill.energies.items():
            if not energy.known:
                reasons.setdefault(name, []).append(energy.why)
            elif in_sum:
                lines_j[name] = lines_j.get(name, 0.0) + energy.value
    lacking = {
        name: (max(set(codes), key=codes.count), len(codes)) for name, codes in reasons.items()
    }
    return Totals(amounts, known, len(saves), least, lines_j, lacking)


def prices_of(desk: Desk, parts: Sequence[str], hosts: Sequence[str], world: int) -> Prices:
    """The desk's scenario, put onto the machine that is read."""
    try:
        resolved = desk.resolved()
        marks = [Mark(0.0, "note", detail={"world": world})] if world else []
        seen = SimpleNamespace(
            run=SimpleNamespace(hosts=tuple(hosts), marks=marks),
            energies=SimpleNamespace(parts=list(parts)),
        )
        machine = machine_of(cast(Measured, seen), resolved)
        return Prices(on_machine(resolved.scenario, machine.job_gpus, machine), machine)
    except CkptcostError as error:
        return Prices(None, None, str(error))
