"""Simulations that would never end are refused at once, and a stop in the middle answers with what
is known."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.cli import simulate_
from ckptcost.first.cli.main import main
from ckptcost.first.core import walk as walking
from ckptcost.first.core.walk import Enough
from ckptcost.first.errors import CkptcostError
from ckptcost.first.jobs.simulate import simulate
from ckptcost.first.jobs.walks import SimulationRequest
from ckptcost.first.layers import layers_for
from ckptcost.first.scenario import resolve

SHORT = resolve(Catalog(), layers_for(Catalog(), "llama31-405b-16k", None, ["run.work=2 days"]))
WORDS = ["simulate", "-s", "llama31-405b-16k", "--set", "run.work=2 days", "--runs"]


def test_a_record_that_fails_before_every_save_is_foreseen(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(walking, "PACE_EVENTS", 500)
    trace = tmp_path / "t.csv"
    trace.write_text("time_s\n227.5\n")
    assert main(["simulate", "-s", "llama31-405b-16k", "--runs", "3", "--trace", str(trace)]) == 2
    assert "interrupted a million times" in capsys.readouterr().err


def test_a_mean_that_is_hopeless_is_foreseen_without_a_walk(monkeypatch, capsys):
    monkeypatch.setattr("ckptcost.first.jobs.walks.walk", None)
    assert main([*WORDS, "1", "--failures", "exponential:10 s"]) == 2
    assert "interrupted a million times" in capsys.readouterr().err


@pytest.mark.parametrize("law", ["exponential", "weibull"])
def test_what_is_slow_but_not_hopeless_is_walked(monkeypatch, law):
    monkeypatch.setattr(walking, "PACE_EVENTS", 20)
    found = simulate(SHORT, SimulationRequest(runs=5, process=law, mean_s=1500.0))
    assert found.finished.all()
    assert found.values["failures"].min() > 100  # asked several times


def test_the_pace_counts_the_way_to_a_limit(monkeypatch):
    monkeypatch.setattr(walking, "PACE_EVENTS", 20)
    monkeypatch.setattr(walking, "MOST_EVENTS", 5000)
    found = simulate(SHORT, SimulationRequest(runs=2, mean_s=60.0, limit_s=86_400.0))
    assert found.values["wall"] == pytest.approx([86_400.0] * 2)


def test_what_has_ended_is_the_same_as_in_the_whole():
    heard = []

    def note(done: float) -> None:
        heard.append(done)
        if len(heard) == 2:  # after 16 interruptions: some runs have ended
            raise Enough

    asked = SimulationRequest(runs=64)
    whole, part = simulate(SHORT, asked), simulate(SHORT, asked, note)
    assert part.stopped_of == 64
    assert 0 < part.asked.runs < 64
    for name in ("wall", "usd", "failures"):
        assert np.isin(part.values[name], whole.values[name]).all()
    assert len(part.values["wall"]) == len(part.finished) == part.asked.runs
    assert part.asked.runs < heard[1] < 64.0  # parts of runs are heard of too


def test_whole_pieces_are_kept():
    def note(done: float) -> None:
        if done > 20.0:
            raise Enough

    whole, part = (
        simulate(SHORT, SimulationRequest(runs=30, chunk=10), heard) for heard in (None, note)
    )
    assert part.asked.runs >= 20
    assert (part.values["wall"][:20] == whole.values["wall"][:20]).all()


def test_nothing_is_said_of_no_runs():
    def note(done: float) -> None:
        raise Enough

    with pytest.raises(CkptcostError, match="nothing is known"):
        simulate(SHORT, SimulationRequest(runs=3), note)


@pytest.mark.parametrize(
    ("number", "flags", "code"),
    [(signal.SIGINT, [], 130), (signal.SIGALRM, ["--seconds-at-most", "1000"], 0)],
)
def test_a_stop_answers_with_the_runs_that_ended(monkeypatch, capsys, number, flags, code):
    whole = simulate_._Bound.note

    def note(self, done: float) -> None:
        if done > 32.0:  # some runs have ended
            signal.raise_signal(number)
        whole(self, done)

    monkeypatch.setattr(simulate_._Bound, "note", note)
    before = signal.getsignal(number)
    assert main([*WORDS, "64", *flags]) == code
    assert "Stopped early" in capsys.readouterr().out
    assert signal.getsignal(number) is before


def test_a_stop_writes_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(simulate_._Bound, "note", lambda *_: signal.raise_signal(signal.SIGINT))
    assert main([*WORDS, "64", "-o", str(tmp_path / "answer.txt")]) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_second_ctrl_c_ends_all():
    with simulate_._Bound(10, 1, None, True):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "x", "1e9"])
def test_a_time_that_is_none(text):
    with pytest.raises(SystemExit):
        main([*WORDS, "3", "--seconds-at-most", text])
