"""Where results go: whole or not at all, whatever the disk, the pipe or the user does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from whole_json import whole

WRITERS = [
    ["model"],
    ["model", "-f", "json"],
    ["model", "-f", "csv"],
    ["model", "-f", "md"],
    ["sweep", "--over", "tier=nas-hdd,generic-pfs", "--over", "saves=1:1000:1"],
    ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1:1000:1", "-f", "csv"],
    ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1:1000:1", "-f", "json"],
    ["catalog"],
    ["catalog", "tier"],
]
DEVICE_FULL = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no /dev/full on this system"
)


def names(words):
    return " ".join(words[:1] + words[-2:])


@DEVICE_FULL
@pytest.mark.parametrize("words", [*WRITERS, ["init", "-"], ["--help"], ["--version"]], ids=names)
def test_full_disk_on_stdout(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ckptcost", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 4
    assert done.stderr.startswith("ckptcost: ")
    assert "No space left" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@DEVICE_FULL
@pytest.mark.parametrize(
    "words",
    [
        ["model"],
        ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1:5000:1", "-f", "csv"],
        ["catalog", "grid"],
    ],
    ids=names,
)
def test_full_disk_by_name(cli, words):
    done = cli(*words, "-o", "/dev/full")
    assert (done.code, done.out) == (4, "")
    assert (
        done.err.replace("'", "")
        == "ckptcost: /dev/full: could not be written (No space left on device)\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["model"],
        ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1:20000:1", "-f", "csv"],
        ["catalog", "grid"],
    ],
    ids=names,
)
def test_a_reader_that_leaves(words):
    """`| head -1` gets its line, and nobody complains."""
    with subprocess.Popen(
        [sys.executable, "-m", "ckptcost", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as done:
        assert done.stdout
        assert done.stderr
        first = done.stdout.readline()
        done.stdout.close()
        said = done.stderr.read()
        assert first.strip()
        assert said == ""
        assert done.wait(60) in (0, 4, -signal.SIGPIPE)


def test_a_reader_that_left_before():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "ckptcost", "model"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (4, "")


def test_no_stdout_at_all():
    """A daemon's child: file descriptor 1 is closed."""
    done = subprocess.run(
        f'"{sys.executable}" -m ckptcost model >&-',
        shell=True,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_an_ascii_locale(shell):
    """Names in the catalogue hold letters beyond ASCII; a C locale must not be the end of it."""
    env = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    for words in (["catalog", "grid"], ["catalog", "source"], ["model", "-f", "json"], ["model"]):
        done = shell(*words, env=env)
        assert (done.returncode, done.stderr) == (0, ""), (words, done.stderr[-300:])


@pytest.mark.parametrize("form", ["text", "json", "csv", "md"])
def test_a_file_holds_what_stdout_would(cli, tmp_path, form):
    target = tmp_path / "out"
    shown = cli("model", "-f", form)
    done = cli("model", "-f", form, "-o", str(target))
    assert (done.code, done.out, done.err) == (0, "", "")
    text = target.read_text("utf-8")
    if form == "json":  # it also names the command
        mine, theirs = whole(text), whole(shown.out)
        mine["tool"]["command"] = theirs["tool"]["command"] = []
        assert mine == theirs
        text = shown.out
    assert text == shown.out
    assert [p.name for p in tmp_path.iterdir()] == ["out"], "nothing else is left"


def test_dash_is_stdout(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("model", "-o", "-").out == cli("model").out
    assert list(tmp_path.iterdir()) == []


def test_permissions_follow_the_umask(cli, tmp_path):
    target = tmp_path / "out.md"
    mask = os.umask(0o027)
    try:
        cli("model", "-f", "md", "-o", str(target))
    finally:
        os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o640


def test_over_an_existing_file_is_atomic(cli, tmp_path):
    """Somebody who has the old file open keeps the whole old one."""
    target = tmp_path / "report.json"
    target.write_text("old" * 10)
    with target.open() as stream:
        assert cli("model", "-f", "json", "-o", str(target)).code == 0
        assert stream.read() == "old" * 10
    assert target.read_text().startswith("{")


def test_a_link_stays_a_link(cli, tmp_path):
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    real.write_text("old")
    link.symlink_to(real)
    cli("model", "-f", "md", "-o", str(link))
    assert link.is_symlink()
    assert real.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("folder", "folder"),
        ("absent/out.json", "absent/out.json"),
        ("file/out.json", "file/out.json"),
        ("n" * 300, "nnn"),
        ("", "-o"),
        ("a\0b", "a"),
    ],
    ids=["folder", "no folder", "file as folder", "name too long", "nothing", "NUL"],
)
def test_places_that_cannot_be_written(cli, tmp_path, monkeypatch, name, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    done = cli("model", "-o", name)
    assert done.code in ((2, 4) if name in ("", "a\0b") or len(name) > 255 else (4,))
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert says in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "kept"
    assert list((tmp_path / "folder").iterdir()) == []


def test_an_unwritable_folder(cli, tmp_path, monkeypatch):
    """Root may write anywhere, so the folder's refusal is a mock."""
    import tempfile

    def refuse(*args, **more):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    target = tmp_path / "out.json"
    done = cli("model", "-f", "json", "-o", str(target))
    assert (done.code, done.out) == (4, "")
    assert (
        done.err.replace("'", "")
        == f"ckptcost: {target}: could not be written (Permission denied)\n"
    )


def test_a_disk_that_fills_up_half_way(cli, tmp_path, monkeypatch):
    target = tmp_path / "report.json"
    target.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = cli("model", "-f", "json", "-o", str(target))
    assert (done.code, done.out) == (4, "")
    assert "No space left" in done.err
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_kill_in_the_middle_leaves_the_old_file(tmp_path):
    """SIGKILL while rows are being written: the old file is whole, the new one nowhere under its
    name."""
    target = tmp_path / "sweep.csv"
    target.write_text("old\n")
    words = [
        "sweep",
        "--over",
        "tier=nas-hdd,generic-pfs",
        "--over",
        "saves=1:200000:1",
        "-f",
        "csv",
        "-o",
        str(target),
    ]
    with subprocess.Popen([sys.executable, "-m", "ckptcost", *words]) as run:
        until = time.monotonic() + 30
        while time.monotonic() < until and not any(
            p.stat().st_size for p in tmp_path.iterdir() if p != target
        ):
            time.sleep(0.01)
        assert run.poll() is None, "it was over before it could be killed"
        run.kill()
        assert run.wait(30) == -signal.SIGKILL
    assert target.read_text() == "old\n"


def test_an_interrupt_is_one_line_and_leaves_nothing(tmp_path):
    target = tmp_path / "sweep.csv"
    words = [
        "sweep",
        "--over",
        "tier=nas-hdd,generic-pfs",
        "--over",
        "saves=1:200000:1",
        "-f",
        "csv",
        "-o",
        str(target),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "ckptcost", *words], stderr=subprocess.PIPE, text=True
    ) as run:
        until = time.monotonic() + 30
        while time.monotonic() < until and not any(p.stat().st_size for p in tmp_path.iterdir()):
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        assert run.stderr
        said = run.stderr.read()
        assert run.wait(30) == 130
    assert said == "ckptcost: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_a_named_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [sys.executable, "-m", "ckptcost", "model", "-f", "csv", "-o", str(pipe)]
    ) as run:
        assert pipe.read_text().startswith("tier,")
        assert run.wait(60) == 0
    assert pipe.is_fifo()


def test_speech_is_on_stderr_and_data_on_stdout(cli, tmp_path):
    file = tmp_path / "new.toml"
    done = cli("init", str(file))
    assert (done.code, done.out) == (0, "")
    assert "new.toml" in done.err


def test_what_a_killed_writer_left_is_swept_by_the_next_of_the_same_file(cli, tmp_path):
    left = tmp_path / ".out.txt.abcd1234.part"
    others = tmp_path / ".other.txt.abcd1234.part"
    for file in (left, others):
        file.write_text("half")
    assert cli("model", "-o", str(tmp_path / "out.txt")).code == 0
    assert not left.exists()
    assert others.exists()


def test_what_another_is_writing_just_now_is_left_alone(cli, tmp_path):
    import fcntl

    busy = tmp_path / ".out.txt.abcd1234.part"
    with busy.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert cli("model", "-o", str(tmp_path / "out.txt")).code == 0
        assert busy.exists()
