"""The list of runs and one run: the figures of the command line, whatever lies in the folders, and
nothing deleted but ours."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from math import nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from nobody import as_nobody
from recorded_runs import LARGE_RUN, SMALL_RUN, fill, simulated_run
from small_runs import WALL_NS, recorded

from ckptcost.first.core import counters
from ckptcost.first.errors import CkptcostError, InputError, MeterUnavailable, OutputError
from ckptcost.first.jobs import power_trace
from ckptcost.first.report.studies.runs import list_of
from ckptcost.first.runs import store, summary
from ckptcost.first.runs.clocks import S
from ckptcost.first.tui import run_reader
from ckptcost.first.tui.screens import run_traces, runs_entries
from ckptcost.first.tui.screens.recorded_run import RUNS, KeptRuns, RecordedRun, RunSource, read_run
from ckptcost.first.tui.screens.run import CHECKPOINTS, RunScreen
from ckptcost.first.tui.study_grids import grid_of
from ckptcost.first.tui.widgets.rows import matches


def never():
    return False


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("made")
    simulated_run(base / "small", 20e9, SMALL_RUN)
    simulated_run(base / "large", 100e9, LARGE_RUN, after_s=3600)
    return base


@pytest.fixture
def home(tmp_path, monkeypatch, made):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    return fill(tmp_path / "runs", made)


def listed(within=None, learn=True):
    found = {}
    reading = runs_entries.read(
        within, never, lambda entries, so_far: found.update({e.key: e for e in entries})
    )
    if learn:
        runs_entries.learn(
            list(found.values()), never, lambda entry: found.update({entry.key: entry})
        )
    return runs_entries.latest_first(found.values()), reading


def at(entries, run_id):
    return next(entry for entry in entries if entry.source.run.startswith(run_id))


def test_the_list_is_the_command_lines_table(home):
    entries, _ = listed()
    summaries = [summary.summary_of(kept) for kept in store.list_runs().runs]
    said = list_of(summaries, [], store.home())
    assert runs_entries.study_of_runs(entries, [], None) == said
    grid = runs_entries.grid_of_runs(entries)
    assert [head.id for head in grid.heads] == list(runs_entries.SHOWN)
    for row, entry, run in zip(grid.rows, entries, said.tables[0].rows, strict=True):
        cells = dict(zip(runs_entries.SHOWN, row.cells, strict=True))
        assert (row.key, cells["id"]) == (f"{entry.kept.path}:{run['run']}", run["id"])
        assert cells["saves"] == str(entry.told.saves)


def test_what_readings_tell_is_the_reports(cli, home):
    entries, _ = listed()
    for entry in entries:
        report = json.loads(cli("report", str(entry.kept.path), "-f", "json").out)
        windows = report["tables"]["windows"]["rows"]
        assert list(entry.learned.findings) == report["findings"]
        assert entry.learned.written == sum(row["bytes"] for row in windows)
        assert entry.learned.stall == pytest.approx(
            sum(row["stall"] for row in windows) / len(windows)
        )
        parts = [
            row["joules"] for row in report["tables"]["domains"]["rows"] if row["role"] == "part"
        ]
        assert entry.learned.joules == pytest.approx(sum(parts))


def test_details_are_those_of_show_and_report(cli, home):
    entries, _ = listed()
    entry = at(entries, "c0ffee")
    said = [text for text, _ in runs_entries.details(entry)]
    show = json.loads(cli("runs", "show", "c0ffee", "-f", "json").out)
    assert [*show["about"], *show["findings"], *entry.learned.findings] == said
    assert any(
        "python train.py --steps 100 --config configs/llama-8b.yaml" in text for text in said
    )
    unread = runs_entries.details(entry._replace(told=None, learned=None))
    assert not any("0 checkpoint" in text for text, _ in unread), "not counted is not none"


def test_words_marks_and_empty_lists(home):
    entries, _ = listed(learn=False)
    rows = runs_entries.grid_of_runs(entries).rows

    def found(words):
        return [row.cells[1] for row in rows if matches(row, words)]

    assert found("GPU-07 train") == ["c0ffee00"]
    assert found("cut short") == ["dead0000"]
    assert found("gpu-09") == []
    marked = runs_entries.grid_of_runs(entries, [entries[1].key])
    assert [row.marked for row in marked.rows] == [False, True, False, False]
    row = dict(zip([head.id for head in marked.heads], marked.rows[0].cells, strict=True))
    assert (row["saves"], row["stall"], row["written"], row["joules"]) == ("-", "-", "-", "-")


def test_damaged_folders_are_named_and_cost_nobody_else(home):
    (home / "foreign").mkdir()
    (home / "foreign" / "data.jsonl").write_text('{"text": "hello"}\n')
    broken = home / "20260103T000000Z-gpu-08-dead0000" / "gpu-08.000.jsonl"
    broken.write_bytes(broken.read_bytes()[:-20])
    entries, reading = listed()
    assert len(entries) == 4
    assert len(reading.unread) == 1
    assert "foreign" in runs_entries.unread_text(reading.unread)
    assert any(
        tone == "warn" and "cut off" in text
        for text, tone in runs_entries.details(at(entries, "dead"))
    )


def test_without_rights(home):
    home.parent.chmod(0o755)
    for folder in (home.parent, *home.parent.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (home / "20260102T000000Z-gpu-07-c0ffee00").chmod(0o700)
    said = as_nobody(
        lambda: [reading.unread for entries, reading in [listed(learn=False)] if len(entries) == 3]
    )
    assert "Permission denied" in said
    home.chmod(0o700)
    assert "cannot be listed" in as_nobody(lambda: listed(learn=False))


def test_hundreds_come_piece_by_piece_and_can_be_stopped(tmp_path, monkeypatch, home):
    source = home / "20260103T000000Z-gpu-08-dead0000"
    many = tmp_path / "many"
    for number in range(300):
        shutil.copytree(source, many / f"run-{number:03d}")
    pieces = []
    runs_entries.read(many, never, lambda entries, so_far: pieces.append((len(entries), so_far)))
    assert len(pieces) > 1
    assert sum(found for found, _ in pieces) == 300
    assert pieces[-1][1] == "300 of 300 folders, 300 runs so far"
    seen = []
    runs_entries.read(many, lambda: len(seen) > 2, lambda entries, so_far: seen.append(so_far))
    assert len(seen) == 3


def test_a_word_opens_what_it_stands_for(home, tmp_path):
    for text in ("c0ffee", str(home / "20260102T000000Z-gpu-07-c0ffee00"), "20260102T"):
        found, folder = runs_entries.opened(text)
        assert ([each.kept.run[:6] for each in found], folder) == (["c0ffee"], None)
    assert runs_entries.opened("last")[0][0].kept.run.startswith("dead")
    assert runs_entries.opened(str(home)) == ([], home)
    (tmp_path / "nothing").mkdir()
    for text in ("nowhere", str(tmp_path / "nothing"), "", "no/such/path"):
        with pytest.raises(InputError):
            runs_entries.opened(text)


def test_two_runs_of_one_folder_are_two_rows(home, tmp_path):
    both = tmp_path / "job"
    recorded(both, 12, run_id="a" * 32)
    recorded(both, 12, run_id="b" * 32, wall_ns=WALL_NS + 60 * S)
    entries, _ = listed(both)
    assert [entry.source.run[0] for entry in entries] == ["b", "a"]
    assert [entry.source.word for entry in entries] == ["b" * 32, "a" * 32]
    assert read_run(entries[0].source).study.question["run"] == "b" * 32


# deleting


def test_a_run_is_deleted_with_its_folder(home):
    entries, _ = listed(learn=False)
    removal = runs_entries.removal_of(at(entries, "c0ffee"))
    assert "1 file, 41.4 kB" in removal.text
    said = runs_entries.remove(removal)
    assert "Deleted" in said
    assert not removal.folder.exists()
    assert len(listed(learn=False)[0]) == 3


def test_what_is_not_the_runs_stays(home):
    folder = home / "20260102T000000Z-gpu-07-c0ffee00"
    (folder / "notes.txt").write_text("mine")
    precious = home.parent / "precious.jsonl"
    precious.write_text("mine")
    (folder / "gpu-09.000.jsonl").symlink_to(precious)
    entries, _ = listed(learn=False)
    removal = runs_entries.removal_of(at(entries, "c0ffee"))
    assert "2 other things" in removal.text
    assert "stays" in runs_entries.remove(removal)
    assert sorted(path.name for path in folder.iterdir()) == ["gpu-09.000.jsonl", "notes.txt"]
    assert precious.read_text() == "mine"


def test_links_and_strangers_are_refused(home, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere" / "job"
    recorded(elsewhere, 12, run_id="b" * 32)
    (home / "link").symlink_to(elsewhere)
    entries, _ = listed(learn=False)
    with pytest.raises(InputError, match="is a link"):
        runs_entries.removal_of(at(entries, "bbbb"))
    with pytest.raises(InputError, match="not among your runs"):
        runs_entries.removal_of(listed(elsewhere.parent, learn=False)[0][0])
    single, _ = runs_entries.opened(str(elsewhere / "node1.000.jsonl"))
    with pytest.raises(InputError, match="single file"):
        runs_entries.removal_of(single[0])
    assert list(elsewhere.iterdir())
    monkeypatch.setattr(summary, "_state", lambda lasts, now_ns: summary.RECORDING)
    with pytest.raises(InputError, match="still being recorded"):
        runs_entries.removal_of(listed(learn=False)[0][0])


def test_a_folder_that_became_a_link_is_not_followed(home, tmp_path):
    removal = runs_entries.removal_of(at(listed(learn=False)[0], "c0ffee"))
    aside = tmp_path / "aside"
    removal.folder.rename(aside)
    removal.folder.symlink_to(aside)
    with pytest.raises(OutputError, match="0 of 1 files deleted"):
        runs_entries.remove(removal)
    assert len(list(aside.iterdir())) == 1


# one run


def source_of(path, saves=3):
    (kept,) = store.kept_at(path)
    return RunSource(
        str(path), kept.run, sum(head.file.stat().st_size for head in kept.heads), True, saves
    )


def test_a_run_is_what_report_prints(made):
    source = source_of(made / "small")
    view, screen = read_run(source), RunScreen(source)
    first = min((table for table in view.study.tables if table.rows), key=screen.order)
    assert first.id == CHECKPOINTS
    assert [row.key for row in grid_of(first).rows] == view.names
    assert view.command == screen.command_line() == f"ckptcost report {made / 'small'}"
    assert view.study.title in screen.head(view, view.study)


def test_hosts_one_after_another(cli, tmp_path):
    folder = tmp_path / "two"
    recorded(folder, 30, run_id="e" * 32, host="node1")
    recorded(folder, 30, run_id="e" * 32, host="node2", count=2)
    source = source_of(folder)
    first = read_run(source)
    second = read_run(source, first.next_host)
    assert (first.host, second.host, second.next_host) == ("node1", "node2", "node1")
    assert "(2 of 2)" in RunScreen(source).head(second, second.study)
    assert (
        json.loads(cli("report", str(folder), "--host", "node2", "-f", "json").out)["findings"]
        == second.study.findings
    )
    assert second.command.endswith("--host node2")


def test_traces_hold_the_joules(made):
    view = read_run(source_of(made / "large"))
    titles = [chart.title for chart in view.traces.charts]
    assert titles[0] == "GPUs, W"
    assert any(title.startswith("storage, bytes written") for title in titles)
    domains = next(table for table in view.study.tables if table.id == "domains").rows
    gpus = sum(row["joules"] for row in domains if row["domain"].startswith("gpu:"))
    curve = view.traces.charts[0].curves[0]
    edge_s, drawn_j = view.traces.x_range[0], 0.0
    for middle_s, mean_w in zip(curve.xs, curve.ys, strict=True):
        drawn_j += 2 * (middle_s - edge_s) * mean_w
        edge_s = 2 * middle_s - edge_s
    assert edge_s == pytest.approx(view.traces.x_range[1])
    assert drawn_j == pytest.approx(gpus, rel=0.005)
    inside = zip(curve.lows, curve.ys, curve.highs, strict=True)
    assert all(low <= mean <= high for low, mean, high in inside), "every point has its range"
    written = next(chart for chart in view.traces.charts if "written" in chart.title).curves[0]
    assert sum(written.ys) * (written.xs[1] - written.xs[0]) == pytest.approx(300e9, rel=0.01)
    assert [band.label for band in view.traces.bands] == view.names


def test_traces_are_thin_and_gaps_are_gaps(made):
    seen = read_run(source_of(made / "small")).seen
    edges = np.linspace(0.0, 100.0, 11)
    lost = seen.energies.series(seen.energies.sources["gpu:0"].place)
    lost = lost._replace(
        value=np.where((lost.t_s > 40) & (lost.t_s < 60), 5.0, lost.value)
    )  # it fell: a reset
    from ckptcost.first.core import depth

    rates = power_trace.rates_of(depth.growth(lost, None, counters.math.inf), edges)
    assert np.isfinite(rates[0])
    assert rates.min() >= 0, "a reset is no negative power"
    beyond = power_trace.rates_of(depth.growth(lost), np.linspace(500.0, 600.0, 3))
    assert np.isnan(beyond).all(), "nothing is known after the end"


def test_zooming_stays_within_the_run(made):
    whole = read_run(source_of(made / "small")).traces
    first_s, last_s = whole.x_range
    closer = whole
    for _ in range(30):
        closer = run_traces.zoomed(closer, whole, 1)
    assert closer.x_range[1] - closer.x_range[0] == pytest.approx(3 * run_traces.LEAST_S)
    for _ in range(60):
        closer = run_traces.zoomed(closer, whole, -1)
    assert closer.x_range == pytest.approx((first_s, last_s))
    right = run_traces.panned(run_traces.zoomed(whole, whole, 3), whole, 99)
    assert right.x_range[1] == pytest.approx(last_s)
    name = whole.bands[1].label
    marked = run_traces.pointed(whole, name)
    assert [rule.at for rule in marked.rules] == [whole.bands[1].begin]
    near = run_traces.zoomed(run_traces.zoomed(marked, whole, 5), whole, 3)
    assert near.x_range[0] < whole.bands[1].begin < near.x_range[1]
    assert run_traces.pointed(marked, "nothing").rules == []
    assert len(run_traces.fitting(whole, 6).charts) == 1


def test_what_changed_on_the_disk_is_read_anew(tmp_path):
    recorded(tmp_path / "job", 12, run_id="a" * 32, saves=(5,))
    source = source_of(tmp_path / "job")
    first = RUNS.load(source)
    assert len(first.names) == 1
    assert RUNS.load(source) is first, "the same files cost nothing again"
    shutil.rmtree(tmp_path / "job")
    recorded(tmp_path / "job", 30, run_id="a" * 32, saves=(5, 15))
    assert len(RUNS.load(source).names) == 2


def test_the_runs_that_were_looked_at_last_stay(tmp_path):
    runs = KeptRuns()
    sources = []
    for letter in "abcd":
        recorded(tmp_path / letter, 12, run_id=letter * 32, saves=(5,))
        sources.append(source_of(tmp_path / letter))
    first, second, third, fourth = sources
    kept = [runs.load(source) for source in (first, second, third)]
    assert runs.load(first) is kept[0]
    runs.load(fourth)
    assert runs.find(second) is None, "it was looked at longest ago"
    assert (runs.find(first), runs.find(third)) == (kept[0], kept[2])
    with pytest.raises(run_reader.GivenUp), runs._reading:
        runs.load(second, stopped=lambda: True)


def test_a_run_without_a_reading_says_so(tmp_path):
    recorded(tmp_path / "job", 12, run_id="a" * 32)
    file = tmp_path / "job" / "node1.000.jsonl"
    file.write_bytes(file.read_bytes().split(b"\n")[0] + b"\n")
    with pytest.raises(MeterUnavailable, match="holds no readings"):
        read_run(source_of(tmp_path / "job"))


# in a process of its own


@pytest.fixture
def apart():
    reader = run_reader.Apart()
    yield reader
    reader.close()


def test_a_heavy_run_is_read_elsewhere_with_the_same_result(made, apart):
    source = source_of(made / "small")
    here, there = (
        read_run(source),
        apart.ask(read_run, source, weight=run_reader.SMALL + 1),
    )
    assert apart._worker is not None
    assert there.study == here.study
    assert there.traces.charts[0].curves[0].ys == pytest.approx(here.traces.charts[0].curves[0].ys)
    worker = apart._worker
    with pytest.raises(CkptcostError, match="No such file"):
        apart.ask(read_run, source._replace(path="/nowhere"), weight=run_reader.SMALL + 1)
    with pytest.raises(TypeError, match="positional"):
        apart.ask(read_run, 3, 4, 5, 6, weight=run_reader.SMALL + 1)
    assert apart._worker is worker, "an error ends nothing"


def test_a_heavy_run_tells_how_far_it_is(made, apart):
    heard = []
    source = source_of(made / "small")._replace(bytes=run_reader.SMALL + 1)
    apart.ask(
        read_run, source, weight=source.weight, tell=lambda what, share: heard.append((what, share))
    )
    assert apart._worker is not None
    shares = [share for what, share in heard if what == "working out what its saves took"]
    assert len(shares) == 3
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_giving_up_ends_the_process_at_once(apart):
    begun = threading.Event()

    def stopped():
        begun.set()
        return apart._worker is not None and time.monotonic() - since_s > 0.3

    since_s = time.monotonic()
    with pytest.raises(run_reader.GivenUp):
        apart.ask(time.sleep, 60.0, weight=run_reader.SMALL + 1, stopped=stopped)
    assert time.monotonic() - since_s < 10
    assert apart._worker is None
    assert begun.is_set()


def test_a_process_that_was_killed_is_an_error_and_a_new_one_is_started(apart):
    assert apart.ask(os.getpid, weight=run_reader.SMALL + 1) != os.getpid()
    apart._worker._process.kill()
    apart._worker._process.wait()
    assert apart.ask(os.getpid, weight=run_reader.SMALL + 1) != os.getpid()
    with pytest.raises(CkptcostError, match="has ended"):
        apart.ask(os._exit, 3, weight=run_reader.SMALL + 1)


def test_readings_of_large_runs_are_left_until_asked_for(home, monkeypatch):
    monkeypatch.setattr(runs_entries, "READ_BYTES", 1000)
    entries, _ = listed()
    assert all(entry.told is not None and entry.learned is None for entry in entries)
    assert all("Enter reads them" in entry.why for entry in entries)
    monkeypatch.setattr(runs_entries, "MARKS_BYTES", 1000)
    entries, _ = listed()
    assert all(entry.told is None for entry in entries)
    asked = []
    runs_entries.learn([entries[0]], never, asked.append, asked=True)
    assert asked[0].told is not None


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
