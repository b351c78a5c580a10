"""What planted slips in a fleet's figures showed to be told by no other test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isnan, nan
from typing import Any

import pytest

from ckptcost.catalog.store import Catalog
from ckptcost.core.failures import Recovery, segment
from ckptcost.core.optimum import best_interval_s
from ckptcost.fleet.figures import fleet_of
from ckptcost.fleet.grouping import cells_of
from ckptcost.fleet.lines import Amount, Line
from ckptcost.fleet.missing_nodes import NO_FILE, Absent, lacking_of
from ckptcost.fleet.node_day import LINES
from ckptcost.fleet.savings import ASYNC, savings_of, usual_of
from ckptcost.questions.statements import standing

DAY, NEXT = "2026-11-02", "2026-11-03"


def missing_of(made: Any, *settings: str) -> Line:
    s = standing(Catalog(), None, settings, "").scenario if settings else None
    return next(
        line for line in fleet_of(made.part(), "job", s).whole.lines if line.id == "missing_nodes"
    )


@pytest.mark.parametrize(
    ("windows", "saves", "joules"), [(4, 2, 600.0), (1, 1, 300.0), (4, 4, 1200.0)]
)
def test_storage_of_missing_nodes_is_of_their_saves_only(
    written: Callable[[], Any], windows: int, saves: int, joules: float
) -> None:
    """Per window: what storage takes in a save, times the share of windows that are saves; a load
    stores nothing."""
    made = written()
    for host in ("n1", "n2"):
        made.head(host=host, nodes=3)
        made.node(
            host=host, windows=windows, saves=saves, storage_j=300.0 * saves, storage_windows=saves
        )
    for at in range(windows):
        made.window(at_s=60 * at, nodes=2, load=at >= saves)
    assert missing_of(made).energy_j.value == pytest.approx(joules)


def test_joules_that_cost_nothing_need_not_be_known_to_price_missing_nodes(
    written: Callable[[], Any],
) -> None:
    made = written()
    dark = {f"{line}_j": nan for line in (*LINES, "wait")} | {
        f"{line}_windows": 0 for line in LINES
    }
    for host in ("n1", "n2"):
        made.head(host=host, nodes=3).node(host=host, own_gpu_s=3600.0, **dark)
    made.window(nodes=2, gpu=nan, host=nan, slow=nan, storage=nan, wait=nan)
    price = "cluster.gpu_price=2 USD/GPU-h"
    included = missing_of(
        made,
        price,
        "cluster.price_includes_electricity=true",
        "tier.boundary=node",
        "site.tariff=1 USD/kWh",
    )
    assert isnan(included.energy_j.value)
    assert included.cost_usd.value == pytest.approx(2.0)
    apart = missing_of(
        made, price, "cluster.price_includes_electricity=false", "site.tariff=1 USD/kWh"
    )
    assert isnan(apart.cost_usd.value)


def test_one_node_alone_has_a_low_end_and_no_high_one(written: Callable[[], Any]) -> None:
    made = written().head(nodes=2).node(own_gpu_s=3600.0, gpu_j=7.2e6).window()
    assert missing_of(made).energy_j == Amount(7.2e6, 0.0, inf)


def test_a_day_with_a_file_and_no_save_misses_who_has_none(written: Callable[[], Any]) -> None:
    """And on a day without any file a node lacks what it did not have of its windows."""
    made = written().head(host="n1").head(host="n2").node(host="n1").node(host="n2").window(nodes=2)
    made.head(host="n1", day=NEXT)
    (run,) = lacking_of(made.part(), cells_of(made.part()))
    assert run.missing == (Absent("n2", NO_FILE, 0, (NEXT,)),)
    made = written().head(host="n1").head(host="n2").node(host="n1").node(host="n2").window(nodes=2)
    made.window(day=NEXT).node(host="n1", day=NEXT)
    (run,) = lacking_of(made.part(), cells_of(made.part()))
    assert run.missing == (Absent("n2", NO_FILE, 1, (NEXT,)),)


def test_days_have_no_goodput_whatever_was_asked_for(written: Callable[[], Any]) -> None:
    made = written().head().node().window().head(day=NEXT).node(day=NEXT).window(day=NEXT)
    for by in ("day", "job", "team"):
        fleet = fleet_of(made.part(), by, None)
        assert all(isnan(group.goodput) and isnan(group.useful_gpu_s) for group in fleet.trend)
        assert not isnan(fleet.whole.goodput)
        assert [group.name for group in fleet.trend] == [DAY, NEXT]


def test_the_cause_that_cost_most_is_first_and_one_of_unknown_cost_last(
    written: Callable[[], Any],
) -> None:
    """One long loss by exit 3, two short ones by exit 1, and one on GPUs that nobody counted."""
    made = written()
    for job, code, lasts_s, gpus in (
        ("a", 3.0, 900.0, 8.0),
        ("b", 1.0, 100.0, 8.0),
        ("c", 1.0, 100.0, 8.0),
        ("d", 7.0, 5000.0, nan),
    ):
        made.head(job, until_ns=made.instant(lasts_s), exit_code=code, gpus=gpus).node(job).window(
            job, stall_s=1.0
        )
    causes = fleet_of(made.part(), "job", None).failures.causes
    assert [(each.cause, each.failures) for each in causes] == [
        ("EXIT_3", 1),
        ("EXIT_1", 2),
        ("EXIT_7", 1),
    ]
    assert [each.lost_gpu_s for each in causes[:2]] == pytest.approx([899.0 * 8, 2 * 99.0 * 8])
    assert isnan(causes[2].lost_gpu_s)


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
