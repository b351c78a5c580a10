"""Every trace that ships is listed, can be read, and is what traces.toml says it is."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ckptcost.first.core.phases import windows_of
from ckptcost.first.meters.replay import MeterTape, RunReplay
from ckptcost.first.meters.simulated import find
from ckptcost.first.meters.simulated_machine import Machine, MachinePlan, marks
from ckptcost.first.meters.writeback import drain_times
from ckptcost.first.runs.reader import load

TRACES = Path(__file__).resolve().parents[3] / "data" / "traces"
LISTED = tomllib.loads((TRACES / "traces.toml").read_text("utf-8"))
RECORDED = [name for name, entry in LISTED.items() if entry["recorded"] and entry["bytes"]]
"""saves; a load that `ckptcost selftest` recorded writes nothing"""
SIMULATED = [name for name, entry in LISTED.items() if not entry["recorded"]]
S = 1_000_000_000
run_of = cache(lambda name: load(TRACES / LISTED[name]["file"]))


def at(name):
    """Marks of the only window, by name."""
    return {mark.name: mark.t_s for mark in run_of(name).marks}


def value(name, channel, t_s):
    """The last reading at or before."""
    series = run_of(name).series(channel)
    return series.value[np.searchsorted(series.t_s, t_s, "right") - 1]


def test_every_file_is_listed():
    there = {path.name for path in TRACES.iterdir()} - {"README.md", "traces.toml"}
    assert there == {entry["file"] for entry in LISTED.values()}
    readme = (TRACES / "README.md").read_text("utf-8")
    assert all(f"`{file}`" in readme for file in there)
    assert "no recorded trace of a GPU" in readme


@pytest.mark.parametrize("name", LISTED)
def test_it_says_what_it_is(name):
    entry, path = LISTED[name], TRACES / LISTED[name]["file"]
    assert path.stem == name
    # a known load is asked for each 10 ms all the while
    assert path.stat().st_size < (150_000 if entry["bytes"] else 2_000_000)
    assert {
        "title",
        "file",
        "what",
        "recorded",
        "marks",
        "bytes",
        "meters",
        "provenance",
        "method",
        "licence",
    } <= entry.keys()
    assert entry["licence"] == "CC0-1.0"
    assert entry["recorded"] == ("simulated" not in name)
    assert ("SIMULATED" in entry["what"]) != entry["recorded"]


@pytest.mark.parametrize("name", LISTED)
def test_it_can_be_read(name):
    run = run_of(name)
    (header,) = run.headers
    assert (run.problems, run.gaps) == ((), ())
    assert run.ended
    assert run.id == name
    assert [head.name for head in header.meters] == LISTED[name]["meters"]
    assert list(dict.fromkeys(mark.name for mark in run.marks)) == LISTED[name]["marks"]
    assert all(window.flags == () for window in windows_of(list(run.marks)))
    for channel in run.channels:
        assert len(run.series(channel).t_s) >= 10
        assert not np.isnan(run.series(channel).value).any()


@pytest.mark.parametrize("name", LISTED)
def test_recorded_and_simulated_are_not_mixed_up(name):
    run, simulated = run_of(name), not LISTED[name]["recorded"]
    assert run.simulated == simulated
    (header,) = run.headers
    assert {head.simulated for head in header.meters} == {simulated}
    assert all(("simulated" in channel.source) == simulated for channel in run.channels)
    assert (
        all(channel.kind_of_domain in ("disk", "process", "host") for channel in run.channels)
        or simulated
        or name.startswith("load-step-")
    )


@pytest.mark.parametrize("name", LISTED)
def test_nothing_in_it_names_a_machine(name):
    (header,) = run_of(name).headers
    assert (header.host, header.boot, header.pid) == (
        "anonymous" if LISTED[name]["recorded"] else "simulated",
        "",
        0,
    )
    text = (TRACES / LISTED[name]["file"]).read_text("utf-8")
    assert re.findall(r"/home/|/root/|/work/|/tmp/|/dev/disk|uuid", text, re.I) == []


@pytest.mark.parametrize("name", RECORDED)
def test_times_are_as_stated(name):
    begin_s = at(name)["begin"]
    assert at(name)["returned"] - begin_s == pytest.approx(LISTED[name]["returned_s"], abs=0.01)
    assert at(name)["durable"] - begin_s == pytest.approx(LISTED[name]["durable_s"], abs=0.01)


@pytest.mark.parametrize("name", RECORDED)
def test_bytes_are_as_stated(name):
    size, begin_s, end_s = LISTED[name]["bytes"], at(name)["begin"], run_of(name).duration_s
    assert {mark.detail["bytes"] for mark in run_of(name).marks if "bytes" in mark.detail} == {size}
    (written,) = [
        c
        for c in run_of(name).channels
        if c.kind_of_domain == "process" and c.quantity == "written_bytes"
    ]
    (cancelled,) = [
        c
        for c in run_of(name).channels
        if c.kind_of_domain == "process" and c.quantity == "cancelled_bytes"
    ]
    assert value(name, cancelled, end_s) == value(name, cancelled, begin_s)
    # the process' own count has the recorder's lines in it too
    assert 0 <= value(name, written, end_s) - value(name, written, begin_s) - size < 1 << 20
    on_disk = value(name, "disk:vda written_bytes", end_s) - value(
        name, "disk:vda written_bytes", begin_s
    )
    assert size <= on_disk < 1.03 * size


@pytest.mark.parametrize("name", ["ext4-buffered", "ext4-buffered-busy"])
def test_without_fsync_the_disk_is_half_a_minute_behind(name):
    size = LISTED[name]["bytes"]
    returned_s, durable_s = at(name)["returned"], at(name)["durable"]
    disk = "disk:vda written_bytes"
    assert durable_s - returned_s > 30.0
    assert value(name, disk, returned_s) - value(name, disk, at(name)["begin"]) < 0.01 * size
    assert value(name, disk, durable_s + 0.3) - value(name, disk, returned_s) > 0.97 * size
    assert (
        value(name, disk, durable_s - 0.5) - value(name, disk, returned_s) < 0.02 * size
    )  # it goes in a burst
    assert value(name, "host dirty_bytes", returned_s + 1.0) > 0.95 * size
    assert value(name, "host dirty_bytes", durable_s + 1.0) < 0.02 * size


def drained_in(name):
    run = run_of(name)
    dirty, under_way = run.series("host dirty_bytes"), run.series("host writeback_bytes")
    owed, disk = (
        dirty._replace(value=dirty.value + under_way.value),
        run.series("disk:vda written_bytes"),
    )
    return drain_times(
        owed,
        disk,
        begin_s=at(name)["begin"],
        returned_s=at(name)["returned"],
        size_bytes=LISTED[name]["bytes"],
    )


def test_the_level_of_the_page_cache_finds_the_end_that_the_extents_told():
    found = drained_in("ext4-buffered")
    assert found.enough
    assert found.after_s - 0.3 <= at("ext4-buffered")["durable"] <= found.at_s + 0.3


def test_beside_other_writers_the_level_does_not_come_back_and_nobody_guesses():
    name = "ext4-buffered-busy"
    found = drained_in(name)
    assert found.enough
    assert np.isnan(found.at_s) or found.at_s >= at(name)["durable"] - 0.3
    assert value(name, "host dirty_bytes", 1e9) > value(
        name, "host dirty_bytes", at(name)["begin"]
    ) + (10 << 20)


@pytest.mark.parametrize("name", ["ext4-fsync", "ext4-direct"])
def test_with_fsync_it_is_there_when_the_call_returns(name):
    size, begin_s, returned_s = LISTED[name]["bytes"], at(name)["begin"], at(name)["returned"]
    assert at(name)["durable"] <= returned_s
    assert (
        value(name, "disk:vda written_bytes", returned_s + 0.06)
        - value(name, "disk:vda written_bytes", begin_s)
        >= size
    )
    assert value(name, "disk:vda flushes", returned_s + 0.06) > value(
        name, "disk:vda flushes", begin_s
    )
    most_dirty = run_of(name).series("host dirty_bytes").value.max()
    assert (most_dirty > 0.5 * size) == (name == "ext4-fsync")


@pytest.mark.parametrize("name", SIMULATED)
def test_the_simulated_one_is_its_plan(name):
    plan, run = MachinePlan(**LISTED[name]["plan"]), run_of(name)
    said = [(mark.name, mark.window) for mark in run.marks]
    planned = list(marks(plan, 0.0, 100.0))
    assert said == [(mark.name, mark.window) for mark in planned]
    assert [mark.t_s for mark in run.marks] == pytest.approx(
        [mark.t_s for mark in planned], abs=1e-6
    )
    windows = windows_of(list(run.marks))
    assert len(windows) == LISTED[name]["saves"]
    assert {mark.detail["bytes"] for mark in run.marks if "bytes" in mark.detail} == {
        LISTED[name]["bytes"]
    }
    meters, rows = find(plan, origin_ns=0).meters, 0
    for meter in meters:
        for slot, channel in enumerate(meter.channels):
            if channel.is_counter:
                series = run.series(channel)
                for k in range(0, len(series.t_s), 20):
                    assert series.value[k] == meter.read(round(series.t_s[k] * S))[slot]
                    rows += 1
    assert rows > 100
    machine = Machine(plan)
    energy = run.series("gpu:3 energy_j")
    counted_j = energy.value[-1] - energy.value[0]
    assert counted_j == pytest.approx(
        machine.exact_j("gpu:3", energy.t_s[0], energy.t_s[-1]), rel=0.01
    )


@pytest.mark.parametrize("name", LISTED)
def test_it_can_be_replayed(name):
    run = run_of(name)
    (header,) = run.headers
    tapes = [
        MeterTape(h.name, h.channels, [run.series(c) for c in h.channels], h.least_s, h.facts)
        for h in header.meters
    ]
    replay = RunReplay(name, tapes, run.marks)
    assert all(meter.simulated for meter in replay.meters)
    assert len(replay.marks(-S, 100 * S)) == len(run.marks)
    middle_ns = replay.at_ns(run.marks[0].t_s + 0.2)
    assert all(not np.isnan(meter.read(middle_ns)).any() for meter in replay.meters)
    assert replay.ended(replay.at_ns(run.duration_s + 1.0))
