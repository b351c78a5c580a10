"""What the live screen adds up, checkpoint by checkpoint, against the same run evaluated whole by
the jobs behind the commands."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from math import isnan

import pytest

from ckptcost.first.core.quantities import LineField
from ckptcost.first.core.reconcile import total
from ckptcost.first.jobs.gap import ModelGap, gap
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.measured_bill import bill_of_save
from ckptcost.first.meters.simulated_machine import Fault, MachinePlan
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.replay import Replay
from ckptcost.first.tui.live.simulated import Simulated

QUANTITIES: tuple[LineField, ...] = ("energy_j", "gpu_s", "cost_usd", "location_kgco2e")
OFTEN = MachinePlan(gpus=2, first_s=25.0, interval_s=45.0, saves=3)
PLANS = {
    "held up": OFTEN,
    "asynchronous": replace(OFTEN, asynchronous=True),
    "written back later": replace(OFTEN, asynchronous=True, storage="buffered"),
    "watts only": replace(OFTEN, energy_counter=False),
    "a counter wraps": replace(OFTEN, cpu_counter_at_j=250_000.0),
}
LENGTH_S = 162.0
"""three saves, and the third one's bytes written back"""


class Hand:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def played(
    plan: MachinePlan, for_s: float, directory, desk: Desk | None = None, step_s: float = 2.0
) -> Simulated:
    """A simulated run, to its end, with the screen's calls along the way."""
    clock = Hand()
    source = Simulated(
        desk or Desk(), plan, history_s=0.0, threaded=False, clock=clock, directory=directory
    )
    source.start()
    while clock.now_s < for_s:
        clock.now_s += step_s
        source.pump()
    source.stop()
    return source


def whole(directory, desk: Desk) -> ModelGap:
    return gap(desk.catalog, reviewed(directory), desk.layers())


def bills_of(found: ModelGap) -> list[dict[str, float]]:
    seen = found.seen
    bills = [
        bill_of_save(seen, w, c.bytes, found.scenario, found.machine.gpus)
        for w, c in zip(seen.windows, seen.contents, strict=True)
    ]
    return [{q: float(bill.bill.total(q)) for q in QUANTITIES} for bill in bills]


@pytest.mark.parametrize("name", PLANS)
def test_totals_are_those_of_compare(name, tmp_path):
    desk = Desk()
    source = played(PLANS[name], LENGTH_S, tmp_path / "run", desk)
    found = whole(tmp_path / "run", desk)
    each, totals = bills_of(found), source.board.account.totals
    assert totals.saves == len(each) == 3
    for quantity in QUANTITIES:
        known = [one[quantity] for one in each if not isnan(one[quantity])]
        assert totals.known[quantity] == len(known), quantity
        assert (isnan(totals.amounts[quantity]) and not known) or totals.amounts[
            quantity
        ] == pytest.approx(sum(known), rel=1e-9)
    assert found.saves is not None
    assert totals.least["gpu_s"] == pytest.approx(found.saves.row("gpu_s").total, rel=1e-9)
    for line, joules in totals.lines_j.items():
        if line != "requests" and line not in totals.lacking:
            assert joules == pytest.approx(found.saves.row(line).total, rel=1e-9), line


def test_another_scenario_prices_the_same_joules_again(tmp_path):
    desk = Desk()
    source = played(PLANS["held up"], 90.0, tmp_path / "run", desk)
    before = source.board.account.totals
    dear = desk.edited("cluster.gpu_price", "10 USD/GPU-h").edited("site.pue", "1.5")
    source.price(dear)
    source.board.work()
    after, (first, *_) = source.board.account.totals, bills_of(whole(tmp_path / "run", dear))
    assert after.amounts["cost_usd"] == pytest.approx(
        2 * first["cost_usd"], rel=0.05
    )  # two saves, nearly alike
    assert after.amounts["cost_usd"] > 1.5 * before.amounts["cost_usd"]
    assert after.amounts["gpu_s"] == before.amounts["gpu_s"]


def test_a_scenario_that_cannot_be_used_is_said_and_nothing_is_priced(tmp_path):
    source = played(PLANS["held up"], 60.0, tmp_path / "run", Desk().edited("cluster.gpus", "1"))
    view = source.view()
    assert [view.stats[n].value for n in (0, 2, 3)] == ["-", "-", "-"]
    assert any("Nothing is priced" in note and "cluster.gpus" in note for note in view.notes)


def test_energy_so_far_is_that_of_the_report(tmp_path):
    source = played(PLANS["held up"], 120.0, tmp_path / "run")
    seen = reviewed(tmp_path / "run")
    for one in source.board.sums:
        # the report leaves half a second out at either end
        assert one.joules == pytest.approx(seen.spans[one.channel.domain].value, rel=0.012), (
            one.channel.domain
        )


def test_a_meter_that_is_lost_is_a_gap_and_its_checkpoint_unknown_until_it_is_back(tmp_path):
    plan = replace(OFTEN, faults=(Fault("lost", "gpu:1", 65.0, 95.0),))
    clock = Hand()
    desk = Desk()
    source = Simulated(
        desk, plan, history_s=0.0, threaded=False, clock=clock, directory=tmp_path / "run"
    )
    source.start()
    while clock.now_s < 88.0:
        clock.now_s += 2.0
        source.pump()
    view = source.view(span_s=60.0)
    assert any("gpu:1 was lost" in note for note in view.notes)
    power = view.traces.charts[0].curves[0]
    lost = [y for x, y in zip(power.xs, power.ys, strict=True) if x > -15.0]
    assert lost
    assert all(isnan(y) for y in lost)  # a gap, no zero
    assert not isnan(next(y for x, y in zip(power.xs, power.ys, strict=True) if x > -35.0))
    assert next(row for row in view.gpus.rows if row.key == "gpu:1").cells[1] == "-"
    assert view.checkpoints.rows[0].cells[2:4] == ("-", "-")
    while clock.now_s < 112.0:
        clock.now_s += 2.0
        source.pump()
    source.stop()
    assert not any("was lost" in note for note in source.view().notes)
    each = bills_of(whole(tmp_path / "run", desk))
    assert source.board.account.totals.amounts["energy_j"] == pytest.approx(
        sum(one["energy_j"] for one in each), rel=1e-9
    )


def plain(cell: str) -> float:
    return float(cell.replace(",", ""))


def test_a_replay_has_the_same_rows_at_any_speed_and_after_jumps(tmp_path):
    desk = Desk()
    live = played(PLANS["held up"], 130.0, tmp_path / "run", desk)
    rows = [row.cells[2:] for row in live.view().checkpoints.rows]
    clock = Hand()
    source = Replay(str(tmp_path / "run"), desk, threaded=False, clock=clock)
    source.speed = 60.0
    source.start()
    clock.now_s += 2.0
    source.pump()
    assert source.position_s == pytest.approx(119.0, abs=1.5)
    assert len(source.view().checkpoints.rows) == 3
    source.seek(20.0)
    source.pump()
    assert source.view().checkpoints.rows == []
    source.pause(True)
    clock.now_s += 100.0
    source.pump()
    assert source.position_s == pytest.approx(20.0, abs=0.1)
    source.pause(False)
    source.set_speed(600.0)
    clock.now_s += 1.0
    source.pump()
    view = source.view()
    assert source.over
    assert view.headline.word == "REPLAY 600x ENDED"
    again = [row.cells[2:] for row in view.checkpoints.rows]
    assert len(again) == len(rows)
    for cell, before in zip(chain(*again), chain(*rows), strict=True):
        assert cell == before
    assert source.board.account.totals.amounts == pytest.approx(
        live.board.account.totals.amounts, rel=1e-9
    )


def stepped(plan: MachinePlan, until_saves: int) -> Simulated:
    """With two and a half minutes of history, then a fifth of a second at a time, until so many
    saves are evaluated."""
    clock = Hand()
    source = Simulated(Desk(), plan, history_s=150.0, threaded=False, clock=clock)
    source.start()
    while source.board.account.totals.saves < until_saves and clock.now_s < 30.0:
        clock.now_s += 0.2
        source.pump()
    return source


def test_a_save_waits_for_the_meter_that_is_read_seldom():
    """1.2 s after the third save the node's meter has not been read since its end: then the hosts'
    joules would be unknown for good."""
    totals = stepped(MachinePlan(gpus=1), 3).board.account.totals
    assert totals.saves == totals.known["energy_j"] == 3
    assert "host_wait" not in totals.lacking


@pytest.fixture(scope="module")
def one_unknown():
    """The node's meter says nothing during the second of three saves."""
    return stepped(MachinePlan(gpus=2, faults=(Fault("silent", "node", 90.0, 110.0),)), 3)


def test_the_parts_are_of_the_saves_that_are_in_the_sum(one_unknown):
    totals = one_unknown.board.account.totals
    assert totals.known["energy_j"] == totals.known["location_kgco2e"] == 2
    assert totals.saves == totals.known["cost_usd"] == 3
    assert sum(totals.lines_j.values()) == pytest.approx(totals.amounts["energy_j"], rel=1e-9)


def test_what_leaves_saves_out_is_said(one_unknown):
    said = [note for note in one_unknown.view().notes if "2 of 3 checkpoints" in note]
    assert said == ["Of 2 of 3 checkpoints only: energy, CO2e; of the others too little is known."]


@pytest.mark.parametrize("name", PLANS)
def test_joules_of_each_save_are_those_of_the_report(name, tmp_path):
    source = played(PLANS[name], LENGTH_S, tmp_path / "run")
    seen = reviewed(tmp_path / "run")
    assert len(seen.windows) == 3
    for number, window in enumerate(seen.windows, start=1):
        mine = source.board.account.joules(number)
        costs = [cost for cost in seen.costs if cost.window == window.name]
        cards = [cost.absolute for cost in costs if cost.domain.startswith("gpu:")]
        for live, reported in (
            (mine.all, seen.of_window(window.name).absolute),
            (mine.gpus, total(cards)),
        ):
            for end in ("value", "low", "high", "coverage"):
                assert getattr(live, end) == pytest.approx(getattr(reported, end), rel=1e-9), end
        assert mine.gpus.value + mine.hosts.value == pytest.approx(mine.all.value, rel=1e-9)


def test_the_last_save_is_told_as_the_table_has_it(tmp_path):
    source = played(PLANS["watts only"], LENGTH_S, tmp_path / "run")
    view = source.view()
    order = dict(zip((head.id for head in view.checkpoints.heads), view.checkpoints.rows[0].order))  # noqa: B905
    last = source.board.account.joules(3)
    assert (order["joules"], order["gpu_j"], order["host_j"]) == (
        last.all.value,
        last.gpus.value,
        last.hosts.value,
    )
    text, tone = view.last
    assert text.startswith("#3: 112 GB in ")
    assert "9,170 J +-47.8 (GPU 4,590, host 4,580)" in text
    assert "2 GPUs waited " in text
    assert ", $0." in text
    assert tone == ""


@pytest.mark.parametrize("name", ["held up", "a counter wraps"])
def test_while_it_goes_on_older_saves_are_told_for_good(name, tmp_path):
    """Readings are let go of, and what was told of a save stays what the report will say."""
    clock = Hand()
    source = Simulated(
        Desk(),
        PLANS[name],
        history_s=0.0,
        threaded=False,
        clock=clock,
        directory=tmp_path / "run",
    )
    source.start()
    while clock.now_s < 1500.0:
        clock.now_s += 5.0
        source.pump()
    told = [source.board.account.joules(number).all for number in (1, 2, 3)]
    assert float(source.board.run.run().node().ticked_s()[0, 0]) > 500.0
    source.stop()
    seen = reviewed(tmp_path / "run")
    for live, window in zip(told, seen.windows, strict=True):
        reported = seen.of_window(window.name).absolute
        for end in ("value", "low", "high"):
            assert getattr(live, end) == pytest.approx(getattr(reported, end), rel=1e-9), end
