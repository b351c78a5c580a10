"""The page, section by section: words, units and places."""

from __future__ import annotations

import html
import re

import pytest
from statements import document, quantity, statement

from ckptcost.first.report import statement_views
from ckptcost.first.report.html import pictures, sections
from ckptcost.first.report.html.markup import data, el, link, px, range_text, text
from ckptcost.first.report.html.page import page_of
from ckptcost.first.report.parts import FunctionalUnit, InputFile, Quantity
from ckptcost.first.report.statement import Contract

ZERO = (0.0,) * 5


def words(markup) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", str(markup))).split())


def changed(s, **fields):
    return s.model_copy(update=fields)


def subject(s, **fields):
    return changed(s, subject=s.subject.model_copy(update=fields))


def total(s, what, **fields):
    return changed(
        s,
        totals=s.totals.model_copy(
            update={what: getattr(s.totals, what).model_copy(update=fields)}
        ),
    )


# ---- elements


def test_escapes_and_numbers_in_attributes():
    assert text("'\"<>&") == "&#x27;&quot;&lt;&gt;&amp;"
    assert text("a\x00b\u202ec\x1fd") == "a\ufffdb\ufffdc\ufffdd"
    assert el("i", hidden=False, title=None, id="x") == '<i id="x"></i>'
    assert (px(-0.01), px(3.25), px(12.0)) == ("0", "3.2", "12")


def test_an_exact_number_stands_behind_the_one_that_is_read():
    assert data(0.1 + 0.2) == '<data value="0.30000000000000004">0.3</data>'
    assert data(0.0) == '<data value="0.0">0</data>'
    assert data(None) == "-"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (None, None, ""),
        (3.0, 3.0, ""),
        (3.0, None, ">3"),
        (1.0, 2.0, "1-2"),
        (-1.0, 2.0, "-1 to 2"),
        (0.0, 2.0, "0-2"),
        (-1.0, -1.0, ""),
        (-2.0, None, ">-2"),
    ],
)
def test_ranges_in_words(low, high, said):
    assert range_text(Quantity(value=1.0, unit="kWh", low=low, high=high)) == said


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "https://a b",
        'https://x"onclick=1',
        "//x.org",
        "data:text/html,x",
        " https://x.org",
        "https://x.org<",
    ],
)
def test_what_is_no_plain_address_is_no_link(url):
    assert "<a" not in link(url, "here")
    assert html.unescape(link(url, "here")) == f"here ({url})"


def test_a_link_tells_nobody_where_it_came_from():
    assert (
        link("https://x.org/a?b=1#c", "here")
        == '<a href="https://x.org/a?b=1#c" rel="noreferrer">here</a>'
    )


# ---- what comes first


def test_why_a_figure_is_not_known():
    s = statement(grid=None, market=None)
    assert sections.why_unknown(s, "emissions_location") == "site.grid_location is not given"
    assert sections.why_unknown(s, "emissions_market") == "site.grid_market is not given"
    given = statement((1.0, None, 0.0, 0.0, 0.0))
    assert sections.why_unknown(given, "energy") == "hosts waiting for saves"
    assert sections.why_unknown(given, "emissions_location") == "hosts waiting for saves"


def test_every_line_is_said_only_of_a_sum_that_is_not_known():
    s = statement()
    ids = [c.id for c in s.marginal()]
    assert sections.without(s, quantity("energy", None, excludes=ids)) == "every line"
    assert sections.without(s, quantity("energy", 1.0, excludes=ids)).startswith(
        "GPUs waiting for saves, "
    )
    assert sections.without(s, quantity("energy", 1.0, excludes=["window 3"])) == "window 3"


def test_figures_in_large_say_zero_and_not_known_apart():
    zero = statement(ZERO, gpu_hours=ZERO, costs=ZERO)
    assert "Energy modelled 0 kWh" in words(sections.tiles(sections.tiles_of(zero)))
    assert "Energy" not in words(sections.missing(zero))
    assert "Not known: Emissions, location-based (" in words(sections.missing(statement(grid=None)))


def test_a_figure_in_large_has_its_range_and_what_kind_it_is():
    s = statement((1000.0, 0.0, 0.0, 0.0, 0.0))
    assert "1,000 kWh 900-1,100 (p5-p95)" in words(sections.tiles(sections.tiles_of(s)))


def test_facts_each_under_its_name():
    s = subject(
        statement(),
        latitude=0.0,
        longitude=7.5,
        nodes=3.0,
        ram_gb=64.0,
        tokens=5.0,
        parameters=6.0,
        team="t",
        organisation="o",
    )
    facts = sections.facts_of(s)
    wanted = {
        "Coordinates": "0, 7.5",
        "Checkpoints": "8",
        "Nodes": "3",
        "Memory": "64 GB",
        "Training tokens": "5",
        "Parameters": "6",
        "Team": "t",
        "Organisation": "o",
        "Accelerators": "1,024 x H100 SXM5 80GB",
        "Site": "United States",
        "Grid": "United States (USA)",
        "Period": "2026-10-01 00:30 to 2026-10-01 05:00 UTC",
    }
    assert {name: facts[name] for name in wanted} == wanted
    assert "Coordinates" not in sections.facts_of(subject(s, longitude=None))


def test_whose_meters_were_simulated():
    one, two = changed(statement(), simulated=True), statement(name="the real one")
    assert sections.simulated_notice([two]) == ""
    assert "This holds for: GPT-4 scale, nas-hdd." in sections.simulated_notice([one, two])
    assert "This holds for" not in sections.simulated_notice([one, one])


def test_warnings_with_their_codes():
    assert (
        words(sections.take_care("", [("UNKNOWN_INPUT", "tier.write_energy is not known.")], 2))
        == "Take care tier.write_energy is not known. UNKNOWN_INPUT"
    )


# ---- the bill


def test_a_line_of_the_bill_by_hand():
    s = statement(
        (1000.0, 0.0, 0.0, 0.0, 0.0),
        gpu_hours=(10.0, 0.0, 0.0, 0.0, 0.0),
        costs=(54.35, 0.0, 0.0, 0.0, 0.0),
        grid=0.4,
        market=0.1,
        dated=False,
    )
    line = " ".join(words(each) for each in sections._line(s.components[0], list(sections.COLUMNS)))
    assert line.startswith(
        "GPUs waiting for saves node 1,000 900-1,100 10 9-11 54.4 49-60 10 GPU-h x 5.43 400 360-440"
        " 100 90-110 0.33 "
    ), line
    assert line.endswith("modelled published")


def test_zero_lines_and_unknown_lines_are_not_the_same_words():
    energy, *_ = sections.falls_of(statement((1000.0, 0.0, None, 0.0, 0.0)))
    said = words(pictures.fall_figure(energy))
    assert (
        "not in it because unknown: storage writing; zero: hosts waiting for saves, work redone"
        " after failures, keeping the bytes." in said
    )
    assert "storage writing not known total, kWh 1,000 (900-1,100)" in said


def test_the_other_ledger_is_below_the_total_and_says_so():
    said = words(sections.bill("", statement(), 2))
    assert (
        said.index("Total of the lines above")
        < said.index("Apart, in no total")
        < said.index("idle storage, its share")
    )
    assert "Total of the allocated ledger" not in said  # one line is its own total


def test_a_bill_counts_saves():
    s = statement()
    assert "8 checkpoints." in words(sections.bill("", s, 2))
    once = total(s, "checkpoints", value=1.0)
    assert "1 checkpoint. Location-based" in words(sections.bill("", once, 2))


# ---- for inventories


def contract(**fields):
    return Contract(
        **{"name": "Wind", "instrument": "PPA", "share": 0.6, "kgco2e_per_kwh": 0.035, **fields}
    )


def test_contracts_in_grams_with_their_dates_and_source():
    one = contract(valid_from="2026-01-01T00:00:00Z", source="javascript:alert(1)")
    *_, source, _, _ = sections._contract(one)
    said = " ".join(map(words, sections._contract(one)))
    assert said == "Wind PPA 2026-01-01T00:00:00Z to open javascript:alert(1) 60 % 35 g/kWh"
    assert "<a" not in source
    assert "<a " in sections._contract(contract(source="https://x.org"))[3]
    assert (
        " ".join(map(words, sections._contract(contract(valid_until="2027-01-01T00:00:00Z"))))
        == "Wind PPA open to 2027-01-01T00:00:00Z - 60 % 35 g/kWh"
    )


def test_both_methods_with_their_own_factor_and_tonnes():
    s = statement((1000.0, 0.0, 0.0, 0.0, 0.0), grid=0.4, market=0.1, dated=False)
    said = words(sections.scope_2("", s, 2))
    assert "location-based 400 g/kWh 400 360-440 kgCO2e" in said
    assert "Scope 2, market-based 100 g/kWh 100 90-110 kgCO2e" in said
    esrs = words(sections.esrs("", s, 2))
    assert "location-based (memo) 0.4 0.36-0.44 tCO2e" in esrs
    assert "market-based (memo) 0.1 0.09-0.11 tCO2e" in esrs


def test_no_market_based_figure_is_made_up():
    s = changed(statement(market=None), contracts=[])
    assert "market-based (memo) not known" in words(sections.esrs("", s, 2))
    assert (
        "No contract for electricity is given. Without one, no market-based figure is made up."
        in words(sections.scope_2("", s, 2))
    )


def test_the_boundary_is_the_texts():
    s = statement()
    for line in statement_views.boundary_lines(s):
        assert line in words(sections.boundary("", s, 2))


# ---- side by side


def test_differences_are_from_the_first():
    one, two, three = (
        statement((float(n), 0.0, 0.0, 0.0, 0.0), run_id=str(n), name=f"n{n}", dated=False)
        for n in (100, 150, 50)
    )
    said = words(sections.comparison([one, two, three]))
    assert "n150 modelled nas-hdd 150 140-160 +50 %" in said
    assert "n50 modelled nas-hdd 50 45-55 -50 %" in said


def test_emissions_of_two_grid_methods_have_no_difference():
    one, two = (
        changed(
            statement((float(n), 0.0, 0.0, 0.0, 0.0), run_id=str(n), name=f"n{n}", grid=0.4),
            choices={"site.grid_method": method},
        )
        for n, method in ((100, "life-cycle"), (150, "combustion"))
    )
    said = words(sections.comparison([one, two]))
    assert "not alike in: what the grid's factor counts" in said
    assert said.count("no difference told: another method of the grid's factor") == 1
    assert "+50 %" in said, "of what does not rest on the grid"


def test_nothing_left_is_a_fall_of_all():
    one, two = statement((100.0, 0.0, 0.0, 0.0, 0.0)), statement(ZERO, name="none", run_id="b")
    assert "none modelled nas-hdd 0 -100 %" in words(sections.comparison([one, two]))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"method_version": "2020.1"}, "the version of the method"),
        ({"simulated": True}, "simulated or not"),
        ({"kind": "mixed"}, "measured or modelled"),
    ],
)
def test_what_has_to_be_alike(other, said):
    assert sections.unlike([statement(), changed(statement(), **other)]) == [said]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"pue": 1.3}, "PUE"),
        ({"pue_included_in_energy": False}, "PUE"),
        ({"included": ["x"]}, "what is counted"),
        ({"counterfactual": "x"}, "what is counted"),
    ],
)
def test_what_has_to_be_alike_of_boundaries(other, said):
    s = statement()
    assert sections.unlike([s, changed(s, boundary=s.boundary.model_copy(update=other))]) == [said]
    assert sections.unlike([s, s]) == []


def test_a_total_says_what_it_lacks_and_unlike_ones_have_no_difference():
    lacking = statement((100.0, None, None, 0.0, 0.0), run_id="b", name="b")
    both = words(sections.comparison([statement(), lacking]))
    assert "without storage writing" in both
    assert "no difference told: not the same lines are known without hosts waiting" in both
    assert "Not known of any:" in words(sections.comparison([statement(market=None)] * 2))


def test_simulated_meters_are_told_beside_the_name():
    said = words(
        sections.comparison([changed(statement(), simulated=True), statement(run_id="b", name="b")])
    )
    assert "GPT-4 scale, nas-hdd modelled, SIMULATED nas-hdd" in said
    assert said.count("SIMULATED") == 1


# ---- what it rests on


def test_proof_by_hand():
    s = statement(kind="measured")
    doc = document(s)
    doc = doc.model_copy(
        update={
            "reproducibility": doc.reproducibility.model_copy(
                update={"inputs": [InputFile(path="a.json", bytes=2048, sha256="cd" * 32)]}
            )
        }
    )
    said = words(sections.reproducibility(doc))
    assert doc.reproducibility.result_sha256 in said
    assert "a.json" in said
    assert "cd" * 32 in said
    assert said.endswith("with the id statement.")
    method = words(
        sections.method(
            "", changed(s, functional_units=[FunctionalUnit(name="checkpoint", count=8.0)]), 2
        )
    )
    assert "Method version 2026.1." in method
    assert "Functional units: checkpoint (8)." in method
    assert words(sections.measurements("", s, 2)).endswith(
        "gpu:0 NVML total energy consumption node 0.1 s 100 % 0.2 kWh: over the whole time,"
        " training included."
    )


def test_a_factor_with_its_exact_value_range_origin_and_source():
    f = next(each for each in statement().factors if each.id == "site.grid_location")
    places = sections.places_of(f.sources)
    assert list(places.values()) == ["source-1"]
    row = "".join(f"<td>{each}</td>" for each in sections._factor_row(f, places))
    assert f'<data value="{f.value!r}">384 g/kWh</data>' in row
    assert (
        words(row)
        == "site.grid_location what site.grid_location means 384 g/kWh 345-422 g/kWh published set"
        " by grid USA ember-owid"
    )
    assert "unlimited" in sections._factor_row(f.model_copy(update={"value": None}), places)
    assert "unlimited" not in sections._factor_row(f.model_copy(update={"value": 0.0}), places)


def test_a_source_without_a_licence_says_so_and_a_bad_address_is_no_link():
    source = (
        statement()
        .factors[0]
        .sources[0]
        .model_copy(update={"licence": None, "url": "javascript:x"})
    )
    said = sections.sources([source])
    assert words(said).endswith("not stated")
    assert "<a" not in said


def test_a_source_without_an_address_says_why():
    source = statement().factors[0].sources[0].model_copy(update={"url": None, "no_url": "a talk"})
    assert "no address: a talk" in words(sections.sources([source]))
    unexplained = source.model_copy(update={"no_url": None})
    assert "no address" not in words(sections.sources([unexplained]))


# ---- the page


def test_two_statements_are_told_side_by_side_each_with_its_meters():
    page = page_of(
        document(statement(name="one"), changed(statement(run_id="b", name="two"), simulated=True))
    )
    first, second = page.split('id="statement-2"', maxsplit=1)
    assert "Side by side" in first
    assert 'class="simulated"' in second


def test_the_document_inside_the_page_cannot_end_or_begin_markup():
    s = changed(statement(name="</script><!-- & é \x7f"), method_version=">")
    inside = sections.embed_json(document(s))
    assert inside.isascii()
    assert not set("<>&\x7f") & set(inside)
