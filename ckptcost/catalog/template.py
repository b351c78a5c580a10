"""The commented scenario file that `ckptcost init` writes, made from the key table so that it never lacks a key."""

from __future__ import annotations

from ckptcost.catalog.keys import CADENCES, KEYS, SECTIONS, WORDS, meaning_of, unit_of
from ckptcost.core.units import UNITS

_HEAD = """\
# A ckptcost scenario: one training job and where its checkpoints go.
# Quantities carry their unit in the text: "30 GB/s", "912 GiB", "30 min", "2.50 USD/GPU-h". 1 GB = 1e9 bytes, 1 GiB = 2**30.
# A figure may also say its range and where it comes from:
#   write = { value = "30 GB/s", low = "20 GB/s", high = "40 GB/s", basis = "measured", source = "our acceptance test" }
# Lines that start with # keep the catalogue's or the default value. `ckptcost catalog` lists what ids there are.

name = "my job"
# extends = "llama31-405b-16k"      # start from a preset or another file, and say only what differs
"""
_GIVEN = {
    "checkpoint": {"model": '"llama31-70b"'}, "tier": {"id": '"flash-shared"'}, "cluster": {"id": '"h100-1024"'},
    "policy": {"interval": '"30 min"', "keep_last": "3"},
    "site": {"id": '"usa"'}, "run": {"work": '"30 days"'},
}  # fmt: skip
_EXAMPLES = {"model": '"llama31-70b"', "id": '"object-store"', "accelerator": '"h100-sxm"', "grid": '"SWE"', "name": '"our storage"'}
_PLAIN = {
    "params": '"70B"', "files": "512", "full_every": "1", "delta_fraction": "0.1", "compression_ratio": "1.0", "gpus": "1024",
    "gpus_per_node": "8", "steps": "100",
    "per_day": "48", "saves": "100", "slowdown": '"2 %"', "in_flight": "1", "keep_last": "3", "second_keep_last": "10",
    "second_every": "10", "pue": "1.15",
    "node_loss_fraction": '"78 %"', "rate_spread": '"10 %"', "straggler_factor": "1.0", "replicas_writing": "1",
    "readers_per_byte": "1", "train_fraction": '"90 %"', "stall_fraction": '"49 %"',
}  # fmt: skip
_EXTRA = {
    "interval": '"30 min"',
    "bytes_per_param": '"14 B"',
    "drive_writes": '"1 /day"',
    "write_per_capacity": '"125 MB/s/TiB"',
    "read_per_capacity": '"125 MB/s/TiB"',
    "gpu_train": '"630 W"',
    "gpu_tdp": '"700 W"',
}


def _example(section: str, key: str) -> str:
    return _PLAIN.get(key) or _EXTRA.get(key) or f'"{UNITS[unit_of(section, key)][1]}"'


def template() -> str:
    """The file's text."""
    out = [_HEAD]
    for section in SECTIONS:
        given = _GIVEN.get(section, {})
        shown = [
            (
                word,
                _EXAMPLES.get(word) or ("true" if allowed == (bool,) else f'"{allowed[0]}"'),
                "one of " + ", ".join(map(str, allowed)) if allowed not in ((str,), (bool,)) else "",
            )
            for word, allowed in WORDS[section].items()
        ]
        shown += [(key, _example(section, key), meaning_of(section, key)) for key in KEYS[section]]
        whole = bool(given)
        out.append(
            f"\n{'' if whole else '# '}[{section}]"
            + ("    # only one of " + ", ".join((*CADENCES, "optimal")) if section == "policy" else "")
        )
        for key, example, meaning in shown:
            line = f"{key} = {given.get(key, example)}"
            out.append(("" if key in given else "# ") + line + (f"{' ' * max(1, 34 - len(line))}# {meaning}" if meaning else ""))
    return "\n".join(out) + "\n"
