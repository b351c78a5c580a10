"""What one node's recording says of each UTC day: the joules of its saves and loads line by line,
and what the whole day took.

Lines are those of the run's statement, so their sums are its sums. Days are cut by the wall clock
as the run has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.attribution import spent
from ckptcost.core.contents import first_s
from ckptcost.core.reconcile import NONE_SPENT, Energy, unknown
from ckptcost.core.windows import Stretch, Window, without
from ckptcost.fleet.kept.node_day import LINES, Head, NodeDay, empty_rows, key_of
from ckptcost.fleet.pack.day_clock import DAY_NS, Clock, day_name
from ckptcost.fleet.pack.day_totals import gaps_of, totals_of
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.measured_bill import counted_in, gpus_metered, load_end_s, shares_of
from ckptcost.jobs.shared_waits import shared, waited, waits_of
from ckptcost.report.statements.run_lines import NOWHERE, Taken, taken_of

_LINE: Final = {
    "gpu_wait": "gpu",
    "host_wait": "host",
    "slowdown": "slow",
    "storage_write": "storage",
}


class Told(NamedTuple):
    """What is not in the readings."""

    job: str
    labels: Mapping[str, str] = {}
    nodes: int = 0
    node_names: str = ""
    over: bool = False
    source: str = ""


class Lines(NamedTuple):
    """Of one window."""

    energies: Mapping[str, Energy]
    """by node_day.LINES"""
    gpu_s: float


def days_of(m: Measured, told: Told) -> list[NodeDay]:
    """By day, the first one first; a day without a reading and without a save or load has none."""
    clock = Clock(m.run.wall)
    gpus = gpus_metered(m)
    spans = _spans(m, clock)
    placed = _placed(m, clock)
    days = sorted({*spans, *(day for day, _ in placed)})
    lines = lines_of(m, gpus)
    exits = _exits(m, clock, days)
    found = []
    for day in days:
        mine = [place for at, place in placed if at == day]
        rows = _rows(m, clock, lines, mine)
        head = Head(
            job=told.job,
            run=m.run.id,
            host=m.energies.node.host,
            day=day_name(day),
            labels=dict(sorted(told.labels.items())),
            gpus=gpus,
            nodes=told.nodes,
            node_names=told.node_names,
            simulated=m.run.simulated,
            run_began_ns=clock.ns(m.begin_s),
            over=told.over and day == max(spans, default=days[-1]),
            exit_code=exits.get(day),
            source=told.source,
            **totals_of(m, clock, spans[day]) if day in spans else {},
        )
        found.append(NodeDay(head, rows))
    return found


def _spans(m: Measured, clock: Clock) -> dict[int, Stretch]:
    """The part of what was asked for that is in each day and has readings, in run time."""
    ticked = m.energies.node.ticked_s()
    if not len(ticked):
        return {}
    begin_s, end_s = (
        max(m.begin_s, float(ticked[:, 0].min())),
        min(m.end_s, float(ticked[:, 1].max())),
    )
    return {
        day: span for day, span in clock.days(begin_s, end_s).items() if without([span], gaps_of(m))
    }


def _placed(m: Measured, clock: Clock) -> list[tuple[int, int]]:
    """Day and place of each window, by day and begin; by its first mark where the begin is not
    known."""
    begun = sorted((clock.ns(_begun_s(window)), place) for place, window in enumerate(m.windows))
    return [(begin_ns // DAY_NS, place) for begin_ns, place in begun]


def _begun_s(window: Window) -> float:
    return first_s(window) if window.begin_s is None else window.begin_s


def _exits(m: Measured, clock: Clock, days: Sequence[int]) -> dict[int, int]:
    """By day what wrappers said when their commands ended: an exit code, or 128 and the number of
    the signal, as a shell has it; of several tasks on the node the first that is not 0."""
    found: dict[int, int] = {}
    for mark in m.run.marks:
        if (
            mark.by != "wrap"
            or mark.detail.get("host") not in (None, m.energies.node.host)
            or not days
        ):
            continue
        for status in (mark.detail.get("exit_status"), mark.detail.get("exit_code")):
            if type(status) is int:
                day = clock.day(mark.t_s)
                day = max((each for each in days if each <= day), default=days[0])
                found[day] = found.get(day) or status
    return found


def lines_of(m: Measured, gpus: float) -> list[Lines]:
    """Beside the windows. A save's are the statement's; a load's one line is the GPUs and the host
    of the time until it was there."""
    of_window: dict[str, dict[str, Taken]] = {}
    for each in taken_of(m, NOWHERE, gpus, False):
        of_window.setdefault(each.window, {})[each.line] = each
    loads = _loads(m)
    found = []
    for place, window in enumerate(m.windows):
        mine = of_window[window.name]
        if place in loads:
            of_gpus, of_host = loads[place]
            # while something is read nothing drains and nothing is written: a load has no such
            # lines, in the statement either
            energies = {"gpu": of_gpus, "host": of_host, "slow": NONE_SPENT, "storage": NONE_SPENT}
            found.append(Lines(energies, mine["loading"].gpu_s))
        else:
            found.append(
                Lines(
                    {short: mine[line].energy for line, short in _LINE.items()},
                    mine["gpu_wait"].gpu_s,
                )
            )
    return found


def _loads(m: Measured) -> dict[int, tuple[Energy, Energy]]:
    """GPUs and host of each load, by place: the two halves of what the statement calls loading. It
    is one line there, so without a meter of the node it is not known, though processors and memory
    are."""
    waits = waits_of(m)
    found = {}
    for place, held in enumerate(shared(waits)):
        if m.contents[place].of != "load":
            continue
        wait, window = waits[place], m.windows[place]
        if wait is None:
            why = unknown(window.begin_why or window.returned_why or "NOT_MARKED")
            found[place] = (why, why)
            continue
        if held:
            own = waited(m, held, NOWHERE)
            of_gpus, of_host = own.gpus, own.hosts
        else:
            seen = {domain: spent(m.energies.joules, domain, [wait]) for domain in counted_in(m)}
            of_gpus, of_host = shares_of(m, seen)
        found[place] = (of_gpus, of_host)
    return found


def _rows(
    m: Measured, clock: Clock, lines: Sequence[Lines], places: Sequence[int]
) -> dict[str, NDArray[Any]]:
    from ckptcost.report.statements.measured import _ended as ended

    rows = empty_rows(len(places))
    for n, place in enumerate(places):
        window, what, line = m.windows[place], m.contents[place], lines[place]
        is_load = what.of == "load"
        end_s = load_end_s(window) if is_load else window.returned_s
        rows["key"][n] = key_of(window.label)
        rows["label"][n] = window.label
        rows["load"][n] = is_load
        rows["begin_ns"][n] = clock.ns(_begun_s(window))
        stall_s = nan if window.begin_s is None or end_s is None else end_s - window.begin_s
        rows["stall_s"][n] = stall_s if stall_s >= 0 else nan
        rows["drain_s"][n] = 0.0 if is_load else nan if window.drain_s is None else window.drain_s
        rows["bytes"][n], rows["files"][n] = what.bytes, what.files
        rows["ranks"][n] = len(window.spans)
        rows["failed"][n] = bool(what.error) or not ended(window)
        rows["gpu_s"][n] = line.gpu_s
        for name in LINES:
            energy = line.energies[name]
            if energy.known:
                rows[f"{name}_j"][n] = energy.value
                rows[f"{name}_low_j"][n], rows[f"{name}_high_j"][n] = _outward(
                    energy.low, energy.high
                )
    return rows


def _outward(low: float, high: float) -> tuple[np.float32, np.float32]:
    """As 32 bits, never narrower than they were."""
    few, many = np.float32(low), np.float32(high)
    return (
        np.nextafter(few, np.float32(-np.inf)) if float(few) > low else few,
        np.nextafter(many, np.float32(np.inf)) if float(many) < high else many,
    )
