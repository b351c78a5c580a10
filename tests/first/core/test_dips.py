"""Stalls that power confirms and stalls that it does not: on the simulated machine, where the truth
is known, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ckptcost.first.core.channels import Series, series
from ckptcost.first.core.dips import dip, of_gauge, of_joules
from ckptcost.first.core.reconcile import Energy, unknown
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import Fault, MachinePlan, marks
from ckptcost.first.runs.clocks import VirtualClock

GPUS = ["gpu:0", "gpu:1"]
SPINNING = {"gpu_stall_w": 627.0, "gpu_snapshot_w": 0.0}


def recorded(said=None, **planned) -> tuple[Energies, MachinePlan]:
    plan = MachinePlan(gpus=2, packages=0, disks=0, variation=0.0, **planned)
    seen = simulated.find(plan, origin_ns=0)
    told = list(marks(plan, 0.0, 60.0)) if said is None else said
    run = record(Instruments(seen.meters, seen.absences, VirtualClock(0), told), 60.0).run
    return Energies(run.node()), plan


def stall_of(plan: MachinePlan) -> tuple[float, float]:
    return plan.first_s, plan.first_s + plan.offsets(1.0).returned_s


def gauge(energies: Energies, domain: str, quantity: str):
    place, channel = next(
        (n, c)
        for n, c in enumerate(energies.channels)
        if (c.domain, c.quantity) == (domain, quantity)
    )
    return of_gauge(
        energies.series(place),
        averaging_s=channel.averaging_s,
        looks=channel.looks,
        tick_s=channel.tick_s,
    )


def test_a_synchronous_save_is_confirmed_at_the_planned_depth():
    energies, plan = recorded()
    found = dip(of_joules(energies.joules, GPUS), stall_of(plan), (15.0, 35.0))
    assert found.verdict == "CONFIRMED"
    assert found.drop_fraction == pytest.approx(
        1 - plan.gpu_stall_w / (plan.gpu_train_w - plan.dip_share * plan.dip_w), abs=0.03
    )
    for domain in ("gpu:0", "gpu:0.average"):
        averaging_s = 1.0 if domain.endswith("average") else 0.025
        assert (
            dip(
                gauge(energies, domain, "power_w"),
                stall_of(plan),
                (15.0, 35.0),
                resolved_s=averaging_s,
            ).verdict
            == "CONFIRMED"
        )


def test_the_copy_of_an_asynchronous_save_is_seen_by_the_counter_and_not_by_a_mean_of_a_second():
    energies, plan = recorded(asynchronous=True)
    begin_s, end_s = stall_of(plan)
    assert end_s - begin_s == pytest.approx(0.3)
    assert (
        dip(of_joules(energies.joules, GPUS), (begin_s, end_s), (15.0, 35.0)).verdict == "CONFIRMED"
    )
    mean = dip(
        gauge(energies, "gpu:0.average", "power_w"), (begin_s, end_s), (15.0, 35.0), resolved_s=1.0
    )
    assert (mean.verdict, mean.why) == ("NOT_RESOLVED", "TOO_SHORT")


def test_its_drain_is_no_stall():
    energies, plan = recorded(asynchronous=True)
    at = plan.offsets(1.0)
    found = dip(
        of_joules(energies.joules, GPUS), (35.0 + at.returned_s, 35.0 + at.durable_s), (15.0, 35.0)
    )
    assert found.verdict == "CONTRADICTED"
    assert abs(found.drop_fraction) < 0.05


@pytest.mark.parametrize("dip_w", [0.0, 180.0])
def test_cards_that_go_on_as_before_contradict(dip_w):
    energies, plan = recorded(dip_w=dip_w, **SPINNING)
    found = dip(of_joules(energies.joules, GPUS), stall_of(plan), (15.0, 35.0))
    assert found.verdict == "CONTRADICTED"
    assert found.drop_fraction < 0.01


def test_utilisation_that_stays_contradicts_nothing():
    energies, plan = recorded()
    found = dip(
        gauge(energies, "gpu:0", "utilisation"),
        stall_of(plan),
        (15.0, 35.0),
        resolved_s=1.0,
        spins=True,
    )
    assert (found.verdict, found.why, found.drop_fraction) == (
        "NOT_RESOLVED",
        "STAYS_BUSY",
        pytest.approx(0.0),
    )


@pytest.mark.parametrize("snapshot_s", [0.1, 0.2, 0.3, 0.5, 1.0])
def test_a_stall_that_polls_may_have_missed_is_not_contradicted(snapshot_s):
    """Nobody said that it was coming, so the cards were asked five times a second."""
    energies, plan = recorded(
        said=[],
        asynchronous=True,
        snapshot_s=snapshot_s,
        interval_s=10.0,
        first_s=20.0,
        write_s=1.0,
        fsync_s=1.0,
    )
    seen = gauge(energies, "gpu:0", "power_w")
    for number in range(4):
        begin_s = plan.first_s + number * plan.interval_s
        for mean in (of_joules(energies.joules, GPUS), seen):
            assert dip(mean, (begin_s, begin_s + snapshot_s), (begin_s - 6.0, begin_s)).verdict in (
                "CONFIRMED",
                "NOT_RESOLVED",
            )


def test_a_card_that_fell_silent():
    energies, plan = recorded(faults=(Fault("silent", "gpu:1", 34.0, 50.0),))
    assert (
        dip(of_joules(energies.joules, ["gpu:0"]), stall_of(plan), (15.0, 34.0)).verdict
        == "CONFIRMED"
    )
    seen = dip(gauge(energies, "gpu:1", "power_w"), stall_of(plan), (15.0, 34.0))
    assert (seen.verdict, math.isnan(seen.drop_fraction)) == ("NO_READINGS", True)
    assert (
        dip(of_joules(energies.joules, []), stall_of(plan), (15.0, 34.0)).verdict == "NO_READINGS"
    )
    assert (
        dip(of_joules(energies.joules, ["gpu:0"]), stall_of(plan), None).why
        == "NO_TRAINING_REFERENCE"
    )
    assert dip(of_joules(energies.joules, ["gpu:0"]), (35.0, 35.0), (15.0, 34.0)).why == "NO_TIME"


class TestByHand:
    def level(self, before, during):
        return lambda begin_s, end_s: during if begin_s >= 10.0 else before

    def found(self, before, during, **more):
        return dip(self.level(before, during), (10.0, 14.0), (0.0, 10.0), **more)

    def test_a_drop_within_the_range_is_none(self):
        found = self.found(Energy(600.0, 480.0, 620.0), Energy(500.0, 490.0, 510.0))
        assert (found.verdict, found.why) == ("NOT_RESOLVED", "TOO_LITTLE")

    def test_less_than_a_tenth_is_no_dip_however_sharp_the_sensor(self):
        assert (
            self.found(Energy(600.0, 599.0, 601.0), Energy(550.0, 549.0, 551.0)).verdict
            == "CONTRADICTED"
        )
        assert (
            self.found(Energy(600.0, 599.0, 601.0), Energy(535.0, 530.0, 550.0)).verdict
            == "CONFIRMED"
        )

    def test_a_rise_contradicts(self):
        found = self.found(Energy(300.0, 299.0, 301.0), Energy(600.0, 599.0, 601.0))
        assert (found.verdict, found.drop_fraction) == ("CONTRADICTED", -1.0)

    def test_what_is_covered_in_part_tells_nothing(self):
        found = self.found(Energy(600.0, 599.0, 601.0), Energy(300.0, 299.0, 301.0, 0.5))
        assert (found.verdict, found.why) == ("NOT_RESOLVED", "GAPS")
        assert (
            self.found(unknown("NO_READING"), Energy(300.0, 299.0, 301.0)).verdict == "NO_READINGS"
        )

    def test_few_ticks_contradict_nothing(self):
        found = self.found(
            Energy(600.0, 599.0, 601.0), Energy(600.0, 599.0, 601.0, 1.0, "", ("SHORT",))
        )
        assert (found.verdict, found.why) == ("NOT_RESOLVED", "TOO_SHORT")

    def test_pieces_of_the_quiet_time_that_dip_as_deep(self):
        def wave(
            begin_s, end_s
        ):  # 600 W and 300 W in turns, 4 s each; the stall is 3 s of the low half
            t_s = np.linspace(begin_s, end_s, 2001)
            mean = float(np.where(t_s % 8.0 < 4.0, 600.0, 300.0).mean())
            return Energy(mean, mean - 1.0, mean + 1.0)

        assert dip(wave, (20.5, 23.5), (4.0, 20.0)).verdict == "NOT_RESOLVED"

    def test_a_gauge_that_is_constant(self):
        at = np.arange(0.0, 30.0, 0.1)
        flat: Series = series(at, np.full(len(at), 250.0))
        assert dip(of_gauge(flat), (20.0, 24.0), (5.0, 20.0)).verdict == "CONTRADICTED"
        fell = series(at, np.where((at >= 20.0) & (at < 24.0), 100.0, 250.0))
        assert dip(of_gauge(fell), (20.0, 24.0), (5.0, 20.0)).verdict == "CONFIRMED"
