"""Completion scripts and the manual page come from the parsers: bash completes with the one, and
the readers that are here take the others."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.cli.main import COMMANDS, VERBS, parser_for

CHECKS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}
ASK = """\
source "$1"; shift
compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_ckptcost
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""what bash does at a tab; `compopt` is for completions under way alone"""


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Path:
    from ckptcost.first.cli.main import main

    file = tmp_path_factory.mktemp("completion") / "script.bash"
    with pytest.MonkeyPatch.context() as patch, file.open("w") as stream:
        patch.setattr("sys.stdout", stream)
        assert main(["completion", "bash"]) == 0
    return file


def completed(script: Path, *words: str, cwd: Path | None = None) -> list[str]:
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", str(script), "ckptcost", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=cwd,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", CHECKS)
def test_a_shell_can_read_its_script(cli, tmp_path, shell):
    done = cli("completion", shell)
    assert (done.code, done.err) == (0, "")
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed, so its script is not read by it")
    file = tmp_path / "script"
    file.write_text(done.out, "utf-8")
    read = subprocess.run([*CHECKS[shell], file], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize("shell", CHECKS)
def test_every_flag_of_every_command_is_in_it(cli, shell):
    out = cli("completion", shell).out
    for command in [*COMMANDS, *VERBS]:
        assert command.split()[-1] in out
        for action in parser_for(command)._actions:
            for name in action.option_strings:
                assert (
                    f"-l '{name[2:]}'" if shell == "fish" and name[1] == "-" else name[1:]
                ) in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mod"], ["model"]),
        (["ser"], ["serve-metrics"]),
        (["--debug", "mod"], ["model"]),
        (["model", "--req"], ["--require"]),
        (["model", "-f", ""], ["text", "json", "csv", "md", "html"]),
        (["model", "--tier", "nas-h"], ["nas-hdd"]),
        (["model", "--tier", "=", "nas-h"], ["nas-hdd"]),
        (["model", "--tier", "nas-hdd", "--against", "nas-h"], ["nas-hdd"]),
        (["fleet", "store", "--by", "t"], ["team", "tier"]),
        (["fleet", "sy"], ["synthesize"]),
        (["fleet", "synthesize", "--sa"], ["--saves-per-day"]),
        (["runs", "pack", "--st"], ["--store"]),
        (["solve", "sta"], ["stall"]),
        (["solve", "stall", "--ke"], ["--keep-interval"]),
        (["catalog", "ti"], ["tier"]),
        (["compare", "small", "small"], ["small-8b"]),
        (["model", "--set", "cluster.gpus"], ["cluster.gpus=", "cluster.gpus_per_node="]),
        (["export", "report.json", "--to", "gra"], ["grafana"]),
        (["completion", "z"], ["zsh"]),
        (["--go", "dis"], []),
        (["--go", "doc"], ["doctor"]),
        (["measure", "--for", ""], []),
    ],
    ids=" ".join,
)
def test_bash_completes(script, tmp_path, words, expected):
    assert completed(script, *words, cwd=tmp_path) == expected


def test_bash_completes_all_tiers_and_presets_and_files(script, tmp_path):
    (tmp_path / "job.toml").touch()
    assert completed(script, "model", "--tier", "", cwd=tmp_path) == Catalog().ids("tier")
    found = completed(script, "model", "-s", "", cwd=tmp_path)
    assert found == [*Catalog().ids("scenario"), "job.toml"]
    (tmp_path / "logs").mkdir()
    assert completed(script, "run", "--watch", "", cwd=tmp_path) == ["logs"]
    assert "job.toml" in completed(script, "run", "--", "jo", cwd=tmp_path)


def test_a_tier_of_the_users_own_is_completed(cli, tmp_path, monkeypatch):
    (tmp_path / "models" / "tiers").mkdir(parents=True)
    (tmp_path / "models" / "tiers" / "our-scratch.toml").write_text('id = "our-scratch"\n', "utf-8")
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    file = tmp_path / "script"
    file.write_text(cli("completion", "bash").out, "utf-8")
    assert completed(file, "model", "--tier", "our") == ["our-scratch"]


SOURCED = {
    "bash": "source {script}; bind 'set bell-style none'",
    "zsh": "autoload -Uz compinit; compinit -D -u; source {script}",
    "zsh-here": "autoload -Uz compinit; compinit -D -u; cd {script.parent}; source _ckptcost",
    "zsh-fpath": "fpath=({script.parent} $fpath); autoload -Uz compinit; compinit -D -u",
}
"""how each shell comes by its script; from fpath zsh reads it at the first tab"""
BARE = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}


@pytest.mark.parametrize("way", SOURCED)
def test_a_tab_on_a_terminal(cli, tmp_path, way):
    """The shell itself, interactive, with the script read: what it writes after a tab."""
    shell = way.partition("-")[0]
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed, so no tab is tried in it")
    script = tmp_path / "functions" / "_ckptcost"
    script.parent.mkdir()
    script.write_text(cli("completion", shell).out, "utf-8")
    main, terminal = pty.openpty()
    running = subprocess.Popen(
        [shell, *BARE[shell]],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=tmp_path,
        env={**os.environ, "PS1": "$ ", "TERM": "dumb", "HISTFILE": ""},
        start_new_session=True,
    )
    os.close(terminal)
    try:
        os.write(main, f"{SOURCED[way]}; echo rea''dy\n".format(script=script).encode())
        seen = _until(main, "\nready")
        assert "not found" not in seen
        os.write(main, b"ckptcost model --tier nas-h\t")
        assert "nas-hdd " in _until(main, "nas-hdd ")
    finally:
        running.kill()
        running.wait()
        os.close(main)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("mod", ["model"]),
        ("fleet sy", ["synthesize"]),
        ("model --tier nas-h", ["nas-hdd"]),
        ("model -f ", ["csv", "html", "json", "md", "text"]),
        ("serve-metrics --outp", ["--output"]),
        ("model -s sm", ["small-8b", "small.toml"]),
        ("run --watch ", ["logs/"]),
        ("run --watch sm", []),
        ("check sm", ["small.toml"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_fish_completes(cli, tmp_path, typed, expected):
    if not shutil.which("fish"):
        pytest.skip("fish is not installed, so nothing is completed by it")
    (tmp_path / "logs").mkdir()
    (tmp_path / "small.toml").touch()
    (tmp_path / "logs" / "script").write_text(cli("completion", "fish").out, "utf-8")
    done = subprocess.run(
        ["fish", "-N", "-c", f"source logs/script; complete -C 'ckptcost {typed}'"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path / "logs")},
    )
    assert done.stderr == ""
    assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()) == expected


def _until(stream: int, text: str, seconds: float = 30) -> str:
    seen, end = "", time.monotonic() + seconds
    while text not in seen.replace("\r", "") and time.monotonic() < end:
        if select.select([stream], [], [], 0.2)[0]:
            seen += os.read(stream, 65536).decode("utf-8", "replace")
    return seen.replace("\r", "")


def test_the_manual_names_every_flag(cli):
    out = cli("man").out.replace("\\-", "-")
    for command in [*COMMANDS, *VERBS]:
        assert f".SS ckptcost {command}\n" in out
        for action in parser_for(command)._actions:
            assert all(
                f"\\fB{name}\\fR" in out
                for name in action.option_strings
                if name not in {"--help", "-h"}
            )


@pytest.mark.parametrize(
    "reader",
    [["groff", "-man", "-ww", "-z"], ["mandoc", "-T", "lint", "-W", "error"]],
    ids=lambda r: r[0],
)
def test_a_reader_of_manuals_has_nothing_to_say(cli, tmp_path, reader):
    if not shutil.which(reader[0]):
        pytest.skip(f"{reader[0]} is not installed")
    file = tmp_path / "ckptcost.1"
    file.write_text(cli("man").out, "utf-8")
    read = subprocess.run([*reader, file], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stdout, read.stderr) == (0, "", "")
