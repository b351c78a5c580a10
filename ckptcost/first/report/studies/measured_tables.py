"""The tables of measured checkpoints, of joules by domain and of phases, and the columns of a range
that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from ckptcost.first.core.attribution import Cost, Opportunity
from ckptcost.first.core.contents import Contents
from ckptcost.first.core.counters import CountedAmount
from ckptcost.first.core.dips import Dip
from ckptcost.first.core.estimates import Estimate
from ckptcost.first.core.reconcile import Energy
from ckptcost.first.core.windows import Phase, Window
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.present.amounts import number
from ckptcost.first.report.studies.measure_saves import rate_of, returned_why
from ckptcost.first.report.study import Column, Table, hidden, plain, table_of

COSTS = 1000
"""costs whose amounts are looked at together"""


def range_of(name: str, shown: bool = False, of: str = "") -> tuple[Column, ...]:
    """The columns of a range: its farther end for people, both ends for programs."""
    energy = attrgetter(of or name)
    meaning = "how far the farther of low and high is"
    return (
        Column(f"{name}_error", "+-", "J", meaning, shown, of=lambda each: off(energy(each))),
        *hidden(
            Column(f"{name}_low", "low", "J", of=f"{of or name}.low"),
            Column(f"{name}_high", "high", "J", of=f"{of or name}.high"),
        ),
    )


def joules(name: str, label: str, meaning: str = "", shown: bool = True, *, of: str = "") -> Column:
    """The column of an energy, beside which its range stands."""
    return Column(name, label, "J", meaning, shown, of=f"{of or name}.value")


def off(energy: Energy) -> float:
    return max(energy.high - energy.value, energy.value - energy.low)


def three(energy: Energy, name: str) -> dict[str, float | None]:
    """With its range, and for people how far the farther end is."""
    ends = {"": energy.value, "_low": energy.low, "_high": energy.high, "_error": off(energy)}
    return {f"{name}{end}": plain(value) for end, value in ends.items()}


def give_or_take(energy: Energy) -> str:
    """With its farther end, which three digits of both ends would hide."""
    return f"{number(energy.value)} (+-{number(off(energy))})"


class SaveSeen(NamedTuple):
    """One checkpoint and all that is known of it."""

    window: Window
    what: Contents
    chance: Opportunity
    joules: Energy
    excess: Energy
    stall_joules: Energy
    dip: Dip | None
    by_steps: Estimate | None


def _seen(m: Measured) -> list[SaveSeen]:
    totals = m.of_windows()
    return [
        SaveSeen(
            window,
            what,
            chance,
            *totals[window.name],
            m.dips[place] if place < len(m.dips) else None,
            m.steps.stalls_s[place] if m.steps is not None else None,
        )
        for place, (window, what, chance) in enumerate(
            zip(m.windows, m.contents, m.opportunities, strict=True)
        )
    ]


def _flags(one: SaveSeen) -> str:
    codes = (flag.code for flag in one.window.flags)
    return ", ".join(dict.fromkeys([*codes, *one.joules.flags]))


_WINDOWS = (
    Column("window", "checkpoint", of="window.name"),
    *hidden(Column("begin", "begin", "s", "since the recording began", of="window.begin_s")),
    Column("bytes", "bytes", "bytes", "as the job or its files say", of="what.bytes"),
    Column(
        "length",
        "safe after",
        "s",
        "from begin until it is safe and training goes on",
        of="window.length_s",
    ),
    Column(
        "rate",
        "rate",
        "bytes_per_s",
        "bytes over the time until safe, as MLPerf Storage has it",
        of=lambda one: rate_of(one.window, one.what),
    ),
    Column(
        "stall",
        "stall",
        "s",
        "training stood still, from the first rank's begin to the last one's return",
        of="window.stall_s",
    ),
    *hidden(
        Column("drain", "drain", "s", "from the return until the save is safe", of="window.drain_s")
    ),
    joules("joules", "J", "all metered parts, from begin until safe"),
    *range_of("joules", True),
    joules("excess", "above idle", "less the baseline's watts times the length"),
    *range_of("excess"),
    Column(
        "gpu_s",
        "GPU-s",
        "GPU-s",
        "GPUs times the stall: what standing still kept from being done",
        of="chance.stalled_gpu_s",
    ),
    joules("stall_joules", "J of the stall", shown=False),
    *range_of("stall_joules"),
    *hidden(
        Column(
            "waited_gpu_s",
            "waited",
            "GPU-s",
            "of it, ranks that were done and waited for a slower one",
            of="chance.waited_gpu_s",
        ),
        Column("of", "of", meaning="save or load", of="what.of"),
        Column("files", "files", "count", of="what.files"),
        Column("error", "error", meaning="what ended it before its time", of="what.error"),
        Column("how", "evidence", meaning="how it is known when it was safe", of="what.how"),
        Column(
            "unsure",
            "unsure",
            "s",
            "how long before that instant it was last seen not to be safe",
            of="what.unsure_s",
        ),
        Column(
            "gpu_power",
            "GPU power",
            meaning="whether it confirms that training stood still",
            of=lambda one: one.dip and one.dip.verdict,
        ),
        Column(
            "gpu_drop",
            "drop",
            "share",
            "of the GPUs' power, stall over the time before",
            of=lambda one: one.dip and one.dip.drop_fraction,
        ),
        Column(
            "gpu_why",
            "why not",
            meaning="code, where GPU power does not tell",
            of=lambda one: one.dip and one.dip.why,
        ),
        Column(
            "steps_stall",
            "by steps",
            "s",
            "how much longer training's own steps took",
            of=lambda one: one.by_steps and one.by_steps.value,
        ),
        Column("steps_stall_low", "low", "s", of=lambda one: one.by_steps and one.by_steps.low),
        Column("steps_stall_high", "high", "s", of=lambda one: one.by_steps and one.by_steps.high),
        Column(
            "steps_why",
            "why",
            meaning="code, where steps do not tell",
            of=lambda one: one.by_steps and one.by_steps.why,
        ),
        Column("returned", "returned", "s", "since the recording began", of="window.returned_s"),
        Column(
            "durable",
            "durable",
            "s",
            "since the recording began; null: not known",
            of="window.durable_s",
        ),
        Column(
            "durable_why",
            "why not",
            meaning="code, where it is not known when the save was safe",
            of=lambda one: one.what.why or one.window.durable_why,
        ),
        Column(
            "returned_why",
            "why no stall",
            meaning="code, where it is not known when training went on",
            of=lambda one: returned_why(one.window, one.what),
        ),
        Column("ranks", "ranks", "count", of=lambda one: len(one.window.spans)),
        Column("flags", "flags", of=_flags),
        Column("excess_why", "why", meaning="code, where the excess is unknown", of="excess.why"),
    ),
)


def windows(m: Measured) -> Table:
    return table_of("windows", "Checkpoints", _WINDOWS, _seen(m))


class CostSeen(NamedTuple):
    """What a checkpoint cost a domain, and what its meter knows of that time."""

    cost: Cost
    source: str
    amount: CountedAmount | None


def _cost_flags(one: CostSeen) -> str:
    each = one.cost
    return ", ".join(dict.fromkeys([*each.absolute.flags, *each.excess.flags, *each.extra.flags]))


_ENERGIES = (
    Column("window", "checkpoint", of="cost.window"),
    Column("domain", "domain", of="cost.domain"),
    joules("joules", "J", of="cost.absolute"),
    *range_of("joules", True, "cost.absolute"),
    joules("stall", "stall J", of="cost.stall"),
    joules("drain", "drain J", "mostly training's own", of="cost.drain"),
    joules(
        "extra",
        "extra J",
        "what draining adds to the power of training just before",
        of="cost.extra",
    ),
    joules("excess", "above idle", shown=False, of="cost.excess"),
    *(
        column
        for name in ("excess", "stall", "drain", "extra")
        for column in range_of(name, of=f"cost.{name}")
    ),
    joules(
        "share",
        "share",
        "with instants that several saves share divided among them: these add up",
        False,
        of="cost.share",
    ),
    *range_of("share", of="cost.share"),
    *hidden(
        Column(
            "training",
            "training W",
            "W",
            "mean power just before, outside all saves",
            of="cost.training_w.value",
        ),
        Column("overlap", "overlap", "s", "drain while training went on", of="cost.overlap_s"),
        Column(
            "short",
            "short",
            "bool",
            "fewer than five ticks inside: the edges are most of the answer",
            of=lambda one: one.amount.short if one.amount else None,
        ),
        Column(
            "coverage",
            "covered",
            "share",
            of=lambda one: one.amount.coverage if one.amount else None,
        ),
        Column("ticks", "ticks", "count", of=lambda one: one.amount.ticks if one.amount else None),
        "source",
        Column("flags", "flags", of=_cost_flags),
        Column("why", "why", of="cost.absolute.why"),
        Column(
            "reasons",
            "reasons",
            of=lambda one: ", ".join(one.amount.reasons) if one.amount else None,
        ),
    ),
)


def energies(m: Measured) -> Table:
    title, few = "Joules by checkpoint and domain", len(m.costs) <= 12
    return table_of("energies", title, _ENERGIES, lambda: _costs_seen(m), shown=few)


def _costs_seen(m: Measured) -> Iterator[CostSeen]:
    spans = {w.name: w for w in m.windows}
    for place in range(0, len(m.costs), COSTS):
        costs = m.costs[place : place + COSTS]
        told = _amounts(m, costs, spans)
        for cost in costs:
            source = m.energies.sources[cost.domain].channel.source
            yield CostSeen(cost, source, told.get((cost.window, cost.domain)))


def _amounts(
    m: Measured, costs: Sequence[Cost], spans: Mapping[str, Window]
) -> dict[tuple[str, str], CountedAmount]:
    """What the meters say of some windows, worked out together."""
    asked: dict[tuple[str, str], tuple[float, float]] = {}
    for cost in costs:
        begin_s, end_s = spans[cost.window].begin_s, spans[cost.window].end_s
        if begin_s is not None and end_s is not None and end_s > begin_s:
            asked[cost.window, cost.domain] = begin_s, end_s
    m.energies.ahead(list(dict.fromkeys(domain for _, domain in asked)), asked.values())
    return {key: m.energies.joules(key[1], *span) for key, span in asked.items()}


class PhaseSeen(NamedTuple):
    """A phase of a checkpoint in one of the two views of its time."""

    window: Window
    of: str
    phase: Phase
    joules: Energy
    watts: float


_PHASES = (
    Column("window", "checkpoint", of="window.name"),
    Column("of", "of", meaning="two views of the same time: of training and of storage"),
    Column("phase", "phase", of="phase.name"),
    Column("length", "length", "s", of="phase.length_s"),
    Column("watts", "mean W", "W"),
    joules("joules", "J"),
    *range_of("joules", True),
    *hidden(Column("begin", "begin", "s", of="phase.begin_s")),
)


def phases(m: Measured) -> Table:
    title, few = "Phases, all metered parts together", len(m.windows) <= 3
    return table_of("phases", title, _PHASES, lambda: _phases_seen(m), shown=few)


def _phases_seen(m: Measured) -> list[PhaseSeen]:
    told = [
        (window, kind, phase)
        for window in m.windows
        for kind, those in (("training", window.phases), ("storage", window.storage))
        for phase in those
        if phase.length_s != 0
    ]
    used = m.of_phases([(phase.begin_s, phase.end_s) for _, _, phase in told])
    return [PhaseSeen(*head, *each) for head, each in zip(told, used, strict=True)]
