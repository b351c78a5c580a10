"""meminfo and vmstat made by hand; `drained` against made-up write-backs whose end is known, and
one real one."""

from __future__ import annotations

import math
import os
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import series
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import block, writeback
from ckptcost.first.meters.base import Meter
from ckptcost.first.meters.writeback import drain_times

MEMINFO = (
    "MemTotal: 9 kB\nDirty:               284 kB\nWriteback:            16 kB\nNFS_Unstable: 7"
    " kB\nWritebackTmp:          3 kB\n"
)
VMSTAT = "nr_dirty 70\nnr_dirtied 5928656\nnr_written 5139380\nnr_dirty_threshold 1\n"


def test_the_two_meters(tmp_path):
    (tmp_path / "meminfo").write_text(MEMINFO)
    (tmp_path / "vmstat").write_text(VMSTAT)
    found = writeback.find(procfs=tmp_path, page_bytes=16384)
    assert found.absences == ()
    quick, slow = found.meters
    assert isinstance(quick, Meter)
    assert isinstance(slow, Meter)
    assert quick.read(0) == (284 * 1024.0, 16 * 1024.0)
    assert slow.read(0) == (5139380 * 16384.0,)
    assert [channel.quantity for channel in quick.channels] == ["dirty_bytes", "writeback_bytes"]
    assert slow.least_s >= 0.5
    (tmp_path / "meminfo").write_text("Dirty: x kB\n")
    (tmp_path / "vmstat").write_text("")
    assert all(map(math.isnan, (*quick.read(1), *slow.read(1))))
    for meter in found.meters:
        meter.close()
        with pytest.raises(MeterLost):
            meter.read(2)


def test_absences(tmp_path):
    assert [absence.what for absence in writeback.find(procfs=tmp_path).absences] == [
        "writeback",
        "vmstat",
    ]
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\n")
    (tmp_path / "vmstat").write_text("nr_free 1\n")
    found = writeback.find(procfs=tmp_path)
    assert found.meters == ()
    assert "no line Dirty" in found.absences[0].reason
    assert "no line nr_written" in found.absences[1].reason


def a_save(size, rate, begin=10.0, returned=12.0, first=0.0, standing=0.0, period=0.5, end=200.0):
    """A page cache that fills from begin to return and is written out at `rate` from then on; and
    the device's counter."""
    t = np.arange(0.0, end, period)
    made = np.clip((t - begin) / (returned - begin), 0.0, 1.0) * size
    taken = np.clip((t - returned) * rate, 0.0, size)
    return t, standing + made - taken, first + taken


@given(st.floats(1e8, 1e11), st.floats(5.0, 100.0), st.floats(0.0, 1e12), st.floats(0.05, 2.0))
def test_a_quiet_host_drains_when_the_arithmetic_says(size, seconds, first, period):
    t, level, taken = a_save(size, size / seconds, first=first, period=period)
    slack = min(0.01 * size, 1 << 20)
    got = drain_times(
        series(t, level), series(t, taken), begin_s=10.0, returned_s=12.0, size_bytes=size
    )
    truth = 12.0 + seconds
    early = slack / (size / seconds)  # the slack may be forgiven
    assert got.after_s <= truth
    assert truth - early - 1e-6 <= got.at_s <= truth + period + 1e-6
    assert got.at_s - got.after_s <= period + 1e-6
    assert got.surely_s == got.at_s
    assert got.enough is True
    assert got.left_bytes < 1.0 + 1e-6 * size


def test_others_that_keep_the_cache_dirty_leave_certainty_out():
    t, level, taken = a_save(1e9, 1e8, standing=5e7)
    got = drain_times(
        series(t, level), series(t, taken), begin_s=10.0, returned_s=12.0, size_bytes=1e9
    )
    assert got.at_s == pytest.approx(22.0, abs=0.5)
    assert math.isnan(got.surely_s)


def test_a_level_that_is_back_is_not_enough():
    """Somebody else's dirty pages go first: the level is where it was, and ours are still in it."""
    t = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    level = [1e9, 1.5e9, 1.0e9, 0.9e9, 0.4e9, 0.0]
    taken = [0.0, 0.0, 0.5e9, 0.6e9, 1.1e9, 1.5e9]
    got = drain_times(
        series(t, level), series(t, taken), begin_s=0.0, returned_s=1.0, size_bytes=1e9
    )
    assert (got.at_s, got.after_s, got.surely_s) == (4.0, 3.0, 5.0)
    assert (
        drain_times(series(t, level), None, begin_s=0.0, returned_s=1.0, size_bytes=1e9).at_s == 2.0
    )
    assert drain_times(series(t, level), None, begin_s=0.0, returned_s=1.0).enough is None


def test_bytes_that_never_went_there_are_told():
    t, level, _ = a_save(1e9, 1e8)
    got = drain_times(
        series(t, level), series(t, np.zeros_like(t)), begin_s=10.0, returned_s=12.0, size_bytes=1e9
    )
    assert math.isnan(got.at_s)
    assert got.enough is False
    assert got.left_bytes == 0.0


def test_not_drained_yet():
    t, level, taken = a_save(1e9, 1e7, end=30.0)
    got = drain_times(
        series(t, level), series(t, taken), begin_s=10.0, returned_s=12.0, size_bytes=1e9
    )
    assert math.isnan(got.at_s)
    assert math.isnan(got.after_s)
    assert got.left_bytes == pytest.approx(1e9 - 1e7 * 17.5)
    assert got.enough is False


def test_direct_io_is_there_when_the_save_returns():
    got = drain_times(
        series([0, 1, 2, 3], [0.0] * 4),
        series([0, 1, 2, 3], [0, 5e8, 1e9, 1e9]),
        begin_s=0.0,
        returned_s=2.0,
        size_bytes=1e9,
    )
    assert (got.at_s, got.after_s) == (2.0, 1.0)


def test_readings_that_failed_are_passed_over():
    nan = float("nan")
    t = [0, 1, 2, 3, 4]
    whole = drain_times(
        series(t, [0, 9e8, 5e8, 1e8, 0]),
        series(t, [0, 1e8, 5e8, 9e8, 1e9]),
        begin_s=0.0,
        returned_s=1.0,
        size_bytes=1e9,
    )
    holes = drain_times(
        series(t, [0, 9e8, nan, 1e8, 0]),
        series(t, [0, nan, 5e8, 9e8, 1e9]),
        begin_s=0.0,
        returned_s=1.0,
        size_bytes=1e9,
    )
    assert whole == holes
    fell = drain_times(
        series(t, [0, 9e8, 5e8, 1e8, 0]),
        series(t, [5e9, 1e8, 5e8, 9e8, 1e9]),
        begin_s=0.0,
        returned_s=1.0,
        size_bytes=1e9,
    )
    assert fell.at_s == 4.0  # another device's counter says nothing
    assert fell.enough is None


@pytest.mark.parametrize(
    "level", [series([], []), series([5.0], [1.0]), series([0.0], [float("nan")])]
)
def test_nothing_known_before_the_save_is_nothing_known(level):
    got = drain_times(level, None, begin_s=1.0, returned_s=2.0, size_bytes=1.0)
    assert all(map(math.isnan, got[:4]))
    assert got.enough is None


def test_a_real_buffered_write_drains(tmp_path):
    home = block.device_of(tmp_path)
    found = writeback.find()
    if home.reason or not found.meters or found.meters[0].name != "writeback":
        pytest.skip(home.reason or "no meminfo")
    disk = block.find(names=home.disks, partitions=False).meters[0]
    columns = [
        at
        for at, channel in enumerate(disk.channels)
        if channel.quantity == "written_bytes" and channel.role == "part"
    ]
    quick = found.meters[0]
    size = 32 << 20
    t, level, taken = [], [], []

    def look():
        t.append(time.monotonic())
        level.append(sum(quick.read(0)))
        values = disk.read(0)
        taken.append(sum(values[at] for at in columns))

    os.sync()
    look()
    begin = time.monotonic()
    file = tmp_path / "save.bin"
    file.write_bytes(os.urandom(size))
    returned = time.monotonic()
    look()
    at_return = level[-1]
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())
    synced = time.monotonic()
    look()
    got = drain_times(
        series(t, level),
        series(t, taken),
        begin_s=begin,
        returned_s=returned,
        size_bytes=size,
        slack_bytes=size / 4,
    )
    for meter in (disk, *found.meters):
        meter.close()
    assert at_return > 0.0
    assert got.enough is True  # whoever wrote it: fsync has returned
    if got.at_s == got.at_s:  # on a host that others keep dirty the level need not come back
        assert got.after_s <= synced
        assert got.at_s <= t[-1]
