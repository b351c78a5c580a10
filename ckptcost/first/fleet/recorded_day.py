"""What one node's recording says of each UTC day: the joules of its saves and loads line by line,
and what the whole day took.

Lines are those of the run's statement, so their sums are its sums. Days are cut by the wall clock
as the run has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.attribution import in_turn, mean_w, spent
from ckptcost.first.core.contents import first_s
from ckptcost.first.core.reconcile import (
    COVERAGE_AGREES,
    NONE_SPENT,
    Energy,
    difference,
    energy_of_amount,
    total,
    unknown,
)
from ckptcost.first.core.steps import pace, split
from ckptcost.first.core.windows import Stretch, Window, covered_s, extent, without
from ckptcost.first.fleet.node_day import NodeDay, NodeDayHead, empty_rows, key_of
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.measured_bill import (
    counted_in,
    gpus_metered,
    load_end_s,
    shared_pieces,
    shares_of,
    waited_time,
    waits_of,
)
from ckptcost.first.report.statements.run_lines import NOWHERE, LineTaken, taken_of
from ckptcost.first.runs.clocks import S

# Run time, Unix time and UTC days of one recording, along the pairs of clocks that it has.


DAY_NS: Final = 86_400 * S
CLOCK_SET_S: Final = 3600.0
"""by so much the wall clock does not drift within a minute: it was set, and the time between did
not pass"""


def day_name(day: int) -> str:
    """
    >>> day_name(20_454)
    '2026-01-01'
    """
    return datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%d")


class DayClock:
    """Run time to Unix time and to days, along the pairs that the run has."""

    def __init__(self, wall: Sequence[tuple[float, float]]) -> None:
        """`wall`: run time and Unix time, as `Run.wall`."""
        at_s, wall_s = np.array(wall, float).T
        self._first_ns = round(float(wall_s[0]) * S)
        since_s = wall_s - wall_s[0]
        jumps = np.flatnonzero(np.abs(np.diff(since_s) - np.diff(at_s)) > CLOCK_SET_S) + 1
        until_s = since_s[jumps - 1] + at_s[jumps] - at_s[jumps - 1]
        self._at_s, self._since_s = (
            np.insert(at_s, jumps, at_s[jumps]),
            np.insert(since_s, jumps, until_s),
        )

    def ns(self, t_s: float) -> int:
        at_s, since_s = self._at_s, self._since_s
        if t_s <= at_s[0]:
            return self._first_ns + round((float(since_s[0]) + t_s - float(at_s[0])) * S)
        if t_s >= at_s[-1]:
            return self._first_ns + round((float(since_s[-1]) + t_s - float(at_s[-1])) * S)
        return self._first_ns + round(float(np.interp(t_s, at_s, since_s)) * S)

    def day(self, t_s: float) -> int:
        """Since 1970."""
        return self.ns(t_s) // DAY_NS

    def midnights_s(self, days: NDArray[np.int64]) -> NDArray[np.float64]:
        """When each began, in run time: a clock that is set back does not begin a day twice."""
        asked_s = (days * DAY_NS - self._first_ns) / S
        since_s = np.maximum.accumulate(self._since_s)
        inside = np.interp(asked_s, since_s, self._at_s)
        before, behind = asked_s < since_s[0], asked_s > since_s[-1]
        found: NDArray[np.float64] = np.where(
            before,
            self._at_s[0] + asked_s - since_s[0],
            np.where(behind, self._at_s[-1] + asked_s - self._since_s[-1], inside),
        )
        return found

    def days(self, begin_s: float, end_s: float) -> dict[int, Stretch]:
        """What lies in each day, in run time; a clock that is set forward passes over days."""
        first = self.day(begin_s)
        midnights = self.midnights_s(np.arange(first + 1, self.day(end_s) + 1, dtype=np.int64))
        edges = np.clip(np.concatenate([[begin_s], midnights, [end_s]]), begin_s, end_s)
        return {
            first + int(n): (float(edges[n]), float(edges[n + 1]))
            for n in np.flatnonzero(np.diff(edges) > 0)
        }


# What all the readings of a node's day come to: totals, and the power of training between saves
# and loads.


PARTS_OF_HOST: Final = ("cpu", "dram")
"""what stands for the host where nothing meters the node: the least it was"""
_CARDS: Final = ("gpu", "module")


def kind_of(domain: str) -> str:
    return domain.split(":", 1)[0]


def gaps_of(m: Measured) -> list[Stretch]:
    return [(gap.start_s, gap.end_s) for gap in m.run.gaps if gap.host == m.energies.node.host]


def totals_of(m: Measured, clock: DayClock, span: Stretch) -> dict[str, Any]:
    """What the readings of a day come to."""
    node = m.energies.node
    ticked = node.ticked_s()
    inside = ticked[(ticked[:, 1] >= span[0]) & (ticked[:, 0] <= span[1])]
    seen = without([span], gaps_of(m))
    seen_s = covered_s(seen)
    until_ns = clock.ns(min(span[1], float(inside[:, 1].max(initial=span[0]))))
    share = seen_s / (span[1] - span[0])
    gpus, host = _both(m, lambda domain: _if_whole(spent(m.energies.joules, domain, [span]), share))
    calm = without(
        seen, [extent(window) or (first_s(window), window.last_s) for window in m.windows]
    )
    train = _both(m, lambda domain: _power(m, domain, calm))
    recorders = [header for header in node.headers if header.meters] or list(node.headers)
    mine = [header for header in recorders if header.wall_ns <= until_ns] or recorders[:1]
    step_s = nan
    if m.steps is not None:
        ends_s = m.steps.ends_s
        step_s = pace(
            split(ends_s[(ends_s >= span[0]) & (ends_s < span[1])], m.windows).quiet_s
        ).step_s.value
    return {
        "began_ns": clock.ns(max(span[0], float(inside[:, 0].min(initial=span[1])))),
        "until_ns": until_ns,
        "covered_s": seen_s,
        "gpu_total_j": gpus.value,
        "host_total_j": host.value,
        "train_gpu_w": train[0].value,
        "train_host_w": train[1].value,
        "step_s": step_s,
        "meter": f"{mine[-1].boot}:{mine[-1].pid}",
    }


def _both(m: Measured, of: Callable[[str], Energy]) -> tuple[Energy, Energy]:
    """Cards, and what the rows call the host: the node less them, or processors and memory where
    nothing meters the node."""
    cards = [of(domain) for domain in m.energies.parts if kind_of(domain) in _CARDS]
    gpus = total(cards) if cards else unknown("NO_GPU_METER")
    if whole := next((domain for domain in m.energies.wholes if kind_of(domain) == "node"), ""):
        node = of(whole)
        agree = not cards or abs(node.coverage - gpus.coverage) <= COVERAGE_AGREES
        return gpus, (
            difference(node, gpus if cards else NONE_SPENT)
            if agree
            else unknown("COVERAGE_DIFFERS")
        )
    parts = [of(domain) for domain in m.energies.parts if kind_of(domain) in PARTS_OF_HOST]
    return gpus, total(parts) if parts else unknown("NO_NODE_METER")


def _power(m: Measured, domain: str, stretches: Sequence[Stretch]) -> Energy:
    """Mean watts over as much of them as has readings of it."""
    each = [
        (energy_of_amount(m.energies.joules(domain, *stretch)), stretch[1] - stretch[0])
        for stretch in stretches
    ]
    seen = [(energy, length_s) for energy, length_s in each if energy.known]
    whole_s = sum(length_s for _, length_s in seen)
    return mean_w(in_turn(seen), whole_s)._replace(coverage=1.0) if seen else unknown("NO_READING")


def _if_whole(energy: Energy, share: float) -> Energy:
    """Joules of the time that was recorded, or none: of a meter that was lost for a part of it they
    would look like a saving."""
    return (
        energy
        if energy.known and energy.coverage >= share - COVERAGE_AGREES
        else unknown(energy.why or "GAPS")
    )


_LINE: Final = {
    "gpu_wait": "gpu",
    "host_wait": "host",
    "slowdown": "slow",
    "storage_write": "storage",
}


class DayFacts(NamedTuple):
    """What is not in the readings."""

    job: str
    labels: Mapping[str, str] = {}
    nodes: int = 0
    node_names: str = ""
    over: bool = False
    source: str = ""


class WindowLines(NamedTuple):
    """Of one window."""

    energies: Mapping[str, Energy]
    """by node_day.LINES"""
    gpu_s: float


def days_of(m: Measured, told: DayFacts) -> list[NodeDay]:
    """By day, the first one first; a day without a reading and without a save or load has none."""
    clock = DayClock(m.run.wall)
    gpus = gpus_metered(m.energies.parts)
    spans = _spans(m, clock)
    placed = _place_windows(m, clock)
    days = sorted({*spans, *(day for day, _ in placed)})
    lines = lines_of(m, gpus)
    exits = _exits(m, clock, days)
    found = []
    for day in days:
        mine = [place for at, place in placed if at == day]
        rows = _rows(m, clock, lines, mine)
        head = NodeDayHead(
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


def _spans(m: Measured, clock: DayClock) -> dict[int, Stretch]:
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


def _place_windows(m: Measured, clock: DayClock) -> list[tuple[int, int]]:
    """Day and place of each window, by day and begin; by its first mark where the begin is not
    known."""
    begun = sorted((clock.ns(_begun_s(window)), place) for place, window in enumerate(m.windows))
    return [(begin_ns // DAY_NS, place) for begin_ns, place in begun]


def _begun_s(window: Window) -> float:
    return first_s(window) if window.begin_s is None else window.begin_s


def _exits(m: Measured, clock: DayClock, days: Sequence[int]) -> dict[int, int]:
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


def lines_of(m: Measured, gpus: float) -> list[WindowLines]:
    """Beside the windows. A save's are the statement's; a load's one line is the GPUs and the host
    of the time until it was there."""
    of_window: dict[str, dict[str, LineTaken]] = {}
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
            found.append(WindowLines(energies, mine["loading"].gpu_s))
        else:
            found.append(
                WindowLines(
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
    for place, held in enumerate(shared_pieces(waits)):
        if m.contents[place].of != "load":
            continue
        wait, window = waits[place], m.windows[place]
        if wait is None:
            why = unknown(window.begin_why or window.returned_why or "NOT_MARKED")
            found[place] = (why, why)
            continue
        if held:
            own = waited_time(m, held, NOWHERE)
            of_gpus, of_host = own.gpus, own.hosts
        else:
            seen = {
                domain: spent(m.energies.joules, domain, [wait])
                for domain in counted_in(m.energies)
            }
            of_gpus, of_host = shares_of(seen)
        found[place] = (of_gpus, of_host)
    return found


def _rows(
    m: Measured, clock: DayClock, lines: Sequence[WindowLines], places: Sequence[int]
) -> dict[str, NDArray[Any]]:
    from ckptcost.first.report.statements.measured import _was_seen_to_end as ended

    rows = empty_rows(len(places))
    for n, place in enumerate(places):
        window, what, line = m.windows[place], m.contents[place], lines[place]
        is_load = what.of == "load"
        row: dict[str, Any] = {
            "key": key_of(window.label),
            "label": window.label,
            "load": is_load,
            "begin_ns": clock.ns(_begun_s(window)),
            "stall_s": _stall_s(window, is_load),
            "drain_s": 0.0 if is_load else nan if window.drain_s is None else window.drain_s,
            "bytes": what.bytes,
            "files": what.files,
            "ranks": len(window.spans),
            "failed": bool(what.error) or not ended(window),
            "gpu_s": line.gpu_s,
        }
        for name, energy in line.energies.items():
            if energy.known:
                row[f"{name}_j"] = energy.value
                row[f"{name}_low_j"], row[f"{name}_high_j"] = _outward(energy.low, energy.high)
        for name, value in row.items():
            rows[name][n] = value
    return rows


def _stall_s(window: Window, is_load: bool) -> float:
    end_s = load_end_s(window) if is_load else window.returned_s
    if window.begin_s is None or end_s is None or end_s < window.begin_s:
        return nan
    return end_s - window.begin_s


def _outward(low: float, high: float) -> tuple[np.float32, np.float32]:
    """As 32 bits, never narrower than they were."""
    few, many = np.float32(low), np.float32(high)
    return (
        np.nextafter(few, np.float32(-np.inf)) if float(few) > low else few,
        np.nextafter(many, np.float32(np.inf)) if float(many) < high else many,
    )
