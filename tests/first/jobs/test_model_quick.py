"""The quick way through the model, for a screen: less is computed, and what is computed is the
same."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.outcome import Outcome, evaluate
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.model import at_saves, case_of, model, one_of, spread_of
from ckptcost.first.layers import layers_of, set_layer
from ckptcost.first.report.rows import columns_of

CATALOG = Catalog()
PRESETS = ["gpt4-scale-2tb", "small-8b", "llama31-405b-16k"]


def same(one: Outcome, other: Outcome) -> bool:
    mine, theirs = columns_of(one), columns_of(other)
    return all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in mine)


@pytest.mark.parametrize("preset", PRESETS)
def test_without_ranges_the_outcome_is_the_same_and_its_own_spread(preset):
    resolved = one_of(CATALOG, layers_of(CATALOG, preset))
    whole, quick = case_of(resolved), case_of(resolved, ranges=False)
    assert same(quick.outcome, whole.outcome)
    assert quick.spread is quick.outcome
    assert (quick.best, quick.classic) == (whole.best, whole.classic)
    # what holds at the stated values holds; the slowest of a hundred draws is not looked for
    assert [each[:4] for each in quick.cautions] == [each[:4] for each in whole.cautions]
    assert isinstance(columns_of(whole.spread)["run_energy_kwh"], np.ndarray)
    assert same(spread_of(resolved, quick.outcome), whole.spread)


@pytest.mark.parametrize("preset", PRESETS)
def test_without_intervals_none_is_looked_for(preset):
    resolved = one_of(CATALOG, layers_of(CATALOG, preset))
    whole, quick = case_of(resolved), case_of(resolved, intervals=False)
    assert same(quick.outcome, whole.outcome)
    assert same(quick.spread, whole.spread)
    assert quick.best == {}
    assert all(math.isnan(value) for value in quick.classic)
    assert quick.cautions == whole.cautions


def test_what_cannot_be_computed_is_refused_as_ever():
    layers = [
        *layers_of(CATALOG, "llama31-405b-16k"),
        set_layer(["failures.rate=0 /1000 node-days"]),
    ]
    with pytest.raises(ValueError, match="never to save"):
        case_of(one_of(CATALOG, layers), ranges=False, intervals=False)


def test_where_prices_are_unknown_it_is_not_failures_that_are_missing(tmp_path):
    file = tmp_path / "unpriced.toml"
    file.write_text(
        '[checkpoint]\nsize = "100 GB"\n[tier]\nwrite = "10 GB/s"\nread = "10 GB/s"\n[cluster]\n'
        'gpus = 64\n[run]\nwork = "7 days"\n[failures]\nmtbf = "6 h"\n[policy]\noptimal = "usd"\n'
    )
    layers = layers_of(CATALOG, str(file))
    with pytest.raises(InputError, match="the best interval for usd cannot be") as refused:
        case_of(one_of(CATALOG, layers))
    assert "cluster.gpu_price" in str(refused.value)
    free = set_layer(["cluster.gpu_price=0 USD/GPU-h", "tier.storage_price=0 USD/GB-month"])
    with pytest.raises(InputError, match="what an interval changes costs nothing"):
        case_of(one_of(CATALOG, [*layers, free]))
    for work in ("2 days", "300 years"):  # so long that without a save it would never end
        changes = ["policy.optimal=usd", "cluster.gpu_price=0 USD/GPU-h", f"run.work={work}"]
        rented = [*layers_of(CATALOG, "small-8b"), set_layer(changes)]
        with pytest.raises(InputError, match="loses costs nothing, so the best is never to save"):
            case_of(one_of(CATALOG, rented))
    slow = set_layer(["tier.write=1 kB/s", "cluster.gpu_price=3 USD/GPU-h"])
    with pytest.raises(InputError, match=r"a save takes 1e\+08 s .* comes each 2.16e\+04 s"):
        case_of(one_of(CATALOG, [*layers, slow]))


@pytest.mark.parametrize("saves", [1.0, 40.0, 1000.0])
@pytest.mark.parametrize(
    "changes", [[], ["policy.mode=async"], ["second_tier.id=nas-hdd", "policy.second_every=4"]]
)
def test_another_number_of_saves_is_what_the_flag_gives(saves, changes):
    layers = [*layers_of(CATALOG, "gpt4-scale-2tb"), set_layer(changes)]
    (case,) = model(CATALOG, layers, ["generic-pfs"], [saves]).cases
    mine = at_saves(one_of(CATALOG, layers, "generic-pfs").scenario, saves)
    assert mine == dataclasses.replace(case.scenario)
    assert same(evaluate(mine), case.outcome)


def test_a_job_that_costs_no_dollars_is_computed_and_has_no_best_interval_for_them():
    layers = [
        *layers_of(CATALOG, PRESETS[0]),
        set_layer(["cluster.gpu_price=0 USD/GPU-h", "tier.storage_price=0 USD/GB-month"]),
    ]
    case, *_ = model(CATALOG, layers, ["nas-hdd"], [100.0]).cases
    assert math.isnan(float(case.best["usd"]))
    assert float(case.best["time"]) > 0
    assert columns_of(case.outcome)["run_cost_usd"] == 0
