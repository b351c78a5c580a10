"""One document for every kind of answer: its schema, its views, and that they agree."""

from __future__ import annotations

import csv
import io
import json
import pickle

import jsonschema
import pytest

import ckptcost
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError
from ckptcost.first.report import study_views
from ckptcost.first.report.build import NOT_HASHED, build
from ckptcost.first.report.canonical import sha256
from ckptcost.first.report.schema_file import schema_text
from ckptcost.first.report.study import Column, Later, Study, Table, cell, shown_cells

SCHEMA = json.loads(schema_text())
LLAMA = ["-s", "llama31-405b-16k"]
COMMANDS = {
    "model": ["model", "--against", "hdd-network", "--require", "goodput>=0.99"],
    "simulation": [
        "simulate",
        *LLAMA,
        "--runs",
        "50",
        "--inputs",
        "pert",
        "--require",
        "goodput>=0.99",
        "--timeline",
        "3",
    ],
    "optimum": ["optimize", *LLAMA, "--mode", "both", "--budget", "usd<=1"],
    "solution": ["solve", "write", *LLAMA, "--for", "goodput>=0.9"],
    "comparison": ["compare", *LLAMA, "--with", "policy.mode=async", "--require", "kwh<=1"],
    "sensitivity": ["sensitivity", *LLAMA],
    "audit": ["audit", "ddn-2025"],
}


@pytest.fixture(scope="module")
def documents(request):
    from ckptcost.first.cli.main import main

    found = {}
    capture = request.getfixturevalue("tmp_path_factory").mktemp("studies")
    for kind, words in COMMANDS.items():
        file = capture / f"{kind}.json"
        assert main([*words, "-f", "json", "-o", str(file)]) in (0, 3)
        found[kind] = json.loads(file.read_text("utf-8"))
    return found


@pytest.mark.parametrize("kind", COMMANDS)
def test_it_satisfies_the_schema(documents, kind):
    document = documents[kind]
    jsonschema.validate(document, SCHEMA)
    assert document["kind"] == kind
    assert document["findings"] or kind == "comparison"


@pytest.mark.parametrize("kind", COMMANDS)
def test_its_hash_covers_the_result(documents, kind):
    document = documents[kind]
    body = {key: value for key, value in document.items() if key not in NOT_HASHED}
    assert sha256(body) == document["reproducibility"]["result_sha256"]


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_row_has_every_column_and_nothing_else(documents, kind):
    for table in documents[kind]["tables"].values():
        for row in table["rows"]:
            assert list(row) == list(table["columns"])


@pytest.mark.parametrize("kind", COMMANDS)
def test_csv_is_the_same_table(documents, cli, kind):
    for name, table in documents[kind]["tables"].items():
        done = cli(*COMMANDS[kind], "-f", "csv", "--table", name)
        header, *rows = csv.reader(io.StringIO(done.out))
        assert len(header) == len(table["columns"])
        assert len(rows) == len(table["rows"])
        for cells, row in zip(rows, table["rows"], strict=True):
            for text, value in zip(cells, row.values(), strict=True):
                if value is None:
                    assert text == ""
                elif isinstance(value, bool):
                    assert text == str(value).lower()
                elif isinstance(value, str):
                    assert text.lstrip("'") == value.lstrip("'")
                else:
                    assert float(text) == value


@pytest.mark.parametrize("kind", COMMANDS)
def test_people_get_the_same_findings(documents, cli, kind):
    text = " ".join(cli(*COMMANDS[kind], "--full").out.split())
    markdown = cli(*COMMANDS[kind], "-f", "md").out
    for finding in documents[kind]["findings"]:
        assert " ".join(finding.split()) in text
        assert finding in markdown


@pytest.mark.parametrize("kind", COMMANDS)
def test_text_is_80_columns_wide(cli, kind):
    for full in ([], ["--full"]):
        text = cli(*COMMANDS[kind], *full).out
        assert [line for line in text.splitlines() if len(line) > 80] == []


def test_targets_stand_in_the_document(documents):
    [gate] = documents["optimum"]["requirements"]
    assert (gate["text"], gate["measure"], gate["met"], gate["unit"]) == (
        "usd<=1",
        "usd",
        False,
        "usd",
    )
    assert gate["value"] > 1e6


def test_python_gives_what_the_command_gives(documents):
    study = ckptcost.simulate(
        "llama31-405b-16k", runs=50, inputs="pert", require="goodput>=0.99", timeline=3
    )
    mine, theirs = json.loads(study.to_json()), documents["simulation"]
    assert mine["reproducibility"]["result_sha256"] == theirs["reproducibility"]["result_sha256"]
    for name in ("optimize", "solve", "compare", "sensitivity", "audit"):
        assert callable(getattr(ckptcost, name))
    assert (
        ckptcost.optimize("llama31-405b-16k", mode="both", require="usd<=1")
        .to_frame("regret")
        .shape[0]
        >= 4
    )
    assert ckptcost.solve("write", "goodput>=0.9", "llama31-405b-16k").kind == "solution"
    assert ckptcost.price(tier="generic-pfs", against="ddn-exascaler-40").kind == "solution"
    assert ckptcost.compare("llama31-405b-16k", variants="policy.mode=async").kind == "comparison"
    assert ckptcost.compare(["llama31-405b-16k", "opt-175b"]).kind == "comparison"
    assert ckptcost.sensitivity("llama31-405b-16k", of="usd").kind == "sensitivity"
    assert ckptcost.audit("ddn-2025").kind == "audit"


TWO = (Column("name", "name"), Column("value", "value", "kWh"))


def _study(rows, columns=TWO, **more):
    return Study("audit", "title", [], {}, [Table("only", "Only", columns, rows, **more)], [])


def test_unknown_is_a_dash_a_null_and_an_empty_cell():
    study = _study(
        [
            {"name": "a", "value": None},
            {"name": "b", "value": float("nan")},
            {"name": "c", "value": 0.0},
        ]
    )
    assert [row[1] for row in shown_cells(study.tables[0])[1]] == ["-", "-", "0"]
    assert [row["value"] for row in build(study, Catalog()).tables["only"].rows] == [
        None,
        None,
        0.0,
    ]
    assert study_views.to_csv(study).splitlines()[1:] == ["a,", "b,", "c,0.0"]


def test_a_cell_is_never_a_formula():
    study = _study([{"name": "=1+1", "value": 1.0}, {"name": "@x", "value": 1.0}])
    assert study_views.to_csv(study).splitlines()[1:] == ["'=1+1,1.0", "'@x,1.0"]


def test_a_header_says_its_unit():
    columns = (
        Column("name", "n"),
        Column("energy", "e", "kWh"),
        Column("wall_s", "w", "s"),
        Column("kwh", "k", "kWh"),
        Column("p", "p", "share"),
    )
    assert study_views.to_csv(_study([], columns)) == "name,energy_kwh,wall_s,kwh,p\n"


def test_hidden_tables_and_columns_are_in_json_only():
    columns = (Column("name", "name"), Column("more", "more", "1", shown=False))
    study = _study([{"name": "a", "more": 2.5}], columns, shown=False)
    assert "Only" not in study_views.text(study)
    assert shown_cells(study.tables[0])[0] == ["name"]
    assert build(study, Catalog()).tables["only"].rows == [{"name": "a", "more": 2.5}]


def test_each_unit_has_its_way_to_be_shown():
    shown = {
        unit: cell(7200.0, unit)
        for unit in ("1", "count", "share", "s", "bytes", "bytes_per_s", "W", "kWh", "USD")
    }
    assert shown == {
        "1": "7,200",
        "count": "7,200",
        "share": "720,000 %",
        "s": "7,200 s",
        "bytes": "7.2 kB",
        "bytes_per_s": "7.2 kB/s",
        "W": "7,200",
        "kWh": "7,200",
        "USD": "7,200",
    }
    assert (cell(False, "bool"), cell(-7200.0, "s"), cell(-200_000.0, "s")) == (
        "no",
        "-7,200 s",
        "-2.31 d",
    )


def test_a_table_that_is_not_there(cli):
    done = cli(*COMMANDS["simulation"], "-f", "csv", "--table", "outcom")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'outcome'" in done.err
    assert cli(*COMMANDS["simulation"], "--table", "outcome").code == 2


def test_rows_that_are_made_later_are_made_once_and_are_rows_like_others():
    made = []

    def make():
        made.append(1)
        return [{"a": 1.0}, {"a": 2.0}, {"a": 3.0}]

    rows = Later(make)
    table = Table("t", "T", (Column("a", "a", "J"),), rows, shown=False)
    study = Study("measurement", "T", [], {}, [table], [])
    assert "3" not in study_views.text(study)
    assert made == [], "what no view shows is not worked out"
    assert rows[1] == {"a": 2.0}
    assert rows[1:] == [{"a": 2.0}, {"a": 3.0}]
    assert (len(rows), list(rows)) == (3, make())
    assert rows == make() == Later(make)
    assert pickle.loads(pickle.dumps(rows)) == make()
    assert study_views.to_csv(study, "t").split() == ["a_j", "1.0", "2.0", "3.0"]
    assert len(made) == 5, "once by itself, and each time that was asked for here"


def test_what_has_no_table_has_no_csv():
    with pytest.raises(InputError, match="no table in it"):
        study_views.to_csv(Study("runs", "Runs", [], {}, [], []))
