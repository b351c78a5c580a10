"""How a measured time or energy differs from the modelled one, divided among the causes, so that
the parts add up to the whole.

    time = fixed + straggler * bytes / rate + beside

One cause after another is changed from what was modelled to what was measured, in the order in
which `Parts` has them; each part is what its change makes of the time. The order matters where
causes multiply: a part is told at the size that was measured, with the rate after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from ckptcost.first.core import timing
from ckptcost.first.core.domain import Checkpoint, Cluster, Number, Policy, Tier
from ckptcost.first.core.numeric import ratio, where
from ckptcost.first.core.size import full_bytes, mean_load_bytes

_ROUNDING = 1e-12
"""of a time: so little beside the writing comes from subtracting"""


class Course(NamedTuple):
    """What the time of one save or load is made of."""

    moved_bytes: Number
    fixed_s: Number
    """what no bandwidth shortens"""
    rate_bytes_per_s: Number
    """while bytes move; what a mean rank gets, times the ranks"""
    straggler: Number
    """busiest rank over mean rank"""
    beside_s: Number
    """copying and compressing that the writing does not hide"""

    @property
    def moving_s(self) -> Number:
        return self.straggler * ratio(self.moved_bytes, self.rate_bytes_per_s)

    @property
    def time_s(self) -> Number:
        return self.fixed_s + self.moving_s + self.beside_s


class Parts(NamedTuple):
    """Seconds that each cause adds to the modelled time, or takes from it."""

    size_s: Number
    fixed_s: Number
    rate_s: Number
    straggler_s: Number
    beside_s: Number

    @property
    def whole_s(self) -> Number:
        return self.size_s + self.fixed_s + self.rate_s + self.straggler_s + self.beside_s


def parts_of(modelled: Course, resized: Course, measured: Course) -> Parts:
    """Measured less modelled, by cause. `resized` is the model with the measured bytes put in.

    >>> slow = Course(10e9, 1.0, 2e9, 1.0, 0.0)
    >>> parts_of(Course(10e9, 1.0, 4e9, 1.0, 0.0), Course(10e9, 1.0, 4e9, 1.0, 0.0), slow)
    Parts(size_s=0.0, fixed_s=0.0, rate_s=2.5, straggler_s=0.0, beside_s=0.0)
    """
    refixed = resized._replace(moved_bytes=measured.moved_bytes, fixed_s=measured.fixed_s)
    rerated = refixed._replace(rate_bytes_per_s=measured.rate_bytes_per_s)
    straggling = rerated._replace(straggler=measured.straggler)
    times_s = [each.time_s for each in (modelled, resized, refixed, rerated, straggling, measured)]
    return Parts(*(after - before for before, after in pairwise(times_s)))


def modelled_save(checkpoint: Checkpoint, tier: Tier, cluster: Cluster, policy: Policy) -> Course:
    """One save as the model has it, from its begin until it is safe."""
    saved = timing.save(checkpoint, tier, cluster, policy)
    fixed_s = timing.fixed_s(checkpoint, tier)
    rate = timing.write_rate_bytes_per_s(tier, cluster)
    return _with_rest(
        saved.stall_s + saved.lag_s, saved.written_bytes, fixed_s, rate, checkpoint.straggler_factor
    )


def modelled_load(checkpoint: Checkpoint, tier: Tier, cluster: Cluster) -> Course:
    """One load as the model has it; the bytes are those that all ranks read together."""
    stored_bytes = mean_load_bytes(
        full_bytes(checkpoint), checkpoint.full_every, checkpoint.delta_fraction
    )
    read_bytes = stored_bytes / checkpoint.compression_ratio * cluster.readers_per_byte
    rate = timing.read_rate_bytes_per_s(tier, cluster)
    return _with_rest(
        timing.load_s(checkpoint, tier, cluster),
        read_bytes,
        tier.setup_s,
        rate,
        checkpoint.straggler_factor,
    )


def _with_rest(
    time_s: Any, moved_bytes: Number, fixed_s: Number, rate: Number, straggler: Number
) -> Course:
    bare = Course(moved_bytes, fixed_s, rate, straggler, 0.0)
    beside_s: Any = time_s - bare.time_s
    return bare._replace(
        beside_s=where(abs(beside_s) <= _ROUNDING * abs(time_s), 0.0 * time_s, beside_s)
    )


def resize_checkpoint(checkpoint: Checkpoint, factor: Number) -> Checkpoint:
    """The same checkpoint, larger or smaller: what is written and read of it grows by the
    factor."""
    return replace(checkpoint, size_bytes=full_bytes(checkpoint) * factor)


def measured_course(
    time_s: Number, moved_bytes: Number, fixed_s: Number, beside_s: Number, straggler: Number = 1.0
) -> Course:
    """What was measured; its rate is the one that the time leaves for the bytes.

    >>> measured_course(time_s=10.0, moved_bytes=16e9, fixed_s=1.0, beside_s=1.0).rate_bytes_per_s
    2000000000.0
    """
    return Course(
        moved_bytes,
        fixed_s,
        ratio(straggler * moved_bytes, time_s - fixed_s - beside_s),
        straggler,
        beside_s,
    )


def product_parts(
    amount: Number, each: Number, other_amount: Number, other_each: Number
) -> tuple[Number, Number]:
    """(part of the amount, part of the price of each) of other_amount * other_each - amount * each:
    seconds and watts, bytes and J/byte.

    >>> product_parts(amount=10.0, each=300.0, other_amount=20.0, other_each=310.0)
    (3000.0, 200.0)
    """
    of_amount = (other_amount - amount) * each
    return of_amount, other_amount * other_each - amount * each - of_amount


def main_part(parts: Mapping[str, float], whole: float) -> str:
    """Which part explains most of the whole: the largest in its direction; of a whole of nothing
    the largest either way.

    >>> main_part({"size": -9.0, "rate": 12.0, "fixed": 1.0}, 4.0)
    'rate'
    """
    return max(parts, key=lambda name: parts[name] * whole if whole else abs(parts[name]))
