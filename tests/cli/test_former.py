"""Which command lines the first edition still answers, and in which words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ckptcost.former import translated

NEW, OLD = "new.json", "old.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with an answer of each edition, a recording and a job."""
    monkeypatch.chdir(tmp_path)
    Path(NEW).write_text(json.dumps({"schema": "ckptcost.answer/3"}), encoding="utf-8")
    for name in (OLD, "older.json"):
        Path(name).write_text(json.dumps({"schema": "ckptcost.report/2"}), encoding="utf-8")
    Path("runs/today").mkdir(parents=True)
    Path("runs/today/host.jsonl").touch()
    Path("job.toml").touch()


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("run -- python train.py", "run -- python train.py"),
        ("run -q --watch a -- b --for 3", "run -q --watch a -- b --for 3"),
        ("run --pid 17", "attach 17"),
        ("run --pid=17 --watch out --for 60s", "attach 17 --watch out --for 60s"),
        ("run --for 60s", "measure --for 60s"),
        ("run --for 60s --record r", "measure --for 60s --record r"),
        ("probe /scratch --size 20GB", "probe /scratch --size 20GB"),
        ("report", "runs list"),
        ("report --detail", "runs list --full"),
        ("report last", "report last"),
        ("report last --detail -o last.html", "report last --full -o last.html -f html"),
        ("report -f json runs/today", "report -f json runs/today"),
        (f"report {OLD}", f"report {OLD}"),
        (f"report {OLD} --check", f"check {OLD}"),
        ("calibrate last --as ours", "calibrate last --as ours"),
        ("compare last job.toml", "compare run:last job.toml"),
        ("compare run:3f9a job.toml", "compare run:3f9a job.toml"),
        ("compare runs/today job.toml", "compare runs/today job.toml"),
        (f"compare {OLD} older.json", f"diff {OLD} older.json"),
        ("export last --to csv -o out.csv", "export last --to csv -o out.csv"),
        (f"export {OLD} --to focus", f"export {OLD} --to focus"),
        ("fleet store --by node", "fleet store --by node"),
        ("fleet pack last --store store", "runs pack last --store store"),
        ("doctor", "doctor"),
        ("doctor -f json", "doctor -f json"),
        ("doctor /scratch", "selftest /scratch"),
        ("", "screen"),
        ("--demo", "screen --demo"),
        ("--serve=8000", "screen --serve=8000"),
        ("-s job.toml --fresh", "screen -s job.toml --fresh"),
        ("screen -s job.toml --go interval", "screen -s job.toml --go interval"),
        ("measure baseline --for 60s", "measure baseline --for 60s"),
        ("measure --meters replay:runs/today", "measure --meters replay:runs/today"),
        ("runs show last", "runs show last"),
        ("runs pack last -o packed", "runs pack last -o packed"),
        ("serve-metrics last --once", "serve-metrics last --once"),
    ],
)  # fmt: skip
def test_the_first_edition_answers(line: str, first: str) -> None:
    assert translated(line.split()) == first.split()


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("measure --for 60s", 'measure is now: ckptcost run --for "60 s"'),
        ("measure baseline", ""),
        ("runs", "runs is now: ckptcost report"),
        ("runs pack last", "runs is now: ckptcost fleet pack RUN --store DIR"),
        ("serve-metrics last", ""),
    ],
)
def test_a_verb_that_still_works_names_its_new_spelling(
    line: str, now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translated(line.split()) == line.split()
    assert capsys.readouterr().err == (f"ckptcost: {now}\n" if now else "")


@pytest.mark.parametrize(
    "line",
    [
        "model job.toml",
        "interval",
        "compare job.toml small-8b",
        "compare job.toml --tier nas-hdd",
        f"compare {NEW} {NEW}",
        f"compare {OLD} {NEW}",
        f"report {NEW}",
        f"report -f md {NEW} --check",
        f"export {NEW} --to csv",
        "export --list",
    ],
)
def test_the_new_code_answers(line: str) -> None:
    assert translated(line.split()) is None
