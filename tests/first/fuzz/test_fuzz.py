"""The fuzzer finds what is wrong, and nothing else, and most of its inputs get past the readers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fuzz


def test_some_inputs_of_every_reader_are_taken_and_none_does_harm():
    tallies = fuzz.fuzz(seconds=0.01, seed=3)  # one turn: a case of every target
    assert len(tallies) >= 11
    assert [failure for tally in tallies.values() for failure in tally.failures] == []
    assert sum(tally.past for tally in tallies.values()) >= 4


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (ZeroDivisionError("planted"), "planted"),
        (RecursionError("too deep"), "too deep"),
        ("\x1b[2Jplanted", "tells a terminal"),
        ("Traceback (most recent call last)", "Traceback"),
    ],
)
def test_a_planted_fault_is_found(fault, said, monkeypatch, tmp_path):
    from ckptcost.first.cli import audit_

    def planted(options: object) -> int:
        if isinstance(fault, Exception):
            raise fault
        print(fault, file=sys.stderr)
        return 0

    monkeypatch.setattr(audit_, "run", planted)
    tallies = fuzz.fuzz(seconds=0.01, seed=3, only="claims", kept=tmp_path)
    failure, *_ = tallies["claims"].failures
    assert said in failure
    kept, *_ = tmp_path.iterdir()
    assert sorted(file.name for file in kept.iterdir()) == ["command", "in.toml"]


def test_a_hang_is_ended_and_found(monkeypatch):
    from ckptcost.first.cli import audit_

    monkeypatch.setattr(fuzz, "HANGS_S", 0.05)

    def endless(options: object) -> int:
        while True:
            pass

    monkeypatch.setattr(audit_, "run", endless)
    failure, *_ = fuzz.fuzz(seconds=0.01, seed=3, only="claims")["claims"].failures
    assert "no answer within" in failure


def test_the_same_seed_gives_the_same_inputs(tmp_path):
    from random import Random

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    makes = [fuzz.targets(tmp_path / name)["claims"] for name in ("one", "two")]
    cases = [make(Random("7 claims 3"), tmp_path) for make in makes]
    assert cases[0] == cases[1]
