"""Of each kind of meter whether it answers, refuses, waits to be asked for, or is nothing that this
machine has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ckptcost.present.grid import Tone
from ckptcost.report.study import Study, Table

State = Literal["answers", "refuses", "asleep", "lacks"]
MARKS: dict[State, str] = {
    "answers": "\u25cf",
    "refuses": "\u2717",
    "asleep": "\u25cb",
    "lacks": "\u2013",
}
ASCII: dict[State, str] = {"answers": "*", "refuses": "x", "asleep": "o", "lacks": "-"}
TONES: dict[State, Tone] = {
    "answers": "good",
    "refuses": "bad",
    "asleep": "muted",
    "lacks": "muted",
}
ORDER: tuple[State, ...] = ("answers", "refuses", "asleep", "lacks")
"""what comes first is what is said of a kind of which several hold"""

KINDS = {
    "gpu": "GPUs",
    "cpu": "processors",
    "dram": "memory",
    "storage": "storage",
    "node": "whole node",
}
SHORT = {"gpu": "GPU", "cpu": "CPU", "dram": "DRAM", "storage": "IO"}
"""for the bar at the top"""

_LACKS = re.compile(
    r"no (NVIDIA|AMD) GPU is in this machine|no NVMe drive|none of the drives|no block device|no"
    r" /\S*hwmon\b|no node power sensor"
    r"|there is no dram counter|AMD's RAPL counts packages|RAPL is x86|its hypervisor passes no"
    r" counters on"
    r"|no Lustre mount|no path .* NFS|/nvidia-fs/stats: no such file|no /dev/ipmi\S*: the IPMI"
    r" driver is not loaded, or there is no BMC"
)
"""what is said of hardware that is not there; everything else could be made to answer"""


class Kind(NamedTuple):
    """One of the things that users ask for."""

    id: str
    state: State
    by: tuple[str, ...]
    """domains that answer"""
    reasons: tuple[str, ...]
    """in the system's words, the one that decides first"""


def table_of(study: Study, table_id: str) -> Table | None:
    return next((table for table in study.tables if table.id == table_id), None)


def rows_of(study: Study, table_id: str) -> list[dict[str, Any]]:
    table = table_of(study, table_id)
    return [] if table is None else list(table.rows)


def state_of(reason: str) -> State:
    """Of something that is not measured.

    >>> (
    ...     state_of("not asked for: it starts a process"),
    ...     state_of("no NVMe drive in /sys/class/nvme"),
    ...     state_of("permission denied"),
    ... )
    ('asleep', 'lacks', 'refuses')
    """
    if reason.startswith("not asked for"):
        return "asleep"
    return "lacks" if _LACKS.search(reason) else "refuses"


def alive(row: dict[str, Any]) -> bool:
    """Whether a channel says something: a counter of joules that never moves does not."""
    return row["rate"] is not None


def kinds_of(study: Study) -> list[Kind]:
    """GPUs, processors, memory, storage, the whole node."""
    channels = rows_of(study, "channels")
    absences = rows_of(study, "absences")
    found = []
    for row in rows_of(study, "kinds"):
        kind = str(row["kind"])
        by = [text.split(" (")[0] for text in str(row["by"]).split("; ") if text]
        speaking = {channel["domain"] for channel in channels if alive(channel)}
        answering = tuple(domain for domain in by if domain in speaking)
        dead = [channel for channel in channels if channel["domain"] in by and not alive(channel)]
        told = [str(absence["reason"]) for absence in absences if absence["kind"] == kind]
        reasons = sorted(told, key=lambda reason: ORDER.index(state_of(reason)))
        if answering:
            found.append(Kind(kind, "answers", answering, tuple(reasons)))
            continue
        stuck = [f"{channel['source']} answers and never moves" for channel in dead[:1]]
        states: list[State] = [state_of(reason) for reason in reasons] or ["lacks"]
        found.append(Kind(kind, min(states, key=ORDER.index), (), (*reasons, *stuck)))
    return found


def folded(domains: Sequence[str]) -> str:
    """
    >>> (
    ...     folded(["gpu:0", "gpu:1", "gpu:2"]),
    ...     folded(["disk:sda", "disk:sdb"]),
    ...     folded(["node"]),
    ...     folded(["gpu:0", "gpu:2", "gpu:4"]),
    ... )
    ('gpu:0-2', 'disk:sda, disk:sdb', 'node', 'gpu:0 and 2 more')
    """
    parts = [re.fullmatch(r"(\w+:)(\d+)((?:\..*)?)", domain) for domain in domains]
    if len(domains) > 2 and all(parts):
        known = [(part[1], int(part[2]), part[3]) for part in parts if part]
        numbers = [number for _, number, _ in known]
        if len({(head, tail) for head, _, tail in known}) == 1 and numbers == list(
            range(numbers[0], numbers[0] + len(numbers))
        ):
            return f"{known[0][0]}{numbers[0]}-{numbers[-1]}{known[0][2]}"
    if len(domains) > 2:
        return f"{domains[0]} and {len(domains) - 1} more"
    return ", ".join(domains)
