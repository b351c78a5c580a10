"""What all the readings of a node's day come to: totals, and the power of training between saves
and loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any, Final

from ckptcost.core.attribution import in_turn, mean_w, spent
from ckptcost.core.contents import first_s
from ckptcost.core.reconcile import (
    COVERAGE_AGREES,
    NONE_SPENT,
    Energy,
    difference,
    taken,
    total,
    unknown,
)
from ckptcost.core.steps import pace, split
from ckptcost.core.windows import Stretch, covered_s, extent, without
from ckptcost.fleet.pack.day_clock import Clock
from ckptcost.jobs.measured import Measured

PARTS_OF_HOST: Final = ("cpu", "dram")
"""what stands for the host where nothing meters the node: the least it was"""
_CARDS: Final = ("gpu", "module")


def kind_of(domain: str) -> str:
    return domain.split(":", 1)[0]


def gaps_of(m: Measured) -> list[Stretch]:
    return [(gap.start_s, gap.end_s) for gap in m.run.gaps if gap.host == m.energies.node.host]


def totals_of(m: Measured, clock: Clock, span: Stretch) -> dict[str, Any]:
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
        (taken(m.energies.joules(domain, *stretch)), stretch[1] - stretch[0])
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
