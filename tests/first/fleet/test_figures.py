"""Sums of a fleet against sums by hand and by brute force; any grouping comes to the same whole;
prices as a statement of one run has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import fsum, inf, isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.core.reconcile import Energy, unknown
from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.errors import InputError
from ckptcost.first.fleet import frames
from ckptcost.first.fleet.figures import Fleet, GroupFigures, fleet_of
from ckptcost.first.fleet.grouping import BY, NOT_SAID
from ckptcost.first.fleet.lines import NEEDED, FleetAmount, FleetLine
from ckptcost.first.fleet.worst import worst_of
from ckptcost.first.jobs.measured_bill import at_facility, line_of
from ckptcost.first.report.statements.run_lines import LineTaken, ends_of

DAY, NEXT = "2026-11-02", "2026-11-03"
USD_PER_GPU_S, USD_PER_J, KG_PER_J = 2.5 / HOUR_S, 0.1 / KWH_J, 0.4 / KWH_J


def _site(electricity_in_price: bool = True, **of_site: float) -> Scenario:
    return Scenario(
        Checkpoint(),
        Tier(boundary="storage-system"),
        Cluster(
            gpus=nan,
            usd_per_gpu_s=USD_PER_GPU_S,
            embodied_kgco2e_per_gpu_s=1e-5,
            price_includes_electricity=electricity_in_price,
        ),
        Policy(every=nan),
        Failures(),
        Site(
            **{
                "pue": 1.25,
                "usd_per_j": USD_PER_J,
                "kgco2e_per_j": KG_PER_J,
                "market_kgco2e_per_j": KG_PER_J / 2,
                "water_l_per_j": 5e-7,
                **of_site,
            }
        ),
        nan,
    )


def _line(group: GroupFigures, name: str) -> FleetLine:
    return next(line for line in group.lines if line.id == name)


def _two_nodes(written: Callable[[], Any]) -> Any:
    """Two saves, one of which failed, and a load, on two nodes."""
    made = written()
    for host in ("n1", "n2"):
        made.head(host=host, labels='{"team": "blue"}').node(host=host, windows=3)
    made.window(
        at_s=0,
        load=True,
        nodes=2,
        stall_s=4.0,
        own_gpu_s=64.0,
        gpu=(2e4, 1e4, 3e4),
        host=(5e3, 5e3, inf),
        bytes=7e9,
    )
    made.window(
        at_s=100,
        nodes=2,
        own_gpu_s=150.0,
        wait_gpu_s=10.0,
        wait=(4e3, 3e3, 5e3),
        gpu=(5e4, 4e4, 6e4),
        host=1e4,
        storage=300.0,
        slow=-20.0,
    )
    made.window(
        at_s=200,
        nodes=2,
        failed=True,
        stall_s=nan,
        drain_s=nan,
        own_gpu_s=nan,
        wait_gpu_s=nan,
        bytes=nan,
        files=nan,
        gpu=(1e4, 1e4, 1e4),
        gpu_nodes=1,
        host=nan,
        wait=nan,
        slow=nan,
        storage=nan,
    )
    return made


def test_lines_by_hand(written: Callable[[], Any]) -> None:
    (group,) = fleet_of(_two_nodes(written).part(), "job", None).groups
    assert (
        group.jobs,
        group.nodes,
        group.runs,
        group.checkpoints,
        group.failed_saves,
        group.loads,
    ) == (1, 2, 1, 1, 1, 1)
    assert _line(group, "gpu_wait").energy_j == (6e4, 5e4, 7e4)
    assert _line(group, "gpu_wait").known["energy_j"] == (3.0, 4.0)
    assert _line(group, "gpu_wait").gpu_s == (150.0, 150.0, 150.0)
    assert _line(group, "gpu_wait").known["gpu_s"] == (2.0, 4.0)
    assert _line(group, "waiting").energy_j == (4e3, 3e3, 5e3)
    assert _line(group, "waiting").gpu_s.value == 10.0
    assert _line(group, "host_wait").energy_j.value == 1e4
    assert _line(group, "host_wait").gpu_s == (0.0, 0.0, 0.0)
    assert _line(group, "slowdown").energy_j.value == -20.0
    assert _line(group, "storage_write").energy_j.value == 300.0
    assert _line(group, "loading").energy_j == (25e3, 15e3, inf)
    assert _line(group, "loading").gpu_s.value == 64.0
    assert group.totals.energy_j.value == fsum([6e4, 4e3, 1e4, -20.0, 300.0, 25e3])
    assert group.totals.energy_j.high == inf
    assert group.totals.gpu_s.value == 224.0
    assert set(group.totals.lacks["gpu_s"]) == {"gpu_wait", "waiting"}
    assert all(isnan(getattr(group.totals, each).value) for each in FIELDS[2:])
    assert (group.bytes, group.files, group.stall_s, group.load_s) == (1e9, 2.0, 10.0, 4.0)
    assert group.unknown == {"stall": 1}


def test_what_nobody_knows_is_not_nothing_and_what_is_not_there_is(
    written: Callable[[], Any],
) -> None:
    made = (
        written()
        .head()
        .node()
        .window(gpu=nan, host=nan, storage=nan, own_gpu_s=nan, bytes=nan, stall_s=nan, drain_s=nan)
    )
    (group,) = fleet_of(made.part(), "job", None).groups
    assert isnan(_line(group, "gpu_wait").energy_j.value)
    assert isnan(_line(group, "gpu_wait").gpu_s.value)
    assert isnan(group.bytes)
    assert isnan(group.stall_s)
    assert isnan(group.stalls.mean_s)
    assert group.load_s == 0.0
    assert "loading" not in [line.id for line in group.lines]
    assert "gpu_wait" in group.totals.lacks["energy_j"]


def test_an_empty_fleet_has_no_groups_and_no_sums() -> None:
    fleet = fleet_of(frames.put_together([frames.pieces()]), "team", _site())
    assert fleet.groups == fleet.trend == fleet.runs == fleet.lacking == ()
    assert fleet.whole.checkpoints == 0
    assert fleet.whole.totals.energy_j == (0.0, 0.0, 0.0)
    assert isnan(fleet.whole.goodput)
    assert worst_of(frames.put_together([frames.pieces()]), fleet).saves == ()


@pytest.mark.parametrize("electricity_in_price", [True, False])
def test_a_place_prices_each_line_as_a_statement_of_one_run_does(
    written: Callable[[], Any], electricity_in_price: bool
) -> None:
    made = written().head(labels="{}", nodes=1).node(windows=2)
    made.window(at_s=10, load=True, own_gpu_s=40.0, gpu=(2e6, 1e6, 3e6), host=(5e5, 4e5, 6e5))
    made.window(
        at_s=100, gpu=(5e6, 4e6, 6e6), host=(1e6, 9e5, 2e6), storage=(3e5, 2e5, 4e5), slow=0.0
    )
    made.window(
        at_s=200,
        gpu=(6e6, 5e6, 7e6),
        host=(2e6, 9e5, 3e6),
        storage=(4e5, 3e5, 5e5),
        slow=(1e5, 0.0, 2e5),
        drain_s=7.0,
    )
    s = _site(electricity_in_price)
    (group,) = fleet_of(made.part(), "job", s).groups
    joules = {
        "gpu_wait": ([(5e6, 4e6, 6e6), (6e6, 5e6, 7e6)], [80.0, 80.0]),
        "host_wait": ([(1e6, 9e5, 2e6), (2e6, 9e5, 3e6)], [0.0, 0.0]),
        "slowdown": ([(1e5, 0.0, 2e5)], [nan]),  # the first has no drain
        "storage_write": ([(3e5, 2e5, 4e5), (4e5, 3e5, 5e5)], [0.0, 0.0]),
        "loading": ([(25e5, 14e5, 36e5)], [40.0]),
    }
    of = {
        "energy_j": "energy",
        "gpu_s": "gpu_time_lost",
        "cost_usd": "cost",
        "location_kgco2e": "emissions_location",
        "market_kgco2e": "emissions_market",
        "embodied_kgco2e": "embodied",
        "water_l": "water",
    }
    people = {"energy_j": KWH_J, "gpu_s": HOUR_S}
    for name, (energies, gpu_s) in joules.items():
        taken = []
        for ends, seconds in zip(energies, gpu_s, strict=True):
            energy = at_facility(Energy(*ends), s)
            taken.append(
                LineTaken(
                    name,
                    "",
                    None,
                    energy,
                    seconds,
                    float(line_of(s, name, energy, seconds).cost_usd),
                )
            )
        for quantity in FIELDS:
            each = [ends_of(of[quantity], one, s) for one in taken]
            known = [ends for ends in each if not isnan(ends[0])]
            mine = getattr(_line(group, name), quantity)
            if not known:
                assert isnan(mine.value), (name, quantity)
                continue
            wanted = [
                fsum(column) * people.get(quantity, 1.0) for column in zip(*known, strict=True)
            ]
            if name in ("storage_write", "host_wait") and quantity == "embodied_kgco2e":
                wanted = [0.0, 0.0, 0.0]
            if name == "storage_write" and quantity == "cost_usd" and electricity_in_price:
                # a statement's range of dollars has the nodes' tariff, which is none here; the
                # storage's electricity is paid
                mine, wanted = (mine.value,), wanted[:1]
            assert mine == pytest.approx(wanted, rel=1e-6), (name, quantity)
    assert fleet_of(made.part(), "job", s).pue == 1.25


def test_dollars_need_joules_where_electricity_is_paid_apart(written: Callable[[], Any]) -> None:
    """As a statement has it: a wait whose joules nobody knows has no price, unless GPU time holds
    the electricity."""
    made = written().head().node(windows=2).window(gpu=nan).window(at_s=50, gpu=1e6)
    apart, together = (
        _line(fleet_of(made.part(), "job", _site(paid)).whole, "gpu_wait").cost_usd
        for paid in (False, True)
    )
    assert together.value == pytest.approx(160.0 * USD_PER_GPU_S)
    assert apart.value == pytest.approx(80.0 * USD_PER_GPU_S + 1.25e6 * USD_PER_J)
    s = _site(False)
    assert isnan(float(line_of(s, "gpu_wait", unknown("GAPS"), 80.0).cost_usd))


def test_between_two_runs_the_rent_is_known_and_electricity_beside_it_is_not(
    written: Callable[[], Any],
) -> None:
    """A crash after 1000 s and 500 s until the next run, on 8 GPUs: 4000 GPU-seconds of rent, and
    no less where joules are paid too."""
    made = (
        written()
        .head(run="r1", until_ns=written().instant(1000), exit_code=1.0)
        .node(run="r1")
        .window(run="r1", at_s=980)
    )
    made.head(run="r2", began_ns=made.instant(1500), until_ns=made.instant(2500)).node(run="r2")
    apart, together = (fleet_of(made.part(), "job", _site(paid)).whole for paid in (False, True))
    rent = 4000.0 * USD_PER_GPU_S
    assert _line(apart, "restart").cost_usd == pytest.approx((rent, rent, inf))
    assert _line(apart, "restart").known["cost_usd"] == (0.0, 1.0)
    assert _line(together, "restart").cost_usd == pytest.approx((rent, rent, rent))
    assert apart.totals.cost_usd.value > together.totals.cost_usd.value
    assert apart.totals.cost_usd.high == inf
    assert (
        "restart" in apart.totals.lacks["cost_usd"],
        "restart" in together.totals.lacks["cost_usd"],
    ) == (True, False)
    s = _site(False)
    unpriced = fleet_of(
        made.part(), "job", replace(s, cluster=replace(s.cluster, usd_per_gpu_s=nan))
    ).whole
    assert isnan(_line(unpriced, "restart").cost_usd.value)
    for head in made.heads:
        head["gpus"] = nan
    assert isnan(_line(fleet_of(made.part(), "job", s).whole, "restart").cost_usd.value)


@pytest.mark.parametrize(("known", "value"), [(2, 10.0), (1, nan), (0, nan), (4, 20.0)])
def test_less_than_half_of_a_line_is_no_sum(
    written: Callable[[], Any], known: int, value: float
) -> None:
    made = written().head().node(windows=4)
    for at in range(4):
        some = at < known
        made.window(at_s=60 * at, gpu=5.0 if some else nan, own_gpu_s=7.0)
    whole = fleet_of(made.part(), "job", None).whole
    line = _line(whole, "gpu_wait")
    assert line.energy_j.value == pytest.approx(value, nan_ok=True)
    assert line.known["energy_j"] == (float(known), 4.0)
    assert line.gpu_s.value == 28.0
    assert (
        "gpu_wait" in whole.totals.lacks["energy_j"],
        "gpu_wait" in whole.totals.lacks["gpu_s"],
    ) == (known < 4, False)
    assert whole.totals.energy_j.value == pytest.approx(value, nan_ok=True)  # it is needed


def test_saves_without_a_drain_have_no_training_to_slow(written: Callable[[], Any]) -> None:
    """A thousand of them say nothing of the one that drains, and nobody knows how much longer
    training took beside that one."""
    made = written().head().node(windows=99)
    for at in range(99):
        made.window(at_s=20 * at)
    made.window(at_s=2000, failed=True, drain_s=nan, slow=nan)
    assert "slowdown" not in [line.id for line in fleet_of(made.part(), "job", None).whole.lines]
    made.window(at_s=2100, drain_s=5.0, slow=40.0)
    whole = fleet_of(made.part(), "job", None).whole
    assert isnan(_line(whole, "slowdown").gpu_s.value)
    assert (
        _line(whole, "slowdown").energy_j.value,
        _line(whole, "slowdown").known["energy_j"],
    ) == (40.0, (1.0, 1.0))
    assert _line(whole, "slowdown").known["gpu_s"] == (0.0, 1.0)
    assert "slowdown" in whole.totals.lacks["gpu_s"]
    assert whole.totals.gpu_s.value == 80.0 * 101


def test_a_node_alone_waits_for_nobody(written: Callable[[], Any]) -> None:
    made = written().head().node(windows=20)
    for at in range(20):
        made.window(at_s=20 * at)
    assert "waiting" not in [line.id for line in fleet_of(made.part(), "job", None).whole.lines]
    made.head(job="b").head(job="b", host="n2").node(job="b").node(job="b", host="n2")
    made.window("b", nodes=2, wait_gpu_s=nan, wait=6.0)
    line = _line(fleet_of(made.part(), "job", None).whole, "waiting")
    assert (isnan(line.gpu_s.value), line.known["gpu_s"]) == (True, (0.0, 2.0))
    assert (line.energy_j.value, line.known["energy_j"]) == (6.0, (2.0, 2.0))


@pytest.mark.parametrize(
    ("hosts", "known", "value"), [(4, 4.0, 50.0), (3, 3.0, 50.0), (1, 1.0, nan)]
)
def test_what_waits_without_a_metered_host_is_not_known_whole(
    written: Callable[[], Any], hosts: int, known: float, value: float
) -> None:
    made = written()
    for host in range(4):
        made.head(host=f"n{host}").node(host=f"n{host}")
    made.window(nodes=4, wait_gpu_s=9.0, wait=50.0, host=8.0 * hosts, host_nodes=hosts)
    line = _line(fleet_of(made.part(), "job", None).whole, "waiting")
    assert (line.energy_j.value, line.known["energy_j"]) == (
        pytest.approx(value, nan_ok=True),
        (known, 4.0),
    )
    assert line.gpu_s.value == 9.0
    together = (
        written().head().head(host="n2").node().node(host="n2").window(nodes=2, host=nan)
    )  # nobody waited: nothing to meter
    assert _line(fleet_of(together.part(), "job", None).whole, "waiting").known["energy_j"] == (
        2.0,
        2.0,
    )


def test_without_a_price_of_gpus_there_are_no_dollars_but_carbon(
    written: Callable[[], Any],
) -> None:
    s = _site()
    s = replace(s, cluster=replace(s.cluster, usd_per_gpu_s=nan, embodied_kgco2e_per_gpu_s=nan))
    whole = fleet_of(written().head().node().window(gpu=1e6).part(), "job", s).whole
    assert isnan(_line(whole, "gpu_wait").cost_usd.value)
    assert whole.totals.location_kgco2e.value == pytest.approx(1.25e6 * KG_PER_J)
    assert isnan(_line(whole, "gpu_wait").embodied_kgco2e.value)


def test_a_group_is_what_carries_the_label_and_the_rest_is_told_last(
    written: Callable[[], Any],
) -> None:
    made = written()
    for job, labels in (
        ("a", '{"team": "red"}'),
        ("b", "{}"),
        ("c", '{"team": ""}'),
        ("d", '{"team": "blue"}'),
        ("e", "not JSON"),
    ):
        made.head(job=job, labels=labels).node(job=job).window(job=job)
    fleet = fleet_of(made.part(), "team", None)
    assert [(group.name, group.jobs, group.checkpoints) for group in fleet.groups] == [
        ("blue", 1, 1),
        ("red", 1, 1),
        (NOT_SAID, 3, 3),
    ]
    assert [group.name for group in fleet.jobs] == ["a", "b", "c", "d", "e"]
    with pytest.raises(InputError, match=r"not grouped by 'moon'"):
        fleet_of(made.part(), "moon", None)


def test_stalls_against_numpy(written: Callable[[], Any]) -> None:
    made, seen = written(), {"a": [3.0, 1.0, 2.0, 9.0, 4.5], "b": [7.0]}
    for job, stalls in seen.items():
        made.head(job=job).node(job=job)
        for at, stall_s in enumerate(stalls):
            made.window(job=job, at_s=60 * at, stall_s=stall_s)
        made.window(job=job, at_s=999, stall_s=1e6, failed=True).window(
            job=job, at_s=999, stall_s=1e6, load=True
        )
    for group in fleet_of(made.part(), "job", None).groups:
        mine = seen[group.name]
        assert group.stalls == pytest.approx(
            (np.mean(mine), np.quantile(mine, 0.5), np.quantile(mine, 0.95), max(mine))
        )
        assert group.stall_s == sum(mine) + 1e6


def test_rates_are_until_safe_and_saves_are_counted_by_days_of_running(
    written: Callable[[], Any],
) -> None:
    made = written().head(until_ns=written.instant(43_200.0)).node(windows=3)
    made.window(at_s=0, stall_s=2.0, drain_s=3.0, bytes=1e9).window(
        at_s=60, stall_s=5.0, drain_s=nan, bytes=2e9
    )
    made.window(at_s=120, bytes=nan)
    (group,) = fleet_of(made.part(), "job", None).groups
    assert group.write_bytes_per_s == pytest.approx(3e9 / 10.0)
    assert group.unknown == {"bytes": 1}
    assert group.saves_per_day == pytest.approx(3 / 0.5)
    assert group.running_s == pytest.approx(43_200.0)


def test_the_worst_come_first(written: Callable[[], Any]) -> None:
    made = written()
    for job in ("a", "b"):
        made.head(job=job).head(job=job, host="n2")
        made.node(job=job, windows=3, blamed_gpu_s=3.0, blamed_j=nan, slowest=1).node(
            job=job, windows=3, host="n2", wait_gpu_s=10.0, blamed_gpu_s=7.0 * (job == "b")
        )
    made.window("a", at_s=5, own_gpu_s=5.0).window(
        "b", at_s=1, own_gpu_s=5.0, wait_gpu_s=4.0, nodes=2
    ).window("b", own_gpu_s=nan, wait_gpu_s=nan)
    made.window("a", at_s=3, own_gpu_s=5.0)
    part = made.part()
    fleet = fleet_of(part, "team", None)
    worst = worst_of(part, fleet, 2)
    assert [(save.job, save.lost_gpu_s, save.begin_ns) for save in worst.saves] == [
        ("b", 9.0, written.instant(1)),
        ("a", 5.0, written.instant(3)),
    ]
    assert [(host.host, host.blamed_gpu_s, host.share, host.jobs) for host in worst.hosts] == [
        ("n2", 7.0, 0.35, 2),
        ("n1", 6.0, 0.3, 2),
    ]
    assert isnan(worst.hosts[1].blamed_j)
    assert [(job.job, job.lost_gpu_s, job.most) for job in worst.jobs] == [
        ("a", 10.0, "gpu_wait"),
        ("b", 9.0, "gpu_wait"),
    ]
    assert sum(job.share for job in worst.jobs) == pytest.approx(1.0)
    nothing = worst_of(part, fleet, 0)
    assert nothing.saves == nothing.hosts == nothing.jobs == ()


_JOULES = st.one_of(st.just(nan), st.floats(-1e3, 1e6))
_LABELS = st.sampled_from(
    ["{}", '{"team": "red"}', '{"team": "blue", "tier": "nvme"}', '{"cluster": "x", "model": "m"}']
)


@st.composite
def _fleets(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    heads: dict[tuple[str, ...], dict[str, Any]] = {}
    windows = []
    for _ in range(draw(st.integers(1, 12))):
        where = {
            "job": draw(st.sampled_from("abc")),
            "run": draw(st.sampled_from("rs")),
            "day": draw(st.sampled_from([DAY, NEXT])),
        }
        run = where["job"] + where["run"]
        for host in ("n1", "n2"):
            heads.setdefault(
                (run, host, where["day"]),
                {
                    **where,
                    "run": run,
                    "host": host,
                    "labels": draw(_LABELS),
                    "nodes": draw(st.integers(1, 3)),
                    "exit_code": draw(st.sampled_from([nan, 0.0, 1.0])),
                    "gpus": draw(st.sampled_from([nan, 4.0, 8.0])),
                },
            )
        more = {name: draw(_JOULES) for name in ("gpu", "host", "slow", "storage", "wait")}
        more |= {
            "own_gpu_s": draw(st.one_of(st.just(nan), st.floats(0, 1e3))),
            "nodes": 2,
            "load": draw(st.booleans()),
        }
        more |= {
            "failed": draw(st.booleans()),
            "drain_s": draw(st.sampled_from([0.0, 2.0, nan])),
            "at_s": draw(st.floats(0, 3e3)),
        }
        more |= {
            "bytes": draw(st.sampled_from([nan, 1e9])),
            "stall_s": draw(st.one_of(st.just(nan), st.floats(0.0, 60.0))),
        }
        windows.append({**where, "run": run, **more})
    return list(heads.values()), windows


def _known_sum(groups: tuple[GroupFigures, ...], of: Callable[[GroupFigures], float]) -> float:
    return fsum(value for group in groups if not isnan(value := of(group)))


def _adds_up(fleet: Fleet) -> None:
    whole = fleet.whole
    for quantity in FIELDS:
        for end in ("value", "low", "high"):

            def mine(group: GroupFigures, quantity: str = quantity, end: str = end) -> float:
                return float(getattr(getattr(group.totals, quantity), end))

            size = sum(
                abs(getattr(getattr(line, quantity), end))
                for line in whole.lines
                if getattr(line, quantity).known
            )
            near = 1e-9 * (size if size < inf else 1.0) + 1e-9
            for line in whole.lines:
                mine_too = [
                    getattr(getattr(each, quantity), end)
                    for group in fleet.groups
                    for each in group.lines
                    if each.id == line.id
                ]
                wanted = getattr(getattr(line, quantity), end)
                summed = fsum(value for value in mine_too if not isnan(value))
                assert summed == pytest.approx(0.0 if isnan(wanted) else wanted, rel=1e-9, abs=near)
            # a group that lacks what is needed has no sum, and then the groups' sums are not the
            # whole's
            if not any(isnan(mine(group)) for group in fleet.groups) and not isnan(mine(whole)):
                assert _known_sum(fleet.groups, mine) == pytest.approx(
                    mine(whole), rel=1e-9, abs=near
                )
        for line in whole.lines:
            known = [
                each.known[quantity]
                for group in fleet.groups
                for each in group.lines
                if each.id == line.id
            ]
            assert [fsum(column) for column in zip(*known, strict=True)] == pytest.approx(
                list(line.known[quantity])
            )
        assert set(whole.totals.lacks[quantity]) == {
            name for group in fleet.groups for name in group.totals.lacks[quantity]
        }
    for name in ("checkpoints", "failed_saves", "loads", "failures"):
        assert sum(getattr(group, name) for group in fleet.groups) == getattr(whole, name)
    for name in ("bytes", "files", "stall_s", "load_s", "running_s"):
        wanted = getattr(whole, name)
        assert _known_sum(
            fleet.groups, lambda group, name=name: getattr(group, name)
        ) == pytest.approx(0.0 if isnan(wanted) else wanted)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(rows=_fleets(), by=st.sampled_from(BY), paid=st.sampled_from([None, True, False]))
def test_every_grouping_adds_up_to_the_same_whole(
    written: Callable[[], Any], rows: Any, by: str, paid: bool | None
) -> None:
    made = written()
    for head in rows[0]:
        made.head(**head).node(
            head["job"], head["run"], head["host"], head["day"], own_gpu_s=5.0, gpu_j=100.0
        )
    for window in rows[1]:
        made.window(**window)
    fleet = fleet_of(made.part(), by, None if paid is None else _site(paid))
    _adds_up(fleet)
    _adds_up(fleet._replace(groups=fleet.trend))
    for group in (*fleet.groups, fleet.whole):
        for quantity in FIELDS:
            known = [
                getattr(line, quantity) for line in group.lines if getattr(line, quantity).known
            ]
            total: FleetAmount = getattr(group.totals, quantity)
            lacks = any(
                line.id in NEEDED and not getattr(line, quantity).known for line in group.lines
            )
            assert (
                isnan(total.value)
                if lacks or not known
                else total.value == pytest.approx(fsum(each.value for each in known))
            )
            assert all(each.low <= each.value <= each.high for each in known)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(rows=_fleets())
def test_the_whole_against_a_loop_over_windows(written: Callable[[], Any], rows: Any) -> None:
    made = written()
    for head in rows[0]:
        made.head(**head).node(head["job"], head["run"], head["host"], head["day"])
    for window in rows[1]:
        made.window(**window)
    whole = fleet_of(made.part(), "job", None).whole
    saves = [row for row in rows[1] if not row["load"]]
    slowed = [
        row
        for row in saves
        if abs(row["slow"]) > 0
        or not (row["drain_s"] == 0 or (row["failed"] and isnan(row["drain_s"])))
    ]
    having = {
        "gpu_wait": ("gpu", saves),
        "host_wait": ("host", saves),
        "storage_write": ("storage", saves),
        "slowdown": ("slow", slowed),
    }
    for name, (of, mine) in having.items():
        known = [row[of] for row in mine if not isnan(row[of])]
        if mine:
            value = _line(whole, name).energy_j.value
            cells: dict[tuple[str, str, str], list[float]] = {}
            for row in mine:
                cells.setdefault((row["job"], row["run"], row["day"]), []).append(row[of])
            told = [
                each
                for each in cells.values()
                if 2 * sum(not isnan(joules) for joules in each) >= len(each)
            ]
            summed = fsum(joules for each in told for joules in each if not isnan(joules))
            assert value == pytest.approx(summed, abs=1e-6) if told else isnan(value)
            assert _line(whole, name).known["energy_j"] == (2.0 * len(known), 2.0 * len(mine))
    done = [row for row in saves if not row["failed"]]
    assert whole.checkpoints == len(done)
    stalls = [row["stall_s"] for row in done if not isnan(row["stall_s"])]
    assert (
        whole.stalls
        == pytest.approx(
            (np.mean(stalls), np.median(stalls), np.quantile(stalls, 0.95), max(stalls)),
            nan_ok=True,
        )
        if stalls
        else isnan(whole.stalls.max_s)
    )


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
