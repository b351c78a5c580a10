"""When a result needs a word of caution: each a code, whether it holds, and the two numbers that
decided it.

The words live in `present`; a code means the same in every output.
"""

from __future__ import annotations

from math import nan
from typing import Any, Literal, NamedTuple

import numpy as np

from ckptcost.first.core.domain import Number, Scenario, Tier
from ckptcost.first.core.money import kept_saves
from ckptcost.first.core.numeric import isnan, minimum, or_otherwise, ratio
from ckptcost.first.core.outcome import HOPELESS_GOODPUT, Outcome, busiest_s
from ckptcost.first.core.size import full_bytes
from ckptcost.first.core.timing import Save, buffers, nodes_of, staged_bytes

KEEPING_DOMINATES = 0.25
"""share of a bill from which keeping what was saved decides it, not saving it"""
A_FEW = 3.0
"""saves that frameworks keep unless told otherwise"""

GRID_STEP_W = 10e6
"""a job that falls and rises by so much within seconds is felt by those who supply it"""


COLLECTIVE_TIMEOUT_S = 600.0
"""NCCL's default in PyTorch; other backends wait 1,800 s      [pytorch-nccl-timeout]"""
NEAR_TIMEOUT_S = COLLECTIVE_TIMEOUT_S / 2.0
"""a usual save of that length passes the timeout now and then"""


class Caution(NamedTuple):
    code: str
    holds: Any
    value: Number
    limit: Number
    slow: float = nan
    """what 99 of 100 draws from the inputs' ranges stay below, where the rule looks at that"""


class HostRam(NamedTuple):
    """Host memory of the busiest node while a save is under way; NaN where it is not known."""

    copies_bytes: Number
    """copies on their way to storage, and those kept on a tier in memory"""
    used_bytes: Number
    """what the job holds besides"""
    there_bytes: Number

    @property
    def needed_bytes(self) -> Number:
        return self.copies_bytes + self.used_bytes

    @property
    def least_bytes(self) -> Number:
        """What is needed at least, whatever the job holds."""
        return self.copies_bytes + or_otherwise(self.used_bytes, 0.0)


def host_ram(s: Scenario, saves: Number) -> HostRam:
    """Whether a save fits into the memory of a node.

    Asynchronous saves are copied whole, one copy in flight beside the other, within
    `cluster.staging_budget`. So is a synchronous save whose stages do not overlap; one that streams
    through needs next to nothing.
    """
    p, c = s.policy, s.cluster
    copy_bytes = staged_bytes(s.checkpoint, c)
    staged = buffers(p) if p.mode == "async" else 0.0 if p.pipelined else 1.0
    copies_bytes = minimum(minimum(staged, saves) * copy_bytes, c.staging_budget_bytes)
    if s.tier.in_memory:
        kept_bytes = full_bytes(s.checkpoint) / nodes_of(c)
        copies_bytes = copies_bytes + minimum(p.keep_last, saves) * kept_bytes
    return HostRam(copies_bytes, c.node_ram_used_bytes, c.node_ram_bytes)


def ram_verdict(ram: HostRam) -> Literal["fits", "too much", "unknown"]:
    """Never surer than the figures: copies alone may be too much, but only with the job's own they
    can fit.

    >>> (
    ...     ram_verdict(HostRam(4 * 61.0, 4 * 78.0, 512.0)),
    ...     ram_verdict(HostRam(4 * 40.0, 4 * 78.0, 512.0)),
    ... )
    ('too much', 'fits')
    """
    if ram.least_bytes > ram.there_bytes:
        return "too much"
    if ram.copies_bytes == 0 or ram.needed_bytes <= ram.there_bytes:
        return "fits"
    return "unknown"


def held_at_once_bytes(s: Scenario, saved: Save) -> Number:
    """Largest amount of checkpoint data the first tier holds during the run."""
    return saved.stored_bytes * s.policy.keep_last


def drive_writes_per_s(tier: Tier, written_bytes: Number, cycle_s: Number) -> Number:
    """Full-capacity writes per second that checkpoints alone cause.

    >>> drive_writes_per_s(
    ...     Tier(capacity_bytes=7.68e12), written_bytes=39.54 * 2**40, cycle_s=28295.0
    ... ) * 86400  # Micron's trace
    17.285...
    """
    return ratio(written_bytes / tier.capacity_bytes, cycle_s)


def keeping_shares(s: Scenario, o: Outcome) -> tuple[Number, Number]:
    """Share of the dollars that goes into keeping checkpoints: as planned, and with only a few on
    every tier.

    Capacity that is provisioned costs the same however much of it is used.
    """
    most = 1e300  # a run without end costs without end: no difference of infinities
    total = minimum(o.run.total("cost_usd"), most)
    keeping: Number = 0.0
    few: Number = 0.0
    p = s.policy
    second_saves = o.saves / p.second_every
    tiers = (
        ("", s.tier, o.saves, p.keep_last),
        ("second_", s.second_tier, second_saves, p.second_keep_last),
        ("third_", s.third_tier, second_saves / p.third_every, p.third_keep_last),
    )
    held = {line.id: line.cost_usd for line in o.run.lines}
    for prefix, tier, saves, keep_last in tiers:
        if tier is None or prefix + "retention" not in held:
            continue
        now = minimum(or_otherwise(held[prefix + "retention"], 0.0), most)
        fewer = ratio(kept_saves(saves, minimum(keep_last, A_FEW)), kept_saves(saves, keep_last))
        keeping = keeping + now
        few = few + now * (1.0 if tier.billed_on == "provisioned" else fewer)
    return ratio(keeping, total), ratio(few, total - keeping + few)


def _collective_timeout(o: Outcome, spread: Outcome | None) -> Caution:
    stall_s = o.cycle.stall_s
    drawn_s = np.asarray(nan if spread is None else spread.cycle.stall_s, dtype=float)
    known_s = drawn_s[~np.isnan(drawn_s)] if drawn_s.ndim else np.empty(0)
    slow_s = nan
    if np.ndim(stall_s) == 0 and len(known_s):
        slow_s = float(np.quantile(known_s, 0.99, method="higher"))
    holds = _ok(stall_s > NEAR_TIMEOUT_S) | (slow_s > NEAR_TIMEOUT_S)
    return Caution("COLLECTIVE_TIMEOUT", holds, stall_s, NEAR_TIMEOUT_S, slow_s)


def cautions_of(s: Scenario, o: Outcome, spread: Outcome | None = None) -> list[Caution]:
    """All rules, each with its verdict; an unknown input never raises a caution by itself. With
    `spread`, the outcome over draws from the inputs' ranges, a timeout is held against the slowest
    save of a hundred."""
    p, saved, c = s.policy, o.plan.saved, s.cluster
    rate = o.plan.failures_per_s
    cycle_s = o.interval_s + o.cycle.stall_s
    step_w = o.gpu_step_w + or_otherwise(o.host_step_w, 0.0)
    ram = host_ram(s, o.saves)
    keeping, keeping_few = keeping_shares(s, o)
    found = [
        Caution(
            "KEEPING_DOMINATES",  # of a run without end nothing is a share
            _ok(keeping > KEEPING_DOMINATES) & _ok(o.goodput >= HOPELESS_GOODPUT),
            keeping,
            keeping_few,
        ),
        Caution("NEVER_FINISHES", ~_ok(o.goodput >= HOPELESS_GOODPUT), o.goodput, HOPELESS_GOODPUT),
        Caution("NO_SAVE_IN_RUN", _ok(o.asked_s > s.work_s), o.asked_s, s.work_s),
        Caution("POWER_STEP", _ok(step_w > GRID_STEP_W), step_w, GRID_STEP_W),
        _collective_timeout(o, spread),
        Caution("STALL_NEAR_MTBF", _ok(rate * o.cycle.stall_s > 0.1), rate * o.cycle.stall_s, 0.1),
        Caution(
            "RECOVERY_NEAR_MTBF",
            _ok(rate * o.plan.recovery.exposed_s > 0.2),
            rate * o.plan.recovery.exposed_s,
            0.2,
        ),
        Caution(
            "STALL_OVER_INTERVAL",
            _ok(o.cycle.stall_s > o.interval_s),
            o.cycle.stall_s,
            o.interval_s,
        ),
        Caution(
            "CAPACITY",
            _ok(
                minimum(held_at_once_bytes(s, saved), o.saves * saved.stored_bytes)
                > s.tier.capacity_bytes
            ),
            held_at_once_bytes(s, saved),
            s.tier.capacity_bytes,
        ),
        Caution(
            "DRIVE_WEAR",
            _ok(
                drive_writes_per_s(s.tier, saved.written_bytes, cycle_s) > s.tier.drive_writes_per_s
            ),
            drive_writes_per_s(s.tier, saved.written_bytes, cycle_s),
            s.tier.drive_writes_per_s,
        ),
        Caution(
            "NAMEPLATE_POWER",
            _ok(isnan(s.tier.write_j_per_byte))
            & _ok(isnan(s.tier.idle_w))
            & _ok(s.tier.active_w > 0),
            s.tier.active_w,
            0.0,
        ),
        Caution(
            "MEAN_OF_RATES",
            _ok(s.tier.rate_spread_fraction > 0.1),
            s.tier.rate_spread_fraction,
            0.1,
        ),
        Caution(
            "MEAN_OF_READ_RATES",
            _ok(s.tier.read_spread_fraction > 0.1),
            s.tier.read_spread_fraction,
            0.1,
        ),
        Caution(
            "SCALED_TIME",
            _ok(abs(ratio(saved.written_bytes, s.tier.timed_bytes) - 1.0) > 0.01),
            saved.written_bytes,
            s.tier.timed_bytes,
        ),
        Caution(
            "HOST_RAM", _ok(ram.least_bytes > ram.there_bytes), ram.least_bytes, ram.there_bytes
        ),
    ]
    if p.mode == "sync":
        found.append(
            Caution(
                "NO_FIXED_TIME",
                _ok(o.cycle.stall_s < 1.0)
                & _ok(s.tier.setup_s == 0)
                & _ok(isnan(s.tier.save_time_s)),
                o.cycle.stall_s,
                1.0,
            )
        )
    if p.mode == "async":
        asked_cycle_s = o.asked_s + p.slowdown_fraction * saved.lag_s + saved.stall_s
        each_s = busiest_s(o.plan, p) / p.in_flight
        wanted_bytes = buffers(p) * staged_bytes(s.checkpoint, c)
        found += [
            Caution(
                "PERSIST_OVER_INTERVAL",
                _ok(each_s > asked_cycle_s * (1.0 + 1e-9)),
                each_s,
                asked_cycle_s,
            ),
            Caution(
                "STAGING_BUDGET",
                _ok(wanted_bytes > c.staging_budget_bytes),
                wanted_bytes,
                c.staging_budget_bytes,
            ),
        ]
    if s.second_tier is None and s.tier.survives == "process":
        found.append(
            Caution(
                "COPY_DIES_WITH_NODE",
                _ok(rate * s.failures.node_loss_fraction > 0),
                s.failures.node_loss_fraction,
                0.0,
            )
        )
    if o.plan.second is not None:
        found.append(
            Caution(
                "SECOND_TIER_TOO_SLOW",
                _ok(o.plan.second.write_s > p.second_every * cycle_s),
                o.plan.second.write_s,
                p.second_every * cycle_s,
            )
        )
        if p.mode == "async":
            lags_s = saved.lag_s + o.plan.second.lag_s
            found.append(
                Caution("SECOND_LAG_NEAR_MTBF", _ok(rate * lags_s > 0.1), rate * lags_s, 0.1)
            )
    return found


def _ok(flag: Any) -> Any:
    """A verdict that can be combined with & and ~ whether it is one truth or many."""
    return np.asarray(flag) if not isinstance(flag, bool) else np.bool_(flag)
