"""Quantities as texts that the parser takes back: what a field shows, and what a number typed
without a unit means."""

from __future__ import annotations

import math
import re

from ckptcost.catalog.keys import unit_of
from ckptcost.core.units import UNITS, parse
from ckptcost.errors import InputError
from ckptcost.present.amounts import quantity
from ckptcost.scenario import Input
from ckptcost.tui.desk import Desk

_BARE = re.compile(r"\d[\d_]*\.?\d*|\.\d+")


def text_of(found: Input) -> str:
    """An input as a flag would give it: as it was written, else as short as it can be without
    changing it."""
    written = found.figure.text.strip()
    bare = not found.unit and _BARE.fullmatch(written)
    if written == "all" or (not bare and _means(written, found.unit) == found.figure.value):
        return written
    return exact_text(found.figure.value, found.unit)


def exact_text(value: float, unit: str) -> str:
    """The shortest text that is read back as exactly this value.

    >>> (
    ...     exact_text(3e10, "bytes_per_s"),
    ...     exact_text(630.0, "w"),
    ...     exact_text(1024.0, ""),
    ...     exact_text(4183.27, "s"),
    ... )
    ('30 GB/s', '630 W', '1024', '4183.27 s')
    """
    if math.isinf(value):
        return "all"
    name = re.sub(r"^[\d.e+-]+ ?", "", quantity(value, unit)) if unit else ""
    one = _means(f"1 {name}", unit)
    for digits in range(3, 18):
        text = f"{_plain(value / one, digits)} {name}".strip()
        if _means(text, unit) == value:
            return text
    return f"{value!r} {_BASE[unit]}".strip()


_BASE = {
    "bytes": "B",
    "bytes_per_s": "B/s",
    "s": "s",
    "w": "W",
    "j": "J",
    "j_per_byte": "J/B",
    "usd_per_gpu_s": "USD/GPU-s",
    "usd_per_j": "USD/J",
    "kgco2e_per_j": "kg/J",
    "kgco2e_per_gpu_s": "kg/GPU-s",
    "usd_per_byte_s": "USD/B-s",
    "failures_per_node_s": "/node-s",
    "failures_per_gpu_s": "/GPU-s",
    "failures_per_s": "/s",
    "per_s": "/s",
    "usd_per_s": "USD/s",
    "usd_per_byte": "USD/B",
    "usd_per_request": "USD/request",
    "bytes_per_param": "B",
    "files_per_s": "files/s",
    "gpu_s": "GPU-s",
    "usd": "USD",
    "kgco2e": "kg",
    "l": "L",
    "l_per_j": "L/J",
    "": "",
}
"""units whose factor is 1, in which every number can be written exactly"""


def _plain(value: float, digits: int) -> str:
    """Digits without an exponent where people write none.

    >>> _plain(1024.0, 4), _plain(0.49, 3), _plain(2e-7, 3)
    ('1024', '0.49', '2e-07')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < 1e9 else text


def _means(text: str, unit: str) -> float:
    try:
        return parse(text, unit)
    except InputError:
        return math.nan


def with_unit(desk: Desk, path: str, text: str) -> str:
    """A number alone is meant in the unit that stood there before, a percentage as well; without
    one, in that of the example."""
    section, _, key = path.partition(".")
    unit = unit_of(section, key)
    if not _BARE.fullmatch(text):
        return text
    now = _now(desk, path) or (UNITS[unit][1] if unit else "")
    name = _BARE.sub("", now, count=1).strip() if unit else "%" * now.endswith("%")
    return f"{text} {name}" if name and not math.isnan(_means(f"1 {name}", unit)) else text


def _now(desk: Desk, path: str) -> str:
    """What stands there; of a scenario that cannot be resolved, what was written."""
    try:
        return next((text_of(i) for i in desk.resolved().inputs if i.path == path), "")
    except InputError:
        return desk.edits.get(path, "")
