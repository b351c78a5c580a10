"""A long run is worked out stretch by stretch: its figures are those of the whole at once."""

from __future__ import annotations

import math
import os
import pickle

import pytest

from ckptcost.first.core import attribution
from ckptcost.first.jobs import energies, measured
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.measure import reviewed_run
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import MachinePlan, marks
from ckptcost.first.report.studies.measure import study_of
from ckptcost.first.runs import reader, run, tables
from ckptcost.first.runs.clocks import VirtualClock

WINDOWS = 90


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    plan = MachinePlan(interval_s=12.0, first_s=10.0, snapshot_s=0.1, write_s=0.3, fsync_s=0.6)
    length_s = 10.0 + WINDOWS * 12.0
    kept = tmp_path_factory.mktemp("long")
    meters = simulated.find(plan, origin_ns=0).meters
    told = list(marks(plan, 0.0, length_s))
    record(Instruments(meters, (), VirtualClock(0), told), length_s, kept)
    return kept


@pytest.fixture
def short_stretches(monkeypatch):
    """As many stretches in twelve minutes as hours have."""
    monkeypatch.setattr(tables, "SEALED", 512)
    monkeypatch.setattr(run, "LONG", 3)
    monkeypatch.setattr(energies, "BEHIND_S", 30.0)
    monkeypatch.setattr(energies, "AHEAD_S", 60.0)
    monkeypatch.setattr(attribution, "AT_ONCE", 4)


@pytest.mark.usefixtures("short_stretches")
def test_a_long_run_has_the_figures_of_the_whole_at_once(folder, monkeypatch):
    long = reader.load(folder)
    monkeypatch.setattr(tables, "SEALED", 10**9)
    whole = reader.load(folder)
    assert long.node().is_long
    assert not whole.node().is_long
    asked, over = [], run.Node.over

    def counted(node, begin_s, end_s):
        asked.append(over(node, begin_s, end_s))
        return asked[-1]

    monkeypatch.setattr(run.Node, "over", counted)
    one, other = study_of(reviewed_run(long)), study_of(reviewed_run(whole))
    parts = [part for part in asked if 2 * len(part.tables) <= len(long.node().tables)]
    assert len(parts) > 5, "it was worked out in parts"
    assert_same(one, other)


@pytest.mark.usefixtures("short_stretches")
def test_several_processes_find_the_figures_of_one(folder, monkeypatch):
    run = reader.load(folder)
    one = study_of(reviewed_run(run))
    monkeypatch.setattr(measured, "MANY", WINDOWS)
    monkeypatch.setattr(measured, "PIECE", 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    pieces, in_order = [], measured.in_order

    def counted(task, given, workers):
        pieces.extend(given)
        return in_order(task, given, workers)

    monkeypatch.setattr(measured, "in_order", counted)
    several = study_of(reviewed_run(run))
    assert len(pieces) == math.ceil(WINDOWS / 16)
    assert max(len(pickle.dumps(piece)) for piece in pieces) < len(pickle.dumps(run)) / 2
    assert_same(one, several)


def assert_same(one, other):
    assert one.findings == other.findings
    assert [table.id for table in one.tables] == [table.id for table in other.tables]
    for mine, theirs in zip(one.tables, other.tables, strict=True):
        assert len(mine.rows) == len(theirs.rows) > 0 or mine.id == "details"
        for row, same in zip(mine.rows, theirs.rows, strict=True):
            assert row.keys() == same.keys()
            for name, value in row.items():
                if isinstance(value, float) and math.isfinite(value):
                    assert value == pytest.approx(same[name], rel=1e-6, abs=1e-6), (mine.id, name)
                else:
                    assert value == same[name], (mine.id, name)


@pytest.mark.usefixtures("short_stretches")
def test_a_stretch_of_a_long_run_is_a_small_part_of_it(folder):
    node = reader.load(folder).node()
    part = node.over(330.0, 350.0)
    assert 2 * len(part.tables) < len(node.tables)
    for channel in node.channels:
        all_, some = node.series(channel), part.series(channel)
        assert all_.t_s[0] <= some.t_s[0] <= 330.0
        assert 350.0 <= some.t_s[-1] <= all_.t_s[-1]
        here = (all_.t_s >= some.t_s[0]) & (all_.t_s <= some.t_s[-1])
        assert all_.t_s[here].tolist() == some.t_s.tolist()
