"""What was recorded, as tables: the list of runs, one of them looked at, and what was packed of
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ckptcost.first.present.amounts import count, count_text, duration, size
from ckptcost.first.report.parquet import ParquetRun
from ckptcost.first.report.study import Column, Study, Table, hidden, named, table_of
from ckptcost.first.runs.header import MeterHead, stamp
from ckptcost.first.runs.store import MAKE_ONE
from ckptcost.first.runs.summary import COMPLETE, CUT, RECORDING, MarkSummary, Summary

MOST_SHOWN = 12
"""files of a run; JSON and CSV have all"""
MOST_WARNED = 5
"""runs whose faults are told one by one"""
STATES = {
    COMPLETE: "it ended, or somebody stopped the recorder",
    RECORDING: "its last line is some seconds old",
    CUT: "it has no end and nothing is added: the recorder was killed, or the machine went down",
}
SHORT = 8
"""letters of an id that people are shown: `runs show` takes any beginning that fits one run"""


def list_of(runs: Sequence[Summary], unread: Sequence[str], where: Path) -> Study:
    """All of them, the latest first."""
    said = "" if runs else "No recorded runs"
    how = " To remove one, remove its folder." if runs else ""
    return Study(
        kind="runs",
        title=said or count_text(len(runs), "recorded run"),
        about=[f"In {place_text(where)}.{how}"],
        question={"verb": "list"},
        tables=[table_of("runs", "Runs", _RUNS, runs)],
        findings=_total(runs) if runs else [f"{MAKE_ONE}."],
        warnings=[*_problems(runs), *(("UNREADABLE", f"{text.rstrip('.')}.") for text in unread)],
        simulated=bool(runs) and all(run.simulated for run in runs),
    )


def _problems(runs: Sequence[Summary]) -> Iterator[tuple[str, str]]:
    broken = [run for run in runs if run.problems]
    for run in broken[:MOST_WARNED]:
        yield "RUN_FILE", f"{run.name}: {'; '.join(run.problems[:3])}."
    if len(broken) > MOST_WARNED:
        more = count(len(broken) - MOST_WARNED)
        yield "RUN_FILE", f"And {more} more: `problems` of JSON and CSV has all."


def _total(runs: Sequence[Summary]) -> list[str]:
    states = [
        f"{count(sum(run.state == state for run in runs))} {state}"
        for state in STATES
        if any(run.state == state for run in runs)
    ]
    return [f"{', '.join(states)}; {size(sum(run.bytes for run in runs))} in all."]


def place_text(path: Path) -> str:
    """A place as people write it."""
    place = path.absolute()
    try:
        return f"~/{place.relative_to(Path.home())}"
    except (RuntimeError, ValueError):
        return str(place)


def one_line(text: str) -> str:
    """What somebody typed, without what would move a terminal's cursor.

    >>> one_line("python -c '\\n  import os\\x1b[2J'")
    "python -c ' import os [2J'"
    """
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _begin_text(run: Summary) -> str:
    began = stamp(run.began_ns)
    return f"{began[:10]} {began[11:16]}"


_RUNS = (
    Column("id", "run", meaning="the beginning of its id", of=lambda run: run.run[:SHORT]),
    Column("started", "started (UTC)", of=_begin_text),
    Column("on", "host", of=lambda run: "simulated" if run.simulated else ", ".join(run.hosts)),
    Column(
        "state",
        "state",
        meaning="; ".join(f"{state}: {meaning}" for state, meaning in STATES.items()),
    ),
    Column(
        "command",
        "command",
        meaning="what was wrapped, without folders; empty: nothing was",
        of=lambda run: one_line(run.command),
    ),
    Column("length", "length", "s", of="length_s"),
    Column("size", "size", "bytes", of=lambda run: float(run.bytes)),
    *hidden(
        Column("run", "id"),
        Column("folder", "folder", of="name"),
        Column("host", "hosts", of=lambda run: ", ".join(run.hosts)),
        Column(
            "began",
            "began",
            meaning="UTC, the first instant that a header names",
            of=lambda run: stamp(run.began_ns),
        ),
        Column(
            "exit_code",
            "exit code",
            "1",
            "the command's; null: it did not end, or nothing was wrapped",
        ),
        Column("files", "files", "count", of=lambda run: len(run.sizes)),
        Column(
            "ranks",
            "ranks",
            "count",
            "that wrote a file",
            of=lambda run: len({header.rank for header in run.headers}),
        ),
        Column("meters", "meters", of=lambda run: ", ".join(run.meters)),
        Column(
            "readings",
            "readings",
            meaning="measured or simulated",
            of=lambda run: "simulated" if run.simulated else "measured",
        ),
        Column(
            "ckptcost",
            "by ckptcost",
            meaning="the version that wrote it",
            of=lambda run: run.headers[0].ckptcost,
        ),
        Column("problems", "problems", of=lambda run: "; ".join(run.problems)),
    ),
)


def show_of(run: Summary, told: MarkSummary) -> Study:
    """One run, with its marks counted."""
    channels = sum(len(meter.channels) for meter in _meters(run).values())
    about = [
        (
            f"Run {run.run}, recorded by ckptcost {run.headers[0].ckptcost}: {size(run.bytes)} in"
            f" {count_text(len(run.sizes), 'file')} of"
            f" {place_text(run.path)}."
        ),
        (
            f"Started {stamp(run.began_ns)}; {duration(run.length_s)}; {run.state}:"
            f" {STATES[run.state]}."
        ),
    ]
    loads = f" and {count_text(told.loads, 'load')}" if told.loads else ""
    findings = [
        (
            f"{count_text(told.saves, 'checkpoint')}{loads},"
            f" {count_text(sum(told.names.values()), 'mark')};"
            f" {count_text(channels, 'channel')} of {count_text(len(run.meters), 'meter')}."
        ),
    ]
    command = told.command or run.command
    code = run.exit_code if told.exit_code is None else told.exit_code
    if command:
        ended = (
            f" It ended with {code}." if code is not None else " How it ended is not in the run."
        )
        findings.append(f"The command was: {one_line(command)}.{ended}")
    return Study(
        kind="runs",
        title=f"A recorded run of {', '.join(run.hosts)}",
        about=about,
        question={"verb": "show", "run": run.run},
        tables=[
            table_of(
                "runs",
                "Runs",
                _RUNS,
                [run._replace(command=command, exit_code=code)],
                shown=False,
            ),
            _metered_table(run),
            _marks(told),
            _files(run),
        ],
        findings=findings,
        warnings=[("RUN_FILE", f"{problem}.") for problem in run.problems],
        simulated=run.simulated,
    )


def _meters(run: Summary) -> Mapping[tuple[str, str], MeterHead]:
    """By host and name, as the newest header has them."""
    return {(header.host, meter.name): meter for header in run.headers for meter in header.meters}


def _metered_table(run: Summary) -> Table:
    rows = [
        {
            "host": host,
            "meter": name,
            "domains": ", ".join(dict.fromkeys(channel.domain for channel in meter.channels)),
            "channels": len(meter.channels),
            "facts": "; ".join(f"{key}: {value}" for key, value in meter.facts.items()),
        }
        for (host, name), meter in _meters(run).items()
    ]
    columns = (
        *named("meter"),
        Column("domains", "what it reads"),
        Column("channels", "channels", "count"),
        Column("host", "host", shown=len(run.hosts) > 1),
        Column("facts", "facts", meaning="driver and the like", shown=False),
    )
    return Table("meters", "Meters", columns, rows)


def _marks(told: MarkSummary) -> Table:
    rows = [{"mark": name, "by": by, "count": number} for (name, by), number in told.names.items()]
    columns = (
        *named("mark"),
        Column(
            "by",
            "by",
            meaning="api: the job's own hooks; watch: from outside; wrap: who started the command",
        ),
        Column("count", "count", "count"),
    )
    return Table("marks", "Marks", columns, rows)


def _files(run: Summary) -> Table:
    rows = [
        {
            "file": name,
            "host": header.host,
            "rank": float(header.rank),
            "part": float(header.part),
            "began": stamp(header.wall_ns),
            "size": float(bytes_),
        }
        for (name, bytes_), header in zip(run.sizes.items(), run.headers, strict=True)
    ]
    columns = (
        *named("file", "began"),
        Column("size", "size", "bytes"),
        *hidden("host", Column("rank", "rank", "1"), Column("part", "part", "1")),
    )
    return Table("files", "Files", columns, rows, shown=len(rows) <= MOST_SHOWN)


def packed_of(packed: ParquetRun) -> Study:
    columns = (
        Column("file", "file", of="name"),
        Column("rows", "rows", "count"),
        Column("size", "size", "bytes", of=lambda file: float(file.bytes)),
    )
    return Study(
        kind="runs",
        title=f"Packed {duration(packed.length_s)} of {', '.join(packed.hosts)}",
        about=[
            f"Into {place_text(packed.folder)}. Times are seconds since the run began, which"
            " run.json dates."
        ],
        question={"verb": "pack", "run": packed.run},
        tables=[table_of("packed", "Files", columns, packed.files)],
        findings=[],
        warnings=[("RUN_FILE", f"{problem}.") for problem in packed.problems[:3]],
        simulated=packed.simulated,
    )
