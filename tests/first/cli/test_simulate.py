"""`ckptcost simulate` from the shell: formats, targets, progress, a stop in the middle, and what is
not accepted."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from whole_json import whole

from ckptcost.first.catalog.interruptions import SaidKind, read_kinds, read_trace
from ckptcost.first.errors import InputError

SCHEMA = json.loads(
    (
        Path(__file__).parents[3] / "ckptcost" / "first" / "report" / "report-2.0.schema.json"
    ).read_text("utf-8")
)
SHORT = ("-s", "llama31-405b-16k", "--set", "run.work=2 days", "--runs", "20")
THREE = (
    "--set",
    "second_tier.id=generic-pfs",
    "--set",
    "third_tier.id=nas-hdd",
    "--set",
    "policy.second_every=4",
    "--set",
    "policy.third_every=2",
)
KINDS = """\
[[kind]]
name = "preempted"
share = "30 %"
notice = "2 min"
detect = "0 s"
[[kind]]
name = "power"
rate = "1 /day"
reschedule = "1 h"
[[kind]]
name = "queue limit"
every = "12 h"
notice = "5 min"
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kinds.toml").write_text(KINDS)
    (tmp_path / "trace.csv").write_text("time_h,kind\n3,\n1.5,\n30,\n")
    return tmp_path


QUESTIONS = {
    "plain": (),
    "weibull": ("--failures", "weibull:0.7:4 h"),
    "nodes": ("--failures", "weibull-nodes:0.7"),
    "trace": ("--trace", "trace.csv"),
    "kinds": ("--kinds", "kinds.toml", "--timeline", "3"),
    "limit": ("--limit", "2.2 days", "--timeline", "0"),
    "inputs": ("--inputs", "pert"),
    "three tiers": THREE,
    "no failures": (
        "--set",
        "failures.rate=0 /1000 node-days",
        "--set",
        "failures.shared_rate=0 /day",
        "--interval",
        "1 h",
    ),
}
questions = pytest.mark.parametrize("words", QUESTIONS.values(), ids=list(QUESTIONS))


@questions
def test_text_fits_a_terminal(cli, files, words):
    done = cli("simulate", *SHORT, *words)
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert not re.search(r"\b(nan|inf|None)\b", done.out)
    assert "Goodput" in done.out


@questions
def test_json_is_valid(cli, files, words):
    done = cli("simulate", *SHORT, *words, "-f", "json")
    assert done.code == 0, done.err
    found = whole(done.out)
    jsonschema.validate(found, SCHEMA)
    assert found["kind"] == "simulation"
    assert {"outcome", "states", "kinds"} <= set(found["tables"])
    for table in found["tables"].values():
        assert all(set(row) == set(table["columns"]) for row in table["rows"])


@questions
def test_markdown_and_csv(cli, files, words):
    for form in ("md", "csv"):
        done = cli("simulate", *SHORT, *words, "-f", form)
        assert (done.code, done.err) == (0, "")
        assert not re.search(r"\b(nan|inf|None)\b", done.out)


def test_every_run_as_csv(cli):
    done = cli("simulate", *SHORT, "-f", "csv", "--table", "runs")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [int(float(row["run"])) for row in rows] == list(range(20))
    for row in rows:
        states = (
            "kept",
            "redone",
            "slowed",
            "stall_time",
            "detect",
            "reschedule",
            "init",
            "load",
            "warmup",
        )
        assert sum(float(row[f"{name}_s"]) for name in states) == pytest.approx(
            float(row["wall_s"]), rel=1e-6
        )
        assert float(row["goodput"]) == pytest.approx(
            float(row["kept_s"]) / float(row["wall_s"]), rel=1e-6
        )


def outcome(cli, *words):
    done = cli("simulate", *SHORT, *words, "-f", "json")
    assert done.code == 0, done.err
    return {row["quantity"]: row for row in whole(done.out)["tables"]["outcome"]["rows"]}


def test_targets(cli):
    p5 = outcome(cli)["goodput"]["p5"]
    assert cli("simulate", *SHORT, "--require", f"goodput.p5>={p5 * 0.999}").code == 0
    missed = cli("simulate", *SHORT, "--require", f"goodput.p5>={p5 * 1.001}")
    assert missed.code == 3
    assert "goodput.p5" in missed.out
    assert cli("simulate", *SHORT, "--budget", "usd.p95<=1").code == 3


def test_the_same_document_whatever_the_workers(shell):
    words = ("simulate", *SHORT[:-1], "8200", "--set", "run.work=4 h", "-f", "json")
    one, two = (shell(*words, "--workers", n) for n in ("1", "2"))
    assert one.returncode == 0, one.stderr
    assert one.stdout == two.stdout
    assert "workers" not in json.dumps(json.loads(one.stdout)["tool"])
    assert one.stderr == ""


def test_nothing_fails_without_failures(cli):
    found = outcome(cli, *QUESTIONS["no failures"])
    assert found["interruptions"]["mean"] == found["work redone"]["mean"] == 0
    assert found["duration of the run"]["low"] == found["duration of the run"]["high"]


def test_a_warning_in_time_loses_no_work(cli, files):
    redone = {}
    for notice in ("2 min", "1 s"):
        (files / "kinds.toml").write_text(
            f'[[kind]]\nname = "preempted"\nshare = 1\nnotice = "{notice}"\n'
        )
        redone[notice] = outcome(cli, "--kinds", "kinds.toml")["work redone"]
    assert redone["2 min"]["high"] == pytest.approx(0.0, abs=1e-3)
    assert redone["1 s"]["mean"] == outcome(cli)["work redone"]["mean"] > 3600


def test_kinds_have_their_shares_and_rates(cli, files):
    (files / "kinds.toml").write_text(KINDS)
    done = cli("simulate", *SHORT[:-1], "300", "--kinds", "kinds.toml", "-f", "json")
    counts = {row["kind"]: row["mean"] for row in whole(done.out)["tables"]["kinds"]["rows"]}
    assert counts["preempted"] / (counts["preempted"] + counts["failure"]) == pytest.approx(
        0.3, abs=0.03
    )
    days = outcome(cli, "--kinds", "kinds.toml")["duration of the run"]["mean"] / 86_400
    assert counts["power"] == pytest.approx(days, rel=0.2)


def test_the_first_run_of_a_record_is_the_record(cli, files):
    done = cli("simulate", *SHORT, "--trace", "trace.csv", "--timeline", "0", "-f", "json")
    rows = whole(done.out)["tables"]["timeline"]["rows"]
    ends = [row["start"] + row["back"] + row["trained"] + row["stall"] for row in rows]
    assert ends[:3] == pytest.approx([1.5 * 3600, 3 * 3600, 30 * 3600])


def test_timestamps_with_zones_are_one_time(cli, files):
    (files / "utc.csv").write_text(
        "timestamp\n2026-01-01T00:00:00+00:00\n2026-01-01T05:00:00+00:00\n2026-01-02T00:00:00+00:00\n"
    )
    (files / "zones.csv").write_text(
        "timestamp\n2026-01-01T19:00:00-05:00\n2026-01-01T01:00:00+01:00\n2026-01-01T05:00:00Z\n"
    )
    one, two = (
        cli("simulate", *SHORT, "--trace", name, "-f", "csv").out
        for name in ("utc.csv", "zones.csv")
    )
    assert one == two != ""


TRACES = {
    "no column": ("a,b\n1,2\n", "no column"),
    "text": ("time_h\nsoon\n", "no number"),
    "nan": ("time_h\nnan\n", "no time"),
    "infinite": ("time_h\ninf\n", "no time"),
    "negative": ("time_h\n-1\n", "no time"),
    "empty": ("", "is empty"),
    "bare": ("time_h\n", "no interruption"),
    "short row": ("time_h,kind\n1\n", "cells"),
    "long row": ("time_h\n1,2\n", "cells"),
    "huge": ("time_h\n1e400\n", "no time"),
    "no date": ("timestamp\n2026-13-01\n", "ISO 8601"),
    "kind": ("time_h,kind\n1,gremlins\n", "gremlins"),
    "only zero": ("time_h\n0\n", "ends with"),
    "mixed zones": ("timestamp\n2026-01-01T00:00:00\n2026-01-01T09:00:00+00:00\n", "zone"),
    "remarks": ("# from the pager\n# of May\ntime_h\n5\n", None),
    "remarks alone": ("# x\n", "no column"),
    "line": ("# x\ntime_h\nsoon\n", "line 3"),
    "unsorted": ("time_h\n5\n1\n3\n", None),
    "quoted": ('time_h\n"5"\n', None),
}


@pytest.mark.parametrize(("text", "said"), TRACES.values(), ids=list(TRACES))
def test_traces(cli, files, text, said):
    (files / "trace.csv").write_text(text)
    one_line(cli("simulate", *SHORT, "--trace", "trace.csv"), said)


def one_line(done, said):
    if said is None:
        assert (done.code, done.err) == (0, "")
    else:
        assert done.code == 2, done
        assert done.out == ""
        assert said in done.err
        assert "Traceback" not in done.err
        assert len(done.err.splitlines()) <= 3


def test_binary_and_missing_traces(cli, files):
    (files / "trace.csv").write_bytes(bytes(range(256)) * 20)
    for name in ("trace.csv", "none.csv", "."):
        one_line(cli("simulate", *SHORT, "--trace", name), name)


BAD_KINDS = {
    "empty": ("", "is empty"),
    "nothing": ("kind = 3\n", "[[kind]]"),
    "other table": ("[x]\ny=1\n", "x"),
    "no name": ("[[kind]]\nshare = 0.1\n", "name"),
    "shares": ('[[kind]]\nname="a"\nshare=0.6\n[[kind]]\nname="b"\nshare=0.6\n', "more than 1"),
    "over all": ('[[kind]]\nname="a"\nshare="120 %"\n', "more than all"),
    "unknown key": ('[[kind]]\nname="a"\nshare=0.1\nnotic="1 s"\n', "notic"),
    "tier 3": ('[[kind]]\nname="a"\nshare=0.1\ntier=3\n', "tier 3"),
    "tier 4": ('[[kind]]\nname="a"\nshare=0.1\ntier=4\n', "no tier"),
    "twice": ('[[kind]]\nname="a"\nshare=0.1\n[[kind]]\nname="a"\nshare=0.1\n', "two kinds"),
    "how often": ('[[kind]]\nname="a"\n', "how often"),
    "both": ('[[kind]]\nname="a"\nshare=0.1\nrate="1 /day"\n', "how often"),
    "no unit": ('[[kind]]\nname="a"\nevery=5\n', "every"),
    "zero": ('[[kind]]\nname="a"\nevery="0 s"\n', "more than 0"),
    "negative": ('[[kind]]\nname="a"\nshare=0.1\ndetect="-1 s"\n', "detect"),
    "no toml": ("[[kind", "kinds.toml"),
    "like its own": ('[[kind]]\nname="failure"\nshare=0.5\n', "failure"),
}


@pytest.mark.parametrize(("text", "said"), BAD_KINDS.values(), ids=list(BAD_KINDS))
def test_kinds_that_are_none(cli, files, text, said):
    (files / "kinds.toml").write_text(text)
    one_line(cli("simulate", *SHORT, "--kinds", "kinds.toml"), said)


BAD_WORDS = {
    "no runs": (("--runs", "0"), "--runs"),
    "negative": (("--runs", "-1"), "--runs"),
    "half": (("--runs", "1.5"), "--runs"),
    "too many": (("--runs", "1_000_000_000"), "--runs"),
    "float": (("--runs", "1e9"), "--runs"),
    "workers": (("--workers", "0"), "--workers"),
    "law": (("--failures", "weibul:0.7"), "weibull"),
    "no shape": (("--failures", "weibull"), "shape"),
    "shape": (("--failures", "weibull:0"), "shape"),
    "mean": (("--failures", "exponential:0 s"), "--failures"),
    "more": (("--failures", "weibull:1:2 h:3"), "--failures"),
    "limit": (("--limit", "5"), "--limit"),
    "limit 0": (("--limit", "0 s"), "--limit"),
    "inputs": (("--inputs", "prt"), "pert"),
    "both": (("--trace", "trace.csv", "--failures", "weibull:0.7"), "contradict"),
    "span": (("--trace-span", "1 day"), "--trace"),
    "short span": (("--trace", "trace.csv", "--trace-span", "2 h"), "--trace-span"),
    "run": (("--timeline", "20"), "--timeline"),
    "gate": (("--require", "goodput.p7>=0.5"), "p7"),
    "table": (("--table", "runs"), "csv"),
    "no kinds": (("--kinds", "none.toml"), "none.toml"),
    "interval": (("--interval", "9 days"), "longer than the run"),
}


@pytest.mark.parametrize(("words", "said"), BAD_WORDS.values(), ids=list(BAD_WORDS))
def test_words_that_are_none(cli, files, words, said):
    done = cli("simulate", *SHORT, *words)
    assert done.code == 2, done
    assert said in done.err
    assert "Traceback" not in done.err


def test_three_tiers_are_for_simulate_alone(cli):
    done = cli("model", *SHORT[:-2], *THREE)
    assert done.code == 2
    assert "three tiers" in done.err
    assert "simulate" in done.err
    ran = cli("simulate", *SHORT, *THREE, "-f", "json")
    assert ran.code == 0, ran.err


BIG = ("simulate", "-s", "llama31-405b-16k", "--runs", "200000")


def computed_s(group):
    """What the processes of a group have used of the processors."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += (int(fields[11]) + int(fields[12])) * (int(fields[2]) == group)
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_stops_it(workers):
    process = subprocess.Popen(
        [sys.executable, "-m", "ckptcost", *BIG, "--workers", workers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while computed_s(process.pid) < 1.0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Stopped early" in out or (out == b"" and err)  # what is known by then
    assert b"Traceback" not in err


def test_progress_is_shown_on_a_terminal_only(shell):
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "ckptcost", "simulate", *SHORT]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 65_536)
        except OSError:
            break
        if not more:
            break
        shown += more
    os.close(ours)
    assert b"simulating [" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert b"simulating" not in done.stdout
    assert shell("simulate", *SHORT).stderr == ""


def test_a_record_is_the_same_in_every_unit(tmp_path, monkeypatch):
    """1.5 h, 3 h and 30 h: whatever the column is called; one mean gap follows the last where no
    span is said."""
    said = {
        "time_s": "10800\n5400\n108000",
        "time_min": "180\n90\n1800",
        "time_h": "3\n1.5\n30",
        "time_days": "0.125\n0.0625\n1.25",
    }
    for column, rows in said.items():
        (tmp_path / "trace.csv").write_text(f"{column}\n{rows}\n")
        trace = read_trace(str(tmp_path / "trace.csv"), None)
        assert trace.times_s == pytest.approx((5400.0, 10_800.0, 108_000.0)), column
        assert (trace.span_s, trace.kinds) == (pytest.approx(108_000.0 + 108_000.0 / 3), ()), column
    # a timestamp counts from the first in time, which need not be the first row; without a zone a
    # day has 24 hours, even in March
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    (tmp_path / "trace.csv").write_text(
        "timestamp,kind\n2026-03-30T00:00:00,b\n2026-03-28T12:00:00,a\n2026-03-29T12:00:00,\n"
    )
    trace = read_trace(str(tmp_path / "trace.csv"), "2 days")
    monkeypatch.delenv("TZ")
    time.tzset()
    assert trace.times_s == (0.0, 86_400.0, 129_600.0)
    assert (trace.kinds, trace.span_s) == (("a", "", "b"), 172_800.0)
    with pytest.raises(InputError, match="--trace-span"):
        read_trace(
            str(tmp_path / "trace.csv"), "36 h"
        )  # as long as its last time: the record would repeat upon itself


def test_every_word_of_a_kind_is_read(tmp_path):
    (tmp_path / "kinds.toml").write_text(
        '[[kind]]\nname = "a"\nshare = "30 %"\ntier = 2\nnotice = "2 min"\ndetect = "1'
        ' s"\nreschedule = "2 s"\ninit = "3 s"\nwarmup = "4 s"\n[[kind]]\nname = "b"\nrate = "1'
        ' /day"\n[[kind]]\nname = "c"\nevery = "12 h"\n'
    )
    nothing = (None, None, None, None)
    assert read_kinds(str(tmp_path / "kinds.toml")) == (
        SaidKind("a", 0.3, None, None, 2, 120.0, 1.0, 2.0, 3.0, 4.0),
        SaidKind("b", None, pytest.approx(1 / 86_400), None, 1, 0.0, *nothing),
        SaidKind("c", None, None, 43_200.0, 1, 0.0, *nothing),
    )


def test_beside_the_closed_form(cli):
    """What `model` says of the same run, and by how many standard errors the runs are off it, with
    the sign."""
    words = ("-s", "llama31-405b-16k", "--set", "run.work=2 days")
    for seed in ("1", "2", "3"):
        done = cli("simulate", *words, "--runs", "20", "--seed", seed, "-f", "json")
        document = whole(done.out)
        rows = {row["quantity"]: row for row in document["tables"]["outcome"]["rows"]}
        model = whole(cli("model", *words, "-f", "json").out)
        values = model["tables"]["cases"]["rows"][0]
        for name, column in (
            ("goodput", "goodput"),
            ("energy added", "run_energy_kwh"),
            ("GPU-hours lost", "run_gpu_hours"),
        ):
            assert rows[name]["closed_form"] == pytest.approx(values[column], rel=1e-9), name
        for row in rows.values():
            if row.get("closed_form") is not None:
                assert row["errors_off"] * row["error"] == pytest.approx(
                    row["mean"] - row["closed_form"], rel=1e-6, abs=1e-9
                )
        # nothing but redone work can be this near to it: work redone is what failures lose of it
        redone = rows["work redone"]
        assert abs(redone["errors_off"]) < 5
        said = " ".join(document["findings"])
        assert ("above it" in said) == (rows["duration of the run"]["errors_off"] >= 0)
        assert ("below it" in said) == (rows["duration of the run"]["errors_off"] < 0)


def test_a_field_that_is_too_long_for_a_table(cli, tmp_path):
    for text in ("time_h,x\n1," + "y" * 200_000 + "\n", "time_h," + "y" * 200_000 + "\n1,2\n"):
        file = tmp_path / "trace.csv"
        file.write_text(text)
        done = cli("simulate", "--trace", str(file))
        assert done.code == 2
        assert "is no table" in done.err


def test_a_home_of_somebody_elses_is_no_home(cli, monkeypatch, tmp_path):
    import pathlib

    monkeypatch.delenv("CKPTCOST_USER")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    plain = pathlib.Path.is_dir

    def refused(self):
        if self == pathlib.Path.home():
            raise PermissionError(13, "Permission denied")
        return plain(self)

    monkeypatch.setattr(pathlib.Path, "is_dir", refused)
    assert cli("simulate", "-s", "small-8b", "--runs", "2").code == 0


def test_one_run_has_no_error_and_says_no_nan(cli):
    done = cli("simulate", "-s", "small-8b", "--runs", "1")
    assert done.code == 0
    assert "nan" not in done.out
    assert "one run" in done.out
