"""Machines made of files, as far as RAPL goes: counters of 32 bits behind powercap zones, a PMU,
and what /proc says of processors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

UNIT_NJ = 61_035
"""the kernel's 2^-14 J in whole nanojoules, as on most Intel packages: 262143.328850 J a turn"""
AMD_UNIT_NJ = 15_258
STEPS = 2**32


@dataclass
class Counter:
    """One zone's folder. `set_j` is the truth; the file shows it as the kernel would: 32 bits of
    units, in whole microjoules."""

    path: Path
    unit_nj: int = UNIT_NJ

    @property
    def turn_j(self) -> float:
        return STEPS * self.unit_nj * 1e-9

    def set_j(self, joules: float) -> None:
        raw = int(joules / (self.unit_nj * 1e-9)) % STEPS
        (self.path / "energy_uj").write_text(f"{raw * self.unit_nj // 1000}\n")


@dataclass
class Host:
    """A little machine under `root`. Zones by their domain."""

    root: Path
    zones: dict[str, Counter] = field(default_factory=dict)

    @property
    def sysfs(self) -> Path:
        return self.root / "sys"

    @property
    def procfs(self) -> Path:
        return self.root / "proc"

    @property
    def powercap(self) -> Path:
        return self.sysfs / "devices/virtual/powercap"

    def add_zone(
        self,
        zone_id: str,
        name: str,
        domain: str,
        *,
        joules: float = 0.0,
        unit_nj: int = UNIT_NJ,
        enabled: str = "1",
    ) -> Counter:
        pieces = zone_id.split(":")
        folder = self.powercap / pieces[0]
        for depth in range(2, len(pieces) + 1):
            folder = folder / ":".join(pieces[:depth])
        folder.mkdir(parents=True)
        (folder / "power").mkdir()
        (folder / "name").write_text(name + "\n")
        (folder / "max_energy_range_uj").write_text(f"{(STEPS - 1) * unit_nj // 1000}\n")
        (folder / "enabled").write_text(enabled + "\n")
        (folder / "subsystem").symlink_to(self.sysfs / "class/powercap")
        flat = self.sysfs / "class/powercap"
        flat.mkdir(parents=True, exist_ok=True)
        for name_ in (pieces[0], zone_id):
            if not (flat / name_).is_symlink():
                (flat / name_).symlink_to(folder if name_ == zone_id else self.powercap / name_)
        counter = self.zones[domain] = Counter(folder, unit_nj)
        counter.set_j(joules)
        return counter

    def add_processors(self, topology: dict[int, tuple[int, int]]) -> None:
        """Package and die of each processor."""
        base = self.sysfs / "devices/system/cpu"
        base.mkdir(parents=True, exist_ok=True)
        (base / "present").write_text(f"0-{max(topology)}\n" if max(topology) else "0\n")
        for processor, (package, die) in topology.items():
            folder = base / f"cpu{processor}/topology"
            folder.mkdir(parents=True)
            (folder / "physical_package_id").write_text(f"{package}\n")
            (folder / "die_id").write_text(f"{die}\n")

    def add_proc(self, vendor: str, release: str, flags: str = "fpu msr", model: str = "") -> None:
        (self.procfs / "sys/kernel").mkdir(parents=True, exist_ok=True)
        (self.procfs / "sys/kernel/osrelease").write_text(release + "\n")
        one = (
            f"processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: {model or vendor}\nflags\t\t:"
            f" {flags}\n\n"
        )
        (self.procfs / "cpuinfo").write_text(one * 2)

    def add_pmu(
        self,
        events: dict[str, int],
        cpumask: str = "0",
        scale: str = "2.3283064365386962890625e-10",
        kind: str = "16",
    ) -> Path:
        base = self.sysfs / "bus/event_source/devices/power"
        (base / "events").mkdir(parents=True)
        (base / "type").write_text(kind + "\n")
        (base / "cpumask").write_text(cpumask + "\n")
        for event, config in events.items():
            (base / "events" / event).write_text(f"event=0x{config:02x}\n")
            (base / "events" / f"{event}.scale").write_text(scale + "\n")
            (base / "events" / f"{event}.unit").write_text("Joules\n")
        return base


def intel(
    root: Path,
    sockets: int = 1,
    dram: bool = True,
    psys: bool = False,
    mmio: bool = False,
    first: int = 0,
) -> Host:
    """A server: packages in any order of zones, core and dram inside them. `first` is the package
    of zone 0."""
    host = Host(root)
    host.add_proc("GenuineIntel", "6.8.0-45-generic", model="Intel(R) Xeon(R) Platinum 8480+")
    host.add_processors({n: (n % sockets, 0) for n in range(2 * sockets)})
    for zone in range(sockets):
        package = (zone + first) % sockets
        host.add_zone(
            f"intel-rapl:{zone}",
            f"package-{package}",
            f"cpu:{package}",
            joules=1000.0 * (package + 1),
        )
        host.add_zone(f"intel-rapl:{zone}:0", "core", f"core:{package}", joules=600.0)
        if dram:
            host.add_zone(
                f"intel-rapl:{zone}:1",
                "dram",
                f"dram:{package}",
                joules=100.0 * (package + 1),
                unit_nj=15_300,
            )
        if mmio:
            host.add_zone(
                f"intel-rapl-mmio:{zone}",
                f"package-{package}",
                f"cpu:{package}.mmio",
                joules=1000.0 * (package + 1),
            )
            host.add_zone(
                f"intel-rapl-mmio:{zone}:0",
                "dram",
                f"dram:{package}.mmio",
                joules=100.0,
                unit_nj=15_300,
            )
    if psys:
        host.add_zone(f"intel-rapl:{sockets}", "psys", "psys:0", joules=5000.0)
    return host


def several_dies(root: Path) -> Host:
    """Two packages of two dies: RAPL counts dies."""
    host = Host(root)
    host.add_proc("GenuineIntel", "6.8.0")
    host.add_processors({n: (n // 2, n % 2) for n in range(4)})
    for zone in range(4):
        package, die = zone // 2, zone % 2
        host.add_zone(
            f"intel-rapl:{zone}",
            f"package-{package}-die-{die}",
            f"cpu:{package}.die{die}",
            joules=100.0 + zone,
        )
        host.add_zone(
            f"intel-rapl:{zone}:0", "dram", f"dram:{package}.die{die}", joules=10.0 + zone
        )
    return host


def amd(root: Path, sockets: int = 2, complexes: int = 1, release: str = "6.1.0") -> Host:
    """EPYC: packages and one core each, no memory. With `complexes`, as kernels 6.9 to 6.11 show
    it: the package again for each."""
    host = Host(root)
    host.add_proc("AuthenticAMD", release, model="AMD EPYC 9654 96-Core Processor")
    host.add_processors({n: (n % sockets, n // sockets) for n in range(sockets * complexes)})
    zone = 0
    for package in range(sockets):
        for die in range(complexes):
            name = f"package-{package}" + (f"-die-{die}" if complexes > 1 else "")
            domain = f"cpu:{package}" + (f".die{die}" if complexes > 1 else "")
            host.add_zone(
                f"intel-rapl:{zone:x}",
                name,
                domain,
                joules=2000.0,
                unit_nj=AMD_UNIT_NJ,
                enabled="0",
            )
            host.add_zone(
                f"intel-rapl:{zone:x}:0",
                "core",
                domain.replace("cpu", "core"),
                joules=20.0,
                unit_nj=AMD_UNIT_NJ,
                enabled="0",
            )
            zone += 1
    return host


def nothing(
    root: Path, vendor: str = "GenuineIntel", release: str = "6.8.0", flags: str = "fpu msr"
) -> Host:
    """No zone anywhere."""
    host = Host(root)
    host.sysfs.mkdir(parents=True)
    host.add_proc(vendor, release, flags)
    return host
