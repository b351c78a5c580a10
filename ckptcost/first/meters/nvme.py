"""What NVMe drives say of themselves: power of the last second, watt-hours since manufacture, bytes
written.

Few drives report power or energy yet; one that does not gives an absence, and `nvme_model` can
stand in for it. The energy counter has steps of 3,600 J, a few checkpoints each, so the power is
the one to integrate. The written bytes are what hosts sent; over the bytes of a checkpoint that is
the write amplification down to the drive, not the one inside it.

Two pages are asked for, SMART log and identity, through the kernel's admin passthrough or through
nvme-cli. Both ways need CAP_SYS_ADMIN or root. Only Get Log Page 02h and Identify Controller are
ever sent; neither writes. An admin command takes some 100 us, and may wake a drive that sleeps in a
non-operational state. Offsets are those of the NVM Express base specification 2.1 and of nvme-cli
3.0 (libnvme/src/nvme/nvme-types-base.h: nvme_smart_log, nvme_id_ctrl, nvme_id_psd). Power is never
a plain number of watts: 16 bits of value have 2 bits of scale beside them, where scale 0 means not
reported. nvme-cli before 3.0 leaves energy and power out of its JSON, so the raw page is the better
thing to ask for. _IOWR('N', 0x41, 72 bytes), linux/nvme_ioctl.h.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ckptcost.first.core.channels import Channel
from ckptcost.first.core.units import HOUR_S
from ckptcost.first.meters.base import NOTHING, Absence, Channelwise, FoundMeters
from ckptcost.first.meters.kept import file_text, os_error_text

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
    power_raw: int
    """all 32 bits of the power field; not 0 beside an unknown power is a drive that gives no
    scale"""

    @property
    def of_whole_subsystem(self) -> bool:
        """The power measurement is of the NVM subsystem as a whole (type 0) and not of a vendor's
        own kind."""
        return (self.power_raw >> 20) & 0x3F == 0


def smart_of_page(page: bytes) -> Smart:
    """From the 512 bytes themselves. Raises ValueError for anything shorter."""
    if len(page) < PAGE_BYTES:
        raise ValueError(f"a SMART log has {PAGE_BYTES} bytes, not {len(page)}")

    def at(start: int, length: int) -> int:
        return int.from_bytes(page[start : start + length], "little")

    energy_wh, power = at(232, 8), at(240, 4)
    return Smart(
        energy_wh * HOUR_S if energy_wh else NOTHING,
        scale_w(power & 0xFFFF, (power >> 16) & 3),
        at(48, 16) * DATA_UNIT_BYTES,
        at(32, 16) * DATA_UNIT_BYTES,
        power,
    )


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
        flags, most = page[base + 3], at(base, 2)
        states.append(
            PowerState(
                most / _MOST_PER_W[flags & 1] if most else NOTHING,
                scale_w(at(base + 16, 2), page[base + 18] >> 6),
                scale_w(at(base + 20, 2), page[base + 22] >> 6),
                not flags & 2,
            )
        )
    samples, unit = page[392], page[393]
    sample_s = samples * _SAMPLE_S[unit] if samples and unit in _SAMPLE_S else NOTHING
    return Identity(text(4, 24), text(24, 64), text(64, 72), tuple(states), sample_s)


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
        head = opcode, 0, 0, namespace, 0, 0, 0, address, 0, length, dword10
        command = bytearray(_COMMAND.pack(*head, *(0,) * 5, _TIMEOUT_MS, 0))
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


_NAMESPACE = re.compile(r"nvme(\d+)(?:c\d+)?n(\d+)$")

LIST_DRIVES = "`nvme list` shows the drives"


class Drive(NamedTuple):
    """A drive of this machine: one controller, though it may have more."""

    controller: str
    """nvme0: the device to ask"""
    namespaces: tuple[str, ...]
    """nvme0n1 ...: what /sys/block calls its disks"""
    model: str
    serial: str
    firmware: str

    @property
    def name(self) -> str:
        return f"{self.model} {self.serial}".strip()

    @property
    def domain(self) -> str:
        return f"drive:{self.namespaces[0] if self.namespaces else self.controller}"


def drives(sysfs: Path = Path("/sys")) -> tuple[list[Drive], list[Absence]]:
    """The drives that sit in this machine. A second controller of one drive is not another drive; a
    drive behind a fabric is elsewhere, and its joules are not this node's."""
    found: dict[str, Drive] = {}
    absences = []
    entries = (sysfs / "class" / "nvme").glob("nvme*")
    folders = [folder for folder in entries if re.fullmatch(r"nvme\d+", folder.name)]
    for folder in sorted(folders, key=lambda folder: int(folder.name[4:])):
        transport = file_text(folder / "transport")
        if transport not in ("pcie", ""):
            reason = f"the drive is behind {transport}, in another machine"
            absences.append(Absence(f"nvme {folder.name}", reason, "measure it there", "storage"))
            continue
        serial = file_text(folder / "serial")
        key = file_text(folder / "subsysnqn") or serial or folder.name
        other = found.get(key, Drive(folder.name, (), "", "", ""))
        names = {*_namespaces_in(folder), *other.namespaces}
        found[key] = Drive(
            other.controller,
            tuple(sorted(names, key=lambda name: (len(name), name))),
            file_text(folder / "model"),
            serial,
            file_text(folder / "firmware_rev"),
        )
    return list(found.values()), absences


def _namespaces_in(folder: Path) -> list[str]:
    matches = map(_NAMESPACE.match, (entry.name for entry in folder.glob("nvme*")))
    return [f"nvme{match[1]}n{match[2]}" for match in matches if match]


def _channels_of(drive: Drive, smart: Smart, identity: Identity | None) -> tuple[Channel, ...]:
    source = f"NVMe SMART log of {drive.controller}"
    written = Channel(
        drive.domain,
        "written_bytes",
        f"{source}, bytes 48-63",
        "drive",
        boundary="drive",
        role="detail",
        device=drive.name,
        resolution=DATA_UNIT_BYTES,
        note="what hosts sent to the drive",
    )
    shown = [written, replace(written, quantity="read_bytes", source=f"{source}, bytes 32-47")]
    if smart.energy_j == smart.energy_j:
        energy = replace(
            written,
            quantity="energy_j",
            source=f"{source}, bytes 232-239",
            resolution=HOUR_S,
            note="rounded up to whole watt-hours: too coarse for one checkpoint",
        )
        shown.insert(0, energy)
    if smart.power_w == smart.power_w:
        note = "the whole subsystem" if smart.of_whole_subsystem else "of the vendor's own kind"
        if identity and identity.sample_s == identity.sample_s:
            note += f"; a sample each {identity.sample_s:g} s"
        power = replace(
            written,
            quantity="power_w",
            source=f"{source}, bytes 240-243",
            role="part",
            averaging_s=1.0,
            resolution=0.01,
            note=note,
        )
        shown.insert(0, power)
    return tuple(shown)


class Nvme(Channelwise):
    """Power and energy where the drive reports them, and the bytes; one page a drive, at most once
    a second."""

    def __init__(
        self, chosen: list[tuple[Drive, Smart, Identity | None]], ask: AskPage, how: str
    ) -> None:
        super().__init__("nvme", least_s=1.0, facts={"nvme": how})
        self._ask = ask
        self._plan: list[tuple[Drive, tuple[str, ...]]] = []
        for drive, smart, identity in chosen:
            shown = _channels_of(drive, smart, identity)
            self.channels += shown
            self._plan.append((drive, tuple(channel.quantity for channel in shown)))
            self.facts[drive.domain] = f"{drive.name} firmware {drive.firmware}".strip()

    def read(self, t_ns: int) -> list[float]:
        values: list[float] = []
        for drive, shown in self._plan:
            try:
                smart = smart_of_page(self._ask(drive.controller, "smart"))
            except (OSError, ValueError) as error:
                text = os_error_text(error)
                values += (self.note_missing(drive.domain, text),) * len(shown)
                continue
            self.note_answer(drive.domain)
            values += (getattr(smart, quantity) for quantity in shown)
        return values

    def close(self) -> None:
        close_way(self._ask)


def find(
    *,
    sysfs: Path = Path("/sys"),
    dev: Path = Path("/dev"),
    allow_commands: bool = False,
    ask: AskPage | None = None,
    names: Collection[str] = (),
) -> FoundMeters:
    """The drives of this machine, or those among `names` (nvme0 or nvme0n1): through the admin
    passthrough, and where that is refused and `allow_commands`, through nvme-cli."""
    present, absences = _drives_asked(sysfs, names)
    meters: list[Nvme] = []
    commands = [Commands(dev)] if allow_commands else []
    ways: list[AskPage] = [ask] if ask else [Passthrough(dev), *commands]
    refused: list[tuple[Drive, OSError | ValueError]] = []
    for way in ways:
        chosen, refused = _ask_all(way, present)
        absences += [_no_power(drive, smart) for drive, smart, _ in chosen if isnan(smart.power_w)]
        if chosen:
            meters.append(Nvme(chosen, way, getattr(way, "how", "given")))
        else:
            close_way(way)
        present = [drive for drive, _ in refused]
    absences += [_refusal(drive, error) for drive, error in refused]
    return FoundMeters(tuple(meters), tuple(absences))


def _drives_asked(sysfs: Path, names: Collection[str]) -> tuple[list[Drive], list[Absence]]:
    present, absences = drives(sysfs)
    if names:
        wanted = {name.removeprefix("/dev/") for name in names}
        present = [drive for drive in present if wanted & {drive.controller, *drive.namespaces}]
    if not present and not absences:
        reason = "none of the drives asked for" if names else "no NVMe drive"
        reason += f" in {sysfs}/class/nvme"
        absences.append(Absence("nvme", reason, LIST_DRIVES, "storage"))
    return present, absences


def _refusal(drive: Drive, error: OSError | ValueError) -> Absence:
    device = f"/dev/{drive.controller}"
    remedy = f"as root: nvme smart-log {device}"
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM):
        remedy = (
            f"run as root (it takes CAP_SYS_ADMIN and read permission of {device}), or let"
            " `nvme-model` estimate it"
        )
    reason = f"{device}: {os_error_text(error)}"
    return Absence(f"nvme {drive.domain}", reason, remedy, "storage")


def close_way(way: AskPage) -> None:
    """What it keeps open, if it keeps anything."""
    if closing := getattr(way, "close", None):
        closing()


def _ask_all(
    way: AskPage, present: Sequence[Drive]
) -> tuple[list[tuple[Drive, Smart, Identity | None]], list[tuple[Drive, OSError | ValueError]]]:
    """The drives that answer, with what they say, and those that do not."""
    chosen: list[tuple[Drive, Smart, Identity | None]] = []
    refused: list[tuple[Drive, OSError | ValueError]] = []
    for drive in present:
        try:
            smart = smart_of_page(way(drive.controller, "smart"))
        except (OSError, ValueError) as error:
            refused.append((drive, error))
            continue
        try:
            identity = identity_of_page(way(drive.controller, "identity"))
        except (OSError, ValueError):
            identity = None
        chosen.append((drive, smart, identity))
    return chosen, refused


def _no_power(drive: Drive, smart: Smart) -> Absence:
    reason = "the drive does not report its power"
    if smart.power_raw:
        reason = f"the drive gives {smart.power_raw & 0xFFFF} without a scale for its power"
    remedy = "use `nvme-model`, or a drive and firmware with interval power measurement (NVMe 2.1)"
    return Absence(f"nvme {drive.domain} power", reason, remedy, "storage")
