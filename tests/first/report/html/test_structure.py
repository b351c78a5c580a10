"""What makes a page readable: order, headings, addresses, words for pictures, contrast, and what is
said where something is simulated."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from statements import LINES, document, statement

from ckptcost.first.report.html.markup import DARK, LIGHT, style_sheet
from ckptcost.first.report.html.page import MOST_ROWS, Extras, page_of, table_of
from ckptcost.first.report.html.pictures import Fall, FallStep
from ckptcost.first.report.html.pictures_of_time import PowerPlot
from ckptcost.first.report.html.sections import Tile
from ckptcost.first.report.study import Column, Table

READ_ON = (
    ("ink", "page"),
    ("ink", "card"),
    ("muted", "page"),
    ("muted", "card"),
    ("link", "page"),
    ("link", "card"),
    ("on-red", "red"),
    ("warn-ink", "warn"),
)
"""what is read on what, each pair at 4.5 to 1 or more"""
SEEN_ON_PAGE = ("red", "total", "save", "failure", "keep", "l1", "l2", "l3", "l4", "l5", "l6")
"""what is seen without a word beside it, at 3 to 1 or more"""

ORDER = [
    "answer",
    "table-1",
    "steps",
    "bill",
    "interval",
    "power",
    "hours",
    "warnings",
    "findings",
    "further-1",
    "method",
    "scope2",
    "esrs",
    "sci",
    "boundary",
    "measurements",
    "factors",
    "sources",
    "reproducibility",
]


@pytest.fixture
def pages(extras_with):
    one, two = (
        statement(kind="measured"),
        statement(run_id="b", name="the other", rows=3, market=None),
    )
    return {
        "full": page_of(document(one), extras_with()),
        "plain": page_of(document(statement(dated=False))),
        "several": page_of(document(one, two), extras_with()._replace(tables=())),
    }


def test_sections_in_order(pages, parsed):
    ids = [tag.attributes["id"] for tag in parsed(pages["full"]).of("section")]
    assert ids == ORDER
    ids = [tag.attributes["id"] for tag in parsed(pages["several"]).of("section")]
    assert ids[:2] == ["answer", "comparison"]
    assert [each for each in ids if each.startswith("statement-")] == ["statement-1", "statement-2"]
    assert {"interval", "s1-steps", "s2-bill"} <= set(ids)


def test_what_it_rests_on_is_behind_what_it_says(pages):
    """On paper it begins a page of its own."""
    page = pages["full"]
    behind = page.index('<h2 class="appendix">')
    assert page.index('id="answer"') < page.index('class="cards"') < page.index('id="steps"')
    assert page.index('id="warnings"') < behind < page.index('id="factors"')
    assert ".appendix{break-before:page}" in page


def test_a_fleet_has_its_figures_in_large_and_a_picture(parsed):
    extras = Extras(
        title="a fleet",
        lead="Two jobs.",
        is_whole=True,
        tiles=[Tile("Energy", 115.0, "kWh", ["at least"])],
        falls=[
            Fall(
                "kWh", [FallStep("waiting", 100.0), FallStep("restart", None)], 115.0, name="Energy"
            )
        ],
    )
    page = page_of(document(statement(), statement(run_id="b")), extras)
    assert '<data value="115.0">115</data>' in page
    assert "at least" in page
    assert '<span class="f-save" style="left:0.00%;width:86.96%">' in page
    assert "not known" in parsed(page).words()


def test_nothing_known_is_said_once_and_not_drawn(parsed):
    none = [None] * len(LINES)
    page = page_of(document(statement(none, gpu_hours=none, costs=none, grid=None, market=None)))
    ids = [tag.attributes["id"] for tag in parsed(page).of("section")]
    assert "steps" not in ids
    assert ids.index("bill") > ids.index("warnings")
    assert 'class="cards"' not in page


def test_headings_step_down_one_at_a_time(pages, parsed):
    for page in pages.values():
        levels = [int(tag.name[1]) for tag in parsed(page).tags if re.fullmatch(r"h\d", tag.name)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b <= a + 1 for a, b in pairwise(levels))


def test_addresses_are_unique_and_lead_somewhere(pages, parsed):
    for page in pages.values():
        found = parsed(page)
        ids = [tag.attributes["id"] for tag in found.tags if "id" in tag.attributes]
        assert len(ids) == len(set(ids))
        wanted = [
            tag.attributes["href"][1:]
            for tag in found.of("a")
            if tag.attributes["href"].startswith("#")
        ]
        wanted += [
            each
            for tag in found.tags
            for each in (tag.attributes.get("aria-labelledby") or "").split()
        ]
        wanted += [tag.attributes["for"] for tag in found.of("label")]
        assert set(wanted) <= set(ids)


def test_tables_and_pictures_have_words(pages, parsed):
    for page in pages.values():
        found = parsed(page)
        assert all(
            tag.attributes.get("scope") in ("row", "col", "rowgroup") for tag in found.of("th")
        )
        boxes = [
            tag
            for tag in found.of("div")
            if "scroll" in (tag.attributes.get("class") or "").split()
        ]
        assert len(boxes) == len(found.of("table"))
        assert all(
            tag.attributes["aria-label"] and tag.attributes["tabindex"] == "0" for tag in boxes
        )
        assert all(tag.attributes["role"] == "img" for tag in found.of("svg"))
        assert len(found.of("desc")) == len(found.of("svg"))
        assert sum("svg" in tag.inside for tag in found.of("title")) == len(found.of("svg"))
        assert len(found.of("input")) == len(found.of("label"))
        assert [tag.attributes for tag in found.of("html")] == [{"lang": "en"}]


def test_nothing_stands_where_nothing_is_known(parsed):
    page = page_of(document(statement(dated=False)))
    ids = [tag.attributes["id"] for tag in parsed(page).of("section")]
    assert not {"findings", "interval", "table-1", "power", "hours", "measurements"} & set(ids)
    assert "a plan, no dates" in page.lower()
    assert page_of(document(), Extras(power=PowerPlot([], []))) == page_of(document())


def test_simulated_is_seen():
    calm, simulated = (
        statement(),
        statement(run_id="b", name="played").model_copy(update={"simulated": True}),
    )
    assert 'class="simulated"' not in page_of(document(calm))
    assert (
        '<p class="simulated">SIMULATED: nothing here was measured on this machine.</p>'
        in page_of(document(simulated))
    )
    both = page_of(document(calm, simulated))
    assert "This holds for: played." in both
    assert both.count('class="simulated"') == 2


def test_claims_are_marked_as_such(pages):
    table = pages["full"].split('id="table-1"')[1].split("</section>")[0]
    assert '<td class="n"><span class="claimed">nas-hdd</span></td>' in table


def test_a_warning_of_the_answer_and_its_statement_is_told_once():
    s = statement()
    (warned,) = s.warnings
    page = page_of(document(s), Extras(care=[(warned.code, "All of it."), ("OTHER", "Besides.")]))
    told = page.split('id="warnings"')[1].split("</section>")[0]
    assert "All of it." in told
    assert "Besides." in told
    assert told.count(warned.code) == 1


def test_of_many_rows_a_page_has_the_first_and_says_so():
    rows = [{"name": f"n{n}", "kwh": float(n)} for n in range(MOST_ROWS + 5)]
    columns = (Column("name", "name"), Column("kwh", "kWh", "kWh"))
    page = page_of(document(), Extras(tables=[Table("t", "Many", columns, rows, "of all")]))
    told = page.split('id="table-1"')[1].split("</section>")[0]
    assert told.count("<tr>") == MOST_ROWS + 1
    assert "Of all 5 more rows are in the other formats." in told


def test_the_last_row_of_a_table_is_bold_where_it_is_the_sum():
    columns = (Column("name", "name"), Column("kwh", "kWh", "kWh"), Column("why", "why"))
    rows = [{"name": name, "kwh": 1.0, "why": "so"} for name in ("total", "a", "total")]
    said = str(table_of(Table("t", "T", columns, rows))[0])
    assert said.count('<tr class="total">') == 1
    assert said.endswith(
        '<tr class="total"><th scope="row">total</th><td class="n">1</td><td>so</td></tr>'
        "</tbody></table></div>"
    )


def test_factors_of_several_stand_once_and_say_whose_they_are():
    a, b = statement(name="one"), statement(run_id="b", name="two")
    factors = [
        f.model_copy(update={"value": 1.3, "text": "1.3"}) if f.id == "site.pue" else f
        for f in b.factors
    ]
    page = page_of(document(a, b.model_copy(update={"factors": factors})))
    table = page.split('<section id="factors"')[1].split("</section>")[0]
    assert table.count('<tr><th scope="row">') == len(factors) + 1
    assert table.count("<code>site.pue</code>") == 2
    assert table.index(">of one<") < table.index(">of two<")
    assert page.count("<code>site.tariff</code>") == 1


def test_factors_name_value_range_origin_source_and_licence(pages):
    page = pages["full"]
    row = page.split("<code>site.grid_location</code>")[1].split("</tr>")[0]
    for words in (
        "384 g/kWh",
        "345-422 g/kWh",
        "published",
        "set by grid USA",
        'href="#source-1"',
        ">ember-owid<",
    ):
        assert words in row
    source = page.split('<span id="source-1">')[1].split("</tr>")[0]
    for words in (
        "Yearly electricity data",
        "Ember; Our World in Data",
        'href="https://ourworldindata.org" rel="noreferrer"',
        "CC BY 4.0",
    ):
        assert words in source


def test_what_is_needed_to_get_the_same_again(pages):
    end = pages["full"].split('id="reproducibility"')[1]
    whole = document(statement(kind="measured"))
    for words in (
        whole.reproducibility.result_sha256,
        whole.generated_at,
        "ckptcost export",
        "2026.1",
        "ckptcost.report 2.0",
        "0.1.0",
    ):
        assert words in end


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """As WCAG 2.2 defines it."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_as_the_standard_counts_it():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_enough(colours):
    poor = [(a, b) for a, b in READ_ON if contrast(colours[a], colours[b]) < 4.5]
    assert poor == []
    assert [name for name in SEEN_ON_PAGE if contrast(colours[name], colours["page"]) < 3] == []


def test_areas_are_told_apart_in_grey():
    for colours in (LIGHT, DARK):
        for low, high in (("stall", "drain"), ("save", "failure"), ("failure", "total")):
            assert abs(luminance(colours[low]) - luminance(colours[high])) > 0.03, (low, high)
    assert set(LIGHT) == set(DARK)


def test_paper_is_light_and_shows_every_panel():
    css = style_sheet()
    assert "@media screen and (prefers-color-scheme:dark)" in css
    paper = css.split("@media print")[1]
    assert ".panel{display:block" in paper
    assert "size:A4" in css
    assert css.count("{") == css.count("}")
    named = set(re.findall(r"var\(--([\w-]+)\)", css))
    assert named <= set(LIGHT)


def test_statements_that_are_parts_of_one_whole_are_not_held_against_each_other():
    made = document(
        statement(kind="measured"), statement(run_id="b", name="the other", rows=3, market=None)
    )
    page = page_of(
        made,
        Extras(
            title="All of it",
            lead="3 jobs; each has a bill.",
            is_whole=True,
            findings=["It took an hour."],
        ),
    )
    assert "Side by side" in page_of(made)
    assert "Side by side" not in page
    assert "3 jobs; each has a bill." in page
    assert "It took an hour." in page
    assert 'id="reproducibility"' in page
