"""Which of several plans is better, by how much, how sure that is, and what the dearer may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from ckptcost import advice as ad
from ckptcost.answer import Answer, Caution, Column, Line, Plot, Quantity, Range, Say, Table
from ckptcost.cautions import cautions_of
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.questions import sure as amounts
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS
from ckptcost.scenario.units import per, show, show_range
from ckptcost.study import MEASURES, Study, label_of, ranges_of, shares_of_variance

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MONTH = 730 * 3600.0


def compare(
    *plans: Annotated[
        str,
        q.Flag('job files, presets, changes such as "mode=async", saved answers', "A", place=True),
    ],
    **flags: Unpack[q.Flags],
) -> Answer:
    """Which is better, by how much, how sure is that, and what may the dearer one cost.

    ckptcost compare job.toml --tier flash-shared
    ckptcost compare job.toml mode=async
    ckptcost compare job.toml "tier.write=40GB/s,policy.in_flight=2"
    ckptcost compare job-a.toml job-b.toml
    ckptcost compare old.json new.json
    """
    saved = [each.endswith(".json") for each in plans]
    if len(plans) > 1 and all(saved):
        from ckptcost.questions.changes import changes

        return changes(plans)
    cases = cases_for(plans, flags)
    typed = q.typed(" ".join(plans), flags)
    return answer(cases, stated=says_how_often(plans), typed=typed, **q.options_of(flags))


# --- the plans ------------------------------------------------------------------------------------


def cases_for(plans: Sequence[str], flags: q.Flags) -> dict[str, Scenario]:
    """A, B and so on, each with the job's own interval or with one that is left open."""
    job = next((each for each in plans if "=" not in each), q.DEFAULT)
    texts = [*plans] if plans and "=" not in plans[0] else [job, *plans]
    shared = flags.copy()
    tiers = shared.pop("tier", ())
    found = [(called(text), plan_of(text, job, shared)) for text in texts]
    found += [(tier, on_tier(job, tier, shared)) for tier in tiers]
    remedy = "give e.g. --tier flash-shared, mode=async or another job file"
    q.demand(len(found) > 1, "there is nothing to compare with", "compare", remedy)
    q.demand(len(found) <= len(LETTERS), "these are too many plans", "compare", "give fewer")
    if tiers or any("=" in text for text in texts):
        found[0] = (as_it_is(found[0][1], found[1][1]), found[0][1])
    named = zip(LETTERS, found, strict=False)
    return {f"{letter}: {name}": each for letter, (name, each) in named}


def on_tier(job: str, tier: str, flags: q.Flags) -> Scenario:
    return sc.resolve([*q.layers_for(job, flags), sc.layer_of({"tier": {"id": tier}}, "--tier")])


def plan_of(text: str, job: str, flags: q.Flags) -> Scenario:
    """Of a job, of changes to the first job, or of the first case of a saved answer."""
    if text.endswith(".json"):
        from ckptcost.document import read_answer

        return next(iter(read_answer(text).scenarios_by_case().values()))
    if "=" not in text:
        return first(q.layers_for(text, flags), flags)
    settings = [setting_of(each) for each in text.split(",")]
    changed = [*q.layers_for(job, flags), sc.layer_of_flags(settings)]
    return first(changed, flags)


def setting_of(change: str) -> str:
    """A key without a section is looked up: "mode=async" is policy.mode=async."""
    key, _, value = change.partition("=")
    return f"{q.path_of(key.strip())}={value}"


def first(layers: list[sc.Layer], flags: q.Flags) -> Scenario:
    """The job itself, whatever tiers and counts its file compares."""
    alone = [replace(each, compare={"tier": each.compare.get("tier", [])[:1]}) for each in layers]
    return next(iter(sc.cases_of(alone, (), q.counts(flags)[:1]).values()))


def called(text: str) -> str:
    return text if "=" in text or "." not in text else Path(text).stem


def as_it_is(scenario: Scenario, other: Scenario) -> str:
    """What the first plan is called beside a change of it: by what the change is about."""
    if scenario.said["policy"].get("mode", "sync") != other.said["policy"].get("mode", "sync"):
        return str(scenario.said["policy"].get("mode", "sync"))
    tier = scenario.said["tier"]
    if tier.get("id") != other.said["tier"].get("id"):
        write = tier.get("write")
        rate = show(write.value, "B/s", 2) if isinstance(write, Figure) else "its tier"
        return str(tier.get("id") or rate)
    return "as it is"


def says_how_often(plans: Sequence[str]) -> bool:
    """Whether a change is about how often to save: then each plan keeps its own interval."""
    changes = [each.partition("=")[0] for text in plans if "=" in text for each in text.split(",")]
    return any(q.path_of(key.strip()).removeprefix("policy.") in CADENCES for key in changes)


# --- the answer -----------------------------------------------------------------------------------


class Pair(NamedTuple):
    """The better plan and the next one, A and B in most cases."""

    study: Study
    best: int
    other: int
    stops: dict[int, Caution]

    @property
    def letters(self) -> tuple[str, str]:
        return LETTERS[self.best], LETTERS[self.other]

    @property
    def shows_gain(self) -> bool:
        """Whether what the better plan saves is worth a column."""
        return len(self.study.names) == 2 and self.ranked and not self.same

    @property
    def same(self) -> bool:
        """Whether the run takes the same time in all draws."""
        gap = self.study.difference("wall", self.best, self.other)
        return gap.low == gap.high == 0.0

    @property
    def ranked(self) -> bool:
        """Whether both work as they stand, and their limits are known."""
        both = self.best, self.other
        return not any(row in self.stops or self.study.limit_unknown(row) for row in both)


def answer(
    cases: dict[str, Scenario],
    *,
    stated: bool = False,
    typed: str = "",
    require: Sequence[str] = (),
    sure: float = q.SURE,
    draws: int | None = None,
) -> Answer:
    """The same of cases, and of the options that a document holds."""
    plans = {name: each if stated else recommended(each) for name, each in cases.items()}
    study = Study(plans, draws)
    order, stops = ranks.ranking(study, "wall", len(plans))
    pair = Pair(study, order[0], order[1], stops)
    said: list[Say] = [*ranks.doubts(study, range(len(cases))), *verdicts(pair, order)]
    how = "each as often as it says" if stated else "each at its recommended interval"
    options = {"stated": stated, "typed": typed, "require": [*require], "sure": sure}
    options |= {"draws": draws}
    return Answer(
        "compare",
        f"Which is better? {' or '.join(study.names)}",
        f"{study.scenarios[0].name or 'this job'}: {one.job(study, 0)}; {how}",
        said,
        [measures_table(pair), bill_lines(study), inputs_apart(study), cases_table(study)],
        [*mainly(pair), *pays(pair), *at_yours(cases, pair, stated)],
        cautions_of(study),
        [curves(study)],
        q.missed(study, q.Flags(require=require, sure=sure), [order[0]]),
        cases,
        {key: value for key, value in options.items() if value not in ([], "", None, False)},
        study.draws,
    )


def recommended(scenario: Scenario) -> Scenario:
    objective = str(scenario.said["policy"].get("optimal") or "time")
    return ad.with_advice(scenario, ad.advise(scenario, objective))


# --- verdicts -------------------------------------------------------------------------------------


def verdicts(pair: Pair, order: list[int]) -> list[Say]:
    """Which plan is better and how sure that is; those that cannot be ranked, and why."""
    study, says = pair.study, list[Say]()
    if pair.ranked:
        says.append(Say(" ".join([time_verdict(pair), *other_verdicts(pair)])))
    elif not pair.stops:
        says.append(Say("Which is better cannot be said."))
    for row in order:
        if row in pair.stops:
            says.append(
                ranks.stopped(pair.stops[row], f"{LETTERS[row]} does not work as it stands.")
            )
    return says + ranks.unknown_limits(study, [row for row in order if study.limit_unknown(row)])


def time_verdict(pair: Pair) -> str:
    """In words that go as far as the draws do."""
    sure = pair.study.better("wall", pair.best, pair.other)
    best, other = pair.letters
    if pair.same:
        return "There is no difference between them."
    than = f" than {other}" if len(pair.study.names) > 2 else ""
    if sure.share >= 0.9 or not sure.draws:
        return f"{best} is better{than} {sure.say()}."
    if sure.share >= 0.6:
        return f"{best} is probably better{than}: {sure.say()}."
    return f"It is open which is better: {best} ends sooner{than} {sure.say()}."


SAYS = {"cost": "costs less", "energy": "takes less energy"}


def other_verdicts(pair: Pair) -> list[str]:
    """Measures that say something else than time does; unknown ones say nothing."""
    if pair.same:
        return []
    return [found for found in (other_verdict(pair, measure) for measure in SAYS) if found]


def other_verdict(pair: Pair, measure: str) -> str:
    study, less = pair.study, SAYS[measure]
    mine, its = (study.value(measure, row) for row in (pair.best, pair.other))
    if not one.known(study.range(measure, pair.best)) or its != its:
        return ""
    if mine > its:
        sure = study.better(measure, pair.other, pair.best)
        return f"But {LETTERS[pair.other]} {less} {sure.say()}."
    sure, in_time = (study.better(m, pair.best, pair.other) for m in (measure, "wall"))
    return f"It {less} {sure.say()}." if abs(sure.share - in_time.share) > 0.1 else ""


# --- tables ---------------------------------------------------------------------------------------

NAMES = {
    "write": "write rate",
    "interval": "save every",
    "stall": "training waits",
    "safe": "safe after",
    "goodput": "useful training",
    "gpu_time": "GPU-h lost",
    "energy": "kWh added",
    "cost": "USD added",
}
ADDED = ("gpu_time", "energy", "cost")
"""measures whose difference says what a plan saves; their rows name the unit"""


def measures_table(pair: Pair) -> Table:
    """Measures side by side, and of two plans what the better one saves."""
    study = pair.study
    columns = [Column("measure", "", "text"), *(Column(x[0], headed(x), "") for x in study.names)]
    rows: list[list[Any]] = []
    for measure, name in NAMES.items():
        values = rates(study) if measure == "write" else study.ranges(measure)
        if not hides(measure, values):
            rows.append([name, *(cell_of(value, measure) for value in values)])
            if pair.shows_gain:
                rows[-1].append(saved(pair, measure))
    if pair.shows_gain:
        columns.append(Column("saves", f"{pair.letters[0]} saves (p5-p95)", "text"))
    return Table("measures", "", columns, rows)


def headed(name: str) -> str:
    """The heading of a plan; one with a long name is called by its letter, as in the title."""
    return name if len(name) <= 16 else name[0]


def cell_of(value: Range, measure: str) -> Quantity:
    """In SI, or in its unit if the row's name says which."""
    unit = "B/s" if measure == "write" else MEASURES[measure].unit
    size = per(unit) if measure in ADDED else 1.0
    return Quantity(Range(*(x / size for x in value)), "" if measure in ADDED else unit)


def rates(study: Study) -> list[Range]:
    """Write rates of the first tiers."""
    w, shape = study.drawn_world, (len(study.names), 1 + study.draws)
    with np.errstate(all="ignore"):
        return ranges_of(np.broadcast_to(ph.rate(w, w.tier, "write"), shape))


def hides(measure: str, values: list[Range]) -> bool:
    """Rows that say nothing: unknown throughout, or a wait or rate that all plans share."""
    alike = len({value.value for value in values}) == 1
    return not any(map(one.known, values)) or (measure in ("stall", "write") and alike)


def saved(pair: Pair, measure: str) -> str:
    """What the better plan saves over the other, with its range."""
    if measure not in ("goodput", *ADDED):
        return ""
    gain = pair.study.difference(measure, pair.other, pair.best)
    if not one.known(gain):
        return ""
    if measure == "goodput":
        value, low, high = (-100.0 * x for x in (gain.value, gain.high, gain.low))
        return f"{show(value, '', 2)} points ({show_range(low, high, '')})"
    unit = MEASURES[measure].unit
    ends = show_range(gain.low / per(unit), gain.high / per(unit), "")
    return f"{show(gain.value / per(unit), '', 2)} ({ends})"


def bill_lines(study: Study) -> Table:
    """Line by line of the bill, in GPU time and in dollars."""
    columns = [Column("line", "line of the bill")]
    for quantity in ("gpu_time", "cost"):
        unit = MEASURES[quantity].unit
        columns += [Column(f"{x[0]}_{quantity}", f"{x[0]}, {unit}", unit) for x in study.names]
    rows: list[list[Any]] = []
    for line in study.stated.bill.lines:
        cells = [line_of(study, line, m, row) for m in ("gpu_time", "cost")
                 for row in range(len(study.names))]  # fmt: skip
        rows.append([label_of(line), *cells])
    return Table("lines", "Where it goes", columns, rows, shown=False)


def line_of(study: Study, line: str, quantity: str, row: int) -> float:
    return study.stated_of(study.stated.bill.lines[line][quantity], row)


def inputs_apart(study: Study) -> Table:
    """The figures and words that differ."""
    columns = [Column("path", "differs in"), *(Column(x[0], x) for x in study.names)]
    rows: list[list[Any]] = []
    for section, keys in KEYS.items():
        for key in keys:
            texts = [said_of(s.said[section].get(key)) for s in study.scenarios]
            if len(set(texts)) > 1:
                rows.append([f"{section}.{key}", *texts])
    return Table("inputs_apart", "What differs", columns, rows, shown=False)


def said_of(value: Any) -> str:
    if isinstance(value, Figure):
        return value.text or f"{value.value:g}"
    return "-" if value is None else str(value)


def cases_table(study: Study) -> Table:
    return study.table("Every measure", {"goodput": "range", "cost": "range"}, shown=False)


# --- why, and what B may cost ---------------------------------------------------------------------

BASIS = {
    "assumed": "is our estimate",
    "derived": "is our estimate",
    "vendor": "is the vendor's figure",
    "published": "is published",
    "measured": "was measured elsewhere",
    "user": "is yours",
}


def mainly(pair: Pair) -> list[Say]:
    """The line that explains most of the difference, and the input behind it."""
    study, measure = pair.study, "gpu_time"
    whole = study.value(measure, pair.other) - study.value(measure, pair.best)
    if not pair.ranked or not abs(whole) > 1e-9 * abs(study.value(measure, pair.other)):
        return []
    gaps = {
        line: line_of(study, line, measure, pair.other) - line_of(study, line, measure, pair.best)
        for line in study.stated.bill.lines
    }
    line = max(gaps, key=lambda each: np.nan_to_num(gaps[each] * np.sign(whole)))
    most, all_ = amounts.amount(gaps[line], measure), amounts.amount(whole, measure)
    words = f"Mainly ({most.split(' ')[0]} of {all_}): {label_of(line)}."
    if abs(gaps[line]) > abs(whole):
        words = f"Mainly {label_of(line)}: {most}; other lines take some of them back."
    return [Say(" ".join([words, *behind(pair, line)]))]


def behind(pair: Pair, line: str) -> list[str]:
    """The input that moves a line's difference most, with its range and its basis."""
    study, best, other = pair.study, pair.best, pair.other
    shape = len(study.names), 1 + study.draws
    drawn = np.broadcast_to(study.drawn.bill.lines[line]["gpu_time"], shape)
    for row in (other, best):
        figures = study.scenarios[row].figures()
        shares = shares_of_variance(study.scenarios[row], (drawn[other] - drawn[best])[1:])
        path, share = next(iter(shares.items()), ("", 0.0))
        if share > 0.1:
            found = one.decides(study, row, path)
            basis = BASIS.get(figures[path].basis, "is our estimate")
            measure = ": measure it" if "estimate" in basis else ""
            return [f"Behind it is {found.words}: {found.said}. That {basis}{measure}."]
    return []


def pays(pair: Pair) -> list[Say]:
    """What the better plan may cost more, and what both are taken to charge."""
    study, best, other = pair.study, pair.best, pair.other
    tiers = [study.scenarios[row].said["tier"] for row in (best, other)]
    if not pair.ranked or tiers[0].get("id") == tiers[1].get("id"):
        return []
    gain = study.difference("cost", other, best)
    says = []
    if gain.value > 0 and ranks.price_of(study.scenarios[best]).assumed:
        months = study.value("wall", best) / MONTH
        a, b = pair.letters
        more = show(gain.value / months, "USD")
        says.append(Say(f"{a} pays as long as it costs less than {more} a month more than {b}."))
    return [*says, Say(charges(pair))]


def charges(pair: Pair) -> str:
    """The pricing bases of both plans, and which of the prices is not their own."""
    rows = sorted((pair.best, pair.other))
    prices = [ranks.price_of(pair.study.scenarios[row]) for row in rows]
    names = [LETTERS[row] for row in rows]
    says = [f"{n} charges {price.words}" for n, price in zip(names, prices, strict=True)]
    if prices[0].words == prices[1].words:
        says = [f"Both are taken to charge {prices[0].words}"]
    lacking = [n for n, price in zip(names, prices, strict=True) if price.assumed]
    if len(lacking) == 1:
        says[-1] += f"; {lacking[0]}'s own price is not known"
    elif lacking:
        says[-1] += "; the own price of neither is known"
    if prices[0].way != prices[1].way:
        says.append("These are not alike: compare their GPU time first")
    return f"{'. '.join(says)}."


def at_yours(cases: dict[str, Scenario], pair: Pair, stated: bool) -> list[Say]:
    """What the better plan saves if both keep the interval of the first."""
    base = next(iter(cases.values()))
    if stated or not amounts.has_own(base) or not pair.ranked or pair.same:
        return []
    own = Study({"A": base}, 0).value("interval", 0)
    names = [pair.study.names[row] for row in (pair.best, pair.other)]
    both = Study({name: ad.with_interval(cases[name], own) for name in names}, 0)
    gains = {m: both.difference(m, 1, 0).value for m in ("gpu_time", "cost")}
    said = [amounts.amount(x, m) for m, x in gains.items() if x == x]
    saves = q.and_join(said)
    return [Say(f"At your {show(own, 's', 2)} instead, {pair.letters[0]} saves {saves}.")]


# --- the plot -------------------------------------------------------------------------------------


def curves(study: Study) -> Plot:
    """Useful training of each plan over the interval, with the intervals that are compared."""
    lines, marks = [], []
    every = [study.value("interval", row) for row in range(len(study.names))]
    x = np.geomspace(min(every) / 8.0, max(every) * 8.0, 61)
    for row, name in enumerate(study.names):
        reach = ad.reach_of(study.scenarios[row])
        own = x[(x >= reach.least) & (x <= reach.most)]
        if len(own) > 1:
            lines.append(Line(name, own.tolist(), study.at(row, own).goodput[:, 0].tolist()))
            marks.append((name[0], every[row], study.value("goodput", row)))
    axes = "training time between saves [s]", "useful training [share]"
    return Plot("Useful training of each plan", *axes, lines, tuple(marks), True)
