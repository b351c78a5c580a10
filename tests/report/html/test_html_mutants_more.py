"""More slips of the page."""

from __future__ import annotations

import html
import re

from statements import statement

from ckptcost.report.html import sections_bill, sections_compare


def words(markup) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", str(markup))).split())


def changed(s, **fields):
    return s.model_copy(update=fields)


def test_a_range_of_the_total_is_drawn_from_low_to_high():
    s = statement((100.0, 0.0, 0.0, 0.0, 0.0))
    energy = s.totals.energy.model_copy(update={"low": 50.0, "high": 125.0})
    drawn = str(
        sections_bill._steps(
            "x",
            changed(s, totals=s.totals.model_copy(update={"energy": energy})),
            "energy",
            "Energy",
            "kWh",
        )
    )
    wide = drawn.split('class="wide"')[1].split("</svg>", maxsplit=1)[0]
    (bar,) = re.findall(r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]*class="f-total"', wide)
    begin, end = float(bar[0]), float(bar[0]) + float(bar[1])
    whiskers = [
        tuple(map(float, each))
        for each in re.findall(r'd="M([\d.]+) [\d.]+L([\d.]+) [\d.]+" class="whisker"', wide)
    ]
    a, b = max(whiskers, key=lambda each: each[1] - each[0])
    assert abs((a - begin) / (end - begin) - 0.5) < 0.01
    assert abs((b - begin) / (end - begin) - 1.25) < 0.01
    assert len(whiskers) == 3


def test_what_only_one_lacks_stands_with_it_and_what_all_lack_below():
    lacking = statement((100.0, None, None, 0.0, 0.0), run_id="b", name="b")
    both = words(sections_compare.comparison([statement(), lacking]))
    assert "without storage writing" in both
    assert "without hosts waiting for saves, storage writing" in both
    assert "Not in any of these totals because unknown: kWh" not in both
    assert (
        "Not in any of these totals because unknown: " in both
    )  # of what both lack alike: dollars
    alike = words(sections_compare.comparison([statement(), statement(run_id="b", name="b")]))
    assert "without storage writing" not in alike
    assert "Not in any of these totals because unknown: kWh: storage writing; " in alike


def test_simulated_meters_are_told_beside_the_name():
    said = words(
        sections_compare.comparison(
            [changed(statement(), simulated=True), statement(run_id="b", name="b")]
        )
    )
    assert "GPT-4 scale, nas-hdd modelled, SIMULATED nas-hdd" in said
    assert said.count("SIMULATED") == 1
