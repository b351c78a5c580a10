"""Lustre client statistics of several versions, as files and as lctl prints them."""

from __future__ import annotations

import math
import subprocess

import pytest

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters import lustre
from ckptcost.first.meters.base import Meter

LLITE = """snapshot_time             1523008010.817348638 secs.nsecs
read_bytes                25673 samples [bytes] 1 3366225 145121869
write_bytes               13641 samples [bytes] 1 3366225 468230469
fsync                     12 samples [regs]
"""
NEWER = """snapshot_time             1700000000.1 secs.nsecs
start_time                1690000000.1 secs.nsecs
elapsed_time              10000000.0 secs.nsecs
write_bytes               2 samples [bytes] 1 10 11 101
fsync                     3 samples [usecs] 100 900 1500 820000
"""
OSC = """snapshot_time             1523008010.8 secs.nsecs
req_waittime              99 samples [usec] 30 90000 500000 90000000
write_bytes               5 samples [bytes] 4096 4194304 {wrote} 99
"""
INFO = (
    "1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:44 / /scratch rw - lustre"
    " 10.0.0.1@tcp:10.0.0.2@tcp:/scr rw,flock\n"
)


@pytest.fixture
def client(tmp_path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(INFO)

    def put(name, text, root=tmp_path / "fs" / "lustre"):
        kind, _, rest = name.partition(".")
        folder = root / kind / rest
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stats").write_text(text)

    return tmp_path, put


def read(meter):
    return {
        channel.name: value for channel, value in zip(meter.channels, meter.read(0), strict=True)
    }


def test_calls_alone(client):
    root, put = client
    put("llite.scr-ffff88084e3ef000", LLITE)
    (meter,), absences = lustre.find(procfs=root, sysfs=root)
    assert isinstance(meter, Meter)
    assert absences == ()
    assert read(meter) == {
        "mount:/scratch written_bytes": 468230469.0,
        "mount:/scratch read_bytes": 145121869.0,
        "mount:/scratch flushes": 12.0,
    }
    assert "calls" in meter.channels[0].note
    assert meter.channels[0].role == "part"
    meter.close()


def test_the_wire_goes_before_the_calls(client):
    root, put = client
    debug = root / "kernel" / "debug" / "lustre"
    put("llite.scr-ffff01", NEWER, debug)
    put("osc.scr-OST0000-osc-ffff01", OSC.format(wrote=1000), debug)
    put("osc.scr-OST000a-osc-ffff01", OSC.format(wrote=500), debug)
    put("osc.scr-OST0000-osc-ffff99", OSC.format(wrote=7), debug)  # another mount's
    put("osc.other-OST0000-osc-ffff01", OSC.format(wrote=7), debug)
    (meter,), _ = lustre.find(procfs=root, sysfs=root)
    values = read(meter)
    assert values["mount:/scratch written_bytes"] == 1500.0
    assert values["mount:/scratch read_bytes"] == 0.0  # no line without samples
    assert values["mount:/scratch.calls written_bytes"] == 11.0
    assert values["mount:/scratch flushes"] == 3.0
    assert {channel.domain: channel.role for channel in meter.channels} == {
        "mount:/scratch": "part",
        "mount:/scratch.calls": "detail",
    }
    (debug / "osc" / "scr-OST000a-osc-ffff01" / "stats").write_text("")  # one that does not answer
    assert math.isnan(read(meter)["mount:/scratch written_bytes"])
    assert read(meter)["mount:/scratch.calls written_bytes"] == 11.0
    meter.close()


def test_two_mounts_of_one_file_system_keep_their_own_names(client):
    root, put = client
    (root / "self" / "mountinfo").write_text(
        INFO + "3 1 0:45 / /second rw - lustre 10.0.0.1@tcp:/scr rw\n"
    )
    put("llite.scr-a1", LLITE)
    put("llite.scr-b2", NEWER)
    (meter,), _ = lustre.find(procfs=root, sysfs=root)
    assert {channel.domain for channel in meter.channels} == {"mount:scr-a1", "mount:scr-b2"}
    meter.close()


def lctl(**more):
    return b"".join(
        f"{name}=\n{text}".encode() for name, text in {"llite.scr-a1.stats": LLITE, **more}.items()
    )


def test_what_lctl_prints(client):
    root, _ = client
    texts = [lctl(**{"osc.scr-OST0000-osc-a1.stats": OSC.format(wrote=70)})]
    (meter,), _ = lustre.find(procfs=root, sysfs=root, runner=lambda: texts[0])
    assert meter.least_s >= 1.0
    assert read(meter)["mount:/scratch written_bytes"] == 70.0
    texts[0] = b"osc.scr-OST0000-osc-a1.stats=\n"
    for _ in range(2):
        assert all(map(math.isnan, meter.read(0)))
    texts[0] = lctl()
    assert read(meter)["mount:/scratch flushes"] == 12.0
    assert [event.name for event in meter.events] == ["lost", "found"]
    meter.close()


def test_lctl_that_fails(client):
    root, _ = client

    def refused():
        raise OSError(13, "Permission denied")

    (absence,) = lustre.find(procfs=root, sysfs=root, runner=refused).absences
    assert "lctl: permission denied" in absence.reason
    (absence,) = lustre.find(procfs=root, sysfs=root, runner=lambda: b"").absences
    assert "lists nothing" in absence.reason
    works = [True]

    def sometimes():
        if not works[0]:
            raise subprocess.TimeoutExpired("lctl", 10)
        return lctl()

    (meter,), _ = lustre.find(procfs=root, sysfs=root, runner=sometimes)
    works[0] = False
    with pytest.raises(MeterLost, match="lctl"):
        meter.read(0)


def test_absences(client):
    root, _ = client
    (absence,) = lustre.find(procfs=root, sysfs=root).absences
    assert "no statistics" in absence.reason
    assert "root" in absence.remedy
    assert lustre.find(procfs=root / "none", sysfs=root) == ((), ())
    (absence,) = lustre.find(procfs=root / "none", sysfs=root, asked=True).absences
    assert absence.reason == "no Lustre mount"


@pytest.mark.parametrize(
    "text", [b"", b"write_bytes\n", b"write_bytes x samples [bytes] 1 2 3\n", b"\xff\n"]
)
def test_garbage_is_unknown(text):
    assert lustre.parse_stats(text) == {}
    assert math.isnan(lustre._quantity(text, "write_bytes", True))
