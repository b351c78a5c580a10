"""The commented scenario file that `ckptcost init` writes, made from the key table so that it never
lacks a key."""

from __future__ import annotations

from typing import Any

from ckptcost.first.catalog.keys import CADENCES, KEYS, SECTIONS, WORDS, meaning_of

_HEAD = """\
# A ckptcost scenario: one training job and where its checkpoints go.
# Quantities carry their unit in the text: "30 GB/s", "912 GiB", "30 min", "2.50 USD/GPU-h". 1 \
GB = 1e9 bytes, 1 GiB = 2**30.
# A figure may also say its range and where it comes from:
#   write = { value = "30 GB/s", low = "20 GB/s", high = "40 GB/s", basis = "measured", source \
= "our acceptance test" }
# Lines that start with # keep the catalogue's or the default value. `ckptcost catalog` lists \
what ids there are.

name = "my job"
# extends = "llama31-405b-16k"      # start from a preset or another file, and say only what differs
"""
_GIVEN = {
    "checkpoint": {"model": '"llama31-70b"'},
    "tier": {"id": '"flash-shared"'},
    "cluster": {"id": '"h100-1024"'},
    "policy": {"interval": '"30 min"', "keep_last": "3"},
    "site": {"id": '"usa"'},
    "run": {"work": '"30 days"'},
}
_WORDS = {
    "model": '"llama31-70b"',
    "id": '"object-store"',
    "accelerator": '"h100-sxm"',
    "grid": '"SWE"',
    "name": '"our storage"',
}
_EXAMPLES = {
    "params": "70B",
    "bytes_per_param": "14 B",
    "extra": "2 GB",
    "size": "2 TB",
    "files": "512",
    "replicas_writing": "1",
    "straggler_factor": "1.0",
    "full_every": "1",
    "delta_fraction": "0.1",
    "compression_ratio": "1.0",
    "compress_rate": "400 GB/s",
    "write": "30 GB/s",
    "read": "30 GB/s",
    "node_write": "11 GB/s",
    "node_read": "27 GB/s",
    "gpu_write": "50 GB/s",
    "gpu_read": "50 GB/s",
    "write_per_capacity": "125 MB/s/TiB",
    "read_per_capacity": "125 MB/s/TiB",
    "capacity": "6 PB",
    "rate_spread": "10 %",
    "read_rate_spread": "10 %",
    "setup": "4 s",
    "planning": "2 s",
    "save_time": "374 s",
    "load_time": "174 s",
    "timed_size": "5.36 TB",
    "files_rate": "5000 files/s",
    "write_energy": "139 J/GB",
    "active_power": "14 kW",
    "idle_power": "9.5 kW",
    "network_energy": "5 J/GB",
    "storage_price": "0.023 USD/GB-month",
    "write_price": "0.0032 USD/GiB",
    "request_price": "0.005 USD/1000 requests",
    "request_size": "8 MB",
    "standing_price": "12 USD/h",
    "drive_writes": "1 /day",
    "gpus": "1024",
    "gpus_per_node": "8",
    "gpu_train": "630 W",
    "gpu_stall": "176 W",
    "gpu_idle": "70 W",
    "host_train": "2800 W",
    "host_stall": "2200 W",
    "host_stall_fraction": "80 %",
    "host_idle": "1200 W",
    "gpu_d2h": "55 GB/s",
    "node_nic": "50 GB/s",
    "node_ram": "2 TB",
    "node_ram_used": "500 GB",
    "staging_budget": "256 GiB",
    "gpu_price": "2.50 USD/GPU-h",
    "gpu_embodied": "33 g/GPU-h",
    "readers_per_byte": "1",
    "train_fraction": "90 %",
    "stall_fraction": "28 %",
    "gpu_tdp": "700 W",
    "interval": "30 min",
    "steps": "100",
    "per_day": "48",
    "saves": "100",
    "clock": "30 min",
    "step": "12 s",
    "snapshot": "0.5 s",
    "snapshot_rate": "3 GB/s",
    "slowdown": "2 %",
    "in_flight": "1",
    "keep_last": "3",
    "second_keep_last": "10",
    "second_every": "10",
    "third_keep_last": "10",
    "third_every": "10",
    "second_loss_fraction": "2 %",
    "rate": "3.8 /1000 node-days",
    "gpu_rate": "0.42 /1000 GPU-days",
    "counted_gpus": "16384",
    "size_exponent": "1",
    "rate_factor": "1",
    "shared_rate": "0.1 /day",
    "rack_rate": "0.5 /year",
    "nodes_per_rack": "4",
    "mtbf": "6 h",
    "node_loss_fraction": "78 %",
    "detect": "2 min",
    "reschedule": "3 min",
    "init": "3 min",
    "warmup": "1 min",
    "pue": "1.15",
    "tariff": "0.09 USD/kWh",
    "grid_location": "384 g/kWh",
    "grid_market": "50 g/kWh",
    "water": "1.8 L/kWh",
    "work": "30 days",
}
"""a plausible value of each key; a test parses them all"""


def example_of(key: str) -> str:
    """The example as TOML: a bare number, else text."""
    text = _EXAMPLES[key]
    return text if text.replace(".", "", 1).isdigit() else f'"{text}"'


def _choice(word: str, allowed: tuple[Any, ...]) -> tuple[str, str, str]:
    """A key that takes one of some words: it, an example, and which there are."""
    if allowed == (bool,):
        return word, _WORDS.get(word, "true"), ""
    if allowed == (str,):
        return word, _WORDS[word], ""
    return word, _WORDS.get(word, f'"{allowed[0]}"'), "one of " + ", ".join(map(str, allowed))


def template() -> str:
    """The file's text."""
    out = [_HEAD]
    for section in SECTIONS:
        given = _GIVEN.get(section, {})
        shown = [_choice(word, allowed) for word, allowed in WORDS[section].items()]
        shown += [(key, example_of(key), meaning_of(section, key)) for key in KEYS[section]]
        cadences = "    # only one of " + ", ".join((*CADENCES, "optimal"))
        out.append(f"\n{'' if given else '# '}[{section}]{cadences if section == 'policy' else ''}")
        for key, example, meaning in shown:
            line = f"{key} = {given.get(key, example)}"
            out.append(
                ("" if key in given else "# ")
                + line
                + (f"{' ' * max(1, 34 - len(line))}# {meaning}" if meaning else "")
            )
    return "\n".join(out) + "\n"
