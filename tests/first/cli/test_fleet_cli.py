"""`ckptcost fleet` from the shell: a made-up fleet is written and read, in every format; targets,
slips, and what is said of each."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fleet_truth import Truth
from fleet_with_truth import fleet_with_truth
from whole_json import whole

from ckptcost.first.report.schema_file import schema_text

Cli = Callable[..., Any]
NODES, DAYS, PER_DAY = 24, 3, 16.0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("fleets") / "demo"
    return folder, fleet_with_truth(NODES, DAYS, str(folder), saves_per_day=PER_DAY, faults=True)


@pytest.fixture
def place(written: tuple[Path, Truth], monkeypatch: pytest.MonkeyPatch) -> Truth:
    folder, truth = written
    monkeypatch.chdir(folder.parent)
    return truth


def document(done: Any, code: int = 0) -> dict[str, Any]:
    assert done.code == code, done.err
    found: dict[str, Any] = whole(done.out)
    jsonschema.validate(found, json.loads(schema_text()))
    return found


def test_what_is_made_up_is_said(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("fleet", "synthesize", "12", "2", "made", "--seed", "7", "--saves-per-day", "12")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(
        r"made: 12 nodes, 2 days, \d+ jobs, \d+ checkpoints of \S+ [TP]B\.\n", done.out
    )
    files = sorted(file.relative_to("made") for file in Path("made").rglob("*.parquet"))
    again = cli("fleet", "synthesize", "12", "2", "other", "--saves-per-day", "12", "--seed", "8")
    assert again.code == 0
    assert sorted(file.relative_to("other") for file in Path("other").rglob("*.parquet")) != files


def test_text_is_the_answer_in_80_columns(cli: Cli, place: Truth) -> None:
    answer, done = cli("fleet", "demo"), cli("fleet", "demo", "--full")
    assert (answer.code, answer.err, done.code, done.err) == (0, "", 0, "")
    assert max(map(len, [*answer.out.splitlines(), *done.out.splitlines()])) <= 80
    assert len(answer.out.splitlines()) <= 40
    for text in ("A fleet of ", "SIMULATED", "By job", "Take care", "(NO_SITE)", "With --full: "):
        assert text in answer.out
    jobs = next(block for block in answer.out.split("\n\n") if block.startswith("By job"))
    assert re.search(r"^all ", jobs, re.M), "its total stays"
    worst = re.search(r"^The jobs that lost most\n.*\n(\S+)", done.out, re.M)
    assert worst is not None
    assert worst[1] in jobs
    for text in (
        "A fleet of ",
        "SIMULATED",
        "By job",
        "What it is made of",
        "Who was waited for",
        "Files set aside",
        "Take care",
        "(NO_SITE)",
    ):
        assert text in done.out
    assert f" {place.saves.windows:,} checkpoints of " in done.out


def test_faults_are_told_each_with_its_code(cli: Cli, place: Truth) -> None:
    found = document(cli("fleet", "demo", "-f", "json"))
    codes = sorted(row["code"] for row in found["tables"]["aside"]["rows"])
    assert codes == sorted(trouble.code for trouble in place.troubles if trouble.code != "NO_FILE")
    paths = {row["file"] for row in found["tables"]["aside"]["rows"]}
    assert {
        trouble.path for trouble in place.troubles if trouble.code not in ("NO_FILE", "DUPLICATE")
    } <= paths
    assert {warning["code"] for warning in found["warnings"]} >= set(codes) | {"NO_SITE"}
    missing = {row["host"] for row in found["tables"]["missing"]["rows"]}
    assert {trouble.host for trouble in place.troubles if trouble.code == "NO_FILE"} <= missing
    lines = {row["id"]: row for row in found["tables"]["lines"]["rows"]}
    assert lines["gpu_wait"]["gpu_hours"] == pytest.approx(place.saves.own_gpu_s / 3600)
    lacking = sum(
        amounts.own_gpu_s + amounts.wait_gpu_s
        for job in place.jobs
        for amounts in (job.lacking_saves, job.lacking_loads)
        if amounts.rows
    )
    assert 0.5 * lacking / 3600 < lines["missing_nodes"]["gpu_hours"] < 2.0 * lacking / 3600


@pytest.mark.parametrize("by", ["job", "team", "cluster", "model", "tier", "day"])
def test_every_grouping_in_csv(cli: Cli, place: Truth, by: str) -> None:
    done = cli("fleet", "demo", "--by", by, "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    true = place.by(by)
    assert [row["name"] for row in rows] == [*sorted(true), "all"]
    assert (
        int(rows[-1]["checkpoints"])
        == place.saves.windows
        == sum(int(row["checkpoints"]) for row in rows[:-1])
    )
    if by != "day":
        assert [int(row["checkpoints"]) for row in rows[:-1]] == [
            true[name].windows for name in sorted(true)
        ]
    assert {row["simulated"] for row in rows} == {"true"}


def test_markdown_and_a_page(cli: Cli, place: Truth) -> None:
    markdown = cli("fleet", "demo", "-f", "md").out
    assert markdown.startswith("# A fleet of ")
    assert "## What it is made of" in markdown
    page = cli("fleet", "demo", "--site", "usa", "-f", "html")
    assert page.code == 0
    assert page.out.lower().startswith("<!doctype html>")
    assert "What it is made of" in page.out


def test_one_table_of_a_csv(cli: Cli, place: Truth) -> None:
    rows = list(
        csv.DictReader(
            io.StringIO(cli("fleet", "demo", "-f", "csv", "--table", "worst", "--top", "3").out)
        )
    )
    assert len(rows) == 3
    hours = [float(row["gpu_hours"]) for row in rows]
    assert hours == sorted(hours, reverse=True)
    assert cli("fleet", "demo", "--table", "worst").code == 2
    unknown = cli("fleet", "demo", "-f", "csv", "--table", "moon")
    assert unknown.code == 2
    assert "moon" in unknown.err


def test_targets_and_budgets(cli: Cli, place: Truth) -> None:
    met = document(
        cli(
            "fleet", "demo", "--require", "goodput>=0.1", "--budget", "gpu_hours<=1e9", "-f", "json"
        )
    )
    assert [gate["met"] for gate in met["requirements"]] == [True, True]
    assert met["requirements"][1]["value"] == pytest.approx(
        3600 * met["tables"]["lines"]["rows"][-1]["gpu_hours"]
    )
    done = cli("fleet", "demo", "--require", "goodput>=0.9999", "--budget", "kwh<=1", "-f", "json")
    assert [gate["met"] for gate in document(done, code=3)["requirements"]] == [False, False]
    assert [line.split(",")[0] for line in done.err.splitlines()] == [
        "ckptcost: MISSED: goodput>=0.9999",
        "ckptcost: MISSED: kwh<=1",
    ]
    unknown = cli("fleet", "demo", "--budget", "usd<=1e12")
    assert (unknown.code, "it is unknown" in unknown.err) == (3, True)
    wall = cli("fleet", "demo", "--require", "wall<=1 d")
    assert (wall.code, "a fleet has no wall" in wall.err) == (2, True)
    assert cli("fleet", "demo", "--budget", "usd.p95<=1").code == 2


def test_days_and_jobs(cli: Cli, place: Truth) -> None:
    first, second, last = sorted(place.by("day"))
    found = document(
        cli("fleet", "demo", "--by", "day", "--since", second, "--until", second, "-f", "json")
    )
    assert found["question"]["since"] == found["question"]["until"] == second
    assert second in {row["name"] for row in found["tables"]["days"]["rows"]}
    assert last not in {row["name"] for row in found["tables"]["days"]["rows"]}
    jobs = [job.job for job in place.jobs[:2]]
    found = document(cli("fleet", "demo", "--job", jobs[0], "--job", jobs[1], "-f", "json"))
    assert found["question"]["jobs"] == jobs
    assert [row["name"] for row in found["tables"]["groups"]["rows"]] == [*sorted(jobs), "all"]
    slips = {
        ("--since", "yesterday"): "is no day",
        ("--since", last, "--until", first): "is after",
        ("--job", "moon"): "no job named",
        ("--top", "-1"): "negative",
        ("--top", "x"): "whole number",
    }
    for words, problem in slips.items():
        done = cli("fleet", "demo", *words)
        assert (done.code, done.out) == (2, "")
        assert problem in done.err


def test_schedulers_say_the_same(cli: Cli, place: Truth) -> None:
    pytest.importorskip("dask")
    first, other = (
        whole(cli("fleet", "demo", *more, "-f", "json").out)
        for more in ((), ("--scheduler", "threads"))
    )
    assert first == other  # the command too: which scheduler it was changes no number
    joined = whole(cli("fleet", "demo", "--scheduler=threads", "-f", "json").out)
    assert joined == first
    assert first["tool"]["command"] == ["ckptcost", "fleet", "demo", "-f", "json"]
    moon = cli("fleet", "demo", "--scheduler", "moon")
    assert (moon.code, "no scheduler named" in moon.err) == (2, True)


def test_folders_are_not_in_the_document(
    cli: Cli, place: Truth, written: tuple[Path, Truth], tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "fleet.json"
    out.parent.mkdir()
    done = cli("fleet", f"{written[0]}/", "-f", "json", "-o", str(out))
    assert (done.code, done.out) == (0, "")
    command = json.loads(out.read_text("utf-8"))["tool"]["command"]
    assert command == ["ckptcost", "fleet", "demo", "-f", "json", "-o", "fleet.json"]
    assert str(tmp_path) not in json.dumps(command)


def test_it_is_exported(cli: Cli, place: Truth, tmp_path: Path) -> None:
    file = str(tmp_path / "fleet.json")
    assert cli("fleet", "demo", "--site", "usa", "-f", "json", "-o", file).code == 0
    total = json.loads(Path(file).read_text("utf-8"))["tables"]["groups"]["rows"][-1]
    done = cli("export", file, "--to", "statement")
    energies = [s["totals"]["energy"]["value"] for s in whole(done.out)["statements"]]
    assert len(energies) == len(place.jobs)
    assert sum(energies) == pytest.approx(total["kwh"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "names no store"),
        (("nowhere",), "nowhere"),
        (("demo", "--faults"), "unrecognized arguments: --faults"),
        (("demo", "--by", "moon"), "invalid choice"),
        (("demo", "--site", "moon"), "moon"),
        (("--synthesize", "4", "1", "new"), "Say: ckptcost fleet synthesize NODES DAYS DIR"),
        (("synthesize", "4", "1", "new", "--seed", "x"), "whole number"),
        (("synthesize", "4", "1", "new", "--site", "usa"), "unrecognized arguments"),
        (("synthesize", "four", "1", "new"), "NODES"),
        (("synthesize", "4", "1.5", "new"), "DAYS"),
        (("synthesize", "0", "1", "new"), "is none"),
        (("synthesize", "4", "1", "demo"), "is not empty"),
    ],
)
def test_slips_are_told_and_nothing_is_written(
    cli: Cli, place: Truth, words: tuple[str, ...], problem: str
) -> None:
    done = cli("fleet", *words)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err
    assert "Traceback" not in done.err
    assert not Path("new").exists()


def test_progress_is_for_people_only(
    cli: Cli, place: Truth, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from ckptcost.first.cli import status

    assert cli("fleet", "demo").err == ""
    monkeypatch.setattr(status, "is_watched", lambda: True)
    read_ = cli("fleet", "demo").err
    assert read_.startswith("\rreading [")
    assert f"[{'#' * 40}] 100 %" in read_
    assert read_.endswith("\r\033[K")
    percents = [int(piece.split("]")[1].split()[0]) for piece in read_.split("\r")[1:-1]]
    assert percents == sorted(set(percents))
    assert "writing [" in cli("fleet", "synthesize", "4", "1", str(tmp_path / "w")).err
