"""ckptcost from Python, and what an import must not cost."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import ckptcost
from ckptcost.first.cli.main import COMMANDS, VERBS
from ckptcost.first.errors import InputError

HEAVY = [
    "numpy",
    "pandas",
    "pydantic",
    "textual",
    "rich",
    "pynvml",
    "pyRAPL",
    "torch",
    "scipy",
    "dask",
    "hypothesis",
]


def loaded(code: str, *words: str) -> set[str]:
    """Top-level modules a fresh interpreter holds after running `code`."""
    script = [
        "import sys",
        f"sys.argv = ['ckptcost', *{list(words)!r}]",
        code,
        "print('\\nLOADED', *sorted({name.split('.')[0] for name in sys.modules}))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stdout.rsplit("LOADED ", 1)[1].split())


RUN = "from ckptcost.first.cli.main import main\nmain()"


def test_three_lines():
    report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
    assert [row["stall_s"] for row in report.rows("cases")] == [10_005.0, 1_005.0]
    assert report.statements[0].totals.energy.unit == "kWh"


def test_the_default_is_the_command_lines(cli):
    mine, theirs = (
        json.loads(ckptcost.model().to_json()),
        json.loads(cli("model", "-f", "json").out),
    )
    assert mine["reproducibility"] == theirs["reproducibility"]
    mine["tool"] = theirs["tool"] = None
    assert mine == theirs


@pytest.mark.parametrize("ask", ["model", "optimize", "compare", "sensitivity"])
def test_draws_may_be_fewer(ask):
    more = {"variants": "cluster.gpus=2048"} if ask == "compare" else {}
    few, usual = (
        json.loads(getattr(ckptcost, ask)("gpt4-scale-2tb", draws=draws, **more).to_json())
        for draws in (64, 0)
    )
    few["tool"] = usual["tool"] = None
    assert few != usual, "ranges of fewer draws are others"


@pytest.mark.parametrize("draws", [-5, 1, 63, 2_000_000])
def test_draws_that_say_nothing_are_refused(draws):
    with pytest.raises(InputError, match="from 64 to 1,000,000"):
        ckptcost.model("gpt4-scale-2tb", draws=draws)


def test_changes_may_be_a_mapping_or_a_list():
    one = ckptcost.model(
        tier="nas-hdd",
        saves=100,
        changes={
            "cluster.gpus": 4096,
            "policy.mode": "async",
            "policy.pipelined": False,
            "tier.write": "1 GB/s",
        },
    )
    two = ckptcost.model(
        tier="nas-hdd",
        saves=[100],
        changes=[
            "cluster.gpus=4096",
            "policy.mode=async",
            "policy.pipelined=false",
            "tier.write=1 GB/s",
        ],
    )
    assert one.reproducibility == two.reproducibility


@pytest.mark.parametrize("saves", [0, -1, float("nan"), float("inf"), "abc", None, [0]])
def test_wrong_counts_are_our_errors(saves):
    if saves is None:
        assert len(ckptcost.model(tier="nas-hdd", saves=None).rows("cases")) == 3
    else:
        with pytest.raises(InputError):
            ckptcost.model(tier="nas-hdd", saves=saves)


def test_an_error_has_its_parts():
    from ckptcost.first.errors import UnknownName

    with pytest.raises(UnknownName, match="did you mean 'nas-hdd'") as told:
        ckptcost.model(tier="nas-hdb")
    assert told.value.exit_code == 2
    assert told.value.remedy


def test_sweep_is_a_frame():
    frame = ckptcost.sweep(["tier=nas-hdd,generic-pfs", "saves=10:30:10"])
    assert list(frame.columns[:2]) == ["tier", "saves"]
    assert len(frame) == 6
    assert frame.columns.is_unique


def test_load_report(tmp_path):
    file = tmp_path / "r.json"
    file.write_text(ckptcost.model("small-8b").to_json())
    assert ckptcost.load_report(str(file)).title == "Llama 3.1 8B on 64 H100, two tiers"
    assert ckptcost.load_report(file).schema_version == "2.0", "a Path is a path too"


def test_a_scenario_may_be_a_path(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('extends = "small-8b"\n')
    one, other = ckptcost.model(file), ckptcost.model("small-8b")
    assert one.statements[0].schedule is not None
    assert one.statements[0].schedule == other.statements[0].schedule


def test_public_names():
    assert set(ckptcost.__all__) == {
        "__version__",
        "audit",
        "baseline",
        "begin",
        "calibrate",
        "compare",
        "diff",
        "doctor",
        "export",
        "fits",
        "gap",
        "lead",
        "load_report",
        "measure",
        "model",
        "optimize",
        "price",
        "probe",
        "record",
        "review",
        "roll_up",
        "sensitivity",
        "simulate",
        "solve",
        "step",
        "steps",
        "sweep",
        "window",
    }
    assert dir(ckptcost) == sorted(ckptcost.__all__)
    for name in ckptcost.__all__:
        assert getattr(ckptcost, name)
    with pytest.raises(AttributeError, match="no attribute 'modle'"):
        _ = ckptcost.modle


# ---- what is loaded


def test_importing_loads_nothing_heavy():
    assert (
        loaded("import ckptcost; ckptcost.__version__") & {*HEAVY, "argparse", "tomllib", "json"}
        == set()
    )


@pytest.mark.parametrize("word", ["--help", "--version", "help", "-V"])
def test_help_and_version_load_nothing_heavy(word):
    assert loaded(RUN, word) & set(HEAVY) == set()


@pytest.mark.parametrize("command", [*COMMANDS, *VERBS])
def test_a_commands_help_loads_nothing_heavy(command):
    assert (
        loaded(
            f"try:\n    {RUN.splitlines()[0]}\n    main()\nexcept SystemExit: pass",
            *command.split(),
            "--help",
        )
        & set(HEAVY)
        == set()
    )


@pytest.mark.parametrize(
    "words",
    [
        ["model"],
        ["model", "-f", "json"],
        ["model", "-f", "csv"],
        ["model", "-f", "md"],
        ["sweep", "--over", "tier=nas-hdd", "--over", "saves=1,2", "-f", "csv"],
        ["catalog", "tier"],
        ["simulate", "--runs", "20"],
        ["optimize", "-f", "md"],
        ["solve", "stall", "--for", "goodput>=0.9", "-f", "csv"],
        ["compare", "gpt4-scale-2tb", "small-8b"],
        ["sensitivity", "--of", "usd"],
        ["audit", "ddn-2025"],
    ],
    ids=" ".join,
)
def test_no_command_loads_what_it_does_not_need(words):
    assert loaded(RUN, *words) & (set(HEAVY) - {"numpy", "pydantic"}) == set()


def test_no_command_opens_a_socket():
    """No network, ever: whoever reaches for it here fails."""
    refuse = "def no(*a, **k): raise AssertionError('network')"
    code = "\n".join(
        [
            "import socket",
            refuse,
            "socket.socket = socket.create_connection = socket.getaddrinfo = no",
            RUN,
        ]
    )
    assert "ckptcost" in loaded(code, "model")


def test_version_everywhere(cli, shell):
    assert cli("--version").out == f"ckptcost {ckptcost.__version__}\n"
    assert shell("-V").stdout == f"ckptcost {ckptcost.__version__}\n"


def test_help_lists_the_commands(cli):
    assert cli() == cli("--help") == cli("-h") == cli("help")
    for command in COMMANDS:
        assert f"\n  {command} " in cli().out
    assert all(len(line) <= 80 for line in cli().out.splitlines())
    assert "exit codes" in cli().out


@pytest.mark.parametrize("command", [*COMMANDS, *VERBS])
def test_help_of_a_command_is_80_columns_wide(command):
    done = subprocess.run(
        [sys.executable, "-m", "ckptcost", *command.split(), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"COLUMNS": "80", "PATH": ""},
    )
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_export_from_python_is_the_commands(tmp_path, cli):
    file = tmp_path / "r.json"
    file.write_text(ckptcost.model("small-8b").to_json(), "utf-8")
    files = ckptcost.export(file, "codecarbon", start="2026-09-01", labels={"team": "infra"})
    assert files == {
        "emissions.csv": cli(
            "export",
            str(file),
            "--to",
            "codecarbon",
            "--start",
            "2026-09-01",
            "--label",
            "team=infra",
        ).out
    }
    with pytest.raises(InputError, match="did you mean 'focus'"):
        ckptcost.export([file], "focsu")
