"""Ticks from polls: against ticks that are known, a linear programme, and counters that have
none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from ckptcost.first.core import ticks
from ckptcost.first.core.channels import Series, series


def instants(rng, until_s, period_s=0.1, jitter_s=0.0, phase_s=None):
    """When a counter is renewed."""
    phase_s = rng.uniform(0.0, period_s) if phase_s is None else phase_s
    at = phase_s + period_s * np.arange(int(until_s / period_s))
    return at + (rng.uniform(-jitter_s, jitter_s, len(at)) if jitter_s else 0.0)


def polls(rng, since_s, until_s, every_s, jitter_s=0.3e-3, took_s=(2e-5, 1e-4)):
    """When it is asked, and how long the answer takes. `every_s` may be a function of the time."""
    at = [since_s]
    while at[-1] < until_s:
        pause_s = every_s(at[-1]) if callable(every_s) else every_s
        at.append(at[-1] + max(pause_s + rng.uniform(-jitter_s, jitter_s), 1e-4))
    return np.array(at), rng.uniform(*took_s, len(at))


def answers(rng, at_s, values, t_s, took_s):
    """What it says: the value of the last renewal before some instant of the call."""
    return values[
        np.searchsorted(at_s, t_s + took_s * rng.uniform(0.0, 1.0, len(t_s)), side="right") - 1
    ]


def numbered(at_s, t_s, took_s, rng, near_s=None, tick_s=None):
    """Ticks found behind a counter whose total is the number of its tick, and the ticks that they
    are."""
    total = answers(rng, at_s, np.arange(len(at_s), dtype=float), t_s, took_s)
    found = ticks.found(t_s, took_s, total, near_s=near_s, tick_s=tick_s)
    return found, at_s[found.total.astype(int)]


def share_inside(found, true_s, near_s, reach_s=1.5):
    near = np.abs(found.t_s - near_s) < reach_s
    inside = (found.low_s - 1e-9 <= true_s) & (true_s <= found.high_s + 1e-9)
    return (
        float(inside[near].mean()),
        float((found.high_s - found.low_s)[near].mean()),
        float(np.abs(found.t_s - true_s)[near].mean()),
    )


@pytest.mark.parametrize(
    ("every_ms", "period_s", "mean_ms"),
    [
        (10, 0.1, 2.0),
        (20, 0.1, 3.0),
        (50, 0.1, 12.0),
        (60, 0.1, 6.0),
        (70, 0.1, 6.0),
        (10, 0.02, 3.0),
        (10, 1.0, 8.0),
    ],
)
def test_many_polls_tell_more_than_one(every_ms, period_s, mean_ms):
    widths = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        at = instants(rng, 12.0, period_s * rng.uniform(0.97, 1.03))
        found, true = numbered(
            at, *polls(rng, 1.5, 11.0, every_ms / 1e3, jitter_s=1e-3), rng, near_s=6.0
        )
        assert found.kind == "lattice"
        inside, width, error = share_inside(found, true, 6.0)
        assert inside == 1.0
        assert error <= width / 2.0
        assert found.period_s == pytest.approx((at[-1] - at[0]) / (len(at) - 1), rel=4e-3)
        widths.append(width)
    assert np.mean(widths) < mean_ms / 1e3


def test_the_lattice_is_that_of_a_linear_programme():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        at = instants(rng, 4.0, 0.1)
        t_s, _ = polls(rng, 0.2, 3.8, 0.02)
        seen = np.searchsorted(at, t_s)
        moved = np.flatnonzero(np.diff(seen)) + 1
        low, high, number = t_s[moved - 1], t_s[moved], seen[moved] - seen[moved[0]]
        _, fit = ticks.lattices(low[None], high[None], low[None] < math.inf, np.array([2.0]))
        jitter_s = fit.jitter_s.item()
        assert jitter_s == pytest.approx(
            0.002 * fit.period_s.item(), rel=0.01
        )  # what is allowed in any case
        rows = np.concatenate(
            [
                np.column_stack([np.ones_like(low), number]),
                -np.column_stack([np.ones_like(low), number]),
            ]
        )
        for n in (0, int(number[-1]) // 2, int(number[-1]) + 3):
            ends = [
                linprog([s, s * n], rows, np.concatenate([high, -low]), bounds=[(None, None)] * 2)
                for s in (1.0, -1.0)
            ]
            exact = ends[0].fun, -ends[1].fun
            origin_s = fit.at(np.zeros((1, 1)))[1].item()
            shift = round(((low[0] + high[0]) / 2.0 - origin_s) / fit.period_s.item())
            first, _, last = (part.item() for part in fit.at(np.array([[float(n + shift)]])))
            assert first <= exact[0] + 1e-9
            assert last >= exact[1] - 1e-9
            assert last - first < 1.15 * (exact[1] - exact[0]) + 8.0 * jitter_s


@pytest.mark.parametrize("every_s", [0.01, 0.02])
def test_ticks_with_jitter_stay_in_their_intervals(every_s):
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        at = np.sort(instants(rng, 12.0, 0.1, jitter_s=5e-3))
        found, true = numbered(at, *polls(rng, 1.0, 11.0, every_s, jitter_s=2e-3), rng, near_s=6.0)
        assert found.kind == "lattice"
        assert 1e-3 < found.jitter_s < 0.01
        assert np.all(
            (found.high_s - found.low_s)[1:] <= every_s + 2.2e-3
        )  # never less known than by the poll alone
        shares.append(share_inside(found, true, 6.0)[0])
    assert np.mean(shares) > 0.93


def test_missed_and_late_ticks():
    rng = np.random.default_rng(5)
    at = instants(rng, 12.0, 0.1)
    at = np.delete(at, rng.choice(len(at), 8, replace=False))
    at[60] += 0.04
    found, true = numbered(at, *polls(rng, 1.0, 11.0, 0.015), rng, near_s=6.0)
    inside, width, _ = share_inside(found, true, 6.0, reach_s=4.0)
    assert found.kind == "lattice"
    assert inside == 1.0
    assert width < 4e-3
    late = int(np.argmin(np.abs(true - at[60])))
    assert (
        found.high_s[late] - found.low_s[late] > 0.01
    )  # the late one has its poll and nothing else


def test_a_period_that_drifts():
    rng = np.random.default_rng(1)
    at = np.cumsum(np.linspace(0.1, 0.1006, 1200))
    t_s, took_s = polls(rng, 1.0, 120.0, 0.02)
    total = answers(rng, at, np.arange(len(at), dtype=float), t_s, took_s)
    for near_s in (20.0, 60.0, 100.0):
        part = slice(*np.searchsorted(t_s, [near_s - 4.0, near_s + 4.0]))
        found = ticks.found(t_s[part], took_s[part], total[part], near_s=near_s)
        inside, _, error = share_inside(found, at[found.total.astype(int)], near_s)
        assert (found.kind, inside) == ("lattice", 1.0)
        assert error < 3e-3
        assert found.period_s == pytest.approx(np.diff(at)[np.searchsorted(at, near_s)], rel=2e-3)


@pytest.mark.parametrize("rest_s", [0.1, 0.2, 0.5])
def test_quick_polls_tell_when_the_slow_ones_saw_their_tick(rest_s):
    widths = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        at = instants(rng, 14.0, 0.1 * rng.uniform(0.98, 1.02))
        t_s, took_s = polls(
            rng, 1.0, 12.0, lambda t: 0.02 if 5.0 <= t <= 7.0 else rest_s, jitter_s=2e-3
        )
        found, true = numbered(at, t_s, took_s, rng, near_s=6.0)
        slow = (found.t_s > 4.0) & (found.t_s < 5.0)
        assert found.kind == "lattice"
        assert slow.sum() >= 1
        assert np.all((found.low_s <= true + 1e-9) & (true <= found.high_s + 1e-9))
        widths.append(np.median((found.high_s - found.low_s)[slow]))
    assert np.median(widths) < 0.04  # of 100 to 500 ms


def test_ticks_without_a_rhythm_keep_their_polls():
    rng = np.random.default_rng(2)
    at = np.cumsum(rng.uniform(0.03, 0.3, 60))
    t_s, took_s = polls(rng, 0.5, 9.0, 0.01)
    found, true = numbered(at, t_s, took_s, rng)
    assert found.kind == "irregular"
    assert math.isnan(found.jitter_s)
    k = np.searchsorted(t_s, found.high_s[1:] - 1e-4)
    assert np.all(np.isin(found.low_s[1:], t_s))
    assert np.all(k < len(t_s))
    assert np.all((found.low_s[1:] <= true[1:]) & (true[1:] <= found.high_s[1:]))


def test_a_counter_that_moves_at_every_poll():
    rng = np.random.default_rng(3)
    at = instants(rng, 6.0, 1e-3)
    t_s, took_s = polls(rng, 0.5, 5.5, lambda t: 0.02 if 2.0 < t < 3.0 else 0.2)
    for tick_s, widest in ((None, 0.04), (1e-3, 2e-3)):
        found, true = numbered(at, t_s, took_s, rng, tick_s=tick_s)
        assert found.kind == "every-poll"
        assert np.all((found.low_s <= true) & (true <= found.high_s))
        assert np.all(found.high_s - found.low_s < widest)  # of the 200 ms at rest, too
    live = ticks.found(t_s, took_s, t_s, tick_s=0.0)
    assert (live.kind, len(live.t_s)) == ("live", len(t_s))
    assert np.array_equal(live.low_s, t_s)


def test_a_known_period_serves_where_few_ticks_are_seen():
    rng = np.random.default_rng(4)
    at = instants(rng, 2.0, 0.1, phase_s=0.03)
    t_s, took_s = polls(rng, 0.5, 0.95, 0.02)
    assert numbered(at, t_s, took_s, rng)[0].kind == "irregular"
    found, true = numbered(at, t_s, took_s, rng, tick_s=0.1)
    assert found.kind == "lattice"
    assert np.all((found.low_s <= true + 1e-3) & (true <= found.high_s + 1e-3))


def test_too_little_to_say_anything():
    none = np.zeros(0)
    assert len(ticks.found(none, none, none).t_s) == 0
    still = ticks.found(np.arange(5.0), np.zeros(5), np.full(5, 7.0))
    assert (still.kind, len(still.t_s)) == ("irregular", 1)
    assert math.isnan(still.period_s)
    rows, _ = ticks.lattices(none[None], none[None], none[None] < 0.0, np.zeros(1))
    assert len(rows) == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1e-4, 0.5), st.floats(0.0, 20.0), st.floats(0.0, 0.005)),
        min_size=2,
        max_size=80,
    )
)
def test_whatever_is_polled_ticks_are_in_order_and_in_their_polls(steps):
    pause, more, took = (np.array(column) for column in zip(*steps, strict=True))
    t_s, total = np.cumsum(pause), np.cumsum(np.where(more < 10.0, 0.0, more))
    found = ticks.found(t_s, took, total)
    assert np.all(found.low_s <= found.t_s)
    assert np.all(found.t_s <= found.high_s)
    seen = np.searchsorted(total, found.total)
    assert np.all(found.high_s <= (t_s + took)[seen] + 1e-12)
    assert np.all(found.low_s[1:] >= t_s[np.maximum(seen - 1, 0)][1:] - 1e-12)


def test_tick_of_says_what_the_ticks_are():
    rng = np.random.default_rng(6)
    at = instants(rng, 6.0, 0.0973, jitter_s=1e-3)
    joules = (
        np.floor(np.cumsum(rng.uniform(20.0, 60.0, len(at))) / 0.001) * 0.001 % 300.0
    )  # it wraps, too
    t_s, took_s = polls(rng, 0.5, 5.0, 0.01)
    value = answers(rng, at, joules, t_s, took_s)
    value[40:45] = np.nan
    tick = ticks.tick_of(Series(t_s, value, took_s))
    assert tick.kind == "lattice"
    assert tick.period_s == pytest.approx(0.0973, rel=3e-3)
    assert tick.jitter_s < 3e-3
    assert tick.resolution == pytest.approx(0.001)
    assert tick.polled_s == pytest.approx(0.01, rel=0.05)
    assert tick.moves == pytest.approx(46, abs=2)
    still = ticks.tick_of(series([0.0, 1.0], [5.0, 5.0]))
    assert still.moves == 0
    assert math.isnan(still.period_s)
    assert ticks.tick_of(series([0.0, 1.0, 2.0], [0.0, 4e15, 4e15 + 512])).resolution == 512.0


def test_noise_of_leaves_slopes_and_steps_out():
    rng = np.random.default_rng(7)
    at = np.arange(0.0, 60.0, 0.1)
    power = np.round(70.0 + at + np.where(at > 30.0, 300.0, 0.0) + rng.normal(0.0, 2.0, len(at)), 3)
    polled = np.arange(0.0, 59.9, 0.02)
    noise = ticks.noise_of(series(polled, power[np.searchsorted(at, polled, side="right") - 1]))
    assert noise.deviation == pytest.approx(2.0, rel=0.15)
    assert noise.period_s == pytest.approx(0.1, rel=0.02)
    assert noise.resolution == pytest.approx(0.001)
    assert ticks.noise_of(series([0.0, 1.0], [5.0, 5.0])).deviation == 0.0
    assert math.isnan(ticks.noise_of(series([0.0], [float("nan")])).deviation)
