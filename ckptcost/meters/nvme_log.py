"""NVMe's SMART log (page 02h) and controller identity, as raw pages or as nvme-cli's JSON: what
they say of energy, power and writes.

Offsets are those of the NVM Express base specification 2.1 and of nvme-cli 3.0
(libnvme/src/nvme/nvme-types-base.h: nvme_smart_log, nvme_id_ctrl, nvme_id_psd). Power is never a
plain number of watts: 16 bits of value have 2 bits of scale beside them, where scale 0 means not
reported. nvme-cli before 3.0 leaves energy and power out of its JSON, so the raw page is the better
thing to ask for.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ckptcost.core.units import HOUR_S
from ckptcost.meters.base import NOTHING

PAGE_BYTES = 512
IDENTITY_BYTES = 4096
DATA_UNIT_BYTES = 512_000.0
"""a thousand sectors of 512 bytes; the drive rounds up"""
_PER_W = {1: 10_000, 2: 100}
"""steps of a watt by the two bits of a scale"""
_MOST_PER_W = (100, 10_000)
"""by the one bit of scale beside a state's maximum power"""
_SAMPLE_S = {1: 1e-6, 2: 1e-5, 3: 1e-4, 4: 1e-3, 5: 1e-2}
_POWER_STATES_AT, _POWER_STATE_BYTES, _MOST_STATES = 2048, 32, 32


def scaled_w(value: int, scale: int) -> float:
    """Watts of a value with its scale; NaN for "not reported" and for scales that do not exist.

    >>> scaled_w(825, 2), scaled_w(825, 0)
    (8.25, nan)
    """
    return value / _PER_W[scale] if value and scale in _PER_W else NOTHING


class Smart(NamedTuple):
    energy_j: float
    """operational energy since manufacture: whole watt-hours, rounded up; NaN where the drive
    reports none"""
    power_w: float
    """mean of the drive's own samples over the last second; NaN where it reports none"""
    written_bytes: float
    """what hosts wrote to the drive; what went to its cells is another page's business"""
    read_bytes: float
    power_raw: int | None
    """all 32 bits of the power field; not 0 beside an unknown power is a drive that gives no
    scale"""

    @property
    def of_whole_subsystem(self) -> bool:
        """The power measurement is of the NVM subsystem as a whole (type 0) and not of a vendor's
        own kind."""
        return self.power_raw is not None and (self.power_raw >> 20) & 0x3F == 0


def _smart(
    energy_wh: int | None, power: int | None, units_written: int | None, units_read: int | None
) -> Smart:
    return Smart(
        energy_wh * HOUR_S if energy_wh else NOTHING,
        scaled_w(power & 0xFFFF, (power >> 16) & 3) if power else NOTHING,
        NOTHING if units_written is None else units_written * DATA_UNIT_BYTES,
        NOTHING if units_read is None else units_read * DATA_UNIT_BYTES,
        power,
    )


def smart_of_page(page: bytes) -> Smart:
    """From the 512 bytes themselves. Raises ValueError for anything shorter."""
    if len(page) < PAGE_BYTES:
        raise ValueError(f"a SMART log has {PAGE_BYTES} bytes, not {len(page)}")

    def at(start: int, length: int) -> int:
        return int.from_bytes(page[start : start + length], "little")

    return _smart(at(232, 8), at(240, 4), at(48, 16), at(32, 16))


def _whole(found: dict[str, Any], key: str) -> int | None:
    """Versions differ in whether large numbers are text, and some group the digits."""
    value = found.get(key)
    if isinstance(value, str):
        value = value.replace(",", "").strip()
    try:
        return int(value) if value is not None and not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _loaded(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not the JSON of nvme-cli: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("not the JSON of nvme-cli: no object")
    return found


def smart_of_json(text: str | bytes) -> Smart:
    """From `nvme smart-log -o json`; energy and power are there from nvme-cli 3.0 on. Raises
    ValueError for anything else."""
    found = _loaded(text)
    if "data_units_written" not in found:
        raise ValueError("not the JSON of nvme smart-log: no data_units_written")
    names = (
        "op_lifetime_energy_consumed",
        "interval_power_measurement",
        "data_units_written",
        "data_units_read",
    )
    return _smart(*(_whole(found, name) for name in names))


class PowerState(NamedTuple):
    most_w: float
    """sustained maximum"""
    idle_w: float
    """typical over 30 s at rest"""
    active_w: float
    """largest mean over 10 s under the workload that the drive names"""
    works: bool
    """it answers reads and writes in this state"""


class Identity(NamedTuple):
    serial: str
    model: str
    firmware: str
    states: tuple[PowerState, ...]
    sample_s: float
    """longest time between two of the drive's power samples; NaN where it reports none"""


def _state(
    most: int,
    most_scale: int,
    not_working: int,
    idle: int,
    idle_scale: int,
    active: int,
    active_scale: int,
) -> PowerState:
    most_w = most / _MOST_PER_W[most_scale & 1] if most else NOTHING
    return PowerState(
        most_w, scaled_w(idle, idle_scale), scaled_w(active, active_scale), not not_working
    )


def _sample_s(rate: int) -> float:
    return (
        (rate & 0xFF) * _SAMPLE_S[rate >> 8] if rate & 0xFF and rate >> 8 in _SAMPLE_S else NOTHING
    )


def identity_of_page(page: bytes) -> Identity:
    """From the 4096 bytes of Identify Controller. Raises ValueError for anything shorter."""
    if len(page) < IDENTITY_BYTES:
        raise ValueError(f"an identity has {IDENTITY_BYTES} bytes, not {len(page)}")

    def text(start: int, end: int) -> str:
        return page[start:end].decode("ascii", "replace").strip(" \0")

    def at(start: int, length: int) -> int:
        return int.from_bytes(page[start : start + length], "little")

    states = []
    for number in range(min(page[263] + 1, _MOST_STATES)):
        base = _POWER_STATES_AT + number * _POWER_STATE_BYTES
        flags = page[base + 3]
        states.append(
            _state(
                at(base, 2),
                flags & 1,
                flags & 2,
                at(base + 16, 2),
                page[base + 18] >> 6,
                at(base + 20, 2),
                page[base + 22] >> 6,
            )
        )
    return Identity(text(4, 24), text(24, 64), text(64, 72), tuple(states), _sample_s(at(392, 2)))


def identity_of_json(text: str | bytes) -> Identity:
    """From `nvme id-ctrl -o json`. Raises ValueError for anything else."""
    found = _loaded(text)
    rows = found.get("psds")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not the JSON of nvme id-ctrl: no psds")
    names = (
        "max_power",
        "max_power_scale",
        "non-operational_state",
        "idle_power",
        "idle_scale",
        "active_power",
        "active_scale",
    )
    states = tuple(_state(*(_whole(row, name) or 0 for name in names)) for row in rows)
    serial, model, firmware = (str(found.get(key, "")).strip() for key in ("sn", "mn", "fr"))
    return Identity(serial, model, firmware, states, _sample_s(_whole(found, "ipmsr") or 0))
