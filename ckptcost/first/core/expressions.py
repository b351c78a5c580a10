"""Formulas as text, "1 - exascaler.energy / nas.energy", evaluated on intervals that carry
dimensions.

A tokenizer and a recursive descent; a formula can name quantities and call the functions listed
here, and nothing else:

    sum     = product, then + or - product, any number of times
    product = power, then * or / power, any number of times
    power   = -power | atom [^ whole number up to 9]
    atom    = number [unit] | name | function(sum, ...) | (sum)

Adding unlike dimensions is refused. A unit after a number is one word, so that `2 TB / 1 s` cannot
be read in two ways.

>>> known = {"size": ExpressionValue(Interval(2e12, 2e12), (("bytes", 1),))}
>>> time = evaluate(formula("size / (40 GB / 1 s)"), known.__getitem__)
>>> time.range, unit_of(time.dims)
(Interval(low=50.0, high=50.0), 's')
>>> evaluate(formula("size + 1 s"), known.__getitem__)
Traceback (most recent call last):
ckptcost.first.errors.UnitError: s cannot be added to bytes in 'size + 1 s'. both sides...

`best_goodput(failures_per_day, stall, recovery)` is the most that any interval reaches:
G = l tau e^(-l R) / (e^(l (tau + C)) - 1) at the exact best interval of `core.optimum`, with l
failures per second, C the stall, R the recovery.

>>> goodput = evaluate(formula("best_goodput(55, 0.5 s, 300 s)"), known.__getitem__)
>>> round(goodput.range.low, 3)
0.805
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from ckptcost.first.core.failures import Recovery
from ckptcost.first.core.intervals import Interval, interval
from ckptcost.first.core.optimum import best_interval_s
from ckptcost.first.core.units import DAY_S, UNITS, Dims, parse
from ckptcost.first.errors import InputError, UnitError, UnknownName, brief

LONGEST: Final = 500
DEEPEST: Final = 40
_REMEDY = 'write e.g. "1 - fast.energy / slow.energy"'


class ExpressionValue(NamedTuple):
    """An interval in base units, and its dimensions."""

    range: Interval
    dims: Dims


class Formula(NamedTuple):
    """A parsed formula: its text, its tree of tuples and the names in it."""

    text: str
    tree: tuple[Any, ...]
    names: tuple[str, ...]


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"(?:\s*(?P<unit>%|[A-Za-z$]+)(?![\w.(]))?"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)|(?P<mark>[-+*/^(),]))"
)


class ExpressionToken(NamedTuple):
    kind: str
    text: str
    unit: str
    at: int


def _tokens(text: str) -> list[ExpressionToken]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if not match:
            raise InputError(
                f"cannot read {brief(text[at:].strip(), 30)} in {brief(text)}", remedy=_REMEDY
            )
        kind = match.lastgroup if match.lastgroup != "unit" else "number"
        found.append(ExpressionToken(str(kind), match[str(kind)], match["unit"] or "", at))
        at = match.end()
    return [*found, ExpressionToken("end", "", "", at)]


@cache
def _literal(number: str, unit: str) -> ExpressionValue:
    for key in ("", "s", "bytes", "w", "j", "usd", "kgco2e"):
        try:
            return ExpressionValue(interval(parse(f"{number} {unit}".strip(), key)), UNITS[key][0])
        except UnitError:
            continue
    raise UnitError(
        f"cannot read {brief(f'{number} {unit}')}",
        remedy="a number with one unit such as 2 TB, 500 W, 1 day or 12 %",
    )


class _Parser:
    """sum := product (+|- product)*; product := power (*|/ power)*; power := [-] atom [^ whole
    number]."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at, self.depth = text, _tokens(text), 0, 0
        self.names: dict[str, None] = {}

    @property
    def next(self) -> ExpressionToken:
        return self.tokens[self.at]

    def take(self, *marks: str) -> str:
        """The next mark, if it is one of these."""
        if self.next.kind == "mark" and self.next.text in marks:
            self.at += 1
            return self.tokens[self.at - 1].text
        return ""

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise self.error(f"expected {mark!r}")

    def error(self, problem: str) -> InputError:
        where = (
            f"before {brief(self.text[self.next.at :].strip(), 30)}"
            if self.next.kind != "end"
            else "at the end"
        )
        return InputError(f"{problem} {where} in {brief(self.text)}", remedy=_REMEDY)

    def sum(self) -> tuple[Any, ...]:
        self.depth += 1
        if self.depth > DEEPEST:
            raise InputError(
                f"is nested deeper than {DEEPEST} brackets", remedy="split the formula"
            )
        tree = self.product()
        while mark := self.take("+", "-"):
            tree = (mark, tree, self.product())
        self.depth -= 1
        return tree

    def product(self) -> tuple[Any, ...]:
        tree = self.power()
        while mark := self.take("*", "/"):
            tree = (mark, tree, self.power())
        return tree

    def power(self) -> tuple[Any, ...]:
        if self.take("-"):
            if self.take("-"):
                raise self.error("two signs")
            return ("neg", self.power())
        tree = self.atom()
        if self.take("^"):
            sign = -1 if self.take("-") else 1
            token = self.next
            if (
                token.kind != "number"
                or token.unit
                or not token.text.isdigit()
                or int(token.text) > 9
            ):
                raise self.error("expected a whole exponent of at most 9")
            self.at += 1
            return ("^", tree, sign * int(token.text))
        return tree

    def atom(self) -> tuple[Any, ...]:
        token = self.next
        if self.take("("):
            tree = self.sum()
            self.need(")")
            return tree
        if token.kind == "number":
            self.at += 1
            return ("number", _literal(token.text, token.unit))
        if token.kind != "name":
            raise self.error("expected a number, a name or a bracket")
        self.at += 1
        if not self.take("("):
            self.names[token.text] = None
            return ("name", token.text)
        if token.text not in FUNCTIONS:
            raise UnknownName("function", token.text, FUNCTIONS)
        given = [self.sum()]
        while self.take(","):
            given.append(self.sum())
        self.need(")")
        count = FUNCTIONS[token.text][0]
        if len(given) != count:
            raise InputError(
                f"{token.text} takes {count} value{'s' * (count > 1)}, not {len(given)}, in"
                f" {brief(self.text)}"
            )
        return ("call", token.text, given)


@lru_cache(maxsize=2000)
def formula(text: str) -> Formula:
    """A formula from its text.

    >>> formula("size / write").names
    ('size', 'write')
    """
    if len(text) > LONGEST:
        raise InputError(f"is longer than {LONGEST} characters", remedy="split the formula")
    parser = _Parser(text)
    tree = parser.sum()
    if parser.next.kind != "end":
        raise parser.error("expected an operator")
    return Formula(text, tree, tuple(parser.names))


def evaluate(what: Formula, lookup: Callable[[str], ExpressionValue]) -> ExpressionValue:
    """The formula's value; ZeroDivisionError where a divisor can be zero, InputError where
    dimensions do not fit.

    >>> two_tb = ExpressionValue(Interval(2e12, 2e12), (("bytes", 1),))
    >>> evaluate(formula("size / (20 GB / 1 s)"), lambda name: two_tb)
    ExpressionValue(range=Interval(low=100.0, high=100.0), dims=(('s', 1),))
    """
    return _value(what.tree, lookup, what.text)


def _value(
    tree: tuple[Any, ...], lookup: Callable[[str], ExpressionValue], text: str
) -> ExpressionValue:
    match tree:
        case ("number", amount):
            return amount
        case ("name", name):
            return lookup(name)
        case ("neg", part):
            inner = _value(part, lookup, text)
            return ExpressionValue(-inner.range, inner.dims)
        case ("^", part, exponent):
            inner = _value(part, lookup, text)
            return ExpressionValue(inner.range.power(exponent), _dims(inner.dims, exponent))
        case ("call", name, parts):
            return _call_function(name, [_value(part, lookup, text) for part in parts], text)
    mark, left, right = tree[0], _value(tree[1], lookup, text), _value(tree[2], lookup, text)
    if mark == "*":
        return ExpressionValue(left.range * right.range, _dims(left.dims, 1, right.dims, 1))
    if mark == "/":
        return ExpressionValue(left.range / right.range, _dims(left.dims, 1, right.dims, -1))
    return _sum_of_values(mark, left, right, text)


def _sum_of_values(
    mark: str, left: ExpressionValue, right: ExpressionValue, text: str
) -> ExpressionValue:
    if left.dims != right.dims:
        doing = "added to" if mark == "+" else "taken from"
        raise UnitError(
            f"{dimension_words(right.dims)} cannot be {doing} {dimension_words(left.dims)}"
            f" in {brief(text)}",
            remedy="both sides need the same unit",
        )
    return ExpressionValue(left.range + (right.range if mark == "+" else -right.range), left.dims)


def _dims(left: Dims, times: int, right: Dims = (), also: int = 0) -> Dims:
    powers: dict[str, int] = {}
    for dims, by in ((left, times), (right, also)):
        for name, power in dims:
            powers[name] = powers.get(name, 0) + power * by
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def unit_of(dims: Dims) -> str | None:
    """The suffix whose dimensions these are; None where there is no word for them."""
    odd = ("bytes_per_param", "failures_per_s", "per_s")
    return next(
        (unit for unit, (known, _) in UNITS.items() if known == dims and unit not in odd), None
    )


def dimension_words(dims: Dims) -> str:
    """Dimensions in words, for a message."""
    if not dims:
        return "a plain number"
    return unit_of(dims) or " ".join(
        f"{name}^{power}" if power != 1 else name for name, power in dims
    )


def _call_function(name: str, given: list[ExpressionValue], text: str) -> ExpressionValue:
    _, wanted, function = FUNCTIONS[name]
    if wanted is None:
        if any(each.dims != given[0].dims for each in given):
            raise UnitError(
                f"{name} of {' and '.join(dimension_words(each.dims) for each in given)}"
                f" in {brief(text)}",
                remedy="give one unit",
            )
        return ExpressionValue(function(*(each.range for each in given)), given[0].dims)
    for each, unit in zip(given, wanted, strict=True):
        if each.dims != UNITS[unit][0]:
            raise UnitError(
                f"{name} of {dimension_words(each.dims)} in {brief(text)},"
                f" expected {dimension_words(UNITS[unit][0])}"
            )
    try:
        return ExpressionValue(function(*(each.range for each in given)), ())
    except ValueError:
        raise InputError(f"{name} of a number that can be negative, in {brief(text)}") from None


def best_goodput(failures_per_day: Interval, stall: Interval, recovery: Interval) -> Interval:
    """The most goodput any interval reaches: failures at random, lost work done again, each failure
    costing `recovery`.

    >>> best = best_goodput(Interval(55.0, 55.0), Interval(0.5, 0.5), Interval(60.0, 60.0))
    >>> round(best.low, 3), round(best.high, 3)
    (0.938, 0.938)
    """
    worst = _best_goodput(failures_per_day.high, stall.high, recovery.high)
    return Interval(worst, max(worst, _best_goodput(failures_per_day.low, stall.low, recovery.low)))


def _best_goodput(failures_per_day: float, stall_s: float, recovery_s: float) -> float:
    if min(failures_per_day, stall_s, recovery_s) < 0:
        raise ValueError("negative")
    rate = failures_per_day / DAY_S
    if not all(map(math.isfinite, (rate, stall_s, recovery_s))):
        return 0.0
    if rate == 0.0:
        return 1.0
    if stall_s == 0.0:
        return math.exp(
            -rate * recovery_s
        )  # saves cost nothing, so they are continuous and nothing is redone
    interval_s = float(best_interval_s(stall_s, Recovery(0.0, 0.0, 0.0, 0.0, 0.0), rate))
    if rate * (interval_s + stall_s) > 700.0:
        return 0.0
    return (
        rate * interval_s * math.exp(-rate * recovery_s) / math.expm1(rate * (interval_s + stall_s))
    )


def _log(value: float) -> float:
    if value < 0:
        raise ValueError("negative")
    return math.log(value) if value > 0 else -math.inf


def _exp(value: float) -> float:
    return math.exp(value) if value < 709.0 else math.inf


FUNCTIONS: Final[dict[str, tuple[int, tuple[str, ...] | None, Callable[..., Interval]]]] = {
    # name: how many values, their units (None: any, all alike), the function
    "log": (1, ("",), lambda x: x.rising(_log)),
    "exp": (1, ("",), lambda x: x.rising(_exp)),
    "sqrt": (1, ("",), lambda x: x.rising(math.sqrt)),
    "min": (2, None, lambda x, y: Interval(min(x.low, y.low), min(x.high, y.high))),
    "max": (2, None, lambda x, y: Interval(max(x.low, y.low), max(x.high, y.high))),
    "best_goodput": (3, ("", "s", "s"), best_goodput),
}
