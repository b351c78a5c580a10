"""A run's metrics while it is recorded: at its end they are the report's figures, and on the way
there no counter falls."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from prometheus_tools import program, samples
from small_runs import Real, recorded
from statements import START, csv_rows, export_text, statement, with_fields
from told_meters import Told, at, energy, evaluated, said

from ckptcost.first.core.reconcile import Energy
from ckptcost.first.exports import live_metrics, metric_names
from ckptcost.first.exports.live_metrics import (
    Highest,
    LiveSample,
    _freshness,
    _of_saves,
    flavour_for,
    samples_of,
    text,
)
from ckptcost.first.jobs import live_counters
from ckptcost.first.jobs.energies import Energies, own_cpu_s
from ckptcost.first.jobs.instruments import instruments
from ckptcost.first.jobs.live_counters import (
    DomainJoules,
    FollowedLines,
    Freshness,
    LastSave,
    LiveCounters,
    Newest,
    SaveCounts,
)
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters.found import Wanted
from ckptcost.first.questions.review import of_path
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.follow import FollowedLine, follow
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.runs.summary import one_of

NASTY = 'a,"b"\n\\=1+1 <script>é日'
LENGTH_S = 360.0
FAMILIES = {
    each.sample: each
    for each in vars(live_metrics).values()
    if isinstance(each, metric_names.Family)
}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six minutes of 8 GPUs that save once a minute."""
    folder = tmp_path_factory.mktemp("runs") / "simulated"
    record(instruments("simulated", Wanted(), LENGTH_S), LENGTH_S, folder)
    return folder


def lines_of(folder: Path) -> list[FollowedLine]:
    return list(follow(folder, stop=lambda: True))


def counters_of(folder: Path, lines: Iterable[FollowedLine] | None = None) -> LiveCounters:
    counters = LiveCounters(one_of(folder).run)
    for line in lines_of(folder) if lines is None else lines:
        counters.take(line)
    return counters


def told(counters: LiveCounters, name: str = "r", highest: Highest | None = None) -> str:
    return text((highest or Highest()).kept(samples_of(counters.counters(), name)), "prometheus")


def report_of(folder: Path, host: str = "") -> dict[str, Any]:
    """Exactly what `ckptcost report -f json` would tell in its tables."""
    study = of_path(folder, host=host).study
    tables = {table.id: table.rows for table in study.tables}
    return {
        "seconds": study.question["seconds"],
        "domains": tables["domains"],
        "windows": tables.get("windows", []),
    }


def of_host(parsed: str, host: str) -> dict[str, dict[tuple[str, ...], float]]:
    """By name: values by domain and role, or by nothing."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for (name, labels), values in samples(parsed).items():
        words = dict(labels)
        if words.get("host") == host:
            ((at, value),) = values
            assert at is None, "node_exporter refuses timestamps"
            found.setdefault(name, {})[
                tuple(words[key] for key in ("domain", "role") if key in words)
            ] = value
    return found


def close(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300)


def check(parsed: str, report: dict[str, Any], host: str) -> None:
    """Raises unless the text says what the report says, of every domain that adds up or contains
    others, and no more."""
    found = of_host(parsed, host)
    domains = {
        (row["domain"], row["role"]): row for row in report["domains"] if row["role"] != "detail"
    }
    joules = {key: row["joules"] for key, row in domains.items() if row["joules"] is not None}
    theirs = found.get("ckptcost_live_metered_energy_joules_total", {})
    assert theirs.keys() == joules.keys()
    assert all(close(theirs[key], joules[key]) for key in joules)
    watts = found.get("ckptcost_live_mean_power_watts", {})
    assert {key for key, row in domains.items() if row["watts"] is not None} == watts.keys()
    assert all(close(watts[key], domains[key]["watts"]) for key in watts)
    share = found.get("ckptcost_live_energy_coverage_ratio", {})
    assert all(close(share[key], row["coverage"] or 0.0) for key, row in domains.items())
    assert close(found["ckptcost_live_measured_seconds"][()], report["seconds"])
    saves = [row for row in report["windows"] if row["of"] == "save"]
    expected = {
        "ckptcost_live_checkpoints_started_total": float(len(saves)),
        "ckptcost_live_checkpoints_failed_total": float(sum(bool(row["error"]) for row in saves)),
        "ckptcost_live_checkpoints_safe_total": float(
            sum(row["durable"] is not None and not row["error"] for row in saves)
        ),
        "ckptcost_live_stall_seconds_total": known_sum(saves, "stall"),
        "ckptcost_live_gpu_lost_seconds_total": (
            known_sum(saves, "gpu_s") if any(key[0].startswith("gpu:") for key in domains) else None
        ),
        "ckptcost_live_checkpoint_bytes_total": known_sum(saves, "bytes"),
    }
    for name, value in expected.items():
        assert close(found.get(name, {}).get(()), value), name


def known_sum(rows: list[dict[str, Any]], key: str) -> float | None:
    """Nothing known of saves that there were is not 0."""
    known = [row[key] for row in rows if row[key] is not None]
    return math.fsum(known) if known or not rows else None


def test_an_ended_run_is_told_as_the_report_tells_it(simulated):
    parsed = told(counters_of(simulated))
    check(parsed, report_of(simulated), one_of(simulated).heads[0].header.host)
    assert {
        dict(labels).get("simulated")
        for name, labels in samples(parsed)
        if name.startswith("ckptcost_live")
    } == {"true"}


def thousandfold(parsed: str) -> str:
    line = next(
        line for line in parsed.splitlines() if line.startswith("ckptcost_live_stall_seconds_total")
    )
    return parsed.replace(line, f"{line}e3")


def dropped(parsed: str) -> str:
    return "".join(
        f"{line}\n"
        for line in parsed.splitlines()
        if not ("metered_energy" in line and 'domain="gpu:3"' in line)
    )


def swapped(parsed: str) -> str:
    return (
        parsed.replace('role="part"', 'role="?"')
        .replace('role="whole"', 'role="part"')
        .replace('role="?"', 'role="whole"')
    )


def filled(parsed: str) -> str:
    """0 for what is not known."""
    return parsed + "".join(
        line.split(" ")[0].replace('domain="gpu:1"', 'domain="dram:9"') + " 0\n"
        for line in parsed.splitlines()
        if line.startswith("ckptcost_live_metered_energy") and 'domain="gpu:1"' in line
    )


@pytest.mark.parametrize("slip", [thousandfold, dropped, swapped, filled])
def test_slips_are_seen(simulated, slip: Callable[[str], str]):
    parsed = told(counters_of(simulated))
    host = one_of(simulated).heads[0].header.host
    assert slip(parsed) != parsed
    with pytest.raises(AssertionError):
        check(slip(parsed), report_of(simulated), host)


def small_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some minutes: 384 readings of the made-up machine, by which an edge is judged, are less
    than a minute and a half."""
    monkeypatch.setattr(live_counters, "MOST_VALUES", 10_000)
    monkeypatch.setattr(live_counters, "BEFORE_S", 15.0)
    monkeypatch.setattr(live_counters, "AFTER_S", 90.0)
    monkeypatch.setattr(live_counters, "_TRY_LINES", 50)


def test_generations_come_to_the_same(simulated, monkeypatch):
    """Readings that were let go are in the sums, to nine digits of what the report has from all of
    them."""
    small_generations(monkeypatch)
    counters = counters_of(simulated)
    assert counters._from_s > 120.0, "no generation took over"
    assert counters._lines.now.values < 0.7 * sum(
        len(row) for line in lines_of(simulated) for row in line.fields.get("v", ()) if row
    )
    check(told(counters), report_of(simulated), one_of(simulated).heads[0].header.host)


def test_a_late_word_begins_no_other_save(simulated, monkeypatch):
    """Of a save that was counted and let go without an end, what comes later is no save of its
    own."""
    small_generations(monkeypatch)
    lines = [endless(line) for line in lines_of(simulated)]
    late = next(
        line
        for line in lines
        if line.fields.get("window") == "save-4" and line.fields["name"] == "returned"
    )
    word = late._replace(
        fields={**late.fields, "name": "durable", "window": "save-1", "t": late.fields["t"] + 2 * S}
    )
    place = lines.index(late) + 1
    counters = counters_of(simulated, [*lines[:place], word, *lines[place:]])
    assert "save-1" in counters._left
    (host,) = counters.counters().hosts
    assert (host.saves.started, host.saves.safe) == (6, 5)


def endless(line: FollowedLine) -> FollowedLine:
    """Of the first save it is told that training goes on, and neither when it was safe nor how
    large it was."""
    if line.fields.get("window") != "save-1":
        return line
    name = line.fields["name"] if line.fields["name"] in ("begin", "returned") else "note"
    return line._replace(fields={**line.fields, "name": name, "detail": {}})


@pytest.mark.parametrize("small", [False, True], ids=["one generation", "several"])
def test_on_the_way_no_counter_falls(simulated, monkeypatch, small):
    """What is told first is held: an estimate at the edge of what was read may come down again, and
    Prometheus would count it twice."""
    if small:
        small_generations(monkeypatch)
    counters, highest, before = LiveCounters(one_of(simulated).run), Highest(), {}
    lines = lines_of(simulated)
    seen = 0
    for number, line in enumerate(lines):
        counters.take(line)
        if number % 61 == 0 or number == len(lines) - 1:
            now = samples(told(counters, highest=highest))
            for series, values in before.items():
                if series[0].endswith("_total"):
                    assert now[series][0][1] >= values[0][1], series
            seen += sum(
                now[series][0][1] > values[0][1]
                for series, values in before.items()
                if series[0].endswith("_total")
            )
            before = now
    assert seen > 100
    check(
        told(counters, highest=highest),
        report_of(simulated),
        one_of(simulated).heads[0].header.host,
    )


def test_what_was_told_is_held():
    highest = Highest()
    told = [
        [
            each.value
            for each in highest.kept(
                [
                    LiveSample(live_metrics.STALL, "{}", value),
                    LiveSample(live_metrics.POWER, "{}", value),
                ]
            )
        ]
        for value in (3.0, 2.0, math.nan, 4.0)
    ]
    assert told == [[3.0, 3.0], [3.0, 2.0], [3.0], [4.0, 4.0]]


def test_a_host_each(tmp_path):
    """The same save, told on two hosts: a figure of each, none of both together."""
    for number, host in enumerate(("node1", "node2")):
        recorded(
            tmp_path,
            seconds=30,
            host=host,
            start_ns=number * 500 * S,
            count=1 + number,
            saves=(5, 15),
        )
    parsed = told(counters_of(tmp_path))
    for host in ("node1", "node2"):
        check(parsed, report_of(tmp_path, host), host)
    assert of_host(parsed, "node1") != of_host(parsed, "node2")


def test_unknown_is_left_out_and_nothing_is_nothing(tmp_path):
    """Before any save, saves have cost 0. After one of which nobody says how long training stood,
    that is not known."""

    class NoGpu(Real):
        def __init__(self) -> None:
            super().__init__()
            self.channels = tuple(_renamed(channel) for channel in self.channels)

    def _renamed(channel: Any) -> Any:
        from dataclasses import replace

        return replace(channel, domain=channel.domain.replace("gpu", "cpu"))

    clock = VirtualClock()
    recorder = Recorder([NoGpu()], FileSink(tmp_path), clock, run_id="a" * 32, host="n")
    recorder.begin()
    recorder.run_until(8 * S)
    found = of_host(told(counters_of(tmp_path)), "n")
    assert found["ckptcost_live_stall_seconds_total"][()] == 0.0
    assert found["ckptcost_live_checkpoint_bytes_total"][()] == 0.0
    assert "ckptcost_live_gpu_lost_seconds_total" not in found
    assert "ckptcost_live_last_checkpoint_stall_seconds" not in found
    recorder.mark("begin", "a")
    recorder.run_until(9 * S)
    recorder.mark("durable", "a", by="watch", how="output")
    recorder.run_until(12 * S)
    recorder.stop()
    parsed = told(counters_of(tmp_path))
    found = of_host(parsed, "n")
    check(parsed, report_of(tmp_path), "n")
    assert "ckptcost_live_stall_seconds_total" not in found
    assert "ckptcost_live_checkpoint_bytes_total" not in found
    assert found["ckptcost_live_checkpoints_of_unknown_stall"][()] == 1.0
    assert found["ckptcost_live_last_checkpoint_length_seconds"][()] == pytest.approx(1.0, abs=0.2)
    assert found["ckptcost_live_ended"][()] == 1.0


def test_a_save_that_failed(tmp_path):
    recorder = Recorder([Real()], FileSink(tmp_path), VirtualClock(), run_id="a" * 32, host="n")
    recorder.begin()
    recorder.run_until(5 * S)
    recorder.mark("begin", "a", bytes=1000)
    recorder.run_until(7 * S)
    recorder.mark("error", "a", error="no space")
    recorder.run_until(9 * S)
    recorder.stop()
    parsed = told(counters_of(tmp_path))
    check(parsed, report_of(tmp_path), "n")
    found = of_host(parsed, "n")
    assert found["ckptcost_live_checkpoints_failed_total"][()] == 1.0
    assert found["ckptcost_live_checkpoints_finished_total"][()] == 1.0
    assert found["ckptcost_live_checkpoints_safe_total"][()] == 0.0


def test_files_of_another_run_and_bad_lines(tmp_path):
    recorded(tmp_path / "one")
    recorded(tmp_path / "two", run_id="b" * 32, seconds=40)
    lines = lines_of(tmp_path / "one")
    stray = [line._replace(part=f"stray-{line.part}") for line in lines_of(tmp_path / "two")]
    copy = [line._replace(part=f"copy-{line.part}") for line in lines]
    bad = [
        FollowedLine(lines[0].part, {}, "cut off"),
        lines[-3]._replace(fields={"k": "raw", "t": 1, "d": [0], "v": [[1.0, 2.0, 3.0]]}),
    ]
    mixed = counters_of(tmp_path / "one", [*lines, *stray, *copy, *bad])
    found = samples(told(mixed))
    assert [
        values[0][1]
        for (name, _), values in found.items()
        if name == "ckptcost_live_bad_lines_total"
    ] == [2.0]
    check(told(mixed), report_of(tmp_path / "one"), "node1")


def test_a_run_without_a_reading(tmp_path):
    recorded(tmp_path)
    parsed = told(counters_of(tmp_path, lines_of(tmp_path)[:1]))
    assert "ckptcost_live_run_info" in parsed
    assert "ckptcost_live_metered" not in parsed


def test_parts_of_a_long_recording_and_its_successor(tmp_path):
    """Several files of one recorder, then another recorder on the same clock."""
    recorded(tmp_path, seconds=60, part_bytes=6_000, saves=(5, 25, 45), stop=False)
    recorded(tmp_path, seconds=30, start_ns=70 * S, saves=(10,), wall_ns=1_767_225_670 * S)
    assert len(list(tmp_path.iterdir())) > 3
    parsed = told(counters_of(tmp_path))
    check(parsed, report_of(tmp_path), "node1")
    assert of_host(parsed, "node1")["ckptcost_live_ended"][()] == 1.0


def test_text_names_every_family_once(simulated):
    for flavour in ("prometheus", "openmetrics"):
        lines = text(
            Highest().kept(samples_of(counters_of(simulated).counters(), NASTY)), flavour
        ).splitlines()
        heads = [line.split(" ", 3)[:3] for line in lines if line.startswith("# TYPE")]
        assert len(heads) == len({tuple(head) for head in heads})
        assert (lines[-1] == "# EOF") == (flavour == "openmetrics")
    parsed = samples(told(counters_of(simulated), NASTY))
    assert {
        dict(labels)["run"]
        for name, labels in parsed
        if name in FAMILIES and name.startswith("ckptcost_live")
    } == {NASTY}
    assert len({name for name, _ in parsed if name in FAMILIES}) > 20


@pytest.mark.parametrize(
    ("accept", "flavour"),
    [
        ("", "prometheus"),
        ("*/*", "prometheus"),
        ("text/plain", "prometheus"),
        ("application/openmetrics-text; version=1.0.0", "openmetrics"),
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5,*/*;q=0.1",
            "openmetrics",
        ),
        ("text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.2", "prometheus"),
        ("application/openmetrics-text;q=0", "prometheus"),
        ("application/openmetrics-text;q=high", "prometheus"),
        (",;,;;q=,", "prometheus"),
    ],
)
def test_by_the_accept_header(accept, flavour):
    assert flavour_for(accept) == flavour


def promtool(parsed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=parsed,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_promtool_finds_nothing(simulated, tmp_path):
    recorded(tmp_path / "real")
    for parsed in (told(counters_of(simulated), NASTY), told(counters_of(tmp_path / "real"))):
        done = promtool(parsed)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "slip",
    [
        lambda parsed: parsed.replace("stall_seconds_total", "stall_seconds"),
        lambda parsed: parsed.replace("_live_measured_seconds", "_live_measuredSeconds"),
        lambda parsed: parsed.replace(
            "# TYPE ckptcost_live_stall_seconds_total counter",
            "# TYPE ckptcost_live_stall_seconds_total much",
        ),
    ],
    ids=["no _total", "camel", "no such type"],
)
def test_promtool_refuses(simulated, slip):
    parsed = told(counters_of(simulated))
    assert slip(parsed) != parsed
    assert promtool(slip(parsed)).returncode != 0


def test_a_folder_that_is_gone_is_not_asked_for(simulated, tmp_path):
    """What was read is in the counters: they do not look at files."""
    shutil.copytree(simulated, tmp_path / "copy")
    counters = counters_of(tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy")
    check(told(counters), report_of(simulated), one_of(simulated).heads[0].header.host)


def value_of(found, family):
    return next(each.value for each in found if each.family.name.endswith(family))


def test_an_age_is_never_below_zero_and_an_ended_run_does_not_record():
    ahead = list(_freshness(Freshness(5.0, -3.0, False), "{}"))
    assert (
        value_of(ahead, "age_seconds"),
        value_of(ahead, "_recording"),
        value_of(ahead, "_ended"),
    ) == (0.0, 1.0, 0.0)
    over = list(_freshness(Freshness(5.0, 1.0, True), "{}"))
    assert (value_of(over, "_recording"), value_of(over, "_ended")) == (0.0, 1.0)
    assert Freshness(5.0, 10.0, False).recording is True
    assert Freshness(5.0, 10.1, False).recording is False
    assert Freshness(5.0, None, False).recording is None
    assert Freshness(5.0, None, True).recording is False


def test_saves_of_which_nothing_is_said_cost_no_zero():
    last = LastSave(9.0, 0.0, None, math.nan)
    found = list(
        _of_saves(
            SaveCounts(started=3, finished=2, safe=1, failed=0, stalls=0, sizes=0, last=last),
            "{}",
            8.0,
        )
    )
    assert math.isnan(value_of(found, "_stall_seconds"))
    assert math.isnan(value_of(found, "_gpu_lost_seconds"))
    assert math.isnan(value_of(found, "live_checkpoint_bytes"))
    assert (
        value_of(found, "_of_unknown_stall"),
        value_of(found, "_safe"),
        value_of(found, "_failed"),
    ) == (3.0, 1.0, 0.0)
    stalls = [
        each.value for each in found if each.family.name.endswith("last_checkpoint_stall_seconds")
    ]
    assert stalls == [0.0]
    assert math.isnan(value_of(found, "last_checkpoint_length_seconds"))
    none = list(_of_saves(SaveCounts(), "{}", math.nan))
    assert (value_of(none, "_stall_seconds"), value_of(none, "live_checkpoint_bytes")) == (0.0, 0.0)
    assert math.isnan(value_of(none, "_gpu_lost_seconds"))
    assert isinstance(none[0], LiveSample)


def joules(value, covered_s, of_s):
    return DomainJoules("gpu:0", "part", "measured", value, covered_s, of_s)


def test_joules_of_stretches_add_up_and_power_is_of_the_covered_time():
    one, other, none = (
        joules(100.0, 5.0, 10.0),
        joules(50.0, 5.0, 10.0),
        joules(math.nan, 0.0, 10.0),
    )
    assert (one.mean_w, math.isnan(none.mean_w)) == (20.0, True)
    assert one.plus(other)[3:6] == (150.0, 10.0, 20.0)
    assert one.plus(other, -1.0).of_s == 0.0
    assert one.plus(none)[3:6] == (100.0, 5.0, 20.0)
    assert math.isnan(none.plus(none).joules)
    assert one.plus(None) is one


def test_saves_of_two_generations_add_up_each_for_itself():
    last, before = LastSave(2.0, 1.0, 1.0, 1.0), LastSave(1.0, 1.0, 1.0, 1.0)
    new, old = SaveCounts(*range(1, 10), last=last), SaveCounts(*range(10, 100, 10), last=before)
    assert new.after(old)[:9] == tuple(n + 10 * n for n in range(1, 10))
    assert new.after(old).last is last
    assert SaveCounts().after(old).last is before


def header(**more):
    return Header(
        **{
            "run": "r",
            "host": "h",
            "wall_ns": 1_000_000_000_000,
            "monotonic_ns": 400_000_000_000,
            "boot": "b",
            **more,
        }
    )


def test_ages_by_this_machines_clock_only_where_it_is_its_own():
    newest = Newest(header(), 410_000_000_000)
    assert newest.wall_ns == 1_010_000_000_000
    assert newest.age_s(5_000_000_000_000, 412_000_000_000, "b") == 2.0
    assert newest.age_s(1_013_000_000_000, 999_000_000_000, "another") == 3.0
    assert (
        Newest(header(boot=""), 410_000_000_000).age_s(1_013_000_000_000, 999_000_000_000, "")
        == 3.0
    )
    assert Newest(header(simulated=True), 410_000_000_000).age_s(1, 1, "b") is None


def save_and_failure():
    marks = [
        *said("begin 5, returned 7, durable 10"),
        *said("begin 12, returned 13", "bad"),
        *said("durable 13.5", "bad", detail={"error": "disk full"}),
    ]
    return evaluated(
        Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)}), for_s=40.0, marks=marks
    )


def test_a_save_that_failed_is_not_safe_and_the_last_is_the_latest():
    seen = save_and_failure()
    found = live_counters._sum_saves(
        seen.run, list(zip(seen.windows, seen.contents, strict=True)), 8.0
    )
    assert (found.started, found.finished, found.safe, found.failed, found.stalls) == (
        2,
        2,
        1,
        1,
        2,
    )
    assert (found.stall_s, found.gpu_s) == (pytest.approx(3.0), pytest.approx(24.0))
    assert found.last.over_s == pytest.approx(seen.run.wall_s(13.5))
    assert found.last.stall_s == pytest.approx(1.0)


class Half:
    """Of everything asked for, a half is covered."""

    gpus, gpu_count = Energies.gpus, Energies.gpu_count

    parts: ClassVar = {"module:0": 0, "module:1": 0, "cpu:0": 0}
    sources: ClassVar = {"module:0": SimpleNamespace(channel=SimpleNamespace(basis="measured"))}

    def __init__(self):
        self.asked = []

    def joules(self, domain, begin_s, end_s):
        self.asked.append((domain, begin_s, end_s))
        return Energy((end_s - begin_s) * 50.0, 0.0, 9e9, coverage=0.5)


def test_joules_of_half_of_the_time_and_the_power_of_now():
    half = Half()
    found = live_counters._joules(half, "module:0", 100.0, 200.0)
    assert (found.joules, found.covered_s, found.of_s, found.mean_w) == (5000.0, 50.0, 100.0, 100.0)
    assert live_counters._lately_w(half, "module:0", 100.0, 200.0) == pytest.approx(100.0)
    assert half.asked[-1] == ("module:0", 190.0, 200.0)
    assert live_counters._lately_w(half, "module:0", 195.0, 200.0) == pytest.approx(100.0)
    assert half.asked[-1] == ("module:0", 195.0, 200.0)


def test_lines_that_come_late_are_not_the_newest_and_an_old_recorders_end_is_not_the_hosts():
    lines = FollowedLines("r")
    lines.now = SimpleNamespace(feed=lambda *_: None, add=lambda *_: None, fullness=0.0)
    meters = (SimpleNamespace(name="nvml"),)
    old, new = (
        Header("r", "h", part=n, wall_ns=n * 10**12, monotonic_ns=n * 10**12, meters=meters)
        for n in (1, 2)
    )
    bare = Header("r", "h", part=3, wall_ns=3 * 10**12, monotonic_ns=3 * 10**12)
    for n, header_ in enumerate((old, new, bare)):
        lines._header(f"part{n}", header_)
    lines._line("part1", {"k": "raw", "t": 2 * 10**12 + 5})
    lines._line("part0", {"k": "raw", "t": 10**12 + 7})
    assert lines.newest["h"] == (new, 2 * 10**12 + 5)
    lines._line("part0", {"k": "end"})
    assert lines.ended["h"] is False
    lines._line("part1", {"k": "end"})
    assert lines.ended["h"] is True


ZERO = (0.0,) * 5


def focus(s):
    return csv_rows(export_text(s, "focus"))


@pytest.mark.parametrize(
    ("accept", "flavour"),
    [
        ("application/openmetrics-text;q=0.5, text/plain;q=0.5", "openmetrics"),
        ("application/openmetrics-text;q=0", "prometheus"),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.5", "prometheus"),
        ("text/html", "prometheus"),
        ("application/openmetrics-text;q=x", "prometheus"),
    ],
)
def test_who_likes_both_as_well_gets_openmetrics(accept, flavour):
    assert flavour_for(accept) == flavour


def counters_in(folder, run="a" * 32):
    counters = LiveCounters(run)
    for line in follow(folder, stop=lambda: True):
        counters.take(line)
    return counters.counters()


def test_lines_that_are_there_twice_count_once(tmp_path):
    recorded(tmp_path / "run", seconds=20)
    (one,) = counters_in(tmp_path / "run").hosts
    (file,) = (tmp_path / "run").glob("*.jsonl")
    (tmp_path / "run" / "copy.000.jsonl").write_bytes(file.read_bytes())
    (other,) = counters_in(tmp_path / "run").hosts
    assert other.saves == one.saves
    assert [each[:6] for each in other.domains] == [each[:6] for each in one.domains]


def test_a_charge_of_no_length_has_a_second():
    s = statement(
        (1.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=ZERO,
        costs=(1.0, 0.0, 0.0, 0.0, 0.0),
        rows=1,
        begin=START,
    )
    (row,) = [
        row
        for row in focus(with_fields(s, series=s.series.model_copy(update={"duration_s": [0.0]})))
        if row["x_Component"] == "gpu_wait"
    ]
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (
        "2026-10-01T00:00:00Z",
        "2026-10-01T00:00:01Z",
    )


def test_the_recorders_own_time_is_what_it_said_last():
    def cost(cpu_s, host="h", name="cost"):
        return SimpleNamespace(name=name, host=host, detail={"cpu_s": cpu_s})

    run = SimpleNamespace(
        events=[cost(1.0), cost(2.0), cost(9.0, "other"), cost(8.0, name="x"), cost(None)]
    )
    assert own_cpu_s(run, "h") == 2.0
    assert math.isnan(own_cpu_s(run, "nobody"))


def test_what_is_told_of_a_host_is_from_what_was_asked_and_from_where_the_last_generation_ended():
    node = SimpleNamespace(ticked_s=lambda: np.array([[0.0, 1.0], [99.0, 100.0]]))
    none = SimpleNamespace(ticked_s=lambda: np.empty((0, 2)))
    margin_s = live_counters.MARGIN_S
    assert live_counters._span(node, [], None) == (margin_s, margin_s, 100.0 - margin_s)
    assert live_counters._span(node, [10.0], None) == (10.0, 10.0, 100.0 - margin_s)
    assert live_counters._span(node, [10.0, 90.0], None) == (10.0, 10.0, 90.0)
    seen = live_counters._Settled(5.0, 95.0, {}, SaveCounts(), 0.0)
    assert live_counters._span(node, [], seen) == (5.0, 95.0, 100.0 - margin_s)
    assert live_counters._span(node, [10.0, 90.0], seen) == (5.0, 95.0, 95.0)
    assert live_counters._span(none, [], seen) == (5.0, 95.0, 95.0)
    assert live_counters._span(none, [], None) is None


def test_modules_are_accelerators_too():
    assert Half().gpu_count == 2.0
