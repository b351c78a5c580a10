"""Text with units at the door, base units inside.

Base units: bytes, s, w, j, bytes_per_s, usd, kgco2e, gpu_s. A GPU and a node are counted things
with a dimension of their own, so that "usd per GPU-second" and "failures per node-day" cannot be
mixed up. 1 GB = 1e9 bytes, 1 GiB = 2**30, 1 Gb = 1e9/8 bytes. A month is 730 h and a year 8,760 h,
as cloud price lists count them. The only module that knows how many joules are in a kWh.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from ckptcost.first.errors import UnitError, brief

KWH_J: Final = 3.6e6
HOUR_S: Final = 3600.0
DAY_S: Final = 86_400.0
MONTH_S: Final = 730 * HOUR_S
YEAR_S: Final = 8760 * HOUR_S

Dims = tuple[tuple[str, int], ...]

_WORDS: tuple[tuple[dict[str, int], dict[str, float]], ...] = (
    (
        {"s": 1},
        {
            "s": 1,
            "sec": 1,
            "second": 1,
            "ms": 1e-3,
            "us": 1e-6,
            "min": 60,
            "minute": 60,
            "h": HOUR_S,
            "hr": HOUR_S,
            "hour": HOUR_S,
            "d": DAY_S,
            "day": DAY_S,
            "week": 7 * DAY_S,
            "month": MONTH_S,
            "mo": MONTH_S,
            "y": YEAR_S,
            "yr": YEAR_S,
            "year": YEAR_S,
        },
    ),
    ({"j": 1}, {"J": 1, "Wh": HOUR_S}),
    ({"j": 1, "s": -1}, {"W": 1}),
    ({"usd": 1}, {"usd": 1, "$": 1, "dollar": 1, "cent": 0.01}),
    (
        {"kgco2e": 1},
        {
            "kgCO2e": 1,
            "kgCO2": 1,
            "gCO2e": 1e-3,
            "gCO2": 1e-3,
            "tCO2e": 1e3,
            "tCO2": 1e3,
            "g": 1e-3,
            "kg": 1,
            "t": 1e3,
        },
    ),
    ({"l": 1}, {"L": 1, "l": 1, "litre": 1, "liter": 1}),
    ({"gpu": 1}, {"gpu": 1}),
    ({"node": 1}, {"node": 1}),
    ({"file": 1}, {"file": 1}),
    ({"request": 1}, {"request": 1, "put": 1}),
    (
        {},
        {
            "step": 1,
            "param": 1,
            "parameter": 1,
            "save": 1,
            "checkpoint": 1,
            "%": 0.01,
            "percent": 0.01,
            "failure": 1,
            "x": 1,
        },
    ),
    ({"bytes": 1}, {"byte": 1, "B": 1, "bit": 0.125, "b": 0.125}),
)
_BASE = {word: (factor, dims) for dims, words in _WORDS for word, factor in words.items()}
_SI = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_COUNT = {
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "B": 1e9,
    "G": 1e9,
    "T": 1e12,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}

_EXAMPLES = {
    # suffix of a name -> an example a person can copy, which says what its dimensions are
    "bytes_per_param": "14 B",
    "usd_per_gpu_s": "2.50 USD/GPU-h",
    "usd_per_byte_s": "0.023 USD/GB-month",
    "usd_per_byte": "0.0032 USD/GiB",
    "usd_per_request": "0.005 USD/1000 requests",
    "usd_per_j": "0.09 USD/kWh",
    "usd_per_s": "12 USD/h",
    "kgco2e_per_gpu_s": "33 g/GPU-h",
    "kgco2e_per_j": "384 g/kWh",
    "l_per_j": "1.8 L/kWh",
    "j_per_byte": "139 J/GB",
    "failures_per_gpu_s": "0.42 /1000 GPU-days",
    "failures_per_node_s": "3.8 /1000 node-days",
    "failures_per_s": "0.1 /day",
    "bytes_per_s": "30 GB/s",
    "files_per_s": "5000 files/s",
    "per_s": "1 /day",
    "gpu_s": "100 GPU-h",
    "bytes": "2 TB",
    "kgco2e": "12 kgCO2e",
    "l": "500 L",
    "usd": "100 USD",
    "s": "30 min",
    "w": "700 W",
    "j": "3 kWh",
    "": "0.5",
}

_NUMBER = re.compile(
    r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?|nan)\s*(.*)$", re.S
)
_ATOM = re.compile(
    r"(?:\s*(?P<over>per\b|/)\s*(?:(?P<count>\d+(?:\.\d+)?(?:e\d+)?)\s*)?"
    r"|(?P<times>\s*[*·-]\s*|\s+))?(?P<word>[A-Za-z$%]+[A-Za-z0-9]*)"
)


def suffix_of(name: str) -> str:
    """The unit that a field's name ends in; "" for a plain number.

    >>> suffix_of("write_bytes_per_s"), suffix_of("gpu_stall_w"), suffix_of("gpus")
    ('bytes_per_s', 'w', '')
    """
    return next(
        (unit for unit in UNITS if unit and (name == unit or name.endswith("_" + unit))), ""
    )


def _atom(word: str) -> tuple[float, dict[str, int]]:
    for candidate in (word, word.lower(), word.rstrip("s"), word.lower().rstrip("s")):
        if candidate in _BASE and not (candidate != word and len(candidate) == 1):
            return _BASE[candidate]
    for prefix, scale in (*_IEC.items(), *_SI.items()):
        if word.startswith(prefix) and word[len(prefix) :] in (
            "B",
            "b",
            "bit",
            "byte",
            "bytes",
            "bits",
            "W",
            "J",
            "Wh",
            "gpu",
            "param",
            "params",
        ):
            factor, dims = _BASE[word[len(prefix) :].rstrip("s")]
            return scale * factor, dims
    raise UnitError(f"unknown unit {brief(word)}")


def _unit(text: str) -> tuple[float, Dims]:
    """Factor to base units and dimensions of a unit expression such as "MB/s/TiB" or "USD/1000
    requests".

    Units one after the other multiply ("node-days"); all that follows a "/" or "per" divides; a
    count may stand there, and only there.
    """
    factor, dims, sign, at = 1.0, dict[str, int](), 1, 0
    text = (
        text.replace("CO₂", "CO2")
        .replace("CO2eq", "CO2e")
        .replace("GPU", "gpu")
        .replace("USD", "usd")
        .strip()
    )
    while at < len(text):
        found = _ATOM.match(text, at)
        if not found or (not found["over"] and bool(found["times"]) != bool(at)):
            raise UnitError(f"cannot read the unit {brief(text)}")
        if found["over"]:
            sign = -1
        size, parts = _atom(found["word"])
        size *= float(found["count"] or 1)
        if not 0 < size < math.inf:
            raise UnitError(f"cannot read the unit {brief(text)}")
        factor *= size**sign
        for name, power in parts.items():
            dims[name] = dims.get(name, 0) + sign * power
        at = found.end()
    return factor, tuple(sorted((name, power) for name, power in dims.items() if power))


def parse(text: str | float | int, unit: str) -> float:
    """The value in base units of a text such as "30 GB/s"; `unit` is a key of UNITS.

    >>> (
    ...     parse("30 GB/s", "bytes_per_s"),
    ...     parse("3.8 /1000 node-days", "failures_per_node_s") * 86400 * 1000,
    ... )
    (30000000000.0, 3.8)
    >>> parse("405B", ""), parse("12 %", "")
    (405000000000.0, 0.12)
    """
    wanted, example = UNITS[unit]
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise UnitError(f"expected a quantity such as {example!r}, got {type(text).__name__}")
    if not isinstance(text, str):
        return _bare(text, wanted, example)
    number, rest = _number_and_unit(text, example)
    if not wanted and rest in _COUNT:
        return _finite(number * _COUNT[rest], text)
    if not rest:
        raise UnitError(f"{brief(text)} has no unit", remedy=f"give one, e.g. {example!r}")
    try:
        factor, dims = _unit(rest)
    except UnitError as error:
        raise UnitError(
            f"{brief(text)}: {error.problem}", remedy=f"write e.g. {example!r}"
        ) from None
    if dims != wanted:
        raise UnitError(
            f"{brief(text)} is {_dimension_words(dims)}, expected {unit or 'a plain number'}",
            remedy=f"write e.g. {example!r}",
        )
    return _finite(number * factor, text)


def _bare(value: float, wanted: Dims, example: str) -> float:
    """A number that is no text."""
    is_short = abs(value) < 1e300
    if wanted:
        raise UnitError(
            f"{value if is_short else 'a number'} has no unit", remedy=f"give one, e.g. {example!r}"
        )
    return _finite(value, str(value) if is_short or value != value else "a number this large")


def _number_and_unit(text: str, example: str) -> tuple[float, str]:
    """What a text starts with, and the rest; a dollar sign is a unit that stands before."""
    if len(text) > 200:
        raise UnitError("a quantity of more than 200 characters", remedy=f"write e.g. {example!r}")
    body = text.strip()
    found = _NUMBER.match(body.removeprefix("$"))
    if not found:
        raise UnitError(
            f"{brief(text)} does not start with a number", remedy=f"write e.g. {example!r}"
        )
    digits, rest = found.group(1), found.group(2).strip()
    if rest.startswith(","):
        raise UnitError(
            f"{brief(text)} has a comma in its number",
            remedy=f"write a decimal point and no thousands separator, e.g. {example!r}",
        )
    if body.startswith("$"):
        rest = ("usd " if rest.startswith("per") else "usd") + rest
    return _finite(float(digits.replace("_", "")), text), rest


def _dimension_words(dims: Dims) -> str:
    plain = next(
        (
            unit
            for unit, (known, _) in UNITS.items()
            if known == dims and unit not in ("bytes_per_param", "failures_per_s")
        ),
        None,
    )
    if plain == "":
        return "a plain number"
    return plain or " ".join(f"{name}^{power}" if power != 1 else name for name, power in dims)


def _finite(value: float, text: str) -> float:
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise UnitError(f"{brief(text)} is not a finite number")
    return value


UNITS: Final[dict[str, tuple[Dims, str]]] = {
    unit: (_unit(_number_and_unit(example, example)[1])[1], example)
    for unit, example in _EXAMPLES.items()
}
"""suffix of a name -> its dimensions, and an example a person can copy"""


def to_mw(power_w: Any) -> Any:
    return power_w / 1e6


def to_kwh(energy_j: Any) -> Any:
    return energy_j / KWH_J


def to_hours(time_s: Any) -> Any:
    return time_s / HOUR_S
