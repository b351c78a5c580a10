"""A grid of plans, one row each: figures as axes, laid as arrays; words as cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ckptcost import advice
from ckptcost.answer import Answer, Caution, Column, Line, Plot, Say, Table
from ckptcost.cautions import Seen, caution, holding
from ckptcost.errors import InputError
from ckptcost.plan import evaluate as ev
from ckptcost.plan import grid
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks, several
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS, Array, World, is_figure
from ckptcost.scenario.units import number, parse, show, split
from ckptcost.study import DRAWS, MEASURES, OF_ONE_SAVE, Study, ranges_of, unit_of

MOST, CHUNK = 1_000_000, 8192
"""plans, and plans that are evaluated together: more would take more memory"""
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
        q.demand(possible, f"{text!r} are too many plans", "--over", f"at most {MOST:,}")
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


class Points(Study):
    """Points of a grid over one scenario, each as if it were a case."""

    def __init__(self, base: Scenario, at: Mapping[str, Array], draws: int) -> None:
        rows = len(next(iter(at.values())))
        self.names, self.scenarios = [base.name] * rows, [base] * rows
        self.draws, self._base, self._at = draws, base, at
        self._seen, self._ranges, self.unsaid = {}, {}, set()
        self.w = grid.laid(base, at)
        self.stated, self.asked = ev.evaluate(self.w)

    @cached_property
    def drawn_world(self) -> World:
        return grid.laid(self._base, self._at, self.draws)

    def unlimited(self) -> Any:
        """Points whose rate lies beyond what was measured."""
        second = self.stated.plan.two & ph.limit_unknown(self.w, self.w.second_tier)
        return (ph.limit_unknown(self.w, self.w.tier) | second)[:, 0]


class Grid:
    """All points of all cases: every measure of them, what keeps them from working, and whether
    their limit was measured."""

    def __init__(self, cases: Mapping[str, Scenario], axes: dict[str, Array], draws: int | None):
        self.cases, self.axes = cases, axes
        self.at = grid.points(axes)
        self.count = prod(map(len, axes.values()))
        total = self.count * len(cases)
        self.few = total <= FEW
        self.draws = (DRAWS if self.few else 0) if draws is None else draws
        q.demand_room(total, self.draws, "--over")
        self.open = all(one.advised(each) for each in cases.values())
        self.stops: dict[str, Caution] = {}
        """by code: what keeps plans from working, in the words of the first"""
        self.why = np.full(total, "", dtype=object)
        self.unlimited = np.zeros(total, bool)
        parts: dict[str, list[Array]] = {measure: [] for measure in MEASURES}
        for start, points in self._points():
            self._judge(points, start)
            for measure in MEASURES:
                parts[measure].append(points.of(measure, drawn=bool(self.draws)))
        self.measures = {measure: np.concatenate(found) for measure, found in parts.items()}

    def _points(self) -> Iterator[tuple[int, Points]]:
        """Some thousand at a time, and the place of the first."""
        for case, scenario in enumerate(self.cases.values()):
            at = self._at(scenario)
            base = q.opened(scenario) if self.open and not self.few else scenario
            for start in range(0, self.count, CHUNK):
                some = {path: x[start : start + CHUNK] for path, x in at.items()}
                yield case * self.count + start, Points(base, some, self.draws)

    def _at(self, scenario: Scenario) -> dict[str, Array]:
        """The points; of a few each at the interval that is recommended for it."""
        if not (self.open and self.few):
            return self.at
        found = [advice.advise(self.point(scenario, i)) for i in range(self.count)]
        at = self.at | {"policy.interval": np.array([each.interval for each in found])}
        if scenario.said["second_tier"]:
            at["policy.second_every"] = np.array([float(each.every) for each in found])
        return at

    def _judge(self, points: Points, start: int) -> None:
        """What keeps points from working, and which limits are not known."""
        seen = Seen(points)
        rows = slice(start, start + len(points.names))
        self.unlimited[rows] = points.unlimited()
        why = self.why[rows]
        for rule, where in holding(seen, None):
            first = [row for row in where if rule.blocks and not why[row]]
            if first:
                self.stops.setdefault(rule.code, caution(rule, seen, first))
                why[first] = rule.code
        points.unsaid = {*np.flatnonzero(why == ranks.LOSES).tolist()}

    def point(self, scenario: Scenario, at: int) -> Scenario:
        """One plan of the grid."""
        return q.with_values(scenario, {path: float(x[at]) for path, x in self.at.items()})

    def corners(self) -> list[Scenario]:
        """The first and the last plan of each case."""
        return [self.point(each, i) for each in self.cases.values() for i in (0, -1)]

    @property
    def works(self) -> Any:
        return np.array(self.why == "", bool)

    def stated(self, measure: str) -> Array:
        return self.measures[measure][:, 0]

    def table(self, screen: Mapping[str, str]) -> Table:
        """Every point with every measure, `screen` first; without draws they have no ranges."""
        columns, cells = list[Column](), list[Iterable[Any]]()
        if len(self.cases) > 1:
            columns.append(Column("case", "case"))
            cells.append(np.repeat([*self.cases], self.count).tolist())
        for path, values in self.at.items():
            columns.append(Column(path, header_of(path), unit_of(path) or "count"))
            cells.append(np.tile(values, len(self.cases)).tolist())
        for name in dict.fromkeys([*screen, *MEASURES]):
            measure, how = MEASURES[name], screen.get(name, "no")
            columns.append(Column(name, SHORT.get(name, measure.header), measure.unit, how))
            ranged = self.measures[name]
            cells.append(ranges_of(ranged) if self.draws else ranged[:, 0].tolist())
        if self.stops or self.unlimited.any():
            columns.append(Column("caution", "caution", "text", "no"))
            limits = np.where(self.unlimited, "LIMIT_UNKNOWN", "").tolist()
            cells.append([why or limit for why, limit in zip(self.why, limits, strict=True)])
        rows = list(map(list, zip(*cells, strict=True)))
        return Table("cases", "Every measure of every plan", columns, rows, shown=False)


def header_of(path: str) -> str:
    """Of the column of an axis: as short as it can be typed."""
    key = path.partition(".")[2]
    return SHORT.get(path) or (key if q.SHORT.get(key) == path else path)


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
    names = "cluster size" if sizes else q.and_join([*map(one.words_of, axes)])
    first, *_ = cases.values()
    corners = Study({f"{i}": each for i, each in enumerate(found.corners())}, 0)
    says = [*one.doubted(corners, range(len(corners.names))), *_fixed(found), *_stopped(found)]
    if found.open:
        which = "its own recommended interval" if found.few else "the interval of its shortest run"
        says.append(Say(f"Each plan saves at {which}."))
    best = _from_to(found) if sizes else _best(found, Study(cases, 0))
    return Answer(
        "model",
        f"What checkpoints cost by {names}: {first.name}",
        _about(found, corners),
        sorted([*best, *says], key=lambda say: not say.label),
        [whole, _thinned(found, whole)],
        [Say("Every measure of every plan:", "", f"ckptcost model {typed} -o plans.csv")],
        plots=_plots(found, sizes),
        draws=found.draws,
    )


def _fixed(found: Grid) -> list[Say]:
    """That a failure rate that was given does not follow the size."""
    given = [each.figures().get("failures.mtbf") for each in found.cases.values()]
    if GPUS not in found.axes or "failures.mtbf" in found.axes or not given[0]:
        return []
    every = show(given[0].value, "s", 2)
    return [
        Say(f"A failure comes every {every} at every size. Leave mtbf out: it follows the size.")
    ]


def _stopped(found: Grid) -> list[Say]:
    """What keeps plans from working, and whose limits are not known."""
    total, says = len(found.why), []
    for code, stop in found.stops.items():
        count = int(np.count_nonzero(found.why == code))
        who = f"Plans that do not work: {count:,} of {total:,}. The first:"
        says.append(ranks.stopped(stop, "No plan works." if count == total else who))
    if found.unlimited.any():
        words = "* Beyond what was measured: the limit of the whole is not known. If you know it:"
        says.append(Say(words, "", '--set tier.write="100 GB/s"'))
    return says


def _thinned(found: Grid, whole: Table) -> Table:
    """What a person sees: rows evenly over the grid if there are many; of a run that does not work
    only what is known of one save."""
    total = len(whole.rows)
    shown = sorted({*np.linspace(0, total - 1, min(total, SHOWN_ROWS)).astype(int).tolist()})
    note = f"{len(shown)} of {total:,} plans are shown." if len(shown) < total else ""
    return Table("plans", "", whole.columns, [_seen(found, whole, at) for at in shown], note)


def _seen(found: Grid, whole: Table, at: int) -> list[Any]:
    """A row for a person, with a star if its limit is unknown."""
    row, keys = [*whole.rows[at]], [column.key for column in whole.columns]
    if not found.works[at]:
        never = found.stated("goodput")[at] <= 1.0 / one.NEVER
        hidden = MEASURES.keys() - {*OF_ONE_SAVE}
        row = [None if key in hidden else cell for key, cell in zip(keys, row, strict=True)]
        row[keys.index("goodput")] = several.NEVER if never else "does not work"
    if found.unlimited[at]:
        row[0] = f"{_say(keys[0], row[0]) if isinstance(row[0], float) else row[0]} *"
    return row


def _changing(found: Grid) -> dict[str, str]:
    """Measures that differ by more than rounding; how far dollars are sure stands beside them."""
    always = {"goodput"} | ({"interval"} if found.open else set())
    screen = {m: "value" for m in CHANGING if m in always or _differs(found, m)}
    if not INTERVALS.isdisjoint(found.at):
        screen.pop("interval", None)
    if len(screen) + len(found.axes) + (len(found.cases) > 1) > 7:
        screen.pop("stall", None)
    if "cost" in screen and len(screen) + len(found.axes) + len(found.cases) <= 6:
        screen["cost"] = "range"
    return screen


def _differs(found: Grid, measure: str) -> bool:
    values = found.stated(measure)[found.works & np.isfinite(found.stated(measure))]
    return bool(len(values)) and bool(np.ptp(values) > 1e-6 * np.max(np.abs(values)))


def _about(found: Grid, corners: Study) -> str:
    """What is laid out, and what stays the same."""
    plans = found.count * len(found.cases)
    laid = q.and_join(
        [f"{one.words_of(path)} {_extent(path, x)}" for path, x in found.axes.items()]
    )
    cases = f", {len(found.cases)} cases" if len(found.cases) > 1 else ""
    same = one.shared(corners, "size", "mode", *([] if found.open else ["every"]), "to", "work")
    return f"{plans:,} plans: {laid}{cases}; {', '.join(same)}"


def _extent(path: str, values: Array) -> str:
    return " to ".join(_say(path, float(end)) for end in (values[0], values[-1]))


def _say(path: str, value: float) -> str:
    unit = unit_of(path)
    return show(value, unit) if unit else f"{value:,.12g}"


def _best(found: Grid, study: Study) -> list[Say]:
    """The plan of least cost (without rent, if it is charged in different ways), or of the shortest
    run; one whose limit is not known only if there is no other."""
    unlike = ranks.unlike(study)
    measure, word, adds = "cost", "Least cost", "Checkpoints and failures then add"
    if unlike:
        measure, word = "cost_apart", "Least cost before rent"
    if not np.isfinite(found.stated(measure)).any():
        measure, word, adds, unlike = "wall", "Shortest run", "It takes", []
    fit = np.isfinite(found.stated(measure)) & found.works
    known = fit & ~found.unlimited
    if not known.any():
        words = "No plan here can be recommended: the limits of all are unknown."
        return [Say(words)] if fit.any() else []
    at = int(np.argmin(np.where(known, found.stated(measure), np.inf)))
    among = " of plans whose limit is known" if (fit & ~known).any() else ""
    names = [[*found.cases][at // found.count]] if len(found.cases) > 1 else []
    names += [
        f"{one.words_of(path)} {_say(path, float(x[at % found.count]))}"
        for path, x in found.at.items()
    ]
    amount = ranges_of(found.measures[measure][at : at + 1])[0].say(MEASURES[measure].unit)
    goodput = show(float(found.stated("goodput")[at]), "share")
    words = f"{word}{among}: {', '.join(names)}. {adds} {amount}; {goodput} is useful training."
    return [Say(words), *unlike]


MOVED = {"failures_day": "failures a day", "goodput": "useful training", "cost": "cost"}


def _from_to(found: Grid) -> list[Say]:
    """How the size of the cluster moves failures, useful training and dollars."""
    parts, ((path, x),) = [], found.axes.items()
    for measure, words in MOVED.items():
        ends, unit = found.stated(measure)[[0, -1]], MEASURES[measure].unit
        first, last = (number(x, 2) if unit == "count" else show(x, unit) for x in ends)
        if np.isfinite(ends).all() and first != last:
            parts.append(f"{words} {first} to {last}")
    known = parts and len(found.cases) == 1 and found.works[[0, -1]].all()
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
        across, up = _axis(header_of(path), unit_of(path)), _axis(header, unit)
        plots.append(Plot(header, across, up, lines[:LINES], log_x=log))
    return plots


def _axis(words: str, unit: str) -> str:
    return words if unit in ("", "count") else f"{words} [{unit}]"
