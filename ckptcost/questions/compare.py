"""Which of several plans is better, by how much, how sure that is, and what the dearer may cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from ckptcost import advice as ad
from ckptcost.answer import Answer, Caution, Cell, Column, Quantity, Range, Say, Table
from ckptcost.cautions import cautions_of
from ckptcost.plan import physics as ph
from ckptcost.plan.bill import label_of
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.questions.sure import has_own, saves
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES
from ckptcost.scenario.units import per, show
from ckptcost.study import MEASURES, Study, shares_of_variance

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
    asked = {"stated": says_how_often(plans)} | q.options_of(flags)
    return answer(cases_for(plans, flags), **asked)


# --- the plans ------------------------------------------------------------------------------------


def cases_for(plans: Sequence[str], flags: q.Flags) -> dict[str, Scenario]:
    """A, B and so on, each with the job's own interval or with one that is left open."""
    job = next((each for each in plans if "=" not in each), q.DEFAULT)
    jobs = [] if plans and "=" not in plans[0] else [job]
    shared = flags.copy()
    texts = [*jobs, *plans, *(f"tier.id={tier}" for tier in shared.pop("tier", ()))]
    remedy = "give e.g. --tier flash-shared, mode=async or another job file"
    q.demand(len(texts) > 1, "there is nothing to compare with", "compare", remedy)
    q.demand(len(texts) <= len(LETTERS), "these are too many plans", "compare", "give fewer")
    found = [plan_of(text, job, shared) for text in texts]
    names = [*map(called, texts)]
    if any("=" in text for text in texts):
        names[0] = as_it_is(found[0], found[1])
    lettered = (f"{letter}: {name}" for letter, name in zip(LETTERS, names, strict=False))
    return dict(zip(lettered, found, strict=True))


def called(text: str) -> str:
    return text.removeprefix("tier.id=") if "=" in text else Path(text).stem


def plan_of(text: str, job: str, flags: q.Flags) -> Scenario:
    """Of a job, of changes to the first job, or of the first case of a saved answer."""
    if text.endswith(".json"):
        from ckptcost.document import read_answer

        return next(iter(read_answer(text).scenarios().values()))
    layers = q.layers_for(job if "=" in text else text, flags)
    if "=" in text:
        settings = [f"{key}={value}" for key, value in changes_in(text)]
        layers = [*layers, sc.layer_of_flags(settings)]
    # the job itself, whatever tiers and counts its file compares
    alone = [replace(each, compare={"tier": each.compare.get("tier", [])[:1]}) for each in layers]
    return next(iter(sc.cases_of(alone, (), q.counts(flags)[:1]).values()))


def changes_in(text: str) -> list[tuple[str, str]]:
    """Paths and values; a key without a section is looked up: "mode=async" is policy.mode."""
    parts = (each.partition("=") for each in text.split(","))
    return [(q.path_of(key.strip()), value) for key, _, value in parts]


def as_it_is(scenario: Scenario, other: Scenario) -> str:
    """What the first plan is called beside a change of it: by what the change is about."""
    modes = [str(each.said["policy"].get("mode", "sync")) for each in (scenario, other)]
    tiers = [each.said["tier"].get("id") for each in (scenario, other)]
    if modes[0] != modes[1]:
        return modes[0]
    return "as it is" if tiers[0] == tiers[1] else sc.tier_of(scenario)


def says_how_often(plans: Sequence[str]) -> bool:
    """Whether a change is about how often to save: then each plan keeps its own interval."""
    changed = [path for text in plans if "=" in text for path, _ in changes_in(text)]
    return any(path.removeprefix("policy.") in (*CADENCES, "second_every") for path in changed)


# --- the answer -----------------------------------------------------------------------------------


class Pair(NamedTuple):
    """The better plan and the next one, A and B in most cases."""

    study: Study
    best: int
    other: int
    ranked: bool
    """whether both work as they stand, and their limits are known"""

    @property
    def same(self) -> bool:
        """Whether their runs take the same time in all draws."""
        gap = self.study.difference("wall", self.best, self.other)
        return gap.low == gap.high == 0.0

    @property
    def measures(self) -> list[str]:
        """Those that tell which is better: dollars without rent if it is charged in other ways."""
        return ["gpu_time", "energy", ranks.dollars(self.study)]

    @property
    def letters(self) -> tuple[str, str]:
        return LETTERS[self.best], LETTERS[self.other]


def answer(cases: dict[str, Scenario], **asked: Any) -> Answer:
    """The same of cases, and of the options that a document holds."""
    stated = asked["stated"]
    plans = {name: each if stated else recommended(each) for name, each in cases.items()}
    study = Study(plans, asked.get("draws"))
    order, stops = ranks.ranking(study, "wall", len(plans))
    pair = pair_of(study, order, stops)
    how = "each as often as it says" if stated else "each at its recommended interval"
    marks = {name[0]: (row, study.value("interval", row)) for row, name in enumerate(plans)}
    says = [*one.doubted(study, range(len(cases))), *verdicts(pair, stops)]
    return Answer(
        "compare",
        f"Which is better? {' or '.join(study.names)}",
        f"{study.scenarios[0].name or 'this job'}: {one.job(study, 0)}; {how}",
        [*says, *ranks.unknown_limits(study, [*filter(study.limit_unknown, order)])],
        [
            measures_table(pair),
            differences_table(study),
            study.table("Every measure", {"goodput": "range", "cost": "range"}, shown=False),
        ],
        notes(pair, {} if stated else cases),
        cautions_of(study),
        [ranks.curves(study, study.names, marks)],
        q.missed(study, q.Flags(**asked), [order[0]]),  # type: ignore[typeddict-item]
        cases,
        asked,
        study.draws,
    )


def pair_of(study: Study, order: Sequence[int], stops: Mapping[int, Caution]) -> Pair:
    """The first two; of those that end at the same time the better one is not worse in anything."""
    ranked = not any(row in stops or study.limit_unknown(row) for row in order[:2])
    pair = Pair(study, order[0], order[1], ranked)
    swapped = pair._replace(best=pair.other, other=pair.best)
    return swapped if pair.same and not by_measure(swapped)[1] else pair


def recommended(scenario: Scenario) -> Scenario:
    """With the recommended interval, if its own could be kept: continuous saving may not."""
    if has_own(scenario):
        Study({scenario.name: scenario}, 0)
    objective = str(scenario.said["policy"].get("optimal") or "time")
    return ad.with_advice(scenario, ad.advise(scenario, objective))


# --- verdicts -------------------------------------------------------------------------------------


def verdicts(pair: Pair, stops: Mapping[int, Caution]) -> list[Say]:
    """Which plan is better and how sure that is; those that do not work, and why."""
    words = verdict(pair) if pair.ranked else "Which is better cannot be said."
    no = [ranks.stopped(stop, f"{LETTERS[row]} does not work as it stands.")
          for row, stop in stops.items()]  # fmt: skip
    return [*([Say(words)] if pair.ranked or not stops else []), *no]


BETTER = 0.95
"""share of draws from which on the 5th percentile of what a plan saves is a gain"""


def verdict(pair: Pair) -> str:
    """In words that go as far as the draws do, with what time alone does not say."""
    study, (best, other) = pair.study, pair.letters
    sure = study.better("wall", pair.best, pair.other)
    mine, its = by_measure(pair)
    if pair.same and not (mine[1:] or its):
        return no_difference(pair)
    does = q.and_join(mine)
    if its:
        return f"{best} {does}, but {other} {q.and_join(its)}."
    certain = pair.same or sure.share >= BETTER or not sure.draws
    if certain or sure.share >= 0.6:
        return f"{best} is {'' if certain else 'probably '}better: it {does}."
    later = study.better("wall", pair.other, pair.best)
    return f"It is open which is better: {best} {mine[0]}, {other} {later.say()}."


def by_measure(pair: Pair) -> tuple[list[str], list[str]]:
    """What the one plan does better: its time, and what is less sure; and what the other does."""
    sure = pair.study.better("wall", pair.best, pair.other)
    than = f" than {pair.letters[1]}" if len(pair.study.names) > 2 else ""
    mine, its = [f"{ranks.LESS['wall']}{than} {sure.say()}"], list[str]()
    most = sure.share - 0.1
    if pair.same:
        mine, most = ["ends at the same time"], 2.0
    for measure in pair.measures[:0:-1]:
        own = pair.study.better(measure, pair.best, pair.other)
        rest = pair.study.better(measure, pair.other, pair.best)
        if rest.share > own.share:
            its.append(f"{ranks.LESS[measure]} {rest.say()}")
        elif 0 < own.share < most:
            mine.append(f"{ranks.LESS[measure]} {own.say()}")
    return mine, its


def no_difference(pair: Pair) -> str:
    both = q.and_join(sorted(pair.letters)) if len(pair.study.names) > 2 else "them"
    rent = " but what storage charges" if "cost_apart" in pair.measures else ""
    return f"There is no difference between {both}{rent}."


# --- tables ---------------------------------------------------------------------------------------

SHOWN = ("write", "interval", "stall", "safe", "goodput")


def measures_table(pair: Pair) -> Table:
    """Measures side by side, and of two plans what the better one saves."""
    study, two = pair.study, len(pair.study.names) == 2 and pair.ranked and not pair.same
    heads = [name if len(name) <= 16 else name[0] for name in study.names]
    columns = [Column("measure", "", "text")]
    columns += [Column(head[0], head, "") for head in heads]
    saves = f"{pair.letters[0]} saves" + " (p5-p95)" * bool(study.draws)
    columns += [Column("saves", saves, "text")] if two else []
    rows = [[*row, *([saved(pair, measure)] if two else [])]
            for measure in (*SHOWN, *pair.measures) if (row := row_of(study, measure))]  # fmt: skip
    return Table("measures", "", columns, rows)


def differences_table(study: Study) -> Table:
    """Inputs that differ, for files."""
    columns = [Column("path", "differs in"), *(Column(x[0], x) for x in study.names)]
    rows: list[list[Any]] = [[*row] for row in ranks.differing(study.scenarios)]
    return Table("inputs_apart", "What differs", columns, rows, shown=False)


def row_of(study: Study, measure: str) -> list[Cell]:
    """A measure of all plans; none if nothing is known, or all share a wait or a rate."""
    if measure == "write":
        header, unit, w = "write rate", "B/s", study.drawn_world
        values = one.by_case(study, ph.rate(w, w.tier, "write"))
    else:
        (unit, header, *_), values = MEASURES[measure], study.ranges(measure)
    alike = len({value.value for value in values}) == 1 and measure in ("stall", "write")
    if alike or not any(map(one.known, values)):
        return []
    # rows below the first ones name the unit: their cells hold plain numbers
    size, shown = (1.0, unit) if measure in SHOWN else (per(unit), "")
    cells = (Quantity(Range(*(x / size for x in each)), shown) for each in values)
    return [f"{header} added" if header == unit else header, *cells]


def saved(pair: Pair, measure: str) -> str:
    """What the better plan saves over the other, with its range."""
    more, less = pair.other, pair.best
    if measure == "goodput":
        more, less = less, more
    if measure not in ("goodput", *pair.measures):
        return ""
    gain = pair.study.difference(measure, more, less)
    if not one.known(gain):
        return ""
    size, unit = (0.01, " points") if measure == "goodput" else (per(MEASURES[measure].unit), "")
    value, bracket, ends = Range(*(x / size for x in gain)).say("", 2).partition(" (")
    return f"{value}{unit}{bracket}{ends}"


# --- why, and what B may cost ---------------------------------------------------------------------


def notes(pair: Pair, cases: dict[str, Scenario]) -> list[Say]:
    """Why the better plan is better, what it may cost, what it saves at the job's own interval, and
    what is not known."""
    if not pair.ranked:
        return []
    both = [pair.study.scenarios[row] for row in (pair.best, pair.other)]
    tiers = {(each.said["tier"].get("id"), ranks.price_of(each)) for each in both}
    found = [*mainly(pair), *(pays(pair) if len(tiers) > 1 else [])]
    base = next(iter(cases.values()), None)
    found += at_yours(pair, cases, base) if base and has_own(base) else []
    return [*found, *one.lacking(pair.study, pair.best)]


def mainly(pair: Pair) -> list[Say]:
    """The line that explains most of the difference, and the input behind it."""
    study, bill = pair.study, pair.study.stated.bill.lines
    gaps = {
        line: study.stated_of(found["gpu_time"], pair.other)
        - study.stated_of(found["gpu_time"], pair.best)
        for line, found in bill.items()
    }
    whole = study.value("gpu_time", pair.other) - study.value("gpu_time", pair.best)
    line = max(gaps, key=lambda each: np.nan_to_num(gaps[each] * np.sign(whole)))
    if abs(whole) <= ad.TIED * study.value("gpu_time", pair.best):
        return []
    part, all_ = (show(abs(x), "GPU-h", 2).removesuffix(" GPU-h") for x in (gaps[line], whole))
    words = f"The largest part, {part} of {all_} GPU-hours, is {label_of(line)}."
    if part == all_:
        words = f"The difference, {all_} GPU-hours, is nearly all {label_of(line)}."
    elif abs(gaps[line]) > abs(whole):
        words = f"The largest part is {label_of(line)}, {part} GPU-hours"
        words += f"; other lines rise, so {all_} remain."
    found = behind(pair)
    if not found:
        return [Say(words)]
    depends = f"The difference depends most on {found.words}: {found.said}. This {found.basis}."
    return [Say(f"{words} {depends} Yours:", "", found.command)]


def behind(pair: Pair) -> one.Decides | None:
    """The input of either plan that moves their difference most."""
    study, values = pair.study, pair.study.of("gpu_time", drawn=True)[:, 1:]
    gap = values[pair.other] - values[pair.best]
    _, row, path = max(
        (share, row, path)
        for row in (pair.best, pair.other)
        for path, share in [("", 0.1), *shares_of_variance(study.scenarios[row], gap).items()]
    )
    return one.decides(study, row, path) if path else None


def pays(pair: Pair) -> list[Say]:
    """What the better plan may cost more, and what both are taken to charge."""
    study, best, other = pair.study, pair.best, pair.other
    prices = {row: ranks.price_of(study.scenarios[row]) for row in sorted((best, other))}
    says, words, gain = (
        [],
        list[str](),
        study.value("cost_apart", other) - study.value("cost_apart", best),
    )
    if gain > 0 and prices[best].assumed:
        a, b = pair.letters
        more = show(gain / (study.value("wall", best) / MONTH), "USD")
        says.append(Say(f"{a} pays as long as it costs less than {more} a month more than {b}."))
    if apart := ranks.unlike(study, LETTERS):
        words.append(apart[0].words)
    elif prices[best].words == prices[other].words:
        words.append(f"Both are taken to charge {prices[best].words}.")
    else:
        words += [f"{LETTERS[row]} charges {price.words}." for row, price in prices.items()]
    lacking = [LETTERS[row] for row, price in prices.items() if price.assumed]
    words += [f"The real price of {q.and_join(lacking)} is not known."] if lacking else []
    return [*says, Say(" ".join(words))]


def at_yours(pair: Pair, cases: dict[str, Scenario], base: Scenario) -> list[Say]:
    """What the better plan saves if both keep the interval of the first."""
    own = Study({"A": base}, 0).value("interval", 0)
    names = [pair.study.names[row] for row in (pair.best, pair.other)]
    both = Study({name: ad.with_interval(cases[name], own) for name in names}, 0)
    gains = {m: both.difference(m, 1, 0) for m in ("gpu_time", pair.measures[-1])}
    if not gains["gpu_time"].value:
        return []
    return [Say(f"At your {show(own, 's', 2)} instead, {pair.letters[0]} {saves(gains)}.")]
