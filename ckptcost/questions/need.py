"""What a figure must be for a target: at the stated values, and to be sure of it."""

from __future__ import annotations

from typing import Annotated, Any, Unpack

from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.plan.bill import QUANTITIES, label_of
from ckptcost.questions import common as q
from ckptcost.questions.enough import Level, Quantity, Search, quantity_of
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show
from ckptcost.study import MEASURES, Study

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
    keep_interval: Annotated[
        bool, q.Flag("keep the job's interval; else each trial takes its best one")
    ] = False,
    **flags: Unpack[q.Flags],
) -> Answer:
    """What a figure must be for a target, how sure that is, and what stands in the way.

    ckptcost need write job.toml --for "goodput>=0.97"
    ckptcost need mtbf micron-100k --for "goodput>=0.95" --sure 0.95
    ckptcost need interval job.toml --for "overhead<=1 %"
    """
    q.demand(not flags.get("require"), "is for other verbs", "--require", "need takes --for")
    keeps = keep_interval or bool(flags.get("interval") or flags.get("saves"))
    asked: dict[str, Any] = {"quantity": quantity, "for": for_, "keep_interval": keeps}
    asked |= {"typed": q.typed(job, flags)} | q.options_of(flags)
    return answer(q.one_case(job, flags, "need"), **asked)


def answer(cases: dict[str, Scenario], **asked: Any) -> Answer:
    """The same of a case, and of the options that a document holds."""
    target, draws = q.target_of(asked["for"], "--for"), asked.get("draws")
    base, today = next(iter(cases.values())), Study(cases, draws)
    quantity = quantity_of(asked["quantity"], base, today)
    search = Search(base, quantity, target, asked["keep_interval"], draws)
    sure = asked.get("sure", q.SURE)
    found = Found(search, today, sure, asked.get("sure", LEVELS[-1]))
    limit = _named(target.measure, show(target.limit, MEASURES[target.measure].unit))
    return Answer(
        "need",
        f"What {quantity.name} gives {'at least' if target.at_least else 'at most'} {limit}?",
        q.job_line(today),
        [Say(decision(found)), *remains(found), Say(as_it_stands(found))],
        [levels_table(found)],
        next_commands(found, asked.get("typed", "")),
        missed=missed(found),
        cases=cases,
        options=asked,
        draws=today.draws,
    )


class Found:
    """What is enough, by the share of draws in which it is."""

    def __init__(self, search: Search, today: Study, sure: float, said: float) -> None:
        self.search, self.today, self.sure = search, today, sure
        now = search.quantity.now
        self.now = "" if now != now else search.quantity.say(now)
        shares = sorted({*LEVELS, sure}) if search.draws != 0 else []
        self.stated = search.level(None)
        self.levels = {share: search.level(share) for share in shares}
        self.decides = self.levels.get(sure, self.stated)
        self.surest = self.levels.get(said, self.stated)
        self.best = None if self.decides.possible else search.nearest()
        """if nothing is enough"""

    @property
    def header(self) -> str:
        """Of the measure's column."""
        header = MEASURES[self.search.target.measure].header
        return f"{header} (p5-p95)" if self.today.draws else header

    def met_by(self, study: Study) -> float:
        return self.search.target.met_by(study, 0).share

    def reached(self, study: Study) -> str:
        """The measure of the target in words."""
        measure = self.search.target.measure
        text = study.say(measure, 0, ranged=True)
        header, unit = MEASURES[measure].header, MEASURES[measure].unit
        return _named(measure, text) if header.startswith(unit) else f"{header} {text}"


def _named(measure: str, text: str) -> str:
    """An amount with what it is: "97 % useful training"; "20,000 USD", which is named already."""
    header, unit = MEASURES[measure].header, MEASURES[measure].unit
    if header.startswith(unit):
        return text.replace(f" {unit}", f" {header}")
    return f"{text.removesuffix(' count')} {header}"


# --- sentences ------------------------------------------------------------------------------------


def decision(found: Found) -> str:
    """What is enough, and what it takes to be sure."""
    quantity, stated, surest = found.search.quantity, found.stated, found.surest
    if found.best and not stated.possible:
        at = show(found.best.value, quantity.unit, 2)
        reached = found.reached(found.best.study)
        return f"No {quantity.name} is enough. The best, at {at}: {reached}."
    where = "at the stated values"
    if stated.edges and found.today.draws:
        where = f"in {min(found.met_by(each.study) for each in stated.edges) * 100:.0f} % of draws"
    words = f"{_values(quantity, stated)} is enough {where}"
    if surest.share and (surest.edges or not surest.possible):
        words += f"; {_values(quantity, surest)} in {surest.share * 100:.0f} %"
    return f"{words[0].upper()}{words[1:]}."


def _values(quantity: Quantity, level: Level) -> str:
    """A level in words: "10 GB/s", "up to 4 min", "4 min to 2 h", "no stall"."""
    if not level.edges:
        return f"{'any' if level.possible else 'no'} {quantity.name}"
    least, most = (edge and quantity.say(edge.value) for edge in (level.least, level.most))
    return f"{least} to {most}" if least and most else least or f"up to {most}"


def remains(found: Found) -> list[Say]:
    """The largest parts of what the target counts, at the best value if that is not enough."""
    if not found.best:
        return []
    study, measure = found.best.study, found.search.target.measure
    o, unit = study.stated, "share"
    parts = {words: getattr(o.spent, key) / o.wall for words, key in LOST.items()}
    if measure in QUANTITIES:
        unit = QUANTITIES[measure][0]
        parts = {label_of(line): of[measure] for line, of in o.bill.lines.items()}
    amounts = {words: study.stated_of(x, 0) for words, x in parts.items()}
    largest = sorted((x for x in amounts if amounts[x] > 0), key=lambda x: -amounts[x])[:3]
    said = [f"{words} {show(amounts[words], unit, 2)}" for words in largest]
    return [Say(f"What remains there: {q.and_join(said)}.")]


LOST = {
    "work done again": "redone",
    "training slowed while saves drain": "slowed",
    "waiting for saves": "stall",
    "noticing failures": "detect",
    "waiting for new processes": "reschedule",
    "starting": "init",
    "loading": "load",
    "warming up": "warmup",
}


def as_it_stands(found: Found) -> str:
    today = found.today
    met, reached = found.search.target.met_by(today, 0).say(), found.reached(today)
    if not found.now:
        return f"As it stands the target is met {met}: {reached}."
    return f"You have {found.now}, which is enough {met}: {reached}."


def missed(found: Found) -> list[str]:
    """Nothing is enough in the share of draws that is asked for."""
    if not found.best:
        return []
    share = f" in {found.sure * 100:.0f} % of draws" if found.levels else ""
    return [f"{found.search.target.text}: no {found.search.quantity.name} is enough{share}"]


def next_commands(found: Found, typed: str) -> list[Say]:
    """What decides, and the plan that is enough."""
    command = f"ckptcost model {typed}".rstrip()
    says = [Say("Which inputs make it unsure:", "", f"{command} --inputs")]
    edges = found.surest.edges or found.decides.edges
    if edges:
        value, study = edges[0]
        figures = found.search.quantity.figures(value)
        words = [f'--set {path}="{_plain(path, x)}"' for path, x in figures.items()]
        if not found.search.keeps:
            words.append(f'--interval "{study.say("interval", 0)}"')
        says.append(Say("Try it:", "", " ".join([command, *words])))
    return says


def _plain(path: str, value: float) -> str:
    return q.figure_at(path, value).text.replace(",", "")


# --- tables ---------------------------------------------------------------------------------------


def levels_table(found: Found) -> Table:
    """The value for each share of draws, beside the measure that the target names."""
    quantity, measure = found.search.quantity, found.search.target.measure
    levels = {"stated values": found.stated}
    levels |= {f"{share * 100:.0f} % of draws": each for share, each in found.levels.items()}
    now, reached = found.now or "not known", _reached(found, found.today)
    rows: list[list[Cell]] = [["as it stands", now, None, None, *reached]]
    for label, level in levels.items():
        if level.edges:
            reached = _reached(found, level.edges[0].study)
            least, most = (edge and edge.value for edge in (level.least, level.most))
            rows.append([label, _values(quantity, level), least, most, *reached])
        elif not found.best:
            rows.append([label, ("none", "any")[level.possible], *[None] * 5])
    if found.best:
        value = found.best.value
        reached = _reached(found, found.best.study)
        rows.append(["at best", quantity.say(value), value, None, *reached])
    columns = [
        Column("level", ""),
        Column("value", quantity.name),
        Column("least", "at least", quantity.unit, "no"),
        Column("most", "at most", quantity.unit, "no"),
        Column("met", "met in", "share"),
        Column("interval", MEASURES["interval"].header, "s"),
        Column(measure, found.header, MEASURES[measure].unit, "range"),
    ]
    keeps = found.search.keeps
    note = "" if keeps else "Each value is tried with the interval that is recommended for it."
    return q.without_empty(Table("levels", "", columns, rows, note))


def _reached(found: Found, study: Study) -> list[Cell]:
    """Share of draws, interval and measure."""
    met = found.met_by(study) if study.draws else None
    interval = None if found.search.quantity.is_cadence else study.value("interval", 0)
    return [met, interval, study.range(found.search.target.measure, 0)]
