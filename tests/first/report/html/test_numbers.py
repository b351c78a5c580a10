"""The page's numbers are the statement's: parsed back by a parser that is not ours, with slips
planted to see that it looks."""

from __future__ import annotations

import html
import math
import re

import pytest
from hypothesis import given, settings
from statements import LINES, big, document, documents, statement

from ckptcost.first.present.amounts import number
from ckptcost.first.report import statement_views
from ckptcost.first.report.html.page import Extras, page_of
from ckptcost.first.report.html.sections import NAMES
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.study import shown_cells

HEADS = {
    "energy": "kWh",
    "gpu_time_lost": "GPU-h",
    "cost": "USD",
    "emissions_location": "kgCO2e location",
    "emissions_market": "kgCO2e market",
    "embodied": "kgCO2e embodied",
    "water": "L water",
}
_ROW = re.compile(r"<tr(?: class=\"(\w+)\")?><th scope=\"row\">(.*?)</th>(.*?)</tr>", re.S)
_CELL = re.compile(r"<td(?: class=\"n\")?>(.*?)</td>", re.S)
_DATA = re.compile(r"<data value=\"([^\"]+)\">([^<]*)</data>")


def cell(markup: str) -> float | None:
    found = _DATA.match(markup)
    if found is None:
        assert markup.startswith("-"), markup
        return None
    value = float(found[1])
    assert found[2] == number(value)
    return value


def shown_of(s: Statement) -> list[str]:
    """The quantities of which any line is known: those have a column."""
    return [what for what in HEADS if any(getattr(c, what).value is not None for c in s.components)]


def rows_of(page: str, at: str, shown: list[str]) -> list[tuple[bool, list[float | None]]]:
    """Rows of a bill in the page: whether it is a total, and its figures."""
    body = page.split(f'id="{at}bill-table"')[1].split("</table>", maxsplit=1)[0]
    assert re.findall(r"<th scope=\"col\"[^>]*>([^<]*)</th>", body) == [
        "Line",
        *(HEADS[what] for what in shown),
        "Basis",
        "Rests on",
    ]
    found = []
    for class_, _, rest in _ROW.findall(body):
        cells = _CELL.findall(rest)
        assert len(cells) == len(shown) + 2
        found.append((class_ == "total", [cell(each) for each in cells[: len(shown)]]))
    return found


def same(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9)


def check(page: str, whole) -> None:
    """Raises where a bill in the page is not the statement's."""
    many = len(whole.statements) > 1
    for n, s in enumerate(whole.statements, 1):
        shown = shown_of(s)
        rows = rows_of(page, f"s{n}-" if many else "", shown)
        lines = sorted(s.marginal(), key=lambda c: ("save", "failure", "keep").index(c.cause))
        standing = [c for c in s.components if c.ledger == "allocated"]
        wanted = [(False, c) for c in lines] + [(True, s.totals)] + [(False, c) for c in standing]
        assert [total for total, _ in rows] == [total for total, _ in wanted]
        for (_, mine), (_, theirs) in zip(rows, wanted, strict=True):
            for what, value in zip(shown, mine, strict=True):
                assert same(value, getattr(theirs, what).value), (
                    what,
                    value,
                    getattr(theirs, what),
                )
        for i, what in enumerate(shown):
            known = [row[i] for _, row in rows[: len(lines)] if row[i] is not None]
            total = rows[len(lines)][1][i]
            assert (total is None) == (not known), what
            assert total is None or math.isclose(total, math.fsum(known), rel_tol=1e-9)


@given(documents())
@settings(max_examples=50, deadline=None)
def test_every_figure_is_the_statements(whole):
    check(page_of(whole), whole)


def test_planted_slips_are_found():
    whole = document()
    page = page_of(whole)
    check(page, whole)
    head, body = page.split('id="bill-table"')
    exact = "1200.5"
    assert body.count(f'value="{exact}"') == 1
    thousand = (
        head + 'id="bill-table"' + body.replace(f'value="{exact}">1,200', 'value="1200500.0">1.2M')
    )
    shown = head + 'id="bill-table"' + body.replace(">1,200</data>", ">1,201</data>", 1)
    dropped = (
        head
        + 'id="bill-table"'
        + re.sub(r"<td class=\"n\"><data value=\"1200.5\">.*?</td>", "", body, count=1, flags=re.S)
    )
    swapped = (
        page.replace(">kgCO2e location<", ">@<")
        .replace(">kgCO2e market<", ">kgCO2e location<")
        .replace(">@<", ">kgCO2e market<")
    )
    total = (
        head
        + 'id="bill-table"'
        + body.replace(
            f'value="{whole.statements[0].totals.energy.value!r}"', 'value="2764.875"', 1
        )
    )
    zero = (
        head
        + 'id="bill-table"'
        + body.replace('<td class="n">-</td>', '<td class="n"><data value="0.0">0</data></td>', 1)
    )
    for slipped in (thousand, shown, dropped, swapped, total, zero):
        assert slipped != page
        with pytest.raises(AssertionError):
            check(slipped, whole)


def card(page: str, name: str) -> str:
    found = re.findall(
        rf'<li(?: class="apart")?><div class="what"><span>{name}</span>.*?</li>', page, re.S
    )
    assert len(found) == 1
    return re.sub(r"<[^>]+>", " ", found[0])


def test_cards_say_value_range_and_basis():
    s = statement()
    page = page_of(document(s))
    said = card(page, "Energy")
    for words in (
        number(s.totals.energy.value),
        "kWh",
        "modelled",
        "2,500-3,000",
        "(p5-p95)",
        "not in it because unknown: storage writing",
    ):
        assert words in said
    assert "not to be added" in card(page, "Emissions, market-based")
    assert "in no total" in card(page, "Embodied carbon")


def test_unknown_is_said_with_its_reason_and_is_never_zero():
    none = [None] * len(LINES)
    s = statement(none, gpu_hours=none, costs=none, grid=None, market=None).model_copy(
        update={
            "factors": [],
        }
    )
    page = page_of(document(s))
    assert 'class="cards"' not in page
    said = re.search(r"Not known: (.*?)\.</p>", page)
    assert said is not None
    told = dict(each.split(" (", 1) for each in said[1].split("; "))
    assert list(told) == list(NAMES.values())
    assert told["Emissions, market-based"] == "site.grid_market is not given)"
    assert told["Emissions, location-based"] == "site.grid_location is not given)"
    assert told["Energy"] == "every line)"
    assert 'id="steps"' not in page


def test_a_true_zero_is_a_zero():
    zero = [0.0] * len(LINES)
    page = page_of(document(statement(zero, gpu_hours=zero, costs=zero)))
    for name in ("Energy", "GPU time lost", "Cost"):
        assert re.search(r"\b0\s", card(page, name))


def test_allocated_stands_apart():
    page = page_of(document())
    apart = page.split("Apart, in no total")[1].split("</table>")[0]
    assert "idle storage, its share" in apart
    assert page.split('id="bill-table"')[1].index("Total of the lines above") < page.split(
        'id="bill-table"'
    )[1].index("Apart, in no total")


def test_scope_2_in_tonnes_and_megawatt_hours():
    s = statement()
    page = page_of(document(s))
    esrs = page.split('id="esrs"')[1].split("</section>")[0]
    for q in (s.totals.energy, s.totals.emissions_location, s.totals.emissions_market):
        assert f'<td class="n">{number(q.value / 1000)}</td>' in esrs
    for words in ("Memo item", "Do not add it to an inventory.", "E1-5", "E1-6"):
        assert words in esrs
    scope = page.split('id="scope2"')[1].split("</section>")[0]
    for words in ("location-based", "market-based", "Wind PPA", "60 %"):
        assert words in scope


@pytest.mark.parametrize(
    ("at", "table"),
    [
        ("scope2", statement_views.scope_two),
        ("esrs", statement_views.esrs),
        ("sci", statement_views.sci_table),
        ("measurements", statement_views.measurements),
    ],
)
def test_a_table_that_the_text_has_too_is_the_same(at, table):
    s = statement(kind="measured")
    of = table(s)
    header, rows, _ = shown_cells(of)
    section = page_of(document(s)).split(f'<section id="{at}"')[1].split("</section>")[0]
    assert f">{of.title}</h2>" in section
    body = section.split("</div>")[0]
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", body, re.S)
    assert [html.unescape(each) for each in cells] == [
        each for row in [header, *rows] for each in row
    ]
    assert of.note in html.unescape(section)


def test_the_comparison_differs_from_the_first():
    a, b = statement(), statement((2401.0, 2700.5, None, 420.25, 0.0), run_id="b", name="twice")
    page = page_of(document(a, b))
    table = page.split('id="comparison-table"')[1].split("</table>")[0]
    assert f'value="{a.totals.energy.value!r}"' in table
    assert f'value="{b.totals.energy.value!r}"' in table
    assert "+100 %" in table
    assert "as the first" in table
    assert "Compare with care" not in page
    assert "without storage writing" in table


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"method_version": "2027.1"}, "the version of the method"),
        ({"kind": "measured"}, "measured or modelled"),
        ({"simulated": True}, "simulated or not"),
    ],
)
def test_a_comparison_of_unlike_statements_says_so(changed, words):
    other = statement(run_id="b").model_copy(update=changed)
    page = page_of(document(statement(), other))
    assert f"Compare with care. These statements are not alike in: {words}" in page


def test_a_hundred_thousand_rows_are_quick_and_small():
    import time

    whole = big()
    began = time.process_time()
    page = page_of(whole, Extras())
    assert time.process_time() - began < 5
    assert len(page) < 400_000
    check(page, whole)
