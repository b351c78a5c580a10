"""Numbers for people: three digits, a unit, a dash where unknown."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.lines import KINDS
from ckptcost.first.core.units import UNITS, parse
from ckptcost.first.present.amounts import (
    DASH,
    between,
    count,
    duration,
    number,
    quantities,
    quantity,
    rate,
    share,
    size,
)
from ckptcost.first.present.table import columns, markdown
from ckptcost.first.present.words import line_label

PRINTERS = [number, duration, size, rate, count, share]
PLAIN = re.compile(r"-?\d{1,3}(,\d{3})*(\.\d+)?[kMGTPE]?|-?\d(\.\d+)?e[+-]?\d+|never")


@pytest.mark.parametrize("show", PRINTERS)
@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_unknown_is_a_dash(show, unknown):
    assert show(unknown) == DASH == "-"


@pytest.mark.parametrize("unit", UNITS)
def test_unknown_is_a_dash_in_every_unit(unit):
    assert quantity(None, unit) == quantity(float("nan"), unit) == DASH
    assert quantities(None, None, unit) == ""
    assert quantities(1.0, None, unit) == ""


@pytest.mark.parametrize("show", PRINTERS)
def test_zero_is_a_zero(show):
    assert show(0.0).split()[0] == "0"
    assert show(-0.0).split()[0] == "0"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (12.0, "12"),
        (123.0, "123"),
        (1234.0, "1,230"),
        (12345.0, "12,300"),
        (999.4, "999"),
        (999.6, "1,000"),
        (0.9999, "1"),
        (0.0123, "0.0123"),
        (0.00123, "0.00123"),
        (1.234e-4, "1.23e-4"),
        (999_400.0, "999,000"),
        (999_600.0, "1M"),
        (1e6, "1M"),
        (1.5e9, "1.5G"),
        (2.5e12, "2.5T"),
        (3e15, "3P"),
        (-1234.0, "-1,230"),
        (-0.5, "-0.5"),
        (float("inf"), "never"),
    ],
)
def test_numbers(value, shown):
    assert number(value) == shown


@given(st.floats(min_value=1e-12, max_value=1e18))
def test_a_number_reads_back_within_half_a_percent(value):
    shown = number(value)
    assert PLAIN.fullmatch(shown), shown
    scale = {"M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}.get(shown[-1], 1.0)
    assert float(shown.rstrip("MGTPE").replace(",", "")) * scale == pytest.approx(value, rel=5.1e-3)


@given(st.floats(min_value=0, max_value=1.7e308))
def test_nothing_is_wider_than_a_column(value):
    """A table cell stays a cell for the largest number there is."""
    for show in PRINTERS:
        assert len(show(value)) <= 14, show(value)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_printers_never_fail(value):
    for show in PRINTERS:
        assert show(value)
        assert "nan" not in show(value)
    for unit in UNITS:
        assert quantity(value, unit)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.54, "0.54 s"),
        (50.0, "50 s"),
        (100.0, "100 s"),
        (10_000.0, "10,000 s"),
        (10_800.0, "10,800 s"),
        (14_400.0, "4 h"),
        (172_800.0, "48 h"),
        (259_200.0, "3 d"),
        (4_665_600.0, "54 d"),
    ],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


def test_never_has_no_unit():
    assert duration(math.inf) == "never"
    assert share(math.inf) in ("-", "never")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1 B"),
        (999.0, "999 B"),
        (2e12, "2 TB"),
        (104.7e9, "105 GB"),
        (999.9e9, "1 TB"),
        (1.6564e13, "16.6 TB"),
        (1e18, "1,000 PB"),
    ],
)
def test_sizes(value, shown):
    assert size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2e8, "0.2 GB/s"),
        (2e9, "2 GB/s"),
        (2e10, "20 GB/s"),
        (4e10, "40 GB/s"),
        (1.25e6, "1.25 MB/s"),
        (1 / 3 * 1e9, "0.333 GB/s"),
        (1e12, "1 TB/s"),
    ],
)
def test_rates(value, shown):
    assert rate(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1024.0, "1,024"),
        (16384.0, "16,384"),
        (100_000.0, "100,000"),
        (2592.4, "2,590"),
        (1.0, "1"),
        (0.5, "0.5"),
    ],
)
def test_counts_are_exact(value, shown):
    assert count(value) == shown


@pytest.mark.parametrize(
    "unit", [unit for unit in UNITS if unit not in ("gpu_s", "kgco2e", "usd", "j", "")]
)
def test_a_quantity_names_a_unit_that_is_parsed_back(unit):
    """What we print, we also read."""
    value = parse(UNITS[unit][1], unit)
    shown = quantity(value, unit)
    assert parse(shown.replace(",", ""), unit) == pytest.approx(value, rel=6e-3), shown


@pytest.mark.parametrize(
    "unit", [unit for unit in UNITS if unit not in ("gpu_s", "kgco2e", "usd", "j")]
)
def test_no_base_unit_is_shown_to_people(unit):
    assert "_" not in quantity(1234.5, unit)


def test_ranges():
    assert between(15.0, 20.0) == "15-20"
    assert quantities(2e10, 4e10, "bytes_per_s") == "20 GB/s-40 GB/s"
    assert quantities(1.0, 1.0, "s") == ""
    assert quantities(0.8, 1.0, "") == "0.8-1"


def test_columns_line_up():
    lines = columns(["tier", "kWh"], [["nas", "1,830"], ["a-long-name", "12"]])
    assert {len(line) for line in lines} == {len("a-long-name  1,830")}


@pytest.mark.parametrize("widest", [40, 60, 80])
def test_columns_keep_to_their_width(widest):
    rows = [["x" * 200, *["1,234"] * 4], ["y", *["-"] * 4]]
    assert all(
        len(line) <= widest for line in columns(["name", "a", "b", "c", "d"], rows, widest=widest)
    )


def test_markdown_escapes():
    lines = markdown(["a|b", "c"], [["1\n2", "\\|"]])
    assert len(lines) == 3
    assert lines[0] == "| a&#124;b | c |"


def test_every_line_has_words_of_its_own():
    assert len({line_label(name) for name in KINDS}) == len(KINDS)
    assert line_label("second_network") == "network to storage, second tier"
