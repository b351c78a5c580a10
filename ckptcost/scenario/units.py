"""Text with units at the door, SI inside: "30 GB/s" becomes 3e10, and 3e10 is shown as "30 GB/s".

An example stands for a unit: what is read must have the dimensions of the example, and what is
shown is shown in its unit. 1 GB = 1e9 B, 1 GiB = 2**30 B; a month is 730 h, a year 8,760 h. GPU and
node are dimensions, so that a price per GPU-hour and a rate per node-day cannot be mixed up.
"""

from __future__ import annotations

import math
import re
from functools import cache

from ckptcost.errors import InputError

_ATOMS = {
    name: (float(factor), dimension)
    for dimension, names in {
        "s": "s=1 sec=1 second=1 ms=1e-3 us=1e-6 min=60 minute=60 h=3600 hr=3600 hour=3600"
        " d=86400 day=86400 week=604800 month=2628000 mo=2628000 y=31536000 yr=31536000"
        " year=31536000",
        "J": "J=1 Wh=3600",
        "J/s": "W=1",
        "USD": "USD=1 $=1 usd=1 dollar=1 cent=0.01",
        "kg": "kgCO2e=1 kgCO2=1 gCO2e=1e-3 gCO2=1e-3 tCO2e=1e3 tCO2=1e3 g=1e-3 kg=1 t=1e3",
        "L": "L=1 l=1 litre=1 liter=1",
        "GPU": "GPU=1 gpu=1",
        "node": "node=1",
        "file": "file=1",
        "request": "request=1 put=1",
        "B": "B=1 byte=1 b=0.125 bit=0.125",
        "": "%=0.01 percent=0.01 x=1 step=1 param=1 parameter=1 save=1 checkpoint=1 failure=1",
    }.items()
    for name, _, factor in (each.partition("=") for each in names.split())
}
_PREFIX = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_PREFIX |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_COUNT = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?:\.\d*)?|\.\d+"
_NUMBER = re.compile(
    rf"(\$?)\s*([+-]?(?:{_DIGITS})(?:[eE][+-]?\d+)?)(?:([kMGT])(?=\s+[A-Za-z%$]))?\s*(.*)",
    re.A | re.S,
)
"""a number, a letter for thousands or more ("2.1M USD", as results are shown), and a unit"""
_STEP = re.compile(
    r"\s*(/|\bper\b|[*·-])?\s*(\d{1,9}(?:\.\d{1,9})?)?\s*([A-Za-z$%]+[A-Za-z0-9]*)\s*", re.A
)
LONGEST = 80
"""letters in a quantity; nobody writes longer ones"""

Dimensions = tuple[tuple[str, int], ...]


@cache
def unit(text: str) -> tuple[float, Dimensions]:
    """Factor to SI and dimensions of "MB/s/TiB" or "1000 node-days". All after a "/" divides.

    >>> unit("GB/s")
    (1000000000.0, (('B', 1), ('s', -1)))
    """
    factor, powers, sign, at = 1.0, dict[str, int](), 1, 0
    while at < len(text):
        found = _STEP.match(text, at)
        if not found or float(found[2] or 1) == 0:
            raise InputError(f"cannot read the unit {text!r}")
        size, dimension = _atom(found[3])
        sign = -1 if found[1] in ("/", "per") else sign
        factor *= (size * float(found[2] or 1)) ** sign
        at = found.end()
        for i, name in enumerate(filter(None, dimension.split("/"))):
            powers[name] = powers.get(name, 0) + (-sign if i else sign)
    return factor, tuple(sorted((name, power) for name, power in powers.items() if power))


def _atom(word: str) -> tuple[float, str]:
    """Factor to SI and dimension of one word of a unit, such as "TiB" or "days"."""
    for name in (word, word.rstrip("s"), word.lower().rstrip("s")):
        if name in _ATOMS and not (name != word and len(name) == 1):
            return _ATOMS[name]
    for prefix in sorted(_PREFIX, key=len, reverse=True):
        rest = word.removeprefix(prefix)
        if rest != word and rest.rstrip("s") in ("B", "b", "bit", "byte", "W", "J", "Wh", "GPU"):
            size, dimension = _ATOMS[rest.rstrip("s")]
            return _PREFIX[prefix] * size, dimension
    raise InputError(f"{word!r} is no unit")


def split(example: str) -> str:
    """The unit of an example: "30 GB/s" is in "GB/s"."""
    found = _NUMBER.fullmatch(example.strip())
    return found.group(4).strip() if found else example


def is_count(example: str) -> bool:
    """Whether an example is a whole number without a unit: "1024", and neither "0.5" nor "4 %"."""
    return not split(example) and "." not in example


def parse(said: str | float, example: str) -> float:
    """The value in SI of what was written; it must be the kind of thing that the example is.

    >>> parse("3 min", "30 s"), parse("405B", "5"), parse("12 %", "0.5"), parse("2.1M USD", "1 USD")
    (180.0, 405000000000.0, 0.12, 2100000.0)
    """
    text, remedy = str(said).strip(), f"write e.g. {example!r}"
    found = None if isinstance(said, bool) or len(text) > LONGEST else _NUMBER.fullmatch(text)
    if not found:
        raise InputError(f"{text[:60]!r} is no quantity", remedy=remedy)
    dollar, digits, letter, rest = found.groups()
    number = float(digits.replace(",", "")) * _COUNT[letter or ""]
    try:
        factor = _factor(f"USD{rest}" if dollar else rest.strip(), example)
    except InputError as error:
        raise InputError(f"{text!r}: {error.problem}", remedy=remedy) from None
    if number < 0:
        raise InputError(f"{text!r} is less than nothing", remedy=remedy)
    if not math.isfinite(number * factor):
        raise InputError(f"{text!r} is too large", remedy=remedy)
    return number * factor


def _factor(unit_text: str, example: str) -> float:
    """What one of a unit is in SI, if it measures what the example measures."""
    wanted = unit(split(example))[1]
    if not wanted and unit_text in _COUNT:
        return _COUNT[unit_text]
    if not unit_text:
        raise InputError("the unit is missing")
    if is_count(example) and unit_text in ("%", "percent", "x"):
        raise InputError(f"a count has no {unit_text!r}")
    factor, dimensions = unit(unit_text)
    if dimensions != wanted:
        raise InputError(f"{unit_text!r} is not a unit of {example!r}")
    return factor


# --- and back to text -------------------------------------------------------------------------

_SCALES = {
    "s": (
        (94608000, 31536000, "years"),
        (172800, 86400, "days"),
        (5400, 3600, "h"),
        (100, 60, "min"),
        (1, 1, "s"),
        (0, 1e-3, "ms"),
    ),
    "B": ((1e15, 1e15, "PB"), (1e12, 1e12, "TB"), (1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (0, 1, "B")),
    "B/s": ((1e12, 1e12, "TB/s"), (1e9, 1e9, "GB/s"), (0, 1e6, "MB/s")),
    "W": ((1e6, 1e6, "MW"), (1e3, 1e3, "kW"), (0, 1, "W")),
    "share": ((0, 0.01, "%"),),
}
"""from so much on, divided by so much, it is called so"""


def number(value: float, digits: int = 3) -> str:
    """Three digits that matter: 0.0131, 33.7, 2,780, 403,000, 2.19M.

    >>> [number(x) for x in (0.01312, 33.72, 2781.0, 402_900.0, 2.19e6, 4.73e10)]
    ['0.0131', '33.7', '2,780', '403,000', '2.19M', '47.3G']
    """
    if value != value:
        return "-"
    if math.isinf(value):
        return "endless"
    if value == 0:
        return "0"
    value = float(f"{value:.{digits}g}")
    size, letter = next(((s, n) for s, n in _LETTERS if abs(value) >= s), (1.0, ""))
    value /= size
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    plain = f"{value:,.{decimals}f}"
    return (plain.rstrip("0").rstrip(".") if "." in plain else plain) + letter


_LETTERS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def show(value: float, unit_text: str, digits: int = 3) -> str:
    """A value in SI as people read it.

    >>> show(905.0, "s"), show(5.68e12, "B"), show(8.3e11, "kWh"), show(0.872, "share")
    ('15.1 min', '5.68 TB', '231,000 kWh', '87.2 %')
    """
    if value != value or math.isinf(value):
        return number(value)
    for least, size, name in _SCALES.get(unit_text, ((0, per(unit_text), unit_text),)):
        if abs(value) >= least:
            return f"{number(value / size, digits)} {name}".strip()
    return number(value, digits)


def show_range(
    low: float, high: float, unit_text: str, value: float = math.nan, digits: int = 3
) -> str:
    """Both ends in one unit, the letter once where both have it; with two digits, or with more if
    they would be alike; an end that would leave out the value with as many digits as that.

    >>> show_range(1.2e6, 7.4e6, "USD"), show_range(4.5e5, 2.9e6, "USD")
    ('1.2-7.4M', '450,000-2.9M')
    >>> show_range(1.99e5, 2.4e5, "USD", 1.99e5), show_range(1.12e6, 1.13e6, "USD")
    ('199,000-240,000', '1.12-1.13M')
    >>> show_range(95.0, 900.0, "s")
    '1.6-15 min'
    """
    scales = _SCALES.get(unit_text, ((0, per(unit_text), ""),))
    size, name = next((s, n) for least, s, n in scales if max(abs(low), abs(high)) >= least)
    shown = _rounded(value / size, digits)
    pair = [low / size, high / size]
    kept = next((n for n in range(2, 7) if _rounded(pair[0], n) < _rounded(pair[1], n)), 3)
    outside = _rounded(pair[0], kept) > shown, _rounded(pair[1], kept) < shown
    ends = [number(x, max(kept, digits) if out else kept)
            for x, out in zip(pair, outside, strict=True)]  # fmt: skip
    if ends[0][-1:] == ends[1][-1:] and ends[0][-1:].isalpha() and ends[1] != "endless":
        ends[0] = ends[0][:-1]
    return f"{' to ' if low < 0 else '-'}".join(ends) + (f" {name}" if name else "")


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def per(unit_text: str) -> float:
    """SI in one of what people read: 3.6e6 J in a kWh; 1 for what is no unit ("share", "")."""
    return 1.0 if unit_text in ("", "share", "count", "text") else unit(unit_text)[0]
