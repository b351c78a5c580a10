"""`ckptcost audit`: its printed text, a user's own sheet, and what it says of wrong ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptcost.answer import Answer
from ckptcost.cli import main
from ckptcost.errors import InputError
from ckptcost.questions.audit import audit
from ckptcost.write import text

GOLDEN = Path(__file__).with_name("golden")
SHEETS = ("bloom-176b", "ddn-2024", "ddn-2025", "micron-2026", "mlperf-1t", "saves-2025")
OWN = """\
name = "Storage X, data sheet"
[[claim]]
about = "Storage X"
size = "exactly 2 TB"
write = "40 GB/s"
time = "about 20 s"
energy = "0.1 kWh"
"""


@pytest.mark.parametrize("name", SHEETS)
def test_printed(name: str) -> None:
    """Set UPDATE=1 to write what is printed now."""
    printed = text(audit(name), width=80) + "\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE"):
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")
    assert len(printed.splitlines()) <= 28 or name in ("micron-2026",)
    assert max(map(len, printed.splitlines())) <= 80


def own(folder: Path, words: str = OWN) -> Path:
    path = folder / "sheet.toml"
    path.write_text(words, encoding="utf-8")
    return path


def said(answer: Answer) -> str:
    return "\n".join(each.words for each in answer.says + answer.notes)


def test_ten_lines_of_ones_own(tmp_path: Path) -> None:
    answer = audit(str(own(tmp_path)))
    assert answer.about == "Storage X, data sheet"
    assert '"Storage X: about 20 s"\n2 TB at 40 GB/s takes 50 s.' in said(answer)
    assert "Storage X: 0.1 kWh (it would mean 18 kW, which is not stated)" in said(answer)


def test_detail_has_every_statement_and_its_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "ddn-2025", "--detail"]) == 0
    printed = capsys.readouterr().out
    assert "nas.stall_share         5 to 10 %          does not agree         48 to 74 %" in printed
    assert "nas.power                    2 TB at 200 MB/s takes 2.78 h; 15 to 20 kWh" in printed
    assert "exascaler: interval for 1 %  (50 to 100 s) * (1 / 1 % - 1) = 1.4 to 2.8 h" in printed


def test_the_first_table_of_a_file_is_the_verdicts() -> None:
    keys, rows = audit("ddn-2025").tables[0].flat()
    assert keys == ["statement", "stated", "verdict", "follows"]
    assert ["nas.total_energy", "over 2 MWh", "does not agree", "1.5 to 2 MWh"] in rows


CLAIM = '[[claim]]\nabout = "X"\n'
WRONG = [
    ("speed = '2 GB/s'", "claim 1 (X): no quantity is called 'speed'", "try"),
    ("tme = '2 s'", "no quantity is called 'tme'", "try time"),
    ("size = '2'", "claim 1 (X): size: '2'", "write e.g. '2 TB'"),
    ("size = '2 GB/s'", "claim 1 (X): size: '2 GB/s'", "write e.g. '2 TB'"),
    ("size = 'big'", "'big' cannot be read", "write e.g. '2 TB'"),
    ("size = true", "size: is no statement", 'write e.g. size = "2 TB"'),
    ("time = '20 to 10 s'", "runs from high to low", "write the lower end first"),
    ("", "claim 1: states no quantity", "add one of size, write"),
    ("size = '2 TB'\n[[claim]]\nsize = '1 TB'", "claim 2: does not say what it is about", "about"),
    ("size = '2 TB'\n[[claim]]\nabout = 'X'\nsize = '1 TB'", "'x' is there twice", "its own id"),
    ("size = '2 TB'\n[claims]", "no section is called 'claims'", "try claim"),
    ("size = '2 TB'\n[[holds]]\nwhat = 'a'\nthat = 'x.size'", "holds: is is missing", "add is ="),
    (
        "size = '2 TB'\n[[follows]]\nwhat = 'a'\nthat = 'y.size'",
        "follows: y.size: no claim is called 'y'",
        "try x",
    ),
    (
        "size = '2 TB'\n[[follows]]\nwhat = 'a'\nthat = 'x.energy'",
        "x.energy is neither stated nor follows",
        "state it in x",
    ),
    ("size = '2 TB'\n[[follows]]\nwhat = 'a'\nthat = 'x.size *'", "is no formula", "write e.g."),
]
NO_SHEET = [
    ("name = 'empty'", "states nothing", "start with [[claim]]"),
    ("[claim]\nsize = '2 TB'", "claim: is no list of tables", "write [[claim]]"),
    ("context = 3\n" + CLAIM, "context: is no table", "write [context]"),
    ("size = 2 TB", "TOML", ""),
]


@pytest.mark.parametrize(
    ("words", "problem", "remedy"), [(CLAIM + each[0], *each[1:]) for each in WRONG] + NO_SHEET
)
def test_a_wrong_sheet_gets_one_line_and_a_remedy(
    words: str, problem: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own(tmp_path, words)
    assert main(["audit", str(path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert problem in first
    assert str(path) in first
    assert remedy in second


@pytest.mark.parametrize(
    ("name", "problem"),
    [("none.toml", "cannot be read"), ("ddn-2026", "no sheet is called"), ("", "names no sheet")],
)
def test_what_is_not_there(name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        audit(name)
