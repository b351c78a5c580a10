"""The synthetic fleet: its files against its truth, by sums in plain Python over what is really
written."""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import sys
from collections import defaultdict
from functools import cache
from hashlib import sha256
from math import fsum, inf, isnan
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from fleet_tally import Amounts, added
from fleet_truth import Truth
from fleet_with_truth import fleet_with_truth

from ckptcost.first.errors import InputError, OutputError
from ckptcost.first.fleet.node_day import COLUMNS, NodeDay, key_of
from ckptcost.first.fleet.node_file import BadNodeFile, decode
from ckptcost.first.fleet.store import open_store
from ckptcost.first.fleet.synthetic.fleet_plan import DAY_NS, S_NS, TIERS, plan_of, usual_rate
from ckptcost.first.fleet.synthetic.synthesize import synthesize

EXACT = 1e-9
"""rows are 64-bit seconds and joules; ends are 32-bit"""
AS_FLOAT32 = 2e-7
SUMS = (
    "bytes",
    "files",
    "own_gpu_s",
    "wait_gpu_s",
    "wait_j",
    "stall_s",
    "gpu_j",
    "host_j",
    "slow_j",
    "storage_j",
)
ENDS = tuple(
    f"{line}_{end}_j"
    for line in ("gpu", "host", "slow", "storage", "wait")
    for end in ("low", "high")
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("sound") / "store"
    return folder, fleet_with_truth(
        24, 3, str(folder), seed=5, saves_per_day=60, failures_per_node_day=0.25
    )


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("troubled") / "store"
    return folder, fleet_with_truth(24, 3, str(folder), seed=6, saves_per_day=60, faults=True)


@cache
def node_files(folder: Path, aside: frozenset[str] = frozenset()) -> dict[str, NodeDay]:
    store = open_store(str(folder))
    return {
        entry.path: decode(store.read(entry.path), where=entry.path)
        for entry in store.listing()
        if entry.path not in aside
    }


def node_files_of(folder: Path, run: str, aside: frozenset[str] = frozenset()) -> list[NodeDay]:
    return [day for path, day in node_files(folder, aside).items() if day.head.run == run]


def aside_of(truth: Truth) -> frozenset[str]:
    return frozenset(trouble.path for trouble in truth.troubles if trouble.path)


def brute(
    folder: Path, truth: Truth
) -> tuple[dict[tuple[str, bool], Amounts], dict[tuple[str, str], float]]:
    """By job and direction; blames by job and host. Row by row, on the clock that the truth says
    each file was written by."""
    windows: dict[tuple[str, str, bool, str], list[tuple[str, dict[str, float]]]] = defaultdict(
        list
    )
    clocks = {
        (job.job, run.run): dict(zip(job.hosts, run.clock_ns, strict=True))
        for job in truth.jobs
        for run in job.runs
    }
    for day in node_files(folder, aside_of(truth)).values():
        head, rows = day
        for place in range(day.many):
            row = {
                name: rows[name][place].item() if name != "label" else rows[name][place]
                for name in COLUMNS
            }
            row["begin_ns"] -= clocks[head.job, head.run][head.host]
            assert row["key"] == key_of(row["label"])
            windows[head.job, head.run, row["load"], row["label"]].append((head.host, row))
    parts: dict[tuple[str, bool], list[Amounts]] = defaultdict(list)
    blames: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (job, _, load, _), mine in windows.items():
        if mine[0][1]["failed"]:
            assert all(
                row["failed"] and isnan(row["stall_s"]) and isnan(row["gpu_j"]) for _, row in mine
            )
            parts[job, load].append(Amounts(failed=1, failed_rows=len(mine)))
            continue
        first_ns = min(row["begin_ns"] for _, row in mine)
        returns = sorted(
            ((row["begin_ns"] - first_ns) / S_NS + row["stall_s"], host, row) for host, row in mine
        )
        last_s = returns[-1][0]
        waits = [(last_s - at_s, row) for at_s, _, row in returns]
        totals = {
            name: fsum(row[name] for _, row in mine)
            for name in ("bytes", "files", *(name for name in COLUMNS if name.endswith("_j")))
        }
        for done, (after, before) in enumerate(zip(returns[1:], returns, strict=False), 1):
            for _, host, _ in returns[done:]:
                blames[job, host].append((after[0] - before[0]) * 8 * done / (len(returns) - done))
        standing = {
            end: [(row[f"gpu{end}_j"] + row[f"host{end}_j"]) / row["stall_s"] for _, row in waits]
            for end in ("", "_low", "_high")
        }
        for end, watts in standing.items():
            totals[f"wait{end}_j"] = fsum(
                wait_s * watt for (wait_s, _), watt in zip(waits, watts, strict=True) if wait_s
            )
        parts[job, load].append(
            Amounts(
                windows=1,
                rows=len(mine),
                stall_s=last_s,
                own_gpu_s=fsum(row["gpu_s"] for _, row in mine),
                wait_gpu_s=fsum(8 * wait_s for wait_s, _ in waits),
                **totals,
            )
        )
    return {key: added(each) for key, each in parts.items()}, {
        key: fsum(each) for key, each in blames.items()
    }


def same(found: Amounts, expected: Amounts) -> None:
    assert found[:4] == expected[:4]
    for name in SUMS:
        assert getattr(found, name) == pytest.approx(
            getattr(expected, name), rel=EXACT, abs=1e-6, nan_ok=True
        ), name
    for name in ENDS:
        assert getattr(found, name) == pytest.approx(
            getattr(expected, name), rel=AS_FLOAT32, abs=1e-3, nan_ok=True
        ), name


@pytest.mark.parametrize("which", ["sound", "troubled"])
def test_the_truth_is_what_the_rows_come_to(which: str, request: pytest.FixtureRequest) -> None:
    folder, truth = request.getfixturevalue(which)
    found, blames = brute(folder, truth)
    for job in truth.jobs:
        same(found[job.job, False], job.saves)
        same(found.get((job.job, True), added([])), job.loads)
        same(added(job.saves_by_day.values()), job.saves)
        same(added(job.loads_by_day.values()), job.loads)
        for host in job.hosts:
            assert blames.get((job.job, host), 0.0) == pytest.approx(
                job.blamed_gpu_s[host], rel=1e-7, abs=1e-5
            )
        assert fsum(job.blamed_gpu_s.values()) == pytest.approx(
            fsum(w for w in (job.saves.wait_gpu_s, job.loads.wait_gpu_s) if w == w)
        )
        waited_j = fsum(w for w in (job.saves.wait_j, job.loads.wait_j) if w == w)
        assert fsum(job.blamed_j.values()) == pytest.approx(waited_j)
    assert truth.rows == sum(amounts.rows + amounts.failed_rows for amounts in found.values())
    for word in ("team", "cluster", "model", "tier", "day"):
        same(added(truth.by(word).values()), truth.saves)


def test_it_has_what_a_fleet_has(sound: tuple[Path, Truth]) -> None:
    _, truth = sound
    assert truth.failures > 0
    assert truth.saves.failed > 0
    assert truth.loads.windows > 0
    assert truth.stragglers
    assert any(run.how == "open" for job in truth.jobs for run in job.runs)
    assert {job.asynchronous for job in truth.jobs} == {False, True}
    assert any(isnan(job.saves.storage_j) for job in truth.jobs)
    assert any(job.saves.host_high_j == inf for job in truth.jobs)
    assert any(job.saves.host_high_j < inf for job in truth.jobs)


def test_heads_say_when_runs_were_and_how_they_ended(sound: tuple[Path, Truth]) -> None:
    folder, truth = sound
    files = node_files(folder)
    assert len(files) == truth.files
    runs: dict[str, list[NodeDay]] = defaultdict(list)
    for day in files.values():
        runs[day.head.run].append(day)
        low_ns = np.datetime64(day.head.day, "D").astype(int).item() * DAY_NS
        assert low_ns <= day.head.began_ns < day.head.until_ns < low_ns + DAY_NS
        assert day.head.covered_s == pytest.approx(
            (day.head.until_ns - day.head.began_ns) / S_NS, rel=1e-12
        )
        assert all(
            low_ns <= begin_ns < low_ns + DAY_NS for begin_ns in day.rows["begin_ns"].tolist()
        )
        assert (np.diff(day.rows["begin_ns"]) > 0).all()
        # the day's joules are those of training and of standing still, which takes less
        mean_w = day.head.gpu_total_j / day.head.covered_s
        assert 2000 < mean_w <= day.head.train_gpu_w * (1 + 1e-12) + 150
    for job in truth.jobs:
        assert job.wall_s == pytest.approx(
            job.down_s + fsum((run.ended_ns - run.began_ns) / S_NS for run in job.runs), rel=1e-12
        )
        assert job.failures == sum(run.failed for run in job.runs)
        totals = [day.head for run in job.runs for day in runs[run.run]]
        assert fsum(head.gpu_total_j for head in totals) == pytest.approx(
            job.gpu_total_j, rel=1e-12
        )
        assert fsum(head.covered_s for head in totals) == pytest.approx(job.covered_s, rel=1e-12)
        for run in job.runs:
            mine = runs[run.run]
            clocks = dict(zip(job.hosts, run.clock_ns, strict=True))
            assert {day.head.host for day in mine} == set(job.hosts)
            assert {day.head.run_began_ns - clocks[day.head.host] for day in mine} == {run.began_ns}
            assert {
                max(d.head.until_ns - clocks[h] for d in mine if d.head.host == h)
                for h in job.hosts
            } == {run.ended_ns}
            codes = {day.head.exit_code for day in mine if day.head.exit_code is not None}
            assert codes == ({run.exit_code} if run.exit_code is not None else set())
            stopped = {day.head.host for day in mine if day.head.over}
            assert stopped == {
                "crash": set(job.hosts),
                "ended": set(job.hosts),
                "node": set(job.hosts) - {run.culprit},
            }.get(run.how, set())
            kept = [
                (begin_ns - clocks[day.head.host], begin_ns)
                for day in mine
                for begin_ns, load, failed in zip(
                    *(day.rows[name].tolist() for name in ("begin_ns", "load", "failed")),
                    strict=True,
                )
                if not load and not failed
            ]
            # late nodes begin up to 0.3 s after the first
            assert (max(kept)[0] - run.last_kept_ns) / S_NS < 0.3 if kept else run.last_kept_ns == 0


@pytest.mark.parametrize("which", ["sound", "troubled"])
def test_what_a_failure_loses_is_the_time_since_the_last_kept_save_less_that_saves_stall(
    which: str, request: pytest.FixtureRequest
) -> None:
    folder, truth = request.getfixturevalue(which)
    some_lost = 0
    for job in truth.jobs:
        for run in job.runs:
            clocks = dict(zip(job.hosts, run.clock_ns, strict=True))
            spans: dict[tuple[bool, str], tuple[int, float]] = {}
            """first begin and, in seconds from the run's begin, the last return"""
            for day in node_files_of(folder, run.run, aside_of(truth)):
                for load, label, failed, begin_ns, stall_s in zip(
                    *(
                        day.rows[name].tolist()
                        for name in ("load", "label", "failed", "begin_ns", "stall_s")
                    ),
                    strict=True,
                ):
                    if not failed:
                        at_ns = begin_ns - clocks[day.head.host]
                        first_ns, last_s = spans.get((load, label), (at_ns, 0.0))
                        spans[load, label] = (
                            min(first_ns, at_ns),
                            max(last_s, (at_ns - run.began_ns) / S_NS + stall_s),
                        )
            stalls = {
                key: last_s - (first_ns - run.began_ns) / S_NS
                for key, (first_ns, last_s) in spans.items()
            }
            assert run.stall_s == pytest.approx(
                fsum(each for (load, _), each in stalls.items() if not load), rel=1e-9
            )
            assert run.load_s == pytest.approx(
                fsum(each for (load, _), each in stalls.items() if load), rel=1e-9
            )
            kept = (
                max((span[0], key) for key, span in spans.items() if not key[0])
                if run.saves
                else None
            )
            away_s = (run.ended_ns - (kept[0] if kept else run.began_ns)) / S_NS
            lost_s = away_s - (stalls[kept[1]] if kept else run.load_s)
            assert run.lost_s == pytest.approx(lost_s if run.failed else 0.0, rel=1e-9, abs=1e-9)
            some_lost += run.lost_s > 0.0
        assert job.lost_s == pytest.approx(fsum(run.lost_s for run in job.runs))
        assert job.lost_s + job.stall_s + job.load_s < job.wall_s
    assert some_lost > 2


def test_offsets_are_exact_where_nodes_begin_together_most_of_the_time(
    sound: tuple[Path, Truth],
) -> None:
    """The truth's clocks against lower medians of what the files say, in plain Python."""
    folder, truth = sound
    late = rows = 0
    for job in truth.jobs:
        for run in job.runs:
            begins: dict[tuple[str, str, bool], dict[str, int]] = defaultdict(dict)
            for day in node_files_of(folder, run.run):
                for label, load, begin_ns in zip(
                    *(day.rows[name].tolist() for name in ("label", "load", "begin_ns")),
                    strict=True,
                ):
                    begins[day.head.day, label, load][day.head.host] = begin_ns
            clocks = dict(zip(job.hosts, run.clock_ns, strict=True))
            for day_name in {key[0] for key in begins}:
                windows = [
                    mine
                    for key, mine in begins.items()
                    if key[0] == day_name and len(mine) == len(job.hosts)
                ]
                off: dict[str, list[int]] = defaultdict(list)
                for mine in windows:
                    middle = sorted(mine.values())[(len(mine) - 1) // 2]
                    first = min(begin_ns - clocks[host] for host, begin_ns in mine.items())
                    for host, begin_ns in mine.items():
                        off[host].append(begin_ns - middle)
                        late += begin_ns - clocks[host] != first
                        rows += 1
                expected = job.offsets_ns(run.run)
                for host, values in off.items():
                    assert sorted(values)[(len(values) - 1) // 2] == expected[host]
    assert 0.02 < late / rows < 0.2


def test_a_midnight_parts_a_save(sound: tuple[Path, Truth]) -> None:
    """Some clocks say that it began the day before."""
    folder, _ = sound
    days: dict[tuple[str, str, bool], set[str]] = defaultdict(set)
    for day in node_files(folder).values():
        for label, load in zip(day.rows["label"].tolist(), day.rows["load"].tolist(), strict=True):
            days[day.head.run, label, load].add(day.head.day)
    assert any(len(each) == 2 for each in days.values())


def test_nodes_stand_still_as_long_as_their_tier_takes(sound: tuple[Path, Truth]) -> None:
    folder, truth = sound
    tiers = {tier.name: tier for tier in truth.tiers}
    factors = {(each.job, each.host): each.factor for each in truth.stragglers}
    jobs = {job.job: job for job in truth.jobs}
    for day in node_files(folder).values():
        tier, rows = tiers[day.head.labels["tier"]], day.rows
        saved = ~rows["load"] & ~rows["failed"]
        lasting = "drain_s" if jobs[day.head.job].asynchronous else "stall_s"
        usual_s = (
            rows["bytes"][saved]
            / tier.bytes_per_s
            * factors.get((day.head.job, day.head.host), 1.0)
        )
        assert (
            np.abs((rows[lasting][saved] - tier.fixed_s) / usual_s - 1.0).max(initial=0.0) < 0.034
        )
        loaded_s = rows["stall_s"][rows["load"] & ~rows["failed"]]
        read_s = (
            rows["bytes"][rows["load"] & ~rows["failed"]]
            / tier.read_bytes_per_s
            * factors.get((day.head.job, day.head.host), 1.0)
        )
        assert np.abs((loaded_s - tier.fixed_s) / read_s - 1.0).max(initial=0.0) < 0.034


def content(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_a_seed_gives_the_same_bytes_and_another_gives_others(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder, seed in zip(folders, (3, 3, 4), strict=True):
        fleet_with_truth(16, 2, str(folder), seed=seed, saves_per_day=24, faults=True)
    one, two, three = (content(folder) for folder in folders)
    assert one == two
    assert {*one} != {*three}


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    program = (
        "import sys; from ckptcost.first.fleet.synthetic.synthesize import synthesize; synthesize(3, 2,"
        " sys.argv[1], saves_per_day=20)"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "there")],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    synthesize(3, 2, str(tmp_path / "here"), saves_per_day=20)
    assert content(tmp_path / "here") == content(tmp_path / "there")


def test_every_fault_is_in_the_files(troubled: tuple[Path, Truth]) -> None:
    folder, truth = troubled
    store = open_store(str(folder))
    by_code = defaultdict(list)
    for trouble in truth.troubles:
        by_code[trouble.code].append(trouble)
    assert set(by_code) == {
        "CORRUPT",
        "TRUNCATED",
        "FUTURE",
        "DUPLICATE",
        "SKEWED",
        "UNSTEADY",
        "NOT_OURS",
        "STRAY",
        "NO_FILE",
    }
    for code in ("CORRUPT", "TRUNCATED", "FUTURE", "NOT_OURS"):
        for trouble in by_code[code]:
            with pytest.raises(BadNodeFile) as caught:
                decode(store.read(trouble.path))
            assert caught.value.code == code
    (copy,) = by_code["DUPLICATE"]
    original = copy.note.removeprefix("a copy of ")
    assert store.read(copy.path) == store.read(original)
    assert sorted([original, copy.path])[0] == original
    listed = {entry.path for entry in store.listing()}
    assert by_code["STRAY"][0].path not in listed
    assert (folder / by_code["STRAY"][0].path).is_file()
    assert aside_of(truth) - {by_code["STRAY"][0].path} <= listed
    # wrong clocks: against the others of their run, save by save
    for code in ("SKEWED", "UNSTEADY"):
        for trouble in by_code[code]:
            mine = decode(store.read(trouble.path))
            assert (mine.head.host, mine.head.run, mine.head.day) == (
                trouble.host,
                trouble.run,
                trouble.day,
            )
            theirs: dict[str, list[int]] = defaultdict(list)
            for day in node_files_of(folder, trouble.run, aside_of(truth)):
                for label, begin_ns in zip(
                    day.rows["label"].tolist(), day.rows["begin_ns"].tolist(), strict=True
                ):
                    theirs[label].append(begin_ns)
            away_s = [
                (begin_ns - sorted(theirs[label])[0]) / S_NS
                for label, begin_ns in zip(
                    mine.rows["label"].tolist(), mine.rows["begin_ns"].tolist(), strict=True
                )
            ]
            if code == "SKEWED":
                assert {round(each / 60) for each in away_s} == {
                    round(int(trouble.note.split()[0]) / 60)
                }
                assert abs(away_s[0]) > 300
            else:
                assert np.std(away_s) > 5.0
                assert np.abs(away_s).max() < 21.5


def test_missing_nodes_are_named_by_the_launcher_and_have_no_files(
    troubled: tuple[Path, Truth],
) -> None:
    folder, truth = troubled
    missing = [trouble for trouble in truth.troubles if trouble.code == "NO_FILE"]
    there = {
        (day.head.job, day.head.run, day.head.host, day.head.day)
        for day in node_files(folder, aside_of(truth)).values()
    }
    jobs = {job.job: job for job in truth.jobs}
    assert len({trouble.job for trouble in missing}) == 2
    never = [
        job
        for job in truth.jobs
        if any(not any(t[0] == job.job and t[2] == host for t in there) for host in job.hosts)
    ]
    assert len(never) == 1
    for trouble in missing:
        assert (trouble.job, trouble.run, trouble.host, trouble.day) not in there
        assert trouble.host in jobs[trouble.job].hosts
    for day in node_files(folder, aside_of(truth)).values():
        assert day.head.nodes == len(jobs[day.head.job].hosts)


def test_what_lacks_is_what_each_trouble_would_have_added(troubled: tuple[Path, Truth]) -> None:
    _, truth = troubled
    for job in truth.jobs:
        mine = [trouble for trouble in truth.troubles if trouble.job == job.job]
        for name in ("rows", "own_gpu_s", "bytes", "gpu_j", "host_j"):
            lacking = fsum(
                each
                for each in (getattr(job.lacking_saves, name), getattr(job.lacking_loads, name))
                if each == each
            )
            assert lacking == pytest.approx(
                fsum(getattr(trouble, name) for trouble in mine), rel=1e-9, abs=1e-3
            ), (job.job, name)
    assert sum(trouble.rows for trouble in truth.troubles) > 100


def test_counted_and_lacking_are_the_sound_fleet(tmp_path: Path) -> None:
    """The same seed without faults is what both are together."""
    whole = fleet_with_truth(16, 2, str(tmp_path / "whole"), saves_per_day=48)
    parts = fleet_with_truth(16, 2, str(tmp_path / "parts"), saves_per_day=48, faults=True)
    for one, other in zip(whole.jobs, parts.jobs, strict=True):
        for name in (
            "rows",
            "stall_s",
            "own_gpu_s",
            "wait_gpu_s",
            "bytes",
            "gpu_j",
            "host_j",
            "gpu_low_j",
        ):
            value = getattr(other.saves, name) + getattr(other.lacking_saves, name)
            assert value == pytest.approx(getattr(one.saves, name), rel=1e-9), name
    assert parts.saves.own_gpu_s < whole.saves.own_gpu_s


def test_the_product_writes_what_the_truth_is_of(tmp_path: Path) -> None:
    made = synthesize(16, 2, str(tmp_path / "made"), saves_per_day=48)
    truth = fleet_with_truth(16, 2, str(tmp_path / "true"), saves_per_day=48)
    assert content(tmp_path / "made") == content(tmp_path / "true")
    assert (made.jobs, made.saves, made.files, made.rows) == (
        len(truth.jobs),
        truth.saves.windows,
        truth.files,
        truth.rows,
    )
    assert made.saved_bytes == pytest.approx(truth.saves.bytes, rel=1e-12)


def test_a_large_fleet_has_all_kinds_of_jobs() -> None:
    for nodes in (64, 100, 2048):
        plan = plan_of(nodes, 7, 1, 96.0, "2026-11-02", usual_rate(nodes, 7))
        hosts = defaultdict(set)
        for job in plan.jobs:
            hosts[job.slot] |= set(job.hosts)
        assert sum(len(each) for each in hosts.values()) == len(set.union(*hosts.values())) == nodes
        assert len(plan.jobs) >= 6
        assert [
            len({getattr(job, word) for job in plan.jobs})
            for word in ("team", "cluster", "model", "tier")
        ] == [3, 2, 3, len(TIERS)]
        assert max(job.nodes for job in plan.jobs) == nodes // 2
        assert min(job.nodes for job in plan.jobs) == 1
        assert len({job.job for job in plan.jobs}) == len(plan.jobs)


def test_failures_come_at_the_rate_that_is_stated() -> None:
    """Poisson: 20 seeds of 200 node-days; both bounds are four standard deviations away."""
    rate, failures, exposure_days = 0.25, 0, 0.0
    gaps: list[float] = []
    for seed in range(20):
        for job in plan_of(20, 10, seed, 96.0, "2026-11-02", rate).jobs:
            for run in job.runs:
                days = (run.ended_ns - run.began_ns) / DAY_NS * job.nodes
                exposure_days += days
                failures += run.failed
                if run.failed:
                    gaps.append(days)
    expected = rate * exposure_days
    assert abs(failures - expected) < 4 * math.sqrt(expected)
    # gaps of an exponential law scatter as much as they last; cut at the end of the time they are a
    # little shorter
    assert 0.8 < np.std(gaps) / np.mean(gaps) < 1.1


def test_clocks_are_off_by_milliseconds_and_a_few_by_half_a_second() -> None:
    plan = plan_of(2048, 3, 2, 96.0, "2026-11-02", 0.001)
    clocks_s = np.concatenate([run.clock_ns for job in plan.jobs for run in job.runs]) / S_NS
    far = np.abs(clocks_s) > 0.4
    assert 0.01 < far.mean() < 0.035
    assert np.std(clocks_s[~far]) == pytest.approx(0.002, rel=0.05)


def test_small_and_sparse_fleets(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    one = synthesize(1, 1, str(tmp_path / "one"), tell=lambda done, of: told.append((done, of)))
    assert told[-1] == (one.files, one.files)
    sparse = fleet_with_truth(
        3, 2, str(tmp_path / "sparse"), saves_per_day=0.25, failures_per_node_day=0.0
    )
    assert sparse.failures == 0
    assert sparse.files == sum(
        2 if len(job.saves_by_day) > 1 or job.wall_s > 86_400 else 1 for job in sparse.jobs
    )
    dense = fleet_with_truth(2, 1, str(tmp_path / "dense"), saves_per_day=4000)
    assert dense.saves.stall_s < fsum(job.wall_s for job in dense.jobs) / 2
    assert dense.saves.rows > 4000


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"nodes": 0}, "0 nodes on 1 days is none"),
        ({"days": 0}, "1 nodes on 0 days is none"),
        ({"nodes": 50_001, "days": 2}, "too many"),
        ({"nodes": 10_000, "days": 10, "saves_per_day": 2001}, "too many"),
        ({"saves_per_day": 0}, "0 saves a day"),
        ({"saves_per_day": math.nan}, "nan saves a day"),
        ({"saves_per_day": 4001}, "4001 saves a day"),
        ({"start": "2026-13-01"}, "no day that a fleet could begin on"),
        ({"start": "20261102"}, "no day that a fleet could begin on"),
        ({"start": "9999-12-31"}, "no day that a fleet could begin on"),
        ({"failures_per_node_day": -1.0}, "failures a node-day"),
        ({"seed": -1}, "not negative"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_written(
    given: dict[str, object], text: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=text):
        synthesize(**({"nodes": 1, "days": 1, "directory": str(tmp_path / "new")} | given))
    assert not (tmp_path / "new").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        synthesize(1, 1, str(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(OutputError, match="cannot make a folder"):
        synthesize(1, 1, str(tmp_path / "mine.txt" / "store"))


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    """A limit on the size of files stands for it: the write itself fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OutputError, match="could not be written"):
            synthesize(1, 1, str(tmp_path / "store"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not list((tmp_path / "store").rglob("*.parquet"))
