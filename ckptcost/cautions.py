"""What a result warns of: rules as data, each with its words, which end in the line to type.

A rule that blocks makes a plan one that nobody may be advised to follow: it never ends, does not
fit, or loses what it relies on. An unknown figure raises no caution.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ckptcost.answer import Caution
from ckptcost.plan import bill
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.plan.arrays import orelse
from ckptcost.scenario.schema import Array
from ckptcost.scenario.units import show
from ckptcost.study import AHEAD, Study

HOPELESS = 1e-6
"""useful training of a run that never ends"""


class Seen:
    """What the rules read off a study, at the stated values: a row a case."""

    @np.errstate(all="ignore")
    def __init__(self, study: Study) -> None:
        self.study, w, o = study, study.w, study.stated
        self.w, self.policy, self.tier, self.plan = w, w.policy, w.tier, o.plan
        first = self.plan.first
        self.asked, self.work, self.limit = study.asked, w.run.work, w.run.wall_limit
        self.goodput, self.stall, self.rate = o.goodput, o.rhythm.stall, self.plan.rate
        self.mtbf, self.back = 1.0 / self.rate, self.plan.back.exposed
        self.safe = self.stall + first.lag
        self.first_safe = self.back + o.interval + self.safe
        self.hours = np.ceil(1.5 * self.stall / 3600.0)
        self.node_loss = w.failures.node_loss_fraction
        self.count = np.minimum(self.policy.keep_last, o.saves)
        self.needed, self.two = (self.count + 1.0) * first.stored, 2.0 * first.stored
        self.there = self.tier.capacity
        # the next checkpoint must fit as well: only then an old one goes
        self.fit = np.maximum(np.floor(self.there / first.stored) - 1.0, 0.0)
        second_count = np.minimum(self.policy.second_keep_last, o.saves / self.policy.second_every)
        self.second_needed = (second_count + 1.0) * self.plan.second.stored
        self.second_there = w.second_tier.capacity
        self.copies, self.ram = ph.host_demand(w), w.cluster.node_ram
        self.used = w.cluster.node_ram_used
        watts = bill.power(w)
        hosts = orelse(watts.host_train - watts.host_stall, 0.0)
        self.power_step = watts.gpu_train - watts.gpu_stall + hosts
        self.worn, self.life = bill.rated_share(w, self.plan, o.spent), self.tier.drive_life
        self.drains = ph.least_cycle(w, self.plan) - ph.drag(w, self.plan) - first.stall

    @cached_property
    @np.errstate(all="ignore")
    def remedy(self) -> Array:
        """What helps a run that makes no headway: another interval if it would with the best one;
        if not, a faster tier, unless the rest of getting back takes longer."""
        first, back = self.plan.first, self.plan.back
        best = ev.at(self.w, self.plan, ev.best(self.w, self.plan, "time")).goodput
        rest = back.detect + back.reschedule + back.exposed - back.load
        slower = first.stall + first.lag + back.load > rest
        return np.where(best >= AHEAD, REMEDIES[0], np.where(slower, *REMEDIES[1:]))


REMEDIES = (
    "Save at another interval:   ckptcost interval",
    "Look for a faster tier:   ckptcost catalog tier",
    'Check how often it fails, and how long it takes to get back:   --mtbf "20 h"',
)


class Rule(NamedTuple):
    code: str
    holds: Callable[[Seen], Any]
    """by case; NaN compares as false, so what is not known raises nothing"""
    words: str
    """with numbers of `Seen` and their units; a "+" gives 5 % more, which no rounding undoes"""
    blocks: bool = False


RULES = (
    Rule(
        "NEVER_FINISHES",
        lambda s: s.goodput < HOPELESS,
        "The run never ends: a failure comes every {mtbf:s}, a save every {asked:s}; one takes"
        " {safe:s}, getting back {back:s}. {remedy}",
        blocks=True,
    ),
    Rule(
        "NO_HEADWAY",
        lambda s: (s.goodput >= HOPELESS) & (s.goodput < AHEAD),
        "Only {goodput:share} of the time is useful training: the rest goes to saves and failures."
        " {remedy}",
        blocks=True,
    ),
    Rule(
        "CAPACITY",
        lambda s: (s.needed > s.there) & (s.fit >= 1),
        "There is no room: keeping {count} checkpoints while the next is written takes {needed:B},"
        " and the tier has {there:B}. Keep fewer:   --set policy.keep_last={fit}",
        blocks=True,
    ),
    Rule(
        "CAPACITY_OF_TWO",
        lambda s: (s.needed > s.there) & (s.fit < 1),
        "There is no room: a save must not overwrite the last one, two take {two:B}, and the tier"
        ' has {there:B}. Take a larger one:   --set tier.capacity="{needed:B+}"',
        blocks=True,
    ),
    Rule(
        "SECOND_CAPACITY",
        lambda s: s.plan.two & (s.second_needed > s.second_there),
        "There is no room on the second tier: {second_needed:B} are kept and written, and it has"
        ' {second_there:B}. Take a larger one:   --set second_tier.capacity="{second_needed:B+}"',
        blocks=True,
    ),
    Rule(
        # A process that asks for more memory than there is gets killed: no setting helps but less.
        "HOST_RAM",
        lambda s: s.copies + orelse(s.used, 0.0) > s.ram,
        "A node's {ram:B} of memory are too little: saves on their way take {copies:B} (the job"
        " itself: {used:B}). Save without copies in memory:   --mode sync",
        blocks=True,
    ),
    Rule(
        "COPY_DIES_WITH_NODE",
        lambda s: ~s.plan.two & (s.tier.survives == "process") & (s.rate > 0),
        "Copies on this tier die with their node, as in {node_loss:share} of the failures, and no"
        " second tier is named. Name it:   --set second_tier.id=object-store",
        blocks=True,
    ),
    Rule(
        "NO_SAVE_BEFORE_LIMIT",
        lambda s: s.first_safe > s.limit * (1 + 1e-9),
        "The first save is safe after {first_safe:s}, and the job is ended after {limit:s}: nothing"
        " would be kept. Save more often, or ask for longer:"
        '   --set run.wall_limit="{first_safe:s+}"',
        blocks=True,
    ),
    Rule(
        "NO_SAVE_IN_RUN",
        lambda s: s.asked > s.work,
        "The interval of {asked:s} is longer than the run of {work:s}: nothing is saved. Save at"
        " least at the end:   --saves 1",
    ),
    Rule(
        # It does not block: the timeout is a setting of the job, and ranks that all write wait only
        # for the slowest of them.
        "COLLECTIVE_TIMEOUT",
        lambda s: s.stall > 300.0,
        "Training waits {stall:s} for a save; ranks that wait in a collective give up after 10 min"
        " (PyTorch). Raise it:   init_process_group(timeout=timedelta(hours={hours}))",
    ),
    Rule(
        "POWER_STEP",
        lambda s: s.power_step > 10e6,
        "At each save the job's power falls by {power_step:W} for {stall:s} and rises again: its"
        " supplier should know. Less often:   ckptcost interval",
    ),
    Rule(
        "DRIVE_USE",
        lambda s: (s.worn > 0.1) & np.isnan(s.tier.drive_price),
        "Checkpoints use {worn:share} of the drives' rated writes in {life:s}. Save less often, or"
        ' count it:   --set tier.drive_price="100 USD/TB"',
    ),
    Rule(
        "PERSIST_OVER_INTERVAL",
        lambda s: (s.policy.mode == "async") & (s.drains > s.asked * (1 + 1e-9)) & (s.asked > 0),
        "A save is safe only after {safe:s}, longer than the interval of {asked:s}: training waits"
        " or saves are left out. What can be kept up:   ckptcost interval",
    ),
)


def cautions_of(study: Study, rows: Sequence[int] | None = None) -> list[Caution]:
    """Those that hold in some of the cases, each once, with the numbers of the first such case."""
    seen = Seen(study)
    return [caution(rule, seen, where) for rule, where in holding(seen, rows)]


def blocked(study: Study, rows: Sequence[int] | None = None) -> dict[int, Caution]:
    """Cases that nobody may be advised to follow, and the first reason of each."""
    seen, found = Seen(study), dict[int, Caution]()
    for rule, where in holding(seen, rows):
        for row in where if rule.blocks else ():
            found.setdefault(row, caution(rule, seen, [row]))
    return found


def holding(seen: Seen, rows: Sequence[int] | None) -> Iterator[tuple[Rule, list[int]]]:
    """Rules, and the cases in which they hold."""
    count = len(seen.study.names)
    for rule in RULES:
        holds = np.broadcast_to(rule.holds(seen), (count, 1))[:, 0]
        where = [row for row in (range(count) if rows is None else rows) if holds[row]]
        if where:
            yield rule, where


def caution(rule: Rule, seen: Seen, rows: Sequence[int]) -> Caution:
    """A rule in words, with the numbers of the first row."""
    names = seen.study.names

    def said(number: re.Match[str]) -> str:
        name, unit, more = number.groups()
        found = np.broadcast_to(getattr(seen, name), (len(names), 1))[rows[0], 0]
        if isinstance(found, str) or np.isnan(found):
            return found if isinstance(found, str) else "not known"
        return show(float(found) * (1.05 if more else 1.0), unit or "", 2 if unit else 6)

    words = re.sub(r"{(\w+):?(\w+)?(\+)?}", said, rule.words)
    return Caution(rule.code, words, tuple(names[row] for row in rows), rule.blocks)
