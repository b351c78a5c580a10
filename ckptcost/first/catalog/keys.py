"""What a file calls a quantity, and which field of the core it becomes. The one table that joins
the two vocabularies."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, Final, Literal, get_args

from ckptcost.first.core import domain
from ckptcost.first.core.units import suffix_of

KEYS: Final[dict[str, dict[str, str]]] = {
    "checkpoint": {
        "params": "params",
        "bytes_per_param": "bytes_per_param",
        "extra": "extra_bytes",
        "size": "size_bytes",
        "files": "files",
        "replicas_writing": "replicas_writing",
        "straggler_factor": "straggler_factor",
        "full_every": "full_every",
        "delta_fraction": "delta_fraction",
        "compression_ratio": "compression_ratio",
        "compress_rate": "compress_bytes_per_s",
    },
    "tier": {
        "write": "write_bytes_per_s",
        "read": "read_bytes_per_s",
        "node_write": "node_write_bytes_per_s",
        "node_read": "node_read_bytes_per_s",
        "gpu_write": "gpu_write_bytes_per_s",
        "gpu_read": "gpu_read_bytes_per_s",
        "write_per_capacity": "write_per_s",
        "read_per_capacity": "read_per_s",
        "capacity": "capacity_bytes",
        "rate_spread": "rate_spread_fraction",
        "read_rate_spread": "read_spread_fraction",
        "setup": "setup_s",
        "planning": "planning_s",
        "save_time": "save_time_s",
        "load_time": "load_time_s",
        "timed_size": "timed_bytes",
        "files_rate": "files_per_s",
        "write_energy": "write_j_per_byte",
        "active_power": "active_w",
        "idle_power": "idle_w",
        "network_energy": "network_j_per_byte",
        "storage_price": "usd_per_byte_s",
        "write_price": "usd_per_byte",
        "request_price": "usd_per_request",
        "request_size": "request_bytes",
        "standing_price": "usd_per_s",
        "drive_writes": "drive_writes_per_s",
    },
    "cluster": {
        "gpus": "gpus",
        "gpus_per_node": "gpus_per_node",
        "gpu_train": "gpu_train_w",
        "gpu_stall": "gpu_stall_w",
        "gpu_idle": "gpu_idle_w",
        "host_train": "host_train_w",
        "host_stall": "host_stall_w",
        "host_stall_fraction": "host_stall_fraction",
        "host_idle": "host_idle_w",
        "gpu_d2h": "gpu_d2h_bytes_per_s",
        "node_nic": "node_nic_bytes_per_s",
        "node_ram": "node_ram_bytes",
        "node_ram_used": "node_ram_used_bytes",
        "staging_budget": "staging_budget_bytes",
        "gpu_price": "usd_per_gpu_s",
        "gpu_embodied": "embodied_kgco2e_per_gpu_s",
        "readers_per_byte": "readers_per_byte",
        "train_fraction": "",
        "stall_fraction": "",
        "gpu_tdp": "",
    },
    "policy": {
        "interval": "every",
        "steps": "every",
        "per_day": "every",
        "saves": "every",
        "clock": "every",
        "step": "step_s",
        "snapshot": "snapshot_s",
        "snapshot_rate": "gpu_snapshot_bytes_per_s",
        "slowdown": "slowdown_fraction",
        "in_flight": "in_flight",
        "keep_last": "keep_last",
        "second_keep_last": "second_keep_last",
        "second_every": "second_every",
        "third_keep_last": "third_keep_last",
        "third_every": "third_every",
    },
    "failures": {
        "rate": "failures_per_node_s",
        "gpu_rate": "failures_per_gpu_s",
        "counted_gpus": "counted_gpus",
        "size_exponent": "size_exponent",
        "rate_factor": "rate_factor",
        "shared_rate": "failures_per_s",
        "rack_rate": "rack_failures_per_s",
        "nodes_per_rack": "nodes_per_rack",
        "mtbf": "mtbf_s",
        "node_loss_fraction": "node_loss_fraction",
        "second_loss_fraction": "second_loss_fraction",
        "detect": "detect_s",
        "reschedule": "reschedule_s",
        "init": "init_s",
        "warmup": "warmup_s",
    },
    "site": {
        "pue": "pue",
        "tariff": "usd_per_j",
        "grid_location": "kgco2e_per_j",
        "grid_market": "market_kgco2e_per_j",
        "water": "water_l_per_j",
    },
    "run": {"work": "work_s"},
}
KEYS["second_tier"] = KEYS["third_tier"] = KEYS["tier"]

TYPES: Final[dict[str, type]] = {
    "checkpoint": domain.Checkpoint,
    "tier": domain.Tier,
    "second_tier": domain.Tier,
    "third_tier": domain.Tier,
    "cluster": domain.Cluster,
    "policy": domain.Policy,
    "failures": domain.Failures,
    "site": domain.Site,
}

CADENCES: Final = ("interval", "steps", "per_day", "saves", "clock")
FAILURE_LAW: Final = ("rate", "gpu_rate", "counted_gpus", "size_exponent", "rate_factor")
FAILURE_RATES: Final = (*FAILURE_LAW, "shared_rate", "rack_rate")
"""what failures.mtbf stands for: a job is told by one or by the others"""
_UNIT: Final = {
    "interval": "s",
    "steps": "",
    "per_day": "",
    "saves": "",
    "clock": "s",
    "train_fraction": "",
    "stall_fraction": "",
    "gpu_tdp": "w",
    "work": "s",
}
MEANINGS: Final = {
    "interval": "training time between saves",
    "steps": "training steps between saves",
    "per_day": "saves per day of training",
    "saves": "saves in the whole run",
    "clock": "wall-clock time from one save's begin to the next, stalls and recovery included",
    "work": "training time of the run, were nothing saved or lost",
    "train_fraction": "power while training over the accelerator's TDP",
    "stall_fraction": "power while held up by a save over power while training",
    "gpu_tdp": "the accelerator's rated power",
}

GRID_METHODS: Final = ("combustion", "life-cycle", "unknown")
"""what a grid factor counts: what burning fuel emits at the power stations (Scope 2), or that and
what lies before and after it; a marginal factor is of the next kWh, not of the mean one, and has no
place in a location-based total"""

# words a section may hold besides figures: allowed values, or free text
WORDS: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "checkpoint": {"model": (str,)},
    "tier": {
        "id": (str,),
        "name": (str,),
        "survives": get_args(domain.Survives),
        "boundary": get_args(domain.Boundary),
        "in_memory": (bool,),
        "billed_on": ("held", "provisioned"),
    },
    "cluster": {"id": (str,), "accelerator": (str,), "price_includes_electricity": (bool,)},
    "policy": {
        "mode": ("sync", "async"),
        "when_busy": ("block", "skip"),
        "staging": ("after", "before"),
        "optimal": ("time", "energy", "usd", "carbon"),
        "pipelined": (bool,),
    },
    "failures": {},
    "site": {"id": (str,), "grid": (str,), "grid_method": GRID_METHODS},
    "run": {},
}
WORDS["second_tier"] = WORDS["third_tier"] = WORDS["tier"]
REFERENCES: Final = {
    "checkpoint": "model",
    "tier": "id",
    "second_tier": "id",
    "third_tier": "id",
    "cluster": "id",
    "site": "id",
}
"""the word that names a catalogue entry; naming another one forgets what earlier layers said of the
section"""

# (least, whether the least itself is allowed, most)
LIMITS: Final[dict[str, tuple[float, bool, float]]] = {
    "params": (1, True, 1e18),
    "size": (1, True, 1e24),
    "bytes_per_param": (1e-3, True, 1e3),
    "files": (0, True, 1e15),
    "replicas_writing": (1, True, 1e6),
    "straggler_factor": (1, True, 1e6),
    "full_every": (1, True, 1e9),
    "delta_fraction": (0, True, 1),
    "compression_ratio": (1, True, 1e4),
    "compress_rate": (1, True, 1e24),
    "write": (1, True, 1e24),
    "read": (1, True, 1e24),
    "node_write": (1, True, 1e24),
    "node_read": (1, True, 1e24),
    "gpu_write": (1, True, 1e24),
    "gpu_read": (1, True, 1e24),
    "write_per_capacity": (1e-12, True, 1e12),
    "read_per_capacity": (1e-12, True, 1e12),
    "capacity": (1, True, 1e24),
    "files_rate": (1e-6, True, 1e15),
    "save_time": (1e-9, True, 1e9),
    "load_time": (1e-9, True, 1e9),
    "timed_size": (1, True, 1e24),
    "staging_budget": (1, True, 1e24),
    "request_size": (1, True, 1e15),
    "gpus": (1, True, 1e9),
    "gpus_per_node": (1, True, 1e6),
    "gpu_d2h": (1, True, 1e18),
    "node_nic": (1, True, 1e18),
    "readers_per_byte": (1, True, 1e9),
    "interval": (1e-6, True, 1e12),
    "steps": (1e-3, True, 1e12),
    "per_day": (1e-6, True, 1e9),
    "saves": (1, True, 1e12),
    "clock": (1e-3, True, 1e12),
    "step": (1e-9, True, 1e9),
    "snapshot_rate": (1, True, 1e18),
    "slowdown": (0, True, 1),
    "in_flight": (1, True, 1e9),
    "keep_last": (1, True, 1e12),
    "second_keep_last": (1, True, 1e12),
    "second_every": (1, True, 1e9),
    "third_keep_last": (1, True, 1e12),
    "third_every": (1, True, 1e9),
    "second_loss_fraction": (0, True, 1),
    "node_loss_fraction": (0, True, 1),
    "pue": (1, True, 10),
    "work": (1e-3, True, 1e12),
    "train_fraction": (1e-6, True, 2),
    "stall_fraction": (0, True, 1),
    "host_stall_fraction": (0, True, 2),
    "counted_gpus": (1, True, 1e9),
    "size_exponent": (0, True, 1),
    "rate_factor": (0, True, 1e6),
    "nodes_per_rack": (1, True, 1e6),
    "mtbf": (1e-3, True, 1e15),
    "rate": (0, True, 1),
    "gpu_rate": (0, True, 1),
    "shared_rate": (0, True, 1e3),
    "rack_rate": (0, True, 1),
}
"""a figure outside them is a slip of the pen: the message names the allowed range"""


@cache
def unit_of(section: str, key: str) -> str:
    """The unit a key is parsed with.

    >>> unit_of("tier", "write"), unit_of("policy", "saves"), unit_of("cluster", "gpu_price")
    ('bytes_per_s', '', 'usd_per_gpu_s')
    """
    if key in _UNIT:
        return _UNIT[key]
    return suffix_of(KEYS[section][key])


def meaning_of(section: str, key: str) -> str:
    if key in MEANINGS:
        return MEANINGS[key]
    field = next(f for f in fields(TYPES[section]) if f.name == KEYS[section][key])
    return str(field.metadata["meaning"])


Section = Literal[
    "checkpoint",
    "tier",
    "second_tier",
    "third_tier",
    "cluster",
    "policy",
    "failures",
    "site",
    "run",
]
SECTIONS: Final[tuple[str, ...]] = get_args(Section)
