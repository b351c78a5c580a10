"""Idle power: what is learned, what is refused, what is written, and what a file may say."""

from __future__ import annotations

import json
import math
import os

import pytest
from told_meters import Told, at, energy, evaluated, watts

from ckptcost.first.catalog.files import overlay
from ckptcost.first.core.attribution import Baseline
from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import CkptcostError, MeterUnavailable, OutputError, RunFileError
from ckptcost.first.jobs import measure as job
from ckptcost.first.jobs.measure import learn, watts_of
from ckptcost.first.meters.found import Wanted
from ckptcost.first.runs import baselines
from ckptcost.first.runs.baselines import Idle

TICK = {"tick_s": 0.001}
NEAR = {"rel": 2e-3}
BUSY = Channel("gpu:0", "utilisation", "told")


# ---- what is learned --------------------------------------------------------------------------


def test_busy_is_a_mean_over_time_not_over_readings():
    """Quick readings near the edges are many and say 0; the twenty-six seconds between say 10 %."""
    busy = Told(
        "told", {energy("gpu:0", **TICK): at(300.0), BUSY: lambda t_s: 0.0 if t_s < 4.0 else 0.1}
    )
    assert job._busy(evaluated(busy, for_s=30.0)) == ["gpu:0 at 9 %"]


class TestWattsOf:
    def test_mean_and_the_spread_of_whole_seconds(self):
        def joules(t_s):  # 50 W and 150 W in turn, ten seconds each
            pairs, rest = divmod(t_s - 0.5, 20.0)
            return (
                10_000.0
                + 2000.0 * pairs
                + (50.0 * rest if rest < 10.0 else 500.0 + 150.0 * (rest - 10.0))
            )

        seen = evaluated(
            Told("told", {energy("gpu:0", **TICK): joules}, facts={"driver": "590"}), for_s=80.0
        )
        found = watts_of(seen, 77.0)["gpu:0"]
        assert found.power_w == pytest.approx(100.0, rel=0.01)
        assert found.low_w == pytest.approx(50.0, rel=0.02)
        assert found.high_w == pytest.approx(150.0, rel=0.02)
        assert (found.taken_s, found.host, found.driver) == (77.0, seen.energies.node.host, "590")

    def test_the_means_own_range_counts_where_it_is_wider(self):
        seen = evaluated(Told("told", {energy("gpu:0", resolution=400.0, **TICK): at(100.0)}))
        found, span = watts_of(seen, 0.0)["gpu:0"], seen.spans["gpu:0"]
        assert found.low_w == pytest.approx(span.low / 20.0)
        assert found.high_w == pytest.approx(span.high / 20.0)
        assert found.high_w - found.low_w >= 20.0

    def test_a_rare_second_does_not_count(self):
        seen = evaluated(
            Told(
                "told",
                {
                    energy("gpu:0", **TICK): lambda t: (
                        100.0 * t + 900.0 * min(max(t - 9.5, 0.0), 1.0)
                    )
                },
            ),
            for_s=60.0,
        )
        assert watts_of(seen, 0.0)["gpu:0"].high_w < 200.0

    def test_what_is_not_known_has_none(self):
        silent = Told(
            "told",
            {
                energy("gpu:0"): lambda t: math.nan if t > 0.4 else 5.0,
                energy("cpu:0", **TICK): at(9.0),
            },
        )
        seen = evaluated(silent)
        assert set(watts_of(seen, 0.0)) == {"cpu:0"}
        assert watts_of(seen._replace(end_s=seen.begin_s), 0.0) == {}

    def test_less_than_a_second_has_the_range_of_its_mean(self):
        seen = evaluated(Told("told", {energy("cpu:0", **TICK): at(9.0)}), for_s=0.5)
        found = watts_of(seen, 0.0)["cpu:0"]
        assert found.power_w == pytest.approx(9.0, rel=0.01)
        assert found.low_w <= found.power_w <= found.high_w


# ---- learning ---------------------------------------------------------------------------------


def learned_of(monkeypatch, says, simulated=False, **more):
    seen = evaluated(Told("told", says, simulated=simulated, facts={"driver": "590"}))
    monkeypatch.setattr(job, "measure", lambda *_, **__: seen)
    return learn("told", Wanted(), 20.0, **more)


def test_an_idle_machine_is_learned_and_found_again(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    monkeypatch.setattr(job.time, "time_ns", lambda: 1_795_219_200_000_000_000)
    learned = learned_of(
        monkeypatch,
        {
            energy("gpu:0", **TICK): at(70.0),
            energy("cpu:0", **TICK): at(40.0),
            BUSY: lambda t: 0.04,
        },
    )
    assert learned.busy == []
    assert learned.file == baselines.file_of(learned.idle.host)
    assert baselines.load(learned.file).domains == {
        name: b._replace(taken_s=1_795_219_200.0) for name, b in learned.idle.domains.items()
    }
    assert learned.idle.taken == "2026-11-21T00:00:00.000Z"
    assert learned.idle.seconds == pytest.approx(20.0)
    assert learned.idle.drivers == {"gpu": "590", "cpu": "590"}
    assert {name: round(b.power_w) for name, b in learned.idle.domains.items()} == {
        "gpu:0": 70,
        "cpu:0": 40,
    }
    # on the clock of the run, which says when that was
    assert learned.idle.domains["gpu:0"].taken_s == pytest.approx(1_767_225_600.0 + 20.5)
    assert (learned.idle.domains["gpu:0"].host, learned.idle.domains["gpu:0"].driver) == (
        learned.idle.host,
        "590",
    )


def test_of_a_simulated_machine_nothing_is_kept_and_the_date_is_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    learned = learned_of(monkeypatch, {energy("gpu:0", **TICK): at(70.0)}, simulated=True)
    assert (learned.file, learned.idle.simulated) == (None, True)
    assert learned.idle.taken == "2026-01-01T00:00:20.500Z"
    assert not overlay().exists() or list(overlay().iterdir()) == []


@pytest.mark.parametrize(
    ("share", "busy"), [(0.03, []), (0.051, ["gpu:0 at 5 %"]), (0.876, ["gpu:0 at 88 %"])]
)
def test_idle_is_at_most_a_twentieth_of_the_time(monkeypatch, tmp_path, share, busy):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))

    def utilisation(t_s):  # readings without an answer are none, nor are those of the margins
        return (
            1.0
            if not 0.5 <= t_s <= 20.5 or (15.0 <= t_s < 15.1 and not busy)
            else math.nan
            if 9.0 <= t_s < 11.0
            else share
        )

    says = {energy("gpu:0", **TICK): at(70.0), BUSY: utilisation}
    if not busy:
        assert learned_of(monkeypatch, says).busy == []
        return
    with pytest.raises(CkptcostError, match="not idle, so nothing is kept: " + busy[0]):
        learned_of(monkeypatch, says)
    assert list(tmp_path.iterdir()) == []
    learned = learned_of(monkeypatch, says, anyway=True)
    assert learned.busy == busy
    assert learned.file is not None
    assert learned.file.is_file()


def test_a_silent_card_is_not_busy(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    assert (
        learned_of(monkeypatch, {energy("gpu:0", **TICK): at(70.0), BUSY: lambda t: math.nan}).busy
        == []
    )


def test_without_a_meter_of_power_there_is_nothing_to_learn(monkeypatch):
    with pytest.raises(MeterUnavailable, match="no idle power"):
        learned_of(monkeypatch, {Channel("disk:sda", "written_bytes", "diskstats"): at(1.0)})


# ---- the file ---------------------------------------------------------------------------------

FULL = Idle(
    "h",
    "2026-11-21T00:00:00.000Z",
    30.0,
    {"gpu": "590"},
    True,
    {"gpu:0": Baseline(70.0, 69.0, 75.0)},
)


def test_a_file_says_all_that_was_learned(tmp_path):
    baselines.save(FULL, tmp_path / "h.json")
    back = baselines.load(tmp_path / "h.json")
    assert back == FULL._replace(
        domains={"gpu:0": Baseline(70.0, 69.0, 75.0, 1_795_219_200.0, "h", "590")}
    )


def test_a_driver_is_of_a_kind_of_domain(tmp_path):
    many = FULL._replace(
        drivers={"gpu": "590", "cpu:0": "x"},
        domains={d: Baseline(1.0, 1.0, 1.0) for d in ("gpu:11.memory", "cpu:0")},
    )
    baselines.save(many, tmp_path / "h.json")
    assert [b.driver for b in baselines.load(tmp_path / "h.json").domains.values()] == ["590", ""]


def test_a_node_of_many_domains_still_fits(tmp_path):
    many = FULL._replace(
        domains={f"gpu:{n}.memory": Baseline(70.0 + n, 69.0, 175.0) for n in range(100)}
    )
    baselines.save(many, tmp_path / "h.json")
    assert len(baselines.load(tmp_path / "h.json").domains) == 100


def test_each_host_has_its_file():
    assert baselines.file_of("a").name == "a.json"
    assert baselines.file_of("a").parent == baselines.file_of("b").parent == overlay() / "baselines"
    assert baselines.file_of() == baselines.file_of(baselines.host_name())


def written(tmp_path, **fields):
    file = tmp_path / "x.json"
    file.write_text(json.dumps(baselines.baseline_fields(FULL) | fields))
    return file


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"version": "2.0"}, "of version '2.0', and this ckptcost reads 1.x"),
        ({"version": "10.0"}, "of version '10.0'"),
        ({"format": "ckptcost.run"}, "is not a baseline"),
        ({"taken": "yesterday"}, "is not a baseline"),
        ({"drivers": []}, "is not a baseline"),
        (
            {"domains": {"gpu:0": {"power_w": 1.0, "low_w": -math.inf, "high_w": 2.0}}},
            "is not a baseline",
        ),
        (
            {"domains": {"gpu:0": {"power_w": 1.0, "low_w": 0.0, "high_w": math.inf}}},
            "is not a baseline",
        ),
        (
            {"domains": {"gpu:0": {"power_w": 3.0, "low_w": 0.0, "high_w": 2.0}}},
            "is not a baseline",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_what_to_do(tmp_path, fields, said):
    with pytest.raises(RunFileError) as caught:
        baselines.load(written(tmp_path, **fields))
    assert said in str(caught.value)
    assert "ckptcost measure baseline" in str(caught.value)


def test_a_later_minor_version_is_read(tmp_path):
    assert baselines.load(written(tmp_path, version="1.7", more="x")).host == "h"


def test_a_folder_in_its_place_is_a_wrong_file(tmp_path):
    (tmp_path / "x.json").mkdir()
    with pytest.raises(RunFileError, match="cannot be read"):
        baselines.load(tmp_path / "x.json")


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "x.json").mkdir()
    (tmp_path / "x.json" / "in the way").touch()
    with pytest.raises(OutputError, match="could not be written"):
        baselines.save(FULL, tmp_path / "x.json")
    assert os.listdir(tmp_path) == ["x.json"]
    with pytest.raises(ValueError, match="JSON"):
        baselines.save(FULL._replace(seconds=math.nan), tmp_path / "y.json")
    assert os.listdir(tmp_path) == ["x.json"]


def test_power_alone_is_learned_too(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    learned = learned_of(monkeypatch, {watts("node", role="whole"): lambda t: 500.0})
    assert learned.idle.domains["node"].power_w == pytest.approx(500.0, **NEAR)
