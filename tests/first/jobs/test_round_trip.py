"""There and back: storage of a known rate and fixed time is probed, calibrated, and modelled; the
model says what it takes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ckptcost.first.jobs import probe as module
from ckptcost.first.meters import simulated_machine
from ckptcost.first.meters.simulated_machine import Machine, MachinePlan

RATE, FIXED_S = 4e9, 0.75
SIZE = 100e9


class Storage:
    """A machine whose storage takes so many bytes a second and so much time whatever the size,
    under the plan's own power."""

    def __init__(self, monkeypatch, **more):
        self.given, self.plans = MachinePlan(gpus=2, packages=1, disks=1, **more), []
        moving_s = self.given.checkpoint_bytes / RATE
        self.given = replace(
            self.given,
            snapshot_s=0.0,
            write_s=0.4 * moving_s,
            fsync_s=0.6 * moving_s,
            commit_s=FIXED_S,
            interval_s=120.0,
        )
        monkeypatch.setattr(simulated_machine, "MachinePlan", lambda: self.given)
        really = module.replace

        def kept(given, **changes):
            made = really(given, **changes)
            if isinstance(made, MachinePlan):
                self.plans.append(made)
            return made

        monkeypatch.setattr(module, "replace", kept)


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))


def said(cli, *words):
    done = cli(*words, "-f", "json")
    assert done.code == 0, done
    return json.loads(done.out)


def test_the_model_says_what_was_probed(cli, tmp_path, monkeypatch):
    storage = Storage(monkeypatch, variation=0.0)
    probed = said(
        cli,
        "probe",
        str(tmp_path),
        "--meters",
        "simulated",
        "--size",
        "100 GB",
        "--rounds",
        "2",
        "-q",
    )
    passes = {(row["bytes"], row["of"]): row for row in probed["tables"]["rates"]["rows"]}
    assert set(passes) == {(SIZE, "save"), (SIZE / 4, "save")}
    for (size, _), row in passes.items():
        assert row["seconds"] == pytest.approx(FIXED_S + size / RATE, rel=1e-6)
        assert row["rounds"] == 2
    calibrated = said(cli, "calibrate", probed["question"]["run"], "--as", "there-and-back")
    parameters = {row["id"]: row["value"] for row in calibrated["tables"]["parameters"]["rows"]}
    assert (parameters["write"], parameters["setup"]) == pytest.approx((RATE, FIXED_S), rel=0.02)

    (plan,) = storage.plans
    machine = Machine(plan)
    at = plan.offsets(plan.factor(0), plan.share(0))
    stalled = [
        machine.exact_j(f"gpu:{n}", plan.first_s + 0.1, plan.first_s + at.returned_s - 0.1)
        for n in range(2)
    ]
    stall_w = sum(stalled) / 2 / (at.returned_s - 0.2)
    assert parameters["gpu_stall"] == pytest.approx(stall_w, rel=0.02)

    for size in (10e9, SIZE, 400e9):  # one that lies between, one that was probed, one beyond
        words = [
            "--tier",
            "there-and-back",
            "--set",
            "cluster.id=there-and-back",
            "--set",
            f"checkpoint.size={size:.0f} B",
        ]
        model = said(cli, "model", *words, "--set", "cluster.gpus=2")
        stalls = [case["stall_s"] for case in model["tables"]["cases"]["rows"]]
        assert stalls == pytest.approx([FIXED_S + size / RATE] * len(stalls), rel=0.02)
        factors = {factor["id"]: factor for factor in model["statements"][0]["factors"]}
        assert factors["cluster.gpu_stall"]["value"] == pytest.approx(stall_w, rel=0.02)
        assert factors["cluster.gpu_stall"]["set_by"] == "cluster there-and-back"


def test_with_saves_that_scatter_the_truth_lies_in_the_interval(cli, tmp_path, monkeypatch):
    Storage(monkeypatch, variation=0.02)
    probed = said(
        cli,
        "probe",
        str(tmp_path),
        "--meters",
        "simulated",
        "--size",
        "100 GB",
        "--rounds",
        "4",
        "-q",
    )
    calibrated = said(cli, "calibrate", probed["question"]["run"], "--as", "scattered")
    parameters = {row["id"]: row for row in calibrated["tables"]["parameters"]["rows"]}
    for name, value in (("write", RATE), ("setup", FIXED_S)):
        assert parameters[name]["low"] <= value <= parameters[name]["high"]
    assert parameters["write"]["value"] == pytest.approx(RATE, rel=0.02)
