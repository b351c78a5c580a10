"""What a type checker says of a user's script: nothing of what is right, and something on the line
of each call that is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """\
from pathlib import Path

import ckptcost

# right
report = ckptcost.model("small-8b", tier=["nas-hdd", "generic-pfs"], saves=[100, 200])
cost: float | None = report.statements[0].totals.cost.value
study = ckptcost.simulate(Path("job.toml"), runs=10, limit="60 days", inputs="pert")
titles: list[str] = [table.title for table in study.tables.values()]
ckptcost.optimize(mode="async", objective="usd", require=["goodput>=0.9", "usd<=10000"])
ckptcost.solve("write", "goodput>=0.9", "small-8b", changes={"cluster.gpus": 4096})
ckptcost.price(tier="object-store", against="flash-shared", capex="500000 USD")
ckptcost.compare(["small-8b", Path("other.toml")], changes=["cluster.gpus=64"], draws=256)
ckptcost.measure("30 s", meters="simulated", gpus="all", need=["gpu", "cpu"])
ckptcost.roll_up("store", "team", since="2026-11-01", top=3)
text = ckptcost.export([Path("a.json")], "prometheus", labels={"team": "infra"})["ckptcost.prom"]
ckptcost.lead(run="last").to_json().upper()
found = ckptcost.diff("a.json", "b.json", budget_change="usd<=5 %").difference
met: bool = found is not None and all(budget.met for budget in found.budgets)
ckptcost.load_report(Path("report.json")).to_json()
with ckptcost.window("save"):
    ckptcost.step()

# wrong
ckptcost.modell("small-8b")
ckptcost.model("small-8b", tiers=["nas-hdd"])
ckptcost.model(5)
report.statements[0].totals.kosten
ckptcost.simulate(runs="1000")
ckptcost.simulate(limit=60)
ckptcost.simulate(inputs="gaussian")
ckptcost.optimize(mode="asynchronous")
ckptcost.solve()
ckptcost.solve("price", against="flash-shared")
ckptcost.compare(variants=3)
ckptcost.measure(70.0)
ckptcost.doctor(rapl="turbo")
ckptcost.roll_up("store", "weekday")
ckptcost.export("a.json")
ckptcost.diff("a.json", "b.json", budget="usd<=5 %")
cost_text: str = ckptcost.lead("small-8b")
study.to_jason()
ckptcost.begin(step="three")
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy reports, by line."""
    file = tmp_path_factory.mktemp("user") / "script.py"
    file.write_text(SCRIPT, "utf-8")
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"),
            *("--config-file", "", "--cache-dir", str(ROOT / ".mypy_cache" / "user")),
            str(file),
        ],
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    found: dict[int, str] = {}
    for line in done.stdout.splitlines():
        place = re.match(r"script\.py:(\d+): error: (.*)", line)
        if place:
            found[int(place[1])] = place[2]
        else:
            assert re.match(r"script\.py:\d+: note: ", line), line
    return found


WRONG = SCRIPT.splitlines().index("# wrong") + 1
LINES = list(enumerate(SCRIPT.splitlines(), 1))


def test_what_is_right_passes(said):
    assert {number: text for number, text in said.items() if number <= WRONG} == {}


@pytest.mark.parametrize(("number", "line"), LINES[WRONG:], ids=[line for _, line in LINES[WRONG:]])
def test_what_is_wrong_is_told_on_its_line(said, number, line):
    assert number in said, line


def test_a_slip_is_told_with_the_name_that_is_meant(said):
    assert 'maybe "model"?' in said[WRONG + 1]


def test_the_names_for_type_checkers_are_those_that_there_are():
    import ast

    import ckptcost
    from ckptcost.first import api

    tree = ast.parse((ROOT / "ckptcost" / "__init__.py").read_text("utf-8"))
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    names = {
        alias.name
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names == set(ckptcost.__all__) - {"__version__"}
    assert set(api.__all__) <= names
    assert (ROOT / "ckptcost" / "py.typed").exists()


def test_a_question_keeps_its_name_and_its_words():
    import inspect

    import ckptcost
    from ckptcost.first.questions.model import model

    assert inspect.signature(ckptcost.model) == inspect.signature(model)
    assert ckptcost.model.__doc__ == model.__doc__
