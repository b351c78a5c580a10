"""How many digits of a range hold: p5 and p95 over the default draws against those over a quarter
of a million."""

from __future__ import annotations

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.draws import SAMPLES, drawn, p5_p95
from ckptcost.first.core.measures import MEASURES
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.jobs.model import one_of, planned_scenario
from ckptcost.first.layers import layers_for
from ckptcost.first.present.amounts import drawn_between
from ckptcost.first.scenario import ranges_of, ties_of

CATALOG = Catalog()
PRESETS = ("gpt4-scale-2tb", "llama31-405b-16k", "micron-100k", "opt-175b", "bloom-176b")


def ends(resolved, world, samples, seed, name):
    with np.errstate(all="ignore"):
        outcome = evaluate(drawn(world, ranges_of(resolved), ties_of(resolved), samples, seed))
    values = np.broadcast_to(np.asarray(MEASURES[name].of(outcome), dtype=float), (samples,))
    return np.quantile(values, (0.05, 0.95))


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("preset", PRESETS)
def test_two_digits_of_a_range_hold(preset, mode):
    """Within 5 %: half a unit of the second digit at its worst, 1.0 against 1.1."""
    resolved = one_of(CATALOG, layers_for(CATALOG, preset, None, (f"policy.mode={mode}",)))
    world = planned_scenario(resolved.scenario, evaluate(resolved.scenario))
    for name in ("kwh", "usd"):
        few = ends(resolved, world, SAMPLES, 1, name)
        many = ends(resolved, world, 250_000, 7, name)
        assert few == pytest.approx(many, rel=0.05)


def test_the_ends_are_those_of_sorted_draws():
    values = np.random.default_rng(3).normal(10.0, 2.0, 1001)
    assert p5_p95(values, 10.0) == pytest.approx(tuple(np.quantile(values, (0.05, 0.95))))
    holes = np.concatenate([values, [np.nan] * 50])
    assert p5_p95(holes, 10.0) == pytest.approx(tuple(np.quantile(values, (0.05, 0.95))))
    assert p5_p95(np.full(3, np.nan), 1.0) == (1.0, 1.0)
    assert p5_p95(np.array([2.0]), 1.0) == (1.0, 2.0)


def test_a_range_shows_no_more_digits_than_hold():
    assert drawn_between(52_713.0, 112_140.0) == "53,000-110,000"
    assert drawn_between(0.9652, 0.9691) == "0.965-0.969"
