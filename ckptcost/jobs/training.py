"""What training itself says of the saves: its steps, where the job marks them, and the power of its
GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ckptcost.core.attribution import AT_ONCE, Joules, Planned
from ckptcost.core.channels import Mark
from ckptcost.core.dips import Dip, dip, of_curves, of_joules
from ckptcost.core.estimates import Estimate, Floats
from ckptcost.core.steps import STEPS, StepPace, StepSplit, ends_of, longer, pace, split, stalls
from ckptcost.core.windows import Stretch, Window
from ckptcost.jobs.energies import Energies
from ckptcost.runs.run import Node


class TrainingSteps(NamedTuple):
    """Of the rank that says most."""

    ends_s: Floats
    split: StepSplit
    usual: StepPace
    stalls_s: Sequence[Estimate]
    """by window: how much longer its steps took"""
    more: Estimate
    """how much longer a step takes while a save drains, as a fraction"""


def training_steps(
    marks: Sequence[Mark], windows: Sequence[Window], node: Node
) -> TrainingSteps | None:
    """None where the job marks no steps. They carry the monotonic clock of their own host."""
    told = [mark for mark in marks if mark.name == STEPS]
    if not told:
        return None
    ends_s = ends_of(told, node.origin_ns - (node.tables[0][1] if node.tables else 0))
    parts = split(ends_s, windows)
    usual = pace(parts.quiet_s)
    return TrainingSteps(
        ends_s, parts, usual, stalls(ends_s, windows, usual), longer(parts.drained_s, parts.quiet_s)
    )


def dips_of(energies: Energies, joules: Joules, plans: Sequence[Planned]) -> Iterator[Dip | None]:
    """By window, whether the GPUs' power confirms its stall; None where there is no meter of a GPU,
    or no stall to confirm. One after the other: beside the costs of the same windows, whose joules
    are at hand then."""
    gpus = [domain for domain in energies.parts if domain.startswith(("gpu:", "module:"))]
    if not gpus:
        yield from [None] * len(plans)
        return
    mean = of_joules(joules, gpus)
    rough = of_curves([partial(energies.curve, domain) for domain in gpus])
    channels = [energies.sources[domain].channel for domain in gpus]
    resolved_s = max(
        max(channel.averaging_s or 0.0, energies.tick_s(channel.domain) or 0.0)
        for channel in channels
    )
    for first in range(0, len(plans), AT_ONCE):
        near = plans[first : first + AT_ONCE]
        stalls = [_stall(plan.window) for plan in near]
        quiet = [stall and plan.quiet for stall, plan in zip(stalls, near, strict=True)]
        energies.curves_ahead(gpus, [span for span in quiet if span])
        for stall, before in zip(stalls, quiet, strict=True):
            yield stall and dip(mean, stall, before, resolved_s=resolved_s, rough=rough)


def _stall(window: Window) -> Stretch | None:
    """None where it did not stall, or not for a time that is known."""
    begin_s, end_s = window.begin_s, window.returned_s
    return None if begin_s is None or end_s is None or end_s <= begin_s else (begin_s, end_s)
