"""A grid of plans, one row each: figures as axes, laid as arrays; words as cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ckptcost import advice
from ckptcost.answer import Answer, Column, Line, Plot, Say, Table
from ckptcost.plan import grid
from ckptcost.plan.grid import Axis
from ckptcost.questions import common as q
from ckptcost.questions import one
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS, Array, is_figure
from ckptcost.scenario.units import number, parse, show, split
from ckptcost.study import MEASURES, Study, ranges_of, read, unit_of

MOST = 1_000_000
FEW = 50
"""points of which each has its recommended interval and its ranges; more have the exact best"""
DRAWS = 4096
SHOWN_ROWS = 18
NICE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""steps within a decade, for an axis that names only its ends"""
GPUS = "cluster.gpus"
BY_SIZE = {
    "failures_day": "value",
    "mtbf": "value",
    "interval": "value",
    "saves_day": "value",
    "written_day": "value",
    "goodput": "value",
    "cost": "value",
}
"""what a person sees of a grid of cluster sizes"""
USUAL = ("interval", "stall", "goodput", "wall", "gpu_time", "energy", "cost")
"""and of other grids, those that change"""


# --- axes -----------------------------------------------------------------------------------------


def axis_of(text: str) -> tuple[str, list[str]]:
    """A path and its values as they are typed, of KEY=a,b,c or first:last:step or first:last.

    >>> axis_of("tier.write=2:6:2"), axis_of("mode=sync,async")
    (('tier.write', ['2 GB/s', '4 GB/s', '6 GB/s']), ('policy.mode', ['sync', 'async']))
    """
    key, equals, values = text.partition("=")
    q.demand(bool(equals and values), f"{text!r} is no axis", "--over", "e.g. saves=10:200:10")
    path = q.path_of(key.strip())
    if not is_figure(*path.split(".")):
        return path, [each.strip() for each in values.split(",")]
    parts = values.split(":" if ":" in values else ",")
    numbers, unit = _numbers(parts, path)
    if ":" in values:
        numbers = _between(numbers, text)
    return path, [f"{number:.12g} {unit}".strip() for number in numbers]


def _numbers(parts: Sequence[str], path: str) -> tuple[list[float], str]:
    """All in the unit of the last one that has a unit, or else of the key's example."""
    section, key = path.split(".")
    example: str = KEYS[section][key].metadata["example"]
    units = [unit for part in parts if (unit := _unit_of(part))]
    unit = units[-1] if units else _unit_of(example)
    scale = parse(f"1 {unit}", example) if unit else 1.0
    said = [part if _unit_of(part) else f"{part} {unit}" for part in parts]
    return [parse(each, example) / scale for each in said], unit


def _unit_of(part: str) -> str:
    unit = split(part.strip())
    return "" if unit == part.strip() or re.fullmatch(r"[kKMBGT]?", unit) else unit


def _between(numbers: list[float], text: str) -> list[float]:
    """From the first to the last, by the step or at numbers that are easy to read."""
    q.demand(len(numbers) in (2, 3), f"{text!r} is no range", "--over", "e.g. saves=10:200:10")
    first, last = numbers[:2]
    q.demand(first < last, f"{text!r} does not grow", "--over", "write the smaller end first")
    if len(numbers) == 3:
        step = numbers[2]
        q.demand(step > 0, f"{text!r} has no step", "--over", "e.g. saves=10:200:10")
        q.demand((last - first) / step < MOST, f"{text!r} is too long", "--over", "a larger step")
        return [float(x) for x in np.arange(first, last + step * 1e-6, step)]
    if first > 0 and last / first >= 8:
        steps = NICE if last / first <= 1e3 else NICE[::2] if last / first <= 1e6 else NICE[:1]
        decades = range(int(np.floor(np.log10(first))), int(np.ceil(np.log10(last))) + 1)
        inner = [float(f"{step}e{n}") for n in decades for step in steps]
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
    if GPUS in axes and not _timed(axes, flags):
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
    return {
        ", ".join([*([] if name == "tier" and chosen else [name]), *chosen.values()]): scenario
        for name, scenario in q.cases_for(job, mine).items()
    }


def _timed(paths: Iterable[str], flags: q.Flags) -> bool:
    """Somebody says how often to save, for every size."""
    cadences = {f"policy.{each}" for each in CADENCES}
    said = {each.partition("=")[0].strip() for each in q.settings_of(flags)}
    return bool(cadences & (said | set(paths)) or flags.get("saves"))


# --- the grid -------------------------------------------------------------------------------------


class Grid:
    """All points of all cases, with every measure of them."""

    def __init__(self, cases: Mapping[str, Scenario], axes: Sequence[Axis], draws: int | None):
        self.cases, self.axes = cases, axes
        self.at = grid.points(axes)
        self.count = len(self.at[axes[0].path])
        self.few = self.count * len(cases) <= FEW
        self.draws = (DRAWS if self.few else 0) if draws is None else draws
        self.open = all(one.advised(each) for each in cases.values())
        parts = [self._of(scenario) for scenario in cases.values()]
        self.measures: dict[str, Array] = {
            measure: np.concatenate([part[measure] for part in parts]) for measure in MEASURES
        }

    def _of(self, scenario: Scenario) -> dict[str, Array]:
        at = dict(self.at)
        if self.open and not self.few:
            scenario = _exact(scenario)
        elif self.open:
            at |= self._recommended(scenario)
        found = grid.outcomes(scenario, at, self.draws)
        return {
            measure: np.concatenate([_own(measure, o, len(w.cluster.gpus)) for w, o in found])
            for measure in MEASURES
        }

    def _recommended(self, scenario: Scenario) -> dict[str, Array]:
        """How often each point saves, and how often to a second tier, as `ckptcost interval`."""
        found = []
        for i in range(self.count):
            point = scenario
            for path, values in self.at.items():
                point = point.with_figure(path, q.figure_at(path, float(values[i])))
            best = advice.advise(point)
            if best:
                found.append((best.interval, float(best.every)))
            else:
                found.append((point.figures()["run.work"].value, 1.0))
        interval, every = np.array(found).T
        second = {"policy.second_every": every} if scenario.said["second_tier"] else {}
        return {"policy.interval": interval} | second

    def stated(self, measure: str) -> Array:
        return self.measures[measure][:, 0]

    def cells(self, measure: str) -> list[Any]:
        """A range a row, or plain numbers without draws."""
        if self.draws:
            return ranges_of(self.measures[measure])
        found: list[Any] = self.stated(measure).tolist()
        return found

    def table(self, screen: Mapping[str, str]) -> Table:
        """Every point with every measure, `screen` first."""
        order = dict.fromkeys([*screen, *MEASURES])
        columns = [_axis_column(axis.path) for axis in self.axes]
        columns += [_measure_column(measure, screen.get(measure, "no")) for measure in order]
        cells = [np.tile(self.at[axis.path], len(self.cases)).tolist() for axis in self.axes]
        cells += [self.cells(measure) for measure in order]
        if len(self.cases) > 1:
            columns.insert(0, Column("case", "case"))
            cells.insert(0, np.repeat([*self.cases], self.count).tolist())
        rows = list(map(list, zip(*cells, strict=True)))
        return Table("cases", "Every measure of every plan", columns, rows, shown=False)


def _axis_column(path: str) -> Column:
    return Column(path, SHORT.get(path, path), unit_of(path) or "count")


def _measure_column(name: str, screen: str) -> Column:
    measure = MEASURES[name]
    return Column(name, SHORT.get(name, measure.header), measure.unit, screen)


SHORT = {
    GPUS: "GPUs",
    "failures_day": "fails/day",
    "mtbf": "MTTF",
    "saves_day": "saves/day",
    "written_day": "bytes/day",
    "goodput": "useful",
    "stall": "waits",
    "wall": "takes",
    "gpu_time": "GPU-h",
}
"""headers, where a grid has no room for longer ones"""


def _own(measure: str, o: Any, rows: int) -> Array:
    found = read(measure, o)
    return np.broadcast_to(found, (rows, found.shape[1]))


def _exact(scenario: Scenario) -> Scenario:
    """With the exact best interval instead of the recommended one."""
    policy = {k: v for k, v in scenario.said["policy"].items() if k not in CADENCES}
    return replace(scenario, said=scenario.said | {"policy": policy | {"optimal": "time"}})


# --- the answer -----------------------------------------------------------------------------------


def answer(
    cases: Mapping[str, Scenario], over: Sequence[str], draws: int | None, typed: str
) -> Answer:
    """Of the cases of words, with axes of figures as `cases_of` gives them."""
    axes = [Axis(path, _values(path, texts)) for path, texts in map(axis_of, over)]
    found = Grid(cases, axes, draws)
    sizes = [axis.path for axis in axes] == [GPUS]
    screen = BY_SIZE if sizes else _changing(found)
    first, *_ = cases.values()
    names = q.and_join([axis.path for axis in axes])
    whole = found.table(screen)
    return Answer(
        "model",
        f"What checkpoints cost by {'cluster size' if sizes else names}: {first.name}",
        _about(found),
        [*_best(found), *_from_to(found), _intervals(found)],
        [whole, _thinned(whole)],
        [Say("Every measure of every plan:", "", f"ckptcost model {typed} -o plans.csv")],
        plots=_plots(found, sizes),
        draws=found.draws,
    )


def _values(path: str, texts: Sequence[str]) -> Array:
    section, key = path.split(".")
    return np.array([parse(each, KEYS[section][key].metadata["example"]) for each in texts])


def _changing(found: Grid) -> dict[str, str]:
    """Measures that differ by more than rounding; how far dollars are sure stands beside them."""
    timed = any(axis.path.removeprefix("policy.") in CADENCES for axis in found.axes)
    usual = USUAL[1:] if timed else USUAL
    changing = [m for m in usual if _differs(found.stated(m)) or (m == "interval" and found.open)]
    roomy = len(changing) + len(found.axes) <= 6 and len(found.cases) == 1
    screen = dict.fromkeys(changing, "value")
    if not roomy:
        screen.pop("wall", None)
    elif "cost" in screen:
        screen["cost"] = "range"
    return screen


def _differs(values: Array) -> bool:
    known = values[np.isfinite(values)]
    return bool(len(known) and np.ptp(known) > 1e-6 * np.max(np.abs(known)))


def _about(found: Grid) -> str:
    """What is laid out, and what stays the same."""
    name, first = next(iter(found.cases.items()))
    study, plans = Study({name: first}, 0), found.count * len(found.cases)
    job = one.job(study, 0) if len(found.cases) == 1 else f"{len(found.cases)} cases"
    return f"{plans:,} plans: {q.and_join([_extent(axis) for axis in found.axes])}; {job}"


def _extent(axis: Axis) -> str:
    ends = [_say(axis.path, float(end)) for end in (axis.values[0], axis.values[-1])]
    return f"{axis.path} {' to '.join(ends)}"


def _say(path: str, value: float) -> str:
    unit = unit_of(path)
    return f"{value:,.12g}" if unit in ("", "count") else show(value, unit)


def _best(found: Grid) -> list[Say]:
    """The plan of least cost, or of the shortest run; not for sizes: a small cluster costs less."""
    if [axis.path for axis in found.axes] == [GPUS]:
        return []
    cost = found.stated("cost")
    measure, word = ("cost", "Least cost") if np.isfinite(cost).any() else ("wall", "Shortest run")
    values = np.where(np.isfinite(found.stated(measure)), found.stated(measure), np.inf)
    at = int(np.argmin(values))
    if not np.isfinite(values[at]):
        return [Say("None of these plans ever finishes.")]
    where = [_say(axis.path, float(found.at[axis.path][at % found.count])) for axis in found.axes]
    names = [f"{axis.path} {text}" for axis, text in zip(found.axes, where, strict=True)]
    if len(found.cases) > 1:
        names.insert(0, [*found.cases][at // found.count])
    goodput = show(float(found.stated("goodput")[at]), "share")
    return [
        Say(f"{word}: {', '.join(names)}."),
        Say(f"That plan costs {_range(found, measure, at)}; {goodput} is useful training."),
    ]


def _range(found: Grid, measure: str, at: int) -> str:
    unit = MEASURES[measure].unit
    return ranges_of(found.measures[measure][at : at + 1])[0].say(unit)


def _from_to(found: Grid) -> list[Say]:
    """How a single axis moves failures, useful training and dollars."""
    if len(found.axes) != 1 or len(found.cases) > 3:
        return []
    axis, says = found.axes[0], []
    extent = _extent(axis).removeprefix(axis.path).strip()
    for at, name in enumerate(found.cases):
        ends = (at * found.count, (at + 1) * found.count - 1)
        parts = [
            _moved(words, [float(found.stated(measure)[end]) for end in ends], measure)
            for measure, words in MOVED.items()
        ]
        said = q.and_join([part for part in parts if part])
        begin = f"{name}, from" if len(found.cases) > 1 else "From"
        unit = " GPUs" if axis.path == GPUS else ""
        if said:
            says.append(Say(f"{begin} {extent}{unit}: {said}."))
    return says


MOVED = {"failures_day": "failures a day", "goodput": "useful training", "cost": "cost"}


def _moved(what: str, ends: Sequence[float], measure: str) -> str:
    unit = MEASURES[measure].unit
    first, last = (number(end, 2) if unit == "count" else show(end, unit, 3) for end in ends)
    return f"{what} {first} to {last}" if all(np.isfinite(ends)) and first != last else ""


def _intervals(found: Grid) -> Say:
    if not found.open:
        return Say("")
    which = "recommended interval" if found.few else "exact best interval for time"
    return Say(f"Each plan saves at its own {which}.")


def _thinned(whole: Table) -> Table:
    """What a person sees: rows evenly over the grid if there are many."""
    total = len(whole.rows)
    shown = sorted({*np.linspace(0, total - 1, min(total, SHOWN_ROWS)).astype(int).tolist()})
    note = f"{len(shown)} of {total:,} plans are shown." if len(shown) < total else ""
    return Table("plans", "", whole.columns, [whole.rows[i] for i in shown], note)


def _plots(found: Grid, sizes: bool) -> list[Plot]:
    """The first axis across, a line for each case, or for each value of the second axis."""
    if not found.axes or len(found.axes) > 2 or found.count > 5000:
        return []
    axis = found.axes[0]
    known = np.isfinite(found.stated("cost")).any()
    up = ["goodput", "failures_day"] if sizes else ["cost" if known else "goodput"]
    log = bool(axis.values[0] > 0 and axis.values[-1] > 20 * axis.values[0])
    across = _labelled(SHORT.get(axis.path, axis.path), unit_of(axis.path))
    headers = [(measure, MEASURES[measure].header, MEASURES[measure].unit) for measure in up]
    return [
        Plot(header, across, _labelled(header, unit), _lines(found, measure), log_x=log)
        for measure, header, unit in headers
    ]


def _labelled(words: str, unit: str) -> str:
    return words if unit in ("", "count") else f"{words} [{unit}]"


def _lines(found: Grid, measure: str) -> list[Line]:
    table = found.stated(measure).reshape(len(found.cases), len(found.axes[0].values), -1)
    lines = [
        Line(
            name if len(found.axes) == 1 else _second(found, column),
            found.axes[0].values.tolist(),
            each[:, column].tolist(),
        )
        for name, each in zip(found.cases, table, strict=True)
        for column in range(each.shape[1])
    ]
    return lines[:LINES]


LINES = 6
"""of a plot: more would not be told apart"""


def _second(found: Grid, column: int) -> str:
    axis = found.axes[1]
    return f"{axis.path} {_say(axis.path, float(axis.values[column]))}"
