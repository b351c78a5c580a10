"""NVMe pages built by hand, a made-up /sys, and an ioctl that is not one."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.meters import nvme, nvme_model
from ckptcost.first.meters.base import Meter
from ckptcost.first.meters.nvme import (
    ADMIN_CMD,
    Commands,
    Identity,
    Passthrough,
    PowerState,
    identity_of_page,
    run,
    scale_w,
    smart_of_page,
)
from ckptcost.first.meters.nvme_model import DriveWatts, watts_of


def smart_page(energy_wh=0, power=0, units_written=0, units_read=0):
    """struct nvme_smart_log, field after field, as the specification lists them: an oracle that
    knows no offsets."""
    fields = [
        (0, 1),
        (311, 2),
        (100, 1),
        (10, 1),
        (3, 1),
        (0, 1),
        (0, 25),
        (units_read, 16),
        (units_written, 16),
        (5, 16),
        (6, 16),
        (7, 16),
        (8, 16),
        (9, 16),
        (1, 16),
        (2, 16),
        (3, 16),
        (11, 4),
        (12, 4),
        *[(300 + i, 2) for i in range(8)],
        (1, 4),
        (2, 4),
        (3, 4),
        (4, 4),
        (energy_wh, 8),
        (power, 4),
        (0, 268),
    ]
    page = b"".join(value.to_bytes(length, "little") for value, length in fields)
    assert len(page) == 512
    return page


def power_state(most, most_scale=0, works=True, idle=0, idle_scale=0, active=0, active_scale=0):
    flags = most_scale | (0 if works else 2)
    return struct.pack(
        "<HBBIIBBBBHBBHBBBBB4x",
        most,
        0,
        flags,
        1,
        2,
        0,
        0,
        0,
        0,
        idle,
        idle_scale << 6,
        0,
        active,
        active_scale << 6 | 2,
        0,
        0,
        0,
        0,
    ).ljust(32, b"\0")[:32]


def identity_page(states, serial="S1", model="ACME 7000", firmware="F2", ipmsr=0):
    page = bytearray(4096)
    page[4:24] = serial.ljust(20).encode()
    page[24:64] = model.ljust(40).encode()
    page[64:72] = firmware.ljust(8).encode()
    page[263] = len(states) - 1
    page[392:394] = ipmsr.to_bytes(2, "little")
    for at, state in enumerate(states):
        page[2048 + 32 * at : 2080 + 32 * at] = state
    return bytes(page)


STATES = [
    power_state(825, idle=3500, idle_scale=1, active=650, active_scale=2),
    power_state(350),
    power_state(300, most_scale=1, works=False, idle=25, idle_scale=1),
]


def watts(value, scale, kind=0):
    return value | scale << 16 | kind << 20


def test_a_page_field_by_field():
    got = smart_of_page(
        smart_page(energy_wh=12, power=watts(1234, 2), units_written=3, units_read=2**100)
    )
    assert got.energy_j == 12 * 3600.0
    assert got.power_w == pytest.approx(12.34)
    assert got.written_bytes == 3 * 512_000.0
    assert got.read_bytes == 2.0**100 * 512_000.0
    assert got.of_whole_subsystem


@pytest.mark.parametrize(
    ("power", "expected"),
    [
        (0, math.nan),
        (watts(65535, 1), 6.5535),
        (watts(65535, 2), 655.35),
        (watts(9, 0), math.nan),
        (watts(9, 3), math.nan),
        (watts(0, 2), math.nan),
        (watts(500, 2, kind=0xC), 5.0),
    ],
)
def test_power_has_a_scale(power, expected):
    got = smart_of_page(smart_page(power=power))
    assert got.power_w == pytest.approx(expected, nan_ok=True)
    assert got.power_raw == power
    assert got.of_whole_subsystem is (power >> 20 == 0)


def test_zero_is_not_reported_and_bytes_are_true_zeros():
    got = smart_of_page(smart_page())
    assert math.isnan(got.energy_j)
    assert math.isnan(got.power_w)
    assert (got.written_bytes, got.read_bytes) == (0.0, 0.0)


def test_short_pages_are_errors():
    for reader, length in ((smart_of_page, 511), (identity_of_page, 4095)):
        with pytest.raises(ValueError, match="bytes"):
            reader(bytes(length))


def test_identity_from_its_page():
    page = identity_of_page(identity_page(STATES, ipmsr=0x0464))
    assert page[:3] == ("S1", "ACME 7000", "F2")
    assert page.sample_s == pytest.approx(0.1)  # 100 x 1 ms
    first, second, third = page.states
    assert first == PowerState(8.25, 0.35, 6.5, True)
    assert (second.most_w, second.works) == (3.5, True)
    assert math.isnan(second.idle_w)
    assert third[:2] == (pytest.approx(0.03), pytest.approx(0.0025))
    assert not third.works
    assert math.isnan(identity_of_page(identity_page(STATES)).sample_s)
    whole = bytearray(identity_page(STATES))
    whole[263] = 255
    assert len(identity_of_page(bytes(whole)).states) == 32


def test_scales_that_do_not_exist():
    assert math.isnan(scale_w(5, 3))
    assert math.isnan(scale_w(0, 2))


# ---- asking ----


def ioctl_that_gives(page, seen, status=0):
    """Fills the caller's buffer as the kernel would, from the 72 bytes of the command."""

    def ioctl(fd, request, command):
        fields = struct.unpack("=BBHIIIQQIIIIIIIIII", command)
        seen.append((request, len(command), fields))
        ctypes.memmove(fields[7], page, fields[9])
        return status

    return ioctl


def test_the_command_that_is_sent(tmp_path):
    (tmp_path / "nvme0").touch()
    seen = []
    ask = Passthrough(tmp_path, ioctl_that_gives(smart_page(energy_wh=5), seen))
    assert ask("nvme0", "smart") == smart_page(energy_wh=5)
    request, length, fields = seen[0]
    assert request == ADMIN_CMD == 3 << 30 | 72 << 16 | ord("N") << 8 | 0x41
    assert length == 72
    assert (fields[0], fields[3], fields[9], fields[10]) == (0x02, 0xFFFFFFFF, 512, 127 << 16 | 2)
    ask = Passthrough(tmp_path, ioctl_that_gives(identity_page(STATES), seen))
    assert ask("nvme0", "identity") == identity_page(STATES)
    assert (seen[1][2][0], seen[1][2][3], seen[1][2][9], seen[1][2][10]) == (0x06, 0, 4096, 1)
    ask.close()


def test_a_refusal_by_drive_or_kernel_is_an_error(tmp_path):
    (tmp_path / "nvme0").touch()
    ask = Passthrough(tmp_path, ioctl_that_gives(b"\0" * 512, [], status=0x4002))
    with pytest.raises(OSError, match="0x4002"):
        ask("nvme0", "smart")
    ask.close()
    ask = Passthrough(tmp_path)
    with pytest.raises(OSError, match="ioctl"):  # a plain file knows no such request
        ask("nvme0", "smart")
    with pytest.raises(FileNotFoundError):
        ask("nvme9", "smart")
    assert ask._fds == {}


def test_the_commands_that_are_run(tmp_path):
    seen = []

    def runner(words):
        seen.append(words)
        return smart_page()

    ask = Commands(tmp_path, runner, program="/usr/sbin/nvme")
    assert ask("nvme0", "smart") == smart_page()
    ask("nvme0", "identity")
    assert seen == [
        ("/usr/sbin/nvme", "smart-log", f"{tmp_path}/nvme0", "--output-format=binary"),
        ("/usr/sbin/nvme", "id-ctrl", f"{tmp_path}/nvme0", "--output-format=binary"),
    ]


def test_commands_that_fail():
    assert run(("printf", "x")) == b"x"
    with pytest.raises(OSError, match="ended with 1"):
        run(("false",))
    with pytest.raises(OSError, match=r"cannot access|No such"):
        run(("ls", "/does/not/exist"))
    with pytest.raises(FileNotFoundError):
        run(("no-such-program-here",))


# ---- the meter ----


def put_drive(
    sysfs, name, namespaces=(), transport="pcie", model="ACME 7000", serial="S1", nqn="", busy=1000
):
    folder = sysfs / "class" / "nvme" / name
    folder.mkdir(parents=True)
    for file, text in (
        ("transport", transport),
        ("model", model + "   "),
        ("serial", serial),
        ("firmware_rev", "F2"),
        ("subsysnqn", nqn),
    ):
        (folder / file).write_text(text + "\n")
    (folder / "hwmon1").mkdir()
    for disk in namespaces:
        (folder / disk).mkdir()
        head = disk if "c" not in disk else disk[: disk.index("c")] + "n" + disk.rsplit("n", 1)[1]
        block = sysfs / "block" / head
        block.mkdir(parents=True, exist_ok=True)
        set_busy(sysfs, head, busy)


def set_busy(sysfs, disk, busy_ms):
    (sysfs / "block" / disk / "stat").write_text(f"  1 0 8 0 2 0 16 0 0 {busy_ms} 20 0 0 0 0 3 6\n")


class Ask:
    """Pages by drive; an exception instead of a page is raised."""

    how = "test"

    def __init__(self, **pages):
        self.pages = pages
        self.closed = False

    def __call__(self, name, page):
        found = self.pages.get(f"{name}_{page}", OSError(errno.EACCES, "Permission denied"))
        if isinstance(found, Exception):
            raise found
        return found

    def close(self):
        self.closed = True


def test_drives_are_counted_once_and_only_where_they_are(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1", "nvme0n2"], nqn="nqn.a")
    put_drive(
        tmp_path, "nvme1", ["nvme3c1n1"], nqn="nqn.b", serial="S2"
    )  # multipath: the disk is nvme3n1
    put_drive(tmp_path, "nvme2", ["nvme3c2n1"], nqn="nqn.b", serial="S2")  # its second controller
    put_drive(tmp_path, "nvme10", ["nvme10n1"], transport="tcp", nqn="nqn.c")
    found, absences = nvme.drives(tmp_path)
    assert [(drive.controller, drive.namespaces, drive.domain) for drive in found] == [
        ("nvme0", ("nvme0n1", "nvme0n2"), "drive:nvme0n1"),
        ("nvme1", ("nvme3n1",), "drive:nvme3n1"),
    ]
    assert [absence.what for absence in absences] == ["nvme nvme10"]
    assert "tcp" in absences[0].reason


def test_a_drive_that_reports(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    ask = Ask(
        nvme0_smart=smart_page(7, watts(900, 2), 4, 5),
        nvme0_identity=identity_page(STATES, ipmsr=0x0464),
    )
    (meter,), absences = nvme.find(sysfs=tmp_path, ask=ask)
    assert isinstance(meter, Meter)
    assert absences == ()
    values = {
        channel.name: value for channel, value in zip(meter.channels, meter.read(0), strict=True)
    }
    assert values == {
        "drive:nvme0n1 power_w": pytest.approx(9.0),
        "drive:nvme0n1 energy_j": 7 * 3600.0,
        "drive:nvme0n1 written_bytes": 4 * 512_000.0,
        "drive:nvme0n1 read_bytes": 5 * 512_000.0,
    }
    channels = {channel.quantity: channel for channel in meter.channels}
    assert channels["power_w"].averaging_s == 1.0
    assert "0.1 s" in channels["power_w"].note
    assert channels["energy_j"].resolution == 3600.0
    assert channels["energy_j"].wraps_at is None
    assert channels["written_bytes"].role == "detail"
    assert {channel.basis for channel in meter.channels} == {"measured"}
    assert {channel.boundary for channel in meter.channels} == {"drive"}
    assert meter.least_s == 1.0
    assert meter.facts["drive:nvme0n1"] == "ACME 7000 S1 firmware F2"
    meter.close()
    assert ask.closed


def test_a_drive_that_reports_no_power_still_gives_its_bytes(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    for power, word in ((0, "does not report"), (watts(9, 0), "gives 9 without a scale")):
        (meter,), (absence,) = nvme.find(
            sysfs=tmp_path, ask=Ask(nvme0_smart=smart_page(power=power))
        )
        assert [channel.quantity for channel in meter.channels] == ["written_bytes", "read_bytes"]
        assert word in absence.reason
        assert "nvme-model" in absence.remedy


def test_one_drive_is_lost_and_found_and_the_other_goes_on(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1"], serial="A")
    put_drive(tmp_path, "nvme1", ["nvme1n1"], serial="B")
    good = smart_page(1, watts(100, 2))
    ask = Ask(nvme0_smart=good, nvme1_smart=good)
    (meter,), _ = nvme.find(sysfs=tmp_path, ask=ask)
    for broken in (OSError(errno.ENODEV, "No such device"), b"short"):
        ask.pages["nvme0_smart"] = broken
        values = meter.read(0)
        assert all(map(math.isnan, values[:4]))
        assert values[4] == pytest.approx(1.0)
    ask.pages["nvme0_smart"] = good
    assert meter.read(0)[0] == pytest.approx(1.0)
    assert [(event.name, event.domain) for event in meter.events] == [
        ("lost", "drive:nvme0n1"),
        ("found", "drive:nvme0n1"),
    ]


def test_a_reading_without_power_is_unknown_and_not_zero(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    ask = Ask(nvme0_smart=smart_page(1, watts(100, 2)))
    (meter,), _ = nvme.find(sysfs=tmp_path, ask=ask)
    ask.pages["nvme0_smart"] = smart_page(0, 0)
    values = meter.read(0)
    assert math.isnan(values[0])
    assert math.isnan(values[1])


def test_absences_of_the_meter(tmp_path):
    (absence,) = nvme.find(sysfs=tmp_path).absences
    assert "no NVMe drive" in absence.reason
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    (absence,) = nvme.find(sysfs=tmp_path, names=["/dev/nvme5n1"]).absences
    assert "none of the drives asked for" in absence.reason
    (absence,) = nvme.find(sysfs=tmp_path, dev=tmp_path).absences
    assert absence.reason == "/dev/nvme0: no such file"
    (absence,) = nvme.find(sysfs=tmp_path, ask=Ask(), names=["nvme0n1"]).absences
    assert absence.reason == "/dev/nvme0: permission denied"
    assert "CAP_SYS_ADMIN" in absence.remedy


def test_commands_only_where_they_are_allowed(tmp_path, monkeypatch):
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    asked = []

    def refused(fd, request, command):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    def runner(words):
        asked.append(words[1])
        return smart_page(1, watts(100, 2)) if words[1] == "smart-log" else identity_page(STATES)

    monkeypatch.setattr(nvme, "Passthrough", lambda dev: Passthrough(dev, refused))
    monkeypatch.setattr(nvme, "Commands", lambda dev: Commands(dev, runner, "nvme"))
    (tmp_path / "nvme0").touch()
    assert nvme.find(sysfs=tmp_path, dev=tmp_path).meters == ()
    assert asked == []
    (meter,), absences = nvme.find(sysfs=tmp_path, dev=tmp_path, allow_commands=True)
    assert absences == ()
    assert asked == ["smart-log", "id-ctrl"]
    assert meter.facts["nvme"] == "nvme-cli"
    meter.close()


# ---- the model ----

NAN = math.nan


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (
            [(8.25, 0.35, 6.5, True), (3.5, NAN, NAN, True), (0.03, 0.0025, NAN, False)],
            (0.35, 6.5, 0.0025, 8.25),
        ),
        ([(25.0, 5.0, NAN, True)], (5.0, 25.0, 5.0, 25.0)),  # no active power: its maximum
        ([(25.0, NAN, 18.0, True), (20.0, 6.0, NAN, True)], (6.0, 18.0, 6.0, 25.0)),
        ([(8.0, 0.5, 6.0, True), (0.05, NAN, NAN, False)], (0.5, 6.0, 0.05, 8.0)),
        ([(25.0, NAN, 18.0, True)], None),  # nothing at rest
        ([(NAN, 5.0, NAN, True)], None),  # nothing at work
        ([(3.0, 5.0, NAN, True)], None),  # nonsense
        ([(0.03, 0.02, NAN, False)], None),
        ([], None),
    ],
)
def test_watts_from_power_states(states, expected):
    got = watts_of(Identity("s", "m", "f", tuple(PowerState(*state) for state in states), NAN))
    assert (got[:4] if got else None) == expected


GIVEN = DriveWatts(2.0, 10.0, 0.5, 14.0, "data sheet")


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 6000)), min_size=1, max_size=12))
def test_the_model_is_its_formula(tmp_path_factory, ticks):
    sysfs = tmp_path_factory.mktemp("sys")
    put_drive(sysfs, "nvme0", ["nvme0n1"], busy=77)
    (meter,), _ = nvme_model.find(sysfs=sysfs, watts={"nvme0n1": GIVEN})
    assert meter.read(0) == [0.0, 0.0, 0.0]
    t_ms, busy_ms, worked_s = 0, 77, 0.0
    before = [0.0, 0.0, 0.0]
    for went, busy in ticks:
        t_ms, busy_ms = t_ms + went, busy_ms + busy
        worked_s += min(went, busy) / 1e3
        set_busy(sysfs, "nvme0n1", busy_ms)
        guess, low, high = values = meter.read(t_ms * 1_000_000)
        assert guess == pytest.approx(2.0 * t_ms / 1e3 + 8.0 * worked_s)
        assert low == pytest.approx(0.5 * t_ms / 1e3)
        assert high == pytest.approx(2.0 * t_ms / 1e3 + 12.0 * worked_s)
        assert low <= guess <= high
        assert all(now >= then for now, then in zip(values, before, strict=True))
        before = values
    meter.close()


def test_a_model_says_that_it_is_one(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1", "nvme0n2"])
    (meter,), _ = nvme_model.find(sysfs=tmp_path, ask=Ask(nvme0_identity=identity_page(STATES)))
    assert isinstance(meter, Meter)
    assert {channel.basis for channel in meter.channels} == {"modelled"}
    assert all(channel.source.startswith("modelled: ") for channel in meter.channels)
    assert {channel.domain: channel.role for channel in meter.channels} == {
        "drive:nvme0n1": "part",
        "drive:nvme0n1.low": "detail",
        "drive:nvme0n1.high": "detail",
    }
    assert {channel.boundary for channel in meter.channels} == {"drive"}
    meter.close()


def test_disks_of_one_drive_are_busy_together(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1", "nvme0n2"], busy=0)
    (meter,), _ = nvme_model.find(sysfs=tmp_path, watts={"ACME 7000": GIVEN})
    meter.read(0)
    set_busy(tmp_path, "nvme0n1", 300)
    set_busy(tmp_path, "nvme0n2", 400)
    assert meter.read(10**9)[0] == pytest.approx(2.0 + 8.0 * 0.7)
    meter.close()


def test_what_is_measured_is_not_modelled(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    assert nvme_model.find(sysfs=tmp_path, watts={"S1": GIVEN}, measured={"drive:nvme0n1"}) == (
        (),
        (),
    )


def test_the_users_figures_go_before_the_drives(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    ask = Ask(nvme0_identity=identity_page(STATES))
    (meter,), _ = nvme_model.find(
        sysfs=tmp_path, ask=ask, watts={"nvme0": DriveWatts(5.0, 12.0, 5.0, 12.0, "catalogue")}
    )
    assert "catalogue" in meter.channels[0].source
    assert "5 W idle, 12 W busy" in meter.channels[0].note
    assert ask.closed
    meter.close()


def test_a_drive_that_is_replaced_or_lost_under_the_model(tmp_path):
    put_drive(tmp_path, "nvme0", ["nvme0n1"], busy=5000)
    (meter,), _ = nvme_model.find(sysfs=tmp_path, watts={"nvme0n1": GIVEN})
    meter.read(0)
    meter.read(10**9)
    (tmp_path / "block" / "nvme0n1" / "stat").write_text("garbage")
    assert all(map(math.isnan, meter.read(2 * 10**9)))
    set_busy(tmp_path, "nvme0n1", 5500)  # the counter went on while nobody could read it
    assert meter.read(3 * 10**9)[0] == pytest.approx(2.0 * 3 + 8.0 * 0.5)
    set_busy(tmp_path, "nvme0n1", 10)
    assert all(map(math.isnan, meter.read(4 * 10**9)))
    assert meter.read(5 * 10**9)[0] == pytest.approx(2.0)
    assert [event.name for event in meter.events] == ["lost", "found", "restarted"]
    meter.close()


def test_absences_of_the_model(tmp_path):
    (absence,) = nvme_model.find(sysfs=tmp_path).absences
    assert "no NVMe drive" in absence.reason
    put_drive(tmp_path, "nvme0", ["nvme0n1"])
    (absence,) = nvme_model.find(sysfs=tmp_path, ask=Ask()).absences
    assert "permission denied" in absence.reason
    assert "run as root" in absence.remedy
    (absence,) = nvme_model.find(
        sysfs=tmp_path, ask=Ask(nvme0_identity=identity_page([power_state(2500)]))
    ).absences
    assert "do not say" in absence.reason
    (tmp_path / "block" / "nvme0n1" / "stat").unlink()
    (absence,) = nvme_model.find(sysfs=tmp_path, watts={"nvme0": GIVEN}).absences
    assert absence.reason.endswith("no such file")


def test_this_machine():
    found = nvme.find()
    for meter in found.meters:
        meter.read(0)
        meter.close()
    assert found.meters or found.absences
    assert os.path.exists("/sys")
