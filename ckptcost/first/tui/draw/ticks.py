"""Round places on an axis, as many as there is room to name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ckptcost.first.present.amounts import duration
from ckptcost.first.tui.draw.scale import Scale

Kind = Literal["number", "duration"]
Text = Callable[[float], str]
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_NAMES = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1.0, "s"))
_SHORT_STEPS = (
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    _MINUTE,
    2 * _MINUTE,
    5 * _MINUTE,
    10 * _MINUTE,
    15 * _MINUTE,
    30 * _MINUTE,
    _HOUR,
    2 * _HOUR,
    3 * _HOUR,
    6 * _HOUR,
    12 * _HOUR,
)
_BETWEEN = (
    (1.0, 10.0, 30.0, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 3 * _HOUR, 10 * _HOUR),
    (1.0, 10.0, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR),
    (1.0, 10.0, _MINUTE, 10 * _MINUTE, _HOUR),
    (1.0, _MINUTE, _HOUR),
)
"""from a second to a day on a log axis, from fine to coarse"""


class AxisTick(NamedTuple):
    """A round value, its words, the cell it stands in, and the cell where the words begin."""

    value: float
    text: str
    at: int
    begin: int


def x_ticks(
    x: Scale,
    columns: int,
    text: Text,
    kind: Kind = "number",
    left: int = 0,
    room: tuple[int, int] | None = None,
    gap: int = 3,
) -> list[AxisTick]:
    """Ticks below a picture of `columns` cells that begins at column `left`; their words stay
    within `room`, each under its tick and `gap` cells from the next where that can be."""
    low, high = room or (left, left + columns)

    def placed(values: Sequence[float], words: Text, gap: int) -> list[AxisTick] | None:
        ticks: list[AxisTick] = []
        free = low - columns
        for value in values:
            words_here = words(value)
            at = left + max(min(x.cell(value, columns), columns - 1), 0)
            middle = at - (len(words_here) - 1) // 2
            begin = max(min(middle, high - len(words_here)), low)
            end = begin + len(words_here)
            if (
                end > high
                or not begin <= at < max(end, begin + 1)
                or (ticks and ticks[-1].text == words_here)
            ):
                return None
            if middle < free or (ticks and begin <= ticks[-1].begin + len(ticks[-1].text)):
                return None
            ticks.append(AxisTick(value, words_here, at, begin))
            free = middle + len(words_here) + gap  # those that the edge pushed aside need less
        return ticks

    return _fullest(_candidates(x, text, kind, columns // 2), placed, (gap, 2, 1))


def y_ticks(y: Scale, rows: int, text: Text, kind: Kind = "number") -> list[AxisTick]:
    """Ticks beside a picture of `rows` cells, row 0 at the top; `begin` is the row too."""

    def placed(values: Sequence[float], words: Text, gap: int) -> list[AxisTick] | None:
        ticks: list[AxisTick] = []
        for value in values:
            at = rows - 1 - max(min(y.cell(value, rows, 4), rows - 1), 0)
            if ticks and (ticks[-1].at - at < gap or ticks[-1].text == words(value)):
                return None
            ticks.append(AxisTick(value, words(value), at, at))
        return ticks

    return _fullest(_candidates(y, text, kind, rows), placed, (3, 2, 1) if rows >= 10 else (2, 1))


def _fullest(
    candidates: Iterable[tuple[list[float], Text]],
    placed: Callable[[Sequence[float], Text, int], list[AxisTick] | None],
    gaps: tuple[int, ...],
) -> list[AxisTick]:
    """The finest set that can be named with the widest gap at which two ticks remain."""
    sets = list(candidates)
    single: list[AxisTick] = []
    for gap in gaps:
        for values, words in sets:
            ticks = placed(values, words, gap)
            if ticks is not None and len(ticks) >= 2:
                return ticks
            if ticks and not single:
                single = ticks
    for values, words in reversed(sets):  # no two of them fit: one at least
        for value in values:
            if ticks := placed([value], words, 0):
                return ticks
    return single


def _candidates(
    scale: Scale, text: Text, kind: Kind, most: int
) -> Iterator[tuple[list[float], Text]]:
    """Sets of ticks from fine to coarse, with their wording; none with many more than `most`."""
    own = kind == "duration" and text is duration
    if scale.log and scale.high / scale.low >= 8:
        for values in _log_sets(scale, kind):
            yield values, (in_own_unit if own else text)
        return
    span = scale.high - scale.low
    for step in steps(span / max(most, 2), kind):
        if step > 2 * span:
            break
        values = multiples(scale.low, scale.high, step)
        if values:
            yield values, (_in_unit(step) if own else text)


def steps(least: float, kind: Kind = "number") -> Iterator[float]:
    """Round steps from `least` upwards: 1, 2, 2.5, 5, 10 ... or, for time, 1, 2, 5, 10, 15, 30 s, 1
    min ...

    >>> from itertools import islice
    >>> list(islice(steps(0.3), 5)), list(islice(steps(20.0, "duration"), 4))
    ([0.5, 1.0, 2.0, 2.5, 5.0], [30.0, 60.0, 120.0, 300.0])
    """
    if kind == "duration" and least > 0.5:
        yield from (step for step in _SHORT_STEPS if step >= least)
        for step in _decimal(max(least / _DAY, 1.0), (1, 2, 5)):
            yield step * _DAY
    elif kind == "duration":
        for step in _decimal(least, (1, 2, 5)):
            if step >= 1:
                break
            yield step
        yield from steps(1.0, "duration")
    else:
        yield from _decimal(least, (1, 2, 2.5, 5))


def _decimal(least: float, mantissas: tuple[float, ...]) -> Iterator[float]:
    power = math.floor(math.log10(least)) if least > 0 else -300
    while power < 300:
        for mantissa in mantissas:
            step = float(f"{mantissa}e{power}")
            if step >= least * (1 - 1e-9):
                yield step
        power += 1


def multiples(low: float, high: float, step: float) -> list[float]:
    """Multiples of a step within a range, free of the noise of adding up.

    >>> multiples(0.0, 0.35, 0.1)
    [0.0, 0.1, 0.2, 0.3]
    """
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(1 - math.floor(math.log10(step)), 1)
    return [round(number * step, digits) for number in range(first, last + 1)]


def _log_sets(scale: Scale, kind: Kind) -> Iterator[list[float]]:
    low, high = scale.low * (1 - 1e-9), scale.high * (1 + 1e-9)
    first, last = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    for values in (_duration_sets if kind == "duration" else _decimal_sets)(first, last):
        yield [value for value in values if low <= value <= high]


def _duration_sets(first: int, last: int) -> Iterator[list[float]]:
    below = [float(f"1e{power}") for power in range(min(first, 0), 0)]
    beyond = [_DAY * float(f"1e{power}") for power in range(max(last - 3, 3))]
    fine = [m * value for value in (*below, *beyond) for m in (1, 2, 5)]
    yield sorted([*fine, *_SHORT_STEPS])
    for between in _BETWEEN:
        yield [*below, *between, *beyond]


def _decimal_sets(first: int, last: int) -> Iterator[list[float]]:
    powers = range(first, last + 1)
    if last - first <= 4:
        yield [float(f"{m}e{power}") for power in powers for m in (1, 2, 5)]
    for stride in (1, 2, 3, 4, 5, 6, 8, 10, 20):
        yield [float(f"1e{power}") for power in powers if power % stride == 0]


def _in_unit(step: float) -> Text:
    """Words in the unit that the step calls for, the same for the whole axis."""
    unit, name = next(((unit, name) for unit, name in _NAMES if step >= unit), (1.0, "s"))
    return lambda value: _words(value, unit, name)


def in_own_unit(value: float) -> str:
    """Words in the largest unit that leaves a whole number.

    >>> in_own_unit(120.0), in_own_unit(5400.0), in_own_unit(0.5), in_own_unit(864000.0)
    ('2 min', '90 min', '0.5 s', '10 d')
    """
    unit, name = next(
        ((unit, name) for unit, name in _NAMES if abs(value) >= unit and value % unit == 0),
        (1.0, "s"),
    )
    return _words(value, unit, name)


def _words(value: float, unit: float, name: str) -> str:
    return f"{value / unit:,.10g} {name}" if value else "0"
