"""A node's day as one Parquet file: plain columns that pandas, DuckDB and the like read, the head
as JSON in the schema's metadata.

Most of reading ten million rows in 14,336 files would be opening them: 0.3 ms each with pyarrow. So
the JSON also says where in the file a column's values lie as they are in memory, and they are taken
from there: 0.1 ms. It is looked up after the pages are written, never assumed: a column that is not
found as such, as texts never are, is read with pyarrow.

Nothing is compressed: joules and seconds are noise below their first digits, and zstd took a sixth
off for three times the time. NaN stays NaN, so that a sum over it is not known either, whoever
sums.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ckptcost.errors import MeterUnavailable, brief, not_there
from ckptcost.fleet.kept.head_json import LATEST_NS, from_plain, judge, to_plain
from ckptcost.fleet.kept.node_day import COLUMNS, Head, NodeDay, empty_rows
from ckptcost.fleet.kept.seal import (
    CORRUPT,
    FORMAT,
    FUTURE,
    MAJOR,
    VERSION,
    BadNodeFile,
    sealed,
    text_of,
)

KEY: Final = "ckptcost"
"""in the metadata of the Parquet schema"""
OWNERS: Final = ("run", "host")
"""columns for readers that take the whole store as one table; the same in all rows of a file"""
INSTANT: Final = "begin"
"""begin_ns as a time stamp"""

_Array = NDArray[Any]
_JUDGED: Final = ("begin_ns", "stall_s")
_WRONG: Final = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""what text that is JSON, but not as we write it, comes to"""


def encode(day: NodeDay) -> bytes:
    """The same day gives the same bytes, as long as pyarrow is the same. Raises ValueError for rows
    that no reader would take."""
    arrow = _arrow()
    _check(day)
    arrays: dict[str, Any] = {
        name: _repeated(arrow, getattr(day.head, name), day.many) for name in OWNERS
    }
    raw: dict[str, tuple[bytes, int]] = {}
    few = list(OWNERS)
    for name, (dtype, _) in COLUMNS.items():
        values = np.ascontiguousarray(day.rows[name])
        if dtype == "str":
            arrays[name] = arrow.array([_utf8(text) for text in values], arrow.string())
            continue
        if same := _all_the_same(values):
            few.append(_column(name))
        held = values[:1] if same else values
        raw[name] = (
            np.packbits(held, bitorder="little").tobytes() if dtype == "bool" else held.tobytes(),
            len(held),
        )
        array = arrow.array(values)
        arrays[_column(name)] = (
            array.view(arrow.timestamp("ns", "UTC")) if name == "begin_ns" else array
        )
    schema = arrow.schema(
        [arrow.field(name, array.type, nullable=False) for name, array in arrays.items()]
    )
    table = arrow.Table.from_arrays(list(arrays.values()), schema=schema)
    file = io.BytesIO()
    with arrow.parquet.ParquetWriter(
        file,
        schema,
        version="2.6",
        compression="none",
        use_dictionary=few,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(table)
        text = json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "rows": day.many,
                "head": to_plain(day.head),
                "places": _places(file.getvalue(), raw),
            },
            allow_nan=False,
        )
        writer.add_key_value_metadata({KEY: text})
    return sealed(file.getvalue(), text.encode())


def decode(
    data: bytes, columns: Sequence[str] | None = None, where: str = "", own: bool = True
) -> NodeDay:
    """`columns` of node_day.COLUMNS, all unless said; key is always there. Not `own`: arrays lie in
    the file's bytes, unaligned perhaps, and cannot be changed. Raises BadNodeFile, with `where` as
    its place."""
    wanted = COLUMNS if columns is None else dict.fromkeys(("key", *columns))
    if unknown := [name for name in wanted if name not in COLUMNS]:
        raise ValueError(f"no column {unknown[0]}")
    try:
        head, count, places = _told(text_of(data))
        try:
            rows = _rows(data, count, places, dict.fromkeys((*wanted, *_JUDGED)), own)
            _judge(rows)
        except _WRONG as error:
            raise BadNodeFile(
                CORRUPT, f"its columns are not as it says ({brief(str(error))})"
            ) from None
    except BadNodeFile as error:
        error.at(where)
        raise
    return NodeDay(head, {name: rows[name] for name in wanted})


def _told(text: bytes) -> tuple[Head, int, Mapping[str, Any]]:
    """Head, number of rows, and where columns lie: first byte, and how many values are there (one
    may stand for all)."""
    try:
        known = json.loads(text)
        if known["format"] != FORMAT:
            raise ValueError("another format")
        if int(known["version"].partition(".")[0]) > MAJOR:
            raise BadNodeFile(
                FUTURE, f"format {FORMAT} {brief(known['version'])}, this program reads {MAJOR}.x"
            )
        count, places = known["rows"], known["places"]
        if type(count) is not int or count < 0 or not isinstance(places, dict):
            raise ValueError("no rows")
        return from_plain(known["head"]), count, places
    except (*_WRONG, AttributeError) as error:
        if isinstance(error, BadNodeFile):
            raise
        raise BadNodeFile(
            CORRUPT, f"its head is not as one is written ({brief(str(error))})"
        ) from None


def _rows(
    data: bytes, count: int, places: Mapping[str, Any], wanted: Mapping[str, Any], own: bool
) -> dict[str, _Array]:
    """What is in the file as plain values is taken from where it lies; other columns go through
    pyarrow; what an older file lacks is unknown."""
    if count > 8 * len(data):  # a flag takes a bit
        raise ValueError("more rows than bytes")
    found: dict[str, _Array] = {}
    for name in wanted:
        if name in places:
            dtype = COLUMNS[name].dtype
            at, held = places[name]
            if held not in (1, count):
                raise ValueError(f"{name} has {held} values")
            if dtype == "bool":
                bits = np.frombuffer(data, np.uint8, (held + 7) // 8, at)
                values = np.unpackbits(bits, count=held, bitorder="little").view(np.bool_)
            else:
                values = np.frombuffer(data, dtype, held, at)
            found[name] = (
                values.repeat(count) if held != count else values.copy() if own else values
            )
    others = [name for name in wanted if name not in found]
    if others:
        found |= _by_arrow(data, others, count)
    if missing := [name for name in others if name not in found]:
        unknown = empty_rows(count)
        found |= {name: unknown[name] for name in missing}
    return found


def _by_arrow(data: bytes, names: Sequence[str], count: int) -> dict[str, _Array]:
    arrow = _arrow()
    try:
        file = arrow.parquet.ParquetFile(arrow.BufferReader(data))
        table = file.read(columns=[_column(name) for name in names], use_threads=False)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(str(error)) from None
    found = {}
    for name in names:
        if _column(name) in table.column_names:
            column = table.column(_column(name))
            values = (column.cast(arrow.int64()) if name == "begin_ns" else column).to_numpy()
            if values.dtype != _dtype(name) or len(values) != count:
                raise ValueError(f"{name} has {len(values)} values of {values.dtype}")
            found[name] = values.copy()
    return found


def _check(day: NodeDay) -> None:
    rows = day.rows
    if odd := set(rows) ^ set(COLUMNS):
        raise ValueError(f"columns missing or unknown: {', '.join(sorted(odd))}")
    for name, (dtype, _) in COLUMNS.items():
        values = rows[name]
        if values.dtype != _dtype(name) or values.shape != (day.many,):
            raise ValueError(
                f"{name}: {day.many} values of {dtype} were due, not {values.shape} of"
                f" {values.dtype}"
            )
        if dtype == "str" and not all(isinstance(text, str) for text in values):
            raise ValueError(f"{name}: not all are texts")
    judge(day.head)
    _judge(rows)


def _judge(rows: Mapping[str, _Array]) -> None:
    begin = rows["begin_ns"]
    if len(begin) and (begin.min() < 0 or begin.max() >= LATEST_NS):
        raise ValueError("a begin before 1970 or after 2200")
    if (rows["stall_s"] < 0).any():
        raise ValueError("a stall below zero")


def _places(pages: bytes, raw: Mapping[str, tuple[bytes, int]]) -> dict[str, tuple[int, int]]:
    """In the order in which they are written, so that each is looked for after the last one. Equal
    bytes elsewhere would do as well."""
    found = {}
    after = 0
    for name, (values, held) in raw.items():
        at = pages.find(values, after)
        if at >= 0:
            found[name] = at, held
            after = at + len(values)
    return found


def _all_the_same(values: _Array) -> bool:
    """Bit for bit: such a column is kept as one value."""
    if len(values) < 2 or values.dtype == np.bool_:
        return False
    bits = values.view(f"u{values.dtype.itemsize}")
    return bool((bits == bits[0]).all())


def _dtype(name: str) -> np.dtype[Any]:
    dtype = COLUMNS[name].dtype
    return np.dtype(object if dtype == "str" else dtype)


def _column(name: str) -> str:
    return INSTANT if name == "begin_ns" else name


def _repeated(arrow: Any, text: str, count: int) -> Any:
    return arrow.repeat(arrow.scalar(_utf8(text), arrow.string()), count)


def _utf8(text: str) -> str:
    """A path may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()


def _arrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MeterUnavailable(
            f"files of a store are Parquet, for which pyarrow {not_there(error)}",
            "pip install 'ckptcost[fleet]'",
        ) from None
    return pyarrow
