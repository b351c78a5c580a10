"""The lines of every bill, declared here and nowhere else: what each is called, what causes it,
whose it is, and what its watts rest on.

A line of a further tier has the same kind, and its id begins with `second_` or `third_`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ckptcost.first.core.domain import Boundary

Cause = Literal["save", "failure", "keep"]
Ledger = Literal["marginal", "allocated"]
_HOST_STALL = ("cluster.host_stall", "cluster.host_stall_fraction", "cluster.host_train")
_TRAIN = ("cluster.gpu_train", "cluster.host_train")


class LineKind(NamedTuple):
    id: str
    label: str
    cause: Cause
    boundary: Boundary | None
    """None: its tier's"""
    during: Literal["", "stall", "drain", "whole"] = ""
    """the part of a save that it lasts; a save has no other lines"""
    watts: tuple[str, ...] = ()
    """inputs that its watts are; none: its joules are storage's"""
    rate: str = ""
    """the tier's input without which it is unknown"""
    ledger: Ledger = "marginal"
    holds_gpus: bool = False
    """their time is paid for"""


KINDS = {
    kind.id: kind
    for kind in (
        LineKind(
            "gpu_wait",
            "GPUs waiting for saves",
            "save",
            "node",
            "stall",
            ("cluster.gpu_stall",),
            holds_gpus=True,
        ),
        LineKind("host_wait", "hosts waiting for saves", "save", "node", "stall", _HOST_STALL),
        LineKind(
            "slowdown",
            "training slowed by a drain",
            "save",
            "node",
            "drain",
            _TRAIN,
            holds_gpus=True,
        ),
        LineKind("storage_write", "storage writing", "save", None, "whole", rate="write_energy"),
        LineKind(
            "network", "network to storage", "save", "cluster", "whole", rate="network_energy"
        ),
        LineKind("requests", "write requests", "save", None, "whole", rate="request_price"),
        LineKind("retention", "keeping the bytes", "keep", None, rate="storage_price"),
        LineKind("standing", "idle storage, its share", "keep", None, ledger="allocated"),
        LineKind(
            "redone_work",
            "work redone after failures",
            "failure",
            "node",
            watts=_TRAIN,
            holds_gpus=True,
        ),
        LineKind(
            "restart",
            "detection and restart",
            "failure",
            "node",
            watts=(
                "cluster.gpu_stall",
                "cluster.gpu_idle",
                *_TRAIN,
                *_HOST_STALL,
                "cluster.host_idle",
            ),
            holds_gpus=True,
        ),
        LineKind(
            "loading",
            "loading checkpoints",
            "failure",
            "node",
            watts=("cluster.gpu_stall", *_HOST_STALL),
            holds_gpus=True,
        ),
        LineKind("waiting", "nodes waiting for the last one", "save", "node", holds_gpus=True),
        LineKind(
            "missing_nodes", "nodes that are missing, estimated", "save", "node", holds_gpus=True
        ),
    )
}
OF_THE_JOB = frozenset(kind.id for kind in KINDS.values() if kind.watts)
"""lines that grow with the cluster: a sum that lacks one of them would rank an unpriced cluster as
the cheapest"""
OF_A_SAVE = tuple(kind.id for kind in KINDS.values() if kind.during)
"""the lines that one save has; the others are of keeping, of failures, or of further tiers"""


def tier_and_kind(line_id: str) -> tuple[str, LineKind]:
    """Which of the tiers a line is of, as scenarios call it, and its kind.

    >>> tier, kind = tier_and_kind("second_network")
    >>> tier, kind.id, tier_and_kind("gpu_wait")[0]
    ('second_tier', 'network', 'tier')
    """
    for which in ("second_", "third_"):
        if line_id.startswith(which):
            return f"{which}tier", KINDS[line_id.removeprefix(which)]
    return "tier", KINDS[line_id]
