"""Documents: what is written can be read, shown and recomputed; what is no document is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import pytest

from ckptcost.answer import Answer
from ckptcost.document import read_answer
from ckptcost.errors import InputError
from ckptcost.questions.compare import compare
from ckptcost.questions.interval import interval
from ckptcost.questions.model import model
from ckptcost.questions.need import need
from ckptcost.questions.report import report
from ckptcost.reading import json_schema
from ckptcost.write import html, markdown, text, to_csv
from tests.writers import answers

SCHEMA = Path(__file__).parents[2] / "docs/reference/answer-3.schema.json"
ASKED: dict[str, Callable[[], Answer]] = {
    "one case": lambda: model("small-8b", draws=256),
    "several cases": lambda: model(draws=256),
    "a grid": lambda: model("small-8b", over=["tier.write=2GB/s:40GB/s"], draws=64),
    "keep all": lambda: model("small-8b", set=["policy.keep_last=all"], draws=64),
    "two tiers": lambda: model("small-8b", set=["second_tier.id=object-store"], draws=64),
    "interval": lambda: interval("small-8b", draws=256),
    "compare": lambda: compare("small-8b", tier=["nas-hdd"], draws=256),
    "need": lambda: need("write", "small-8b", for_="goodput>=0.95", draws=256),
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
    checked = report(path, check=True)
    assert not checked.missed, text(checked)


@pytest.mark.parametrize("name", ASKED)
def test_documents_are_of_the_schema_that_is_shipped(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(asked(name).to_json()), json.loads(SCHEMA.read_text()))


def test_the_schema_that_is_shipped_is_made_from_the_types() -> None:
    """If not: python -m ckptcost.reading > docs/reference/answer-3.schema.json"""
    assert SCHEMA.read_text() == json_schema()


@pytest.mark.parametrize("make", [answers.whole, answers.intervals, answers.tiers])
def test_values_that_are_unknown_or_endless_survive(
    make: Callable[[], Answer], tmp_path: Path
) -> None:
    answer = make()
    document = read_answer(saved(answer, tmp_path))
    assert text(document.answer(), True, 80) == text(answer, True, 80)
    assert html(document.answer()) == html(answer)


def test_unknown_is_null_and_what_has_no_end_is_text() -> None:
    rows = json.loads(answers.tiers().to_json())["tables"]["cases"]["rows"]
    assert rows[2]["energy_kwh"] is None
    assert rows[1]["energy_kwh_high"] == rows[3]["stall_s"] == "inf"
    assert "who" not in rows[3]


def test_inputs_are_exact_and_stand_there_once() -> None:
    answer = asked("several cases")
    document = json.loads(answer.to_json())
    writes = [row for row in document["inputs"] if row["path"] == "tier.write"]
    assert len({row["value"] for row in writes}) == len(writes) == 4
    assert all(len(row["cases"]) == 2 for row in writes)
    price = answer.cases["nas-hdd, 100 saves"].figures()["cluster.gpu_price"]
    (row,) = [row for row in document["inputs"] if row["path"] == "cluster.gpu_price"]
    assert (row["value"], row["low"], row["high"]) == (price.value, price.low, price.high)
    assert row["cases"] == "all"


def test_keeping_all_checkpoints_has_no_end(tmp_path: Path) -> None:
    shown = report(saved(asked("keep all"), tmp_path))
    assert {each.figures()["policy.keep_last"].value for each in shown.cases.values()} == {inf}


# --- edited documents -----------------------------------------------------------------------------


def edit_a_number(document: dict[str, Any]) -> None:
    row = document["tables"]["cases"]["rows"][0]
    said = str(row["energy_kwh"])
    row["energy_kwh"] = float(said[:7] + str((int(said[7]) + 1) % 10) + said[8:])


def edit_a_sentence(document: dict[str, Any]) -> None:
    document["says"][0]["words"] = document["says"][0]["words"].replace("1", "2", 1) + "."


def edit_a_range(document: dict[str, Any]) -> None:
    document["tables"]["cases"]["rows"][0]["cost_usd_high"] *= 1.0001


def edit_an_input(document: dict[str, Any]) -> None:
    for row in document["inputs"]:
        if row["path"] == "run.work":
            row["value"] = row["low"] = row["high"] = 0.999 * row["value"]


def edit_a_low_end(document: dict[str, Any]) -> None:
    for row in document["inputs"]:
        if row["path"] == "cluster.gpu_price":
            row["low"] *= 0.9


def drop_a_row(document: dict[str, Any]) -> None:
    del document["tables"]["lines"]["rows"][2]


def change_an_option(document: dict[str, Any]) -> None:
    document["options"]["draws"] = 128


EDITS = [edit_a_number, edit_a_sentence, edit_a_range, edit_an_input, edit_a_low_end, drop_a_row]


@pytest.mark.parametrize("edit", [*EDITS, change_an_option])
def test_an_edited_document_is_found_out(
    edit: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    document = json.loads(asked("one case").to_json())
    edit(document)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document))
    checked = report(str(path), check=True)
    assert checked.missed
    assert "do not follow" in text(checked)


def test_every_difference_is_named(tmp_path: Path) -> None:
    document = json.loads(asked("one case").to_json())
    edit_a_range(document)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document))
    (row,) = report(str(path), check=True).table("differences").rows
    assert str(row[0]).endswith(".cost_usd_high")


def test_an_answer_without_inputs_cannot_be_recomputed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds nothing to recompute"):
        report(saved(replace(answers.whole(), question="audit"), tmp_path), check=True)


# --- what is no document --------------------------------------------------------------------------

GOOD = answers.whole().to_json()


def changed(**values: Any) -> str:
    return json.dumps(json.loads(GOOD) | values)


WRONG = {
    "empty": "",
    "no JSON": "what?",
    "a list": "[1, 2]",
    "nested": "[" * 200_000,
    "NaN": changed(draws=1).replace('"draws": 1', '"draws": NaN'),
    "too large a number": changed(draws=1).replace('"draws": 1', '"draws": 1e999'),
    "another schema": '{"schema": "ckptcost.answer/4"}',
    "first edition": '{"schema_name": "ckptcost.report", "schema_version": "2.0"}',
    "somebody else's": '{"schema": "https://example.org"}',
    "a text for a number": changed(draws="many"),
    "an unknown key": changed(surprise=1),
    "a table without columns": changed(tables={"a": {"title": "", "columns": [], "rows": []}}),
    "an unknown figure": changed(
        cases=["a"], inputs=[{"path": "tier.colour", "value": 1.0, "cases": "all"}]
    ),
    "an unknown case": changed(
        cases=["a"], inputs=[{"path": "tier.write", "value": 1.0, "cases": ["b"]}]
    ),
    "ends in the wrong order": changed(
        cases=["a"],
        inputs=[{"path": "tier.write", "value": 1.0, "low": 2.0, "high": 1.0, "cases": "all"}],
    ),
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
    if name == "first edition":
        assert "0.1" in error.value.problem


def test_a_file_that_is_too_large_or_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        report(str(tmp_path / "none.json"))
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(InputError, match="larger than 50 MB"):
        report(str(path))


def test_writing_a_document_imports_no_pydantic() -> None:
    code = (
        "import sys; from ckptcost.questions.model import model; model('small-8b').to_json();"
        " sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_document_of_one_case_is_small() -> None:
    assert len(asked("one case").to_json()) < 60_000
    assert len(html(asked("one case"))) < 60_000
