"""What a probe found, as tables: each kind of pass in sum, each pass, and the catalogue's tiers
beside it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ckptcost.first.catalog.store import Catalog, Entity
from ckptcost.first.core.reconcile import Energy
from ckptcost.first.jobs.probe import (
    Probed,
    ProbePass,
    ProbeSum,
    fit_of_sizes,
    joules_of,
    seconds_of,
    sums,
)
from ckptcost.first.present.amounts import (
    count,
    count_text,
    duration,
    ends_text,
    number,
    rate,
    share,
    size,
)
from ckptcost.first.present.measured import reason_text
from ckptcost.first.report.studies.measured_tables import off, three
from ckptcost.first.report.study import Column, Study, Table, hidden, named, plain, table_of

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
        tables=[table_of("rates", "Rates", _SUMS, found), _rounds(p), *_tiers(found, catalog)],
        findings=_findings(p, found),
        warnings=_warnings(p, found),
        simulated=m.simulated,
    )


_SUMS = (
    Column("of", "pass"),
    Column("bytes", "bytes", "bytes", of="size_bytes"),
    Column("rounds", "rounds", "count"),
    Column("rate", "rate", "bytes_per_s", "all bytes over all seconds", of="rate_bytes_per_s"),
    Column("rate_low", "slowest", "bytes_per_s", of="slowest_bytes_per_s"),
    Column("rate_high", "quickest", "bytes_per_s", of="quickest_bytes_per_s"),
    Column("seconds", "time", "s", "mean, to the end of fsync", of="mean_s"),
    Column("spread", "spread", "share", "standard deviation over mean of the times"),
    *hidden(
        Column(
            "returned",
            "returned",
            "s",
            "until the last write returned, in the mean",
            of="returned_s",
        )
    ),
    Column(
        "j_per_gb",
        "J/GB",
        "1",
        "joules of all metered parts of the node, for 1e9 bytes",
        of="per_gb.value",
    ),
    *hidden(
        Column("j_per_gb_error", "+-", "1", of=lambda s: off(s.per_gb)),
        Column("j_per_gb_low", "low", "1", of="per_gb.low"),
        Column("j_per_gb_high", "high", "1", of="per_gb.high"),
        Column("boundary", "boundary", of=lambda s: "node" if s.per_gb.known else ""),
        Column("why", "why", meaning="code, where joules are unknown", of="per_gb.why"),
        Column(
            "amplification",
            "device/file",
            "1",
            "bytes that the disk took or gave over bytes of the files",
            of="device_over_file",
        ),
        Column("files", "files", "count"),
    ),
)


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
    *hidden(
        Column("p95", "p95", "s"),
        Column("latest", "slowest", "s"),
        Column("requests", "requests", "count"),
        Column("fsync", "fsync", "s", "at least one fsync was under way"),
        Column("device", "device", "bytes", "what the disk took or gave meanwhile"),
        Column("device_depth", "at the disk", "1", "mean queue of the disk"),
        Column("straggler", "straggler", "1", "time of the slowest writer over the mean"),
        Column("cached", "cached", "bytes", "of a load: what was still in the page cache"),
        Column("joules", "J", "J", "all metered parts of the node"),
        Column("joules_low", "low", "J"),
        Column("joules_high", "high", "J"),
        Column("joules_error", "+-", "J"),
        Column("files", "files", "count"),
        "window",
        Column("why", "why", meaning="code, where joules are unknown"),
    ),
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


def _tiers(found: Sequence[ProbeSum], catalog: Catalog) -> list[Table]:
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
        *named("tier"),
        Column("write", "write", "bytes_per_s", "what one node gets"),
        Column("read", "read", "bytes_per_s"),
        Column("ratio", "of measured", "1", "its write rate over the one measured here"),
        *hidden("boundary", "basis", "name"),
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


def _findings(p: Probed, found: Sequence[ProbeSum]) -> list[str]:
    said = []
    for of in ("save", "load"):
        known = (s for s in found if s.of == of and s.rate_bytes_per_s == s.rate_bytes_per_s)
        if (s := next(known, None)) is not None:
            said += [_rate_text(s), *_late_lines(s)]
    if found:
        said.append(_energy_text(found[0].per_gb))
    fixed_s = fit_of_sizes(p).fixed_s
    if fixed_s.value > 0:
        interval = ends_text(fixed_s.low, fixed_s.high, duration)
        said.append(f"Of each save {duration(fixed_s.value)}{interval} depend on no size.")
    said.append(
        f"`ckptcost calibrate {p.measured.kept[:8]} --as NAME` makes a tier of it that `ckptcost"
        " model` uses."
    )
    return said


def _rate_text(s: ProbeSum) -> str:
    spread = ""
    if s.spread == s.spread:
        spread = f", spread {share(s.spread)} over {count(s.rounds)} rounds"
    return (
        f"{WORDS[s.of]}: {rate(s.rate_bytes_per_s)} ({size(s.size_bytes)} in"
        f" {duration(s.mean_s)}{spread})."
    )


def _late_lines(s: ProbeSum) -> list[str]:
    if s.of != "save" or not s.mean_s > LATER * s.returned_s:
        return []
    return [
        f"The last write returned after {duration(s.returned_s)}, and it was safe after"
        f" {duration(s.mean_s)}: a rate without fsync would be that of memory."
    ]


def _energy_text(per_gb: Energy) -> str:
    if not per_gb.known:
        return f"Joules per GB are not known: {reason_text(per_gb.why)}."
    return (
        f"{number(per_gb.value)} J per GB written, of all metered parts of the node while it was"
        " written."
    )


def _warnings(p: Probed, found: Sequence[ProbeSum]) -> list[tuple[str, str]]:
    said = [("PROBE_NOTE", note if note.endswith(".") else f"{note}.") for note in p.notes]
    if p.interrupted:
        passes = f"{count(len(p.rounds))} pass{'' if len(p.rounds) == 1 else 'es'}"
        said.append(("INTERRUPTED", f"Interrupted after {passes}: the figures are of these."))
    for s in found:
        if s.spread > SPREAD_OF_NOTE:
            of = f"{WORDS[s.of]}, {size(s.size_bytes)}"
            words = f"the rounds differ by {share(s.spread)}. More rounds tell more."
            said.append(("SPREAD", f"{of}: {words}"))
    return said
