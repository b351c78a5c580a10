"""What a Lustre client sent to its servers.

`llite.*.stats` counts what programs asked for: bytes at the write call, cached or not, and fsyncs.
`osc.*.stats`, one file for each target, counts what went over the wire, and is taken for the bytes
where it can be read; the calls are then a detail. A line is `write_bytes 13641 samples [bytes]
least most sum`, with a sum of squares after it in newer versions; a line without samples is not
printed, which is a true 0. Files are under /proc/fs/lustre or, later, /sys/kernel/debug/lustre, the
latter for root only; `lctl get_param` reads either, as a child process.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ckptcost.first.core.channels import Channel, Quantity, Role
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, Channelwise, FoundMeters, none_found
from ckptcost.first.meters.kept import OpenFile, os_error_text
from ckptcost.first.meters.mounts import Mount, mounts

Texts = dict[str, bytes]
"""by parameter: llite.scratch-ffff88084e3ef000.stats"""
COMMAND = ("lctl", "get_param", "llite.*.stats", "osc.*.stats")
_BYTES: tuple[tuple[Quantity, str], ...] = (
    ("written_bytes", "write_bytes"),
    ("read_bytes", "read_bytes"),
)


def parse_stats(text: bytes) -> dict[str, tuple[float, float]]:
    """By name: how often, and the sum of what it has a unit for (NaN where there is none).

    >>> parse_stats(
    ...     b"write_bytes 2 samples [bytes] 1 3366225 468230469\\nfsync 3 samples [regs]\\n"
    ... )
    {'write_bytes': (2.0, 468230469.0), 'fsync': (3.0, nan)}
    """
    found = {}
    for line in text.decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) >= 4 and words[2] == "samples" and words[1].isdigit():
            found[words[0]] = (
                float(words[1]),
                float(words[6]) if len(words) >= 7 and words[6].isdigit() else NOTHING,
            )
    return found


def sections(text: bytes) -> Texts:
    """What `lctl get_param` prints, by parameter.

    >>> sections(b"llite.s-1.stats=\\nfsync 1 samples [regs]\\nosc.x.stats=\\n")
    {'llite.s-1.stats': b'fsync 1 samples [regs]\\n', 'osc.x.stats': b''}
    """
    found: Texts = {}
    name = ""
    for line in text.splitlines(keepends=True):
        head, sign, rest = line.strip().partition(b"=")
        if sign and not rest and head.endswith(b".stats") and b" " not in head:
            name = head.decode("ascii", "replace")
            found[name] = b""
        elif name:
            found[name] += line
    return found


def run_lctl() -> bytes:
    """One run of lctl. A pattern that matches nothing is not an error as long as something was
    printed."""
    done = subprocess.run(COMMAND, capture_output=True, timeout=10, check=False)
    if not done.stdout:
        raise OSError(
            0, done.stderr.decode("utf-8", "replace").strip()[:200] or "lctl printed nothing"
        )
    return done.stdout


def _quantity(text: bytes, name: str, sums: bool) -> float:
    """0 only where the file is one (it has its time stamp) and has no such line."""
    here = parse_stats(text).get(name)
    if here is None:
        return 0.0 if b"snapshot_time" in text else NOTHING
    return here[1] if sums else here[0]


class Lustre(Channelwise):
    """Bytes and fsyncs for each mounted file system, and the calls where the wire is known too."""

    def __init__(
        self,
        ask: Callable[[], Texts],
        close: Callable[[], None],
        points: Mapping[str, str],
        least_s: float,
        how: str,
    ) -> None:
        super().__init__("lustre", least_s=least_s, facts={"lustre": how})
        self._ask, self._close = ask, close
        texts = ask()
        self._plan: list[tuple[str, str, tuple[str, ...]]] = []
        channels: list[Channel] = []
        for name in sorted(texts):
            if not name.startswith("llite."):
                continue
            instance = name.removeprefix("llite.").removesuffix(".stats")
            fsname, _, number = instance.rpartition("-")
            wire = tuple(
                sorted(
                    key
                    for key in texts
                    if key.startswith(f"osc.{fsname}-OST") and key.endswith(f"-osc-{number}.stats")
                )
            )
            domain = f"mount:{points.get(fsname, instance)}"
            self._plan.append((domain, name, wire))
            calls, asked = domain, "asked for by calls, cached or not; mmap not seen"
            role: Role = "part"
            if wire:
                channels += [
                    Channel(
                        domain,
                        quantity,
                        f"osc.{fsname}-OST*.stats {word}",
                        "mount",
                        note="over the wire",
                    )
                    for quantity, word in _BYTES
                ]
                calls, asked = f"{domain}.calls", "asked for by calls, cached or not"
                role = "detail"
            channels += [
                Channel(calls, quantity, f"{name} {word}", "mount", role=role, note=asked)
                for quantity, word in _BYTES
            ]
            fsyncs = Channel(domain, "flushes", f"{name} fsync", "mount", note="fsync calls")
            channels.append(fsyncs)
        self.channels = tuple(channels)

    def read(self, t_ns: int) -> list[float]:
        try:
            texts = self._ask()
        except (OSError, subprocess.SubprocessError) as error:
            raise MeterLost(f"lustre: {os_error_text(error)}") from error
        values: list[float] = []
        for domain, name, wire in self._plan:
            text = texts.get(name)
            if text is None:
                gone = self.note_missing(name, f"{name} is gone: unmounted", domain)
                values += (gone,) * (5 if wire else 3)
                continue
            self.note_answer(name, f"{name} is back", domain)
            if wire:
                for _, word in _BYTES:  # a target that does not answer makes the sum unknown
                    values.append(sum(_quantity(texts.get(key, b""), word, True) for key in wire))
            values += [_quantity(text, word, True) for _, word in _BYTES]
            values.append(_quantity(text, "fsync", False))
        return values

    def close(self) -> None:
        self._close()


class _StatsFiles:
    """The statistics files, kept open."""

    def __init__(self, root: Path) -> None:
        self._kept: dict[str, OpenFile] = {}
        try:
            for kind in ("llite", "osc"):
                for path in sorted((root / kind).glob("*/stats")):
                    self._kept[f"{kind}.{path.parent.name}.stats"] = OpenFile(path)
        except OSError:
            self.close()
            raise

    def __call__(self) -> Texts:
        found: Texts = {}
        for name, kept in self._kept.items():
            try:
                found[name] = kept.read_all()
            except OSError:
                continue
        return found

    def close(self) -> None:
        for kept in self._kept.values():
            kept.close()


def find(
    *,
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    asked: bool = False,
    allow_commands: bool = False,
    runner: Callable[[], bytes] | None = None,
) -> FoundMeters:
    """Lustre mounts of this client. `runner` gives what `lctl get_param` prints; without one lctl
    is run only where `allow_commands`."""
    mounted = [mount for mount in mounts(procfs) if mount.fstype == "lustre"]
    points = _points_of(mounted)
    problems: list[str] = []
    if runner is None and allow_commands and shutil.which(COMMAND[0]):
        runner = run_lctl
    roots = (procfs / "fs" / "lustre", sysfs / "kernel" / "debug" / "lustre")
    meter = _of_files(roots, points, problems) or _of_command(runner, points, problems)
    if meter is not None:
        return FoundMeters((meter,))
    if problems:
        return _no_lustre("; ".join(problems))
    if mounted:
        return _no_lustre("no statistics of the Lustre client are visible")
    if asked:
        return none_found("lustre", "no Lustre mount", "findmnt -t lustre", "storage")
    return FoundMeters(())


def _no_lustre(reason: str) -> FoundMeters:
    remedy = (
        "run as root, or allow commands and make `lctl get_param llite.*.stats` work for this user"
    )
    return none_found("lustre", reason, remedy, "storage")


def _points_of(mounted: Sequence[Mount]) -> dict[str, str]:
    """Where each file system is mounted; one that is twice keeps its instance's name."""
    points: dict[str, str] = {}
    for mount in mounted:
        fsname = mount.source.rpartition(":/")[2].partition("/")[0]
        points[fsname] = "" if fsname in points else mount.point
    return {fsname: point for fsname, point in points.items() if point}


def _of_files(roots: Sequence[Path], points: dict[str, str], problems: list[str]) -> Lustre | None:
    for root in roots:
        try:
            if not (root / "llite").is_dir():
                continue
            files = _StatsFiles(root)
        except OSError as error:
            problems.append(f"{error.filename or root}: {os_error_text(error)}")
            continue
        meter = Lustre(files, files.close, points, 0.1, str(root))
        if meter.channels:
            return meter
        meter.close()
    return None


def _of_command(
    runner: Callable[[], bytes] | None, points: dict[str, str], problems: list[str]
) -> Lustre | None:
    if runner is None:
        return None
    try:
        meter = Lustre(lambda: sections(runner()), lambda: None, points, 1.0, " ".join(COMMAND))
    except (OSError, subprocess.SubprocessError) as error:
        problems.append(f"lctl: {os_error_text(error)}")
        return None
    if meter.channels:
        return meter
    problems.append("lctl get_param llite.*.stats lists nothing")
    return None
