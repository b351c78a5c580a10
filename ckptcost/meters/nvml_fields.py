"""What NVML's power fields mean on which chip and driver. Numbers of the C interface stand here,
because older bindings lack some names.

The table of windows and the steady-state errors are from "Part-time Power Measurements:
nvidia-smi's Lack of Attention" (arXiv 2312.02741, SC24) and its authors' published results; the
meaning of power usage before and after a driver is in the comments of nvml.h.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

ENERGY, AVERAGE, INSTANT, USAGE = 191, 185, 186, -1
"""field ids; USAGE is nvmlDeviceGetPowerUsage, which is no field"""
GPU, MODULE, MEMORY = 0, 1, 2
SCOPES = {GPU: "gpu", MODULE: "module", MEMORY: "memory"}
POWER_SAMPLES, MODULE_POWER_SAMPLES = 0, 7

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
_GA100 = re.compile(r"\b(A100|A800|A30|CMP 170HX)\b")
SUPERCHIP = re.compile(r"\bG[HB]\d{2,3}\b")
"""GH200, GB200, GB300, GB10: a Grace CPU and its GPU on one module"""

VALUE = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""member of nvmlValue_t by nvmlValueType_t"""


class Sensor(NamedTuple):
    """How a power reading comes about; None is not published."""

    averaging_s: float | None = None
    tick_s: float | None = None
    looks: float | None = None
    note: str = ""


_SECOND = Sensor(1.0, 0.1, 1.0)
_QUARTER = Sensor(0.025, 0.1, 0.25, "sees 25 ms of each 100 ms")
_TENTH = Sensor(0.1, 0.1, 1.0)
_HALF = Sensor(0.01, 0.02, 0.5, "sees 10 ms of each 20 ms")
_SENSORS = {
    ("Hopper", AVERAGE): _SECOND,
    ("Hopper", INSTANT): _QUARTER,
    ("Hopper", USAGE): _SECOND,
    ("Ada", AVERAGE): _SECOND,
    ("Ada", INSTANT): _TENTH,
    ("Ada", USAGE): _SECOND,
    ("Ampere", AVERAGE): _SECOND,
    ("Ampere", INSTANT): _TENTH,
    ("Ampere", USAGE): _SECOND,
    ("GA100", INSTANT): _QUARTER,
    ("GA100", USAGE): _QUARTER,
    ("Turing", INSTANT): _TENTH,
    ("Turing", USAGE): _TENTH,
    ("Volta", INSTANT): _HALF,
    ("Volta", USAGE): _HALF,
    ("Pascal", INSTANT): _HALF,
    ("Pascal", USAGE): _HALF,
}
_OFF = (  # steady state against an external meter, as a fraction of the truth
    (re.compile(r"A100.*PCI", re.I), -0.055),
    (re.compile(r"RTX 3090\b"), -0.040),
    (re.compile(r"RTX 4090\b"), -0.043),
    (re.compile(r"RTX 3070 Ti"), -0.023),
    (re.compile(r"RTX 2080 Ti"), -0.062),
    (re.compile(r"\bP100\b"), 0.005),
    (re.compile(r"\bK80\b"), -0.089),
)


def chip(architecture: int | None, name: str) -> str:
    """The row of the table.

    >>> chip(7, "NVIDIA A100-SXM4-80GB"), chip(7, "NVIDIA RTX A3000"), chip(9, "NVIDIA H200")
    ('GA100', 'Ampere', 'Hopper')
    """
    kind = ARCHITECTURES.get(-1 if architecture is None else architecture, "")
    return "GA100" if kind == "Ampere" and _GA100.search(name) else kind


def sensor(kind: str, field: int, driver: str) -> Sensor:
    """How a field comes about on this chip under this driver.

    >>> (
    ...     sensor("Hopper", INSTANT, "590.48.01").looks,
    ...     sensor("Ampere", USAGE, "530.30.02").averaging_s,
    ... )
    (0.25, 0.1)
    """
    branch = driver.split(".", 1)[0]
    if field == USAGE and kind in {"Ampere", "Ada"} and branch == "530":
        return _TENTH._replace(note="under driver 530 a mean of 100 ms, before and after it of 1 s")
    if field == USAGE:
        meant = {"": "its meaning depends on chip and driver, and the chip is not known"}.get(
            kind,
            (
                "instantaneous, as nvml.h has it for GA100 and older"
                if kind in {"GA100", "Turing", "Volta", "Pascal", "Maxwell", "Kepler"}
                else "a mean of 1 s, as nvml.h has it for Ampere other than GA100 and newer"
            ),
        )
        known = _SENSORS.get((kind, USAGE), Sensor(1.0 if kind in {"Blackwell", "Rubin"} else None))
        return known._replace(note="; ".join(part for part in (meant, known.note) if part))
    return _SENSORS.get(
        (kind, field),
        Sensor(
            1.0 if field == AVERAGE else None, note="window and period not published for this chip"
        ),
    )


def steady_error(name: str) -> float | None:
    """Published error of the power sensor at constant load, with its sign; None where nobody
    published one.

    >>> steady_error("NVIDIA A100-PCIE-40GB"), steady_error("NVIDIA H200")
    (-0.055, None)
    """
    return next((error for pattern, error in _OFF if pattern.search(name)), None)


LAG_S: Final = 0.1
"""How late the energy counter may be published, at most: assumed, for nobody measured it. Its ticks
are 20 to 100 ms by board, and power sensors of the same boards are renewed each 100 ms; a board
that ticks faster need not sense faster."""


def energy_note(kind: str) -> str:
    """What is not settled about the energy counter."""
    if kind in {"Hopper", "GA100"}:
        return (
            "whether the counter, like this chip's power sensor, sees only 25 % of the time is not"
            " settled"
        )
    return ""


def number(value: Any, value_type: int) -> float:
    """The member of an nvmlValue_t that its type names."""
    member = VALUE.get(value_type)
    return float(getattr(value, member)) if member else float("nan")
