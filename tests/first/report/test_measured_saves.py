"""The sentences on checkpoints and training: how many, how large, how long, and what is not known
of which."""

from __future__ import annotations

from math import nan
from types import SimpleNamespace

import pytest

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import Contents
from ckptcost.first.core.estimates import Estimate, absent
from ckptcost.first.core.windows import Span
from ckptcost.first.present.measured import reason_text
from ckptcost.first.report.studies.measure_saves import (
    merged_briefly,
    merged_told,
    rate_of,
    returned_why,
    saves_told,
    staged_told,
    stalls_told,
    training_told,
)


def window(begin_s=1.0, durable_s=3.0, name="w", why=""):
    return SimpleNamespace(name=name, begin_s=begin_s, durable_s=durable_s, durable_why=why)


def told(*pairs):
    return saves_told(
        SimpleNamespace(windows=[w for w, _ in pairs], contents=[c for _, c in pairs])
    )


SAVE = Contents(4e9, 1.0)


def test_of_what_is_not_known_of_stalls_the_reason_is_said():
    def judged(stall_s, returned_s, returned_why="NOT_MARKED", begin_why=""):
        return SimpleNamespace(
            stall_s=stall_s, returned_s=returned_s, returned_why=returned_why, begin_why=begin_why
        )

    contents = [
        SAVE,
        SAVE._replace(returned_why="NOT_ALONE"),
        SAVE._replace(returned_why="NOT_ALONE"),
        SAVE,
        SAVE._replace(error="OSError"),
        SAVE._replace(of="load"),
    ]
    windows = [judged(1.0, 2.0), *(judged(None, None) for _ in contents[1:])]
    assert stalls_told(SimpleNamespace(windows=windows, contents=contents)) == [
        "Of 3 saves it is not known how long training stood still: another save began before this"
        " one was known to be over: they came closer than --gap, no mark says so."
    ]
    assert stalls_told(SimpleNamespace(windows=windows[:1], contents=contents[:1])) == []
    assert returned_why(windows[0], contents[0]) == ""
    assert returned_why(windows[1], contents[1]) == "NOT_ALONE"
    assert returned_why(judged(None, 2.0, begin_why="NO_BEGIN"), SAVE) == ""
    assert returned_why(judged(None, None, begin_why="NO_BEGIN"), SAVE) == "NO_BEGIN"


def merged(marks, *sizes):
    windows = [window() for _ in sizes]
    contents = [SAVE._replace(bytes=each) for each in sizes]
    run = SimpleNamespace(marks=[Mark(1.0, *each) for each in marks])
    return merged_told(SimpleNamespace(run=run, windows=windows, contents=contents))


def test_saves_that_ran_into_one_are_said():
    burst = ("written", "ckpt.pt", 0, "watch", {"how": "io", "run_together": 60, "gap_s": 2.0})
    (line,) = merged([burst], 3e8)
    assert line.startswith("ckpt.pt looks like about 60 saves in one: files of like size")
    assert "Saves closer than 2 s run into one: a shorter --gap tells them apart" in line
    assert merged([("written", "ckpt.pt", 0, "watch", {"how": "io"})], 3e8) == []
    run = SimpleNamespace(marks=[Mark(1.0, *burst), Mark(2.0, "note", "", 0, "wrap")])
    assert merged_briefly(SimpleNamespace(run=run)) == "; 1 may be several in one, see --gap"
    assert merged_briefly(SimpleNamespace(run=SimpleNamespace(marks=[]))) == ""
    many = merged([burst] * 5, *[3e8] * 5)
    assert (len(many), many[-1]) == (4, "So it is with 2 more.")


def test_a_job_that_wrote_much_more_than_was_found_in_the_folder_is_said():
    seen = ("written", "a", 0, "watch", {"how": "inotify", "bytes": 5e6})

    def wrote(amount):
        return ("note", "", 0, "wrap", {"exit_status": 0, "written_bytes": amount})

    (line,) = merged([seen, wrote(3e8)], 5e6, 5e6)
    assert line.startswith("The job wrote 300 MB, and the checkpoints that were found hold 10 MB")
    assert "closer than --gap run into one" in line
    assert merged([seen, wrote(1.5e7)], 5e6, 5e6) == []
    assert merged([seen], 5e6) == []
    assert merged([wrote(3e8)], 5e6) == [], "nobody looked at a folder"


def test_none_of_none():
    assert told() == []
    assert told((window(), SAVE._replace(of="load"))) == []


def test_one_and_several():
    assert told((window(), SAVE)) == ["1 checkpoint, 4 GB; safe after 2 s, 2 GB/s."]
    # 6e9 bytes in 2 + 4 s: a mean of rates would be 1.25 GB/s
    several = told(
        (window(), SAVE),
        (window(0.0, 4.0), SAVE._replace(bytes=2e9)),
        (window(), SAVE._replace(of="load")),
    )
    assert several == ["2 checkpoints, 6 GB; safe after 3 s in the mean, 1 GB/s."]


def test_failed_and_unknown_are_counted_with_their_reasons():
    (line,) = told(
        (window(), SAVE),
        (window(durable_s=None, why="UNFINISHED"), SAVE._replace(error="OSError")),
        (window(durable_s=None, why="UNFINISHED"), SAVE._replace(error="OSError")),
        (window(durable_s=None, why="UNSYNCED"), SAVE._replace(why="IN_MEMORY")),
        (window(durable_s=None, why="UNSYNCED"), SAVE._replace(bytes=nan)),
    )
    assert line.startswith(
        "5 checkpoints, 8 GB; safe after 2 s, 2 GB/s; 2 failed: OSError; of 2 it is not known when"
        " they were safe: "
    )
    assert line.endswith(
        f"{', '.join(sorted([reason_text('IN_MEMORY'), reason_text('UNSYNCED')]))}."
    )


def test_a_save_that_nobody_synced_has_the_kernels_timer_and_no_rate():
    span = Span(0, {"begin": 0.0, "written": 0.4, "durable": 33.0})
    lay = SimpleNamespace(**vars(window(0.0, 33.0)) | {"spans": (span,)})
    what = SAVE._replace(how="cachestat")
    assert rate_of(lay, what) is None
    (line,) = told((lay, what))
    assert line.startswith(
        "1 checkpoint, 4 GB; 1 not synced: written in 0.4 s, then 32.6 s in the page cache"
    )
    assert "GB/s" not in line
    assert "the kernel's timer (30 s" in line
    soon = Span(0, {"begin": 0.0, "written": 0.4, "durable": 6.0})
    (line,) = told((SimpleNamespace(**vars(window(0.0, 6.0)) | {"spans": (soon,)}), what))
    assert "before its timer of 30 s" in line
    assert rate_of(lay, what._replace(how="fsync")) == pytest.approx(4e9 / 33.0)


@pytest.mark.parametrize("why", ["GONE", "REPLACED", "REWRITTEN"])
def test_what_was_deleted_before_it_was_safe_protected_nothing(why):
    lost = (window(durable_s=None, why="UNSYNCED"), SAVE._replace(why=why))
    assert told((window(), SAVE), lost) == [
        "2 checkpoints, 8 GB; safe after 2 s, 2 GB/s; 1 deleted or written over before it was "
        "safe: it protected nothing."
    ]
    assert told(lost, lost) == [
        "2 checkpoints, 8 GB; 2 deleted or written over before they were safe: "
        "they protected nothing."
    ]


def test_what_was_removed_at_once_did_not_fail():
    removed = (window(durable_s=None, why="UNFINISHED"), SAVE._replace(error="gone"))
    (line,) = told((window(), SAVE), removed)
    assert "failed" not in line
    assert "1 removed again at once, as after an upload" in line


def test_what_was_removed_before_the_next_save_may_have_been_sent_elsewhere():
    sent = SAVE._replace(why="GONE", gone_s=2.5)
    assert told((window(1.0, None, "a"), sent), (window(3.0, 5.0, "b"), SAVE)) == [
        "2 checkpoints, 8 GB; safe after 2 s, 2 GB/s."
    ]
    (line,) = staged_told(SimpleNamespace(staged=[window(1.0, None, "a")]))
    assert "stall is at least what is said" in line
    assert staged_told(SimpleNamespace(staged=[])) == []


@pytest.mark.parametrize(
    ("unsure_s", "known"), [(nan, True), (0.05, True), (32.5, False), (40.0, False)]
)
def test_a_save_that_was_looked_at_too_late_is_not_called_unsynced(unsure_s, known):
    """Its fsync may have been before anybody looked: the first save of a job that was attached
    to."""
    span = Span(0, {"begin": 0.0, "written": 0.4, "durable": 33.0})
    late = SimpleNamespace(**vars(window(0.0, 33.0)) | {"spans": (span,)})
    what = SAVE._replace(how="cachestat", unsure_s=unsure_s)
    (line,) = told((late, what))
    assert rate_of(late, what) is None
    assert ("1 not synced" in line) == known
    assert ("1 safe at some time within 33 s, which nobody looked at" in line) != known


@pytest.mark.parametrize(
    ("begin_s", "durable_s", "size", "rate"),
    [
        (1.0, 3.0, 4e9, 2e9),
        (1.0, 1.0, 4e9, None),
        (3.0, 1.0, 4e9, None),
        (None, 3.0, 4e9, None),
        (1.0, None, 4e9, None),
        (1.0, 3.0, nan, None),
    ],
)
def test_bytes_over_the_time_until_safe(begin_s, durable_s, size, rate):
    assert rate_of(window(begin_s, durable_s), Contents(size, 1.0)) == rate


class TestTraining:
    def said(self, stalls=(), more=None, dips=(), names=(), usual=None, ends=5):
        steps = SimpleNamespace(
            ends_s=[0.0] * ends,
            usual=SimpleNamespace(step_s=usual or Estimate(1.5)),
            stalls_s=list(stalls),
            more=more or absent("NO_STEPS"),
        )
        verdicts = [
            None if verdict is None else SimpleNamespace(verdict=verdict) for verdict in dips
        ]
        return training_told(
            SimpleNamespace(
                steps=steps, windows=[window(name=name) for name in names], dips=verdicts
            )
        )

    def test_steps(self):
        assert self.said() == ["5 training steps marked, 1.5 s each outside saves."]
        assert self.said(ends=1)[0].startswith("1 training step marked")
        assert self.said(usual=absent("NO_STEPS")) == []
        assert training_told(SimpleNamespace(steps=None, windows=[], dips=[])) == []

    def test_what_a_save_costs_by_them(self):
        line = (
            "5 training steps marked, 1.5 s each outside saves; by them a save holds training up"
            " for 3 s"
        )
        assert self.said([Estimate(2.0), absent("STEPS_MISSING"), Estimate(4.0)]) == [f"{line}."]
        more = Estimate(0.25, 0.2, 0.3)
        assert self.said([Estimate(3.0)], more) == [
            f"{line}; while one drains a step takes 25 % longer (20 % to 30 %)."
        ]
        assert self.said([Estimate(3.0)], Estimate(0.25)) == [
            f"{line}; while one drains a step takes 25 % longer."
        ]

    def test_power_that_does_not_fall_is_said_of_the_right_one(self):
        _, line = self.said(dips=["CONFIRMED", "CONTRADICTED", None], names=["a", "b", "c"])
        assert (
            line
            == "GPU power does not fall where training is said to stand still, in b: it may not"
            " have stalled."
        )
        assert len(self.said(dips=["CONFIRMED", "NOT_RESOLVED"], names=["a", "b"])) == 1
