"""How long tasks stood still for storage: the kernel's pressure stall information, of the whole
host or of one cgroup.

`some` is time in which at least one task waited for I/O, `full` time in which none of the non-idle
ones could run. Both are sums in microseconds since boot, so that a difference is exact whatever the
reading rate; the kernel's own averages are not used. Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, Absence, Channelwise, FoundMeters
from ckptcost.first.meters.kept import OpenFile, os_error_text


def stalled_s(text: bytes) -> tuple[float, float]:
    """Seconds of `some` and of `full`; NaN where there is no such line (no `full` for the CPU,
    garbage).

    >>> stalled_s(
    ...     b"some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\\n"
    ...     b"full avg10=0.00 avg60=0.00 avg300=0.00 total=250000"
    ... )
    (1.5, 0.25)
    """
    some = full = NOTHING
    for line in text.splitlines():
        kind, _, rest = line.partition(b" ")
        total = rest.rpartition(b"total=")[2]
        if total.isdigit() and b"total=" in rest:
            if kind == b"some":
                some = int(total) / 1e6
            elif kind == b"full":
                full = int(total) / 1e6
    return some, full


class Pressure(Channelwise):
    """Two channels a file."""

    def __init__(self, files: Iterable[tuple[str, Path]]) -> None:
        """`files`: domain and file. Raises OSError where one cannot be opened or read."""
        super().__init__("pressure")
        self._files: list[tuple[str, OpenFile]] = []
        channels: list[Channel] = []
        for domain, path in files:
            kept = OpenFile(path)
            self._files.append((domain, kept))
            try:
                kept.read()  # a kernel with psi=0 opens and then refuses
            except OSError:
                self.close()
                raise
            scope = "cgroup" if domain.startswith("cgroup:") else "host"
            for word, quantity in (("some", "some_stalled_s"), ("full", "full_stalled_s")):
                channels.append(
                    Channel(
                        domain,
                        quantity,  # type: ignore[arg-type]
                        f"{path} {word}",
                        scope,
                        role="detail",
                        resolution=1e-6,
                    )
                )
        self.channels = tuple(channels)

    def read(self, t_ns: int) -> list[float]:
        values: list[float] = []
        for domain, kept in self._files:
            try:
                values += stalled_s(kept.read())
            except OSError as error:
                values += (self.note_missing(domain, f"{kept.path}: {os_error_text(error)}"),) * 2
                if len(self.silent) == len(self._files):
                    raise MeterLost(f"{kept.path}: {os_error_text(error)}") from error
            else:
                self.note_answer(domain, f"{kept.path} answers again")
        return values

    def close(self) -> None:
        for _, kept in self._files:
            kept.close()


def find(
    *, procfs: Path = Path("/proc"), sysfs: Path = Path("/sys"), group: Path | None = None
) -> FoundMeters:
    """The host's pressure and, where `group` is a cgroup v2 folder (`cgroup.home_of` finds one),
    that cgroup's."""
    wanted = [("host", procfs / "pressure" / "io")]
    if group is not None:
        wanted.append((f"cgroup:{group_name(group, sysfs)}", group / "io.pressure"))
    meters, absences = [], []
    for domain, path in wanted:
        try:
            meters.append(Pressure([(domain, path)]))
        except OSError as error:
            what = "pressure" if domain == "host" else f"pressure {domain}"
            absences.append(
                Absence(what, f"{path}: {os_error_text(error)}", _remedy(error, path), "storage")
            )
    return FoundMeters(tuple(meters), tuple(absences))


def group_name(group: Path, sysfs: Path) -> str:
    """`/job` of `/sys/fs/cgroup/job` and of `/sys/fs/cgroup/unified/job`."""
    top = sysfs / "fs" / "cgroup"
    for root in (top / "unified", top):
        if group.is_relative_to(root):
            name = group.relative_to(root).as_posix()
            return "/" if name == "." else f"/{name}"
    return str(group)


def _remedy(error: OSError, path: Path) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"make it readable: chmod a+r {path}"
    if path.name == "io.pressure":
        return (
            f"switch the cgroup's accounting on: echo 1 > {path.parent}/cgroup.pressure; kernel 6.1"
            " or newer, or boot with psi=1"
        )
    return (
        "boot with psi=1 on the kernel's command line (kernel 4.20 or newer built with CONFIG_PSI)"
    )
