"""What would have been saved: against the model's own closed forms, a search over intervals, and a
job that was walked step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isnan, nan, sqrt
from typing import Any

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.failures import Recovery, segment
from ckptcost.first.core.mtbf import mtbf_of
from ckptcost.first.core.optimum import best_interval_s
from ckptcost.first.fleet.figures import fleet_of
from ckptcost.first.fleet.savings import (
    ASYNC,
    BEST_INTERVAL,
    OPTIONS,
    TENFOLD,
    TWICE,
    JobSavings,
    Savings,
    savings_of,
    usual_of,
)
from ckptcost.first.questions.statements import standing

WORK_S, STALL_S, DOWN_S, LOAD_S = 900.0, 30.0, 200.0, 40.0
NODES = 2


def _site(copy_bytes_per_s: float = inf, paid_apart: bool = False) -> Scenario:
    cluster = Cluster(
        gpus=nan,
        usd_per_gpu_s=0.001,
        price_includes_electricity=not paid_apart,
        gpu_d2h_bytes_per_s=copy_bytes_per_s,
    )
    return Scenario(
        Checkpoint(),
        Tier(),
        cluster,
        Policy(every=nan),
        Failures(),
        Site(pue=1.5, usd_per_j=1e-8),
        nan,
    )


def _job(
    made: Any, job: str = "a", runs: int = 4, saves: int = 20, fails: bool = True, **of_window: Any
) -> Any:
    """Each run loads, then works and saves so often, and fails right after a save; the next one
    comes when it is down no more."""
    at = 0.0
    for place in range(runs):
        run, began = f"r{place}", at
        made.window(
            job, run, at_s=at, load=True, stall_s=LOAD_S, nodes=NODES, own_gpu_s=LOAD_S * 16
        )
        at += LOAD_S
        for _ in range(saves):
            at += WORK_S
            usual = {
                "stall_s": STALL_S,
                "gpu": 16 * 100.0 * STALL_S,
                "host": 2 * 300.0 * STALL_S,
                "own_gpu_s": 16 * STALL_S,
            }
            made.window(job, run, at_s=at, nodes=NODES, **{**usual, **of_window})
            at += STALL_S
        for host in ("n1", "n2"):
            made.head(
                job,
                run,
                host,
                began_ns=made.instant(began),
                until_ns=made.instant(at),
                exit_code=1.0 if fails else nan,
                over=not fails,
            )
            made.node(job, run, host, windows=saves + 1)
        at += DOWN_S
    return made


def _of(made: Any, s: Scenario | None = None) -> Savings:
    part = made.part()
    return savings_of(part, fleet_of(part, "team", s), s)


def _option(job: JobSavings, name: str) -> Any:
    return next(option for option in job.options if option.id == name)


def test_the_numbers_that_go_in_are_the_jobs_own(written: Callable[[], Any]) -> None:
    (job,) = _of(_job(written())).jobs
    usual = job.usual
    assert (usual.nodes, usual.gpus, usual.interval_s, usual.stall_s) == pytest.approx(
        (2.0, 16.0, WORK_S, STALL_S)
    )
    assert (usual.lag_s, usual.load_s, usual.down_s, usual.asynchronous) == (
        0.0,
        LOAD_S,
        pytest.approx(DOWN_S),
        False,
    )
    assert usual.train_w == pytest.approx(2 * 5000.0)
    assert usual.stall_w == pytest.approx(16 * 100.0 + 2 * 300.0)
    running_s = 4 * (LOAD_S + 20 * (WORK_S + STALL_S))
    assert job.mtbf_s.value == pytest.approx(running_s / 4)
    garwood = mtbf_of(4, running_s)
    assert (job.mtbf_s.low, job.mtbf_s.high) == pytest.approx((garwood.low, garwood.high))


@pytest.mark.parametrize("expected", [3, 8])
def test_watts_are_of_all_nodes_whether_they_are_there_or_not(
    written: Callable[[], Any], expected: int
) -> None:
    """Two of them say what one draws; energy saved has one sign for all of them."""
    here, there = _job(written()), _job(written())
    for head in there.heads:
        head["nodes"] = expected
    (whole,), (part,) = _of(here).jobs, _of(there).jobs
    assert part.usual.nodes == expected
    assert part.usual.train_w == pytest.approx(expected * 5000.0)
    assert part.usual.stall_w == pytest.approx(expected * (8 * 100.0 + 300.0))
    assert part.usual.stall_w / part.usual.train_w == pytest.approx(
        whole.usual.stall_w / whole.usual.train_w
    )


def test_watts_of_waiting_and_of_a_node_that_nobody_metered(written: Callable[[], Any]) -> None:
    """Of two nodes one is metered: it drew 800 W of GPUs and 300 W beside, and 110 W in the mean
    while it waited; both do, it is taken."""
    of_one = {
        "gpu": 800.0 * STALL_S,
        "host": 300.0 * STALL_S,
        "wait": 110.0 * STALL_S,
        "gpu_nodes": 1,
        "host_nodes": 1,
        "wait_nodes": 1,
    }
    (job,) = _of(_job(written(), **of_one)).jobs
    assert job.usual.stall_w == pytest.approx(2 * (800.0 + 300.0 + 110.0))


def test_the_best_interval_is_the_models_and_youngs_to_first_order(
    written: Callable[[], Any],
) -> None:
    (job,) = _of(_job(written())).jobs
    recovery = Recovery(job.usual.down_s, 0.0, 0.0, LOAD_S, 0.0)
    rate = 1.0 / job.mtbf_s.value
    for name, faster in ((BEST_INTERVAL, 1.0), (TWICE, 2.0), (TENFOLD, 10.0)):
        option, stall_s = _option(job, name), STALL_S / faster
        interval_s = best_interval_s(stall_s, recovery, rate)
        assert option.interval_s.value == pytest.approx(interval_s)
        assert option.interval_s.value == pytest.approx(
            sqrt(2 * stall_s * job.mtbf_s.value), rel=0.05
        )
        assert option.overhead.value == pytest.approx(
            1.0 - interval_s / segment(interval_s, stall_s, 0.0, recovery, rate).total_s
        )
        was = segment(WORK_S, STALL_S, 0.0, recovery, rate).total_s / WORK_S
        then = segment(interval_s, stall_s, 0.0, recovery, rate).total_s / interval_s
        assert option.gpu_s.value == pytest.approx((was - then) * job.usual.useful_gpu_s)


def test_no_interval_does_better_than_the_best(written: Callable[[], Any]) -> None:
    (job,) = _of(_job(written())).jobs
    recovery, rate = Recovery(job.usual.down_s, 0.0, 0.0, LOAD_S, 0.0), 1.0 / job.mtbf_s.value
    tried = np.geomspace(10.0, 1e5, 20_000)
    least = float(np.min(segment(tried, STALL_S, 0.0, recovery, rate).total_s / tried))
    assert 1.0 / (1.0 - _option(job, BEST_INTERVAL).overhead.value) == pytest.approx(
        least, rel=1e-6
    )


def test_a_job_that_has_the_best_interval_has_nothing_to_win_from_it(
    written: Callable[[], Any],
) -> None:
    """And the low end of the range is nothing where the rates of failures that are possible have it
    as their best."""
    made = written()
    rate_of = 4 / (4 * 21 * (WORK_S + STALL_S))
    stall_s = WORK_S**2 * rate_of / 2  # Young's rule the other way round
    made = _job(made, stall_s=stall_s, own_gpu_s=16 * stall_s)
    (job,) = _of(made).jobs
    best = _option(job, BEST_INTERVAL)
    assert best.gpu_s.value == pytest.approx(0.0, abs=1e-3 * job.usual.useful_gpu_s)
    assert best.gpu_s.low == pytest.approx(0.0, abs=1e-4 * job.usual.useful_gpu_s)
    assert best.gpu_s.low <= best.gpu_s.value <= best.gpu_s.high
    assert best.gpu_s.high > 5 * best.gpu_s.value
    assert _option(job, TWICE).gpu_s.low > 0


def test_energy_is_of_work_done_again_and_of_standing_and_dollars_follow(
    written: Callable[[], Any],
) -> None:
    s = _site(paid_apart=True)
    (job,) = _of(_job(written()), s).jobs
    recovery, rate = Recovery(job.usual.down_s, 0.0, 0.0, LOAD_S, 0.0), 1.0 / job.mtbf_s.value
    option = _option(job, BEST_INTERVAL)
    interval_s = option.interval_s.value
    was, then = (
        segment(WORK_S, STALL_S, 0.0, recovery, rate),
        segment(interval_s, STALL_S, 0.0, recovery, rate),
    )
    work = was.work_s / WORK_S - then.work_s / interval_s
    still = (was.stall_s + was.load_s) / WORK_S - (then.stall_s + then.load_s) / interval_s
    joules = job.usual.useful_s * 1.5 * (work * 10_000.0 + still * 2200.0)
    assert option.energy_j.value == pytest.approx(joules)
    assert option.cost_usd.value == pytest.approx(0.001 * option.gpu_s.value + 1e-8 * joules)
    (without,) = _of(_job(written())).jobs
    assert isnan(_option(without, BEST_INTERVAL).cost_usd.value)
    assert _option(without, BEST_INTERVAL).energy_j.value == pytest.approx(joules / 1.5)


def test_saving_beside_training_takes_the_copy_or_at_best_nothing(
    written: Callable[[], Any],
) -> None:
    (job,) = _of(_job(written())).jobs
    most = _option(job, ASYNC)
    assert most.why == "NO_COPY_RATE"
    assert most.interval_s.value == STALL_S  # until the one before is safe
    (copied,) = _of(
        _job(written()), _site(copy_bytes_per_s=1e9 / 16)
    ).jobs  # the 1e9 bytes in one second
    option, recovery, rate = (
        _option(copied, ASYNC),
        Recovery(copied.usual.down_s, 0.0, 0.0, LOAD_S, 0.0),
        1.0 / copied.mtbf_s.value,
    )
    assert option.why == ""
    assert option.interval_s.value == pytest.approx(best_interval_s(1.0, recovery, rate))
    then = segment(option.interval_s.value, 1.0, STALL_S, recovery, rate)
    assert option.overhead.value == pytest.approx(1.0 - option.interval_s.value / then.total_s)
    assert most.gpu_s.value > option.gpu_s.value


def test_a_job_that_saves_beside_training_wins_a_shorter_lag_from_a_faster_tier(
    written: Callable[[], Any],
) -> None:
    (job,) = _of(_job(written(), stall_s=2.0, drain_s=400.0, own_gpu_s=32.0)).jobs
    assert job.usual.asynchronous
    assert [option.id for option in job.options] == [BEST_INTERVAL, TWICE, TENFOLD]
    recovery, rate = Recovery(job.usual.down_s, 0.0, 0.0, LOAD_S, 0.0), 1.0 / job.mtbf_s.value
    option = _option(job, TENFOLD)
    then = segment(option.interval_s.value, 2.0, 40.0, recovery, rate)
    assert option.overhead.value == pytest.approx(1.0 - option.interval_s.value / then.total_s)
    assert all(
        option.interval_s.value >= lag_s
        for option, lag_s in zip(job.options, (400.0, 200.0, 40.0), strict=True)
    )


def test_without_failures_values_are_the_least(written: Callable[[], Any]) -> None:
    (job,) = _of(_job(written(), runs=1, fails=False)).jobs
    assert job.why == "NO_FAILURES"
    assert job.modelled_overhead.value == pytest.approx(
        STALL_S / (WORK_S + STALL_S)
    )  # as measured: none was lost to failures
    assert job.ratio == pytest.approx(1.0, abs=0.1)
    best = _option(job, BEST_INTERVAL)
    # never to save would save all of it
    assert best.gpu_s.high == pytest.approx(STALL_S / WORK_S * job.usual.useful_gpu_s, rel=1e-3)
    assert 0.0 <= best.gpu_s.value == best.gpu_s.low < best.gpu_s.high
    recovery = Recovery(0.0, 0.0, 0.0, LOAD_S, 0.0)
    # the best one is not known, only that it is no shorter than for as many failures as there can
    # have been
    assert isnan(best.interval_s.value)
    assert best.interval_s.low == pytest.approx(
        best_interval_s(STALL_S, recovery, 1.0 / job.mtbf_s.low)
    )
    assert best.interval_s.high == inf


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"failed": True}, "NO_SAVES"),
        ({"stall_s": nan}, "NO_STALL"),
        ({"stall_s": 0.0}, "NO_STALL"),
    ],
)
def test_why_nothing_can_be_said(
    written: Callable[[], Any], more: dict[str, Any], why: str
) -> None:
    found = _of(_job(written(), **more))
    assert [(job.why, job.options) for job in found.jobs] == [(why, ())]
    assert [(each.jobs, isnan(each.gpu_s.value)) for each in found.whole] == [(0, True)] * 4


def test_one_save_a_run_has_its_interval_from_the_running_time(written: Callable[[], Any]) -> None:
    (job,) = _of(_job(written(), saves=1)).jobs
    assert job.usual.interval_s == pytest.approx(WORK_S)


def test_all_is_the_sum_of_the_jobs(written: Callable[[], Any]) -> None:
    made = _job(_job(written(), "a"), "b", stall_s=2.0, drain_s=400.0, own_gpu_s=32.0)
    found = _of(made, _site())
    assert [each.jobs for each in found.whole] == [2, 2, 2, 1]
    for each, name in zip(found.whole, OPTIONS, strict=True):
        options = [option for job in found.jobs for option in job.options if option.id == name]
        for what in ("gpu_s", "energy_j", "cost_usd"):
            for end in ("value", "low", "high"):
                assert getattr(getattr(each, what), end) == pytest.approx(
                    sum(getattr(getattr(option, what), end) for option in options)
                )


@pytest.mark.parametrize(("drain_s", "seed"), [(0.0, 1), (300.0, 2)])
def test_the_model_is_near_a_job_that_was_walked_step_by_step(
    written: Callable[[], Any], drain_s: float, seed: int
) -> None:
    """Gaps drawn from an exponential law, 500 of them; a save that was not safe is lost."""
    made, draw, at = written(), np.random.default_rng(seed), 0.0
    mtbf_s, stall_s = 6000.0, 60.0
    for place in range(500):
        run, began, ends = f"r{place:03d}", at, at + float(draw.exponential(mtbf_s))
        if place:
            made.window("a", run, at_s=at, load=True, stall_s=min(LOAD_S, ends - at), nodes=1)
            at += LOAD_S
        while at + WORK_S < ends:
            at += WORK_S
            made.window(
                "a",
                run,
                at_s=at,
                stall_s=min(stall_s, ends - at),
                drain_s=drain_s,
                nodes=1,
                failed=at + stall_s + drain_s > ends,
            )
            at += stall_s
        made.head(
            "a", run, began_ns=made.instant(began), until_ns=made.instant(ends), exit_code=1.0
        ).node("a", run)
        at = ends + DOWN_S
    (job,) = _of(made).jobs
    assert job.mtbf_s.value == pytest.approx(mtbf_s, rel=0.1)
    assert job.ratio == pytest.approx(1.0, abs=0.05)
    assert job.modelled_overhead.low < job.measured_overhead < job.modelled_overhead.high


@pytest.mark.parametrize("fails", [True, False])
def test_a_job_of_which_no_running_time_is_known_has_no_savings(
    written: Callable[[], Any], fails: bool
) -> None:
    made = (
        written()
        .head("b", exit_code=1.0 if fails else nan)
        .node("b")
        .window("b")
        .window("b", at_s=600)
    )
    made.head(until_ns=made.instant(0)).node().window().window(at_s=600)
    nothing, some = savings_of(made.part(), fleet_of(made.part(), "job", None), None).jobs
    assert (nothing.job, nothing.why, nothing.options) == ("a", "NO_EXPOSURE", ())
    assert (some.job, some.why) == ("b", "" if fails else "NO_FAILURES")


def test_beside_training_a_save_is_safe_after_what_it_took_before_and_its_drain(
    written: Callable[[], Any],
) -> None:
    """As much as 2 s of copying hold training up, and then the 20 s of the save and the 5 s of its
    drain pass."""
    made = written().head(exit_code=1.0, gpus=1.0).node()
    for at in range(5):
        made.window(at_s=700 * at, stall_s=20.0, drain_s=5.0, bytes=2e9)
    fleet = fleet_of(made.part(), "job", None)
    (usual,) = usual_of(made.part(), fleet)
    assert (usual.stall_s, usual.lag_s, usual.asynchronous, usual.interval_s) == (
        20.0,
        5.0,
        False,
        680.0,
    )
    s = standing(Catalog(), None, (), "").scenario
    s = replace(s, cluster=replace(s.cluster, gpu_d2h_bytes_per_s=1e9))
    (job,) = savings_of(made.part(), fleet, s).jobs
    option = next(each for each in job.options if each.id == ASYNC)
    rate = 1.0 / job.mtbf_s.value
    recovery = Recovery(usual.down_s, 0.0, 0.0, usual.load_s, 0.0)
    interval_s = max(float(best_interval_s(2.0, recovery, rate)), 25.0)
    assert option.interval_s.value == pytest.approx(interval_s)
    assert option.overhead.value == pytest.approx(
        1.0 - interval_s / segment(interval_s, 2.0, 25.0, recovery, rate).total_s
    )


def test_a_usual_save_is_the_mean_one_and_not_the_middle_one(written: Callable[[], Any]) -> None:
    made = written().head().node()
    for at, stall_s in enumerate((10.0, 10.0, 40.0)):
        made.window(
            at_s=600 * at, stall_s=stall_s, drain_s=(0.0, 0.0, 9.0)[at], bytes=(1e9, 1e9, 4e9)[at]
        )
    (usual,) = usual_of(made.part(), fleet_of(made.part(), "job", None))
    assert (usual.stall_s, usual.lag_s, usual.bytes, usual.interval_s) == (20.0, 3.0, 2e9, 590.0)
