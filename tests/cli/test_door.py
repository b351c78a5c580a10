"""The command line at its door: verbs, help, exit codes, and one line for what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ckptcost import __version__, cli
from ckptcost.former import NOW
from ckptcost.questions import VERBS

GOLDEN = Path(__file__).with_name("golden")
PLANNING = ("model", "interval", "compare", "simulate", "need")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command line in an empty folder: its exit code, and what it prints on both streams."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def called(*words: str) -> tuple[int, str, str]:
        code = cli.main(words)
        return code, *capsys.readouterr()

    return called


def golden(printed: str, name: str) -> None:
    """Set UPDATE=1 to write what is printed now."""
    path = GOLDEN / name
    if os.environ.get("UPDATE"):
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")


# --- help -----------------------------------------------------------------------------------------


def test_help_is_the_table_of_verbs(run: Run) -> None:
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    golden(out, "help.txt")
    assert [line.split()[0] for line in out.splitlines() if line[:2] == "  "] == list(VERBS)
    assert max(map(len, out.splitlines())) <= 80
    assert run("help") == run("-h") == run() == (0, out, "")


@pytest.mark.parametrize("verb", ["model", "need", "simulate", "catalog", "init"])
def test_help_of_a_verb(run: Run, verb: str) -> None:
    code, out, err = run("help", verb)
    assert (code, err) == (0, "")
    golden(out, f"help-{verb}.txt")
    assert run(verb, "--help") == (0, out, "")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("verb", PLANNING)
def test_planning_verbs_share_their_flags(run: Run, verb: str) -> None:
    """And so does the documentation of all of them."""
    said = run("help", verb)[1]
    shared = ("--tier", "--saves", "--interval", "--mode", "--gpus", "--mtbf", "--gpu-price")
    assert all(f"  {flag} " in said for flag in (*shared, "--set", "--sure", "--draws"))
    assert ("  --require " in said) == (verb != "need")  # which takes --for


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"ckptcost {__version__}\n", "")


def test_completion_of_shells(run: Run) -> None:
    pytest.importorskip("shtab")
    questions = [name for name, verb in VERBS.items() if verb.is_question]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "VERBS", {name: VERBS[name] for name in questions})
        for shell in ("bash", "zsh", "tcsh"):
            code, out, _ = run("--print-completion", shell)
            assert code == 0
            assert all(name in out for name in questions)
            assert "--gpu-price" in out or "gpu-price" in out
    assert run("--print-completion", "dos")[0] == 2


def test_the_terminal_alone_opens_the_screen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[list[str]] = []

    def screen(words: list[str]) -> int:
        opened.append(words)
        return 0

    monkeypatch.setattr(cli, "_is_terminal", lambda: True)
    monkeypatch.setattr("ckptcost.former.main", screen)
    assert run()[0] == 0
    assert opened == [["screen"]]


def test_help_imports_no_question() -> None:
    """And a question imports nothing of the others that is heavy."""
    listed = "import sys, ckptcost.cli as c; c.main({}); print(*sys.modules, file=sys.stderr)"
    heavy = {"pandas", "pydantic", "jinja2", "textual", "shtab", "ckptcost.first"}
    for words, without in ((["--help"], {"argparse", "numpy"}), (["model", "--draws", "8"], set())):
        done = subprocess.run(
            [sys.executable, "-c", listed.format(words)], capture_output=True, text=True, check=True
        )
        assert not (heavy | without) & set(done.stderr.split())


# --- exit codes -----------------------------------------------------------------------------------

WRONG = {
    "no such job": ["nowhere.toml"],
    "no such preset": ["llama"],
    "no such tier": ["--tier", "nas-hd"],
    "not a count": ["--gpus", "40x"],
    "no unit": ["--interval", "30"],
    "negative": ["--mtbf", "-3 h"],
    "not a mode": ["--mode", "asink"],
    "no such key": ["--set", "tier.wriet=1 GB/s"],
    "no value": ["--set", "tier.write"],
    "empty": ["--gpu-price", ""],
    "not a measure": ["--require", "goodputt>=0.9"],
    "no limit": ["--require", "goodput"],
    "more than all": ["--sure", "2"],
    "sure without draws": ["--sure", "0.9", "--draws", "0"],
    "too many draws": ["--draws", "1e9"],
    "no such flag": ["--tiers", "nas-hdd"],
    "no such format": ["-f", "xml"],
    "no such suffix": ["-o", "answer.pdf"],
}
OWN = {
    "model": [["a", "b"], ["--over", "tier.write"], ["--dir", "nowhere"]],
    "interval": [["a", "b"], ["--for", "beauty"]],
    "compare": [["a.json", "b.json"]],
    "simulate": [
        *(["--runs", "0"], ["--runs", "many"], ["--seed", "-1"], ["--failures", "poisson"]),
        *(["--failures", "weibull:0"], ["--failures", "nowhere.csv"]),
    ],
    "need": [["--for", "goodput>=110 %"], ["--for", "fast"], ["--tier", "a", "--tier", "b"]],
}


@pytest.mark.parametrize("verb", PLANNING)
def test_wrong_inputs(run: Run, verb: str) -> None:
    """Exit 2, one line on what is wrong and one on what to do."""
    place = ["write"] if verb == "need" else []
    for words in (*WRONG.values(), *OWN[verb]):
        code, out, err = run(verb, *place, *words)
        assert (code, out) == (2, ""), words
        assert len(err.splitlines()) == 2, err
        assert err.startswith("ckptcost: ")


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["need"], "QUANTITY is missing"),
        (["need", "wriet"], "try write"),
        (["need", "policy.mode"], "is a word, not a figure"),
        (["modle"], "try model"),
        (["job.toml"], "write e.g. ckptcost model JOB"),
        (["-f", "json"], "is no verb"),
        (["catalog", "qwertz"], "nothing matches 'qwertz'"),
        (["init"], "FILE is missing"),
        (["run"], "names no command"),
        (["fleet", "pack", "last"], "names no store"),
        (["model", "--set", "a\x1b[31m\n=1"], "\\x1b[31m"),
        (["model", "x" * 5000], "xxx"),
    ],
)
def test_what_is_wrong_is_said(run: Run, words: list[str], where: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert where in err
    assert len(err.splitlines()) <= 2
    assert len(err) < 1500
    assert all(c.isprintable() or c == "\n" for c in err)


@pytest.mark.parametrize("verb", NOW)
def test_an_old_verb_names_the_new_form(run: Run, verb: str) -> None:
    code, out, err = run(verb, "anything")
    assert (code, out, err) == (2, "", f"ckptcost: {verb} is now: {NOW[verb]}\n")
    form = NOW[verb].split()
    assert len(form) == 1 or form[1] in VERBS or form[1] in ("help", "--print-completion")


def test_a_target_that_is_missed(run: Run) -> None:
    words = ("--draws", "64", "--require", "goodput>=0.999")
    code, out, err = run("model", "small-8b", *words)
    assert (code, err) == (3, "")
    assert "goodput>=0.999" in out
    code, out, err = run("model", "small-8b", *words, "-f", "json")
    assert code == 3
    assert err.startswith("ckptcost: ")
    assert run("model", "small-8b", *words[:2], "--require", "goodput>=0.5")[0] == 0


def test_a_defect_is_one_line_and_the_traceback_on_demand(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckptcost.questions.model.answer", lambda *cases, **asked: 1 // 0)
    code, out, err = run("model")
    assert (code, out) == (70, "")
    assert "ZeroDivisionError" in err
    assert "Traceback" not in err
    monkeypatch.setenv("CKPTCOST_DEBUG", "1")
    assert "Traceback" in run("model")[2]


def test_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(verb: str, words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_ask", interrupted)
    assert run("model") == (130, "", "ckptcost: interrupted\n")
