"""A grid of plans, one row each: figures as axes, laid as arrays; words as cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ckptcost import advice
from ckptcost.answer import Answer, Column, Line, Plot, Say, Table
from ckptcost.errors import InputError
from ckptcost.plan import grid
from ckptcost.plan.evaluate import Outcome
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS, Array, is_figure
from ckptcost.scenario.units import number, parse, show, split
from ckptcost.study import DRAWS, MEASURES, OF_ONE_SAVE, Study, ranges_of, read, unit_of

MOST = 1_000_000
FEW = 50
"""points of which each has its recommended interval and its ranges; more have the exact best"""
SHOWN_ROWS = 14
NICE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""steps within a decade, for an axis that names only its ends"""
GPUS = "cluster.gpus"
INTERVALS = {f"policy.{each}" for each in CADENCES}
BY_SIZE = ("failures_day", "mtbf", "interval", "saves_day", "written_day", "goodput", "cost")
"""what a person sees of a grid of cluster sizes"""
CHANGING = ("interval", "stall", "goodput", "gpu_time", "energy", "cost")
"""and of other grids, those of them that change"""
SHORT = {
    GPUS: "GPUs",
    "failures_day": "fails/day",
    "mtbf": "MTTF",
    "saves_day": "saves/day",
    "written_day": "bytes/day",
    "goodput": "useful",
    "stall": "waits",
    "gpu_time": "GPU-h",
}
"""headers, if a grid has no room for longer ones"""
LINES, MOST_DRAWN = 6, 5000
"""of a plot, and points of a line: more could not be seen apart"""


# --- axes -----------------------------------------------------------------------------------------


def axis_of(text: str) -> tuple[str, list[str]]:
    """A path and its values as they are typed, of KEY=a,b,c or first:last:step or first:last.

    >>> axis_of("tier.write=2:6:2"), axis_of("mode=sync,async")
    (('tier.write', ['2 GB/s', '4 GB/s', '6 GB/s']), ('policy.mode', ['sync', 'async']))
    """
    key, equals, values = text.partition("=")
    q.demand(bool(equals and values), f"{text!r} is no axis", "--over", "e.g. saves=10:200:10")
    path, parts = q.path_of(key.strip()), [each.strip() for each in re.split("[:,]", values)]
    if not is_figure(*path.split(".")):
        return path, [each.strip() for each in values.split(",")]
    example = example_of(path)
    unit = next(filter(None, map(_unit_of, [*reversed(parts), example])), "")
    said = [each if _unit_of(each) else f"{each} {unit}".strip() for each in parts]
    try:
        amounts = [parse(each, example) for each in said]
    except InputError as error:
        raise error.at("--over") from None
    return path, _ranged(amounts, unit, example, text) if ":" in values else said


def _ranged(ends: list[float], unit: str, example: str, text: str) -> list[str]:
    """The values between, typed in one unit."""
    size = parse(f"1 {unit}".strip(), example)
    return [f"{x:.12g} {unit}".strip() for x in _between([end / size for end in ends], text)]


def example_of(path: str) -> str:
    section, key = path.split(".")
    return str(KEYS[section][key].metadata["example"])


def _unit_of(part: str) -> str:
    unit = split(part)
    return "" if unit == part or re.fullmatch(r"[kKMBGT]?", unit) else unit


def _between(numbers: list[float], text: str) -> list[float]:
    """From the first to the last, by the step or at numbers that are easy to read."""
    q.demand(len(numbers) in (2, 3), f"{text!r} is no range", "--over", "e.g. saves=10:200:10")
    first, last, *steps = numbers
    q.demand(first < last, f"{text!r} does not grow", "--over", "write the smaller end first")
    if steps:
        possible = steps[0] > 0 and (last - first) / steps[0] < MOST
        q.demand(possible, f"{text!r} has too small a step", "--over", "e.g. saves=10:200:10")
        return [float(x) for x in np.arange(first, last + steps[0] * 1e-6, steps[0])]
    if first > 0 and last / first >= 8:
        decades = range(int(np.floor(np.log10(first))), int(np.ceil(np.log10(last))) + 1)
        inner = [float(f"{step}e{n}") for n in decades for step in NICE]
        return [first, *(x for x in inner if first < x < last), last]
    return [float(x) for x in np.linspace(first, last, 13)]


def cases_of(
    job: str, over: Sequence[str], flags: q.Flags
) -> tuple[dict[str, Scenario], list[str]]:
    """A case for each combination of words; and the axes of figures, which are laid over each."""
    axes = dict(map(axis_of, over))
    q.demand(len(axes) == len(over), "an axis is given twice", "--over", "leave one out")
    count = prod(map(len, axes.values()))
    q.demand(count <= MOST, f"{count:,} plans are too many", "--over", f"at most {MOST:,}")
    words = {path: values for path, values in axes.items() if not is_figure(*path.split("."))}
    numbers = {path: values for path, values in axes.items() if path not in words}
    first = [f"{path}={values[0]}" for path, values in numbers.items()]
    given = {each.partition("=")[0].strip() for each in q.settings_of(flags)} | axes.keys()
    timed = flags.get("saves") or not given.isdisjoint(INTERVALS)
    if GPUS in axes and not timed:  # no interval suits all sizes
        first.append("policy.optimal=time")
    found: dict[str, Scenario] = {}
    for point in product(*words.values()):
        found |= _cases_at(job, dict(zip(words, point, strict=True)), first, flags)
    return found, [f"{path}={','.join(values)}" for path, values in numbers.items()]


def _cases_at(
    job: str, chosen: dict[str, str], first: Sequence[str], flags: q.Flags
) -> dict[str, Scenario]:
    """The job with these words, and with the first value of each axis of figures."""
    mine = q.Flags(**flags)
    if "tier.id" in chosen:
        mine["tier"] = [chosen.pop("tier.id")]
    mine["set"] = [*flags.get("set", ()), *first, *map("=".join, chosen.items())]
    found = {}
    for name, each in q.cases_for(job, mine).items():
        named = [name] if each.said["tier"].get("id") or not chosen else []
        found[", ".join([*named, *chosen.values()])] = each
    return found


# --- the grid -------------------------------------------------------------------------------------


class Grid:
    """All points of all cases, with every measure of them."""

    def __init__(self, cases: Mapping[str, Scenario], axes: dict[str, Array], draws: int | None):
        self.cases, self.axes = cases, axes
        self.at = grid.points(axes)
        self.count = prod(map(len, axes.values()))
        self.few = self.count * len(cases) <= FEW
        self.draws = (DRAWS if self.few else 0) if draws is None else draws
        self.open = all(one.advised(each) for each in cases.values())
        parts = [o for each in cases.values() for o in self._of(each)]
        study = Study(cases, 0)
        _, stops = ranks.ranking(study, "wall", len(cases))
        self.lost = {name: stops[row] for row, name in enumerate(cases) if row in study.unsaid}
        """cases whose run nobody knows, and why"""
        lost = np.repeat([name in self.lost for name in cases], self.count)[:, None]
        self.measures = dict[str, Array]()
        for measure in MEASURES:
            values = np.concatenate([read(measure, o) for o in parts])
            is_known = ~lost | (measure in OF_ONE_SAVE)
            self.measures[measure] = np.where(is_known, values, np.nan)

    def _of(self, scenario: Scenario) -> list[Outcome]:
        """At the interval that is given, or else at the best one of each point."""
        if not self.open:
            return grid.outcomes(scenario, self.at, self.draws)
        if not self.few:
            return grid.outcomes(q.opened(scenario), self.at, self.draws)
        found = [advice.advise(self.point(scenario, i)) for i in range(self.count)]
        at = self.at | {"policy.interval": np.array([each.interval for each in found])}
        if scenario.said["second_tier"]:
            at["policy.second_every"] = np.array([float(each.every) for each in found])
        return grid.outcomes(scenario, at, self.draws)

    def point(self, scenario: Scenario, at: int) -> Scenario:
        """One plan of the grid."""
        return q.with_values(scenario, {path: float(x[at]) for path, x in self.at.items()})

    @property
    def never(self) -> Any:
        """Plans that never finish."""
        return self.stated("goodput") <= 1.0 / one.NEVER

    def stated(self, measure: str) -> Array:
        return self.measures[measure][:, 0]

    def table(self, screen: Mapping[str, str]) -> Table:
        """Every point with every measure, `screen` first; without draws they have no ranges."""
        columns, cells = list[Column](), list[Iterable[Any]]()
        if len(self.cases) > 1:
            columns.append(Column("case", "case"))
            cells.append(np.repeat([*self.cases], self.count).tolist())
        for path, values in self.at.items():
            columns.append(Column(path, SHORT.get(path, path), unit_of(path) or "count"))
            cells.append(np.tile(values, len(self.cases)).tolist())
        for name in dict.fromkeys([*screen, *MEASURES]):
            measure, how = MEASURES[name], screen.get(name, "no")
            columns.append(Column(name, SHORT.get(name, measure.header), measure.unit, how))
            ranged = self.measures[name]
            cells.append(ranges_of(ranged) if self.draws else ranged[:, 0].tolist())
        rows = list(map(list, zip(*cells, strict=True)))
        return Table("cases", "Every measure of every plan", columns, rows, shown=False)


# --- the answer -----------------------------------------------------------------------------------


def answer(
    cases: Mapping[str, Scenario], over: Sequence[str], draws: int | None, typed: str
) -> Answer:
    """Of the cases of words, with axes of figures as `cases_of` gives them."""
    axes = {
        path: np.array([parse(each, example_of(path)) for each in texts])
        for path, texts in map(axis_of, over)
    }
    found, sizes = Grid(cases, axes, draws), [*axes] == [GPUS]
    whole = found.table(dict.fromkeys(BY_SIZE, "value") if sizes else _changing(found))
    names = "cluster size" if sizes else q.and_join([*axes])
    first, *_ = cases.values()
    says = _from_to(found) if sizes else _best(found)
    for name, stop in found.lost.items():
        says.append(ranks.stopped(stop, f"{name} does not work as it stands."))
    if found.open:
        which = "its own recommended interval" if found.few else "the interval of its shortest run"
        says.append(Say(f"Each plan saves at {which}."))
    return Answer(
        "model",
        f"What checkpoints cost by {names}: {first.name}",
        _about(found),
        says,
        [whole, _thinned(found, whole)],
        [Say("Every measure of every plan:", "", f"ckptcost model {typed} -o plans.csv")],
        plots=_plots(found, sizes),
        draws=found.draws,
    )


def _thinned(found: Grid, whole: Table) -> Table:
    """What a person sees: rows evenly over the grid if there are many; of a run that never ends
    only what is known of one save."""
    total = len(whole.rows)
    shown = sorted({*np.linspace(0, total - 1, min(total, SHOWN_ROWS)).astype(int).tolist()})
    note = f"{len(shown)} of {total:,} plans are shown." if len(shown) < total else ""
    rows = [[*whole.rows[at]] for at in shown]
    for row in (row for at, row in zip(shown, rows, strict=True) if found.never[at]):
        for i, column in enumerate(whole.columns):
            if column.key in MEASURES and column.key not in OF_ONE_SAVE:
                row[i] = "never finishes" if column.key == "goodput" else None
    return Table("plans", "", whole.columns, rows, note)


def _changing(found: Grid) -> dict[str, str]:
    """Measures that differ by more than rounding; how far dollars are sure stands beside them."""
    screen = {}
    for measure in CHANGING:
        values = found.stated(measure)[~found.never]
        values = values[np.isfinite(values)]
        differs = len(values) and np.ptp(values) > 1e-6 * np.max(np.abs(values))
        if differs or measure == "goodput" or (measure == "interval" and found.open):
            screen[measure] = "value"
    if not INTERVALS.isdisjoint(found.at):
        screen.pop("interval", None)
    if "cost" in screen and len(screen) + len(found.axes) + len(found.cases) <= 6:
        screen["cost"] = "range"
    return screen


def _about(found: Grid) -> str:
    """What is laid out, and what stays the same."""
    corners = product(found.cases.items(), (0, -1))
    ends = {f"{name}, {end}": found.point(each, end) for (name, each), end in corners}
    study, plans = Study(ends, 0), found.count * len(found.cases)
    laid = q.and_join([f"{path} {_extent(path, x)}" for path, x in found.axes.items()])
    cases = f", {len(found.cases)} cases" if len(found.cases) > 1 else ""
    same = one.shared(study, "size", "mode", *([] if found.open else ["every"]), "to", "work")
    return f"{plans:,} plans: {laid}{cases}; {', '.join(same)}"


def _extent(path: str, values: Array) -> str:
    return " to ".join(_say(path, float(end)) for end in (values[0], values[-1]))


def _say(path: str, value: float) -> str:
    unit = unit_of(path)
    return show(value, unit) if unit else f"{value:,.12g}"


def _best(found: Grid) -> list[Say]:
    """The plan of least cost, or of the shortest run."""
    measure, word, adds = "cost", "Least cost", "Checkpoints and failures then add"
    if not np.isfinite(found.stated(measure)).any():
        measure, word, adds = "wall", "Shortest run", "It takes"
    is_known = np.isfinite(found.stated(measure)) & ~found.never
    at = int(np.argmin(np.where(is_known, found.stated(measure), np.inf)))
    if not is_known[at]:
        return [Say("None of these plans ever finishes.")]
    names = [[*found.cases][at // found.count]] if len(found.cases) > 1 else []
    names += [f"{path} {_say(path, float(x[at % found.count]))}" for path, x in found.at.items()]
    amount = ranges_of(found.measures[measure][at : at + 1])[0].say(MEASURES[measure].unit)
    goodput = show(float(found.stated("goodput")[at]), "share")
    return [Say(f"{word}: {', '.join(names)}. {adds} {amount}; {goodput} is useful training.")]


MOVED = {"failures_day": "failures a day", "goodput": "useful training", "cost": "cost"}


def _from_to(found: Grid) -> list[Say]:
    """How the size of the cluster moves failures, useful training and dollars."""
    parts, ((path, x),) = [], found.axes.items()
    for measure, words in MOVED.items():
        ends, unit = found.stated(measure)[[0, -1]], MEASURES[measure].unit
        first, last = (number(x, 2) if unit == "count" else show(x, unit) for x in ends)
        if np.isfinite(ends).all() and first != last:
            parts.append(f"{words} {first} to {last}")
    known = parts and len(found.cases) == 1 and not found.never[[0, -1]].any()
    return [Say(f"From {_extent(path, x)} GPUs: {q.and_join(parts)}.")] if known else []


def _plots(found: Grid, sizes: bool) -> list[Plot]:
    """A single axis across, a line for each case."""
    if len(found.axes) != 1 or found.count > MOST_DRAWN:
        return []
    ((path, x),) = found.axes.items()
    known = np.isfinite(found.stated("cost")).any()
    log, plots = bool(0 < 20 * x[0] < x[-1]), []
    for measure in ("goodput", "failures_day") if sizes else ("cost" if known else "goodput",):
        header, unit = MEASURES[measure].header, MEASURES[measure].unit
        by_case = found.stated(measure).reshape(len(found.cases), found.count).tolist()
        lines = [Line(name, x.tolist(), y) for name, y in zip(found.cases, by_case, strict=True)]
        across, up = _axis(SHORT.get(path, path), unit_of(path)), _axis(header, unit)
        plots.append(Plot(header, across, up, lines[:LINES], log_x=log))
    return plots


def _axis(words: str, unit: str) -> str:
    return words if unit in ("", "count") else f"{words} [{unit}]"
