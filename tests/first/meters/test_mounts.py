"""mountinfo and mountstats made by hand."""

from __future__ import annotations

import math

import pytest

from ckptcost.first.meters import mounts
from ckptcost.first.meters.base import Meter

INFO = """22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda1 rw
40 27 0:50 / /scratch rw - nfs4 srv:/export/scratch rw,vers=4.2
41 27 0:50 /sub /my\\040home rw - nfs4 srv:/export/scratch rw,vers=4.2
42 27 0:51 / /data rw - nfs nas:/data rw,vers=3
43 40 0:60 / /scratch/tmp rw - tmpfs none rw
"""


def entry(
    device, point, fstype="nfs4", numbers="11 22 33 44 55 66 7 8", write=10, read=20, commit=3
):
    return f"""device {device} mounted on {point} with fstype {fstype} statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576
\tage:\t1234
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
\tbytes:\t{numbers}
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 2 0 47 25 25 0 25 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: {read} 20 0 4000 90000 1 2 3 0
\t       WRITE: {write} 10 0 90000 1200 1 2 3 0
\t      COMMIT: {commit} 3 0 400 300 1 2 3 0

"""


LOCAL = (
    "device /dev/vda1 mounted on / with fstype ext4\ndevice proc mounted on /proc with fstype"
    " proc\n"
)
STATS = (
    LOCAL
    + entry("srv:/export/scratch", "/scratch")
    + entry("srv:/export/scratch", "/my\\040home")
    + entry("nas:/data", "/data", "nfs", numbers="1 2 3 4 5 18446744073709551615 7 8", write=1)
    + "device none mounted on /scratch/tmp with fstype tmpfs\n"
)


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(INFO)
    (tmp_path / "self" / "mountstats").write_text(STATS)
    return tmp_path


def test_server_bytes_and_not_what_calls_asked_for(proc):
    (meter,), absences = mounts.find(procfs=proc)
    assert isinstance(meter, Meter)
    assert absences == ()
    values = {
        channel.name: value for channel, value in zip(meter.channels, meter.read(0), strict=True)
    }
    assert [
        values[f"mount:/scratch {q}"]
        for q in ("written_bytes", "read_bytes", "writes", "reads", "flushes")
    ] == [
        66.0,
        55.0,
        10.0,
        20.0,
        3.0,
    ]
    assert values["mount:/data written_bytes"] == float(2**64 - 1)
    roles = {channel.domain: channel.role for channel in meter.channels}
    assert roles == {"mount:/scratch": "part", "mount:/my home": "detail", "mount:/data": "part"}
    meter.close()


def test_chosen_by_path(proc):
    (meter,), _ = mounts.find(procfs=proc, paths=("/data/run1/ckpt",))
    assert {channel.domain for channel in meter.channels} == {"mount:/data"}
    meter.close()
    found = mounts.find(procfs=proc, paths=("/scratch/tmp/x",))
    assert found.meters == ()
    assert "not on NFS" in found.absences[0].reason


def test_a_mount_that_goes_and_comes_back(proc):
    (meter,), _ = mounts.find(procfs=proc, paths=("/data",))
    (proc / "self" / "mountstats").write_text(LOCAL)
    for _ in range(2):
        assert all(map(math.isnan, meter.read(0)))
    (proc / "self" / "mountstats").write_text(STATS)
    assert meter.read(0)[2] == 1.0
    assert [(event.name, event.domain) for event in meter.events] == [
        ("lost", "mount:/data"),
        ("found", "mount:/data"),
    ]
    meter.close()


def test_lines_that_are_missing_are_unknown_and_borrow_from_nobody(proc):
    cut = "device a:/x mounted on /scratch with fstype nfs4 statvers=1.1\n\tage:\t1\n" + entry(
        "nas:/data", "/data", "nfs"
    )
    assert all(map(math.isnan, mounts.parse_mountstats(cut.encode())["/scratch"]))
    then_local = (
        cut.split("device nas")[0]
        + "device /dev/sdb mounted on /mnt with fstype xfs\n\tbytes:\t1 2 3 4 5 6 7 8\n"
    )
    assert all(map(math.isnan, mounts.parse_mountstats(then_local.encode())["/scratch"]))
    assert mounts.parse_mountstats(b"\xff\x00 garbage\n") == {}
    assert all(
        map(
            math.isnan,
            mounts.parse_mountstats(entry("a:/x", "/x", numbers="1 2 3").encode())["/x"][:2],
        )
    )


def test_absences(proc):
    assert mounts.find(procfs=proc / "none") == ((), ())
    (absence,) = mounts.find(procfs=proc / "none", asked=True).absences
    assert "no NFS mount" in absence.reason
    (proc / "self" / "mountstats").write_text(LOCAL)
    (absence,) = mounts.find(procfs=proc).absences
    assert "does not list" in absence.reason
    (proc / "self" / "mountstats").unlink()
    (absence,) = mounts.find(procfs=proc).absences
    assert absence.reason.endswith("no such file")
    assert absence.remedy


def test_the_mount_of_a_path(proc):
    def of(path):
        return mounts.mount_of(path, proc).point

    assert of("/scratch/a/b") == "/scratch"
    assert of("/scratchy") == "/"
    assert of("/my home/x") == "/my home"
    assert of("/scratch/tmp") == "/scratch/tmp"
    (proc / "self" / "mountinfo").write_text(
        INFO + "50 27 0:70 / /data rw - tmpfs over rw\nbroken line\n1 2 3 - \n"
    )
    assert mounts.mount_of("/data/x", proc).fstype == "tmpfs"  # the one mounted on top
    assert mounts.mount_of("/", proc / "none") is None


def test_this_machine():
    assert mounts.mount_of("/").point == "/"
    found = mounts.find()
    for meter in found.meters:
        meter.read(0)
        meter.close()


@pytest.mark.parametrize(
    ("source", "flags", "virtual"),
    [
        ("/dev/vda", "fpu hypervisor lahf_lm", True),
        ("/dev/nvme0n1p1", "fpu lahf_lm", False),
        ("tmpfs", "fpu hypervisor", False),
    ],
)
def test_a_disk_that_a_host_lends_is_told_apart(tmp_path, source, flags, virtual):
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    line = f"1 0 254:0 / / rw - ext4 {source} rw\n"
    (proc / "self" / "mountinfo").write_text(line)
    assert not mounts.is_virtual_disk(tmp_path, proc)
    (proc / "cpuinfo").write_text(f"processor : 0\nflags : {flags}\n")
    assert mounts.is_virtual_disk(tmp_path, proc) is virtual
