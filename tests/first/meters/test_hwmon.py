"""hwmon trees as drivers make them: what is a part, what lies inside one, and what is no reading at
all."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.meters import hwmon
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import Event, FoundMeters, Meter

SECOND = 1_000_000_000


class Tree:
    """/sys with an hwmon class."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0

    @property
    def folder(self) -> Path:
        return self.root / "class" / "hwmon"

    def chip(self, name: str, files: dict[str, object], *, old: bool = False) -> Path:
        """`old`: registered the way of hwmon_device_register, with the attributes in the device's
        folder."""
        where = self.folder / f"hwmon{self.count}"
        self.count += 1
        (where / "device").mkdir(parents=True)
        attributes = where / "device" if old else where
        (attributes / "name").write_text(f"{name}\n")
        for file, content in files.items():
            (attributes / file).write_text(f"{content}\n")
        return attributes

    def acpi(self, watts: float, label: str = "", *, old: bool = True, **more: object) -> Path:
        files = {
            "power1_average": round(watts * 1e6),
            "power1_oem_info": label,
            "power1_average_interval": 50,
            "power1_is_battery": 0,
        }
        return self.chip(
            "power_meter",
            {**files, **{f"power1_{key}": value for key, value in more.items()}},
            old=old,
        )

    def find(self, **more: object) -> FoundMeters:
        return hwmon.find(self.root, **{"slow_s": 60.0, **more})

    def only(self, **more: object) -> hwmon.Hwmon:
        found = self.find(**more)
        assert len(found.meters) == 1
        return found.meters[0]


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def said(meter: Meter, t_ns: int = 0) -> dict[str, float]:
    return dict(zip([channel.domain for channel in meter.channels], meter.read(t_ns), strict=True))


def roles(meter: Meter) -> dict[str, str]:
    return {channel.domain: channel.role for channel in meter.channels}


@pytest.mark.parametrize("old", [True, False])
def test_a_lone_acpi_meter_is_the_node(tree, old):
    tree.acpi(
        512.25,
        old=old,
        average_interval=1000,
        accuracy="95.500%",
        model_number="M",
        serial_number="7",
    )
    meter = tree.only()
    (channel,) = meter.channels
    assert isinstance(meter, Meter)
    assert (channel.domain, channel.quantity, channel.role, channel.boundary) == (
        "node",
        "power_w",
        "whole",
        "node",
    )
    assert (channel.averaging_s, channel.accuracy, channel.device) == (1.0, 0.045, "M 7")
    assert channel.source.endswith("power1_average")
    assert meter.least_s == 1.0
    assert list(meter.read(0)) == [512.25]
    assert meter.events == []
    meter.close()
    meter.close()


def test_a_superchip_is_contained_as_the_guide_says(tree):
    for socket, module in ((0, 700.0), (1, 800.0)):
        tree.acpi(module, f"Module Power Socket {socket}")
        tree.acpi(200.0 + socket, f"Grace Power Socket {socket}")
        tree.acpi(90.0, f"CPU Power Socket {socket}")
        tree.acpi(40.0, f"SysIO Power Socket {socket}", average_interval=1000)
    meter = tree.only()
    by = {channel.domain: channel for channel in meter.channels}
    assert roles(meter) == {
        f"{domain}{rest}": role
        for socket in (0, 1)
        for domain, rest, role in [
            (f"module:{socket}", "", "whole"),
            (f"cpu:{socket}", "", "part"),
            (f"cpu:{socket}", ".rail", "detail"),
            (f"cpu:{socket}", ".sysio", "detail"),
        ]
    }
    assert by["module:0"].covers == ("cpu", "dram", "gpu")
    assert by["cpu:0"].covers == ("dram",)
    assert by["cpu:0.rail"].kind_of_domain == "cpu"
    assert (by["cpu:0"].averaging_s, by["cpu:0"].tick_s, by["cpu:0.sysio"].averaging_s) == (
        0.05,
        0.05,
        1.0,
    )
    assert meter.least_s == 0.05
    values = said(meter)
    parts = sum(value for domain, value in values.items() if by[domain].role == "part")
    assert parts == 401.0  # two sockets, nothing twice
    assert parts <= values["module:0"] + values["module:1"]
    meter.close()


def test_without_the_socket_sensor_the_two_rails_are_the_parts(tree):
    tree.acpi(90.0, "CPU Power Socket 0")
    tree.acpi(40.0, "SysIO Power Socket 0")
    tree.acpi(300.0, "Grace Power Socket 1")
    tree.acpi(95.0, "CPU Power Socket 1")
    meter = tree.only()
    assert roles(meter) == {
        "cpu:0": "part",
        "cpu:0.sysio": "part",
        "cpu:1": "part",
        "cpu:1.rail": "detail",
    }
    assert all(
        "not in it" in channel.note
        for channel in meter.channels
        if channel.domain in ("cpu:0", "cpu:0.sysio")
    )
    meter.close()


def test_meters_that_do_not_say_what_they_measure_are_never_added(tree):
    tree.acpi(300.0)
    tree.acpi(200.0, "Slot 4")
    meter = tree.only()
    assert set(roles(meter).values()) == {"detail"}
    assert len({channel.domain for channel in meter.channels}) == 2
    assert "node" not in roles(meter)
    meter.close()


def test_a_nameless_meter_beside_grace_is_not_taken_for_the_node(tree):
    tree.acpi(300.0, "Grace Power Socket 0")
    tree.acpi(999.0, "NVSwitch")
    meter = tree.only()
    assert sorted(roles(meter).values()) == ["detail", "part"]
    meter.close()


def test_a_battery_is_no_meter(tree):
    tree.acpi(30.0, is_battery=1)
    found = tree.find()
    assert found.meters == ()
    assert found.absences


NO_READING = [4294967295000, 0, -5, "", "unknown", "1e6", "0x10", "9" * 60, 10**12]


@pytest.mark.parametrize("content", NO_READING)
def test_what_is_no_reading_is_nan_and_told_once(tree, content):
    where = tree.acpi(100.0)
    meter = tree.only()
    assert list(meter.read(0)) == [100.0]
    (where / "power1_average").write_text(f"{content}\n")
    for t_ns in range(5):
        assert math.isnan(meter.read(t_ns)[0])
    assert [(event.name, event.domain) for event in meter.events] == [("lost", "node")]
    (where / "power1_average").write_text("120000000\n")
    assert list(meter.read(9)) == [120.0]
    assert [event.name for event in meter.events] == ["lost", "found"]
    meter.close()


@given(st.integers(1, 10**12 - 1))
def test_microwatts_become_watts(microwatts):
    fd = os.memfd_create("power")
    os.write(fd, f"{microwatts}\n".encode())
    sensor = hwmon._Sensor(hwmon.Channel("node", "power_w", "x"), (), fds=[fd])
    assert hwmon.Hwmon([sensor], 0.0, {}).read(0)[0] == pytest.approx(microwatts / 1e6, rel=1e-15)
    os.close(fd)


def failing(monkeypatch, code):
    """os.pread as the kernel answers for a device that is gone; returns the switch."""
    real, state = os.pread, {"on": True, "calls": 0}

    def pread(fd, n, offset):
        state["calls"] += 1
        if state["on"]:
            raise OSError(code, os.strerror(code))
        return real(fd, n, offset)

    monkeypatch.setattr(hwmon.os, "pread", pread)
    return state


def test_a_device_that_goes_is_looked_for_once_a_second_and_found_again(tree, monkeypatch):
    where = tree.acpi(100.0)
    meter = tree.only()
    state = failing(monkeypatch, errno.ENODEV)
    assert math.isnan(meter.read(0)[0])
    (where / "power1_average").rename(where / "away")
    assert [math.isnan(meter.read(n * SECOND // 10)[0]) for n in range(1, 25)] == [True] * 24
    assert state["calls"] == 1  # no descriptor, no pread
    state["on"] = False
    (where / "away").rename(where / "power1_average")
    assert math.isnan(meter.read(2_500_000_000)[0])
    assert list(meter.read(3 * SECOND)) == [100.0]
    assert [event.name for event in meter.events] == ["lost", "found"]
    assert "No such device" in meter.events[0].text
    meter.close()


def test_an_answer_that_is_late_keeps_its_descriptor(tree, monkeypatch):
    tree.acpi(100.0)
    meter = tree.only()
    state = failing(monkeypatch, errno.ENODATA)  # what newer kernels say for "not available"
    assert math.isnan(meter.read(0)[0])
    state["on"] = False
    assert list(meter.read(1)) == [100.0]
    assert [event.name for event in meter.events] == ["lost", "found"]
    meter.close()


def test_one_lost_sensor_leaves_the_others(tree):
    where = tree.acpi(200.0, "Grace Power Socket 0")
    tree.acpi(90.0, "CPU Power Socket 0")
    meter = tree.only()
    (where / "power1_average").write_text("4294967295000\n")
    assert said(meter) == pytest.approx({"cpu:0": math.nan, "cpu:0.rail": 90.0}, nan_ok=True)
    assert [event.domain for event in meter.events] == ["cpu:0"]
    meter.close()


def supply(tree, pin, pout=None, name="ibm_cffps2"):
    files = {"power1_input": round(pin * 1e6), "power1_label": "pin"} if pin is not None else {}
    files |= (
        {"power2_input": round(pout * 1e6), "power2_label": "pout1"} if pout is not None else {}
    )
    return tree.chip(name, files)


def test_the_supplies_inputs_are_the_node(tree):
    first = supply(tree, 400.0, 370.0)
    supply(tree, 350.5, 330.0, "crps185")
    meter = tree.only()
    assert said(meter) == {"node": 750.5, "node.supply0": 400.0, "node.supply1": 350.5}
    assert roles(meter) == {"node": "whole", "node.supply0": "detail", "node.supply1": "detail"}
    (first / "power1_input").write_text("0\n")  # cold redundancy: one in standby
    assert said(meter) == {"node": 350.5, "node.supply0": 0.0, "node.supply1": 350.5}
    (first / "power1_input").write_text(
        "rubbish\n"
    )  # and now it is not known; half a pair is not the node
    assert said(meter) == pytest.approx(
        {"node": math.nan, "node.supply0": math.nan, "node.supply1": 350.5}, nan_ok=True
    )
    meter.close()


def test_a_supply_that_does_not_tell_its_input_makes_no_sum(tree):
    supply(tree, 400.0)
    supply(tree, None, 330.0)
    found = tree.find()
    assert found.meters == ()
    assert [absence.reason for absence in found.absences] == [
        "2 power supplies, 1 tell their input"
    ]


def test_outputs_are_second_best_and_say_so(tree):
    supply(tree, None, 330.0)
    meter = tree.only()
    assert said(meter) == {"node": 330.0}
    assert "losses" in meter.channels[0].note
    meter.close()


def test_supplies_beside_a_node_meter_are_details(tree):
    tree.acpi(500.0)
    supply(tree, 520.0)
    meters = tree.find().meters
    assert [roles(meter) for meter in meters] == [{"node": "whole"}, {"node.supplies": "detail"}]
    for meter in meters:
        meter.close()


@pytest.mark.parametrize(
    ("name", "yes"),
    [
        ("ibm_cffps1", 1),
        ("cffps", 1),
        ("ipsps1", 1),
        ("acbel_fsg032", 1),
        ("fsg032", 1),
        ("intel_crps185", 1),
        ("crps185", 1),
        ("d1u74t", 1),
        ("bpa_rs600", 1),
        ("bpa-rs600", 1),
        ("pfe1100", 1),
        ("dps920ab", 1),
        ("hac300s", 1),
        ("aps-379", 1),
        ("ym2151e", 1),
        ("corsairpsu", 1),
        ("pmbus", 0),
        ("ina233", 0),
        ("mp2975", 0),
        ("adm1275", 0),
        ("tps53679", 0),
        ("ina3221", 0),
        ("", 0),
    ],
)
def test_only_power_supplies_are_supplies(tree, name, yes):
    supply(tree, 100.0, name=name)
    found = tree.find()
    assert len(found.meters) == yes
    assert any("hwmon0" in absence.reason for absence in found.absences) == (
        not yes
    )  # named, with a reason, and not read
    for meter in found.meters:
        meter.close()


@pytest.mark.parametrize(
    "name",
    [
        "amdgpu",
        "i915",
        "xe",
        "nouveau",
        "BAT0",
        "nvme",
        "drivetemp",
        "coretemp",
        "ucsi_source_psy_1",
    ],
)
def test_what_others_own_is_passed_over_in_silence(tree, name):
    tree.chip(
        name, {"power1_average": 50_000_000, "power1_input": 50_000_000, "temp1_input": 40_000}
    )
    found = tree.find()
    assert found.meters == ()
    assert [absence.what for absence in found.absences] == ["hwmon node"]


def test_amd_energy_reads_sockets_and_leaves_the_cores(tree):
    files: dict[str, object] = {f"energy{n + 1}_label": f"Ecore{n:03d}" for n in range(64)}
    files |= {f"energy{n + 1}_input": 1000 + n for n in range(64)}
    files |= {
        "energy65_label": "Esocket0",
        "energy65_input": 2**63,
        "energy66_label": "Esocket1",
        "energy66_input": 0,
    }
    tree.chip("amd_energy", files)
    meter = tree.only()
    assert roles(meter) == {"cpu:0": "part", "cpu:1": "part"}
    assert {channel.quantity for channel in meter.channels} == {"energy_j"}
    assert all(channel.wraps_at is None for channel in meter.channels)
    assert said(meter)["cpu:0"] == pytest.approx(2**63 / 1e6, rel=1e-15)
    assert roles(tree.only(beside_rapl=True)) == {"cpu:0": "detail", "cpu:1": "detail"}
    meter.close()


def test_a_file_that_may_not_be_read_says_which_and_how(tree, monkeypatch):
    where = tree.chip(
        "amd_energy",
        {
            "energy1_label": "Esocket0",
            "energy1_input": 5,
            "energy2_label": "Esocket1",
            "energy2_input": 6,
        },
    )
    real = os.open

    def guarded(path, flags, *more, **kw):
        if str(path).endswith("energy1_input"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, flags, *more, **kw)

    monkeypatch.setattr(hwmon.os, "open", guarded)
    found = tree.find()
    absence = next(a for a in found.absences if a.what == "hwmon cpu:0")
    assert str(where / "energy1_input") in absence.reason
    assert str(where / "energy1_input").replace("hwmon0", "hwmon*") in absence.remedy, (
        "the number may differ after a reboot"
    )
    assert "tmpfiles" in absence.remedy
    assert absence.kind == "cpu"
    assert [roles(meter) for meter in found.meters] == [{"cpu:1": "part"}]
    found.meters[0].close()


def test_a_slow_sensor_goes_behind_a_thread(tree):
    tree.acpi(100.0)
    (meter,) = tree.find(slow_s=-1.0).meters
    assert isinstance(meter, Background)
    assert meter.pace_s == 1.0
    meter.close()


def test_nothing_here_has_a_reason_and_a_remedy(tree, tmp_path):
    (none,) = hwmon.find(tmp_path / "nothing").absences
    assert "no " in none.reason
    assert "container" in none.remedy
    tree.folder.mkdir(parents=True)
    (empty,) = tree.find().absences
    assert "ipmi" in empty.remedy
    (tmp_path / "bus" / "acpi" / "devices" / "ACPI000D:00").mkdir(parents=True)
    (unloaded,) = tree.find().absences
    assert "modprobe acpi_power_meter" in unloaded.remedy
    assert "force_cap_on=y" in unloaded.remedy
    assert {none.kind, empty.kind, unloaded.kind} == {"node"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("95.500%", 0.045),
        ("80.0%", 0.2),
        ("80.50%", 0.1995),
        ("100.0%", None),
        ("0.0%", None),
        ("", None),
        ("x", None),
        ("150.0%", None),
    ],
)
def test_the_drivers_odd_percentages(text, error):
    """`%u.%u` of 80050 thousandths prints 80.50."""
    assert hwmon._error_of(text) == error


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [("1000", 1.0), ("50", 0.05), ("0", None), ("", None), ("-1", None), ("4294967295", None)],
)
def test_an_averaging_time_that_makes_sense(tree, interval, seconds):
    tree.acpi(1.0, average_interval=interval)
    meter = tree.only()
    assert meter.channels[0].averaging_s == seconds
    meter.close()


def test_odd_trees_raise_nothing(tree, tmp_path):
    tree.folder.mkdir(parents=True)
    (tree.folder / "hwmon8").write_text("a file")
    (tree.folder / "hwmon9").symlink_to(tmp_path / "gone")
    (tree.folder / "hwmonx").mkdir()
    where = tree.chip("power_meter", {"power1_oem_info": b"\xff\xfe".decode("latin-1")})
    (where / "power1_average").mkdir()
    (where / "name").write_bytes(b"power_meter\0\n")
    found = tree.find()
    for meter in found.meters:
        assert all(value != value for value in meter.read(0))
        meter.close()
    assert found.absences or found.meters


def test_descriptors_are_given_back(tree):
    tree.acpi(200.0, "Grace Power Socket 0")
    supply(tree, 1.0)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        for meter in tree.find().meters:
            meter.read(0)
            meter.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_event_names_the_file(tree):
    where = tree.acpi(100.0, "Grace Power Socket 0")
    meter = tree.only()
    (where / "power1_average").write_text("no\n")
    meter.read(0)
    text = f"{where / 'power1_average'} (Grace Power Socket 0): the file holds no number"
    assert meter.events == [Event("lost", "cpu:0", text)]
    meter.close()
