"""`fits` and `lead`: what is read of a file system, how runs and ranges become seconds, and the
exit codes."""

from __future__ import annotations

import json
import math
import struct
from types import SimpleNamespace

import numpy as np
import pytest

import ckptcost
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.cli.main import main
from ckptcost.first.core.cautions import Caution, cautions_of
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.errors import InputError
from ckptcost.first.jobs import lead, room
from ckptcost.first.jobs.model import case_of
from ckptcost.first.layers import layers_for
from ckptcost.first.present.words import caution_text
from ckptcost.first.report.studies.lead import study_of
from ckptcost.first.scenario import resolve

LFS_DF = """\
UUID                   1K-blocks        Used   Available Use% Mounted on
fs-MDT0000_UUID        137522176     2543212   134976916   2% /fsx[MDT:0]
fs-OST0000_UUID       1180906144   949056444   231847652  81% /fsx[OST:0]
fs-OST0001_UUID       1180906144  1180904096           0 100% /fsx[OST:1]
OST0002             : inactive device

filesystem_summary:   2361812288  2129960540   231847652  91% /fsx
"""


def test_targets_of_lfs_df():
    targets = room.targets_in(LFS_DF)
    assert [each.name for each in targets] == ["fs-OST0000", "fs-OST0001", "OST0002"]
    assert targets[0].free_bytes == 231847652 * 1024
    assert targets[1].free_bytes == 0.0
    assert math.isnan(targets[2].free_bytes)
    assert room.targets_in("lfs df: cannot find anything\n") == []


def test_a_quota_leaves_what_its_nearer_limit_leaves():
    def answer(hard, soft, now, hard_files=0, soft_files=0, files=0):
        return struct.pack("=8QI4x", hard, soft, now, hard_files, soft_files, files, 0, 0, 63)

    assert room.quota_limit("q", answer(0, 0, 99)) is None
    assert room.quota_limit("q", answer(2000, 1000, 24_000)).bytes_ == 1_000_000.0
    assert room.quota_limit("q", answer(1000, 0, 9_000_000)).bytes_ == 0.0
    only_files = room.quota_limit("q", answer(0, 0, 0, 100, 0, 40))
    assert math.isnan(only_files.bytes_)
    assert only_files.files == 60.0


def test_a_folder_that_has_no_room(tmp_path, capsys):
    words = ["fits", str(tmp_path), "-s", "llama31-405b-16k", "--set", "checkpoint.size=1000 PB"]
    assert main(words) == 3
    assert "It does not fit" in capsys.readouterr().out


def test_a_full_target_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(room, "_targets_of", lambda _: (room.targets_in(LFS_DF), []))
    words = ["fits", str(tmp_path), "-s", "llama31-405b-16k", "--set", "checkpoint.size=1 kB"]
    assert main(words) == 3
    assert "the fullest target forbids it" in " ".join(capsys.readouterr().out.split())


def test_what_fits_and_how_many_would(tmp_path, monkeypatch, capsys):
    (tmp_path / "old").write_bytes(b"x" * 8192)
    space = SimpleNamespace(
        f_bavail=1000, f_bfree=1100, f_frsize=10**9, f_favail=10**9, f_files=10**9
    )
    monkeypatch.setattr(room.os, "statvfs", lambda _: space)
    monkeypatch.setattr(room, "quotas_of", lambda _: [room.Limit("your quota", 45e9, 1e9)])
    words = ["fits", str(tmp_path), "-s", "llama31-405b-16k", "--set", "checkpoint.size=10 GB"]
    assert main([*words, "--set", "policy.keep_last=3", "-f", "json"]) == 0
    question = json.loads(capsys.readouterr().out)["question"]
    assert question["needed_bytes"] == 40e9
    assert question["most_kept"] == 3
    assert main([*words, "--set", "policy.keep_last=4"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "With policy.keep_last = 3 it fits" in out
    assert "100 GB are free for the administrator alone" in out
    assert main([*words, "--set", "policy.keep_last=all"]) == 3


def test_all_saves_of_a_run_are_what_the_run_makes(tmp_path, capsys):
    """None is kept twice: neither the one being written nor the chain of the oldest."""
    words = ["fits", str(tmp_path), "-s", "small-8b", "--set", "policy.keep_last=all"]
    words += ["--set", "checkpoint.size=1 MB", "--set", "policy.saves=7"]
    more = ["--set", "checkpoint.full_every=4", "--set", "checkpoint.delta_fraction=10 %"]
    for changes, needed in ((), 7e6), (more, 2 * 1e6 + 5 * 1e5):
        assert main([*words, *changes, "-f", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["question"]["needed_bytes"] == needed
        assert "7 saves of the run, all kept" in told["about"][0]


def test_how_many_saves_cannot_be_said_without_an_interval(tmp_path, capsys):
    unpowered = tmp_path / "job.toml"
    unpowered.write_text(
        '[checkpoint]\nsize = "1 GB"\n[tier]\nwrite = "1 GB/s"\nread = "1 GB/s"\n[cluster]\n'
        'gpus = 8\n[run]\nwork = "1 h"\n[failures]\nmtbf = "6 h"\n[policy]\noptimal = "energy"\n'
        'keep_last = "all"\n'
    )
    assert main(["fits", str(tmp_path), "-s", str(unpowered)]) == 2
    assert "the best interval for energy cannot be computed" in capsys.readouterr().err


def test_a_folder_that_is_not_there(capsys):
    assert main(["fits", "/no/such/folder", "-s", "llama31-405b-16k"]) == 2


def test_fits_in_python(tmp_path):
    found = ckptcost.fits(tmp_path, "llama31-405b-16k", changes={"checkpoint.size": "1000 PB"})
    assert found.question["fits"] is False


def test_lead_holds_the_step_the_save_and_the_drain():
    plain = ckptcost.lead("llama31-405b-16k")
    step = ckptcost.lead("llama31-405b-16k", changes={"policy.step": "20 s"})
    rows, later = plain.tables["lead"].rows, step.tables["lead"].rows
    assert later[0]["time"] - rows[0]["time"] == pytest.approx(20.0)
    assert rows[1]["time"] > rows[0]["time"]


def test_lead_of_the_command(capsys):
    assert main(["lead", "-s", "llama31-405b-16k", "--set", "policy.step=20 s"]) == 0
    out = capsys.readouterr().out
    assert "--signal=USR1@" in out
    assert "--signal=B:USR1@" in out
    assert main(["lead", "last", "-s", "llama31-405b-16k"]) == 2


def run_of(*lengths_s: float | None, steps_s: tuple[float, ...] = ()) -> SimpleNamespace:
    windows = [
        SimpleNamespace(begin_s=100.0, durable_s=None if each is None else 100.0 + each)
        for each in lengths_s
    ]
    steps = SimpleNamespace(split=SimpleNamespace(quiet_s=np.array(steps_s))) if steps_s else None
    return SimpleNamespace(windows=windows, steps=steps)


def test_lead_of_a_run_says_what_few_saves_can_say():
    found = lead.of_run(run_of(10.0, 12.0, None, 11.0, 40.0, 9.0, 13.0, steps_s=(2.0, 3.0)))
    assert found.saves == 6
    assert found.p99_s == 43.0
    assert found.usual_s == 11.5 + 3.0
    text = " ".join(study_of(found, "run").findings)
    assert "The longest of 6 saves" in text
    assert "14.3 %" in text  # 1/(6 + 1)
    assert "USR1@43" in text
    with pytest.raises(InputError, match="no save of this run"):
        lead.of_run(run_of(None))


def test_notices_are_judged_with_the_step_or_with_a_condition():
    short = lead.Lead(10.0, 20.0, 1.0, 0)
    unknown, long = short._replace(step_s=math.nan), short._replace(p99_s=70_000.0)
    assert "(Azure and Google Cloud) are enough." in " ".join(study_of(short, "x").findings)
    assert "if a step takes no longer than 10 s" in " ".join(study_of(unknown, "x").findings)
    assert [code for code, _ in study_of(unknown, "x").warnings] == ["STEP_UNKNOWN"]
    said = " ".join(study_of(long, "x").findings)
    assert "(AWS) are not enough" in said
    assert "--signal=USR1" not in said  # longer than Slurm takes


@pytest.mark.parametrize(("write", "holds"), [("30 GB/s", False), ("5 GB/s", True)])
def test_a_blocking_save_near_the_collective_timeout(write, holds):

    settings = ["checkpoint.size=3 TB", f"tier.write={write}"]
    s = resolve(Catalog(), layers_for(Catalog(), "llama31-405b-16k", None, settings)).scenario
    found = {each.code: bool(each.holds) for each in cautions_of(s, evaluate(s))}
    assert found["COLLECTIVE_TIMEOUT"] is holds


def test_the_slowest_save_of_a_hundred_is_held_against_the_timeout():
    """290 s of writing and a set-up of 5 s (1 to 30 s): near the timeout of 300 s in some draws
    only."""

    def found(seconds, ranges, *settings):
        rate = f"tier.write={3e12 / seconds} B/s"
        said = ["checkpoint.size=3 TB", rate, *settings]
        resolved = resolve(Catalog(), layers_for(Catalog(), "llama31-405b-16k", None, said))
        held = case_of(resolved, ranges, intervals=False).cautions
        return next((each for each in held if each.code == "COLLECTIVE_TIMEOUT"), None)

    assert found(290.0, False) is None
    assert found(290.0, True, "tier.setup=5 s") is None
    slow = found(290.0, True)
    assert slow.value == pytest.approx(295.0)
    assert 300.0 < slow.slow < 320.0
    assert "A save may block for" in caution_text(slow)
    assert "99 of 100 draws stay below" in caution_text(slow)
    steady = found(400.0, True)
    assert steady.value == pytest.approx(405.0)
    assert caution_text(steady).startswith("A save blocks for 405 s;")


def test_the_timeout_is_long_enough_for_the_slowest_whatever_the_usual_save_takes():
    def advised(usual_s):
        text = caution_text(Caution("COLLECTIVE_TIMEOUT", True, usual_s, 300.0, 2350.0))
        return int(text.partition("seconds=")[2].partition(")")[0]), text

    below, above = advised(280.0), advised(318.0)
    assert below[0] == above[0] == 7200
    assert "may block for 2,350 s" in below[1]
    assert "blocks for 318 s, the slowest of a hundred draws for 2,350 s" in above[1]


def test_draws_without_a_number_say_nothing_of_the_timeout():
    from ckptcost.first.core.cautions import _collective_timeout

    def found(*drawn_s, stall_s=100.0):
        outcome, spread = (
            SimpleNamespace(cycle=SimpleNamespace(stall_s=each))
            for each in (stall_s, np.array(drawn_s))
        )
        return _collective_timeout(outcome, spread)

    assert bool(found(math.nan, 400.0, 410.0).holds)
    assert not bool(found(math.nan, math.nan).holds)
    assert bool(found(100.0, math.inf).holds)
    assert bool(found(math.nan, stall_s=400.0).holds)
