"""Whose each row is: a job's run on one day is a cell, every sum is kept by cell, and a group is
some of the cells.

So whatever a fleet is grouped by, the groups are the same sums put together in another order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.estimates import Floats
from ckptcost.first.errors import InputError, brief
from ckptcost.first.fleet.node_day import WORDS

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.fleet.part import StorePart

Places = NDArray[np.int64]

BY: Final = ("job", *WORDS, "day")
NOT_SAID: Final = "(not said)"
"""the group of what carries no such label"""
_KEYS: Final = ("job", "run", "day")


class RunCells(NamedTuple):
    """A job's run on one day, by job, day and run; and which cell each row of the frames belongs
    to."""

    job: tuple[str, ...]
    run: tuple[str, ...]
    day: tuple[str, ...]
    labels: tuple[Mapping[str, str], ...]
    of_heads: Places
    of_windows: Places
    of_nodes: Places

    @property
    def many(self) -> int:
        return len(self.job)

    @property
    def of_runs(self) -> dict[tuple[str, str], list[int]]:
        """The cells of each run, by day."""
        found: dict[tuple[str, str], list[int]] = {}
        for place, key in enumerate(zip(self.job, self.run, strict=True)):
            found.setdefault(key, []).append(place)
        return found


class Groups(NamedTuple):
    names: tuple[str, ...]
    of_cells: Places
    """place of the group that each cell belongs to"""


def numbers(frame: DataFrame, name: str) -> Floats:
    """A column; of a frame that has no rows, and so perhaps no columns, an empty one."""
    if not len(frame):
        return np.zeros(0)
    return np.asarray(frame[name].to_numpy(dtype=np.float64, na_value=np.nan))


def instants(frame: DataFrame, name: str) -> Places:
    """Unix nanoseconds: a float would be off by 200 of them."""
    return (
        np.asarray(frame[name].to_numpy(dtype=np.int64))
        if len(frame)
        else np.zeros(0, dtype=np.int64)
    )


def flags(frame: DataFrame, name: str) -> NDArray[np.bool_]:
    return (
        np.asarray(frame[name].to_numpy(dtype=np.bool_))
        if len(frame)
        else np.zeros(0, dtype=np.bool_)
    )


def texts(frame: DataFrame, name: str) -> list[str]:
    return (
        [
            each if isinstance(each, str) else ""
            for each in frame[name].to_numpy(dtype=object).tolist()
        ]
        if len(frame)
        else []
    )


def add_by_place(values: Floats, places: Places, count: int) -> Floats:
    """Sums by place."""
    return np.asarray(np.bincount(places, weights=values, minlength=count), dtype=np.float64)


def sum_by_place(values: Floats, places: Places, count: int) -> Floats:
    """By place; what is not known is left out, so whoever asks counts it with `counted`."""
    return add_by_place(np.where(np.isnan(values), 0.0, values), places, count)


def count_by_place(which: NDArray[np.bool_], places: Places, count: int) -> Floats:
    return np.bincount(places[which], minlength=count).astype(np.float64)


def quotients(amounts: Floats, by: Any, otherwise: float = np.nan) -> Floats:
    """One by the other; `otherwise` where there is nothing to divide by."""
    found = np.full(len(amounts), otherwise)
    np.divide(amounts, by, where=by > 0, out=found)
    return found


def numbered(names: Iterable[Hashable]) -> tuple[dict[Any, int], Places]:
    """Each name's number, in the order in which they come, and the number of every one."""
    found: dict[Any, int] = {}
    return found, np.array([found.setdefault(name, len(found)) for name in names], dtype=np.int64)


def cells_of(part: StorePart) -> RunCells:
    """Every job, run and day of which there is a head or a row."""
    import pandas as pd

    frames = (part.heads, part.windows, part.nodes)
    sizes = [len(frame) for frame in frames]
    some = [frame for frame in frames if len(frame)]
    if not some:
        none = np.zeros(0, dtype=np.int64)
        return RunCells((), (), (), (), none, none, none)
    code: Any = 0
    names: list[Any] = []
    for key in _KEYS:
        # each column alone: hashing three of two million texts together takes ten times as long
        mine, unique = pd.factorize(
            pd.concat([frame[key].astype("str") for frame in some], ignore_index=True), sort=True
        )
        code = code * len(unique) + mine.astype(np.int64)
        names.append(np.asarray(unique, dtype=object))
    # by job, then day, then run
    runs, days = len(names[1]), len(names[2])
    job, run, day = code // (runs * days), code // days % runs, code % days
    of_rows, used = pd.factorize((job * days + day) * runs + run, sort=True)
    job, day, run = used // (runs * days), used // runs % days, used % runs
    of_rows = of_rows.astype(np.int64)
    ends = np.cumsum([0, *sizes])
    of_heads, of_windows, of_nodes = (of_rows[begin:end] for begin, end in pairwise(ends))
    return RunCells(
        tuple(str(each) for each in names[0][job]),
        tuple(str(each) for each in names[1][run]),
        tuple(str(each) for each in names[2][day]),
        _labels(part.heads, of_heads, len(used)),
        of_heads,
        of_windows,
        of_nodes,
    )


def _labels(heads: DataFrame, of_heads: Places, count: int) -> tuple[Mapping[str, str], ...]:
    """What a cell's nodes say of it; where they differ, the first by host has the word."""
    found: list[dict[str, str]] = [{} for _ in range(count)]
    read: dict[str, dict[str, str]] = {}
    rows = sorted(zip(texts(heads, "host"), of_heads.tolist(), texts(heads, "labels"), strict=True))
    for _, cell, text in rows:
        if text not in read:
            read[text] = _read(text)
        for word, value in read[text].items():
            found[cell].setdefault(word, value)
    return tuple(found)


def _read(text: str) -> dict[str, str]:
    import json

    try:
        said = json.loads(text) if text else {}
    except ValueError:
        return {}
    return (
        {str(word): str(value) for word, value in said.items() if value not in ("", None)}
        if isinstance(said, dict)
        else {}
    )


def groups_of(cells: RunCells, by: str) -> Groups:
    """By name, what is not said last."""
    if by not in BY:
        raise InputError(f"a fleet is not grouped by {brief(by)}", remedy=f"one of {', '.join(BY)}")
    keys = {"job": cells.job, "day": cells.day}
    said = keys[by] if by in keys else tuple(labels.get(by, NOT_SAID) for labels in cells.labels)
    names = sorted(set(said), key=lambda name: (name == NOT_SAID, name))
    place = {name: at for at, name in enumerate(names)}
    return Groups(tuple(names), np.array([place[name] for name in said], dtype=np.int64))
