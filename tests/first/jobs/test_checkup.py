"""What `doctor` says of a meter: ticks, rates and noise of sources whose truth is a formula, and
which kind of thing is measured."""

from __future__ import annotations

import math

import numpy as np
import pytest
from told_meters import Told, at, energy, recorded, watts

from ckptcost.first.core.channels import Channel, Series
from ckptcost.first.errors import InputError, MeterLost
from ckptcost.first.jobs import checkup as job
from ckptcost.first.jobs.checkup import (
    KINDS,
    OF_DOMAIN,
    checkup,
    lacking_of,
    means_of,
    missing_kinds,
)
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import rapl
from ckptcost.first.meters.base import Absence, Basic, FoundMeters
from ckptcost.first.present.measured import absence_text
from ckptcost.first.report.studies import checkup as report
from ckptcost.first.runs.clocks import VirtualClock


def tried_of(says, seconds=2.0, **more):
    seen = checkup(Instruments([Told("told", says, **more)], (), VirtualClock(0)), seconds)
    return {one.channel.name: one for one in seen.tried}


class TestOneChannel:
    def test_a_counter_that_is_renewed_ten_times_a_second(self):
        one = tried_of({energy("gpu:0", tick_s=0.1): at(300.0, 0.1)})["gpu:0 energy_j"]
        assert one.rate == pytest.approx(300.0, rel=0.01)
        assert one.tick_s == pytest.approx(0.1, rel=0.02)
        assert one.noise < 10.0
        assert (one.meter, one.kind) == ("told", "gpu")

    def test_a_fifth_is_no_whole_number_of_ticks(self):
        one = tried_of({energy("gpu:0", tick_s=0.15): at(300.0, 0.15)})["gpu:0 energy_j"]
        assert one.noise < 20.0, "half a tick more or less would be 50 W"

    def test_a_counter_that_answers_late_has_the_noise_of_what_was_seen(self):
        one = tried_of(
            {energy("gpu:0", tick_s=0.001): lambda t: 300.0 * t if t > 1.1 else math.nan}
        )["gpu:0 energy_j"]
        assert one.noise < 100.0

    def test_asked_each_10_ms_between_the_edges(self):
        one = tried_of({energy("gpu:0", tick_s=0.001): at(300.0, 0.001)})["gpu:0 energy_j"]
        assert one.answers == one.asked
        assert 201 <= one.asked <= 203, "both edges bring a tick of their own"
        assert one.tick_s == pytest.approx(0.01, rel=0.02)

    def test_noise_of_a_counter_is_that_of_its_rate_over_fifths(self):
        rates = [100.0, 140.0, 60.0, 180.0, 20.0]

        def joules(
            t_s,
        ):
            # each for 0.4 s from the edge at 0.5 s on, the first also before and the last also
            # after
            fifths = (t_s - 0.5) / 0.4
            whole = min(max(int(fifths), 0), 4)
            return 1000.0 + 0.4 * (sum(rates[:whole]) + rates[whole] * (fifths - whole))

        one = tried_of({energy("gpu:0", tick_s=0.001): joules})["gpu:0 energy_j"]
        assert one.rate == pytest.approx(100.0, rel=0.01)
        assert one.noise == pytest.approx(float(np.std(rates, ddof=1)), rel=0.02)

    def test_level_and_noise_of_a_gauge(self):
        one = tried_of({watts("gpu:0"): lambda t: 200.0 + 50.0 * math.sin(2 * math.pi * t)})[
            "gpu:0 power_w"
        ]
        assert one.rate == pytest.approx(200.0, rel=0.01)
        assert one.noise == pytest.approx(50.0 / math.sqrt(2.0), rel=0.02)

    def test_what_is_steady_has_no_noise_at_all(self):
        seen = tried_of({watts("gpu:0"): lambda t: 200.1, energy("cpu:0", tick_s=0.001): at(0.1)})
        assert (seen["gpu:0 power_w"].noise, math.isnan(seen["gpu:0 power_w"].tick_s)) == (
            0.0,
            True,
        )
        assert seen["cpu:0 energy_j"].noise < 1e-3

    def test_a_counter_wraps(self):
        one = tried_of(
            {energy("cpu:0", wraps_at=1000.0, tick_s=0.001): lambda t: (300.0 * t + 500.0) % 1000.0}
        )["cpu:0 energy_j"]
        assert one.rate == pytest.approx(300.0, rel=1e-3)

    def test_bytes_count_when_they_are_written_whatever_their_tick(self):
        """A burst in the middle of the second fifth: counted there and nowhere else."""
        disk = Channel("disk:sda", "written_bytes", "diskstats", tick_s=1.0)
        one = tried_of({disk: lambda t: 1e6 if t >= 1.1 else 0.0})["disk:sda written_bytes"]
        assert one.rate == pytest.approx(5e5)
        assert one.noise == pytest.approx(float(np.std([0.0, 2.5e6, 0.0, 0.0, 0.0], ddof=1)))

    def test_two_changes_are_a_tick_and_one_is_none(self):
        seen = tried_of(
            {
                watts(f"gpu:{n}"): lambda t, n=n: float(sum(t >= 0.9 + 0.5 * k for k in range(n)))
                for n in (1, 2, 3)
            }
        )
        assert math.isnan(seen["gpu:1 power_w"].tick_s)
        assert seen["gpu:2 power_w"].tick_s == pytest.approx(1.0)
        assert seen["gpu:3 power_w"].tick_s == pytest.approx(2.0 / 3)

    def test_a_channel_that_answers_now_and_then_or_never(self):
        seen = tried_of(
            {
                watts("gpu:0"): lambda t: 5.0 if t >= 2.0 else math.nan,
                watts("gpu:1"): lambda t: math.nan,
            }
        )
        assert seen["gpu:0 power_w"].answers == 51
        assert 201 <= seen["gpu:0 power_w"].asked == seen["gpu:1 power_w"].asked <= 203
        silent = seen["gpu:1 power_w"]
        assert silent.answers == 0
        assert all(map(math.isnan, (silent.rate, silent.noise, silent.tick_s)))

    def test_a_slow_meter_is_asked_at_its_own_pace(self):
        seen = checkup(
            Instruments(
                [Told("bmc", {watts("node"): lambda t: 500.0 + t}, least_s=0.5)],
                (),
                VirtualClock(0),
            ),
            2.0,
        )
        assert (seen.tried[0].asked, seen.tried[0].kind) == (5, "node")
        assert seen.tried[0].tick_s == pytest.approx(0.5)

    def test_an_answer_at_one_edge_has_no_length(self):
        one = tried_of({watts("gpu:0"): lambda t: 5.0 if abs(t - 1.0) < 1e-6 else math.nan})[
            "gpu:0 power_w"
        ]
        assert (one.answers, math.isnan(one.tick_s)) == (1, True)


def test_a_meters_time_is_what_it_adds_to_a_tick():
    def took(*milliseconds):
        return Series(
            np.arange(len(milliseconds), dtype=float),
            np.zeros(len(milliseconds)),
            np.array(milliseconds) / 1000.0,
        )

    ended_s: dict[float, float] = {}
    assert job._own_time(took(2, 2, 9), ended_s) == pytest.approx(0.002)
    assert job._own_time(took(3, 4, 9.5), ended_s) == pytest.approx(0.001)
    # not asked at the first tick, and quicker than the clock tells at the last
    later = Series(np.array([1.0, 2.0, 3.0]), np.zeros(3), np.array([0.010, 0.009, 0.007]))
    assert job._own_time(later, ended_s) == pytest.approx(0.006)
    assert math.isnan(job._own_time(took(), {}))
    assert job._own_time(took(1, 1, 1), {0.0: 0.002, 1.0: 0.003}) == 0.0, "no time is negative"


def test_time_of_two_meters_from_the_recording(monkeypatch):
    class Slow(Told):
        def read(self, t_ns):
            self.clock.set(self.clock.now_ns() + self.takes_ns)
            return super().read(t_ns)

    clock = VirtualClock(0)
    meters = [
        Slow("one", {watts("gpu:0"): lambda t: t}),
        Slow("two", {watts("cpu:0"): lambda t: t, watts("cpu:1"): lambda t: t}),
    ]
    for meter, takes_ns in zip(meters, (1_000_000, 3_000_000), strict=True):
        meter.clock, meter.takes_ns = clock, takes_ns
    seen = checkup(Instruments(meters, (), clock), 1.0)
    assert [one.took_s for one in seen.tried] == pytest.approx([0.001, 0.003, 0.003])


# ---- kinds ------------------------------------------------------------------------------------


def test_each_domain_belongs_to_a_kind_that_users_ask_for():
    assert set(OF_DOMAIN.values()) == {*KINDS, "self"}
    seen = {
        "gpu:0": "gpu",
        "module:0": "gpu",
        "cpu:0": "cpu",
        "core:0": "cpu",
        "uncore:0": "cpu",
        "dram:0": "dram",
        "psys:0": "node",
        "node": "node",
        "drive:nvme0": "storage",
        "disk:sda": "storage",
        "mount:/a": "storage",
        "process:1": "storage",
        "cgroup:/x": "storage",
        "host": "storage",
        "gds:0": "storage",
    }
    assert {name: OF_DOMAIN[name.split(":")[0]] for name in seen} == seen


def test_what_measures_a_kind():
    says = {
        energy("gpu:0", "NVML"): at(1.0),
        watts("gpu:0", "mean", role="detail"): at(1.0),
        watts("node", "DCMI", role="whole"): at(1.0),
        energy("core:0", "RAPL", role="detail"): at(1.0),
        Channel("disk:sda", "written_bytes", "diskstats"): at(1.0),
        Channel("disk:sda1", "written_bytes", "d", role="detail"): at(1.0),
        Channel("disk:sdb", "written_bytes", "diskstats"): lambda t: math.nan,
        Channel("disk:sdc", "writes", "diskstats"): at(1.0),
    }
    energies = Energies(recorded(Told("told", says), for_s=1.0).run.node())
    assert means_of(energies) == {
        "gpu": ["gpu:0 (NVML)"],
        "cpu": [],
        "dram": [],
        "storage": ["disk:sda (diskstats)"],
        "node": ["node (DCMI)"],
    }
    assert lacking_of(energies, ["gpu", "dram", "cpu"]) == ["dram", "cpu"]
    assert lacking_of(energies, []) == []
    with pytest.raises(InputError, match=r"'gqu'.*known: gpu, cpu"):
        lacking_of(energies, ["gqu"])


def test_of_no_meter_nothing_is_measured_and_all_is_lacking():
    gone = Absence("nvml", "no driver", "install it", "gpu")
    seen = checkup(Instruments([], [gone], VirtualClock(0)))
    assert (seen.tried, seen.absences, seen.measured_by) == (
        (),
        [gone],
        {kind: [] for kind in KINDS},
    )
    assert missing_kinds(seen, ["gpu", "node"]) == ["gpu", "node"]
    assert math.isnan(seen.own_cpu)


def test_what_asking_took_is_a_share_of_one_core(monkeypatch):
    def busy(*args, **more):
        seen = record(*args, **more)
        return seen._replace(stats=seen.stats._replace(cpu_s=0.6))

    monkeypatch.setattr(job, "record", busy)
    seen = checkup(
        Instruments([Told("told", {watts("gpu:0"): lambda t: 1.0})], (), VirtualClock(0)), 2.0
    )
    assert seen.own_cpu == pytest.approx(0.6 / 3.0)
    assert not seen.simulated


# ---- the same counters by pyRAPL --------------------------------------------------------------


class Beside(Basic):
    """Grows by so many joules a reading."""

    def __init__(self, step_j, error=None, **more):
        super().__init__("rapl", (energy("cpu:0"),), **more)
        self.step_j, self.error, self.value, self.closed = step_j, error, 100.0, 0

    def read(self, t_ns):
        if self.error:
            raise self.error
        self.value += self.step_j
        return [self.value]

    def close(self):
        self.closed += 1


@pytest.fixture
def beside(monkeypatch):
    monkeypatch.setattr(job.time, "sleep", lambda _: None)

    def install(*meters, absences=()):
        monkeypatch.setattr(
            rapl,
            "find",
            lambda backend: (
                FoundMeters(meters, absences) if backend == "pyrapl" else pytest.fail("another")
            ),
        )

    return install


def cross(*meters):
    return job._cross(Instruments(meters, (), VirtualClock(0)))


def test_both_grow_and_are_held_against_each_other(beside):
    beside(theirs := Beside(7.0))
    found, why = cross(ours := Beside(5.0))
    assert why == ""
    assert found == [("cpu:0", 4 * 5.0, 4 * 7.0, 5 * 2.0)]
    assert (ours.closed, theirs.closed) == (0, 1), "ours is still to be tried"


def test_without_two_readers_there_is_no_cross_check(beside):
    beside()
    assert cross(Told("nvml", {energy("gpu:0"): at(1.0)})) == ([], "no RAPL meter")
    assert cross(Beside(1.0, simulated=True)) == ([], "no RAPL meter")
    assert cross(Beside(1.0, facts={"backend": "pyrapl"})) == ([], "pyRAPL is the meter itself")
    assert cross(Beside(1.0)) == ([], "pyRAPL finds nothing")
    beside(
        absences=[
            Absence("rapl", "no pyRAPL"),
            Absence("rapl", "no pyRAPL"),
            Absence("rapl", "not root"),
        ]
    )
    assert cross(Beside(1.0)) == ([], "no pyRAPL; not root")


def test_a_reader_that_fails_says_why_and_is_closed(beside):
    beside(theirs := Beside(1.0, MeterLost("the counter is gone", "")))
    assert cross(Beside(1.0)) == ([], "the counter is gone")
    assert theirs.closed == 1


# ---- as tables --------------------------------------------------------------------------------


def study_of(*meters, seconds=1.0, absences=(), **more):
    seen = checkup(Instruments(meters, absences, VirtualClock(0)), seconds)
    return report.study_of(seen._replace(**more))


def table(study, name):
    return next(one for one in study.tables if one.id == name)


def test_a_channels_row_says_what_was_seen_and_what_is_published():
    channel = watts(
        "gpu:0",
        "field 186",
        tick_s=0.1,
        averaging_s=1.0,
        looks=0.25,
        accuracy=0.05,
        device="GPU-a",
        scope="gpu",
        note="n",
    )
    study = study_of(
        Told("nvml", {channel: lambda t: 100.0 + 10.0 * (int(t * 5) % 2) if t < 1.3 else math.nan})
    )
    (row,) = table(study, "channels").rows
    assert row["rate"] == pytest.approx(105.0, rel=0.05)
    assert row["noise"] == pytest.approx(5.0, rel=0.1)
    assert row["tick"] == pytest.approx(0.2, rel=0.1)
    assert 80.0 <= row["answers"] <= 82.0
    assert 101.0 <= row["asked"] <= 103.0
    published = (
        "meter",
        "kind",
        "unit",
        "source",
        "published_tick",
        "averaging",
        "looks",
        "accuracy",
        "device",
        "scope",
        "note",
        "role",
    )
    assert [row[key] for key in published] == [
        "nvml",
        "gpu",
        "W",
        "field 186",
        0.1,
        1.0,
        0.25,
        0.05,
        "GPU-a",
        "gpu",
        "n",
        "part",
    ]


def test_units_are_of_a_gauge_and_of_a_counters_growth():
    units = {
        "energy_j": "W",
        "power_w": "W",
        "written_bytes": "bytes_per_s",
        "dirty_bytes": "bytes",
        "busy_s": "share",
        "queue_s": "1",
        "in_flight": "1",
        "writes": "1/s",
        "temperature_c": "C",
        "utilisation": "share",
        "cpu_s": "share",
    }
    assert {quantity: report.unit_of(quantity) for quantity in units} == units


def test_channels_of_a_kind_are_one_line_where_there_are_many():
    def cards(count):
        return Told(
            "nvml",
            {
                make(f"gpu:{n}"): at(10.0 + 10.0 * n, 0.1)
                for make in (energy, watts)
                for n in range(count)
            },
        )

    few, many = study_of(cards(15)), study_of(cards(16))
    assert [(table(s, "channels").shown, table(s, "alike").shown) for s in (few, many)] == [
        (True, False),
        (False, True),
    ]
    counters, _ = table(many, "alike").rows
    assert (counters["domain"], counters["quantity"], counters["count"], counters["unit"]) == (
        "gpu:*",
        "energy_j",
        16.0,
        "W",
    )
    assert (counters["least"], counters["most"]) == (
        pytest.approx(10.0, rel=0.02),
        pytest.approx(160.0, rel=0.02),
    )


def test_a_line_of_several_has_the_slowest_tick_and_the_fewest_answers():
    says = {
        watts("disk:nvme0n1p2"): lambda t: float(int(t * 5)),
        watts("disk:sda"): lambda t: float(int(t * 10)) if t < 1 else math.nan,
        watts("disk:sda7"): lambda t: math.nan,
        watts("gpu:0.memory"): at(1.0),
        watts("cpu:0.die1"): at(1.0),
        watts("host"): at(1.0),
    }
    rows = {row["domain"]: row for row in table(study_of(Told("told", says)), "alike").rows}
    assert set(rows) == {"disk:*", "disk:sda", "gpu:*.memory", "cpu:*.die1", "host"}
    both = rows["disk:*"]
    assert (both["count"], both["answers"]) == (2.0, 0.0)
    assert both["asked"] >= 101.0
    assert both["tick"] == pytest.approx(0.2, rel=0.1)
    assert both["least"] == both["most"]
    (cards,) = table(
        study_of(Told("told", {watts(f"gpu:{n}"): at(1.0, 0.1 * (1 + n)) for n in (0, 1)})), "alike"
    ).rows
    assert cards["tick"] == pytest.approx(0.2, rel=0.1)


GONE = [
    Absence("nvml gpu:1", "fell off the bus", "reset it", "gpu"),
    Absence("nvml gpu:2", "fell off the bus", "reset it", "gpu"),
    Absence("ipmi", "not asked for", "--meters ipmi", "node"),
]


def test_kinds_come_first_with_what_is_missing_of_each():
    study = study_of(
        Told("nvml", {energy(f"gpu:{n}", "NVML"): at(1.0) for n in range(9)}), absences=GONE
    )
    said = study.findings
    assert said[0] == "GPUs: measured by gpu:0, gpu:1, gpu:2, gpu:3, gpu:4, gpu:5 and 3 more."
    assert said[1:3] == [absence_text(a.what, a.reason, a.remedy) for a in GONE[:2]]
    assert said[3] == "Processors: not measured."
    kinds = {row["kind"]: row for row in table(study, "kinds").rows}
    assert list(kinds) == list(KINDS)
    assert (kinds["gpu"]["measured"], kinds["gpu"]["reasons"]) == (True, "fell off the bus")
    assert (kinds["node"]["measured"], kinds["node"]["by"], kinds["node"]["reasons"]) == (
        False,
        "",
        "not asked for",
    )
    assert kinds["gpu"]["by"].startswith("gpu:0 (NVML); gpu:1 (NVML)")
    assert [row["what"] for row in table(study, "absences").rows] == [a.what for a in GONE]
    assert "cross" not in {one.id for one in study.tables}


def test_what_is_said_of_pyrapl_and_of_the_cost_of_asking():
    meter = Told("nvml", {energy("gpu:0"): at(1.0)})
    seen = study_of(meter, own_cpu=0.034, cross_why="no pyRAPL")
    assert "No cross-check with pyRAPL: no pyRAPL." in seen.findings
    assert any("3.4 %" in line for line in seen.findings)
    assert not any(
        "pyRAPL" in line for line in study_of(meter, cross_why="no pyRAPL", simulated=True).findings
    )
    found = [
        rapl.CounterDifference("cpu:0", 20.0, 28.0, 2.0),
        rapl.CounterDifference("cpu:1", 20.0, math.nan, math.nan),
    ]
    compared = study_of(meter, cross=found, cross_why="")
    assert [tuple(row.values()) for row in table(compared, "cross").rows] == [
        ("cpu:0", 20.0, 28.0, 2.0),
        ("cpu:1", 20.0, None, None),
    ]
    assert not any("pyRAPL" in line for line in compared.findings)
    nothing = study_of(absences=GONE)
    assert nothing.about == ["No meter answers, so none was tried."]
    assert not any("of one core" in line for line in nothing.findings)


def test_a_counter_of_joules_that_never_moves_measures_nothing_and_says_why():
    says = {
        energy("psys:0", "RAPL", role="whole"): lambda t: 5.0,
        energy("cpu:0", "RAPL"): at(90.0),
    }
    seen = checkup(Instruments([Told("told", says)], (), VirtualClock(0)), 1.0)
    assert seen.measured_by["node"] == []
    assert seen.measured_by["cpu"] == ["cpu:0 (RAPL)"]
    assert missing_kinds(seen, ["node", "cpu"]) == ["node"]
    (why,) = [absence for absence in seen.absences if absence.kind == "node"]
    assert (why.what, why.reason) == ("psys:0", "RAPL answers, and its joules did not move in 1 s")
    assert "measure on the host" in why.remedy
