"""A mistake of our own has an exit code of its own and one line, never a traceback that
nobody asked for; a file name that cannot be is wrong input."""

from __future__ import annotations

import pytest

from ckptcost.first.cli import main as module
from ckptcost.first.cli.main import DEFECT, main


@pytest.fixture
def broken(monkeypatch):
    def fail(options: object) -> int:
        raise ZeroDivisionError("float division\nby zero")

    from ckptcost.first.cli import model_

    monkeypatch.setattr(model_, "run", fail)
    monkeypatch.delenv("CKPTCOST_DEBUG", raising=False)


def test_a_defect_is_one_line_and_exit_code_70(broken, capsys):
    assert main(["model"]) == DEFECT == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ckptcost: a defect of ckptcost ")
    assert "ZeroDivisionError: 'float division by zero'. Please report it" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_its_traceback_is_there_for_who_asks(how, broken, capsys, monkeypatch):
    if how == "environment":
        monkeypatch.setenv("CKPTCOST_DEBUG", "1")
    assert main(["--debug", "model"] if how == "flag" else ["model"]) == DEFECT
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "in fail" in err
    assert err.splitlines()[-1].startswith("ckptcost: a defect of ckptcost ")


def test_debug_before_a_command_changes_nothing_else(cli):
    assert cli("--debug", "model", "--tier", "nas-hd").code == 2
    assert cli("--debug", "catalog", "tiers").out == cli("catalog", "tiers").out


@pytest.mark.parametrize(
    "words", [["model", "-s", "n" * 5000], ["model", "-o", "n" * 5000], ["report", "n" * 5000]]
)
def test_a_name_that_no_file_can_have_is_wrong_input(words, cli):
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert len(ran.err) < 700


def test_the_help_knows_every_exit_code():
    assert f"{DEFECT} a defect" in module.short_help()
