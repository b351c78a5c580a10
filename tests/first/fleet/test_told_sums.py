"""How a fleet says what its sums lack: at least, of which lines, of how many saves; and the jobs
that lost most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan
from typing import Any

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.fleet import bill_tables
from ckptcost.first.fleet.answer import Findings, FleetQuestion, study_of
from ckptcost.first.fleet.figures import fleet_of
from ckptcost.first.fleet.savings import savings_of
from ckptcost.first.fleet.tiers import tiers_of
from ckptcost.first.fleet.worst import worst_of
from ckptcost.first.questions.statements import standing
from ckptcost.first.report.study import Study, Table
from ckptcost.first.scenario import Resolved


def here(*more: str) -> Resolved:
    """1 USD a GPU-hour, 1 USD a kWh apart, 1 kg a kWh."""
    usual = (
        "site.pue=1",
        "site.tariff=1 USD/kWh",
        "site.grid_location=1000 g/kWh",
        "cluster.gpu_price=1 USD/GPU-h",
        "cluster.price_includes_electricity=false",
    )
    return standing(Catalog(), None, (*usual, *more), "")


def told(made: Any, resolved: Resolved | None = None) -> Study:
    part, s = made.part(), None if resolved is None else resolved.scenario
    fleet = fleet_of(part, "job", s)
    found = Findings(
        fleet, part, savings_of(part, fleet, s), tiers_of(part), worst_of(part, fleet), ()
    )
    return study_of(FleetQuestion("store", resolved=resolved), found, ())


def took(study: Study) -> str:
    (text,) = [text for text in study.findings if "took" in text]
    return text


def row(table: Table, **wanted: object) -> dict[str, Any]:
    (found,) = [
        row for row in table.rows if all(row[key] == value for key, value in wanted.items())
    ]
    return found


def crash(written: Callable[[], Any]) -> Any:
    """An hour on 8 GPUs, a save of 1 kWh and 2 GPU-hours at its end, a crash, half an hour of
    nothing, and an hour."""
    made = written().head(run="r1", exit_code=1.0, train_gpu_w=0.0, train_host_w=0.0).node(run="r1")
    made.window(run="r1", at_s=3590, own_gpu_s=7200.0, gpu=3.6e6)
    return made.head(run="r2", began_ns=made.instant(5400), until_ns=made.instant(9000)).node(
        run="r2"
    )


def test_a_sum_that_lacks_a_line_is_the_least(written: Callable[[], Any]) -> None:
    """GPU time of the pause is known, its joules are not; so dollars are the least where joules are
    paid apart."""
    assert (
        took(told(crash(written))) == "Checkpoints and failures took 6 GPU-hours, at least 1 kWh."
    )
    assert (
        took(told(crash(written), here()))
        == "Checkpoints and failures took 6 GPU-hours, at least 1 kWh, at least 7 USD, at least 1"
        " kgCO2e."
    )
    assert (
        took(told(crash(written), here("cluster.price_includes_electricity=true")))
        == "Checkpoints and failures took 6 GPU-hours, 6 USD, at least 1 kWh, at least 1 kgCO2e."
    )


def test_where_all_lack_something_it_is_said_once(written: Callable[[], Any]) -> None:
    made = crash(written).window(
        run="r2", at_s=6000, own_gpu_s=0.0, drain_s=9.0
    )  # beside which training took nobody knows how long
    assert (
        took(told(made, here()))
        == "Checkpoints and failures took at least 6 GPU-hours, 1 kWh, 7 USD and 1 kgCO2e."
    )
    assert (
        took(told(written().head().node().window(own_gpu_s=3600.0, gpu=3.6e6)))
        == "Checkpoints and failures took 1 GPU-hours, 1 kWh."
    )


@pytest.mark.parametrize(("many", "least"), [(100, ""), (99, "at least ")])
def test_a_save_in_a_hundred_makes_no_sum_the_least(
    written: Callable[[], Any], many: int, least: str
) -> None:
    made = written().head().node(windows=many).window(own_gpu_s=3600.0, gpu=3.6e6)
    for at in range(1, many):
        made.window(at_s=30 * at, own_gpu_s=0.0, gpu=nan if at == 1 else 0.0)
    assert took(told(made)) == f"Checkpoints and failures took 1 GPU-hours, {least}1 kWh."


def test_what_each_sum_lacks(written: Callable[[], Any]) -> None:
    made = crash(written)
    alone = row(bill_tables.groups(fleet_of(made.part(), "job", None), placed=False))
    restart = "detection and restart"
    assert {key: alone[key] for key in alone if key.startswith("lacks")} == {
        "lacks_gpu_hours": "",
        "lacks_kwh": restart,
    }
    for more, usd in (((), restart), (("cluster.price_includes_electricity=true",), "")):
        placed = row(
            bill_tables.groups(fleet_of(made.part(), "job", here(*more).scenario), placed=True)
        )
        assert {key: placed[key] for key in placed if key.startswith("lacks")} == {
            "lacks_gpu_hours": "",
            "lacks_kwh": restart,
            "lacks_usd": usd,
            "lacks_kgco2e": restart,
        }
    columns = {
        column.id: column.shown
        for column in bill_tables.groups(fleet_of(made.part(), "job", None), placed=True).columns
    }
    assert [columns[f"lacks_{name}"] for name in ("gpu_hours", "kwh", "usd", "kgco2e")] == [
        False
    ] * 4
    assert "lacks" not in columns


def test_what_has_no_factor_has_no_sum_to_lack_something(written: Callable[[], Any]) -> None:
    s = here().scenario
    no_grid = replace(s, site=replace(s.site, kgco2e_per_j=nan))
    cells = row(bill_tables.groups(fleet_of(crash(written).part(), "job", no_grid), placed=True))
    assert (cells["kgco2e"], cells["lacks_kgco2e"]) == (None, "")


def test_how_much_is_known_of_each_quantity(written: Callable[[], Any]) -> None:
    made = written().head().node(windows=4)
    for at in range(4):
        made.window(at_s=60 * at, gpu=nan if at < 1 else 1.0, own_gpu_s=nan if at < 2 else 1.0)
    table = bill_tables.lines(fleet_of(made.part(), "job", here().scenario).whole, placed=True)
    cells = row(table, id="gpu_wait")
    assert (cells["known"], cells["known_gpu"]) == (0.75, 0.5)
    assert 0.0 < cells["known_usd"] <= 0.5
    shown = {column.id: column.shown for column in table.columns}
    assert (shown["known"], shown["known_gpu"], shown["known_usd"]) == (True, False, False)
    assert "known_usd" not in {
        column.id
        for column in bill_tables.lines(
            fleet_of(made.part(), "job", None).whole, placed=False
        ).columns
    }


def test_saves_of_which_something_is_unknown_are_counted(written: Callable[[], Any]) -> None:
    made = (
        written().head(nodes=3).node(windows=4).head(host="n2", nodes=3).node(host="n2", windows=4)
    )
    made.window(at_s=0, nodes=2, bytes=2e9).window(at_s=60, nodes=2, bytes=nan, stall_s=nan).window(
        at_s=90, nodes=2, bytes=2e9
    )
    made.window(at_s=120, nodes=2, stall_s=nan, bytes=nan, failed=True)
    table = bill_tables.groups(fleet_of(made.part(), "job", None), placed=False)
    cells = row(table)
    assert {key: cells[key] for key in cells if key.startswith("unknown")} == {
        "unknown_bytes": 1.0,
        "unknown_stalls": 1.0,
        "unknown_useful": 0.0,
        "unknown_assumed": 1.0,
    }
    assert (
        cells["bytes"],
        cells["bytes_missing"],
        cells["bytes_missing_low"],
        cells["bytes_missing_high"],
    ) == (4e9, 3e9, 3e9, 3e9)
    hidden = {column.id for column in table.columns if not column.shown}
    assert {
        "unknown_bytes",
        "unknown_stalls",
        "unknown_useful",
        "unknown_assumed",
        "bytes_missing",
    } <= hidden
    warned = dict(told(made).warnings)
    assert (
        warned["UNKNOWN_BYTES"] == "Bytes not known of 1 of 3 checkpoints: they are not in the sum."
    )
    assert (
        warned["UNKNOWN_STALLS"]
        == "Nobody says how long 1 of 3 checkpoints held training up. Goodput takes them to have"
        " been as long as the others of their run."
    )
    none = dict(told(written().head().node().window(stall_s=nan)).warnings)
    assert none["UNKNOWN_STALLS"] == "Nobody says how long 1 of 1 checkpoint held training up."
    assert (
        none["UNKNOWN_WORK"]
        == "How much of 1 run was work is not known: goodput is of the others, if any."
    )


@pytest.mark.parametrize(
    ("many", "codes"), [(100, set()), (99, {"UNKNOWN_BYTES", "UNKNOWN_STALLS"})]
)
def test_one_save_in_a_hundred_is_not_warned_of(
    written: Callable[[], Any], many: int, codes: set[str]
) -> None:
    made = written().head().node(windows=many)
    for at in range(many):
        made.window(at_s=30 * at, bytes=nan if at == 1 else 1e9, stall_s=nan if at == 1 else 1.0)
    assert {code for code, _ in told(made).warnings if code.startswith("UNKNOWN_")} == codes


def test_the_jobs_that_lost_most(written: Callable[[], Any]) -> None:
    made = (
        written()
        .head("a")
        .node("a")
        .window("a", own_gpu_s=3600.0)
        .head("b")
        .node("b")
        .window("b", own_gpu_s=10_800.0)
    )
    (table,) = [table for table in told(made).tables if table.id == "worst_jobs"]
    assert [tuple(row.values()) for row in table.rows] == [
        ("b", 3.0, 0.75, "GPUs waiting for saves"),
        ("a", 1.0, 0.25, "GPUs waiting for saves"),
    ]
    assert (table.shown, [column.unit for column in table.columns]) == (
        True,
        ["", "GPU-h", "share", ""],
    )
    (one,) = [
        table for table in told(written().head().node().window()).tables if table.id == "worst_jobs"
    ]
    assert (one.shown, len(one.rows)) == (False, 1)


def test_what_waited_for_a_missing_node_cannot_be_seen(written: Callable[[], Any]) -> None:
    missing = bill_tables.missing(
        fleet_of(written().head(nodes=2).node().window().part(), "job", None)
    )
    assert "cannot be seen" in missing.note
    assert (
        bill_tables.missing(fleet_of(written().head().node().window().part(), "job", None)).note
        == ""
    )
