"""What went wrong on somebody's machine once: partial sums, full disks, unreadable baselines, names
that do not answer."""

from __future__ import annotations

import json
import os

import pytest
from told_meters import Told, at, energy, evaluated

from ckptcost.first.report.studies.measure import study_of
from ckptcost.first.runs.recorder import RecorderStats


def test_a_sum_of_part_of_the_time_says_so():
    seen = evaluated(
        Told(
            "told",
            {
                energy("gpu:0", tick_s=0.001): lambda t_s: (
                    300.0 * t_s if t_s < 8.0 else 300.0 * (t_s - 8.0)
                )
            },
        )
    )
    study = study_of(seen)
    assert "of the time" in study.findings[0]
    assert "GAPS" in dict(study.warnings)
    whole = study_of(evaluated(Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)})))
    assert "of the time" not in whole.findings[0]
    assert "GAPS" not in dict(whole.warnings)


def test_what_did_not_reach_the_disk_is_said():
    seen = evaluated(Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)}))
    lost = seen._replace(stats=RecorderStats(1, 0, 0.0, 0, 0.1, "No space left on device"))
    assert "No space left" in dict(study_of(lost).warnings)["NOT_RECORDED"]
    assert "NOT_RECORDED" not in dict(study_of(seen).warnings)


@pytest.mark.parametrize("content", ["{", '{"format": "other"}'])
def test_a_baseline_that_cannot_be_read_costs_no_measurement(cli, tmp_path, monkeypatch, content):
    from ckptcost.first.runs.baselines import file_of

    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    file_of().parent.mkdir(parents=True)
    file_of().write_text(content)
    done = cli("measure", "--meters", "pressure", "--for", "0.2 s", "-f", "json")
    assert done.code == 0
    assert (
        "cannot be read"
        in {w["code"]: w["message"] for w in json.loads(done.out)["warnings"]}["NO_BASELINE"]
    )


def test_what_was_named_and_does_not_answer_is_said(cli):
    done = cli("measure", "--meters", "pressure,gds", "--for", "0.2 s", "-f", "json")
    assert "gds" in {w["code"]: w["message"] for w in json.loads(done.out)["warnings"]}["NOT_THERE"]


def test_a_full_disk_ends_with_four(cli, tmp_path, monkeypatch):
    from ckptcost.first.runs.writer import Writer

    def full(self, *words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Writer, "sync", full)
    done = cli(
        "measure", "--meters", "pressure", "--for", "1.5 s", "--record", str(tmp_path / "run")
    )
    assert done.code == 4
    assert "No space left" in done.err


def test_flags_are_judged_before_the_time_is_spent(cli):
    for words in (("--table", "windows"), ("--need", "gqu"), ("--record", "")):
        done = cli("measure", "--meters", "pressure", "--for", "20 s", *words)
        assert done.code == 2


def test_a_pipe_is_no_run_and_is_not_waited_for(cli, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = cli("measure", "--meters", f"replay:{tmp_path / 'pipe'}")
    assert done.code == 2
    assert "neither a folder nor a file" in done.err
