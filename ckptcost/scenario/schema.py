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


def figure(
    example: str,
    meaning: str,
    default: float = nan,
    least: float = 0.0,
    most: float = 1e30,
    words: Mapping[str, float] = MappingProxyType({}),
) -> Any:
    """A number. Its example says how to write it, and so in which unit.

    An example that is a whole number is a count ("1024"): it takes k, M and B, and no "%". `words`
    are what may be said in place of a number, such as "all".
    """
    about = {"example": example, "meaning": meaning, "least": least, "most": most, "words": words}
    return field(default=default, metadata=about)


ALL = MappingProxyType({"all": inf})
CONTINUOUS = MappingProxyType({"continuous": 0.0})
"""the next save begins as soon as the last one is safe"""


def choice(*options: str | bool, meaning: str = "") -> Any:
    """One of a few words, the first unless somebody says otherwise; none: any text."""
    about = {"options": options, "meaning": meaning}
    return field(default=options[0] if options else "", metadata=about)


@dataclass
class Checkpoint:
    """What one save writes."""

    model: Words = choice(meaning="entry of the catalogue")
    params: Array = figure("4e11", "all parameters of the model, active or not", least=1, most=1e18)
    bytes_per_param: Array = figure(
        "14 B",
        "saved per parameter: bf16 weights 2, fp32 master 4, Adam moments 8",
        least=1e-3,
        most=1e3,
    )
    extra: Array = figure(
        "1 MB", "state that does not grow with the parameters, such as the loader", 0.0
    )
    size: Array = figure(
        "2 TB",
        "size of one full checkpoint, instead of counting parameters",
        least=1,
        most=1e24,
    )
    files: Array = figure("1000", "files that one save creates", 1.0, 0, 1e15)
    replicas_writing: Array = figure(
        "1", "how many copies of the same state are written; one is kept", 1.0, 1, 1e6
    )
    straggler_factor: Array = figure(
        "1.1", "bytes of the busiest rank over those of the average rank", 1.0, 1, 1e6
    )
    full_every: Array = figure(
        "1", "every n-th save is full, the others hold only what changed", 1.0, 1, 1e9
    )
    delta_fraction: Array = figure(
        "0.1", "size of a save of what changed over a full one", 1.0, 0, 1
    )
    compression_ratio: Array = figure(
        "1.4", "size before over size after lossless compression", 1.0, 1, 1e4
    )
    compress_rate: Array = figure(
        "30 GB/s", "rate of the compressor, all ranks together", inf, 1, 1e24
    )


@dataclass
class Tier:
    """Where a save goes. Of several rates the slowest decides: system, nodes or GPUs."""

    id: Words = choice(meaning="entry of the catalogue")
    name: Words = choice(meaning="what it is called")
    write: Array = figure("30 GB/s", "write rate of the whole storage system", inf, 1, 1e24)
    read: Array = figure("30 GB/s", "read rate of the whole storage system", inf, 1, 1e24)
    node_write: Array = figure("11 GB/s", "write rate of one node", inf, 1, 1e24)
    node_read: Array = figure("27 GB/s", "read rate of one node", inf, 1, 1e24)
    gpu_write: Array = figure("3 GB/s", "write rate of one GPU's own path", inf, 1, 1e24)
    gpu_read: Array = figure("3 GB/s", "read rate of one GPU's own path", inf, 1, 1e24)
    write_per_capacity: Array = figure(
        "125 MB/s/TiB", "write rate by provisioned capacity", inf, 1e-12, 1e12
    )
    read_per_capacity: Array = figure(
        "125 MB/s/TiB", "read rate by provisioned capacity", inf, 1e-12, 1e12
    )
    clients: Array = figure(
        "8", "nodes with which the rate of one node was measured together", inf, 1, 1e9
    )
    known_capacity: Array = figure(
        "160 TiB", "capacity up to which the rate by capacity is published", inf, 1, 1e24
    )
    scaling: Array = figure(
        "0.5", "growth of the rate beyond what was measured: 1 in proportion, 0 none", 1.0, 0, 1
    )
    share: Array = figure(
        "0.5", "share of the system's rate that this job gets while it saves", 1.0, 1e-6, 1
    )
    starves: Array = figure(
        "5 %", "training speed lost while a save writes, because data loading waits", 0.0, 0, 1
    )
    burst_write: Array = figure(
        "60 GB/s", "write rate until the burst is used up", least=1, most=1e24
    )
    burst_size: Array = figure("4 TB", "bytes that are written at the burst rate", 0.0, 0, 1e24)
    delete_rate: Array = figure("500 GB/s", "bytes deleted a second", inf, 1, 1e24)
    capacity: Array = figure("1 PB", "usable (or provisioned) capacity", least=1, most=1e24)
    rate_spread: Array = figure("10 %", "spread of the measured write rate from save to save")
    read_rate_spread: Array = figure("10 %", "spread of the measured read rate from load to load")
    setup: Array = figure("5 s", "fixed time of a save: planning, fsync, barrier and commit", 0.0)
    planning: Array = figure(
        "1 s", "time to gather a save, in which training waits even if it is async", 0.0
    )
    save_time: Array = figure(
        "40 s", "measured time of a whole save, instead of rates and setup", least=1e-9, most=1e9
    )
    load_time: Array = figure("40 s", "measured time of a whole load", least=1e-9, most=1e9)
    timed_size: Array = figure(
        "2 TB",
        "size of the checkpoint that was saved and loaded in those times",
        least=1,
        most=1e24,
    )
    files_rate: Array = figure(
        "5000 files/s", "files that the metadata service creates in a second", inf, 1e-6, 1e15
    )
    write_energy: Array = figure("139 J/GB", "energy of writing")
    usual_energy: Array = figure(
        "139 J/GB", "energy of writing that is usual for a system of 10 GB/s"
    )
    usual_exponent: Array = figure(
        "0.3", "how fast that falls with the write rate, as a power of it", 0.0, 0, 1
    )
    active_power: Array = figure("7 kW", "power of the whole tier while it writes")
    idle_power: Array = figure("7 kW", "power of the whole tier when nothing is written")
    network_energy: Array = figure("3 J/GB", "energy of carrying bytes to the tier")
    storage_price: Array = figure("0.023 USD/GB-month", "price of keeping bytes")
    write_price: Array = figure("0.0032 USD/GiB", "price of writing bytes, besides requests")
    request_price: Array = figure("0.005 USD/1000 requests", "price of a write request")
    request_size: Array = figure("8 MB", "bytes in one write request", least=1, most=1e15)
    standing_price: Array = figure("12 USD/h", "price of the whole tier, used or not")
    drive_writes: Array = figure("1 /day", "full-drive writes for which the drives are rated")
    drive_life: Array = figure(
        "5 years", "time for which the drives are rated", 157680000.0, 1, 1e12
    )
    drive_price: Array = figure("100 USD/TB", "price of the drives, by usable capacity")
    survives: Words = choice(
        "site", "node", "process", meaning="the worst loss that a copy survives"
    )
    boundary: Words = choice("storage-system", "drive", "node", "cluster", "facility")
    in_memory: Words = choice(False, True)
    billed_on: Words = choice("held", "provisioned")


@dataclass
class Cluster:
    """Who waits."""

    id: Words = choice(meaning="entry of the catalogue")
    accelerator: Words = choice(meaning="entry of the catalogue")
    gpus: Array = figure("1024", "GPUs (accelerators) of the job", least=1, most=1e9)
    gpus_per_node: Array = figure("8", "GPUs in one node", 8.0, 1, 1e6)
    gpu_tdp: Array = figure("700 W", "rated power of one GPU")
    train_fraction: Array = figure(
        "0.9", "power while training over the rated power", least=1e-6, most=2
    )
    stall_fraction: Array = figure(
        "0.28",
        "power of a GPU while training waits for a save, over power while training",
        least=0,
        most=1,
    )
    gpu_train: Array = figure("630 W", "power of one GPU while it trains")
    gpu_stall: Array = figure("180 W", "power of one GPU while training waits for a save")
    gpu_idle: Array = figure("70 W", "power of one GPU without a process")
    host_train: Array = figure("2.8 kW", "power of the rest of a node while it trains")
    host_stall: Array = figure("2.2 kW", "power of the rest of a node during a save")
    host_stall_fraction: Array = figure(
        "0.8", "power of the rest of a node during a save, over that while training", 1.0, 0, 2
    )
    host_idle: Array = figure("1.4 kW", "power of the rest of a node without processes")
    gpu_d2h: Array = figure(
        "55 GB/s", "copy rate from one GPU's memory to host memory", inf, 1, 1e18
    )
    node_nic: Array = figure("50 GB/s", "storage network rate of one node", inf, 1, 1e18)
    node_ram: Array = figure("2 TB", "host memory of one node")
    node_ram_used: Array = figure("1 TB", "host memory that the job holds, besides copies of saves")
    staging_budget: Array = figure(
        "1 TB", "host memory of one node that copies on their way to storage may take", inf, 1, 1e24
    )
    gpu_price: Array = figure("2.50 USD/GPU-h", "price of a GPU hour, rented or amortised")
    gpu_embodied: Array = figure("33 g/GPU-h", "embodied carbon of a GPU and its share of the node")
    readers_per_byte: Array = figure(
        "1.0", "how many times each stored byte is read when the job restarts", 1.0, 1, 1e9
    )
    price_includes_electricity: Words = choice(True, False)


@dataclass
class Policy:
    """How often, how, and how many are kept. One of the first five says how often, or `optimal`."""

    interval: Array = figure(
        "30 min", "training time between saves", least=1e-6, most=1e12, words=CONTINUOUS
    )
    steps: Array = figure("500", "training steps between saves", least=1e-3, most=1e12)
    per_day: Array = figure("48", "saves per day of training", least=1e-6, most=1e9)
    saves: Array = figure("100", "saves in the whole run", least=1, most=1e12)
    clock: Array = figure(
        "1 h", "wall time from the beginning of one save to the next", least=1e-3, most=1e12
    )
    optimal: Words = choice(
        "", "time", "energy", "cost", "carbon", meaning="the interval of least ..."
    )
    step: Array = figure("12 s", "time of one training step", least=1e-9, most=1e9)
    snapshot: Array = figure(
        "0.5 s", "async: time in which training waits for the copy to host memory"
    )
    snapshot_rate: Array = figure(
        "3 GB/s", "async: rate at which the share of one GPU is copied to host memory", inf, 1, 1e18
    )
    slowdown: Array = figure(
        "4 %", "async: training speed lost while a save is written out", 0.0, 0, 1
    )
    pinned: Array = figure(
        "1 %", "async: training speed lost all the time, for example to pinned memory", 0.0, 0, 1
    )
    copies: Array = figure(
        "1.0",
        "async: further copies of a save in host memory, besides those in flight",
        0.0,
        0,
        1e6,
    )
    delete_time: Array = figure("20 s", "time to delete one old checkpoint", 0.0)
    in_flight: Array = figure(
        "1", "async: saves that may be written out at the same time", 1.0, 1, 1e9
    )
    keep_last: Array = figure("3", "newest checkpoints kept, or all", inf, 1, 1e12, words=ALL)
    second_keep_last: Array = figure(
        "10", "newest checkpoints kept on the second tier, or all", inf, 1, 1e12, words=ALL
    )
    second_every: Array = figure("10", "every n-th save also goes to the second tier", 1.0, 1, 1e9)
    third_keep_last: Array = figure(
        "10", "newest checkpoints kept on the third tier, or all", inf, 1, 1e12, words=ALL
    )
    third_every: Array = figure(
        "10", "every n-th save of the second tier also goes to the third", 1.0, 1, 1e9
    )
    mode: Words = choice("sync", "async")
    when_busy: Words = choice("block", "skip")
    deleting: Words = choice("beside", "serial", meaning="whether a save waits for old ones to go")
    staging: Words = choice("after", "before")
    pipelined: Words = choice(True, False)


@dataclass
class Failures:
    """What interrupts the job, and the pieces of getting it back."""

    rate: Array = figure(
        "3.8 /1000 node-days", "unexpected interruptions per node, besides those per GPU", 0.0, 0, 1
    )
    gpu_rate: Array = figure("0.42 /1000 GPU-days", "unexpected interruptions per GPU", 0.0, 0, 1)
    counted_gpus: Array = figure(
        "16384", "GPUs of the job in which those were counted", 16384.0, 1, 1e9
    )
    size_exponent: Array = figure(
        "0.75", "how the rate grows with the size of a smaller job, as a power of it", 1.0, 0, 1
    )
    rate_factor: Array = figure(
        "1.5", "how often this job fails, compared with published jobs of its size", 1.0, 0, 1e6
    )
    shared_rate: Array = figure(
        "0.1 /day", "interruptions from causes that do not grow with the size", 0.0, 0, 1e3
    )
    rack_rate: Array = figure("0.1 /day", "losses of a whole rack, per rack", 0.0, 0, 1)
    nodes_per_rack: Array = figure("4", "nodes in a rack, which fail together", 4.0, 1, 1e6)
    mtbf: Array = figure(
        "3 h",
        "mean time between interruptions of the job, instead of every rate",
        least=1e-3,
        most=1e15,
    )
    node_loss_fraction: Array = figure(
        "0.78", "share of interruptions that lose a node and the copies in it", 1.0, 0, 1
    )
    second_loss_fraction: Array = figure(
        "0.01",
        "share of interruptions that the copy on the second tier does not survive",
        0.0,
        0,
        1,
    )
    unusable: Array = figure(
        "1 %",
        "chance that a checkpoint cannot be loaded, and the one before it is taken",
        0.0,
        0,
        0.9,
    )
    silent: Array = figure(
        "0.1 %", "share of interruptions from corruption that is found late", 0.0, 0, 1
    )
    silent_back: Array = figure("10", "how many saves such an interruption goes back", 0.0, 0, 1e6)
    detect: Array = figure(
        "2 min", "time until the failure is noticed; GPUs wait in a collective", 0.0
    )
    reschedule: Array = figure("3 min", "time until new processes start; GPUs are empty", 0.0)
    init: Array = figure("3 min", "time to start processes and communicators", 0.0)
    warmup: Array = figure("1 min", "time until steps are as fast as before", 0.0)


@dataclass
class Site:
    """Where the electricity comes from, and the water."""

    id: Words = choice(meaning="entry of the catalogue")
    grid: Words = choice(meaning="entry of the catalogue")
    grid_method: Words = choice("unknown", "combustion", "life-cycle")
    pue: Array = figure("1.15", "facility energy over IT energy", 1.0, 1, 10)
    tariff: Array = figure("0.09 USD/kWh", "price of electricity")
    grid_location: Array = figure("384 g/kWh", "grid factor, location-based")
    grid_market: Array = figure("384 g/kWh", "grid factor, market-based (contracts)")
    water: Array = figure("1.8 L/kWh", "cooling water per IT energy (WUE), on site")


@dataclass
class Run:
    """The job."""

    work: Array = figure(
        "54 days",
        "training time of the whole run, without saves and failures",
        least=1e-3,
        most=1e12,
    )
    wall_limit: Array = figure(
        "24 h", "wall time after which the scheduler ends the job", inf, 1, 1e12
    )


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


_CLASSES = (Checkpoint, Tier, Tier, Tier, Cluster, Policy, Failures, Site, Run)
SECTIONS = dict(zip((each.name for each in fields(World)), _CLASSES, strict=True))
KEYS: dict[str, dict[str, DataField[Any]]] = {
    section: {each.name: each for each in fields(kind)} for section, kind in SECTIONS.items()
}
"""by section and key: what may be said"""
REFERENCES = {"checkpoint": "model", "tier": "id", "second_tier": "id", "third_tier": "id"}
REFERENCES |= {"cluster": "id", "site": "id"}
"""the word that names a catalogue entry; naming another forgets what was said of the section"""
CADENCES = ("interval", "steps", "per_day", "saves", "clock", "optimal")
TIERS = ("tier", "second_tier", "third_tier")
SHARED_STORAGE = ("storage-system", "cluster", "facility")
"""boundaries of tiers that all nodes share; the others lie inside the nodes"""
FAILURE_RATES = ("rate", "gpu_rate", "counted_gpus", "size_exponent", "rate_factor")
SHARED_RATES = ("shared_rate", "rack_rate")


def is_figure(section: str, key: str) -> bool:
    return "example" in KEYS[section][key].metadata
