"""What training's steps and GPUs are asked, and of which saves."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ckptcost.first.core.attribution import planned
from ckptcost.first.core.channels import Channel, Mark
from ckptcost.first.core.phases import windows_of
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.jobs.measured import dips_of, training_steps

ORIGIN_NS = 7_000_000_000
NODE = SimpleNamespace(origin_ns=ORIGIN_NS, tables=[])


def steps(*ends_s, rank=0, t_s=0.0):
    return Mark(
        t_s,
        "steps",
        rank=rank,
        detail={"base": ORIGIN_NS, "ends_ms": [end_s * 1e3 for end_s in ends_s]},
    )


def save(begin_s, returned_s, durable_s=None, name="w"):
    at_s = {"begin": begin_s, "returned": returned_s, "durable": durable_s}
    return [Mark(t_s, mark, name) for mark, t_s in at_s.items() if t_s is not None]


class TestSteps:
    def test_none_where_the_job_marks_none(self):
        assert (
            training_steps(
                [Mark(1.0, "begin", "w"), Mark(1.0, "note", detail={"base": 0, "ends_ms": [1]})],
                [],
                NODE,
            )
            is None
        )

    def test_a_save_holds_the_step_up_that_it_lies_in(self):
        """Steps of 1 s; the save stands in the one from 10 on for 3 s."""
        marks = [steps(*range(11), *range(14, 25))] + save(10.2, 13.2, 13.2)
        seen = training_steps(marks, windows_of(marks), NODE)
        assert len(seen.ends_s) == 22
        assert seen.usual.step_s.value == pytest.approx(1.0)
        assert [stall.value for stall in seen.stalls_s] == pytest.approx([3.0])
        assert not seen.more.known  # nothing drained

    def test_in_a_drain_steps_take_longer_by_so_much(self):
        ends_s = [*range(11), *(10 + 1.25 * n for n in range(1, 9)), *range(21, 31)]
        marks = [steps(*ends_s)] + save(10.0, 10.0, 20.0)
        seen = training_steps(marks, windows_of(marks), NODE)
        assert seen.more.value == pytest.approx(0.25)

    def test_a_host_whose_clock_is_ahead(self):
        """What is 5 s on its own clock is 7 s on the run's."""
        node = SimpleNamespace(origin_ns=ORIGIN_NS, tables=[(None, 2_000_000_000), (None, 9)])
        assert training_steps([steps(5.0)], [], node).ends_s.tolist() == pytest.approx([7.0])

    def test_other_marks_do_not_count_as_steps(self):
        marks = [steps(1.0, 2.0, 3.0), Mark(9.0, "begin", "w", rank=1), Mark(9.0, "note", rank=1)]
        assert training_steps(marks, [], NODE).ends_s.tolist() == pytest.approx([1.0, 2.0, 3.0])


class Gpus:
    """`Energies` of two cards and a package; a card's averaging and tick may differ."""

    gpus = Energies.gpus

    def __init__(
        self, parts=("gpu:0", "gpu:1", "cpu:0"), averaging_s=(None, None), tick_s=(None, None)
    ):
        self.parts = list(parts)
        channels = {
            f"gpu:{n}": Channel(f"gpu:{n}", "power_w", "t", averaging_s=averaging_s[n])
            for n in (0, 1)
        }
        channels |= {
            "module:0": Channel("module:0", "power_w", "t"),
            "cpu:0": Channel("cpu:0", "energy_j", "t", averaging_s=99.0),
        }
        self.sources = {
            domain: SimpleNamespace(channel=channel) for domain, channel in channels.items()
        }
        self.ticks = {"gpu:0": tick_s[0], "gpu:1": tick_s[1], "cpu:0": 99.0}
        self.ready = set()

    def tick_s(self, domain):
        return self.ticks.get(domain)

    def curves_ahead(self, domains, spans):
        self.ready |= {(domain, *span) for domain in domains for span in spans}

    def curve(self, domain, t_s):
        """Pieces of the quiet time are not told apart here: power is steady outside stalls. What is
        asked for was made ready, or making it ready is for nothing."""
        assert (domain, t_s[0], t_s[-1]) in self.ready
        return np.full(len(t_s), np.nan)


def watts(load):
    """Joules of a power by domain, second by second; `load(domain, t_s)` in W at a resolution of 10
    ms."""

    def joules(domain, begin_s, end_s):
        count = max(round((end_s - begin_s) / 0.01), 1)
        value = (
            sum(load(domain, begin_s + (n + 0.5) * (end_s - begin_s) / count) for n in range(count))
            * (end_s - begin_s)
            / count
        )
        return SimpleNamespace(value=value, low=value * 0.999, high=value * 1.001, coverage=1.0)

    return joules


def falling(*stalls, of=("gpu:0", "gpu:1", "module:0"), low=300.0):
    return watts(
        lambda domain, t_s: low if domain in of and any(a <= t_s < b for a, b in stalls) else 600.0
    )


class TestDips:
    def verdicts(self, marks, energies=None, joules=None, since_s=0.0):
        found = dips_of(
            energies or Gpus(), joules or falling((20.0, 24.0)), planned(windows_of(marks), since_s)
        )
        return [None if dip is None else dip.verdict for dip in found]

    def test_confirmed_where_both_cards_fall_and_the_processor_is_not_asked(self):
        (dip,) = dips_of(
            Gpus(), falling((20.0, 24.0)), planned(windows_of(save(20.0, 24.0, 30.0)), 0.0)
        )
        assert dip.verdict == "CONFIRMED"
        assert dip.drop_fraction == pytest.approx(0.5)
        assert dip.before.value == pytest.approx(1200.0)  # of two cards

    def test_a_module_is_a_gpu(self):
        assert self.verdicts(save(20.0, 24.0, 30.0), Gpus(["module:0", "cpu:0"])) == ["CONFIRMED"]

    def test_contradicted_where_it_goes_on(self):
        assert self.verdicts(save(20.0, 24.0, 30.0), joules=falling()) == ["CONTRADICTED"]

    def test_the_length_of_the_stall_counts_and_not_of_the_drain(self):
        """Power falls while the save drains, which is no stall."""
        assert self.verdicts(save(20.0, 24.0, 30.0), joules=falling((24.0, 30.0))) == [
            "CONTRADICTED"
        ]

    def test_without_a_gpus_meter_nothing_is_said_of_any(self):
        marks = save(20.0, 24.0, 30.0, "a") + save(40.0, 44.0, 50.0, "b")
        assert self.verdicts(marks, Gpus(["cpu:0", "node"])) == [None, None]

    @pytest.mark.parametrize(
        "marks", [save(20.0, 20.0, 30.0), save(20.0, None, 30.0), save(None, 24.0, 30.0)]
    )
    def test_no_stall_no_verdict(self, marks):
        assert self.verdicts(marks) == [None]

    def test_each_has_its_own_and_the_saves_between_are_not_quiet(self):
        marks = (
            save(10.0, 10.0, 21.0, "a") + save(21.5, 25.5, 30.0, "b") + save(40.0, 44.0, 45.0, "c")
        )
        # just before `b` lies only half a second outside saves: what counts is before `a`
        assert self.verdicts(marks, joules=falling((10.0, 25.5))) == [
            None,
            "CONFIRMED",
            "CONTRADICTED",
        ]

    def test_nothing_before_the_recording_is_quiet(self):
        assert self.verdicts(save(20.0, 24.0, 30.0), since_s=19.5) == ["NO_READINGS"]
        assert self.verdicts(save(20.0, 24.0, 30.0), since_s=18.5) == ["CONFIRMED"]

    @pytest.mark.parametrize(
        "energies",
        [
            Gpus(averaging_s=(None, 2.5)),
            Gpus(averaging_s=(2.5, None)),
            Gpus(tick_s=(None, 2.5)),
            Gpus(tick_s=(2.5, 0.1), averaging_s=(0.1, 0.1)),
        ],
    )
    def test_the_slowest_card_says_what_can_be_resolved(self, energies):
        assert self.verdicts(save(20.0, 24.0, 30.0), energies, falling()) == ["NOT_RESOLVED"]
        quick = Gpus(averaging_s=(1.9, 1.9), tick_s=(1.9, 1.9))
        assert self.verdicts(save(20.0, 24.0, 30.0), quick, falling()) == ["CONTRADICTED"]
