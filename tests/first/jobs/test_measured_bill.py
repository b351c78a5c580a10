"""The bill of a recorded save: round watts in, and the model's own lines, prices and reasons
out."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from sample_scenarios import BASE, changed
from told_meters import Told, at, energy, evaluated, said

from ckptcost.first.core.attribution import Baseline
from ckptcost.first.core.domain import UNKNOWN
from ckptcost.first.core.lines import OF_A_SAVE
from ckptcost.first.core.outcome import evaluate as modelled
from ckptcost.first.jobs.measured_bill import (
    OF_A_LOAD,
    bill_of_load,
    bill_of_save,
    gpus_metered,
)
from ckptcost.first.runs.baselines import Idle

TICK = {"tick_s": 0.001}
SYNC = said("begin 5, snapshotted 5.5, written 6, synced 7, committed 8, returned 8")
ASYNC = said("begin 5, snapshotted 6, returned 6, written 8, synced 9, committed 10")
PUE = 1.25
NEAR = {"rel": 3e-3}


def node(drop: tuple[str, ...] = (), **watts_of):
    """Two cards of 300 W, a package, a drive, and a node of 1,000 W; `drive_w=7` changes one,
    `drop` leaves kinds out."""
    power_w = {
        "gpu:0": 300.0,
        "gpu:1": 300.0,
        "cpu:0": 100.0,
        "drive:nvme0n1": 10.0,
        "node": 1000.0,
    }
    power_w |= {name.removesuffix("_w").replace("_", ":"): w for name, w in watts_of.items()}
    more = {"node": {"role": "whole"}, "drive:nvme0n1": {"boundary": "drive"}}
    says = {
        energy(d, **TICK, **more.get(d, {})): at(w)
        for d, w in power_w.items()
        if d.split(":")[0] not in drop
    }
    return Told("told", says)


def seen(*drop, marks=SYNC, idle_w=None, **watts_of):
    measured = evaluated(node(drop, **watts_of), marks=marks)
    if idle_w is None:
        return measured
    idle = Idle("h", "", 30.0, {}, False, {"drive:nvme0n1": Baseline(idle_w, idle_w, idle_w)})
    return measured._replace(idle=idle)


def billed(measured, s=BASE, gpus=2.0, bytes_=64e9):
    return bill_of_save(measured, measured.windows[0], bytes_, s, gpus)


def test_it_has_the_lines_of_a_modelled_save():
    lines = {line.id: line for line in modelled(BASE).one_save.lines if line.cause == "save"}
    bill = billed(seen()).bill
    assert [line.id for line in bill.lines] == list(lines) == list(OF_A_SAVE)
    for line in bill.lines:
        assert (line.cause, line.ledger, line.boundary) == (
            lines[line.id].cause,
            lines[line.id].ledger,
            lines[line.id].boundary,
        )
    load = bill_of_load(seen(), seen().windows[0], BASE, 2.0).bill
    assert [line.id for line in load.lines] == list(OF_A_LOAD)
    assert load.lines[0].cause == modelled(BASE).run.line("loading").cause


def test_joules_of_the_stall_at_the_facility():
    found = billed(seen())
    gpu, host = found.bill.line("gpu_wait"), found.bill.line("host_wait")
    assert gpu.energy_j == pytest.approx(3 * 600 * PUE, **NEAR)
    assert host.energy_j == pytest.approx(
        3 * 400 * PUE, **NEAR
    )  # the node less its cards, whatever else is in it
    for name, exact in (("gpu_wait", 3 * 600 * PUE), ("host_wait", 3 * 400 * PUE)):
        assert found.energies[name].low <= exact <= found.energies[name].high
    assert (gpu.gpu_s, host.gpu_s) == (pytest.approx(6.0), 0.0)
    assert found.bill.line("slowdown")[4:7] == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("included", [True, False])
def test_prices_meet_measured_quantities_as_they_meet_modelled_ones(included):
    s = changed(cluster__price_includes_electricity=included)
    gpu, host = (billed(seen(), s).bill.line(name) for name in ("gpu_wait", "host_wait"))
    tariff = 0.0 if included else 0.09 / 3.6e6
    assert gpu.cost_usd == pytest.approx(6.0 * 2.5 / 3600 + gpu.energy_j * tariff)
    assert host.cost_usd == pytest.approx(host.energy_j * tariff)
    assert gpu.location_kgco2e == pytest.approx(gpu.energy_j * 0.384 / 3.6e6)
    assert gpu.market_kgco2e == pytest.approx(gpu.energy_j * 0.2 / 3.6e6)
    assert gpu.embodied_kgco2e == pytest.approx(6.0 * 0.033 / 3600)


def test_requests_are_priced_by_the_bytes_that_were_measured():
    line = billed(seen(), bytes_=128e6).bill.line("requests")
    assert (line.energy_j, line.cost_usd) == (0.0, pytest.approx(2 * 5e-6))
    assert math.isnan(billed(seen(), bytes_=math.nan).bill.line("requests").cost_usd)
    nothing = changed(tier__usd_per_request=UNKNOWN, tier__usd_per_byte_s=UNKNOWN)
    assert billed(seen(), nothing, bytes_=math.nan).bill.line("requests").cost_usd == 0.0


LOCAL = changed(tier__boundary="drive", tier__survives="process")


def test_a_drive_is_held_above_idle_where_the_scenario_means_the_drive():
    found = billed(seen(idle_w=4.0), LOCAL)
    line = found.bill.line("storage_write")
    assert line.energy_j == pytest.approx(3 * 6 * PUE, rel=0.02)
    assert line.boundary == "drive"
    assert line.location_kgco2e == pytest.approx(line.energy_j * 0.384 / 3.6e6)


@pytest.mark.parametrize(
    ("measured", "s", "why"),
    [
        (lambda: seen(idle_w=4.0), BASE, "OTHER_BOUNDARY"),
        (seen, LOCAL, "NO_BASELINE"),
        (lambda: seen("drive"), LOCAL, "NO_STORAGE_METER"),
        (lambda: seen("drive"), BASE, "NO_STORAGE_METER"),
    ],
)
def test_storage_that_was_not_measured_has_a_reason(measured, s, why):
    found = billed(measured(), s)
    assert found.energies["storage_write"].why == why
    assert math.isnan(found.bill.line("storage_write").energy_j)


@pytest.mark.parametrize(
    ("drop", "watts", "gpu_why", "host_why"),
    [
        (("node",), {}, "", "NO_NODE_METER"),
        (("gpu",), {}, "NO_GPU_METER", "NO_GPU_METER"),
        ((), {"module_0_w": 500.0}, "MODULE_METER", "MODULE_METER"),
        ((), {"node_w": 500.0}, "", "PARTS_EXCEED_NODE"),
    ],
)
def test_what_no_meter_tells_apart_is_unknown_and_no_sum(drop, watts, gpu_why, host_why):
    found = billed(seen(*drop, **watts))
    assert (found.energies["gpu_wait"].why, found.energies["host_wait"].why) == (gpu_why, host_why)
    assert math.isnan(found.bill.total("energy_j"))
    assert math.isnan(found.bill.line("gpu_wait").energy_j) == bool(gpu_why)


def test_joules_of_a_part_of_the_time_are_none():
    """A card that is silent in the middle of the stall would else look thrifty."""
    says = {
        energy("gpu:0", **TICK): lambda t: math.nan if 6.0 < t < 7.5 else 300.0 * t,
        energy("gpu:1", **TICK): at(300.0),
        energy("node", role="whole", **TICK): at(1000.0),
    }
    found = billed(evaluated(Told("told", says), marks=SYNC))
    silent = found.energies["gpu_wait"]
    assert (silent.why == "GAPS") or (silent.low <= 3 * 600 * PUE <= silent.high)
    lost = {
        energy("gpu:0", **TICK): lambda t: 300.0 * t if t < 6.0 else 300.0 * t - 1500.0,
        energy("node", role="whole", **TICK): at(1000.0),
    }
    found = billed(evaluated(Told("told", lost), marks=SYNC), gpus=1.0)
    assert found.energies["gpu_wait"].why == "GAPS"
    assert found.energies["host_wait"].why == "GAPS"


def test_a_drain_is_what_it_adds_and_never_the_time_it_takes():
    def jump(before_w, more_w):
        return lambda t: before_w * t + more_w * min(max(t - 6.0, 0.0), 4.0)

    says = {
        energy("gpu:0", **TICK): jump(300.0, 20.0),
        energy("node", role="whole", **TICK): jump(1000.0, 50.0),
    }
    found = billed(evaluated(Told("told", says), marks=ASYNC), gpus=1.0)
    line = found.bill.line("slowdown")
    assert line.energy_j == pytest.approx(4 * 50 * PUE, rel=0.01)
    assert math.isnan(line.gpu_s)
    assert math.isnan(found.bill.total("gpu_s"))
    assert found.bill.line("gpu_wait").gpu_s == pytest.approx(1.0)


def test_instants_that_nobody_marked():
    found = billed(seen(marks=said("begin 5, written 6, synced 8")))
    assert found.energies["gpu_wait"].why == "NOT_MARKED"
    assert math.isnan(found.bill.line("gpu_wait").gpu_s)
    found = billed(seen(idle_w=4.0, marks=said("begin 5, returned 8")), LOCAL)
    assert found.energies["gpu_wait"].known
    assert found.energies["storage_write"].why == "NOT_MARKED"
    assert not found.energies["slowdown"].known


def test_the_network_is_unknown_unless_nothing_leaves_the_node():
    assert billed(seen()).energies["network"].why == "NOT_METERED"
    assert math.isnan(billed(seen()).bill.line("network").energy_j)
    assert billed(seen(), LOCAL).bill.line("network").energy_j == 0.0


def test_nobody_knows_how_many_gpus():
    found = billed(seen(), gpus=math.nan)
    assert math.isnan(found.bill.line("gpu_wait").gpu_s)
    assert math.isnan(found.bill.line("gpu_wait").cost_usd)
    assert found.bill.line("gpu_wait").energy_j > 0
    assert math.isnan(gpus_metered(seen("gpu").energies.parts))
    assert gpus_metered(seen().energies.parts) == 2.0


def test_a_load_is_gpus_and_hosts_until_it_is_there():
    measured = seen(marks=said("begin 5, end 9"))
    found = bill_of_load(measured, measured.windows[0], BASE, 2.0)
    line = found.bill.line("loading")
    assert line.energy_j == pytest.approx(4 * 1000 * PUE, **NEAR)
    assert line.gpu_s == pytest.approx(8.0)
    endless = seen(marks=said("begin 5"))
    assert (
        bill_of_load(endless, endless.windows[0], BASE, 2.0).energies["loading"].why == "UNFINISHED"
    )


def test_pue_is_applied_once():
    one, two = (
        billed(seen(), replace(BASE, site=replace(BASE.site, pue=pue)))
        .bill.line("host_wait")
        .energy_j
        for pue in (1.0, 2.0)
    )
    assert two == pytest.approx(2 * one)
