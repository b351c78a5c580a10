"""A known load beside meters: a GPU of the fake NVML that a stand-in for PyTorch drives, and
processors that spin for real."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import build_fake
import numpy as np
import pytest

from ckptcost.first.core.channels import Channel
from ckptcost.first.jobs import load_step
from ckptcost.first.jobs.instruments import Instruments, instruments
from ckptcost.first.jobs.load_step import (
    Loaded,
    anonymous,
    make_loads,
    phases_of,
    timetable_of,
    told_of,
)
from ckptcost.first.jobs.selftest_children import BUSY, END, IDLE, SPIN, follow
from ckptcost.first.meters.base import Basic
from ckptcost.first.meters.found import Wanted
from ckptcost.first.meters.process import children_of
from ckptcost.first.report.studies.selftest import findings_of, tables_of
from ckptcost.first.runs.clocks import RealClock, S
from ckptcost.first.runs.header import Header, MeterHead
from ckptcost.first.runs.reader import load

HERE = Path(__file__).parent
PATHS_OF_MACHINES = r"/home/|/root/|/work/|/tmp/|/dev/disk|uuid|GPU-[0-9a-f]{8}"
needs_cc = pytest.mark.skipif(build_fake.compiler() is None, reason="no C compiler for the fake")


def on_the_fake(folder, cards):
    library = build_fake.build(folder / "library")
    drawn = folder / "drawn"
    drawn.touch()
    env = build_fake.environment(library, f"load_file={drawn} lag_ms=60 tick_ms=100 jitter_ms=4")
    env |= {"STAND_IN_LOAD": str(drawn), "STAND_IN_CARDS": str(cards)}
    env["PYTHONPATH"] = os.pathsep.join([str(HERE / "stand_in_torch"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, str(HERE / "load_worker.py"), str(folder / "kept")],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(**json.loads(done.stdout))


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return on_the_fake(tmp_path_factory.mktemp("gpu"), 1)


def within(row, name, truth, spare=0.0):
    return row[f"{name}_low"] - spare <= truth <= row[f"{name}_high"] + spare


@needs_cc
def test_a_gpu_whose_counter_is_known(gpu):
    joules, watts = gpu.tables["timing"]
    assert (joules["meter"], joules["quantity"], watts["quantity"]) == ("gpu:0", "joules", "watts")
    assert gpu.why == []
    assert within(joules, "tick", 0.1, 1e-4)
    assert within(joules, "jitter", 0.002, 0.001)
    assert within(joules, "lag", 0.06, 0.003)
    assert joules["lag"] == pytest.approx(0.06, abs=0.01)
    # the mean of 25 ms, held for 0.1 s, and asked for each 50 ms
    assert 0.05 < watts["lag"] < 0.12
    for row in gpu.tables["powers"]:
        assert row["busy"] == pytest.approx(600.0, rel=0.04)
        assert row["idle"] == pytest.approx(120.0, rel=0.04)
        assert row["spinning"] == pytest.approx(120.0 + 0.4 * 480.0, rel=0.04)
        assert row["sleeping"] == pytest.approx(120.0, rel=0.04)
    assert gpu.findings[0].endswith("which holds it.")
    assert re.search(
        r"gpu:0 draws 3\d\d W with ranks spinning, 1\d\d W sleeping\.", gpu.findings[1]
    )


@needs_cc
def test_the_trace_tells_the_same_again_and_replays(gpu):
    trace = Path(gpu.trace)
    again = Loaded(told_of(load(trace)), 0, ())
    assert {table.id: table.rows for table in tables_of(again)} == gpu.tables
    replayed = instruments(f"replay:{trace}", Wanted(), 0.0)
    (meter,) = replayed.meters
    place = next(n for n, c in enumerate(meter.channels) if c.quantity == "energy_j")
    values = [meter.read(at)[place] for at in range(0, 8 * S, S)]
    assert all(b > a for a, b in pairwise(values))


@needs_cc
def test_the_trace_is_ready_to_be_given_away(gpu):
    trace = Path(gpu.trace)
    run = load(trace)
    (header,) = run.headers
    assert (header.host, header.boot, header.pid) == ("anonymous", "", 0)
    assert run.id == trace.stem == "load-step-nvidia-h200"
    assert (run.problems, run.gaps, run.ended) == ((), (), True)
    assert all(
        len(run.series(c).t_s) >= 10 and not np.isnan(run.series(c).value).any()
        for c in run.channels
    )
    listed = trace.with_suffix(".toml").read_text("utf-8")
    (entry,) = tomllib.loads(listed).values()
    assert [head.name for head in header.meters] == entry["meters"]
    assert list(dict.fromkeys(mark.name for mark in run.marks)) == entry["marks"]
    for said in ("NVIDIA H200", "nvml driver 590.48.01", os.uname().release, "torch stand-in"):
        assert said in entry["provenance"]
    for text in (trace.read_text("utf-8"), listed):
        assert re.findall(PATHS_OF_MACHINES, text, re.IGNORECASE) == []
        assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b", text)


@needs_cc
def test_without_pytorch_for_gpus_the_ticks_alone_are_told(tmp_path):
    said = on_the_fake(tmp_path, 0)
    assert said.why == ["the GPU had no load that is known: this PyTorch finds no GPU"]
    row = said.tables["timing"][0]
    assert within(row, "tick", 0.1, 1e-4)
    assert (row["lag"], row["why"]) == (None, "the load changed too seldom")
    assert said.tables["powers"][0]["spinning"] is None
    assert said.findings[-2].startswith("The GPU had no load that is known")


class Cores(Basic):
    """Joules of processors: 50 W, and 30 W more for each second that a child of ours runs or waits
    for its turn: beside others' work too the load is known. By the scheduler's own account."""

    def __init__(self):
        channel = Channel("cpu:0", "energy_j", "made up", scope="package", tick_s=0.001)
        super().__init__("rapl", (channel,), facts={"driver": "made up"})
        self.closed = 0

    def read(self, t_ns):
        ran_ns = 0
        for pid in children_of(os.getpid(), Path("/proc")) or ():
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
                ran_ns += sum(map(int, file.read().split()[:2]))
        return [(50.0 * time.monotonic_ns() + 30.0 * ran_ns) / S]

    def close(self):
        self.closed += 1


SEEN = SimpleNamespace(tried=())


def test_processors_that_spin_and_sleep(tmp_path, monkeypatch):
    monkeypatch.setattr(load_step, "PHASE_S", 1.0)
    monkeypatch.setattr(load_step, "PHASES", 8)
    meter, other = Cores(), Basic("block", (Channel("disk:sda", "written_bytes", "made up"),))
    made = make_loads(Instruments([meter, other], (), RealClock()), SEEN, tmp_path / "kept")
    (one,) = made.told
    assert meter.closed == 1
    assert made.ranks >= 1
    assert one.sleeping_w.value == pytest.approx(50.0, rel=0.1)
    assert one.spinning_w.value == pytest.approx(50.0 + 30.0 * made.ranks, rel=0.1)
    assert one.timing.lag.value < 0.2
    assert made.trace.name == "load-step-cpu.jsonl"
    assert children_of(os.getpid(), Path("/proc")) in ((), [], None)
    said, *_, draws, kept = findings_of(made)
    assert kept.endswith(str(made.trace))
    assert said.startswith("The counter of cpu:0 shows what power did")
    assert f"with {made.ranks} rank" in draws


def test_an_interrupt_ends_the_load_and_its_processes(tmp_path):
    """Signals are held back while a self-test runs: one that waits is seen."""
    meter = Cores()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        # for this thread alone: another one of the test's process does not hold it back
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            make_loads(Instruments([meter], (), RealClock()), SEEN, tmp_path / "kept")
        assert signal.sigtimedwait({signal.SIGTERM}, 0) is not None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert meter.closed == 1
    assert children_of(os.getpid(), Path("/proc")) in ((), [], None)


def test_processes_of_a_load_end_with_whoever_made_them(tmp_path):
    code = (
        "import time; from ckptcost.first.jobs.load_step import Children; made = Children('cpu', 2);"
        "made.ready(); made.begin([(0, 'busy'), (1 << 62, 'end')]);"
        "print(*[each.pid for each in made._processes], flush=True); time.sleep(60)"
    )
    ours = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pids = ours.stdout.readline().split()
    assert len(pids) == 2
    ours.kill()
    ours.communicate()
    until_s = time.monotonic() + 30.0
    while any(lives(pid) for pid in pids):
        assert time.monotonic() < until_s
        time.sleep(0.02)


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_without_a_counter_of_joules_nothing_is_tried(tmp_path):
    watts = Basic("hwmon", (Channel("cpu:0", "power_w", "made up"),))
    model = Basic("rapl", (Channel("cpu:0", "energy_j", "made up", basis="modelled"),))
    made = make_loads(Instruments([watts, model], (), RealClock()), SEEN, tmp_path / "kept")
    assert made.why == ("no meter of joules here: not tried",)
    (table,) = tables_of(made)
    assert table.rows == [{"meter": "none", "why": made.why[0]}]
    assert findings_of(made) == ["No meter of joules here: not tried."]
    assert not (tmp_path / "kept").exists()


def test_a_counter_that_stands_still_has_no_load(tmp_path):
    """As virtual machines show them: nothing to learn in a minute of everybody's cores."""
    meter = Cores()
    seen = SimpleNamespace(tried=[SimpleNamespace(channel=meter.channels[0], rate=0.0, tick_s=0.0)])
    made = make_loads(Instruments([meter], (), RealClock()), seen, tmp_path / "kept")
    assert made.why == ("no meter of joules here: not tried",)
    assert meter.closed == 1


def test_a_timetable_keeps_no_beat():
    states = [BUSY if n % 2 else IDLE for n in range(12)]
    timetable = timetable_of([*states, SPIN, IDLE], 2.0, 5 * S)
    lengths_s = np.diff([at for at, _ in timetable]) / S
    assert [state for _, state in timetable] == [*states, SPIN, IDLE, END]
    assert timetable[0][0] == 5 * S
    assert len(set(lengths_s[:12].round(3))) == 12
    assert all(1.79 < each < 2.21 for each in lengths_s[:12])
    assert lengths_s[12:].tolist() == [4.0, 4.0]
    assert sum(lengths_s) < 35.0


def test_phases_are_as_long_as_the_slowest_meter_needs():
    assert phases_of([0.001, 0.02]) == (1.2, 12)
    assert phases_of([0.001, 0.1]) == phases_of([]) == phases_of([float("nan")]) == (2.0, 12)
    assert phases_of([1.0, 0.1]) == (5.0, 7)


def test_a_child_follows_its_timetable_and_says_when():
    worked, said = [], []
    now = time.monotonic_ns()
    timetable = [(now, IDLE), (now + S // 50, BUSY), (now + S // 25, IDLE), (now + S // 20, END)]
    follow(timetable, {BUSY: lambda: worked.append(time.monotonic_ns())}, lambda *n: said.append(n))
    assert [number for number, _ in said] == [0, 1, 2, 3]
    assert all(at >= planned for (_, at), (planned, _) in zip(said, timetable, strict=True))
    assert all(timetable[1][0] <= at for at in worked)
    assert worked


def test_a_header_loses_all_names():
    uuid = "GPU-a0000000-fa4e-fa4e-fa4e-000000000000"
    channel = Channel(
        "gpu:0", "energy_j", f"of {uuid} at 0000:10:00.0", device=uuid, note="see /home/me/notes"
    )
    facts = {"driver": "590", "visible": f"CUDA_VISIBLE_DEVICES={uuid}", "gpu:0": f"X 1, {uuid}"}
    header = Header(
        "a" * 32,
        "node7",
        boot="b",
        pid=7,
        meters=(MeterHead("nvml", (channel,), 0.0, False, facts),),
    )
    shown = json.dumps(anonymous(header).fields())
    for name in (uuid, "node7", "/home", "0000:10", "a" * 32, "CUDA"):
        assert name not in shown
    assert anonymous(header).run == "load-step-x-1"
