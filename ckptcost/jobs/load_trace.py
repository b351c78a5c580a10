"""A recording that can be given away: without the names of machine, boot, user and devices, and
with what a reader needs to judge it.

The header is made anonymous before the first line is written, so there is nothing to take out
afterwards, and no reading is changed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ckptcost.errors import OutputError
from ckptcost.runs.header import Header, base_name
from ckptcost.runs.lines import decode

NOBODY = "anonymous"
_NAMES_OF_ONE = re.compile(
    r"(?:GPU-|MIG-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)
_BUS = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b", re.IGNORECASE)
_PLACES = re.compile(r"(?<![\w.])/(?!sys/|proc/)[\w./+~-]+")
_KEPT_FACTS = frozenset({"driver", "nvml", "binding", "backend", "library"})
"""of a meter, besides its cards' own; what else there is may name a user's choice or a place"""


def without_names(text: str) -> str:
    """A text of a meter without what is of this one machine.

    >>> without_names("NVIDIA H200, GPU-a0000000-fa4e-fa4e-fa4e-000000000000, hopper, 12 us a tick")
    'NVIDIA H200, hopper, 12 us a tick'
    >>> without_names("/sys/class/powercap/intel-rapl:0 beside /home/somebody/lib.so")
    '/sys/class/powercap/intel-rapl:0 beside ...'
    """
    for pattern in (_NAMES_OF_ONE, _BUS):
        text = pattern.sub("", text)
    return re.sub(r"(?:, )+", ", ", _PLACES.sub("...", text)).strip(", ")


def anonymous(header: Header) -> Header:
    """The same meters of nobody's machine."""
    meters = tuple(
        meter._replace(
            channels=tuple(
                replace(
                    channel,
                    device="",
                    source=without_names(channel.source),
                    note=without_names(channel.note),
                )
                for channel in meter.channels
            ),
            facts={
                key: without_names(text)
                for key, text in meter.facts.items()
                if key in _KEPT_FACTS or key.startswith("gpu:")
            },
        )
        for meter in header.meters
    )
    return replace(header, run=_name_of(header), host=NOBODY, boot="", pid=0, meters=meters)


def cards_of(header: Header) -> list[str]:
    """Names of the GPUs, as their driver says them."""
    return [
        without_names(text).split(",")[0]
        for meter in header.meters
        for key, text in sorted(meter.facts.items())
        if key.startswith("gpu:")
    ]


def _name_of(header: Header) -> str:
    """Run id and file name: what was measured."""
    cards = cards_of(header)
    what = cards[0] if cards else "cpu"
    return base_name(f"load-step-{what}".lower().replace("_", "-").replace(" ", "-"))


def processor() -> str:
    """Its model, as the kernel names it."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return ""
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def keep(folder: Path, header: Header, facts: Mapping[str, str]) -> Path:
    """The trace under the name of its run, and beside it what data/traces/traces.toml says of each:
    PATH.jsonl and PATH.toml."""
    written = folder / "load-step.000.jsonl"
    trace = folder / f"{header.run}.jsonl"
    try:
        if written != trace:
            written.rename(trace)
        trace.with_suffix(".toml").write_text(_listed(trace, header, facts), "utf-8")
    except OSError as error:
        raise OutputError(f"{trace}: cannot be kept ({error.strerror or error})") from error
    return trace


def _listed(trace: Path, header: Header, facts: Mapping[str, str]) -> str:
    kernel = os.uname()
    drivers = [
        f"{m.name} driver {m.facts['driver']}" for m in header.meters if m.facts.get("driver")
    ]
    with trace.open("rb") as file:
        created = str(decode(file.readline().rstrip(b"\n")).get("created", ""))[:10]
    about = [
        *dict.fromkeys(cards_of(header)),
        processor(),
        f"{kernel.sysname} {kernel.release} {kernel.machine}",
        *drivers,
        *(f"{name} {version}" for name, version in sorted(facts.items())),
        f"{created}; ckptcost {header.ckptcost}, its own recorder and meters",
    ]
    entry = {
        "title": "a known load that is switched on and off",
        "file": trace.name,
        "what": (
            "idle and busy in turn, then ranks that spin and ranks that sleep: the marks say when"
        ),
        "recorded": not header.simulated,
        "marks": ["note"],
        "bytes": 0,
        "meters": [meter.name for meter in header.meters],
        "provenance": ", ".join(filter(None, about)),
        "method": (
            "ckptcost selftest; each mark has the load, its state and how exactly the instant is"
            " known"
        ),
        "licence": "CC0-1.0",
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    return "\n".join([f"[{header.run}]", *lines, ""])
