"""The first saves fit into the page cache, later ones wait for the device: said, and not calibrated
on."""

from __future__ import annotations

import pytest
from told_meters import Told, at, energy, evaluated

from ckptcost.first.core.channels import Mark
from ckptcost.first.jobs.advice import rhythm_of
from ckptcost.first.jobs.calibrate_rounds import RunToFit as Run
from ckptcost.first.jobs.calibrate_rounds import rounds_of
from ckptcost.first.meters.writeback import dirty_limit_of_host
from ckptcost.first.report.studies.measure_saves import honeymoon_told

GPUS = Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)})
PUBLISHED = (16.4, 16.9, 16.1, 17.0, 28.6, 56.2, 55.8, 56.4)
"""seconds of saves one after the other: catalogue case A4"""


def run(stalls_s, sizes=None):
    marks, at_s = [], 5.0
    for number, stall_s in enumerate(stalls_s):
        name, size = f"step {number}", (sizes or [2e9] * len(stalls_s))[number]
        marks += [Mark(at_s, "begin", name), Mark(at_s + stall_s, "returned", name)]
        marks += [Mark(at_s + stall_s, "written", name, detail={"bytes": size})]
        marks += [Mark(at_s + stall_s, "durable", name)]
        at_s += stall_s + 60.0
    return evaluated(GPUS, for_s=at_s + 10.0, marks=marks)


def test_a_published_run_is_told_and_the_later_saves_count():
    seen = run(PUBLISHED)
    (said,) = honeymoon_told(seen)
    assert "16.9 s of training lost at each of the first 5 (until step 4)" in said
    assert "count on 56.2 s" in said
    assert rhythm_of(seen).stall_s == pytest.approx(sum(PUBLISHED[5:]) / 3)
    rounds, left = rounds_of(Run(seen))
    assert [one.window.name for one in rounds] == ["step 5", "step 6", "step 7"]
    assert {one.why for one in left} == {"HONEYMOON"}


def test_saves_that_grow_are_no_honeymoon():
    seen = run(PUBLISHED, [2e9] * 5 + [7e9] * 3)
    assert honeymoon_told(seen) == []
    assert rhythm_of(seen).stall_s == pytest.approx(sum(PUBLISHED) / 8)


def test_steady_saves_are_all_calibrated_on():
    seen = run([16.0, 17.0, 16.5, 16.2, 17.1, 16.6])
    assert honeymoon_told(seen) == []
    assert len(rounds_of(Run(seen))[0]) == 6


def test_where_a_writer_waits_is_the_kernels_own_figure(tmp_path):
    vm = tmp_path / "sys" / "vm"
    vm.mkdir(parents=True)
    for name, value in (
        ("dirty_ratio", 20),
        ("dirty_bytes", 0),
        ("dirty_background_ratio", 10),
        ("dirty_background_bytes", 0),
    ):
        (vm / name).write_text(f"{value}\n")
    assert dirty_limit_of_host(tmp_path) is None
    (tmp_path / "meminfo").write_text("MemTotal: 2 kB\nMemAvailable:   1000000 kB\n")
    assert dirty_limit_of_host(tmp_path) == pytest.approx(0.15 * 1000000 * 1024)
    assert (dirty_limit_of_host() or 0.0) > 1e6
