"""What the host's page cache says of saves that nobody saw become safe, and of which it says
nothing."""

from __future__ import annotations

import pytest

from ckptcost.first.core.channels import Channel, Mark, series
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.phases import windows_of
from ckptcost.first.jobs.drains import drained_marks

T_S = [0, 2, 4, 6, 8, 10, 12, 14]
DIRTY = [10e6, 10e6, 70e6, 40e6, 10e6, 10e6, 10e6, 10e6]
UNDER_WAY = [0, 0, 40e6, 50e6, 40e6, 0, 0, 0]
TAKEN = [5e6, 5e6, 5e6, 25e6, 65e6, 105e6, 105e6, 105e6]
SAVE = [
    Mark(2.0, "begin", "w", detail={"bytes": 100e6}),
    Mark(4.0, "written", "w"),
    Mark(4.1, "returned", "w"),
]


class Host:
    """Readings as `Energies` has them; `disks` by domain and role."""

    def __init__(
        self, dirty=DIRTY, under_way=UNDER_WAY, taken=TAKEN, disks=(("disk:sda", "part"),)
    ):
        self.of = {
            "host": {
                "dirty_bytes": series(T_S[: len(dirty)], dirty),
                "writeback_bytes": series(T_S[: len(under_way)], under_way),
            }
        }
        self.channels = [Channel("host", "written_bytes", "vmstat", role="detail")]
        self.asked = []
        for domain, role in disks:
            self.of[domain] = {"written_bytes": series(T_S, taken)}
            self.channels.append(Channel(domain, "written_bytes", "diskstats", role=role))

    def readings(self, domain):
        self.asked.append(domain)
        return self.of.get(domain, {})


def found(host=None, marks=SAVE):
    return drained_marks(host or Host(), list(marks))


def test_safe_at_the_reading_at_which_both_were_paid():
    (mark,) = found()
    assert mark == Mark(10.0, "durable", "w", 0, "watch", {"how": "drained", "unsure_s": 2.0})
    (window,) = windows_of([*SAVE, mark])
    assert window.durable_s == 10.0
    assert contents_of([*SAVE, mark], [window])[0].how == "drained"


def test_dirty_alone_is_not_all_that_is_owed():
    """The pages under write-back are not there yet: with the level of dirty alone it would be safe
    at 8 s."""
    assert found(Host(taken=[5e6, 5e6, 5e6, 200e6, 200e6, 200e6, 200e6, 200e6]))[0].t_s == 10.0


def test_the_level_alone_is_not_enough_where_the_disk_took_less_by_then():
    assert found(Host(taken=[5e6] * 5 + [45e6, 105e6, 105e6]))[0].t_s == 12.0


def test_a_disk_that_never_took_as_much_proves_that_the_bytes_went_elsewhere():
    assert found(Host(taken=[5e6] * 5 + [45e6] * 3)) == []


@pytest.mark.parametrize(
    "disks",
    [
        (("disk:sda", "part"), ("disk:sdb", "part")),
        (),
        (("disk:sda", "detail"),),
        (("drive:nvme0n1", "part"),),
    ],
)
def test_of_several_disks_or_none_the_level_alone_tells(disks):
    assert found(Host(taken=[0.0] * 8, disks=disks))[0].t_s == 10.0


def test_a_partition_does_not_make_two_disks_and_a_mount_counts_as_one():
    taken = [5e6] * 5 + [45e6, 105e6, 105e6]
    assert (
        found(Host(taken=taken, disks=(("disk:sda", "part"), ("disk:sda1", "detail"))))[0].t_s
        == 12.0
    )
    assert found(Host(taken=taken, disks=(("mount:/c", "part"),)))[0].t_s == 12.0


def test_it_is_not_over_before_the_last_of_written_committed_and_returned():
    told = [Mark(3.0, name, "w") for name in ("written", "committed", "returned")]
    for late in told:
        assert (
            found(
                marks=[
                    SAVE[0],
                    *(mark._replace(t_s=11.0) if mark is late else mark for mark in told),
                ]
            )[0].t_s
            == 12.0
        )
    assert found(marks=[*SAVE, Mark(11.0, "snapshotted", "w")])[0].t_s == 10.0


def test_every_rank_that_lacks_it_gets_it():
    marks = [
        mark._replace(rank=rank, detail={"bytes": 50e6} if mark.detail else {})
        for mark in SAVE
        for rank in (2, 5)
    ]
    assert [(mark.rank, mark.t_s) for mark in found(marks=marks)] == [(2, 10.0), (5, 10.0)]
    marks.append(Mark(9.0, "durable", "w", 2))
    assert [(mark.rank, mark.t_s) for mark in found(marks=marks)] == [(5, 10.0)]


def test_each_save_by_its_own_readings():
    other = [Mark(11.0, "begin", "v", detail={"bytes": 1.0}), Mark(11.5, "returned", "v")]
    level_alone = Host(disks=())
    assert [(mark.window, mark.t_s) for mark in found(level_alone, [*other, *SAVE])] == [
        ("w", 10.0),
        ("v", 12.0),
    ]


@pytest.mark.parametrize(
    "marks",
    [
        [*SAVE, Mark(9.0, "durable", "w")],
        [*SAVE, Mark(9.0, "synced", "w")],
        [SAVE[0]._replace(detail={"bytes": 100e6, "of": "load"}), *SAVE[1:]],
        [*SAVE, Mark(5.0, "end", "w", detail={"error": "OSError"})],
        [SAVE[0]._replace(detail={}), *SAVE[1:]],
        SAVE[:1],
        SAVE[1:],
        [],
        *(
            [*SAVE, Mark(5.0, "note", "w", detail={"durable_why": why})]
            for why in (
                "IN_MEMORY",
                "ON_SERVER",
                "CLOSE_FLUSHES",
                "OWN_CACHE",
                "NOT_A_SAVE",
                "STOPPED",
                "NOT_DRAINED",
                "GONE",
                "REPLACED",
                "REWRITTEN",
            )
        ),
    ],
)
def test_of_others_it_says_nothing(marks):
    assert found(marks=marks) == []


@pytest.mark.parametrize("why", ["NOT_PERMITTED", "NOT_SUPPORTED", "FILES_UNKNOWN", "ADDED_TO"])
def test_where_the_file_could_not_be_asked_the_host_can(why):
    assert [
        mark.t_s
        for mark in found(marks=[*SAVE, Mark(5.0, "note", "w", detail={"durable_why": why})])
    ] == [10.0]


def test_nothing_is_read_where_nothing_is_lacking():
    host = Host()
    assert found(host, [*SAVE, Mark(9.0, "durable", "w")]) == []
    assert host.asked == []


def test_readings_that_are_missing_or_do_not_match():
    for name in ("dirty_bytes", "writeback_bytes"):
        host = Host()
        del host.of["host"][name]
        assert found(host) == []
    assert found(Host(under_way=UNDER_WAY[:-1])) == []


def test_a_level_that_never_comes_back():
    assert found(Host(dirty=[10e6, 10e6, *[90e6] * 6])) == []


def test_a_doubt_is_never_negative():
    """The reading before lies before the save: the truth lies after its begin."""
    marks = [Mark(3.0, "begin", "w", detail={"bytes": 1.0}), Mark(3.5, "returned", "w")]
    (mark,) = found(Host([0.0] * 8, [0.0] * 8, disks=()), marks)
    assert (mark.t_s, mark.detail["unsure_s"]) == (4.0, 1.0)
