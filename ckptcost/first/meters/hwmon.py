"""Power sensors of the kernel's hwmon class: ACPI power meters, NVIDIA Grace sockets, power
supplies, AMD's old energy counters.

What lies in what (NVIDIA Grace performance tuning guide, "Power and Thermals"; the ACPI tables in
NVIDIA's edk2 for TH500):

    Module Power Socket N   the superchip: CPU, GPU, HBM, DRAM, regulators   module:N     whole
    Grace Power Socket N    the Grace socket: rails, DRAM, regulators        cpu:N        part,
    covers dram; inside the module CPU Power Socket N      rail of the cores
    cpu:N.rail   detail of cpu:N SysIO Power Socket N    rail of the rest of the chip
    cpu:N.sysio  detail of cpu:N

The two rails are disjoint; on a socket without the Grace sensor they are the parts, and memory and
regulators are missing from them. An ACPI meter that is alone and names nothing is the node, as is
the sum of the power supplies' inputs. GPUs' own sensors are left to the GPU meters; nvme, drivetemp
and batteries tell nothing about this machine's power draw.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.channels import Channel
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import NOTHING, RETRY_NS, Absence, Channelwise, FoundMeters, Meter
from ckptcost.first.meters.kept import file_text

GRACE = re.compile(r"(Module|Grace|CPU|SysIO) Power Socket (\d+)", re.I)
SUPPLY = re.compile(
    r"(ibm_)?cffps|(inspur_)?ipsps|pfe\d|dps\d|bp[ad][-_]rs|aps[-_]|y[mh]\d{4}|(acbel_)?fsg\d|"
    r"(intel_)?crps|d1u74|hac300|corsairpsu"
)
"""hwmon names of power supplies; a bare `pmbus` may be any voltage regulator"""
NOT_OURS = re.compile(
    r"amdgpu|radeon|nouveau|nvidia|i915|xe$|BAT|CMB|AC$|ADP|ucsi_|hidpp_|coretemp|k10temp|nvme|"
    r"drivetemp",
    re.I,
)
AMD_ENERGY = ("amd_energy", "zenergy")
MOST_W = 1e6
"""ACPI answers 0xFFFFFFFF mW, 4.3 MW, for "not available"; no node draws a megawatt"""
_GONE = frozenset({2, 6, 9, 19, 116})
"""ENOENT, ENXIO, EBADF, ENODEV, ESTALE: the descriptor will not answer again. Others (ENODATA, EIO,
EAGAIN) may pass"""
LOAD = (
    "sudo modprobe acpi_power_meter, and for good: echo acpi_power_meter >"
    " /etc/modules-load.d/acpi_power_meter.conf as root; on NVIDIA Grace the kernel needs"
    " CONFIG_SENSORS_ACPI_POWER=m and acpi_power_meter.force_cap_on=y on its command line"
)
LET_IN = (
    "as root, a line `z FILE 0440 root GROUP -` in /etc/tmpfiles.d/ckptcost-hwmon.conf, then"
    " systemd-tmpfiles --create; it lasts over reboots, and the star because the number after hwmon"
    " may not; or run with sudo"
)


class _Chip(NamedTuple):
    name: str
    number: str
    where: Path
    """folder of the attributes: hwmonN, or hwmonN/device for drivers that register the old way
    (acpi_power_meter until 6.x)"""


@dataclass(slots=True)
class _Sensor:
    """A channel and the files whose sum it is."""

    channel: Channel
    paths: tuple[Path, ...]
    zero: bool = False
    """0 may be true: a supply in standby. A node, a module or a socket that runs this does not draw
    0 W"""
    fds: list[int] = field(default_factory=list)

    def open(self) -> None:
        """All files or OSError; a sum of some supplies is not the node."""
        self.close()
        for path in self.paths:
            self.fds.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        fds, self.fds = self.fds, []
        for fd in fds:
            os.close(fd)

    def value(self) -> float:
        total = 0
        for fd in self.fds:
            total += int(os.pread(fd, 64, 0))
        return total * 1e-6

    def may_be(self, value: float) -> bool:
        """Whether a reading is a possible one."""
        if self.channel.quantity == "power_w" and value >= MOST_W:
            return False
        return value > 0.0 or (value == 0.0 and self.zero)


class Hwmon(Channelwise):
    """Kept descriptors, one pread a file: microwatts or microjoules in, watts or joules out."""

    def __init__(self, sensors: Sequence[_Sensor], least_s: float, facts: dict[str, str]) -> None:
        super().__init__("hwmon", tuple(s.channel for s in sensors), least_s, facts=facts)
        self._sensors = tuple(sensors)

    def read(self, t_ns: int) -> Sequence[float]:
        return [self._value(number, t_ns) for number in range(len(self._sensors))]

    def _value(self, number: int, t_ns: int) -> float:
        sensor, wait_ns = self._sensors[number], 0
        channel = sensor.channel
        if not self.is_due(number, t_ns):
            return NOTHING
        trouble = ""
        try:
            if not sensor.fds:
                wait_ns = RETRY_NS
                sensor.open()
            value = sensor.value()
        except OSError as error:
            trouble = error.strerror or str(error)
            if error.errno in _GONE:
                sensor.close()
                wait_ns = RETRY_NS
        except ValueError:
            trouble = "the file holds no number"
        else:
            if sensor.may_be(value):
                self.note_answer(number, channel.source, channel.domain)
                return value
            trouble = f"{value:g} is no possible reading"
        said = f"{channel.source}: {trouble}"
        return self.note_missing(number, said, channel.domain, t_ns=t_ns, wait_ns=wait_ns)

    def close(self) -> None:
        for sensor in self._sensors:
            sensor.close()


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,18}", text) else None


def _chips(root: Path) -> Iterator[_Chip]:
    for folder in sorted(root.glob("hwmon*"), key=lambda path: (len(path.name), path.name)):
        name = file_text(folder / "name") or file_text(folder / "device" / "name")
        for where in (folder, folder / "device"):
            if any(_attribute_files(where, "power|energy", "average|input")):
                yield _Chip(name, folder.name, where)
                break


def _attribute_files(folder: Path, kind: str, item: str) -> dict[str, Path]:
    """Attribute files by their stem, `power1`; an average goes before an input."""
    found: dict[str, Path] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return found
    for name in names:
        match = re.fullmatch(rf"((?:{kind})\d+)_(?:{item})", name)
        if match:
            found.setdefault(match[1], folder / name)
    return found


def _files(chips: Sequence[_Chip], kind: str, item: str) -> Iterator[tuple[str, Path]]:
    for chip in chips:
        yield from _attribute_files(chip.where, kind, item).items()


def _open_sensors(sensors: list[_Sensor], absences: list[Absence]) -> list[_Sensor]:
    """Those whose files open; the others become absences."""
    able = []
    for sensor in sensors:
        try:
            sensor.open()
        except OSError as error:
            sensor.close()
            remedy = (
                LET_IN.replace("FILE", re.sub(r"hwmon\d+", "hwmon*", str(sensor.paths[0])))
                if isinstance(error, PermissionError)
                else "sudo dmesg | grep -i hwmon"
            )
            kind = "cpu" if sensor.channel.kind_of_domain == "cpu" else "node"
            what, reason = f"hwmon {sensor.channel.domain}", f"{error.filename}: {error.strerror}"
            absences.append(Absence(what, reason, remedy, kind))
        else:
            able.append(sensor)
    return able


class _Acpi(NamedTuple):
    path: Path
    label: str
    averaging_s: float | None
    accuracy: float | None
    maker: str


def _error_of(text: str) -> float | None:
    """The driver prints thousandths of a percent of accuracy as `whole.rest%`, the rest without
    leading zeros; 100 % claims nothing."""
    match = re.fullmatch(r"(\d+)\.(\d+)%", text)
    error = 1.0 - (int(match[1]) + int(match[2]) / 1000.0) / 100.0 if match else 0.0
    return round(error, 6) if 0.0 < error < 1.0 else None


def _acpi_meters(chips: Sequence[_Chip]) -> Iterator[_Acpi]:
    for stem, path in _files(chips, "power", "average|input"):

        def attribute(item: str, stem: str = stem, path: Path = path) -> str:
            return file_text(path.with_name(f"{stem}_{item}"))

        if attribute("is_battery") == "1":
            continue
        interval_ms = _number(attribute("average_interval"))
        averaging_s = interval_ms / 1000.0 if interval_ms and interval_ms < 86_400_000 else None
        maker = " ".join(filter(None, (attribute("model_number"), attribute("serial_number"))))
        yield _Acpi(
            path,
            attribute("oem_info") or attribute("label"),
            averaging_s,
            _error_of(attribute("accuracy")),
            maker,
        )


def _acpi_sensors(meters: Sequence[_Acpi]) -> tuple[list[_Sensor], bool]:
    """Sensors of the ACPI power meters, and whether they are Grace's."""
    sensors: list[_Sensor] = []
    names = [GRACE.fullmatch(meter.label) for meter in meters]
    totals = {name[2] for name in names if name and name[1].lower() == "grace"}
    nameless = names.count(None)
    for meter, name in zip(meters, names, strict=True):
        base = Channel(
            "node",
            "power_w",
            str(meter.path) + (f" ({meter.label})" if meter.label else ""),
            scope="node",
            role="whole",
            resolution=1e-3,
            averaging_s=meter.averaging_s,
            accuracy=meter.accuracy,
            device=meter.maker,
        )
        if name is not None:
            base = _grace_channel(base, name[1].lower(), name[2], totals)
        elif nameless > 1 or totals:
            base = replace(
                base,
                domain=f"node.meter{len(sensors)}",
                scope="unknown",
                role="detail",
                note="what this ACPI meter measures is not told; never added",
            )
        sensors.append(_Sensor(base, (meter.path,)))
    return sensors, bool(totals) or nameless < len(names)


def _grace_channel(base: Channel, kind: str, socket: str, totals: Collection[str]) -> Channel:
    """What a meter of a Grace superchip tells; a rail is a detail of a socket that is told
    whole."""
    base = replace(base, tick_s=0.05)  # TH500_BPMP_IPC_CALL_INTERVAL_50MS
    cpu = f"cpu:{int(socket)}"
    if kind == "module":
        domain = f"module:{int(socket)}"
        return replace(base, domain=domain, scope="module", covers=("cpu", "dram", "gpu"))
    if kind == "grace":
        note = (
            "core and SysIO rails, DRAM and regulators; some GB200 firmware counts a"
            " regulator in the module only"
        )
        return replace(base, domain=cpu, scope="socket", role="part", covers=("dram",), note=note)
    if socket in totals:
        rail = "rail" if kind == "cpu" else "sysio"
        return replace(base, domain=f"{cpu}.{rail}", scope="rail", role="detail")
    return replace(
        base,
        domain=cpu if kind == "cpu" else f"{cpu}.sysio",
        scope="rail",
        role="part",
        note="one rail; memory and regulators of the socket are not in it",
    )


_SIDES = {
    **dict.fromkeys(("pin", "pin1", "power total"), "input"),
    **dict.fromkeys(("pout", "pout1"), "output"),
}
"""of a power supply, by the label of a sensor"""


def _supply_sensors(
    chips: Sequence[_Chip], node_known: bool
) -> tuple[list[_Sensor], list[Absence]]:
    """Each supply as a detail, and their sum as the node. Half a redundant pair is not the node, so
    all must have the sensor."""
    if not chips:
        return [], []
    sides: dict[str, list[Path]] = {"input": [], "output": []}
    for stem, path in _files(chips, "power", "average|input"):
        label = file_text(path.with_name(f"{stem}_label")).lower()
        if label in _SIDES:
            sides[_SIDES[label]].append(path)
    side = next((name for name, paths in sides.items() if len(paths) == len(chips)), None)
    if side is None:
        reason = f"{len(chips)} power supplies, {len(sides['input'])} tell their input"
        return [], [Absence("hwmon node", reason, "use the BMC: meter ipmi or redfish", "node")]
    lost = "output of the supplies: their own losses, 4 to 10 %, are not in it"
    node = Channel(
        "node",
        "power_w",
        f"sum of {len(chips)} supplies' {side}",
        scope=f"supply {side}",
        role="whole",
        note=lost if side == "output" else "",
    )
    if node_known:
        node = replace(node, domain="node.supplies", role="detail")
    sensors = [_Sensor(node, tuple(sides[side]))]
    if len(chips) > 1:
        for n, path in enumerate(sides[side]):
            one = replace(node, domain=f"node.supply{n}", source=str(path), role="detail")
            sensors.append(_Sensor(one, (path,), zero=True))
    return sensors, []


def _socket_sensors(chips: Sequence[_Chip], beside_rapl: bool) -> list[_Sensor]:
    """Sockets of amd_energy (kernels 5.8 to 5.12, or out of tree). The kernel accumulates to 64
    bits, so nothing wraps."""
    sensors = []
    for stem, path in _files(chips, "energy", "input"):
        match = re.fullmatch(r"Esocket(\d+)", file_text(path.with_name(f"{stem}_label")))
        if match:
            channel = Channel(
                "cpu:" + match[1],
                "energy_j",
                str(path),
                scope="package",
                role="detail" if beside_rapl else "part",
                resolution=1e-6,
                tick_s=1e-3,
                note="the registers that the rapl meter reads" if beside_rapl else "",
            )
            sensors.append(_Sensor(channel, (path,)))
    return sensors


def _meter(sensors: list[_Sensor], least_s: float, driver: str, slow_s: float) -> Meter | None:
    """Behind a thread if its first reading was slow: ACPI methods may talk to a BMC, and supplies
    sit on a slow bus."""
    if not sensors:
        return None
    meter = Hwmon(sensors, least_s, {"driver": driver})
    start_ns = time.perf_counter_ns()
    meter.read(0)
    took_s = (time.perf_counter_ns() - start_ns) * 1e-9
    return Background(meter) if took_s > slow_s else meter


def find(
    sysfs: Path = Path("/sys"), *, beside_rapl: bool = False, slow_s: float = 0.005
) -> FoundMeters:
    """Every sensor whose meaning is known. `beside_rapl`: the rapl meter reads the packages, so
    amd_energy's are details."""
    absences: list[Absence] = []
    chips = [chip for chip in _chips(sysfs / "class" / "hwmon") if not NOT_OURS.match(chip.name)]
    acpi_chips = [chip for chip in chips if chip.name == "power_meter"]
    supplies = [chip for chip in chips if SUPPLY.match(chip.name)]
    amd = [chip for chip in chips if chip.name in AMD_ENERGY]

    acpi, grace = _acpi_sensors(list(_acpi_meters(acpi_chips)))
    acpi = _open_sensors(acpi, absences)
    node_known = any(sensor.channel.domain == "node" for sensor in acpi)
    supply, without = _supply_sensors(supplies, node_known)
    absences += without
    sockets = _open_sensors(_socket_sensors(amd, beside_rapl), absences)
    found = (
        _meter(acpi, 0.05 if grace else 1.0, "power_meter", slow_s),
        _meter(_open_sensors(supply, absences), 0.5, _names_of(supplies), slow_s),
        _meter(sockets, 0.0, _names_of(amd), slow_s),
    )
    known = (*acpi_chips, *supplies, *amd)
    absences += _strange([chip for chip in chips if chip not in known])
    if not acpi and not supply:
        absences += _no_node_sensor(absences, sysfs)
    return FoundMeters(tuple(filter(None, found)), tuple(absences))


def _names_of(chips: Sequence[_Chip]) -> str:
    return ", ".join(sorted({chip.name for chip in chips}))


def _strange(chips: Collection[_Chip]) -> list[Absence]:
    """Sensors that nobody here knows."""
    if not chips:
        return []
    names = [f"{chip.name or 'nameless'} ({chip.number})" for chip in chips]
    reason = f"what these sensors measure is not known, so they are not read: {', '.join(names)}"
    remedy = "report the driver's name and labels, see power*_label"
    return [Absence("hwmon others", reason, remedy, "node")]


def _no_node_sensor(absences: Sequence[Absence], sysfs: Path) -> list[Absence]:
    """Why nothing tells the node's power, unless that was said already."""
    if any(absence.what.startswith("hwmon node") for absence in absences):
        return []
    root = sysfs / "class" / "hwmon"
    reason = f"no node power sensor under {root}"
    remedy = "use the BMC: meter ipmi or redfish"
    if any((sysfs / "bus" / "acpi" / "devices").glob("ACPI000D:*")):
        reason = "the firmware has a power meter (ACPI000D) and no driver shows it"
        remedy = LOAD
    elif not root.is_dir():
        reason = f"no {root}"
        remedy = (
            "a container or virtual machine has no sensors: measure on the host, or use the"
            " BMC (ipmi, redfish)"
        )
    return [Absence("hwmon node", reason, remedy, "node")]
