"""What `solve` can turn: how much of it there is today, and the scenario and plan with another
amount of it.

A knob acts on the core's objects, not on keys of a file: a stall is a result of many inputs, and so
is the time to get back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ckptcost.core import timing
from ckptcost.core.domain import UNKNOWN, UNLIMITED, Scenario, Tier
from ckptcost.core.failures import Recovery
from ckptcost.core.numeric import ratio
from ckptcost.core.outcome import Plan, plan_of

Put = Callable[[Scenario, Plan, float], tuple[Scenario, Plan]]


class Knob(NamedTuple):
    """One input, or one group of them, as a single number."""

    id: str
    label: str
    unit: str
    best: float
    """as good as it can get: so much (or so little) that the next digit changes nothing"""
    worst: float
    today: Callable[[Scenario, Plan], float]
    put: Put
    at_best: str
    """what its best end is called in a sentence"""

    @property
    def more_is_better(self) -> bool:
        return self.best > self.worst


def write_today(s: Scenario, plan: Plan) -> float:
    """What the tier itself writes, before the nodes' links narrow it."""
    return float(
        timing.write_rate_bytes_per_s(s.tier, replace(s.cluster, node_nic_bytes_per_s=UNLIMITED))
    )


def read_today(s: Scenario, plan: Plan) -> float:
    rate = float(
        timing.read_rate_bytes_per_s(s.tier, replace(s.cluster, node_nic_bytes_per_s=UNLIMITED))
    )
    return rate if rate == rate else write_today(s, plan)


def _writing(tier: Tier, rate: float) -> Tier:
    return replace(
        tier,
        write_bytes_per_s=rate,
        node_write_bytes_per_s=UNLIMITED,
        gpu_write_bytes_per_s=UNLIMITED,
        write_per_s=UNLIMITED,
        save_time_s=UNKNOWN,
    )


def _reading(tier: Tier, rate: float) -> Tier:
    return replace(
        tier,
        read_bytes_per_s=rate,
        node_read_bytes_per_s=UNLIMITED,
        gpu_read_bytes_per_s=UNLIMITED,
        read_per_s=UNLIMITED,
        load_time_s=UNKNOWN,
    )


def _planned(s: Scenario) -> tuple[Scenario, Plan]:
    return s, plan_of(s)


def _put_write(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    # an unknown read rate follows the write rate; asked for one alone, the other stays where it is
    return _planned(replace(s, tier=_writing(_reading(s.tier, read_today(s, plan)), value)))


def _put_read(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    return _planned(replace(s, tier=_reading(s.tier, value)))


def _put_both(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    write, read = write_today(s, plan), read_today(s, plan)
    # in today's proportion; one without a limit keeps none
    return _planned(
        replace(
            s,
            tier=_writing(
                _reading(s.tier, read if read == UNLIMITED else value * read / write), value
            ),
        )
    )


def _put_stall(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    saved = plan.saved
    # a synchronous save writes while training waits: its storage is busy shorter or longer with it
    write_s = (
        saved.write_s * value / saved.stall_s
        if s.policy.mode == "sync" and saved.stall_s > 0
        else saved.write_s
    )
    return s, plan._replace(saved=saved._replace(stall_s=value, write_s=write_s))


def mtbf_today(s: Scenario, plan: Plan) -> float:
    return float(ratio(1.0, plan.failures_per_s))


def _put_mtbf(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    return _planned(replace(s, failures=replace(s.failures, mtbf_s=value)))


def recovery_s(recovery: Recovery) -> float:
    return float(recovery.down_s + recovery.exposed_s)


def recovery_today(s: Scenario, plan: Plan) -> float:
    return recovery_s(plan.recovery)


def recovery_scaled(plan: Plan, share: float) -> Plan:
    """Every piece of getting back so many times as long, from either tier."""
    second = plan.second_recovery
    return plan._replace(
        recovery=Recovery(*(share * piece for piece in plan.recovery)),
        second_recovery=None if second is None else Recovery(*(share * piece for piece in second)),
    )


def back_in(plan: Plan, time_s: float, today_s: float) -> Plan:
    """The plan with another time to get back, its pieces in today's proportion."""
    if today_s > 0:
        return recovery_scaled(plan, time_s / today_s)
    # nothing to keep in proportion: a fixed time in which GPUs wait
    second = plan.second_recovery
    return plan._replace(
        recovery=plan.recovery._replace(detect_s=time_s),
        second_recovery=None if second is None else second._replace(detect_s=time_s),
    )


def _put_recovery(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    return s, back_in(plan, value, recovery_today(s, plan))


KNOBS: dict[str, Knob] = {
    k.id: k
    for k in (
        Knob(
            "write",
            "write rate",
            "bytes_per_s",
            1e24,
            1.0,
            write_today,
            _put_write,
            "an infinitely fast write",
        ),
        Knob(
            "read",
            "read rate",
            "bytes_per_s",
            1e24,
            1.0,
            read_today,
            _put_read,
            "an infinitely fast read",
        ),
        Knob(
            "bandwidth",
            "storage bandwidth",
            "bytes_per_s",
            1e24,
            1.0,
            write_today,
            _put_both,
            "infinitely fast storage",
        ),
        Knob(
            "stall",
            "stall per save",
            "s",
            1e-9,
            1e12,
            lambda s, plan: float(plan.saved.stall_s),
            _put_stall,
            "a save that holds nothing up",
        ),
        Knob(
            "mtbf",
            "time between failures",
            "s",
            1e18,
            1e-3,
            mtbf_today,
            _put_mtbf,
            "a job that never fails",
        ),
        Knob(
            "recovery",
            "time to get back",
            "s",
            1e-9,
            1e12,
            recovery_today,
            _put_recovery,
            "getting back at once",
        ),
    )
}
RANGES = ("interval", "saves-per-day")
