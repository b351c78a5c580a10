"""What first order says of a target, where its assumptions hold: one tier, the best interval, a
target on time, failures."""

from __future__ import annotations

from ckptcost.core import solve as roots
from ckptcost.core import timing
from ckptcost.core.numeric import ratio
from ckptcost.jobs.knobs import Knob, recovery_s
from ckptcost.jobs.trials import Trials


def goodput_asked(trials: Trials) -> float:
    """The goodput that a target on time comes to."""
    gate, work_s = trials.gate, float(trials.s.work_s)
    match gate.measure.id:
        case "goodput":
            return gate.limit
        case "wall":
            return min(1.0, float(ratio(work_s, gate.limit)))
        case _:
            return work_s / (work_s + gate.limit / float(trials.s.cluster.gpus))


def first_order(trials: Trials, knob: Knob | None) -> tuple[float, ...]:
    """The value needed, or both ends of a range of intervals; empty where first order does not
    apply or finds none."""
    s, plan = trials.s, trials.plan
    if (
        trials.kept_s is not None
        or trials.objective != "time"
        or plan.second is not None
        or not plan.failures_per_s > 0
    ):
        return ()
    goodput = goodput_asked(trials)
    back_s, lag_s, mtbf_s = (
        recovery_s(plan.recovery),
        float(plan.saved.lag_s),
        1.0 / float(plan.failures_per_s),
    )
    drag_s = float(s.policy.slowdown_fraction * lag_s)
    stall_s = float(plan.saved.stall_s) + drag_s
    if knob is None:
        shortest, longest = roots.first_order_window_s(goodput, stall_s, back_s + lag_s, mtbf_s)
        return (float(shortest), float(longest)) if 0 < shortest < longest else ()
    allowed_s = float(roots.first_order_stall_s(goodput, back_s + lag_s, mtbf_s)) - drag_s
    lost_s = float(roots.first_order_lost_s(goodput, stall_s, mtbf_s))
    match knob.id:
        case "stall":
            return (allowed_s,) if allowed_s > 0 else ()
        case "recovery":
            return (lost_s - lag_s,) if lost_s > lag_s else ()
        case "mtbf":
            return (
                (float(roots.first_order_mtbf_s(goodput, stall_s, back_s + lag_s)),)
                if goodput < 1
                else ()
            )
        case "write":
            fixed_s = float(timing.fixed_s(s.checkpoint, s.tier))
            moving_s = (allowed_s if s.policy.mode == "sync" else lost_s - back_s) - fixed_s
            moved = float(s.checkpoint.straggler_factor * plan.saved.written_bytes)
            return (moved / moving_s,) if moving_s > 0 else ()
    return ()
