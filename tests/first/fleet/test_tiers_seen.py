"""Rates of tiers from saves whose law is known."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pytest

from ckptcost.first.fleet.figures import fleet_of, quantile
from ckptcost.first.fleet.grouping import NOT_SAID
from ckptcost.first.fleet.tiers import MOST, tiers_of


def _saves(
    made: Any, job: str, tier: str, sizes: Any, rate: float, fixed_s: float, **more: Any
) -> None:
    made.head(job, labels=f'{{"tier": "{tier}"}}' if tier else "{}").node(job)
    for at, size in enumerate(sizes):
        made.window(
            job, at_s=60.0 * at, bytes=float(size), stall_s=fixed_s + float(size) / rate, **more
        )


def test_a_law_is_found_again(written: Callable[[], Any]) -> None:
    made = written()
    _saves(made, "a", "nvme", np.linspace(1e9, 9e9, 30), 2e9, 0.5)
    (tier,) = tiers_of(made.part())
    assert (tier.tier, tier.job, tier.saves, tier.until_safe) == ("nvme", "", 30, 30)
    assert tier.fit.rate_bytes_per_s.value == pytest.approx(2e9)
    assert tier.fit.fixed_s.value == pytest.approx(0.5)
    rates = np.linspace(1e9, 9e9, 30) / (0.5 + np.linspace(1e9, 9e9, 30) / 2e9)
    seen = (tier.p5_bytes_per_s, tier.p50_bytes_per_s, tier.p95_bytes_per_s)
    assert seen == pytest.approx(tuple(np.quantile(rates, [0.05, 0.5, 0.95])))


def test_until_safe_where_somebody_says_when(written: Callable[[], Any]) -> None:
    made = written()
    _saves(made, "a", "", [1e9, 2e9, 4e9], 1e9, 0.0, drain_s=1.0)
    _saves(made, "b", "nvme", [1e9, 2e9, 4e9], 1e9, 0.0, drain_s=nan)
    nvme, unsaid = tiers_of(made.part())
    assert (unsaid.tier, unsaid.until_safe, nvme.until_safe) == (NOT_SAID, 3, 0)
    assert unsaid.fit.fixed_s.value == pytest.approx(1.0)
    assert nvme.fit.fixed_s.value == pytest.approx(0.0, abs=1e-9)


def test_each_job_of_a_tier_that_several_use(written: Callable[[], Any]) -> None:
    made = written()
    _saves(made, "a", "pfs", [1e9, 3e9, 5e9], 1e9, 0.0)
    _saves(made, "b", "pfs", [1e9, 3e9, 5e9], 4e9, 0.0)
    _saves(made, "c", "nvme", [1e9, 1e9], 4e9, 0.0)
    part = made.part()
    found = tiers_of(part, fleet_of(part, "job", None).cells)
    assert [(tier.tier, tier.job, tier.saves) for tier in found] == [
        ("nvme", "", 2),
        ("pfs", "", 6),
        ("pfs", "a", 3),
        ("pfs", "b", 3),
    ]
    assert [tier.fit.rate_bytes_per_s.value for tier in found[2:]] == pytest.approx([1e9, 4e9])
    assert found[0].fit.why == "ONE_SIZE"


def test_what_tells_nothing_is_left_out(written: Callable[[], Any]) -> None:
    made = written().head("a", labels='{"tier": "x"}').node("a", windows=6)
    made.window("a", failed=True).window("a", load=True).window("a", bytes=nan).window(
        "a", bytes=0.0
    )
    made.window("a", stall_s=nan).window("a", stall_s=0.0, drain_s=0.0)
    (tier,) = tiers_of(made.part())
    assert (tier.saves, tier.fit.why) == (0, "NO_ROUNDS")
    assert np.isnan(tier.p50_bytes_per_s)


def test_of_very_many_saves_some_are_fitted_from_first_to_last(written: Callable[[], Any]) -> None:
    """The rate is lower in the second half; a fit of the first two thousand would not know."""
    made = written()
    sizes = np.tile([1e9, 2e9, 4e9], MOST)
    _saves(made, "a", "x", sizes[: 2 * MOST], 4e9, 0.0)
    for at, size in enumerate(sizes[2 * MOST :]):
        made.window("a", at_s=3600 * 48 + at, bytes=size, stall_s=size / 1e9)
    (tier,) = tiers_of(made.part())
    assert tier.saves == 3 * MOST
    assert tier.fit.n == MOST
    assert 1 / tier.fit.rate_bytes_per_s.value == pytest.approx(
        1 / 4e9 * 2 / 3 + 1 / 1e9 / 3, rel=0.05
    )


def test_a_quantile_is_numpys() -> None:
    values = np.sort(np.random.default_rng(1).lognormal(size=37))
    for share in (0.0, 0.05, 0.5, 0.95, 1.0):
        assert quantile(values, share) == pytest.approx(np.quantile(values, share))
