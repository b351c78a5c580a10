"""Numbers as people read them. Unknown is a dash, never a zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ckptcost.first.core.units import DAY_S, HOUR_S, KWH_J, MONTH_S

DASH = "-"
NEVER = "never"
"""an infinite amount: the run would not end"""
LEAST_OF_UNIT = 0.1
"""what is shorter is told in a smaller unit"""


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits: thousands grouped, M to P for large numbers, powers of ten beyond.

    >>> (
    ...     number(1829.6),
    ...     number(0.37249),
    ...     number(12.0),
    ...     number(1.2e7),
    ...     number(None),
    ...     number(0.0),
    ...     number(4.2e25),
    ... )
    ('1,830', '0.372', '12', '12M', '-', '0', '4.2e25')
    """
    if value is None or value != value:
        return DASH
    if math.isinf(value):
        return NEVER
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-3 or size >= 999.5e15:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"
    for scale, mark in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if size >= scale * 0.9995:
            return _significant(value / scale, digits) + mark
    return _significant(value, digits)


def _significant(value: float, digits: int) -> str:
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    if places <= 0:
        return f"{rounded:,.0f}"
    text = f"{rounded:.{places}f}"
    return text.rstrip("0").rstrip(".")


def duration(seconds: float | None) -> str:
    """Seconds up to an hour and a bit, then hours, then days.

    >>> duration(0.54), duration(100.0), duration(10_000.0), duration(7200.0), duration(4_665_600.0)
    ('0.54 s', '100 s', '10,000 s', '7,200 s', '54 d')
    """
    if seconds is None or seconds != seconds or math.isinf(seconds):
        return number(seconds)
    if abs(seconds) <= 10_800:
        return f"{number(seconds)} s"
    if abs(seconds) <= 2 * DAY_S:
        return f"{number(seconds / HOUR_S)} h"
    return f"{number(seconds / DAY_S)} d"


def durations(seconds: Sequence[float | None]) -> list[str]:
    """Those of one column: in the unit of the longest, but for what is much shorter.

    >>> durations([100.0, 7200.0, 50_000.0, None]), durations([0.5, 4_665_600.0])
    (['100 s', '2 h', '13.9 h', '-'], ['0.5 s', '54 d'])
    """
    most = max(
        (abs(each) for each in seconds if each is not None and math.isfinite(each)), default=0.0
    )
    unit_s, unit = (
        (1.0, "s") if most <= 10_800 else (HOUR_S, "h") if most <= 2 * DAY_S else (DAY_S, "d")
    )
    return [
        duration(each)
        if each is None or (each and not LEAST_OF_UNIT * unit_s <= abs(each) < math.inf)
        else f"{number(each / unit_s)} {unit}"
        for each in seconds
    ]


def size(bytes_: float | None) -> str:
    """Decimal bytes.

    >>> size(2e12), size(104.7e9)
    ('2 TB', '105 GB')
    """
    return _scale_unit(bytes_, "B")


def rate(bytes_per_s: float | None) -> str:
    """Decimal bytes per second.

    >>> rate(2e8), rate(3e10)
    ('0.2 GB/s', '30 GB/s')
    """
    if bytes_per_s is not None and 1e8 <= bytes_per_s < 1e9:
        return f"{number(bytes_per_s / 1e9)} GB/s"
    return _scale_unit(bytes_per_s, "B/s")


def power(watts: float | None) -> str:
    """Watts as an operator says them.

    >>> power(11.15e6), power(640.0)
    ('11.2 MW', '640 W')
    """
    return _scale_unit(watts, "W")


def _scale_unit(value: float | None, unit: str) -> str:
    if value is None or value != value or math.isinf(value):
        return number(value)
    for scale, mark in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale * 0.9995:
            return f"{number(value / scale)} {mark}{unit}"
    return f"{number(value)} {unit}"


def count(value: float | None) -> str:
    """Things that are counted: exact while they are whole.

    >>> count(1024.0), count(2592.4), count(16384.0)
    ('1,024', '2,590', '16,384')
    """
    if value is not None and math.isfinite(value) and abs(value) < 1e9 and value == int(value):
        return f"{int(value):,}"
    return number(value)


_PEOPLE = {
    "w": (1.0, "W"),
    "j_per_byte": (1e-9, "J/GB"),
    "usd_per_gpu_s": (1 / HOUR_S, "USD/GPU-h"),
    "usd_per_j": (1 / KWH_J, "USD/kWh"),
    "kgco2e_per_j": (1e-3 / KWH_J, "g/kWh"),
    "kgco2e_per_gpu_s": (1e-3 / HOUR_S, "g/GPU-h"),
    "usd_per_byte_s": (1e-9 / MONTH_S, "USD/GB-month"),
    "failures_per_node_s": (1e-3 / DAY_S, "/1000 node-days"),
    "failures_per_gpu_s": (1e-3 / DAY_S, "/1000 GPU-days"),
    "failures_per_s": (1 / DAY_S, "/day"),
    "per_s": (1e6 / 2**40, "MB/s/TiB"),
    "usd_per_s": (1 / HOUR_S, "USD/h"),
    "usd_per_byte": (1e-9, "USD/GB"),
    "usd_per_request": (1e-3, "USD/1000 requests"),
    "bytes_per_param": (1.0, "B"),
    "files_per_s": (1.0, "files/s"),
    "j": (KWH_J, "kWh"),
    "gpu_s": (HOUR_S, "GPU-h"),
    "usd": (1.0, "USD"),
    "kgco2e": (1.0, "kgCO2e"),
    "l": (1.0, "L"),
    "l_per_j": (1 / KWH_J, "L/kWh"),
}


def amount(value: float | None, unit: str) -> str:
    """A base-unit value with the unit that people use.

    >>> amount(3.6e10, "j"), amount(3e10, "bytes_per_s")
    ('10,000 kWh', '30 GB/s')
    """
    if value is None or value != value or math.isinf(value):
        return number(value)
    if unit in ("bytes", "bytes_per_s", "s"):
        return {"bytes": size, "bytes_per_s": rate, "s": duration}[unit](value)
    scale, name = _PEOPLE.get(unit, (1.0, unit))
    return f"{number(value / scale)} {name}".rstrip()


def quantity(value: float | None, unit: str) -> str:
    """The same as its field writes it, so that it can be read back.

    >>> quantity(3e10, "bytes_per_s"), quantity(1e-7, "kgco2e_per_j"), quantity(0.49, "")
    ('30 GB/s', '360 g/kWh', '0.49')
    """
    return amount(value, unit).replace(",", "")


def quantities(
    low: float | None,
    high: float | None,
    unit: str,
    said: Callable[[float, float], str] | None = None,
) -> str:
    """A range with its unit, or nothing.

    >>> quantities(1200.0, 4600.0, "w"), quantities(30.0, 600.0, "s"), quantities(None, None, "s")
    ('1,200-4,600 W', '30 s-600 s', '')
    """
    if low is None or high is None or low == high:
        return ""
    if unit in ("bytes", "bytes_per_s", "s"):
        return f"{quantity(low, unit)}-{quantity(high, unit)}"
    scale, name = _PEOPLE.get(unit, (1.0, unit))
    return f"{(said or between)(low / scale, high / scale)} {name}".rstrip()


def share(fraction: float | None) -> str:
    """A fraction as a percentage.

    >>> share(0.7822), share(0.00012)
    ('78.2 %', '0.012 %')
    """
    if fraction is None or fraction != fraction or math.isinf(fraction):
        return number(fraction)
    return f"{number(fraction * 100)} %"


def points(fraction: float) -> str:
    """A difference of two shares.

    >>> points(0.844), points(-0.01)
    ('84.4 points', '-1 points')
    """
    return f"{share(fraction).removesuffix(' %')} points"


def between(low: float | None, high: float | None) -> str:
    """A range, or nothing when there is none.

    >>> between(15.0, 20.0), between(None, None), between(3.0, 3.0)
    ('15-20', '', '')
    """
    if low is None or high is None or low == high:
        return ""
    return f"{number(low)}-{number(high)}"


def drawn_between(low: float | None, high: float | None) -> str:
    """A range that comes from draws: as many digits as hold, two, or three where two would make its
    ends one.

    >>> drawn_between(5270.0, 11210.0), drawn_between(96.5, 97.2), drawn_between(1.0, None)
    ('5,300-11,000', '96-97', '')
    >>> drawn_between(96.52, 96.91)
    '96.5-96.9'
    """
    if low is None or high is None or low == high:
        return ""
    texts = [[number(end, digits) for end in (low, high)] for digits in (2, 3)]
    ends = texts[0] if texts[0][0] != texts[0][1] else texts[1]
    return "-".join(ends)


def bracketed(text: str) -> str:
    """What is said in brackets behind something, or nothing."""
    return f" ({text})" if text else ""


def ends_text(low: float | None, high: float | None, said: Callable[[float], str] = number) -> str:
    """ " (15 to 20)", or nothing where an end is not known."""
    return "" if low is None or high is None else f" ({said(low)} to {said(high)})"


def count_text(things: float, what: str) -> str:
    """How many of what.

    >>> count_text(1, "save"), count_text(2000, "save")
    ('1 save', '2,000 saves')
    """
    return f"{count(things)} {what}{'' if things == 1 else 's'}"


def some(names: Sequence[str], most: int = 6) -> str:
    """A list that does not drown a sentence.

    >>> some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
