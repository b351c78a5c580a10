"""The quantities that statements speak of, and the laws between them: formulas as text.

Each law has each quantity once and is monotone in it, so its interval is what it gives at the ends
of the others: plain numbers, no interval arithmetic.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ckptcost.errors import InputError
from ckptcost.plan import failures


class Quantity(NamedTuple):
    example: str
    unit: str = ""
    """in which a value that follows is shown"""
    words: str = "{}"
    """how a statement of it reads: "5 to 10 % of time stalled" """


QUANTITIES = {
    "size": Quantity("2 TB", "B"),
    "write": Quantity("30 GB/s", "B/s"),
    "time": Quantity("40 s", "s"),
    "power": Quantity("700 W", "W"),
    "energy": Quantity("3 kWh", "kWh"),
    "energy_per_byte": Quantity("139 J/GB", "J/GB"),
    "saves": Quantity("100", "", "{} checkpoints"),
    "total_size": Quantity("2 TB", "B", "{} in all"),
    "total_energy": Quantity("3 kWh", "kWh", "{} in all"),
    "params": Quantity("4e11", "", "{} parameters"),
    "bytes_per_param": Quantity("14 B", "B", "{} a parameter"),
    "interval": Quantity("30 min", "s", "{} between saves"),
    "saves_per_day": Quantity("48", "", "{} saves a day"),
    "stall_share": Quantity("0.1", "share", "{} of time stalled"),
    "speedup": Quantity("1.5", "x", "{} faster"),
    "runtime_saved": Quantity("0.1", "share", "{} shorter run"),
    "stall": Quantity("40 s", "s", "{} of stall"),
    "recovery": Quantity("5 min", "s", "{} to recover"),
    "goodput": Quantity("0.9", "share", "{} useful training"),
    "failures": Quantity("419", "", "{} failures"),
    "duration": Quantity("54 days", "s"),
    "failures_per_day": Quantity("8", "", "{} failures a day"),
    "mttf": Quantity("3 h", "s", "{} to a failure"),
    "gpu_mttf": Quantity("1000 GPU-h", "GPU-h", "{} to a failure"),
    "gpus": Quantity("1024", "", "{} GPUs"),
    "gpu_power": Quantity("700 W", "W", "{} a GPU"),
    "requests": Quantity("1000", "", "{} requests"),
    "request_size": Quantity("8 MB", "B", "{} a request"),
    "queue_depth": Quantity("16", "", "queue depth {}"),
    "latency": Quantity("1 ms", "s", "{} of latency"),
    "capacity": Quantity("7 TB", "B", "{} of capacity"),
    "drive_writes_per_day": Quantity("1", "", "{} drive writes a day"),
}
"""what statements can speak of"""


def best_goodput(failures_per_day: float, stall: float, recovery: float) -> float:
    """The most that any interval reaches: the exact renewal model at its best interval."""
    none, rate = np.zeros(1), np.array([failures_per_day / 86400.0])
    back = failures.Recovery(none, none, np.array([recovery]), none, none)
    prices = {"work": 1.0, "stall": 1.0, "idle": 1.0, "save": 0.0}
    with np.errstate(all="ignore"):
        best = failures.best_interval(np.array([stall]), back, rate, prices, none)
        return float((best / failures.segment(best, np.array([stall]), none, back, rate).total)[0])


# --- formulas -------------------------------------------------------------------------------------

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"log": math.log, "best_goodput": best_goodput}
Values = Mapping[str, float]


class Formula:
    """A formula over named values, such as "1 - fast / slow"."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tree = ast.parse(text.replace("^", "**"), mode="eval").body
        except SyntaxError:
            remedy = 'write e.g. "1 - fast.energy / slow.energy"'
            raise InputError("is no formula", text, remedy) from None
        self.names: dict[str, None] = {}
        """in the order in which they occur"""
        self._at = self._compiled(tree)

    def span(self, ends: Mapping[str, Iterable[float]]) -> tuple[float, float]:
        """The least and the most at the ends of its values; ArithmeticError if there is none.

        >>> Formula("size / write").span({"size": (2, 2), "write": (4, 8)})
        (0.25, 0.5)
        """
        try:
            corners = product(*ends.values())
            values = [self._at(dict(zip(ends, corner, strict=True))) for corner in corners]
        except (TypeError, ValueError) as error:  # the root of what has none, log() of nothing
            raise ArithmeticError(str(error)) from None
        if any(map(math.isnan, values)):
            raise ArithmeticError("inf - inf")
        return min(values), max(values)

    def _compiled(self, node: ast.expr) -> Callable[[Values], float]:
        match node:
            case ast.Name(id=name):
                self.names[name] = None
                return operator.itemgetter(name)
            case ast.Constant(value=float() | int() as value):
                return lambda _values: float(value)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                combine, sides = _OPERATORS[type(op)], [*map(self._compiled, (left, right))]
                return lambda values: float(combine(*(side(values) for side in sides)))
            case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
                function, inner = _FUNCTIONS[name], [*map(self._compiled, args)]
                return lambda values: function(*(each(values) for each in inner))
        problem = f"{ast.unparse(node)!r} is not allowed in a formula"
        raise InputError(problem, self.text, "use + - * / ^ log")


# --- laws -----------------------------------------------------------------------------------------


class Form(NamedTuple):
    """One direction of a law."""

    formula: Formula
    words: str
    """the same as a sentence, with places for the numbers"""
    at_most: bool
    """what it gives is the most that the quantity can be"""


class Law(NamedTuple):
    assumes: str
    forms: dict[str, Form]
    """by the quantity that each gives"""

    @property
    def quantities(self) -> set[str]:
        return {*self.forms}.union(*(form.formula.names for form in self.forms.values()))


UNLESS = {
    "cadence, waiting": {"stall"},
    "cadence, at most": {"stall", "time"},
    "stall share, waiting": {"stall"},
}
"""not used if one of these is stated: another law then says it better"""
ONLY_AGREES = ("saves for a goodput",)
"""can agree with a statement, not contradict it"""
_LAWS = """
rate
    write = size / time: {size} in {time} is {write}
    time = size / write: {size} at {write} takes {time}
    size = write * time: {write} for {time} is {size}
power
    energy = power * time: {power} for {time} is {energy}
    power = energy / time: {energy} in {time} is {power}
    time = energy / power: {energy} at {power} takes {time}
energy of all
    total_energy = saves * energy: {saves} x {energy} = {total_energy}
    energy = total_energy / saves: {total_energy} / {saves} = {energy}
size of all
    total_size = saves * size: {saves} x {size} = {total_size}
    size = total_size / saves: {total_size} / {saves} = {size}
energy per byte
    energy = energy_per_byte * size: {size} at {energy_per_byte} is {energy}
    energy_per_byte = energy / size: {energy} for {size} is {energy_per_byte}
state
    size = params * bytes_per_param: {params} parameters x {bytes_per_param} = {size}
    bytes_per_param = size / params: {size} / {params} parameters = {bytes_per_param} a parameter
cadence
    saves_per_day = 86400 / (interval + stall):
        one each {interval} and {stall} of stall is {saves_per_day} a day
    interval = 86400 / saves_per_day - stall:
        {saves_per_day} a day with {stall} of stall leaves {interval} between them
cadence, waiting: training waits for the whole save
    saves_per_day = 86400 / (interval + time):
        one each {interval}, {time} long, is {saves_per_day} a day
cadence, at most: reached by saves that training does not wait for
    saves_per_day <= 86400 / interval: one each {interval} is at most {saves_per_day} a day
stall share
    stall_share = 1 / (1 + interval / stall):
        {stall} of stall after each {interval} of training is {stall_share}
    interval = stall * (1 / stall_share - 1): {stall} is {stall_share} if saves are {interval} apart
stall share, waiting: training waits for the whole save
    stall_share = 1 / (1 + interval / time): saved every {interval} that is {stall_share}
    interval = time * (1 / stall_share - 1): {time} is {stall_share} if saves are {interval} apart
speed-up: only the saves get faster
    runtime_saved = stall_share * (1 - 1 / speedup):
        {stall_share} of stall, {speedup} faster, saves {runtime_saved}
    stall_share = runtime_saved / (1 - 1 / speedup):
        {runtime_saved} saved by {speedup} faster saves needs {stall_share} of stall
failure rate
    mttf = 86400 / failures_per_day: {failures_per_day} failures a day is one in {mttf}
    failures_per_day = 86400 / mttf: one in {mttf} is {failures_per_day} failures a day
failures counted
    failures_per_day = failures * 86400 / duration:
        {failures} failures in {duration} is {failures_per_day} a day
    failures = failures_per_day * duration / 86400:
        {failures_per_day} a day for {duration} is {failures} failures
GPU time per failure: failures grow with GPUs
    gpu_mttf = mttf * gpus: {mttf} on {gpus} GPUs is {gpu_mttf} a failure
    mttf = gpu_mttf / gpus: {gpu_mttf} a failure on {gpus} GPUs is {mttf}
saves for a goodput: the best interval, and no time to recover (first order)
    saves_per_day = failures_per_day / (1 - goodput):
        {goodput} with {failures_per_day} failures a day: {saves_per_day} saves a day
    goodput = 1 - failures_per_day / saves_per_day:
        {failures_per_day} failures and {saves_per_day} saves a day leave {goodput}
goodput for saves: each failure costs half an interval and nothing else
    goodput <= (1 + 1 / (1 + failures_per_day / saves_per_day)) / 2:
        {failures_per_day} failures, {saves_per_day} saves a day: at most {goodput}
stall for a goodput: the best interval, and no time to recover (first order)
    stall <= (1 - goodput) ^ 2 / 2 * (86400 / failures_per_day):
        {goodput} with {failures_per_day} failures a day bears at most {stall} of stall
goodput: the best interval (exact)
    goodput <= best_goodput(failures_per_day, stall, recovery):
        {failures_per_day} failures a day, {stall} of stall and {recovery} to recover
        leave at most {goodput}
requests
    request_size = size / requests: {size} in {requests} requests is {request_size} each
    size = requests * request_size: {requests} requests of {request_size} are {size}
Little's law
    latency = queue_depth * time / requests:
        {queue_depth} waiting, {requests} requests in {time}: each takes {latency}
    queue_depth = latency * requests / time:
        {requests} requests of {latency} in {time}: {queue_depth} at a time
wear
    drive_writes_per_day = size / capacity * 86400 / time:
        {size} in {time} fills {capacity} {drive_writes_per_day} times a day
"""
"""name: what it assumes; below it the quantity that is given, its formula and a sentence"""


def _laws_of(text: str) -> dict[str, Law]:
    found: dict[str, Law] = {}
    for paragraph in re.split(r"\n(?=\S)", text.strip()):
        head, *forms = re.split(r"\n    (?=\S)", paragraph)
        name, _, assumes = head.partition(": ")
        found[name] = Law(assumes, {})
        for form in forms:
            gives, sign, formula, words = _FORM.fullmatch(form).groups()  # type: ignore[union-attr]
            words = " ".join(words.split())
            found[name].forms[gives] = Form(Formula(formula), words, sign == "<=")
    return found


_FORM = re.compile(r"(\w+) (<?=) ([^:]+):\s+(.+)", re.DOTALL)
LAWS = _laws_of(_LAWS)
