"""No order of totals that lack different lines, and no order surer than the ranges leave it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.draws import SAMPLES, drawn
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.regret import cost_of
from ckptcost.first.jobs.compare import missing_keys, rank_runs, undecided_keys
from ckptcost.first.jobs.model import one_of
from ckptcost.first.jobs.optimize import optimize
from ckptcost.first.layers import layers_for
from ckptcost.first.report.studies.optimize import study_of
from ckptcost.first.scenario import Resolved, ranges_of, ties_of

CATALOG = Catalog()


def resolved(*settings: str, tier: str | None = None) -> Resolved:
    return one_of(CATALOG, layers_for(CATALOG, "llama31-405b-16k", None, settings), tier)


def with_tier_fields(found: Resolved, **fields: float) -> Resolved:
    s = found.scenario
    return found._replace(scenario=replace(s, tier=replace(s.tier, **fields)))


def test_a_line_that_one_lacks_decides_and_is_named():
    whole = resolved()
    for field, key, objectives in (
        ("usd_per_byte_s", "tier.storage_price", {"usd"}),
        ("write_j_per_byte", "tier.write_energy", {"energy", "carbon"}),
        ("network_j_per_byte", "tier.network_energy", {"energy", "carbon"}),
    ):
        bare = with_tier_fields(whole, **{field: float("nan")})
        outcomes = [evaluate(each.scenario) for each in (whole, bare)]
        for objective in ("time", "energy", "usd", "carbon"):
            keys = undecided_keys(outcomes, objective)
            assert (key in keys) == (objective in objectives), (field, objective)
            assert undecided_keys(outcomes[1:] * 2, objective) == ()
    assert missing_keys([], "cost_usd") == ()


def test_the_share_is_that_of_the_paired_draws():
    """The same draws for what both share, written out; only the write rate differs, so the faster
    tier wins in each."""
    slow, fast = resolved("tier.write=20 GB/s"), resolved("tier.write=30 GB/s")
    runs = [(each, evaluate(each.scenario)) for each in (slow, fast)]
    order = rank_runs(runs, "usd")
    assert order.at == (1, 0)
    assert np.isnan(order.cheaper[1])
    assert order.cheaper[0] == 1.0


def test_a_tie_in_the_middle_is_won_in_half_of_the_draws():
    """Two tiers alike but for a price each, drawn apart: neither is cheaper in more than about half
    of the draws."""
    one = resolved("policy.keep_last=100", tier="flash-shared")
    other = resolved("policy.keep_last=100", "tier.storage_price=0.11 USD/GB-month")
    runs = [(each, evaluate(each.scenario)) for each in (one, other)]
    order = rank_runs(runs, "usd")
    assert 0.3 < order.cheaper[order.at[1]] < 0.7


def test_tiers_that_nothing_tells_apart_have_no_order():
    """One rate for all and no figures of their own: that the first named is less in 0 % of the
    draws says nothing."""
    layers = layers_for(CATALOG, "gpt4-scale-2tb", None, ("tier.write=2 GB/s",))
    found = optimize(CATALOG, layers, ("nas-hdd", "generic-pfs"))
    assert found.order is not None
    assert found.order.alike == (1,)
    assert np.isnan(found.order.cheaper).all()
    said = " ".join(study_of(found).findings)
    assert (
        "nothing tells nas-hdd, sync from generic-pfs, sync: the same wall time in every draw"
        in said
    )
    assert "not sure" not in said


def test_one_run_is_the_first_of_its_order():
    found = resolved()
    assert rank_runs([(found, evaluate(found.scenario))], "usd").at == (0,)


def test_the_fsx_tier_is_no_more_over_a_tier_without_a_price():
    """A capacity that is paid for against a tier that nobody prices: both have the line, and the
    order its share."""
    layers = layers_for(
        CATALOG, "llama31-405b-16k", None, ("tier.capacity=1000 TiB", "policy.keep_last=3")
    )
    found = optimize(CATALOG, layers, ("aws-fsx-p2-125", "generic-pfs"), objective="usd")
    assert found.undecided == {}
    assert found.order is not None
    runs = [option.at(option.best["usd"]) for option in found.options]
    least = min(range(2), key=lambda i: float(cost_of(runs[i], "usd")))
    assert found.order.at[0] == least
    assert 0.0 <= found.order.cheaper[1 - least] <= 1.0
    ranges = ranges_of(found.options[0].resolved)
    draws = drawn(found.options[0].scenario, ranges, ties_of(found.options[0].resolved))
    assert np.asarray(cost_of(evaluate(draws), "usd")).shape == (SAMPLES,)


def test_each_tier_stands_at_its_own_best_interval():
    found = optimize(
        CATALOG,
        layers_for(CATALOG, "llama31-405b-16k", None, ()),
        ("flash-shared", "nas-hdd"),
    )
    assert found.order is not None
    assert found.option is found.options[found.order.at[0]]
    assert found.best.interval_s == pytest.approx(found.option.best["time"])
