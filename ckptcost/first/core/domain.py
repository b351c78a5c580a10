"""The nouns the arithmetic is written in: frozen values in base units, one number or an array in
each field.

A field's name ends in its unit. NaN means "not known" and survives to the last moment; it is
printed as a dash, never as 0. Each field carries its one-line meaning, which the scenario file
template, the schema and the documentation all show.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.float64]
UNKNOWN = float("nan")
UNLIMITED = float("inf")

Survives = Literal["process", "node", "site"]
Boundary = Literal["drive", "storage-system", "node", "cluster", "facility"]


def _is(meaning: str, default: float | None = None) -> Any:
    """A field with its meaning; without a default the scenario must supply it."""
    if default is None:
        return field(metadata={"meaning": meaning})
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What one save writes."""

    params: Number = _is("all parameters of the model, active or not", UNKNOWN)
    bytes_per_param: Number = _is(
        "bytes saved per parameter: 14 is bf16 weights + fp32 master + Adam moments", UNKNOWN
    )
    extra_bytes: Number = _is("random state, loader position, scheduler and the like", 0.0)
    size_bytes: Number = _is(
        "size of one full checkpoint, where it is known without counting parameters", UNKNOWN
    )
    files: Number = _is("files that one save creates", 1.0)
    replicas_writing: Number = _is(
        "copies written of the same state (write amplification); one of them is kept and billed",
        1.0,
    )
    straggler_factor: Number = _is("bytes of the busiest rank over the mean rank", 1.0)
    full_every: Number = _is("every k-th save is full, the others are deltas; 1 = always full", 1.0)
    delta_fraction: Number = _is("size of a delta over a full save", 1.0)
    compression_ratio: Number = _is("size before over size after lossless compression", 1.0)
    compress_bytes_per_s: Number = _is("rate of the compressor, all ranks together", UNLIMITED)


@dataclass(frozen=True, slots=True)
class Tier:
    """Where a save goes. Rates multiply: the slowest of system, nodes and GPUs decides."""

    write_bytes_per_s: Number = _is("write rate of the whole storage system", UNLIMITED)
    read_bytes_per_s: Number = _is("read rate of the whole storage system", UNLIMITED)
    node_write_bytes_per_s: Number = _is("write rate of one node (client, local drive)", UNLIMITED)
    node_read_bytes_per_s: Number = _is("read rate of one node", UNLIMITED)
    gpu_write_bytes_per_s: Number = _is("write rate of one GPU's own path", UNLIMITED)
    gpu_read_bytes_per_s: Number = _is("read rate of one GPU's own path", UNLIMITED)
    write_per_s: Number = _is("write rate per provisioned byte, e.g. 125 MB/s/TiB", UNLIMITED)
    read_per_s: Number = _is("read rate per provisioned byte", UNLIMITED)
    capacity_bytes: Number = _is("usable (or provisioned) capacity", UNKNOWN)
    rate_spread_fraction: Number = _is(
        "spread (standard deviation over mean) of the published write rate from round to round",
        UNKNOWN,
    )
    read_spread_fraction: Number = _is("the same of the published read rate", UNKNOWN)
    setup_s: Number = _is(
        "planning, fsync, barrier and commit: time of a save that no bandwidth shortens", 0.0
    )
    planning_s: Number = _is(
        "planning and gathering before a save, where training waits for it even if the save is "
        "asynchronous",
        0.0,
    )
    save_time_s: Number = _is(
        "measured time of one whole save, begin to safe; takes the place of rates and setup",
        UNKNOWN,
    )
    load_time_s: Number = _is("measured time of one whole load", UNKNOWN)
    timed_bytes: Number = _is("size of the checkpoint that those two were measured with", UNKNOWN)
    files_per_s: Number = _is("file creations the metadata service sustains", UNLIMITED)
    write_j_per_byte: Number = _is("energy of writing one byte", UNKNOWN)
    active_w: Number = _is("power of the whole tier while it writes", UNKNOWN)
    idle_w: Number = _is("power of the whole tier at rest", UNKNOWN)
    network_j_per_byte: Number = _is("energy of carrying one byte to the tier", UNKNOWN)
    usd_per_byte_s: Number = _is("price of keeping bytes", UNKNOWN)
    usd_per_byte: Number = _is("price of writing one byte, whatever the requests", UNKNOWN)
    usd_per_request: Number = _is("price of one write request", UNKNOWN)
    request_bytes: Number = _is("bytes in one write request", UNKNOWN)
    usd_per_s: Number = _is("standing price of the whole tier, used or not", UNKNOWN)
    drive_writes_per_s: Number = _is("rated full-drive writes, e.g. 1 /day", UNKNOWN)
    in_memory: bool = False
    billed_on: Literal["held", "provisioned"] = "held"
    survives: Survives = "site"
    boundary: Boundary = "storage-system"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Who waits."""

    gpus: Number = _is("accelerators of the job")
    gpus_per_node: Number = _is("accelerators in one node", 8.0)
    gpu_train_w: Number = _is("power of one GPU while it trains", UNKNOWN)
    gpu_stall_w: Number = _is(
        "power of one GPU that is held up by a save, its process still resident", UNKNOWN
    )
    gpu_idle_w: Number = _is("power of one GPU whose process is gone", UNKNOWN)
    host_train_w: Number = _is("power of the rest of one node while it trains", UNKNOWN)
    host_stall_w: Number = _is(
        "power of the rest of one node during a save; unknown = host_stall_fraction of training",
        UNKNOWN,
    )
    host_stall_fraction: Number = _is(
        "power of the rest of a node held up by a save over its power while training", 1.0
    )
    host_idle_w: Number = _is(
        "power of the rest of one node whose processes are gone; unknown = as during a save",
        UNKNOWN,
    )
    gpu_d2h_bytes_per_s: Number = _is("copy rate from one GPU's memory to host memory", UNLIMITED)
    node_nic_bytes_per_s: Number = _is("storage network rate of one node", UNLIMITED)
    node_ram_bytes: Number = _is("host memory of one node", UNKNOWN)
    node_ram_used_bytes: Number = _is(
        "host memory of one node that the job holds already, copies of saves apart", UNKNOWN
    )
    staging_budget_bytes: Number = _is(
        "host memory of one node that copies on their way to storage may take", UNLIMITED
    )
    usd_per_gpu_s: Number = _is("price of a GPU-second: rent, or amortised purchase", UNKNOWN)
    embodied_kgco2e_per_gpu_s: Number = _is(
        "embodied carbon of a GPU and its share of the node, per second of its life", UNKNOWN
    )
    readers_per_byte: Number = _is(
        "times each stored byte is read on recovery (data-parallel replicas that all read)", 1.0
    )
    price_includes_electricity: bool = True


@dataclass(frozen=True, slots=True)
class Policy:
    """How often, how, and how many are kept."""

    every: Number = _is("the cadence's number: seconds, steps, saves a day or saves in the run")
    step_s: Number = _is("time of one training step", UNKNOWN)
    snapshot_s: Number = _is(
        "async: time training is held up by the copy; unknown = share over snapshot_rate", UNKNOWN
    )
    gpu_snapshot_bytes_per_s: Number = _is(
        "async: rate at which one GPU's share is copied to host memory while training waits, as "
        "whole systems reach it",
        UNLIMITED,
    )
    slowdown_fraction: Number = _is("async: share of training speed lost while a save drains", 0.0)
    in_flight: Number = _is("async: saves that may drain at the same time", 1.0)
    keep_last: Number = _is("newest checkpoints kept, or all", UNLIMITED)
    second_keep_last: Number = _is("newest checkpoints kept on the second tier, or all", UNLIMITED)
    second_every: Number = _is("every n-th save also goes to the second tier", 1.0)
    third_keep_last: Number = _is("newest checkpoints kept on the third tier, or all", UNLIMITED)
    third_every: Number = _is("every n-th save of the second tier also goes to the third", 1.0)
    cadence: Literal["interval", "steps", "per_day", "saves", "clock", "optimal"] = "interval"
    objective: Literal["time", "energy", "usd", "carbon"] = "time"
    mode: Literal["sync", "async"] = "sync"
    when_busy: Literal["block", "skip"] = "block"
    staging: Literal["before", "after"] = "after"
    pipelined: bool = True


@dataclass(frozen=True, slots=True)
class Failures:
    """What interrupts the job, and the pieces of getting it back."""

    failures_per_node_s: Number = _is("unexpected interruptions per node and second", 0.0)
    failures_per_gpu_s: Number = _is("unexpected interruptions per GPU and second", 0.0)
    counted_gpus: Number = _is("size of the job on which node and GPU rates were counted", 16384.0)
    size_exponent: Number = _is(
        "power of its size with which a smaller job's rate grows; 1 = linearly", 1.0
    )
    rate_factor: Number = _is("this job's node and GPU rates over those its size says", 1.0)
    failures_per_s: Number = _is("interruptions from shared causes, whatever the size", 0.0)
    rack_failures_per_s: Number = _is(
        "losses of a whole rack with all its nodes, for each rack", 0.0
    )
    nodes_per_rack: Number = _is("nodes that a rack's loss takes down together", 4.0)
    mtbf_s: Number = _is(
        "mean time between interruptions of the whole job; given, it stands for every rate",
        UNKNOWN,
    )
    node_loss_fraction: Number = _is(
        "share of interruptions that lose a node and what it holds", 1.0
    )
    second_loss_fraction: Number = _is(
        "three tiers: share of interruptions that the second tier's copy does not survive either",
        0.0,
    )
    detect_s: Number = _is("until somebody notices; GPUs spin in a collective", 0.0)
    reschedule_s: Number = _is("until new processes exist; GPUs are empty", 0.0)
    init_s: Number = _is("process and communicator start", 0.0)
    warmup_s: Number = _is("until the full step rate is back", 0.0)


@dataclass(frozen=True, slots=True)
class Site:
    """Where the electricity comes from, and the water."""

    pue: Number = _is("facility energy over IT energy", 1.0)
    usd_per_j: Number = _is("electricity tariff", UNKNOWN)
    kgco2e_per_j: Number = _is("grid factor, location-based", UNKNOWN)
    market_kgco2e_per_j: Number = _is("grid factor, market-based (contracts)", UNKNOWN)
    water_l_per_j: Number = _is("water for cooling over IT energy (WUE), on site", UNKNOWN)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything together; any number in it may be an array."""

    checkpoint: Checkpoint
    tier: Tier
    cluster: Cluster
    policy: Policy
    failures: Failures
    site: Site
    work_s: Number
    second_tier: Tier | None = None
    third_tier: Tier | None = None
