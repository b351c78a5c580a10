"""What a probe found, as tables: each kind of pass in sum, each pass, and the catalogue's tiers
beside it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ckptcost.catalog.store import Catalog, Entity
from ckptcost.jobs.probe import Probed, ProbePass, Sum, fit_of_sizes, joules_of, seconds_of, sums
from ckptcost.present.amounts import (
    count,
    count_text,
    duration,
    number,
    rate,
    share,
    size,
)
from ckptcost.present.measured import reason_text
from ckptcost.report.studies.measured_parts import three
from ckptcost.report.study import Column, Study, Table, plain

BESIDE = 4
"""tiers shown on either side"""
SPREAD_OF_NOTE = 0.15
LATER = 1.1
"""safe so much later than returned is worth a sentence"""
WORDS = {"save": "Writing, to fsync", "load": "Reading back"}
HERE = "measured here"


def study_of(p: Probed, catalog: Catalog) -> Study:
    """The rates first, then what they rest on."""
    m, asked = p.measured, p.asked
    found = sums(p)
    sizes = " in each of two sizes" if asked.small else ""
    warmed = (
        f", after {count_text(asked.warm_up, 'save')}"
        f" that {'does' if asked.warm_up == 1 else 'do'}"
        " not count"
        if asked.warm_up
        else ""
    )
    return Study(
        kind="probe",
        title=(
            f"A checkpoint of {size(asked.size_bytes)} on"
            f" {'a simulated machine' if m.simulated else m.energies.node.host}"
        ),
        about=[
            (
                f"Saver {asked.saver}, {count_text(asked.ranks, 'writer')},"
                f" {count(asked.settings.depth)} requests of {size(asked.settings.block_bytes)} in"
                f" flight, {count_text(asked.rounds, 'round')}{sizes}{warmed}."
            ),
            (
                "A rate is all bytes over all seconds from begin to the end of fsync, as MLPerf"
                " Storage has it; never a mean of rates."
            ),
        ],
        question={
            "bytes": float(asked.size_bytes),
            "saver": asked.saver,
            "ranks": asked.ranks,
            "rounds": asked.rounds,
            "depth": asked.settings.depth,
            "block_bytes": asked.settings.block_bytes,
            "run": m.kept,
        },
        tables=[_sums(found), _rounds(p), *_tiers(found, catalog)],
        findings=_findings(p, found),
        warnings=_warnings(p, found),
        simulated=m.simulated,
    )


def _sums(found: Sequence[Sum]) -> Table:
    rows: list[dict[str, Any]] = [
        {
            "of": s.of,
            "bytes": s.size_bytes,
            "rounds": float(s.rounds),
            "rate": plain(s.rate_bytes_per_s),
            "rate_low": plain(s.slowest_bytes_per_s),
            "rate_high": plain(s.quickest_bytes_per_s),
            "seconds": plain(s.mean_s),
            "spread": plain(s.spread),
            "returned": plain(s.returned_s),
            **three(s.per_gb, "j_per_gb"),
            "boundary": "node" if s.per_gb.known else "",
            "why": s.per_gb.why,
            "amplification": plain(s.device_over_file),
            "files": s.files,
        }
        for s in found
    ]
    columns = (
        Column("of", "pass"),
        Column("bytes", "bytes", "bytes"),
        Column("rounds", "rounds", "count"),
        Column("rate", "rate", "bytes_per_s", "all bytes over all seconds"),
        Column("rate_low", "slowest", "bytes_per_s"),
        Column("rate_high", "quickest", "bytes_per_s"),
        Column("seconds", "time", "s", "mean, to the end of fsync"),
        Column("spread", "spread", "share", "standard deviation over mean of the times"),
        Column(
            "returned", "returned", "s", "until the last write returned, in the mean", shown=False
        ),
        Column("j_per_gb", "J/GB", "1", "joules of all metered parts of the node, for 1e9 bytes"),
        Column("j_per_gb_error", "+-", "1", shown=False),
        Column("j_per_gb_low", "low", "1", shown=False),
        Column("j_per_gb_high", "high", "1", shown=False),
        Column("boundary", "boundary", shown=False),
        Column("why", "why", meaning="code, where joules are unknown", shown=False),
        Column(
            "amplification",
            "device/file",
            "1",
            "bytes that the disk took or gave over bytes of the files",
            shown=False,
        ),
        Column("files", "files", "count", shown=False),
    )
    return Table("rates", "Rates", columns, rows)


PASSES = (
    Column("round", "round", "count"),
    Column("of", "pass"),
    Column("bytes", "bytes", "bytes"),
    Column("seconds", "time", "s"),
    Column("rate", "rate", "bytes_per_s"),
    Column("returned", "returned", "s", "until the last write returned"),
    Column("depth", "depth", "1", "requests in flight, as this program knows it"),
    Column("p50", "p50", "s", "of single requests"),
    Column("p99", "p99", "s"),
    Column("p95", "p95", "s", shown=False),
    Column("latest", "slowest", "s", shown=False),
    Column("requests", "requests", "count", shown=False),
    Column("fsync", "fsync", "s", "at least one fsync was under way", shown=False),
    Column("device", "device", "bytes", "what the disk took or gave meanwhile", shown=False),
    Column("device_depth", "at the disk", "1", "mean queue of the disk", shown=False),
    Column("straggler", "straggler", "1", "time of the slowest writer over the mean", shown=False),
    Column("cached", "cached", "bytes", "of a load: what was still in the page cache", shown=False),
    Column("joules", "J", "J", "all metered parts of the node", shown=False),
    Column("joules_low", "low", "J", shown=False),
    Column("joules_high", "high", "J", shown=False),
    Column("joules_error", "+-", "J", shown=False),
    Column("files", "files", "count", shown=False),
    Column("window", "window", shown=False),
    Column("why", "why", meaning="code, where joules are unknown", shown=False),
)


def _rounds(p: Probed) -> Table:
    disks = {stored.disk for stored in p.measured.stored}
    queues = (
        {stored.window: stored.queue for stored in p.measured.stored} if len(disks) == 1 else {}
    )
    rows = []
    for one in p.rounds:
        energy = joules_of(p, one)
        row = pass_row(one) | {**three(energy, "joules"), "why": energy.why, "window": ""}
        if one.window is not None:
            queue = queues.get(one.window.name)
            row |= {"window": one.window.name}
            if queue is not None:
                moved = queue.written_bytes if one.of == "save" else queue.read_bytes
                row |= {"device": plain(moved), "device_depth": plain(queue.mean_depth)}
        rows.append(row)
    return passes(rows)


def passes(rows: list[dict[str, Any]]) -> Table:
    """Of passes that are over."""
    return Table(
        "rounds",
        "Every pass",
        PASSES,
        rows,
        "Latencies are of single requests: one write or read call.",
        shown=len(rows) <= 12,
    )


def pass_row(one: ProbePass) -> dict[str, Any]:
    """A pass without what meters say of it."""
    seconds = plain(seconds_of(one))
    row: dict[str, Any] = {
        "round": float(one.number),
        "of": one.of,
        "bytes": float(one.size_bytes),
        "files": one.files,
        "seconds": seconds,
        "rate": plain(one.size_bytes / seconds) if seconds else None,
    }
    return row | _engine(one)


def _engine(one: ProbePass) -> dict[str, Any]:
    """What only the engine knows."""
    io = one.io
    if io is None:
        return {}
    late = io.latencies_s
    return {
        "returned": (io.returned_ns - io.begin_ns) * 1e-9,
        "fsync": io.fsync_s,
        "depth": plain(io.depth),
        "p50": plain(late.p50),
        "p95": plain(late.p95),
        "p99": plain(late.p99),
        "latest": plain(late.max),
        "requests": float(late.count),
        "cached": None if io.cached_bytes is None else float(io.cached_bytes),
        "straggler": (
            plain(max(io.by_rank_s) / fmean(io.by_rank_s))
            if io.by_rank_s and fmean(io.by_rank_s) > 0
            else None
        ),
    }


def _tiers(found: Sequence[Sum], catalog: Catalog) -> list[Table]:
    """What one node gets of the catalogue's tiers, around what was measured here."""
    write, read = (
        next((plain(s.rate_bytes_per_s) for s in found if s.of == of), None)
        for of in ("save", "load")
    )
    if write is None:
        return []
    here = {
        "tier": HERE,
        "name": "",
        "write": write,
        "read": read,
        "boundary": "node",
        "basis": "measured",
        "ratio": 1.0,
    }
    rows = [here, *node_rates(catalog, write)]
    rows.sort(key=lambda row: (row["write"], row["tier"] != HERE))
    at = rows.index(here)
    columns = (
        Column("tier", "tier"),
        Column("write", "write", "bytes_per_s", "what one node gets"),
        Column("read", "read", "bytes_per_s"),
        Column("ratio", "of measured", "1", "its write rate over the one measured here"),
        Column("boundary", "boundary", shown=False),
        Column("basis", "basis", shown=False),
        Column("name", "name", shown=False),
    )
    note = "The nearest of those whose rate for one node is known."
    return [
        Table(
            "tiers",
            "Beside the catalogue, one node",
            columns,
            rows[max(at - BESIDE, 0) : at + BESIDE + 1],
            note,
        )
    ]


def node_rates(catalog: Catalog, measured: float) -> list[dict[str, Any]]:
    """The tiers of which somebody says what one node gets, beside what was measured."""
    return [
        row for tier in catalog.ids("tier") if (row := _tier(catalog.get("tier", tier), measured))
    ]


def _tier(entity: Entity, measured: float) -> dict[str, Any] | None:
    """A tier's row; None where nobody says what one node gets."""
    local = entity.words.get("boundary") in ("drive", "node")
    write = entity.figures.get("node_write") or (entity.figures.get("write") if local else None)
    read = entity.figures.get("node_read") or (entity.figures.get("read") if local else None)
    if write is None or plain(write.value) is None:
        return None
    return {
        "tier": entity.id,
        "name": entity.name,
        "write": write.value,
        "read": None if read is None else plain(read.value),
        "boundary": str(entity.words.get("boundary", "storage-system")),
        "basis": write.basis,
        "ratio": write.value / measured,
    }


def _findings(p: Probed, found: Sequence[Sum]) -> list[str]:
    said = []
    for of in ("save", "load"):
        s = next(
            (s for s in found if s.of == of and s.rate_bytes_per_s == s.rate_bytes_per_s), None
        )
        if s is None:
            continue
        spread = (
            f", spread {share(s.spread)} over {count(s.rounds)} rounds"
            if s.spread == s.spread
            else ""
        )
        said.append(
            f"{WORDS[of]}: {rate(s.rate_bytes_per_s)} ({size(s.size_bytes)} in"
            f" {duration(s.mean_s)}{spread})."
        )
        if of == "save" and s.mean_s > LATER * s.returned_s:
            said.append(
                f"The last write returned after {duration(s.returned_s)}, and it was safe after"
                f" {duration(s.mean_s)}: a rate without fsync would be that of memory."
            )
    if found and found[0].per_gb.known:
        said.append(
            f"{number(found[0].per_gb.value)} J per GB written, of all metered parts of the node"
            " while it was written."
        )
    elif found:
        said.append(f"Joules per GB are not known: {reason_text(found[0].per_gb.why)}.")
    fit = fit_of_sizes(p)
    if fit.fixed_s.value > 0:
        interval = (
            f" ({duration(fit.fixed_s.low)} to {duration(fit.fixed_s.high)})"
            if fit.fixed_s.low is not None and fit.fixed_s.high is not None
            else ""
        )
        said.append(f"Of each save {duration(fit.fixed_s.value)}{interval} depend on no size.")
    said.append(
        f"`ckptcost calibrate {p.measured.kept[:8]} --as NAME` makes a tier of it that `ckptcost"
        " model` uses."
    )
    return said


def _warnings(p: Probed, found: Sequence[Sum]) -> list[tuple[str, str]]:
    said = [("PROBE_NOTE", note if note.endswith(".") else f"{note}.") for note in p.notes]
    if p.interrupted:
        said.append(
            (
                "INTERRUPTED",
                (
                    f"Interrupted after {count(len(p.rounds))}"
                    f" pass{'' if len(p.rounds) == 1 else 'es'}: the figures are of these."
                ),
            )
        )
    said += [
        (
            "SPREAD",
            (
                f"{WORDS[s.of]}, {size(s.size_bytes)}: the rounds differ by {share(s.spread)}. More"
                " rounds tell more."
            ),
        )
        for s in found
        if s.spread > SPREAD_OF_NOTE
    ]
    return said
