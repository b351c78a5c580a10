"""What one job's day comes to, as frames that are put one after another: the only thing that
travels between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pandas import DataFrame

FILES: Final = ("path", "job", "run", "host", "day", "code", "text", "rows")
"""every file that was looked at; `code` is empty where it counts"""
HEADS: Final = (
    "job",
    "run",
    "host",
    "day",
    "labels",
    "gpus",
    "nodes",
    "node_names",
    "simulated",
    "began_ns",
    "until_ns",
    "run_began_ns",
    "over",
    "exit_code",
    "covered_s",
    "gpu_total_j",
    "host_total_j",
    "train_gpu_w",
    "train_host_w",
    "step_s",
    "last_kept_ns",
    "last_mark_ns",
    "offset_s",
    "offset_unsure_s",
    "offset_windows",
)
"""of every file that counts. `labels`: sorted JSON text; `last_kept_ns`: begin of the last
completed save, 0 if none; `last_mark_ns`: the last instant that a row names; times are on the job's
clock: offset taken off"""
SUMS: Final = ("gpu", "host", "slow", "storage")
WINDOWS: Final = (
    "job",
    "run",
    "day",
    "key",
    "label",
    "load",
    "failed",
    "begin_ns",
    "stall_s",
    "drain_s",
    "bytes",
    "files",
    "nodes",
    "own_gpu_s",
    "wait_gpu_s",
    "wait_j",
    "wait_low_j",
    "wait_high_j",
    "wait_nodes",
    "slowest",
    *(f"{line}{end}" for line in SUMS for end in ("_j", "_low_j", "_high_j", "_nodes")),
)
"""every save and load of a job, all its nodes together. `stall_s`: from the first node's begin to
the last one's return; `nodes`: that said something; `wait_*`: nodes that were done and stood until
the last one was; `*_nodes`: of how many the joules are known and in the sum"""
NODES: Final = (
    "job",
    "run",
    "host",
    "day",
    "windows",
    "saves",
    "own_gpu_s",
    "wait_gpu_s",
    "wait_j",
    "blamed_gpu_s",
    "blamed_j",
    "slowest",
    "stall_s",
    "bytes",
    *(f"{line}_j" for line in SUMS),
    *(f"{line}_windows" for line in SUMS),
)
"""what each node had of them. `blamed_*`: others' waiting that it caused; `slowest`: how often it
was the last; `*_windows`: in the sum"""


class StorePart(NamedTuple):
    """Frames with the columns above. `edges` holds rows near the beginning or end of the day, whose
    other nodes may be in the next part: as node_day.COLUMNS, by the job's clock, with job, run,
    host, gpus."""

    files: DataFrame
    heads: DataFrame
    windows: DataFrame
    nodes: DataFrame
    edges: DataFrame
