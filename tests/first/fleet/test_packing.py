"""From recordings to rows: sums that are the statement's, days that add up to the run, and packing
again that changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packable_runs import GPU_W, NEW_YEAR_NS, NODE_W, TICK, machine, packable, save, steady
from told_meters import Told, at, energy

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.domain import UNKNOWN
from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.errors import InputError
from ckptcost.first.fleet.node_day import COLUMNS, LINES, key_of
from ckptcost.first.fleet.node_file import decode
from ckptcost.first.fleet.packing import (
    NEWER,
    THERE,
    WRITTEN,
    Failed,
    Packing,
    PackingRequest,
    pack_runs,
    study_of,
)
from ckptcost.first.fleet.recorded_day import CLOCK_SET_S, DAY_NS, DayClock, days_of
from ckptcost.first.fleet.recorded_day import DayFacts as Said
from ckptcost.first.fleet.store import open_store
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.report.statements.measured import statement_of
from ckptcost.first.report.studies.runs import MOST_WARNED
from ckptcost.first.runs import job_facts
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.store import kept_at
from ckptcost.first.runs.summary import one_of

NEAR = {"rel": 1e-9, "abs": 1e-6}
JOB = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_ACCOUNT": "infra",
    "SLURM_CLUSTER_NAME": "alps",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_JOB_NODELIST": "n[1-4]",
    "CKPTCOST_LABELS": "model=llama-405b",
}


def day_of(folder, host="", **said):
    (day,) = days_of(reviewed(folder, host=host), Said("j", **said))
    return day


def column(days, name):
    return np.concatenate([day.rows[name] for day in days])


def store_at(tmp_path):
    return open_store(str(tmp_path / "store"), make=True)


def pack(store, *folders, **asked):
    return pack_runs(
        store, [kept for folder in folders for kept in kept_at(folder)], PackingRequest(**asked)
    )


def outcomes(packing):
    return [put.outcome for put in packing.puts]


def read_all(store):
    return {entry.path: store.read(entry.path) for entry in store.listing()}


# ---- rows are the statement's


BIG = [
    save("a", 60, 70),
    save("b", 65, 75, 80),
    save("c", 100, 110, of="load"),
    save("d", 105, 112),
    save("e", 120, 122, 130),
]
CASES = {
    "a simulated machine": (machine(), BIG),
    "without a node's meter": (steady(node=False, packages=1), BIG),
    "nothing but cards": (steady(node=False), BIG),
    "no card": (steady(gpus=0), BIG),
    "a drive of its own": (
        [
            Told(
                "d",
                {
                    energy("node", role="whole"): at(500.0),
                    energy("drive:nvme0n1", boundary="drive"): at(9.0),
                },
            )
        ],
        BIG,
    ),
    "loads alone": (machine(), [save("a", 60, 70, of="load"), save("b", 80, 81, of="load")]),
    "one that never ended": (machine(), [[(60, "begin", "a", {})], save("b", 100, 110)]),
    "one that never began": (
        machine(),
        [[(60, "returned", "a", {}), (61, "durable", "a", {})], save("b", 100, 110)],
    ),
    "superchips": (machine(gpu_kind="superchip", packages=2), BIG),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_add_up_to_the_statement(tmp_path, case):
    meters, marks = CASES[case]
    m = reviewed(packable(tmp_path / "run", *marks, meters=meters))
    statement = {c.id: c for c in statement_of(m, Catalog(), None).components}
    (day,) = days_of(m, Said("j"))
    rows, is_load = day.rows, day.rows["load"]
    checked = 0
    for line, short in {
        "gpu_wait": "gpu",
        "host_wait": "host",
        "slowdown": "slow",
        "storage_write": "storage",
    }.items():
        if line in statement:
            joules = rows[f"{short}_j"][~is_load]
            value = statement[line].energy.value
            known = joules[~np.isnan(joules)]
            # of 0 and something unknown a sum would say no more than "at least 0"
            assert (value is None) == bool(len(known) < len(joules) and not known.any())
            if value is not None:
                assert math.fsum(joules[~np.isnan(joules)]) == pytest.approx(value * KWH_J, **NEAR)
                assert np.isnan(joules).sum() == len(statement[line].energy.excludes)
                checked += 1
    if "loading" in statement and (value := statement["loading"].energy.value) is not None:
        both = rows["gpu_j"][is_load] + rows["host_j"][is_load]
        assert math.fsum(both) == pytest.approx(value * KWH_J, **NEAR)
        assert (rows["gpu_j"][is_load] > 0).all()
        assert (rows["host_j"][is_load] > 0).all()
        checked += 1
    for line, which in (("gpu_wait", ~is_load), ("loading", is_load)):
        if line in statement and statement[line].gpu_time_lost.value is not None:
            gpu_s = rows["gpu_s"][which]
            assert math.fsum(gpu_s[~np.isnan(gpu_s)]) == pytest.approx(
                statement[line].gpu_time_lost.value * HOUR_S, **NEAR
            )
            checked += 1
    assert checked, "nothing was compared"
    finished = int((~rows["failed"] & ~is_load).sum())
    assert finished == statement_of(m, Catalog(), None).totals.checkpoints.value


def test_ends_hold_what_they_did_before_they_were_32_bits(tmp_path):
    m = reviewed(packable(tmp_path / "run", *BIG, meters=machine()))
    (day,) = days_of(m, Said("j"))
    for line in LINES:
        value, low, high = (day.rows[f"{line}{end}_j"] for end in ("", "_low", "_high"))
        known = ~np.isnan(value)
        assert (low[known] <= value[known]).all()
        assert (high[known] >= value[known]).all()
        assert (np.isnan(low) == np.isnan(value)).all()
    exact = {c.id: c.energy for c in statement_of(m, Catalog(), None).components}["gpu_wait"]
    mine = ~day.rows["load"]
    assert math.fsum(day.rows["gpu_low_j"][mine]) <= exact.low * KWH_J * (1 + 1e-12)
    assert math.fsum(day.rows["gpu_high_j"][mine]) >= exact.high * KWH_J * (1 - 1e-12)
    assert math.fsum(day.rows["gpu_low_j"][mine]) == pytest.approx(exact.low * KWH_J, rel=1e-6)


def test_processors_alone_are_the_least_that_the_host_took(tmp_path):
    folder = packable(
        tmp_path / "run",
        save("a", 60, 70),
        save("b", 100, 110, of="load"),
        meters=steady(node=False, packages=2),
    )
    rows = day_of(folder).rows
    # a load is one line of a statement, which has no joules without the node's: the fleet says no
    # other
    assert rows["host_j"] == pytest.approx([2000.0, math.nan], rel=1e-6, nan_ok=True)
    assert rows["host_high_j"][0] == math.inf
    assert rows["gpu_j"] == pytest.approx([6000.0, 6000.0], rel=1e-6)


# ---- closed forms


def test_one_save_of_steady_watts(tmp_path):
    day = day_of(packable(tmp_path / "run", save("step 1", 60, 64, 70), asked=(10.0, 140.0)))
    (row,) = [{name: values[0] for name, values in day.rows.items()}]
    assert set(row) == set(COLUMNS)
    assert (row["label"], row["key"], row["load"], row["failed"], row["ranks"]) == (
        "step 1",
        key_of("step 1"),
        False,
        False,
        1,
    )
    assert row["begin_ns"] == pytest.approx(NEW_YEAR_NS + 3660 * S, abs=1000)
    assert (row["stall_s"], row["drain_s"], row["bytes"], row["files"]) == (
        pytest.approx(4.0),
        pytest.approx(6.0),
        1e9,
        2.0,
    )
    assert row["gpu_s"] == pytest.approx(8.0)
    assert row["gpu_j"] == pytest.approx(2 * GPU_W * 4, rel=1e-6)
    assert row["host_j"] == pytest.approx((NODE_W - 2 * GPU_W) * 4, rel=1e-6)
    assert row["slow_j"] == pytest.approx(0.0, abs=0.5)
    assert math.isnan(row["storage_j"])  # no drive is metered
    head = day.head
    assert (head.host, head.day, head.gpus, head.simulated) == ("n1", "2026-01-01", 2.0, False)
    assert head.covered_s == pytest.approx(130.0, abs=0.01)
    assert (head.until_ns - head.began_ns) / S == pytest.approx(130.0, abs=0.3)
    assert head.gpu_total_j == pytest.approx(2 * GPU_W * 130, rel=1e-4)
    assert head.host_total_j == pytest.approx((NODE_W - 2 * GPU_W) * 130, rel=1e-4)
    assert (head.train_gpu_w, head.train_host_w) == (
        pytest.approx(2 * GPU_W),
        pytest.approx(NODE_W - 2 * GPU_W),
    )
    assert math.isnan(head.step_s)
    boot, pid = head.meter.rsplit(":", 1)
    assert boot
    assert int(pid) > 0


def test_training_power_leaves_saves_and_loads_out(tmp_path):
    def joules(t_s):  # 500 W, but 100 W in [60, 70) and [90, 95)
        away_s = max(0.0, min(t_s, 70.0) - 60.0) + max(0.0, min(t_s, 95.0) - 90.0)
        return 500.0 * t_s - 400.0 * away_s

    meters = [Told("told", {energy("gpu:0", **TICK): joules, energy("cpu:0", **TICK): at(100.0)})]
    folder = packable(
        tmp_path / "run",
        save("a", 60, 66, 70),
        save("b", 90, 95, of="load"),
        meters=meters,
        asked=(10.0, 140.0),
    )
    head = day_of(folder).head
    assert head.train_gpu_w == pytest.approx(500.0, rel=1e-4)
    assert head.train_host_w == pytest.approx(100.0, rel=1e-6)
    assert head.gpu_total_j == pytest.approx(500.0 * 130 - 400.0 * 15, rel=1e-4)


def test_a_card_that_was_lost_for_a_part_of_the_day_makes_no_total(tmp_path):
    def half(t_s):
        return GPU_W * t_s if t_s < 70 else UNKNOWN

    meters = [
        Told(
            "told",
            {
                energy("gpu:0", **TICK): at(GPU_W),
                energy("gpu:1", **TICK): half,
                energy("node", role="whole", **TICK): at(NODE_W),
            },
        )
    ]
    head = day_of(packable(tmp_path / "run", save("a", 20, 22), meters=meters)).head
    assert math.isnan(head.gpu_total_j)
    assert math.isnan(head.host_total_j)
    assert head.train_gpu_w == pytest.approx(2 * GPU_W, rel=1e-6)  # its watts while it answered


def test_nothing_metered_is_unknown_and_not_zero(tmp_path):
    head = day_of(packable(tmp_path / "run", save("a", 20, 22), meters=steady(gpus=0))).head
    assert math.isnan(head.gpu_total_j)
    assert math.isnan(head.train_gpu_w)
    assert math.isnan(head.gpus)
    assert head.host_total_j > 0


def test_steps(tmp_path):
    marks = [
        (t, "steps", "", {"base": (t - 4) * S, "ends_ms": [0.0, 2000.0]}) for t in range(10, 140, 4)
    ]
    assert day_of(packable(tmp_path / "run", marks)).head.step_s == pytest.approx(2.0)


def test_what_failed(tmp_path):
    folder = packable(
        tmp_path / "run",
        save("good", 20, 22),
        save("bad", 40, 42, error="OSError"),
        [(60, "begin", "open", {})],
        [(80, "returned", "tail", {})],
        save("again", 90, 91),
        save("again", 100, 101),
    )
    rows = day_of(folder).rows
    assert [
        label for label, failed in zip(rows["label"], rows["failed"], strict=True) if failed
    ] == ["bad", "open"]
    assert list(rows["begin_ns"]) == sorted(rows["begin_ns"])
    stall_s = dict(zip(rows["label"], rows["stall_s"], strict=True))
    assert math.isnan(stall_s["open"])
    assert math.isnan(stall_s["tail"])
    tail = list(rows["label"]).index("tail")
    assert rows["begin_ns"][tail] == pytest.approx(
        NEW_YEAR_NS + 3680 * S, abs=1000
    )  # its first mark
    assert (
        len(set(rows["key"])) == len(set(rows["label"])) == len(rows["key"]) - 1
    )  # the merge tells saves of one label apart by time


# ---- days


@pytest.fixture
def midnight(tmp_path):
    """Begins 100 s before midnight; a save on either side, and one across."""
    return packable(
        tmp_path / "run",
        save("a", 20, 30),
        save("b", 95, 105, 110),
        save("c", 150, 160),
        seconds=240.0,
        wall_ns=NEW_YEAR_NS - 100 * S,
        meters=machine(),
        asked=(5.0, 230.0),
        exit_status=3,
        job=JOB,
    )


def test_midnight(midnight):
    m = reviewed(midnight)
    before, after = days_of(m, Said("j", over=True))
    assert (before.head.day, after.head.day) == ("2025-12-31", "2026-01-01")
    assert (list(before.rows["label"]), list(after.rows["label"])) == (["a", "b"], ["c"])
    assert (before.head.exit_code, after.head.exit_code) == (None, 3)
    assert (before.head.over, after.head.over) == (False, True)
    assert before.head.covered_s == pytest.approx(95.0, abs=1e-3)
    assert after.head.covered_s == pytest.approx(130.0, abs=1e-3)
    assert before.head.until_ns <= NEW_YEAR_NS <= after.head.began_ns
    assert NEW_YEAR_NS - before.head.until_ns < S
    assert before.head.run_began_ns == after.head.run_began_ns == before.head.began_ns
    for kind, total in (("gpu", "gpu_total_j"), ("node", "host_total_j")):
        counted = [
            domain
            for domain in (*m.energies.parts, *m.energies.wholes)
            if domain.split(":")[0] == kind
        ]
        whole = math.fsum(m.spans[domain].value for domain in counted)
        cards = before.head.gpu_total_j + after.head.gpu_total_j if kind == "node" else 0.0
        assert getattr(before.head, total) + getattr(after.head, total) == pytest.approx(
            whole - cards, rel=1e-9
        )


def test_of_several_tasks_the_one_that_failed_counts(tmp_path):
    ends = [
        (55.0 + n, "note", "", {"exit_status": status}) for n, status in enumerate((0, 137, 143, 0))
    ]
    folder = packable(tmp_path / "run", seconds=60.0)
    m = reviewed(folder)
    marks = [Mark(t_s, name, window, 0, "wrap", detail) for t_s, name, window, detail in ends]
    m.run.marks += tuple(marks)
    (day,) = days_of(m, Said("j"))
    assert day.head.exit_code == 137  # 128 and SIGKILL


def test_days_without_saves_have_a_head(tmp_path):
    folder = packable(tmp_path / "run", seconds=60.0, wall_ns=NEW_YEAR_NS - 30 * S)
    days = days_of(reviewed(folder), Said("j"))
    assert [(day.head.day, day.many) for day in days] == [("2025-12-31", 0), ("2026-01-01", 0)]
    assert all(day.head.covered_s > 20 for day in days)


def test_a_save_in_the_margin_before_midnight_keeps_its_day(tmp_path):
    folder = packable(
        tmp_path / "run",
        save("a", 5, 25),
        seconds=60.0,
        wall_ns=NEW_YEAR_NS - 10 * S,
        asked=(20.0, 50.0),
    )
    before, after = days_of(reviewed(folder), Said("j"))
    assert (before.head.day, before.many, after.many) == ("2025-12-31", 1, 0)
    assert math.isnan(before.head.covered_s)
    assert after.head.covered_s == pytest.approx(30.0, abs=0.01)


walls = st.lists(st.tuples(st.floats(0.5, 200.0), st.floats(-5e5, 5e5)), min_size=1, max_size=8)


@given(walls, st.floats(0, 1e6), st.floats(1, 4e5))
def test_a_clock_that_is_set_loses_no_second(steps, begin_s, length_s):
    wall, t_s, ahead_s = [(0.0, NEW_YEAR_NS / S)], 0.0, 0.0
    for more_s, set_s in steps:
        t_s, ahead_s = t_s + more_s * 60, ahead_s + (set_s if abs(set_s) > CLOCK_SET_S else 0.0)
        wall.append((t_s, NEW_YEAR_NS / S + t_s + ahead_s))
    days = DayClock(wall).days(begin_s, begin_s + length_s)
    spans = sorted(days.values())
    assert spans[0][0] == begin_s
    assert spans[-1][1] == begin_s + length_s
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    assert len(days) < 4e5 / 86400 + 2 * len(steps) + 3


@given(st.floats(0, 3e5), st.integers(-40, 40))
def test_days_are_those_of_unix_time(begin_s, drift_s):
    wall = [
        (0.0, NEW_YEAR_NS / S),
        (60.0, NEW_YEAR_NS / S + 60),
        (1e5, NEW_YEAR_NS / S + 1e5 + drift_s),
    ]
    clock = DayClock(wall)
    for day, (since_s, until_s) in clock.days(begin_s, begin_s + 2e5).items():
        assert clock.ns((since_s + until_s) / 2) // DAY_NS == day
        if since_s > begin_s:
            assert clock.ns(since_s) == pytest.approx(day * DAY_NS, abs=1000)


# ---- the store


def test_what_lies_in_the_store(tmp_path, midnight):
    store = store_at(tmp_path)
    first = pack(store, midnight)
    assert outcomes(first) == [WRITTEN, WRITTEN]
    assert [(put.day, put.rows, put.job) for put in first.puts] == [
        ("2025-12-31", 2, "17"),
        ("2026-01-01", 1, "17"),
    ]
    entries = store.listing()
    assert [(entry.job, entry.day, entry.bytes) for entry in entries] == [
        (put.job, put.day, put.bytes) for put in first.puts
    ]
    last = decode(store.read(entries[1].path))
    head = last.head
    assert dict(head.labels) == {"team": "infra", "cluster": "alps", "model": "llama-405b"}
    assert (head.nodes, head.node_names, head.over, head.exit_code, head.simulated) == (
        4,
        "n[1-4]",
        True,
        3,
        True,
    )
    _, same = days_of(reviewed(midnight), Said("17", head.labels, 4, "n[1-4]", True, head.source))
    assert replace(head, meter="") == replace(same.head, meter="")
    for name in COLUMNS:
        np.testing.assert_array_equal(last.rows[name], same.rows[name])


def test_again_nothing_is_written(tmp_path, midnight, monkeypatch):
    store = store_at(tmp_path)
    first = pack(store, midnight)
    before = read_all(store)
    monkeypatch.setattr(type(store), "put", lambda *_: pytest.fail("written again"))
    monkeypatch.setattr(
        "ckptcost.first.fleet.packing.days_of", lambda *_: pytest.fail("read again")
    )
    again = pack(store, midnight)
    assert outcomes(again) == [THERE, THERE]
    assert [put[:6] for put in again.puts] == [put[:6] for put in first.puts]
    assert read_all(store) == before


def test_the_same_run_gives_the_same_bytes(tmp_path, midnight):
    one, other = (open_store(str(tmp_path / name), make=True) for name in ("one", "other"))
    pack(one, midnight)
    pack(other, midnight)
    assert read_all(one) == read_all(other) != {}


def test_a_run_that_grew_is_written_again_and_a_shorter_one_is_not(tmp_path):
    short = packable(tmp_path / "short", save("a", 20, 22), seconds=60.0, stop=False)
    long = packable(tmp_path / "long", save("a", 20, 22), save("b", 70, 72), seconds=120.0)
    store = store_at(tmp_path)
    assert outcomes(pack(store, short)) == [WRITTEN]
    (path,) = read_all(store)
    assert not decode(store.read(path)).head.over
    assert outcomes(pack(store, long)) == [WRITTEN]
    whole = read_all(store)
    assert decode(whole[path]).many == 2
    assert decode(whole[path]).head.over
    assert outcomes(pack(store, short)) == [NEWER]
    assert read_all(store) == whole


def test_a_day_whose_first_hours_are_gone_does_not_replace_the_whole(tmp_path):
    whole = packable(tmp_path / "whole", save("a", 20, 22), save("b", 100, 102))
    late = packable(
        tmp_path / "late",
        save("b", 100 - 60, 102 - 60),
        seconds=90.0,
        wall_ns=NEW_YEAR_NS + 3660 * S,
        start_ns=60 * S,
    )
    store = store_at(tmp_path)
    pack(store, whole)
    assert outcomes(pack(store, late)) == [NEWER]


def test_what_is_asked_for_comes_before_what_the_launcher_said(tmp_path, midnight):
    store = store_at(tmp_path)
    pack(store, midnight, job="mine", labels={"team": "vision", "cluster": "", "tier": "scratch"})
    head, _ = (decode(data).head for data in read_all(store).values())
    assert head.job == "mine"
    assert dict(head.labels) == {"team": "vision", "model": "llama-405b", "tier": "scratch"}
    assert outcomes(pack(store, midnight, job="mine", labels={"team": "nlp"})) == [WRITTEN, WRITTEN]
    # who packs everything each hour says nothing of it, and takes nothing away
    assert outcomes(pack(store, midnight)) == [THERE, THERE]
    assert {decode(data).head.job for data in read_all(store).values()} == {"mine"}
    other = pack(store, midnight, job="yours")
    assert outcomes(other) == [WRITTEN, WRITTEN]
    assert [("under another job, is gone" in note) for note in other.notes] == [True, True]
    assert {decode(data).head.job for data in read_all(store).values()} == {"yours"}


def test_what_was_said_by_hand_stays_when_the_run_has_grown(tmp_path):
    folder, store = tmp_path / "run", store_at(tmp_path)
    packable(folder, save("a", 20, 22))
    pack(store, folder, job="mine", labels={"team": "vision"})
    packable(folder, save("b", 20, 22), wall_ns=NEW_YEAR_NS + 7200 * S)
    assert WRITTEN in outcomes(pack(store, folder))
    heads = [decode(data).head for data in read_all(store).values()]
    assert [(head.job, dict(head.labels)) for head in heads] == [("mine", {"team": "vision"})]
    assert outcomes(pack(store, folder, job="mine", labels={"team": "vision"})) == [THERE]


def test_another_job_takes_nothing_away_that_holds_more(tmp_path):
    """A copy of the run that was made while it went on, packed under another name, must not cost
    the whole one."""
    whole = packable(tmp_path / "whole", save("a", 20, 22), save("b", 100, 102))
    part = packable(tmp_path / "part", save("a", 20, 22), seconds=60.0)
    store = store_at(tmp_path)
    pack(store, whole, job="mine")
    packing = pack(store, part, job="yours")
    assert "holds more" in packing.notes[0]
    rows = {decode(data).head.job: decode(data).many for data in read_all(store).values()}
    assert rows == {"mine": 2, "yours": 1}
    assert "is gone" in pack(store, whole, job="last").notes[0]


def test_without_a_launcher_a_run_is_its_own_job(tmp_path):
    store = store_at(tmp_path)
    (put,) = pack(store, packable(tmp_path / "run", save("a", 20, 22))).puts
    assert put.job == put.run == "ab" * 16


def test_several_hosts_in_one_folder(tmp_path):
    folder = tmp_path / "run"
    for n in (1, 2, 3):
        packable(
            folder,
            save("a", 20 + n, 30),
            host=f"n{n}",
            job=JOB,
            wall_ns=NEW_YEAR_NS + n * 3600 * S,
            exit_status=n,
        )
    store = store_at(tmp_path)
    packing = pack(store, folder)
    assert [(put.host, put.outcome, put.rows) for put in packing.puts] == [
        (f"n{n}", WRITTEN, 1) for n in (1, 2, 3)
    ]
    days = {day.head.host: day for data in read_all(store).values() for day in [decode(data)]}
    for n in (1, 2, 3):
        day = days[f"n{n}"]
        assert day.head.exit_code == n
        assert day.rows["stall_s"][0] == pytest.approx(10 - n)
        assert day.rows["begin_ns"][0] == pytest.approx(
            NEW_YEAR_NS + (n * 3600 + 20 + n) * S, abs=1000
        )
        m = reviewed(folder, host=f"n{n}")
        known = {c.id: c.energy.value for c in statement_of(m, Catalog(), None).components}
        assert day.rows["gpu_j"].sum() == pytest.approx(known["gpu_wait"] * KWH_J, rel=1e-9)
    assert len({day.rows["key"][0] for day in days.values()}) == 1
    packable(folder, save("a", 20, 30), host="n4", job=JOB)
    assert sorted(outcomes(pack(store, folder))) == [
        THERE,
        THERE,
        THERE,
        WRITTEN,
    ]  # the others' files are as they were


def test_a_run_that_was_killed_is_not_over(tmp_path):
    store = store_at(tmp_path)
    pack(store, packable(tmp_path / "run", save("a", 20, 22), stop=False))
    (data,) = read_all(store).values()
    assert (decode(data).head.over, decode(data).head.exit_code) == (False, None)


def test_a_baseline_that_is_learned_later_is_news(tmp_path, monkeypatch):
    from ckptcost.first.core.attribution import Baseline
    from ckptcost.first.runs import baselines

    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    meters = [Told("d", {energy("drive:nvme0n1", boundary="drive"): at(9.0)})]
    folder = packable(tmp_path / "run", save("a", 20, 30), meters=meters)
    store = store_at(tmp_path)
    pack(store, folder)
    assert math.isnan(decode(*read_all(store).values()).rows["storage_j"][0])
    idle = baselines.Idle(
        "n1",
        "2026-01-01T00:00:00+00:00",
        30.0,
        {},
        False,
        {"drive:nvme0n1": Baseline(5.0, 5.0, 5.0)},
    )
    baselines.save(idle, baselines.file_of("n1"))
    assert outcomes(pack(store, folder)) == [WRITTEN]
    assert decode(*read_all(store).values()).rows["storage_j"][0] == pytest.approx(40.0, rel=1e-6)
    assert outcomes(pack(store, folder)) == [THERE]


def test_a_note_that_is_said_again_counts_when_the_first_part_is_gone(tmp_path):
    folder = packable(tmp_path / "run", save("a", 20, 22), job=JOB)
    m = reviewed(folder)
    assert [event for event in m.events if event.domain == job_facts.DOMAIN] == []
    assert one_of(folder).run == "ab" * 16
    (put,) = pack(store_at(tmp_path), folder).puts
    assert put.job == "17"


W = NEW_YEAR_NS / S


def test_before_the_first_pair_and_after_the_last_the_clock_goes_on() -> None:
    clock = DayClock([(10.0, W), (70.0, W + 90.0)])
    assert [clock.ns(t_s) - NEW_YEAR_NS for t_s in (4.0, 10.0, 40.0, 70.0, 76.0)] == [
        -6 * S,
        0,
        45 * S,
        90 * S,
        96 * S,
    ]


@pytest.mark.parametrize("set_s", [7200.0, -7200.0])
def test_until_a_clock_is_set_it_goes_on_as_before(set_s: float) -> None:
    """Not slowly over the time between two pairs, and the jump is at the second."""
    clock = DayClock(
        [(0.0, W), (60.0, W + 60.0), (120.0, W + 120.0 + set_s), (180.0, W + 180.0 + set_s)]
    )
    assert [(clock.ns(t_s) - NEW_YEAR_NS) / S for t_s in (30.0, 90.0, 119.0)] == [30.0, 90.0, 119.0]
    assert [(clock.ns(t_s) - NEW_YEAR_NS) / S for t_s in (121.0, 150.0, 190.0)] == [
        set_s + t_s for t_s in (121.0, 150.0, 190.0)
    ]


def test_a_load_drains_nothing(tmp_path) -> None:
    (day,) = days_of(
        reviewed(
            packable(tmp_path / "run", save("a", 20, 22, 30, of="load"), save("b", 60, 62, 70))
        ),
        Said("j"),
    )
    assert list(day.rows["load"]) == [True, False]
    assert day.rows["drain_s"] == pytest.approx([0.0, 8.0])


@pytest.mark.parametrize("name", ["exit_status", "exit_code"])
def test_how_a_command_ended_by_either_name(tmp_path, name) -> None:
    m = reviewed(packable(tmp_path / "run", seconds=60.0))
    m.run.marks += (
        Mark(55.0, "note", "", 0, "wrap", {name: 7}),
        Mark(56.0, "note", "", 0, "api", {name: 9}),
    )
    (day,) = days_of(m, Said("j"))
    assert day.head.exit_code == 7


def test_of_many_runs_that_could_not_be_packed_the_first_are_named() -> None:
    for many, more in ((MOST_WARNED, False), (MOST_WARNED + 1, True)):
        failed = [Failed(f"run {n}", InputError("is broken")) for n in range(many)]
        notes = [f"note {n}." for n in range(many)]
        study = study_of(Packing("/shared/fleet", [], failed, notes, 0))
        told = [text for code, text in study.warnings if code == "UNREADABLE"]
        assert told[0].startswith("run 0: ")
        assert told[0].endswith("is broken.")
        assert told[MOST_WARNED:] == (["And 1 more."] if more else [])
        assert [text for code, text in study.warnings if code == "JOB"][MOST_WARNED:] == (
            ["And 1 more."] if more else []
        )
    shown = [column.id for column in study.tables[0].columns if column.shown]
    assert shown == ["run", "host", "day", "rows", "size", "outcome"]
    assert (study.title, study.findings, study.simulated) == ("Nothing was packed", [], False)
