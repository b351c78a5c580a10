"""nvidia-fs statistics as the driver prints them, on, off and changing."""

from __future__ import annotations

import math

import pytest

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import gds
from ckptcost.first.meters.base import Meter

HEAD = """GDS Version: 1.13.0.11
NVFS statistics(ver: 4.0)
NVFS Driver(version: 2.24.2)
Mellanox PeerDirect Supported: True
IO stats: {on}, peer IO stats: {peer}
Logging level: info

Active Shadow-Buffer (MiB): 256
Active Process: 1
Batches\t\t\t\t: n=0 ok=0 err=0 Avg-Submit-Latency(usec)=0
"""
ON = HEAD.format(on="Enabled", peer="Disabled") + """Reads\t\t\t\t: n=132768 ok=132767 err=1 readMiB=132768 io_state_err=0
Reads\t\t\t\t: Bandwidth(MiB/s)=1900 Avg-Latency(usec)=1234
Sparse Reads\t\t        : n=6 io=0 holes=0 pages=0 
Writes\t\t\t\t: n=135552 ok=135550 err=2 writeMiB=135551 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Writes\t\t\t\t: Bandwidth(MiB/s)=1800 Avg-Latency(usec)=1234
Mmap\t\t\t\t: n=32 ok=32 err=0 munmap=32
Ops\t\t\t\t: Read=0 Write=0 BatchIO=0
"""  # fmt: skip  # noqa: W291
OFF = (
    HEAD.format(on="Disabled", peer="Enabled")
    + """Reads\t\t\t\t: err=0 io_state_err=0
Writes\t\t\t\t: err=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
"""
)


@pytest.fixture
def stats(tmp_path):
    folder = tmp_path / "driver" / "nvidia-fs"
    folder.mkdir(parents=True)
    return folder / "stats"


def test_bytes_and_operations(stats, tmp_path):
    stats.write_text(ON)
    (meter,), absences = gds.find(procfs=tmp_path)
    assert isinstance(meter, Meter)
    assert absences == ()
    assert meter.read(0) == (135551 * 1048576.0, 132768 * 1048576.0, 135550.0, 132767.0)
    assert meter.facts == {"nvidia-fs": "2.24.2"}
    assert {channel.role for channel in meter.channels} == {"detail"}
    assert meter.channels[0].resolution == 1048576.0
    meter.close()
    with pytest.raises(MeterLost):
        meter.read(1)


def test_switched_off_is_an_absence_with_the_switch(stats, tmp_path):
    stats.write_text(OFF)
    (absence,) = gds.find(procfs=tmp_path, sysfs=tmp_path / "sys").absences
    assert "switched off" in absence.reason
    assert f"echo 1 > {tmp_path}/sys/module/nvidia_fs/parameters/rw_stats_enabled" in absence.remedy


def test_old_numbers_under_a_switch_that_is_off_are_not_believed(stats, tmp_path):
    stats.write_text(ON.replace("IO stats: Enabled", "IO stats: Disabled"))
    assert gds.find(procfs=tmp_path).meters == ()


def test_switched_off_during_a_run(stats, tmp_path):
    stats.write_text(ON)
    (meter,), _ = gds.find(procfs=tmp_path)
    for text, names in ((OFF, ["lost"]), (OFF, []), (ON, ["found"])):
        stats.write_text(text)
        values = meter.read(0)
        assert all(map(math.isnan, values)) is (text is OFF)
        assert [event.name for event in meter.events] == names
        meter.events.clear()
    meter.close()


def test_absences(stats, tmp_path):
    (absence,) = gds.find(procfs=tmp_path).absences
    assert "modprobe nvidia-fs" in absence.remedy
    stats.write_bytes(b"\xff garbage")
    (absence,) = gds.find(procfs=tmp_path).absences
    assert "no line Writes" in absence.reason
