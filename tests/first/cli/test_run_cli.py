"""`ckptcost run`, with real commands: nobody in the pipeline may notice that it is there, and the
run is complete whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ckptcost.first.core.phases import windows_of
from ckptcost.first.jobs.command import PASSED_ON
from ckptcost.first.runs.reader import load

CKPTCOST = [sys.executable, "-m", "ckptcost.first"]
SAVING = """
import os, sys, time
from pathlib import Path
folder, saves, sync = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "sync"
for n in range(1, saves + 1):
    time.sleep(float(sys.argv[4]))
    part = folder / f"step_{n}.pt.tmp"
    with part.open("wb") as file:
        for _ in range(8):
            file.write(os.urandom(1 << 20))
        if sync:
            file.flush()
            os.fsync(file.fileno())
    part.rename(folder / f"step_{n}.pt")
time.sleep(0.5)
"""


@pytest.fixture
def environ(tmp_path):
    return {
        **os.environ,
        "CKPTCOST_RUNS": str(tmp_path / "runs"),
        "CKPTCOST_USER": str(tmp_path / "user"),
    }


@pytest.fixture
def wrapped(environ):
    def call(*words, flags=("--settle", "0 s"), **more):
        return subprocess.run(
            [*CKPTCOST, "run", *flags, "--", *words],
            capture_output=True,
            timeout=60,
            env=environ,
            check=False,
            **more,
        )

    return call


def only_run(environ) -> Path:
    (found,) = Path(environ["CKPTCOST_RUNS"]).iterdir()
    return found


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 255])
def test_the_exit_code_is_the_commands(wrapped, code):
    assert wrapped("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_command_that_a_signal_ends_ends_us_by_the_same(wrapped, by):
    assert wrapped("sh", "-c", f"kill -{int(by)} $$").returncode == -by


def test_what_a_shell_says_of_commands_that_are_none(wrapped, tmp_path, environ):
    (tmp_path / "plain").write_text("no program")
    missing, refused = wrapped("no-such-command-here"), wrapped(str(tmp_path / "plain"))
    assert (missing.returncode, refused.returncode) == (127, 126)
    assert missing.stderr == b"ckptcost: no-such-command-here: no such command\n"
    assert b"Permission denied" in refused.stderr


def test_its_streams_are_its_own_to_the_byte(wrapped):
    program = (
        "import sys; sys.stdout.buffer.write(bytes(range(256)) * 999);"
        " sys.stderr.write('err\\r\\n'); print(sys.stdin.read())"
    )
    done = wrapped(
        sys.executable, "-c", program, input=b"told", flags=("--quiet", "--settle", "0 s")
    )
    assert done.stdout == bytes(range(256)) * 999 + b"told\n"
    assert done.stderr == b"err\r\n"


def test_in_a_pipe_the_last_line_leads_back_to_the_run(wrapped, environ):
    done = wrapped("true")
    (run,) = Path(environ["CKPTCOST_RUNS"]).iterdir()
    name = load(run).id[:8]
    nothing, line = done.stderr.decode().splitlines()
    assert nothing.startswith("ckptcost: No checkpoint was found: the job's own writing")
    assert line == f"ckptcost: kept as run {name}; all of it: ckptcost report {name}"
    assert wrapped("true", flags=("--quiet", "--settle", "0 s")).stderr == b""


@pytest.mark.parametrize(
    ("script", "flags", "said"),
    [
        ("exit 3", ("--watch", "nowhere"), ["exit code 3", "never came to be"]),
        ("kill -9 $$", ("--watch", "."), ["137, that is signal 9", "nothing large enough"]),
        ("true", (), ["No checkpoint was found: the job's own writing"]),
    ],
)
def test_a_job_without_checkpoints_is_told_why_none_was_found(
    wrapped, tmp_path, script, flags, said
):
    report = tmp_path / "cost.json"
    told = ("-q", "--settle", "0 s", "-f", "json", "-o", str(report), *flags)
    wrapped("sh", "-c", script, flags=told, cwd=tmp_path)
    findings = " ".join(json.loads(report.read_text("utf-8"))["findings"])
    assert [words for words in said if words not in findings] == []
    assert "ckptcost.window(" in findings
    assert ("did not end well" in findings) == (script != "true")


def test_quiet_is_for_stderr_and_the_report_is_written_all_the_same(wrapped, tmp_path):
    report = tmp_path / "cost.json"
    done = wrapped("true", flags=("-q", "--settle", "0 s", "-f", "json", "--output", str(report)))
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(report.read_text("utf-8"))["kind"] == "measurement"


def test_nothing_of_ours_is_blocked_or_ignored_in_the_command(wrapped):
    told = dict(
        line.split(":\t")
        for line in (
            wrapped("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status").stdout.decode().splitlines()
        )
    )
    assert int(told["SigBlk"], 16) == 0
    ignored = int(told["SigIgn"], 16)
    assert not [
        number
        for number in (*PASSED_ON, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
        if ignored >> (number - 1) & 1
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_to_us_reaches_the_command_which_decides(environ, number, tmp_path):
    program = (
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda *_: (print('got it', flush=True), sys.exit(9)))\n"
        "print('ready', flush=True)\n"
        "signal.pause()"
    )
    words = [*CKPTCOST, "run", "--settle", "0 s", "--", sys.executable, "-c", program]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        out, _ = running.communicate(timeout=30)
    assert out == "got it\n"
    assert running.returncode == 9
    assert load(only_run(environ)).ended


def test_killed_by_force_it_leaves_the_command_alone_and_a_run_that_can_be_read(environ, tmp_path):
    program = "print('ready', flush=True); input(); print('done', flush=True)"
    words = [*CKPTCOST, "run", "--", sys.executable, "-c", program]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 30
        while load(only_run(environ)).duration_s <= 0.5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        running.kill()
        running.wait(10)
        out, _ = running.communicate("go on\n", timeout=30)
    assert out == "done\n"
    run = load(only_run(environ))
    assert not run.ended
    assert run.duration_s > 0.5
    done = subprocess.run(
        [*CKPTCOST, "report", "last"],
        capture_output=True,
        env=environ,
        timeout=60,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_checkpoints_are_found_in_a_folder_without_a_word_from_the_job(wrapped, tmp_path, environ):
    folder = tmp_path / "ckpt"
    folder.mkdir()
    done = wrapped(
        sys.executable,
        "-c",
        SAVING,
        str(folder),
        "3",
        "sync",
        "0.7",
        flags=("--watch", str(folder), "--settle", "2 s"),
    )
    assert done.returncode == 0, done.stderr
    windows = windows_of(load(only_run(environ)).marks)
    assert [window.label for window in windows] == ["step_1.pt", "step_2.pt", "step_3.pt"]
    assert all(window.durable_s is not None for window in windows)


def test_without_a_folder_its_own_writing_shows_when_it_saves(wrapped, tmp_path, environ):
    done = wrapped(
        sys.executable,
        "-c",
        SAVING,
        str(tmp_path),
        "3",
        "sync",
        "1.0",
        flags=("--settle", "2 s", "--gap", "0.3 s"),
    )
    assert done.returncode == 0, done.stderr
    assert len([w for w in windows_of(load(only_run(environ)).marks) if w.begin_s is not None]) == 3


def test_a_hook_in_the_job_says_it_exactly(wrapped, tmp_path, environ):
    program = (
        "import ckptcost, os, sys, time\n"
        "for n in range(3):\n"
        "    with ckptcost.window(f'step {n}', path=os.path.join(sys.argv[1], f'{n}.pt')):\n"
        "        with open(os.path.join(sys.argv[1], f'{n}.pt'), 'wb') as file:\n"
        "            file.write(os.urandom(4 << 20)); file.flush(); os.fsync(file.fileno())\n"
        "    time.sleep(0.3)\n"
    )
    done = wrapped(sys.executable, "-c", program, str(tmp_path), flags=("--settle", "3 s"))
    assert done.returncode == 0, done.stderr
    run = load(only_run(environ))
    windows = windows_of(
        [mark for mark in run.marks if mark.by == "api" or mark.window.startswith("step ")]
    )
    assert [window.label for window in windows] == ["step 0", "step 1", "step 2"]
    for window in windows:
        assert window.stall_s is not None
        assert window.durable_s is not None


def test_lines_of_its_output_are_marks_and_pass_through(wrapped, environ):
    program = (
        "import time\nfor n in range(2):\n print(f'saving s{n}', flush=True); time.sleep(0.3);"
        " print(f'saved s{n}', flush=True)"
    )
    flags = (
        "--token",
        "begin=saving (?P<window>\\S+)",
        "--token",
        "returned=saved (?P<window>\\S+)",
        "--settle",
        "0 s",
    )
    done = wrapped(sys.executable, "-c", program, flags=flags)
    assert done.stdout == b"saving s0\nsaved s0\nsaving s1\nsaved s1\n"
    windows = windows_of(load(only_run(environ)).marks)
    assert [window.label for window in windows] == ["s0", "s1"]
    assert all(0.2 < window.stall_s < 1.0 for window in windows)


def test_the_report_that_was_asked_for(wrapped, tmp_path, environ):
    out = tmp_path / "cost.json"
    assert (
        wrapped("sleep", "0.3", flags=("-f", "json", "-o", str(out), "--settle", "0 s")).returncode
        == 0
    )
    document = json.loads(out.read_text())
    assert document["kind"] == "measurement"
    assert not document["simulated"]
    assert str(tmp_path) not in out.read_text()


def test_a_report_that_cannot_be_written_costs_the_command_nothing(wrapped, tmp_path):
    done = wrapped(
        "sh", "-c", "exit 3", flags=("-o", str(tmp_path), "--settle", "0 s")
    )  # a folder, as it turns out
    assert done.returncode == 3
    assert b"could not be written" in done.stderr


def test_a_log_that_is_our_stdout_is_written_to_and_not_replaced(environ, tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.write(b"before\n")
        file.flush()
        words = [*CKPTCOST, "run", "--settle", "0 s", "-o", "/dev/stdout", "--", "echo", "hello"]
        subprocess.run(
            words, stdout=file, stderr=subprocess.PIPE, env=environ, timeout=60, check=True
        )
    assert log.read_bytes().startswith(b"before\nhello\n")
    assert b"Measured at the node" in log.read_bytes()


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ((), 2, b"names no command"),
        (("--watch", "/etc/hostname"), 2, b"is no folder"),
        (("--token", "begin=("), 2, b"no regular expression"),
        (("--token", "began=x"), 2, b"no mark named"),
        (("--least", "1"), 2, b"--least"),
        (("--meters", "simulated"), 2, b"--meters"),
        (("--record", "/proc/nowhere"), 4, b"/proc/nowhere"),
        (("-o", "/no/such/place"), 4, b"/no/such/place"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_run(environ, tmp_path, flags, code, said):
    sign = tmp_path / "sign"
    command = ["--", "touch", str(sign)] if flags else []
    done = subprocess.run(
        [*CKPTCOST, "run", *flags, *command],
        capture_output=True,
        env=environ,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert not sign.exists()


def test_a_folder_that_holds_a_run_is_not_written_into(wrapped, tmp_path):
    flags = ("--record", str(tmp_path / "mine"), "--settle", "0 s")
    assert wrapped("true", flags=flags).returncode == 0
    again = wrapped("true", flags=flags)
    assert again.returncode == 4
    assert b"holds a run already" in again.stderr


SHARED = """
import sys, time
from pathlib import Path
folder, name = Path(sys.argv[1]), sys.argv[2]
(folder.parent / f"{name}.here").touch()
while len(list(folder.parent.glob("*.here"))) < 2:
    time.sleep(0.01)
with (folder / f"{name}.pt").open("wb", buffering=0) as file:
    for _ in range(20):
        file.write(b"x" * 250_000)
        time.sleep(0.05)
"""


def test_two_jobs_in_one_folder_do_not_count_each_others_saves(tmp_path, environ):
    (tmp_path / "ckpt").mkdir()
    runs = []
    for name in "ab":
        command = [sys.executable, "-m", "ckptcost.first", "run", "--watch", str(tmp_path / "ckpt")]
        command += ["--settle", "0 s", "--record", str(tmp_path / name), "--"]
        command += [sys.executable, "-c", SHARED, str(tmp_path / "ckpt"), name]
        runs.append(subprocess.Popen(command, env=environ, stderr=subprocess.PIPE))
    said = [run.communicate(timeout=60)[1].decode() for run in runs]
    for name, words in zip("ab", said, strict=True):
        marks = load(tmp_path / name).marks
        written = [mark.detail["bytes"] for mark in marks if mark.name == "written"]
        assert written == [5_000_000], words
        assert max(mark.detail.get("left_out", 0) for mark in marks) == 1


def test_what_was_not_found_is_said_at_the_end(wrapped, tmp_path):
    (tmp_path / "ckpt").mkdir()
    done = wrapped("true", flags=("--watch", str(tmp_path / "ckpt"), "--settle", "0 s"))
    assert b"No checkpoint was found: nothing large enough" in done.stderr
    assert b"ckptcost.window" in done.stderr
    quiet = wrapped("true", flags=("-q", "--watch", str(tmp_path / "ckpt"), "--settle", "0 s"))
    assert quiet.stderr == b""


def test_the_run_knows_the_command_and_how_it_ended_and_no_folder(wrapped, tmp_path, environ):
    wrapped("sh", "-c", "exit 3", str(tmp_path / "secret" / "place"))
    notes = [mark.detail for mark in load(only_run(environ)).marks if mark.by == "wrap"]
    assert notes[0]["command"] == "sh -c exit 3 place"
    assert (notes[1]["exit_status"], notes[2]) == (3, {"nothing_found": "NO_BURST"})
