"""When /proc is asked, and what is made of its answers: with a clock and observers of our own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ckptcost.first.jobs import observe as module
from ckptcost.first.jobs.observe import AT_ONCE_NS, LATE_NS, REST_NS, Evidence, descendants
from ckptcost.first.runs.clocks import S
from ckptcost.first.watch.writers import SeenWriter

PATHS = [Path("/c/step_1")]
WROTE, WAITED = SeenWriter("MAIN_WROTE", pid=7), SeenWriter("MAIN_WAITED", pid=8)
WORKED, UNKNOWN = SeenWriter("MAIN_WORKED", pid=9), SeenWriter("UNKNOWN", "TOO_SHORT")


class Watched:
    """A job whose observers only say that they were called."""

    def __init__(self, monkeypatch):
        self.now_ns = 100 * S
        self.calls, self.marks, self.verdicts, self.synced = [], [], [WROTE], None
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: self.now_ns))
        monkeypatch.setattr(module, "Writers", self._writers)
        monkeypatch.setattr(module, "Fsyncs", self._fsyncs)
        monkeypatch.setattr(module, "descendants", lambda pid: [pid, pid + 1])
        self.size_bytes = 5
        monkeypatch.setattr(module, "_size_of", lambda paths: self.size_bytes)
        self.pids = []
        self.evidence = Evidence(40, self.tell)

    def _writers(self, pids):
        self.pids.append(pids())
        return SimpleNamespace(
            begin=lambda: self.call("begin"), rest=lambda: self.call("rest"), end=self.end
        )

    def _fsyncs(self, pids, tell):
        self.pids.append(pids())
        assert tell == self.tell
        return SimpleNamespace(
            start=lambda: self.call("start"), stop=lambda: self.call("stop"), mark=self.mark
        )

    def mark(self, window, paths, rank, closed_ns, next_ns):
        assert rank is None
        self.calls.append(f"mark {window} {[str(path) for path in paths]} {closed_ns} {next_ns}")
        return self.synced

    def begin(self, window, t_ns=50):
        self.evidence.begin(window, t_ns)

    def call(self, what):
        self.calls.append(what)

    def end(self, size_bytes):
        self.calls.append(f"end {size_bytes}")
        return self.verdicts

    def tell(self, name, window="", **detail):
        self.marks.append((name, window, detail))

    def after(self, seconds):
        self.now_ns += round(seconds * S)
        return self.evidence

    def taken(self):
        taken, self.calls = self.calls, []
        return taken


@pytest.fixture
def job(monkeypatch):
    return Watched(monkeypatch)


def save(job, window="w", paths=PATHS, returned=True, closed=True, begin_ns=50):
    job.begin(window, begin_ns)
    job.after(1.0).written(window, 77, paths, returned=returned, closed=closed)


def sync(over_ns, tids=(0,), whole=True):
    """A sync that was seen, by these threads; the verdicts here are of trainer 0."""
    return SimpleNamespace(over_ns=over_ns, tids=set(tids), all=whole)


def told(job, **more):
    """What is said of a save once nothing more is waited for."""
    save(job, **more)
    assert job.marks == []
    job.after(LATE_NS / S).late()
    return job.marks


def test_the_process_and_all_below_it_are_asked(job):
    assert job.pids == [[40, 41], [40, 41]]


@pytest.mark.parametrize("verdict", [WROTE, WAITED])
def test_training_that_stood_still_went_on_when_the_last_file_was_closed(job, verdict):
    job.verdicts = [verdict]
    assert told(job) == [
        ("returned", "w", {"by": "watch", "t_ns": 77, "how": "main-thread", "code": verdict.code})
    ]
    assert job.taken() == ["begin", "start", "end 5", "mark w ['/c/step_1'] 77 None"]


@pytest.mark.parametrize(("over_ns", "at_ns"), [(78, 78), (76, 77)])
def test_or_when_its_sync_ended_later(job, over_ns, at_ns):
    job.synced = sync(over_ns)
    assert told(job)[0][2]["t_ns"] == at_ns


@pytest.mark.parametrize(
    ("renamed_ns", "at_ns"), [(90, 90), (70, 77), (77 + AT_ONCE_NS, 77 + AT_ONCE_NS)]
)
def test_or_when_it_was_renamed_at_once(job, renamed_ns, at_ns):
    save(job)
    job.evidence.committed("w", renamed_ns)
    job.evidence.committed("other", 99)
    job.evidence.late(last=True)
    job.evidence.committed("w", 99)
    (mark,) = job.marks
    assert mark[2]["t_ns"] == at_ns


class TestUnclear:
    """A wrong return is worse than none."""

    def why(self, job):
        job.evidence.late(last=True)
        ((name, _, detail),) = job.marks
        return name if name == "returned" else (detail["returned_why"], detail["t_ns"])

    def test_renamed_later(self, job):
        save(job)
        job.evidence.committed("w", 78 + AT_ONCE_NS)
        assert self.why(job) == ("UNCLEAR", 77)

    def test_renamed_at_once_after_a_sync(self, job):
        save(job)
        job.synced = sync(500)
        job.evidence.committed("w", 500 + AT_ONCE_NS)
        assert self.why(job) == "returned"

    def test_synced_by_another_thread(self, job):
        save(job)
        job.synced = sync(90, tids=(0, 3))
        assert self.why(job) == ("UNCLEAR", 90)

    @pytest.mark.parametrize(
        ("synced", "why"),
        [(None, ("UNCLEAR", 77)), (sync(90, whole=False), ("UNCLEAR", 90)), (sync(90), "returned")],
    )
    def test_nobody_saw_it_closed(self, job, synced, why):
        save(job, closed=False)
        job.synced = synced
        assert self.why(job) == why
        assert job.taken()[-1] == "mark w ['/c/step_1'] None None"


def test_a_file_that_cannot_be_seen_is_judged_by_nobody(job):
    job.size_bytes = 0
    assert told(job) == [("note", "w", {"by": "watch", "t_ns": 77, "returned_why": "WRITTEN_OVER"})]


def test_syncs_of_the_next_save_are_told_apart(job):
    save(job, "a")
    job.after(2.0)
    job.begin("b", 80)
    job.evidence.written("b", 85, PATHS, returned=True, closed=True)
    job.after(2.0)
    job.begin("c", 90)
    job.taken()
    job.evidence.late(last=True)
    assert job.taken() == ["mark a ['/c/step_1'] 77 80", "mark b ['/c/step_1'] 85 90"]


@pytest.mark.parametrize(
    ("verdicts", "why"),
    [
        ([WORKED], "MAIN_WORKED"),
        ([UNKNOWN], "TOO_SHORT"),
        ([WROTE, WORKED], "MAIN_WORKED"),
        ([WAITED, UNKNOWN, WORKED], "TOO_SHORT"),
    ],
)
def test_where_one_did_not_the_return_stays_unknown_and_why_is_said(job, verdicts, why):
    job.verdicts = verdicts
    assert told(job) == [("note", "w", {"by": "watch", "t_ns": 77, "returned_why": why})]


def test_all_writers_stood_still(job):
    job.verdicts = [WAITED, WROTE]
    ((name, _, detail),) = told(job)
    assert (name, detail["code"]) == ("returned", "MAIN_WAITED")


def test_nobody_wrote_or_a_hook_speaks_says_nothing(job):
    job.verdicts = []
    assert told(job) == []
    job.verdicts = [WROTE]
    job.after(5.0)
    assert told(job, returned=False) == []


def test_saves_that_overlap_are_not_told_apart_and_the_next_one_is(job):
    job.begin("a")
    job.begin("b")
    job.after(1.0).written("a", 1, PATHS, returned=True, closed=True)
    job.evidence.written("b", 2, PATHS, returned=True, closed=True)
    job.after(2.0)
    save(job, "c")
    job.evidence.late(last=True)
    told_of = {window: (name, detail.get("returned_why")) for name, window, detail in job.marks}
    assert told_of == {
        "a": ("note", "NOT_ALONE"),
        "b": ("note", "NOT_ALONE"),
        "c": ("returned", None),
    }


def test_a_save_whose_reading_began_with_others_is_not_judged_by_it(job):
    job.begin("a")
    job.begin("b")
    job.after(0.4).written("a", 1, PATHS, returned=True, closed=True)
    job.evidence.written("b", 2, PATHS, returned=True, closed=True)
    job.after(0.4)
    job.begin("c")
    job.after(0.1).written("c", 3, PATHS, returned=True, closed=True)
    job.evidence.late(last=True)
    assert [(name, detail["returned_why"]) for name, _, detail in job.marks] == [
        ("note", "NOT_ALONE")
    ] * 3


def test_a_sign_begins_a_reading_and_the_begin_that_follows_does_not_begin_another(job):
    job.evidence.sign()
    job.after(0.9)
    job.begin("w")
    assert job.taken() == ["begin", "start"]
    job.after(5.0).sign()  # in a save it is not forgotten what was there before
    assert job.taken() == []


def test_signs_within_a_second_are_one(job):
    job.evidence.sign()
    job.after(0.999).sign()
    assert job.taken() == ["begin", "start"]
    job.after(0.001).sign()
    assert job.taken() == ["begin", "start"]


def test_a_sign_does_not_forget_syncs_that_are_still_waited_for(job):
    save(job)
    job.taken()
    job.after(1.5).sign()
    assert job.taken() == ["begin"]
    job.after(LATE_NS / S).late()
    job.taken()
    job.evidence.sign()
    assert job.taken() == ["begin", "start"]


def test_late_syncs_are_looked_for_once_when_the_time_is_over(job):
    save(job)
    job.taken()
    job.after(LATE_NS / S - 0.001).late()
    assert job.taken() == []
    job.after(0.001).late()
    assert job.taken() == ["mark w ['/c/step_1'] 77 None"]
    job.after(60.0).late()
    assert job.taken() == []


def test_at_the_end_they_are_looked_for_at_once(job):
    save(job, "a")
    save(job, "b")
    job.taken()
    job.evidence.late(last=True)
    assert job.taken() == ["mark a ['/c/step_1'] 77 None", "mark b ['/c/step_1'] 77 None"]


def test_without_files_there_is_nothing_to_look_for(job):
    save(job, paths=[])
    job.taken()
    job.evidence.late(last=True)
    assert job.taken() == []


def test_rest_is_when_nothing_goes_on(job):
    job.evidence.rest()
    assert job.taken() == ["stop", "rest"]
    job.after(REST_NS / S - 0.001).rest()
    assert job.taken() == []
    job.after(0.001).rest()
    assert job.taken() == ["stop", "rest"]


def test_no_rest_soon_after_a_sign_in_a_save_or_while_syncs_are_waited_for(job):
    job.evidence.sign()
    job.taken()
    job.after(REST_NS / S - 0.001).rest()
    assert job.taken() == []
    job.begin("w")
    job.taken()
    job.after(10.0).rest()
    assert job.taken() == []
    job.evidence.written("w", 1, PATHS, returned=True, closed=True)
    job.taken()
    job.after(1.0).rest()
    assert job.taken() == []
    job.after(10.0).late()
    job.taken()
    job.evidence.rest()
    assert job.taken() == ["stop", "rest"]


def test_closing_never_fails(job, monkeypatch):
    def fails():
        raise OSError("gone")

    job.evidence._fsyncs.stop = fails
    job.evidence.close()


def test_all_below_a_process_each_once(monkeypatch):
    below = {1: [2, 3], 2: [4], 3: [4, 2], 4: [1], 5: [6]}
    monkeypatch.setattr(module, "children_of", lambda pid, procfs: below.get(pid))
    assert sorted(descendants(1)) == [1, 2, 3, 4]
    assert descendants(9) == [9]
