"""diskstats and sysfs trees made by hand; then this machine's own disk against what was written to
it."""

from __future__ import annotations

import math
import mmap
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from throttled import device_of, throttled, why_not

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import block
from ckptcost.first.meters.base import Meter

MIB = 1 << 20


def line(
    name,
    major=8,
    minor=0,
    reads=1,
    read=8,
    writes=2,
    wrote=16,
    flight=0,
    busy=10,
    queue=20,
    flushes=3,
    fields=17,
):
    """The 17 fields of kernel 5.5 and newer, the 15 of 4.18 or the 11 before."""
    words = [reads, 0, read, 4, writes, 0, wrote, 5, flight, busy, queue, 0, 0, 0, 0, flushes, 6][
        :fields
    ]
    return f"{major:4d} {minor:7d} {name} " + " ".join(map(str, words)) + "\n"


class Machine:
    """A made-up /proc and /sys."""

    def __init__(self, root: Path) -> None:
        self.procfs, self.sysfs = root / "proc", root / "sys"
        (self.procfs / "self").mkdir(parents=True)
        (self.sysfs / "block").mkdir(parents=True)
        (self.sysfs / "dev" / "block").mkdir(parents=True)
        self.mountinfo("")
        self.minor = 0

    def stats(self, text: str) -> None:
        (self.procfs / "diskstats").write_text(text)

    def mountinfo(self, text: str) -> None:
        (self.procfs / "self" / "mountinfo").write_text(text)

    def disk(self, name, partitions=(), slaves=(), size=1000, backing="", model="", number=""):
        folder = self.sysfs / "block" / name
        (folder / "slaves").mkdir(parents=True)
        (folder / "size").write_text(f"{size}\n")
        self.minor += 16
        number = number or f"8:{self.minor}"
        (folder / "dev").write_text(number + "\n")
        (self.sysfs / "dev" / "block" / number).symlink_to(folder)
        for slave in slaves:
            (folder / "slaves" / slave).mkdir()
        if backing:
            (folder / "loop").mkdir()
            (folder / "loop" / "backing_file").write_text(backing + "\n")
        if model:
            (folder / "device").mkdir()
            (folder / "device" / "model").write_text(model + "\n")
        for at, part in enumerate(partitions, 1):
            inside = folder / part
            inside.mkdir()
            (inside / "partition").write_text(f"{at}\n")
            (inside / "size").write_text("500\n")
            (self.sysfs / "dev" / "block" / f"8:{self.minor + at}").symlink_to(inside)
        return number

    def find(self, **more):
        return block.find(procfs=self.procfs, sysfs=self.sysfs, **more)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def by_name(meter, values):
    return {channel.name: value for channel, value in zip(meter.channels, values, strict=True)}


def test_every_field_and_its_unit(machine):
    machine.disk("sda", partitions=["sda1"], model="ACME 9")
    machine.stats(
        line(
            "sda",
            reads=7,
            read=100,
            writes=9,
            wrote=200,
            flight=4,
            busy=1500,
            queue=2500,
            flushes=11,
        )
        + line("sda1", minor=1)
    )
    (meter,), absences = machine.find()
    assert isinstance(meter, Meter)
    assert absences == ()
    values = by_name(meter, meter.read(0))
    assert values == {
        "disk:sda written_bytes": 200 * 512.0,
        "disk:sda read_bytes": 100 * 512.0,
        "disk:sda writes": 9.0,
        "disk:sda reads": 7.0,
        "disk:sda flushes": 11.0,
        "disk:sda busy_s": 1.5,
        "disk:sda queue_s": 2.5,
        "disk:sda in_flight": 4.0,
        "disk:sda1 written_bytes": 16 * 512.0,
        "disk:sda1 read_bytes": 8 * 512.0,
        "disk:sda1 writes": 2.0,
        "disk:sda1 reads": 1.0,
    }
    roles = {channel.domain: channel.role for channel in meter.channels}
    assert roles == {"disk:sda": "part", "disk:sda1": "detail"}
    assert meter.channels[0].device == "ACME 9"
    wraps = {
        channel.quantity: channel.wraps_at
        for channel in meter.channels
        if channel.domain == "disk:sda"
    }
    assert wraps["busy_s"] == wraps["queue_s"] == 4294967.296
    assert wraps["written_bytes"] is None
    meter.close()


def test_fields_older_kernels_lack_have_no_channel(machine):
    machine.disk("sda")
    for fields, has in ((11, False), (15, False), (17, True)):
        machine.stats(line("sda", fields=fields))
        (meter,), _ = machine.find()
        assert ("disk:sda flushes" in by_name(meter, meter.read(0))) is has
        meter.close()


def test_what_lies_on_disks_is_a_detail_and_memory_is_left_out(machine):
    machine.disk("sda", partitions=["sda1"])
    machine.disk("nvme0n1", partitions=["nvme0n1p1"])
    machine.disk("md0", slaves=["sda1", "nvme0n1p1"])
    machine.disk("dm-0", slaves=["md0"])
    machine.disk("loop0", backing="/var/x.img")
    machine.disk("loop1", size=0)
    machine.disk("ram0")
    machine.disk("zram0")
    machine.disk("nvme0c0n1")
    names = [
        "loop0",
        "loop1",
        "ram0",
        "zram0",
        "dm-0",
        "md0",
        "sda",
        "sda1",
        "nvme0n1",
        "nvme0n1p1",
        "nvme0c0n1",
    ]
    machine.stats("".join(map(line, names)))
    (meter,), _ = machine.find()
    roles = {channel.domain: channel.role for channel in meter.channels}
    assert roles.pop("disk:sda") == roles.pop("disk:nvme0n1") == "part"
    assert set(roles) == {"disk:loop0", "disk:dm-0", "disk:md0", "disk:sda1", "disk:nvme0n1p1"}
    assert set(roles.values()) == {"detail"}
    notes = {channel.domain: channel.note for channel in meter.channels}
    assert notes["disk:loop0"] == "lies on /var/x.img"
    assert notes["disk:md0"] == "lies on nvme0n1p1, sda1"
    parts = sum(
        v
        for c, v in zip(meter.channels, meter.read(0), strict=True)
        if c.role == "part" and c.quantity == "written_bytes"
    )
    assert parts == 2 * 16 * 512.0
    meter.close()
    (meter,), _ = machine.find(partitions=False)
    assert not any(channel.domain in ("disk:sda1", "disk:nvme0n1p1") for channel in meter.channels)
    meter.close()


def test_the_folders_own_device_is_a_fact(machine, monkeypatch):
    machine.disk("sda", partitions=["sda1"])
    machine.disk("loop0", backing="/var/x.img")
    machine.stats("".join(map(line, ["sda", "sda1", "loop0"])))
    (meter,), _ = machine.find()
    assert "folder" not in meter.facts
    meter.close()
    home = block.DiskHome(("sda",), ("loop0", "sda1"), "ext4", "/mnt")
    monkeypatch.setattr(block, "device_of", lambda *_, **__: home)
    (meter,), _ = machine.find(paths=["/mnt/checkpoints"])
    assert meter.facts["folder"] == "disk:loop0"
    assert {c.domain for c in meter.channels} == {"disk:sda", "disk:sda1", "disk:loop0"}
    meter.close()


def test_stacked_devices_are_details_even_without_sysfs(machine):
    machine.stats(line("sda") + line("dm-3") + line("md127"))
    (meter,), _ = machine.find()
    assert {channel.domain: channel.role for channel in meter.channels} == {
        "disk:sda": "part",
        "disk:dm-3": "detail",
        "disk:md127": "detail",
    }
    meter.close()


def test_lines_may_change_places_and_devices_come_and_go(machine):
    machine.disk("sda")
    machine.disk("sdb")
    machine.stats(line("sda", wrote=2) + line("sdb", wrote=4))
    (meter,), _ = machine.find(partitions=False)
    machine.stats(line("sdb", wrote=40) + line("sda", wrote=20))
    values = by_name(meter, meter.read(0))
    assert (values["disk:sda written_bytes"], values["disk:sdb written_bytes"]) == (
        20 * 512.0,
        40 * 512.0,
    )
    machine.stats(line("sdb", wrote=50))
    for _ in range(2):
        values = by_name(meter, meter.read(0))
        assert math.isnan(values["disk:sda written_bytes"])
        assert values["disk:sdb written_bytes"] == 50 * 512.0
    assert [(event.name, event.domain) for event in meter.events] == [("lost", "disk:sda")]
    meter.events.clear()
    machine.stats(
        line("sda", wrote=1, writes=0, reads=0) + line("sdb", wrote=50) + line("sdc") + line("ram0")
    )
    values = by_name(meter, meter.read(0))
    assert values["disk:sda written_bytes"] == 512.0
    assert [(event.name, event.domain) for event in meter.events] == [
        ("found", "disk:sda"),
        ("note", "disk:sdc"),
    ]
    meter.close()


def test_a_drive_under_the_same_name_is_a_gap_and_not_a_wrap(machine):
    machine.disk("sda")
    machine.stats(line("sda", writes=100, busy=9000))
    (meter,), _ = machine.find()
    meter.read(0)
    machine.stats(line("sda", writes=1, busy=5))
    assert all(map(math.isnan, meter.read(1)))
    assert [event.name for event in meter.events] == ["restarted"]
    assert by_name(meter, meter.read(2))["disk:sda busy_s"] == 0.005
    meter.close()


def test_a_32_bit_wrap_of_the_times_is_passed_on(machine):
    machine.disk("sda")
    machine.stats(line("sda", busy=2**32 - 1))
    (meter,), _ = machine.find()
    machine.stats(line("sda", writes=3, busy=4))
    assert by_name(meter, meter.read(1))["disk:sda busy_s"] == 0.004
    meter.close()


def test_garbage_and_truncation_are_unknown(machine):
    machine.disk("sda")
    machine.stats(line("sda"))
    (meter,), _ = machine.find()
    for text in (
        line("sda")[:30] + "\n",
        "8 0 sda x y z 1 2 3 4 5 6 7 8 9 10 11 12 13 14\n",
        "\x00\xff\n",
    ):
        machine.stats(text)
        assert all(map(math.isnan, meter.read(0)))
    machine.stats(line("sda", wrote=2**64 - 1))
    assert by_name(meter, meter.read(0))["disk:sda written_bytes"] == (2**64 - 1) * 512.0
    meter.close()


def test_absences(machine, tmp_path):
    (absence,) = machine.find().absences
    assert (absence.what, absence.reason) == ("block", f"{machine.procfs}/diskstats: no such file")
    assert absence.remedy
    machine.stats("")
    (absence,) = machine.find().absences
    assert "no block device" in absence.reason
    machine.stats(line("sda"))
    found = machine.find(names=["/dev/sda", "sdq"])
    assert [absence.what for absence in found.absences] == ["block sdq"]
    assert {channel.domain for channel in found.meters[0].channels} == {"disk:sda"}
    found.meters[0].close()
    machine.mountinfo(f"1 1 0:9 / {tmp_path} rw - tmpfs none rw\n")
    found = machine.find(paths=[tmp_path])
    assert found.meters == ()
    assert "memory" in found.absences[0].reason


def test_a_whole_meter_that_goes_is_lost(machine):
    machine.stats(line("sda"))
    (meter,), _ = machine.find()
    meter.close()
    with pytest.raises(MeterLost, match="diskstats"):
        meter.read(0)


def test_device_of_follows_partitions_dm_and_md(machine, tmp_path):
    machine.disk("sda", partitions=["sda1"])
    machine.disk("nvme0n1", partitions=["nvme0n1p1"])
    machine.disk("md0", slaves=["nvme0n1p1", "sda1"])
    dm = machine.disk("dm-0", slaves=["md0"])
    machine.mountinfo(f"1 1 {dm} / {tmp_path} rw - ext4 /dev/mapper/vg-lv rw\n")

    def of(number):
        return block.device_of(
            tmp_path / "not" / "yet", procfs=machine.procfs, sysfs=machine.sysfs, number=number
        )

    assert of("8:17") == ((("sda",), ("sda1",), "ext4", str(tmp_path), "", ""))
    assert of(dm).disks == ("nvme0n1", "sda")
    assert of(dm).chain == ("dm-0", "md0", "nvme0n1p1", "sda1")
    machine.stats("".join(map(line, ["sda", "sda1", "sdb", "dm-0", "md0", "nvme0n1", "nvme0n1p1"])))
    (meter,), absences = machine.find(names=of(dm).disks)
    assert [c.domain for c in meter.channels if c.quantity == "written_bytes"] == [
        "disk:nvme0n1",
        "disk:sda",
    ]
    assert absences == ()
    meter.close()


def test_device_of_says_why_there_is_none(machine, tmp_path):
    for fstype, source, options, word in (
        ("tmpfs", "none", "rw", "memory"),
        ("nfs4", "s:/x", "rw", "server"),
        ("lustre", "a@tcp:/x", "rw", "servers"),
        ("overlay", "overlay", "rw,lowerdir=/l,upperdir=/nowhere/up,workdir=/w", "not visible"),
        ("9p", "share", "rw", "names no disk"),
    ):
        machine.mountinfo(
            f"1 1 0:3 / / rw - ext4 /dev/sda1 rw\n2 1 0:77 / {tmp_path} rw - {fstype} {source}"
            f" {options}\n"
        )
        home = block.device_of(tmp_path, procfs=machine.procfs, sysfs=machine.sysfs, number="0:77")
        assert home.disks == ()
        assert word in home.reason
        assert home.remedy
        assert home.fstype == fstype


def test_an_overlay_with_a_visible_upper_directory_is_followed(machine, tmp_path):
    upper = tmp_path / "upper"
    upper.mkdir()
    real = os.stat(upper).st_dev
    machine.disk("sda", number=f"{os.major(real)}:{os.minor(real)}")
    machine.mountinfo(
        f"1 1 0:3 / / rw - ext4 /dev/sda rw\n2 1 0:77 / {tmp_path}/top rw - overlay overlay"
        f" rw,upperdir={upper}\n"
    )
    (tmp_path / "top").mkdir()
    home = block.device_of(
        tmp_path / "top", procfs=machine.procfs, sysfs=machine.sysfs, number="0:77"
    )
    assert (home.disks, home.fstype) == (("sda",), "overlay")


@given(
    st.permutations(["sda", "sdb", "nvme0n1", "dm-0"]),
    st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4),
)
def test_numbers_belong_to_names(order, sectors):
    wrote = dict(zip(order, sectors, strict=True))
    text = "".join(line(name, wrote=wrote[name]) for name in order).encode()
    found = block.numbers_of(text, frozenset([b"sdb", b"dm-0"]))
    assert {name: int(found[name.encode()][6]) for name in ("sdb", "dm-0")} == {
        name: wrote[name] for name in ("sdb", "dm-0")
    }
    assert found[b"sda"] == []


# ---- this machine ----

SIZE = 32 * MIB


@pytest.fixture
def disk(tmp_path):
    """A folder on the disk under the temporary directory, and a way to ask a meter of it."""
    home = block.device_of(tmp_path)
    if home.reason:
        pytest.skip(f"no disk below {tmp_path}: {home.reason}")
    with asked(home.disks) as moved:
        yield tmp_path, moved


@pytest.fixture
def own_disk(tmp_path, request):
    """The same of a disk that nobody else writes to, where one can be had."""
    if why_not():
        yield request.getfixturevalue("disk")
        return
    with throttled(tmp_path) as folder, asked((device_of(folder).resolve().name,)) as moved:
        yield folder, moved


@contextmanager
def asked(disks):
    found = block.find(names=disks, partitions=False)
    if not found.meters:
        pytest.skip(found.absences[0].reason)
    meter = found.meters[0]

    def moved():
        values = meter.read(time.monotonic_ns())
        picked = {"written_bytes": 0.0, "flushes": 0.0}
        for channel, value in zip(meter.channels, values, strict=True):
            if channel.quantity in picked and channel.role == "part":
                picked[channel.quantity] += value
        return picked["written_bytes"], picked["flushes"]

    os.sync()
    yield moved
    meter.close()


@pytest.mark.parametrize("way", ["buffered", "direct", "mmap", "child"])
def test_what_is_synced_has_reached_the_disk(disk, way):
    folder, moved = disk
    file = folder / "save.bin"
    before = moved()
    if way == "child":
        script = (
            f"import os; f = open({str(file)!r}, 'wb'); f.write(os.urandom({SIZE})); f.flush();"
            " os.fsync(f.fileno())"
        )
        subprocess.run([sys.executable, "-c", script], check=True)
    elif way == "mmap":
        with open(file, "wb+") as opened:
            opened.truncate(SIZE)
            with mmap.mmap(opened.fileno(), SIZE) as mapped:
                mapped[:] = os.urandom(SIZE)
                mapped.flush()
    else:
        flags = os.O_WRONLY | os.O_CREAT | (os.O_DIRECT if way == "direct" else 0)
        with mmap.mmap(-1, SIZE) as buffer:  # aligned to a page
            buffer.write(os.urandom(SIZE))
            try:
                fd = os.open(file, flags)
            except OSError:
                pytest.skip("this file system has no O_DIRECT")
            with memoryview(buffer) as view:
                assert os.write(fd, view) == SIZE
            os.fsync(fd)
            os.close(fd)
    after = moved()
    assert (
        after[0] - before[0] >= 0.99 * SIZE
    )  # others write here too; nothing bounds it from above
    if after[1] == after[1]:
        assert after[1] >= before[1]


def test_what_is_deleted_while_dirty_never_arrives(own_disk):
    folder, moved = own_disk
    least = float("inf")
    for attempt in range(5):
        # write-back may begin at any time: one quiet attempt proves it
        file = folder / f"dirty{attempt}.bin"
        before = moved()
        file.write_bytes(os.urandom(SIZE))
        file.unlink()
        os.sync()
        least = min(least, moved()[0] - before[0])
        if least < 0.5 * SIZE:
            break
    assert least < 0.5 * SIZE
