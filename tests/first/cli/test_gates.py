"""A pipeline stops on a missed target: exit code 3, the result all the same."""

from __future__ import annotations

import json

import pytest


def test_met(cli):
    done = cli(
        "model",
        "--tier",
        "ddn-exascaler-40",
        "--saves",
        "100",
        "--require",
        "goodput>=0.5",
        "--budget",
        "usd<=100 million USD",
    )
    assert done.code == 2  # not a unit: said, not guessed
    done = cli(
        "model",
        "--tier",
        "ddn-exascaler-40",
        "--saves",
        "100",
        "--require",
        "goodput>=0.5",
        "--budget",
        "usd<=1e9",
    )
    assert (done.code, done.err) == (0, "")


def test_missed(cli, tmp_path):
    file = tmp_path / "report.json"
    done = cli(
        "model",
        "--tier",
        "nas-hdd",
        "--saves",
        "100",
        "--require",
        "goodput>=0.95",
        "--budget",
        "kwh<=10",
        "--budget",
        "usd<=1e12",
        "-f",
        "json",
        "-o",
        str(file),
    )
    assert done.code == 3
    assert done.err.count("MISSED") == 2
    assert "goodput>=0.95, it is 33.7 %" in done.err
    assert (
        json.loads(file.read_text())["schema_name"] == "ckptcost.report"
    )  # a miss does not cost the report


def test_every_case_is_judged_by_name(cli):
    done = cli(
        "model",
        "--tier",
        "nas-hdd",
        "--tier",
        "generic-pfs",
        "--saves",
        "100",
        "--require",
        "goodput>=0.7",
    )
    assert done.code == 3
    assert "[nas-hdd@100]" in done.err
    assert "generic-pfs" not in done.err


def test_an_unknown_result_is_a_miss(cli):
    done = cli("model", "--tier", "generic-pfs", "--saves", "100", "--budget", "market_kgco2e<=1e9")
    assert done.code == 3
    assert "it is unknown" in done.err


def test_a_percentile_needs_runs(cli):
    done = cli("model", "--require", "goodput.p5>=0.9")
    assert done.code == 2
    assert "simulate" in done.err


@pytest.mark.parametrize("flag", ["--require", "--budget"])
def test_bad_targets(cli, flag):
    for text in ("goodput>=1.2", "usd<=-1", "mood>=3", "=", "goodput"):
        done = cli("model", flag, text)
        assert done.code == 2, text
        assert done.out == ""
        assert flag in done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "command",
    ["simulate", "optimize", "solve", "compare", "sensitivity", "audit", "model", "sweep"],
)
def test_an_empty_list_for_a_flag_is_refused(cli, command):
    """argparse takes --flag=-- for an empty list."""
    from ckptcost.first.cli.main import parser_for

    for action in parser_for(command)._actions:
        if (
            action.option_strings
            and action.nargs != 0
            and action.dest not in ("help", "over", "format", "mode", "objective")
        ):
            done = cli(
                command,
                *(["write"] if command == "solve" else []),
                f"{action.option_strings[-1]}=--",
            )
            assert done.code == 2, action.option_strings
            assert done.out == ""
            assert "Traceback" not in done.err
