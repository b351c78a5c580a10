"""The tables of a fleet, cell by cell, against figures by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.estimates import Estimate, absent
from ckptcost.first.core.fit import TimeFit
from ckptcost.first.fleet import bill_tables, frames
from ckptcost.first.fleet.figures import fleet_of
from ckptcost.first.fleet.lines import UNKNOWN, FleetAmount
from ckptcost.first.fleet.savings import (
    OPTION_WORDS,
    OPTIONS,
    AllSavings,
    JobSavings,
    Option,
    Savings,
    Usual,
    savings_sentence,
    savings_tables,
)
from ckptcost.first.fleet.tiers import TierSeen, tier_table
from ckptcost.first.fleet.worst import Worst, WorstHost, WorstSave, worst_tables
from ckptcost.first.questions.statements import standing
from ckptcost.first.report.study import UNITS, Table
from ckptcost.first.scenario import Resolved

DAY, NEXT = "2026-11-02", "2026-11-03"
PUE, USD_PER_KWH, KG_PER_KWH, MARKET_KG_PER_KWH, USD_PER_GPU_H, EMBODIED_KG_PER_GPU_H = (
    1.25,
    0.1,
    0.4,
    0.2,
    2.0,
    0.05,
)
HERE = (
    f"site.pue={PUE}",
    f"site.tariff={USD_PER_KWH} USD/kWh",
    f"site.grid_location={1000 * KG_PER_KWH} g/kWh",
    f"site.grid_market={1000 * MARKET_KG_PER_KWH} g/kWh",
    f"cluster.gpu_price={USD_PER_GPU_H} USD/GPU-h",
    f"cluster.gpu_embodied={1000 * EMBODIED_KG_PER_GPU_H} g/GPU-h",
    "cluster.price_includes_electricity=false",
)


def here() -> Resolved:
    return standing(Catalog(), None, HERE, "")


def jobs_of_two(written: Callable[[], Any]) -> Any:
    """Job a on two nodes: a load, two saves and one that failed, and it ends as it should. Job b on
    one node: a save, a crash, a save."""
    made = written()
    at = made.instant
    for host in ("n1", "n2"):
        made.head(host=host, labels='{"team": "blue"}', over=True, exit_code=0.0).node(
            host=host, windows=4
        )
    made.window(
        at_s=0,
        load=True,
        nodes=2,
        stall_s=4.0,
        own_gpu_s=64.0,
        gpu=(7.2e6, 3.6e6, 10.8e6),
        host=3.6e6,
        bytes=7e9,
    )
    made.window(
        at_s=100,
        nodes=2,
        stall_s=10.0,
        drain_s=2.0,
        own_gpu_s=150.0,
        wait_gpu_s=18.0,
        wait=(3.6e5, 1.8e5, 7.2e5),
        gpu=(3.6e6, 1.8e6, 7.2e6),
        host=1.8e6,
        storage=3.6e5,
        slow=0.0,
        bytes=4e9,
        files=3.0,
    )
    made.window(
        at_s=200,
        nodes=2,
        stall_s=20.0,
        own_gpu_s=320.0,
        gpu=(7.2e6, 7.2e6, 7.2e6),
        host=1.8e6,
        storage=7.2e5,
        slow=0.0,
        bytes=2e9,
    )
    made.window(
        at_s=300,
        nodes=2,
        failed=True,
        stall_s=nan,
        drain_s=nan,
        own_gpu_s=nan,
        wait_gpu_s=nan,
        bytes=nan,
        files=nan,
        gpu=nan,
        host=nan,
        wait=nan,
        slow=nan,
        storage=nan,
    )
    made.head("b", "r1", "m1", began_ns=at(0), until_ns=at(1000), exit_code=3.0).node(
        "b", "r1", "m1"
    )
    made.window("b", "r1", at_s=700, stall_s=30.0, own_gpu_s=240.0)
    made.head("b", "r2", "m1", began_ns=at(1500), until_ns=at(2500)).node("b", "r2", "m1")
    return made.window("b", "r2", at_s=2000, stall_s=50.0, own_gpu_s=400.0)


def row_of(table: Table, **wanted: object) -> dict[str, Any]:
    (row,) = [row for row in table.rows if all(row[key] == value for key, value in wanted.items())]
    return row


def declared(*tables: Table) -> None:
    """Every cell has its column, and every column a unit that there is."""
    for table in tables:
        names = [column.id for column in table.columns]
        assert len(set(names)) == len(names)
        assert {column.unit for column in table.columns} <= set(UNITS)
        assert all(set(row) <= set(names) for row in table.rows), table.id


def near(row: dict[str, Any], **wanted: object) -> None:
    assert {key: row[key] for key in wanted} == {
        key: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
        for key, value in wanted.items()
    }


def units_of(table: Table) -> dict[str, str]:
    return {column.id: column.unit for column in table.columns}


def shown_of(table: Table) -> list[str]:
    return [column.id for column in table.columns if column.shown]


# ---- what it cost


def test_a_group_by_hand(written: Callable[[], Any]) -> None:
    fleet = fleet_of(jobs_of_two(written).part(), "job", None)
    table = bill_tables.groups(fleet, placed=False)
    declared(table)
    assert (table.id, table.title, [row["name"] for row in table.rows]) == (
        "groups",
        "By job",
        ["a", "b", "all"],
    )
    near(
        row_of(table, name="a"),
        jobs=1.0,
        nodes=2.0,
        runs=1.0,
        checkpoints=2.0,
        failed_saves=1.0,
        loads=1.0,
        bytes=6e9,
        files=5.0,
        stall=15.0,
        stall_mean=15.0,
        stall_p95=19.5,
        stall_max=20.0,
        stall_sum=30.0,
        load_sum=4.0,
        gpu_hours=552 / 3600,
        gpu_hours_low=552 / 3600,
        gpu_hours_high=552 / 3600,
        kwh=26.64e6 / 3.6e6,
        kwh_low=21.06e6 / 3.6e6,
        kwh_high=34.2e6 / 3.6e6,
        goodput=(3600 - 30 - 4) / 3600,
        failures=0.0,
        node_mtbf=None,
        node_mtbf_high=None,
        saves_per_day=48.0,
        write_rate=6e9 / 32,
        running=3600.0,
    )
    assert row_of(table, name="a")["node_mtbf_low"] == pytest.approx(2.0 / 3.688879, rel=1e-6)
    near(
        row_of(table, name="b"),
        failures=1.0,
        node_mtbf=2000 / 3600,
        checkpoints=2.0,
        runs=2.0,
        stall=40.0,
        running=2000.0,
        goodput=(700 + 950) / 2500,
        saves_per_day=2 * 86400 / 2000,
    )
    assert row_of(table, name="b")["node_mtbf_low"] == pytest.approx(
        2000 / 3600 / 5.571643, rel=1e-5
    )
    assert row_of(table, name="b")["node_mtbf_high"] == pytest.approx(
        2000 / 3600 / 0.025318, rel=1e-4
    )
    near(
        row_of(table, name="all"),
        jobs=2.0,
        nodes=3.0,
        runs=3.0,
        checkpoints=4.0,
        bytes=8e9,
        stall=25.0,
        stall_max=50.0,
    )
    assert not {"usd", "kgco2e", "market_kgco2e", "embodied_kgco2e"} & {
        column.id for column in table.columns
    }
    assert shown_of(table) == [
        "name",
        "nodes",
        "checkpoints",
        "stall",
        "gpu_hours",
        "kwh",
        "goodput",
    ]
    units = units_of(table)
    assert {
        name: units[name]
        for name in (
            "stall",
            "bytes",
            "node_mtbf",
            "node_mtbf_low",
            "write_rate",
            "goodput",
            "running",
            "kwh",
            "gpu_hours_high",
        )
    } == {
        "stall": "s",
        "bytes": "bytes",
        "node_mtbf": "h",
        "node_mtbf_low": "h",
        "write_rate": "bytes_per_s",
        "goodput": "share",
        "running": "s",
        "kwh": "kWh",
        "gpu_hours_high": "GPU-h",
    }


def test_what_is_not_in_the_sums_is_of_sums_that_are_there(written: Callable[[], Any]) -> None:
    rows = bill_tables.groups(fleet_of(jobs_of_two(written).part(), "job", None), placed=False).rows
    assert rows[0]["lacks_kwh"].split("; ") == sorted(rows[0]["lacks_kwh"].split("; "))
    assert {"GPUs waiting for saves", "hosts waiting for saves", "storage writing"} <= set(
        rows[0]["lacks_kwh"].split("; ")
    )
    assert not {"lacks_usd", "lacks_kgco2e"} & rows[0].keys()


def test_the_whole_is_said_once(written: Callable[[], Any]) -> None:
    made = jobs_of_two(written)
    by_team = bill_tables.groups(fleet_of(made.part(), "team", None), placed=False)
    assert (by_team.title, [row["name"] for row in by_team.rows]) == (
        "By team",
        ["blue", "(not said)", "all"],
    )
    assert "jobs" in shown_of(by_team)
    assert by_team.columns[0].label == "team"
    one = bill_tables.groups(
        fleet_of(written().head().node().window().part(), "job", None), placed=False
    )
    assert [row["name"] for row in one.rows] == ["a"]
    none = bill_tables.groups(
        fleet_of(frames.put_together([frames.pieces()]), "job", None), placed=False
    )
    assert [
        (row["name"], row["checkpoints"], row["gpu_hours"], row["goodput"]) for row in none.rows
    ] == [("all", 0.0, 0.0, None)]


def test_days_are_shown_unless_they_are_the_answer(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head()
        .node()
        .window(own_gpu_s=7200.0)
        .head(day=NEXT)
        .node(day=NEXT)
        .window(day=NEXT, own_gpu_s=3600.0)
    )
    by_job, by_day = (fleet_of(made.part(), by, None) for by in ("job", "day"))
    table = bill_tables.days(by_job, placed=False)
    assert (table.shown, bill_tables.days(by_day, placed=False).shown) == (True, False)
    assert [(row["name"], row["gpu_hours"], row["goodput"]) for row in table.rows] == [
        (DAY, 2.0, None),
        (NEXT, 1.0, None),
    ]
    assert (table.columns[0].label, "jobs" in shown_of(table), "failures" in shown_of(table)) == (
        "day",
        False,
        True,
    )
    assert bill_tables.groups(by_day, placed=False).rows[:2] == table.rows


def test_prices_and_carbon_by_hand(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head(nodes=1)
        .node(windows=1)
        .window(gpu=(3.6e6, 1.8e6, inf), host=1.8e6, storage=3.6e5, own_gpu_s=7200.0)
    )
    whole = fleet_of(made.part(), "job", here().scenario)
    (row,) = bill_tables.groups(whole, placed=True).rows
    kwh = PUE * (3.6 + 1.8 + 0.36) / 3.6
    near(
        row,
        gpu_hours=2.0,
        kwh=kwh,
        kwh_low=PUE * (1.8 + 1.8 + 0.36) / 3.6,
        kwh_high=None,
        kgco2e=kwh * KG_PER_KWH,
        kgco2e_high=None,
        market_kgco2e=kwh * MARKET_KG_PER_KWH,
        embodied_kgco2e=2 * EMBODIED_KG_PER_GPU_H,
        usd=2 * USD_PER_GPU_H + kwh * USD_PER_KWH,
        usd_low=2 * USD_PER_GPU_H + PUE * (1.8 + 1.8 + 0.36) / 3.6 * USD_PER_KWH,
        usd_high=None,
        embodied_kgco2e_high=0.1,
    )
    table = bill_tables.groups(whole, placed=True)
    declared(table, bill_tables.lines(whole.whole, placed=True))
    assert {"usd", "kgco2e"} <= set(shown_of(table))
    assert not {"market_kgco2e", "embodied_kgco2e", "usd_low", "kwh_low"} & set(shown_of(table))
    units = units_of(table)
    assert [
        units[name]
        for name in ("usd", "usd_low", "kgco2e", "market_kgco2e", "embodied_kgco2e_high")
    ] == [
        "USD",
        "USD",
        *["kgCO2e"] * 3,
    ]


def test_lines_add_up_to_the_total_and_say_what_is_known(written: Callable[[], Any]) -> None:
    whole = fleet_of(jobs_of_two(written).part(), "job", None).whole
    table = bill_tables.lines(whole, placed=False)
    declared(table)
    assert [(row["id"], row["basis"]) for row in table.rows] == [
        ("gpu_wait", "measured"),
        ("waiting", "measured"),
        ("host_wait", "measured"),
        ("slowdown", "measured"),
        ("storage_write", "measured"),
        ("loading", "measured"),
        ("redone_work", "estimated"),
        ("restart", "measured"),
        ("total", ""),
    ]
    row = row_of(table, id="gpu_wait")
    # of saves times nodes, 2 * 2 + 2 are known, and the failed save's two are not; job b's node has
    # nobody to wait for
    near(
        row,
        line="GPUs waiting for saves",
        gpu_hours=(150 + 320 + 240 + 400) / 3600,
        kwh=3.0,
        kwh_low=2.5,
        kwh_high=4.0,
        known=6 / 8,
    )
    near(
        row_of(table, id="waiting"),
        gpu_hours=18 / 3600,
        kwh=0.1,
        kwh_low=0.05,
        kwh_high=0.2,
        known=6 / 8,
    )
    near(
        row_of(table, id="loading"),
        gpu_hours=64 / 3600,
        kwh=3.0,
        kwh_low=2.0,
        kwh_high=4.0,
        known=1.0,
    )
    near(row_of(table, id="redone_work"), gpu_hours=(300 - 30) * 8 / 3600)
    near(row_of(table, id="restart"), gpu_hours=500 * 8 / 3600, kwh=None, known=0.0)
    total = row_of(table, id="total")
    assert total["gpu_hours"] == pytest.approx(
        sum(row["gpu_hours"] or 0.0 for row in table.rows[:-1])
    )
    assert total["kwh"] == pytest.approx(sum(row["kwh"] or 0.0 for row in table.rows[:-1]))
    assert "known" not in total
    assert shown_of(table) == ["line", "basis", "gpu_hours", "kwh", "kwh_low", "kwh_high", "known"]


def test_runs_and_failures_by_hand(written: Callable[[], Any]) -> None:
    table, causes = bill_tables.failures(fleet_of(jobs_of_two(written).part(), "job", None))
    declared(table, causes)
    assert [row["job"] for row in table.rows] == ["a", "b"]
    near(
        table.rows[0],
        runs=1.0,
        failures=0.0,
        nodes=2.0,
        ran=3600.0,
        lost=0.0,
        down=0.0,
        stall=30.0,
        load=4.0,
        useful=3566.0,
        state="over",
    )
    # the failed run's last save began at 700: what came after is lost, but for that save's own
    # stall
    near(
        table.rows[1],
        runs=2.0,
        failures=1.0,
        nodes=1.0,
        ran=2000.0,
        lost=270.0,
        down=500.0,
        stall=80.0,
        load=0.0,
        useful=1650.0,
        state="open",
    )
    assert (causes.shown, causes.rows) == (
        True,
        [{"cause": "EXIT_3", "failures": 1.0, "gpu_hours": pytest.approx((270 + 500) * 8 / 3600)}],
    )
    none = bill_tables.failures(fleet_of(written().head().node().window().part(), "job", None))
    assert (none[1].shown, none[1].rows) == (False, [])


def test_a_planned_pause_is_not_time_down(written: Callable[[], Any]) -> None:
    made = written()
    made.head(run="r1", over=True, exit_code=0.0, until_ns=made.instant(1000)).node(
        run="r1"
    ).window(run="r1", at_s=10)
    made.head(run="r2", began_ns=made.instant(1500), until_ns=made.instant(2000)).node(
        run="r2"
    ).window(run="r2", at_s=1600)
    table, _ = bill_tables.failures(fleet_of(made.part(), "job", None))
    near(table.rows[0], runs=2.0, failures=0.0, down=0.0, ran=1500.0, stall=20.0, useful=1480.0)


# ---- where to look


def test_tiers_are_told_as_they_were_seen() -> None:
    fit = TimeFit(
        Estimate(3e9, 2e9, inf),
        Estimate(1.5, 1.0, 2.0),
        absent("ONE_SIZE"),
        (),
        0.01,
        7,
        "ONE_SIZE",
    )
    table = tier_table(
        [
            TierSeen("pfs", "", 4, 1, fit, 1e9, 2e9, 3e9),
            TierSeen("pfs", "a", 0, 0, fit, nan, nan, nan),
        ]
    )
    declared(table)
    assert table.rows[0] == {
        "tier": "pfs",
        "job": "all",
        "saves": 4.0,
        "rate": 3e9,
        "rate_low": 2e9,
        "rate_high": None,
        "fixed": 1.5,
        "fixed_low": 1.0,
        "fixed_high": 2.0,
        "p5": 1e9,
        "p50": 2e9,
        "p95": 3e9,
        "until_safe": 0.25,
        "why": "ONE_SIZE",
    }
    assert [table.rows[1][name] for name in ("job", "p5", "p50", "p95", "until_safe")] == [
        "a",
        None,
        None,
        None,
        None,
    ]
    assert [units_of(table)[name] for name in ("rate", "fixed", "p5", "until_safe")] == [
        "bytes_per_s",
        "s",
        "bytes_per_s",
        "share",
    ]


def test_the_worst_are_told_as_they_were_found(written: Callable[[], Any]) -> None:
    made = written()
    save = WorstSave(
        "a", "r1", DAY, "step 9", False, True, made.instant(3661.5), 12.0, 7200.0, 1800.0, "n7"
    )
    load = save._replace(label="", load=True, failed=False, stall_s=nan, wait_gpu_s=0.0)
    host = WorstHost("n7", 3, 11, 5, 5400.0, 7.2e6, 0.75)
    who, worst = worst_tables(
        Worst((save, load), (host, host._replace(blamed_j=nan, share=nan)), ())
    )
    declared(who, worst)
    assert who.rows[0] == {
        "host": "n7",
        "gpu_hours": 1.5,
        "kwh": 2.0,
        "share": 0.75,
        "slowest": 5.0,
        "windows": 11.0,
        "jobs": 3.0,
    }
    assert (who.rows[1]["kwh"], who.rows[1]["share"]) == (None, None)
    began = worst.rows[0].pop("began")
    assert began.startswith("2026-11-02T01:01:01.5")
    assert worst.rows[0] == {
        "job": "a",
        "what": "step 9",
        "stall": 12.0,
        "gpu_hours": 2.0,
        "waiting": 0.25,
        "slowest": "n7",
        "load": False,
        "failed": True,
        "run": "r1",
    }
    assert [worst.rows[1][name] for name in ("what", "load", "failed", "stall", "waiting")] == [
        "(no label)",
        True,
        False,
        None,
        0.0,
    ]
    assert (who.shown, worst.shown) == (True, True)
    assert [table.shown for table in worst_tables(Worst((), (), ()))] == [False, False]


def test_a_clock_is_told_of_its_worst_day_and_the_worst_first(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head(host="n1", offset_s=0.2, offset_unsure_s=0.01)
        .head(host="n1", day=NEXT, offset_s=-0.5, offset_unsure_s=0.02, offset_windows=7)
    )
    made.head(host="n2", offset_s=0.6, offset_unsure_s=nan, offset_windows=3).head(
        host="n2", day=NEXT, offset_s=0.1
    )
    made.head(host="n3", offset_s=0.5).head(host="n4", offset_s=9.0, offset_windows=0).head(
        "b", host="n1", offset_s=0.5
    )
    table = bill_tables.clocks(made.part())
    declared(table)
    assert not table.shown
    assert [tuple(row.values()) for row in table.rows] == [
        ("n2", "a", DAY, 0.6, None, 3.0),
        ("n1", "a", NEXT, -0.5, 0.02, 7.0),
        ("n1", "b", DAY, 0.5, 0.0, 1.0),
        ("n3", "a", DAY, 0.5, 0.0, 1.0),
    ]
    assert bill_tables.clocks(frames.put_together([frames.pieces()])).rows == []


def test_missing_nodes_by_name_and_without(written: Callable[[], Any]) -> None:
    made = written()
    for day in (DAY, NEXT):
        made.head(host="n1", day=day, nodes=5, node_names="n[1-3]").node(
            host="n1", day=day, windows=2
        )
        made.head(host="n2", day=day, nodes=5, node_names="n[1-3]").node(
            host="n2", day=day, windows=1 if day == NEXT else 2
        )
        made.window(day=day, nodes=2).window(day=day, at_s=60, nodes=2)
    fleet = fleet_of(made.part(), "job", None)
    table = bill_tables.missing(fleet)
    declared(table)
    assert table.rows == [
        {
            "job": "a",
            "host": "n3",
            "why": "NO_FILE",
            "days": f"{DAY} to {NEXT}",
            "windows": 4.0,
            "run": "r1",
            "nodes": 1.0,
        },
        {
            "job": "a",
            "host": "n2",
            "why": "SILENT",
            "days": NEXT,
            "windows": 1.0,
            "run": "r1",
            "nodes": 1.0,
        },
        {
            "job": "a",
            "host": "(no name)",
            "why": "NO_FILE",
            "days": "",
            "windows": 8.0,
            "run": "r1",
            "nodes": 2.0,
        },
    ]
    assert table.shown
    assert not bill_tables.missing(
        fleet_of(written().head().node().window().part(), "job", None)
    ).shown
    for many, shown in ((12, True), (13, False)):
        some = (
            written()
            .head(host="n0", nodes=many + 1, node_names=f"n[0-{many}]")
            .node(host="n0")
            .window()
        )
        table = bill_tables.missing(fleet_of(some.part(), "job", None))
        assert (len(table.rows), table.shown) == (many, shown)


def test_files_set_aside_and_strangers(written: Callable[[], Any]) -> None:
    made = written().head().node().window().file("x/1", "").file("x/2", "CORRUPT", host="n7")
    table = bill_tables.aside(made.part(), ["notes.txt"])
    declared(table)
    assert table.shown
    assert table.rows == [
        {"file": "x/2", "code": "CORRUPT", "text": "", "host": "n7", "day": DAY},
        {"file": "notes.txt", "code": "STRAY", "text": "no file of a store", "host": "", "day": ""},
    ]
    assert not bill_tables.aside(written().file("x/1", "").part(), ()).shown
    assert [
        bill_tables.aside(frames.put_together([frames.pieces()]), ["s"] * many).shown
        for many in (0, 1, 12, 13)
    ] == [
        False,
        True,
        True,
        False,
    ]


# ---- what would have been saved


def exact(value: float) -> FleetAmount:
    return FleetAmount(value, value, value)


USUAL = Usual(
    "a", 2.0, 16.0, 600.0, 20.0, 3.0, False, 1e9, 5.0, 120.0, 9000.0, 144e3, 0.9, 1e4, 2e3, ""
)
BEST = Option(
    "BEST_INTERVAL",
    FleetAmount(900.0, 300.0, inf),
    exact(0.05),
    FleetAmount(7200.0, 3600.0, 10800.0),
    exact(3.6e6),
    exact(40.0),
    "",
)
BESIDE = Option(
    "ASYNC", exact(60.0), exact(0.01), exact(36e3), exact(7.2e6), UNKNOWN, "NO_COPY_RATE"
)


def saved(**more: Any) -> JobSavings:
    usual = {
        "job": "a",
        "usual": USUAL,
        "mtbf_s": FleetAmount(5e4, 2e4, inf),
        "measured_overhead": 0.1,
        "modelled_overhead": FleetAmount(0.08, 0.06, 0.1),
        "ratio": 0.8,
        "options": (BEST, BESIDE),
        "why": "NO_FAILURES",
    }
    return JobSavings(**{**usual, **more})


def test_savings_of_a_job_by_hand() -> None:
    nothing = saved(
        job="b",
        usual=USUAL._replace(job="b", interval_s=nan),
        options=(),
        why="NO_SAVES",
        mtbf_s=UNKNOWN,
        ratio=nan,
        modelled_overhead=UNKNOWN,
    )
    whole, jobs = savings_tables(Savings((saved(), nothing), ()), placed=True)
    declared(whole, jobs)
    best, beside, none = jobs.rows
    none_seen = (
        "no failure was seen: taken to be as frequent as that leaves room for, values are the least"
    )
    assert best == {
        "job": "a",
        "what": "the best interval",
        "id": "BEST_INTERVAL",
        "interval": 600.0,
        "best": 900.0,
        "measured": 0.1,
        "modelled": 0.08,
        "overhead": 0.05,
        "gpu_hours": 2.0,
        "gpu_hours_low": 1.0,
        "gpu_hours_high": 3.0,
        "kwh": 1.0,
        "kwh_low": 1.0,
        "kwh_high": 1.0,
        "usd": 40.0,
        "usd_low": 40.0,
        "usd_high": 40.0,
        "ratio": 0.8,
        "mtbf": 5e4,
        "mtbf_low": 2e4,
        "mtbf_high": None,
        "nodes": 2.0,
        "stall": 20.0,
        "lag": 3.0,
        "down": 120.0,
        "load": 5.0,
        "why": none_seen,
    }
    assert (beside["what"], beside["usd"], beside["gpu_hours"], beside["kwh"]) == (
        "saving beside training",
        None,
        10.0,
        2.0,
    )
    assert (
        beside["why"]
        == none_seen + "; as if the copy that training waits for took no time: the most it can save"
    )
    assert (
        none["job"],
        none["what"],
        none["interval"],
        none["mtbf"],
        none["modelled"],
        none["ratio"],
        none["why"],
    ) == (
        "b",
        "-",
        None,
        None,
        None,
        None,
        "no save was completed",
    )
    assert (whole.shown, jobs.shown) == (False, True)
    assert shown_of(jobs) == [
        "job",
        "what",
        "interval",
        "best",
        "measured",
        "modelled",
        "overhead",
        "gpu_hours",
        "gpu_hours_low",
        "gpu_hours_high",
        "kwh",
        "usd",
    ]
    assert "usd" not in {
        column.id
        for table in savings_tables(Savings((saved(),), ()), placed=False)
        for column in table.columns
    }
    assert [
        savings_tables(Savings((saved(options=(BEST,) * many),), ()), placed=True)[1].shown
        for many in (16, 17)
    ] == [
        True,
        False,
    ]
    assert not savings_tables(Savings((), ()), placed=True)[1].shown


def test_savings_together_are_of_jobs_that_have_some() -> None:
    all_of = (
        AllSavings("BEST_INTERVAL", 2, exact(36e3), exact(3.6e6), exact(1.0)),
        AllSavings("TIER_2X", 0, UNKNOWN, UNKNOWN, UNKNOWN),
    )
    whole, _ = savings_tables(Savings((), all_of), placed=False)
    declared(whole)
    assert whole.shown
    assert whole.rows == [
        {
            "what": "the best interval",
            "id": "BEST_INTERVAL",
            "jobs": 2.0,
            "gpu_hours": 10.0,
            "gpu_hours_low": 10.0,
            "gpu_hours_high": 10.0,
            "kwh": 1.0,
            "kwh_low": 1.0,
            "kwh_high": 1.0,
        }
    ]
    assert shown_of(whole) == [
        "what",
        "jobs",
        "gpu_hours",
        "gpu_hours_low",
        "gpu_hours_high",
        "kwh",
    ]


def test_the_sentence_names_the_job_that_would_win_most() -> None:
    more = BEST._replace(gpu_s=exact(72e3), interval_s=FleetAmount(1800.0, 900.0, 3600.0))
    jobs = (
        saved(),
        saved(job="c", options=(more,)),
        saved(job="d", options=(BEST._replace(gpu_s=UNKNOWN),)),
        saved(job="e", options=()),
    )
    whole = (AllSavings("BEST_INTERVAL", 2, exact(792e2), UNKNOWN, UNKNOWN),)
    assert (
        savings_sentence(Savings(jobs, whole))
        == "The best interval would have saved 22 GPU-hours, most of it in c: every 1,800 s instead"
        " of 600 s."
    )
    for none in (
        whole[0]._replace(gpu_s=exact(0.0)),
        whole[0]._replace(gpu_s=UNKNOWN),
        whole[0]._replace(jobs=0),
        whole[0]._replace(id="ASYNC"),
    ):
        assert savings_sentence(Savings(jobs, (none,))) == ""
    assert savings_sentence(Savings((), ())) == ""


def test_every_code_has_words() -> None:
    from ckptcost.first.fleet import node_file, validate

    assert set(OPTION_WORDS) == set(OPTIONS)
    own = {
        "STRAY",
        *(
            value
            for module in (node_file, validate)
            for name, value in vars(module).items()
            if name == value
        ),
    }
    assert own == set(bill_tables.CODE_WORDS)
