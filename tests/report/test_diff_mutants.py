"""Slips of a difference that its own consistency does not show: order, sides, columns, and what is
said of them."""

from __future__ import annotations

import csv
import io

import pytest
from differences import difference_of, report_of
from statements import document, factor, quantity, statement

from ckptcost.present.table import plain
from ckptcost.report import diff_views
from ckptcost.report.diff import change_of, delta_of, factors_changed, overlap
from ckptcost.report.diff_reasons import notes_of, reasons_of
from ckptcost.report.difference import Amount, Budget, FactorChange, FactorValue
from ckptcost.report.document import Report
from ckptcost.report.parts import FunctionalUnit, Warned
from ckptcost.report.render import text_of


def report(past, current, budgets=(), **more) -> Report:
    return report_of(difference_of(past, current, budgets, **more))


def csv_of(past, current):
    return csv.DictReader(io.StringIO(text_of(report(past, current), "csv")))


def changed(s, **fields):
    return s.model_copy(update=fields)


def of_factor(s, name, **fields):
    return changed(
        s, factors=[f.model_copy(update=fields) if f.id == name else f for f in s.factors]
    )


def codes(past, current):
    return {each.code for each in reasons_of(past, current, delta_of(past, current).factors)}


# ---- arithmetic


def test_a_line_that_only_now_is_unknown_is_told_as_well():
    known, lacking = Amount(value=1.0), Amount(value=1.0, excludes=["a"])
    assert (
        change_of("kWh", known, lacking).reason
        == change_of("kWh", lacking, known).reason
        == "unknown in one of the two only: a"
    )
    assert change_of("kWh", known, lacking).change is None


def test_relative_is_of_before_whatever_its_sign():
    assert change_of("USD", Amount(value=-10.0), Amount(value=-5.0)).relative == 0.5
    assert change_of("USD", Amount(value=4.0), Amount(value=5.0)).relative == 0.25
    assert change_of("USD", Amount(value=0.0), Amount(value=0.0)).reason is None
    assert change_of("USD", Amount(value=0.0), Amount(value=1.0)).reason == "it was 0 before"


def test_ranges_that_touch_overlap_and_an_open_end_reaches_everywhere():
    assert overlap(Amount(value=1.0, low=0.0, high=2.0), Amount(value=3.0, low=2.0, high=4.0))
    assert overlap(Amount(value=1.0, low=0.5), Amount(value=99.0)) is True
    assert overlap(Amount(value=99.0), Amount(value=1.0, low=0.5, high=2.0)) is False
    assert overlap(Amount(value=1.0), Amount(value=1.0)) is None


def test_the_length_is_after_less_before():
    past, current = statement(dated=False), statement(dated=False)
    found = delta_of(changed(past, length_s=100.0), changed(current, length_s=150.0)).totals.length
    assert (found.before.value, found.after.value, found.change, found.direction) == (
        100.0,
        150.0,
        50.0,
        "more",
    )


def test_an_hour_has_3600_seconds():
    past, current = (changed(statement(dated=False), length_s=n * 3600.0) for n in (2, 4))
    (hour,) = [u for u in delta_of(past, current).per if u.name == "hour of the run"]
    assert (hour.before_count, hour.after_count) == (2.0, 4.0)
    assert hour.energy.before.value == pytest.approx(past.totals.energy.value / 2)


def test_prices_come_before_other_factors():
    a, b = factor("checkpoint.params", 1.0, "", "1"), factor("site.pue", 1.1, "", "1.1")
    found = factors_changed(
        [a, b], [a.model_copy(update={"value": 2.0}), b.model_copy(update={"value": 1.2})]
    )
    assert [(f.id, f.converts) for f in found] == [("site.pue", True), ("checkpoint.params", False)]


def test_a_range_alone_is_a_change_of_a_factor_and_no_other_price():
    past = statement()
    current = of_factor(past, "site.tariff", high=1.0)
    assert [f.id for f in delta_of(past, current).factors] == ["site.tariff"]
    assert "FACTORS" not in codes(past, current)
    assert "FACTORS" in codes(past, of_factor(past, "site.tariff", value=1.0))


def test_each_carbon_is_split_by_its_own_factor():
    past, current = statement(), statement(market=0.24, grid=0.5)
    found = {s.quantity: s for s in delta_of(past, current).splits}
    assert [p.cause for p in found["emissions_market"].parts] == ["energy", "site.grid_market"]
    assert [p.cause for p in found["emissions_location"].parts] == ["energy", "site.grid_location"]
    assert found["emissions_market"].parts[1].change == pytest.approx(
        past.totals.energy.value * 0.12
    )


def test_a_split_needs_the_same_lines_on_both_sides():
    s = statement()
    other = changed(
        s,
        totals=s.totals.model_copy(
            update={"emissions_location": quantity("emissions_location", 1.0, excludes=["x"])}
        ),
    )
    assert "emissions_location" not in {each.quantity for each in delta_of(other, other).splits}


# ---- the document


def test_its_id_is_of_the_statements_not_the_documents():
    s, other = statement(), statement(run_id="b", name="b")

    def told(doc):
        return report_of(difference_of(s, s, documents=(doc, doc)))

    one, two = told(document(s)), told(document(s, other))
    assert one.difference.past.result_sha256 != two.difference.past.result_sha256
    assert one.difference.past.statement_sha256 == two.difference.past.statement_sha256
    assert one.report_id == two.report_id
    assert one.report_id != report_of(difference_of(s, other)).report_id


def test_every_part_of_the_document_is_in_its_hash():
    past, current = statement(), statement(grid=0.5)
    plain_one = report(past, current)
    budget = Budget(
        text="energy <= 1 %",
        quantity="energy",
        per=None,
        operator="<=",
        limit=0.01,
        relative=True,
        value=0.0,
        met=True,
    )
    others = [
        report(past, current, [budget]),
        report(past, current, notes=[Warned(code="X", message="y")]),
        report(past, current, reasons=[]),
        report(current, past),
    ]
    assert len({each.reproducibility.result_sha256 for each in (plain_one, *others)}) == 5
    assert plain_one.difference.comparable is False
    assert others[2].difference.comparable is True
    assert plain_one.difference.past.statement.series is None


# ---- Markdown


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
    document_ = report(past, changed(past, components=past.components[1:]))
    for view in (diff_views.to_markdown, diff_views.text):
        assert "GPUs waiting for saves (past only)" in " ".join(view(document_).split())


def test_a_contract_of_the_same_name_and_another_share_is_another():
    past = statement()
    less = [each.model_copy(update={"share": each.share / 2}) for each in past.contracts]
    assert past.contracts
    found = reasons_of(past, changed(past, contracts=less), [])
    assert [(reason.code, reason.refuses) for reason in found] == [("CONTRACTS", False)]
    assert reasons_of(past, past, []) == []


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


# ---- CSV


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


def test_csv_cells_are_no_formulas():
    s = statement()
    s = changed(
        s,
        components=[
            c.model_copy(update={"id": "=id", "label": "@label"}) if c.id == "gpu_wait" else c
            for c in s.components
        ],
        functional_units=[FunctionalUnit(name="+unit", count=2.0)],
    )
    rows = list(csv_of(s, s))
    assert {row["id"] for row in rows} >= {"'=id", "'+unit"}
    assert {row["label"] for row in rows} >= {"'@label", "'+unit"}


# ---- more


def test_a_unit_of_which_there_is_none_now_is_not_divided_by():
    past, current = (
        changed(statement(), functional_units=[FunctionalUnit(name="checkpoint", count=n)])
        for n in (8.0, 0.0)
    )
    for one, other in ((past, current), (current, past)):
        assert "checkpoint" not in {u.name for u in delta_of(one, other).per}


def test_a_line_that_only_one_knows_does_not_refuse_by_itself():
    past = statement()
    label = past.components[0].label
    lines = [
        c.model_copy(update={"energy": quantity("energy", None)}) if c.id == "gpu_wait" else c
        for c in past.components
    ]
    boundary = past.boundary.model_copy(
        update={"included": [each for each in past.boundary.included if each != label]}
    )
    found = codes(past, changed(past, components=lines, boundary=boundary))
    assert "UNKNOWN_LINE" in found
    assert "INCLUDED" not in found
    assert "UNKNOWN_LINE" in codes(changed(past, components=lines, boundary=boundary), past)
    assert "INCLUDED" in codes(past, changed(past, boundary=boundary))


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


def test_another_pue_is_no_other_hour():
    past = statement()
    current = of_factor(past, "site.pue", value=1.3)
    current = changed(current, boundary=past.boundary.model_copy(update={"pue": 1.3}))
    assert {s.quantity for s in delta_of(past, current).splits} >= {"emissions_location"}
    assert "HOURS" not in notes(past, current)
    total = past.totals.model_copy(
        update={
            "emissions_location": quantity(
                "emissions_location",
                past.totals.emissions_location.value * 2,
                excludes=["storage_write"],
            )
        }
    )
    assert "HOURS" in notes(past, changed(past, totals=total))


def test_a_change_from_zero_has_no_share():
    assert (
        diff_views.relative_text(change_of("kWh", Amount(value=0.0), Amount(value=1.0))) == "from 0"
    )
    assert diff_views.relative_text(change_of("kWh", Amount(value=0.0), Amount(value=0.0))) == "0 %"
    assert (
        diff_views.relative_text(change_of("kWh", Amount(value=None), Amount(value=0.0)))
        == "not known"
    )
