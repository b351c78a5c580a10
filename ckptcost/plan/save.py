"""One save and one load: from sizes and rates to seconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ckptcost.plan.arrays import orelse
from ckptcost.scenario.schema import Array, Tier, World

USUAL_RATE = 10e9
"""bytes/s at which `tier.usual_energy` holds"""


def nodes(w: World) -> Array:
    return np.ceil(w.cluster.gpus / w.cluster.gpus_per_node)


def full_size(w: World) -> Array:
    c = w.checkpoint
    return orelse(c.size, c.params * c.bytes_per_param + c.extra)


def mean_size(w: World) -> Array:
    """Bytes of the average save, before compression: one full save and deltas."""
    k = w.checkpoint
    return full_size(w) * (1.0 + (k.full_every - 1.0) * k.delta_fraction) / k.full_every


# --- rates --------------------------------------------------------------------------------------


class Limits(NamedTuple):
    """Rates of all that a byte passes; the narrowest decides."""

    system: Array
    provisioned: Array
    clients: Array
    links: Array
    gpus: Array

    def narrowest(self) -> Array:
        least = self[0]
        for each in self[1:]:
            least = np.minimum(least, each)
        return least


def is_inside(tier: Tier) -> Any:
    """Inside the nodes: no network, no rent of its own, and a rate that grows with the nodes."""
    return (tier.boundary == "drive") | (tier.boundary == "node")


def known_clients(tier: Tier) -> Array:
    """Node clients with which the rate of one was measured.

    Where a shared tier says neither that nor any limit of the whole system, it is one client: the
    rate of all together was not measured.
    """
    unlimited = np.isinf(tier.write) & np.isnan(tier.capacity) & np.isfinite(tier.node_write)
    silent = ~is_inside(tier) & np.isinf(tier.clients) & unlimited
    return np.where(is_inside(tier), np.inf, np.where(silent, 1.0, tier.clients))


def grown(amount: Array, known: Array, power: Array) -> Array:
    """An amount that counts in full up to what is known, and with a power beyond it."""
    return amount * np.maximum(1.0, amount / known) ** (power - 1.0)


def limits(w: World, tier: Tier, way: str, burst: bool = False) -> Limits:
    """Beyond the clients and the capacity that were measured, rates grow with `tier.scaling`.

    A burst rate takes the place of the rate that is given: of one node for a tier inside the nodes,
    of the whole system otherwise.
    """
    c, inside, n = w.cluster, is_inside(tier), nodes(w)
    share = np.where(inside, 1.0, tier.share)
    system, node = getattr(tier, way), getattr(tier, f"node_{way}")
    held = grown(tier.capacity, tier.known_capacity, tier.scaling)
    provisioned = orelse(held * getattr(tier, f"{way}_per_capacity"), np.inf)
    if burst:
        node = np.where(inside, tier.burst_write, node)
        system = np.where(inside, system, tier.burst_write)
        provisioned = np.where(inside, provisioned, np.inf)
    return Limits(
        share * system,
        share * provisioned,
        share * grown(n, known_clients(tier), tier.scaling) * node,
        n * np.where(inside, np.inf, c.node_nic),
        c.gpus * getattr(tier, f"gpu_{way}"),
    )


def rate(w: World, tier: Tier, way: str) -> Array:
    """Sustained bytes/s of the job's writing or reading; measured where a whole save was timed."""
    measured = tier.save_time if way == "write" else tier.load_time
    return orelse(tier.timed_size / measured, limits(w, tier, way).narrowest())


def limit_unknown(w: World, tier: Tier, way: str = "write") -> Any:
    """Whether the rate lies beyond what was measured in all, by clients or by capacity, while no
    limit of the whole system is known."""
    share = np.where(is_inside(tier), 1.0, tier.share)
    clients, capacity = known_clients(tier), tier.known_capacity
    by_clients = share * clients * getattr(tier, f"node_{way}")
    by_capacity = share * capacity * getattr(tier, f"{way}_per_capacity")
    least = limits(w, tier, way).narrowest() * (1.0 - 1e-9)
    measured = tier.save_time if way == "write" else tier.load_time
    sized = np.isfinite(tier.capacity * getattr(tier, f"{way}_per_capacity"))
    beyond = np.where(
        sized,
        (tier.capacity > capacity) & (least > by_capacity),
        (nodes(w) > clients) & (least > by_clients),
    )
    return beyond.astype(bool) & np.isinf(getattr(tier, way)) & np.isnan(measured)


def own_rate(w: World, tier: Tier) -> Array:
    """Write rate of the tier itself, whatever share of it the job gets or can take."""
    found = limits(w, tier, "write")
    share = np.where(is_inside(tier), 1.0, tier.share)
    own = np.minimum(found.system, found.provisioned) / share
    own = np.where(np.isfinite(own), own, found.clients / share)
    own = np.where(np.isfinite(own), own, found.narrowest())
    return orelse(tier.timed_size / tier.save_time, own)


def usual_energy(w: World, tier: Tier) -> Array:
    """Joules a byte that storage of this kind takes: a slower system takes more on each byte, since
    it draws most of its power at rest. J/B = usual_energy * (rate / 10 GB/s) ** -usual_exponent."""
    return tier.usual_energy * (own_rate(w, tier) / USUAL_RATE) ** -tier.usual_exponent


def writing_time(w: World, tier: Tier, amount: Array) -> Array:
    """Seconds of writing so many bytes: at the burst rate until it is used up, then sustained.

    The burst is taken to have recovered before the next save.
    """
    sustained = amount / rate(w, tier, "write")
    if np.all(np.isnan(tier.burst_write)):
        return sustained
    room = tier.burst_size * np.where(is_inside(tier), nodes(w), 1.0)
    first = np.minimum(amount, room)
    fast = limits(w, tier, "write", burst=True).narrowest()
    both = first / fast + (amount - first) / rate(w, tier, "write")
    return np.where(np.isnan(tier.burst_write), sustained, both)


# --- one save, one load -------------------------------------------------------------------------


@dataclass
class Save:
    """One completed save."""

    stall: Array
    """training waits (sync: the whole save; async: the copy out of GPU memory)"""
    lag: Array
    """from the end of the stall until the save can be recovered from (sync: 0)"""
    write: Array
    """storage busy writing"""
    written: Array
    """bytes, copies included"""
    stored: Array


def save(w: World, tier: Tier, from_gpus: bool = True) -> Save:
    """One save on a tier; one that is fed by a nearer tier is not staged in host memory."""
    k, c, p = w.checkpoint, w.cluster, w.policy
    mean = mean_size(w)
    moved = mean * k.replicas_writing
    written = moved / k.compression_ratio
    timed = ~np.isnan(tier.save_time)
    fixed = np.where(timed, 0.0, tier.setup + k.files / tier.files_rate)
    moving = writing_time(w, tier, k.straggler_factor * written)
    moving = orelse(tier.save_time * written / tier.timed_size, moving)
    squeeze = k.straggler_factor * moved / k.compress_rate
    copy = k.straggler_factor * moved / (c.gpus * c.gpu_d2h)
    behind = np.where(p.pipelined, np.maximum(moving, squeeze), moving + squeeze)
    through = fixed + np.where(p.pipelined, np.maximum(behind, copy), behind + copy)

    snapshot = k.straggler_factor * moved / (c.gpus * np.minimum(c.gpu_d2h, p.snapshot_rate))
    snapshot = tier.planning + orelse(p.snapshot, snapshot)
    spilled = spilled_fraction(w) * behind if from_gpus else 0.0
    is_async = p.mode == "async"
    return Save(
        stall=np.where(is_async, snapshot + spilled, through + np.where(timed, 0.0, tier.planning)),
        lag=np.where(is_async, fixed + behind - spilled, 0.0),
        write=fixed + moving,
        written=written,
        stored=mean / k.compression_ratio,
    )


def buffers(w: World) -> Array:
    """Copies in host memory at a time, in asynchronous mode: one for each drain, one to copy into
    meanwhile, and those that the saver holds besides."""
    return w.policy.in_flight + (w.policy.staging == "before") + w.policy.copies


def node_copy(w: World) -> Array:
    """Bytes that one node holds of a full save."""
    k = w.checkpoint
    return full_size(w) * k.replicas_writing * k.straggler_factor / nodes(w)


def host_demand(w: World) -> Array:
    """Bytes of a node's memory that copies of saves take at most."""
    return np.where(w.policy.mode == "async", buffers(w) * node_copy(w), 0.0)


def spilled_fraction(w: World) -> Array:
    """Share of a save that its buffer cannot hold, and that drains before training goes on."""
    k = w.checkpoint
    room = w.cluster.staging_budget / buffers(w)
    full = node_copy(w)
    delta = k.delta_fraction * full
    over = np.maximum(0.0, full - room) + (k.full_every - 1.0) * np.maximum(0.0, delta - room)
    return over / (full + (k.full_every - 1.0) * delta)


def load(w: World, tier: Tier) -> Array:
    """Seconds to read the state back once: the last full save, and half of the deltas since."""
    k, c = w.checkpoint, w.cluster
    stored = full_size(w) * (1.0 + (k.full_every - 1.0) / 2.0 * k.delta_fraction)
    packed = stored / k.compression_ratio
    speed = orelse(rate(w, tier, "read"), rate(w, tier, "write"))
    reading = k.straggler_factor * packed * c.readers_per_byte / speed
    copying = k.straggler_factor * stored * c.readers_per_byte / (c.gpus * c.gpu_d2h)
    through = tier.setup + np.maximum(reading, copying)
    return orelse(tier.load_time * packed / tier.timed_size, through)


def delete_time(w: World) -> Array:
    """Seconds of deleting one old checkpoint: as given, else its bytes over the tier's rate."""
    stored = mean_size(w) / w.checkpoint.compression_ratio
    given = w.policy.delete_time
    return np.where(given > 0, given, stored / w.tier.delete_rate)
