"""The live screen's board by hand: readings and marks put in one by one, and what is shown of
them."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import numpy as np
import pytest

from ckptcost.first.core.channels import Channel
from ckptcost.first.meters.base import Absence
from ckptcost.first.present.amounts import number
from ckptcost.first.present.grid import sorted_by
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.header import Header, MeterHead
from ckptcost.first.runs.lines import Raw, Second
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live import board as live_board
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.curves import Bins, DomainSum, Probe
from ckptcost.first.tui.live.picture import LivePicture, LiveStatus, last_lines, stats_of
from ckptcost.first.tui.live.tables import (
    Checkpoints,
    gpus_grid,
    last_of,
    meters_grid,
    outliers_grid,
)

WALL_NS = 1_767_225_600 * S


def gpus(count: int) -> tuple[Channel, ...]:
    return tuple(Channel(f"gpu:{i}", "power_w", "NVML field 186", "gpu") for i in range(count))


def header(*meters: MeterHead, host: str = "node-1", **more: Any) -> Header:
    return Header(
        run="ab" * 16,
        host=host,
        monotonic_ns=0,
        wall_ns=WALL_NS,
        meters=meters,
        settings={"quick_s": 0.02, "rest_s": 0.2},
        **more,
    )


class Played:
    """A board with readings once a second."""

    def __init__(
        self, *meters: MeterHead, absences: tuple[Absence, ...] = (), desk: Desk | None = None
    ) -> None:
        self.board = LiveBoard(absences=absences)
        self.board.price(desk or Desk())
        self.board.absorb([("p", header(*meters))])
        self.picture = LivePicture()
        self.at_s = 0

    def second(self, *rows: list[Any] | None) -> None:
        begin_ns, self.at_s = self.at_s * S, self.at_s + 1
        counts, took = tuple(5 for _ in rows), tuple(9 for _ in rows)
        self.board.absorb([("p", Second(begin_ns, begin_ns + 4 * S // 5, counts, took, rows))])
        self.turn()

    def mark(
        self, t_s: float, name: str, window: str, by: str = "api", rank: int = 0, **detail: object
    ) -> None:
        fields = {
            "k": "mark",
            "t": round(t_s * S),
            "name": name,
            "window": window,
            "rank": rank,
            "by": by,
            "detail": detail,
        }
        self.board.absorb([("p", fields)])
        self.turn()

    def turn(self) -> None:
        self.board.turn()
        while self.board.work():
            pass

    def view(
        self,
        span_s: float = 60.0,
        per_gpu: bool = False,
        status: LiveStatus | None = None,
    ):
        return self.picture.view(
            self.board,
            status or LiveStatus("own", "python train.py", "looked for in ckpt"),
            span_s,
            per_gpu,
        )


def nvml(count: int = 2) -> MeterHead:
    return MeterHead("nvml", gpus(count))


def test_at_first_it_starts_and_then_it_is_armed():
    one = Played(nvml())
    assert one.board.records == 1
    fresh = LiveBoard()
    view = LivePicture().view(fresh, LiveStatus("own", "x"), 60.0, False)
    assert view.headline.word == "STARTING"
    assert [stat.value for stat in view.stats] == ["-"] * 7
    assert "waiting" in view.traces.charts[0].empty
    one.second([600.0, 610.0])
    view = one.view()
    assert view.headline.word == "ARMED"
    assert "no checkpoint yet; looked for in ckpt" in view.headline.detail
    assert view.checkpoints.rows == []


def test_a_checkpoint_under_way_is_measured_and_then_recorded():
    one = Played(nvml())
    for _ in range(30):
        one.second([600.0, 610.0])
    one.mark(29.9, "begin", "step 1", bytes=4e9)
    one.second([300.0, 310.0])
    view = one.view()
    assert view.headline.word == "MEASURING"
    assert view.headline.tone == "warn"
    (row,) = view.checkpoints.rows
    assert row.tone == "warn"
    assert row.cells[6].endswith("...")
    (band,) = view.traces.bands
    assert band.end == 0.0  # up to now
    one.mark(33.9, "returned", "step 1")
    one.mark(33.9, "durable", "step 1", how="fsync")
    for _ in range(6):
        one.second([600.0, 610.0])
    view = one.view()
    assert view.headline.word == "RECORDING"
    (row,) = view.checkpoints.rows
    assert row.cells[5:8] == ("4", "4", "4 GB")
    assert row.cells[9] == "1 GB/s"
    assert view.stats[6].value == "#1  4 s"
    (band,) = view.traces.bands
    assert (band.end - band.begin, band.kind, band.label) == (pytest.approx(4.0), "save", "#1")


def test_power_of_all_is_unknown_where_one_does_not_answer():
    one = Played(nvml())
    for _ in range(5):
        one.second([600.0, 610.0])
    for _ in range(6):
        one.second([600.0, None])
    curve = one.view(per_gpu=False).traces.charts[0].curves[0]
    assert curve.ys[0] == pytest.approx(1210.0)
    assert isnan(curve.ys[-1])
    each = one.view(per_gpu=True).traces.charts[0].curves
    assert [curve.label for curve in each] == ["GPU 0   600 W", "GPU 1     - W"]
    assert each[0].ys[-1] == 600.0
    assert isnan(each[1].ys[-1])


def test_hundreds_of_gpus_have_one_curve_a_range_and_outliers():
    one = Played(nvml(256))
    for _ in range(5):
        one.second([600.0] * 255 + [400.0])
    view = one.view(per_gpu=True)
    assert not view.per_gpu
    total, spread = view.traces.charts[0], view.traces.charts[1]
    assert len(total.curves) == len(spread.curves) == 1
    assert total.curves[0].ys[-1] == pytest.approx(255 * 600.0 + 400.0)
    assert (spread.curves[0].lows[-1], spread.curves[0].highs[-1]) == (400.0, 600.0)
    far = view.gpus
    assert far.rows[0].cells == ("255", "400", "-33.3 %")
    assert len(one.view().gpus.rows) == 256


def test_a_counter_that_stands_still_is_no_power_of_zero():
    joules = Channel("cpu:0", "energy_j", "energy_uj", "package", tick_s=0.001)
    one = Played(MeterHead("rapl", (joules,)))
    for _ in range(5):
        one.second([77.0])
    view = one.view()
    assert all(isnan(y) for y in view.traces.charts[0].curves[0].ys)
    assert view.meters.rows[0].cells[:5] == ("no answer", "rapl", "cpu:0", "-", "-")


def test_bytes_and_queue_come_from_counters():
    disk = tuple(
        Channel("disk:nvme0n1", quantity, "diskstats", "disk")
        for quantity in ("written_bytes", "queue_s")
    )
    one = Played(MeterHead("block", disk))
    for n in range(6):
        one.second([n * 5e9, n * 8.0])
    storage, queue = one.view().traces.charts
    assert storage.curves[0].ys[-1] == pytest.approx(5e9)
    assert queue.curves[0].ys[-1] == pytest.approx(8.0)
    assert "5 GB/s" in storage.title


def test_what_is_not_metered_is_said_with_its_remedy():
    one = Played(
        absences=(Absence("nvml", "no NVIDIA GPU is in this machine", "lspci -d 10de:", "gpu"),)
    )
    one.second()
    view = one.view()
    assert view.meters.rows[0].cells[0] == "not here"
    assert "Remedy: lspci" in view.meters.rows[0].cells[5]
    assert "no NVIDIA GPU" in view.gpus.empty
    assert view.traces.charts[0].empty


def test_a_counter_of_the_whole_node_that_stands_still_does_not_lead():
    still = Channel("psys:0", "energy_j", "rapl", "rapl")
    disk, queue = (
        Channel("disk:sda", "written_bytes", "diskstats", "disk"),
        Channel("disk:sda", "in_flight", "diskstats", "disk"),
    )
    one = Played(MeterHead("both", (still, disk, queue)))
    for n in range(6):
        one.second([5.0, n * 1e6, 6.93e-4])
    titles = [chart.title for chart in one.view().traces.charts]
    assert titles[0].startswith("Storage write")
    assert titles[1:] == [
        "Host power, W   now -",
        "Requests under way at the drives   now 0",
    ]
    assert one.view().stats[-1].value == "-"


def test_without_meters_checkpoints_have_their_times_and_reasons_for_the_rest():
    disk = Channel("disk:sda", "written_bytes", "diskstats", "disk")
    one = Played(MeterHead("block", (disk,)))
    for n in range(5):
        one.second([n * 1e6])
    one.mark(4.5, "begin", "a.pt", by="watch")
    one.mark(6.0, "written", "a.pt", by="watch", bytes=2e9)
    one.mark(6.5, "durable", "a.pt", by="watch", how="fsync")
    for n in range(12):
        one.second([n * 1e6 + 5e6])
    view = one.view()
    assert [stat.label for stat in view.stats] == [
        "safe after",
        "in checkpoints",
        "checkpoints",
        "session",
        "cost",
        "CO2e",
        "GPU-h lost",
    ]
    assert [stat.value for stat in view.stats] == ["2 s", "11.9 %", *"-----"]
    assert view.stats[0].note == "#1  2 GB  1 GB/s"
    assert view.stats[4].note == "nothing says how many GPUs"
    assert view.traces.charts[0].title.startswith("Storage write")
    row = view.checkpoints.rows[0]
    assert row.cells[2:8] == ("-", "-", "-", "-", "2", "2 GB")
    assert row.cells[11:13] == ("1.5", "folder")
    assert any("Left out of the totals" in note for note in view.notes)


def test_loads_and_failures_are_shown_and_not_added():
    one = Played(nvml())
    for _ in range(3):
        one.second([600.0, 600.0])
    one.mark(3.0, "begin", "load 1", of="load", bytes=1e9)
    one.mark(4.0, "returned", "load 1")
    one.mark(4.0, "end", "load 1")
    for _ in range(4):
        one.second([600.0, 600.0])
    one.mark(7.0, "begin", "step 2")
    one.mark(8.0, "end", "step 2", error="disk full")
    for _ in range(6):
        one.second([600.0, 600.0])
    view = one.view()
    assert [row.tone for row in view.checkpoints.rows] == ["bad", "muted"]
    assert view.stats[6].value == "#2 failed"
    assert any("1 checkpoint ended with an error" in note for note in view.notes)
    assert any("1 load is in the table" in note for note in view.notes)
    assert one.board.account.totals.saves == 0
    assert {band.kind for band in view.traces.bands} == {"load", "save"}


def test_many_ranks_and_a_label_used_again():
    one = Played(nvml())
    for n in range(2):
        begin_s = 3.0 + 20.0 * n
        while one.at_s < begin_s:
            one.second([600.0, 600.0])
        for rank in range(16):
            one.mark(begin_s + 0.01 * rank, "begin", "step", rank=rank, bytes=1e9, world=16)
        for rank in range(16):
            one.mark(begin_s + 2.0, "returned", "step", rank=rank)
            one.mark(begin_s + 2.0, "durable", "step", rank=rank)
    for _ in range(60):
        one.second([600.0, 600.0])
    view = one.view()
    assert [row.cells[:1] + row.cells[7:8] for row in view.checkpoints.rows] == [
        ("2", "16 GB"),
        ("1", "16 GB"),
    ]
    assert len(one.board.book.done) == 2
    assert any("one node of 8" in note for note in view.notes)  # 16 ranks, 2 GPUs here


def test_an_hour_keeps_no_more_than_a_quarter():
    one = Played(nvml())
    values, marks = [], []
    for minute in range(60):
        for _ in range(60):
            one.second([600.0, 600.0])
            if one.at_s % 60 == 30:
                one.mark(one.at_s, "begin", f"step {minute}", bytes=1e9)
                one.mark(one.at_s + 2.0, "returned", f"step {minute}")
                one.mark(one.at_s + 2.0, "durable", f"step {minute}")
        values.append(one.board.run.values)
        marks.append(len(one.board.book.marks))
    assert max(values[16:]) <= max(values[:16]) <= 16 * 60 * 2
    assert max(marks[16:]) <= max(marks[:16]) < 30
    assert one.board.account.totals.saves == 60
    assert [row.key for row in one.view().checkpoints.rows[:2]] == ["60", "59"]
    day = one.view(span_s=3600.0)
    assert len(day.traces.charts[0].curves[0].xs) <= 900
    assert day.traces.charts[0].curves[0].xs[0] < -3500


def test_other_hosts_are_named_and_left_out():
    one = Played(nvml())
    one.second([600.0, 600.0])
    one.board.absorb([("q", header(nvml(), host="node-2")), ("q", Raw(S, (9,), ((1.0, 1.0),)))])
    view = one.view()
    assert view.traces.charts[0].curves[0].ys[-1] == 1200.0
    assert any("node-2" in note for note in view.notes)


def test_bins_keep_means_with_the_least_and_the_most():
    bins = Bins(1)
    for n in range(4000 * 5):
        at = n / 5
        bins.add(at, at, [float(n % 5)], [float(n % 5)], [float(n % 5)])
    fine, wide = bins.stretch(3990.0, 3999.0), bins.stretch(1000.0, 3990.0)
    assert np.diff(fine.t_s) == pytest.approx(0.2)
    assert wide.mean[0] == pytest.approx(2.0)
    assert (wide.low.min(), wide.high.max()) == (0.0, 4.0)
    assert len(wide.t_s) <= 900
    assert wide.t_s[0] == pytest.approx(1000.0, abs=10.0)


def test_a_silence_is_a_gap_at_every_width():
    bins = Bins(1)
    for at in [*range(100), *range(400, 3000)]:
        bins.add(at, at + 0.8, [5.0], [5.0], [5.0])
    for begin_s, end_s in ((0.0, 500.0), (0.0, 2900.0)):
        stretch = bins.stretch(begin_s, end_s)
        inside = (stretch.t_s > 115) & (stretch.t_s < 385)
        assert inside.any()
        assert np.isnan(stretch.mean[0][inside]).all()
        assert (stretch.mean[0][(stretch.t_s > 20) & (stretch.t_s < 80)] == 5.0).all()


def test_a_hole_of_one_value_is_no_value():
    bins = Bins(2)
    bins.add(0.0, 0.0, [1.0, nan], [1.0, nan], [1.0, nan])
    assert np.isnan(bins.stretch(0.0, 1.0).mean[1]).all()


def test_the_end_of_an_output_is_plain():
    assert last_lines(b"one\r\n\x1b[31mred\x1b[0m\n 50%\r 100%\n\n") == [
        "one",
        "[31mred[0m",
        " 100%",
    ]


SPANS = (30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0)


@pytest.mark.parametrize("seed", range(4))
def test_now_and_peak_do_not_depend_on_how_much_is_shown(seed):
    """Bins are 0.2 s to 10 s wide. What stands as "now" is the last second, as in the tables; a
    longer time has no lower peak."""
    chance = np.random.default_rng(seed)
    disk = Channel("disk:nvme0n1", "written_bytes", "diskstats", "disk")
    one = Played(nvml(), MeterHead("block", (disk,)))
    written, peaks = 0.0, []
    for _ in range(2400):
        peaks.append(
            float(chance.choice([0.0, 1e9, 1e9 * chance.random() * 40], p=[0.9, 0.09, 0.01]))
        )
        written += peaks[-1]
        one.board.absorb(
            [
                (
                    "p",
                    Second(
                        one.at_s * S,
                        one.at_s * S + 4 * S // 5,
                        (5, 5),
                        (9, 9),
                        ([600.0, 610.0], [written]),
                    ),
                )
            ]
        )
        one.at_s += 1
    watts = []
    for tenth in range(25):  # in the middle of a save: quick readings, which jump
        watts.append(chance.uniform(200, 700, 2).tolist())
        written += 1.4e9
        one.board.absorb(
            [("p", Raw(one.at_s * S + tenth * S // 10, (9, 9), (watts[-1], [written])))]
        )
    one.turn()
    views = [one.view(span_s) for span_s in SPANS]
    power, storage = ([view.traces.charts[n].title for view in views] for n in (0, 1))
    expected = np.mean(watts[-10:], axis=0).sum()
    now = f"{expected:,.0f}" if expected >= 1000 else f"{expected:.0f}"
    assert {title.partition("now ")[2].partition("   ")[0] for title in power} == {now}
    gpu, block = views[0].meters.rows
    assert gpu.cells[3] in (f"{now} W", f"{expected / 1000:.2f} kW")
    assert gpu.order[3] == pytest.approx(expected)
    assert sum(row.order[1] for row in views[0].gpus.rows) == pytest.approx(expected)
    assert (
        {title.partition("now ")[2].partition("   ")[0] for title in storage}
        == {block.cells[3]}
        == {"14 GB/s"}
    )
    told = [float(title.partition("peak ")[2].removesuffix(" GB/s")) for title in storage]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(max(*peaks[1:], 14e9) / 1e9, rel=0.006)


def test_the_meters_are_put_in_order_by_their_numbers():
    disks = tuple(
        Channel(f"disk:sd{letter}", "written_bytes", "diskstats", "disk") for letter in "ab"
    )
    one = Played(
        nvml(),
        *(MeterHead(f"block {n}", (disk,)) for n, disk in enumerate(disks)),
        absences=(Absence("rapl", "permission denied", "chmod", "cpu"),),
    )
    for n in range(6):
        one.second([600.0, 610.0], [n * 9e6], [n * 10e6])
    grid = one.view().meters
    assert [row.cells[3] for row in grid.rows[1:3]] == ["9 MB/s", "10 MB/s"]
    assert [row.cells[1] for row in sorted_by(grid, "now").rows] != [
        row.cells[1] for row in sorted_by(grid, "now", True).rows
    ]
    assert [row.cells[3] for row in sorted_by(grid, "now", True).rows][:3] == [
        "10 MB/s",
        "9 MB/s",
        "1,210 W",
    ]
    assert [row.order[4] for row in grid.rows] == [
        pytest.approx(1210 * 5 / 3.6e6),
        None,
        None,
        None,
    ]


def test_instants_out_of_order_are_marked_and_said_in_words():
    one = Played(nvml())
    for _ in range(10):
        one.second([600.0, 610.0])
    for window, begin_s, synced_s in (("a.pt", 2.0, 2.4), ("b.pt", 5.0, 5.3)):
        one.mark(begin_s, "begin", window, by="watch", bytes=1e9)
        one.mark(begin_s + 0.38, "written", window, by="watch")
        one.mark(synced_s, "synced", window, by="watch")
        one.mark(max(synced_s, begin_s + 0.32), "durable", window, by="watch", how="fsync")
    for _ in range(20):
        one.second([600.0, 610.0])
    view = one.view()
    assert [(row.cells[0], row.key, row.tone) for row in view.checkpoints.rows] == [
        ("2!", "2", "warn"),
        ("1", "1", ""),
    ]
    assert (
        "The instants of #2 (marked !) are out of order: the mark synced stands before one that it"
        " should follow." in view.notes
    ), view.notes


def test_a_save_that_was_safe_before_it_was_written_is_marked_too():
    one = Played(nvml())
    for _ in range(10):
        one.second([600.0, 610.0])
    for name, at_s in (("begin", 2.0), ("durable", 2.32), ("written", 2.326)):
        one.mark(at_s, name, "a.pt", by="watch")
    for _ in range(20):
        one.second([600.0, 610.0])
    view = one.view()
    assert view.checkpoints.rows[0].cells[0] == "1!"
    assert any(
        "it is said to be safe before its last byte was written" in note for note in view.notes
    )


def test_the_sentence_on_one_under_way_one_that_failed_and_none():
    one = Played(nvml())
    for _ in range(4):
        one.second([600.0, 600.0])
    assert one.view().last[0].startswith("No checkpoint yet")
    one.mark(4.0, "begin", "step 1")
    for _ in range(3):
        one.second([300.0, 300.0])
    text, tone = one.view().last
    assert text.startswith("#1 under way for 2.8 s.")
    assert tone == "warn"
    one.mark(7.0, "end", "step 1", error="disk full")
    for _ in range(4):
        one.second([600.0, 600.0])
    assert one.view().last == ("#1 failed: disk full.", "bad")


def board(*domains: str) -> LiveBoard:
    channels = tuple(Channel(domain, "power_w", "NVML field 186", "gpu") for domain in domains)
    one = LiveBoard()
    one.price(Desk())
    one.absorb([("p", header(MeterHead("nvml", channels)))])
    return one


def seconds(one: LiveBoard, since: int, until: int, *watts: float) -> None:
    for at_s in range(since, until):
        one.absorb([("p", Second(at_s * S, at_s * S + 4 * S // 5, (5,), (9,), (list(watts),)))])
    turned(one)


def mark(t_s: float, name: str, window: str) -> dict[str, object]:
    return {
        "k": "mark",
        "t": round(t_s * S),
        "name": name,
        "window": window,
        "rank": 0,
        "by": "api",
        "detail": {},
    }


def marked(one: LiveBoard, t_s: float, name: str, window: str) -> None:
    one.absorb([("p", mark(t_s, name, window))])
    turned(one)


def turned(one: LiveBoard) -> None:
    one.turn()
    while one.work():
        pass


def test_the_last_checkpoint_is_one_that_is_over():
    one = board("gpu:0")
    seconds(one, 0, 10, 600.0)
    for name, at_s in (("begin", 10.0), ("returned", 13.0), ("durable", 13.0)):
        marked(one, at_s, name, "step 1")
    seconds(one, 10, 20, 600.0)
    marked(one, 20.0, "begin", "step 2")
    seconds(one, 20, 22, 300.0)
    assert "#1" in last_of(one)[0]


@pytest.mark.parametrize("most", [40, 400])
def test_readings_that_are_still_wanted_are_let_go_where_there_are_too_many(most, monkeypatch):
    monkeypatch.setattr(live_board, "MOST_VALUES", most)
    one = board("gpu:0")
    marked(one, 1.0, "begin", "step 1")
    for at_s in range(401):
        seconds(one, at_s, at_s + 1, 600.0)
    assert one.run.values <= most + 20


def test_amounts_of_a_checkpoint_are_in_the_units_of_their_heads():
    """Two cards at 600 W for 3 s, at the facility, and so far from 0.4 s on."""
    one = board("gpu:0", "gpu:1")
    seconds(one, 0, 50, 600.0, 600.0)
    for name, at_s in (("begin", 50.0), ("returned", 53.0), ("durable", 53.0)):
        marked(one, at_s, name, "step 1")
    seconds(one, 50, 60, 600.0, 600.0)
    grid = Checkpoints().grid(one, 60.0)
    scenario = one.account.prices.scenario
    assert scenario is not None
    assert float(scenario.site.pue) == 1.15
    wh = 2 * 600.0 * 3.0 * 1.15 / 3600.0
    joules = grid.rows[0].order[[head.label for head in grid.heads].index("GPU J")]
    assert joules == pytest.approx(2 * 600.0 * 3.0)
    assert stats_of(one)[0].note == f"GPU {number(wh)} Wh"
    assert stats_of(one)[4].value == number(2 * 3.0 / 3600.0)
    assert [row.order[2] for row in gpus_grid(one).rows] == pytest.approx(
        [600.0 * 59.0 / 3600.0] * 2
    )
    assert meters_grid(one).rows[0].cells[4] == number(2 * 600.0 * 59.0 / 3.6e6)


def test_a_bin_has_the_least_and_the_most_of_all_that_fell_into_it():
    bins = Bins(1)
    bins.add(0.0, 0.0, [5.0], [1.0], [9.0])
    bins.add(0.1, 0.1, [7.0], [6.0], [8.0])
    found = bins.stretch(0.0, 1.0)
    assert (found.mean.tolist(), found.low.tolist(), found.high.tolist()) == (
        [[6.0]],
        [[1.0]],
        [[9.0]],
    )


def test_joules_of_a_gauge_are_under_the_line_between_its_readings():
    one = DomainSum(0, 0, Channel("gpu:0", "power_w", "NVML field 186", "gpu"))
    for t_s, watts in ((0.0, 100.0), (1.0, 300.0), (2.0, 300.0)):
        one.see(t_s, watts)
    assert one.joules == 200.0 + 300.0


def test_a_counter_that_wraps_goes_on_growing():
    one = Probe(
        0,
        0,
        Channel("disk:sda", "written_bytes", "/proc/diskstats", "disk", wraps_at=1000.0),
        0.05,
        2.5,
    )
    one.see(1.0, 900.0)
    one.see(2.0, 100.0)
    assert one.value(2.0) == 200.0
    assert isnan(one.value(10.0))


def test_a_board_that_saw_a_part_of_the_run_has_no_sum_of_all_of_it():
    one = board("gpu:0")
    seconds(one, 0, 10, 600.0)
    one.partly = True
    assert gpus_grid(one).rows[0].cells[:3] == ("0", "600", "-")
    assert meters_grid(one).rows[0].cells[3:5] == ("600 W", "")


def test_cards_that_do_not_answer_come_before_those_that_differ():
    one = board("gpu:0", "gpu:1", "gpu:2", "gpu:3")
    for at_s in range(9):
        silent = nan if at_s > 2 else 600.0
        one.absorb(
            [
                (
                    "p",
                    Second(
                        at_s * S,
                        at_s * S + 4 * S // 5,
                        (5,),
                        (9,),
                        ([600.0, 300.0, 610.0, silent],),
                    ),
                )
            ]
        )
    turned(one)
    assert [row.key for row in outliers_grid(one).rows][:2] == ["gpu:3", "gpu:1"]


def test_the_newest_seconds_are_shown():
    one = board("gpu:0")
    seconds(one, 0, 10, 600.0)
    view = LivePicture().view(one, LiveStatus("own", "x"), 5.0, False)
    assert (view.last_s, view.begin_s) == (one.last_s, one.last_s - 5.0)


def test_the_past_of_a_curve_stays_when_another_channel_begins_to_answer():
    channels = (
        Channel("gpu:0", "power_w", "NVML field 186", "gpu"),
        Channel("gpu:0", "utilisation", "NVML utilisation", "gpu"),
    )
    one = LiveBoard()
    one.price(Desk())
    one.absorb([("p", header(MeterHead("nvml", channels)))])
    for at_s in range(20):
        values = [600.0, None if at_s < 10 else 0.9]
        one.absorb([("p", Second(at_s * S, at_s * S + 4 * S // 5, (5,), (9,), (values,)))])
    past = one.curves.stretch(2.0, 8.0).mean[0]
    assert past[~np.isnan(past)].tolist() == pytest.approx([600.0] * np.isfinite(past).sum())
    assert np.isfinite(past).any()


def test_a_checkpoint_that_cannot_be_evaluated_is_not_tried_for_ever(monkeypatch):
    tried: list[float] = []

    def broken(*_: object) -> None:
        tried.append(1.0)
        raise ZeroDivisionError("a defect")

    one = board("gpu:0")
    seconds(one, 0, 10, 600.0)
    monkeypatch.setattr(live_board, "Evaluation", broken)
    for name, at_s in (("begin", 5.0), ("returned", 6.0), ("durable", 6.0)):
        one.absorb([("p", mark(at_s, name, "step 1"))])
    one.turn()
    with pytest.raises(ZeroDivisionError):
        list(iter(one.work, False))
    one.skip()
    assert not one.work()
    assert tried == [1.0]
