"""Nested tiers by simulation: agrees with the closed form where there is one, and finds what no
neighbour beats where there is none."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.outcome import evaluate, plan_of
from ckptcost.first.core.simulate import third_of
from ckptcost.first.core.timing import load_s
from ckptcost.first.errors import InputError
from ckptcost.first.jobs import tiers_check
from ckptcost.first.layers import layers_for
from ckptcost.first.present.amounts import share
from ckptcost.first.report.studies.tiers_check import study_of
from ckptcost.first.scenario import resolve

THREE = [
    "tier.id=node-ram",
    "second_tier.id=peer-ram-400g",
    "third_tier.id=flash-shared",
    "failures.node_loss_fraction=0.7",
    "failures.second_loss_fraction=0.05",
    "policy.mode=sync",
    "run.work=10 days",
    "tier.setup=2 s",
    "second_tier.setup=8 s",
]


def resolved_of(*settings, interval=None):
    catalog = Catalog()
    return resolve(catalog, layers_for(catalog, "llama31-405b-16k", interval, settings))


def test_two_tiers_meet_the_closed_form():
    resolved = resolved_of(
        *(each for each in THREE if "third" not in each and "second_loss" not in each)
    )
    closed = evaluate(resolved.scenario)
    found = tiers_check.simulate_combination(
        resolved, float(closed.interval_s), 1.0, 1.0, runs=400, seed=5
    )
    wall = found.found.summary("wall")
    assert abs(wall.mean - float(closed.wall_s)) < 3 * wall.error


def test_a_third_tier_that_is_never_needed_and_never_saved_to_changes_nothing():
    two = resolved_of(
        *(each for each in THREE if "third" not in each and "second_loss" not in each)
    )
    three = resolved_of(
        *(each for each in THREE if "second_loss" not in each), "failures.second_loss_fraction=0"
    )
    one = tiers_check.simulate_combination(two, 300.0, 4.0, 1.0, runs=50, seed=2)
    other = tiers_check.simulate_combination(three, 300.0, 4.0, 1e6, runs=50, seed=2)
    assert np.array_equal(one.found.values["wall"], other.found.values["wall"])


@pytest.fixture(scope="module")
def found():
    return tiers_check.three_tiers(resolved_of(*THREE), "time", False, runs=60, seed=3)


def test_the_best_is_beaten_by_none_of_those_tried(found):
    costs = [each.cost("time").mean() for each in found.tried]
    assert found.best.cost("time").mean() == min(costs)
    assert found.best.cost("time").mean() <= found.rule.cost("time").mean()
    assert (
        len({(each.interval_s, each.second_every, each.third_every) for each in found.tried})
        == len(found.tried)
        > 8
    )


def test_the_rule_is_near_the_best_when_failures_are_rare():
    rare = tiers_check.three_tiers(
        resolved_of(*THREE, "failures.rate=0.4 /1000 node-days"), "time", False, runs=60, seed=3
    )
    excess, error = tiers_check.difference(rare.rule, rare.best, "time")
    assert 0.0 <= excess < 0.002 + 3 * error


def test_a_difference_is_surer_than_either(found):
    excess, error = tiers_check.difference(found.rule, found.best, "time")
    alone = found.rule.found.summary("wall")
    assert error < alone.error / alone.mean
    assert excess >= 0.0


def test_what_it_refuses():
    with pytest.raises(InputError, match="at least 2"):
        tiers_check.three_tiers(resolved_of(*THREE), "time", False, runs=1)
    with pytest.raises(InputError, match="second_loss_fraction"):
        tiers_check.three_tiers(
            resolved_of(*THREE[:4], "failures.second_loss_fraction=0"), "time", False, runs=2
        )


@pytest.fixture
def steps(monkeypatch):
    """How many steps all walks took together."""
    from ckptcost.first.core import walk

    taken, step = [0], walk._Walk.step

    def counted(self, *words):
        taken[0] += 1
        return step(self, *words)

    monkeypatch.setattr(walk._Walk, "step", counted)
    return taken


def checked(rack_rate: str) -> tuple[list[dict], str]:
    """Rows of the check of a job on two tiers whose racks fail so often."""
    import ckptcost

    report = ckptcost.optimize(
        "small-8b",
        tier="nas-hdd",
        changes=[f"failures.rack_rate={rack_rate}"],
        check=20,
        draws=64,
    )
    return report.rows("check"), report.tables["check"].note


def test_two_tiers_are_simulated_while_failures_are_not_too_many(steps):
    rows, note = checked("1 /day")
    assert [row["simulated"] is None for row in rows] == [False] * len(rows)
    assert (len(rows) >= 2, note) == (True, "")
    assert 0 < steps[0] < 1000


def test_two_tiers_with_failures_without_number_are_left_to_the_closed_form(steps):
    rows, note = checked("100 /day")
    assert len(rows) >= 2
    assert all(row["closed_form"] > 0 and row["simulated"] is None for row in rows)
    assert "not simulated where over 10,000 failures" in note
    assert steps[0] == 0


def test_three_tiers_with_failures_without_number_are_refused(steps):
    with pytest.raises(InputError, match="too many for a search"):
        tiers_check.three_tiers(resolved_of(*THREE, "failures.rack_rate=100 /day"), "time", False)
    assert steps[0] == 0


def test_on_the_command_line(cli):
    flags = [word for each in THREE for word in ("--set", each)]
    done = cli(
        "optimize", "-s", "llama31-405b-16k", *flags, "--check", "20", "--require", "goodput>=0.99"
    )
    assert done.code == 3
    assert "Best found" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    for bad in (
        ["--tier", "node-ram", "--tier", "nas-hdd"],
        ["--mode", "both"],
        ["--check", "-1"],
        ["--check", "0"],
    ):
        assert cli("optimize", "-s", "llama31-405b-16k", *flags, *bad).code == 2, bad


def test_two_tiers_on_the_command_line_are_checked(cli):
    flags = [
        word
        for each in THREE
        if "third" not in each and "second_loss" not in each
        for word in ("--set", each)
    ]
    done = cli("optimize", "-s", "llama31-405b-16k", *flags, "--check", "50", "--full")
    assert (done.code, done.err) == (0, "")
    assert "checked by 50 simulated runs" in done.out
    assert (
        "simulated runs"
        not in cli("optimize", "-s", "llama31-405b-16k", *flags, "--check", "0").out
    )


def test_the_study_says_what_was_found(found):
    """Each row beside the best found: what is dearer is over it; now is a choice of its own."""
    now = max(found.tried, key=lambda each: each.cost("time").mean())
    assert now not in (found.rule, found.best)
    study = study_of(found._replace(now=now))
    rows = {row["at"]: row for row in study.tables[0].rows}
    for name, each in (("best found", found.best), ("first-order rule", found.rule), ("now", now)):
        row = rows[name]
        assert (row["interval"], row["second_every"], row["third_every"]) == (
            each.interval_s,
            each.second_every,
            each.third_every,
        )
        assert row["excess"] == pytest.approx(
            each.cost("time").mean() / found.best.cost("time").mean() - 1, abs=1e-12
        )
        assert row["kwh"] == pytest.approx(each.found.values["kwh"].mean() / 3.6e6)
        assert row["goodput"] == pytest.approx(
            each.found.values["kept"].sum() / each.found.values["wall"].sum()
        )
    assert rows["now"]["excess"] > 0
    assert f"Now: {share(rows['now']['excess'])} (+-" in study.findings[-1]


def test_how_far_the_closed_form_is_off_has_its_sign(cli):
    flags = [
        word
        for each in THREE
        if "third" not in each and "second_loss" not in each
        for word in ("--set", each)
    ]
    done = cli("optimize", "-s", "llama31-405b-16k", *flags, "--check", "20", "-f", "json")
    rows = json.loads(done.out)["tables"]["check"]["rows"]
    assert len(rows) >= 2
    for row in rows:
        assert row["errors_off"] * row["error"] == pytest.approx(
            row["simulated"] - row["closed_form"], rel=1e-6, abs=1e-12
        )


def test_what_is_minimised_is_the_objectives_own(found):
    values = found.best.found.values
    for objective, name in (
        ("time", "wall"),
        ("energy", "kwh"),
        ("usd", "usd"),
        ("carbon", "kgco2e"),
    ):
        assert np.array_equal(found.best.cost(objective), values[name])


def test_the_search_starts_at_the_rule_and_stays_within_the_run(found):
    one, two, three = found.levels
    assert (one.multiple, two.multiple, three.multiple) == (
        1.0,
        found.rule.second_every,
        found.rule.second_every * found.rule.third_every,
    )
    work_s = float(found.resolved.scenario.work_s)
    assert max(each.interval_s for each in found.tried) <= work_s
    assert {
        key[0] for key in tiers_check._neighbours(found.rule, 1.25, found.rule.interval_s * 1.2)
    } == {found.rule.interval_s, found.rule.interval_s / 1.25}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_what_the_rule_is_told_of_three_tiers(mode):
    """A level costs its stall, and what its drain slows; it loses getting back with its own tier's
    load; the rates are the kinds'."""
    resolved = resolved_of(
        *(each for each in THREE if "mode" not in each),
        f"policy.mode={mode}",
        "policy.slowdown=0.02",
    )
    s, (levels, _) = resolved.scenario, tiers_check._rule(resolved)
    plan, third = plan_of(s), third_of(s)
    saves = (plan.saved, plan.second, third)
    waits = [save.stall_s if mode == "sync" or i == 0 else 0.0 for i, save in enumerate(saves)]
    assert [level.stall_s for level in levels] == pytest.approx(
        [wait + 0.02 * save.lag_s for wait, save in zip(waits, saves, strict=True)]
    )
    rates = [float(plan.failures_per_s) * share for share in (0.3, 0.65, 0.05)]
    assert [1 / level.mtbf_s for level in levels] == pytest.approx(rates)
    f = s.failures
    for level, rate, tier in zip(levels, rates, (s.tier, s.second_tier, s.third_tier), strict=True):
        back_s = (
            f.detect_s
            + f.reschedule_s
            + f.init_s
            + f.warmup_s
            + load_s(s.checkpoint, tier, s.cluster)
        )
        assert level.waste == pytest.approx((2 * rate * level.stall_s) ** 0.5 + rate * back_s)


@pytest.mark.parametrize("write", ["0.1 GB/s", "0.3 GB/s", "200 GB/s"])
def test_the_rule_leaves_time_to_fill_every_tier(write):
    """Beside training a slow tier is filled before its next save comes."""
    resolved = resolved_of(
        *(each for each in THREE if "mode" not in each),
        "policy.mode=async",
        f"third_tier.write={write}",
    )
    levels, (base_s, multiples) = tiers_check._rule(resolved)
    plan, third = plan_of(resolved.scenario), third_of(resolved.scenario)
    fills_s = [float(save.write_s) for save in (plan.saved, plan.second, third)]
    for many, fill_s in zip(multiples, fills_s, strict=True):
        assert base_s * many >= fill_s * (1 - 1e-9)
    assert [level.multiple for level in levels] == list(multiples)


def test_every_mth_is_of_the_saves_on_the_second_tier(monkeypatch):
    class Asked(Exception):
        pass

    def stop(resolved, *key):
        raise Asked(*key[:3])

    monkeypatch.setattr(tiers_check, "_rule", lambda resolved: ((), (600.0, (1.0, 3.0, 12.0))))
    monkeypatch.setattr(tiers_check, "simulate_combination", stop)
    with pytest.raises(Asked) as first:
        tiers_check.three_tiers(resolved_of(*THREE), "time", False, runs=2)
    assert first.value.args == (600.0, 3.0, 4.0)
