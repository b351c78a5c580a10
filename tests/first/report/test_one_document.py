"""One document for every answer: what is written as JSON is shown again as it was, in every format,
and holds against itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUN = str(ROOT / "data" / "traces" / "simulated-8gpu.jsonl")
QUESTIONS = {
    "model": "model --tier nas-hdd --tier generic-pfs --saves 10 --saves 100 --draws 64"
    " --against ddn-exascaler-40 --require goodput>=0.1",
    "simulation": "simulate -s small-8b --runs 20",
    "optimum": "optimize -s small-8b --draws 64",
    "solution": "solve write -s small-8b --for goodput>=0.9",
    "comparison": "compare small-8b opt-175b --draws 64",
    "sensitivity": "sensitivity -s small-8b --draws 64 --top 3",
    "audit": "audit micron-2026",
    "measurement": f"report {RUN}",
    "gap": f"compare {RUN} small-8b",
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_document_is_shown_as_the_answer_was(cli, tmp_path, kind):
    words, file = QUESTIONS[kind].split(), str(tmp_path / "report.json")
    assert cli(*words, "-f", "json", "-o", file).code == 0
    assert json.loads(Path(file).read_text())["kind"] == kind
    for form in ([], ["--full"], ["-f", "md"], ["-f", "csv"]):
        told, again = cli(*words, *form), cli("report", file, *form)
        assert (again.code, again.out) == (0, told.out), form
    again = cli("report", file, "-f", "json")
    assert again.out == Path(file).read_text()
    assert cli("check", file).code == 0


@pytest.fixture
def difference(cli, tmp_path) -> list[str]:
    files = [str(tmp_path / f"{tier}.json") for tier in ("nas-hdd", "generic-pfs")]
    for file in files:
        cli("model", "--tier", Path(file).stem, "--draws", "64", "-f", "json", "-o", file)
    return ["diff", *files, "--budget-change", "usd<=5 %"]


def test_a_difference_too(cli, tmp_path, difference):
    file = str(tmp_path / "diff.json")
    cli(*difference, "-f", "json", "-o", file)
    for form in ([], ["-f", "md"], ["-f", "csv"]):
        assert cli("report", file, *form).out == cli(*difference, *form).out, form
    assert cli("check", file).code == 0


def test_statements_too(cli, tmp_path):
    file = str(tmp_path / "statement.json")
    assert cli("export", RUN, "--to", "statement", "-o", file).code == 0
    assert cli("report", file, "-f", "json").out == Path(file).read_text()
    assert cli("check", file).code == 0


@pytest.mark.parametrize("name", ["ckptcost.study", "ckptcost.statement", "ckptcost.diff"])
def test_documents_of_before_are_named_in_one_line(cli, tmp_path, name):
    file = tmp_path / "old.json"
    file.write_text(json.dumps({"schema_name": name, "schema_version": "1.0"}))
    for words in (["report"], ["check"], ["export", "--to", "prometheus"], ["diff", str(file)]):
        done = cli(words[0], str(file), *words[1:])
        assert (done.code, done.out) == (2, "")
        assert f"{name} '1.0'" in done.err
        assert "ckptcost.report 2.x" in done.err
        assert len(done.err.splitlines()) <= 2


def test_a_newer_minor_version_is_read_without_what_it_adds(cli, tmp_path):
    file = tmp_path / "report.json"
    cli("model", "--tier", "nas-hdd", "--draws", "64", "-f", "json", "-o", str(file))
    shown = cli("report", str(file)).out
    raw = json.loads(file.read_text())
    raw |= {"schema_version": "2.9", "mood": "fine"}
    raw["statements"][0]["mood"] = "fine"
    file.write_text(json.dumps(raw))
    assert cli("report", str(file)).out == shown
    raw["schema_version"] = "2.0"
    file.write_text(json.dumps(raw))
    assert cli("report", str(file)).code == 2


def _without_columns(raw: dict) -> None:
    table = raw["tables"]["cases"]
    for each in (table["columns"], *table["rows"]):
        del each["case"]


BROKEN = {
    "no tables": lambda raw: raw.update(tables={}),
    "no cases": lambda raw: raw["tables"].pop("cases"),
    "no row": lambda raw: raw["tables"]["cases"].update(rows=[]),
    "no bill": lambda raw: raw["tables"].pop("bill"),
    "a cell": lambda raw: raw["tables"]["cases"]["rows"][0].pop("tier"),
    "a column": _without_columns,
    "no statement": lambda raw: raw.update(statements=[]),
    "no scenario": lambda raw: raw.update(scenarios=[]),
    "no question": lambda raw: raw.update(question={}),
    "no schedule": lambda raw: raw["statements"][0].update(schedule=None),
    "no draws": lambda raw: raw["statements"][0].update(drawn=None),
    "no ledger": lambda raw: raw["statements"][0].update(allocated=None),
    "no difference": lambda raw: raw.update(kind="difference"),
    "another kind": lambda raw: raw.update(kind="statements"),
}


@pytest.fixture(scope="module")
def model() -> dict:
    import ckptcost

    return json.loads(ckptcost.model(tier=["nas-hdd", "generic-pfs"], draws=64).to_json())


@pytest.mark.parametrize("what", BROKEN)
def test_a_document_that_lacks_a_part_of_its_kind_is_refused(cli, tmp_path, model, what):
    raw, file = json.loads(json.dumps(model)), tmp_path / "broken.json"
    BROKEN[what](raw)
    file.write_text(json.dumps(raw))
    ways = [["report"], ["report", "-f", "html"], ["report", "-f", "csv"], ["check"]]
    ways += [["export", "--to", "statement"], ["export", "--to", "statement", "--case", "nas-hdd"]]
    for words in ways:
        done = cli(words[0], str(file), *words[1:])
        assert (done.code, done.out) == (2, ""), words
        assert "broken.json" in done.err
        assert len(done.err.splitlines()) <= 2


@pytest.mark.parametrize("words", [["check"], ["report"], ["export", "--to", "statement"]])
def test_the_rows_of_a_sweep_are_told_to_be_that(cli, tmp_path, words):
    file = tmp_path / "sweep.json"
    made = cli(
        "sweep",
        "--over",
        "tier=nas-hdd,flash-shared",
        "-s",
        "small-8b",
        "-f",
        "json",
        "-o",
        str(file),
    )
    assert made.code == 0, made.err
    done = cli(words[0], str(file), *words[1:])
    assert (done.code, done.out) == (2, "")
    assert "but the rows of a sweep" in done.err


@pytest.fixture(scope="module")
def dated(tmp_path_factory) -> dict:
    """A statement with rows of time."""
    import ckptcost
    from ckptcost.first.questions.statements import statement_document
    from ckptcost.first.report.statements.reading import Placing

    file = tmp_path_factory.mktemp("dated") / "plan.json"
    plan = ckptcost.model("small-8b", tier="nas-hdd", changes=["run.work=3 hours"], draws=64)
    file.write_text(plan.to_json())
    placing = Placing(start="2026-01-01")
    return json.loads(statement_document([str(file)], placing).to_json())


OF_TIME = {
    "is no component": lambda s: s["series"]["component"].__setitem__(0, "nobody"),
    "rows of '', which is no component": lambda s: s["series"]["component"].__setitem__(0, ""),
    ": is more than 1e+200. it was changed": lambda s: next(
        f for f in s["factors"] if isinstance(f["value"], float)
    ).update(value=1e308),
    "is more than 1e+200": lambda s: s["totals"]["energy"].update(high=1e308),
    "a row of energy_kwh is more": lambda s: s["series"]["energy_kwh"].__setitem__(0, 1e308),
    "a row of embodied_kgco2e is more": lambda s: s["series"]["embodied_kgco2e"].__setitem__(
        0, -1e308
    ),
    "a row of 1e+300 s": lambda s: s["series"]["duration_s"].__setitem__(0, 1e300),
    "a row of -1 s": lambda s: s["series"]["duration_s"].__setitem__(0, -1.0),
    "a period of 31": lambda s: s.update(period_start="1013-01-01T00:00:00Z"),
    "of a length of": lambda s: s.update(period_start="2025-12-31T00:00:00Z"),
    "rows, start has": lambda s: s["series"]["cost_usd"].pop(),
    "statements.0.series.start: 'noon' is no instant": lambda s: s["series"]["start"].__setitem__(
        1, "noon"
    ),
    "statements.0.period_end: '0001-01-01T00:00+14:00' is no instant": lambda s: s.update(
        period_end="0001-01-01T00:00+14:00"
    ),
}


@pytest.mark.parametrize("named", OF_TIME)
def test_rows_of_time_are_whole_and_of_its_own_lines(cli, tmp_path, dated, named):
    raw, file = json.loads(json.dumps(dated)), tmp_path / "broken.json"
    OF_TIME[named](raw["statements"][0])
    file.write_text(json.dumps(raw))
    for words in (["report"], ["check"], ["export", "--to", "parquet"]):
        done = cli(words[0], str(file), *words[1:])
        assert (done.code, done.out) == (2, ""), words
        assert named in done.err


@pytest.mark.parametrize("digits", ["1e999", "-2.5E+400", "9" * 400 + ".0"])
def test_a_number_that_is_too_large_is_none(cli, tmp_path, model, digits):
    """JSON has no infinity, and Python makes one of it without a word."""
    file = tmp_path / "large.json"
    there = json.loads(json.dumps(model))
    there["question"]["odd"] = "HERE"
    file.write_text(json.dumps(there).replace('"HERE"', digits))
    for words in (["report"], ["check"]):
        done = cli(*words, str(file))
        assert (done.code, done.out) == (2, ""), words
        assert "too large for a number" in done.err


def test_heads_of_columns_and_codes_tell_a_terminal_nothing(cli, tmp_path, model):
    raw, file = json.loads(json.dumps(model)), tmp_path / "odd.json"
    odd = "\x1b[31mred\x07\u202e"
    for table in raw["tables"].values():
        for column in table["columns"].values():
            column["label"] = odd
    bill = raw["tables"]["one_save"]
    bill["columns"][odd] = {"label": odd, "unit": ""}
    for row in bill["rows"]:
        row[odd] = odd
    raw["warnings"] = [{"code": odd, "message": odd}]
    file.write_text(json.dumps(raw))
    ways = [[], ["--full"], ["-f", "md"], ["-f", "csv"], ["-f", "html"]]
    for words in [*ways, ["-f", "csv", "--table", "one_save"]]:
        done = cli("report", str(file), *words)
        assert done.code == 0, done.err
        assert not {"\x1b", "\x07", "\u202e"} & set(done.out), words


def test_a_word_in_a_column_of_numbers_is_refused_whatever_its_unit(cli, tmp_path, model):
    raw, file = json.loads(json.dumps(model)), tmp_path / "odd.json"
    units = set()
    for name, table in raw["tables"].items():
        for column, about in table["columns"].items():
            if about["unit"] in units | {"", "@unit", "@difference"} or not table["rows"]:
                continue
            units.add(about["unit"])
            was, table["rows"][0][column] = table["rows"][0][column], "soon"
            file.write_text(json.dumps(raw))
            table["rows"][0][column] = was
            done = cli("report", str(file))
            assert (done.code, done.out) == (2, "")
            assert f"tables.{name}.rows.0.{column}: is no number" in done.err
    assert {"s", "bytes", "kWh", "USD"} <= units


REFERENCES = {
    "statements.0.rests": lambda s: s["rests"].append(s["rests"][3]),
    "list 99 of factors": lambda s: s["totals"]["checkpoints"].update(rests=99),
}


@pytest.mark.parametrize("named", REFERENCES)
def test_figures_point_at_one_list_of_factors_that_is_there(cli, tmp_path, model, named):
    raw, file = json.loads(json.dumps(model)), tmp_path / "broken.json"
    REFERENCES[named](raw["statements"][0])
    file.write_text(json.dumps(raw))
    for words in (["report"], ["check"], ["export", "--to", "statement"]):
        done = cli(words[0], str(file), *words[1:])
        assert (done.code, done.out) == (2, ""), words
        assert named in done.err
