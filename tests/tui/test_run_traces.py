"""Curves of a run: what is not known is no curve, and no zero."""

from told_meters import Told, at, energy

from ckptcost.jobs.instruments import Instruments
from ckptcost.jobs.measured import evaluate
from ckptcost.jobs.recording import record
from ckptcost.runs.clocks import VirtualClock
from ckptcost.tui.screens.run_traces import traces_of


def titles(says):
    recorded = record(Instruments([Told("told", says)], (), VirtualClock(0)), 10.0)
    seen = evaluate(recorded.run, recorded.begin_s, recorded.end_s)
    return [chart.title for chart in traces_of(seen).charts]


def test_a_counter_that_never_moves_is_not_drawn_as_nothing_used():
    assert titles({energy("psys:0"): lambda t: 5.0}) == []


def test_one_that_moves_is_drawn():
    assert titles({energy("psys:0"): at(90.0)}) == ["CPU and memory, W"]
