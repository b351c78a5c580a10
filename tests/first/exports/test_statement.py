"""The statement itself, by the validator that others would use."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from statements import document, export_text, statement, with_fields

from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import FORMATS, exported
from ckptcost.first.report.read import read
from ckptcost.first.report.schema_file import FILE as SCHEMA


def judged(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_schema_is_one():
    assert judged("--check-metaschema", str(SCHEMA)).returncode == 0


@pytest.mark.parametrize(
    "made",
    [
        document(),
        document(
            statement(dated=False),
            statement(run_id="b" * 8, kind="measured", grid=None, market=None),
        ),
    ],
)
def test_what_is_exported_is_valid(made, tmp_path):
    (content,) = exported(made, "statement").values()
    file = tmp_path / "statement.json"
    file.write_text("".join(content), "utf-8")
    done = judged("--schemafile", str(SCHEMA), str(file))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "slip",
    [{"unit": "MWh"}, {"value": "12"}, {"more": 1}, {"interval": "p1-p99"}],
    ids=["unit", "text", "unknown key", "interval"],
)
def test_a_slip_is_refused(slip, tmp_path):
    raw = json.loads(document().to_json())
    raw["statements"][0]["totals"]["energy"] |= slip
    file = tmp_path / "statement.json"
    file.write_text(json.dumps(raw), "utf-8")
    assert judged("--schemafile", str(SCHEMA), str(file)).returncode == 1


@pytest.mark.parametrize(
    ("slip", "place"),
    [({"more": 1}, "statements.0.totals.energy.more"), ({"value": 12.0}, "result_sha256")],
    ids=["unknown key", "another number"],
)
def test_what_was_changed_by_hand_is_refused_with_its_place_and_what_to_do(slip, place, tmp_path):
    raw = json.loads(document().to_json())
    file = tmp_path / "statement.json"
    file.write_text(json.dumps(raw), "utf-8")
    assert read(str(file)).kind == "statements"
    raw["statements"][0]["totals"]["energy"] |= slip
    file.write_text(json.dumps(raw), "utf-8")
    with pytest.raises(InputError, match="write it again, or take the original") as refused:
        read(str(file))
    assert place in str(refused.value)


@pytest.mark.parametrize("name", FORMATS)
def test_no_statement_no_export(name):
    with pytest.raises(InputError, match="holds no statement"):
        exported(document().model_copy(update={"statements": []}), name)


def test_half_a_period_is_none():
    with pytest.raises(InputError, match="needs to know when the run is"):
        export_text(with_fields(statement(), period_end=None, series=None), "codecarbon")
