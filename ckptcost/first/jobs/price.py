"""Break-even: what a faster tier may cost, so that the same work costs the same as on a slower one,
each at its best interval.

A tier's price contains its electricity, so what storage draws is in neither side; requests are.
"""

from __future__ import annotations

from typing import NamedTuple

from ckptcost.first.core.bill import billed_bytes, is_local
from ckptcost.first.core.domain import UNKNOWN, Tier
from ckptcost.first.core.lines import OF_THE_JOB
from ckptcost.first.core.money import breakeven_usd_per_s
from ckptcost.first.core.numeric import isnan, or_otherwise
from ckptcost.first.core.outcome import Outcome
from ckptcost.first.core.solve import payback_s, worth_usd_per_s
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.gates import gate_of
from ckptcost.first.jobs.model import two_tiers_at_most, unknown_inputs, what_is_missing
from ckptcost.first.jobs.solve import Trials
from ckptcost.first.scenario import DEFAULTS, Resolved

_OF_THE_TIER = ("storage_write", "network", "retention")


class TierSide(NamedTuple):
    """The job on one tier."""

    tier_id: str
    resolved: Resolved
    outcome: Outcome
    lost_usd: float
    """saves and failures, without what the tier itself costs"""
    price_usd_per_s: float
    """what the tier costs by the catalogue: its standing price, or the rent of what is held or
    provisioned there"""
    held_bytes: float
    capacity_bytes: float

    @property
    def goodput(self) -> float:
        return float(self.outcome.goodput)


class Payback(NamedTuple):
    """How long until a purchase has paid."""

    capital_usd: float
    saved_usd_per_s: float
    prices: str
    """which running prices the saving is net of: both | slow | none"""
    time_s: float
    gpu_s: float


class Breakeven(NamedTuple):
    slow: TierSide
    fast: TierSide
    worth_usd_per_s: float
    """the price of the fast tier at which both cost the same; unknown with the slow one's price"""
    premium_usd_per_s: float
    """the same, over the price of the slow tier; a lower bound where that is not known"""
    formula_usd_per_s: float
    """of the GPUs' rent alone: (N*c_g + s_A)*G_B/G_A - N*c_g"""
    below: bool | None
    """whether the fast tier's own price is below it, where both are known"""
    payback: Payback | None


def side_of(resolved: Resolved, keep_interval: bool = False) -> TierSide:
    """The job on the scenario's tier, at the interval that loses least time."""
    s = resolved.scenario
    two_tiers_at_most(s)
    if unknown_inputs(s, "usd"):
        raise what_is_missing(resolved, "usd")
    outcome = (
        Trials(resolved, gate_of("goodput>=0.5", ""), keep_interval).today_at_best(None).outcome
    )
    lost_usd = sum(
        float(line.cost_usd if line.id in OF_THE_JOB else or_otherwise(line.cost_usd, 0.0))
        for line in outcome.run.of()
        if line.id not in _OF_THE_TIER
    )
    held = float(outcome.spent.held_bytes)
    return TierSide(
        str(resolved.words.get("tier.id", "tier")),
        resolved,
        outcome,
        lost_usd,
        UNKNOWN if _is_assumed(resolved) else price_of(s.tier, held),
        held,
        float(s.tier.capacity_bytes),
    )


def _is_assumed(resolved: Resolved) -> bool:
    """Whether the tier's price is the wide range of tiers that publish one: too wide to say of a
    price that it is below another."""
    return any(
        each.path == "tier.storage_price" and each.origin == DEFAULTS for each in resolved.inputs
    )


def price_of(tier: Tier, held_bytes: float) -> float:
    """Running price of a tier to the job; none of its own inside the nodes."""
    if not isnan(tier.usd_per_s):
        return float(tier.usd_per_s)
    if is_local(tier):
        return 0.0
    return float(billed_bytes(tier, held_bytes) * tier.usd_per_byte_s)


def breakeven(slow: TierSide, fast: TierSide, capital_usd: float | None = None) -> Breakeven:
    """Both runs do the same work; the tier's price is what evens them out."""
    slow_wall_s, fast_wall_s = float(slow.outcome.wall_s), float(fast.outcome.wall_s)
    for side in (slow, fast):
        if not side.goodput > 0:
            raise InputError(
                f"the run never ends on {side.tier_id}",
                where="solve price",
                remedy="no price evens that out",
            )
    cluster = fast.resolved.scenario.cluster

    def worth(price_usd_per_s: float) -> float:
        return float(
            worth_usd_per_s(slow.lost_usd, slow_wall_s, price_usd_per_s, fast.lost_usd, fast_wall_s)
        )

    slow_price, fast_price = slow.price_usd_per_s, fast.price_usd_per_s
    even = worth(slow_price)
    premium = worth(0.0) if isnan(even) else even - slow_price
    payback = None
    if capital_usd is not None:
        prices = "none" if isnan(even) else "slow" if isnan(fast_price) else "both"
        saved = even - fast_price if prices == "both" else premium
        time_s = float(payback_s(capital_usd, saved))
        payback = Payback(capital_usd, saved, prices, time_s, time_s * float(cluster.gpus))
    formula = float(
        breakeven_usd_per_s(
            cluster.gpus,
            cluster.usd_per_gpu_s,
            or_otherwise(slow_price, 0.0),
            slow.goodput,
            fast.goodput,
        )
    )
    below = None if isnan(even) or isnan(fast_price) else fast_price <= even
    return Breakeven(slow, fast, even, premium, formula, below, payback)
