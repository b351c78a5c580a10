"""The parts of a wrapped command that need no terminal: what may be run, and how its end is
told."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ckptcost.first.jobs import command as module
from ckptcost.first.jobs import wrap
from ckptcost.first.jobs.command import CommandEnd, NoCommand, WrappedCommand, end_alike
from ckptcost.first.jobs.observe import WatchOptions
from ckptcost.first.meters.found import Wanted


def send(number: int) -> None:
    """To this thread: numpy's own do not hold signals here."""
    signal.pthread_kill(threading.main_thread().ident, number)


def ended(*words, **more):
    command = WrappedCommand(words)
    command.start(os.environ)
    return command.wait(**more)


@pytest.mark.parametrize(
    ("script", "status", "by"),
    [("exit 0", 0, 0), ("exit 41", 41, 0), ("kill -TERM $$", 143, 15), ("kill -KILL $$", 137, 9)],
)
def test_how_it_ended_as_a_shell_has_it(script, status, by):
    before_ns = time.monotonic_ns()
    found = ended("sh", "-c", script, every_s=0.01, look=lambda: None)
    assert (found.status, found.signal) == (status, by)
    assert before_ns < found.at_ns <= time.monotonic_ns()
    assert found.usage.ru_maxrss > 0


def test_it_is_looked_at_now_and_then():
    looks = []
    ended("sleep", "0.15", every_s=0.02, look=lambda: looks.append(time.monotonic()))
    assert len(looks) >= 3


def test_what_cannot_be_run(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for word, code in ((str(plain), 126), ("no-such-command", 127), (str(tmp_path / "none"), 127)):
        for act in (lambda c: c.check(), lambda c: c.start(os.environ)):
            with pytest.raises(NoCommand) as raised:
                act(WrappedCommand([word]))
            assert raised.value.exit_code == code
    WrappedCommand([sys.executable]).check()


def test_it_is_looked_for_where_the_commands_own_path_says(tmp_path):
    tool = tmp_path / "some-tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    WrappedCommand(["some-tool"]).check(str(tmp_path))
    with pytest.raises(NoCommand):
        WrappedCommand(["some-tool"]).check("/nowhere")


def test_signals_are_held_and_given_back():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    command = WrappedCommand(["true"])
    command.hold()
    try:
        held = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert held >= module.WAITED_FOR
        command.start(os.environ)
        assert command.wait().status == 0
        send(signal.SIGTERM)  # pending: for the command, which is over
    finally:
        command.release()
        command.release()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_the_user_ends_a_wait():
    command = WrappedCommand(["true"])
    command.hold()
    try:
        assert not command.stopped_by_user(0.01)
        threading.Timer(0.02, send, [signal.SIGTERM]).start()
        before_s = time.monotonic()
        assert command.stopped_by_user(5.0)
        assert time.monotonic() - before_s < 4.0
        send(signal.SIGWINCH)  # a resized window ends nothing
        assert not command.stopped_by_user(0.01)
    finally:
        command.release()


def test_the_exit_code_of_a_command_that_no_signal_ended():
    assert end_alike(CommandEnd(41, 0, None, 0)) == 41


# --- around it


def test_only_the_disk_that_checkpoints_go_to_is_read(tmp_path):
    wanted = Wanted(pid=3)
    assert wrap.beside(wanted, WatchOptions()) is wanted
    there, later = tmp_path / "there", tmp_path / "a" / "b"
    there.mkdir()
    assert wrap.beside(wanted, WatchOptions((there, later))).directory == there
    beside = wrap.beside(wanted, WatchOptions((later, there)))
    assert (beside.directory, beside.pid) == (tmp_path, 3)


@pytest.mark.parametrize(
    ("argv", "spoken"),
    [
        (
            ["/usr/bin/python3", "/home/me/train.py", "--out", "ckpt/x"],
            "python3 train.py --out ckpt/x",
        ),
        (["./train.sh"], "train.sh"),
        (["x", *["word"] * 500], ("x " + "word " * 500)[:500]),
    ],
)
def test_a_run_does_not_tell_where_its_author_keeps_things(argv, spoken):
    assert wrap.command_text(argv) == spoken


def test_while_the_process_goes_on_only_the_margin_is_waited_for(monkeypatch):
    slept = []
    monkeypatch.setattr(wrap, "time", SimpleNamespace(sleep=slept.append))
    assert wrap._no_wait(0.1)
    assert slept == []
    assert not wrap._no_wait(0.5)
    assert not wrap._asleep(0.2)
    assert slept == [0.5, 0.2]

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(wrap, "time", SimpleNamespace(sleep=interrupted))
    assert wrap._asleep(0.2)


def test_a_line_of_output_is_a_mark(monkeypatch):
    told = []
    observer = SimpleNamespace(tell=lambda *words, **more: told.append((words, more)))
    tokens = SimpleNamespace(
        feed=lambda data: [
            SimpleNamespace(name="begin", window="s1"),
            SimpleNamespace(name="returned", window=""),
        ]
    )
    monkeypatch.setattr(wrap, "Relay", lambda seen: seen)
    wrap._listening(tokens, observer)(b"x", 5)
    assert told == [
        (("begin", "s1"), {"by": "output", "t_ns": 5}),
        (("returned", "output"), {"by": "output", "t_ns": 5}),
    ]


def test_a_process_that_is_over_is_none():
    pid = os.posix_spawnp("true", ["true"], os.environ)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(wrap.InputError, match="no such process"):
        wrap.open_process(pid)
    os.waitpid(pid, 0)
    with pytest.raises(wrap.InputError, match="no such process"):
        wrap.open_process(pid)
    mine = wrap.open_process(os.getpid())
    assert not wrap._is_over(mine)
    os.close(mine)
    assert Path("/proc/self").exists()
