"""Nodes that are missing or silent: by name, with the windows that they lack, and what that is
taken to come to."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.fleet.figures import fleet_of
from ckptcost.first.fleet.grouping import cells_of
from ckptcost.first.fleet.lines import FleetAmount, FleetLine
from ckptcost.first.fleet.missing_nodes import (
    MOST_NAMES,
    NO_FILE,
    SILENT,
    Absent,
    lacking_of,
    names_of,
)
from ckptcost.first.fleet.node_day import LINES
from ckptcost.first.questions.statements import standing

DAY, NEXT = "2026-11-02", "2026-11-03"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("n1", ("n1",)),
        ("n1, n2\tm-3.site", ("n1", "n2", "m-3.site")),
        ("n[001-003,7],m4", ("n001", "n002", "n003", "n7", "m4")),
        ("n[9-11]", ("n9", "n10", "n11")),
        ("n[09-11]x", ("n09x", "n10x", "n11x")),
        ("r[1-2]c[08-09]", ("r1c08", "r1c09", "r2c08", "r2c09")),
        ("n[1-2],n[2-3]", ("n1", "n2", "n3")),
        ("n[3-1]", ()),
        ("n[1-3", ()),
        ("n1-3]", ()),
        ("n[a-b]", ()),
        ("n[]", ()),
        ("n[[1-2]]", ()),
        (f"n[1-{MOST_NAMES + 1}]", ()),
        ("n[1-500]m[1-500]", ()),
        ("n[1-" + "9" * 5000 + "]", ()),
    ],
)
def test_a_launchers_list_is_read_as_it_writes_it(text: str, names: tuple[str, ...]) -> None:
    assert names_of(text) == names


def test_as_many_names_as_a_list_may_have() -> None:
    assert len(names_of(f"n[1-{MOST_NAMES}]")) == MOST_NAMES


@given(st.integers(0, 5000), st.integers(0, 300), st.integers(1, 6))
def test_a_range_holds_every_number_with_as_many_digits(first: int, more: int, digits: int) -> None:
    text = f"n[{first:0{digits}d}-{first + more:0{digits}d}]"
    assert names_of(text) == tuple(
        f"n{number:0{digits}d}" for number in range(first, first + more + 1)
    )


def _of(part: Any) -> Any:
    return lacking_of(part, cells_of(part))


def test_a_node_that_the_launcher_names_and_nobody_heard_of_lacks_all_windows(
    written: Callable[[], Any],
) -> None:
    made = written()
    for host in ("n1", "n2"):
        made.head(host=host, nodes=3, node_names="n[1-3]").node(host=host, windows=2)
    made.window(at_s=1, nodes=2).window(at_s=2, nodes=2)
    (run,) = _of(made.part())
    assert (run.expected, run.hosts, run.unnamed) == (3, 2, 0)
    assert run.missing == (Absent("n3", NO_FILE, 2, (DAY,)),)
    assert run.each == (2.0,)
    assert not run.silent


def test_without_names_they_are_counted(written: Callable[[], Any]) -> None:
    made = written().head(nodes=16).node(windows=3)
    for at in range(3):
        made.window(at_s=at)
    (run,) = _of(made.part())
    assert (run.expected, run.unnamed, run.unnamed_windows, run.missing) == (16, 15, 3, ())
    assert run.each == (3.0,) * 15
    assert list(run.of_cells.values()) == [45.0]


def test_a_host_without_a_file_on_the_second_day_lacks_that_day(written: Callable[[], Any]) -> None:
    made = written().head(host="n1").head(host="n2").head(host="n1", day=NEXT)
    made.window(nodes=2).window(day=NEXT).window(day=NEXT, at_s=5)
    made.node(host="n1").node(host="n2").node(host="n1", day=NEXT, windows=2)
    (run,) = _of(made.part())
    assert run.missing == (Absent("n2", NO_FILE, 2, (NEXT,)),)
    assert run.hosts == 2


def test_a_file_that_was_set_aside_says_why_by_what_it_says_or_by_its_name(
    written: Callable[[], Any],
) -> None:
    made = written().head(host="n1", run="3f2a").node(host="n1", run="3f2a").window(run="3f2a")
    made.file("job=a/day=2026-11-02/n2-3f2a-00000000.parquet", "SKEWED", run="3f2a", host="n2")
    made.file("job=a/day=2026-11-02/n-3-3f2a-8899aabb.parquet", "CORRUPT")
    made.file(
        "job=a/day=2026-11-02/n1-3f2a-11111111.parquet", "DUPLICATE", run="3f2a", host="n1"
    )  # its other file counts
    made.file("job=a/day=2026-11-02/n9-beef-11111111.parquet", "CORRUPT")  # of no run here
    made.file("job=b/day=2026-11-02/n8-3f2a-11111111.parquet", "CORRUPT", job="b")
    made.file(
        "job=a/day=2026-11-02/n7-3f2a-11111111.parquet", "", run="3f2a", host="n7"
    )  # counts, so it would have a head
    (run,) = _of(made.part())
    assert run.missing == (Absent("n-3", "CORRUPT", 1, (DAY,)), Absent("n2", "SKEWED", 1, (DAY,)))
    assert (run.expected, run.hosts) == (3, 1)


def test_a_node_that_is_there_and_silent_is_named_apart(written: Callable[[], Any]) -> None:
    made = written().head(host="n1").head(host="n2").head(host="n3")
    made.window(at_s=1, nodes=2).window(at_s=2)
    made.node(host="n1", windows=2).node(host="n2", windows=1)
    (run,) = _of(made.part())
    assert run.silent == (Absent("n2", SILENT, 1, (DAY,)), Absent("n3", SILENT, 2, (DAY,)))
    assert not run.missing
    assert run.each == (1.0, 2.0)


def test_what_begins_before_midnight_by_a_clock_that_is_ahead_makes_nobody_missing(
    written: Callable[[], Any],
) -> None:
    made = written().head(host="n1", day=NEXT).head(host="n2", day=NEXT)
    made.window(day=DAY, nodes=2).node(host="n1", day=DAY).node(host="n2", day=DAY)
    (run,) = _of(made.part())
    assert not run.missing
    assert not run.silent
    assert not run.each


def test_names_of_another_kind_than_the_hosts_make_nobody_missing(
    written: Callable[[], Any],
) -> None:
    made = written()
    for at in (1, 2, 3):
        made.head(host=f"ip-10-0-0-{at}", nodes=3, node_names="n[1-3]").node(host=f"ip-10-0-0-{at}")
    (run,) = _of(made.window(nodes=3).part())
    assert (run.expected, run.missing, run.unnamed) == (3, (), 0)
    made = (
        written()
        .head(host="n1.site.example", nodes=2, node_names="n[1-2]")
        .node(host="n1.site.example")
        .window()
    )
    (run,) = _of(made.part())
    assert [node.host for node in run.missing] == ["n2"]


def test_the_share_of_missing_nodes_is_the_mean_of_the_others_with_students_interval(
    written: Callable[[], Any],
) -> None:
    """Four nodes with three windows each, one of them silent on one, one more missing: 3 + 1
    windows at the mean of four."""
    made = written()
    own, joules = [60.0, 66.0, 72.0, 52.0], [3e3, 6e3, 9e3, 8e3]
    for at, (gpu_s, j) in enumerate(zip(own, joules, strict=True)):
        windows = 2 if at == 3 else 3
        made.head(host=f"n{at}", nodes=5)
        made.node(
            host=f"n{at}",
            windows=windows,
            own_gpu_s=gpu_s,
            gpu_j=j,
            host_j=float("nan"),
            host_windows=0,
        )
    for at in range(3):
        made.window(at_s=at, nodes=4 if at else 3, own_gpu_s=80.0, gpu=1e3, host=float("nan"))
    line = next(
        line
        for line in fleet_of(made.part(), "job", None).whole.lines
        if line.id == "missing_nodes"
    )
    lacks, each = np.array([3.0, 1.0]), np.array([20.0, 22.0, 24.0, 26.0])
    reach = (
        stats.t.ppf(0.975, 3) * each.std(ddof=1) * np.sqrt((lacks**2).sum() + lacks.sum() ** 2 / 4)
    )
    assert line.estimated
    assert line.gpu_s == pytest.approx((92.0, 92.0 - reach, 92.0 + reach))
    assert line.energy_j.value == pytest.approx(4 * np.mean([1e3, 2e3, 3e3, 4e3]))
    assert line.known["gpu_s"] == (4.0, 4.0)


def test_one_node_alone_sets_no_end_and_none_says_nothing(written: Callable[[], Any]) -> None:
    made = written().head(nodes=2).node(windows=1, own_gpu_s=80.0).window()
    line = next(
        line
        for line in fleet_of(made.part(), "job", None).whole.lines
        if line.id == "missing_nodes"
    )
    assert line.gpu_s == (80.0, 0.0, inf)
    made = written().head(host="n1", nodes=1).window()  # a head, and no row of it
    line = next(
        line
        for line in fleet_of(made.part(), "job", None).whole.lines
        if line.id == "missing_nodes"
    )
    assert not line.gpu_s.known
    assert line.known["gpu_s"] == (0.0, 1.0)


def test_missing_by_day_adds_up_to_missing_in_all(written: Callable[[], Any]) -> None:
    made = written()
    for day, windows in ((DAY, 1), (NEXT, 4)):
        for host, gpu_s in (("n1", 10.0), ("n2", 14.0)):
            made.head(host=host, day=day, nodes=4).node(
                host=host, day=day, windows=windows, own_gpu_s=gpu_s * windows
            )
        for at in range(windows):
            made.window(day=day, at_s=at, nodes=2)
    fleet = fleet_of(made.part(), "day", None)
    by_day = [
        next(line for line in group.lines if line.id == "missing_nodes").gpu_s
        for group in fleet.groups
    ]
    whole = next(line for line in fleet.whole.lines if line.id == "missing_nodes").gpu_s
    assert [amount.value for amount in by_day] == pytest.approx([24.0, 96.0])
    assert [sum(ends) for ends in zip(*by_day, strict=True)] == pytest.approx(whole)


def test_bytes_of_missing_nodes_are_estimated_and_rates_are_of_the_whole_job(
    written: Callable[[], Any],
) -> None:
    """Three of four nodes, two saves of 6 GB in 10 s each, and a load that is nobody's bytes of a
    save."""
    made = written()
    for host, gigabytes in (("n1", 1.0), ("n2", 2.0), ("n3", 3.0)):
        made.head(host=host, nodes=4, node_names="n[1-4]").node(
            host=host, windows=3, bytes=3e9 * gigabytes
        )
    made.window(at_s=1, nodes=3, load=True, bytes=6e9)
    made.window(at_s=20, nodes=3, bytes=6e9).window(at_s=40, nodes=3, bytes=6e9, stall_s=10.0)
    whole = fleet_of(made.part(), "job", None).whole
    reach = stats.t.ppf(0.975, 2) * 1e9 * np.sqrt(2.0**2 + 2.0**2 / 3)
    assert whole.bytes == 12e9
    assert whole.bytes_missing == pytest.approx((4e9, max(4e9 - reach, 0.0), 4e9 + reach))
    assert whole.write_bytes_per_s == pytest.approx(16e9 / 20.0)


def test_loads_of_another_size_do_not_change_what_missing_nodes_wrote(
    written: Callable[[], Any],
) -> None:
    made = written()
    for host in ("n1", "n2"):
        made.head(host=host, nodes=3).node(host=host, windows=3, bytes=1e9 + 1e12)
    made.window(at_s=1, nodes=2, load=True, bytes=2e12).window(at_s=20, nodes=2, bytes=2e9)
    made.window(at_s=40, nodes=2, bytes=nan, failed=True)
    whole = fleet_of(made.part(), "job", None).whole
    assert whole.bytes_missing == pytest.approx((1e9, 1e9, 1e9))


def test_bytes_are_missing_on_the_days_on_which_nodes_are(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head(nodes=2)
        .head(host="n2", nodes=2)
        .node(bytes=5e9)
        .node(host="n2", bytes=5e9)
        .window(nodes=2, bytes=10e9)
    )
    made.head(day=NEXT, nodes=2).node(day=NEXT, windows=2, bytes=10e9).window(
        day=NEXT, bytes=5e9
    ).window(day=NEXT, at_s=60, bytes=5e9)
    fleet = fleet_of(made.part(), "day", None)
    assert [group.bytes_missing.value for group in fleet.groups] == pytest.approx([0.0, 10e9])
    assert fleet.whole.bytes_missing.value == pytest.approx(10e9)
    assert fleet.groups[1].write_bytes_per_s == pytest.approx(10e9 / 10.0)


def test_a_node_that_recorded_no_save_wrote_nothing(written: Callable[[], Any]) -> None:
    """Only the first node writes; the others are there, and silent."""
    made = written().head(nodes=4).node(bytes=8e9).window(bytes=8e9)
    for host in ("n2", "n3", "n4"):
        made.head(host=host, nodes=4)
    whole = fleet_of(made.part(), "job", None).whole
    assert (whole.bytes_missing, whole.write_bytes_per_s) == (
        (0.0, 0.0, 0.0),
        pytest.approx(8e9 / 10.0),
    )


def test_bytes_that_nobody_knows_are_not_missing_none(written: Callable[[], Any]) -> None:
    made = written().head(nodes=2).node(bytes=nan).window(bytes=nan)
    assert isnan(fleet_of(made.part(), "job", None).whole.bytes_missing.value)
    made = (
        written().head(nodes=2).window(bytes=3e9)
    )  # a head, and no row of it: nothing says how nodes differ
    assert fleet_of(made.part(), "job", None).whole.bytes_missing == pytest.approx((3e9, 0.0, inf))


def missing_of(made: Any, *settings: str) -> FleetLine:
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
    assert missing_of(made).energy_j == FleetAmount(7.2e6, 0.0, inf)


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
