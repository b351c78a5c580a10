"""What `doctor` finds on made-up machines."""

from __future__ import annotations

from math import nan

from ckptcost.first.core.channels import Channel
from ckptcost.first.jobs.checkup import KINDS, ChannelTrial, Checkup
from ckptcost.first.meters.base import Absence
from ckptcost.first.report.studies.checkup import study_of
from ckptcost.first.report.study import Study

RULE = "as root, once:\n  groupadd --system rapl\nand a udev rule, which outlives a reboot"
CLOSED = Absence(
    "rapl cpu",
    "/sys/class/powercap/intel-rapl:0/energy_uj (and 1 more): Permission denied",
    RULE,
    "cpu",
)
NO_DRAM = Absence(
    "rapl dram:0",
    "there is no dram counter: client processors have none. The memory's joules are unknown, not 0",
    "a meter of the whole node (BMC, hwmon, psys) contains the memory",
    "dram",
)
NO_GPU = Absence(
    "nvml",
    "no NVIDIA GPU is in this machine, or none was passed into this virtual machine or container",
    "lspci -d 10de:",
    "gpu",
)
ASLEEP = Absence(
    "ipmi", "not asked for: each reading starts a process", "ask for the meter ipmi by name", "node"
)


def gpu(number: int, watts: float, tick_s: float = 0.1) -> list[ChannelTrial]:
    device = f"NVIDIA H200 {number}"
    counter = Channel(
        f"gpu:{number}",
        "energy_j",
        "NVML total energy consumption",
        "gpu",
        device=device,
        tick_s=0.1,
    )
    gauge = Channel(
        f"gpu:{number}",
        "power_w",
        "NVML field 186",
        "gpu",
        device=device,
        averaging_s=0.025,
        looks=0.25,
        accuracy=0.05,
    )
    return [
        ChannelTrial("nvml", counter, "gpu", 101, 101, tick_s, watts, 1.5, 0.0004),
        ChannelTrial("nvml", gauge, "gpu", 99, 101, nan, watts + 1.0, 2.0, 0.0004),
    ]


def disk(name: str, rate: float = 12e6) -> list[ChannelTrial]:
    channel = Channel(f"disk:{name}", "written_bytes", f"/proc/diskstats {name} field 7", "disk")
    return [ChannelTrial("block", channel, "storage", 101, 101, 0.5, rate, nan, 7.7e-05)]


STUCK = ChannelTrial(
    "rapl",
    Channel(
        "psys:0",
        "energy_j",
        "perf power/energy-psys/",
        "psys",
        tick_s=0.001,
        note="never moves: no such counter",
    ),
    "node",
    101,
    101,
    nan,
    nan,
    nan,
    6e-05,
)


def made(
    *tried: list[ChannelTrial], absences: tuple[Absence, ...] = (), simulated: bool = False
) -> Study:
    found = [one for each in tried for one in each]
    by: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for one in found:
        text = f"{one.channel.domain} ({one.channel.source})"
        if one.kind in by and one.channel.quantity in ("energy_j", "written_bytes"):
            by[one.kind].append(text)
    return study_of(Checkup("host", found, absences, (), "no RAPL meter", by, 1.0, simulated, 0.03))


def common() -> Study:
    """Two cards, a processor whose counter is closed, no counter of memory, a disk, a BMC that
    nobody asked for."""
    return made(gpu(0, 640.0), gpu(1, 655.0), disk("nvme0n1"), absences=(CLOSED, NO_DRAM, ASLEEP))


def bare() -> Study:
    """A virtual machine without anything but a disk."""
    return made(disk("vda", 0.0), [STUCK], absences=(NO_GPU, ASLEEP))
