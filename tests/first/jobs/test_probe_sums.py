"""Passes added up: with rounds whose seconds, bytes and joules are round numbers."""

from __future__ import annotations

from math import isnan, nan
from types import SimpleNamespace

import pytest

from ckptcost.first.core.reconcile import Energy, unknown
from ckptcost.first.jobs.probe import TOLD_S, ProbePass, fit_of_sizes, joules_of, seconds_of, sums
from ckptcost.first.savers.base import NONE, Io


def io(returned_s, durable_s=None, begin_s=10.0, size=8e9):
    def at(seconds):
        return round((begin_s + seconds) * 1e9)

    return Io(
        at(0.0),
        at(returned_s),
        None if durable_s is None else at(durable_s),
        int(size),
        4,
        0.0,
        NONE,
        1.0,
        (),
        (),
    )


def window(name, length_s):
    return SimpleNamespace(name=name, length_s=length_s)


def stored(name, written=0.0, read=0.0, disk="sda"):
    return SimpleNamespace(
        window=name, disk=disk, queue=SimpleNamespace(written_bytes=written, read_bytes=read)
    )


def probed(rounds, joules=None, disks=()):
    joules = joules or {}

    def of_window(name):
        return SimpleNamespace(absolute=joules.get(name, unknown("NO_PARTS")))

    return SimpleNamespace(
        rounds=tuple(rounds), measured=SimpleNamespace(of_window=of_window, stored=tuple(disks))
    )


def save(number, seconds, size=8e9, returned_s=None, of="save", length_s=0.0):
    """`length_s` of its window, where that is not the engine's."""
    return ProbePass(
        number,
        of,
        size,
        4.0,
        io(returned_s or seconds, seconds, size=size),
        window(f"{of} {number}", length_s or seconds),
    )


def test_until_durable_or_the_last_byte_as_the_engine_has_it():
    assert seconds_of(save(1, 4.0, returned_s=1.0, length_s=9.0)) == pytest.approx(4.0)
    assert seconds_of(ProbePass(1, "load", 1.0, 1.0, io(2.5), None)) == pytest.approx(2.5)


def test_without_an_engine_the_windows_length():
    assert seconds_of(ProbePass(1, "save", 1.0, 1.0, None, window("w", 3.0))) == 3.0
    assert isnan(seconds_of(ProbePass(1, "save", 1.0, 1.0, None, window("w", None))))
    assert isnan(seconds_of(ProbePass(1, "save", 1.0, 1.0, None, None)))


def test_bytes_over_seconds_and_no_mean_of_rates():
    (s,) = sums(probed([save(1, 1.0, returned_s=0.5), save(2, 4.0, returned_s=1.5)]))
    assert (s.of, s.size_bytes, s.rounds, s.files) == ("save", 8e9, 2, 4.0)
    assert s.rate_bytes_per_s == pytest.approx(16e9 / 5.0)
    assert (s.slowest_bytes_per_s, s.quickest_bytes_per_s) == pytest.approx((2e9, 8e9))
    assert (s.mean_s, s.returned_s) == pytest.approx((2.5, 1.0))
    assert s.spread == pytest.approx(4.5**0.5 / 2.5)


def test_one_pass_has_no_spread():
    (s,) = sums(probed([save(1, 2.0)]))
    assert isnan(s.spread)
    assert (
        s.rate_bytes_per_s == s.slowest_bytes_per_s == s.quickest_bytes_per_s == pytest.approx(4e9)
    )


def test_passes_whose_time_is_not_known_do_not_count_as_quick():
    lost = ProbePass(2, "save", 8e9, 4.0, None, None)
    (s,) = sums(
        probed([save(1, 2.0), lost, ProbePass(3, "save", 8e9, 4.0, None, window("x", 0.0))])
    )
    assert s.rounds == 3
    assert (s.rate_bytes_per_s, s.mean_s) == pytest.approx((4e9, 2.0))
    (s,) = sums(probed([lost]))
    assert all(
        isnan(value)
        for value in (
            s.rate_bytes_per_s,
            s.slowest_bytes_per_s,
            s.quickest_bytes_per_s,
            s.mean_s,
            s.returned_s,
        )
    )


def test_saves_before_loads_large_before_small_as_asked():
    rounds = [
        save(1, 1.0),
        save(1, 1.0, of="load"),
        save(2, 1.0, size=2e9),
        save(2, 1.0, size=2e9, of="load"),
        save(3, 3.0),
    ]
    found = sums(probed(rounds))
    assert [(s.of, s.size_bytes, s.rounds) for s in found] == [
        ("save", 8e9, 2),
        ("save", 2e9, 1),
        ("load", 8e9, 1),
        ("load", 2e9, 1),
    ]
    assert sums(probed([])) == []


class TestJoules:
    def test_joules_for_a_billion_bytes_over_all_passes(self):
        joules = {"save 1": Energy(100.0, 90.0, 120.0), "save 2": Energy(300.0, 290.0, 340.0)}
        (s,) = sums(probed([save(1, 1.0), save(2, 4.0)], joules))
        assert s.per_gb[:3] == pytest.approx((25.0, 23.75, 28.75))

    def test_one_pass_without_joules_leaves_none(self):
        (s,) = sums(probed([save(1, 1.0), save(2, 4.0)], {"save 1": Energy(100.0, 90.0, 120.0)}))
        assert (s.per_gb.known, s.per_gb.why) == (False, "NO_PARTS")

    def test_a_pass_without_a_window_says_so(self):
        p = probed([ProbePass(1, "save", 1.0, 1.0, io(1.0, 1.0), None)])
        assert joules_of(p, p.rounds[0]).why == "NOT_MARKED"


class TestDisk:
    def test_bytes_of_the_disk_over_bytes_of_the_files(self):
        disks = [
            stored("save 1", 9e9, 1.0),
            stored("save 2", 8e9, 1.0),
            stored("load 1", 5.0, 4e9),
            stored("", 99e9, 99e9),
        ]
        found = sums(probed([save(1, 1.0), save(2, 1.0), save(1, 1.0, of="load")], disks=disks))
        assert [s.device_over_file for s in found] == pytest.approx([17 / 16, 0.5])

    def test_of_several_disks_nobody_knows_whose(self):
        disks = [stored("save 1", 8e9), stored("save 1", 8e9, disk="sdb")]
        assert isnan(sums(probed([save(1, 1.0)], disks=disks))[0].device_over_file)
        assert isnan(
            sums(probed([save(1, 1.0)], disks=[disks[0], stored("", 8e9, disk="sdb")]))[
                0
            ].device_over_file
        )
        assert isnan(sums(probed([save(1, 1.0)]))[0].device_over_file)

    @pytest.mark.parametrize(
        ("length_s", "known"), [(TOLD_S, True), (TOLD_S * 0.99, False), (None, False)]
    )
    def test_short_passes_and_such_without_a_window_are_not_told(self, length_s, known):
        short = save(1, 1.0)._replace(window=window("save 1", length_s))
        disks = [stored("save 1", 8e9), stored("save 2", 8e9)]
        found = sums(probed([short, save(2, 1.0)], disks=disks))
        assert isnan(found[0].device_over_file) != known

    def test_a_pass_that_the_disk_says_nothing_of(self):
        assert isnan(
            sums(probed([save(1, 1.0), save(2, 1.0)], disks=[stored("save 1", 8e9)]))[
                0
            ].device_over_file
        )
        assert isnan(
            sums(
                probed(
                    [save(1, 1.0), save(2, 1.0)._replace(window=None)],
                    disks=[stored("save 1", 8e9)],
                )
            )[0].device_over_file
        )


class TestFixed:
    def rounds(self):
        """0.5 s and 4 GB/s for saves; loads need no fixed time."""
        return [save(n, 0.5 + size / 4e9, size) for n, size in enumerate((8e9, 2e9, 8e9, 2e9))] + [
            save(n, size / 8e9, size, of="load") for n, size in enumerate((8e9, 2e9, 8e9, 2e9))
        ]

    def test_of_saves_alone_or_of_loads(self):
        p = probed(self.rounds())
        assert fit_of_sizes(p).fixed_s.value == pytest.approx(0.5)
        assert fit_of_sizes(p).rate_bytes_per_s.value == pytest.approx(4e9)
        assert fit_of_sizes(p, "load").fixed_s.value == pytest.approx(0.0, abs=1e-9)
        assert fit_of_sizes(p, "load").rate_bytes_per_s.value == pytest.approx(8e9)

    def test_passes_without_a_time_are_left_out(self):
        lost = [
            ProbePass(9, "save", 8e9, 4.0, None, None),
            ProbePass(9, "save", 8e9, 4.0, None, window("x", 0.0)),
        ]
        assert fit_of_sizes(probed([*self.rounds(), *lost])).fixed_s.value == pytest.approx(0.5)
        assert fit_of_sizes(probed(lost)).why == "NO_ROUNDS"
        assert fit_of_sizes(probed([])).fixed_s.value != nan
