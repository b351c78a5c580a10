"""Seconds of one save and of one load."""

from __future__ import annotations

from typing import NamedTuple

from ckptcost.first.core.domain import UNLIMITED, Checkpoint, Cluster, Number, Policy, Tier
from ckptcost.first.core.numeric import (
    any_of,
    ceil,
    isnan,
    maximum,
    minimum,
    or_otherwise,
    ratio,
    where,
)
from ckptcost.first.core.size import full_bytes, mean_load_bytes, mean_save_bytes


class Save(NamedTuple):
    """One completed save: how long training stands still, how long until the bytes are safe, and
    what is written."""

    stall_s: Number
    """training held up (sync: the whole save; async: the copy out of GPU memory)"""
    lag_s: Number
    """from the end of the stall to the instant the save can be recovered from (sync: 0)"""
    write_s: Number
    """storage busy writing"""
    written_bytes: Number
    stored_bytes: Number
    wire_bytes_per_s: Number
    """rate of the narrowest place between GPU memory and the medium"""


def nodes_of(cluster: Cluster) -> Number:
    return ceil(cluster.gpus / cluster.gpus_per_node)


def write_rate_bytes_per_s(tier: Tier, cluster: Cluster) -> Number:
    """Narrowest of system, node clients, node links and GPU paths: min(array, N*client, N*nic,
    N_gpu*path).

    Where the time of a whole save was measured, its bytes over that time.
    """
    nodes = nodes_of(cluster)
    system = minimum(
        tier.write_bytes_per_s, _provisioned_rate(tier.capacity_bytes, tier.write_per_s)
    )
    narrowest = minimum(
        minimum(system, nodes * minimum(tier.node_write_bytes_per_s, _nic(tier, cluster))),
        cluster.gpus * tier.gpu_write_bytes_per_s,
    )
    if _absent(tier.save_time_s):
        return narrowest
    return or_otherwise(ratio(tier.timed_bytes, tier.save_time_s), narrowest)


def read_rate_bytes_per_s(tier: Tier, cluster: Cluster) -> Number:
    """As `write_rate_bytes_per_s`, for reading back."""
    nodes = nodes_of(cluster)
    system = minimum(tier.read_bytes_per_s, _provisioned_rate(tier.capacity_bytes, tier.read_per_s))
    narrowest = minimum(
        minimum(system, nodes * minimum(tier.node_read_bytes_per_s, _nic(tier, cluster))),
        cluster.gpus * tier.gpu_read_bytes_per_s,
    )
    if _absent(tier.load_time_s):
        return narrowest
    return or_otherwise(ratio(tier.timed_bytes, tier.load_time_s), narrowest)


def _provisioned_rate(capacity_bytes: Number, per_s: Number) -> Number:
    rate = capacity_bytes * per_s
    return where(rate != rate, float("inf"), rate)


def _nic(tier: Tier, cluster: Cluster) -> Number:
    """A node's link counts only where the bytes leave the node."""
    return float("inf") if tier.boundary in ("drive", "node") else cluster.node_nic_bytes_per_s


def drain_s(
    bytes_: Number,
    rate_bytes_per_s: Number,
    straggler_factor: Number = 1.0,
    setup_s: Number = 0.0,
    files: Number = 0.0,
    files_per_s: Number = float("inf"),
) -> Number:
    """Time until the slowest writer is done: setup + files/rate + sigma*bytes/rate.

    >>> drain_s(bytes_=2e12, rate_bytes_per_s=2e9)
    1000.0
    """
    return setup_s + ratio(files, files_per_s) + straggler_factor * ratio(bytes_, rate_bytes_per_s)


def copy_s(
    bytes_: Number, gpus: Number, gpu_d2h_bytes_per_s: Number, straggler_factor: Number = 1.0
) -> Number:
    """Time of the copy from GPU to host memory, all GPUs at once."""
    return straggler_factor * ratio(bytes_, gpus * gpu_d2h_bytes_per_s)


def fixed_s(checkpoint: Checkpoint, tier: Tier) -> Number:
    """Time of a save that no bandwidth shortens; a measured time of the whole save contains it."""
    setup_s = tier.setup_s + ratio(checkpoint.files, tier.files_per_s)
    return setup_s if _absent(tier.save_time_s) else where(isnan(tier.save_time_s), setup_s, 0.0)


def buffers(policy: Policy) -> Number:
    """Copies in host memory at the same time: one for each drain, and one more to copy into while
    all drain."""
    return policy.in_flight + (1.0 if policy.staging == "before" else 0.0)


def staged_bytes(checkpoint: Checkpoint, cluster: Cluster) -> Number:
    """Copy of one full save in the host memory of the busiest node."""
    copies = checkpoint.replicas_writing * checkpoint.straggler_factor
    return full_bytes(checkpoint) * copies / nodes_of(cluster)


def spilled_fraction(checkpoint: Checkpoint, cluster: Cluster, policy: Policy) -> Number:
    """Share of a save's bytes that its buffer cannot hold, and that drain before training goes on.

    The copies in flight share the budget evenly. The mean over full saves and deltas: each spills
    what is over its buffer.
    """
    buffer_bytes = cluster.staging_budget_bytes / buffers(policy)
    full = staged_bytes(checkpoint, cluster)
    every, delta = checkpoint.full_every, checkpoint.delta_fraction * full
    nothing = 0.0 * full
    spilled_bytes = maximum(nothing, full - buffer_bytes) + (every - 1.0) * maximum(
        nothing, delta - buffer_bytes
    )
    return ratio(spilled_bytes, full + (every - 1.0) * delta)


def save(
    checkpoint: Checkpoint, tier: Tier, cluster: Cluster, policy: Policy, staged: bool = True
) -> Save:
    """One save on one tier; not `staged` where it is fed by a nearer tier and not from the GPUs."""
    size_bytes = mean_save_bytes(
        full_bytes(checkpoint), checkpoint.full_every, checkpoint.delta_fraction
    )
    moved_bytes = size_bytes * checkpoint.replicas_writing
    written_bytes = moved_bytes / checkpoint.compression_ratio
    rate = write_rate_bytes_per_s(tier, cluster)
    setup_s = fixed_s(checkpoint, tier)
    moving_s = checkpoint.straggler_factor * ratio(written_bytes, rate)
    timed = not _absent(tier.save_time_s)
    if timed:
        moving_s = or_otherwise(tier.save_time_s * ratio(written_bytes, tier.timed_bytes), moving_s)
    write_s = setup_s + moving_s
    squeeze_s = checkpoint.straggler_factor * ratio(moved_bytes, checkpoint.compress_bytes_per_s)
    d2h_s = copy_s(
        moved_bytes, cluster.gpus, cluster.gpu_d2h_bytes_per_s, checkpoint.straggler_factor
    )
    if policy.pipelined:
        behind_s = maximum(moving_s, squeeze_s)
        through_s = setup_s + maximum(behind_s, d2h_s)
    else:
        behind_s = moving_s + squeeze_s
        through_s = setup_s + behind_s + d2h_s
    if policy.mode == "async":
        # staging never reaches the rate of the link: it synchronises, gathers and copies many
        # pieces
        copied = minimum(cluster.gpu_d2h_bytes_per_s, policy.gpu_snapshot_bytes_per_s)
        snapshot_s = copy_s(moved_bytes, cluster.gpus, copied, checkpoint.straggler_factor)
        stall_s = tier.planning_s + or_otherwise(policy.snapshot_s, snapshot_s)
        lag_s = setup_s + behind_s
        if staged and any_of(cluster.staging_budget_bytes != UNLIMITED):
            spilled_s = spilled_fraction(checkpoint, cluster, policy) * behind_s
            stall_s, lag_s = stall_s + spilled_s, lag_s - spilled_s
    else:
        stall_s = through_s + tier.planning_s
        if timed:  # a measured time of the whole save contains its planning
            stall_s = where(isnan(tier.save_time_s), stall_s, through_s)
        lag_s = through_s * 0.0
    narrowest = minimum(rate, cluster.gpus * cluster.gpu_d2h_bytes_per_s)
    return Save(
        stall_s, lag_s, write_s, written_bytes, size_bytes / checkpoint.compression_ratio, narrowest
    )


def load_s(checkpoint: Checkpoint, tier: Tier, cluster: Cluster) -> Number:
    """Time to read the state back and copy it to the GPUs, at once; with an unknown read rate, the
    write rate.

    A measured time of a load takes the place of that, in proportion to the bytes.
    """
    stored_bytes = mean_load_bytes(
        full_bytes(checkpoint), checkpoint.full_every, checkpoint.delta_fraction
    )
    rate = or_otherwise(read_rate_bytes_per_s(tier, cluster), write_rate_bytes_per_s(tier, cluster))
    reading_s = checkpoint.straggler_factor * ratio(
        stored_bytes / checkpoint.compression_ratio * cluster.readers_per_byte, rate
    )
    copying_s = copy_s(
        stored_bytes * cluster.readers_per_byte,
        cluster.gpus,
        cluster.gpu_d2h_bytes_per_s,
        checkpoint.straggler_factor,
    )
    through_s = tier.setup_s + maximum(reading_s, copying_s)
    if _absent(tier.load_time_s):
        return through_s
    stored = stored_bytes / checkpoint.compression_ratio
    return or_otherwise(tier.load_time_s * ratio(stored, tier.timed_bytes), through_s)


def _absent(amount: Number) -> bool:
    """Not known of any: nothing needs to be computed with it."""
    return isinstance(amount, float) and amount != amount


class Cycle(NamedTuple):
    """The save in the rhythm of the run: what a busy background turns the interval and the stall
    into."""

    interval_s: Number
    """training time between two saves that are really made"""
    stall_s: Number
    blocked_s: Number
    """part of the stall that waits for an earlier save to drain"""


def turnaround_s(saved: Save, policy: Policy) -> Number:
    """How long a save keeps its place among those in flight.

    `after`: from the beginning of the copy, for the next copy waits until a buffer is free.
    `before`: the drain alone, for the next copy has a buffer of its own.
    """
    return saved.lag_s if policy.staging == "before" else saved.stall_s + saved.lag_s


def backpressure(
    interval_s: Number,
    saved: Save,
    policy: Policy,
    drag_s: Number = 0.0,
    busy_s: Number | None = None,
) -> Cycle:
    """With m saves in flight a cycle cannot be shorter than turnaround/m: `block` waits, `skip`
    leaves saves out.

    `busy_s` is the turnaround where another tier's is longer than this save's own.

    >>> slow = Save(
    ...     stall_s=1.0,
    ...     lag_s=100.0,
    ...     write_s=100.0,
    ...     written_bytes=1.0,
    ...     stored_bytes=1.0,
    ...     wire_bytes_per_s=1.0,
    ... )
    >>> backpressure(interval_s=30.0, saved=slow, policy=Policy(every=30.0, mode="async")).blocked_s
    70.0
    """
    busy_s = turnaround_s(saved, policy) if busy_s is None else busy_s
    least_s = busy_s / policy.in_flight - saved.stall_s - drag_s
    if policy.when_busy == "skip":
        return Cycle(
            interval_s
            * maximum(1.0, ceil(ratio(policy.in_flight * least_s, interval_s)) / policy.in_flight),
            saved.stall_s,
            0.0 * saved.stall_s,
        )
    blocked_s = maximum(0.0 * interval_s, least_s - interval_s)
    return Cycle(interval_s, saved.stall_s + blocked_s, blocked_s)
