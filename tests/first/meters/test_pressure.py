"""Pressure files made by hand, files that refuse, and this machine's."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import pytest

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import pressure
from ckptcost.first.meters.base import Meter
from ckptcost.first.meters.kept import OpenFile
from ckptcost.first.meters.pressure import stalled_s

TEXT = (
    "some avg10=2.62 avg60=0.52 avg300=0.16 total=90387941\nfull avg10=2.23 avg60=0.43 avg300=0.14"
    " total=64836153\n"
)


@pytest.fixture
def host(tmp_path):
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "io").write_text(TEXT)
    return tmp_path


def test_microseconds_become_seconds(host):
    (meter,), absences = pressure.find(procfs=host)
    assert isinstance(meter, Meter)
    assert absences == ()
    assert [channel.name for channel in meter.channels] == [
        "host some_stalled_s",
        "host full_stalled_s",
    ]
    assert meter.read(0) == [90.387941, 64.836153]
    (host / "pressure" / "io").write_text(TEXT.replace("90387941", "18446744073709551615"))
    assert meter.read(1)[0] == pytest.approx(1.8446744073709552e13)
    meter.close()
    with pytest.raises(MeterLost):
        meter.read(2)
    assert [event.name for event in meter.events] == ["lost"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"some avg10=1.0\n",
        b"some total=\n",
        b"some total=-5\n",
        b"\xff\x00",
        b"half total=5\n",
        b"some 77\n",
    ],
)
def test_garbage_is_unknown(text):
    assert all(map(math.isnan, stalled_s(text)))


def test_a_cgroup_beside_the_host(host, tmp_path):
    group = tmp_path / "sys" / "fs" / "cgroup" / "job.slice" / ".x"
    group.mkdir(parents=True)
    (group / "io.pressure").write_text(
        "some avg10=0 avg60=0 avg300=0 total=5\nfull avg10=0 avg60=0 avg300=0 total=3\n"
    )
    found = pressure.find(procfs=host, sysfs=tmp_path / "sys", group=group)
    assert [meter.channels[0].domain for meter in found.meters] == ["host", "cgroup:/job.slice/.x"]
    assert found.meters[1].read(0) == [5e-6, 3e-6]
    for meter in found.meters:
        meter.close()


def test_absences_name_file_and_remedy(tmp_path):
    found = pressure.find(procfs=tmp_path, group=tmp_path / "g")
    assert found.meters == ()
    first, second = found.absences
    assert first.reason == f"{tmp_path}/pressure/io: no such file"
    assert "psi=1" in first.remedy
    assert "cgroup.pressure" in second.remedy


def test_a_kernel_that_opens_and_refuses(host, monkeypatch):
    def refuse(fd, most, at):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "pread", refuse)
    (absence,) = pressure.find(procfs=host).absences
    assert "switched off" in absence.reason


def test_it_is_said_once_and_when_it_is_back(host):
    (host / "second").write_text(TEXT)
    meter = pressure.Pressure([("host", host / "pressure" / "io"), ("cgroup:/x", host / "second")])
    meter._files[1][1].close()
    for _ in range(2):
        values = meter.read(0)
        assert values[0] == 90.387941
        assert all(map(math.isnan, values[2:]))
    meter._files[1] = ("cgroup:/x", OpenFile(host / "second"))
    assert meter.read(0)[2] == 90.387941
    assert [(event.name, event.domain) for event in meter.events] == [
        ("lost", "cgroup:/x"),
        ("found", "cgroup:/x"),
    ]
    meter.close()


def test_a_file_longer_than_a_page_is_read_to_its_end(tmp_path):
    file = tmp_path / "long"
    file.write_bytes(os.urandom(200_000))
    kept = OpenFile(file)
    assert kept.read_all() == file.read_bytes()
    kept.close()
    kept.close()  # twice is no error
    with pytest.raises(OSError, match="Bad file descriptor"):
        kept.read_all()


def test_the_kernels_paged_files_too():
    """One read of such a file ends after a page."""
    kept = OpenFile(Path("/proc/self/maps"))
    text, once = kept.read_all(), kept.read(1 << 20)
    kept.close()
    plain = Path("/proc/self/maps").read_bytes()
    if len(plain) < 12_000:
        pytest.skip("a short one")
    assert len(once) < 0.9 * len(plain) < len(text)
    assert text.splitlines()[-1] == plain.splitlines()[-1]


def test_this_machine():
    found = pressure.find()
    if not found.meters:
        assert found.absences[0].remedy
        pytest.skip(found.absences[0].reason)
    some, full = found.meters[0].read(0)
    assert some >= full >= 0.0
    found.meters[0].close()
