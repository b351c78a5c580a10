"""The model's figures of one save, or of one load, on the machine of a recorded run: by the ids
that the measured figures have."""

from __future__ import annotations

from dataclasses import replace

from ckptcost.core import timing
from ckptcost.core.bill import Bill, Spent, bill_of
from ckptcost.core.domain import Number, Scenario
from ckptcost.core.draws import drawn
from ckptcost.core.gap import Course, modelled_load, modelled_save, resized
from ckptcost.core.lines import OF_A_SAVE
from ckptcost.core.numeric import ratio
from ckptcost.jobs.measured_bill import OF_A_LOAD
from ckptcost.jobs.run_machine import Machine, on_machine
from ckptcost.scenario import Resolved, ranges_of, ties_of


def over_ranges(s: Scenario, resolved: Resolved) -> Scenario:
    """The scenario over draws of its inputs' ranges; the machine is known, so its size has none."""
    gone = ("policy.every", "cluster.gpus", "cluster.gpus_per_node")
    ranges = {path: figures for path, figures in ranges_of(resolved).items() if path not in gone}
    return drawn(s, ranges, ties_of(resolved)) if ranges else s


def course_of(s: Scenario, of: str) -> Course:
    """What the modelled time of a save or load is made of."""
    return (
        modelled_load(s.checkpoint, s.tier, s.cluster)
        if of == "load"
        else modelled_save(s.checkpoint, s.tier, s.cluster, s.policy)
    )


def with_bytes(s: Scenario, of: str, bytes_: Number) -> Scenario:
    """The scenario whose save writes, or whose load reads, so many bytes."""
    return replace(s, checkpoint=resized(s.checkpoint, ratio(bytes_, course_of(s, of).moved_bytes)))


def modelled_bill(s: Scenario, of: str, machine: Machine) -> Bill:
    """What the node that was read has of one save's bill, or of one load's; of the first tier
    alone, for a recorded save goes to one."""
    nothing = Spent(*(0.0 for _ in Spent._fields))
    saved = timing.save(s.checkpoint, s.tier, s.cluster, s.policy)
    spent = nothing._replace(
        stall_s=saved.stall_s, slowed_s=s.policy.slowdown_fraction * saved.lag_s, saves=1.0
    )
    if of == "load":
        spent = nothing._replace(load_s=course_of(s, of).time_s)
    share = saved._replace(written_bytes=saved.written_bytes * (machine.here / machine.job_gpus))
    lines = {
        line.id: line
        for line in bill_of(on_machine(s, machine.here, machine), spent, share, None).lines
    }
    return Bill(tuple(lines[name] for name in (OF_A_LOAD if of == "load" else OF_A_SAVE)))


def figures_of(s: Scenario, of: str, machine: Machine) -> dict[str, Number]:
    """Everything that a row of the comparison has: bytes, seconds, GPU-seconds, and joules by
    line."""
    course = course_of(s, of)
    saved = timing.save(s.checkpoint, s.tier, s.cluster, s.policy)
    held_up_s = course.time_s if of == "load" else saved.stall_s
    found: dict[str, Number] = {
        "bytes": course.moved_bytes,
        "files": s.checkpoint.files,
        "time": course.time_s,
        "stall": held_up_s,
        "lag": saved.lag_s,
        "rate": ratio(course.moved_bytes, course.time_s),
        "gpu_s": machine.here * held_up_s,
    }
    return found | {line.id: line.energy_j for line in modelled_bill(s, of, machine).lines}
