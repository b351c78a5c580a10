"""The job of `ckptcost init` and its variants, and what tests read off an answer."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from ckptcost.answer import Answer, Range
from ckptcost.write import text

JOB = """\
name = "my job"
[checkpoint]
params = "70B"
[tier]
write = "25 GB/s"
[cluster]
id = "h100-1024"
gpus = 512
gpu_price = "2.50 USD"
[failures]
mtbf = "20 h"
[policy]
mode = "async"
interval = "30 min"
[run]
work = "30 days"
"""
JOBS = {
    "job": JOB,
    "open": re.sub(r"interval = .*\n", "", JOB),
    "bare": re.sub(r'(id = "h100-1024"|gpu_price = .*)\n', "", JOB),
    "other": JOB.replace("25 GB/s", "50 GB/s"),
}
"""files: the job; its interval left open; without power and prices; with a faster tier"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the jobs, for every test of a module that imports this."""
    monkeypatch.chdir(tmp_path)
    for name, job in JOBS.items():
        Path(f"{name}.toml").write_text(job, encoding="utf-8")


def is_printed(name: str, answer: Answer) -> None:
    """As the golden file has it, in short sentences. Set UPDATE=1 to write what is printed now."""
    printed = text(answer, width=80) + "\n"
    path = Path(__file__).with_name("golden") / f"{name}.txt"
    if os.environ.get("UPDATE"):
        path.write_text(printed, encoding="utf-8")
    assert max(map(len, printed.splitlines())) <= 80
    assert max(len(each.split()) for each in words(answer)) <= 25
    assert printed == path.read_text(encoding="utf-8")


def said(answer: Answer) -> str:
    """All that stands around the tables."""
    each = [*answer.says, *answer.notes]
    return " ".join(f"{say.label} {say.words} {say.command}" for say in each)


def words(answer: Answer) -> list[str]:
    """Every sentence that is printed outside tables."""
    paragraphs = [each.words for each in [*answer.says, *answer.notes, *answer.cautions]]
    return [s for p in paragraphs for s in re.split(r"(?<=[.:?])\s+(?=[A-Z*])", p) if s]


def cell(answer: Answer, table: str, row: int, key: str) -> Any:
    found = answer.table(table)
    return found.rows[row][[column.key for column in found.columns].index(key)]


def value(answer: Answer, table: str, row: int, key: str) -> float:
    found = cell(answer, table, row, key)
    return float(found.value if isinstance(found, Range) else found)
