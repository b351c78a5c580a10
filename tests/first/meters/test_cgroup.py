"""io.stat and blkio made by hand, in v2, hybrid and v1 trees."""

from __future__ import annotations

import math

import pytest

from ckptcost.first.meters import cgroup
from ckptcost.first.meters.base import Meter

STAT = """254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0
253:1 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0
8:16 rbytes=100 wbytes=1000 rios=10 wios=20 dbytes=7 dios=7 cost.usage=5
7:0 
"""  # noqa: W291


class Tree:
    def __init__(self, root):
        self.procfs, self.sysfs = root / "proc", root / "sys"
        self.top = self.sysfs / "fs" / "cgroup"
        (self.procfs / "self").mkdir(parents=True)
        self.top.mkdir(parents=True)
        for name, number, slaves in (
            ("vda", "254:0", ()),
            ("dm-1", "253:1", ("vda",)),
            ("sdb", "8:16", ()),
            ("sdc", "8:32", ()),
        ):
            folder = self.sysfs / "block" / name
            (folder / "slaves").mkdir(parents=True)
            for slave in slaves:
                (folder / "slaves" / slave).mkdir()
            (folder / "size").write_text("1000\n")
            (folder / "dev").write_text(number + "\n")
            (self.sysfs / "dev" / "block").mkdir(parents=True, exist_ok=True)
            (self.sysfs / "dev" / "block" / number).symlink_to(folder)

    def own(self, text):
        (self.procfs / "self" / "cgroup").write_text(text)

    def group(self, path, **files):
        folder = self.top / path
        folder.mkdir(parents=True, exist_ok=True)
        above = folder
        while above != self.top.parent:
            (above / "cgroup.procs").touch()
            above = above.parent
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        return folder

    def find(self, **more):
        return cgroup.find(procfs=self.procfs, sysfs=self.sysfs, **more)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def read(meter):
    return {
        channel.name: value for channel, value in zip(meter.channels, meter.read(0), strict=True)
    }


def test_the_sum_is_over_disks_only(tree):
    tree.own("0::/job.slice/run 7\n")
    tree.group("job.slice/run 7", io__stat=STAT)
    (meter,), absences = tree.find()
    assert isinstance(meter, Meter)
    assert absences == ()
    values = read(meter)
    assert values["cgroup:/job.slice/run 7 written_bytes"] == 9192.0
    assert values["cgroup:/job.slice/run 7 read_bytes"] == 4196.0
    assert values["cgroup:/job.slice/run 7 writes"] == 22.0
    assert values["cgroup:/job.slice/run 7 reads"] == 11.0
    assert values["cgroup:/job.slice/run 7.sdb written_bytes"] == 1000.0
    assert values["cgroup:/job.slice/run 7.sdc written_bytes"] == 0.0  # no line is no I/O
    assert not any("dm-1" in name for name in values)
    assert {channel.role for channel in meter.channels} == {"detail"}
    meter.close()


def test_a_disk_that_appears_is_in_the_sum(tree):
    tree.own("0::/job\n")
    folder = tree.group("job", io__stat="")
    (meter,), _ = tree.find()
    assert read(meter)["cgroup:/job written_bytes"] == 0.0
    new = tree.sysfs / "block" / "sdz"
    new.mkdir()
    (new / "size").write_text("9")
    (tree.sysfs / "dev" / "block" / "65:144").symlink_to(new)
    (folder / "io.stat").write_text(
        "65:144 rbytes=0 wbytes=5 rios=0 wios=1\n253:1 wbytes=77\n99:9 wbytes=1000\n"
    )
    for _ in range(2):
        assert read(meter)["cgroup:/job written_bytes"] == 5.0
    meter.close()


def test_a_group_that_is_removed(tree):
    tree.own("0::/job\n")
    tree.group("job", io__stat=STAT)
    (meter,), _ = tree.find()
    meter.close()
    for _ in range(2):
        assert all(map(math.isnan, meter.read(0)))
    assert [(event.name, event.domain) for event in meter.events] == [("lost", "cgroup:/job")]


def test_no_controller(tree):
    tree.own("0::/a/job\n")
    tree.group("a/job", cgroup__controllers="cpu memory\n")
    (absence,) = tree.find().absences
    assert "not available" in absence.reason
    assert f"echo +io > {tree.top}/a/cgroup.subtree_control" in absence.remedy
    tree.group("a/job", cgroup__controllers="io\n")
    assert "not switched on" in tree.find().absences[0].reason


def test_a_path_that_a_container_does_not_see(tree):
    tree.own("0::/kubepods/pod1/c2\n")
    tree.group("", io__stat=STAT)
    (meter,), _ = tree.find()
    assert meter.channels[0].domain == "cgroup:/"
    meter.close()


BYTES = (
    "254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 1\n254:0 Async 2\n254:0 Total 12288\nTotal"
    " 12288\n"
)
COUNTS = "254:0 Read 1\n254:0 Write 2\n254:0 Total 3\nTotal 3\n"


@pytest.mark.parametrize("over", ["", "_recursive"])
def test_hybrid_falls_back_to_blkio(tree, over):
    tree.own("9:name=systemd:/\n7:blkio:/job\n0::/\n")
    tree.group("unified", cgroup__controllers="")
    tree.group(
        "blkio/job",
        **{
            f"blkio__throttle__io_service_bytes{over}": BYTES,
            f"blkio__throttle__io_serviced{over}": COUNTS,
        },
    )
    if over:  # the group alone says less than the group with all below it
        tree.group(
            "blkio/job",
            blkio__throttle__io_service_bytes="Total 0\n",
            blkio__throttle__io_serviced="Total 0\n",
        )
    (meter,), absences = tree.find()
    assert absences == ()
    assert meter.read(0)[:4] == [8192.0, 4096.0, 2.0, 1.0]
    assert "without write-back" in meter.channels[0].note
    meter.close()


def test_v1_that_lists_nothing_is_an_absence_and_not_zero(tree):
    tree.own("7:blkio:/\n0::/\n")
    tree.group("unified", cgroup__controllers="hugetlb\n")
    tree.group(
        "blkio",
        blkio__throttle__io_service_bytes="Total 0\n",
        blkio__throttle__io_serviced="Total 0\n",
    )
    found = tree.find()
    assert found.meters == ()
    assert "lists no device" in found.absences[0].reason
    assert "no io.stat" in found.absences[0].reason
    assert found.absences[0].remedy


def test_no_cgroups_at_all(tree):
    (absence,) = tree.find().absences
    assert "no cgroup with I/O accounting" in absence.reason


@pytest.mark.parametrize(
    "text", [b"", b"8:0\n", b"8:0 rbytes=x wbytes=1\n", b"\xff=\xfe\n\n", b"8:0 cost.usage=5\n"]
)
def test_garbage_is_no_line(text):
    assert cgroup.io_stat(text) == {}


def test_a_given_folder(tree):
    folder = tree.group("b/c", io__stat=STAT, cgroup__controllers="io")
    (meter,), _ = tree.find(folder=folder)
    assert meter.channels[0].domain == "cgroup:/b/c"
    meter.close()


def test_this_machine():
    found = cgroup.find()
    for meter in found.meters:
        assert len(meter.read(0)) == len(meter.channels)
        meter.close()
    for absence in found.absences:
        assert absence.reason
        assert absence.remedy
