"""Opening and writing from the screen: what can be opened, and one line where it cannot be
written."""

import errno
import json
import os
import re

import pytest

from ckptcost.catalog.store import Catalog
from ckptcost.errors import InputError, OutputError
from ckptcost.questions.model import model
from ckptcost.tui import files
from ckptcost.tui.desk import Desk

CATALOG = Catalog()
DESK = Desk(CATALOG)


def test_presets_are_listed_with_their_size_and_recent_files_first(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "gpt4-scale-2tb"\nname = "mine"\n[cluster]\ngpus = 256\n')
    grid = files.presets(CATALOG, [str(mine), str(mine), "llama31-405b-16k"])
    assert [row.key for row in grid.rows] == [str(mine), *sorted(CATALOG.ids("scenario"))]
    assert grid.rows[0].cells[1:] == ("mine", "2 TB", "256")


def test_a_recent_file_that_is_gone_is_told_not_hidden(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = files.presets(CATALOG, ["gone.toml"]).rows[0]
    assert row.tone == "bad"
    assert "gone.toml" in row.cells[1]


def test_opening_checks_first(tmp_path):
    assert files.opened(DESK, "llama31-405b-16k").base == "llama31-405b-16k"
    bad = tmp_path / "bad.toml"
    bad.write_text('extends = "gpt4-scale-2tb"\n[cluster]\ngpus = "lots"\n')
    with pytest.raises(InputError, match=r"cluster\.gpus"):
        files.opened(DESK, str(bad))
    with pytest.raises((InputError, OSError)):
        files.opened(DESK, "no-such-preset")


def test_a_scenario_is_saved_once_and_over_only_when_told(tmp_path):
    one = DESK.edited("cluster.gpus", "512")
    where = files.save_scenario(one, str(tmp_path / "job"))
    assert where.name == "job.toml"
    with pytest.raises(OutputError, match="there already"):
        files.save_scenario(one, str(where))
    files.save_scenario(one.edited("cluster.gpus", "64"), str(where), over=True)
    assert float(Desk(CATALOG, base=str(where)).resolved().scenario.cluster.gpus) == 64


def test_a_report_is_written_as_the_command_line_writes_it(tmp_path, cli):
    study = model(tier=["nas-hdd"], saves=[100]).study
    for ending, form in (("csv", "csv"), ("md", "md"), ("txt", "text")):
        where = files.write_view(study, str(tmp_path / f"out.{ending}"), DESK, "ckptcost model")
        told = cli("model", "--tier", "nas-hdd", "--saves", "100", "-f", form, "--full")
        assert where.read_text("utf-8") == told.out
    where = files.write_view(study, str(tmp_path / "out.json"), DESK, "ckptcost model")
    written = json.loads(where.read_text())
    assert (written["schema_name"], written["kind"]) == ("ckptcost.report", "model")


def test_a_study_is_written_as_the_command_line_writes_it(tmp_path, cli):
    from ckptcost.questions.optimize import optimize

    study = optimize(DESK.base, changes=DESK.settings(), catalog=CATALOG).study
    for ending, form in (("csv", "csv"), ("md", "md"), ("txt", "text")):
        where = files.write_view(study, str(tmp_path / f"out.{ending}"), DESK, "ckptcost optimize")
        assert where.read_text("utf-8") == cli("optimize", "-f", form, "--full").out
    where = files.write_view(study, str(tmp_path / "out.json"), DESK, "ckptcost optimize")
    assert json.loads(where.read_text()) == json.loads(cli("optimize", "-f", "json").out)


def test_a_page_is_written_of_any_answer(tmp_path, cli):
    from ckptcost.questions.compare import compare
    from ckptcost.questions.optimize import optimize

    study = model(tier=["nas-hdd"], saves=[100]).study
    where = files.write_view(
        study, str(tmp_path / "out.html"), DESK, "ckptcost model --tier nas-hdd --saves 100"
    )
    told = cli("model", "--tier", "nas-hdd", "--saves", "100", "-f", "html").out
    figures = re.compile(r'<data value="([^"]+)"')
    assert figures.findall(where.read_text("utf-8")) == figures.findall(told) != []
    compared = compare(DESK.base, variants=["policy.mode=async"], catalog=CATALOG).study
    assert (
        "<!doctype html>"
        in files.write_view(compared, str(tmp_path / "two.html"), DESK, "")
        .read_text("utf-8")
        .lower()
    )
    other = files.write_view(
        optimize(DESK.base, catalog=CATALOG).study, str(tmp_path / "none.html"), DESK, ""
    ).read_text("utf-8")
    assert "it holds no bill of its own" in other
    assert "best for time" in other


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no file is named"),
        (".", "is a folder"),
        ("no/such/folder/a.txt", "No such file"),
        ("a.docx", r"end the name in \.csv"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(name, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=why):
        files.write_view(model(tier=["nas-hdd"], saves=[1]).study, name, DESK, "")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_one_sentence():
    with pytest.raises(OutputError, match="No space left"):
        files.write_text("x" * 1000, "/dev/full", over=True)


def test_a_text_is_written_whole_and_over_only_when_told(tmp_path):
    out = tmp_path / "out.md"
    files.write_text("text", str(out))
    with pytest.raises(OutputError, match="there already"):
        files.write_text("other", str(out))
    assert out.read_text("utf-8") == "text"
    files.write_text("other", str(out), over=True)
    assert out.read_text("utf-8") == "other"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.ENOENT])
def test_why_it_could_not_be_written_is_one_line(tmp_path, monkeypatch, number):
    def refuse(pieces, target):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "write_whole", refuse)
    with pytest.raises(OutputError) as told:
        files.write_text("text", str(tmp_path / "out.md"))
    assert os.strerror(number) in str(told.value)
    assert "\n" not in str(told.value)
