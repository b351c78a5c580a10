"""Many windows of a counter in one pass are the plain windows one by one: with gaps, resets,
missing answers, and counters that are late."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from plain_windows import plain_energy
from test_ticks import answers, instants, polls

from ckptcost.first.core import counters, edges
from ckptcost.first.core.channels import Series
from ckptcost.first.core.counters import CountedAmount, Counter, unwrap_counter

WATTS = {"watts": 60.0, "steps": 900.0}


def metered(seed: int, every_s: float, tick_s: float, shape: str) -> Series:
    """A counter of 60 s whose power steps now and then, polled at that distance."""
    rng = np.random.default_rng(seed)
    at = np.sort(instants(rng, 62.0, tick_s * rng.uniform(0.97, 1.03), 0.02 * tick_s))
    power = np.where(np.floor(at / 1.7) % 2 == 0, WATTS[shape], 60.0)
    joules = np.cumsum(rng.normal(power, 2.0) * tick_s)
    t_s, took_s = polls(rng, 0.5, 60.0, every_s)
    return Series(t_s, answers(rng, at, joules, t_s, took_s), took_s)


def hurt(seen: Series, seed: int, how: str) -> Series:
    """With what happens to counters."""
    rng, value = np.random.default_rng(seed), seen.value.copy()
    between = (seen.t_s > 20.0) & (seen.t_s < 28.0)
    if how == "reset":
        for at_s in (14.0, 21.0, 21.6, 44.0):
            value[seen.t_s > at_s] -= 0.97 * value[np.searchsorted(seen.t_s, at_s)]
    elif how == "missing":
        value[rng.random(len(value)) < 0.3] = np.nan
        value[between] = np.nan
    elif how == "stands":
        value[between] = value[between][0]
    elif how == "stuck":
        value = np.where(seen.t_s >= 20.0, value - value[between][-1] + value[between][0], value)
        value[between] = value[between][0]
    elif how == "seconds":  # polled quickly now and then, else once a second
        keep = (np.floor(seen.t_s) % 10 < 3) | (np.diff(np.floor(seen.t_s), prepend=-1) > 0)
        return Series(seen.t_s[keep], value[keep], seen.took_s[keep])
    return seen._replace(value=value)


def windows(seed: int) -> list[tuple[float, float]]:
    """Of all lengths, and next to each other; some reach beyond the readings."""
    rng = np.random.default_rng(seed)
    begins = rng.uniform(-1.0, 61.0, 60)
    lengths = 10.0 ** rng.uniform(-3.0, 1.5, 60)
    lengths[::20] = 0.0
    found = list(zip(begins.tolist(), (begins + lengths).tolist(), strict=True))
    cuts = np.sort(rng.uniform(2.0, 58.0, 12)).tolist()
    return [*found, *itertools.pairwise(cuts), (20.5, 26.0), (-3.0, -1.0)]


def same(mine: CountedAmount, plain: CountedAmount) -> None:
    assert (mine.ticks, mine.gaps, mine.short, mine.reasons) == (
        plain.ticks,
        plain.gaps,
        plain.short,
        plain.reasons,
    )
    scale = max((abs(part) for part in plain[:3] if math.isfinite(part)), default=0.0)
    for part in ("value", "low", "high", "coverage", "resolved_s"):
        # one way of taking a root of squares differs from another in the last bit
        assert getattr(mine, part) == pytest.approx(
            getattr(plain, part), rel=1e-11, abs=1e-11 * max(scale, 1.0), nan_ok=True
        ), part


@pytest.mark.parametrize("how", ["whole", "reset", "missing", "stands", "stuck", "seconds"])
@pytest.mark.parametrize("lag_s", [0.0, 0.1])
@pytest.mark.parametrize(
    ("every_s", "tick_s"), [(0.02, 0.1), (0.01, 0.015), (0.2, 0.1), (0.1, 1.0)]
)
def test_many_windows_are_the_plain_ones(how, lag_s, every_s, tick_s):
    seen = hurt(metered(7, every_s, tick_s, "steps"), 8, how)
    counter = unwrap_counter(seen, tick_s=None, resolution=1e-3, most_per_s=5000.0, lag_s=lag_s)
    asked = windows(9)
    at_once = counter.energies(*zip(*asked, strict=True))
    assert any(amount.value == amount.value for amount in at_once)
    for mine, (begin_s, end_s) in zip(at_once, asked, strict=True):
        same(mine, plain_energy(counter, begin_s, end_s))


@pytest.mark.parametrize("how", ["whole", "reset", "seconds"])
def test_alone_or_among_others_is_the_same_to_the_last_bit(how):
    seen = hurt(metered(3, 0.02, 0.1, "steps"), 4, how)
    asked = windows(5)
    counter = unwrap_counter(seen, resolution=1e-3, most_per_s=5000.0, lag_s=0.1)
    at_once = counter.energies(*zip(*asked, strict=True))
    for mine, window in zip(at_once, asked, strict=True):
        alone: Counter = unwrap_counter(seen, resolution=1e-3, most_per_s=5000.0, lag_s=0.1)
        assert repr(mine) == repr(alone.energy(*window))


def test_more_windows_than_one_pass_takes():
    counter = unwrap_counter(metered(1, 0.1, 0.1, "watts"))
    begins = np.linspace(2.0, 50.0, counters.AT_ONCE + 7).tolist()
    ends = [begin_s + 1.0 for begin_s in begins]
    found = counter.energies(begins, ends)
    assert len(found) == len(begins)
    assert found[-1] == counter.energy(begins[-1], ends[-1])


def test_no_window_is_nothing_and_a_window_backwards_is_named():
    counter = unwrap_counter(metered(1, 0.1, 0.1, "watts"))
    assert counter.energies([], []) == []
    with pytest.raises(ValueError, match=r"no window from 3\.0 to 2\.0"):
        counter.energies([1.0, 3.0], [2.0, 2.0])


def test_a_counter_that_never_answered():
    nothing = unwrap_counter(Series(np.array([1.0]), np.array([np.nan]), np.array([0.0])))
    (found,) = nothing.energies([1.0], [2.0])
    assert math.isnan(found.value)
    assert found.reasons == (edges.EMPTY,)
