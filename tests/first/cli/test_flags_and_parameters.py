"""A command's flags are the parameters of its question: the same names and the same defaults, and
neither has one that the other lacks without a reason."""

from __future__ import annotations

import argparse
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ckptcost.first.cli import answers
from ckptcost.first.cli.main import COMMANDS, VERBS, command_of, flag_of, parser_for
from ckptcost.first.errors import Argument, InputError
from ckptcost.first.fleet.synthetic.synthesize import synthesize
from ckptcost.first.questions.audit import audit
from ckptcost.first.questions.calibrate import calibrate
from ckptcost.first.questions.compare import compare
from ckptcost.first.questions.diff import diff
from ckptcost.first.questions.doctor import doctor
from ckptcost.first.questions.export import export
from ckptcost.first.questions.fits import fits
from ckptcost.first.questions.fleet import roll_up
from ckptcost.first.questions.gap import gap
from ckptcost.first.questions.lead import lead
from ckptcost.first.questions.measure import baseline, measure
from ckptcost.first.questions.model import model
from ckptcost.first.questions.optimize import optimize
from ckptcost.first.questions.price import price
from ckptcost.first.questions.probe import probe
from ckptcost.first.questions.review import review
from ckptcost.first.questions.sensitivity import sensitivity
from ckptcost.first.questions.simulate import simulate
from ckptcost.first.questions.solve import solve
from ckptcost.first.questions.sweep import grid

ROOT = Path(__file__).resolve().parents[3]
QUESTIONS: dict[str, Callable[..., Any]] = {
    "model": model,
    "sweep": grid,
    "simulate": simulate,
    "optimize": optimize,
    "solve": solve,
    "solve price": price,
    "compare": compare,
    "sensitivity": sensitivity,
    "audit": audit,
    "fits": fits,
    "lead": lead,
    "measure": measure,
    "measure baseline": baseline,
    "probe": probe,
    "calibrate": calibrate,
    "report": review,
    "export": export,
    "diff": diff,
    "fleet": roll_up,
    "fleet synthesize": synthesize,
    "doctor": doctor,
}
NO_QUESTION = {
    "screen": "opens a program",
    "run": "starts a job and stays beside it",
    "attach": "stays beside a job; `review` tells of the run",
    "runs": "names what is kept",
    "runs list": "names what is kept",
    "runs show": "names what is kept",
    "runs pack": "writes files",
    "serve-metrics": "a server",
    "selftest": "judges this program on this machine",
    "catalog": "shows what ships",
    "check": "recomputes a document: ckptcost.load_report and report.check",
    "init": "writes a template",
    "completion": "speaks to a shell",
    "man": "speaks to man",
}
OF_THE_SHELL = {
    "help": "said by the shell alone",
    "output": "where it is written",
    "format": "how it is written",
    "table": "which table of a CSV",
    "full": "how much of a text",
    "quiet": "what is said on the way",
    "json": "another word for -f json",
}
NOT_A_PARAMETER = {
    ("simulate", "seconds_at_most"): "a program's `note` ends it when it likes",
    ("compare", "scenario"): "one more of `scenarios`",
    ("audit", "strict"): "an exit code",
    ("export", "list"): "a listing instead",
    ("export", "force"): "Python is given the files' content",
    **{
        ("report", name): "of the statement under other factors, not of the run as it was"
        for name in [
            "case",
            "start",
            "grid",
            "grid_column",
            "grid_tz",
            "grid_unit",
            "contracts",
            "labels",
            "scenario",
        ]
    },
}
NO_FLAG = {
    "catalog": "a program may have read one already",
    "tell": "progress is shown by whoever asks",
    "note": "progress is shown by whoever asks",
    ("diff", "command"): "a document of a program tells no command",
    ("simulate", "every_run"): "asked for by `--table runs`",
    ("report", "need"): "`attach` has it, where the run ends",
    ("fleet synthesize", "start"): "of tests: other days",
    ("fleet synthesize", "failures_per_node_day"): "of tests: more failures",
}
OTHER_NAME = {("export", "source"): "sources", ("report", "source"): "run"}
LATER = {("export", "sources"), ("export", "to"), ("fleet", "store")}
"""needed, and missed by a line of our own where it is not given"""


def flags_of(command: str) -> dict[str, argparse.Action]:
    """By parameter; of two flags of one parameter the first."""
    found: dict[str, argparse.Action] = {}
    for action in parser_for(command)._actions:
        name = OTHER_NAME.get((command, action.dest), action.dest)
        found.setdefault(name, action)
    return found


def parameters_of(command: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(QUESTIONS[command]).parameters)


def test_every_command_has_a_question_or_a_reason():
    assert set(QUESTIONS) | set(NO_QUESTION) == {*COMMANDS, *VERBS}
    assert not set(QUESTIONS) & set(NO_QUESTION)


@pytest.mark.parametrize("command", QUESTIONS)
def test_every_flag_is_a_parameter(command):
    parameters = parameters_of(command)
    without = [
        name
        for name in flags_of(command)
        if name not in parameters and name not in OF_THE_SHELL
        if (command, name) not in NOT_A_PARAMETER
    ]
    assert without == []


@pytest.mark.parametrize("command", QUESTIONS)
def test_every_parameter_has_a_flag(command):
    flags = flags_of(command)
    without = [
        name
        for name in parameters_of(command)
        if name not in flags and name not in NO_FLAG and (command, name) not in NO_FLAG
    ]
    assert without == []


@pytest.mark.parametrize("command", QUESTIONS)
def test_defaults_are_the_same(command):
    parameters = parameters_of(command)
    for name, action in flags_of(command).items():
        if name not in parameters or (command, name) in LATER:
            continue
        default = parameters[name].default
        if default is inspect.Parameter.empty:
            assert action.required, name
        else:
            assert not action.required or action.nargs == "*", name
            assert (action.default or None) == (default or None), name


def test_no_reason_is_given_in_vain():
    for command, name in NOT_A_PARAMETER:
        assert name in flags_of(command), (command, name)
        assert name not in parameters_of(command), (command, name)
    for each in NO_FLAG:
        if isinstance(each, tuple):
            command, name = each
            assert name in parameters_of(command), each
            assert name not in flags_of(command), each


def test_a_flag_reaches_its_question():
    def question(scenario: Any = None, *, runs: int = 3, tell: Any = None) -> Any:
        return scenario, runs, tell

    options = argparse.Namespace(scenario="x", runs=5, output="o")
    assert answers.ask(question, options) == ("x", 5, None)
    assert answers.ask(question, options, runs=7, tell=print) == ("x", 7, print)


# ---- errors


def test_errors_name_parameters_that_there_are():
    known = {name for command in QUESTIONS for name in parameters_of(command)}
    known |= {action.dest for name in (*COMMANDS, *VERBS) for action in parser_for(name)._actions}
    known |= set(inspect.signature(gap).parameters)
    said = {
        (name, path.name)
        for path in (ROOT / "ckptcost").rglob("*.py")
        for name in re.findall(r'\bArgument\(\s*"(\w+)"', path.read_text("utf-8"))
    }
    assert len(said) > 40
    assert [each for each in sorted(said) if each[0] not in known] == []


@pytest.mark.parametrize(
    ("words", "said", "asked"),
    [
        (("simulate", "--limit", "5"), "--limit", lambda: simulate(limit="5")),
        (("simulate", "--trace-span", "5 h"), "--trace-span", lambda: simulate(trace_span="5 h")),
        (("model", "--set", "cluster.gpuz=1"), "--set", lambda: model(changes=["cluster.gpuz=1"])),
        (("model", "--budget", "usd"), "--budget", lambda: optimize(require="usd")),
        (("model", "--require", "usd"), "--require", lambda: optimize(require=["usd"])),
        (("model", "--saves", "0"), "--saves", lambda: model(saves=0)),
        (("solve", "write", "--for", "x"), "--for", lambda: solve("write", "x")),
        (("doctor", "--for", "1 ms"), "--for", lambda: doctor("1 ms")),
        (("measure", "--dir", "no-where"), "--dir no-where", lambda: measure(directory="no-where")),
        (("probe", ""), "DIR", lambda: probe("")),
        (("calibrate", "x", "--as", "a/b"), "--as", lambda: calibrate("x", "a/b")),
        (("lead", "last", "--tier", "nas-hdd"), "--tier", lambda: lead(run="last", tier="nas-hdd")),
    ],
)
def test_python_names_the_parameter_and_the_shell_its_flag(cli, words, said, asked):
    done = cli(*words)
    assert done.code == 2
    assert done.err.startswith(f"ckptcost: {said}: ")
    with pytest.raises(InputError) as caught:
        asked()
    place = caught.value.where or caught.value.key
    assert isinstance(place, Argument)
    assert str(caught.value).startswith(f"{place}: ")
    assert flag_of(parser_for(words[0]), place.name, words) == said.split()[0]


@pytest.mark.parametrize(
    "asked",
    [
        lambda: simulate(limit=60),
        lambda: simulate(trace="x", trace_span=60),
        lambda: measure(10),
        lambda: doctor(2.0),
        lambda: probe(".", size=10**9),
        lambda: price(against="nas-hdd", capex=500_000),
    ],
)
def test_a_bare_number_has_no_unit(asked):
    with pytest.raises(InputError, match="has no unit"):
        asked()


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "-s", "small-8b", "price"),
        ("measure", "--for", "1 s", "--baseline"),
        ("measure", "--baseline=yes"),
        ("fleet", "--synthesize", "4", "1", "new"),
    ],
    ids=" ".join,
)
def test_an_old_spelling_ends_with_the_new_one(cli, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli(*words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    (verb,) = (each for each in VERBS if each.split()[0] == words[0])
    assert f"ckptcost {verb}" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_a_help_of_its_own(verb, capsys):
    command, rest = command_of([*verb.split(), "--help"])
    assert (command, list(rest)) == (verb, ["--help"])
    with pytest.raises(SystemExit):
        parser_for(verb).parse_args(rest)
    assert capsys.readouterr().out.startswith(f"usage: ckptcost {verb} ")


def test_runs_alone_lists_them():
    assert command_of(["runs"]) == ("runs list", [])
    assert command_of(["runs", "-f", "csv"]) == ("runs list", ["-f", "csv"])
    assert command_of(["runs", "--help"])[0] == "runs"
    assert command_of(["model", "price"]) == ("model", ["price"])


# ---- what help costs


def test_help_of_no_command_loads_a_question():
    """Flags are read on every start: what answers is imported when something is asked."""
    code = f"""
import sys
from ckptcost.first.cli.main import parser_for
for command in {[*COMMANDS, *VERBS]!r}:
    parser_for(command).format_help()
print(*(name for name in sys.modules if name.startswith("ckptcost.")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name.split(".")[1] for name in done.stdout.split()}
    assert loaded == {"cli", "errors", "version"}
