"""The vocabulary: every figure a scenario can hold, with an example, a meaning and its limits.

This is the only place that names them. A file, a flag, a formula, a report and the documentation
call a figure the same: `tier.write` in a TOML file is `w.tier.write` in a formula. Values are SI;
NaN is "not known" and stays NaN to the end, where it is printed as a dash, never as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field as DataField
from dataclasses import dataclass, field, fields
from math import inf, nan
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Words = NDArray[Any]
ALL, CONTINUOUS = MappingProxyType({"all": inf}), MappingProxyType({"continuous": 0.0})
"""words in place of a number; continuous: the next save begins as soon as the last one is safe"""


def figure(
    example: str,
    meaning: str,
    default: float = nan,
    least: float = 0.0,
    most: float = 1e24,
    words: Mapping[str, float] = MappingProxyType({}),
) -> Any:
    """A number. Its example says how to write it, and so in which unit.

    An example that is a whole number is a count ("1024"): it takes k, M and B, and no "%". `words`
    are what may be said in place of a number, such as "all".
    """
    about = {"example": example, "meaning": meaning, "least": least, "most": most, "words": words}
    return field(default=default, metadata=about)


def limit(example: str, meaning: str) -> Any:
    """A rate or size that limits nothing unless somebody gives it."""
    return figure(example, meaning, inf, 1e-12)


def count(example: str, meaning: str, default: float = 1.0) -> Any:
    """A number that is 1 at least."""
    return figure(example, meaning, default, 1.0, 1e12)


def kept(example: str, where: str) -> Any:
    """A number of checkpoints that are kept."""
    return figure(example, f"newest checkpoints kept{where}, or all", inf, 1.0, 1e12, ALL)


def fraction(example: str, meaning: str, default: float) -> Any:
    """A part of something."""
    return figure(example, meaning, default, 0.0, 1.0)


def choice(meaning: str, *options: str | bool) -> Any:
    """One of a few words, the first unless somebody says otherwise; none: any text."""
    known = " or ".join(str(each).lower() for each in options if each != "")
    about = {"options": options, "meaning": f"{meaning}: {known}" if known else meaning}
    return field(default=options[0] if options else "", metadata=about)


OBJECTIVES = ("time", "energy", "cost", "carbon")
SHARED_STORAGE = ("storage-system", "cluster", "facility")
"""boundaries of tiers that all nodes share; the others lie inside the nodes"""
BOUNDARIES = (*SHARED_STORAGE, "drive", "node")


@dataclass
class Checkpoint:
    """What one save writes."""

    model: Words = choice("entry of the catalogue")
    params: Array = figure("4e11", "all parameters of the model, active or not", least=1)
    bytes_per_param: Array = figure("14 B", "per parameter: bf16 2, fp32 4, Adam 8", least=1e-3)
    extra: Array = figure("1 MB", "state that does not grow with the parameters", 0.0)
    size: Array = figure("2 TB", "full checkpoint, instead of counting parameters", least=1)
    files: Array = figure("1000", "files that one save creates", 1.0)
    replicas_writing: Array = count("1", "copies of the same state that are written; one is kept")
    straggler_factor: Array = count("1.1", "bytes of the busiest rank over those of the average")
    full_every: Array = count("1", "every n-th save is full, others hold only what changed")
    delta_fraction: Array = fraction("0.1", "size of a save of what changed over a full one", 1.0)
    compression_ratio: Array = count("1.4", "size before over size after lossless compression")
    compress_rate: Array = limit("30 GB/s", "rate of the compressor, all ranks together")


@dataclass
class Tier:
    """Where a save goes. Of several rates the slowest decides: system, nodes or GPUs."""

    id: Words = choice("entry of the catalogue")
    name: Words = choice("what it is called")
    write: Array = limit("30 GB/s", "write rate of the whole storage system")
    read: Array = limit("30 GB/s", "read rate of the whole storage system")
    node_write: Array = limit("11 GB/s", "write rate of one node")
    node_read: Array = limit("27 GB/s", "read rate of one node")
    gpu_write: Array = limit("0.5 GB/s", "write rate of one process")
    gpu_read: Array = limit("0.5 GB/s", "read rate of one process")
    write_per_capacity: Array = limit("125 MB/s/TiB", "write rate by provisioned capacity")
    read_per_capacity: Array = limit("125 MB/s/TiB", "read rate by provisioned capacity")
    clients: Array = count("8", "nodes with which the rate of one was measured together", inf)
    known_capacity: Array = limit("160 TiB", "capacity up to which that rate is published")
    scaling: Array = fraction("0.5", "growth beyond what was measured: 1 is in proportion", 1.0)
    share: Array = figure("0.5", "share of the system's rate that this job gets", 1.0, 1e-6, 1.0)
    starves: Array = fraction("5 %", "training speed lost to starved data loading in a save", 0.0)
    burst_write: Array = figure("60 GB/s", "write rate until the burst is used up", least=1)
    burst_size: Array = figure("4 TB", "bytes that are written at the burst rate", 0.0)
    delete_rate: Array = limit("500 GB/s", "bytes deleted a second")
    capacity: Array = figure("1 PB", "usable (or provisioned) capacity", least=1)
    rate_spread: Array = figure("10 %", "spread of the measured write rate from save to save")
    read_rate_spread: Array = figure("10 %", "spread of the measured read rate from load to load")
    setup: Array = figure("5 s", "fixed time of a save: planning, fsync, barrier and commit", 0.0)
    planning: Array = figure("1 s", "time to gather a save; training waits even if async", 0.0)
    save_time: Array = figure("40 s", "time of a whole save, instead of rates", nan, 1e-9)
    load_time: Array = figure("40 s", "time of a whole load, instead of rates", nan, 1e-9)
    timed_size: Array = figure("2 TB", "size of the checkpoint that took those times", least=1)
    files_rate: Array = limit("5000 files/s", "files that the metadata service creates in a second")
    write_energy: Array = figure("139 J/GB", "energy of writing")
    usual_energy: Array = figure("139 J/GB", "energy of writing that is usual at 10 GB/s")
    usual_exponent: Array = fraction("0.3", "how fast that energy falls as rates grow", 0.0)
    active_power: Array = figure("7 kW", "power of the whole tier while it writes")
    idle_power: Array = figure("7 kW", "power of the whole tier when nothing is written")
    network_energy: Array = figure("3 J/GB", "energy of carrying bytes to the tier")
    storage_price: Array = figure("0.023 USD/GB-month", "price of keeping bytes")
    write_price: Array = figure("0.0032 USD/GiB", "price of writing bytes, besides requests")
    request_price: Array = figure("0.005 USD/1000 requests", "price of a write request")
    request_size: Array = figure("8 MB", "bytes in one write request", least=1)
    standing_price: Array = figure("12 USD/h", "price of the whole tier, used or not")
    drive_writes: Array = figure("1 /day", "full-drive writes for which the drives are rated")
    drive_life: Array = figure("5 years", "time for which the drives are rated", 157680000.0, 1)
    drive_price: Array = figure("100 USD/TB", "price of the drives, by usable capacity")
    survives: Words = choice("worst loss that a copy survives", "site", "node", "process")
    boundary: Words = choice("what its energy covers", *BOUNDARIES)
    in_memory: Words = choice("whether it is the memory of hosts", False, True)
    billed_on: Words = choice("bytes that are paid for", "held", "provisioned")


@dataclass
class Cluster:
    """Who waits."""

    id: Words = choice("entry of the catalogue")
    accelerator: Words = choice("entry of the catalogue")
    gpus: Array = figure("1024", "GPUs (accelerators) of the job", least=1, most=1e9)
    gpus_per_node: Array = count("8", "GPUs in one node", 8.0)
    gpu_tdp: Array = figure("700 W", "rated power of one GPU")
    train_fraction: Array = figure("0.9", "power while training over rated power", nan, 1e-6, 2.0)
    stall_fraction: Array = fraction("0.28", "power of a GPU in a save over that in training", nan)
    gpu_train: Array = figure("630 W", "power of one GPU while it trains")
    gpu_stall: Array = figure("180 W", "power of one GPU while training waits for a save")
    gpu_idle: Array = figure("70 W", "power of one GPU without a process")
    host_train: Array = figure("2.8 kW", "power of the rest of a node while it trains")
    host_stall: Array = figure("2.2 kW", "power of the rest of a node during a save")
    host_stall_fraction: Array = figure("0.8", "host power in a save over training", 1.0, 0, 2)
    host_idle: Array = figure("1.4 kW", "power of the rest of a node without processes")
    gpu_d2h: Array = limit("55 GB/s", "copy rate from one GPU's memory to host memory")
    node_nic: Array = limit("50 GB/s", "storage network rate of one node")
    node_ram: Array = figure("2 TB", "host memory of one node")
    node_ram_used: Array = figure("1 TB", "host memory that the job holds, besides copies of saves")
    staging_budget: Array = limit("1 TB", "host memory of a node for copies not yet in storage")
    gpu_price: Array = figure("2.50 USD/GPU-h", "price of a GPU hour, rented or amortised")
    gpu_embodied: Array = figure("33 g/GPU-h", "embodied carbon of a GPU and its share of the node")
    readers_per_byte: Array = count("1.0", "times that each stored byte is read at a restart")
    price_includes_electricity: Words = choice("whether gpu_price does", True, False)


@dataclass
class Policy:
    """How often saves are made (one of `CADENCES` says it), how, and how many of them are kept."""

    interval: Array = figure("30 min", "training time between saves", nan, 1e-6, words=CONTINUOUS)
    steps: Array = figure("500", "training steps between saves", nan, 1e-3)
    per_day: Array = figure("48", "saves per day of training", nan, 1e-6)
    saves: Array = count("100", "saves in the whole run", nan)
    clock: Array = figure("1 h", "wall time from the begin of one save to the next", nan, 1e-3)
    optimal: Words = choice("what the interval makes least", "", *OBJECTIVES)
    step: Array = figure("12 s", "time of one training step", nan, 1e-9)
    snapshot: Array = figure("0.5 s", "async: time that training waits for the copy to host memory")
    snapshot_rate: Array = limit("3 GB/s", "async: rate of the copy to host memory, from one GPU")
    slowdown: Array = fraction("4 %", "async: training speed lost while a save is written out", 0.0)
    pinned: Array = fraction("1 %", "async: training speed lost all the time: pinned memory", 0.0)
    copies: Array = figure("1.0", "async: copies in host memory besides those in flight", 0.0)
    delete_time: Array = figure("20 s", "time to delete one old checkpoint", 0.0)
    in_flight: Array = count("1", "async: saves that may be written out at the same time")
    keep_last: Array = kept("3", "")
    second_keep_last: Array = kept("10", " on the second tier")
    second_every: Array = count("10", "every n-th save also goes to the second tier")
    third_keep_last: Array = kept("10", " on the third tier")
    third_every: Array = count("10", "every n-th save of the second tier also goes to the third")
    mode: Words = choice("whether training waits for a save", "sync", "async")
    when_busy: Words = choice("async: a save that finds another draining", "block", "skip")
    deleting: Words = choice("whether a save waits for old ones to go", "beside", "serial")
    staging: Words = choice("async: whether the next copy waits for the drain", "after", "before")
    pipelined: Words = choice("whether copying and writing go on together", True, False)


@dataclass
class Failures:
    """What interrupts the job, and the pieces of getting it back."""

    rate: Array = fraction("3.8 /1000 node-days", "interruptions per node, besides GPUs", 0.0)
    gpu_rate: Array = fraction("0.42 /1000 GPU-days", "unexpected interruptions per GPU", 0.0)
    counted_gpus: Array = count("16384", "GPUs of the job in which those were counted", 16384.0)
    size_exponent: Array = fraction("0.75", "power with which the rate grows with the job", 1.0)
    rate_factor: Array = figure("1.5", "failures over those of published jobs of its size", 1.0)
    shared_rate: Array = figure("0.1 /day", "interruptions that do not grow with the size", 0.0)
    rack_rate: Array = fraction("0.1 /day", "losses of a whole rack, per rack", 0.0)
    nodes_per_rack: Array = count("4", "nodes in a rack, which fail together", 4.0)
    mtbf: Array = figure("3 h", "mean time between interruptions, instead of rates", nan, 1e-3)
    node_loss_fraction: Array = fraction("0.78", "share of interruptions that lose a node", 1.0)
    second_loss_fraction: Array = fraction("0.01", "share that loses the second copy too", 0.0)
    unusable: Array = figure("1 %", "chance that a checkpoint cannot be loaded", 0.0, 0.0, 0.9)
    silent: Array = fraction("0.1 %", "share of interruptions from corruption found late", 0.0)
    silent_back: Array = figure("10", "how many saves such an interruption goes back", 0.0)
    detect: Array = figure("2 min", "time until a failure is noticed; GPUs wait", 0.0)
    reschedule: Array = figure("3 min", "time until new processes start; GPUs are empty", 0.0)
    init: Array = figure("3 min", "time to start processes and communicators", 0.0)
    warmup: Array = figure("1 min", "time until steps are as fast as before", 0.0)


@dataclass
class Site:
    """Where the electricity comes from, and the water."""

    id: Words = choice("entry of the catalogue")
    grid: Words = choice("entry of the catalogue")
    grid_method: Words = choice("what grid factors count", "unknown", "combustion", "life-cycle")
    pue: Array = figure("1.15", "facility energy over IT energy", 1.0, 1.0, 10.0)
    tariff: Array = figure("0.09 USD/kWh", "price of electricity")
    grid_location: Array = figure("384 g/kWh", "grid factor, location-based")
    grid_market: Array = figure("384 g/kWh", "grid factor, market-based (contracts)")
    water: Array = figure("1.8 L/kWh", "cooling water per IT energy (WUE), on site")


@dataclass
class Run:
    """The job."""

    work: Array = figure("54 days", "training time, without saves and failures", nan, 1e-3)
    wall_limit: Array = figure("24 h", "wall time after which the scheduler ends the job", inf, 1.0)


@dataclass
class World:
    """All sections together, each number an array: a row a case, a column a draw (see draws)."""

    checkpoint: Checkpoint
    tier: Tier
    second_tier: Tier
    third_tier: Tier
    cluster: Cluster
    policy: Policy
    failures: Failures
    site: Site
    run: Run


TIERS = ("tier", "second_tier", "third_tier")
CADENCES = ("interval", "steps", "per_day", "saves", "clock", "optimal")
_CLASSES = (Checkpoint, Tier, Tier, Tier, Cluster, Policy, Failures, Site, Run)
SECTIONS = dict(zip((each.name for each in fields(World)), _CLASSES, strict=True))
KEYS: dict[str, dict[str, DataField[Any]]] = {
    section: {each.name: each for each in fields(kind)} for section, kind in SECTIONS.items()
}
"""by section and key: what may be said"""
REFERENCES = {"checkpoint": "model"} | dict.fromkeys((*TIERS, "cluster", "site"), "id")
"""the word that names a catalogue entry; naming another forgets what was said of the section"""
FAILURE_RATES = ("rate", "gpu_rate", "counted_gpus", "size_exponent", "rate_factor")
SHARED_RATES = ("shared_rate", "rack_rate")


def is_figure(section: str, key: str) -> bool:
    return "example" in KEYS[section][key].metadata
