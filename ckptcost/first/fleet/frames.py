"""Columns of a part, with the names, types and order that part.py says, empty or not; and frames of
the columns of many.

A job's day comes as plain arrays: a frame takes some milliseconds to make, which many small jobs
over months would pay a million times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.fleet.node_day import COLUMNS, NodeDayHead
from ckptcost.first.fleet.part import FILES, HEADS, NODES, WINDOWS, StorePart

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.fleet.clocks import TimedFiles
    from ckptcost.first.fleet.same_save import Ints
    from ckptcost.first.fleet.validate import FileVerdict

EDGES: Final = ("job", "run", "host", "day", "gpus", *COLUMNS)
"""`day`: of the file that the row is from"""
TEXTS: Final = {
    "path",
    "job",
    "run",
    "host",
    "day",
    "code",
    "text",
    "labels",
    "label",
    "node_names",
    "slowest",
}
"""`slowest` of windows is a host; of nodes it is a number"""
WHOLE: Final = {
    "key",
    "begin_ns",
    "began_ns",
    "until_ns",
    "run_began_ns",
    "last_kept_ns",
    "last_mark_ns",
    "nodes",
    "windows",
    "saves",
    "offset_windows",
    "wait_nodes",
    *(f"{line}_{of}" for line in ("gpu", "host", "slow", "storage") for of in ("nodes", "windows")),
}
FLAGS: Final = {"load", "failed", "simulated", "over"}


Columns = Mapping[str, NDArray[Any]]


class PartFrames(NamedTuple):
    """What a part is made of, as `Part` has it."""

    files: Columns
    heads: Columns
    windows: Columns
    nodes: Columns
    edges: Columns


def typed_columns(
    names: Sequence[str], columns: Mapping[str, Any], whole: Iterable[str] = ()
) -> Columns:
    """Arrays of these names; of the same types wherever they are made, so that they can be put one
    after another."""
    found = {}
    for name in names:
        if name in whole or name in WHOLE:
            dtype: Any = np.int64
        elif name in TEXTS:
            dtype = object
        else:
            dtype = bool if name in FLAGS else np.float64
        found[name] = np.asarray(columns.get(name, ()), dtype=dtype)
    return found


def frame_of(columns: Columns) -> DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            name: pd.Series(values, dtype="str") if values.dtype == object else values
            for name, values in columns.items()
        }
    )


def make_frame(
    names: Sequence[str], columns: Mapping[str, Any], whole: Iterable[str] = ()
) -> DataFrame:
    return frame_of(typed_columns(names, columns, whole))


def pieces(**given: Columns) -> PartFrames:
    """What is not given is empty."""
    empty = {
        "files": of_files(()),
        "heads": typed_columns(HEADS, {}),
        "windows": typed_columns(WINDOWS, {}),
        "nodes": typed_columns(NODES, {}, ("slowest",)),
        "edges": typed_columns(EDGES, {}, ("ranks",)),
    }
    return PartFrames(**{**empty, **given})


def put_together(many: Sequence[PartFrames]) -> StorePart:
    """One after another."""
    found = []
    for each in zip(*many, strict=True):
        found.append(
            frame_of(
                {name: np.concatenate([columns[name] for columns in each]) for name in each[0]}
            )
        )
    return StorePart(*found)


def of_files(verdicts: Iterable[FileVerdict]) -> Columns:
    lines = list(verdicts)
    return typed_columns(FILES, {name: [getattr(line, name) for line in lines] for name in FILES})


def of_heads(timed: TimedFiles, first_ns: Ints, kept_ns: Ints, last_ns: Ints) -> Columns:
    """Instants with the offset taken off; where nothing tells it, it is NaN and nothing is taken
    off. Who does not say when it began had begun by its first row."""
    heads = [file.head for file in timed.files]
    found: dict[str, Any] = {
        name: [getattr(head, name) for head in heads]
        for name in HEADS
        if name in NodeDayHead.__dataclass_fields__
    }
    for name in ("began_ns", "until_ns", "run_began_ns"):
        given = np.array(found[name], dtype=np.int64)
        found[name] = np.where(
            given == 0, first_ns if name == "began_ns" else 0, given - timed.offset_ns
        )
    found["labels"] = [
        json.dumps(dict(head.labels), sort_keys=True, ensure_ascii=False) for head in heads
    ]
    found["exit_code"] = [
        np.nan if head.exit_code is None else float(head.exit_code) for head in heads
    ]
    found["last_kept_ns"], found["last_mark_ns"] = kept_ns, last_ns
    found["offset_s"] = np.where(timed.told > 0, timed.offset_ns / 1e9, np.nan)
    found["offset_unsure_s"], found["offset_windows"] = timed.unsure_s, timed.told
    return typed_columns(HEADS, found)


def of_windows(
    timed: TimedFiles,
    columns: Mapping[str, Any],
    sums: Mapping[str, Any],
    slowest: Ints,
    first: Ints,
    labels: Mapping[int, str],
    which: Any,
) -> Columns:
    """`first`: a row of each window; `which`: windows that are wanted."""
    places = np.flatnonzero(which)
    rows = first[places]
    heads = [timed.files[file].head for file in timed.node[rows].tolist()]
    last = slowest[places]
    hosts = [timed.files[file].head.host for file in timed.node[last].tolist()]
    found = {name: values[places] for name, values in sums.items()} | {
        "job": [head.job for head in heads],
        "run": [head.run for head in heads],
        "day": [head.day for head in heads],
        "key": columns["key"][rows],
        "load": columns["load"][rows],
        "label": [labels.get(place, "") for place in places.tolist()],
        "slowest": [
            "" if row < 0 else host for row, host in zip(last.tolist(), hosts, strict=True)
        ],
    }
    return typed_columns(WINDOWS, found)


def of_nodes(heads: Sequence[NodeDayHead], sums: Mapping[str, Any]) -> Columns:
    named = {
        name: [getattr(head, name) for head in heads] for name in ("job", "run", "host", "day")
    }
    return typed_columns(NODES, {**named, **sums}, ("slowest",))


def of_edges(
    timed: TimedFiles, columns: Mapping[str, Any], rows: Ints, labels: Mapping[int, str]
) -> Columns:
    heads = [timed.files[file].head for file in timed.node[rows].tolist()]
    found: dict[str, Any] = {name: values[rows] for name, values in columns.items()}
    found |= {
        name: [getattr(head, name) for head in heads]
        for name in ("job", "run", "host", "day", "gpus")
    }
    found["label"] = [labels.get(place, "") for place in timed.window[rows].tolist()]
    # not read, and of no use here: node_day says that 0 is unknown
    found["ranks"] = np.zeros(len(rows), dtype=np.int64)
    return typed_columns(EDGES, found, ("ranks",))


def in_order(frame: DataFrame, *names: str) -> DataFrame:
    return frame.sort_values(list(names), kind="stable", ignore_index=True)
