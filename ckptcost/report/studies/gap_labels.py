"""Names of what is compared, of the causes of a difference, and why some lines are not held against
each other."""

from __future__ import annotations

from ckptcost.core.gap import Course
from ckptcost.present.amounts import duration, number, rate, size
from ckptcost.present.measured import ABSENT
from ckptcost.present.words import line_label

LABELS = {
    "bytes": "size",
    "files": "files",
    "time": "begin until safe",
    "stall": "stall",
    "lag": "drain after the stall",
    "rate": "size over time",
    "gpu_s": "GPU time stalled",
}
OF_A_LOAD = {"time": "begin until there", "stall": "held up", "gpu_s": "GPU time held up"}
CAUSES = {
    "size_s": "size",
    "fixed_s": "fixed time",
    "rate_s": "write rate",
    "straggler_s": "slowest rank over mean",
    "beside_s": "snapshot",
}
WHY = {
    "NO_BYTES": "no mark says how many bytes it wrote",
    "NO_FILES": "no mark says how many files it wrote",
    "NO_GPU_METER": "nothing here meters GPUs",
    "NO_GPU_COUNT": "nothing says how many GPUs there were: give --set cluster.gpus",
    "NO_STORAGE_METER": "nothing here meters the power of storage",
    "MODULE_METER": (
        "one meter sees GPU and host of a superchip together, and the model tells them apart"
    ),
    "NOT_METERED": "nothing on a node sees it",
    "NOT_MODELLED": "the scenario does not know a figure that it needs",
    "OTHER_BOUNDARY": (
        "it was measured at the drive, and the scenario's figure is of more than that"
    ),
    "PART_OF_JOB": "it is of one node, and the job is larger",
    "WITHOUT_LOST_TIME": (
        "measured is the power that a drain adds, modelled the training time that it takes"
    ),
    "GAPS": "readings do not cover all of it",
    "PARTS_EXCEED_NODE": "the GPUs' meters say more than the node's",
    "IN_MEMORY": "it was written to a file system in memory",
}
"""why a line has no difference"""


def why_text(code: str) -> str:
    """Why something is not compared.

    >>> why_text("NO_BYTES")
    'no mark says how many bytes it wrote'
    """
    return WHY.get(code) or ABSENT.get(code, code)


def label(row_id: str, of: str = "save", unit: str = "") -> str:
    """A row's name, with its unit where a number does not show it."""
    name = (
        (OF_A_LOAD.get(row_id) if of == "load" else None)
        or LABELS.get(row_id)
        or line_label(row_id)
    )
    return f"{name}, {unit}" if unit in ("J", "GPU-s") else name


def cause_label(name: str, of: str) -> str:
    return (
        {"rate_s": "read rate", "beside_s": "copying"}.get(name, CAUSES[name])
        if of == "load"
        else CAUSES[name]
    )


def factor_text(name: str, course: Course) -> str:
    """What a cause was on one side.

    >>> factor_text("rate_s", Course(1e9, 1.0, 2.1e9, 1.0, 0.0))
    '2.1 GB/s'
    """
    match name:
        case "size_s":
            return size(float(course.moved_bytes))
        case "rate_s":
            return rate(float(course.rate_bytes_per_s))
        case "straggler_s":
            return f"{number(float(course.straggler))}x"
    return duration(float(getattr(course, name)))
