"""The difference of two statements: arithmetic, what is unknown, and whether the two may be
compared."""

from __future__ import annotations

import math

import pytest
from differences import difference_of, report_of
from hypothesis import given, settings
from statements import LINES, document, factor, statement, statements

from ckptcost.report.diff import change_of, converts, delta_of, overlap
from ckptcost.report.diff_reasons import notes_of, reasons_of
from ckptcost.report.difference import Amount, Changes, Difference
from ckptcost.report.document import Report
from ckptcost.report.parts import FunctionalUnit
from ckptcost.report.statement import QUANTITIES, Contract


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
        ("LENGTH", lambda s: changed(s, length_s=2 * s.length_s)),
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
