"""What a figure must be for a target: at the stated values, and to be sure of it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Unpack

from ckptcost.answer import Answer, Caution, Cell, Column, Say, Table
from ckptcost.plan.bill import QUANTITIES, label_of
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.questions.enough import Level, Quantity, Search, Trial, quantity_of
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show
from ckptcost.study import DRAWS, MEASURES, Study

LEVELS = (0.5, 0.8, 0.95)
"""shares of the draws for which the table gives the value"""


def need(
    quantity: Annotated[
        str,
        q.Flag("write, read, stall, mtbf, rate, recovery, interval or a key", "QUANTITY", True),
    ],
    job: q.Job = q.DEFAULT,
    *,
    for_: Annotated[
        str, q.Flag('e.g. "goodput>=0.95", "overhead<=1 %"', "TARGET")
    ] = "goodput>=0.9",
    **flags: Unpack[q.Flags],
) -> Answer:
    """What a figure must be for a target, how sure that is, and what stands in the way. Each trial
    saves as often as is best for it, unless --interval or --saves is given.

    ckptcost need write job.toml --for "goodput>=0.97"
    ckptcost need mtbf micron-100k --for "goodput>=0.95" --sure 0.95
    ckptcost need interval job.toml --for "overhead<=1 %"
    """
    q.demand(not flags.get("require"), "is for other verbs", "--require", "need takes --for")
    keeps = bool(flags.get("interval") or flags.get("saves"))
    asked: dict[str, Any] = {"quantity": quantity, "for": for_, "keep_interval": keeps}
    asked |= {"typed": q.typed(job, flags)} | q.options_of(flags)
    return answer(q.one_case(job, flags, "need"), **asked)


def answer(cases: dict[str, Scenario], **asked: Any) -> Answer:
    """The same of a case, and of the options that a document holds."""
    target, draws = q.target_of(asked["for"], "--for"), asked.get("draws")
    draws = DRAWS if draws is None else draws
    base, today = next(iter(cases.values())), Study(cases, draws)
    stop = ranks.stop_of(today)
    quantity = quantity_of(asked["quantity"], base, today)
    search = Search(base, quantity, target, asked["keep_interval"], draws)
    found = Found(search, today, stop, asked.get("sure"))
    limit = limit_of(asked["for"], target)
    return Answer(
        "need",
        f"What {quantity.name} gives {'at least' if target.at_least else 'at most'} {limit}?",
        one.about(today, 0),
        decision(found),
        [levels_table(found)],
        next_commands(found, asked["typed"]),
        missed=missed(found),
        cases=cases,
        options=asked,
        draws=today.draws,
    )


class Found:
    """What is enough, by the share of draws in which it is."""

    def __init__(
        self, search: Search, today: Study, stop: Caution | None, sure: float | None
    ) -> None:
        self.search, self.today, self.stop = search, today, stop
        self.sure, self.said = sure or q.SURE, sure or LEVELS[-1]
        now = search.quantity.now
        self.now = "" if now != now else search.quantity.say(now)
        shares = sorted({*LEVELS, self.sure}) if search.draws != 0 else []
        self.stated = search.level(None)
        self.levels = {share: search.level(share) for share in shares}
        self.decides = self.levels.get(self.sure, self.stated)
        self.best = None if self.decides.possible else search.nearest()
        """if nothing is enough: what comes nearest; none if nothing works, or nobody knows"""

    def met_by(self, level: Level) -> float:
        """In which share of the draws the edges of a level are enough."""
        return min(self.search.target.met_by(each.study, 0).share for each in level.edges)


def limit_of(said: str, target: q.Target) -> str:
    """The limit and of what it is one: "97 % useful training", "1 min (safe after)"."""
    (unit, header, *_), text = MEASURES[target.measure], re.split("[<>]=", said)[1].strip()
    if unit == "s":
        return f"{text} ({header})"
    text = show(target.limit, unit)
    return text if header.startswith(unit) else f"{text.removesuffix(' count')} {header}"


# --- sentences ------------------------------------------------------------------------------------


def decision(found: Found) -> list[Say]:
    """What is enough, and what it takes to be sure; of a plan that does not work, why."""
    says = (
        [ranks.stopped(found.stop, "This plan does not work as it stands.")] if found.stop else []
    )
    if not (found.best or found.decides.possible):
        return says or one.lacking(found.today, 0) or [Say(f"{missed(found)[0]}.")]
    return [*says, Say(enough(found)), *remains(found)]


def enough(found: Found) -> str:
    """The values that are enough, at the stated values and to be sure of it."""
    quantity, stated = found.search.quantity, found.stated
    if found.best and not stated.possible:
        at, reached = show(found.best.value, quantity.unit, 2), found.best.study
        range_ = reached.range(found.search.target.measure, 0)
        words = f"No {quantity.name} is enough. The best, at {at}:"
        return f"{words} {found.search.target.say(range_)}."
    where, more = "at the stated values", ""
    if stated.edges and found.today.draws:
        where = f"in {found.met_by(stated) * 100:.0f} % of draws"
    surest = found.levels.get(found.said)
    if surest and not surest.possible:
        more = f"; in {found.said * 100:.0f} % of draws nothing is"
    elif surest and surest.edges:
        more = f"; {_values(quantity, surest)} in {found.said * 100:.0f} %"
    words = _values(quantity, stated)
    return f"{words[0].upper()}{words[1:]} is enough {where}{more}."


def _values(quantity: Quantity, level: Level) -> str:
    """A level in words: "10 GB/s", "up to 4 min", "4 min to 2 h", "no stall"."""
    if not level.edges:
        return f"any {quantity.name}"
    least, most = (edge and quantity.say(edge.value) for edge in (level.least, level.most))
    return f"{least} to {most}" if least and most else least or f"up to {most}"


def remains(found: Found) -> list[Say]:
    """The largest parts of what the target counts, at the best value if that is not enough."""
    if not found.best:
        return []
    study, measure = found.best.study, found.search.target.measure
    quantity = measure if measure in QUANTITIES else "gpu_time"
    lines = study.stated.bill.lines.items()
    parts = {label_of(line): study.stated_of(of[quantity], 0) for line, of in lines}
    largest = sorted((x for x in parts if parts[x] > 0), key=lambda x: -parts[x])[:3]
    unit, whole = QUANTITIES[quantity][0], study.value(quantity, 0)
    said = [f"{words} ({show(parts[words] / whole, 'share', 2)})" for words in largest]
    amount = one.in_words(show(whole, unit, 2))
    return [Say(f"What remains there is {amount}, mainly for {q.and_join(said)}.")]


def missed(found: Found) -> list[str]:
    """Nothing is enough in the share of draws that is asked for, or that cannot be said."""
    target, share = found.search.target, f" in {found.sure * 100:.0f} % of draws"
    if found.decides.possible:
        return []
    if not found.best and not found.stop:
        return [target.missed_by(found.today.of(target.measure)[0], 1.0)]
    return [f"{target.text}: no {found.search.quantity.name} is enough{share * bool(found.levels)}"]


def next_commands(found: Found, typed: str) -> list[Say]:
    """What decides, and the plan that is enough."""
    if not (found.best or found.decides.possible):
        return []
    command = f"ckptcost model {typed}".rstrip()
    says = [Say("Which inputs make it unsure:", "", f"{command} --inputs")]
    edges = found.levels.get(found.said, found.stated).edges or found.decides.edges
    if edges:
        value, study, _ = edges[0]
        figures = found.search.quantity.figures(value)
        words = [f'--set {path}="{_plain(path, x)}"' for path, x in figures.items()]
        if not found.search.keeps:
            words.append(f'--interval "{study.say("interval", 0)}"')
            every = study.scenarios[0].said["policy"].get("second_every")
            words += [f"--set policy.second_every={every.value:g}"] if every else []
        says.append(Say("Try it:", "", " ".join([command, *words])))
    return says


def _plain(path: str, value: float) -> str:
    return q.figure_at(path, value).text.replace(",", "")


# --- tables ---------------------------------------------------------------------------------------


def levels_table(found: Found) -> Table:
    """The value for each share of draws, beside the measure that the target names."""
    quantity, measure = found.search.quantity, found.search.target.measure
    levels = {"stated values": found.stated} if found.best or found.decides.possible else {}
    levels |= {
        f"{share * 100:.0f} % of draws": each for share, each in found.levels.items() if levels
    }
    today = Trial(quantity.now, found.today, found.stop)
    rows = [_row(found, "as it stands", found.now or "not known", Level(True, today))]
    for label, level in levels.items():
        if level.edges:
            rows.append(_row(found, label, _values(quantity, level), level))
        elif not found.best:
            rows.append([label, ("none", "any")[level.possible], *[None] * 5])
    if found.best:
        rows.append(_row(found, "at best", quantity.say(found.best.value), Level(True, found.best)))
    unit, header, *_ = MEASURES[measure]
    columns = [
        Column("level", ""),
        Column("value", quantity.name),
        Column("least", "at least", quantity.unit, "no"),
        Column("most", "at most", quantity.unit, "no"),
        Column("met", "met in", "share"),
        Column("interval", "save every", "s"),
        Column(measure, f"{header} (p5-p95)" if found.today.draws else header, unit, "range"),
    ]
    note = "Each value is tried with the interval that is recommended for it."
    note *= not found.search.keeps
    return q.without_empty(Table("levels", "", columns, rows, note, shown=bool(levels)))


def _row(found: Found, label: str, said: str, level: Level) -> list[Cell]:
    """Values with the share of draws, the interval and the measure that they give; nothing of a
    plan that does not work."""
    ends: list[Cell] = [edge and edge.value for edge in (level.least, level.most)]
    study = level.edges[0].study
    if level.edges[0].stop or not one.known(study.range(found.search.target.measure, 0)):
        return [label, said, *ends, None, None, None]
    met = found.met_by(level) if study.draws else None
    interval = None if found.search.quantity.is_cadence else study.value("interval", 0)
    return [label, said, *ends, met, interval, study.range(found.search.target.measure, 0)]
