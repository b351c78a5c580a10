"""What people write becomes SI, and what is shown can be read again."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.errors import InputError
from ckptcost.scenario.schema import KEYS, is_figure
from ckptcost.scenario.units import is_count, number, parse, show, show_range

UNITS = ["s", "B", "B/s", "W", "share", "USD", "kWh", "GPU-h", "J/GB", "USD/GPU-h", "g/kWh", ""]


@pytest.mark.parametrize(
    ("said", "example", "si"),
    [
        ("30 GB/s", "1 GB/s", 30e9),
        ("30GB/s", "1 GB/s", 30e9),
        ("200 TiB", "2 TB", 200 * 2**40),
        ("400 Gb/s", "50 GB/s", 50e9),
        ("405B", "400000", 405e9),
        ("16,384", "1024", 16384.0),
        ("1e-3", "0.5", 1e-3),
        (".5", "0.5", 0.5),
        ("78 %", "0.5", 0.78),
        ("1.4x", "1.4", 1.4),
        ("0.42 /1000 GPU-days", "0.42 /1000 GPU-days", 0.42 / 1000 / 86400),
        ("0.42 per 1000 GPU days", "1 /1000 GPU-days", 0.42 / 1000 / 86400),
        ("$2.50/GPU-h", "1 USD/GPU-h", 2.5 / 3600),
        ("125 MB/s/TiB", "1 MB/s/TiB", 125e6 / 2**40),
        ("0.023 USD/GB-month", "1 USD/GB-month", 0.023 / 1e9 / 2628000),
        ("$3", "1 USD", 3.0),
        ("2.1M USD", "1 USD", 2.1e6),
        ("231,000 kWh", "1 kWh", 231000 * 3.6e6),
        (12, "1024", 12.0),
        (2.5e-7, "0.5", 2.5e-7),
    ],
)
def test_parse(said: str | float, example: str, si: float) -> None:
    assert parse(said, example) == pytest.approx(si, rel=1e-12)


@pytest.mark.parametrize(
    ("said", "example", "problem"),
    [
        ("40x", "1024", "a count has no 'x'"),
        ("5 %", "1024", "a count has no '%'"),
        ("-3", "1024", "less than nothing"),
        ("nan", "0.5", "no quantity"),
        ("inf", "0.5", "no quantity"),
        ("1e309", "0.5", "too large"),
        ("9" * 400, "0.5", "no quantity"),
        ("1__0", "5", "cannot read the unit"),
        ("1,5 s", "2 s", "cannot read the unit"),
        ("5 GB/0 s", "3 GB/s", "cannot read the unit"),
        ("30", "2 s", "the unit is missing"),
        ("30 GB", "3 GB/s", "not a unit of '3 GB/s'"),
        ("30 parsecs", "2 s", "'parsecs' is no unit"),
        ("2 USD/node-h", "1 USD/GPU-h", "not a unit of"),
        (True, "0.5", "no quantity"),
        ("", "0.5", "no quantity"),
        ("٣ s", "2 s", "no quantity"),
    ],
)
def test_refused(said: str | float, example: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        parse(said, example)
    assert problem in error.value.problem
    assert error.value.remedy == f"write e.g. {example!r}"


def test_every_example_is_read_in_its_own_unit() -> None:
    for section, keys in KEYS.items():
        for key, field in keys.items():
            if is_figure(section, key):
                about = field.metadata
                assert about["least"] <= parse(about["example"], about["example"]) <= about["most"]
                assert is_count(about["example"]) == about["example"].replace("e", "").isdecimal()


@given(st.floats(1e-6, 1e18), st.sampled_from(UNITS))
def test_what_is_shown_can_be_read(value: float, unit: str) -> None:
    """Three digits of it."""
    text = show(value, unit)
    example = "0.5" if unit in ("share", "") else f"1 {unit}"
    assert parse(text, example) == pytest.approx(value, rel=5.1e-3)


@given(st.floats(1e-9, 1e15, allow_subnormal=False))
def test_numbers_keep_three_digits(value: float) -> None:
    assert float(parse(number(value), "0.5")) == pytest.approx(value, rel=5.1e-3)


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (1.2e6, 7.4e6, "USD", "1.2-7.4M"),
        (95.0, 900.0, "s", "1.6-15 min"),
        (0.5, 2.0, "share", "50-200 %"),
        (-3.0, 12.0, "s", "-3 to 12 s"),
        (1.121e6, 1.124e6, "USD", "1.121-1.124M"),
        (4.0 * 31536000.0, 5.0 * 31536000.0, "s", "4-5 years"),
    ],
)
def test_ranges(low: float, high: float, unit: str, text: str) -> None:
    assert show_range(low, high, unit) == text


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with contextlib.suppress(InputError):
        assert 0 <= parse(text, "30 GB/s") < math.inf
