"""From a recorded run to an answer: its saves are the run's own, the interval is the model's own
sum."""

from __future__ import annotations

import json
import math

import pytest
from told_meters import Told, at, energy, evaluated

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.optimum import daly_interval_s
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.advice import AdvisedJob, SaveRhythm, advise, rhythm_of
from ckptcost.first.report.studies.advice import headline, sentences

GPUS = Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)})
RHYTHM = SaveRhythm(6, 6, 1.2e9, 4.1, 5.0, 2.0, 0, 720.0, 4344.0)


def save(window, begin_s, returned_s, durable_s=None, size_bytes=1e9):
    marks = [Mark(begin_s, "begin", window), Mark(begin_s, "written", window)]
    marks[1] = Mark(returned_s, "written", window, detail={"bytes": size_bytes})
    marks += [Mark(returned_s, "returned", window)] if returned_s else []
    return marks + ([Mark(durable_s, "durable", window)] if durable_s else [])


def job(*saves, for_s=100.0):
    return evaluated(GPUS, for_s=for_s, marks=[mark for one in saves for mark in one])


def test_what_a_run_shows_is_counted():
    found = rhythm_of(
        job(save("a", 10.0, 12.0, 13.0), save("b", 42.0, 46.0, 49.0), save("c", 86.0, 89.0))
    )
    assert (found.saves, found.with_stall, found.never_safe) == (3, 3, 1)
    assert found.bytes == pytest.approx(1e9)
    assert found.stall_s == pytest.approx(3.0)
    assert found.lag_s == pytest.approx((1.0 + 3.0) / 2)
    assert found.interval_s == pytest.approx((30.0 + 40.0) / 2)
    assert found.share == pytest.approx(9.0 / 100.0)
    assert headline(found) == "3 saves of 1 GB, 3 s of training lost at each, 9 % of the run"


def test_one_save_has_no_interval_of_its_own():
    found = rhythm_of(job(save("a", 10.0, 12.0, 13.0)))
    assert found.interval_s is None
    told = " ".join(sentences(advise(Catalog(), found, AdvisedJob(64, None, "10 h"))))
    assert "one save alone shows no interval of its own" in told
    assert "instead of" not in told


@pytest.mark.parametrize(
    ("saves", "why"),
    [
        ([], "no checkpoint was found"),
        (
            [[Mark(5.0, "begin", "a"), Mark(9.0, "end", "a", detail={"error": "gone"})]],
            "was seen to its end",
        ),
        ([[Mark(5.0, "begin", "a"), Mark(9.0, "durable", "a")]], "how long training stood still"),
        ([save("a", 10.0, 12.0, size_bytes=0.0)], "the size is known"),
    ],
)
def test_a_run_that_shows_too_little_gets_no_advice(saves, why):
    with pytest.raises(InputError, match=why):
        rhythm_of(job(*saves))


def test_the_interval_is_dalys_where_daly_holds():
    """A stall of 4.1 s and a failure each 10 h: far from where the exact interval and Daly's
    part."""
    found = advise(Catalog(), RHYTHM, AdvisedJob(64, 2.5, "10 h"))
    assert found.interval_s == pytest.approx(daly_interval_s(4.1, 36_000.0), rel=1e-3)
    assert found.gpu_s_a_save == pytest.approx(4.1 * 64)
    assert float(found.then.plan.failures_per_s) == pytest.approx(1 / 36_000.0)


def test_what_the_advised_interval_wins_is_first_order():
    """Lost for saves and for failures: C/t + t/2M, less the same at the best t."""
    found = advise(
        Catalog(), RHYTHM._replace(interval_s=7200.0, lag_s=0.0), AdvisedJob(64, 2.5, "10 h")
    )

    def lost(interval_s):
        return 4.1 / interval_s + interval_s / (2 * 36_000.0)

    won = (lost(7200.0) - lost(found.interval_s)) * 64 * 24
    assert found.gpu_h_a_day == pytest.approx(won, rel=0.1)
    assert f"{found.gpu_h_a_day:.0f}" in " ".join(sentences(found))


def test_saves_that_did_not_wait_for_those_before_do_not_wait_in_the_sum():
    """Not synced, they lie in the page cache for 33 s and the job saves each 2 s: 13 % of it is
    lost to saves, not nine tenths."""
    found = advise(
        Catalog(), RHYTHM._replace(stall_s=0.3, lag_s=33.0, interval_s=2.0), AdvisedJob(64)
    )
    assert found.now is not None
    assert float(found.now.goodput) == pytest.approx(2.0 / 2.3, abs=0.01)
    assert found.gpu_h_a_day == pytest.approx(64 * 24 * 0.3 / 2.3, rel=0.1)


def test_saves_lost_before_they_were_safe_are_told_so():
    found = rhythm_of(
        job(
            save("a", 10.0, 12.0) + [Mark(13.0, "note", "a", detail={"durable_why": "GONE"})],
            save("b", 42.0, 44.0),
            save("c", 72.0, 74.0, 75.0),
        )
    )
    assert (found.never_safe, found.lost) == (2, 1)
    told = " ".join(sentences(advise(Catalog(), found, AdvisedJob(64))))
    assert "1 of 3 saves was deleted or written over before it was safe" in told
    assert "Of 1 of 3 saves nobody knows when it was safe" in told


def seen_from_outside(window, begin_s, returned_s, gone_s):
    by = "watch"
    return [
        Mark(begin_s, "begin", window, by=by),
        Mark(returned_s, "written", window, by=by, detail={"bytes": 1e9}),
        Mark(returned_s, "returned", window, by=by),
        Mark(gone_s, "note", window, by=by, detail={"durable_why": "GONE"}),
    ]


def test_a_save_that_is_uploaded_and_removed_stalls_for_at_least_its_writing():
    sent = rhythm_of(
        job(seen_from_outside("a", 10.0, 12.0, 18.0), seen_from_outside("b", 42.0, 44.0, 50.0))
    )
    assert sent.staged == 2
    assert (
        headline(sent)
        == "2 saves of 1 GB, at least 2 s of training lost at each, at least 4 % of the run"
    )
    with pytest.raises(InputError, match="as after an upload"):
        advise(Catalog(), sent, AdvisedJob(64))


def test_a_save_that_makes_room_for_the_next_has_the_stall_that_was_seen():
    kept_one = job(
        seen_from_outside("a", 10.0, 12.0, 44.5), save("b", 42.0, 44.0, 45.0), for_s=100.0
    )
    found = rhythm_of(kept_one)
    assert (found.staged, found.lost) == (0, 1)
    assert "at least" not in headline(found)


def test_where_the_rate_of_failures_is_assumed_a_range_is_told_and_named():
    found = advise(Catalog(), RHYTHM, AdvisedJob(64))
    assert found.robust.high_s > 2.0 * found.robust.low_s
    assert found.robust.low_s < found.interval_s < found.robust.high_s
    told = " ".join(sentences(found))
    assert "inside the ranges of what is assumed" in told
    assert "assumed from the job's size; say yours with --mtbf" in told
    assert "USD" not in told, "nobody said what an hour costs"
    assert "failures.rate_factor" in [each.path for each in found.assumed]
    said = " ".join(sentences(advise(Catalog(), RHYTHM, AdvisedJob(64, 2.5, "10 h"))))
    assert "one each 10 h, as said" in said
    assert "GPU-seconds and 0.182 USD" in said


def test_an_interval_that_is_good_enough_stays():
    found = advise(Catalog(), RHYTHM._replace(interval_s=600.0), AdvisedJob(64, None, "10 h"))
    assert found.is_as_good
    assert "within 1 % of the least wall time" in " ".join(sentences(found))


def test_gpus_that_are_none_and_jobs_that_never_fail_are_refused():
    for gpus in (0.0, -3.0, math.nan, math.inf):
        with pytest.raises(InputError):
            advise(Catalog(), RHYTHM, AdvisedJob(gpus))
    with pytest.raises(InputError):
        advise(Catalog(), RHYTHM, AdvisedJob(64, None, "soon"))
    with pytest.raises(InputError):
        advise(Catalog(), RHYTHM, AdvisedJob(64, -1.0))


def test_the_command_line_says_it_first(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path))
    from told_meters import recorded

    marks = [*save("a", 10.0, 12.0, 13.0), *save("b", 42.0, 44.0, 45.0)]
    recorded(GPUS, for_s=100.0, marks=marks, directory=tmp_path / "run")
    run = str(tmp_path / "run")
    text = cli("report", run, "--gpus", "64", "--usd-per-gpu-hour", "2.5", "--mtbf", "10 h").out
    first = next(line for line in text.splitlines() if line.startswith("- "))
    assert first.startswith("- 2 saves of 1 GB, 2 s of training lost at each, 4 % of the run")
    found = json.loads(cli("report", run, "--gpus", "64", "-f", "json").out)["question"]["advice"]
    assert found["gpu_s_a_save"] == pytest.approx(128.0)
    assert found["advised_low_s"] <= found["advised_s"] <= found["advised_high_s"]
    assert cli("report", run, "--mtbf", "10 h").code == 2
    assert cli("report", run, "--gpus", "64", "-s", "gpt4-scale-2tb").code == 2
