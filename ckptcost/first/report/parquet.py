"""A run as Parquet, for pandas, DuckDB, Polars and the like: readings, marks and checkpoints as
tables, all the rest in run.json.

Written channel by channel, so that beside the run itself only some megabytes are in memory. pyarrow
is imported here alone, and only when somebody asks. What is unknown is null.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ckptcost.first.core.contents import Contents
from ckptcost.first.core.windows import Window
from ckptcost.first.errors import InputError, MeterUnavailable, OutputError, not_there
from ckptcost.first.jobs.drains import saves_of
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.report.folders import whole_folder
from ckptcost.first.runs import reader
from ckptcost.first.runs.lines import plain
from ckptcost.first.runs.run import Run

FORMAT: Final = "ckptcost.pack"
VERSION: Final = 1
READINGS, MARKS, WINDOWS, ABOUT = "readings.parquet", "marks.parquet", "windows.parquet", "run.json"
FILES: Final = (READINGS, MARKS, WINDOWS, ABOUT)
GROUP_ROWS: Final = 250_000
"""rows of a row group at most: 10 MB while it is written and while it is read"""
COMPRESSION: Final = "zstd"
"""a third of what snappy leaves. Numbers stay plain: splitting their bytes would halve it again,
and not every reader can undo that"""

_TEXT, _NUMBER, _COUNT = "text", "number", "count"
_READINGS: Final = {
    "t_s": (_NUMBER, "when it was asked, in seconds since the run began"),
    "host": (_TEXT, ""),
    "domain": (_TEXT, "gpu:0, cpu:0, disk:sda ..."),
    "quantity": (_TEXT, "energy_j, power_w, written_bytes ...; its unit is its ending"),
    "source": (_TEXT, "where the number comes from"),
    "scope": (_TEXT, "what the sensor sees"),
    "value": (
        _NUMBER,
        "a counter or a gauge, as headers say; null: it was asked and did not answer",
    ),
    "took_s": (_NUMBER, "until the answer was there"),
}
_MARKS: Final = {
    "t_s": (_NUMBER, "in seconds since the run began"),
    "host": (_TEXT, "empty: of several hosts nobody says which"),
    "name": (_TEXT, ""),
    "window": (_TEXT, "the label that joins marks to a checkpoint"),
    "rank": (_COUNT, ""),
    "by": (_TEXT, "who said so"),
    "detail": (_TEXT, "a JSON object"),
}
_WINDOWS: Final = {
    "host": (_TEXT, ""),
    "window": (_TEXT, "its name"),
    "label": (_TEXT, "as the marks have it"),
    "of": (_TEXT, "save or load"),
    "begin_s": (_NUMBER, "in seconds since the run began, as all instants here"),
    "returned_s": (_NUMBER, "training went on"),
    "durable_s": (_NUMBER, "it was safe"),
    "last_s": (_NUMBER, "its last mark"),
    "stall_s": (_NUMBER, ""),
    "drain_s": (_NUMBER, ""),
    "length_s": (_NUMBER, ""),
    "bytes": (_NUMBER, ""),
    "files": (_NUMBER, ""),
    "ranks": (_COUNT, ""),
    "path": (_TEXT, ""),
    "error": (_TEXT, "what ended it before its time"),
    "how": (_TEXT, "the evidence for durable_s"),
    "unsure_s": (_NUMBER, "so long before durable_s it was last seen not to be safe"),
    "begin_why": (_TEXT, "code, where begin_s is null; the next two alike"),
    "returned_why": (_TEXT, ""),
    "durable_why": (_TEXT, ""),
    "flags": (_TEXT, "codes with commas between"),
}
TABLES: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    READINGS: _READINGS,
    MARKS: _MARKS,
    WINDOWS: _WINDOWS,
}


_OF_CHANNEL: Final = ("domain", "quantity", "source", "scope")
_OF_MARK: Final = ("t_s", "name", "window", "rank", "by")
_OF_WINDOW: Final = (
    *("label", "begin_s", "returned_s", "durable_s", "last_s", "stall_s", "drain_s", "length_s"),
    *("begin_why", "returned_why"),
)
"""columns that are what their things hold by the same name"""
WRITE_BACK: Final = ("dirty_bytes", "writeback_bytes", "written_bytes")
"""what shows when a save was safe of which no mark says so"""


class ParquetFile(NamedTuple):
    name: str
    rows: int | None
    bytes: int


class ParquetRun(NamedTuple):
    """What was written."""

    folder: Path
    run: str
    hosts: tuple[str, ...]
    length_s: float
    simulated: bool
    files: tuple[ParquetFile, ...]
    problems: tuple[str, ...]


def pack(path: Path, target: Path, run: str = "", force: bool = False) -> ParquetRun:
    """The run in `path` as a folder of tables. The same run gives the same bytes, as long as
    pyarrow is the same."""
    arrow = _arrow()
    may_write(target, force)
    whole = reader.load(path, run)
    try:
        with whole_folder(target, force) as folder:
            rows = {
                READINGS: _write(arrow, folder / READINGS, _readings(whole)),
                MARKS: _write(arrow, folder / MARKS, _marks(whole)),
            }
            rows[WINDOWS] = _write(arrow, folder / WINDOWS, _windows(whole))
            (folder / ABOUT).write_text(
                json.dumps(about(whole), indent=1, allow_nan=False) + "\n", "utf-8"
            )
            files = tuple(
                ParquetFile(name, rows.get(name), (folder / name).stat().st_size) for name in FILES
            )
    except OSError as error:
        raise OutputError(f"{target}: could not be written ({error.strerror or error})") from None
    problems = tuple(str(problem) for problem in whole.problems)
    return ParquetRun(
        target, whole.id, whole.hosts, whole.duration_s, whole.simulated, files, problems
    )


def _arrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MeterUnavailable(
            f"Parquet is written with pyarrow, which {not_there(error)}",
            "pip install 'ckptcost[parquet]'",
        ) from None
    return pyarrow


def may_write(target: Path, force: bool) -> None:
    """Never over something that is no pack, whatever was said: the folder is replaced as a
    whole."""
    try:
        there = sorted(os.listdir(target))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise InputError(
            "is no folder", where=str(target), remedy="name one that is not there yet"
        ) from None
    except OSError as error:
        raise OutputError(f"{target}: could not be written ({error.strerror})") from None
    if not there:
        return
    if strange := [name for name in there if name not in FILES]:
        raise InputError(
            f"holds something else than a packed run ({strange[0]})",
            where=str(target),
            remedy="name another folder",
        )
    if not force:
        raise InputError(
            "is already there",
            where=str(target),
            remedy="--force replaces it; or name another folder",
        )


Columns = Mapping[str, Any]
"""by name: a list or an array, or one text that all rows share"""


def _write(arrow: Any, file: Path, pieces: Iterator[tuple[int, Columns]]) -> int:
    """Pieces become row groups: several where they are small, none larger than GROUP_ROWS."""
    columns = TABLES[file.name]
    types = {
        _TEXT: arrow.dictionary(arrow.int32(), arrow.string()),
        _NUMBER: arrow.float64(),
        _COUNT: arrow.int64(),
    }
    schema = arrow.schema(
        [(name, types[kind]) for name, (kind, _) in columns.items()],
        {"format": FORMAT, "version": str(VERSION)},
    )
    texts = [name for name, (kind, _) in columns.items() if kind == _TEXT]
    rows = waiting = 0
    tables: list[Any] = []
    with arrow.parquet.ParquetWriter(
        str(file), schema, compression=COMPRESSION, use_dictionary=texts
    ) as writer:
        for count, values in pieces:
            arrays = [
                _array(arrow, schema.field(name).type, values[name], count) for name in columns
            ]
            tables.append(arrow.Table.from_arrays(arrays, schema=schema))
            rows, waiting = rows + count, waiting + count
            if waiting >= GROUP_ROWS:
                writer.write_table(
                    arrow.concat_tables(tables).unify_dictionaries(), row_group_size=GROUP_ROWS
                )
                tables, waiting = [], 0
        if tables:
            writer.write_table(
                arrow.concat_tables(tables).unify_dictionaries(), row_group_size=GROUP_ROWS
            )
    return rows


def _array(arrow: Any, kind: Any, values: Any, count: int) -> Any:
    if isinstance(values, str):
        return arrow.DictionaryArray.from_arrays(
            arrow.array(np.zeros(count, np.int32)), arrow.array([_utf8(values)])
        )
    if arrow.types.is_dictionary(kind):
        values = [_utf8(text) for text in values]
    return arrow.array(values, type=kind, from_pandas=True)  # NaN is null


def _utf8(text: str) -> str:
    """A path may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()


def _readings(run: Run) -> Iterator[tuple[int, Columns]]:
    for node in run.nodes:
        for channel in node.channels:
            series = node.series(channel)
            of = {name: getattr(channel, name) for name in _OF_CHANNEL}
            yield len(series.t_s), {"host": node.host, **of, **series._asdict()}


def _marks(run: Run) -> Iterator[tuple[int, Columns]]:
    only = run.hosts[0] if len(run.hosts) == 1 else ""
    marks = run.marks
    yield (
        len(marks),
        {
            **{name: [getattr(m, name) for m in marks] for name in _OF_MARK},
            "host": [str(m.detail.get("host") or only) for m in marks],
            "detail": [
                json.dumps(plain(dict(m.detail)), ensure_ascii=False, allow_nan=False)
                for m in marks
            ],
        },
    )


def _windows(run: Run) -> Iterator[tuple[int, Columns]]:
    """As a report of each host has them: clocks of hosts agree no better than their time of day."""
    rows: list[dict[str, Any]] = []
    for node in run.nodes:
        few = replace(
            node, channels=tuple(c for c in node.channels if c.quantity in WRITE_BACK)
        )  # the rest would be a day of joules
        told = saves_of(run, Energies(few))
        rows += [
            _row(node.host, window, what)
            for window, what in zip(told.windows, told.contents, strict=True)
        ]
    yield len(rows), {name: [row[name] for row in rows] for name in _WINDOWS}


def _row(host: str, window: Window, what: Contents) -> dict[str, Any]:
    return {
        **what._asdict(),
        **{name: getattr(window, name) for name in _OF_WINDOW},
        "host": host,
        "window": window.name,
        "ranks": len(window.spans),
        "durable_why": window.durable_why or what.why,
        "flags": ",".join(dict.fromkeys(flag.code for flag in window.flags)),
    }


def about(run: Run) -> dict[str, Any]:
    """What is in no table: who recorded, which clock, what went wrong."""
    recorders = {
        (header.host, header.boot, header.pid, bool(header.meters)): header
        for header in run.headers
    }
    events = [event for event in run.events if event.name != "cost"]
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "run": run.id,
        "hosts": run.hosts,
        "simulated": run.simulated,
        "ended": run.ended,
        "began_unix_s": run.began,
        "length_s": run.duration_s,
        "columns": {
            name: {column: meaning for column, (_, meaning) in columns.items() if meaning}
            for name, columns in TABLES.items()
        },
        "headers": [header.fields() for header in recorders.values()],
        "unix_s": [list(pair) for pair in run.wall],
        "gaps": [gap._asdict() for gap in run.gaps],
        "events": [event._asdict() for event in events],
        "problems": [str(problem) for problem in run.problems],
    }
    found: dict[str, Any] = plain(fields)
    return found
