"""`ckptcost serve-metrics`: once and for ever, what it says of itself, and how it ends."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_tools import samples
from small_runs import recorded
from whole_json import whole


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "kept"


@contextmanager
def served(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and where it says that it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ckptcost.first", "serve-metrics", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(
            r"ckptcost: metrics of (\S+) are at (http://\S+/metrics); Ctrl-C ends it\n", line
        )
        assert found, line
        yield process, found[2]
    finally:
        process.kill()
        process.communicate(timeout=30)


def test_once_is_the_report(cli, place):
    """Joules, seconds and saves, to nine digits; and no path of ours."""
    cli("measure", "--meters", "simulated", "--for", "2 min", "--record", "kept/demo")
    done = cli("serve-metrics", "last", "--once")
    assert done.code == 0, done
    report = whole(cli("report", "last", "-f", "json").out)
    joules = {
        row["domain"]: row["joules"]
        for row in report["tables"]["domains"]["rows"]
        if row["role"] != "detail"
    }
    found = samples(done.out)
    theirs = {
        dict(labels)["domain"]: values[0][1]
        for (name, labels), values in found.items()
        if name == "ckptcost_live_metered_energy_joules_total"
    }
    assert theirs == pytest.approx(joules, rel=1e-9)
    stalls = [row["stall"] for row in report["tables"]["windows"]["rows"]]
    (stalled,) = (
        values[0][1]
        for (name, _), values in found.items()
        if name == "ckptcost_live_stall_seconds_total"
    )
    assert stalled == pytest.approx(sum(stalls), rel=1e-9)
    assert str(place) not in done.out


def test_once_into_a_file(cli, place, tmp_path):
    recorded(place / "real")
    done = cli("serve-metrics", "real", "--once", "-o", "ckptcost.prom")
    assert (done.code, done.out) == (0, "")
    written = (tmp_path / "ckptcost.prom").read_text()
    steady = re.compile(r"^ckptcost_live_last_reading_age.*$", re.M)
    assert steady.sub("", written) == steady.sub(
        "", cli("serve-metrics", "aaa", "--dir", "kept/real", "--once").out
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nothing",), "no runs"),
        (("nowhere/run",), "no such file or folder"),
        (
            ("last", "--once", "--port", "0"),
            "--once: nothing is listened on. leave out --port and --address",
        ),
        (("last", "-o", "x"), "-o: belongs to --once"),
        (("last", "--dir", "nowhere"), "no such folder"),
        (("kept/real", "--port", "99999"), "--port 99999: no port has this number"),
        (("kept/real", "--address", "node7"), "--address: no IP address: 'node7'. e.g. 127.0.0.1"),
        (("kept/real", "--port", "many"), "argument --port: invalid int value"),
    ],
)
def test_wrong_input(cli, place, tmp_path, words, why):
    recorded(place / "real")
    if words[0] == "nothing":
        shutil.rmtree(place)
    done = cli("serve-metrics", *words)
    assert (done.code, done.out) == (2, "")
    assert why in done.err
    assert done.err.count("\n") == 1


def test_two_runs_in_a_folder(cli, place):
    recorded(place / "both")
    recorded(place / "both", run_id="b" * 32)
    done = cli("serve-metrics", "kept/both", "--once")
    assert done.code == 2
    assert "choose one by its id" in done.err
    assert 'run_id="bbbb' in cli("serve-metrics", "bbbb", "--once").out


def test_a_port_in_use(cli, place):
    recorded(place / "real")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = cli("serve-metrics", "real", "--port", str(port))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"ckptcost: --port {port}: cannot be listened on (")
    assert "give another, or 0 for any that is free" in done.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_served_until_it_is_ended(place, number, code):
    recorded(place / "real")
    with served("last") as (process, url):
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert "ckptcost_live_metered_energy_joules_total{" in answer.read().decode()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert process.returncode == code
        assert out == ""
        assert err == ("ckptcost: interrupted\n" if code else "")


def test_whoever_opens_it_to_others_is_told(place):
    recorded(place / "real")
    with served("last", "--address", "0.0.0.0") as (process, url):
        port = url.removesuffix("/metrics").rpartition(":")[2]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        assert (
            err
            == f"ckptcost: anybody who reaches port {port} of 0.0.0.0 can read this run, under any"
            " name\n"
        )


def test_help_fits_a_terminal(cli):
    done = cli("serve-metrics", "--help")
    assert done.code == 0
    assert max(len(line) for line in done.out.splitlines()) <= 80
