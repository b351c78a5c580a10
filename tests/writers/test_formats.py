"""What each format makes of answers that were written by hand: whole small texts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from ckptcost.answer import Answer, Column, Line, Plot, Say, Table
from ckptcost.write import html, markdown, text, to_csv
from tests.writers import answers

GOLDEN = Path(__file__).parent / "golden"
WRITTEN = {
    "whole-80.txt": lambda: text(answers.whole(), width=80),
    "whole-detail-60.txt": lambda: text(answers.whole(), detail=True, width=60),
    "intervals-80.txt": lambda: text(answers.intervals(), width=80),
    "tiers-detail-80.txt": lambda: text(answers.tiers(), detail=True, width=80),
    "tiers.md": lambda: markdown(answers.tiers(), detail=True),
    "whole.md": lambda: markdown(answers.whole()),
    "tiers.csv": lambda: to_csv(answers.tiers()),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_whole_text(name: str) -> None:
    """CKPTCOST_GOLDEN=write writes them anew; read what changed before it is committed."""
    written = WRITTEN[name]() + "\n"
    if os.environ.get("CKPTCOST_GOLDEN") == "write":
        (GOLDEN / name).write_text(written)
    assert written == (GOLDEN / name).read_text()


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("make", [answers.whole, answers.intervals, answers.tiers])
def test_all_fits_the_terminal(make: Callable[[], Answer], width: int) -> None:
    answer = make()
    long = 'ckptcost model job.toml --set tier.write="5 GB/s" --over cluster.gpus=1:9 -o plans.csv'
    answer.notes.append(Say("Next:", command=long))
    said = text(answer, detail=True, width=width)
    assert all(len(line) <= width for line in said.split("\n"))
    typed = said[said.index("ckptcost model job") :].replace("\\\n", " ")
    assert " ".join(typed.split()).startswith(long)


def column_of(unit: str, values: list[float]) -> list[str]:
    table = Table("t", "", [Column("k", "k"), Column("v", "v", unit)], [["a", v] for v in values])
    said = text(Answer("q", "t", "", [], [table]), width=80)
    return [line[3:].strip() for line in said.split("\n\n")[1].split("\n")[1:]]


@pytest.mark.parametrize(
    ("unit", "values", "said"),
    [
        ("USD", [0.0, 2.68e6, 900_000.0], ["0", "2.68M", "0.90M"]),
        ("count", [1440.0, 1234.0], ["1,440", "1,234"]),
        ("kWh", [inf, 3.6e6, float("nan")], ["endless", "1", "not known"]),
    ],
)
def test_a_column_has_one_unit_if_its_values_allow(
    unit: str, values: list[float], said: list[str]
) -> None:
    assert column_of(unit, values) == said


def test_page_loads_nothing_and_escapes_what_others_wrote() -> None:
    hostile = '<script>alert(1)</script><img src="https://x.example/a.png" onerror="x()">'
    answer = answers.intervals()
    answer.title = answer.about = hostile
    answer.says.append(Say(hostile, hostile, hostile))
    answer.tables[0].rows[0][4] = hostile
    answer.plots[0] = replace(answer.plots[0], title=hostile, y=hostile)
    page = html(answer)
    tags = re.findall(r"<[a-z][^>]*>", page)
    assert not [tag for tag in tags if re.match("<(script|img|link|iframe|object)", tag)]
    assert not [tag for tag in tags if re.search(r"\b(src|href|onerror)=(?!&)", tag)]
    assert not re.search(r"url\(|@import", page)
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5


def test_page_draws_axes_units_legend_and_marks() -> None:
    page = html(answers.intervals())
    for wanted in ("training time between saves", "USD", "5 min", "60 min", "best", "now"):
        assert f">{wanted}</text>" in page
    assert page.count(" flash &lt;shared&gt;</span>") == 1
    assert page.count("<circle") == 2


def test_plot_leaves_out_what_cannot_be_drawn() -> None:
    line = Line("a", [0.0, 1.0, 10.0, 100.0], [1.0, inf, 3.0, float("nan")])
    answer = answers.whole()
    answer.plots = [Plot("p", "x", "y", [line, Line("b", [1.0, 2.0], [1.0, 2.0])], log_x=True)]
    points = re.findall(r'points="([^"]+)"', html(answer))  # two of them in the legend
    assert [len(each.split()) for each in points] == [2, 2, 1, 2]
    answer.plots = [Plot("nothing", "x", "y", [Line("a", [], [])])]
    assert "nothing" not in html(answer)


def test_page_of_many_rows_stays_small() -> None:
    table = answers.tiers().tables[0]
    table.rows = [["a", 1e9, 1.0, answers.kwh(1.0, 0.5, 2.0), "x"] for _ in range(5000)]
    page = html(Answer("q", "t", "", [], [table]))
    assert len(page) < 20_000
    assert "4,900 more rows" in page


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
@pytest.mark.parametrize("width", [1200, 390])
def test_page_is_no_wider_than_the_screen(width: int, tmp_path: Path) -> None:
    page = html(answers.tiers()).replace("</body>", "<script>document.title = 'wide ' +"
        " document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>")  # fmt: skip
    page = re.sub(r"<meta http-equiv[^>]*>", "", page)
    (tmp_path / "page.html").write_text(page)
    dom = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", f"file://{tmp_path}/page.html"],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    wide, inner = map(int, re.findall(r"wide (\d+) of (\d+)", dom)[0])
    assert wide <= inner
