"""Stretches without readings, missing parts, and recorders that ran side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ckptcost.first.runs.header import Header
from ckptcost.first.runs.run import Gap, Node, Problem

_PERIODS = 3.0
"""of the pace at rest without a tick are a gap; below a second and a half it may be a summary whose
neighbours are single ticks"""


def gaps_of(node: Node) -> Iterator[Gap]:
    """Where nothing was read for longer than three periods at rest, or 1.5 s."""
    spans_s = node.ticked_s()
    if len(spans_s) < 2:
        return
    rest_s = max((header.settings.get("rest_s", 0.2) for header in node.headers), default=0.2)
    ends_s = np.maximum.accumulate(spans_s[:, 1])
    for i in np.flatnonzero(spans_s[1:, 0] - ends_s[:-1] > max(1.5, _PERIODS * rest_s)):
        start_s, end_s = float(ends_s[i]), float(spans_s[i + 1, 0])
        yield Gap(node.host, start_s, end_s, _why(node, start_s, end_s))


def _why(node: Node, start_s: float, end_s: float) -> str:
    metered = [header for header in node.headers if header.meters]
    for before, after in pairwise(metered):
        if (before.pid, before.boot) == (after.pid, after.boot):
            continue
        begun_s = (
            (after.monotonic_ns - node.origin_ns) / 1e9 if before.boot == after.boot else end_s
        )
        if start_s <= begun_s <= end_s + 1.0:
            return (
                "the host was started again"
                if before.boot != after.boot
                else f"another recorder took over (rank {after.rank})"
            )
    return "nothing was read or nothing could be written"


def missing_parts(headers: Sequence[Header]) -> list[Problem]:
    """Numbers that are not there, and what was removed on purpose."""
    problems = []
    by_host: dict[str, list[Header]] = defaultdict(list)
    for header in headers:
        if header.meters:
            by_host[header.host].append(header)
    for host, of_host in by_host.items():
        numbers = {header.part for header in of_host}
        ranges = [header.dropped for header in of_host if len(header.dropped) == 2]
        dropped = {n for first, last in ranges for n in range(first, last + 1)}
        lacking = sorted(set(range(max(numbers) + 1)) - numbers - dropped)
        if lacking and len(headers) > 1:
            those = f"part{'s' * (len(lacking) > 1)} {_ranges(lacking)}"
            problems.append(Problem(host, 0, f"{those} not here: its time is a gap"))
        if gone := sorted(dropped - numbers):
            said = f"parts {_ranges(gone)} were removed to stay below the size asked for"
            problems.append(Problem(host, 0, said))
    return problems


def side_by_side(parts: Sequence[tuple[Header, int]]) -> list[Problem]:
    """Two recorders of one host and run at the same time; `parts` are headers with the time of
    their last line."""
    spans: dict[tuple[str, str, int], tuple[int, int]] = {}
    for header, last_ns in parts:
        if header.meters:
            key = (header.host, header.boot, header.pid)
            start_ns, end_ns = spans.get(key, (header.monotonic_ns, last_ns))
            spans[key] = (min(start_ns, header.monotonic_ns), max(end_ns, last_ns))
    in_order = sorted(spans.items(), key=lambda item: (item[0][:2], item[1]))
    return [
        Problem(
            one[0],
            0,
            f"processes {one[2]} and {other[2]} recorded at the same time for"
            f" {(end_ns - start_ns) / 1e9:.1f} s",
        )
        for (one, (_, end_ns)), (other, (start_ns, _)) in pairwise(in_order)
        if one[:2] == other[:2] and start_ns < end_ns
    ]


def _ranges(numbers: Sequence[int]) -> str:
    """
    >>> _ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
