"""What a statement stands for: rounding, words, ranges, bounds; and when it agrees."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ckptcost.errors import InputError
from ckptcost.plan.claims import AGREES, CONTRADICTS, Span
from ckptcost.plan.laws import QUANTITIES
from ckptcost.plan.sheets import sheet_of, stated_of

HOUR, KWH = 3600.0, 3.6e6


def allowed(raw: object, name: str) -> tuple[float, float]:
    low, high = stated_of(raw, name, QUANTITIES[name].example).allowed
    return low, high


@pytest.mark.parametrize(
    ("raw", "name", "low", "high"),
    [
        ("2.8 h", "time", 2.75 * HOUR, 2.85 * HOUR),
        ("2 TB", "size", 1.5e12, 2.5e12),
        ("exactly 2 TB", "size", 2e12, 2e12),
        ("1.5e3 s", "time", 1450.0, 1550.0),
        ("28,295 s", "time", 28294.5, 28295.5),
        ("0 s", "recovery", 0.0, 0.5),
        (100, "saves", 100, 100),
        ("340_970_988", "requests", 340970988, 340970988),
        (7.8, "failures_per_day", 7.75, 7.85),
        ("1T", "params", 0.5e12, 1.5e12),
        ("97.5 %", "goodput", 0.9745, 0.9755),
        ("15 x", "speedup", 14.5, 15.5),
        ("about 700 kWh", "total_energy", 630 * KWH, 770 * KWH),
        ("~ 17 min", "time", 0.9 * 1020, 1.1 * 1020),
        ("15 to 20 kWh", "energy", 15 * KWH, 20 * KWH),
        ("20-40 GB/s", "write", 20e9, 40e9),
        ("between 30 s and 2 min", "time", 30, 120),
        ("about 10 to 20 s", "time", 9, 22),
        ("over 2 MWh", "total_energy", 2000 * KWH, math.inf),
        ("at least 1500 s", "time", 1500, math.inf),
        ("less than 1 %", "stall_share", 0, 0.01),
        ("up to 12 %", "runtime_saved", 0, 0.12),
        ("up to 5 to 10 %", "stall_share", 0, 0.10),
        ("> 3 s", "time", 3, math.inf),
        ("<= 3 s", "time", 0, 3),
    ],
)
def test_what_a_statement_stands_for(raw: object, name: str, low: float, high: float) -> None:
    assert allowed(raw, name) == pytest.approx((low, high), rel=1e-12)


def verdict(**stated: object) -> str:
    """The word of the only verdict on one claim."""
    sheet = sheet_of({"claim": [{"about": "it", **stated}]})
    words = {each.word for each in sheet.verdicts}
    assert len(words) == 1, sheet.verdicts
    return words.pop()


@pytest.mark.parametrize(
    ("total", "word"),
    [
        ("over 2 MWh", CONTRADICTS),  # 100 x 15 to 20 kWh is 1.5 to 2 MWh: 2 itself is not over 2
        ("at least 2 MWh", AGREES),
        ("about 2 MWh", AGREES),
        ("less than 1.5 MWh", CONTRADICTS),
        ("up to 1.5 MWh", AGREES),
        ("under 1.6 MWh", AGREES),
        ("2.1 to 3 MWh", CONTRADICTS),
    ],
)
def test_a_bound_excludes_its_end_only_if_it_says_so(total: str, word: str) -> None:
    assert verdict(energy="15 to 20 kWh", saves=100, total_energy=total) == word


@pytest.mark.parametrize(
    ("time", "word"),
    [
        ("2.8 h", AGREES),  # 2.78 h rounds to it
        ("2.7 h", CONTRADICTS),
        ("about 2.6 h", AGREES),
        ("about 2.5 h", CONTRADICTS),  # 10 % reach 2.75
        ("exactly 10001 s", CONTRADICTS),
        ("over 10000 s", CONTRADICTS),
        ("less than 10000 s", CONTRADICTS),
    ],
)
def test_rounding_decides_and_not_the_printed_number(time: str, word: str) -> None:
    assert verdict(size="exactly 2 TB", write="exactly 200 MB/s", time=time) == word


def test_gigabytes_and_gibibytes_are_different() -> None:
    stated = {"size": "39.54 TiB", "time": "28,295 s"}
    assert verdict(**stated, write="1.43 GiB/s") == AGREES
    assert verdict(**stated, write="1.43 GB/s") == CONTRADICTS


def test_an_approximate_value_gives_way_to_the_firm_one_within_it() -> None:
    claim = {"about": "a", "size": "exactly 2 TB", "write": "exactly 200 MB/s"}
    sheet = sheet_of({"claim": [claim | {"time": "about 2.8 h", "interval": "exactly 10000 s"}]})
    share = sheet.claims["a"].facts["stall_share", "stall share, waiting"]
    assert share.allowed == pytest.approx((0.5, 0.5))


def test_no_value_rests_on_itself() -> None:
    sheet = sheet_of({"claim": [{"about": "a", "size": "exactly 2 TB", "params": "exactly 1T"}]})
    claim = sheet.claims["a"]
    for (what, _), fact in claim.facts.items():
        assert what not in fact.uses
    assert claim.best("bytes_per_param").allowed == Span(2.0, 2.0)  # type: ignore[union-attr]


def test_a_claim_overrides_its_context_which_is_not_compared_with_itself() -> None:
    context = {"size": "exactly 2 TB", "failures_per_day": 8, "mttf": "1 h"}
    a = {"about": "a", "write": "exactly 1 GB/s", "time": "exactly 2000 s"}
    b = a | {"about": "b", "size": "exactly 1 TB"}
    found = sheet_of({"context": context, "claim": [a, b]}).verdicts
    assert [each.word for each in found] == [AGREES, CONTRADICTS]


def formula(that: str, **claims: dict[str, Any]) -> tuple[float, float]:
    tables = [{"about": name, **stated} for name, stated in claims.items()]
    follows = sheet_of({"claim": tables, "follows": [{"what": "it", "that": that}]}).follows[0]
    low, high = follows.stated.printed
    return low, high


def test_formulas_over_claims() -> None:
    a, b = {"energy": "1 to 2 kWh"}, {"energy": "exactly 10 kWh"}
    assert formula("1 - a.energy / b.energy", a=a, b=b) == pytest.approx((0.8, 0.9))
    assert formula("a.energy / 2 h", a=a) == pytest.approx((500.0, 1000.0))
    assert formula("log(b.energy / 1 kWh) / log(10)", b=b) == pytest.approx((1.0, 1.0))
    assert formula("50 % * b.energy + 3.6e6 J", b=b) == pytest.approx((6 * KWH, 6 * KWH))
    assert formula("(a.energy / b.energy)^2", a=a, b=b) == pytest.approx((0.01, 0.04))


@pytest.mark.parametrize(
    "that",
    [
        *("a.energy.__class__", "open('x')", "a.energy +", "[a.energy]", "a.energy / (1 - 1)"),
        *("log(0 - a.energy)", "(0 - a.energy)^0.5", "a.energy^9^9^9", "log()", "a", "b.energy"),
    ],
)
def test_a_formula_is_arithmetic_and_nothing_else(that: str) -> None:
    with pytest.raises(InputError):
        formula(that, a={"energy": "1 kWh"})
