"""A difference as a pull request's comment, as text and as CSV; the comment through GitHub's own
converter."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from differences import difference_of, report_of
from hypothesis import given, settings
from hypothesis import strategies as st
from statements import LINES, factor, statement, statements

from ckptcost.present.table import plain
from ckptcost.report.diff_views import (
    MARKER,
    MOST_BYTES,
    is_unchanged,
    text,
    to_markdown,
)
from ckptcost.report.difference import Budget, Difference
from ckptcost.report.document import Report
from ckptcost.report.parts import FunctionalUnit
from ckptcost.report.render import text_of
from ckptcost.report.statement import QUANTITIES


def report(past, current, budgets=(), source="a.json") -> Report:
    return report_of(difference_of(past, current, budgets, source))


def to_csv(found: Report) -> str:
    return text_of(found, "csv")


@pytest.fixture(scope="module")
def gfm():
    if shutil.which("cmark-gfm") is None:
        pytest.skip("cmark-gfm is not installed: make consumers")
    return rendered


def rendered(markdown: str) -> str:
    words = ["cmark-gfm", "-e", "table", "-e", "strikethrough", "-e", "autolink", "--unsafe"]
    return subprocess.run(
        words, input=markdown, capture_output=True, text=True, timeout=30, check=True
    ).stdout


class Page(HTMLParser):
    """Cells of every row, elements used, and the words."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.words = ""
        self.summaries: list[str] = []
        self._in = ""
        self.outside_code, self.in_code = "", False
        """in code nobody is notified"""
        self.comments: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "summary":
            self.summaries.append("")
        self._in = tag if tag in ("td", "th", "summary") else self._in
        self.in_code = self.in_code or tag == "code"

    def handle_endtag(self, tag):
        self.in_code = self.in_code and tag != "code"
        if tag == self._in:
            self._in = ""

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        self.words += data
        self.outside_code += "" if self.in_code else data
        if self._in == "summary":
            self.summaries[-1] += data
        elif self._in:
            self.rows[-1][-1] += data


ALLOWED = {
    "h3",
    "p",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "details",
    "summary",
    "sub",
    "blockquote",
    "strong",
    "em",
    "code",
}


def check_page(page: Page, found: Difference) -> None:
    """Nothing but our own elements, every row whole; raises where a name broke out."""
    assert set(page.tags) <= ALLOWED, set(page.tags) - ALLOWED
    widths = {len(row) for row in page.rows}
    assert widths <= {8, 4}, widths
    assert page.comments == [" ckptcost-diff "]
    assert page.tags.count("table") == 1 + len(page.summaries)
    moved = [
        c for c in found.delta.components for what in QUANTITIES if any(_values(getattr(c, what)))
    ]
    units = [u for u in found.delta.per if u.before_count != u.after_count]
    figures = [row for row in page.rows if len(row) == 8 and row[1] != "before"]
    totals = len(QUANTITIES) + 2
    assert len(figures) == totals + len(QUANTITIES) * len(units) + len(moved)
    assert not re.search(r"(^|[^\w])@\w", page.outside_code), "somebody would be notified"


def _values(change):
    return [
        side is not None and (side.value is None or side.value != 0)
        for side in (change.before, change.after)
    ]


NASTY = [
    "a|b",
    "<img src=x onerror=alert(1)>",
    "`code`",
    "@everyone",
    "two\nlines",
    "[x](http://evil.org)",
    "http://evil.org/x",
    "www.evil.org",
    "~~gone~~",
    "*b* _i_",
    "a@b.org",
    "# title",
    "- list",
    "1. one",
    "---",
    "</details>",
    "<!-- x -->",
    "&lt;b&gt; &amp;",
    "\\|",
    "#12",
    "![p](x)",
    "    code",
    "\u202eabc",
    "***",
    "===",
    "> quote",
    "$x$",
    "mailto:a@b.org",
    "a\u2028b",
    "```",
    "| a | b |",
    "[^1]",
    "+ x",
]


@pytest.mark.parametrize("name", NASTY)
def test_a_name_is_a_name(gfm, name):
    lines = tuple(
        (f"line{n}" if n else name, name, cause, level)
        for n, (_, _, cause, level) in enumerate(LINES)
    )
    past = statement(name=name, lines=lines)
    current = statement((1.0, 2.0, None, 3.0, 4.0), name=name + "2", lines=lines).model_copy(
        update={"factors": [*past.factors, factor(name, 1.0, "", name)]}
    )
    found = report(past, current, source=name.replace("/", ""))
    page = Page(gfm(to_markdown(found)))
    check_page(page, found.difference)
    visible = "".join(each for each in page.words if each.isprintable())
    shown = " ".join("".join(each if each.isprintable() else " " for each in name).split())
    assert shown in visible  # and it is all there
    of_factor = next(row for row in page.rows if len(row) == 4 and row[0] != "factor")
    assert ["".join(each for each in cell if each.isprintable()) for cell in of_factor] == [
        shown,
        "none",
        shown,
        "",
    ]


@pytest.mark.parametrize("name", NASTY)
def test_a_name_in_a_sentence_or_a_title_is_a_name(gfm, name):
    lines = tuple((f"line{n}", name, cause, level) for n, (_, _, cause, level) in enumerate(LINES))
    past = statement(lines=lines).model_copy(
        update={"functional_units": [FunctionalUnit(name=name, count=2.0)]}
    )
    current = statement((1.0, 2.0, None, 3.0, 4.0), lines=lines).model_copy(
        update={"functional_units": [FunctionalUnit(name=name, count=4.0)]}
    )
    found = report(past, current.model_copy(update={"components": current.components[1:]}))
    page = Page(gfm(to_markdown(found)))
    check_page(page, found.difference)
    assert "Only the past one has: " in page.words
    assert any(title.startswith("For each ") for title in page.summaries)
    assert all(len(line) <= 80 for line in text(found).split("\n"))


_odd = st.text(
    st.one_of(
        st.sampled_from("|<>`@*_[]()~#&\\-!\n\r\t:/.w+=$^'\"0 "), st.characters(codec="utf-8")
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60)
@given(statements(), statements(), _odd, _odd)
def test_any_names(gfm, past, current, name, label):
    past = past.model_copy(update={"subject": past.subject.model_copy(update={"name": name})})
    current = current.model_copy(
        update={
            "components": [c.model_copy(update={"label": label}) for c in current.components],
            "factors": [*current.factors, factor(label, 1.0, "", name)],
        }
    )
    found = report(past, current)
    check_page(Page(gfm(to_markdown(found))), found.difference)
    assert all(len(line) <= 80 for line in text(found).split("\n"))


@pytest.mark.parametrize("planted", ["cell", "mention", "element"])
def test_the_check_of_the_page_bites(gfm, planted):
    found = report(statement(), statement((110.0, 150.0, None, 5.0, 50.0)))
    markdown = to_markdown(found)
    change = {
        "cell": ("| :--- |", "| :--- | ---: |"),
        "mention": ("More is worse", "More is worse, @you"),
        "element": ("More", "<script>"),
    }
    broken = markdown.replace(*change[planted], 1)
    assert broken != markdown
    with pytest.raises(AssertionError):
        check_page(Page(gfm(broken)), found.difference)


def test_what_is_unchanged_is_one_line(gfm):
    found = report(statement(), statement())
    assert text(found).count("\n") <= 2
    marker, line = to_markdown(found).rstrip("\n").split("\n")
    assert marker == MARKER
    assert line.startswith("Checkpoint cost: nothing changed: cost ")
    assert Page(gfm(line)).rows == []


def test_what_is_unchanged_still_says_whether_budgets_are_met():
    budget = Budget(
        text="usd<=5 %",
        quantity="cost",
        per=None,
        operator="<=",
        limit=0.05,
        relative=True,
        value=0.0,
        met=True,
    )
    found = report(statement(), statement(), [budget])
    assert text(found).split("\n")[-2] == "- met: usd<=5 %, it is 0 %"
    assert "it is 0 %" in to_markdown(found)


def test_the_same_values_with_other_ranges_or_factors_are_a_change():
    past = statement()
    totals = past.totals
    wider = totals.energy.model_copy(update={"high": 1e9, "low": 0.0})
    other = past.model_copy(update={"totals": totals.model_copy(update={"energy": wider})})
    assert not is_unchanged(difference_of(past, other))
    added = past.model_copy(update={"factors": [*past.factors, factor("x", 1.0, "", "x")]})
    assert not is_unchanged(difference_of(past, added))
    assert is_unchanged(difference_of(past, past))


def test_the_table_by_cells(gfm):
    found = report(
        statement((100.0, 200.0, None, 0.0, 50.0)), statement((110.0, 150.0, None, 5.0, 50.0))
    )
    table = Page(gfm(to_markdown(found))).rows[:10]
    assert table[0] == [
        "quantity",
        "before",
        "after",
        "change",
        "%",
        "range before",
        "range after",
        "ranges",
    ]
    assert table[1] == [
        "energy",
        "350 kWh",
        "315 kWh",
        "-35 kWh",
        "-10 %",
        "315-385",
        "284-346",
        "overlap",
    ]
    assert [row[0] for row in table[1:]] == [
        "energy",
        "emissions, location-based",
        "emissions, market-based",
        "embodied carbon of the GPU time lost",
        "GPU time lost",
        "cost",
        "water for cooling",
        "checkpoints",
        "length of the run",
    ]


def test_null_is_not_known_in_words(gfm):
    nothing = [None] * 5
    found = report(statement(market=None), statement(nothing, gpu_hours=nothing, costs=nothing))
    rows = {row[0]: row for row in Page(gfm(to_markdown(found))).rows[1:10]}
    assert rows["emissions, market-based"][1:5] == ["not known"] * 4
    assert rows["energy"][2:5] == ["not known"] * 3
    assert rows["energy"][1] == "2,760 kWh"
    assert "the change is not known" in to_markdown(found).splitlines()[1]


@pytest.mark.parametrize(
    ("energies", "words"),
    [
        ((200.0, 200.0), "100 % more energy (worse): 200 kWh before, 400 kWh now"),
        ((50.0, 50.0), "50 % less energy (better): 200 kWh before, 100 kWh now"),
        (
            (105.0, 105.0),
            "5 % more energy (worse, within the uncertainty): 200 kWh before, 210 kWh now",
        ),
    ],
)
def test_the_headline(energies, words):
    rest = (0.0, 0.0, 0.0)
    past, current = (
        statement((*e, *rest), grid=None, gpu_hours=(0.0,) * 5, costs=(1.0,) * 5)
        for e in ((100.0, 100.0), energies)
    )
    markdown = to_markdown(report(past, current))
    assert markdown.splitlines()[:2] == [MARKER, f"### Checkpoint cost: {words}"]
    assert " ".join(text(report(past, current)).split()).startswith(f"Checkpoint cost: {words}")


def test_what_cannot_be_compared_is_said_first(gfm):
    past, current = (
        statement(),
        statement().model_copy(update={"method_version": "2027.1", "simulated": True}),
    )
    found = report(past, current)
    for view in (text(found), to_markdown(found)):
        assert view.index("NOT COMPARABLE") < view.index("energy ")
        assert view.index("SIMULATED") < view.index("energy ")
        assert "2026.1 before, 2027.1 now" in view
    page = Page(gfm(to_markdown(found)))
    check_page(page, found.difference)
    assert "blockquote" in page.tags
    assert all(row["comparable"] == "false" for row in csv.DictReader(io.StringIO(to_csv(found))))


def test_budgets_are_told():
    budget = Budget(
        text="usd<=5 %",
        quantity="cost",
        per=None,
        operator="<=",
        limit=0.05,
        relative=True,
        value=0.12,
        met=False,
    )
    found = report(statement(), statement(), [budget, budget.model_copy(update={"value": None})])
    for view in (text(found), to_markdown(found).replace("&#60;", "<")):
        assert "EXCEEDED: usd<=5 %, it is +12 %" in view
        assert "the change is not known" in view


@pytest.mark.parametrize("n", [30, 300, 1000])
def test_short_enough_for_github(gfm, n):
    lines = tuple((f"line{i}", "@|" * 100 + str(i), "save", "node") for i in range(n))
    energies = [float(i + 1) for i in range(n)]
    zero = [0.0] * n
    sides = [
        statement(
            [e * f for e in energies],
            gpu_hours=zero,
            costs=energies,
            lines=lines,
            rows=1,
            name="n" * 5000,
        )
        for f in (1.0, 1.1)
    ]
    sides[1] = sides[1].model_copy(
        update={"factors": [factor(f"tier.x{i}", 1.0, "", "y" * 1000) for i in range(200)]}
    )
    markdown = to_markdown(report(*sides))
    assert len(markdown.encode()) <= MOST_BYTES
    assert markdown.startswith(MARKER)
    assert "Left out, some or all, because a comment holds 65,536 characters at most" in markdown
    page = Page(gfm(markdown))
    assert {len(row) for row in page.rows} <= {8, 4}
    assert page.tags.count("details") == markdown.count("</details>")
    assert "Documents: past" in page.words


def test_text_is_80_columns_of_printable_words():
    found = report(
        statement(name="a\x1b[31mb\nc"),
        statement((1.0, 2.0, None, 3.0, 4.0), name="x" * 300, checkpoints=9.0),
    )
    told = text(found)
    assert all(len(line) <= 80 for line in told.split("\n"))
    assert all(line == line.rstrip() for line in told.split("\n"))
    assert "\x1b" not in told


# ---- CSV


def check_csv(written: str, found: Difference) -> None:
    """Every figure as the document has it, empty where unknown; raises."""
    rows = {
        (row["of"], row["id"], row["quantity"]): row for row in csv.DictReader(io.StringIO(written))
    }
    pairs = [
        ("total", "", found.delta.totals),
        *(("component", c.id, c) for c in found.delta.components),
    ]
    for of, name, changes in pairs:
        for what in QUANTITIES:
            row, change = rows[of, name, what], getattr(changes, what)
            for column, value in (
                ("before", change.before and change.before.value),
                ("after", change.after and change.after.value),
                ("before_low", change.before and change.before.low),
                ("change", change.change),
                ("change_share", change.relative),
            ):
                assert (float(row[column]) if row[column] else None) == value, (
                    of,
                    name,
                    what,
                    column,
                )
            assert row["unit"] == change.unit


@settings(max_examples=40)
@given(statements(), statements())
def test_csv_of_any(past, current):
    found = report(past, current)
    check_csv(to_csv(found), found.difference)


@pytest.mark.parametrize("planted", ["x1000", "null as 0", "unit"])
def test_the_check_of_the_csv_bites(planted):
    found = report(statement(), statement((1.0, 2.0, None, 3.0, 4.0)))
    written = to_csv(found)
    row = next(
        line
        for line in written.splitlines()
        if line.startswith("component,storage_write,") and ",energy," in line
    )
    first = next(line for line in written.splitlines() if line.startswith("total,,"))
    broken = {
        "x1000": written.replace(first, re.sub(r"kWh,(\d+)", r"kWh,\g<1>000", first)),
        "null as 0": written.replace(row, row.replace("kWh,", "kWh,0.0")),
        "unit": written.replace(",kWh,", ",MWh,"),
    }
    assert broken[planted] != written
    with pytest.raises(AssertionError):
        check_csv(broken[planted], found.difference)


def test_csv_cells_are_no_formulas():
    lines = (("=cmd", "@SUM(1)", "save", "node"), *LINES[1:])
    rows = list(
        csv.DictReader(io.StringIO(to_csv(report(statement(lines=lines), statement(lines=lines)))))
    )
    row = next(row for row in rows if row["of"] == "component")
    assert (row["id"], row["label"]) == ("'=cmd", "'@SUM(1)")


def test_plain_words_stay_readable():
    assert (
        plain("GPUs waiting for saves, 1,200 kWh (+4 %)")
        == "GPUs waiting for saves, 1,200 kWh (+4 %)"
    )
