"""Documents: what is written can be read, shown and recomputed; what is no document is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ckptcost.answer import Answer
from ckptcost.errors import InputError
from ckptcost.questions.compare import compare
from ckptcost.questions.interval import interval
from ckptcost.questions.model import model
from ckptcost.questions.need import need
from ckptcost.questions.report import report
from ckptcost.questions.simulate import simulate
from ckptcost.reading import json_schema
from ckptcost.write import html, markdown, text, to_csv
from tests.writers import answers

SCHEMA = Path(__file__).parents[2] / "docs/reference/answer-3.schema.json"
ASKED: dict[str, Callable[[], Answer]] = {
    "one case": lambda: model("small-8b", draws=256),
    "several cases": lambda: model(draws=256),
    "a grid": lambda: model("small-8b", over=["tier.write=2GB/s:40GB/s"], draws=64),
    "keep all": lambda: model("small-8b", set=["policy.keep_last=all"], draws=64),
    "interval": lambda: interval("small-8b", draws=256),
    "compare": lambda: compare("small-8b", tier=["nas-hdd"], draws=256),
    "simulate": lambda: simulate("small-8b", runs=100, draws=64),
    "need": lambda: need("write", "small-8b", for_="goodput>=0.95", draws=256),
    **{make.__name__: make for make in (answers.whole, answers.intervals, answers.tiers)},
}
"""small jobs and few draws: what is tested is the document"""


@cache
def asked(name: str) -> Answer:
    return ASKED[name]()


def saved(answer: Answer, tmp_path: Path) -> str:
    path = tmp_path / "answer.json"
    path.write_text(answer.to_json())
    return str(path)


@pytest.mark.parametrize("name", ASKED)
def test_a_saved_answer_is_shown_as_it_was_printed(name: str, tmp_path: Path) -> None:
    answer = asked(name)
    path = saved(answer, tmp_path)
    shown = report(path)
    for written in (text, markdown, to_csv, html):
        for detail in (False, True):
            assert written(shown, detail) == written(answer, detail)
    assert shown.to_json() == answer.to_json()
    assert shown.cases == answer.cases
    if answer.cases:
        assert not report(path, check=True).missed
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(answer.to_json()), json.loads(SCHEMA.read_text()))


def test_the_schema_that_is_shipped_is_made_from_the_types() -> None:
    """If not: python -m ckptcost.reading > docs/reference/answer-3.schema.json"""
    assert SCHEMA.read_text() == json_schema()


def test_unknown_is_null_and_what_has_no_end_is_text() -> None:
    rows = json.loads(answers.tiers().to_json())["tables"]["cases"]["rows"]
    assert rows[2]["energy_kwh"] is None
    assert rows[1]["energy_kwh_high"] == rows[3]["stall_s"] == "inf"
    assert "who" not in rows[3]


def test_inputs_are_exact_and_stand_there_once() -> None:
    answer = asked("several cases")
    document = json.loads(answer.to_json())
    writes = [row for row in document["inputs"] if row["path"] == "tier.write"]
    assert [len(row["cases"]) for row in writes] == [2, 2, 2, 2]
    price = answer.cases["nas-hdd, 100 saves"].figures()["cluster.gpu_price"]
    (row,) = [row for row in document["inputs"] if row["path"] == "cluster.gpu_price"]
    assert (row["value"], row["low"], row["high"]) == (price.value, price.low, price.high)
    assert row["cases"] == "all"


# --- edited documents -----------------------------------------------------------------------------


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], Any]] = {
    "cost_usd_high": (lambda d: d["tables"]["cases"]["rows"][0], lambda x: x * 1.000001),
    "words": (lambda d: d["says"][0], lambda x: x + "."),
    "rows": (lambda d: d["tables"]["lines"], lambda x: x[:2] + x[3:]),
    "draws": (lambda d: d["options"], lambda _: 128),
    "value": (lambda d: of_input(d, "run.work"), lambda x: x * 0.999),
    "low": (lambda d: of_input(d, "cluster.gpu_price"), lambda x: x * 0.9),
}
"""what stands where, and what somebody makes of it"""


def of_input(document: dict[str, Any], path: str) -> Any:
    return next(row for row in document["inputs"] if row["path"] == path)


@pytest.mark.parametrize("key", EDITS)
def test_an_edited_document_is_found_out(key: str, tmp_path: Path) -> None:
    document = json.loads(asked("one case").to_json())
    place, change = EDITS[key]
    place(document)[key] = change(place(document)[key])
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document))
    checked = report(str(path), check=True)
    assert "do not follow" in checked.missed[0]
    if key == "cost_usd_high":
        (row,) = checked.table("differences").rows
        assert str(row[0]).endswith(".cost_usd_high")


def test_an_answer_without_inputs_cannot_be_recomputed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds nothing to recompute"):
        report(saved(replace(answers.whole(), question="audit"), tmp_path), check=True)


# --- what is no document --------------------------------------------------------------------------

GOOD = answers.whole().to_json()


def changed(**values: Any) -> str:
    return json.dumps(json.loads(GOOD) | values)


def with_input(**values: Any) -> str:
    row = {"path": "tier.write", "value": 1.0, "cases": "all"}
    return changed(cases=["a"], inputs=[row | values])


WRONG = {
    "no JSON": "what?",
    "a list": "[1, 2]",
    "nested": "[" * 200_000,
    "NaN": changed(draws=1).replace('"draws": 1', '"draws": NaN'),
    "another schema": '{"schema": "ckptcost.answer/4"}',
    "first edition": '{"schema_name": "ckptcost.report", "schema_version": "2.0"}',
    "an unknown key": changed(surprise=1),
    "a table without columns": changed(tables={"a": {"title": "", "columns": [], "rows": []}}),
    "an unknown figure": with_input(path="tier.colour"),
    "an unknown case": with_input(cases=["b"]),
    "ends in the wrong order": with_input(low=2.0, high=1.0),
    "a case without a scenario": changed(cases=["a"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_answer_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(WRONG[name])
    with pytest.raises(InputError) as error:
        report(str(path))
    assert "\n" not in error.value.problem
    assert len(error.value.problem) < 200


def test_writing_a_document_imports_no_pydantic() -> None:
    code = (
        "import sys; from ckptcost.questions.model import model; model('small-8b').to_json();"
        " sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["one case", "interval", "compare"])
def test_pages_and_documents_are_small(name: str) -> None:
    assert len(html(asked(name))) < 60_000
    assert len(asked(name).to_json()) < 60_000
