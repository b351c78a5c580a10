"""The bill: one line per cause, each with joules, GPU-seconds, dollars and kgCO2e. Totals are sums
of lines and nothing else.

Three ledgers are never mixed: `marginal` is what the checkpoints and failures add, `allocated` is a
share of what stands there anyway, and `avoidable` is one bill minus another (see `avoidable`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ckptcost.first.core import energy, money
from ckptcost.first.core.domain import Boundary, Number, Scenario, Tier
from ckptcost.first.core.lines import KINDS, OF_THE_JOB, Cause, Ledger
from ckptcost.first.core.numeric import any_of, is_unknown, isnan, or_otherwise, times, where
from ckptcost.first.core.quantities import LineField, derivation
from ckptcost.first.core.timing import Save, nodes_of


class Line(NamedTuple):
    """One cause. A tuple because a million-row sweep and the 100 us bill make a dozen of them
    each."""

    id: str
    cause: Cause
    ledger: Ledger
    boundary: Boundary
    energy_j: Number
    gpu_s: Number
    cost_usd: Number
    location_kgco2e: Number
    market_kgco2e: Number
    embodied_kgco2e: Number
    water_l: Number


class Bill(NamedTuple):
    lines: tuple[Line, ...]

    def of(self, ledger: Ledger = "marginal", cause: Cause | None = None) -> Iterator[Line]:
        return (
            line for line in self.lines if line.ledger == ledger and cause in (None, line.cause)
        )

    def total(
        self, quantity: LineField, ledger: Ledger = "marginal", cause: Cause | None = None
    ) -> Number:
        """Sum of the lines that are known; `unknown` names those left out. Without what GPUs and
        hosts do there is no sum: NaN."""
        total: Number = 0.0
        parts = []
        for line in self.of(ledger, cause):
            value = getattr(line, quantity)
            total = total + or_otherwise(value, 0.0)
            parts.append((isnan(value), line.id in OF_THE_JOB))
        return where(has_no_total(parts), float("nan"), total)

    def unknown(self, quantity: LineField, ledger: Ledger = "marginal") -> tuple[str, ...]:
        return tuple(line.id for line in self.of(ledger) if any_of(isnan(getattr(line, quantity))))

    def line(self, line_id: str) -> Line:
        return next(line for line in self.lines if line.id == line_id)


def has_no_total(parts: Iterable[tuple[Any, bool]]) -> Any:
    """The rule of sums, of every bill: there is no total where nothing is known, or where a part is
    missing that no sum makes sense without. `parts`: whether each is missing, a flag or an array of
    them, and whether it is needed.

    >>> has_no_total([(False, True), (True, False)]), has_no_total([(False, False), (True, True)])
    (False, True)
    """
    nothing: Any = True
    lacking: Any = False
    for missing, needed in parts:
        nothing = nothing & missing
        if needed:
            lacking = lacking | missing
    return nothing | lacking


class Spent(NamedTuple):
    """Seconds in each state and amounts moved and held: all that a bill needs besides the
    scenario's rates."""

    stall_s: Number
    slowed_s: Number
    redone_s: Number
    detect_s: Number
    reschedule_s: Number
    init_s: Number
    load_s: Number
    warmup_s: Number
    saves: Number
    """writes to the first tier, repeated ones included"""
    second_saves: Number
    held_bytes: Number
    second_held_bytes: Number
    wall_s: Number
    """time over which bytes are held and standing cost runs"""
    third_saves: Number = 0.0
    third_held_bytes: Number = 0.0


def states_w(s: Scenario) -> tuple[Number, Number, Number, Number, Number, Number]:
    """IT power of GPUs and of hosts: (GPU train, stall, idle, host train, stall, idle)."""
    c = s.cluster
    nodes = nodes_of(c)
    host_stall_w = or_otherwise(c.host_stall_w, c.host_train_w * c.host_stall_fraction)
    return (
        c.gpus * c.gpu_train_w,
        c.gpus * c.gpu_stall_w,
        c.gpus * c.gpu_idle_w,
        nodes * c.host_train_w,
        nodes * host_stall_w,
        nodes * or_otherwise(c.host_idle_w, host_stall_w),
    )


def save_steps_w(s: Scenario) -> tuple[Number, Number]:
    """How far the power of GPUs and of hosts falls when a save holds training up."""
    gpu_train_w, gpu_stall_w, _, host_train_w, host_stall_w, _ = states_w(s)
    return (
        energy.save_step_w(gpu_train_w, gpu_stall_w),
        energy.save_step_w(host_train_w, host_stall_w),
    )


def stored_j(tier: Tier, saved: Save, pue: Number) -> Number:
    """Facility energy that one save adds at its tier."""
    return energy.write_j(
        saved.written_bytes, tier.write_j_per_byte, saved.write_s, tier.active_w, tier.idle_w, pue
    )


def is_local(tier: Tier) -> bool:
    """Inside the nodes: no network, no rent of its own."""
    return tier.boundary in ("drive", "node")


def electricity_usd_per_j(s: Scenario) -> Number:
    """Tariff on what the job's nodes draw; 0 where the price of GPU time contains it."""
    return 0.0 if s.cluster.price_includes_electricity else s.site.usd_per_j


def storage_usd_per_j(s: Scenario, tier: Tier) -> Number:
    """Tariff on a tier's energy; 0 where another price contains it: the tier's own, or that of the
    rented node it sits in."""
    if is_local(tier) and s.cluster.price_includes_electricity:
        return 0.0
    return where(isnan(tier.usd_per_byte_s) & isnan(tier.usd_per_s), s.site.usd_per_j, 0.0)


def crosses_network(tier: Tier) -> bool:
    """Whether a save leaves its node: to shared storage, or to a peer's memory."""
    return not is_local(tier) or tier.survives != "process"


def billed_bytes(tier: Tier, held_bytes: Number) -> Number:
    """Bytes that the tier's price is paid for: those held, or all that were provisioned."""
    return tier.capacity_bytes if tier.billed_on == "provisioned" else held_bytes


def rent_usd_per_byte_s(tier: Tier) -> Number:
    """Price of keeping a byte; 0 where the tier is paid for as a whole."""
    return where(
        isnan(tier.usd_per_byte_s),
        where(isnan(tier.usd_per_s), tier.usd_per_byte_s, 0.0),
        tier.usd_per_byte_s,
    )


def bill_of(
    s: Scenario, spent: Spent, saved: Save, second: Save | None, third: Save | None = None
) -> Bill:
    """Price what was spent: quantities first, prices last."""
    c, site = s.cluster, s.site
    gpu_train_w, gpu_stall_w, gpu_idle_w, host_train_w, host_stall_w, host_idle_w = states_w(s)
    derive = derivation(s)
    tariff = electricity_usd_per_j(s)

    def line(
        name: str, joules: Number, gpu_s: Number, usd: Number, prefix: str = "", at: Tier = s.tier
    ) -> Line:
        kind = KINDS[name]
        return Line(
            prefix + name,
            kind.cause,
            kind.ledger,
            kind.boundary or at.boundary,
            joules,
            gpu_s,
            usd,
            *derive(joules, gpu_s),
        )

    def held(name: str, time_s: Number, joules: Number) -> Line:
        gpu_s = c.gpus * time_s
        rent_usd = (
            times(gpu_s, c.usd_per_gpu_s)
            if is_unknown(c.usd_per_gpu_s)
            else money.gpu_usd(gpu_s, c.usd_per_gpu_s)
        )
        usd = rent_usd + money.electricity_usd(joules, tariff)
        return line(name, joules, gpu_s, usd)

    def spent_j(time_s: Number, power_w: Number) -> Number:
        if is_unknown(power_w):  # no time at an unknown power is still nothing
            return times(time_s, power_w)
        return energy.spent_j(time_s, power_w, site.pue)

    host_j = spent_j(spent.stall_s, host_stall_w)
    restart_s = spent.detect_s + spent.reschedule_s + spent.init_s + spent.warmup_s
    restart_j = (
        spent_j(spent.detect_s + spent.init_s, gpu_stall_w + host_stall_w)
        + spent_j(spent.reschedule_s, gpu_idle_w + host_idle_w)
        + spent_j(spent.warmup_s, gpu_train_w + host_train_w)
    )
    training_w = gpu_train_w + host_train_w
    lines = [
        held("gpu_wait", spent.stall_s, spent_j(spent.stall_s, gpu_stall_w)),
        line("host_wait", host_j, 0.0, money.electricity_usd(host_j, tariff)),
        held("slowdown", spent.slowed_s, spent_j(spent.slowed_s, training_w)),
        *_storage(s, "", s.tier, saved, spent.saves, spent.held_bytes, spent.wall_s, line),
        held("redone_work", spent.redone_s, spent_j(spent.redone_s, training_w)),
        held("restart", restart_s, restart_j),
        held("loading", spent.load_s, spent_j(spent.load_s, gpu_stall_w + host_stall_w)),
    ]
    for prefix, tier, its, saves, held_bytes in (
        ("second_", s.second_tier, second, spent.second_saves, spent.second_held_bytes),
        ("third_", s.third_tier, third, spent.third_saves, spent.third_held_bytes),
    ):
        if tier is not None and its is not None:
            lines += _storage(s, prefix, tier, its, saves, held_bytes, spent.wall_s, line)
    return Bill(tuple(lines))


def _storage(
    s: Scenario,
    prefix: str,
    tier: Tier,
    saved: Save,
    saves: Number,
    held_bytes: Number,
    wall_s: Number,
    line: Callable[..., Line],
) -> list[Line]:
    """What one tier adds: writing, carrying, requests and keeping; and its standing cost in the
    allocated ledger."""
    pue = s.site.pue
    local = is_local(tier)
    bytes_ = saves * saved.written_bytes
    writing_j = times(saves, stored_j(tier, saved, pue))
    carried_j = (
        energy.carried_j(bytes_, tier.network_j_per_byte, pue)
        if crosses_network(tier)
        else 0.0 * saved.written_bytes
    )
    usd_per_j = storage_usd_per_j(s, tier)
    keeping_usd = (
        0.0
        if local
        else money.keeping_usd(billed_bytes(tier, held_bytes), wall_s, rent_usd_per_byte_s(tier))
    )
    asking_usd = (
        0.0
        if local
        else money.request_usd(bytes_, tier.request_bytes, tier.usd_per_request, tier.usd_per_byte)
    )
    # requests are sold together with bytes: a tier without a price for either does not charge for
    # requests
    free = isnan(tier.usd_per_byte_s) & isnan(tier.usd_per_request) & isnan(tier.usd_per_byte)
    asking_usd = where(free, 0.0, asking_usd)
    standing_usd = money.standing_usd(tier.usd_per_s, held_bytes, tier.capacity_bytes, wall_s)
    standing_j = energy.standing_j(tier.idle_w, held_bytes, tier.capacity_bytes, wall_s, pue)
    found = (
        ("storage_write", writing_j, money.electricity_usd(writing_j, usd_per_j)),
        ("network", carried_j, money.electricity_usd(carried_j, usd_per_j)),
        ("requests", 0.0, asking_usd),
        ("retention", 0.0, keeping_usd),
        ("standing", standing_j, standing_usd),
    )
    return [line(name, joules, 0.0, usd, prefix, tier) for name, joules, usd in found]


def avoidable(
    bill: Bill, reference: Bill, quantity: LineField, ledger: Ledger = "marginal"
) -> Number:
    """What this bill costs over a reference tier's: the third ledger."""
    return bill.total(quantity, ledger) - reference.total(quantity, ledger)
