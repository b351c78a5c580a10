"""The job: the same numbers however the work is cut up, one run alone as among the others, inputs
drawn, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ckptcost.first.catalog.interruptions import SaidKind, Trace
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core import walk as walking
from ckptcost.first.core.job import DONE
from ckptcost.first.core.outcome import evaluate, plan_of
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.jobs import walks
from ckptcost.first.jobs.gates import gate_of
from ckptcost.first.jobs.simulate import Simulation, simulate, time_line, verdicts_of
from ckptcost.first.jobs.walks import SimulationRequest, prepared_for
from ckptcost.first.layers import layers_for
from ckptcost.first.report.studies.simulate import study_of
from ckptcost.first.scenario import Resolved, ranges_of, resolve, ties_of


def resolved_for(scenario: str = "llama31-405b-16k", *settings: str) -> Resolved:
    catalog = Catalog()
    return resolve(catalog, layers_for(catalog, scenario, None, list(settings)))


SHORT = resolved_for("llama31-405b-16k", "run.work=3 days")
"""some 23 failures a run"""


def same(one: Simulation, other: Simulation) -> bool:
    assert one.values.keys() == other.values.keys()
    arrays = [
        *(zip(one.values.values(), other.values.values(), strict=True)),
        (one.by_kind, other.by_kind),
        (one.finished, other.finished),
    ]
    return all(a.tobytes() == b.tobytes() for a, b in arrays)


LAWS = [
    SimulationRequest(runs=60),
    SimulationRequest(runs=60, process="weibull", shape=0.6),
    SimulationRequest(runs=24, process="weibull-nodes", shape=0.7),
    SimulationRequest(runs=60, inputs="pert"),
    SimulationRequest(runs=16, process="weibull-nodes", shape=0.7, inputs="triangle"),
    SimulationRequest(runs=60, limit_s=2.5 * 86_400),
]


@pytest.mark.parametrize("asked", LAWS, ids=lambda asked: f"{asked.process}-{asked.inputs}")
def test_the_same_numbers_whatever_the_chunk(asked):
    whole = simulate(SHORT, asked)
    for chunk in (1, 7, 1000):
        assert same(whole, simulate(SHORT, asked._replace(chunk=chunk))), chunk


def test_the_same_numbers_whatever_the_workers():
    asked = SimulationRequest(runs=40, chunk=10, inputs="pert")
    heard: list[int] = []
    assert same(simulate(SHORT, asked), simulate(SHORT, asked._replace(workers=2), heard.append))
    assert heard == [10, 20, 30, 40]


def test_another_seed_is_another_world_and_more_runs_are_only_more():
    one, two, more = (
        simulate(SHORT, asked).values["wall"]
        for asked in (
            SimulationRequest(runs=20),
            SimulationRequest(runs=20, seed=2),
            SimulationRequest(runs=30),
        )
    )
    assert not np.isin(one, two).any()
    assert (more[:20] == one).all()


def test_weibull_of_shape_1_is_the_exponential():
    weibull, exponential = (
        simulate(SHORT, SimulationRequest(runs=30, process="weibull")),
        simulate(SHORT, SimulationRequest(runs=30)),
    )
    assert same(weibull, exponential)
    assert (exponential.exact, weibull.exact) == (True, False)


@pytest.mark.parametrize("shape", [1.0, 0.7])
def test_nodes_agree_with_the_exponential_in_the_mean(shape):
    nodes, plain = (
        simulate(SHORT, SimulationRequest(runs=300, process=law, shape=shape))
        for law in ("weibull-nodes", "exponential")
    )
    a, b = (found.summary("failures") for found in (nodes, plain))
    if shape == 1.0:
        # failures while the job is down interrupt nothing, which a memoryless gap after each start
        # knows anyway
        assert abs(a.mean - b.mean) < 4 * math.hypot(a.error, b.error)
    assert a.mean == pytest.approx(b.mean, rel=0.08)


@pytest.mark.parametrize(
    "asked",
    [*LAWS, SimulationRequest(runs=9, seed=5)],
    ids=lambda asked: f"{asked.process}-{asked.inputs}-{asked.runs}",
)
def test_one_run_alone_is_the_same_as_among_the_others(asked):
    found = simulate(SHORT, asked)
    for run in (0, 4, asked.runs - 1):
        steps, kinds = time_line(SHORT, asked, run)
        assert kinds == found.kinds
        value = {name: values[run] for name, values in found.values.items()}
        total = {
            name: sum(getattr(step, name) for step in steps)
            for name in ("init_s", "load_s", "warmup_s", "trained_s", "stall_s", "down_s")
        }
        assert sum(total.values()) == pytest.approx(value["wall"], rel=1e-9)
        assert total["trained_s"] == pytest.approx(
            value["kept"] + value["redone"] + value["slowed"]
        )
        assert total["stall_s"] == pytest.approx(value["stall_time"])
        assert (total["init_s"], total["load_s"], total["warmup_s"]) == pytest.approx(
            (value["init"], value["load"], value["warmup"])
        )
        assert total["down_s"] == pytest.approx(value["detect"] + value["reschedule"])
        assert sum(step.kind >= 0 for step in steps) == value["failures"]
        assert (steps[-1].kind == DONE) == bool(found.finished[run])
        starts = [step.start_s for step in steps]
        assert starts == sorted(starts)
        assert starts[0] == pytest.approx(0.0, abs=1e-6)


def test_note_hears_of_progress_and_may_stop_the_work():
    heard: list[int] = []
    simulate(SHORT, SimulationRequest(runs=50, chunk=20), heard.append)
    assert heard == sorted(heard)
    assert len(heard) >= 3
    assert heard[-1] <= 50

    class Enough(Exception):
        pass

    def stop(done: int) -> None:
        if done >= 20:
            raise Enough

    with pytest.raises(Enough):
        simulate(SHORT, SimulationRequest(runs=50, chunk=20), stop)


@pytest.mark.parametrize("shape", ["triangle", "pert", "uniform"])
def test_inputs_are_drawn_between_their_ends_and_copies_together(shape, monkeypatch):
    ranges, ties = ranges_of(SHORT), ties_of(SHORT)
    assert ranges
    assert ties
    drawn: list[Any] = []
    real = walks.scenario_at_quantiles
    monkeypatch.setattr(
        walks, "scenario_at_quantiles", lambda *args: drawn.append(real(*args)) or drawn[-1]
    )
    simulate(SHORT, SimulationRequest(runs=400, inputs=shape))
    for path, (low, mode, high) in ranges.items():
        section, _, name = path.rpartition(".")
        if path in ("policy.every", "failures.node_loss_fraction", "failures.second_loss_fraction"):
            continue
        values = np.asarray(
            getattr(getattr(drawn[0], section), name) if section else getattr(drawn[0], name)
        )
        assert values.shape == (400,), path
        assert low <= values.min() < values.max() <= high
        if shape == "uniform":
            assert values.mean() == pytest.approx(
                (low + high) / 2, abs=4 * (high - low) / math.sqrt(12 * 400)
            )
        if shape == "pert":
            assert values.mean() == pytest.approx(
                (low + 4 * mode + high) / 6, abs=(high - low) / 20
            )
    for copy, original in ties.items():
        one, other = (
            getattr(getattr(drawn[0], path.split(".")[0]), path.split(".")[1])
            for path in (copy, original)
        )
        assert (one == other).all()


def test_inputs_without_ranges_are_points(monkeypatch):
    monkeypatch.setattr(
        walks,
        "world_ranges_of",
        lambda resolved: {
            path: (mode, mode, mode) for path, (_, mode, _) in ranges_of(resolved).items()
        },
    )
    fixed = simulate(SHORT, SimulationRequest(runs=10)).values["wall"]
    for shape in ("triangle", "pert", "uniform"):
        assert simulate(SHORT, SimulationRequest(runs=10, inputs=shape)).values[
            "wall"
        ] == pytest.approx(fixed, rel=1e-12)


def test_an_endless_run_is_refused(monkeypatch):
    monkeypatch.setattr(walking, "MOST_EVENTS", 3000)
    for law in ("exponential", "weibull", "weibull-nodes"):
        with pytest.raises(InputError, match="interrupted a million times"):
            simulate(SHORT, SimulationRequest(runs=2, process=law, mean_s=60.0))
    # a limit ends it
    found = simulate(SHORT, SimulationRequest(runs=2, mean_s=60.0, limit_s=86_400.0))
    assert found.values["wall"] == pytest.approx([86_400.0] * 2)
    assert not found.finished.any()
    assert (found.values["kept"] == 0.0).all()


def test_a_limit_is_kept():
    limit_s = 3.35 * 86_400
    free, found = (
        simulate(SHORT, SimulationRequest(runs=400)),
        simulate(SHORT, SimulationRequest(runs=400, limit_s=limit_s)),
    )
    assert found.values["wall"].max() <= limit_s * (1 + 1e-12)
    assert 0.05 < found.finished.mean() < 0.95
    assert (found.finished.astype(bool) == (free.values["wall"] <= limit_s)).all()
    assert (found.values["kept"] <= float(SHORT.scenario.work_s)).all()
    ended = found.finished.astype(bool)
    assert (found.values["wall"][ended] == free.values["wall"][ended]).all()
    assert found.values["wall"][~ended] == pytest.approx(limit_s)


REFUSED = [
    (SimulationRequest(runs=0), InputError),
    (SimulationRequest(runs=10**9), InputError),
    (SimulationRequest(workers=0), InputError),
    (SimulationRequest(seed=-1), InputError),
    (SimulationRequest(seed=2**63), InputError),
    (SimulationRequest(inputs="gauss"), UnknownName),
    (SimulationRequest(shape=0.01), InputError),
    (SimulationRequest(limit_s=0.0), InputError),
    (SimulationRequest(limit_s=math.nan), InputError),
]


@pytest.mark.parametrize(("asked", "error"), REFUSED)
def test_what_makes_no_sense_is_refused(asked, error):
    with pytest.raises(error):
        simulate(SHORT, asked)


def test_there_is_no_such_run():
    for run in (-1, 10):
        with pytest.raises(InputError, match="no run"):
            time_line(SHORT, SimulationRequest(runs=10), run)


def test_an_interval_longer_than_the_run_is_refused():
    with pytest.raises(InputError, match="longer than the run"):
        simulate(
            resolved_for("llama31-405b-16k", "run.work=1 day", "policy.interval=2 days"),
            SimulationRequest(runs=2),
        )


def test_kinds_that_a_file_adds_keep_their_own_words():
    """Shares are parts of the scenario's failures, rates come on top; what a kind does not say is
    the scenario's."""

    def words(kind):
        return (
            kind.level,
            kind.detect_s,
            kind.reschedule_s,
            kind.init_s,
            kind.warmup_s,
            kind.notice_s,
            kind.after_s,
        )

    base = resolved_for(
        "llama31-405b-16k", "second_tier.id=generic-pfs", "policy.second_every=4", "run.work=3 days"
    )
    one = SaidKind("a", 0.3, None, None, 2, 120.0, 1.0, 2.0, 3.0, 4.0)
    two, three = (
        SaidKind(name, None, rate, every, 1, 0.0, *[None] * 4)
        for name, rate, every in (("b", 1e-5, None), ("c", None, 4e4))
    )
    plain = prepared_for(base, SimulationRequest())
    own = walks._kind_shares(plain, plain.kinds, plain.outcome.plan)[0]
    found = prepared_for(base, SimulationRequest(kinds=(one, two, three)))
    rate = float(found.outcome.plan.failures_per_s)
    assert found.rate_per_s == pytest.approx(rate + 1e-5)
    kinds = {
        kind.name: kind for kind in walks._kind_shares(found, found.kinds, found.outcome.plan)[0]
    }
    assert list(kinds) == [*(kind.name for kind in own), "a", "b", "c"]
    f = base.scenario.failures
    mine = (f.detect_s, f.reschedule_s, f.init_s, f.warmup_s)
    for kind in own:
        assert kinds[kind.name].share * found.rate_per_s == pytest.approx(0.7 * kind.share * rate)
        assert words(kinds[kind.name]) == words(kind)
    assert kinds["a"].share * found.rate_per_s == pytest.approx(0.3 * rate)
    assert kinds["b"].share * found.rate_per_s == pytest.approx(1e-5)
    assert kinds["c"].share == 0.0
    assert words(kinds["a"]) == (1, 1.0, 2.0, 3.0, 4.0, 120.0, math.inf)
    assert words(kinds["b"]) == (0, *mine, 0.0, math.inf)
    assert words(kinds["c"]) == (0, *mine, 0.0, 4e4)
    # another mean gap is that of the scenario's failures; a rate of its own stays on top
    assert prepared_for(
        base, SimulationRequest(kinds=(one, two), mean_s=5000.0)
    ).rate_per_s == pytest.approx(1 / 5000.0 + 1e-5)


def up_days(found: Simulation) -> Any:
    """Days in which something can fail."""
    return (found.values["wall"] - found.values["detect"] - found.values["reschedule"]) / 86400.0


def test_a_rate_of_its_own_is_not_drawn_with_the_scenarios():
    """The scenario's failures vary a hundredfold from run to run; one kind comes once a day all the
    same."""
    resolved = resolved_for(
        "llama31-405b-16k", "run.work=5 days", "failures.rate=0 /1000 node-days"
    )
    figure = next(i.figure for i in resolved.inputs if i.path == "failures.shared_rate")
    ranged = replace(figure, value=1e-5, low=1e-7, high=1e-4)
    inputs = tuple(
        i._replace(figure=ranged) if i.path == "failures.shared_rate" else i
        for i in resolved.inputs
    )
    s = resolved.scenario
    drawn = resolved._replace(
        inputs=inputs, scenario=replace(s, failures=replace(s.failures, failures_per_s=1e-5))
    )
    daily = SaidKind("maintenance", None, 1 / 86400.0, None, 1, 0.0, *[None] * 4)
    found = simulate(drawn, SimulationRequest(runs=400, inputs="uniform", kinds=(daily,)))
    a_day = found.by_kind[1] / up_days(found)
    assert abs(a_day.mean() - 1.0) < 3 * a_day.std() / 20.0
    others = found.by_kind[0]
    assert others.std() > 3 * math.sqrt(others.mean())  # far more than chance alone
    given = simulate(drawn, SimulationRequest(runs=200, inputs="uniform", mean_s=86400.0))
    a_day = given.values["failures"] / up_days(given)
    assert abs(a_day.mean() - 1.0) < 3 * a_day.std() / math.sqrt(200)


def test_a_record_is_not_added_to():
    daily = SaidKind("maintenance", None, 1 / 86400.0, None, 1, 0.0, *[None] * 4)
    record = Trace((100.0, 5e4), (), 1e5)
    with pytest.raises(InputError, match="adds a rate to a record"):
        simulate(SHORT, SimulationRequest(runs=2, process="trace", trace=record, kinds=(daily,)))
    half = daily._replace(rate_per_s=None, share=0.5)
    found = simulate(
        SHORT, SimulationRequest(runs=400, process="trace", trace=record, kinds=(half,))
    )
    assert found.by_kind[1].sum() / found.by_kind.sum() == pytest.approx(0.5, abs=0.05)


def test_a_stopped_run_keeps_what_it_wrote():
    """With all saves kept at a price, the bill of a run that a limit stops is that of the saves it
    made."""
    resolved = resolved_for(
        "llama31-405b-16k",
        "run.work=30 days",
        "policy.keep_last=all",
        "tier.storage_price=1 USD/GB-month",
        "cluster.gpu_price=0 USD/GPU-h",
        "failures.rate=0 /1000 node-days",
        "policy.interval=1 h",
    )
    found = simulate(resolved, SimulationRequest(runs=1, limit_s=36_000.0))
    saves = math.floor(36_000.0 / (3600.0 + float(found.outcome.mean_stall_s)))
    stored = float(found.outcome.plan.saved.stored_bytes)
    assert found.values["usd"][0] == pytest.approx(
        (saves + 1) / 2 * stored / 1e9 * 36_000.0 / (730 * 3600), rel=0.05
    )


def test_each_state_rests_on_its_own_input():
    resolved = resolved_for(
        "llama31-405b-16k",
        "run.work=3 days",
        "failures.detect=11 s",
        "failures.reschedule=13 s",
        "failures.init=0 s",
        "failures.warmup=17 s",
        "policy.mode=async",
        "policy.slowdown=1 %",
    )
    values = simulate(resolved, SimulationRequest(runs=40)).values
    failures = values["failures"]
    assert values["detect"] == pytest.approx(11 * failures)
    assert values["reschedule"] == pytest.approx(13 * failures)
    assert values["init"].max() == 0.0
    load_s = float(plan_of(resolved.scenario).recovery.load_s)
    assert (values["load"] <= load_s * failures * (1 + 1e-9)).all()
    assert (values["warmup"] <= 17 * failures).all()
    assert values["load"].sum() > 0.95 * load_s * failures.sum()
    assert values["warmup"].sum() > 0.95 * 17 * failures.sum()
    assert values["kept"] == pytest.approx(float(resolved.scenario.work_s))
    parts = (
        "kept",
        "redone",
        "slowed",
        "stall_time",
        "detect",
        "reschedule",
        "init",
        "load",
        "warmup",
    )
    assert sum(values[part] for part in parts) == pytest.approx(values["wall"])
    assert values["goodput"] == pytest.approx(values["kept"] / values["wall"])
    assert values["slowed"].min() > 0


def test_what_the_closed_form_speaks_of():
    """Exponential failures at the scenario's own rate, of its own kinds, inputs as given, no limit,
    two tiers at most."""
    assert simulate(SHORT, SimulationRequest(runs=2)).exact
    kind = SaidKind("a", 0.3, None, None, 1, 0.0, *[None] * 4)
    for asked in (
        SimulationRequest(2, process="weibull"),
        SimulationRequest(2, mean_s=9e4),
        SimulationRequest(2, kinds=(kind,)),
        SimulationRequest(2, limit_s=9e9),
        SimulationRequest(2, inputs="pert"),
    ):
        assert not simulate(SHORT, asked).exact, asked
    three = resolved_for(
        "llama31-405b-16k", "second_tier.id=generic-pfs", "third_tier.id=nas-hdd", "run.work=3 days"
    )
    assert not simulate(three, SimulationRequest(runs=2)).exact


def test_a_target_is_held_against_what_it_asks_for():
    found = simulate(SHORT, SimulationRequest(runs=50))
    usd = found.values["usd"]
    wanted = {"": usd.mean(), ".mean": usd.mean()} | {
        f".p{p}": np.quantile(usd, p / 100) for p in (5, 50, 95)
    }
    assert len(set(wanted.values())) == 4
    gates = [gate_of(f"usd{statistic}<=1", "--budget") for statistic in wanted]
    assert [verdict.value for verdict in verdicts_of(found, gates)] == pytest.approx(
        list(wanted.values())
    )
    kept, wall = found.values["kept"], found.values["wall"]
    assert [
        v.value for v in verdicts_of(found, [gate_of("goodput>=0.5", "--require")])
    ] == pytest.approx([kept.sum() / wall.sum()], rel=1e-12)


def test_nodes_that_outlive_their_table_get_a_longer_one(monkeypatch):
    """Failures ten times as frequent as the closed form knows: the table is too short at first, and
    the runs are the same."""
    asked = SimulationRequest(runs=12, process="weibull-nodes", shape=0.7, mean_s=1500.0)
    short = resolved_for(
        "llama31-405b-16k",
        "run.work=6 h",
        "failures.rate=0.1 /1000 node-days",
        "policy.interval=10 min",
    )
    monkeypatch.setattr(walks, "HORIZON", 50.0)
    whole = simulate(short, asked)
    assert whole.values["wall"].min() > 1.3 * float(whole.outcome.wall_s)
    monkeypatch.setattr(walks, "HORIZON", 1.2)
    assert same(simulate(short, asked), whole)


def test_the_drawn_world_is_walked_through():
    """Each run's own failure rate and its own ways back; a kind's own words stay; the plan and the
    shares of kinds do too."""
    base = resolved_for(
        "llama31-405b-16k", "second_tier.id=generic-pfs", "policy.second_every=4", "run.work=6 h"
    )
    assert "failures.node_loss_fraction" in ranges_of(base)
    asked = SimulationRequest(
        200, inputs="uniform", kinds=(SaidKind("a", 0.3, None, None, 2, 0.0, 1.0, None, 3.0, None),)
    )
    prepared = prepared_for(base, asked)
    rates: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        real = walks._process
        patch.setattr(
            walks,
            "_process",
            lambda p, s, ids, rate_per_s, horizon_s: (
                rates.append(rate_per_s) or real(p, s, ids, rate_per_s, horizon_s)
            ),
        )
        _, world, _, job = walks.walk_runs(prepared, 0, 200, None)
    assert rates[0] == pytest.approx(plan_of(world).failures_per_s)
    assert rates[0].std() > 0.1 * rates[0].mean()
    f = world.failures
    for kind in job.kinds:
        mine = (f.detect_s, f.reschedule_s, f.init_s, f.warmup_s)
        wanted = (1.0, mine[1], 3.0, mine[3]) if kind.name == "a" else mine
        for found, piece in zip(
            (kind.detect_s, kind.reschedule_s, kind.init_s, kind.warmup_s), wanted, strict=True
        ):
            assert np.array_equal(found, piece), kind.name
    assert np.ndim(f.node_loss_fraction) == np.ndim(world.policy.every) == 0
    drawn = [
        np.asarray(each)
        for each in (f.detect_s, f.init_s, world.tier.write_bytes_per_s, world.cluster.gpu_train_w)
        if np.ndim(each)
    ]
    assert len(drawn) >= 3
    assert abs(np.corrcoef(drawn) - np.eye(len(drawn))).max() < 0.3, "each input by itself"


def test_redone_work_beside_the_closed_forms():
    found = simulate(SHORT, SimulationRequest(runs=20))
    row = next(row for row in study_of(found).tables[0].rows if row["quantity"] == "work redone")
    assert row["closed_form"] == pytest.approx(float(evaluate(SHORT.scenario).spent.redone_s))
