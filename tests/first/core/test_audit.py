"""Expressions, laws, verdicts and readings, each against arithmetic done by hand."""

from __future__ import annotations

import ast
import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.catalog.claims import sheet_of, stated_of
from ckptcost.first.core.audit import CONSISTENT, INCONSISTENT, NOT_DERIVABLE, audit, derive
from ckptcost.first.core.expressions import (
    ExpressionValue,
    best_goodput,
    evaluate,
    formula,
    unit_of,
)
from ckptcost.first.core.intervals import Interval
from ckptcost.first.core.readings import STATES, alternatives, readings
from ckptcost.first.core.relations import QUANTITIES, RELATIONS
from ckptcost.first.core.units import DAY_S, UNITS
from ckptcost.first.errors import InputError, UnitError, UnknownName

VALUES = {
    "size": 2e12,
    "write": 4e9,
    "time": 500.0,
    "power": 3e3,
    "energy": 1.5e6,
    "saves": 100.0,
    "interval": 3600.0,
    "goodput": 0.97,
    "stall_share": 0.1,
    "speedup": 15.0,
    "failures_per_day": 50.0,
    "mttf": 1728.0,
    "params": 1e11,
    "bytes_per_param": 20.0,
    "runtime_saved": 0.09,
    "gpus": 1e5,
    "queue_depth": 300.0,
    "requests": 1e7,
}


def of(**quantities):
    """A sheet of one claim."""
    return sheet_of({"claim": [{"id": "it", **quantities}]}, "sheet.toml")


def point(name):
    value = VALUES.get(name, 3.0)
    return ExpressionValue(Interval(value, value), UNITS[QUANTITIES[name].unit][0])


# ---- expressions


@given(
    numbers=st.lists(st.floats(0.1, 1e3), min_size=4, max_size=4),
    marks=st.lists(st.sampled_from("+-*/"), min_size=3, max_size=3),
)
def test_arithmetic_is_that_of_python(numbers, marks):
    """Precedence and association, against Python's own."""
    text = (
        f"{numbers[0]:.3f} {marks[0]} {numbers[1]:.3f} {marks[1]} {numbers[2]:.3f} {marks[2]}"
        f" {numbers[3]:.3f}"
    )
    signs = {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
    }

    def walk(node):
        return (
            node.value
            if isinstance(node, ast.Constant)
            else signs[type(node.op)](walk(node.left), walk(node.right))
        )

    assert evaluate(formula(text), point).range.low == pytest.approx(
        walk(ast.parse(text, mode="eval").body), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("2 TB / (1 GB / 1 s)", 2000.0, "s"),
        ("-2^2", -4.0, ""),
        ("(1 - 90 %)^2", 0.01, ""),
        ("2^-1", 0.5, ""),
        ("1 day / 50", 1728.0, "s"),
        ("500 W * 1 h", 1.8e6, "j"),
        ("sqrt(log(exp(9)))", 3.0, ""),
        ("max(1 h, 90 min)", 5400.0, "s"),
        ("min(2, 3)", 2.0, ""),
        ("size / write", 500.0, "s"),
        ("1e3", 1000.0, ""),
        ("-(-1)", 1.0, ""),
        ("1_000 - 1", 999.0, ""),
    ],
)
def test_values(text, value, unit):
    found = evaluate(formula(text), point)
    assert found.range.low == pytest.approx(value, rel=1e-12)
    assert unit_of(found.dims) == unit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "(1",
        "1)",
        "2 nosuchunit",
        "a b",
        "1 $ 2",
        "x.y.z",
        "f(1)",
        "1 ^ 2.5",
        "1 ^ 10",
        "1 ^ x",
        "--1",
        "sqrt(1, 2)",
        "max(1)",
        "1,2",
        "__import__('os')",
        "lambda: 1",
        "a[0]",
        "nas..x",
        "1e",
        "é",
        "a = 1",
        "1 // 2",
        "2 ** 3",
        "(" * 60 + "1" + ")" * 60,
        "1+" * 300 + "1",
    ],
)
def test_what_is_no_formula(text):
    with pytest.raises(InputError) as error:
        formula(text)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "text", ["1 TB + 1 s", "size - 1", "log(1 TB)", "max(1 s, 1 TB)", "best_goodput(1 s, 1 s, 1 s)"]
)
def test_dimensions(text):
    with pytest.raises(UnitError):
        evaluate(formula(text), point)


def test_a_root_of_what_may_be_negative():
    with pytest.raises(InputError, match="negative"):
        evaluate(formula("sqrt(1 - 2)"), point)


# ---- laws


@pytest.mark.parametrize(
    ("law", "name"),
    [(law, name) for law in RELATIONS for name in law.forms],
    ids=lambda x: getattr(x, "id", x),
)
def test_each_form_has_the_unit_of_its_quantity(law, name):
    found = evaluate(formula(law.forms[name]), point)
    assert found.dims == UNITS[QUANTITIES[name].unit][0]


@pytest.mark.parametrize(
    "law", [law for law in RELATIONS if len(law.forms) > 1], ids=lambda law: law.id
)
def test_the_forms_of_a_law_are_one_law(law):
    """Solve for one quantity, put it in, solve for another: the value comes back."""
    names = list(law.forms)
    solved = evaluate(formula(law.forms[names[0]]), point)
    for other in names[1:]:
        again = evaluate(
            formula(law.forms[other]), lambda name: solved if name == names[0] else point(name)
        )
        assert again.range.low == pytest.approx(point(other).range.low, rel=1e-9), other


@pytest.mark.parametrize("law", RELATIONS, ids=lambda law: law.id)
def test_each_quantity_stands_once_in_a_form(law):
    """So that the interval is the hull and no wider."""
    for text in law.forms.values():
        names = formula(text).names
        assert all(text.replace("1 day", "").split().count(name) <= 1 for name in names)


@pytest.mark.parametrize(
    "law",
    [law for law in RELATIONS if "best_goodput" not in str(law.forms)],
    ids=lambda law: law.id,
)
@given(data=st.data())
def test_containment_through_a_law(law, data):
    """Any numbers out of the intervals give a result in the interval."""
    for text in law.forms.values():
        expression = formula(text)
        ranges, inside = {}, {}
        for name in expression.names:
            most = 0.9 if QUANTITIES[name].most == 1.0 else 1e6
            low, high = sorted((data.draw(st.floats(0.01, most)), data.draw(st.floats(0.01, most))))
            ranges[name], inside[name] = Interval(low, high), data.draw(st.floats(low, high))
        try:
            hull = evaluate(
                expression, lambda n, r=ranges: ExpressionValue(r[n], UNITS[QUANTITIES[n].unit][0])
            ).range
            value = evaluate(
                expression,
                lambda n, v=inside: ExpressionValue(
                    Interval(v[n], v[n]), UNITS[QUANTITIES[n].unit][0]
                ),
            ).range
        except ZeroDivisionError:  # of the hull, or of the one point where a divisor vanishes
            continue
        slack = 1e-9 * max(abs(value.low), 1e-9)
        assert hull.low - slack <= value.low <= value.high <= hull.high + slack


def test_best_goodput_is_the_top_of_the_curve():
    """Against a scan over intervals of G = l*tau / (exp(l*R)*(exp(l*(tau+C))-1))."""
    for per_day, stall, recovery in [(50.0, 0.5, 60.0), (8.0, 30.0, 300.0), (1.0, 600.0, 0.0)]:
        rate = per_day / DAY_S
        scan = max(
            rate * tau / (math.exp(rate * recovery) * math.expm1(rate * (tau + stall)))
            for tau in [1.001**i for i in range(11_000)]
        )
        best = best_goodput(*(Interval(x, x) for x in (per_day, stall, recovery)))
        assert best.low == pytest.approx(scan, rel=1e-5)
    assert best_goodput(Interval(0, 0), Interval(1, 1), Interval(1, 1)) == Interval(1, 1)
    assert best_goodput(Interval(1e30, 1e30), Interval(1, 1), Interval(1, 1)).low == 0.0


def test_the_goodput_laws_agree_with_the_exact_one():
    """The stall that a goodput allows, put into the exact best goodput without recovery, gives that
    goodput back to second order."""
    goodput, per_day = 0.99, 10.0
    stall = evaluate(
        formula("(1 - goodput)^2 / 2 * (1 day / failures_per_day)"),
        lambda n: ExpressionValue(
            Interval(*[{"goodput": goodput, "failures_per_day": per_day}[n]] * 2), ()
        ),
    ).range.low
    exact = best_goodput(Interval(per_day, per_day), Interval(stall, stall), Interval(0, 0)).low
    assert exact == pytest.approx(goodput, abs=(1 - goodput) ** 2)


# ---- verdicts


def only(sheet):
    return {v.what: v for v in audit(sheet).verdicts}


@pytest.mark.parametrize(
    ("time", "word", "how"),
    [
        ("1000 s", CONSISTENT, "inside"),
        ("about 17 min", CONSISTENT, "inside"),
        ("900 to 2000 s", CONSISTENT, "inside"),
        ("15 min", INCONSISTENT, "apart"),
        ("over 1000 s", INCONSISTENT, "touches"),
        ("at least 1000 s", CONSISTENT, "inside"),
        ("less than 1000 s", INCONSISTENT, "touches"),
        ("up to 1000 s", CONSISTENT, "inside"),
        ("less than 1001 s", CONSISTENT, "inside"),
        ("1001 to 1002 s", INCONSISTENT, "apart"),
        ("16.7 min", CONSISTENT, "inside"),
        ("16.6 min", INCONSISTENT, "apart"),
    ],
)
def test_a_time_against_size_and_rate(time, word, how):
    """2 TB at 2 GB/s take 1,000 s = 16.67 min."""
    sheet = of(size="exactly 2 TB", write="exactly 2 GB/s", time=time)
    (verdict,) = audit(sheet).verdicts
    # a firm time is one of three firm values, and the rate is the one held against the others
    assert (verdict.word, derive(sheet.claims[0])["time", "rate"].printed) == (
        word,
        Interval(1000.0, 1000.0),
    ), verdict
    if verdict.what == "time":
        assert verdict.how == how


def test_ranges_that_overlap_agree_in_part():
    verdict = only(of(failures_per_day="50 to 60", mttf="20 to 25 min"))["mttf"]
    assert (verdict.word, verdict.how) == (CONSISTENT, "overlaps")
    assert verdict.fact.printed.low == pytest.approx(1440.0)


def test_rounding_makes_no_contradiction():
    """4 GB/s may have been 4.49 GB/s."""
    assert only(of(size="449.2 GB", write="4 GB/s", time="exactly 101 s"))["write"].how == "inside"
    assert (
        only(of(size="exactly 449 GB", write="4.0 GB/s", time="exactly 101 s"))["write"].word
        == INCONSISTENT
    )


def test_how_far_apart():
    verdict = only(of(saves=100, energy="15 to 20 kWh", total_energy="3 to 4 MWh"))["total_energy"]
    assert (verdict.word, verdict.factor) == (INCONSISTENT, pytest.approx(1.5))


def test_what_nothing_constrains():
    verdicts = only(of(energy="5 kWh", capacity="4 TB"))
    assert {v.word for v in verdicts.values()} == {NOT_DERIVABLE}


def test_nothing_rests_on_itself():
    """A derived power, put back into its own law, would prove any time."""

    sheet = of(
        size="2 TB",
        write="200 MB/s",
        time="about 2.8 h",
        energy="15 to 20 kWh",
        saves=100,
        total_energy="2 MWh",
        interval="1 to 3 h",
        stall_share="5 %",
        params="1T",
        bytes_per_param="2 B",
    )
    slots = derive(sheet.claims[0])
    assert all(name not in fact.uses for (name, _), fact in slots.items())
    assert "energy" not in {
        n
        for (name, law), fact in slots.items()
        if (name, law) == ("time", "rate")
        for n in fact.uses
    }
    assert ("time", "power") not in slots


def test_the_order_of_keys_changes_nothing():
    parts = {
        "size": "2 TB",
        "write": "200 MB/s",
        "time": "2 h",
        "energy": "15 kWh",
        "saves": 100,
        "total_energy": "2 MWh",
    }
    first = {(v.what, v.word) for v in audit(of(**parts)).verdicts}
    assert first == {(v.what, v.word) for v in audit(of(**dict(reversed(parts.items())))).verdicts}


def test_a_planted_contradiction_is_found_through_a_chain():
    """params -> size -> time -> energy: the last one is 10 times what the first three and the power
    say."""
    good = {
        "params": "100B",
        "bytes_per_param": "exactly 14 B",
        "write": "exactly 14 GB/s",
        "power": "exactly 3.6 kW",
    }
    assert {v.word for v in audit(of(**good, energy="0.1 kWh")).verdicts} == {CONSISTENT}
    assert {v.word for v in audit(of(**good, energy="1.0 kWh")).verdicts} == {INCONSISTENT}, (
        "one circle, one verdict"
    )


def test_holds_across_claims():
    sheet = sheet_of(
        {
            "claim": [{"id": "a", "time": "100 s"}, {"id": "b", "time": "50 s"}],
            "holds": [
                {"that": "a.time / b.time", "is": "2 x"},
                {"that": "a.time - b.time", "is": "60 s"},
            ],
        },
        "s.toml",
    )
    assert [v.word for v in audit(sheet).verdicts] == [CONSISTENT, INCONSISTENT]


# ---- readings


def fitting(sheet):
    return {r.kind: r.reading for r in readings(sheet, audit(sheet)) if r.fits}


def test_reading_binary_units():
    """100 GiB at 1 GB/s take 107.4 s."""
    assert (
        fitting(of(size="exactly 100 GB", write="exactly 1 GB/s", time="107.4 s"))["unit"]
        == "size as GiB, not GB"
    )
    assert fitting(of(size="exactly 100 GiB", write="exactly 1 GiB/s", time="93.13 s"))["unit"]
    assert "unit" not in fitting(of(size="exactly 100 GB", write="exactly 1 GB/s", time="300.0 s"))


def test_reading_bits():
    assert (
        fitting(of(size="exactly 100 GB", write="exactly 1 GB/s", time="800.0 s"))["bits"]
        == "write as bits: Gb/s, not GB/s"
    )


def test_reading_a_mean_of_rates():
    """METHOD D23: 202.41 GiB/s over 4.994 s is not 911.21 GiB, size over time is 182.5."""
    sheet = of(size="911.212 GiB", time="4.994 s", write="202.41 GiB/s")
    verdict = only(sheet)["write"]
    assert verdict.word == INCONSISTENT
    assert verdict.fact.printed.low / 2**30 == pytest.approx(182.5, abs=0.05)
    assert fitting(sheet)["mean-of-rates"]


def test_reading_of_units_in_a_training_log():
    """METHOD D27: "329 GB" of 176.25B 16-bit weights is nearer in GiB."""
    sheet = of(params="176.247B", bytes_per_param="exactly 2 B", size="329 GB")
    (found,) = [r for r in readings(sheet, audit(sheet)) if r.kind == "unit"]
    assert found.factor < 1.003 < only(sheet)["size"].factor


@pytest.mark.parametrize(
    ("energy", "boundary"),
    [
        ("5 kJ", "drive"),
        ("100 to 200 Wh", "storage-system"),
        ("142 kWh", "cluster (1,024 GPUs at 500 W)"),
    ],
)
def test_reading_by_boundary(energy, boundary):
    sheet = of(
        size="exactly 2 TB",
        write="exactly 2 GB/s",
        energy=energy,
        gpus=1024,
        gpu_power="exactly 500 W",
    )
    found = [r for r in readings(sheet, audit(sheet)) if r.kind == "boundary"]
    assert len(found) == 3
    # the cluster's 142.2 kWh is compared to the digit the claim has
    assert [r.reading for r in found if r.fits] == [boundary]


@pytest.mark.parametrize("per_param", [b for b in STATES if b < 16])
def test_reading_the_saved_state(per_param):
    sheet = of(params="100B", size=f"{per_param * 100:g} GB")
    assert any(
        r.reading.startswith(f"{per_param:g} B/param")
        for r in readings(sheet, audit(sheet))
        if r.kind == "state"
    )


# ---- what a text says


@pytest.mark.parametrize(
    ("text", "unit", "printed", "allowed"),
    [
        ("2.8 h", "s", (10_080, 10_080), (9_900, 10_260)),
        ("exactly 2 TB", "bytes", (2e12, 2e12), (2e12, 2e12)),
        ("about 700 kWh", "j", (2.52e9, 2.52e9), (2.268e9, 2.772e9)),
        ("over 2 MWh", "j", (7.2e9, math.inf), (7.2e9, math.inf)),
        ("less than 1 %", "", (0, 0.01), (0, 0.01)),
        ("up to 12 %", "", (0, 0.12), (0, 0.12)),
        (100, "", (100, 100), (100, 100)),
        ("1,024", "", (1024, 1024), (1024, 1024)),
        (1.9, "", (1.9, 1.9), (1.85, 1.95)),
        ("15 to 20 kWh", "j", (5.4e7, 7.2e7), (5.4e7, 7.2e7)),
        ("20-40 GB/s", "bytes_per_s", (2e10, 4e10), (2e10, 4e10)),
        ("30\u201340 s", "s", (30, 40), (30, 40)),
        ("30 min to 2 h", "s", (1800, 7200), (1800, 7200)),
        ("between 1 and 3 h", "s", (3600, 10800), (3600, 10800)),
        ("1.5e-3 s", "s", (0.0015, 0.0015), (0.00145, 0.00155)),
        ("~ 5 s", "s", (5, 5), (4.5, 5.5)),
        (">= 3 s", "s", (3, math.inf), (3, math.inf)),
        ("405B", "", (4.05e11, 4.05e11), (4.045e11, 4.055e11)),
        ("about 5 to 10 %", "", (0.05, 0.1), (0.045, 0.11)),
        ("2,000 to 2,500", "", (2000, 2500), (2000, 2500)),
    ],
)
def test_stated(text, unit, printed, allowed):
    stated = stated_of(text, unit)
    assert (stated.printed.low, stated.printed.high) == pytest.approx(printed)
    assert (stated.allowed.low, stated.allowed.high) == pytest.approx(allowed)
    assert stated.printed.within(stated.allowed)


@given(st.floats(0.001, 1e9).map(lambda x: float(f"{x:.3g}")), st.integers(0, 6))
def test_rounding_holds_whatever_was_rounded(value, places):
    """The number before rounding is always among those allowed."""
    text = f"{value:.{places}f} s"
    assert (
        stated_of(text, "s").allowed.low * (1 - 1e-12) - 1e-12
        <= value
        <= stated_of(text, "s").allowed.high * (1 + 1e-12) + 1e-12
    )


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", "s"),
        ("soon", "s"),
        ("2", "s"),
        ("2 GB", "s"),
        ("5 to 3 s", "s"),
        ("-1 s", "s"),
        ("1e308 s", "s"),
        ("1e999 s", "s"),
        ("nan", ""),
        ("nan s", "s"),
        ("inf s", "s"),
        (math.nan, ""),
        (math.inf, ""),
        (1e308, ""),
        (10**400, ""),
        (True, ""),
        (None, "s"),
        ([1], "s"),
        ("1,5 s", "s"),
        ("over about 2 s", "s"),
        ("over 2 to 3 s", "s"),
        ("2 to s", "s"),
        ("1 s to 2", "s"),
        ("1 s to 2 GB", "s"),
        ("9" * 300, ""),
        ("about", "s"),
        ("over", "s"),
        ("2 s 3 s", "s"),
        ("1 to 2 to 3 s", "s"),
    ],
)
def test_not_stated(text, unit):
    with pytest.raises(InputError):
        stated_of(text, unit)


def test_a_name_nobody_knows():
    with pytest.raises(UnknownName, match="did you mean 'write'"):
        of(wirte="2 GB/s")


def test_a_claims_own_word_stands_over_the_context():
    sheet = sheet_of(
        {
            "context": {"size": "3 TB", "time": "10 s"},
            "claim": [{"id": "it", "size": "2 TB", "write": "200 GB/s"}],
        },
        "s.toml",
    )
    claim = sheet.claims[0]
    assert (claim.stated["size"].text, claim.stated["time"].text, claim.shared) == (
        "2 TB",
        "10 s",
        {"time"},
    )
    assert [verdict.word for verdict in audit(sheet).verdicts] == [CONSISTENT]


def test_a_share_may_be_all_of_it_and_no_more():
    assert of(goodput="100 %").claims[0].stated["goodput"].printed == Interval(1.0, 1.0)
    with pytest.raises(InputError, match="more than all of it"):
        of(goodput="101 %")


def test_a_formula_may_be_below_zero():
    claims = [{"id": "a", "energy": "10 kWh"}, {"id": "b", "energy": "12 kWh"}]
    for said, word in (
        ("-20 %", CONSISTENT),
        ("20 %", INCONSISTENT),
        ("less than 5 %", CONSISTENT),
    ):
        sheet = sheet_of(
            {"claim": claims, "holds": [{"that": "1 - b.energy / a.energy", "is": said}]}, "s.toml"
        )
        assert [verdict.word for verdict in audit(sheet).verdicts if not verdict.claim] == [word], (
            said
        )


def test_about_is_no_narrower_than_the_last_digit():
    assert stated_of("about 2 kWh", "j").allowed == Interval(1.5 * 3.6e6, 2.5 * 3.6e6)
    assert stated_of("about 20 kWh", "j").allowed == Interval(18 * 3.6e6, 22 * 3.6e6)


def test_what_is_firm_and_what_is_not():
    for text, soft in (
        ("15 kWh", False),
        ("15 to 20 kWh", False),
        ("about 15 to 20 kWh", True),
        ("up to 15 to 20 kWh", True),
        ("exactly 15 kWh", False),
        ("over 15 kWh", True),
        ("at least 15 kWh", True),
        ("up to 15 kWh", True),
    ):
        assert stated_of(text, "j").soft is soft, text
    assert stated_of("up to 15 to 20 kWh", "j").printed == Interval(0.0, 20 * 3.6e6)


def test_the_most_a_quantity_can_be_is_no_value_to_go_on_with():
    """failures and saves a day give a goodput, that the most a stall may be; a goodput from that
    stall would be a guess of a guess."""
    slots = derive(of(saves_per_day=1000, failures_per_day=20, recovery="60 s").claims[0])
    assert slots["stall", "stall for a goodput"].at_most
    assert any(what == "goodput" for what, _ in slots)
    assert ("goodput", "goodput") not in slots


def test_a_claims_own_value_is_held_against_the_context():
    context = {"size": "about 2 TB", "time": "10 s"}
    verdicts = audit(
        sheet_of({"context": context, "claim": [{"id": "it", "write": "200 GB/s"}]}, "s.toml")
    ).verdicts
    assert [(verdict.what, verdict.word) for verdict in verdicts] == [("write", CONSISTENT)]


def test_a_context_is_not_judged_in_each_claim():
    context = {
        "size": "2 TB",
        "time": "10 s",
        "write": "1 GB/s",
    }  # at odds with itself, whatever a claim says
    verdicts = audit(
        sheet_of({"context": context, "claim": [{"id": "it", "gpus": 1024}]}, "s.toml")
    ).verdicts
    assert [(verdict.what, verdict.word) for verdict in verdicts] == [("gpus", NOT_DERIVABLE)]


def test_the_other_ways_to_read_a_value():
    """The same digits in the other kind of prefix, in bits, as a mean of rates, as about that
    much."""
    for text, unit, rate, wanted in (
        ("2 TB", "bytes", False, {"unit": 2 * 2.0**40}),
        ("2 TiB", "bytes", False, {"unit": 2e12}),
        ("5 kB", "bytes", False, {"unit": 5120.0}),
        ("3 GiB", "bytes", False, {"unit": 3e9}),
        ("5 s", "s", False, {}),
        ("8 GB/s", "bytes_per_s", True, {"unit": 8 * 2.0**30, "bits": 1e9}),
    ):
        stated = stated_of(text, unit)
        found = {kind: read for kind, _, read in alternatives(stated, rate)}
        assert {
            kind: read.printed.low for kind, read in found.items() if kind in ("unit", "bits")
        } == pytest.approx(wanted), text
        assert all(
            read.printed.low == read.printed.high
            for kind, read in found.items()
            if kind in ("unit", "bits")
        ), text
        if rate:
            assert found["mean-of-rates"].allowed == Interval(
                stated.allowed.low / 1.2, stated.allowed.high
            )
        low, high = stated.printed.low * 0.9, stated.printed.low * 1.1
        assert (found["about"].allowed.low, found["about"].allowed.high) == pytest.approx(
            (low, high)
        )


# ---- laws that need not hold contradict nothing


def said(**stated):
    """One claim's verdicts by quantity and law."""
    sheet = sheet_of({"name": "sheet", "claim": [{"about": "it", **stated}]}, "sheet")
    return {(v.what, v.law): (v.word, v.how) for v in audit(sheet).verdicts}


def test_a_goodput_below_the_best_is_possible():
    """10 failures a day at 90 %: 100 saves a day at best, 1,000 with a recovery of 800 s and a
    short stall."""
    assert said(failures_per_day=10, goodput="90 %", saves_per_day=1000) == {
        ("goodput", "goodput for saves"): (CONSISTENT, "at most")
    }


def test_half_an_interval_a_failure_bounds_the_goodput():
    found = said(failures_per_day=50, goodput="99 %", saves_per_day=1000)
    assert found == {("goodput", "goodput for saves"): (INCONSISTENT, "apart")}
    assert (
        said(failures_per_day=50, goodput="97 %", saves_per_day=1000)[
            "goodput", "goodput for saves"
        ][0]
        == CONSISTENT
    )
    for x in (
        1e-4,
        0.1,
        1.0,
        10.0,
        100.0,
    ):  # never below the exact best at that many saves: G*e^... = x/(e^x - 1) with x = l*tau
        kept = x / math.expm1(x)
        per_save = x / kept  # failures for each save of the wall time
        assert kept <= (1 + 1 / (1 + per_save)) / 2 + 1e-12


def test_a_stated_stall_is_what_holds_training_up():
    sheet = {
        "size": "exactly 2 TB",
        "write": "exactly 20 GB/s",
        "time": "exactly 100 s",
        "interval": "exactly 600 s",
        "stall": "exactly 1 s",
    }
    assert said(**sheet, stall_share="0.17 %")["stall_share", "stall share"] == (
        CONSISTENT,
        "inside",
    )
    assert said(**sheet, stall_share="14.3 %")["stall_share", "stall share"][0] == INCONSISTENT
    without = {key: value for key, value in sheet.items() if key != "stall"}
    assert said(**without, stall_share="14.3 %")["stall_share", "stall share, waiting"] == (
        CONSISTENT,
        "inside",
    )


def test_a_cycle_holds_the_save_too():
    found = said(
        interval="exactly 10 min", time="exactly 5 min", stall_share="33 %", saves_per_day=96
    )
    assert {word for word, _ in found.values()} == {CONSISTENT}
    assert said(interval="exactly 10 min", saves_per_day=96)[
        "saves_per_day", "cadence, at most"
    ] == (CONSISTENT, "at most")
    assert (
        said(interval="exactly 10 min", saves_per_day=200)["saves_per_day", "cadence, at most"][0]
        == INCONSISTENT
    )


def test_functions_of_ranges_by_hand():
    def value(text):
        return evaluate(
            formula(text),
            {
                "a": ExpressionValue(Interval(1.0, 5.0), ()),
                "b": ExpressionValue(Interval(2.0, 3.0), ()),
            }.__getitem__,
        ).range

    assert (value("min(a, b)"), value("max(a, b)")) == (Interval(1.0, 3.0), Interval(2.0, 5.0))


def test_the_best_goodput_of_ranges_is_that_of_their_ends():
    """Worst with the most failures, the longest stall and recovery; without a stall only the
    recovery is lost."""
    (few, many), (short, long), (quick, slow) = (10.0, 50.0), (0.5, 2.0), (20.0, 90.0)

    def at(*values):
        found = best_goodput(*(Interval(value, value) for value in values))
        assert found.low == found.high
        return found.low

    found = best_goodput(Interval(few, many), Interval(short, long), Interval(quick, slow))
    assert found == Interval(at(many, long, slow), at(few, short, quick))
    assert at(many, 0.0, slow) == pytest.approx(math.exp(-many / DAY_S * slow), rel=1e-12)
    assert at(many, 1e-9, slow) == pytest.approx(at(many, 0.0, slow), rel=1e-4)
