"""The uninterrupted time line against a list of its pieces, and a scenario's rhythm against the
closed form's cycle."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from plain_walk import Plain, pieces_of
from sample_scenarios import ASYNC, BASE, TWO_TIERS, TWO_TIERS_ASYNC

from ckptcost.first.core.outcome import evaluate, plan_of, states_at
from ckptcost.first.core.rhythm import Rhythm, end_of, place, rhythm_of
from ckptcost.first.core.simulate import third_of


def random_rhythm(seed: int) -> tuple[Rhythm, Plain]:
    rng = random.Random(seed)
    tiers = rng.choice([1, 2, 3])
    every, third_every = (
        (rng.randrange(1, 5) if tiers > 1 else 0),
        (rng.randrange(1, 4) if tiers > 2 else 0),
    )
    kept, drag, stall = rng.uniform(10, 90), rng.choice([0.0, 3.0]), rng.uniform(0, 20)
    second, third = (
        (rng.uniform(0, 30) if tiers > 1 else 0.0),
        (rng.uniform(0, 50) if tiers > 2 else 0.0),
    )
    work = kept * rng.choice([rng.randrange(1, 40), rng.uniform(0.1, 40)])
    plain = Plain(
        work, kept, drag, stall, every, second, third_every, third, (0.0,) * tiers, (), (), ()
    )
    return Rhythm(kept, drag, stall, 0.0, every, second, third_every, third, (0.0,) * tiers), plain


@pytest.mark.parametrize("seed", range(60))
def test_places_of_the_time_line(seed):
    rhythm, plain = random_rhythm(seed)
    rng = random.Random(seed + 1000)
    whole = plain._replace(work=plain.kept * 60)
    at_s = np.array(
        sorted(
            rng.uniform(0, sum(piece.length for piece in pieces_of(whole)) * 0.99)
            for _ in range(50)
        )
    )
    here = place(rhythm, at_s)
    for i, at in enumerate(at_s):
        left, trained, stalled, saves, ends = float(at), 0.0, [0.0] * 3, [0] * 3, [0.0] * 3
        for piece in pieces_of(whole):
            spent = min(left, piece.length)
            left -= spent
            if piece.tier is None:
                trained += spent
            else:
                stalled[piece.tier] += spent
                if left > 0:
                    saves[piece.tier] += 1
                    ends[: piece.tier + 1] = [at - left] * (piece.tier + 1)
            if left <= 0:
                break
        assert here.trained_s[i] == pytest.approx(trained, abs=1e-6)
        for tier in range(len(rhythm.lags_s)):
            assert here.saves[tier][i] == saves[tier]
            assert here.stalled_s[tier][i] == pytest.approx(stalled[tier], abs=1e-6)
            assert here.ends_s[tier][i] == pytest.approx(ends[tier], abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_the_end_of_the_time_line(seed):
    rhythm, plain = random_rhythm(seed)
    pieces = pieces_of(plain)
    end = end_of(rhythm, plain.work)
    assert float(end.at_s) == pytest.approx(sum(piece.length for piece in pieces))
    assert float(end.saves) == sum(piece.tier == 0 for piece in pieces)
    last = max(i for i, piece in enumerate(pieces) if piece.tier is None)
    assert float(end.knee_s) == pytest.approx(sum(piece.length for piece in pieces[: last + 1]))
    assert 0 <= float(end.missing_s) < rhythm.train_s


@pytest.mark.parametrize(
    "base", [BASE, ASYNC, TWO_TIERS, TWO_TIERS_ASYNC], ids=["sync", "async", "two", "two async"]
)
def test_a_rhythm_is_the_closed_forms_cycle(base):
    for interval_s in (5.0, 60.0, 1800.0):
        plan = plan_of(base)
        rhythm = rhythm_of(base, plan, None, interval_s)
        cycle, _, drag_s = states_at(base, plan, interval_s)
        mean_wait_s = rhythm.wait_s / rhythm.in_flight
        assert rhythm.kept_s == cycle.interval_s
        assert rhythm.stall_s + mean_wait_s == pytest.approx(cycle.stall_s)
        assert mean_wait_s == (0.0 if rhythm.every else pytest.approx(cycle.blocked_s))
        assert rhythm.drag_s == pytest.approx(drag_s)
        once = replace(base, policy=replace(base.policy, every=interval_s))
        stall_s = mean_wait_s + rhythm.stall_s
        stall_s = stall_s + (rhythm.second_stall_s / rhythm.every if rhythm.every else 0.0)
        assert stall_s == pytest.approx(evaluate(once).mean_stall_s)


def test_the_third_tier_has_its_place_in_the_rhythm():
    third = replace(BASE.tier, write_bytes_per_s=10e9)
    sync = replace(TWO_TIERS, third_tier=third, policy=replace(TWO_TIERS.policy, third_every=4.0))
    found = rhythm_of(sync, plan_of(sync), third_of(sync), 600.0)
    assert (found.every, found.third_every, found.lags_s) == (6, 4, (0.0, 0.0, 0.0))
    assert found.third_stall_s == third_of(sync).stall_s > found.second_stall_s > 0
    assert found.long_period_s == pytest.approx(
        4 * (6 * found.cycle_s + found.second_stall_s) + found.third_stall_s
    )
    late = replace(sync, policy=replace(sync.policy, mode="async"))
    found = rhythm_of(late, plan_of(late), third_of(late), 600.0)
    first, second, last = found.lags_s
    assert (first, second - first, last - second) == pytest.approx(
        (plan_of(late).saved.lag_s, plan_of(late).second.lag_s, third_of(late).lag_s)
    )
    assert (found.second_stall_s, found.third_stall_s) == (0.0, 0.0)


def test_a_third_tier_that_fills_slowly_holds_the_rhythm_up():
    """Each of its saves must have drained before its next one: 24 cycles for one drain, and each
    drain drags on 24 intervals' training."""
    third = replace(BASE.tier, write_bytes_per_s=0.05e9)
    policy = replace(
        TWO_TIERS_ASYNC.policy,
        second_every=6.0,
        third_every=4.0,
        in_flight=1.0,
        slowdown_fraction=0.02,
    )
    s = replace(TWO_TIERS_ASYNC, third_tier=third, policy=policy)
    plan, last = plan_of(s), third_of(s)
    assert last.lag_s / 24 > max(plan.saved.lag_s, plan.second.lag_s / 6) + 60.0
    found = rhythm_of(s, plan, last, 30.0)
    own_drag_s = 0.02 * plan.saved.lag_s
    assert found.kept_s + own_drag_s + found.stall_s == pytest.approx(last.lag_s / 24)
    assert found.wait_s == 0.0  # the mean wait of several tiers is in the stall
    assert found.stall_s > plan.saved.stall_s + 60.0
    assert found.drag_s == pytest.approx(
        0.02 * (plan.saved.lag_s + plan.second.lag_s / 6 + last.lag_s / 24)
    )
