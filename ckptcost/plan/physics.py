"""The physics: from a World to seconds. Plain functions over arrays.

One value, 4,096 draws and a sweep of tiers and counts are the same call: everything broadcasts.
Synchronous saves, asynchronous ones and a second tier are parameters of one formula. In order:
sizes and rates, one save and one load, how often the job fails, the plan of a run, and its rhythm
of training and saving. What failures cost is in `failures`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ckptcost.plan.arrays import orelse
from ckptcost.plan.failures import Recovery, States, choose, loads, period, repeated, segment
from ckptcost.scenario.schema import Array, Failures, Tier, World

USUAL_RATE = 10e9
"""bytes/s at which `tier.usual_energy` holds"""


# --- sizes and rates ----------------------------------------------------------------------------


def nodes(w: World) -> Array:
    return np.ceil(w.cluster.gpus / w.cluster.gpus_per_node)


def full_size(w: World) -> Array:
    """Bytes of a full checkpoint."""
    c = w.checkpoint
    return orelse(c.size, c.params * c.bytes_per_param + c.extra)


def mean_size(w: World) -> Array:
    """Bytes of the average save, before compression: one full save and deltas."""
    k = w.checkpoint
    return full_size(w) * (1.0 + (k.full_every - 1.0) * k.delta_fraction) / k.full_every


class Limits(NamedTuple):
    """Rates of all that a byte passes; the narrowest decides."""

    system: Array
    provisioned: Array
    clients: Array
    links: Array
    gpus: Array

    def narrowest(self) -> Array:
        return reduce(np.minimum, self)


def is_inside(tier: Tier) -> Any:
    """Inside the nodes: no network, no rent of its own, and a rate that grows with the nodes."""
    return (tier.boundary == "drive") | (tier.boundary == "node")


def share_of(tier: Tier) -> Array:
    """Share of the system's rate that the job gets; nodes share theirs with nobody."""
    return np.where(is_inside(tier), 1.0, tier.share)


def known_clients(tier: Tier) -> Array:
    """Node clients with which the rate of one was measured.

    Where a shared tier says neither that nor any limit of the whole system, it is one client: the
    rate of all together was not measured.
    """
    unlimited = np.isinf(tier.write) & np.isnan(tier.capacity) & np.isfinite(tier.node_write)
    silent = np.isinf(tier.clients) & unlimited
    return np.where(is_inside(tier), np.inf, np.where(silent, 1.0, tier.clients))


def grown(amount: Array, known: Array, power: Array) -> Array:
    """An amount that counts in full up to what is known, and with a power beyond it."""
    return amount * np.maximum(1.0, amount / known) ** (power - 1.0)


def limits(w: World, tier: Tier, way: str, burst: bool = False) -> Limits:
    """Beyond the clients and the capacity that were measured, rates grow with `tier.scaling`.

    A burst rate takes the place of the rate that is given: of one node for a tier inside the nodes,
    of the whole system otherwise.
    """
    c, inside, n, share = w.cluster, is_inside(tier), nodes(w), share_of(tier)
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


def limit_unknown(w: World, tier: Tier) -> Any:
    """Whether the write rate lies beyond what was measured in all, by clients or by capacity, while
    no limit of the whole system is known."""
    clients, capacity = known_clients(tier), tier.known_capacity
    sized = np.isfinite(tier.capacity * tier.write_per_capacity)
    beyond = np.where(sized, tier.capacity > capacity, nodes(w) > clients)
    measured = np.where(sized, capacity * tier.write_per_capacity, clients * tier.node_write)
    more = limits(w, tier, "write").narrowest() * (1.0 - 1e-9) > share_of(tier) * measured
    return beyond.astype(bool) & more & np.isinf(tier.write) & np.isnan(tier.save_time)


def own_rate(w: World, tier: Tier) -> Array:
    """Write rate of the tier itself, whatever share of it the job gets or can take."""
    found = limits(w, tier, "write")
    own = np.minimum(found.system, found.provisioned) / share_of(tier)
    for other in (found.clients / share_of(tier), found.narrowest()):
        own = np.where(np.isfinite(own), own, other)
    return orelse(tier.timed_size / tier.save_time, own)


def usual_energy(w: World, tier: Tier) -> Array:
    """Joules a byte that storage of this kind takes: a slower system takes more on each byte, since
    it draws most of its power at rest. J/B = usual_energy * (rate / 10 GB/s) ** -usual_exponent."""
    return tier.usual_energy * (own_rate(w, tier) / USUAL_RATE) ** -tier.usual_exponent


def writing_time(w: World, tier: Tier, amount: Array) -> Array:
    """Seconds of writing so many bytes: at the burst rate until it is used up, then sustained.

    The burst is taken to have recovered before the next save.
    """
    sustained = rate(w, tier, "write")
    room = tier.burst_size * np.where(is_inside(tier), nodes(w), 1.0)
    first = np.minimum(amount, room)
    fast = limits(w, tier, "write", burst=True).narrowest()
    both = first / fast + (amount - first) / sustained
    return np.where(np.isnan(tier.burst_write), amount / sustained, both)


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

    def longer(self, seconds: Array, mode: Any) -> Save:
        """With more time in the stall, or in the lag if the save is asynchronous."""
        stall = np.where(mode == "async", 0.0, seconds)
        return replace(self, stall=self.stall + stall, lag=self.lag + (seconds - stall))


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
    room, full = w.cluster.staging_budget / buffers(w), node_copy(w)
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


def deletes_serially(w: World) -> Any:
    """Whether a save waits for an old one to go: in its stall, or in its drain if asynchronous."""
    few = np.isfinite(w.policy.keep_last)
    return (w.policy.deleting == "serial") & few & (delete_time(w) > 0)


# --- failures -----------------------------------------------------------------------------------


def failure_rate(w: World) -> Array:
    """Interruptions of the whole job per second."""
    return orelse(1.0 / w.failures.mtbf, summed_rate(w))


def summed_rate(w: World) -> Array:
    """From GPUs, nodes, racks and what all share. Smaller jobs fail more often for their size."""
    f, c = w.failures, w.cluster
    by_size = np.maximum(1.0, f.counted_gpus / c.gpus) ** (1.0 - f.size_exponent)
    own = c.gpus * f.gpu_rate + nodes(w) * f.rate
    return f.rate_factor * by_size * own + f.shared_rate + rack_rate(w)


def rack_rate(w: World) -> Array:
    return np.ceil(nodes(w) / w.failures.nodes_per_rack) * w.failures.rack_rate


def lost_fraction(w: World) -> Array:
    """Share of the failures that the first tier's copy does not survive."""
    racks = orelse(rack_rate(w) / summed_rate(w), 0.0)
    node = racks + (1.0 - racks) * w.failures.node_loss_fraction
    survives = w.tier.survives
    return np.where(survives == "site", 0.0, np.where(survives == "node", racks, node))


def further_back(f: Failures) -> Array:
    """Saves that a failure goes back on average beyond the newest one: past those that cannot be
    loaded, and past those that hold corruption found late."""
    return f.unusable / (1.0 - f.unusable) + f.silent * f.silent_back


# --- the plan of a run, and what asynchronous saving costs training ------------------------------


@dataclass
class Plan:
    """What does not depend on the interval."""

    first: Save
    second: Save
    back: Recovery
    second_back: Recovery
    rate: Array
    lost: Array
    """failures per second that need the second tier"""
    two: Any
    """whether there is one"""


def exists(tier: Tier) -> Any:
    """Whether a second or third tier is given."""
    return (tier.id != "") | np.isfinite(tier.write)


def plan(w: World) -> Plan:
    """With all saves held that are kept, so that each further one has an old one deleted."""
    f, two, rate = w.failures, exists(w.second_tier), failure_rate(w)
    deleting = np.where(deletes_serially(w), delete_time(w), 0.0)

    def back(tier: Tier) -> Recovery:
        loading = loads(load(w, tier), f.unusable, rate)
        return Recovery(f.detect, f.reschedule, f.init, loading, f.warmup)

    return Plan(
        first=save(w, w.tier).longer(deleting, w.policy.mode),
        second=save(w, w.second_tier, from_gpus=False),
        back=back(w.tier),
        second_back=back(w.second_tier),
        rate=rate,
        lost=np.where(two, rate * lost_fraction(w), 0.0),
        two=two,
    )


def before_deletes(w: World, plan: Plan, asked: Array) -> Plan:
    """The plan as it is on average over the run: its first few saves have none to delete."""
    spared = np.minimum(1.0, w.policy.keep_last * asked / w.run.work)
    less = np.where(deletes_serially(w), -delete_time(w) * spared, 0.0)
    return replace(plan, first=plan.first.longer(less, w.policy.mode))


def lost_speed(w: World, tier: Tier) -> Array:
    """Training speed lost while a save drains to a tier: to the saver, and to data that wait."""
    slowdown = w.policy.slowdown
    return slowdown + tier.starves * (1.0 - slowdown)


def drag(w: World, plan: Plan) -> Array:
    """Training time that the drain of a save costs, on the first tier alone."""
    return lost_speed(w, w.tier) * plan.first.lag


def second_drag(w: World, plan: Plan) -> Array:
    """The same for each save, of drains on the second tier."""
    return lost_speed(w, w.second_tier) * _second_lag(w, plan) / w.policy.second_every


def _second_lag(w: World, plan: Plan) -> Array:
    """Of a drain from the first tier to the second; 0 if there is none."""
    return np.where(plan.two, plan.second.lag, 0.0)


def pace(w: World) -> Array:
    """Wall time of a second's training: more than one where asynchronous machinery slows it."""
    return np.where(w.policy.mode == "async", 1.0 / (1.0 - w.policy.pinned), 1.0)


def least_cycle(w: World, plan: Plan) -> Array:
    """The shortest cycle that drains allow: turnaround over the saves in flight."""
    p, first = w.policy, plan.first
    own = np.where(p.staging == "before", first.lag, first.stall + first.lag)
    return np.maximum(own, _second_lag(w, plan) / p.second_every) / p.in_flight


def least_interval(w: World, plan: Plan) -> Array:
    """Training between two saves that leaves a drain just the time it needs; 0 if it needs none.

    This is the interval of continuous checkpointing: the next save begins when the last one is
    safe, as Orbax does it (ContinuousCheckpointingPolicy saves unless one is in progress). The save
    that it makes right after a restart, of the state just loaded, is not counted.
    """
    return np.maximum(0.0, _wanting(w, plan)) / pace(w)


def is_endless(w: World, plan: Plan) -> Any:
    """Whether continuous saving would leave no training between: above all synchronous saving."""
    return (w.policy.interval == 0) & (least_interval(w, plan) <= 0)


def _wanting(w: World, plan: Plan) -> Array:
    """Wall time of a cycle that drains need besides the stall and what they slow down."""
    return least_cycle(w, plan) - plan.first.stall - drag(w, plan)


# --- the rhythm of training and saving ----------------------------------------------------------


@dataclass
class Rhythm:
    interval: Array
    """training between two saves that are really made"""
    stall: Array
    blocked: Array
    """part of the stall that waits for an earlier save to drain"""
    drag: Array
    """training time lost for each save: to drains, and to asynchronous machinery meanwhile"""
    second_stall: Array
    """of one save on the second tier"""


def rhythm(w: World, plan: Plan, asked: Array) -> Rhythm:
    """What a busy background makes of an interval: `block` waits, `skip` leaves saves out.

    An interval of 0 is continuous checkpointing: as short as drains allow, in each world.
    """
    p, stall, short = w.policy, plan.first.stall, _wanting(w, plan)
    continuous = asked == 0
    asked = np.where(continuous, least_interval(w, plan), asked)
    left_out = np.ceil(p.in_flight * short / (asked * pace(w))) / p.in_flight
    skips = (p.when_busy == "skip") & ~continuous
    interval = asked * np.where(skips, np.maximum(1.0, left_out), 1.0)
    waits = np.maximum(0.0, short - asked * pace(w))
    blocked = np.where(skips | continuous, 0.0, waits)
    return Rhythm(
        interval,
        stall + blocked,
        blocked,
        drag(w, plan) + second_drag(w, plan) + interval * (pace(w) - 1.0),
        np.where(plan.two & (p.mode != "async"), plan.second.stall, 0.0),
    )


def states(w: World, plan: Plan, r: Rhythm) -> States:
    """Expected seconds per completed save."""
    p, lag, train = w.policy, plan.first.lag, r.interval + r.drag
    found = segment(train, r.stall, lag, plan.back, plan.rate, r.blocked, p.in_flight)
    if np.any(plan.two):
        two = lag + _second_lag(w, plan), plan.second_back, plan.lost
        spared = plan.rate - plan.lost
        one = train, r.stall, lag, plan.back, spared, p.second_every
        found = choose(plan.two, period(*one, r.second_stall, *two), found)
    return repeated(found, further_back(w.failures), p.second_every)
