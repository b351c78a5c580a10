"""The page, section by section: words, units and places that only a look would notice."""

from __future__ import annotations

import html
import re

import pytest
from statements import START, document, quantity, statement

from ckptcost.report.html import (
    sections,
    sections_bill,
    sections_carbon,
    sections_compare,
    sections_pictures,
    sections_proof,
    svg_axis,
    svg_curve,
    svg_emissions,
    svg_power,
    svg_waterfall,
)
from ckptcost.report.html.embedded import embedded
from ckptcost.report.html.extras import Band, Curve, Extras, Line, Power, Sci, TextTable
from ckptcost.report.html.markup import data, el, link, px, ranged, text
from ckptcost.report.html.page import page_of
from ckptcost.report.html.svg_axis import Scale
from ckptcost.report.html.svg_waterfall import Fall, Step
from ckptcost.report.parts import FunctionalUnit, InputFile, Quantity, Warned
from ckptcost.report.statement import Contract

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
    assert ranged(Quantity(value=1.0, unit="kWh", low=low, high=high)) == said


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
    s = changed(
        statement(grid=None, market=None),
        warnings=[Warned(code="W", message="The grid_location is a yearly mean.")],
    )
    assert (
        sections.why_unknown(s, "emissions_location")
        == "no factor of the grid is given (site.grid_location)"
    )
    assert (
        sections.why_unknown(s, "emissions_market")
        == "no factor of a supplier or a contract is given (site.grid_market)"
    )
    told = changed(s, warnings=[Warned(code="W", message="grid_location is not known.")])
    assert sections.why_unknown(told, "emissions_location") == "grid_location is not known."


def test_every_line_is_said_only_of_a_sum_that_is_not_known():
    s = statement()
    ids = [c.id for c in s.marginal()]
    assert sections.without(s, quantity("energy", None, excludes=ids)) == "every line"
    assert sections.without(s, quantity("energy", 1.0, excludes=ids)).startswith(
        "GPUs waiting for saves, "
    )
    assert sections.without(s, quantity("energy", 1.0, excludes=["window 3"])) == "window 3"


def test_cards_say_zero_and_not_known_apart():
    zero = statement(ZERO, gpu_hours=ZERO, costs=ZERO)
    said = words(sections.cards(zero))
    assert "not known" not in said
    assert "Energy modelled 0 kWh" in said
    assert "Not known: Emissions, location-based (" in words(sections.cards(statement(grid=None)))


def test_a_card_has_its_range_and_what_kind_it_is():
    said = words(sections.cards(statement((1000.0, 0.0, 0.0, 0.0, 0.0))))
    assert "1,000 kWh 900-1,100 (p5-p95)" in said


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
    facts = dict(sections._facts(s))
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
    assert "Coordinates" not in dict(sections._facts(subject(s, longitude=None)))


def test_whose_meters_were_simulated():
    one, two = changed(statement(), simulated=True), statement(name="the real one")
    assert sections.simulated([two]) is None
    assert "This holds for: GPT-4 scale, nas-hdd." in words(sections.simulated([one, two]))
    assert "This holds for" not in words(sections.simulated([one, one]))


def test_warnings_with_their_codes():
    assert (
        words(sections.take_care("", statement(), 2))
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
    line = words(sections_bill._line(s.components[0], sections_bill.COLUMNS))
    assert line.startswith(
        "GPUs waiting for saves node 1,000 900-1,100 10 9-11 54.4 49-60 10 GPU-h x 5.43 400 360-440"
        " 100 90-110 0.33 "
    ), line
    assert line.endswith("modelled published")


def test_zero_lines_and_unknown_lines_are_not_the_same_words():
    s = statement((1000.0, 0.0, None, 0.0, 0.0))
    said = words(sections_bill._steps("x", s, "energy", "Energy", "kWh"))
    assert (
        "not in it because unknown: storage writing; zero: hosts waiting for saves, work redone"
        " after failures, keeping the bytes." in said
    )
    assert "storage writing not known; total 1,000 kWh" in said


def test_the_other_ledger_is_below_the_total_and_says_so():
    said = words(sections_bill.bill("", statement(), 2))
    assert (
        said.index("Total of the lines above")
        < said.index("Apart, in no total")
        < said.index("idle storage, its share")
    )
    assert "Total of the allocated ledger" not in said  # one line is its own total


def test_remarks_name_what_is_missing_and_count_saves():
    said = words(sections_bill.bill("", statement(), 2))
    assert "8 checkpoints." in said
    assert "Not in the totals because unknown: kWh: storage writing; USD: storage writing; " in said


# ---- for inventories


def contract(**fields):
    return Contract(
        **{"name": "Wind", "instrument": "PPA", "share": 0.6, "kgco2e_per_kwh": 0.035, **fields}
    )


def test_contracts_in_grams_with_their_dates_and_source():
    one = contract(valid_from="2026-01-01T00:00:00Z", source="javascript:alert(1)")
    said = sections_carbon._contract(one)
    assert words(said) == "Wind PPA 2026-01-01T00:00:00Z to open javascript:alert(1) 60 % 35 g/kWh"
    assert "<a" not in said
    assert "<a " in sections_carbon._contract(contract(source="https://x.org"))
    assert (
        words(sections_carbon._contract(contract(valid_until="2027-01-01T00:00:00Z")))
        == "Wind PPA open to 2027-01-01T00:00:00Z - 60 % 35 g/kWh"
    )


def test_both_methods_with_their_own_factor_and_tonnes():
    s = statement((1000.0, 0.0, 0.0, 0.0, 0.0), grid=0.4, market=0.1, dated=False)
    said = words(sections_carbon.scope_2("", s, 2))
    assert said.startswith("Scope 2 Memo item. This energy already sits in the facility's meter")
    called = "Scope 2 (method not known), location-based"
    assert f"{called} 400 kgCO2e 360-440 (p5-p95) at 400 g/kWh" in said
    assert "Scope 2, market-based 100 kgCO2e 90-110 (p5-p95) at 100 g/kWh" in said
    assert said.endswith(
        "E1-5 energy consumption MWh 1"
        " E1-6 Scope 2 (method not known) emissions, location-based tCO2e 0.4"
        " E1-6 gross Scope 2 emissions, market-based tCO2e 0.1"
    )


def test_an_unknown_line_of_esrs_is_not_zero():
    said = words(sections_carbon.scope_2("", changed(statement(market=None), contracts=[]), 2))
    assert said.endswith("market-based tCO2e not known")
    assert (
        "No contract for electricity is given. Without one, no market-based figure is made up."
        in said
    )


def test_the_boundary_says_whether_pue_is_in_it():
    s = statement()
    assert "PUE 1.15, included in every energy." in words(sections_carbon.boundary("", s, 2))
    for fields, said in (
        ({"pue_included_in_energy": False}, "PUE 1.15, not included in the energies."),
        ({"pue": None}, "no PUE is applied."),
    ):
        assert said in words(
            sections_carbon.boundary(
                "", changed(s, boundary=s.boundary.model_copy(update=fields)), 2
            )
        )
    assert "Inventory treatment: memo item." in words(sections_carbon.boundary("", s, 2))


def test_score_rows_unknown_words_and_numbers():
    said = words(
        sections_carbon.sci("", [Sci("a", None, "u", "n"), Sci("b", 0.0, "u"), Sci("c", "w")], 2)
    )
    assert said.endswith("a not known u n b 0 u c w")


# ---- side by side


def test_differences_are_from_the_first():
    one, two, three = (
        statement((float(n), 0.0, 0.0, 0.0, 0.0), run_id=str(n), name=f"n{n}", dated=False)
        for n in (100, 150, 50)
    )
    said = words(sections_compare.comparison([one, two, three]))
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
    said = words(sections_compare.comparison([one, two]))
    assert "not alike in: what the grid's factor counts" in said
    assert said.count("no difference told: another method of the grid's factor") == 1
    assert "+50 %" in said, "of what does not rest on the grid"


def test_nothing_left_is_a_fall_of_all():
    one, two = statement((100.0, 0.0, 0.0, 0.0, 0.0)), statement(ZERO, name="none", run_id="b")
    assert "none modelled nas-hdd 0 -100 %" in words(sections_compare.comparison([one, two]))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"method_version": "2020.1"}, "the version of the method"),
        ({"simulated": True}, "simulated or not"),
        ({"kind": "mixed"}, "measured or modelled"),
    ],
)
def test_what_has_to_be_alike(other, said):
    assert sections_compare.unlike([statement(), changed(statement(), **other)]) == [said]


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
    assert sections_compare.unlike(
        [s, changed(s, boundary=s.boundary.model_copy(update=other))]
    ) == [said]
    assert sections_compare.unlike([s, s]) == []


def test_factors_of_all_are_those_that_are_alike():
    s = statement()
    other = changed(
        s,
        factors=[
            f.model_copy(update={"value": 9.0}) if f.id == "site.pue" else f for f in s.factors
        ],
    )
    assert "site.pue" not in {f.id for f in sections_compare.in_all([s, other])}
    assert len(sections_compare.in_all([s, other])) == len(s.factors) - 1


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
    said = words(sections_proof.reproducibility(doc, 2, "left out"))
    assert doc.reproducibility.result_sha256 in said
    assert "a.json" in said
    assert "cd" * 32 in said
    assert said.endswith("statement. left out")
    method = words(
        sections_proof.method(
            "", changed(s, functional_units=[FunctionalUnit(name="checkpoint", count=8.0)]), 2
        )
    )
    assert "Method version 2026.1." in method
    assert "Functional units: checkpoint (8)." in method
    assert words(sections_proof.measurements("", s.measurements, 2)).endswith(
        "gpu:0 NVML total energy consumption gpu node measured 0.1 s 100 % 0.2"
    )


def test_a_factor_with_its_exact_value_range_origin_and_source():
    f = next(each for each in statement().factors if each.id == "site.grid_location")
    places = sections_proof.places_of(f.sources)
    assert list(places.values()) == ["source-1"]
    row = sections_proof._factor(f, places)
    assert f'<data value="{f.value!r}">384 g/kWh</data>' in row
    assert (
        words(row)
        == "site.grid_location what site.grid_location means 384 g/kWh 345-422 g/kWh published set"
        " by grid USA ember-owid"
    )
    assert "unlimited" in sections_proof._factor(f.model_copy(update={"value": None}), places)
    assert "unlimited" not in sections_proof._factor(f.model_copy(update={"value": 0.0}), places)


def test_a_source_without_a_licence_says_so_and_a_bad_address_is_no_link():
    source = (
        statement()
        .factors[0]
        .sources[0]
        .model_copy(update={"licence": None, "url": "javascript:x"})
    )
    said = sections_proof.sources([source], 2)
    assert words(said).endswith("not stated")
    assert "<a" not in said


def test_a_source_without_an_address_says_why():
    source = statement().factors[0].sources[0].model_copy(update={"url": None, "no_url": "a talk"})
    assert "no address: a talk" in words(sections_proof.sources([source], 2))
    unexplained = source.model_copy(update={"no_url": None})
    assert "no address" not in words(sections_proof.sources([unexplained], 2))


# ---- pictures


def series(s, **columns):
    return changed(s, series=s.series.model_copy(update=columns))


def test_bars_are_sums_of_components_and_one_unknown_does_not_hide_another():
    s = statement(
        (1.0, 2.0, None, 0.0, 0.0),
        gpu_hours=(1.0, 1.0, 1.0, 0.0, 0.0),
        rows=2,
        begin=START,
        grid=0.5,
    )
    bins = svg_emissions.hours(s.series)
    assert [b.kg for b in bins] == pytest.approx([1.5 * 0.5, 1.5 * 0.5 * (1 + 0.1 * 0.8414709848)])
    assert [b.grid for b in bins] == pytest.approx([0.5, 0.5 * (1 + 0.1 * 0.8414709848)])
    assert (bins[0].begin_s, bins[1].begin_s, bins[1].end_s) == (START, START + 3600, START + 7200)
    assert [
        b.kg
        for b in svg_emissions.hours(
            series(s, emissions_location_kgco2e=[None] * len(s.series.start)).series
        )
    ] == [None, None]


def test_instants_of_rows_to_the_minute_and_in_order():
    assert svg_emissions._unix("2026-10-01T01:25:07Z") == START + 5107.0
    assert svg_emissions._unix("2026-10-01T01:25:07.500Z") == START + 5107.5
    s = statement(rows=3, begin=START)
    names = [name for name in type(s.series).model_fields if name != "width_s"]
    back = series(s, **{name: getattr(s.series, name)[::-1] for name in names})
    assert svg_emissions.hours(back.series) == svg_emissions.hours(s.series)


def test_bars_drawn_together_weight_the_grid_by_time_and_unknown_stays_unknown():
    bins = [
        svg_emissions.Bin(0.0, 3600.0, 1.0, 0.1),
        svg_emissions.Bin(3600.0, 5400.0, 2.0, 0.4),
        svg_emissions.Bin(5400.0, 9000.0, None, None),
    ]
    found, each = svg_emissions.gathered(bins * 1, 2, 5400.0)
    assert each == 10800.0
    assert [(b.kg, b.grid) for b in found] == [(3.0, pytest.approx(0.2))]
    alone, _ = svg_emissions.gathered(
        [
            svg_emissions.Bin(3600.0 * n, 3600.0 * n + 3600, None if n < 2 else 1.0, None)
            for n in range(4)
        ],
        3,
        3600.0,
    )
    assert [b.kg for b in alone] == [None, 2.0]
    assert svg_emissions.gathered(bins, 3, 1800.0) == (bins, 1800.0)


def test_emissions_in_words():
    bins = [
        svg_emissions.Bin(START, START + 3600, 1.0, 0.1),
        svg_emissions.Bin(START + 3600, START + 7200, 3.0, 0.4),
    ]
    assert (
        svg_emissions.in_words(bins)
        == "2 bars from 2026-10-01T00:00:00Z to 2026-10-01T02:00:00Z; 4 kgCO2e in all, 1 to 3 a"
        " bar; grid factor 100 to 400 g/kWh"
    )


def test_bars_of_zero_are_drawn_and_unknown_ones_hollow():
    known = [
        svg_emissions.Bin(3600.0 * n, 3600.0 * n + 3600, kg, 0.1)
        for n, kg in enumerate((1.0, 0.0, 2.0))
    ]
    x = Scale(0.0, 10800.0, 0.0, 300.0)
    assert "hollow" not in "".join(svg_emissions._bars(known, x, 0.0, 100.0))
    assert (
        "".join(svg_emissions._bars([known[0]._replace(kg=None), *known], x, 0.0, 100.0)).count(
            "hollow"
        )
        == 1
    )
    saving = "".join(svg_emissions._bars([known[0]._replace(kg=-5.0), known[2]], x, 0.0, 100.0))
    assert not re.search(r'(?<![xd])[yd]="-', saving)
    assert (
        max(
            float(y) + float(h)
            for y, h in re.findall(r'y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', saving)
        )
        <= 100.1
    )


def test_zero_emissions_are_no_unknown_ones():
    s = statement(grid=0.0)
    said = words(sections_pictures.emissions("", s, 2))
    assert "are not known" not in said
    assert "are not known" in words(sections_pictures.emissions("", statement(grid=None), 2))


def power(n, bands=(), stacked=False, **more):
    return Power(
        [float(i) for i in range(n)],
        [Line("GPUs", [100.0 + i % 2 for i in range(n)], "W"), Line("node", [None] * n, "W")],
        stacked,
        bands,
        **more,
    )


def test_thinned_power_has_its_mean_and_its_ends():
    thin = svg_power.thinned(power(1000), 100)
    assert (thin.means[0][5], thin.lows[0][5], thin.highs[0][5]) == (100.5, 100.0, 101.0)
    assert thin.means[1][5] is None
    few = svg_power.thinned(Power([0.0, 1.0, 2.0, 100.0], [Line("a", [1.0, 2.0, 3.0, 4.0])]), 3)
    assert few.means[0] == [2.0, 2.0, 4.0]


def test_stacked_areas_stop_where_one_is_not_known():
    assert svg_power._stacked([[1.0, 1.0, None], [2.0, None, 2.0]]) == [
        [1.0, None, None],
        [3.0, None, None],
    ]


def test_an_area_is_drawn_where_both_of_its_edges_are():
    x, y = Scale(0.0, 3.0, 0.0, 3.0), Scale(0.0, 10.0, 10.0, 0.0)
    area = svg_power._area([0.0, 1.0, 2.0], [0.0, None, 0.0], [5.0, 5.0, 5.0], x, y)
    assert area.count("Z") == 2


def test_bands_by_hand():
    whole, open_ = Band("a", 10.0, 12.0, 15.0), Band("b", 20.0, None, None)
    assert svg_power.band_rows([whole, open_]) == [
        ("a", "10 s", "2 s", "5 s"),
        ("b", "20 s", "-", "-"),
    ]
    x = Scale(0.0, 100.0, 0.0, 100.0)
    assert svg_power._edges(whole, x) == (10.0, 12.0, 15.0)
    assert svg_power._edges(open_, x) == (20.0, 20.0, 20.0)
    assert svg_power._edges(Band("c", 20.0, 30.0, 25.0), x) == (20.0, 30.0, 30.0)


def test_power_in_words_and_no_more_rows_than_fit():
    bands = [Band(f"save {n}", 10.0 * n, 10.0 * n + 1, 10.0 * n + 2) for n in range(40)]
    assert (
        svg_power.in_words(power(10, bands))
        == "GPUs from 100 to 101 W; node not known; 40 checkpoints"
    )
    said = words(sections_pictures.power("", power(1000, bands), 2))
    assert "The first 30 of 40 checkpoints above" in said
    assert "save 0" in said.split("safe after")[1]
    assert "save 29" in said.split("safe after")[1]
    assert "save 30" not in said.split("safe after")[1]
    assert "1,000 readings are drawn as 500 means or fewer, with their range shaded." in said


def test_a_waterfall_steps_from_one_to_the_next():
    fall = Fall(
        "kWh",
        [Step("a", 30.0, "save"), Step("b", 10.0, "failure"), Step("c", None, "keep")],
        40.0,
        30.0,
        None,
    )
    assert svg_waterfall.reach(fall) == (0.0, 40.0)
    assert svg_waterfall.reach(fall._replace(high=1e9)) == (0.0, 320.0)
    assert svg_waterfall.reach(fall._replace(high=150.0)) == (0.0, 150.0)
    _, inside = svg_waterfall.drawn(fall, 920.0)
    said = words("".join(map(str, inside)))
    assert "30 (75 %)" in said
    assert "10 (25 %)" in said
    assert "saving" in said
    assert "failures" in said
    assert said.count("not known") == 1
    assert (
        "".join(map(str, inside)).count("whisker") == 4
    )  # a line, its near end, and an arrow of two
    assert (
        "".join(map(str, svg_waterfall.drawn(fall._replace(low=40.0, high=40.0), 920.0)[1])).count(
            "whisker"
        )
        == 0
    )
    bars = re.findall(
        r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]*class="f-(save|failure)"',
        "".join(map(str, inside)),
    )
    (a, wide, _), (b, _, _) = [bar for bar in bars if float(bar[1]) > 20]
    assert float(a) + float(wide) == pytest.approx(float(b), abs=0.2)


def test_a_total_of_zero_is_drawn_and_known():
    _, inside = svg_waterfall.drawn(Fall("kWh", [Step("a", 0.0, "save")], 0.0), 920.0)
    assert "not known" not in words("".join(map(str, inside)))


def curve(**more):
    xs = [600.0 * 1.5**n for n in range(10)]
    return Curve(
        xs,
        [Line("cost", [float(10 - n) for n in range(10)], "USD")],
        **{"now_s": 3600.0, "best_s": {"a": 7200.0, "b": 7201.0, "c": 14400.0, "d": None}, **more},
    )


def test_what_a_curve_marks():
    assert [(w, c) for _, w, c in svg_curve.rules(curve())] == [
        ("in use", "now"),
        ("best for a, b", "best"),
        ("best for c", "best"),
    ]
    assert svg_curve.rules(curve(now_s=None, best_s={"x": float("inf"), "y": 0.0})) == []
    assert (
        svg_curve.in_words(curve())
        == "cost from 1 to 10 USD. in use 1 h; best for a, b 2 h; best for c 4 h"
    )


def test_clocks_of_pictures_are_utc(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert svg_axis.clock(START, START + 4 * 3600, 4)[0][1] == "00:00"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_paths_break_where_nothing_is_known_and_scales_are_even():
    assert svg_axis.path([(0.0, 0.0), None, (2.0, 2.0), (3.0, 3.0)]) == "M0 0h2M2 2L3 3"
    assert Scale(1.0, 100.0, 0.0, 10.0, log=True).at(10.0) == pytest.approx(5.0)
    assert svg_axis.clipped("x" * 50, 64.0) == "x" * 9 + "…"


def test_claimed_figures_are_apart_and_only_where_there_are_some():
    table = TextTable("t", ["tier", "kWh"], [["a", "1"], ["b", "2"]], claimed=["", "9 W"])
    said = words(sections_pictures.text_table(table, True))
    assert said.startswith("tier kWh claimed a 1 b 2 9 W Claimed: what a vendor says")
    assert (
        "claimed"
        not in words(sections_pictures.text_table(table._replace(claimed=["", ""]), True)).lower()
    )


# ---- the page


def test_what_is_said_of_a_statement_goes_before_what_is_said_of_the_page():
    s = statement()
    page = page_of(
        document(s),
        Extras(findings=["of the page"], each={s.subject.run_id: Extras(sci=[Sci("R", 1.0)])}),
    )
    assert "of the page" in page
    assert 'id="sci"' in page


def test_two_statements_are_told_side_by_side_each_with_its_meters():
    page = page_of(
        document(statement(name="one"), changed(statement(run_id="b", name="two"), simulated=True))
    )
    first, second = page.split('id="statement-2"', maxsplit=1)
    assert "Side by side" in first
    assert 'class="simulated"' in second
    assert "Factors of all" in second


def test_the_document_inside_the_page_cannot_end_or_begin_markup():
    s = changed(statement(name="</script><!-- & é \x7f"), method_version=">")
    inside = embedded(document(s))
    assert inside.isascii()
    assert not set("<>&\x7f") & set(inside)


def test_the_grids_factor_is_interrupted_where_it_is_not_known():
    bins = [
        svg_emissions.Bin(3600.0 * n, 3600.0 * n + 3600, 1.0, None if n == 1 else 0.1)
        for n in range(3)
    ]
    drawn = "".join(svg_emissions._factor(bins, Scale(0.0, 10800.0, 0.0, 300.0), 0.0, 100.0))
    assert re.search(r'd="(M[^"]*)" class="line l2 whole"', drawn)[1].count("M") == 2
