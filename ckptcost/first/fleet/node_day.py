"""What one node says of one run on one UTC day: who it was, how it went, and one row for each save
and load. The unit of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.version import __version__

Rows = Mapping[str, NDArray[Any]]
"""columns of equal length, as COLUMNS says"""

LINES: Final = ("gpu", "host", "slow", "storage")
"""joules of a row: GPUs and host while training stood still for it (of a load, while it was read),
what draining added, storage"""
WORDS: Final = ("team", "cluster", "model", "tier")
"""labels that a fleet is grouped by; others are kept too"""


class NodeDayColumn(NamedTuple):
    dtype: str
    meaning: str


def _of_end(end: str) -> str:
    return f": the {end[1:]} end" if end else ", as metered"


COLUMNS: Final[Mapping[str, NodeDayColumn]] = {
    "key": NodeDayColumn("int64", "hash of the label: the same save has the same on all nodes"),
    "label": NodeDayColumn("str", "what the marks call it"),
    "load": NodeDayColumn("bool", "read back, not written"),
    "begin_ns": NodeDayColumn("int64", "Unix time by the node's own clock"),
    "stall_s": NodeDayColumn(
        "float64", "from the node's first begin to its own last return; NaN: nobody says"
    ),
    "drain_s": NodeDayColumn("float64", "from that return until safe; NaN: nobody says"),
    "bytes": NodeDayColumn("float64", "that this node wrote or read; NaN: not known"),
    "files": NodeDayColumn("float64", "the same of files"),
    "ranks": NodeDayColumn("int32", "of this node that took part"),
    "failed": NodeDayColumn("bool", "it was not completed"),
    "gpu_s": NodeDayColumn(
        "float64", "GPU-seconds of the node's own stall; instants that saves share are divided"
    ),
    **{
        f"{line}{end}_j": NodeDayColumn(
            "float32" if end else "float64", f"joules of {line}{_of_end(end)}"
        )
        for line in LINES
        for end in ("", "_low", "_high")
    },
}
"""NaN is unknown, an infinite high end is none. No PUE in any of them"""


@dataclass(frozen=True, slots=True)
class NodeDayHead:
    """Of a node's day. Times are Unix ns by the node's own clock; NaN, 0 and empty are unknown
    unless said otherwise."""

    job: str
    run: str
    host: str
    day: str
    """UTC, 2026-11-20"""
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: float = nan
    """of this node"""
    nodes: int = 0
    """of the job, as its launcher says"""
    node_names: str = ""
    """as the launcher writes them: n[001-128],m7"""
    simulated: bool = False
    began_ns: int = 0
    until_ns: int = 0
    """first and last reading of this day"""
    run_began_ns: int = 0
    over: bool = False
    """the recorder was stopped on this day in an orderly way"""
    exit_code: int | None = None
    """of the wrapped command, where it ended on this day"""
    covered_s: float = nan
    """seconds of the day with readings"""
    gpu_total_j: float = nan
    host_total_j: float = nan
    """all that was metered on the day, training included"""
    train_gpu_w: float = nan
    train_host_w: float = nan
    """mean power outside saves and loads"""
    step_s: float = nan
    """median training step"""
    meter: str = ""
    """which recorder read it, so that two on one node are told apart: boot and process"""
    source: str = ""
    """fingerprint of the run files it was made of"""
    ckptcost: str = __version__


class NodeDay(NamedTuple):
    head: NodeDayHead
    rows: Rows

    @property
    def many(self) -> int:
        return len(self.rows["key"])


def empty_rows(count: int = 0) -> dict[str, NDArray[Any]]:
    """Nothing known: NaN, zero, empty."""
    found: dict[str, NDArray[Any]] = {}
    for name, (dtype, _) in COLUMNS.items():
        if dtype == "str":
            found[name] = np.full(count, "", dtype=object)
        else:
            found[name] = np.full(count, nan if dtype.startswith("float") else 0, dtype=dtype)
    return found


def key_of(label: str) -> int:
    """The same on every machine and in every version.

    >>> key_of("step 1000")
    -3818894464961706446
    """
    from hashlib import blake2b

    return int.from_bytes(
        blake2b(label.encode("utf-8", "backslashreplace"), digest_size=8).digest(),
        "little",
        signed=True,
    )
