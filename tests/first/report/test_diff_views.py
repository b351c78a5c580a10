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
from statements import LINES, factor, quantity, statement, statements

from ckptcost.first.present.table import plain
from ckptcost.first.report import diff_views
from ckptcost.first.report.diff import change_of, delta_of
from ckptcost.first.report.diff_reasons import notes_of
from ckptcost.first.report.diff_views import (
    MARKER,
    MOST_BYTES,
    is_unchanged,
    text,
    to_markdown,
)
from ckptcost.first.report.difference import Amount, Budget, Difference, FactorChange, FactorValue
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import FunctionalUnit
from ckptcost.first.report.render import text_of
from ckptcost.first.report.statement import QUANTITIES


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
    fewer = {"components": current.components[1:], "series": None}
    found = report(past, current.model_copy(update=fewer))
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


def csv_of(past, current):
    return csv.DictReader(io.StringIO(text_of(report(past, current), "csv")))


def changed(s, **fields):
    return s.model_copy(update=fields)


def test_a_line_that_only_now_is_unknown_is_told_as_well():
    known, lacking = Amount(value=1.0), Amount(value=1.0, excludes=["a"])
    assert (
        change_of("kWh", known, lacking).reason
        == change_of("kWh", lacking, known).reason
        == "unknown in one of the two only: a"
    )
    assert change_of("kWh", known, lacking).change is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("#12", "#&#8203;12"),
        ("@me", "@&#8203;me"),
        ("a|b", "a&#124;b"),
        ("$x$", "&#36;x&#36;"),
        ("- a", "&#8203;- a"),
        ("1. a", "&#8203;1. a"),
        ("===", "&#8203;==="),
        ("WWW.x", "WWW&#46;x"),
        ("ftp://x", "ftp&#58;//x"),
        ("a\u202eb", "a b"),
        ("a\u200bb", "a b"),
        ("a\nb", "a b"),
    ],
)
def test_words_that_would_do_something(text, shown):
    assert plain(text) == shown


def test_counts_that_are_the_same_are_not_told_again():
    past = changed(
        statement(),
        functional_units=[
            FunctionalUnit(name="checkpoint", count=8.0),
            FunctionalUnit(name="token", count=2.0),
        ],
    )
    current = changed(
        past,
        functional_units=[
            FunctionalUnit(name="checkpoint", count=8.0),
            FunctionalUnit(name="token", count=4.0),
        ],
    )
    for view in (diff_views.to_markdown, diff_views.text):
        told = view(report(past, current))
        assert "For each token (2 before, 4 now)" in told
        assert "For each checkpoint" not in told
        assert "For each hour" not in told


def test_what_stands_there_anyway_is_apart():
    past, current = statement(), statement()
    current = changed(
        current,
        components=[
            c.model_copy(update={"energy": quantity("energy", 5.0)}) if c.id == "standing" else c
            for c in current.components
        ],
    )
    document_ = report(past, current)
    for view in (diff_views.to_markdown, diff_views.text):
        told = " ".join(view(document_).split())
        assert "idle storage, its share, apart" in told
        assert 'A line named "apart" stands there anyway and is in no total.' in told


def test_where_nothing_is_apart_no_such_line_is_told():
    past = statement()
    marginal = changed(past, components=[c for c in past.components if c.ledger == "marginal"])
    more = changed(marginal, checkpoints=9.0, method_version="x")
    for view in (diff_views.to_markdown, diff_views.text):
        assert 'named "apart"' not in view(report(marginal, more))


def test_lines_are_told_by_fifties_and_none_is_lost():
    lines = tuple((f"line{n}", f"line {n}.", "save", "node") for n in range(101))
    energies = [float(n + 1) for n in range(101)]
    zero = [0.0] * 101
    sides = [
        statement([e * f for e in energies], grid=None, gpu_hours=zero, costs=zero, lines=lines)
        for f in (1.0, 2.0)
    ]
    told = diff_views.to_markdown(report(*sides))
    for which in ("1 to 50 of 102", "51 to 100 of 102", "101 to 102 of 102"):
        assert told.count(f"<details><summary>Energy by line, kWh ({which})</summary>") == 1
    assert all(f"| line {n}. | {n + 1} kWh |" in told for n in range(101))


def test_lines_of_one_side_say_which():
    past = statement()
    document_ = report(past, changed(past, components=past.components[1:], series=None))
    for view in (diff_views.to_markdown, diff_views.text):
        assert "GPUs waiting for saves (past only)" in " ".join(view(document_).split())


def test_a_headline_of_the_largest_change_and_its_direction():
    past = statement(market=None)
    more = statement(
        tuple(None if e is None else e * 2 for e in (1200.5, 1350.25, None, 210.125, 0.0)),
        market=None,
    )
    assert diff_views.headline(difference_of(past, more)).startswith("100 % more ")
    assert "(worse" in diff_views.headline(difference_of(past, more))
    assert "(better" in diff_views.headline(difference_of(more, past))
    assert diff_views.headline(difference_of(past, past)) == "nothing changed in what is known"
    zero = statement((0.0, 0.0, None, 0.0, 0.0), gpu_hours=(3000.0, 0.0, 0.0, 160.5, 0.0))
    assert diff_views.headline(difference_of(zero, statement())).startswith(
        "from nothing to some energy"
    )


def test_budgets_met_and_exceeded():
    said = {
        "text": "energy <= 1 %",
        "quantity": "energy",
        "per": None,
        "operator": "<=",
        "limit": 0.01,
        "relative": True,
    }
    assert (
        diff_views.budget_text(Budget(**said, value=0.005, met=True))
        == "met: energy <= 1 %, it is +0.5 %"
    )
    assert diff_views.budget_text(Budget(**said, value=0.02, met=False)).startswith("EXCEEDED: ")
    assert (
        diff_views.budget_text(Budget(**said, value=None, met=False))
        == "EXCEEDED: energy <= 1 %, the change is not known"
    )


def test_factors_without_a_text_or_a_value():
    shown = FactorChange(id="a.b", name="", unit="w", before=None, after=None, converts=False)
    said = {"low": None, "high": None, "origin": "user"}
    assert diff_views.factor_text(None, shown) == "none"
    assert diff_views.factor_text(FactorValue(value=None, text="", **said), shown) == "unlimited"
    assert diff_views.factor_text(FactorValue(value=7.0, text="", **said), shown) == "7 W"


def test_a_comment_is_short_enough_in_bytes():
    past = changed(statement(), warnings=[])
    many = [factor(f"tier.x{n}é", 1.0, "", "é" * 60) for n in range(900)]
    document_ = report(
        changed(past, factors=many),
        changed(past, factors=[f.model_copy(update={"value": 2.0}) for f in many]),
    )
    told = diff_views.to_markdown(document_)
    assert 50_000 < len(told.encode()) <= diff_views.MOST_BYTES < 65_536
    assert "Left out, some or all" in told


def test_memo_item_and_method_are_at_the_end():
    told = diff_views.to_markdown(report(statement(), statement(grid=0.5))).splitlines()[-1]
    assert "Memo item" in told
    assert "method 2026.1." in told


def test_simulated_on_either_side_is_said():
    for past, current in ((True, False), (False, True)):
        document_ = report(
            changed(statement(), simulated=past), changed(statement(), simulated=current)
        )
        assert "SIMULATED: no machine was measured" in diff_views.text(document_)
        assert "**SIMULATED: no machine was measured" in diff_views.to_markdown(document_)


def test_csv_by_hand():
    past, current = (
        statement(),
        statement(
            tuple(None if e is None else e * 1.25 for e in (1200.5, 1350.25, None, 210.125, 0.0))
        ),
    )
    rows = list(csv_of(past, current))
    energy = next(row for row in rows if (row["of"], row["quantity"]) == ("total", "energy"))
    value = past.totals.energy.value
    wanted = {
        "before": value,
        "before_low": 0.9 * value,
        "before_high": 1.1 * value,
        "after": 1.25 * value,
        "after_low": 1.125 * value,
        "after_high": 1.375 * value,
        "change": 0.25 * value,
        "change_share": 0.25,
    }
    assert {name: float(energy[name]) for name in wanted} == pytest.approx(wanted)
    assert (energy["direction"], energy["ledger"], energy["unit"]) == ("more", "marginal", "kWh")
    standing = next(row for row in rows if row["id"] == "standing")
    assert standing["ledger"] == "allocated"


def test_a_csv_of_changes_holds_no_formulas():
    s = statement()
    s = changed(
        s,
        components=[
            c.model_copy(update={"id": "=id", "label": "@label"}) if c.id == "gpu_wait" else c
            for c in s.components
        ],
        functional_units=[FunctionalUnit(name="+unit", count=2.0)],
        series=None,
    )
    rows = list(csv_of(s, s))
    assert {row["id"] for row in rows} >= {"'=id", "'+unit"}
    assert {row["label"] for row in rows} >= {"'@label", "'+unit"}


def test_a_unit_of_which_there_is_none_now_is_not_divided_by():
    past, current = (
        changed(statement(), functional_units=[FunctionalUnit(name="checkpoint", count=n)])
        for n in (8.0, 0.0)
    )
    for one, other in ((past, current), (current, past)):
        assert "checkpoint" not in {u.name for u in delta_of(one, other).per}


def notes(past, current):
    return {w.code: w.message for w in notes_of(past, current, delta_of(past, current))}


def test_lines_are_of_the_side_that_has_them():
    past = statement()
    current = changed(past, components=past.components[1:])
    assert notes(past, current)["LINES"] == "Only the past one has: GPUs waiting for saves."
    assert notes(current, past)["LINES"] == "Only the current one has: GPUs waiting for saves."


def test_what_did_not_change_is_within_no_uncertainty():
    s = statement()
    assert "OVERLAP" not in notes(s, s)
    assert "OVERLAP" in notes(s, statement((1201.0, 1350.25, None, 210.125, 0.0)))


def test_a_change_from_zero_has_no_share():
    assert (
        diff_views.relative_text(change_of("kWh", Amount(value=0.0), Amount(value=1.0))) == "from 0"
    )
    assert diff_views.relative_text(change_of("kWh", Amount(value=0.0), Amount(value=0.0))) == "0 %"
    assert (
        diff_views.relative_text(change_of("kWh", Amount(value=None), Amount(value=0.0)))
        == "not known"
    )
