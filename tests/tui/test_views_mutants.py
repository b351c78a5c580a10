"""Figures and sentences that a slip could turn round without another test hearing of it."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small_runs import WALL_NS, Real, recorded

from ckptcost.core.channels import Channel, Mark
from ckptcost.errors import CkptcostError
from ckptcost.jobs.checkup import KINDS, Checkup
from ckptcost.jobs.observe import Look
from ckptcost.jobs.save_book import Book
from ckptcost.jobs.supervise import Supervisor, What
from ckptcost.jobs.wrap import tools_of
from ckptcost.meters.base import Absence
from ckptcost.meters.found import Wanted
from ckptcost.present.amounts import number
from ckptcost.present.chart import Traces
from ckptcost.present.grid import Grid, Head, Row, sorted_by
from ckptcost.report.studies.checkup import study_of as checkup_study
from ckptcost.runs import store
from ckptcost.runs.clocks import S, VirtualClock
from ckptcost.runs.header import Header, MeterHead
from ckptcost.runs.lines import Second
from ckptcost.runs.reader import load
from ckptcost.runs.recorder import Recorder
from ckptcost.runs.sinks import FileSink
from ckptcost.savers.base import Control
from ckptcost.tui.about_field import about_field
from ckptcost.tui.desk import Desk
from ckptcost.tui.live import board as live_board
from ckptcost.tui.live import sources as live_sources
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.curves import Bins, Probe, Sum
from ckptcost.tui.live.figures import stats_of
from ckptcost.tui.live.picture import Picture, Status
from ckptcost.tui.live.replay import Tape
from ckptcost.tui.live.tables import Checkpoints, gpus_grid, last_of, meters_grid, outliers_grid
from ckptcost.tui.screens import (
    checkpoint,
    probe_plan,
    probe_run,
    report_answers,
    run_traces,
    runs_entries,
)
from ckptcost.tui.screens import interval_view as interval
from ckptcost.tui.screens import model_view as model
from ckptcost.tui.screens.meters import kinds_of
from ckptcost.tui.screens.probe_run import Pass, Watch
from ckptcost.tui.screens.recorded_run import RUNS, RecordedRun, read_run

TWO = Desk(base="small-8b", tiers=("nas-hdd", "flash-shared"))


# the model


def test_a_tier_s_figure_holds_for_two_tiers_as_for_many():
    said = [text for text, _ in about_field(TWO.edited("tier.write", "5 GB/s"), "tier.write")]
    assert "What you write here holds for every tier in the table." in said


def test_the_chosen_tier_is_the_one_that_is_billed():
    view = model.evaluate(replace(TWO, chosen="flash-shared"))
    assert view.looked.key == "flash-shared"
    assert [row.key for row in view.grid.rows if row.marked] == ["flash-shared"]
    bill = model.settled(view).bill
    assert bill.title.startswith(f"The bill of the run: {view.resolved.names['tier']}")


# the interval


def test_another_tier_is_another_study():
    assert interval.same_study(TWO, TWO)
    assert not interval.same_study(TWO, replace(TWO, chosen="flash-shared"))


# the live screen


def board(*gpus: str) -> LiveBoard:
    channels = tuple(Channel(gpu, "power_w", "NVML field 186", "gpu") for gpu in gpus)
    head = Header(
        run="ab" * 16,
        host="node-1",
        monotonic_ns=0,
        wall_ns=1_767_225_600 * S,
        meters=(MeterHead("nvml", channels),),
        settings={"quick_s": 0.02, "rest_s": 0.2},
    )
    one = LiveBoard()
    one.price(Desk())
    one.absorb([("p", head)])
    return one


def seconds(one: LiveBoard, since: int, until: int, *watts: float) -> None:
    for at_s in range(since, until):
        one.absorb([("p", Second(at_s * S, at_s * S + 4 * S // 5, (5,), (9,), (list(watts),)))])
    turned(one)


def marked(one: LiveBoard, t_s: float, name: str, window: str, **detail: object) -> None:
    fields = {
        "k": "mark",
        "t": round(t_s * S),
        "name": name,
        "window": window,
        "rank": 0,
        "by": "api",
        "detail": detail,
    }
    one.absorb([("p", fields)])
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
    assert prices_pue(one) == 1.15
    wh = 2 * 600.0 * 3.0 * 1.15 / 3600.0
    joules = grid.rows[0].order[[head.label for head in grid.heads].index("GPU J")]
    assert joules == pytest.approx(2 * 600.0 * 3.0)
    assert stats_of(one)[0].note == f"GPU {number(wh)} Wh"
    assert stats_of(one)[4].value == number(2 * 3.0 / 3600.0)
    assert [row.order[2] for row in gpus_grid(one).rows] == pytest.approx(
        [600.0 * 59.0 / 3600.0] * 2
    )
    assert meters_grid(one).rows[0].cells[4] == number(2 * 600.0 * 59.0 / 3.6e6)


def prices_pue(one: LiveBoard) -> float:
    scenario = one.account.prices.scenario
    assert scenario is not None
    return float(scenario.site.pue)


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


def test_a_line_that_stands_after_a_later_one_is_read_all_the_same(tmp_path):
    recorded(tmp_path / "run", 12)
    (file,) = (tmp_path / "run").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    first, second = [n for n, line in enumerate(lines) if line.startswith(b'{"k":"second"')][5:7]
    lines[first], lines[second] = lines[second], lines[first]
    file.write_bytes(b"".join(lines))
    tape = Tape(*store.kept_at(tmp_path / "run"))
    early_ns, late_ns = sorted(json.loads(lines[n])["t"] for n in (first, second))
    told = [t_ns for t_ns, _, fields in tape.readings(0, late_ns - 1) if fields["k"] == "second"]
    assert early_ns in told


# what all screens share


@pytest.mark.parametrize("down", [False, True])
def test_a_number_that_is_none_stands_last(down):
    rows = [
        Row(str(n), (str(value),), (value,)) for n, value in enumerate((nan, 2.0, nan, 1.0, 3.0))
    ]
    found = sorted_by(Grid((Head("n", "n"),), rows), "n", down)
    assert [row.key for row in found.rows] == (
        ["4", "1", "3", "0", "2"] if down else ["3", "1", "4", "0", "2"]
    )


def test_a_rest_of_no_length_is_still_a_place_to_stop():
    control = Control()
    control.rest(0.0)
    control.stop()
    with pytest.raises(KeyboardInterrupt):
        control.rest(0.0)


@pytest.mark.parametrize(
    ("metric", "units"),
    [("kwh", ("USD", "GPU-h")), ("usd", ("GPU-h", "kWh")), ("gpuh", ("USD", "kWh"))],
)
def test_the_other_amounts_are_not_the_one_that_is_shown_already(metric, units):
    said, _ = model.evaluate(replace(TWO, metric=metric)).beside
    assert tuple(re.findall(r"(USD|GPU-h|kWh) less", said)) == units


@pytest.mark.parametrize(("objective", "log"), [("time", False), ("energy", True)])
def test_shares_of_time_stand_on_a_plain_axis_and_amounts_on_a_log_one(objective, log):
    one = interval.studied(Desk(base="small-8b"), objective)
    shown = interval.chart(one, one.best)
    assert (shown.x_log, shown.y_log) == (True, log)


# a recording beside a job


@pytest.fixture
def tools(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    return tools_of("block,process,writeback", Wanted(), least=0)


def run_through(tools, *argv: str) -> Supervisor:
    one = Supervisor(What(argv), tools, Look((), gap_s=0.2, settle_s=0.0))
    one.start()
    until_s = time.monotonic() + 20.0
    while one.phase != "over" and time.monotonic() < until_s:
        time.sleep(0.01)
    return one


def test_of_a_long_output_the_end_is_kept_and_what_was_written_is_told(tools, tmp_path):
    """Some kernels count no bytes of a process; what they count is a number all the same."""
    code = (
        f"print('first' + '.' * 40_000); print('THE END'); open({str(tmp_path / 'x')!r},"
        " 'wb').write(bytes(4096))"
    )
    one = run_through(tools, sys.executable, "-c", code)
    assert one.output().endswith(b"THE END\n")
    assert not one.output().startswith(b"first")
    (note,) = [mark for mark in load(one.folder).marks if "exit_status" in mark.detail]
    assert note.detail["exit_status"] == 0
    assert note.detail["written_bytes"] >= 0


def test_workers_that_outlive_their_launcher_are_ended_with_it(tools, tmp_path):
    told = tmp_path / "worker"
    worker = f"trap '' TERM; echo $$ > {told}; while :; do sleep 0.05; done"
    one = Supervisor(
        What(
            ("sh", "-c", "sh -c \"$0\" & trap 'exit 0' TERM; while :; do sleep 0.05; done", worker)
        ),
        tools,
        Look((), gap_s=0.2, settle_s=0.0),
        patience_s=0.2,
    )
    one.start()
    until_s = time.monotonic() + 20.0
    while not (told.is_file() and told.read_text().strip()) and time.monotonic() < until_s:
        time.sleep(0.01)
    one.stop()
    with pytest.raises(ProcessLookupError):
        _alive(int(told.read_text()))


def test_a_recording_that_fails_says_so_and_is_over(tools, monkeypatch):
    one = Supervisor(What(), tools, Look((), gap_s=0.2, settle_s=0.0))

    def broken() -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(one.observer, "look", broken)
    one.start()
    one.stop()
    assert one.phase == "over"
    assert one.troubles()[0] == "the recording failed: ZeroDivisionError: a defect"


def test_what_is_refused_leaves_no_process_open(tools, tmp_path):
    (folder := tmp_path / "taken").mkdir()
    (folder / "there.jsonl").write_text("{}")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CkptcostError):
        Supervisor(What(pid=os.getppid()), tools, Look((), gap_s=0.2, settle_s=0.0), folder)
    assert len(os.listdir("/proc/self/fd")) == before


def _alive(pid: int) -> None:
    """Raises where there is none, or what is left of it waits to be reaped."""
    os.kill(pid, 0)
    if Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z":
        raise ProcessLookupError


# what comes from outside


@pytest.mark.parametrize(("by", "ready"), [("watch", False), ("api", True)])
def test_who_looks_from_outside_says_some_things_later(by, ready):
    book = Book()
    for name, at_s in (("begin", 10.0), ("returned", 12.0), ("durable", 12.0)):
        book.add(Mark(at_s, name, "step 1", by=by))
    book.turn(14.0)
    assert book.entry(1).ready is ready
    book.turn(20.0)
    assert book.entry(1).ready


def test_two_runs_of_one_folder_are_two_reports(tmp_path):
    for run_id in ("a" * 32, "b" * 32):
        recorded(tmp_path / "both", 6, run_id=run_id, saves=(2,))
    recorded(tmp_path / "alone", 6, run_id="c" * 32, saves=(2,))
    keys = {row.key for row in report_answers.runs(tmp_path)}
    assert keys == {f"run:{'a' * 32}", f"run:{'b' * 32}", "run:alone"}


def test_what_is_settled_still_counts_as_time_that_training_stood(tmp_path):
    book = Book(later=True)
    for name, at_s in (("begin", 10.0), ("returned", 13.0), ("durable", 15.0)):
        book.add(Mark(at_s, name, "step 1", by="api"))
    book.turn(20.0)
    assert book.timed(20.0) == (5.0, 3.0, 0)
    book.turn(1000.0)
    assert book.recent == []
    assert book.timed(1000.0) == (5.0, 3.0, 0)


def test_joules_of_a_gauge_are_under_the_line_between_its_readings():
    one = Sum(0, 0, Channel("gpu:0", "power_w", "NVML field 186", "gpu"))
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


# small steps and rare words


@pytest.mark.parametrize(("steps", "there"), [(0.1, "1020 s"), (-0.1, "999 s")])
def test_the_smallest_step_moves_the_last_digit_that_is_shown(steps, there):
    assert interval.moved(interval.studied(Desk(base="small-8b"), "time"), "1010 s", steps) == there


def test_words_and_numbers_of_one_column_turn_round_together():
    rows = [
        Row("n2", ("2",), (2.0,)),
        Row("b", ("b",), ("b",)),
        Row("n1", ("1",), (1.0,)),
        Row("a", ("a",), ("a",)),
    ]
    grid = Grid((Head("n", "n"),), rows)
    assert [row.key for row in sorted_by(grid, "n").rows] == ["n1", "n2", "a", "b"]
    assert [row.key for row in sorted_by(grid, "n", down=True).rows] == ["b", "a", "n2", "n1"]


def test_a_pass_is_stopped_by_whoever_else_may_stop_it():
    wanted = [False]
    control = Control(lambda: wanted[0])
    control.check()
    wanted[0] = True
    with pytest.raises(KeyboardInterrupt):
        control.check()


# the interval once more


def test_the_interval_in_force_is_meant_exactly():
    one = interval.studied(Desk(base="small-8b", edits={"policy.interval": "1234.56 s"}), "time")
    assert interval.trial_of(one) == "1230 s"
    assert interval.seconds_of(one, "1230 s") == 1234.56


def test_one_row_is_the_best():
    one = interval.studied(Desk(base="small-8b"), "time")
    rows = interval.points(one, one.best).rows
    assert [row.cells[0] for row in rows if row.tone == "best"] == ["robust interval"]
    sure = interval.studied(Desk(base="opt-175b"), "time")
    rows = interval.points(sure, sure.best).rows
    assert [row.cells[0] for row in rows if row.tone == "best"] == ["best for time"]


# live and recorded runs once more


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
    view = Picture().view(one, Status("own", "x"), 5.0, False)
    assert (view.last_s, view.begin_s) == (one.last_s, one.last_s - 5.0)


def test_a_jump_behind_the_end_goes_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    recorded(tmp_path / "run", 30)
    source = live_sources.replay(str(tmp_path / "run"), Desk(), threaded=False, clock=lambda: 0.0)
    source.start()
    source.seek(1e9)
    source.pump(0.0)
    assert source.position_s == pytest.approx(source.length_s)
    assert [row.key for row in source.view().checkpoints.rows] == ["1"]
    assert source.view().gpus.rows[0].cells[2] != "-"


def test_stopping_twice_ends_it_once(monkeypatch):
    source = live_sources.demo(Desk(), gpus=1, history_s=1.0, threaded=False, clock=lambda: 0.0)
    source.start()
    ended: list[object] = []
    monkeypatch.setattr(source, "_end", lambda within_s: ended.append(within_s) or "told")
    assert (source.stop(), source.stop()) == ("told", "")
    assert ended == [None]


def test_a_run_that_was_touched_is_read_again(tmp_path):
    recorded(tmp_path / "run", 6, saves=(2,))
    source = runs_entries.source_at(str(tmp_path / "run"))
    first = RUNS.load(source)
    assert RUNS.load(source) is first
    (file,) = (tmp_path / "run").glob("*.jsonl")
    os.utime(file, ns=(1, 1))
    assert RUNS.load(source) is not first


def test_what_is_read_back_is_not_written():
    contents = [
        SimpleNamespace(of="save", bytes=10.0),
        SimpleNamespace(of="load", bytes=99.0),
        SimpleNamespace(of="save", bytes=nan),
    ]
    seen = SimpleNamespace(
        contents=contents, mean_save=None, node=SimpleNamespace(parts=SimpleNamespace(known=False))
    )
    run = RecordedRun(None, seen)
    run.study = SimpleNamespace(findings=[])
    assert run.learned.written == 10.0


def test_a_picture_of_a_run_ends_where_the_run_ends():
    whole = Traces((), (0.0, 100.0))
    near = run_traces.zoomed(whole, whole, 2)
    length_s = near.x_range[1] - near.x_range[0]
    assert run_traces.panned(near, whole, 50).x_range == pytest.approx((100.0 - length_s, 100.0))
    assert run_traces.panned(near, whole, -50).x_range == pytest.approx((0.0, length_s))


def test_what_was_learned_of_other_files_is_forgotten(tmp_path):
    recorded(tmp_path / "run", 6, saves=(2,))
    (entry,), _ = runs_entries.opened(str(tmp_path / "run"))
    knew = entry._replace(learned=runs_entries.Learned(1.0, 2.0, 3.0, ()))
    assert entry.after(knew).learned == knew.learned
    assert (
        entry.after(knew._replace(summary=knew.summary._replace(sizes={"other.jsonl": 1}))).learned
        is None
    )


def test_a_link_that_was_put_in_a_file_s_place_is_left(tmp_path):
    (folder := tmp_path / "run").mkdir()
    (folder / "real.jsonl").write_text("x")
    (folder / "link.jsonl").symlink_to(tmp_path / "elsewhere")
    said = runs_entries.remove(runs_entries.Removal(folder, ("link.jsonl", "real.jsonl"), 1, 0))
    assert [path.name for path in folder.iterdir()] == ["link.jsonl"]
    assert said.startswith("Deleted 1 files")


# a probe


def test_the_rate_of_a_probe_is_that_of_the_last_second(tmp_path):
    asked = probe_plan.request(probe_plan.Draft(str(tmp_path), "20 GB"), Desk())
    running = probe_run.Running(probe_plan.plan_of(asked, probe_plan.Spot("")), "auto")
    watch = Watch()
    watch.begin_ns = 0
    one = Pass("save", 1, 20_000_000_000, 0)
    one.moves += [(S, 9_000_000_000), (2 * S, 10_000_000_000), (3 * S, 12_000_000_000)]
    watch.passes, watch.moved_bytes = [one], 12_000_000_000
    running.watch = watch
    assert ", 2 GB/s" in probe_run.progress(running, now_ns=3 * S).line


def test_a_command_has_nothing_to_read(tools):
    """Even where this program's own input is a pipe that stays open."""
    own, (ours, theirs) = os.dup(0), os.pipe()
    try:
        os.dup2(ours, 0)
        one = run_through(tools, sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))")
    finally:
        os.dup2(own, 0)
        for each in (own, ours, theirs):
            os.close(each)
    assert one.output() == b"''\n"


# one checkpoint


@pytest.fixture(scope="module")
def drained(tmp_path_factory) -> RecordedRun:
    """Two ranks that begin at 5 and 6 s, go on at 7 and 8 s and are safe at 10 and 11 s; one card
    that takes 100 W."""
    folder = tmp_path_factory.mktemp("drained") / "run"
    recorder = Recorder(
        [Real(1)], FileSink(folder), VirtualClock(0, WALL_NS), run_id="a" * 32, host="node1"
    )
    recorder.begin()
    told = {
        5: ("begin", 0),
        6: ("begin", 1),
        7: ("returned", 0),
        8: ("returned", 1),
        10: ("durable", 0),
        11: ("durable", 1),
    }
    for second in range(1, 31):
        recorder.run_until(second * S)
        if second in told:
            name, rank = told[second]
            recorder.mark(name, "step 1", by="api", rank=rank)
    recorder.stop()
    return read_run(runs_entries.source_at(str(folder)))


def test_joules_of_a_save_and_of_its_stall_have_a_column_each(drained):
    tables = {each.id: each for each in checkpoint.study_beside(drained, 0, Desk()).tables}
    (card,) = tables["energies"].rows
    assert (card["joules"], card["stall"]) == pytest.approx((600.0, 300.0), rel=1e-3)


def test_its_picture_counts_from_its_begin(drained):
    traces = drained.near(0)
    assert [(rule.at, rule.label) for rule in traces.rules] == [(6.0, "safe")]
    assert [(band.begin, band.end, band.kind) for band in traces.bands] == [
        (0.0, 3.0, "save"),
        (3.0, 6.0, "drain"),
    ]
    tables = {each.id: each for each in checkpoint.study_beside(drained, 0, Desk()).tables}
    bars = checkpoint.phases_of(tables["phases"], tables["windows"].rows[0]["begin"])
    assert [(bar.label, bar.parts[0].begin, bar.parts[0].end) for bar in bars.rows] == [
        ("stall", 0.0, 3.0),
        ("drain", 3.0, 6.0),
    ]
    (chart,) = traces.charts
    assert chart.curves[0].xs[0] == pytest.approx(-2.5, abs=1.0)


# the board's own work


def test_a_save_that_nobody_speaks_of_any_more_is_not_open_for_ever():
    book = Book()
    book.add(Mark(10.0, "begin", "step 1", by="api"))
    book.turn(100.0)
    assert [entry.number for entry in book.open] == [1]
    book.turn(700.0)
    assert book.open == []


def test_a_checkpoint_that_cannot_be_evaluated_is_not_tried_for_ever(monkeypatch):
    tried: list[float] = []

    def broken(*_: object) -> None:
        tried.append(1.0)
        raise ZeroDivisionError("a defect")

    one = board("gpu:0")
    seconds(one, 0, 10, 600.0)
    monkeypatch.setattr(live_board, "Evaluation", broken)
    for name, at_s in (("begin", 5.0), ("returned", 6.0), ("durable", 6.0)):
        one.absorb(
            [
                (
                    "p",
                    {
                        "k": "mark",
                        "t": round(at_s * S),
                        "name": name,
                        "window": "step 1",
                        "rank": 0,
                        "by": "api",
                        "detail": {},
                    },
                )
            ]
        )
    one.turn()
    with pytest.raises(ZeroDivisionError):
        list(iter(one.work, False))
    one.skip()
    assert not one.work()
    assert tried == [1.0]


def test_the_past_of_a_curve_stays_when_another_channel_begins_to_answer():
    channels = (
        Channel("gpu:0", "power_w", "NVML field 186", "gpu"),
        Channel("gpu:0", "utilisation", "NVML utilisation", "gpu"),
    )
    one = board()
    head = replace(one.headers[0], meters=(MeterHead("nvml", channels),))
    one = LiveBoard()
    one.price(Desk())
    one.absorb([("p", head)])
    for at_s in range(20):
        values = [600.0, None if at_s < 10 else 0.9]
        one.absorb([("p", Second(at_s * S, at_s * S + 4 * S // 5, (5,), (9,), (values,)))])
    past = one.curves.stretch(2.0, 8.0).mean[0]
    assert past[~np.isnan(past)].tolist() == pytest.approx([600.0] * np.isfinite(past).sum())
    assert np.isfinite(past).any()


def test_an_interval_as_good_as_the_best_is_no_reason_to_warn():
    best_s = interval.studied(Desk(base="small-8b"), "energy").best.interval_s
    tones = {}
    for said in (interval.text_of(best_s), interval.text_of(best_s * 8)):
        one = interval.studied(Desk(base="small-8b", edits={"policy.interval": said}), "energy")
        tones[said] = next(
            row.tone for row in interval.points(one, one.best).rows if row.cells[0] == "now"
        )
    assert list(tones.values()) == ["", "warn"]


def test_what_refuses_is_said_before_what_nobody_asked_for():
    absences = (
        Absence("ipmi", "not asked for: each reading starts a process", "", "cpu"),
        Absence("rapl", "permission denied", "", "cpu"),
    )
    study = checkup_study(
        Checkup("host", [], absences, (), "", {kind: [] for kind in KINDS}, 1.0, False, 0.03)
    )
    (kind,) = [kind for kind in kinds_of(study) if kind.id == "cpu"]
    assert (kind.state, kind.reasons[0]) == ("refuses", "permission denied")
