"""The order and the instants of a probe's passes, with an engine and a clock that tests can read;
and a simulated one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ckptcost.first.errors import InputError
from ckptcost.first.jobs import probe as module
from ckptcost.first.jobs.probe import SMALL, ProbeRequest, probe
from ckptcost.first.jobs.recording import EDGE
from ckptcost.first.meters.found import Wanted
from ckptcost.first.savers.base import NONE, Io, SaverSettings

SIZE = 8_000_000


def asked(**more):
    return ProbeRequest(Path("x"), SIZE, **({"rounds": 2, "pause_s": 0.5} | more))


def test_sizes_by_turns():
    assert asked().sizes == [SIZE, SIZE // 4] * 2
    assert asked(small=False, rounds=3).sizes == [SIZE] * 3
    assert ProbeRequest(Path("x"), 1).sizes == [1, 1] * 3
    assert SMALL == 0.25


class Bench:
    """An engine each of whose calls takes 10 ns, 4 of them before it begins."""

    def __init__(self, monkeypatch):
        self.did, self.now_ns, self.fails = [], 1000, None
        self.clock = SimpleNamespace(now_ns=lambda: self.now_ns)
        monkeypatch.setattr(
            module,
            "time",
            SimpleNamespace(sleep=lambda seconds: self.did.append(f"sleep {seconds}")),
        )

    def mark(self, name, window="", *, by="api", rank=None, t_ns=None, **detail):
        self.did.append((name, window, t_ns, detail))

    def pass_(self, of, number, durable):
        if self.fails == (of, number):
            raise OSError("no space")
        self.did.append(f"{of} {number}")
        begin_ns = self.now_ns + 4
        self.now_ns += 10
        return Io(
            begin_ns,
            self.now_ns - 2,
            self.now_ns - 1 if durable else None,
            77,
            4,
            0.0,
            NONE,
            1.0,
            (("written", begin_ns + 3),),
            (),
        )

    def save(self, place, shape, settings, number):
        return self.pass_("save", number, True)

    def load(self, place, shape, settings, number):
        return self.pass_("load", number, False)

    def verify(self, place, shape, settings, number):
        self.did.append(f"verify {number}")

    def rounds(self, given, tell=None):
        shapes = {size: SimpleNamespace(files=[0] * 4) for size in given.sizes}
        place = SimpleNamespace(remove=lambda number: self.did.append(f"remove {number}"))
        ios = []
        try:
            module._rounds(self, place, given, shapes, self, ios, tell)
        finally:
            self.ios = ios
        return ios


@pytest.fixture
def bench(monkeypatch):
    return Bench(monkeypatch)


def test_each_round_is_written_verified_read_and_removed(bench):
    bench.rounds(asked(rounds=1))
    words = [one for one in bench.did if isinstance(one, str)]
    assert words == [
        "save 1",
        "verify 1",
        "sleep 0.5",
        "load 1",
        "sleep 0.5",
        "remove 1",
        "save 2",
        "verify 2",
        "sleep 0.5",
        "load 2",
        "sleep 0.5",
        "remove 2",
    ]
    assert [(number, of) for number, of, _ in bench.ios] == [
        (1, "save"),
        (1, "load"),
        (2, "save"),
        (2, "load"),
    ]


def test_unread_and_unverified(bench):
    bench.rounds(asked(rounds=1, small=False, read=False, settings=SaverSettings(verify=False)))
    assert [one for one in bench.did if isinstance(one, str)] == ["save 1", "sleep 0.5", "remove 1"]


def test_marks_are_at_the_engines_own_instants(bench):
    bench.rounds(asked(rounds=1, small=False))
    marks = [one for one in bench.did if not isinstance(one, str)]
    assert marks == [
        (EDGE, "", 1000, {}),
        ("begin", "save 1", 1004, {"bytes": SIZE, "files": 4}),
        ("written", "save 1", 1007, {}),
        ("returned", "save 1", 1008, {}),
        ("durable", "save 1", 1009, {"how": "fsync", "bytes": 77}),
        ("end", "save 1", 1009, {}),
        (EDGE, "", 1010, {}),
        ("begin", "load 1", 1014, {"bytes": SIZE, "files": 4, "of": "load"}),
        ("written", "load 1", 1017, {}),
        ("returned", "load 1", 1018, {}),
        ("durable", "load 1", 1018, {"how": "fsync", "bytes": 77}),
        ("end", "load 1", 1018, {}),
    ]


def test_a_pass_that_fails_is_in_the_run(bench):
    bench.fails = ("load", 1)
    with pytest.raises(OSError, match="no space"):
        bench.rounds(asked())
    assert bench.did[-2:] == [
        ("begin", "load 1", 1010, {"bytes": SIZE, "files": 4, "of": "load"}),
        ("end", "load 1", None, {"error": "OSError"}),
    ]
    assert [of for _, of, _ in bench.ios] == ["save"]


def test_how_far_it_is(bench):
    told = []
    bench.rounds(asked(rounds=1), told.append)
    assert [one[:4] for one in told] == [
        (1, "save", 0, 4),
        (1, "load", 1, 4),
        (2, "save", 2, 4),
        (2, "load", 3, 4),
    ]
    assert [one.io for one in told] == [None, *(io for _, _, io in bench.ios[:3])]
    told.clear()
    bench.rounds(asked(rounds=3, read=False, small=False), told.append)
    assert [one[2:4] for one in told] == [(0, 3), (1, 3), (2, 3)]


class TestSimulated:
    @pytest.fixture
    def probed(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))

        def call(size_bytes=224_000_000_000, **more):
            return probe(
                ProbeRequest(tmp_path, size_bytes, rounds=2, **more),
                "simulated",
                Wanted(),
                tmp_path / "run",
            )

        return call

    def test_times_grow_with_the_size_but_for_the_commit(self, probed):
        found = probed()
        assert [(one.number, one.of, one.size_bytes) for one in found.rounds] == [
            (1, "save", 224e9),
            (2, "save", 56e9),
            (3, "save", 224e9),
            (4, "save", 56e9),
        ]
        for one in found.rounds:
            # 0.3 + 2.2 + 5.3 s for 112 GB, and 0.05 s whatever the size, all longer or shorter by
            # at most 5 %
            assert one.window.length_s == pytest.approx(
                7.8 * one.size_bytes / 112e9 + 0.05, rel=0.051
            )
            assert one.io is None
        assert found.measured.simulated
        assert not found.interrupted
        assert (found.folder.name, found.notes) == ("run", ())

    def test_one_size(self, probed):
        assert [one.size_bytes for one in probed(small=False).rounds] == [224e9, 224e9]

    @pytest.mark.parametrize("meters", ["simulated,rapl", "replay:x", "rapl,simulated"])
    def test_what_does_not_go_together(self, tmp_path, meters):
        with pytest.raises(InputError):
            probe(ProbeRequest(tmp_path, SIZE), meters, Wanted())
