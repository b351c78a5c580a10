"""What a notebook shows of an answer: the answer, and no more of it than a screen."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import ckptcost
from ckptcost.first.report import brief, render
from ckptcost.first.report.brief import BriefAnswer, Shown
from ckptcost.first.report.read import study_of
from ckptcost.first.report.statements.reading import gather_statements


class Parsed(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def report():
    return ckptcost.model("small-8b", tier=["nas-hdd", "local-nvme"], saves=[100], draws=64)


@pytest.fixture(scope="module")
def study():
    return ckptcost.sensitivity("small-8b", draws=64)


def test_a_report_shows_its_answer(report):
    assert repr(report) == str(report) == brief.of_study(study_of(report))
    assert repr(report).count("\n") <= brief.LINES
    parsed = Parsed(report._repr_html_())
    assert parsed.open == []
    assert parsed.tags.count("table") == 1
    assert set(report.findings) <= set(parsed.words)
    assert report.findings


def test_a_study_shows_its_answer(study):
    assert repr(study).count("\n") <= brief.LINES
    parsed = Parsed(study._repr_html_())
    assert study.findings[0] in parsed.words
    assert parsed.tags.count("tr") <= 1 + render.ROWS


def test_statements_show_their_answer(report):
    answer = gather_statements(report.statements, [])
    parsed = Parsed(answer._repr_html_())
    assert (parsed.tags, parsed.open) == (["pre"], [])
    assert "".join(parsed.words) == repr(answer)
    assert report.statements[0].subject.name in repr(answer)


def test_a_frame_of_each_table(study, report):
    for answer in (study, report):
        for name, table in answer.tables.items():
            frame = answer.to_frame(name)
            assert list(frame.columns) == list(table.columns)
            assert len(frame) == len(table.rows)
            for column, of in table.columns.items():
                assert (frame[column].dtype == float) == (of.unit not in ("", "bool")), column


def test_what_somebody_wrote_is_no_markup():
    hostile = "<script>alert(1)</script>"
    table = Shown(hostile, [hostile], [[hostile]] * 30, hostile)
    page = render.html(
        BriefAnswer(hostile, [hostile], [hostile], [table], 1, [hostile], [hostile], 1)
    )
    assert "<script" not in page
    assert "(20 of 30 rows)" in page
