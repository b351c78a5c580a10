"""Differences: of one and the same nothing, of what is known exactly that, of shared uncertainties
only what is not shared."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ckptcost.first.catalog.figures import Figure
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.draws import drawn, p5_p95
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.jobs.compare import (
    MOST,
    RESULTS,
    _same_figure,
    changed_inputs,
    changed_words,
    compare,
    difference,
    line_difference,
    lines_of,
    planned_scenario,
    useful_gpu_s,
    variant_layers,
)
from ckptcost.first.layers import layers_for, read_layer
from ckptcost.first.report.studies.compare import study_of
from ckptcost.first.scenario import ranges_of, ties_of

CATALOG = Catalog()
BY_ID = {result.id: result for result in RESULTS}


def layers(name="llama31-405b-16k", *settings, interval=None):
    return layers_for(CATALOG, name, interval, settings)


def held(*variants: str, base=None):
    base = base if base is not None else layers()
    return compare(
        CATALOG,
        [("base", base), *((text, variant_layers(base, text)) for text in variants)],
    )


def test_the_same_twice_differs_in_nothing():
    answer = compare(CATALOG, [("one", layers()), ("two", layers())])
    for result in RESULTS:
        change = difference(answer, 1, result)
        if change.value == change.value:
            assert (change.value, change.low, change.high, change.more) == (
                0.0,
                0.0,
                0.0,
                0.0,
            ), result.id
            assert change.sign_is_certain
    assert difference(answer, 1, BY_ID["kwh"]).value == 0.0
    assert math.isnan(difference(answer, 1, BY_ID["market_kgco2e"]).value)
    assert changed_inputs(*answer.cases) == []
    assert changed_words(*answer.cases) == []


def test_differences_are_differences():
    answer = held("policy.mode=async", "site.pue=1.4, interval=1 h")
    for at in (1, 2):
        for result in RESULTS:
            one, two = (
                float(result.of(case.scenario, case.outcome))
                for case in (answer.cases[0], answer.cases[at])
            )
            change = difference(answer, at, result)
            if one == one and two == two:
                assert change.value == two - one
                assert change.low <= change.value <= change.high
                assert change.relative == pytest.approx((two - one) / one)
            assert change.lacking == ()


def test_a_shared_uncertainty_cancels():
    """Two PUEs, both known, on the same uncertain kWh: the difference is the kWh times the
    difference of the PUEs, draw by draw."""
    base = layers("llama31-405b-16k", "site.pue=1.1")
    answer = held("site.pue=1.2", base=base)
    change = difference(answer, 1, BY_ID["kwh"])
    first = answer.cases[0]
    kwh = np.asarray(answer.together[0].run.total("energy_j"))
    low, high = p5_p95(kwh, float(first.outcome.run.total("energy_j")))
    assert (change.low, change.high) == pytest.approx((low * 0.1 / 1.1, high * 0.1 / 1.1), rel=1e-9)
    assert change.more == 1.0
    assert change.sign_is_certain


def test_a_difference_is_less_uncertain_than_its_parts_drawn_apart():
    answer = held("interval=1 h")
    result = BY_ID["usd"]
    change = difference(answer, 1, result)
    apart = []
    for seed, case in enumerate(answer.cases, start=11):
        ranges = ranges_of(case.resolved)
        ranges.pop("policy.every", None)
        world = drawn(
            planned_scenario(case.scenario, case.outcome), ranges, ties_of(case.resolved), seed=seed
        )
        apart.append(np.asarray(evaluate(world).run.total("cost_usd")))
    low, high = p5_p95(apart[1] - apart[0], change.value)
    assert change.high - change.low < 0.7 * (high - low)
    assert change.sign_is_certain
    assert low < 0 < high, "apart, not even the sign is known"


def test_figures_of_different_sources_are_not_shared():
    """Two tiers' own write rates are two uncertainties; the default joules per byte behind both are
    one."""
    answer = held("tier.id=flash-shared")  # the same entry again: shared
    assert difference(answer, 1, BY_ID["stall"]).low == 0.0
    mine = {i.path: i.figure for i in answer.cases[0].resolved.inputs}
    others = [
        entity
        for entity in CATALOG.ids("tier")
        if (rate := CATALOG.get("tier", entity).figures.get("write"))
        and rate.low is not None
        and rate.low < rate.high  # type: ignore[operator]
        and (rate.value, rate.source) != (mine["tier.write"].value, mine["tier.write"].source)
    ]
    assert others, "no other tier of the catalogue has a range"
    two = held(f"tier.id={others[0]}")
    stalls = [np.asarray(outcome.mean_stall_s) for outcome in two.together]
    assert abs(np.corrcoef(stalls[0], stalls[1])[0, 1]) < 0.6, "setup is shared, the rates are not"
    rates = [np.asarray(outcome.plan.saved.wire_bytes_per_s) for outcome in two.together]
    assert abs(np.corrcoef(rates[0], rates[1])[0, 1]) < 0.25


def test_one_assumption_scaled_by_two_ratings_is_shared():
    """Power while training is the same fraction of an H100's and an H200's rated watts: it is one
    uncertainty."""
    answer = held("cluster.accelerator=h200-sxm")
    figures = [{i.path: i.figure for i in case.resolved.inputs} for case in answer.cases]
    one, two = (each["cluster.gpu_train"] for each in figures)
    assert (one.low / one.value, one.high / one.value) == pytest.approx(
        (two.low / two.value, two.high / two.value)
    )
    powers = [
        np.asarray(outcome.run.line("slowdown").energy_j + outcome.run.line("redone_work").energy_j)
        for outcome in answer.together
    ]
    assert np.corrcoef(powers[0], powers[1])[0, 1] > 0.999


PRICED_BY_CAPACITY = "tier.billed_on=provisioned"
"""without a capacity nobody knows what keeping the bytes costs"""


def test_a_line_known_in_one_only_leaves_no_difference():
    answer = held(PRICED_BY_CAPACITY)
    change = difference(answer, 1, BY_ID["usd"])
    assert change.lacking == ("retention",)
    assert math.isnan(change.value)
    assert math.isnan(change.low)
    assert difference(answer, 1, BY_ID["gpu_hours"]).lacking == ()
    said = " ".join(study_of(answer).findings)
    assert "no difference of the cost added is told" in said
    assert "the lines known in both differ by" in said


def test_lines_unknown_in_both_are_named():
    base = layers("llama31-405b-16k", PRICED_BY_CAPACITY)
    change = difference(held("interval=1 h", base=base), 1, BY_ID["usd"])
    assert change.without == ("retention",)
    assert change.value == change.value


@pytest.mark.parametrize("quantity", FIELDS)
def test_line_differences_add_up(quantity):
    base = layers(
        "llama31-405b-16k",
        "tier.network_energy=8 J/GB",
        "tier.storage_price=0.02 USD/GB-month",
        "site.grid_market=100 g/kWh",
        "site.water=1.8 L/kWh",
        "tier.request_price=0 USD/1000 requests",
        "tier.request_size=8 MB",
    )
    answer = held(
        "policy.mode=async, interval=10 min",
        "second_tier.id=object-store, second_tier.network_energy=9 J/GB, "
        "second_tier.request_size=8 MB, policy.second_every=4",
        base=base,
    )
    first = answer.cases[0].outcome.run
    for case in answer.cases[1:]:
        marginal = {line.id for bill in (first, case.outcome.run) for line in bill.of()}
        rises = [
            line_difference(first, case.outcome.run, line, quantity)[2]
            for line in lines_of(answer)
            if line in marginal
        ]
        total = float(case.outcome.run.total(quantity)) - float(first.total(quantity))
        assert sum(rises) == pytest.approx(total, rel=1e-9)


def test_useful_work_and_what_is_said_of_it():
    answer = held("cluster.gpus=8192")
    assert useful_gpu_s(answer.cases[0].scenario) == 2 * useful_gpu_s(answer.cases[1].scenario)
    codes = [code for code, _ in study_of(answer).warnings]
    assert "DIFFERENT_WORK" in codes
    assert "DIFFERENT_WORK" not in [code for code, _ in study_of(held("interval=1 h")).warnings]
    per_useful = BY_ID["gpu_hours_per_useful"]
    for case in answer.cases:
        lost = 1000.0 * (1.0 / float(case.outcome.goodput) - 1.0)
        assert per_useful.of(case.scenario, case.outcome) == pytest.approx(lost * 3600.0, rel=1e-9)


def test_a_range_is_the_models():
    """The values' ranges are those that `model` reports, of the same 4,096 draws."""
    answer = held("policy.mode=async")
    for case in answer.cases:
        assert case.spread.run.total("energy_j").shape == (4096,)


def test_a_variant_stands_over_the_flags_but_its_tier_under_them():
    base = layers("llama31-405b-16k", "tier.write=50 GB/s", "policy.mode=async", interval="1 h")
    answer = held("tier.id=nas-hdd", "policy.mode=sync", "saves=10", base=base)
    assert [case.tier_id for case in answer.cases] == [
        "flash-shared",
        "nas-hdd",
        "flash-shared",
        "flash-shared",
    ]
    assert {float(case.scenario.tier.write_bytes_per_s) for case in answer.cases} == {5e10}
    assert [case.scenario.policy.mode for case in answer.cases] == [
        "async",
        "async",
        "sync",
        "async",
    ]
    assert answer.cases[3].outcome.saves == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not path=value"),
        ("   ", "not path=value"),
        ("tier.id", "not path=value"),
        ("=3", "not path=value"),
        ("tier.id=", "not path=value"),
        ("tier.id=nas-hdd,", "no tier named"),
        ("site.pue=1.1, site.pue=1.2", "one thing twice"),
        ("tier=nas-hdd, tier.id=object-store", "one thing twice"),
        ("nowhere.id=3", "no section named"),
        ("tier.nothing=3", "no key in tier"),
        ("site.pue=0.5", "out of range"),
        ("policy.saves=3, policy.interval=1 h", "contradict"),
        ("tier.write=1,000 GB/s", "comma"),
    ],
)
def test_what_a_variant_may_not_say(text, says):
    with pytest.raises(InputError, match=says) as caught:
        held(text)
    assert "--set" not in str(caught.value).split(". ")[0]


def test_unknown_names_are_suggested():
    with pytest.raises(UnknownName, match="nas-hdd"):
        held("tier.id=nas-hd")


@pytest.mark.parametrize("count", [0, 1, MOST + 1])
def test_how_many_can_be_compared(count):
    with pytest.raises(InputError, match=r"nothing to compare|are more than"):
        compare(CATALOG, [("x", layers())] * count)


def test_a_run_that_never_ends_has_no_finite_difference():
    answer = held("tier.write=1 kB/s, interval=1 h")
    change = difference(answer, 1, BY_ID["kwh"])
    assert math.isinf(change.value) or math.isnan(change.value)
    assert difference(answer, 1, BY_ID["goodput"]).value == pytest.approx(
        -float(answer.cases[0].outcome.goodput)
    )
    study_of(answer)


def test_what_makes_two_figures_one():
    """The same numbers; or one range scaled, of one basis and a source in common."""
    one = Figure(10.0, 5.0, 20.0, "published", "a; b")
    assert _same_figure(one, Figure(10.0, 5.0, 20.0, "vendor", "c"))
    assert _same_figure(one, Figure(30.0, 15.0, 60.0, "published", "b"))
    for other in (
        Figure(10.0, 5.0, 40.0, "published", "a; b"),
        Figure(10.0, 2.0, 20.0, "published", "a; b"),
        Figure(30.0, 15.0, 60.0, "published", "c"),
        Figure(30.0, 15.0, 60.0, "vendor", "b"),
        Figure(30.0, 15.0, 50.0, "published", "b"),
        Figure(30.0, None, None, "published", "b"),
    ):
        assert not _same_figure(one, other), other
        assert not _same_figure(other, one), other


def test_a_line_known_in_the_first_only_leaves_no_difference_either():
    base = layers("llama31-405b-16k", PRICED_BY_CAPACITY)
    answer = compare(CATALOG, [("known", layers()), ("unknown", base)])
    change = difference(answer, 1, BY_ID["usd"])
    assert (change.lacking, change.without) == (("retention",), ())
    assert math.isnan(change.value)


def test_each_result_leaves_out_the_lines_of_its_own_quantity():
    answer = held(
        "tier.network_energy=8 J/GB", "tier.network_energy=8 J/GB, site.grid_market=100 g/kWh"
    )
    own = {
        "gpu_hours": "gpu_s",
        "kwh": "energy_j",
        "usd": "cost_usd",
        "kgco2e": "location_kgco2e",
        "market_kgco2e": "market_kgco2e",
        "embodied_kgco2e": "embodied_kgco2e",
    }
    for case in answer.cases:
        for name, quantity in own.items():
            assert BY_ID[name].lines(case.outcome) == case.outcome.run.unknown(quantity), name
    assert len({BY_ID["market_kgco2e"].lines(case.outcome) for case in answer.cases}) > 1


def test_a_range_of_the_interval_is_no_uncertainty():
    """The plan stays as chosen: only the world is drawn, as `model` does it; a range alone is a
    changed input all the same."""
    ranged = read_layer(
        {"policy": {"interval": {"value": "1 h", "low": "30 min", "high": "2 h"}}},
        "test",
        "test",
    )
    answer = compare(
        CATALOG, [("a point", layers(interval="1 h")), ("a range", [*layers(), ranged])]
    )
    assert np.ndim(answer.together[1].interval_s) == 0
    assert (
        difference(answer, 1, BY_ID["kwh"]).low == difference(answer, 1, BY_ID["kwh"]).high == 0.0
    )
    assert [changed.path for changed in changed_inputs(*answer.cases)] == ["policy.interval"]


def test_the_table_is_the_differences():
    answer = held("interval=1 h", "policy.mode=async")
    rows = {(row["scenario"], row["quantity"]): row for row in study_of(answer).tables[0].rows}
    for at, letter in ((1, "B"), (2, "C")):
        for name in ("goodput", "wall", "saves", "usd", "kgco2e"):  # shown in their base units
            row, change = rows[letter, name], difference(answer, at, BY_ID[name])
            assert (row["difference"], row["relative"], row["more"]) == (
                change.value,
                change.relative,
                change.more,
            ), name
            assert (row["difference_low"], row["difference_high"]) == (
                change.low,
                change.high,
            ), name
            assert row["sign_certain"] is change.sign_is_certain
        assert rows[letter, "kwh"]["difference_high"] == pytest.approx(
            difference(answer, at, BY_ID["kwh"]).high / 3.6e6
        )
    assert any(0 < row["more"] < 1 for row in rows.values() if row.get("more") is not None)


def test_two_runs_that_never_end_do_not_differ_in_that():
    base = layers("llama31-405b-16k", "tier.write=1 kB/s", interval="1 h")
    change = difference(held("site.pue=1.4", base=base), 1, BY_ID["wall"])
    assert change.value == 0.0
    assert all(math.isnan(each) for each in (change.relative, change.low, change.high, change.more))
    one_ends = difference(held("tier.write=100 GB/s", base=base), 1, BY_ID["wall"])
    assert (one_ends.value, math.isnan(one_ends.low)) == (-math.inf, True)


def test_a_variants_entry_wins_over_a_flags_and_the_flags_single_inputs_hold_for_it():
    layers = layers_for(
        CATALOG, None, None, ["tier.id=nas-hdd", "tier.setup=9 s", "cluster.gpus=64"]
    )
    found = compare(
        CATALOG,
        [("as it is", layers), ("other", variant_layers(layers, "tier.id=generic-pfs"))],
    )
    assert [case.tier_id for case in found.cases] == ["nas-hdd", "generic-pfs"]
    assert [float(case.scenario.tier.setup_s) for case in found.cases] == [9.0, 9.0]
    assert [float(case.scenario.cluster.gpus) for case in found.cases] == [64.0, 64.0]


def test_nothing_is_saved_against_a_run_that_makes_no_headway(cli):
    """A filer of 0.2 GB/s for 5.68 TB: 0.2 % of the time is work, and no dollars are told against
    it."""
    job = ("-s", "llama31-405b-16k")
    findings = json.loads(cli("compare", *job, "--with", "tier=nas-hdd", "-f", "json").out)[
        "findings"
    ]
    assert findings[0].startswith("B makes next to no headway even at its own best interval")
    assert not [each for each in findings if each.startswith("B: ")]
    out = " ".join(
        cli("optimize", *job, "--tier", "flash-shared", "--set", "policy.interval=1 s").out.split()
    )
    assert "the run makes next to no headway (goodput" in out
    assert "nothing is counted as saved against it" in out


def test_the_best_is_told_with_how_sure_it_is():
    """Two tiers a few per cent apart: their ranges turn the order in many draws, and the sentence
    says so."""
    answer = held("tier.id=aws-fsx-p2-500", "tier.id=aws-fsx-p2-1000")
    said = next(text for text in study_of(answer).findings if "Least" in text or "least" in text)
    assert "of the draws, so not for sure" in said


def test_the_best_of_two_that_differ_in_one_known_word_is_sure():
    answer = held("cluster.gpu_price=9 USD/GPU-h")
    said = " ".join(study_of(answer).findings)
    assert "not for sure" not in said
