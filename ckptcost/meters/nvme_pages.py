"""The two pages that an NVMe drive says of itself, SMART log and identity: asked for through the
kernel's admin passthrough or through nvme-cli, and read.

Both ways need CAP_SYS_ADMIN or root. Only Get Log Page 02h and Identify Controller are ever sent;
neither writes. An admin command takes some 100 us, and may wake a drive that sleeps in a
non-operational state. Offsets are those of the NVM Express base specification 2.1 and of nvme-cli
3.0 (libnvme/src/nvme/nvme-types-base.h: nvme_smart_log, nvme_id_ctrl, nvme_id_psd). Power is never
a plain number of watts: 16 bits of value have 2 bits of scale beside them, where scale 0 means not
reported. nvme-cli before 3.0 leaves energy and power out of its JSON, so the raw page is the better
thing to ask for. _IOWR('N', 0x41, 72 bytes), linux/nvme_ioctl.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

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


def scale_w(value: int, scale: int) -> float:
    """Watts of a value with its scale; NaN for "not reported" and for scales that do not exist.

    >>> scale_w(825, 2), scale_w(825, 0)
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
        scale_w(power & 0xFFFF, (power >> 16) & 3) if power else NOTHING,
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
        most_w, scale_w(idle, idle_scale), scale_w(active, active_scale), not not_working
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


Page = Literal["smart", "identity"]
AskPage = Callable[[str, Page], bytes]
"""device name (nvme0) and page to its bytes; raises OSError"""

ADMIN_CMD = 0xC0484E41
_COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")
_EVERY_NAMESPACE = 0xFFFFFFFF
_TIMEOUT_MS = 1000
_SENT: dict[Page, tuple[int, int, int, int]] = {
    # opcode, namespace, bytes, dword 10: number of dwords less one and the log's id; or what to
    # identify
    "smart": (0x02, _EVERY_NAMESPACE, PAGE_BYTES, (PAGE_BYTES // 4 - 1) << 16 | 0x02),
    "identity": (0x06, 0, IDENTITY_BYTES, 0x01),
}


class Passthrough:
    """Pages through the ioctl, with the device kept open."""

    how = "admin passthrough"

    def __init__(
        self, dev: Path = Path("/dev"), ioctl: Callable[[int, int, Any], int] = fcntl.ioctl
    ) -> None:
        self._dev, self._ioctl = dev, ioctl
        self._fds: dict[str, int] = {}
        self._buffer = ctypes.create_string_buffer(IDENTITY_BYTES)

    def __call__(self, name: str, page: Page) -> bytes:
        fd = self._fds.get(name)
        if fd is None:
            fd = self._fds[name] = os.open(self._dev / name, os.O_RDONLY | os.O_CLOEXEC)
        opcode, namespace, length, dword10 = _SENT[page]
        ctypes.memset(self._buffer, 0, length)
        address = ctypes.addressof(self._buffer)
        command = bytearray(
            _COMMAND.pack(
                opcode,
                0,
                0,
                namespace,
                0,
                0,
                0,
                address,
                0,
                length,
                dword10,
                0,
                0,
                0,
                0,
                0,
                _TIMEOUT_MS,
                0,
            )
        )
        try:
            status = self._ioctl(fd, ADMIN_CMD, command)
        except OSError:
            self._fds.pop(name)
            os.close(fd)
            raise
        if status:
            raise OSError(0, f"the drive refused it with NVMe status {status:#x}")
        return self._buffer.raw[:length]

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()


def run(words: Sequence[str]) -> bytes:
    """Standard output of a command; OSError with what it complained of."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(0, f"{words[0]} did not answer in 10 s") from error
    if done.returncode:
        raise OSError(
            0,
            (done.stderr or done.stdout).decode("utf-8", "replace").strip()[:200]
            or f"{words[0]} ended with {done.returncode}",
        )
    return done.stdout


class Commands:
    """Pages through nvme-cli, raw: its JSON has neither energy nor power before version 3.0."""

    how = "nvme-cli"

    def __init__(
        self,
        dev: Path = Path("/dev"),
        runner: Callable[[Sequence[str]], bytes] = run,
        program: str = "",
    ) -> None:
        self._dev, self._runner = dev, runner
        self._program = (
            program
            or shutil.which("nvme", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
            or "nvme"
        )

    def __call__(self, name: str, page: Page) -> bytes:
        verb = "smart-log" if page == "smart" else "id-ctrl"
        return self._runner((self._program, verb, str(self._dev / name), "--output-format=binary"))

    def close(self) -> None:
        """Nothing is kept."""
