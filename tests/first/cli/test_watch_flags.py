"""Where and how `run` and `attach` look for checkpoints, and what `run` says at its end."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from ckptcost.first.cli import flags, run_
from ckptcost.first.errors import CkptcostError, InputError, UnknownName
from ckptcost.first.jobs.observe import SETTLE_S, WatchOptions
from ckptcost.first.jobs.progress import KnownSave


def parsed(*words):
    parser = argparse.ArgumentParser()
    flags.add_watch(parser)
    return flags.look_of(parser.parse_args(words))


def test_without_a_word():
    assert parsed() == WatchOptions((), True, 1e6, 1.0, SETTLE_S)


def test_every_word_in_its_place(tmp_path):
    (tmp_path / "a").mkdir()
    look = parsed(
        "--watch",
        str(tmp_path / "a"),
        "--watch",
        str(tmp_path / "later"),
        "--least",
        "3 GB",
        "--gap",
        "2 min",
        "--settle",
        "7 s",
    )
    assert look == WatchOptions((tmp_path / "a", tmp_path / "later"), True, 3e9, 120.0, 7.0)


def test_a_folder_is_named_from_the_root_and_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parsed("--watch", "a", "--watch", str(tmp_path / "a"), "--watch", "b").watch == (
        tmp_path / "a",
        tmp_path / "b",
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--least", "0 B"],
        ["--gap", "3600 s"],
        ["--settle", "0 s"],
        ["--settle", "1 d"],
        ["--gap", "0.001 s"],
    ],
)
def test_the_ends_of_what_is_allowed(words):
    parsed(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["--gap", "0 s"],
        ["--gap", "3601 s"],
        ["--settle", "86401 s"],
        ["--least", "-1 B"],
        ["--settle", "-1 s"],
        ["--least", "5"],
        ["--watch", ""],
        ["--settle", ""],
    ],
)
def test_what_is_not(words):
    with pytest.raises(InputError):
        parsed(*words)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is no folder"):
        parsed("--watch", str(tmp_path / "file"))


def test_lines_on_stderr(capsys):
    run_.say_save(KnownSave("step_1", 2e9, 1.0, 2.0, ""))
    run_.say_waiting(1)
    run_.say_waiting(2)
    assert capsys.readouterr() == (
        "",
        (
            "ckptcost: step_1: 2 GB, written in 1 s, safe after 2 s (1 GB/s)\n"
            "ckptcost: the last checkpoint is not on the storage yet; waiting (Ctrl-C ends that)\n"
            "ckptcost: 2 checkpoints are not on the storage yet; waiting (Ctrl-C ends that)\n"
        ),
    )


@pytest.mark.parametrize(
    ("text", "token"),
    [("begin=saving (.+)", ("begin", "saving (.+)")), ("durable=a=b", ("durable", "a=b"))],
)
def test_a_token_is_a_mark_and_what_to_look_for(text, token):
    assert run_._token(text) == token


@pytest.mark.parametrize(
    ("text", "error"),
    [("begin", InputError), ("begin=", InputError), ("=x", UnknownName), ("note=x", UnknownName)],
)
def test_what_is_no_token(text, error):
    with pytest.raises(error):
        run_._token(text)


class TestRun:
    """With a job that is over at once."""

    @pytest.fixture
    def ran(self, monkeypatch):
        seen = SimpleNamespace(
            reports=[],
            troubles=("one", "one", "two"),
            fails=None,
            terminal=True,
            ended=SimpleNamespace(status=7, signal=0),
        )

        def wrap(words, meters, wanted, look, folder, **more):
            seen.words, seen.folder, seen.more = words, folder, more
            return SimpleNamespace(
                troubles=seen.troubles, ended=seen.ended, folder=Path("r"), run_id="0123456789"
            )

        def report(taken, options, talks):
            seen.reports.append(talks)
            if seen.fails is not None:
                raise seen.fails

        monkeypatch.setattr("ckptcost.first.jobs.wrap.wrap", wrap)
        monkeypatch.setattr(run_, "report", report)

        def call(*words):
            parser = argparse.ArgumentParser()
            run_.arguments(parser)
            err = io.StringIO()
            err.isatty = lambda: seen.terminal
            monkeypatch.setattr("sys.stderr", err)
            seen.code = run_.run(parser.parse_args(list(words)))
            seen.err = err.getvalue()
            return seen

        call.seen = seen
        return call

    def test_on_a_terminal_everything_is_said(self, ran):
        seen = ran("--token", "begin=x", "--record", "there", "--", "a", "--", "b")
        assert (seen.words, seen.folder, seen.code) == (["a", "--", "b"], Path("there"), 7)
        assert seen.more["said"] is run_.say_save
        assert seen.more["waiting"] is run_.say_waiting
        assert seen.more["tokens"] is not None
        assert seen.err == "ckptcost: one\nckptcost: two\n"
        assert seen.reports == [True]

    @pytest.mark.parametrize(
        ("terminal", "words", "reports"),
        [(False, [], [False]), (True, ["-q"], [False]), (False, ["-q"], [False])],
    )
    def test_elsewhere_or_quiet_nothing_while_it_runs(self, ran, terminal, words, reports):
        ran.seen.terminal = terminal
        seen = ran(*words, "--", "a")
        assert (seen.more["said"], seen.more["waiting"], seen.more["tokens"], seen.folder) == (
            None,
            None,
            None,
            None,
        )
        assert seen.reports == reports
        assert (seen.err == "") == ("-q" in words)

    @pytest.mark.parametrize("error", [CkptcostError("no"), OSError("no")])
    def test_a_report_that_fails_is_not_the_jobs_failure(self, ran, error):
        ran.seen.fails = error
        seen = ran("--", "a")
        assert seen.code == 7
        assert seen.err.endswith("ckptcost: no\n")

    @pytest.mark.parametrize("words", [[], ["--"], ["--record", "", "--", "a"]])
    def test_what_cannot_be_run(self, ran, words):
        with pytest.raises(InputError):
            ran(*words)
