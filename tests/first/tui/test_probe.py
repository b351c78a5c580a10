"""The probe screen's data: what is asked for and what the command would do, the plan against what
is really moved, cancelling, keeping, and the result in the numbers that the command prints."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import threading
import time
from dataclasses import replace

import pytest
from probing import DISK, alone, slow_writes

from ckptcost.first.cli import probe_
from ckptcost.first.errors import InputError, OutputError
from ckptcost.first.present.amounts import duration, number, quantity
from ckptcost.first.questions import probe as probing_question
from ckptcost.first.report.study_views import text as study_text
from ckptcost.first.runs import store
from ckptcost.first.runs.clocks import S
from ckptcost.first.savers.base import NONE, Io
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import probe_plan, probe_run
from ckptcost.first.tui.screens.probe_plan import NODES, WHOLE, Draft
from ckptcost.first.tui.screens.probe_run import Pass, Watch

GB = 1e9


@pytest.fixture(scope="module")
def desk():
    return Desk()


@pytest.fixture
def place(monkeypatch, tmp_path):
    return alone(monkeypatch, tmp_path)


def small(place, **more):
    return Draft(str(place), "16 MB", "posix", "2", "2", **more)


class TestForm:
    def test_fields_hold_what_the_command_takes(self, desk):
        draft = Draft("/scratch")
        assert [field.path for field in probe_plan.fields(draft, desk)] == [
            "directory",
            "size",
            "writer",
            "ranks",
            "rounds",
            "quarter",
            "warm_up",
            "read",
        ]
        assert not any(field.error for field in probe_plan.fields(draft, desk))
        defaults = options_of("ckptcost probe /scratch")
        one = probe_plan.request(draft, desk)
        assert (
            one.ranks,
            one.saver,
            one.rounds,
            one.small,
            one.read,
            one.warm_up,
            str(one.size_bytes),
        ) == (
            defaults.ranks,
            defaults.saver,
            defaults.rounds,
            not defaults.one_size,
            not defaults.no_read,
            defaults.warm_up,
            "1000000000",
        )

    @pytest.mark.parametrize(
        "draft",
        [
            Draft("/my disk", "1 GB"),
            Draft("/s", "20 GB", "posix", "3", "5", "no", "2", "no"),
            Draft("/s", "123456789 B", "safetensors", "1", "1", "yes", "0", "no"),
            Draft("/s", NODES),
            Draft("/s", WHOLE),
        ],
    )
    def test_the_command_does_the_same(self, desk, draft):
        one, said = (
            probe_plan.request(draft, desk),
            options_of(probe_plan.command(draft, desk, "rapl,block")),
        )
        asked = one
        assert probing_question._size_bytes(said.size, said.model, desk.catalog) == one.size_bytes
        assert (said.directory, said.saver, said.ranks, said.rounds, said.warm_up) == (
            draft.directory,
            one.saver,
            one.ranks,
            one.rounds,
            one.warm_up,
        )
        assert (not said.one_size, not said.no_read, not said.no_verify) == (
            asked.small,
            asked.read,
            asked.settings.verify,
        )
        assert (said.depth, said.block) == (asked.settings.depth, "4 MiB")
        assert asked.settings.block_bytes == 4 << 20
        assert said.meters == "rapl,block"

    def test_sizes_of_the_scenario(self, desk):
        whole, share = (
            probe_plan.request(Draft("/s", name), desk).size_bytes for name in (WHOLE, NODES)
        )
        assert whole == 2_000_000_000_000
        assert share == whole / 128
        unit = next(
            field.unit
            for field in probe_plan.fields(Draft("/s", NODES), desk)
            if field.path == "size"
        )
        assert unit == "15.6 GB"
        told = [row.cells[1] for row in probe_plan.choices("size", desk).rows]
        assert [text.partition(":")[0] for text in told] == ["15.6 GB", "2 TB"]

    @pytest.mark.parametrize(
        ("path", "text", "why"),
        [
            ("directory", " ", "name a folder"),
            ("size", "3 apples", "apples"),
            ("size", "1 kB", "1 MB to 1 PB"),
            ("size", "", ""),
            ("writer", "tar", "no writer named 'tar'. Known: direct"),
            ("ranks", "0", "from 1 to 4096"),
            ("ranks", "-1", "whole number"),
            ("rounds", "1.5", "whole number"),
            ("warm_up", "101", "from 0 to 100"),
            ("read", "maybe", "yes or no"),
            ("quarter", "", "yes"),
        ],
    )
    def test_what_is_wrong_stands_at_its_field(self, desk, path, text, why):
        draft = Draft("/s").edited(path, text)
        assert list(probe_plan.problems(draft, desk)) == [path]
        assert why in next(
            field.error for field in probe_plan.fields(draft, desk) if field.path == path
        )
        assert probe_plan.command(draft, desk, "auto") == ""
        with pytest.raises(InputError):
            probe_plan.request(draft, desk)
        asking = probe_plan.asking(draft, desk, None)
        assert asking.ready is None
        assert asking.why_not

    def test_a_home_folder(self, desk, monkeypatch):
        monkeypatch.setenv("HOME", "/home/me")
        assert str(probe_plan.request(Draft("~/x"), desk).directory) == "/home/me/x"


class TestPlace:
    def test_a_folder_on_a_disk(self, tmp_path):
        spot = probe_plan.look(tmp_path)
        room = os.statvfs(tmp_path)
        assert not spot.refusal
        assert spot.whole_bytes == room.f_blocks * room.f_frsize
        assert spot.memory_bytes > 1e8

    @pytest.mark.parametrize("what", ["gone", "file"])
    def test_nowhere_to_write(self, tmp_path, desk, what):
        (tmp_path / "file").write_text("x")
        spot = probe_plan.look(tmp_path / what)
        assert spot.refusal == {"gone": "no such folder", "file": "is no folder"}[what]
        asking = probe_plan.asking(Draft(str(tmp_path / what)), desk, spot)
        assert asking.ready is None
        assert asking.why_not == f"{tmp_path / what}: {spot.refusal}."

    def test_not_writable(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        assert probe_plan.look(tmp_path).refusal == "you may not write there"

    def test_mounted_read_only(self, tmp_path, monkeypatch):
        real = os.statvfs(tmp_path)
        fields = list(real)
        fields[8] |= os.ST_RDONLY
        monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(fields))
        assert probe_plan.look(tmp_path).refusal == "the file system is mounted read-only"

    def test_memory_is_no_storage(self, tmp_path, desk):
        proc = tmp_path / "proc"
        (proc / "self").mkdir(parents=True)
        (proc / "self" / "mountinfo").write_text(f"36 35 0:24 / {tmp_path} rw - tmpfs tmpfs rw\n")
        (proc / "meminfo").write_text("MemTotal: 1000 kB\n")
        spot = probe_plan.look(tmp_path, procfs=proc)
        assert (spot.kind, spot.fs_type, spot.memory_bytes) == (
            probe_plan.MEMORY,
            "tmpfs",
            1_024_000.0,
        )
        assert (
            "tmpfs is memory: this measures memory and no storage",
            "warn",
        ) in probe_plan.place_lines(spot, probe_plan.request(Draft("x"), desk))

    def test_too_small(self, desk):
        one = probe_plan.request(Draft(".", "500 GB"), desk)
        assert (
            probe_plan.refusal_of(DISK, one)
            == ".: a checkpoint of 500 GB does not fit: 400 GB are free, of which 1.07 GB are left"
            " alone"
        )
        assert probe_plan.asking(Draft(".", "500 GB"), desk, DISK).ready is None
        assert probe_plan.refusal_of(DISK._replace(whole_bytes=0.0), one) == "", (
            "who does not say may have room"
        )

    def test_the_same_numbers_as_the_job(self, tmp_path, desk):
        """What is refused here is refused there, and nothing more."""
        spot = probe_plan.look(tmp_path)
        fits, too_large = (int(spot.room_bytes * part) for part in (0.9, 1.1))
        SavePlace(tmp_path, fits).close()
        assert (
            probe_plan.refusal_of(spot, probe_plan.request(Draft(str(tmp_path), f"{fits} B"), desk))
            == ""
        )
        with pytest.raises(OutputError, match="does not fit"):
            SavePlace(tmp_path, too_large)
        assert "does not fit" in probe_plan.refusal_of(
            spot, probe_plan.request(Draft(str(tmp_path), f"{too_large} B"), desk)
        )

    def test_the_page_cache(self, desk):
        said = probe_plan.place_lines(DISK, probe_plan.request(Draft(".", "10 GB", "posix"), desk))
        assert said[-1] == (
            "10 GB fit into the page cache of 64 GB: what counts is until fsync is through",
            "muted",
        )
        for other in (Draft(".", "10 GB", "direct"), Draft(".", "100 GB", "posix")):
            assert len(probe_plan.place_lines(DISK, probe_plan.request(other, desk))) == 1


class TestPlan:
    def test_what_it_will_write(self, desk):
        p = probe_plan.plan_of(
            probe_plan.request(Draft(".", "4 GB", rounds="3", warm_up="2"), desk), DISK
        )
        assert (p.saves, p.written_bytes, p.read_bytes) == (8, 3 * 5 * GB + 2 * 4 * GB, 2 * 15 * GB)
        said = [line for line, _ in probe_plan.plan_lines(p)]
        assert said[0] == "Will write 23 GB into ./.ckptcost-probe-..."
        assert (
            said[1]
            == "8 saves, 4 GB each, every second one a quarter; the first 2 do not count; at most 4"
            " GB at a time."
        )
        assert said[3].startswith("About ")
        assert "if a drive does 2 GB/s" in said[3]

    def test_it_asks_where_it_is_much(self, desk):
        def of(size, spot=DISK):
            return probe_plan.plan_of(
                probe_plan.request(Draft(".", size, rounds="1", quarter="no"), desk), spot
            ).much

        assert of("39 GB") == ""
        assert of("41 GB") == "that is 10.2 % of the 400 GB that are free"
        roomy = DISK._replace(free_bytes=9e12, whole_bytes=1e13)
        assert of("49 GB", roomy) == ""
        assert of("51 GB", roomy) == "that is more than 50 GB"

    def test_how_long_by_what_was_found_before(self, desk):
        one = probe_plan.request(Draft(".", "10 GB", rounds="1", quarter="no", read="no"), desk)
        assert probe_plan.plan_of(one, DISK, 1e9).seconds == pytest.approx(20.0 + 1.0 + 1.0 + 1.0)
        assert (
            "at 1 GB/s, as before"
            in [line for line, _ in probe_plan.plan_lines(probe_plan.plan_of(one, DISK, 1e9))][3]
        )

    def test_a_library_that_is_missing(self, desk, monkeypatch):
        monkeypatch.setattr(probe_plan, "find_spec", lambda name: None)
        asking = probe_plan.asking(Draft(".", writer="torch_save"), desk, DISK)
        assert asking.ready is None
        assert (
            asking.why_not
            == "torch_save needs torch, which is not installed: pip install 'ckptcost[torch]'."
        )
        assert probe_plan.asking(Draft("."), desk, DISK).ready is not None

    def test_nothing_begins_before_the_folder_was_looked_at(self, desk):
        assert (
            probe_plan.asking(Draft("/other"), desk, DISK).why_not
            == "the folder is still looked at"
        )
        assert probe_plan.asking(Draft("."), desk, None).ready is None

    def test_a_simulated_machine_writes_nothing(self, desk):
        asking = probe_plan.asking(Draft("/nowhere", "1 PB"), desk, None, "simulated")
        assert asking.ready is not None
        assert asking.ready.question == ""
        assert "nothing is written but the run" in asking.lines[0][0]


class TestRun:
    def test_all_that_was_planned_and_no_more(self, place, desk):
        draft = small(place, quarter="yes", warm_up="1")
        asking = probe_plan.asking(draft, desk, probe_plan.look(place))
        running = probe_run.Running(asking.ready, "block")
        ended = running.work(lambda: False)
        assert (
            running.watch.all_bytes == asking.ready.moved_bytes == (2 * 1.25 + 1 + 4 * 1.25) * 16e6
        )
        assert not os.listdir(place)
        assert not ended.cancelled
        assert probe_run.ended_text(ended) == (
            "Done; everything that was written is removed.",
            "good",
        )
        rates, passes = probe_run.grids(ended.study)
        rows = passes.rows
        assert [row.cells[1:3] for row in rows] == [
            (of, size) for size in ("16 MB", "4 MB") * 2 for of in ("save", "load")
        ]
        said = study_text(ended.study)
        for row in (*rates.rows, *rows):
            assert " ".join(row.cells) in " ".join(said.split())
        chart = probe_run.curve(running.watch)
        assert [band.kind for band in chart.bands] == ["save", "load"] * 4

    def test_kept_only_when_it_is_said(self, place, desk, tmp_path):
        running = probe_run.Running(
            probe_plan.asking(
                small(place, quarter="no", read="no"), desk, probe_plan.look(place)
            ).ready,
            "block",
        )
        ended = running.work(lambda: False)
        assert not store.folders()
        assert "Not kept yet" in probe_run.words(ended.study, desk)[-1][0]
        kept = ended._replace(folder=probe_run.keep(ended))
        assert [kept.folder] == store.folders()
        assert not os.listdir(tmp_path / "scratch")
        assert probe_run.keep(kept) == kept.folder
        probe_run.forget(kept)
        assert kept.folder.is_dir(), "what is kept is not dropped"
        assert store.find(kept.calibrating.split()[2]).is_relative_to(kept.folder)

    def test_what_is_dropped_is_gone(self, place, desk, tmp_path):
        draft = Draft(str(place), rounds="1", quarter="no")
        ended = probe_run.Running(
            probe_plan.asking(draft, desk, None, "simulated").ready, "simulated"
        ).work(lambda: False)
        assert os.listdir(tmp_path / "scratch")
        probe_run.forget(ended)
        assert not os.listdir(tmp_path / "scratch")

    def test_stopped_in_the_middle_of_a_pass(self, place, desk, tmp_path, monkeypatch):
        counted = slow_writes(monkeypatch, 0.02)
        draft = Draft(str(place), "200 MB", "posix", "2", "3")
        running = probe_run.Running(
            probe_plan.asking(draft, desk, probe_plan.look(place)).ready, "block"
        )
        ended = []
        thread = threading.Thread(target=lambda: ended.append(running.work(lambda: False)))
        thread.start()
        wait_for(lambda: len(counted) > 4)
        assert os.listdir(place), "it is there while it is written"
        began_s = time.monotonic()
        assert running.stop(2.0)
        assert time.monotonic() - began_s < 2.0
        thread.join(5.0)
        assert not os.listdir(place)
        assert not os.listdir(tmp_path / "scratch")
        assert (ended[0].cancelled, ended[0].study) == (True, None)
        assert probe_run.ended_text(ended[0]) == (
            "Stopped before a pass was through; everything that was written is removed.",
            "warn",
        )

    def test_stopped_by_who_runs_it(self, place, desk, monkeypatch):
        counted = slow_writes(monkeypatch, 0.01)
        running = probe_run.Running(
            probe_plan.asking(small(place), desk, probe_plan.look(place)).ready, "block"
        )
        assert running.work(lambda: len(counted) > 2).cancelled
        assert not os.listdir(place)

    def test_stopped_after_some_passes(self, place, desk):
        running = probe_run.Running(
            probe_plan.asking(small(place, quarter="no"), desk, probe_plan.look(place)).ready,
            "block",
        )
        stop_at(running.watch, 2)
        ended = running.work(lambda: False)
        assert (ended.cancelled, len(ended.probed.rounds)) == (True, 2)
        assert len(probe_run.grids(ended.study)[1].rows) == 2
        line, _ = probe_run.ended_text(ended)
        assert line == "Stopped after 2 passes; everything that was written is removed."
        words = probe_run.words(ended.study, desk)
        assert any("Interrupted after 2 passes" in text for text, _ in words)
        timed = [one for one in running.watch.passes if one.what != "verify"]
        assert [one.io is not None for one in timed] == [True, True]
        assert not os.listdir(place)

    def test_what_nobody_waits_for_is_dropped(self, place, desk, tmp_path):
        running = probe_run.Running(
            probe_plan.asking(small(place, quarter="no"), desk, probe_plan.look(place)).ready,
            "block",
        )
        assert running.work(lambda: running.watch.number == 2) == probe_run.Ended(True)
        assert not os.listdir(place)
        assert not os.listdir(tmp_path / "scratch")

    def test_the_disk_becomes_full(self, place, desk, tmp_path, monkeypatch):
        slow_writes(monkeypatch, 0.0, full_after=2)
        running = probe_run.Running(
            probe_plan.asking(small(place), desk, probe_plan.look(place)).ready, "block"
        )
        with pytest.raises(OutputError, match="no space is left on the file system"):
            running.work(lambda: False)
        assert not os.listdir(place)
        assert not os.listdir(tmp_path / "scratch")

    def test_another_probes_folder_is_named(self, place, desk):
        other = place / ".ckptcost-probe-0123456789abcdef"
        other.mkdir()
        assert probe_run.left_in(place) == (other.name,)
        ended = probe_run.Ended(False, left=probe_run.left_in(place))
        assert other.name in probe_run.ended_text(ended)[0]


class TestProgress:
    @pytest.fixture
    def watch(self):
        """Round 1 is over: 1 s of writing, 0.5 s until it is safe, 0.5 s of reading; round 2 is
        half written."""
        watch = probe_run.Watch()
        watch.begin_ns = 0
        watch.begin("save", 1, 10**9)
        at(watch, 10**9, [(k * 10**8, k * 10**8) for k in range(11)])
        watch.passes[-1].io = Io(0, 10**9, 15 * 10**8, 10**9, 4, 0.5, NONE, 1.0, (), ())
        watch.begin("load", 1, 10**9)
        watch.passes[-1].io = Io(2 * 10**9, 25 * 10**8, None, 10**9, 4, 0.0, NONE, 1.0, (), ())
        watch.begin("save", 2, 25 * 10**7)
        at(watch, 3 * 10**9, [(3 * 10**9 + k * 10**8, k * 25 * 10**6) for k in range(6)])
        watch.moved_bytes, watch.all_bytes = 125 * 10**6, 10**9 + 10**9 + 125 * 10**6
        return watch

    @pytest.fixture
    def running(self, watch, desk):
        one = probe_plan.request(Draft(".", "1 GB", rounds="1"), desk)
        running = probe_run.Running(probe_plan.plan_of(one, DISK), "auto")
        assert running.plan.moved_bytes == 3.75e9
        running.watch = watch
        return running

    def test_rows_and_words(self, running):
        now = probe_run.progress(running, now_ns=35 * 10**8)
        assert [row.cells[:6] for row in now.rows.rows] == [
            ("1", "save", "1 GB", "1.5 s", "0.667 GB/s", "1 s"),
            ("1", "load", "1 GB", "0.5 s", "2 GB/s", "0.5 s"),
        ]
        assert (
            now.line
            == "Writing round 2 of 2: 125 MB of 250 MB, 0.25 GB/s; about 3 s left. Esc stops."
        )
        stopping = probe_run.progress(running, stopping=True)
        assert stopping.line == "Stopping, and removing what was written ..."

    def test_the_curve_falls_to_nothing_while_it_is_not_safe(self, watch):
        chart = probe_run.curve(watch)
        assert [(band.begin, band.end, band.kind) for band in chart.bands] == [
            (0.0, 1.5, "save"),
            (2.0, 2.5, "load"),
            (3.0, 3.5, "save"),
        ]
        points = list(zip(chart.curves[0].xs, chart.curves[0].ys, strict=True))
        assert (0.5, 1e9) in [(x, round(y)) for x, y in points if y == y]
        assert (1.5, 0.0) in points
        assert [x for x, y in points if y != y] == [1.5, 2.5, 3.5]

    def test_before_the_first_pass(self, running):
        running.watch = probe_run.Watch()
        now = probe_run.progress(running)
        assert now.line == "Looking at the meters before the first save. Esc stops."
        assert not now.rows.rows


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A probe of a machine that is none, in two rounds."""
    desk, draft = Desk(), Draft("/x", "100 GB", rounds="2", quarter="no")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("scratch")))
        running = probe_run.Running(
            probe_plan.asking(draft, desk, None, "simulated").ready, "simulated"
        )
        return running.work(lambda: False), desk, draft


class TestResult:
    def test_numbers_are_those_of_the_command(self, simulated, cli, monkeypatch, tmp_path):
        monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path))
        ended, desk, draft = simulated
        words = shlex.split(probe_plan.command(draft, desk, "simulated"))
        printed = " ".join(cli(*words[1:], "-q", "--full").out.split())
        for grid in probe_run.grids(ended.study):
            assert grid.rows
            for row in grid.rows:
                assert " ".join(row.cells) in printed
        for bar in probe_run.tiers(ended.study).rows:
            assert bar.label in printed
            assert bar.text in printed
        assert [bar.label for bar in probe_run.tiers(ended.study).rows if bar.tone == "best"] == [
            "measured here"
        ]

    def test_the_scenarios_checkpoint_at_this_rate(self, simulated, cli):
        ended, desk, _ = simulated
        rate = probe_run.rates_of(ended.study)["save"]["rate"]
        here = probe_run.like_this(desk, rate, None)
        assert here.edits["tier.node_write"] == quantity(rate, "bytes_per_s")
        document = json.loads(
            cli(*shlex.split(here.command("model"))[1:], "--tier", "nas-hdd", "-f", "json").out
        )
        said = " ".join(text for text, _ in probe_run.on_the_desk(ended.study, desk))
        (bill,) = document["statements"]
        totals = bill["one_save"]["totals"]
        assert f"{duration(bill['schedule']['write_s'])} to write" in said
        assert (
            f"{number(totals['energy']['value'])} kWh, {number(totals['gpu_time_lost']['value'])}"
            " GPU-h" in said
        )
        assert f"{number(totals['cost']['value'])} USD" in said
        assert "2 TB, 15.6 GB on each of 128 nodes" in said
        assert "on tier nas-hdd it takes 10,000 s" in said

    def test_a_scenario_that_cannot_be_computed(self, simulated):
        ended, desk, _ = simulated
        wrong = replace(desk, edits={"cluster.gpus": "none"})
        assert probe_run.on_the_desk(ended.study, wrong)[0][1] == "warn"

    def test_the_catalogue_to_compare_with(self, desk):
        bars = probe_run.known_tiers(desk)
        ends = [bar.parts[0].end for bar in bars.rows]
        assert len(ends) > 8
        assert ends == sorted(ends)


def options_of(line):
    parser = argparse.ArgumentParser()
    probe_.arguments(parser)
    return parser.parse_args(shlex.split(line)[2:])


def at(watch, begin_ns, moves):
    watch.passes[-1].begin_ns, watch.passes[-1].moves = moves[0][0], moves


def stop_at(watch, number):
    """Stopped as soon as the round begins."""
    begin = watch.begin

    def stopping(what, at_number, whole_bytes):
        if at_number == number:
            watch.stop()
        begin(what, at_number, whole_bytes)

    watch.begin = stopping


def wait_for(ready):
    until_s = time.monotonic() + 10.0
    while not ready():
        assert time.monotonic() < until_s
        time.sleep(0.005)


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
