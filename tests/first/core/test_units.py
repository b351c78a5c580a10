"""Text with units: what is read, what is refused, and how it is said."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.core.units import (
    DAY_S,
    HOUR_S,
    KWH_J,
    MONTH_S,
    UNITS,
    YEAR_S,
    parse,
    suffix_of,
    to_hours,
    to_kwh,
)
from ckptcost.first.errors import CkptcostError, UnitError

quick = settings(max_examples=100, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("30 GB/s", "bytes_per_s", 30e9),
        ("30GB/s", "bytes_per_s", 30e9),
        ("30 GB per s", "bytes_per_s", 30e9),
        ("30 GB/sec", "bytes_per_s", 30e9),
        ("30 GiB/s", "bytes_per_s", 30 * 2**30),
        ("400 Gb/s", "bytes_per_s", 50e9),
        ("400 Gbit/s", "bytes_per_s", 50e9),
        ("60 MB/min", "bytes_per_s", 1e6),
        ("912 GiB", "bytes", 912 * 2**30),
        ("2 TB", "bytes", 2e12),
        ("1.5 TiB", "bytes", 1.5 * 2**40),
        ("1 PB", "bytes", 1e15),
        ("3 kB", "bytes", 3e3),
        ("3 KiB", "bytes", 3072),
        ("7 bytes", "bytes", 7),
        ("1e3 MB", "bytes", 1e9),
        ("1_000 MB", "bytes", 1e9),
        (" +5 MB ", "bytes", 5e6),
        ("-5 MB", "bytes", -5e6),
        (".5 MB", "bytes", 5e5),
        ("14 B", "bytes_per_param", 14),
        ("14 B/param", "bytes_per_param", 14),
        ("14 bytes/parameter", "bytes_per_param", 14),
        ("30 min", "s", 1800),
        ("2 h", "s", 7200),
        ("2 hours", "s", 7200),
        ("1 day", "s", 86400),
        ("54 d", "s", 54 * 86400),
        ("1 week", "s", 604800),
        ("1 month", "s", 730 * 3600),
        ("1 year", "s", 8760 * 3600),
        ("250 ms", "s", 0.25),
        ("10 us", "s", 1e-5),
        ("700 W", "w", 700),
        ("10.2 kW", "w", 10_200),
        ("1.5 MW", "w", 1.5e6),
        ("3 kWh", "j", 10.8e6),
        ("2 MWh", "j", 7.2e9),
        ("5 J", "j", 5),
        ("139 J/GB", "j_per_byte", 139e-9),
        ("1 W s", "j", 1),
        ("$2.50/GPU-h", "usd_per_gpu_s", 2.5 / 3600),
        ("2.50 USD/GPU-h", "usd_per_gpu_s", 2.5 / 3600),
        ("0.023 USD/GB-month", "usd_per_byte_s", 0.023 / 1e9 / (730 * 3600)),
        ("0.005 USD/1000 requests", "usd_per_request", 5e-6),
        ("0.0032 USD/GiB", "usd_per_byte", 0.0032 / 2**30),
        ("0.09 USD/kWh", "usd_per_j", 0.09 / 3.6e6),
        ("9 cent/kWh", "usd_per_j", 0.09 / 3.6e6),
        ("$100", "usd", 100),
        ("12 USD/h", "usd_per_s", 12 / 3600),
        ("384 g/kWh", "kgco2e_per_j", 0.384 / 3.6e6),
        ("384 gCO2e/kWh", "kgco2e_per_j", 0.384 / 3.6e6),
        ("0.384 kgCO₂/kWh", "kgco2e_per_j", 0.384 / 3.6e6),
        ("33 g/GPU-h", "kgco2e_per_gpu_s", 0.033 / 3600),
        ("2 tCO2e", "kgco2e", 2000),
        ("3.8 /1000 node-days", "failures_per_node_s", 3.8 / 1000 / 86400),
        ("3.8 failures/1000 node-days", "failures_per_node_s", 3.8 / 1000 / 86400),
        ("0.1 /day", "failures_per_s", 0.1 / 86400),
        ("125 MB/s/TiB", "per_s", 125e6 / 2**40),
        ("1 /day", "per_s", 1 / 86400),
        ("5000 files/s", "files_per_s", 5000),
        ("100 GPU-h", "gpu_s", 360_000),
        ("12 %", "", 0.12),
        ("12%", "", 0.12),
        ("405B", "", 405e9),
        ("1.2 T", "", 1.2e12),
        ("70 billion", "", 70e9),
        ("16k", "", 16_000),
        ("7", "", 7),
        (7, "", 7),
        (0.5, "", 0.5),
    ],
)
def test_read(text, unit, value):
    assert parse(text, unit) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("unit", "example"), [(unit, example) for unit, (_, example) in UNITS.items()]
)
def test_every_example_can_be_copied(unit, example):
    assert math.isfinite(parse(example, unit))


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("30 GB", "bytes_per_s", "'30 GB' is bytes, expected bytes_per_s"),
        ("30 GB/s", "bytes", "is bytes_per_s, expected bytes"),
        ("30", "bytes", "has no unit"),
        (30, "bytes", "has no unit"),
        (30.0, "s", "has no unit"),
        ("3 kWh", "w", "is j, expected w"),
        ("3 kW", "j", "is w, expected j"),
        ("3 kW/h", "w", "expected w"),
        ("2 USD/h", "usd_per_gpu_s", "is usd_per_s, expected usd_per_gpu_s"),
        ("3 nodes", "", "expected a plain number"),
        ("1,000 GB", "bytes", "comma"),
        ("1,5 GB", "bytes", "comma"),
        ("fast", "bytes", "does not start with a number"),
        ("", "bytes", "does not start with a number"),
        ("GB", "bytes", "does not start with a number"),
        ("30 furlongs", "s", "unknown unit 'furlongs'"),
        ("30 gb/s", "bytes_per_s", "unknown unit 'gb'"),
        ("30 GB/", "bytes_per_s", "cannot read the unit"),
        ("30 s^2", "s", "cannot read the unit"),
        ("30 GB?", "bytes", "cannot read the unit"),
        ("nan GB", "bytes", "not a finite number"),
        ("inf GB", "bytes", "not a finite number"),
        ("-inf GB", "bytes", "not a finite number"),
        ("1e400 GB", "bytes", "not a finite number"),
        ("1e305 EB", "bytes", "not a finite number"),
        ("1e305 T", "", "not a finite number"),
        (math.nan, "", "not a finite number"),
        (math.inf, "", "not a finite number"),
        (10**400, "", "not a finite number"),
        (True, "", "got bool"),
        (None, "bytes", "got NoneType"),
        ([3], "bytes", "got list"),
        ("1" * 201, "", "more than 200 characters"),
        ("5 GB GB", "bytes", "bytes^2"),
        ("$5 USD", "usd", "unknown unit"),
        ("$5", "", "is usd, expected a plain number"),
        ("$5 M", "", "unknown unit"),
    ],
)
def test_refuse(text, unit, said):
    with pytest.raises(UnitError) as caught:
        parse(text, unit)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["30", "30 GB", "1,000 GB/s", "fast", "nan GB/s", "30 gb/s"])
def test_a_refusal_shows_what_to_write(text):
    with pytest.raises(UnitError) as caught:
        parse(text, "bytes_per_s")
    assert "30 GB/s" in str(caught.value) or "finite" in str(caught.value)


def test_bytes_are_not_bibytes_are_not_bits():
    assert parse("1 GiB", "bytes") / parse("1 GB", "bytes") == 1.073741824
    assert parse("8 Gb", "bytes") == parse("1 GB", "bytes")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("1 000 GB", "bytes"),
        ("10 000 h", "s"),
        ("2 500 W", "w"),
        ("3 3 GB", "bytes"),
        ("1 000", ""),
    ],
)
def test_a_space_is_not_a_thousands_separator(text, unit):
    """A second number before the unit is refused, not multiplied: "10 000 h" must never be 0 s."""
    with pytest.raises(UnitError):
        parse(text, unit)


@pytest.mark.parametrize("text", ["1 GB/0 s", "1 GB/0s", "1 GB/1e999 s"])
def test_a_zero_in_the_unit_is_a_unit_error(text):
    with pytest.raises(CkptcostError):
        parse(text, "bytes_per_s")


def test_an_integer_too_long_to_print_is_a_unit_error():
    for unit in ("", "bytes"):
        with pytest.raises(CkptcostError):
            parse(10**5000, unit)


@pytest.mark.parametrize("text", ["5 GB*", "5 GB-", "30 GB//s", "5 ·GB", "*5 GB"])
def test_a_stray_sign_is_refused(text):
    with pytest.raises(UnitError):
        parse(text, "bytes" if "s" not in text else "bytes_per_s")


WRITTEN = [
    ("GB/s", "bytes_per_s", 1e9),
    ("MiB/s", "bytes_per_s", 2.0**20),
    ("TiB", "bytes", 2.0**40),
    ("GB", "bytes", 1e9),
    ("Gb", "bytes", 1.25e8),
    ("B", "bytes", 1.0),
    ("h", "s", 3600.0),
    ("ms", "s", 1e-3),
    ("min", "s", 60.0),
    ("W", "w", 1.0),
    ("kW", "w", 1e3),
    ("kWh", "j", 3.6e6),
    ("USD", "usd", 1.0),
    ("GPU-h", "gpu_s", 3600.0),
    ("kgCO2e", "kgco2e", 1.0),
    ("J/GB", "j_per_byte", 1e-9),
    ("files/s", "files_per_s", 1.0),
    ("%", "", 0.01),
    ("", "", 1.0),
]


@quick
@given(
    x=st.floats(-1e200, 1e200, allow_subnormal=False),
    which=st.sampled_from(WRITTEN),
    space=st.sampled_from(["", " ", "  "]),
)
def test_round_trip(x, which, space):
    word, unit, factor = which
    assert parse(f"{x}{space}{word}", unit) == pytest.approx(x * factor, rel=1e-15)


NEARLY = r"\A[0-9][0-9 .,e/*-]{0,6} ?[kMGTi0 ]{0,2}[BbWsh%$/ -]{0,4}[0-9]{0,2}[sh]?\Z"


@settings(quick, max_examples=200)
@given(st.text(max_size=40) | st.from_regex(NEARLY), st.sampled_from(list(UNITS)))
def test_any_text_gives_a_number_or_our_error(text, unit):
    try:
        value = parse(text, unit)
    except CkptcostError:
        return
    assert math.isfinite(value)


def test_suffixes():
    told = {
        "write_bytes_per_s": "bytes_per_s",
        "size_bytes": "bytes",
        "bytes_per_param": "bytes_per_param",
        "gpu_stall_w": "w",
        "energy_j": "j",
        "write_j_per_byte": "j_per_byte",
        "usd_per_gpu_s": "usd_per_gpu_s",
        "usd_per_byte_s": "usd_per_byte_s",
        "usd_per_s": "usd_per_s",
        "embodied_kgco2e_per_gpu_s": "kgco2e_per_gpu_s",
        "market_kgco2e_per_j": "kgco2e_per_j",
        "failures_per_node_s": "failures_per_node_s",
        "failures_per_s": "failures_per_s",
        "drive_writes_per_s": "per_s",
        "files_per_s": "files_per_s",
        "work_s": "s",
        "gpu_s": "gpu_s",
        "gpus": "",
        "gpus_per_node": "",
        "slowdown_fraction": "",
        "readers_per_byte": "",
        "files": "",
        "saves": "",
        "pue": "",
    }
    assert {name: suffix_of(name) for name in told} == told


def test_constants():
    assert (HOUR_S, DAY_S, MONTH_S, YEAR_S, KWH_J) == (
        3600,
        86_400,
        2_628_000,
        31_536_000,
        3_600_000,
    )
    assert to_kwh(7.2e6) == 2.0
    assert to_hours(5400.0) == 1.5
