"""A fleet's tables: groups, days, the lines of its bill, runs and failures; whose clock is off,
which nodes and files are missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from ckptcost.first.core.quantities import LineField, Quantity, in_order
from ckptcost.first.core.units import HOUR_S, to_hours
from ckptcost.first.fleet.figures import Fleet, GroupFigures
from ckptcost.first.fleet.lines import FleetAmount, FleetLine
from ckptcost.first.fleet.runs_seen import FAILED, RunSeen
from ckptcost.first.present.words import line_label
from ckptcost.first.report.study import Column, Table

if TYPE_CHECKING:
    from ckptcost.first.fleet.part import StorePart

# What lines and sums come to, in people's units: cells and columns of the bill's six quantities,
# and what each sum lacks.


BILLED: Final = in_order("gpu_time_lost")
"""in the order of a fleet's columns"""


def plain(value: float | None) -> float | None:
    """For a document: neither NaN nor an end that is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def rows_of(items: Iterable[Any], fields: Mapping[str, str]) -> list[dict[str, Any]]:
    """By column a field of each item, as a document holds it: counts are numbers there, and what
    is not known is null."""
    get = attrgetter(*fields.values())
    return [dict(zip(fields, map(_cell, get(item)), strict=True)) for item in items]


def row_of(item: object, fields: Mapping[str, str]) -> dict[str, Any]:
    return rows_of([item], fields)[0]


def _cell(value: Any) -> Any:
    return value if isinstance(value, bool | str) else plain(value)


def bill_cells(amounts: object, placed: bool) -> dict[str, Any]:
    """The quantities of a line or of totals, in people's units, with their ends."""
    row: dict[str, Any] = {}
    for q in BILLED:
        if placed or q.metered:
            row |= with_ends(q, getattr(amounts, q.field))
    return row


def with_ends(q: Quantity, amount: FleetAmount) -> dict[str, float | None]:
    """One quantity in people's units, by column."""
    ends = {"": amount.value, "_low": amount.low, "_high": amount.high}
    return {q.measure + end: plain(q.people(value)) for end, value in ends.items()}


def billed_columns(placed: bool, ends: bool = False) -> tuple[Column, ...]:
    found = []
    for q in BILLED:
        if not (placed or q.metered):
            continue
        label = q.header.removesuffix(", location")
        found.append(Column(q.measure, label, q.unit, shown=not _is_hidden(q)))
        shown, without = ends and q.id == "energy", "null: without bound, or not known"
        found += [
            Column(f"{q.measure}_low", "low", q.unit, shown=shown),
            Column(f"{q.measure}_high", "high", q.unit, without, shown=shown),
        ]
    return tuple(found)


def _is_hidden(q: Quantity) -> bool:
    return q.derived is not None and not q.objective


def _shown_quantities(placed: bool) -> tuple[Quantity, ...]:
    return tuple(q for q in BILLED if not _is_hidden(q) and (placed or q.metered))


def lines_not_summed(group: GroupFigures, placed: bool) -> dict[str, str]:
    """By what is shown, the lines that are not in its sum, or not all of them. Of what has no
    factor at all there is no sum to be in."""
    found = {}
    for q in _shown_quantities(placed):
        some = any(
            amount.known and amount.value
            for line in group.lines
            if (amount := getattr(line, q.field))
        )
        names = group.totals.lacks[q.field] if some or q.metered else ()
        found[f"lacks_{q.measure}"] = "; ".join(sorted(map(line_label, names)))
    return found


def lacking_columns(placed: bool) -> tuple[Column, ...]:
    return tuple(
        Column(
            f"lacks_{q.measure}",
            f"not in {q.measure}",
            meaning="lines that are not in the sum, or not all of them",
            shown=False,
        )
        for q in _shown_quantities(placed)
    )


UNKNOWN: Final = (
    ("bytes", "bytes", "completed saves; not in bytes"),
    (
        "stalls",
        "done_stall",
        "completed saves of which nobody says how long they held training up; not in stalls",
    ),
    (
        "useful",
        "useful",
        (
            "runs of which nobody knows how much was work; goodput is of the others, if these are"
            " half of the time or more"
        ),
    ),
    (
        "assumed",
        "assumed",
        (
            "completed saves and loads that goodput takes to have been as long as the others of"
            " their run"
        ),
    ),
)
SHARES: Final[tuple[tuple[str, LineField, str, str], ...]] = (
    ("known", "energy_j", "known", "joules"),
    ("known_gpu", "gpu_s", "known GPU-h", "GPU time"),
    ("known_usd", "cost_usd", "known USD", "dollars"),
)


def groups(fleet: Fleet, placed: bool) -> Table:
    """The answer by what was asked for, and all together."""
    rows = [
        _group(each, placed)
        for each in (*fleet.groups, *([fleet.whole] if len(fleet.groups) != 1 else []))
    ]
    return Table(
        "groups",
        f"By {fleet.by}",
        _group_columns(fleet.by, placed),
        rows,
        "Stalls are from the first node's begin to the last one's return.",
    )


def days(fleet: Fleet, placed: bool) -> Table:
    columns = _group_columns("day", placed)
    return Table(
        "days",
        "Day by day",
        columns,
        [_group(each, placed) for each in fleet.trend],
        shown=fleet.by != "day",
    )


def _group(group: GroupFigures, placed: bool) -> dict[str, Any]:
    return {
        **row_of(group, _SAVED),
        **bill_cells(group.totals, placed),
        **row_of(group, {"goodput": "goodput", "failures": "failures"}),
        "node_mtbf": _hours(group.node_mtbf_s.value),
        "node_mtbf_low": _hours(group.node_mtbf_s.low),
        "node_mtbf_high": _hours(group.node_mtbf_s.high),
        **row_of(group, _RAN),
        **{f"unknown_{name}": float(group.unknown.get(key, 0)) for name, key, _ in UNKNOWN},
        **lines_not_summed(group, placed),
    }


_SAVED: Final = {
    **{name: name for name in ("name", "jobs", "nodes", "runs", "checkpoints", "failed_saves")},
    "loads": "loads",
    "bytes": "bytes",
    "bytes_missing": "bytes_missing.value",
    "bytes_missing_low": "bytes_missing.low",
    "bytes_missing_high": "bytes_missing.high",
    "files": "files",
    "stall": "stalls.p50_s",
    "stall_mean": "stalls.mean_s",
    "stall_p95": "stalls.p95_s",
    "stall_max": "stalls.max_s",
    "stall_sum": "stall_s",
    "load_sum": "load_s",
}
_RAN: Final = {
    "saves_per_day": "saves_per_day",
    "write_rate": "write_bytes_per_s",
    "running": "running_s",
}
"""of a group, by column"""


def _hours(value: float | None) -> float | None:
    return None if value is None else plain(value / HOUR_S)


def _group_columns(by: str, placed: bool) -> tuple[Column, ...]:
    return (
        Column("name", by),
        Column("jobs", "jobs", "count", shown=by not in ("job", "day")),
        Column("nodes", "nodes", "count", "of which a file is there that counts"),
        Column("runs", "runs", "count", shown=False),
        Column("checkpoints", "saves", "count", "completed"),
        Column("failed_saves", "failed saves", "count", shown=False),
        Column("loads", "loads", "count", shown=False),
        Column(
            "bytes",
            "bytes",
            "bytes",
            "of completed saves, by nodes of which a file is there that counts",
            shown=False,
        ),
        Column(
            "bytes_missing",
            "missing",
            "bytes",
            "what missing nodes would have written, at the mean of the others; not in bytes",
            shown=False,
        ),
        Column(
            "bytes_missing_low", "low", "bytes", "95 %, by how much the others differ", shown=False
        ),
        Column(
            "bytes_missing_high", "high", "bytes", "null: without bound, or not known", shown=False
        ),
        Column(
            "files",
            "files",
            "count",
            "of completed saves, by nodes of which a file is there that counts",
            shown=False,
        ),
        Column(
            "stall",
            "stall p50",
            "s",
            "training held up by a save, from the first node's begin to the last one's return",
        ),
        Column("stall_mean", "mean", "s", shown=False),
        Column("stall_p95", "p95", "s", shown=False),
        Column("stall_max", "longest", "s", shown=False),
        Column("stall_sum", "stalls in all", "s", shown=False),
        Column("load_sum", "loading in all", "s", shown=False),
        *billed_columns(placed),
        Column(
            "goodput",
            "goodput",
            "share",
            "GPU time of work that was kept, of the time of runs and from a failure to the"
            " next run",
        ),
        Column("failures", "failures", "count", shown=by == "day"),
        Column(
            "node_mtbf",
            "MTBF of a node",
            "h",
            "null with a low end: no failure was seen",
            shown=False,
        ),
        Column(
            "node_mtbf_low", "low", "h", "95 %, exact for failures at a constant rate", shown=False
        ),
        Column("node_mtbf_high", "high", "h", shown=False),
        Column("saves_per_day", "saves a day", "1", shown=False),
        Column(
            "write_rate",
            "write rate",
            "bytes_per_s",
            "of all nodes, missing ones at the mean; until safe, else until training went on",
            shown=False,
        ),
        Column("running", "running", "s", "runs added up", shown=False),
        *(
            Column(f"unknown_{name}", f"unknown {name}", "count", meaning, shown=False)
            for name, _, meaning in UNKNOWN
        ),
        *lacking_columns(placed),
    )


def lines(whole: GroupFigures, placed: bool) -> Table:
    """The bill of all of it."""
    rows = [_line(line, placed) for line in whole.lines]
    rows.append({"line": "total", "id": "total", "basis": "", **bill_cells(whole.totals, placed)})
    columns = (
        Column("line", "line"),
        Column("id", "id", shown=False),
        Column(
            "basis",
            "basis",
            meaning="measured: by meters and clocks; estimated: from what was measured",
        ),
        *billed_columns(placed, ends=True),
        *(
            Column(
                name,
                label,
                "share",
                f"of windows times nodes, or of runs, that have it: whose {what} are known",
                shown=name == "known",
            )
            for name, _, label, what in SHARES
            if placed or name != "known_usd"
        ),
    )
    note = (
        "Sums of what is known, of runs' days known of half or more. Low and high are bounds of"
        " meters, added up; of estimates 95 %."
    )
    return Table("lines", "What it is made of", columns, rows, note)


def _line(line: FleetLine, placed: bool) -> dict[str, Any]:
    shares = {
        name: line.known[attribute]
        for name, attribute, *_ in SHARES
        if placed or name != "known_usd"
    }
    return {
        "line": line_label(line.id),
        "id": line.id,
        "basis": "estimated" if line.estimated else "measured",
        **bill_cells(line, placed),
        **{name: some / of if of else None for name, (some, of) in shares.items()},
    }


def failures(fleet: Fleet) -> list[Table]:
    """By job, and by cause."""
    by_job: dict[str, list[RunSeen]] = {}
    for run in fleet.runs:
        by_job.setdefault(run.job, []).append(run)
    rows = [
        {
            "job": job,
            "runs": float(len(mine)),
            "failures": float(sum(run.state == FAILED for run in mine)),
            "nodes": float(max(run.nodes for run in mine)),
            **{name: plain(math.fsum(map(of, mine))) for name, of in _SECONDS.items()},
            "state": mine[-1].state.lower(),
        }
        for job, mine in sorted(by_job.items())
    ]
    columns = (
        Column("job", "job"),
        Column(
            "state", "last run", meaning="over; open: nobody saw an end; failed: and none followed"
        ),
        Column("nodes", "nodes", "count"),
        Column("runs", "runs", "count"),
        Column("failures", "failures", "count"),
        Column("ran", "ran", "s"),
        Column("lost", "work lost", "s", "since the last completed save, of runs that failed"),
        Column("down", "down", "s", "from a failure to the next run"),
        Column("stall", "saving", "s"),
        Column("load", "loading", "s", shown=False),
        Column("useful", "work kept", "s"),
    )
    return [Table("failures", "Runs and failures", columns, rows), _causes(fleet)]


_SECONDS: Final = {
    "ran": attrgetter("own_s"),
    "lost": attrgetter("spent.lost_s"),
    "down": attrgetter("restart_s"),
    "stall": attrgetter("spent.stall_s"),
    "load": attrgetter("spent.load_s"),
    "useful": attrgetter("spent.useful_s"),
}
"""of a run, by column"""


def _causes(fleet: Fleet) -> Table:
    causes = [
        {
            "cause": each.cause,
            "failures": float(each.failures),
            "gpu_hours": plain(to_hours(each.lost_gpu_s)),
        }
        for each in fleet.failures.causes
    ]
    columns = (
        Column(
            "cause",
            "cause",
            meaning="EXIT_n: the command's exit code; CUT: recordings stop and another run follows",
        ),
        Column("failures", "failures", "count"),
        Column("gpu_hours", "GPU-h lost", "GPU-h", "redone work and time until the next run"),
    )
    return Table("causes", "Why runs failed", columns, causes, shown=bool(causes))


# Where to look: whose clock is off, which nodes and files are missing.


NO_SITE: Final = (
    "Where the machines stand and what they cost is not said, so there is no PUE, no dollars and no"
    " kgCO2e."
)
MOST_SHOWN: Final = 12
"""rows of what is less asked for; JSON and CSV have all"""
CODE_WORDS: Final = {
    "CORRUPT": "bytes were changed after they were written",
    "TRUNCATED": "the end is missing",
    "FUTURE": "written by a newer ckptcost",
    "NOT_OURS": "no file of a node, whatever its name says",
    "UNREADABLE": "cannot be opened",
    "MISPLACED": "what it says of job and day does not fit its folder",
    "DUPLICATE": "the same node's day twice",
    "DUPLICATE_JOB": "the same node's day under another job",
    "SECOND_METER": "a second recorder of the same node and time",
    "SKEWED": "the node's clock is minutes off",
    "UNSTEADY": "the node's clock wanders",
    "STRAY": "no file of a store",
}


def clocks(part: StorePart) -> Table:
    """Every node's clock against its job's, the day on which it was worst; the worst nodes
    first."""
    some = part.heads[part.heads["offset_windows"] > 0] if len(part.heads) else part.heads
    worst: dict[tuple[str, str], dict[str, Any]] = {}
    columns = ("host", "job", "day", "offset_s", "offset_unsure_s", "offset_windows")
    for host, job, day, offset, unsure, windows in (
        zip(*(some[name] for name in columns), strict=True) if len(some) else ()
    ):
        row: dict[str, Any] = {
            "host": str(host),
            "job": str(job),
            "day": str(day),
            "offset": plain(offset),
            "unsure": plain(unsure),
            "windows": float(windows),
        }
        before = worst.setdefault((row["job"], row["host"]), row)
        if _size(row) > _size(before):
            worst[row["job"], row["host"]] = row
    told = (
        Column("host", "host"),
        Column("job", "job"),
        Column("day", "day"),
        Column("offset", "ahead", "s", "of the middle node of its job; taken off every instant"),
        Column("unsure", "+-", "s", "standard error"),
        Column("windows", "saves, loads", "count"),
    )
    rows = sorted(worst.values(), key=lambda row: (-_size(row), row["host"], row["job"]))
    return Table("clocks", "Clocks", told, rows, shown=False)


def _size(row: dict[str, Any]) -> float:
    return abs(float(row["offset"] or 0.0))


def missing(fleet: Fleet) -> Table:
    """Nodes that said nothing, by name where there is one."""
    rows: list[dict[str, Any]] = []
    for run in fleet.lacking:
        for node in (*run.missing, *run.silent):
            rows.append(
                {
                    "job": run.job,
                    "host": node.host,
                    "why": node.why,
                    "days": _days(node.days),
                    "windows": float(node.windows),
                    "run": run.run,
                    "nodes": 1.0,
                }
            )
        if run.unnamed:
            rows.append(
                {
                    "job": run.job,
                    "host": "(no name)",
                    "why": "NO_FILE",
                    "days": "",
                    "windows": float(run.unnamed_windows * run.unnamed),
                    "run": run.run,
                    "nodes": float(run.unnamed),
                }
            )
    columns = (
        Column("job", "job"),
        Column("host", "node"),
        Column(
            "why",
            "why",
            meaning=(
                "NO_FILE; SILENT: it recorded and had no such save; or why its file does not count"
            ),
        ),
        Column("days", "days"),
        Column("nodes", "nodes", "count", shown=False),
        Column("windows", "saves, loads", "count", "that it lacks"),
        Column("run", "run", shown=False),
    )
    note = (
        "What others waited for a node that is missing cannot be seen: if it was a straggler, the"
        " estimate of what it took is too low."
    )
    return Table(
        "missing",
        "Nodes that are missing",
        columns,
        rows,
        note if rows else "",
        shown=0 < len(rows) <= MOST_SHOWN,
    )


def _days(days: Sequence[str]) -> str:
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else ""


def aside(part: StorePart, strange: Sequence[str]) -> Table:
    """Files that do not count, each with the reason."""
    files = part.files
    bad = files[files["code"].astype("str") != ""] if len(files) else files
    rows = (
        [
            {
                "file": str(path),
                "code": str(code),
                "text": str(text),
                "host": str(host),
                "day": str(day),
            }
            for path, code, text, host, day in zip(
                *(bad[name] for name in ("path", "code", "text", "host", "day")), strict=True
            )
        ]
        if len(bad)
        else []
    )
    rows += [_strange(name) for name in strange]
    columns = (
        Column("file", "file"),
        Column("code", "code"),
        Column("text", "why"),
        Column("host", "host", shown=False),
        Column("day", "day", shown=False),
    )
    return Table("aside", "Files set aside", columns, rows, shown=0 < len(rows) <= MOST_SHOWN)


def _strange(name: str) -> dict[str, Any]:
    """A folder that may not be looked into comes with the reason."""
    path, _, why = name.partition("/ ")
    code, text = ("UNREADABLE", why) if why else ("STRAY", CODE_WORDS["STRAY"])
    return {"file": path, "code": code, "text": text, "host": "", "day": ""}
