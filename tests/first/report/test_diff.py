"""The difference of two statements: arithmetic, what is unknown, and whether the two may be
compared."""

from __future__ import annotations

import math

import pytest
from differences import difference_of, report_of
from hypothesis import given, settings
from statements import LINES, document, factor, quantity, statement, statements

from ckptcost.first.report import diff_views
from ckptcost.first.report.canonical import sha256
from ckptcost.first.report.diff import change_of, changed_factors, converts, delta_of, overlap
from ckptcost.first.report.diff_reasons import notes_of, reasons_of
from ckptcost.first.report.difference import Amount, Budget, Change, Changes, Difference
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import FunctionalUnit, Totals, Warned
from ckptcost.first.report.statement import QUANTITIES, Contract, instant, utc


def changed(s, **fields):
    return s.model_copy(update=fields)


def with_factors(s, **values):
    """The same with other values of some factors, by the last word of their id."""
    factors = [
        (
            f.model_copy(update={"value": values[name]})
            if (name := f.id.split(".")[-1]) in values
            else f
        )
        for f in s.factors
    ]
    return changed(s, factors=factors)


def of_boundary(s, **fields):
    return changed(s, boundary=s.boundary.model_copy(update=fields))


def codes(past, current, refuses=None):
    found = reasons_of(past, current, delta_of(past, current).factors)
    return {each.code for each in found if refuses in (None, each.refuses)}


# ---- arithmetic


def check(found: Difference) -> None:
    """Everything the document says of a change follows from its own before and after; raises where
    it does not."""
    delta = found.delta
    sums: list[Changes] = [
        delta.totals,
        *delta.per,
        *delta.components,
        *([delta.allocated] if delta.allocated else []),
    ]
    for each in sums:
        for what in QUANTITIES:
            c = getattr(each, what)
            known = (
                c.before is not None
                and c.after is not None
                and None not in (c.before.value, c.after.value)
            )
            like = known and {*c.before.excludes} == {*c.after.excludes}
            if not like:
                assert c.change is None, (what, "never computed from a null as 0")
                assert c.relative is None
                assert c.direction == "unknown"
                assert c.reason
                continue
            if not math.isclose(
                c.change,
                c.after.value - c.before.value,
                rel_tol=1e-9,
                abs_tol=1e-9 * max(abs(c.before.value), abs(c.after.value)),
            ):
                raise AssertionError((what, "is not after less before"))
            if c.before.value and c.relative is not None:
                assert c.relative == pytest.approx(c.change / c.before.value, rel=1e-9)
            assert (c.direction == "more") == (
                c.change > 1e-9 * max(abs(c.before.value), abs(c.after.value))
            )
    totals = (found.past.statement.totals, found.current.statement.totals)
    for what in QUANTITIES:
        c = getattr(delta.totals, what)
        for side, total in zip((c.before, c.after), totals, strict=True):
            expected = getattr(total, what).value
            assert side.value == (None if expected is None else pytest.approx(expected, rel=1e-9))
        lines = [getattr(line, what) for line in delta.components if line.ledger == "marginal"]
        if c.change is not None and all(
            line.change is not None or line.reason == "not known in either" for line in lines
        ):
            told = math.fsum(line.change for line in lines if line.change is not None)
            biggest = max(
                abs(line.after.value or 0) + abs(line.before.value or 0) for line in lines
            )
            assert told == pytest.approx(c.change, rel=1e-9, abs=1e-9 * biggest), (
                what,
                "lines add up to the total",
            )
    for split in delta.splits:
        whole = getattr(delta.totals, split.quantity)
        assert math.fsum(part.change for part in split.parts) == pytest.approx(
            whole.change, rel=1e-9, abs=1e-9 * whole.after.value
        )
        assert split.at_constant_factors == split.parts[0].change


@settings(max_examples=60)
@given(statements(), statements())
def test_any_two(past, current):
    found = difference_of(past, current)
    check(found)
    report = report_of(found)
    again = Report.model_validate_json(report.to_json())
    assert again == report
    assert again.difference == found
    assert found.comparable == (not found.incomparable_reasons)


def test_a_hand_made_one():
    past = statement((100.0, 200.0, None, 0.0, 50.0))
    current = statement((110.0, 150.0, None, 5.0, 50.0))
    found = difference_of(past, current)
    check(found)
    energy = found.delta.totals.energy
    assert (energy.before.value, energy.after.value, energy.change) == (350.0, 315.0, -35.0)
    assert energy.relative == pytest.approx(-0.1)
    assert energy.direction == "less"
    assert energy.ranges_overlap is True
    lines = {c.id: c.energy for c in found.delta.components}
    assert lines["gpu_wait"].relative == pytest.approx(0.1)
    assert lines["storage_write"].reason == "not known in either"
    assert (
        lines["redone_work"].change,
        lines["redone_work"].relative,
        lines["redone_work"].reason,
    ) == (5.0, None, "it was 0 before")
    assert lines["retention"].direction == "same"
    assert found.comparable


@pytest.mark.parametrize("planted", ["change", "null", "total"])
def test_the_check_bites(planted):
    found = difference_of(
        statement((100.0, 200.0, None, 0.0, 50.0)), statement((110.0, 150.0, None, 5.0, 50.0))
    )
    raw = found.model_dump()
    if planted == "change":
        raw["delta"]["totals"]["energy"]["change"] *= 1000
    elif planted == "null":
        raw["delta"]["components"][2]["energy"]["change"] = 0.0
    else:
        raw["delta"]["components"][0]["energy"]["after"]["value"] += 10
        raw["delta"]["components"][0]["energy"]["change"] += 10
    with pytest.raises(AssertionError):
        check(Difference.model_validate(raw))


def test_the_same_twice():
    found = difference_of(statement(), statement())
    check(found)
    assert {getattr(found.delta.totals, what).direction for what in QUANTITIES} == {"same"}
    assert found.delta.factors == []
    assert found.delta.splits == []
    assert found.comparable


def test_unknown_on_one_side_is_no_change_of_the_sum():
    past, current = (
        statement((100.0, 200.0, None, 0.0, 50.0)),
        statement((100.0, 200.0, 30.0, 0.0, 50.0)),
    )
    found = delta_of(past, current)
    assert found.totals.energy.change is None
    assert found.totals.energy.reason == "unknown in one of the two only: storage_write"
    assert {c.id: c for c in found.components}["storage_write"].energy.reason == "not known before"
    assert "LACKING" in {note.code for note in notes_of(past, current, found)}


def test_lines_of_only_one():
    more = (
        *LINES,
        ("second_storage_write", "storage writing, second tier", "save", "storage-system"),
    )
    current = statement(
        (100.0, 200.0, None, 0.0, 50.0, 7.0),
        lines=more,
        gpu_hours=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        costs=(1.0, 1.0, None, 1.0, 1.0, 1.0),
    )
    past = statement((100.0, 200.0, None, 0.0, 50.0))
    found = difference_of(past, current)
    check(found)
    line = (
        found.delta.components[-1]
        if found.delta.components[-1].id != "standing"
        else found.delta.components[-2]
    )
    assert (line.id, line.only_in) == ("second_storage_write", "current")
    assert line.energy.change is None
    assert line.energy.before is None
    assert found.delta.totals.energy.change == pytest.approx(7.0)
    assert "LINES" in {note.code for note in found.notes}
    assert difference_of(current, past).delta.components[5].only_in == "past"


def test_ranges():
    assert overlap(Amount(value=1.0), Amount(value=2.0)) is None
    assert overlap(Amount(value=1.0, low=0.5, high=1.5), Amount(value=1.2)) is True
    assert overlap(Amount(value=1.0, low=0.5, high=1.5), Amount(value=2.0)) is False
    assert (
        overlap(Amount(value=1.0, low=0.5), Amount(value=9.0, low=8.0, high=10.0)) is True
    )  # without bound
    assert (
        overlap(Amount(value=1.0, low=0.5, high=1.5), Amount(value=2.0, low=1.5, high=2.5)) is True
    )


def test_floats_at_their_ends():
    tiny = change_of("kWh", Amount(value=5e-324), Amount(value=1e308))
    assert tiny.change == 1e308
    assert tiny.relative is None  # too many times to be told
    assert (
        change_of("kWh", Amount(value=-1.7e308), Amount(value=1.7e308)).reason
        == "too large to be told"
    )


def test_the_allocated_ledger_is_apart():
    past = statement()
    standing = past.components[-1]
    bigger = standing.model_copy(
        update={"energy": standing.energy.model_copy(update={"value": 4000.0})}
    )
    current = changed(
        past,
        components=[*past.components[:-1], bigger],
        allocated=past.allocated.model_copy(update={"energy": bigger.energy}),
    )
    found = delta_of(past, current)
    assert found.allocated.energy.change == 3996.0
    assert found.totals.energy.direction == "same"


# ---- for each unit


def test_for_each_checkpoint_and_hour():
    past, current = statement(checkpoints=8.0, rows=4), statement(checkpoints=16.0, rows=8)
    found = difference_of(past, current)
    check(found)
    each = {unit.name: unit for unit in found.delta.per}
    assert set(each) == {"checkpoint", "hour of the run"}
    assert each["checkpoint"].energy.relative == pytest.approx(-0.5)
    hours = (3.5, 7.5)
    assert (each["hour of the run"].before_count, each["hour of the run"].after_count) == hours
    energies = [s.totals.energy.value / h for s, h in zip((past, current), hours, strict=True)]
    assert each["hour of the run"].energy.change == pytest.approx(
        energies[1] - energies[0], rel=1e-9
    )
    assert found.delta.totals.energy.direction == "same"
    assert "LENGTH" in {reason.code for reason in found.incomparable_reasons}


def test_equal_work_may_take_longer():
    """The wall time of the same training is an outcome; figures are for each hour of training."""
    work = factor("run.work", 720000.0, "s", "200 h")
    past, current = (
        changed(s, factors=[*s.factors, work]) for s in (statement(rows=4), statement(rows=8))
    )
    assert codes(past, current) == set()
    assert [unit.name for unit in delta_of(past, current).per] == ["checkpoint", "hour of training"]
    shorter = changed(
        current, factors=[*statement().factors, work.model_copy(update={"value": 360000.0})]
    )
    assert codes(past, shorter) == {"LENGTH"}


def test_no_checkpoints_is_nothing_to_divide_by():
    assert [unit.name for unit in delta_of(statement(checkpoints=0.0), statement()).per] == [
        "hour of the run"
    ]


# ---- factors, and changes without them


def test_the_grid_apart_from_the_energy():
    past = statement((100.0, 0.0, 0.0, 0.0, 0.0), grid=0.4, dated=False)
    current = with_factors(
        statement((120.0, 0.0, 0.0, 0.0, 0.0), grid=0.3, dated=False), grid_location=0.3 / 3_600_000
    )
    found = difference_of(past, current)
    check(found)
    split = next(each for each in found.delta.splits if each.quantity == "emissions_location")
    assert {part.cause: part.change for part in split.parts} == pytest.approx(
        {"energy": 8.0, "site.grid_location": -12.0}
    )
    assert split.at_constant_factors == pytest.approx(8.0)
    assert found.delta.totals.emissions_location.change == pytest.approx(-4.0)
    assert [each.code for each in found.incomparable_reasons] == ["FACTORS"]
    assert not found.comparable
    assert [f.id for f in found.delta.factors] == ["site.grid_location"]
    assert found.delta.factors[0].before.text == "400 g/kWh"


def test_the_pue_apart_from_the_machines():
    past = of_boundary(statement((110.0, 0.0, 0.0, 0.0, 0.0), grid=0.5, dated=False), pue=1.1)
    current = with_factors(
        of_boundary(statement((240.0, 0.0, 0.0, 0.0, 0.0), grid=0.25, dated=False), pue=1.2),
        pue=1.2,
    )
    found = difference_of(past, current)
    check(found)
    splits = {
        each.quantity: {part.cause: part.change for part in each.parts}
        for each in found.delta.splits
    }
    assert splits["energy"] == pytest.approx({"machines": 110.0, "site.pue": 20.0})
    assert splits["emissions_location"] == pytest.approx(
        {"machines": 55.0, "site.pue": 10.0, "site.grid_location": -60.0}
    )


def test_other_hours_of_the_same_grid():
    found = difference_of(statement(rows=2), statement(rows=5))
    split = next(each for each in found.delta.splits if each.quantity == "emissions_location")
    assert split.at_constant_factors == 0.0
    assert "HOURS" in {note.code for note in found.notes}


def test_the_price_of_a_gpu_hour():
    hours, was, now = (100.0, 0.0, 0.0, 0.0, 0.0), 5.435, 6.0

    def priced(s, price):
        lines = [
            c.model_copy(update={"unit_price": price}) if c.price_qty else c for c in s.components
        ]
        return with_factors(changed(s, components=lines), gpu_price=price / 3600)

    past = priced(statement(gpu_hours=hours, costs=(100 * was, 10.0, None, 0.0, 0.0)), was)
    more = (120.0, 0.0, 0.0, 0.0, 0.0)
    current = priced(statement(gpu_hours=more, costs=(120 * now, 13.0, None, 0.0, 0.0)), now)
    found = difference_of(past, current)
    check(found)
    split = next(each for each in found.delta.splits if each.quantity == "cost")
    assert {part.cause: part.change for part in split.parts} == pytest.approx(
        {"amounts": 20 * was + 3.0, "cluster.gpu_price": 120 * (now - was)}
    )
    dearer = with_factors(current, tariff=1e-7)
    assert "cost" not in {
        each.quantity for each in delta_of(past, dearer).splits
    }  # two prices at once cannot be told apart


def test_what_a_change_is_made_of_is_no_reason():
    past = changed(
        statement(),
        factors=[*statement().factors, factor("tier.write", 2e8, "bytes_per_s", "200 MB/s")],
    )
    current = with_factors(past, write=4e8)
    assert codes(past, current) == set()
    assert [f.converts for f in delta_of(past, current).factors] == [False]
    assert [
        converts(name)
        for name in ("site.tariff", "tier.storage_price", "cluster.gpu_embodied", "policy.saves")
    ] == [
        True,
        True,
        True,
        False,
    ]


def test_a_price_that_comes_with_the_change_is_no_other_price():
    """Of another tier or accelerator, or of a second tier that only one has."""

    def at(s, usd, **subject):
        prices = [
            factor(name, usd, "usd_per_byte_s", f"{usd} USD")
            for name in ("tier.storage_price", "second_tier.storage_price")
        ]
        return changed(
            with_factors(s, gpu_price=usd),
            factors=[*with_factors(s, gpu_price=usd).factors, *prices],
            subject=s.subject.model_copy(update=subject),
        )

    past = at(statement(), 1.0)
    assert codes(past, at(statement(), 2.0)) == {"FACTORS"}
    assert codes(past, at(statement(), 2.0, tier="flash", accelerator="B200")) == set()
    assert codes(past, at(statement(), 2.0, tier="flash")) == {"FACTORS"}  # the GPU's price
    alone = changed(past, factors=[f for f in past.factors if not f.id.startswith("second_tier")])
    assert codes(alone, past) == set()
    assert codes(past, with_factors(past, storage_price=3.0)) == {"FACTORS"}


def test_a_factor_of_only_one():
    past = statement()
    current = changed(past, factors=past.factors[1:])
    change = delta_of(past, current).factors[0]
    assert (change.id, change.after) == ("site.grid_location", None)
    assert codes(past, current) == {"FACTORS"}


# ---- comparability


@pytest.mark.parametrize(
    ("code", "other"),
    [
        ("METHOD", lambda s: changed(s, method_version="2027.1")),
        ("CURRENCY", lambda s: changed(s, currency="EUR")),
        ("KIND", lambda s: changed(s, kind="mixed")),
        ("SIMULATED", lambda s: changed(s, simulated=True)),
        ("PUE_INCLUDED", lambda s: of_boundary(s, pue=None, pue_included_in_energy=False)),
        ("PUE_INCLUDED", lambda s: of_boundary(s, pue=None)),
        ("COUNTERFACTUAL", lambda s: of_boundary(s, counterfactual="nothing")),
        (
            "FUNCTIONAL_UNIT",
            lambda s: changed(
                s, functional_units=[FunctionalUnit(name="training_token", count=1e9)]
            ),
        ),
        (
            "INCLUDED",
            lambda s: of_boundary(s, included=["GPUs waiting for saves", "storage writing"]),
        ),
        (
            "BOUNDARY_LEVEL",
            lambda s: changed(
                s,
                components=[
                    s.components[0].model_copy(update={"boundary": "facility"}),
                    *s.components[1:],
                ],
            ),
        ),
    ],
)
def test_refused(code, other):
    past = statement()
    for pair in ((past, other(past)), (other(past), past)):
        assert codes(*pair, refuses=True) == {code}
        found = difference_of(*pair)
        assert not found.comparable
        check(found)


@pytest.mark.parametrize(
    ("code", "other"),
    [
        ("FACTORS", lambda s: with_factors(s, tariff=1e-8)),
        (
            "CONTRACTS",
            lambda s: changed(
                s, contracts=[Contract(name="Sun", instrument="PPA", share=1.0, kgco2e_per_kwh=0.0)]
            ),
        ),
        (
            "LENGTH",
            lambda s: changed(
                s,
                length_s=2 * s.length_s,
                period_end=instant(utc(s.period_start).timestamp() + 2 * s.length_s),
            ),
        ),
        (
            "INTERVAL",
            lambda s: changed(
                s,
                totals=s.totals.model_copy(
                    update={"cost": s.totals.cost.model_copy(update={"interval": "bounds"})}
                ),
            ),
        ),
    ],
)
def test_flagged(code, other):
    past = statement()
    assert codes(past, other(past), refuses=False) == {code}
    assert codes(past, other(past), refuses=True) == set()
    assert not difference_of(past, other(past)).comparable


def test_dates_are_a_note():
    past, current = statement(), statement(begin=1793491200.0 + 1800.0)
    found = difference_of(past, current)
    assert found.comparable
    assert "DATES" in {note.code for note in found.notes}


def test_an_absent_line_of_a_measurement_is_a_boundary():
    """A model that has no second tier has no line of it; a measurement that lacks a line may only
    lack its meter."""
    lines = (*LINES, ("network", "network to storage", "save", "cluster"))
    more = {
        "energies": (1.0, 1.0, None, 1.0, 0.0, 2.0),
        "gpu_hours": (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        "costs": (1.0, 1.0, None, 1.0, 1.0, 0.0),
    }
    for kind, expected in (("modelled", set()), ("measured", {"INCLUDED"})):
        past = statement(kind=kind)
        current = of_boundary(
            statement(kind=kind, lines=lines, **more),
            included=["GPUs waiting for saves", "network to storage"],
        )
        assert codes(past, current) == expected


# ---- the document


def test_hashes_follow_the_content():
    past, current = statement(), statement((1.0, 2.0, None, 3.0, 4.0))
    one, two, three = (
        report_of(difference_of(*sides))
        for sides in ((past, current), (past, current), (current, past))
    )
    assert one.model_dump(exclude={"generated_at"}) == two.model_dump(exclude={"generated_at"})
    assert one.reproducibility.result_sha256 != three.reproducibility.result_sha256
    assert one.report_id != three.report_id
    assert one.difference is not None
    assert three.difference is not None
    assert one.difference.past.statement.series is None
    assert one.difference.past.statement_sha256 == three.difference.current.statement_sha256


def test_the_same_statements_in_other_files_are_the_same_difference():
    past, current = statement(), statement((1.0, 2.0, None, 3.0, 4.0))
    one = report_of(difference_of(past, current))
    later = document(past).model_copy(update={"generated_at": "2030-01-01T00:00:00Z"})
    two = report_of(
        difference_of(past, current, source="x.json", documents=(later, document(current)))
    )
    assert one.reproducibility.result_sha256 == two.reproducibility.result_sha256
    assert one.report_id == two.report_id
    assert one.difference != two.difference


def test_strict():
    raw = report_of(difference_of(statement(), statement())).model_dump(mode="json")
    told = raw["difference"]
    for part in (raw, told, told["delta"], told["past"], told["delta"]["totals"]["energy"]):
        part["mood"] = 1
        with pytest.raises(ValueError, match="mood"):
            Report.model_validate(raw)
        del part["mood"]
    Report.model_validate(raw)
    told["delta"]["totals"]["energy"]["change"] = math.inf
    with pytest.raises(ValueError, match="finite"):
        Report.model_validate(raw)


def test_a_price_that_holds_electricity_is_another_price():
    one, two = (
        statement().model_copy(update={"choices": {"cluster.price_includes_electricity": held}})
        for held in (True, False)
    )
    found = reasons_of(one, two, delta_of(one, two).factors)
    assert [(each.code, each.refuses) for each in found] == [("CHOICES", False)]
    assert "held in the price of a GPU-hour before, paid besides it now" in found[0].message
    assert (
        reasons_of(one, statement(), delta_of(one, statement()).factors) == []
    )  # an older document does not say


def report(past, current, budgets=(), **more) -> Report:
    return report_of(difference_of(past, current, budgets, **more))


def of_factor(s, name, **fields):
    return changed(
        s, factors=[f.model_copy(update=fields) if f.id == name else f for f in s.factors]
    )


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
    found = changed_factors(
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


def test_a_contract_of_the_same_name_and_another_share_is_another():
    past = statement()
    less = [each.model_copy(update={"share": each.share / 2}) for each in past.contracts]
    assert past.contracts
    found = reasons_of(past, changed(past, contracts=less), [])
    assert [(reason.code, reason.refuses) for reason in found] == [("CONTRACTS", False)]
    assert reasons_of(past, past, []) == []


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


def test_a_pue_that_is_not_in_the_energies_is_no_part_of_their_change():
    past, current = statement(), of_boundary(statement(), pue=1.3)
    assert "energy" in {s.quantity for s in delta_of(past, current).splits}
    for one, other in (
        (of_boundary(past, pue_included_in_energy=False), current),
        (past, of_boundary(current, pue_included_in_energy=False)),
    ):
        assert "energy" not in {s.quantity for s in delta_of(one, other).splits}


def dearer(s, price):
    lines = [c.model_copy(update={"unit_price": price}) if c.price_qty else c for c in s.components]
    return changed(
        s,
        components=lines,
        factors=[
            f.model_copy(update={"value": price / 3600}) if f.id == "cluster.gpu_price" else f
            for f in s.factors
        ],
    )


def test_a_dearer_gpu_hour_is_split_from_the_rest():
    past = statement()
    (split,) = [s for s in delta_of(past, dearer(past, 6.435)).splits if s.quantity == "cost"]
    assert [p.change for p in split.parts] == [pytest.approx(-3160.5), pytest.approx(3160.5)]


def test_gpu_time_without_a_price_of_its_own_cannot_be_split():
    past, current = statement(), dearer(statement(), 6.435)
    lines = [
        c.model_copy(update={"gpu_time_lost": quantity("gpu_time_lost", 5.0)})
        if c.id == "host_wait"
        else c
        for c in current.components
    ]
    assert "cost" not in {
        s.quantity for s in delta_of(past, changed(current, components=lines)).splits
    }


def test_a_line_that_is_in_no_sum_of_cost_pays_nothing_of_its_change():
    def without(s):
        lines = [
            c.model_copy(update={"cost": quantity("cost", None)}) if c.id == "redone_work" else c
            for c in s.components
        ]
        cost = s.totals.cost.model_copy(
            update={
                "value": s.totals.cost.value - 905.75,
                "excludes": ["storage_write", "redone_work"],
            }
        )
        return changed(s, components=lines, totals=s.totals.model_copy(update={"cost": cost}))

    past, current = without(statement()), without(dearer(statement(), 6.435))
    (split,) = [s for s in delta_of(past, current).splits if s.quantity == "cost"]
    assert split.parts[1].change == pytest.approx(3000.0)  # GPU-hours of the lines in the sum


def test_emissions_over_other_lines_than_the_energy_are_not_split():
    past, current = statement(), statement(grid=0.5)
    assert "emissions_location" in {s.quantity for s in delta_of(past, current).splits}
    sums = [
        s.totals.emissions_location.model_copy(update={"excludes": ["a"]}) for s in (past, current)
    ]
    less = [
        changed(s, totals=s.totals.model_copy(update={"emissions_location": q}))
        for s, q in zip((past, current), sums, strict=True)
    ]
    assert "emissions_location" not in {s.quantity for s in delta_of(*less).splits}


def test_what_stands_there_is_compared_where_both_have_it():
    past = statement()
    assert delta_of(past, past).allocated is not None
    for one, other in (
        (past, changed(past, allocated=None)),
        (changed(past, allocated=None), past),
    ):
        assert delta_of(one, other).allocated is None
    assert isinstance(past.allocated, Totals)


@pytest.mark.parametrize(("length_s", "said"), [(1005.0, False), (1030.0, True)])
def test_a_hundredth_of_the_length_is_the_same_length(length_s, said):
    past = changed(statement(dated=False), length_s=1000.0)
    assert ("LENGTH" in codes(past, changed(past, length_s=length_s))) is said


def test_another_boundary_of_a_line_without_energy_is_no_reason():
    past = statement((1.0, 0.0, 0.0, 0.0, 0.0))

    def moved(name):
        return changed(
            past,
            components=[
                c.model_copy(update={"boundary": "cluster"}) if c.id == name else c
                for c in past.components
            ],
        )

    assert "BOUNDARY_LEVEL" in codes(past, moved("gpu_wait"))
    assert "BOUNDARY_LEVEL" not in codes(past, moved("host_wait"))


def test_with_and_without_pue_are_different_things():
    past = statement()
    for fields in (
        {"pue_included_in_energy": False},
        {"pue_included_in_energy": False, "pue": None},
        {"pue": None},
    ):
        found = reasons_of(past, of_boundary(past, **fields), [])
        assert [(r.code, r.refuses) for r in found] == [("PUE_INCLUDED", True)]


def test_the_hash_is_over_what_the_document_says_it_is():
    found = report_of(difference_of(statement(), statement(grid=0.5)))
    plain = found.plain()
    apart = ("schema_name", "schema_version", "report_id", "generated_at", "tool")
    for name in (*apart, "reproducibility"):
        del plain[name]
    for side in ("past", "current"):
        for name in ("source", "generated_at", "tool_version", "result_sha256"):
            del plain["difference"][side][name]
    assert plain["difference"]["delta"]["totals"]["emissions_location"]["change"]
    assert found.reproducibility.result_sha256 == sha256(plain)


def test_changes_have_their_sign():
    def change(by):
        return Change(
            unit="kWh",
            before=Amount(value=2.0),
            after=Amount(value=2.0 + by),
            change=by,
            relative=by / 2,
            direction="more" if by > 0 else "less",
            ranges_overlap=None,
        )

    assert [diff_views.change_text(change(by)) for by in (1.0, -1.0)] == ["+1 kWh", "-1 kWh"]
    assert [diff_views.relative_text(change(by)) for by in (1.0, -1.0)] == ["+50 %", "-50 %"]


def test_one_reason_that_refuses_is_enough():
    past = statement()
    both = difference_of(past, of_boundary(changed(past, contracts=[]), counterfactual="x"))
    assert {r.refuses for r in both.incomparable_reasons} == {True, False}
    assert diff_views.verdict(both).startswith("NOT COMPARABLE.")
    assert diff_views.verdict(difference_of(past, changed(past, contracts=[]))).startswith(
        "Not like for like"
    )
    assert diff_views.verdict(difference_of(past, past)) == ""


def test_from_nothing_to_some_is_the_largest_change():
    past, current = (
        statement((0.0, 0.0, None, 0.0, 0.0), costs=(1.0, 0.0, None, 0.0, 0.0)),
        statement(costs=(100.0, 0.0, None, 0.0, 0.0)),
    )
    assert diff_views.headline(difference_of(past, current)).startswith("from nothing to some ")
