"""What a result warns of: rules as data, each with its words, its numbers and the line to type.

A rule that blocks makes a plan one that nobody may be advised to follow: it never ends, does not
fit, or loses what it relies on. An unknown figure raises no caution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ckptcost.answer import Caution
from ckptcost.plan import bill
from ckptcost.plan import physics as ph
from ckptcost.scenario.schema import Array, Tier
from ckptcost.scenario.units import show
from ckptcost.study import AHEAD, Study

HOPELESS = 1e-6
"""useful training of a run that never ends"""


class Seen:
    """What the rules read off a study, at the stated values: a row a case."""

    def __init__(self, study: Study) -> None:
        self.asked, self.w, self.o = study.asked, study.w, study.stated
        self.p, self.c, self.tier = self.w.policy, self.w.cluster, self.w.tier
        self.plan, self.stall = self.o.plan, self.o.rhythm.stall
        self.mtbf = 1.0 / self.plan.rate
        self.is_async = self.p.mode == "async"
        self.cycle = self.o.interval + self.stall
        self.first_safe = self.plan.back.exposed + self.cycle + self.plan.first.lag

    @cached_property
    def power_step(self) -> Array:
        watts = bill.power(self.w)
        hosts = ph.orelse(watts.host_train - watts.host_stall, 0.0)
        found: Array = watts.gpu_train - watts.gpu_stall + hosts
        return found

    @cached_property
    def keeping(self) -> Array:
        """Share of the cost that is for keeping checkpoints."""
        lines = self.o.bill.lines
        kept = ph.orelse(lines["retention"]["cost"], 0.0)
        return np.where(self.o.goodput < HOPELESS, 0.0, kept / self.o.bill.total("cost"))

    @cached_property
    def worn(self) -> Array:
        """Share of the drives' rated writes that checkpoints use."""
        return bill.rated_share(self.w, self.plan, self.o.spent)

    @cached_property
    def needed(self) -> Array:
        return room(self.plan.first.stored, self.p.keep_last, self.o.saves)

    @cached_property
    def second_needed(self) -> Array:
        saves = self.o.saves / self.p.second_every
        return room(self.plan.second.stored, self.p.second_keep_last, saves)


def room(stored: Array, keep_last: Array, saves: Array) -> Array:
    """Bytes that a tier holds while the next save is written: only then an old one goes."""
    return (np.minimum(keep_last, saves) + 1.0) * stored


def fitting(tier: Tier, stored: Array) -> Array:
    """Checkpoints that may be kept, so that the next one fits as well."""
    return np.maximum(np.floor(tier.capacity / stored) - 1.0, 0.0)


class Rule(NamedTuple):
    code: str
    words: str
    holds: Callable[[Seen], Any]
    """by case; NaN compares as false, so what is not known raises nothing"""
    numbers: Mapping[str, tuple[Callable[[Seen], Any], str]] = MappingProxyType({})
    """those in its words, with their units"""
    blocks: bool = False


RULES = (
    Rule(
        "NEVER_FINISHES",
        "The run never ends: a failure comes every {mtbf}, a save takes {stall} and getting back"
        " {back}. Look for a faster tier:   ckptcost catalog tier",
        lambda s: s.o.goodput < HOPELESS,
        {
            "mtbf": (lambda s: s.mtbf, "s"),
            "stall": (lambda s: s.plan.first.stall + s.plan.first.lag, "s"),
            "back": (lambda s: s.plan.back.exposed, "s"),
        },
        blocks=True,
    ),
    Rule(
        "NO_HEADWAY",
        "Only {goodput} of the time is useful training: the rest goes to saves and failures."
        " Look for a faster tier:   ckptcost catalog tier",
        lambda s: (s.o.goodput >= HOPELESS) & (s.o.goodput < AHEAD),
        {"goodput": (lambda s: s.o.goodput, "share")},
        blocks=True,
    ),
    Rule(
        "CAPACITY",
        "There is no room: keeping {count} checkpoints while the next is written takes {needed},"
        " and the tier has {there}. Keep fewer:   --set policy.keep_last={fit}",
        lambda s: (s.needed > s.tier.capacity) & (fitting(s.tier, s.plan.first.stored) >= 1),
        {
            "count": (lambda s: np.minimum(s.p.keep_last, s.o.saves), ""),
            "needed": (lambda s: s.needed, "B"),
            "there": (lambda s: s.tier.capacity, "B"),
            "fit": (lambda s: fitting(s.tier, s.plan.first.stored), ""),
        },
        blocks=True,
    ),
    Rule(
        "CAPACITY_OF_TWO",
        "There is no room: a save must not overwrite the last one, two take {needed}, and the tier"
        ' has {there}. Take a larger one:   --set tier.capacity="{needed}"',
        lambda s: (s.needed > s.tier.capacity) & (fitting(s.tier, s.plan.first.stored) < 1),
        {
            "needed": (lambda s: 2.0 * s.plan.first.stored, "B"),
            "there": (lambda s: s.tier.capacity, "B"),
        },
        blocks=True,
    ),
    Rule(
        "SECOND_CAPACITY",
        "There is no room on the second tier: {needed} are kept and written, and it has {there}."
        " Keep fewer:   --set policy.second_keep_last={fit}",
        lambda s: s.plan.two & (s.second_needed > s.w.second_tier.capacity),
        {
            "needed": (lambda s: s.second_needed, "B"),
            "there": (lambda s: s.w.second_tier.capacity, "B"),
            "fit": (lambda s: fitting(s.w.second_tier, s.plan.second.stored), ""),
        },
        blocks=True,
    ),
    Rule(
        # A process that asks for more memory than there is gets killed: no setting helps but less.
        "HOST_RAM",
        "A node's {there} of memory are too little: saves on their way take {copies}, the job"
        " itself {used}. Save without copies in memory:   --mode sync",
        lambda s: ph.host_demand(s.w) + ph.orelse(s.c.node_ram_used, 0.0) > s.c.node_ram,
        {
            "copies": (lambda s: ph.host_demand(s.w), "B"),
            "used": (lambda s: ph.orelse(s.c.node_ram_used, 0.0), "B"),
            "there": (lambda s: s.c.node_ram, "B"),
        },
        blocks=True,
    ),
    Rule(
        "COPY_DIES_WITH_NODE",
        "Copies on this tier die with their node, as in {share} of the failures, and no second tier"
        " is named. Name it:   --set second_tier.id=object-store",
        lambda s: ~s.plan.two & (s.tier.survives == "process") & (s.plan.rate > 0),
        {"share": (lambda s: s.w.failures.node_loss_fraction, "share")},
        blocks=True,
    ),
    Rule(
        "NO_SAVE_BEFORE_LIMIT",
        "The first save is safe after {safe}, and the job is ended after {limit}: nothing would be"
        ' kept. Save more often, or ask for longer:   --set run.wall_limit="{safe}"',
        lambda s: s.first_safe > s.w.run.wall_limit * (1 + 1e-9),
        {"safe": (lambda s: s.first_safe, "s"), "limit": (lambda s: s.w.run.wall_limit, "s")},
        blocks=True,
    ),
    Rule(
        "NO_SAVE_IN_RUN",
        "The interval of {asked} is longer than the run of {work}: nothing is saved. Save at least"
        " at the end:   --saves 1",
        lambda s: s.asked > s.w.run.work,
        {"asked": (lambda s: s.asked, "s"), "work": (lambda s: s.w.run.work, "s")},
    ),
    Rule(
        # It does not block: the timeout is a setting of the job, and ranks that all write wait only
        # for the slowest of them.
        "COLLECTIVE_TIMEOUT",
        "Training waits {stall} for a save; ranks that wait in a collective give up after 10 min"
        " (PyTorch). Raise it:   init_process_group(timeout=timedelta(hours=3))",
        lambda s: s.stall > 300.0,
        {"stall": (lambda s: s.stall, "s")},
    ),
    Rule(
        "STALL_NEAR_MTBF",
        "Training waits {stall} for a save and a failure comes every {mtbf}: many saves are lost"
        " half-way. Save beside training:   --mode async",
        lambda s: (s.plan.rate * s.stall > 0.1) & (s.o.goodput >= HOPELESS),
        {"stall": (lambda s: s.stall, "s"), "mtbf": (lambda s: s.mtbf, "s")},
    ),
    Rule(
        "RECOVERY_NEAR_MTBF",
        "Getting back takes {back} and a failure comes every {mtbf}: many hit a restart. What it"
        " must take:   ckptcost need",
        lambda s: (s.plan.rate * s.plan.back.exposed > 0.2) & (s.o.goodput >= HOPELESS),
        {"back": (lambda s: s.plan.back.exposed, "s"), "mtbf": (lambda s: s.mtbf, "s")},
    ),
    Rule(
        "POWER_STEP",
        "At each save the job's power falls by {step} for {stall} and rises again: its supplier"
        " should know. Shorter:   --mode async",
        lambda s: s.power_step > 10e6,
        {"step": (lambda s: s.power_step, "W"), "stall": (lambda s: s.stall, "s")},
    ),
    Rule(
        "KEEPING_DOMINATES",
        "Keeping old checkpoints makes {share} of the cost. Keep fewer:   --set policy.keep_last=1",
        lambda s: (s.keeping > 0.25) & (s.p.keep_last > 1),
        {"share": (lambda s: s.keeping, "share")},
    ),
    Rule(
        "DRIVE_WEAR",
        "Checkpoints alone write {worn} of what the drives are rated for in their life. Save less"
        ' often:   --interval "{asked}"',
        lambda s: s.worn > 1.0,
        {"worn": (lambda s: s.worn, "share"), "asked": (lambda s: s.asked * s.worn, "s")},
    ),
    Rule(
        "DRIVE_USE",
        "Checkpoints use {worn} of the drives' rated writes in {life}. Their price, to count it:"
        '   --set tier.drive_price="100 USD/TB"',
        lambda s: (s.worn > 0.1) & (s.worn <= 1.0) & np.isnan(s.tier.drive_price),
        {"worn": (lambda s: s.worn, "share"), "life": (lambda s: s.tier.drive_life, "s")},
    ),
    Rule(
        "PERSIST_OVER_INTERVAL",
        "A save is safe only after {lag}, longer than the interval of {asked}: training waits or"
        " saves are left out. What can be kept up:   ckptcost interval",
        lambda s: (
            s.is_async
            & (
                ph.least_cycle(s.w, s.plan)
                > (s.asked + ph.drag(s.w, s.plan) + s.plan.first.stall) * (1 + 1e-9)
            )
            & (s.asked > 0)
        ),
        {
            "lag": (lambda s: s.plan.first.stall + s.plan.first.lag, "s"),
            "asked": (lambda s: s.asked, "s"),
        },
    ),
    Rule(
        "SECOND_TIER_TOO_SLOW",
        "A save takes {write} on the second tier, which gets one every {gap}. Send fewer there:"
        "   --set policy.second_every={every}",
        lambda s: s.plan.two & (s.plan.second.write > s.p.second_every * s.cycle),
        {
            "write": (lambda s: s.plan.second.write, "s"),
            "gap": (lambda s: s.p.second_every * s.cycle, "s"),
            "every": (lambda s: np.ceil(s.plan.second.write / s.cycle), ""),
        },
    ),
    Rule(
        "MEAN_OF_RATES",
        "The published write rate of this tier varies by {spread} from round to round. Measure"
        " yours:   ckptcost probe DIR",
        lambda s: s.tier.rate_spread > 0.1,
        {"spread": (lambda s: s.tier.rate_spread, "share")},
    ),
    Rule(
        "SCALED_TIME",
        "The time of a save was measured with {timed} and scaled to {written}. Measure yours:"
        "   ckptcost run -- COMMAND",
        lambda s: np.abs(s.plan.first.written / s.tier.timed_size - 1.0) > 0.01,
        {
            "timed": (lambda s: s.tier.timed_size, "B"),
            "written": (lambda s: s.plan.first.written, "B"),
        },
    ),
)


def cautions_of(study: Study, rows: Sequence[int] | None = None) -> list[Caution]:
    """Those that hold in some of the cases, each once, with the numbers of the first such case."""
    shape, seen = (len(study.names), 1), Seen(study)
    wanted = range(len(study.names)) if rows is None else rows
    found = []
    with np.errstate(all="ignore"):
        for rule in RULES:
            holds = np.broadcast_to(rule.holds(seen), shape)[:, 0]
            where = [row for row in wanted if holds[row]]
            if where:
                said = {
                    name: show(float(np.broadcast_to(read(seen), shape)[where[0], 0]), unit, 2)
                    for name, (read, unit) in rule.numbers.items()
                }
                names = tuple(study.names[row] for row in where)
                found.append(Caution(rule.code, rule.words.format(**said), names, rule.blocks))
    return found


def blocked(study: Study, rows: Sequence[int] | None = None) -> dict[int, Caution]:
    """Cases that nobody may be advised to follow, and the first reason of each."""
    wanted = range(len(study.names)) if rows is None else rows
    found = {name for each in cautions_of(study, wanted) if each.blocks for name in each.cases}
    return {
        row: next(each for each in cautions_of(study, [row]) if each.blocks)
        for row in wanted
        if study.names[row] in found
    }
