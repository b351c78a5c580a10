"""Nothing that anybody wrote becomes markup; the JSON inside cannot be ended; only plain addresses
of the web are links."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statements import big, document, statement

from ckptcost.first.report.document import Report
from ckptcost.first.report.html.markup import el, link, text
from ckptcost.first.report.html.page import POLICY, page_of
from ckptcost.first.report.html.sections import MOST_ROWS, embed_json

COMMON = {"class", "id", "aria-label", "aria-labelledby"}
PLAIN = """head body title style main header footer nav section p b code ul li dl dt dd h1 h2 h3 h4 figure figcaption fieldset legend
table caption thead tbody tr td desc""".split()  # noqa: SIM905
ALLOWED: dict[str, set[str]] = {
    "html": {"lang"},
    "script": {"type"},
    "link": {"rel", "href"},
    "meta": {"charset", "http-equiv", "content", "name"},
    "div": {"tabindex", "role"},
    "span": {"style"},
    "a": {"href", "rel"},
    "data": {"value"},
    "input": {"type", "name", "checked"},
    "label": {"for"},
    "th": {"scope", "colspan"},
    "svg": {"viewbox", "role"},
    "path": {"d"},
    "rect": {"x", "y", "width", "height"},
    "text": {"x", "y"},
} | {name: set() for name in PLAIN}
"""all that our own pages are made of"""
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><svg onload=alert(1)>",
    "</style><b>",
    "</title><i>",
    "]]>",
    "<!--",
    "-->",
    "<![CDATA[x]]>",
    "<?php",
    "javascript:alert(1)",
    "' onmouseover='x",
    "a\u2028b\u2029c",
    "\x00\x07\x1b\x7f\x85",
    "\u202etxt.exe",
    "\ufffe\U0001ffff",
    "&lt;b&gt;&amp;",
    "{{7*7}}",
    "=cmd|' /C calc'!A0",
    'tier, "quoted"\nnewline\r\ttab',
    "\u65e5\u672c\u8a9e \u03b5\u03bb \U0001f642",
    'https://x.org/"onclick=alert(1)',
)


def judge(page: str, parsed) -> None:
    """Raises where anything is in a page that we do not write ourselves."""
    found = parsed(page)
    assert found.odd == []
    assert found.open == []
    for tag in found.tags:
        assert tag.name in ALLOWED, tag
        assert set(tag.attributes) <= ALLOWED[tag.name] | COMMON, tag
        style = tag.attributes.get("style", "left:0%;width:0%")
        assert re.fullmatch(r"left:[\d.]+%;width:[\d.]+%", style or ""), tag
    scripts = found.of("script")
    assert [s.attributes for s in scripts] == [{"type": "application/json", "id": "statement"}]
    for tag in (*found.of("a"), *found.of("link")):
        address = tag.attributes["href"]
        assert re.match(r"#[a-z]|https?://|data:,$", address), address
        if address.startswith("http"):
            assert tag.name == "a"
            assert tag.attributes["rel"] == "noreferrer"
    (style,) = found.text["style"]
    assert not re.search(r"url\(|@import|expression|</", style)
    policy = [
        tag.attributes["content"] for tag in found.of("meta") if tag.attributes.get("http-equiv")
    ]
    assert policy == [POLICY]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_everywhere(words, parsed, painted_with, extras_with):
    page = page_of(painted_with(words), extras_with(words)._replace(title=words))
    judge(page, parsed)
    kept = words.strip().split("\n")[0]
    if re.fullmatch(r"[\x20-\x7e]+", kept):
        assert kept in parsed(page).words()


@given(st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=40, deadline=None)
def test_any_words(parsed, painted_with, extras_with, words, others):
    judge(page_of(painted_with(words), extras_with(others)), parsed)


def test_the_judge_judges(parsed, extras_with):
    page = page_of(document(), extras_with())
    judge(page, parsed)
    for plant in (
        "<script>x</script>",
        '<img src="x">',
        '<p onclick="x">',
        '<a href="javascript:x" rel="noreferrer">x</a>',
        "<!-- x -->",
    ):
        with pytest.raises(AssertionError):
            judge(page.replace("</main>", plant + "</main>"), parsed)
    with pytest.raises(AssertionError):
        judge(page.replace(text("default-src 'none'"), "default-src *"), parsed)
    with pytest.raises(AssertionError):
        judge(page.replace(text("style-src 'unsafe-inline'"), "style-src *"), parsed)


@pytest.mark.parametrize("words", HOSTILE)
def test_the_json_inside_is_the_document(words, parsed, painted_with):
    whole = painted_with(words)
    (inside,) = parsed(page_of(whole)).text["script"]
    assert not set(inside) & set("<>&\u2028\u2029\x7f\x85")
    assert Report.model_validate(json.loads(inside)) == whole


def test_many_rows_stay_outside_and_both_say_so(parsed):
    whole = big(10 * MOST_ROWS)
    page = page_of(whole)
    inside = Report.model_validate(json.loads(parsed(page).text["script"][0]))
    (mine,), (theirs,) = inside.statements, whole.statements
    assert mine.series is None
    assert mine.warnings[-1].code == "SERIES_LEFT_OUT"
    assert "20,000 rows by time are left out" in mine.warnings[-1].message
    assert "20,000 rows by time are left out" in parsed(page).words()
    assert mine.model_copy(update={"series": theirs.series, "warnings": theirs.warnings}) == theirs
    assert inside.reproducibility == whole.reproducibility
    assert len(page) < 400_000


def test_rows_are_kept_up_to_a_bound():
    few = document(statement(rows=MOST_ROWS // 4))
    assert len(few.statements[0].series.start) == MOST_ROWS
    assert json.loads(embed_json(few)) == few.plain()


@pytest.mark.parametrize(
    "address",
    [
        "https://ourworldindata.org",
        "http://x.org:8080/a%20b?c=d&e#f",
        "HTTPS://X.ORG/",
        "https://github.com/a/b/blob/0082b04/x.csv",
    ],
)
def test_addresses_of_the_web_are_links(address):
    assert link(address, "here") == f'<a href="{text(address)}" rel="noreferrer">here</a>'


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//x.org",
        "/etc/passwd",
        "file:///etc",
        "ftp://x.org",
        "https://",
        "https:///x",
        "https://a b.org",
        "https://user@x.org/",
        'https://x.org/"',
        "https://x.org/<b>",
        "https://x.org/%zz",
        " https://x.org",
        "https://x.org\n",
        "https://\u00fc.org",
        "",
    ],
)
def test_others_are_only_text(address):
    assert "<" not in link(address, "here").replace("&lt;", "")
    assert "href" not in link(address, "here")


def test_attributes_cannot_be_left():
    assert (
        el("p", "a<b", class_='x" onclick="y', hidden=None)
        == '<p class="x&quot; onclick=&quot;y">a&lt;b</p>'
    )


def test_no_line_is_told_to_a_terminal_to_begin_again():
    from ckptcost.first.report.html.markup import el, text

    assert text("a\rb\fc\r\nd") == "a b c \nd"
    assert el("p", "a\rb", title="c\rd") == '<p title="c d">a b</p>'
