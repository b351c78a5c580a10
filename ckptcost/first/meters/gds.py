"""What GPUDirect Storage moved: /proc/driver/nvidia-fs/stats.

cuFile transfers between GPU and drive pass by the page cache, and it is not established that
/proc/PID/io sees them. The driver counts operations and whole MiB of the node, all processes
together, but only while its statistics are switched on, which they are not by default. The bytes
arrive on the same disks as all others, so they are details. (NVIDIA/gds-nvidia-fs,
src/nvfs-stat.c.)
"""

from __future__ import annotations

import re
from pathlib import Path

from ckptcost.first.core.channels import Channel, Quantity
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, Channelwise, FoundMeters, none_found
from ckptcost.first.meters.kept import OpenFile, os_error_text

MIB = 1048576.0
_ON = re.compile(rb"^IO stats: (\w+)", re.M)
_WRITES = re.compile(rb"^Writes\s*:\s*n=(\d+) ok=(\d+) .*?writeMiB=(\d+)", re.M)
_READS = re.compile(rb"^Reads\s*:\s*n=(\d+) ok=(\d+) .*?readMiB=(\d+)", re.M)
_VERSION = re.compile(rb"^NVFS Driver\s*\(version: ([\w.]+)\)", re.M)
_QUANTITIES: tuple[Quantity, ...] = ("written_bytes", "read_bytes", "writes", "reads")
UNSEEN = (NOTHING,) * 4


def parse_stats(text: bytes) -> tuple[float, float, float, float]:
    """Bytes written, bytes read, writes and reads that succeeded; NaN where the driver does not
    count.

    >>> parse_stats(
    ...     b"IO stats: Enabled\\nReads : n=2 ok=2 err=0 readMiB=8\\n"
    ...     b"Writes : n=5 ok=4 err=1 writeMiB=16 io_state_err=0\\n"
    ... )
    (16777216.0, 8388608.0, 4.0, 2.0)
    """
    on = _ON.search(text)
    if on and on[1] != b"Enabled":
        return UNSEEN
    wrote, read = _WRITES.search(text), _READS.search(text)
    return (
        float(wrote[3]) * MIB if wrote else NOTHING,
        float(read[3]) * MIB if read else NOTHING,
        float(wrote[2]) if wrote else NOTHING,
        float(read[2]) if read else NOTHING,
    )


class Gds(Channelwise):
    """Four channels of the node's cuFile traffic."""

    def __init__(self, path: Path) -> None:
        super().__init__("gds")
        self._kept = OpenFile(path)
        self.channels = tuple(
            Channel(
                "host.gds",
                quantity,
                str(path),
                "host",
                role="detail",
                resolution=MIB if quantity.endswith("bytes") else 1.0,
            )
            for quantity in _QUANTITIES
        )

    def text(self) -> bytes:
        return self._kept.read_all()

    def read(self, t_ns: int) -> tuple[float, ...]:
        try:
            text = self.text()
        except OSError as error:
            raise MeterLost(f"{self._kept.path}: {os_error_text(error)}") from error
        values = parse_stats(text)
        if any(value == value for value in values):
            self.note_answer("host.gds", "IO statistics are on again")
        else:
            self.note_missing("host.gds", "somebody switched the driver's IO statistics off")
        return values

    def close(self) -> None:
        self._kept.close()


def find(*, procfs: Path = Path("/proc"), sysfs: Path = Path("/sys")) -> FoundMeters:
    path = procfs / "driver" / "nvidia-fs" / "stats"
    switch = sysfs / "module" / "nvidia_fs" / "parameters" / "rw_stats_enabled"
    remedy = (
        "options nvidia-fs rw_stats_enabled=1 in /etc/modprobe.d/nvidia-fs.conf; until the next"
        f" boot, as root: echo 1 > {switch}"
    )
    try:
        meter = Gds(path)
        text = meter.text()
    except OSError as error:
        reason = f"{path}: {os_error_text(error)}"
        if isinstance(error, FileNotFoundError):
            remedy = (
                "where cuFile is used: modprobe nvidia-fs (package nvidia-gds); without the module"
                " nothing is counted"
            )
        elif isinstance(error, PermissionError):
            remedy = (
                f"as root, a line `z {path} 0444 - - -` in /etc/tmpfiles.d/ckptcost-gds.conf, then"
                " systemd-tmpfiles --create"
            )
        return none_found("gds", reason, remedy, "storage")
    if all(value != value for value in parse_stats(text)):
        meter.close()
        off = (found := _ON.search(text)) and found[1] != b"Enabled"
        if off:
            reason = f"{path}: the driver's IO statistics are switched off"
            return none_found("gds", reason, remedy, "storage")
        reason = f"{path} has no line Writes that we know"
        return none_found("gds", reason, "cat it, and report its version", "storage")
    version = _VERSION.search(text)
    if version:
        meter.facts["nvidia-fs"] = version[1].decode("ascii", "replace")
    return FoundMeters((meter,))
