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
import math
import re
import struct
from binascii import crc32
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.errors import InputError, MeterUnavailable, brief, not_there
from ckptcost.first.fleet.node_day import COLUMNS, LINES, NodeDay, NodeDayHead, empty_rows

# A Parquet file under a checksum of all its bytes, and a text in it that is found without a
# Parquet reader. Readers find a Parquet file's footer from its end and the pages by their
# offsets, so bytes between pages and footer are nobody's: 16 of them hold the seal. Checked
# first, it keeps every flipped byte from the libraries that would otherwise take it for a length.


CORRUPT, TRUNCATED, FUTURE, NOT_OURS = "CORRUPT", "TRUNCATED", "FUTURE", "NOT_OURS"
MARK: Final = b"PAR1"
"""begins and ends every Parquet file"""
FORMAT: Final = "ckptcost.node"
VERSION: Final = "1.0"
MAJOR: Final = 1
SEAL: Final = b"CKS1"

_SEAL: Final = struct.Struct("<4sIII")
"""SEAL, where the text begins, its bytes, CRC-32 of all bytes of the file but these last four"""
_END: Final = struct.Struct("<I4s")
_VERSION: Final = re.compile(rb'"format": ?"ckptcost\.node", ?"version": ?"(\d{1,6})\.')


class BadNodeFile(InputError):
    """A node's file that says nothing reliable. `code`: CORRUPT, TRUNCATED, FUTURE or NOT_OURS."""

    def __init__(self, code: str, text: str, where: str = "") -> None:
        self.code, self.text = code, text
        super().__init__(text, where=where, remedy="use a newer ckptcost" if code == FUTURE else "")

    def __reduce__(self) -> tuple[type[BadNodeFile], tuple[str, str, str]]:
        return type(self), (self.code, self.text, self.where)


def seal_parquet(parquet: bytes, text: bytes) -> bytes:
    """`text` is somewhere in the footer already, as a value of its metadata."""
    footer = _footer_of(parquet)
    if footer is None or (at := parquet.find(text, footer)) < 0:
        raise ValueError("no Parquet file with this text in its footer")
    head = parquet[:footer] + _SEAL.pack(SEAL, at + _SEAL.size, len(text), 0)[:-4]
    tail = parquet[footer:]
    return b"".join((head, struct.pack("<I", crc32(tail, crc32(head))), tail))


def text_of(data: bytes) -> bytes:
    """Raises BadNodeFile where a byte is not as it was written."""
    if not data.endswith(MARK) or len(data) < 2 * len(MARK) + _END.size:
        if data[:4] != MARK[: len(data)] and data.strip(b"\0"):
            raise BadNodeFile(NOT_OURS, "no Parquet file")
        raise BadNodeFile(TRUNCATED, "it is empty" if not data else "its end is missing")
    footer = _footer_of(data)
    if (
        footer is None
        or footer < _SEAL.size
        or data[footer - _SEAL.size : footer - _SEAL.size + 4] != SEAL
    ):
        raise _broken_seal(data)
    _, at, length, crc = _SEAL.unpack_from(data, footer - _SEAL.size)
    view = memoryview(data)
    if crc32(view[footer:], crc32(view[: footer - 4])) != crc:
        raise BadNodeFile(CORRUPT, "its checksum does not fit")
    return data[at : at + length]


def _footer_of(data: bytes) -> int | None:
    """Where it begins."""
    length, _ = _END.unpack_from(data, len(data) - _END.size)
    begin = len(data) - _END.size - length
    return begin if begin >= len(MARK) else None


def _broken_seal(data: bytes) -> BadNodeFile:
    """Somebody else's, a later format, or ours with the seal broken: its name is in it more than
    once."""
    if (found := _VERSION.search(data)) and int(found[1]) > MAJOR:
        return BadNodeFile(
            FUTURE, f"format {FORMAT} {int(found[1])}.x, this program reads {MAJOR}.x"
        )
    if FORMAT.encode() in data:
        return BadNodeFile(CORRUPT, "its seal is broken, or another program wrote it anew")
    return BadNodeFile(NOT_OURS, f"a Parquet file, but no {FORMAT}")


# The head of a node's day as JSON: NaN is null, an infinite number its name as text.


LATEST_NS: Final = 7_258_118_400_000_000_000
"""the year 2200: a clock that says more is none"""
NEEDED: Final = ("job", "run", "host", "day")
LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "stall_s": (0.0, 1e9),
    "drain_s": (0.0, 1e9),
    "bytes": (0.0, 1e18),
    "files": (0.0, 1e12),
    "ranks": (0.0, 1e6),
    "gpu_s": (0.0, 1e15),
    **{f"{line}_j": (-1e18, 1e18) for line in LINES},
    # an end may be open, to its own side
    **{f"{line}_low_j": (-math.inf, 1e18) for line in LINES},
    **{f"{line}_high_j": (-1e18, math.inf) for line in LINES},
}
"""of columns: what no node does"""
HEAD_LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "gpus": (0.0, 1e6),
    "nodes": (0.0, 1e9),
    "covered_s": (0.0, 1e6),
    "gpu_total_j": (0.0, 1e18),
    "host_total_j": (0.0, 1e18),
    "train_gpu_w": (0.0, 1e12),
    "train_host_w": (0.0, 1e12),
    "step_s": (0.0, 1e9),
}


def _float_out(value: Any) -> float | str | None:
    number = float(value)
    if math.isfinite(number):
        return number
    return None if number != number else str(number)


def _float_in(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def taken(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(value)
        return value

    return taken


def _labels_in(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise TypeError(value)
    return value


_int_in = _exactly(int)
_KINDS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "str": (str, _exactly(str)),
    "float": (_float_out, _float_in),
    "int": (int, _int_in),
    "bool": (bool, _exactly(bool)),
    "int | None": (
        lambda value: None if value is None else int(value),
        lambda value: None if value is None else _int_in(value),
    ),
    "Mapping[str, str]": (
        lambda value: {str(key): str(each) for key, each in value.items()},
        _labels_in,
    ),
}
_FIELDS: Final = tuple((each.name, *_KINDS[str(each.type)]) for each in fields(NodeDayHead))


def to_plain(head: NodeDayHead) -> dict[str, Any]:
    return {name: out(getattr(head, name)) for name, out, _ in _FIELDS}


def from_plain(known: Mapping[str, Any]) -> NodeDayHead:
    """Keys of a newer minor version are passed over. Raises ValueError, KeyError, TypeError or
    OverflowError."""
    for name in NEEDED:
        known[name]
    head = NodeDayHead(**{name: taken(known[name]) for name, _, taken in _FIELDS if name in known})
    judge(head)
    return head


def judge(head: NodeDayHead) -> None:
    """Raises ValueError for days and times that cannot be."""
    if len(head.day) != 10 or date.fromisoformat(head.day).isoformat() != head.day:
        raise ValueError(f"no day: {head.day!r}")
    for name in ("began_ns", "until_ns", "run_began_ns"):
        if not 0 <= getattr(head, name) < LATEST_NS:
            raise ValueError(f"{name} is no time: {getattr(head, name)}")
    for name, (least, most) in HEAD_LIMITS.items():
        value = getattr(head, name)
        if value < least or value > most:
            raise ValueError(f"{name} cannot be {value:g}")


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
        name: _repeat_text(arrow, getattr(day.head, name), day.many) for name in OWNERS
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
        bits = np.packbits(held, bitorder="little") if dtype == "bool" else held
        raw[name] = bits.tobytes(), len(held)
        arrays[_column(name)] = arrow.array(values)
    arrays[INSTANT] = arrays[INSTANT].view(arrow.timestamp("ns", "UTC"))
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
    return seal_parquet(file.getvalue(), text.encode())


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
        head, count, places = _places_in_footer(text_of(data))
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


def _places_in_footer(text: bytes) -> tuple[NodeDayHead, int, Mapping[str, Any]]:
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
            at, held = places[name]
            if held not in (1, count):
                raise ValueError(f"{name} has {held} values")
            values = _values_at(data, COLUMNS[name].dtype, at, held)
            found[name] = (
                values.repeat(count) if held != count else values.copy() if own else values
            )
    others = [name for name in wanted if name not in found]
    return found | _other_rows(data, others, count) if others else found


def _other_rows(data: bytes, names: Sequence[str], count: int) -> dict[str, _Array]:
    found = _by_arrow(data, names, count)
    if missing := [name for name in names if name not in found]:
        unknown = empty_rows(count)
        found |= {name: unknown[name] for name in missing}
    return found


def _values_at(data: bytes, dtype: str, at: int, held: int) -> _Array:
    if dtype != "bool":
        return np.frombuffer(data, dtype, held, at)
    bits = np.frombuffer(data, np.uint8, (held + 7) // 8, at)
    return np.unpackbits(bits, count=held, bitorder="little").view(np.bool_)


def _by_arrow(data: bytes, names: Sequence[str], count: int) -> dict[str, _Array]:
    arrow = _arrow()
    try:
        file = arrow.parquet.ParquetFile(arrow.BufferReader(data))
        table = file.read(columns=[_column(name) for name in names], use_threads=False)
        return _columns_of(arrow, table, names, count)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(str(error)) from None


def _columns_of(arrow: Any, table: Any, names: Sequence[str], count: int) -> dict[str, _Array]:
    """A text that is no UTF-8 is found here only."""
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
    """A seal says that a file is as it was written, not that a machine wrote it."""
    begin = rows["begin_ns"]
    if not len(begin):
        return
    if begin.min() < 0 or begin.max() >= LATEST_NS:
        raise ValueError("a begin before 1970 or after 2200")
    for name, (least, most) in LIMITS.items():
        values = rows.get(name)
        if values is None:
            continue
        # NaN only where all are
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        if low < least or high > most:
            raise ValueError(f"{name} of {low if low < least else high:g}")


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


def _repeat_text(arrow: Any, text: str, count: int) -> Any:
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
