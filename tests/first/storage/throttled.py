"""A file system of our own on a loop device whose writes the kernel's block-I/O controller holds to
a rate: storage with a known truth."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

V1 = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
SHM = Path("/dev/shm")
READ = "blkio.throttle.read_bps_device"
MAKERS = {
    "ext4": ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q"),
    "btrfs": ("mkfs.btrfs", "-q", "--metadata", "single"),
}


def why_not() -> str:
    """Why no such file system can be had here; empty where it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if missing := [
        tool for tool in ("losetup", "mkfs.ext4", "mount", "umount") if shutil.which(tool) is None
    ]:
        return f"{missing[0]} is not installed"
    if not Path("/dev/loop-control").exists():
        return "no loop devices here"
    if not V1.exists():
        return "no block-I/O controller (blkio.throttle) that may be set for the whole machine"
    return ""


@contextmanager
def throttled(
    folder: Path, bytes_per_s: int = 0, size_bytes: int = 1_000_000_000, kind: str = "ext4"
) -> Iterator[Path]:
    """The mount point; 0 is no limit. Reads are held to the same rate. The image lies in memory
    where it can: only the throttle is slow."""
    point = folder / "mounted"
    point.mkdir()
    with NamedTemporaryFile(
        dir=SHM if os.access(SHM, os.W_OK) else folder, prefix="throttled-", delete=False
    ) as file:
        image = Path(file.name)
        file.truncate(size_bytes)
    subprocess.run([*MAKERS[kind], str(image)], check=True, stderr=subprocess.DEVNULL)
    device = subprocess.run(
        ["losetup", "--find", "--show", str(image)], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        subprocess.run(["mount", device, str(point)], check=True)
        numbers = os.stat(device).st_rdev
        which = f"{os.major(numbers)}:{os.minor(numbers)}"
        try:
            for control in (V1, V1.with_name(READ)):
                control.write_text(f"{which} {bytes_per_s}")
            yield point
        finally:
            for control in (V1, V1.with_name(READ)):
                control.write_text(f"{which} 0")
            _unmount(point)
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)
        image.unlink()


@contextmanager
def overlaid(below: Path) -> Iterator[Path]:
    """An overlay, as a container's root is one, whose upper layer lies in `below`."""
    lower, upper, work, point = (below / name for name in ("lower", "upper", "work", "overlay"))
    for folder in (lower, upper, work, point):
        folder.mkdir()
    layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(point)], check=True)
    try:
        yield point
    finally:
        _unmount(point)


@contextmanager
def through_fuse(below: Path) -> Iterator[Path]:
    """A folder of `below` seen through a file system in user space."""
    inner, point = below / "inner", below / "fuse"
    for folder in (inner, point):
        folder.mkdir()
    subprocess.run(["bindfs", str(inner), str(point)], check=True)
    try:
        yield point
    finally:
        _unmount(point)


def written_bytes(folder: Path) -> int:
    """What the device below a folder has taken since it is there, by its own counter."""
    return int((device_of(folder) / "stat").read_text().split()[6]) * 512


def device_of(folder: Path) -> Path:
    """Where the kernel shows the device that a folder lies on; btrfs has a number of its own for
    itself."""
    numbers = os.stat(folder).st_dev
    if os.major(numbers) == 0:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        (source,) = (words[0] for words in mounts if words[1] == str(folder))
        numbers = os.stat(source).st_rdev
    return Path(f"/sys/dev/block/{os.major(numbers)}:{os.minor(numbers)}")


def _unmount(point: Path) -> None:
    for _ in range(50):
        if subprocess.run(["umount", str(point)], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "--lazy", str(point)], check=True)
