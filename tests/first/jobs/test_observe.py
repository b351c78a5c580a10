"""What is started, told and ended around a job, in which order: with parts that only say what was
asked of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ckptcost.first.jobs import observe as module
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.observe import BURST_GAPS, Observer, WatchOptions, absent
from ckptcost.first.jobs.recording import ASKED, EDGE, MARGIN_S
from ckptcost.first.meters.base import Absence
from ckptcost.first.runs.clocks import S
from ckptcost.first.watch.watcher import Other


class Part:
    """Says what is called on it, and answers with what it was made to."""

    def __init__(self, job, name, **answers):
        self.job, self.name, self.absence, self.problem = job, name, None, ""
        self.__dict__.update(answers)

    def __getattr__(self, what):
        return lambda *words, **more: self.job.called(f"{self.name}.{what}", *words, **more)


class Job:
    def __init__(self, monkeypatch, tmp_path):
        self.folder, self.calls, self.made, self.now_ns = tmp_path / "run", [], {}, 1000 * S
        self.pending, self.refused, self.burst_absence = [], None, None
        monkeypatch.setattr(
            module, "RealClock", lambda: SimpleNamespace(now_ns=lambda: self.now_ns)
        )
        recorder = Part(
            self,
            "recorder",
            stats=SimpleNamespace(problem=""),
            header=SimpleNamespace(run="r" * 32),
        )
        self.recorder = recorder
        monkeypatch.setattr(module, "Recorder", lambda *given, **more: recorder)
        monkeypatch.setattr(module, "FileSink", lambda folder: folder)
        monkeypatch.setattr(module, "Bursts", lambda **rules: rules)
        for name in ("Watcher", "Burster", "Settling", "Evidence", "Listener"):
            monkeypatch.setattr(module, name, self.maker(name))

    def maker(self, name):
        job = self

        class Made(Part):
            def __init__(self, *words, **more):
                super().__init__(job, name.lower())
                self.words, self.more, self.left_out = words, more, {}
                job.made.setdefault(name, []).append(self)
                if name == "Listener" and job.refused is not None:
                    raise job.refused
                if name == "Burster":
                    self.absence = job.burst_absence

            @property
            def pending(self):
                return tuple(job.pending)

            def environ(self):
                return {"CKPTCOST_SOCKET": "here"}

        return Made

    def called(self, what, *words, **more):
        self.calls.append((what, words, more))

    def taken(self):
        taken, self.calls = self.calls, []
        return [what for what, _, _ in taken]

    def marks(self):
        return [(words, more) for what, words, more in self.calls if what == "recorder.mark"]

    def observer(self, **look):
        return Observer(Instruments([], [], None), WatchOptions(**look), self.folder, environ={})


@pytest.fixture
def job(monkeypatch, tmp_path):
    return Job(monkeypatch, tmp_path)


def test_the_recorder_runs_before_anything_is_looked_for(job):
    observer = job.observer(
        watch=(Path("/a"), Path("/b")), least_bytes=2.6e6, gap_s=0.5, create_later=False
    )
    assert observer.start() == {"CKPTCOST_SOCKET": "here"}
    assert job.taken() == ["recorder.start", "watcher.start", "watcher.start"]
    first, second = job.made["Watcher"]
    assert (first.words[0], second.words[0]) == (Path("/a"), Path("/b"))
    settings = first.more["settings"]
    assert (settings.rules.least_bytes, settings.rules.gap_s, settings.create_later) == (
        2_600_000,
        0.5,
        False,
    )
    assert settings.ignore == (job.folder,)
    assert first.words[1] == observer.tell


def test_without_a_place_for_hooks_everything_else_goes_on(job):
    job.refused = OSError("no sockets here")
    observer = job.observer()
    assert observer.start() == {}
    assert list(observer.troubles()) == ["hooks cannot speak to this recorder: no sockets here"]


def test_who_is_only_followed_is_not_listened_to(job):
    assert job.observer().start(listen=False) == {}
    assert "Listener" not in job.made


def test_a_process_is_looked_at_by_its_own_writing_only_without_a_folder(job):
    observer = job.observer(watch=(Path("/a"),))
    observer.start()
    observer.follow(7)
    assert "Burster" not in job.made
    assert job.made["Evidence"][0].words == (7, observer.tell)
    job.calls.clear()
    other = job.observer(least_bytes=3e6, gap_s=0.5)
    other.start()
    other.follow(8)
    assert job.taken() == ["recorder.start", "evidence.rest", "burster.start"]
    burster = job.made["Burster"][0]
    assert burster.words[0] == 8
    assert burster.more["bursts"] == {"least_bytes": 3_000_000, "gap_s": 0.5 * BURST_GAPS}


def test_why_its_writing_cannot_be_seen_is_said(job):
    job.burst_absence = Absence(
        "process", "its io file may not be read", "run as its owner", "storage"
    )
    observer = job.observer()
    observer.start()
    observer.follow(7)
    assert list(observer.troubles()) == ["process: its io file may not be read (run as its owner)"]
    assert absent(Absence("a", "b", "", "gpu")) == "a: b"


def test_every_mark_gets_its_instant_here(job):
    observer = job.observer()
    observer.tell("begin", "w", rank=2, bytes=5)
    observer.tell("returned", "w", t_ns=0)
    assert job.marks() == [
        (("begin", "w"), {"by": "api", "rank": 2, "t_ns": 1000 * S, "bytes": 5}),
        (("returned", "w"), {"by": "api", "rank": None, "t_ns": 0}),
    ]


def test_a_begin_and_a_rename_that_were_seen_from_outside_are_what_evidence_is_for(job):
    observer = job.observer()
    observer.follow(7)
    job.calls.clear()
    observer.tell("begin", "a", by="api", t_ns=5)
    observer.tell("committed", "a", by="api", t_ns=6)
    observer.tell("written", "a", by="watch", t_ns=7)
    assert set(job.taken()) == {"recorder.mark"}
    observer.tell("begin", "b", by="watch", t_ns=8)
    observer.tell("committed", "b", by="watch", t_ns=9)
    assert [call for call in job.calls if call[0] != "recorder.mark"] == [
        ("evidence.begin", ("b", 8), {}),
        ("evidence.committed", ("b", 9), {}),
    ]


def test_that_something_is_expected_is_told_to_the_recorder_and_to_evidence(job):
    observer = job.observer()
    observer._expect(5.0)
    observer.follow(7)
    job.calls.clear()
    observer._expect(5.0)
    assert job.calls == [("recorder.expect", (5.0,), {}), ("evidence.sign", (), {})]


class TestSettle:
    def settled(self, job, **more):
        observer = job.observer()
        observer.follow(7)
        job.calls.clear()
        observer._settle("w", ["/c/a", Path("/c/b")], 5, 9, **more)
        return observer

    def test_who_wrote_it_first_and_then_when_it_is_safe(self, job):
        self.settled(job)
        assert job.calls == [
            (
                "evidence.written",
                ("w", 9, [Path("/c/a"), Path("/c/b")]),
                {"returned": True, "closed": True},
            ),
            ("settling.follow", ("w", ["/c/a", Path("/c/b")], 5, 9, None, True), {}),
        ]

    def test_of_a_burst_nobody_saw_the_close(self, job):
        observer = job.observer()
        observer.follow(7)
        job.calls.clear()
        observer._settle_burst("w", ["/c/a"], since_ns=5, written_ns=9)
        assert job.calls == [
            ("evidence.written", ("w", 9, [Path("/c/a")]), {"returned": True, "closed": False}),
            ("settling.follow", ("w", ["/c/a"], 5, 9, None, False), {}),
        ]

    def test_a_hook_has_said_when_it_returned(self, job):
        self.settled(job, rank=0)
        assert job.taken() == ["settling.follow"]

    def test_of_a_job_that_speaks_the_return_is_not_guessed(self, job):
        observer = job.observer()
        observer.follow(7)
        observer.tell("begin", "a", by="api")
        job.calls.clear()
        observer._settle("w", [], 5, 9)
        assert job.calls[0] == (
            "evidence.written",
            ("w", 9, []),
            {"returned": False, "closed": True},
        )


class TestOver:
    def over(self, job, wait, settle_s=40.0, begun=True, **detail):
        observer = job.observer(watch=(Path("/a"),), settle_s=settle_s)
        observer.start()
        if begun:
            observer.begin()
        observer.follow(7)
        job.calls.clear()
        observer.over(900 * S, wait, **detail)
        return observer

    def test_last_words_then_the_page_cache_then_the_margin(self, job):
        job.pending = ["w"]
        waited = []

        def wait(seconds):
            waited.append(seconds)
            job.now_ns += round(seconds * S)
            if len(waited) == 3:
                job.pending = []
            return False

        self.over(job, wait, exit_status=3)
        assert [call for call in job.calls if call[0] != "evidence.rest"] == [
            ("recorder.mark", (EDGE,), {"by": "wrap", "t_ns": 900 * S, "exit_status": 3}),
            ("watcher.stop", (), {}),
            ("evidence.late", (), {}),
            ("evidence.late", (), {"last": True}),
            ("settling.stop", (0.0,), {}),
            (
                "recorder.mark",
                (EDGE,),
                {"by": "wrap", "t_ns": 900 * S, "nothing_found": "NO_FOLDER"},
            ),
            ("recorder.mark", (EDGE,), {"by": ASKED, "t_ns": 1000 * S + 300_000_000}),
            ("recorder.expect", (MARGIN_S,), {}),
        ]
        assert waited == [0.1, 0.1, 0.1, MARGIN_S]

    def test_what_others_wrote_is_counted_with_one_of_them(self, job):
        observer = job.observer(watch=(Path("/a"),))
        observer.start()
        job.made["Watcher"][0].left_out = {"x.pt": Other(7, "python"), "y.pt": Other(5, "dd")}
        job.calls.clear()
        observer.over(900 * S, lambda _: False)
        told = [more for what, _, more in job.calls if what == "recorder.mark"]
        assert {"by": "wrap", "t_ns": 900 * S, "left_out": 2, "left_out_by": "dd (5)"} in told

    def test_no_longer_than_asked(self, job):
        job.pending, waited = ["w"], []

        def wait(seconds):
            waited.append(seconds)
            job.now_ns += round(seconds * S)
            return False

        self.over(job, wait, settle_s=1.0)
        assert waited == [0.1] * 10 + [MARGIN_S]

    def test_the_user_may_end_it(self, job):
        job.pending, waited = ["w"], []

        def wait(seconds):
            waited.append(seconds)
            return True

        self.over(job, wait)
        assert waited == [0.1, MARGIN_S]

    def test_nothing_pending_waits_for_nothing(self, job):
        waited = []
        self.over(job, waited.append, settle_s=0.0)
        assert waited == [MARGIN_S]

    def test_what_was_never_begun_ends_where_it_was_told_to(self, job):
        self.over(job, lambda _: False, begun=False)
        assert job.marks()[-1] == ((EDGE,), {"by": ASKED, "t_ns": 900 * S})


def test_what_was_asked_for_begins_now_with_what_is_known_of_it(job):
    observer = job.observer()
    observer.begin(command="train.py")
    observer.begin()
    at = {"t_ns": 1000 * S}
    assert job.marks() == [
        ((EDGE,), {"by": ASKED, **at}),
        ((EDGE,), {"by": "wrap", "command": "train.py", **at}),
        ((EDGE,), {"by": ASKED, **at}),
    ]


def test_close_ends_everything_whatever_fails(job):
    observer = job.observer(watch=(Path("/a"), Path("/b")))
    observer.start()
    observer.follow(7)
    job.calls.clear()

    def fails(*_):
        raise RuntimeError("broken")

    job.made["Watcher"][0].stop = fails
    job.made["Settling"][0].stop = fails
    observer.close()
    assert job.taken() == ["watcher.stop", "evidence.close", "listener.close", "recorder.stop"]
    observer.close()


def test_troubles_of_recording_come_last(job):
    observer = job.observer(watch=(Path("/a"),))
    observer.start()
    observer.problems.append("first")
    job.made["Watcher"][0].problem = "the folder went away"
    job.recorder.stats.problem = "the disk is full"
    assert list(observer.troubles()) == ["first", "the folder went away", "the disk is full"]


def test_pending_is_what_is_not_known_to_be_safe(job):
    observer = job.observer()
    assert observer.pending == 0
    job.pending = ["a", "b"]
    assert observer.pending == 2


def test_looking_takes_late_syncs_before_it_rests(job):
    observer = job.observer()
    observer.look()
    observer.follow(7)
    job.calls.clear()
    observer.look()
    assert job.taken() == ["evidence.late", "evidence.rest"]
