"""The source documents' own arithmetic, done by hand: METHOD, section 8."""

from __future__ import annotations

from functools import cache

import pytest

from ckptcost.plan.claims import AGREES, CONTRADICTS, OPEN
from ckptcost.plan.sheets import Sheet, sheet_of
from ckptcost.scenario import catalog

HOUR, KWH = 3600.0, 3.6e6


@cache
def sheet(name: str) -> Sheet:
    return sheet_of(catalog.read_toml(catalog.file_of("claim", name)), name)


@pytest.mark.parametrize(
    ("name", "agree", "do_not", "open_"),
    [
        ("bloom-176b", 0, 2, 0),
        ("ddn-2024", 0, 0, 5),
        ("ddn-2025", 9, 2, 1),
        ("micron-2026", 8, 7, 7),
        ("mlperf-1t", 0, 1, 3),
        ("saves-2025", 4, 5, 1),
    ],
)
def test_verdicts_as_in_the_first_edition(name: str, agree: int, do_not: int, open_: int) -> None:
    words = [each.word for each in sheet(name).verdicts]
    assert [words.count(word) for word in (AGREES, CONTRADICTS, OPEN)] == [agree, do_not, open_]


@pytest.mark.parametrize(
    ("name", "claim", "what", "low", "high"),
    [
        # DDN 2025: times follow from bandwidth, energies do not follow from times
        ("ddn-2025", "nas", "time", 10_000, 10_000),
        ("ddn-2025", "nas", "power", 5.4e3, 7.2e3),
        ("ddn-2025", "exascaler", "power", 36e3, 144e3),
        ("ddn-2025", "nas", "total_energy", 1_500 * KWH, 2_000 * KWH),
        ("ddn-2025", "exascaler", "total_energy", 100 * KWH, 200 * KWH),
        ("ddn-2025", "nas", "stall_share", 0.4808, 0.7353),
        ("ddn-2025", "generic", "stall_share", 0.0847, 0.2174),
        ("ddn-2025", "gpt4", "bytes_per_param", 2, 4),
        # DDN 2024: 12 % shorter by 15 times faster saves
        ("ddn-2024", "project", "stall_share", 0.12857, 0.12857),
        ("ddn-2024", "trillion", "bytes_per_param", 15, 15),
        # Micron 2026
        ("micron-2026", "meta", "failures_per_day", 7.759, 7.759),
        ("micron-2026", "model", "mttf", 24 * 60, 28.8 * 60),
        ("micron-2026", "model", "saves_per_day", 2_160, 2_880),
        ("micron-2026", "model", "stall", 0.45, 0.54),
        ("micron-2026", "minute", "goodput", 0.938, 0.938),
        ("micron-2026", "minutes", "goodput", 0.806, 0.806),
        ("micron-2026", "gen4", "size", 449.2e9, 449.2e9),
        ("micron-2026", "gen4", "power", 11.04, 11.04),
        ("micron-2026", "gen5_60", "power", 12.14, 12.14),
        ("micron-2026", "trace", "write", 1.4309 * 2**30, 1.4309 * 2**30),
        ("micron-2026", "trace", "request_size", 124.5 * 2**10, 124.5 * 2**10),
        ("micron-2026", "trace", "latency", 28.38e-3, 28.38e-3),
        ("micron-2026", "trace", "drive_writes_per_day", 17.29, 17.29),
        # the logbook's own bytes, and MLPerf's 1T: 14 bytes a parameter, not 18
        ("bloom-176b", "weights", "size", 352.494e9, 352.494e9),
        ("bloom-176b", "full", "size", 2467.46e9, 2467.46e9),
        ("mlperf-1t", "rules", "bytes_per_param", 18, 18),
        ("mlperf-1t", "results", "bytes_per_param", 14.0, 14.0),
        ("saves-2025", "primus", "write", 124.46e6, 124.46e6),
        ("saves-2025", "stall_to_stall", "stall_share", 0.1445, 0.1445),
    ],
)
def test_what_follows_from_the_rest(
    name: str, claim: str, what: str, low: float, high: float
) -> None:
    """Whatever law gives it: all that give it agree with the oracle or are looser."""
    facts = [f for (q, _), f in sheet(name).claims[claim].facts.items() if q == what]
    assert any(tuple(f.printed) == pytest.approx((low, high), rel=1e-3) for f in facts), facts


@pytest.mark.parametrize(
    ("name", "what", "low", "high"),
    [
        ("ddn-2025", "energy saved", 0.867, 0.95),
        ("ddn-2025", "exascaler: interval for 1 %", 1.375 * HOUR, 2.75 * HOUR),
        ("micron-2026", "Gen5 7.68 TB, times faster", 1.696, 1.696),
        ("micron-2026", "Gen5 60 TB, times faster", 1.520, 1.520),
        ("micron-2026", "Gen5 7.68 TB, power cut", -0.223, -0.223),
        ("micron-2026", "Gen5 60 TB, power cut", -0.0993, -0.0993),
        ("micron-2026", "Gen5 7.68 TB, energy cut", 0.279, 0.279),
        ("micron-2026", "failures a day at that MTTF", 48, 96),
        ("micron-2026", "exponent of failures in GPUs", 1.027, 1.128),
        ("micron-2026", "write rate, 0.5 s is all", 33.13e12, 33.13e12),
        ("micron-2026", "write rate, until the next", 383.4e9, 479.3e9),
        ("mlperf-1t", "size of the 1T checkpoint", 16.564e12, 16.564e12),
        ("saves-2025", "recovery saved, from 15 min", 0.8667, 0.8667),
        ("saves-2025", "recovery before that 80 % would be", 600, 600),
    ],
)
def test_formulas_over_claims(name: str, what: str, low: float, high: float) -> None:
    found = {each.what: each.follows for each in sheet(name).verdicts + sheet(name).follows}
    fact = found[what]
    assert fact is not None
    assert tuple(fact.printed) == pytest.approx((low, high), rel=1e-3)


def test_the_1t_checkpoint_is_not_18_tb() -> None:
    """The results say 15,427 GiB, which is 16.6 TB."""
    [verdict] = [v for v in sheet("mlperf-1t").verdicts if v.what == "size of the 1T checkpoint"]
    assert verdict.word == CONTRADICTS
    assert verdict.factor == pytest.approx(18 / 16.564, rel=1e-3)
