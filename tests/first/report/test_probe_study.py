"""What is told of a probe: each cell where it belongs, the catalogue around it, and only sentences
that the figures bear out."""

from __future__ import annotations

import re
from math import nan
from pathlib import Path
from types import SimpleNamespace

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.reconcile import Energy, unknown
from ckptcost.first.jobs.probe import ProbePass, ProbeRequest
from ckptcost.first.report.studies.probe import BESIDE, HERE, LATER, SPREAD_OF_NOTE, study_of
from ckptcost.first.savers.base import NONE, Io, Latencies, SaverSettings

LATE = Latencies(40, 0.05, 0.01, 0.02, 0.03, 0.04)


def io(seconds, returned_s=None, late=LATE, **more):
    given = {
        "depth": 12.0,
        "by_rank_s": (1.0, 1.0, 4.0),
        "fsync_s": 0.25,
        "cached_bytes": None,
        "notes": (),
    } | more
    return Io(
        10**10,
        10**10 + round((returned_s or seconds) * 1e9),
        10**10 + round(seconds * 1e9),
        8 * 10**9,
        4,
        given["fsync_s"],
        late,
        given["depth"],
        (),
        given["by_rank_s"],
        given["cached_bytes"],
        given["notes"],
    )


def one(number, seconds, size=8e9, of="save", window=True, **more):
    name = f"{of} {number}"
    return ProbePass(
        number,
        of,
        size,
        4.0,
        io(seconds, **more),
        SimpleNamespace(name=name, length_s=seconds) if window else None,
    )


def stored(name, written, read, disk="disk:sda", depth=3.0):
    return SimpleNamespace(
        window=name,
        disk=disk,
        queue=SimpleNamespace(written_bytes=written, read_bytes=read, mean_depth=depth),
    )


def probed(passes, joules=None, disks=(), notes=(), interrupted=False, simulated=False, **asked):
    def of_window(name):
        return SimpleNamespace(absolute=(joules or {}).get(name, unknown("NO_PARTS")))

    measured = SimpleNamespace(
        of_window=of_window,
        stored=disks,
        simulated=simulated,
        kept="0123456789abcdef",
        energies=SimpleNamespace(node=SimpleNamespace(host="n1")),
    )
    given = {
        "ranks": 2,
        "saver": "posix",
        "rounds": 2,
        "small": False,
        "settings": SaverSettings(depth=3, block_bytes=1 << 20),
    } | asked
    return SimpleNamespace(
        asked=ProbeRequest(Path("x"), 8 * 10**9, **given),
        rounds=tuple(passes),
        measured=measured,
        folder=Path("x"),
        notes=notes,
        interrupted=interrupted,
    )


@pytest.fixture(scope="module")
def catalog():
    return Catalog()


@pytest.fixture
def study(catalog):
    return lambda *words, **more: study_of(probed(*words, **more), catalog)


def table(study, name):
    return next((table.rows for table in study.tables if table.id == name), None)


def test_a_pass_has_its_own_figures(study):
    joules = {"save 1": Energy(100.0, 90.0, 120.0)}
    found = study(
        [one(1, 2.0, returned_s=0.5), one(1, 4.0, of="load", cached_bytes=7)],
        joules,
        [stored("save 1", 9e9, 5.0), stored("load 1", 6.0, 4e9)],
    )
    save, load = table(found, "rounds")
    assert save == {
        "round": 1.0,
        "of": "save",
        "bytes": 8e9,
        "files": 4.0,
        "joules": 100.0,
        "joules_low": 90.0,
        "joules_high": 120.0,
        "joules_error": 20.0,
        "why": "",
        "window": "save 1",
        "seconds": 2.0,
        "rate": 4e9,
        "device": 9e9,
        "device_depth": 3.0,
        "returned": 0.5,
        "fsync": 0.25,
        "depth": 12.0,
        "p50": 0.01,
        "p95": 0.02,
        "p99": 0.03,
        "latest": 0.04,
        "requests": 40.0,
        "cached": None,
        "straggler": 2.0,
    }
    assert (load["of"], load["device"], load["cached"], load["why"], load["joules"]) == (
        "load",
        4e9,
        7.0,
        "NO_PARTS",
        None,
    )


def test_what_a_pass_lacks_is_nothing_and_no_error(study):
    (row,) = table(study([one(1, 2.0, window=False, late=NONE, by_rank_s=())]), "rounds")
    assert (row["window"], row["p50"], row["requests"], row["straggler"], row["why"]) == (
        "",
        None,
        0.0,
        None,
        "NOT_MARKED",
    )
    assert "device" not in row
    (row,) = table(study([one(1, 2.0, by_rank_s=(0.0, 0.0))]), "rounds")
    assert row["straggler"] is None
    (row,) = table(study([ProbePass(1, "save", 8e9, 1.0, None, None)]), "rounds")
    assert (row["seconds"], row["rate"]) == (None, None)
    assert "returned" not in row


def test_of_several_disks_none_is_told(study):
    (row,) = table(
        study(
            [one(1, 2.0)],
            disks=[stored("save 1", 1.0, 1.0), stored("save 1", 1.0, 1.0, "disk:sdb")],
        ),
        "rounds",
    )
    assert "device" not in row


def test_a_sum_has_its_own_figures(study):
    joules = {"save 1": Energy(100.0, 90.0, 120.0), "save 2": Energy(300.0, 290.0, 340.0)}
    disks = [stored("save 1", 8e9, 0.0), stored("save 2", 12e9, 0.0)]
    (row,) = table(
        study([one(1, 1.0, returned_s=0.5), one(2, 4.0, returned_s=1.5)], joules, disks), "rates"
    )
    assert row == {
        "of": "save",
        "bytes": 8e9,
        "rounds": 2.0,
        "rate": pytest.approx(3.2e9),
        "rate_low": 2e9,
        "rate_high": 8e9,
        "seconds": 2.5,
        "spread": pytest.approx(4.5**0.5 / 2.5),
        "returned": 1.0,
        "j_per_gb": pytest.approx(25.0),
        "j_per_gb_low": pytest.approx(23.75),
        "j_per_gb_high": pytest.approx(28.75),
        "j_per_gb_error": pytest.approx(3.75),
        "boundary": "node",
        "why": "",
        "amplification": 1.25,
        "files": 4.0,
    }
    (row,) = table(study([one(1, 1.0)]), "rates")
    assert (row["boundary"], row["why"], row["spread"], row["j_per_gb"]) == (
        "",
        "NO_PARTS",
        None,
        None,
    )


def test_every_cell_has_a_column(study):
    joules = {"save 1": Energy(100.0, 90.0, 120.0)}
    found = study(
        [one(1, 2.0), one(1, 4.0, of="load")],
        joules,
        [stored("save 1", 9e9, 5.0), stored("load 1", 6.0, 4e9)],
    )
    for each in found.tables:
        assert {key for row in each.rows for key in row} <= {
            column.id for column in each.columns
        }, each.id


class TestTiers:
    def test_what_was_measured_stands_among_its_nearest(self, study):
        rows = table(study([one(1, 2.0), one(1, 1.0, of="load")]), "tiers")
        at = next(n for n, row in enumerate(rows) if row["tier"] == HERE)
        assert (rows[at]["write"], rows[at]["read"], rows[at]["ratio"], rows[at]["basis"]) == (
            4e9,
            8e9,
            1.0,
            "measured",
        )
        assert at <= BESIDE
        assert len(rows) - at - 1 <= BESIDE
        assert [row["write"] for row in rows] == sorted(row["write"] for row in rows)
        for row in rows:
            assert row["ratio"] == pytest.approx(row["write"] / 4e9)

    def test_the_slowest_and_the_fastest_there_is(self, study):
        slow, fast = table(study([one(1, 1e9)]), "tiers"), table(study([one(1, 1e-9)]), "tiers")
        assert (slow[0]["tier"], len(slow)) == (HERE, BESIDE + 1)
        assert (fast[-1]["tier"], len(fast)) == (HERE, BESIDE + 1)

    def test_a_system_of_many_nodes_is_no_neighbour_without_a_nodes_rate(self, study, catalog):
        rows = [*table(study([one(1, 1e9)]), "tiers"), *table(study([one(1, 1e-9)]), "tiers")]
        for row in rows:
            if row["tier"] == HERE:
                continue
            tier = catalog.get("tier", row["tier"])
            figure = tier.figures.get("node_write") or tier.figures["write"]
            assert (row["write"], row["basis"], row["name"]) == (
                figure.value,
                figure.basis,
                tier.name,
            )
            assert "node_write" in tier.figures or row["boundary"] in ("drive", "node")

    def test_without_a_write_there_is_nothing_to_compare(self, study):
        assert table(study([one(1, 1.0, of="load")]), "tiers") is None
        assert table(study([]), "tiers") is None


class TestSentences:
    def test_rates_with_size_time_and_spread(self, study):
        found = study(
            [one(1, 1.0), one(2, 4.0), one(1, 2.0, of="load")], interrupted=True, small=True
        ).findings
        assert (
            found[0] == "Writing, to fsync: 3.2 GB/s (8 GB in 2.5 s, spread 84.9 % over 2 rounds)."
        )
        assert found[1] == "Reading back: 4 GB/s (8 GB in 2 s)."
        assert (
            found[-1]
            == "`ckptcost calibrate 01234567 --as NAME` makes a tier of it that `ckptcost model`"
            " uses."
        )

    @pytest.mark.parametrize(
        ("returned_s", "told"),
        [(1.0, True), (2.0 / LATER - 0.001, True), (2.0 / LATER + 0.001, False), (2.0, False)],
    )
    def test_safe_later_than_returned_is_said_where_it_matters(self, study, returned_s, told):
        said = [
            line
            for line in study([one(1, 2.0, returned_s=returned_s)]).findings
            if "without fsync" in line
        ]
        assert len(said) == told
        if returned_s == 1.0:
            assert not any(
                "returned" in line
                for line in study([one(1, 2.0, of="load", returned_s=1.0)]).findings
            )
            assert said[0].startswith(
                "The last write returned after 1 s, and it was safe after 2 s:"
            )

    def test_joules_or_why_not(self, study):
        assert "12.5 J per GB written" in " ".join(
            study([one(1, 1.0)], {"save 1": Energy(100.0, 90.0, 120.0)}).findings
        )
        assert any(
            line.startswith("Joules per GB are not known: ")
            for line in study([one(1, 1.0)]).findings
        )
        assert not any("Joules" in line for line in study([]).findings)

    def test_a_fixed_time_where_two_sizes_tell_it(self, study):
        rounds = [one(n, 0.5 + size / 4e9, size) for n, size in enumerate((8e9, 2e9), start=1)]
        assert "Of each save 0.5 s depend on no size." in study(rounds, small=True).findings
        rounds += [
            one(n, 0.5 + size / 4e9 + off, size)
            for n, (size, off) in enumerate(((8e9, 0.01), (2e9, -0.01)), start=3)
        ]
        (line,) = [line for line in study(rounds).findings if "no size" in line]
        value, low, high = (float(word) for word in re.findall(r"([0-9.]+) s", line))
        assert low < value < high
        assert not any(
            "no size" in line for line in study([one(1, 2.0), one(2, 0.5, 2e9)]).findings
        )

    def test_what_was_asked(self, study):
        found = study([one(1, 1.0)], small=True)
        assert found.title == "A checkpoint of 8 GB on n1"
        assert (
            found.about[0]
            == "Saver posix, 2 writers, 3 requests of 1.05 MB in flight, 2 rounds in each of two"
            " sizes."
        )
        assert found.question == {
            "bytes": 8e9,
            "saver": "posix",
            "ranks": 2,
            "rounds": 2,
            "depth": 3,
            "block_bytes": 1 << 20,
            "run": "0123456789abcdef",
        }
        other = study([one(1, 1.0)], ranks=1, rounds=1, simulated=True)
        assert other.title == "A checkpoint of 8 GB on a simulated machine"
        assert other.about[0].startswith("Saver posix, 1 writer, ")
        assert other.about[0].endswith(", 1 round.")
        assert (other.simulated, found.simulated) == (True, False)


class TestWarnings:
    def test_none_without_a_reason(self, study):
        assert study([one(1, 1.0)]).warnings == []

    def test_notes_end_in_a_full_stop(self, study):
        assert study([one(1, 1.0)], notes=("a", "b.")).warnings == [
            ("PROBE_NOTE", "a."),
            ("PROBE_NOTE", "b."),
        ]

    def test_interrupted_after_so_many_passes(self, study):
        assert study([one(1, 1.0)], interrupted=True).warnings == [
            ("INTERRUPTED", "Interrupted after 1 pass: the figures are of these.")
        ]
        assert (
            "after 2 pass"
            in study([one(1, 1.0), one(1, 1.0, of="load")], interrupted=True).warnings[0][1]
        )

    def test_rounds_that_differ(self, study):
        calm = 1.0 + SPREAD_OF_NOTE * 2**0.5 * 0.9
        assert study([one(1, 1.0), one(2, calm)]).warnings == []
        ((code, text),) = study(
            [one(1, 1.0), one(2, 1.0), one(1, 1.0, of="load"), one(2, 4.0, of="load")]
        ).warnings
        assert (code, text) == (
            "SPREAD",
            "Reading back, 8 GB: the rounds differ by 84.9 %. More rounds tell more.",
        )


def test_unknown_times_are_no_rates(study):
    found = study([ProbePass(1, "save", 8e9, 1.0, None, SimpleNamespace(name="w", length_s=None))])
    assert table(found, "rates")[0]["rate"] is None
    assert table(found, "tiers") is None
    assert nan != table(found, "rates")[0]["seconds"] is None
