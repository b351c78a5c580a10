"""How runs ended, what was lost with them and until the next one, and how often a node fails:
against timelines worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf, isnan, nan
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from ckptcost.first.core.useful import RunSpan, useful_of
from ckptcost.first.fleet.figures import Fleet, fleet_of
from ckptcost.first.fleet.lines import FleetLine
from ckptcost.first.fleet.runs_seen import CUT, FAILED, OPEN, OVER, PLANNED, RunSeen, shares_of

DAY, NEXT = "2026-11-02", "2026-11-03"


def _run(
    made: Any, run: str, began_s: float, ended_s: float, job: str = "a", hosts: int = 2, **more: Any
) -> None:
    for host in range(hosts):
        of_host = {
            name: value[host] if isinstance(value, list) else value for name, value in more.items()
        }
        made.head(
            job=job,
            run=run,
            host=f"n{host}",
            began_ns=made.instant(began_s),
            until_ns=made.instant(ended_s),
            **of_host,
        )
        made.node(job=job, run=run, host=f"n{host}")


def _line(fleet: Fleet, name: str) -> FleetLine:
    return next(line for line in fleet.whole.lines if line.id == name)


def _states(fleet: Fleet) -> list[tuple[str, str]]:
    return [(run.state, run.cause) for run in fleet.runs]


@pytest.mark.parametrize(
    ("code", "over", "followed", "state", "cause"),
    [
        (nan, False, True, FAILED, CUT),
        (nan, False, False, OPEN, ""),
        (nan, True, True, PLANNED, ""),
        (nan, True, False, OVER, ""),
        (0.0, True, True, PLANNED, ""),
        (0.0, False, False, OVER, ""),
        (1.0, True, True, FAILED, "EXIT_1"),
        (1.0, True, False, FAILED, "EXIT_1"),
        (-11.0, True, False, FAILED, "EXIT_-11"),
        ([143.0, 1.0], True, True, FAILED, "EXIT_1"),  # the launcher ended the other
        ([143.0, nan], False, True, FAILED, "EXIT_143"),
        ([0.0, nan], False, True, PLANNED, ""),
        ([0.0, 7.0], True, True, FAILED, "EXIT_7"),
    ],
)
def test_how_a_run_ended(
    written: Callable[[], Any], code: Any, over: bool, followed: bool, state: str, cause: str
) -> None:
    made = written()
    _run(made, "r1", 0, 1000, exit_code=code, over=over)
    if followed:
        _run(made, "r2", 2000, 3000)
    fleet = fleet_of(made.part(), "job", None)
    assert _states(fleet)[0] == (state, cause)
    assert fleet.failures.failures == (state == FAILED)


def _failed_once(written: Callable[[], Any]) -> Any:
    """1000 s, of which 100 s to 110 s were a save and 600 s to 620 s another, then 300 s of
    nothing, then 1000 s with a load of 40 s."""
    made = written()
    _run(made, "r1", 0, 1000, exit_code=1.0, train_gpu_w=[4000.0, 4400.0])
    _run(made, "r2", 1300, 2300)
    made.window(run="r1", at_s=100, stall_s=10.0, nodes=2).window(
        run="r1", at_s=600, stall_s=20.0, nodes=2
    )
    made.window(run="r1", at_s=800, stall_s=30.0, nodes=2, failed=True)
    made.window(run="r2", at_s=1300, stall_s=40.0, nodes=2, load=True)
    return made


def test_what_a_failure_costs_by_hand(written: Callable[[], Any]) -> None:
    """Kept: what was there at 600 s. Lost: 400 s less the two stalls in it."""
    fleet = fleet_of(_failed_once(written).part(), "job", None)
    first, second = fleet.runs
    assert first.last_kept_ns == written.instant(600)
    assert first.spent.lost_s == pytest.approx(350.0)
    assert (first.spent.down_s, first.restart_s) == pytest.approx((300.0, 300.0))
    assert (first.nodes, first.gpus) == (2, 16.0)
    redone, restart = _line(fleet, "redone_work"), _line(fleet, "restart")
    assert redone.gpu_s.value == pytest.approx(350.0 * 16)
    assert redone.estimated
    assert redone.energy_j == pytest.approx(
        (5200.0 * 700.0,) * 3
    )  # both nodes are there: their mean is no sample
    assert restart.gpu_s.value == pytest.approx(300.0 * 16)
    assert isnan(restart.energy_j.value)
    assert "restart" in fleet.whole.totals.lacks["energy_j"]
    # 2300 s of wall; 960 s of the second run, and of the first 600 s less the save of 10 s
    assert fleet.whole.goodput == pytest.approx((960.0 + 590.0) / 2300.0)
    assert fleet.whole.wall_gpu_s == pytest.approx(2300.0 * 16)
    assert second.state == OPEN
    (cause,) = fleet.failures.causes
    assert cause == ("EXIT_1", 1, pytest.approx(650.0 * 16))


def test_nodes_that_are_missing_lose_their_work_too(written: Callable[[], Any]) -> None:
    made = _failed_once(written)
    for head in made.heads:
        head["nodes"] = 4
    fleet = fleet_of(made.part(), "job", None)
    assert fleet.runs[0].gpus == 32.0
    assert _line(fleet, "redone_work").gpu_s.value == pytest.approx(350.0 * 32)
    reach = stats.t.ppf(0.975, 1) * 200.0
    node_s = 350.0 * 4
    assert _line(fleet, "redone_work").energy_j == pytest.approx(
        (5200.0 * node_s, (5200.0 - reach) * node_s, (5200.0 + reach) * node_s)
    )
    assert fleet.failures.node_s == pytest.approx(4 * 2000.0)


@pytest.mark.parametrize(
    ("gpu_w", "host_w", "value", "high"),
    [(nan, 1000.0, nan, nan), (4000.0, nan, 4000.0 * 700, inf)],
)
def test_watts_that_nobody_read_leave_an_end_open_or_nothing(
    written: Callable[[], Any], gpu_w: float, host_w: float, value: float, high: float
) -> None:
    made = _failed_once(written)
    for head in made.heads:
        head |= {"train_gpu_w": gpu_w, "train_host_w": host_w}
    energy = _line(fleet_of(made.part(), "job", None), "redone_work").energy_j
    assert (energy.value, energy.high) == pytest.approx((value, high), nan_ok=True)


def test_a_pause_that_was_planned_is_nobodys_loss(written: Callable[[], Any]) -> None:
    made = written()
    _run(made, "r1", 0, 1000, exit_code=0.0)
    _run(made, "r2", 50_000, 51_000)
    fleet = fleet_of(made.part(), "job", None)
    assert fleet.runs[0].state == PLANNED
    assert fleet.runs[0].spent.down_s == pytest.approx(49_000.0)
    assert "restart" not in [line.id for line in fleet.whole.lines]
    assert fleet.whole.goodput == pytest.approx(1.0)
    assert fleet.whole.failures == 0


def test_a_run_that_kept_nothing_lost_all_of_its_work(written: Callable[[], Any]) -> None:
    made = written()
    _run(made, "r1", 0, 1000, exit_code=9.0)
    made.window(run="r1", at_s=0, stall_s=50.0, nodes=2, load=True)
    fleet = fleet_of(made.part(), "job", None)
    assert fleet.runs[0].spent.lost_s == pytest.approx(950.0)
    assert fleet.whole.goodput == pytest.approx(0.0)


def test_the_mean_time_between_failures_is_of_a_node(written: Callable[[], Any]) -> None:
    """Three failures in 4 x 1000 s on two nodes, with Garwood's interval."""
    made = written()
    for at in range(4):
        _run(made, f"r{at}", 2000 * at, 2000 * at + 1000, exit_code=1.0 if at < 3 else nan)
    fleet = fleet_of(made.part(), "job", None)
    for seen in (fleet.failures.node_mtbf_s, fleet.whole.node_mtbf_s):
        assert seen.value == pytest.approx(8000.0 / 3)
        assert seen.low == pytest.approx(8000.0 / (stats.chi2.ppf(0.975, 8) / 2))
        assert seen.high == pytest.approx(8000.0 / (stats.chi2.ppf(0.025, 6) / 2))
    assert fleet.failures.shape.why == "NO_SPREAD"  # all after 1000 s


def test_without_a_failure_the_mean_time_has_no_end(written: Callable[[], Any]) -> None:
    made = written()
    _run(made, "r1", 0, 1000, exit_code=0.0)
    seen = fleet_of(made.part(), "job", None).failures
    assert (seen.node_mtbf_s.value, seen.node_mtbf_s.why) == (inf, "NO_FAILURES")
    assert seen.node_mtbf_s.low == pytest.approx(2000.0 / stats.expon.ppf(0.975))
    assert seen.causes == ()


def test_running_time_lies_on_the_days_that_it_is_in(written: Callable[[], Any]) -> None:
    made = written()
    made.head(day=DAY, began_ns=made.instant(80_000), until_ns=made.instant(86_400)).node(day=DAY)
    made.head(
        day=NEXT, began_ns=made.instant(86_400), until_ns=made.instant(90_000), exit_code=2.0
    ).node(day=NEXT)
    fleet = fleet_of(made.part(), "day", None)
    assert [group.running_s for group in fleet.groups] == pytest.approx([6400.0, 3600.0])
    assert [group.failures for group in fleet.groups] == [0, 1]
    assert [isnan(group.goodput) for group in fleet.groups] == [True, True]
    assert not isnan(fleet.whole.goodput)
    assert sum(fleet.runs[0].running_s.values()) == pytest.approx(10_000.0)


def test_goodput_without_gpus_is_by_nodes_and_a_run_without_instants_is_none(
    written: Callable[[], Any],
) -> None:
    made = _failed_once(written)
    for head in made.heads:
        head["gpus"] = nan
    made.head(job="z", began_ns=0, until_ns=0)
    fleet = fleet_of(made.part(), "job", None)
    assert fleet.whole.goodput == pytest.approx(1550.0 / 2300.0)
    assert isnan(fleet.whole.wall_gpu_s)
    assert isnan(_line(fleet, "restart").gpu_s.value)
    assert [run.job for run in fleet.runs] == ["a", "a"]


@pytest.mark.parametrize(
    ("began", "state"),
    [(500, OPEN), (900, OPEN), (941, FAILED), (1000, FAILED), (5000, FAILED)],
)
def test_a_run_is_followed_by_one_that_begins_when_it_is_over(
    written: Callable[[], Any], began: int, state: str
) -> None:
    """Up to a minute sooner, by clocks that differ. What begins meanwhile goes on beside it."""
    made = written()
    _run(made, "r1", 0, 1000)
    _run(made, "r2", began, 6000, over=True, exit_code=0.0)
    fleet = fleet_of(made.part(), "job", None)
    assert _states(fleet) == [(state, CUT if state == FAILED else ""), (OVER, "")]


def test_a_run_that_comes_and_goes_beside_another_is_no_restart(written: Callable[[], Any]) -> None:
    """The long one fails at last, and is down until the third; the short one between has nothing
    after it."""
    made = written()
    _run(made, "long", 0, 80_000, exit_code=1.0)
    _run(made, "short", 1000, 3000, exit_code=0.0, over=True)
    assert _states(fleet_of(made.part(), "job", None)) == [(FAILED, "EXIT_1"), (OVER, "")]
    _run(made, "next", 81_000, 90_000)
    fleet = fleet_of(made.part(), "job", None)
    assert _states(fleet) == [(FAILED, "EXIT_1"), (PLANNED, ""), (OPEN, "")]
    assert [run.restart_s for run in fleet.runs] == pytest.approx([1000.0, 0.0, 0.0])
    assert _line(fleet, "restart").gpu_s.value == pytest.approx(16_000.0)
    tasks = written()
    for at in range(4):  # an array of tasks under one name, of half a minute each, cut off
        _run(tasks, f"t{at}", at, 30 + at)
    assert {state for state, _ in _states(fleet_of(tasks.part(), "job", None))} == {OPEN}


def _saves_of(made: Any, run: str, *stalls_s: float, at_s: float = 100.0) -> None:
    for place, stall_s in enumerate(stalls_s):
        made.window(run=run, at_s=at_s + 100 * place, stall_s=stall_s, nodes=2)


def test_a_save_of_unknown_length_is_taken_to_be_as_long_as_the_others(
    written: Callable[[], Any],
) -> None:
    """10 and 30 s are known, two are not: 80 s of 1000; the failed save at the end stays as it
    is."""
    made = written()
    _run(made, "r1", 0, 1000)
    _saves_of(made, "r1", 10.0, nan, 30.0, nan)
    made.window(run="r1", at_s=900, stall_s=nan, failed=True, nodes=2).window(
        run="r1", at_s=0, stall_s=5.0, load=True, nodes=2
    )
    fleet = fleet_of(made.part(), "job", None)
    (run,) = fleet.runs
    assert (run.spent.stall_s, run.spent.useful_s, run.assumed) == pytest.approx((80.0, 915.0, 2))
    assert fleet.whole.goodput == pytest.approx(0.915)
    assert fleet.whole.unknown == {"stall": 3, "done_stall": 2, "assumed": 2}


def test_where_no_stall_is_known_nobody_knows_the_work(written: Callable[[], Any]) -> None:
    made = written()
    _run(made, "r1", 0, 1000)
    _saves_of(made, "r1", nan, nan)
    fleet = fleet_of(made.part(), "job", None)
    spent = fleet.runs[0].spent
    assert (spent.wall_s, spent.down_s, spent.lost_s) == pytest.approx((1000.0, 0.0, 0.0))
    assert all(
        isnan(each)
        for each in (
            spent.stall_s,
            spent.useful_s,
            spent.goodput,
            fleet.whole.goodput,
            fleet.whole.useful_gpu_s,
        )
    )
    assert fleet.whole.unknown == {"stall": 2, "done_stall": 2, "useful": 1}
    made = written()
    _run(made, "r1", 0, 1000)
    made.window(run="r1", at_s=0, stall_s=nan, load=True, nodes=2)
    assert isnan(fleet_of(made.part(), "job", None).whole.goodput)
    made = written()  # all of it is lost, whatever its load took
    _run(made, "r1", 0, 1000, exit_code=1.0)
    made.window(run="r1", at_s=0, stall_s=nan, load=True, nodes=2)
    assert fleet_of(made.part(), "job", None).whole.goodput == 0.0


@pytest.mark.parametrize(("length", "goodput"), [(1000, 0.95), (1001, nan)])
def test_goodput_is_of_what_is_known_if_that_is_half(
    written: Callable[[], Any], length: int, goodput: float
) -> None:
    made = written()
    _run(made, "r1", 0, 1000, exit_code=0.0)
    _run(made, "r2", 2000, 2000 + length)
    _saves_of(made, "r1", 20.0, 30.0)
    _saves_of(made, "r2", nan, at_s=2100)
    whole = fleet_of(made.part(), "job", None).whole
    assert (whole.goodput, whole.useful_gpu_s) == pytest.approx(
        (goodput, goodput * 2000 * 16), nan_ok=True
    )
    assert whole.unknown["useful"] == 1


def test_a_run_without_gpus_weighs_as_many_as_the_others_nodes_have(
    written: Callable[[], Any],
) -> None:
    """8 GPUs a node at 90 %, 1 GPU at 50 %, and a node that says nothing, at 100 %: as (16 + 1) / 3
    GPUs a node, whichever job it is."""
    made = written()
    for job, hosts, gpus, stall_s in (
        ("big", 2, 8.0, 100.0),
        ("small", 1, 1.0, 500.0),
        ("tiny", 1, nan, 0.0),
    ):
        _run(made, f"{job}-1", 0, 1000, job=job, hosts=hosts, gpus=gpus)
        made.window(job, f"{job}-1", at_s=100, stall_s=stall_s, nodes=hosts)
    whole = fleet_of(made.part(), "team", None).whole
    each = 17 / 3
    assert whole.goodput == pytest.approx((900 * 16 + 500 * 1 + 1000 * each) / (1000 * (17 + each)))
    assert whole.wall_gpu_s == pytest.approx(1000 * (17 + each))


@pytest.mark.parametrize("days", [1, 3])
def test_a_run_whose_nodes_are_all_there_is_no_sample(
    written: Callable[[], Any], days: int
) -> None:
    """One node: its watts, or by how much they vary from day to day."""
    made, watts = written(), [4000.0, 4300.0, 4600.0][:days]
    names = [DAY, NEXT, "2026-11-04"]
    for day, gpu_w in zip(names, watts, strict=False):
        made.head(
            day=day,
            began_ns=made.instant(0),
            until_ns=made.instant(days * 86_400),
            exit_code=1.0,
            nodes=1,
            train_gpu_w=gpu_w,
        )
        made.node(day=day)
    made.window(at_s=50, day=names[days - 1], stall_s=10.0)
    energy, mean = (
        _line(fleet_of(made.part(), "job", None), "redone_work").energy_j,
        sum(watts) / days,
    )
    lost_s = 86_400.0 - 60.0
    reach = stats.t.ppf(0.975, 2) * 300.0 / 3**0.5 if days == 3 else 0.0
    assert energy == pytest.approx(
        tuple((mean + sign * reach + 1000.0) * lost_s for sign in (0, -1, 1))
    )


_TIMES = st.integers(0, 400)


@given(
    st.lists(
        st.tuples(_TIMES, st.integers(0, 200), st.booleans(), _TIMES, st.integers(0, 30)),
        min_size=1,
        max_size=8,
    )
)
def test_each_runs_part_adds_up_to_the_jobs(rows: list[tuple[int, int, bool, int, int]]) -> None:
    """Overlapping or not, the parts are none of them negative and come to what the core says of all
    runs at once."""
    spans = sorted(
        (
            RunSpan(float(at), float(at + length), failed, float(kept), float(stall), 0.0)
            for at, length, failed, kept, stall in rows
        ),
        key=lambda span: (span.began_s, span.ended_s),
    )
    parts, whole = shares_of(spans), useful_of(spans)
    for name in ("wall_s", "down_s", "lost_s", "stall_s", "load_s", "useful_s", "failures"):
        assert sum(getattr(part, name) for part in parts) == pytest.approx(
            getattr(whole, name), abs=1e-6
        ), name
        assert all(getattr(part, name) >= -1e-9 for part in parts)
    for part in parts:
        assert part.wall_s == pytest.approx(
            part.down_s + part.lost_s + part.stall_s + part.load_s + part.useful_s, abs=1e-9
        )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(
    st.lists(
        st.tuples(st.integers(1, 5000), st.integers(0, 800), st.booleans()), min_size=1, max_size=6
    )
)
def test_lines_are_what_the_core_says_of_the_job(
    written: Callable[[], Any], rows: list[tuple[int, int, bool]]
) -> None:
    """Runs one after another without saves: what failed is lost altogether, what lies after a
    failure is a restart."""
    made, at = written(), 0
    ends: list[tuple[int, int, bool]] = []
    for place, (length, gap, failed) in enumerate(rows):
        _run(made, f"r{place}", at, at + length, exit_code=1.0 if failed else 0.0)
        ends.append((at, at + length, failed))
        at += length + gap
    fleet = fleet_of(made.part(), "job", None)
    lost = sum(end - begin for begin, end, failed in ends if failed)
    down = sum(later[0] - first[1] for first, later in pairwise(ends) if first[2])
    lines = {line.id: line for line in fleet.whole.lines}
    assert (lines["redone_work"].gpu_s.value if "redone_work" in lines else 0.0) == pytest.approx(
        16.0 * lost
    )
    assert (lines["restart"].gpu_s.value if "restart" in lines else 0.0) == pytest.approx(
        16.0 * down
    )
    states: list[RunSeen] = list(fleet.runs)
    assert [run.state == FAILED for run in states] == [failed for _, _, failed in rows]
