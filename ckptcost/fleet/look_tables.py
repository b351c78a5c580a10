"""A fleet's tables of where to look: what tiers did, who was waited for, whose clock is off, which
nodes and files are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ckptcost.core.estimates import Estimate
from ckptcost.core.units import to_hours, to_kwh
from ckptcost.fleet.bill_tables import plain
from ckptcost.fleet.figures import Fleet
from ckptcost.fleet.tiers import TierSeen
from ckptcost.fleet.worst import Worst
from ckptcost.report.statement import instant
from ckptcost.report.study import Column, Table

if TYPE_CHECKING:
    from ckptcost.fleet.part import StorePart

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


def tiers(seen: Sequence[TierSeen]) -> Table:
    """Measured tiers, as whole jobs saw them."""
    rows = [
        {
            "tier": each.tier,
            "job": each.job or "all",
            "saves": float(each.saves),
            **_estimate_cells("rate", each.fit.rate_bytes_per_s),
            **_estimate_cells("fixed", each.fit.fixed_s),
            "p5": plain(each.p5_bytes_per_s),
            "p50": plain(each.p50_bytes_per_s),
            "p95": plain(each.p95_bytes_per_s),
            "until_safe": each.until_safe / each.saves if each.saves else None,
            "why": each.fit.why,
        }
        for each in seen
    ]
    columns = (
        Column("tier", "tier"),
        Column("job", "job"),
        Column("saves", "saves", "count"),
        Column(
            "rate",
            "rate",
            "bytes_per_s",
            "of a node, fitted to saves: seconds = fixed + bytes / rate",
        ),
        Column("rate_low", "low", "bytes_per_s", shown=False),
        Column("rate_high", "high", "bytes_per_s", shown=False),
        Column("fixed", "fixed", "s"),
        Column("fixed_low", "low", "s", shown=False),
        Column("fixed_high", "high", "s", shown=False),
        Column("p5", "p5", "bytes_per_s"),
        Column("p50", "p50", "bytes_per_s", "of single saves"),
        Column("p95", "p95", "bytes_per_s"),
        Column(
            "until_safe",
            "until safe",
            "share",
            "of saves of which somebody says when they were safe; else until training went on",
            shown=False,
        ),
        Column("why", "why", meaning="code: what these saves cannot tell", shown=False),
    )
    return Table("tiers", "Tiers, as a node saw them", columns, rows)


def _estimate_cells(name: str, estimate: Estimate) -> dict[str, Any]:
    return {
        name: plain(estimate.value),
        f"{name}_low": plain(estimate.low),
        f"{name}_high": plain(estimate.high),
    }


def worst(found: Worst) -> list[Table]:
    """Where to look first."""
    saves = [
        {
            "job": each.job,
            "what": each.label or "(no label)",
            "began": instant(each.begin_ns / 1e9),
            "stall": plain(each.stall_s),
            "gpu_hours": plain(to_hours(each.lost_gpu_s)),
            "waiting": each.wait_gpu_s / each.lost_gpu_s,
            "slowest": each.slowest,
            "load": each.load,
            "failed": each.failed,
            "run": each.run,
        }
        for each in found.saves
    ]
    hosts = [
        {
            "host": each.host,
            "gpu_hours": plain(to_hours(each.blamed_gpu_s)),
            "kwh": plain(to_kwh(each.blamed_j)),
            "share": plain(each.share),
            "slowest": float(each.slowest),
            "windows": float(each.windows),
            "jobs": float(each.jobs),
        }
        for each in found.hosts
    ]
    return [
        Table(
            "waited_for",
            "Who was waited for",
            (
                Column("host", "host"),
                Column(
                    "gpu_hours",
                    "GPU-h waited",
                    "GPU-h",
                    "by nodes that were done; each moment's cause in equal parts is who is not",
                ),
                Column("kwh", "kWh", "kWh", "of waiting nodes, as metered in their own stalls"),
                Column("share", "of all waiting", "share"),
                Column("slowest", "last", "count", "how often"),
                Column("windows", "saves, loads", "count"),
                Column("jobs", "jobs", "count", shown=False),
            ),
            hosts,
            shown=bool(hosts),
        ),
        Table(
            "worst",
            "The saves and loads that cost most",
            (
                Column("job", "job"),
                Column("what", "which"),
                Column("began", "began"),
                Column("slowest", "last host"),
                Column("stall", "stall", "s"),
                Column("gpu_hours", "GPU-h lost", "GPU-h"),
                Column("waiting", "waiting", "share", "of that: nodes that were done and stood"),
                Column("load", "load", "bool", shown=False),
                Column("failed", "failed", "bool", shown=False),
                Column("run", "run", shown=False),
            ),
            saves,
            shown=bool(saves),
        ),
    ]


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
