"""Runs whose saves overlap, never end, or seem to give energy back: their lines still add up, and
nothing is counted twice."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.hourly import spread
from ckptcost.first.exports.formats import FORMATS, exported
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.model import one_of
from ckptcost.first.layers import layers_for
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import MachinePlan
from ckptcost.first.report.statement import utc
from ckptcost.first.report.statements.measured import statement_of
from ckptcost.first.report.statements.reading import gather_statements
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink

CATALOG = Catalog()


def save(name, begin, returned, durable=None, of="save"):
    detail = {"bytes": 1e9, "path": f"/c/{name}"} | ({"of": "load"} if of == "load" else {})
    safe = durable or returned
    return [
        (begin, "begin", name, detail),
        (returned, "returned", name, {}),
        (safe, "durable", name, {}),
        (safe + 0.001, "end", name, {}),
    ]


@pytest.fixture
def run(tmp_path):
    def recorded(*marks):
        folder = tmp_path / "run"
        folder.mkdir()
        seen = simulated.find(MachinePlan(gpus=2, packages=1, saves=0), origin_ns=0)
        recorder = Recorder(
            seen.meters, FileSink(folder), VirtualClock(0), run_id="ab" * 16, host="h"
        )
        recorder.begin()
        for at, name, which, detail in sorted(
            (mark for each in marks for mark in each), key=lambda mark: mark[0]
        ):
            recorder.run_until(int(at * S))
            recorder.mark(name, which, t_ns=int(at * S), **detail)
            recorder.step()
        recorder.run_until(150 * S)
        recorder.stop()
        return reviewed(folder)

    return recorded


def lines(s):
    return {c.id: c for c in s.components}


def joules(seen, begin, end, kind):
    domains = [d for d in [*seen.energies.parts, *seen.energies.wholes] if d.split(":")[0] == kind]
    return math.fsum(seen.energies.joules(d, begin, end).value for d in domains)


def test_two_saves_that_stall_together_cost_their_time_once(run):
    seen = run(save("a", 60, 70), save("b", 65, 75))
    s = statement_of(seen, CATALOG)
    assert s.totals.gpu_time_lost.value * 3600 == pytest.approx(2 * 15.0)
    assert lines(s)["gpu_wait"].energy.value * 3.6e6 == pytest.approx(
        joules(seen, 60, 75, "gpu"), rel=1e-6
    )
    node = joules(seen, 60, 75, "node")
    assert s.totals.energy.value * 3.6e6 == pytest.approx(node, rel=1e-6)
    assert s.totals.checkpoints.value == 2.0


def test_one_save_inside_another_and_a_load_over_a_save(run):
    seen = run(
        save("a", 60, 70), save("b", 62, 68), save("c", 100, 110, of="load"), save("d", 105, 112)
    )
    s = statement_of(seen, CATALOG)
    assert s.totals.gpu_time_lost.value * 3600 == pytest.approx(2 * (10.0 + 12.0))
    whole = joules(seen, 60, 70, "node") + joules(seen, 100, 112, "node")
    assert s.totals.energy.value * 3.6e6 == pytest.approx(whole, rel=1e-6)
    assert s.totals.checkpoints.value == 3.0


@pytest.mark.parametrize("set_s", [-7200.0, 7200.0, -20.0, 0.0])
def test_a_clock_that_is_set_makes_no_run_longer_or_shorter(run, set_s):
    seen = run(save("a", 60, 70))
    began = seen.run.wall[0][1]
    pairs = ((0.0, began), (100.0, began + 100.0), (110.0, began + 110.0 + set_s))
    seen = seen._replace(run=replace(seen.run, wall=pairs))
    s = statement_of(seen, CATALOG)
    length_s = seen.end_s - seen.begin_s
    assert s.length_s == pytest.approx(length_s + (set_s if abs(set_s) < 60 else 0.0), abs=0.01)
    end_s = began + seen.end_s + set_s
    assert utc(s.period_end).timestamp() == pytest.approx(end_s, abs=0.01)
    assert math.fsum(s.series.checkpoints) == 1.0


def test_saves_that_share_nothing_are_what_they_were(run):
    seen = run(save("a", 60, 70), save("b", 70, 75))
    s = statement_of(seen, CATALOG)
    assert s.totals.gpu_time_lost.value * 3600 == pytest.approx(2 * 15.0)
    each = math.fsum(c.stall.value for c in seen.costs if c.domain.startswith("gpu"))
    assert lines(s)["gpu_wait"].energy.value * 3.6e6 == pytest.approx(each, rel=1e-9)


def test_a_save_that_the_job_died_in_is_no_completed_one(run):
    seen = run([(60, "begin", "a", {"bytes": 1e9, "path": "/c/a"})], save("b", 100, 110))
    s = statement_of(seen, CATALOG)
    assert (s.totals.checkpoints.value, s.functional_units[0].count) == (1.0, 1.0)
    assert "a" in lines(s)["gpu_wait"].energy.excludes
    assert math.fsum(s.series.checkpoints) == 1.0


def test_what_draining_gives_back_is_told_as_nothing_and_every_format_takes_it(run):
    seen = run(save("a", 60, 61, 80), save("b", 70, 71, 90))
    resolved = one_of(
        CATALOG, layers_for(CATALOG, None, None, ["site.id=usa", "cluster.gpu_price=2 USD/GPU-h"])
    )
    s = statement_of(seen, CATALOG, resolved)
    slowdown = lines(s)["slowdown"].energy
    assert slowdown.value is not None
    assert slowdown.value >= 0
    assert slowdown.low <= slowdown.value
    known = [c.energy.value for c in s.marginal() if c.energy.value is not None]
    assert s.totals.energy.value == pytest.approx(math.fsum(known), rel=1e-9)
    assert all(value >= 0 for value in s.series.energy_kwh if value is not None)
    for name in FORMATS:
        if name == "parquet" or (name == "focus" and s.totals.cost.value is None):
            continue
        for content in exported(gather_statements([s], ()), name).values():
            assert content if isinstance(content, bytes) else "".join(content)


def test_a_sum_below_zero_is_nothing(run, monkeypatch):
    from ckptcost.first.report.statements import run_lines

    seen = run(save("a", 60, 61, 80))
    below = [
        c._replace(extra=c.extra._replace(value=-50.0, low=-80.0, high=10.0)) for c in seen.costs
    ]
    resolved = one_of(CATALOG, layers_for(CATALOG, None, None, ["site.id=usa"]))
    s = statement_of(seen._replace(costs=below), CATALOG, resolved, priced=False)
    q = lines(s)["slowdown"].energy
    assert q.value == 0.0
    assert q.low < 0 < q.high
    assert run_lines.BELOW_ZERO in {w.code for w in s.warnings}
    assert "slowdown" not in set(s.series.component)
    assert lines(s)["slowdown"].emissions_location.value == 0.0


def test_spreading_keeps_amounts_where_a_stretch_has_no_length():
    import numpy as np

    assert spread([(5.0, 5.0)], [3.0], np.array([0.0, 10.0])).tolist() == [3.0]
