"""Simulated meters against plain re-computation: power summed over fine steps, counters by their
definition, faults as described."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.core.phases import windows_of
from ckptcost.first.errors import InputError, MeterLost
from ckptcost.first.meters import base
from ckptcost.first.meters.simulated import KIB, RAPL_COUNTS, RAPL_UNIT_J, SECTOR_BYTES, find
from ckptcost.first.meters.simulated_machine import (
    SQUARE,
    Fault,
    Machine,
    MachinePlan,
    Wave,
    chance,
    marks,
)

S = 1_000_000_000
SMALL = MachinePlan(gpus=2, packages=1, disks=2)
STORAGES = ["fsync", "buffered", "direct"]
PLANS = {
    "sync": MachinePlan(),
    "async": MachinePlan(asynchronous=True, gpu_background_w=30.0),
    "buffered": MachinePlan(storage="buffered"),
    "direct, stops": MachinePlan(storage="direct", stop_s=150.0),
    "sharp": MachinePlan(ramp_s=0.0, variation=0.0),
    "slow ramps": MachinePlan(ramp_s=2.0, snapshot_s=0.5, write_s=0.5, fsync_s=0.5),
    "superchip": MachinePlan(gpus=2, packages=2, gpu_kind="superchip"),
}


def plain_watts(plan: MachinePlan, machine: Machine, gpu: int, t_s: np.ndarray) -> np.ndarray:
    """A card's power from the marks alone, for sharp edges: no areas, no tables."""
    idle, train, stall = plan.gpu_idle_w, plan.gpu_train_w, plan.gpu_stall_w
    power = np.where(t_s < plan.start_s, idle, train)
    trained = np.maximum(t_s - plan.start_s, 0.0)
    saves: dict[str, dict[str, float]] = {}
    for mark in marks(plan, 0.0, float(t_s.max()) + plan.interval_s):
        saves.setdefault(mark.window, {})[mark.name] = mark.t_s
    for at in saves.values():
        held = (t_s >= at["begin"]) & (t_s < at["returned"])
        power = np.where(held, stall, power)
        power = power + plan.gpu_snapshot_w * ((t_s >= at["begin"]) & (t_s < at["snapshotted"]))
        power = power + plan.gpu_background_w * ((t_s >= at["returned"]) & (t_s < at["committed"]))
        trained = trained - np.clip(t_s - at["begin"], 0.0, at["returned"] - at["begin"])
    phase = 0.1 * plan.step_s * chance(plan.seed, 3, gpu) if gpu else 0.0
    low = (trained + phase) % plan.step_s >= plan.step_s * (1.0 - plan.dip_share)
    training = (t_s >= plan.start_s) & (power >= train) & (power < 1.5 * train)
    power = np.where(training & low, power - plan.dip_w, power)
    return power * machine.unevenness(gpu)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("gpu", [0, 3])
def test_power_is_what_the_plan_says(asynchronous, gpu):
    plan = MachinePlan(
        ramp_s=0.0, asynchronous=asynchronous, gpu_snapshot_w=21.0, gpu_background_w=9.0
    )
    machine = Machine(plan)
    t_s = np.sort(np.random.default_rng(4).uniform(-3.0, 180.0, 50_000))
    off = np.abs(machine.watts(f"gpu:{gpu}", t_s) - plain_watts(plan, machine, gpu, t_s)) > 1e-6
    assert off.sum() <= 2  # a moment on an edge may fall either way


@pytest.mark.parametrize("name", PLANS)
def test_joules_are_the_area_under_the_power(name):
    machine = Machine(PLANS[name])
    t_s = np.linspace(1.37, 163.11, 60_001)
    middle, step_s = (t_s[1:] + t_s[:-1]) / 2.0, t_s[1] - t_s[0]
    for domain in {
        "gpu:0",
        "gpu:1",
        "gpu:1.memory",
        "cpu:0",
        "dram:1",
        "node",
        "unaccounted",
        "module:1",
    } & machine.loads.keys():
        area = machine.watts(domain, middle).sum() * step_s
        # at each jump one step's worth of the jump may be on the wrong side
        assert machine.exact_j(domain, t_s[0], t_s[-1]) == pytest.approx(area, rel=3e-5), domain


@given(
    at=st.lists(st.floats(-20.0, 5000.0), min_size=3, max_size=3),
    asynchronous=st.booleans(),
    storage=st.sampled_from(STORAGES),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=60, deadline=None)
def test_windows_add_up_and_parts_make_the_node(at, asynchronous, storage, seed):
    machine = Machine(replace(SMALL, asynchronous=asynchronous, storage=storage, seed=seed))
    a, b, c = sorted(at)
    for domain in machine.loads:
        whole, first, second = (
            machine.exact_j(domain, a, c),
            machine.exact_j(domain, a, b),
            machine.exact_j(domain, b, c),
        )
        assert whole == pytest.approx(first + second, rel=1e-9, abs=1e-4)
        assert first >= 0.0
    parts = sum(machine.exact_j(d, a, c) for d in ("gpu:0", "gpu:1", "cpu:0", "dram:0"))
    assert machine.exact_j("parts", a, c) == pytest.approx(parts, rel=1e-12, abs=1e-4)
    node, unaccounted = machine.exact_j("node", a, c), machine.exact_j("unaccounted", a, c)
    assert node == pytest.approx(parts + unaccounted, rel=1e-9, abs=1e-4)
    plan = machine.plan
    # without saves the other watts are constant: their joules and the loss of the supplies are all
    # that no part explains
    quiet = Machine(replace(plan, saves=0))
    known = (
        quiet.exact_j("parts", a, c) * (1 / plan.psu_efficiency - 1)
        + plan.other_w * (c - a) / plan.psu_efficiency
    )
    assert quiet.exact_j("unaccounted", a, c) == pytest.approx(known, rel=1e-9, abs=1e-4)


def test_the_square_wave_in_closed_form():
    machine = Machine(SQUARE)
    assert machine.exact_j("gpu:0", 0.0, 2.0) == pytest.approx(720.0)
    assert machine.exact_j("gpu:0", 1.0, 2.0) == pytest.approx(120.0)
    assert machine.exact_j("gpu:0", 100.25, 101.75) == pytest.approx(0.75 * 600 + 0.75 * 120)
    assert machine.exact_j("gpu:0", 0.0, 86_400.0) == pytest.approx(360.0 * 86_400, rel=1e-12)


@given(st.floats(-1e4, 1e4), st.floats(0.01, 50.0), st.floats(0.0, 1.0))
def test_the_wave_repeats(t_s, period_s, share):
    wave, at = Wave(period_s, share), np.array([t_s, t_s + period_s])
    assert wave.area(at)[1] - wave.area(at)[0] == pytest.approx(share * period_s, abs=1e-8)


def test_any_order_of_asking_and_any_distance_gives_the_same():
    near, far = Machine(SMALL), Machine(SMALL)
    day = [float(x) for x in np.random.default_rng(1).uniform(0.0, 90_000.0, 30)]
    far.exact_j("node", 0.0, 200_000.0)
    assert [near.exact_j("node", x - 5.0, x) for x in sorted(day)] == [
        far.exact_j("node", x - 5.0, x) for x in sorted(day)
    ]
    again, forward = find(SMALL, origin_ns=0).meters, find(SMALL, origin_ns=0).meters
    times = [round(x * S) for x in day]
    ahead = {t: [m.read(t) for m in forward] for t in sorted(times)}
    assert [[m.read(t) for m in again] for t in times] == [ahead[t] for t in times]


@pytest.mark.parametrize("seed", [1, 2])
def test_seeds_differ_and_repeat(seed):
    def all_of(seed):
        return [m.read(77 * S) for m in find(replace(SMALL, seed=seed), origin_ns=0).meters]

    assert all_of(seed) == all_of(seed)
    assert all_of(seed) != all_of(seed + 1)


def meter(name, plan=SMALL):
    return next(m for m in find(plan, origin_ns=0).meters if m.name == f"simulated-{name}")


def slot(m, domain, quantity):
    return next(
        i for i, c in enumerate(m.channels) if c.domain == domain and c.quantity == quantity
    )


@pytest.mark.parametrize(
    "plan",
    [
        *PLANS.values(),
        MachinePlan(gpus=0, packages=0, disks=0),
        MachinePlan(gpu_kind="mig", memory_scope=False),
    ],
)
def test_meters_keep_the_protocol(plan):
    found = find(plan, origin_ns=0)
    assert all(absence.reason and absence.remedy and absence.kind for absence in found.absences)
    keys = [(c.domain, c.quantity, c.source, c.scope) for m in found.meters for c in m.channels]
    assert len(keys) == len(set(keys))
    for m in found.meters:
        assert isinstance(m, base.Meter)
        assert m.simulated
        assert all("simulated" in c.source for c in m.channels)
        for t_s in (-2.0, 0.0, 39.5, 1e5):
            values = m.read(round(t_s * S))
            assert len(values) == len(m.channels)
            assert all(type(value) is float and math.isfinite(value) for value in values)
        first = m.read(10 * S)
        first[0] = -1.0  # what is handed out belongs to the caller
        assert m.read(10 * S)[0] != -1.0
        m.close()


@pytest.mark.parametrize("name", ["nvml", "rapl", "block", "process"])
@pytest.mark.parametrize("storage", STORAGES)
def test_counters_only_grow(name, storage):
    m = meter(name, replace(SMALL, storage=storage, gpu_jitter_s=0.08))
    rows = np.array([m.read(round(t * S)) for t in np.arange(-1.0, 140.0, 0.037)])
    falls = (np.diff(rows, axis=0) < 0).any(axis=0)
    assert [
        c.name for c, fell in zip(m.channels, falls, strict=True) if fell and c.is_counter
    ] == []


@pytest.mark.parametrize("jitter", [0.0, 0.06, 0.1])
def test_the_energy_counter_is_the_integral_at_its_tick(jitter):
    plan = replace(SMALL, gpu_jitter_s=jitter)
    m, machine = meter("nvml", plan), Machine(plan)
    counters = [slot(m, f"gpu:{i}", "energy_j") for i in (0, 1)]
    at = np.arange(34_000, 36_000)
    seen = np.array([[m.read(int(ms) * 1_000_000)[i] for i in counters] for ms in at])
    for gpu in (0, 1):
        moved = np.flatnonzero(np.diff(seen[:, gpu])) + 1
        ticks_s = at[moved] * 1e-3
        lag = (ticks_s - ticks_s[0] + 0.05) % 0.1 - 0.05
        assert len(moved) in (19, 20, 21)
        assert np.abs(lag).max() <= max(jitter, 0.001) + 1e-9
        if jitter:
            assert np.ptp(lag) > 0.3 * jitter
        # the tick lies in the last millisecond; at 700 W that is 0.7 J
        for k in moved:
            early = plan.gpu_counter_at_j + machine.exact_j(f"gpu:{gpu}", 0.0, at[k] * 1e-3 - 1e-3)
            late = plan.gpu_counter_at_j + machine.exact_j(f"gpu:{gpu}", 0.0, at[k] * 1e-3)
            assert early - 0.0011 <= seen[k, gpu] <= late + 1e-6
    phases = [float(m._gpus.ticked_s(50.0)[gpu]) % 0.1 for gpu in (0, 1)]
    assert phases[0] != phases[1]


@pytest.mark.parametrize("dip_share", [0.12, 0.95])
def test_the_counter_counts_whole_millijoules_and_watts_are_means_before_the_tick(dip_share):
    plan = replace(SMALL, dip_share=dip_share)
    m, machine = meter("nvml", plan), Machine(plan)
    for t_s in np.arange(30.0, 45.0, 0.217):
        row, ticks = m.read(round(t_s * S)), m._gpus.ticked_s(round(t_s * S) * 1e-9).tolist()
        for gpu, tick_s in enumerate(ticks):
            assert 0.0 <= t_s - tick_s < 0.1 + 1e-6
            domain = f"gpu:{gpu}"
            exact_j = plan.gpu_counter_at_j + machine.exact_j(domain, 0.0, tick_s)
            counter = row[slot(m, domain, "energy_j")]
            assert counter == pytest.approx(math.floor(exact_j * 1000.0) / 1000.0, abs=0.00101)
            assert counter * 1000.0 == pytest.approx(round(counter * 1000.0), abs=1e-4)
            assert row[slot(m, domain, "power_w")] == pytest.approx(
                machine.exact_j(domain, tick_s - 0.025, tick_s) / 0.025, abs=6e-4
            )
            mean_w = machine.exact_j(domain, tick_s - 1.0, tick_s)
            assert row[slot(m, f"{domain}.average", "power_w")] == pytest.approx(mean_w, abs=6e-4)
            memory_w = machine.exact_j(f"{domain}.memory", tick_s - 1.0, tick_s)
            assert row[slot(m, f"{domain}.memory", "power_w")] == pytest.approx(memory_w, abs=6e-4)
            assert memory_w < mean_w


def test_gauges_of_a_job_that_begins():
    m = meter("nvml", replace(SMALL, start_s=5.0))
    used, busy = slot(m, "gpu:1", "memory_used_bytes"), slot(m, "gpu:1", "utilisation")
    assert (m.read(3 * S)[used], m.read(3 * S)[busy]) == (0.0, 0.0)
    assert (m.read(20 * S)[used], m.read(20 * S)[busy]) == (120e9, 1.0)
    assert 0.0 < m.read(round(5.6 * S))[busy] < 1.0


@pytest.mark.parametrize("at_j", [0.0, 262_000.0, 262_143.0])
def test_rapl_counts_units_and_wraps(at_j):
    plan = replace(SMALL, cpu_counter_at_j=at_j)
    m, machine = meter("rapl", plan), Machine(plan)
    wraps_at = m.channels[0].wraps_at
    assert wraps_at == pytest.approx(262_143.3, abs=0.1)
    wraps, before = 0, None
    for t_s in np.arange(0.0, 40.0, 0.0997):
        tick_s = math.floor(t_s * 1000.0 + 1e-6) / 1000.0
        for i, domain in enumerate(c.domain for c in m.channels):
            units = (
                math.floor((at_j + machine.exact_j(domain, 0.0, tick_s)) / RAPL_UNIT_J)
                % RAPL_COUNTS
            )
            off = abs(m.read(round(t_s * S))[i] / RAPL_UNIT_J - units)
            assert (
                min(off, RAPL_COUNTS - off) < 210 * 0.0011 / RAPL_UNIT_J
            )  # a tick may round to its neighbour
        value = m.read(round(t_s * S))[0]
        wraps += before is not None and value < before
        before = value
    assert wraps == (at_j > 0)


def test_rapl_renews_each_millisecond():
    m = meter("rapl")
    values = [m.read(10 * S + k * 100_000)[0] for k in range(100)]
    assert 10 <= len(set(values)) <= 11
    assert all(v / RAPL_UNIT_J == pytest.approx(round(v / RAPL_UNIT_J), abs=1e-4) for v in values)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_bytes_go_through_the_cache_to_the_drives(storage, asynchronous):
    plan = replace(SMALL, storage=storage, asynchronous=asynchronous)
    block, cache, job = meter("block", plan), meter("writeback", plan), meter("process", plan)
    written = [slot(block, f"disk:nvme{i}n1", "written_bytes") for i in (0, 1)]

    def stored(t_s):
        return sum(block.read(round(t_s * S))[i] for i in written)

    for number, window in enumerate(windows_of(list(marks(plan, 0.0, 260.0)))[:3]):
        before, size = number * plan.checkpoint_bytes, plan.checkpoint_bytes
        at = {
            mark.name: mark.t_s for mark in marks(plan, 0.0, 260.0) if mark.window == window.label
        }
        sure = 1e-6
        assert window.flags == ()
        assert stored(at["begin"]) == before
        assert stored(at["durable"] + sure) == pytest.approx(before + size, abs=2 * SECTOR_BYTES)
        assert job.read(round((at["written"] + sure) * S))[0] == pytest.approx(
            before + size, abs=4096
        )
        half_s = (at["snapshotted"] + at["written"]) / 2.0
        assert job.read(round(half_s * S))[0] == pytest.approx(before + size / 2.0, rel=1e-6)
        dirty, under_way = cache.read(round(half_s * S))
        assert dirty % KIB == 0
        if storage == "direct":
            assert stored(half_s) == pytest.approx(before + size / 2.0, rel=1e-6)
            assert (dirty, under_way) == (6 * KIB * KIB, 0.0)
        else:
            on_the_way = stored(half_s) - before
            assert dirty + under_way - 6 * KIB * KIB == pytest.approx(
                size / 2.0 - on_the_way, rel=1e-6
            )
            assert (under_way > 0) == (storage == "fsync")
        if storage == "buffered":
            assert at["durable"] > at["returned"] + 30.0
            assert "synced" not in at
            assert stored(at["returned"]) == stored(at["committed"] + 29.9) == before
        else:
            assert at["durable"] == at["committed"]
            assert (at["returned"] < at["written"]) == asynchronous
        assert sum(cache.read(round((at["durable"] + sure) * S))) == 6 * KIB * KIB


def test_drives_are_busy_while_they_write():
    plan = replace(SMALL, variation=0.0)
    m = meter("block", plan)
    names = ["written_bytes", "writes", "flushes", "busy_s", "queue_s", "in_flight"]
    before, during, after = (
        [m.read(round(t * S))[i] for i in range(6)] for t in (34.9, 38.0, 45.0)
    )
    assert [c.quantity for c in m.channels[:6]] == names
    assert before == [0.0] * 6
    assert during[5] == 32.0
    assert during[2] == 0.0
    assert after[1] == math.floor(plan.checkpoint_bytes / 2 / plan.write_size_bytes + 1e-9)
    assert after[2:] == [
        1.0,
        7.5,
        240.0,
        0.0,
    ]  # write and fsync take 2.2 + 5.3 s, with 32 requests under way


def test_the_node_is_a_noisy_mean_of_the_second_before():
    plan = replace(SMALL, node_noise_w=8.0)
    m, quiet = meter("node", plan), meter("node", replace(plan, node_noise_w=0.0))
    machine, off = Machine(plan), []
    for t_s in np.arange(2.0, 80.0, 0.5):
        exact_w = machine.exact_j("node", math.floor(t_s) - 1.0, math.floor(t_s))
        assert quiet.read(round(t_s * S)) == [float(round(exact_w))]
        off.append(m.read(round(t_s * S))[0] - exact_w)
    assert max(map(abs, off)) <= 8.5
    assert max(off) > 4.0
    assert min(off) < -4.0
    assert m.least_s == 1.0
    assert m.channels[0].role == "whole"


def test_marks_are_a_hooks():
    names = [mark.name for mark in marks(MachinePlan(variation=0.0), 30.0, 90.0)]
    assert names == [
        "begin",
        "snapshotted",
        "written",
        "synced",
        "committed",
        "returned",
        "durable",
        "end",
    ]
    by_parts = [
        m for a in np.arange(0.0, 300.0, 7.7) for m in marks(MachinePlan(), a, min(a + 7.7, 300.0))
    ]
    assert by_parts == list(marks(MachinePlan(), 0.0, 300.0))
    later = list(marks(MachinePlan(), 0.0, 100.0, origin_s=1000.0))
    assert [m.t_s - 1000.0 for m in later] == pytest.approx(
        [m.t_s for m in marks(MachinePlan(), 0.0, 100.0)]
    )
    begins = [m.t_s for m in marks(MachinePlan(saves=2), 0.0, 900.0) if m.name == "begin"]
    assert begins == [35.0, 95.0]
    assert list(marks(MachinePlan(saves=0), 0.0, 900.0)) == []
    lengths = {round(w.length_s, 6) for w in windows_of(list(marks(MachinePlan(), 0.0, 900.0)))}
    assert len(lengths) == 15
    assert max(lengths) <= 7.85 * 1.05
    assert min(lengths) >= 7.85 * 0.95


def test_a_job_that_stops_ends_its_last_save_and_idles():
    plan = replace(SMALL, stop_s=110.0)
    machine = Machine(plan)
    begins = [m.t_s for m in marks(plan, 0.0, 1e4) if m.name == "begin"]
    assert begins == [35.0, 95.0]
    assert Machine(replace(plan, stop_s=102.0)).plan.count() == 1
    assert machine.watts("gpu:0", [109.9, 111.0, 1e6]).tolist() == pytest.approx(
        [
            machine.watts("gpu:0", 109.9)[0],
            77.7 * machine.unevenness(0),
            77.7 * machine.unevenness(0),
        ]
    )
    assert machine.exact_j("gpu:0", 1000.0, 1100.0) == pytest.approx(7770.0 * machine.unevenness(0))


def faulty(*faults, **changes):
    return replace(SMALL, faults=faults, **changes)


def test_a_card_that_is_lost_says_so_once_and_comes_back():
    m, whole = meter("nvml", faulty(Fault("lost", "gpu:1", 20.0, 30.0))), meter("nvml")
    of_it = [c.domain.startswith("gpu:1") for c in m.channels]
    assert any(c.domain == "gpu:1.memory" for c in m.channels)
    for t_s in np.arange(15.0, 40.0, 0.5):
        row, sound = m.read(round(t_s * S)), whole.read(round(t_s * S))
        for value, right, lost in zip(row, sound, of_it, strict=True):
            assert math.isnan(value) if lost and 20.0 <= t_s < 30.0 else value == right
        if t_s == 25.0:
            assert [(e.name, e.domain) for e in m.events] == [("lost", "gpu:1")]
    assert [(e.name, e.domain) for e in m.events] == [("lost", "gpu:1"), ("found", "gpu:1")]


def test_nobody_finds_what_nobody_missed():
    m = meter("nvml", faulty(Fault("lost", "gpu:1", 20.0, 30.0)))
    m.read(19 * S)
    m.read(31 * S)
    assert m.events == []


def test_gpu_10_is_not_gpu_1():
    m = meter("nvml", replace(SMALL, gpus=11, faults=(Fault("silent", "gpu:1", 0.0),)))
    row = m.read(9 * S)
    assert {c.domain for c, v in zip(m.channels, row, strict=True) if math.isnan(v)} == {
        "gpu:1",
        "gpu:1.average",
        "gpu:1.memory",
    }
    assert m.events == []


def test_a_counter_that_begins_again():
    m = meter("nvml", faulty(Fault("reset", "gpu:0", 20.0)))
    plain, machine = meter("nvml"), Machine(SMALL)
    i, watts = slot(m, "gpu:0", "energy_j"), slot(m, "gpu:0", "power_w")
    assert m.read(19 * S)[i] == plain.read(19 * S)[i]
    assert m.read(20 * S)[i] == 0.0
    tick_s = [float(m._gpus.ticked_s(t)[0]) for t in (20.0, 33.0)]
    assert m.read(33 * S)[i] == pytest.approx(machine.exact_j("gpu:0", *tick_s), abs=0.0011)
    assert m.read(33 * S)[watts] == plain.read(33 * S)[watts]
    assert (
        m.read(33 * S)[slot(m, "gpu:1", "energy_j")]
        == plain.read(33 * S)[slot(m, "gpu:1", "energy_j")]
    )
    assert [(e.name, e.domain) for e in m.events] == [("restarted", "gpu:0")]


def test_a_reset_near_a_wrap():
    plan = faulty(Fault("reset", "cpu:0", 1.0), cpu_counter_at_j=262_000.0)
    m, machine = meter("rapl", plan), Machine(plan)
    assert m.read(9 * S)[0] == pytest.approx(machine.exact_j("cpu:0", 1.0, 9.0), abs=0.25)


def test_a_counter_that_is_stuck():
    m, plain = meter("rapl", faulty(Fault("stuck", "cpu:0", 20.0, 30.0))), meter("rapl")
    held = plain.read(20 * S)[0]
    assert [m.read(t * S)[0] for t in (20, 25, 29)] == [held] * 3
    assert m.read(25 * S)[1] == plain.read(25 * S)[1]
    assert m.read(30 * S) == plain.read(30 * S)


def test_a_meter_that_is_gone():
    plan = faulty(Fault("gone", "simulated-node", 10.0, 20.0))
    m = meter("node", plan)
    m.read(9 * S)
    with pytest.raises(MeterLost, match="simulated-node is gone from second 10"):
        m.read(15 * S)
    assert m.read(20 * S)[0] > 0
    meter("rapl", plan).read(15 * S)


def test_second_0_is_where_the_first_reading_is():
    first, given_ = find(SMALL).meters, find(SMALL, origin_ns=7 * S).meters
    assert first[0].read(7 * S) == given_[0].read(7 * S)
    assert [m.read(55 * S) for m in first] == [m.read(55 * S) for m in given_]


def test_mig_superchips_and_old_cards():
    mig = find(replace(SMALL, gpu_kind="mig"))
    assert all("MIG" in c.note for c in mig.meters[0].channels)
    assert {c.quantity for c in mig.meters[0].channels} == {
        "energy_j",
        "power_w",
        "memory_used_bytes",
    }
    assert any("MIG" in absence.reason for absence in mig.absences)

    chip = MachinePlan(gpus=2, packages=2, gpu_kind="superchip")
    m, machine = meter("nvml", chip), Machine(chip)
    assert {c.domain for c in m.channels if c.role == "part"} == {"module:0", "module:1"}
    assert all(c.covers == ("cpu", "dram") for c in m.channels)
    tick_s = float(m._gpus.ticked_s(50.0)[1])
    counted = m.read(50 * S)[slot(m, "module:1", "energy_j")] - chip.gpu_counter_at_j
    inside = [machine.exact_j(d, 0.0, tick_s) for d in ("gpu:1", "cpu:1", "dram:1")]
    assert counted == pytest.approx(sum(inside), abs=0.0011)
    assert machine.exact_j("parts", 0.0, 9.0) == pytest.approx(
        sum(machine.exact_j(f"module:{i}", 0.0, 9.0) for i in (0, 1))
    )

    old = find(replace(SMALL, energy_counter=False, memory_scope=False))
    assert not any(c.quantity == "energy_j" or "memory" in c.domain for c in old.meters[0].channels)
    assert len(old.absences) == 4
    assert find(SMALL).absences == ()


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"gpus": -1}, "gpus"),
        ({"interval_s": 7.0}, "interval_s"),
        ({"storage": "buffered", "interval_s": 38.0}, "interval_s"),
        ({"interval_s": math.nan}, "interval_s"),
        ({"write_s": 0.0}, "write_s"),
        ({"first_s": 4.0}, "first_s"),
        ({"stop_s": 1.0}, "stop_s"),
        ({"psu_efficiency": 0.0}, "psu_efficiency"),
        ({"gpu_jitter_s": 0.2}, "gpu_jitter_s"),
        ({"variation": 1.0}, "variation"),
        ({"gpu_kind": "superchip"}, "packages"),
        ({"checkpoint_bytes": math.inf}, "checkpoint_bytes"),
    ],
)
def test_plans_that_cannot_be(changes, key):
    with pytest.raises(InputError) as raised:
        replace(SMALL, **changes)
    assert key in raised.value.key


def test_an_unknown_domain_names_the_known_ones():
    with pytest.raises(InputError, match="gpu:1"):
        Machine(SMALL).exact_j("gpu:9", 0.0, 1.0)


def test_chances_are_even():
    values = np.array([chance(3, 1, k, 5) for k in range(4000)])
    assert abs(values.mean() - 0.5) < 0.02
    assert abs(np.var(values) - 1 / 12) < 0.005
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.05
    assert len({chance(0, a, b) for a in range(20) for b in range(20)}) == 400
